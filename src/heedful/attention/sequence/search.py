"""The search behind `design_kqv`: which position reads which, and with what matrices.

Scores are s·x_pᵀ M x_j with M = QᵀK, which may be any matrix. A **plan** says, for every
position p with a wanted output, the position j(p) it copies. A plan works when

    V x_{j(p)} = y_p                              has a solution V, and
    x_pᵀ M (x_{j(p)} − x_j) ≥ 1  for all other j  has a solution M.

Then β M reads j(p) ever more purely as β grows. Both systems are linear: the sparsest M and V
come from linear programmes (HiGHS), those of least norm from a least-distance problem.
Where no plan works, `search_mixtures` looks for weights that are not one-hot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.optimize import brentq, linprog, minimize

from heedful.attention.design.hull import rounding_of, separate
from heedful.attention.operation import softmax

PREFERENCES = ("sparse", "least_norm")
"""Which matrices are sought: few entries, or the least norm."""
MOST_NODES = 5_000
"""Partial plans looked at before the search settles for the best so far."""
MOST_PLANS = 64
"""Complete plans whose matrices are worked out and compared, if they are small."""
MOST_WORK = 4_000_000
"""Entries of all linear programmes together; large problems compare fewer plans."""
SAME = 1e-9
"""Vectors closer than this, relative to the largest input, are one vector."""


@dataclass(frozen=True, eq=False)
class PlanProblem:
    """Inputs and wanted outputs in the orthonormal coordinates in which matrices are sought."""

    X: Float[np.ndarray, "n d"]
    positions: tuple[int, ...]
    Y: Float[np.ndarray, "p v"]
    prefer: str
    V: Float[np.ndarray, "v d"] | None = None
    """Given when the values may not be chosen; None when V is part of the search."""
    uses: Float[np.ndarray, " d"] | None = None
    """How many inputs have a share in each axis; breaks ties between equally sparse M."""

    @property
    def size(self) -> float:
        """The largest norm among the inputs, 1 if all are 0."""
        return float(np.linalg.norm(self.X, axis=1).max()) or 1.0


@dataclass(frozen=True, eq=False)
class Solution:
    """A score matrix with unit margins, its scale, and V; `reads[p]` are the positions read."""

    M: Any
    V: Any
    beta: float
    reads: tuple[tuple[int, ...], ...]
    cost: float = math.inf


@dataclass(frozen=True, eq=False)
class PlanOutcome:
    """The best plan found, and how thorough the search was."""

    best: Solution | None
    compared: int
    exhaustive: bool


def search_plans(problem: PlanProblem, tolerance: float) -> PlanOutcome:
    """Return the plan whose matrices are smallest, among all plans if they are few enough."""
    best: Solution | None = None
    compared, nodes = 0, 0
    groups = same_vectors(problem.X, problem.size)
    entries = len(problem.positions) * problem.X.size * problem.X.shape[1]
    enough = max(1, min(MOST_PLANS, MOST_WORK // entries))
    for reads in _plans(problem, groups):
        nodes += 1
        if nodes > MOST_NODES or compared >= enough:
            return PlanOutcome(best, compared, exhaustive=False)
        if reads is None:
            continue
        solution = _solve(problem, reads, tolerance)
        if solution is not None:
            compared += 1
            if best is None or solution.cost < best.cost - 1e-9 * abs(best.cost):
                best = solution
    return PlanOutcome(best, compared, exhaustive=True)


def same_vectors(X: Any, size: float) -> tuple[tuple[int, ...], ...]:
    """Return the positions grouped by equal input vector, in order of first appearance."""
    groups: list[list[int]] = []
    for position, x in enumerate(X):
        for group in groups:
            if np.linalg.norm(X[group[0]] - x) <= SAME * size:
                group.append(position)
                break
        else:
            groups.append([position])
    return tuple(tuple(group) for group in groups)


def smallest_scale(scores: Any, reads: tuple[tuple[int, ...], ...], tolerance: float) -> float:
    """Return the smallest β ≥ 0 for which softmax(β scores) keeps 1 − tolerance on the plan.

    Every score outside the plan is at least 1 below those in it, so the mass outside falls
    with β, and β = ln(n/tolerance) is always enough.
    """

    def excess(beta: float) -> float:
        return 1.0 - tolerance - smallest_mass(softmax(beta * scores), reads)

    if excess(0.0) <= 0:
        return 0.0
    enough = math.log(scores.shape[1] / tolerance)
    beta = float(brentq(excess, 0.0, enough, xtol=1e-14, rtol=1e-14))
    while excess(beta) > 0:  # the root may lie a rounding below the wanted mass
        beta *= 1 + 1e-14
    return beta


def smallest_mass(weights: Any, reads: tuple[tuple[int, ...], ...]) -> float:
    """Return the mass on what each position should read, for the worst position."""
    return min(float(row[list(read)].sum()) for row, read in zip(weights, reads, strict=True))


def _plans(
    problem: PlanProblem, groups: tuple[tuple[int, ...], ...]
) -> Iterator[tuple[tuple[int, ...], ...] | None]:
    """Yield complete plans; None for each partial plan given up, so that work can be counted.

    A position whose input is 0 has equal scores whatever M is, so it reads everything. Other
    positions read a vertex of the hull of the inputs: nothing else can win a softmax.
    """
    X, size = problem.X, problem.size
    vertices = [group for group in groups if _is_vertex(X, groups, group, size)]
    everything = tuple(range(len(X)))
    inputs = X[list(problem.positions)]
    chosen: list[tuple[int, ...]] = []

    def extend() -> Iterator[tuple[tuple[int, ...], ...] | None]:
        step = len(chosen)
        if step == len(problem.positions):
            yield tuple(chosen)
            return
        zero = np.linalg.norm(inputs[step]) <= SAME * size
        for group in [everything] if zero else vertices:
            chosen.append(group)
            if _fits_values(problem, chosen) and _fits_inputs(inputs, chosen, size):
                yield from extend()
            else:
                yield None
            chosen.pop()

    yield from extend()


def _fits_inputs(inputs: Any, chosen: list[tuple[int, ...]], size: float) -> bool:
    """Equal inputs have equal scores, so they read the same."""
    last = len(chosen) - 1
    return all(
        chosen[other] == chosen[last]
        for other in range(last)
        if np.linalg.norm(inputs[other] - inputs[last]) <= SAME * size
    )


def _fits_values(problem: PlanProblem, chosen: list[tuple[int, ...]]) -> bool:
    """Is there one V that gives every wanted output chosen so far?"""
    A = _read_inputs(problem, chosen)
    Y = problem.Y[: len(chosen)]
    V = problem.V if problem.V is not None else np.linalg.lstsq(A, Y, rcond=1e-10)[0].T
    largest = float(np.abs(problem.Y).max()) or problem.size
    return bool(np.max(np.abs(A @ V.T - Y)) <= 1e-8 * largest)


def _read_inputs(problem: PlanProblem, reads: Any) -> Any:
    return np.array([problem.X[list(read)].mean(axis=0) for read in reads])


def _is_vertex(X: Any, groups: Any, group: tuple[int, ...], size: float) -> bool:
    others = [other[0] for other in groups if other is not group]
    if not others:
        return True
    gaps = X[others] - X[group[0]]
    return separate(gaps, rounding=max(rounding_of(gaps), SAME * size)).verdict == "outside"


def _solve(
    problem: PlanProblem, reads: tuple[tuple[int, ...], ...], tolerance: float
) -> Solution | None:
    sparse_wanted = problem.prefer == "sparse"
    M = _sparse_scores(problem, reads) if sparse_wanted else _least_scores(problem, reads)
    if M is None:
        return None
    scores = problem.X[list(problem.positions)] @ M @ problem.X.T
    beta = smallest_scale(scores, reads, tolerance)
    V = problem.V if problem.V is not None else _values(problem, reads)
    order = 1 if sparse_wanted else 2
    # Among equally small solutions, prefer the V that leaves components where they are.
    renamed = np.abs(V * (1.0 - np.eye(*V.shape))).sum() if sparse_wanted else 0.0
    cost = beta * _size(M, order) + _size(V, order) + 1e-3 * renamed
    return Solution(M, V, beta, reads, float(cost))


def _size(matrix: Any, order: int) -> float:
    return float(np.linalg.norm(matrix.ravel(), order))


def _constraints(problem: PlanProblem, reads: tuple[tuple[int, ...], ...]) -> tuple[Any, Any]:
    """Return the pairs (x_p, x_{j(p)} − x_j) whose product with M must be at least 1."""
    left, right = [], []
    for position, read in zip(problem.positions, reads, strict=True):
        for other in range(len(problem.X)):
            if other not in read:
                left.append(problem.X[position])
                right.append(problem.X[read[0]] - problem.X[other])
    width = problem.X.shape[1]
    return np.reshape(left, (-1, width)), np.reshape(right, (-1, width))


def _sparse_scores(problem: PlanProblem, reads: tuple[tuple[int, ...], ...]) -> Any:
    """Return the M with unit margins and the least sum of |entries|, or None."""
    left, right = _constraints(problem, reads)
    width = problem.X.shape[1]
    if not len(left):
        return np.zeros((width, width))
    rows = np.einsum("ci,cj->cij", left, right).reshape(len(left), -1)
    unit = float(np.abs(rows).max()) or 1.0
    # An axis that many inputs share says less about where to look: a tiny surcharge on it
    # decides between score matrices that are equally sparse.
    uses = np.zeros(width) if problem.uses is None else problem.uses
    price = 1.0 + 1e-3 * (np.add.outer(uses, uses)).ravel() / max(1.0, 2 * uses.max())
    programme = linprog(
        np.concatenate([price, price]),
        A_ub=np.hstack([-rows, rows]) / unit,
        b_ub=-np.ones(len(rows)),
        method="highs",
    )
    if programme.status != 0 or programme.x is None:
        return None
    plus, minus = np.split(programme.x, 2)
    return _unit_margins(_tidy((plus - minus).reshape(width, width)) / unit, left, right)


def _least_scores(problem: PlanProblem, reads: tuple[tuple[int, ...], ...]) -> Any:
    """Return the M of least Frobenius norm with unit margins, or None.

    If u is the unit direction along which every constraint has the widest margin δ, then u/δ
    is the shortest vector with unit margins. M lives in the span of the inputs.
    """
    left, right = _constraints(problem, reads)
    width = problem.X.shape[1]
    if not len(left):
        return np.zeros((width, width))
    span = span_of(problem.X) / problem.size
    rows = np.einsum("ci,cj->cij", left @ span.T, right @ span.T).reshape(len(left), -1)
    separation = separate(-rows, rounding=max(rounding_of(rows), SAME))
    if separation.verdict != "outside":
        return None
    M = span.T @ separation.direction.reshape(len(span), len(span)) @ span
    return _unit_margins(M / separation.margin, left, right)


def _unit_margins(M: Any, left: Any, right: Any) -> Any:
    """Return M with a smallest margin of exactly 1, or None if a solver left it far below."""
    margin = float(np.einsum("ci,ij,cj->c", left, M, right).min())
    return M / margin if margin > 0.5 else None


def span_of(X: Any) -> Any:
    """Return orthonormal rows that span the inputs."""
    _, singular, rows = np.linalg.svd(X, full_matrices=False)
    return rows[singular > 1e-12 * singular.max(initial=0.0)]


def _values(problem: PlanProblem, reads: tuple[tuple[int, ...], ...]) -> Any:
    """Return V with V x_{j(p)} = y_p: the sparsest, or the one of least norm."""
    A = _read_inputs(problem, reads)
    least = np.linalg.lstsq(A, problem.Y, rcond=1e-10)[0].T
    if problem.prefer == "least_norm":
        return least
    outputs, width = least.shape
    unit = float(np.abs(A).max()) or 1.0
    blocks = sparse.block_diag([sparse.coo_array(A / unit)] * outputs, format="csr")
    # Staying on its own axis is a shade cheaper than moving a component to another one.
    price = (1.0 + 1e-3 * (1.0 - np.eye(outputs, width))).ravel()
    programme = linprog(
        np.concatenate([price, price]),
        A_eq=sparse.hstack([blocks, -blocks], format="csr"),
        b_eq=(A @ least.T).T.ravel() / unit,
        method="highs",
    )
    if programme.status != 0 or programme.x is None:
        return least
    plus, minus = np.split(programme.x, 2)
    V = _tidy((plus - minus).reshape(outputs, width))
    # HiGHS meets equations to about 1e-7; keep the exact solution where that shows.
    largest = float(np.abs(problem.Y).max()) or 1.0
    return V if np.max(np.abs(A @ V.T - problem.Y)) <= 1e-8 * largest else least


def _tidy(matrix: Any) -> Any:
    largest = float(np.abs(matrix).max()) or 1.0
    return np.where(np.abs(matrix) > 1e-10 * largest, matrix, 0.0)


# Weights that mix several positions, for `design_kqv` when no plan of copies works.
#
#     minimise Σ_p |Σ_j α_pj V x_j − y_p|²   over M and V,   α_p = softmax_j(x_pᵀ M x_j)
#
# The search is local, from several starts: what it finds is checked, what it does not find
# proves nothing.

_STEPS: Any = {"maxiter": 500, "gtol": 1e-12, "ftol": 1e-15}


def search_mixtures(
    problem: PlanProblem, tolerance: float, *, starts: int = 9, seed: int = 0
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
        optimum = minimize(search.loss, begin, jac=True, method="L-BFGS-B", options=_STEPS)
        if optimum.fun < best_loss:
            best, best_loss = optimum.x, float(optimum.fun)
        if best_loss <= (1e-3 * tolerance) ** 2:
            break
    return search.solution(best) if search.worst(best) <= tolerance else None


class _Mixture:
    """The smooth problem: weights softmax(x_pᵀ M x_j), M in the span of inputs of size 1."""

    def __init__(self, problem: PlanProblem) -> None:
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
