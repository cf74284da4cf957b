"""Single points at which a claim may fail: extremes, special arrays, and roots of both sides.

A claim that survived its cases may still fail at one number of an interval (`r != 3.7`), for
very large or very small arrays (`norm(x) <= 1000`), or for special ones (`layernorm` of equal
entries). Such points are not drawn at random, but they can be looked for: at the ends of every
scale, along one symbol at a time where the slack of the claim is least, and where the two sides
of a comparison meet. What is found counts only if exact arithmetic confirms it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np

from heedful.claims.compile import INEXACT, Array, CompiledClaim, Interval
from heedful.claims.evaluate.float import Evaluator
from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Expression,
    ForAll,
    Logic,
    Number,
    Unary,
    map_children,
)
from heedful.claims.proofs import crosses, exact_answer, exact_gap, without_value
from heedful.claims.search import Case, known_exactly
from heedful.claims.values import Value
from heedful.claims.worlds import build_world
from heedful.errors import FormulaError

SCALES = (1e-3, 1e3, 1e-9, 1e6, 1e-30, 1e30, 1e100)
"""By what arrays are multiplied, and how large and small numbers are tried."""
NODES = 257
"""Numbers of an interval at which the slack is looked at."""
WIDEST = 50.0
"""How far from 0 a number without bounds is looked at between the scales."""
MOST_BASES, MOST_ENTRIES, MOST_CANDIDATES = 3, 4, 24
"""Cases, entries of an array in each, and points along each of them that are looked at closely."""
DENOMINATORS = (1, 10, 100, 1000, 10**4, 10**6)
REFINEMENTS, BETWEEN = 20, 48
"""How often a bracket round a maximum is narrowed, and into how many parts it is cut each time."""
MODERATE = (1e-3, 100.0)
"""Entries of a case in which two sides that agree are taken to be equal, until told otherwise."""
EQUAL = "both sides agree to a thousand digits: if they are equal, it fails there"
TOUCH = "or a little beside it both sides come together: if they meet, it fails there"
TOUCHING = 1e-5
"""Two sides that meet in one point are this many times nearer there than so far beside it."""
MOST_NUMBERS = 40
"""Entries of all arrays of a case to start from: with more of them every look takes long."""
SHARE, MOST_SECONDS = 0.25, 1.5
"""How much of a claim's time may go into looking for points."""


@dataclass(frozen=True)
class FailingPoint:
    """A case in which exact arithmetic says that the claim fails."""

    case: Case
    why: str = ""
    """Why it has no value there, if that is how it fails."""
    between: tuple[str, Fraction, Fraction] | None = None
    """A symbol and two numbers between which it fails at some point that has no short name."""
    doubt: str = ""
    """Why it cannot be told whether it fails there, if that is so."""


def failing_point(
    compiled: CompiledClaim, cases: list[Case], deadline: float
) -> FailingPoint | None:
    """Return a case in which a claim surely fails, near cases in which it holds, or None.

    If there is none, a case is returned in which nobody can tell whether it fails.
    """
    if compiled.large or compiled.small or compiled.noisy:
        return None
    left = max(0.0, deadline - time.thread_time())
    end = time.thread_time() + min(MOST_SECONDS, SHARE * left)
    exact = [case for case in cases if known_exactly(compiled, case)]
    bases = _bases(exact or [made for case in cases[:1] for made in _exactly(compiled, case)])
    extremes = (_failing(compiled, case) for case in _extremes(compiled, bases))
    paths = (path.failing_point() for path in _paths(compiled, bases))
    doubtful = None
    for found in chain(extremes, paths):
        if found is not None and not found.doubt:
            return found
        doubtful = doubtful or found
        if time.thread_time() > end:
            break
    return doubtful


def _failing(compiled: CompiledClaim, case: Case) -> FailingPoint | None:
    answer = exact_answer(compiled, case)
    if answer is False:
        return FailingPoint(case)
    if answer == "not enclosed" and (reason := without_value(compiled, case)) is not None:
        return FailingPoint(case, reason)
    if answer == "too close":
        return _failing_if_equal(compiled, case)
    return None


def _failing_if_equal(compiled: CompiledClaim, case: Case) -> FailingPoint | None:
    """Return a case in which two sides meet as far as balls can tell, and then the claim fails.

    Very large or small entries say nothing: 1 − exp(−1e9) and 1 agree to a thousand digits too.
    """
    entries = [*case.scalars.values(), *(x for array in case.arrays.values() for x in array.flat)]
    if any(entry and not MODERATE[0] <= abs(entry) <= MODERATE[1] for entry in entries):
        return None
    for written, _ in _comparisons(compiled.statement):
        met = _replaced(compiled.statement, written, _met(written))
        if exact_answer(compiled, case, met) is False:
            from heedful.claims.evaluate.symbolic import equal_at  # SymPy takes 0.3 s to import

            return FailingPoint(case, doubt="" if equal_at(compiled, case, written) else EQUAL)
    return None


def _met(relation: Compare) -> Compare:
    zero = Number(Fraction(0))
    return replace(relation, left=zero, right=zero)


def _bases(cases: list[Case]) -> list[Case]:
    """Return a few cases to start from, none of them with large arrays."""
    entries = [sum(np.size(array) for array in case.arrays.values()) for case in cases]
    small = [case for case, size in zip(cases, entries, strict=True) if size <= MOST_NUMBERS]
    chosen = small or cases[:1]
    places = {round(x) for x in np.linspace(0, len(chosen) - 1, MOST_BASES)}
    return [chosen[place] for place in sorted(places)] if chosen else []


# ---- extremes -------------------------------------------------------------------------------


def _extremes(compiled: CompiledClaim, bases: list[Case]) -> Iterator[Case]:
    """Yield cases at the ends of every scale, one symbol or array at a time."""
    for case in bases:
        for name, domain in compiled.domains.items():
            if isinstance(domain, Interval):
                for value in _extreme_numbers(domain):
                    yield case.with_scalars(**{name: value})
    for case in bases:
        names = [name for name in case.arrays if _plain(compiled, name)]
        for name in names:
            for array in _special(np.asarray(case.arrays[name])):
                yield replace(case, arrays={**case.arrays, name: array})
            for factor in SCALES:
                yield replace(case, arrays={**case.arrays, name: case.arrays[name] * factor})
        yield from _exactly(compiled, case)
        alike = [name for name in names if case.arrays[name].shape == case.arrays[names[0]].shape]
        if len(alike) > 1:
            for sign in (1.0, -1.0):
                first = case.arrays[alike[0]]
                yield replace(case, arrays={**case.arrays, alike[1]: sign * first})
            for array in _special(np.asarray(case.arrays[alike[0]])):
                yield replace(case, arrays={**case.arrays, **dict.fromkeys(alike, array)})
        if len(names) > 1:
            for factor in SCALES:
                scaled = {name: case.arrays[name] * factor for name in names}
                yield replace(case, arrays={**case.arrays, **scaled})


def _exactly(compiled: CompiledClaim, case: Case) -> Iterator[Case]:
    """Yield cases whose unit vectors, frames and distributions are exactly so, and special ones.

    Unit keys are all the same, or opposite in turn.
    """
    kinds = {name: d.kind for name, d in compiled.domains.items() if isinstance(d, Array)}
    if compiled.claim.keys == "unit":
        kinds["k"] = "unit vector"
    special = {name: kind for name, kind in kinds.items() if kind in INEXACT}
    for sign in (1.0, -1.0) if special else ():
        arrays = dict(case.arrays)
        for name, kind in special.items():
            made = np.zeros_like(arrays[name])
            if kind == "orthonormal":
                np.fill_diagonal(made, sign)
            else:
                made[..., 0] = 1.0
            if kind == "unit vector" and made.ndim == 2:
                made[1::2] *= sign
            arrays[name] = made
        made_case = replace(case, arrays=arrays)
        if known_exactly(compiled, made_case):
            yield made_case


def _extreme_numbers(domain: Interval) -> list[float]:
    """Return the largest and the smallest numbers worth a look, and those next to an open end."""
    numbers = [sign * scale for scale in SCALES for sign in (1.0, -1.0)]
    if domain.integer:
        numbers = [float(round(x)) for x in numbers if 1 <= abs(x) < 1e18]
        numbers += [float(2**power) for power in range(4, 60, 4)]
    for end, inward in ((domain.low, 1.0), (domain.high, -1.0)):
        if math.isfinite(end) and not domain.integer:
            numbers += [end + inward * step for step in (1e-3, 1e-9, 1e-12)]
            numbers += [inward * 1e-300] if end == 0 else []
    return [x for x in dict.fromkeys(numbers) if domain.contains(x)]


def _special(array: Any) -> Iterator[Any]:
    """Yield arrays that formulas have trouble with: zero, all equal, nearly equal, one entry."""
    yield np.zeros_like(array)
    yield np.ones_like(array)
    nearly = np.ones_like(array)
    nearly.flat[0] += 1e-9
    yield nearly
    single = np.zeros_like(array)
    single.flat[0] = 1.0
    for scale in (1.0, 1e9, 1e-9):
        yield scale * single


def _plain(compiled: CompiledClaim, name: str) -> bool:
    domain = compiled.domains.get(name)
    arbitrary = isinstance(domain, Array) and domain.kind in ("vector", "matrix")
    return arbitrary or (name == "k" and compiled.claim.keys == "any")


# ---- along one symbol, or one entry of an array ---------------------------------------------


def _paths(compiled: CompiledClaim, bases: list[Case]) -> Iterator[_Path]:
    for case in bases:
        for name, domain in compiled.domains.items():
            if isinstance(domain, Interval):
                yield _Path(compiled, case, name, None, domain)
    whole = Interval(-math.inf, math.inf)
    for case in bases:
        for name in case.arrays:
            if _plain(compiled, name):
                places = list(np.ndindex(case.arrays[name].shape))[:MOST_ENTRIES]
                yield from (_Path(compiled, case, name, place, whole) for place in places)


@dataclass(frozen=True)
class _Path:
    """One symbol, or one entry of an array, that moves while everything else stands still."""

    compiled: CompiledClaim
    case: Case
    name: str
    entry: tuple[int, ...] | None
    domain: Interval

    def at(self, t: float, exact: Fraction | None = None) -> Case:
        """Return the case at one number of the path."""
        if self.entry is None:
            case = self.case.with_scalars(**{self.name: t})
            return case if exact is None else replace(case, exact={**case.exact, self.name: exact})
        array = np.array(self.case.arrays[self.name])
        array[self.entry] = t
        return replace(self.case, arrays={**self.case.arrays, self.name: array})

    def failing_point(self) -> FailingPoint | None:
        """Return a point of the path at which the claim surely fails."""
        doubtful = None
        for t in self._candidates():
            for number in self._named_near(t):
                found = _failing(self.compiled, self.at(float(number), number))
                if found is not None and not found.doubt:
                    return found
                doubtful = doubtful or found
            doubtful = doubtful or self._touching(t)
        crossing = None if self.entry is not None else self._crossing()
        return crossing or doubtful

    def _touching(self, t: float) -> FailingPoint | None:
        """Return a point near which a strict bound is met, as 1 by sin(r) at an irrational r.

        A maximum that is 0 shows: the gap falls with the square of the distance from it.
        """
        node = self.compiled.statement
        if self.domain.integer or not isinstance(node, Compare) or node.operator not in ("<", ">"):
            return None
        step = TOUCHING * max(1.0, abs(t))
        around = (t - step, t, t + step)
        if not all(map(self.domain.contains, around)):
            return None
        gaps = [exact_gap(self.compiled, self.at(each)) for each in around]
        if any(gap is None or gap > 0 for gap in gaps):
            return None
        before, here, after = (-gap for gap in gaps)
        if here < TOUCHING * min(before, after):
            return FailingPoint(self.at(t), doubt=TOUCH)
        return None

    def _candidates(self) -> list[float]:
        """Return where the slack of the claim, or the distance of two sides, is least."""
        points: list[float] = []
        for grid in self._grids():
            gap = self._along(grid, None)
            if gap is not None:
                points += self._refined(grid, gap, None)
            for _, node in _comparisons(self.compiled.statement):
                apart = self._along(grid, node)
                if apart is not None:
                    points += self._refined(grid, -np.abs(apart), node)
        return list(dict.fromkeys(points))[:MOST_CANDIDATES]

    def _grids(self) -> list[Any]:
        low, high = max(self.domain.low, -WIDEST), min(self.domain.high, WIDEST)
        if not low < high:  # a range far from 0
            low, high = self.domain.low, min(self.domain.high, self.domain.low + 1e4)
        grids = [np.linspace(low, high, NODES)]
        for sign in (1.0, -1.0):
            end = min(1e12, self.domain.high) if sign > 0 else min(1e12, -self.domain.low)
            if end > WIDEST:
                grids.append(np.sort(sign * np.geomspace(WIDEST, end, NODES)))
        if self.domain.integer:
            grids = [np.unique(np.round(grid)) for grid in grids]
        return [grid[[self.domain.contains(float(t)) for t in grid]] for grid in grids]

    def _along(self, grid: Any, node: Compare | None) -> Any:
        """Return the gap of the claim, or how far one comparison's sides are apart, on a grid."""
        if not len(grid):
            return None
        for inner in (slice(None), slice(1, -1)):  # at an end it may have no value
            with (
                np.errstate(all="ignore"),
                suppress(FormulaError, KeyError, ValueError, IndexError),
            ):
                values = self._values(grid[inner], node)
                whole = np.full(grid.shape, -np.inf if node is None else np.inf)
                if values is not None:
                    whole[inner] = values
                    return whole
        return None

    def _values(self, grid: Any, node: Compare | None) -> Any:
        scalars: dict[str, Any] = dict(self.case.scalars)
        arrays: dict[str, Any] = dict(self.case.arrays)
        if self.entry is None:
            scalars[self.name] = Value(np.asarray(grid, dtype=float), "scalar")
        else:
            moved = np.repeat(np.asarray(arrays[self.name], dtype=float)[None], len(grid), axis=0)
            moved.T[self.entry[::-1]] = grid
            kind: Any = "vector" if moved.ndim == 2 else "matrix"
            arrays[self.name] = Value(moved, kind)
        evaluator = Evaluator(build_world(self.compiled, scalars, arrays))
        if node is None:
            return np.broadcast_to(evaluator.truth(self.compiled.statement).gap, grid.shape)
        left, right = evaluator.value(node.left), evaluator.value(node.right)
        if left.kind != "scalar" or right.kind != "scalar":
            return None
        return np.broadcast_to(left.array - right.array, grid.shape)

    def _refined(self, grid: Any, height: Any, node: Compare | None) -> list[float]:
        """Return where a function has its local maxima, searched between the nodes."""
        if height is None or len(grid) < 3:
            return [float(t) for t in grid] if len(grid) else []
        inner = np.concatenate(([-np.inf], height, [-np.inf]))
        peaks = np.flatnonzero((inner[1:-1] >= inner[:-2]) & (inner[1:-1] >= inner[2:]))
        peaks = peaks[np.argsort(-height[peaks])][:4]
        points = []
        for place in peaks:
            low, high = grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)]
            points.append(self._peak(float(low), float(high), node))
            points.append(float(grid[place]))
        return points

    def _peak(self, low: float, high: float, node: Compare | None) -> float:
        """Narrow a bracket round a maximum by looking at many points of it at a time."""
        best = (low + high) / 2
        for _ in range(REFINEMENTS):
            grid = np.linspace(low, high, BETWEEN + 1)
            values = self._along(grid, node)
            if values is None:
                break
            height = values if node is None else -np.abs(values)
            place = int(np.argmax(height))
            best = float(grid[place])
            low, high = float(grid[max(place - 1, 0)]), float(grid[min(place + 1, BETWEEN)])
            if high - low < 1e-15 * max(1.0, abs(best)):
                break
        return best

    def _named_near(self, t: float) -> list[Fraction]:
        """Return short numbers next to a point, and the point itself."""
        if not math.isfinite(t):
            return []
        exact = Fraction(repr(t))
        if self.domain.integer:
            near = [Fraction(math.floor(t)), Fraction(math.ceil(t))]
        else:
            near = [exact.limit_denominator(most) for most in DENOMINATORS]
            if self.entry is not None:  # entries of arrays are decimals
                near = [Fraction(repr(float(f"{t:.{digits}g}"))) for digits in (1, 2, 3, 4, 6, 9)]
            near = [x for x in near if abs(x - exact) <= 1e-7 * max(1.0, abs(t))]
        candidates = dict.fromkeys((*near, *([] if self.domain.integer else [exact])))
        return [x for x in candidates if self.domain.contains(float(x))]

    def _crossing(self) -> FailingPoint | None:
        """Return where two sides surely meet between two numbers, and the claim fails there."""
        if self.domain.integer:
            return None
        for written, node in _comparisons(self.compiled.statement):
            for grid in self._grids():
                apart = self._along(grid, node)
                if apart is None:
                    continue
                for place in np.flatnonzero(np.sign(apart[1:]) * np.sign(apart[:-1]) < 0)[:4]:
                    low, high = self._bisected(node, float(grid[place]), float(grid[place + 1]))
                    if self._meets(low, high, written, node):
                        ends = Fraction(repr(low)), Fraction(repr(high))
                        return FailingPoint(self.at((low + high) / 2), between=(self.name, *ends))
        return None

    def _meets(self, low: float, high: float, written: Compare, node: Compare) -> bool:
        """Tell whether it is proved that the claim fails where both sides meet in between."""
        met = _replaced(self.compiled.statement, written, _met(written))
        return crosses(self.compiled, self.case, (self.name, low, high), (node, met))

    def _bisected(self, node: Compare, low: float, high: float) -> tuple[float, float]:
        first = self._along(np.array([low]), node)
        for _ in range(30):
            middle = (low + high) / 2
            value = self._along(np.array([middle]), node)
            if value is None or first is None or high - low < 1e-9 * max(1.0, abs(high)):
                break
            if float(value[0]) * float(first[0]) > 0:
                low = middle
            else:
                high = middle
        return low, high


def _comparisons(node: Expression) -> list[tuple[Compare, Compare]]:
    """Return the comparisons of a statement, each with the one whose sides meet at its edge."""
    match node:
        case Logic(_, left, right):
            return [*_comparisons(left), *_comparisons(right)]
        case Unary("not", operand):
            return _comparisons(operand)
        case ForAll(_, _, body):
            return _comparisons(body)
        case Compare():
            return [(node, _base_of_zero(node))]
    return []


def _replaced(node: Expression, old: Expression, new: Expression) -> Expression:
    if node == old:
        return new
    return map_children(node, lambda part: _replaced(part, old, new))


def _base_of_zero(node: Compare) -> Compare:
    """Return x and 0 for abs(x) > 0 and x^2 > 0, which never cross 0 but touch it where x does."""
    sides = (node.left, node.right)
    for one, other in (sides, sides[::-1]):
        if isinstance(other, Number) and other.value == 0:
            match one:
                case Call("abs", (inside,)):
                    return replace(node, left=inside, right=other)
                case Binary("^", inside, Number(power)) if power > 0 and power.denominator == 1:
                    return replace(node, left=inside, right=other)
    return node
