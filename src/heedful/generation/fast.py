"""Decoding with packed weights: one token a row, or the prompts that come before.

A step of the decoder itself pays for modules, masks and checks that one token does not need,
and its products are made for many tokens. Here the weights are taken out of their modules once,
each product in its fastest form (`product`), and what lies between the products is compiled where
that can be (`kernels`). What a block is, and in which order, comes from the equations of
`heedful.model.decoder`; tests hold every kind of decoder to equal logits, both ways.
"""

from __future__ import annotations

import json
import math
import statistics
import time
import warnings
from contextlib import suppress
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from heedful.errors import InputError
from heedful.files import sha256, user_cache, write_json
from heedful.generation.kernels import (
    CompiledLayer,
    LayerShape,
    NormWeights,
    TorchKernels,
    kernels_for,
)
from heedful.machine import BUSY, cpu_features, cpu_name, load
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

Precision = Literal["float32", "bfloat16", "int8"]
"""How weights are kept: as they are, or rounded to 16 or 8 bits."""
MEASURED_BYTES = 256 * 2**20
"""Weights over which the ways to multiply one row are timed: more than caches hold."""
MEASURED_ROWS = 32
"""Several rows are timed with at most so many."""
ROUNDS = 3
"""How often each way is timed."""
IN_A_LAYER = ("compiled", "one thread", "panels")
"""Ways that a compiled layer takes in one call, with all that lies between the products."""
APART = 1.25
"""Other ways must be faster by this: each of their products is a call of its own from Python."""
HOPELESS = 3.0
"""A way that takes so many times as long as another is not timed again."""
WAYS = {
    "plain": "torch's product",
    "blocks": "torch's product in blocks",
    "compiled": "our compiled product",
    "one thread": "our compiled product by one thread",
}
"""The ways to multiply one row, in words."""
REMEMBERED = "products.json"
"""What was fastest, by model, in the user's cache: the next process need not measure."""
SMALL_BYTES = 2**20
"""Weights of a model in which every way takes next to nothing: all of them lie in a cache."""
_HERE: dict[str, str] = {}
"""What this process has chosen, by the same keys."""


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
        products = Products(self.kernels, precision)
        self.blocks = [PackedBlock(block, products) for block in decoder.blocks]
        # What follows a prompt depends on the stream of its last token, and on keys and values
        # of the others: the last layer computes everything else for the last token alone.
        self.blocks[-1].attention.last_query_only = True
        self.norm = None if decoder.norm is None else self.kernels.norm(_norm_weights(decoder.norm))
        self.logits = products.product(decoder.head_weight, None)
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

    def __init__(self, attention: SelfAttention, products: Products) -> None:
        kernels = products.kernels
        self.layer, self.kernels = attention.layer, kernels
        self.heads, self.kv_heads = attention.heads, attention.kv_heads
        self.head_width = width = attention.head_width
        scale = 1 / math.sqrt(width)
        weight: Tensor = attention.qkv.weight
        bias: Tensor | None = attention.qkv.bias
        self.query_norm = self.key_norm = None
        self.norms: dict[str, NormWeights | None] = {"query_norm": None, "key_norm": None}
        if attention.query_norm is not None and attention.key_norm is not None:
            queries = _norm_weights(attention.query_norm, scale)
            keys = _norm_weights(attention.key_norm)
            self.norms = {"query_norm": queries, "key_norm": keys}
            self.query_norm, self.key_norm = kernels.norm(queries), kernels.norm(keys)
        else:
            # Rotating commutes with scaling, so that 1/√d can be in the weights already.
            rows = torch.ones(len(weight), 1, dtype=weight.dtype, device=weight.device)
            rows[: self.heads * width] = scale
            weight = weight.detach() * rows
            bias = None if bias is None else bias.detach() * rows.squeeze(1)
        self.qkv = products.product(weight, bias)
        self.output = products.product(attention.output.weight, attention.output.bias)
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
    """One layer, with packed weights; where that is compiled, a single call for one token a row."""

    attention: PackedAttention
    feed_forward: PackedFeedForward

    def __init__(self, block: nn.Module, products: Products) -> None:
        assert isinstance(block, TransformerBlock)
        self.kernels = kernels = products.kernels
        self.attention = PackedAttention(block.attention, products)
        up, down = block.feed_forward.up, block.feed_forward.down
        self.activation_name = block.feed_forward.activation_name
        self.feed_forward = PackedFeedForward(
            products.product(up.weight, up.bias),
            kernels.activation(self.activation_name),
            products.product(down.weight, down.bias),
        )
        self.norms = {
            "attention_norm": _norm_weights(block.attention_norm),
            "feed_forward_norm": _norm_weights(block.feed_forward_norm),
        }
        self.attention_norm = kernels.norm(self.norms["attention_norm"])
        self.feed_forward_norm = kernels.norm(self.norms["feed_forward_norm"])
        self.dropout, self.pre_norm = None, block.pre_norm
        self._in_one_call: dict[bool, CompiledLayer | None] = {}

    def __call__(
        self,
        stream: Tensor,
        mask: AttentionMask,
        rotation: Rotation | None = None,
        cache: Cache | None = None,
        recorder: TraceRecorder | None = None,
    ) -> Tensor:
        """Return the stream after this layer; with one token a row it may be changed in place."""
        if stream.ndim == 2 and cache is not None:
            many = len(stream) > 1
            if many not in self._in_one_call:
                self._in_one_call[many] = self._compiled(len(stream))
            if (layer := self._in_one_call[many]) is not None:
                return layer(stream, mask, rotation, cache, self.attention.layer)
        return self.forward(stream, mask, rotation, cache, recorder)

    def _compiled(self, rows: int) -> CompiledLayer | None:
        """Return the layer in one call, if it is compiled for so many rows."""
        attention, feed_forward = self.attention, self.feed_forward
        parts = {"qkv": attention.qkv, "output": attention.output}
        parts |= {"up": feed_forward.up, "down": feed_forward.down}
        return self.kernels.layer(
            LayerShape(
                attention.heads,
                attention.kv_heads,
                attention.head_width,
                self.activation_name,
                self.pre_norm,
            ),
            self.norms | attention.norms,
            {n: one.chosen(rows) if isinstance(one, Product) else one for n, one in parts.items()},
        )


def _norm_weights(module: nn.Module, scale: float = 1.0) -> NormWeights:
    """Return what a norm multiplies with and adds, both multiplied by `scale`."""
    gains = module.get_parameter("weight").detach() * scale
    eps = module.eps
    assert isinstance(eps, float)
    if not isinstance(module, nn.LayerNorm):
        return NormWeights(gains, None, eps)
    bias = torch.zeros_like(gains) if module.bias is None else module.bias.detach() * scale
    return NormWeights(gains, bias, eps)


class Products:
    """The products of one model, in the way that was measured to be fastest here.

    One row reads every weight once and computes little: the speed is that of memory. Which way
    reads it fastest (torch's product, the same in blocks, or a compiled one) depends on the
    machine, on its threads, and on whether all weights of the model fit its caches. So the ways
    are timed over the products of the whole model, in their order, when the first row comes.

    Several rows compute more than they read: there the weights are packed once, into the order in
    which oneDNN's kernels read them or into our own panels. That too is timed at the first need.
    """

    def __init__(self, kernels: TorchKernels, precision: Precision = "float32") -> None:
        self.kernels, self.precision = kernels, precision
        self.made: list[Product] = []

    def product(self, weight: Tensor, bias: Tensor | None) -> Map:
        """Return x ↦ x Wᵀ + b for W of shape (outputs, inputs), as it is now.

        `bfloat16` rounds the weights to 8 bits of precision. `int8` rounds each row of W to 8-bit
        numbers with one scale, and each row of inputs on its way in: faster, and no longer exact.
        """
        weight = weight.detach().contiguous()
        bias = None if bias is None else bias.detach()
        if self.precision != "float32":
            _check_roundable(weight, self.precision)
        if self.precision == "int8" and not self.kernels.compiled:
            return _rounded(weight, bias)
        self.made.append(Product(self, weight, bias))
        return self.made[-1]

    def choose(self, rows: int) -> None:
        """Let every product take the way that is fastest for one row, or for several.

        On a quiet machine that is measured once and remembered. Beside other programs it is
        measured again by each process, and not remembered beyond it: threads that must wait for
        one another lose their turns there, and one thread alone is then the fastest by far.

        Ways differ in the last bits. Within a process one model keeps to one way; a model so small
        that no way is worth the time of finding it has the same one in every process.
        """
        many = rows > 1
        if sum(product.bytes for product in self.made) < SMALL_BYTES:
            for product in self.made:
                product.take(many, "panels" if many else "one thread")
            return
        key, known, busy = self._key(many), _remembered(), (load() or 0.0) > BUSY
        chosen = _HERE.get(key) or (None if busy else known.get(key))
        if chosen is None:
            seconds = self.seconds_of_ways(rows)
            chosen = min(
                seconds, key=lambda way: seconds[way] * (1 if way in IN_A_LAYER else APART)
            )
            if not busy:
                _remember(known | {key: chosen})
        _HERE[key] = chosen
        for product in self.made:
            product.take(many, chosen)

    def _key(self, many: bool) -> str:
        """Return a name for everything that decides what is fastest here."""
        kept, threads = (self.precision, str(self.made[0].dtype)), torch.get_num_threads()
        shapes = [product.shape for product in self.made]
        kernels = type(self.kernels).__name__
        facts = [torch.__version__, cpu_name(), kernels, kept, threads, shapes, many]
        return sha256(repr(facts))[:16]

    def seconds_of_ways(self, rows: int = 1) -> dict[str, float]:
        """Time the ways to multiply so many rows, over all products: the median of a few passes.

        A way that is hopeless in one pass is left out.
        """
        rows = min(rows, MEASURED_ROWS)
        sample = self._sample(MEASURED_BYTES if rows == 1 else MEASURED_BYTES // 4)
        inputs = {p.inputs: p.like(torch.ones(rows, p.inputs)) for p in sample}
        ways_of = [product.ways(rows > 1) for product in sample]
        taken: dict[str, list[float]] = {way: [] for found in ways_of for way in found}
        for _ in range(ROUNDS):
            for way, seconds in taken.items():
                began = time.perf_counter()
                for product, found in zip(sample, ways_of, strict=True):
                    (found.get(way) or next(iter(found.values())))(inputs[product.inputs])
                seconds.append(time.perf_counter() - began)
            least = min(seconds[-1] for seconds in taken.values())
            taken = {w: spent for w, spent in taken.items() if spent[-1] < HOPELESS * least}
        return {way: statistics.median(seconds) for way, seconds in taken.items()}

    def _sample(self, enough: int) -> list[Product]:
        """Return products as far as they tell something: all shapes, and so many bytes."""
        sample: list[Product] = []
        total = 0
        for product in self.made:
            new = product.shape not in {one.shape for one in sample}
            if total < enough or new:
                sample.append(product)
                total += product.bytes
        return sample


class Product:
    """One linear map, for a single row and for several in the way that is fastest for each."""

    def __init__(self, owner: Products, weight: Tensor, bias: Tensor | None) -> None:
        self.owner, self.bias, self.dtype = owner, bias, weight.dtype
        outputs, self.inputs = weight.shape
        self.shape = f"{outputs} × {self.inputs}" + (" + b" if bias is not None else "")
        self._weight: Tensor | None = None
        if owner.precision == "int8":
            self._one_row = self._eight_bits = owner.kernels.eight_bits(weight, bias)
            self.bytes = outputs * self.inputs
        else:
            self._weight = weight.bfloat16() if owner.precision == "bfloat16" else weight
            self._one_row = owner.kernels.one_row(self._weight, bias)
            self.bytes = self._weight.nbytes
        self._chosen: dict[bool, Map] = {}

    def ways(self, many: bool) -> dict[str, Map]:
        """Return the ways to multiply one row or several; those for several copy the weights."""
        if self._weight is None:
            return self._eight_bits
        if not many:
            return self._one_row
        return self.owner.kernels.many_rows(self._weight.to(self.dtype), self.bias)

    def take(self, many: bool, way: str) -> None:
        """Keep to one way from now on; where it does not exist, to the first."""
        ways = self.ways(many)
        self._chosen[many] = ways.get(way) or next(iter(ways.values()))

    def chosen(self, rows: int) -> Map:
        """Return what multiplies so many rows."""
        many = rows > 1
        if many not in self._chosen:
            self.owner.choose(rows)
        return self._chosen[many]

    def like(self, x: Tensor) -> Tensor:
        """Return x as this product takes it; weights in bfloat16 take float32."""
        device = "cpu" if self._weight is None else self._weight.device
        return x.to(device=device, dtype=self.dtype)

    def __call__(self, x: Tensor) -> Tensor:
        if x.ndim > 2:
            return self(x.flatten(0, -2)).view(*x.shape[:-1], -1)
        return self.chosen(len(x))(x)


def product(weight: Tensor, bias: Tensor | None, precision: Precision = "float32") -> Map:
    """Return one linear map by itself, x ↦ x Wᵀ + b.

    >>> double = product(torch.eye(3) * 2, None)
    >>> double(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[2., 4., 6.]])
    """
    return Products(kernels_for(weight), precision).product(weight, bias)


def examined(layers: int = 6, width: int = 512) -> str:
    """Say how one row of tokens is multiplied on this machine, and what each way takes.

    Over the weights of a small model, which do not fit most caches.
    """
    shapes = ((3 * width, width), (width, width), (4 * width, width), (width, 4 * width))
    weights = [torch.ones(shape) for _ in range(layers) for shape in shapes]
    products = Products(kernels_for(weights[0]))
    for weight in weights:
        products.product(weight, None)
    taken = {way: 1e3 * seconds for way, seconds in products.seconds_of_ways().items()}
    read = sum(weight.nbytes for weight in weights) / 1e6
    (best, least), *others = sorted(taken.items(), key=lambda pair: pair[1])
    beside = ", ".join(f"{WAYS[way]} {spent:.1f}" for way, spent in others)
    return (
        f"{WAYS[best]}: {least:.1f} ms for {read:.0f} MB of weights ({read / least:.0f} GB/s)"
        + (f"; {beside}" if beside else "")
    )


def _remembered() -> dict[str, str]:
    try:
        found = json.loads((user_cache() / "kernels" / REMEMBERED).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _remember(known: dict[str, str]) -> None:
    place = user_cache() / "kernels" / REMEMBERED
    with suppress(OSError):  # a home that cannot be written to costs a measurement each time
        place.parent.mkdir(parents=True, exist_ok=True)
        write_json(place, known)


def _check_roundable(weight: Tensor, precision: Precision) -> None:
    if weight.device.type != "cpu" or weight.dtype != torch.float32:
        raise InputError(
            "precision",
            f"is {precision} for weights of {weight.dtype} on {weight.device.type}",
            expected=f"{precision} is made from float32 weights on a CPU",
        )


def _rounded(weight: Tensor, bias: Tensor | None) -> Map:
    """Return the product with weights and inputs in 8 bits, each row of either with its own scale.

    torch takes one range for all inputs of a call, so that a row would depend on what else is in
    its batch. Each row is therefore divided by its largest number, and a row that reaches from −1
    to 1 goes along: the range is then the same for every batch.
    """
    scales = weight.abs().amax(dim=1).double().clamp(min=torch.finfo(torch.float32).tiny) / 127
    zeros = torch.zeros(len(weight), dtype=torch.int64)
    with warnings.catch_warnings():
        # torch announces that these tensors will go one day; pyproject.toml bounds its version.
        warnings.simplefilter("ignore")
        rounded = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        packed = torch.ops.quantized.linear_prepack(rounded, None)
    linear: Any = torch.ops.quantized.linear_dynamic.default
    # Without instructions for 8-bit products two of them are added in 16 bits, which overflows
    # unless the inputs use half of their range.
    halved = not {"avx512_vnni", "avx_vnni"} & set(cpu_features())
    inputs = weight.shape[1]
    reach = torch.zeros(2 if inputs == 1 else 1, inputs)
    reach.view(-1)[:2] = torch.tensor([-1.0, 1.0])

    def by_rows(x: Tensor) -> Tensor:
        if x.ndim > 2:
            return by_rows(x.flatten(0, -2)).view(*x.shape[:-1], -1)
        largest = torch.linalg.vector_norm(x, math.inf, dim=1, keepdim=True)
        largest = largest.clamp_(min=torch.finfo(torch.float32).tiny)
        found = linear(torch.cat((x / largest, reach)), packed, halved)[: len(x)]
        return found * largest if bias is None else torch.addcmul(bias, found, largest)

    return by_rows
