"""Choices of heads, found or hand-made, judged by one evaluation.

The hand-made ones are what one would try first: a head on each target key, all heads on the
sum of the target keys, all heads on one of them, a head on each that also turns away from all
other keys, and all heads only turned away from them, which does not look at the target at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from heedful.attention.arrays import Array
from heedful.attention.gaussian import GaussianKeys
from heedful.attention.logits import logit_model
from heedful.attention.operation import Scale
from heedful.attention.quadrature import certified_rule, feature_moments
from heedful.attention.readout import Readout
from heedful.attention.sampling import sample
from heedful.records import Record

EVALUATION_DRAWS = 20_000
"""Draws behind an error that no quadrature can give."""
ONE_EACH, ONE_EACH_AWAY, ON_THE_SUM, AWAY = (
    "one head a target key",
    "one head a target key, away from all others",
    "all heads on the sum",
    "all heads away from the other keys",
)


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadsChoice(Record):
    """One choice of queries, and how well it withstands the noise."""

    name: str
    """What the choice is."""
    queries: Float[np.ndarray, "H d"]
    """The queries."""
    error: float
    """√E‖c − target‖², the root mean square distance."""
    expected_squared_error: float
    """E‖c − target‖²."""
    standard_error: float
    """Standard error of `expected_squared_error`; 0 when it comes from a quadrature."""
    squared_bias: float
    """‖E c − target‖²."""
    variance: float
    """tr Cov c."""
    mass: float
    """Expected mass on the target set."""
    method: str
    """"exact" or "sampled"."""


def judge(
    name: str,
    keys: GaussianKeys,
    queries: Float[np.ndarray, "H d"],
    *,
    values: Any,
    target: Float[np.ndarray, " v"],
    on: Bool[np.ndarray, " n"],
    scale: Scale,
    seed: int,
) -> HeadsChoice:
    """Evaluate queries: exactly where a quadrature can, by draws otherwise.

    All choices judged with one seed meet the same draws, so that they differ by their merit.
    """
    model = logit_model(keys, queries, scale)
    readout = Readout(model, values, target)
    certified, _ = certified_rule(model, 1e-6)
    if certified is not None:
        moments = feature_moments(model, certified.rule)
        mean, se = moments.mean, 0.0
        squared_bias = _squared_distance(readout, mean)
        variance = float(readout.variances(moments.covariance).sum())
    else:
        # Stream seeds of a study are small numbers; this keeps the evaluation apart from them.
        drawn = sample(model, readout, EVALUATION_DRAWS, seed + 0x5EED, radius=math.inf)
        mean, se = drawn.mean, drawn.squared_distance[1]
        squared_bias = _squared_distance(readout, mean)
        variance = max(0.0, drawn.squared_distance[0] - squared_bias)
    squared = squared_bias + variance
    return HeadsChoice(
        name=name,
        queries=queries,
        error=math.sqrt(squared),
        expected_squared_error=squared,
        standard_error=se,
        squared_bias=squared_bias,
        variance=variance,
        mass=float(model.spread(mean)[on].sum()),
        method="exact" if certified is not None else "sampled",
    )


def hand_made(
    keys: GaussianKeys, weights: Float[np.ndarray, " n"], heads: int, norm: float
) -> dict[str, Float[np.ndarray, "H d"]]:
    """Return the hand-made choices at the full norm; those without a direction are left out."""
    targets = np.flatnonzero(weights)
    first = int(targets[weights[targets].argmax()])
    own = keys.means[_shared_out(weights, heads)]
    directions = {
        ONE_EACH: own,
        ONE_EACH_AWAY: _unit(own) - _unit(keys.means.sum(axis=0) - own),
        ON_THE_SUM: np.repeat((weights @ keys.means)[None], heads, axis=0),
        f"all heads on key {first}": np.repeat(keys.means[first][None], heads, axis=0),
        AWAY: np.repeat(-keys.means[weights == 0].sum(axis=0)[None], heads, axis=0),
    }
    lengths = {name: np.linalg.norm(Q, axis=1, keepdims=True) for name, Q in directions.items()}
    return {
        name: norm * Q / lengths[name]
        for name, Q in directions.items()
        if lengths[name].min() > 1e-9 * np.abs(keys.means).max()
    }


def _squared_distance(readout: Readout, features: Array) -> float:
    return float(((readout.output_of(features) - readout.target) ** 2).sum())


def _unit(rows: Array) -> Array:
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


def _shared_out(weights: Array, heads: int) -> Array:
    """Return a key for each head, in proportion to the weights (largest remainders)."""
    quota = weights * heads
    seats = np.floor(quota + 1e-12).astype(int)
    rest = np.argsort(-(quota - seats), kind="stable")[: heads - int(seats.sum())]
    seats[rest] += 1
    return np.repeat(np.arange(len(weights)), seats)
