"""What is wrong with a formula is said at its column, with the way out."""

from __future__ import annotations

import pytest

from heedful.claims.language import canonical_name, parse, parse_value
from heedful.claims.language.parser import FormulaLimits
from heedful.errors import FormulaError

WRONG = [
    # text, column, what the message must contain
    ("", 1, "empty"),
    ("   ", 1, "empty"),
    ("k", 1, "compare it with something"),
    ("a =< b", 3, "write <="),
    ("a !== b", 3, "write !="),
    ("a <> b", 3, "write !="),
    ("a === b", 3, "write ="),
    ("a := b", 3, "write ="),
    ("10% = a", 3, "0.1"),
    ("A @ B = C", 3, "for a product"),
    ("A ⊗ B = C", 3, "outer(x, y)"),
    ("a =", 4, "the end of the formula"),
    ("= 3", 1, "expected before ="),
    ("a = = b", 5, "found `=` after `=`"),
    ("a + = b", 5, "found `=` after `+`"),
    ("x + + y = 1", 5, "leave the sign + out"),
    ("sofmax(x) = 1", 1, "did you mean softmax?"),
    ("softmax x = 1", 1, "brackets were expected after it: softmax(x)"),
    ("softmax(x, y) = 1", 1, "it takes 1 argument: softmax(x)"),
    ("exp() = 1", 1, "exp has no arguments"),
    ("norm(x, 1, 2) = 1", 1, "1 or 2 arguments"),
    ("relo(a, b) = 1", 1, "did you mean relu?"),
    ("(a + b = 1", 1, "the ( opened in column 1 is never closed"),
    ("a + b) = 1", 6, "`)` closes nothing"),
    ("(a + b] = 1", 7, "the ( opened in column 1 should close"),
    ("|x = 1", 1, "the | opened in column 1 is never closed"),
    ("x[1 = 2", 2, "the [ opened in column 2 is never closed"),
    ("||a| + b| = 1", 4, "closed by a single bar"),
    ("() = 1", 1, "nothing stands between the brackets"),
    ("P(x | y) = 1", 5, "write `given` for a condition"),
    ("P(X) = X", 3, "write P * (…)"),
    ("E(x < 1) = 1", 3, "write P(…)"),
    ("abs(x given y = 1) = 2", 7, "abs takes no condition"),
    ("a b 2 = 1", 5, "the number 2 follows another value"),
    ("1 000 = a", 3, "the number 000 follows another value"),
    ("1/2x = 1", 4, "two ways"),
    ("a/b c = 1", 5, "two ways"),
    ("1/sqrt(d) x = 1", 11, "two ways"),
    ("e^2x = 1", 4, "two ways"),
    ("√x² = 1", 3, "sqrt(x)^2 or sqrt(x^2)"),
    ("k_a^Tq = 1", 5, "write ^T q for a transpose"),
    ("sum(x_i, 3) = 1", 10, "not an index"),
    ("sum(x, i, j) = 1", 8, "nest them"),
    ("x => 3", 3, "for greater or equal write >="),
    ("x = 1 AND y = 1", 7, "write it small: and"),
    ("a = b if c = d", 7, "implies"),
    ("true", 1, "write a relation"),
    ("1,5 = x", 2, "decimal point"),
    ("[1, 2] = x", 1, "concat(1, 2, 3)"),
    ('x = "a"', 5, "no text in quotes"),
    ("f('x') = 1", 3, "no text in quotes"),
    ("import os", 1, "ever executed"),
    ("__import__('os') = 1", 1, "a name cannot start with _"),
    ("x + _y = 1", 5, "a name cannot start with _"),
    ("k__a = 1", 2, "a subscript is missing"),
    ("k_{i+1} = 1", 3, "A[i, j]"),
    ("q.__class__ = 1", 2, "there are no attributes"),
    ("а = 1", 1, "CYRILLIC SMALL LETTER A"),
    ("x\u200b = 1", 2, "invisible"),
    ("x\u202e = 1", 2, "invisible"),
    ("x\x00 = 1", 2, "invisible"),
    ("1e999 = x", 1, "too large or too small"),
    ("1e-999999999999 = x", 1, "too large or too small"),
    ("1" * 61 + " = x", 1, "more than 60 digits"),
    ("1.2.3 = x", 4, "second decimal point"),
    ("1_000 = x", 2, "leave the _ out"),
    ("0x10 = y", 2, "runs into a name"),
    ("2[1] = x", 2, "a number has no entries"),
    ("x < 1 within 0.1", 7, "a tolerance belongs to ≈"),
    ("x within 0.1", 3, "`within` without ≈"),
    ("a != b != c", 8, "does not say whether a and c differ"),
    ("a < b + (c < d)", 7, "the right side of + is a statement"),
    ("(x = 1) = 2", 9, "the left side of = is a statement"),
    ("not x", 1, "is a value, not a statement"),
    ("x = 1 and y", 7, "the right side of and is a value"),
    ("x for all i", 3, "is a value, not a statement"),
    ("x_i = 0 for i", 13, "`for all` was expected"),
    ("x_i = 0 for all 3", 17, "where an index should stand"),
    ("x_i = 0 for all i and c = 0", 19, "(… for all i) and …"),
    ("x_i = v_j for all i != a, j", 27, "for all i, j where"),
    ("for all i x_i = 0", 9, "write a colon"),
    ("x in 3", 6, "a set {a, b} or an interval"),
    ("x in [0, 1", 11, "two ends were expected"),
    ("x = 1 where y = 1", 7, "given that"),
    ("x = 1;", 6, "`;` is not part of the language"),
]


@pytest.mark.parametrize(("text", "column", "contains"), WRONG, ids=[text for text, *_ in WRONG])
def test_a_wrong_formula(text: str, column: int, contains: str) -> None:
    with pytest.raises(FormulaError) as caught:
        parse(text)
    assert contains in str(caught.value)
    assert caught.value.column == column
    assert str(caught.value).startswith(f"formula:{column}: ")


def test_a_value_is_asked_for_and_a_statement_given() -> None:
    with pytest.raises(FormulaError, match="is a statement; a value was expected"):
        parse_value("x = 1", field=("query",))


@pytest.mark.parametrize("text", ["", "2", "a b", "and", "a + b", "x" * 501])
def test_what_is_not_a_name(text: str) -> None:
    with pytest.raises(FormulaError, match="is not a name"):
        canonical_name(text)


def test_the_limits_are_exact() -> None:
    assert parse("x = 1" + " " * 495)
    with pytest.raises(FormulaError, match="has 501 characters; at most 500"):
        parse("x = 1" + " " * 496)
    # 28 signs, the name and the relation are 30 levels.
    assert parse("-" * 28 + "x = 1")
    with pytest.raises(FormulaError, match="more than 30 levels deep"):
        parse("-" * 29 + "x = 1")
    assert parse("(" * 30 + "x" + ")" * 30 + " = 1")
    with pytest.raises(FormulaError, match="more than 30 deep"):
        parse("(" * 31 + "x" + ")" * 31 + " = 1")
    # 96 names, 95 sums, the 1 and the relation.
    pairs = "+".join(f"({'+'.join('x' * 16)})" for _ in range(6))
    assert parse(f"{pairs} = 1", limits=FormulaLimits(nodes=193))
    with pytest.raises(FormulaError, match="more than 192 parts"):
        parse(f"{pairs} = 1", limits=FormulaLimits(nodes=192))


@pytest.mark.parametrize(
    "text",
    [
        "(" * 499,
        "-" * 499,
        "not " * 124,
        "a^" * 249,
        "√" * 499,
        "|" * 499,
        "[" * 499,
        "x[" * 249,
        "f(" * 249,
        "exp(" * 124,
        "∀i:" * 166,
        "a=1→" * 124,
        "a=1 given " * 49,
        "x in {" * 83,
        "1 + (" * 99,
        "(1)^(" * 99,
        "sum(x, i != " * 41,
        "a<" * 249,
        "+".join("a" * 250),
    ],
)
def test_nothing_that_is_deep_or_long_exhausts_the_stack(text: str) -> None:
    for end in ("", "x", "x = 1", "x" + ")" * 40):
        with pytest.raises(FormulaError):
            parse((text + end)[:500], functions={"f": 1})


def test_the_deepest_legal_formula_is_read_under_a_full_stack_of_checks() -> None:
    deep = "x"
    for _ in range(14):
        deep = f"1+exp({deep})"
    assert parse(f"{deep} = 1")
    deep = "x = 1"
    for _ in range(27):
        deep = f"not ({deep})"
    assert parse(deep)
