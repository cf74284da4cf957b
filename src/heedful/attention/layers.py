"""Small layers as pure functions of arrays: the ones that statements about order are about.

    H = softmax(s X W_Q (X W_K)ᵀ) X W_V                  self-attention, s = 1/√d
    Z = ReLU(H W_1 + 1 b_1) W_2 + 1 b_2                  feed-forward, row by row

X has one row a token, (T, d). A layer gives back the library it was given, so that NumPy
and torch callers share one definition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from heedful.attention.arrays import Array, float64
from heedful.attention.operation import Scale, attend, causal, softmax
from heedful.errors import InputError

Layer = Callable[[Array], Array]
"""A function from an array to an array."""

LONGEST = 64
"""Rows of the position table that `standard_layers` draws."""


def self_attention(
    X: Any, W_Q: Any, W_K: Any, W_V: Any, *, scale: Scale = "sqrt_d", mask: Any = None
) -> Array:
    """Return softmax(s X W_Q (X W_K)ᵀ) X W_V: one head without an output projection.

    >>> self_attention([[1.0, 0.0], [1.0, 0.0]], np.eye(2), np.eye(2), np.eye(2))
    array([[1., 0.],
           [1., 0.]])
    """
    X = float64("X", X, rank=2)
    Q, K, V = (X @ _weight(name, W, X) for name, W in (("W_Q", W_Q), ("W_K", W_K), ("W_V", W_V)))
    return attend(Q, K, V, scale=scale, mask=mask).output


def feed_forward(X: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Array:
    """Return ReLU(X W_1 + b_1) W_2 + b_2: the same map for every row."""
    X = float64("X", X, rank=2)
    hidden = _weight("W_1", W_1, X)
    xp = array_namespace(X)
    H = relu(X @ hidden + _bias("b_1", b_1, hidden.shape[1], xp))
    out = _weight("W_2", W_2, H)
    return H @ out + _bias("b_2", b_2, out.shape[1], xp)


def relu(X: Any) -> Array:
    """Return max(x, 0), entry by entry."""
    X = float64("X", X)
    xp = array_namespace(X)
    return xp.clip(X, 0.0, None)


def softmax_rows(A: Any) -> Array:
    """Return exp(A) with each row scaled to sum to 1."""
    return softmax(float64("A", A))


def add_positions(X: Any, table: Any) -> Array:
    """Return X + Φ: row t gets row t of the table, whatever token stands there."""
    X = float64("X", X, rank=2)
    table = _like("table", table, array_namespace(X))
    if table.shape[1] != X.shape[1] or table.shape[0] < X.shape[0]:
        raise InputError(
            "table",
            f"has shape {tuple(table.shape)}",
            expected=f"{X.shape[1]} columns and at least {X.shape[0]} rows were expected",
            way_out="give a longer or wider table of positions",
        )
    return X + table[: X.shape[0], :]


def mean_rows(X: Any) -> Array:
    """Return the average of the rows: the simplest layer that ignores order altogether."""
    X = float64("X", X, rank=2)
    return array_namespace(X).mean(X, axis=0)


def standard_layers(width: int = 4, seed: int = 0) -> dict[str, Layer]:
    """Return named layers with random weights, each a function of X alone, (T, width).

    >>> [name for name in standard_layers(2) if "causal" in name]
    ['causal self-attention']
    """
    if isinstance(width, bool) or width < 1:
        raise InputError("width", f"is {width}", expected="a whole number from 1 on was expected")
    rng = np.random.default_rng(seed)
    W_Q, W_K, W_V, W_1, W_2 = rng.standard_normal((5, width, width))
    b_1, b_2 = rng.standard_normal((2, width))
    table = rng.standard_normal((LONGEST, width))

    def heads(X: Array) -> Array:
        return self_attention(X, W_Q, W_K, W_V)

    def dense(X: Array) -> Array:
        return feed_forward(X, W_1, b_1, W_2, b_2)

    def masked(X: Array) -> Array:
        return self_attention(X, W_Q, W_K, W_V, mask=causal(X.shape[0]))

    return {
        "self-attention": heads,
        "feed-forward": dense,
        "self-attention + feed-forward": lambda X: dense(heads(X)),
        "causal self-attention": masked,
        "positions + self-attention": lambda X: heads(add_positions(X, table)),
        "relu": relu,
        "softmax of rows": softmax_rows,
        "mean of rows": mean_rows,
    }


def _weight(name: str, value: Any, X: Array) -> Array:
    weight = _like(name, value, array_namespace(X))
    if weight.shape[0] != X.shape[1]:
        raise InputError(
            name,
            f"has {weight.shape[0]} rows",
            expected=f"{X.shape[1]} were expected, one for each column of what it multiplies",
        )
    return weight


def _bias(name: str, value: Any, width: int, xp: Any) -> Array:
    bias = float64(name, xp.asarray(value), rank=1)
    if bias.shape[0] != width:
        raise InputError(name, f"has {bias.shape[0]} entries", expected=f"{width} were expected")
    return bias


def _like(name: str, value: Any, xp: Any) -> Array:
    # A matrix of weights follows the library of X, so that one layer serves both.
    array = float64(name, value, rank=2)
    return array if array_namespace(array) is xp else xp.asarray(array)
