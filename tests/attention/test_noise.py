"""Noise studies: exact, sampled and limiting answers against one another and against whole keys."""

from __future__ import annotations

import json
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from heedful.attention.distribution import exact_moments, sampled_noise, study_noise
from heedful.attention.noise import GaussianKeys
from heedful.attention.operation import attend, softmax
from heedful.errors import InputError

E = np.eye(10, 16)
ONE_NOISY = GaussianKeys.of(E, noisy={0: 0.5})


def whole_key_outputs(keys: GaussianKeys, Q: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """Return ᾱ of draws of whole d-dimensional keys: the slow and obvious way."""
    rng = np.random.default_rng(seed)
    drawn = np.stack(
        [
            rng.multivariate_normal(keys.means[key], keys.covariance(key), draws, method="eigh")
            for key in range(keys.n)
        ],
        axis=1,
    )
    return np.asarray(softmax(np.einsum("hd,tnd->thn", Q, drawn)).mean(axis=1))


@pytest.mark.parametrize(
    ("queries", "std"), [(50 * E[:2], 0.138), (50 * (E[0] + E[1]), 0.489)], ids=["two", "one"]
)
def test_the_course_setting(queries: np.ndarray, std: float) -> None:
    study = study_noise(ONE_NOISY, queries)
    assert study.exact is not None
    assert study.agreement is not None
    assert abs(study.exact.std[0] - std) < 5e-4
    assert study.exact.certified_error <= 1e-6
    assert study.agreement < 3
    low, high = study.sampled.failure_low, study.sampled.failure_high
    assert low <= study.exact.failure_probability <= high
    np.testing.assert_allclose(study.target, 0.5 * (E[0, :10] + E[1, :10]), atol=1e-12)


@given(seed=st.integers(0, 10_000), heads=st.integers(1, 3), extra=st.booleans())
@settings(deadline=None, max_examples=12)
def test_sampler_agrees_with_draws_of_whole_keys(seed: int, heads: int, extra: bool) -> None:
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((3, 2))
    keys = GaussianKeys.of(
        rng.standard_normal((5, 3)),
        isotropic=[0.2, 0.0, 0.1, 0.0, 0.0],
        noisy={0: 0.5, 1: 0.8} if extra else {1: 0.8},
        covariances={3: half @ half.T},
    )
    Q = 2 * rng.standard_normal((heads, 3))
    drawn = study_noise(keys, Q, draws=8_000, seed=seed).sampled
    alpha = whole_key_outputs(keys, Q, 8_000, seed + 1)
    # Five standard errors of a difference: about 1e-5 odds over all these comparisons.
    mean_se = np.hypot(drawn.mean_se, alpha.std(axis=0) / math.sqrt(8_000))
    assert np.all(np.abs(drawn.mean - alpha.mean(axis=0)) <= 5 * mean_se)
    assert np.all(np.abs(drawn.std - alpha.std(axis=0)) <= 5 * math.sqrt(2) * drawn.std_se + 1e-9)
    centred = alpha - alpha.mean(axis=0)
    products = centred[:, :, None] * centred[:, None]
    spread = products.std(axis=0) / math.sqrt(8_000)
    assert drawn.covariance is not None
    assert np.all(np.abs(drawn.covariance - products.mean(axis=0)) <= 5 * math.sqrt(2) * spread)


@given(seed=st.integers(0, 10_000), beta=st.sampled_from([0.5, 5.0, 50.0, 1e4]))
@settings(deadline=None, max_examples=25)
def test_exact_and_sampled_agree(seed: int, beta: float) -> None:
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((6, 4))
    keys = GaussianKeys.of(means, noisy={2: 0.5}, directions={2: rng.standard_normal(4)})
    values = rng.standard_normal((6, 3))
    study = study_noise(keys, beta * rng.standard_normal((2, 4)), values=values, draws=4_000)
    exact, drawn = study.exact, study.sampled
    assert exact is not None
    assert exact.covariance is not None
    # Draws that all miss a rare event cannot know how much they vary; the exact figure does.
    spread = np.maximum(drawn.mean_se, exact.std / math.sqrt(4_000))
    se = np.hypot(spread, exact.certified_error)
    assert np.all(np.abs(exact.mean - drawn.mean) <= 5 * se)
    # Wilson's interval is a 95 % one; twice as wide, it is left with odds of 1e-4.
    width = drawn.failure_high - drawn.failure_low
    middle = (drawn.failure_high + drawn.failure_low) / 2
    assert abs(exact.failure_probability - middle) <= width + exact.failure_error
    np.testing.assert_allclose(exact.mean.sum(), 1.0, atol=1e-12)
    np.testing.assert_allclose(exact.covariance.sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(np.sqrt(np.diag(exact.covariance).clip(0)), exact.std, atol=1e-7)
    np.testing.assert_allclose(exact.output_mean, exact.mean @ values, atol=1e-10)
    variances = np.einsum("iv,ij,jv->v", values, exact.covariance, values).clip(0)
    np.testing.assert_allclose(exact.output_std**2, variances, atol=1e-9)
    total = exact.squared_bias + float((exact.output_std**2).sum())
    assert math.isclose(exact.mean_squared_error, total, rel_tol=1e-12, abs_tol=1e-15)
    # Draws may miss rare and large distances. Outputs lie in the hull of the values, so that a
    # squared distance x is at most r, and its variance at most E x² ≤ r E x.
    reach = max(float(((one - values) ** 2).sum(axis=1).max()) for one in values)
    spread = math.sqrt(reach * exact.mean_squared_error / 4_000)
    assert abs(exact.mean_squared_error - drawn.mean_squared_error) <= (
        5 * max(drawn.mean_squared_error_se, spread) + 1e-6
    )


def test_standard_errors_tell_how_much_repeated_studies_scatter() -> None:
    keys = GaussianKeys.of(E, noisy={0: 0.5, 3: 0.2})
    studies = [
        study_noise(keys, 8 * E[:2], draws=500, seed=seed, exact=False).sampled
        for seed in range(200)
    ]
    for name in ("mean", "std"):
        scatter = np.std([getattr(each, name) for each in studies], axis=0)
        told = np.mean([getattr(each, f"{name}_se") for each in studies], axis=0)
        # A standard deviation of 200 numbers is known to 5 %; ±20 % is four of its errors.
        np.testing.assert_allclose(told, scatter, rtol=0.2)


def test_quantiles_of_one_direction_are_those_of_a_monotone_function() -> None:
    # With one noisy key and one head, ᾱ_0 = σ(z + ℓξ): its quantiles are σ at normal quantiles.
    study = study_noise(ONE_NOISY, 3 * E[0])
    exact, drawn = study.exact, study.sampled
    assert exact is not None
    assert exact.quantiles is not None
    assert drawn.quantiles is not None
    assert exact.quantile_resolution == 1 / 4096
    xi = np.array([-1.6448536, -0.6744898, 0.0, 0.6744898, 1.6448536])
    logits = 3 * (1 + math.sqrt(0.5) * xi) - math.log(9)
    np.testing.assert_allclose(exact.quantiles[:, 0], 1 / (1 + np.exp(-logits)), atol=2e-4)
    np.testing.assert_allclose(drawn.quantiles[:, 0], exact.quantiles[:, 0], atol=0.02)


@given(variance=st.floats(0.05, 4.0))
@settings(deadline=None, max_examples=8)
def test_two_heads_miss_a_noisy_key_with_the_probability_of_the_limit(variance: float) -> None:
    keys = GaussianKeys.of(E, noisy={0: variance})
    limit = study_noise(keys, 50 * E[:2], draws=2).limit
    assert limit is not None
    missed = float(ndtr(-1 / math.sqrt(variance)))
    assert limit.failure_probability is not None
    assert math.isclose(limit.failure_probability, missed, rel_tol=1e-9)
    assert math.isclose(limit.mean[0], 0.5 * (1 - missed), rel_tol=1e-3)
    steep = study_noise(keys, 1e4 * E[:2], draws=2)
    assert steep.exact is not None
    assert abs(steep.exact.failure_probability - missed) < 1e-3
    np.testing.assert_allclose(steep.exact.mean, limit.mean, atol=1e-3)
    np.testing.assert_allclose(steep.exact.std, limit.std, atol=1e-3)


def test_one_head_on_a_sum_tends_to_a_coin() -> None:
    limit = study_noise(ONE_NOISY, E[0] + E[1], target=np.eye(10)[:2].mean(axis=0), draws=2).limit
    assert limit is not None
    np.testing.assert_allclose(limit.mean, [0.5, 0.5, *[0] * 8])
    np.testing.assert_allclose(limit.std, [0.5, 0.5, *[0] * 8])
    assert limit.failure_probability == 1.0
    np.testing.assert_allclose(sorted(limit.probabilities), [0.5, 0.5])


@given(seed=st.integers(0, 10_000), heads=st.integers(1, 4))
@settings(deadline=None, max_examples=15)
def test_the_limit_is_where_large_queries_go(seed: int, heads: int) -> None:
    rng = np.random.default_rng(seed)
    keys = GaussianKeys.of(rng.standard_normal((5, 3)), noisy={1: 0.7})
    Q = rng.standard_normal((heads, 3))
    limit = study_noise(keys, Q, draws=2).limit
    steep = study_noise(keys, 3e3 * Q, draws=2).exact
    assert limit is not None
    assert steep is not None
    np.testing.assert_allclose(limit.probabilities.sum(), 1.0)
    np.testing.assert_allclose(limit.mean, steep.mean, atol=0.05)


def test_the_target_can_be_an_average_of_keys() -> None:
    values = np.random.default_rng(1).standard_normal((10, 3))
    study = study_noise(ONE_NOISY, E[0], values=values, of=(2, 5), draws=2, names=["mine"])
    np.testing.assert_allclose(study.target, values[[2, 5]].mean(axis=0))
    assert study.names == ("mine",)


def test_zero_noise_is_the_noiseless_reading() -> None:
    keys = GaussianKeys.of(E)
    study = study_noise(keys, 7 * E[:2], draws=10)
    wanted = attend(7 * E[:2], E).weights.mean(axis=0)
    assert study.exact is not None
    assert study.limit is not None
    for found in (study.exact.mean, study.sampled.mean, study.noiseless):
        np.testing.assert_allclose(found, wanted, atol=1e-15)
    assert study.exact.std.max() == 0.0
    assert study.exact.failure_probability == 0.0
    np.testing.assert_allclose(study.limit.mean, [0.5, 0.5, *[0] * 8])


def test_vanishing_isotropic_noise_is_the_limit_of_small_noise() -> None:
    small = GaussianKeys.of(E, isotropic=1e-12, noisy={0: 0.5})
    drawn = study_noise(small, 50 * E[:2], draws=4_000).sampled
    exact = exact_moments(ONE_NOISY, 50 * E[:2])
    assert np.all(np.abs(drawn.mean - exact.mean) <= 4 * drawn.mean_se + 1e-4)


def test_every_key_noisy_is_sampled_and_says_why() -> None:
    keys = GaussianKeys.of(E, isotropic=0.1)
    study = study_noise(keys, 5 * E[:2], draws=100)
    assert study.exact is None
    assert study.exact_reason is not None
    assert "20 independent directions" in study.exact_reason
    assert study.limit is None
    assert study.limit_reason is not None
    assert study.agreement is None
    with pytest.raises(InputError, match="20 independent directions"):
        exact_moments(keys, 5 * E[:2])


@pytest.mark.parametrize("with_values", [False, True])
@pytest.mark.parametrize("quiet", [0, 10])
def test_many_noisy_keys_keep_only_variances(with_values: bool, quiet: int) -> None:
    rng = np.random.default_rng(5)
    spread = [0.1] * (400 - quiet) + [0.0] * quiet
    keys = GaussianKeys.of(rng.standard_normal((400, 3)), isotropic=spread)
    values = rng.standard_normal((400, 2)) if with_values else None
    Q = rng.standard_normal((2, 3))
    drawn = study_noise(keys, Q, values=values, draws=600).sampled
    alpha = whole_key_outputs(keys, Q, 600, 1)
    mean_se = np.hypot(drawn.mean_se, alpha.std(axis=0) / math.sqrt(600))
    assert np.all(np.abs(drawn.mean - alpha.mean(axis=0)) <= 5 * mean_se)  # odds 2e-4
    assert drawn.covariance is None
    assert drawn.quantiles is None
    if values is None:
        np.testing.assert_allclose(drawn.output_std, drawn.std, rtol=1e-9, atol=1e-15)
    else:
        np.testing.assert_allclose(drawn.output_std, (alpha @ values).std(axis=0), rtol=0.2)
    assert drawn.mean.sum() == pytest.approx(1.0)
    assert np.all(drawn.std > 0)


def test_a_study_is_the_same_every_time_and_changes_with_the_seed() -> None:
    first, again, other = (
        study_noise(ONE_NOISY, 5 * E[:2], seed=seed, draws=9_000).to_json() for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other
    record = json.loads(first)
    for part in ("exact", "sampled"):
        for name in ("mean", "std", "failure_probability"):
            assert name in record[part]
    assert record["sampled"]["draws"] == 9_000


def test_more_draws_begin_with_the_same_draws() -> None:
    # Blocks have their own streams: whole blocks do not change when more follow.
    few = sampled_noise(ONE_NOISY, 5 * E[:2], draws=8_192).mean
    many = sampled_noise(ONE_NOISY, 5 * E[:2], draws=16_384).mean
    rest = 2 * many - few
    assert not np.allclose(rest, few, atol=1e-6)
    np.testing.assert_allclose(rest, few, atol=0.02)


def test_memory_does_not_grow_with_the_draws() -> None:
    def peak(draws: int) -> int:
        tracemalloc.start()
        sampled_noise(ONE_NOISY, 50 * E[:2], draws=draws)
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return highest

    peak(100)
    assert peak(400_000) < 1.1 * peak(40_000)


@pytest.mark.parametrize("beta", [1e4, 1e8, 1e150])
def test_huge_logits_give_finite_answers(beta: float) -> None:
    study = study_noise(ONE_NOISY, beta * E[:2], draws=100)
    assert np.isfinite(study.sampled.mean).all()
    assert (study.exact is None) == (beta > 1e5)
    assert study.limit is not None
    assert math.isclose(study.limit.failure_probability or 0, float(ndtr(-math.sqrt(2))))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"radius": 0}, ["radius", "is 0"]),
        ({"radius": math.nan}, ["radius", "nan"]),
        ({"draws": 1}, ["draws", "is 1", "at least 2"]),
        ({"draws": 2.5}, ["draws", "2.5"]),
        ({"seed": -1}, ["seed", "-1"]),
        ({"certified_error": 1e-12}, ["certified_error", "1e-12"]),
        ({"values": np.eye(3)}, ["values", "3 rows", "10 keys"]),
        ({"target": [1.0]}, ["target", "1 entries", "10"]),
        ({"of": (0,), "target": [1.0]}, ["both `of` and `target`"]),
        ({"of": (10,)}, ["key 10 does not exist"]),
        ({"names": ["a", "b"]}, ["names", "2 names", "1 heads"]),
        ({"scale": 0.0}, ["scale", "is 0", "positive"]),
    ],
)
def test_bad_settings_are_refused_in_one_line(
    arguments: dict[str, object], words: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        study_noise(ONE_NOISY, E[0], **arguments)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message
