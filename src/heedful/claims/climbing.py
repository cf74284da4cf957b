"""Looking harder for a failure: from the case that holds most narrowly, uphill.

A few dozen examples of a matrix are no search. Here one entry, one row or the size of one
array is changed at a time; a change is kept if it brings the claim closer to failing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.claims.problem import Problem
from heedful.claims.symbols import Array
from heedful.claims.values import NoValueError

if TYPE_CHECKING:
    from heedful.claims.search import Case, Outcome

STEPS = 250
"""Changes that are tried."""
SHARE = 0.05
"""The share of a claim's time that may go into one climb."""
MOST_STARTS = 4
LARGEST = 30.0
"""Entries do not grow beyond this: exp of their products must stay finite."""


class Starts:
    """The narrowest case of each choice of sizes: where to begin."""

    def __init__(self) -> None:
        self.best: dict[tuple[float, ...], tuple[float, Case, Outcome]] = {}

    def add(self, case: Case, outcome: Outcome) -> None:
        """Keep a case if it is the narrowest of its sizes."""
        sizes = tuple(case.scalars.values())
        reached = narrowness(outcome)
        if sizes not in self.best or reached > self.best[sizes][0]:
            self.best[sizes] = reached, case, outcome

    def climbed(self, problem: Problem, deadline: float) -> list[tuple[Case, Outcome]]:
        """Return the first failure that is found from the narrowest of them."""
        ranked = sorted(self.best.values(), key=lambda start: -start[0])
        for _, case, outcome in ranked[:MOST_STARTS]:
            failure = climb(problem, case, outcome, deadline)
            if failure is not None:
                return [failure]
        return []


def climb(
    problem: Problem, case: Case, outcome: Outcome, deadline: float
) -> tuple[Case, Outcome] | None:
    """Return a failing case found by small changes of the arrays, or None."""
    from heedful.claims.search import Case, outcome_of

    names = [name for name in case.arrays if _free(problem, name)]
    if not names or problem.large or problem.small:
        return None
    rng = np.random.default_rng(problem.claim.seed)
    best = narrowness(outcome)
    end = time.perf_counter() + SHARE * max(0.0, deadline - time.perf_counter())
    for step in range(STEPS):
        if time.perf_counter() > end:
            break
        name = names[step % len(names)]
        array = _changed(problem, name, case.arrays, rng)
        candidate = Case(case.scalars, {**case.arrays, name: array})
        try:
            tried = outcome_of(problem, candidate)
        except NoValueError:
            continue
        if tried.holds is False:
            return candidate, tried
        reached = narrowness(tried)
        if reached > best:
            case, best = candidate, reached
    return None


def narrowness(outcome: Outcome) -> float:
    """Return the gap relative to both sides, so that merely shrinking everything is no gain."""
    truth = outcome.truth
    if truth.left is None or truth.right is None:
        return float(np.max(truth.gap))
    size = float(np.abs(truth.left.array).max() + np.abs(truth.right.array).max())
    return float(np.max(truth.gap)) / size if size > 0 else -math.inf


def _free(problem: Problem, name: str) -> bool:
    domain = problem.domains.get(name)
    return name == "k" or (
        isinstance(domain, Array) and domain.kind in ("vector", "matrix", "unit vector")
    )


def _changed(
    problem: Problem, name: str, arrays: Mapping[str, Any], rng: np.random.Generator
) -> Any:
    array = np.array(arrays[name])
    kind = int(rng.integers(5))
    like = [other for other in arrays if other != name and arrays[other].shape == array.shape]
    if kind == 4 and like:
        # Two arrays that nearly agree: where claims about differences are tightest.
        array = arrays[like[int(rng.integers(len(like)))]] + 0.1 * rng.standard_normal(array.shape)
    place = tuple(int(rng.integers(size)) for size in array.shape)
    if kind == 0:
        array[place] += rng.standard_normal()
    elif kind == 1:
        array[place] = float(rng.integers(-2, 3))
    elif kind == 2:
        array[place[0]] = array[place[0]] * rng.choice([0.0, 0.5, -1.0, 2.0])
    elif kind == 3:
        array = array + 0.3 * rng.standard_normal(array.shape)
    array = np.clip(array, -LARGEST, LARGEST)
    domain = problem.domains.get(name)
    if name == "k" and problem.claim.keys == "unit":
        return _normalised(array)
    if isinstance(domain, Array) and domain.kind == "unit vector":
        return _normalised(array[None])[0]
    return array


def _normalised(rows: Any) -> Any:
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    fallback = np.eye(1, rows.shape[1])
    return np.where(sizes > 0, rows / np.where(sizes > 0, sizes, 1.0), fallback)
