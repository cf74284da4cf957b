"""How probable is ‖c − t‖ > ε? An interval that is certain to hold it.

ℝ^R is cut into boxes. On a box every difference of two logits of one head is an affine
function of ξ, hence in a known interval, and so is every weight:

    α_hi = 1 / Σ_j exp(z_hj − z_hi).

From the box's centre to any other of its points, c moves by at most Σ |Δα_hi| ‖v_i/H − b_h‖
(see `Readout.leverage`). A box is decided when that cannot carry ‖c − t‖ across ε; the others
are cut in two along the direction that moves the logits most. What stays undecided, and what
lies beyond |ξ_r| ≤ 8.3, is the width of the answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from heedful.attention.arrays import Array
from heedful.attention.logits import LogitModel
from heedful.attention.quadrature import places, rounding, slopes
from heedful.attention.readout import Readout

REACH = 8.3
"""|ξ| stays below this but for a probability of 1e-16."""
BOX_BUDGET = 200_000
"""Most boxes looked at."""
_FIRST_CUT = {0: 1, 1: 64, 2: 16, 3: 8}


@dataclass(frozen=True, kw_only=True)
class FailureProbability:
    """P(‖c − t‖ > ε), certain to lie between `low` and `high`."""

    value: float
    low: float
    high: float
    boxes: int

    @property
    def error(self) -> float:
        """How far `value` can be from the truth."""
        return max(self.high - self.value, self.value - self.low)


def failure_probability(
    model: LogitModel, readout: Readout, radius: float, tolerance: float = 1e-6
) -> FailureProbability:
    """Enclose P(‖c − t‖ > radius), to `tolerance` if the budget of boxes allows."""
    R = model.dimensions
    leverage = readout.leverage()
    slack = rounding(model, REACH) * (float(leverage.sum()) + readout.size())
    centres, halves = _first_boxes(R)
    failing = undecided = guess = 0.0
    seen = 0
    while True:
        seen += centres.shape[1]
        distance, change = _enclose(model, readout, leverage, centres, halves)
        mass = _mass(centres, halves)
        open_boxes = np.abs(distance - radius) <= change + slack
        failing += float(mass[~open_boxes & (distance > radius)].sum())
        centres, halves = centres[:, open_boxes], halves[:, open_boxes]
        mass, distance = mass[open_boxes], distance[open_boxes]
        # The lightest boxes are set aside undecided while together they weigh little.
        order = np.argsort(mass)
        aside = order[undecided + np.cumsum(mass[order]) <= tolerance / 2]
        if mass.sum() <= tolerance / 2 or seen + 2 * len(mass) > BOX_BUDGET or not R:
            aside = order
        undecided += float(mass[aside].sum())
        guess += float(mass[aside][distance[aside] > radius].sum())
        if len(aside) == len(mass):
            break
        kept = np.setdiff1d(order, aside, assume_unique=True)
        centres, halves = _cut(centres[:, kept], halves[:, kept], slopes(model))
    outside = R * 2.0 * float(ndtr(-REACH))
    high = min(1.0, failing + undecided + outside)
    return FailureProbability(
        value=min(failing + guess, high), low=max(0.0, min(failing, 1.0)), high=high, boxes=seen
    )


def _first_boxes(R: int) -> tuple[Array, Array]:
    count = _FIRST_CUT[R]
    half = REACH / count
    axis = -REACH + half * (2.0 * np.arange(count) + 1.0)
    centres = (
        np.stack([part.ravel() for part in np.meshgrid(*[axis] * R)]) if R else np.zeros((0, 1))
    )
    return centres, np.full_like(centres, half)


def _enclose(
    model: LogitModel, readout: Readout, leverage: Array, centres: Array, halves: Array
) -> tuple[Array, Array]:
    """Return ‖c − t‖ at the centres, and by how much it can change inside the boxes."""
    xi, reach = places(model, centres), places(model, halves)
    z = model.logits(xi)
    H, N, m = z.shape
    swing = np.zeros_like(z)
    for column in range(model.factors.shape[2]):
        swing += np.abs(model.factors[:, :, column].T[:, :, None]) * reach[None, :, column, :]
    # The quiet group takes part as one more key that does not move.
    z = np.concatenate([z, np.broadcast_to(model.constants[:, None, None], (H, 1, m))], axis=1)
    swing = np.concatenate([swing, np.zeros((H, 1, m))], axis=1)
    change = np.zeros(m)
    for i in range(N):
        apart = z - z[:, i : i + 1]
        loose = swing + swing[:, i : i + 1]
        loose[:, i] = 0.0
        middle = _one_over(apart)
        rise = _one_over(apart - loose) - middle
        fall = middle - _one_over(apart + loose)
        change += leverage[:, i] @ np.maximum(rise, fall)
    return readout.distances(model.feature_values(xi)), change


def _one_over(apart: Array) -> Array:
    """Return 1 / Σ_j exp(apart_j) along axis 1, whatever its size."""
    top = apart.max(axis=1)
    return np.exp(-top) / np.exp(apart - top[:, None]).sum(axis=1)


def _mass(centres: Array, halves: Array) -> Array:
    """Return the normal probability of each box, taken on the side where Φ is small."""
    near = np.abs(centres) - halves
    mass = ndtr(-near) - ndtr(-near - 2.0 * halves)
    return np.asarray(mass.prod(axis=0))


def _cut(centres: Array, halves: Array, steepness: Array) -> tuple[Array, Array]:
    """Cut every box in two along the direction that moves its logits most."""
    along = (halves * steepness[:, None]).argmax(axis=0)
    columns = np.arange(centres.shape[1])
    halves = halves.copy()
    halves[along, columns] /= 2.0
    left, right = centres.copy(), centres.copy()
    left[along, columns] -= halves[along, columns]
    right[along, columns] += halves[along, columns]
    return np.concatenate([left, right], axis=1), np.concatenate([halves, halves], axis=1)
