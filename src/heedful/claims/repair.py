"""The smallest change that makes a refuted claim hold, found by trying.

Candidates are ordered by how little they change: a scale on the query, a condition, more
heads, the order of a product, a corrected constant, a smaller range. Each is judged like any
claim; the first that holds is the repair.
"""

from __future__ import annotations

import time

from heedful.claims.candidates import Candidate, judged
from heedful.claims.constructions import a_condition, a_head_each, a_scale, another_order, no_mask
from heedful.claims.problem import Problem
from heedful.claims.restatements import a_bound, a_smaller_range, the_contrary, what_comes_out
from heedful.claims.verdict import Counterexample, Repair

WAYS = (
    a_scale,
    a_condition,
    a_head_each,
    another_order,
    no_mask,
    what_comes_out,
    a_bound,
    a_smaller_range,
    the_contrary,
)
"""How claims are mended, the least change first."""


def find_repair(
    problem: Problem, counterexample: Counterexample | None, deadline: float
) -> Repair | None:
    """Return the first candidate that holds, or None."""
    for make in WAYS:
        if time.perf_counter() > deadline:
            return None
        for candidate in make(problem):
            if time.perf_counter() > deadline:
                return None
            verdict = judged(problem.claim.changed(**candidate.changes))
            if verdict is not None and verdict.holds:
                return Repair(
                    kind=candidate.kind,
                    statement=candidate.statement,
                    changes=candidate.changes,
                    verdict=verdict.verdict,
                )
    return None


__all__ = ["Candidate", "find_repair"]
