"""Gaussian keys, and the Gaussian logits the heads see of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.attention.noise import (
    GaussianKeys,
    LogitModel,
    Readout,
    logit_model,
    weight_covariance,
    weight_variances,
)
from heedful.attention.operation import attend
from heedful.errors import InputError
from heedful.stats import Moments

seeds = st.integers(0, 10_000)


def some_keys(seed: int, n: int = 5, d: int = 4) -> GaussianKeys:
    """Return keys with every kind of noise: none, isotropic, along a line, both, full."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((d, d - 1))
    return GaussianKeys.of(
        rng.standard_normal((n, d)),
        isotropic=[0.0, 0.3, 0.0, 0.2, 0.0],
        noisy={2: 0.7, 3: 0.4},
        directions={3: rng.standard_normal(d)},
        covariances={4: half @ half.T},
    )


def logit_covariance(model: LogitModel, key: int) -> np.ndarray:
    rows = np.flatnonzero(model.noisy == key)
    if not len(rows):
        return np.zeros((model.heads, model.heads))
    L = model.factors[rows[0]]
    return np.asarray(L @ L.T)


@given(seed=seeds, heads=st.integers(1, 3), scale=st.sampled_from([1.0, "sqrt_d", 0.3]))
@settings(deadline=None, max_examples=40)
def test_factors_give_the_covariance_of_the_logits(
    seed: int, heads: int, scale: float | str
) -> None:
    keys = some_keys(seed)
    Q = np.random.default_rng(seed + 1).standard_normal((heads, keys.d))
    model = logit_model(keys, Q, scale)  # type: ignore[arg-type]
    s = 0.5 if scale == "sqrt_d" else float(scale)
    for key in range(keys.n):
        wanted = s * s * Q @ keys.covariance(key) @ Q.T
        np.testing.assert_allclose(logit_covariance(model, key), wanted, atol=1e-12)
    assert model.quiet.tolist() == [0]
    assert np.all(model.ranks <= heads)
    traces = [np.trace(keys.covariance(key)) for key in range(keys.n)]
    np.testing.assert_allclose(keys.spreads(), traces, rtol=1e-12)


def test_a_head_perpendicular_to_the_noise_leaves_the_key_quiet() -> None:
    rotation = np.linalg.qr(np.random.default_rng(3).standard_normal((6, 6)))[0]
    keys = GaussianKeys.of(rotation, noisy={0: 0.5})
    assert logit_model(keys, 50 * rotation[1]).dimensions == 0
    assert logit_model(keys, 50 * rotation[:2]).dimensions == 1


def test_a_stack_of_covariances_gives_one_to_each_key() -> None:
    stack = np.stack([np.eye(2), np.zeros((2, 2)), np.diag([0.0, 3.0])])
    keys = GaussianKeys.of(np.ones((3, 2)), covariances=stack)
    for key in range(3):
        np.testing.assert_array_equal(keys.covariance(key), stack[key])
    assert logit_model(keys, [1.0, 0.0]).noisy.tolist() == [0]


def test_copies_of_a_head_add_no_direction_of_noise() -> None:
    keys = GaussianKeys.of(np.eye(3), isotropic=0.1)
    q = np.array([1.0, 2.0, 0.5])
    assert logit_model(keys, np.stack([q, q, -3 * q])).dimensions == 3


@given(seed=seeds)
@settings(deadline=None, max_examples=30)
def test_features_spread_to_the_weights_of_the_moved_keys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = GaussianKeys.of(rng.standard_normal((6, 3)), noisy={1: 0.5, 4: 2.0})
    Q = 3 * rng.standard_normal((2, 3))
    model = logit_model(keys, Q)
    xi = rng.standard_normal((2, 1, 7))
    alpha = model.spread(model.feature_values(xi))
    for draw in range(7):
        moved = keys.means.copy()
        moved[1] *= 1 + np.sqrt(0.5) * xi[0, 0, draw]
        moved[4] *= 1 + np.sqrt(2.0) * xi[1, 0, draw]
        wanted = attend(Q, moved).weights.mean(axis=0)
        np.testing.assert_allclose(alpha[:, draw], wanted, atol=1e-12)


@given(seed=seeds, with_values=st.booleans(), all_noisy=st.booleans())
@settings(deadline=None, max_examples=30)
def test_distances_and_variances_are_those_of_the_outputs(
    seed: int, with_values: bool, all_noisy: bool
) -> None:
    rng = np.random.default_rng(seed)
    keys = GaussianKeys.of(
        rng.standard_normal((5, 3)), isotropic=0.1 if all_noisy else 0.0, noisy={0: 1.0}
    )
    values = rng.standard_normal((5, 9)) if with_values else None
    model = logit_model(keys, rng.standard_normal((2, 3)))
    target = rng.standard_normal(9 if with_values else 5)
    readout = Readout(model, values, target)
    xi = rng.standard_normal((len(model.noisy), model.factors.shape[2], 50))
    features = model.feature_values(xi)
    outputs = readout.output(model.spread(features))
    np.testing.assert_allclose(outputs, readout.output_of(features), atol=1e-12)
    wanted = np.linalg.norm(outputs - target[:, None], axis=0)
    np.testing.assert_allclose(readout.distances(features), wanted, atol=1e-12)
    C = np.cov(features, ddof=0).reshape(len(features), len(features))
    np.testing.assert_allclose(readout.variances(C), outputs.var(axis=1), atol=1e-12)
    alpha = model.spread(features)
    np.testing.assert_allclose(weight_covariance(model, C), np.cov(alpha, ddof=0), atol=1e-12)
    np.testing.assert_allclose(weight_variances(model, C), alpha.var(axis=1), atol=1e-12)


@given(seed=seeds, parts=st.integers(1, 5), offset=st.sampled_from([0.0, 1e6]))
@settings(deadline=None, max_examples=30)
def test_moments_do_not_depend_on_the_chunks(seed: int, parts: int, offset: float) -> None:
    rng = np.random.default_rng(seed)
    values = offset + rng.standard_normal((3, 40))
    weights = rng.uniform(0.1, 1.0, 40)
    whole, diagonal = Moments(3), Moments(3, full=False)
    for chunk in np.array_split(np.arange(40), parts):
        whole.add(values[:, chunk], weights[chunk])
        diagonal.add(values[:, chunk])
    np.testing.assert_allclose(whole.mean, values @ weights / weights.sum(), rtol=1e-12)
    wanted = np.cov(values - offset, aweights=weights, ddof=0)
    np.testing.assert_allclose(whole.covariance, wanted, atol=1e-9)
    plain = (values - offset).var(axis=1, ddof=1)
    np.testing.assert_allclose(diagonal.sample_covariance, plain, atol=1e-9)


def test_logits_of_any_size_give_weights() -> None:
    keys = GaussianKeys.of(1e5 * np.eye(3), noisy={0: 0.5})
    model = logit_model(keys, 1e5 * np.eye(3))
    alpha = model.spread(model.feature_values(np.array([[[-30.0, 0.0, 30.0]]])))
    assert np.isfinite(alpha).all()
    np.testing.assert_allclose(alpha.sum(axis=0), 1.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"isotropic": -0.1}, ["isotropic", "-0.1", "0 or more"]),
        ({"isotropic": [0.1, 0.2]}, ["isotropic", "2 entries", "3 were expected"]),
        ({"isotropic": float("nan")}, ["isotropic", "nan"]),
        ({"noisy": {3: 0.5}}, ["noisy", "key 3 does not exist", "0 to 2"]),
        ({"noisy": {0: -1}}, ["noisy[0]", "-1", "0 or more"]),
        ({"noisy": {0: "loud"}}, ["noisy[0]", "'loud' is not a number"]),
        ({"directions": {0: [1, 0, 0]}}, ["directions", "no variance"]),
        ({"noisy": {0: 1}, "directions": {0: [1, 0]}}, ["directions[0]", "2 entries"]),
        ({"covariances": {0: np.diag([1, 1, -0.25])}}, ["covariances[0]", "eigenvalue is -0.25"]),
        ({"covariances": np.zeros((2, 3, 3))}, ["covariances", "2 matrices", "3 keys"]),
        ({"covariances": np.eye(3)}, ["covariances", "2 axes"]),
        ({"covariances": {0: np.eye(2)}}, ["covariances[0]", "(2, 2)", "(3, 3)"]),
        ({"covariances": {1: np.triu(np.ones((3, 3)))}}, ["covariances[1]", "not symmetric"]),
        ({"noisy": {0: 1}, "covariances": {0: np.eye(3)}}, ["covariances", "both"]),
    ],
)
def test_bad_noise_is_refused_in_one_line(arguments: dict[str, object], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        GaussianKeys.of(np.eye(3), **arguments)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("queries", "words"),
    [
        ([1.0, 2.0], ["dimension 2", "dimension 3"]),
        (np.zeros((2, 2, 3)), ["queries", "2 axes"]),
        ([[1.0, np.inf, 0.0]], ["queries", "inf"]),
        ([1e200, 0, 0], ["overflows"]),
    ],
)
def test_bad_queries_are_refused(queries: object, words: list[str]) -> None:
    keys = GaussianKeys.of(1e200 * np.eye(3), noisy={0: 1.0})
    with pytest.raises(InputError) as caught:
        logit_model(keys, queries)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "keys",
    [
        GaussianKeys.of(np.eye(3), noisy={0: 1.0}),
        GaussianKeys.of(np.eye(3), covariances={0: 1e305 * np.eye(3)}),
        GaussianKeys.of(np.eye(3), isotropic=1e305, noisy={1: 1.0}),
    ],
    ids=["along", "full", "isotropic"],
)
def test_noise_too_large_for_floats_is_refused_not_forgotten(keys: GaussianKeys) -> None:
    with pytest.raises(InputError, match="overflows"):
        logit_model(keys, [1e160, 1e160, 0.0])
