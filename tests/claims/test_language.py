"""Every construct of the formula language, with the tree it becomes."""

from __future__ import annotations

import pickle
from fractions import Fraction

import pytest

from heedful.claims.functions import FUNCTIONS
from heedful.claims.language import canonical_name, parse, parse_value, show
from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Entry,
    Expression,
    ForAll,
    Logic,
    Name,
    Number,
    Unary,
    walk,
)
from heedful.errors import FormulaError

DECLARED = {"f": 1}


def number(text: str) -> Number:
    return Number(Fraction(text))


def times(left: Expression, right: Expression) -> Binary:
    return Binary("*", left, right)


def transposed(operand: Expression) -> Unary:
    return Unary("T", operand)


A, B, C, T, X, Y = (Name(text) for text in ("a", "b", "c", "T", "x", "y"))
INDEX, J, S = Name("i"), Name("j"), Name("s")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("12", number("12")),
        ("0.5", number("1/2")),
        (".5", number("1/2")),
        ("1e-3", number("1/1000")),
        ("2.5E2", number("250")),
        ("alpha_i", Name("alpha_i")),
        ("α_i", Name("alpha_i")),
        ("αᵢ", Name("alpha_i")),
        ("β₀", Name("beta_0")),
        ("𝛽", Name("beta")),
        ("ϕ", Name("phi")),
        ("k_{a}", Name("k_a")),
        ("W_Q", Name("W_Q")),
        ("x_12", Name("x_12")),
        ("k_α", Name("k_alpha")),
        ("∞", Name("infinity")),
        ("a + b - c", Binary("-", Binary("+", A, B), C)),
        ("a / b / c", Binary("/", Binary("/", A, B), C)),
        ("a - b * c", Binary("-", A, times(B, C))),
        ("a·b", times(A, B)),
        ("a × b", times(A, B)),
        ("a − b", Binary("-", A, B)),
        ("-a^2", Unary("-", Binary("^", A, number("2")))),
        ("-a b", times(Unary("-", A), B)),
        ("a * -b", times(A, Unary("-", B))),
        ("a^b^c", Binary("^", A, Binary("^", B, C))),
        ("a ** 2", Binary("^", A, number("2"))),
        ("a²", Binary("^", A, number("2"))),
        ("a⁻¹", Binary("^", A, Unary("-", number("1")))),
        ("a^-1", Binary("^", A, Unary("-", number("1")))),
        ("a^{b + c}", Binary("^", A, Binary("+", B, C))),
        ("a^(T)", Binary("^", A, T)),
        ("x[1]", Entry(X, (number("1"),))),
        ("x[i, j]", Entry(X, (INDEX, J))),
        ("x^T[i]", Entry(transposed(X), (INDEX,))),
        ("a^x[i]", Binary("^", A, Entry(X, (INDEX,)))),
        ("|x|", Call("abs", (X,))),
        ("|a||b|", times(Call("abs", (A,)), Call("abs", (B,)))),
        ("|a (|b|)|", Call("abs", (times(A, Call("abs", (B,))),))),
        ("‖x‖", Call("norm", (X,))),
        ("||x||", Call("norm", (X,))),
        ("|||x|||", Call("norm", (Call("abs", (X,)),))),
        ("‖x‖_1", Call("norm", (X, number("1")))),
        ("‖x‖_∞", Call("norm", (X, Name("infinity")))),
        ("‖x‖²", Binary("^", Call("norm", (X,)), number("2"))),
        ("√x", Call("sqrt", (X,))),
        ("√2 x", times(Call("sqrt", (number("2"),)), X)),
        ("√(a + b)", Call("sqrt", (Binary("+", A, B),))),
        ("norm(x, 1)", Call("norm", (X, number("1")))),
        ("9^9^9^9", Binary("^", number("9"), Binary("^", number("9"),
                                                    Binary("^", number("9"), number("9"))))),
    ],
)  # fmt: skip
def test_values(text: str, tree: Expression) -> None:
    assert parse_value(text) == tree


@pytest.mark.parametrize("text", ["x^T", "xᵀ", "x.T", "x'", "x⊤", "x^⊤", "x^{T}", "x′", "(x)^T"])
def test_every_way_to_write_a_transpose(text: str) -> None:
    assert parse_value(text) == transposed(X)


def test_a_transpose_never_belongs_to_an_exponent() -> None:
    assert parse_value("x^-1^T") == transposed(Binary("^", X, Unary("-", number("1"))))
    assert parse_value("x⁻¹ᵀ") == parse_value("(x^-1)'")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("2 beta", times(number("2"), Name("beta"))),
        ("2beta", times(number("2"), Name("beta"))),
        ("βk_a", times(Name("beta"), Name("k_a"))),
        ("P X", times(Name("P"), Name("X"))),
        ("P f(X)", times(Name("P"), Call("f", (Name("X"),)))),
        ("k_a^T q", times(transposed(Name("k_a")), Name("q"))),
        ("mu_a mu_a^T", times(Name("mu_a"), transposed(Name("mu_a")))),
        ("(a + b)(c)", times(Binary("+", A, B), C)),
        ("X W_Q Y", times(times(Name("X"), Name("W_Q")), Name("Y"))),
        ("x(a)", times(X, A)),
        ("1/2 (a + b)", times(Binary("/", number("1"), number("2")), Binary("+", A, B))),
        ("(a/b) c", times(Binary("/", A, B), C)),
        ("2 ‖x‖ y", times(times(number("2"), Call("norm", (X,))), Y)),
        ("2 exp(x)", times(number("2"), Call("exp", (X,)))),
    ],
)
def test_products_without_a_sign(text: str, tree: Expression) -> None:
    assert parse_value(text, functions=DECLARED) == tree


def test_a_name_before_a_bracket_is_called_only_if_it_is_a_function() -> None:
    assert parse_value("g(x)") == times(Name("g"), X)
    assert parse_value("g(x)", functions={"g": 1}) == Call("g", (X,))
    assert parse_value("g(x, y)", functions={"g": (1, 2)}) == Call("g", (X, Y))
    assert parse_value("P(x)", names={"P"}) == times(Name("P"), X)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a < b", Compare("<", A, B)),
        ("a ≤ b", Compare("<=", A, B)),
        ("a ≥ b", Compare(">=", A, B)),
        ("a ≠ b", Compare("!=", A, B)),
        ("a == b", Compare("=", A, B)),
        ("a ≈ b", Compare("~", A, B)),
        ("a ~= b", Compare("~", A, B)),
        ("a ~ b within c", Compare("~", A, B, C)),
        ("a = b within 0.1", Compare("~", A, B, number("0.1"))),
        ("a < b <= c", Logic("and", Compare("<", A, B), Compare("<=", B, C))),
        ("a = b ~ c within 1", Logic("and", Compare("~", A, B, number("1")),
                                     Compare("~", B, C, number("1")))),
        ("a in {b, c}", Logic("or", Compare("=", A, B), Compare("=", A, C))),
        ("a not in {b}", Unary("not", Compare("=", A, B))),
        ("a ∈ [0, 1)", Logic("and", Compare("<=", number("0"), A), Compare("<", A, number("1")))),
        ("not a = b", Unary("not", Compare("=", A, B))),
        ("a = 1 or b = 1 and c = 1", Logic("or", Compare("=", A, number("1")),
            Logic("and", Compare("=", B, number("1")), Compare("=", C, number("1"))))),
        ("a = 1 => b = 1 → c = 1", Logic("implies", Compare("=", A, number("1")),
            Logic("implies", Compare("=", B, number("1")), Compare("=", C, number("1"))))),
        ("a = 1 given that b > c", Logic("implies", Compare(">", B, C),
                                         Compare("=", A, number("1")))),
        ("copyable(j)", Call("copyable", (J,))),
        ("hull(j) implies copyable(j)", Logic("implies", Call("hull", (J,)),
                                              Call("copyable", (J,)))),
    ],
)  # fmt: skip
def test_statements(text: str, tree: Expression) -> None:
    assert parse(text) == tree


ALPHA = Compare(">=", Name("alpha_i"), number("0"))
PAIR = Compare("=", times(transposed(Name("k_i")), Name("k_j")), number("0"))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("alpha_i >= 0 for all i", ForAll(("i",), None, ALPHA)),
        ("alpha_i >= 0 for every i", ForAll(("i",), None, ALPHA)),
        ("alpha_i >= 0 ∀ i", ForAll(("i",), None, ALPHA)),
        ("for all i: alpha_i >= 0", ForAll(("i",), None, ALPHA)),
        ("alpha_i >= 0 for all i != a, b", ForAll(("i",), Logic(
            "and", Compare("!=", INDEX, A), Compare("!=", INDEX, B)), ALPHA)),
        ("alpha_i >= 0 for all i != j", ForAll(("i",), Compare("!=", INDEX, J), ALPHA)),
        ("k_i^T k_j = 0 for all i != j", ForAll(("i", "j"), Compare("!=", INDEX, J), PAIR)),
        ("k_i^T k_j = 0 for all i, j", ForAll(("i", "j"), None, PAIR)),
        ("k_i^T k_j = 0 for all i, j < T", ForAll(("i", "j"), Logic(
            "and", Compare("<", INDEX, T), Compare("<", J, T)), PAIR)),
        ("k_i^T k_j = 0 for all i, j where i < j",
         ForAll(("i", "j"), Compare("<", INDEX, J), PAIR)),
        ("alpha_i >= 0 for all 1 <= i < T", ForAll(("i",), Logic(
            "and", Compare("<=", number("1"), INDEX), Compare("<", INDEX, T)), ALPHA)),
        ("alpha_i >= 0 for all i in {a, b}", ForAll(("i",), Logic(
            "or", Compare("=", INDEX, A), Compare("=", INDEX, B)), ALPHA)),
        ("alpha_i >= 0 for all i != a and i < T", ForAll(("i",), Logic(
            "and", Compare("!=", INDEX, A), Compare("<", INDEX, T)), ALPHA)),
        ("alpha_i >= 0 for all i given that x_i > 0", ForAll(("i",), None, Logic(
            "implies", Compare(">", Name("x_i"), number("0")), ALPHA))),
        ("alpha_i >= 0 for all i given that x > 0", Logic(
            "implies", Compare(">", X, number("0")), ForAll(("i",), None, ALPHA))),
    ],
)  # fmt: skip
def test_for_all(text: str, tree: Expression) -> None:
    assert parse(text) == tree


def test_both_positions_stay_below_the_bound() -> None:
    tree = parse("phi(s) != phi(t) for all s != t < T")
    assert isinstance(tree, ForAll)
    assert tree.indices == ("s", "t")
    small = Name("t")
    apart = Logic("and", Compare("!=", S, small), Compare("<", S, T))
    assert tree.condition == Logic("and", apart, Compare("<", small, T))


def test_a_declared_name_is_never_bound_further_right() -> None:
    text = "k_i^T k_j = 0 for all i != j"
    assert parse(text, names={"j"}) == ForAll(("i",), Compare("!=", INDEX, J), PAIR)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("sum(x)", Call("sum", (X,))),
        ("sum(alpha_i, i)", Call("sum", (Name("alpha_i"), INDEX))),
        ("sum(alpha_i, i != a)", Call("sum", (Name("alpha_i"), Compare("!=", INDEX, A)))),
        ("sum(alpha_i, i != a, b)", Call("sum", (Name("alpha_i"), Logic(
            "and", Compare("!=", INDEX, A), Compare("!=", INDEX, B))))),
        ("max(alpha_i, i where i = a or i = b)", Call("max", (Name("alpha_i"), Logic(
            "or", Compare("=", INDEX, A), Compare("=", INDEX, B))))),
        ("max(x, 0)", Call("max", (X, number("0")))),
        ("E(x given y > 0)", Call("E", (X,), Compare(">", Y, number("0")))),
        ("std(x given that y > 0)", Call("std", (X,), Compare(">", Y, number("0")))),
        ("P(x < 1 given y > 0)", Call("P", (Compare("<", X, number("1")),),
                                      Compare(">", Y, number("0")))),
        ("P(alpha_i >= 0 for all i)", Call("P", (ForAll(("i",), None, ALPHA),))),
        ("cov(x, y given a = b)", Call("cov", (X, Y), Compare("=", A, B))),
        ("mass(a, b, c)", Call("mass", (A, B, C))),
    ],
)  # fmt: skip
def test_sums_and_statistics(text: str, tree: Expression) -> None:
    assert parse_value(text) == tree


@pytest.mark.parametrize(
    "text",
    [
        "c ≈ (v_a+v_b)/2 within 0.02",
        "f(P X) = P f(X)",
        "phi(s) != phi(t) for all s != t < T",
        "std(alpha_a) <= 0.05",
        "P(||c - (v_a+v_b)/2|| <= 0.1) >= 0.95",
        "k_i^T k_j = 0 for all i != j",
        "alpha_i ≈ 0 for all i != a, b",
        "alpha_a >= 0.99",
        "weights(β k_a)[a] >= 1 - (n - 1) exp(-β)",
        "E(‖c - v_a‖²) <= E(‖c - v_b‖²) given that ‖k_a‖ > ‖k_b‖",
    ],
)
def test_claims_as_people_write_them_survive_printing(text: str) -> None:
    tree = parse(text, functions=DECLARED)
    assert parse(show(tree), functions=DECLARED) == tree
    assert parse(show(tree, "unicode"), functions=DECLARED) == tree


def test_columns_point_into_the_text_as_it_was_written() -> None:
    text = "α₁ ≤  ‖x‖ ‖y‖"
    for node in walk(parse(text)):
        if isinstance(node, Name) and node.text in "xy":
            assert text[node.column - 1] == node.text
    assert [token.column for token in walk(parse(text))] == [4, 1, 11, 7, 8, 11, 12]


def test_columns_do_not_count_when_formulas_are_compared() -> None:
    assert parse("a=b") == parse("  a  =  b")


@pytest.mark.parametrize(
    ("written", "name"), [("α", "alpha"), ("μ_a", "mu_a"), ("k_{a}", "k_a"), (" W_Q ", "W_Q")]
)
def test_names_have_one_spelling(written: str, name: str) -> None:
    assert canonical_name(written) == name


def test_arities_are_read_from_the_forms() -> None:
    assert (FUNCTIONS["concat"].least, FUNCTIONS["mass"].least, FUNCTIONS["norm"].most) == (2, 1, 2)


def test_every_node_knows_its_field_and_survives_a_pipe_with_it() -> None:
    field = ("let", "f(X)")
    tree = parse(
        "norm(x_i - 1/2) ≈ 0 within 0.1 for all i != a, b given that y in {1, 2}", field=field
    )
    again = pickle.loads(pickle.dumps(tree))
    assert again == tree
    assert [node.position for node in walk(again)] == [node.position for node in walk(tree)]
    assert all(node.position.field == field and node.column for node in walk(again))


def test_an_error_about_a_part_knows_where_the_part_stands() -> None:
    tree = parse_value("x + y", field=("query",))
    error = tree.error("cannot be added")
    assert (error.field, error.column) == (("query",), 3)
    inner = FormulaError("formula", "too long")
    assert (tree.locate(inner).field, tree.locate(inner).column) == (("query",), 3)
    assert tree.locate(error) is error
    for broken in ("x +", "x § 1", "(x"):
        with pytest.raises(FormulaError) as refusal:
            parse(broken, field=("expect", 1))
        assert refusal.value.field == ("expect", 1)
