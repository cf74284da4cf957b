"""The free symbols of a claim: what each may be, and examples of it, simplest first.

n = 10, n = [2, 3, 10]         one value, or each of several
beta = "large" / "small"       from some β₀ on / as ε → 0
r = "[0, 1]", "(0, 10)"        every number of an interval
m = "2..64", "integer >= 2"    every whole number of a range
x = "any", "positive"          every (positive) number
X = "matrix T x d"             also: vector d, unit vector d, permutation T,
                               distribution n, orthonormal n x d
z = "normal", "normal vector d"    random, drawn anew in every draw
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from heedful.errors import FormulaError

LARGE = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1e3, 1e4)
"""Where a claim about a large scale is looked at; it must hold from some point on."""
SMALL = (1e-2, 1e-4, 1e-6, 1e-9)
INEXACT = ("unit vector", "distribution", "orthonormal")
"""Arrays that are of their kind only up to rounding."""
MOST_VALUES = 64
MOST_WHOLE_NUMBERS = 1000
"""Ranges of so many whole numbers are looked at one by one."""


@dataclass(frozen=True)
class Values:
    """One of a few numbers."""

    numbers: tuple[float, ...]


@dataclass(frozen=True)
class Interval:
    """Every number (or whole number) between two ends."""

    low: float
    high: float
    integer: bool = False
    open_low: bool = False
    open_high: bool = False

    def examples(self, rng: np.random.Generator, count: int) -> tuple[float, ...]:
        """Return simple numbers of the interval first, then random ones."""
        simple = [0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, 5.0, 10.0, -10.0, 64.0, 100.0, 1e3, 1e-3]
        ends = [end for end in (self.low, self.high) if math.isfinite(end)]
        low = self.low if math.isfinite(self.low) else min(-1e3, self.high - 1e3)
        high = self.high if math.isfinite(self.high) else max(1e3, self.low + 1e3)
        middle = [(low + high) / 2]
        random = list(rng.uniform(low, high, size=count))
        plain = sorted((x for x in simple if self.contains(x)), key=abs)
        far = [x for x in (1e3, -1e3, 1e6) if self.contains(x) and not ends]
        candidates = [*plain[: count - 5], *far, *ends, *middle, *plain[count - 5 :], *random]
        if self.integer:
            candidates = [float(round(x)) for x in candidates]
        kept = list(dict.fromkeys(x for x in candidates if self.contains(x)))
        return tuple(kept[:count])

    def contains(self, x: float) -> bool:
        """Tell whether x is inside."""
        above = x > self.low if self.open_low else x >= self.low
        below = x < self.high if self.open_high else x <= self.high
        return above and below and (not self.integer or x == round(x))


@dataclass(frozen=True)
class Large:
    """A scale that is as large as one likes: the claim must hold from some β₀ on."""


@dataclass(frozen=True)
class Small:
    """A positive number as small as one likes."""


@dataclass(frozen=True)
class Array:
    """An arbitrary vector or matrix, or one of a special kind."""

    kind: str
    shape: tuple[str, ...]

    @property
    def random(self) -> bool:
        """Whether it is drawn from a distribution, rather than arbitrary."""
        return self.kind.startswith("normal")


Domain = Values | Interval | Large | Small | Array

_ARRAY = re.compile(
    r"(vector|unit vector|matrix|permutation|distribution|orthonormal|normal vector|"
    r"normal matrix|normal)(?:\s+(.+))?"
)
_INTERVAL = re.compile(r"([\[(])\s*([^,\s]+)\s*,\s*([^,\s]+)\s*([\])])")
_AXES = {
    "vector": 1,
    "unit vector": 1,
    "distribution": 1,
    "permutation": 1,
    "normal vector": 1,
    "matrix": 2,
    "orthonormal": 2,
    "normal matrix": 2,
    "normal": 0,
}
_EXPECTED = (
    'a number, a list of numbers, "large", "small", "any", "positive", an interval such as '
    '"[0, 1]", whole numbers such as "2..64", or an array such as "matrix T x d"'
)


def domain_of(name: str, spec: Any) -> Domain:
    """Read what a symbol may be.

    >>> domain_of("n", [2, 3])
    Values(numbers=(2.0, 3.0))
    >>> domain_of("X", "matrix T x d")
    Array(kind='matrix', shape=('T', 'd'))
    """
    if isinstance(spec, bool):
        raise _unknown(name, spec)
    if isinstance(spec, int | float):
        return Values((_finite(name, spec),))
    if isinstance(spec, list | tuple):
        return _values(name, spec)
    if not isinstance(spec, str):
        raise _unknown(name, spec)
    text = " ".join(spec.split())
    words: dict[str, Domain] = {
        "large": Large(),
        **dict.fromkeys((">> 0", "≫ 0", ">> 1", "≫ 1", ">>0", "≫0"), Large()),
        "small": Small(),
        "vanishing": Small(),
        "any": Interval(-math.inf, math.inf),
        "real": Interval(-math.inf, math.inf),
        "positive": Interval(0.0, math.inf, open_low=True),
        "natural": Interval(0.0, math.inf, integer=True),
    }
    if text in words:
        return words[text]
    if found := re.fullmatch(r"(-?\d+)\s*\.\.\s*(-?\d+)", text):
        first, last = int(found[1]), int(found[2])
        _told_apart(name, found[1])
        _told_apart(name, found[2])
        if 0 <= last - first < MOST_WHOLE_NUMBERS:  # few enough to look at every one
            return Values(tuple(float(number) for number in range(first, last + 1)))
        return Interval(float(first), float(last), integer=True)
    if found := re.fullmatch(r"integer(?:s)?\s*(>=|>)\s*(-?\d+)", text):
        low = float(found[2]) + (1.0 if found[1] == ">" else 0.0)
        return Interval(low, math.inf, integer=True)
    if found := _INTERVAL.fullmatch(text):
        low, high = _end(name, found[2]), _end(name, found[3])
        if not low < high:
            raise FormulaError(
                f"where.{name}",
                f"the interval {text} is empty",
                expected="the first end below the second",
            )
        return Interval(low, high, open_low=found[1] == "(", open_high=found[4] == ")")
    if found := _ARRAY.fullmatch(text):
        shape = tuple(part.strip() for part in re.split(r"[x×,]", found[2] or "") if part.strip())
        if len(shape) != _AXES[found[1]]:
            raise FormulaError(
                f"where.{name}",
                f"{text!r} names {len(shape)} sizes",
                expected=f"{_AXES[found[1]]} for a {found[1]}",
            )
        return Array(found[1], shape)
    raise _unknown(name, spec)


def array_examples(
    domain: Array, sizes: Mapping[str, int], rng: np.random.Generator, count: int
) -> Iterator[Any]:
    """Yield examples of an array, simplest first: small whole numbers, then random ones."""
    shape = tuple(size_of(part, sizes) for part in domain.shape)
    makers = {
        "vector": _plain,
        "matrix": _plain,
        "unit vector": _unit,
        "permutation": _permutation,
        "distribution": _distribution,
        "orthonormal": _orthonormal,
    }
    maker = makers[domain.kind]
    for position in range(count):
        yield maker(shape, rng, position)


def size_of(text: str, sizes: Mapping[str, int]) -> int:
    """Return a size such as "T", "4" or "2d" as a number."""
    found = re.fullmatch(r"(\d*)\s*\*?\s*([A-Za-z_]\w*)?", text)
    if found is None or not (found[1] or found[2]):
        raise FormulaError("where", f"{text!r} is not a size", expected='a size such as "d" or "4"')
    factor = int(found[1]) if found[1] else 1
    if not found[2]:
        return factor
    if found[2] not in sizes:
        raise FormulaError(
            "where",
            f"the size {found[2]!r} is not declared",
            expected=f"one of {', '.join(sorted(sizes)) or 'none'}",
            hint=f"declare it, for instance where = {{ {found[2]} = [2, 3] }}",
        )
    return factor * int(sizes[found[2]])


def _plain(shape: tuple[int, ...], rng: np.random.Generator, position: int) -> Any:
    if position == 0 and len(shape) == 2 and shape[0] == shape[1]:
        return np.eye(shape[0])
    if position <= 1:
        return rng.integers(-1, 2, size=shape).astype(float)
    if position == 2:
        return np.zeros(shape)
    if position <= 4:
        return rng.integers(-3, 4, size=shape).astype(float)
    return rng.standard_normal(shape) * (1.0 if position % 3 else 4.0)


def _unit(shape: tuple[int, ...], rng: np.random.Generator, position: int) -> Any:
    if position < shape[0]:
        return np.eye(shape[0])[position]
    draw = rng.standard_normal(shape)
    return draw / np.linalg.norm(draw)


def _permutation(shape: tuple[int, ...], rng: np.random.Generator, position: int) -> Any:
    order = np.arange(shape[0])
    if position == 0 and shape[0] > 1:
        order[:2] = order[1::-1]  # the simplest: two neighbours change places
    else:
        order = rng.permutation(shape[0])
    return np.eye(shape[0])[order]


def _distribution(shape: tuple[int, ...], rng: np.random.Generator, position: int) -> Any:
    if position == 0:
        return np.full(shape, 1.0 / shape[0])
    if position == 1:
        return np.eye(shape[0])[0]
    return rng.dirichlet(np.full(shape[0], 0.5 if position % 2 else 2.0))


def _orthonormal(shape: tuple[int, ...], rng: np.random.Generator, position: int) -> Any:
    if shape[0] > shape[1]:
        raise FormulaError(
            "where",
            f"{shape[0]} rows cannot be orthonormal in {shape[1]} dimensions",
            expected="at most as many rows as columns",
        )
    if position == 0:
        return np.eye(shape[0], shape[1])
    return np.linalg.qr(rng.standard_normal((shape[1], shape[0])))[0].T


def _values(name: str, spec: Any) -> Values:
    if not spec or len(spec) > MOST_VALUES:
        raise FormulaError(
            f"where.{name}",
            f"lists {len(spec)} values",
            expected=f"1 to {MOST_VALUES} numbers were expected",
        )
    return Values(tuple(_finite(name, value) for value in spec))


def _finite(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _unknown(name, value)
    if isinstance(value, int) and abs(value) > 10**18:
        raise FormulaError(f"where.{name}", f"{value:.3e} is out of range", expected="below 1e18")
    if not math.isfinite(value):
        raise FormulaError(f"where.{name}", f"is {value}", expected="a finite number")
    return _told_apart(name, str(value))


def _told_apart(name: str, text: str) -> float:
    """Return a number, or refuse one that float64 would take for another."""
    number = float(text)
    if Fraction(text) != Fraction(repr(number)):
        raise FormulaError(
            f"where.{name}",
            f"{text} has more digits than float64 can tell apart; it would be read as {number!r}",
            expected="a number of at most 15 digits",
        )
    return number


def _end(name: str, text: str) -> float:
    special = {"inf": math.inf, "+inf": math.inf, "∞": math.inf, "-inf": -math.inf, "-∞": -math.inf}
    if text in special:
        return special[text]
    try:
        return _told_apart(name, text)
    except (ValueError, OverflowError):
        raise FormulaError(
            f"where.{name}", f"{text!r} is not a number", expected="the end of an interval"
        ) from None


def _unknown(name: str, spec: Any) -> FormulaError:
    return FormulaError(
        f"where.{name}", f"{str(spec)[:60]!r} is not understood", expected=_EXPECTED
    )
