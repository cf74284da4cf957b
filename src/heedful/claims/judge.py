"""The judge: what can be said about one claim, and on what grounds.

The order is always the same. A theorem or an algebraic derivation settles a claim at once.
Otherwise cases are searched for a failure, smallest first; a failure that exact arithmetic
confirms refutes the claim, is shrunk, and a repair is looked for. What survives is enclosed
by balls over its whole range: if that works it is proved, if not it is supported by as many
cases as were looked at. No verdict is stronger than its evidence.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from heedful.claims import statistics
from heedful.claims.algebra import always_defined, prove_identity, proved_by_sign
from heedful.claims.compile import (
    Array,
    CompiledClaim,
    Interval,
    Values,
    compile_claim,
    equations_only,
)
from heedful.claims.existence import decide_existence, has_existence
from heedful.claims.language.tree import Call, Compare, walk
from heedful.claims.limits import decide_eventually, decide_limit, has_limit
from heedful.claims.open_number import find_margin, find_number, says_much_larger, with_margin
from heedful.claims.points import FailingPoint, failing_point
from heedful.claims.proofs import (
    JUMPS,
    closed_form,
    decided_on_ranges,
    disproved_from,
    exact_answer,
    exact_difference,
    exact_truth,
    prove_uniqueness,
    proved_from,
    rounded_up,
)
from heedful.claims.repair import find_repair
from heedful.claims.search import (
    FARTHER,
    Case,
    NoCaseError,
    Outcome,
    Survey,
    all_cases,
    beyond_floats,
    fading,
    fails_for_good,
    holds_throughout,
    inexact,
    outcome_of,
    shrink,
    survey_cases,
    vanishing,
)
from heedful.claims.sheet.claim import Claim, field_text, read_claim, reading
from heedful.claims.values import ROUNDING, NoValueError, Value
from heedful.claims.verdict import Answer, Counterexample, Decision, Evidence, Verdict
from heedful.claims.worlds import TooFewKeysError, assignments
from heedful.errors import FormulaError

DEFAULT_SECONDS = 10.0
MODEL_JUDGE = "heedful.model_claims.judge:judge_model_claim"
"""What judges a claim with a `model`: in a room above this one, which knows models."""
PROPOSAL_SECONDS = 4.0
"""For each change that may repair a claim."""
WEAK = 12
"""Cases up to which a claim that held in all of them is said to be weakly supported."""
MOST_NARROW = 40
"""Cases that hold narrowly and are settled in exact arithmetic, one by one."""
MOST_ENCLOSING = 3.0
"""Seconds of this thread (not of the clock) for enclosing the statistics of one case."""
FAR_OUT = (1000.0, 1050.0)
"""Where a claim about a large symbol is looked at closely if it goes up and down."""
WAVES = ("sin", "cos", "phi", "rotate")
NOISY_SCALES = (1e3, 1e4, 1e5)
"""Where a claim about noise and a large scale is looked at."""
NOISY_FARTHEST = (1e12, 1e40)
"""Where it is looked at whether a failure has ended."""


@np.errstate(all="ignore")  # what is not finite is looked at where it arises, value by value
def judge_claim(
    claim: Claim, *, sheet: str = "", seconds: float | None = None, repair: bool = True
) -> Verdict:
    """Judge one claim; if it is refuted, look for its repair."""
    if claim.model is not None:
        return _judge_of_models()(claim, sheet=sheet, seconds=seconds)
    start = time.perf_counter()
    # Processor time: beside another program the same work is done, and the verdict is the same.
    deadline = time.thread_time() + (DEFAULT_SECONDS if seconds is None else seconds)
    try:
        claim = read_claim(claim)
        margin = says_much_larger(claim)
        compiled = compile_claim(with_margin(claim) if margin else claim)
        answer: Answer | None = None
        counterexample: Counterexample | None = None
        if margin and compiled.claim.find is not None:
            word, evidence, answer = find_margin(compiled, _judge_proposal, deadline)
        elif compiled.claim.find is not None:
            word, evidence, answer = find_number(compiled, _judge_proposal, deadline)
        elif has_existence(compiled):
            word, evidence, counterexample = decide_existence(compiled, deadline)
        elif has_limit(compiled):
            word, evidence, counterexample = decide_limit(compiled, deadline, _decide)
        else:
            word, evidence, counterexample = _decide(compiled, deadline)
    except FormulaError as error:
        raise _named(error, claim) from None
    refuted = word == "refuted" and repair and answer is None and counterexample is not None
    refuted = refuted and not has_limit(compiled)
    return Verdict(
        sheet=sheet,
        id=claim.id,
        says=claim.says,
        expects=" and ".join(map(reading, claim.expect)),
        verdict=word,
        evidence=evidence,
        counterexample=counterexample,
        repair=find_repair(compiled, _judge_proposal, deadline) if refuted else None,
        answer=answer,
        seconds=round(time.perf_counter() - start, 4),
        versions=_versions(),
        source=claim.source,
        reading=claim.reading,
        number=claim.number,
    )


def _judge_of_models() -> Callable[..., Verdict]:
    """Return what judges claims about a model, loaded only when there is one: it needs torch."""
    module, _, name = MODEL_JUDGE.partition(":")
    judge: Callable[..., Verdict] = getattr(importlib.import_module(module), name)
    return judge


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
        hint=error.hint,
        column=error.column,
        field=error.field,
    )


def _decide(compiled: CompiledClaim, deadline: float) -> Decision:
    """Decide a claim for every choice of keys that its letters may name: the weakest counts."""
    weakest: Decision | None = None
    choices = assignments(compiled)
    for assigned in choices.claims:
        ways = (way(assigned, deadline) for way in WAYS)
        try:
            decision = next(decision for decision in ways if decision is not None)
        except NoCaseError:
            continue  # a choice of places that no case has
        if weakest is None or STRENGTHS.index(decision[0]) < STRENGTHS.index(weakest[0]):
            weakest = decision
        if weakest[0] == "refuted":
            break
    if weakest is None:
        raise NoCaseError
    if weakest[0] == "proved" and not choices.complete:
        statement = (
            f"It holds for {len(choices.claims)} of the {choices.choices} choices of places that "
            "the letters may name; the others were not looked at."
        )
        return "supported", _evidence(compiled, "search", statement, {}, len(choices.claims)), None
    return weakest


def _by_theorem(compiled: CompiledClaim, _deadline: float) -> Decision | None:
    steps = prove_uniqueness(compiled)
    if steps is None:
        return None
    return "proved", Evidence(method="algebra", statement=steps[-1], steps=steps), None


def _by_algebra(compiled: CompiledClaim, _deadline: float) -> Decision | None:
    steps = prove_identity(compiled) if always_defined(compiled) else None
    if steps is None or not _well_formed(compiled):
        return None
    statement = "The permutation moves through every part: " + steps[-1] + "."
    return "proved", Evidence(method="algebra", statement=statement, steps=steps), None


def _by_sign(compiled: CompiledClaim, _deadline: float) -> Decision | None:
    steps = proved_by_sign(compiled)
    if steps is None:
        return None
    with suppress(NoValueError):  # exp(1000) is too large for float64, and positive all the same
        if not _well_formed(compiled):
            return None
    statement = f"It follows from the signs of its parts: {steps[-1].removeprefix('so ')}."
    return "proved", Evidence(method="algebra", statement=statement, steps=steps), None


def _by_search(compiled: CompiledClaim, deadline: float) -> Decision:
    if not compiled.large:
        return _searched(compiled, deadline)
    try:
        decision = _searched(compiled, deadline)
    except NoValueError:  # exp(β) is soon beyond float64
        exact = decide_eventually(compiled, deadline)
        if exact is None:
            raise
        return exact
    if decision[0] in ("proved", "refuted"):
        return decision
    return decide_eventually(compiled, deadline) or decision


def _searched(compiled: CompiledClaim, deadline: float) -> Decision:
    survey = survey_cases(compiled, deadline)
    if survey.failures:
        return _refuted(compiled, survey)
    if survey.without_value is not None:
        return _undefined(compiled, *survey.without_value)
    return _survived(compiled, survey, deadline)


def _undecided(statement: str) -> Decision:
    return "undecided", Evidence(method="search", statement=statement), None


def _evidence(
    compiled: CompiledClaim, method: str, statement: str, numbers: dict[str, Any], draws: int | None
) -> Evidence:
    """Return evidence that rests on cases or draws."""
    seed = compiled.claim.seed
    return Evidence(method=method, statement=statement, numbers=numbers, draws=draws, seed=seed)


def _well_formed(compiled: CompiledClaim) -> bool:
    """Algebra sees no sizes: evaluate one case, so that shapes that do not fit are refused."""
    cases = list(all_cases(compiled, np.random.default_rng(compiled.claim.seed)))
    telling = [case for case in cases if len({*case.scalars.values()}) == len(case.scalars)]
    tried = (telling or cases)[:: max(1, len(telling or cases) - 1)]  # the smallest and the largest
    for case in tried:
        try:
            if compiled.noisy:
                holds: bool | None = statistics.estimate(compiled, case).holds
            else:
                holds = outcome_of(compiled, case).holds
        except (NoValueError, TooFewKeysError):
            continue  # exp(1000) is out of the range of float64, which says nothing of shapes
        if holds is False:
            return False
    return True


def _refuted(compiled: CompiledClaim, survey: Survey) -> Decision:
    case, outcome = shrink(compiled, *min(survey.failures, key=_simplicity))
    counterexample = describe(compiled, case, outcome)
    certain = exact_truth(compiled, case) is False
    statement = counterexample.statement
    method = "search and exact arithmetic" if certain else "search in float64"
    if certain and counterexample.gap < ROUNDING:
        counterexample = _told_exactly(compiled, case, counterexample)
        statement = counterexample.statement
    if compiled.large:
        symbol = compiled.large[0]
        value = case.scalars[symbol]
        if disproved_from(compiled, case, value):
            statement += f" It fails for every {symbol} ≥ {value:g}."
            method = "interval arithmetic"
        elif fails_for_good(compiled, case):
            statement += f" It fails by as much at every larger {symbol} tried."
        else:
            statement += f" But the failure fades as {symbol} grows, and may end."
            return _undecided(statement)
    numbers = {"gap": counterexample.gap}
    evidence = _evidence(compiled, method, statement, numbers, survey.looked_at)
    return "refuted", evidence, counterexample


def _refuted_at(compiled: CompiledClaim, survey: Survey, found: FailingPoint) -> Decision:
    """Refute a claim by a point that was looked for, and that exact arithmetic confirmed."""
    if found.why:
        return _undefined(compiled, found.case, found.why)
    try:
        outcome = replace(outcome_of(compiled, found.case), holds=False)
    except FormulaError:
        outcome = beyond_floats()
    if found.between is None:
        return _refuted(compiled, replace(survey, failures=[(found.case, outcome)]))
    name, low, high = found.between
    ends = f"{_digits(float(low))} and {_digits(float(high))}"
    statement = f"At some {name} between {ends} both sides are equal, and it fails there."
    counterexample = replace(describe(compiled, found.case, outcome), statement=statement)
    evidence = _evidence(
        compiled, "interval arithmetic", statement, {"low": float(low), "high": float(high)}, None
    )
    return "refuted", evidence, counterexample


def _doubt_at(found: FailingPoint) -> str:
    symbols = _symbols_of(found.case)
    where = ", ".join(f"{name} = {_words(value)}" for name, value in symbols.items())
    if not found.doubt:
        return f"With {where} it fails."
    return f"With {where} {found.doubt}, and that could not be told."


def _digits(x: float) -> str:
    return f"{x:.12g}"


def _told_exactly(
    compiled: CompiledClaim, case: Case, counterexample: Counterexample
) -> Counterexample:
    """Say by how much a case fails that float64 would let pass."""
    relations = [tree for tree in compiled.expectations if isinstance(tree, Compare)]
    if len(relations) == len(compiled.expectations) == 1:
        apart = exact_difference(compiled, case, relations[0])
        if apart is not None:
            statement = (
                f"{counterexample.statement} In float64 it would pass; exactly, left minus right "
                f"is {apart}."
            )
            return replace(
                counterexample, exactly=apart, gap=abs(float(apart)), statement=statement
            )
    statement = f"{counterexample.statement} In exact arithmetic it does not hold."
    return replace(counterexample, gap=max(counterexample.gap, 0.0), statement=statement)


def _undefined(compiled: CompiledClaim, case: Case, reason: str) -> Decision:
    """Refute a claim that has no value in one of its cases: such a statement is never true."""
    symbols = _symbols_of(case)
    where = ", ".join(f"{name} = {_words(value)}" for name, value in symbols.items())
    statement = f"With {where} it has no value ({reason}), so it is not true there."
    counterexample = Counterexample(
        symbols=symbols, left=None, right=None, gap=math.inf, statement=statement
    )
    evidence = Evidence(method="exact arithmetic", statement=statement, seed=compiled.claim.seed)
    return "refuted", evidence, counterexample


def _survived(compiled: CompiledClaim, survey: Survey, deadline: float) -> Decision:
    """Decide a claim of which no failing case was found: prove it, or say what supports it."""
    if survey.vacuous == survey.looked_at:
        return _undecided(f"The condition held in none of the {survey.looked_at} cases looked at.")
    proof: Evidence | Case | None = _by_letters(compiled, survey, deadline)
    if proof is None and not survey.unsure:
        proof = _proof_by_balls(compiled, survey, deadline)
    if proof is None:
        found = failing_point(compiled, survey.cases, deadline)
        if found is not None and found.doubt:
            return _undecided(_doubt_at(found))
        if found is not None:
            return _refuted_at(compiled, survey, found)
    if proof is None and survey.unsure:
        return _undecided(
            f"In {survey.unsure} of {survey.looked_at} cases the two sides are closer than "
            "arithmetic can tell apart."
        )
    if isinstance(proof, Case):
        failure = proof, replace(outcome_of(compiled, proof), holds=False)
        return _refuted(compiled, replace(survey, failures=[failure]))
    if proof is not None:
        return "proved", proof, None
    narrow = _failing_narrowly(compiled, survey, deadline)
    if narrow is not None:
        return _refuted(compiled, replace(survey, failures=[narrow]))
    if _leans_on_rounding(compiled, survey):
        return _undecided(
            "The two sides are equal up to rounding, and no proof of their equality was found."
        )
    rng = np.random.default_rng(compiled.claim.seed)
    if compiled.large and not holds_throughout(compiled, survey.cases, rng):
        return _undecided(f"It holds at many large {compiled.large[0]}, but not at all of them.")
    if compiled.large and (found := _failing_far_out(compiled, survey, deadline)) is not None:
        return _undecided(
            f"{_doubt_at(found)} However large {compiled.large[0]} is, that may come again."
        )
    numbers: dict[str, Any] = {}
    if survey.thresholds:
        numbers["beta_0"] = {name: round(value, 4) for name, value in survey.thresholds.items()}
    statement = _survival(survey.looked_at - survey.vacuous, survey.vacuous)
    return "supported", _evidence(compiled, "search", statement, numbers, survey.looked_at), None


def _failing_far_out(
    compiled: CompiledClaim, survey: Survey, deadline: float
) -> FailingPoint | None:
    """Return a large value at which a claim fails that goes up and down, as sin(β) < 1 does."""
    symbol = compiled.large[0]
    calls = {node.function for node in walk(compiled.statement) if isinstance(node, Call)}
    if compiled.small or not calls & {*JUMPS, *WAVES}:
        return None
    low, high = FAR_OUT
    window = replace(compiled, domains={**compiled.domains, symbol: Interval(low, high)})
    cases = [case.with_scalars(**{symbol: low}) for case in survey.cases]
    return failing_point(window, cases, deadline)


def _survival(met: int, vacuous: int) -> str:
    """Say in how many cases a claim held, and how little that is where they are few."""
    cases = "the only case" if met == 1 else f"all {met} cases"
    where = " in which its condition is met" if vacuous else ""
    if met < 6:
        return f"It held in {cases} looked at{where}."
    weak = "That is weak support: only a" if met <= WEAK else "A"
    return (
        f"It held in {cases} looked at{where}. {weak} failure in more than "
        f"{3 / met:.2g} of such cases would have shown with 95 % confidence."
    )


def _leans_on_rounding(compiled: CompiledClaim, survey: Survey) -> bool:
    """Tell whether an equation without random arrays holds by rounding alone, as 1 − exp(−99) = 1.

    Random arrays hardly ever make two sides equal that are not; a large scale always does.
    """
    operators = {n.operator for n in walk(compiled.statement) if isinstance(n, Compare)}
    equations = "=" in operators or (
        bool(operators & {"<", ">", "!="})
        and any(exact_answer(compiled, x) == "too close" for x in survey.close[:MOST_NARROW])
    )
    exact = compiled.large or not (
        compiled.claim.keys in ("unit", "any")
        or any(isinstance(domain, Array) for domain in compiled.domains.values())
    )
    return bool(equations and survey.close and exact)


def _failing_narrowly(
    compiled: CompiledClaim, survey: Survey, deadline: float
) -> tuple[Case, Outcome] | None:
    """Return a case that float64 lets pass by rounding but exact arithmetic does not."""
    if inexact(compiled):
        return None
    step = max(1, len(survey.close) // MOST_NARROW)
    for case in survey.close[::step]:
        if time.thread_time() > deadline:
            break
        scales = FARTHER[:2] if compiled.large else (None,)
        at = [
            case if scale is None else case.with_scalars(**{compiled.large[0]: scale})
            for scale in scales
        ]
        if all(exact_truth(compiled, each) is False for each in at):
            return at[-1], replace(outcome_of(compiled, at[-1]), holds=False)
    return None


def _by_letters(compiled: CompiledClaim, survey: Survey, deadline: float) -> Evidence | None:
    if not equations_only(compiled) or not survey.complete or not always_defined(compiled):
        return None
    from heedful.claims.evaluate.symbolic import prove_symbolically  # SymPy takes 0.3 s to import

    return prove_symbolically(compiled, survey.cases, deadline)


def _proof_by_balls(
    compiled: CompiledClaim, survey: Survey, deadline: float
) -> Evidence | Case | None:
    """Enclose every case; possible when the cases are all there are, or intervals.

    Returns the proof, or a case on the way that was proved to fail.
    """
    ranges = {
        name: (domain.low, domain.high)
        for name, domain in compiled.domains.items()
        if isinstance(domain, Interval)
    }
    open_ended = any(not np.isfinite(end) for pair in ranges.values() for end in pair)
    if _arbitrary(compiled) or open_ended or compiled.small or not survey.complete:
        return None
    cases = list(all_cases(compiled, np.random.default_rng(compiled.claim.seed)))
    fixed = {
        tuple(sorted((k, v) for k, v in case.scalars.items() if k not in ranges)): case
        for case in cases
    }
    thresholds: dict[str, float] = {}
    for key, case in fixed.items():
        if time.thread_time() > deadline:
            return None
        try:
            if compiled.large:
                label = ", ".join(f"{name}={value:g}" for name, value in key) or "all"
                if ranges or label not in survey.thresholds:
                    return None
                bound = _proved_bound(compiled, case, survey.thresholds[label])
                if bound is None:
                    return None
                thresholds[label] = bound
            elif ranges:
                answer = decided_on_ranges(compiled, case, ranges)
                if isinstance(answer, Case):
                    return answer
                if answer is not True:
                    return None
            elif exact_truth(compiled, case) is not True:
                return None
        except TooFewKeysError:
            continue
    return _proof_evidence(compiled, thresholds, ranges, len(fixed))


def _proved_bound(compiled: CompiledClaim, case: Case, threshold: float) -> float | None:
    """Return a bound from which on a claim is proved, at or a little above where it was seen to.

    Where little is missing, float64 sees a claim hold a little too early.
    """
    candidates = (rounded_up(threshold * slack) for slack in (1.0, 1.01, 1.5))
    return next((bound for bound in candidates if proved_from(compiled, case, bound)), None)


def _proof_evidence(
    compiled: CompiledClaim, thresholds: dict[str, float], ranges: dict[str, Any], count: int
) -> Evidence:
    if thresholds:
        symbol = compiled.large[0]
        formula = closed_form(compiled, thresholds)
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


def _arbitrary(compiled: CompiledClaim) -> bool:
    return (
        compiled.claim.keys in ("unit", "any")
        or any(isinstance(domain, Array) for domain in compiled.domains.values())
        or any(
            isinstance(domain, Interval) and domain.integer for domain in compiled.domains.values()
        )
    )


def _simplicity(failure: tuple[Case, Any]) -> tuple[float, float]:
    case, _ = failure
    numbers = sum(
        float(np.sum(np.abs(array) + (array != np.round(array)))) for array in case.arrays.values()
    )
    return sum(abs(value) for value in case.scalars.values()), numbers


# ---- claims about noisy keys: enclosure of every cell, quadrature, or draws ----


def _by_draws(compiled: CompiledClaim, deadline: float) -> Decision | None:
    """Decide a claim in which something is drawn from a distribution."""
    if not compiled.noisy:
        return None
    tightest: tuple[Case, statistics.NoiseEstimate] | None = None
    proved = _all_listed(compiled)
    looked_at = 0
    for case in all_cases(compiled, np.random.default_rng(compiled.claim.seed)):
        if time.thread_time() > deadline:
            proved = False
            break
        at = _at_the_end(compiled, case)
        try:
            sure = None
            if compiled.statistical:
                sure = statistics.certified(compiled, at, MOST_ENCLOSING)
            estimate = sure or statistics.estimate(compiled, at)
        except TooFewKeysError:
            continue
        looked_at += 1
        answer = None if sure is None else sure.holds
        if answer is False or (
            answer is None and not estimate.holds and (estimate.clear or not compiled.statistical)
        ):
            if compiled.large and not _fails_at_every_scale(compiled, case, estimate):
                return _fading(compiled, estimate)
            return _refuted_noisy(compiled, at, estimate, certain=answer is False)
        if not (compiled.statistical or compiled.large or compiled.small):
            rare = statistics.rare_draws(compiled, at, compiled.claim.seed)
            if rare is not None:
                return _refuted_noisy(compiled, at, rare, certain=False)
            answer = statistics.in_every_draw(compiled, at, MOST_ENCLOSING)
        farther = _at_the_end(compiled, case, NOISY_SCALES[-1])
        if compiled.large and not statistics.estimate(compiled, farther).holds:
            return _fading(compiled, estimate)
        proved = proved and answer is True
        if tightest is None or estimate.gap + estimate.error > tightest[1].gap + tightest[1].error:
            tightest = (at, estimate)
    if tightest is None:
        raise NoCaseError
    return _noisy_survivor(compiled, tightest[1], proved, looked_at)


def _all_listed(compiled: CompiledClaim) -> bool:
    """Tell whether the cases are all combinations of listed values, not a selection of them."""
    domains = compiled.domains.values()
    if not all(isinstance(d, Values) or (isinstance(d, Array) and d.random) for d in domains):
        return False
    count = sum(1 for _ in all_cases(compiled, np.random.default_rng(compiled.claim.seed)))
    return count == math.prod(len(d.numbers) for d in domains if isinstance(d, Values))


def _fails_at_every_scale(
    compiled: CompiledClaim, case: Case, first: statistics.NoiseEstimate
) -> bool:
    gaps = [first.gap]
    for scale in NOISY_SCALES[1:]:
        estimate = statistics.estimate(compiled, _at_the_end(compiled, case, scale))
        if estimate.holds or estimate.gap < 0.95 * first.gap - estimate.error - first.error:
            return False
        gaps.append(estimate.gap)
    # All scales see the same draws, so that a slow change shows however few they are.
    if fading(gaps):
        return False
    far = (_at_the_end(compiled, case, scale) for scale in NOISY_FARTHEST)
    return not any(statistics.estimate(compiled, at).holds for at in far)


def _fading(compiled: CompiledClaim, estimate: statistics.NoiseEstimate) -> Decision:
    symbol = compiled.large[0]
    what = "holds" if estimate.holds else "fails"
    statement = f"At {symbol} = {NOISY_SCALES[0]:g} it {what}, but not alike at larger {symbol}."
    return "undecided", _evidence(compiled, "draws", statement, {}, estimate.draws), None


def _noisy_survivor(
    compiled: CompiledClaim, estimate: statistics.NoiseEstimate, proved: bool, looked_at: int
) -> Decision:
    sides = " against ".join(told_apart(estimate.left, estimate.right))
    tightest = f"in the tightest of {looked_at} cases"
    if proved:
        shown = "" if math.isnan(estimate.left) else f": {sides} {tightest}"
        if not compiled.statistical:
            shown = ", and at both ends of it"
        statement = f"Enclosed cell by cell over the noisy direction{shown}."
        numbers = _noise_numbers(estimate)
        evidence = Evidence(method="certified quadrature", statement=statement, numbers=numbers)
        return "proved", evidence, None
    if not estimate.clear or not estimate.holds or estimate.by_rounding:
        interval = f"{estimate.gap:.3g} ± {estimate.error:.3g} from holding"
        if estimate.directions == 1:
            statement = f"Neither quadrature ({interval}) nor enclosed cells decide it."
        else:
            statement = (
                f"The interval of confidence ({interval}) does not clear the bound; more draws may."
            )
        evidence = _evidence(compiled, "draws", statement, _noise_numbers(estimate), estimate.draws)
        return "undecided", evidence, None
    way = "quadrature nodes" if estimate.directions == 1 else "draws"
    statement = (
        f"{sides} with {estimate.draws} {way} {tightest}; the 99 % interval clears the bound."
    )
    evidence = _evidence(compiled, way, statement, _noise_numbers(estimate), estimate.draws)
    return "supported", evidence, None


def _refuted_noisy(
    compiled: CompiledClaim, case: Case, estimate: statistics.NoiseEstimate, *, certain: bool
) -> Decision:
    counterexample = describe(compiled, case, estimate)
    statement = counterexample.statement
    method = "quadrature" if estimate.directions == 1 else "draws"
    if certain:
        method = "certified quadrature"
    if not compiled.statistical:
        _, share = statistics.share_failing(compiled, case)
        often = f"in {share:.1%} of the draws" if share else "in draws far out, which are rare"
        statement += f" It fails {often}."
    draws = estimate.draws or None  # cells have no nodes
    evidence = _evidence(compiled, method, statement, _noise_numbers(estimate), draws)
    return "refuted", evidence, counterexample


def _noise_numbers(estimate: statistics.NoiseEstimate) -> dict[str, Any]:
    sides = {"left": estimate.left, "right": estimate.right}
    finite = {name: value if np.isfinite(value) else None for name, value in sides.items()}
    return {**finite, "gap": estimate.gap, "half_width": estimate.error}


def _at_the_end(compiled: CompiledClaim, case: Case, scale: float = NOISY_SCALES[0]) -> Case:
    ends = dict.fromkeys(compiled.large, scale)
    return case.with_scalars(**ends, **vanishing(compiled, scale if compiled.large else 1.0))


STRENGTHS = ("refuted", "undecided", "supported", "proved")

WAYS: tuple[Callable[[CompiledClaim, float], Decision | None], ...] = (
    _by_theorem,
    _by_algebra,
    _by_sign,
    _by_draws,
    _by_search,
)
"""How claims are decided, in this order; the first that decides a claim has the last word."""


@cache
def _versions() -> dict[str, str]:
    import importlib.metadata

    from heedful import __version__

    packages = ("numpy", "scipy", "sympy", "python-flint")
    return {
        "heedful": __version__,
        **{package: importlib.metadata.version(package) for package in packages},
    }


SHOWN = 8
"""Significant figures of a number that is shown."""
TELLING = 0.0228
"""The quantile of the draw shown for a claim about a distribution: two deviations below."""
MOST_SHOWN = 6
"""Entries of a vector that a sentence lists."""
MOST_KEYS = 12
"""Keys that are written out in a command, at most."""


_HEAD = re.compile(r"(?:(beta|\d+(?:\.\d+)?)\s*\*?\s*)?\(?((?:[-+ ]*mu_\w+)+)\)?")
"""A query that `heed noise` can be told: a scale, and a sum of means."""


def describe(compiled: CompiledClaim, case: Any, outcome: Any) -> Counterexample:
    """Return the counterexample of a failing case."""
    symbols = _symbols_of(case)
    truth, world = outcome.truth, outcome.world
    worst = _telling_draw(compiled, outcome)
    left, right = _of(truth.left, worst), _of(truth.right, worst)
    parts = [f"{name} = {_words(value)}" for name, value in symbols.items()]
    where = "With " + ", ".join(parts) if parts else "Here"
    where += _places_named(compiled)
    gap = float(np.max(truth.gap))
    sides = ""
    if left is not None and right is not None:
        shown, other = told_apart(left, right)
        sides = f" the left side is {shown} and the right side {other}"
    statement = f"{where}{',' if sides else ''}{sides or ' it fails'}."
    return Counterexample(
        symbols=symbols,
        left=left,
        right=right,
        gap=gap,
        statement=statement,
        command=_noise_command(compiled, case) or _command(compiled, world, worst),
    )


def _symbols_of(case: Case) -> dict[str, Any]:
    symbols: dict[str, Any] = {
        name: str(case.exact[name]) if _has_no_decimal(case, name) else _plain(value)
        for name, value in case.scalars.items()
    }
    return symbols | {name: _listed(array) for name, array in case.arrays.items()}


def _has_no_decimal(case: Case, name: str) -> bool:
    """Tell whether a number is a fraction such as 1/3 that no decimal comes to."""
    return name in case.exact and case.exact[name] != Fraction(repr(case.scalars[name]))


def _places_named(compiled: CompiledClaim) -> str:
    """Say which keys or places the letters name, where the claim has any that matter."""
    named = compiled.indices.items()
    if named and compiled.claim.keys is not None:  # as the commands count them
        return " (" + ", ".join(f"{a} is key {place}" for a, place in named) + ", counted from 0)"
    if named and compiled.places is not None:
        return " (" + ", ".join(f"{a} is place {i + 1}" for a, i in named) + ", counted from 1)"
    return ""


def _telling_draw(compiled: CompiledClaim, outcome: Any) -> int:
    """Return the draw that shows the failure: the worst one, or one two deviations out."""
    gaps = outcome.truth.gap
    if len(gaps) > 1 or not compiled.noisy:
        return int(np.argmax(gaps))
    weights = outcome.world.weights if outcome.world is not None else None
    return 0 if weights is None else int(np.searchsorted(np.cumsum(weights), TELLING))


def _noise_command(compiled: CompiledClaim, case: Any) -> str | None:
    """Return the `heed noise` command of a claim about orthonormal means with one noisy key."""
    claim = compiled.claim
    if claim.keys != "gaussian" or not compiled.statistical:
        return None
    noisy = [name for name in claim.covariance if name != "others"]
    members = {name: place for place, name in enumerate(compiled.members)}
    if len(noisy) != 1 or claim.covariance.get("others", "0").strip() != "0":
        return None
    name = noisy[0]
    variance_text = re.fullmatch(
        rf"([\d./]+)\s*\*?\s*mu_{name}\s*\*?\s*mu_{name}\s*(?:\^T|ᵀ|')",
        claim.covariance[name].strip(),
    )
    if variance_text is None:
        return None
    heads, factors = [], set()
    for text in (claim.query,) if claim.query is not None else claim.heads:
        inner = _HEAD.fullmatch(text.strip())
        if inner is None:
            return None
        factors.add(inner[1] or "1")
        head = re.sub(r"mu_(\w+)", lambda m: str(members.get(m[1], m[1])), inner[2])
        heads.append(head.replace(" ", ""))
    if len(factors) != 1:
        return None
    (factor,) = factors
    beta = case.scalars.get("beta") if factor == "beta" else float(factor)
    if beta is None:
        return None
    variance = float(Fraction(variance_text[1]))
    n, d = int(case.scalars["n"]), int(case.scalars.get("d", case.scalars["n"]))
    return (
        f"heed noise --n {n} --d {d} --noisy {members[name]} --variance {variance:g} "
        f"--heads {' '.join(heads)} --beta {beta:g}"
    )


def _command(compiled: CompiledClaim, world: Any, worst: int) -> str | None:
    """Return a `heed attend` or `heed copyable` command with exactly the numbers of the case."""
    if world is None:
        return None
    keys = world.families.get("k")
    queries = [world.symbols[f"q_{head}"] for head in range(1, len(compiled.heads) + 1)]
    query = next(iter(queries), None)
    if keys is None or compiled.sequence:
        return None
    source = _source(compiled, _row(keys, worst))
    if source is not None and query is None and _about_hulls(compiled):
        return f"heed copyable {source}"
    if source is None or query is None or query.kind != "vector":
        return None
    numbers = " ".join(str(_short(x)) for x in _row(query, worst))
    if len(queries) > 1:  # every head, and what they give together
        rows = [[_short(x) for x in _row(each, worst)] for each in queries]
        numbers = f"'{json.dumps(rows)}' --mean"
    scale = f" --scale {compiled.claim.scale}" if compiled.claim.scale != 1 else ""
    return f"heed attend {source} --query {numbers}{scale}"


def _about_hulls(compiled: CompiledClaim) -> bool:
    return any(
        isinstance(node, Call) and node.function in ("copyable", "hull", "distance")
        for tree in compiled.expectations
        for node in walk(tree)
    )


def _source(compiled: CompiledClaim, rows: Any) -> str | None:
    """Return the options that give a command these keys; None if they are too many to write."""
    n, d = rows.shape
    if compiled.claim.keys == "orthonormal":
        return f"--n {n}" if d == n else f"--n {n} --d {d}"
    if max(n, d) > MOST_KEYS:
        return None
    return "--keys '" + json.dumps([[_short(x) for x in row] for row in rows]) + "'"


def _of(value: Value | None, worst: int) -> Any:
    if value is None:
        return None
    row = _row(value, worst)
    return _plain(float(row)) if np.ndim(row) == 0 else _listed(row)


def _listed(array: Any) -> Any:
    return (np.asarray(array) + 0.0).tolist()  # no -0, which is nothing but 0 to a reader


def _row(value: Value, worst: int) -> Any:
    return value.array[min(worst, len(value.array) - 1)]


def _short(value: float) -> Any:
    rounded = float(f"{float(value):.{SHOWN}g}")
    return int(rounded) if rounded == round(rounded) and abs(rounded) < 1e15 else rounded


def _plain(value: float) -> Any:
    return int(value) if float(value) == round(float(value)) and abs(value) < 1e15 else float(value)


def told_apart(left: Any, right: Any, least: int = 4) -> tuple[str, str]:
    """Return two values in words, with as many figures as it takes to see that they differ.

    >>> told_apart(0.5, 0.50000001)
    ('0.5', '0.50000001')
    """
    for figures in range(least, 18):
        shown = _words(left, figures), _words(right, figures)
        if shown[0] != shown[1] or left == right:
            break
    return shown


def _words(value: Any, figures: int = 4) -> str:
    if isinstance(value, list):
        entries = ", ".join(_words(entry, figures) for entry in value[:MOST_SHOWN])
        return f"[{entries}{', …' if len(value) > MOST_SHOWN else ''}]"
    return f"{value:.{figures}g}" if isinstance(value, float) else str(value)
