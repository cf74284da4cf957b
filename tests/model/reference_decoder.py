"""The slow, obvious decoder: one head and one row at a time, from the equations.

It takes the weights of a `Decoder` and shares no line with it: attention comes from room
`attention`, positions from room `positions`, everything in float64.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import torch
from torch import Tensor

from heedful.attention import attend, causal, softmax
from heedful.model import Decoder, DecoderConfig
from heedful.model.config import Attention, FeedForward, Norm
from heedful.positions.encodings import (
    Alibi,
    Learned,
    NoPositions,
    PartialRotary,
    Rotary,
    RotaryScheme,
    Sinusoidal,
    alibi_bias,
    rotary,
    sinusoidal,
)

POSITIONS = {
    "sinusoidal": Sinusoidal(),
    "learned": Learned(),
    "interleaved": Rotary(layout="interleaved"),
    "half": Rotary(base=500.0, layout="half"),
    "partial": PartialRotary(share=0.5),
    "partial-half": PartialRotary(share=0.75, layout="half"),
    "alibi": Alibi(),
    "none": NoPositions(),
}


def small_config(positions: str = "interleaved", **changes: Any) -> DecoderConfig:
    """Return a config small enough for float64 oracles."""
    settings: dict[str, Any] = {
        "vocabulary": 23,
        "context": 16,
        "width": 24,
        "layers": 2,
        "attention": Attention(heads=6, kv_heads=2),
        "feed_forward": FeedForward(activation="swiglu", width=20),
        "norm": Norm(kind="rms"),
        "positions": POSITIONS[positions],
        "initial_std": 0.3,
    }
    return DecoderConfig(**{**settings, **changes})


def configs() -> dict[str, DecoderConfig]:
    """Return one config for each choice that changes the equations."""
    found = {f"positions-{name}": small_config(name) for name in POSITIONS}
    for kind, placement in product(("layer", "rms"), ("pre", "post")):
        found[f"{kind}-{placement}"] = small_config(norm=Norm(kind=kind, placement=placement))
    for activation in ("gelu", "gelu_tanh", "relu"):
        found[activation] = small_config(
            feed_forward=FeedForward(activation=activation, bias=True), embedding_scale=2.0
        )
    found["biases"] = small_config(
        "learned", attention=Attention(heads=3, qkv_bias=True, output_bias=True), tied=False
    )
    found["qk-norm"] = small_config(
        attention=Attention(heads=4, kv_heads=4, head_width=10, qk_norm=True, qkv_bias=True)
    )
    return found


def random_decoder(config: DecoderConfig, seed: int = 0) -> Decoder:
    """Return a float64 decoder whose biases and gains are random too."""
    decoder = Decoder(config, seed=seed).double()
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in decoder.parameters():
            if parameter.ndim == 1:
                noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                parameter.add_(noise, alpha=0.3)
    return decoder


def random_tokens(config: DecoderConfig, batch: int, time: int, seed: int = 0) -> Tensor:
    """Return random ids."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, config.vocabulary, (batch, time), generator=generator)


def reference_logits(decoder: Decoder, tokens: Tensor) -> Tensor:
    """Return the logits of each row, worked out on its own."""
    weights = dict(decoder.named_parameters())
    return torch.stack([_row(decoder.config, weights, row) for row in tokens])


def _row(config: DecoderConfig, weights: dict[str, Tensor], tokens: Tensor) -> Tensor:
    time = len(tokens)
    x = weights["embedding.weight"][tokens] * config.embedding_scale
    if isinstance(config.positions, Learned):
        x = x + weights["positions.weight"][:time]
    if isinstance(config.positions, Sinusoidal):
        x = x + torch.from_numpy(sinusoidal(time, config.width, config.positions.base))
    pre = config.norm.placement == "pre"
    for layer in range(config.layers):
        own = {
            name.removeprefix(f"blocks.{layer}."): value
            for name, value in weights.items()
            if name.startswith(f"blocks.{layer}.")
        }
        seen = _norm(config, own, "attention_norm", x) if pre else x
        x = x + _attention(config, own, seen)
        x = x if pre else _norm(config, own, "attention_norm", x)
        seen = _norm(config, own, "feed_forward_norm", x) if pre else x
        x = x + _feed_forward(config, own, seen)
        x = x if pre else _norm(config, own, "feed_forward_norm", x)
    x = _norm(config, weights, "norm", x) if pre else x
    return x @ weights["embedding.weight" if config.tied else "head.weight"].T


def _attention(config: DecoderConfig, own: dict[str, Tensor], x: Tensor) -> Tensor:
    width, heads = config.head_width, config.attention.heads
    joint = _linear(own, "attention.qkv", x)
    queries, keys, values = (
        part.reshape(len(x), -1, width)
        for part in joint.split((config.query_width, config.kv_width, config.kv_width), dim=-1)
    )
    outputs = []
    for head in range(heads):
        shared = head // (heads // config.kv_heads)
        q, k, v = queries[:, head], keys[:, shared], values[:, shared]
        if config.attention.qk_norm:
            q = _root_mean_square(q, own["attention.query_norm.weight"], config.norm.eps)
            k = _root_mean_square(k, own["attention.key_norm.weight"], config.norm.eps)
        if isinstance(config.positions, RotaryScheme):
            q, k = _rotated(config.positions, q), _rotated(config.positions, k)
        mask = torch.from_numpy(causal(len(x)))
        if isinstance(config.positions, Alibi):
            bias = torch.from_numpy(alibi_bias(heads, len(x))[head])
            outputs.append(softmax(q @ k.T / math.sqrt(width) + bias, mask) @ v)
        else:
            outputs.append(attend(q, k, v, scale="sqrt_d", mask=mask).output)
    return _linear(own, "attention.output", torch.cat(outputs, dim=-1))


def _rotated(scheme: RotaryScheme, x: Tensor) -> Tensor:
    share = scheme.share if isinstance(scheme, PartialRotary) else 1.0
    rotated = 2 * math.floor(x.shape[-1] * share / 2)
    first = rotary(x[:, :rotated], base=scheme.base, layout=scheme.layout)
    return torch.cat([first, x[:, rotated:]], dim=-1)


def _feed_forward(config: DecoderConfig, own: dict[str, Tensor], x: Tensor) -> Tensor:
    inner = _linear(own, "feed_forward.up", x)
    activation = config.feed_forward.activation
    if activation == "swiglu":
        gate, up = inner.chunk(2, dim=-1)
        inner = gate * torch.sigmoid(gate) * up
    elif activation == "relu":
        inner = inner * (inner > 0)
    elif activation == "gelu":
        inner = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))
    else:
        cubic = inner + 0.044715 * inner**3
        inner = 0.5 * inner * (1 + torch.tanh(math.sqrt(2 / math.pi) * cubic))
    return _linear(own, "feed_forward.down", inner)


def _norm(config: DecoderConfig, own: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    gains = own[f"{name}.weight"]
    if config.norm.kind == "rms":
        return _root_mean_square(x, gains, config.norm.eps)
    centred = x - x.mean(-1, keepdim=True)
    variance = (centred**2).mean(-1, keepdim=True)
    return centred / torch.sqrt(variance + config.norm.eps) * gains + own[f"{name}.bias"]


def _root_mean_square(x: Tensor, gains: Tensor, eps: float) -> Tensor:
    return x / torch.sqrt((x**2).mean(-1, keepdim=True) + eps) * gains


def _linear(own: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    bias = own.get(f"{name}.bias")
    made = x @ own[f"{name}.weight"].T
    return made if bias is None else made + bias
