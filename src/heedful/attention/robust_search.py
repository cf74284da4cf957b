"""The search behind robust heads: a smooth objective on fixed nodes, and many starts.

The expectation J(Q) = E‖c − t‖² is replaced by an average over fixed nodes of the key noise:
equally probable ones where a single normal is behind it all, scrambled Sobol points otherwise.
With e = c − t = Σ ᾱ_i (v_i − t) and g_i = 2 (v_i − t)·e / H, its gradient is

    ∂J/∂q_h = E Σ_i α_hi (g_i − Σ_j α_hj g_j) k_i.

Each query is written q_h = norm · ρ_h · u_h/‖u_h‖ with 0 ≤ ρ_h ≤ 1, so that ‖q_h‖ ≤ norm is a
box that L-BFGS-B keeps exactly. Queries live in the span of the means and of the directions of
noise: any component outside it could only add isotropic noise to the logits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from heedful.attention.arrays import Array
from heedful.attention.gaussian import GaussianKeys
from heedful.attention.quadrature import standard_grid

Progress = Callable[[int, int], None]
"""Called with how many starts are done, and how many there are."""

NODE_NUMBERS = 4_000_000
"""Most numbers in the nodes of an objective."""
SOBOL_DIMENSIONS = 21_201
"""SciPy's Sobol points go no further."""
SCREENED, POLISHED = 512, 4096
"""Nodes while screening the starts, and at most while polishing the best of them …"""
POLISHED_LOGITS = 1 << 17
"""… where no more than about this many logits are computed at once."""
KEPT = 3
"""How many screened starts are polished."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Objective:
    """J(Q) = average of ‖c − t‖² over nodes of the key noise, in reduced coordinates."""

    means: Float[np.ndarray, "n m"]
    """μ_i in the basis of the span."""
    noisy: tuple[int, ...]
    """Keys that move."""
    noise: Float[np.ndarray, "nodes N m"]
    """k_i − μ_i at each node."""
    errors: Float[np.ndarray, "n k"]
    """v_i − t, in as few coordinates as they span."""

    def __call__(self, Q: Float[np.ndarray, "H m"]) -> tuple[float, Float[np.ndarray, "H m"]]:
        """Return J and its gradient."""
        S, N, m = self.noise.shape
        H = len(Q)
        moving = list(self.noisy)
        flat = self.noise.reshape(S * N, m)
        logits = np.repeat((Q @ self.means.T)[None], S, axis=0)
        logits[:, :, moving] += (flat @ Q.T).reshape(S, N, H).transpose(0, 2, 1)
        logits -= logits.max(axis=2, keepdims=True)
        alpha = np.exp(logits, out=logits)
        alpha /= alpha.sum(axis=2, keepdims=True)
        residual = alpha.mean(axis=1) @ self.errors
        value = float((residual * residual).sum()) / S
        g = residual @ self.errors.T * (2.0 / (H * S))
        slope = alpha * (g[:, None] - (alpha * g[:, None]).sum(axis=2, keepdims=True))
        gradient = slope.sum(axis=0) @ self.means
        moved = slope[:, :, moving].transpose(1, 0, 2).reshape(H, S * N)
        return value, gradient + moved @ flat


def span(keys: GaussianKeys) -> Float[np.ndarray, "d m"]:
    """Return an orthonormal basis of the means and the directions of noise."""
    factors = [keys.factor(key).T for key in keys.covariances]
    rows = np.concatenate([keys.means, *(w[None] for w in keys.directions.values()), *factors])
    _, singular, right = np.linalg.svd(rows, full_matrices=False)
    rank = int((singular > 1e-12 * singular.max(initial=0.0)).sum())
    # A zero span would leave no query at all; any one direction serves.
    return right[: max(rank, 1)].T


def objective(
    keys: GaussianKeys, errors: Float[np.ndarray, "n v"], nodes: int, seed: int
) -> Objective:
    """Return the objective for errors v_i − t, on about `nodes` nodes."""
    U = span(keys)
    m = U.shape[1]
    columns: dict[int, Array] = {}
    for key in range(keys.n):
        parts = []
        if keys.isotropic[key] > 0:
            parts.append(np.sqrt(keys.isotropic[key]) * np.eye(m))
        if keys.variances.get(key, 0.0) > 0:
            parts.append(np.sqrt(keys.variances[key]) * (U.T @ keys.directions[key])[:, None])
        if key in keys.covariances:
            parts.append(U.T @ keys.factor(key))
        if parts:
            columns[key] = np.concatenate(parts, axis=1)
    total = sum(block.shape[1] for block in columns.values())
    allowed = NODE_NUMBERS // max(1, len(columns) * m)
    while nodes > allowed and nodes > 64:
        nodes //= 2
    xi = _nodes(total, nodes, seed)
    noise = np.zeros((len(xi), len(columns), m))
    start = 0
    for row, block in enumerate(columns.values()):
        width = block.shape[1]
        noise[:, row] = xi[:, start : start + width] @ block.T
        start += width
    if errors.shape[1] > len(errors):
        errors = np.asarray(np.linalg.qr(errors.T, mode="r")).T
    return Objective(means=keys.means @ U, noisy=tuple(columns), noise=noise, errors=errors)


@dataclass(frozen=True, eq=False, kw_only=True)
class Found:
    """A local optimum."""

    queries: Float[np.ndarray, "H m"]
    value: float
    gradient: float
    """Largest entry of the projected gradient in the search variables."""
    start: str
    nodes: int
    """Nodes the value is an average over."""


def polish(J: Objective, Q: Float[np.ndarray, "H m"], norm: float, steps: int, name: str) -> Found:
    """Descend from one start to a local optimum with ‖q_h‖ ≤ norm."""
    from scipy.optimize import minimize

    H, m = Q.shape
    length = np.linalg.norm(Q, axis=1, keepdims=True)
    unit = np.divide(Q, length, out=np.full_like(Q, 1.0 / np.sqrt(m)), where=length > 0)
    first = np.concatenate([(length[:, 0] / norm).clip(0.0, 1.0), unit.ravel()])

    def value(x: Array) -> tuple[float, Array]:
        J_value, gradient = J(unpack(x, H, norm))
        return J_value, pull_back(x, gradient, norm)

    bounds = [(0.0, 1.0)] * H + [(None, None)] * (H * m)
    result: Any = minimize(
        value,
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": steps, "ftol": 1e-13, "gtol": 1e-10},
    )
    best, gradient = np.asarray(result.x), np.asarray(result.jac)
    lengths = np.arange(len(best)) < H
    # Where a length is at its bound, a slope that points outward is no way to go.
    blocked = lengths & ((best >= 1.0) & (gradient < 0) | (best <= 0.0) & (gradient > 0))
    projected = np.where(blocked, 0.0, gradient)
    return Found(
        queries=unpack(best, H, norm),
        value=float(result.fun),
        gradient=float(np.abs(projected).max()),
        start=name,
        nodes=len(J.noise),
    )


def unpack(x: Float[np.ndarray, " variables"], H: int, norm: float) -> Float[np.ndarray, "H m"]:
    """Return q_h = norm ρ_h u_h/‖u_h‖ from the search variables (ρ, u)."""
    u = x[H:].reshape(H, -1)
    return np.asarray(norm * x[:H, None] * u / np.linalg.norm(u, axis=1, keepdims=True))


def pull_back(
    x: Float[np.ndarray, " variables"], gradient: Float[np.ndarray, "H m"], norm: float
) -> Float[np.ndarray, " variables"]:
    """Return the gradient in (ρ, u) from the gradient in the queries."""
    H = len(gradient)
    u = x[H:].reshape(H, -1)
    length = np.linalg.norm(u, axis=1, keepdims=True)
    unit = u / length
    along = (gradient * unit).sum(axis=1, keepdims=True)
    across = (gradient - along * unit) * (norm * x[:H, None] / length)
    return np.concatenate([norm * along[:, 0], across.ravel()])


def search(
    screen: Objective,
    final: Objective,
    starts: Sequence[tuple[str, Float[np.ndarray, "H m"]]],
    norm: float,
    progress: Progress | None = None,
) -> list[Found]:
    """Return the optima of the best starts, best first."""
    kept = min(KEPT, len(starts))
    total = len(starts) + kept
    screened = []
    for name, Q in starts:
        screened.append(polish(screen, Q, norm, 60, name))
        if progress:
            progress(len(screened), total)
    screened.sort(key=lambda found: found.value)
    polished = []
    for found in screened[:kept]:
        polished.append(polish(final, found.queries, norm, 300, found.start))
        if progress:
            progress(len(starts) + len(polished), total)
    return sorted(polished, key=lambda found: found.value)


def _nodes(total: int, nodes: int, seed: int) -> Array:
    """Return (nodes, total) standard normals that cover their space evenly."""
    if total == 0:
        return np.zeros((1, 0))
    if total == 1:
        return standard_grid(nodes)[:, None]
    if total > SOBOL_DIMENSIONS:
        return np.random.default_rng(seed).standard_normal((nodes, total))
    from scipy.special import ndtri
    from scipy.stats import qmc

    points = qmc.Sobol(total, rng=np.random.default_rng(seed)).random_base2(nodes.bit_length() - 1)
    return np.asarray(ndtri(points.clip(1e-12, 1.0 - 1e-12)))
