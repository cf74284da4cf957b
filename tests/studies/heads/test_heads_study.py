"""The whole study on a tiny run: the record, its tables, its section, its verb."""

from __future__ import annotations

import json
import random
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from heedful.cli.main import main
from heedful.errors import InputError
from heedful.model.config import head_name
from heedful.stats import Estimate
from heedful.studies.heads import Effort, HeadsStudy, Plan, heads_study, open_subject, study_heads
from heedful.studies.heads.behaviour import WORDS, observe
from heedful.studies.heads.heads_study import PARTS
from heedful.studies.heads.sample import Amount, translation_run
from heedful.studies.heads.small_models import CHANGES, base_run, train_one, training_of
from heedful.views.heads import heads_blocks, heads_map, heads_section
from heedful.views.html import blocks_html
from heedful.views.terminal import print_blocks

TINY = Plan(seeds=2, order_seeds=1, steps=3, pairs=60, width=16)
EFFORT = Effort(robustness=1e9, predictable=1e9, margins=6)


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
    assert record.behaviour is not None
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
    assert found is not None
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


def test_no_clock_decides_what_is_measured(
    record: HeadsStudy, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, real = random.Random(0), time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: real() * draw.uniform(1, 9))
    again = study_heads(run, amount=Amount(pairs=6), effort=EFFORT)
    before, after = record.to_dict(), again.to_dict()
    for part in ("behaviour", "keys", "robustness", "order", "probe"):
        assert after[part] == before[part]
    kept, made = (one.to_dict()["predictable"] | {"seconds": 0} for one in (record, again))
    assert kept == made


def test_models_that_have_learned_nothing_conclude_nothing(record: HeadsStudy) -> None:
    said = [one.text for one in record.conclusions]
    assert any("Missing: models that have learned" in text for text in said)
    assert not any("is supported" in text or "is refuted" in text for text in said)


def test_the_most_needed_heads_are_said_of_how_many(record: HeadsStudy) -> None:
    assert record.robustness is not None
    few = tuple(
        replace(one, exact=None if place else Estimate(value=-0.012, low=-0.02, high=0.0, count=9))
        for place, one in enumerate(record.robustness.ablations)
    )
    one = record.most_needed(replace(record.robustness, ablations=few))
    assert not one.stands
    assert "1 of 8 heads measured" in one.text
    assert f"of {len(few)} heads measured" in record.most_needed(record.robustness).text


def test_report_terminal_and_page_say_the_same_of_every_head(record: HeadsStudy, run: Path) -> None:
    # The page knows the model inside the run, the report the run itself.
    subject = open_subject(run / "model")
    seen = observe(subject.decoder, subject.sample)
    whole = study_heads(run, parts=["heads"])
    assert whole.behaviour is not None
    assert [one.to_dict() for one in seen.heads] == [one.to_dict() for one in whole.behaviour.heads]
    assert [one.name for one in seen.heads] == [
        head_name(layer, head) for layer in range(2) for head in range(4)
    ]
    assert record.robustness is not None
    assert {one.name for one in record.robustness.ablations} == {one.name for one in seen.heads}
    page = (Path(__file__).parents[3] / "page" / "src" / "lib" / "studies.svelte.ts").read_text()
    labels = page[page.index("export const LABELS") :].split("}")[0]
    assert dict(re.findall(r"(\w+): '([^']+)'", labels)) == WORDS


def test_parts_are_chosen_or_left_out(run: Path) -> None:
    some = study_heads(run, amount=Amount(pairs=4), parts=["order", "heads"])
    assert list(some.seconds) == ["heads", "order"]
    assert some.behaviour is not None
    assert some.probe is not None
    assert some.keys is some.robustness is some.predictable is some.trained is None
    assert len(some.conclusions) == 1
    assert blocks_html([heads_section(some, 1.0)])
    rest = study_heads(run, amount=Amount(pairs=4), parts=["no-robustness", "no-tokens"])
    assert list(rest.seconds) == ["heads", "keys", "order"]
    for wrong in (["head"], ["no-nothing"], [f"no-{part}" for part in PARTS], ["small-models"]):
        with pytest.raises(InputError, match="--parts"):
            study_heads(run, parts=wrong)


def test_a_stopped_study_goes_on_where_it_was(
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    call = ["study", "heads", str(run), "--parts", "heads,keys,order", "--output", str(tmp_path)]
    monkeypatch.setitem(heads_study._WORK, "order", _stopped)
    assert main(call) == 130
    printed = capsys.readouterr()
    assert "What each head does" in printed.out
    assert "Keys" in printed.out
    assert "stopped at order; parts finished and kept: heads, keys" in printed.err
    monkeypatch.undo()
    monkeypatch.setitem(heads_study._WORK, "heads", _stopped)  # must not be worked on again
    monkeypatch.setitem(heads_study._WORK, "keys", _stopped)
    assert main([*call, "--json"]) == 0
    resumed = json.loads(capsys.readouterr().out)
    monkeypatch.undo()
    whole = study_heads(run, parts=["heads", "keys", "order"]).to_dict()
    assert {**resumed, "seconds": 0} == {**whole, "seconds": 0}
    # Another text is another study.
    monkeypatch.setitem(heads_study._WORK, "heads", _stopped)
    text = tmp_path / "text.txt"
    text.write_text("Le chat dort dans la maison. The cat sleeps in the house.\n" * 4)
    assert main([*call, "--text", str(text)]) == 130


def _stopped(*_: object) -> dict[str, object]:
    raise KeyboardInterrupt


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
    call += ["--output", str(tmp_path / "kept")]
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
