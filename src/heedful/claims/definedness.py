"""Where a formula surely has a value: the condition under which algebra may speak of it.

`x/x` and `1` are the same expression in their letters, but x/x has no value at 0, and a statement
without a value is never true. Proofs in letters and by permutations see no numbers, so they hold
only for formulas that have a value for all of them. The rules are few and err on the safe side:
what they do not recognise may be undefined.
"""

from __future__ import annotations

import math

from heedful.claims.compile import CompiledClaim
from heedful.claims.functions import FUNCTIONS, Sign
from heedful.claims.language import show
from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Expression,
    ForAll,
    Name,
    Number,
    walk,
)
from heedful.claims.symbols import Domain, Interval, Values


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
