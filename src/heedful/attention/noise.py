"""Keys that are not quite known: k_i ~ N(μ_i, Σ_i), independent of one another.

Σ_i is one of three:

    σ_i² I                     the same noise in every direction (0 means vanishingly small)
    σ_i² I + v_i w_i w_iᵀ      and more of it along one direction w_i (μ_i when left out)
    Σ_i                        anything symmetric without a negative eigenvalue
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from heedful.arrays import EPSILON, Array, index, matrix, number_of, numpy64, vector
from heedful.attention.operation import Scale, scale_of
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
            index("noisy", key, n): number_of(f"noisy[{key}]", value, least=0)
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
                    hint=f"add its variance: noisy={{{key}: 0.5}}",
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
                    hint=f"leave key {key} out of `noisy`",
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

    def spreads(self) -> Float[np.ndarray, " n"]:
        """Return tr Σ_i of every key, without a whole matrix for each."""
        spreads = self.isotropic * float(self.d)
        for key, variance in self.variances.items():
            spreads[key] += variance * float(self.directions[key] @ self.directions[key])
        for key, Sigma in self.covariances.items():
            spreads[key] = np.trace(Sigma)
        return np.asarray(spreads)

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
            hint="use (Σ + Σᵀ)/2 if the difference means nothing",
        )
    Sigma = (Sigma + Sigma.T) / 2
    lowest = float(np.linalg.eigvalsh(Sigma)[0])
    if lowest < -NEGATIVE_TOLERANCE * size:
        raise InputError(
            name,
            f"is not positive semidefinite: its most negative eigenvalue is {lowest:.6g}",
            expected="every eigenvalue of a covariance is 0 or more",
            hint=f"add {-lowest:.3g} to its diagonal if that noise is meant",
        )
    return Sigma


# Noisy keys as the heads see them: a Gaussian of logits for each key.
#
# Heads q_1 … q_H share the keys k_i ~ N(μ_i, Σ_i). All that reaches softmax is
#
#     (s k_i·q_1, …, s k_i·q_H)  =  z_i + L_i ξ_i,     ξ_i ~ N(0, I),
#     z_i = s Q μ_i,             L_i L_iᵀ = s² Q Σ_i Qᵀ,
#
# so d-dimensional keys are never drawn. Keys without noise in any logit ("quiet" keys) move as
# one: inside head h their shares π_hj are fixed, and only their common mass γ_h moves. Hence
#
#     ᾱ_i = (1/H) Σ_h α_hi                   for a noisy key,
#     ᾱ_j = (1/H) Σ_h π_hj γ_h               for a quiet one,
#
# and every mean and covariance of ᾱ, and of c = Σ ᾱ_i v_i, is a linear image of those of the
# features G = (ᾱ of the noisy keys; γ_1 … γ_H). The cost of a draw depends on neither n nor d.


@dataclass(frozen=True, eq=False, kw_only=True)
class LogitModel:
    """The Gaussian logits of n keys in H heads, split into noisy and quiet keys."""

    means: Float[np.ndarray, "H n"]
    """z, the logits of the mean keys."""
    noisy: Int[np.ndarray, " N"]
    """The keys whose logits are noisy."""
    factors: Float[np.ndarray, "N H r"]
    """L_i of the noisy keys, padded with zero columns to one width."""
    ranks: Int[np.ndarray, " N"]
    """How many columns of each factor count."""
    quiet: Int[np.ndarray, " n_quiet"]
    """The keys whose logits never change."""
    shares: Float[np.ndarray, "H n_quiet"]
    """π: how each head splits the mass of the quiet keys among them."""
    constants: Float[np.ndarray, " H"]
    """ln Σ exp(z) over the quiet keys; −∞ where there is none."""
    dropped: float
    """Standard deviation of the logit noise that was below rounding and left out."""

    @property
    def n(self) -> int:
        """How many keys there are."""
        return int(self.means.shape[1])

    @property
    def heads(self) -> int:
        """How many heads read them."""
        return int(self.means.shape[0])

    @property
    def dimensions(self) -> int:
        """R: how many independent standard normals move the logits."""
        return int(self.ranks.sum())

    @property
    def features(self) -> int:
        """How many numbers G has."""
        return len(self.noisy) + (self.heads if len(self.quiet) else 0)

    def logits(self, xi: Float[np.ndarray, "N r m"]) -> Float[np.ndarray, "H N m"]:
        """Return the logits of the noisy keys at m places ξ."""
        z = np.repeat(self.means[:, self.noisy, None], xi.shape[-1], axis=2)
        for column in range(self.factors.shape[2]):
            z += self.factors[:, :, column].T[:, :, None] * xi[None, :, column, :]
        return z

    def feature_values(self, xi: Float[np.ndarray, "N r m"]) -> Float[np.ndarray, "p m"]:
        """Return G at m places ξ, safely for logits of any size."""
        alpha, gamma = self.weights(xi)
        averaged = alpha.mean(axis=0) if self.heads > 1 else alpha[0]
        return np.concatenate([averaged, gamma]) if len(self.quiet) else averaged

    def weights(
        self, xi: Float[np.ndarray, "N r m"]
    ) -> tuple[Float[np.ndarray, "H N m"], Float[np.ndarray, "H m"]]:
        """Return α of the noisy keys and γ of the quiet group in each head, at m places ξ."""
        alpha = self.logits(xi)
        top = np.maximum(alpha.max(axis=1, initial=-math.inf), self.constants[:, None])
        alpha -= top[:, None]
        np.exp(alpha, out=alpha)
        gamma = np.exp(self.constants[:, None] - top)
        total = alpha.sum(axis=1) + gamma
        alpha /= total[:, None]
        return alpha, gamma / total

    def spread(self, features: Float[np.ndarray, "p ..."]) -> Float[np.ndarray, "n ..."]:
        """Return ᾱ of every key from the features."""
        N = len(self.noisy)
        alpha = np.empty((self.n, *features.shape[1:]))
        alpha[self.noisy] = features[:N]
        if len(self.quiet):
            alpha[self.quiet] = self.quiet_map @ features[N:]
        return alpha

    @cached_property
    def quiet_map(self) -> Float[np.ndarray, "n_quiet H"]:
        """The matrix that takes γ to ᾱ of the quiet keys."""
        return self.shares.T / self.heads

    def at_the_means(self) -> Float[np.ndarray, " n"]:
        """Return ᾱ when no key is noisy."""
        still = np.zeros((len(self.noisy), self.factors.shape[2], 1))
        return self.spread(self.feature_values(still))[:, 0]


def checked_queries(queries: Any, d: int) -> Any:
    """Return one query or several as a checked (H, d) matrix."""
    array = numpy64("queries", queries)
    if array.ndim != 2:
        array = matrix("queries", array[None] if array.ndim == 1 else array)
    if array.shape[1] != d:
        raise InputError(
            "queries",
            f"have dimension {array.shape[1]}",
            expected=f"the keys have dimension {d}",
            hint="give queries and keys of one dimension",
        )
    return array


def logit_model(keys: GaussianKeys, queries: Any, scale: Scale = 1.0) -> LogitModel:
    """Return the Gaussian logits of `keys` in the heads `queries`, (H, d) or one (d)."""
    Q = checked_queries(queries, keys.d) * scale_of(scale, keys.d)
    with np.errstate(over="ignore", invalid="ignore"):
        means = Q @ keys.means.T
        blocks, dropped = _factors(keys, Q)
    if not (
        np.isfinite(means).all() and all(np.isfinite(block).all() for block in blocks.values())
    ):
        raise InputError(
            "queries",
            "k·q overflows float64",
            expected="products below 1.8e308, of queries shorter than 1e154, were expected",
            hint="scale the queries or the keys down",
        )
    noisy = np.array(sorted(blocks), dtype=np.int64)
    ranks = np.array([blocks[key].shape[1] for key in noisy], dtype=np.int64)
    factors = np.zeros((len(noisy), len(Q), int(ranks.max(initial=0))))
    for row, key in enumerate(noisy):
        factors[row, :, : ranks[row]] = blocks[key]
    calm = np.ones(keys.n, dtype=bool)
    calm[noisy] = False
    quiet = np.flatnonzero(calm)
    constants, shares = _quiet_group(means[:, quiet])
    return LogitModel(
        means=means,
        noisy=noisy,
        factors=factors,
        ranks=ranks,
        quiet=quiet,
        shares=shares,
        constants=constants,
        dropped=dropped,
    )


def _factors(keys: GaussianKeys, Q: Array) -> tuple[dict[int, Array], float]:
    """Return L_i for every key with noise in some logit, and the size of what was left out."""
    blocks: dict[int, Array] = {}
    dropped = 0.0
    lengths = np.sqrt((Q * Q).sum(axis=1))
    for key, variance in keys.variances.items():
        w = keys.directions[key]
        column = math.sqrt(variance) * (Q @ w)
        # A head perpendicular to w feels nothing; its dot product is only rounding.
        rounding = EPSILON * math.sqrt(keys.d * variance * float(w @ w)) * lengths
        if not np.isfinite(rounding).all():
            # Squares overflow before products do; without a bound nothing may be left out.
            blocks[key] = np.full((len(Q), 1), math.inf)
            continue
        noise = np.where(np.abs(column) <= rounding, 0.0, column)
        dropped += float(np.abs(column - noise).max())
        if noise.any():
            blocks[key] = noise[:, None]
    for key in keys.covariances:
        block, lost = _thin(Q @ keys.factor(key))
        dropped += lost
        if block.shape[1]:
            blocks[key] = block
    everywhere = np.flatnonzero(keys.isotropic)
    if len(everywhere):
        base, lost = _thin(Q)
        for key, sigma in zip(
            everywhere.tolist(), np.sqrt(keys.isotropic[everywhere]), strict=True
        ):
            block, more = sigma * base, 0.0
            if key in blocks:
                block, more = _thin(np.concatenate([block, blocks[key]], axis=1))
            dropped += sigma * lost + more
            if block.shape[1]:
                blocks[key] = block
    return blocks, dropped


def _thin(factor: Array) -> tuple[Array, float]:
    """Return a factor of the same covariance with as few columns as its rank."""
    if not np.isfinite(factor).all():
        return factor, 0.0  # refused by `logit_model`, in words
    left, singular, _ = np.linalg.svd(factor, full_matrices=False)
    kept = singular > EPSILON * max(factor.shape) * singular.max(initial=0.0)
    return left[:, kept] * singular[kept], float(singular[~kept].sum())


def _quiet_group(means: Array) -> tuple[Array, Array]:
    if means.shape[1] == 0:
        return np.full(len(means), -math.inf), means
    top = means.max(axis=1, keepdims=True)
    shares = np.exp(means - top)
    total = shares.sum(axis=1, keepdims=True)
    return (top + np.log(total))[:, 0], shares / total


# From features to what a layer gives out: c = Σ ᾱ_i v_i, and how far it is from a target.
#
# c is linear in the features G of a logit model, c = B G, so that
#
#     ‖c − t‖ = ‖R (G; −1)‖      with R the triangular factor of the matrix (B, t):
#
# the distance costs the same whatever the dimension of the values. Without values, c is ᾱ
# itself; then the noisy keys keep their own coordinates and only the quiet ones are folded.


class Readout:
    """What the values make of the weights, and the distance of c from a target."""

    def __init__(self, model: LogitModel, values: Any = None, target: Any = None) -> None:
        self.model = model
        self.values = _checked_values(values, model.n)
        width = model.n if self.values is None else self.values.shape[1]
        noiseless = model.at_the_means()
        self.target: Array = (
            self.output(noiseless) if target is None else vector("target", target, length=width)
        )
        self._B = None if self.values is None else self._columns(self.values)
        self._factor = self._triangle()

    def output(self, alpha: Float[np.ndarray, "n ..."]) -> Float[np.ndarray, "v ..."]:
        """Return c of given weights."""
        return alpha if self.values is None else self.values.T @ alpha

    def output_of(self, features: Float[np.ndarray, "p ..."]) -> Float[np.ndarray, "v ..."]:
        """Return c of given features."""
        return self.model.spread(features) if self._B is None else self._B @ features

    def distances(self, features: Float[np.ndarray, "p m"]) -> Float[np.ndarray, " m"]:
        """Return ‖c − t‖ at m places."""
        if self._B is not None:
            residual = self._factor[:, :-1] @ features - self._factor[:, -1:]
            return np.asarray(np.sqrt((residual * residual).sum(axis=0)))
        N = len(self.model.noisy)
        own = features[:N] - self.target[self.model.noisy][:, None]
        squared = (own * own).sum(axis=0)
        if len(self.model.quiet):
            rest = self._factor[:, :-1] @ features[N:] - self._factor[:, -1:]
            squared = squared + (rest * rest).sum(axis=0)
        return np.asarray(np.sqrt(squared))

    def variances(self, covariance: Float[np.ndarray, "p p"]) -> Float[np.ndarray, " v"]:
        """Return the variances of the entries of c from the covariance of the features."""
        if self._B is None:
            return weight_variances(self.model, covariance)
        return np.asarray(((self._B @ covariance) * self._B).sum(axis=1)).clip(min=0.0)

    def leverage(self) -> Float[np.ndarray, "H N"]:
        """Return ‖v_i/H − b_h‖: how far c moves when head h moves its mass to noisy key i.

        b_h is where that mass comes from: the quiet keys' share of c in head h or, when no key
        is quiet, the last noisy key.
        """
        model = self.model
        H, N = model.heads, len(model.noisy)
        if self.values is None:
            if not len(model.quiet):
                apart = np.full((H, N), math.sqrt(2.0))
                apart[:, -1:] = 0.0
                return apart / H
            quiet_length = (model.shares * model.shares).sum(axis=1)
            return np.repeat(np.sqrt(1.0 + quiet_length)[:, None], N, axis=1) / H
        at = self.values[model.noisy]
        if len(model.quiet):
            source = model.shares @ self.values[model.quiet]
        else:
            source = np.repeat(at[-1:], H, axis=0)
        return np.asarray(np.linalg.norm(at[None] - source[:, None], axis=-1)) / H

    def size(self) -> float:
        """Return a bound on ‖c − t‖, the unit of its rounding errors."""
        longest = 1.0 if self.values is None else float(np.linalg.norm(self.values, axis=1).max())
        return longest + float(np.linalg.norm(self.target))

    def _columns(self, values: Array) -> Array:
        model = self.model
        own = values[model.noisy].T
        if not len(model.quiet):
            return own
        return np.concatenate([own, values[model.quiet].T @ model.quiet_map], axis=1)

    def _triangle(self) -> Array:
        if self._B is not None:
            return np.linalg.qr(np.column_stack([self._B, self.target]), mode="r")
        if not len(self.model.quiet):
            return np.zeros((0, 1))
        quiet_target = self.target[self.model.quiet]
        return np.linalg.qr(np.column_stack([self.model.quiet_map, quiet_target]), mode="r")


def weight_variances(
    model: LogitModel, covariance: Float[np.ndarray, "p p"]
) -> Float[np.ndarray, " n"]:
    """Return the variance of ᾱ of every key from the covariance of the features."""
    N = len(model.noisy)
    variances = np.empty(model.n)
    variances[model.noisy] = np.diag(covariance)[:N]
    if len(model.quiet):
        W = model.quiet_map
        variances[model.quiet] = ((W @ covariance[N:, N:]) * W).sum(axis=1)
    return variances.clip(min=0.0)


def weight_covariance(
    model: LogitModel, covariance: Float[np.ndarray, "p p"]
) -> Float[np.ndarray, "n n"]:
    """Return the covariance of ᾱ over all keys from that of the features."""
    return model.spread(model.spread(covariance).T)


def _checked_values(values: Any, n: int) -> Array | None:
    if values is None:
        return None
    array = matrix("values", values)
    if array.shape[0] != n:
        raise InputError(
            "values", f"has {array.shape[0]} rows", expected=f"one for each of the {n} keys"
        )
    return array
