"""Values of formulas: scalars, vectors, rows and matrices, many draws at once.

Every value carries its draws along the first axis: (B, …) with B = 1 where nothing is
random. The product is that of linear algebra: a vector times a row is an outer product, a
row times a vector an inner one; two vectors multiply to their inner product.

A gap is by how much a statement about values fails (above 0) or the slack with which it holds
(below 0).

A value in the space of arbitrary value vectors v_1 … v_n is `formal`: it holds coefficients
of the v_i, so that one evaluation speaks about all values at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from heedful.errors import FormulaError

Kind = Literal["scalar", "vector", "row", "matrix"]
ROUNDING = 1e-9
"""Relative slack of a comparison in float64; what is closer is left to exact arithmetic."""
RANKS: dict[Kind, int] = {"scalar": 0, "vector": 1, "row": 1, "matrix": 2}


class NoValueError(FormulaError):
    """A formula that has no value for these very numbers, such as 1/x for x = 0."""


class NoMemberError(FormulaError):
    """A member that does not exist, such as the third of two keys."""


def refusal(problem: str, expected: str = "", hint: str = "") -> FormulaError:
    """Return the error of a part of a formula; the evaluator says where the part stands."""
    return FormulaError("formula", problem, expected=expected, hint=hint)


@dataclass(frozen=True, slots=True)
class Value:
    """One value, over all draws."""

    array: Any
    """float64, (B, *shape)."""
    kind: Kind
    formal: bool = False
    """Whether it holds coefficients of arbitrary value vectors."""
    turned: bool = False
    """Of a formal matrix: whether its columns are combinations of values, not its rows."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape without the draws."""
        return tuple(self.array.shape[1:])

    def describe(self) -> str:
        """Say what it is, for an error."""
        sizes = " x ".join(map(str, self.shape))
        return self.kind if not sizes else f"{self.kind} of {sizes}"


@dataclass(frozen=True, slots=True)
class Truth:
    """Whether a statement holds in each draw, and by how much it fails."""

    holds: Any
    """bool, (B,)."""
    gap: Any
    """float64, (B,): above 0 where the statement fails, its slack (≤ 0) where it holds."""
    left: Value | None = None
    right: Value | None = None


def scalar(number: float | int) -> Value:
    """Return a constant."""
    return Value(np.asarray([float(number)]), "scalar")


def constant(array: Any) -> Value:
    """Return a constant scalar, vector or matrix, by its rank."""
    array = np.asarray(array, dtype=float)
    kinds: tuple[Kind, ...] = ("scalar", "vector", "matrix")
    return Value(array[None], kinds[array.ndim])


def add(x: Value, y: Value, sign: float = 1.0) -> Value:
    """Return x + y, or x − y for sign −1; a scalar or a row is added to every entry or row."""
    formal = x.formal or y.formal
    if x.formal != y.formal and np.any((y if x.formal else x).array != 0):
        raise not_linear("a sum or comparison with keys or numbers")
    if x.formal and y.formal and (x.turned != y.turned or (x.turned and x.kind != y.kind)):
        raise not_linear("a sum or comparison with their transpose")
    if x.kind == y.kind:
        if x.shape != y.shape:
            raise _mismatch("add", x, y)
        return Value(x.array + sign * y.array, x.kind, formal, x.turned or y.turned)
    if y.kind == "scalar":
        return Value(x.array + sign * _spread(y, x), x.kind, formal)
    if x.kind == "scalar":
        return Value(_spread(x, y) + sign * y.array, y.kind, formal)
    if x.kind == "matrix" and y.kind == "row" and x.shape[1] == y.shape[0]:
        return Value(x.array + sign * y.array[:, None, :], "matrix", formal)
    if x.kind == "row" and y.kind == "matrix" and y.shape[1] == x.shape[0]:
        return Value(x.array[:, None, :] + sign * y.array, "matrix", formal)
    raise _mismatch("add", x, y)


def multiply(x: Value, y: Value) -> Value:
    """Return the product of linear algebra."""
    formal = x.formal or y.formal
    if x.kind == "scalar":
        return replace(y, array=_spread(x, y) * y.array)
    if y.kind == "scalar":
        return replace(x, array=x.array * _spread(y, x))
    pair = (x.kind, y.kind)
    if formal and (x.formal == y.formal or "matrix" not in pair):
        raise not_linear("an inner product")
    # Rows that are combinations are combined from the left, columns from the right; a combination
    # itself has coefficients that are not its entries, so no matrix changes it.
    if x.formal and not (x.kind == "matrix" and x.turned):
        raise not_linear("a product from the right")
    if y.formal and (y.kind != "matrix" or y.turned):
        raise not_linear("a product from the left")
    if pair == ("vector", "row"):
        return Value(x.array[:, :, None] * y.array[:, None, :], "matrix")
    if pair == ("row", "row"):
        raise _mismatch("multiply", x, y)
    if x.shape[-1] != y.shape[0]:
        raise _mismatch("multiply", x, y)
    if pair in (("row", "vector"), ("vector", "vector")):
        return Value(np.sum(x.array * y.array, axis=-1), "scalar")
    if pair == ("matrix", "vector"):
        return Value(np.matmul(x.array, y.array[:, :, None])[:, :, 0], "vector", formal)
    if pair == ("row", "matrix"):
        return Value(np.matmul(x.array[:, None, :], y.array)[:, 0, :], "row", formal)
    if pair == ("matrix", "matrix"):
        return Value(np.matmul(x.array, y.array), "matrix", formal, x.turned or y.turned)
    raise _mismatch("multiply", x, y)


def divide(x: Value, y: Value) -> Value:
    """Return x divided by a scalar."""
    if y.kind != "scalar":
        raise refusal(
            f"divides by a {y.describe()}", "only a scalar can divide", "use inv(M) for matrices"
        )
    if np.any(y.array == 0):
        raise NoValueError("formula", "divides by zero", expected="a denominator other than 0")
    return replace(x, array=x.array / _spread(y, x))


def power(x: Value, y: Value) -> Value:
    """Return x to a scalar power, or an integer power of a square matrix."""
    if y.kind != "scalar":
        raise refusal(f"has a {y.describe()} as an exponent", "a scalar exponent was expected")
    if x.kind == "scalar":
        with np.errstate(all="ignore"):
            return Value(np.power(x.array, y.array), "scalar")
    if x.formal:
        raise not_linear("a power")
    exponent = float(y.array.flat[0])
    if x.kind != "matrix" or x.shape[0] != x.shape[1] or exponent != round(exponent):
        raise refusal(
            f"raises a {x.describe()} to the power {exponent:g}",
            "a scalar, or a square matrix and a whole number",
            "write norm(x)^2 for the square of a vector",
        )
    if abs(exponent) > 64:
        raise refusal(f"raises a matrix to the power {exponent:g}", "at most 64")
    try:
        return Value(np.linalg.matrix_power(x.array, round(exponent)), "matrix")
    except np.linalg.LinAlgError:
        raise NoValueError("formula", "inverts a singular matrix") from None


def transpose(x: Value) -> Value:
    """Return xᵀ."""
    if x.kind == "matrix":
        array = np.swapaxes(x.array, 1, 2)
        return Value(array, "matrix", x.formal, x.formal and not x.turned)
    turned: dict[Kind, Kind] = {"vector": "row", "row": "vector", "scalar": "scalar"}
    return replace(x, kind=turned[x.kind])


def distance(x: Value, y: Value) -> Any:
    """Return how far x is from y in each draw, as ≈ measures it.

    Scalars: |x − y|. Vectors and matrices: ‖x − y‖ relative to max(1, ‖y‖). Formal values:
    the largest ‖x − y‖ over values of norm and mutual distance at most 1.
    """
    difference = add(x, y, -1.0)
    flat = difference.array.reshape(len(difference.array), -1)
    if difference.kind == "scalar":
        return np.abs(flat[:, 0])
    if difference.formal:
        return formal_size(flat)
    return length(flat) / np.maximum(1.0, _size(y))


def formal_size(coefficients: Any) -> Any:
    """Return the largest ‖Σ w_i v_i‖ over values of norm and mutual distance at most 1.

    It is the larger of the sums of the positive and of the negative w_i.
    """
    return (np.abs(coefficients).sum(axis=1) + np.abs(coefficients.sum(axis=1))) / 2


def whole(x: Value, what: str, most: int = 4096) -> int:
    """Return a scalar as a whole number of reasonable size."""
    number = float(x.array.flat[0])
    if x.kind != "scalar" or number != round(number) or not 0 <= number <= most:
        raise refusal(f"{what} is {number:g}", f"a whole number from 0 to {most}")
    return round(number)


def related(operator: str, left: Value, right: Value, within: float) -> Truth:
    """Return whether a relation holds between two values; `within` is the tolerance of ≈."""
    slack = ROUNDING * (1.0 + _size(left) + _size(right))
    if operator == "~" and left.kind == "matrix" and (left.formal or right.formal):
        raise not_linear("the distance of matrices")
    if operator in ("~", "=", "!="):
        apart = distance(left, right)
        if operator == "~":
            return Truth(apart <= within * (1 + 1e-12) + 1e-15, apart - within, left, right)
        if operator == "=":
            return Truth(apart <= slack, apart - slack, left, right)
        return Truth(apart > slack, slack - apart, left, right)
    if {left.kind, right.kind} != {"scalar"}:
        raise refusal(
            f"compares a {left.describe()} and a {right.describe()}",
            "two scalars; use ≈ or = for vectors",
        )
    gap = left.array - right.array
    if operator in (">", ">="):
        gap = -gap
    strict = operator in ("<", ">")
    return Truth(gap < 0 if strict else gap <= slack, gap, left, right)


def both(first: Truth, second: Truth) -> Truth:
    """Return whether both statements hold."""
    worse = first if float(np.max(first.gap)) > float(np.max(second.gap)) else second
    return Truth(
        first.holds & second.holds, np.maximum(first.gap, second.gap), worse.left, worse.right
    )


def either(first: Truth, second: Truth) -> Truth:
    """Return whether at least one statement holds."""
    return Truth(
        first.holds | second.holds, np.minimum(first.gap, second.gap), first.left, first.right
    )


def implied(condition: Truth, statement: Truth | None) -> Truth:
    """Return whether a statement holds wherever its condition does; None: it never does."""
    if statement is None:
        return Truth(np.ones_like(condition.holds), -np.ones_like(condition.gap))
    gap = np.where(condition.holds, statement.gap, -np.abs(condition.gap))
    return Truth(~condition.holds | statement.holds, gap, statement.left, statement.right)


def _size(x: Value) -> Any:
    return length(x.array.reshape(len(x.array), -1))


def length(flat: Any) -> Any:
    """Return the length of every row, also where the squares are out of range."""
    if flat.shape[1] == 1:  # most are the distance of two scalars
        return np.abs(flat[:, 0] * 1.0)  # also of truth values
    largest = np.abs(flat).max(axis=1, initial=0.0)
    divisor = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    return np.sqrt(((flat / divisor[:, None]) ** 2).sum(axis=1)) * divisor


def _spread(x: Value, like: Value) -> Any:
    return x.array.reshape(-1, *[1] * RANKS[like.kind])


def not_linear(what: str) -> FormulaError:
    """Return the error of asking arbitrary values for what only numbers have."""
    return refusal(
        f"{what} of arbitrary values is not determined",
        "sums and multiples of values, or their norm",
        "give the values numbers: values = [[1, 0], [0, 1]]",
    )


def _mismatch(verb: str, x: Value, y: Value) -> FormulaError:
    return refusal(
        f"cannot {verb} a {x.describe()} and a {y.describe()}",
        "shapes that fit were expected",
        "check the order and the transposes",
    )


OPERATORS: dict[str, Callable[[Value, Value], Value]] = {
    "+": add,
    "-": lambda x, y: add(x, y, -1.0),
    "*": multiply,
    "/": divide,
    "^": power,
}
"""The arithmetic of the formula language."""
