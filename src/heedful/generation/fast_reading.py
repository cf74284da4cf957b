"""Prompts read with the maps of a `FastStep`: the same equations, many tokens a row.

What follows a prompt depends on the stream of its last token, and on keys and values of the
others. So the last layer makes keys and values of every token, and everything else for the last
one alone.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from heedful.generation.fast_step import FastStep, Layer
from heedful.model import Cache
from heedful.model.sight import Sight, look


@torch.inference_mode()
def read(
    step: FastStep, tokens: Int[Tensor, "rows time"], cache: Cache
) -> Float[Tensor, "rows vocabulary"]:
    """Return the logits after the last token of each row; the cache receives all of them."""
    rows, time = tokens.shape
    cache.check(rows, time, training=False)
    sight = look(step.config, tokens, None, cache, step.embedding.dtype)
    mask, causal = sight.kernel_mask, sight.causal
    stream = step.embedded(tokens, sight.places).flatten(0, 1)
    for number, layer in enumerate(step.layers):
        seen = layer.attention_norm(stream) if step.before else stream
        queries, keys, values = _projected(step, layer, seen, sight, rows)
        all_keys, all_values = cache.extend(number, keys, values)
        if number + 1 == len(step.layers):
            queries, stream = queries[:, :, -1:], stream.view(rows, time, -1)[:, -1]
            mask, causal = (None if mask is None else mask[..., -1:, :]), False
        heads = functional.scaled_dot_product_attention(
            queries,
            all_keys,
            all_values,
            attn_mask=mask,
            is_causal=causal,
            scale=1.0,  # the queries of a FastStep are scaled already
            enable_gqa=queries.shape[1] != keys.shape[1],
        )
        stream = step.after(layer, stream, heads.transpose(1, 2).reshape(len(stream), -1))
    cache.advance(time)
    return step.logits(stream)


def _projected(
    step: FastStep, layer: Layer, seen: Tensor, sight: Sight, rows: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values, each (rows, heads, time, width)."""
    heads, kv_heads = step.config.attention.heads, step.config.kv_heads
    vectors = layer.qkv(seen).view(rows, -1, heads + 2 * kv_heads, step.config.head_width)
    matched, values = vectors[:, :, : heads + kv_heads], vectors[:, :, heads + kv_heads :]
    if layer.query_norm is not None and layer.key_norm is not None:
        scaled = layer.query_norm(matched[:, :, :heads]), layer.key_norm(matched[:, :, heads:])
        matched = torch.cat(scaled, dim=2)
    if sight.turn is not None:
        matched = sight.turn(matched)
    queries, keys = matched[:, :, :heads], matched[:, :, heads:]
    return queries.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2)
