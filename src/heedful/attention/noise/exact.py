"""Exact moments of noisy attention by a trapezoidal rule with a certified error.

Where only R ≤ 3 standard normals move the logits, mean and covariance of the features G are
integrals of f φ over ℝ^R with f = 1, G_i or G_i G_j, and φ the normal density. The infinite
trapezoidal rule of step h is geometrically exact for functions analytic in a strip
(Trefethen and Weideman, SIAM Review 2014, theorem 5.1): if ∫|f φ|(x + ib) dx ≤ M for all
|b| < a, its error is at most 2M/(exp(2πa/h) − 1). Here M is known beforehand:

- Softmax does not change when one number is added to all logits of a head. A direction ξ_r
  moves the logits of one key, with slope ℓ_h in head h; seen from halfway, the slopes are
  ±ℓ_h/2. So in the strip |Im ξ_r| ≤ a every imaginary part is at most θ = a max_h|ℓ_h|/2.
- While θ < π/2, |Σ exp(z_i)| ≥ Σ Re exp(z_i) ≥ cos θ Σ|exp(z_i)|. Hence |α_i| ≤ 1/cos θ, the
  same for γ and for averages over heads, and 1/cos² θ bounds f.
- |φ(x + ib)| = φ(x) exp(b²/2). Together M = exp(a²/2)/cos² θ.

Directions are done one after the other: I₁I₂ − T₁T₂ = (I₁ − T₁)I₂ + T₁(I₂ − T₂), and T₁ of a
constant is at most 1 + e, so errors of directions add. The rule is cut at |ξ_r| ≤ X = Kh: on
the real line |f| ≤ 1 and φ falls, so what is cut off is at most 2Φ(−X). Steep slopes cost
nodes (their number grows like ℓ), never accuracy.

With e the error of each integral, normalised moments err by less than 2e/(1−e) (means) and 8e
(covariances); a standard deviation errs by at most √(8e), since |√x − √y| ≤ √|x−y|. Rounding
of the logits moves every feature by at most δ, hence means and standard deviations by δ (the
triangle inequality) and covariances by 2δ. All of this is in `certified_error`: it bounds the
error of every entry of mean, standard deviation and covariance of ᾱ for the given logits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

from heedful.arrays import EPSILON, Array, between
from heedful.attention.noise.gaussian import LogitModel, Readout
from heedful.records import Record
from heedful.stats import Moments

LARGEST_DIMENSION = 3
"""With more noisy directions than this, sampling is the better tool."""
NODE_BUDGET = 4_000_000
"""Most nodes of a rule; about a second of work."""
CHUNK = 4096
"""Nodes held in memory at once."""
_FRACTIONS = np.linspace(0.02, 0.98, 49)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A trapezoidal rule on ℝ^R: nodes k h_r for |k| ≤ K_r in each direction."""

    steps: tuple[float, ...]
    """h_r."""
    counts: tuple[int, ...]
    """K_r."""
    error: float
    """e: the certified error of each integral, before rounding."""
    certified_error: float = math.inf
    """Bound on the error of every mean, standard deviation and covariance of ᾱ, for one model."""

    @property
    def reach(self) -> float:
        """X: how far out the nodes go."""
        return max((step * k for step, k in zip(self.steps, self.counts, strict=True)), default=0.0)

    @property
    def nodes(self) -> int:
        """How many nodes the rule has."""
        return math.prod(2 * count + 1 for count in self.counts)

    def chunks(self) -> Iterator[tuple[Float[np.ndarray, "R m"], Float[np.ndarray, " m"]]]:
        """Yield nodes and weights, a bounded number at a time."""
        axes = [
            step * np.arange(-count, count + 1.0)
            for step, count in zip(self.steps, self.counts, strict=True)
        ]
        densities = [
            np.exp(-0.5 * axis * axis) * (step / math.sqrt(2.0 * math.pi))
            for axis, step in zip(axes, self.steps, strict=True)
        ]
        if len(axes) == 1 and len(axes[0]) <= CHUNK:
            yield axes[0][None], densities[0]
            return
        if not axes:
            yield np.zeros((0, 1)), np.ones(1)
            return
        shape = tuple(len(axis) for axis in axes)
        for start in range(0, self.nodes, CHUNK):
            grid = np.unravel_index(np.arange(start, min(start + CHUNK, self.nodes)), shape)
            nodes = np.stack([axis[place] for axis, place in zip(axes, grid, strict=True)])
            weights = np.ones(nodes.shape[1])
            for density, place in zip(densities, grid, strict=True):
                weights = weights * density[place]
            yield nodes, weights


def slopes(model: LogitModel) -> Float[np.ndarray, " R"]:
    """Return max_h |ℓ_h| of each noisy direction: how steeply it moves the logits."""
    steepest = np.abs(model.factors).max(axis=1, initial=0.0)
    return np.concatenate(
        [np.zeros(0), *(row[:rank] for row, rank in zip(steepest, model.ranks, strict=True))]
    )


def places(model: LogitModel, nodes: Float[np.ndarray, "R m"]) -> Float[np.ndarray, "N r m"]:
    """Return coordinates ξ_1 … ξ_R as the noise of each noisy key."""
    N, _, width = model.factors.shape
    if N == 1:
        return nodes[None]
    xi = np.zeros((N, width, nodes.shape[1]))
    start = 0
    for row, rank in enumerate(model.ranks):
        xi[row, :rank] = nodes[start : start + rank]
        start += rank
    return xi


def plan(steepness: Float[np.ndarray, " R"], error: float) -> Rule:
    """Return the smallest rule found whose certified error is at most `error`."""
    R = len(steepness)
    share = 0.49 * error / max(R, 1)
    X = -float(ndtri(share / 2.0))
    steps, counts, total = [], [], 0.0
    for slope in steepness:
        # Beyond a ≈ √(2 ln(1/share)) the factor exp(a²/2) eats what the wider strip gives.
        widest = min(
            math.pi / slope if slope > 0 else math.inf, 1.0 + math.sqrt(-2.0 * math.log(share))
        )
        a = widest * _FRACTIONS
        M = np.exp(0.5 * a * a) / np.cos(0.5 * slope * a) ** 2
        step = float((2.0 * math.pi * a / np.log1p(2.0 * M / share)).max())
        count = math.ceil(X / step)
        steps.append(step)
        counts.append(count)
        total += share + 2.0 * float(ndtr(-count * step))
    return Rule(steps=tuple(steps), counts=tuple(counts), error=total * (1.0 + total) ** R)


def certified_rule(model: LogitModel, certified_error: Any) -> tuple[Rule | None, str | None]:
    """Return a rule that reaches the certified error, or why there is none."""
    certified_error = between("certified_error", certified_error, 0.99e-9, 1.01e-2)
    R = model.dimensions
    if R > LARGEST_DIMENSION:
        return None, (
            f"{R} independent directions of noise reach the logits; "
            f"quadrature is used up to {LARGEST_DIMENSION}"
        )
    # √(8e) ≤ certified_error/√2 leaves room for rounding.
    rule = plan(slopes(model), certified_error * certified_error / 16.0)
    if rule.nodes > NODE_BUDGET:
        return None, f"it would need {rule.nodes:,} nodes; {NODE_BUDGET:,} are allowed"
    bound = math.sqrt(8.0 * rule.error) + rounding(model, rule.reach)
    if bound > certified_error:
        return None, (
            f"rounding of such large logits leaves an error of {bound:.1e}, "
            f"more than the {certified_error:.1e} asked for"
        )
    return replace(rule, certified_error=bound), None


def feature_moments(model: LogitModel, rule: Rule) -> Moments:
    """Integrate mean and covariance of the features."""
    moments = Moments(model.features)
    for nodes, weights in rule.chunks():
        moments.add(model.feature_values(places(model, nodes)), weights)
    return moments


def rounding(model: LogitModel, X: float) -> float:
    """Bound what rounding does to the features and their sums while |ξ_r| ≤ X.

    A logit z is off by a few ulps of |z|, a weight α by at most α(1−α) ≤ ¼ of the difference
    of two such errors, and sums over a chunk by `CHUNK` ulps at the very worst.
    """
    largest = float(np.abs(model.means).max(initial=0.0))
    swing = X * float(np.abs(model.factors).sum(axis=2).max(initial=0.0))
    return EPSILON * (CHUNK + 4.0 * (largest + swing)) + model.dropped


def standard_grid(count: int) -> Float[np.ndarray, " m"]:
    """Return the midpoints of `count` intervals of equal normal probability."""
    return np.asarray(ndtri((np.arange(count) + 0.5) / count))


# How probable is ‖c − t‖ > ε? An interval that is certain to hold it.
#
# ℝ^R is cut into boxes. On a box every difference of two logits of one head is an affine
# function of ξ, hence in a known interval, and so is every weight:
#
#     α_hi = 1 / Σ_j exp(z_hj − z_hi).
#
# From the box's centre to any other of its points, c moves by at most Σ |Δα_hi| ‖v_i/H − b_h‖
# (see `Readout.leverage`). A box is decided when that cannot carry ‖c − t‖ across ε; the others
# are cut in two along the direction that moves the logits most. What stays undecided, and what
# lies beyond |ξ_r| ≤ 8.3, is the width of the answer.

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


# Noisy attention when every query grows without bound: β → ∞ in β q_1 … β q_H.
#
# Softmax becomes a choice: a head reads the key of largest logit, and ties are shared equally.
# When one standard normal ξ moves one noisy key, head h reads it exactly for
# ℓ_h ξ > M_h − z_h, with M_h the largest quiet logit. These thresholds cut the line of ξ into at
# most H + 1 pieces; on each piece ᾱ is constant, so moments and probabilities are finite sums:
#
#     P(ξ_lo < ξ < ξ_hi) = Φ(ξ_hi) − Φ(ξ_lo).
#
# Two heads on two perpendicular unit keys, one noisy with variance v along itself, miss that key
# with probability Φ(−1/√v); one head on their sum reads one or the other, each half of the time.

TIE = 1e-11
"""Logits closer than this, relative to the largest, count as a tie."""


@dataclass(frozen=True, eq=False, kw_only=True)
class NoiseLimit(Record):
    """What the study tends to as β → ∞."""

    mean: Float[np.ndarray, " n"]
    """Limit of the mean of ᾱ."""
    std: Float[np.ndarray, " n"]
    """Limit of its standard deviation."""
    failure_probability: float | None
    """Limit of P(‖c − t‖ > ε); None when a limiting c lies at distance ε exactly."""
    outcomes: Float[np.ndarray, "outcomes n"]
    """The values ᾱ takes in the limit …"""
    probabilities: Float[np.ndarray, " outcomes"]
    """… and how probable each is."""


def hard_limit(
    model: LogitModel, readout: Readout, radius: float
) -> tuple[NoiseLimit | None, str | None]:
    """Return the limit β → ∞ in closed form, or why none is known here."""
    if model.dimensions > 1:
        return None, (
            f"{model.dimensions} independent directions of noise reach the logits; "
            "the closed form is for one"
        )
    still, thresholds = _still_choices(model), _thresholds(model)
    ends = np.unique([-math.inf, *thresholds[np.isfinite(thresholds)], math.inf])
    outcomes, probabilities = [], []
    for low, high in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        probability = _between(low, high)
        if probability > 0:
            outcomes.append(_choices(model, still, thresholds, low, high).mean(axis=0))
            probabilities.append(probability)
    alpha, weights = np.array(outcomes), np.array(probabilities)
    mean = weights @ alpha
    distances = np.linalg.norm(readout.output(alpha.T) - readout.target[:, None], axis=0)
    on_the_edge = np.abs(distances - radius) <= 1e-9 * readout.size()
    failing = float(weights[distances > radius].sum())
    limit = NoiseLimit(
        mean=mean,
        std=np.sqrt(weights @ (alpha - mean) ** 2),
        failure_probability=None if on_the_edge.any() else min(1.0, failing),
        outcomes=alpha,
        probabilities=weights,
    )
    return limit, None


def _thresholds(model: LogitModel) -> Array:
    """Return where each head starts or stops to read the noisy key; NaN where it never changes."""
    thresholds = np.full(model.heads, math.nan)
    if len(model.noisy) and len(model.quiet):
        slopes = model.factors[0, :, 0]
        moved = slopes != 0
        gap = model.means[:, model.quiet].max(axis=1) - model.means[:, model.noisy[0]]
        thresholds[moved] = gap[moved] / slopes[moved]
    return thresholds


def _still_choices(model: LogitModel) -> Array:
    """Return what each head reads, ties shared, where noise does not reach it or does not win."""
    logits = model.means.copy()
    if len(model.noisy) and len(model.quiet):
        moved = model.factors[0, :, 0] != 0
        logits[moved, model.noisy[0]] = -math.inf
    tie = TIE * max(1e-300, float(np.abs(model.means).max()))
    chosen = logits >= logits.max(axis=1, keepdims=True) - tie
    return chosen / chosen.sum(axis=1, keepdims=True)


def _choices(model: LogitModel, still: Array, thresholds: Array, low: float, high: float) -> Array:
    """Return what each head reads while low < ξ < high."""
    choices = still.copy()
    if len(model.noisy):
        slopes = model.factors[0, :, 0]
        wins = np.where(slopes > 0, low >= thresholds, high <= thresholds)  # False for NaN
        choices[wins] = 0.0
        choices[wins, model.noisy[0]] = 1.0
    return choices


def _between(low: float, high: float) -> float:
    """Return Φ(high) − Φ(low), from the tail in which it does not cancel."""
    if low > 0:
        low, high = -high, -low
    return float(ndtr(high) - ndtr(low))
