"""What a decoder costs, by formula: parameters, operations, memory; on many GPUs, traffic and time.

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

What a training would take on many GPUs is estimated alike. With P parameters, R ranks and N tokens
on each of them:

    state        16 P bytes         weights, gradients and AdamW's two means, in float32;
                                    `fsdp` spreads it over the ranks, and has two layers gathered
    activations  (34 L w + 10 V) N  bytes in bfloat16, nothing computed twice, no n × n weights
    traffic      2 (R−1)/R · 4 P    bytes a rank sends with `ddp`: gradients, all-reduced
                 3 (R−1)/R · 4 P    with `fsdp`: weights gathered twice, gradients scattered
    checkpoint   12 P bytes         weights and means, written and read back by the first rank
    step         compute + traffic at worst, the longer of the two where they overlap fully

That is arithmetic about machines that are not here: assumptions are arguments, never facts.
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


def unlearned_flops(config: DecoderConfig) -> int:
    """Return the operations that training saves for a token whose successor is not learned.

    It has no logits; and the last layer, which needs its key and its value, computes nothing else.
    """
    last = _matrices(config) - config.width * (config.query_width + 2 * config.kv_width)
    return 6 * (last + config.width * config.vocabulary)


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


STATE_BYTES = 16
SAVED_BYTES = 12
FLOAT_BYTES = 4
GATHERED_LAYERS = 2
ACTIVATION_BYTES = 34
LOGIT_BYTES = 10


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """The machines that are assumed; the defaults are eight H100 SXM in one box."""

    gpus: int = 8
    """Ranks, one a GPU."""
    gpus_a_node: int = 8
    """GPUs that share one box."""
    memory: float = 80e9
    """Bytes of a GPU."""
    peak: float = 989e12
    """Dense bfloat16 operations a second of a GPU, by its data sheet."""
    utilisation: float = 0.4
    """The share of the peak that a step reaches."""
    inside: float = 360e9
    """Bytes a second that a GPU sends to others in its box."""
    between: float = 40e9
    """Bytes a second that a GPU sends to other boxes: a 400 Gbit/s port each, at 80 %."""
    disk: float = 2e9
    """Bytes a second that the first rank writes, reads and hashes."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise InputError(name, f"is {value}", expected="a positive number was expected")

    @property
    def bandwidth(self) -> float:
        """Bytes a second on the slowest link that an exchange between all ranks crosses."""
        return self.inside if self.gpus <= self.gpus_a_node else self.between


@dataclass(frozen=True, eq=False, kw_only=True)
class StepEstimate(Record):
    """What one step would take."""

    strategy: str
    """`ddp` or `fsdp`."""
    gpus: int
    parameters: int
    state_bytes: float
    """Of each GPU: weights, gradients, optimiser."""
    activation_bytes: float
    """Of each GPU."""
    fits: bool
    """Whether both together fit into a GPU."""
    compute_seconds: float
    traffic_bytes: float
    """That each GPU sends."""
    traffic_seconds: float
    efficiency: tuple[float, float]
    """Share of the time that computes: without overlap, and with full overlap."""
    tokens_per_second: tuple[float, float]
    """Of the whole fleet, likewise."""
    checkpoint_bytes: float
    checkpoint_seconds: float
    """Written, read back and hashed by one rank while the others wait."""


def estimate(
    model: DecoderConfig,
    fleet: Fleet,
    *,
    strategy: Literal["ddp", "fsdp"] = "fsdp",
    tokens: int = 16_384,
) -> StepEstimate:
    """Estimate a step in which every rank computes `tokens` tokens, in rows of the context.

    >>> from heedful.model.config import preset
    >>> eight = estimate(preset("gpt2"), Fleet(), strategy="ddp")
    >>> f"{eight.state_bytes / 1e9:.2f} GB, {eight.traffic_bytes / 1e9:.2f} GB sent"
    '1.99 GB, 0.87 GB sent'
    """
    if tokens < 1:
        raise InputError("tokens", f"are {tokens}", expected="at least 1 was expected")
    count = parameter_count(model)
    apart = (fleet.gpus - 1) / fleet.gpus
    if strategy == "ddp":
        state, rounds = float(STATE_BYTES * count), 2
    else:
        state = STATE_BYTES * count / fleet.gpus + _gathered(model, count)
        rounds = 3
    layers = ACTIVATION_BYTES * model.layers * model.width
    activations = float((layers + LOGIT_BYTES * model.vocabulary) * tokens)
    compute = tokens * flops_per_token(model, training=True) / (fleet.peak * fleet.utilisation)
    traffic = rounds * apart * FLOAT_BYTES * count
    sending = traffic / fleet.bandwidth
    worst, best = compute + sending, max(compute, sending)
    saved = float(SAVED_BYTES * count)
    return StepEstimate(
        strategy=strategy,
        gpus=fleet.gpus,
        parameters=count,
        state_bytes=state,
        activation_bytes=activations,
        fits=state + activations <= fleet.memory,
        compute_seconds=compute,
        traffic_bytes=traffic,
        traffic_seconds=sending,
        efficiency=(compute / worst, compute / best),
        tokens_per_second=(fleet.gpus * tokens / worst, fleet.gpus * tokens / best),
        checkpoint_bytes=saved,
        checkpoint_seconds=2 * saved / fleet.disk,
    )


def _gathered(model: DecoderConfig, count: int) -> float:
    """Return the bytes of what is whole at once: some layers, and the embedding with its head."""
    outside = model.vocabulary * model.width * (1 if model.tied else 2)
    layer = (count - outside) / model.layers
    return FLOAT_BYTES * (outside + GATHERED_LAYERS * layer)
