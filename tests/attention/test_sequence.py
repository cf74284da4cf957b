"""K, Q and V from one sequence: designs that work when read by hand, and proofs that hold."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.attention.sequence import (
    SequenceDesign,
    at_least,
    at_most,
    design_kqv,
    four_vector_problem,
    frame,
    try_additions,
)
from heedful.errors import InputError

quick = settings(deadline=None, max_examples=25)


def read_by_hand(x: Any, K: Any, Q: Any, V: Any, scale: float, position: int) -> tuple[Any, Any]:
    """The equations, one sum at a time: weights and output of one position."""
    logits = [scale * float((K @ x_j) @ (Q @ x[position])) for x_j in x]
    exponentials = [np.exp(logit - max(logits)) for logit in logits]
    weights = [one / sum(exponentials) for one in exponentials]
    return np.array(weights), sum(w * (V @ x_j) for w, x_j in zip(weights, x, strict=True))


def check_by_hand(x: Any, design: SequenceDesign) -> None:
    assert design.weights is not None
    assert design.outputs is not None
    worst = 0.0
    for row, position in enumerate(design.positions):
        weights, output = read_by_hand(x, design.K, design.Q, design.V, design.scale, position)
        np.testing.assert_allclose(weights, design.weights[row], atol=1e-12)
        np.testing.assert_allclose(output, design.outputs[row], atol=1e-9 * design.error_scale)
        worst = max(worst, float(np.linalg.norm(output - design.wanted[row])))
    assert design.error_absolute == pytest.approx(worst, abs=1e-9 * design.error_scale)
    assert design.error == pytest.approx(worst / design.error_scale, abs=1e-9)


@given(
    norm=st.floats(0.1, 20.0),
    dimension=st.integers(4, 7),
    tolerance=st.sampled_from([0.1, 0.01, 1e-4]),
    scale=st.sampled_from([1.0, 0.3, "sqrt_d"]),
)
@quick
def test_the_four_vector_problem_is_solved_at_any_norm(
    norm: float, dimension: int, tolerance: float, scale: Any
) -> None:
    four = four_vector_problem(norm, dimension)
    design = design_kqv(four.x, four.wanted, tolerance=tolerance, scale=scale, basis=four.basis)
    assert design.feasible
    check_by_hand(four.x, design)
    assert design.plan == {0: (2,), 1: (0,)}
    assert design.mass is not None
    assert design.mass >= 1 - tolerance
    # three positions, the others a unit of score behind: the closed form for one of n keys
    assert design.beta == pytest.approx(np.log(2 * (1 - tolerance) / tolerance))
    assert design.certificate.bound is not None
    assert design.error_absolute <= design.certificate.bound * (1 + 1e-9)


def test_the_answer_can_be_read() -> None:
    four = four_vector_problem()
    said = design_kqv(four.x, four.wanted, basis=four.basis).expressions
    assert said["K"] == "u_c u_cᵀ + u_d u_dᵀ"
    assert said["Q"] == "5.288 (u_c u_dᵀ + u_d u_aᵀ)"
    assert said["V"] == "u_b u_bᵀ − u_c u_cᵀ"
    assert said["y_0"] == "u_b − u_c"


def test_without_matrices_each_vector_reads_itself_and_u_b_is_out_of_reach() -> None:
    four = four_vector_problem(norm=5.0)
    design = design_kqv(four.x, four.wanted, form="identity", basis=four.basis)
    assert not design.feasible
    assert design.expressions["c_1"] == "u_a"
    assert design.certificate.proof
    assert design.certificate.kind == "outside the hull"
    check_by_hand(four.x, design)


def test_adding_u_d_makes_c_read_the_sum_and_still_not_u_b() -> None:
    four = four_vector_problem(norm=5.0)
    extra = {name: four.basis[name] for name in ("u_c", "u_d")}
    for one in try_additions(four.x, 1, four.wanted[1], extra, basis=four.basis):
        np.testing.assert_allclose(one.output, four.basis["u_a"] + extra[one.name], atol=1e-6)
        assert one.impossible
        assert one.best_error > 0.5 * four.norm


def test_an_addition_that_helps_is_not_called_impossible() -> None:
    x = 10 * np.eye(3)
    (helped,) = try_additions(x, 0, x[1], {"x_1 − x_0": x[1] - x[0]})
    assert not helped.impossible
    assert helped.error < 1e-9
    assert helped.best_multiple == pytest.approx(1.0)


@given(st.integers(0, 400))
@quick
def test_no_weights_come_nearer_than_the_proof_allows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    x, wanted = rng.standard_normal((n, d)), 3 * rng.standard_normal(d)
    design = design_kqv(x, {0: wanted}, form="values", tolerance=0.01)
    proof = design.certificate
    if proof.kind != "outside the hull":
        return
    assert proof.direction is not None
    assert proof.distance is not None
    assert np.all((wanted - x) @ proof.direction >= proof.distance)
    draws = rng.dirichlet(np.full(n, 0.3), size=500) @ x
    assert np.linalg.norm(draws - wanted, axis=1).min() >= proof.distance
    assert proof.nearest is not None
    assert np.linalg.norm(proof.nearest - wanted) == pytest.approx(proof.distance, rel=1e-6)


@given(seed=st.integers(0, 400), prefer=st.sampled_from(["sparse", "least_norm"]))
@quick
def test_independent_inputs_can_always_be_given_any_outputs(seed: int, prefer: Any) -> None:
    rng = np.random.default_rng(seed)
    n, extra, outputs = (int(rng.integers(1, high)) for high in (5, 3, 4))
    x = rng.standard_normal((n, n + extra))
    chosen = rng.permutation(n)[: int(rng.integers(1, n + 1))]
    wanted = {int(p): rng.standard_normal(outputs) for p in chosen}
    design = design_kqv(x, wanted, tolerance=0.02, prefer=prefer)
    assert design.feasible
    check_by_hand(x, design)
    assert design.certificate.kind == "plan"
    assert design.beta is not None
    assert design.Q is not None
    if design.beta == 0:
        return
    # a little less scale and the worst position falls short
    weights = [
        read_by_hand(x, design.K, 0.999 * design.Q, design.V, 1.0, p)[0][list(read)].sum()
        for p, read in design.plan.items()
    ]
    assert min(weights) < 0.98


@given(st.integers(0, 300))
@quick
def test_averages_inside_the_hull_are_reached_with_v_fixed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    x = rng.standard_normal((n, n + 1))
    wanted = {p: rng.dirichlet(np.full(n, 2.0)) @ x for p in range(int(rng.integers(1, n + 1)))}
    design = design_kqv(x, wanted, form="values", tolerance=1e-3)
    assert design.feasible
    np.testing.assert_allclose(design.V, np.eye(n + 1), atol=1e-12)
    check_by_hand(x, design)
    assert design.error is not None
    assert design.error <= 1e-3


def test_with_v_fixed_another_input_is_copied_by_a_plan() -> None:
    x = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    design = design_kqv(x, {0: x[1], 1: x[2]}, form="values")
    assert design.certificate.kind == "plan"
    assert design.plan == {0: (1,), 1: (2,)}
    assert design.expressions["V"] == "I"
    check_by_hand(x, design)


@given(st.integers(0, 200))
@settings(deadline=None, max_examples=10)
def test_outputs_of_some_attention_are_found_again_where_no_plan_works(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((5, 2))
    M, V = rng.standard_normal((2, 2, 2))
    outputs = {p: read_by_hand(x, M, np.eye(2), V, 1.0, p)[1] for p in range(5)}
    design = design_kqv(x, outputs, tolerance=0.02)
    # a local search may fail, but then it must not call the possible impossible
    if not design.feasible:
        assert design.certificate.kind == "not found"
        return
    check_by_hand(x, design)
    if design.certificate.kind == "mixture":
        assert design.error is not None
        assert design.error <= 0.02


def test_a_mixture_is_found_on_the_line() -> None:
    x = np.array([[1.0], [2.0], [3.0]])
    outputs = {
        p: read_by_hand(x, 0.3 * np.eye(1), np.eye(1), np.eye(1), 1.0, p)[1] for p in range(3)
    }
    design = design_kqv(x, outputs, tolerance=0.001)
    assert design.certificate.kind == "mixture"
    check_by_hand(x, design)


def test_equal_inputs_cannot_have_two_outputs() -> None:
    x = [[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]]
    design = design_kqv(x, {0: [1.0, 0.0], 2: [0.0, 1.0]})
    assert not design.feasible
    assert design.certificate.kind == "equal inputs"
    assert design.certificate.proof
    assert design.certificate.distance == pytest.approx(np.sqrt(0.5))
    assert design_kqv(x, {0: [1.0, 0.0], 2: [1.0, 0.0]}).feasible


def test_a_zero_input_reads_the_mean() -> None:
    x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    design = design_kqv(x, {0: [3.0, 1.0], 1: [0.0, 5.0]})
    assert design.feasible
    assert design.plan[0] == (0, 1, 2)
    check_by_hand(x, design)
    fixed = design_kqv(x, {0: x[1]}, form="values")
    assert fixed.certificate.kind == "zero input"
    nothing = design_kqv(np.zeros((2, 3)), {0: [1.0]})
    assert nothing.certificate.kind == "zero input"
    assert design_kqv(np.zeros((2, 3)), {0: [0.0]}).feasible


def test_identity_that_works_and_identity_that_reads_otherwise() -> None:
    x = 10 * np.eye(3)
    assert design_kqv(x, {0: x[0]}, form="identity").feasible
    other = design_kqv(x, {0: x[1]}, form="identity")
    assert other.certificate.kind == "nothing to choose"
    assert not other.feasible


def test_a_single_position_and_a_wide_problem() -> None:
    alone = design_kqv([[2.0, 1.0]], {0: [1.0]})
    assert alone.feasible
    assert alone.beta == 0.0
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 40))
    wide = design_kqv(x, {p: rng.standard_normal(40) for p in range(6)})
    assert wide.feasible
    check_by_hand(x, wide)


@given(power=st.integers(-50, 50), prefer=st.sampled_from(["sparse", "least_norm"]))
@quick
def test_the_unit_of_the_inputs_does_not_matter(power: int, prefer: Any) -> None:
    x = np.random.default_rng(3).standard_normal((3, 3))
    plain = design_kqv(x, {0: [1.0, 2.0], 2: [0.0, 1.0]}, prefer=prefer)
    scaled = design_kqv(x * 10.0**power, {0: [1.0, 2.0], 2: [0.0, 1.0]}, prefer=prefer)
    assert scaled.feasible
    assert scaled.mass == pytest.approx(plain.mass, abs=1e-6)


def test_a_tiny_input_is_not_taken_for_the_zero_that_is_wanted() -> None:
    x = 1e-14 * np.array([[1.0, 0.0], [0.0, 1.0]])
    design = design_kqv(x, {0: [0.0, 0.0]}, form="values")
    assert design.certificate.kind == "outside the hull"


def test_repeated_inputs_share_the_mass() -> None:
    x = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    design = design_kqv(x, {0: [0.0, 7.0]})
    check_by_hand(x, design)
    assert design.feasible
    assert design.mass is not None
    assert design.mass >= 0.99


def test_the_record_becomes_json_with_the_names_others_rely_on() -> None:
    four = four_vector_problem()
    for form in ("kqv", "values", "identity"):
        record = json.loads(design_kqv(four.x, four.wanted, form=form).to_json())
        assert {"feasible", "beta", "mass", "error", "K", "Q", "V", "certificate"} <= set(record)
        assert record["certificate"]["statement"]


def test_bounds_in_sentences_are_rounded_to_the_safe_side() -> None:
    assert (at_least(1.29099), at_most(0.0141421)) == ("1.29", "0.01415")
    assert (at_least(0.5), at_most(0.5)) == ("0.5", "0.5")


def test_a_frame_is_completed_and_writes_what_it_was_given() -> None:
    named = frame({"u": [0.0, 2.0, 0.0]}, 3)
    np.testing.assert_allclose(named.axes @ named.axes.T, np.eye(3), atol=1e-12)
    assert named.sum_of_vectors(np.array([0.0, -1.0, 0.0])) == "−0.5 u"
    assert named.sum_of_vectors(np.zeros(3)) == "0"
    assert frame(None, 5).sum_of_products(np.ones((5, 5))) == "a sum of 25 terms"


@pytest.mark.parametrize(
    ("x", "wanted", "options", "message"),
    [
        ([[1.0], [2.0, 3.0]], {0: [1.0]}, {}, "ragged"),
        ([[1.0]], {}, {}, "names no position"),
        ([[1.0]], [[1.0]], {}, "is a list"),
        ([[1.0]], {1: [1.0]}, {}, "position 1 does not exist"),
        ([[1.0]], {"0": [1.0]}, {}, "not a whole number"),
        ([[1.0]], {0: [float("nan")]}, {}, "is nan"),
        ([[1.0], [2.0]], {0: [1.0], 1: [1.0, 2.0]}, {}, "one length"),
        ([[1.0]], {0: [1.0, 2.0]}, {"form": "values"}, "2 entries"),
        ([[1e80]], {0: [1.0]}, {}, "choose another unit"),
        ([[1.0]], {0: [1e-80]}, {}, "choose another unit"),
        ([[1.0]], {0: [1.0]}, {"form": "k"}, "form: 'k' is unknown"),
        ([[1.0]], {0: [1.0]}, {"prefer": "nice"}, "prefer: 'nice' is unknown"),
        ([[1.0]], {0: [1.0]}, {"tolerance": 0.0}, "strictly between"),
        ([[1.0]], {0: [1.0]}, {"scale": -1.0}, "scale"),
        ([[1.0]], {0: [1.0]}, {"basis": {}}, "names no vector"),
        ([[1.0]], {0: [1.0]}, {"basis": {"u": [0.0]}}, "zero vector"),
        ([[1.0, 1.0]], {0: [1.0]}, {"basis": {"u": [1, 0], "w": [1, 1]}}, "not perpendicular"),
    ],
)
def test_bad_input_is_refused(x: Any, wanted: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        design_kqv(x, wanted, **options)


def test_a_bad_four_vector_problem_is_refused() -> None:
    with pytest.raises(InputError, match="dimension: is 3; a whole number, at least 4"):
        four_vector_problem(dimension=3)
    with pytest.raises(InputError, match="norm"):
        four_vector_problem(norm=0.0)
