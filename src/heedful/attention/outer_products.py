"""Matrices written as sums of outer products of named vectors: K = u_d u_dᵀ + u_c u_cᵀ.

A frame is a set of named, mutually perpendicular vectors that spans the whole space. In a
frame every matrix is Σ C_ij u_i u_jᵀ, and a matrix with few coefficients C can be read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from heedful.attention.arrays import vector
from heedful.errors import InputError

NEGLIGIBLE = 1e-9
"""Coefficients below this share of the largest are rounding and are not written."""

MOST_TERMS = 16
"""A longer sum is no longer readable; it is described instead of written."""


@dataclass(frozen=True, eq=False)
class Frame:
    """Named perpendicular vectors that span the space."""

    names: tuple[str, ...]
    norms: Float[np.ndarray, " d"]
    axes: Float[np.ndarray, "d d"]
    """Orthonormal, one row for each name; the named vector is norm × row."""

    def coordinates(self, rows: Any) -> Any:
        """Return rows (n, d) in orthonormal coordinates of the frame."""
        return rows @ self.axes.T

    def matrix(self, C: Any) -> Any:
        """Return Σ C_ij û_i û_jᵀ in the original coordinates, û being the unit axes."""
        return self.axes.T @ C @ self.axes

    def sum_of_vectors(self, value: Any, negligible: float = NEGLIGIBLE) -> str:
        """Write a vector as a sum of the named ones, without shares that are negligible.

        >>> frame({"u": [2.0, 0.0], "w": [0.0, 1.0]}, 2).sum_of_vectors(np.array([1.0, -3.0]))
        '0.5 u − 3 w'
        """
        shares = (self.axes @ value) / self.norms
        return _sum(list(zip(shares.tolist(), self.names, strict=True)), negligible)

    def sum_of_products(self, W: Any) -> str:
        """Write a matrix as a sum of outer products of the named vectors.

        >>> frame({"u": [2.0, 0.0], "w": [0.0, 1.0]}, 2).sum_of_products(np.diag([4.0, 1.0]))
        'u uᵀ + w wᵀ'
        """
        C = (self.axes @ W @ self.axes.T) / np.outer(self.norms, self.norms)
        terms = [
            (float(C[i, j]), f"{left} {right}ᵀ")
            for i, left in enumerate(self.names)
            for j, right in enumerate(self.names)
        ]
        return _sum(terms, NEGLIGIBLE)


def frame(basis: Mapping[str, Any] | None, dimension: int) -> Frame:
    """Return the frame of a named basis, completed to the whole space; e_0… when left out."""
    if basis is None:
        names = tuple(f"e_{i}" for i in range(dimension))
        return Frame(names, np.ones(dimension), np.eye(dimension))
    if not basis:
        raise InputError("basis", "names no vector", expected="at least one vector was expected")
    rows = np.array(
        [vector(f"basis[{name}]", value, length=dimension) for name, value in basis.items()]
    )
    norms = np.linalg.norm(rows, axis=1)
    names = tuple(basis)
    for name, norm in zip(names, norms, strict=True):
        if norm == 0:
            raise InputError(f"basis[{name}]", "is the zero vector", expected="a direction")
    units = rows / norms[:, None]
    overlap = np.abs(units @ units.T - np.eye(len(units)))
    if overlap.max() > 1e-9:
        first, second = np.unravel_index(int(overlap.argmax()), overlap.shape)
        raise InputError(
            "basis",
            f"{names[int(first)]} and {names[int(second)]} are not perpendicular",
            expected="mutually perpendicular vectors were expected",
            way_out="leave the basis out to have the matrices in the ordinary axes",
        )
    return _completed(names, norms, units, dimension)


def _completed(names: tuple[str, ...], norms: Any, units: Any, dimension: int) -> Frame:
    missing = dimension - len(names)
    if missing == 0:
        return Frame(names, norms, units)
    # The rows of Vᵀ beyond the rank span what the named vectors leave open.
    rest = np.linalg.svd(units)[2][len(names) :]
    return Frame(
        (*names, *(f"w_{i}" for i in range(missing))),
        np.concatenate([norms, np.ones(missing)]),
        np.concatenate([units, rest]),
    )


def _sum(terms: list[tuple[float, str]], negligible: float) -> str:
    largest = max((abs(share) for share, _ in terms), default=0.0)
    if largest == 0:
        return "0"
    kept = [(share, what) for share, what in terms if abs(share) > negligible * largest]
    if len(kept) > MOST_TERMS:
        return f"a sum of {len(kept)} terms"
    factor = abs(kept[0][0])
    alike = all(abs(abs(share) - factor) <= negligible * largest for share, _ in kept)
    if alike and len(kept) > 1 and abs(factor - 1.0) > negligible:
        inner = [(math.copysign(1.0, share), what) for share, what in kept]
        return f"{factor:.4g} ({_joined(inner, negligible)})"
    return _joined(kept, negligible)


def _joined(terms: list[tuple[float, str]], negligible: float) -> str:
    text = ""
    for share, what in terms:
        size = "" if abs(abs(share) - 1.0) <= negligible else f"{abs(share):.4g} "
        sign = ("−" if share < 0 else "") if not text else (" − " if share < 0 else " + ")
        text += f"{sign}{size}{what}"
    return text
