"""Claims composed at random: facts of known truth in contexts that keep it, and a grammar.

A *fact* is a relation whose truth is known because its extremes are: the least value of a bowl on
an interval, the smallest weight of a key, the variance of a noisy one. Its bound lies at the
extreme, or off it by as little as 1e-12, on the true or on the false side. A *context* changes how
the fact is written and not whether it holds: a term on both sides, an increasing function, a
definition, a condition, a shifted range. What comes out is a claim that nobody has seen, and whose
truth is still known. The *grammar* writes anything at all, and only attacks can tell.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from planted import FAMILIES, Fields

OFFSETS = [Fraction(x) for x in ("0", "0", "1e-12", "1e-9", "1e-6", "0.001", "0.1", "1")]
"""How far a bound lies from the extreme."""
REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
CONTRARY = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!=", "!=": "="}


@dataclass(frozen=True)
class Fact:
    """A relation with its ranges and its truth."""

    left: str
    operator: str
    right: str
    holds: bool
    where: Fields = field(default_factory=dict)
    fields: Fields = field(default_factory=dict)
    terms: tuple[str, ...] = ("1/3",)
    """Scalars that have a value in every case, to be added to both sides."""
    scalar: bool = True
    """Whether the sides are scalars."""
    plain: bool = True
    """Whether it can be compared, wrapped and abbreviated: nothing is random, nothing large."""


KERNELS: list[Callable[[random.Random], Fact]] = []


def kernel(make: Callable[[random.Random], Fact]) -> Callable[[random.Random], Fact]:
    """Add a kind of fact."""
    KERNELS.append(make)
    return make


def text_of(x: Fraction) -> str:
    """Return a number as one would type it, exactly."""
    scaled, places = x, 0
    while scaled.denominator != 1 and places < 15:
        scaled, places = scaled * 10, places + 1
    if scaled.denominator != 1:
        return f"({x.numerator}/{x.denominator})"
    digits = str(abs(scaled.numerator)).rjust(places + 1, "0")
    whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
    return ("-" if x < 0 else "") + whole + (f".{part}" if part else "")


def number(rng: random.Random, low: int = -8, high: int = 8) -> Fraction:
    """Return a whole number, a half, a decimal or a fraction."""
    return Fraction(rng.randint(low * 60, high * 60), rng.choice([60, 60, 30, 20, 10, 7]))


def bounded(
    rng: random.Random, least: Fraction, attained: bool, offsets: list[Fraction] = OFFSETS
) -> tuple[str, Fraction, bool]:
    """Return a lower bound at a least value or off it: relation, number, and whether it holds."""
    operator, off = rng.choice([">=", ">"]), rng.choice(offsets)
    if rng.random() < 0.5:
        off = -off
    bound = least + off
    holds = off < 0 or (off == 0 and (operator == ">=" or not attained))
    return operator, bound, holds


@dataclass(frozen=True)
class Span:
    """An interval of the reals with rational ends."""

    low: Fraction
    high: Fraction
    open_low: bool
    open_high: bool

    @classmethod
    def of(cls, rng: random.Random, low: int = -9, high: int = 9) -> Span:
        """Return a random one whose ends have a short decimal form."""
        ends = sorted(rng.sample(range(low * 10, high * 10 + 1), 2))
        if rng.random() < 0.6:
            ends = [10 * round(end / 10) for end in ends]
        if ends[0] == ends[1]:
            ends[1] += 10
        first, second = (Fraction(end, 10) for end in ends)
        return cls(first, second, rng.random() < 0.3, rng.random() < 0.3)

    def written(self, shift: Fraction = Fraction(0)) -> str:
        """Return it as a sheet has it."""
        ends = ", ".join(text_of(end + shift) for end in (self.low, self.high))
        return f"{'(' if self.open_low else '['}{ends}{')' if self.open_high else ']'}"

    def nearest(self, point: Fraction) -> tuple[Fraction, bool]:
        """Return the point of the closed interval nearest to one, and whether it belongs to it."""
        best = min(max(point, self.low), self.high)
        missing = (best == self.low and self.open_low) or (best == self.high and self.open_high)
        return best, not missing


def bowl(rng: random.Random, symbol: str, at: Callable[[Fraction], tuple[Fraction, bool]]) -> Any:
    """Return a formula with its least value over a range, and whether it is attained."""
    a, p, c = abs(number(rng, 1, 4)), number(rng), number(rng, -3, 3)
    best, attained = at(p)
    a_, p_, c_ = (text_of(x) for x in (a, p, c))
    away = abs(best - p)
    square = [
        f"{a_} ({symbol} - {p_})^2 + {c_}",
        f"{a_} * ({p_} - {symbol}) * ({p_} - {symbol}) + {c_}",
        f"{a_} {symbol}^2 - {text_of(2 * a * p)} {symbol} + {text_of(a * p * p + c)}",
        f"{a_} abs({symbol} - {p_})^2 + {c_}",
    ]
    corner = [
        f"{a_} abs({symbol} - {p_}) + {c_}",
        f"{a_} max({symbol} - {p_}, {p_} - {symbol}) + {c_}",
        f"{a_} sqrt(({symbol} - {p_})^2) + {c_}",
        f"{a_} (relu({symbol} - {p_}) + relu({p_} - {symbol})) + {c_}",
        f"{a_} norm(concat({symbol} - {p_}, 0)) + {c_}",
    ]
    chosen = rng.choice(square + corner)
    return chosen, (a * away * away if chosen in square else a * away) + c, attained


@kernel
def bowl_on_an_interval(rng: random.Random) -> Fact:
    span = Span.of(rng)
    formula, least, attained = bowl(rng, "r", span.nearest)
    operator, bound, holds = bounded(rng, least, attained)
    return Fact(formula, operator, text_of(bound), holds, {"r": span.written()}, terms=("r", "1/3"))


@kernel
def bowl_on_whole_numbers(rng: random.Random) -> Fact:
    low = rng.randint(-5, 6)
    high = low + rng.choice([1, 4, 9, 30])

    def nearest(point: Fraction) -> tuple[Fraction, bool]:
        return Fraction(min(range(low, high + 1), key=lambda m: abs(m - point))), True

    formula, least, attained = bowl(rng, "m", nearest)
    operator, bound, holds = bounded(rng, least, attained)
    listed = rng.random() < 0.3 and high - low < 20
    spec = list(range(low, high + 1)) if listed else f"{low}..{high}"
    return Fact(formula, operator, text_of(bound), holds, {"m": spec}, terms=("m", "2"))


@kernel
def bowls_of_two(rng: random.Random) -> Fact:
    spans = Span.of(rng), Span.of(rng)
    first, least, attained = bowl(rng, "r", spans[0].nearest)
    second, other, also = bowl(rng, "s", spans[1].nearest)
    operator, bound, holds = bounded(rng, least + other, attained and also, OFFSETS[4:])
    where = {"r": spans[0].written(), "s": spans[1].written()}
    text = f"({first}) + ({second})"
    return Fact(text, operator, text_of(bound), holds, where, terms=("r", "s"))


@kernel
def bowl_of_any_number(rng: random.Random) -> Fact:
    formula, least, _ = bowl(rng, "u", lambda point: (point, True))
    operator, bound, holds = bounded(rng, least, True)
    return Fact(formula, operator, text_of(bound), holds, {"u": "any"}, terms=("u", "1"))


@kernel
def product_of_two_roots(rng: random.Random) -> Fact:
    span, p, q = Span.of(rng), number(rng), number(rng)
    best, attained = span.nearest((p + q) / 2)
    operator, bound, holds = bounded(rng, (best - p) * (best - q), attained)
    text = f"(r - {text_of(p)}) (r - {text_of(q)})"
    return Fact(text, operator, text_of(bound), holds, {"r": span.written()}, terms=("r",))


@kernel
def sum_with_a_reciprocal(rng: random.Random) -> Fact:
    span, q = Span.of(rng, 0, 9), abs(number(rng, 1, 4))
    if span.low == 0:
        span = replace(span, open_low=rng.random() < 0.7)
    best, attained = span.nearest(q)
    least = best + q * q / best
    operator, bound, holds = bounded(rng, least, attained)
    if span.low == 0 and not span.open_low:
        holds = False  # at 0 it has no value
    text = f"r + {text_of(q * q)}/r"
    return Fact(text, operator, text_of(bound), holds, {"r": span.written()}, terms=("r",))


@kernel
def increasing(rng: random.Random) -> Fact:
    span = Span.of(rng)
    low = span.low
    text, least = rng.choice(
        [("r^3", low**3), ("r^3 + 2 r", low**3 + 2 * low), ("r abs(r)", low * abs(low))]
    )
    operator, bound, holds = bounded(rng, least, not span.open_low)
    return Fact(text, operator, text_of(bound), holds, {"r": span.written()}, terms=("r",))


@kernel
def bounded_functions(rng: random.Random) -> Fact:
    text, top, attained = rng.choice(
        [
            ("2 u/(1 + u^2)", 1, True),
            ("tanh(u)", 1, False),
            ("sigmoid(u)", 1, False),
            ("exp(-(u^2))", 1, True),
            ("cos(u)", 1, True),
            ("sin(u)^2", 1, True),
            ("u^2/(1 + u^2)", 1, False),
            ("1/(1 + abs(u))", 1, True),
            ("u/(1 + abs(u))", 1, False),
            ("sin(u) cos(u) * 2", 1, True),
            ("sign(u)", 1, True),
            ("u - floor(u)", 1, False),
            ("Phi(u)", 1, False),
        ]
    )
    operator, bound, holds = bounded(rng, Fraction(-top), attained)
    return Fact(f"-({text})", operator, text_of(bound), holds, {"u": "any"}, terms=("2",))


@kernel
def identities_of_numbers(rng: random.Random) -> Fact:
    p = f"({text_of(number(rng))})"
    left, right = rng.choice(
        [
            (f"(u + {p})^2", f"u^2 + 2 * {p} u + {p}^2"),
            (f"(u - {p}) (u + {p})", f"u^2 - {p}^2"),
            ("sin(u)^2 + cos(u)^2", "1"),
            ("exp(u) exp(-u)", "1"),
            ("tanh(u)", "2 sigmoid(2 u) - 1"),
            ("relu(u) - relu(-u)", "u"),
            ("abs(u)", "relu(u) + relu(-u)"),
            ("abs(u) sign(u)", "u"),
            ("max(u, w) + min(u, w)", "u + w"),
            ("max(u, w)", "(u + w + abs(u - w))/2"),
            ("exp(u + w)", "exp(u) exp(w)"),
            ("ln(exp(u))", "u"),
            ("sigmoid(u) + sigmoid(-u)", "1"),
            ("floor(u + 3)", "floor(u) + 3"),
            ("logsumexp(concat(u, w))", "u + ln(1 + exp(w - u))"),
            ("norm(concat(3 u, 4 u))", "5 abs(u)"),
            (f"sum({p} u, l < 4)", f"4 * {p} u"),
        ]
    )
    off = rng.choice(OFFSETS)
    where = {name: "any" for name in "uw" if name in f"{left} {right}"}
    fact = Fact(left, rng.choice(["=", "<=", ">="]), f"{right} + {text_of(off)}", True, where)
    return replace(fact, holds=off == 0 or fact.operator == "<=", terms=("u", "1"))


def weight(n: int, beta: Fraction, offset: Fraction = Fraction(0)) -> str:
    """Return 1/(1 + (n − 1) exp(−β)), the weight of one of n perpendicular keys, plus an offset."""
    with localcontext() as context:
        context.prec = 40
        exponent = (Decimal(-beta.numerator) / Decimal(beta.denominator)).exp()
        value = 1 / (1 + (n - 1) * exponent) + Decimal(offset.numerator) / offset.denominator
        return f"{value:.25f}"


@kernel
def weight_over_a_range(rng: random.Random) -> Fact:
    span, n = Span.of(rng, -3, 9), rng.choice([2, 3, 5, 10])
    off = rng.choice(OFFSETS[2:]) * rng.choice([1, -1])
    operator = rng.choice([">=", ">"])
    where = {"n": n, "r": span.written()}
    fields = {"keys": "orthonormal", "query": "r k_a"}
    right = weight(n, span.low, off)
    terms = ("r", "alpha_b", "sum(alpha_i^2, i)")
    return Fact("alpha_a", operator, right, off < 0, where, fields, terms)


@kernel
def weight_for_many_keys(rng: random.Random) -> Fact:
    """It holds up to a size and fails for larger ones, which may or may not be listed."""
    beta, last, turn = (
        Fraction(rng.randint(10, 70), 10),
        rng.choice([4, 8, 20, 40]),
        rng.randint(2, 44),
    )
    spec: Any = rng.choice([f"2..{last}", [2, 3, last]])
    with localcontext() as context:
        context.prec = 30
        bound = (Decimal(weight(turn, beta)) + Decimal(weight(turn + 1, beta))) / 2
    fields = {"keys": "orthonormal", "query": f"{text_of(beta)} k_a"}
    text = f"{bound:.20f}"
    return Fact("alpha_a", ">=", text, last <= turn, {"n": spec}, fields, ("alpha_b", "1/n"))


@kernel
def sums_over_keys(rng: random.Random) -> Fact:
    """For r = 0 all weights are alike, where these are tight."""
    n, with_zero = rng.choice([2, 3, 4]), rng.random() < 0.5
    span = Span.of(rng, 0, 5)
    span = replace(span, low=Fraction(0) if with_zero else max(span.low, Fraction(1, 2)))
    if span.high <= span.low:
        span = replace(span, high=span.low + 2)
    attained = with_zero and not span.open_low
    text, tight = rng.choice(
        [
            (f"{n} sum(alpha_i^2, i)", True),
            (f"{n} max(alpha_i, i)", True),
            (f"-{n} min(alpha_i, i) + 2", True),
            ("sum(alpha_i, i)", None),
            ("mass(a, b) + sum(alpha_i, i != a, b)", None),
            (f"1 + ln({n}) - entropy(alpha)", True),
            (f"{n} * alpha_a", True),
            ("1 + alpha_a - alpha_b", True),
            (f"sum(alpha_i, i where i >= 1) * {n} prod(1, l < 3) / {n}", None),
        ]
    )
    fields = {"keys": "orthonormal", "query": "r k_a"}
    where = {"n": n, "r": span.written()}
    if tight is None:
        off = rng.choice(OFFSETS)
        operator = rng.choice(["=", ">=", "<="])
        holds = off == 0 or operator == ">="
        return Fact(text, operator, text_of(1 - off), holds, where, fields, ("alpha_a",))
    if attained:
        operator, bound, holds = bounded(rng, Fraction(1), True)
    else:
        operator, bound, holds = rng.choice([">", ">="]), Fraction(1), True
    return Fact(text, operator, text_of(bound), holds, where, fields, ("alpha_a", "r"))


@kernel
def two_heads(rng: random.Random) -> Fact:
    n, beta = rng.choice([2, 3, 5]), Fraction(rng.randint(10, 60), 10)
    heads = (f"{text_of(beta)} k_a", f"{text_of(beta)} k_b")
    off = rng.choice(OFFSETS[2:]) * rng.choice([1, -1])
    with localcontext() as context:
        context.prec = 40
        low = (1 - Decimal(weight(n, beta))) / (n - 1)
        value = (Decimal(weight(n, beta)) + low) / 2 + Decimal(off.numerator) / off.denominator
        right = f"{value:.22f}"
    text = rng.choice(["alpha_a", "alpha_b", "(alpha1_a + alpha2_a)/2", "mass(a, b)/2"])
    fields = {"keys": "orthonormal", "heads": heads}
    return Fact(text, ">=", right, off < 0, {"n": n}, fields, ("alpha_a", "alpha1_b"))


@kernel
def given_keys_and_values(rng: random.Random) -> Fact:
    """An output lies between the values; letters mean every choice of keys."""
    count = rng.choice([2, 3])
    keys = [[rng.randint(-3, 3), rng.randint(-3, 3)] for _ in range(count)]
    values = [[rng.randint(-4, 4), rng.randint(-4, 4)] for _ in range(count)]
    least = Fraction(min(row[0] for row in values))
    attained = all(row[0] == values[0][0] for row in values)
    operator, bound, holds = bounded(rng, least, attained, OFFSETS[:1] * 3 + OFFSETS[5:])
    if bound > least and not attained:
        # The output is above its least value by an amount nobody has computed.
        bound, holds = Fraction(max(row[0] for row in values)), False
    if operator == ">=" and bound == least and not attained:
        operator = ">"
    query = f"{rng.randint(1, 3)} k_a - {rng.randint(0, 2)} k_2"
    fields = {"keys": keys, "values": values, "query": query}
    return Fact("c[1]", operator, text_of(bound), holds, {}, fields, ("alpha_1", "k_a^T q"))


@kernel
def vectors(rng: random.Random) -> Fact:
    d = rng.choice([1, 4, 9])
    root = {1: 1, 4: 2, 9: 3}[d]
    left, right, least = rng.choice(
        [
            ("x^T y", "norm(x) norm(y)", 1),
            ("norm(x + y)^2", "(norm(x)^2 + norm(y)^2)", 2),
            ("max(x)", "norm(x)", 1),
            ("sum(abs(x_i), i)", "norm(x)", root),
            ("norm(x)", "sum(abs(x_i), i)", 1),
            ("norm(x, 1)", "norm(x)", root),
            ("abs(sum(x))", "norm(x)", root),
            ("norm(x - y)", "(norm(x) + norm(y))", 1),
            ("norm(x)^2", f"max(abs(x_i), i)^2 * {d}", 1),
            ("2 x^T y", "(x^T x + y^T y)", 1),
        ]
    )
    off = rng.choice([Fraction(0), Fraction(1, 1000), Fraction(1, 20), Fraction(1, 2)])
    factor = Fraction(least) + off * rng.choice([1, -1])
    where = {name: f"vector {d}" for name in "xy" if name in f"{left} {right}"}
    text = f"{text_of(factor)} {right}"
    return Fact(left, "<=", text, factor >= least, where, terms=("x_1", "norm(x)"))


@kernel
def kinds_of_vectors(rng: random.Random) -> Fact:
    d = rng.choice([2, 3, 4])
    spec, text, least, attained = rng.choice(
        [
            (f"unit vector {d}", "norm(x)", 1, True),
            (f"unit vector {d}", "-(x^T x)", -1, True),
            (f"unit vector {d}", "1 - max(x)", 0, True),
            (f"distribution {d}", "sum(x)", 1, True),
            (f"distribution {d}", "min(x)", 0, True),
            (f"distribution {d}", "entropy(x)", 0, True),
            (f"distribution {d}", "1 - max(x)", 0, True),
            (f"distribution {d}", f"{d} max(x)", 1, True),
        ]
    )
    offsets = [Fraction(0), *OFFSETS[5:]]
    operator, bound, holds = bounded(rng, Fraction(least), attained, offsets)
    return Fact(text, operator, text_of(bound), holds, {"x": spec}, terms=("x_1",))


@kernel
def matrices(rng: random.Random) -> Fact:
    left, right, holds, scalar = rng.choice(
        [
            ("trace(A B)", "trace(B A)", True, True),
            ("trace(A B)", "trace(A) trace(B)", False, True),
            ("det(A B)", "det(A) det(B)", True, True),
            ("det(A + B)", "det(A) + det(B)", False, True),
            ("(A B)^T", "B^T A^T", True, False),
            ("(A B)^T", "A^T B^T", False, False),
            ("x^T A y", "y^T A^T x", True, True),
            ("x^T A y", "y^T A x", False, True),
            ("A (x + y)", "A x + A y", True, False),
            ("norm(A + B)^2 + norm(A - B)^2", "2 norm(A)^2 + 2 norm(B)^2", True, True),
            ("sum(softmax(x))", "1", True, True),
            ("softmax(x + 3)", "softmax(x)", True, False),
            ("softmax(2 x)", "softmax(x)", False, False),
            ("P^T P", "eye(T)", True, False),
            ("P (A + B)", "P A + P B", True, False),
            ("P A B", "A P B", False, False),
            ("softmax(P A P^T)", "P softmax(A) P^T", True, False),
            ("softmax(P A P^T) P B", "P softmax(A) B", True, False),
            ("relu(P A) B", "P relu(A) B", True, False),
            ("max(P x)", "max(x)", True, True),
            ("sum(x_i y_i, i)", "x^T y", True, True),
            ("sum(sum(A[i, j], i), j)", "ones(T)^T A ones(T)", True, True),
            ("outer(x, y) y", "norm(y)^2 x", True, False),
            ("trace(outer(x, y))", "dot(x, y)", True, True),
            ("hadamard(x, y)", "hadamard(y, x)", True, False),
            ("diag(x) y", "hadamard(x, y)", True, False),
            ("rank(outer(x, y))", "1", False, True),
        ]
    )
    used = f"{left} {right}"
    kinds = {"A": "matrix T x T", "B": "matrix T x T", "P": "permutation T"}
    where: Fields = {"T": rng.choice([2, 3, [2, 3]])}
    where |= {name: spec for name, spec in kinds.items() if re.search(rf"\b{name}\b", used)}
    where |= {name: "vector T" for name in "xy" if re.search(rf"\b{name}\b", used)}
    return Fact(left, "=", right, holds, where, terms=("T", "1"), scalar=scalar)


def tail(level: Fraction) -> Fraction:
    """Return P(z ≥ level) of a standard normal z to twelve digits."""
    from flint import arb, ctx

    with ctx.workprec(100):
        chance = (arb(level.numerator) / level.denominator / arb(2).sqrt()).erfc() / 2
        return Fraction(round(Fraction(str(chance.mid().str(30, radius=False))) * 10**12), 10**12)


@kernel
def noise_along_a_key(rng: random.Random) -> Fact:
    """One noisy direction: k_a·μ_a is normal with mean 1 and a variance that is a square."""
    spread, s, c = abs(number(rng, 1, 2)) / 2, number(rng, 1, 3), number(rng, -2, 2)
    level = number(rng, -2, 2)
    at = text_of(1 + level * spread)
    fine, coarse = OFFSETS[5:], [Fraction(x) for x in ("1e-5", "0.001", "0.05")]
    text, value, offsets = rng.choice(
        [
            (f"E({text_of(s)} k_a^T mu_a + {text_of(c)})", s + c, fine),
            (f"var({text_of(s)} k_a^T mu_a + {text_of(c)})", (s * spread) ** 2, fine),
            (f"std({text_of(s)} k_a^T mu_a)", abs(s) * spread, fine),
            ("E((k_a^T mu_a)^2)", 1 + spread**2, fine),
            (f"P(k_a^T mu_a >= {at})", tail(level), coarse),
            (f"1 - P(k_a^T mu_a < {at})", tail(level), coarse),
            (f"P(k_a^T mu_a >= {at} given k_a^T mu_a >= 1)",
             min(Fraction(1), 2 * tail(level)), coarse),
            ("E(alpha_a + alpha_b)", Fraction(1), fine),
            ("E(k_b^T mu_b)", Fraction(1), fine),
        ]
    )  # fmt: skip
    off = rng.choice(offsets) * rng.choice([1, -1])
    fields = {
        "keys": "gaussian",
        "covariance": {"a": f"{text_of(spread**2)} mu_a mu_a^T"},
        "query": f"{rng.randint(1, 4)} mu_a",
    }
    right = text_of(value + off)
    return Fact(text, ">=", right, off < 0, {"n": 2}, fields, ("1/2",), plain=False)


@kernel
def noise_in_all_directions(rng: random.Random) -> Fact:
    spread, n = abs(number(rng, 1, 2)) / 2, rng.choice([2, 3])
    text, value = rng.choice(
        [
            ("E(k_a^T mu_b)", Fraction(0)),
            ("var(k_a^T mu_b)", spread**2),
            ("var(k_a)", n * spread**2),
            ("P(k_a^T mu_a > 1)", Fraction(1, 2)),
            ("E(norm(k_a - mu_a)^2)", n * spread**2),
            ("cov(k_a^T mu_a, k_b^T mu_a)", Fraction(0)),
            ("E(sum(alpha_i, i))", Fraction(1)),
        ]
    )
    off = rng.choice([Fraction(1, 20), Fraction(1, 2), Fraction(2)]) * rng.choice([1, -1])
    off *= max(spread**2, Fraction(1, 4))
    fields = {
        "keys": "gaussian",
        "covariance": {"a": f"{text_of(spread**2)} I"},
        "query": f"{rng.randint(1, 3)} mu_a",
        "draws": 2000,
    }
    right = text_of(value + off)
    return Fact(text, ">=", right, off < 0, {"n": n}, fields, ("1/2",), plain=False)


@kernel
def normal_symbols(rng: random.Random) -> Fact:
    s, c = number(rng, 1, 3), number(rng, -2, 2)
    s_, c_ = text_of(s), text_of(c)
    text, value = rng.choice(
        [
            (f"E({s_} z + {c_})", c),
            (f"var({s_} z + {c_})", s * s),
            (f"E(({s_} z)^2)", s * s),
            (f"P({s_} z + {c_} >= {c_})", Fraction(1, 2)),
            (f"E(z^4) * {s_}", 3 * s),
            ("P(z >= 0 given z >= 0)", Fraction(1)),
            (f"P(abs(z) >= 2) + {c_}", 2 * tail(Fraction(2)) + c),
        ]
    )
    off = rng.choice([Fraction(1, 1000), Fraction(1, 20), Fraction(1)]) * rng.choice([1, -1])
    right = text_of(value + off)
    return Fact(text, ">=", right, off < 0, {"z": "normal"}, {}, ("1/2",), plain=False)


@kernel
def large_symbols(rng: random.Random) -> Fact:
    """What eventually wins: the higher power, the exponential, the weight of the longer key."""
    first, second = rng.sample([0, 1, 2, 3], 2)
    a, b = (abs(number(rng, 1, 8)) * rng.choice([1, 1000, 10**6]) for _ in "ab")
    power = f"{text_of(a)} beta^{first}", f"{text_of(b)} beta^{second}"
    level = rng.choice(["0.9", "0.999", "0.5000001"])
    n = rng.choice([2, 3, 5])
    keys = {"keys": "orthonormal", "query": f"{text_of(a)} beta k_a"}
    left, operator, right, holds, fields = rng.choice(
        [
            (power[0], ">=", power[1], first > second, {}),
            (power[0], "<", power[1], first < second, {}),
            ("exp(-beta)", "<=", f"1/({power[0]})", True, {}),
            (f"1/({text_of(a)} beta)", "<=", "1e-12", True, {}),
            (f"1/({text_of(a)} beta)", ">=", "1e-12", False, {}),
            ("alpha_a", ">=", level, True, keys),
            ("alpha_b", ">=", "1e-30", False, keys),
            ("alpha_b", ">", "0", True, keys),
            ("alpha_a", "<=", level, False, keys),
            ("tanh(beta)", "<", "1", True, {}),
            ("beta - ln(beta)", ">=", text_of(b), True, {}),
        ]
    )
    where: Fields = {"beta": "large"} | ({"n": n} if fields else {})
    return Fact(left, operator, right, holds, where, fields, plain=False)


@kernel
def small_symbols(rng: random.Random) -> Fact:
    first, second = rng.sample([0, 1, 2, 3], 2)
    a, b = (abs(number(rng, 1, 8)) * rng.choice([1, 1000, 10**6]) for _ in "ab")
    left, right = f"{text_of(a)} epsilon^{first}", f"{text_of(b)} epsilon^{second}"
    operator = rng.choice(["<=", ">"])
    holds = (first > second) == (operator == "<=")
    return Fact(left, operator, right, holds, {"epsilon": "small"}, plain=False)


@kernel
def positions_and_rotations(rng: random.Random) -> Fact:
    width = rng.choice([2, 4, 6])
    fields = {"positions": {"width": width, "base": rng.choice([100, 10000])}}
    half = f"{width // 2}"
    s, t = rng.sample(range(40), 2)
    vector = "concat({})".format(", ".join(str(rng.randint(-3, 3)) for _ in range(width)))
    left, right = rng.choice(
        [
            (f"norm(phi({s}))^2", half),
            (f"phi({s})^T phi({t})", f"phi({s + 3})^T phi({t + 3})"),
            (f"norm(rotate({vector}, {s}))", f"norm({vector})"),
            (f"rotate({vector}, {s})^T rotate({vector}, {t})",
             f"rotate({vector}, {s + 5})^T rotate({vector}, {t + 5})"),
            ("norm(phi(0))^2", half),
        ]
    )  # fmt: skip
    off = rng.choice(OFFSETS)
    operator = rng.choice(["=", "<=", ">="])
    holds = off == 0 or operator == "<="
    return Fact(left, operator, f"{right} + {text_of(off)}", holds, {"T": 3}, fields)


@kernel
def pairs_of_positions(rng: random.Random) -> Fact:
    length, first, second = rng.choice([3, 6, 12]), rng.randint(0, 14), rng.randint(0, 14)
    text = f"min(min((s - {first})^2 + (t - {second})^2, s < T), t < T)"
    inside = first < length and second < length
    return Fact(text, ">", "0", not inside, {"T": length}, terms=("T",))


@kernel
def masked_scores(rng: random.Random) -> Fact:
    size = rng.choice(["1", "7", "1e3", "1e10"])
    rows = [[rng.randint(-3, 3) for _ in range(3)] for _ in range(3)]
    scores = "stack({})".format(", ".join("concat({}, {}, {})".format(*row) for row in rows))
    fields = {"let": {"W": f"softmax({size} {scores} + causal(3))"}}
    i, j = rng.randint(1, 3), rng.randint(1, 3)
    hidden = j > i
    text, right = rng.choice([(f"W[{i}, {j}]", "0"), ("W[1, 1]", "1"), (f"sum(W[{i}, j], j)", "1")])
    operator = rng.choice(["=", ">", "<="])
    value = {"0": hidden, "1": True}[right]
    holds = value if operator == "=" else operator == "<=" if value else operator == ">"
    return Fact(text, operator, right, holds, {"T": 3}, fields, ("W[2, 1]",))


@kernel
def sequences_of_vectors(rng: random.Random) -> Fact:
    """Two perpendicular vectors of one length s: each reads itself with weight σ(s²)."""
    size = rng.choice([Fraction(1), Fraction(3, 2), Fraction(2)])
    s = text_of(size)
    off = rng.choice(OFFSETS[2:]) * rng.choice([1, -1])
    left = rng.choice(["alpha[1, 1]", "alpha[2, 2]", "sum(alpha[i, i], i)/2", "alpha_1[1]"])
    left = rng.choice([left, f"c_1[1] / {s}", "1 - alpha[1, 2]"])
    fields = {"sequence": (f"concat({s}, 0)", f"concat(0, {s})")}
    return Fact(left, ">=", weight(2, size * size, off), off < 0, {}, fields, ("alpha[1, 2]",))


@kernel
def own_definitions(rng: random.Random) -> Fact:
    """Parameters that bear the names of symbols, indices and other parameters."""
    names = rng.sample(["x", "y", "z", "i", "r"], 2)
    body = rng.choice(["sum({p}_j, j)", "{p}_1 + 2 {p}_2", "max({p}_j, j)", "norm({p})^2"])
    let = {f"f({names[0]})": body.format(p=names[0]), f"g({names[1]})": f"3 f({names[1]}) + 1"}
    factor = rng.choice([3, 3, 2, 4])
    where = {"x": "vector 2", "y": "vector 2"}
    left, right = rng.choice([("g(y)", f"{factor} f(y) + 1"), ("g(x) - 1", f"{factor} f(x)")])
    return Fact(left, "=", right, factor == 3, where, {"let": let}, ("x_1", "y_2"))


@kernel
def partial_functions(rng: random.Random) -> Fact:
    """Undefined at one point of the interval, or nowhere."""
    span, p = Span.of(rng), number(rng)
    best, attained = span.nearest(p)
    p_, inside = text_of(p), best == p and attained
    above = span.low > p or (span.low == p and span.open_low)
    from_ = span.low >= p
    left, right, holds = rng.choice(
        [
            (f"(r - {p_})/(r - {p_})", "1", not inside),
            (f"(r - {p_})^-1 (r - {p_})", "1", not inside),
            (f"exp(ln(r - {p_}))", f"r - {p_}", above),
            (f"sqrt(r - {p_})^2", f"r - {p_}", from_),
            (f"ln((r - {p_})^2) - 2 ln(abs(r - {p_}))", "0", not inside),
            (f"0/(r - {p_})", "0", not inside),
            (f"(r - {p_})^0", "1", True),
            (f"(r - {p_})^0.5 * (r - {p_})^0.5", f"r - {p_}", from_),
        ]
    )
    where = {"r": span.written()}
    return Fact(left, rng.choice(["=", ">="]), right, holds, where, terms=("r",))


@kernel
def exact_decimals(rng: random.Random) -> Fact:
    a, b = Fraction(rng.randint(1, 999), 10**3), Fraction(rng.randint(1, 999), 10**3)
    off = rng.choice([Fraction(0), Fraction(1, 10**12), Fraction(1, 10**20), Fraction(1, 10**40)])
    total = a + b
    spread = f"{off.numerator}/1e{len(str(off.denominator)) - 1}" if off else "0"
    left, right = rng.choice(
        [
            (f"{text_of(a)} + {text_of(b)}", f"{text_of(total)} + {spread}"),
            (f"{text_of(a)} * {text_of(b)}", f"{text_of(a * b)} + {spread}"),
            (f"floor({text_of(a)} + {text_of(1 - a)})", f"1 + {spread}"),
            (f"sign({text_of(a)} - {text_of(a)} + {spread})", "0"),
            (f"argmax(concat({text_of(a)}, {text_of(a)} + {spread}))", "1"),
            (f"rank(stack(concat(1, {text_of(a)}), concat(2, {text_of(2 * a)} + {spread})))", "1"),
        ]
    )
    operator = rng.choice(["=", ">="])
    larger = left.startswith(("sign", "argmax", "rank"))
    return Fact(left, operator, right, off == 0 or (operator == ">=" and larger))


# ---- contexts: the same fact, written differently ----

Context = Callable[[random.Random, Fact], Fact | None]
TRUE = ("1 < 2", "2 + 2 = 4", "0.1 + 0.2 = 0.3", "exp(0) = 1", "not (1 > 2)", "abs(-3) >= 3")
FALSE = ("1 > 2", "2 + 2 = 5", "exp(1) < 2", "0.1 + 0.2 != 0.3")


def added(rng: random.Random, fact: Fact) -> Fact | None:
    """Add one term to both sides."""
    if not fact.scalar:
        return None
    term = rng.choice([*fact.terms, *(f"sin({term})" for term in fact.terms)])
    return replace(fact, left=f"({fact.left}) + {term}", right=f"({fact.right}) + {term}")


def scaled(rng: random.Random, fact: Fact) -> Fact | None:
    """Multiply both sides by something above 0."""
    factor = rng.choice(["2", "1/3", "1000"])
    if fact.scalar and fact.plain:
        factor = rng.choice([factor, f"(1 + ({rng.choice(fact.terms)})^2)", "exp(-1)"])
    return replace(fact, left=f"{factor} ({fact.left})", right=f"{factor} ({fact.right})")


def mapped(rng: random.Random, fact: Fact) -> Fact | None:
    """Apply an increasing function to both sides."""
    if not (fact.scalar and fact.plain):
        return None
    form = rng.choice(["({})^3", "2 ({}) - 7", "({}) - 100", "sum({}, l < 1)", "({}) + 1e9"])
    return replace(fact, left=form.format(fact.left), right=form.format(fact.right))


def turned(rng: random.Random, fact: Fact) -> Fact | None:
    """Change the signs of both sides, and so the relation."""
    operator = REVERSED[fact.operator]
    return replace(fact, left=f"-({fact.left})", operator=operator, right=f"-({fact.right})")


def swapped(rng: random.Random, fact: Fact) -> Fact | None:
    """Write the right side on the left."""
    return replace(fact, left=fact.right, operator=REVERSED[fact.operator], right=fact.left)


def abbreviated(rng: random.Random, fact: Fact) -> Fact | None:
    """Give one side a name, or put it through a function that changes nothing."""
    if not fact.plain or "let" in fact.fields:
        return None
    if rng.random() < 0.5:
        return replace(fact, left="side", fields={**fact.fields, "let": {"side": fact.left}})
    parameter = rng.choice(["t", "r", "m", "x"])
    let = {f"same({parameter})": rng.choice(["{0}", "2 {0} - {0}", "-(-{0})"]).format(parameter)}
    return replace(fact, left=f"same({fact.left})", fields={**fact.fields, "let": let})


def shifted(rng: random.Random, fact: Fact) -> Fact | None:
    """Move the range of r, and r with it."""
    spec = str(fact.where.get("r", ""))
    found = re.fullmatch(r"([\[(])(\S+), (\S+)([\])])", spec)
    if found is None or {"let", "query", "given"} & set(fact.fields):
        return None
    by = Fraction(rng.randint(-50, 50), 10)
    low, high = (text_of(Fraction(end) + by) for end in (found[2], found[3]))
    inside = f"(r - {text_of(by)})"
    left, right = (re.sub(r"\br\b", inside, side) for side in (fact.left, fact.right))
    where = {**fact.where, "r": f"{found[1]}{low}, {high}{found[4]}"}
    return replace(fact, left=left, right=right, where=where)


def conditioned(rng: random.Random, fact: Fact) -> Fact | None:
    """Widen the range of r and take the rest away again by a condition."""
    found = re.fullmatch(r"([\[(])(\S+), (\S+)([\])])", str(fact.where.get("r", "")))
    if found is None or "given" in fact.fields:
        return None
    low, high = Fraction(found[2]), Fraction(found[3])
    where = {**fact.where, "r": f"[{text_of(low - 1)}, {text_of(high + 2)}]"}
    above, below = ">" if found[1] == "(" else ">=", "<" if found[4] == ")" else "<="
    given = f"r {above} {text_of(low)} and r {below} {text_of(high)}"
    return replace(fact, where=where, fields={**fact.fields, "given": given})


CONTEXTS: tuple[Context, ...] = (
    added, scaled, mapped, turned, swapped, abbreviated, shifted, conditioned,
)  # fmt: skip


def statement_of(rng: random.Random, fact: Fact) -> str:
    """Return a fact as a statement, perhaps beside one that decides nothing."""
    text = f"{fact.left} {fact.operator} {fact.right}"
    if rng.random() < 0.2:
        text = f"not ({fact.left} {CONTRARY[fact.operator]} {fact.right})"
    if rng.random() < 0.25:
        true, false = rng.choice(TRUE), rng.choice(FALSE)
        forms = [f"({text}) and {true}", f"({text}) or {false}", f"{true} implies ({text})"]
        forms += [f"not ({text}) implies {false}", f"({text}) and ({text})"]
        text = rng.choice(forms)
    if fact.plain and "keys" in fact.fields and rng.random() < 0.15:
        text = f"({fact.left}) + 0 alpha_i {fact.operator} {fact.right} for all i"
    return text


def composed(rng: random.Random) -> tuple[Fields, bool, str]:
    """Return a fact in up to four contexts, its truth, and what kind of fact it is."""
    make = rng.choice(KERNELS)
    fact = make(rng)
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4])):
        fact = rng.choice(CONTEXTS)(rng, fact) or fact
    fields: Fields = {**fact.fields, "expect": (statement_of(rng, fact),)}
    if fact.where:
        fields["where"] = fact.where
    return fields, fact.holds, make.__name__


# ---- claims that nobody knows the truth of ----

SCALARS = (
    *("r", "m", "1/2", "2", "-1", "0.1", "x_1", "norm(x)", "x^T y", "alpha_a", "alpha_b", "n"),
    *("max(alpha_i, i)", "sum(alpha_i^2, i)", "f(r)", "f(2 m)", "g(x)", "g(2 y)", "k_a^T q"),
    *("sum(alpha_i, i where i >= 1 and alpha_i >= 0.4)", "min(k_i^T q, i)", "mass(a, b)"),
    *("sum(x_i y_i, i)", "entropy(alpha)", "c^T c", "max(x)", "sum(x)", "norm(x, 1)", "w"),
)
WRAPS = (
    *("exp({})", "abs({})", "({})^2", "relu({})", "tanh({})", "sigmoid({})", "sqrt(abs({}))"),
    *("({}) + ({})", "({}) - ({})", "({}) * ({})", "({}) / (1 + abs({}))", "min({}, {})"),
    *("max({}, {})", "sin({})", "floor({})", "sign({})", "({}) / ({})", "sqrt({})", "ln({})"),
    *("norm(concat({}, {}))", "logsumexp(concat({}, {}))", "cos({})", "({})^3", "-({})"),
)
STATEMENTS = (
    *("{} {} {}",) * 8,
    *("alpha_i {1} {2} for all i", "({0}) + alpha_i {1} {2} for all i where k_i^T q >= 0"),
    *("{0} {1} ({2}) + k_i^T q for all i != a", "not ({0} {1} {2})", "{0} ~ {2} within 0.1"),
    *("{0} {1} ({2}) + s for all s < m",),
)
RELATIONS = ("<=", "<", ">=", ">", "!=", "=")
NOISY_SCALARS = ("E(alpha_a)", "var(k_a^T q)", "P(alpha_a > alpha_b)", "std(alpha_a)",
                 "E(k_a^T mu_a given alpha_a > 1/2)", "norm(E(c))", "1/2", "0.3", "1",
                 "P(k_a^T q >= 1 given k_a^T q >= 0)", "E(sum(alpha_i^2, i))", "n", "r",
                 "E(max(alpha_i, i))", "var(k_a)", "E(relu(k_a^T mu_b))")  # fmt: skip


def random_claim(rng: random.Random) -> tuple[Fields, None]:
    """Draw a claim from a grammar over numbers, vectors, weights, noise and own functions."""
    noisy = rng.random() < 0.04
    values = NOISY_SCALARS if noisy else SCALARS

    def value(depth: int) -> str:
        if depth == 0 or rng.random() < 0.25:
            return rng.choice(values)
        form = rng.choice(WRAPS)
        return form.format(*[value(depth - 1) for _ in range(form.count("{}"))])

    def statement(depth: int) -> str:
        form = STATEMENTS[0] if noisy else rng.choice(STATEMENTS)
        size = 1 if noisy else 2
        base = form.format(value(size), rng.choice(RELATIONS), value(size))
        if depth and rng.random() < 0.3:
            return f"({base}) {rng.choice(['and', 'or', 'implies'])} ({statement(depth - 1)})"
        return base

    text = statement(1)
    fields: Fields = {"expect": (text,)}
    if rng.random() < 0.2 and not noisy:
        fields["given"] = f"{value(1)} {rng.choice(RELATIONS[:4])} {value(0)}"
    setting = noisy_setting if noisy else plain_setting
    return {**setting(rng, f"{text} {fields.get('given', '')}"), **fields}, None


def noisy_setting(rng: random.Random, text: str) -> Fields:
    variance = rng.choice(["1/4", "1/2", "1"])
    covariance = rng.choice(["mu_a mu_a^T", "mu_a mu_a^T", "I"])
    fields: Fields = {
        "keys": "gaussian",
        "covariance": {"a": f"{variance} {covariance}"},
        "where": {"n": 2} | ({"r": [1, 2]} if re.search(r"\br\b", text) else {}),
        "draws": 2000,
        "query": rng.choice(["2 mu_a", "mu_a - mu_b", "3 (mu_a + mu_b)"]),
    }
    if rng.random() < 0.2:
        fields |= {"means": [[1, 0], [0.6, 0.8]]}
    if rng.random() < 0.2:
        fields["heads"] = (fields.pop("query"), "2 mu_b")
        if "k_a^T q" in text:
            fields["query"] = fields.pop("heads")[0]
    return fields


def plain_setting(rng: random.Random, text: str) -> Fields:
    """Return keys, query, definitions and ranges that give every name of a text its meaning."""
    where: Fields = {}
    span = Span.of(rng, -6, 6)
    query = rng.choice(["r k_a", "2 k_a + k_b", "m k_a - r k_b", "3 k_b"])
    fields: Fields = {}
    used = text
    if re.search(r"alpha|k_|\bc\b|\bq\b|\bn\b|mass|for all i", text):
        keys = rng.choice(["orthonormal"] * 3 + ["any", [[1, 0], [0, 1], [0.5, -1]], "unit"])
        fields |= {"keys": keys, "query": query}
        if isinstance(keys, str):
            where["n"] = rng.choice([2, 3])
        if keys in ("any", "unit"):
            where["d"] = 2
        if rng.random() < 0.3 or re.search(r"\bc\b", text):
            fields["values"] = "keys"
        if rng.random() < 0.1:
            fields["scale"] = rng.choice(["sqrt_d", 0.5])
        used += " " + query
    let = {"f(x)": rng.choice(["x^2", "1/x", "x - 1"]), "g(x)": "sum(x_i, i)", "w": "2^0.5"}
    let = {name: body for name, body in let.items() if re.search(rf"\b{name[0]}\b", text)}
    if let:
        fields["let"] = let
    if re.search(r"\br\b", used):
        where["r"] = rng.choice([span.written()] * 4 + ["any", "positive", [0, 1, 2.5]])
    if re.search(r"\bm\b", used):
        where["m"] = rng.choice(["1..3", "0..2", "-1..1", [1, 4]])
        if "s < m" in text:
            where["m"] = "1..4"
    for name in "xy":
        if re.search(rf"\b{name}\b|\b{name}_", re.sub(r"exp|max", "", text)):
            where[name] = rng.choice(["vector 2", "vector 2", "unit vector 2", "vector 3"])
    if "y" in where and "x" in where:
        where["y"] = re.sub("unit ", "", where["x"])
    if where:
        fields["where"] = where
    return fields


FAMILIES["random"] = random_claim
