"""How large is large: the bound β₀ from which a claim holds, and its formula where one fits."""

from __future__ import annotations

import math
from collections.abc import Mapping

from heedful.claims.language.tree import Compare, Expression, Number, walk
from heedful.claims.problem import Problem


def rounded_up(bound: float) -> float:
    """Round a bound up to four figures, so that it can be said and still holds.

    >>> rounded_up(5.98141421)
    5.982
    """
    if bound <= 0.001:
        return 0.001
    digits = 3 - math.floor(math.log10(bound))
    scale = 10.0**digits
    return math.ceil(bound * scale * (1 + 1e-12) + 1e-9) / scale


def closed_form(problem: Problem, thresholds: Mapping[str, float]) -> str | None:
    """Return the formula of β₀ over n if that of m equal keys of n fits every case.

    For orthonormal keys and a query β·(sum of m keys), the error is (n−m)/(m e^β + n−m), so
    β₀ = ln((n−m)(1−ε)/(mε)).
    """
    tolerance = _tolerance(problem)
    if problem.claim.keys != "orthonormal" or tolerance is None:
        return None
    for m in (1, 2, 3, 4, 5, 8):
        if all(_fits(label, bound, m, tolerance) for label, bound in thresholds.items()):
            symbol = problem.large[0]
            below = "ε" if m == 1 else f"({m} ε)"
            head = f"{symbol}₀ = ln((n − {m})(1 − ε)/{below})"
            return f"{head} with ε = {tolerance:g}"
    return None


def _fits(label: str, bound: float, m: int, tolerance: float) -> bool:
    sizes = dict(part.split("=") for part in label.split(", ") if "=" in part)
    if "n" not in sizes:
        return False
    n = float(sizes["n"])
    if n < m:
        return False
    if n == m:
        return bound <= 1.0
    wanted = math.log((n - m) * (1 - tolerance) / (m * tolerance))
    return abs(max(wanted, 0.0) - bound) <= 2e-3 * max(1.0, wanted)


def _tolerance(problem: Problem) -> float | None:
    found: list[Expression | None] = [
        node.within
        for tree in problem.expectations
        for node in walk(tree)
        if isinstance(node, Compare) and node.operator == "~"
    ]
    if len(found) != 1:
        return None
    within = found[0]
    if within is None:
        return float(problem.claim.tolerance)
    return float(within.value) if isinstance(within, Number) else None
