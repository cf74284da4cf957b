"""Which keys can be copied: against one linear programme a key, on sets of every kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from heedful.attention.design import design_copy
from heedful.attention.hull import (
    Points,
    certify,
    combined,
    copyable,
    leads_of,
    rounding_of,
    separate,
    smoothed_directions,
)
from heedful.attention.keys import gaussian, grid, orthonormal, simplex, sphere
from heedful.errors import InputError

seeds = st.integers(0, 10_000)


def copyable_one_by_one(keys: np.ndarray) -> np.ndarray:
    """The slow, obvious way: max t with (k_j − k_i)·q ≥ t for all i ≠ j, |q| ≤ 1."""
    answers = []
    for j in range(len(keys)):
        apart = np.delete(keys, j, axis=0) - keys[j]
        d = keys.shape[1]
        best = linprog(
            np.append(np.zeros(d), -1.0),
            A_ub=np.hstack([apart, np.ones((len(apart), 1))]),
            b_ub=np.zeros(len(apart)),
            bounds=[(-1.0, 1.0)] * d + [(0.0, 1.0)],
        )
        answers.append(-best.fun > 1e-7)
    return np.array(answers)


def assert_margins_hold(keys: np.ndarray) -> None:
    found = copyable(keys)
    for j in range(len(keys)):
        true = separate(keys, keys[j], without=j)
        assert found.margin[j] <= true.margin_upper * (1 + 1e-9)
        assert found.margin_upper[j] >= true.margin * (1 - 1e-9)
        assert (found.margin[j] > 0) == found.copyable[j]


KINDS = {
    "gaussian": lambda n, d, seed: gaussian(n, d, seed),
    "sphere": lambda n, d, seed: sphere(n, d, seed),
    "integers": lambda n, d, seed: np.random.default_rng(seed).integers(-2, 3, (n, d)) * 1.0,
    "grid": lambda n, d, seed: grid(n, d),
    "line": lambda n, d, seed: np.outer(
        np.random.default_rng(seed).integers(-5, 6, n), np.arange(1, d + 1)
    ).astype(float),
    "flat": lambda n, d, seed: gaussian(n, max(1, d - 1), seed) @ gaussian(max(1, d - 1), d, 1),
    "far away": lambda n, d, seed: gaussian(n, d, seed) + 1000.0,
}


@given(
    kind=st.sampled_from(sorted(KINDS)),
    n=st.integers(2, 24),
    d=st.integers(1, 5),
    seed=seeds,
    size=st.sampled_from([1e-6, 1.0, 1e6]),
)
@settings(deadline=None, max_examples=100)
def test_the_verdicts_are_those_of_one_linear_programme_a_key(
    kind: str, n: int, d: int, seed: int, size: float
) -> None:
    keys = KINDS[kind](n, d, seed)

    found = copyable(size * keys)

    assert not found.undecided
    assert found.copyable.tolist() == copyable_one_by_one(keys).tolist()
    assert found.count == found.copyable.sum()
    assert sum(found.stages.values()) >= n or n == 1


@pytest.mark.parametrize("seed", range(3))
def test_many_dimensions_and_norms_of_every_size(seed: int) -> None:
    """Here the smoothed perceptron, the combinations and the exact directions all have work."""
    norms = np.exp(np.random.default_rng(seed).normal(0.0, 1.0, (150, 1)))
    keys = sphere(150, 24, seed) * norms

    found = copyable(keys)

    assert found.copyable.tolist() == copyable_one_by_one(keys).tolist()
    assert found.stages["a smoothed perceptron"] > 0


def test_the_smoothed_perceptron_leads_where_the_margin_is_wide() -> None:
    keys = sphere(200, 10, 0) + 3.0  # off centre: the key itself is no good direction
    everyone = np.arange(200)

    parts = list(smoothed_directions(keys, everyone, everyone, block=5000))

    assert len(parts) == 8  # of 25 keys each
    assert np.concatenate([owners for owners, _ in parts]).tolist() == everyone.tolist()
    leads = leads_of(Points.of(keys), everyone, np.concatenate([found for _, found in parts]))
    assert (leads.margin > 0).mean() > 0.9


def test_no_searches_leave_keys_open_and_say_nothing_wrong() -> None:
    keys = sphere(150, 24, 3) * np.exp(np.random.default_rng(3).standard_normal((150, 1)))
    whole, short = copyable(keys), copyable(keys, searches=0)

    assert short.undecided
    assert not (short.copyable & ~whole.copyable).any()
    decided = np.setdiff1d(np.arange(150), short.undecided)
    assert short.copyable[decided].tolist() == whole.copyable[decided].tolist()


def test_more_searches_decide_more_and_the_same_number_the_same() -> None:
    keys = sphere(150, 24, 3) * np.exp(np.random.default_rng(3).standard_normal((150, 1)))
    made = [copyable(keys, searches=count) for count in (0, 20, 60, 10_000)]
    left = [set(one.undecided) for one in made]
    # How many a search decides differs from one linear algebra library to the next.
    assert left[0] >= left[1] >= left[2] >= left[3] == set(copyable(keys).undecided)
    assert left[0] > left[3]
    assert copyable(keys, searches=20).undecided == made[1].undecided


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_margins_bracket_the_distance_to_the_other_keys(kind: str) -> None:
    assert_margins_hold(KINDS[kind](40, 3, 1))


@given(n=st.integers(2, 30), d=st.integers(1, 5), seed=seeds)
@settings(deadline=None, max_examples=30)
def test_exact_margins_are_the_distances_to_the_hulls(n: int, d: int, seed: int) -> None:
    keys = gaussian(n, d, seed)

    found = copyable(keys, exact_margins=True)

    for j in range(n):
        true = separate(keys, keys[j], without=j)
        assert found.margin[j] == pytest.approx(true.margin, rel=1e-6, abs=1e-12)
        if found.copyable[j]:
            assert found.margin_upper[j] == pytest.approx(found.margin[j], rel=1e-9)


def test_the_margin_of_orthonormal_and_simplex_keys() -> None:
    n = 6
    found = copyable(orthonormal(n), exact_margins=True)
    assert found.margin == pytest.approx(np.full(n, np.sqrt(n / (n - 1))))

    found = copyable(simplex(n), exact_margins=True)
    assert found.margin == pytest.approx(np.full(n, n / (n - 1)))


def test_a_key_is_copyable_exactly_when_a_design_copies_it() -> None:
    keys = gaussian(30, 3, 2)
    found = copyable(keys)
    for j in range(30):
        design = design_copy(keys, j, tolerance=1e-3)
        assert design.feasible == found.copyable[j]
        if design.feasible:
            assert found.margin[j] <= design.certificate.margin * (1 + 1e-9)


def test_equal_keys_cannot_be_copied_but_still_bound_the_others() -> None:
    keys = np.array([[0.0], [0.0], [1.0], [2.0], [-0.0]])

    found = copyable(keys)

    assert found.copyable.tolist() == [False, False, False, True, False]
    assert found.stages["equal to another key"] == 3


@pytest.mark.parametrize("count", [1, 3])
def test_only_a_key_without_equals_is_copyable(count: int) -> None:
    found = copyable(np.ones((count, 2)))

    assert found.copyable.tolist() == [count == 1] * count


def test_all_keys_of_a_sphere_are_copyable_at_the_first_look() -> None:
    found = copyable(sphere(3000, 16, 0))

    assert found.copyable.all()
    assert found.stages["the key itself"] == 3000


@given(seed=seeds, extra=st.integers(0, 40))
@settings(deadline=None, max_examples=20)
def test_mixing_keys_adds_keys_that_cannot_be_copied(seed: int, extra: int) -> None:
    corners = sphere(12, 4, seed)
    mixed = np.random.default_rng(seed).dirichlet(np.ones(12), extra) @ corners

    found = copyable(np.vstack([corners, mixed]))

    assert found.copyable.tolist() == [True] * 12 + [False] * extra


@pytest.mark.parametrize("corners", [20, 90])
def test_combinations_are_found_for_keys_inside_and_for_no_other(corners: int) -> None:
    """Against one linear programme a key, in 40 dimensions, fewer and more corners than that."""
    outer = sphere(corners, 40, 1)
    shares = np.random.default_rng(1).dirichlet(np.ones(corners), 12)
    inner = shares @ outer
    beside = outer[:6] * (1 + 1e-9)  # outside by less than float32 could tell

    apart = combined(outer, np.vstack([inner, beside]))

    assert (apart[:12] <= 4 * rounding_of(outer)).all()
    assert (apart[12:] > 4 * rounding_of(outer)).all()
    keys = np.vstack([outer, inner])
    assert copyable(keys).copyable.tolist() == copyable_one_by_one(keys).tolist()


def test_the_number_of_workers_changes_nothing() -> None:
    keys = gaussian(1500, 4, 0)

    one, two = copyable(keys), copyable(keys, workers=2)

    np.testing.assert_array_equal(one.copyable, two.copyable)
    np.testing.assert_array_equal(one.margin, two.margin)


def test_progress_goes_up_to_all_keys() -> None:
    seen: list[tuple[int, int]] = []

    copyable(gaussian(200, 3, 0), progress=lambda done, total: seen.append((done, total)))

    assert seen[-1] == (200, 200)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@given(n=st.integers(2, 60), d=st.integers(1, 80), seed=seeds, spread=st.sampled_from([1e-8, 1.0]))
@settings(deadline=None, max_examples=40)
def test_a_reported_lead_is_a_true_lead(n: int, d: int, seed: int, spread: float) -> None:
    keys = 1.0 / np.sqrt(d) + spread * gaussian(n, d, seed) / d  # close keys: float32 is blind
    directions = gaussian(n, d, seed + 1).astype(np.float32)

    leads = leads_of(Points.of(keys), np.arange(n), directions)

    for j in range(n):
        unit = directions[j].astype(np.longdouble)
        unit = unit / np.sqrt((unit**2).sum())
        true = np.delete((keys[j] - keys).astype(np.longdouble) @ unit, j).min()
        assert leads.margin[j] <= true
        if true > 1e-4 * spread:
            assert leads.margin[j] > 0 or true < 1e-12


def test_the_proof_for_one_key() -> None:
    keys = gaussian(60, 3, 4) * 1e5
    found = copyable(keys)
    for j in range(20):
        proof = certify(keys, j)
        if found.copyable[j]:
            leads = np.delete((keys[j] - keys) @ proof.direction, j)
            assert leads.min() >= proof.margin * (1 - 1e-9)
            assert proof.margin >= found.margin[j] * (1 - 1e-9)
        else:
            np.testing.assert_allclose(proof.weights @ keys[proof.members], keys[j], atol=1e-8)


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="workers"):
        copyable([[1.0], [2.0]], workers=0)
    with pytest.raises(InputError, match="ragged"):
        copyable([[1.0], [2.0, 3.0]])
    with pytest.raises(InputError, match="does not exist"):
        certify([[1.0], [2.0]], 2)
    with pytest.raises(InputError, match="one key"):
        certify([[1.0]], 0)
