"""Keys, queries and values drawn from one sequence: find K, Q and V for wanted outputs.

    c_p = Σ_j α_pj V x_j        α_p = softmax_j(s (K x_j)·(Q x_p))

Given x_1 … x_n (rows of x) and wanted outputs y_p at some positions, `design_kqv` finds
matrices of the asked form (K, Q and V; K and Q alone; none at all) with the smallest scale
that reaches the tolerance, or proves that none exist, or says that it found none.
Positions are counted from 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, ROUND_UP, Context
from typing import Any

import numpy as np
from jaxtyping import Float

from heedful.arrays import between, index, matrix, one_of, vector
from heedful.attention.design.hull import separate
from heedful.attention.operation import AttentionResult, Scale, attend, scale_of
from heedful.attention.sequence.search import (
    PREFERENCES,
    PlanOutcome,
    PlanProblem,
    Solution,
    same_vectors,
    search_mixtures,
    search_plans,
    smallest_mass,
)
from heedful.errors import InputError
from heedful.records import Record

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

    >>> from heedful.attention.sequence.four_vectors import four_vector_problem
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
