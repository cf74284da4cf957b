"""Limits and ≫: truths that are known by mathematics, and falsehoods planted beside them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from heedful.claims.judge import judge_claim
from heedful.claims.language import parse, show, tex
from heedful.claims.language.tree import Compare, Limit, Logic, Name, Number
from heedful.claims.sheet import Claim
from heedful.claims.verdict import Verdict
from heedful.errors import FormulaError

HEAD = {"keys": "orthonormal"}


def judged(expect: str, **fields: Any) -> Verdict:
    return judge_claim(Claim(id="claim", expect=(expect,), **fields))


TRUE = [
    ("alpha_a -> 1 as beta -> infinity", {**HEAD, "query": "beta k_a"}),
    ("alpha_i -> 0 as beta -> infinity for all i != a", {**HEAD, "query": "beta k_a"}),
    ("c → ½ v_a + ½ v_b as β → ∞".replace("½", "1/2"), {**HEAD, "query": "beta (k_a + k_b)"}),
    ("c tends to 1/3 (v_a + v_b + v_e)", {
        **HEAD, "query": "beta (k_a + k_b + k_e)", "where": {"n": [3, 7], "beta": "large"}}),
    ("alpha_a -> 1/n as r -> 0", {**HEAD, "query": "r k_a"}),
    ("c -> v_a", {**HEAD, "query": "beta (2 k_a + k_b)", "where": {"beta": "large"}}),
    ("1/beta -> 0 as beta -> infinity", {}),
    ("beta^9 exp(-beta) -> 0 as beta -> infinity", {}),
    ("(2 beta + 1)/(beta - 3) -> 2 as beta -> infinity", {}),
    ("(exp(r) - 1) (r + 2) -> 0 as r -> 0", {}),
]  # fmt: skip
FALSE = [
    ("alpha_a -> 0.999999 as beta -> infinity", {**HEAD, "query": "beta k_a"}),
    ("c -> (v_a + v_b)/2 as beta -> infinity", {**HEAD, "query": "beta (2 k_a + k_b)"}),
    ("alpha_a -> 1/n + 1e-15 as r -> 0", {**HEAD, "query": "r k_a"}),
    ("beta exp(-1/beta) - beta -> 0 as beta -> infinity", {}),  # it is -1, slowly
    ("(2 beta + 1)/(beta - 3) -> 2.000001 as beta -> infinity", {}),
    ("beta^2 / (beta + 1) -> 1 as beta -> infinity", {}),
    ("sin(beta) -> 0 as beta -> infinity", {}),
    ("floor(r) + 1 -> 0 as r -> 0", {}),
    ("alpha_a -> 1", {"keys": "any", "query": "beta k_a", "where": {"beta": "large"}}),
]


@pytest.mark.parametrize(("expect", "fields"), TRUE, ids=[expect for expect, _ in TRUE])
def test_a_limit_is_proved_exactly(expect: str, fields: dict[str, Any]) -> None:
    verdict = judged(expect, **fields)
    assert verdict.verdict == "proved", verdict.evidence.statement
    assert verdict.evidence.method == "algebra"


@pytest.mark.parametrize(("expect", "fields"), FALSE, ids=[expect for expect, _ in FALSE])
def test_a_false_limit_is_never_taken_for_true(expect: str, fields: dict[str, Any]) -> None:
    assert judged(expect, **fields).verdict in ("refuted", "undecided")


def test_a_false_limit_is_refuted_by_how_far_the_sides_stay_apart() -> None:
    verdict = judged("c -> (v_a + v_b)/2 as beta -> infinity", query="beta (2 k_a + k_b)", **HEAD)
    assert verdict.verdict == "refuted"
    assert verdict.counterexample is not None
    assert verdict.counterexample.gap == pytest.approx(0.5)


def test_what_cannot_be_proved_is_supported_for_a_few_tolerances() -> None:
    verdict = judged("tanh(beta) -> 1 as beta -> infinity")
    assert verdict.verdict == "supported"
    assert "closer without end is not proved" in verdict.evidence.statement


def test_the_arrow_is_a_limit_between_values_and_implies_between_statements() -> None:
    x, y, zero, one = Name("x"), Name("y"), Number(0), Number(1)  # type: ignore[arg-type]
    assert parse("x → 1 as y → ∞") == Limit(x, one, "y", "infinity")
    assert parse("x tends to 0 as y tends to 0") == Limit(x, zero, "y", "0")
    assert parse("x = 1 → y = 1") == Logic("implies", Compare("=", x, one), Compare("=", y, one))
    assert show(parse("x -> 1 as beta -> infinity"), "unicode") == "x → 1 as β → ∞"
    assert tex(parse("x -> 1 as beta -> inf")) == r"x \to 1 \;\text{as}\; \beta \to \infty"
    assert tex(parse("x >> y")) == r"x \gg y"
    assert parse("x << y") == parse("y >> x")


@pytest.mark.parametrize(
    ("expect", "fields", "problem"),
    [
        ("alpha_a -> 1", {**HEAD, "query": "k_a"}, "not said what moves"),
        ("x -> 1 as x -> 3", {}, "neither to infinity nor to 0"),
        ("x -> x as x -> infinity", {}, "moves with"),
        ("x -> 1 as x -> infinity and 1 = 1", {}, "beside what is no limit"),
        ("x -> 1 as x -> infinity", {"where": {"x": [1, 2]}}, "has a range"),
        ("alpha_a >> alpha_b", {**HEAD, "query": "k_a"}, "≫ in what is claimed"),
        ("x <= y", {"given": "x >> 2 y", "find": "least y"}, "beside ≫"),
    ],
)
def test_a_limit_that_says_nothing_is_refused(
    expect: str, fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(FormulaError, match=problem):
        judged(expect, **fields)


LEADS = {"keys": "any", "query": "p", "given": "k_a^T q >> k_i^T q for all i != a"}


@pytest.mark.parametrize(
    ("expect", "share"),
    [
        ("c ≈ v_a within 0.01", 0.99),
        ("alpha_a >= 0.9", 0.9),
        ("alpha_i <= 0.1 for all i != a", 0.9),
    ],
)
def test_a_key_that_leads_by_enough_is_read_almost_alone(expect: str, share: float) -> None:
    verdict = judged(expect, where={"n": [2, 5, 10], "p": "vector d"}, **LEADS)
    assert verdict.verdict == "proved"
    margin = verdict.evidence.numbers["M_0"]
    weight = 1 / (1 + 9 * math.exp(-margin))
    assert weight >= share
    assert weight <= share + 0.001  # the margin is not larger than it has to be
    assert verdict.evidence.statement.startswith("Read as: there is M from which on it holds.")


@pytest.mark.parametrize(
    "expect",
    ["alpha_a >= 1", "c ≈ v_b within 0.01", "alpha_a <= 0.5", "c ≈ v_a within 0"],
)
def test_what_no_margin_brings_about_is_not_proved(expect: str) -> None:
    verdict = judged(expect, where={"n": [3], "p": "vector d"}, **LEADS)
    assert verdict.verdict in ("refuted", "undecided")


def test_given_values_are_not_taken_for_arbitrary_ones() -> None:
    verdict = judged(
        "c ≈ v_a within 0.01", where={"n": [2], "p": "vector d"}, values=((100, 0), (0, 1)), **LEADS
    )
    assert verdict.verdict != "proved"


@pytest.mark.parametrize(
    "fields", [{"given": "beta >> 0"}, {"where": {"beta": "≫ 0"}}, {"given": "0 << beta"}]
)
def test_a_symbol_much_larger_than_a_number_is_large(fields: dict[str, Any]) -> None:
    verdict = judged("alpha_a >= 0.99", query="beta k_a", **HEAD, **fields)
    assert verdict.verdict == "proved"
    assert verdict.evidence.numbers["beta_0"]


def test_the_range_of_a_symbol_is_not_forgotten_for_much_larger() -> None:
    verdict = judged("r >= 12", given="r >> 2", where={"r": "[0, 10]"})
    assert verdict.verdict != "proved"


def test_one_margin_serves_all_of_a_claim() -> None:
    verdict = judged("exp(r) >= 10 exp(s)", given="r >> s", where={"r": "[0, 10]", "s": "[0, 10]"})
    assert verdict.verdict == "proved"
    assert verdict.answer is not None
    assert verdict.answer.high is not None
    assert verdict.answer.high >= math.log(10)


LARGE = {"where": {"beta": "large"}}
SIZED = {**HEAD, "where": {"n": [3, 10], "beta": "large"}}
AT_LAST = [
    ("exp(beta) > beta^3", LARGE, True),
    ("exp(beta)/(1 + exp(beta)) < 1", LARGE, True),
    ("exp(beta)/(1 + exp(beta)) = 1", LARGE, False),
    ("exp(2 beta) - exp(beta) >= exp(2 beta) - 5", LARGE, False),
    ("alpha_a = exp(beta)/(n - 2 + 2 exp(beta))", {**SIZED, "query": "beta (k_a + k_b)"}, True),
    ("alpha_a = exp(beta)/(n - 1 + 2 exp(beta))", {**SIZED, "query": "beta (k_a + k_b)"}, False),
    ("alpha_a >= 1 - (n - 1) exp(-beta)", {**SIZED, "query": "beta k_a"}, True),
    ("alpha_a >= 1 - (n - 1)/2 exp(-beta)", {**SIZED, "query": "beta k_a"}, False),
    ("c ~ v_a within 0.01", {**SIZED, "query": "1e-20 beta k_a"}, True),
    ("alpha_i ~ 0 within 0.01 for all i != a", {**SIZED, "query": "1e-20 beta k_a"}, True),
]  # fmt: skip


@pytest.mark.parametrize(("expect", "fields", "holds"), AT_LAST, ids=[each[0] for each in AT_LAST])
def test_a_claim_about_a_large_symbol_is_decided_by_leading_terms(
    expect: str, fields: dict[str, Any], holds: bool
) -> None:
    assert judged(expect, **fields).verdict == ("proved" if holds else "refuted")


@pytest.mark.parametrize(
    "expect",
    [
        "exp(beta) > beta^3 + 0 sqrt(0 - 1)",
        "exp(beta) > 1/(exp(beta) - exp(beta))",
        "exp(beta) > beta + 0/(exp(beta) - exp(beta))",
        "exp(beta) > ln(10 - beta)",
    ],
)
def test_leading_terms_prove_nothing_about_what_has_no_value(expect: str) -> None:
    with pytest.raises(FormulaError):
        judged(expect, **LARGE)
