"""Dropout from a stream of one's own: repeatable in every lane, and several times faster.

torch draws dropout from one generator for the whole process, so two threads that train at once
would take numbers in an order that nobody decides. Here each lane has its own stream. A mask
takes 16 random bits an entry; a rate is therefore rounded to a multiple of 1/65536.
"""

from __future__ import annotations

import math
from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.model import Decoder
from heedful.model.decoder import TransformerBlock
from heedful.model.masks import causal_mask
from heedful.training.randomness import Stream

LEVELS = 2**16
SHORT = 256
"""Rows up to this long are read in bfloat16 by two products; longer ones by torch, in float32."""


class StreamDropout(nn.Module):
    """Set a share of the entries to 0 and scale the others up; nothing outside of training."""

    def __init__(self, rate: float, stream: Stream) -> None:
        super().__init__()
        self.rate = rate
        self.stream = stream

    def forward(self, x: Tensor) -> Tensor:
        """Return the entries that stay, divided by their share."""
        if not self.training or self.rate == 0.0:
            return x
        return x * keeping(x, self.rate, self.stream)


class StreamAttention:
    """Attention whose weights are dropped by a stream; torch's kernel where it is faster."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def __call__(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        enable_gqa: bool = False,
    ) -> Tensor:
        """Return softmax(qkᵀ/√d) with some weights dropped, times the values."""
        rounded = _half_on_cpu(queries)
        if dropout_p == 0.0 and not (rounded and queries.shape[2] <= SHORT):
            if rounded:
                queries, keys, values = queries.float(), keys.float(), values.float()
            with torch.autocast("cpu", enabled=False) if rounded else nullcontext():
                return functional.scaled_dot_product_attention(
                    queries,
                    keys,
                    values,
                    attn_mask=attn_mask,
                    is_causal=is_causal,
                    enable_gqa=enable_gqa,
                )
        if enable_gqa:
            group = queries.shape[1] // keys.shape[1]
            keys, values = (part.repeat_interleave(group, dim=1) for part in (keys, values))
        scores = (queries / math.sqrt(queries.shape[-1])) @ keys.mT
        mask = causal_mask(0, queries.shape[2], queries.device) if is_causal else attn_mask
        if mask is not None and mask.dtype == torch.bool:
            mask = torch.zeros_like(mask, dtype=scores.dtype).masked_fill(~mask, -math.inf)
        weights = (scores if mask is None else scores + mask).softmax(dim=-1)
        if dropout_p > 0.0:
            weights = weights * keeping(weights, dropout_p, self.stream)
        return weights @ values


def _half_on_cpu(x: Tensor) -> bool:
    """Whether torch's kernel would round; its backward pass then takes five times as long."""
    return x.device.type == "cpu" and (x.dtype.itemsize < 4 or torch.is_autocast_enabled("cpu"))


def keeping(x: Tensor, rate: float, stream: Stream) -> Tensor:
    """Return 1 / (1 − rate) for entries that stay and 0 for the others, shaped like x.

    >>> kept = keeping(torch.empty(100_000), 0.25, Stream(0))
    >>> sorted(set(kept.tolist())), round(float(kept.mean()), 2)
    ([0.0, 1.3333333730697632], 1.0)
    """
    dropped = min(round(rate * LEVELS), LEVELS - 1)
    mask = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    words = stream.words(x.numel()).view(x.shape)
    torch.ge(words, dropped - LEVELS // 2, out=mask)
    return mask.mul_(LEVELS / (LEVELS - dropped))


def draw_from(decoder: Decoder, stream: Stream) -> None:
    """Let every dropout of a decoder draw from this stream."""
    decoder.dropout = StreamDropout(decoder.config.dropout.embedding, stream)  # type: ignore[assignment]
    for block in decoder.blocks:
        assert isinstance(block, TransformerBlock)
        block.dropout = StreamDropout(decoder.config.dropout.residual, stream)
        block.attention.kernel = StreamAttention(stream)
