"""Intervals and standard errors: what numbers from finitely many observations are worth.

    wilson                a probability, from counts; stays valid at 0 and at n
    clopper_pearson_upper the largest error rate that counts do not rule out
    Estimate              a mean, with Student's interval
    bootstrap_mean        a mean, with the percentiles of resampled means
    quantile_interval     a quantile, from the order of the observations alone
    percentile_interval   any statistic that was resampled already
    standard_errors       of a mean and of a standard deviation, from moments
    percent               a share in words
    Moments               mean and covariance of a stream, chunk by chunk

Every interval is two-sided, at 95 % where no other level is asked for. BLEU is resampled by
sacreBLEU, with its own paired test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Float64
from scipy.special import bdtr, betaincinv, ndtri, stdtrit

from heedful.records import Record

LEVEL = 0.95
"""How often an interval should hold the true value."""
Z = 1.959963984540054
"""The normal quantile of a two-sided interval at `LEVEL`."""
DRAWS = 2_000
"""Resamples of a bootstrap; the ends of the interval are then steady to about a tenth of it."""


def wilson(successes: float, count: int, level: float = LEVEL) -> tuple[float, float]:
    """Return Wilson's interval for a probability; (0, 1) where nothing was observed.

    Also for the mean of numbers between 0 and 1, given their sum: they vary less than counts do.

    >>> tuple(round(end, 4) for end in wilson(0, 100))
    (0.0, 0.037)
    """
    if count < 1:
        return 0.0, 1.0
    z = Z if level == LEVEL else float(ndtri((1 + level) / 2))
    rate = min(max(successes / count, 0.0), 1.0)
    middle = (rate + z * z / (2 * count)) / (1 + z * z / count)
    half = math.sqrt(rate * (1 - rate) / count + z * z / (4.0 * count * count))
    half *= z / (1 + z * z / count)
    # At 0 and at n one end is 0 or 1 exactly; rounding must not move it.
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == count else min(1.0, middle + half)
    return low, high


def clopper_pearson_upper(successes: int, count: int) -> float:
    """Return the p for which P(at most so many successes of so many | p) = 5 %: one-sided.

    >>> round(clopper_pearson_upper(0, 59), 3), clopper_pearson_upper(3, 3)
    (0.05, 1.0)
    """
    if successes >= count:
        return 1.0
    return float(betaincinv(successes + 1, count - successes, LEVEL))


def quantile_interval(
    observations: Any, share: float, level: float = LEVEL
) -> tuple[float, float, float]:
    """Return a quantile and its interval: two of the observations, whatever they are drawn from.

    The number of observations below the quantile is binomial, which says how far off in their
    order it may lie. Where there are too few, the interval has no end.

    >>> quantile_interval(range(1, 101), 0.5)
    (50.5, 40.0, 61.0)
    """
    ordered = np.sort(np.asarray(observations, dtype=np.float64).ravel())
    count, tail = len(ordered), (1 - level) / 2
    below = bdtr(np.arange(count, dtype=np.float64), count, share)  # P(at most k lie below)
    first = int(np.searchsorted(below, tail, side="right"))
    last = int(np.searchsorted(below, 1 - tail, side="left"))
    low = float(ordered[first - 1]) if first >= 1 else -math.inf
    high = float(ordered[last]) if last < count else math.inf
    return float(np.quantile(ordered, share)), low, high


def percentile_interval(resampled: Any) -> tuple[float, float]:
    """Return the bootstrap interval of a statistic, from its values in the resamples."""
    low, high = np.quantile(resampled, (0.025, 0.975))
    return float(low), float(high)


def bootstrap_mean(
    values: Float64[np.ndarray, " n"], rng: np.random.Generator, draws: int = DRAWS
) -> tuple[float, float]:
    """Return the bootstrap interval of a mean."""
    resampled = values[rng.integers(len(values), size=(draws, len(values)))]
    return percentile_interval(resampled.mean(axis=1))


def percent(share: float | None) -> str:
    """Write a share as people say it.

    >>> percent(0.934), percent(0.004), percent(None)
    ('93 %', '0.4 %', '–')
    """
    if share is None:
        return "–"
    return f"{100 * share:.1f} %" if 0 < share < 0.0995 else f"{100 * share:.0f} %"


def standard_errors(
    variances: Float[np.ndarray, " n"], fourth: Float[np.ndarray, " n"], draws: int
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return the standard errors of means and of standard deviations.

    Of a mean, s/√N; of a standard deviation, √((m₄ − s⁴)/N)/(2s), with m₄ the fourth central
    moment; 0 where nothing varies.
    """
    std = np.sqrt(variances)
    of_squares = np.sqrt((fourth - variances**2).clip(min=0.0) / draws)
    return std / math.sqrt(draws), np.divide(
        of_squares, 2.0 * std, out=np.zeros_like(std), where=std > 0
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimate(Record):
    """A mean with its interval: mean ± t · s/√n, with n − 1 degrees of freedom."""

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
    def of(cls, observations: Any, level: float = LEVEL) -> Estimate:
        """Return the mean of observations that are independent of one another.

        >>> estimate = Estimate.of([1.0, 2.0, 3.0])
        >>> estimate.value, round(estimate.low, 3), round(estimate.high, 3)
        (2.0, -0.484, 4.484)
        """
        values = np.asarray(observations, dtype=np.float64).ravel()
        mean, count = float(values.mean()), len(values)
        if count < 2:
            return cls(value=mean, low=-math.inf, high=math.inf, count=count)
        standard_error = float(values.std(ddof=1)) / math.sqrt(count)
        reach = float(stdtrit(count - 1, (1 + level) / 2)) * standard_error
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
        blocks = cls.of([float(part.mean()) for part in parts])
        mean = float(flat.mean())
        return cls(
            value=mean, low=mean - blocks.error, high=mean + blocks.error, count=blocks.count
        )

    @classmethod
    def of_slope(cls, levels: Sequence[float], values: Sequence[Sequence[float]]) -> Estimate:
        """Return the slope of values over levels: one line for each seed, then their mean.

        `values` has one sequence a level, in which seed number s is at place s.

        >>> Estimate.of_slope([0.0, 1.0], [[1.0, 2.0], [3.0, 4.0]]).value
        2.0
        """
        table = np.asarray(values, dtype=np.float64)
        x = np.asarray(levels, dtype=np.float64)
        x = x - x.mean()
        return cls.of((x @ table) / (x @ x))


class Moments:
    """Running mean and covariance (or only variances) of p numbers, without cancellation.

    Two chunks with weights W_a, W_b, means m_a, m_b and centred sums S_a, S_b merge exactly
    (Chan, Golub and LeVeque):

        m = m_a + (m_b − m_a) W_b/W,    S = S_a + S_b + (m_b − m_a)(m_b − m_a)ᵀ W_a W_b/W.
    """

    def __init__(self, p: int, *, full: bool = True) -> None:
        self.full = full
        self.weight = 0.0
        self.mean: Any = np.zeros(p)
        self._centred: Any = np.zeros((p, p) if full else p)

    def add(
        self, values: Float[np.ndarray, "p m"], weights: Float[np.ndarray, " m"] | None = None
    ) -> None:
        """Take in m more columns, with equal weights unless told otherwise."""
        if weights is None:
            weight = float(values.shape[1])
            mean = values.mean(axis=1)
            centred = values - mean[:, None]
            scaled = centred
        else:
            weight = float(weights.sum())
            mean = (values @ weights) / weight
            centred = values - mean[:, None]
            scaled = centred * weights
        sums = centred @ scaled.T if self.full else (centred * scaled).sum(axis=1)
        if not self.weight:
            self.weight, self.mean, self._centred = weight, mean, sums
            return
        step = mean - self.mean
        total = self.weight + weight
        between = np.outer(step, step) if self.full else step * step
        self._centred += sums + between * (self.weight * weight / total)
        self.mean = self.mean + step * (weight / total)
        self.weight = total

    @property
    def covariance(self) -> Any:
        """The covariance of the weighted columns seen so far (or the variances)."""
        return self._centred / self.weight

    @property
    def sample_covariance(self) -> Any:
        """The unbiased covariance, when the columns are draws."""
        return self._centred / (self.weight - 1.0)
