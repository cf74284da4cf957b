"""Mean and covariance of a stream, chunk by chunk, without cancellation.

Two chunks with weights W_a, W_b, means m_a, m_b and centred sums S_a, S_b merge exactly
(Chan, Golub and LeVeque):

    m = m_a + (m_b − m_a) W_b/W,    S = S_a + S_b + (m_b − m_a)(m_b − m_a)ᵀ W_a W_b/W.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float


class Moments:
    """Running mean and covariance (or only variances) of p numbers."""

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
