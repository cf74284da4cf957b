"""Attempts to make the judge prove what is false, or refute what is true.

Each of these looks right in float64, or in the cases that a quick search tries.
"""

from __future__ import annotations

from typing import Any

import pytest

from heedful.claims.judge import judge_claim
from heedful.claims.sheet import Claim
from heedful.claims.verdict import Verdict
from heedful.errors import FormulaError

NOISY = {"keys": "gaussian", "covariance": {"a": "1/2 mu_a mu_a^T"}}
ISOTROPIC = {"keys": "gaussian", "covariance": {"others": "0.01 I"}}


def judged(expect: str, **fields: Any) -> Verdict:
    return judge_claim(Claim(id="attempt", expect=(expect,), **fields), repair=False)


FALSE: dict[str, dict[str, Any]] = {
    "saturates in float64": {
        "expect": "alpha_a = 1",
        "keys": "orthonormal", "query": "100 k_a", "where": {"n": [2, 3]},
    },
    "saturates at every large scale": {
        "expect": "alpha_a = 1",
        "keys": "orthonormal", "query": "beta k_a", "where": {"n": 2, "beta": "large"},
    },
    "beyond every working precision": {
        "expect": "alpha_a = 1",
        "keys": "orthonormal", "query": "100000 k_a", "where": {"n": 2},
    },
    "a sum that rounds below its value": {
        "expect": "sum(alpha_i, i) < 1",
        "keys": "orthonormal", "query": "0.7 k_a", "where": {"n": [3, 7, 10]},
    },
    "a bound missed by exp(-100)": {
        "expect": "alpha_b <= 0",
        "keys": "orthonormal", "query": "100 k_a", "where": {"n": 2},
    },
    "true only for some sizes": {
        "expect": "c ≈ (v_a + v_b)/2",
        "keys": "orthonormal", "query": "5 (k_a + k_b)", "where": {"n": [2, 3, 10, 64]},
    },
    "fails at one of four thousand combinations": {
        "expect": "r + t != 126",
        "where": {"r": list(range(64)), "t": list(range(64))},
    },
    "embeddings of a position and itself": {
        "expect": "phi(s) != phi(t) for all s, t < T",
        "positions": {"width": 4}, "where": {"T": 10},
    },
    "a tail that was never drawn": {
        "expect": "P(norm(k_a - mu_a) <= 0.6) >= 0.9999999",
        **ISOTROPIC, "where": {"n": 2},
    },
    "equal sides of the wrong order": {
        "expect": "A P = P A",
        "where": {"T": [2, 3], "A": "matrix T x T", "P": "permutation T"},
    },
    "a random number beside a statistic": {
        "expect": "P(alpha_a > 1/2) <= alpha_b",
        **NOISY, "query": "5 (mu_a + mu_b)", "where": {"n": 2},
    },
    "tight at its ends only": {
        "expect": "std(alpha_a) <= 0.2",
        **NOISY, "query": "r (mu_a + mu_b)", "where": {"n": 2, "r": "[0, 50]"},
    },
    "the last index of two": {
        "expect": "s + t <= 6 for all s, t where s < 3 and t < 6",
        "where": {"T": 1},
    },
    "a wave that is low at round scales": {
        "expect": "sin(beta) <= 0.99", "where": {"beta": "large"},
    },
    "large beyond a hundred million": {
        "expect": "beta <= 1e30", "where": {"beta": "large"},
    },
    "any number beyond the usual ones": {
        "expect": "x <= 500", "where": {"x": "any"},
    },
    "noise that grows with the scale": {
        "expect": "P(c ≈ (v_a + v_b)/2 within 0.1) >= 0.95",
        **ISOTROPIC, "query": "beta (mu_a + mu_b)", "where": {"n": 2, "beta": "large"},
    },
    "a parameter inside an index": {
        "expect": "total(y) = total(x)", "let": {"total(x)": "sum(x_i, i)"},
        "where": {"x": "vector 2", "y": "vector 2"},
    },
    "a parameter inside an index of a multiple": {
        "expect": "lse(2 x) = lse(x)", "let": {"lse(x)": "ln(sum(exp(x_i), i))"},
        "where": {"x": "vector 2"},
    },
    "cases that balls cannot select": {
        "expect": "alpha_i >= 0.99 for all i where k_i^T q >= 4",
        "keys": "orthonormal", "query": "r k_a", "where": {"n": 2, "r": "[0, 10]"},
    },
    "means that are not perpendicular": {
        "expect": "E(alpha_b) >= 0.99",
        "keys": "gaussian", "means": [[1, 0], [0.6, 0.8]], "query": "5 mu_b",
    },
    "a product of three vectors": {
        "expect": "P x (y z) = P * ((x y) z)",
        "where": {"T": [2, 3], "P": "permutation T", "x": "vector T", "y": "vector T",
                  "z": "vector T"},
    },
    "a root that is not there": {"expect": "sqrt(x)^2 = x", "where": {"x": "any"}},
    "a quotient that is not there": {"expect": "x/x = 1", "where": {"x": "any"}},
    "a quotient that is not there inside": {
        "expect": "(x - 1)/(x - 1) = 1", "where": {"x": "[0, 2]"},
    },
    "the wrong one of the given keys": {
        "expect": "alpha_a >= 0.9",
        "keys": [[1, 0], [0, 1], [0.5, 0.5]], "query": "20 k_a",
    },
    "a gap in an interval": {"expect": "abs(r - 4) >= 0.5", "where": {"r": "[0, 10]"}},
    "a narrow gap in an interval": {
        "expect": "(r - 3.3)^2 + 0.001 >= 0.00101", "where": {"r": "[0, 10]"},
    },
    "one of sixty whole numbers": {"expect": "m != 17", "where": {"m": "2..64"}},
    "a weight behind a mask": {
        "expect": "W[1, 2] > 0", "where": {"T": 2},
        "let": {"W": "softmax(1e10 stack(concat(0, 1), concat(0, 1)) + causal(T))"},
    },
    "the third column of two rows": {
        "expect": "A[1, j] <= 1 for all j",
        "let": {"A": "stack(concat(1, 1, 5), concat(0, 0, 0))"},
    },
    "one of seventy-two choices of keys": {
        "expect": "alpha_a >= alpha_b", "query": "20 k_a",
        "keys": [[1, 0], [0, 1], [0.5, 0.5], *([-1, -place] for place in range(6))],
    },
    "a bound missed by less than the slack of float64": {
        "expect": "var(k_a^T mu_a) <= 9.9e-9",
        "keys": "gaussian", "covariance": {"a": "1e-8 mu_a mu_a^T"}, "where": {"n": 2},
    },
    "a variance below every rounding": {
        "expect": "var(k_a^T mu_a) <= 0.5e-16",
        "keys": "gaussian", "covariance": {"a": "1e-16 mu_a mu_a^T"}, "where": {"n": 2},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", FALSE)
def test_false_claims_are_never_said_to_hold(name: str) -> None:
    fields = dict(FALSE[name])
    verdict = judged(fields.pop("expect"), **fields)
    assert not verdict.holds, verdict.evidence.statement


TRUE: dict[str, dict[str, Any]] = {
    "one tenth is written in decimals": {
        "expect": "10 r = 1", "where": {"r": 0.1},
    },
    "a limit reached very slowly": {
        "expect": "alpha_a >= 0.99",
        "keys": "orthonormal", "query": "0.000001 beta k_a", "where": {"n": 2, "beta": "large"},
    },
    "cancellation in float64": {
        "expect": "(x + 1e17) - 1e17 = x", "where": {"x": [0, 1, 2]},
    },
    "strict beyond float64": {
        "expect": "alpha_a < 1",
        "keys": "orthonormal", "query": "500 k_a", "where": {"n": [2, 3]},
    },
    "unit only up to rounding": {
        "expect": "norm(x) = 1", "where": {"d": [2, 3, 5], "x": "unit vector d"},
    },
    "a probability between two nodes": {
        "expect": "P(k_a^T mu_a > 0) >= 0.9213", **NOISY, "where": {"n": 2},
    },
    "a mean of nothing but noise": {
        "expect": "E(x) ≈ 0 within 1e-9", "where": {"x": "normal"},
    },
    "noise of one direction and a large scale": {
        "expect": "P(c ≈ v_a within 0.1) >= 0.9999",
        **NOISY, "query": "beta mu_a", "given": "k_a^T mu_a > 0.01",
        "where": {"n": 2, "beta": "large"},
    },
    "an empty sum is 0": {
        "expect": "mass(a, b) + sum(alpha_i, i != a, b) = 1",
        "keys": "orthonormal", "query": "k_a", "where": {"n": [2, 3]},
    },
    "the first token under a mask": {
        "expect": "(softmax(A + causal(T)) X)[1] = X[1]",
        "where": {"T": [2, 3], "d": 2, "A": "matrix T x T", "X": "matrix T x d"},
    },
    "the variance of a letter": {
        "expect": "var(k_a^T mu_a) ≈ 1/2 within 0.001", **NOISY, "where": {"n": 2},
    },
    "small and large together": {
        "expect": "c ≈ (v_a + v_b)/2",
        "keys": "gaussian", "covariance": {"others": "s I"}, "query": "beta (mu_a + mu_b)",
        "where": {"n": [2, 3], "s": "small", "beta": "large"},
    },
    "an own function of a multiple": {
        "expect": "total(2 x) = 2 total(x)", "let": {"total(z)": "sum(z_i, i)"},
        "where": {"x": "vector 3"},
    },
    "a quotient away from zero": {"expect": "x/x = 1", "where": {"x": "positive"}},
    "a quotient that is not asked for": {
        "expect": "x != 0 implies x/x = 1", "where": {"x": "any"},
    },
    "a part without a value beside one that decides": {
        "expect": "1/x >= 2 or x < 1/2", "where": {"x": [0, 0.5]},
    },
    "a step that float64 takes by rounding": {"expect": "sign(0.1 + 0.2 - 0.3) = 0"},
    "a rank that float64 rounds": {
        "expect": "rank(stack(concat(1, 2), concat(2, 4.0000000000000001))) = 2",
    },
    "a mask against a high score": {
        "expect": "W[1, 2] = 0", "where": {"T": 2},
        "let": {"W": "softmax(1e10 stack(concat(0, 1), concat(0, 1)) + causal(T))"},
    },
    "a threshold beyond every scale that is tried": {
        "expect": "alpha_a >= 0.999",
        "keys": "orthonormal", "query": "1e-20 beta k_a", "where": {"n": [2, 3], "beta": "large"},
    },
    "a mean whose weight lies far out": {
        "expect": "E(exp(k_a^T q)) >= 3e36",
        "keys": "gaussian", "covariance": {"a": "mu_a mu_a^T"}, "query": "12 mu_a",
        "where": {"n": 2},
    },
    "a mean that hardly any draw comes near": {
        "expect": "E(exp(k_a^T q)) >= 6.9e20",
        "keys": "gaussian", "covariance": {"a": "0.5 I"}, "query": "12 mu_a", "where": {"n": 2},
    },
    "a failure whose condition is met by rounding only": {
        "expect": "sigmoid(u) >= 1 implies 1 > 2", "where": {"u": "any"},
    },
    "a variance just so small": {
        "expect": "var(k_a^T mu_a) <= 2e-16",
        "keys": "gaussian", "covariance": {"a": "1e-16 mu_a mu_a^T"}, "where": {"n": 2},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", TRUE)
def test_true_claims_are_never_refuted(name: str) -> None:
    fields = dict(TRUE[name])
    verdict = judged(fields.pop("expect"), **fields)
    assert verdict.verdict != "refuted", verdict.evidence.statement


def test_a_condition_that_never_holds_proves_nothing() -> None:
    verdict = judged(
        "alpha_a = 7", keys="orthonormal", query="k_a", given="n > 5", where={"n": [2, 3]}
    )
    assert verdict.verdict == "undecided"
    assert "none of the" in verdict.evidence.statement


@pytest.mark.parametrize("draws", [1000, 20_000])
def test_one_direction_is_proved_and_two_are_supported(draws: int) -> None:
    fields: dict[str, Any] = {"query": "3 mu_a", "where": {"n": 2}, "draws": draws}
    one = judged("std(alpha_a) <= 0.45", **NOISY, **fields)
    two = judged("std(alpha_a) <= 0.45", **ISOTROPIC, **fields)
    assert one.verdict == "proved"
    assert two.verdict == "supported"
    assert two.evidence.draws == draws


@pytest.mark.parametrize(
    "fields",
    [
        {"expect": "v_a^T v_b = 0", "keys": "orthonormal", "query": "k_a", "where": {"n": 2}},
        {"expect": "max(c) <= 1", "keys": "orthonormal", "query": "k_a", "where": {"n": 2}},
        {"expect": "exp(c) = c", "keys": "orthonormal", "query": "k_a", "where": {"n": 2}},
        {"expect": "c = 5", "keys": "orthonormal", "query": "k_a", "where": {"n": 2, "c": 5}},
        {"expect": "P Y = P Y", "where": {"T": 2, "d": 2, "P": "permutation T", "Z": "vector d"}},
        {"expect": "A x = x", "where": {"d": 3, "A": "matrix 2 x 2", "x": "vector d"}},
        {"expect": "alpha_c = alpha_a", "keys": [[1, 0], [0, 1]], "query": "k_a + k_b"},
        {"expect": "phi(0) = phi(0)", "positions": {"kind": "learned"}},
        {"expect": "max(alpha_i, i != a) <= 1", "keys": "orthonormal", "query": "k_a",
         "where": {"n": 1}},
    ],
)  # fmt: skip
def test_what_has_no_meaning_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(FormulaError):
        judged(**fields)


@pytest.mark.parametrize(
    ("expect", "query"),
    [
        ("v_a = k_a", "k_a"),
        ("c ≈ k_a within 0.01", "50 k_a"),
        ("c = v_a + 1", "50 k_a"),
        ("c ≈ v_a within 0.01", "50 v_a"),
        ("attention(50 v_a) ≈ v_a within 0.01", "k_a"),
        ("norm(weights(v_a)) <= 1", "k_a"),
        ("M c = M v_a", "k_a"),
        ("c^T M = c^T", "k_a"),
        ("v^T = v", "k_a"),
        ("v alpha = v^T alpha", "k_a"),
        ("v^2 = v", "k_a"),
        ("norm(v_a, 1) = norm(v_a)", "k_a"),
        ("norm(v) <= 3", "k_a"),
        ("v ~ v within 0.1", "k_a"),
    ],
)
def test_arbitrary_values_are_neither_keys_nor_queries(expect: str, query: str) -> None:
    where = {"n": 3, "M": "matrix 3 x 3"} if "M" in expect else {"n": 3}
    with pytest.raises(FormulaError, match="arbitrary values"):
        judged(expect, keys="orthonormal", query=query, where=where)


@pytest.mark.parametrize("expect", ["c = v^T alpha", "c^T = alpha^T v", "(v^T)^T = v"])
def test_the_matrix_of_arbitrary_values_is_combined_by_its_rows(expect: str) -> None:
    assert judged(expect, keys="orthonormal", query="k_a", where={"n": 3}).verdict == "proved"


def test_arbitrary_values_are_measured_at_their_worst() -> None:
    setting: dict[str, Any] = {"keys": "orthonormal", "query": "0 k_a", "where": {"n": 4}}
    assert judged("norm(c - v_a) <= 3/4", **setting).verdict == "proved"
    assert judged("norm(c - v_a) <= 0.74", **setting).verdict == "refuted"


@pytest.mark.parametrize(
    ("expect", "fields", "verdict"),
    [
        ("alpha_i >= 0.98 for all i where k_i^T q >= 4",
         {"keys": "orthonormal", "query": "r k_a", "where": {"n": 2, "r": "[0, 10]"}}, "proved"),
        ("E(alpha_b) >= 0.99",
         {"keys": "gaussian", "means": [[1, 0], [0.6, 0.8]], "query": "5 mu_b"}, "refuted"),
        ("m^2 <= 64^2", {"where": {"m": "1..64"}}, "proved"),
        ("x/x = 1", {"where": {"x": "any"}}, "refuted"),
        ("x/x = 1", {"where": {"x": "positive"}}, "proved"),
        ("rank(stack(concat(1, 2), concat(2, 4))) = 1", {}, "proved"),
        ("alpha_a ~ 1/2 within 1",
         {"keys": "orthonormal", "query": "beta (k_a + k_b)", "where": {"n": 3, "beta": "large"}},
         "proved"),
        ("W[1, 2] = 0",
         {"where": {"T": 2}, "let": {"W": "softmax(ones(T, T) + causal(T))"}}, "proved"),
    ],
)  # fmt: skip
def test_what_can_be_decided_is(expect: str, fields: dict[str, Any], verdict: str) -> None:
    assert judged(expect, **fields).verdict == verdict


def test_a_statement_without_a_value_is_refuted_where_it_has_none() -> None:
    verdict = judged("1/(x - 3) * (x - 3) = 1", where={"x": "[0, 10]"})
    assert verdict.verdict == "refuted"
    assert verdict.counterexample is not None
    assert verdict.counterexample.symbols == {"x": 3}
    assert "divides by zero" in verdict.evidence.statement


def test_given_means_decide_how_many_keys_there_are() -> None:
    with pytest.raises(FormulaError, match="means"):
        judged("E(alpha_a) > 0", keys="gaussian", means=[[1, 0], [0, 1]], query="mu_a",
               where={"n": 3})  # fmt: skip
