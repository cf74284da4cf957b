"""Looking for a case in which a claim fails, smallest cases first.

A case gives every symbol a value. What float64 cannot tell for sure (a strict inequality
that rounds to equality, a difference of the size of rounding) is settled in ball arithmetic
before it may count as a failure.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from heedful.claims.language.tree import Compare, Expression, walk
from heedful.claims.numeric import Evaluator, World
from heedful.claims.problem import Problem
from heedful.claims.proofs import exact_truth
from heedful.claims.symbols import LARGE, SMALL, Array, array_examples
from heedful.claims.values import Truth
from heedful.claims.worlds import TooFewKeysError, build_world
from heedful.errors import FormulaError

ARRAY_EXAMPLES = 12
MOST_EVALUATIONS = 1500
UNSURE = 1e-6


@dataclass(frozen=True)
class Case:
    """One assignment of values to every symbol that is not random."""

    scalars: dict[str, float] = field(default_factory=dict)
    arrays: dict[str, Any] = field(default_factory=dict)

    def with_scalars(self, **values: float) -> Case:
        """Return the case with some scalars replaced."""
        return replace(self, scalars={**self.scalars, **values})


@dataclass(frozen=True)
class Outcome:
    """Whether a claim holds in one case."""

    holds: bool | None
    """None when neither float64 nor balls can tell."""
    truth: Truth
    world: World


@dataclass
class Survey:
    """What a search found."""

    looked_at: int = 0
    failures: list[tuple[Case, Outcome]] = field(default_factory=list)
    unsure: int = 0
    thresholds: dict[str, float] = field(default_factory=dict)
    """For a large symbol: from where on each case holds."""
    cases: list[Case] = field(default_factory=list)
    vacuous: int = 0
    """Cases in which the condition of the claim never held."""


def survey(problem: Problem, deadline: float) -> Survey:
    """Look at many cases, smallest first; stop at the first size at which some fail."""
    found = Survey()
    rng = np.random.default_rng(problem.claim.seed)
    failed_size: float | None = None
    for case in all_cases(problem, rng):
        size = _size(case)
        if failed_size is not None and size > failed_size:
            break
        if found.looked_at >= MOST_EVALUATIONS or time.perf_counter() > deadline:
            break
        try:
            eventual, outcome, threshold = eventually(problem, case)
        except TooFewKeysError:
            continue
        found.looked_at += 1
        found.cases.append(case)
        if threshold is not None:
            found.thresholds[_label(case)] = threshold
        if outcome.holds is None:
            found.unsure += 1
        elif not outcome.holds:
            found.failures.append((eventual, outcome))
            failed_size = size
    if not found.looked_at:
        raise FormulaError(
            f"{problem.claim.id}.where",
            "leaves no case to look at",
            expected="ranges with at least one case (enough keys for every name)",
        )
    return found


def all_cases(problem: Problem, rng: np.random.Generator) -> Iterator[Case]:
    """Yield every case: sizes first, then examples of each array."""
    for scalars in problem.scalar_cases(rng):
        sizes = problem.sizes(scalars)
        wanted = {
            name: domain
            for name, domain in problem.domains.items()
            if isinstance(domain, Array) and not domain.random
        }
        if problem.claim.keys in ("unit", "any"):
            wanted["k"] = Array("matrix", ("n", "d"))
        if not wanted:
            yield Case(dict(scalars), {})
            continue
        examples = {
            name: array_examples(domain, sizes, rng, ARRAY_EXAMPLES)
            for name, domain in wanted.items()
        }
        for _ in range(ARRAY_EXAMPLES):
            arrays = {name: next(source) for name, source in examples.items()}
            if problem.claim.keys == "unit":
                arrays["k"] = _normalised(arrays["k"], rng)
            yield Case(dict(scalars), arrays)


def eventually(problem: Problem, case: Case) -> tuple[Case, Outcome, float | None]:
    """Judge a case; with a large (or small) symbol, at the end of its range.

    Returns the case in which it was judged, the outcome there, and from where on it holds.
    """
    if not problem.large and not problem.small:
        return case, outcome_of(problem, case), None
    small = dict.fromkeys(problem.small, SMALL[-1])
    if not problem.large:
        last = case.with_scalars(**small)
        return last, outcome_of(problem, last), None
    symbol = problem.large[0]
    holding: list[bool | None] = []
    outcomes = []
    for value in LARGE:
        at = case.with_scalars(**small, **{symbol: value})
        outcome = outcome_of(problem, at)
        outcomes.append((at, outcome))
        holding.append(outcome.holds)
    if holding[-1] is not True or holding[-2] is not True:
        # Show the failure at a moderate scale, if it already fails there for good.
        place = len(holding) - 1
        while place > 0 and holding[place - 1] is False:
            place -= 1
        at, outcome = outcomes[max(place, 5)] if holding[-1] is False else outcomes[-1]
        return at, outcome, None
    first = len(holding) - 1
    while first > 0 and holding[first - 1] is True:
        first -= 1
    at, outcome = outcomes[-1]
    low = LARGE[first - 1] if first else 0.0
    threshold = _bisect(problem, case.with_scalars(**small), symbol, low, LARGE[first])
    return at, outcome, threshold


def outcome_of(problem: Problem, case: Case) -> Outcome:
    """Judge one case without noise."""
    world = build_world(problem, case.scalars, case.arrays)
    truth = Evaluator(world).truth(problem.statement)
    holds: bool | None = bool(np.all(truth.holds))
    gap = float(np.max(truth.gap))
    if not holds and (gap < UNSURE or _delicate(problem.statement)):
        holds = exact_truth(problem, case)
        if holds is None and gap > UNSURE:
            holds = False
    return Outcome(holds, truth, world)


def _bisect(problem: Problem, case: Case, symbol: str, low: float, high: float) -> float:
    for _ in range(30):
        middle = (low + high) / 2
        if outcome_of(problem, case.with_scalars(**{symbol: middle})).holds:
            high = middle
        else:
            low = middle
        if high - low < 1e-9 * max(1.0, high):
            break
    return high


def _delicate(statement: Expression) -> bool:
    return any(
        isinstance(node, Compare) and node.operator in ("<", ">", "!=") for node in walk(statement)
    )


def _normalised(keys: Any, rng: np.random.Generator) -> Any:
    keys = np.where(
        np.linalg.norm(keys, axis=1, keepdims=True) > 0, keys, rng.standard_normal(keys.shape)
    )
    return keys / np.linalg.norm(keys, axis=1, keepdims=True)


def _size(case: Case) -> float:
    return sum(abs(value) for value in case.scalars.values())


def _label(case: Case) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in sorted(case.scalars.items())) or "all"
