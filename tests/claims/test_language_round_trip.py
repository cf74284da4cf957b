"""What is shown can be read again, and is the same formula."""

from __future__ import annotations

from fractions import Fraction

import pytest
from formula_trees import DECLARED, size_and_depth, statements, values, wider_statements
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from heedful.claims.language import constant, parse, parse_value, show
from heedful.claims.language.notation import Style
from heedful.claims.language.parser import FormulaLimits
from heedful.claims.language.tree import Binary, Expression, Name, Number

# beartype checks one member of a tuple, chosen at random, whenever a node is made.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module")

WIDE = FormulaLimits(characters=20_000)
styles = st.sampled_from(["plain", "unicode"])


def fits(tree: Expression) -> bool:
    size, depth = size_and_depth(tree)
    return size <= 200 and depth <= 30


@settings(deadline=None, max_examples=120)
@given(tree=statements(), style=styles)
def test_a_statement_survives_printing_and_parsing(tree: Expression, style: Style) -> None:
    assume(fits(tree))
    assert parse(show(tree, style), functions=DECLARED, limits=WIDE) == tree


@settings(deadline=None, max_examples=120)
@given(tree=wider_statements(), style=styles)
def test_limits_and_existence_survive_too(tree: Expression, style: Style) -> None:
    assume(fits(tree))
    assert parse(show(tree, style), functions=DECLARED, limits=WIDE) == tree


@settings(deadline=None, max_examples=120)
@given(tree=values(), style=styles)
def test_a_value_survives_printing_and_parsing(tree: Expression, style: Style) -> None:
    assume(fits(tree))
    assert parse_value(show(tree, style), functions=DECLARED, limits=WIDE) == tree


@settings(deadline=None, max_examples=50)
@given(tree=statements())
def test_both_styles_are_the_same_formula_and_printing_settles_at_once(tree: Expression) -> None:
    assume(fits(tree))
    unicode = show(tree, "unicode")
    again = parse(unicode, functions=DECLARED, limits=WIDE)
    assert show(again, "unicode") == unicode
    assert show(again) == show(tree)


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300))
def test_a_float_is_shown_by_digits_that_give_it_back(value: float) -> None:
    tree = parse_value(show(constant(value)))
    text = show(tree)
    assert float(text) == value
    assert len(text) <= 26


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1, 3), "1/3"),
        (Fraction(-2), "-2"),
        (Fraction(1, 10), "0.1"),
        (Fraction(15_000_000), "15000000"),
        (Fraction(10) ** 20, "1e20"),
        (Fraction(12, 10**7), "1.2e-6"),
        (Fraction(0), "0"),
    ],
)
def test_numbers_are_shown_as_one_would_write_them(value: Fraction, text: str) -> None:
    assert show(Number(value)) == text


def test_a_number_no_formula_can_write_is_shown_as_one_of_the_same_value() -> None:
    tree = Binary("^", Name("x"), Number(Fraction(1, 3)))
    assert show(tree) == "x^(1/3)"
    assert show(parse_value(show(tree))) == "x^(1 / 3)"
