"""Attention as an operation on queries, keys and values: equations (1) and (2).

    c = Σ_i α_i v_i                                  (1)
    α_i = exp(s k_i·q) / Σ_j exp(s k_j·q)            (2)

The scale s is 1, as in the equations, or 1/√d, as in Transformers. Everything is float64 and
works on NumPy arrays and torch tensors alike, so that this one definition serves the
exploration, the oracle in the tests, and the analysis of trained heads.

One convention for a query that may see no key: it reads nothing. Its weights, its output,
its entropy and its effective number of keys are 0, and so are the gradients through it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Bool, Float

from heedful.arrays import Array, float64, indices, number_of, vector
from heedful.errors import InputError
from heedful.records import Record

Scale = float | Literal["sqrt_d"]
"""What multiplies every k·q: a number (1 in the equations), or "sqrt_d" for 1/√d."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AttentionResult(Record):
    """What one or many queries read; the axes are those of the queries, then the keys."""

    logits: Array
    """s k_i·q for every query and key, before the mask; (*batch, q, k)."""
    weights: Array
    """α, rows that sum to 1 (or to 0 where nothing may be seen); (*batch, q, k)."""
    output: Array
    """c = Σ α_i v_i; (*batch, q, v)."""
    entropy: Array
    """−Σ α_i ln α_i in nats; (*batch, q)."""
    effective_keys: Array
    """exp(entropy): over how many keys the reading is spread; (*batch, q)."""

    def mass(self, keys: Iterable[int]) -> Array:
        """Return the mass on a set S of keys: Σ_{i∈S} α_i, for each query."""
        xp = array_namespace(self.weights)
        chosen = indices("mass", keys, self.weights.shape[-1])
        return xp.sum(self.weights[..., list(chosen)], axis=-1)


def attend(
    queries: Any,
    keys: Any,
    values: Any = None,
    *,
    scale: Scale = 1.0,
    mask: Any = None,
) -> AttentionResult:
    """Read `values` by how well `keys` match `queries`.

    `queries` is one query (d) or many (*batch, q, d); `keys` is (*batch, k, d); `values` is
    (*batch, k, v) and stands for the unit vectors when left out, so that c shows α itself.
    `mask` is boolean, (q, k) or broadcastable to it: True means "may attend".

    >>> import numpy as np
    >>> reading = attend(6 * np.array([1.0, 1.0, 0.0]), np.eye(3))
    >>> reading.weights.round(3)
    array([0.499, 0.499, 0.001])
    >>> float(reading.mass([0, 1]).round(3))
    0.999
    """
    queries, keys = float64("queries", queries), float64("keys", keys)
    xp = _one_library(queries, keys)
    if keys.ndim < 2:
        raise InputError(
            "keys",
            f"has shape {tuple(keys.shape)}",
            expected="one row of numbers a key was expected: (k, d)",
        )
    if queries.shape[-1] != keys.shape[-1]:
        raise InputError(
            "queries",
            f"has dimension {queries.shape[-1]}",
            expected=f"the keys have dimension {keys.shape[-1]}",
            hint="give queries and keys of one dimension",
        )
    if values is not None:
        values = float64("values", values)
        _one_library(keys, values)
    if values is not None and (values.ndim < 2 or values.shape[-2] != keys.shape[-2]):
        raise InputError(
            "values",
            f"has shape {tuple(values.shape)}",
            expected=f"one row for each of the {keys.shape[-2]} keys was expected",
        )
    one_query = queries.ndim == 1
    if one_query:
        queries = xp.expand_dims(queries, axis=0)
    reading = _read(
        queries, keys, values, scale_of(scale, keys.shape[-1]), _checked(mask, keys, xp)
    )
    if not one_query:
        return reading
    return AttentionResult(
        logits=reading.logits[..., 0, :],
        weights=reading.weights[..., 0, :],
        output=reading.output[..., 0, :],
        entropy=reading.entropy[..., 0],
        effective_keys=reading.effective_keys[..., 0],
    )


def softmax(
    logits: Float[Array, "*rows k"], mask: Bool[Array, "*rows k"] | None = None
) -> Float[Array, "*rows k"]:
    """Return exp(logits) with rows scaled to sum to 1; a row with no key to see becomes 0.

    Safe for any finite logits: the largest of each row is subtracted first, and masked
    entries are replaced before `exp`, so that no infinity can turn a gradient into NaN.
    """
    exponentials, total, _ = _exponentials(logits, mask)
    return exponentials / total


def scale_of(scale: Scale, dimension: int) -> float:
    """Return the number that multiplies k·q."""
    if scale == "sqrt_d":
        return 1.0 / math.sqrt(dimension)
    number = number_of("scale", scale)
    if number <= 0:
        raise InputError(
            "scale",
            f"is {number:g}",
            expected='a positive number, or "sqrt_d" for 1/√d, was expected',
        )
    return number


def average_weights(of: Iterable[int], n: int) -> Float[np.ndarray, " n"]:
    """Return the weights that average the values of some of n keys."""
    chosen = indices("of", of, n)
    weights = np.zeros(n)
    weights[list(chosen)] = 1.0 / len(chosen)
    return weights


def wanted_weights(name: str, value: Any, n: int) -> Float[np.ndarray, " n"]:
    """Return weights that somebody asks for: one for each key, 0 or more, with sum 1."""
    weights = vector(name, value, length=n)
    if weights.min() < 0:
        place = int(weights.argmin())
        raise InputError(
            name,
            f"weight {place} is {weights[place]:g}",
            expected="weights of at least 0 were expected",
        )
    total = float(weights.sum())
    if abs(total - 1) > 1e-9:
        raise InputError(
            name,
            f"sum to {total:.10g}",
            expected="a sum of 1 was expected",
            hint=f"divide them by {total:.10g}" if total > 0 else "give some key a weight",
        )
    return np.asarray(weights)


def causal(length: int) -> Any:
    """Return the mask in which position t sees positions 0…t; True means "may attend"."""
    return np.tril(np.ones((length, length), dtype=bool))


def _read(
    queries: Float[Array, "*batch q d"],
    keys: Float[Array, "*batch k d"],
    values: Float[Array, "*batch k v"] | None,
    scale: float,
    mask: Bool[Array, " ..."] | None,
) -> AttentionResult:
    xp = array_namespace(queries)
    with np.errstate(over="ignore", invalid="ignore"):  # overflow is reported just below
        logits = (queries * scale) @ xp.matrix_transpose(keys)
    if not bool(xp.all(xp.isfinite(logits))):
        raise InputError(
            "queries",
            "k·q overflows float64",
            expected="products below 1.8e308 were expected",
            hint="scale the queries or the keys down",
        )
    if mask is not None:
        mask = xp.broadcast_to(mask, logits.shape)
    exponentials, total, shifted = _exponentials(logits, mask)
    weights = exponentials / total
    # −Σ α ln α with ln α = shifted − ln total: finite even where α underflows to 0.
    rows = xp.squeeze(total, axis=-1)
    entropy = xp.log(rows) - xp.sum(weights * shifted, axis=-1)
    entropy = xp.clip(entropy, 0.0, None)  # rounding may leave −1e−17
    seen = xp.sum(weights, axis=-1) > 0
    return AttentionResult(
        logits=logits,
        weights=weights,
        output=weights if values is None else weights @ values,  # unit vectors: c = α
        entropy=entropy,
        effective_keys=xp.where(seen, xp.exp(entropy), xp.zeros_like(entropy)),
    )


def _exponentials(logits: Array, mask: Array | None) -> tuple[Array, Array, Array]:
    """Return exp(logits − max), its row sums (1 where a row is empty), and logits − max."""
    xp = array_namespace(logits)
    if mask is None:
        shifted = logits - xp.max(logits, axis=-1, keepdims=True)
        exponentials = xp.exp(shifted)
        return exponentials, xp.sum(exponentials, axis=-1, keepdims=True), shifted
    lowest = xp.full_like(logits, -xp.finfo(logits.dtype).max)
    peak = xp.max(xp.where(mask, logits, lowest), axis=-1, keepdims=True)
    anything = xp.any(mask, axis=-1, keepdims=True)
    peak = xp.where(anything, peak, xp.zeros_like(peak))
    shifted = xp.where(mask, logits - peak, xp.zeros_like(logits))
    exponentials = xp.where(mask, xp.exp(shifted), xp.zeros_like(logits))
    total = xp.sum(exponentials, axis=-1, keepdims=True)
    return exponentials, xp.where(anything, total, xp.ones_like(total)), shifted


def _checked(mask: Any, keys: Array, xp: Any) -> Array | None:
    if mask is None:
        return None
    mask = xp.asarray(mask)
    if mask.dtype != xp.bool:
        raise InputError(
            "mask",
            f"has dtype {mask.dtype}",
            expected='a boolean mask was expected, True for "may attend"',
        )
    if mask.ndim == 0 or mask.shape[-1] not in (1, keys.shape[-2]):
        raise InputError(
            "mask",
            f"has shape {tuple(mask.shape)}",
            expected=f"its last axis must be the {keys.shape[-2]} keys",
        )
    return mask


def _one_library(*arrays: Array) -> Any:
    try:
        return array_namespace(*arrays)
    except TypeError:
        kinds = ", ".join(sorted({type(array).__module__.split(".")[0] for array in arrays}))
        raise InputError(
            "arrays",
            f"come from different libraries ({kinds})",
            expected="all NumPy or all torch was expected",
        ) from None


# A reading: what attention gave, with the mass on a set that somebody asked about.


@dataclass(frozen=True, eq=False, kw_only=True)
class Reading(Record):
    """The weights, output and spread of one query or many, ready to be shown."""

    weights: Array
    """α for each query and key."""
    output: Array
    """c for each query."""
    logits: Array
    """s k·q for each query and key."""
    entropy: Array
    """−Σ α ln α for each query, in nats."""
    effective_keys: Array
    """exp(entropy): over how many keys each query spreads its reading."""
    mass_on: tuple[int, ...] | None
    """The set that was asked about."""
    mass: Array | None
    """Σ α over that set, for each query."""
    mean: Array | None = None
    """The mean of all outputs, as heads with these queries give it, if it was asked for."""

    @classmethod
    def of(
        cls, attention: AttentionResult, mass_on: Sequence[int] | None = None, mean: bool = False
    ) -> Reading:
        """Take an attention result, and answer what the mass on `mass_on` and the mean are."""
        chosen = None
        if mass_on is not None:
            chosen = indices("--mass-on", mass_on, attention.weights.shape[-1])
        return cls(
            weights=attention.weights,
            output=attention.output,
            logits=attention.logits,
            entropy=attention.entropy,
            effective_keys=attention.effective_keys,
            mass_on=chosen,
            mass=None if chosen is None else attention.mass(chosen),
            mean=attention.output.mean(axis=0) if mean and attention.output.ndim == 2 else None,
        )
