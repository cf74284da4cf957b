"""The smallest change that makes a refuted claim hold, found by trying.

Proposals are ordered by how little they change. First what the claim is about: a scale on the
query, a condition, a head for each direction, the other side of a product, no mask. Then what it
says: the combination that really comes out, the bound or tolerance that holds, the values for
which it holds, the opposite. Each is judged like any claim; the first that holds is the repair.

A proposal joins texts and trees of the claim's own formulas, so nothing is read again.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from heedful.claims import statistics
from heedful.claims.compile import Array, CompiledClaim, Large, Values
from heedful.claims.language import constant, show
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
    walk,
)
from heedful.claims.proofs import limit_weights, rounded_up
from heedful.claims.search import Case, all_cases, eventually, outcome_of
from heedful.claims.sheet.claim import Claim, ParsedFormula
from heedful.claims.verdict import Repair, Verdict
from heedful.errors import FormulaError

OPPOSITE: dict[str, Literal["<", "<=", ">", ">="]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
CONDITION_BOUNDS = (Fraction(0), Fraction(1, 4), Fraction(1, 2))
"""How far a noisy key is asked to point along its mean, in turn."""
TOLERANCES = ("0.1", "0.2", "0.3")
TELLING = 1e-3
"""The smallest share of a wanted bound that is still worth saying."""
NEARLY = 0.1
"""How far two sides may be apart to say that they are nearly equal."""
MOST_RANGE = 8
"""Values of a list that are judged one by one to find those for which a claim holds."""
MOST_VALUES = 60
"""Values of a left side that are looked at to find a bound that holds."""

Judge = Callable[[Claim], Verdict]
_MASK = re.compile(r"\s*\+\s*causal\(\w+\)")


@dataclass(frozen=True)
class Proposal:
    """A change that may make a claim hold."""

    kind: str
    statement: str
    changes: dict[str, Any]
    """Fields of the claim with what they become; None where one is left out."""


class Trials:
    """Changed claims and their verdicts; none is judged twice."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._verdicts: dict[str, Verdict | None] = {}

    def verdict(self, claim: Claim) -> Verdict | None:
        """Return the verdict on a changed claim if it holds; None if not, or if it has no sense."""
        content = repr(claim)
        if content not in self._verdicts:
            try:
                verdict = self._judge(claim)
                self._verdicts[content] = verdict if verdict.holds else None
            except FormulaError:
                self._verdicts[content] = None
        return self._verdicts[content]


def find_repair(compiled: CompiledClaim, judge: Judge, deadline: float) -> Repair | None:
    """Return the first proposal that holds, or None."""
    trials = Trials(judge)
    for propose in PROPOSERS:
        if time.thread_time() > deadline:
            return None
        for proposal in propose(compiled, trials):
            if time.thread_time() > deadline:
                return None
            verdict = trials.verdict(compiled.claim.changed(**proposal.changes))
            if verdict is not None:
                return Repair(
                    kind=proposal.kind,
                    statement=proposal.statement,
                    changes=proposal.changes,
                    verdict=verdict.verdict,
                )
    return None


# ---- what the claim is about ----


def propose_scale(compiled: CompiledClaim, trials: Trials) -> Iterator[Proposal]:
    """A scale on every query, and the smallest that does."""
    claim = compiled.claim
    if not compiled.heads or compiled.large or "scale" in claim.where:
        return
    large = {
        **_scaled_heads(claim, "scale", Name("scale")),
        "where": {**claim.where, "scale": "large"},
    }
    verdict = trials.verdict(claim.changed(**large))
    if verdict is None:
        return
    bounds = verdict.evidence.numbers.get("beta_0") or {}
    if bounds:
        bound = f"{rounded_up(max(float(value) for value in bounds.values())):g}"
        formula = verdict.evidence.numbers.get("beta_0_formula")
        note = f" (in general {formula})" if formula else ""
        yield Proposal(
            "scale",
            f"multiply the query by at least {bound}{note}",
            _scaled_heads(claim, bound, constant(Fraction(bound))),
        )
    yield Proposal("scale", "multiply the query by a scale that is large enough", large)


def _scaled_heads(claim: Claim, factor: str, tree: Expression) -> dict[str, Any]:
    heads = (claim.query,) if claim.query is not None else claim.heads
    scaled = tuple(
        ParsedFormula(f"{factor} ({head})", Binary("*", tree, _tree(head))) for head in heads
    )
    return {"query": scaled[0]} if claim.query is not None else {"heads": scaled}


def propose_condition(compiled: CompiledClaim, trials: Trials) -> Iterator[Proposal]:
    """Leave out the draws, or the keys, in which the wanted key turns away from its query."""
    claim = compiled.claim
    if claim.keys != "gaussian":
        yield from _propose_leading_key(compiled)
    if claim.keys != "gaussian" or claim.given is not None:
        return
    for member in compiled.covariance:
        if member == "others":
            continue
        own = Binary("*", Unary("T", Name(f"k_{member}")), Name(f"mu_{member}"))
        if any(own in walk(tree) for tree in compiled.expectations):
            continue  # a claim about that very number is not repaired by presuming it
        for bound in CONDITION_BOUNDS:
            text = f"k_{member}^T mu_{member} > {bound}"
            condition = ParsedFormula(text, Compare(">", own, _fraction(bound)))
            yield Proposal("condition", f"given that {text}", {"given": condition})


def _propose_leading_key(compiled: CompiledClaim) -> Iterator[Proposal]:
    """Ask that the key whose weight the claim is about has the largest score."""
    claim = compiled.claim
    if len(compiled.heads) != 1 or len(claim.expect) != 1:
        return
    tree = compiled.expectations[0]
    if not (isinstance(tree, Compare) and isinstance(tree.left, Name)):
        return
    base, _, member = tree.left.text.rpartition("_")
    if base != "alpha" or tree.operator not in (">", ">="):
        return
    text = f"k_{member}^T q > k_i^T q for all i != {member}"
    own, other = (Binary("*", Unary("T", Name(f"k_{key}")), Name("q")) for key in (member, "i"))
    label = Number(Fraction(member)) if member.isdigit() else Name(member)
    leads = ForAll(("i",), Compare("!=", Name("i"), label), Compare(">", own, other))
    condition = ParsedFormula(text, leads)
    if claim.given is not None:
        both = Logic("and", _tree(claim.given), leads)
        condition = ParsedFormula(f"{claim.given} and ({text})", both)
    yield Proposal("condition", f"given that {text}", {"given": condition})


def propose_separate_heads(compiled: CompiledClaim, trials: Trials) -> Iterator[Proposal]:
    """Give each direction of a sum a head of its own: beta (mu_a + mu_b) → beta mu_a, beta mu_b."""
    claim = compiled.claim
    if claim.query is None or claim.keys != "gaussian" or len(compiled.heads) != 1:
        return
    parts = _summands(compiled.heads[0])
    if len(parts) < 2:
        return
    yield Proposal(
        "heads",
        f"give each of the {len(parts)} directions a head of its own",
        {"query": None, "heads": tuple(ParsedFormula(show(part), part) for part in parts)},
    )


def _summands(node: Expression) -> list[Expression]:
    match node:
        case Binary("+", left, right):
            return _summands(left) + _summands(right)
        case Binary("*", factor, right):
            return [Binary("*", factor, part) for part in _summands(right)]
    return [node]


def propose_order(compiled: CompiledClaim, trials: Trials) -> Iterator[Proposal]:
    """Put the permutation on the other side of what it permutes."""
    permutations = {
        name: domain
        for name, domain in compiled.domains.items()
        if isinstance(domain, Array) and domain.kind == "permutation"
    }
    written = [_tree(text) for text in compiled.claim.expect]

    def swapped(node: Expression) -> Expression:
        node = map_children(node, swapped)
        match node:
            case Binary("*", left, Name(name) as right) if name in permutations:
                return Binary("*", right, left)
        return node

    moved = [swapped(tree) for tree in written]
    if moved == written:
        return  # every permutation already stands on the left, where the tokens are
    expect = tuple(ParsedFormula(show(tree), tree) for tree in moved)
    where = dict(compiled.claim.where)
    for name, domain in permutations.items():
        # On the other side the permutation must have the size of the other axis.
        for other in compiled.domains.values():
            if (
                isinstance(other, Array)
                and other.kind == "matrix"
                and other.shape[1] == domain.shape[0]
            ):
                where[name] = f"permutation {other.shape[0]}"
                break
    yield Proposal(
        "order",
        "put the permutation on the other side: " + " and ".join(expect),
        {"expect": expect, "where": where},
    )


def propose_no_mask(compiled: CompiledClaim, trials: Trials) -> Iterator[Proposal]:
    """Leave out the causal mask."""
    claim = compiled.claim

    def without(node: Expression) -> Expression:
        node = map_children(node, without)
        match node:
            case Binary("+", left, Call("causal", (Name() | Number(),))):
                return left
        return node

    def unmasked(text: str) -> str:
        return ParsedFormula(_MASK.sub("", text), without(_tree(text)))

    changes = {
        "let": {name: unmasked(text) for name, text in claim.let.items()},
        "expect": tuple(unmasked(text) for text in claim.expect),
    }
    changed = {name: new for name, new in changes.items() if new != getattr(claim, name)}
    if changed:
        yield Proposal("mask", "leave out the causal mask", changed)


# ---- what the claim says ----


def propose_observed_output(compiled: CompiledClaim, trials: Trials) -> Iterator[Proposal]:
    """Replace the wanted combination of values by the one that really comes out."""
    claim = compiled.claim
    tree = _only_relation(compiled)
    if tree is None or tree.operator != "~" or compiled.noisy or claim.keys is None:
        return
    cases = all_cases(compiled, np.random.default_rng(claim.seed))
    case = max(cases, key=lambda case: sum(case.scalars.values()), default=None)
    if case is None:
        return
    weights: list[float] | None = None
    if compiled.large and isinstance(tree.left, Name) and tree.left.text == "c":
        weights = limit_weights(compiled, case)
    elif not compiled.large:
        try:
            left = outcome_of(compiled, Case(case.scalars, case.arrays)).truth.left
        except FormulaError:
            return
        if left is not None and left.formal and left.kind == "vector":
            weights = [float(x) for x in left.array[0]]
    output = None if weights is None else _combination(weights, compiled)
    if output is None:
        return
    within = "" if tree.within is None else f" within {show(tree.within)}"
    expect = ParsedFormula(
        f"{show(tree.left)} ~ {output}{within}", Compare("~", tree.left, output.tree, tree.within)
    )
    yield Proposal("constant", f"what comes out is {output}", {"expect": (expect,)})


def _combination(weights: list[float], compiled: CompiledClaim) -> ParsedFormula | None:
    """Write weights as a combination of named values, if few of them matter."""
    names = dict(enumerate(compiled.members))
    texts: list[str] = []
    sum_of: Expression | None = None
    for place, weight in enumerate(weights):
        fraction = Fraction(weight).limit_denominator(12)
        if abs(weight) < 1e-4:
            continue
        if place not in names or abs(float(fraction) - weight) > 1e-4:
            return None
        name = f"v_{names[place]}"
        texts.append(name if fraction == 1 else f"{fraction} {name}")
        part = Name(name) if fraction == 1 else Binary("*", _fraction(fraction), Name(name))
        sum_of = part if sum_of is None else Binary("+", sum_of, part)
    return None if sum_of is None else ParsedFormula(" + ".join(texts), sum_of)


def propose_bound(compiled: CompiledClaim, trials: Trials) -> Iterator[Proposal]:
    """Replace a number that is too tight by the one that holds."""
    tree = _only_relation(compiled)
    if tree is None or tree.operator == "!=":
        return
    if tree.operator == "=":
        yield from _propose_nearly(compiled, tree)
        return
    if tree.operator == "~":
        for within in TOLERANCES:
            if tree.within is None or float(within) > _number(tree.within):
                yield _within(tree, within, f"it holds within {within}")
        return
    if not isinstance(tree.right, Number):
        return
    values = _left_values(compiled)
    if not values:
        return
    upper = tree.operator in ("<", "<=")
    bound = _outward(max(values) if upper else min(values), up=upper)
    if abs(float(bound)) < TELLING * abs(float(tree.right.value)):
        return  # "at least 1e-21" holds, but says nothing
    relation = Compare(tree.operator, tree.left, constant(Fraction(bound)))
    expect = ParsedFormula(f"{show(tree.left)} {tree.operator} {bound}", relation)
    yield Proposal("constant", f"the bound that holds is {bound}", {"expect": (expect,)})


def _propose_nearly(compiled: CompiledClaim, tree: Compare) -> Iterator[Proposal]:
    """Say ≈ for =, where all cases are listed and the sides differ by little."""
    listed = all(isinstance(domain, Values | Large) for domain in compiled.domains.values())
    if compiled.noisy or not listed or compiled.claim.keys in ("unit", "any"):
        return
    gaps = [0.01] if compiled.large else []
    for case in () if compiled.large else all_cases(compiled, np.random.default_rng(0)):
        try:
            gaps.append(float(np.max(eventually(compiled, case)[1].truth.gap)))
        except FormulaError:
            continue
    if gaps and 0 < max(gaps) <= NEARLY:
        within = _outward(max(gaps), up=True)
        yield _within(tree, within, f"it holds only nearly: within {within}")


def _within(tree: Compare, within: str, statement: str) -> Proposal:
    text = f"{show(tree.left)} ~ {show(tree.right)} within {within}"
    relation = Compare("~", tree.left, tree.right, constant(Fraction(within)))
    return Proposal("tolerance", statement, {"expect": (ParsedFormula(text, relation),)})


def _left_values(compiled: CompiledClaim) -> list[float]:
    """Return what the left side comes to in every case."""
    values: list[float] = []
    for case in all_cases(compiled, np.random.default_rng(compiled.claim.seed)):
        try:
            if compiled.noisy:
                estimate = statistics.estimate(compiled, case)
                values += [estimate.left - estimate.error, estimate.left + estimate.error]
            else:
                truth = eventually(compiled, case)[1].truth
                if truth.left is not None:
                    values.append(float(np.asarray(truth.left.array).flat[0]))
        except FormulaError:
            continue
        if len(values) >= MOST_VALUES:
            break
    return [value for value in values if math.isfinite(value)]


def propose_range(compiled: CompiledClaim, trials: Trials) -> Iterator[Proposal]:
    """Keep the listed values for which it holds."""
    claim = compiled.claim
    for name, domain in compiled.domains.items():
        if not isinstance(domain, Values) or not 2 <= len(domain.numbers) <= MOST_RANGE:
            continue
        numbers = [int(value) if value == round(value) else value for value in domain.numbers]
        kept = [
            number
            for number in numbers
            if trials.verdict(claim.changed(where={**claim.where, name: number})) is not None
        ]
        if kept and len(kept) < len(numbers):
            listed = ", ".join(f"{value:g}" for value in kept)
            where = {**claim.where, name: kept}
            yield Proposal("range", f"it holds for {name} = {listed}", {"where": where})


def propose_negation(compiled: CompiledClaim, trials: Trials) -> Iterator[Proposal]:
    """Turn the statement round."""
    if len(compiled.claim.expect) != 1:
        return
    match _tree(compiled.claim.expect[0]):
        case Unary("not", operand):
            turned = operand
        case Compare("<" | "<=" | ">" | ">=" as operator, left, right) if not (
            isinstance(left, Number) or isinstance(right, Number)
        ):
            turned = Compare(OPPOSITE[operator], left, right)
        case _:
            return
    expect = ParsedFormula(show(turned), turned)
    yield Proposal("relation", f"the contrary holds: {expect}", {"expect": (expect,)})


PROPOSERS = (
    propose_scale,
    propose_condition,
    propose_separate_heads,
    propose_order,
    propose_no_mask,
    propose_observed_output,
    propose_bound,
    propose_range,
    propose_negation,
)
"""How claims are repaired, the least change first."""


def _tree(text: str) -> Expression:
    assert isinstance(text, ParsedFormula)  # compiled claims have been read
    return text.tree


def _only_relation(compiled: CompiledClaim) -> Compare | None:
    """Return what a claim expects, as written, if that is a single relation."""
    expect = compiled.claim.expect
    tree = _tree(expect[0]) if len(expect) == 1 else None
    return tree if isinstance(tree, Compare) else None


def _fraction(value: Fraction) -> Expression:
    """Return a fraction as one would type it: 1/4."""
    if value.denominator == 1:
        return constant(value)
    return Binary("/", constant(value.numerator), Number(Fraction(value.denominator)))


def _outward(value: float, *, up: bool) -> str:
    if value == 0:
        return "0"
    digits = 2 - math.floor(math.log10(abs(value)))
    scale = 10.0**digits
    rounded = (math.ceil if up else math.floor)(value * scale + (1e-9 if up else -1e-9)) / scale
    return f"{rounded:.{max(digits, 0)}f}".rstrip("0").rstrip(".") if digits > 0 else f"{rounded:g}"


def _number(node: Expression) -> float:
    return float(node.value) if isinstance(node, Number) else math.inf
