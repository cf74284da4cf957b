"""The four-vector problem: what self-attention can isolate with and without K, Q and V.

u_a, u_b, u_c and u_d are perpendicular and equally long; x_0 = u_d + u_b, x_1 = u_a,
x_2 = u_c + u_b. Wanted: c_1 ≈ u_b and c_0 ≈ u_b − u_c. Without matrices it cannot be done, and
`try_additions` answers what adding a multiple of some vector to an input would change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from heedful.arrays import between, index, matrix, number_of, vector, whole
from heedful.attention.operation import Scale, attend
from heedful.attention.sequence.kqv import Frame, at_least, frame, outside_hull
from heedful.records import Record


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
