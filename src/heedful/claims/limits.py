"""Limits: a value that comes as close as one likes to another, as a symbol grows or vanishes.

`alpha_a -> 1 as beta -> infinity` says: for every ε > 0 there is a β₀ from which on the two sides
are within ε. The proof is an exact one. With every other number given, both sides are quotients of
sums of c βᵏ exp(aβ); the quotient vanishes exactly if the leading term of its numerator is smaller
than that of its denominator. Where that cannot be had, the judge is asked for a few ε: a claim
that fails for one of them refutes the limit, one that holds for all supports it.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from heedful.claims.algebra import always_defined
from heedful.claims.compile import CompiledClaim, Interval, Values
from heedful.claims.language import with_letters
from heedful.claims.language.tree import (
    Compare,
    Expression,
    ForAll,
    Limit,
    Logic,
    Number,
    map_children,
    mentions,
    walk,
)
from heedful.claims.proofs import exact_truth
from heedful.claims.search import Case, all_cases, outcome_of
from heedful.claims.verdict import Counterexample, Decision, Evidence
from heedful.claims.worlds import TooFewKeysError, assignments

Decide = Callable[[CompiledClaim, float], Decision]
TOLERANCES = (Fraction(1, 10**2), Fraction(1, 10**4), Fraction(1, 10**6))
"""How close the sides must come, in turn, where nothing is proved for every ε."""
SIZES = ("n", "d", "T")
"""Symbols that are sizes of arrays: they grow step by step."""
LARGER_SIZES = (10.0, 100.0, 1000.0)
NEARLY = 0.02
"""How small the distance must be at the largest size to be called vanishing."""
FALLING = 0.5
"""A distance that is to vanish must shrink by this factor from one size to the next."""
MOST_CASES = 60
"""Cases in which a limit is proved exactly."""
FAILING_AT = (10.0, 100.0, 1e3, 1e6, 1e9, 1e15, 1e21)
"""Where a failure for all large values is shown."""
NOT_ZERO = 1e-30
"""A coefficient of this size or more, evaluated to 50 digits, is not 0."""


def has_limit(compiled: CompiledClaim) -> bool:
    """Tell whether a claim speaks of a limit."""
    return any(isinstance(node, Limit) for tree in compiled.trees for node in walk(tree))


def decide_limit(compiled: CompiledClaim, deadline: float, decide: Decide) -> Decision:
    """Decide a claim about limits."""
    (symbol, target) = _moving(compiled)
    if symbol in SIZES:
        return _by_sizes(compiled, symbol)
    exact = _by_leading_terms(compiled, symbol, target, deadline)
    return _by_tolerances(compiled, symbol, deadline, decide) if exact is None else exact


def _moving(compiled: CompiledClaim) -> tuple[str, str]:
    """Return the one symbol that moves, and where; refuse limits that are not the whole claim."""
    found = set()
    for tree in compiled.expectations:
        for node in _statements(tree):
            if not isinstance(node, Limit):
                raise node.error(
                    "a limit stands beside what is no limit",
                    expected="limits alone, each `for all` indices if need be",
                    hint="make it two claims",
                )
            found.add((node.symbol, node.target))
            if node.symbol in mentions(node.right):
                raise node.error(
                    f"the limit itself moves with {node.symbol}",
                    expected=f"a value without {node.symbol} on the right side",
                )
    if len(found) != 1 or compiled.given is not None:
        raise compiled.expectations[0].error(
            "limits under a condition, or of several symbols", expected="one symbol that moves"
        )
    return found.pop()


def _statements(tree: Expression) -> Iterator[Expression]:
    match tree:
        case Logic("and", left, right):
            yield from _statements(left)
            yield from _statements(right)
        case ForAll(_, _, body):
            yield from _statements(body)
        case _:
            yield tree


def nearby(compiled: CompiledClaim, epsilon: Fraction) -> CompiledClaim:
    """Return the claim that the two sides are within ε, in the place of the limit."""

    def near(node: Expression) -> Expression:
        if isinstance(node, Limit):
            return Compare("~", node.left, node.right, Number(epsilon), position=node.position)
        return map_children(node, near)

    return replace(compiled, expectations=tuple(map(near, compiled.expectations)))


# ---- proved by leading terms ----


def _by_leading_terms(
    compiled: CompiledClaim, symbol: str, target: str, deadline: float
) -> Decision | None:
    from heedful.claims.evaluate.symbolic import _OUTSIDE  # SymPy takes 0.3 s to import

    looked_at = 0
    try:
        for letters, scalars, _ in _lettered(compiled, symbol, deadline):
            gaps = [
                gap
                for tree in compiled.expectations
                for gap in _gaps(letters, tree, symbol, target)
            ]
            looked_at += 1
            wrong = next((gap for gap in gaps if gap != 0), None)
            if wrong is not None:
                return _refuted(symbol, target, scalars, wrong)
    except _OUTSIDE:
        return None
    if not looked_at:
        return None
    arrow = f"{with_letters(symbol)} → {with_letters(target)}"
    cases_text = "the only case" if looked_at == 1 else f"all {looked_at} cases"
    statement = f"As {arrow} the difference of the two sides tends to 0, exactly, in {cases_text}."
    steps = (
        "write the difference as one quotient of sums of c·βᵏ·exp(aβ)"
        if target == "infinity"
        else "write the difference as one quotient, whose denominator is not 0 at 0",
        "the leading term of the numerator is smaller than that of the denominator"
        if target == "infinity"
        else "its numerator is 0 at 0",
    )
    return "proved", Evidence(method="algebra", statement=statement, steps=steps), None


def _lettered(
    compiled: CompiledClaim, symbol: str, deadline: float
) -> Iterator[tuple[Any, dict[str, float], CompiledClaim]]:
    """Yield every case of a claim in which all is given but one symbol, which is a letter.

    Raises NotSymbolic where there are other ranges than lists, or too many cases.
    """
    from heedful.claims.evaluate.symbolic import letters_for
    from heedful.claims.functions import NotSymbolic

    listed = all(
        isinstance(domain, Values) or name == symbol for name, domain in compiled.domains.items()
    )
    if not listed or compiled.noisy or compiled.claim.keys in ("unit", "any"):
        raise NotSymbolic("a range of values")
    positive = Interval(0.0, math.inf, open_low=True)
    choices = assignments(compiled)
    for assigned in choices.claims:
        lettered = replace(assigned, domains={**assigned.domains, symbol: positive})
        cases = list(assigned.scalar_cases(np.random.default_rng(0)))
        if not choices.complete or len(cases) > MOST_CASES or len(cases) != _count(assigned):
            raise NotSymbolic("too many cases")
        for scalars in cases:
            if time.thread_time() > deadline:
                raise NotSymbolic("no time left")
            if len(assigned.members) <= scalars.get("n", math.inf):
                yield letters_for(lettered, scalars), scalars, assigned


def decide_eventually(compiled: CompiledClaim, deadline: float) -> Decision | None:
    """Decide a claim about a large symbol by the leading terms of its sides; None: cannot be told.

    Two sides that are quotients of sums of c βᵏ exp(aβ) are equal, or one is larger from some β on.
    """
    from heedful.claims.evaluate.symbolic import _OUTSIDE

    symbol = compiled.large[0]
    cases = 0
    try:
        if compiled.small or len(compiled.large) > 1 or not always_defined(compiled):
            return None
        for letters, scalars, assigned in _lettered(compiled, symbol, deadline):
            cases += 1
            if not _holds_at_last(letters, compiled.statement, symbol):
                return _fails_at_last(assigned, symbol, scalars)
    except _OUTSIDE:
        return None
    if not cases:
        return None
    shown = "the only case" if cases == 1 else f"all {cases} cases"
    greek = with_letters(symbol)
    statement = f"From some {greek} on it holds in {shown}, by the leading terms of its sides."
    steps = (
        f"write the difference of the sides as one quotient of sums of c·{greek}ᵏ·exp(a{greek})",
        f"its sign for large {greek} is that of the quotient of the leading terms",
    )
    return "proved", Evidence(method="algebra", statement=statement, steps=steps), None


def _holds_at_last(letters: Any, tree: Expression, symbol: str) -> bool:
    """Tell whether a statement holds from some value of a symbol on, or fails from one on."""
    from heedful.claims.functions import NotSymbolic

    match tree:
        case Logic("and", left, right):
            first, second = (_holds_at_last(letters, part, symbol) for part in (left, right))
            return first and second
        case ForAll(indices, condition, body):
            inside = [inner for inner, _ in letters.cases(indices, condition, body)]
            return all(_holds_at_last(inner, body, symbol) for inner in inside)
        case Compare("~"):
            return _near_at_last(letters, tree, symbol)
        case Compare(operator, left, right):
            signs = {
                _sign_at_last(entry, letters.world.symbols[symbol])
                for entry in _entries(letters.value(left) - letters.like(left, right))
            }
            if operator in ("=", "!="):
                return (signs <= {0}) == (operator == "=")
            if len(signs) == 1:
                sign = signs.pop()
                return {"<": sign < 0, "<=": sign <= 0, ">": sign > 0, ">=": sign >= 0}[operator]
    raise NotSymbolic("a statement of another kind")


def _near_at_last(letters: Any, node: Compare, symbol: str) -> bool:
    """Tell whether two sides come within a tolerance: their difference has a limit that does."""
    import sympy

    from heedful.claims.functions import NotSymbolic

    beta = letters.world.symbols[symbol]
    if node.within is None or node.left == node.right:
        raise NotSymbolic("a tolerance that is not written")
    within = letters.value(node.within)
    difference = letters.value(node.left) - letters.like(node.left, node.right)
    limits = [_limit_at_infinity(entry, beta) for entry in _entries(difference)]
    apart = sympy.sqrt(sum(limit**2 for limit in limits))
    if isinstance(difference, sympy.MatrixBase):
        sides = [_limit_at_infinity(e, beta) for e in _entries(letters.value(node.right))]
        within *= sympy.Max(1, sympy.sqrt(sum(side**2 for side in sides)))
    slack = sympy.N(within - apart, 50)
    if not slack.is_Float or abs(slack) < NOT_ZERO:
        raise NotSymbolic("a limit at the edge")
    return bool(slack > 0)


def _entries(value: Any) -> list[Any]:
    import sympy

    entries = list(value) if isinstance(value, sympy.MatrixBase) else [value]
    return [sympy.Integer(0) + entry for entry in entries]


def _sign_at_last(entry: Any, beta: Any) -> int:
    """Return the sign that a quotient of sums of c βᵏ exp(aβ) has from some β on."""
    import sympy

    top, bottom = sympy.fraction(sympy.together(sympy.expand_power_exp(entry)))
    above, below = _leading(top, beta), _leading(bottom, beta)
    if below is None:
        raise sympy.ShapeError("divides by zero")
    if above is None:
        return 0
    return 1 if sympy.N(above[1] / below[1], 50) > 0 else -1


def _fails_at_last(
    compiled: CompiledClaim, symbol: str, scalars: dict[str, float]
) -> Decision | None:
    """Refute a claim that fails from some value on, and show one at which it surely fails."""
    greek = with_letters(symbol)
    for value in FAILING_AT:
        shown = {**scalars, symbol: value}
        if exact_truth(compiled, Case(shown, {})) is False:
            break
    else:
        return None
    where = ", ".join(f"{name} = {number:g}" for name, number in shown.items())
    statement = (
        f"With {where} it fails, and so it does for every larger {greek} from some point on: that "
        "is what the leading terms of its sides say."
    )
    symbols: dict[str, Any] = {name: int(x) if x == round(x) else x for name, x in shown.items()}
    counterexample = Counterexample(
        symbols=symbols, left=None, right=None, gap=math.inf, statement=statement
    )
    return "refuted", Evidence(method="algebra", statement=statement), counterexample


def _count(compiled: CompiledClaim) -> int:
    return math.prod(
        len(domain.numbers) for domain in compiled.domains.values() if isinstance(domain, Values)
    )


def _gaps(letters: Any, tree: Expression, symbol: str, target: str) -> Iterator[Any]:
    """Yield the limit of each entry of the difference of the sides: 0, another number, infinity."""
    import sympy

    from heedful.claims.functions import NotSymbolic

    match tree:
        case Logic("and", left, right):
            yield from _gaps(letters, left, symbol, target)
            yield from _gaps(letters, right, symbol, target)
        case ForAll(indices, condition, body):
            for inner, _ in letters.cases(indices, condition, body):
                yield from _gaps(inner, body, symbol, target)
        case Limit(left, right):
            difference = letters.value(left) - letters.value(right)
            entries = list(difference) if isinstance(difference, sympy.MatrixBase) else [difference]
            beta = letters.world.symbols[symbol]
            limit = _limit_at_infinity if target == "infinity" else _limit_at_zero
            for entry in entries:
                yield limit(sympy.Integer(0) + entry, beta)
        case _:
            raise NotSymbolic("a statement that is no limit")


def _limit_at_infinity(entry: Any, beta: Any) -> Any:
    """Return the limit of a quotient of sums of c βᵏ exp(aβ), by its leading terms."""
    import sympy

    top, bottom = sympy.fraction(sympy.together(sympy.expand_power_exp(entry)))
    above, below = _leading(top, beta), _leading(bottom, beta)
    if below is None:
        raise sympy.ShapeError("divides by zero")
    if above is None or above[0] < below[0]:
        return sympy.Integer(0)
    return above[1] / below[1] if above[0] == below[0] else sympy.oo


def _leading(total: Any, beta: Any) -> tuple[tuple[Any, Any], Any] | None:
    """Return ((a, k), c) of the leading term c βᵏ exp(aβ) of a sum; None for 0."""
    import sympy

    from heedful.claims.functions import NotSymbolic

    terms: dict[tuple[Any, Any], Any] = {}
    expanded = sympy.expand(sympy.expand_power_exp(sympy.expand(total)))
    if expanded == 0:
        return None
    for term in sympy.Add.make_args(expanded):
        coefficient, rest = term.as_independent(beta, as_Add=False)
        slope, power = sympy.Integer(0), sympy.Integer(0)
        for factor in sympy.Mul.make_args(rest):
            base, exponent = factor.as_base_exp()
            if base == beta and exponent.is_Rational:
                power += exponent
            elif isinstance(factor, sympy.exp) or base == sympy.E:
                argument = sympy.expand(
                    factor.args[0] if isinstance(factor, sympy.exp) else exponent
                )
                rate = argument.coeff(beta)
                if not rate.is_Rational or sympy.expand(argument - rate * beta).has(beta):
                    raise NotSymbolic("an exponent that is not linear")
                slope += rate
                coefficient *= sympy.exp(argument - rate * beta)
            elif factor != 1:
                raise NotSymbolic("a term of another kind")
        terms[slope, power] = terms.get((slope, power), sympy.Integer(0)) + coefficient
    for degree in sorted(terms, reverse=True):
        value = sympy.expand(terms[degree])
        if value == 0:
            continue
        if not value.is_number or abs(sympy.N(value, 50)) < NOT_ZERO:
            raise NotSymbolic("a coefficient whose size is not known")
        return degree, value
    return None


def _limit_at_zero(entry: Any, beta: Any) -> Any:
    """Return the value at 0 of a quotient that has one there, made of what is continuous."""
    import sympy

    from heedful.claims.functions import NotSymbolic

    for part in sympy.preorder_traversal(entry):
        if isinstance(part, sympy.Function) and not isinstance(part, sympy.exp):
            raise NotSymbolic("a function that may jump")
        root = isinstance(part, sympy.Pow) and part.has(beta) and not part.exp.is_Integer
        if root and part.base != sympy.E:
            raise NotSymbolic("a root")
    top, bottom = sympy.fraction(sympy.together(entry))
    below = sympy.expand(bottom.subs(beta, 0))
    if below == 0 or abs(sympy.N(below, 50)) < NOT_ZERO:
        raise NotSymbolic("a denominator that vanishes")
    above = sympy.expand(top.subs(beta, 0))
    if above == 0:
        return sympy.Integer(0)
    if abs(sympy.N(above, 50)) < NOT_ZERO:
        raise NotSymbolic("a number whose size is not known")
    return above / below


def _refuted(symbol: str, target: str, scalars: dict[str, float], gap: Any) -> Decision:
    import sympy

    where = ", ".join(f"{name} = {value:g}" for name, value in scalars.items())
    arrow = f"{with_letters(symbol)} → {with_letters(target)}"
    apart = math.inf if gap == sympy.oo else float(gap)
    said = "grows without end" if math.isinf(apart) else f"tends to {apart:.6g}, not to 0"
    statement = (
        f"{f'With {where}, as' if where else 'As'} {arrow} the difference of the sides {said}."
    )
    symbols: dict[str, Any] = {name: int(x) if x == round(x) else x for name, x in scalars.items()}
    counterexample = Counterexample(
        symbols=symbols, left=None, right=None, gap=abs(apart), statement=statement
    )
    numbers = {} if math.isinf(apart) else {"gap": abs(apart)}
    return (
        "refuted",
        Evidence(method="algebra", statement=statement, numbers=numbers),
        counterexample,
    )


# ---- supported for a few tolerances ----


def _by_tolerances(
    compiled: CompiledClaim, symbol: str, deadline: float, decide: Decide
) -> Decision:
    words: list[str] = []
    for epsilon in TOLERANCES:
        if time.thread_time() > deadline:
            break
        word, evidence, counterexample = decide(nearby(compiled, epsilon), deadline)
        if word == "refuted":
            statement = (
                f"The sides do not even come within {float(epsilon):g}: {evidence.statement}"
            )
            return word, replace(evidence, statement=statement), counterexample
        if word == "undecided":
            break
        bounds = evidence.numbers.get("beta_0") or {}
        since = f", from {with_letters(symbol)} = {max(bounds.values()):g} on" if bounds else ""
        words.append(f"within {float(epsilon):g} ({word}{since})")
    if not words:
        return "undecided", Evidence(method="search", statement=evidence.statement), None
    statement = (
        f"The sides come {', '.join(words)}; that they come closer without end is not proved."
    )
    word = "supported" if len(words) == len(TOLERANCES) else "undecided"
    return word, Evidence(method="search", statement=statement, seed=compiled.claim.seed), None


def _by_sizes(compiled: CompiledClaim, symbol: str) -> Decision:
    """Look at a few sizes, each larger than the one before."""
    distances = []
    for size in LARGER_SIZES:
        sized = replace(
            nearby(compiled, Fraction(1)),
            domains={**compiled.domains, symbol: Values((size,))},
        )
        worst = -math.inf
        for case in list(all_cases(sized, np.random.default_rng(compiled.claim.seed)))[:12]:
            try:
                worst = max(worst, 1.0 + float(np.max(outcome_of(sized, case).truth.gap)))
            except TooFewKeysError:
                continue
        distances.append(worst)
    seen = ", ".join(
        f"{distance:.4g} at {symbol} = {size:g}"
        for distance, size in zip(distances, LARGER_SIZES, strict=True)
    )
    falls = all(later <= FALLING * earlier for earlier, later in itertools.pairwise(distances))
    if falls and distances[-1] <= NEARLY:
        statement = f"The distance of the sides falls: {seen}. That it vanishes is not proved."
        return (
            "supported",
            Evidence(method="search", statement=statement, draws=len(distances)),
            None,
        )
    statement = f"Whether the distance of the sides vanishes cannot be told: it is {seen}."
    return "undecided", Evidence(method="search", statement=statement), None
