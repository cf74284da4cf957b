"""The reference meaning, the adversary that attacks with it, and mistakes it must not miss."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import adversary
import numpy as np
import pytest
from adversary import QUICK, Planted, claim_at, mistakes_of
from composed import KERNELS, composed
from flint import arb
from planted import FAMILIES
from reference.meaning import UNDEFINED, Truth
from reference.values import matrix, scalar, vector
from reference.world import choices_of_letters, letters_of, truth

import heedful.claims
from heedful.claims import Claim, balls, judge, load_sheet, points, search, statistics
from heedful.claims.compile import CompiledClaim, compile_claim
from heedful.claims.evaluate.ball import BallEvaluator
from heedful.claims.language import tree
from heedful.claims.worlds import Assignments

HALVES = {"keys": "orthonormal", "query": "r k_a", "where": {"n": 2}}
NOISY = {"keys": "gaussian", "covariance": {"a": "1/2 mu_a mu_a^T"}, "where": {"n": 2}}
TOTAL = {"let": {"total(x)": "sum(x_i, i)"}, "where": {"x": "vector 2", "y": "vector 2"}}
VECTORS = {"x": [1, 2], "y": [3, 5], "z": [0, 7]}


# ---- the reference itself ----


@pytest.mark.parametrize(
    ("expect", "fields", "case", "expected"),
    [
        ("total(y) = total(x)", TOTAL, VECTORS, False),
        ("total(2 x) = 2 total(x)", TOTAL, VECTORS, True),
        ("lse(2 x) = lse(x)", {"let": {"lse(x)": "ln(sum(exp(x_i), i))"}}, VECTORS, False),
        ("alpha_i >= 0.99 for all i where k_i^T q >= 4", HALVES, {"n": 2, "r": 4}, False),
        ("alpha_i >= 0.99 for all i where k_i^T q >= 4", HALVES, {"n": 2, "r": 3}, True),
        ("x (y z) = (x y) z", {}, VECTORS, False),
        ("x y z = (x y) z", {}, VECTORS, True),
        ("sqrt(x)^2 = x", {}, {"x": -1}, UNDEFINED),
        ("x/x = 1", {}, {"x": 0}, UNDEFINED),
        ("x/x = 1", {}, {"x": "1/3"}, True),
        ("x != 0 implies x/x = 1", {}, {"x": 0}, True),
        ("x/x = 1 or x = 0", {}, {"x": 0}, True),
        ("not (x/x = 2)", {}, {"x": 0}, UNDEFINED),
        ("x/x = 1 and x = 1", {}, {"x": 0}, False),
        ("norm(layernorm(x)) = 1", {}, {"x": [3]}, UNDEFINED),
        ("abs(r - 4) >= 0.5", {}, {"r": "4.4999"}, False),
        ("m != 17", {}, {"m": 17}, False),
        ("exp(-20) <= 1e-20", {}, {}, False),
        ("1e400 > 1e399", {}, {}, True),
        ("floor(3 - 1e-30) = 2", {}, {}, True),
        ("argmax(concat(1, 1)) = 1", {}, {}, True),
        ("rank(stack(concat(1, 2), concat(2, 4.0000000000000001))) = 2", {}, {}, True),
        ("sign(0.1 + 0.2 - 0.3) = 0", {}, {}, True),
        ("softmax(1e10 stack(concat(0, 1), concat(0, 1)) + causal(2))[1, 2] = 0", {}, {}, True),
        ("x + sum(y_i x, i > 5) = x", {}, VECTORS, True),
        ("max(x_i, i > 5) <= 9", {}, VECTORS, UNDEFINED),
        ("A[1, j] <= 1 for all j", {"let": {"A": "stack(concat(1, 1, 5), zeros(3))"}}, {}, False),
        ("alpha_a = exp(r)/(n - 1 + exp(r))", HALVES, {"n": 2, "r": 1000}, None),
        ("alpha_a < 1", HALVES, {"n": 2, "r": 100}, True),
        ("P(k_a^T mu_a > 0) >= 0.9213", NOISY, {"n": 2}, True),
        ("P(k_a^T mu_a > 0) >= 0.9214", NOISY, {"n": 2}, False),
        ("P(k_a^T mu_a > 1 given k_a^T mu_a > 0) <= 0.55", NOISY, {"n": 2}, True),
    ],
)  # fmt: skip
def test_the_reference_says_what_mathematics_says(
    expect: str, fields: dict[str, Any], case: dict[str, Any], expected: Truth
) -> None:
    claim = Claim(id="attempt", expect=(expect,), **fields)
    numbers = {name: Fraction(x) for name, x in case.items() if not isinstance(x, list)}
    arrays = {
        name: vector(list(map(Fraction, x))) for name, x in case.items() if isinstance(x, list)
    }
    letters = {letter: place for place, letter in enumerate(letters_of(claim))}
    assert truth(claim, numbers, arrays, letters) == expected


def test_given_means_are_the_means() -> None:
    claim = Claim(id="attempt", expect=("E(alpha_b) >= 0.99",), keys="gaussian",
                  means=[[1, 0], [0.6, 0.8]], query="5 mu_b")  # fmt: skip
    assert truth(claim, {}, {}, {"b": 1}) is False


def test_letters_mean_every_choice_of_given_keys() -> None:
    keys = [[1, 0], [0, 1], [0.5, 0.5]]
    claim = Claim(id="attempt", expect=("alpha_a >= 0.9",), keys=keys, query="20 k_a")
    found = [truth(claim, {}, {}, choice) for choice in choices_of_letters(claim)]
    assert found == [True, True, False]


def catalog() -> Iterator[tuple[str, Claim]]:
    for path in sorted((Path(heedful.claims.__file__).parent / "catalog").glob("*.toml")):
        for claim in (each for each in load_sheet(path).claims if each.model is None):
            yield f"{path.stem}/{claim.id}", claim


def test_the_catalog_agrees_with_the_reference() -> None:
    """Compare float64 with the reference in three cases of every claim without noise."""
    compared, wrong = 0, []
    for name, claim in catalog():
        compiled = compile_claim(claim)
        inexact = search.inexact(compiled) or "orthonormal" in map(str, claim.where.values())
        if compiled.noisy or inexact or compiled.large or compiled.small:
            continue
        cases = list(search.all_cases(compiled, np.random.default_rng(0)))
        for case in cases[:: max(1, len(cases) // 3)][:3]:
            if case.scalars.get("n", 0) > 10 or case.scalars.get("T", 0) > 12:
                continue
            try:
                outcome = search.outcome_of(compiled, case)
            except search.FormulaError:
                continue
            numbers = {key: Fraction(str(value)) for key, value in case.scalars.items()}
            arrays = {key: exactly(array) for key, array in case.arrays.items()}
            found = truth(claim, numbers, arrays, compiled.indices)
            compared += found is not None and outcome.holds is not None
            if found is not None and outcome.holds is not None and found != outcome.holds:
                wrong.append((name, case, found, outcome.holds))
    assert not wrong
    assert compared > 60


def exactly(array: Any) -> Any:
    if array.ndim == 0:
        return scalar(Fraction(float(array)))
    if array.ndim == 1:
        return vector([Fraction(float(x)) for x in array])
    return matrix([[Fraction(float(x)) for x in row] for row in array])


# ---- the adversary against the judge ----


def test_every_family_has_true_and_false_members() -> None:
    for name, make in FAMILIES.items():
        found = {make(random.Random(f"{name}/{place}"))[1] for place in range(80)}
        assert found == ({None} if name == "random" else {True, False}), name


def test_every_kind_of_fact_has_true_and_false_members() -> None:
    for make in KERNELS:
        found = {make(random.Random(f"{make.__name__}/{place}")).holds for place in range(80)}
        assert found == {True, False}, make.__name__


def test_composed_claims_hardly_ever_repeat() -> None:
    made = [composed(random.Random(place))[0] for place in range(300)]
    assert len({adversary.digest(fields) for fields in made}) > 290


def test_the_smaller_budgets_are_given_back() -> None:
    with adversary.budgets(quick=True):
        assert QUICK["heedful.claims.search.MOST_EVALUATIONS"] == search.MOST_EVALUATIONS
    assert QUICK["heedful.claims.search.MOST_EVALUATIONS"] < search.MOST_EVALUATIONS


def test_a_run_goes_on_where_its_file_ends(tmp_path: Path) -> None:
    file, whole = tmp_path / "part.jsonl", tmp_path / "whole.jsonl"
    options = ["--seed", "5", "--family", "one_whole_number", "--family", "exact_steps"]
    adversary.main(["run", str(file), "--claims", "4", *options])
    with file.open("a") as stream:
        stream.write('{"seed": 5, "pla')  # stopped in the middle of a line
    adversary.main(["run", str(file), "--claims", "9", *options])
    adversary.main(["run", str(whole), "--claims", "9", *options])
    made, expected = (
        [(line["place"], line["claim"]) for line in adversary.lines_of(path)]
        for path in (file, whole)
    )
    assert made == expected
    assert len({claim for _, claim in made}) == 9


def test_the_judge_says_nothing_false() -> None:
    reports = [
        mistakes_of(claim_at(15, place), seconds=2.0, quick=True, repair=place % 4 == 0)
        for place in range(300)
    ]
    wrong = [
        (report.mistakes, adversary.sheet_of(report.planted.fields), report.detail)
        for report in reports
        if set(report.mistakes) - {"false supported"}
    ]
    assert not wrong
    assert sum(report.word in ("proved", "refuted") for report in reports) >= 150


# ---- mistakes that are planted into the judge ----


def forget_undecided_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    met = BallEvaluator.meets
    monkeypatch.setattr(BallEvaluator, "meets", lambda self, node: met(self, node) is True)


def take_everything_for_defined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heedful.claims.judge, "always_defined", lambda compiled: True)
    monkeypatch.setattr(search, "without_value", lambda compiled, case: None)


def substitute_without_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_member", lambda node, mapping: node)


def look_at_some_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = CompiledClaim.scalar_cases

    def some(self: CompiledClaim, rng: Any, most: int = 1200) -> Iterator[dict[str, float]]:
        yield from list(cases(self, rng, most))[::7]

    monkeypatch.setattr(CompiledClaim, "scalar_cases", some)
    monkeypatch.setattr(search, "Survey", lambda: Complete())


class Complete(search.Survey):
    """A survey that always says it has seen every case."""

    complete = property(lambda self: True, lambda self, value: None)


def let_letters_name_the_first_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "assignments", lambda compiled: Assignments((compiled,), 1))


def end_the_line_early(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = statistics.quadrature_noise
    monkeypatch.setattr(statistics, "quadrature_noise", lambda nodes=4001, reach=9: whole(nodes, 9))
    monkeypatch.setattr(statistics, "FAR", 9.0)
    monkeypatch.setattr(balls.Tail, "beyond", lambda self, far: arb(0))


def believe_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    def rounded(compiled: CompiledClaim, case: Any, statement: Any = None) -> bool:
        world = search.build_world(compiled, case.scalars, case.arrays)
        tree = compiled.statement if statement is None else statement
        return bool(np.all(search.Evaluator(world).truth(tree).holds))

    for module in (search, judge):
        monkeypatch.setattr(module, "exact_truth", rounded)
    monkeypatch.setattr(points, "exact_answer", rounded)
    monkeypatch.setattr(heedful.claims.judge, "exact_truth", rounded)


def believe_every_box(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        heedful.claims.judge, "decided_on_ranges", lambda compiled, case, ranges: True
    )


@pytest.mark.parametrize(
    ("plant", "families", "kinds"),
    [
        (forget_undecided_conditions, ("selected_at_one_point",), "false proved"),
        (take_everything_for_defined, ("undefined_somewhere",), "false proved"),
        (substitute_without_members, ("own_functions", "own_function_of_a_multiple"),
         "false proved"),
        (look_at_some_whole_numbers, ("one_whole_number",), "false proved"),
        (let_letters_name_the_first_keys, ("letters_of_given_keys",), "false proved"),
        (end_the_line_early, ("lognormal_mean",), "false refuted"),
        (believe_float64, ("small_gaps", "exact_steps"), "false"),
        (believe_every_box, ("a_gap_in_an_interval", "conditions_of_a_claim"), "false proved"),
    ],
)  # fmt: skip
def test_a_planted_mistake_is_caught(
    plant: Any, families: tuple[str, ...], kinds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    claims = [claim_at(5, place, families) for place in range(40)]
    reports = (mistakes_of(planted, seconds=2.0) for planted in claims)
    found = (kind for report in reports for kind in report.mistakes)
    assert any(kind.startswith(kinds) and kind != "false supported" for kind in found)


def test_a_failure_shrinks_to_a_small_sheet(monkeypatch: pytest.MonkeyPatch) -> None:
    substitute_without_members(monkeypatch)
    fields = {
        "where": {"x": "vector 2", "y": "vector 2", "r": [1, 2]},
        "let": {"f(x)": "sum(x_i, i)", "g(x)": "norm(x)"},
        "expect": ("f(y) = f(x)",),
    }
    report = mistakes_of(Planted("own_functions", fields, False))
    assert "false proved" in report.mistakes
    small = adversary.shrunk(report, seconds=2.0)
    assert "r" not in small.planted.fields["where"]
    assert list(small.planted.fields["let"]) == ["f(x)"]
    assert "[[claim]]" in adversary.sheet_of(small.planted.fields)


def test_no_enclosure_is_used_by_the_reference() -> None:
    """The reference shares the parser with the judge, and nothing that gives a formula a value."""
    folder = Path(__file__).parent / "reference"
    imports = {
        line.split()[1]
        for path in folder.glob("*.py")
        for line in path.read_text().splitlines()
        if line.startswith("from heedful")
    }
    assert imports <= {
        "heedful.claims",
        "heedful.claims.language.tree",
        "heedful.claims.sheet.claim",
        "heedful.errors",
    }
