"""Repairs that keep what a claim says and change what it is said about.

A scale on the query, a condition, a head for each direction, the other side of a product, no
mask: candidates that `repair` tries in this order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from heedful.claims.candidates import Candidate, judged, written_tree
from heedful.claims.language import parse_value, show
from heedful.claims.language.tree import Binary, Compare, Expression, Name, map_children, walk
from heedful.claims.problem import Problem
from heedful.claims.sheet.claim import Claim
from heedful.claims.symbols import Array
from heedful.claims.thresholds import rounded_up


def a_scale(problem: Problem) -> Iterator[Candidate]:
    """A scale on every query, and the smallest that does."""
    claim = problem.claim
    heads = (claim.query,) if claim.query is not None else claim.heads
    if not heads or problem.large or "scale" in claim.where:
        return
    large = claim.changed(
        **_with_heads(claim, [f"scale ({head})" for head in heads]),
        where={**claim.where, "scale": "large"},
    )
    verdict = judged(large)
    if verdict is None or not verdict.holds:
        return
    bounds = verdict.evidence.numbers.get("beta_0") or {}
    if bounds:
        bound = rounded_up(max(float(value) for value in bounds.values()))
        formula = verdict.evidence.numbers.get("beta_0_formula")
        note = f" (in general {formula})" if formula else ""
        yield Candidate(
            "scale",
            f"multiply the query by at least {bound:g}{note}",
            _with_heads(claim, [f"{bound:g} ({head})" for head in heads]),
        )
    yield Candidate(
        "scale",
        "multiply the query by a scale that is large enough",
        {
            **_with_heads(claim, [f"scale ({head})" for head in heads]),
            "where": {**claim.where, "scale": "large"},
        },
    )


def a_condition(problem: Problem) -> Iterator[Candidate]:
    """Leave out the draws, or the keys, in which the wanted key turns away from its query."""
    claim = problem.claim
    if claim.keys != "gaussian":
        yield from _leading(problem)
    if claim.keys != "gaussian" or claim.given is not None:
        return
    for member in problem.covariance:
        if member == "others":
            continue
        own = parse_value(f"k_{member}^T mu_{member}")
        if any(own in walk(tree) for tree in problem.expectations):
            continue  # a claim about that very number is not mended by presuming it
        for threshold in ("0", "1/4", "1/2"):
            condition = f"k_{member}^T mu_{member} > {threshold}"
            yield Candidate("condition", f"given that {condition}", {"given": condition})


def _leading(problem: Problem) -> Iterator[Candidate]:
    """Ask that the key whose weight the claim is about has the largest score."""
    claim = problem.claim
    if len(problem.heads) != 1 or len(claim.expect) != 1:
        return
    tree = problem.expectations[0]
    if isinstance(tree, Compare) and isinstance(tree.left, Name):
        base, _, member = tree.left.text.rpartition("_")
        if base == "alpha" and tree.operator in (">", ">="):
            condition = f"k_{member}^T q > k_i^T q for all i != {member}"
            whole = condition if claim.given is None else f"{claim.given} and ({condition})"
            yield Candidate("condition", f"given that {condition}", {"given": whole})


def a_head_each(problem: Problem) -> Iterator[Candidate]:
    """Give each direction of a sum a head of its own: beta (mu_a + mu_b) → beta mu_a, beta mu_b."""
    claim = problem.claim
    if claim.query is None or claim.keys != "gaussian" or len(problem.heads) != 1:
        return
    parts = _summands(problem.heads[0])
    if len(parts) < 2:
        return
    yield Candidate(
        "heads",
        f"give each of the {len(parts)} directions a head of its own",
        {"query": None, "heads": tuple(show(part) for part in parts)},
    )


def _summands(node: Expression) -> list[Expression]:
    match node:
        case Binary("+", left, right):
            return _summands(left) + _summands(right)
        case Binary("*", factor, right):
            return [Binary("*", factor, part) for part in _summands(right)]
    return [node]


def another_order(problem: Problem) -> Iterator[Candidate]:
    """Put the permutation on the other side of what it permutes."""
    permutations = {
        name
        for name, domain in problem.domains.items()
        if isinstance(domain, Array) and domain.kind == "permutation"
    }
    if not permutations:
        return
    compiled = [written_tree(text, problem) for text in problem.claim.expect]

    def swapped(node: Expression) -> Expression:
        made = map_children(node, swapped)
        if isinstance(made, Binary) and made.operator == "*":
            left, right = made.left, made.right
            if isinstance(right, Name) and right.text in permutations:
                return Binary("*", right, left)
        return made

    moved = [swapped(tree) for tree in compiled]
    if moved == compiled:
        return  # every permutation already stands on the left, where the tokens are
    texts = tuple(show(tree) for tree in moved)
    domains = dict(problem.claim.where)
    for name in permutations:
        domain = problem.domains[name]
        assert isinstance(domain, Array)
        # On the other side the permutation must have the size of the other axis.
        for other in problem.domains.values():
            if (
                isinstance(other, Array)
                and other.kind == "matrix"
                and (other.shape[1] == domain.shape[0])
            ):
                domains[name] = f"permutation {other.shape[0]}"
                break
    yield Candidate(
        "order",
        "put the permutation on the other side: " + " and ".join(texts),
        {"expect": texts, "where": domains},
    )


def no_mask(problem: Problem) -> Iterator[Candidate]:
    """Leave out the causal mask."""
    claim = problem.claim
    if not any("causal" in text for text in (*claim.let.values(), *claim.expect)):
        return

    def unmasked(text: str) -> str:
        return re.sub(r"\s*\+\s*causal\(\w+\)", "", text)

    changes = {
        "let": {name: unmasked(text) for name, text in claim.let.items()},
        "expect": tuple(unmasked(text) for text in claim.expect),
    }
    changed = {name: new for name, new in changes.items() if new != getattr(claim, name)}
    yield Candidate("mask", "leave out the causal mask", changed)


def _with_heads(claim: Claim, heads: list[str]) -> dict[str, Any]:
    return {"query": heads[0]} if claim.query is not None else {"heads": tuple(heads)}
