"""Queries made to order: copy one value, average some, or give any weights.

For target weights w with support S the query keeps the ratios of w on S exactly and has mass
on S ≥ 1 − ε. Then, for ANY values, ‖c − Σ w_i v_i‖ ≤ error × the diameter of the values, with

    error = ½ Σ |α_i − w_i| = 1 − mass on S ≤ ε.

The `query` is the shortest that does this. The unit-margin direction u of the certificate
leads every key outside S by at least 1 and keeps S level; `beta` is the smallest β ≥ 0 at
which q0 + βu reaches ε, where q0 is the shortest query with the wanted ratios (0 for a copy
or an average). For keys that are equally far apart (orthonormal ones, for instance)

    β = ln((n − m)(1 − ε) / (mε))     for m of n keys; with weights, 1/m becomes their
                                       geometric mean

and q0 + βu is itself the shortest query. Such a u exists exactly when S fills a face of the
keys' convex hull. Where there is none, some affine combination of S is a convex combination
of other keys, which caps the mass on S for every query with the wanted ratios.

**The convex problem behind it** is the shortest query with wanted ratios and enough mass.
The target is w: positive on the support S, 0 on the other keys R. A query has exact ratios on
S when k_i·q − t = ln w_i for i in S and some t. With κ = Σ w_i k_i that is the linear system

    (k_i − κ)·q = ln w_i − Σ w ln w         for i in S          (least-norm solution q0)

and q = q0 + z keeps the ratios for every z perpendicular to all k_i − κ. On the other keys
the logits become, relative to t, Bz + c with b_l = k_l − κ (its part perpendicular to S), so

    mass on S = 1 / (1 + exp(LSE(Bz + c)))       and        total variation = 1 − mass on S

with LSE(x) = ln Σ exp(x_l). The system has no solution exactly when some y has Σ y_i = 0,
Σ y_i k_i = 0 and Σ y_i ln w_i ≠ 0: an affine dependency that the wanted weights do not obey.

What is left is the shortest z with LSE(Bz + c) ≤ level. It is convex: for a multiplier μ > 0 the
minimiser of ½‖z‖² + μ LSE(Bz + c) is unique, LSE falls as μ grows, and the μ at which LSE meets
the level gives the answer. Weak duality bounds every z that reaches the level. For any weights p
(p ≥ 0, Σp = 1)

    level ≥ LSE(Bz + c) ≥ p·(Bz + c) + H(p)        so        ‖z‖ ≥ (H(p) + p·c − level) / ‖Bᵀp‖

and p = softmax(Bz + c) at the answer makes it tight. The same inequality with Bᵀp = 0 says
how low LSE can be at all: H(p) + p·c.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts are imported when they are first used
from jaxtyping import Float, Int
from scipy.special import expit

from heedful.arrays import EPSILON, between, index, indices, matrix
from heedful.attention.hull import Separation, normalised, separate
from heedful.attention.operation import Scale, attend, average_weights, scale_of, wanted_weights
from heedful.errors import RunError
from heedful.records import Record

# The shortest query with wanted ratios and enough mass ---------------------------------------

Vector = Float[np.ndarray, " d"]
Logits = Float[np.ndarray, " r"]

DEPENDENT = 1e-10
"""Keys of S closer than this to a dependency (relative to the keys' extent) count as dependent."""
MOST_DOUBLINGS = 2.0**8
"""Of the multiplier's logarithm: e^±256 covers every float64 problem."""


class Lowest(NamedTuple):
    """A z at which LSE(Bz + c) is (nearly) least, and the weights p = softmax there."""

    z: Vector
    value: float
    p: Logits


@dataclass(frozen=True, eq=False, kw_only=True)
class LogSumExp:
    """z ↦ LSE(Bz + c): how much the keys outside S hold against S."""

    B: Float[np.ndarray, "r d"]
    c: Logits

    def __call__(self, z: Vector) -> float:
        return log_sum_exp(self.B @ z + self.c)

    def shortest(self, level: float, reaching: Vector) -> Vector:
        """Return the shortest z with LSE(Bz + c) ≤ level, given one z that goes below it."""
        if log_sum_exp(self.c) <= level:
            return np.zeros(self.B.shape[1])
        length = float(np.linalg.norm(reaching))
        # In y = z/length everything is of order one, whatever the units of the keys.
        scaled, end = LogSumExp(B=self.B * length, c=self.c), reaching / length
        narrow, basis = scaled.narrowed()
        y = basis @ narrow._meet(level, end @ basis)
        # What rounding leaves above the level is walked off towards the z that reaches it.
        y = scaled.walked(level, y, end)
        y = y * smallest_scale(scaled.B @ y, self.c, level, 1.0)
        return np.asarray(y * length)

    def walked(self, level: float, z: Vector, reaching: Vector) -> Vector:
        """Return the first point on the way from z to `reaching` with LSE ≤ level."""
        way = reaching - z
        step = smallest_scale(self.B @ way, self.B @ z + self.c, level, 1.0)
        return reaching if step == 1.0 else np.asarray(z + step * way)

    def norm_bound(self, level: float, z: Vector) -> float:
        """Return the norm below which no z reaches the level, by the weights p that z gives."""
        p = _softmax(self.B @ z + self.c)
        slope = float(np.linalg.norm(p @ self.B))
        dual = entropy_of(p) + float(p @ self.c) - level
        return max(0.0, dual / slope) if slope > 0 else 0.0

    def lowest(self) -> Lowest:
        """Return where LSE(Bz + c) is least; without a minimum, a z close to its infimum."""
        size = float(np.linalg.norm(self.B, axis=1).max())
        z = np.zeros(self.B.shape[1])
        if size:
            narrow, basis = LogSumExp(B=self.B / size, c=self.c).narrowed()
            z = basis @ narrow.minimised(1.0, np.zeros(basis.shape[1]), ridge=0.0) / size
        x = self.B @ z + self.c
        value = log_sum_exp(x)
        return Lowest(z, value, np.exp(x - value))

    def narrowed(self) -> tuple[LogSumExp, Float[np.ndarray, "d e"]]:
        """Return the problem in coordinates of the rows of B, and their basis: fewer when r < d.

        What is perpendicular to every row changes no logit and only makes z longer.
        """
        if len(self.B) >= self.B.shape[1]:
            return self, np.eye(self.B.shape[1])
        basis = np.linalg.qr(self.B.T)[0]
        return LogSumExp(B=self.B @ basis, c=self.c), basis

    def _meet(self, level: float, y: Vector) -> Vector:
        """Find the multiplier μ at which the minimiser of ½‖y‖² + μ LSE just meets the level."""
        x = self.B @ y + self.c
        slope = float(np.linalg.norm(np.exp(x - log_sum_exp(x)) @ self.B))

        def excess(log_multiplier: float) -> float:
            # Each solution starts the next: the minimisers move little from one μ to another.
            nonlocal y
            y = self.minimised(math.exp(log_multiplier), y, ridge=1.0)
            return self(y) - level

        # At the optimum y = −μ Bᵀp, so μ ≈ ‖y‖/‖Bᵀp‖ with ‖y‖ ≈ 1; from there, double outwards
        # until the root is bracketed.
        low = high = -math.log(max(slope, 1e-300))
        step = 0.5
        if excess(low) > 0:
            while (above := excess(high)) > 0 and step < MOST_DOUBLINGS:
                low, high, step = high, high + step, step * 2
        else:
            while (above := excess(low)) < 0 and step < MOST_DOUBLINGS:
                high, low, step = low, low - step, step * 2
        if low < high and above != 0 and step < MOST_DOUBLINGS:
            excess(float(scipy.optimize.brentq(excess, low, high, xtol=1e-6)))
        return y

    def minimised(self, multiplier: float, start: Vector, ridge: float) -> Vector:
        """Minimise ½ ridge ‖y‖² + multiplier · LSE(By + c) by a trust-region Newton method."""
        B = self.B

        def value(y: Vector) -> float:
            return 0.5 * ridge * float(y @ y) + multiplier * self(y)

        def gradient(y: Vector) -> Vector:
            return np.asarray(ridge * y + multiplier * (_softmax(B @ y + self.c) @ B))

        def hessian(y: Vector) -> Float[np.ndarray, "d d"]:
            # The Hessian of LSE is the covariance of the rows of B under p.
            p = _softmax(B @ y + self.c)
            heavy = p > 1e-13 * p.max()  # the rest cannot be seen in float64
            rows = B[heavy] * np.sqrt(p[heavy])[:, None]
            mean = p @ B
            curved = rows.T @ rows - np.outer(mean, mean)
            return np.asarray(ridge * np.eye(B.shape[1]) + multiplier * curved)

        # With a ridge, errors of y enter norms and bounds squared. Without one, the gradient
        # itself is the residual of a combination.
        precise = 1e-9 if ridge else 1e-11
        solved = scipy.optimize.minimize(
            value,
            start,
            jac=gradient,
            hess=hessian,
            method="trust-exact",
            options={"gtol": precise * max(1.0, multiplier), "maxiter": 200},
        )
        return np.asarray(solved.x, dtype=np.float64)


@dataclass(frozen=True, eq=False, kw_only=True)
class Ratios(LogSumExp):
    """The design problem in numbers of order one; x = q · 2^exponent · scale."""

    keys: Float[np.ndarray, "n d"]
    """The keys, centred and divided by 2^exponent."""
    exponent: int
    support: Int[np.ndarray, " m"]
    others: Int[np.ndarray, " r"]
    weights: Float[np.ndarray, " m"]
    """w on the support, all positive."""
    q0: Vector
    """The shortest x with the ratios of w on S (least squares if there is none)."""
    rounding: float
    """How far a product of a row of B with a unit vector may be off."""
    dependency: Float[np.ndarray, " m"] | None
    """y, when the wanted ratios cannot be had; Σ y_i ln w_i > 0 and Σ|y_i| = 1."""
    solver: Float[np.ndarray, "m d"]
    """Takes a vector in the span of k_i − κ to coefficients on S."""

    @property
    def kappa(self) -> Vector:
        """κ = Σ w_i k_i, in the centred keys."""
        return np.asarray(self.weights @ self.keys[self.support])

    def affine(self, combination: Logits) -> Float[np.ndarray, " m"]:
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


def _dependency(
    residual: Float[np.ndarray, " m"], w: Float[np.ndarray, " m"], b: Float[np.ndarray, " m"]
) -> Float[np.ndarray, " m"] | None:
    """Return y ⟂ every column of the system, with Σ y = 0, if b is out of the columns' span."""
    if np.abs(residual).max(initial=0.0) <= 1e-9 * max(1.0, float(np.abs(b).max())):
        return None
    y = residual - residual.sum() * w
    return np.asarray(y / np.abs(y).sum())


def error_floor(
    coefficients: Float[np.ndarray, " m"],
    weights: Float[np.ndarray, " m"],
    combination: Logits | None,
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
    return (
        high if excess(high) >= 0 else float(scipy.optimize.brentq(excess, low, high, xtol=1e-300))
    )


def smallest_scale(along: Logits, c: Logits, level: float, far: float) -> float:
    """Return the smallest t ≥ 0 with LSE(t·along + c) ≤ level, which t = far must reach."""

    def excess(t: float) -> float:
        return log_sum_exp(t * along + c) - level

    if excess(0.0) <= 0:
        return 0.0
    if excess(far) >= 0:  # by rounding
        return far
    # LSE is convex in t and starts above the level: it crosses it once before `far`.
    t = float(scipy.optimize.brentq(excess, 0.0, far, xtol=1e-300, rtol=1e-15, maxiter=500))
    # The root may lie a rounding above the level; step past it, ever less timidly.
    nudge = EPSILON
    while excess(t) > 0 and t < far:
        t, nudge = min(far, t * (1 + nudge)), nudge * 2
    return t


def log_sum_exp(x: Logits) -> float:
    """Return ln Σ exp(x_l), safe for any finite x."""
    peak = float(x.max())
    return peak + math.log(float(np.exp(x - peak).sum()))


def entropy_of(p: Logits) -> float:
    """Return −Σ p ln p, where 0 ln 0 = 0."""
    positive = p[p > 0]
    return float(-(positive * np.log(positive)).sum())


def _softmax(x: Logits) -> Logits:
    exponentials = np.exp(x - x.max())
    return np.asarray(exponentials / exponentials.sum())


# Designs -------------------------------------------------------------------------------------

ROUNDING = 1e-9
"""Below this, rounding of the ratios on S may outweigh the tolerance that was asked."""
EVEN_FORM = "β = ln((n−m)(1−ε)/(mε))"
WEIGHTED_FORM = "β = ln((n−m)·G·(1−ε)/ε), G the geometric mean of the m weights"


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate(Record):
    """Why the design holds, or why there is none; every number can be checked by hand."""

    kind: str
    """`separating direction`, `convex combination`, `affine dependency`, `nearest found`,
    `every key` (S is all keys), `bounded search` (reached although S fills no face), or
    `borderline` (undecided within rounding)."""
    statement: str
    """The reason in one or two sentences."""
    direction: Vector | None = None
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
    beta: float | None = None
    """The smallest scale at which q0 + β·direction reaches ε; None without such a direction."""
    mass: float | None = None
    """Mass on S that `query` reaches."""
    error: float | None = None
    """Guaranteed error: total variation between α and the target, at most the tolerance."""
    query: Vector | None = None
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
    weights: Float[np.ndarray, " n"] | None = None
    """α: the weights that `query` gives."""
    norm: float | None = None
    """‖query‖."""


def design_copy(keys: Any, of: int, *, tolerance: float = 0.01, scale: Scale = 1.0) -> Design:
    """Return the shortest query whose output is value `of`, within the tolerance.

    >>> design = design_copy([[1, 0], [0, 1], [-1, -1]], 0, tolerance=0.05)
    >>> design.feasible, design.mass >= 0.95
    (True, True)
    >>> middle = design_copy([[1.0], [2.0], [3.0]], 1)
    >>> middle.feasible, round(middle.certificate.ceiling, 6)
    (False, 0.333333)
    """
    keys = matrix("keys", keys)
    chosen = index("of", of, len(keys))
    target = average_weights((chosen,), len(keys))
    return _design("copy", keys, target, (chosen,), tolerance, scale)


def design_average(
    keys: Any, of: Sequence[int], *, tolerance: float = 0.01, scale: Scale = 1.0
) -> Design:
    """Return the shortest query whose output is the mean of the values `of`.

    >>> design = design_average(np.eye(10, 16), [0, 1], tolerance=0.01)
    >>> round(design.beta, 3), design.certificate.closed_form
    (5.981, 'β = ln((n−m)(1−ε)/(mε))')
    """
    keys = matrix("keys", keys)
    chosen = indices("of", of, len(keys))
    target = average_weights(chosen, len(keys))
    return _design("average", keys, target, chosen, tolerance, scale)


def design_weights(
    keys: Any, weights: Any, *, tolerance: float = 0.01, scale: Scale = 1.0
) -> Design:
    """Return the shortest query whose weights are the given ones; zeros are allowed.

    >>> design = design_weights(np.eye(4), [0.7, 0.3, 0, 0], tolerance=0.001)
    >>> design.weights.round(3)
    array([0.699, 0.3  , 0.   , 0.   ])
    """
    keys = matrix("keys", keys)
    target = wanted_weights("weights", weights, len(keys))
    chosen = tuple(int(place) for place in np.flatnonzero(target))
    return _design("weights", keys, target / float(target.sum()), chosen, tolerance, scale)


def _design(
    kind: str,
    keys: Float[np.ndarray, "n d"],
    target: Float[np.ndarray, " n"],
    of: tuple[int, ...],
    tolerance: float,
    scale: Scale,
) -> Design:
    order = Order(
        kind=kind,
        keys=keys,
        target=target,
        of=of,
        tolerance=between("tolerance", tolerance, 0.0, 1.0),
        scale=scale_of(scale, keys.shape[1]),
    )
    ratios = fix_ratios(keys, target)
    if ratios.dependency is not None:
        return _with_nearest_ratios(order, ratios, ratios.dependency)
    if not len(ratios.others):
        return _every_key(order, ratios)
    face = face_of(ratios)
    return (
        _on_face(order, ratios, face) if isinstance(face, Face) else _off_face(order, ratios, face)
    )


class Candidate(NamedTuple):
    """A query, and what `attend` truly gives for it."""

    query: Vector
    weights: Float[np.ndarray, " n"]
    mass: float
    error: float


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

    def query(self, ratios: Ratios, x: Vector) -> Vector:
        """Return x in the units of a query over the keys as they were given."""
        return np.asarray(np.ldexp(x, -ratios.exponent) / self.scale)

    def read(self, query: Vector) -> Candidate:
        """Return what a query truly gives: α, the mass on S, and the total variation from w.

        The total variation is Σ max(α_i − w_i, 0), which stays accurate below 1e-16.
        """
        nothing = np.zeros((len(self.keys), 1))  # α alone is wanted
        alpha = attend(query, self.keys, nothing, scale=self.scale).weights
        error = float(np.maximum(alpha - self.target, 0.0).sum())
        return Candidate(query, alpha, float(alpha[list(self.of)].sum()), error)

    def design(
        self,
        certificate: Certificate,
        candidate: Candidate | None = None,
        beta: float | None = None,
    ) -> Design:
        """Return the record of a query that was found, or of an order without one."""
        reached: dict[str, Any] = {}
        if candidate is not None:
            norm = float(np.linalg.norm(candidate.query))
            reached = {**candidate._asdict(), "beta": beta, "norm": norm}
        return Design(
            feasible=candidate is not None,
            certificate=certificate,
            kind=self.kind,
            of=self.of,
            target=self.target,
            tolerance=self.tolerance,
            scale=self.scale,
            **reached,
        )


# Where S fills a face of the keys' hull, every tolerance can be reached.


class Face(NamedTuple):
    """The unit-margin direction u in the normalised keys: Bu ≤ −1, as short as possible."""

    u: Vector
    equidistant: bool
    """All keys are equally far apart: u and β have a closed form."""


def face_of(ratios: Ratios, *, closed_form: bool = True) -> Face | Separation:
    """Return the unit-margin direction of S, by symmetry or by quadratic programme.

    Where there is none, the outcome of the quadratic programme says why.
    """
    apart = _squared_side(ratios.keys) if closed_form else None
    if apart is not None:
        return Face(ratios.keys[ratios.support].sum(axis=0) * (2 / apart), True)
    separation = separate(ratios.B, rounding=ratios.rounding)
    if separation.verdict != "outside":
        return separation
    lead = -float((ratios.B @ separation.direction).max())
    return Face(separation.direction / lead, False)


def _squared_side(keys: Float[np.ndarray, "n d"]) -> float | None:
    """Return the squared distance between any two (centred) keys, if it is always the same."""
    n = len(keys)
    if n < 2 or n > keys.shape[1] + 1:
        return None
    # The Gram matrix of a centred regular simplex of squared side s is s/2 (I − 11ᵀ/n).
    gram = keys @ keys.T
    side = 2 * float(np.trace(gram)) / (n - 1)
    even = side / 2 * (np.eye(n) - 1 / n)
    return side if side > 0 and np.abs(gram - even).max() <= 1e-13 * side else None


def _on_face(order: Order, ratios: Ratios, face: Face) -> Design:
    """Return the shortest query within the tolerance, with the direction that proves it."""
    beta = scale_on_face(order, ratios, face)
    # Bu ≤ −1, so this scale of u goes below the level by 1 or more.
    reaching = (max(0.0, log_sum_exp(ratios.c) - order.level) + 1) * face.u
    candidate = least_query(order, ratios, reaching, on_ray=face.equidistant)
    if candidate is None:
        raise RunError(
            "design",
            f"float64 cannot hold a query with mass {1 - order.tolerance:.12g} on {order.name}",
            expected="keys whose differences are not lost in k·q were expected",
            hint="take a looser tolerance, or subtract the mean from the keys",
        )
    logits = ratios.keys @ (face.u / np.linalg.norm(face.u))
    lead = float(logits[ratios.support].min() - logits[ratios.others].max())
    margin = math.ldexp(lead, ratios.exponent)
    even = np.ptp(ratios.weights) == 0
    certificate = Certificate(
        kind="separating direction",
        statement=(
            f"The direction u puts {order.name} at least 1 above every other key (margin "
            f"{margin:.6g} for a unit direction), and "
            f"β = {beta:.6g} is the smallest scale of u that reaches ε = {order.tolerance:g}. "
            f"The query has mass {candidate.mass:.6g} on {order.name}: whatever the values are, "
            f"the output is off by at most {candidate.error:.3g} of their diameter."
        ),
        direction=order.query(ratios, face.u),
        margin=margin,
        norm_lower_bound=_norm_lower_bound(order, ratios, candidate.query),
        textbook_norm=_textbook_norm(order, ratios, beta),
        closed_form=(EVEN_FORM if even else WEIGHTED_FORM) if face.equidistant else None,
    )
    return order.design(certificate, candidate, beta)


def scale_on_face(order: Order, ratios: Ratios, face: Face) -> float:
    """Return β: the smallest scale of the unit-margin direction that reaches the tolerance."""
    if face.equidistant:
        # On S: ln w_i. Elsewhere: the mean of ln w over S, minus β. See the module's docstring.
        logs = float(np.log(ratios.weights).mean())
        return max(0.0, math.log(len(ratios.others)) + logs - order.level)
    along = ratios.B @ face.u
    far = (log_sum_exp(ratios.c) - order.level) / -float(along.max())
    return smallest_scale(along, ratios.c, order.level, far)


def least_query(
    order: Order, ratios: Ratios, reaching: Vector, *, on_ray: bool = False
) -> Candidate | None:
    """Return the shortest query that reaches the tolerance when `attend` reads with it.

    `reaching` is a z that goes below the level; with `on_ray` the answer is a multiple of it.
    What float64 loses in k·q is made up by aiming slightly lower; None if that fails too.
    """
    if on_ray:
        z = smallest_scale(ratios.B @ reaching, ratios.c, order.level, 1.0) * reaching
    else:
        z = ratios.shortest(order.level, reaching)
    for slack in (0.0, *(10.0**-power for power in range(15, 6, -1))):
        if slack:
            level = order.level - slack * max(1.0, abs(order.level))
            z = ratios.walked(level, z, reaching)
        candidate = order.read(order.query(ratios, ratios.q0 + z))
        enough = candidate.mass >= 1 - order.tolerance
        if enough and candidate.error <= order.tolerance:
            return candidate
    return candidate if enough and candidate.error <= order.tolerance + ROUNDING else None


def _norm_lower_bound(order: Order, ratios: Ratios, query: Vector) -> float:
    """Return the norm below which no query reaches the tolerance with the wanted ratios."""
    x = np.ldexp(query, ratios.exponent) * order.scale
    least = 0.0
    if log_sum_exp(ratios.c) > order.level:
        least = ratios.norm_bound(order.level, x - ratios.q0)
    # q0 and z are perpendicular: ‖q0 + z‖² = ‖q0‖² + ‖z‖².
    return math.hypot(float(np.linalg.norm(ratios.q0)), least) * _unit(order, ratios)


def _textbook_norm(order: Order, ratios: Ratios, beta: float) -> float | None:
    """Return ‖Σ_S (β + ln w_i − mean ln w) k_i/‖k‖²‖, for orthogonal keys of one norm."""
    if len(order.keys) > order.keys.shape[1]:
        return None
    small = np.ldexp(order.keys, -ratios.exponent)
    gram = small @ small.T
    square = float(gram[0, 0])
    if np.abs(gram - square * np.eye(len(gram))).max() > 1e-13 * square:
        return None
    logs = np.log(ratios.weights)
    lift = beta + logs - logs.mean()
    return float(np.linalg.norm(lift)) / math.sqrt(square) * _unit(order, ratios)


def _unit(order: Order, ratios: Ratios) -> float:
    """Return the length of a query whose x has length 1."""
    return math.ldexp(1.0, -ratios.exponent) / order.scale


def _every_key(order: Order, ratios: Ratios) -> Design:
    candidate = order.read(order.query(ratios, ratios.q0))
    norm = float(np.linalg.norm(candidate.query))
    certificate = Certificate(
        kind="every key",
        statement=(
            "Every key is wanted, so no mass can be lost: the shortest query with the wanted "
            f"ratios has norm {norm:.6g}, and no scale is needed (β = 0)."
        ),
        norm_lower_bound=norm,
    )
    return order.design(certificate, candidate, 0.0)


# Where S fills no face, or the wanted ratios cannot be had: caps, and what is nearest.


def _off_face(order: Order, ratios: Ratios, separation: Separation) -> Design:
    """Reach the tolerance although S fills no face, or cap the mass on S by a combination.

    The largest mass on S is a convex problem, and decides; the face test alone would not:
    a loose tolerance can be within reach of any S.
    """
    least = ratios.lowest()
    within = least.value <= order.level + 1e-12  # `attend` decides a tie
    candidate = least_query(order, ratios, least.z) if within else None
    if candidate is not None:
        return order.design(_reached(order, ratios, candidate, separation, least), candidate)
    refusal = _capped(order, ratios, separation, least)
    return order.design(refusal) if len(order.of) == 1 else _nearest(order, ratios, refusal)


def _with_nearest_ratios(order: Order, ratios: Ratios, y: Float[np.ndarray, " m"]) -> Design:
    """The dependency y forbids the wanted ratios: accept the nearest weights if near enough."""
    residual = float(np.linalg.norm(y @ ratios.keys[ratios.support]))
    proof = Certificate(
        kind="affine dependency",
        statement=(
            f"{order.name.capitalize()} satisfy Σ y_i k_i = 0 with Σ y_i = 0 (residual "
            f"{residual:.1g}), so every query has Σ y_i ln α_i = 0; the wanted weights have "
            f"{float(y @ np.log(ratios.weights)):.6g}: these exact ratios are impossible."
        ),
        affine=_as_dict(ratios.support, y),
        residual=residual,
        floor=error_floor(y, ratios.weights, None),
    )
    return _nearest(order, ratios, proof)


def _nearest(order: Order, ratios: Ratios, proof: Certificate) -> Design:
    """Accept the nearest weights if they are within the tolerance; refuse with their error."""
    candidate = _nearest_query(order, ratios)
    error = candidate.error
    if error <= order.tolerance:
        accepted = replace(
            proof,
            kind="nearest found",
            statement=(
                f"{proof.statement} The nearest weights found are within {error:.3g} of the "
                f"wanted ones in total variation, and ε = {order.tolerance:g} is asked."
            ),
            best_error=error,
        )
        return order.design(accepted, candidate)
    floor = proof.floor or 0.0
    verdict = (
        f"no query at all comes closer than {floor:.6g}: impossible"
        if order.tolerance < floor
        else f"nothing closer was found (proved: none below {floor:.3g})"
    )
    best = min(error, proof.best_error if proof.best_error is not None else error)
    refusal = replace(
        proof,
        statement=(
            f"{proof.statement} The nearest weights found err by {best:.6g} and "
            f"ε = {order.tolerance:g} is asked; {verdict}."
        ),
        best_error=best,
    )
    return order.design(refusal)


def _nearest_query(order: Order, ratios: Ratios) -> Candidate:
    """Return the query that minimises KL(w‖α).

    KL(w‖α) = LSE((k_l − κ)·q) + const. The problem is convex, but its minimum may lie at
    infinity: a ridge that shrinks gives longer and longer queries, and the first one within the
    tolerance is taken.
    """
    centred = ratios.keys - ratios.kappa
    around, basis = LogSumExp(B=centred, c=np.zeros(len(centred))).narrowed()
    y = np.zeros(basis.shape[1])
    candidates = []
    for ridge in (*(10.0**-power for power in range(13)), 0.0):
        y = around.minimised(1.0, y, ridge=ridge)
        candidates.append(order.read(order.query(ratios, basis @ y)))
        if candidates[-1].error <= order.tolerance:
            break
    return min(candidates, key=lambda candidate: candidate.error)


def _capped(order: Order, ratios: Ratios, separation: Separation, least: Lowest) -> Certificate:
    """Return the combination of other keys that caps the mass on S, and the cap."""
    best = float(expit(-least.value))
    if separation.verdict == "borderline":
        return Certificate(
            kind="borderline",
            statement=(
                f"Within rounding it cannot be decided whether {order.name} can be read alone: "
                f"the lead is at most {separation.margin_upper:.3g} of the keys' extent. The "
                f"largest mass found is {best:.6g}."
            ),
            best_mass=best,
            best_error=1 - best,
        )
    # Few keys are easier to check; all keys, weighted for the largest entropy, prove more.
    combination = _combination(ratios, separation)
    if _ceiling(ratios, combination) >= 1 - order.tolerance:
        combination = least.p
    a, ceiling = ratios.affine(combination), _ceiling(ratios, combination)
    difference = a @ ratios.keys[ratios.support] - combination @ ratios.keys[ratios.others]
    if len(order.of) == 1:
        subject, other = f"Key {order.of[0]} is", ""
        formula = "1/(1 + exp(H(λ)))"
    else:
        subject, other = "An affine combination of " + order.name + " is", " with the wanted ratios"
        formula = "1/(1 + exp(H(λ) + Σ a_i ln w_i))"
    return Certificate(
        kind="convex combination",
        statement=(
            f"{subject} a convex combination of other keys "
            f"({np.count_nonzero(combination)} of them), so no query{other} leads them all: "
            f"the mass on {order.name} stays at or below "
            f"{formula} = {ceiling:.6g}, and {1 - order.tolerance:.6g} is asked."
        ),
        combination=_as_dict(ratios.others, combination),
        affine=_as_dict(ratios.support, a),
        residual=float(np.linalg.norm(difference)),
        ceiling=ceiling,
        floor=error_floor(a, ratios.weights, combination),
        best_mass=best,
        best_error=1 - best,
    )


def _reached(
    order: Order, ratios: Ratios, candidate: Candidate, separation: Separation, least: Lowest
) -> Certificate:
    """Return why no direction separates S, and by what largest mass ε is reached all the same."""
    best, combination = float(expit(-least.value)), _combination(ratios, separation)
    return Certificate(
        kind="bounded search",
        statement=(
            f"{order.name.capitalize()} cannot be told apart from the rest by any direction, so "
            f"there is no β for every tolerance; ε = {order.tolerance:g} is within reach all the "
            f"same: the largest mass any query with these ratios can have there is {best:.6g}."
        ),
        combination=_as_dict(ratios.others, combination),
        affine=_as_dict(ratios.support, ratios.affine(combination)),
        residual=separation.margin_upper,
        best_mass=best,
        norm_lower_bound=_norm_lower_bound(order, ratios, candidate.query),
    )


def _combination(ratios: Ratios, separation: Separation) -> Float[np.ndarray, " r"]:
    combination = np.zeros(len(ratios.others))
    combination[separation.members] = separation.weights
    return combination


def _ceiling(ratios: Ratios, combination: Float[np.ndarray, " r"]) -> float:
    """Return 1/(1 + exp(H(λ) + Σ a_i ln w_i)), where Σ a_i ln w_i = λ·c."""
    return float(expit(-entropy_of(combination) - combination @ ratios.c))


def _as_dict(places: Int[np.ndarray, " k"], values: Float[np.ndarray, " k"]) -> dict[int, float]:
    pairs = zip(places.tolist(), values.tolist(), strict=True)
    return {int(place): float(value) for place, value in pairs if value != 0}
