"""One decoding step without modules: the equations of room `model`, for one token a row.

A step of the decoder itself pays for modules, masks and checks that one token does not need,
and its products are made for many tokens. Here the weights are taken out of their modules
once, each product in its fastest form (`products`), and the loop over layers calls the kernels
directly. Keys and values go to the same `Cache` as those of the prompts, which `fast_reading`
reads with the same maps. What lies between the products is compiled (`kernels`) where that can
be, and torch operations elsewhere. Tests hold every kind of decoder to equal logits, both ways.

With one new token, the queries of heads that share a key-value head see the same keys: they
are stacked as if they were several tokens, and need no copies of the keys.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from heedful.errors import InputError
from heedful.generation.kernels import Kernels, kernels_for
from heedful.model import Cache, Decoder
from heedful.model.config import Alibi, Rotary, Sinusoidal
from heedful.model.decoder import ACTIVATIONS, Block
from heedful.model.masks import Sight, look
from heedful.model.rotary import Turn, alibi_slopes, sinusoidal_table

Precision = Literal["float32", "int8"]
"""How weights are kept: as they are, or rounded to 8 bits."""
Map: TypeAlias = Callable[[Tensor], Tensor]
"""From (rows, inputs) to (rows, outputs)."""
BLOCKS = 8
"""Into how many products a matrix is cut for one row; two already use two cores."""


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
    by_blocks, many = _in_blocks(weight, bias), None

    def apply(x: Tensor) -> Tensor:
        nonlocal many
        if x.shape[0] == 1:
            return by_blocks(x)
        if many is None:  # packing copies the weights: only when it is needed
            many = _packed(weight, bias)
        return many(x)

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
            made = torch.bmm(blocks, column).view(1, even)
        else:
            made = torch.baddbmm(shifts, blocks, column).view(1, even)
        return made if even == outputs else torch.cat([made, functional.linear(x, *rest)], dim=1)

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


@dataclass(frozen=True, eq=False)
class Layer:
    """The maps of one block."""

    attention_norm: Map
    qkv: Map
    query_norm: Map | None
    key_norm: Map | None
    output: Map
    feed_forward_norm: Map
    up: Map
    down: Map


@dataclass(frozen=True, eq=False)
class _View:
    """What this step's tokens see: worked out once for all layers."""

    turn: Turn | None
    """Of queries and keys, with rotary positions."""
    rotation: Map | None
    """The same in fewer operations, unless kernels do it."""
    bias: Tensor | None
    """What is added to the logits: ALiBi's slopes, and −∞ for what is not seen. The kernels
    make it themselves."""


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
        self.config = config = decoder.config
        self.embedding = decoder.embedding.weight.detach()
        self.kernels = kernels = kernels_for(self.embedding) if compiled else None
        self.places = self._place_table(decoder)
        self.layers = [_layer(block, precision, kernels) for block in decoder.blocks]
        self.norm = None if decoder.norm is None else _norm(decoder.norm, kernels)
        head = decoder.embedding if decoder.head is None else decoder.head
        self.head = product(head.weight, None, precision)
        self.inner = _inner(config.feed_forward.activation, kernels)
        self.before = config.norm.placement == "pre"
        self.columns = torch.arange(config.context, device=self.embedding.device)
        self.slopes = None
        if isinstance(config.positions, Alibi):
            dtype, device = self.embedding.dtype, self.embedding.device
            self.slopes = alibi_slopes(config.attention.heads, dtype, device)

    @torch.inference_mode()
    def __call__(
        self, tokens: Int[Tensor, " rows"], cache: Cache
    ) -> Float[Tensor, "rows vocabulary"]:
        """Return the logits after one more token in each row; the cache receives it."""
        read = cache.check(len(tokens), 1, training=False)
        if read >= self.config.context:
            raise InputError(
                "tokens",
                f"has no room after {read} tokens",
                expected=f"the context of this model is {self.config.context}",
                way_out="ask for fewer tokens",
            )
        places = self.columns[read : read + 1]
        if cache.padding is not None:
            places = cache.length - cache.padding
        stream, view = self.embedded(tokens, places), self._view(places, cache)
        for number, layer in enumerate(self.layers):
            seen = layer.attention_norm(stream) if self.before else stream
            stream = self.after(layer, stream, self._read(number, layer, seen, view, cache))
        cache.advance(1)
        return self.logits(stream)

    def after(self, layer: Layer, stream: Tensor, read: Tensor) -> Tensor:
        """Return the stream after a layer whose heads read this, side by side."""
        stream = stream + layer.output(read)
        if not self.before:
            stream = layer.attention_norm(stream)
        seen = layer.feed_forward_norm(stream) if self.before else stream
        stream = stream + layer.down(self.inner(layer.up(seen)))
        return stream if self.before else layer.feed_forward_norm(stream)

    def logits(self, stream: Tensor) -> Tensor:
        """Return the logits that follow from streams after the last layer."""
        return self.head(stream if self.norm is None else self.norm(stream))

    def _read(
        self, number: int, layer: Layer, seen: Tensor, view: _View, cache: Cache
    ) -> Float[Tensor, "rows width"]:
        """Return what the heads of one layer read, side by side."""
        config, rows = self.config, len(seen)
        heads, kv_heads, width = config.attention.heads, config.kv_heads, config.head_width
        vectors = layer.qkv(seen).view(rows, -1, width)
        if layer.query_norm is not None and layer.key_norm is not None:
            queries, keys = vectors[:, :heads], vectors[:, heads : heads + kv_heads]
            scaled = layer.query_norm(queries), layer.key_norm(keys)
            vectors = torch.cat([*scaled, vectors[:, heads + kv_heads :]], dim=1)
        if self.kernels is not None:
            return self.kernels.attend(
                vectors, cache, number, heads=heads, turn=view.turn, slopes=self.slopes
            )
        matched, values = vectors[:, : heads + kv_heads], vectors[:, heads + kv_heads :]
        if view.rotation is not None:
            matched = view.rotation(matched)
        queries, keys = matched[:, :heads], matched[:, heads:]
        all_keys, all_values = cache.extend(number, keys.unsqueeze(2), values.unsqueeze(2))
        # Contiguous, because the fast way to write a batch of columns is a transposed row.
        queries = queries.reshape(rows, kv_heads, -1, width).contiguous()
        return _attended(queries, all_keys, all_values, view.bias).reshape(rows, -1)

    def embedded(self, tokens: Tensor, places: Tensor) -> Tensor:
        """Return the stream before the first layer."""
        stream = self.embedding[tokens]
        if self.config.embedding_scale != 1.0:
            stream = stream * self.config.embedding_scale
        return stream if self.places is None else stream + self.places[places]

    def _view(self, places: Tensor, cache: Cache) -> _View:
        config, end = self.config, cache.length + 1
        dtype, device = self.embedding.dtype, self.embedding.device
        turn = bias = None
        if isinstance(config.positions, Rotary):
            turn = Turn.at(places.unsqueeze(1), end, config.positions, config.head_width, dtype)
        if self.kernels is not None:
            if turn is not None:
                turn = replace(
                    turn, cosines=turn.cosines.contiguous(), sines=turn.sines.contiguous()
                )
            return _View(turn=turn, rotation=None, bias=None)
        if self.slopes is not None:
            distances = torch.arange(1 - end, 1, device=device, dtype=dtype)
            bias = (self.slopes.view(-1, 1) * distances).view(1, config.kv_heads, -1, end)
        if cache.padding is not None:
            bias = torch.zeros(1, 1, 1, end, device=device, dtype=dtype) if bias is None else bias
            padded = torch.arange(end, device=device) < cache.padding.view(-1, 1, 1, 1)
            bias = bias.masked_fill(padded, -torch.inf)
        return _View(turn=turn, rotation=None if turn is None else _rotation(turn), bias=bias)

    def _place_table(self, decoder: Decoder) -> Tensor | None:
        config, weight = decoder.config, decoder.embedding.weight
        if decoder.positions is not None:
            return decoder.positions.weight.detach()
        if isinstance(config.positions, Sinusoidal):
            return sinusoidal_table(
                config.positions, config.context, config.width, weight.dtype, weight.device
            )
        return None


def _layer(block: nn.Module, precision: Precision, kernels: Kernels | None) -> Layer:
    assert isinstance(block, Block)
    attention, feed_forward = block.attention, block.feed_forward
    query_norm, key_norm = attention.query_norm, attention.key_norm
    width = attention.head_width
    qkv_weight: Tensor = attention.qkv.weight
    qkv_bias: Tensor | None = attention.qkv.bias
    if query_norm is None:
        # Turning commutes with scaling, so that 1/√d can be in the weights already.
        rows = torch.ones(len(qkv_weight), 1, dtype=qkv_weight.dtype, device=qkv_weight.device)
        rows[: attention.heads * width] = 1 / math.sqrt(width)
        qkv_weight = qkv_weight.detach() * rows
        qkv_bias = None if qkv_bias is None else qkv_bias.detach() * rows.squeeze(1)
    return Layer(
        attention_norm=_norm(block.attention_norm, kernels),
        qkv=product(qkv_weight, qkv_bias, precision),
        query_norm=None if query_norm is None else _norm(query_norm, kernels, 1 / math.sqrt(width)),
        key_norm=None if key_norm is None else _norm(key_norm, kernels),
        output=product(attention.output.weight, attention.output.bias, precision),
        feed_forward_norm=_norm(block.feed_forward_norm, kernels),
        up=product(feed_forward.up.weight, feed_forward.up.bias, precision),
        down=product(feed_forward.down.weight, feed_forward.down.bias, precision),
    )


def _attended(
    queries: Float[Tensor, "rows kv_heads group width"],
    keys: Float[Tensor, "rows kv_heads columns width"],
    values: Float[Tensor, "rows kv_heads columns width"],
    bias: Tensor | None,
) -> Float[Tensor, "rows kv_heads group width"]:
    """Return softmax(qkᵀ + bias) v, for queries that were divided by √d."""
    # The fused kernel is made for many queries. With one a head, two batched products read keys
    # and values faster, and of the two ways to write each, the one with a column on the right.
    if queries.shape[2] > 1:
        logits = queries @ keys.mT
        return (logits if bias is None else logits + bias).softmax(dim=-1) @ values
    logits = (keys @ queries.mT).mT
    weights = (logits if bias is None else logits + bias).softmax(dim=-1)
    return (values.mT @ weights.mT).mT


def _rotation(turn: Turn) -> Map:
    """Return the same rotation for vectors (rows, heads, width), in fewer operations."""
    cosines, sines = turn.cosines.squeeze(1), turn.sines.squeeze(1)
    pairs = cosines.shape[-1]
    if turn.neighbours and cosines.dtype in (torch.float32, torch.float64):
        factors = torch.complex(cosines, sines)

        def multiplied(vectors: Tensor) -> Tensor:
            complex_ = torch.view_as_complex(vectors.view(len(vectors), -1, pairs, 2))
            return torch.view_as_real(complex_ * factors).view(len(vectors), -1, 2 * pairs)

        return multiplied
    if turn.neighbours:
        return lambda vectors: turn(vectors.unsqueeze(1)).squeeze(1)
    # (a, b) → (a cos θ, b cos θ) + (b, a) · (−sin θ, sin θ)
    both, signed = torch.cat([cosines, cosines], -1), torch.cat([-sines, sines], -1)
    return lambda vectors: torch.addcmul(vectors * both, vectors.roll(pairs, -1), signed)


def _inner(activation: str, kernels: Kernels | None) -> Map:
    """Return what happens between the two products of a feed-forward layer."""
    if kernels is not None and activation == "swiglu":
        return kernels.gate
    if kernels is not None and activation == "gelu_tanh":
        return kernels.gelu_tanh
    function = ACTIVATIONS[activation]
    if activation != "swiglu":
        return function

    def gated(inner: Tensor) -> Tensor:
        gate, value = inner.chunk(2, dim=-1)
        return function(gate).mul_(value)

    return gated


def _norm(module: nn.Module, kernels: Kernels | None, scale: float = 1.0) -> Map:
    weight = module.get_parameter("weight").detach() * scale
    shape, eps = tuple(weight.shape), module.eps
    assert isinstance(eps, float)
    if not isinstance(module, nn.LayerNorm):
        if kernels is not None:
            return lambda x: kernels.norm(x, weight, None, eps)
        return lambda x: _rms_norm(x, weight, eps)
    bias = None if module.bias is None else module.bias.detach() * scale
    if kernels is not None and bias is not None:
        return lambda x: kernels.norm(x, weight, bias, eps)
    return lambda x: torch.layer_norm(x, shape, weight, bias, eps)


def _rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Return w · x / √(mean x² + ε), in fewer operations than torch's own."""
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x * torch.rsqrt(length.square_().div_(x.shape[-1]).add_(eps)) * weight


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
