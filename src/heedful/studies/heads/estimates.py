"""Numbers with their uncertainty, and what may be said of them.

A number of these studies is a mean over draws, blocks of positions, or trainings from different
seeds. Its interval is Student's: mean ± t₀.₉₇₅ · s / √n with n − 1 degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from heedful.records import Record, Word

LEVEL = 0.95
"""How often an interval should hold the true mean."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimate(Record):
    """A mean with its interval."""

    value: float
    """The mean."""
    low: float
    """Lower end of the interval; −∞ where there is one observation only."""
    high: float
    """Upper end."""
    count: int
    """Observations: seeds, draws or blocks."""

    @property
    def error(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    @classmethod
    def of(cls, observations: Any) -> Estimate:
        """Return the mean of observations that are independent of one another.

        >>> made = Estimate.of([1.0, 2.0, 3.0])
        >>> made.value, round(made.low, 3), round(made.high, 3)
        (2.0, -0.484, 4.484)
        """
        values = np.asarray(observations, dtype=np.float64).ravel()
        mean, count = float(values.mean()), len(values)
        if count < 2:
            return cls(value=mean, low=-math.inf, high=math.inf, count=count)
        spread = float(values.std(ddof=1)) / math.sqrt(count)
        reach = float(student.ppf((1 + LEVEL) / 2, count - 1)) * spread
        return cls(value=mean, low=mean - reach, high=mean + reach, count=count)

    @classmethod
    def over_blocks(cls, values: Any, size: int) -> Estimate:
        """Return the mean of a sequence whose neighbours resemble each other.

        Blocks of about `size` neighbours stand for the independent observations.

        >>> Estimate.over_blocks([1.0, 3.0, 5.0, 7.0, 9.0], 2)
        Estimate(value=5.0, low=-26.765..., high=36.765..., count=2)
        """
        flat = np.asarray(values, dtype=np.float64).ravel()
        parts = np.array_split(flat, max(1, len(flat) // size))
        found = cls.of([float(part.mean()) for part in parts])
        mean = float(flat.mean())
        return cls(value=mean, low=mean - found.error, high=mean + found.error, count=found.count)


@dataclass(frozen=True, eq=False, kw_only=True)
class Finding(Record):
    """A statement of a course sheet, and what the study says of it."""

    name: str
    """Short, for tables."""
    says: str
    """The statement, in our words."""
    verdict: Word
    """In the words of the claims."""
    statement: str
    """Why, with its numbers."""
    estimate: Estimate | None = None
    """The number that decides, where one does."""


def sign_verdict(estimate: Estimate) -> Word:
    """Judge "this is below zero" by an interval: all of it, none of it, or neither.

    >>> sign_verdict(Estimate(value=-2.0, low=-3.0, high=-1.0, count=5))
    'supported'
    """
    if estimate.high < 0:
        return "supported"
    return "refuted" if estimate.low >= 0 else "undecided"


def slope(levels: Sequence[float], values: Sequence[Sequence[float]]) -> Estimate:
    """Return the slope of values over levels: one line for each seed, then their mean.

    `values` has one sequence a level, in which seed number s is at place s.

    >>> slope([0.0, 1.0], [[1.0, 2.0], [3.0, 4.0]]).value
    2.0
    """
    table = np.asarray(values, dtype=np.float64)
    x = np.asarray(levels, dtype=np.float64)
    x = x - x.mean()
    return Estimate.of((x @ table) / (x @ x))
