"""Designs keep their promises, and refusals prove themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp

from heedful.attention import attend
from heedful.attention.design import (
    Design,
    Face,
    Order,
    design_average,
    design_copy,
    design_weights,
    face_of,
    fix_ratios,
    least_query,
    scale_on_face,
)
from heedful.attention.keys import gaussian, grid, orthonormal, simplex, sphere
from heedful.errors import InputError

seeds = st.integers(0, 10_000)
tolerances = st.sampled_from([0.5, 0.1, 0.01, 1e-4, 1e-8])


def total_variation(design: Design, keys: np.ndarray) -> float:
    alpha = attend(design.query, keys, scale=design.scale).weights
    return 0.5 * float(np.abs(alpha - design.target).sum())


def assert_kept(design: Design, keys: np.ndarray) -> None:
    """The promise of a design that exists, as `attend` sees it."""
    reading = attend(design.query, keys, scale=design.scale)
    assert float(reading.mass(design.of)) >= 1 - design.tolerance
    assert total_variation(design, keys) <= design.tolerance + 1e-14
    assert design.error == pytest.approx(total_variation(design, keys), abs=1e-14)
    assert design.norm == pytest.approx(np.linalg.norm(design.query))
    np.testing.assert_allclose(design.weights, reading.weights)


def assert_refusal_proved(design: Design, keys: np.ndarray) -> None:
    """λ and a describe one point, and the cap and the floor follow from them."""
    proof = design.certificate
    assert proof.combination is not None
    assert proof.affine is not None
    weights = np.array(list(proof.combination.values()))
    assert (weights > 0).all()
    assert not set(proof.combination) & set(design.of)
    assert weights.sum() == pytest.approx(1)
    a = np.array(list(proof.affine.values()))
    assert a.sum() == pytest.approx(1)
    extent = np.abs(keys - keys.mean(axis=0)).max()
    hit = weights @ keys[list(proof.combination)]
    np.testing.assert_allclose(hit, a @ keys[list(proof.affine)], atol=1e-7 * extent)
    entropy = -float(weights @ np.log(weights))
    on_support = float(a @ np.log(design.target[list(proof.affine)]))
    assert proof.ceiling == pytest.approx(1 / (1 + math.exp(entropy + on_support)), rel=1e-6)
    assert proof.ceiling < 1 - design.tolerance
    assert proof.best_mass <= proof.ceiling * (1 + 1e-6)
    assert proof.floor is not None
    assert proof.best_error >= proof.floor * (1 - 1e-9)


@given(
    n=st.integers(2, 12),
    d=st.integers(1, 6),
    seed=seeds,
    tolerance=tolerances,
    scale=st.sampled_from([1.0, "sqrt_d", 0.3]),
    size=st.sampled_from([1e-6, 1.0, 1e6]),
)
@settings(deadline=None, max_examples=40)
def test_a_copy_is_kept_or_its_refusal_is_proved(
    n: int, d: int, seed: int, tolerance: float, scale: Any, size: float
) -> None:
    keys = size * gaussian(n, d, seed)

    design = design_copy(keys, seed % n, tolerance=tolerance, scale=scale)

    if design.feasible:
        assert_kept(design, keys)
        assert design.certificate.norm_lower_bound == pytest.approx(design.norm, rel=1e-6)
    else:
        assert_refusal_proved(design, keys)


@given(n=st.integers(2, 10), d=st.integers(1, 6), seed=seeds, tolerance=tolerances)
@settings(deadline=None, max_examples=40)
def test_weights_are_kept_or_their_refusal_is_proved(
    n: int, d: int, seed: int, tolerance: float
) -> None:
    keys = gaussian(n, d, seed)
    rng = np.random.default_rng(seed)
    wanted = rng.dirichlet(np.ones(n)) * (rng.random(n) < 0.5)
    wanted = wanted / wanted.sum() if wanted.sum() > 0.01 else np.eye(n)[0]

    design = design_weights(keys, wanted, tolerance=tolerance)

    if design.feasible:
        assert_kept(design, keys)
    elif design.certificate.kind == "affine dependency":
        y = np.zeros(n)
        y[list(design.certificate.affine)] = list(design.certificate.affine.values())
        on = wanted > 0
        assert abs(y.sum()) < 1e-9
        assert np.abs(y @ keys).max() < 1e-8
        assert y[on] @ np.log(wanted[on]) > 1e-9
    else:
        assert_refusal_proved(design, keys)


@given(n=st.integers(2, 9), d=st.integers(2, 5), seed=seeds)
@settings(deadline=None, max_examples=25)
def test_no_shorter_query_is_found_by_another_solver(n: int, d: int, seed: int) -> None:
    keys, tolerance = gaussian(n, d, seed), 0.05
    design = design_copy(keys, 0, tolerance=tolerance)
    if not design.feasible or design.norm == 0:
        return
    level = math.log(tolerance / (1 - tolerance))

    found = minimize(
        lambda q: float(q @ q) / design.norm**2,
        1.5 * design.query,
        constraints={
            "type": "ineq",
            "fun": lambda q: level - logsumexp((keys[1:] - keys[0]) @ q),
        },
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )

    assert np.sqrt(found.fun) >= 1 - 1e-5


@given(n=st.integers(2, 9), d=st.integers(1, 4), seed=seeds, tolerance=tolerances)
@settings(deadline=None, max_examples=40)
def test_whatever_cannot_be_copied_is_not_reached_by_another_solver(
    n: int, d: int, seed: int, tolerance: float
) -> None:
    keys = gaussian(n, d, seed)
    design = design_copy(keys, 0, tolerance=tolerance)
    if design.feasible:
        return

    found = minimize(lambda q: float(logsumexp((keys - keys[0]) @ q)), np.zeros(d), method="BFGS")

    assert math.exp(-found.fun) <= design.certificate.best_mass + 1e-6
    assert design.certificate.best_mass <= design.certificate.ceiling + 1e-9


@given(
    n=st.integers(2, 12),
    m=st.integers(1, 11),
    tolerance=tolerances,
    size=st.sampled_from([0.01, 1.0, 30.0]),
)
@settings(deadline=None, max_examples=40)
def test_the_closed_form_for_orthogonal_keys(n: int, m: int, tolerance: float, size: float) -> None:
    m = min(m, n - 1)
    keys = size * orthonormal(n, n + 2)

    design = design_average(keys, range(m), tolerance=tolerance)

    beta = max(0.0, math.log((n - m) * (1 - tolerance) / (m * tolerance)))
    assert design.beta == pytest.approx(beta, abs=1e-9)
    assert design.norm == pytest.approx(beta * math.sqrt(m * (n - m) / n) / size, rel=1e-9)
    assert design.certificate.textbook_norm == pytest.approx(beta * math.sqrt(m) / size, rel=1e-9)
    assert design.certificate.closed_form is not None
    a, b = beta * (n - m) / n, beta * m / n
    expected = (a * keys[:m].sum(axis=0) - b * keys[m:].sum(axis=0)) / size**2
    np.testing.assert_allclose(design.query, expected, atol=1e-9 * (1 + beta) / size)


@given(n=st.integers(3, 9), seed=seeds, tolerance=tolerances, around=st.booleans())
@settings(deadline=None, max_examples=40)
def test_the_closed_form_is_what_the_solver_finds(
    n: int, seed: int, tolerance: float, around: bool
) -> None:
    keys = simplex(n) if around else orthonormal(n)
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, n))
    target = np.append(rng.dirichlet(np.full(m, 3.0)), np.zeros(n - m))
    order = Order(
        kind="weights",
        keys=keys,
        target=target,
        of=tuple(range(m)),
        tolerance=tolerance,
        scale=1.0,
    )
    ratios = fix_ratios(keys, target)

    closed, solved = face_of(ratios), face_of(ratios, closed_form=False)

    assert isinstance(closed, Face)
    assert isinstance(solved, Face)
    assert closed.equidistant
    np.testing.assert_allclose(closed.u, solved.u, atol=1e-9)
    beta = scale_on_face(order, ratios, closed)
    assert scale_on_face(order, ratios, solved) == pytest.approx(beta, abs=1e-9)
    ray = least_query(order, ratios, 100 * closed.u, on_ray=True)
    free = least_query(order, ratios, 100 * closed.u)
    assert ray is not None
    assert free is not None
    np.testing.assert_allclose(free.query, ray.query, atol=1e-6)


@given(n=st.integers(3, 20), d=st.integers(2, 8), seed=seeds, tolerance=tolerances)
@settings(deadline=None, max_examples=40)
def test_beta_is_the_smallest_scale_of_the_unit_margin_direction(
    n: int, d: int, seed: int, tolerance: float
) -> None:
    keys = sphere(n, d, seed)  # every key of a sphere can be copied
    of = seed % n

    design = design_copy(keys, of, tolerance=tolerance)

    u = design.certificate.direction
    leads = np.delete((keys[of] - keys) @ u, of)
    assert leads.min() == pytest.approx(1, rel=1e-9)
    assert design.certificate.margin == pytest.approx(1 / np.linalg.norm(u), rel=1e-9)
    if design.beta > 0:
        level = math.log(tolerance / (1 - tolerance))
        assert logsumexp(-design.beta * leads) == pytest.approx(level, abs=1e-9)
    assert design.norm <= design.beta * np.linalg.norm(u) * (1 + 1e-9)


def test_the_guaranteed_error_holds_for_any_values() -> None:
    keys, values = gaussian(12, 11, 1), gaussian(12, 3, 2)
    diameter = max(np.linalg.norm(v - w) for v in values for w in values)
    wanted = np.array([0.5, 0.3, 0.2] + 9 * [0.0])

    design = design_weights(keys, wanted, tolerance=0.02)

    output = attend(design.query, keys, values).output
    assert np.linalg.norm(output - wanted @ values) <= design.error * diameter


def test_a_subset_that_fills_no_face_is_refused_with_the_point_both_sides_share() -> None:
    square = grid(4, 2)  # the diagonals cross

    design = design_average(square, [0, 3], tolerance=0.01)

    assert not design.feasible
    assert_refusal_proved(design, square)
    assert design.certificate.combination == pytest.approx({1: 0.5, 2: 0.5})
    assert design.certificate.ceiling == pytest.approx(0.5)
    assert "impossible" in design.certificate.statement


def test_an_edge_of_a_square_can_be_averaged() -> None:
    assert_kept(design_average(grid(4, 2), [0, 1], tolerance=1e-6), grid(4, 2))


def test_exact_ratios_that_the_keys_forbid_are_refused_or_approached() -> None:
    line = [[0.0], [1.0], [2.0]]  # every query has α_1² = α_0 α_2

    refused = design_weights(line, [0.3, 0.3, 0.4], tolerance=0.01)
    assert not refused.feasible
    assert refused.certificate.kind == "affine dependency"
    assert refused.certificate.floor > 0.01
    assert refused.certificate.best_error >= refused.certificate.floor

    approached = design_weights(line, [0.3, 0.3, 0.4], tolerance=0.1)
    assert approached.feasible
    assert approached.beta is None
    assert approached.certificate.kind == "nearest found"
    assert total_variation(approached, np.array(line)) <= 0.1

    assert design_weights(line, [1 / 7, 2 / 7, 4 / 7]).feasible


def test_a_loose_tolerance_is_within_reach_of_a_key_inside_the_hull() -> None:
    line = np.array([[0.0], [1.0], [10.0]])

    design = design_copy(line, 1, tolerance=0.65)

    assert_kept(design, line)
    assert design.beta is None
    assert design.certificate.kind == "bounded search"
    assert design.certificate.norm_lower_bound == pytest.approx(design.norm, rel=1e-6)


def test_one_of_two_equal_keys_gets_half_at_most() -> None:
    keys = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]])

    assert design_copy(keys, 0).certificate.ceiling == pytest.approx(0.5)
    assert_kept(design_copy(keys, 0, tolerance=0.6), keys)
    assert_kept(design_copy(keys[:2], 0, tolerance=0.5), keys[:2])
    assert_kept(design_average(keys, [0, 1]), keys)


@pytest.mark.parametrize(
    "design",
    [
        design_copy([[3.0, 1.0]], 0),
        design_average(orthonormal(3), [0, 1, 2]),
        design_weights(orthonormal(3), [0.2, 0.3, 0.5]),
    ],
    ids=["one key", "all keys", "weights on all keys"],
)
def test_without_other_keys_nothing_can_be_lost(design: Design) -> None:
    assert design.feasible
    assert design.beta == 0
    assert design.error == pytest.approx(0, abs=1e-15)
    np.testing.assert_allclose(design.weights, design.target)


def test_a_tolerance_that_needs_no_query_gets_none() -> None:
    design = design_copy(gaussian(5, 8, 0), 2, tolerance=0.9)

    assert design.feasible
    assert design.beta == 0
    assert design.norm == 0


def test_shifting_all_keys_changes_nothing() -> None:
    keys = gaussian(10, 4, 7)
    plain = design_copy(keys, 0)

    shifted = design_copy(keys + 1e5, 0)

    assert shifted.beta == pytest.approx(plain.beta, rel=1e-8)
    np.testing.assert_allclose(shifted.query, plain.query, rtol=1e-6)


def test_a_tolerance_far_below_rounding_is_kept() -> None:
    keys = gaussian(10, 4, 7)

    assert 0 < design_copy(keys, 0, tolerance=1e-30).error <= 1e-30


def test_many_keys_in_many_dimensions() -> None:
    keys = gaussian(4000, 64, 0)

    design = design_average(keys, [3, 5], tolerance=1e-3)

    assert_kept(design, keys)
    assert design.certificate.norm_lower_bound == pytest.approx(design.norm, rel=1e-6)


def test_few_keys_in_many_dimensions() -> None:
    keys = gaussian(5, 300, 0)

    design = design_weights(keys, [0.5, 0.0, 0.3, 0.2, 0.0], tolerance=1e-3)

    assert_kept(design, keys)
    assert design.certificate.norm_lower_bound == pytest.approx(design.norm, rel=1e-6)


def test_the_record_becomes_json() -> None:
    record = design_copy([[1.0], [2.0], [3.0]], 1).to_dict()

    assert record["feasible"] is False
    assert record["certificate"]["combination"] == pytest.approx({"0": 0.5, "2": 0.5})
    assert {"beta", "mass", "error", "query"} <= set(record)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: design_copy([[1.0], [2.0]], 2), "key 2 does not exist"),
        (lambda: design_copy([[1.0], [2.0]], 0, tolerance=0.0), "tolerance: is 0"),
        (lambda: design_copy([[1.0], [2.0]], 0, tolerance=1.0), "tolerance: is 1"),
        (lambda: design_copy([[1.0], [2.0]], 0, scale=-1.0), "scale: is -1"),
        (lambda: design_copy([[1.0, 2.0], [2.0]], 0), "ragged"),
        (lambda: design_copy([[1.0, math.nan]], 0), "is nan"),
        (lambda: design_copy(None, 0), "is of type NoneType"),
        (lambda: design_average([[1.0], [2.0]], []), "names no key"),
        (lambda: design_average([[1.0], [2.0]], [1, 1]), "twice"),
        (lambda: design_weights([[1.0], [2.0]], [0.5, 0.4]), "sum to 0.9"),
        (lambda: design_weights([[1.0], [2.0]], [1.5, -0.5]), "weight 1 is -0.5"),
        (lambda: design_weights([[1.0], [2.0]], [1.0]), "has 1 entries"),
    ],
)
def test_bad_orders_are_refused_in_one_line(call: Any, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)
