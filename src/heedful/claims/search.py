"""Looking for a case in which a claim fails, smallest cases first.

A case gives every symbol a value. What float64 cannot tell for sure (a strict inequality
that rounds to equality, a difference of the size of rounding) is settled in ball arithmetic
before it may count as a failure.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from heedful.claims.compile import (
    INEXACT,
    LARGE,
    SMALL,
    Array,
    CompiledClaim,
    Interval,
    Values,
    array_examples,
    equations_only,
    size_of,
)
from heedful.claims.evaluate.float import Evaluator, World
from heedful.claims.language.tree import Call, Compare, Expression, Logic, Unary, walk
from heedful.claims.proofs import (
    exact_answer,
    exact_at_power,
    exact_gap,
    exact_truth,
    without_value,
)
from heedful.claims.values import NoMemberError, NoValueError, Truth
from heedful.claims.worlds import TooFewKeysError, build_world
from heedful.errors import FormulaError

ARRAY_EXAMPLES = 12
MOST_ENTRIES = 30_000_000
"""Entries of an array (240 MB): cases with larger ones are left out."""
MOST_EVALUATIONS = 1500
UNSURE = 1e-6
FARTHER = (1e2, 1e3, 1e4)
"""Scales at which a claim about a large symbol must go on failing to be refuted."""
EVENLY = (1e2, 1e4, 1e6, 1e8, 1e10, 1e12)
"""Scales between which a failure that converges changes less and less."""
FARTHEST = (24, 60, 150, 300, 10**4, 10**6, 10**9)
"""Powers of ten at which exact arithmetic looks whether a failure, or a success, has ended."""
BETWEEN, MOST_BETWEEN = 192, 8
"""How often, and in how many cases, a claim that survived is tried between the scales."""
BEYOND = (1e6, 1e12, 1e40)
CLIMBING_STEPS = 250
"""Changes that are tried."""
CLIMBING_SHARE = 0.05
"""The share of a claim's time that may go into one climb."""
FEW_MEETING, MEETING = 12, 24
"""With fewer cases that meet a claim's condition, so many are constructed."""
MEETING_SHARE = 0.25
"""The share of a claim's time that may go into constructing them."""
MOST_STARTS = 4
LARGEST_ENTRY = 30.0
"""Entries do not grow beyond this: exp of their products must stay finite."""
SHRINKING_ROUNDS = 3
MOST_SHRINKING_TRIALS = 300
STEPS = {
    **dict.fromkeys(("sign", "floor", "argmax", "rank"), math.inf),
    **dict.fromkeys(("round16", "roundbf16"), 0.01),
}
"""Functions whose value float64's rounding can change by a step, and how large a step of a gap is
then in doubt: any, or for number formats the 2⁻⁸ of bfloat16 on both sides."""


@dataclass(frozen=True)
class Case:
    """One assignment of values to every symbol that is not random."""

    scalars: dict[str, float] = field(default_factory=dict)
    arrays: dict[str, Any] = field(default_factory=dict)
    exact: dict[str, Fraction] = field(default_factory=dict)
    """Scalars that are meant exactly where float64 has no such number, such as 1/3."""

    def with_scalars(self, **values: float) -> Case:
        """Return the case with some scalars replaced."""
        kept = {name: value for name, value in self.exact.items() if name not in values}
        return replace(self, scalars={**self.scalars, **values}, exact=kept)


@dataclass(frozen=True)
class Outcome:
    """Whether a claim holds in one case."""

    holds: bool | None
    """None when neither float64 nor balls can tell."""
    truth: Truth
    world: World | None
    """None where float64 has no numbers for it."""


class NoCaseError(FormulaError):
    """A claim whose ranges leave no case, such as two names for one key."""

    def __init__(self) -> None:
        super().__init__(
            "where",
            "leaves no case to look at",
            expected="ranges with at least one case (enough keys for every name)",
            field=("where",),
        )


@dataclass
class Survey:
    """What a search found."""

    looked_at: int = 0
    failures: list[tuple[Case, Outcome]] = field(default_factory=list)
    unsure: int = 0
    thresholds: dict[str, float] = field(default_factory=dict)
    """For a large symbol: the value from which each case holds."""
    cases: list[Case] = field(default_factory=list)
    vacuous: int = 0
    """Cases in which the condition of the claim never held."""
    close: list[Case] = field(default_factory=list)
    """Cases that hold, but so narrowly that float64 cannot tell for sure."""
    complete: bool = False
    """Whether every combination of the listed values was looked at."""
    without_value: tuple[Case, str] | None = None
    """The simplest case of numbers alone in which the claim has no value, and why."""


def beyond_floats() -> Outcome:
    """Return the outcome of a failure that only exact arithmetic can see."""
    return Outcome(False, Truth(np.asarray([False]), np.asarray([math.inf])), None)


def survey_cases(compiled: CompiledClaim, deadline: float) -> Survey:
    """Look at many cases, smallest first; stop at the first size at which some fail."""
    survey = Survey()
    rng = np.random.default_rng(compiled.claim.seed)
    failed_size: float | None = None
    combinations = set()
    no_value: NoValueError | None = None
    starts = Starts()
    for case in all_cases(compiled, rng):
        size = _size(case)
        if failed_size is not None and size > failed_size:
            break
        if survey.looked_at >= MOST_EVALUATIONS or time.thread_time() > deadline:
            break
        combinations.add(_listed(compiled, case))
        try:
            eventual, outcome, threshold = eventually(compiled, case)
        except TooFewKeysError:
            continue
        except NoMemberError:
            if compiled.places is None:
                raise
            continue  # one of many choices of places, and not one that this case has
        except NoValueError as error:
            no_value = error
            if not compiled.large and not compiled.small and known_exactly(compiled, case):
                # Out of the range of float64, or without a value: exact arithmetic can tell.
                answer = exact_truth(compiled, case)
                if answer is None and survey.without_value is None:
                    reason = without_value(compiled, case)
                    survey.without_value = None if reason is None else (case, reason)
                elif answer is not None:
                    survey.looked_at += 1
                    survey.cases.append(case)
                if answer is False:
                    survey.failures.append((case, beyond_floats()))
                    failed_size = size
            continue
        survey.looked_at += 1
        survey.cases.append(case)
        survey.vacuous += _vacuous(compiled, outcome.world)
        if threshold is not None:
            survey.thresholds[_label(case)] = threshold
        if outcome.holds is False:
            outcome = replace(outcome, holds=_settled(compiled, eventual))
        if outcome.holds is None:
            survey.unsure += 1
        elif not outcome.holds:
            survey.failures.append((eventual, outcome))
            failed_size = size
        else:
            if float(np.max(outcome.truth.gap)) > -UNSURE or _equates(compiled.statement):
                survey.close.append(eventual)
            starts.add(eventual, outcome)
    if not survey.failures and survey.looked_at - survey.vacuous < FEW_MEETING:
        _look_where_the_condition_holds(compiled, survey, starts, deadline)
    survey.complete = len(combinations) == math.prod(
        len(domain.numbers) for domain in compiled.domains.values() if isinstance(domain, Values)
    )
    if not survey.failures and not equations_only(compiled):
        survey.failures += [
            failure
            for failure in starts.climbed(compiled, deadline)
            if _settled(compiled, failure[0]) is False
        ]
    if not survey.looked_at and (survey.without_value is None or not _stated(no_value)):
        raise NoCaseError if no_value is None else no_value
    return survey


def _stated(error: NoValueError | None) -> bool:
    """Tell whether a statement has no value, rather than the keys or queries it is about."""
    return error is not None and bool(error.field) and error.field[0] == "expect"


def _look_where_the_condition_holds(
    compiled: CompiledClaim, survey: Survey, starts: Starts, deadline: float
) -> None:
    """Construct cases that meet the condition of a claim, and judge them too."""
    statement = compiled.statement
    if (
        not (isinstance(statement, Logic) and statement.operator == "implies")
        or compiled.large
        or compiled.small
    ):
        return
    end = time.thread_time() + MEETING_SHARE * max(0.0, deadline - time.thread_time())
    rng = np.random.default_rng(compiled.claim.seed)
    bases = survey.cases[:: max(1, len(survey.cases) // MEETING)]
    for base in (bases * MEETING)[:MEETING]:
        if time.thread_time() > end:
            return
        case = _meeting(compiled, statement.left, base, rng, end)
        if case is None:
            continue
        try:
            outcome = outcome_of(compiled, case)
        except FormulaError:
            continue
        survey.looked_at += 1
        survey.cases.append(case)
        if outcome.holds is False and _settled(compiled, case) is False:
            survey.failures.append((case, outcome))
            return
        if outcome.holds is None:
            survey.unsure += 1
        elif outcome.holds:
            starts.add(case, outcome)
            if float(np.max(outcome.truth.gap)) > -UNSURE:
                survey.close.append(case)


def _meeting(
    compiled: CompiledClaim, condition: Expression, case: Case, rng: np.random.Generator, end: float
) -> Case | None:
    """Return a case that meets a condition, reached by changes that bring it nearer."""

    def shortfall(at: Case) -> float:
        try:
            truth = Evaluator(build_world(compiled, at.scalars, at.arrays)).truth(condition)
        except FormulaError:
            return math.inf
        return -math.inf if bool(np.all(truth.holds)) else float(np.max(truth.gap))

    least = shortfall(case)
    for _ in range(CLIMBING_STEPS):
        if least == -math.inf:
            return case
        if time.thread_time() > end:
            return None
        candidate = _moved(compiled, case, rng)
        reached = shortfall(candidate)
        if reached <= least:
            case, least = candidate, reached
    return case if least == -math.inf else None


def _moved(compiled: CompiledClaim, case: Case, rng: np.random.Generator) -> Case:
    """Return a case with one number or one array changed: a little, by a factor, or anew."""
    names = [name for name in case.arrays if _free(compiled, name)]
    numbers = [name for name, domain in compiled.domains.items() if isinstance(domain, Interval)]
    place = int(rng.integers(len(names) + len(numbers))) if names or numbers else -1
    if place < 0:
        return case
    if place >= len(names):
        name = numbers[place - len(names)]
        domain = compiled.domains[name]
        assert isinstance(domain, Interval)
        value = float(rng.choice([*domain.examples(rng, 16), case.scalars[name] * 2.0]))
        return case.with_scalars(**{name: value}) if domain.contains(value) else case
    name = names[place]
    kind = int(rng.integers(4))
    if kind == 0 and not _special(compiled, name):
        factor = float(rng.choice([-1.0, 0.5, 2.0, 4.0, 10.0]))
        return replace(case, arrays={**case.arrays, name: case.arrays[name] * factor})
    if kind == 1 and not _special(compiled, name):
        whole = rng.integers(-5, 6, size=case.arrays[name].shape).astype(float)
        return replace(case, arrays={**case.arrays, name: whole})
    return replace(case, arrays={**case.arrays, name: _changed(compiled, name, case.arrays, rng)})


def all_cases(compiled: CompiledClaim, rng: np.random.Generator) -> Iterator[Case]:
    """Yield every case: sizes first, then examples of each array."""
    for scalars in compiled.scalar_cases(rng):
        sizes = compiled.sizes(scalars)
        if too_large(compiled, sizes):
            continue
        wanted = {
            name: domain
            for name, domain in compiled.domains.items()
            if isinstance(domain, Array) and not domain.random
        }
        if compiled.claim.keys in ("unit", "any"):
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
            if compiled.claim.keys == "unit":
                arrays["k"] = _normalised(arrays["k"], rng)
            yield Case(dict(scalars), arrays)


def too_large(compiled: CompiledClaim, sizes: Mapping[str, int]) -> bool:
    """Tell whether the arrays of a case would not fit into memory."""
    shapes = [d.shape for d in compiled.domains.values() if isinstance(d, Array)]
    if compiled.claim.keys is not None and "n" in sizes:
        shapes.append(("n", "d"))
    return any(
        math.prod(size_of(part, sizes) for part in shape) > MOST_ENTRIES
        for shape in shapes
        if all(part.isdigit() or part.lstrip("0123456789* ") in sizes for part in shape)
    )


def eventually(compiled: CompiledClaim, case: Case) -> tuple[Case, Outcome, float | None]:
    """Judge a case; with a large (or small) symbol, at the end of its range.

    Returns the case in which it was judged, the outcome there, and from where on it holds.
    """
    if not compiled.large and not compiled.small:
        return case, outcome_of(compiled, case), None
    if not compiled.large:
        return *_as_it_vanishes(compiled, case), None
    symbol = compiled.large[0]
    holding: list[bool | None] = []
    outcomes = []
    for value in LARGE:
        at = case.with_scalars(**vanishing(compiled, value), **{symbol: value})
        outcome = outcome_of(compiled, at)
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
    small = case.with_scalars(**vanishing(compiled, LARGE[first]))
    threshold = _bisect(compiled, small, symbol, low, LARGE[first])
    return at, outcome, threshold


def vanishing(compiled: CompiledClaim, scale: float = 1.0) -> dict[str, float]:
    """Return values of the small symbols: small even when multiplied by the large scale."""
    return dict.fromkeys(compiled.small, SMALL[-1] / max(1.0, scale))


def fails_for_good(compiled: CompiledClaim, case: Case) -> bool:
    """Tell whether a claim fails at every large scale tried, and by no less as it grows."""
    symbol = compiled.large[0]
    scales = FARTHER if inexact(compiled) else (*FARTHER, 1e6, 1e9, 1e12)
    gaps = []
    for value in scales:
        outcome = outcome_of(
            compiled, case.with_scalars(**vanishing(compiled, value), **{symbol: value})
        )
        if outcome.holds is not False:
            return False
        gaps.append(float(np.max(outcome.truth.gap)))
    at = [case.with_scalars(**{symbol: value}) for value in EVENLY]
    exact = [exact_gap(compiled, each) for each in at] if not inexact(compiled) else [None]
    if fading([gap for gap in exact if gap is not None]) or fading(gaps):
        return False
    # A scale of 1e-20 β fails at every scale above, and holds from 1e23 on.
    return inexact(compiled) or True not in _far_out(compiled, case)


def _far_out(compiled: CompiledClaim, case: Case) -> set[bool | None]:
    """Return what a claim comes to where its large symbol is beyond every usual scale."""
    return {_at_powers(compiled, case, power) for power in FARTHEST}


def _at_powers(compiled: CompiledClaim, case: Case, power: int) -> bool | None:
    """Return what a claim comes to where its large (small) symbols are 10 to some power."""
    symbols = compiled.large if power > 0 else compiled.small
    return exact_at_power(compiled, case, symbols, power)


def fading(gaps: Sequence[Any]) -> bool:
    """Tell whether a failure may end though it has not ended at any scale that was tried.

    What converges changes less and less; what goes on changing as much, as ln β does, may end.
    """
    if not gaps:
        return False
    drops = [float(first - second) for first, second in itertools.pairwise(gaps)]
    rounding = 1e-13 * abs(float(gaps[0])) if isinstance(gaps[0], float) else 0.0
    goes_on = any(second > max(first / 2, rounding) for first, second in itertools.pairwise(drops))
    return goes_on or min(float(gap) for gap in gaps) < 0.5 * float(gaps[0])


def holds_throughout(compiled: CompiledClaim, cases: list[Case], rng: np.random.Generator) -> bool:
    """Tell whether a claim about a large symbol also holds between and far beyond the scales.

    A sine below its crest at nine scales, or a bound of 1e30, is not a claim that holds.
    """
    symbol = compiled.large[0]
    chosen = cases[:: max(1, len(cases) // MOST_BETWEEN)]
    between = 10 ** rng.uniform(3, 4, size=BETWEEN // len(chosen))
    scales = [*between] if inexact(compiled) else [*between, *BEYOND]
    for case in chosen:
        for value in scales:
            at = case.with_scalars(**vanishing(compiled, value), **{symbol: float(value)})
            try:
                if outcome_of(compiled, at).holds is False:
                    return False
            except NoValueError:
                break
        if not inexact(compiled) and False in _far_out(compiled, case):
            return False
    return True


def inexact(compiled: CompiledClaim) -> bool:
    """Tell whether an array meets its own definition only up to rounding, such as a unit vector."""
    return compiled.claim.keys == "unit" or any(
        isinstance(domain, Array) and domain.kind in INEXACT for domain in compiled.domains.values()
    )


def known_exactly(compiled: CompiledClaim, case: Case) -> bool:
    """Tell whether the arrays of a case are what they are called, and not only up to rounding."""
    kinds = {name: d.kind for name, d in compiled.domains.items() if isinstance(d, Array)}
    if compiled.claim.keys == "unit":
        kinds["k"] = "unit vector"
    rounded = [array for name, array in case.arrays.items() if kinds.get(name) in INEXACT]
    return all(np.array_equal(array, np.round(array)) for array in rounded)


def _as_it_vanishes(compiled: CompiledClaim, case: Case) -> tuple[Case, Outcome]:
    """Judge a case with a small symbol; a failure that fades as it shrinks does not count."""
    last = case.with_scalars(**vanishing(compiled))
    outcome = outcome_of(compiled, last)
    if known_exactly(compiled, case):
        # What is true at 1e-9 may end at 1e-30, and the other way round.
        tiny = case.with_scalars(**vanishing(compiled, 1e24))
        answers = [_at_powers(compiled, tiny, -power) for power in FARTHEST]
        # The farthest count: a bound of 1e-30 is passed on the way.
        far = set([one for one in answers if one is not None][-3:])
        if far == {False}:
            outcome = outcome if outcome.holds is False else beyond_floats()
            return (last if outcome.world is not None else tiny), outcome
        if far == {True}:
            return tiny, Outcome(True, Truth(np.asarray([True]), np.asarray([-1.0])), None)
        if far >= {True, False}:
            return last, replace(outcome, holds=None)
    if outcome.holds is False:
        further = [case.with_scalars(**vanishing(compiled, scale)) for scale in (1e3, 1e6, 1e9)]
        seconds = [outcome_of(compiled, at) for at in further]
        for at, second in zip(further, seconds, strict=True):
            if second.holds is not False:
                return at, second
        if fading([float(np.max(each.truth.gap)) for each in (outcome, *seconds)]):
            return last, replace(outcome, holds=None)
    return last, outcome


def _vacuous(compiled: CompiledClaim, world: World | None) -> bool:
    statement = compiled.statement
    return (
        isinstance(statement, Logic)
        and statement.operator == "implies"
        and world is not None
        and not np.any(Evaluator(world).truth(statement.left).holds)
    )


def _listed(compiled: CompiledClaim, case: Case) -> tuple[float, ...]:
    return tuple(
        case.scalars[name]
        for name, domain in compiled.domains.items()
        if isinstance(domain, Values)
    )


def outcome_of(compiled: CompiledClaim, case: Case) -> Outcome:
    """Judge one case without noise."""
    world = build_world(compiled, case.scalars, case.arrays)
    truth = Evaluator(world).truth(compiled.statement)
    holds: bool | None = bool(np.all(truth.holds))
    gap = float(np.max(truth.gap))
    doubt = max(UNSURE, _step(compiled.statement))
    if not holds and (gap < doubt or _delicate(compiled.statement)):
        holds = exact_truth(compiled, case)
        if holds is None and gap > doubt and _margin(Evaluator(world), compiled.statement) > doubt:
            holds = False
    return Outcome(holds, truth, world)


def _settled(compiled: CompiledClaim, case: Case) -> bool | None:
    """Return what exact arithmetic says about a case that fails in float64.

    Where it encloses both sides and they are still too close to tell, float64 has lost its digits,
    as (10³⁰ + r) − 10³⁰ does; where it cannot enclose them, float64 has the last word.
    """
    answer = exact_answer(compiled, case)
    if answer == "too close":
        return None
    return answer is True


def _margin(evaluator: Evaluator, node: Expression) -> float:
    """Return by how much a statement fails in float64, as far as every part of it says so.

    The gap of "A implies B" is that of B; if A holds by a hair only, the failure is in doubt too.
    """
    match node:
        case Logic("implies", left, right):
            return min(-_margin(evaluator, left), _margin(evaluator, right))
        case Logic("and", left, right):
            return max(_margin(evaluator, left), _margin(evaluator, right))
        case Logic("or", left, right):
            return min(_margin(evaluator, left), _margin(evaluator, right))
        case Unary("not", operand):
            return -_margin(evaluator, operand)
    return float(np.max(evaluator.truth(node).gap))


def _bisect(compiled: CompiledClaim, case: Case, symbol: str, low: float, high: float) -> float:
    for _ in range(30):
        middle = (low + high) / 2
        if outcome_of(compiled, case.with_scalars(**{symbol: middle})).holds:
            high = middle
        else:
            low = middle
        if high - low < 1e-9 * max(1.0, high):
            break
    return high


def _step(statement: Expression) -> float:
    """Return by how much rounding can change a value, however small the rounding is."""
    calls = (node.function for node in walk(statement) if isinstance(node, Call))
    return max((STEPS.get(function, 0.0) for function in calls), default=0.0)


def _equates(statement: Expression) -> bool:
    return any(isinstance(node, Compare) and node.operator == "=" for node in walk(statement))


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


# ---- looking harder: from the case that holds most narrowly, uphill ----
#
# A few dozen examples of a matrix are no search. Here one entry, one row or the size of one
# array is changed at a time; a change is kept if it brings the claim closer to failing.


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

    def climbed(self, compiled: CompiledClaim, deadline: float) -> list[tuple[Case, Outcome]]:
        """Return the first failure that is found from the narrowest of them."""
        ranked = sorted(self.best.values(), key=lambda start: -start[0])
        for _, case, outcome in ranked[:MOST_STARTS]:
            failure = climb(compiled, case, outcome, deadline)
            if failure is not None:
                return [failure]
        return []


def climb(
    compiled: CompiledClaim, case: Case, outcome: Outcome, deadline: float
) -> tuple[Case, Outcome] | None:
    """Return a failing case found by small changes of the arrays, or None."""
    names = [name for name in case.arrays if _free(compiled, name)]
    if not names or compiled.large or compiled.small:
        return None
    rng = np.random.default_rng(compiled.claim.seed)
    best = narrowness(outcome)
    end = time.thread_time() + CLIMBING_SHARE * max(0.0, deadline - time.thread_time())
    for step in range(CLIMBING_STEPS):
        if time.thread_time() > end:
            break
        name = names[step % len(names)]
        array = _changed(compiled, name, case.arrays, rng)
        candidate = Case(case.scalars, {**case.arrays, name: array})
        try:
            tried = outcome_of(compiled, candidate)
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


def _free(compiled: CompiledClaim, name: str) -> bool:
    domain = compiled.domains.get(name)
    return name == "k" or (
        isinstance(domain, Array) and domain.kind in ("vector", "matrix", "unit vector")
    )


def _changed(
    compiled: CompiledClaim, name: str, arrays: Mapping[str, Any], rng: np.random.Generator
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
    array = np.clip(array, -LARGEST_ENTRY, LARGEST_ENTRY)
    domain = compiled.domains.get(name)
    if name == "k" and compiled.claim.keys == "unit":
        return _unit_rows(array)
    if isinstance(domain, Array) and domain.kind == "unit vector":
        return _unit_rows(array[None])[0]
    return array


def _unit_rows(rows: Any) -> Any:
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    fallback = np.eye(1, rows.shape[1])
    return np.where(sizes > 0, rows / np.where(sizes > 0, sizes, 1.0), fallback)


# ---- making a counterexample simple: fewest keys first, then the plainest numbers ----


def shrink(compiled: CompiledClaim, case: Case, outcome: Outcome) -> tuple[Case, Outcome]:
    """Return a failing case with simpler numbers, as long as it still fails."""
    trials = 0
    for _ in range(SHRINKING_ROUNDS):
        changed = False
        for name, array in list(case.arrays.items()):
            if _special(compiled, name):
                continue
            for simpler in _simpler(np.asarray(array)):
                trials += 1
                if trials > MOST_SHRINKING_TRIALS:
                    return case, outcome
                candidate = Case(case.scalars, {**case.arrays, name: simpler})
                try:
                    tried = outcome_of(compiled, candidate)
                except FormulaError:
                    continue
                if tried.holds is False and _settled(compiled, candidate) is False:
                    case, outcome, changed = candidate, tried, True
                    break
        if not changed:
            break
    return case, outcome


def _special(compiled: CompiledClaim, name: str) -> bool:
    domain = compiled.domains.get(name)
    special = isinstance(domain, Array) and domain.kind not in ("vector", "matrix")
    return special or (name == "k" and compiled.claim.keys == "unit")


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
