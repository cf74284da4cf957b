"""The study at a size where nothing is learned and everything happens."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch
from small_arms import LEARNING, TINY, without_times, write_visitor

from heedful.cli.main import main
from heedful.data.synthetic.phrasebook import phrasebook
from heedful.errors import InputError
from heedful.model import Decoder, load, preset
from heedful.studies.conclusions import EQUAL_WORK
from heedful.studies.translation.arms import keep_best
from heedful.studies.translation.corpus import read_study_corpus
from heedful.studies.translation.recipe import StudySettings, study_settings
from heedful.studies.translation.results import (
    ELSEWHERE,
    FULL,
    HERE,
    LONGER,
    PROMPTED,
    SCRATCH,
    TranslationStudy,
)
from heedful.studies.translation.translation_study import EVERYDAY, run_study, with_everyday
from heedful.studies.translation.translator import Translator
from heedful.views.report import part_of
from heedful.views.translation import study_blocks, translation_section


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_visitor(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def settings(visitor: Path) -> StudySettings:
    elsewhere = {"model": str(visitor), "steps": 3, "columns": 512, "sentences": 5, "rank": 2}
    return study_settings(TINY, {"elsewhere": {**elsewhere, "sizes": (40,)}})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def record(settings: StudySettings, folder: Path) -> TranslationStudy:
    return run_study(settings, folder)


def test_everyday_sentences_stand_beside_the_translator_of_the_package(
    record: TranslationStudy,
) -> None:
    everyday = with_everyday(record).everyday
    assert [example.source for example in everyday] == [source for source, _ in EVERYDAY]
    assert all(set(example.translations) == {"fr-en", record.judged} for example in everyday)
    assert "station" in everyday[0].translations["fr-en"]
    assert with_everyday(replace(record, languages=("de", "en"))).everyday == ()


def test_every_arm_is_there_with_its_figures(record: TranslationStudy) -> None:
    assert [(arm.arm, arm.pairs) for arm in record.arms] == [
        (SCRATCH, 40), (SCRATCH, 80), (HERE, 40), (HERE, 80), (LONGER, 80), (ELSEWHERE, 40),
    ]  # fmt: skip
    for arm in record.arms:
        assert arm.bleu_low <= arm.bleu_high
        assert 0 <= arm.exact <= 1
        assert arm.minutes > 0
        assert "version:" in arm.signature
        assert arm.curve
        assert arm.samples[0].translations.keys() == {point.step for point in arm.curve}
        assert (arm.gain is None) == (arm.arm == SCRATCH)
        assert sum(part.sentences for part in arm.by_length) == arm.sentences
    here, longer = record.arms[3], record.arms[4]
    assert here.minutes > here.minutes_before > 0
    assert here.curve[0].minutes > here.minutes_before
    assert longer.steps >= record.arms[1].steps
    assert record.arms[5].trained < record.arms[5].parameters
    tests = {(c.arm, c.against) for c in record.comparisons}
    assert tests == {
        (HERE, SCRATCH), (LONGER, SCRATCH), (HERE, LONGER), (ELSEWHERE, SCRATCH), (ELSEWHERE, HERE),
    }  # fmt: skip
    assert here.work > here.work_before > 0
    assert len(record.conclusions) == 1 + 4 + 2
    assert any("tokenizer of its own" in text for text in record.unequal)


def test_json_has_the_promised_fields(record: TranslationStudy) -> None:
    made = json.loads(record.to_json())
    promised = {
        "arm", "pairs", "bleu", "bleu_low", "bleu_high", "chrf", "minutes", "signature",
    }  # fmt: skip
    assert all(promised <= arm.keys() for arm in made["arms"])
    assert {row["baseline"] for row in made["baselines"]} == {"copy", "dictionary", "nearest"}
    assert len(made["best"]) == len(made["worst"]) == 12


def test_what_is_finished_is_not_trained_again(
    record: TranslationStudy, settings: StudySettings, folder: Path
) -> None:
    def stamps() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/checkpoints/*")}

    before = stamps()
    told: list[str] = []
    again = run_study(settings, folder, tell=lambda what, _share: told.append(what))
    assert stamps() == before
    assert not any(": step " in what for what in told)
    same = [(arm.bleu, arm.minutes, arm.curve[-1].loss) for arm in record.arms]
    assert [(arm.bleu, arm.minutes, arm.curve[-1].loss) for arm in again.arms] == same


def test_the_same_work_is_the_same_number_of_operations(record: TranslationStudy) -> None:
    here, longer = record.result(HERE, 80), record.result(LONGER, 80)
    one_step = longer.work / longer.steps
    assert abs(here.work - longer.work) <= 2 * one_step
    scratch = record.result(SCRATCH, 80)
    assert scratch.work / scratch.tokens == (here.work - here.work_before) / here.tokens


def test_nothing_is_concluded_where_nothing_was_learned(record: TranslationStudy) -> None:
    assert not any(one.stands for one in record.conclusions)
    assert "beats" not in str(record.conclusions)


def learned(record: TranslationStudy, **bleu: float) -> TranslationStudy:
    """Return the record as it would be if the arms had reached so much."""
    arms = tuple(
        replace(arm, bleu=bleu[arm.arm], bleu_low=bleu[arm.arm] - 2, bleu_high=bleu[arm.arm] + 2)
        if arm.arm in bleu
        else arm
        for arm in record.arms
    )
    comparisons = tuple(
        replace(
            found,
            gain=9.0,
            gain_low=8.0,
            gain_high=10.0,
            bleu=bleu.get(found.arm, found.bleu),
            bleu_against=bleu.get(found.against, found.bleu_against),
        )
        for found in record.comparisons
    )
    return replace(record, arms=arms, comparisons=comparisons)


def test_what_is_concluded_names_seed_sentences_and_near_copies(record: TranslationStudy) -> None:
    best, *contrasts = learned(record, scratch=30.0, here=39.0, elsewhere=39.0).conclusions
    assert best.stands
    assert f"{record.near[80]:,} of these sources are one substituted word away" in best.text
    by_pretraining = next(one for one in contrasts if "pretraining here beats" in one.text)
    assert "one seed" in by_pretraining.text
    assert "not another seed" in by_pretraining.text
    # A public checkpoint differs in everything: no conclusion about pretraining follows.
    public = next(
        one for one in contrasts if "No conclusion about pretrained elsewhere" in one.text
    )
    assert not public.stands
    assert [one.stands for one in contrasts] == sorted(
        (one.stands for one in contrasts), reverse=True
    )
    for setting in ("decoder", "tokenizer", "tuning", "steps"):
        assert f"{setting}: " in public.text
    # Which of the two translates better can be said, with all in which they differ.
    way = next(one for one in contrasts if "translates better than from scratch" in one.text)
    assert way.stands
    assert "which is better, not why" in way.text
    for setting in ("decoder", "tokenizer", "tuning", "steps"):
        assert setting in way.text


@pytest.fixture(scope="module")
def several(visitor: Path) -> StudySettings:
    """Two seeds, early stopping, a public checkpoint tuned in both ways and prompted."""
    elsewhere = {"model": str(visitor), "columns": 512, "sentences": 5, "rank": 2, "examples": 2}
    changes = {"sizes": (40,), "seeds": (2,), "early_stopping": True, "same_work": (40,)}
    tuned = {**elsewhere, "same_work": True, "full_sizes": (40,)}
    few = {"sentences": 6, "others": 2, "development": 2, "pretraining": {"steps": 60}}
    return study_settings(TINY, changes, few, {"elsewhere": tuned})


@pytest.fixture(scope="module")
def seeded(several: StudySettings, tmp_path_factory: pytest.TempPathFactory) -> TranslationStudy:
    return run_study(several, tmp_path_factory.mktemp("seeded"))


def test_every_seed_draws_other_pairs_for_all_arms_alike(seeded: TranslationStudy) -> None:
    corpus = read_study_corpus(study_settings(TINY))
    drawn = [set(corpus.first(40, draw).sources) for draw in (0, 1, 2)]
    assert drawn[0] != drawn[1] != drawn[2]
    assert set(corpus.first(20, 1).sources) <= drawn[1]
    assert [(arm.arm, len(arm.seeds)) for arm in seeded.arms] == [
        (SCRATCH, 2), (HERE, 2), (LONGER, 1), (ELSEWHERE, 2), (FULL, 1),
    ]  # fmt: skip
    for arm in seeded.arms:
        assert arm.seeds[0].bleu == arm.bleu
        assert len({one.run for one in arm.seeds}) == len(arm.seeds)
    seeds = {(one.arm, one.against): len(one.gains) for one in seeded.comparisons}
    assert seeds[HERE, SCRATCH] == seeds[ELSEWHERE, SCRATCH] == 2
    assert seeds[FULL, ELSEWHERE] == seeds[HERE, LONGER] == 1
    assert "2 seeds" in str(learned(seeded, scratch=30.0, here=39.0, elsewhere=39.0).conclusions)


def test_early_stopping_takes_the_look_with_the_lowest_loss(seeded: TranslationStudy) -> None:
    for arm in seeded.arms:
        assert arm.chosen == min(arm.curve, key=lambda point: (point.loss, point.step)).step
        # All steps were taken: the work of the whole training is what is counted.
        assert arm.curve[-1].step == arm.steps
        assert len(arm.curve) == 2
        assert all(one.bleu_last is not None for one in arm.seeds)
    run = Path(seeded.result(SCRATCH, 40).run)
    kept = load(run / "model").decoder.state_dict()
    chosen = safetensors.torch.load_file(run / "best.safetensors")
    # In the folder of a model queries and keys stand in another order.
    same = [name for name in chosen if "qkv" not in name and "_norm" not in name]
    assert same
    assert all(torch.equal(kept[name], chosen[name]) for name in same)


def test_a_later_look_is_kept_only_if_it_is_better(tmp_path: Path) -> None:
    def kept() -> torch.Tensor:
        return safetensors.torch.load_file(tmp_path / "best.safetensors")["embedding.weight"]

    decoder = Decoder(preset("tiny"), seed=0)
    # A killed run looks at step 20 again, and then goes on.
    looks = ((10, 3.0, 10), (20, 2.0, 20), (30, 2.5, 20), (20, 2.0, 20), (40, 2.0, 20))
    for step, loss, best in looks:
        with torch.no_grad():
            decoder.embedding.weight.fill_(step)
        keep_best(tmp_path, decoder, step, loss)
        assert torch.all(kept() == best)


def test_what_was_pretrained_elsewhere_takes_as_much_work(seeded: TranslationStudy) -> None:
    here = seeded.result(HERE, 40)
    for arm in (ELSEWHERE, FULL):
        found = seeded.result(arm, 40)
        assert abs(found.work - here.work) <= found.work / found.steps, arm
    longer = seeded.result(LONGER, 40)
    assert abs(longer.work - here.work) <= EQUAL_WORK * here.work
    # A frozen matrix needs no gradient of its own: LoRA reads more tokens for the same work.
    assert seeded.result(ELSEWHERE, 40).tokens > seeded.result(FULL, 40).tokens


def test_a_model_can_be_prompted_instead_of_trained(seeded: TranslationStudy) -> None:
    shown = seeded.prompted
    assert shown is not None
    assert (shown.examples, len(shown.seeds), shown.sentences) == (2, 2, 5)
    assert (ELSEWHERE, PROMPTED) in {(one.arm, one.against) for one in seeded.comparisons}
    written = "".join(str(block) for block in study_blocks(seeded))
    assert "only prompted" in written
    assert "Over seeds" in written


def test_interruptions_and_wild_clocks_change_nothing_but_times(
    several: StudySettings,
    seeded: TranslationStudy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw, real = random.Random(0), time.perf_counter
    # A machine on which every step takes another time, and the processor runs backwards.
    monkeypatch.setattr(time, "perf_counter", lambda: real() * draw.uniform(1, 9))
    monkeypatch.setattr(time, "process_time", lambda: -real() * draw.uniform(1, 9))
    for moment in ("here, 40 pairs: step 3", "elsewhere, 40 pairs, draw 2: step 4"):

        def stop(what: str, share: float, moment: str = moment) -> None:
            assert 0 <= share <= 1
            if what.startswith(moment):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_study(several, tmp_path, tell=stop)
    again = run_study(several, tmp_path)
    assert without_times(again.to_dict()) == without_times(seeded.to_dict())


def test_settings_that_differ_by_recipe_are_not_taken_for_pretraining(tmp_path: Path) -> None:
    unlike = {"fine_tuning": {**LEARNING, "learning_rate": 1e-3}}
    made = run_study(study_settings(TINY, {"sizes": (40,), "same_work": ()}, unlike), tmp_path)
    (found,) = learned(made, scratch=30.0, here=39.0).conclusions[1:]
    assert not found.stands
    assert "learning rate: 0.001 and 0.005" in found.text


def test_every_arm_translates_and_has_its_card(record: TranslationStudy) -> None:
    for arm in record.arms:
        run = Path(arm.run)
        made = list(Translator.open(run).translate(["Où est la gare ?", ""]))
        assert made[0].hypotheses
        assert made[1].text == ""
        assert "BLEU on" in (run / "MODEL_CARD.md").read_text("utf-8")


def test_the_section_tells_it(record: TranslationStudy) -> None:
    section = translation_section(record, 1.0)
    part = part_of(section, record)
    assert part.findings
    for word in ("pretrained here", "from scratch, same work", record.arms[0].signature):
        assert word in part.html
    assert all(example.source.split("'")[0] in part.html for example in record.worst)
    assert len(list(study_blocks(record))) > 4


def test_files_give_a_study_without_shared_sentences(tmp_path: Path) -> None:
    book = phrasebook(300, held_out=20)
    (tmp_path / "train.fr").write_text("".join(f"{pair.french}\n" for pair in book.train))
    (tmp_path / "train.en").write_text("".join(f"{pair.english}\n" for pair in book.train))
    files = (str(tmp_path / "train.fr"), str(tmp_path / "train.en"))
    made = read_study_corpus(study_settings(TINY, {"corpus": files}))
    held = {*made.test.sources, *made.development.sources}
    assert held.isdisjoint(made.train.sources)
    assert {text for known in made.test.references for text in known}.isdisjoint(made.train.targets)
    assert made.source_text is None

    with pytest.raises(InputError, match="ask for 5,000 pairs"):
        read_study_corpus(study_settings(TINY, {"corpus": files, "sizes": (40, 5000)}))
    with pytest.raises(InputError, match="not one corpus of pairs"):
        read_study_corpus(study_settings(TINY, {"corpus": files[:1]}))


def test_a_test_of_its_own_is_kept_from_training(tmp_path: Path) -> None:
    book = phrasebook(300, held_out=20)
    lines = [f"{pair.french}\t{pair.english}\n" for pair in book.train]
    (tmp_path / "train.tsv").write_text("".join(lines))
    (tmp_path / "test.tsv").write_text("".join(lines[:10]))
    paths = {"corpus": (str(tmp_path / "train.tsv"),), "test": (str(tmp_path / "test.tsv"),)}
    made = read_study_corpus(study_settings(TINY, paths))
    assert set(made.test.sources).isdisjoint(made.train.sources)
    assert any("left out" in note for note in made.notes)


def test_contradictions_are_refused_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "out")
    for words in (
        ["--sizes", "500", "200"],
        ["--test", "x.tsv"],
        ["--model", str(tmp_path / "nothing"), "--quick"],
        ["--monolingual", "one.txt"],
        ["--recipe", str(tmp_path / "none.toml")],
    ):
        assert main(["study", "translation", "--output", output, *words]) == 2, words
        assert capsys.readouterr().err.count("\n") == 1
    assert (
        not list((tmp_path / "out").rglob("checkpoints")) if (tmp_path / "out").exists() else True
    )
