"""Random formula trees, of every kind of node that the language can write."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Entry,
    Exists,
    Expression,
    ForAll,
    Limit,
    Logic,
    Name,
    Number,
    Unary,
    children,
)

DECLARED = {"f": 1, "g": (1, 2)}
"""The functions that the trees call besides the built-in ones."""

NAMES = [
    "x",
    "y",
    "c",
    "q",
    "a",
    "b",
    "i",
    "j",
    "s",
    "t",
    "n",
    "d",
    "T",
    "Tq",
    "T_1",
    "P",
    "E",
    "phi",
    "Phi",
    "e",
    "pi",
    "infinity",
    "beta",
    "beta2",
    "alpha_a",
    "alpha_i",
    "v_j",
    "k_a",
    "k_1",
    "x_12",
    "W_Q",
    "W_Q_1",
    "mu_a",
    "Sigma_a",
    "k_alpha",
    "epsilon",
    "lambda",
    "alphabet",
]
INDICES = ("i", "j", "s", "t", "a", "beta", "i1")

names = st.sampled_from(NAMES).map(Name)
numbers = st.one_of(
    st.integers(0, 12).map(lambda whole: Number(Fraction(whole))),
    st.builds(
        lambda digits, power: Number(Fraction(digits) * Fraction(10) ** power),
        st.integers(0, 10**18),
        st.integers(-380, 380),
    ),
    st.builds(
        lambda digits, power: Number(Fraction(digits, 10**power)),
        st.integers(0, 10**6),
        st.integers(0, 8),
    ),
)
relations = st.sampled_from(["<", "<=", ">", ">=", "=", "!="])
moving = st.sampled_from([("", "infinity"), ("beta", "infinity"), ("n", "infinity"), ("x", "0")])


def size_and_depth(tree: Expression) -> tuple[int, int]:
    """Return how many nodes a tree has and on how many levels."""
    below = [size_and_depth(child) for child in children(tree)]
    return 1 + sum(size for size, _ in below), 1 + max((depth for _, depth in below), default=0)


@st.composite
def values(draw: st.DrawFn, depth: int = 3) -> Expression:
    """Draw a value."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.one_of(names, numbers))
    below = values(depth - 1)
    kind = draw(st.sampled_from(["binary", "binary", "unary", "entry", "call", "over", "chance"]))
    if kind == "binary":
        return Binary(draw(st.sampled_from(list("+-*/^"))), draw(below), draw(below))
    if kind == "unary":
        return Unary(draw(st.sampled_from(["-", "T"])), draw(below))
    if kind == "entry":
        base = draw(below.filter(lambda node: not isinstance(node, Number)))
        return Entry(base, tuple(draw(st.lists(below, min_size=1, max_size=2))))
    if kind == "call":
        return draw(_calls(below))
    if kind == "over":
        return draw(_binders(depth - 1))
    return draw(_statistics(depth - 1))


@st.composite
def statements(draw: st.DrawFn, depth: int = 3) -> Expression:
    """Draw a statement."""
    below = values(max(depth - 1, 0))
    kind = draw(st.sampled_from(["compare", "close", "logic", "not", "all", "predicate"]))
    if depth <= 1 or kind == "compare":
        return Compare(draw(relations), draw(below), draw(below))
    if kind == "close":
        return Compare("~", draw(below), draw(below), draw(st.none() | below))
    if kind == "predicate":
        return Call(draw(st.sampled_from(["hull", "copyable"])), (draw(below),))
    inner = statements(depth - 1)
    if kind == "logic":
        operator = draw(st.sampled_from(["and", "or", "implies"]))
        return Logic(operator, draw(inner), draw(inner))
    if kind == "not":
        return Unary("not", draw(inner))
    indices = draw(st.lists(st.sampled_from(INDICES), min_size=1, max_size=2, unique=True))
    listed = st.sampled_from(["a", "b", "j"]).map(
        lambda other: Compare("!=", Name(indices[0]), Name(other))
    )
    pair = st.builds(lambda one, two: Logic("and", one, two), listed, listed)
    condition = draw(st.one_of(st.none(), listed, pair, inner))
    return ForAll(tuple(indices), condition, draw(inner))


@st.composite
def wider_statements(draw: st.DrawFn, depth: int = 3) -> Expression:
    """Draw a statement that no arithmetic evaluates: a limit, an existence, a ≫, or any other."""
    below = values(max(depth - 1, 0))
    kind = draw(st.sampled_from(["limit", "much larger", "exists", "plain", "all", "logic"]))
    if kind == "limit":
        return Limit(draw(below), draw(below), *draw(moving))
    if kind == "much larger":
        return Compare(">>", draw(below), draw(below))
    if depth <= 1 or kind == "plain":
        return draw(statements(depth))
    inner = wider_statements(depth - 1)
    if kind == "all":
        return ForAll(("i",), None, draw(inner))
    if kind == "logic":
        return Logic(draw(st.sampled_from(["and", "or", "implies"])), draw(inner), draw(inner))
    kind = draw(st.sampled_from(["matrix", "rotation", "vector", "number", "position"]))
    condition = draw(st.none() | statements(1)) if kind == "position" else None
    names = draw(st.lists(st.sampled_from(["R", "s", "t", "beta"]), min_size=1, unique=True))
    return Exists(kind, tuple(names), condition, draw(inner))


def _calls(below: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    one = st.sampled_from(["exp", "sqrt", "abs", "norm", "softmax", "phi", "Phi", "f", "g", "max"])
    two = st.sampled_from(["norm", "phi", "dot", "mass", "g"])
    return st.one_of(
        st.builds(lambda name, x: Call(name, (x,)), one, below),
        st.builds(lambda name, x, y: Call(name, (x, y)), two, below, below),
        st.builds(
            lambda name, x, y: Call(name, (x, y)), st.sampled_from(["max", "min"]), below, below
        ),
    )


@st.composite
def _binders(draw: st.DrawFn, depth: int) -> Expression:
    function = draw(st.sampled_from(["sum", "prod", "max", "min"]))
    body = draw(values(depth))
    index = Name(draw(st.sampled_from(INDICES)))
    if draw(st.booleans()):
        return Call(function, (body, index))
    condition: Expression = Compare(draw(relations), index, draw(values(0)))
    if draw(st.booleans()):
        operator = draw(st.sampled_from(["and", "or", "implies"]))
        condition = Logic(operator, condition, draw(statements(max(depth, 1))))
    if draw(st.integers(0, 4)) == 0:
        condition = Unary("not", condition)
    return Call(function, (body, condition))


@st.composite
def _statistics(draw: st.DrawFn, depth: int) -> Expression:
    function = draw(st.sampled_from(["E", "P", "var", "std", "cov", "quantile"]))
    below = values(depth)
    if function == "P":
        arguments: tuple[Expression, ...] = (draw(statements(max(depth, 1))),)
    elif function in ("cov", "quantile"):
        arguments = (draw(below), draw(below))
    else:
        arguments = (draw(below),)
    return Call(function, arguments, draw(st.none() | statements(max(depth, 1))))
