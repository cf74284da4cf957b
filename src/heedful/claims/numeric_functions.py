"""The functions of the formula language on values, in float64, over all draws at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from heedful.attention.operation import softmax as softmax_of
from heedful.claims.values import (
    Kind,
    NoValueError,
    Value,
    add,
    formal_size,
    multiply,
    scalar,
    transpose,
)
from heedful.errors import FormulaError

Function = Callable[..., Value]


def _entrywise(function: Callable[[Any], Any]) -> Function:
    def apply(x: Value) -> Value:
        with np.errstate(all="ignore"):
            return Value(function(x.array), x.kind)

    return apply


def softmax(x: Value) -> Value:
    """Softmax of a vector, or of each row of a matrix."""
    return Value(softmax_of(x.array), x.kind)


def self_attention(arguments: list[Value], scale: float) -> Value:
    """What every row of X reads from all rows, with K, Q and V if they are given."""
    x = arguments[0]
    keys, queries, values = (
        multiply(x, transpose(arguments[place])) if len(arguments) > place else x
        for place in (1, 2, 3)
    )
    logits = multiply(multiply(scalar(scale), queries), transpose(keys))
    return multiply(softmax(logits), values)


def norm(x: Value, p: Value | None = None) -> Value:
    """‖x‖, or the p-norm (p = 1, 2, infinity); Frobenius for matrices.

    Of a combination of arbitrary values it is the largest norm that values of norm and mutual
    distance at most 1 can give it.
    """
    flat = x.array.reshape(len(x.array), -1)
    if x.formal:
        return Value(formal_size(flat), "scalar")
    order = 2.0 if p is None else float(p.array.flat[0])
    if order == 2.0:
        size = np.sqrt((flat**2).sum(axis=1))
    elif np.isinf(order):
        size = np.abs(flat).max(axis=1)
    elif order >= 1.0:
        size = (np.abs(flat) ** order).sum(axis=1) ** (1.0 / order)
    else:
        raise FormulaError("formula", f"norm with p = {order:g}", expected="p ≥ 1")
    return Value(size, "scalar")


def entropy(p: Value) -> Value:
    """−Σ p ln p of a vector, in nats."""
    with np.errstate(all="ignore"):
        terms = np.where(p.array > 0, p.array * np.log(np.where(p.array > 0, p.array, 1.0)), 0.0)
    return Value(-terms.sum(axis=-1), "scalar" if p.kind != "matrix" else "vector")


def tv(p: Value, q: Value) -> Value:
    """Total variation: half of Σ |p − q|."""
    difference = add(p, q, -1.0)
    return Value(np.abs(difference.array).sum(axis=-1) / 2, "scalar")


def kl(p: Value, q: Value) -> Value:
    """Σ p ln(p/q)."""
    inside = p.array > 0
    if np.any(inside & (q.array <= 0)):
        raise NoValueError("formula", "kl(p, q) is infinite", expected="q > 0 wherever p > 0")
    ratio = np.where(inside, p.array, 1.0) / np.where(inside, q.array, 1.0)
    return Value((np.where(inside, p.array, 0.0) * np.log(ratio)).sum(axis=-1), "scalar")


def layernorm(x: Value) -> Value:
    """Centre a vector (or each row) and scale it to variance 1; no constant added."""
    centred = x.array - x.array.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True))
    if np.any(spread == 0):
        raise NoValueError("formula", "layernorm of a constant vector", expected="some spread")
    return Value(centred / spread, x.kind)


def rmsnorm(x: Value) -> Value:
    """Scale a vector (or each row) to mean square 1; no constant added."""
    size = np.sqrt((x.array**2).mean(axis=-1, keepdims=True))
    if np.any(size == 0):
        raise NoValueError("formula", "rmsnorm of the zero vector", expected="another vector")
    return Value(x.array / size, x.kind)


def whole(x: Value, what: str, most: int = 4096) -> int:
    """Return a scalar as a whole number of reasonable size."""
    number = float(x.array.flat[0])
    if x.kind != "scalar" or number != round(number) or not 0 <= number <= most:
        raise FormulaError(
            "formula", f"{what} is {number:g}", expected=f"a whole number from 0 to {most}"
        )
    return round(number)


def ones(rows: Value, columns: Value | None = None) -> Value:
    """A vector or matrix of ones."""
    shape = (
        (whole(rows, "a size"),)
        if columns is None
        else (whole(rows, "a size"), whole(columns, "a size"))
    )
    return Value(np.ones((1, *shape)), "vector" if columns is None else "matrix")


def zeros(rows: Value, columns: Value | None = None) -> Value:
    """A vector or matrix of zeros."""
    made = ones(rows, columns)
    return Value(0.0 * made.array, made.kind)


def eye(size: Value) -> Value:
    """The identity matrix."""
    return Value(np.eye(whole(size, "a size"))[None], "matrix")


def causal(size: Value) -> Value:
    """0 where position t may see (0…t), −1e9 elsewhere: to be added before softmax."""
    length = whole(size, "a length")
    return Value(np.triu(np.full((length, length), -1e9), k=1)[None], "matrix")


def onehot(position: Value, size: Value) -> Value:
    """The unit vector with its 1 at a position, counted from 1."""
    place = whole(position, "a position")
    length = whole(size, "a size")
    if not 1 <= place <= length:
        raise FormulaError("formula", f"onehot({place}, {length})", expected="1 ≤ position ≤ size")
    return Value(np.eye(length)[place - 1][None], "vector")


def outer(x: Value, y: Value) -> Value:
    """x yᵀ."""
    return multiply(_as(x, "vector"), _as(y, "row"))


def dot(x: Value, y: Value) -> Value:
    """xᵀ y."""
    return multiply(_as(x, "row"), _as(y, "vector"))


def hadamard(x: Value, y: Value) -> Value:
    """Entry by entry."""
    if x.kind != y.kind or x.shape != y.shape:
        raise FormulaError(
            "formula",
            f"hadamard of a {x.describe()} and a {y.describe()}",
            expected="the same shape",
        )
    return Value(x.array * y.array, x.kind)


def concat(*parts: Value) -> Value:
    """Vectors, or numbers, one after the other."""
    draws = max(len(part.array) for part in parts)
    vectors = [
        Value(part.array[:, None], "vector") if part.kind == "scalar" else _as(part, "vector")
        for part in parts
    ]
    arrays = [np.broadcast_to(part.array, (draws, *part.shape)) for part in vectors]
    return Value(np.concatenate(arrays, axis=1), "vector")


def stack(*parts: Value) -> Value:
    """Vectors as the rows of a matrix."""
    draws = max(len(part.array) for part in parts)
    if len({part.shape for part in parts}) != 1:
        raise FormulaError(
            "formula", "stack of vectors of different lengths", expected="one length"
        )
    arrays = [np.broadcast_to(_as(part, "vector").array, (draws, *part.shape)) for part in parts]
    return Value(np.stack(arrays, axis=1), "matrix")


def trace(x: Value) -> Value:
    """Sum of the diagonal."""
    return Value(np.trace(_square(x).array, axis1=1, axis2=2), "scalar")


def det(x: Value) -> Value:
    """Determinant."""
    return Value(np.linalg.det(_square(x).array), "scalar")


def inv(x: Value) -> Value:
    """Inverse of a square matrix."""
    try:
        return Value(np.linalg.inv(_square(x).array), "matrix")
    except np.linalg.LinAlgError:
        raise NoValueError("formula", "inverts a singular matrix") from None


def rank(x: Value) -> Value:
    """Rank of a matrix (numerically)."""
    return Value(np.linalg.matrix_rank(_as(x, "matrix").array).astype(float), "scalar")


def diag(x: Value) -> Value:
    """A vector as a diagonal matrix, or the diagonal of a matrix."""
    if x.kind == "matrix":
        return Value(np.diagonal(x.array, axis1=1, axis2=2).copy(), "vector")
    return Value(x.array[:, :, None] * np.eye(x.shape[0])[None], "matrix")


def argmax(x: Value) -> Value:
    """Position of the largest entry, counted from 1."""
    return Value(np.argmax(x.array, axis=-1).astype(float) + 1.0, "scalar")


def mean(x: Value) -> Value:
    """Mean of the entries."""
    return Value(x.array.reshape(len(x.array), -1).mean(axis=1), "scalar")


def phi(t: Value, width: int, base: float) -> Value:
    """The sinusoidal position embedding of position t, which need not be a whole number."""
    if t.kind != "scalar":
        raise FormulaError("formula", f"phi of a {t.describe()}", expected="a position")
    turned = t.array[:, None] / base ** (np.arange(0, width, 2) / width)
    made = np.empty((len(turned), width))
    made[:, 0::2], made[:, 1::2] = np.sin(turned), np.cos(turned[:, : width // 2])
    return Value(made, "vector")


def rotate(x: Value, t: Value, base: float = 10000.0) -> Value:
    """Rotate pairs (x_1, x_2), (x_3, x_4), … by t·ω: the rotary position of x."""
    width = x.shape[0]
    if x.kind != "vector" or width % 2:
        raise FormulaError("formula", f"rotate of a {x.describe()}", expected="an even vector")
    angles = t.array.reshape(-1, 1) / base ** (np.arange(0, width, 2) / width)
    cosine, sine = np.cos(angles), np.sin(angles)
    even, odd = x.array[:, 0::2], x.array[:, 1::2]
    turned = np.stack((even * cosine - odd * sine, even * sine + odd * cosine), axis=-1)
    return Value(turned.reshape(len(turned), width), "vector")


def round_half(x: Value) -> Value:
    """Round to IEEE half precision."""
    with np.errstate(over="ignore"):
        return Value(x.array.astype(np.float16).astype(float), x.kind)


def round_bfloat(x: Value) -> Value:
    """Round to bfloat16 (8 bits of precision), to nearest, ties to even."""
    bits = x.array.astype(np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return Value(rounded.view(np.float32).astype(float), x.kind)


def _as(x: Value, kind: Kind) -> Value:
    if x.kind == kind:
        return x
    if {x.kind, kind} == {"vector", "row"}:
        return transpose(x)
    raise FormulaError("formula", f"has a {x.describe()}", expected=f"a {kind} was expected")


def _square(x: Value) -> Value:
    if x.kind != "matrix" or x.shape[0] != x.shape[1]:
        raise FormulaError("formula", f"has a {x.describe()}", expected="a square matrix")
    return x


FUNCTIONS: dict[str, Function] = {
    "exp": _entrywise(np.exp),
    "ln": _entrywise(np.log),
    "log": _entrywise(np.log),
    "sqrt": _entrywise(np.sqrt),
    "abs": _entrywise(np.abs),
    "sin": _entrywise(np.sin),
    "cos": _entrywise(np.cos),
    "tanh": _entrywise(np.tanh),
    "sigmoid": _entrywise(expit),
    "relu": _entrywise(lambda array: np.maximum(array, 0.0)),
    "sign": _entrywise(np.sign),
    "floor": _entrywise(np.floor),
    "Phi": _entrywise(ndtr),
    "softmax": softmax,
    "softmax_rows": softmax,
    "norm": norm,
    "entropy": entropy,
    "tv": tv,
    "kl": kl,
    "layernorm": layernorm,
    "rmsnorm": rmsnorm,
    "ones": ones,
    "zeros": zeros,
    "eye": eye,
    "causal": causal,
    "onehot": onehot,
    "outer": outer,
    "dot": dot,
    "hadamard": hadamard,
    "concat": concat,
    "stack": stack,
    "rows": stack,
    "trace": trace,
    "det": det,
    "inv": inv,
    "rank": rank,
    "diag": diag,
    "argmax": argmax,
    "mean": mean,
    "transpose": transpose,
    "round16": round_half,
    "roundbf16": round_bfloat,
}
