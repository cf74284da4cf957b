"""The whole study on a tiny run: the record, its tables, its section, its verb."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heedful.cli.main import main
from heedful.errors import InputError
from heedful.studies.heads import Effort, HeadsStudy, Plan, open_subject, study_heads
from heedful.studies.heads.sample import Amount, translation_run
from heedful.studies.heads.small_models import CHANGES, base_run, train_one, training_of
from heedful.views.heads import heads_blocks, heads_map, heads_section
from heedful.views.html import blocks_html
from heedful.views.terminal import print_blocks

TINY = Plan(seeds=2, order_seeds=1, steps=3, pairs=60, width=16)
EFFORT = Effort(robustness=0.5, predictable=2.0, margins=6)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return base_run(TINY, tmp_path_factory.mktemp("runs") / "tiny")


@pytest.fixture(scope="module")
def record(run: Path) -> HeadsStudy:
    return study_heads(run, amount=Amount(pairs=6), plan=TINY, effort=EFFORT)


def test_a_run_reads_translations_that_it_has_not_seen(run: Path) -> None:
    subject = open_subject(run, amount=Amount(pairs=5))
    assert subject.sample.translations
    assert len(subject.sample.rows) == 5
    for row in subject.sample.rows:
        assert row.source is not None
        assert row.tokens[row.source[1]] == subject.tokenizer.id_of("<to>")
        assert row.tokens[-1] == subject.tokenizer.id_of("<end>")


def test_every_question_has_an_answer(record: HeadsStudy) -> None:
    assert len(record.behaviour.heads) == 8
    assert all("source" in head.masses for head in record.behaviour.heads)
    assert record.trained is not None
    assert record.trained.trainings == 6 * 2 + 4
    words = {finding.verdict for finding in record.findings}
    assert words <= {"proved", "supported", "refuted", "undecided"}
    by_name = {finding.name: finding for finding in record.findings}
    assert by_name["equivariant, no mask"].verdict == "supported"
    assert by_name["equivariant, causal"].verdict == "refuted"
    found = record.predictable
    assert found.can + found.never + found.tie + found.open == found.vocabulary
    assert json.loads(record.to_json())["layers"] == 2


def test_it_is_told(record: HeadsStudy, capsys: pytest.CaptureFixture[str]) -> None:
    print_blocks(heads_blocks(record))
    printed = capsys.readouterr().out
    for text in ("What each head does", "Where the norm stands", "Verdicts", "tokens can"):
        assert text in printed
    html = blocks_html([heads_section(record, 1.0)])
    assert html.count("<svg") == html.count("</svg>") == 7
    assert heads_map(record).axes


def test_the_same_plan_gives_the_same_numbers(record: HeadsStudy) -> None:
    again = train_one(TINY, "base", 1)
    assert record.trained is not None
    base = next(one for one in record.trained.norms.variants if one.name == "pre-norm")
    first = train_one(TINY, "base", 0)
    assert base.loss.value == pytest.approx((again.loss + first.loss) / 2, abs=0)


def test_variants_differ_from_the_base_in_one_thing() -> None:
    base = training_of(TINY, "base", 0)["model"]
    for name in CHANGES:
        changed = training_of(TINY, name, 0)["model"]
        assert sum(base[part] != changed[part] for part in base) == (name != "base")


def test_the_verb_prints_draws_and_refuses(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("Le chat dort dans la maison. The cat sleeps in the house.\n" * 4)
    figure = tmp_path / "map.svg"
    call = ["study", "heads", str(run), "--text", str(text), "--no-train", "--quick"]
    assert main([*call, "--json", "--figure", str(figure)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["trained"] is None
    assert printed["text"] == "text.txt"
    assert figure.read_text().startswith("<?xml")
    assert main([*call, "--rows", "0"]) == 2
    assert "--rows: is 0" in capsys.readouterr().err
    assert main(["study", "heads", str(tmp_path / "nothing")]) == 2
    text.write_text("a")
    assert main(call) == 2


def test_the_best_translation_run_is_found(tmp_path: Path, run: Path) -> None:
    assert translation_run(tmp_path) is None
    assert translation_run(run.parent) is None  # not finished into a model that translates
    with pytest.raises(InputError):
        open_subject(tmp_path)
