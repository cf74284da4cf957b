"""The parts of a decoder: attention, feed-forward, and the block that joins them.

    pre-norm   x ← x + attention(norm x)        x ← x + feed_forward(norm x)
    post-norm  x ← norm(x + attention x)        x ← norm(x + feed_forward x)

Queries, keys and values come from one product, and so do the two halves of SwiGLU.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from heedful.model import config as settings
from heedful.model.cache import Cache
from heedful.model.config import DecoderConfig
from heedful.model.norms import make_norm
from heedful.model.sight import Sight
from heedful.model.trace import Notes

Stream = Float[Tensor, "batch time width"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "relu": functional.relu,
    "swiglu": functional.silu,
}


class SelfAttention(nn.Module):
    """Every head of one layer: c = softmax(qkᵀ/√d) v, over the tokens in sight."""

    def __init__(self, config: DecoderConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.heads, self.kv_heads = config.attention.heads, config.kv_heads
        self.head_width = config.head_width
        width, joint = config.width, config.query_width + 2 * config.kv_width
        self.qkv = nn.Linear(width, joint, bias=config.attention.qkv_bias)
        self.output = nn.Linear(config.query_width, width, bias=config.attention.output_bias)
        self.query_norm = self.key_norm = None
        if config.attention.qk_norm:
            norm = settings.Norm(kind="rms", eps=config.norm.eps)
            self.query_norm = make_norm(self.head_width, norm)
            self.key_norm = make_norm(self.head_width, norm)
        self.dropout = config.dropout.attention
        self.kernel: Callable[..., Tensor] = functional.scaled_dot_product_attention
        """What computes softmax(qkᵀ/√d) v; training replaces it to draw its own dropout."""

    def forward(
        self, x: Stream, sight: Sight, cache: Cache | None = None, notes: Notes | None = None
    ) -> Stream:
        """Return what the heads read, projected back to the width of the stream."""
        queries, keys, values = self.project(x, sight)
        if cache is not None:
            keys, values = cache.extend(self.layer, keys, values)
        read = self.kernel(
            queries,
            keys,
            values,
            attn_mask=sight.kernel_mask,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=sight.causal,
            enable_gqa=self.heads != self.kv_heads,
        )
        if notes is not None:
            notes.write(queries=queries, keys=keys, values=values, head_outputs=read)
        joined: Tensor = self.output(read.transpose(1, 2).flatten(2))
        return joined

    def project(self, x: Stream, sight: Sight) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries (batch, heads, time, d) and keys and values (batch, kv heads, time, d)."""
        heads = self.qkv(x).unflatten(-1, (-1, self.head_width))
        matched, values = heads.split((self.heads + self.kv_heads, self.kv_heads), dim=2)
        if self.query_norm is not None and self.key_norm is not None:
            queries, keys = matched.split((self.heads, self.kv_heads), dim=2)
            matched = torch.cat([self.query_norm(queries), self.key_norm(keys)], dim=2)
        if sight.turn is not None:
            matched = sight.turn(matched)
        queries, keys = matched.split((self.heads, self.kv_heads), dim=2)
        return queries.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2)


class FeedForward(nn.Module):
    """Two linear maps with an activation between, the same for every token."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        hidden, bias = config.hidden_width, config.feed_forward.bias
        self.gated = config.feed_forward.activation == "swiglu"
        self.activation = ACTIVATIONS[config.feed_forward.activation]
        self.up = nn.Linear(config.width, hidden * (2 if self.gated else 1), bias=bias)
        self.down = nn.Linear(hidden, config.width, bias=bias)

    def forward(self, x: Stream) -> Stream:
        """Return down(activation(up x)); SwiGLU: down(silu(gate x) · up x)."""
        inner = self.up(x)
        if self.gated:
            gate, value = inner.chunk(2, dim=-1)
            inner = self.activation(gate) * value
        else:
            inner = self.activation(inner)
        outer: Tensor = self.down(inner)
        return outer


class Block(nn.Module):
    """One layer: attention, then feed-forward, each added to the residual stream."""

    def __init__(self, config: DecoderConfig, layer: int) -> None:
        super().__init__()
        self.attention_norm = make_norm(config.width, config.norm)
        self.attention = SelfAttention(config, layer)
        self.feed_forward_norm = make_norm(config.width, config.norm)
        self.feed_forward = FeedForward(config)
        self.dropout = nn.Dropout(config.dropout.residual)
        self.before = config.norm.placement == "pre"

    def forward(
        self, stream: Stream, sight: Sight, cache: Cache | None = None, notes: Notes | None = None
    ) -> Stream:
        """Return the stream after this layer."""
        seen = self.attention_norm(stream) if self.before else stream
        attended = self.dropout(self.attention(seen, sight, cache, notes))
        middle = stream + attended
        if not self.before:
            middle = self.attention_norm(middle)
        seen = self.feed_forward_norm(middle) if self.before else middle
        transformed = self.dropout(self.feed_forward(seen))
        after: Tensor = middle + transformed
        if not self.before:
            after = self.feed_forward_norm(after)
        if notes is not None:
            notes.write(attended=attended, middle=middle, transformed=transformed, after=after)
            notes.turn_page()
        return after
