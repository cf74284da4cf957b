"""What a study of translation ends in, and what can be concluded from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heedful.records import Record
from heedful.stats import Estimate
from heedful.studies.conclusions import (
    EQUAL_WORK,
    Basis,
    Conclusion,
    Contrast,
    Floor,
    Measurement,
    Side,
    Study,
    differences,
)
from heedful.studies.translation.attribution import Alignment

SCRATCH, LONGER, HERE, ELSEWHERE = "scratch", "scratch, same work", "here", "elsewhere"
"""The arms: on the pairs alone; the same with as many operations as `here` takes in all;
pretrained here as a language model; pretrained by others."""
FULL, PROMPTED = "elsewhere, all", "elsewhere, prompted"
"""Two more of what others pretrained: all weights tuned beside LoRA; not tuned at all."""
LEAST_BLEU = 2.0
"""Below it a score is the smoothing of sacreBLEU and a few right words by chance."""
LABELS = {
    SCRATCH: "from scratch",
    LONGER: "from scratch, same work",
    HERE: "pretrained here",
    ELSEWHERE: "pretrained elsewhere",
    FULL: "pretrained elsewhere, all weights tuned",
    PROMPTED: "pretrained elsewhere, only prompted",
}
"""How the arms are called in sentences."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Scored(Record):
    """How good translations are, by sacreBLEU, with the 95 % interval of a bootstrap."""

    sentences: int
    """How many were judged."""
    bleu: float
    bleu_low: float
    bleu_high: float
    exact: float
    """Share of the translations that are a reference, letter by letter."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Slice(Scored):
    """The scores of a part of the sentences."""

    name: str
    """Which part."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Scores(Scored):
    """Scores by both measures of sacreBLEU, and how they were computed."""

    chrf: float
    chrf_low: float
    chrf_high: float
    signature: str
    """How BLEU was computed, as sacreBLEU writes it."""
    chrf_signature: str


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingPoint(Record):
    """How far a training was at one moment."""

    step: int
    work: float
    """Operations until then; what came before (pretraining) is counted."""
    minutes: float
    """Of training, evaluations not counted; what came before (pretraining) is counted."""
    loss: float
    """Mean loss of a target token of the development sentences."""
    bleu: float | None
    """Of a few development sentences; None where none were translated."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SampleTranslation(Record):
    """One development sentence, as it was translated in the course of a training."""

    source: str
    reference: str
    translations: dict[int, str]
    """By the number of steps."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SeedScore(Record):
    """One training of an arm: another draw of the pairs, other first weights where they are new."""

    seed: int
    bleu: float
    chrf: float
    loss: float | None
    """Lowest on the development sentences; None where nothing was trained."""
    steps: int
    chosen: int
    """The step whose weights were taken."""
    bleu_last: float | None
    """BLEU of the weights after the last step; None where nothing was trained."""
    work: float
    """Operations of training in all."""
    run: str
    """Its folder; none where nothing was trained."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PromptedResult(Scores):
    """A public checkpoint that was not trained: examples of the pairs stand before each source.

    The scores are those of the first draw of examples.
    """

    model: str
    label: str
    examples: int
    seeds: tuple[SeedScore, ...]
    """Every draw of examples."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ArmResult(Scores):
    """One arm at one number of pairs, on the test sentences: its first training."""

    arm: str
    """`scratch`, `scratch, same work`, `here`, `elsewhere` or `elsewhere, all`."""
    label: str
    """The same in words."""
    pairs: int
    """Training pairs."""
    settings: dict[str, Any]
    """All that decided it, beside the corpus."""
    work: float
    """Operations of training in all: tokens read times the operations of a token."""
    work_before: float
    """The part of them that went into pretraining here."""
    minutes: float
    """Of training in all: pretraining here and training on the pairs, without evaluations, by the
    clock. What is trained here has one core to itself at best, and others beside it."""
    minutes_before: float
    """The part of them that went into pretraining here."""
    gain: float | None
    """BLEU above scratch with as many pairs, on the same sentences, over all seeds that both have;
    None for scratch itself."""
    p_value: float | None
    """Of that gain, as in `Comparison`."""
    steps: int
    chosen: int
    """The step whose weights were taken: the last, or that of early stopping."""
    epochs: float
    """Passes over the pairs."""
    tokens: int
    """Read while training on the pairs."""
    parameters: int
    trained: int
    """Parameters that were changed on the pairs: fewer with LoRA."""
    computed_as: str
    """Precision and lanes."""
    by_length: tuple[Slice, ...]
    """By the number of words in the source."""
    by_unseen: tuple[Slice, ...]
    """By the number of source words that the training pairs do not hold."""
    splits: tuple[Slice, ...]
    """Other test sets: longer than training, and known words in new combinations."""
    curve: tuple[TrainingPoint, ...]
    """How it went during training."""
    samples: tuple[SampleTranslation, ...]
    sentences_per_second: float
    """Speed of translating the tests, greedy: on one core if it was trained here, else on all."""
    run: str
    """Its folder."""
    seeds: tuple[SeedScore, ...]
    """Every training of the arm with so many pairs, the first one too."""

    @property
    def mean(self) -> float:
        """BLEU, the mean over seeds."""
        return sum(one.bleu for one in self.seeds) / len(self.seeds)

    @property
    def last_mean(self) -> float:
        """BLEU of the weights after the last step, the mean over seeds."""
        return sum(one.bleu_last or 0.0 for one in self.seeds) / len(self.seeds)


@dataclass(frozen=True, eq=False, kw_only=True)
class BaselineResult(Scores):
    """Something that is no network, on the same test."""

    baseline: str
    """`copy`, `dictionary` or `nearest`."""
    pairs: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison(Record):
    """One arm against another with as many pairs, on the same sentences."""

    pairs: int
    arm: str
    against: str
    gain: float
    """BLEU of the arm above that of the other, the mean over seeds."""
    gain_low: float
    """Lower end of its 95 % interval: a paired bootstrap over the test sentences; with several
    seeds it is widened by Student's interval over these (the root of the sum of squares)."""
    gain_high: float
    """Upper end."""
    p_value: float
    """Two-sided, of the bootstrap over test sentences; of several seeds the largest."""
    gains: tuple[float, ...]
    """Of each seed that both arms have."""
    bleu: float
    """Of the arm on these sentences, the mean over these seeds."""
    bleu_against: float
    sentences: int
    work: float
    """Operations of training the arm in all."""
    work_against: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Example(Record):
    """One test sentence and what each arm made of it."""

    source: str
    references: tuple[str, ...]
    translations: dict[str, str]
    """By arm, at the largest number of pairs that the arm has seen."""
    chrf: float
    """Of the arm that is judged."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TranslationStudy(Study):
    """The comparison."""

    corpus: str
    languages: tuple[str, str]
    fingerprint: str
    """SHA-256 of the training pairs."""
    near: dict[int, int]
    """For each number of pairs: test sources that are one substituted word away from a training
    source."""
    arms: tuple[ArmResult, ...]
    prompted: PromptedResult | None
    """The public checkpoint without training; None where it was not asked."""
    comparisons: tuple[Comparison, ...]
    """Every paired test."""
    baselines: tuple[BaselineResult, ...]
    best: tuple[Example, ...]
    """The 20 best translations of the best arm, side by side with the others'."""
    worst: tuple[Example, ...]
    """The 20 worst."""
    judged: str
    """The arm whose translations were sorted."""
    alignment: Alignment | None
    """Which source words each word of one exact translation of that arm attended to."""
    unequal: tuple[str, ...]
    """What is not equal between the arms."""
    settings: dict[str, Any]
    """Everything that decided the study."""
    command: str
    """Gives it again."""
    minutes: float
    """Of the whole study, evaluations and all; arms that were at hand cost nothing."""
    machine: str
    elsewhere: str
    """How the third arm can be had, where it is not in the study."""
    everyday: tuple[Example, ...] = ()
    """Everyday sentences, as the best arm and the translator of the package have them."""

    @property
    def conclusions(self) -> tuple[Conclusion, ...]:
        """How good the best arm is, and for each number of pairs what pretraining was worth.

        What cannot be concluded comes last.
        """
        found = sorted(self.comparisons, key=lambda c: (c.pairs, c.against, c.arm))
        causes = [c for c in found if c.arm == HERE or (c.arm, c.against) == (ELSEWHERE, SCRATCH)]
        ways = [c for c in found if c.arm in (ELSEWHERE, FULL)]
        several = (
            self._best(),
            *(self._contrast(one).conclude() for one in causes),
            *(self._way(one).conclude() for one in ways),
        )
        return tuple(sorted(several, key=lambda one: not one.stands))

    @property
    def floor(self) -> Floor:
        """The BLEU below which nothing is concluded: no better than copying the source."""
        copied = [row.bleu_high for row in self.baselines if row.baseline == "copy"]
        return Floor(
            least=max(LEAST_BLEU, *copied),
            why="below it are copies of the source and the smoothing of the score",
        )

    def result(self, arm: str, pairs: int) -> ArmResult:
        """Return an arm with so many pairs."""
        return next(one for one in self.arms if (one.arm, one.pairs) == (arm, pairs))

    def _best(self) -> Conclusion:
        best = max(self.arms, key=lambda one: one.bleu)
        near = self.near.get(best.pairs, 0)
        return Measurement(
            about=f"how well a decoder translates after {best.pairs:,} pairs",
            said=f"{best.label.capitalize()}, a decoder of {best.parameters:,} parameters reaches "
            f"{{value}} on sentences of the {self.corpus} that were not in its {best.pairs:,} "
            f"pairs; {near:,} of these sources are one substituted word away from a training "
            f"source, and {best.exact:.0%} of the translations are exact",
            estimate=Estimate(
                value=best.bleu, low=best.bleu_low, high=best.bleu_high, count=best.sentences
            ),
            basis=Basis(cases=best.sentences, of="test sentences"),
            show=_bleu,
            floor=self.floor,
        ).conclude()

    def _contrast(self, found: Comparison) -> Contrast:
        one, other = self._sides(found)
        counted = f"With {found.pairs:,} pairs"
        equal = found.against == LONGER
        subject = f"{LABELS[found.arm]} against {LABELS[found.against]}"
        ahead = "pretraining here" if found.arm == HERE else "pretraining elsewhere"
        given = ", given the same work," if equal else ""
        cost = "" if equal else ", at the price of the work before"
        return Contrast(
            about=f"{subject} with {found.pairs:,} pairs",
            one=one,
            other=other,
            differ="pretraining",
            follows=("steps",) if equal else (),
            difference=_difference(found),
            basis=_basis(found),
            higher=f"{counted}{given} {ahead} beats training from scratch{cost}",
            lower=f"{counted}{given} training from scratch beats {ahead}",
            same=f"{counted}{given} {ahead} and training from scratch cannot be told apart",
            show=_bleu,
            floor=self.floor,
            equal_work=equal,
        )

    def _way(self, found: Comparison) -> Contrast:
        """Compare two ways to a translator that differ in more than one thing, as they are."""
        one, other = self._sides(found)
        unlike = differences(one.settings, other.settings)
        close = one.work and other.work and abs(one.work - other.work) <= EQUAL_WORK * one.work
        counted = f"With {found.pairs:,} pairs" + (" and as much work" if close else "")
        why = f" (they differ in {', '.join(unlike)}: which is better, not why)".replace("_", " ")
        return Contrast(
            about=f"{one.name} and {other.name} with {found.pairs:,} pairs",
            one=one,
            other=other,
            differ=unlike[0] if unlike else "nothing",
            follows=unlike,
            difference=_difference(found),
            basis=_basis(found),
            higher=f"{counted}, the arm {one.name} translates better than {other.name}{why}",
            lower=f"{counted}, the arm {one.name} translates worse than {other.name}{why}",
            same=f"{counted}, the arms {one.name} and {other.name} cannot be told apart{why}",
            show=_bleu,
            floor=self.floor,
        )

    def _sides(self, found: Comparison) -> tuple[Side, Side]:
        """Return both sides, with what they reach on the sentences that both translated."""
        return (
            self._side(found.arm, found.pairs, found.bleu, found.work),
            self._side(found.against, found.pairs, found.bleu_against, found.work_against),
        )

    def _side(self, arm: str, pairs: int, bleu: float, work: float) -> Side:
        if arm == PROMPTED:
            assert self.prompted is not None
            decided: dict[str, Any] = {
                "decoder": self.prompted.model,
                "tuning": f"none, {self.prompted.examples} examples in the prompt",
            }
            name = f"{LABELS[arm]} with {self.prompted.examples}"
            return Side(name=name, value=bleu, settings=decided, work=None)
        settings = self.result(arm, pairs).settings
        return Side(name=LABELS[arm], value=bleu, settings=settings, work=work)


def _difference(found: Comparison) -> Estimate:
    return Estimate(
        value=found.gain, low=found.gain_low, high=found.gain_high, count=found.sentences
    )


def _basis(found: Comparison) -> Basis:
    return Basis(cases=found.sentences, of="test sentences", seeds=len(found.gains))


def _bleu(value: float) -> str:
    return f"{value:.1f} BLEU"
