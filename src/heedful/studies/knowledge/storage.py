"""How much is stored: accuracy against exposures, people, size, and ways of saying it.

Small trainings that differ in one thing each. The fine-tuning questions are mixed into the
documents, so that a decoder can be asked at any moment: one training gives a whole curve over
exposures. An exposure is one reading of one document about a person.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from heedful.model import Decoder, parameter_count
from heedful.records import Record
from heedful.stats import wilson
from heedful.studies.knowledge.answers import Answerer, answer_room
from heedful.studies.knowledge.corpus import Asked, embedded
from heedful.studies.knowledge.pipeline import Material, prepare, pretrain
from heedful.studies.knowledge.recipe import Recipe
from heedful.studies.knowledge.records import StoragePoint
from heedful.training.hooks import Evaluate, Report


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
