"""Proofs by algebra: permutations pushed through a formula, step by step.

Every expression is written as L · core · R with L and R products of permutations. The rules:

    (L a R)(R⁻¹ b S) = L (ab) S            a permutation times its inverse is the identity
    (L a R)ᵀ = Rᵀ aᵀ Lᵀ
    softmax(L a R) = L softmax(a) R         rows only change places, so do their entries
    relu(L a R) = L relu(a) R               and so for every function of single entries
    L 1 = 1,  1ᵀ R = 1ᵀ                     a column (a row) of ones stays itself
    L a R + L b R = L (a + b) R

If both sides of an equation end in the same form, it is proved for every size and every
matrix at once.

Algebra may speak only of formulas that surely have a value (`always_defined`).
`x/x` and `1` are the same expression in their letters, but x/x has no value at 0, and a statement
without a value is never true. Proofs in letters and by permutations see no numbers, so they hold
only for formulas that have a value for all of them. The rules are few and err on the safe side:
what they do not recognise may be undefined.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from heedful.claims.compile import Array, CompiledClaim, Domain, Interval, Values
from heedful.claims.functions import FUNCTIONS, Function, Sign
from heedful.claims.language import show
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
    walk,
)

# Where a formula has a value -----------------------------------------------------------------


def always_defined(compiled: CompiledClaim) -> bool:
    """Tell whether every formula of a claim surely has a value in every case."""
    return all(_defined(node, compiled) for tree in compiled.trees for node in walk(tree))


def _defined(node: Expression, compiled: CompiledClaim) -> bool:
    match node:
        case Binary("/", _, divisor):
            return sign_of(divisor, compiled) == "positive"
        case Binary("^", _, Number(value)) if value.denominator == 1 and value >= 0:
            return True
        case Binary("^", base, _):
            return sign_of(base, compiled) == "positive"
        case Call("ln" | "log", (argument,)):
            return sign_of(argument, compiled) == "positive"
        case Call("sqrt", (argument,)):
            return sign_of(argument, compiled) != "unknown"
        case Call("max" | "min", (_,)):
            return True  # over the entries of a vector, which has some
        case Call(function):
            return FUNCTIONS[function].total
    return True


def sign_of(node: Expression, compiled: CompiledClaim) -> Sign:
    """Return what is surely known about the sign of a value."""
    match node:
        case Number(value):
            return "positive" if value > 0 else "nonnegative" if value == 0 else "unknown"
        case Name(text):
            return _sign_of_name(text, compiled)
        case Binary("-", left, right):
            low, high = _least(left, compiled), _greatest(right, compiled)
            if low is None or high is None or low < high:
                return "unknown"
            return "positive" if low > high else "nonnegative"
        case Binary("+" | "*" | "/" as operator, left, right):
            return _joined(operator, sign_of(left, compiled), sign_of(right, compiled))
        case Binary("^", base, Number(value)):
            even = value.denominator == 1 and value.numerator % 2 == 0
            inside = sign_of(base, compiled)
            return "nonnegative" if even and inside == "unknown" else inside
        case Binary("^", base, _) if sign_of(base, compiled) == "positive":
            return "positive"
        case Call(function, arguments):
            return _sign_of_call(function, arguments, compiled)
    return "unknown"


def _least(node: Expression, compiled: CompiledClaim) -> float | None:
    """Return a number that a value surely does not fall below."""
    match node:
        case Number(value):
            return float(value)
        case Name("e" | "pi" as text):
            return math.e if text == "e" else math.pi
        case Name(text):
            domain = compiled.domains.get(text)
            if isinstance(domain, Values):
                return min(domain.numbers)
            return domain.low if isinstance(domain, Interval) else None
        case Binary("+" | "*" as operator, left, right):
            low, other = _least(left, compiled), _least(right, compiled)
            if low is None or other is None:
                return None
            if operator == "+":
                return low + other
            return low * other if min(low, other) >= 0 else None
    return 0.0 if sign_of(node, compiled) != "unknown" else None


def _greatest(node: Expression, compiled: CompiledClaim) -> float | None:
    match node:
        case Number(value):
            return float(value)
        case Name(text):
            domain = compiled.domains.get(text)
            if isinstance(domain, Values):
                return max(domain.numbers)
            return domain.high if isinstance(domain, Interval) else None
    return None


def _joined(operator: str, left: Sign, right: Sign) -> Sign:
    if "unknown" in (left, right):
        return "unknown"
    some, every = "positive" in (left, right), left == right == "positive"
    return "positive" if (some if operator == "+" else every) else "nonnegative"


def _sign_of_call(
    function: str, arguments: tuple[Expression, ...], compiled: CompiledClaim
) -> Sign:
    known = FUNCTIONS[function].value_sign
    if known != "unknown":
        # Behind a mask stands −∞, and exp(−∞) is 0.
        masked = any(
            isinstance(n, Call) and n.function == "causal" for a in arguments for n in walk(a)
        )
        return "nonnegative" if masked else known
    if function in ("sum", "prod", "sqrt", "max", "min", "mean") and arguments:
        inside = sign_of(arguments[0], compiled)
        # A sum over an index may be over nothing, and then it is 0.
        bound = len(arguments) > 1 and not isinstance(arguments[1], Name)
        return "nonnegative" if inside == "positive" and bound else inside
    return "unknown"


def _sign_of_name(text: str, compiled: CompiledClaim) -> Sign:
    if text in ("e", "pi"):
        return "positive"
    base = text.partition("_")[0]
    declared = {*compiled.domains, *compiled.definitions}
    if base.rstrip("0123456789") == "alpha" and not declared & {base, text}:
        # A weight is exp(…) over a sum of such.
        return "positive" if compiled.heads or compiled.sequence else "unknown"
    domain: Domain | None = compiled.domains.get(text)
    if text in ("n", "d") and domain is None:
        return "positive"
    low = None
    if isinstance(domain, Values):
        low, is_open = min(domain.numbers), False
    elif isinstance(domain, Interval):
        low, is_open = domain.low, domain.open_low
    if low is None or low < 0:
        return "unknown"
    return "positive" if low > 0 or is_open else "nonnegative"


def proved_by_sign(compiled: CompiledClaim) -> tuple[str, ...] | None:
    """Prove what follows from signs alone, such as α_i ≥ 0 and exp(x) > 0; None: it does not."""
    if compiled.given is not None or not always_defined(compiled):
        return None
    steps: list[str] = []
    for tree in compiled.expectations:
        body = tree.body if isinstance(tree, ForAll) else tree
        match body:
            case Compare(">=" | ">" as operator, larger, Number(value)) if value == 0:
                pass
            case Compare("<=" | "<" as operator, Number(value), larger) if value == 0:
                pass
            case _:
                return None
        sign = sign_of(larger, compiled)
        if sign == "unknown" or (operator in (">", "<") and sign != "positive"):
            return None
        steps += _sign_steps(larger)
        steps.append(f"so {show(larger, style='unicode')} is {SIGN_WORDS[sign]}")
    return tuple(dict.fromkeys(steps))


SIGN_WORDS = {"positive": "above 0", "nonnegative": "not below 0"}


def _sign_steps(node: Expression) -> list[str]:
    """Say why the parts of a value have the sign they have."""
    steps = []
    for part in walk(node):
        if isinstance(part, Name) and part.text.startswith("alpha"):
            steps.append("a weight is exp(k_i·q) divided by a sum of such numbers")
            steps.append("exp is above 0 everywhere, a sum of such numbers too, and their ratio")
        elif isinstance(part, Call) and FUNCTIONS[part.function].value_sign != "unknown":
            sign = SIGN_WORDS[FUNCTIONS[part.function].value_sign]
            steps.append(f"{part.function}(…) is {sign} whatever stands in it")
    return steps


# Permutations pushed through a formula -------------------------------------------------------

ONES = "a permutation leaves a column of ones as it is: P 1 = 1"

Permutation = tuple[str, bool]
"""A permutation matrix and whether it is transposed (which is its inverse)."""


@dataclass(frozen=True)
class Form:
    """L · core · R."""

    left: tuple[Permutation, ...]
    core: tuple[object, ...]
    right: tuple[Permutation, ...]
    loose: bool = False
    """Whether any permutation may be put on the left, as on a column of ones."""
    loose_right: bool = False
    """Whether any permutation may be put on the right, as on a row of ones."""


IDENTITY = Form((), ("1",), ())


class _Stuck(Exception):  # noqa: N818
    """No rule applies."""


def prove_identity(problem: CompiledClaim) -> tuple[str, ...] | None:
    """Return the derivation of an equation between matrices, or None if the rules do not do."""
    steps: list[str] = []
    try:
        for expectation in problem.expectations:
            steps += _Prover(problem).prove(expectation)
    except _Stuck:
        return None
    return tuple(steps)


class _Prover:
    def __init__(self, problem: CompiledClaim) -> None:
        self.steps: list[str] = []
        self.definitions = problem.definitions
        self.domains = problem.domains
        self.permutations = {
            name
            for name, domain in problem.domains.items()
            if isinstance(domain, Array) and domain.kind == "permutation"
        }

    def prove(self, node: Expression) -> list[str]:
        match node:
            case Logic("and", left, right):
                return [*self.prove(left), *self.prove(right)]
            case ForAll(_, _, body):
                return self.prove(body)
            case Compare("=" | "~", left, right):
                if not self.permutations:
                    raise _Stuck
                first, second = self._side(left), self._side(right)
                if not _same(first, second):
                    raise _Stuck
                return [
                    *self.steps,
                    f"both sides are {_show(first)}: {show(node, style='unicode')}",
                ]
        raise _Stuck

    def _side(self, node: Expression) -> Form:
        match node:
            case Call("eye", (_,)):
                return IDENTITY
        return self.form(node)

    def form(self, node: Expression) -> Form:
        """Push every permutation of an expression to its ends."""
        match node:
            case Name(text) if text in self.permutations:
                return Form(((text, False),), ("1",), ())
            case Name(text) if text in self.definitions:
                return self.form(self.definitions[text])
            case Number() | Name():
                return Form((), ("leaf", show(node)), ())
            case Unary("-", operand):
                inner = self.form(operand)
                return replace(inner, core=("neg", inner.core))
            case Unary("T", operand):
                return self._transposed(operand)
            case Binary("*", left, right):
                self._check_product(left, right)
                first, second = self.form(left), self.form(right)
                if "scalar" in (self._kind(left), self._kind(right)):
                    first, second = _scaled(first, second)
                return self._product(first, second, node)
            case Binary("/", left, right):
                inner, divisor = self.form(left), self.form(right)
                if divisor.left or divisor.right:
                    raise _Stuck
                return replace(inner, core=("/", inner.core, divisor.core))
            case Binary("+" | "-" as operator, left, right):
                return self._sum(operator, self.form(left), self.form(right))
            case Call(function, (argument,)) if FUNCTIONS[function].passing:
                return self._function(FUNCTIONS[function], self.form(argument))
            case Call("ones", (_,)):
                return Form((), ("leaf", show(node)), (), loose=True)
            case Call(function, arguments, None):
                parts = [self.form(argument) for argument in arguments]
                if any(part.left or part.right for part in parts):
                    raise _Stuck
                return Form((), ("call", function, *(part.core for part in parts)), ())
        raise _Stuck

    def _check_product(self, left: Expression, right: Expression) -> None:
        """Stop unless the product is that of matrices, which alone is associative.

        Two vectors side by side give their inner product: x (y z) is a multiple of x and (x y) z
        one of z.
        """
        kinds = self._kind(left), self._kind(right)
        if None in kinds or kinds == ("vector", "vector"):
            raise _Stuck

    def _kind(self, node: Expression) -> str | None:
        """Return whether an expression is a scalar, vector, row or matrix; None: not known."""
        match node:
            case Number():
                return "scalar"
            case Name(text) if text in self.definitions:
                return self._kind(self.definitions[text])
            case Name(text) if text in self.domains:
                domain = self.domains[text]
                if not isinstance(domain, Array):
                    return "scalar"
                axes = 2 if domain.kind == "permutation" else len(domain.shape)
                return ("scalar", "vector", "matrix")[axes]
            case Unary("-", operand):
                return self._kind(operand)
            case Unary("T", operand):
                kind = self._kind(operand)
                return {"vector": "row", "row": "vector"}.get(kind, kind) if kind else None
            case Binary("*", left, right):
                return _product_kind(self._kind(left), self._kind(right))
            case Binary("+" | "-", left, right):
                kinds = {self._kind(left), self._kind(right)} - {"scalar"}
                return None if None in kinds or len(kinds) > 1 else next(iter(kinds), "scalar")
            case Binary("/" | "^", left, _):
                return self._kind(left)
            case Call(function, (argument,)) if FUNCTIONS[function].passing:
                return self._kind(argument)
            case Call("ones" | "zeros", arguments):
                return "vector" if len(arguments) == 1 else "matrix"
            case Call("eye" | "causal" | "selfattention"):
                return "matrix"
            case Call("sqrt" | "exp" | "abs", (argument,)):
                return self._kind(argument)
        return None

    def _transposed(self, operand: Expression) -> Form:
        inner = self.form(operand)
        core: tuple[object, ...] = inner.core if inner.core == ("1",) else ("T", inner.core)
        if inner.core[:1] == ("T",):
            core = inner.core[1]  # type: ignore[assignment]
        if inner.core[:1] == ("*",):
            # (ab)ᵀ = bᵀaᵀ, so that products are flat and can be told equal.
            factors = [
                part[1] if part[:1] == ("T",) else ("T", part)  # type: ignore[index]
                for part in reversed(inner.core[1:])
            ]
            core = ("*", *factors)
        return Form(
            _inverse(inner.right), core, _inverse(inner.left), inner.loose_right, inner.loose
        )

    def _product(self, first: Form, second: Form, node: Expression) -> Form:
        if first.core == ("1",):
            # A bare product of permutations: it simply joins the left end of what follows.
            if second.loose:
                self._say(ONES)
                return second
            left = _cancel((*first.left, *first.right, *second.left))
            return replace(second, left=left)
        if second.core == ("1",):
            if first.loose_right:
                self._say(ONES)
                return first
            return replace(first, right=_cancel((*first.right, *second.left, *second.right)))
        middle = _cancel((*first.right, *second.left))
        if middle and (first.loose_right or second.loose):
            self._say(ONES)
        elif middle:
            raise _Stuck
        elif first.right or second.left:
            self._say(f"in {show(node, style='unicode')} a permutation meets its inverse")
        core = _flat_product(first.core, second.core)
        return Form(first.left, core, second.right, first.loose, second.loose_right)

    def _sum(self, operator: str, first: Form, second: Form) -> Form:
        if first.loose != second.loose:
            self._say(ONES)
        if first.loose:
            first = replace(first, left=second.left)
        if second.loose:
            second = replace(second, left=first.left)
        if first.loose_right:
            first = replace(first, right=second.right)
        if second.loose_right:
            second = replace(second, right=first.right)
        if first.left != second.left or first.right != second.right:
            raise _Stuck
        return Form(
            first.left,
            (operator, first.core, second.core),
            first.right,
            first.loose and second.loose,
            first.loose_right and second.loose_right,
        )

    def _function(self, function: Function, inner: Form) -> Form:
        if function.passing == "whole rows" and (inner.right or inner.loose_right):
            raise _Stuck
        if (inner.left or inner.right) and inner.core != ("1",):
            kind = "entries" if function.passing == "entries" else "rows"
            step = f"{function.name} acts on {kind} alone, so the permutation passes through it"
            self._say(step)
        return replace(inner, core=(function.name, inner.core))

    def _say(self, step: str) -> None:
        if step not in self.steps:
            self.steps.append(step)


def _scaled(first: Form, second: Form) -> tuple[Form, Form]:
    """Write a multiple of a bare permutation P as P (r 1): a number is no matrix between two.

    Otherwise exp(r P) would be taken for exp(r) P, although exp turns zeros into ones.
    """
    number, bare = (first, second) if second.core == ("1",) else (second, first)
    if bare.core != ("1",) or number.core == ("1",):
        return first, second
    return Form((*bare.left, *bare.right), ("1",), ()), Form((), ("multiple", number.core), ())


def _product_kind(left: str | None, right: str | None) -> str | None:
    if left == "scalar" or right == "scalar":
        return right if left == "scalar" else left
    products = {
        ("vector", "row"): "matrix",
        ("row", "vector"): "scalar",
        ("matrix", "vector"): "vector",
        ("row", "matrix"): "row",
        ("matrix", "matrix"): "matrix",
    }
    return products.get((left or "", right or ""))


def _flat_product(first: tuple[object, ...], second: tuple[object, ...]) -> tuple[object, ...]:
    left = first[1:] if first[:1] == ("*",) else (first,)
    right = second[1:] if second[:1] == ("*",) else (second,)
    return ("*", *left, *right)


def _inverse(chain: tuple[Permutation, ...]) -> tuple[Permutation, ...]:
    return tuple((name, not turned) for name, turned in reversed(chain))


def _cancel(chain: tuple[Permutation, ...]) -> tuple[Permutation, ...]:
    kept: list[Permutation] = []
    for name, turned in chain:
        if kept and kept[-1] == (name, not turned):
            kept.pop()
        else:
            kept.append((name, turned))
    return tuple(kept)


def _same(first: Form, second: Form) -> bool:
    left = (first.loose and second.loose) or first.left == second.left
    right = (first.loose_right and second.loose_right) or first.right == second.right
    return left and right and first.core == second.core


def _show(form: Form) -> str:
    left = "".join(f"{name}ᵀ " if turned else f"{name} " for name, turned in form.left)
    right = "".join(f" {name}ᵀ" if turned else f" {name}" for name, turned in form.right)
    return f"{left}(…){right}".strip()
