"""Keys, queries and values drawn from one sequence: find K, Q and V for wanted outputs.

    c_p = Σ_j α_pj V x_j        α_p = softmax_j(s (K x_j)·(Q x_p))

Given x_1 … x_n (rows of x) and wanted outputs y_p at some positions, `design_kqv` finds
matrices of the asked form (K, Q and V; K and Q alone; none at all) with the smallest scale
that reaches the tolerance, or proves that none exist, or says that it found none.
Positions are counted from 0.

**The search.**
Scores are s·x_pᵀ M x_j with M = QᵀK, which may be any matrix. A **plan** says, for every
position p with a wanted output, the position j(p) it copies. A plan works when

    V x_{j(p)} = y_p                              has a solution V, and
    x_pᵀ M (x_{j(p)} − x_j) ≥ 1  for all other j  has a solution M.

Then β M reads j(p) ever more purely as β grows. Both systems are linear: the sparsest M and V
come from linear programmes (HiGHS), those of least norm from a least-distance problem.
Where no plan works, `search_mixtures` looks for weights that are not one-hot.

**The four-vector problem**: what self-attention can isolate with and without K, Q and V.
u_a, u_b, u_c and u_d are perpendicular and equally long; x_0 = u_d + u_b, x_1 = u_a,
x_2 = u_c + u_b. Wanted: c_1 ≈ u_b and c_0 ≈ u_b − u_c. Without matrices it cannot be done, and
`try_additions` answers what adding a multiple of some vector to an input would change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, ROUND_UP, Context
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are first used
from jaxtyping import Float

from heedful.arrays import between, index, matrix, number_of, one_of, vector, whole
from heedful.attention.hull import rounding_of, separate
from heedful.attention.operation import AttentionResult, Scale, attend, scale_of, softmax
from heedful.errors import InputError
from heedful.records import Record

# The search ----------------------------------------------------------------------------------

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
    beta = float(scipy.optimize.brentq(excess, 0.0, enough, xtol=1e-14, rtol=1e-14))
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
    programme = scipy.optimize.linprog(
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
    blocks = scipy.sparse.block_diag([scipy.sparse.coo_array(A / unit)] * outputs, format="csr")
    # Staying on its own axis is a shade cheaper than moving a component to another one.
    price = (1.0 + 1e-3 * (1.0 - np.eye(outputs, width))).ravel()
    programme = scipy.optimize.linprog(
        np.concatenate([price, price]),
        A_eq=scipy.sparse.hstack([blocks, -blocks], format="csr"),
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
        optimum = scipy.optimize.minimize(
            search.loss, begin, jac=True, method="L-BFGS-B", options=_STEPS
        )
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

        return scipy.optimize.minimize(
            potential, zero, jac=True, method="L-BFGS-B", options=_STEPS
        ).x

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


# K, Q and V for wanted outputs ---------------------------------------------------------------

FORMS: dict[str, str] = {
    "kqv": "K, Q and V are chosen",
    "values": "K and Q are chosen, V = I",
    "identity": "K = Q = V = I",
}
REACHED = ("plan", "mixture", "as it is")
"""Kinds of certificate that come with matrices that reach the tolerance."""
SAID = 6
"""A statement names what this many positions read."""
READABLE = 16
"""Up to this dimension the sparsest matrices are sought, beyond it those of least norm."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SequenceCertificate(Record):
    """What is guaranteed for a design, or why there is none."""

    kind: str
    """plan, mixture, as it is; or outside the hull, equal inputs, zero input, nothing to choose,
    not found."""
    proof: bool
    """Whether this settles the question; False only for `not found`."""
    statement: str
    """The reason in plain words."""
    bound: float | None = None
    """The largest distance between output and wanted output that the plan allows."""
    position: int | None = None
    """The position whose output cannot be had."""
    distance: float | None = None
    """How far, at least, every possible output of this form stays from the wanted one."""
    direction: Float[np.ndarray, " d"] | None = None
    """A unit direction along which every input stays at least `distance` short of it."""
    weights: Float[np.ndarray, " n"] | None = None
    """The weights that come nearest."""
    nearest: Float[np.ndarray, " d"] | None = None
    """The nearest possible output."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SequenceDesign(Record):
    """K, Q and V that give the wanted outputs, or the reason why there are none."""

    form: str
    """kqv, values (V = I) or identity (K = Q = V = I)."""
    feasible: bool
    """Whether the tolerance is reached; if not, the certificate says whether it can be."""
    beta: float | None = None
    """Smallest scale of the score matrix that reaches the tolerance. At scale 1 a plan's
    scores win by 1; a mixture's scores span 1; without matrices there is nothing to scale."""
    mass: float | None = None
    """Weight on what each position should read, at the worst position."""
    error: float | None = None
    """Largest |c_p − y_p| as a share of `error_scale`."""
    error_absolute: float | None = None
    """Largest |c_p − y_p|."""
    error_scale: float
    """The largest norm of a wanted output (of an input, if all wanted outputs are 0)."""
    tolerance: float
    """Weight that may go astray in a plan; relative error that is allowed otherwise."""
    scale: float
    """s in the softmax."""
    K: Float[np.ndarray, "d d"] | None = None
    """Makes keys: k_j = K x_j."""
    Q: Float[np.ndarray, "d d"] | None = None
    """Makes queries: q_p = Q x_p; it carries the scale β."""
    V: Float[np.ndarray, "v d"] | None = None
    """Makes values: v_j = V x_j."""
    positions: tuple[int, ...]
    """The positions with a wanted output, ascending; rows below follow this order."""
    wanted: Float[np.ndarray, "p v"]
    """y_p."""
    plan: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Which positions each of them is meant to read; empty if there is no plan."""
    weights: Float[np.ndarray, "p n"] | None = None
    """α_p."""
    outputs: Float[np.ndarray, "p v"] | None = None
    """c_p."""
    expressions: dict[str, str]
    """K, Q and V, the outputs c and the wanted y in the named vectors."""
    certificate: SequenceCertificate
    """What is guaranteed, or why it cannot be had."""


def design_kqv(
    x: Any,
    wanted: Any,
    *,
    form: str = "kqv",
    tolerance: float = 0.01,
    scale: Scale = 1.0,
    basis: Mapping[str, Any] | None = None,
    prefer: str | None = None,
) -> SequenceDesign:
    """Find K, Q and V with c_p ≈ y_p for every wanted position, or prove that none exist.

    `x` is (n, d); `wanted` maps positions, counted from 0, to vectors. `basis` names
    perpendicular vectors in which the matrices are sought and written. `prefer` is "sparse" (few
    entries, readable) or "least_norm"; left out, it is sparse up to 16 dimensions.

    >>> from heedful.attention.sequence import four_vector_problem
    >>> four = four_vector_problem()
    >>> design = design_kqv(four.x, four.wanted, basis=four.basis)
    >>> for name in "KQV":
    ...     print(name, "=", design.expressions[name])
    K = u_c u_cᵀ + u_d u_dᵀ
    Q = 5.288 (u_c u_dᵀ + u_d u_aᵀ)
    V = u_b u_bᵀ − u_c u_cᵀ
    >>> design_kqv(four.x, four.wanted, form="identity").certificate.kind
    'outside the hull'
    """
    task = _checked(x, wanted, form, tolerance, scale, basis)
    readable = "sparse" if task.x.shape[1] <= READABLE else "least_norm"
    prefer = readable if prefer is None else one_of("prefer", prefer, PREFERENCES)
    if form == "identity":
        return _as_it_is(task)
    values_fixed = form == "values"
    asked = (task.x, task.positions, task.Y, task.allowed)
    proof = outside_hull(*asked, task.frame) if values_fixed else None
    proof = proof or equal_inputs(*asked) or zero_input(*asked, values_fixed=values_fixed)
    if proof is not None:
        return _design(task, proof, None, {})
    problem = _in_frame(task, prefer)
    outcome = search_plans(problem, task.tolerance)
    solution = outcome.best or search_mixtures(problem, task.tolerance)
    if solution is not None:
        return _with(task, solution, outcome)
    not_found = SequenceCertificate(
        kind="not found",
        proof=False,
        statement=(
            f"{_no_plan(outcome)}, and a local search over other weights did not reach the "
            "tolerance; this is not a proof that no K, Q and V exist"
        ),
    )
    return _design(task, not_found, None, {})


@dataclass(frozen=True, eq=False)
class _Task:
    x: Any
    positions: tuple[int, ...]
    Y: Any
    form: str
    tolerance: float
    scale: float
    frame: Frame
    outputs_frame: Frame

    @property
    def inputs(self) -> Any:
        return self.x[list(self.positions)]

    @property
    def error_scale(self) -> float:
        largest = float(np.linalg.norm(self.Y, axis=1).max())
        return largest or float(np.linalg.norm(self.x, axis=1).max()) or 1.0

    @property
    def allowed(self) -> float:
        return self.tolerance * self.error_scale


def _checked(
    x: Any,
    wanted: Any,
    form: str,
    tolerance: float,
    scale: Scale,
    basis: Mapping[str, Any] | None,
) -> _Task:
    one_of("form", form, FORMS)
    x = matrix("x", x)
    if not isinstance(wanted, Mapping) or not wanted:
        raise InputError(
            "wanted",
            "names no position" if isinstance(wanted, Mapping) else f"is a {type(wanted).__name__}",
            expected="at least one position with its wanted output was expected",
        )
    positions = tuple(sorted(index("wanted", p, len(x), "position") for p in wanted))
    width = x.shape[1] if form != "kqv" else None
    rows = [vector(f"wanted[{p}]", wanted[p], length=width) for p in positions]
    if len({len(row) for row in rows}) > 1:
        raise InputError(
            "wanted",
            f"has outputs of {len(rows[0])} and other numbers of entries",
            expected="outputs of one length were expected",
        )
    _moderate("x", x)
    _moderate("wanted", np.array(rows))
    own = frame(basis, x.shape[1])
    same_space = len(rows[0]) == x.shape[1]
    return _Task(
        x=x,
        positions=positions,
        Y=np.array(rows),
        form=form,
        tolerance=between("tolerance", tolerance, 0.0, 1.0),
        scale=scale_of(scale, x.shape[1]),
        frame=own,
        outputs_frame=own if same_space else frame(None, len(rows[0])),
    )


def _moderate(name: str, rows: Any) -> None:
    """Refuse sizes whose products leave the range of float64."""
    largest = float(np.abs(rows).max())
    if largest and not 1e-60 < largest < 1e60:
        raise InputError(
            name,
            f"has entries up to {largest:.3g}",
            expected="entries between 1e-60 and 1e60 in size were expected",
            hint="choose another unit",
        )


def _in_frame(task: _Task, prefer: str) -> PlanProblem:
    X = task.frame.coordinates(task.x)
    d = X.shape[1]
    return PlanProblem(
        X=X,
        positions=task.positions,
        Y=task.outputs_frame.coordinates(task.Y),
        prefer=prefer,
        V=np.eye(d) if task.form == "values" else None,
        uses=(np.abs(X) > 1e-9 * (np.abs(X).max() or 1.0)).sum(axis=0).astype(float),
    )


def _with(task: _Task, solution: Solution, outcome: PlanOutcome) -> SequenceDesign:
    """Turn a score matrix into K and Q, read once more from scratch, and certify."""
    # K keeps the axes that M reads and Q holds the rest: M = QᵀK, and K can be read.
    used = np.diag(np.any(solution.M != 0, axis=0).astype(float))
    K = task.frame.matrix(used)
    Q = task.frame.matrix(solution.beta / task.scale * solution.M.T)
    V = task.outputs_frame.axes.T @ solution.V @ task.frame.axes
    said = {"K": task.frame.sum_of_products(K), "Q": task.frame.sum_of_products(Q)}
    if task.form == "values":
        said["V"] = "I"
    elif task.outputs_frame is task.frame:
        said["V"] = task.frame.sum_of_products(V)
    reading = attend(task.inputs @ Q.T, task.x @ K.T, task.x @ V.T, scale=task.scale)
    if outcome.best is solution:
        certificate = _plan_certificate(task, solution, outcome, task.x @ V.T)
    else:
        certificate = SequenceCertificate(
            kind="mixture",
            proof=True,
            bound=float(np.linalg.norm(reading.output - task.Y, axis=1).max()),
            statement=(
                f"{_no_plan(outcome)}; these weights mix several positions and miss the wanted "
                f"outputs by at most {task.tolerance:g} of the largest of them"
            ),
        )
    return _design(
        task,
        certificate,
        reading,
        said,
        beta=solution.beta,
        mass=smallest_mass(reading.weights, solution.reads),
        K=K,
        Q=Q,
        V=V,
        plan=dict(zip(task.positions, solution.reads, strict=True)),
    )


def _design(
    task: _Task,
    certificate: SequenceCertificate,
    reading: AttentionResult | None,
    said: dict[str, str],
    **results: Any,
) -> SequenceDesign:
    """Put a record together; without a reading there is no design to show."""
    words = task.outputs_frame.sum_of_vectors
    for position, row in zip(task.positions, task.Y, strict=True):
        said[f"y_{position}"] = words(row)
    if reading is not None:
        for position, row in zip(task.positions, reading.output, strict=True):
            said[f"c_{position}"] = words(row, negligible=1e-4)
        absolute = float(np.linalg.norm(reading.output - task.Y, axis=1).max())
        results |= {
            "error": absolute / task.error_scale,
            "error_absolute": absolute,
            "weights": reading.weights,
            "outputs": reading.output,
        }
    return SequenceDesign(
        form=task.form,
        feasible=certificate.kind in REACHED,
        error_scale=task.error_scale,
        tolerance=task.tolerance,
        scale=task.scale,
        positions=task.positions,
        wanted=task.Y,
        expressions=said,
        certificate=certificate,
        **results,
    )


def _plan_certificate(
    task: _Task, solution: Solution, outcome: PlanOutcome, values: Any
) -> SequenceCertificate:
    bound = 0.0
    for read, wanted in zip(solution.reads, task.Y, strict=True):
        others = [j for j in range(len(task.x)) if j not in read]
        if others:
            astray = float(np.linalg.norm(values[others] - wanted, axis=1).max())
            bound = max(bound, task.tolerance * astray)
    said = ", ".join(
        f"position {p} reads {' and '.join(map(str, read))}"
        for p, read in zip(task.positions[:SAID], solution.reads[:SAID], strict=True)
    )
    more = len(task.positions) - SAID
    said += f", {more} more positions as in the plan" if more > 0 else ""
    plans = f"{outcome.compared} plan{'s' if outcome.compared != 1 else ''}"
    among = f"all {plans} that work" if outcome.exhaustive else f"the first {plans} that work"
    return SequenceCertificate(
        kind="plan",
        proof=True,
        bound=bound,
        statement=(
            f"{said}, each with at least {1 - task.tolerance:g} of its weight from β = "
            f"{at_most(solution.beta)} on, so every output is within {at_most(bound)} of the "
            f"wanted one; the smallest matrices among {among}"
        ),
    )


def _as_it_is(task: _Task) -> SequenceDesign:
    """Read with K = Q = V = I, and say why the wanted outputs are not reached."""
    reading = attend(task.inputs, task.x, task.x, scale=task.scale)
    gaps = np.linalg.norm(reading.output - task.Y, axis=1)
    worst = int(gaps.argmax())
    certificate: SequenceCertificate | None
    if gaps[worst] <= task.allowed:
        certificate = SequenceCertificate(
            kind="as it is",
            proof=True,
            bound=float(gaps[worst]),
            statement=f"K = Q = V = I already comes within {at_most(gaps[worst])} of every output",
        )
    else:
        certificate = outside_hull(task.x, task.positions, task.Y, task.allowed, task.frame)
    if certificate is None:
        certificate = nothing_to_choose(
            task.positions[worst], reading.output[worst], task.Y[worst], task.frame
        )
    eye = np.eye(task.x.shape[1])
    said = {"K": "I", "Q": "I", "V": "I"}
    return _design(task, certificate, reading, said, K=eye, Q=eye, V=eye)


def _no_plan(outcome: PlanOutcome) -> str:
    if outcome.exhaustive:
        return "no plan in which each position copies one other works"
    return "no plan of copies that works was among those tried"


# Why K, Q and V of an asked form cannot exist: proofs in plain words.
#
# Whatever the weights are, they are non-negative and sum to 1, so with V = I an output is a
# point of the convex hull of the inputs. A wanted output outside the hull is out of reach for
# every K and Q, and a direction shows it. With V free, two facts remain: equal inputs have
# equal outputs, and a position with input 0 reads everything equally.


def outside_hull(
    x: Any, positions: tuple[int, ...], Y: Any, allowed: float, frame: Frame
) -> SequenceCertificate | None:
    """Prove for which wanted outputs no weights at all would do, the farthest one in full."""
    separations = {p: separate(x - wanted) for p, wanted in zip(positions, Y, strict=True)}
    outside = {p: one for p, one in separations.items() if one.margin > allowed}
    if not outside:
        return None
    words = dict(zip(positions, map(frame.sum_of_vectors, Y), strict=True))
    position = max(outside, key=lambda p: outside[p].margin)
    farthest = outside[position]
    weights = np.zeros(len(x))
    weights[farthest.members] = farthest.weights
    others = "".join(
        f"; nor can c_{p} be {words[p]}, which is {at_least(one.margin)} away from every average"
        for p, one in outside.items()
        if p != position
    )
    return SequenceCertificate(
        kind="outside the hull",
        proof=True,
        position=position,
        distance=farthest.margin,
        direction=farthest.direction,
        weights=weights,
        nearest=weights @ x,
        statement=(
            f"c_{position} cannot be {words[position]}: with V = I every output is an average of "
            f"x_0 … x_{len(x) - 1}, and the nearest average, {frame.sum_of_vectors(weights @ x)}, "
            f"is {at_least(farthest.margin)} away; along "
            f"{frame.sum_of_vectors(farthest.direction)} every x_j stays at least that far short "
            f"of it, so no K and Q, and no weights at all, can reach it{others}"
        ),
    )


def equal_inputs(
    x: Any, positions: tuple[int, ...], Y: Any, allowed: float
) -> SequenceCertificate | None:
    """Prove that two positions with one input cannot have two outputs, if they should."""
    size = float(np.linalg.norm(x, axis=1).max()) or 1.0
    wanted = dict(zip(positions, Y, strict=True))
    for group in same_vectors(x, size):
        asked = [position for position in group if position in wanted]
        for second in asked[1:]:
            half = float(np.linalg.norm(wanted[second] - wanted[asked[0]])) / 2
            if half > allowed:
                return SequenceCertificate(
                    kind="equal inputs",
                    proof=True,
                    position=second,
                    distance=half,
                    statement=(
                        f"positions {asked[0]} and {second} have the same input, so they have "
                        "the same query, the same weights and the same output for every K, Q "
                        f"and V; the two outputs wanted lie {2 * half:.4g} apart, so one of them "
                        f"is missed by at least {at_least(half)}"
                    ),
                )
    return None


def zero_input(
    x: Any, positions: tuple[int, ...], Y: Any, allowed: float, *, values_fixed: bool
) -> SequenceCertificate | None:
    """Prove that a position with input 0 gets the plain mean, if something else is wanted."""
    mean = x.mean(axis=0)
    size = float(np.abs(x).max()) or 1.0
    if not values_fixed and np.abs(mean).max() > 1e-12 * size:
        return None  # V may send the mean anywhere
    for position, wanted in zip(positions, Y, strict=True):
        if np.any(x[position]):
            continue
        reached = mean if values_fixed else np.zeros_like(wanted)
        distance = float(np.linalg.norm(wanted - reached))
        if distance > allowed:
            what = "the mean of the inputs" if values_fixed else "V times their mean, which is 0"
            return SequenceCertificate(
                kind="zero input",
                proof=True,
                position=position,
                distance=distance,
                nearest=reached,
                statement=(
                    f"x_{position} = 0 has the query 0 for every Q, so position {position} reads "
                    f"all inputs equally and its output is {what}; the wanted output is "
                    f"{distance:.4g} away from that"
                ),
            )
    return None


def nothing_to_choose(position: int, output: Any, wanted: Any, frame: Frame) -> SequenceCertificate:
    """State that K = Q = V = I gives another output, though other weights would do."""
    distance = float(np.linalg.norm(output - wanted))
    return SequenceCertificate(
        kind="nothing to choose",
        proof=True,
        position=position,
        distance=distance,
        nearest=output,
        statement=(
            f"with K = Q = V = I there is nothing to choose: c_{position} is "
            f"{frame.sum_of_vectors(output, negligible=1e-4)}, which is {distance:.4g} away "
            f"from the wanted {frame.sum_of_vectors(wanted)}; other weights could come closer"
        ),
    )


def at_least(bound: float) -> str:
    """Write a lower bound, rounded down so that the sentence stays true."""
    return f"{float(Context(prec=4, rounding=ROUND_DOWN).create_decimal(bound)):.4g}"


def at_most(bound: float) -> str:
    """Write an upper bound, rounded up so that the sentence stays true."""
    return f"{float(Context(prec=4, rounding=ROUND_UP).create_decimal(bound)):.4g}"


# Matrices written as sums of outer products of named vectors: K = u_d u_dᵀ + u_c u_cᵀ.
#
# A frame is a set of named, mutually perpendicular vectors that spans the whole space. In a
# frame every matrix is Σ C_ij u_i u_jᵀ, and a matrix with few coefficients C can be read.

NEGLIGIBLE = 1e-9
"""Coefficients below this share of the largest are rounding and are not written."""

MOST_TERMS = 16
"""A longer sum is no longer readable; it is described instead of written."""


@dataclass(frozen=True, eq=False)
class Frame:
    """Named perpendicular vectors that span the space."""

    names: tuple[str, ...]
    norms: Float[np.ndarray, " d"]
    axes: Float[np.ndarray, "d d"]
    """Orthonormal, one row for each name; the named vector is norm × row."""

    def coordinates(self, rows: Any) -> Any:
        """Return rows (n, d) in orthonormal coordinates of the frame."""
        return rows @ self.axes.T

    def matrix(self, C: Any) -> Any:
        """Return Σ C_ij û_i û_jᵀ in the original coordinates, û being the unit axes."""
        return self.axes.T @ C @ self.axes

    def sum_of_vectors(self, value: Any, negligible: float = NEGLIGIBLE) -> str:
        """Write a vector as a sum of the named ones, without shares that are negligible.

        >>> frame({"u": [2.0, 0.0], "w": [0.0, 1.0]}, 2).sum_of_vectors(np.array([1.0, -3.0]))
        '0.5 u − 3 w'
        """
        shares = (self.axes @ value) / self.norms
        return _sum(list(zip(shares.tolist(), self.names, strict=True)), negligible)

    def sum_of_products(self, W: Any) -> str:
        """Write a matrix as a sum of outer products of the named vectors.

        >>> frame({"u": [2.0, 0.0], "w": [0.0, 1.0]}, 2).sum_of_products(np.diag([4.0, 1.0]))
        'u uᵀ + w wᵀ'
        """
        C = (self.axes @ W @ self.axes.T) / np.outer(self.norms, self.norms)
        terms = [
            (float(C[i, j]), f"{left} {right}ᵀ")
            for i, left in enumerate(self.names)
            for j, right in enumerate(self.names)
        ]
        return _sum(terms, NEGLIGIBLE)


def frame(basis: Mapping[str, Any] | None, dimension: int) -> Frame:
    """Return the frame of a named basis, completed to the whole space; e_0… when left out."""
    if basis is None:
        names = tuple(f"e_{i}" for i in range(dimension))
        return Frame(names, np.ones(dimension), np.eye(dimension))
    if not basis:
        raise InputError("basis", "names no vector", expected="at least one vector was expected")
    rows = np.array(
        [vector(f"basis[{name}]", value, length=dimension) for name, value in basis.items()]
    )
    norms = np.linalg.norm(rows, axis=1)
    names = tuple(basis)
    for name, norm in zip(names, norms, strict=True):
        if norm == 0:
            raise InputError(f"basis[{name}]", "is the zero vector", expected="a direction")
    units = rows / norms[:, None]
    overlap = np.abs(units @ units.T - np.eye(len(units)))
    if overlap.max() > 1e-9:
        first, second = np.unravel_index(int(overlap.argmax()), overlap.shape)
        raise InputError(
            "basis",
            f"{names[int(first)]} and {names[int(second)]} are not perpendicular",
            expected="mutually perpendicular vectors were expected",
            hint="leave the basis out to have the matrices in the ordinary axes",
        )
    return _completed(names, norms, units, dimension)


def _completed(names: tuple[str, ...], norms: Any, units: Any, dimension: int) -> Frame:
    missing = dimension - len(names)
    if missing == 0:
        return Frame(names, norms, units)
    # The rows of Vᵀ beyond the rank span what the named vectors leave open.
    rest = np.linalg.svd(units)[2][len(names) :]
    return Frame(
        (*names, *(f"w_{i}" for i in range(missing))),
        np.concatenate([norms, np.ones(missing)]),
        np.concatenate([units, rest]),
    )


def _sum(terms: list[tuple[float, str]], negligible: float) -> str:
    largest = max((abs(share) for share, _ in terms), default=0.0)
    if largest == 0:
        return "0"
    kept = [(share, what) for share, what in terms if abs(share) > negligible * largest]
    if len(kept) > MOST_TERMS:
        return f"a sum of {len(kept)} terms"
    factor = abs(kept[0][0])
    alike = all(abs(abs(share) - factor) <= negligible * largest for share, _ in kept)
    if alike and len(kept) > 1 and abs(factor - 1.0) > negligible:
        inner = [(math.copysign(1.0, share), what) for share, what in kept]
        return f"{factor:.4g} ({_joined(inner, negligible)})"
    return _joined(kept, negligible)


def _joined(terms: list[tuple[float, str]], negligible: float) -> str:
    text = ""
    for share, what in terms:
        size = "" if abs(abs(share) - 1.0) <= negligible else f"{abs(share):.4g} "
        sign = ("−" if share < 0 else "") if not text else (" − " if share < 0 else " + ")
        text += f"{sign}{size}{what}"
    return text


# The four-vector problem ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class FourVectors(Record):
    """Three inputs made of four perpendicular vectors, and two wanted outputs."""

    norm: float
    """|u_a| = |u_b| = |u_c| = |u_d|."""
    basis: dict[str, Any]
    """u_a, u_b, u_c and u_d."""
    x: Float[np.ndarray, "3 d"]
    """x_0 = u_d + u_b, x_1 = u_a, x_2 = u_c + u_b."""
    wanted: dict[int, Any]
    """c_1 ≈ u_b and c_0 ≈ u_b − u_c."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Addition(Record):
    """What attention without matrices gives when a vector is added to one input."""

    name: str
    """The vector added."""
    multiple: float
    """How much of it."""
    input: Float[np.ndarray, " d"]
    """The changed input."""
    output: Float[np.ndarray, " d"]
    """The output at that position with K = Q = V = I."""
    weights: Float[np.ndarray, " n"]
    """What that position reads."""
    error: float
    """Distance between this output and the wanted one."""
    impossible: bool
    """Proved: with this addition no weights at all give the wanted output."""
    distance: float
    """How far every average of the inputs stays from it; 0 when not proved."""
    best_multiple: float
    """The multiple with the smallest error in a scan from −10 to 10."""
    best_error: float
    """That smallest error; a scan, not a proof."""
    statement: str
    """The finding in words."""


def four_vector_problem(norm: float = 1.0, dimension: int = 4) -> FourVectors:
    """Return the four-vector problem: inputs that share u_b, which one output must isolate.

    >>> four_vector_problem(norm=2.0).x
    array([[0., 2., 0., 2.],
           [2., 0., 0., 0.],
           [0., 2., 2., 0.]])
    """
    size = between("norm", norm, 0.0, 1e100)
    dimension = whole("dimension", dimension, 4)  # four vectors are to be perpendicular
    a, b, c, d = size * np.eye(4, dimension)
    return FourVectors(
        norm=size,
        basis={"u_a": a, "u_b": b, "u_c": c, "u_d": d},
        x=np.array([d + b, a, c + b]),
        wanted={0: b - c, 1: b},
    )


def try_additions(
    x: Any,
    position: int,
    wanted: Any,
    additions: Mapping[str, Any],
    *,
    multiple: float = 1.0,
    scale: Scale = 1.0,
    basis: Mapping[str, Any] | None = None,
) -> tuple[Addition, ...]:
    """Say what c at `position` becomes without K, Q, V when a vector is added to its input.

    >>> four = four_vector_problem(norm=4.0)
    >>> extra = {name: four.basis[name] for name in ("u_c", "u_d")}
    >>> for one in try_additions(four.x, 1, four.wanted[1], extra, basis=four.basis):
    ...     print(one.statement[:46])
    with 1 u_c added, x_1 reads u_a + u_c: that is
    with 1 u_d added, x_1 reads u_a + u_d: that is
    """
    x = matrix("x", x)
    position = index("position", position, len(x), "position")
    target = vector("wanted", wanted, length=x.shape[1])
    amount = number_of("multiple", multiple)
    names = frame(basis, x.shape[1])
    steps = {
        name: vector(f"additions[{name}]", added, length=x.shape[1])
        for name, added in additions.items()
    }
    return tuple(
        _added(x, position, target, addition, amount, scale, names) for addition in steps.items()
    )


def _added(
    x: Any,
    position: int,
    wanted: Any,
    addition: tuple[str, Any],
    multiple: float,
    scale: Scale,
    names: Frame,
) -> Addition:
    name, step = addition

    def read(amount: float) -> tuple[Any, Any, Any, float]:
        changed = x.copy()
        changed[position] += amount * step
        reading = attend(changed[position], changed, changed, scale=scale)
        error = float(np.linalg.norm(reading.output - wanted))
        return changed, reading.weights, reading.output, error

    changed, weights, output, error = read(multiple)
    proof = outside_hull(changed, (position,), wanted[None], 0.0, names)
    best = min(np.linspace(-10.0, 10.0, 401).tolist(), key=lambda amount: read(amount)[3])
    distance = proof.distance if proof is not None and proof.distance is not None else 0.0
    reach = (
        f"and no weights at all could come closer than {at_least(distance)}"
        if proof is not None
        else "though other weights could reach it"
    )
    return Addition(
        name=name,
        multiple=multiple,
        input=changed[position],
        output=output,
        weights=weights,
        error=error,
        impossible=proof is not None,
        distance=distance,
        best_multiple=best,
        best_error=read(best)[3],
        statement=(
            f"with {multiple:g} {name} added, x_{position} reads "
            f"{names.sum_of_vectors(output, negligible=1e-2)}: that is {error:.4g} away from "
            f"{names.sum_of_vectors(wanted)}, {reach}; of the multiples from −10 to 10 the best, "
            f"{best:g}, leaves {read(best)[3]:.4g}"
        ),
    )
