"""Where each tensor of a weight file lies in the decoder: one table, for reading and writing.

Files split what the decoder keeps in one matrix (queries, keys and values; gate and up), and
GPT-2 stores its matrices transposed. A slot says which rows of which parameter a tensor is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.model.config import DecoderConfig, Learned, Rotary


@dataclass(frozen=True)
class Slot:
    """A parameter of the decoder, or some of its rows."""

    name: str
    """The parameter, as in the decoder's state dict."""
    rows: tuple[int, int] | None = None
    """First row and the row after the last; None for all of them."""
    transposed: bool = False
    """Whether the file holds the transpose."""

    def of(self, parameter: Tensor) -> Tensor:
        """Return a view of the parameter, shaped as the file has it."""
        part = parameter if self.rows is None else parameter[self.rows[0] : self.rows[1]]
        return part.T if self.transposed else part


@dataclass(frozen=True, kw_only=True)
class Naming:
    """What a family calls the parts of a decoder; `qkv` and `up` may be split."""

    embedding: str
    positions: str = ""
    block: str
    attention_norm: str
    qkv: tuple[str, ...]
    query_norm: str = ""
    key_norm: str = ""
    output: str
    feed_forward_norm: str
    up: tuple[str, ...]
    down: str
    norm: str
    head: str
    transposed: bool = False
    """Whether the matrices of the blocks are stored transposed."""


GPT2 = Naming(
    embedding="transformer.wte",
    positions="transformer.wpe",
    block="transformer.h.{}.",
    attention_norm="ln_1",
    qkv=("attn.c_attn",),
    output="attn.c_proj",
    feed_forward_norm="ln_2",
    up=("mlp.c_fc",),
    down="mlp.c_proj",
    norm="transformer.ln_f",
    head="lm_head",
    transposed=True,
)
LLAMA = Naming(
    embedding="model.embed_tokens",
    block="model.layers.{}.",
    attention_norm="input_layernorm",
    qkv=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    query_norm="self_attn.q_norm",
    key_norm="self_attn.k_norm",
    output="self_attn.o_proj",
    feed_forward_norm="post_attention_layernorm",
    up=("mlp.gate_proj", "mlp.up_proj"),
    down="mlp.down_proj",
    norm="model.norm",
    head="lm_head",
)
GGUF_LLAMA = Naming(
    embedding="token_embd",
    block="blk.{}.",
    attention_norm="attn_norm",
    qkv=("attn_q", "attn_k", "attn_v"),
    query_norm="attn_q_norm",
    key_norm="attn_k_norm",
    output="attn_output",
    feed_forward_norm="ffn_norm",
    up=("ffn_gate", "ffn_up"),
    down="ffn_down",
    norm="output_norm",
    head="output",
)
GGUF_GPT2 = Naming(
    embedding="token_embd",
    positions="position_embd",
    block="blk.{}.",
    attention_norm="attn_norm",
    qkv=("attn_qkv",),
    output="attn_output",
    feed_forward_norm="ffn_norm",
    up=("ffn_up",),
    down="ffn_down",
    norm="output_norm",
    head="output",
)


def slots_of(config: DecoderConfig, naming: Naming) -> dict[str, Slot]:
    """Return the slot of every tensor that a file of this family holds, by its name there."""
    found = {f"{naming.embedding}.weight": Slot("embedding.weight")}
    if isinstance(config.positions, Learned):
        found[f"{naming.positions}.weight"] = Slot("positions.weight")
    norm_bias = config.norm.kind == "layer" and config.norm.bias
    for layer in range(config.layers):
        theirs, ours = naming.block.format(layer), f"blocks.{layer}."
        for part, target, bias in (
            (naming.attention_norm, "attention_norm", norm_bias),
            (naming.feed_forward_norm, "feed_forward_norm", norm_bias),
        ):
            found |= dict(_pair(theirs + part, ours + target, bias))
        if config.attention.qk_norm:
            found |= dict(_pair(theirs + naming.query_norm, ours + "attention.query_norm", False))
            found |= dict(_pair(theirs + naming.key_norm, ours + "attention.key_norm", False))
        found |= dict(_matrices(config, naming, theirs, ours))
    if config.norm.placement == "pre":
        found |= dict(_pair(naming.norm, "norm", norm_bias))
    if not config.tied:
        found[f"{naming.head}.weight"] = Slot("head.weight")
    return found


def with_layout(
    config: DecoderConfig, state: dict[str, Tensor], layout: str
) -> tuple[DecoderConfig, dict[str, Tensor]]:
    """Return the same model with its rotary pairs in another layout: rows change places."""
    rotary = config.positions
    if not isinstance(rotary, Rotary) or rotary.layout == layout:
        return config, state
    width = config.head_width
    order = torch.arange(width).view(2, -1).T.flatten()
    if layout == "half":
        order = order.argsort()
    turned = config.query_width + config.kv_width
    rows = torch.arange(turned).view(-1, width)[:, order].flatten()
    changed = dict(state)
    for name, tensor in state.items():
        if ".attention.qkv." in name:
            changed[name] = torch.cat([tensor[rows], tensor[turned:]])
        elif ".query_norm." in name or ".key_norm." in name:
            changed[name] = tensor[order]
    return config.changed(positions=rotary.changed(layout=layout)), changed


def _matrices(
    config: DecoderConfig, naming: Naming, theirs: str, ours: str
) -> Iterator[tuple[str, Slot]]:
    query, kv, hidden = config.query_width, config.kv_width, config.hidden_width
    flip = naming.transposed
    qkv = _cuts(naming.qkv, (query, kv, kv))
    up = _cuts(naming.up, (hidden, hidden))
    biases = config.attention.qkv_bias, config.feed_forward.bias
    for parts, target, bias in (
        (qkv, "attention.qkv", biases[0]),
        ({naming.output: None}, "attention.output", config.attention.output_bias),
        (up, "feed_forward.up", biases[1]),
        ({naming.down: None}, "feed_forward.down", biases[1]),
    ):
        for part, rows in parts.items():
            yield from _pair(theirs + part, ours + target, bias, rows, flip)


def _cuts(parts: tuple[str, ...], sizes: tuple[int, ...]) -> dict[str, tuple[int, int] | None]:
    if len(parts) == 1:
        return {parts[0]: None}
    ends = [sum(sizes[: count + 1]) for count in range(len(sizes))]
    return {part: (end - size, end) for part, size, end in zip(parts, sizes, ends, strict=True)}


def _pair(
    theirs: str,
    ours: str,
    bias: bool,
    rows: tuple[int, int] | None = None,
    transposed: bool = False,
) -> Iterator[tuple[str, Slot]]:
    yield f"{theirs}.weight", Slot(f"{ours}.weight", rows, transposed)
    if bias:
        yield f"{theirs}.bias", Slot(f"{ours}.bias", rows)
