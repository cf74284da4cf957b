"""The reason behind a verdict, worked out as one would on paper.

A verdict names its case or its proof; this module puts the numbers into the formulas, step by
step: the scores, their exponentials, the weights and the output of every head, then both sides of
the part that fails. A proof shows what was enclosed in each case, or the expression that both
sides are. A repair is shown beside the next smaller change, which does not do. Nothing here
decides anything: it evaluates once more, in the open, what the judge found.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from heedful.claims import statistics
from heedful.claims.compile import CompiledClaim, Interval, Large, compile_claim
from heedful.claims.evaluate.float import Evaluator, World
from heedful.claims.functions import STATISTICS
from heedful.claims.judge import judge_claim, told_apart
from heedful.claims.language import show
from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Expression,
    ForAll,
    Limit,
    Logic,
    Name,
    Number,
    Unary,
    walk,
)
from heedful.claims.limits import has_limit
from heedful.claims.open_number import fixed_cases, threshold_in
from heedful.claims.proofs import NOT_ENCLOSED, exact_difference
from heedful.claims.search import Case, all_cases
from heedful.claims.sheet.claim import Claim
from heedful.claims.values import Value
from heedful.claims.verdict import Evidence, Verdict
from heedful.claims.worlds import TooFewKeysError, assignments, build_world
from heedful.errors import FormulaError
from heedful.records import Record

DIGITS = 6
"""Significant figures of a number in a derivation."""
MOST_STEPS = 14
"""Parts of a formula that are written out."""
MOST_CASES = 8
"""Cases of a proof that are written out."""
MOST_ENTRIES = 12
"""Entries of a vector that are written out."""
QUANTILES = (-2.0, 0.0, 2.0)
"""Draws that are written out for a claim about a distribution, in standard deviations."""
ASIDE = 0.01
"""How far beside a repair the next smaller change is tried, relative to its size."""
WHY_REPAIR = "Why this repair"
NEIGHBOUR_SECONDS = 5.0
"""For judging the change beside a repair."""


_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?")


@dataclass(frozen=True, eq=False, kw_only=True)
class Reason(Record):
    """One part of the reasoning."""

    title: str
    """What it shows."""
    lines: tuple[str, ...]
    """The steps, in words and formulas."""


def reasons(claim: Claim, verdict: Verdict) -> tuple[Reason, ...]:
    """Return the reasoning behind a verdict, part by part.

    A verdict about a model brings its own, in the steps of its evidence.
    """
    if claim.model is not None:
        return ()
    compiled = compile_claim(claim)
    found: list[Reason] = []
    with suppress(FormulaError, *NOT_ENCLOSED):
        if has_limit(compiled):
            found.append(Reason(title="Along the way", lines=tuple(_approach(compiled))))
        elif verdict.counterexample is not None:
            found += _counterexample(compiled, verdict)
        elif verdict.answer is not None:
            found.append(_asked(compiled))
        elif verdict.holds:
            found += _proof(compiled, verdict)
    if verdict.verdict == "supported":
        found.append(_support(compiled, verdict))
    if verdict.repair is not None:
        found.append(_repair(claim, verdict))
    return tuple(part for part in found if part.lines)


# ---- a counterexample, by hand ----


def _counterexample(compiled: CompiledClaim, verdict: Verdict) -> Iterator[Reason]:
    assert verdict.counterexample is not None
    case = _case(compiled, verdict.counterexample.symbols)
    for assigned in assignments(compiled).claims:
        world = _world(assigned, case)
        failing = _failing(Evaluator(world), assigned)
        if failing is not None:
            *_, draw = failing
            setup = () if assigned.statistical else _setup(assigned, world, draw)
            lines = (*setup, *_sides(assigned, case, *failing))
            yield Reason(title="The case, by hand", lines=lines)
            return


def _case(compiled: CompiledClaim, symbols: dict[str, Any]) -> Case:
    scalars = {name: float(x) for name, x in symbols.items() if isinstance(x, int | float)}
    arrays = {name: np.asarray(x, float) for name, x in symbols.items() if isinstance(x, list)}
    sizes = {name: x for name, x in scalars.items() if name in compiled.domains}
    return Case(sizes, arrays)


def _world(compiled: CompiledClaim, case: Case) -> World:
    if compiled.noisy:
        return statistics.estimate(compiled, case).world
    return build_world(compiled, case.scalars, case.arrays)


def _failing(
    evaluator: Evaluator, compiled: CompiledClaim
) -> tuple[Evaluator, Expression, int] | None:
    """Return the relation that fails, where its indices are bound, and the draw that shows it."""
    for tree in compiled.expectations:
        found = _first_false(evaluator, tree)
        if found is not None:
            inner, relation = found
            gaps = np.atleast_1d(inner.truth(relation).gap)
            return inner, relation, int(np.argmax(gaps))
    return None


def _first_false(evaluator: Evaluator, node: Expression) -> tuple[Evaluator, Expression] | None:
    match node:
        case Logic("and", left, right):
            return _first_false(evaluator, left) or _first_false(evaluator, right)
        case ForAll(indices, condition, body):
            for inner, _ in evaluator.cases(indices, condition, body):
                found = _first_false(inner, body)
                if found is not None:
                    return found
            return None
    truth = evaluator.truth(node)
    narrow = isinstance(node, Compare) and node.operator in ("<", ">", "=", "!=")
    fails = not np.all(truth.holds) or (narrow and float(np.max(truth.gap)) > -1e-8)
    return (evaluator, node) if fails else None


def _setup(compiled: CompiledClaim, world: World, draw: int) -> Iterator[str]:
    """Write out scores, exponentials, weights and output of every head in one draw."""
    if compiled.sequence:
        yield from _sequence(compiled, world)
    elif "k" in world.families and compiled.heads:
        yield from _attention(compiled, world, draw)


def _attention(compiled: CompiledClaim, world: World, draw: int) -> Iterator[str]:
    keys = _row(world.families["k"], draw)
    several = len(compiled.heads) > 1
    names = {place: name for name, place in world.indices.items()}
    if compiled.claim.keys == "orthonormal":
        letters = ", ".join(f"k_{name} the {_ordinal(i)}" for i, name in sorted(names.items()))
        yield f"the {len(keys)} keys are unit vectors{f', {letters}' * bool(letters)}"
    else:
        for place, row in enumerate(keys[:MOST_ENTRIES]):
            yield f"k_{names.get(place, place + 1)} = {_written(row)}"
    for head, tree in enumerate(compiled.heads, 1):
        number = f"_{head}" if several else ""
        query = _row(world.symbols[f"q_{head}"], draw)
        scores = world.scale * keys @ query
        top = float(np.max(scores))
        yield f"q{number} = {show(tree, style='unicode')} = {_written(query)}"
        yield f"scores k_i·q{number} = {_written(scores)}"
        if top < 300:
            powers = np.exp(scores)
            yield f"exp of each = {_written(powers)}, together {_figure(powers.sum())}"
        else:
            powers = np.exp(scores - top)
            yield (
                f"exp of each, divided by exp({_figure(top)}) = {_written(powers)}, together "
                f"{_figure(powers.sum())}"
            )
        weights = _row(world.families[f"alpha{head}"], draw)
        yield f"α{number} = {_written(weights)}: each divided by their sum"
    if several:
        mean = _row(world.families["alpha"], draw)
        yield f"the mean of the heads has the weights {_written(mean)}"


def _ordinal(place: int) -> str:
    words = ("first", "second", "third", "fourth", "fifth", "sixth")
    return words[place] if place < len(words) else f"{place + 1}th"


def _sequence(compiled: CompiledClaim, world: World) -> Iterator[str]:
    """Write out what each position of a sequence that the claim names reads."""
    families = {name: world.families[name].array[0] for name in ("x", "q", "k", "v", "alpha")}
    for name in ("x", "q", "k", "v"):
        same = name != "x" and np.array_equal(families[name], families["x"])
        rows = "as x" if same else ", ".join(map(_written, families[name]))
        yield f"{name}_1, {name}_2, … : {rows}"
    named = {
        int(node.text.removeprefix("c_"))
        for tree in compiled.expectations
        for node in walk(tree)
        if isinstance(node, Name) and re.fullmatch(r"c_\d+", node.text)
    }
    for place in sorted(named):
        scores = world.scale * families["k"] @ families["q"][place - 1]
        yield f"position {place}: scores k_j·q_{place} = {_written(scores)}"
        yield f"   α_{place} = {_written(families['alpha'][place - 1])}"


def _sides(
    compiled: CompiledClaim, case: Case, evaluator: Evaluator, relation: Expression, draw: int
) -> Iterator[str]:
    if not isinstance(relation, Compare):
        yield f"{show(relation, style='unicode')} is false here"
        return
    bound = {
        name: place + 1
        for name, place in evaluator.world.indices.items()
        if name not in compiled.indices
    }
    where = f" with {', '.join(f'{name} = {place}' for name, place in bound.items())}" * bool(bound)
    yield f"to hold{where}: {show(relation, style='unicode')}"
    yield from _parts(compiled, evaluator, relation, draw)
    left, right = evaluator.value(relation.left), evaluator.value(relation.right)
    if relation.operator == "~":
        yield from _distance(evaluator, relation, left, right, draw)
        return
    yield from _against(compiled, case, relation, (left, right), draw)


def _against(
    compiled: CompiledClaim,
    case: Case,
    relation: Compare,
    sides: tuple[Value, Value],
    draw: int,
) -> Iterator[str]:
    left, right = (_row(side, draw) for side in sides)
    if np.ndim(left) == 0 and np.ndim(right) == 0:
        first, second = told_apart(float(left), float(right), DIGITS)
        sign = {"<=": "≤", ">=": "≥", "!=": "≠"}.get(relation.operator, relation.operator)
        if first != second:
            yield f"{first} {sign} {second} is false"
            return
        apart = None if compiled.noisy else exact_difference(compiled, case, relation)
        yield f"in float64 both sides are {first}"
        if apart is not None:
            yield f"exactly, left minus right is {apart}, so {sign} is false"
        elif relation.operator in ("<", ">", "!="):
            yield f"they are equal, and {sign} asks for more"
        return
    yield f"the left side is {_written(left)}"
    yield f"the right side is {_written(right)}"


def _distance(
    evaluator: Evaluator, relation: Compare, left: Value, right: Value, draw: int
) -> Iterator[str]:
    within = evaluator.world.tolerance
    if relation.within is not None:
        within = float(evaluator.value(relation.within).array.flat[0])
    gap = float(np.atleast_1d(evaluator.truth(relation).gap)[draw])
    yield f"the left side is {_written(_row(left, draw))}"
    yield f"the right side is {_written(_row(right, draw))}"
    measure = "as weights of arbitrary values, they" if left.formal or right.formal else "they"
    yield (
        f"{measure} are {_figure(gap + within)} apart, and {_figure(within)} is allowed: "
        f"{_figure(gap)} too much"
    )


def _parts(
    compiled: CompiledClaim, evaluator: Evaluator, relation: Compare, draw: int
) -> Iterator[str]:
    """Write out what the parts of both sides come to, innermost first."""
    seen: set[str] = set()
    nodes = [node for side in (relation.left, relation.right) for node in reversed([*walk(side)])]
    if compiled.statistical:
        nodes = [node for node in nodes if isinstance(node, Call) and node.function in STATISTICS]
    for node in nodes:
        text = show(node, style="unicode")
        if text in seen or not _telling(node) or len(seen) >= MOST_STEPS:
            continue
        seen.add(text)
        with suppress(FormulaError):
            if compiled.statistical:
                assert isinstance(node, Call)
                yield from _over_draws(evaluator, node)
            yield f"{text} = {_written(_row(evaluator.value(node), draw))}"


def _telling(node: Expression) -> bool:
    """Tell whether a part is worth a line: no number, no bare letter, nothing with an index."""
    if isinstance(node, Number | Compare | Logic | ForAll):
        return False
    if isinstance(node, Unary):
        return False
    if isinstance(node, Name):
        return "_" in node.text
    if isinstance(node, Binary):
        return not all(isinstance(part, Number) for part in walk(node) if part is not node)
    return True


def _over_draws(evaluator: Evaluator, call: Call) -> Iterator[str]:
    """Show what a statistic is taken of, in draws two deviations below, at and above the mean."""
    weights = evaluator.world.weights
    if weights is None or not call.arguments:
        return
    argument = call.arguments[0]
    taken = argument.left if isinstance(argument, Compare) else argument
    places = [int(np.searchsorted(np.cumsum(weights), ndtr(z))) for z in QUANTILES]
    with suppress(FormulaError):
        value = evaluator.value(taken)
        shown = [f"{_written(_row(value, place))}" for place in places]
        deviations = ", ".join(f"{z:+g}σ" if z else "the mean" for z in QUANTILES)
        yield f"{show(taken, style='unicode')} at {deviations} of the noise: {'; '.join(shown)}"


def _approach(compiled: CompiledClaim) -> Iterator[str]:
    """Show both sides of a limit on the way to it, in the first cases."""
    for limit in (tree for tree in compiled.expectations if isinstance(tree, Limit)):
        symbol = limit.symbol or next(iter((*compiled.large, *compiled.small)))
        stations = (1.0, 10.0, 100.0) if limit.target == "infinity" else (0.1, 0.01, 0.001)
        seen: set[str] = set()
        for case, station in itertools.product(list(_cases(compiled)), stations):
            at = case.with_scalars(**{symbol: station})
            where = _described(at)
            if where in seen or len(seen) >= MOST_CASES + 1:
                continue
            seen.add(where)
            with suppress(FormulaError):
                evaluator = Evaluator(_world(compiled, at))
                left, right = (_row(evaluator.value(x), 0) for x in (limit.left, limit.right))
                yield (
                    f"{where}: {show(limit.left, style='unicode')} = {_written(left)}, to become "
                    f"{_written(right)}"
                )


# ---- a proof, case by case ----


def _proof(compiled: CompiledClaim, verdict: Verdict) -> Iterator[Reason]:
    if verdict.verdict != "proved":
        return
    method = verdict.evidence.method
    if method == "algebra" and any("letter" in step for step in verdict.evidence.steps):
        yield Reason(title="Both sides in letters", lines=tuple(_in_letters(compiled)))
    elif "quadrature" in method:
        lines = (
            "the noise moves one number, z, which is standard normal; the line of all z is cut "
            "into cells, every quantity is enclosed over each whole cell, and the enclosures are "
            "added up with the probabilities of the cells",
            *_case_lines(compiled),
        )
        yield Reason(title="Case by case", lines=lines)
    elif compiled.large and verdict.evidence.numbers.get("beta_0"):
        yield Reason(title="From which scale on", lines=tuple(_threshold_lines(compiled, verdict)))
    elif method == "interval arithmetic":
        yield Reason(title="Case by case", lines=tuple(_case_lines(compiled)))


def _in_letters(compiled: CompiledClaim) -> Iterator[str]:
    """Write both sides of the smallest case as expressions in letters."""
    from heedful.claims.evaluate.symbolic import letters_for

    plain = list(_cases(compiled))
    if not plain:
        return
    # The very first case is often too small to show anything: n = 1, or nobody but a and b.
    listed = sorted(plain, key=lambda case: sum(case.scalars.values()))[len(plain) > 1]
    sizes = {
        name: value
        for name, value in listed.scalars.items()
        if not isinstance(compiled.domains.get(name), Interval | Large)
    }
    letters = letters_for(compiled, sizes)
    where = ", ".join(f"{name} = {value:g}" for name, value in sizes.items())
    if where:
        yield f"for {where}:"
    for tree in compiled.expectations:
        body = tree.body if isinstance(tree, ForAll) else tree
        if not isinstance(body, Compare):
            continue
        with suppress(Exception):  # what SymPy cannot write is left out, not guessed
            left, right = letters.value(body.left), letters.value(body.right)
            for side, value in ((body.left, left), (body.right, right)):
                yield f"{show(side, style='unicode')} = {_letters_text(value)}"
    yield "their difference, expanded, is 0, whatever the letters are"


def _letters_text(value: Any) -> str:
    text = str(value.tolist()) if hasattr(value, "tolist") else str(value)
    return text if len(text) <= 200 else text[:199] + "…"


def _cases(compiled: CompiledClaim) -> Iterator[Case]:
    yield from all_cases(compiled, np.random.default_rng(compiled.claim.seed))


def _case_lines(compiled: CompiledClaim) -> Iterator[str]:
    """Say what both sides come to in each case."""
    told = 0
    for case in _cases(compiled):
        if told >= MOST_CASES:
            yield "and so on"
            return
        with suppress(TooFewKeysError, FormulaError):
            where = ", ".join(f"{name} = {value:g}" for name, value in case.scalars.items())
            for line in _both_sides(compiled, case):
                yield f"{where}: {line}" if where else line
                told += 1


def _both_sides(compiled: CompiledClaim, case: Case) -> Iterator[str]:
    evaluator = Evaluator(_world(compiled, case))
    for tree in compiled.expectations:
        inner, body = evaluator, tree
        while isinstance(body, ForAll):
            worst: tuple[float, Any] | None = None
            for candidate, _ in inner.cases(body.indices, body.condition, body.body):
                gap = float(np.max(candidate.truth(body.body).gap))
                if worst is None or gap > worst[0]:
                    worst = (gap, candidate)
            if worst is None:
                return
            inner, body = worst[1], body.body
        if not isinstance(body, Compare):
            continue
        left, right = inner.value(body.left), inner.value(body.right)
        if body.operator == "~":
            within = inner.world.tolerance
            if body.within is not None:
                within = float(inner.value(body.within).array.flat[0])
            apart = float(np.max(inner.truth(body).gap)) + within
            yield f"{show(body.left, style='unicode')} is {_figure(apart)} away, within {within:g}"
        elif left.kind == right.kind == "scalar" and left.array.size == right.array.size == 1:
            first, second = told_apart(
                float(left.array.flat[0]), float(right.array.flat[0]), DIGITS
            )
            sign = {"<=": "≤", ">=": "≥", "!=": "≠"}.get(body.operator, body.operator)
            yield f"{show(body.left, style='unicode')} = {first} {sign} {second}"


def _threshold_lines(compiled: CompiledClaim, verdict: Verdict) -> Iterator[str]:
    """Show the claim at its threshold, below it and far above it."""
    (symbol,) = compiled.large
    bounds = verdict.evidence.numbers.get("beta_0") or {}
    yield (
        f"with t = exp(−{symbol}) every quantity is enclosed for all t from 0 to exp(−{symbol}₀) "
        "at once, so the statement holds beyond each of these bounds"
    )
    told: set[str] = set()
    for case in _cases(compiled):
        fixed = {name: value for name, value in case.scalars.items() if name != symbol}
        label = ", ".join(f"{name}={value:g}" for name, value in sorted(fixed.items())) or "all"
        if label in told or label not in bounds or len(told) >= MOST_CASES:
            continue
        told.add(label)
        for factor in (0.5, 1.0, 2.0):
            scale = factor * float(bounds[label])
            at = case.with_scalars(**{symbol: scale})
            with suppress(FormulaError):
                truth = Evaluator(_world(compiled, at)).truth(compiled.statement)
                word = "holds" if np.all(truth.holds) else "fails"
                for line in _both_sides(compiled, at):
                    yield f"{label}, {symbol} = {scale:.4g}: {line} ({word})"


def _asked(compiled: CompiledClaim) -> Reason:
    """Enclose the number that a claim asks for, case by case."""
    word, _, name = str(compiled.claim.find).partition(" ")
    sign = 1 if word == "least" else -1
    lines = []
    for case in fixed_cases(compiled, MOST_CASES):
        with suppress(TooFewKeysError):
            ends = sorted(sign * float(end) for end in threshold_in(compiled, case, name, sign))
            low, high = told_apart(ends[0], ends[1], DIGITS)
            where = f"{_described(case)}: " * bool(case.scalars)
            lines.append(f"{where}the {word} {name} lies between {low} and {high}")
    if len(lines) > 1:
        lines.append(f"for all of them at once, the {'greatest' if sign > 0 else 'least'} counts")
    return Reason(title="The number in each case", lines=tuple(lines))


# ---- what supports a claim ----


def _support(compiled: CompiledClaim, verdict: Verdict) -> Reason:
    """Say what was looked at, and what would have shown a failure."""
    evidence = verdict.evidence
    lines = []
    if compiled.noisy:
        lines.append(
            f"{looked_at(evidence)} of the noise in each case, seed {evidence.seed}; a failure "
            "would have shown as an interval of confidence that is not on the side of the claim"
        )
    else:
        first = "; ".join(_described(case) for case in itertools.islice(_cases(compiled), 3))
        lines.append(f"{looked_at(evidence)}, the first of them: {first}")
        lines.append(
            "one case in which it fails by more than rounding would have refuted the claim, and a "
            "proof over all of them was looked for and not found"
        )
    with suppress(FormulaError, *NOT_ENCLOSED):
        narrow = _narrowest(compiled)
        if narrow is not None:
            lines.append(narrow)
    return Reason(title="What was looked at", lines=tuple(lines))


def looked_at(evidence: Evidence) -> str:
    """Return how many draws or cases evidence rests on, in words."""
    count = evidence.draws or 0
    method = evidence.method
    word = "draw" if "draw" in method else "node" if "quadrature" in method else "case"
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _described(case: Case) -> str:
    return ", ".join(
        [f"{name} = {value:g}" for name, value in case.scalars.items()]
        + [f"{name} = {_written(array)}" for name, array in case.arrays.items()]
    )


def _narrowest(compiled: CompiledClaim) -> str | None:
    """Describe the case that came nearest to failing, of the first ones."""
    best: tuple[float, Case] | None = None
    for count, case in enumerate(_cases(compiled)):
        if count >= MOST_CASES * 4:
            break
        if compiled.large or compiled.noisy:
            return None
        with suppress(FormulaError):
            truth = Evaluator(_world(compiled, case)).truth(compiled.statement)
            gap = float(np.max(truth.gap))
            if math.isfinite(gap) and (best is None or gap > best[0]):
                best = (gap, case)
    if best is None:
        return None
    case = best[1]
    sides = next(_both_sides(compiled, case), "")
    return f"the narrowest of the plain ones: {_described(case)}, where {sides}" if sides else None


# ---- a repair, and why nothing smaller does ----

SMALLEST = {
    "scale": "a scale on the query is the least change: keys, heads and statement stay",
    "condition": "of the smaller changes (a scale on the query) none makes it hold",
    "heads": "of the smaller changes (a scale, a condition) none makes it hold",
    "order": "the statement stays, only the side of the product changes",
    "mask": "the statement stays, only the mask goes",
    "constant": "of the smaller changes (a scale, a condition, other heads) none makes it hold",
    "tolerance": "of the smaller changes (a scale, a condition, another output) none makes it hold",
    "range": "of the smaller changes (to the query, to the numbers) none makes it hold",
    "relation": "of the smaller changes none makes it hold, and the contrary does",
}
"""Why a repair of each kind is the smallest: what was tried before it, in this order."""


def _repair(claim: Claim, verdict: Verdict) -> Reason:
    """Say why a repair is the smallest, and judge the claim with a little less of it."""
    assert verdict.repair is not None
    lines = [SMALLEST[verdict.repair.kind]] if verdict.repair.kind in SMALLEST else []
    less = smaller_change(claim, verdict)
    if less is not None:
        with suppress(FormulaError):
            said = judge_claim(less[1], seconds=NEIGHBOUR_SECONDS, repair=False)
            lines.append(f"with {less[0]} instead it is {said.verdict}: {said.evidence.statement}")
    return Reason(title=WHY_REPAIR, lines=tuple(lines))


def smaller_change(claim: Claim, verdict: Verdict) -> tuple[str, Claim] | None:
    """Return the number of a repair made a little smaller, and the claim with it."""
    repair = verdict.repair
    if repair is None or repair.kind not in ("scale", "constant", "tolerance"):
        return None
    field = next((name for name in ("query", "expect") if repair.changes.get(name)), None)
    written = repair.changes.get(field or "")
    text = str(written[0] if isinstance(written, tuple) and len(written) == 1 else written)
    numbers = list(_NUMBER.finditer(text))
    if not numbers or field is None:
        return None
    found = numbers[0] if field == "query" else numbers[-1]
    easier_when_larger = field == "query" or "<" in text or "within" in text
    share = 1 - ASIDE if easier_when_larger else 1 + ASIDE
    number = f"{float(found[0]) * share:.4g}"
    changed = text[: found.start()] + number + text[found.end() :]
    return number, claim.changed(**{field: changed if field == "query" else (changed,)})


# ---- numbers ----


def _figure(value: float) -> str:
    value = float(value) + 0.0
    return str(int(value)) if value == round(value) and abs(value) < 1e9 else f"{value:.{DIGITS}g}"


def _written(value: Any) -> str:
    array = np.asarray(value, float)
    if array.ndim == 0:
        return _figure(float(array))
    items = [_written(item) for item in array[:MOST_ENTRIES]]
    return "[" + ", ".join(items) + (", …]" if len(array) > MOST_ENTRIES else "]")


def _row(value: Value, draw: int) -> Any:
    return value.array[min(draw, len(value.array) - 1)]
