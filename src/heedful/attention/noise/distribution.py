"""Noisy keys studied: how α and c are distributed when the keys are Gaussian.

H heads share the keys k_i ~ N(μ_i, Σ_i), and the layer gives c = (1/H) Σ_h Σ_i α_hi v_i. Every
α reported here is ᾱ_i = (1/H) Σ_h α_hi, so that c = Σ ᾱ_i v_i.

`study_noise` answers three times where it can: exactly (a quadrature whose error is certified,
when at most three directions of noise reach the logits), by draws (with standard errors), and
in the limit of ever larger queries (in closed form). The answers check one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from heedful.arrays import Array, number_of, whole
from heedful.attention.noise.exact import (
    NoiseLimit,
    Rule,
    certified_rule,
    failure_probability,
    feature_moments,
    hard_limit,
    places,
    standard_grid,
)
from heedful.attention.noise.gaussian import (
    GaussianKeys,
    LogitModel,
    Readout,
    logit_model,
    weight_covariance,
    weight_variances,
)
from heedful.attention.noise.sampling import sample
from heedful.attention.operation import Scale, average_weights
from heedful.errors import InputError
from heedful.records import Record
from heedful.stats import standard_errors, wilson

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
    mean: Float[np.ndarray, 2]
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
