"""Families of claims whose truth is known by construction.

Each is an identity or an inequality, or the same with a falsehood at a boundary, at one point, for
rare draws, by a billionth, or for one size only. `composed` makes larger ones of them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from reference.world import exact

Fields = dict[str, Any]


@dataclass(frozen=True)
class Planted:
    """A claim with what is known about it."""

    family: str
    fields: Fields
    true: bool | None
    """None: nobody knows; only attacks can tell."""


FAMILIES: dict[str, Callable[[random.Random], tuple[Fields, bool | None]]] = {}
Maker = Callable[[random.Random], tuple[Fields, bool | None]]


def family(make: Maker) -> Maker:
    """Add a family of claims."""
    FAMILIES[make.__name__] = make
    return make


def claim_of(expect: str, **fields: Any) -> Fields:
    return {**fields, "expect": (expect,)}


def share(scores: list[float], which: int = 0) -> float:
    """Return one weight of a softmax."""
    return 1 / math.fsum(math.exp(score - scores[which]) for score in scores)


def around(rng: random.Random, number: float, gaps: tuple[float, ...]) -> tuple[str, bool]:
    """Return a lower bound just below a number (true) or just above it (false)."""
    by, holds = rng.choice(gaps), rng.random() < 0.5
    return f"{number - by if holds else number + by:.14f}", holds


NOISY: Fields = {"keys": "gaussian", "where": {"n": 2}}


def noisy_key(variance: float) -> Fields:
    return {**NOISY, "covariance": {"a": f"{variance} mu_a mu_a^T"}}


@family
def weight_of_a_scaled_key(rng: random.Random) -> tuple[Fields, bool]:
    n, beta = rng.choice([2, 3, 5, 10]), rng.choice([0.5, 1, 2, 5, 10])
    bound, holds = around(rng, share([beta] + [0.0] * (n - 1)), (1e-9, 1e-6, 1e-3, 0.05))
    fields = {"keys": "orthonormal", "where": {"n": n}, "query": f"{beta} k_a"}
    return claim_of(f"alpha_a >= {bound}", **fields), holds


@family
def one_point_of_an_interval(rng: random.Random) -> tuple[Fields, bool]:
    low, high = sorted(rng.sample(range(-10, 11), 2))
    point = Fraction(rng.randint(-1500, 1500), 137)
    form = rng.choice(["(r - p)^2 > 0", "r != p", "abs(r - p) > 0", "not (r = p)"])
    text = form.replace("p", f"({point})")
    return claim_of(text, where={"r": f"[{low}, {high}]"}), not low <= point <= high


@family
def the_end_of_an_interval(rng: random.Random) -> tuple[Fields, bool]:
    low, high = sorted(rng.sample(range(-9, 10), 2))
    left, right = rng.choice("[("), rng.choice("])")
    text, holds = rng.choice([(f"r < {high}", right == ")"), (f"r != {low}", left == "(")])
    return claim_of(text, where={"r": f"{left}{low}, {high}{right}"}), holds


@family
def a_gap_in_an_interval(rng: random.Random) -> tuple[Fields, bool]:
    point, width = rng.randint(0, 1000) / 100, rng.choice([0.5, 0.05, 0.005])
    high, factor = rng.choice([3, 10, 50]), rng.choice([1, 3, 7])
    forms = ["abs({f} r - {p}) >= {w}", "({f} r - {p})^2 >= {w}^2"]
    forms += ["max({f} r - {p}, {p} - {f} r) >= {w}"]
    text = rng.choice(forms).format(f=factor, p=point, w=width)
    holds = exact(point) - exact(width) >= factor * high
    return claim_of(text, where={"r": f"[0, {high}]"}), holds


@family
def one_pair_of_two_intervals(rng: random.Random) -> tuple[Fields, bool]:
    x, y, width = rng.randint(0, 12), rng.randint(0, 12), rng.choice([0.5, 0.1])
    text = f"abs(r - {x}) + abs(s - {y}) >= {width}"
    return claim_of(text, where={"r": "[0, 6]", "s": "[0, 6]"}), x > 6 or y > 6


@family
def one_whole_number(rng: random.Random) -> tuple[Fields, bool]:
    high, point = rng.choice([16, 64, 200]), rng.randint(0, 260)
    text = rng.choice(["m != {p}", "(m - {p})^2 >= 1", "m (m - {p}) != 0"]).format(p=point)
    return claim_of(text, where={"m": f"2..{high}"}), not 2 <= point <= high


@family
def powers_of_whole_numbers(rng: random.Random) -> tuple[Fields, bool]:
    power, high, limit = rng.choice([2, 3]), rng.choice([20, 40, 64]), rng.randint(5, 80)
    return claim_of(f"m^{power} <= {limit}^{power}", where={"m": f"1..{high}"}), high <= limit


@family
def one_of_many_whole_numbers(rng: random.Random) -> tuple[Fields, bool]:
    point, spec = rng.randint(2, 5000), rng.choice(["2..3000", "integer >= 2"])
    return claim_of(f"m != {point}", where={"m": spec}), spec == "2..3000" and point > 3000


@family
def selected_members(rng: random.Random) -> tuple[Fields, bool]:
    threshold, n = rng.choice([1, 2, 3, 4, 6]), rng.choice([2, 3])
    level, holds = around(rng, share([threshold] + [0.0] * (n - 1)), (1e-4, 0.01, 0.1))
    query = rng.choice(["r k_a", "(r + 0.37) k_a"])  # the second is never tried at its threshold
    fields = {"keys": "orthonormal", "where": {"n": n, "r": "[0, 10]"}, "query": query}
    text = f"alpha_i >= {level} for all i where k_i^T q >= {threshold}"
    return claim_of(text, **fields), holds


@family
def selected_at_one_point(rng: random.Random) -> tuple[Fields, bool]:
    """The condition holds at r = ln t alone, which no number of a case ever is."""
    t, n = rng.choice([2, 3, 5, 7]), rng.choice([2, 3])
    level, holds = around(rng, share([t] + [0.0] * (n - 1)), (1e-4, 0.01, 0.1))
    fields = {"keys": "orthonormal", "where": {"n": n, "r": "[0, 3]"}, "query": "exp(r) k_a"}
    return claim_of(f"alpha_i >= {level} for all i where k_i^T q = {t}", **fields), holds


@family
def sum_over_selected(rng: random.Random) -> tuple[Fields, bool]:
    threshold, bound = rng.choice([1, 2, 4]), rng.choice([0.2, 0.6, 0.9, 0.97])
    low = rng.choice([0, threshold])
    where = {"n": 2, "r": f"[{low}, 8]"}
    text = f"sum(alpha_i, i where i >= 1 and k_i^T q >= {threshold}) >= {bound}"
    fields = claim_of(text, keys="orthonormal", where=where, query="r k_a")
    return fields, low == threshold and share([threshold, 0.0]) >= bound


@family
def most_of_selected(rng: random.Random) -> tuple[Fields, bool]:
    bound, low = rng.choice([0.6, 0.8, 0.95]), rng.choice([0, 3])
    text = f"max(alpha_i, i where i >= 1 and k_i^T q >= 2) >= {bound}"
    fields = {"keys": "orthonormal", "where": {"n": 2, "r": f"[{low}, 8]"}, "query": "r k_a"}
    return claim_of(text, **fields), low == 3 and share([3.0, 0.0]) >= bound


@family
def own_functions(rng: random.Random) -> tuple[Fields, bool]:
    body = rng.choice(["sum(x_i, i)", "ln(sum(exp(x_i), i))", "max(x_i, i)", "x_1", "norm(x)"])
    right, holds = rng.choice([("f(x)", False), ("f(y)", True)])
    where = {"x": "vector 2", "y": "vector 2"}
    return claim_of(f"f(y) = {right}", where=where, let={"f(x)": body}), holds


@family
def own_function_of_a_multiple(rng: random.Random) -> tuple[Fields, bool]:
    parameter, factor, other = rng.choice("xzy"), rng.choice([1, 2, -1]), rng.choice([1, 2, -1])
    let = {f"f({parameter})": f"sum({parameter}_i, i)"}
    text = f"f({factor} x) = {other} f(x)"
    return claim_of(text, where={"x": "vector 3"}, let=let), factor == other


@family
def own_function_within_another(rng: random.Random) -> tuple[Fields, bool]:
    let = {"g(y)": "sum(y_i, i)", "f(x)": "g(2 x) + g(x)"}
    factor = rng.choice([2, 3])
    where = {"x": "vector 2", "y": "vector 2"}
    return claim_of(f"f(y) = {factor} g(y)", where=where, let=let), factor == 3


@family
def an_index_that_is_taken(rng: random.Random) -> tuple[Fields, bool]:
    let = {"f(t)": "sum(alpha_i t, i)"}
    text, holds = rng.choice(
        [
            ("f(alpha_i) = alpha_i for all i", True),
            ("f(alpha_i) = sum(alpha_j^2, j) for all i", False),
        ]
    )
    fields = {"keys": "orthonormal", "where": {"n": [2, 3]}, "query": "2 k_a"}
    return claim_of(text, let=let, **fields), holds


@family
def products_of_three(rng: random.Random) -> tuple[Fields, bool]:
    left, right, holds = rng.choice(
        [
            ("x (y z)", "(x y) z", False),
            ("x (y^T z)", "(x y^T) z", True),
            ("x y z", "(x y) z", True),
            ("x y z", "x (y z)", False),
        ]
    )
    where = {"T": [2, 3], **dict.fromkeys("xyz", "vector T"), "P": "permutation T"}
    return claim_of(f"P ({left}) = P ({right})", where=where), holds


@family
def order_of_products(rng: random.Random) -> tuple[Fields, bool]:
    text, holds = rng.choice(
        [
            ("P A = A P", False),
            ("P A P^T = A", False),
            ("(P A)^T = A^T P^T", True),
            ("P^T P A = A", True),
            ("softmax(P A) = P softmax(A)", True),
            ("softmax(A P) = P softmax(A)", False),
            ("relu(P A) = P relu(A)", True),
            ("norm(P x) = norm(x)", True),
            ("sum(P x) = sum(x)", True),
            ("max(P x) = x_1", False),
        ]
    )
    where = {"T": [2, 3], "A": "matrix T x T", "x": "vector T", "P": "permutation T"}
    return claim_of(text, where=where), holds


@family
def undefined_somewhere(rng: random.Random) -> tuple[Fields, bool]:
    text, domain, holds = rng.choice(
        [
            ("sqrt(x)^2 = x", "any", False),
            ("sqrt(x)^2 = x", "positive", True),
            ("x/x = 1", "any", False),
            ("x/x = 1", "positive", True),
            ("x/x = 1", "[0, 2]", False),
            ("x/x = 1", "(0, 2]", True),
            ("exp(ln(x)) = x", "any", False),
            ("exp(ln(x)) = x", "positive", True),
            ("ln(exp(x)) = x", "any", True),
            ("x^-1 x = 1", "any", False),
            ("x^0 = 1", "any", True),
            ("x != 0 implies x/x = 1", "any", True),
            ("x >= 0 implies sqrt(x)^2 = x", "any", True),
            ("x > 1 implies x/x = 1", "[0, 2]", True),
            ("x/x = 1 or x = 0", "any", True),
            ("x/x = 1 or x = 1", "[0, 2]", False),
            ("not (x/x = 2)", "[0, 2]", False),
            ("not (x/x = 2)", "[1, 2]", True),
            ("0 * (1/x) = 0", "[0, 2]", False),
            ("1/x - 1/x = 0", "[0, 2]", False),
            ("(x - 1)/(x - 1) = 1", "[0, 2]", False),
            ("1/(x - 3) * (x - 3) = 1", "[0, 10]", False),
            ("1/(x - 3) * (x - 3) = 1", "[4, 10]", True),
            ("sqrt(x^2) = abs(x)", "any", True),
            ("sqrt(x - 1)^2 >= 0", "[0, 3]", False),
            ("sqrt(x + 1)^2 >= 0", "[0, 3]", True),
            ("ln(x) <= x - 1", "[0, 3]", False),
            ("ln(x) <= x - 0.9", "[0.5, 3]", True),
            ("x^0.5 <= 2", "[-1, 3]", False),
            ("x^0.5 <= 2", "[0, 3]", True),
            ("m/m = 1", "0..5", False),
            ("m/m = 1", "1..5", True),
        ]
    )
    return claim_of(text, where={text[0] if text[0] == "m" else "x": domain}), holds


@family
def norms_of_normed(rng: random.Random) -> tuple[Fields, bool]:
    texts = ["norm(layernorm(x))^2 = d", "norm(rmsnorm(x))^2 = d", "norm(x)^2 = x^T x"]
    text = rng.choice(texts)
    where = {"d": rng.choice([1, 2, 3]), "x": "vector d"}
    return claim_of(text, where=where), text.startswith("norm(x)")


@family
def given_means(rng: random.Random) -> tuple[Fields, bool]:
    scale, level = rng.choice([2, 5, 8]), rng.choice([0.6, 0.8, 0.9, 0.99])
    means = [[1, 0], [0.6, 0.8]]
    fields = {"keys": "gaussian", "means": means, "where": {"n": 2}, "query": f"{scale} mu_b"}
    return claim_of(f"E(alpha_b) >= {level}", **fields), share([scale, 0.6 * scale]) >= level


@family
def normal_tail(rng: random.Random) -> tuple[Fields, bool]:
    variance, deviations = rng.choice([0.25, 0.5, 1.0]), rng.choice([-1.0, 0.0, 1.0, 2.0])
    tail = 0.5 * math.erfc(deviations / math.sqrt(2))
    bound, holds = around(rng, tail, (1e-7, 1e-4, 0.01))
    level = 1 + deviations * math.sqrt(variance)
    return claim_of(f"P(k_a^T mu_a >= {level:.17g}) >= {bound}", **noisy_key(variance)), holds


@family
def conditional_probability(rng: random.Random) -> tuple[Fields, bool]:
    level = rng.choice([0.5, 1.0, 2.0])
    chance = math.erfc(level / math.sqrt(2))
    bound, holds = around(rng, chance, (1e-5, 0.01))
    text = f"P(k_a^T mu_a >= 1 + {level} given k_a^T mu_a >= 1) >= {bound}"
    return claim_of(text, **noisy_key(1.0)), holds


@family
def conditional_spread(rng: random.Random) -> tuple[Fields, bool]:
    variance = 1 - 2 / math.pi  # of a half normal
    bound, holds = around(rng, math.sqrt(variance), (0.001, 0.05))
    fields = noisy_key(1.0) | {"given": "k_a^T mu_a >= 1"}
    return claim_of(f"std(k_a^T mu_a) >= {bound}", **fields), holds


@family
def lognormal_mean(rng: random.Random) -> tuple[Fields, bool]:
    beta, variance = rng.choice([1, 3, 6, 12]), rng.choice([0.5, 1.0])
    holds, isotropic = rng.random() < 0.5, rng.random() < 0.3
    bound = (0.99 if holds else 1.01) * math.exp(beta + beta * beta * variance / 2)
    fields = noisy_key(variance)
    if isotropic:
        fields |= {"covariance": {"a": f"{variance} I"}}
    return claim_of(f"E(exp(k_a^T q)) >= {bound:.12g}", query=f"{beta} mu_a", **fields), holds


@family
def variance_along_a_key(rng: random.Random) -> tuple[Fields, bool]:
    variance = rng.choice([1e-16, 1e-8, 0.01, 0.5])
    by, holds = rng.choice([0.5, 0.01]), rng.random() < 0.5
    bound = variance * (1 + by) if holds else variance * (1 - by)
    return claim_of(f"var(k_a^T mu_a) <= {bound:.12g}", **noisy_key(variance)), holds


@family
def rare_draws(rng: random.Random) -> tuple[Fields, bool]:
    deviations = rng.choice([4, 5, 6])
    text, holds = rng.choice(
        [
            (f"P(k_a^T mu_a <= 1 + {deviations}) < 1", True),
            (f"P(k_a^T mu_a <= 1 + {deviations}) >= 1", False),
            (f"k_a^T mu_a <= 1 + {deviations}", False),
            (f"P(k_a^T mu_a > 1 + {deviations}) > 0", True),
        ]
    )
    return claim_of(text, **noisy_key(1.0)), holds


@family
def equal_heads(rng: random.Random) -> tuple[Fields, bool]:
    relation, holds = rng.choice([("<", False), ("<=", True), ("=", True)])
    fields = {**noisy_key(0.5), "where": {"n": 3}, "heads": ("5 mu_a", "5 mu_a")}
    return claim_of(f"var(c) {relation} var(c_1)", **fields), holds


@family
def mean_of_two_heads(rng: random.Random) -> tuple[Fields, bool]:
    weight = (share([4.0, 0.0, 0.0]) + share([0.0, 4.0, 0.0])) / 2
    bound, holds = around(rng, weight, (1e-9, 0.01))
    fields = {"keys": "orthonormal", "where": {"n": 3}, "heads": ("4 k_a", "4 k_b")}
    return claim_of(f"alpha_a >= {bound}", **fields), holds


@family
def late_thresholds(rng: random.Random) -> tuple[Fields, bool]:
    factor, level = rng.choice(["1e-20", "1e-6", "1", "-1", "0"]), rng.choice([0.9, 0.999])
    fields = {"keys": "orthonormal", "where": {"n": [2, 3], "beta": "large"}}
    return claim_of(f"alpha_a >= {level}", query=f"{factor} beta k_a", **fields), float(factor) > 0


@family
def large_scales(rng: random.Random) -> tuple[Fields, bool]:
    text, holds = rng.choice(
        [
            ("beta >= 1e12", True),
            ("beta <= 1e30", False),
            ("sin(beta) <= 0.99", False),
            ("abs(sin(beta)) <= 1", True),
            ("exp(-beta) > 0", True),
            ("exp(-beta) = 0", False),
            ("1/beta <= 1e-9", True),
            ("1/beta <= 0", False),
            ("alpha_a = exp(beta)/(n - 2 + 2 exp(beta))", True),
            ("alpha_a = exp(beta)/(n - 1 + 2 exp(beta))", False),
            ("alpha_a < 1/2", True),
            ("alpha_a >= 1/2", False),
            ("alpha_a <= 1/2", True),
            ("alpha_a ~ 1/2 within 1", True),
            ("alpha_a ~ 1/2 within 1e-6", True),
            ("alpha_a ~ 1/3 within 0.1", False),
        ]
    )
    where: Fields = {"beta": "large"}
    if "alpha" not in text:
        return claim_of(text, where=where), holds
    fields = {"keys": "orthonormal", "where": {"n": 3, **where}, "query": "beta (k_a + k_b)"}
    return claim_of(text, **fields), holds


@family
def small_numbers(rng: random.Random) -> tuple[Fields, bool]:
    text, holds = rng.choice(
        [
            ("epsilon <= 1e-3", True),
            ("epsilon > 0", True),
            ("epsilon = 0", False),
            ("epsilon >= 1e-30", False),
            ("epsilon/epsilon = 1", True),
        ]
    )
    return claim_of(text, where={"epsilon": "small"}), holds


@family
def masks(rng: random.Random) -> tuple[Fields, bool]:
    size = rng.choice(["1", "1e3", "1e10", "1e12"])
    relation, holds = rng.choice([("= 0", True), ("> 0", False)])
    let = {"W": f"softmax({size} stack(concat(0, 1), concat(0, 1)) + causal(T))"}
    return claim_of(f"W[1, 2] {relation}", where={"T": 2}, let=let), holds


@family
def exact_steps(rng: random.Random) -> tuple[Fields, bool]:
    text, holds = rng.choice(
        [
            ("rank(stack(concat(1, 2), concat(2, 4.0000000000000001))) = 2", True),
            ("rank(stack(concat(1, 2), concat(2, 4))) = 2", False),
            ("argmax(concat(0.1 + 0.2, 0.3)) = 1", True),
            ("argmax(concat(1, 1 + 1e-30)) = 2", True),
            ("argmax(concat(1, 1 + 1e-30)) = 1", False),
            ("floor(0.1 * 30) = 3", True),
            ("floor(3 - 1e-30) = 2", True),
            ("floor(3 - 1e-30) = 3", False),
            ("sign(0.1 + 0.2 - 0.3) = 0", True),
            ("sign(1e-30) = 1", True),
            ("sign(1e-30) = 0", False),
            ("1e400 > 1e399", True),
            ("1e400 < 1e399", False),
            ("1e-400 > 0", True),
            ("0.1 + 0.2 = 0.3", True),
            ("round16(2049) = 2048", True),
            ("round16(2049) = 2050", False),
        ]
    )
    return claim_of(text), holds


@family
def sums_of_weights(rng: random.Random) -> tuple[Fields, bool]:
    text, holds = rng.choice(
        [
            ("sum(alpha_i, i) <= 1 - 1e-12", False),
            ("sum(alpha_i, i) = 1", True),
            ("alpha_i >= 0 for all i", True),
            ("alpha_i > 0 for all i", True),
            ("sum(alpha_i, i != a) = 1 - alpha_a", True),
            ("sum(alpha_i, i != a) > 0", True),
            ("sum(alpha_i, i != a) < 0", False),
            ("sum(alpha_i v_i, i) = c", True),
            ("sum(v_i, i != a, b) + c = c", None),
            ("max(alpha_i, i) = alpha_a", True),
            ("entropy(alpha) <= ln(n)", True),
        ]
    )
    if holds is None:
        holds = True
        fields = {"where": {"n": 2}, "query": "k_a + 2 k_b"}
    else:
        fields = {"where": {"n": [2, 3]}, "query": "k_a"}
    return claim_of(text, keys="orthonormal", **fields), holds


@family
def letters_of_given_keys(rng: random.Random) -> tuple[Fields, bool]:
    count = rng.choice([3, 9])
    keys = [[1, 0], [0, 1], [0.5, 0.5]] + [[-1, -place] for place in range(count - 3)]
    text, holds = rng.choice(
        [
            ("alpha_a >= 0.9", False),
            ("alpha_a + alpha_b <= 1", True),
            ("alpha_a >= alpha_b", count == 3),  # of more keys some are longer than k_a
        ]
    )
    return claim_of(text, keys=keys, query="20 k_a"), holds


@family
def letters_of_given_means(rng: random.Random) -> tuple[Fields, bool]:
    means = [[1, 0], [0.6, 0.8], [0.9, 0.3]]
    level = rng.choice([0.1, 0.3, 0.6, 0.9])
    least = min(
        share([8 * sum(x * y for x, y in zip(a, b, strict=True)) for b in means], place)
        for place, a in enumerate(means)
    )
    fields = {"keys": "gaussian", "means": means, "query": "8 mu_a"}
    return claim_of(f"E(alpha_a) >= {level}", **fields), least >= level


@family
def small_gaps(rng: random.Random) -> tuple[Fields, bool]:
    exponent = rng.choice([10, 12, 20, 40])
    text, holds = rng.choice(
        [
            (f"exp(-{exponent}) <= 1e-{exponent}", False),
            (f"alpha_b <= 1e-{exponent}", False),
            (f"1 - alpha_a >= exp(-{exponent + 1})", True),
            (f"alpha_b > exp(-{exponent})", False),
            (f"alpha_b < exp(-{exponent})", True),
        ]
    )
    fields = {"keys": "orthonormal", "where": {"n": 2}, "query": f"{exponent} k_a"}
    return claim_of(text, **fields), holds


@family
def position_pairs(rng: random.Random) -> tuple[Fields, bool]:
    length = rng.choice([20, 80, 300])
    first, second = sorted(rng.sample(range(260), 2))
    text = f"(s - {first})^2 + (t - {second})^2 > 0 for all s != t < T"
    return claim_of(text, where={"T": length}), second >= length


@family
def entries_of_a_matrix(rng: random.Random) -> tuple[Fields, bool]:
    row = [rng.randint(0, 3) for _ in range(3)]
    let = {"A": "stack(concat({}), concat(0, 0, 1))".format(", ".join(map(str, row)))}
    bound = rng.randint(0, 3)
    text, holds = rng.choice(
        [
            (f"A[1, j] <= {bound} for all j", max(row) <= bound),
            (f"A[i, j] <= {bound} for all i, j", max(*row, 1) <= bound),
            (f"sum(A[1, j], j) = {sum(row[:2])}", row[2] == 0),
            (f"max(A[1, j], j) <= {bound}", max(row) <= bound),
        ]
    )
    return claim_of(text, let=let), holds


@family
def conditions_with_a_margin(rng: random.Random) -> tuple[Fields, bool]:
    margin, level = rng.choice([2, 5, 8]), rng.choice([0.5, 0.85, 0.99, 0.9999])
    where = {"n": 2, "d": 2, "q": "vector d"}
    text = f"k_a^T q >= k_b^T q + {margin} implies w_a >= {level}"
    fields = claim_of(text, keys="any", where=where, let={"w": "weights(q)"})
    return fields, share([margin, 0.0]) >= level


@family
def conditions_of_a_claim(rng: random.Random) -> tuple[Fields, bool]:
    low = rng.choice([1, 3, 5])
    level, holds = around(rng, share([low, 0.0]), (1e-4, 0.01, 0.1))
    fields = {"keys": "orthonormal", "where": {"n": 2, "r": "[-4, 9]"}, "query": "3 r k_a"}
    return claim_of(f"alpha_a >= {level}", given=f"3 r >= {low}", **fields), holds


@family
def scaled_by_the_width(rng: random.Random) -> tuple[Fields, bool]:
    d = rng.choice([2, 4, 9])
    bound, holds = around(rng, share([6 / math.sqrt(d), 0.0]), (1e-9, 0.01))
    fields = {"keys": "orthonormal", "scale": "sqrt_d", "query": "6 k_a"}
    return claim_of(f"alpha_a >= {bound}", where={"n": 2, "d": d}, **fields), holds


@family
def values_that_are_keys(rng: random.Random) -> tuple[Fields, bool]:
    bound, holds = around(rng, share([3.0, 0.0, 0.0]), (1e-9, 0.01))
    fields = {"keys": "orthonormal", "values": "keys", "where": {"n": 3}, "query": "3 k_a"}
    return claim_of(f"c^T k_a >= {bound}", **fields), holds


@family
def sequences(rng: random.Random) -> tuple[Fields, bool]:
    bound, holds = around(rng, share([4.0, 0.0]), (1e-9, 0.01))
    fields = {"sequence": ("concat(2, 0)", "concat(0, 2)")}
    return claim_of(f"alpha[1, 1] >= {bound}", **fields), holds


@family
def positions(rng: random.Random) -> tuple[Fields, bool]:
    text, holds = rng.choice(
        [
            ("norm(phi(t))^2 = 2 for all t < T", True),
            ("norm(phi(t))^2 = 2.0000001 for all t < T", False),
            ("phi(s) != phi(t) for all s != t < T", True),
            ("phi(s) != phi(t) for all s, t < T", False),
            ("phi(s)^T phi(t) < 2 for all s != t < T", True),
            ("phi(s)^T phi(t) < 1.9 for all s != t < T", False),
        ]
    )
    return claim_of(text, where={"T": 12}, positions={"width": 4}), holds


@family
def kinds_of_arrays(rng: random.Random) -> tuple[Fields, bool]:
    text, spec, holds = rng.choice(
        [
            ("norm(x) <= 1", "unit vector 3", True),
            ("norm(x) < 1", "unit vector 3", False),
            ("sum(x) = 1", "distribution 3", True),
            ("max(x) < 1", "distribution 3", False),
            ("sum(x^T x) >= 0", "vector 2", True),
            ("x^T x > 0", "vector 2", False),
            ("x_1 <= norm(x)", "vector 3", True),
            ("sum(x) <= norm(x)", "vector 3", False),
            ("norm(x) <= 1000", "vector 2", False),
        ]
    )
    return claim_of(text, where={"x": spec}), holds
