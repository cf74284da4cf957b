"""A direction or a combination: exactly one of them, checked without the solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from heedful.attention.hull import rounding_of, separate
from heedful.attention.keys import gaussian, grid

seeds = st.integers(0, 10_000)


def is_inside_by_linear_programme(points: np.ndarray, origin: np.ndarray) -> bool:
    found = linprog(
        np.zeros(len(points)),
        A_eq=np.vstack([points.T, np.ones(len(points))]),
        b_eq=np.append(origin, 1.0),
    )
    return bool(found.status == 0)


@given(n=st.integers(1, 14), d=st.integers(1, 5), seed=seeds)
@settings(deadline=None, max_examples=80)
def test_the_verdict_is_that_of_a_linear_programme_and_proves_itself(
    n: int, d: int, seed: int
) -> None:
    points, origin = gaussian(n, d, seed), 0.5 * gaussian(1, d, seed + 1)[0]

    found = separate(points, origin)

    assert (found.verdict == "inside") == is_inside_by_linear_programme(points, origin)
    assert (found.weights > 0).all()
    assert found.weights.sum() == pytest.approx(1)
    hit = found.weights @ points[found.members]
    assert np.linalg.norm(hit - origin) == pytest.approx(found.margin_upper, abs=1e-12)
    if found.verdict == "inside":
        assert found.margin == 0
        assert found.margin_upper <= 1e-12
    else:
        assert ((origin - points) @ found.direction >= found.margin).all()
        assert found.margin > 0


@given(n=st.integers(1, 8), d=st.integers(1, 4), seed=seeds)
@settings(deadline=None, max_examples=30)
def test_the_margin_is_the_distance_to_the_hull(n: int, d: int, seed: int) -> None:
    points = gaussian(n, d, seed) + 2 * np.eye(d)[0]

    found = separate(points)

    nearest = minimize(
        lambda weights: float(np.sum((weights @ points) ** 2)),
        np.full(n, 1 / n),
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    distance = float(np.sqrt(nearest.fun))
    assert found.margin_upper == pytest.approx(distance, abs=1e-5)
    if found.verdict == "outside":
        assert found.margin == pytest.approx(found.margin_upper, rel=1e-9)


@given(seed=seeds, size=st.sampled_from([1e-100, 1e-6, 1.0, 1e6, 1e100]))
@settings(deadline=None, max_examples=30)
def test_the_units_of_the_points_do_not_matter(seed: int, size: float) -> None:
    points = gaussian(12, 3, seed)
    plain = separate(points, points[0], without=0)

    scaled = separate(points * size, points[0] * size, without=0)

    assert scaled.verdict == plain.verdict
    assert scaled.margin == pytest.approx(plain.margin * size, rel=1e-9)


def test_stopping_early_gives_the_same_verdict_and_a_smaller_margin() -> None:
    points = gaussian(300, 4, 0)
    for j in range(60):
        early = separate(points, points[j], without=j, exact=False)
        exact = separate(points, points[j], without=j)
        assert early.verdict == exact.verdict
        assert early.margin <= exact.margin * (1 + 1e-12)


def test_points_of_a_grid_are_inside_unless_they_are_corners() -> None:
    points = grid(27, 3)
    corners = np.abs(points).min(axis=1) == 1
    for j in range(27):
        found = separate(points, points[j], without=j)
        assert found.verdict == ("outside" if corners[j] else "inside")


@pytest.mark.parametrize("depth", [1e-9, 1e-12, 1e-13])
def test_a_tiny_margin_is_still_proved(depth: float) -> None:
    points = np.array([[1.0, -depth], [-1.0, -depth]])

    found = separate(points)

    assert found.verdict == "outside"
    assert found.margin == pytest.approx(depth, rel=0.1)


def test_below_rounding_nothing_is_claimed_to_be_outside() -> None:
    points = np.array([[1.0, -1e-17], [-1.0, -1e-17]])

    found = separate(points)

    assert found.verdict == "inside"
    assert found.margin_upper <= 4 * rounding_of(points)


def test_equal_points_are_inside_each_other() -> None:
    found = separate(np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([1.0, 2.0]), without=0)

    assert found.verdict == "inside"
    assert found.members.tolist() == [1]


def test_many_points_enter_only_when_they_are_needed() -> None:
    points = gaussian(5000, 20, 3)

    found = separate(points, points[0], without=0)

    assert found.verdict == "outside"
    assert ((points[0] - points) @ found.direction)[1:].min() >= found.margin
    assert len(found.members) <= 21


def test_the_linear_programmes_agree_with_the_quadratic_one() -> None:
    from heedful.attention.hull import _Search

    points = gaussian(40, 3, 5)
    for j in range(20):
        first = separate(points, points[j], without=j)
        search = _Search(
            points=points, origin=points[j], without=j, rounding=1e3 * rounding_of(points)
        )
        unclear = search._checked(first.members[:1], np.ones(1))
        assert search.second_opinion(unclear).verdict == first.verdict
