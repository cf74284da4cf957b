"""The convex problem behind a design: the shortest query with wanted ratios and enough mass.

The target is w: positive on the support S, 0 on the other keys R. A query has exact ratios on
S when k_i·q − t = ln w_i for i in S and some t. With κ = Σ w_i k_i that is the linear system

    (k_i − κ)·q = ln w_i − Σ w ln w         for i in S          (least-norm solution q0)

and q = q0 + z keeps the ratios for every z perpendicular to all k_i − κ. On the other keys
the logits become, relative to t, Bz + c with b_l = k_l − κ (its part perpendicular to S), so

    mass on S = 1 / (1 + exp(LSE(Bz + c)))       and        total variation = 1 − mass on S

with LSE(x) = ln Σ exp(x_l). The system has no solution exactly when some y has Σ y_i = 0,
Σ y_i k_i = 0 and Σ y_i ln w_i ≠ 0: an affine dependency that the wanted weights do not obey.

What is left is the shortest z with LSE(Bz + c) ≤ level. It is convex: for a multiplier μ > 0 the
minimiser of ½‖z‖² + μ LSE(Bz + c) is unique, LSE falls as μ grows, and the μ at which LSE meets
the level gives the answer. Weak duality bounds every z that reaches the level. For any weights p
(p ≥ 0, Σp = 1)

    level ≥ LSE(Bz + c) ≥ p·(Bz + c) + H(p)        so        ‖z‖ ≥ (H(p) + p·c − level) / ‖Bᵀp‖

and p = softmax(Bz + c) at the answer makes it tight. The same inequality with Bᵀp = 0 says
how low LSE can be at all: H(p) + p·c.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import brentq, minimize

from heedful.arrays import EPSILON
from heedful.attention.design.hull import normalised

Vector = Float[np.ndarray, " d"]
Logits = Float[np.ndarray, " r"]

DEPENDENT = 1e-10
"""Keys of S closer than this to a dependency (relative to the keys' extent) count as dependent."""
MOST_DOUBLINGS = 2.0**8
"""Of the multiplier's logarithm: e^±256 covers every float64 problem."""


class Lowest(NamedTuple):
    """A z at which LSE(Bz + c) is (nearly) least, and the weights p = softmax there."""

    z: Vector
    value: float
    p: Logits


@dataclass(frozen=True, eq=False, kw_only=True)
class LogSumExp:
    """z ↦ LSE(Bz + c): how much the keys outside S hold against S."""

    B: Float[np.ndarray, "r d"]
    c: Logits

    def __call__(self, z: Vector) -> float:
        return log_sum_exp(self.B @ z + self.c)

    def shortest(self, level: float, reaching: Vector) -> Vector:
        """Return the shortest z with LSE(Bz + c) ≤ level, given one z that goes below it."""
        if log_sum_exp(self.c) <= level:
            return np.zeros(self.B.shape[1])
        length = float(np.linalg.norm(reaching))
        # In y = z/length everything is of order one, whatever the units of the keys.
        scaled, end = LogSumExp(B=self.B * length, c=self.c), reaching / length
        narrow, basis = scaled.narrowed()
        y = basis @ narrow._meet(level, end @ basis)
        # What rounding leaves above the level is walked off towards the z that reaches it.
        y = scaled.walked(level, y, end)
        y = y * smallest_scale(scaled.B @ y, self.c, level, 1.0)
        return np.asarray(y * length)

    def walked(self, level: float, z: Vector, reaching: Vector) -> Vector:
        """Return the first point on the way from z to `reaching` with LSE ≤ level."""
        way = reaching - z
        step = smallest_scale(self.B @ way, self.B @ z + self.c, level, 1.0)
        return reaching if step == 1.0 else np.asarray(z + step * way)

    def norm_bound(self, level: float, z: Vector) -> float:
        """Return the norm below which no z reaches the level, by the weights p that z gives."""
        p = _softmax(self.B @ z + self.c)
        slope = float(np.linalg.norm(p @ self.B))
        dual = entropy_of(p) + float(p @ self.c) - level
        return max(0.0, dual / slope) if slope > 0 else 0.0

    def lowest(self) -> Lowest:
        """Return where LSE(Bz + c) is least; without a minimum, a z close to its infimum."""
        size = float(np.linalg.norm(self.B, axis=1).max())
        z = np.zeros(self.B.shape[1])
        if size:
            narrow, basis = LogSumExp(B=self.B / size, c=self.c).narrowed()
            z = basis @ narrow.minimised(1.0, np.zeros(basis.shape[1]), ridge=0.0) / size
        x = self.B @ z + self.c
        value = log_sum_exp(x)
        return Lowest(z, value, np.exp(x - value))

    def narrowed(self) -> tuple[LogSumExp, Float[np.ndarray, "d e"]]:
        """Return the problem in coordinates of the rows of B, and their basis: fewer when r < d.

        What is perpendicular to every row changes no logit and only makes z longer.
        """
        if len(self.B) >= self.B.shape[1]:
            return self, np.eye(self.B.shape[1])
        basis = np.linalg.qr(self.B.T)[0]
        return LogSumExp(B=self.B @ basis, c=self.c), basis

    def _meet(self, level: float, y: Vector) -> Vector:
        """Find the multiplier μ at which the minimiser of ½‖y‖² + μ LSE just meets the level."""
        x = self.B @ y + self.c
        slope = float(np.linalg.norm(np.exp(x - log_sum_exp(x)) @ self.B))

        def excess(log_multiplier: float) -> float:
            # Each solution starts the next: the minimisers move little from one μ to another.
            nonlocal y
            y = self.minimised(math.exp(log_multiplier), y, ridge=1.0)
            return self(y) - level

        # At the optimum y = −μ Bᵀp, so μ ≈ ‖y‖/‖Bᵀp‖ with ‖y‖ ≈ 1; from there, double outwards
        # until the root is bracketed.
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
        return y

    def minimised(self, multiplier: float, start: Vector, ridge: float) -> Vector:
        """Minimise ½ ridge ‖y‖² + multiplier · LSE(By + c) by a trust-region Newton method."""
        B = self.B

        def value(y: Vector) -> float:
            return 0.5 * ridge * float(y @ y) + multiplier * self(y)

        def gradient(y: Vector) -> Vector:
            return np.asarray(ridge * y + multiplier * (_softmax(B @ y + self.c) @ B))

        def hessian(y: Vector) -> Float[np.ndarray, "d d"]:
            # The Hessian of LSE is the covariance of the rows of B under p.
            p = _softmax(B @ y + self.c)
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Ratios(LogSumExp):
    """The design problem in numbers of order one; x = q · 2^exponent · scale."""

    keys: Float[np.ndarray, "n d"]
    """The keys, centred and divided by 2^exponent."""
    exponent: int
    support: Int[np.ndarray, " m"]
    others: Int[np.ndarray, " r"]
    weights: Float[np.ndarray, " m"]
    """w on the support, all positive."""
    q0: Vector
    """The shortest x with the ratios of w on S (least squares if there is none)."""
    rounding: float
    """How far a product of a row of B with a unit vector may be off."""
    dependency: Float[np.ndarray, " m"] | None
    """y, when the wanted ratios cannot be had; Σ y_i ln w_i > 0 and Σ|y_i| = 1."""
    solver: Float[np.ndarray, "m d"]
    """Takes a vector in the span of k_i − κ to coefficients on S."""

    @property
    def kappa(self) -> Vector:
        """κ = Σ w_i k_i, in the centred keys."""
        return np.asarray(self.weights @ self.keys[self.support])

    def affine(self, combination: Logits) -> Float[np.ndarray, " m"]:
        """Return a on S with Σ a = 1 and Σ a_i k_i = Σ λ_l k_l, for λ with Bᵀλ = 0."""
        aim = combination @ self.keys[self.others] - self.kappa
        shift = self.solver @ aim
        return np.asarray(self.weights + shift - shift.sum() * self.weights)


def fix_ratios(keys: Float[np.ndarray, "n d"], target: Float[np.ndarray, " n"]) -> Ratios:
    """Solve the equalities on the support of `target`, and project the other keys."""
    centred, exponent = normalised(keys)
    support, others = np.flatnonzero(target > 0), np.flatnonzero(target <= 0)
    w = target[support] / target[support].sum()
    kappa = w @ centred[support]
    logs = np.log(w)
    A, b = centred[support] - kappa, logs - w @ logs
    left, singular, right = np.linalg.svd(A, full_matrices=False)
    rank = int((singular > DEPENDENT).sum())
    left, singular, right = left[:, :rank], singular[:rank], right[:rank]
    solver = (left / singular) @ right
    q0 = b @ solver
    rows = centred[others] - kappa
    size = float(np.sqrt(np.max(np.einsum("ij,ij->i", rows, rows), initial=0.0)))
    rounding = (keys.shape[1] + 8) * EPSILON * max(size, 1.0) * (4 if rank else 1)
    c = rows @ q0 + w @ logs
    B = rows - (rows @ right.T) @ right if rank else rows
    B[np.sqrt(np.einsum("ij,ij->i", B, B)) <= rounding] = 0.0  # inside the span of S
    return Ratios(
        keys=centred,
        exponent=exponent,
        support=support,
        others=others,
        weights=w,
        q0=q0,
        B=B,
        c=c,
        rounding=rounding,
        dependency=_dependency(b - left @ (left.T @ b), w, b),
        solver=solver,
    )


def _dependency(
    residual: Float[np.ndarray, " m"], w: Float[np.ndarray, " m"], b: Float[np.ndarray, " m"]
) -> Float[np.ndarray, " m"] | None:
    """Return y ⟂ every column of the system, with Σ y = 0, if b is out of the columns' span."""
    if np.abs(residual).max(initial=0.0) <= 1e-9 * max(1.0, float(np.abs(b).max())):
        return None
    y = residual - residual.sum() * w
    return np.asarray(y / np.abs(y).sum())


def error_floor(
    coefficients: Float[np.ndarray, " m"],
    weights: Float[np.ndarray, " m"],
    combination: Logits | None,
) -> float:
    """Return a total variation that no query whatsoever can go below.

    Let α be the weights of any query, within ε of w: then |α_i − w_i| ≤ ε on S, and the mass
    outside S is at most ε. A dependency (y on S) forces Σ y_i ln α_i = 0; a combination
    (a on S, λ on the others) forces Σ a_i ln α_i = Σ λ_l ln α_l ≤ ln ε − H(λ). Either fails
    for small ε: the floor is where it first can hold.
    """
    positive, negative = coefficients > 0, coefficients < 0
    if not positive.any():
        return 0.0
    highest = float(weights[positive].min())

    def excess(epsilon: float) -> float:
        total = float(coefficients[positive] @ np.log(weights[positive] - epsilon))
        total += float(coefficients[negative] @ np.log(weights[negative] + epsilon))
        if combination is not None:
            total += entropy_of(combination) - math.log(epsilon)
        return total

    low, high = 1e-300 if combination is not None else 0.0, highest * (1 - 1e-15)
    if excess(low) <= 0:
        return 0.0
    return high if excess(high) >= 0 else float(brentq(excess, low, high, xtol=1e-300))


def smallest_scale(along: Logits, c: Logits, level: float, far: float) -> float:
    """Return the smallest t ≥ 0 with LSE(t·along + c) ≤ level, which t = far must reach."""

    def excess(t: float) -> float:
        return log_sum_exp(t * along + c) - level

    if excess(0.0) <= 0:
        return 0.0
    if excess(far) >= 0:  # by rounding
        return far
    # LSE is convex in t and starts above the level: it crosses it once before `far`.
    t = float(brentq(excess, 0.0, far, xtol=1e-300, rtol=1e-15, maxiter=500))
    # The root may lie a rounding above the level; step past it, ever less timidly.
    nudge = EPSILON
    while excess(t) > 0 and t < far:
        t, nudge = min(far, t * (1 + nudge)), nudge * 2
    return t


def log_sum_exp(x: Logits) -> float:
    """Return ln Σ exp(x_l), safe for any finite x."""
    peak = float(x.max())
    return peak + math.log(float(np.exp(x - peak).sum()))


def entropy_of(p: Logits) -> float:
    """Return −Σ p ln p, where 0 ln 0 = 0."""
    positive = p[p > 0]
    return float(-(positive * np.log(positive)).sum())


def _softmax(x: Logits) -> Logits:
    exponentials = np.exp(x - x.max())
    return np.asarray(exponentials / exponentials.sum())
