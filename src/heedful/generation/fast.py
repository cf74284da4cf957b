"""Decoding with packed weights: one token a row, or the prompts that come before.

A step of the decoder itself pays for modules, masks and checks that one token does not need,
and its products are made for many tokens. Here the weights are taken out of their modules once,
each product in its fastest form (`product`), and what lies between the products is compiled where
that can be (`kernels`). What a block is, and in which order, comes from the equations of
`heedful.model.decoder`; tests hold every kind of decoder to equal logits, both ways.
"""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from heedful.errors import InputError
from heedful.generation.kernels import TorchKernels, kernels_for
from heedful.model import Cache, Decoder
from heedful.model.decoder import (
    AttentionEquations,
    BlockEquations,
    FeedForwardEquations,
    Map,
    SelfAttention,
    TransformerBlock,
    embed_tokens,
    run_blocks,
)
from heedful.model.masks import AttentionMask, attention_bias, attention_mask, position_ids
from heedful.model.rotary import Rotation, RotationTable
from heedful.model.trace import TraceRecorder

Precision = Literal["float32", "int8"]
"""How weights are kept: as they are, or rounded to 8 bits."""
BLOCKS = 8
"""Into how many products a matrix is cut for one row; two already use two cores."""


class FastStep:
    """From the last token of each row to the logits of the next, as the weights are now.

    After training, make a new one: packed weights are copies. `compiled=False` does without
    the kernels.

    >>> from heedful.model import preset
    >>> decoder = Decoder(preset("tiny"), seed=0)
    >>> cache, step = decoder.new_cache(batch=2), FastStep(decoder)
    >>> step(torch.tensor([72, 101]), cache).shape, cache.length
    (torch.Size([2, 256]), 1)
    """

    def __init__(
        self, decoder: Decoder, precision: Precision = "float32", *, compiled: bool = True
    ) -> None:
        self.decoder, self.precision = decoder, precision
        self.config = decoder.config
        self.embedding = decoder.embedding.weight.detach()
        self.kernels = kernels_for(self.embedding, compiled=compiled)
        table = decoder.position_table
        self.position_table = None if table is None else table.detach()
        self.blocks = [PackedBlock(block, precision, self.kernels) for block in decoder.blocks]
        # What follows a prompt depends on the stream of its last token, and on keys and values
        # of the others: the last layer computes everything else for the last token alone.
        self.blocks[-1].attention.last_query_only = True
        self.norm = None if decoder.norm is None else _norm(decoder.norm, self.kernels)
        self.logits = product(decoder.head_weight, None, precision)
        self.columns = torch.arange(self.config.context, device=self.embedding.device)
        # Looked up here rather than at every step: a step of a small model takes 0.2 ms.
        scheme, dtype, device = self.config.positions, self.embedding.dtype, self.embedding.device
        self._rotates = scheme.rotated_width(self.config.head_width) > 0
        self._rotations: RotationTable | None = None
        bias = attention_bias(self.config, 0, 1, dtype, device)
        unmasked = bias is None and not self.kernels.needs_mask
        self._unmasked = AttentionMask() if unmasked else None

    @torch.inference_mode()
    def __call__(
        self, tokens: Int[Tensor, " rows"], cache: Cache
    ) -> Float[Tensor, "rows vocabulary"]:
        """Return the logits after one more token in each row; the cache receives it."""
        if self.decoder.intervened:  # packed weights know nothing of interventions
            logits: Tensor = self.decoder(tokens.unsqueeze(1), cache=cache)[:, -1]
            return logits
        already = cache.check(len(tokens), 1, training=False)
        if already >= self.config.context:
            raise InputError(
                "tokens",
                f"has no room after {already} tokens",
                expected=f"the context of this model is {self.config.context}",
                hint="ask for fewer tokens",
            )
        positions = self.columns[already : already + 1]
        if cache.padding is not None:
            positions = cache.length - cache.padding
        hidden = self._run(tokens, positions, self._step_mask(tokens, cache), cache)
        cache.advance(1)
        return self.logits(hidden)

    @torch.inference_mode()
    def read_prompts(
        self, tokens: Int[Tensor, "rows time"], cache: Cache
    ) -> Float[Tensor, "rows vocabulary"]:
        """Return the logits after the last token of each row; the cache receives all of them."""
        if self.decoder.intervened:
            logits: Tensor = self.decoder(tokens, cache=cache)[:, -1]
            return logits
        rows, time = tokens.shape
        cache.check(rows, time, training=False)
        positions = position_ids(tokens, None, cache)
        mask = attention_mask(self.config, tokens, None, cache, self.embedding.dtype)
        hidden = self._run(tokens, positions, mask, cache)
        cache.advance(time)
        return self.logits(hidden[:, -1])

    def _run(self, tokens: Tensor, positions: Tensor, mask: AttentionMask, cache: Cache) -> Tensor:
        scale, table = self.config.embedding_scale, self.position_table
        stream = embed_tokens(tokens, positions, self.embedding, scale, table)
        rotation = self._rotation(positions, cache) if self._rotates else None
        return run_blocks(self.blocks, self.norm, stream, mask, rotation, cache)

    def _rotation(self, positions: Tensor, cache: Cache) -> Rotation | None:
        positions, table = positions.view(len(positions), -1), self._rotations
        if table is not None and cache.length + positions.shape[1] <= len(table.cosines):
            return Rotation(positions, table)
        rotation = self.decoder.rotation(positions, cache)
        self._rotations = None if rotation is None else rotation.table
        return rotation

    def _step_mask(self, tokens: Tensor, cache: Cache) -> AttentionMask:
        if self._unmasked is not None:
            return self._unmasked
        dtype, device = self.embedding.dtype, self.embedding.device
        if self.kernels.needs_mask:
            return attention_mask(self.config, tokens.unsqueeze(1), None, cache, dtype)
        return AttentionMask(bias=attention_bias(self.config, cache.length, 1, dtype, device))


class PackedAttention(AttentionEquations):
    """The attention of one layer, with packed weights; its queries come divided by √d."""

    def __init__(
        self, attention: SelfAttention, precision: Precision, kernels: TorchKernels
    ) -> None:
        self.layer, self.kernels = attention.layer, kernels
        self.heads, self.kv_heads = attention.heads, attention.kv_heads
        self.head_width = width = attention.head_width
        scale = 1 / math.sqrt(width)
        weight: Tensor = attention.qkv.weight
        bias: Tensor | None = attention.qkv.bias
        self.query_norm = self.key_norm = None
        if attention.query_norm is not None and attention.key_norm is not None:
            self.query_norm = _norm(attention.query_norm, kernels, scale)
            self.key_norm = _norm(attention.key_norm, kernels)
        else:
            # Rotating commutes with scaling, so that 1/√d can be in the weights already.
            rows = torch.ones(len(weight), 1, dtype=weight.dtype, device=weight.device)
            rows[: self.heads * width] = scale
            weight = weight.detach() * rows
            bias = None if bias is None else bias.detach() * rows.squeeze(1)
        self.qkv = product(weight, bias, precision)
        self.output = product(attention.output.weight, attention.output.bias, precision)
        self.kernel = partial(functional.scaled_dot_product_attention, scale=1.0)

    __call__ = AttentionEquations.forward

    def attend(
        self,
        matched: Tensor,
        values: Tensor,
        mask: AttentionMask,
        rotation: Rotation | None,
        cache: Cache | None = None,
        recorder: TraceRecorder | None = None,
    ) -> Tensor:
        """Return what the heads read; with one token a row, by the kernels of a step."""
        if matched.ndim == 3 and cache is not None:
            return self.kernels.attend(matched, values, mask, rotation, cache, self.layer)
        return super().attend(matched, values, mask, rotation, cache, recorder)


class PackedFeedForward(FeedForwardEquations):
    """The feed-forward part of one layer, with packed weights."""

    def __init__(self, up: Map, activation: Map, down: Map) -> None:
        self.up, self.activation, self.down = up, activation, down

    __call__ = FeedForwardEquations.forward


class PackedBlock(BlockEquations):
    """One layer, with packed weights."""

    attention: PackedAttention

    def __init__(self, block: nn.Module, precision: Precision, kernels: TorchKernels) -> None:
        assert isinstance(block, TransformerBlock)
        self.attention_norm = _norm(block.attention_norm, kernels)
        self.attention = PackedAttention(block.attention, precision, kernels)
        self.feed_forward_norm = _norm(block.feed_forward_norm, kernels)
        up, down = block.feed_forward.up, block.feed_forward.down
        self.feed_forward = PackedFeedForward(
            product(up.weight, up.bias, precision),
            kernels.activation(block.feed_forward.activation_name),
            product(down.weight, down.bias, precision),
        )
        self.dropout, self.pre_norm = None, block.pre_norm

    __call__ = BlockEquations.forward


def _norm(module: nn.Module, kernels: TorchKernels, scale: float = 1.0) -> Map:
    """Return a norm with its gains multiplied by `scale`."""
    weight = module.get_parameter("weight").detach() * scale
    eps = module.eps
    assert isinstance(eps, float)
    if not isinstance(module, nn.LayerNorm):
        return lambda x: kernels.rms_norm(x, weight, eps)
    bias = None if module.bias is None else module.bias.detach() * scale
    return lambda x: kernels.layer_norm(x, weight, bias, eps)


def product(weight: Tensor, bias: Tensor | None, precision: Precision = "float32") -> Map:
    """Return x ↦ x Wᵀ + b for W of shape (outputs, inputs), as it is now.

    One row reads every weight once and computes little: the speed is that of memory. Libraries
    have a kernel for "matrix times vector" which often keeps a single core busy; the same matrix
    cut into blocks of rows is a batch of small products, which all cores share, without a copy.
    Many rows compute more than they read: there the weights are packed once into the order in
    which oneDNN's kernels read them, where torch was built with it.

    `int8` rounds each row of W to 8-bit numbers with one scale, and the inputs on their way in:
    faster, and no longer exact.

    >>> double = product(torch.eye(3) * 2, None)
    >>> double(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[2., 4., 6.]])
    """
    weight = weight.detach().contiguous()
    bias = None if bias is None else bias.detach()
    if precision == "int8":
        return _rounded(weight, bias)
    one_row, many_rows = _in_blocks(weight, bias), None

    def apply(x: Tensor) -> Tensor:
        nonlocal many_rows
        if x.ndim > 2:
            return apply(x.flatten(0, -2)).view(*x.shape[:-1], -1)
        if x.shape[0] == 1:
            return one_row(x)
        if many_rows is None:  # packing copies the weights: only when it is needed
            many_rows = _packed(weight, bias)
        return many_rows(x)

    return apply


def _in_blocks(weight: Tensor, bias: Tensor | None) -> Map:
    outputs, inputs = weight.shape
    even = outputs - outputs % BLOCKS
    if even == 0 or weight.device.type != "cpu":
        return lambda x: functional.linear(x, weight, bias)
    blocks = weight[:even].view(BLOCKS, even // BLOCKS, inputs)
    shifts = None if bias is None else bias[:even].view(BLOCKS, even // BLOCKS, 1)
    rest = weight[even:], None if bias is None else bias[even:]

    def apply(x: Tensor) -> Tensor:
        # One column a block, written as a transposed row: of the two ways to describe the same
        # memory, MKL is several times slower with the other.
        column = x.as_strided((BLOCKS, inputs, 1), (0, 1, inputs))
        if shifts is None:
            blockwise = torch.bmm(blocks, column).view(1, even)
        else:
            blockwise = torch.baddbmm(shifts, blocks, column).view(1, even)
        return (
            blockwise
            if even == outputs
            else torch.cat([blockwise, functional.linear(x, *rest)], dim=1)
        )

    return apply


def _packed(weight: Tensor, bias: Tensor | None) -> Map:
    if not _can_pack(weight):
        return lambda x: functional.linear(x, weight, bias)
    linear: Any = torch.ops.mkldnn._linear_pointwise.default
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, 32)
    return lambda x: linear(x, packed, bias, "none", [], "")


def _can_pack(weight: Tensor) -> bool:
    # These operators are the ones that torch.compile emits for linear layers on CPUs; they
    # are not in torch's public interface, so their absence must not hurt.
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    )


def _rounded(weight: Tensor, bias: Tensor | None) -> Map:
    if weight.device.type != "cpu" or weight.dtype != torch.float32:
        raise InputError(
            "precision",
            f"is int8 for weights of {weight.dtype} on {weight.device.type}",
            expected="int8 is made from float32 weights on a CPU",
        )
    scales = weight.abs().amax(dim=1).double().clamp(min=torch.finfo(torch.float32).tiny) / 127
    zeros = torch.zeros(len(weight), dtype=torch.int64)
    with warnings.catch_warnings():
        # torch announces that these tensors will go one day; pyproject.toml bounds its version.
        warnings.simplefilter("ignore")
        rounded = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        packed = torch.ops.quantized.linear_prepack(rounded, bias)
    linear: Any = torch.ops.quantized.linear_dynamic.default
    return lambda x: linear(x, packed)
