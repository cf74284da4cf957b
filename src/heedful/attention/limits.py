"""Noisy attention when every query grows without bound: β → ∞ in β q_1 … β q_H.

Softmax becomes a choice: a head reads the key of largest logit, and ties are shared equally.
When one standard normal ξ moves one noisy key, head h reads it exactly for
ℓ_h ξ > M_h − z_h, with M_h the largest quiet logit. These thresholds cut the line of ξ into at
most H + 1 pieces; on each piece ᾱ is constant, so moments and probabilities are finite sums:

    P(ξ_lo < ξ < ξ_hi) = Φ(ξ_hi) − Φ(ξ_lo).

Two heads on two perpendicular unit keys, one noisy with variance v along itself, miss that
key with probability Φ(−1/√v); one head on their sum reads one or the other, each half of the time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from heedful.attention.arrays import Array
from heedful.attention.logits import LogitModel
from heedful.attention.readout import Readout
from heedful.records import Record

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


def limit_refusal(model: LogitModel) -> str | None:
    """Say why no closed form is known here, or None when there is one."""
    if model.dimensions > 1:
        return (
            f"{model.dimensions} independent directions of noise reach the logits; "
            "the closed form is for one"
        )
    return None


def hard_limit(model: LogitModel, readout: Readout, radius: float) -> NoiseLimit:
    """Return the limit β → ∞ in closed form; call `limit_refusal` first."""
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
    return NoiseLimit(
        mean=mean,
        std=np.sqrt(weights @ (alpha - mean) ** 2),
        failure_probability=None if on_the_edge.any() else min(1.0, failing),
        outcomes=alpha,
        probabilities=weights,
    )


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
