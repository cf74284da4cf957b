"""For which number does it hold: answers that are known by mathematics, and traps beside them."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.claims.checker import claim, gaussian, orthonormal, unit
from heedful.claims.compile import compile_claim
from heedful.claims.judge import judge_claim
from heedful.claims.open_number import direction_of_claim, with_number
from heedful.claims.sheet import Claim, load_sheet
from heedful.claims.sheet.sheet import claim_text
from heedful.claims.verdict import Verdict
from heedful.errors import FormulaError


def asked(expect: str, find: str, **fields: Any) -> Verdict:
    return judge_claim(Claim(id="claim", expect=(expect,), find=find, **fields))


def weight(beta: float, n: int) -> float:
    """The weight of one of n orthonormal keys that a query β k_a gives to key a."""
    return math.exp(beta) / (math.exp(beta) + n - 1)


KNOWN: dict[str, tuple[dict[str, Any], float]] = {
    "a maximum inside an interval": (
        {"expect": "r exp(-r) <= x", "find": "least x", "where": {"r": "[0, 10]"}},
        math.exp(-1),
    ),
    "a minimum inside an interval": (
        {"expect": "r^2 - 3 r >= x", "find": "greatest x", "where": {"r": "[0, 10]"}},
        -2.25,
    ),
    "the smallest weight": (
        {
            "expect": "alpha_a >= x",
            "find": "greatest x",
            "keys": "orthonormal",
            "query": "3 k_a",
            "where": {"n": [2, 5, 9]},
        },
        weight(3, 9),
    ),
    "a factor": (
        {
            "expect": "alpha_a <= x alpha_b",
            "find": "least x",
            "keys": "orthonormal",
            "query": "2 k_a",
            "where": {"n": [2, 4]},
        },
        math.exp(2),
    ),
    "a tolerance": (
        {
            "expect": "c ≈ v_a within x",
            "find": "least x",
            "keys": "orthonormal",
            "query": "4 k_a",
            "where": {"n": [2, 6]},
        },
        1 - weight(4, 6),
    ),
    "a margin in a condition": (
        {
            "expect": "exp(r) >= 10",
            "given": "r >= x",
            "find": "least x",
            "where": {"r": "[0, 10]"},
        },
        math.log(10),
    ),
    "the limit of a large scale": (
        {
            "expect": "alpha_a >= x",
            "find": "greatest x",
            "keys": "orthonormal",
            "query": "beta (k_a + k_b)",
            "where": {"n": [3, 6], "beta": "large"},
        },
        0.5,
    ),
    "nothing is missing": (
        {
            "expect": "abs(sum(alpha_i, i) - 1) <= x",
            "find": "least x",
            "keys": "orthonormal",
            "query": "k_a",
            "where": {"n": 2, "d": 2},
        },
        0.0,
    ),
    "a probability": (
        {"expect": "P(z <= 1) >= x", "find": "greatest x", "where": {"z": "normal"}},
        0.8413447460685429,
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_answer_encloses_the_number_that_mathematics_gives(name: str) -> None:
    fields, truth = KNOWN[name]
    verdict = asked(**fields)
    answer = verdict.answer
    assert answer is not None
    assert verdict.verdict in ("proved", "supported"), verdict.evidence.statement
    assert answer.low is not None
    assert answer.high is not None
    slack = 1e-12 * max(1.0, abs(truth))
    assert answer.low - slack <= truth <= answer.high + slack
    assert answer.high - answer.low <= 0.05 * max(0.02, abs(truth))


@pytest.mark.parametrize("name", KNOWN)
def test_the_judge_does_not_contradict_a_certified_answer(name: str) -> None:
    fields, _ = KNOWN[name]
    verdict = asked(**fields)
    assert verdict.answer is not None
    if not verdict.answer.certified:
        return
    rest = {key: value for key, value in fields.items() if key not in ("expect", "find")}
    written = compile_claim(
        Claim(id="claim", expect=(fields["expect"],), find=fields["find"], **rest)
    ).claim
    for number, word in (
        (verdict.answer.holds_with, "refuted"),
        (verdict.answer.fails_with, "proved"),
    ):
        assert number is not None
        assert judge_claim(with_number(written, Fraction(number))).verdict != word


@pytest.mark.parametrize(
    ("expect", "find", "hold", "fail"),
    [
        ("r <= x", "least x", "2", "1.999999"),
        ("r < x", "least x", "2.000001", "1.999999"),
        ("r >= x", "greatest x", "1", "1.000001"),
        ("r > x", "greatest x", "0.999999", "1.000001"),
    ],
)
def test_an_end_that_is_reached_does_only_where_the_relation_allows_it(
    expect: str, find: str, hold: str, fail: str
) -> None:
    answer = asked(expect, find, where={"r": [1, 2]}).answer
    assert answer is not None
    assert (answer.holds_with, answer.fails_with) == (hold, fail)


@settings(deadline=None, max_examples=8)
@given(peak=st.integers(1, 9), height=st.integers(-4, 4))
def test_a_peak_anywhere_in_an_interval_is_found(peak: int, height: int) -> None:
    verdict = asked(f"{height} - (r - {peak}.3)^2 <= x", "least x", where={"r": "[0, 10]"})
    answer = verdict.answer
    assert answer is not None
    assert answer.low is not None
    assert answer.high is not None
    assert answer.low <= height <= answer.high


def formula(rng: random.Random, r: Any, s: Any, depth: int = 3) -> tuple[str, Any]:
    """Return a random formula in r and s, and what it comes to on a grid of them."""
    if depth == 0 or rng.random() < 0.25:
        number = f"{rng.uniform(0.1, 3):.2f}"
        return rng.choice([("r", r), ("s", s), (number, float(number) + 0 * r)])
    (text, x), (other, y) = (formula(rng, r, s, depth - 1) for _ in range(2))
    return rng.choice(
        [
            (f"({text} + {other})", x + y),
            (f"({text} - {other})", x - y),
            (f"({text} * {other})", x * y),
            (f"({text})^2", x**2),
            (f"({text})/(1 + ({other})^2)", x / (1 + y**2)),
            (f"exp(0 - ({text})^2)", np.exp(-(x**2))),
            (f"sin({text})", np.sin(x)),
            (f"tanh({text})", np.tanh(x)),
        ]
    )


@pytest.mark.parametrize("seed", range(12))
def test_no_certified_answer_is_contradicted_by_a_grid(seed: int) -> None:
    rng = random.Random(seed)
    listed = [round(rng.uniform(-1, 2), 1) for _ in range(2)]
    text, values = formula(rng, *np.meshgrid(np.linspace(-1.5, 1.25, 5001), listed))
    least = rng.random() < 0.5
    relation, find = ("<=", "least x") if least else (">=", "greatest x")
    answer = asked(f"{text} {relation} x", find, where={"s": listed, "r": "[-1.5, 1.25]"}).answer
    assert answer is not None
    if not answer.certified or answer.low is None or answer.high is None:
        return
    seen = float(values.max() if least else values.min())
    assert answer.low - 1e-6 * (1 + abs(seen)) <= seen <= answer.high + 1e-6 * (1 + abs(seen))


def test_a_number_that_no_choice_reaches_is_said_to_be_none() -> None:
    verdict = asked("alpha_a <= x * 0", "least x", keys="orthonormal", query="k_a", where={"n": 2})
    assert verdict.verdict == "refuted"
    assert "No number does" in verdict.evidence.statement


def test_what_holds_whatever_the_number_is_said_to_be_every() -> None:
    verdict = asked("alpha_a <= 1 + 0 x", "least x", keys="orthonormal", query="k_a")
    assert verdict.verdict == "proved"
    assert "Every number does" in verdict.evidence.statement


@pytest.mark.parametrize(
    ("expect", "find", "symbol"),
    [
        ("r <= x", "least x", "positive"),
        ("1/r <= x", "least x", "positive"),
        ("r >= x", "greatest x", "any"),
        ("ln(m) <= x", "least x", "integer >= 2"),
    ],
)
def test_an_unbounded_side_is_not_given_a_number(expect: str, find: str, symbol: str) -> None:
    name = "m" if "m" in expect else "r"
    verdict = asked(expect, find, where={name: symbol})
    assert verdict.verdict in ("undecided", "refuted")
    assert verdict.answer is not None
    assert verdict.answer.holds_with is None


@pytest.mark.parametrize(
    "expect",
    [
        "x (x - 1) >= alpha_a - 1",  # holds below 0 and above 1, and not between
        "sin(x) <= alpha_a",
        "alpha_a = x",
        "c ≈ x v_a",
        "alpha_a <= x (alpha_a - alpha_b)",
        "alpha_a / x <= 1",
        "std(x alpha_a) <= 1",
    ],
)
def test_nothing_is_said_where_the_direction_is_not_known(expect: str) -> None:
    verdict = asked(expect, "least x", keys="orthonormal", query="k_a", where={"n": 2})
    assert verdict.verdict == "undecided"
    assert verdict.answer is not None
    assert verdict.answer.low is verdict.answer.high is None


@pytest.mark.parametrize(
    ("expect", "direction"),
    [
        ("alpha_a <= x", 1),
        ("alpha_a >= x", -1),
        ("x >= alpha_a", 1),
        ("not alpha_a <= x", -1),
        ("alpha_a - 2 x <= alpha_b", 1),
        ("alpha_a <= x implies alpha_b >= 0.1", -1),
        ("alpha_i <= x alpha_a for all i != a", 1),
        ("c ≈ v_a within 2 x", 1),
        ("alpha_a <= x and alpha_b >= x", None),
        ("sum(x alpha_i, i) >= 1", 1),
        ("-3 x <= alpha_a", 1),
    ],
)
def test_the_direction_is_read_off_the_formula(expect: str, direction: int | None) -> None:
    compiled = compile_claim(
        Claim(id="a", expect=(expect,), find="least x", keys="orthonormal", query="k_a")
    )
    assert direction_of_claim(compiled, "x") == direction


def test_the_wrong_end_is_pointed_out() -> None:
    verdict = asked("alpha_a >= x", "least x", keys="orthonormal", query="k_a")
    assert verdict.verdict == "undecided"
    assert 'ask for the "greatest x"' in verdict.evidence.statement


def test_arbitrary_keys_give_a_supported_number() -> None:
    verdict = claim("alpha_a >= x", find="greatest x", keys=unit(n=2, d=2), query="k_a")
    assert verdict.verdict == "supported"
    assert verdict.answer is not None
    assert not verdict.answer.certified
    assert verdict.answer.low is not None
    assert verdict.answer.low <= 0.5  # equal keys share the weight


def test_noise_with_several_directions_is_answered_by_draws() -> None:
    verdict = claim(
        "std(alpha_a) <= x", find="least x", keys=gaussian(n=3, a="0.25 I"), query="2 mu_a"
    )
    assert verdict.verdict == "supported"
    assert verdict.answer is not None
    assert not verdict.answer.certified


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"find": "x"}, "find"),
        ({"find": "some x"}, "find"),
        ({"find": "least y"}, "leaves 'y' open"),
        ({"find": "least x", "where": {"x": 1}}, "has a meaning already"),
        ({"find": "least k"}, "has a meaning already"),
        ({"find": "least 2x"}, "not a name"),
    ],
)
def test_a_find_that_makes_no_sense_is_refused(fields: dict[str, Any], problem: str) -> None:
    lines = "\n".join(
        f"{name} = {value!r}" if name == "find" else "where = { x = 1 }"
        for name, value in fields.items()
    )
    head = '[[claim]]\nid = "a"\nkeys = "orthonormal"\nquery = "k_a"\nexpect = "alpha_a <= x"\n'
    sheet = load_sheet(f"{head}{lines}\n")
    if sheet.problems:
        assert problem in str(sheet.problems[0])
        return
    with pytest.raises(FormulaError, match=problem):
        judge_claim(sheet.claims[0])


def test_a_claim_with_an_open_number_is_written_and_read_again() -> None:
    text = (
        '[[claim]]\nid = "a"\nexpect = "alpha_a >= xi"\nfind = "greatest ξ"\n'
        'keys = "orthonormal"\nquery = "k_a"\n'
    )
    (first,) = load_sheet(text).claims
    (again,) = load_sheet(claim_text(first)).claims
    assert again.find == first.find == "greatest xi"


def test_greek_and_subscripted_names_can_be_found() -> None:
    verdict = claim("alpha_a >= ε", find="greatest ε", keys=orthonormal(n=2), query="k_a")
    assert verdict.verdict == "proved"
