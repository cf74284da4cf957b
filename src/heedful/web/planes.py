"""How keys of d dimensions are seen in the plane of a screen.

A plane is two perpendicular unit vectors, the rows of P: a key k is drawn at P k. Whatever lies
off the plane is not seen, but it counts: weights are always computed in all d dimensions.

    round        Kᵀ [cos 2πi/n, sin 2πi/n], made orthonormal: orthonormal keys form a circle
    principal    the two directions in which the keys differ most
    keys         the plane through 0 and two chosen keys
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from heedful.arrays import indices, matrix
from heedful.attention.keys import circle
from heedful.errors import InputError
from heedful.records import Record

PlaneKind = Literal["auto", "round", "principal", "keys"]
ValuesKind = Literal["keys", "circle"]

FLAT = 1e-9
"""Two directions closer than this, relative to their length, span no plane."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Scene(Record):
    """Keys, their values, and the plane in which both are drawn."""

    keys: Float[np.ndarray, "n d"]
    """One row a key, in all its dimensions."""
    values: Float[np.ndarray, "n 2"]
    """What each key holds: a point of the plane."""
    plane: Float[np.ndarray, "2 d"]
    """P: a key k is drawn at P k."""
    shown: float
    """The share of the keys' squared length that lies in the plane."""


def scene(
    keys: Any, *, values: Any = "keys", plane: PlaneKind = "auto", through: Any = ()
) -> Scene:
    """Return keys with values in the plane, and the plane.

    `values` is "keys" (each value lies where its key is drawn), "circle" (evenly on the unit
    circle), or one row of two numbers a key.

    >>> round(scene(np.eye(4), plane="round").shown, 12)
    0.5
    """
    keys = matrix("keys", keys)
    P = plane_of(keys, plane, through)
    total = float((keys**2).sum())
    return Scene(
        keys=keys,
        values=_values(values, keys, P),
        plane=P,
        shown=float(((keys @ P.T) ** 2).sum()) / total if total else 1.0,
    )


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


def _values(
    values: Any, keys: Float[np.ndarray, "n d"], P: Float[np.ndarray, "2 d"]
) -> Float[np.ndarray, "n 2"]:
    if isinstance(values, str):
        if values not in ("keys", "circle"):
            raise InputError("values", f"{values!r} is unknown", expected="keys, circle, or rows")
        return keys @ P.T if values == "keys" else circle(len(keys))
    given = matrix("values", values, columns=2)
    if len(given) != len(keys):
        raise InputError(
            "values", f"has {len(given)} rows", expected=f"one for each of the {len(keys)} keys"
        )
    return np.asarray(given)
