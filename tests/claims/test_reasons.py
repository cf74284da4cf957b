"""Reasons: what `heed explain` works out must be what the judge found, with enough digits."""

from __future__ import annotations

import pytest

from heedful.claims import claim
from heedful.claims.checker import Explanation
from heedful.claims.judge import judge_claim, told_apart
from heedful.claims.reasons import Reason, reasons, smaller_change
from heedful.claims.sheet import Claim, catalog, load_sheet
from heedful.claims.verdict import Verdict
from heedful.views.claims import explanation_blocks
from heedful.views.terminal import written


def explained(**fields: object) -> tuple[Verdict, dict[str, Reason]]:
    given = Claim(id="x", **fields)  # type: ignore[arg-type]
    verdict = judge_claim(given)
    return verdict, {part.title: part for part in reasons(given, verdict)}


def test_a_counterexample_is_worked_by_hand() -> None:
    verdict, parts = explained(
        expect=("c ≈ (v_a + v_b)/2 within 0.02",),
        keys="orthonormal",
        query="k_a + k_b",
        where={"n": [3]},
    )
    assert verdict.verdict == "refuted"
    lines = parts["The case, by hand"].lines
    assert "scores k_i·q = [1, 1, 0]" in lines
    assert "exp of each = [2.71828, 2.71828, 1], together 6.43656" in lines
    assert any("0.155362 apart, and 0.02 is allowed" in line for line in lines)


def test_a_repair_is_shown_beside_a_smaller_one_that_fails() -> None:
    verdict, parts = explained(
        expect=("alpha_a >= 1/2",), keys="orthonormal", query="k_a", where={"n": [10]}
    )
    assert verdict.repair is not None
    _, why = parts["Why this repair"].lines
    assert "instead it is refuted" in why


def test_every_head_of_a_counterexample_is_shown_and_in_its_command() -> None:
    verdict, parts = explained(
        expect=("c_2 ≈ v_b within 0.1",),
        keys="orthonormal",
        heads=("8 k_a", "k_b"),
        where={"n": [4]},
    )
    lines = "\n".join(parts["The case, by hand"].lines)
    assert "q_1 = 8 k_a" in lines
    assert "q_2 = k_b" in lines
    assert verdict.counterexample is not None
    command = verdict.counterexample.command or ""
    assert "'[[0, 8, 0, 0], [1, 0, 0, 0]]' --mean" in command


def test_a_head_without_a_scale_has_a_command_too() -> None:
    verdict, _ = explained(
        expect=("std(c) <= 0.001",),
        keys="gaussian",
        covariance={"a": "1/2 mu_a mu_a^T"},
        heads=("mu_a", "mu_b"),
        where={"n": [3]},
    )
    assert verdict.counterexample is not None
    assert verdict.counterexample.command == (
        "heed noise --n 3 --d 3 --noisy 0 --variance 0.5 --heads 0 1 --beta 1"
    )


def test_what_float64_cannot_tell_apart_is_told_exactly() -> None:
    verdict, parts = explained(
        expect=("alpha_a = 1",), keys="orthonormal", query="1000 k_a", where={"n": [2]}
    )
    case = verdict.counterexample
    assert case is not None
    assert case.exactly == "-5.076e-435"
    assert case.gap >= 0
    assert "exactly, left minus right is -5.076e-435" in "\n".join(parts["The case, by hand"].lines)


@pytest.mark.parametrize(("left", "right"), [(0.5, 0.5 + 1e-12), (1.0, 1.0 + 2**-52), (3.0, 4.0)])
def test_numbers_that_differ_are_written_differently(left: float, right: float) -> None:
    first, second = told_apart(left, right)
    assert first != second


def test_a_trivial_truth_is_proved_and_not_counted() -> None:
    for expect, keys, query in (
        ("alpha_i >= 0 for all i", "any", "x"),
        ("0 < alpha_i for all i", "any", "x"),
        ("exp(x_1) > 0", None, None),
    ):
        verdict = claim(expect, keys=keys, query=query, where={"x": "vector 2", "d": 2})
        assert verdict.verdict == "proved", expect
        assert verdict.evidence.steps


def test_names_that_only_look_like_weights_have_no_known_sign() -> None:
    assert claim("alpha_1 >= 0", where={"alpha_1": "any"}).verdict == "refuted"
    assert claim("beta >= 0", where={"beta": "any"}).verdict == "refuted"


def test_an_asked_number_is_shown_case_by_case() -> None:
    verdict, parts = explained(
        expect=("c ≈ (v_a + v_b)/2 within x",),
        find="least x",
        keys="orthonormal",
        query="k_a + k_b",
        where={"n": [2, 3]},
    )
    assert verdict.answer is not None
    lines = parts["The number in each case"].lines
    assert "n = 3" in lines[1]
    assert "0.155362" in lines[1]


def test_a_proof_shows_the_scale_it_needs() -> None:
    _, parts = explained(
        expect=("alpha_a >= 0.99",),
        keys="orthonormal",
        query="beta k_a",
        where={"n": [3], "beta": "large"},
    )
    lines = "\n".join(parts["From which scale on"].lines)
    assert "(holds)" in lines
    assert "(fails)" in lines


def test_every_claim_of_the_catalog_can_be_explained() -> None:
    for sheet in catalog():
        for one in sheet.claims[::19]:
            verdict = judge_claim(one, sheet=sheet.name)
            record = Explanation(claim=one, verdict=verdict, reasons=reasons(one, verdict))
            shown = written(explanation_blocks(record))
            assert verdict.verdict in shown
            assert "fails by: -" not in shown


def test_a_smaller_change_is_a_claim_that_can_be_read() -> None:
    text = (
        '[[claim]]\nid = "b"\nkeys = "orthonormal"\nwhere = { n = 10 }\n'
        'query = "k_a + k_b"\nexpect = "c ≈ (v_a + v_b)/2 within 0.02"\n'
    )
    (given,) = load_sheet(text).claims
    less = smaller_change(given, judge_claim(given))
    assert less is not None
    assert judge_claim(less[1], repair=False).verdict == "refuted"
