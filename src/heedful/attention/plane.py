"""The plane in which keys of many dimensions are drawn.

It is two perpendicular unit vectors, the rows of P; a key k is drawn at P k. Whatever lies off the
plane is not seen, but it counts: weights are always computed in all d dimensions.

    round        Kᵀ [cos 2πi/n, sin 2πi/n], made orthonormal: orthonormal keys form a circle
    principal    the two directions in which the keys differ most
    keys         the plane through 0 and two chosen keys
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from heedful.arrays import indices
from heedful.attention.keys import circle
from heedful.errors import InputError

PlaneKind = Literal["auto", "round", "principal", "keys"]

FLAT = 1e-9
"""Two directions closer than this, relative to their length, span no plane."""


def plane_of(
    keys: Float[np.ndarray, "n d"], kind: PlaneKind = "auto", through: Any = ()
) -> Float[np.ndarray, "2 d"]:
    """Return P, two perpendicular unit rows, for a kind of plane."""
    n, d = keys.shape
    if d <= 2:
        return np.eye(2, d)
    if kind == "keys":
        chosen = indices("through", through, n)
        if len(chosen) != 2:
            raise InputError("through", f"names {len(chosen)} keys", expected="two keys")
        return _orthonormal(keys[list(chosen)])
    if kind == "round":
        return _orthonormal(circle(n).T @ keys)
    centred = keys - keys.mean(axis=0)
    _, lengths, directions = np.linalg.svd(centred, full_matrices=True)
    lengths = np.pad(lengths, (0, max(0, 3 - len(lengths))))
    # Where the keys differ as much in a third direction, no two directions are the principal ones.
    even = lengths[2] > 0.999 * lengths[0]
    if kind == "auto" and even:
        return _orthonormal(circle(n).T @ keys)
    return np.asarray(directions[:2])


def _orthonormal(rows: Float[np.ndarray, "2 d"]) -> Float[np.ndarray, "2 d"]:
    """Return perpendicular unit rows that span the same plane, the first one kept."""
    first = rows[0] if np.linalg.norm(rows[0]) > 0 else np.eye(1, rows.shape[1])[0]
    first = first / np.linalg.norm(first)
    size = float(np.linalg.norm(rows[1]))
    second = rows[1] - (rows[1] @ first) * first
    if np.linalg.norm(second) <= FLAT * max(size, 1.0):  # on one line: any plane through it
        away = np.eye(rows.shape[1])[int(np.argmin(np.abs(first)))]
        second = away - (away @ first) * first
    return np.stack([first, second / np.linalg.norm(second)])
