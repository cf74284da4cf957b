"""The numbers of the reference meaning, and when an operation on them has no value.

A number is exact (a `Fraction`) for as long as it can be, then a ball (`arb`) that contains the
true value; plus and minus infinity are the floats of that name. A symbol may itself be a ball, so
one evaluation can speak about a whole interval at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from flint import arb

Scalar: TypeAlias = Any  # Fraction | arb | ±math.inf


class UndefinedError(Exception):
    """The expression has no value here, such as 1/0 or ln(-1)."""


class UnknownError(Exception):
    """The balls are too wide to tell which value the expression has."""


def ball(x: Scalar) -> arb:
    """Return a finite number as a ball."""
    if isinstance(x, Fraction):
        return arb(x.numerator) / arb(x.denominator)
    if isinstance(x, float):
        raise UndefinedError("infinity where a finite number is needed")
    return x


def infinite(x: Scalar) -> bool:
    return isinstance(x, float)


def sign(x: Scalar) -> int:
    """Return -1, 0 or 1, or raise UnknownError."""
    if isinstance(x, Fraction | float):
        return (x > 0) - (x < 0)
    if x > 0:
        return 1
    if x < 0:
        return -1
    if x.is_exact() and x.is_zero():
        return 0
    raise UnknownError


def plus(x: Scalar, y: Scalar) -> Scalar:
    if infinite(x) or infinite(y):
        if infinite(x) and infinite(y) and x != y:
            raise UndefinedError("infinity minus infinity")
        return x if infinite(x) else y
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x + y
    return ball(x) + ball(y)


def times(x: Scalar, y: Scalar) -> Scalar:
    if infinite(x) or infinite(y):
        direction = sign(x) * sign(y)
        if direction == 0:
            raise UndefinedError("zero times infinity")
        return math.inf * direction
    if any(isinstance(factor, Fraction) and factor == 0 for factor in (x, y)):
        return Fraction(0)
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x * y
    return ball(x) * ball(y)


def negative(x: Scalar) -> Scalar:
    return -x


def over(x: Scalar, y: Scalar) -> Scalar:
    if infinite(y):
        if infinite(x):
            raise UndefinedError("infinity over infinity")
        return Fraction(0)
    if sign_or_none(y) == 0:
        raise UndefinedError("division by zero")
    if sign_or_none(y) is None:
        raise UnknownError
    if infinite(x):
        return math.inf * sign(x) * sign(y)
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x / y
    return ball(x) / ball(y)


def sign_or_none(x: Scalar) -> int | None:
    try:
        return sign(x)
    except UnknownError:
        return None


def less(x: Scalar, y: Scalar) -> bool | None:
    """Return whether x < y, or None where the balls overlap."""
    if infinite(x) or infinite(y):
        return bool((x if infinite(x) else 0.0) < (y if infinite(y) else 0.0))
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x < y
    apart = ball(y) - ball(x)
    if apart > 0:
        return True
    return False if apart <= 0 else None


def equal(x: Scalar, y: Scalar) -> bool | None:
    """Return whether x = y; two balls that overlap may be either."""
    below, above = less(x, y), less(y, x)
    if below or above:
        return False
    return True if below is False and above is False else None


def power(x: Scalar, y: Scalar) -> Scalar:
    """x^y: whole exponents of any base but 0^-1; others of a base above 0 (and 0^y = 0, y > 0)."""
    if isinstance(y, Fraction) and y.denominator == 1 and not infinite(x):
        exponent = int(y)
        if exponent >= 0:
            size = max(map(abs, x.as_integer_ratio())) if isinstance(x, Fraction) else None
            if size is not None and exponent * size.bit_length() < 10**5:
                return x**exponent
            return ball(x) ** exponent
        return over(Fraction(1), power(x, Fraction(-exponent)))
    base = sign_or_none(x)
    if base is None:
        raise UnknownError
    if base < 0:
        raise UndefinedError("a fractional power of a negative number")
    if base == 0:
        if sign(y) > 0:
            return Fraction(0)
        raise UndefinedError("zero to a power that is not above zero")
    return exponential(times(y, logarithm(x)))


def exponential(x: Scalar) -> Scalar:
    if infinite(x):
        return math.inf if x > 0 else Fraction(0)
    return Fraction(1) if isinstance(x, Fraction) and x == 0 else ball(x).exp()


def logarithm(x: Scalar) -> Scalar:
    if infinite(x):
        if x > 0:
            return x
        raise UndefinedError("logarithm of minus infinity")
    side = sign_or_none(x)
    if side is None:
        raise UnknownError
    if side <= 0:
        raise UndefinedError("logarithm of a number that is not above zero")
    return Fraction(0) if isinstance(x, Fraction) and x == 1 else ball(x).log()


def square_root(x: Scalar) -> Scalar:
    if infinite(x) and x > 0:
        return x
    side = sign_or_none(x)
    if side is None:
        if not x >= 0:
            raise UnknownError
    elif side < 0:
        raise UndefinedError("square root of a negative number")
    if isinstance(x, Fraction):
        top, bottom = math.isqrt(x.numerator), math.isqrt(x.denominator)
        if top * top == x.numerator and bottom * bottom == x.denominator:
            return Fraction(top, bottom)
    return ball(x).sqrt()


def monotone(x: Scalar, low: Scalar, high: Scalar, function: Callable[[arb], arb]) -> Scalar:
    """Return a bounded increasing function: its limits at ±infinity, a ball between."""
    return (high if x > 0 else low) if infinite(x) else function(ball(x))


def normal_distribution(x: Scalar) -> Scalar:
    """Φ(x) = (1 + erf(x/√2)) / 2."""
    return monotone(x, Fraction(0), Fraction(1), lambda b: (1 + (b / arb(2).sqrt()).erf()) / 2)


def largest(numbers: Sequence[Scalar]) -> Scalar:
    """The largest of some numbers; of none there is no largest."""
    if not numbers:
        raise UndefinedError("the largest of nothing")
    best = numbers[0]
    for number in numbers[1:]:
        below = less(best, number)
        if below is None:
            best = ball(best).max(ball(number))
        elif below:
            best = number
    return best


def total(numbers: Sequence[Scalar]) -> Scalar:
    result: Scalar = Fraction(0)
    for number in numbers:
        result = plus(result, number)
    return result


def whole(x: Scalar) -> int:
    """Return a whole number, or raise UnknownError."""
    if isinstance(x, Fraction) and x.denominator == 1:
        return int(x)
    if isinstance(x, arb) and (unique := x.unique_fmpz()) is not None and x.is_exact():
        return int(unique)
    if isinstance(x, Fraction):
        raise UndefinedError(f"{x} is not a whole number")
    raise UnknownError


def floor(x: Scalar) -> Scalar:
    if isinstance(x, Fraction):
        return Fraction(math.floor(x))
    low, high = ball(x).lower().floor(), ball(x).upper().floor()
    if low.unique_fmpz() is None or low.unique_fmpz() != high.unique_fmpz():
        raise UnknownError
    return Fraction(int(low.unique_fmpz()))


def to_format(bits: int, smallest: int, largest_exponent: int) -> Callable[[Scalar], Scalar]:
    """Return the rounding to a binary format: nearest, ties to even, subnormals included."""

    def of(x: Fraction) -> Fraction:
        if x == 0:
            return x
        exponent = math.floor(math.log2(abs(x)))
        while abs(x) >= Fraction(2) ** (exponent + 1):
            exponent += 1
        while abs(x) < Fraction(2) ** exponent:
            exponent -= 1
        step = Fraction(2) ** (max(exponent, smallest) - bits + 1)
        rounded = round(x / step) * step  # Python rounds ties of a Fraction to even
        if abs(rounded) >= Fraction(2) ** (largest_exponent + 1):
            raise UndefinedError("too large for the format")
        return rounded

    def apply(x: Scalar) -> Scalar:
        if isinstance(x, Fraction):
            return of(x)
        ends = {of(fraction_of(end)) for end in (ball(x).lower(), ball(x).upper())}
        if len(ends) > 1:
            raise UnknownError
        return ends.pop()

    return apply


def fraction_of(x: arb) -> Fraction:
    """Return an exact ball as a fraction."""
    mantissa, exponent = x.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
