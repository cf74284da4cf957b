"""The certificate of the quadrature, against integrals to 30 digits and against dense rules."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from heedful.attention.distribution import (
    Rule,
    certified_rule,
    failure_probability,
    feature_moments,
    places,
    plan,
)
from heedful.attention.noise import GaussianKeys, LogitModel, Readout, logit_model

slopes_tried = st.floats(0.01, 60.0)
offsets = st.floats(-40.0, 40.0)


def one_noisy_key(slope: float, offset: float) -> LogitModel:
    """Return a single head over two keys: the weight of key 0 is 1/(1 + exp(−offset − slope ξ))."""
    keys = GaussianKeys.of([[1.0, 0.0], [0.0, 1.0]], noisy={0: 1.0}, directions={0: [1.0, 0.0]})
    # k_0·q = q_0 + q_0 ξ and k_1·q = q_1 = q_0 − offset.
    return logit_model(keys, [slope, slope - offset])


def sigmoid_moment(slope: float, offset: float, power: int) -> float:
    """Return E[σ(offset + slope ξ)^power] to 30 digits."""
    with mpmath.workdps(30):
        threshold = -offset / slope
        near = [threshold + side / slope for side in (-60, -15, -4, 0, 4, 15, 60)]
        cuts = sorted({-12.0, *(cut for cut in near if -12 < cut < 12), 12.0})

        def integrand(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.npdf(x) / (1 + mpmath.exp(-offset - slope * x)) ** power

        return float(mpmath.quad(integrand, cuts))


def trapezoid(model: LogitModel, rule: Rule, power: int) -> float:
    """Return the rule's integral of the first feature, not normalised."""
    return sum(
        float((model.feature_values(places(model, nodes))[0] ** power) @ weights)
        for nodes, weights in rule.chunks()
    )


@given(
    slope=slopes_tried,
    offset=offsets,
    error=st.sampled_from([1e-2, 1e-4, 1e-7, 1e-10]),
    power=st.sampled_from([1, 2]),
)
@settings(deadline=None, max_examples=25)
def test_each_integral_is_within_the_error_of_its_rule(
    slope: float, offset: float, error: float, power: int
) -> None:
    rule = plan(np.array([slope]), error)
    assert rule.error <= error
    found = trapezoid(one_noisy_key(slope, offset), rule, power)
    # 1e-13: what float64 and 30 digits leave.
    assert abs(found - sigmoid_moment(slope, offset, power)) <= rule.error + 1e-13


@given(slope=st.floats(0.01, 1e4), offset=offsets, asked=st.sampled_from([1e-3, 1e-6, 1e-9]))
@example(slope=1e4, offset=0.0, asked=1e-6)
@example(slope=1e4, offset=1e4, asked=1e-6)
@settings(deadline=None, max_examples=12)
def test_moments_are_within_the_certified_error(slope: float, offset: float, asked: float) -> None:
    model = one_noisy_key(slope, offset)
    rule, reason = certified_rule(model, asked)
    assert reason is None
    assert rule is not None
    assert rule.certified_error <= asked
    moments = feature_moments(model, rule)
    mean, second = (sigmoid_moment(slope, offset, power) for power in (1, 2))
    bound = rule.certified_error
    assert abs(moments.mean[0] - mean) <= bound
    assert abs(moments.covariance[0, 0] - (second - mean * mean)) <= bound
    std = math.sqrt(max(0.0, second - mean * mean))
    assert abs(math.sqrt(moments.covariance[0, 0]) - std) <= bound + 1e-8  # √1e-16 of the oracle


def dense_moments(model: LogitModel, R: int) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of the features by a fine Gauss–Legendre product rule."""
    x, w = np.polynomial.legendre.leggauss(200 if R == 2 else 64)
    x, w = 9 * x, 9 * w * np.exp(-0.5 * (9 * x) ** 2) / math.sqrt(2 * math.pi)
    nodes = np.stack([part.ravel() for part in np.meshgrid(*[x] * R)])
    weights = np.prod(np.stack([part.ravel() for part in np.meshgrid(*[w] * R)]), axis=0)
    G = model.feature_values(places(model, nodes))
    mean = G @ weights
    return mean, (G - mean[:, None]) * weights @ (G - mean[:, None]).T


@given(seed=st.integers(0, 10_000), kind=st.sampled_from(["two keys", "one key twice", "three"]))
@settings(deadline=None, max_examples=8)
def test_two_and_three_directions_match_a_dense_rule(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((4, 3))
    if kind == "one key twice":
        half = rng.standard_normal((3, 2))
        keys = GaussianKeys.of(means, covariances={1: half @ half.T})
    else:
        keys = GaussianKeys.of(means, noisy=dict.fromkeys(range(3 if kind == "three" else 2), 0.6))
    Q = rng.standard_normal((2, 3))
    model = logit_model(keys, Q)
    assert model.dimensions == (3 if kind == "three" else 2)
    rule, _ = certified_rule(model, 1e-4 if kind == "three" else 1e-6)
    assert rule is not None
    moments = feature_moments(model, rule)
    mean, covariance = dense_moments(model, model.dimensions)
    np.testing.assert_allclose(moments.mean, mean, atol=rule.certified_error)
    np.testing.assert_allclose(moments.covariance, covariance, atol=rule.certified_error)


def test_steeper_slopes_cost_nodes_in_proportion() -> None:
    counts = [plan(np.array([slope]), 1e-12).nodes for slope in (100.0, 1000.0, 10_000.0)]
    assert 9 < counts[1] / counts[0] < 11
    assert 9 < counts[2] / counts[1] < 11


def test_a_long_rule_comes_in_bounded_chunks() -> None:
    rule = plan(np.array([9.0, 4.0]), 1e-9)
    sizes = [nodes.shape[1] for nodes, _ in rule.chunks()]
    assert sum(sizes) == rule.nodes
    assert max(sizes) <= 4096
    assert abs(sum(float(weights.sum()) for _, weights in rule.chunks()) - 1) <= rule.error


@pytest.mark.parametrize(
    ("keys", "queries", "asked", "words"),
    [
        (GaussianKeys.of(np.eye(4), isotropic=0.1), np.eye(4)[:1], 1e-6, "4 independent"),
        (GaussianKeys.of(np.eye(4), noisy={0: 1e20}), np.eye(4)[:1], 1e-6, "nodes"),
        (GaussianKeys.of(1e9 * np.eye(4), noisy={0: 1e-20}), np.eye(4)[:1], 1e-9, "rounding"),
    ],
)
def test_what_cannot_be_certified_is_refused_with_the_reason(
    keys: GaussianKeys, queries: np.ndarray, asked: float, words: str
) -> None:
    rule, reason = certified_rule(logit_model(keys, queries), asked)
    assert rule is None
    assert reason is not None
    assert words in reason


@given(slope=st.floats(0.1, 1e4), offset=offsets, level=st.floats(0.02, 0.98))
@settings(deadline=None, max_examples=40)
def test_failure_probability_of_one_sigmoid_is_known(
    slope: float, offset: float, level: float
) -> None:
    # c = (σ, 1 − σ) and the target is (1, 0): ‖c − t‖ = √2 (1 − σ) > √2 level.
    model = one_noisy_key(slope, offset)
    found = failure_probability(model, Readout(model, target=[1.0, 0.0]), math.sqrt(2) * level)
    wanted = float(ndtr((math.log((1 - level) / level) - offset) / slope))
    assert found.low - 1e-12 <= wanted <= found.high + 1e-12
    assert abs(found.value - wanted) <= found.error + 1e-12
    assert found.high - found.low <= 1.1e-6


@given(seed=st.integers(0, 10_000))
@settings(deadline=None, max_examples=5)
def test_failure_probability_in_two_directions_encloses_the_draws(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = GaussianKeys.of(rng.standard_normal((4, 3)), noisy={0: 1.0, 2: 0.5})
    model = logit_model(keys, 3 * rng.standard_normal((2, 3)))
    readout = Readout(model, rng.standard_normal((4, 5)))
    draws = readout.distances(model.feature_values(rng.standard_normal((2, 1, 20_000))))
    radius = float(np.median(draws))
    found = failure_probability(model, readout, radius)
    rate = float((draws > radius).mean())
    assert found.high - found.low < 0.02
    assert abs(found.value - rate) <= found.error + 5 * 0.5 / math.sqrt(20_000)  # odds 6e-7


def test_a_plateau_at_the_radius_stays_undecided() -> None:
    # Without noise reaching c, ‖c − t‖ is exactly the radius everywhere: nothing can decide it.
    keys = GaussianKeys.of(np.eye(2), noisy={0: 1.0})
    model = logit_model(keys, [1.0, 0.0])
    readout = Readout(model, [[1.0], [1.0]], [0.5])
    found = failure_probability(model, readout, 0.5)
    assert found.low == 0.0
    assert found.high > 0.999
