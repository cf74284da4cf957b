"""Designs where S fills a face of the keys' hull: every tolerance can be reached."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from heedful.attention.certificates import Certificate, Design, Order, made, reading_of
from heedful.attention.hull import Separation, separate
from heedful.attention.least_norm import log_sum_exp, norm_bound, shortest, smallest_scale, walked
from heedful.attention.ratios import Ratios
from heedful.errors import RunError

ROUNDING = 1e-9
"""Below this, rounding of the ratios on S may outweigh the tolerance that was asked."""
EVEN_FORM = "β = ln((n−m)(1−ε)/(mε))"
WEIGHTED_FORM = "β = ln((n−m)·G·(1−ε)/ε), G the geometric mean of the m weights"


class Face(NamedTuple):
    """The unit-margin direction u in the normalised keys: Bu ≤ −1, as short as possible."""

    u: Float[np.ndarray, " d"]
    equidistant: bool
    """All keys are equally far apart: u and β have a closed form."""


def design_on_face(order: Order, ratios: Ratios) -> Design | Separation:
    """Return the shortest query within the tolerance, or what shows that S fills no face."""
    if not len(ratios.others):
        return _every_key(order, ratios)
    face = face_of(ratios)
    if isinstance(face, Separation):
        return face
    beta = scale_on_face(order, ratios, face)
    # Bu ≤ −1, so this scale of u goes below the level by 1 or more.
    reaching = (max(0.0, log_sum_exp(ratios.c) - order.level) + 1) * face.u
    query = least_query(order, ratios, reaching, on_ray=face.equidistant)
    if query is None:
        raise RunError(
            "design",
            f"float64 cannot hold a query with mass {1 - order.tolerance:.12g} on {order.name}",
            expected="keys whose differences are not lost in k·q were expected",
            way_out="take a looser tolerance, or subtract the mean from the keys",
        )
    direction = order.query(ratios, face.u)
    return made(order, query, beta, _certificate(order, ratios, face, beta, query, direction))


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


def scale_on_face(order: Order, ratios: Ratios, face: Face) -> float:
    """Return β: the smallest scale of the unit-margin direction that reaches the tolerance."""
    if face.equidistant:
        # On S: ln w_i. Elsewhere: the mean of ln w over S, minus β. See the module `design`.
        logs = float(np.log(ratios.weights).mean())
        return max(0.0, math.log(len(ratios.others)) + logs - order.level)
    along = ratios.B @ face.u
    far = (log_sum_exp(ratios.c) - order.level) / -float(along.max())
    return smallest_scale(along, ratios.c, order.level, far)


def least_query(
    order: Order, ratios: Ratios, reaching: Float[np.ndarray, " d"], *, on_ray: bool = False
) -> Float[np.ndarray, " d"] | None:
    """Return the shortest query that reaches the tolerance when `attend` reads with it.

    `reaching` is a z that goes below the level; with `on_ray` the answer is a multiple of it.
    What float64 loses in k·q is made up by aiming slightly lower; None if that fails too.
    """
    if on_ray:
        z = smallest_scale(ratios.B @ reaching, ratios.c, order.level, 1.0) * reaching
    else:
        z = shortest(ratios.B, ratios.c, order.level, reaching).z
    for slack in (0.0, *(10.0**-power for power in range(15, 6, -1))):
        if slack:
            level = order.level - slack * max(1.0, abs(order.level))
            z = walked(ratios.B, ratios.c, level, z, reaching)
        query = order.query(ratios, ratios.q0 + z)
        _, mass, error = reading_of(order, query)
        if mass >= 1 - order.tolerance and error <= order.tolerance:
            return query
    near = mass >= 1 - order.tolerance and error <= order.tolerance + ROUNDING
    return query if near else None


def lower_bound(order: Order, ratios: Ratios, query: Float[np.ndarray, " d"]) -> float:
    """Return the norm below which no query reaches the tolerance with the wanted ratios."""
    x = np.ldexp(query, ratios.exponent) * order.scale
    least = 0.0
    if log_sum_exp(ratios.c) > order.level:
        least = norm_bound(ratios.B, ratios.c, order.level, x - ratios.q0)
    return math.hypot(float(np.linalg.norm(ratios.q0)), least) * _unit(order, ratios)


def _certificate(
    order: Order,
    ratios: Ratios,
    face: Face,
    beta: float,
    query: Float[np.ndarray, " d"],
    direction: Float[np.ndarray, " d"],
) -> Certificate:
    margin = _margin(ratios, face.u)
    _, mass, error = reading_of(order, query)
    even = np.ptp(ratios.weights) == 0
    return Certificate(
        kind="separating direction",
        statement=(
            f"The direction u puts {order.name} at least 1 above every other key (margin "
            f"{margin:.6g} for a unit direction), and "
            f"β = {beta:.6g} is the smallest scale of u that reaches ε = {order.tolerance:g}. "
            f"The query has mass {mass:.6g} on {order.name}: whatever the values are, the output "
            f"is off by at most {error:.3g} of their diameter."
        ),
        direction=direction,
        margin=margin,
        norm_lower_bound=lower_bound(order, ratios, query),
        textbook_norm=_textbook_norm(order, ratios, beta),
        closed_form=(EVEN_FORM if even else WEIGHTED_FORM) if face.equidistant else None,
    )


def _every_key(order: Order, ratios: Ratios) -> Design:
    query = order.query(ratios, ratios.q0)
    norm = float(np.linalg.norm(query))
    return made(
        order,
        query,
        0.0,
        Certificate(
            kind="every key",
            statement=(
                "Every key is wanted, so no mass can be lost: the shortest query with the wanted "
                f"ratios has norm {norm:.6g}, and no scale is needed (β = 0)."
            ),
            norm_lower_bound=norm,
        ),
    )


def _squared_side(keys: Float[np.ndarray, "n d"]) -> float | None:
    """Return the squared distance between any two (centred) keys, if it is always the same."""
    n = len(keys)
    if n < 2 or n > keys.shape[1] + 1:
        return None
    gram = keys @ keys.T
    side = 2 * float(np.trace(gram)) / (n - 1)
    even = side / 2 * (np.eye(n) - 1 / n)
    return side if side > 0 and np.abs(gram - even).max() <= 1e-13 * side else None


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


def _margin(ratios: Ratios, u: Float[np.ndarray, " d"]) -> float:
    logits = ratios.keys @ (u / np.linalg.norm(u))
    lead = float(logits[ratios.support].min() - logits[ratios.others].max())
    return math.ldexp(lead, ratios.exponent)


def _unit(order: Order, ratios: Ratios) -> float:
    return math.ldexp(1.0, -ratios.exponent) / order.scale
