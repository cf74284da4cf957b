"""Arrays of intervals: every number is known to lie between two float64 numbers.

Each operation rounds its ends outward, so that the true result for any inputs from the intervals
lies in the interval returned. Sums and products of NumPy are correctly rounded: the next float64
outward is enough. A product of matrices may be summed in any order; its error is bounded by
k u / (1 − k u) · |A| |B| with u = 2⁻⁵³ and k the number of terms. Of exp, tanh and erf we take for
granted what NumPy and SciPy promise in effect: an error of at most a few units in the last
place, for which `FUNCTION_ERROR` leaves ample room.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

Floats = NDArray[np.float64]

UNIT = 2.0**-53
"""Half the distance from 1 to the next float64."""
FUNCTION_ERROR = 64 * UNIT
"""Relative error granted to exp, tanh and erf: 32 units in the last place, where one is usual."""
TINY = 1e-300
"""Added to bounds so that nothing is lost to underflow."""


def down(x: Floats) -> Floats:
    """Return the next numbers below."""
    below: Floats = np.nextafter(x, -np.inf)
    return below


def up(x: Floats) -> Floats:
    """Return the next numbers above."""
    above: Floats = np.nextafter(x, np.inf)
    return above


def product_error(terms: int) -> float:
    """Return the relative error of a sum of this many products, in any order, with room to spare.

    The factor 2 pays for the rounding of the bound itself.
    """
    return 2 * (terms + 4) * UNIT


@dataclass(frozen=True, eq=False)
class Box:
    """Intervals, one for each entry of an array."""

    low: Floats
    high: Floats

    @classmethod
    def exactly(cls, values: Floats) -> Box:
        """Return intervals of width 0."""
        return cls(values, values)

    @property
    def middle(self) -> Floats:
        """A point of each interval, near its middle."""
        return self.low + (self.high - self.low) / 2

    @property
    def radius(self) -> Floats:
        """How far an entry may be from `middle`, rounded up."""
        middle = self.middle
        radius: Floats = up(np.maximum(self.high - middle, middle - self.low))
        return np.where(self.low == self.high, 0.0, radius)

    def __add__(self, other: Box) -> Box:
        return Box(down(self.low + other.low), up(self.high + other.high))

    def __getitem__(self, index: Any) -> Box:
        return Box(self.low[index], self.high[index])

    def times(self, factors: Floats) -> Box:
        """Return the products with exact numbers, which broadcast."""
        one, two = self.low * factors, self.high * factors
        return Box(down(np.minimum(one, two)), up(np.maximum(one, two)))

    def __mul__(self, other: Box) -> Box:
        corners = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Box(down(np.minimum.reduce(corners)), up(np.maximum.reduce(corners)))

    def hull(self, axis: int) -> Box:
        """Return intervals that hold all entries along an axis."""
        return Box(self.low.min(axis), self.high.max(axis))


def linear(x: Box, weight: Floats, bias: Floats | None = None) -> Box:
    """Return x Wᵀ + b for exact W, (outputs, inputs), and b."""
    middle, size = x.middle, np.abs(weight.T)
    result = middle @ weight.T
    error = (x.radius + product_error(weight.shape[1]) * np.abs(middle)) @ size
    error = error * (1 + product_error(weight.shape[1])) + TINY
    box = Box(down(result - error), up(result + error))
    return box if bias is None else box + Box.exactly(bias)


def centred(x: Box) -> Box:
    """Return x minus the mean of its last axis."""
    width = x.low.shape[-1]
    return linear(x, np.eye(width) - 1.0 / width) if width > 1 else Box.exactly(0 * x.low)


def unit_mean_square(x: Box, eps: float) -> Box:
    """Return x / √(mean x² + ε) along the last axis: for one entry the exact range over the box.

    The entry grows with x_i, and shrinks in size with the squares of the others.
    """
    width = x.low.shape[-1]
    squares = Box(
        np.where((x.low <= 0) & (x.high >= 0), 0.0, down(np.minimum(x.low**2, x.high**2))),
        up(np.maximum(x.low**2, x.high**2)),
    )
    slack = product_error(width)
    total_low, total_high = squares.low.sum(-1, keepdims=True), squares.high.sum(-1, keepdims=True)
    # The sum of the others: what is lost by the subtraction is paid for by the total's slack.
    others_low = np.maximum(total_low * (1 - slack) - squares.low - slack * squares.low, 0.0)
    others_high = total_high * (1 + slack) - squares.high * (1 - slack)

    def scaled(entry: Floats, away: Floats, near: Floats) -> tuple[Floats, Floats]:
        """Return the entry scaled with few and with many squares beside it."""
        return (
            entry / np.sqrt((near + entry**2) / width + eps),
            entry / np.sqrt((away + entry**2) / width + eps),
        )

    relative = 1 + (width + 32) * UNIT
    large, small = scaled(x.high, others_high, others_low)
    high = np.where(x.high > 0, large * relative, small / relative)
    large, small = scaled(x.low, others_high, others_low)
    low = np.where(x.low < 0, large * relative, small / relative)
    edge = math.sqrt(width) * relative
    return Box(np.clip(down(low), -edge, edge), np.clip(up(high), -edge, edge))


def _gelu(x: Floats) -> Floats:
    value: Floats = x * 0.5 * (1 + erf(x / math.sqrt(2)))
    return value


def _gelu_tanh(x: Floats) -> Floats:
    value: Floats = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return value


def _silu(x: Floats) -> Floats:
    value: Floats = x / (1 + np.exp(-np.clip(x, -700, 700)))
    return value


_SMOOTH: dict[str, tuple[Callable[[Floats], Floats], float, float]] = {
    "gelu": (_gelu, -0.7518, -0.16998),
    "gelu_tanh": (_gelu_tanh, -0.7525, -0.17005),
    "silu": (_silu, -1.2785, -0.27847),
}
"""Each falls to one least value and grows from there: the function, where that is, and a number
just below that value."""
STEEPEST = 1.2
"""None of these functions is steeper: gelu has slopes up to 1.13, silu up to 1.1."""
_NEAR = 0.01
"""How well the places of the least values are known, with room to spare."""


def activated(x: Box, name: str) -> Box:
    """Return relu, gelu, gelu_tanh or silu of every entry."""
    if name == "relu":
        return Box(np.maximum(x.low, 0.0), np.maximum(x.high, 0.0))
    function, place, least = _SMOOTH[name]
    at_low, at_high = function(x.low), function(x.high)
    # 1 + tanh cancels for negative arguments: the error is absolute, in units of |x|.
    slack = FUNCTION_ERROR * (1 + np.maximum(np.abs(x.low), np.abs(x.high)))
    falls, grows = x.high < place - _NEAR, x.low > place + _NEAR
    low = np.where(grows, at_low - slack, np.where(falls, at_high - slack, least))
    # Around the least value a narrow interval is held by the slope: rounding must not grow there.
    held = np.minimum(at_low, at_high) - STEEPEST * (x.high - x.low) - slack
    low = np.maximum(low, held)
    return Box(np.maximum(low, least), np.maximum(at_low, at_high) + slack)


def weighted_mean(scores: Box, values: Box) -> Box:
    """Return the exact range of Σ_j softmax(s)_j v_j over boxes, for one value a column.

    `scores` has shape (*axes, keys), `values` (*axes, keys, outputs). With ends x_j of e^{s_j},
    the mean Σ x_j v_j / Σ x_j is greatest where every v_j is at its upper end and x_j is at its
    upper end exactly for the values above the mean. So, with values in falling order, some first
    ones have the upper and the rest the lower ends: the best of these cuts is the answer.
    """
    top = scores.high.max(-1, keepdims=True)
    small, large = np.exp(scores.low - top), np.exp(scores.high - top)
    small = np.maximum(small * (1 - FUNCTION_ERROR) * (1 - _far(scores.low - top)), 0.0)
    large = large * (1 + FUNCTION_ERROR) * (1 + _far(scores.high - top))

    def greatest(v: Floats) -> Floats:
        order = np.argsort(-v, axis=-2)
        ranked = np.take_along_axis(v, order, -2)
        above = np.take_along_axis(np.broadcast_to(large[..., None], v.shape), order, -2)
        below = np.take_along_axis(np.broadcast_to(small[..., None], v.shape), order, -2)
        rest = below.sum(-2, keepdims=True) - np.cumsum(below, -2)
        rest_sum = (below * ranked).sum(-2, keepdims=True) - np.cumsum(below * ranked, -2)
        mass = np.cumsum(above, -2) + np.maximum(rest, 0.0)
        mass = np.maximum(mass * (1 - product_error(v.shape[-2])), TINY)
        cuts = (np.cumsum(above * ranked, -2) + rest_sum) / mass
        # Each sum has terms of size at most max|v| times the greatest weights.
        size = np.abs(v).max(-2, keepdims=True) * large.sum(-1)[..., None, None]
        loose = 8 * product_error(v.shape[-2]) * size / mass + TINY
        best: Floats = (cuts + loose).max(-2)
        capped: Floats = np.minimum(best, v.max(-2))
        return capped

    return Box(-greatest(-values.low), greatest(values.high))


def _far(difference: Floats) -> Floats:
    """Return the relative error of e^x that comes from the rounding of x itself."""
    relative: Floats = 2 * UNIT * np.abs(np.maximum(difference, -800.0))
    return relative
