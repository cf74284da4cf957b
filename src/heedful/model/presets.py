"""Decoders with a name."""

from __future__ import annotations

from typing import Any

from heedful.errors import ConfigError
from heedful.model.config import (
    Attention,
    DecoderConfig,
    FeedForward,
    Learned,
    Norm,
    Rotary,
)


def _gpt2(vocabulary: int, context: int, width: int, layers: int, heads: int) -> DecoderConfig:
    return DecoderConfig(
        vocabulary=vocabulary,
        context=context,
        width=width,
        layers=layers,
        attention=Attention(heads=heads, qkv_bias=True, output_bias=True),
        feed_forward=FeedForward(activation="gelu_tanh", bias=True),
        norm=Norm(kind="layer", eps=1e-5),
        positions=Learned(),
    )


def _llama(
    vocabulary: int, context: int, width: int, layers: int, heads: int, kv_heads: int, hidden: int
) -> DecoderConfig:
    return DecoderConfig(
        vocabulary=vocabulary,
        context=context,
        width=width,
        layers=layers,
        attention=Attention(heads=heads, kv_heads=kv_heads),
        feed_forward=FeedForward(activation="swiglu", width=hidden),
        norm=Norm(kind="rms", eps=1e-5),
        positions=Rotary(),
    )


PRESETS: dict[str, DecoderConfig] = {
    "a5": _gpt2(256, 128, 256, 4, 8),
    "tiny": _llama(256, 128, 64, 2, 4, 2, 176),
    "small": _llama(8_000, 256, 512, 6, 8, 8, 1_408),
    "llama": _llama(32_000, 1_024, 288, 6, 6, 6, 768),
    "gpt2": _gpt2(50_257, 1_024, 768, 12, 12),
    "smollm2": _llama(49_152, 8_192, 576, 30, 9, 3, 1_536).changed(positions=Rotary(base=100_000)),
}
"""`a5`: the character model of the course, 4 layers of 8 heads, 256 wide. `tiny` and `small`:
Llama-like, for experiments in seconds and in minutes. `llama`: the 15-million-parameter shape
of story tellers. `gpt2` and `smollm2`: the shapes of the published models."""


def preset(name: str, **changes: Any) -> DecoderConfig:
    """Return a named config, with some settings replaced.

    >>> preset("a5", vocabulary=300).layers
    4
    """
    if name not in PRESETS:
        raise ConfigError(
            "preset", f"there is none called {name!r}", expected=f"one of {', '.join(PRESETS)}"
        )
    return PRESETS[name].changed(**changes) if changes else PRESETS[name]
