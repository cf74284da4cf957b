"""The judge: what can be said about one claim, and on what grounds.

The order is always the same. A theorem or an algebraic derivation settles a claim at once.
Otherwise cases are searched for a failure, smallest first; a failure that exact arithmetic
confirms refutes the claim, is shrunk, and a repair is looked for. What survives is enclosed
by balls over its whole range: if that works it is proved, if not it is supported by as many
cases as were looked at. No verdict is stronger than its evidence.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from heedful.claims import statistics
from heedful.claims.algebra import prove_identity
from heedful.claims.compile import CompiledClaim, compile_claim, equations_only
from heedful.claims.counterexample import describe
from heedful.claims.language.tree import Compare, walk
from heedful.claims.proofs import (
    closed_form,
    disproved_from,
    exact_truth,
    prove_uniqueness,
    proved_from,
    proved_on_ranges,
    rounded_up,
)
from heedful.claims.repair import find_repair
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
    shrink,
    survey,
    vanishing,
)
from heedful.claims.sheet.claim import Claim, field_error, field_text
from heedful.claims.symbols import Array, Interval, Values
from heedful.claims.values import ROUNDING
from heedful.claims.verdict import Decision, Evidence, Verdict
from heedful.claims.worlds import TooFewKeysError
from heedful.errors import FormulaError

DEFAULT_SECONDS = 10.0
PROPOSAL_SECONDS = 4.0
"""For each change that may repair a claim."""
MOST_NARROW = 40
"""Cases that hold narrowly and are settled in exact arithmetic, one by one."""
NOISY_SCALES = (1e3, 1e4, 1e5)
"""Where a claim about noise and a large scale is looked at."""


def judge_claim(
    claim: Claim, *, sheet: str = "", seconds: float | None = None, repair: bool = True
) -> Verdict:
    """Judge one claim; if it is refuted, look for its repair."""
    start = time.perf_counter()
    deadline = start + (DEFAULT_SECONDS if seconds is None else seconds)
    try:
        compiled = compile_claim(claim)
        word, evidence, counterexample = _decide(compiled, deadline)
    except FormulaError as error:
        raise _named(error, claim) from None
    refuted = word == "refuted" and repair
    return Verdict(
        sheet=sheet,
        id=claim.id,
        says=claim.says,
        expects=" and ".join(claim.expect),
        verdict=word,
        evidence=evidence,
        counterexample=counterexample,
        repair=find_repair(compiled, _judge_proposal, deadline) if refuted else None,
        seconds=round(time.perf_counter() - start, 4),
        versions=_versions(),
    )


def _judge_proposal(claim: Claim) -> Verdict:
    return judge_claim(claim, seconds=PROPOSAL_SECONDS, repair=False)


def _named(error: FormulaError, claim: Claim) -> FormulaError:
    """Return an error about a formula with the claim and field that it is in."""
    if not error.field:
        return error
    return FormulaError(
        f"{claim.id}.{field_text(error.field)}",
        error.problem,
        expected=error.expected,
        way_out=error.way_out,
        column=error.column,
        field=error.field,
    )


def _decide(problem: CompiledClaim, deadline: float) -> Decision:
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


def _well_formed(problem: CompiledClaim) -> bool:
    """Algebra sees no sizes: evaluate one case, so that shapes that do not fit are refused."""
    cases = list(all_cases(problem, np.random.default_rng(problem.claim.seed)))
    telling = [case for case in cases if len({*case.scalars.values()}) == len(case.scalars)]
    return outcome_of(problem, (telling or cases)[0]).holds is not False


def _refuted(problem: CompiledClaim, found: Survey) -> Decision:
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


def _survived(problem: CompiledClaim, found: Survey, deadline: float) -> Decision:
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


def _leans_on_rounding(problem: CompiledClaim, found: Survey) -> bool:
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
    problem: CompiledClaim, found: Survey, deadline: float
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


def _by_letters(problem: CompiledClaim, found: Survey, deadline: float) -> Evidence | None:
    if not equations_only(problem) or not found.complete:
        return None
    from heedful.claims.evaluate.symbolic import prove_symbolically  # SymPy takes 0.3 s to import

    return prove_symbolically(problem, found.cases, deadline)


def _proof_by_balls(problem: CompiledClaim, found: Survey, deadline: float) -> Evidence | None:
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
    problem: CompiledClaim, thresholds: dict[str, float], ranges: dict[str, Any], count: int
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


def _arbitrary(problem: CompiledClaim) -> bool:
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


# ---- claims about noisy keys: enclosure of every cell, quadrature, or draws ----


def decide_noisy(problem: CompiledClaim, deadline: float) -> Decision:
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
        raise field_error(
            ("where",),
            "leaves no case to look at",
            expected="ranges with at least one case",
        )
    return _noisy_survivor(problem, weakest[1], proved, looked_at)


def _all_listed(problem: CompiledClaim) -> bool:
    """Tell whether the cases are all combinations of the listed values, not a choice of them."""
    count = sum(1 for _ in all_cases(problem, np.random.default_rng(problem.claim.seed)))
    return count == math.prod(
        len(domain.numbers) for domain in problem.domains.values() if isinstance(domain, Values)
    )


def _fails_at_every_scale(problem: CompiledClaim, case: Case, first: statistics.Estimate) -> bool:
    for scale in NOISY_SCALES[1:]:
        found = statistics.estimate(problem, _at_the_end(problem, case, scale))
        if found.holds or found.gap < 0.95 * first.gap - found.error - first.error:
            return False
    return True


def _holds_farther(problem: CompiledClaim, case: Case) -> bool:
    return statistics.estimate(problem, _at_the_end(problem, case, NOISY_SCALES[-1])).holds


def _fading(problem: CompiledClaim, found: statistics.Estimate) -> Evidence:
    symbol = problem.large[0]
    what = "holds" if found.holds else f"fails by {found.gap:.3g}"
    statement = f"At {symbol} = {NOISY_SCALES[0]:g} it {what}, but not alike at larger {symbol}."
    return Evidence(method="draws", statement=statement, draws=found.draws, seed=problem.claim.seed)


def _noisy_survivor(
    problem: CompiledClaim, found: statistics.Estimate, proved: bool, looked_at: int
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
    problem: CompiledClaim, case: Case, found: statistics.Estimate, *, certain: bool
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


def _at_the_end(problem: CompiledClaim, case: Case, scale: float = NOISY_SCALES[0]) -> Case:
    ends = dict.fromkeys(problem.large, scale)
    return case.with_scalars(**ends, **vanishing(problem, scale if problem.large else 1.0))


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


@cache
def _versions() -> dict[str, str]:
    import importlib.metadata

    from heedful import __version__

    packages = ("numpy", "scipy", "sympy", "python-flint")
    return {
        "heedful": __version__,
        **{package: importlib.metadata.version(package) for package in packages},
    }
