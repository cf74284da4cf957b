"""Making a counterexample simple: fewest keys first, then the plainest numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.claims.problem import Problem
from heedful.errors import FormulaError

if TYPE_CHECKING:
    from heedful.claims.search import Case, Outcome

ROUNDS = 3
MOST_TRIALS = 300


def shrink(problem: Problem, case: Case, outcome: Outcome) -> tuple[Case, Outcome]:
    """Return a failing case with simpler numbers, as long as it still fails."""
    from heedful.claims.search import Case, outcome_of

    trials = 0
    for _ in range(ROUNDS):
        changed = False
        for name, array in list(case.arrays.items()):
            if _special(problem, name):
                continue
            for simpler in _simpler(np.asarray(array)):
                trials += 1
                if trials > MOST_TRIALS:
                    return case, outcome
                candidate = Case(case.scalars, {**case.arrays, name: simpler})
                try:
                    tried = outcome_of(problem, candidate)
                except FormulaError:
                    continue
                if tried.holds is False:
                    case, outcome, changed = candidate, tried, True
                    break
        if not changed:
            break
    return case, outcome


def _special(problem: Problem, name: str) -> bool:
    from heedful.claims.symbols import Array

    domain = problem.domains.get(name)
    special = isinstance(domain, Array) and domain.kind not in ("vector", "matrix")
    return special or (name == "k" and problem.claim.keys == "unit")


def _simpler(array: Any) -> Any:
    """Yield plainer versions: whole numbers, signs, then single entries set to 0 or 1."""
    for candidate in (
        np.sign(np.round(array)),
        np.clip(np.round(array), -2, 2),
        np.round(array),
        np.round(array * 2) / 2,
    ):
        if not np.array_equal(candidate, array):
            yield candidate
    flat = array.reshape(-1)
    for place in range(min(flat.size, 40)):
        for value in (0.0, 1.0):
            if flat[place] not in (0.0, 1.0) or (flat[place] == 1.0 and value == 0.0):
                changed = flat.copy()
                changed[place] = value
                yield changed.reshape(array.shape)
