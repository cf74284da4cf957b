"""The records of a design: what was ordered, the query, and the proof that comes with it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from heedful.attention.operation import attend
from heedful.attention.ratios import Ratios
from heedful.records import Record


@dataclass(frozen=True, eq=False, kw_only=True)
class Order:
    """A checked order for a query."""

    kind: str
    keys: Float[np.ndarray, "n d"]
    target: Float[np.ndarray, " n"]
    of: tuple[int, ...]
    tolerance: float
    scale: float

    @property
    def level(self) -> float:
        """ln(ε/(1−ε)): LSE over the other keys may be no higher, relative to S."""
        return math.log(self.tolerance) - math.log1p(-self.tolerance)

    @property
    def name(self) -> str:
        """S in words: `key 3`, or `keys {0, 1}`."""
        if len(self.of) == 1:
            return f"key {self.of[0]}"
        shown = ", ".join(map(str, self.of[:6])) + (", …" if len(self.of) > 6 else "")
        return f"keys {{{shown}}}"

    def query(self, ratios: Ratios, x: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        """Return x in the units of a query over the keys as they were given."""
        return np.asarray(np.ldexp(x, -ratios.exponent) / self.scale)


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate(Record):
    """Why the design holds, or why there is none; every number can be checked by hand."""

    kind: str
    """`separating direction`, `convex combination`, `affine dependency`, `nearest found`,
    `every key` (S is all keys), `bounded search` (reached although S fills no face), or
    `borderline` (undecided within rounding)."""
    statement: str
    """The reason in one or two sentences."""
    direction: Float[np.ndarray, " d"] | None = None
    """The shortest u with s(k_i − k_l)·u ≥ 1 for i in S, l outside, and 0 inside S."""
    margin: float | None = None
    """The lead of the unit direction u/‖u‖ over every key outside S, in the keys' own units:
    the distance between the flats and hulls that S and the others span."""
    combination: dict[int, float] | None = None
    """λ: weights of other keys, positive, sum 1, with Σ λ_l k_l = Σ a_i k_i."""
    affine: dict[int, float] | None = None
    """a on S with sum 1 (beside `combination`); or, for an affine dependency, y with sum 0."""
    residual: float | None = None
    """How far, relative to the keys' extent, both sides of that equation differ."""
    ceiling: float | None = None
    """No query with the wanted ratios puts more mass on S: 1/(1 + exp(H(λ) + Σ a_i ln w_i))."""
    floor: float | None = None
    """No query at all comes closer to the wanted weights, in total variation."""
    best_mass: float | None = None
    """Where no query reaches ε: the largest mass on S found, with the wanted ratios."""
    best_error: float | None = None
    """Where no query reaches ε: the smallest total variation found."""
    norm_lower_bound: float | None = None
    """No query that reaches ε with the wanted ratios is shorter, by weak duality."""
    textbook_norm: float | None = None
    """For orthogonal keys: the norm of the usual query, a combination of S alone."""
    closed_form: str | None = None
    """The formula of β, where there is one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Design(Record):
    """A query made to order, with its certificate."""

    feasible: bool
    """Whether a query within the tolerance was found; if not, see the certificate."""
    beta: float | None
    """The smallest scale at which q0 + β·direction reaches ε; None without such a direction."""
    mass: float | None
    """Mass on S that `query` reaches."""
    error: float | None
    """Guaranteed error: total variation between α and the target, at most the tolerance."""
    query: Float[np.ndarray, " d"] | None
    """The query of least norm."""
    certificate: Certificate
    """Why it holds, or why there is none."""
    kind: str
    """`copy`, `average` or `weights`."""
    of: tuple[int, ...]
    """S: the keys with a positive target."""
    target: Float[np.ndarray, " n"]
    """w: the wanted weights."""
    tolerance: float
    """ε."""
    scale: float
    """s: what multiplies every k·q."""
    weights: Float[np.ndarray, " n"] | None
    """α: the weights that `query` gives."""
    norm: float | None
    """‖query‖."""


def reading_of(
    order: Order, query: Float[np.ndarray, " d"]
) -> tuple[Float[np.ndarray, " n"], float, float]:
    """Return what a query truly gives: α, the mass on S, and the total variation from w.

    The total variation is Σ max(α_i − w_i, 0), which stays accurate below 1e-16.
    """
    nothing = np.zeros((len(order.keys), 1))  # α alone is wanted
    alpha = attend(query, order.keys, nothing, scale=order.scale).weights
    error = float(np.maximum(alpha - order.target, 0.0).sum())
    return alpha, float(alpha[list(order.of)].sum()), error


def made(
    order: Order, query: Float[np.ndarray, " d"], beta: float | None, certificate: Certificate
) -> Design:
    """Return the record of a query that was found."""
    alpha, mass, error = reading_of(order, query)
    return Design(
        feasible=True,
        beta=beta,
        mass=mass,
        error=error,
        query=query,
        certificate=certificate,
        kind=order.kind,
        of=order.of,
        target=order.target,
        tolerance=order.tolerance,
        scale=order.scale,
        weights=alpha,
        norm=float(np.linalg.norm(query)),
    )


def refused(order: Order, certificate: Certificate) -> Design:
    """Return the record of an order that no query was found for."""
    return Design(
        feasible=False,
        beta=None,
        mass=None,
        error=None,
        query=None,
        certificate=certificate,
        kind=order.kind,
        of=order.of,
        target=order.target,
        tolerance=order.tolerance,
        scale=order.scale,
        weights=None,
        norm=None,
    )
