"""Keys, queries and values drawn from one sequence: find K, Q and V for wanted outputs.

    c_p = Σ_j α_pj V x_j        α_p = softmax_j(s (K x_j)·(Q x_p))

Given x_1 … x_n (rows of x) and wanted outputs y_p at some positions, `design_kqv` finds
matrices of the asked form (K, Q and V; K and Q alone; none at all) with the smallest scale
that reaches the tolerance, or proves that none exist, or says that it found none.
Positions are counted from 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

import numpy as np

from heedful.attention.arrays import between, index, matrix, vector
from heedful.attention.operation import Attention, Scale, attend, scale_of
from heedful.attention.outer_products import Frame, frame
from heedful.attention.sequence_mixtures import search_mixtures
from heedful.attention.sequence_proofs import (
    at_most,
    equal_inputs,
    nothing_to_choose,
    outside_hull,
    zero_input,
)
from heedful.attention.sequence_record import SequenceCertificate, SequenceDesign
from heedful.attention.sequence_search import (
    Outcome,
    Preference,
    Problem,
    Solution,
    search_plans,
    smallest_mass,
)
from heedful.errors import InputError

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

    >>> from heedful.attention.four_vectors import four_vector_problem
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
    preference = _preference(prefer, task.x.shape[1])
    if form == "identity":
        return _as_it_is(task)
    proof = _impossible(task)
    if proof is not None:
        return _design(task, proof, None, {})
    problem = _in_frame(task, preference)
    outcome = search_plans(problem, task.tolerance)
    if outcome.best is not None:
        return _with(task, outcome.best, outcome)
    mixture = search_mixtures(problem, task.tolerance)
    if mixture is not None:
        return _with(task, mixture, outcome)
    return _design(task, _not_found(outcome), None, {})


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
    if form not in FORMS:
        raise InputError("form", f"{form!r} is unknown", expected=f"one of {', '.join(FORMS)}")
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
            way_out="choose another unit",
        )


def _preference(prefer: str | None, dimension: int) -> Preference:
    if prefer is None:
        return "sparse" if dimension <= READABLE else "least_norm"
    for known in get_args(Preference):
        if prefer == known:
            return cast(Preference, known)
    raise InputError("prefer", f"{prefer!r} is unknown", expected="sparse or least_norm")


def _impossible(task: _Task) -> SequenceCertificate | None:
    values_fixed = task.form == "values"
    asked = (task.x, task.positions, task.Y, task.allowed)
    proof = outside_hull(*asked, task.frame) if values_fixed else None
    return proof or equal_inputs(*asked) or zero_input(*asked, values_fixed=values_fixed)


def _in_frame(task: _Task, prefer: Preference) -> Problem:
    X = task.frame.coordinates(task.x)
    d = X.shape[1]
    return Problem(
        X=X,
        positions=task.positions,
        Y=task.outputs_frame.coordinates(task.Y),
        prefer=prefer,
        V=np.eye(d) if task.form == "values" else None,
        uses=(np.abs(X) > 1e-9 * (np.abs(X).max() or 1.0)).sum(axis=0).astype(float),
    )


def _with(task: _Task, found: Solution, outcome: Outcome) -> SequenceDesign:
    """Turn a score matrix into K and Q, read once more from scratch, and certify."""
    # K keeps the axes that M reads and Q holds the rest: M = QᵀK, and K can be read.
    used = np.diag(np.any(found.M != 0, axis=0).astype(float))
    K = task.frame.matrix(used)
    Q = task.frame.matrix(found.beta / task.scale * found.M.T)
    V = task.outputs_frame.axes.T @ found.V @ task.frame.axes
    said = {"K": task.frame.sum_of_products(K), "Q": task.frame.sum_of_products(Q)}
    if task.form == "values":
        said["V"] = "I"
    elif task.outputs_frame is task.frame:
        said["V"] = task.frame.sum_of_products(V)
    reading = attend(task.inputs @ Q.T, task.x @ K.T, task.x @ V.T, scale=task.scale)
    if outcome.best is found:
        certificate = _plan_certificate(task, found, outcome, task.x @ V.T)
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
        beta=found.beta,
        mass=smallest_mass(reading.weights, found.reads),
        K=K,
        Q=Q,
        V=V,
        plan=dict(zip(task.positions, found.reads, strict=True)),
    )


def _design(
    task: _Task,
    certificate: SequenceCertificate,
    reading: Attention | None,
    said: dict[str, str],
    **found: Any,
) -> SequenceDesign:
    """Put a record together; without a reading there is no design to show."""
    words = task.outputs_frame.sum_of_vectors
    for position, row in zip(task.positions, task.Y, strict=True):
        said[f"y_{position}"] = words(row)
    if reading is not None:
        for position, row in zip(task.positions, reading.output, strict=True):
            said[f"c_{position}"] = words(row, negligible=1e-4)
        absolute = float(np.linalg.norm(reading.output - task.Y, axis=1).max())
        found |= {
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
        **found,
    )


def _plan_certificate(
    task: _Task, found: Solution, outcome: Outcome, values: Any
) -> SequenceCertificate:
    bound = 0.0
    for read, wanted in zip(found.reads, task.Y, strict=True):
        others = [j for j in range(len(task.x)) if j not in read]
        if others:
            astray = float(np.linalg.norm(values[others] - wanted, axis=1).max())
            bound = max(bound, task.tolerance * astray)
    said = ", ".join(
        f"position {p} reads {' and '.join(map(str, read))}"
        for p, read in zip(task.positions[:SAID], found.reads[:SAID], strict=True)
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
            f"{at_most(found.beta)} on, so every output is within {at_most(bound)} of the wanted "
            f"one; the smallest matrices among {among}"
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


def _not_found(outcome: Outcome) -> SequenceCertificate:
    return SequenceCertificate(
        kind="not found",
        proof=False,
        statement=(
            f"{_no_plan(outcome)}, and a local search over other weights did not reach the "
            "tolerance; this is not a proof that no K, Q and V exist"
        ),
    )


def _no_plan(outcome: Outcome) -> str:
    if outcome.exhaustive:
        return "no plan in which each position copies one other works"
    return "no plan of copies that works was among those tried"
