"""Repairs that keep what a claim is about and change what it says.

The combination of values that really comes out, the bound or tolerance that holds, the values
for which it holds, or the contrary: candidates that `repair` tries in this order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from heedful.claims.candidates import Candidate, judged, written_tree
from heedful.claims.language import show
from heedful.claims.language.tree import Compare, Expression, Name, Number, Unary
from heedful.claims.problem import Problem
from heedful.claims.symbols import Large, Values
from heedful.errors import FormulaError

OPPOSITE: dict[str, Literal["<", "<=", ">", ">="]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
TELLING = 1e-3
"""The smallest share of a wanted bound that is still worth saying."""
NEARLY = 0.1
"""How far two sides may be apart to say that they are nearly equal."""
MOST_RANGE = 8
"""Values of a list that are judged one by one to find those for which a claim holds."""


def what_comes_out(problem: Problem) -> Iterator[Candidate]:
    """Replace the wanted combination of values by the one that really comes out."""
    from heedful.claims.proofs import limit_weights
    from heedful.claims.search import Case, all_cases, outcome_of

    claim = problem.claim
    if len(claim.expect) != 1 or problem.noisy or claim.keys is None:
        return
    tree = written_tree(claim.expect[0], problem)
    if not (isinstance(tree, Compare) and tree.operator == "~"):
        return
    case = _largest_case(all_cases(problem, np.random.default_rng(claim.seed)))
    if case is None:
        return
    weights: list[float] | None = None
    if problem.large and isinstance(tree.left, Name) and tree.left.text == "c":
        weights = limit_weights(problem, case)
    elif not problem.large:
        try:
            left = outcome_of(problem, Case(case.scalars, case.arrays)).truth.left
        except FormulaError:
            return
        if left is not None and left.formal and left.kind == "vector":
            weights = [float(x) for x in left.array[0]]
    text = None if weights is None else _combination(weights, problem)
    if text is None:
        return
    within = "" if tree.within is None else f" within {show(tree.within)}"
    yield Candidate(
        "constant",
        f"what comes out is {text}",
        {"expect": (f"{show(tree.left)} ~ {text}{within}",)},
    )


def _combination(weights: list[float], problem: Problem) -> str | None:
    """Write weights as a combination of named values, if few of them matter."""
    names = {
        place: name
        for name, place in {name: place for place, name in enumerate(problem.members)}.items()
    }
    parts = []
    for place, weight in enumerate(weights):
        fraction = Fraction(weight).limit_denominator(12)
        if abs(weight) < 1e-4:
            continue
        if place not in names or abs(float(fraction) - weight) > 1e-4:
            return None
        parts.append(f"v_{names[place]}" if fraction == 1 else f"{fraction} v_{names[place]}")
    return " + ".join(parts) or None


def a_bound(problem: Problem) -> Iterator[Candidate]:
    """Replace a number that is too tight by the one that holds."""
    claim = problem.claim
    if len(claim.expect) != 1:
        return
    tree = written_tree(claim.expect[0], problem)
    if not isinstance(tree, Compare) or tree.operator == "!=":
        return
    if tree.operator == "=":
        yield from _nearly(problem, tree)
        return
    if tree.operator == "~":
        yield from _tolerances(problem, tree)
        return
    if not isinstance(tree.right, Number):
        return
    found = _left_values(problem)
    if not found:
        return
    upper = tree.operator in ("<", "<=")
    worst = max(found) if upper else min(found)
    rounded = _outward(worst, up=upper)
    if abs(float(rounded)) < TELLING * abs(float(tree.right.value)):
        return  # "at least 1e-21" holds, but says nothing
    text = f"{show(tree.left)} {tree.operator} {rounded}"
    yield Candidate("constant", f"the bound that holds is {rounded}", {"expect": (text,)})


def _tolerances(problem: Problem, tree: Compare) -> Iterator[Candidate]:
    left = show(tree.left)
    right = show(tree.right)
    for within in ("0.1", "0.2", "0.3"):
        if tree.within is None or float(within) > _number(tree.within):
            yield Candidate(
                "tolerance",
                f"it holds within {within}",
                {"expect": (f"{left} ~ {right} within {within}",)},
            )


def _nearly(problem: Problem, tree: Compare) -> Iterator[Candidate]:
    """Say ≈ for =, where all cases are listed and the sides differ by little."""
    from heedful.claims.search import all_cases, eventually

    listed = all(isinstance(domain, Values | Large) for domain in problem.domains.values())
    if problem.noisy or not listed or problem.claim.keys in ("unit", "any"):
        return
    gaps = [0.01] if problem.large else []
    for case in () if problem.large else all_cases(problem, np.random.default_rng(0)):
        try:
            gaps.append(float(np.max(eventually(problem, case)[1].truth.gap)))
        except FormulaError:
            continue
    if gaps and 0 < max(gaps) <= NEARLY:
        within = _outward(max(gaps), up=True)
        text = f"{show(tree.left)} ~ {show(tree.right)} within {within}"
        yield Candidate("tolerance", f"it holds only nearly: within {within}", {"expect": (text,)})


def _left_values(problem: Problem) -> list[float]:
    """Return what the left side comes to in every case."""
    from heedful.claims import statistics
    from heedful.claims.search import all_cases, eventually

    found = []
    for case in all_cases(problem, np.random.default_rng(problem.claim.seed)):
        try:
            if problem.noisy:
                estimate = statistics.estimate(problem, case)
                found += [estimate.left - estimate.error, estimate.left + estimate.error]
            else:
                truth = eventually(problem, case)[1].truth
                if truth.left is not None:
                    found.append(float(np.asarray(truth.left.array).flat[0]))
        except FormulaError:
            continue
        if len(found) >= 60:
            break
    return [value for value in found if math.isfinite(value)]


def a_smaller_range(problem: Problem) -> Iterator[Candidate]:
    """Keep the listed values for which it holds."""
    claim = problem.claim
    for name, domain in problem.domains.items():
        if not isinstance(domain, Values) or not 2 <= len(domain.numbers) <= MOST_RANGE:
            continue
        kept = []
        for value in domain.numbers:
            verdict = judged(claim.changed(where={**claim.where, name: _whole(value)}))
            if verdict is not None and verdict.holds:
                kept.append(_whole(value))
        if kept and len(kept) < len(domain.numbers):
            shown = ", ".join(f"{value:g}" for value in kept)
            yield Candidate(
                "range", f"it holds for {name} = {shown}", {"where": {**claim.where, name: kept}}
            )


def the_contrary(problem: Problem) -> Iterator[Candidate]:
    """Turn the statement round."""
    if len(problem.claim.expect) != 1:
        return
    tree = written_tree(problem.claim.expect[0], problem)
    match tree:
        case Unary("not", operand):
            turned = operand
        case Compare("<" | "<=" | ">" | ">=" as operator, left, right) if not (
            isinstance(left, Number) or isinstance(right, Number)
        ):
            turned = Compare(OPPOSITE[operator], left, right)
        case _:
            return
    text = show(turned)
    yield Candidate("relation", f"the contrary holds: {text}", {"expect": (text,)})


def _largest_case(cases: Iterator[Any]) -> Any:
    best = None
    for case in cases:
        if best is None or sum(case.scalars.values()) > sum(best.scalars.values()):
            best = case
    return best


def _outward(value: float, *, up: bool) -> str:
    if value == 0:
        return "0"
    digits = 2 - math.floor(math.log10(abs(value)))
    scale = 10.0**digits
    rounded = (math.ceil if up else math.floor)(value * scale + (1e-9 if up else -1e-9)) / scale
    return f"{rounded:.{max(digits, 0)}f}".rstrip("0").rstrip(".") if digits > 0 else f"{rounded:g}"


def _number(node: Expression) -> float:
    return float(node.value) if isinstance(node, Number) else math.inf


def _whole(value: float) -> Any:
    return int(value) if value == round(value) else value
