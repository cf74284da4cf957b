"""What a training would take on many GPUs, by formula: memory, traffic and time of a step.

With P parameters in L layers of width w, vocabulary V, R ranks and N tokens on each of them:

    state        16 P bytes         weights, gradients and AdamW's two means, in float32;
                                    `fsdp` spreads it over the ranks, and has two layers gathered
    activations  (34 L w + 10 V) N  bytes in bfloat16, nothing computed twice, no n × n weights
    traffic      2 (R−1)/R · 4 P    bytes a rank sends with `ddp`: gradients, all-reduced
                 3 (R−1)/R · 4 P    with `fsdp`: weights gathered twice, gradients scattered
    checkpoint   12 P bytes         weights and means, written and read back by the first rank
    step         compute + traffic at worst, the longer of the two where they overlap fully

This is arithmetic about machines that are not here: assumptions are arguments, never facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heedful.errors import InputError
from heedful.model.config import DecoderConfig
from heedful.model.cost import flops_per_token, parameter_count
from heedful.records import Record

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
