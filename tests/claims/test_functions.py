"""The table of functions: every entry is whole, and its meanings agree with one another."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import sympy
from flint import arb

from heedful.claims.balls import Ball, Enclosure, NotEnclosed, flatten, lift
from heedful.claims.evaluate.ball import BallEvaluator, BallWorld
from heedful.claims.evaluate.float import Evaluator, World
from heedful.claims.evaluate.symbolic import Letters, LetterWorld
from heedful.claims.functions import FUNCTIONS, Function, Missing, NotSymbolic
from heedful.claims.judge import judge_claim
from heedful.claims.language import parse_value, tex
from heedful.claims.sheet import Claim
from heedful.claims.values import Truth, constant
from heedful.errors import FormulaError

EXAMPLES = {
    **{name: [f"{name}(t)", f"{name}(abs(x) + 1/2)"] for name in ("ln", "log", "sqrt", "exp")},
    **{name: [f"{name}(t)", f"{name}(x)", f"{name}(A)"] for name in ("sin", "cos", "tanh", "Phi")},
    **{name: [f"{name}(t)", f"{name}(x)"] for name in ("abs", "sigmoid", "relu", "sign", "floor")},
    **{name: [f"{name}(x / 3)"] for name in ("round16", "roundbf16")},
    "softmax": ["softmax(x)", "softmax(A)"],
    "softmax_rows": ["softmax_rows(A)"],
    "norm": ["norm(x)", "norm(A)", "norm(x, 1)"],
    "entropy": ["entropy(p)", "entropy(onehot(2, 3))"],
    "mean": ["mean(x)", "mean(A)"],
    "argmax": ["argmax(x)", "argmax(ones(3))"],
    "transpose": ["transpose(A)", "transpose(x) y"],
    "trace": ["trace(A)"],
    "rank": ["rank(A)"],
    "det": ["det(A)"],
    "inv": ["inv(A)", "A inv(A)"],
    "diag": ["diag(x)", "diag(A)"],
    "outer": ["outer(x, y)"],
    "dot": ["dot(x, y)"],
    "hadamard": ["hadamard(x, y)", "hadamard(A, A)"],
    "ones": ["ones(3)", "ones(2, 3)"],
    "zeros": ["zeros(3)", "zeros(2, 3)"],
    "eye": ["eye(3)"],
    "onehot": ["onehot(2, 3)"],
    "concat": ["concat(x, t, y)"],
    "stack": ["stack(x, y)"],
    "rows": ["rows(x, y)"],
    "attention": ["attention(x)", "attention(x, A)", "attention(x, A, A)"],
    "weights": ["weights(x)", "weights(x, A)"],
    "selfattention": ["selfattention(A)", "selfattention(A, A, A^T, A)"],
    "causal": ["causal(3)"],
    "mass": ["mass(a)", "mass(a, 3)"],
    "tv": ["tv(p, q)", "tv(x, y)"],
    "kl": ["kl(p, q)", "kl(onehot(1, 3), q)", "kl(p, p)"],
    "layernorm": ["layernorm(x)", "layernorm(A)"],
    "rmsnorm": ["rmsnorm(x)", "rmsnorm(A)"],
    "phi": ["phi(t)", "phi(t, 5)"],
    "rotate": ["rotate(concat(x, t), t)"],
    "distance": ["distance(a)"],
    "E": ["E(x)"],
    "P": ["P(t > 1)"],
    "var": ["var(x)"],
    "std": ["std(x)"],
    "cov": ["cov(x, y)"],
    "quantile": ["quantile(t, 1/2)"],
    "sum": ["sum(x)", "sum(x_i, i)", "sum(x_i y_i, i != a)", "sum(k_i, i)"],
    "prod": ["prod(x)", "prod(x_i + i, i)"],
    "max": ["max(x)", "max(x_i, i != a)", "max(t, 2)", "max(k_i, i)"],
    "min": ["min(x)", "min(x_i, i)", "min(t, 2)"],
    "logsumexp": ["logsumexp(x)", "logsumexp(100 x)", "logsumexp(x_i, i != a)"],
    "hull": ["hull(a)"],
    "copyable": ["copyable(2)"],
}
"""Formulas with every function, for the worlds below."""

ARRAYS: dict[str, Any] = {
    "x": np.array([1.0, -0.5, 0.25]),
    "y": np.array([0.75, 0.5, -1.0]),
    "p": np.array([0.5, 0.25, 0.25]),
    "q": np.array([0.25, 0.5, 0.25]),
    "A": np.array([[2.0, 0.5, -1.0], [0.0, 1.0, 0.25], [0.5, -0.5, 1.5]]),
    "t": np.array(1.25),
}
FAMILIES = {"k": np.eye(3), "v": ARRAYS["A"], "alpha": ARRAYS["p"]}
INDICES = {"a": 0}
IN_CELLS = {"E", "P", "var", "std", "cov", "quantile"}
"""Statistics whose meaning in balls needs the cells of a noisy world (see test_judge)."""


def in_letters(array: Any) -> Any:
    """Return numbers as SymPy knows them: exactly, vectors as columns."""
    exact = [sympy.Rational(float(entry)) for entry in array.reshape(-1)]
    shape = (len(array), array.shape[1] if array.ndim == 2 else 1) if array.ndim else ()
    return sympy.Matrix(*shape, exact) if shape else exact[0]


FLOATS = Evaluator(
    World(
        symbols={name: constant(array) for name, array in ARRAYS.items()},
        families={name: constant(array) for name, array in FAMILIES.items()},
        indices=INDICES,
        scale=0.5,
        width=4,
    )
)
BALLS = BallEvaluator(
    BallWorld(
        symbols={name: lift(array) for name, array in ARRAYS.items()},
        families={name: lift(array) for name, array in FAMILIES.items()},
        indices=INDICES,
        scale=Ball.exact(0.5),
        width=4,
    )
)
LETTERS = Letters(
    LetterWorld(
        symbols={name: in_letters(array) for name, array in ARRAYS.items()},
        families={name: in_letters(array) for name, array in FAMILIES.items()},
        indices=INDICES,
        scale=sympy.Rational(1, 2),
        width=4,
    )
)
FORMULAS = [(FUNCTIONS[name], text) for name, texts in EXAMPLES.items() for text in texts]


def in_floats(text: str) -> Any:
    tree = parse_value(text)
    found = FLOATS.truth(tree) if text.startswith(("hull", "copyable")) else FLOATS.value(tree)
    return found.holds if isinstance(found, Truth) else found.array.reshape(-1)


def test_every_function_has_an_example() -> None:
    assert set(EXAMPLES) == set(FUNCTIONS)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_every_entry_is_whole(function: Function) -> None:
    assert callable(function.floats)  # what has no numbers could never be looked at
    for meaning in (function.balls, function.letters):
        assert callable(meaning) or len(meaning.why) > 10
    assert function.says
    assert 1 <= function.least <= function.most
    assert all(form.startswith(f"{function.name}(") for form in function.forms)


@pytest.mark.parametrize(("function", "text"), FORMULAS, ids=[text for _, text in FORMULAS])
def test_balls_enclose_what_float64_finds(function: Function, text: str) -> None:
    expected = in_floats(text)
    if isinstance(function.balls, Missing) or function.name in IN_CELLS:
        with pytest.raises(NotEnclosed):
            BALLS.value(parse_value(text))
        return
    enclosure = BALLS.value(parse_value(text))
    spans = [entry.flat() for entry in flatten(enclosure)]
    for value, span in zip(expected.tolist(), spans, strict=True):
        assert (span + arb(0, 1e-12 * (1 + abs(value)))).contains(arb(value))
        assert float(span.rad()) < 1e-10


@pytest.mark.parametrize(("function", "text"), FORMULAS, ids=[text for _, text in FORMULAS])
def test_letters_say_what_float64_finds(function: Function, text: str) -> None:
    if isinstance(function.letters, Missing):
        with pytest.raises(NotSymbolic, match=re.escape(function.letters.why)):
            function.in_letters(sympy)
        return
    try:
        exact = LETTERS.value(parse_value(text))
    except NotSymbolic:
        return  # a meaning for scalars only, or a norm of another order
    entries = list(exact) if isinstance(exact, sympy.MatrixBase) else [exact]
    np.testing.assert_allclose([float(entry) for entry in entries], in_floats(text), rtol=1e-12)


def test_most_meanings_in_letters_were_compared() -> None:
    # The property above would pass if nothing were ever written in letters.
    compared = 0
    for _, text in FORMULAS:
        try:
            LETTERS.value(parse_value(text))
        except (NotSymbolic, FormulaError):
            continue
        compared += 1
    assert compared >= 40


@pytest.mark.parametrize(("function", "text"), FORMULAS, ids=[text for _, text in FORMULAS])
def test_every_function_is_typeset(function: Function, text: str) -> None:
    written = tex(parse_value(text))
    assert "#" not in written
    assert written.count("{") == written.count("}")
    assert written.count(r"\left") == written.count(r"\right")


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_wrong_number_of_arguments_is_refused_with_the_right_forms(function: Function) -> None:
    first = "x < 1" if function.takes == "event" else "x"
    arguments = ", ".join([first, *["x"] * function.most])
    with pytest.raises(FormulaError) as refusal:
        parse_value(f"{function.name}({arguments})")
    if function.kind != "binder":  # these say that one index is enough
        assert function.forms[0] in refusal.value.expected


def test_a_divergence_is_enclosed_where_the_first_distribution_may_be_zero() -> None:
    p = Enclosure([Ball.between(0.0, 0.25), Ball.between(0.75, 1.0)], "vector")
    q = Enclosure([Ball.exact(0.5), Ball.exact(0.5)], "vector")
    span = FUNCTIONS["kl"].in_balls(p, q).entries.flat()
    for share in (0.0, 0.125, 0.25):
        weights = np.array([share, 1 - share])
        terms = [w * np.log(w / 0.5) for w in weights if w > 0]
        assert span.contains(arb(float(sum(terms))))
    with pytest.raises(NotEnclosed):
        FUNCTIONS["kl"].in_balls(q, p)


def test_a_new_function_is_known_to_the_judge_the_page_and_the_errors() -> None:
    keys = {"keys": "any", "where": {"n": [2, 3], "d": 2}}
    true = Claim(id="max", expect=("logsumexp(k_i^T k_a, i) >= k_a^T k_a",), **keys)
    assert judge_claim(true).verdict != "refuted"
    shifted = Claim(
        id="shift",
        expect=("logsumexp(x + t) = logsumexp(x) + t",),
        where={"x": "vector d", "d": 3, "t": "[-2, 2]"},
    )
    assert judge_claim(shifted).verdict in ("proved", "supported")
    refuted = judge_claim(true.changed(expect=("logsumexp(k_i^T k_a, i) >= k_a^T k_a + 1",)))
    assert refuted.verdict == "refuted"
    assert refuted.evidence.method == "search and exact arithmetic"
    assert tex(parse_value("logsumexp(x_i, i)")) == r"\ln \sum_{i} \exp\left(x_{i}\right)"
    with pytest.raises(FormulaError, match="did you mean logsumexp"):
        parse_value("logsumexpp(x)")


def test_balls_enclose_a_smooth_maximum_of_wide_entries() -> None:
    wide = [Ball.between(-400.0, 400.0), Ball.between(0.0, 1.0)]
    span = FUNCTIONS["logsumexp"].in_balls(wide).flat()
    for first in (-400.0, 0.0, 400.0):
        assert span.contains(arb(float(np.logaddexp(first, 0.5))))
    assert span.lower() > -1
    assert span.upper() < 401


def test_a_sum_of_statistics_over_an_index_can_be_judged() -> None:
    claim = Claim(
        id="total",
        expect=("sum(E(alpha_i), i) = 1",),
        keys="gaussian",
        covariance={"a": "1/4 mu_a mu_a^T"},
        query="5 mu_a",
        where={"n": 3},
    )
    assert judge_claim(claim).verdict in ("proved", "supported")
