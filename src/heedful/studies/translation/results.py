"""What a study of translation ends in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heedful.records import Record
from heedful.studies.translation.alignment import Alignment

SCRATCH, LONGER, HERE, ELSEWHERE = "scratch", "scratch, same clock", "here", "elsewhere"
"""The arms: on the pairs alone; the same for as long as `here` takes in all; pretrained here as
a language model; pretrained by others."""
LABELS = {
    SCRATCH: "from scratch",
    LONGER: "from scratch, same clock",
    HERE: "pretrained here",
    ELSEWHERE: "pretrained elsewhere",
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
class ArmResult(Scores):
    """One arm at one number of pairs, on the test sentences."""

    arm: str
    """`scratch`, `scratch, same clock`, `here` or `elsewhere`."""
    label: str
    """The same in words."""
    pairs: int
    """Training pairs."""
    minutes: float
    """Of training in all: pretraining here and training on the pairs, without evaluations."""
    minutes_before: float
    """The part of them that went into pretraining here."""
    gain: float | None
    """BLEU above scratch with as many pairs, on the same sentences; None for scratch itself."""
    p_value: float | None
    """Of that gain: paired bootstrap."""
    steps: int
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
    """Speed of translating the test, greedy."""
    run: str
    """Its folder."""


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
    """BLEU of the arm above that of the other."""
    p_value: float
    """Two-sided, of a paired bootstrap."""
    sentences: int
    minutes: float
    """Training of the arm in all."""
    minutes_against: float


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
class TranslationStudy(Record):
    """The comparison."""

    corpus: str
    languages: tuple[str, str]
    fingerprint: str
    """SHA-256 of the training pairs."""
    arms: tuple[ArmResult, ...]
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
    verdicts: tuple[str, ...]
    """For each number of pairs: which pretrained arm beats scratch, or why none does."""
    settings: dict[str, Any]
    """Everything that decided the study."""
    command: str
    """Gives it again."""
    minutes: float
    """Of the whole study, evaluations and all; arms that were at hand cost nothing."""
    machine: str
    elsewhere: str
    """How the third arm can be had, where it is not in the study."""
