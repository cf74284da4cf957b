"""Designs where S fills no face, or the wanted ratios cannot be had: caps, and what is nearest."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit

from heedful.attention.certificates import Certificate, Design, Order, made, reading_of, refused
from heedful.attention.hull import Separation
from heedful.attention.least_norm import Lowest, entropy_of, lowest, minimise, narrowed
from heedful.attention.on_face import least_query, lower_bound
from heedful.attention.ratios import Ratios, error_floor


def design_off_face(order: Order, ratios: Ratios, separation: Separation) -> Design:
    """Reach the tolerance although S fills no face, or cap the mass on S by a combination.

    The largest mass on S is a convex problem, and decides; the face test alone would not:
    a loose tolerance can be within reach of any S.
    """
    least = lowest(ratios.B, ratios.c)
    best = float(expit(-least.value))
    within = least.value <= order.level + 1e-12  # `attend` decides a tie
    query = least_query(order, ratios, least.z) if within else None
    if query is not None:
        return made(order, query, None, _reached(order, ratios, query, separation, best))
    refusal = _capped(order, ratios, separation, least)
    if len(order.of) == 1:
        return refused(order, refusal)
    query, error = nearest_query(order, ratios)
    if error <= order.tolerance:
        return made(order, query, None, _nearest(order, refusal, error))
    return refused(order, _with_error(order, refusal, error))


def design_with_nearest_ratios(order: Order, ratios: Ratios, y: Float[np.ndarray, " m"]) -> Design:
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
    query, error = nearest_query(order, ratios)
    if error <= order.tolerance:
        return made(order, query, None, _nearest(order, proof, error))
    return refused(order, _with_error(order, proof, error))


def nearest_query(order: Order, ratios: Ratios) -> tuple[Float[np.ndarray, " d"], float]:
    """Return the query that minimises KL(w‖α), and its total variation.

    The problem is convex, but its minimum may lie at infinity: a ridge that shrinks gives
    longer and longer queries, and the first one within the tolerance is taken.
    """
    around, basis = narrowed(ratios.keys - ratios.kappa)
    nothing, y = np.zeros(len(around)), np.zeros(around.shape[1])
    best, best_error = order.query(ratios, basis @ y), math.inf
    for ridge in (*(10.0**-power for power in range(13)), 0.0):
        y = minimise(around, nothing, 1.0, y, ridge=ridge)
        query = order.query(ratios, basis @ y)
        _, _, error = reading_of(order, query)
        if error < best_error:
            best, best_error = query, error
        if error <= order.tolerance:
            break
    return best, best_error


def _capped(order: Order, ratios: Ratios, separation: Separation, least: Lowest) -> Certificate:
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
    combination = np.zeros(len(ratios.others))
    combination[separation.members] = separation.weights
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
    order: Order,
    ratios: Ratios,
    query: Float[np.ndarray, " d"],
    separation: Separation,
    best: float,
) -> Certificate:
    combination = np.zeros(len(ratios.others))
    combination[separation.members] = separation.weights
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
        norm_lower_bound=lower_bound(order, ratios, query),
    )


def _nearest(order: Order, proof: Certificate, error: float) -> Certificate:
    return _changed(
        proof,
        kind="nearest found",
        statement=(
            f"{proof.statement} The nearest weights found are within {error:.3g} of the wanted "
            f"ones in total variation, and ε = {order.tolerance:g} is asked."
        ),
        best_error=error,
    )


def _with_error(order: Order, proof: Certificate, error: float) -> Certificate:
    floor = proof.floor or 0.0
    verdict = (
        f"no query at all comes closer than {floor:.6g}: impossible"
        if order.tolerance < floor
        else f"nothing closer was found (proved: none below {floor:.3g})"
    )
    best = min(error, proof.best_error if proof.best_error is not None else error)
    return _changed(
        proof,
        statement=(
            f"{proof.statement} The nearest weights found err by {best:.6g} and "
            f"ε = {order.tolerance:g} is asked; {verdict}."
        ),
        best_error=best,
    )


def _changed(certificate: Certificate, **fields: object) -> Certificate:
    return Certificate(**{**certificate.__dict__, **fields})


def _ceiling(ratios: Ratios, combination: Float[np.ndarray, " r"]) -> float:
    """Return 1/(1 + exp(H(λ) + Σ a_i ln w_i)), where Σ a_i ln w_i = λ·c."""
    return float(expit(-entropy_of(combination) - combination @ ratios.c))


def _as_dict(places: Int[np.ndarray, " k"], values: Float[np.ndarray, " k"]) -> dict[int, float]:
    pairs = zip(places.tolist(), values.tolist(), strict=True)
    return {int(place): float(value) for place, value in pairs if value != 0}
