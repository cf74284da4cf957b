"""The smallest change that makes a refuted claim hold, found by trying.

Candidates are ordered by how little they change: a scale on the query, a condition, the
order of a product, a corrected constant, a smaller range. Each is judged like any claim; the
first that holds is the repair.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from heedful.claims.claim import Claim
from heedful.claims.definitions import map_children
from heedful.claims.language import parse_value, show
from heedful.claims.language.tree import Binary, Compare, Expression, Name, Number, Unary, walk
from heedful.claims.problem import Problem
from heedful.claims.symbols import Array, Values
from heedful.claims.thresholds import rounded_up
from heedful.claims.verdict import Counterexample, Repair, Verdict
from heedful.errors import FormulaError

SECONDS_EACH = 4.0
OPPOSITE: dict[str, Literal["<", "<=", ">", ">="]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
TELLING = 1e-3
"""The smallest share of a wanted bound that is still worth saying."""
MOST_RANGE = 8
"""Values of a list that are judged one by one to find those for which a claim holds."""


@dataclass(frozen=True)
class Candidate:
    """A change that may mend a claim."""

    kind: str
    statement: str
    changes: dict[str, Any]


def find_repair(
    problem: Problem, counterexample: Counterexample | None, deadline: float
) -> Repair | None:
    """Return the first candidate that holds, or None."""
    for make in (_scale, _condition, _order, _mask, _constant, _bound, _range, _reversed):
        if time.perf_counter() > deadline:
            return None
        for candidate in make(problem):
            if time.perf_counter() > deadline:
                return None
            verdict = _judged(problem.claim.changed(**candidate.changes))
            if verdict is not None and verdict.holds:
                return Repair(
                    kind=candidate.kind,
                    statement=candidate.statement,
                    changes=candidate.changes,
                    verdict=verdict.verdict,
                )
    return None


def _judged(claim: Claim) -> Verdict | None:
    from heedful.claims.judge import judge

    try:
        return judge(claim, seconds=SECONDS_EACH, repair=False)
    except FormulaError:
        return None


def _scale(problem: Problem) -> Iterator[Candidate]:
    """A scale on every query, and the smallest that does."""
    claim = problem.claim
    heads = (claim.query,) if claim.query is not None else claim.heads
    if not heads or problem.large or "scale" in claim.where:
        return
    large = claim.changed(
        **_with_heads(claim, [f"scale ({head})" for head in heads]),
        where={**claim.where, "scale": "large"},
    )
    verdict = _judged(large)
    if verdict is None or not verdict.holds:
        return
    bounds = verdict.evidence.numbers.get("beta_0") or {}
    if bounds:
        bound = rounded_up(max(float(value) for value in bounds.values()))
        formula = verdict.evidence.numbers.get("beta_0_formula")
        note = f" (in general {formula.replace('scale', 'scale')})" if formula else ""
        yield Candidate(
            "scale",
            f"multiply the query by at least {bound:g}{note}",
            _with_heads(claim, [f"{bound:g} ({head})" for head in heads]),
        )
    yield Candidate(
        "scale",
        "multiply the query by a scale that is large enough",
        {
            **_with_heads(claim, [f"scale ({head})" for head in heads]),
            "where": {**claim.where, "scale": "large"},
        },
    )


def _condition(problem: Problem) -> Iterator[Candidate]:
    """Leave out the draws, or the keys, in which the wanted key turns away from its query."""
    claim = problem.claim
    if claim.keys != "gaussian":
        yield from _leading(problem)
    if claim.keys != "gaussian" or claim.given is not None:
        return
    for member in problem.covariance:
        if member == "others":
            continue
        own = parse_value(f"k_{member}^T mu_{member}")
        if any(own in walk(tree) for tree in problem.expectations):
            continue  # a claim about that very number is not mended by presuming it
        for threshold in ("0", "1/4", "1/2"):
            condition = f"k_{member}^T mu_{member} > {threshold}"
            yield Candidate("condition", f"given that {condition}", {"given": condition})


def _leading(problem: Problem) -> Iterator[Candidate]:
    """Ask that the key whose weight the claim is about has the largest score."""
    claim = problem.claim
    if len(problem.heads) != 1 or len(claim.expect) != 1:
        return
    tree = problem.expectations[0]
    if isinstance(tree, Compare) and isinstance(tree.left, Name):
        base, _, member = tree.left.text.rpartition("_")
        if base == "alpha" and tree.operator in (">", ">="):
            condition = f"k_{member}^T q > k_i^T q for all i != {member}"
            whole = condition if claim.given is None else f"{claim.given} and ({condition})"
            yield Candidate("condition", f"given that {condition}", {"given": whole})


def _order(problem: Problem) -> Iterator[Candidate]:
    """Put the permutation on the other side of what it permutes."""
    permutations = {
        name
        for name, domain in problem.domains.items()
        if isinstance(domain, Array) and domain.kind == "permutation"
    }
    if not permutations:
        return
    compiled = [_raw(text, problem) for text in problem.claim.expect]

    def swapped(node: Expression) -> Expression:
        made = map_children(node, swapped)
        if isinstance(made, Binary) and made.operator == "*":
            left, right = made.left, made.right
            if isinstance(right, Name) and right.text in permutations:
                return Binary("*", right, left)
        return made

    moved = [swapped(tree) for tree in compiled]
    if moved == compiled:
        return  # every permutation already stands on the left, where the tokens are
    texts = tuple(show(tree) for tree in moved)
    domains = dict(problem.claim.where)
    for name in permutations:
        domain = problem.domains[name]
        assert isinstance(domain, Array)
        # On the other side the permutation must have the size of the other axis.
        for other in problem.domains.values():
            if (
                isinstance(other, Array)
                and other.kind == "matrix"
                and (other.shape[1] == domain.shape[0])
            ):
                domains[name] = f"permutation {other.shape[0]}"
                break
    yield Candidate(
        "order",
        "put the permutation on the other side: " + " and ".join(texts),
        {"expect": texts, "where": domains},
    )


def _mask(problem: Problem) -> Iterator[Candidate]:
    """Leave out the causal mask."""
    claim = problem.claim
    if not any("causal" in text for text in (*claim.let.values(), *claim.expect)):
        return

    def unmasked(text: str) -> str:
        return re.sub(r"\s*\+\s*causal\(\w+\)", "", text)

    yield Candidate(
        "mask",
        "leave out the causal mask",
        {
            "let": {name: unmasked(text) for name, text in claim.let.items()},
            "expect": tuple(unmasked(text) for text in claim.expect),
        },
    )


def _constant(problem: Problem) -> Iterator[Candidate]:
    """Replace the wanted combination of values by the one that really comes out."""
    from heedful.claims.proofs import limit_weights
    from heedful.claims.search import Case, all_cases, outcome_of

    claim = problem.claim
    if len(claim.expect) != 1 or problem.noisy or claim.keys is None:
        return
    tree = _raw(claim.expect[0], problem)
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


def _bound(problem: Problem) -> Iterator[Candidate]:
    """Replace a number that is too tight by the one that holds."""
    claim = problem.claim
    if len(claim.expect) != 1:
        return
    tree = _raw(claim.expect[0], problem)
    if not isinstance(tree, Compare) or tree.operator == "=" or tree.operator == "!=":
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


def _range(problem: Problem) -> Iterator[Candidate]:
    """Keep the listed values for which it holds."""
    claim = problem.claim
    for name, domain in problem.domains.items():
        if not isinstance(domain, Values) or not 2 <= len(domain.numbers) <= MOST_RANGE:
            continue
        kept = []
        for value in domain.numbers:
            verdict = _judged(claim.changed(where={**claim.where, name: _whole(value)}))
            if verdict is not None and verdict.holds:
                kept.append(_whole(value))
        if kept and len(kept) < len(domain.numbers):
            shown = ", ".join(f"{value:g}" for value in kept)
            yield Candidate(
                "range", f"it holds for {name} = {shown}", {"where": {**claim.where, name: kept}}
            )


def _reversed(problem: Problem) -> Iterator[Candidate]:
    """Turn the statement round."""
    if len(problem.claim.expect) != 1:
        return
    tree = _raw(problem.claim.expect[0], problem)
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


def _with_heads(claim: Claim, heads: list[str]) -> dict[str, Any]:
    return {"query": heads[0]} if claim.query is not None else {"heads": tuple(heads)}


def _raw(text: str, problem: Problem) -> Expression:
    """Return an expectation as written, before definitions are expanded."""
    from heedful.claims.language import parse

    arities = {
        key.partition("(")[0].strip(): key.count(",") + 1 for key in problem.claim.let if "(" in key
    }
    return parse(text, functions=arities)


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


__all__ = ["Candidate", "find_repair"]
