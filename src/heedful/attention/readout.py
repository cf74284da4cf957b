"""From features to what a layer gives out: c = Σ ᾱ_i v_i, and how far it is from a target.

c is linear in the features G of a logit model, c = B G, so that

    ‖c − t‖ = ‖R (G; −1)‖      with R the triangular factor of the matrix (B, t):

the distance costs the same whatever the dimension of the values. Without values, c is ᾱ
itself; then the noisy keys keep their own coordinates and only the quiet ones are folded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Float

from heedful.attention.arrays import Array, indices, matrix, vector
from heedful.attention.logits import LogitModel
from heedful.errors import InputError


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


def average_of(keys: Iterable[int], n: int) -> Float[np.ndarray, " n"]:
    """Return the weights that average a set of keys."""
    chosen = indices("of", keys, n)
    weights = np.zeros(n)
    weights[list(chosen)] = 1.0 / len(chosen)
    return weights


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
