"""How accuracy grows with the time spent on pretraining.

Where training questions are mixed into the text a decoder can be asked at any time. It is asked
the test and the held-out questions some times on the way; nothing is chosen by what it says. The
time that asking takes is not counted.

Two clocks run: minutes as they pass, and minutes in which a processor worked for this process.
On a machine that does other things as well only the second can be compared. Both begin again where
a stopped training goes on: the stretch in which that happened is counted at the speed before it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from heedful.model import Decoder
from heedful.studies.knowledge.answers import Answerer, answer_room
from heedful.studies.knowledge.corpus import Asked
from heedful.studies.knowledge.pipeline import Material
from heedful.studies.knowledge.records import CurvePoint
from heedful.training.hooks import Evaluation

CLOCKS = ("minutes", "processor_minutes")
WORKED = "processor_minutes"


class CurveWatch:
    """An `evaluate` callable that asks; the clocks run from when it is made."""

    def __init__(self, material: Material) -> None:
        self.material = material
        self.room = answer_room(material.tokenizer, material.corpus.train)
        self.begun = _clocks()

    def __call__(self, decoder: Decoder, _step: int) -> dict[str, float]:
        """Return accuracies and times."""
        now = _clocks()
        wall, worked = now[0] - self.begun[0], now[1] - self.begun[1]
        answerer = Answerer(decoder, self.material.tokenizer, self.room)
        corpus = self.material.corpus
        found = {
            "minutes": wall / 60,
            "processor_minutes": worked / 60,
            "accuracy": _accuracy(answerer, corpus.test),
            "held_out_accuracy": _accuracy(answerer, corpus.held_out),
        }
        after = _clocks()
        self.begun = (self.begun[0] + after[0] - now[0], self.begun[1] + after[1] - now[1])
        return found


def curve_of(evaluations: Sequence[Evaluation]) -> tuple[CurvePoint, ...]:
    """Return the curve that a watched pretraining left in its run, over all interruptions."""
    made: list[CurvePoint] = []
    offsets = dict.fromkeys(CLOCKS, 0.0)
    shown = dict.fromkeys(CLOCKS, 0.0)
    for one in evaluations:
        if not set(CLOCKS) <= set(one.values):
            continue
        if made and one.values[WORKED] < shown[WORKED]:
            for clock in CLOCKS:
                before = getattr(made[-1], clock)
                expected = before + (one.step - made[-1].step) * before / made[-1].step
                offsets[clock] = expected - one.values[clock]
        shown = {clock: one.values[clock] for clock in CLOCKS}
        times = {clock: offsets[clock] + shown[clock] for clock in CLOCKS}
        made.append(CurvePoint(step=one.step, **{**one.values, **times}))
    return tuple(made)


def _accuracy(answerer: Answerer, asked: Sequence[Asked]) -> float:
    replies = answerer.replies([one.question for one in asked])
    right = sum(reply.text == one.answer for one, reply in zip(asked, replies, strict=True))
    return right / max(len(asked), 1)


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()
