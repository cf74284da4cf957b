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
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from heedful.attention.arrays import between, index, indices, matrix, vector
from heedful.attention.certificates import Certificate, Design, Order
from heedful.attention.off_face import design_off_face, design_with_nearest_ratios
from heedful.attention.on_face import design_on_face
from heedful.attention.operation import Scale, scale_of
from heedful.attention.ratios import fix_ratios
from heedful.errors import InputError

__all__ = ["Certificate", "Design", "design_average", "design_copy", "design_weights"]


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
    return _design(_order("copy", keys, _even((chosen,), len(keys)), (chosen,), tolerance, scale))


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
    return _design(_order("average", keys, _even(chosen, len(keys)), chosen, tolerance, scale))


def design_weights(
    keys: Any, weights: Any, *, tolerance: float = 0.01, scale: Scale = 1.0
) -> Design:
    """Return the shortest query whose weights are the given ones; zeros are allowed.

    >>> design = design_weights(np.eye(4), [0.7, 0.3, 0, 0], tolerance=0.001)
    >>> design.weights.round(3)
    array([0.699, 0.3  , 0.   , 0.   ])
    """
    keys = matrix("keys", keys)
    target = vector("weights", weights, length=len(keys))
    if (target < 0).any():
        place = int(np.argmin(target))
        raise InputError(
            "weights",
            f"weight {place} is {target[place]:g}",
            expected="weights of at least 0 were expected",
        )
    total = float(target.sum())
    if abs(total - 1) > 1e-9:
        raise InputError(
            "weights",
            f"sum to {total:.10g}",
            expected="a sum of 1 was expected",
            way_out=f"divide them by {total:.10g}" if total > 0 else "give some key a weight",
        )
    chosen = tuple(int(place) for place in np.flatnonzero(target))
    return _design(_order("weights", keys, target / total, chosen, tolerance, scale))


def _design(order: Order) -> Design:
    ratios = fix_ratios(order.keys, order.target)
    if ratios.dependency is not None:
        return design_with_nearest_ratios(order, ratios, ratios.dependency)
    found = design_on_face(order, ratios)
    return found if isinstance(found, Design) else design_off_face(order, ratios, found)


def _order(
    kind: str,
    keys: Float[np.ndarray, "n d"],
    target: Float[np.ndarray, " n"],
    of: tuple[int, ...],
    tolerance: float,
    scale: Scale,
) -> Order:
    return Order(
        kind=kind,
        keys=keys,
        target=target,
        of=of,
        tolerance=between("tolerance", tolerance, 0.0, 1.0),
        scale=scale_of(scale, keys.shape[1]),
    )


def _even(chosen: tuple[int, ...], count: int) -> Float[np.ndarray, " n"]:
    target = np.zeros(count)
    target[list(chosen)] = 1.0 / len(chosen)
    return target
