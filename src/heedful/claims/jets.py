"""Functions of one number ξ, enclosed with their derivatives, or bounded as ξ grows.

Both are balls to the evaluator, so that every formula it can enclose it can also expand:

    Jet   f(ξ) = Σ_j f_j (ξ − m)^j + f_K(θ) (ξ − m)^K on a cell around m, by series of arb;
    Tail  |f(ξ)| ≤ exp(a) |ξ|^p exp(s |ξ|) for every |ξ| ≥ 1.

With a jet the mean of f over a cell is known to the K-th power of its width; with a tail, what
lies beyond the last cell is bounded and not cut off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from flint import arb, arb_series, ctx

from heedful.claims.balls import Ball, NotEnclosed

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
            return ONE
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


ONE = Tail(0.0, 0.0, 0.0)
"""The bound of weights, sines and whatever else lies between −1 and 1."""


def exponential(x: Jet | Tail) -> Ball:
    """Return exp of a function."""
    if isinstance(x, Tail):
        return x.exponential()
    with series():
        return Jet(x.c.exp(), x.over.exp())


def norm(entries: Sequence[Ball]) -> Ball:
    """Return the Euclidean norm of entries of which some are jets or tails."""
    total = Ball(arb(0))
    for entry in entries:
        total = total + entry * entry
    assert isinstance(total, Jet | Tail)
    return total.through(_square_root)


def _square_root(x: Any) -> Any:
    return x.sqrt()


def softmax(logits: Sequence[Ball]) -> list[Ball]:
    """Return softmax of logits of which some are jets or tails."""
    if any(isinstance(logit, Tail) for logit in logits):
        return [Tail(0.0, 0.0, 0.0) for _ in logits]
    kinds: list[Ball] = []
    counts: list[int] = []
    places: list[int] = []
    for logit in logits:  # equal logits are counted, not repeated
        place = next((i for i, kind in enumerate(kinds) if kind.same(logit)), len(kinds))
        if place == len(kinds):
            kinds.append(logit)
            counts.append(0)
        counts[place] += 1
        places.append(place)
    weights = []
    for own in kinds:
        total = Ball(arb(0))
        for other, count in zip(kinds, counts, strict=True):
            gap = Ball(arb(0)) if other is own else other - own
            power = exponential(gap) if isinstance(gap, Jet) else Ball(gap.flat().exp())
            total = total + power * Ball(arb(count))
        weights.append(Ball(arb(1)) / total)
    return [weights[place] for place in places]
