"""Directions that lead, for many keys at once, by the smoothed perceptron.

For a key k_j the wanted q has a_i·q > 0 for the unit vectors a_i along k_j − k_i. A perceptron
needs about 1/δ² corrections to find it, where δ is the best possible min a_i·q of a unit q.
Smoothing its choice of the worst i into a softmax, and accelerating, needs about 1/δ:

    y_μ(q) = softmax(−Aq/μ)                                       θ = 2/(step + 3)
    q ← (1−θ)(q + θ Aᵀy) + θ² Aᵀy_μ(q),    μ ← (1−θ) μ,    y ← (1−θ) y + θ y_μ(q)

(Soheili and Peña, "A smooth perceptron algorithm", SIAM J. Optim. 22, 2012). Only Aᵀy is kept,
so a step is two matrix products for a whole block of keys. The coordinates are whitened first,
which makes δ larger. What comes out is a guess: leads are certified elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Float32, Int

STEPS = 96
"""At most so many steps for a block of keys."""
PATIENCE = 24
"""Steps without a new lead after which the rest of a block is left to the exact test."""


def smoothed_directions(
    keys: Float[np.ndarray, "n d"],
    pool: Int[np.ndarray, " p"],
    chosen: Int[np.ndarray, " m"],
    block: int,
) -> Iterator[tuple[Int[np.ndarray, " part"], Float32[np.ndarray, "part d"]]]:
    """Yield chosen keys, some at a time, with directions in which they lead the pool, or nearly.

    `pool` is ascending; at most `block` products of a key with a pool key are held at a time.
    """
    centre = keys[pool].mean(axis=0)
    whitening = _whitening(keys[pool] - centre)
    against = ((keys[pool] - centre) @ whitening).astype(np.float32)
    step = max(1, block // len(pool))
    for begin in range(0, len(chosen), step):
        part = chosen[begin : begin + step]
        own = np.searchsorted(pool, part)
        own[(own == len(pool)) | (pool[np.minimum(own, len(pool) - 1)] != part)] = -1
        aims = ((keys[part] - centre) @ whitening).astype(np.float32)
        found = _Block(aims, against, own).run()
        back = found.astype(np.float64) @ whitening.T
        back /= np.abs(back).max(axis=1, keepdims=True) + 1e-300
        yield part, back.astype(np.float32)


class _Block:
    """The smoothed perceptron for a block of keys; A is never formed."""

    def __init__(
        self,
        aims: Float32[np.ndarray, "m d"],
        against: Float32[np.ndarray, "p d"],
        own: Int[np.ndarray, " m"],
    ) -> None:
        self.aims, self.against = aims, against
        rows = np.flatnonzero(own >= 0)
        self.own = rows, own[rows]
        squared = (aims**2).sum(axis=1)[:, None] + (against**2).sum(axis=1) - 2 * aims @ against.T
        self.shorten = 1 / np.sqrt(np.maximum(squared, np.float32(1e-6)))
        self.shorten[self.own] = 0  # a key is no rival of itself

    def run(self) -> Float32[np.ndarray, "m d"]:
        even = np.full(self.shorten.shape, 1 / self.shorten.shape[1], dtype=np.float32)
        q, mu = self._pull(even), 1.0
        worst, pull = self._worst(q, mu)
        average, best, lead = pull, q, _per_unit(worst, q)
        last = 0
        for step in range(STEPS):
            theta = 2 / (step + 3)
            q = (1 - theta) * (q + theta * average) + theta**2 * pull
            mu *= 1 - theta
            worst, pull = self._worst(q, mu)
            average = (1 - theta) * average + theta * pull
            now = _per_unit(worst, q)
            last = step if ((now > 0) & (lead <= 0)).any() else last
            best = np.where((now > lead)[:, None], q, best)
            lead = np.maximum(now, lead)
            if step - last >= PATIENCE:
                break
        return best

    def _worst(
        self, q: Float32[np.ndarray, "m d"], mu: float
    ) -> tuple[Float32[np.ndarray, " m"], Float32[np.ndarray, "m d"]]:
        """Return min a_i·q, and Aᵀ softmax(−Aq/μ)."""
        leads = (q * self.aims).sum(axis=1, keepdims=True) - q @ self.against.T
        leads *= self.shorten
        leads[self.own] = np.inf
        worst = leads.min(axis=1)
        y = np.exp((worst[:, None] - leads) / np.float32(mu))
        y /= y.sum(axis=1, keepdims=True)
        return worst, self._pull(y)

    def _pull(self, y: Float32[np.ndarray, "m p"]) -> Float32[np.ndarray, "m d"]:
        y = y * self.shorten
        return np.asarray(self.aims * y.sum(axis=1, keepdims=True) - y @ self.against)


def _per_unit(
    lead: Float32[np.ndarray, " m"], q: Float32[np.ndarray, "m d"]
) -> Float32[np.ndarray, " m"]:
    return np.asarray(lead / (np.linalg.norm(q, axis=1) + np.float32(1e-30)))


def _whitening(cloud: Float[np.ndarray, "p d"]) -> Float[np.ndarray, "d d"]:
    values, vectors = np.linalg.eigh(cloud.T @ cloud / len(cloud))
    values = np.maximum(values, 1e-6 * max(float(values[-1]), 1e-300))
    return np.asarray(vectors / np.sqrt(values))
