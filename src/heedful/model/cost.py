"""What a decoder costs, by formula: parameters, operations, memory.

With width w, L layers, q = heads × head width, k = kv heads × head width, hidden width f
(three matrices for SwiGLU, two otherwise), vocabulary V and a sequence of n tokens:

    matrices of a block   w(q + 2k) + q w + (2 or 3) w f
    operations a token    2 (L × matrices + w V) + 4 L q n        forward
    cache of a sequence   2 L k n numbers
    kept of a token       L (4 w + 2 q + 2 k + heads + inner + 2) + 2 w + V + 1

A multiplication and an addition count as two operations. Attention is counted over all n keys,
as dense kernels compute it; the causal half is less. Training takes three times the forward
pass: backward needs one product for the inputs and one for the weights.

Kept of a token is what the backward pass reads again, in numbers: two streams and their norms, the
queries, keys and values, what the heads read, one logarithm for each head, and the inner layer: 4 f
numbers with SwiGLU, 2 f otherwise. Turned or normed queries and keys add q + k, normed ones as much
again and one number a head, LayerNorm a mean beside each scale, dropout a mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heedful.errors import InputError
from heedful.model.config import DecoderConfig
from heedful.records import Record

Precision = Literal["float64", "float32", "float16", "bfloat16"]
BYTES: dict[Precision, int] = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


def parameter_count(config: DecoderConfig) -> int:
    """Return the number of trained numbers.

    >>> from heedful.model.config import PRESETS
    >>> f"{parameter_count(PRESETS['gpt2']):,}"
    '124,439,808'
    """
    norm = config.width * (2 if config.norm.kind == "layer" and config.norm.bias else 1)
    total = config.vocabulary * config.width * (1 if config.tied else 2)
    total += config.layers * (_matrices(config) + _biases(config) + 2 * norm)
    total += norm if config.norm.placement == "pre" else 0
    if config.attention.qk_norm:
        total += config.layers * 2 * config.head_width
    if config.positions.trained_table:
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


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingMemory(Record):
    """What a training step holds, in bytes of float32."""

    weights: int
    gradients: int
    moments: int
    """Of AdamW: two numbers for each weight."""
    kept: int
    """From the forward pass, for the backward pass."""

    @property
    def total(self) -> int:
        """At the end of the forward pass, when all four are there."""
        return self.weights + self.gradients + self.moments + self.kept


def training_memory(config: DecoderConfig, tokens: int) -> TrainingMemory:
    """Return the memory of a training step with so many tokens, without dropout.

    >>> from heedful.model.config import PRESETS
    >>> memory = training_memory(PRESETS["a5"], 64 * 128)
    >>> round(memory.weights / 2**20), round(memory.kept / 2**20)
    (12, 538)
    """
    weights = weight_bytes(config)
    kept = config.layers * _kept_by_a_block(config) + 2 * config.width + config.vocabulary
    kept += _norm_statistics(config) if config.norm.placement == "pre" else 0
    return TrainingMemory(
        weights=weights,
        gradients=weights,
        moments=2 * weights,
        kept=kept * _count("tokens", tokens) * BYTES["float32"],
    )


def _kept_by_a_block(config: DecoderConfig) -> int:
    """Return the numbers that one layer keeps of one token."""
    attention, matched = config.attention, config.query_width + config.kv_width
    kept = 4 * config.width + matched + config.kv_width + config.query_width + attention.heads
    kept += config.hidden_width * (4 if config.feed_forward.activation == "swiglu" else 2)
    if attention.qk_norm:
        kept += matched + matched // config.head_width
    if attention.qk_norm or config.positions.rotated_width(config.head_width):
        kept += matched  # queries and keys as they are matched, besides those of the product
    return kept + 2 * _norm_statistics(config)


def _norm_statistics(config: DecoderConfig) -> int:
    return 2 if config.norm.kind == "layer" else 1


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
