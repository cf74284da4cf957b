"""Relations between values, and statements joined by words: draw by draw, with their gaps.

A gap is by how much a statement fails (above 0) or the slack with which it holds (below 0).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heedful.claims.language.tree import Compare
from heedful.claims.values import Truth, Value, distance
from heedful.errors import FormulaError

ROUNDING = 1e-9
"""Relative slack of a comparison in float64; what is closer is left to exact arithmetic."""


def related(node: Compare, left: Value, right: Value, within: float) -> Truth:
    """Return whether a relation holds between two values; `within` is the tolerance of ≈."""
    slack = ROUNDING * (1.0 + _size(left) + _size(right))
    if node.operator in ("~", "=", "!="):
        apart = distance(left, right)
        if node.operator == "~":
            return Truth(apart <= within * (1 + 1e-12) + 1e-15, apart - within, left, right)
        if node.operator == "=":
            return Truth(apart <= slack, apart - slack, left, right)
        return Truth(apart > slack, slack - apart, left, right)
    if {left.kind, right.kind} != {"scalar"}:
        raise FormulaError(
            "formula",
            f"compares a {left.describe()} and a {right.describe()}",
            expected="two scalars; use ≈ or = for vectors",
        )
    gap = left.array - right.array
    if node.operator in (">", ">="):
        gap = -gap
    strict = node.operator in ("<", ">")
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
    flat = np.abs(x.array.reshape(len(x.array), -1))
    return np.sqrt((flat**2).sum(axis=1))
