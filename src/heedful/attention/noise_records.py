"""What a study of noisy keys gives: the same questions answered exactly, by draws, in the limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from heedful.attention.limits import NoiseLimit
from heedful.records import Record


@dataclass(frozen=True, eq=False, kw_only=True)
class NoiseMoments(Record):
    """What exact and sampled answers have in common."""

    mean: Float[np.ndarray, " n"]
    """E[ᾱ_i], for each key."""
    std: Float[np.ndarray, " n"]
    """Standard deviation of ᾱ_i."""
    covariance: Float[np.ndarray, "n n"] | None
    """Covariance of ᾱ; None above 256 keys."""
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
class ExactNoise(NoiseMoments):
    """The answer by quadrature."""

    certified_error: float
    """No entry of mean, std or covariance is farther than this from the truth."""
    failure_error: float
    """`failure_probability` is no farther than this from the truth."""
    nodes: int
    """Nodes of the quadrature."""
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


@dataclass(frozen=True, eq=False, kw_only=True)
class WeightMoments(Record):
    """Mean, standard deviation and covariance of ᾱ, and nothing else."""

    mean: Float[np.ndarray, " n"]
    """E[ᾱ_i], for each key."""
    std: Float[np.ndarray, " n"]
    """Standard deviation of ᾱ_i."""
    covariance: Float[np.ndarray, "n n"] | None
    """Covariance of ᾱ; None above 256 keys."""
    certified_error: float
    """No entry is farther than this from the truth."""
    nodes: int
    """Nodes of the quadrature."""
