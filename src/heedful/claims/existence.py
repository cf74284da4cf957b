"""Existence: `there is a matrix R with …`, `there are positions s != t < T with …`.

A claim of existence is proved by a witness for every case of its symbols. The witness is made, by
least squares where the statement is linear in it and by search elsewhere, and then verified in
exact arithmetic; how it was found does not matter. That there is none is proved by trying all of
finitely many positions, or by a combination of the equations that contradicts itself. What is
neither found nor excluded is undecided.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx

from heedful.attention.hull import certify
from heedful.claims.balls import flatten
from heedful.claims.compile import CompiledClaim, Values
from heedful.claims.evaluate.ball import BallEvaluator
from heedful.claims.evaluate.float import Evaluator
from heedful.claims.language import instantiate, show
from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Entry,
    Exists,
    Expression,
    ForAll,
    Limit,
    Logic,
    Name,
    mentions,
    rational,
    walk,
)
from heedful.claims.proofs import NOT_ENCLOSED, PRECISIONS, ball_world, decimal, exact_truth
from heedful.claims.search import Case, all_cases, outcome_of
from heedful.claims.values import NoMemberError
from heedful.claims.verdict import Decision, Evidence
from heedful.claims.worlds import TooFewKeysError, assignments, build_world
from heedful.errors import FormulaError

MOST_WORLDS = 40
"""Cases for each of which a witness is looked for."""
MOST_POSITIONS = 20_000
"""Positions whose values are compared to find two that agree."""
SCALES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Lengths of a vector that are tried."""
SIZES = (1.0, 2.0, 0.5, 3.0, 5.0, 0.1, *SCALES, 0.01, 0.001)
NUMBERS = (0.0, *(sign * size for size in SIZES for sign in (1, -1)))
"""Numbers that are tried first."""
MOST_CANDIDATES = 1000
"""Vectors or numbers that are tried: plain ones, then changes of the best."""
LINEAR = 1e-9
"""How far a statement may be from linear in its witness, relative to its size."""
PLAIN = (1, 2, 3, 4, 6, 8, 12, 60)
"""Denominators to which the entries of a witness are rounded before they are verified."""

Witness = Mapping[str, Any]


def has_existence(compiled: CompiledClaim) -> bool:
    """Tell whether a claim says that something exists."""
    return any(isinstance(node, Exists) for tree in compiled.trees for node in walk(tree))


def decide_existence(compiled: CompiledClaim, deadline: float) -> Decision:
    """Decide a claim of existence."""
    (claim, *more) = compiled.expectations
    inner = [n for n in walk(claim) if n is not claim and isinstance(n, Exists | Limit)]
    moving = compiled.noisy or compiled.large or compiled.small
    if not isinstance(claim, Exists) or more or inner or moving or compiled.given is not None:
        raise claim.error(
            "what there is stands inside of another statement, or beside a condition, noise or "
            "a large symbol",
            expected="`there is …` as the whole of one `expect`",
            hint="make it a claim of its own",
        )
    shifted = _shift_of_positions(compiled, claim)
    if shifted is not None:
        return shifted
    choices = assignments(compiled)
    found: list[tuple[Case, str]] = []
    every = choices.complete
    for assigned in choices.claims:
        body = replace(assigned, expectations=(claim.body,))
        cases = list(all_cases(assigned, np.random.default_rng(compiled.claim.seed)))
        every = every and len(cases) <= MOST_WORLDS
        for case in cases[:MOST_WORLDS]:
            if time.thread_time() > deadline:
                return _undecided(f"A witness was found in {len(found)} cases; time was over.")
            try:
                outcome = _in_case(body, claim, case, deadline)
            except (TooFewKeysError, NoMemberError):
                continue
            if outcome is None:
                place = _where(case).removesuffix(", ") or "here"
                return _undecided(f"No {claim.kind} was found {place}, nor a proof that none is.")
            word, said = outcome
            if word == "none":
                statement = f"{_where(case)}there is none: {said}."
                statement = statement[0].upper() + statement[1:]
                return "refuted", Evidence(method="exact arithmetic", statement=statement), None
            found.append((case, said))
    if not found:
        return _undecided("No case was looked at.")
    return _all_found(compiled, found, every=every)


def _all_found(compiled: CompiledClaim, found: list[tuple[Case, str]], *, every: bool) -> Decision:
    case, said = found[0]
    listed = all(isinstance(domain, Values) for domain in compiled.domains.values())
    every = every and listed and compiled.claim.keys not in ("unit", "any")
    steps = tuple(f"{_where(at)}{witness}" for at, witness in found[:8])
    count = "the only case" if len(found) == 1 else f"each of {len(found)} cases"
    if every:
        statement = f"A witness was made and verified exactly in {count}: {_where(case)}{said}."
        return "proved", Evidence(method="a witness", statement=statement, steps=steps), None
    statement = f"A witness was made and verified in {count} looked at; there are more."
    return (
        "supported",
        Evidence(
            method="search",
            statement=statement,
            steps=steps,
            draws=len(found),
            seed=compiled.claim.seed,
        ),
        None,
    )


def _undecided(statement: str) -> Decision:
    return "undecided", Evidence(method="search", statement=statement), None


def _where(case: Case) -> str:
    text = ", ".join(f"{name} = {value:g}" for name, value in case.scalars.items())
    return f"with {text}, " if text else ""


def _in_case(
    body: CompiledClaim, claim: Exists, case: Case, deadline: float
) -> tuple[str, str] | None:
    """Return ("found", the witness), ("none", why), or None."""
    if claim.kind == "position":
        return _positions(body, claim, case)
    shape = _shape(body, claim, case)
    if len(claim.names) != 1:
        raise claim.error(
            f"{len(claim.names)} unknown at once", expected="one matrix, vector or number"
        )
    (name,) = claim.names
    try:
        outcome_of(body, _with(case, name, np.zeros(shape)))
    except (TooFewKeysError, NoMemberError):
        raise
    except FormulaError:
        pass  # no value at 0, or no sense at all: what is tried next will tell
    linear = _by_least_squares(body, name, shape, case, claim.kind)
    if linear is not None:
        return linear
    if claim.kind == "vector":
        none = _no_copy(body, name, case)
        if none is not None:
            return "none", none
    if claim.kind in ("vector", "number"):
        return _by_search(body, name, shape, case, deadline)
    return None


def _shape(body: CompiledClaim, claim: Exists, case: Case) -> tuple[int, ...]:
    if claim.kind == "number":
        return ()
    sizes = body.sizes(case.scalars)
    width = sizes.get("d")
    if width is None and body.key_rows:
        world = build_world(
            replace(body, expectations=body.expectations), case.scalars, case.arrays
        )
        width = world.families["k"].shape[1]
    if width is None:
        raise claim.error(
            f"the size of the {claim.kind} is not known", expected="a width d, under `where`"
        )
    return (width,) if claim.kind == "vector" else (width, width)


def _with(case: Case, name: str, value: Any) -> Case:
    """Return a case with a value for the unknown."""
    array = np.asarray(value, dtype=float)
    if array.ndim == 0:
        return case.with_scalars(**{name: float(array)})
    return replace(case, arrays={**case.arrays, name: array})


def _verified(body: CompiledClaim, case: Case, name: str, value: Any) -> bool:
    return exact_truth(body, _with(case, name, value)) is True


# ---- positions: all of them are tried ----


def _positions(body: CompiledClaim, claim: Exists, case: Case) -> tuple[str, str] | None:
    with ctx.workprec(PRECISIONS[0]), suppress(*NOT_ENCLOSED):
        scalars = {name: decimal(value) for name, value in case.scalars.items()}
        evaluator = BallEvaluator(ball_world(body, scalars, case.arrays, case.scalars))
        known = True
        count = 0
        try:
            for inner, sure in evaluator.cases(claim.names, claim.condition, claim.body):
                count += 1
                truth = inner.truth(claim.body) if sure else None
                if truth is True:
                    places = {n: inner.world.symbols[n].entries.flat() for n in claim.names}
                    said = ", ".join(f"{n} = {float(x):g}" for n, x in places.items())
                    return "found", said
                known = known and truth is False and sure
            return ("none", f"all {count} choices were tried, and each fails") if known else None
        except FormulaError:
            pass  # too many to try one by one
    return _twins(body, claim, case)


def _twins(body: CompiledClaim, claim: Exists, case: Case) -> tuple[str, str] | None:
    """Find two of many positions at which the same formula has the same value."""
    if len(claim.names) != 2 or not isinstance(claim.body, Compare) or claim.body.operator != "=":
        return None
    first, second = claim.names
    left, right = claim.body.left, claim.body.right
    if second in mentions(left):
        left, right = right, left
    if instantiate(right, second, first) != left or second in mentions(left):
        return None
    bound = _bound(body, claim, case)
    if bound is None:
        return None
    seen: dict[bytes, int] = {}
    for position in range(min(bound, MOST_POSITIONS)):
        world = build_world(body, {**case.scalars, first: float(position)}, case.arrays)
        value = np.asarray(Evaluator(world).value(left).array) + 0.0
        other = seen.setdefault(value.tobytes(), position)
        if other == position:
            continue
        at = case.with_scalars(**{first: float(other), second: float(position)})
        both = (
            body
            if claim.condition is None
            else replace(body, expectations=(Logic("and", claim.body, claim.condition),))
        )
        if exact_truth(both, at) is True:
            return "found", f"{first} = {other}, {second} = {position}"
    return None


def _bound(body: CompiledClaim, claim: Exists, case: Case) -> int | None:
    for node in walk(claim.condition) if claim.condition is not None else ():
        if isinstance(node, Compare) and node.operator in ("<", "<="):
            with suppress(FormulaError):
                world = build_world(body, case.scalars, case.arrays)
                limit = float(Evaluator(world).value(node.right).array.flat[0])
                return int(limit) + (node.operator == "<=")
    return None


def _shift_of_positions(compiled: CompiledClaim, claim: Exists) -> Decision | None:
    """Prove that a shift of sinusoidal positions is one matrix for all of them: a rotation."""
    kind = compiled.claim.positions.get("kind", "sinusoidal")
    widths = compiled.domains.get("d", Values((2.0,)))
    if kind != "sinusoidal" or claim.kind not in ("matrix", "rotation") or len(claim.names) != 1:
        return None
    if not isinstance(widths, Values) or any(width % 2 for width in widths.numbers):
        return None
    body = claim.body
    if isinstance(body, ForAll) and len(body.indices) == 1:
        (t,) = body.indices
        relation = body.body
    else:
        return None
    match relation:
        case Compare("=", Call("phi", (moved,)), Binary("*", Name(name), Call("phi", (Name(at),)))):
            pass
        case Compare("=", Binary("*", Name(name), Call("phi", (Name(at),))), Call("phi", (moved,))):
            pass
        case _:
            return None
    match moved:
        case Binary("+", Name(first), step) if first == t and t not in mentions(step):
            pass
        case Binary("+", step, Name(first)) if first == t and t not in mentions(step):
            pass
        case _:
            return None
    if name != claim.names[0] or at != t or name in mentions(step):
        return None
    k = show(step)
    steps = (
        f"sin(ω(t + {k})) = cos(ω {k}) sin(ωt) + sin(ω {k}) cos(ωt)",
        f"cos(ω(t + {k})) = cos(ω {k}) cos(ωt) − sin(ω {k}) sin(ωt)",
        f"so each pair of entries is turned by the angle ω {k}, whatever t is: {name} has these "
        "turns along its diagonal and 0 elsewhere",
        "it is orthogonal with determinant 1: a rotation",
    )
    statement = f"{name} turns pair i by ω_i·({k}), the same for every {t}."
    return "proved", Evidence(method="algebra", statement=statement, steps=steps), None


# ---- what is linear in the unknown ----


def _equations(body: CompiledClaim, evaluator: Any, tree: Expression) -> Iterator[Any]:
    """Yield both sides' difference of every equation; refuse anything else."""
    match tree:
        case Logic("and", left, right):
            yield from _equations(body, evaluator, left)
            yield from _equations(body, evaluator, right)
        case ForAll(indices, condition, inside):
            for inner, _ in evaluator.cases(indices, condition, inside):
                yield from _equations(body, inner, inside)
        case Compare("=", left, right):
            yield evaluator.value(Binary("-", left, right))
        case _:
            raise ValueError("no equation")


def _residual(body: CompiledClaim, case: Case, name: str, value: Any) -> Any:
    at = _with(case, name, value)
    evaluator = Evaluator(build_world(body, at.scalars, at.arrays))
    parts = [x.array.reshape(-1) for x in _equations(body, evaluator, body.expectations[0])]
    return np.concatenate(parts)


def _turns(matrix: Any) -> bool:
    """Tell whether a matrix is a rotation, exactly: RᵀR = I, and its determinant is not −1."""
    rows = [[Fraction(float(x)) for x in row] for row in matrix]
    size = range(len(rows))
    products = ((sum(rows[k][i] * rows[k][j] for k in size), i == j) for i in size for j in size)
    return all(product == same for product, same in products) and np.linalg.det(matrix) > 0


def _by_least_squares(
    body: CompiledClaim, name: str, shape: tuple[int, ...], case: Case, kind: str
) -> tuple[str, str] | None:
    size = math.prod(shape)
    try:
        start = _residual(body, case, name, np.zeros(shape))
        units = np.eye(size).reshape(size, *shape)
        columns = np.stack([_residual(body, case, name, unit) - start for unit in units], axis=1)
        probe = np.random.default_rng(0).standard_normal(shape)
        bent = _residual(body, case, name, probe) - start - columns @ probe.reshape(-1)
    except (FormulaError, ValueError):
        return None
    if np.max(np.abs(bent), initial=0.0) > LINEAR * (1 + np.max(np.abs(columns), initial=0.0)):
        return None
    solved = np.linalg.lstsq(columns, -start, rcond=None)[0]
    rest = columns @ solved + start
    if np.max(np.abs(rest), initial=0.0) < 1e-6 * (1 + np.max(np.abs(start), initial=0.0)):
        for candidate in _rounded(solved.reshape(shape)):
            if _verified(body, case, name, candidate) and (kind != "rotation" or _turns(candidate)):
                return "found", f"{name} = {_written(candidate)}"
        return None
    return _contradiction(body, case, name, shape, rest)


def _contradiction(
    body: CompiledClaim, case: Case, name: str, shape: tuple[int, ...], rest: Any
) -> tuple[str, str] | None:
    """Verify that a combination of the equations says 0 = something else, whatever the unknown."""
    size = math.prod(shape)
    for denominator in PLAIN:
        weights = np.round(rest / np.max(np.abs(rest)) * denominator) / denominator
        if not np.any(weights):
            continue
        with ctx.workprec(PRECISIONS[0]), suppress(*NOT_ENCLOSED, FormulaError):
            start = _combined(body, case, name, np.zeros(shape), weights)
            moved = [
                _combined(body, case, name, unit, weights) - start
                for unit in np.eye(size).reshape(size, *shape)
            ]
            if all(part.is_zero() for part in moved) and not start.contains(arb(0)):
                return "none", (
                    f"a combination of the equations comes to {float(start.mid()):.4g} = 0, "
                    f"whatever {name} is"
                )
    return None


def _combined(body: CompiledClaim, case: Case, name: str, value: Any, weights: Any) -> Any:
    at = _with(case, name, value)
    scalars = {n: decimal(x) for n, x in at.scalars.items()}
    evaluator = BallEvaluator(ball_world(body, scalars, at.arrays, at.scalars))
    flat = [
        entry.flat()
        for part in _equations(body, evaluator, body.expectations[0])
        for entry in flatten(part)
    ]
    return sum((arb(float(w)) * x for w, x in zip(weights, flat, strict=True)), arb(0))


def _rounded(value: Any) -> Iterator[Any]:
    """Yield a witness with plain entries first, then as it was computed."""
    for denominator in PLAIN:
        yield np.round(value * denominator) / denominator
    yield value


# ---- what is searched ----


def _by_search(
    body: CompiledClaim, name: str, shape: tuple[int, ...], case: Case, deadline: float
) -> tuple[str, str] | None:
    best: tuple[float, Any] = math.inf, np.zeros(shape)
    rng = np.random.default_rng(body.claim.seed)
    plain = _plain_candidates(body, shape, case)
    for _ in range(MOST_CANDIDATES):
        if time.thread_time() > deadline:
            return None
        candidate = next(plain, None)
        if candidate is None:  # none of the plain ones does: go on from the one that came nearest
            size = rng.choice([1.0, 0.1, 0.01]) * (1.0 + float(np.max(np.abs(best[1]))))
            candidate = best[1] + size * rng.standard_normal(shape)
        value = np.round(candidate, 6) + 0.0
        try:
            outcome = outcome_of(body, _with(case, name, value))
        except FormulaError:
            continue
        if outcome.holds and _verified(body, case, name, value):
            return "found", f"{name} = {_written(value)}"
        best = min(best, (float(np.max(outcome.truth.gap)), value), key=lambda pair: pair[0])
    return None


def _plain_candidates(body: CompiledClaim, shape: tuple[int, ...], case: Case) -> Iterator[Any]:
    if not shape:
        yield from map(np.asarray, NUMBERS)
        return
    directions = list(np.eye(shape[0]))
    with suppress(FormulaError, KeyError):
        world = build_world(body, case.scalars, case.arrays)
        keys = np.asarray(world.families["k"].array[0])
        middle = keys.mean(axis=0)
        directions += [*keys, *(keys - middle)]
        directions += [x + y for x, y in itertools.combinations(keys[:6], 2)]
        if len(keys) > 1:
            directions += [certify(keys, place).direction for place in range(min(len(keys), 12))]
    yield np.zeros(shape)
    for scale in SCALES:
        for direction in directions:
            yield scale * direction
            yield -scale * direction


def _no_copy(body: CompiledClaim, name: str, case: Case) -> str | None:
    """Prove that no query gives a key more than half: it is a combination of other keys.

    If k_j = Σ λ_i k_i with λ ≥ 0 and Σ λ_i = 1, its score is a mean of the others', so some other
    key scores no less, and has no smaller weight.
    """
    match body.expectations[0]:
        case Compare(">" | ">=", Entry(Call("weights", (Name(query),)), (member,)), right):
            share = rational(right)
        case _:
            return None
    if query != name or share is None or share <= Fraction(1, 2):
        return None
    world = build_world(body, case.scalars, case.arrays)
    place = Evaluator(world).position(member)
    keys = np.asarray(world.families["k"].array[0])
    if not 0 <= place < len(keys) or len(keys) < 2:
        return None
    separation = certify(keys, place)
    if separation.verdict != "inside":
        return None
    weights = [Fraction(float(w)).limit_denominator(1000) for w in separation.weights]
    exact = [[Fraction(repr(float(x))) for x in row] for row in keys]
    members = [int(m) for m in separation.members]
    if place in members or sum(weights) != 1 or min(weights) < 0 or not body.key_rows:
        return None
    combined = [
        sum((w * exact[m][axis] for w, m in zip(weights, members, strict=True)), Fraction(0))
        for axis in range(keys.shape[1])
    ]
    if combined != exact[place]:
        return None
    parts = " + ".join(f"{w} k_{m + 1}" for w, m in zip(weights, members, strict=True))
    return f"k_{place + 1} = {parts}, so some other key always has a weight as large"


def _written(value: Any) -> str:
    array = np.asarray(value) + 0.0
    if array.ndim == 0:
        return f"{float(array):.6g}"
    if array.ndim == 1:
        return "[" + ", ".join(f"{x:.6g}" for x in array) + "]"
    return "[" + ", ".join(_written(row) for row in array) + "]"
