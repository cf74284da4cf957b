"""Scalars, vectors, rows and matrices of balls, and the functions of the language on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from flint import arb

from heedful.claims import balls, numeric_functions
from heedful.claims.balls import Ball, NotEnclosed
from heedful.claims.values import Kind, Value


@dataclass(frozen=True)
class Enclosure:
    """A scalar, vector, row or matrix of balls."""

    entries: Any
    """A Ball, a list of them, or a list of lists."""
    kind: Kind
    formal: bool = False


def scalar(value: float | int | Fraction) -> Enclosure:
    """Return an exact constant."""
    return Enclosure(Ball.exact(value), "scalar")


def lift(array: Any, *, formal: bool = False) -> Enclosure:
    """Return an array of floats as exact balls."""
    if array.ndim == 0:
        return Enclosure(_exactly(float(array)), "scalar")
    if array.ndim == 1:
        return Enclosure([_exactly(x) for x in array.tolist()], "vector", formal)
    return Enclosure([[_exactly(x) for x in row] for row in array.tolist()], "matrix", formal)


@cache
def identity(rows: int, columns: int, *, formal: bool = False) -> Enclosure:
    """Return the identity, which every world needs; nobody changes entries in place."""
    return lift(np.eye(rows, columns), formal=formal)


def _exactly(x: float) -> Ball:
    return balls.ZERO if x == 0.0 else balls.ONE if x == 1.0 else Ball.exact(x)


def distance(difference: Enclosure, right: Enclosure) -> Ball:
    """Return how far apart two sides are, as ≈ measures it (see `values.distance`)."""
    flat = list(flatten(difference))
    if difference.kind == "scalar":
        return Ball(abs(flat[0].flat()))
    if difference.formal:
        return Ball(formal_size([entry.flat() for entry in flat]))
    size = balls.total([entry * entry for entry in flat]).flat().nonnegative_part().sqrt()
    reference = list(flatten(right))
    scale = balls.total([entry * entry for entry in reference]).flat().nonnegative_part().sqrt()
    return Ball(size / scale.max(arb(1)))


def add(x: Enclosure, y: Enclosure) -> Enclosure:
    """Return x + y; a scalar or a row is added to every entry or row."""
    formal = x.formal or y.formal
    if x.kind == y.kind:
        return Enclosure(_zip(x.entries, y.entries), x.kind, formal)
    if y.kind == "scalar":
        return each(x, lambda entry: entry + y.entries)
    if x.kind == "scalar":
        return each(y, lambda entry: entry + x.entries)
    if {x.kind, y.kind} == {"matrix", "row"}:
        matrix, row = (x, y) if x.kind == "matrix" else (y, x)
        return Enclosure([_zip(line, row.entries) for line in matrix.entries], "matrix", formal)
    raise NotEnclosed("shapes that do not fit")


def multiply(x: Enclosure, y: Enclosure) -> Enclosure:
    """Return the product of linear algebra."""
    formal = x.formal or y.formal
    if x.kind == "scalar":
        return each(y, lambda entry: entry * x.entries)
    if y.kind == "scalar":
        return each(x, lambda entry: entry * y.entries)
    pair = (x.kind, y.kind)
    if pair == ("vector", "row"):
        return Enclosure([[a * b for b in y.entries] for a in x.entries], "matrix", formal)
    if pair in (("row", "vector"), ("vector", "vector")):
        return Enclosure(inner(x.entries, y.entries), "scalar")
    if pair == ("matrix", "vector"):
        return Enclosure([inner(row, y.entries) for row in x.entries], "vector", formal)
    if pair == ("row", "matrix"):
        turned = transpose(y).entries
        return Enclosure([inner(x.entries, column) for column in turned], "row", formal)
    if pair == ("matrix", "matrix"):
        turned = transpose(y).entries
        return Enclosure(
            [[inner(row, column) for column in turned] for row in x.entries], "matrix", formal
        )
    raise NotEnclosed("shapes that do not fit")


def transpose(x: Enclosure) -> Enclosure:
    """Return xᵀ."""
    if x.kind == "matrix":
        return Enclosure(
            [list(column) for column in zip(*x.entries, strict=True)], "matrix", x.formal
        )
    turned: dict[Kind, Kind] = {"vector": "row", "row": "vector", "scalar": "scalar"}
    return replace(x, kind=turned[x.kind])


def inner(x: list[Ball], y: list[Ball]) -> Ball:
    """Return the inner product of two lists of balls."""
    if len(x) != len(y):
        raise NotEnclosed("shapes that do not fit")
    return balls.total(
        [a * b for a, b in zip(x, y, strict=True) if not (a.is_zero() or b.is_zero())]
    )


def _zip(x: Any, y: Any) -> Any:
    if isinstance(x, Ball):
        return x + y
    if len(x) != len(y):
        raise NotEnclosed("shapes that do not fit")
    return [_zip(a, b) for a, b in zip(x, y, strict=True)]


def each(x: Enclosure, change: Callable[[Ball], Ball]) -> Enclosure:
    """Apply a function of balls to every entry."""

    def go(entries: Any) -> Any:
        return change(entries) if isinstance(entries, Ball) else [go(part) for part in entries]

    return Enclosure(go(x.entries), x.kind, x.formal)


def flatten(x: Enclosure) -> Iterator[Ball]:
    """Yield every entry."""
    if x.kind == "scalar":
        yield x.entries
    elif x.kind == "matrix":
        for row in x.entries:
            yield from row
    else:
        yield from x.entries


def member(family: Enclosure, position: int) -> Enclosure:
    """Return one row of a matrix, or one entry of a vector."""
    if family.kind == "scalar" or not 0 <= position < len(family.entries):
        raise NotEnclosed("a member that does not exist")
    kind: Kind = "scalar" if family.kind in ("vector", "row") else "vector"
    return Enclosure(family.entries[position], kind, family.formal and kind == "vector")


def number(x: Enclosure) -> Ball:
    """Return the ball of a scalar."""
    if x.kind != "scalar" or not isinstance(x.entries, Ball):
        raise NotEnclosed("a comparison of what is no scalar")
    return x.entries


def constant_array(name: str, sizes: list[int]) -> Enclosure:
    """Return ones, zeros, eye, onehot or causal of the given sizes."""
    if name == "eye":
        return identity(sizes[0], sizes[0])
    if name == "onehot":
        return lift(np.eye(sizes[1])[sizes[0] - 1])
    if name == "causal":
        return lift(np.triu(np.full((sizes[0], sizes[0]), -1e9), k=1))
    return lift(np.full(tuple(sizes), 1.0 if name == "ones" else 0.0))


def formal_size(coefficients: list[Any]) -> Any:
    """Return the size of a combination of arbitrary values (see `values.formal_size`)."""
    spread = sum((abs(entry) for entry in coefficients), arb(0))
    return (spread + abs(sum(coefficients, arb(0)))) / 2


def _norm(x: Enclosure, p: Enclosure | None = None) -> Enclosure:
    order = 2 if p is None else p.entries.flat()
    flat = [entry.flat() for entry in flatten(x)]
    if x.formal:
        return Enclosure(Ball(formal_size(flat)), "scalar")
    if order == 2:
        size = sum((entry * entry for entry in flat), arb(0)).nonnegative_part().sqrt()
        return Enclosure(Ball(size), "scalar")
    if order == 1:
        return Enclosure(Ball(sum((abs(entry) for entry in flat), arb(0))), "scalar")
    raise NotEnclosed("a norm of another order")


def _entropy(p: Enclosure) -> Enclosure:
    terms = [Ball(balls.entropy_term(entry.flat())) for entry in p.entries]
    return Enclosure(balls.total(terms), "scalar")


def _tv(p: Enclosure, q: Enclosure) -> Enclosure:
    difference = add(p, multiply(scalar(-1), q))
    half = Ball.exact(Fraction(1, 2))
    return Enclosure(
        balls.total([Ball(abs(e.flat())) for e in flatten(difference)]) * half, "scalar"
    )


def _normal_cdf(x: Any) -> Any:
    return (arb(1) + (x / arb(2).sqrt()).erf()) / 2


def _sigmoid(x: Any) -> Any:
    return arb(1) / (arb(1) + (-x).exp())


def _rounded(to: Callable[[float], float]) -> Callable[[Any], Any]:
    """Lift a rounding: exact where the whole ball rounds to one number."""

    def apply(x: Any) -> Any:
        low = to(math.nextafter(float(x.lower()), -math.inf))
        high = to(math.nextafter(float(x.upper()), math.inf))
        if low != high:
            raise NotEnclosed("a rounding that the ball does not decide")
        return arb(low)

    return apply


def _half(x: float) -> float:
    return float(numeric_functions.round_half(Value(np.asarray([x]), "scalar")).array[0])


def _bfloat(x: float) -> float:
    return float(numeric_functions.round_bfloat(Value(np.asarray([x]), "scalar")).array[0])


ENTRYWISE: Mapping[str, Callable[[Ball], Ball]] = {
    "ln": balls.entrywise(lambda x: x.log()),
    "log": balls.entrywise(lambda x: x.log()),
    "sqrt": balls.entrywise(lambda x: x.sqrt()),
    "abs": balls.entrywise(abs),
    "sin": balls.entrywise(lambda x: x.sin()),
    "cos": balls.entrywise(lambda x: x.cos()),
    "tanh": balls.entrywise(lambda x: x.tanh()),
    "sigmoid": balls.entrywise(_sigmoid),
    "round16": balls.entrywise(_rounded(_half)),
    "roundbf16": balls.entrywise(_rounded(_bfloat)),
    "floor": balls.entrywise(_rounded(math.floor)),
    "relu": balls.entrywise(lambda x: x.max(arb(0))),
    "Phi": balls.entrywise(_normal_cdf),
}

PLAIN: Mapping[str, Callable[..., Enclosure]] = {
    "norm": _norm,
    "entropy": _entropy,
    "tv": _tv,
    "transpose": transpose,
    "dot": lambda x, y: Enclosure(inner(x.entries, y.entries), "scalar"),
    "outer": lambda x, y: multiply(replace(x, kind="vector"), replace(y, kind="row")),
    "concat": lambda *parts: Enclosure([b for part in parts for b in flatten(part)], "vector"),
    "stack": lambda *parts: Enclosure([list(part.entries) for part in parts], "matrix"),
    "mean": lambda x: Enclosure(
        balls.total(list(flatten(x))) * Ball.exact(Fraction(1, len(list(flatten(x))))), "scalar"
    ),
    "hadamard": lambda x, y: Enclosure(
        [a * b for a, b in zip(x.entries, y.entries, strict=True)], x.kind
    ),
}


def fold(name: str, parts: list[Ball]) -> Ball:
    """Return the sum, product, maximum or minimum of balls."""
    if name == "sum":
        return balls.total(parts)
    if name == "prod":
        product = balls.ONE
        for factor in parts:
            product = product * factor
        return product
    return balls.largest(parts) if name == "max" else balls.smallest(parts)
