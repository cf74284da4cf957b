"""For which number does it hold: claims that leave a tolerance or a factor open (`find`).

`std(c) <= x std(single)` with `find = "least x"` asks for the number that the source did not give.
A claim that gets easier as x grows holds from some number on. It is estimated case by case in
float64, then certified by the judge itself: it proves the claim with one number and refutes it
with another, as close as it can, and the answer lies between them.

The direction in which a claim gets easier is read off its formula. Where it cannot be, nothing is
said: a claim that holds with 1 and fails with 2 may hold again with 3.

A claim with ≫ (much larger) is read as "from some margin on", and that margin is such a number.
`alpha_a >= 0.99` given `k_a^T q >> k_i^T q for all i != a` says that there is a margin M such that
the claim holds wherever k_aᵀq ≥ k_iᵀq + M. A symbol that is ≫ a number is large: there is a β₀
from which on the claim holds. All ≫ of a claim share one margin. In what is claimed, rather than
supposed, ≫ has no such reading, and is refused.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import count
from typing import Any, TypeAlias

import numpy as np
import scipy  # its parts are imported when they are first used
from flint import arb, ctx

from heedful.claims import balls, statistics
from heedful.claims.algebra import sign_of
from heedful.claims.balls import Ball, LetterRange, NotEnclosed, add, negated
from heedful.claims.compile import Array, CompiledClaim, Interval, Values
from heedful.claims.evaluate.ball import BallEvaluator
from heedful.claims.evaluate.float import Evaluator
from heedful.claims.language import constant, instantiate, show, substitute, with_letters
from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Expression,
    ForAll,
    Logic,
    Name,
    Number,
    Unary,
    map_children,
    mentions,
    names_in,
    rational,
    walk,
)
from heedful.claims.proofs import (
    NOT_ENCLOSED,
    PRECISIONS,
    ball_world,
    decimal,
    lettered,
    rounded_up,
)
from heedful.claims.search import Case, all_cases, vanishing
from heedful.claims.sheet.claim import STATEMENTS, Claim, ParsedFormula, field_error, map_formulas
from heedful.claims.verdict import Answer, Evidence, Verdict, Word
from heedful.claims.worlds import TooFewKeysError, assignments, build_world
from heedful.errors import FormulaError

Direction = int | None
"""1: grows, or gets easier, with the open number; -1: falls, or gets harder; 0: neither; None:
not known."""
Judge = Callable[[Claim], Verdict]
End: TypeAlias = Any
"""One end of an enclosure: a `Fraction`, or an infinity."""
Finding = tuple[Word, Evidence, Answer]
"""What is said of a claim with an open number: the verdict, its grounds, and the number."""

FARTHEST = 1e12
"""Numbers up to this size are tried."""
STEPS = (1e-6, 1e-4, 1e-3, 1e-2, 0.05, 0.3)
"""How far beside the estimate the judge is asked, in turn, relative to its size."""
NEAR = 1e-4
"""Relative width from which on an enclosure is not narrowed any further."""
MOST_HALVINGS = 6
SHORTEST = 1e-6
"""The last digit that is written of a number, relative to its size."""
SHARP = 1e-9
"""Relative width from which on boxes are not halved any further."""
MOST_BOXES = 3000
ENCLOSED_FROM = 1e6
"""The scale beyond which a large symbol is enclosed for good."""
MOST_CASES = 400
"""Cases in which the number is estimated."""
MOST_ENCLOSED = {False: 400, True: 12}
"""Cases in which the number is enclosed at once, without and with noise."""
PLAIN_DENOMINATORS = 12
"""Fractions up to this denominator are tried exactly where the estimate is close to one."""
SCALE = {False: 1e4, True: 1e3}
"""Where a large symbol is set for the estimate: without and with noise."""
REFINEMENTS = 3
"""Rounds of looking for a worse point of an interval, one symbol after the other."""
FAR = (-1e12, -1e9, -1e6, -1e4, 1e-12, 1e-6, 1e4, 1e6, 1e9, 1e12)
"""Where a symbol without an end is looked at before a number is said to do for all of it."""
INCREASING = frozenset({"exp", "tanh", "sigmoid", "relu", "E", "quantile"})
"""Functions that do not fall when their first argument grows, and always have a value."""
UNCERTAIN = ("draws", "search in float64", "quadrature")
"""Methods of a refutation that are no proof."""


def find_number(compiled: CompiledClaim, judge: Judge, deadline: float) -> Finding:
    """Return the verdict on a claim with an open number, its grounds, and the number."""
    return _Question(compiled, judge, deadline).answer()


def with_number(claim: Claim, value: Fraction) -> Claim:
    """Return a claim with its open number given: an ordinary claim."""
    name = open_name(claim)
    given = {name: constant(value)}

    def filled(_field: object, text: str) -> str:
        assert isinstance(text, ParsedFormula)
        tree = substitute(text.tree, given)
        return text if tree == text.tree else ParsedFormula(show(tree), tree)

    return map_formulas(claim, filled).changed(find=None)


def open_name(claim: Claim) -> str:
    """Return the name of the number that a claim leaves open."""
    assert claim.find is not None
    return claim.find.partition(" ")[2]


class _Question:
    """One claim with an open number. Inside, a larger number always makes the claim easier."""

    def __init__(self, compiled: CompiledClaim, judge: Judge, deadline: float) -> None:
        claim = compiled.claim
        assert claim.find is not None
        self.claim = claim
        self.name = open_name(claim)
        self.least = claim.find.startswith("least")
        self.sign = 1 if self.least else -1
        self.deadline = deadline
        self.judge = judge
        # For the estimate the open number is a symbol like any other.
        self.compiled = replace(compiled, domains={**compiled.domains, self.name: Values((0.0,))})
        self.said: dict[Fraction, tuple[Word, Evidence]] = {}
        self.endless: str | None = None

    # ---- from the question to the answer ----

    def answer(self) -> Finding:
        direction = direction_of_claim(self.compiled, self.name)
        if direction is None:
            return self._unknown(
                f"It is not clear that the claim gets easier one way as {self._letter} changes: "
                "it may hold with one number, fail with a larger one, and hold again."
            )
        if direction * self.sign < 0:
            other = "greatest" if self.least else "least"
            return self._unknown(
                f"The claim gets easier as {self._letter} {'falls' if self.least else 'grows'}, "
                f'so there is no {self.claim.find}: ask for the "{other} {self.name}".'
            )
        found = self._enclosed()
        if found is not None:
            return self._between(*found)
        estimate, case = self._estimate()
        if estimate == math.inf and case is not None:
            return self._no_number(case)
        if estimate == -math.inf:
            return self._every_number()
        if self.endless is not None:
            return self._unknown(
                f"The number grows with {with_letters(self.endless)}, which has no end; no "
                f"{self._letter} is known that does for all."
            )
        hold, fail = self._bracket(estimate)
        return self._between(hold, fail)

    def _between(self, hold: Fraction | None, fail: Fraction | None) -> Finding:
        proved = hold is not None and self.said[hold][0] == "proved"
        refuted = fail is not None and self.said[fail][1].method not in UNCERTAIN
        low, high = (fail, hold) if self.least else (hold, fail)
        said = self._sentence(hold, fail)
        word: Word = "undecided" if hold is None or fail is None else "supported"
        if proved and refuted:
            word = "proved"
        methods = [self.said[number][1].method for number in (hold, fail) if number is not None]
        numbers = {
            name: float(number)
            for name, number in (("low", low), ("high", high))
            if number is not None
        }
        evidence = Evidence(
            method=" and ".join(dict.fromkeys(methods)) or "search",
            statement=said,
            steps=tuple(self._grounds(number) for number in (hold, fail) if number is not None),
            numbers=numbers,
            draws=next((self.said[n][1].draws for n in (hold, fail) if n is not None), None)
            if word == "supported"
            else None,
            seed=self.claim.seed if word == "supported" else None,
        )
        answer = Answer(
            asks=str(self.claim.find),
            low=None if low is None else float(low),
            high=None if high is None else float(high),
            holds_with=None if hold is None else _written(hold),
            holds_word=None if hold is None else self.said[hold][0],
            fails_with=None if fail is None else _written(fail),
            certified=word == "proved",
            statement=said,
        )
        return word, evidence, answer

    def _sentence(self, hold: Fraction | None, fail: Fraction | None) -> str:
        x = self._letter
        if hold is None and fail is None:
            return f"No {x} was found with which the claim is decided."
        if hold is None:
            assert fail is not None
            return f"It fails with {x} = {_written(fail)}; with which {x} it holds is not known."
        word = {"proved": "proved"}.get(self.said[hold][0], "supported, not proved")
        first = f"It holds with {x} = {_written(hold)} ({word})"
        if fail is None:
            side = "smaller" if self.least else "larger"
            return f"{first}; whether it does with a {side} one is not known."
        certain = self.said[fail][1].method not in UNCERTAIN
        how = "refuted" if certain else f"refuted by {self.said[fail][1].method}"
        return (
            f"{first} and fails with {x} = {_written(fail)} ({how}): "
            f"the {self.claim.find.partition(' ')[0]} {x} lies between them."  # type: ignore[union-attr]
        )

    def _grounds(self, number: Fraction) -> str:
        word, evidence = self.said[number]
        return f"with {self._letter} = {_written(number)} it is {word}: {evidence.statement}"

    def _unknown(self, reason: str) -> Finding:
        evidence = Evidence(method="search", statement=reason)
        return "undecided", evidence, self._open_answer(reason)

    def _no_number(self, case: Case) -> Finding:
        where = ", ".join(
            f"{name} = {value:g}" for name, value in case.scalars.items() if name != self.name
        )
        place = f" with {where}" if where else ""
        if self._along(case, self.sign) is False:
            reason = f"No number does:{place} it fails, however {self._way} {self._letter} is."
            evidence = Evidence(method="interval arithmetic", statement=reason)
            return "refuted", evidence, replace(self._open_answer(reason), certified=True)
        return self._unknown(
            f"Up to {self._letter} = {self.sign * FARTHEST:g} it fails{place}; whether any number "
            "does is not known."
        )

    def _every_number(self) -> Finding:
        cases = list(self._cases())
        listed = all(isinstance(domain, Values) for domain in self.compiled.domains.values())
        certain = listed and not self.compiled.noisy and len(cases) < MOST_CASES
        if certain and all(self._along(case, -self.sign) is True for case in cases):
            reason = f"Every number does: it holds whatever {self._letter} is."
            evidence = Evidence(method="interval arithmetic", statement=reason)
            return "proved", evidence, replace(self._open_answer(reason), certified=True)
        return self._unknown(
            f"It held with every {self._letter} that was tried; none of them is the "
            f"{str(self.claim.find).partition(' ')[0]}."
        )

    def _open_answer(self, reason: str) -> Answer:
        return Answer(
            asks=str(self.claim.find),
            low=None,
            high=None,
            holds_with=None,
            holds_word=None,
            fails_with=None,
            certified=False,
            statement=reason,
        )

    @property
    def _letter(self) -> str:
        return with_letters(self.name)

    @property
    def _way(self) -> str:
        return "large" if self.least else "small"

    # ---- enclosed at once ----

    def _enclosed(self) -> tuple[Fraction, Fraction] | None:
        """Return both numbers from an enclosure in every case there is, where that can be had."""
        pairs = []
        choices = assignments(self.compiled)
        try:
            for assigned in choices.claims:
                for case in fixed_cases(assigned, MOST_ENCLOSED[assigned.noisy]):
                    with suppress(TooFewKeysError):
                        pairs.append(threshold_in(assigned, case, self.name, self.sign))
                    if self._late():
                        return None
        except (*NOT_ENCLOSED, FormulaError):
            return None
        if not pairs or not choices.complete:
            return None
        low, high = max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)
        if not math.isfinite(low) or not math.isfinite(high):
            return None
        apart = float((high - low) / ((abs(low) + abs(high)) or 1))
        step = max(apart / 10, SHORTEST)
        hold = _rounded(self.sign * high, step, up=self.least)
        fail = _rounded(self.sign * low, step, up=not self.least)
        unit = self.sign * Fraction(10) ** -_digits(max(abs(float(low)), abs(float(high))), step)
        # The number itself does only if no relation is strict; one that fails lies beyond it.
        hold += unit if hold == self.sign * high and _strict(self.compiled.statement) else 0
        fail -= unit if fail == self.sign * low else 0
        method = "certified quadrature" if self.compiled.noisy else "interval arithmetic"
        words: tuple[tuple[Fraction, Word], ...] = ((hold, "proved"), (fail, "refuted"))
        for number, word in words:
            statement = (
                f"it is enclosed in all {len(pairs)} cases" if len(pairs) > 1 else "enclosed"
            )
            self.said[number] = word, Evidence(method=method, statement=statement)
        return hold, fail

    # ---- certified by the judge ----

    def _bracket(self, estimate: float) -> tuple[Fraction | None, Fraction | None]:
        """Return a number with which the claim holds and one with which it fails, near each other.

        A proof is preferred to a number that is merely nearer.
        """
        hold: Fraction | None = None
        fail: Fraction | None = None
        middle = self.sign * estimate
        plain = Fraction(middle).limit_denominator(PLAIN_DENOMINATORS)
        size = abs(middle) or 1.0
        if abs(float(plain) - middle) <= STEPS[0] * size:
            word = self._ask(plain)
            hold, fail = (plain if word in HOLDS else None), (plain if word == "refuted" else None)
        for step in STEPS:
            if self._late() or (hold is not None and self._settled(hold)):
                break
            number = _rounded(middle + self.sign * step * size, step, up=self.least)
            word = self._ask(number)
            if word == "proved" or (word == "supported" and hold is None):
                hold = number
            elif word == "refuted":
                fail = number
        for step in STEPS:
            if self._late() or fail is not None:
                break
            number = _rounded(middle - self.sign * step * size, step, up=not self.least)
            word = self._ask(number)
            if word == "refuted":
                fail = number
            elif word == "proved":
                hold = number
        return self._narrowed(hold, fail)

    def _settled(self, hold: Fraction) -> bool:
        """Tell whether nothing better than this verdict can be hoped for."""
        arbitrary = self.claim.keys in ("unit", "any") or not all(
            isinstance(domain, Values | Interval) for domain in self.compiled.domains.values()
        )
        return self.said[hold][0] == "proved" or arbitrary

    def _narrowed(
        self, hold: Fraction | None, fail: Fraction | None
    ) -> tuple[Fraction | None, Fraction | None]:
        for _ in range(MOST_HALVINGS):
            if hold is None or fail is None or self._late():
                break
            if abs(hold - fail) <= NEAR * max(abs(hold), abs(fail)):
                break
            number = _rounded(
                float(hold + fail) / 2,
                float(abs(hold - fail) / (abs(hold) + abs(fail))) / 10,
                up=True,
            )
            word = self._ask(number)
            # A nearer number is no gain if less is known of it.
            if word == "refuted" and self._certain(number) >= self._certain(fail):
                fail = number
            elif word in ("proved", self.said[hold][0]):
                hold = number
            else:
                break
        return hold, fail

    def _certain(self, number: Fraction) -> bool:
        return self.said[number][1].method not in UNCERTAIN

    def _ask(self, number: Fraction) -> Word:
        if number not in self.said:
            verdict = self.judge(with_number(self.claim, number))
            self.said[number] = verdict.verdict, verdict.evidence
        return self.said[number][0]

    def _late(self) -> bool:
        return time.thread_time() > self.deadline

    # ---- estimated in float64 ----

    def _cases(self) -> Iterator[Case]:
        rng = np.random.default_rng(self.claim.seed)
        for place, case in enumerate(all_cases(self.compiled, rng)):
            if place >= MOST_CASES or self._late():
                return
            yield case

    def _estimate(self) -> tuple[float, Case | None]:
        """Return the least number (in our direction) with which no case fails, and that case."""
        best, worst, place = -math.inf, None, self.compiled
        for assigned in assignments(self.compiled).claims:
            for case in self._cases():
                try:
                    if best > -math.inf and self._gap(assigned, case, best) <= 0:
                        continue
                    reached = self._threshold(assigned, case)
                except FormulaError:
                    continue
                if reached > best:
                    best, worst, place = reached, case, assigned
                if best == math.inf:
                    return best, worst
        if worst is not None and math.isfinite(best):
            best = self._refined(place, worst, best)
            self.endless = self._growing(place, worst, best)
        return best, worst

    def _growing(self, compiled: CompiledClaim, case: Case, best: float) -> str | None:
        """Return the symbol without an end with which the number grows beyond what was seen."""
        for name, domain in compiled.domains.items():
            if not isinstance(domain, Interval) or math.isfinite(domain.high - domain.low):
                continue
            for value in FAR:
                if not domain.contains(value):
                    continue
                with suppress(FormulaError):
                    at = case.with_scalars(**{name: value})
                    if self._gap(compiled, at, best + NEAR * (abs(best) or 1.0)) > 0:
                        return name
        return None

    def _threshold(self, compiled: CompiledClaim, case: Case) -> float:
        """Return from which number on (in our direction) a case holds."""

        def gap(y: float) -> float:
            return self._gap(compiled, case, y)

        if gap(-FARTHEST) <= 0:
            return -math.inf
        if gap(FARTHEST) > 0:
            return math.inf
        low, high = -1.0, 1.0
        while gap(low) <= 0:
            low *= 16
        while gap(high) > 0:
            high *= 16
        ends = max(low, -FARTHEST), min(high, FARTHEST)
        found = scipy.optimize.brentq(gap, *ends, xtol=1e-15, rtol=1e-12)
        return float(found)

    def _gap(self, compiled: CompiledClaim, case: Case, y: float) -> float:
        noisy = compiled.noisy
        ends = dict.fromkeys(compiled.large, SCALE[noisy])
        small = vanishing(compiled, SCALE[noisy] if compiled.large else 1.0)
        at = case.with_scalars(**ends, **small, **{self.name: self.sign * y})
        if noisy:
            return float(statistics.estimate(compiled, at).gap)
        world = build_world(compiled, at.scalars, at.arrays)
        return float(np.max(Evaluator(world).truth(compiled.statement).gap))

    def _refined(self, compiled: CompiledClaim, case: Case, best: float) -> float:
        """Look for worse points of intervals, around the worst one that is known."""
        if compiled.noisy:
            return best
        for name, domain in compiled.domains.items():
            if not isinstance(domain, Interval) or domain.integer:
                continue
            width = min(domain.high, 1e3) - max(domain.low, -1e3)
            for _ in range(REFINEMENTS):
                around = case.scalars[name] + width * np.linspace(-1, 1, 41)
                for value in around:
                    if self._late() or not domain.contains(float(value)):
                        continue
                    moved = case.with_scalars(**{name: float(value)})
                    with suppress(FormulaError):
                        if self._gap(compiled, moved, best) > 0:
                            best, case = self._threshold(compiled, moved), moved
                width /= 16
        return best

    def _along(self, case: Case, way: int) -> bool | None:
        """Return whether a case holds (or fails) with every number beyond 1 or -1."""
        compiled = self.compiled
        letter = "beyond"
        towards: Expression = Name(letter) if way > 0 else Unary("-", Name(letter))
        statement = substitute(compiled.statement, {self.name: towards})
        if compiled.noisy or compiled.large or compiled.small:
            return None
        with ctx.workprec(PRECISIONS[0]), suppress(*NOT_ENCLOSED):
            scalars = {n: decimal(x) for n, x in case.scalars.items() if n != self.name}
            scalars[letter] = Ball.letter(LetterRange.of(1.0, None))
            numbers = {n: x for n, x in case.scalars.items() if n != self.name}
            return BallEvaluator(ball_world(compiled, scalars, case.arrays, numbers)).truth(
                statement
            )
        return None


HOLDS = ("proved", "supported")


# ---- the number of one case, enclosed ----
#
# In our direction a claim holds in a case with every number from some threshold on. Of `G <= F x`
# it is G/F, of `… within x` the distance of the sides, of `A and B` the larger one, of `A or B` the
# smaller. All of it is enclosed in balls, over whole intervals and beyond every scale.


def fixed_cases(compiled: CompiledClaim, most: int) -> list[Case]:
    """Return every case of listed symbols; refuse what is not all cases."""
    listed = [d for d in compiled.domains.values() if isinstance(d, Values)]
    ranged = [d for d in compiled.domains.values() if isinstance(d, Interval)]
    random = [d for d in compiled.domains.values() if isinstance(d, Array) and d.random]
    finite = all(math.isfinite(d.high - d.low) and not d.integer for d in ranged)
    large = len(compiled.large)
    known = len(listed) + len(ranged) + len(random) + large == len(compiled.domains)
    alone = not (ranged and (large or compiled.noisy)) and not (large and compiled.noisy)
    count = math.prod(len(d.numbers) for d in listed)
    if (
        not known
        or not finite
        or not alone
        or count > most
        or compiled.claim.keys in ("unit", "any")
    ):
        raise NotEnclosed("cases that cannot all be looked at")
    if compiled.noisy and not compiled.statistical:
        raise NotEnclosed("a statement about every draw")
    names = [name for name, d in compiled.domains.items() if isinstance(d, Values)]
    choices = itertools.product(*(d.numbers for d in listed))
    return [Case(dict(zip(names, choice, strict=True))) for choice in choices]


def threshold_in(compiled: CompiledClaim, case: Case, name: str, sign: int) -> tuple[End, End]:
    """Enclose the threshold of a case over all of its intervals, or beyond every scale."""
    ranges = {
        symbol: (domain.low, domain.high)
        for symbol, domain in compiled.domains.items()
        if isinstance(domain, Interval)
    }
    with ctx.workprec(PRECISIONS[0]):
        if ranges:
            return _over_boxes(compiled, case, ranges, name, sign)
        if compiled.noisy:
            evaluator = statistics.over_cells(compiled, case)
        elif compiled.large:
            (symbol,) = compiled.large
            evaluator = BallEvaluator(lettered(compiled, case, symbol, ENCLOSED_FROM, None))
        else:
            scalars = {symbol: decimal(value) for symbol, value in case.scalars.items()}
            evaluator = BallEvaluator(ball_world(compiled, scalars, case.arrays, case.scalars))
        return _ends(_threshold(compiled.statement, evaluator, name, sign))


def _over_boxes(
    compiled: CompiledClaim,
    case: Case,
    ranges: Mapping[str, tuple[float, float]],
    name: str,
    sign: int,
) -> tuple[End, End]:
    """Enclose the largest threshold over a box by halving the part that may hold it."""

    def on(box: Mapping[str, tuple[float, float]]) -> tuple[End, End]:
        scalars = {symbol: decimal(value) for symbol, value in case.scalars.items()}
        scalars |= {symbol: Ball.between(*ends) for symbol, ends in box.items()}
        if len(box) == 1:
            ((symbol, (low, high)),) = box.items()
            if low < high:  # one symbol stays a letter, which keeps it tight
                scalars[symbol] = Ball.letter(LetterRange.of(low, high))
        numbers = {n: x for n, x in case.scalars.items() if n not in box}
        world = ball_world(compiled, scalars, case.arrays, numbers)
        return _ends(_threshold(compiled.statement, BallEvaluator(world), name, sign))

    best: End = -math.inf
    waiting: list[tuple[float, int, End, dict[str, tuple[float, float]]]] = []
    closed: End = -math.inf
    """The largest upper end of a box that is too narrow to halve."""
    counted = itertools.count()

    def push(box: dict[str, tuple[float, float]]) -> None:
        nonlocal best
        middle = {symbol: ((low + high) / 2,) * 2 for symbol, (low, high) in box.items()}
        with suppress(*NOT_ENCLOSED):
            best = max(best, on(middle)[0])
        try:
            high = on(box)[1]
        except NOT_ENCLOSED:
            high = math.inf
        if high > best:
            heapq.heappush(waiting, (-float(high), next(counted), high, box))

    push(dict(ranges))
    for _ in range(MOST_BOXES):
        if not waiting:
            return best, max(best, closed)
        _, _, high, box = heapq.heappop(waiting)
        if high <= best or high - best <= SHARP * max(abs(high), abs(best)):
            return best, max(high, best, closed)
        widest = max(box, key=lambda symbol: box[symbol][1] - box[symbol][0])
        low, end = box[widest]
        middle = (low + end) / 2
        if not low < middle < end:
            closed = max(closed, high)
            continue
        push({**box, widest: (low, middle)})
        push({**box, widest: (middle, end)})
    return best, max([closed, best, *(entry[2] for entry in waiting)])


def _threshold(node: Expression, evaluator: BallEvaluator, name: str, sign: int) -> Any:
    """Enclose from which number on (in our direction) a statement holds."""
    if name not in mentions(node):
        truth = evaluator.truth(node)
        if truth is None:
            raise NotEnclosed("a part that is not decided")
        return arb.neg_inf() if truth else arb.pos_inf()
    match node:
        case Logic("and" | "or" as operator, left, right):
            parts = [_threshold(part, evaluator, name, sign) for part in (left, right)]
            return parts[0].max(parts[1]) if operator == "and" else parts[0].min(parts[1])
        case Logic("implies", left, right) if name not in mentions(left):
            truth = evaluator.truth(left)
            if truth is None:
                raise NotEnclosed("a condition that is not decided")
            return _threshold(right, evaluator, name, sign) if truth else arb.neg_inf()
        case ForAll(indices, condition, body):
            largest = arb.neg_inf()
            for inner, sure in evaluator.cases(indices, condition, body):
                if not sure:
                    raise NotEnclosed("a condition that is not decided")
                largest = largest.max(_threshold(body, inner, name, sign))
            return largest
        case Compare("~", left, right, Name(text)) if text == name:
            sides = evaluator.value(left), evaluator.value(right)
            return sign * balls.distance(add(sides[0], negated(sides[1])), sides[1]).flat()
        case Compare("<" | "<=" | ">" | ">="):
            bound = _isolated(node, name)
            if bound is not None:
                return sign * balls.number(evaluator.value(bound)).flat()
    raise NotEnclosed("a number that does not stand alone")


def _isolated(node: Compare, name: str) -> Expression | None:
    """Return what the open number is compared with: of `G <= F x` it is G/F."""
    left, right = node.left, node.right
    other, own = (left, right) if name in mentions(right) else (right, left)
    if name in mentions(other):
        return None
    match own:
        case Name(text) if text == name:
            return other
        case Binary("*", factor, Name(text)) | Binary("*", Name(text), factor) if text == name:
            return Binary("/", other, factor)
    return None


def _ends(threshold: arb) -> tuple[End, End]:
    """Return both ends of a ball, exactly."""
    if threshold == arb.neg_inf():
        return -math.inf, -math.inf
    if not threshold.is_finite():
        raise NotEnclosed("a threshold without an end")
    return _exactly(threshold.lower()), _exactly(threshold.upper())


def _exactly(point: arb) -> Fraction:
    mantissa, exponent = point.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _strict(statement: Expression) -> bool:
    return any(isinstance(node, Compare) and node.operator in "<>" for node in walk(statement))


# ---- in which direction a claim gets easier ----


def direction_of_claim(compiled: CompiledClaim, name: str) -> Direction:
    """Return whether a claim gets easier (1) or harder (-1) as a number grows."""
    statement = (*compiled.expectations, *(() if compiled.given is None else (compiled.given,)))
    others = (tree for tree in compiled.trees if not any(tree is own for own in statement))
    if any(name in mentions(tree) for tree in others):
        return None  # weights and outputs depend on it, in a way that no formula shows
    return _direction(compiled.statement, name, compiled)


def _direction(node: Expression, name: str, compiled: CompiledClaim) -> Direction:
    """Return how a value, or the truth of a statement, moves with a number."""
    if name not in mentions(node):
        return 0
    match node:
        case Name():
            return 1
        case Unary(operator, operand):
            inside = _direction(operand, name, compiled)
            return inside if operator == "T" or inside is None else -inside
        case Binary("+", left, right):
            return _both(_direction(left, name, compiled), _direction(right, name, compiled))
        case Binary("-", left, right):
            return _both(
                _direction(left, name, compiled), _turned(_direction(right, name, compiled))
            )
        case Binary("*" | "/" as operator, left, right):
            return _of_product(operator, left, right, name, compiled)
        case Logic("implies", left, right):
            return _both(
                _turned(_direction(left, name, compiled)), _direction(right, name, compiled)
            )
        case Logic(_, left, right):
            return _both(_direction(left, name, compiled), _direction(right, name, compiled))
        case ForAll(_, condition, body):
            free = condition is None or name not in mentions(condition)
            return _direction(body, name, compiled) if free else None
        case Compare():
            return _of_relation(node, name, compiled)
        case Call(function, (first, *rest), given):
            plain = given is None or name not in mentions(given)
            if not plain or any(name in mentions(part) for part in rest):
                return None
            folds = function in ("sum", "max", "min") and len(rest) <= 1
            if function in INCREASING or function == "P" or folds:
                return _direction(first, name, compiled)
    return None


def _of_product(
    operator: str, left: Expression, right: Expression, name: str, compiled: CompiledClaim
) -> Direction:
    if name not in mentions(right):
        factor, moving = right, left
    elif operator == "*" and name not in mentions(left):
        factor, moving = left, right
    else:
        return None
    inside = _direction(moving, name, compiled)
    if sign_of(factor, compiled) != "unknown":
        return inside
    return _turned(inside) if sign_of(_negated(factor), compiled) != "unknown" else None


def _negated(node: Expression) -> Expression:
    return node.operand if isinstance(node, Unary) and node.operator == "-" else Unary("-", node)


def _of_relation(node: Compare, name: str, compiled: CompiledClaim) -> Direction:
    left, right = _direction(node.left, name, compiled), _direction(node.right, name, compiled)
    if node.operator == "~":
        free = left == right == 0 and node.within is not None
        return _direction(node.within, name, compiled) if free and node.within else None
    if node.operator in ("<", "<="):
        return _both(_turned(left), right)
    if node.operator in (">", ">="):
        return _both(left, _turned(right))
    return None


def _both(first: Direction, second: Direction) -> Direction:
    if first is None or second is None or first * second < 0:
        return None
    return first or second


def _turned(direction: Direction) -> Direction:
    return None if direction is None else -direction


# ---- numbers as they are written ----


def _rounded(value: float | Fraction, step: float, *, up: bool) -> Fraction:
    """Return a number near a value with no more digits than a relative step is worth."""
    if value == 0:
        return Fraction(0)
    scale = Fraction(10) ** _digits(float(value), step)
    exact = Fraction(value) * scale
    return Fraction(math.ceil(exact) if up else math.floor(exact)) / scale


def _digits(value: float, step: float) -> int:
    """Return how many decimals a number of this size has if a relative step is its last."""
    size = abs(value) or 1.0
    return max(1, -math.floor(math.log10(step))) - math.floor(math.log10(size))


def _written(number: Fraction) -> str:
    return show(constant(number))


# Much larger ---------------------------------------------------------------------------------

ENDLESS = ("large", "any", "real", "positive")
"""Ranges of a symbol that may be as large as one likes."""


def says_much_larger(claim: Claim) -> bool:
    """Tell whether a claim, whose formulas have been read, uses ≫."""
    return any(
        isinstance(node, Compare) and node.operator == ">>"
        for text in (*claim.expect, *(() if claim.given is None else (claim.given,)))
        if isinstance(text, ParsedFormula)
        for node in walk(text.tree)
    )


def with_margin(claim: Claim) -> Claim:
    """Return a claim in which ≫ is written out: a large symbol, or an open margin M."""
    if claim.find is not None:
        raise field_error(
            ("find",), "is asked for beside ≫", expected="one of the two: ≫ asks for its margin"
        )
    claim = _with_large(claim)
    if not says_much_larger(claim):
        return claim
    names = {name for text in (*claim.expect, claim.given) if text for name in names_in(text.tree)}  # type: ignore[attr-defined]
    margin = next(
        name for number in count() if (name := f"M{number or ''}") not in {*names, *claim.where}
    )

    def written(node: Expression) -> Expression:
        node = map_children(node, written)
        if isinstance(node, Compare) and node.operator == ">>":
            least = Binary("+", node.right, Name(margin))
            return Compare(">=", node.left, least, position=node.position)
        return node

    def changed(field: tuple[str | int, ...], text: str) -> str:
        assert isinstance(text, ParsedFormula)
        tree = written(text.tree) if field[0] in STATEMENTS else text.tree
        return text if tree == text.tree else ParsedFormula(show(tree), tree)

    return map_formulas(claim, changed).changed(find=f"least {margin}")


def _with_large(claim: Claim) -> Claim:
    """Return a claim in which `beta >> 0` under `given` has become: beta is large."""
    if claim.given is None:
        return claim
    assert isinstance(claim.given, ParsedFormula)
    kept: list[Expression] = []
    where = dict(claim.where)
    for part in _conjuncts(claim.given.tree):
        match part:
            case Compare(">>", Name(symbol), right) if rational(right) is not None and (
                where.get(symbol, "large") in ENDLESS
            ):
                where[symbol] = "large"
            case _:
                kept.append(part)
    if not kept:
        return claim.changed(where=where, given=None)
    tree = kept[0]
    for part in kept[1:]:
        tree = Logic("and", tree, part)
    same = tree == claim.given.tree
    return claim.changed(
        where=where, given=claim.given if same else ParsedFormula(show(tree), tree)
    )


def _conjuncts(tree: Expression) -> list[Expression]:
    if isinstance(tree, Logic) and tree.operator == "and":
        return [*_conjuncts(tree.left), *_conjuncts(tree.right)]
    return [tree]


def find_margin(compiled: CompiledClaim, judge: Judge, deadline: float) -> Finding:
    """Return the verdict on a claim that must hold from some margin on, and that margin."""
    margin = open_name(compiled.claim)
    if direction_of_claim(compiled, margin) != 1:
        raise compiled.expectations[0].error(
            "≫ in what is claimed says no number",
            expected="≫ in a condition: … given that k_a^T q >> k_i^T q",
            hint="write alpha_a >= x alpha_b with find, or alpha_b / alpha_a -> 0",
        )
    reading = f"Read as: there is {with_letters(margin)} from which on it holds. "
    found = _by_leading_key(compiled, margin)
    if found is None:
        word, evidence, answer = find_number(compiled, judge, deadline)
        if answer.holds_with is not None:  # that a smaller margin fails is not part of the claim
            word = "proved" if answer.holds_word == "proved" else "supported"
        found = word, evidence, answer
    word, evidence, answer = found
    return (
        word,
        replace(evidence, statement=reading + evidence.statement),
        replace(answer, statement=reading + answer.statement),
    )


def _by_leading_key(compiled: CompiledClaim, margin: str) -> Finding | None:
    """Prove a claim about a key whose score is M above every other.

    Then its weight is 1/(1 + Σ exp(l_i − l_a)) ≥ 1/(1 + (n − 1) exp(−M)), whatever the keys are.
    """
    key = _leading_key(compiled, margin)
    share = None if key is None else _wanted_share(compiled, key)
    counts = compiled.domains.get("n")
    if compiled.key_rows:
        counts = Values((float(len(compiled.key_rows)),))
    if share is None or not isinstance(counts, Values) or compiled.claim.scale != 1:
        return None
    n = max(counts.numbers)
    with ctx.workprec(PRECISIONS[0]):
        exact = arb(share.numerator) / arb(share.denominator)
        bound = 0.0
        if n > 1:
            bound = max(0.0, float((arb(n - 1) * exact / (1 - exact)).log().upper()))
    least = rounded_up(bound)
    formula = f"ln((n − 1)·{show(Number(share))}/(1 − {show(Number(share))}))"
    statement = (
        f"With {margin} = {least:g} it is proved for every n up to {n:g}: "
        f"{margin}₀ = {formula}, whatever the keys and the query are."
    )
    steps = (
        f"the weight of {key} is 1/(1 + Σ exp(kᵢᵀq − k_{key}ᵀq)), summed over the n − 1 other keys",
        f"each difference is at most −{margin}, so it is at least 1/(1 + (n − 1) exp(−{margin}))",
        f"that is at least {show(Number(share))} from {margin} = {formula} on",
    )
    answer = Answer(
        asks=str(compiled.claim.find),
        low=None,
        high=least,
        holds_with=f"{least:g}",
        holds_word="proved",
        fails_with=None,
        certified=False,
        statement=statement,
    )
    numbers = {f"{margin}_0": least}
    return (
        "proved",
        Evidence(method="algebra", statement=statement, steps=steps, numbers=numbers),
        answer,
    )


def _leading_key(compiled: CompiledClaim, margin: str) -> str | None:
    """Return a if the condition is k_aᵀq ≥ k_iᵀq + M for all i ≠ a, of the one query q."""
    if len(compiled.heads) != 1 or compiled.sequence:
        return None
    match compiled.given:
        case ForAll(
            (index,),
            Compare("!=", Name(other), Name(key)),
            Compare(">=", left, Binary("+", right, Name(name))),
        ) if other == index and name == margin:
            names = {frozenset(names_in(left)), frozenset({f"k_{key}", "q"})}
            product = isinstance(left, Binary) and left.operator == "*" and len(names) == 1
            same = instantiate(right, index, key) == left and f"k_{index}" in names_in(right)
            return key if product and same else None
    return None


def _wanted_share(compiled: CompiledClaim, key: str) -> Fraction | None:
    """Return the weight of the leading key from which on the claim holds."""
    if len(compiled.expectations) != 1:
        return None
    share: Fraction | None = None
    match compiled.expectations[0]:
        case Compare(">" | ">=", Name(text), right) if text == f"alpha_{key}":
            share = rational(right)
        case Compare("~", Name("c"), Name(text), within) if text == f"v_{key}":
            free = compiled.claim.values == "arbitrary"
            tolerance = (
                Fraction(str(compiled.claim.tolerance)) if within is None else rational(within)
            )
            share = None if tolerance is None or not free else 1 - tolerance
        case ForAll(
            (index,), Compare("!=", Name(other), Name(own)), Compare("<" | "<=", Name(text), right)
        ) if other == index and own == key and text == f"alpha_{index}":
            most = rational(right)
            share = None if most is None else 1 - most
    return share if share is not None and 0 < share < 1 else None
