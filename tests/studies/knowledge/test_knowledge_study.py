"""The study as a whole: it goes on after an interruption, is shown, and can be asked."""

from __future__ import annotations

import json
import random
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_study import RECIPE, small_corpus, small_plan, small_study

from heedful.cli.main import main
from heedful.errors import InputError
from heedful.model import Decoder
from heedful.studies.conclusions import differences
from heedful.studies.knowledge.answers import SIGNALS, Answerer, sequence_probability
from heedful.studies.knowledge.asker import Asker
from heedful.studies.knowledge.findings import KnowledgeStudy
from heedful.studies.knowledge.knowledge_study import storage_point, study_knowledge
from heedful.studies.knowledge.plans import StoragePlan
from heedful.studies.knowledge.training import prepare, pretrain
from heedful.training import RunStoppedError
from heedful.training.hooks import Progress
from heedful.views.html import blocks_html
from heedful.views.knowledge import knowledge_section


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def record(folder: Path) -> KnowledgeStudy:
    return small_study(folder)


def test_the_record_has_every_arm_every_answer_and_every_signal(record: KnowledgeStudy) -> None:
    content = json.loads(record.to_json())
    assert [arm["arm"] for arm in content["arms"]][:3] == [
        "no pretraining", "pretraining", "pretraining, rotary",
    ]  # fmt: skip
    for arm in content["arms"]:
        assert arm["low"] <= arm["accuracy"] <= arm["high"]
        assert arm["minutes"] >= 0
    assert len(content["answers"]) == content["questions"]["test"] == len(small_corpus().test)
    assert set(content["answers"][0]["signals"]) == set(SIGNALS)
    assert {"labels", "auroc", "ece", "risk_coverage"} <= set(content)
    counted = sum(row["confident"] + row["unsure"] for row in content["labels"])
    assert counted == len(content["answers"])


def test_a_study_that_is_done_trains_nothing_again(record: KnowledgeStudy, folder: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in (folder / "runs").iterdir()}
    again = study_knowledge(small_corpus(), small_plan(), folder)
    after = {path.name: path.stat().st_mtime_ns for path in (folder / "runs").iterdir()}
    assert before.keys() == after.keys()
    assert [arm.seeds for arm in again.arms] == [arm.seeds for arm in record.arms]
    assert [one.answer for one in again.answers] == [one.answer for one in record.answers]


def test_clocks_that_run_wild_change_nothing_but_times(
    record: KnowledgeStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_times(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without_times(v) for name, v in value.items() if "minutes" not in name}
        return [without_times(one) for one in value] if isinstance(value, list) else value

    draw, real = random.Random(0), time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: real() * draw.uniform(1, 9))
    monkeypatch.setattr(time, "process_time", lambda: -real() * draw.uniform(1, 9))
    assert without_times(small_study(tmp_path).to_dict()) == without_times(record.to_dict())


def test_an_interrupted_study_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    material = prepare(small_corpus(), RECIPE)
    whole = pretrain(material, tmp_path / "whole", label="x", positions="rotary")

    def interrupt(progress: Progress) -> None:
        if progress.step == 1:
            import os
            import signal

            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(RunStoppedError) as stopped:
        pretrain(material, tmp_path / "cut", label="x", positions="rotary", report=interrupt)
    assert stopped.value.exit_code == 130
    again = pretrain(material, tmp_path / "cut", label="x", positions="rotary")

    assert again.folder.name == whole.folder.name
    weights = again.decoder().state_dict()
    for name, value in whole.decoder().state_dict().items():
        assert torch.equal(value, weights[name]), name
    assert again.seconds > 0


def test_signals_of_a_batch_are_those_of_each_question_alone() -> None:
    corpus = small_corpus()
    material = prepare(corpus, RECIPE)
    model = RECIPE.shape.config(material.tokenizer.size, RECIPE.context, "rotary")
    answerer = Answerer.of(Decoder(model, seed=0), material)
    asked = corpus.test[:5]
    replies = answerer.replies([one.question for one in asked])
    together = answerer.signals(asked, replies, samples=2, seed=0)

    for place, one in enumerate(asked):
        alone = answerer.replies([one.question])
        assert alone[0].tokens == replies[place].tokens
        found = answerer.signals([one], alone, samples=2, seed=0)
        for name in ("probability", "margin", "entropy", "attention"):
            np.testing.assert_allclose(
                found.values[name][0], together.values[name][place], rtol=1e-4, atol=1e-7
            )
        # Token by token, without a batch: the oracle of the sequence probability.
        tokens = answerer.prompts([one.question])[0]
        total = 0.0
        for token in replies[place].tokens:
            scores = answerer.decoder(torch.tensor([tokens]))[0, -1].double().log_softmax(-1)
            total += float(scores[token].detach())
            tokens = [*tokens, token]
        probability = sequence_probability(together.logits, replies)[place]
        np.testing.assert_allclose(np.log(probability), total, rtol=1e-4, atol=1e-5)
    assert (together.values["attention"] <= 1.0 + 1e-9).all()
    assert answerer.name_states(asked).shape == (5, 32)


def test_a_storage_curve_has_as_many_points_as_asked(tmp_path: Path) -> None:
    plan = StoragePlan(people=(40,), widths=(16,), exposures=1, evaluations=2)
    case = next(iter(plan.cases()))
    point = storage_point(case, RECIPE.changed(questions_mixed=1), plan, tmp_path, seed=0)
    assert len(point.exposures) >= 2
    assert point.exposures[-1] == pytest.approx(3, abs=0.6)
    assert all(low <= share <= high for low, share, high in
               zip(point.low, point.accuracy, point.high, strict=True))  # fmt: skip


def test_the_section_tells_the_record_in_markup_of_its_own(record: KnowledgeStudy) -> None:
    html = blocks_html([knowledge_section(record, 1.0)])
    assert html.count("<svg") == html.count("</svg>") >= 4
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", html, flags=re.S).lower().split()


def test_asking_gives_an_answer_or_none_with_evidence(record: KnowledgeStudy, folder: Path) -> None:
    corpus = small_corpus()
    asker = Asker(folder)
    seen = next(one for one in corpus.test if one.seen)
    tuned = next(one for one in corpus.train if not one.seen)
    first, second, third = asker.ask(
        [seen.question, tuned.question, "Where was Nobody Atall born?"]
    )
    assert first.evidence is not None
    assert seen.name in first.evidence
    assert second.evidence is None
    assert second.fine_tuned_answer == tuned.answer
    assert third.evidence is third.fine_tuned_answer is None
    assert set(third.nearest) == {"edits", "tokens", "hidden"}
    by_name = {one.name: one for one in record.answers}
    assert first.would_say == by_name[seen.name].answer
    assert first.confidence == pytest.approx(by_name[seen.name].confidence, rel=1e-3, abs=1e-9)
    for reply in (first, second, third):
        assert (reply.answer is None) == (reply.confidence < reply.threshold)


def test_what_is_kept_for_asking_holds_no_answer_of_the_test(
    record: KnowledgeStudy, folder: Path
) -> None:
    kept = folder / record.run
    corpus = small_corpus()
    asked = {one.name: one.answer for one in (*corpus.held_out, *corpus.test)}
    for path in kept.glob("*.tsv"):
        lines = path.read_text("utf-8").splitlines()
        assert not [line for line in lines if any(name in line for name in asked)], path.name
    people = (kept / "people.txt").read_text("utf-8").splitlines()
    assert set(people) == set(corpus.known_people)
    assert not any("\t" in line for line in people)


def test_conclusions_compare_like_with_like_and_a_trial_concludes_nothing(
    record: KnowledgeStudy,
) -> None:
    arms = {arm.arm: arm for arm in record.arms}
    one, other = arms["pretraining"], arms["no pretraining"]
    assert differences(one.settings, other.settings) == ("pretraining",)
    assert differences(arms["pretraining, rotary"].settings, one.settings) == ("positions",)
    first = record.conclusions[0]
    assert not first.stands
    assert "commonest place" in first.text
    known = tuple(
        replace(arm, accuracy=share, low=share - 0.05, high=share + 0.05)
        for arm, share in ((other, 0.28), (one, 0.72), (arms["pretraining, rotary"], 0.88))
    )
    rest = tuple(
        arm for arm in record.arms if arm.kind == "baseline" and arm.arm != "most frequent"
    )
    said = replace(record, arms=(*known, *rest)).conclusions
    assert said[0].stands
    assert "72 % against 28 %" in said[0].text
    assert "88 % against 72 %" in said[1].text
    assert not any("88 % against 28 %" in one.text for one in said)
    seen = replace(record, arms=(*known, *rest), test_questions=494).conclusions[0]
    assert "494 of the test questions stand word for word" in seen.text
    # With another fine-tuning the two differ in two things, and nothing is concluded.
    tuned = {**other.settings, "fine-tuning epochs": 20.0}
    unlike = replace(record, arms=(replace(known[0], settings=tuned), *known[1:], *rest))
    assert not unlike.conclusions[0].stands


@pytest.mark.parametrize(
    "question",
    ["", "   ", "x" * 100_000, "Where was ⁇ born?", "Where was " + "Ab " * 200 + "born?"],
)
def test_what_cannot_be_asked_is_refused(
    record: KnowledgeStudy, folder: Path, question: str
) -> None:
    with pytest.raises(InputError):
        Asker(folder).ask([question])


def test_the_verb_answers_in_words_and_in_json(
    record: KnowledgeStudy, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = record.answers[0].question
    assert main(["ask", str(folder), question]) == 0
    assert "confidence" in capsys.readouterr().out
    file = tmp_path / "questions.txt"
    file.write_text(f"{question}\n\nWhere was Ωμέγα 漢字 born?\n", encoding="utf-8")
    assert main(["ask", str(folder), "--file", str(file), "--json"]) == 0
    replies = json.loads(capsys.readouterr().out)["replies"]
    assert len(replies) == 2
    assert replies[0]["question"] == question


def test_a_folder_of_something_else_is_refused_in_one_line(
    record: KnowledgeStudy, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = next(path for path in (folder / "runs").iterdir() if "pretrain" in path.name)
    (tmp_path / "knowledge.json").write_text('{"run": "../../etc"}')
    for path in (tmp_path / "missing", tmp_path, other):
        assert main(["ask", str(path), "Where was Ann Lee born?"]) == 2
    said = capsys.readouterr().err.strip().split("\n")
    assert len(said) == 3


def test_flags_that_disagree_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = ["--output", str(tmp_path / "x")]
    for flags in (
        ["--pretrain", "a.txt"],
        ["--steps", "-2"],
        ["--error-rate", "2"],
        ["--seeds", "0"],
    ):
        assert main(["study", "knowledge", *flags, *output]) == 2
    assert not (tmp_path / "x").exists()
    assert len(capsys.readouterr().err.strip().split("\n")) == 4
