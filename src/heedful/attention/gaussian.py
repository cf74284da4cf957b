"""Keys that are not quite known: k_i ~ N(μ_i, Σ_i), independent of one another.

Σ_i is one of three:

    σ_i² I                     the same noise in every direction (0 means vanishingly small)
    σ_i² I + v_i w_i w_iᵀ      and more of it along one direction w_i (μ_i when left out)
    Σ_i                        anything symmetric without a negative eigenvalue
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from heedful.attention.arrays import index, matrix, number_of, numpy64, vector
from heedful.errors import InputError
from heedful.records import Record

NEGATIVE_TOLERANCE = 1e-10
"""An eigenvalue this far below 0, relative to the largest, is taken for rounding."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianKeys(Record):
    """Means and noise of n independent Gaussian keys; build it with `GaussianKeys.of`."""

    means: Float[np.ndarray, "n d"]
    """μ_i, one row a key."""
    isotropic: Float[np.ndarray, " n"]
    """σ_i², the variance of key i in every direction; 0 for a key with a full covariance."""
    directions: dict[int, Float[np.ndarray, " d"]]
    """w_i for the keys that are noisier along one direction."""
    variances: dict[int, float]
    """v_i, the variance along w_i (of a multiple of w_i, which need not be a unit vector)."""
    covariances: dict[int, Float[np.ndarray, "d d"]]
    """Σ_i for the keys whose covariance was given in full."""

    @classmethod
    def of(
        cls,
        means: Any,
        *,
        isotropic: Any = 0.0,
        noisy: Mapping[Any, Any] | None = None,
        directions: Mapping[Any, Any] | None = None,
        covariances: Any = None,
    ) -> GaussianKeys:
        """Return checked Gaussian keys.

        `isotropic` is one variance for all keys or one for each; `noisy` maps a key to the
        extra variance v along its direction, which is its own mean unless `directions` names
        another; `covariances` maps a key to a whole matrix, which replaces the other two, or is
        one array (n, d, d) with a matrix for every key.

        >>> keys = GaussianKeys.of(np.eye(3), noisy={0: 0.5})
        >>> keys.covariance(0)
        array([[0.5, 0. , 0. ],
               [0. , 0. , 0. ],
               [0. , 0. , 0. ]])
        """
        means = matrix("means", means)
        n, d = means.shape
        spread = _variances_of(isotropic, n)
        extra = {
            index("noisy", key, n): _variance("noisy", key, value)
            for key, value in (noisy or {}).items()
        }
        along = {
            index("directions", key, n): vector(f"directions[{key}]", value, length=d)
            for key, value in (directions or {}).items()
        }
        for key in along:
            if key not in extra:
                raise InputError(
                    "directions",
                    f"key {key} has a direction but no variance along it",
                    way_out=f"add its variance: noisy={{{key}: 0.5}}",
                )
        full = {
            index("covariances", key, n): _covariance(key, value, d)
            for key, value in _by_key(covariances, n).items()
        }
        for key in full:
            if key in extra:
                raise InputError(
                    "covariances",
                    f"key {key} has both a full covariance and an extra variance",
                    expected="a full covariance already says everything",
                    way_out=f"leave key {key} out of `noisy`",
                )
            spread[key] = 0.0
        return cls(
            means=means,
            isotropic=spread,
            directions={key: along.get(key, means[key]) for key in extra},
            variances=extra,
            covariances=full,
        )

    @property
    def n(self) -> int:
        """How many keys there are."""
        return int(self.means.shape[0])

    @property
    def d(self) -> int:
        """The dimension of the keys."""
        return int(self.means.shape[1])

    def covariance(self, key: int) -> Float[np.ndarray, "d d"]:
        """Return Σ_i of one key as a whole matrix."""
        key = index("key", key, self.n)
        if key in self.covariances:
            return self.covariances[key]
        Sigma = self.isotropic[key] * np.eye(self.d)
        if key in self.variances:
            w = self.directions[key]
            Sigma = Sigma + self.variances[key] * np.outer(w, w)
        return np.asarray(Sigma)

    def factor(self, key: int) -> Float[np.ndarray, "d r"]:
        """Return B with Σ_i = B Bᵀ for a key whose covariance was given in full."""
        eigenvalues, vectors = np.linalg.eigh(self.covariances[key])
        kept = eigenvalues > 0
        return np.asarray(vectors[:, kept] * np.sqrt(eigenvalues[kept]))


def _variances_of(isotropic: Any, n: int) -> Any:
    spread = numpy64("isotropic", isotropic)
    if spread.ndim == 0:
        spread = np.full(n, float(spread))
    else:
        spread = vector("isotropic", spread, length=n).copy()
    if spread.min() < 0:
        key = int(spread.argmin())
        raise InputError(
            "isotropic",
            f"key {key} has variance {spread[key]:g}",
            expected="variances of 0 or more were expected",
        )
    return spread


def _variance(name: str, key: Any, value: Any) -> float:
    variance = number_of(f"{name}[{key}]", value)
    if variance < 0:
        raise InputError(
            f"{name}[{key}]", f"is {variance:g}", expected="a variance of 0 or more was expected"
        )
    return variance


def _by_key(covariances: Any, n: int) -> Mapping[Any, Any]:
    if covariances is None:
        return {}
    if isinstance(covariances, Mapping):
        return covariances
    stack = numpy64("covariances", covariances, rank=3)
    if len(stack) != n:
        raise InputError(
            "covariances", f"has {len(stack)} matrices", expected=f"one for each of the {n} keys"
        )
    return dict(enumerate(stack))


def _covariance(key: Any, value: Any, d: int) -> Any:
    """Return a checked covariance; what rounding left unsymmetric is averaged away."""
    name = f"covariances[{key}]"
    Sigma = matrix(name, value)
    if Sigma.shape != (d, d):
        raise InputError(name, f"has shape {Sigma.shape}", expected=f"({d}, {d}) was expected")
    size = float(np.abs(Sigma).max())
    skew = np.abs(Sigma - Sigma.T)
    if skew.max() > NEGATIVE_TOLERANCE * size:
        row, column = np.unravel_index(int(skew.argmax()), skew.shape)
        raise InputError(
            name,
            f"is not symmetric: entry [{row}, {column}] is {Sigma[row, column]:g} "
            f"but [{column}, {row}] is {Sigma[column, row]:g}",
            way_out="use (Σ + Σᵀ)/2 if the difference means nothing",
        )
    Sigma = (Sigma + Sigma.T) / 2
    lowest = float(np.linalg.eigvalsh(Sigma)[0])
    if lowest < -NEGATIVE_TOLERANCE * size:
        raise InputError(
            name,
            f"is not positive semidefinite: its most negative eigenvalue is {lowest:.6g}",
            expected="every eigenvalue of a covariance is 0 or more",
            way_out=f"add {-lowest:.3g} to its diagonal if that noise is meant",
        )
    return Sigma
