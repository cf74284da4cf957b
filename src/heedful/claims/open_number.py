"""For which number does it hold: claims that leave a tolerance or a factor open (`find`).

`std(c) <= x std(single)` with `find = "least x"` asks for the number that the source did not give.
A claim that gets easier as x grows holds from some number on. It is estimated case by case in
float64, then certified by the judge itself: it proves the claim with one number and refutes it
with another, as close as it can, and the answer lies between them.

The direction in which a claim gets easier is read off its formula. Where it cannot be, nothing is
said: a claim that holds with 1 and fails with 2 may hold again with 3.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
from flint import ctx
from scipy.optimize import brentq

from heedful.claims import statistics
from heedful.claims.balls import Ball, LetterRange
from heedful.claims.compile import CompiledClaim
from heedful.claims.definedness import sign_of
from heedful.claims.evaluate.ball import BallEvaluator
from heedful.claims.evaluate.float import Evaluator
from heedful.claims.language import constant, show, substitute, with_letters
from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Expression,
    ForAll,
    Logic,
    Name,
    Unary,
    mentions,
)
from heedful.claims.letters import assignments
from heedful.claims.proofs import NOT_ENCLOSED, PRECISIONS, ball_world, decimal
from heedful.claims.search import Case, all_cases, vanishing
from heedful.claims.sheet.claim import Claim
from heedful.claims.sheet.formulas import ParsedFormula, map_formulas
from heedful.claims.symbols import Interval, Values
from heedful.claims.verdict import Answer, Evidence, Verdict, Word
from heedful.claims.worlds import build_world
from heedful.errors import FormulaError

Direction = int | None
"""1: grows, or gets easier, with the open number; -1: falls, or gets harder; 0: neither; None:
not known."""
Judge = Callable[[Claim], Verdict]
Finding = tuple[Word, Evidence, Answer]
"""What is said of a claim with an open number: the verdict, its grounds, and the number."""

FARTHEST = 1e12
"""Numbers up to this size are tried."""
STEPS = (1e-6, 1e-4, 1e-3, 1e-2, 0.05, 0.3)
"""How far beside the estimate the judge is asked, in turn, relative to its size."""
NEAR = 1e-4
"""Relative width from which on an enclosure is not narrowed any further."""
MOST_HALVINGS = 6
MOST_CASES = 400
"""Cases in which the number is estimated."""
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
        self.words: dict[Fraction, Verdict] = {}
        self.endless: str | None = None

    # ---- from the question to the answer ----

    def answer(self) -> Finding:
        direction = _direction_of_claim(self.compiled, self.name)
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
        proved = hold is not None and self.words[hold].verdict == "proved"
        refuted = fail is not None and self.words[fail].evidence.method not in UNCERTAIN
        low, high = (fail, hold) if self.least else (hold, fail)
        said = self._sentence(hold, fail)
        word: Word = "undecided" if hold is None or fail is None else "supported"
        if proved and refuted:
            word = "proved"
        methods = [
            self.words[number].evidence.method for number in (hold, fail) if number is not None
        ]
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
            draws=next((self.words[n].evidence.draws for n in (hold, fail) if n is not None), None)
            if word == "supported"
            else None,
            seed=self.claim.seed if word == "supported" else None,
        )
        answer = Answer(
            asks=str(self.claim.find),
            low=None if low is None else float(low),
            high=None if high is None else float(high),
            holds_with=None if hold is None else _written(hold),
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
        word = {"proved": "proved"}.get(self.words[hold].verdict, "supported, not proved")
        first = f"It holds with {x} = {_written(hold)} ({word})"
        if fail is None:
            side = "smaller" if self.least else "larger"
            return f"{first}; whether it does with a {side} one is not known."
        certain = self.words[fail].evidence.method not in UNCERTAIN
        how = "refuted" if certain else f"refuted by {self.words[fail].evidence.method}"
        return (
            f"{first} and fails with {x} = {_written(fail)} ({how}): "
            f"the {self.claim.find.partition(' ')[0]} {x} lies between them."  # type: ignore[union-attr]
        )

    def _grounds(self, number: Fraction) -> str:
        verdict = self.words[number]
        return (
            f"with {self._letter} = {_written(number)} it is {verdict.verdict}: "
            f"{verdict.evidence.statement}"
        )

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
        return self.words[hold].verdict == "proved" or arbitrary

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
            if word == "refuted":
                fail = number
            elif word == self.words[hold].verdict or word == "proved":
                hold = number
            else:
                break
        return hold, fail

    def _ask(self, number: Fraction) -> str:
        if number not in self.words:
            self.words[number] = self.judge(with_number(self.claim, number))
        return self.words[number].verdict

    def _late(self) -> bool:
        return time.perf_counter() > self.deadline

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
        found = brentq(gap, max(low, -FARTHEST), min(high, FARTHEST), xtol=1e-15, rtol=1e-12)
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


# ---- in which direction a claim gets easier ----


def _direction_of_claim(compiled: CompiledClaim, name: str) -> Direction:
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


def _rounded(value: float, step: float, *, up: bool) -> Fraction:
    """Return a number near a value with no more digits than a relative step is worth."""
    if value == 0:
        return Fraction(0)
    digits = max(1, -math.floor(math.log10(step))) - math.floor(math.log10(abs(value)))
    scale = Fraction(10) ** digits
    exact = Fraction(value) * scale
    return Fraction(math.ceil(exact) if up else math.floor(exact)) / scale


def _written(number: Fraction) -> str:
    return show(constant(number))
