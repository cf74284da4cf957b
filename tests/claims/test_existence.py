"""What there is: witnesses that are verified, and proofs that there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heedful.claims.existence import _turns
from heedful.claims.judge import judge_claim
from heedful.claims.language import parse, show
from heedful.claims.language.tree import Exists, ForAll
from heedful.claims.sheet import Claim
from heedful.claims.verdict import Verdict
from heedful.errors import FormulaError

TRIANGLE = ((1, 0), (0, 1), (-1, -1))
WITH_MIDDLE = ((1, 0), (0, 1), (0.5, 0.5))
SINES = {"positions": {"kind": "sinusoidal", "width": [2, 6]}}


def judged(expect: str, **fields: Any) -> Verdict:
    return judge_claim(Claim(id="claim", expect=(expect,), **fields))


TRUE: list[tuple[str, dict[str, Any]]] = [
    ("there is a rotation R with phi(t + k) = R phi(t) for all t < T",
     {**SINES, "where": {"k": [1, 9], "T": 30}}),
    ("there is a matrix R with R phi(t) = phi(t + 3) for all t < T", {**SINES, "where": {"T": 9}}),
    ("there are positions s != t < T with round16(phi(s)) = round16(phi(t))",
     {"positions": {"width": 2}, "where": {"T": 1500}}),
    ("there is a query w with weights(w)[1] >= 0.99", {"keys": TRIANGLE}),
    ("there is a query w with weights(w)[a] >= 0.999", {"keys": TRIANGLE}),
    ("there is a vector w with weights(w)[3] >= 0.33", {"keys": WITH_MIDDLE}),
    ("there is a matrix R with R onehot(1, d) = 2 onehot(2, d)", {"where": {"d": [2, 3]}}),
    ("there is a number x with x^2 = 4 and x < 0", {}),
    ("there is a number x with 3 x = n for all i < n", {"where": {"n": [3, 6]}}),
    ("there is an i with alpha_i >= 0.6", {"keys": WITH_MIDDLE, "query": "concat(3, 1)"}),
]  # fmt: skip
FALSE: list[tuple[str, dict[str, Any]]] = [
    ("there are positions s != t < T with phi(s) = phi(t)",
     {"positions": {"width": 2}, "where": {"T": 30}}),
    ("there is a query w with weights(w)[3] > 0.5000001", {"keys": WITH_MIDDLE}),
    ("there is a matrix R with R onehot(1, 2) = onehot(2, 2) and 2 R onehot(1, 2) = onehot(2, 2)",
     {"where": {"d": 2}}),
    ("there is an i with alpha_i >= 0.9", {"keys": WITH_MIDDLE, "query": "concat(3, 1)"}),
    ("there is a query w with weights(w)[a] >= 0.9", {"keys": WITH_MIDDLE}),  # a may be the third
]  # fmt: skip
NOT_TRUE: list[tuple[str, dict[str, Any]]] = [
    ("there is a number x with x^2 = -1", {}),
    ("there is a number x with x > 1 and x < 1", {}),
    ("there is a number x with 0 x = 1e-12", {}),
    ("there is a rotation R with R onehot(1, 2) = 2 onehot(1, 2) and R onehot(2, 2) = onehot(2, 2)",
     {"where": {"d": 2}}),
    ("there is a rotation R with R onehot(1, 2) = onehot(2, 2) and R onehot(2, 2) = onehot(1, 2)",
     {"where": {"d": 2}}),  # a reflection
    ("there is a matrix R with phi(2 t) = R phi(t) for all t < T", {**SINES, "where": {"T": 9}}),
    ("there is a matrix R with phi(t + t) = R phi(t) for all t < T", {**SINES, "where": {"T": 9}}),
]  # fmt: skip


@pytest.mark.parametrize(("expect", "fields"), TRUE, ids=[expect for expect, _ in TRUE])
def test_what_there_is_is_proved_by_a_witness(expect: str, fields: dict[str, Any]) -> None:
    verdict = judged(expect, **fields)
    assert verdict.verdict == "proved", verdict.evidence.statement


@pytest.mark.parametrize(("expect", "fields"), FALSE, ids=[expect for expect, _ in FALSE])
def test_what_there_is_not_is_refuted_by_a_proof(expect: str, fields: dict[str, Any]) -> None:
    verdict = judged(expect, **fields)
    assert verdict.verdict == "refuted", verdict.evidence.statement
    assert "there is none" in verdict.evidence.statement.lower()


@pytest.mark.parametrize(("expect", "fields"), NOT_TRUE, ids=[expect for expect, _ in NOT_TRUE])
def test_nothing_is_invented(expect: str, fields: dict[str, Any]) -> None:
    assert judged(expect, **fields).verdict in ("refuted", "undecided")


def test_what_is_true_but_irrational_is_not_refuted() -> None:
    assert judged("there is a number x with x^2 = 2").verdict == "undecided"


def test_arbitrary_keys_give_no_proof_by_a_few_of_them() -> None:
    verdict = judged("there is a query w with weights(w)[1] >= 1/n", keys="any", where={"n": [2]})
    assert verdict.verdict == "supported"


def test_a_rotation_is_told_from_a_reflection_and_from_a_stretch() -> None:
    assert _turns(np.array([[0.0, -1.0], [1.0, 0.0]]))
    assert not _turns(np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert not _turns(np.diag([2.0, 0.5]))


def test_there_is_reaches_to_the_end_of_its_statement() -> None:
    tree = parse("there is a matrix R with R x_t = y_t for all t")
    assert isinstance(tree, Exists)
    assert isinstance(tree.body, ForAll)
    assert tree.names == ("R",)
    assert parse("∃ R with R = 1") == parse("there exists R such that R = 1")
    assert show(tree) == "there is a matrix R with R * x_t = y_t for all t"


@pytest.mark.parametrize(
    "expect",
    [
        "1 = 1 and (there is a number x with x = 1)",
        "there is a number x with (there is a number y with y = x)",
        "there is a matrix R with R = R",  # of what size?
        "there are numbers x, y with x = y",
    ],
)
def test_an_existence_that_is_not_understood_is_refused(expect: str) -> None:
    with pytest.raises(FormulaError):
        judged(expect)
