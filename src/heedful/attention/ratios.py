"""What is left to choose once a query has fixed the ratios of the weights on a set S.

The target is w: positive on the support S, 0 on the other keys R. A query has exact ratios on
S when k_i·q − t = ln w_i for i in S and some t. With κ = Σ w_i k_i that is the linear system

    (k_i − κ)·q = ln w_i − Σ w ln w         for i in S          (least-norm solution q0)

and q = q0 + z keeps the ratios for every z perpendicular to all k_i − κ. On the other keys
the logits become, relative to t, Bz + c with b_l = k_l − κ (its part perpendicular to S), so

    mass on S = 1 / (1 + exp(LSE(Bz + c)))       and        total variation = 1 − mass on S.

The system has no solution exactly when some y has Σ y_i = 0, Σ y_i k_i = 0 and
Σ y_i ln w_i ≠ 0: an affine dependency of the keys that the wanted weights do not obey.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import brentq

from heedful.attention.hull import EPSILON
from heedful.attention.least_norm import entropy_of

DEPENDENT = 1e-10
"""Keys of S closer than this to a dependency (relative to the keys' extent) count as dependent."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Ratios:
    """The design problem in numbers of order one; x = q · 2^exponent · scale."""

    keys: Float[np.ndarray, "n d"]
    """The keys, centred and divided by 2^exponent."""
    exponent: int
    support: Int[np.ndarray, " m"]
    others: Int[np.ndarray, " r"]
    weights: Float[np.ndarray, " m"]
    """w on the support, all positive."""
    q0: Float[np.ndarray, " d"]
    """The shortest x with the ratios of w on S (least squares if there is none)."""
    B: Float[np.ndarray, "r d"]
    c: Float[np.ndarray, " r"]
    rounding: float
    """How far a product of a row of B with a unit vector may be off."""
    dependency: Float[np.ndarray, " m"] | None
    """y, when the wanted ratios cannot be had; Σ y_i ln w_i > 0 and Σ|y_i| = 1."""
    solver: Float[np.ndarray, "m d"]
    """Takes a vector in the span of k_i − κ to coefficients on S."""

    @property
    def kappa(self) -> Float[np.ndarray, " d"]:
        """κ = Σ w_i k_i, in the centred keys."""
        return np.asarray(self.weights @ self.keys[self.support])

    def affine(self, combination: Float[np.ndarray, " r"]) -> Float[np.ndarray, " m"]:
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


def normalised(keys: Float[np.ndarray, "n d"]) -> tuple[Float[np.ndarray, "n d"], int]:
    """Return the keys around their mean, divided by the power of two 2^e next to their extent.

    Attention does not see a shift of all keys; a power of two divides without rounding.
    """
    first = _exponent(keys)
    small = np.ldexp(keys, -first)
    small = small - small.mean(axis=0)
    second = _exponent(small)
    return np.ldexp(small, -second), first + second


def error_floor(
    coefficients: Float[np.ndarray, " m"],
    weights: Float[np.ndarray, " m"],
    combination: Float[np.ndarray, " r"] | None,
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


def _dependency(
    residual: Float[np.ndarray, " m"], w: Float[np.ndarray, " m"], b: Float[np.ndarray, " m"]
) -> Float[np.ndarray, " m"] | None:
    if np.abs(residual).max(initial=0.0) <= 1e-9 * max(1.0, float(np.abs(b).max())):
        return None
    y = residual - residual.sum() * w
    return np.asarray(y / np.abs(y).sum())


def _exponent(array: Float[np.ndarray, "n d"]) -> int:
    largest = float(np.abs(array).max())
    return math.frexp(largest)[1] if largest > 0 else 0
