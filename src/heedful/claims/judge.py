"""The judge: what can be said about one claim, and on what grounds.

The order is always the same. A theorem or an algebraic derivation settles a claim at once.
Otherwise cases are searched for a failure, smallest first; a failure that exact arithmetic
confirms refutes the claim, is shrunk, and a repair is looked for. What survives is enclosed
by balls over its whole range: if that works it is proved, if not it is supported by as many
cases as were looked at. No verdict is stronger than its evidence.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from heedful.claims.algebra import prove_identity
from heedful.claims.counterexample import describe
from heedful.claims.judge_noise import decide_noisy
from heedful.claims.language.tree import Compare, walk
from heedful.claims.problem import Problem, compile_claim, equations_only
from heedful.claims.proofs import disproved_from, exact_truth, proved_from, proved_on_ranges
from heedful.claims.search import (
    FARTHER,
    Case,
    Outcome,
    Survey,
    all_cases,
    fails_for_good,
    holds_throughout,
    inexact,
    outcome_of,
    survey,
)
from heedful.claims.sheet.claim import Claim
from heedful.claims.shrink import shrink
from heedful.claims.symbols import Array, Interval
from heedful.claims.theorems import prove_uniqueness
from heedful.claims.thresholds import closed_form, rounded_up
from heedful.claims.values import ROUNDING
from heedful.claims.verdict import Decision, Evidence, Repair, Verdict
from heedful.claims.worlds import TooFewKeysError

DEFAULT_SECONDS = 10.0
MOST_NARROW = 40
"""Cases that hold narrowly and are settled in exact arithmetic, one by one."""


def judge(
    claim: Claim, *, sheet: str = "", seconds: float | None = None, repair: bool = True
) -> Verdict:
    """Judge one claim."""
    start = time.perf_counter()
    problem = compile_claim(claim)
    deadline = start + (DEFAULT_SECONDS if seconds is None else seconds)
    word, evidence, counterexample = _decide(problem, deadline)
    mended: Repair | None = None
    if word == "refuted" and repair:
        from heedful.claims.repair import find_repair

        mended = find_repair(problem, counterexample, deadline)
    return Verdict(
        sheet=sheet,
        id=claim.id,
        says=claim.says,
        expects=" and ".join(claim.expect),
        verdict=word,
        evidence=evidence,
        counterexample=counterexample,
        repair=mended,
        seconds=round(time.perf_counter() - start, 4),
        versions=_versions(),
    )


def _decide(problem: Problem, deadline: float) -> Decision:
    steps = prove_uniqueness(problem)
    if steps is not None:
        return "proved", Evidence(method="algebra", statement=steps[-1], steps=steps), None
    steps = prove_identity(problem)
    if steps is not None and _well_formed(problem):
        statement = "The permutation moves through every part: " + steps[-1] + "."
        return "proved", Evidence(method="algebra", statement=statement, steps=steps), None
    if problem.noisy:
        return decide_noisy(problem, deadline)
    found = survey(problem, deadline)
    if found.failures:
        return _refuted(problem, found)
    return _survived(problem, found, deadline)


def _well_formed(problem: Problem) -> bool:
    """Algebra sees no sizes: evaluate one case, so that shapes that do not fit are refused."""
    cases = list(all_cases(problem, np.random.default_rng(problem.claim.seed)))
    telling = [case for case in cases if len({*case.scalars.values()}) == len(case.scalars)]
    return outcome_of(problem, (telling or cases)[0]).holds is not False


def _refuted(problem: Problem, found: Survey) -> Decision:
    case, outcome = shrink(problem, *min(found.failures, key=_simplicity))
    counterexample = describe(problem, case, outcome)
    certain = exact_truth(problem, case) is False
    statement = counterexample.statement
    method = "search and exact arithmetic" if certain else "search in float64"
    if certain and counterexample.gap < ROUNDING:
        statement += " In float64 it would pass; in exact arithmetic it does not."
    numbers: dict[str, Any] = {"gap": counterexample.gap}
    if problem.large:
        symbol = problem.large[0]
        value = case.scalars[symbol]
        if disproved_from(problem, case, value):
            statement += f" It fails for every {symbol} ≥ {value:g}."
            method = "interval arithmetic"
        elif fails_for_good(problem, case):
            statement += f" It fails by as much at every larger {symbol} tried."
        else:
            statement += f" But the failure fades as {symbol} grows, and may end."
            return "undecided", Evidence(method="search", statement=statement), None
    return (
        "refuted",
        Evidence(
            method=method,
            statement=statement,
            numbers=numbers,
            draws=found.looked_at,
            seed=problem.claim.seed,
        ),
        counterexample,
    )


def _survived(problem: Problem, found: Survey, deadline: float) -> Decision:
    if found.vacuous == found.looked_at:
        reason = f"The condition held in none of the {found.looked_at} cases looked at."
        return "undecided", Evidence(method="search", statement=reason), None
    if found.unsure:
        reason = (
            f"In {found.unsure} of {found.looked_at} cases the two sides are closer than "
            "arithmetic can tell apart."
        )
        symbolic = _by_letters(problem, found, deadline)
        if symbolic is not None:
            return "proved", symbolic, None
        return "undecided", Evidence(method="search", statement=reason), None
    symbolic = _by_letters(problem, found, deadline)
    if symbolic is not None:
        return "proved", symbolic, None
    proof = _proof_by_balls(problem, found, deadline)
    if proof is not None:
        return "proved", proof, None
    narrow = _failing_narrowly(problem, found, deadline)
    if narrow is not None:
        return _refuted(problem, replace(found, failures=[narrow]))
    if _leans_on_rounding(problem, found):
        reason = "The two sides are equal up to rounding, and no proof of their equality was found."
        return "undecided", Evidence(method="search", statement=reason), None
    rng = np.random.default_rng(problem.claim.seed)
    if problem.large and not holds_throughout(problem, found.cases, rng):
        reason = f"It holds at many large {problem.large[0]}, but not at all of them."
        return "undecided", Evidence(method="search", statement=reason), None
    numbers: dict[str, Any] = {}
    if found.thresholds:
        numbers["beta_0"] = {name: round(value, 4) for name, value in found.thresholds.items()}
    statement = _survival(found.looked_at)
    return (
        "supported",
        Evidence(
            method="search",
            statement=statement,
            numbers=numbers,
            draws=found.looked_at,
            seed=problem.claim.seed,
        ),
        None,
    )


def _survival(looked_at: int) -> str:
    if looked_at < 6:
        cases = "the only case" if looked_at == 1 else f"all {looked_at} cases"
        return f"It held in {cases} looked at."
    return (
        f"It held in all {looked_at} cases looked at; a failure in more than "
        f"{3 / looked_at:.2g} of such cases would have shown with 95 % confidence."
    )


def _leans_on_rounding(problem: Problem, found: Survey) -> bool:
    """Tell whether an equation without random arrays holds by rounding alone, as 1 − exp(−99) = 1.

    Random arrays hardly ever make two sides equal that are not; a large scale always does.
    """
    equations = any(
        isinstance(node, Compare) and node.operator == "=" for node in walk(problem.statement)
    )
    exact = problem.large or not (
        problem.claim.keys in ("unit", "any")
        or any(isinstance(domain, Array) for domain in problem.domains.values())
    )
    return bool(equations and found.close and exact)


def _failing_narrowly(
    problem: Problem, found: Survey, deadline: float
) -> tuple[Case, Outcome] | None:
    """Return a case that float64 lets pass by rounding but exact arithmetic does not."""
    if inexact(problem):
        return None
    step = max(1, len(found.close) // MOST_NARROW)
    for case in found.close[::step]:
        if time.perf_counter() > deadline:
            break
        scales = FARTHER[:2] if problem.large else (None,)
        at = [
            case if scale is None else case.with_scalars(**{problem.large[0]: scale})
            for scale in scales
        ]
        if all(exact_truth(problem, each) is False for each in at):
            return at[-1], replace(outcome_of(problem, at[-1]), holds=False)
    return None


def _by_letters(problem: Problem, found: Survey, deadline: float) -> Evidence | None:
    if not equations_only(problem) or not found.complete:
        return None
    from heedful.claims.evaluate.symbolic import prove_symbolically  # SymPy takes 0.3 s to import

    return prove_symbolically(problem, found.cases, deadline)


def _proof_by_balls(problem: Problem, found: Survey, deadline: float) -> Evidence | None:
    """Enclose every case; possible when the cases are all there are, or intervals."""
    ranges = {
        name: (domain.low, domain.high)
        for name, domain in problem.domains.items()
        if isinstance(domain, Interval)
    }
    open_ended = any(not np.isfinite(end) for pair in ranges.values() for end in pair)
    whole_numbers = any(
        isinstance(domain, Interval) and domain.integer for domain in problem.domains.values()
    )
    if _arbitrary(problem) or open_ended or whole_numbers or problem.small or not found.complete:
        return None
    cases = list(all_cases(problem, np.random.default_rng(problem.claim.seed)))
    fixed = {
        tuple(sorted((k, v) for k, v in case.scalars.items() if k not in ranges)): case
        for case in cases
    }
    thresholds: dict[str, float] = {}
    for key, case in fixed.items():
        if time.perf_counter() > deadline:
            return None
        try:
            if problem.large:
                label = ", ".join(f"{name}={value:g}" for name, value in key) or "all"
                if ranges or label not in found.thresholds:
                    return None
                bound = rounded_up(found.thresholds[label])
                if not proved_from(problem, case, bound):
                    return None
                thresholds[label] = bound
            elif ranges:
                if not proved_on_ranges(problem, case, ranges):
                    return None
            elif exact_truth(problem, case) is not True:
                return None
        except TooFewKeysError:
            continue
    return _proof_evidence(problem, thresholds, ranges, len(fixed))


def _proof_evidence(
    problem: Problem, thresholds: dict[str, float], ranges: dict[str, Any], count: int
) -> Evidence:
    if thresholds:
        symbol = problem.large[0]
        formula = closed_form(problem, thresholds)
        shown = "; ".join(f"{name}: {symbol} ≥ {bound:g}" for name, bound in thresholds.items())
        statement = f"Enclosed for every {symbol} from a bound on ({shown})."
        if formula is not None:
            statement += f" The bound is {formula}."
        numbers: dict[str, Any] = {"beta_0": thresholds}
        if formula is not None:
            numbers["beta_0_formula"] = formula
        return Evidence(method="interval arithmetic", statement=statement, numbers=numbers)
    where = " and ".join(f"{name} in [{low:g}, {high:g}]" for name, (low, high) in ranges.items())
    cases = "the only case" if count == 1 else f"all {count} cases"
    if where:
        statement = f"Enclosed for all {where}{'' if count == 1 else f', in {cases}'}."
    else:
        statement = f"Evaluated with certainty in {cases}."
    return Evidence(method="interval arithmetic", statement=statement)


def _arbitrary(problem: Problem) -> bool:
    return (
        problem.claim.keys in ("unit", "any")
        or any(isinstance(domain, Array) for domain in problem.domains.values())
        or any(
            isinstance(domain, Interval) and domain.integer for domain in problem.domains.values()
        )
    )


def _simplicity(failure: tuple[Case, Any]) -> tuple[float, float]:
    case, _ = failure
    numbers = sum(
        float(np.sum(np.abs(array) + (array != np.round(array)))) for array in case.arrays.values()
    )
    return sum(abs(value) for value in case.scalars.values()), numbers


@cache
def _versions() -> dict[str, str]:
    import importlib.metadata

    from heedful import __version__

    packages = ("numpy", "scipy", "sympy", "python-flint")
    return {
        "heedful": __version__,
        **{package: importlib.metadata.version(package) for package in packages},
    }


__all__ = ["judge"]
