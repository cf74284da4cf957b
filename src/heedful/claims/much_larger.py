"""Much larger: claims with ≫, read as "from some margin on".

`alpha_a >= 0.99` given `k_a^T q >> k_i^T q for all i != a` says that there is a margin M such that
the claim holds wherever k_aᵀq ≥ k_iᵀq + M. A symbol that is ≫ a number is large: there is a β₀
from which on the claim holds. All ≫ of a claim share one margin. In what is claimed, rather than
supposed, ≫ has no such reading, and is refused.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import count

from flint import arb, ctx

from heedful.claims.compile import CompiledClaim
from heedful.claims.language import instantiate, show, with_letters
from heedful.claims.language.tree import (
    Binary,
    Compare,
    Expression,
    ForAll,
    Logic,
    Name,
    Number,
    map_children,
    names_in,
    rational,
    walk,
)
from heedful.claims.open_number import Finding, Judge, direction_of_claim, find_number, open_name
from heedful.claims.proofs import PRECISIONS, rounded_up
from heedful.claims.sheet.claim import Claim, field_error
from heedful.claims.sheet.formulas import ParsedFormula, map_formulas
from heedful.claims.symbols import Values
from heedful.claims.verdict import Answer, Evidence

ENDLESS = ("large", "any", "real", "positive")
"""Ranges of a symbol that may be as large as one likes."""
STATEMENTS = ("expect", "given")


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
