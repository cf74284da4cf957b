"""Moments of noisy attention by drawing logits, with standard errors.

Draws come in blocks; block b has its own random stream, the b-th child of the seed, so the
result depends on the seed and on nothing else, and memory stays the same for a thousand draws
and for a billion. Means and covariances are merged without cancellation (`moments`).

Standard errors: of a mean, s/√N; of a standard deviation, √((m₄ − s⁴)/N)/(2s) with m₄ the
fourth central moment; of a probability, Wilson's interval (95 %), which stays honest at 0
and at N.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from heedful.arrays import Array
from heedful.attention.noise.gaussian import LogitModel, Readout, weight_variances
from heedful.stats import Moments

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
