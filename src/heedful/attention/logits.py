"""Noisy keys as the heads see them: a Gaussian of logits for each key.

Heads q_1 … q_H share the keys k_i ~ N(μ_i, Σ_i). All that reaches softmax is

    (s k_i·q_1, …, s k_i·q_H)  =  z_i + L_i ξ_i,     ξ_i ~ N(0, I),
    z_i = s Q μ_i,             L_i L_iᵀ = s² Q Σ_i Qᵀ,

so d-dimensional keys are never drawn. Keys without noise in any logit ("quiet" keys) move as
one: inside head h their shares π_hj are fixed, and only their common mass γ_h moves. Hence

    ᾱ_i = (1/H) Σ_h α_hi                   for a noisy key,
    ᾱ_j = (1/H) Σ_h π_hj γ_h               for a quiet one,

and every mean and covariance of ᾱ, and of c = Σ ᾱ_i v_i, is a linear image of those of the
features G = (ᾱ of the noisy keys; γ_1 … γ_H). The cost of a draw depends on neither n nor d.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from heedful.attention.arrays import Array, matrix, numpy64
from heedful.attention.gaussian import GaussianKeys
from heedful.attention.operation import Scale, scale_of
from heedful.errors import InputError

EPSILON = float(np.finfo(float).eps)


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
            way_out="give queries and keys of one dimension",
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
            way_out="scale the queries or the keys down",
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
