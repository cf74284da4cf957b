"""Proofs that need an idea rather than a computation, kept in room `positions`."""

from __future__ import annotations

from heedful.claims.language.tree import Call, Compare, Expression, ForAll, Logic, Name
from heedful.claims.problem import Problem
from heedful.claims.symbols import Values
from heedful.positions import uniqueness


def prove_uniqueness(problem: Problem) -> tuple[str, ...] | None:
    """Return the proof that no two positions share a sinusoidal embedding, if that is the claim."""
    if problem.claim.positions.get("kind", "sinusoidal") != "sinusoidal":
        return None
    if len(problem.expectations) != 1 or not _says_unique(problem.expectations[0]):
        return None
    widths = problem.domains.get("d", Values((2.0,)))
    if not isinstance(widths, Values):
        return None
    base = float(problem.claim.positions.get("base", 10000.0))
    proof: tuple[str, ...] = ()
    for width in widths.numbers:
        found = uniqueness(int(width), base)
        if not found.unique:
            return None
        proof = found.proof
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
