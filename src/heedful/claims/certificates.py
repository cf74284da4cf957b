"""What a *proved* rests on, written so that others need not trust us.

A certificate states a claim, case by case, as relations between plain expressions, and
`certificate_checker` verifies it with exact rationals and nothing of ours. Here the relations are
written down: formulas in SymPy's letters become nested lists, weights become 1/Σ exp(l_j − l_i),
and one noisy direction becomes a standard normal variable. What cannot be written so has none.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import sympy

from heedful.claims import certificate_checker
from heedful.claims.compile import (
    Array,
    CompiledClaim,
    Interval,
    Large,
    Values,
    compile_claim,
    equations_only,
    size_of,
)
from heedful.claims.evaluate.symbolic import Letters, letters_for
from heedful.claims.functions import STATISTICS, NotSymbolic
from heedful.claims.language import parse_value, show, substitute
from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Expression,
    ForAll,
    Logic,
    Number,
    walk,
)
from heedful.claims.open_number import ENCLOSED_FROM, with_number
from heedful.claims.sheet import Sheet
from heedful.claims.sheet.claim import Claim, ParsedFormula, map_formulas
from heedful.claims.verdict import Verdict
from heedful.claims.worlds import assignments
from heedful.errors import FormulaError
from heedful.files import write_atomic

MOST_CASES = 40
MOST_PERMUTATIONS = 120
MOST_LETTERS = 2000
"""Numbers among them: keys that are given count as well."""
NOISE = "xi"
"""The name of the one standard normal variable."""
_OUTER = r"\s*([\d./]*)\s*\*?\s*mu_{name}\s*\*?\s*mu_{name}\s*(?:\^T|ᵀ|')\s*"


RELU = sympy.Function("relu")
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class NotCertified(Exception):  # noqa: N818 - it is an answer, not an error
    """A proof that cannot be written as a certificate, and why."""


@dataclass(frozen=True)
class Written:
    """Which certificates were written, and why others were not."""

    certified: tuple[str, ...]
    without: dict[str, str]


def write_certificates(
    sheets: Sequence[Sheet],
    verdicts: Sequence[Verdict],
    folder: Path,
    progress: Callable[[int, int], None] | None = None,
) -> Written:
    """Write a certificate for every proved claim that has one, and the checker beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    claims = {(sheet.name, claim.id): claim for sheet in sheets for claim in sheet.claims}
    certified: list[str] = []
    without: dict[str, str] = {}
    proved = [verdict for verdict in verdicts if verdict.verdict == "proved"]
    for place, verdict in enumerate(proved):
        if progress is not None:
            progress(place, len(proved))
        name = f"{verdict.sheet}/{verdict.id}"
        try:
            made = certificate(claims[verdict.sheet, verdict.id], verdict)
            certificate_checker.check(made)
        except (NotCertified, certificate_checker.Rejected) as reason:
            without[name] = str(reason)
            continue
        stem = re.sub(r"[^\w.-]", "_", name)
        write_atomic(folder / f"{stem}.json", json.dumps(made, ensure_ascii=False) + "\n")
        if made["kind"] == "enclosure" and (text := coq_text(made)) is not None:
            write_atomic(folder / f"{re.sub(r'[^a-zA-Z0-9_]', '_', 'claim_' + stem)}.v", text)
        certified.append(name)
    shutil.copyfile(str(certificate_checker.__file__), folder / "certificate_checker.py")
    return Written(tuple(certified), without)


def certificate(claim: Claim, verdict: Verdict) -> dict[str, Any]:
    """Return the certificate of a proved claim, or raise why there is none."""
    try:
        compiled = compile_claim(claim)
        if verdict.answer is None:
            cases = _all_cases(compiled, verdict)
        else:
            cases = _both_ends(compiled.claim, verdict)
    except (NotSymbolic, FormulaError, sympy.ShapeError, TypeError, AttributeError) as reason:
        raise NotCertified(f"{reason}"[:120] or type(reason).__name__) from None
    if not cases:
        raise NotCertified("no case")
    made = {
        "claim": f"{verdict.sheet}/{verdict.id}",
        "says": claim.says,
        "expects": [str(text) for text in claim.expect],
        "kind": "identity" if equations_only(compiled) else "enclosure",
        "cases": cases,
    }
    return {**made, "digest": certificate_checker.digest(made)}


def _both_ends(claim: Claim, verdict: Verdict) -> list[dict[str, Any]]:
    """Return the cases with the number that does, and one that fails with the number that does not.

    One relation that is false in one case refutes the claim; it is written the other way round.
    """
    answer = verdict.answer
    assert answer is not None
    if answer.holds_with is None or answer.fails_with is None:
        raise NotCertified("a number of which one end is not known")
    ends = [
        _all_cases(compile_claim(with_number(claim, Fraction(number))), verdict)
        for number in (answer.holds_with, answer.fails_with)
    ]
    for case in ends[1]:
        for operator, left, right in case["relations"]:
            turned = {**case, "relations": [[NEGATED[operator], left, right]]}
            with suppress(certificate_checker.Rejected):
                certificate_checker.check_enclosure(turned)
                return [*ends[0], turned]
    raise NotCertified("a number of which one end is not enclosed here")


def _all_cases(compiled: CompiledClaim, verdict: Verdict) -> list[dict[str, Any]]:
    if compiled.given is not None and not compiled.statistical:
        raise NotCertified("a condition")
    choices = assignments(compiled)
    if not choices.complete or len(choices.claims) > MOST_CASES:
        raise NotCertified("many choices of places")
    return [case for each in choices.claims for case in _cases(each, verdict)]


def _cases(compiled: CompiledClaim, verdict: Verdict) -> Iterator[dict[str, Any]]:
    """Yield the relations of every case of listed symbols, and the ranges of the others."""
    listed = list(compiled.scalar_cases(np.random.default_rng(0)))
    ranged = any(isinstance(domain, Interval) for domain in compiled.domains.values())
    counts = (len(d.numbers) for d in compiled.domains.values() if isinstance(d, Values))
    if ranged:
        names = [name for name, d in compiled.domains.items() if isinstance(d, Values)]
        listed = [dict(pairs) for pairs in {tuple((n, c[n]) for n in names) for c in listed}]
    if len(listed) > MOST_CASES or len(listed) != math.prod(counts):
        raise NotCertified("more cases than are written down")
    for scalars in listed:
        if len(compiled.members) > scalars.get("n", math.inf):
            continue
        yield from _case(compiled, scalars, verdict)


def _case(
    compiled: CompiledClaim, scalars: dict[str, float], verdict: Verdict
) -> Iterator[dict[str, Any]]:
    ranges: dict[str, list[str | None]] = {}
    domains = dict(compiled.domains)
    for name, domain in compiled.domains.items():
        if isinstance(domain, Interval):
            if math.isfinite(domain.high - domain.low) and not domain.integer:
                ranges[name] = [_text(domain.low), _text(domain.high)]
            elif not equations_only(compiled):
                raise NotCertified("a range without an end")
        elif isinstance(domain, Large):
            ranges[name] = [_text(_bound(scalars, verdict)), None]
            domains[name] = Interval(0.0, math.inf, open_low=True)
        elif not isinstance(domain, Values | Array):
            raise NotCertified("a symbol that vanishes")
    ready = replace(compiled, domains=domains)
    if compiled.noisy:
        ready, scalars = _with_normal_variable(ready, scalars)
    values = {name: _text(x) for name, x in scalars.items()}
    for letters in _worlds(ready, scalars):
        writer = _Writer(ready, letters)
        relations = [part for tree in ready.expectations for part in writer.relations(tree)]
        yield {"values": values, "ranges": ranges, "relations": relations}


def _worlds(compiled: CompiledClaim, scalars: dict[str, float]) -> Iterator[Letters]:
    """Yield the letters of a case, once for every permutation."""
    shuffled = {
        name: size_of(domain.shape[0], compiled.sizes(scalars))
        for name, domain in compiled.domains.items()
        if isinstance(domain, Array) and domain.kind == "permutation"
    }
    if math.prod(math.factorial(size) for size in shuffled.values()) > MOST_PERMUTATIONS:
        raise NotCertified("more permutations than are written down")
    rest = {name: d for name, d in compiled.domains.items() if name not in shuffled}
    world = letters_for(replace(compiled, domains=rest), scalars, MOST_LETTERS).world
    orders = (itertools.permutations(range(size)) for size in shuffled.values())
    for chosen in itertools.product(*orders):
        matrices = {
            name: sympy.Matrix(len(order), len(order), lambda i, j, order=order: int(order[i] == j))
            for name, order in zip(shuffled, chosen, strict=True)
        }
        yield _Letters(replace(world, symbols={**world.symbols, **matrices}))


def _bound(scalars: dict[str, float], verdict: Verdict) -> float:
    if verdict.answer is not None:
        return ENCLOSED_FROM
    label = ", ".join(f"{n}={x:g}" for n, x in sorted(scalars.items())) or "all"
    bounds = verdict.evidence.numbers.get("beta_0") or {}
    if label not in bounds:
        raise NotCertified("a large symbol without a bound")
    return float(bounds[label])


def _with_normal_variable(
    compiled: CompiledClaim, scalars: dict[str, float]
) -> tuple[CompiledClaim, dict[str, float]]:
    """Return a claim about Gaussian keys with one noisy direction as one about given keys."""
    claim = compiled.claim
    if claim.keys != "gaussian" or claim.means != "orthonormal" or "n" not in scalars:
        raise NotCertified("noise of another kind")
    n = int(scalars["n"])
    if int(scalars.get("d", n)) != n:
        raise NotCertified("more dimensions than keys")
    noisy = {m: text for m, text in claim.covariance.items() if text.strip() != "0"}
    if len(noisy) != 1 or "others" in noisy:
        raise NotCertified("noise in several directions")
    ((member, text),) = noisy.items()
    found = re.fullmatch(_OUTER.replace("{name}", member), text)
    if found is None:
        raise NotCertified("noise of another shape")
    place = compiled.indices[member]
    unit = [f"onehot({key + 1}, {n})" for key in range(n)]
    unit[place] = f"(1 + sqrt({found[1] or 1}) {NOISE}) {unit[place]}"
    means = {f"mu_{m}": parse_value(f"onehot({at + 1}, {n})") for m, at in compiled.indices.items()}

    def known(_field: object, formula: str) -> str:
        assert isinstance(formula, ParsedFormula)
        tree = substitute(formula.tree, means)
        return formula if tree == formula.tree else ParsedFormula(show(tree), tree)

    fixed = {k: v for k, v in claim.where.items() if k not in ("n", "d")}
    given = map_formulas(claim.changed(covariance={}, keys=None), known).changed(
        keys=tuple(unit), where={**fixed, NOISE: "any"}
    )
    made = compile_claim(given)
    made = replace(made, places=tuple(compiled.indices[member] for member in made.members))
    kept = {k: v for k, v in scalars.items() if k in made.domains}
    return made, kept


class _Letters(Letters):
    """Letters in which relu is a function of which nothing is known."""

    def apply(self, name: str, *arguments: Any) -> Any:
        if name != "relu":
            return super().apply(name, *arguments)
        (x,) = arguments
        return x.applyfunc(RELU) if isinstance(x, sympy.MatrixBase) else RELU(x)


class _Writer:
    """Writes the statements of one case as relations of the checker."""

    def __init__(self, compiled: CompiledClaim, letters: Letters) -> None:
        self.compiled = compiled
        self.letters = letters

    def relations(self, tree: Expression) -> Iterator[list[Any]]:
        match tree:
            case Logic("and", left, right):
                yield from self.relations(left)
                yield from self.relations(right)
            case ForAll(indices, condition, body):
                for inner, sure in self.letters.cases(indices, condition, body):
                    if not sure:
                        raise NotSymbolic("a condition that is not decided")
                    yield from _Writer(self.compiled, inner).relations(body)
            case Compare("=", left, right):
                yield from self._equal(left, right)
            case Compare("~", left, right, within):
                tolerance = (
                    Number(Fraction(str(self.compiled.claim.tolerance)))
                    if within is None
                    else within
                )
                yield ["<=", self._distance(left, right), self.value(tolerance)]
            case Compare("<" | "<=" | ">" | ">=" as operator, left, right):
                yield [operator, self.value(left), self.value(right)]
            case _:
                raise NotSymbolic("a statement of another kind")

    def _equal(self, left: Expression, right: Expression) -> Iterator[list[Any]]:
        first, second = self.letters.value(left), self.letters.like(left, right)
        sides = [list(x) if isinstance(x, sympy.MatrixBase) else [x] for x in (first, second)]
        for x, y in zip(*sides, strict=True):
            yield ["=", written(x, ratios=False), written(y, ratios=False)]

    def _distance(self, left: Expression, right: Expression) -> Any:
        if _statistical(left) or _statistical(right):
            return _size(["+", self.value(left), ["*", "-1", self.value(right)]])
        first, second = self.letters.value(left), self.letters.like(left, right)
        difference = first - second
        if not isinstance(difference, sympy.MatrixBase):
            return _size(written(difference))
        entries = [written(entry) for entry in difference]
        if self.compiled.claim.values == "arbitrary" and self.compiled.claim.keys is not None:
            # The largest ‖Σ w_i v_i‖ over values of norm and mutual distance at most 1.
            above = ["+", *(["max", entry, "0"] for entry in entries)]
            below = ["+", *(["max", ["*", "-1", entry], "0"] for entry in entries)]
            return ["max", above, below]
        raise NotSymbolic("a distance of vectors of numbers")

    def value(self, node: Expression) -> Any:
        if not _statistical(node):
            made = self.letters.value(node)
            if isinstance(made, sympy.MatrixBase):
                raise NotSymbolic("a vector where a number was expected")
            return written(made)
        match node:
            case Binary("+", left, right):
                return ["+", self.value(left), self.value(right)]
            case Binary("-", left, right):
                return ["+", self.value(left), ["*", "-1", self.value(right)]]
            case Binary("*", left, right):
                return ["*", self.value(left), self.value(right)]
            case Binary("/", left, right):
                return ["*", self.value(left), ["inverse", self.value(right)]]
            case Call("P", (event,), None):
                return ["P", NOISE, list(self.relations(event))]
            case Call("E" | "var" | "std" as function, (argument,), None):
                made = self.letters.value(argument)
                entries = list(made) if isinstance(made, sympy.MatrixBase) else [made]
                if function == "E" and len(entries) != 1:
                    raise NotSymbolic("the mean of a vector")
                head = "variance" if function == "var" else function
                return [head, NOISE, [written(entry) for entry in entries]]
        raise NotSymbolic("a statistic of another kind")


def _statistical(node: Expression) -> bool:
    return any(isinstance(part, Call) and part.function in STATISTICS for part in walk(node))


def _size(node: Any) -> Any:
    return ["max", node, ["*", "-1", node]]


def written(expression: Any, *, ratios: bool = True) -> Any:
    """Return a SymPy expression as nested lists."""
    whole = sympy.Integer(0) + expression
    return _written(_with_ratios(whole) if ratios else whole)


def _with_ratios(expression: Any) -> Any:
    """Write exp(x)/Σ exp(y) as 1/Σ exp(y − x), which an interval encloses tightly."""

    def is_share(part: Any) -> bool:
        return bool(
            part.is_Mul
            and any(isinstance(f, sympy.exp) for f in part.args)
            and any(f.is_Pow and f.exp == -1 and f.base.is_Add for f in part.args)
        )

    def turned(part: Any) -> Any:
        top = [f for f in part.args if isinstance(f, sympy.exp)]
        bottom = next(f for f in part.args if f.is_Pow and f.exp == -1 and f.base.is_Add)
        rest = [f for f in part.args if f not in top and f is not bottom]
        exponent = sum(f.args[0] for f in top)
        total = sympy.Integer(0)
        for term in bottom.base.args:
            factors = sympy.Mul.make_args(term)
            own = sum((f.args[0] for f in factors if isinstance(f, sympy.exp)), sympy.Integer(0))
            others = [f for f in factors if not isinstance(f, sympy.exp)]
            total += sympy.Mul(*others) * sympy.exp(sympy.expand(own - exponent))
        return sympy.Mul(*rest) / total

    return expression.replace(is_share, turned)


def _written(node: Any) -> Any:
    if node.is_Rational:
        return str(Fraction(int(node.p), int(node.q)))
    if node.is_Symbol:
        return ["var", str(node)]
    if node == sympy.E:
        return ["exp", "1"]
    if node.is_Add:
        return ["+", *(_written(part) for part in node.args)]
    if node.is_Mul:
        return ["*", *(_written(part) for part in node.args)]
    if isinstance(node, sympy.exp):
        return ["exp", _written(sympy.expand(node.args[0]))]
    if node.is_Pow and node.base == sympy.E:
        return ["exp", _written(sympy.expand(node.exp))]
    if node.is_Pow and node.exp == sympy.Rational(1, 2):
        return ["sqrt", _written(node.base)]
    if node.is_Pow and node.exp == sympy.Rational(-1, 2):
        return ["inverse", ["sqrt", _written(node.base)]]
    if node.is_Pow and node.exp.is_Integer:
        if node.exp < 0:
            return ["inverse", _written(node.base ** (-node.exp))]
        return ["*", *[_written(node.base)] * int(node.exp)]
    if isinstance(node, sympy.Abs):
        return _size(_written(node.args[0]))
    if isinstance(node, RELU):
        return ["relu", _written(node.args[0])]
    if isinstance(node, sympy.Max):
        return ["max", *(_written(part) for part in node.args)]
    raise NotSymbolic(f"{type(node).__name__}")


def _text(value: float) -> str:
    return str(Fraction(repr(float(value))))


# ---- the same enclosures for Coq, whose library coq-interval proves them ----


def coq_text(made: dict[str, Any]) -> str | None:
    """Return an enclosure as a Coq file, one lemma for each relation; None where there is noise."""
    lines = [
        "Require Import Reals Lra.",
        "From Interval Require Import Tactic.",
        "Open Scope R_scope.",
        "",
        f"(* {made['claim']}: {'; '.join(made['expects'])} *)".replace("(*)", "( * )"),
    ]
    count = 0
    for case in made["cases"]:
        names = "".join(f" {name}" for name in case["ranges"])
        head = f"forall{names} : R, " if names else ""
        for name, (low, high) in case["ranges"].items():
            head += f"{_coq(low)} <= {name} -> "
            head += "" if high is None else f"{name} <= {_coq(high)} -> "
        for operator, left, right in case["relations"]:
            try:
                said = f"{_coq(left)} - {_coq(right)} {operator} 0"
            except NotCertified:
                return None
            count += 1
            lines += ["", f"Lemma part_{count} : {head}{said}.", f"Proof. {_tactic(case)} Qed."]
    return "\n".join(lines) + "\n"


def _tactic(case: dict[str, Any]) -> str:
    bisected = [name for name, (_, high) in case["ranges"].items() if high is not None]
    options = f" with (i_bisect {bisected[0]}, i_depth 14)" if bisected else ""
    return f"intros. interval{options}."


def _coq(node: Any) -> str:
    if isinstance(node, str):
        value = Fraction(node)
        below = "" if value.denominator == 1 else f" / {value.denominator}"
        return f"({value.numerator}{below})"
    head, *rest = node
    if head == "var":
        return str(rest[0])
    parts = [_coq(part) for part in rest] if head not in ("P", "E", "std", "variance") else []
    if head in ("+", "*") and parts:
        return "(" + f" {head} ".join(parts) + ")"
    if head == "max" and len(parts) == 2:
        # max(x, y) = (x + y + |x - y|)/2, which the tactic knows
        x, y = parts
        return f"Rabs {x}" if y == f"((-1) * {x})" else f"(({x} + {y} + Rabs ({x} - {y})) / 2)"
    words = {"inverse": "/ {}", "exp": "exp {}", "sqrt": "sqrt {}", "square": "({} * {})"}
    if head in words and len(parts) == 1:
        return "(" + words[head].format(parts[0], parts[0]) + ")"
    raise NotCertified("a statistic in Coq")
