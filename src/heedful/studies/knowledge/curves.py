"""How accuracy grows while a decoder reads: over time, and over how often a fact was read.

Where training questions are mixed into the text, a decoder can be asked at any time. It is asked
some times on the way; nothing is chosen by what it says.

The learning curve of an arm asks the test and the held-out questions. Two clocks run: minutes as
they pass, and minutes in which a processor worked for this process; the time that asking takes is
not counted. On a machine that does other things as well only the second can be compared. Both begin
again when a stopped training is resumed: the stretch in which that happened is counted at the speed
before it.

Storage is accuracy against exposures, people, size, and ways of saying it, in small trainings that
differ in one thing each. An exposure is one reading of one document about a person.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.model import Decoder, parameter_count
from heedful.records import Record
from heedful.stats import wilson
from heedful.studies.knowledge.answers import Answerer, answer_room
from heedful.studies.knowledge.corpus import Asked, embedded
from heedful.studies.knowledge.findings import CurvePoint, StoragePoint
from heedful.studies.knowledge.recipe import Recipe
from heedful.studies.knowledge.training import Material, prepare, pretrain
from heedful.training.hooks import Evaluate, Evaluation, Report

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


@dataclass(frozen=True, eq=False, kw_only=True)
class StorageCase(Record):
    """One small training."""

    series: str
    """What is varied."""
    label: str
    """Its value in words."""
    people: int
    """People, seen or not."""
    phrasings: int
    """Ways in which each birth place is said."""
    width: int
    """Of the decoder."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StoragePlan:
    """Which small trainings are made, around one of them."""

    people: tuple[int, ...]
    """Numbers of people; the second one is that of all other cases."""
    widths: tuple[int, ...]
    """Widths of the decoder; the last one is that of all other cases."""
    exposures: int
    """Documents about each seen person."""
    evaluations: int
    """Points of a curve."""

    def cases(self) -> Iterator[StorageCase]:
        """Yield the cases; the one in the middle of all series comes once."""
        usual = self.people[min(1, len(self.people) - 1)]
        widest = self.widths[-1]
        for people in self.people:
            yield StorageCase(series="people", label=f"{people} people", people=people,
                              phrasings=self.exposures, width=widest)  # fmt: skip
        for width in self.widths[:-1]:
            yield StorageCase(series="width", label=f"width {width}", people=usual,
                              phrasings=self.exposures, width=width)  # fmt: skip
        yield StorageCase(series="phrasings", label="one phrasing", people=usual, phrasings=1,
                          width=widest)  # fmt: skip


def storage_point(
    case: StorageCase,
    recipe: Recipe,
    plan: StoragePlan,
    folder: Path,
    *,
    seed: int,
    report: Report | None = None,
) -> StoragePoint:
    """Train one case and return its curve."""
    corpus = embedded(case.people, seed=seed, phrasings=case.phrasings, exposures=plan.exposures)
    heads = recipe.shape.heads
    shape = recipe.shape.changed(width=case.width, heads=min(heads, max(case.width // 16, 1)))
    material = prepare(corpus, recipe.changed(shape=shape), seed=seed)
    asked = tuple(one for one in corpus.test if one.seen)
    trained = pretrain(
        material,
        folder,
        label=f"storage-{case.series}-{case.label.replace(' ', '-')}",
        positions="rotary",
        seed=seed,
        report=report,
        evaluate=accuracy_on(asked, material),
        evaluations=plan.evaluations,
    )
    # One epoch reads each document once in every corruption.
    per_epoch = plan.exposures * (recipe.variants if recipe.objective == "spans" else 1)
    points = [
        (one.step / len(material.documents) * per_epoch, one.values["accuracy"])
        for one in trained.evaluations
    ]
    limits = [wilson(round(share * len(asked)), len(asked)) for _, share in points]
    return StoragePoint(
        series=case.series,
        label=case.label,
        people=sum(one.seen for one in (*corpus.train, *corpus.held_out, *corpus.test)),
        parameters=parameter_count(trained.decoder.config),
        exposures=tuple(exposures for exposures, _ in points),
        accuracy=tuple(share for _, share in points),
        low=tuple(low for low, _ in limits),
        high=tuple(high for _, high in limits),
        minutes=trained.seconds / 60,
    )


def accuracy_on(asked: tuple[Asked, ...], material: Material) -> Evaluate:
    """Return a callable that gives the share of right answers to some questions."""
    room = answer_room(material.tokenizer, material.corpus.train)

    def evaluate(decoder: Decoder, _step: int) -> dict[str, float]:
        answerer = Answerer(decoder, material.tokenizer, room)
        replies = answerer.replies([one.question for one in asked])
        right = sum(reply.text == one.answer for reply, one in zip(replies, asked, strict=True))
        return {"accuracy": right / max(len(asked), 1)}

    return evaluate
