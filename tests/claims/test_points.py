"""Claims that fail at one point, at the end of a scale, or for special arrays only."""

from __future__ import annotations

from typing import Any

import pytest

from heedful.claims.judge import judge_claim
from heedful.claims.sheet import Claim
from heedful.claims.verdict import Verdict

ANY: dict[str, Any] = {"where": {"x": "any"}}
VECTOR: dict[str, Any] = {"where": {"d": [2, 3], "x": "vector d"}}
PLANE: dict[str, Any] = {"where": {"x": "vector 2", "y": "vector 2"}}
SQUARE: dict[str, Any] = {"where": {"A": "matrix 2 x 2"}}
FREE: dict[str, Any] = {"keys": "any", "where": {"n": 2, "d": 2, "x": "vector d"}, "query": "x"}


def judged(expect: str, **fields: Any) -> Verdict:
    return judge_claim(Claim(id="point", expect=(expect,), **fields), repair=False)


def on(interval: str) -> dict[str, Any]:
    return {"where": {"r": interval}}


FALSE: list[tuple[str, dict[str, Any]]] = [
    # one number of an interval
    ("r != 3.7", on("[0, 10]")),
    ("abs(r - 1/3) > 0", on("[0, 10]")),
    ("r^2 != 2", on("[0, 2]")),
    ("(7 r - 2)^2 > 0", on("[0, 1]")),
    ("r < 0.123 or r > 0.123", on("[0, 1]")),
    ("exp(r) != 2", on("[0, 1]")),
    ("abs(sin(r)) > 0", on("[1, 10]")),
    ("(r - pi)^2 >= 1e-12", on("[0, 10]")),
    ("r > 9.999 implies r > 9.9995", on("[0, 10]")),
    ("alpha_a != 0.7",
     {"keys": "orthonormal", "query": "r k_a", "where": {"n": 2, "r": "[0, 5]"}}),
    ("r + s != 1.37", {"where": {"r": "[0, 1]", "s": "[0, 1]"}}),
    ("x != 12345.678", ANY),
    ("abs(x - 1e5) > 0.5", ANY),
    ("m != 5003", {"where": {"m": "1..10000"}}),
    ("m^2 != 5329", {"where": {"m": "integer >= 1"}}),
    # the end of a scale
    ("x >= 1e-30", {"where": {"x": "positive"}}),
    ("x^2 <= 1e20", ANY),
    ("exp(x) <= 1e300", ANY),
    ("m <= 100000", {"where": {"m": "integer >= 2"}}),
    ("ln(m) <= 20", {"where": {"m": "integer >= 2"}}),
    ("epsilon >= 1e-30", {"where": {"epsilon": "small"}}),
    ("norm(x) <= 1000", VECTOR),
    ("norm(x) = 0 or norm(x) >= 1e-6", VECTOR),
    ("norm(k_a) <= 1000", {"keys": "any"}),
    ("alpha_a <= 1 - 1e-9", {"keys": "any", "query": "k_a", "where": {"n": 2, "d": 2}}),
    ("abs(det(A)) <= 1e6", SQUARE),
    ("sum(exp(x)) <= 1e6", {"where": {"x": "vector 2"}}),
    # special arrays
    ("norm(layernorm(x)) = sqrt(d)", VECTOR),
    ("layernorm(2 x) = layernorm(x)", VECTOR),
    ("norm(rmsnorm(x)) = sqrt(d)", VECTOR),
    ("norm(x/norm(x)) = 1", VECTOR),
    ("norm(layernorm(x)) = 1", {"where": {"x": "vector 1"}}),
    ("1/(n - n) >= 0", {"where": {"n": [2, 3]}}),
    ("norm(softmax(x))^2 > 1/3", {"where": {"x": "vector 3"}}),
    ("inv(A) A = eye(2)", SQUARE),
    # one pair of many positions
    ("s t != 88209 for all s, t < T", {"where": {"T": 300}}),
    ("s - t != 299 for all s, t < T", {"where": {"T": 300}}),
    # under a condition that hardly any case meets
    ("norm(x) = 5 implies x_1 <= 4.9", PLANE),
    ("norm(x) >= 100 implies sum(x) >= 0", PLANE),
    ("k_a^T q >= k_b^T q + 4 implies alpha_a >= 0.99", FREE),
    # in draws that hardly ever come
    ("x <= 20", {"where": {"x": "normal"}}),
    ("norm(x) <= 20", {"where": {"x": "normal vector 3"}}),
    ("alpha_i >= 0.99 for all i where k_i^T mu_i >= 1.5",
     {"keys": "gaussian", "covariance": {"a": "1/2 mu_a mu_a^T"}, "query": "2 (mu_a + mu_b)",
      "where": {"n": 2}}),
]  # fmt: skip


@pytest.mark.parametrize(("expect", "fields"), FALSE, ids=[expect for expect, _ in FALSE])
def test_a_failure_that_chance_does_not_meet_is_found(expect: str, fields: dict[str, Any]) -> None:
    verdict = judged(expect, **fields)
    assert verdict.verdict == "refuted", verdict.evidence.statement


TRUE: list[tuple[str, dict[str, Any]]] = [
    ("r != 11", on("[0, 10]")),
    ("r != 0", on("(0, 1)")),
    ("(r - 1/3)^2 >= 0", on("[0, 10]")),
    ("epsilon <= 1e-30", {"where": {"epsilon": "small"}}),
    ("norm(x) = 5 implies x^T x = 25", PLANE),
    ("x^T y = 0 implies norm(x + y)^2 = norm(x)^2 + norm(y)^2", PLANE),
    ("k_a^T q >= k_b^T q + 8 implies alpha_a >= 0.99", FREE),
    ("norm(x) > 0 implies norm(rmsnorm(x)) = sqrt(d)", VECTOR),
    ("s + t < 600 for all s, t < T", {"where": {"T": 300}}),
    ("norm(x) = 1", {"where": {"d": [2, 3, 5], "x": "unit vector d"}}),
    ("alpha_a < 1", FREE),
    ("max(softmax(x)) < 1", VECTOR),
    ("entropy(alpha) > 0", FREE),
    ("r^-2 (r u_b) (r u_b)^T (r u_d + r u_b) = r u_b",
     {"where": {"u": "orthonormal 4 x 4", "r": "[0.5, 100]"}}),
]  # fmt: skip


@pytest.mark.parametrize(("expect", "fields"), TRUE, ids=[expect for expect, _ in TRUE])
def test_what_is_true_everywhere_still_holds(expect: str, fields: dict[str, Any]) -> None:
    verdict = judged(expect, **fields)
    assert verdict.holds, verdict.evidence.statement


UNIT = {"keys": "unit", "query": "x", "where": {"n": 3, "d": 2, "x": "vector d"}}
SPREAD = {"keys": "any", "query": "x", "where": {"n": [2, 3], "d": 2, "x": "vector d"}}
MET: list[tuple[str, dict[str, Any]]] = [
    ("entropy(softmax(x)) < ln(3)", {"where": {"x": "vector 3"}}),
    ("kl(softmax(x), softmax(y)) > 0", {"where": {"x": "vector 3", "y": "vector 3"}}),
    ("logsumexp(x) < max(x) + ln(3)", {"where": {"x": "vector 3"}}),
    ("max(softmax(2 x)) > max(softmax(x))", {"where": {"x": "vector 3"}}),
    ("entropy(alpha) < ln(n)", SPREAD),
    ("abs(k_a^T k_b) < 1", UNIT),
    ("norm(k_a - k_b) < 2", UNIT),
    ("norm(k_a - k_b) > 0", UNIT),
]  # fmt: skip
TOUCHED: list[tuple[str, dict[str, Any]]] = [
    ("sin(r) < 1", on("[0, 10]")),
    ("sin(r) + cos(r) < sqrt(2)", on("[0, 10]")),
    ("r exp(-r^2) < exp(-1/2)/sqrt(2)", on("any")),
    ("sin(beta) < 1", {"where": {"beta": "large"}}),
]  # fmt: skip


@pytest.mark.parametrize(("expect", "fields"), MET, ids=[expect for expect, _ in MET])
def test_a_strict_bound_that_is_met_at_a_special_point_is_refuted(
    expect: str, fields: dict[str, Any]
) -> None:
    assert judged(expect, **fields).verdict == "refuted"
    assert judged(expect.replace("<", "<=").replace(">", ">="), **fields).holds


@pytest.mark.parametrize(("expect", "fields"), TOUCHED, ids=[expect for expect, _ in TOUCHED])
def test_a_strict_bound_that_is_touched_at_a_point_without_a_name_is_not_supported(
    expect: str, fields: dict[str, Any]
) -> None:
    assert judged(expect, **fields).verdict == "undecided"
    assert judged(f"{expect} + 1e-9", **fields).holds


def test_a_power_that_algebra_cannot_hold_is_no_crash() -> None:
    assert judged("norm(c) < max(norm(v_i), i)", **SPREAD).verdict == "refuted"
    verdict = judged("exp(-1) (4 * alpha_a) > exp(-1) (1)", keys="orthonormal", query="r k_a",
                     where={"n": 4, "r": "[0, 3]"})  # fmt: skip
    assert verdict.verdict == "refuted"


def test_a_point_without_a_short_name_is_shown_between_two_numbers() -> None:
    verdict = judged("r^2 != 2", **on("[0, 2]"))
    assert verdict.evidence.numbers["low"] < 2**0.5 < verdict.evidence.numbers["high"]


def test_a_fraction_that_no_decimal_comes_to_is_shown_as_one() -> None:
    verdict = judged("abs(r - 1/3) > 0", **on("[0, 10]"))
    assert verdict.counterexample is not None
    assert verdict.counterexample.symbols == {"r": "1/3"}
    assert "r = 1/3" in verdict.counterexample.statement


def test_sizes_that_do_not_fit_into_memory_are_left_out() -> None:
    where = {"n": "2..100000"}
    verdict = judged("sum(alpha_i, i) <= 2", keys="orthonormal", query="k_a", where=where)
    assert verdict.verdict in ("proved", "supported")


def test_enough_figures_are_shown_to_see_a_difference() -> None:
    verdict = judged("x <= 0.5", where={"x": [0.5000000001]})
    assert "0.5000000001" in verdict.evidence.statement


def test_few_cases_are_said_to_be_weak_support_and_vacuous_ones_do_not_count() -> None:
    verdict = judged("norm(x) = 5 implies x^T x = 25", **PLANE)
    assert "in which its condition is met" in verdict.evidence.statement
    assert "weak support" in judged("sigmoid(x) <= 1", **ANY).evidence.statement


@pytest.mark.parametrize(
    ("expect", "fields"),
    [
        ("exp(x) > 0", ANY),
        ("alpha_a > 0",
         {"keys": "gaussian", "covariance": {"a": "1/2 mu_a mu_a^T"}, "query": "mu_a",
          "where": {"n": 2}}),
    ],
)  # fmt: skip
def test_signs_prove_beyond_float64_and_under_noise(expect: str, fields: dict[str, Any]) -> None:
    assert judged(expect, **fields).verdict == "proved"
