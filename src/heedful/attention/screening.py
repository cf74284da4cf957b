"""Search for directions in which a key leads all others, many keys at a time.

A key that leads in some direction q is a vertex of the hull: k_j·q > k_i·q for all i ≠ j.
Scores of many directions over all keys are one matrix product, done in float32 in blocks. The
rounding of float32 is bounded, |error| ≤ (d + 8) 2⁻²⁴ ‖q‖ ‖k‖; where a lead is smaller than
its bound, the products are done again in float64. So a lead that is reported is certain.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float32, Int

from heedful.attention.smoothing import smoothed_directions

BLOCK = 2**24
"""Scores held at a time: 64 MB in float32, whatever the number of keys."""
SMOOTHED_FROM = 24
"""In fewer dimensions a quadratic programme a key is sooner solved than directions are sought."""

Report = Callable[[int], None]
"""Told how many keys have been decided since the last call."""


class Leads(NamedTuple):
    """What directions do for the keys they belong to."""

    margin: Float[np.ndarray, " m"]
    """Certified lead over all other keys of the unit direction; not positive: no certain lead."""
    rival: Int[np.ndarray, " m"]
    """The other key with the highest score."""


class Points(NamedTuple):
    """Keys in float64 and in float32, and the largest norm among them."""

    exact: Float[np.ndarray, "n d"]
    rough: Float32[np.ndarray, "n d"]
    largest: float

    @classmethod
    def of(cls, keys: Float[np.ndarray, "n d"]) -> Points:
        """Prepare keys that are centred and of order one."""
        largest = float(np.sqrt(np.einsum("ij,ij->i", keys, keys).max()))
        return cls(keys, keys.astype(np.float32), largest)


class Screened(NamedTuple):
    """What a search over directions found."""

    margin: Float[np.ndarray, " n"]
    """Certified margin of each key; 0 where none was found."""
    rival: Int[np.ndarray, " n"]
    """For each key, the rival met last."""
    left: Int[np.ndarray, " left"]
    """Keys without a certified margin."""
    stages: dict[str, int]
    """How many keys each stage decided."""


def leads_of(
    points: Points, owners: Int[np.ndarray, " m"], directions: Float32[np.ndarray, "m d"]
) -> Leads:
    """Return by how much each direction puts its owner above all other keys."""
    margin, rival = np.empty(len(owners)), np.empty(len(owners), dtype=np.int64)
    step = max(1, BLOCK // len(points.exact))
    for begin in range(0, len(owners), step):
        part = slice(begin, begin + step)
        margin[part], rival[part] = _block(points, owners[part], directions[part])
    return Leads(margin, rival)


def screen(points: Points, report: Report, deadline: float | None = None) -> Screened:
    """Try simple directions for every key, then better ones for those that are left.

    First the key itself (certain when all keys have one norm), then the key whitened, then,
    in many dimensions, what a smoothed perceptron finds against the outer keys known so far:
    block by block, as long as `deadline` (of `time.perf_counter`) has not come.
    """
    keys = points.exact
    n = len(keys)
    margin, rival = np.zeros(n), np.zeros(n, dtype=np.int64)
    stages: dict[str, int] = {}

    def attempt(
        stage: str, chosen: Int[np.ndarray, " m"], directions: Float32[np.ndarray, "m d"]
    ) -> None:
        leads = leads_of(points, chosen, directions)
        rival[chosen] = leads.rival
        won: Bool[np.ndarray, " m"] = leads.margin > 0
        margin[chosen[won]] = leads.margin[won]
        stages[stage] = stages.get(stage, 0) + int(won.sum())
        report(int(won.sum()))

    attempt("the key itself", np.arange(n), points.rough)
    left = np.flatnonzero(margin <= 0)
    if len(left):
        attempt("the key, whitened", left, _whitened(keys, left))
        left = np.flatnonzero(margin <= 0)
    if len(left) and keys.shape[1] >= SMOOTHED_FROM:
        pool = np.union1d(np.flatnonzero(margin > 0), rival[left])
        for part, directions in smoothed_directions(keys, pool, left, BLOCK):
            attempt("a smoothed perceptron", part, directions)
            if deadline is not None and time.perf_counter() > deadline:
                break
    return Screened(margin, rival, np.flatnonzero(margin <= 0), stages)


def _block(
    points: Points, owners: Int[np.ndarray, " m"], directions: Float32[np.ndarray, "m d"]
) -> tuple[Float[np.ndarray, " m"], Int[np.ndarray, " m"]]:
    rows = np.arange(len(owners))
    scores = directions @ points.rough.T
    own = scores[rows, owners].astype(np.float64)
    scores[rows, owners] = -np.inf
    rival = scores.argmax(axis=1)
    norms = np.linalg.norm(directions.astype(np.float64), axis=1)
    norms[norms == 0] = np.inf
    d = directions.shape[1]
    lead = (own - scores[rows, rival]) / norms
    margin = lead - 2 * (d + 8) * 2.0**-24 * points.largest
    unsure = np.flatnonzero((margin <= 0) & (lead > -2 * (lead - margin)))
    if len(unsure):
        exact = directions[unsure].astype(np.float64) @ points.exact.T
        places = np.arange(len(unsure))
        own = exact[places, owners[unsure]].copy()
        exact[places, owners[unsure]] = -np.inf
        rival[unsure] = exact.argmax(axis=1)
        lead = (own - exact[places, rival[unsure]]) / norms[unsure]
        margin[unsure] = lead - 2 * (d + 8) * 2.0**-53 * points.largest
    return margin, rival


def _whitened(
    keys: Float[np.ndarray, "n d"], chosen: Int[np.ndarray, " m"]
) -> Float32[np.ndarray, "m d"]:
    """Return Σ⁻¹k_j: the direction in which k_j leads a cloud of covariance Σ the most."""
    covariance = keys.T @ keys / len(keys)
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 1e-8 * max(float(values[-1]), 1e-300))
    whitened = (keys[chosen] @ vectors / values) @ vectors.T
    whitened /= np.abs(whitened).max(axis=1, keepdims=True) + 1e-300
    return np.asarray(whitened, dtype=np.float32)
