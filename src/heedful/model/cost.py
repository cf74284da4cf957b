"""What a decoder costs, by formula: parameters, operations, memory.

With width w, L layers, q = heads × head width, k = kv heads × head width, hidden width f
(three matrices for SwiGLU, two otherwise), vocabulary V and a sequence of n tokens:

    matrices of a block   w(q + 2k) + q w + (2 or 3) w f
    operations a token    2 (L × matrices + w V) + 4 L q n        forward
    cache of a sequence   2 L k n numbers

A multiplication and an addition count as two operations. Attention is counted over all n keys,
as dense kernels compute it; the causal half is less. Training takes three times the forward
pass: backward needs one product for the inputs and one for the weights.
"""

from __future__ import annotations

from typing import Literal

from heedful.errors import InputError
from heedful.model.config import DecoderConfig, Learned

Precision = Literal["float64", "float32", "float16", "bfloat16"]
BYTES: dict[Precision, int] = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


def parameter_count(config: DecoderConfig) -> int:
    """Return the number of trained numbers.

    >>> from heedful.model.presets import PRESETS
    >>> f"{parameter_count(PRESETS['gpt2']):,}"
    '124,439,808'
    """
    norm = config.width * (2 if config.norm.kind == "layer" and config.norm.bias else 1)
    total = config.vocabulary * config.width * (1 if config.tied else 2)
    total += config.layers * (_matrices(config) + _biases(config) + 2 * norm)
    total += norm if config.norm.placement == "pre" else 0
    if config.attention.qk_norm:
        total += config.layers * 2 * config.head_width
    if isinstance(config.positions, Learned):
        total += config.context * config.width
    return total


def flops_per_token(
    config: DecoderConfig, length: int | None = None, *, training: bool = False
) -> int:
    """Return the operations for one token of a sequence of `length` (the context by default)."""
    length = config.context if length is None else _count("length", length)
    products = config.layers * _matrices(config) + config.width * config.vocabulary
    attention = 4 * config.layers * config.query_width * length
    return (2 * products + attention) * (3 if training else 1)


def weight_bytes(config: DecoderConfig, precision: Precision = "float32") -> int:
    """Return the memory of the weights."""
    return parameter_count(config) * BYTES[precision]


def cache_bytes(
    config: DecoderConfig,
    length: int | None = None,
    *,
    batch: int = 1,
    precision: Precision = "float32",
) -> int:
    """Return the memory of the keys and values of `batch` sequences of `length`."""
    length = config.context if length is None else _count("length", length)
    numbers = 2 * config.layers * config.kv_width * length * _count("batch", batch)
    return numbers * BYTES[precision]


def _matrices(config: DecoderConfig) -> int:
    width, hidden = config.width, config.hidden_width
    attention = width * (config.query_width + 2 * config.kv_width) + config.query_width * width
    return attention + width * hidden * (3 if config.feed_forward.activation == "swiglu" else 2)


def _biases(config: DecoderConfig) -> int:
    total = 0
    if config.attention.qkv_bias:
        total += config.query_width + 2 * config.kv_width
    if config.attention.output_bias:
        total += config.width
    if config.feed_forward.bias:
        inner = 2 if config.feed_forward.activation == "swiglu" else 1
        total += inner * config.hidden_width + config.width
    return total


def _count(name: str, value: int) -> int:
    if value < 1:
        raise InputError(name, f"is {value}", expected="at least 1 was expected")
    return value
