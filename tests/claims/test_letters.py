"""A letter means every place that it may name, in keys, sequences and arrays alike."""

from __future__ import annotations

from typing import Any

import pytest

from heedful.claims.compile import compile_claim
from heedful.claims.judge import judge_claim
from heedful.claims.sheet import Claim
from heedful.claims.verdict import Verdict
from heedful.claims.worlds import MOST_ASSIGNMENTS, assignments
from heedful.errors import FormulaError

ORTHONORMAL: dict[str, Any] = {"keys": "orthonormal", "where": {"n": [2, 3]}}
ROWS = ("concat(1, 0)", "concat(2, 0)", "concat(3, 0)")


def verdict_of(expect: str, **fields: Any) -> str:
    claim = Claim(id="letters", expect=(expect,), **fields)
    return judge_claim(claim, repair=False).verdict


FALSE: list[tuple[str, dict[str, Any]]] = [
    ("norm(x_a) <= 1", {"sequence": ("concat(1, 0)", "concat(0, 5)")}),
    ("norm(x_a) <= norm(x_b)", {"sequence": ROWS}),
    ("alpha_a[1] >= alpha_b[1]", {"sequence": ROWS}),
    ("norm(c_a) <= 2.5", {"sequence": ROWS}),
    ("M[a, b] = 1", {"let": {"M": "stack(concat(0, 1), concat(2, 0))"}}),
    ("phi(3)[a] >= 0", {"positions": {"width": 4}}),
    ("alpha_a >= 0.5", {**ORTHONORMAL, "query": "5 k_1"}),
    ("mass(a) >= 0.5", {**ORTHONORMAL, "query": "5 k_1"}),
    ("k_a^T k_2 = 0", ORTHONORMAL),
    ("alpha_a >= 0.9", {**ORTHONORMAL, "query": "5 onehot(1, n)"}),
    ("argmax(alpha) = 1", {**ORTHONORMAL, "query": "5 k_a"}),
    ("alpha_i <= alpha_a for all i where i > a", {**ORTHONORMAL, "query": "5 k_2"}),
    ("x_a >= x_1", {"where": {"x": "vector 2"}}),
    ("k_a != k_1", {"keys": "any", "where": {"n": 2, "d": 2}}),
    ("norm(c) <= 2",
     {"keys": "orthonormal", "query": "20 k_a", "values": [[1, 0], [0, 5]], "where": {"n": 2}}),
    ("var(k_1^T mu_1) <= 0.01",
     {"keys": "gaussian", "covariance": {"a": "1/2 mu_a mu_a^T"}, "where": {"n": 2}}),
    ("W[a, b] = 0", {"let": {"W": "softmax(ones(2, 2) + causal(2))"}}),
]  # fmt: skip


@pytest.mark.parametrize(("expect", "fields"), FALSE, ids=[expect for expect, _ in FALSE])
def test_what_holds_for_the_first_place_only_is_refuted(
    expect: str, fields: dict[str, Any]
) -> None:
    assert verdict_of(expect, **fields) == "refuted"


TRUE: list[tuple[str, dict[str, Any]]] = [
    ("norm(x_a) <= 3", {"sequence": ROWS}),
    ("norm(c_a) <= 3", {"sequence": ROWS}),
    ("alpha_1 >= alpha_a", {**ORTHONORMAL, "query": "5 k_1"}),
    ("x_a - x_1 = -(x_1 - x_a)", {"where": {"x": "vector 2"}}),
    ("W[a, b] <= 1", {"let": {"W": "softmax(ones(3, 3) + causal(3))"}}),
    ("norm(c) <= 5",
     {"keys": "orthonormal", "query": "20 k_a", "values": [[1, 0], [0, 5]], "where": {"n": 2}}),
]  # fmt: skip


@pytest.mark.parametrize(("expect", "fields"), TRUE, ids=[expect for expect, _ in TRUE])
def test_what_holds_for_every_place_is_proved(expect: str, fields: dict[str, Any]) -> None:
    assert verdict_of(expect, **fields) == "proved"


def test_places_that_nothing_tells_apart_need_one_choice() -> None:
    symmetric = Claim(id="x", expect=("alpha_a >= alpha_b",), query="k_a", **ORTHONORMAL)
    assert len(assignments(compile_claim(symmetric)).claims) == 1
    u = {"u": "orthonormal 4 x 4"}
    sequence = Claim(id="x", expect=("c_2 = u_a",), sequence=("u_a + u_b", "u_c"), where=u)
    assert len(assignments(compile_claim(sequence)).claims) == 1


def test_too_many_choices_are_said_to_be_a_selection() -> None:
    rows = tuple(f"concat({place}, 1)" for place in range(10))
    claim = Claim(id="x", expect=("norm(x_a + x_b) <= 20",), sequence=rows)
    made = assignments(compile_claim(claim))
    assert made.choices == 90
    assert len(made.claims) <= MOST_ASSIGNMENTS
    assert not made.complete
    verdict = judge_claim(claim)
    assert verdict.verdict == "supported"
    assert "of the 90 choices" in verdict.evidence.statement


def test_the_counterexample_names_the_places() -> None:
    claim = Claim(id="x", expect=("norm(x_a) <= 1",), sequence=("concat(1, 0)", "concat(0, 5)"))
    verdict = judge_claim(claim, repair=False)
    assert "a is place 2, counted from 1" in verdict.evidence.statement


def test_a_letter_that_is_bound_and_free_is_asked_about() -> None:
    fields = {"keys": "any", "query": "x", "where": {"n": [2, 3], "d": 2, "x": "vector d"}}

    def judged(expect: str, **more: Any) -> Verdict:
        return judge_claim(Claim(id="claim", expect=(expect,), **fields, **more))

    far = "k_j^T q >= k_i^T q + 8"
    with pytest.raises(FormulaError, match="j is free here, and bound elsewhere"):
        judged("alpha_j >= 0.99", given=f"{far} for all i != j")
    with pytest.raises(FormulaError, match="j is free here, and bound elsewhere"):
        judged("alpha_j <= sum(alpha_j, j)")
    assert judged("alpha_j >= 0.99", given=f"{far} for all i where i != j").holds
