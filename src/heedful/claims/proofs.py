"""Proofs: statements enclosed in ball arithmetic over whole ranges of symbols, and theorems."""

from __future__ import annotations

import itertools
import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from flint import arb, ctx

from heedful.claims.balls import (
    Ball,
    Enclosure,
    LetterRange,
    NotEnclosed,
    NoValue,
    add,
    as_written,
    decimal_of,
    each,
    flatten,
    identity,
    multiply,
    number,
    scalar,
    transpose,
    written,
)
from heedful.claims.compile import INEXACT, Array, CompiledClaim, Values
from heedful.claims.evaluate.ball import BallEvaluator, BallWorld
from heedful.claims.functions import FUNCTIONS, read_in_balls
from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Expression,
    ForAll,
    Logic,
    Name,
    Number,
    bound_names,
    map_children,
    walk,
)
from heedful.claims.worlds import names_of_heads
from heedful.errors import FormulaError

if TYPE_CHECKING:
    from heedful.claims.search import Case

PRECISIONS = (128, 512, 4096)
"""Bits tried in turn; a weight such as exp(−1000) needs the last."""
MOST_BOXES = 4000
ROUNDED = 1e-14
"""How far the entries of an array may be from those of one that is exactly of its kind."""
NARROWEST = 1e-7
"""A box narrower than this, relative to its end, is not halved again."""
JUMPS = ("sign", "floor", "argmax", "rank", "round16", "roundbf16", "distance")
"""Functions that are not continuous, or not known to be."""
DIFFERENCE_BITS = (200, 2_000, 20_000)
"""Precisions at which two sides that float64 cannot tell apart are subtracted."""
NOT_ENCLOSED = (NotEnclosed, ZeroDivisionError, ValueError, OverflowError)
"""What ball arithmetic raises where it cannot enclose a value."""


def exact_truth(compiled: CompiledClaim, case: Case) -> bool | None:
    """Return whether a claim holds in one case, with certainty, or None."""
    answer = exact_answer(compiled, case)
    return answer if isinstance(answer, bool) else None


def exact_answer(
    compiled: CompiledClaim, case: Case, statement: Expression | None = None
) -> bool | Literal["too close", "not enclosed"]:
    """Return whether a claim holds in one case, with certainty, or why that cannot be told.

    With a statement, whether that one holds where the claim lives.
    """
    for bits in PRECISIONS:
        with ctx.workprec(bits):
            try:
                world = ball_world(compiled, exact_scalars(case), case.arrays, case.scalars)
                tree = _with_numbers(compiled, case) if statement is None else statement
                answer = BallEvaluator(world).truth(tree)
            except NOT_ENCLOSED:
                return "not enclosed"
        if answer is not None:
            return answer
    return "too close"


def exact_at_power(
    compiled: CompiledClaim, case: Case, symbols: Sequence[str], power: int
) -> bool | None:
    """Return whether a claim holds where symbols are 10 to some power, beyond all of float64."""
    with ctx.workprec(PRECISIONS[1]), suppress(*NOT_ENCLOSED):
        scalars = {name: decimal(value) for name, value in case.scalars.items()}
        scalars |= dict.fromkeys(symbols, Ball(arb(10) ** power))
        numbers = {name: value for name, value in case.scalars.items() if name not in symbols}
        world = ball_world(compiled, scalars, case.arrays, numbers)
        return BallEvaluator(world).truth(compiled.statement)
    return None


def exact_gap(compiled: CompiledClaim, case: Case) -> Any:
    """Return by how much an inequality fails in one case, to many digits, or None."""
    node = compiled.statement
    while isinstance(node, Logic) and node.operator == "implies":
        node = node.right
    if not isinstance(node, Compare) or node.operator in ("=", "!=", "~"):
        return None
    with ctx.workprec(PRECISIONS[1]), suppress(*NOT_ENCLOSED):
        scalars = {name: decimal(value) for name, value in case.scalars.items()}
        evaluator = BallEvaluator(ball_world(compiled, scalars, case.arrays, case.scalars))
        left, right = (number(evaluator.value(side)).flat() for side in (node.left, node.right))
        gap = left - right if node.operator in ("<", "<=") else right - left
        return gap.mid() if gap.is_finite() else None
    return None


def exact_difference(compiled: CompiledClaim, case: Case, relation: Compare) -> str | None:
    """Return left minus right of two numbers, as precisely as it takes to tell it from 0."""
    difference = Binary("-", relation.left, relation.right)
    for bits in DIFFERENCE_BITS:
        with ctx.workprec(bits), suppress(*NOT_ENCLOSED):
            scalars = {name: decimal(value) for name, value in case.scalars.items()}
            world = ball_world(compiled, scalars, case.arrays, case.scalars)
            entries = list(flatten(BallEvaluator(world).value(difference)))
            if len(entries) != 1:
                return None
            apart = entries[0].flat()
            if not apart.contains(0):
                return str(apart.mid().str(4, radius=False))
    return None


def without_value(compiled: CompiledClaim, case: Case) -> str | None:
    """Return why a claim surely has no value in one case, or None."""
    with ctx.workprec(PRECISIONS[0]), suppress(*NOT_ENCLOSED):
        try:
            world = ball_world(compiled, exact_scalars(case), case.arrays, case.scalars)
            BallEvaluator(world).truth(compiled.statement)
        except NoValue as reason:
            return str(reason)
    return None


def exact_scalars(case: Case) -> dict[str, Ball]:
    """Return the numbers of a case exactly: as written, or as the fraction that is meant."""
    return {
        name: Ball.exact(case.exact[name]) if name in case.exact else decimal(value)
        for name, value in case.scalars.items()
    }


def _with_numbers(compiled: CompiledClaim, case: Case) -> Expression:
    """Return the claim with its numbers written into it: x − 1/3 at x = 1/3 is 0, and no ball."""
    numbers: dict[str, Expression] = {
        name: Number(case.exact[name] if name in case.exact else Fraction(repr(float(value))))
        for name, value in case.scalars.items()
    }

    def written(node: Expression) -> Expression:
        if isinstance(node, Name):
            return numbers.get(node.text, node)
        if set(bound_names(node)) & set(numbers):
            return node
        return map_children(node, written)

    return written(compiled.statement)


def crosses(
    compiled: CompiledClaim,
    case: Case,
    span: tuple[str, float, float],
    meeting: tuple[Compare, Expression],
) -> bool:
    """Tell whether two sides surely meet between two values of a symbol, and the claim fails there.

    `meeting` is the comparison whose sides change order, and the claim as it reads where they are
    equal. Both sides are continuous, so the intermediate value theorem gives the point.
    """
    symbol, low, high = span
    node, met = meeting
    if not _continuous(compiled):
        return False
    with ctx.workprec(PRECISIONS[0]), suppress(*NOT_ENCLOSED, FormulaError):
        signs = []
        for end in (low, high):
            at = case.with_scalars(**{symbol: end})
            evaluator = BallEvaluator(
                ball_world(compiled, exact_scalars(at), at.arrays, at.scalars)
            )
            gap = number(evaluator.value(node.left)) - number(evaluator.value(node.right))
            signs.append(1 if gap.flat() > 0 else -1 if gap.flat() < 0 else 0)
        scalars = exact_scalars(case) | {symbol: Ball.between(low, high)}
        numbers = {name: value for name, value in case.scalars.items() if name != symbol}
        across = BallEvaluator(ball_world(compiled, scalars, case.arrays, numbers))
        for side in (node.left, node.right):
            if not number(across.value(side)).flat().is_finite():
                return False
        return signs[0] * signs[1] < 0 and across.truth(met) is False
    return False


def _continuous(compiled: CompiledClaim) -> bool:
    """Tell whether every function of a claim is continuous wherever it has a value."""
    for tree in compiled.trees:
        for node in walk(tree):
            if isinstance(node, Call):
                function = FUNCTIONS[node.function]
                if node.function in JUMPS or function.kind in ("predicate", "statistic"):
                    return False
                if function.kind == "binder" and len(node.arguments) == 2:
                    over = node.arguments[1]
                    chosen = isinstance(over, Compare | Logic) and any(
                        isinstance(part, Call | Binary) or "_" in getattr(part, "text", "")
                        for part in walk(over)
                    )
                    if chosen:
                        return False
    return True


def decimal(value: float) -> Ball:
    """Return a number as it is written: 0.1 is 1/10, not the float64 next to it."""
    return Ball(written(value))


def proved_from(compiled: CompiledClaim, case: Case, beta_0: float) -> bool:
    """Tell whether a claim is proved for every value of its large symbol from β₀ on."""
    with ctx.workprec(PRECISIONS[0]), suppress(*NOT_ENCLOSED):
        (symbol,) = compiled.large
        if _along(compiled, case, symbol, beta_0, None) is True:
            return True
        # Everything beyond a point at once, and the stretch before it piece by piece.
        far = max(2.0 * beta_0, beta_0 + 20.0)
        near = {symbol: (beta_0, far)}
        return (
            _along(compiled, case, symbol, far, None) is True
            and decided_on_ranges(compiled, case, near) is True
        )
    return False


def disproved_from(compiled: CompiledClaim, case: Case, beta_0: float) -> bool:
    """Tell whether a claim is proved to FAIL for every value of its large symbol from β₀ on."""
    with ctx.workprec(PRECISIONS[0]), suppress(*NOT_ENCLOSED):
        (symbol,) = compiled.large
        return _along(compiled, case, symbol, beta_0, None) is False
    return False


def decided_on_ranges(
    compiled: CompiledClaim,
    case: Case,
    ranges: Mapping[str, tuple[float, float]],
    seconds: float = 3.0,
) -> bool | Case | None:
    """Decide a claim for every value of its interval symbols, by halving undecided boxes.

    Returns True where it is proved, a case in the middle of a box on which it is proved to fail,
    or None.
    """
    deadline = time.thread_time() + seconds
    boxes: deque[dict[str, tuple[float, float]]] = deque([dict(ranges)])
    undecided = False
    with ctx.workprec(PRECISIONS[0]):
        for done in range(MOST_BOXES):
            if not boxes:
                return None if undecided else True
            if time.thread_time() > deadline:
                break
            box = boxes.popleft()
            answer = _on_box(compiled, case, box)
            if answer is False:
                return case.with_scalars(**{name: sum(ends) / 2 for name, ends in box.items()})
            if answer is True:
                continue
            widest = max(box, key=lambda name: box[name][1] - box[name][0])
            low, high = box[widest]
            if high - low < NARROWEST * max(1.0, abs(high)):
                undecided = True
                continue
            if undecided and done > MOST_BOXES // 4:
                break  # it cannot be proved any more, and no failure is near
            middle = (low + high) / 2
            boxes += [{**box, widest: (low, middle)}, {**box, widest: (middle, high)}]
    return None


def _on_box(
    compiled: CompiledClaim, case: Case, box: dict[str, tuple[float, float]]
) -> bool | None:
    """Return whether a claim holds on a whole box, fails on all of it, or None."""
    with suppress(*NOT_ENCLOSED):
        if len(box) == 1:
            ((symbol, (low, high)),) = box.items()
            return _along(compiled, case, symbol, low, high)
        scalars = {name: decimal(value) for name, value in case.scalars.items()}
        scalars.update({name: Ball.between(low, high) for name, (low, high) in box.items()})
        numbers = {name: value for name, value in case.scalars.items() if name not in box}
        world = ball_world(compiled, scalars, case.arrays, numbers)
        return BallEvaluator(world).truth(compiled.statement)
    return None


def limit_weights(compiled: CompiledClaim, case: Case) -> list[float] | None:
    """Return the coefficients of c on the values as the large symbol grows without bound."""
    with ctx.workprec(PRECISIONS[0]), suppress(*NOT_ENCLOSED):
        (symbol,) = compiled.large
        output = lettered(compiled, case, symbol, 1e6, None).symbols.get("c")
        if output is None or not output.formal:
            return None
        return [float(entry.flat().mid()) for entry in output.entries]
    return None


def ball_world(
    compiled: CompiledClaim,
    scalars: Mapping[str, Ball],
    arrays: Mapping[str, Any],
    numbers: Mapping[str, float],
    *,
    keys: Enclosure | None = None,
) -> BallWorld:
    """Build the world of a box of cases; `numbers` gives the sizes, `keys` replaces the keys."""
    sizes = compiled.sizes(numbers)
    symbols = {name: Enclosure(ball, "scalar") for name, ball in scalars.items()}
    symbols.update({name: _array(compiled, name, x) for name, x in arrays.items() if name != "k"})
    if sizes.get("d", 0) > 0:
        symbols.setdefault("d", scalar(sizes["d"]))
        symbols.setdefault("I", identity(sizes["d"], sizes["d"]))
    world = BallWorld(
        symbols=symbols,
        indices=compiled.indices,
        tolerance=float(compiled.claim.tolerance),
        width=sizes.get("d", 2),
        base=float(compiled.claim.positions.get("base", 10000.0)),
    )
    if compiled.claim.keys is not None:
        world = _with_keys(compiled, world, sizes, arrays, keys)
    if compiled.sequence:
        world = _with_sequence(compiled, world)
    elif compiled.claim.keys is not None:
        world = _with_heads(compiled, world)
    for name, tree in compiled.definitions.items():
        try:
            made = BallEvaluator(world).value(tree)
        except NoValue as error:  # which matters only where the name is used
            world = replace(world, missing={**world.missing, name: error})
            continue
        world = replace(world, symbols={**world.symbols, name: made})
    return world


def _with_keys(
    compiled: CompiledClaim,
    world: BallWorld,
    sizes: Mapping[str, int],
    arrays: Mapping[str, Any],
    keys: Enclosure | None,
) -> BallWorld:
    families = dict(world.families)
    if compiled.key_rows:
        evaluator = BallEvaluator(world)
        rows = Enclosure(
            [list(evaluator.value(row).entries) for row in compiled.key_rows], "matrix"
        )
        families["k"] = rows
    elif compiled.claim.keys in ("unit", "any"):
        families["k"] = _array(compiled, "k", arrays["k"])
    elif compiled.mean_rows:
        evaluator = BallEvaluator(world)
        means = [list(evaluator.value(row).entries) for row in compiled.mean_rows]
        families["k"] = Enclosure(means, "matrix")
    else:
        families["k"] = identity(sizes["n"], sizes["d"])
    if compiled.claim.keys == "gaussian":
        families["mu"] = families["k"]
        if keys is None:
            raise NotEnclosed("random keys")
    if keys is not None:
        families["k"] = keys
    count = len(families["k"].entries)
    if compiled.value_rows:
        evaluator = BallEvaluator(replace(world, families=families))
        families["v"] = Enclosure(
            [list(evaluator.value(row).entries) for row in compiled.value_rows], "matrix"
        )
    elif compiled.claim.values == "keys":
        families["v"] = families["k"]
    else:
        families["v"] = identity(count, count, formal=True)
    symbols = {**world.symbols}
    symbols.setdefault("n", scalar(count))
    symbols.setdefault("d", scalar(len(families["k"].entries[0])))
    return replace(
        world,
        families=families,
        symbols=symbols,
        scale=_scale(compiled, len(families["k"].entries[0])),
    )


def _array(compiled: CompiledClaim, name: str, array: Any) -> Enclosure:
    """Return an array as it is, or with balls around entries that are of their kind by rounding.

    The ball around a rounded unit vector holds a true one, so what fails on all of it fails there.
    """
    domain = compiled.domains.get(name)
    kind = domain.kind if isinstance(domain, Array) else ""
    if name == "k" and compiled.claim.keys == "unit":
        kind = "unit vector"
    entries = as_written(array)
    if kind not in INEXACT or _of_its_kind(kind, np.asarray(array, dtype=float)):
        return entries
    return each(entries, lambda x: x if x.is_zero() else Ball(x.c + arb(0, ROUNDED)))


def _of_its_kind(kind: str, array: Any) -> bool:
    """Tell whether a unit vector, distribution or orthonormal matrix is exactly that."""
    rows = [[decimal_of(x) for x in row] for row in np.atleast_2d(array).tolist()]
    if kind == "distribution":
        return all(sum(row) == 1 for row in rows)
    if any(sum(x * x for x in row) != 1 for row in rows):
        return False
    return kind == "unit vector" or all(
        sum(x * y for x, y in zip(first, second, strict=True)) == 0
        for first, second in itertools.combinations(rows, 2)
    )


def _scale(compiled: CompiledClaim, dimension: int) -> Ball:
    if compiled.claim.scale == "sqrt_d":
        return Ball(arb(1) / arb(dimension).sqrt())
    return decimal(float(compiled.claim.scale))


def _with_heads(compiled: CompiledClaim, world: BallWorld) -> BallWorld:
    if not compiled.heads:
        return world
    evaluator = BallEvaluator(world)
    queries = [evaluator.value(tree) for tree in compiled.heads]
    alphas = [evaluator.apply("weights", query) for query in queries]
    outputs = [read_in_balls(evaluator, alpha) for alpha in alphas]
    share = Enclosure(Ball.exact(1) / Ball.exact(len(queries)), "scalar")
    symbols, families = names_of_heads(
        queries, alphas, outputs, lambda parts: multiply(share, reduce(add, parts))
    )
    return replace(world, families=world.families | families, symbols=world.symbols | symbols)


def _with_sequence(compiled: CompiledClaim, world: BallWorld) -> BallWorld:
    evaluator = BallEvaluator(world)
    x = Enclosure([list(evaluator.value(row).entries) for row in compiled.sequence], "matrix")
    families = {**world.families, "x": x}
    for name, family in (("K", "k"), ("Q", "q"), ("V", "v")):
        tree = compiled.matrices.get(name)
        families[family] = x if tree is None else multiply(x, transpose(evaluator.value(tree)))
    world = replace(world, families=families, scale=_scale(compiled, len(x.entries[0])))
    inner = BallEvaluator(world)
    rows = [
        inner.apply("weights", Enclosure(query, "vector")).entries
        for query in families["q"].entries
    ]
    alpha = Enclosure(rows, "matrix")
    families = {**families, "alpha": alpha, "c": multiply(alpha, families["v"])}
    return replace(world, families=families)


def lettered(
    compiled: CompiledClaim, case: Case, symbol: str, low: float, high: float | None
) -> BallWorld:
    """Return the world in which one symbol stays a letter that runs over a span."""
    scalars = {name: decimal(value) for name, value in case.scalars.items()}
    scalars[symbol] = Ball.letter(LetterRange.of(low, high))
    numbers = {name: value for name, value in case.scalars.items() if name != symbol}
    return ball_world(compiled, scalars, case.arrays, numbers)


def _along(
    compiled: CompiledClaim, case: Case, symbol: str, low: float, high: float | None
) -> bool | None:
    return BallEvaluator(lettered(compiled, case, symbol, low, high)).truth(compiled.statement)


# ---- how large is large: the bound β₀ from which a claim holds, and its formula ----


def rounded_up(bound: float) -> float:
    """Round a bound up to four figures, so that it can be said and still holds.

    >>> rounded_up(5.98141421)
    5.982
    """
    if bound <= 0.001:
        return 0.001
    digits = 3 - math.floor(math.log10(bound))
    scale = 10.0**digits
    return math.ceil(bound * scale * (1 + 1e-12) + 1e-9) / scale


def closed_form(compiled: CompiledClaim, thresholds: Mapping[str, float]) -> str | None:
    """Return the formula of β₀ over n if that of m equal keys of n fits every case.

    For orthonormal keys and a query β·(sum of m keys), the error is (n−m)/(m e^β + n−m), so
    β₀ = ln((n−m)(1−ε)/(mε)).
    """
    tolerance = _tolerance(compiled)
    if compiled.claim.keys != "orthonormal" or tolerance is None:
        return None
    for m in (1, 2, 3, 4, 5, 8):
        if all(_fits(label, bound, m, tolerance) for label, bound in thresholds.items()):
            symbol = compiled.large[0]
            below = "ε" if m == 1 else f"({m} ε)"
            head = f"{symbol}₀ = ln((n − {m})(1 − ε)/{below})"
            return f"{head} with ε = {tolerance:g}"
    return None


def _fits(label: str, bound: float, m: int, tolerance: float) -> bool:
    sizes = dict(part.split("=") for part in label.split(", ") if "=" in part)
    if "n" not in sizes:
        return False
    n = float(sizes["n"])
    if n < m:
        return False
    if n == m:
        return bound <= 1.0
    if not 0 < tolerance < 1 or m >= n:
        return False
    wanted = math.log((n - m) * (1 - tolerance) / (m * tolerance))
    return abs(max(wanted, 0.0) - bound) <= 2e-3 * max(1.0, wanted)


def _tolerance(compiled: CompiledClaim) -> float | None:
    tolerances: list[Expression | None] = [
        node.within
        for tree in compiled.expectations
        for node in walk(tree)
        if isinstance(node, Compare) and node.operator == "~"
    ]
    if len(tolerances) != 1:
        return None
    within = tolerances[0]
    if within is None:
        return float(compiled.claim.tolerance)
    return float(within.value) if isinstance(within, Number) else None


# ---- proofs that need an idea rather than a computation ----


def prove_uniqueness(compiled: CompiledClaim) -> tuple[str, ...] | None:
    """Return the proof that no two positions share a sinusoidal embedding, if that is the claim."""
    if compiled.claim.positions.get("kind", "sinusoidal") != "sinusoidal":
        return None
    if len(compiled.expectations) != 1 or not _says_unique(compiled.expectations[0]):
        return None
    widths = compiled.domains.get("d", Values((2.0,)))
    if not isinstance(widths, Values):
        return None
    # Loaded where it is needed: it would be a seventh of what every judging process loads.
    from heedful.positions import uniqueness

    base = float(compiled.claim.positions.get("base", 10000.0))
    proof: tuple[str, ...] = ()
    for width in widths.numbers:
        theorem = uniqueness(int(width), base)
        if not theorem.unique:
            return None
        proof = theorem.proof
    return proof


def _says_unique(node: Expression) -> bool:
    match node:
        case ForAll(
            (s, t),
            condition,
            Compare("!=", Call("phi", (Name(first),)), Call("phi", (Name(second),))),
        ):
            return {s, t} == {first, second} and _apart(condition, {s, t})
    return False


def _apart(condition: Expression | None, indices: set[str]) -> bool:
    """Tell whether a condition keeps two indices from being the same."""
    match condition:
        case Logic("and", left, right):
            return _apart(left, indices) or _apart(right, indices)
        case Compare("!=" | "<" | ">", Name(first), Name(second)):
            return {first, second} == indices
    return False
