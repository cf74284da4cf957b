"""What the judge promises, whatever the claim: the same answer twice, and answers that are real.

A counterexample is run through the command it names; a repair is applied and judged again;
enclosures are compared with float64, proofs by algebra with numbers.
"""

from __future__ import annotations

import json
import math
import shlex
import time
from typing import Any

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.claims.algebra import prove_identity
from heedful.claims.balls import Ball, Enclosure, LetterRange, NotEnclosed, flatten, lift
from heedful.claims.compile import compile_claim
from heedful.claims.evaluate.ball import BallEvaluator, BallWorld
from heedful.claims.evaluate.float import Evaluator, World
from heedful.claims.judge import judge_claim
from heedful.claims.language import parse_value
from heedful.claims.search import outcome_of, shrink, survey_cases
from heedful.claims.sheet import Claim
from heedful.claims.values import NoValueError, constant, scalar
from heedful.claims.verdict import Verdict
from heedful.cli.main import main
from heedful.errors import FormulaError

HALF = "c ≈ (v_a + v_b)/2 within 0.02"
NOISY = {"keys": "gaussian", "covariance": {"a": "1/4 mu_a mu_a^T"}}


def written(expect: str, **fields: Any) -> Claim:
    return Claim(id="claim", expect=(expect,), **fields)


REFUTED = {
    "unscaled": written(HALF, keys="orthonormal", query="k_a + k_b", where={"n": [2, 5, 20]}),
    "lopsided": written(
        HALF, keys="orthonormal", query="beta (2 k_a + k_b)", where={"n": 3, "beta": "large"}
    ),
    "never exact": written("alpha_a = 1", keys="orthonormal", query="9 k_a", where={"n": [3, 5]}),
    "arbitrary keys": written("alpha_a >= 1/n", keys="any", query="k_a", where={"n": 2, "d": 2}),
    "in more dimensions": written(
        "alpha_a >= 0.9", keys="orthonormal", query="k_a", where={"n": 3, "d": 5}
    ),
    "divided by the root": written(
        "alpha_a >= 0.9", keys="orthonormal", query="4 k_a", where={"n": 4}, scale="sqrt_d"
    ),
    "one noisy head": written(
        "std(alpha_a) <= 0.1", query="beta (mu_a + mu_b)", where={"n": 6, "beta": 30}, **NOISY
    ),
    "two noisy heads": written(
        "std(alpha_a) <= 0.01",
        heads=("beta mu_a", "beta mu_b"),
        where={"n": 4, "beta": 20},
        **NOISY,
    ),
    "a draw of many": written("alpha_a >= 0.4", query="9 (mu_a + mu_b)", where={"n": 3}, **NOISY),
}


@pytest.mark.parametrize("name", ["unscaled", "arbitrary keys", "two noisy heads"])
def test_a_verdict_is_the_same_twice(name: str) -> None:
    records = [judge_claim(REFUTED[name]).to_dict() for _ in range(2)]
    for record in records:
        record.pop("seconds")
    assert records[0] == records[1]


@pytest.mark.parametrize("name", REFUTED)
def test_a_counterexample_can_be_seen_in_the_command_it_names(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = judge_claim(REFUTED[name], repair=False)
    assert verdict.verdict == "refuted"
    _same_numbers(verdict, capsys)


@pytest.mark.parametrize("name", [name for name in REFUTED if name != "a draw of many"])
def test_a_repair_holds_when_it_is_applied(name: str) -> None:
    claim = REFUTED[name]
    repair = judge_claim(claim).repair
    assert repair is not None
    again = judge_claim(claim.changed(**repair.changes), repair=False)
    assert again.holds
    assert again.verdict == repair.verdict


def _same_numbers(verdict: Verdict, capsys: pytest.CaptureFixture[str]) -> None:
    """Run the command of a counterexample and find its left side in what is printed."""
    case = verdict.counterexample
    assert case is not None
    assert case.command is not None
    program, *arguments = shlex.split(case.command)
    assert program == "heed"
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    if arguments[0] == "noise":
        found = printed["exact"]["std"][0]
    else:
        found = printed["weights"] if isinstance(case.left, list) else printed["weights"][0]
    np.testing.assert_allclose(found, case.left, rtol=1e-5, atol=1e-6)


@settings(deadline=None, max_examples=25)
@given(n=st.integers(2, 40), towards_a=st.integers(-5, 5), towards_b=st.integers(-5, 5))
def test_whatever_the_query_its_counterexample_shows_the_weights(
    n: int, towards_a: int, towards_b: int
) -> None:
    query = f"({towards_a}) k_a + ({towards_b}) k_b"
    verdict = judge_claim(
        written(HALF, keys="orthonormal", query=query, where={"n": n}), repair=False
    )
    logits = np.zeros(n)
    logits[:2] = towards_a, towards_b
    weights = np.exp(logits) / np.exp(logits).sum()
    error = np.abs(weights - np.eye(n)[:2].sum(axis=0) / 2).sum() / 2
    assert verdict.verdict == ("proved" if error <= 0.02 else "refuted")
    if verdict.counterexample is not None:
        np.testing.assert_allclose(verdict.counterexample.left, weights, atol=1e-12)
        assert verdict.counterexample.gap == pytest.approx(error - 0.02)


@settings(deadline=None, max_examples=20)
@given(
    m=st.integers(1, 4),
    more=st.integers(1, 60),
    tolerance=st.sampled_from(["0.1", "0.05", "0.02", "0.01", "0.001"]),
)
def test_the_scale_from_which_a_claim_holds_is_the_one_of_the_formula(
    m: int, more: int, tolerance: str
) -> None:
    n, epsilon = m + more, float(tolerance)
    members = "abcd"[:m]
    keys, values = (" + ".join(f"{letter}_{member}" for member in members) for letter in "kv")
    verdict = judge_claim(
        written(
            f"c ≈ ({values})/{m} within {tolerance}",
            keys="orthonormal",
            query=f"beta ({keys})",
            where={"n": n, "beta": "large"},
        )
    )
    assert verdict.verdict == "proved"
    (bound,) = verdict.evidence.numbers["beta_0"].values()
    wanted = math.log((n - m) * (1 - epsilon) / (m * epsilon))
    assert wanted <= bound <= wanted + 2e-3 * max(1.0, wanted)  # rounded up to four figures


SCALARS = ("x", "y", "beta")
_numbers = st.sampled_from(["0.3", "2", "1.7", "4"])


def _scalars(depth: int) -> st.SearchStrategy[str]:
    simple = st.sampled_from(SCALARS) | _numbers
    if depth == 0:
        return simple
    below, vectors = _scalars(depth - 1), _vectors(depth - 1)
    return st.one_of(
        simple,
        st.builds("({} {} {})".format, below, st.sampled_from("+-*"), below),
        st.builds("{} / (1 + ({})^2)".format, below, below),
        st.builds(
            "{}({})".format,
            st.sampled_from(["sin", "cos", "tanh", "sigmoid", "relu", "abs", "sign"]),
            below,
        ),
        st.builds("exp(-abs({}))".format, below),
        st.builds("({})^T ({})".format, vectors, vectors),
        st.builds("{}({})".format, st.sampled_from(["norm", "sum", "max", "min", "mean"]), vectors),
        st.builds("entropy(softmax({}))".format, vectors),
    )


def _vectors(depth: int) -> st.SearchStrategy[str]:
    simple = st.sampled_from(["u", "w", "x u", "beta w"])
    if depth == 0:
        return simple
    below = _vectors(depth - 1)
    return st.one_of(
        simple,
        st.builds("({} {} {})".format, below, st.sampled_from("+-"), below),
        st.builds("{} ({})".format, _scalars(depth - 1).map("({})".format), below),
        st.builds("A ({})".format, below),
        st.builds("{}({})".format, st.sampled_from(["softmax", "relu", "tanh"]), below),
        st.builds("hadamard({}, {})".format, below, below),
    )


@settings(deadline=None, max_examples=300)
@given(text=_scalars(3) | _vectors(3), seed=st.integers(0, 10**6), where=st.floats(0, 1))
def test_an_enclosure_over_a_range_holds_what_float64_finds_in_it(
    text: str, seed: int, where: float
) -> None:
    rng = np.random.default_rng(seed)
    arrays = {"u": rng.integers(-2, 3, 3) / 2, "w": rng.standard_normal(3)}
    arrays["A"] = rng.integers(-2, 3, (3, 3)).astype(float)
    ends = {name: sorted(rng.uniform(-2, 2, 2).round(2)) for name in SCALARS}
    tree = parse_value(text, names={*SCALARS, *arrays})
    symbols = {name: Enclosure(Ball.between(*ends[name]), "scalar") for name in ("x", "y")}
    # One symbol is kept as a letter, as in proofs about a range of β.
    symbols["beta"] = Enclosure(Ball.letter(LetterRange.of(*ends["beta"])), "scalar")
    symbols |= {name: lift(array) for name, array in arrays.items()}
    try:
        enclosed = BallEvaluator(BallWorld(symbols=symbols)).value(tree)
        spans = [entry.flat() for entry in flatten(enclosed)]
    except (NotEnclosed, ZeroDivisionError, ValueError, OverflowError):
        return  # no answer is an honest answer
    point = {name: scalar(low + where * (high - low)) for name, (low, high) in ends.items()}
    point |= {name: constant(array) for name, array in arrays.items()}
    try:
        found = Evaluator(World(symbols=point)).value(tree).array.reshape(-1)
    except NoValueError:
        return
    assert len(found) == len(spans)
    for value, span in zip(found.tolist(), spans, strict=True):
        rounding = arb(0, 1e-9 * (1 + abs(value)))
        assert (span + rounding).contains(arb(value)), f"{text}: {value} is not in {span}"


def test_most_formulas_are_enclosed_narrowly_at_a_point() -> None:
    # The property above would pass if nothing were ever enclosed.
    symbols = {name: Enclosure(Ball.exact(0.5), "scalar") for name in SCALARS}
    symbols["u"] = lift(np.array([1.0, 0.5, -1.0]))
    for text in ("norm(softmax(x u))", "entropy(softmax(beta u))", "sin(x) / (1 + y^2)"):
        (ball,) = flatten(BallEvaluator(BallWorld(symbols=symbols)).value(parse_value(text)))
        assert float(ball.flat().rad()) < 1e-12


@settings(deadline=None, max_examples=40)
@given(
    n=st.integers(2, 9),
    weights=st.lists(st.integers(-3, 3), min_size=2, max_size=2),
    low=st.floats(0.1, 20),
    further=st.floats(0, 300),
)
def test_weights_beyond_a_scale_are_enclosed_without_end(
    n: int, weights: list[int], low: float, further: float
) -> None:
    logits = np.zeros(n)
    logits[:2] = weights
    letter = Ball.letter(LetterRange.of(low, None))
    query = Enclosure([letter * Ball.exact(int(logit)) for logit in logits], "vector")
    world = BallWorld(families={"k": lift(np.eye(n))})
    alpha = BallEvaluator(world).apply("weights", query)
    scores = (low + further) * logits
    exact = np.exp(scores - scores.max())
    exact /= exact.sum()
    for value, ball in zip(exact.tolist(), flatten(alpha), strict=True):
        assert (ball.flat() + arb(0, 1e-12)).contains(arb(value))


LAYERS = (
    "{x}",
    "relu({x})",
    "{x} A",
    "tanh({x} A) B",
    "{x} + relu({x} B)",
    "softmax({x} A ({x})^T) {x}",
    "softmax({x} ({x})^T + causal(T)) {x}",
    "{x} + M",
    "M^T {x}",
    "softmax({x})",
    "layernorm({x})",
    "P {x}",
    "P^T {x}",
    "{x} W",
    "{x} W^T",
)


@st.composite
def layered(draw: st.DrawFn, inside: str) -> str:
    """Draw a few layers around an expression."""
    text = inside
    for layer in draw(st.lists(st.sampled_from(LAYERS), max_size=2)):
        text = layer.replace("{x}", f"({text})")
    return text


@st.composite
def permuted(draw: st.DrawFn) -> str:
    """Draw an equation between permuted layers; many are false."""
    layers = draw(layered("Z"))
    inner = draw(st.sampled_from(["P X", "P^T X", "X W", "X"]))
    outer = draw(st.sampled_from(["P ({})", "P^T ({})", "({}) W", "{}"]))
    left = layers.replace("Z", f"({inner})")
    return f"{left} = {outer.format(layers.replace('Z', 'X'))}"


@settings(deadline=None, max_examples=300)
@given(expect=permuted(), seed=st.integers(0, 10**6))
def test_what_algebra_proves_holds_in_numbers(expect: str, seed: int) -> None:
    where = {
        "T": 3,
        "d": 2,
        **dict.fromkeys(("X", "M"), "matrix T x d"),
        **dict.fromkeys(("A", "B"), "matrix d x d"),
        "P": "permutation T",
        "W": "permutation d",
    }
    try:
        problem = compile_claim(written(expect, where=where))
    except FormulaError:
        return
    if prove_identity(problem) is None:
        return
    rng = np.random.default_rng(seed)
    arrays = {name: rng.standard_normal((3, 2)) for name in ("X", "M")}
    arrays |= {name: rng.standard_normal((2, 2)) for name in ("A", "B")}
    arrays |= {"P": np.eye(3)[rng.permutation(3)], "W": np.eye(2)[rng.permutation(2)]}
    symbols = {name: constant(array) for name, array in arrays.items()}
    world = World(symbols={**symbols, "T": scalar(3), "d": scalar(2)})
    try:
        truth = Evaluator(world).truth(problem.statement)
    except FormulaError:
        return  # algebra sees no sizes; the judge evaluates a case before it believes a proof
    assert truth.holds.all(), expect


def test_algebra_proves_what_it_should() -> None:
    where = {"X": "matrix T x d", "A": "matrix d x d", "P": "permutation T"}
    for layer in ("relu(Z A)", "Z + relu(Z A)", "softmax(Z A Z^T) Z", "layernorm(Z)"):
        sides = layer.replace("Z", "(P X)"), layer.replace("Z", "X")
        claim = written(f"{sides[0]} = P ({sides[1]})", where=where)
        assert prove_identity(compile_claim(claim)) is not None, layer


FALSE = (
    ("norm(x + y) <= norm(x)", {"x": "vector d", "y": "vector d", "d": [2, 3]}),
    ("X Y = Y X", {"X": "matrix d x d", "Y": "matrix d x d", "d": [2, 3]}),
    ("relu(x + y) = relu(x) + relu(y)", {"x": "vector d", "y": "vector d", "d": 2}),
    ("f(P X) = P f(X)", {"X": "matrix T x d", "P": "permutation T", "T": [2, 3], "d": 2}),
    ("max(softmax(x)) >= 0.5", {"x": "vector d", "d": [2, 3, 5]}),
)


@settings(deadline=None, max_examples=25)
@given(which=st.sampled_from(FALSE), seed=st.integers(0, 10**6))
def test_what_is_shrunk_still_fails(which: tuple[str, dict[str, Any]], seed: int) -> None:
    expect, where = which
    let = {"f(X)": "softmax(X X^T + causal(T)) X"} if "f(" in expect else {}
    problem = compile_claim(written(expect, where=where, seed=seed, let=let))
    found = survey_cases(problem, time.perf_counter() + 10)
    assert found.failures
    for case, outcome in found.failures[:3]:
        smaller, shown = shrink(problem, case, outcome)
        assert shown.holds is False
        assert outcome_of(problem, smaller).holds is False
        assert smaller.scalars == case.scalars
        for name, array in smaller.arrays.items():
            assert np.shape(array) == np.shape(case.arrays[name])
            assert np.abs(array).sum() <= np.abs(case.arrays[name]).sum() + array.size


def test_an_error_points_at_the_field_it_is_in() -> None:
    for fields, where in (
        ({"query": "beta k_a"}, "claim.query"),
        ({"query": "k_a / (n - n)"}, "claim.query"),
        ({"query": "k_a", "values": ["beta"] * 2}, "claim.values[0]"),
        ({"query": "k_a", "let": {"t": "undeclared"}}, "claim.let.t"),
    ):
        with pytest.raises(FormulaError) as caught:
            judge_claim(written("alpha_a > 0", keys="orthonormal", where={"n": 2}, **fields))
        assert caught.value.where.startswith(where)


def test_a_covariance_without_its_transpose_is_refused() -> None:
    claim = written("std(alpha_a) < 1", query="mu_a", **{**NOISY, "covariance": {"a": "mu_a mu_a"}})
    with pytest.raises(FormulaError, match="outer product"):
        judge_claim(claim)
