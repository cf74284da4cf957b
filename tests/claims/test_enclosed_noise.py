"""Statistics of one noisy direction: enclosed by series on cells, with the tails bounded.

The oracle is the closed form, or a fine midpoint rule in float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from heedful.claims.balls import ORDER, Ball, Jet, Tail, exponential
from heedful.claims.compile import compile_claim
from heedful.claims.judge import judge_claim
from heedful.claims.search import Case
from heedful.claims.sheet import Claim
from heedful.claims.statistics import over_cells
from heedful.claims.worlds import quadrature_noise

ONE = {"keys": "gaussian", "covariance": {"a": "1/2 mu_a mu_a^T"}, "where": {"n": 2}}
NORMAL: dict[str, Any] = {"where": {"x": "normal"}}
LONG = {"keys": "gaussian", "covariance": {"a": "mu_a mu_a^T"}, "query": "12 mu_a",
        "where": {"n": 2}}  # fmt: skip

DECIDED: list[tuple[str, dict[str, Any], str]] = [
    ("P(k_a^T mu_a > 0) >= 0.92134", ONE, "proved"),
    ("P(k_a^T mu_a > 0) >= 0.92136", ONE, "refuted"),
    ("P(alpha_a > 0.9 given k_a^T mu_a > 0) >= 0.5", {**ONE, "query": "5 mu_a"}, "proved"),
    ("std(alpha_a given k_a^T mu_a > 0) <= 0.0951", {**ONE, "query": "5 mu_a"}, "proved"),
    ("std(alpha_a given k_a^T mu_a > 0) <= 0.0949", {**ONE, "query": "5 mu_a"}, "refuted"),
    ("E(exp(x)) ~ exp(1/2) within 1e-6", NORMAL, "proved"),
    ("E(exp(x)) ~ exp(1/2) + 2e-6 within 1e-6", NORMAL, "refuted"),
    ("E(x^4) ~ 3 within 1e-6", NORMAL, "proved"),
    ("E(abs(x)) ~ sqrt(2/pi) within 1e-6", NORMAL, "proved"),
    ("var(x) ~ 1 within 1e-6", NORMAL, "proved"),
    ("cov(x, x^2 + x) ~ 1 within 1e-6", NORMAL, "proved"),
    ("quantile(x, 0.975) ~ 1.959964 within 1e-5", NORMAL, "proved"),
    ("quantile(x, 0.975) <= 1.9599", NORMAL, "refuted"),
    ("P(x <= 6) = 1", NORMAL, "refuted"),
    ("E(exp(k_a^T q)) ~ exp(84) within 1e30", LONG, "proved"),
    ("E(exp(k_a^T q)) <= 3.02e36", LONG, "refuted"),
    ("var(k_a^T mu_b) <= 0", {"keys": "gaussian", "where": {"n": 2},
     "covariance": {"a": "(mu_a + 1e-20 mu_b) (mu_a + 1e-20 mu_b)^T"}}, "refuted"),
    ("var(c) < var(c_1)", {**ONE, "heads": ("mu_a", "mu_a")}, "refuted"),
    ("var(c) <= var(c_1)", {**ONE, "heads": ("mu_a", "mu_a")}, "proved"),
    ("alpha_a > 0 or x > 0", {**ONE, "query": "mu_a", "where": {"n": 2, "x": 1}}, "proved"),
]  # fmt: skip


@pytest.mark.parametrize(("expect", "fields", "verdict"), DECIDED, ids=[d[0] for d in DECIDED])
def test_one_noisy_direction_is_decided(expect: str, fields: dict[str, Any], verdict: str) -> None:
    made = judge_claim(Claim(id="noise", expect=(expect,), **fields), repair=False)
    assert made.verdict == verdict, made.evidence.statement


@settings(deadline=None, max_examples=8, phases=[Phase.explicit, Phase.generate])
@given(scale=st.floats(0.1, 6.0), shift=st.floats(-2.0, 2.0))
def test_a_series_encloses_what_the_midpoint_rule_finds(scale: float, shift: float) -> None:
    scale, shift = round(scale, 3), round(shift, 3)
    texts = {
        f"E(sigmoid({scale} x + {shift}))": lambda x: 1 / (1 + np.exp(-scale * x - shift)),
        f"E(tanh({scale} x) x)": lambda x: np.tanh(scale * x) * x,
        f"E(sqrt(x^2 + {scale}))": lambda x: np.sqrt(x * x + scale),
    }
    noise = quadrature_noise(20_001)
    for text, function in texts.items():
        claim = compile_claim(Claim(id="x", expect=(f"{text} >= 0",), **NORMAL))
        with ctx.workprec(256):
            made = over_cells(claim, Case()).value(claim.statement.left)  # type: ignore[union-attr]
        enclosure = made.entries.flat()
        wanted = float(np.sum(noise.weights * function(noise.coordinates[:, 0])))
        assert float(enclosure.rad()) < 1e-6
        assert float(enclosure.lower()) - 1e-5 <= wanted <= float(enclosure.upper()) + 1e-5


def test_a_jet_holds_the_function_on_its_whole_cell() -> None:
    cell = Jet.variable(arb(0.5), arb(1.5))
    made = exponential(cell * cell)  # exp(x²)
    for x in np.linspace(0.5, 1.5, 11):
        terms = [made.c[place] * arb(x - 1.0) ** place for place in range(ORDER)]
        value = sum(terms, made.over[ORDER] * arb(x - 1.0) ** ORDER)
        assert value.overlaps(arb(math.exp(x * x), 1e-12))


def test_a_tail_bounds_the_function_from_one_on() -> None:
    x = Tail.variable()
    made = Tail.of(x * x * exponential(x * Ball(arb(3)) + Ball(arb(1))) - x)
    for value in (1.0, -1.0, 2.0, -5.0, 9.0):
        bound = math.exp(made.c) * abs(value) ** made.power_of * math.exp(made.rate * abs(value))
        assert abs(value * value * math.exp(3 * value + 1) - value) <= bound
