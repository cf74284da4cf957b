"""Looking for a case in which a claim fails, smallest cases first.

A case gives every symbol a value. What float64 cannot tell for sure (a strict inequality
that rounds to equality, a difference of the size of rounding) is settled in ball arithmetic
before it may count as a failure.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from heedful.claims.climbing import Starts
from heedful.claims.evaluate.float import Evaluator, World
from heedful.claims.language.tree import Compare, Expression, Logic, walk
from heedful.claims.problem import Problem, equations_only
from heedful.claims.proofs import exact_truth
from heedful.claims.symbols import LARGE, SMALL, Array, Values, array_examples
from heedful.claims.values import NoValueError, Truth
from heedful.claims.worlds import TooFewKeysError, build_world
from heedful.errors import FormulaError

ARRAY_EXAMPLES = 12
MOST_EVALUATIONS = 1500
UNSURE = 1e-6
FARTHER = (1e2, 1e3, 1e4)
"""Scales at which a claim about a large symbol must go on failing to be refuted."""
BETWEEN, MOST_BETWEEN = 192, 8
"""How often, and in how many cases, a claim that survived is tried between the scales."""
BEYOND = (1e6, 1e12, 1e40)
INEXACT = ("unit vector", "distribution", "orthonormal")


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
    close: list[Case] = field(default_factory=list)
    """Cases that hold, but so narrowly that float64 cannot tell for sure."""
    complete: bool = False
    """Whether every combination of the listed values was looked at."""


def survey(problem: Problem, deadline: float) -> Survey:
    """Look at many cases, smallest first; stop at the first size at which some fail."""
    found = Survey()
    rng = np.random.default_rng(problem.claim.seed)
    failed_size: float | None = None
    combinations = set()
    no_value: NoValueError | None = None
    starts = Starts()
    for case in all_cases(problem, rng):
        size = _size(case)
        if failed_size is not None and size > failed_size:
            break
        if found.looked_at >= MOST_EVALUATIONS or time.perf_counter() > deadline:
            break
        combinations.add(_listed(problem, case))
        try:
            eventual, outcome, threshold = eventually(problem, case)
        except TooFewKeysError:
            continue
        except NoValueError as error:
            no_value = error
            continue
        found.looked_at += 1
        found.cases.append(case)
        found.vacuous += _vacuous(problem, outcome.world)
        if threshold is not None:
            found.thresholds[_label(case)] = threshold
        if outcome.holds is False and exact_truth(problem, eventual) is True:
            outcome = replace(outcome, holds=True)
        if outcome.holds is None:
            found.unsure += 1
        elif not outcome.holds:
            found.failures.append((eventual, outcome))
            failed_size = size
        else:
            if float(np.max(outcome.truth.gap)) > -UNSURE:
                found.close.append(eventual)
            starts.add(eventual, outcome)
    found.complete = len(combinations) == math.prod(
        len(domain.numbers) for domain in problem.domains.values() if isinstance(domain, Values)
    )
    if not found.failures and not equations_only(problem):
        found.failures += [
            failure
            for failure in starts.climbed(problem, deadline)
            if exact_truth(problem, failure[0]) is not True
        ]
    if not found.looked_at and no_value is not None:
        raise no_value
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
    if not problem.large:
        return *_as_it_vanishes(problem, case), None
    symbol = problem.large[0]
    holding: list[bool | None] = []
    outcomes = []
    for value in LARGE:
        at = case.with_scalars(**vanishing(problem, value), **{symbol: value})
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
    small = case.with_scalars(**vanishing(problem, LARGE[first]))
    threshold = _bisect(problem, small, symbol, low, LARGE[first])
    return at, outcome, threshold


def vanishing(problem: Problem, scale: float = 1.0) -> dict[str, float]:
    """Return values of the small symbols: small even when multiplied by the large scale."""
    return dict.fromkeys(problem.small, SMALL[-1] / max(1.0, scale))


def fails_for_good(problem: Problem, case: Case) -> bool:
    """Tell whether a claim about a large symbol fails at every scale tried, and no less so."""
    symbol = problem.large[0]
    scales = FARTHER if inexact(problem) else (*FARTHER, 1e6, 1e9, 1e12)
    gaps = []
    for value in scales:
        outcome = outcome_of(
            problem, case.with_scalars(**vanishing(problem, value), **{symbol: value})
        )
        if outcome.holds is not False:
            return False
        gaps.append(float(np.max(outcome.truth.gap)))
    return min(gaps) >= 0.99 * gaps[0]


def holds_throughout(problem: Problem, cases: list[Case], rng: np.random.Generator) -> bool:
    """Tell whether a claim about a large symbol also holds between and far beyond the scales.

    A sine below its crest at nine scales, or a bound of 1e30, is not a claim that holds.
    """
    symbol = problem.large[0]
    chosen = cases[:: max(1, len(cases) // MOST_BETWEEN)]
    between = 10 ** rng.uniform(3, 4, size=BETWEEN // len(chosen))
    scales = [*between] if inexact(problem) else [*between, *BEYOND]
    for case in chosen:
        for value in scales:
            at = case.with_scalars(**vanishing(problem, value), **{symbol: float(value)})
            try:
                if outcome_of(problem, at).holds is False:
                    return False
            except NoValueError:
                break
    return True


def inexact(problem: Problem) -> bool:
    """Tell whether an array meets its own definition only up to rounding, such as a unit vector."""
    return problem.claim.keys == "unit" or any(
        isinstance(domain, Array) and domain.kind in INEXACT for domain in problem.domains.values()
    )


def _as_it_vanishes(problem: Problem, case: Case) -> tuple[Case, Outcome]:
    """Judge a case with a small symbol; a failure that fades as it shrinks is none."""
    last = case.with_scalars(**vanishing(problem))
    outcome = outcome_of(problem, last)
    if outcome.holds is False:
        further = case.with_scalars(**vanishing(problem, 1e6))
        second = outcome_of(problem, further)
        if second.holds is not False:
            return further, second
        if float(np.max(second.truth.gap)) < 0.99 * float(np.max(outcome.truth.gap)):
            return last, replace(outcome, holds=None)
    return last, outcome


def _vacuous(problem: Problem, world: World) -> bool:
    statement = problem.statement
    return (
        isinstance(statement, Logic)
        and statement.operator == "implies"
        and not np.any(Evaluator(world).truth(statement.left).holds)
    )


def _listed(problem: Problem, case: Case) -> tuple[float, ...]:
    return tuple(
        case.scalars[name] for name, domain in problem.domains.items() if isinstance(domain, Values)
    )


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
