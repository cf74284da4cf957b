"""How α and c are distributed when the keys are Gaussian.

H heads share the keys k_i ~ N(μ_i, Σ_i), and the layer gives c = (1/H) Σ_h Σ_i α_hi v_i. Every
α reported here is ᾱ_i = (1/H) Σ_h α_hi, so that c = Σ ᾱ_i v_i.

`study_noise` answers three times where it can: exactly (a quadrature whose error is certified,
when at most three directions of noise reach the logits), by draws (with standard errors), and
in the limit of ever larger queries (in closed form). The answers check one another.

**Exactly**, by a trapezoidal rule with a certified error.
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

**By draws**, with standard errors.
Draws come in blocks; block b has its own random stream, the b-th child of the seed, so the
result depends on the seed and on nothing else, and memory stays the same for a thousand draws
and for a billion. Means and covariances are merged without cancellation (`stats.Moments`).

Standard errors: of a mean, s/√N; of a standard deviation, √((m₄ − s⁴)/N)/(2s) with m₄ the
fourth central moment; of a probability, Wilson's interval (95 %), which stays honest at 0
and at N.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

from heedful.arrays import EPSILON, Array, between, number_of, whole
from heedful.attention.noise import (
    GaussianKeys,
    LogitModel,
    Readout,
    logit_model,
    weight_covariance,
    weight_variances,
)
from heedful.attention.operation import Scale, average_weights
from heedful.errors import InputError
from heedful.records import Record
from heedful.stats import Moments, standard_errors, wilson

# Exact moments, by quadrature ----------------------------------------------------------------

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


# The same moments, by draws ------------------------------------------------------------------

BLOCK_NUMBERS = 1 << 16
"""About how many logits are held at once."""
LARGEST_BLOCK, SMALLEST_BLOCK = 8192, 32
FULL_COVARIANCE = 320
"""Up to this many features their whole covariance is kept; beyond, only variances."""
KEPT_DRAWS = 20_000
"""Quantiles come from at most this many of the draws …"""
KEPT_NUMBERS = 2_000_000
"""… and from at most this many numbers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledFeatures:
    """What `sample` keeps of its draws."""

    draws: int
    mean: Float[np.ndarray, " p"]
    covariance: Float[np.ndarray, "p p"] | None
    """Covariance of the features; None above `FULL_COVARIANCE` of them."""
    variances: Float[np.ndarray, " n"]
    """Variances of ᾱ."""
    fourth: Float[np.ndarray, " n"]
    """Fourth central moments of ᾱ."""
    output_variances: Float[np.ndarray, " v"]
    failures: int
    """Draws with ‖c − t‖ > ε."""
    squared_distance: tuple[float, float]
    """Mean of ‖c − t‖² and its standard error."""
    kept_features: Float[np.ndarray, "p kept"]
    """Features of the first draws, for quantiles."""
    kept_distances: Float[np.ndarray, " kept"]


class _Fourth:
    """Fourth moments of ᾱ about a centre taken from the first block.

    A quiet key's ᾱ is a combination w·γ of the heads' quiet masses. With the products
    P = (γ_g γ_h), g ≤ h, its fourth moment is aᵀ E[PPᵀ] a for a made of w, so keys cost nothing
    while drawing.
    """

    def __init__(self, model: LogitModel) -> None:
        self.model = model
        self.centre: Array | None = None
        self.pairs = np.triu_indices(model.heads if len(model.quiet) else 0)
        self.noisy: Array = np.zeros(len(model.noisy))
        self.quiet: Array = np.zeros((len(self.pairs[0]), len(self.pairs[0])))
        self.count = 0

    def add(self, features: Array) -> None:
        if self.centre is None:
            self.centre = features.mean(axis=1, keepdims=True)
        centred = features - self.centre
        N = len(self.noisy)
        squared = centred[:N] * centred[:N]
        self.noisy += (squared * squared).sum(axis=1)
        products = centred[N:][self.pairs[0]] * centred[N:][self.pairs[1]]
        self.quiet += products @ products.T
        self.count += features.shape[1]

    def of_keys(self) -> Array:
        model = self.model
        fourth = np.empty(model.n)
        fourth[model.noisy] = self.noisy
        if len(model.quiet):
            W = model.quiet_map
            twice = np.where(self.pairs[0] == self.pairs[1], 1.0, 2.0)
            a = W[:, self.pairs[0]] * W[:, self.pairs[1]] * twice
            fourth[model.quiet] = ((a @ self.quiet) * a).sum(axis=1)
        return fourth.clip(min=0.0) / self.count


def sample(
    model: LogitModel, readout: Readout, draws: int, seed: int, radius: float
) -> SampledFeatures:
    """Draw the logits `draws` times and keep what the study needs."""
    p, N = model.features, len(model.noisy)
    full = p <= FULL_COVARIANCE
    moments, fourth = Moments(p, full=full), _Fourth(model)
    quiet, outputs = Moments(p - N), Moments(len(readout.target), full=False)
    distances = Moments(1, full=False)
    keep = min(draws, KEPT_DRAWS, max(1, KEPT_NUMBERS // max(p, 1)))
    kept: list[tuple[Array, Array]] = []
    failures = kept_count = 0
    for features in _blocks(model, draws, seed):
        distance = readout.distances(features)
        moments.add(features)
        fourth.add(features)
        distances.add(distance[None] ** 2)
        failures += int((distance > radius).sum())
        if not full:
            quiet.add(features[N:])
            if readout.values is not None:
                outputs.add(readout.output_of(features))
        if kept_count < keep:
            take = min(keep - kept_count, len(distance))
            kept.append((features[:, :take], distance[:take]))
            kept_count += take
    covariance = moments.sample_covariance
    if full:
        variances = weight_variances(model, covariance)
        output_variances = readout.variances(covariance)
    else:
        variances = np.empty(model.n)
        variances[model.noisy] = covariance[:N]
        if len(model.quiet):
            W = model.quiet_map
            variances[model.quiet] = ((W @ quiet.sample_covariance) * W).sum(axis=1)
        # Without values c is ᾱ itself.
        output_variances = variances if readout.values is None else outputs.sample_covariance
    return SampledFeatures(
        draws=draws,
        mean=moments.mean,
        covariance=covariance if full else None,
        variances=variances,
        fourth=fourth.of_keys(),
        output_variances=output_variances,
        failures=failures,
        squared_distance=(
            float(distances.mean[0]),
            math.sqrt(float(distances.sample_covariance[0]) / draws),
        ),
        kept_features=np.concatenate([part for part, _ in kept], axis=1),
        kept_distances=np.concatenate([part for _, part in kept]),
    )


def _blocks(model: LogitModel, draws: int, seed: int) -> Any:
    """Yield the features of the draws, block by block."""
    N, H, width = model.factors.shape
    size = BLOCK_NUMBERS // max(1, N * (H + width))
    size = min(LARGEST_BLOCK, max(SMALLEST_BLOCK, size))
    # `spawn(1)` one child at a time: the list of all children would grow with the draws.
    parent = np.random.SeedSequence(seed)
    for start in range(0, draws, size):
        stream = np.random.Generator(np.random.PCG64(parent.spawn(1)[0]))
        xi = stream.standard_normal((N, width, min(size, draws - start)))
        yield model.feature_values(xi)


# The study -----------------------------------------------------------------------------------

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles that a study reports."""
TABLE_LIMIT = 256
"""Covariances and quantiles over the keys are reported for at most this many keys."""
QUANTILE_PLACES = 4096
"""Equally probable places from which exact quantiles are read."""
NOT_ASKED = "it was not asked for"


@dataclass(frozen=True, eq=False, kw_only=True)
class WeightMoments(Record):
    """Mean, standard deviation and covariance of ᾱ."""

    mean: Float[np.ndarray, " n"]
    """E[ᾱ_i], for each key."""
    std: Float[np.ndarray, " n"]
    """Standard deviation of ᾱ_i."""
    covariance: Float[np.ndarray, "n n"] | None
    """Covariance of ᾱ; None above 256 keys."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactMoments(WeightMoments):
    """The moments of ᾱ by quadrature."""

    certified_error: float
    """No entry of mean, std or covariance is farther than this from the truth."""
    nodes: int
    """Nodes of the quadrature."""


@dataclass(frozen=True, eq=False, kw_only=True)
class NoiseMoments(WeightMoments):
    """What exact and sampled answers have in common."""

    failure_probability: float
    """P(‖c − target‖ > radius)."""
    failure_low: float
    """Lower end of an interval for it: certified when exact, 95 % (Wilson) when sampled."""
    failure_high: float
    """Upper end of that interval."""
    output_mean: Float[np.ndarray, " v"]
    """E[c]."""
    output_std: Float[np.ndarray, " v"]
    """Standard deviation of each entry of c."""
    mean_squared_error: float
    """E‖c − target‖² = ‖E c − target‖² + tr Cov c."""
    squared_bias: float
    """‖E c − target‖²."""
    quantile_levels: tuple[float, ...]
    """The levels of the quantiles below."""
    quantiles: Float[np.ndarray, "levels n"] | None
    """Quantiles of ᾱ, one row a level; None above 256 keys or where the exact ones are unknown."""
    distance_quantiles: Float[np.ndarray, " levels"] | None
    """Quantiles of ‖c − target‖."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactNoise(NoiseMoments, ExactMoments):
    """The answer by quadrature."""

    failure_error: float
    """`failure_probability` is no farther than this from the truth."""
    quantile_resolution: float | None
    """Quantiles are those of a level at most this far from the one asked for."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledNoise(NoiseMoments):
    """The answer by draws."""

    draws: int
    """How many times all keys were drawn (their logits, that is)."""
    seed: int
    """The same seed gives the same draws."""
    mean_se: Float[np.ndarray, " n"]
    """Standard error of `mean`."""
    std_se: Float[np.ndarray, " n"]
    """Standard error of `std`."""
    mean_squared_error_se: float
    """Standard error of `mean_squared_error`."""
    quantile_draws: int
    """How many draws the quantiles come from."""


CLOUD_DRAWS = 300
"""Draws of a noisy key that a figure shows as points."""


@dataclass(frozen=True, eq=False, kw_only=True)
class KeyCloud(Record):
    """Draws of one noisy key in a plane with its mean along the first axis (figure 1)."""

    key: int
    """Which key, from 0."""
    mean: Float[np.ndarray, " 2"]
    """μ_i in the plane."""
    draws: Float[np.ndarray, "m 2"]
    """Draws of k_i in the plane."""

    @classmethod
    def of(cls, keys: GaussianKeys, seed: int = 0) -> KeyCloud | None:
        """Return draws of the noisiest key; None if no key is noisy, or its mean is 0."""
        spread, d = keys.spreads(), keys.d
        key = int(np.argmax(spread))
        mean = keys.means[key]
        length = float(np.linalg.norm(mean))
        if spread[key] == 0 or length == 0 or d < 2:
            return None
        sizes, axes = np.linalg.eigh(keys.covariance(key))
        normal = np.random.default_rng(seed).standard_normal((CLOUD_DRAWS, d))
        draws = mean + (normal * np.sqrt(np.maximum(sizes, 0))) @ axes.T
        first = mean / length
        # The second axis is the noisiest direction across the mean, whichever there is.
        across = axes - np.outer(first, first @ axes)
        weight = np.linalg.norm(across, axis=0) * np.sqrt(np.maximum(sizes, 0) + 1e-12)
        second = across[:, int(np.argmax(weight))]
        plane = np.stack([first, second / np.linalg.norm(second)], axis=1)
        return cls(key=key, mean=mean @ plane, draws=draws @ plane)


@dataclass(frozen=True, eq=False, kw_only=True)
class NoiseStudy(Record):
    """The distribution of α and c under noisy keys."""

    keys: int
    """n."""
    heads: int
    """H."""
    names: tuple[str, ...]
    """What the heads are called."""
    noisy: tuple[int, ...]
    """The keys whose noise reaches some logit."""
    dimensions: int
    """How many independent directions of noise reach the logits."""
    radius: float
    """ε of the failure ‖c − target‖ > ε."""
    target: Float[np.ndarray, " v"]
    """Where c should be; the output without noise when none was given."""
    noiseless: Float[np.ndarray, " n"]
    """ᾱ if every key were its mean."""
    exact: ExactNoise | None
    """The answer by quadrature."""
    exact_reason: str | None
    """Why there is no exact answer."""
    sampled: SampledNoise
    """The answer by draws."""
    limit: NoiseLimit | None
    """The answer as the queries grow without bound."""
    limit_reason: str | None
    """Why there is no such limit."""
    agreement: float | None
    """Largest difference of exact and sampled mean and std, in standard errors."""
    cloud: KeyCloud | None = None
    """Draws of the noisiest key, for the figure."""


def study_noise(
    keys: GaussianKeys,
    queries: Any,
    *,
    values: Any = None,
    target: Any = None,
    of: Iterable[int] | None = None,
    radius: Any = 0.1,
    draws: Any = 10_000,
    seed: Any = 0,
    scale: Scale = 1.0,
    exact: bool = True,
    certified_error: Any = 1e-6,
    names: Sequence[str] = (),
) -> NoiseStudy:
    """Study what noisy keys do to the weights and the output of one head or several.

    `queries` is (H, d), or (d) for one head; `values` is (n, v), the unit vectors when left out;
    `target` is where c should be, or `of` names the keys whose average value it is; left out,
    it is the output without noise. `names` labels the heads in tables and figures.

    >>> keys = GaussianKeys.of(np.eye(10, 16), noisy={0: 0.5})
    >>> two_heads = study_noise(keys, 50 * np.eye(10, 16)[:2])
    >>> float(two_heads.exact.std[0].round(3))
    0.138
    >>> round(two_heads.limit.failure_probability, 4)
    0.0786
    """
    draws, seed = whole("draws", draws, 2), whole("seed", seed, 0)
    radius = number_of("radius", radius, above=0)
    model = logit_model(keys, queries, scale)
    readout = _readout(model, values, target, of)
    rule, refusal = certified_rule(model, certified_error) if exact else (None, NOT_ASKED)
    known = None if rule is None else _exact(model, readout, radius, rule)
    sampled = _sampled(model, readout, radius, draws, seed)
    limit, no_limit = hard_limit(model, readout, radius)
    return NoiseStudy(
        keys=model.n,
        heads=model.heads,
        names=_head_names(names, model.heads),
        noisy=tuple(model.noisy.tolist()),
        dimensions=model.dimensions,
        radius=radius,
        target=readout.target,
        noiseless=model.at_the_means(),
        exact=known,
        exact_reason=refusal,
        sampled=sampled,
        limit=limit,
        limit_reason=no_limit,
        agreement=None if known is None else _agreement(known, sampled),
        cloud=KeyCloud.of(keys, seed),
    )


def exact_moments(
    keys: GaussianKeys, queries: Any, *, scale: Scale = 1.0, certified_error: Any = 1e-6
) -> ExactMoments:
    """Return mean, standard deviation and covariance of ᾱ by quadrature, and only these."""
    model = logit_model(keys, queries, scale)
    rule, refusal = certified_rule(model, certified_error)
    if rule is None:
        raise InputError(
            "keys", f"have no exact moments here: {refusal}", hint="use study_noise, which draws"
        )
    moments = feature_moments(model, rule)
    return ExactMoments(
        mean=model.spread(moments.mean),
        std=np.sqrt(weight_variances(model, moments.covariance)),
        covariance=_table(model, moments.covariance),
        certified_error=rule.certified_error,
        nodes=rule.nodes,
    )


def sampled_noise(
    keys: GaussianKeys, queries: Any, *, draws: Any, seed: Any = 0, scale: Scale = 1.0
) -> SampledNoise:
    """Return the answer by draws alone, with values and target left at their defaults."""
    model = logit_model(keys, queries, scale)
    draws, seed = whole("draws", draws, 2), whole("seed", seed, 0)
    return _sampled(model, Readout(model), 0.1, draws, seed)


def _readout(model: LogitModel, values: Any, target: Any, of: Iterable[int] | None) -> Readout:
    if of is None:
        return Readout(model, values, target)
    if target is not None:
        raise InputError(
            "of", "both `of` and `target` were given", expected="one of them says where c should be"
        )
    return Readout(model, values, Readout(model, values).output(average_weights(of, model.n)))


def _head_names(names: Sequence[str], heads: int) -> tuple[str, ...]:
    if names and len(names) != heads:
        raise InputError("names", f"has {len(names)} names", expected=f"there are {heads} heads")
    return tuple(names) or tuple(f"head {number}" for number in range(heads))


def _exact(model: LogitModel, readout: Readout, radius: float, rule: Rule) -> ExactNoise:
    moments = feature_moments(model, rule)
    failure = failure_probability(model, readout, radius)
    quantiles, distance_quantiles, resolution = _exact_quantiles(model, readout)
    output_mean = readout.output_of(moments.mean)
    output_variances = readout.variances(moments.covariance)
    squared_bias = float(((output_mean - readout.target) ** 2).sum())
    return ExactNoise(
        mean=model.spread(moments.mean),
        std=np.sqrt(weight_variances(model, moments.covariance)),
        covariance=_table(model, moments.covariance),
        failure_probability=failure.value,
        failure_low=failure.low,
        failure_high=failure.high,
        output_mean=output_mean,
        output_std=np.sqrt(output_variances),
        mean_squared_error=squared_bias + float(output_variances.sum()),
        squared_bias=squared_bias,
        quantile_levels=LEVELS,
        quantiles=quantiles,
        distance_quantiles=distance_quantiles,
        certified_error=rule.certified_error,
        failure_error=failure.error,
        nodes=rule.nodes,
        quantile_resolution=resolution,
    )


def _sampled(
    model: LogitModel, readout: Readout, radius: float, draws: int, seed: int
) -> SampledNoise:
    drawn = sample(model, readout, draws, seed, radius)
    mean_se, std_se = standard_errors(drawn.variances, drawn.fourth, drawn.draws)
    low, high = wilson(drawn.failures, draws)
    output_mean = readout.output_of(drawn.mean)
    return SampledNoise(
        mean=model.spread(drawn.mean),
        std=np.sqrt(drawn.variances),
        covariance=None if drawn.covariance is None else _table(model, drawn.covariance),
        failure_probability=drawn.failures / draws,
        failure_low=low,
        failure_high=high,
        output_mean=output_mean,
        output_std=np.sqrt(drawn.output_variances),
        mean_squared_error=drawn.squared_distance[0],
        squared_bias=float(((output_mean - readout.target) ** 2).sum()),
        quantile_levels=LEVELS,
        quantiles=_key_quantiles(model, drawn.kept_features),
        distance_quantiles=np.quantile(drawn.kept_distances, LEVELS),
        draws=draws,
        seed=seed,
        mean_se=mean_se,
        std_se=std_se,
        mean_squared_error_se=drawn.squared_distance[1],
        quantile_draws=len(drawn.kept_distances),
    )


def _exact_quantiles(
    model: LogitModel, readout: Readout
) -> tuple[Array | None, Array | None, float | None]:
    """Read quantiles from equally probable places, where one direction is noisy (or none)."""
    if model.dimensions > 1:
        return None, None, None
    grid = standard_grid(QUANTILE_PLACES)[None] if model.dimensions else np.zeros((0, 1))
    features = model.feature_values(places(model, grid))
    distances = np.quantile(readout.distances(features), LEVELS)
    return _key_quantiles(model, features), distances, 1.0 / grid.shape[1]


def _key_quantiles(model: LogitModel, features: Array) -> Array | None:
    if model.n > TABLE_LIMIT:
        return None
    # A few keys at a time: all keys at all places would be the largest array of the study.
    few = max(1, 1_000_000 // max(1, features.shape[1]))
    N = len(model.noisy)
    quantiles = np.empty((len(LEVELS), model.n))
    quantiles[:, model.noisy] = np.quantile(features[:N], LEVELS, axis=1)
    # Quiet keys that are read alike have the same distribution: each kind is sorted once.
    kinds, kind_of = np.unique(model.quiet_map, axis=0, return_inverse=True)
    of_kinds = np.empty((len(LEVELS), len(kinds)))
    for start in range(0, len(kinds), few):
        some = slice(start, start + few)
        of_kinds[:, some] = np.quantile(kinds[some] @ features[N:], LEVELS, axis=1)
    quantiles[:, model.quiet] = of_kinds[:, kind_of.reshape(-1)]
    return quantiles


def _table(model: LogitModel, covariance: Array) -> Array | None:
    return weight_covariance(model, covariance) if model.n <= TABLE_LIMIT else None


def _agreement(exact: ExactNoise, sampled: SampledNoise) -> float:
    """Return the largest difference in standard errors; certified errors count as well."""
    ratios = [
        np.abs(known - drawn) / np.hypot(se, exact.certified_error)
        for known, drawn, se in (
            (exact.mean, sampled.mean, sampled.mean_se),
            (exact.std, sampled.std, sampled.std_se),
        )
    ]
    return float(np.max(ratios))
