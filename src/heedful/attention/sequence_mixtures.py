"""Weights that mix several positions, for `design_kqv` when no plan of copies works.

    minimise Σ_p |Σ_j α_pj V x_j − y_p|²   over M and V,   α_p = softmax_j(x_pᵀ M x_j)

The search is local, from several starts: what it finds is checked, what it does not find
proves nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import minimize

from heedful.attention.operation import softmax
from heedful.attention.sequence_search import Problem, Solution, span_of

_STEPS: Any = {"maxiter": 500, "gtol": 1e-12, "ftol": 1e-15}


def search_mixtures(
    problem: Problem, tolerance: float, *, starts: int = 9, seed: int = 0
) -> Solution | None:
    """Return M and V whose weights need not be one-hot, from the best of several starts.

    With V free, the best V for given weights is a least-squares solution, so only M is
    searched; the gradient at that V is the gradient of the whole (envelope theorem).
    """
    search = _Mixture(problem)
    rng = np.random.default_rng(seed)
    best, best_loss = search.first_guess(), math.inf
    for start in range(starts):
        spread = 1.0 if start % 2 else 4.0
        begin = best if start == 0 else spread * rng.standard_normal(best.shape)
        found = minimize(search.loss, begin, jac=True, method="L-BFGS-B", options=_STEPS)
        if found.fun < best_loss:
            best, best_loss = found.x, float(found.fun)
        if best_loss <= (1e-3 * tolerance) ** 2:
            break
    return search.solution(best) if search.worst(best) <= tolerance else None


class _Mixture:
    """The smooth problem: weights softmax(x_pᵀ M x_j), M in the span of inputs of size 1."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.span = span_of(problem.X)
        self.X = problem.X @ self.span.T / problem.size
        self.inputs = self.X[list(problem.positions)]
        self.rank = len(self.span)
        self.unit = float(np.linalg.norm(problem.Y, axis=1).max()) or problem.size

    def first_guess(self) -> Any:
        """Return M = 0, or, where V is given, the M that matches the wanted averages.

        With V = I the wanted outputs are means of an exponential family whose parameters
        are Mᵀx_p, so Σ_p log Σ_j exp(x_pᵀ M x_j) − x_pᵀ M y_p is convex in M, and where the
        x_p are independent its minimum reaches every y_p inside the hull.
        """
        zero = np.zeros(self.rank**2)
        if self.problem.V is None:
            return zero
        means = self.problem.Y @ self.span.T / self.problem.size

        def potential(m: Any) -> tuple[float, Any]:
            logits = self.scores(m)
            weights = softmax(logits)
            peak = logits.max(axis=1)
            total = (peak + np.log(np.exp(logits - peak[:, None]).sum(axis=1))).sum()
            wanted = np.einsum("pi,ij,pj->", self.inputs, m.reshape(self.rank, -1), means)
            return float(total - wanted), (self.inputs.T @ (weights @ self.X - means)).ravel()

        return minimize(potential, zero, jac=True, method="L-BFGS-B", options=_STEPS).x

    def scores(self, m: Any) -> Any:
        return self.inputs @ m.reshape(self.rank, self.rank) @ self.X.T

    def parts(self, m: Any) -> tuple[Any, Any, Any]:
        """Return the weights, the best V for them, and the relative gaps that are left."""
        weights = softmax(self.scores(m))
        V, Y = self.problem.V, self.problem.Y
        if V is None:
            V = np.linalg.lstsq(weights @ self.problem.X, Y, rcond=1e-8)[0].T
        return weights, V, (weights @ self.problem.X @ V.T - Y) / self.unit

    def loss(self, m: Any) -> tuple[float, Any]:
        weights, V, gaps = self.parts(m)
        pull = 2.0 * gaps @ V @ self.problem.X.T / self.unit
        slope = weights * (pull - (weights * pull).sum(axis=1, keepdims=True))
        return float((gaps**2).sum()), (self.inputs.T @ slope @ self.X).ravel()

    def worst(self, m: Any) -> float:
        return float(np.linalg.norm(self.parts(m)[2], axis=1).max())

    def solution(self, m: Any) -> Solution:
        beta = float(np.ptp(self.scores(m), axis=1).max())
        M = self.span.T @ m.reshape(self.rank, self.rank) @ self.span / self.problem.size**2
        everything = tuple(range(len(self.X)))
        reads = (everything,) * len(self.problem.positions)
        return Solution(M / (beta or 1.0), self.parts(m)[1], beta, reads)
