"""What the laboratory says about a claim, and on what grounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from heedful.records import Record, Word

__all__ = ["Counterexample", "Decision", "Evidence", "Repair", "Verdict", "Word"]


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
    seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether the claim may be relied on."""
        return self.verdict in ("proved", "supported")


Decision = tuple[Word, Evidence, Counterexample | None]
"""A verdict before its claim is attached: the word, the grounds, the failing case."""
