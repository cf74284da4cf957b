"""The record of a check: every verdict, what could not be read, and who disagrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.claims.claim import Claim
from heedful.claims.sheet import Sheet
from heedful.claims.sheet_writing import setting_text
from heedful.claims.verdict import Verdict
from heedful.errors import FormulaError
from heedful.records import Record

WORDS = ("proved", "supported", "refuted", "undecided")


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem(Record):
    """Something in a sheet that cannot be read; the other claims were checked."""

    sheet: str
    """The sheet it is in."""
    line: int | None
    """Line of the file, from 1."""
    column: int | None
    """Column of that line, from 1."""
    message: str
    """What is wrong, what was expected, and the way out; with file, line and column."""

    @classmethod
    def of(cls, sheet: str, error: FormulaError) -> Problem:
        """Return the record of an error."""
        return cls(sheet=sheet, line=error.line, column=error.column, message=str(error))


@dataclass(frozen=True, eq=False, kw_only=True)
class SheetSummary(Record):
    """What a report says about a sheet as a whole."""

    name: str
    """How verdicts refer to it."""
    title: str
    """Its own title, or nothing."""
    source: str
    """Where its statements come from, or nothing."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CheckReport(Record):
    """The verdicts on every claim of some sheets."""

    claims: tuple[Verdict, ...]
    """One verdict a claim, in the order of the sheets."""
    problems: tuple[Problem, ...]
    """What could not be read."""
    counts: dict[str, int]
    """How many claims are proved, supported, refuted, undecided; and how many problems."""
    seconds: float
    """How long it all took."""
    sheets: tuple[SheetSummary, ...]
    """The sheets, in order."""
    disagreements: tuple[tuple[str, str], ...]
    """Pairs of claims, as "sheet/id", of which one says otherwise than the other."""
    settings: dict[str, str]
    """What each claim, as "sheet/id", presumes: keys, query, ranges, as its sheet writes it."""

    @property
    def exit_code(self) -> int:
        """0 when nothing is refuted, 1 when something is, 2 when something cannot be read."""
        if self.problems:
            return 2
        return 1 if self.counts["refuted"] else 0

    @classmethod
    def of(
        cls,
        sheets: Sequence[Sheet],
        verdicts: Sequence[Verdict],
        problems: Sequence[Problem],
        seconds: float,
    ) -> CheckReport:
        """Put a report together."""
        counts = {word: sum(verdict.verdict == word for verdict in verdicts) for word in WORDS}
        return cls(
            claims=tuple(verdicts),
            problems=tuple(problems),
            counts=counts | {"problems": len(problems)},
            seconds=seconds,
            sheets=tuple(
                SheetSummary(name=sheet.name, title=sheet.title, source=sheet.source)
                for sheet in sheets
            ),
            disagreements=_disagreements(sheets),
            settings={
                f"{sheet.name}/{claim.id}": setting_text(claim)
                for sheet in sheets
                for claim in sheet.claims
            },
        )


def _disagreements(sheets: Sequence[Sheet]) -> tuple[tuple[str, str], ...]:
    known = {f"{sheet.name}/{claim.id}" for sheet in sheets for claim in sheet.claims}
    pairs: dict[frozenset[str], tuple[str, str]] = {}
    for sheet in sheets:
        for claim in sheet.claims:
            here = f"{sheet.name}/{claim.id}"
            for other in claim.disagrees_with:
                there = other if "/" in other else f"{sheet.name}/{other}"
                if there in known and there != here:
                    pairs.setdefault(frozenset((here, there)), (here, there))
    return tuple(pairs.values())


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation(Record):
    """One claim with its verdict: what was asked, and why the answer is what it is."""

    claim: Claim
    """The claim as it stands in its sheet."""
    verdict: Verdict
    """What the laboratory says about it."""
