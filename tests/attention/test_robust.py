"""Robust heads: the gradient, the search, and the fair comparison."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.attention.distribution import study_noise
from heedful.attention.noise import GaussianKeys
from heedful.attention.operation import attend
from heedful.attention.robust import (
    ONE_EACH,
    HeadsObjective,
    design_heads,
    error_curves,
    hand_made,
    objective,
    pull_back,
    span,
    unpack,
)
from heedful.errors import InputError

E = np.eye(6, 8)
TARGET = np.array([0.5, 0.5, 0, 0, 0, 0])


def some_objective(seed: int) -> HeadsObjective:
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((4, 2))
    keys = GaussianKeys.of(
        rng.standard_normal((5, 4)),
        isotropic=[0.1, 0, 0, 0, 0],
        noisy={1: 0.5},
        covariances={3: half @ half.T},
    )
    values = rng.standard_normal((5, 7))
    return objective(keys, values - rng.standard_normal(7), 64, seed)


@given(seed=st.integers(0, 10_000), heads=st.integers(1, 3), length=st.sampled_from([0.3, 3.0]))
@settings(deadline=None, max_examples=20)
def test_gradient_is_that_of_finite_differences(seed: int, heads: int, length: float) -> None:
    J = some_objective(seed)
    Q = length * np.random.default_rng(seed).standard_normal((heads, 4))
    _, gradient = J(Q)
    step = 1e-6
    for h in range(heads):
        for m in range(4):
            moved = np.zeros_like(Q)
            moved[h, m] = step
            slope = (J(Q + moved)[0] - J(Q - moved)[0]) / (2 * step)
            assert abs(slope - gradient[h, m]) <= 1e-6 * (1 + abs(slope))


@given(seed=st.integers(0, 10_000))
@settings(deadline=None, max_examples=20)
def test_gradient_in_lengths_and_directions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.uniform(0.1, 0.9, 2), rng.standard_normal(6)])
    A = rng.standard_normal((2, 3))
    found = pull_back(x, A, norm=5.0)
    for place in range(8):
        moved = np.zeros(8)
        moved[place] = 1e-6
        ahead, behind = unpack(x + moved, 2, 5.0), unpack(x - moved, 2, 5.0)
        slope = float((A * (ahead - behind)).sum()) / 2e-6
        assert abs(found[place] - slope) <= 1e-6 * (1 + abs(slope))


@given(seed=st.integers(0, 10_000))
@settings(deadline=None, max_examples=10)
def test_objective_is_the_average_of_squared_distances(seed: int) -> None:
    J = some_objective(seed)
    Q = np.random.default_rng(seed).standard_normal((2, 4))
    total = 0.0
    for moved in J.noise:
        keys = J.means.copy()
        keys[list(J.noisy)] += moved
        c = attend(Q, keys, J.errors).output.mean(axis=0)
        total += float(c @ c)
    assert J(Q)[0] == pytest.approx(total / len(J.noise), rel=1e-12)


def test_nodes_have_the_covariance_of_the_keys() -> None:
    rng = np.random.default_rng(2)
    keys = GaussianKeys.of(rng.standard_normal((3, 4)), isotropic=0.2, noisy={1: 0.5})
    U = span(keys)
    J = objective(keys, np.eye(3), 4096, 0)
    for row, key in enumerate(J.noisy):
        wanted = U.T @ keys.covariance(key) @ U
        np.testing.assert_allclose(np.cov(J.noise[:, row].T), wanted, atol=0.02)


def test_one_noisy_key_is_read_by_turning_away_from_the_others() -> None:
    """With quiet keys to turn away from, the noise of key 0 need not be felt at all."""
    keys = GaussianKeys.of(E, noisy={0: 0.5})
    design = design_heads(keys, of=(0, 1), heads=2, norm=50.0, starts=2)
    assert design.feasible
    assert design.error < 1e-6
    assert design.variance < 1e-12
    assert design.mass > 1 - 1e-6
    errors = {choice.name: choice.error for choice in design.comparison}
    assert errors[ONE_EACH] > 0.1
    assert design.beta <= 50 * (1 + 1e-12)


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_no_hand_made_choice_is_better(heads: int) -> None:
    keys = GaussianKeys.of(E[:4], noisy=dict.fromkeys(range(4), 0.5))
    own = {"my own": 20 * E[[0, 1] * 2][:heads]}
    design = design_heads(keys, of=(0, 1), heads=heads, norm=20.0, starts=0, compare=own)
    names = [choice.name for choice in design.comparison]
    assert "my own" in names
    assert [c.error for c in design.comparison] == sorted(c.error for c in design.comparison)
    assert design.expected_squared_error <= design.comparison[0].expected_squared_error + 1e-15
    split = design.squared_bias + design.variance
    assert design.expected_squared_error == pytest.approx(split, rel=1e-12)
    assert np.all(np.linalg.norm(design.queries, axis=1) <= 20 * (1 + 1e-12))
    record = json.loads(design.to_json())
    for name in ("feasible", "beta", "mass", "error", "queries", "certificate"):
        assert name in record


def test_the_evaluation_is_that_of_a_noise_study() -> None:
    keys = GaussianKeys.of(E, noisy={0: 0.5, 2: 0.1})
    values = np.random.default_rng(0).standard_normal((6, 3))
    design = design_heads(keys, target_weights=TARGET, norm=8, values=values, starts=1)
    study = study_noise(keys, design.queries, values=values, target=TARGET @ values, draws=20_000)
    drawn = study.sampled
    assert abs(drawn.mean_squared_error - design.expected_squared_error) <= (
        5 * np.hypot(drawn.mean_squared_error_se, design.standard_error) + 1e-9
    )
    assert design.mass == pytest.approx(float(drawn.mean[:2].sum()), abs=0.02)


def test_designs_are_the_same_every_time_and_tell_their_progress() -> None:
    keys = GaussianKeys.of(E[:3], isotropic=0.05)
    seen: list[tuple[int, int]] = []
    first = design_heads(
        keys, of=(0,), norm=5, starts=1, progress=lambda done, of: seen.append((done, of))
    )
    assert first.to_json() == design_heads(keys, of=(0,), norm=5, starts=1).to_json()
    assert seen[-1][0] == seen[-1][1] == len(seen)


def test_more_budget_never_hurts_the_best() -> None:
    keys = GaussianKeys.of(E[:4], noisy=dict.fromkeys(range(4), 0.5))
    design = design_heads(keys, of=(0, 1), norm=10, starts=0)
    curves = error_curves(design, keys, norms=(2, 8, 30), head_counts=(1, 2, 4), starts=0)
    assert curves.by_beta is not None
    assert curves.by_heads is not None
    np.testing.assert_array_equal(curves.queries, design.queries)
    lengths = [point["optimal"] for point in curves.by_beta]
    counts = [point["optimal"] for point in curves.by_heads]
    # A longer budget contains the shorter one, and 2k heads can repeat k heads (3 cannot repeat
    # 2: an odd head has no side to take). 2 %: points evaluated by draws have standard errors.
    for errors in (lengths, counts):
        assert all(after <= 1.02 * before for before, after in itertools.pairwise(errors))
    assert [point["beta"] for point in curves.by_beta] == [2, 8, 30]
    assert all(ONE_EACH in point for point in curves.by_heads)


def test_a_scale_only_stretches_the_queries() -> None:
    keys = GaussianKeys.of(E, noisy={0: 0.5})
    plain = design_heads(keys, of=(0, 1), norm=10, starts=0)
    scaled = design_heads(keys, of=(0, 1), norm=10 * np.sqrt(8), scale="sqrt_d", starts=0)
    np.testing.assert_allclose(scaled.queries / np.sqrt(8), plain.queries, atol=1e-6)
    assert scaled.error == pytest.approx(plain.error, rel=1e-6)


@given(heads=st.integers(1, 9))
@settings(deadline=None)
def test_heads_are_shared_out_in_proportion(heads: int) -> None:
    weights = np.array([0.5, 0.25, 0.25, 0, 0, 0])
    queries = hand_made(GaussianKeys.of(E), weights, heads, 3.0)[ONE_EACH]
    counts = (queries @ E.T > 1).sum(axis=0)
    assert counts.sum() == heads
    assert np.all(np.abs(counts - weights * heads) < 1)
    np.testing.assert_allclose(np.linalg.norm(queries, axis=1), 3.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, ["of", "neither or both"]),
        ({"of": (0,), "target_weights": TARGET}, ["neither or both"]),
        ({"of": (9,)}, ["key 9 does not exist"]),
        ({"of": ()}, ["names no key"]),
        ({"target_weights": [0.5, 0.6, 0, 0, 0, 0]}, ["target_weights", "sum to 1.1"]),
        ({"target_weights": [1.5, -0.5, 0, 0, 0, 0]}, ["target_weights", "-0.5"]),
        ({"of": (0,), "heads": 0}, ["heads", "is 0", "at least 1"]),
        ({"of": (0,), "norm": -1}, ["norm", "-1"]),
        ({"of": (0,), "starts": 1.5}, ["starts", "1.5"]),
        ({"of": (0,), "seed": -3}, ["seed", "-3"]),
        ({"of": (0,), "compare": {"mine": [1.0]}}, ["dimension 1"]),
    ],
)
def test_bad_requests_are_refused(arguments: dict[str, object], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        design_heads(GaussianKeys.of(E), **arguments)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)
