"""An adversary for the judge: claims made to deceive, and attacks on whatever the judge says.

    python tests/claims/adversary.py --claims 2000 --seed 0 --workers 2 --seconds 3

*Planted* claims have a truth that is known by construction: an identity or an inequality, or the
same with a falsehood at a boundary, at one point, for rare draws, by a billionth, or for one size
only. *Random* ones come from a grammar, and nobody knows their truth. Every verdict is then
attacked in the reference meaning (`reference`):

    proved    no case of the range may be false or undefined there
    refuted   the counterexample must not hold there
    repair    a repaired claim that is proved is attacked like any other

A failure is shrunk and printed as a sheet. The command ends with 1 if anything false was said.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import multiprocessing
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from reference.meaning import UNDEFINED, Truth
from reference.numbers import ball
from reference.values import Value, identity, inverse, matrix, multiply, scalar, vector
from reference.world import choices_of_letters, exact, shape_of, truth

from heedful.claims import Claim, Verdict, judge_claim
from heedful.errors import FormulaError

Fields = dict[str, Any]
MOST_CASES = 40
"""Cases that a verdict is attacked with."""
MOST_NOISY_CASES = 2
"""The same for claims about noise, where every case is an integral."""
MOST_PIECES = 60
"""Pieces of ranges that are halved in search of one on which a claim fails."""
MOST_LETTERS = 24
"""Choices of keys for letters, of which so many are tried in each case."""
INEXACT = ("unit vector", "distribution", "orthonormal")
"""Arrays that the judge rounds to float64, so that they are not quite of their kind."""
KINDS = ("false proved", "false refuted", "false repair", "false supported")


@dataclass(frozen=True)
class Planted:
    """A claim with what is known about it."""

    family: str
    fields: Fields
    true: bool | None
    """None: nobody knows; only attacks can tell."""


@dataclass(frozen=True)
class Report:
    """What came of judging one claim."""

    planted: Planted
    word: str
    mistakes: tuple[str, ...] = ()
    detail: str = ""
    seconds: float = 0.0


# ---- claims with a planted truth ----

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


# ---- claims that nobody knows the truth of ----

VALUES = (
    *("r", "m", "1/2", "2", "3", "-1", "x_1", "norm(x)", "x^T y", "alpha_a", "alpha_b"),
    *("max(alpha_i, i)", "sum(alpha_i^2, i)", "f(r)", "f(2 m)", "g(x)", "g(y)", "g(2 y)"),
    *("sum(alpha_i, i where i >= 1 and alpha_i >= 0.4)", "min(k_i^T q, i)"),
)
WRAPS = (
    *("exp({})", "abs({})", "({})^2", "relu({})", "tanh({})", "sigmoid({})", "sqrt(abs({}))"),
    *("({}) + ({})", "({}) - ({})", "({}) * ({})", "({}) / (1 + abs({}))", "min({}, {})"),
    *("max({}, {})", "sin({})", "floor({})", "sign({})", "({}) / ({})", "sqrt({})", "ln({})"),
)
RELATIONS = ("<=", "<", ">=", ">", "!=", "=")


def random_claim(rng: random.Random) -> tuple[Fields, None]:
    """Draw a claim from a small grammar over numbers, vectors, weights and own functions."""

    def value(depth: int) -> str:
        if depth == 0 or rng.random() < 0.25:
            return rng.choice(VALUES)
        form = rng.choice(WRAPS)
        return form.format(*[value(depth - 1) for _ in range(form.count("{}"))])

    def statement(depth: int) -> str:
        base = f"{value(2)} {rng.choice(RELATIONS)} {value(2)}"
        if depth and rng.random() < 0.3:
            return f"({base}) {rng.choice(['and', 'or', 'implies'])} ({statement(depth - 1)})"
        return base

    low, high = sorted(rng.sample(range(-6, 7), 2))
    where: Fields = {
        "n": rng.choice([2, 3]),
        "r": f"{rng.choice('[(')}{low}, {high}{rng.choice('])')}",
        "m": f"1..{rng.choice([3, 9])}",
    }
    text = statement(1)
    if re.search(r"\b[xy]", text):
        where |= {"x": "vector 2", "y": "vector 2"}
    fields: Fields = {
        "keys": rng.choice(["orthonormal", "orthonormal", [[1, 0], [0, 1], [0.5, -1]]]),
        "where": where,
        "query": rng.choice(["r k_a", "2 k_a + k_b", "m k_a - r k_b"]),
        "let": {"f(x)": rng.choice(["x^2", "1/x", "x - m"]), "g(x)": "sum(x_i, i)"},
        "expect": (text,),
    }
    if not isinstance(fields["keys"], str):
        del where["n"]
    if rng.random() < 0.2:
        fields["given"] = f"{value(1)} {rng.choice(RELATIONS[:4])} {value(0)}"
    return fields, None


FAMILIES["random"] = random_claim


def claim_at(seed: int, place: int, families: tuple[str, ...] = ()) -> Planted:
    """Return one claim of a seed: every third is random, the others go round the families."""
    rng = random.Random(f"{seed}/{place}")
    names = families or tuple(name for name in FAMILIES if name != "random")
    name = "random" if not families and rng.random() < 0.3 else names[place % len(names)]
    return Planted(name, *FAMILIES[name](rng))


# ---- cases of a claim, exactly ----

SIMPLE = [Fraction(x) for x in (0, 1, -1, "1/2", 2, -2, 3, 10, -10, 1000, "1/1000")]


def numbers_of(spec: Any, rng: random.Random, named: list[Fraction]) -> list[Fraction]:
    """Return exact numbers of a range: its ends, simple ones, those of the formulas, random."""
    if isinstance(spec, int | float):
        return [exact(spec)]
    if isinstance(spec, list | tuple):
        return [exact(value) for value in spec]
    drawn = [Fraction(rng.randint(-999, 999), rng.randint(1, 40)) for _ in range(6)]
    if spec in ("any", "real"):
        return [*SIMPLE, *named, *drawn]
    if spec == "positive":
        return [abs(x) for x in (*SIMPLE, *named, *drawn) if x]
    if spec == "large":
        return [Fraction(x) for x in (10**40, 10**60 + 1, 10**80 + 7)]
    if spec in ("small", "vanishing"):
        return [Fraction(1, 10**60), Fraction(1, 10**80)]
    whole_numbers = [x for x in (*SIMPLE, *named) if x.denominator == 1]
    if spec == "natural":
        return [x for x in whole_numbers if x >= 0]
    if found := re.fullmatch(r"(-?\d+)\s*\.\.\s*(-?\d+)", spec):
        low, high = int(found[1]), int(found[2])
        some = range(low, high + 1)
        chosen = some if len(some) <= 300 else rng.sample(some, 60)
        return [*(x for x in whole_numbers if low <= x <= high), *map(Fraction, chosen)]
    if found := re.fullmatch(r"integers?\s*(>=|>)\s*(-?\d+)", spec):
        first = int(found[2]) + (found[1] == ">")
        return [x for x in (*whole_numbers, *map(Fraction, range(first, first + 9))) if x >= first]
    low, high, open_low, open_high = interval_of(spec)
    step = (high - low) / 1000
    ends = [low + step / 1000 * open_low, high - step / 1000 * open_high, (low + high) / 2]
    inside = [x for x in (*SIMPLE, *named) if low < x < high]
    return [*ends, *inside, *(low + step * rng.randint(1, 999) for _ in range(8))]


def interval_of(spec: Any) -> tuple[Fraction, Fraction, bool, bool]:
    """Return the ends of an interval (±1000 for infinity), and whether they are left out."""
    found = re.fullmatch(r"([\[(])\s*([^,\s]+)\s*,\s*([^,\s]+)\s*([\])])", str(spec))
    if found is None:
        raise ValueError(spec)
    ends = [re.sub(r"inf|∞", "1000", end) for end in (found[2], found[3])]
    return Fraction(ends[0]), Fraction(ends[1]), found[1] == "(", found[4] == ")"


def array_of(spec: str, shape: list[int], rng: random.Random, place: int) -> Value:
    """Return an exact array of a kind: simple ones first."""
    if spec.startswith("permutation"):
        return matrix(rng.sample(identity(shape[0]), shape[0]))
    if spec.startswith("distribution"):
        weights = [rng.randint(0 if place % 2 else 1, 9) for _ in range(shape[0])]
        weights[0] += 1
        return vector([Fraction(weight, sum(weights)) for weight in weights])
    if spec.startswith("unit vector"):
        return vector(unit_vector(shape[0], rng, place))
    if spec.startswith("orthonormal"):
        return matrix(rotation(shape[1], rng)[: shape[0]])
    count = math.prod(shape)
    if place == 0:
        numbers = [Fraction(int(i % (shape[-1] + 1) == 0)) for i in range(count)]
    elif place == 1:
        numbers = [Fraction(0)] * count
    elif place < 6:
        numbers = [Fraction(rng.randint(-3, 3)) for _ in range(count)]
    else:
        size = rng.choice([1, 1, 30])
        numbers = [size * Fraction(rng.randint(-400, 400), 97) for _ in range(count)]
    if len(shape) == 1:
        return vector(numbers)
    return matrix([numbers[row * shape[1] : (row + 1) * shape[1]] for row in range(shape[0])])


def unit_vector(d: int, rng: random.Random, place: int) -> list[Fraction]:
    """Return a rational point of the sphere: the projection of a rational point of the plane."""
    if place < d:
        return identity(d)[place]
    flat = [Fraction(rng.randint(-6, 6), rng.randint(1, 5)) for _ in range(d - 1)]
    square = sum((x * x for x in flat), Fraction(0))
    return [*(2 * x / (1 + square) for x in flat), (square - 1) / (square + 1)]


def rotation(d: int, rng: random.Random) -> list[list[Fraction]]:
    """Return a rational orthogonal matrix: (I − A)(I + A)^-1 with A antisymmetric."""
    a = [[Fraction(0)] * d for _ in range(d)]
    for i, j in itertools.combinations(range(d), 2):
        a[i][j] = Fraction(rng.randint(-3, 3), rng.randint(1, 3))
        a[j][i] = -a[i][j]
    above, below = (
        matrix([[int(i == j) + sign * a[i][j] for j in range(d)] for i in range(d)])
        for sign in (1, -1)
    )
    return [list(row) for row in multiply(below, inverse(above)).entries]


@dataclass(frozen=True)
class Ranges:
    """The symbols of a claim: numbers that each may be, and specifications of its arrays."""

    scalars: dict[str, Any]
    arrays: dict[str, str]

    @classmethod
    def of(cls, claim: Claim) -> Ranges:
        """Return the ranges of a claim, with the sizes that it leaves to the laboratory."""
        where = dict(claim.where)
        if isinstance(claim.keys, str) and not isinstance(claim.means, list | tuple):
            where.setdefault("n", [2, 3, 5, 10])
            if claim.keys in ("unit", "any"):
                where.setdefault("d", [2, 3])
        if claim.positions.get("width") is not None:
            where.setdefault("d", claim.positions["width"])
        kinds = r"(vector|unit vector|matrix|permutation|distribution|orthonormal) (.+)"
        found = {name: re.fullmatch(kinds, str(spec)) for name, spec in where.items()}
        arrays = {name: str(where[name]) for name, match in found.items() if match}
        for match in filter(None, found.values()):
            for size in re.findall(r"\b\d*([A-Za-wyz]\w*)", match[2]):
                where.setdefault(size, {"T": [2, 3, 5]}.get(size, [2, 3]))
        scalars = {
            name: spec
            for name, spec in where.items()
            if name not in arrays and not str(spec).startswith("normal")
        }
        if claim.keys in ("unit", "any"):
            arrays["k"] = claim.keys
        return cls(scalars, arrays)


Case = tuple[dict[str, Any], dict[str, Value]]


def cases_of(claim: Claim, rng: random.Random, from_: Fraction | None = None) -> Iterator[Case]:
    """Yield exact cases of the ranges of a claim; large symbols start where the proof does."""
    ranges = Ranges.of(claim)
    texts = " ".join(map(str, (*claim.expect, claim.given, claim.query, *claim.let.values())))
    named = [Fraction(text) for text in re.findall(r"\d+/\d+|\d+\.?\d*", texts)[:8]]
    named += [-x for x in named]
    choices = {
        name: list(dict.fromkeys(numbers_of(spec, rng, named)))
        for name, spec in ranges.scalars.items()
    }
    for name, spec in ranges.scalars.items():
        if spec == "large" and from_ is not None:
            choices[name] = [from_, from_ + 1, 2 * from_ + 1, 100 * from_ + 10**6]
    few = math.prod(map(len, choices.values())) <= MOST_CASES
    combinations = list(itertools.product(*choices.values())) if few else []
    for place in range(MOST_CASES):
        if few and not ranges.arrays and place >= len(combinations):
            return
        chosen = (
            combinations[place % len(combinations)]
            if few
            else [rng.choice(each) for each in choices.values()]
        )
        numbers = dict(zip(choices, chosen, strict=True))
        names = {name: scalar(value) for name, value in numbers.items()}
        arrays = {
            name: array_of(spec, shape_of(spec, names), rng, place)
            for name, spec in ranges.arrays.items()
            if name != "k"
        }
        if "k" in ranges.arrays:
            n, d = int(numbers["n"]), int(numbers["d"])
            if claim.keys == "unit":
                arrays["k"] = matrix([unit_vector(d, rng, place) for _ in range(n)])
            else:
                arrays["k"] = array_of("matrix", [n, d], rng, place)
        yield numbers, arrays


# ---- attacks ----


def fails(claim: Claim, case: Case, letters: list[dict[str, int]]) -> Truth:
    """Return False or UNDEFINED if a claim is so for some choice of letters, else True or None."""
    worst: Truth = True
    for choice in letters:
        numbers, arrays = case
        if isinstance(claim.keys, str) and not claim.sequence and choice:
            n = numbers.get("n", len(choice) if isinstance(claim.means, str) else math.inf)
            if n < len(choice):
                continue  # fewer keys than letters is no case of the claim
        found = truth(claim, numbers, arrays, choice)
        if found is False or found == UNDEFINED:
            return found
        worst = None if found is None else worst
    return worst


def attack(claim: Claim, rng: random.Random, from_: Fraction | None = None) -> str | None:
    """Return a case in which a claim that was called proved is not true, if one is found."""
    letters = choices_of_letters(claim)
    if len(letters) > MOST_LETTERS:
        letters = rng.sample(letters, MOST_LETTERS)
    noisy = claim.keys == "gaussian" or "normal" in str(claim.where)
    for place, case in enumerate(cases_of(claim, rng, from_)):
        if noisy and place >= MOST_NOISY_CASES:
            return None
        found = fails(claim, case, letters)
        if found is False or found == UNDEFINED:
            numbers, arrays = case
            shown = {name: str(x) for name, x in numbers.items()}
            shown |= {name: str([str(x) for x in value.flat]) for name, value in arrays.items()}
            return f"{'undefined' if found else 'false'} at {shown}"
    return bisection(claim, rng, letters)


def bisection(claim: Claim, rng: random.Random, letters: list[dict[str, int]]) -> str | None:
    """Look for a piece of the intervals on which a claim fails, by halving undecided ones."""
    intervals = {
        name: interval_of(spec)[:2]
        for name, spec in claim.where.items()
        if isinstance(spec, str) and re.fullmatch(r"[\[(][^a-z∞]*[\])]", spec)
    }
    if not 1 <= len(intervals) <= 2:
        return None
    for numbers, arrays in itertools.islice(cases_of(claim, rng), 2):
        boxes = [intervals]
        for _ in range(MOST_PIECES):
            if not boxes:
                break
            box = boxes.pop(0)
            balls = {name: ball(low).union(ball(high)) for name, (low, high) in box.items()}
            found = fails(claim, ({**numbers, **balls}, arrays), letters)
            if found is False or found == UNDEFINED:
                shown = {name: f"[{low}, {high}]" for name, (low, high) in box.items()}
                return f"{'undefined' if found else 'false'} on {shown}"
            if found is None:
                name = max(box, key=lambda each: box[each][1] - box[each][0])
                low, high = box[name]
                middle = (low + high) / 2
                boxes += [{**box, name: half} for half in ((low, middle), (middle, high))]
    return None


def confirmed(claim: Claim, verdict: Verdict) -> bool:
    """Tell whether the counterexample of a refuted claim may be one: it does not surely hold."""
    shown = verdict.counterexample
    if shown is None or any(str(spec).startswith(INEXACT) for spec in claim.where.values()):
        return True
    if claim.keys == "unit":
        return True
    numbers: dict[str, Any] = {}
    arrays: dict[str, Value] = {}
    for name, value in shown.symbols.items():
        if isinstance(value, list):
            rows = [list(map(Fraction, row)) if isinstance(row, list) else row for row in value]
            listed = isinstance(value[0], list)
            arrays[name] = matrix(rows) if listed else vector(list(map(Fraction, value)))
        else:
            numbers[name] = exact(value)
    return fails(claim, (numbers, arrays), choices_of_letters(claim)) is not True


def mistakes_of(planted: Planted, seconds: float = 3.0, seed: int = 0) -> Report:
    """Judge one claim and return what the judge got wrong."""
    start = time.perf_counter()
    claim = Claim(id="attempt", **planted.fields)
    rng = random.Random(seed)
    try:
        verdict = judge_claim(claim, seconds=seconds)
    except FormulaError as error:
        # Refused, which is no statement about its truth.
        return Report(planted, "refused", detail=str(error))
    wrong: list[str] = []
    detail = verdict.evidence.statement
    if verdict.verdict == "proved":
        thresholds = verdict.evidence.numbers.get("beta_0") or {}
        from_ = Fraction(max(thresholds.values())) if thresholds else None
        found = "planted" if planted.true is False else attack(claim, rng, from_)
        if found is not None:
            wrong.append("false proved")
            detail += f" But it is not true: {found}."
    if verdict.verdict == "refuted" and (planted.true is True or not confirmed(claim, verdict)):
        wrong.append("false refuted")
    if verdict.verdict == "supported" and planted.true is False:
        wrong.append("false supported")
    if verdict.repair is not None and verdict.repair.verdict == "proved":
        repaired = claim.changed(**verdict.repair.changes)
        if found := attack(repaired, rng):
            wrong.append("false repair")
            detail += f" The repair {verdict.repair.changes} is not true: {found}."
    spent = time.perf_counter() - start
    return Report(planted, verdict.verdict, tuple(wrong), detail, spent)


# ---- shrinking ----


def simpler(fields: Fields) -> Iterator[Fields]:
    """Yield claims with a field left out, a range shortened, or a number made simple."""
    for name in fields:
        if name != "expect":
            yield {key: value for key, value in fields.items() if key != name}
    for table in ("where", "let", "covariance"):
        for name in fields.get(table, {}):
            rest = {key: value for key, value in fields[table].items() if key != name}
            yield {**fields, table: rest}
            value = fields[table][name]
            if isinstance(value, list) and len(value) > 1:
                yield {**fields, table: {**fields[table], name: value[0]}}
    (text,) = fields["expect"]
    for word in (" and ", " or ", " implies "):
        for part in text.split(word) if word in text else ():
            yield {**fields, "expect": (part.strip().removeprefix("(").removesuffix(")"),)}
    for found in re.finditer(r"(?<![\w.])\d+\.?\d*(?![\w.])", text):
        for simple in ("0", "1", "2"):
            if len(simple) < len(found[0]):
                changed = text[: found.start()] + simple + text[found.end() :]
                yield {**fields, "expect": (changed,)}


def shrunk(report: Report, seconds: float, rounds: int = 40) -> Report:
    """Return a smaller claim about which the judge makes the same mistake."""
    kind = report.mistakes[0]
    for _ in range(rounds):
        for fields in simpler(report.planted.fields):
            # Of a changed claim nobody knows the truth: only what an attack shows counts.
            try:
                tried = mistakes_of(Planted(report.planted.family, fields, None), seconds)
            except Exception:
                continue
            if kind in tried.mistakes:
                report = tried
                break
        else:
            break
    return report


def sheet_of(fields: Fields) -> str:
    """Write a claim as a sheet."""

    def toml(value: Any) -> str:
        if isinstance(value, dict):
            return "{ " + ", ".join(f'"{k}" = {toml(v)}' for k, v in value.items()) + " }"
        if isinstance(value, list | tuple):
            return "[" + ", ".join(map(toml, value)) + "]"
        return json.dumps(value, ensure_ascii=False)

    lines = [f"{name} = {toml(value)}" for name, value in fields.items()]
    return "\n".join(["[[claim]]", 'id = "attempt"', *lines])


# ---- the command ----


@dataclass
class Tally:
    """Counts by family."""

    judged: Counter[str] = field(default_factory=Counter)
    decided: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, Counter[str]] = field(default_factory=lambda: {k: Counter() for k in KINDS})

    def add(self, report: Report) -> None:
        """Count one claim."""
        name = report.planted.family
        self.judged[name] += report.word != "refused"
        self.decided[name] += report.word in ("proved", "refuted")
        for kind in report.mistakes:
            self.wrong[kind][name] += 1

    def table(self) -> str:
        """Return the counts of every family and their sums."""
        head = f"{'family':28}{'judged':>8}{'decided':>9}" + "".join(f"{k:>17}" for k in KINDS)
        lines = [head]
        for name in [*sorted(self.judged), "all"]:
            counts = [self.judged, self.decided, *self.wrong.values()]
            cells = [sum(c.values()) if name == "all" else c[name] for c in counts]
            marks = "".join(f"{cell:>17}" for cell in cells[2:])
            lines.append(f"{name:28}{cells[0]:>8}{cells[1]:>9}{marks}")
        return "\n".join(lines)


def _one(task: tuple[int, int, float, tuple[str, ...]]) -> Report:
    seed, place, seconds, families = task
    planted = claim_at(seed, place, families)
    try:
        return mistakes_of(planted, seconds, place)
    except Exception as error:
        # A crash of the judge is no false statement, but it must be seen.
        return Report(planted, "refused", detail=f"crashed: {type(error).__name__}: {error}")


def main(arguments: list[str] | None = None) -> int:
    """Attack the judge with so many claims and say what was false."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--claims", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each claim")
    parser.add_argument("--minutes", type=float, default=math.inf, help="end after so long")
    parser.add_argument("--family", action="append", default=[], choices=list(FAMILIES))
    options = parser.parse_args(arguments)
    tally, start, found = Tally(), time.monotonic(), []
    tasks = [
        (options.seed, place, options.seconds, tuple(options.family))
        for place in range(options.claims)
    ]
    with multiprocessing.get_context("forkserver").Pool(options.workers) as pool:
        for done, report in enumerate(pool.imap_unordered(_one, tasks), 1):
            tally.add(report)
            if report.mistakes:
                found.append(report)
            if report.mistakes or report.detail.startswith("crashed"):
                what = ", ".join(report.mistakes) or "crashed"
                print(f"\n# {what} ({report.planted.family}): {report.detail}")
                print(sheet_of(report.planted.fields), flush=True)
            if done % max(1, options.claims // 20) == 0:
                print(f"# {done} claims in {time.monotonic() - start:.0f} s", file=sys.stderr)
            if time.monotonic() - start > 60 * options.minutes:
                break
    serious = [report for report in found if report.mistakes != ("false supported",)]
    for report in serious[:10]:
        small = shrunk(report, options.seconds)
        print(f"\n# shrunk: {', '.join(small.mistakes)}\n{sheet_of(small.planted.fields)}")
    print("\n" + tally.table())
    return 1 if serious else 0


if __name__ == "__main__":
    sys.exit(main())
