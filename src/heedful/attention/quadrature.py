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
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

from heedful.attention.logits import EPSILON, LogitModel
from heedful.attention.moments import Moments

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


@dataclass(frozen=True, kw_only=True)
class CertifiedRule:
    """A rule made for one model, with the error it guarantees there."""

    rule: Rule
    certified_error: float
    """Bound on the error of every mean, standard deviation and covariance of ᾱ."""


def certified_rule(
    model: LogitModel, certified_error: float
) -> tuple[CertifiedRule | None, str | None]:
    """Return a rule that reaches the certified error, or why there is none."""
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
    return CertifiedRule(rule=rule, certified_error=bound), None


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
