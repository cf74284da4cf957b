"""Judging claims about noisy keys: by enclosure of every cell, by quadrature, or by draws."""

from __future__ import annotations

import math
import time

import numpy as np

from heedful.claims import statistics
from heedful.claims.counterexample import describe
from heedful.claims.problem import Problem
from heedful.claims.search import Case, all_cases, vanishing
from heedful.claims.symbols import Array, Values
from heedful.claims.verdict import Decision, Evidence
from heedful.claims.worlds import TooFewKeysError
from heedful.errors import FormulaError

NOISY_SCALES = (1e3, 1e4, 1e5)
"""Where a claim about noise and a large scale is looked at."""


def decide_noisy(problem: Problem, deadline: float) -> Decision:
    """Judge a claim in which something is drawn from a distribution."""
    weakest: tuple[Case, statistics.Estimate] | None = None
    listed = all(
        isinstance(domain, Values) or (isinstance(domain, Array) and domain.random)
        for domain in problem.domains.values()
    )
    proved = listed and _all_listed(problem)
    looked_at = 0
    for case in all_cases(problem, np.random.default_rng(problem.claim.seed)):
        if time.perf_counter() > deadline:
            proved = False
            break
        at = _at_the_end(problem, case)
        try:
            found = statistics.estimate(problem, at)
        except TooFewKeysError:
            continue
        looked_at += 1
        answer = statistics.enclosed(problem, at) if problem.statistical else None
        if answer is False or (
            answer is None and not found.holds and (found.clear or not problem.statistical)
        ):
            if problem.large and not _fails_at_every_scale(problem, case, found):
                return "undecided", _fading(problem, found), None
            return _refuted_noisy(problem, at, found, certain=answer is False)
        if problem.large and not _holds_farther(problem, case):
            return "undecided", _fading(problem, found), None
        proved = proved and answer is True
        if weakest is None or found.gap + found.error > weakest[1].gap + weakest[1].error:
            weakest = (at, found)
    if weakest is None:
        raise FormulaError(
            f"{problem.claim.id}.where",
            "leaves no case to look at",
            expected="ranges with at least one case",
        )
    return _noisy_survivor(problem, weakest[1], proved, looked_at)


def _all_listed(problem: Problem) -> bool:
    """Tell whether the cases are all combinations of the listed values, not a choice of them."""
    count = sum(1 for _ in all_cases(problem, np.random.default_rng(problem.claim.seed)))
    return count == math.prod(
        len(domain.numbers) for domain in problem.domains.values() if isinstance(domain, Values)
    )


def _fails_at_every_scale(problem: Problem, case: Case, first: statistics.Estimate) -> bool:
    for scale in NOISY_SCALES[1:]:
        found = statistics.estimate(problem, _at_the_end(problem, case, scale))
        if found.holds or found.gap < 0.95 * first.gap - found.error - first.error:
            return False
    return True


def _holds_farther(problem: Problem, case: Case) -> bool:
    return statistics.estimate(problem, _at_the_end(problem, case, NOISY_SCALES[-1])).holds


def _fading(problem: Problem, found: statistics.Estimate) -> Evidence:
    symbol = problem.large[0]
    what = "holds" if found.holds else f"fails by {found.gap:.3g}"
    statement = f"At {symbol} = {NOISY_SCALES[0]:g} it {what}, but not alike at larger {symbol}."
    return Evidence(method="draws", statement=statement, draws=found.draws, seed=problem.claim.seed)


def _noisy_survivor(
    problem: Problem, found: statistics.Estimate, proved: bool, looked_at: int
) -> Decision:
    numbers = {
        "left": _finite(found.left),
        "right": _finite(found.right),
        "gap": found.gap,
        "half_width": found.error,
    }
    if proved:
        statement = (
            f"Enclosed cell by cell over the noisy direction: {found.left:.4g} against "
            f"{found.right:.4g} in the tightest of {looked_at} cases."
        )
        return (
            "proved",
            Evidence(method="certified quadrature", statement=statement, numbers=numbers),
            None,
        )
    if not found.clear or not found.holds:
        statement = (
            f"The interval of confidence ({found.gap:.3g} ± {found.error:.3g} from "
            "holding) does not clear the bound; more draws may."
        )
        return (
            "undecided",
            Evidence(
                method="draws",
                statement=statement,
                numbers=numbers,
                draws=found.draws,
                seed=problem.claim.seed,
            ),
            None,
        )
    way = "quadrature nodes" if found.directions == 1 else "draws"
    statement = (
        f"{found.left:.4g} against {found.right:.4g} with {found.draws} {way} in the "
        f"tightest of {looked_at} cases; the 99 % interval clears the bound."
    )
    return (
        "supported",
        Evidence(
            method=way,
            statement=statement,
            numbers=numbers,
            draws=found.draws,
            seed=problem.claim.seed,
        ),
        None,
    )


def _refuted_noisy(
    problem: Problem, case: Case, found: statistics.Estimate, *, certain: bool
) -> Decision:
    counterexample = describe(problem, case, found)
    if problem.statistical:
        statement = counterexample.statement
        method = (
            "certified quadrature"
            if certain
            else ("quadrature" if found.directions == 1 else "draws")
        )
    else:
        _, share = statistics.share_failing(problem, case)
        statement = f"{counterexample.statement} It fails in {share:.1%} of the draws."
        method = "quadrature" if found.directions == 1 else "draws"
    return (
        "refuted",
        Evidence(
            method=method,
            statement=statement,
            numbers={
                "left": _finite(found.left),
                "right": _finite(found.right),
                "gap": found.gap,
                "half_width": found.error,
            },
            draws=found.draws,
            seed=problem.claim.seed,
        ),
        counterexample,
    )


def _at_the_end(problem: Problem, case: Case, scale: float = NOISY_SCALES[0]) -> Case:
    ends = dict.fromkeys(problem.large, scale)
    return case.with_scalars(**ends, **vanishing(problem, scale if problem.large else 1.0))


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
