"""The shortest z with LSE(Bz + c) ≤ level, and a bound that proves it shortest.

LSE(x) = ln Σ exp(x_l) over the keys that should not be read. The problem is convex: for a
multiplier μ > 0 the minimiser of ½‖z‖² + μ LSE(Bz + c) is unique, LSE falls as μ grows, and
the μ at which LSE meets the level gives the answer.

Weak duality bounds every z that reaches the level. For any weights p (p ≥ 0, Σp = 1)

    level ≥ LSE(Bz + c) ≥ p·(Bz + c) + H(p)        so        ‖z‖ ≥ (H(p) + p·c − level) / ‖Bᵀp‖

and p = softmax(Bz + c) at the answer makes it tight. The same inequality with Bᵀp = 0 says
how low LSE can be at all: H(p) + p·c.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq, minimize

EPSILON = float(np.finfo(np.float64).eps)
MOST_DOUBLINGS = 2.0**8  # of the multiplier's logarithm: e^±256 covers every float64 problem


class Shortest(NamedTuple):
    """The shortest z found, and no z that reaches the level can be shorter than the bound."""

    z: Float[np.ndarray, " d"]
    norm_lower_bound: float


class Lowest(NamedTuple):
    """A z at which LSE(Bz + c) is (nearly) least, and the weights p = softmax there."""

    z: Float[np.ndarray, " d"]
    value: float
    p: Float[np.ndarray, " r"]


def log_sum_exp(x: Float[np.ndarray, " r"]) -> float:
    """Return ln Σ exp(x_l), safe for any finite x."""
    peak = float(x.max())
    return peak + math.log(float(np.exp(x - peak).sum()))


def entropy_of(p: Float[np.ndarray, " r"]) -> float:
    """Return −Σ p ln p, where 0 ln 0 = 0."""
    positive = p[p > 0]
    return float(-(positive * np.log(positive)).sum())


def smallest_scale(
    along: Float[np.ndarray, " r"], c: Float[np.ndarray, " r"], level: float, far: float
) -> float:
    """Return the smallest t ≥ 0 with LSE(t·along + c) ≤ level, which t = far must reach."""

    def excess(t: float) -> float:
        return log_sum_exp(t * along + c) - level

    if excess(0.0) <= 0:
        return 0.0
    if excess(far) >= 0:  # by rounding
        return far
    # LSE is convex in t and starts above the level: it crosses it once before `far`.
    t = float(brentq(excess, 0.0, far, xtol=1e-300, rtol=1e-15, maxiter=500))
    nudge = EPSILON
    while excess(t) > 0 and t < far:
        t, nudge = min(far, t * (1 + nudge)), nudge * 2
    return t


def shortest(
    B: Float[np.ndarray, "r d"],
    c: Float[np.ndarray, " r"],
    level: float,
    reaching: Float[np.ndarray, " d"],
) -> Shortest:
    """Return the shortest z with LSE(Bz + c) ≤ level, given one z that goes below it."""
    if log_sum_exp(c) <= level:
        return Shortest(np.zeros(B.shape[1]), 0.0)
    length = float(np.linalg.norm(reaching))
    # In y = z/length everything is of order one, whatever the units of the keys.
    wide, end = B * length, reaching / length
    narrow, basis = narrowed(wide)
    y = basis @ _tighten(narrow, c, level, end @ basis)
    # What rounding leaves above the level is walked off towards the z that reaches it.
    y = walked(wide, c, level, y, end)
    y = y * smallest_scale(wide @ y, c, level, 1.0)
    return Shortest(y * length, norm_bound(wide, c, level, y) * length)


def walked(
    B: Float[np.ndarray, "r d"],
    c: Float[np.ndarray, " r"],
    level: float,
    z: Float[np.ndarray, " d"],
    reaching: Float[np.ndarray, " d"],
) -> Float[np.ndarray, " d"]:
    """Return the first point on the way from z to `reaching` with LSE(B· + c) ≤ level."""
    way = reaching - z
    step = smallest_scale(B @ way, B @ z + c, level, 1.0)
    return reaching if step == 1.0 else np.asarray(z + step * way)


def norm_bound(
    B: Float[np.ndarray, "r d"],
    c: Float[np.ndarray, " r"],
    level: float,
    z: Float[np.ndarray, " d"],
) -> float:
    """Return the norm below which no z reaches the level, by the weights p that z gives."""
    p = _softmax(B @ z + c)
    slope = float(np.linalg.norm(p @ B))
    return max(0.0, (entropy_of(p) + float(p @ c) - level) / slope) if slope > 0 else 0.0


def lowest(B: Float[np.ndarray, "r d"], c: Float[np.ndarray, " r"]) -> Lowest:
    """Return where LSE(Bz + c) is least; without a minimum, a z close to its infimum."""
    size = float(np.linalg.norm(B, axis=1).max())
    if size == 0:
        z = np.zeros(B.shape[1])
    else:
        narrow, basis = narrowed(B / size)
        z = basis @ minimise(narrow, c, 1.0, np.zeros(narrow.shape[1]), ridge=0.0) / size
    x = B @ z + c
    value = log_sum_exp(x)
    return Lowest(z, value, np.exp(x - value))


def narrowed(
    B: Float[np.ndarray, "r d"],
) -> tuple[Float[np.ndarray, "r e"], Float[np.ndarray, "d e"]]:
    """Return B in coordinates of its own rows, and their basis: fewer when r < d.

    What is perpendicular to every row changes no logit and only makes z longer.
    """
    if len(B) >= B.shape[1]:
        return B, np.eye(B.shape[1])
    basis = np.linalg.qr(B.T)[0]
    return B @ basis, basis


def _tighten(
    wide: Float[np.ndarray, "r d"],
    c: Float[np.ndarray, " r"],
    level: float,
    y: Float[np.ndarray, " d"],
) -> Float[np.ndarray, " d"]:
    """Find the multiplier μ at which the minimiser of ½‖y‖² + μ LSE just meets the level."""
    x = wide @ y + c
    slope = float(np.linalg.norm(np.exp(x - log_sum_exp(x)) @ wide))
    state = {"y": y}

    def excess(log_multiplier: float) -> float:
        state["y"] = minimise(wide, c, math.exp(log_multiplier), state["y"], ridge=1.0)
        return log_sum_exp(wide @ state["y"] + c) - level

    low = high = -math.log(max(slope, 1e-300))
    step = 0.5
    if excess(low) > 0:
        while (above := excess(high)) > 0 and step < MOST_DOUBLINGS:
            low, high, step = high, high + step, step * 2
    else:
        while (above := excess(low)) < 0 and step < MOST_DOUBLINGS:
            high, low, step = low, low - step, step * 2
    if low < high and above != 0 and step < MOST_DOUBLINGS:
        excess(float(brentq(excess, low, high, xtol=1e-6)))
    return state["y"]


def minimise(
    B: Float[np.ndarray, "r d"],
    c: Float[np.ndarray, " r"],
    multiplier: float,
    start: Float[np.ndarray, " d"],
    ridge: float,
) -> Float[np.ndarray, " d"]:
    """Minimise ½ ridge ‖y‖² + multiplier · LSE(By + c) by a trust-region Newton method."""

    def value(y: Float[np.ndarray, " d"]) -> float:
        return 0.5 * ridge * float(y @ y) + multiplier * log_sum_exp(B @ y + c)

    def gradient(y: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        return np.asarray(ridge * y + multiplier * (_softmax(B @ y + c) @ B))

    def hessian(y: Float[np.ndarray, " d"]) -> Float[np.ndarray, "d d"]:
        p = _softmax(B @ y + c)
        heavy = p > 1e-13 * p.max()  # the rest cannot be seen in float64
        rows = B[heavy] * np.sqrt(p[heavy])[:, None]
        mean = p @ B
        curved = rows.T @ rows - np.outer(mean, mean)
        return np.asarray(ridge * np.eye(B.shape[1]) + multiplier * curved)

    # With a ridge, errors of y enter norms and bounds squared. Without one, the gradient
    # itself is the residual of a combination.
    precise = 1e-9 if ridge else 1e-11
    solved = minimize(
        value,
        start,
        jac=gradient,
        hess=hessian,
        method="trust-exact",
        options={"gtol": precise * max(1.0, multiplier), "maxiter": 200},
    )
    return np.asarray(solved.x, dtype=np.float64)


def _softmax(x: Float[np.ndarray, " r"]) -> Float[np.ndarray, " r"]:
    exponentials = np.exp(x - x.max())
    return np.asarray(exponentials / exponentials.sum())
