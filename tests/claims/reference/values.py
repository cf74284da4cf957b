"""Scalars, vectors, rows and matrices of the reference meaning, and the functions of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from flint import arb

from heedful.errors import FormulaError
from reference.numbers import (
    Scalar,
    UndefinedError,
    UnknownError,
    ball,
    exponential,
    floor,
    infinite,
    largest,
    less,
    logarithm,
    monotone,
    negative,
    normal_distribution,
    over,
    plus,
    power,
    sign,
    square_root,
    times,
    to_format,
    total,
    whole,
)

Kind: TypeAlias = Literal["scalar", "vector", "row", "matrix", "nothing"]


@dataclass(frozen=True)
class Value:
    """A scalar, a vector (column), a row or a matrix; entries are nested tuples of numbers.

    `formal` values are coefficients of arbitrary value vectors v_1 … v_n. The sum of nothing has
    kind "nothing": it is zero in whatever space it is used.
    """

    kind: Kind
    entries: Any
    formal: bool = False

    @property
    def flat(self) -> list[Scalar]:
        if self.kind == "scalar":
            return [self.entries]
        if self.kind == "matrix":
            return [entry for row in self.entries for entry in row]
        return list(self.entries)

    @property
    def shape(self) -> tuple[int, ...]:
        if self.kind in ("scalar", "nothing"):
            return ()
        if self.kind == "matrix":
            return (len(self.entries), len(self.entries[0]) if self.entries else 0)
        return (len(self.entries),)

    def map(self, function: Callable[[Scalar], Scalar]) -> Value:
        if self.kind == "nothing":
            return scalar(function(Fraction(0)))
        if self.kind == "scalar":
            return scalar(function(self.entries))
        if self.kind == "matrix":
            return Value(
                "matrix", tuple(tuple(map(function, row)) for row in self.entries), self.formal
            )
        return Value(self.kind, tuple(map(function, self.entries)), self.formal)


NOTHING = Value("nothing", ())


def scalar(x: Scalar) -> Value:
    return Value("scalar", x)


def vector(entries: Sequence[Scalar]) -> Value:
    return Value("vector", tuple(entries))


def matrix(rows: Sequence[Sequence[Scalar]], formal: bool = False) -> Value:
    return Value("matrix", tuple(tuple(row) for row in rows), formal)


def mismatch(what: str, x: Value, y: Value) -> FormulaError:
    return FormulaError("formula", f"cannot {what} a {x.kind} {x.shape} and a {y.kind} {y.shape}")


def add(x: Value, y: Value) -> Value:
    """x + y; a scalar is added to every entry, a row to every row of a matrix."""
    if x.kind == "nothing" or y.kind == "nothing":
        return y if x.kind == "nothing" else x
    formal = x.formal or y.formal
    if x.kind == "scalar":
        return replace(y.map(lambda entry: plus(x.entries, entry)), formal=formal)
    if y.kind == "scalar":
        return replace(x.map(lambda entry: plus(entry, y.entries)), formal=formal)
    if x.kind == "row" and y.kind == "matrix":
        return add(y, x)
    if x.kind == "matrix" and y.kind == "row" and x.shape[1] == y.shape[0]:
        return matrix(
            [[plus(a, b) for a, b in zip(row, y.entries, strict=True)] for row in x.entries], formal
        )
    if x.kind != y.kind or x.shape != y.shape:
        raise mismatch("add", x, y)
    if x.kind == "matrix":
        rows = [
            [plus(a, b) for a, b in zip(*pair, strict=True)]
            for pair in zip(x.entries, y.entries, strict=False)
        ]
        return matrix(rows, formal)
    return Value(
        x.kind, tuple(plus(a, b) for a, b in zip(x.entries, y.entries, strict=True)), formal
    )


def subtract(x: Value, y: Value) -> Value:
    return add(x, y if y.kind == "nothing" else y.map(negative))


def inner(x: Sequence[Scalar], y: Sequence[Scalar]) -> Scalar:
    return total([times(a, b) for a, b in zip(x, y, strict=True)])


def multiply(x: Value, y: Value) -> Value:
    """The product of linear algebra; two vectors side by side give their inner product."""
    if "nothing" in (x.kind, y.kind):
        return NOTHING
    formal = x.formal or y.formal
    if x.kind == "scalar":
        return replace(y.map(lambda entry: times(x.entries, entry)), formal=formal)
    if y.kind == "scalar":
        return replace(x.map(lambda entry: times(entry, y.entries)), formal=formal)
    if (x.kind, y.kind) == ("vector", "row"):
        return matrix([[times(a, b) for b in y.entries] for a in x.entries], formal)
    if y.kind == "row" or (x.kind, y.kind) == ("vector", "matrix") or x.shape[-1] != y.shape[0]:
        raise mismatch("multiply", x, y)
    if x.kind != "matrix" and y.kind == "vector":
        if formal:
            raise FormulaError("formula", "an inner product of arbitrary values is not determined")
        return scalar(inner(x.entries, y.entries))
    if y.kind == "vector":
        return Value("vector", tuple(inner(row, y.entries) for row in x.entries), formal)
    columns = list(zip(*y.entries, strict=True))
    if x.kind == "row":
        return Value("row", tuple(inner(x.entries, column) for column in columns), formal)
    return matrix([[inner(row, column) for column in columns] for row in x.entries], formal)


def transpose(x: Value) -> Value:
    if x.kind == "matrix":
        return matrix(list(zip(*x.entries, strict=True)), x.formal)
    turned: dict[str, Kind] = {"vector": "row", "row": "vector"}
    return replace(x, kind=turned.get(x.kind, x.kind))


def column(x: Value) -> Value:
    """Return a vector or a row as a vector; a number as a vector of one entry."""
    if x.kind == "scalar":
        return vector([x.entries])
    return transpose(x) if x.kind == "row" else x


def euclidean(entries: Sequence[Scalar]) -> Scalar:
    squares = total([power(entry, Fraction(2)) for entry in entries])
    # A sum of squares is never below zero, whatever rounding says.
    return square_root(nonnegative(squares))


def nonnegative(x: Scalar) -> Scalar:
    """Return the part of a ball that is not below zero, for what cannot be below zero."""
    return x.nonnegative_part() if isinstance(x, arb) else x


def formal_size(entries: Sequence[Scalar]) -> Scalar:
    """The largest ‖Σ w_i v_i‖ over values of norm and mutual distance at most 1."""
    absolute = total([abs(entry) for entry in entries])
    return over(plus(absolute, abs(total(entries))), Fraction(2))


def size(x: Value) -> Scalar:
    return formal_size(x.flat) if x.formal else euclidean(x.flat)


def softmax(entries: Sequence[Scalar]) -> list[Scalar]:
    """exp(x_i) / Σ exp(x_j), as 1 / Σ exp(x_j − x_i), so that a large score cannot overflow."""
    result: list[Scalar] = []
    for place, own in enumerate(entries):
        if infinite(own):
            if own > 0:
                raise UndefinedError("softmax of infinity")
            result.append(Fraction(0))
            continue
        apart = [plus(other, negative(own)) for j, other in enumerate(entries) if j != place]
        if all(isinstance(x, Fraction | float) for x in apart):
            result.append(over(Fraction(1), total([Fraction(1), *map(exponential, apart)])))
            continue
        # The share falls as any other score rises, so its ends lie at the ends of the scores.
        ends = [
            1 / (1 + sum((ball(exponential(end(x))) for x in apart), arb(0)))
            for end in (upper_end, lower_end)
        ]
        result.append(unit(ends[0].union(ends[1])))
    if all(infinite(own) for own in entries):
        raise UndefinedError("softmax over nothing")
    return result


def upper_end(x: Scalar) -> Scalar:
    return x.upper() if isinstance(x, arb) else x


def lower_end(x: Scalar) -> Scalar:
    return x.lower() if isinstance(x, arb) else x


def unit(x: Scalar) -> Scalar:
    """Return a ball cut down to [0, 1], where the value is known to lie."""
    if isinstance(x, arb) and not (x >= 0 and x <= 1):
        low, high = x.lower(), x.upper()
        low = low if low > 0 else arb(0)
        high = high if high < 1 else arb(1)
        return (low + high) / 2 + arb(0, ((high - low) / 2).upper())
    return x


def rowwise(function: Callable[[Sequence[Scalar]], Sequence[Scalar]]) -> Callable[[Value], Value]:
    """Return a function of a vector that acts on each row of a matrix."""

    def apply(x: Value) -> Value:
        if x.kind == "matrix":
            return matrix([function(row) for row in x.entries])
        return Value(x.kind, tuple(function(x.entries)))

    return apply


def layernorm(x: Sequence[Scalar]) -> list[Scalar]:
    mean = over(total(x), Fraction(len(x)))
    centred = [plus(entry, negative(mean)) for entry in x]
    spread = square_root(
        nonnegative(over(total([power(c, Fraction(2)) for c in centred]), Fraction(len(x))))
    )
    return [over(c, spread) for c in centred]


def rmsnorm(x: Sequence[Scalar]) -> list[Scalar]:
    spread = over(euclidean(x), square_root(Fraction(len(x))))
    return [over(entry, spread) for entry in x]


def entropy(p: Value) -> Value:
    """−Σ p ln p, with 0 ln 0 = 0."""
    return scalar(negative(total([surprise(entry, entry) for entry in p.flat])))


def surprise(weight: Scalar, x: Scalar) -> Scalar:
    """weight · ln x, where a weight of 0 gives 0 whatever x is."""
    return Fraction(0) if sign(weight) == 0 else times(weight, logarithm(x))


def divergence(p: Value, q: Value) -> Value:
    """Σ p ln(p/q); undefined where q = 0 < p."""
    return scalar(
        total(
            [
                surprise(a, over(a, b)) if sign(a) else Fraction(0)
                for a, b in zip(p.flat, q.flat, strict=True)
            ]
        )
    )


def norm(x: Value, p: Value | None = None) -> Value:
    if x.formal or p is None or p.entries == 2:
        return scalar(size(x))
    if infinite(p.entries):
        return scalar(largest([abs(entry) for entry in x.flat]))
    if less(p.entries, Fraction(1)) is not False:
        raise UndefinedError("a p-norm with p below 1")
    powers = [power(abs(entry), p.entries) for entry in x.flat]
    return scalar(power(total(powers), over(Fraction(1), p.entries)))


def rank(x: Value) -> Value:
    """The rank by elimination; every pivot must be known to be zero or not."""
    rows = [list(row) for row in (x.entries if x.kind == "matrix" else [x.flat])]
    found = 0
    for place in range(len(rows[0]) if rows else 0):
        pivot = next((r for r in range(found, len(rows)) if sign(rows[r][place])), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for r in range(found + 1, len(rows)):
            factor = over(rows[r][place], rows[found][place])
            rows[r] = [
                plus(a, negative(times(factor, b)))
                for a, b in zip(rows[r], rows[found], strict=True)
            ]
            rows[r][place] = Fraction(0)
        found += 1
    return scalar(Fraction(found))


def determinant(x: Value) -> Value:
    n = len(x.entries)
    if n == 0:
        return scalar(Fraction(1))
    terms = []
    for order in itertools.permutations(range(n)) if n <= 6 else ():
        inversions = sum(a > b for a, b in itertools.combinations(order, 2))
        product: Scalar = Fraction(-1 if inversions % 2 else 1)
        for row, place in enumerate(order):
            product = times(product, x.entries[row][place])
        terms.append(product)
    if n > 6:
        return scalar(arb_mat([[ball(entry) for entry in row] for row in x.entries]).det())
    return scalar(total(terms))


def inverse(x: Value) -> Value:
    """The inverse by cofactors of the adjugate; undefined where the determinant is zero."""
    if x.kind != "matrix" or x.shape[0] != x.shape[1]:
        raise FormulaError("formula", "inverts what is not a square matrix")
    n, whole_determinant = len(x.entries), determinant(x).entries

    def cofactor(row: int, place: int) -> Scalar:
        rows = [r[:place] + r[place + 1 :] for i, r in enumerate(x.entries) if i != row]
        return times(Fraction((-1) ** (row + place)), determinant(matrix(rows)).entries)

    return matrix([[over(cofactor(j, i), whole_determinant) for j in range(n)] for i in range(n)])


def argmax(x: Value) -> Value:
    """Which entry is largest, from 1; of several that are equal, the first."""
    best = 0
    for place, entry in enumerate(x.flat):
        above = less(x.flat[best], entry)
        if above is None:
            raise UnknownError
        if above:
            best = place
    return scalar(Fraction(best + 1))


def causal(length: int) -> Value:
    """0 where position t may see, minus infinity elsewhere."""
    return matrix(
        [[Fraction(0) if s <= t else -math.inf for s in range(length)] for t in range(length)]
    )


def rotation_angles(t: Scalar, width: int, base: Scalar) -> list[Scalar]:
    """t / base^(2i/width) for the pairs i = 0, 1, …"""
    return [over(t, power(base, Fraction(place, width))) for place in range(0, width, 2)]


def sine(x: Scalar) -> Scalar:
    return Fraction(0) if isinstance(x, Fraction) and x == 0 else ball(x).sin()


def cosine(x: Scalar) -> Scalar:
    return Fraction(1) if isinstance(x, Fraction) and x == 0 else ball(x).cos()


def phi(t: Scalar, width: int, base: Scalar) -> Value:
    entries: list[Scalar] = []
    for angle in rotation_angles(t, width, base):
        entries += [sine(angle), cosine(angle)]
    return vector(entries[:width])


def rotate(x: Value, t: Value, base: Scalar) -> Value:
    entries: list[Scalar] = []
    angles = rotation_angles(t.entries, len(x.entries), base)
    for angle, even, odd in zip(angles, x.entries[0::2], x.entries[1::2], strict=True):
        c, s = cosine(angle), sine(angle)
        entries.append(plus(times(even, c), negative(times(odd, s))))
        entries.append(plus(times(even, s), times(odd, c)))
    return vector(entries)


def diagonal(x: Value) -> Value:
    if x.kind == "matrix":
        return vector([x.entries[i][i] for i in range(min(x.shape))])
    n = len(x.entries)
    return matrix([[x.entries[i] if i == j else Fraction(0) for j in range(n)] for i in range(n)])


def filled(number: int, *sizes: Value) -> Value:
    shape = [whole(each.entries) for each in sizes]
    row = [Fraction(number)] * shape[-1]
    return vector(row) if len(shape) == 1 else matrix([row] * shape[0])


def identity(n: int, width: int | None = None) -> list[list[Scalar]]:
    columns = n if width is None else width
    return [[Fraction(int(i == j)) for j in range(columns)] for i in range(n)]


def hadamard(x: Value, y: Value) -> Value:
    if x.kind != y.kind or x.shape != y.shape:
        raise mismatch("hadamard", x, y)
    if x.kind == "scalar":
        return scalar(times(x.entries, y.entries))
    if x.kind == "matrix":
        return matrix(
            [
                [times(a, b) for a, b in zip(*p, strict=True)]
                for p in zip(x.entries, y.entries, strict=False)
            ]
        )
    return Value(x.kind, tuple(times(a, b) for a, b in zip(x.entries, y.entries, strict=True)))


def stack(*parts: Value) -> Value:
    return matrix([column(part).entries for part in parts])


def logistic(x: Scalar) -> Scalar:
    """1 / (1 + exp(−x)), from the side where exp cannot overflow."""
    return monotone(x, Fraction(0), Fraction(1), lambda b: unit(1 / (1 + (-b).exp())))


ENTRYWISE: dict[str, Callable[[Scalar], Scalar]] = {
    "exp": exponential,
    "ln": logarithm,
    "log": logarithm,
    "sqrt": square_root,
    "abs": abs,
    "sin": sine,
    "cos": cosine,
    "tanh": lambda x: monotone(x, Fraction(-1), Fraction(1), lambda b: b.tanh()),
    "sigmoid": logistic,
    "relu": lambda x: largest([x, Fraction(0)]),
    "sign": lambda x: Fraction(sign(x)),
    "floor": floor,
    "Phi": normal_distribution,
    "round16": to_format(11, -14, 15),
    "roundbf16": to_format(8, -126, 127),
}
FUNCTIONS: dict[str, Callable[..., Value]] = {
    "softmax": rowwise(softmax),
    "softmax_rows": rowwise(softmax),
    "layernorm": rowwise(layernorm),
    "rmsnorm": rowwise(rmsnorm),
    "norm": norm,
    "entropy": entropy,
    "kl": divergence,
    "tv": lambda p, q: scalar(
        over(total([abs(entry) for entry in subtract(p, q).flat]), Fraction(2))
    ),
    "mean": lambda x: scalar(over(total(x.flat), Fraction(len(x.flat)))),
    "argmax": argmax,
    "transpose": transpose,
    "trace": lambda x: scalar(total(diagonal(x).entries)),
    "rank": rank,
    "det": determinant,
    "inv": inverse,
    "diag": diagonal,
    "outer": lambda x, y: multiply(column(x), transpose(column(y))),
    "dot": lambda x, y: multiply(transpose(column(x)), column(y)),
    "hadamard": hadamard,
    "ones": lambda *sizes: filled(1, *sizes),
    "zeros": lambda *sizes: filled(0, *sizes),
    "eye": lambda n: matrix(identity(whole(n.entries))),
    "onehot": lambda i, n: vector(identity(whole(n.entries))[whole(i.entries) - 1]),
    "concat": lambda *parts: vector([entry for part in parts for entry in part.flat]),
    "stack": stack,
    "rows": stack,
    "causal": lambda length: causal(whole(length.entries)),
    "logsumexp": lambda x: scalar(logarithm(total([exponential(entry) for entry in x.flat]))),
}
