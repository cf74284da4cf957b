"""The functions of the formula language: one entry each, with all that is known of it.

An entry says how the function is written, what it gives in words, and what it means in three
arithmetics: float64 over all draws at once (`floats`), balls for proofs (`balls`), and SymPy's
letters for identities (`letters`). Where there is no meaning the entry says why (`Missing`).
It also says how the function is typeset, and which permutations pass through it.

The parser, the evaluators, the algebra, the typesetting, the documentation and the error
messages all read this table: a new function is one `_define` here, and its test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property, wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np
from flint import arb, arb_mat
from scipy.special import expit, logsumexp, ndtr

from heedful.attention.hull import certify
from heedful.attention.operation import softmax as softmax_of
from heedful.claims import balls
from heedful.claims.balls import Ball, Enclosure, NotEnclosed, NoValue, each, flatten, inner, lift
from heedful.claims.values import (
    Kind,
    NoValueError,
    Truth,
    Value,
    add,
    constant,
    formal_size,
    length,
    multiply,
    not_linear,
    refusal,
    scalar,
    transpose,
    whole,
)

if TYPE_CHECKING:
    from heedful.claims.evaluate.ball import BallEvaluator
    from heedful.claims.evaluate.float import Evaluator
    from heedful.claims.evaluate.symbolic import Letters
    from heedful.claims.language.tree import Call

FunctionKind: TypeAlias = Literal["value", "statistic", "binder", "predicate"]
"""What a call gives: a value; a number over all draws (takes `given`); a value over every
value of an index; or a statement that is true or false by itself."""

Takes: TypeAlias = Literal["values", "sizes", "members", "event"]
"""What a meaning is called with: values of its arithmetic; whole numbers; positions of named
members (a, b, j) from 0; an event. Statistics get the evaluator and the call itself."""

Passing: TypeAlias = Literal["", "entries", "rows", "whole rows"]
"""Which permutations pass through a function of a matrix: f(L a R) = L f(a) R because it acts on
single entries, or on rows whatever their order; or only f(L a) = L f(a); or none."""

Sign: TypeAlias = Literal["positive", "nonnegative", "unknown"]

Arity: TypeAlias = int | tuple[int, int]
"""How many arguments: exactly, or from … to …"""

MANY = 16
"""The most arguments of a function that takes as many as one likes."""


class NotSymbolic(Exception):  # noqa: N818 - it is an answer, not an error
    """The formula is outside what is built in letters."""


@dataclass(frozen=True, slots=True)
class Missing:
    """The statement that a function has no meaning in some arithmetic."""

    why: str


NONE = Missing("no identity is looked for through it")
NOT_FINITE = Missing("its −∞ is no number of algebra")
BY_CERTIFICATE = Missing("the convex hull is decided by a certificate of its own")

Meaning: TypeAlias = Callable[..., Any] | Missing


@dataclass(frozen=True, kw_only=True)
class Function:
    """One function that formulas may call."""

    written: str
    """How it is written, one form for each number of arguments: "norm(x); norm(x, p)"."""
    says: str
    """What it comes to, in a line."""
    floats: Meaning
    """In float64, over all draws. A binder gets an array and the axis to fold."""
    balls: Meaning
    """In ball arithmetic. A binder gets the list of balls to fold."""
    letters: Meaning
    """In SymPy, whose module is the first argument. A binder gets the list of what to fold."""
    kind: FunctionKind = "value"
    takes: Takes = "values"
    in_world: bool = False
    """Whether it depends on the setting too: its meanings get the evaluator first."""
    linear: bool = False
    """Whether it is determined for combinations of arbitrary values v_i."""
    passing: Passing = ""
    total: bool = False
    """Whether it has a value for all arguments; what is not said to have one may lack it."""
    value_sign: Sign = "unknown"
    """What is known of the sign of its value, whatever the arguments are."""
    empty: int | None = None
    """What a binder over nothing comes to; None: it has no value."""
    of_two: bool = False
    """Whether a binder also takes two plain values: max(x, y)."""
    also_name: bool = False
    """Whether its name may also stand alone for a value: P X, X + Phi."""
    tex: str = ""
    r"""Its name in TeX (`\exp`), or a template in which #1 is the first argument and #(1) the
    same in brackets unless it is a product; nothing for \operatorname."""

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """How it is written, one for each number of arguments."""
        return tuple(self.written.split("; "))

    @cached_property
    def name(self) -> str:
        """The name by which formulas call it."""
        return self.written.partition("(")[0]

    @cached_property
    def least(self) -> int:
        """The smallest number of arguments; dots stand for none or more."""
        return min(form.count(",") + 1 for form in self.forms) - int("..." in self.written)

    @cached_property
    def most(self) -> int:
        """The largest number of arguments."""
        return MANY if "..." in self.written else max(form.count(",") + 1 for form in self.forms)

    @property
    def arity(self) -> str:
        """The number of arguments in words."""
        if self.least == self.most:
            return f"{self.least} argument{'s' if self.least != 1 else ''}"
        if self.most >= MANY:
            return f"{self.least} or more arguments"
        between = "or" if self.most == self.least + 1 else "to"
        return f"{self.least} {between} {self.most} arguments"

    def in_floats(self, *arguments: Any) -> Any:
        """Apply the meaning in float64."""
        if isinstance(self.floats, Missing):
            raise refusal(f"{self.name} is not available here: {self.floats.why}")
        return self.floats(*arguments)

    def in_balls(self, *arguments: Any) -> Any:
        """Apply the meaning in balls."""
        if isinstance(self.balls, Missing):
            raise NotEnclosed(f"the function {self.name}: {self.balls.why}")
        return self.balls(*arguments)

    def in_letters(self, *arguments: Any) -> Any:
        """Apply the meaning in letters."""
        if isinstance(self.letters, Missing):
            raise NotSymbolic(f"the function {self.name}: {self.letters.why}")
        return self.letters(*arguments)


_F = TypeVar("_F", bound=Callable[..., Any])
_table: dict[str, Function] = {}

FUNCTIONS: Mapping[str, Function] = MappingProxyType(_table)
"""Every built-in function by name."""


def declared(name: str, arity: Arity) -> Function:
    """Return the entry of a function that a sheet defines; it is written out before it is used."""
    least, most = (arity, arity) if isinstance(arity, int) else arity
    names = [f"x{place + 1}" for place in range(most)] if most > 1 else ["x"]
    forms = [f"{name}({', '.join(names[:count])})" for count in range(least, most + 1)]
    expanded = Missing("a sheet defines it")
    return Function(
        written="; ".join(reversed(forms)),
        says="defined by the sheet",
        floats=expanded,
        balls=expanded,
        letters=expanded,
    )


def _define(
    written: str, says: str, floats: Meaning, balls: Meaning, letters: Meaning, **fields: Any
) -> None:
    """Enter a function into the table; the docstrings of `Function` say what each field means."""
    function = Function(
        written=written, says=says, floats=floats, balls=balls, letters=letters, **fields
    )
    _table[function.name] = function


def _function(
    written: str, says: str, balls: Meaning, letters: Meaning, **fields: Any
) -> Callable[[_F], _F]:
    """Enter a function into the table by its meaning in float64, which stands below."""

    def enter(floats: _F) -> _F:
        _define(written, says, floats, balls, letters, **fields)
        return floats

    return enter


# What many entries share ---------------------------------------------------------------------


def _entrywise(
    written: str,
    says: str,
    floats: Callable[[Any], Any],
    of_ball: Callable[[Any], Any],
    in_sympy: str | Missing | Callable[[Any, Any], Any],
    tex: str = "",
    **fields: Any,
) -> None:
    """Define a function of single entries: of an array, of an arb or a ball, in SymPy by name."""

    def on_values(x: Value) -> Value:
        with np.errstate(all="ignore"):
            return Value(floats(x.array), x.kind)

    def on_letters(sympy: Any, x: Any) -> Any:
        if isinstance(x, sympy.MatrixBase):
            raise NotSymbolic("a function of every entry")
        return in_sympy(sympy, x) if callable(in_sympy) else getattr(sympy, str(in_sympy))(x)

    # exp speaks of every β of a ball's span at once; the others need its flat hull.
    lifted = of_ball if of_ball is balls.exponential else balls.entrywise(of_ball)
    _define(
        written,
        says,
        on_values,
        lambda x: each(x, lifted),
        in_sympy if isinstance(in_sympy, Missing) else on_letters,
        passing="entries",
        tex=tex,
        **fields,
    )


def _constant(written: str, says: str, array: Callable[..., Any], **fields: Any) -> None:
    """Define a constant array of given sizes; its entries are exact in every arithmetic."""

    @cache  # every world needs the same few; nobody changes entries in place
    def in_balls(*sizes: int) -> Enclosure:
        return lift(array(*sizes))

    def in_letters(sympy: Any, *sizes: int) -> Any:
        return sympy.Matrix(array(*sizes).astype(int))

    _define(
        written,
        says,
        floats=lambda *sizes: constant(array(*sizes)),
        takes="sizes",
        **{"balls": in_balls, "letters": in_letters, **fields},
    )


def _number(ball: Any) -> Enclosure:
    """Return an arb or a ball as the enclosure of a scalar."""
    return Enclosure(ball if isinstance(ball, Ball) else Ball(ball), "scalar")


def _as(x: Value, kind: Kind) -> Value:
    if x.kind == kind:
        return x
    if {x.kind, kind} == {"vector", "row"}:
        return transpose(x)
    raise refusal(f"has a {x.describe()}", f"a {kind} was expected")


def _square(x: Value) -> Value:
    if x.kind != "matrix" or x.shape[0] != x.shape[1]:
        raise refusal(f"has a {x.describe()}", "a square matrix")
    return x


def _steps(to: Callable[[float], float]) -> Callable[[Any], Any]:
    """Lift a rounding to balls: exact where the whole ball rounds to one number."""

    def apply(x: Any) -> Any:
        low = to(math.nextafter(float(x.lower()), -math.inf))
        high = to(math.nextafter(float(x.upper()), math.inf))
        if low != high:
            raise NotEnclosed("a rounding that the ball does not decide")
        return arb(low)

    return apply


def _sign_of(x: Any) -> Any:
    if x > 0 or x < 0 or x.is_zero():
        return arb(1 if x > 0 else -1 if x < 0 else 0)
    raise NotEnclosed("a sign that the ball does not decide")


def _floor_of(x: Any) -> Any:
    low, high = x.lower().floor(), x.upper().floor()
    if low == high:
        return low
    raise NotEnclosed("a floor that the ball does not decide")


# Functions of single entries -----------------------------------------------------------------


def _logarithm(x: Any) -> Any:
    if x <= 0:
        raise NoValue("the logarithm of a number that is not above 0")
    return x.log()


def _square_root(x: Any) -> Any:
    if x < 0:
        raise NoValue("the square root of a negative number")
    return x.sqrt()


def _rising(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Let a function that only rises be enclosed by its values at both ends of a ball."""

    @wraps(function)
    def apply(x: Any) -> Any:
        if isinstance(x, arb):
            return function(x.lower()).union(function(x.upper()))
        return function(x)  # a series

    return apply


@_rising
def _sigmoid(x: Any) -> Any:
    return arb(1) / (arb(1) + (-x).exp())


@_rising
def _tanh(x: Any) -> Any:
    return x.tanh() if isinstance(x, arb) else arb(1) - arb(2) / ((arb(2) * x).exp() + arb(1))


def _normal(x: Any) -> Any:
    return (arb(1) + (x / arb(2).sqrt()).erf()) / 2


_entrywise(
    "exp(x)",
    "e to the power x, entry by entry",
    np.exp,
    balls.exponential,
    "exp",
    r"\exp",
    total=True,
    value_sign="positive",
)
_entrywise("ln(x)", "natural logarithm, entry by entry", np.log, _logarithm, "log", r"\ln")
_entrywise("log(x)", "natural logarithm, the same as ln", np.log, _logarithm, "log", r"\log")
_entrywise(
    "sqrt(x)", "square root, entry by entry; also √x", np.sqrt, _square_root, "sqrt", r"\sqrt{#1}"
)
_entrywise(
    "abs(x)",
    "absolute value, entry by entry; also |x|",
    np.abs,
    abs,
    "Abs",
    r"\left|#1\right|",
    total=True,
    value_sign="nonnegative",
)
_entrywise("sin(x)", "sine of an angle in radians", np.sin, arb.sin, "sin", r"\sin", total=True)
_entrywise("cos(x)", "cosine of an angle in radians", np.cos, arb.cos, "cos", r"\cos", total=True)
_entrywise(
    "tanh(x)", "hyperbolic tangent, entry by entry", np.tanh, _tanh, "tanh", r"\tanh", total=True
)
_entrywise(
    "sigmoid(x)",
    "1 / (1 + exp(-x)), entry by entry",
    expit,
    _sigmoid,
    NONE,
    total=True,
    value_sign="positive",
)
_entrywise(
    "relu(x)",
    "the larger of x and 0, entry by entry",
    lambda array: np.maximum(array, 0.0),
    lambda x: x.max(arb(0)),
    lambda sympy, x: (x + sympy.Abs(x)) / 2,
    total=True,
    value_sign="nonnegative",
)
_entrywise("sign(x)", "-1, 0 or 1, entry by entry", np.sign, _sign_of, NONE, total=True)
_entrywise(
    "floor(x)", "the largest whole number not above x", np.floor, _floor_of, NONE, total=True
)


# Softmax, norms and distributions ------------------------------------------------------------


def _softmax(x: Value) -> Value:
    return Value(softmax_of(x.array), x.kind)


def _softmax_balls(x: Enclosure) -> Enclosure:
    if x.kind == "matrix":
        return Enclosure([balls.softmax(row) for row in x.entries], x.kind)
    return Enclosure(balls.softmax(x.entries), x.kind)


def _softmax_letters(sympy: Any, logits: Any) -> Any:
    rows, columns = logits.shape
    if columns == 1:
        powers = [sympy.exp(entry) for entry in logits]
        return sympy.Matrix(powers) / sum(powers)
    made = sympy.zeros(rows, columns)
    for row in range(rows):
        powers = [sympy.exp(entry) for entry in logits[row, :]]
        made[row, :] = sympy.Matrix([powers]) / sum(powers)
    return made


for _written, _says in (
    ("softmax(x)", "exp(x) scaled to sum to 1; of a matrix, each row"),
    ("softmax_rows(A)", "softmax of each row of a matrix"),
):
    _define(
        _written,
        _says,
        _softmax,
        _softmax_balls,
        _softmax_letters,
        passing="rows",
        total=True,
        value_sign="positive",
    )


def _norm_balls(x: Enclosure, p: Enclosure | None = None) -> Enclosure:
    order = 2 if p is None else p.entries.flat()
    if order == 2 and not x.formal:
        return _number(balls.norm(list(flatten(x))))
    flat = [entry.flat() for entry in flatten(x)]
    if x.formal:
        return _number(balls.formal_size(flat))
    if order == 1:
        return _number(sum((abs(entry) for entry in flat), arb(0)))
    raise NotEnclosed("a norm of another order")


def _norm_letters(sympy: Any, x: Any, p: Any = None) -> Any:
    if p is not None:
        raise NotSymbolic("a norm of another order")
    return sympy.sqrt(sum(entry**2 for entry in x))


@_function(
    "norm(x); norm(x, p)",
    "Euclidean (Frobenius) norm, or the p-norm; also ‖x‖, ‖x‖_p",
    _norm_balls,
    _norm_letters,
    linear=True,
    total=True,
    value_sign="nonnegative",
    tex=r"\left\|#1\right\|",
)
def _norm(x: Value, p: Value | None = None) -> Value:
    """‖x‖, or the p-norm; Frobenius for matrices.

    Of a combination of arbitrary values it is the largest norm that values of norm and mutual
    distance at most 1 can give it.
    """
    flat = x.array.reshape(len(x.array), -1)
    order = 2.0 if p is None else float(p.array.flat[0])
    if x.formal and (order != 2.0 or x.kind == "matrix"):
        raise not_linear("a norm of a matrix or of another order")
    if x.formal:
        return Value(formal_size(flat), "scalar")
    if order == 2.0:
        size = length(flat)
    elif np.isinf(order):
        size = np.abs(flat).max(axis=1)
    elif order >= 1.0:
        size = (np.abs(flat) ** order).sum(axis=1) ** (1.0 / order)
    else:
        raise refusal(f"norm with p = {order:g}", "p ≥ 1")
    return Value(size, "scalar")


def _entropy_balls(p: Enclosure) -> Enclosure:
    return _number(balls.total([Ball(balls.entropy_term(entry.flat())) for entry in p.entries]))


def _surely(vector: Any) -> list[Any]:
    """Return entries that are surely above 0; a sum of p ln p has no other meaning in letters."""
    found = list(vector)
    if vector.shape[1] != 1 or not all(entry.is_positive for entry in found):
        raise NotSymbolic("a logarithm of what may be 0")
    return found


@_function(
    "entropy(p)",
    "-Σ p ln p of a vector, in nats",
    _entropy_balls,
    lambda sympy, p: -sum(entry * sympy.log(entry) for entry in _surely(p)),
)
def _entropy(p: Value) -> Value:
    with np.errstate(all="ignore"):
        terms = np.where(p.array > 0, p.array * np.log(np.where(p.array > 0, p.array, 1.0)), 0.0)
    return Value(-terms.sum(axis=-1), "scalar" if p.kind != "matrix" else "vector")


_define(
    "mean(x)",
    "the average of the entries of a vector",
    lambda x: Value(x.array.reshape(len(x.array), -1).mean(axis=1), "scalar"),
    lambda x: _number(
        balls.total(entries := list(flatten(x))) * Ball.exact(Fraction(1, len(entries)))
    ),
    lambda sympy, x: sum(x) / len(x),
    total=True,
)


def _argmax_balls(x: Enclosure) -> Enclosure:
    entries = [entry.flat() for entry in flatten(x)]
    for place, entry in enumerate(entries):
        before, after = entries[:place], entries[place + 1 :]
        if all(entry > other for other in before) and all(entry >= other for other in after):
            return balls.scalar(place + 1)
    raise NotEnclosed("an order that the balls do not decide")


_define(
    "argmax(x)",
    "which entry is largest, counted from 1",
    lambda x: Value(np.argmax(x.array, axis=-1).astype(float) + 1.0, "scalar"),
    _argmax_balls,
    NONE,
    total=True,
)


# Matrices and vectors ------------------------------------------------------------------------

_define(
    "transpose(A)",
    "the transpose; also A^T",
    transpose,
    balls.transpose,
    lambda sympy, x: x.T,
    linear=True,
    total=True,
)
_define(
    "trace(A)",
    "the sum of the diagonal",
    lambda x: Value(np.trace(_square(x).array, axis1=1, axis2=2), "scalar"),
    lambda x: _number(balls.total([row[place] for place, row in enumerate(x.entries)])),
    lambda sympy, x: x.trace(),
    total=True,
)


def _rank_balls(x: Enclosure) -> Enclosure:
    """Return the rank by elimination without division; every pivot must be surely zero or not."""
    rows = [[entry.flat() for entry in row] for row in x.entries]
    found = 0
    for place in range(len(rows[0])):
        column = [row[place] for row in rows[found:]]
        pivot = next((r for r, entry in enumerate(column) if entry > 0 or entry < 0), None)
        if pivot is None and not all(entry.is_zero() for entry in column):
            raise NotEnclosed("a rank that the balls do not decide")
        if pivot is None:
            continue
        rows[found], rows[found + pivot] = rows[found + pivot], rows[found]
        top = rows[found]
        rows[found + 1 :] = [
            [a * top[place] - b * row[place] for a, b in zip(row, top, strict=True)]
            for row in rows[found + 1 :]
        ]
        for row in rows[found + 1 :]:
            row[place] = arb(0)
        found += 1
    return balls.scalar(found)


_define(
    "rank(A)",
    "the rank of a matrix",
    lambda x: Value(np.linalg.matrix_rank(_as(x, "matrix").array).astype(float), "scalar"),
    _rank_balls,
    NONE,
    total=True,
)
_define(
    "det(A)",
    "the determinant of a matrix",
    lambda x: Value(np.linalg.det(_square(x).array), "scalar"),
    lambda x: _number(_arb_mat(x).det()),
    lambda sympy, x: x.det(),
    tex=r"\det",
    total=True,
)


def _arb_mat(x: Enclosure) -> Any:
    return arb_mat([[entry.flat() for entry in row] for row in x.entries])


def _inverse_balls(x: Enclosure) -> Enclosure:
    matrix = _arb_mat(x)
    try:
        inverse = matrix.inv()
    except ZeroDivisionError:
        if matrix.det().is_zero():
            raise NoValue("the inverse of a singular matrix") from None
        raise NotEnclosed("an inverse of what may be singular") from None
    return Enclosure([[Ball(entry) for entry in row] for row in inverse.tolist()], "matrix")


@_function(
    "inv(A)",
    "the inverse of a matrix; also A^-1",
    _inverse_balls,
    Missing("an inverse in letters would forget that it may not exist"),
)
def _inverse(x: Value) -> Value:
    try:
        return Value(np.linalg.inv(_square(x).array), "matrix")
    except np.linalg.LinAlgError:
        raise NoValueError("formula", "inverts a singular matrix") from None


def _diagonal_balls(x: Enclosure) -> Enclosure:
    if x.kind == "matrix":
        return Enclosure([row[place] for place, row in enumerate(x.entries)], "vector")
    places = range(len(x.entries))
    rows = [[x.entries[i] if i == j else balls.ZERO for j in places] for i in places]
    return Enclosure(rows, "matrix")


@_function(
    "diag(x)",
    "the matrix with x on its diagonal; of a matrix, its diagonal",
    _diagonal_balls,
    lambda sympy, x: x.diagonal().T if x.shape[1] > 1 else sympy.diag(*x),
    total=True,
)
def _diagonal(x: Value) -> Value:
    if x.kind == "matrix":
        return Value(np.diagonal(x.array, axis1=1, axis2=2).copy(), "vector")
    return Value(x.array[:, :, None] * np.eye(x.shape[0])[None], "matrix")


_define(
    "outer(x, y)",
    "the matrix x y^T",
    lambda x, y: multiply(_as(x, "vector"), _as(y, "row")),
    lambda x, y: balls.multiply(Enclosure(x.entries, "vector"), Enclosure(y.entries, "row")),
    lambda sympy, x, y: x * y.T,
    total=True,
)
_define(
    "dot(x, y)",
    "the inner product x^T y",
    lambda x, y: multiply(_as(x, "row"), _as(y, "vector")),
    lambda x, y: _number(inner(x.entries, y.entries)),
    lambda sympy, x, y: (x.T * y)[0, 0],
    total=True,
)


@_function(
    "hadamard(x, y)",
    "the product entry by entry",
    lambda x, y: Enclosure(balls.paired(x.entries, y.entries, lambda a, b: a * b), x.kind),
    lambda sympy, x, y: x.multiply_elementwise(y),
    total=True,
)
def _hadamard(x: Value, y: Value) -> Value:
    if x.kind != y.kind or x.shape != y.shape:
        raise refusal(f"hadamard of a {x.describe()} and a {y.describe()}", "the same shape")
    return Value(x.array * y.array, x.kind)


_constant(
    "ones(n); ones(m, n)",
    "a vector, or a matrix, of ones",
    lambda *sizes: np.ones(sizes),
    total=True,
)
_constant(
    "zeros(n); zeros(m, n)",
    "a vector, or a matrix, of zeros",
    lambda *sizes: np.zeros(sizes),
    total=True,
)
_constant("eye(n)", "the n by n identity matrix", lambda size: np.eye(size), total=True)


def _unit_vector(position: int, size: int) -> Any:
    if not 1 <= position <= size:
        raise refusal(f"onehot({position}, {size})", "1 ≤ position ≤ size")
    return np.eye(size)[position - 1]


_constant(
    "onehot(i, n)",
    "the unit vector of length n with a 1 at entry i, from 1",
    _unit_vector,
    total=True,
)


def _together(parts: Sequence[Value]) -> list[Any]:
    """Return the arrays of some values, each with as many draws as the one that has most."""
    draws = max(len(part.array) for part in parts)
    return [np.broadcast_to(part.array, (draws, *part.shape)) for part in parts]


@_function(
    "concat(x, y, ...)",
    "vectors joined end to end; matrices side by side",
    lambda *parts: Enclosure([entry for part in parts for entry in flatten(part)], "vector"),
    lambda sympy, *parts: sympy.Matrix(parts),
    total=True,
)
def _concat(*parts: Value) -> Value:
    vectors = [
        Value(part.array[:, None], "vector") if part.kind == "scalar" else _as(part, "vector")
        for part in parts
    ]
    return Value(np.concatenate(_together(vectors), axis=1), "vector")


def _stack(*parts: Value) -> Value:
    if len({part.shape for part in parts}) != 1:
        raise refusal("stack of vectors of different lengths", "one length")
    return Value(np.stack(_together([_as(part, "vector") for part in parts]), axis=1), "matrix")


for _written, _says in (
    ("stack(x, y, ...)", "vectors as the rows of a matrix; matrices one above another"),
    ("rows(x, y, ...)", "the matrix with these vectors as its rows"),
):
    _define(
        _written,
        _says,
        _stack,
        lambda *parts: Enclosure([list(part.entries) for part in parts], "matrix"),
        lambda sympy, *parts: sympy.Matrix.vstack(*[part.T for part in parts]),
        total=True,
    )


# Attention and positions ---------------------------------------------------------------------


def _weights_balls(
    evaluator: BallEvaluator, query: Enclosure, keys: Enclosure | None = None
) -> Enclosure:
    keys = evaluator.name("k") if keys is None else keys
    logits = [inner(row, query.entries) * evaluator.world.scale for row in keys.entries]
    return Enclosure(balls.softmax(logits), "vector")


def _weights_letters(evaluator: Letters, query: Any, keys: Any = None) -> Any:
    keys = evaluator.world.families["k"] if keys is None else keys
    return _softmax_letters(evaluator.sympy, (keys * query) * evaluator.world.scale)


def read_in_balls(
    evaluator: BallEvaluator, alpha: Enclosure, values: Enclosure | None = None
) -> Enclosure:
    """Return Σ α_i v_i; the coefficients of arbitrary values are the weights themselves."""
    own = evaluator.name("v") if values is None else values
    if values is None and own.formal:
        return Enclosure(alpha.entries, alpha.kind, formal=True)
    return balls.multiply(balls.transpose(own), alpha)


def _attention_balls(evaluator: BallEvaluator, query: Enclosure, *more: Enclosure) -> Enclosure:
    return read_in_balls(evaluator, _weights_balls(evaluator, query, *more[:1]), *more[1:])


def _attention_letters(evaluator: Letters, query: Any, *more: Any) -> Any:
    values = more[1] if len(more) > 1 else evaluator.world.families["v"]
    return values.T * _weights_letters(evaluator, query, *more[:1])


@_function(
    "attention(q); attention(q, K); attention(q, K, V)",
    "what a query reads: Σ α_i v_i",
    _attention_balls,
    _attention_letters,
    in_world=True,
    linear=True,
    total=True,
)
def _attention(evaluator: Evaluator, query: Value, *more: Value) -> Value:
    values = more[1] if len(more) > 1 else evaluator.name("v")
    return multiply(transpose(values), _weights(evaluator, query, *more[:1]))


@_function(
    "weights(q); weights(q, K)",
    "the attention weights α of a query",
    _weights_balls,
    _weights_letters,
    in_world=True,
    linear=True,
    total=True,
    value_sign="positive",
)
def _weights(evaluator: Evaluator, query: Value, keys: Value | None = None) -> Value:
    keys = evaluator.name("k") if keys is None else keys
    if query.kind not in ("vector", "row") or keys.kind != "matrix":
        raise refusal(
            f"attention of a {query.describe()} over {keys.describe()}",
            "a query vector and keys as rows of a matrix",
        )
    if query.shape[0] != keys.shape[1]:
        raise refusal(
            f"attention: the query has dimension {query.shape[0]}",
            f"the keys have dimension {keys.shape[1]}",
        )
    logits = np.matmul(keys.array, query.array[:, :, None])[:, :, 0] * evaluator.world.scale
    return Value(softmax_of(logits), "vector")


def _self_attention_balls(
    evaluator: BallEvaluator, x: Enclosure, *matrices: Enclosure
) -> Enclosure:
    keys, queries, values = (
        balls.multiply(x, balls.transpose(matrices[place])) if len(matrices) > place else x
        for place in range(3)
    )
    logits = balls.multiply(queries, balls.transpose(keys))
    scaled = each(logits, lambda logit: logit * evaluator.world.scale)
    return balls.multiply(_softmax_balls(scaled), values)


@_function(
    "selfattention(X); selfattention(X, K, Q, V)",
    "what every row of X reads from all rows",
    _self_attention_balls,
    NONE,
    in_world=True,
    linear=True,
    total=True,
)
def _self_attention(evaluator: Evaluator, x: Value, *matrices: Value) -> Value:
    keys, queries, values = (
        multiply(x, transpose(matrices[place])) if len(matrices) > place else x
        for place in range(3)
    )
    logits = multiply(multiply(scalar(evaluator.world.scale), queries), transpose(keys))
    return multiply(_softmax(logits), values)


_constant(
    "causal(T)",
    "the mask in which position t sees positions up to t",
    # 0 where position t may see (0 … t), −∞ elsewhere: to be added before softmax.
    lambda length: np.triu(np.full((length, length), -np.inf), k=1),
    letters=NOT_FINITE,
)
_define(
    "mass(i, ...)",
    "the weight on a set of keys: alpha_i + …",
    lambda evaluator, *members: Value(
        np.sum([evaluator.member(evaluator.name("alpha"), i, "alpha").array for i in members], 0),
        "scalar",
    ),
    lambda evaluator, *members: _number(
        balls.total([balls.member(evaluator.name("alpha"), i).entries for i in members])
    ),
    lambda evaluator, *members: sum(evaluator.name("alpha")[i] for i in members),
    takes="members",
    in_world=True,
    total=True,
)


def _tv_balls(p: Enclosure, q: Enclosure) -> Enclosure:
    difference = balls.add(p, balls.negated(q))
    parts = [Ball(abs(entry.flat())) for entry in flatten(difference)]
    return _number(balls.total(parts) * Ball.exact(Fraction(1, 2)))


_define(
    "tv(p, q)",
    "total variation distance: Σ |p - q| / 2",
    lambda p, q: Value(np.abs(add(p, q, -1.0).array).sum(axis=-1) / 2, "scalar"),
    _tv_balls,
    lambda sympy, p, q: sum(map(sympy.Abs, p - q)) / 2,
    total=True,
    value_sign="nonnegative",
)


def _kl_balls(p: Enclosure, q: Enclosure) -> Enclosure:
    """Σ p ln(p/q), as p ln p − p ln q where p may be 0; entries p ≤ 0 count for nothing."""
    pairs = balls.paired(p.entries, q.entries, lambda x, y: (x.flat(), y.flat()))
    total = arb(0)
    for x, y in pairs:
        if x <= 0:
            continue
        if not y > 0:
            raise NotEnclosed("a divergence that may be infinite")
        if x > 0:
            total += x * (x / y).log()
        else:
            total -= balls.entropy_term(x) + x.nonnegative_part() * y.log()
    return _number(total)


@_function(
    "kl(p, q)",
    "Kullback-Leibler divergence: Σ p ln(p / q), in nats",
    _kl_balls,
    lambda sympy, p, q: sum(
        x * (sympy.log(x) - sympy.log(y)) for x, y in zip(_surely(p), _surely(q), strict=True)
    ),
)
def _kl(p: Value, q: Value) -> Value:
    inside = p.array > 0
    if np.any(inside & (q.array <= 0)):
        raise NoValueError("formula", "kl(p, q) is infinite", expected="q > 0 wherever p > 0")
    ratio = np.where(inside, p.array, 1.0) / np.where(inside, q.array, 1.0)
    return Value((np.where(inside, p.array, 0.0) * np.log(ratio)).sum(axis=-1), "scalar")


def _normed_balls(x: Enclosure, *, centred: bool) -> Enclosure:
    def normed(row: list[Ball]) -> list[Ball]:
        mean = balls.total(row) / Ball.exact(len(row)) if centred else balls.ZERO
        apart = [entry - mean for entry in row]
        flat = [entry.flat() for entry in apart]
        size = (sum((part * part for part in flat), arb(0)) / len(row)).nonnegative_part().sqrt()
        return [entry / Ball(size) for entry in apart]

    if x.kind == "matrix":
        return Enclosure([normed(row) for row in x.entries], "matrix")
    return Enclosure(normed(x.entries), x.kind)


@_function(
    "layernorm(x)",
    "x minus its mean, divided by its standard deviation",
    lambda x: _normed_balls(x, centred=True),
    NONE,
    passing="whole rows",
)
def _layernorm(x: Value) -> Value:
    """Centre a vector (or each row) and scale it to variance 1; no constant is added."""
    centred = x.array - x.array.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True))
    if np.any(spread == 0):
        raise NoValueError("formula", "layernorm of a constant vector", expected="some spread")
    return Value(centred / spread, x.kind)


@_function(
    "rmsnorm(x)",
    "x divided by the root of its mean square",
    lambda x: _normed_balls(x, centred=False),
    NONE,
    passing="whole rows",
)
def _rmsnorm(x: Value) -> Value:
    """Scale a vector (or each row) to mean square 1; no constant is added."""
    size = np.sqrt((x.array**2).mean(axis=-1, keepdims=True))
    if np.any(size == 0):
        raise NoValueError("formula", "rmsnorm of the zero vector", expected="another vector")
    return Value(x.array / size, x.kind)


def _phi_balls(evaluator: BallEvaluator, t: Enclosure, given: Enclosure | None = None) -> Enclosure:
    world = evaluator.world
    width = world.width if given is None else balls.whole(given)
    entries = []
    for pair in range((width + 1) // 2):
        angle = t.entries.flat() / arb(world.base) ** (arb(2 * pair) / width)
        entries += [Ball(angle.sin()), Ball(angle.cos())]
    return Enclosure(entries[:width], "vector")


@_function(
    "phi(t); phi(t, d)",
    "the position embedding of position t, of width d",
    _phi_balls,
    NONE,
    in_world=True,
    also_name=True,
    total=True,
)
def _phi(evaluator: Evaluator, t: Value, given: Value | None = None) -> Value:
    """The sinusoidal embedding of position t, which need not be a whole number."""
    if t.kind != "scalar":
        raise refusal(f"phi of a {t.describe()}", "a position")
    width = (evaluator.world.width or 2) if given is None else whole(given, "a width")
    turned = t.array[:, None] / evaluator.world.base ** (np.arange(0, width, 2) / width)
    made = np.empty((len(turned), width))
    made[:, 0::2], made[:, 1::2] = np.sin(turned), np.cos(turned[:, : width // 2])
    return Value(made, "vector")


def _rotate_balls(evaluator: BallEvaluator, x: Enclosure, t: Enclosure) -> Enclosure:
    width = len(x.entries)
    if width % 2:
        raise NotEnclosed("a rotation of an odd vector")
    turned = []
    for even in range(0, width, 2):
        angle = t.entries.flat() / arb(evaluator.world.base) ** (arb(even) / width)
        cosine, sine = Ball(angle.cos()), Ball(angle.sin())
        first, second = x.entries[even : even + 2]
        turned += [first * cosine - second * sine, first * sine + second * cosine]
    return Enclosure(turned, "vector")


@_function(
    "rotate(x, t)",
    "x turned by the rotary angles of position t",
    _rotate_balls,
    NONE,
    in_world=True,
    total=True,
)
def _rotate(evaluator: Evaluator, x: Value, t: Value) -> Value:
    """Rotate pairs (x_1, x_2), (x_3, x_4), … by t·ω: the rotary position of x."""
    width = x.shape[0]
    if x.kind != "vector" or width % 2:
        raise refusal(f"rotate of a {x.describe()}", "an even vector")
    angles = t.array.reshape(-1, 1) / evaluator.world.base ** (np.arange(0, width, 2) / width)
    cosine, sine = np.cos(angles), np.sin(angles)
    even, odd = x.array[:, 0::2], x.array[:, 1::2]
    turned = np.stack((even * cosine - odd * sine, even * sine + odd * cosine), axis=-1)
    return Value(turned.reshape(len(turned), width), "vector")


_entrywise(
    "Phi(x)",
    "the normal distribution function",
    ndtr,
    _normal,
    NONE,
    also_name=True,
    total=True,
)
_define(
    "distance(j)",
    "how far k_j is from the convex hull of the other keys",
    lambda evaluator, member: Value(
        np.asarray([certify(rows, member).margin for rows in evaluator.name("k").array]), "scalar"
    ),
    BY_CERTIFICATE,
    BY_CERTIFICATE,
    takes="members",
    in_world=True,
    total=True,
)


def _half(array: Any) -> Any:
    with np.errstate(over="ignore"):
        return np.asarray(array).astype(np.float16).astype(float)


def _bfloat(array: Any) -> Any:
    """Round to bfloat16 (8 bits of precision, exponents as in float32), ties to even.

    In one step: by way of float32 a number just above a tie would first become the tie.
    """
    numbers = np.asarray(array, dtype=float)
    exponents = np.maximum(np.frexp(numbers)[1] - 1, -126)
    with np.errstate(all="ignore"):
        rounded = np.ldexp(np.rint(np.ldexp(numbers, 7 - exponents)), exponents - 7)
    return np.where(np.abs(rounded) >= 2.0**128, np.copysign(np.inf, numbers), rounded)


_entrywise(
    "round16(x)", "x rounded to float16", _half, _steps(lambda x: float(_half([x])[0])), NONE
)
_entrywise(
    "roundbf16(x)", "x rounded to bfloat16", _bfloat, _steps(lambda x: float(_bfloat([x])[0])), NONE
)


# Statistics over the draws -------------------------------------------------------------------


def _moment(evaluator: Evaluator, call: Call, x: Value, y: Value) -> float:
    """Return E (x − E x)·(y − E y): the covariance, summed over the entries of vectors."""
    weights = evaluator.draw_weights(call.given)
    first, second = (np.broadcast_to(each.array, (len(weights), *each.shape)) for each in (x, y))
    if first.shape != second.shape:
        raise refusal(f"cov of a {x.describe()} and a {y.describe()}", "two of one shape")
    apart = [rows - np.tensordot(weights, rows, axes=(0, 0)) for rows in (first, second)]
    products = (apart[0] * apart[1]).reshape(len(weights), -1).sum(axis=1)
    return float(np.sum(weights * products))


# In balls a statistic is enclosed cell by cell: only an evaluator that has cells knows how.


@_function(
    "E(x)",
    "the expectation over the draws; E(x given y)",
    lambda evaluator, call: evaluator.cells.expectation(call),
    NONE,
    kind="statistic",
    also_name=True,
    tex=r"\mathbb{E}",
    total=True,
)
def _expectation(evaluator: Evaluator, call: Call) -> Value:
    weights = evaluator.draw_weights(call.given)
    x = evaluator.value(call.arguments[0])
    rows = np.broadcast_to(x.array, (len(weights), *x.shape))
    return replace(x, array=np.tensordot(weights, rows, axes=(0, 0))[None])


@_function(
    "P(event)",
    "the probability of a statement; P(event given y)",
    lambda evaluator, call: evaluator.cells.probability(call),
    NONE,
    kind="statistic",
    takes="event",
    also_name=True,
    tex=r"\mathbb{P}",
    total=True,
)
def _probability(evaluator: Evaluator, call: Call) -> Value:
    weights = evaluator.draw_weights(call.given)
    holds = np.broadcast_to(evaluator.truth(call.arguments[0]).holds, weights.shape)
    return scalar(float(np.sum(weights * holds)))


@_function(
    "var(x)",
    "the variance (the sum of all entries' variances)",
    lambda evaluator, call: evaluator.cells.variance(call),
    NONE,
    kind="statistic",
    total=True,
    value_sign="nonnegative",
)
def _variance(evaluator: Evaluator, call: Call) -> Value:
    """The variance of a vector is the trace of its covariance: E‖x − E x‖²."""
    x = evaluator.value(call.arguments[0])
    return scalar(max(0.0, _moment(evaluator, call, x, x)))


_define(
    "std(x)",
    "the square root of the variance",
    lambda evaluator, call: scalar(math.sqrt(_variance(evaluator, call).array.item())),
    lambda evaluator, call: _number(evaluator.cells.variance(call).entries.flat().sqrt()),
    NONE,
    kind="statistic",
    total=True,
    value_sign="nonnegative",
)


@_function(
    "cov(x, y)",
    "the covariance of two values",
    lambda evaluator, call: evaluator.cells.covariance(call),
    NONE,
    kind="statistic",
    total=True,
)
def _covariance(evaluator: Evaluator, call: Call) -> Value:
    x, y = (evaluator.value(argument) for argument in call.arguments)
    return scalar(_moment(evaluator, call, x, y))


@_function(
    "quantile(x, p)",
    "what x stays below with probability p",
    lambda evaluator, call: evaluator.cells.quantile(call),
    NONE,
    kind="statistic",
)
def _quantile(evaluator: Evaluator, call: Call) -> Value:
    weights = evaluator.draw_weights(call.given)
    x, level = (evaluator.value(argument) for argument in call.arguments)
    rows = np.broadcast_to(x.array, (len(weights), *x.shape))
    share = float(level.array.flat[0])
    if rows.ndim != 1 or not 0 <= share <= 1:
        raise refusal(f"quantile of a {x.describe()} at {share:g}", "a scalar and 0 ≤ p ≤ 1")
    order = np.argsort(rows, kind="stable")
    place = min(int(np.searchsorted(np.cumsum(weights[order]), share)), len(rows) - 1)
    return scalar(float(rows[order[place]]))


# Folds over the entries of a value, or over an index -----------------------------------------


def _product(parts: Sequence[Ball]) -> Ball:
    product = balls.ONE
    for factor in parts:
        product = product * factor
    return product


_define(
    "sum(x); sum(x, i)",
    "the sum of the entries, or over an index: sum(alpha_i, i != a)",
    np.sum,
    balls.total,
    lambda sympy, parts: sum(parts[1:], parts[0]),
    kind="binder",
    empty=0,
    linear=True,
    tex=r"\sum_{#2} #(1)",
    total=True,
)
_define(
    "prod(x); prod(x, i)",
    "the product of the entries, or over an index",
    np.prod,
    _product,
    lambda sympy, parts: sympy.prod(parts),
    kind="binder",
    empty=1,
    tex=r"\prod_{#2} #(1)",
    total=True,
)


def _numbers(parts: Sequence[Any]) -> Sequence[Any]:
    """Return parts that are numbers: which of several letters is largest, algebra cannot tell."""
    if any(hasattr(part, "shape") or getattr(part, "free_symbols", ()) for part in parts):
        raise NotSymbolic("the order of letters")
    return parts


_define(
    "max(x); max(x, i)",
    "the largest entry, or over an index; also max(x, y)",
    np.max,
    balls.largest,
    lambda sympy, parts: sympy.Max(*_numbers(parts)),
    kind="binder",
    of_two=True,
    tex=r"\max",
)
_define(
    "min(x); min(x, i)",
    "the smallest entry, or over an index; also min(x, y)",
    np.min,
    balls.smallest,
    lambda sympy, parts: sympy.Min(*_numbers(parts)),
    kind="binder",
    of_two=True,
    tex=r"\min",
)


def _logsumexp_balls(parts: Sequence[Ball]) -> Ball:
    """It grows in every entry, so its ends are those of the entries' ends."""
    flat = [part.flat() for part in parts]
    low, high = (
        sum((end.exp() for end in ends), arb(0)).log()
        for ends in ([entry.lower() for entry in flat], [entry.upper() for entry in flat])
    )
    return Ball(low.union(high))


_define(
    "logsumexp(x); logsumexp(x, i)",
    "ln Σ exp(x): a smooth maximum of the entries, or over an index",
    logsumexp,
    _logsumexp_balls,
    lambda sympy, parts: sympy.log(sum(sympy.exp(part) for part in parts)),
    kind="binder",
    tex=r"\ln \sum_{#2} \exp\left(#1\right)",
    total=True,
)


# Statements about the keys -------------------------------------------------------------------


def _copyable(evaluator: Evaluator, member: int) -> Truth:
    keys = evaluator.name("k").array
    certificates = [certify(rows, member) for rows in keys]
    gaps = []
    for one, rows in zip(certificates, keys, strict=True):
        # Inside up to rounding is not inside: the key may be a vertex by less than float64 can say.
        sure = one.verdict == "outside" or _among(rows, member, one.members)
        gaps.append(-one.margin if one.margin else 1.0 if sure else IN_DOUBT)
    holds = [one.verdict == "outside" for one in certificates]
    return Truth(np.asarray(holds, dtype=bool), np.asarray(gaps))


IN_DOUBT = 1e-12
"""The gap of a statement that fails in float64 and may hold in truth."""


def _among(rows: Any, member: int, members: Any) -> bool:
    """Tell whether a key is exactly a mean of some others, with weights of its own for each."""
    exact = [[balls.decimal_of(float(x)) for x in rows[place]] for place in (*members, member)]
    table = [list(column) for column in zip(*exact, strict=True)]
    table.append([Fraction(1)] * len(exact))
    found = 0
    for place in range(len(members)):
        pivot = next((r for r in range(found, len(table)) if table[r][place]), None)
        if pivot is None:
            return False
        table[found], table[pivot] = table[pivot], table[found]
        table[found] = [x / table[found][place] for x in table[found]]
        for r, row in enumerate(table):
            if r != found and row[place]:
                table[r] = [x - row[place] * y for x, y in zip(row, table[found], strict=True)]
        found += 1
    return all(row[-1] == 0 for row in table[found:]) and all(row[-1] >= 0 for row in table[:found])


for _written, _says in (
    ("hull(j)", "k_j is a vertex of the convex hull of the keys"),
    ("copyable(j)", "some query brings alpha_j as close to 1 as one likes"),
):
    _define(
        _written,
        _says,
        _copyable,
        BY_CERTIFICATE,
        BY_CERTIFICATE,
        kind="predicate",
        takes="members",
        in_world=True,
        total=True,
    )


STATISTICS = tuple(name for name, function in FUNCTIONS.items() if function.kind == "statistic")
"""The functions that speak about a distribution."""
