"""Standard sets of keys, so that an experiment needs no file.

Each is (n, d): one row a key.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from heedful.errors import InputError

KINDS = ("orthonormal", "sphere", "gaussian", "grid", "simplex")
"""The names `standard_keys` knows."""


def orthonormal(n: int, d: int | None = None) -> Float[np.ndarray, "n d"]:
    """Return n perpendicular unit keys in d dimensions (d = n when left out)."""
    d = n if d is None else d
    _at_least_one(n, d)
    if n > d:
        raise InputError(
            "--n",
            f"{n} keys cannot all be perpendicular in {d} dimensions",
            expected=f"n ≤ d was expected for orthonormal keys (n={n}, d={d})",
            way_out=f"use --d {n} or more, or --keys sphere",
        )
    return np.eye(n, d)


def sphere(n: int, d: int, seed: int = 0) -> Float[np.ndarray, "n d"]:
    """Return n random unit keys, uniform on the sphere."""
    keys = gaussian(n, d, seed)
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    return keys


def gaussian(n: int, d: int, seed: int = 0) -> Float[np.ndarray, "n d"]:
    """Return n keys with independent standard normal entries."""
    _at_least_one(n, d)
    return np.random.default_rng(seed).standard_normal((n, d))


def grid(n: int, d: int) -> Float[np.ndarray, "n d"]:
    """Return the first n points of a cubic grid around 0: most lie inside the hull."""
    _at_least_one(n, d)
    side = 1
    while side**d < n:
        side += 1
    axes = np.unravel_index(np.arange(n), (side,) * d)
    return np.stack(axes, axis=1).astype(float) - (side - 1) / 2


def simplex(n: int, d: int | None = None) -> Float[np.ndarray, "n d"]:
    """Return n unit keys, all at the same angle, with mean 0 (n ≤ d + 1)."""
    d = n - 1 if d is None else d
    _at_least_one(n, max(d, 1))
    if n < 2 or n > d + 1:
        raise InputError(
            "--n",
            f"{n} keys cannot be equally far apart in {d} dimensions",
            expected=f"2 ≤ n ≤ d + 1 was expected for a simplex (n={n}, d={d})",
            way_out=f"use --d {max(n - 1, 1)} or more",
        )
    centred = np.eye(n) - 1.0 / n
    # Rows of `centred` span n − 1 dimensions; the SVD gives coordinates in exactly those.
    left, singular, _ = np.linalg.svd(centred)
    corners = left[:, : n - 1] * singular[: n - 1]
    corners /= np.linalg.norm(corners, axis=1, keepdims=True)
    keys = np.zeros((n, d))
    keys[:, : n - 1] = corners
    return keys


def standard_keys(kind: str, n: int, d: int, seed: int = 0) -> Any:
    """Return one of the standard sets of keys by its name.

    >>> standard_keys("orthonormal", 2, 3)
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """
    if kind == "orthonormal":
        return orthonormal(n, d)
    if kind == "sphere":
        return sphere(n, d, seed)
    if kind == "gaussian":
        return gaussian(n, d, seed)
    if kind == "grid":
        return grid(n, d)
    if kind == "simplex":
        return simplex(n, d)
    raise InputError(
        "--keys",
        f"{kind!r} is neither a file nor a standard set",
        expected=f"one of {', '.join(KINDS)}, or a .npz, .npy, .json, .csv or .safetensors file",
    )


def _at_least_one(n: int, d: int) -> None:
    for name, value in (("--n", n), ("--d", d)):
        if value < 1:
            raise InputError(name, f"is {value}", expected="at least 1 was expected")
