"""What the laboratory says about a claim, and on what grounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from heedful.records import Record, Word

Kind = Literal[
    "true", "number found", "true at our number", "false", "false at our number", "undecided"
]
KINDS: tuple[Kind, ...] = (
    "true", "number found", "true at our number", "false", "false at our number", "undecided",
)  # fmt: skip
"""What a verdict says about the source of a claim."""

__all__ = [
    "KINDS", "Answer", "Counterexample", "Decision", "Evidence", "Kind", "Repair", "Verdict",
    "Word",
]  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence(Record):
    """Why a verdict is what it is; never weaker than the word it stands behind."""

    method: str
    """How it was found: algebra, interval arithmetic, certified quadrature, draws, search."""
    statement: str
    """The reasoning in a sentence or two, with its numbers."""
    steps: tuple[str, ...] = ()
    """The derivation, line by line, where there is one."""
    numbers: dict[str, Any] = field(default_factory=dict)
    """Named figures: `beta_0`, `error`, `mean`, `low`, `high`, …"""
    draws: int | None = None
    """How many draws or cases were looked at, for supported verdicts."""
    seed: int | None = None
    """The seed they came from."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Counterexample(Record):
    """The smallest case found in which the claim fails."""

    symbols: dict[str, Any]
    """Every symbol with its value."""
    left: Any
    """What the left side comes to."""
    right: Any
    """What the right side comes to."""
    gap: float
    """By how much it fails."""
    exactly: str | None = None
    """Left minus right, where the two are too near each other for float64."""
    statement: str
    """The case in a sentence."""
    command: str | None = None
    """A `heed attend`, `heed noise` or `heed copyable` command that shows it, where one can."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Repair(Record):
    """The smallest change found that makes a refuted claim hold."""

    kind: str
    """scale, condition, heads, order, mask, constant, tolerance, range, or relation."""
    statement: str
    """The change in a sentence."""
    changes: dict[str, Any]
    """The fields of the claim to replace, as they would stand in the sheet; None: left out."""
    verdict: Word
    """What the repaired claim's verdict is: proved or supported."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer(Record):
    """The number that a claim asks for with `find`: enclosed between one that does and one not."""

    asks: str
    """What was asked: "least x", "greatest x"."""
    low: float | None
    """The number is not below this; None: no such bound is known."""
    high: float | None
    """The number is not above this; None: no such bound is known."""
    holds_with: str | None
    """The number, exactly as it was tried, with which the claim holds; None: none is known."""
    holds_word: Word | None = None
    """How well that is known: proved or supported."""
    fails_with: str | None
    """The number, exactly as it was tried, with which the claim fails; None: none is known."""
    certified: bool
    """Whether both are proofs, rather than a search or draws."""
    statement: str
    """The answer in a sentence."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Verdict(Record):
    """One claim, judged."""

    sheet: str
    id: str
    says: str
    """The claim in words."""
    expects: str
    """The claim as a formula."""
    verdict: Word
    evidence: Evidence
    counterexample: Counterexample | None = None
    repair: Repair | None = None
    answer: Answer | None = None
    """The number, for a claim that leaves one open (`find`)."""
    seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)
    source: str = ""
    """Where the claim comes from, with the words that stand there."""
    reading: str = ""
    """How those words were read."""
    number: str = ""
    """Which number of the formula is ours and not the source's, and why that one."""

    @property
    def holds(self) -> bool:
        """Whether the claim may be relied on."""
        return self.verdict in ("proved", "supported")

    @property
    def kind(self) -> Kind:
        """What the verdict says about the source, which may have a word where we put a number.

        A formula with a number of ours that fails says nothing about the word: another number
        might do. Only a formula whose numbers are all the source's is false as such.
        """
        if self.verdict == "undecided":
            return "undecided"
        if self.answer is not None:
            return "number found" if self.holds else "false"
        truth: Literal["true", "false"] = "true" if self.holds else "false"
        return f"{truth} at our number" if self.number else truth  # type: ignore[return-value]


Decision = tuple[Word, Evidence, Counterexample | None]
"""A verdict before its claim is attached: the word, the grounds, the failing case."""
