"""A model that others have trained: asked in several wordings, calibrated, and under a promise."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from model_of_bytes import model_of_bytes

from heedful.errors import InputError
from heedful.studies.knowledge import pretrained
from heedful.studies.knowledge.asker import can_be_opened_as_model
from heedful.studies.knowledge.findings import (
    KNOWN,
    UNCALIBRATED,
    UNKNOWN,
    UNSURE,
    ModelCalibration,
)
from heedful.studies.knowledge.pretrained import (
    EXAMPLES,
    LONGEST_ANSWER,
    WORDINGS,
    Calibrated,
    Heard,
    PretrainedAsker,
)
from heedful.studies.knowledge.questions import LEVELS, all_questions, questions_of, shares
from heedful.views.knowledge import model_calibration_blocks, model_replies_blocks
from heedful.views.terminal import written


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_of_bytes(tmp_path_factory.mktemp("models") / "bytes")


@pytest.fixture(scope="module")
def asker(folder: Path) -> PretrainedAsker:
    return PretrainedAsker(folder)


def test_an_answer_has_the_probability_that_the_decoder_gives_it(asker: PretrainedAsker) -> None:
    question = "What is the capital of Peru?"
    (heard,) = asker.hear([question])
    row = asker.tokenizer.encode_opened(pretrained._prompt(0, question))
    total, weakest = 0.0, 0.0
    decoder = asker.checkpoint.decoder()
    for _ in range(LONGEST_ANSWER):
        with torch.no_grad():
            logs = decoder(torch.tensor([row]))[0, -1].log_softmax(-1)
        token = int(logs.argmax())
        total, weakest = total + float(logs[token]), min(weakest, float(logs[token]))
        row = [*row, token]
        if "\n" in asker.tokenizer.core.decode([token]):
            break
    assert heard.signals["probability"] == pytest.approx(math.exp(total), rel=1e-3)
    assert heard.signals["weakest"] == pytest.approx(math.exp(weakest), rel=1e-3)


def test_familiarity_is_the_mean_surprise_of_the_question(asker: PretrainedAsker) -> None:
    question = "Who wrote Hamlet?"
    (heard,) = asker.hear([question])
    row = asker.tokenizer.encode_opened(pretrained._before(0) + question)
    asked = len(asker.tokenizer.encode(" " + question))  # a byte is a token; one is the space
    with torch.no_grad():
        logs = asker.checkpoint.decoder()(torch.tensor([row]))[0].log_softmax(-1)
    places = range(len(row) - asked, len(row))
    mean = sum(float(logs[place - 1, row[place]]) for place in places) / asked
    assert heard.signals["familiarity"] == pytest.approx(math.exp(mean), rel=1e-3)


def test_questions_asked_together_get_the_answers_they_get_alone(asker: PretrainedAsker) -> None:
    questions = ["Who?", "What is the capital of Burkina Faso?", "Which river flows through Bern?"]
    together = asker.hear(questions)
    for question, heard in zip(questions, together, strict=True):
        (alone,) = asker.hear([question])
        assert alone.answers == heard.answers
        assert alone.signals == pytest.approx(heard.signals, rel=1e-3)
    assert asker.answers(questions) == [heard.answer for heard in together]


def test_no_example_is_one_of_the_questions() -> None:
    assert not {asked for asked, _ in EXAMPLES} & {one.text for one in all_questions()}
    assert all("{q}" in wording for wording, _ in WORDINGS)


def test_agreement_is_about_what_is_said_and_not_how() -> None:
    heard = pretrained._heard(
        "Which river?",
        [("the Nile", (-0.5, -0.1)), ("Nile.", (-1.0,)), ("NILE", (-2.0,)), ("Po", (-0.1,))],
        familiarity=0.5,
    )
    assert heard.answer == "the Nile"
    assert heard.signals["agreement"] == pytest.approx(2 / 3)
    assert heard.signals["support"] == pytest.approx((math.exp(-1) + math.exp(-2)) / 3)


@pytest.mark.parametrize(("answer", "says"), [("Peru", False), ("", False), ("Lima, Peru", True)])
def test_who_repeats_the_question_has_said_nothing(answer: str, says: bool) -> None:
    signals = dict.fromkeys(pretrained.SIGNALS, 1.0)
    heard = Heard(question="What is the capital of Peru?", answers=(answer,), signals=signals)
    assert heard.says_something == says
    calibrated, _ = _found(0)
    assert (calibrated.confidence([heard])[0] > 0) == says


def _answers(seed: int) -> list[Heard]:
    """Answers of a model that knows the well known, and is often sure of what does not exist."""
    draw = np.random.default_rng(seed)
    heard = []
    for one in questions_of("calibration") + questions_of("test"):
        knows = draw.random() < {1: 0.95, 2: 0.6, 3: 0.2, 0: 0.0}[one.level]
        sure = 0.6 + 0.4 * draw.random() if knows or draw.random() < 0.05 else 0.6 * draw.random()
        heard.append(
            Heard(
                question=one.text,
                answers=(one.answers[0] if knows else "Gurkenland",),
                signals=dict.fromkeys(pretrained.SIGNALS, float(sure)),
            )
        )
    return heard


def _found(seed: int) -> tuple[Calibrated, dict]:
    heard, held_out = _answers(seed), questions_of("calibration")
    calibrated = pretrained._calibrated(held_out, heard[: len(held_out)])
    return calibrated, pretrained._tested(
        calibrated, questions_of("test"), heard[len(held_out) :], 0.2
    )


def test_a_calibrated_model_keeps_its_promise_and_drift_breaks_it() -> None:
    calibrated, found = _found(0)
    made = calibrated.promise(0.2)
    assert made.threshold is not None
    assert made.choosing + made.testing == len(questions_of("calibration"))
    levels = {one.level: one for one in found["levels"]}
    answered = sum(one.known for one in levels.values())
    assert sum(one.known_wrong for one in levels.values()) / answered <= 0.2
    invented = levels[LEVELS[0]]
    assert invented.right == 0
    assert invented.known_wrong == invented.known
    errors = [one.error for one in found["drift"]]
    assert errors == sorted(errors)  # the more does not exist, the more is wrong
    assert calibrated.population == shares(questions_of("calibration"))


def test_labels_follow_the_thresholds() -> None:
    calibrated, found = _found(1)
    known, unsure = calibrated.promise(0.2), calibrated.promise(0.5)
    assert known.threshold is not None
    assert unsure.threshold is not None
    assert unsure.threshold <= known.threshold
    for one in found["answers"]:
        above = (one.confidence >= known.threshold, one.confidence >= unsure.threshold)
        assert one.label == {(True, True): KNOWN, (False, True): UNSURE}.get(above, UNKNOWN)


def test_a_calibration_is_kept_and_found_again(
    asker: PretrainedAsker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert asker.calibration() is None
    calibrated, _ = _found(2)
    kept = asker.keep(calibrated)
    assert asker.calibration() == calibrated
    kept.write_text("{damaged")
    assert asker.calibration() is None
    asker.keep(calibrated.changed(wordings="of another version"))
    assert asker.calibration() is None


def test_without_a_calibration_nothing_is_called_known(asker: PretrainedAsker) -> None:
    replies = asker.ask(["What is the capital of Peru?"], None)
    assert replies.known is None
    assert replies.replies[0].label in (UNCALIBRATED, UNKNOWN)  # none is invented
    assert replies.replies[0].confidence is None


def test_with_one_the_reply_stands_under_it(asker: PretrainedAsker) -> None:
    calibrated, _ = _found(3)
    replies = asker.ask(["What is the capital of Peru?", "Who wrote Hamlet?"], calibrated)
    assert replies.known is not None
    for reply in replies.replies:
        assert len(reply.wordings) == len(WORDINGS)
        assert (reply.answer is None) == (reply.label == UNKNOWN)
        assert 0 <= reply.confidence <= 1  # type: ignore[operator]


@pytest.mark.parametrize("question", ["", "  ", "x" * 501])
def test_what_cannot_be_asked_is_refused(asker: PretrainedAsker, question: str) -> None:
    with pytest.raises(InputError, match="question 2"):
        asker.hear(["Who?", question])


def test_what_is_taken_for_a_model(folder: Path, tmp_path: Path) -> None:
    assert can_be_opened_as_model(folder)
    assert can_be_opened_as_model(Path("smollm2"))
    (tmp_path / "config.json").write_text("{}")
    assert can_be_opened_as_model(tmp_path)
    (tmp_path / "ask.json").write_text("{}")
    assert not can_be_opened_as_model(tmp_path)
    assert not can_be_opened_as_model(tmp_path / "nothing")


def test_promises_and_refusals_are_said_in_words(asker: PretrainedAsker) -> None:
    calibrated, found = _found(0)
    made = ModelCalibration(
        model="m",
        sha256="0" * 64,
        population=calibrated.population,
        known=calibrated.promise(0.2),
        unsure=calibrated.promise(0.5),
        seconds=1.0,
        **found,
    )
    shown = " ".join(written(model_calibration_blocks(made)).split())
    assert "at most 20 % are wrong, at 95 % confidence" in shown
    assert "Observed on the test:" in shown
    assert "does not exist" in shown
    refused = calibrated.promise(0.01)
    assert refused.threshold is None
    replies = replace(asker.ask(["Who?"], calibrated), known=refused)
    shown = " ".join(written(model_replies_blocks(replies)).split())
    assert "No promise that at most 1.0 % of the answers called known are wrong" in shown
    assert "This holds for questions like those of the calibration" in shown
