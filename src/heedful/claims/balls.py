"""Rigorous arithmetic: numbers known to lie in a ball, and one symbol kept as a letter.

A `Ball` is c + s·β, where c is a ball of arb and β runs over a span [β₀, β₁] or [β₀, ∞). Most
have s = 0. Logits that move with β stay exact in it, and softmax needs only differences:

    α_i = 1 / Σ_j exp(l_j − l_i),   and  exp(c + sβ) lies between its values at the ends.

So equal logits cancel exactly, and one evaluation speaks about every β of the span at once.
What cannot be enclosed raises `NotEnclosed`; a comparison that the balls cannot decide is
None, never a guess.

An `Enclosure` is a scalar, vector, row or matrix of balls, with the products of linear algebra.

Functions of one number ξ, for statistics, are enclosed with their derivatives, or bounded as ξ
grows. Both are balls to the evaluator, so that every formula it can enclose it can also expand:

    Jet   f(ξ) = Σ_j f_j (ξ − m)^j + f_K(θ) (ξ − m)^K on a cell around m, by series of arb;
    Tail  |f(ξ)| ≤ exp(a) |ξ|^p exp(s |ξ|) for every |ξ| ≥ 1.

With a jet the mean of f over a cell is known to the K-th power of its width; with a tail, what
lies beyond the last cell is bounded and not cut off.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, NamedTuple, NoReturn

import numpy as np
from flint import arb, arb_series, ctx, fmpq

from heedful.claims.values import Kind


def written(value: float) -> Any:
    """Return the ball of a number as it is written: 0.1 is 1/10, not the float64 next to it."""
    number = decimal_of(float(value))
    return arb(fmpq(number.numerator, number.denominator))


@lru_cache(maxsize=4096)  # the same few numbers come again in every case
def decimal_of(value: float) -> Fraction:
    """Return the shortest decimal that float64 reads as this number."""
    return Fraction(repr(value))


class NotEnclosed(Exception):  # noqa: N818 - it is an answer, not an error
    """The expression is outside what balls can enclose."""


class NoValue(NotEnclosed):
    """The expression surely has no value here, such as 1/0 or ln(-1)."""


class LetterRange(NamedTuple):
    """Where the letter β runs: from `low` to `high`, or without end when `high` is None."""

    low: Any
    high: Any

    @classmethod
    def of(cls, low: float, high: float | None) -> LetterRange:
        """Return the span between two numbers."""
        return cls(written(low), None if high is None else written(high))


class Ball:
    """A real number known to lie in c + s·β for every β of its span."""

    __slots__ = ("c", "s", "span")

    def __init__(self, c: Any, s: Any = None, span: LetterRange | None = None) -> None:
        self.c = c
        self.s = s
        """Slope in β; None for 0."""
        self.span = span
        """Where β runs, if there is a slope."""

    @classmethod
    def exact(cls, value: float | int | Fraction) -> Ball:
        """Return a number that is known exactly (up to the working precision)."""
        if isinstance(value, Fraction):
            return cls(arb(fmpq(value.numerator, value.denominator)))
        return cls(arb(value))

    @classmethod
    def between(cls, low: float, high: float) -> Ball:
        """Return the ball that covers [low, high]."""
        return cls(written(low).union(written(high)))

    @classmethod
    def letter(cls, span: LetterRange) -> Ball:
        """Return β itself."""
        return cls(arb(0), arb(1), span)

    def flat(self) -> Any:
        """Return the arb ball that covers the number for every β of its span."""
        if self.s is None:
            return self.c
        assert self.span is not None
        if self.span.high is None:
            raise NotEnclosed("grows without bound")
        return self.c + self.s * self.span.low.union(self.span.high)

    def ends(self) -> tuple[Any, Any]:
        """Return the values at both ends of the span; the second is None at infinity."""
        assert self.s is not None
        assert self.span is not None
        low, high = self.span
        return self.c + self.s * low, None if high is None else self.c + self.s * high

    def __add__(self, other: Ball) -> Ball:
        return self._joined(other, self.c + other.c, _slope(self.s, other.s, 1))

    def __sub__(self, other: Ball) -> Ball:
        return self._joined(other, self.c - other.c, _slope(self.s, other.s, -1))

    def __neg__(self) -> Ball:
        return Ball(-self.c, None if self.s is None else -self.s, self.span)

    def __mul__(self, other: Ball) -> Ball:
        if self.s is None and other.s is None:
            return Ball(self.c * other.c)
        if self.s is not None and other.s is not None:
            return Ball(self.flat() * other.flat())
        steep, plain = (self, other.c) if self.s is not None else (other, self.c)
        return self._joined(other, steep.c * plain, steep.s * plain)

    def __truediv__(self, other: Ball) -> Ball:
        divisor = other.flat()
        if divisor.is_zero():
            raise NoValue("divides by zero")
        if divisor.contains(arb(0)):
            raise NotEnclosed("may divide by zero")
        return Ball(self.c / divisor, None if self.s is None else self.s / divisor, self.span)

    def is_zero(self) -> bool:
        """Tell whether it is exactly 0."""
        return self.s is None and bool(self.c.is_zero())

    def same(self, other: Ball) -> bool:
        """Tell whether both are exactly the same number for every β."""
        if (self.s is None) != (other.s is None):
            return False
        slopes = self.s is None or bool(self.s == other.s)
        return slopes and bool(self.c == other.c)

    def _joined(self, other: Ball, c: Any, s: Any) -> Ball:
        if s is None or s.is_zero():
            return Ball(c)
        return Ball(c, s, self.span if self.span is not None else other.span)


def _slope(first: Any, second: Any, sign: int) -> Any:
    if first is None:
        return None if second is None else sign * second
    return first if second is None else first + sign * second


def exponential(x: Ball) -> Ball:
    """Return exp(x) for every β of its span."""
    if type(x) is not Ball:
        return _exponential_of_function(x)
    if x.s is None:
        return Ball(x.c.exp())
    first, second = x.ends()
    if second is not None:
        return Ball(first.exp().union(second.exp()))
    if x.s < 0:
        return Ball(arb(0).union(first.exp()))
    raise NotEnclosed("the exponential of something that grows without bound")


def softmax(logits: Sequence[Ball]) -> list[Ball]:
    """Return softmax of logits that may move with β; equal logits are counted, not repeated."""
    if any(type(logit) is not Ball for logit in logits):
        return _softmax_of_functions(logits)
    seen = [logit for logit in logits if not _hidden(logit)]
    if len(seen) < len(logits):  # a score of −∞ has the weight 0, and takes part in nothing
        if not seen:
            raise NoValue("softmax over nothing")
        rest = iter(softmax(seen))
        return [Ball(arb(0)) if _hidden(logit) else next(rest) for logit in logits]
    kinds, counts, places = _distinct(logits)
    if all(kind.s is None for kind in kinds):
        centers = [kind.c for kind in kinds]
        weights = [_still_weight(own, centers, counts) for own in centers]
    else:
        weights = [_weight(own, kinds, counts) for own in kinds]
    return [weights[place] for place in places]


def _distinct(logits: Sequence[Ball]) -> tuple[list[Ball], list[int], list[int]]:
    """Return the different logits, how often each is there, and which of them each logit is."""
    kinds: list[Ball] = []
    counts: list[int] = []
    places: list[int] = []
    for logit in logits:
        place = next((i for i, kind in enumerate(kinds) if kind.same(logit)), len(kinds))
        if place == len(kinds):
            kinds.append(logit)
            counts.append(0)
        counts[place] += 1
        places.append(place)
    return kinds, counts, places


def _hidden(logit: Ball) -> bool:
    return logit.s is None and bool(logit.c == arb.neg_inf())


def _weight(own: Ball, kinds: Sequence[Ball], counts: Sequence[int]) -> Ball:
    # The ends are summed apart: a ball around both exp(−400) and exp(400) would reach below 0.
    lowest, highest = arb(0), arb(0)
    endless = False
    for other, count in zip(kinds, counts, strict=True):
        gap = other - own
        if other is own or gap.is_zero():
            lowest, highest = lowest + count, highest + count
            continue
        low, high = _exponential_ends(gap)
        lowest = lowest + count * low
        endless = endless or high is None
        highest = highest if high is None else highest + count * high
    top = (arb(1) / lowest).upper().min(arb(1))
    bottom = arb(0) if endless else (arb(1) / highest).lower()
    return Ball(bottom.union(top))


def _still_weight(own: Any, centers: Sequence[Any], counts: Sequence[int]) -> Ball:
    """Return what `_weight` does for logits that do not move with β, without making their gaps."""
    lowest, highest = arb(0), arb(0)
    for other, count in zip(centers, counts, strict=True):
        gap = other - own
        if other is own or gap.is_zero():
            lowest, highest = lowest + count, highest + count
            continue
        low = gap.lower().exp()
        high = low if gap.is_exact() else gap.upper().exp()
        lowest, highest = lowest + count * low, highest + count * high
    top = (arb(1) / lowest).upper().min(arb(1))
    return Ball((arb(1) / highest).lower().union(top))


def _exponential_ends(gap: Ball) -> tuple[Any, Any]:
    """Return the least and the greatest value of exp(gap); None for no greatest."""
    if gap.s is None:
        return gap.c.lower().exp(), gap.c.upper().exp()
    first, second = gap.ends()
    if second is None:
        if gap.s > 0:
            return first.lower().exp(), None  # it only grows from β₀ on
        if gap.s < 0:
            return arb(0), first.upper().exp()
        raise NotEnclosed("the order of two logits is not decided")
    low, high = (first, second) if gap.s > 0 else (second, first)
    if not (gap.s > 0 or gap.s < 0):
        low, high = first.min(second), first.max(second)
    return low.lower().exp(), high.upper().exp()


def compare(left: Ball, right: Ball, operator: str) -> bool | None:
    """Return whether left < right (or <=) for every β; None when the balls cannot tell."""
    gap = left - right
    if gap.s is None:
        values = [gap.c]
    else:
        first, second = gap.ends()
        if second is None:
            if gap.s < 0 and first < 0:
                return True
            return False if gap.s > 0 and first > 0 else None
        values = [first, second]
    if all(value < 0 or (operator == "<=" and value <= 0) for value in values):
        return True
    if all(value > 0 or (operator == "<" and value >= 0) for value in values):
        return False
    return None


def entrywise(function: Callable[[Any], Any]) -> Callable[[Ball], Ball]:
    """Lift a function of arb to balls."""

    def apply(x: Ball) -> Ball:
        if type(x) is not Ball:
            through: Ball = x.through(function)  # type: ignore[attr-defined]
            return through
        made = function(x.flat())
        if not made.is_finite():
            raise NotEnclosed("is not finite on the whole ball")
        return Ball(made)

    return apply


def largest(balls: Sequence[Ball]) -> Ball:
    """Return the maximum."""
    best = balls[0].flat()
    for ball in balls[1:]:
        best = best.max(ball.flat())
    return Ball(best)


def smallest(balls: Sequence[Ball]) -> Ball:
    """Return the minimum."""
    best = balls[0].flat()
    for ball in balls[1:]:
        best = best.min(ball.flat())
    return Ball(best)


def norm(entries: Sequence[Ball]) -> Ball:
    """Return the Euclidean norm."""
    if any(type(entry) is not Ball for entry in entries):
        return _norm_of_functions(entries)
    flat = [entry.flat() for entry in entries]
    return Ball(sum((entry * entry for entry in flat), arb(0)).nonnegative_part().sqrt())


def total(balls: Sequence[Ball]) -> Ball:
    """Return the sum."""
    made = Ball(arb(0))
    for ball in balls:
        made = made + ball
    return made


def entropy_term(p: Any) -> Any:
    """Return −p ln p, also where p may be 0."""
    if p > 0:
        return -(p * p.log())
    top = p.upper()
    if not top < arb(1) / 3:  # −p ln p grows up to p = 1/e
        raise NotEnclosed("an entropy over too wide a ball")
    return arb(0).union(-(top * top.log())) if top > 0 else arb(0)


ZERO, ONE = Ball(arb(0)), Ball(arb(1))
"""Constants that every matrix is full of."""


@dataclass(frozen=True)
class Enclosure:
    """A scalar, vector, row or matrix of"""

    entries: Any
    """A Ball, a list of them, or a list of lists."""
    kind: Kind
    formal: bool = False


def scalar(value: float | int | Fraction) -> Enclosure:
    """Return an exact constant."""
    return Enclosure(Ball.exact(value), "scalar")


def lift(array: Any, *, formal: bool = False) -> Enclosure:
    """Return an array of floats as exact"""
    if array.ndim == 0:
        return Enclosure(_exactly(float(array)), "scalar")
    if array.ndim == 1:
        return Enclosure([_exactly(x) for x in array.tolist()], "vector", formal)
    return Enclosure([[_exactly(x) for x in row] for row in array.tolist()], "matrix", formal)


def as_written(array: Any) -> Enclosure:
    """Return an array of a case with every entry as the decimal that is shown for it."""

    def exactly(x: float) -> Ball:
        return _exactly(x) if x == round(x) else Ball(written(x))

    array = np.asarray(array, dtype=float)
    if array.ndim == 1:
        return Enclosure([exactly(x) for x in array.tolist()], "vector")
    return Enclosure([[exactly(x) for x in row] for row in array.tolist()], "matrix")


@cache
def identity(rows: int, columns: int, *, formal: bool = False) -> Enclosure:
    """Return the identity, which every world needs; nobody changes entries in place."""
    return lift(np.eye(rows, columns), formal=formal)


def _exactly(x: float) -> Ball:
    return ZERO if x == 0.0 else ONE if x == 1.0 else Ball.exact(x)


def distance(difference: Enclosure, right: Enclosure) -> Ball:
    """Return how far apart two sides are, as ≈ measures it (see `values.distance`)."""
    flat = list(flatten(difference))
    if difference.kind == "scalar":
        return Ball(abs(flat[0].flat()))
    if difference.formal:
        return Ball(formal_size([entry.flat() for entry in flat]))
    size = total([entry * entry for entry in flat]).flat().nonnegative_part().sqrt()
    reference = list(flatten(right))
    scale = total([entry * entry for entry in reference]).flat().nonnegative_part().sqrt()
    return Ball(size / scale.max(arb(1)))


def add(x: Enclosure, y: Enclosure) -> Enclosure:
    """Return x + y; a scalar or a row is added to every entry or row."""
    formal = x.formal or y.formal
    if x.kind == y.kind:
        return Enclosure(paired(x.entries, y.entries, operator.add), x.kind, formal)
    if y.kind == "scalar":
        return each(x, lambda entry: entry + y.entries)
    if x.kind == "scalar":
        return each(y, lambda entry: entry + x.entries)
    if {x.kind, y.kind} == {"matrix", "row"}:
        matrix, row = (x, y) if x.kind == "matrix" else (y, x)
        return Enclosure(
            [paired(line, row.entries, operator.add) for line in matrix.entries], "matrix", formal
        )
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


def negated(x: Enclosure) -> Enclosure:
    """Return −x."""
    return each(x, lambda entry: -entry)


def inner(x: list[Ball], y: list[Ball]) -> Ball:
    """Return the inner product of two lists of"""
    if len(x) != len(y):
        raise NotEnclosed("shapes that do not fit")
    return total([a * b for a, b in zip(x, y, strict=True) if not (a.is_zero() or b.is_zero())])


def paired(x: Any, y: Any, change: Callable[[Ball, Ball], Any]) -> Any:
    """Apply a function of two balls to every pair of entries."""
    if isinstance(x, Ball):
        return change(x, y)
    if len(x) != len(y):
        raise NotEnclosed("shapes that do not fit")
    return [paired(a, b, change) for a, b in zip(x, y, strict=True)]


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


def whole(x: Enclosure) -> int:
    """Return a scalar that is known to be a whole number."""
    exact = x.entries.flat()
    if not exact.is_integer():
        raise NotEnclosed("a size that is no whole number")
    return int(exact.unique_fmpz())


def formal_size(coefficients: list[Any]) -> Any:
    """Return the size of a combination of arbitrary values (see `values.formal_size`)."""
    spread = sum((abs(entry) for entry in coefficients), arb(0))
    return (spread + abs(sum(coefficients, arb(0)))) / 2


# Functions of one number ---------------------------------------------------------------------

ORDER = 8
"""Terms of a series; the term of this order bounds the rest."""
BY_NAME = {"_square_root": "sqrt", "_logarithm": "log", "sin": "sin", "cos": "cos"}
"""Functions of single entries that arb knows as functions of series."""
BOUNDED = ("sin", "cos", "_tanh", "_sigmoid", "_normal", "_sign_of")
"""Functions of single entries with values between −1 and 1."""


class Jet(Ball):
    """The series of a function at the middle of a cell, and over the whole of it."""

    __slots__ = ("over",)

    def __init__(self, middle: Any, over: Any) -> None:
        super().__init__(middle)
        self.over = over

    @classmethod
    def variable(cls, low: Any, high: Any) -> Jet:
        """Return ξ itself on a cell."""
        with series():
            middle = (low + high) / 2
            return cls(
                arb_series([middle.mid(), 1], ORDER + 1),
                arb_series([low.union(high), 1], ORDER + 1),
            )

    def flat(self) -> NoReturn:
        """Refuse: what needs a plain ball is enclosed without derivatives."""
        raise NotEnclosed("a function without derivatives")

    def is_zero(self) -> bool:
        """Tell whether it is 0 for every ξ."""
        return all(bool(self.over[place].is_zero()) for place in range(ORDER + 1))

    def same(self, other: Ball) -> bool:
        """Tell whether both are exactly the same function: only of itself is that known."""
        return self is other

    def __add__(self, other: Ball) -> Ball:
        return self._with(other, lambda x, y: x + y)

    __radd__ = __add__

    def __sub__(self, other: Ball) -> Ball:
        return self._with(other, lambda x, y: x - y)

    def __rsub__(self, other: Ball) -> Ball:
        return self._with(other, lambda x, y: y - x)

    def __neg__(self) -> Ball:
        return Jet(-self.c, -self.over)

    def __mul__(self, other: Ball) -> Ball:
        return self._with(other, lambda x, y: x * y)

    __rmul__ = __mul__

    def __truediv__(self, other: Ball) -> Ball:
        return self._with(other, lambda x, y: x / y)

    def __rtruediv__(self, other: Ball) -> Ball:
        return self._with(other, lambda x, y: y / x)

    def _with(self, other: Ball, change: Callable[[Any, Any], Any]) -> Ball:
        first, second = (other.c, other.over) if isinstance(other, Jet) else (other.c, other.c)
        if other.s is not None:
            raise NotEnclosed("two letters")
        with series():
            try:
                return Jet(change(self.c, first), change(self.over, second))
            except (ValueError, ZeroDivisionError):
                raise NotEnclosed("a quotient without a series") from None

    def through(self, function: Callable[[Any], Any]) -> Ball:
        """Apply a function of single entries."""
        if function is abs:
            return self.size()
        name = BY_NAME.get(getattr(function, "__name__", ""), "")
        with series():
            try:
                if name:
                    return Jet(getattr(self.c, name)(), getattr(self.over, name)())
                return Jet(function(self.c), function(self.over))
            except (TypeError, AttributeError, ValueError, ZeroDivisionError):
                raise NotEnclosed("a function without a series") from None

    def size(self) -> Ball:
        """Return |f|, where f keeps its sign on the cell."""
        if self.over[0] > 0:
            return self
        if self.over[0] < 0:
            return -self
        raise NotEnclosed("a sign that changes")

    def power(self, exponent: int) -> Ball:
        """Return a whole power."""
        with series():
            return Jet(self.c**exponent, self.over**exponent)

    def integral(self, moments: Sequence[Any]) -> Any:
        """Return ∫ f over the cell, from the moments ∫ (ξ − m)^j of its measure."""
        terms = [self.c[place] * moments[place] for place in range(ORDER)]
        total = sum(terms, self.over[ORDER] * moments[ORDER])
        if not total.is_finite():
            raise NotEnclosed("a series that is not finite")
        return total


class series:  # noqa: N801 - reads as a statement
    """Let series have as many terms as jets need."""

    def __enter__(self) -> None:
        self.before = ctx.cap
        ctx.cap = ORDER + 1

    def __exit__(self, *_: object) -> None:
        ctx.cap = self.before


class Tail(Ball):
    """A bound exp(a) |ξ|^p exp(s |ξ|) of a function, for every |ξ| ≥ 1."""

    __slots__ = ("line", "power_of", "rate")

    def __init__(self, log: float, power_of: float, rate: float, line: Any = None) -> None:
        super().__init__(arb(0))
        self.c = log
        self.power_of = power_of
        self.rate = rate
        self.line = line
        """(u, v) where the function is u + v ξ, for exponentials of it."""

    @classmethod
    def variable(cls) -> Tail:
        """Return ξ itself."""
        return cls(0.0, 1.0, 0.0, (arb(0), arb(1)))

    @classmethod
    def of(cls, x: Ball) -> Tail:
        """Return the bound of a constant."""
        if isinstance(x, Tail):
            return x
        flat = x.flat()
        return cls(_log(abs(flat)), 0.0, 0.0, (flat, arb(0)))

    def flat(self) -> NoReturn:
        """Refuse: it is bounded by nothing that does not grow."""
        raise NotEnclosed("grows without bound")

    def is_zero(self) -> bool:
        """Tell whether it is surely 0."""
        return bool(self.c == -math.inf)

    def same(self, other: Ball) -> bool:
        """Tell whether both are the same function."""
        return self is other

    def __add__(self, other: Ball) -> Ball:
        return self._sum(Tail.of(other), 1)

    __radd__ = __add__

    def __sub__(self, other: Ball) -> Ball:
        return self._sum(Tail.of(other), -1)

    def __rsub__(self, other: Ball) -> Ball:
        return Tail.of(other)._sum(self, -1)

    def __neg__(self) -> Ball:
        line = None if self.line is None else (-self.line[0], -self.line[1])
        return Tail(self.c, self.power_of, self.rate, line)

    def _sum(self, other: Tail, sign: int) -> Tail:
        line = None
        if self.line is not None and other.line is not None:
            line = tuple(x + sign * y for x, y in zip(self.line, other.line, strict=True))
        largest = max(self.c, other.c)
        log = largest if largest == -math.inf else largest + math.log(2.0) + 1e-12
        return Tail(log, max(self.power_of, other.power_of), max(self.rate, other.rate), line)

    def __mul__(self, other: Ball) -> Ball:
        tail = Tail.of(other)
        line = None
        if self.line is not None and tail.line is not None:
            if tail.line[1].is_zero():
                line = (self.line[0] * tail.line[0], self.line[1] * tail.line[0])
            elif self.line[1].is_zero():
                line = (tail.line[0] * self.line[0], tail.line[1] * self.line[0])
        log = _up(self.c + tail.c)
        return Tail(log, self.power_of + tail.power_of, self.rate + tail.rate, line)

    __rmul__ = __mul__

    def __truediv__(self, other: Ball) -> Ball:
        if isinstance(other, Tail):
            raise NotEnclosed("a quotient of functions that grow")
        return self * (Ball(arb(1)) / other)

    def __rtruediv__(self, other: Ball) -> Ball:
        raise NotEnclosed("a quotient by a function that grows")

    def exponential(self) -> Tail:
        """Return the bound of exp(u + v ξ)."""
        if self.line is None:
            raise NotEnclosed("the exponential of what is not linear")
        u, v = self.line
        return Tail(_up(float(abs(u).upper())), 0.0, _up(float(abs(v).upper())))

    def through(self, function: Callable[[Any], Any]) -> Ball:
        """Apply a function of single entries."""
        if function is abs:
            return Tail(self.c, self.power_of, self.rate)
        name = getattr(function, "__name__", "")
        if name in BOUNDED:
            return AT_MOST_ONE
        if name == "_square_root":
            return Tail(_up(self.c / 2), self.power_of / 2, self.rate / 2)
        raise NotEnclosed("a function whose growth is not known")

    def power(self, exponent: int) -> Ball:
        """Return a whole power."""
        if exponent < 0:
            raise NotEnclosed("a quotient by a function that grows")
        return Tail(_up(self.c * exponent), self.power_of * exponent, self.rate * exponent)

    def beyond(self, far: float) -> Any:
        """Bound ∫ |f| φ over |ξ| ≥ far: the exponent falls at least half as fast as far.

        With s ≤ far/4 and p ≤ far²/4, ln(f φ) has a slope below −ξ/2 from far on, on either side.
        """
        if not (self.rate <= far / 4 and self.power_of <= far * far / 4 and self.c < far):
            raise NotEnclosed("grows too fast")
        if self.c == -math.inf:
            return arb(0)
        exponent = arb(self.c) + arb(self.power_of) * arb(far).log() + arb(self.rate) * arb(far)
        top = (exponent - arb(far) ** 2 / 2).exp()
        return (-top).union(top)


def _log(size: Any) -> float:
    top = size.upper()
    return -math.inf if top.is_zero() else _up(float(top.log().upper()))


def _up(x: float) -> float:
    return x if math.isinf(x) else x + 1e-9 * abs(x) + 1e-12


AT_MOST_ONE = Tail(0.0, 0.0, 0.0)
"""The bound of weights, sines and whatever else lies between −1 and 1."""


def _exponential_of_function(x: Ball) -> Ball:
    """Return exp of a jet or a tail."""
    if isinstance(x, Tail):
        return x.exponential()
    assert isinstance(x, Jet)
    with series():
        return Jet(x.c.exp(), x.over.exp())


def _norm_of_functions(entries: Sequence[Ball]) -> Ball:
    """Return the Euclidean norm of entries of which some are jets or tails."""
    total = Ball(arb(0))
    for entry in entries:
        total = total + entry * entry
    assert isinstance(total, Jet | Tail)
    return total.through(_square_root)


def _square_root(x: Any) -> Any:
    return x.sqrt()


def _softmax_of_functions(logits: Sequence[Ball]) -> list[Ball]:
    """Return softmax of logits of which some are jets or tails."""
    if any(isinstance(logit, Tail) for logit in logits):
        return [Tail(0.0, 0.0, 0.0) for _ in logits]
    kinds, counts, places = _distinct(logits)
    weights = []
    for own in kinds:
        total = Ball(arb(0))
        for other, count in zip(kinds, counts, strict=True):
            gap = Ball(arb(0)) if other is own else other - own
            power = (
                _exponential_of_function(gap) if isinstance(gap, Jet) else Ball(gap.flat().exp())
            )
            total = total + power * Ball(arb(count))
        weights.append(Ball(arb(1)) / total)
    return [weights[place] for place in places]
