"""What `design_kqv` gives back: the matrices, what they reach, and the certificate."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from heedful.records import Record


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
