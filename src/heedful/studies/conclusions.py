"""Conclusions: every sentence in which a study or the report says what it found.

A conclusion is a claim about numbers, so it is made from a record, here and nowhere else:

    Contrast      one arm against another that differs from it in exactly one named setting
    Measurement   one number with its interval
    Largest       which of several is the largest, and of how many
    calculated    what follows by calculation, without seeds or draws

Each of them knows what a sentence of its kind needs: like compared with like, an interval, how many
seeds and cases it covers, what budget both sides had, and the floor below which the numbers mean
nothing. Where something is missing there is no weaker sentence: it says what is missing instead.

Budgets are counted in work, operations of the trainings. Seconds depend on what else a machine
does; the same settings give the same work, and so the same conclusion, on a busy one.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from heedful.records import Record
from heedful.stats import Estimate

EQUAL_WORK = 0.03
"""Two budgets count as equal up to this share: steps are whole, and batches differ in length."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Conclusion(Record):
    """One sentence, and whether it concludes anything."""

    text: str
    """What is said: the conclusion, or what it lacks."""
    stands: bool
    """Whether it is a conclusion."""
    kind: Literal["contrast", "measurement", "largest", "calculation"]
    missing: tuple[str, ...] = ()
    """What a conclusion would need, where it is none."""

    def __str__(self) -> str:
        """Return the sentence."""
        return self.text


@dataclass(frozen=True, eq=False)
class Study(Record, ABC):
    """Base of what a study ends in: a record that can say what was found."""

    @property
    @abstractmethod
    def conclusions(self) -> tuple[Conclusion, ...]:
        """What was found, one sentence each, made from the other fields."""

    def to_dict(self) -> dict[str, Any]:
        """Return the record with its conclusions."""
        return super().to_dict() | {"conclusions": [one.to_dict() for one in self.conclusions]}


@dataclass(frozen=True, kw_only=True)
class Basis:
    """What an interval covers: other cases, other seeds, or both."""

    cases: int
    """How many were looked at."""
    of: str
    """What they are: test sentences, questions."""
    seeds: int = 1
    """Trainings of each arm."""
    one_model: bool = False
    """Whether it is about one model that others trained, once."""

    def __str__(self) -> str:
        """Return it in words."""
        seeds = "one seed" if self.seeds == 1 else f"{self.seeds} seeds"
        return f"{self.cases:,} {self.of}, {'one model' if self.one_model else seeds}"

    @property
    def limits(self) -> str:
        """What the interval does not cover."""
        if self.one_model:
            return f" The interval covers other {self.of}, not other models."
        if self.seeds > 1:
            return ""
        return (
            f" The interval covers other {self.of}, not another seed: this is about these "
            "trainings."
        )


@dataclass(frozen=True, kw_only=True)
class Floor:
    """The level below which numbers of a kind mean nothing."""

    least: float
    why: str
    """What holds below it, after "below it"."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side of a contrast."""

    name: str
    value: float
    settings: Mapping[str, Any]
    """All that decided it; a setting inside a table is named `table.setting`."""
    work: float | None = None
    """Operations of its trainings, all stages."""


Show = Callable[[float], str]
"""How a number is written."""


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """One arm against another."""

    about: str
    """What it would be a conclusion about; begins the sentence where there is none."""
    one: Side
    other: Side
    differ: str
    """The one setting in which they differ."""
    difference: Estimate
    """Of the values, the first minus the second."""
    basis: Basis
    higher: str
    """Said where the first is higher; likewise `lower`, and `same` where neither is."""
    lower: str
    same: str
    show: Show
    floor: Floor | None = None
    """One of the two values must be above it."""
    equal_work: bool = False
    """Whether the sentence is about equal budgets."""
    follows: tuple[str, ...] = ()
    """Settings that differ as a consequence of the named one, such as the steps that equal
    work leaves; the sentence is about them too."""

    def conclude(self) -> Conclusion:
        """Say who is higher, or what is missing."""
        missing = tuple(self._missing())
        if missing:
            return _nothing(self.about, "contrast", missing)
        low, high = self.difference.low, self.difference.high
        said = self.higher if low > 0 else self.lower if high < 0 else self.same
        numbers = (
            f"{self.show(self.one.value)} against {self.show(self.other.value)}, a difference of "
            f"{self.show(self.difference.value)} ({self.show(low)} to {self.show(high)}; "
            f"{self.basis}{self._budgets()})"
        )
        return Conclusion(
            text=f"{said}: {numbers}.{self.basis.limits}", stands=True, kind="contrast"
        )

    def _missing(self) -> list[str]:
        missing = []
        others = [
            name
            for name in differences(self.one.settings, self.other.settings)
            if name != self.differ and name not in self.follows
        ]
        if others:
            named = "; ".join(_setting(name, self.one, self.other) for name in others)
            missing.append(f"arms that differ in {self.differ} alone (these differ in {named})")
        elif not differences(self.one.settings, self.other.settings):
            missing.append(f"arms that differ in {self.differ} (these differ in nothing)")
        if self.floor is not None and max(self.one.value, self.other.value) < self.floor.least:
            missing.append(
                f"a value of at least {self.show(self.floor.least)} (both are below it: "
                f"{self.show(self.one.value)} and {self.show(self.other.value)}; {self.floor.why})"
            )
        if not (math.isfinite(self.difference.low) and math.isfinite(self.difference.high)):
            missing.append("an interval of the difference")
        if self.equal_work and not self._equally_much():
            missing.append(f"equal work (it was {work_words(self.one.work, self.other.work)})")
        return missing

    def _equally_much(self) -> bool:
        one, other = self.one.work or 0.0, self.other.work or 0.0
        return min(one, other) > 0 and abs(one - other) <= EQUAL_WORK * max(one, other)

    def _budgets(self) -> str:
        if not self.one.work or not self.other.work:
            return ""
        return f"; work {work_words(self.one.work, self.other.work)}"


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One number with its interval."""

    about: str
    """What it is about; begins the sentence where there is no conclusion."""
    said: str
    """The sentence with `{value}` where the number and its interval stand."""
    estimate: Estimate
    basis: Basis
    show: Show
    floor: Floor | None = None
    """The whole interval must be above it."""
    null: float | None = None
    """What no effect would give: the interval must leave it out."""

    def conclude(self) -> Conclusion:
        """Say the number, or what is missing."""
        one, missing = self.estimate, []
        if not (math.isfinite(one.low) and math.isfinite(one.high)):
            missing.append("an interval")
        elif self.floor is not None and one.low < self.floor.least:
            missing.append(
                f"an interval above {self.show(self.floor.least)} (it is {self.show(one.value)}, "
                f"{self.show(one.low)} to {self.show(one.high)}; {self.floor.why})"
            )
        elif self.null is not None and one.low <= self.null <= one.high:
            missing.append(
                f"an interval without {self.show(self.null)} (it is {self.show(one.value)}, "
                f"{self.show(one.low)} to {self.show(one.high)}; {self.basis})"
            )
        if missing:
            return _nothing(self.about, "measurement", tuple(missing))
        value = (
            f"{self.show(one.value)} ({self.show(one.low)} to {self.show(one.high)}; {self.basis})"
        )
        return Conclusion(
            text=f"{self.said.format(value=value)}.{self.basis.limits}",
            stands=True,
            kind="measurement",
        )


@dataclass(frozen=True, kw_only=True)
class Largest:
    """Which of several is the largest."""

    about: str
    said: str
    """The sentence with `{names}` where the largest stand."""
    values: Mapping[str, Estimate]
    """Those that were measured."""
    of: int
    """How many there are, measured or not."""
    what: str
    """What they are, in the plural."""
    show: Show
    null: float = 0.0
    """What no effect would give."""
    shown: int = 1
    """How many are named at most."""

    def conclude(self) -> Conclusion:
        """Name the largest, if it is above no effect and above those that it is compared with."""
        measured = len(self.values)
        count = f"{measured:,} of {self.of:,} {self.what} measured"
        if measured < 2:
            return _nothing(self.about, "largest", (f"something to compare with ({count})",))
        above = {name: one for name, one in self.values.items() if one.low > self.null}
        if not above:
            largest = max(self.values.values(), key=lambda one: one.value)
            return _nothing(
                self.about,
                "largest",
                (
                    f"a value whose interval is above {self.show(self.null)} (the largest is "
                    f"{self.show(largest.value)}, {self.show(largest.low)} to "
                    f"{self.show(largest.high)}; {count})",
                ),
            )
        best = sorted(above.items(), key=lambda item: -item[1].value)[: self.shown]
        names = ", ".join(
            f"{name} ({self.show(one.value)}, {self.show(one.low)} to {self.show(one.high)})"
            for name, one in best
        )
        return Conclusion(
            text=f"{self.said.format(names=names)}; {count}.", stands=True, kind="largest"
        )


def calculated(said: str, /, **numbers: float | int | str | None) -> Conclusion:
    """Return a sentence whose numbers were calculated: no seed and no draw decided them.

    >>> calculated("each key gets {weight:.2f}", weight=0.25).text
    'each key gets 0.25'
    >>> calculated("each key gets {weight:.2f}", weight=None).stands
    False
    """
    absent = [
        name
        for name, value in numbers.items()
        if value is None or (isinstance(value, float) and not math.isfinite(value))
    ]
    if absent:
        about = re.split(r"[:;({]", said)[0].strip()
        return _nothing(about, "calculation", tuple(name.replace("_", " ") for name in absent))
    return Conclusion(text=said.format(**numbers), stands=True, kind="calculation")


def difference_of(one: Estimate, other: Estimate) -> Estimate:
    """Return the difference of two values with their intervals: Newcombe's hybrid interval.

        d ± √((p₁ − l₁)² + (u₂ − p₂)²)   below, and mirrored above

    It takes the two as independent; where both were asked the same questions it is too wide, not
    too narrow.
    """
    value = one.value - other.value
    below = math.hypot(one.value - one.low, other.high - other.value)
    above = math.hypot(one.high - one.value, other.value - other.low)
    return Estimate(
        value=value, low=value - below, high=value + above, count=min(one.count, other.count)
    )


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the settings in which two arms differ; one that only one of them has counts.

    >>> differences({"width": 64, "seed": 0}, {"width": 64, "seed": 1, "rank": 4})
    ('seed', 'rank')
    """
    names = dict.fromkeys([*one, *other])
    absent = object()
    return tuple(name for name in names if one.get(name, absent) != other.get(name, absent))


def work_words(*works: float | None) -> str:
    """Write operations.

    >>> work_words(1.23e12, 1.25e12)
    '1.23 and 1.25 × 10¹² operations'
    """
    known = [work for work in works if work]
    if not known:
        return "not counted"
    power = math.floor(math.log10(max(known)))
    digits = str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    written = " and ".join(
        "not counted" if not work else f"{work / 10**power:.2f}" for work in works
    )
    return f"{written} × 10{digits} operations"


def sentences(conclusions: Sequence[Conclusion]) -> tuple[str, ...]:
    """Return what conclusions say."""
    return tuple(one.text for one in conclusions)


def _setting(name: str, one: Side, other: Side) -> str:
    values = (
        "none" if side.settings.get(name) is None else str(side.settings[name])
        for side in (one, other)
    )
    return f"{name.replace('_', ' ')}: {' and '.join(values)}"


def _nothing(about: str, kind: Any, missing: tuple[str, ...]) -> Conclusion:
    return Conclusion(
        text=f"No conclusion about {about}. Missing: {'; '.join(missing)}.",
        stands=False,
        kind=kind,
        missing=missing,
    )
