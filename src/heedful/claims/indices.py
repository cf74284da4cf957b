"""Bound indices: over which members or positions a `for all` or a sum runs.

An index that stands below a family runs over its members: i of `alpha_i` over the keys,
counted from 1. Any other is a position and needs a bound: s of `phi(s) … s < T` runs over
0 … T − 1. Both evaluators, in float64 and in balls, take their cases from here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from heedful.claims.language.tree import Compare, Entry, Expression, Name, names_in, walk
from heedful.errors import FormulaError

MOST_CASES = 4096
"""Cases that are looked at one by one; beyond, a fixed selection, or none where all count."""


EMPTY_FOLDS = {"sum": 0, "prod": 1}
"""What a fold over no members comes to; a largest of nothing there is not."""


class Place(NamedTuple):
    """One value of a bound index."""

    position: int
    """The member it stands for, from 0."""
    number: int
    """The number it stands for in arithmetic."""


class Lookup(NamedTuple):
    """What must be known about the world to range over its indices."""

    members: Callable[[str], int | None]
    """How many members a family has, None if there is no such family."""
    entries: Callable[[Expression], int]
    """How many entries an expression has."""
    number: Callable[[Expression], float | None]
    """What a bound comes to, None if it is not known."""


def cases(
    indices: tuple[str, ...], condition: Expression | None, body: Expression, lookup: Lookup
) -> tuple[Iterator[tuple[Place, ...]], bool]:
    """Return the cases of bound indices, and whether these are all there are."""
    ranges = [_range(index, condition, body, lookup) for index in indices]
    if math.prod(len(each) for each in ranges) <= MOST_CASES:
        return itertools.product(*ranges), True
    return _selection(ranges), False


def _range(
    index: str, condition: Expression | None, body: Expression, lookup: Lookup
) -> list[Place]:
    names = names_in(body) | (names_in(condition) if condition is not None else set())
    for name in sorted(names):
        base, underscore, member = name.rpartition("_")
        if underscore and member == index and (count := lookup.members(base)) is not None:
            return [Place(place, place + 1) for place in range(count)]
    for part in walk(body):
        if isinstance(part, Entry) and any(
            isinstance(inner, Name) and inner.text == index for inner in part.indices
        ):
            return [Place(place, place + 1) for place in range(lookup.entries(part.base))]
    return [Place(t, t) for t in range(_bound(index, condition, lookup))]


def _bound(index: str, condition: Expression | None, lookup: Lookup) -> int:
    relations = [part for part in walk(condition) if isinstance(part, Compare)] if condition else []
    upper = [part for part in relations if part.operator in ("<", "<=")]
    own = [part for part in upper if isinstance(part.left, Name) and part.left.text == index]
    for part in (*own, *upper):
        limit = lookup.number(part.right)
        if limit is not None and math.isfinite(limit):
            return max(0, round(limit) + (1 if part.operator == "<=" else 0))
    raise FormulaError(
        "formula",
        f"the index {index!r} has no range",
        expected=f"members of a family, or a bound such as `{index} < T`",
    )


def _selection(ranges: list[list[Place]]) -> Iterator[tuple[Place, ...]]:
    """A fixed choice when there are too many: the small ones, neighbours, and random ones."""
    rng = np.random.default_rng(0)
    small = [each[: max(2, int(MOST_CASES ** (1 / len(ranges)) / 2))] for each in ranges]
    yield from itertools.product(*small)
    for _ in range(MOST_CASES // 2):
        yield tuple(each[int(rng.integers(len(each)))] for each in ranges)
