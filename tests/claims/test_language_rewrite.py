"""Substitution and relabelling keep the meaning of every name."""

from __future__ import annotations

from fractions import Fraction

import pytest
from formula_trees import statements, values
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.claims.language import constant, instantiate, parse, parse_value, show, substitute
from heedful.claims.language.tree import Expression, Name, Number, bound_names, free_names, mentions
from heedful.errors import FormulaError

# beartype checks one member of a tuple, chosen at random, whenever a node is made.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module")


@pytest.mark.parametrize(
    ("text", "mapping", "result"),
    [
        ("x + y = x", {"x": "a + b"}, "a + b + y = a + b"),
        ("x y = 1", {"x": "y", "y": "x"}, "y * x = 1"),
        ("2 x = 1", {"x": "a + b"}, "2 * (a + b) = 1"),
        ("k_a = k_b", {"k_a": "0"}, "0 = k_b"),
        ("x_i = y for all i", {"y": "z_i"}, "x_i1 = z_i for all i1"),
        ("x_i = y for all i != a", {"y": "i"}, "x_i1 = i for all i1 != a"),
        ("x_i = y for all i", {"i": "7"}, "x_i = y for all i"),
        ("x_i = y for all i", {"x_i": "7"}, "x_i = y for all i"),
        ("x_i = i", {"i": "7"}, "x_i = 7"),
        ("sum(x_i y, i != a) = 1", {"y": "i"}, "sum(x_i1 * i, i1 != a) = 1"),
        ("sum(x_i y, i) = i", {"i": "3"}, "sum(x_i * y, i) = 3"),
        ("max(x, y) = 1", {"x": "2 y"}, "max(2 * y, --y) = 1"),
        ("max(x, y) = 1", {"y": "0"}, "max(x, 0) = 1"),
        ("x_i = y for all i for all i1", {"y": "i + i1"}, "x_i2 = i + i1 for all i2 for all i11"),
    ],
)
def test_substitution(text: str, mapping: dict[str, str], result: str) -> None:
    tree = parse(text)
    made = substitute(tree, {name: parse_value(new) for name, new in mapping.items()})
    assert free_names(made) == free_names(parse(result))
    if "i11" not in result:  # which fresh name is taken does not matter
        assert show(made) == result


@settings(deadline=None, max_examples=80)
@given(tree=statements(), name=st.sampled_from(["x", "q", "k_a", "alpha_i", "i", "j"]),
       new=values(1))  # fmt: skip
def test_substitution_captures_nothing(tree: Expression, name: str, new: Expression) -> None:
    before = free_names(tree)
    expected = before - {name} | (free_names(new) if name in before else frozenset())
    assert free_names(substitute(tree, {name: new})) == expected


@settings(deadline=None, max_examples=80)
@given(tree=statements(), index=st.sampled_from(["i", "j"]), label=st.sampled_from(["b", "j", "s"]))
def test_an_index_that_is_set_is_gone_and_nothing_is_captured(
    tree: Expression, index: str, label: str
) -> None:
    made = instantiate(tree, index, label)

    def relabelled(name: str) -> str:
        head, *below = name.split("_")
        head = label if name == index else head
        return "_".join([head, *(label if part == index else part for part in below)])

    assert free_names(made) == {relabelled(name) for name in free_names(tree)}


def test_an_index_is_set_alone_and_as_a_subscript() -> None:
    tree = parse("alpha_i <= i + x_i_j and sum(y_i, i) = 1")
    assert show(instantiate(tree, "i", 2)) == "alpha_2 <= 2 + x_2_j and sum(y_i, i) = 1"
    assert show(instantiate(tree, "i", "a")) == "alpha_a <= a + x_a_j and sum(y_i, i) = 1"


def test_definitions_inside_definitions_cannot_explode() -> None:
    doubled = {"x": parse_value("x + x")}
    tree: Expression = Name("x")
    for _ in range(9):
        tree = substitute(tree, doubled)
    tree = substitute(tree, {"x": Name("y")})
    with pytest.raises(FormulaError, match="2047 parts on 11 levels; at most 2000 on 90"):
        substitute(tree, {"y": parse_value("x + x")})


@pytest.mark.parametrize("value", [3, 0.1, -2.5, Fraction(1, 8), 1e-300, 0])
def test_a_constant_has_its_value(value: int | float | Fraction) -> None:
    tree = constant(value)
    assert parse_value(show(tree)) == tree
    assert float(show(tree)) == float(value)
    assert not isinstance(tree, Number) or tree.value >= 0


def test_what_is_not_finite_is_no_constant() -> None:
    with pytest.raises(FormulaError, match="a finite number was expected"):
        constant(float("nan"))


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("sum(x_i, i)", ("i",)),
        ("sum(1, i)", ("i",)),
        ("sum(x_i, i != a)", ("i",)),
        ("max(x_p, p)", ("p",)),
        ("max(x, y)", ()),
        ("max(alpha_a, alpha_b)", ()),
        ("sum(x)", ()),
        ("norm(x, i)", ()),
    ],
)
def test_what_a_sum_binds(text: str, bound: tuple[str, ...]) -> None:
    tree = parse_value(text)
    assert bound_names(tree) == bound
    assert not mentions(tree) & set(bound)
