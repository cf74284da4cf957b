"""One decoder: embeddings, blocks, and a distribution over the next token.

    x = embedding[tokens] (+ positions)        for each block: x ← block(x)
    logits = norm(x) · headᵀ

What each part computes is said once, in the classes ending in `Equations`. They do not care where
their linear maps come from: here the maps are modules with trained parameters; in generation they
are packed copies of the weights (`heedful.generation.fast`). The config says which parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from heedful.errors import InputError
from heedful.model.cache import Cache
from heedful.model.config import DecoderConfig, Norm
from heedful.model.interventions import Intervention, Interventions
from heedful.model.masks import AttentionMask, attention_mask, check_documents, position_ids
from heedful.model.rotary import Rotation, embedding_table
from heedful.model.trace import LayerTrace, Trace, TraceRecorder, Visit

Tokens = Int[Tensor, "batch time"]
Stream = Float[Tensor, "*axes width"]
"""The residual stream: (batch, time, width), or (rows, width) with one new token a row."""
Places = Int[Tensor, " places"]
"""Some of the tokens of a batch, each named once: row · time + column."""
Map: TypeAlias = Callable[[Tensor], Tensor]
"""From (*axes, inputs) to (*axes, outputs)."""


def make_norm(width: int, norm: Norm) -> nn.Module:
    """Return the norm that the config asks for."""
    if norm.kind == "layer":
        return nn.LayerNorm(width, eps=norm.eps, bias=norm.bias)
    return RMSNorm(width, eps=norm.eps)


class RMSNorm(nn.Module):
    """Scale each vector to mean square 1, then by learned gains: g x r, r = 1 / √(mean x² + ε).

    torch needs about ten small kernels for it, so the backward pass is written out here. With u
    the gradient of the output and y = x r:

        dx = r (u g − y · mean(u g y))      dg = Σ u y
    """

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Float[Tensor, "*axes width"]) -> Float[Tensor, "*axes width"]:
        """Return g x r."""
        if not torch.is_grad_enabled():
            return rms_norm(x, self.weight, self.eps)
        normalised: Tensor = _RootMeanSquare.apply(  # type: ignore[no-untyped-call]
            x, self.weight, self.eps
        )
        return normalised


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Return w x / √(mean x² + ε), without a gradient."""
    return _unit_mean_square(x, eps)[0] * weight


class _RootMeanSquare(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        scaled, factor = _unit_mean_square(x, eps)
        context.save_for_backward(scaled, weight, factor)
        return scaled * weight

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        scaled, weight, factor = context.saved_tensors
        product = gradient * scaled
        of_weight = product.flatten(0, -2).sum(0)
        mean = (product @ weight).unsqueeze(-1).div_(scaled.shape[-1])
        of_x = torch.addcmul(gradient * weight, scaled, mean, value=-1).mul_(factor)
        return of_x, of_weight, None


def _unit_mean_square(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Return x r and r."""
    # Squares of half-precision numbers overflow at 256: their mean is taken in float32.
    kind = torch.float32 if x.dtype.itemsize < 4 else x.dtype
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=kind)
    factor = length.square_().div_(x.shape[-1]).add_(eps).rsqrt_().to(x.dtype)
    return x * factor, factor


def swiglu(inner: Float[Tensor, "*axes twice"]) -> Float[Tensor, "*axes width"]:
    """Return silu of the first half times the second half."""
    gate, value = inner.chunk(2, dim=-1)
    return functional.silu(gate) * value


ACTIVATIONS: dict[str, Map] = {
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "relu": functional.relu,
    "swiglu": swiglu,
}


class AttentionEquations:
    """Every head of one layer: c = softmax(qkᵀ/√d + bias) v, over the tokens that are allowed.

    Queries, keys and values come from one product. Queries and keys may be normed, then rotated.
    """

    layer: int
    heads: int
    kv_heads: int
    head_width: int
    dropout: float = 0.0
    training: bool = False
    qkv: Map
    query_norm: Map | None
    key_norm: Map | None
    output: Map
    kernel: Callable[..., Tensor]
    """Computes softmax(qkᵀ/√d + bias) v; training replaces it to draw its own dropout."""
    last_query_only: bool = False
    """Whether only the last token of each row goes on, as in the last layer over a prompt."""

    def forward(
        self,
        x: Stream,
        mask: AttentionMask,
        rotation: Rotation | None,
        cache: Cache | None = None,
        recorder: TraceRecorder | None = None,
        places: Places | None = None,
    ) -> Float[Tensor, "*kept width"]:
        """Return what the heads read, projected back to the width of the stream.

        With `places`, only for the queries there; all of them are keys and values all the same.
        """
        vectors = self.qkv(x)
        vectors = vectors.view(*vectors.shape[:-1], -1, self.head_width)
        heads, kv_heads = self.heads, self.kv_heads
        matched, values = torch.split_with_sizes(vectors, (heads + kv_heads, kv_heads), dim=-2)
        if self.query_norm is not None and self.key_norm is not None:
            queries, keys = torch.split_with_sizes(matched, (heads, kv_heads), dim=-2)
            matched = torch.cat([self.query_norm(queries), self.key_norm(keys)], dim=-2)
        read = self.attend(matched, values, mask, rotation, cache, recorder)
        return self.output(read if places is None else take_places(read, places))

    def attend(
        self,
        matched: Float[Tensor, "batch time heads_and_kv_heads width"],
        values: Float[Tensor, "batch time kv_heads width"],
        mask: AttentionMask,
        rotation: Rotation | None,
        cache: Cache | None = None,
        recorder: TraceRecorder | None = None,
    ) -> Float[Tensor, "batch queries read"]:
        """Rotate queries and keys, cache keys and values, and return what the heads read."""
        if rotation is not None:
            matched = rotation(matched)
        matched, values = matched.transpose(1, 2), values.transpose(1, 2)
        queries, keys = torch.split_with_sizes(matched, (self.heads, self.kv_heads), dim=1)
        if recorder is not None:
            queries = recorder.change("queries", queries)
            keys, values = recorder.change("keys", keys), recorder.change("values", values)
        if cache is not None:
            keys, values = cache.extend(self.layer, keys, values)
        if self.last_query_only:
            queries, mask = queries[:, :, -1:], mask.last_query
        if recorder is not None and recorder.changes_weights:
            read = read_by_weights(queries, keys, values, mask, recorder)
        else:
            read = self.kernel(
                queries,
                keys,
                values,
                attn_mask=mask.attn_mask,
                dropout_p=self.dropout if self.training else 0.0,
                is_causal=mask.causal,
                enable_gqa=self.heads != self.kv_heads,
            )
        if recorder is not None:
            read = recorder.change("head_outputs", read)
            recorder.record(queries=queries, keys=keys, values=values, head_outputs=read)
        return read.transpose(1, 2).flatten(2)


def read_by_weights(
    queries: Float[Tensor, "batch heads time width"],
    keys: Float[Tensor, "batch kv_heads keys width"],
    values: Float[Tensor, "batch kv_heads keys width"],
    mask: AttentionMask,
    recorder: TraceRecorder,
) -> Float[Tensor, "batch heads time width"]:
    """Return softmax(scores) v; a recorder may change scores and weights on the way.

    Slower than the kernel, which keeps both to itself. Forbidden keys have the score −∞.
    """
    group = queries.shape[1] // keys.shape[1]
    keys, values = keys.repeat_interleave(group, dim=1), values.repeat_interleave(group, dim=1)
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    if mask.bias is not None:
        scores = scores + mask.bias
    allowed = mask.written_out(queries.shape[2], queries.device)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    scores = recorder.change("scores", scores)
    weights = recorder.change("weights", scores.softmax(dim=-1))
    recorder.record(weights=weights.double())
    return weights @ values


class FeedForwardEquations:
    """Two linear maps with an activation between, the same for every token.

    With SwiGLU, gate and value come from one product: down(silu(gate x) · value x).
    """

    up: Map
    activation: Map
    down: Map

    def forward(self, x: Stream, recorder: TraceRecorder | None = None) -> Stream:
        """Return down(activation(up x))."""
        neurons = self.activation(self.up(x))
        if recorder is not None:
            neurons = recorder.change("neurons", neurons)
        return self.down(neurons)


class BlockEquations:
    """One layer: attention, then feed-forward, each added to the residual stream.

    pre-norm   x ← x + attention(norm x)        x ← x + feed_forward(norm x)
    post-norm  x ← norm(x + attention x)        x ← norm(x + feed_forward x)
    """

    attention_norm: Map
    attention: Callable[..., Tensor]
    feed_forward_norm: Map
    feed_forward: Callable[..., Tensor]
    dropout: Map | None
    """Applied to what each part adds; None: nothing is dropped."""
    pre_norm: bool

    def forward(
        self,
        stream: Stream,
        mask: AttentionMask,
        rotation: Rotation | None = None,
        cache: Cache | None = None,
        recorder: TraceRecorder | None = None,
        places: Places | None = None,
    ) -> Float[Tensor, "*kept width"]:
        """Return the stream after this layer, or of it what is at some places."""
        if recorder is not None:
            stream = recorder.change("before", stream)
        x = self.attention_norm(stream) if self.pre_norm else stream
        attended = self.attention(x, mask, rotation, cache, recorder, places)
        if places is not None:
            stream = take_places(stream, places)
        if recorder is not None:
            attended = recorder.change("attended", attended)
        middle, attended = self._add(stream, attended, self.attention_norm)
        if recorder is not None:
            middle = recorder.change("middle", middle)
        x = self.feed_forward_norm(middle) if self.pre_norm else middle
        transformed = self.feed_forward(x, recorder)
        if recorder is not None:
            transformed = recorder.change("transformed", transformed)
        after, transformed = self._add(middle, transformed, self.feed_forward_norm)
        if recorder is not None:
            after = recorder.change("after", after)
            recorder.record(attended=attended, middle=middle, transformed=transformed, after=after)
            recorder.end_layer()
        return after

    def _add(self, stream: Tensor, part: Tensor, norm: Map) -> tuple[Tensor, Tensor]:
        """Return the stream with a part added to it, and what was added."""
        if self.dropout is not None:
            part = self.dropout(part)
        if part.shape != stream.shape:  # only the last token of each row goes on
            stream = stream[:, -1:]
        total = stream + part
        return (total if self.pre_norm else norm(total)), part


def embed_tokens(
    tokens: Int[Tensor, "*axes"],
    positions: Int[Tensor, "*rows"],
    embedding: Float[Tensor, "vocabulary width"],
    scale: float,
    position_table: Float[Tensor, "context width"] | None,
) -> Float[Tensor, "*axes width"]:
    """Return the stream before the first layer: embeddings, scaled, with positions added."""
    return add_positions(functional.embedding(tokens, embedding), positions, scale, position_table)


def add_positions(
    stream: Stream,
    positions: Int[Tensor, "*rows"],
    scale: float,
    position_table: Float[Tensor, "context width"] | None,
) -> Stream:
    """Return embeddings of tokens as the first block reads them."""
    if scale != 1.0:
        stream = stream * scale
    if position_table is None:
        return stream
    return stream + functional.embedding(positions, position_table)


def run_blocks(
    blocks: Iterable[Callable[..., Tensor]],
    norm: Map | None,
    stream: Stream,
    mask: AttentionMask,
    rotation: Rotation | None,
    cache: Cache | None = None,
    recorder: TraceRecorder | None = None,
    places: Places | None = None,
) -> Float[Tensor, "*kept width"]:
    """Return the stream after all layers, and after the last norm if there is one.

    With `places`, only there: the last layer needs the others as keys and values alone, and
    computes nothing else for them.
    """
    *before, last = blocks
    for block in before:
        stream = block(stream, mask, rotation, cache, recorder)
    stream = last(stream, mask, rotation, cache, recorder, *(() if places is None else (places,)))
    return stream if norm is None else norm(stream)


def take_places(stream: Float[Tensor, "batch time width"], places: Places) -> Stream:
    """Return the vectors at some places, (place, width).

    torch adds up the gradients of rows that were taken twice, one number at a time. No place is
    named twice here, so that a copy will do.
    """
    taken: Tensor = _TakePlaces.apply(stream, places)  # type: ignore[no-untyped-call]
    return taken


class _TakePlaces(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, stream: Tensor, places: Tensor) -> Tensor:
        context.save_for_backward(places)
        context.shape = stream.shape
        return stream.flatten(0, 1).index_select(0, places)

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (places,) = context.saved_tensors
        of_stream = gradient.new_zeros(context.shape)
        of_stream.view(-1, gradient.shape[-1]).index_copy_(0, places, gradient)
        return of_stream, None


class SelfAttention(AttentionEquations, nn.Module):
    """The attention of one layer, with its parameters."""

    qkv: nn.Linear
    output: nn.Linear
    query_norm: nn.Module | None
    key_norm: nn.Module | None

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
            norm = Norm(kind="rms", eps=config.norm.eps)
            self.query_norm = make_norm(self.head_width, norm)
            self.key_norm = make_norm(self.head_width, norm)
        self.dropout = config.dropout.attention
        self.kernel = functional.scaled_dot_product_attention


class MLP(FeedForwardEquations, nn.Module):
    """The feed-forward part of one layer, with its parameters."""

    up: nn.Linear
    down: nn.Linear

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        hidden, bias = config.hidden_width, config.feed_forward.bias
        gated = config.feed_forward.activation == "swiglu"
        self.activation_name = config.feed_forward.activation
        self.activation = ACTIVATIONS[self.activation_name]
        self.up = nn.Linear(config.width, hidden * (2 if gated else 1), bias=bias)
        self.down = nn.Linear(hidden, config.width, bias=bias)


class TransformerBlock(BlockEquations, nn.Module):
    """One layer, with its parameters."""

    attention_norm: nn.Module
    attention: SelfAttention
    feed_forward_norm: nn.Module
    feed_forward: MLP
    dropout: nn.Module

    def __init__(self, config: DecoderConfig, layer: int) -> None:
        super().__init__()
        self.attention_norm = make_norm(config.width, config.norm)
        self.attention = SelfAttention(config, layer)
        self.feed_forward_norm = make_norm(config.width, config.norm)
        self.feed_forward = MLP(config)
        self.dropout = nn.Dropout(config.dropout.residual)
        self.pre_norm = config.norm.placement == "pre"


def _table(rows: int, width: int) -> nn.Embedding:
    """Return a row for each id; on the meta device, where only shapes count, nothing is drawn."""
    if torch.get_default_device().type == "meta":
        # A normal draw there imports torch's compiler, 800 modules: 2.4 s for each `heed` that
        # opens a model.
        return nn.Embedding(rows, width, _weight=torch.empty(rows, width))
    return nn.Embedding(rows, width)


class Decoder(nn.Module):
    """A decoder-only Transformer.

    >>> from heedful.model.config import preset
    >>> decoder = Decoder(preset("tiny"), seed=0)
    >>> decoder(torch.tensor([[72, 101, 101, 100]])).shape
    torch.Size([1, 4, 256])
    """

    def __init__(self, config: DecoderConfig, *, seed: int | None = None) -> None:
        super().__init__()
        self.config = config
        self.embedding = _table(config.vocabulary, config.width)
        self.positions = None
        if config.positions.trained_table:
            self.positions = _table(config.context, config.width)
        self.dropout = nn.Dropout(config.dropout.embedding)
        self._interventions: Interventions | None = None
        self.blocks = nn.ModuleList(
            TransformerBlock(config, layer) for layer in range(config.layers)
        )
        self.norm = make_norm(config.width, config.norm) if config.norm.placement == "pre" else None
        self.head = None
        if not config.tied:
            self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        if not self.embedding.weight.is_meta:
            self.initialise(seed)

    @torch.no_grad()
    def initialise(self, seed: int | None = None) -> None:
        """Draw new weights: normal, with biases 0 and gains 1.

        The 2 × layers sums into the residual stream would let its variance grow with depth;
        weights that end there get a standard deviation smaller by √(2 × layers).
        """
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        std = self.config.initial_std
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                module.weight.normal_(0.0, std, generator=generator)
            if isinstance(module, nn.Linear) and module.bias is not None:
                module.bias.zero_()
        for block in self.blocks:
            assert isinstance(block, TransformerBlock)
            for ending in (block.attention.output, block.feed_forward.down):
                ending.weight.div_(math.sqrt(2 * self.config.layers))

    @torch.no_grad()
    def grow_from(self, before: Decoder) -> None:
        """Take over the weights of a decoder that is alike but for its depth and dropout.

        Its layers are spread over these; those between them add nothing to the stream until they
        are trained, so that both give the same logits.
        """
        check_growth(self.config, before.config)
        depth, deeper = len(before.blocks), len(self.blocks)
        places = {layer * deeper // depth: layer for layer in range(depth)}
        for place, block in enumerate(self.blocks):
            assert isinstance(block, TransformerBlock)
            if place in places:
                block.load_state_dict(before.blocks[places[place]].state_dict())
                continue
            for ending in (block.attention.output, block.feed_forward.down):
                ending.weight.zero_()
        for name, value in before.state_dict().items():
            if not name.startswith("blocks."):
                self.get_parameter(name).copy_(value)

    def forward(
        self,
        tokens: Tokens,
        *,
        documents: Tensor | None = None,
        cache: Cache | None = None,
        recorder: TraceRecorder | None = None,
    ) -> Float[Tensor, "batch time vocabulary"]:
        """Return the logits of the token after each position.

        `documents` numbers the document of each token, for several packed in one row: they do
        not see each other, and each begins at position 0. `cache` holds what came before and
        receives these tokens.
        """
        hidden = self.hidden(tokens, documents=documents, cache=cache, recorder=recorder)
        return self.logits(hidden)

    def hidden(
        self,
        tokens: Tokens,
        *,
        documents: Tensor | None = None,
        cache: Cache | None = None,
        recorder: TraceRecorder | None = None,
        places: Places | None = None,
    ) -> Stream:
        """Return the stream from which the logits are read: everywhere, or at some places."""
        self._check(tokens, documents, cache)
        weight, config = self.embedding.weight, self.config
        positions = position_ids(tokens, documents, cache)
        mask = attention_mask(config, tokens, documents, cache, weight.dtype)
        stream = self.dropout(self._embed(tokens, positions))
        if self._interventions is not None:
            recorder = self._interventions.watching(recorder, cache)
        if recorder is not None:
            stream = recorder.begin(stream, mask, 0 if cache is None else cache.length)
        rotation = self.rotation(positions, cache)
        stream = run_blocks(self.blocks, self.norm, stream, mask, rotation, cache, recorder, places)
        if recorder is not None:
            stream = recorder.change("final", stream)
        if cache is not None:
            cache.advance(tokens.shape[1])
        return stream

    def logits(self, hidden: Float[Tensor, "*axes width"]) -> Float[Tensor, "*axes vocabulary"]:
        """Return the logits of streams that `hidden` gave; generation needs only the last."""
        return functional.linear(hidden, self.head_weight)

    @property
    def head_weight(self) -> Float[Tensor, "vocabulary width"]:
        """The matrix of the output layer: the embedding's, if the two are tied."""
        return (self.embedding if self.head is None else self.head).weight

    def rotation(
        self, positions: Int[Tensor, "rows time"], cache: Cache | None = None
    ) -> Rotation | None:
        """Return how queries and keys at these positions are rotated; None: not at all."""
        config, dtype = self.config, self.embedding.weight.dtype
        longest = positions.shape[1] + (0 if cache is None else cache.length)
        return Rotation.at(positions, longest, config.positions, config.head_width, dtype)

    @property
    def position_table(self) -> Float[Tensor, "context width"] | None:
        """What is added to the embeddings at each position, trained or computed."""
        if self.positions is not None:
            return self.positions.weight
        config, weight = self.config, self.embedding.weight
        return embedding_table(
            config.positions, config.context, config.width, weight.dtype, weight.device
        )

    def trace(self, tokens: Tokens, *, documents: Tensor | None = None) -> Trace:
        """Return the same pass with every layer's queries, keys, weights and residuals."""
        recorder = TraceRecorder()
        logits = self(tokens, documents=documents, recorder=recorder)
        assert recorder.embedded is not None
        assert recorder.mask is not None
        layers = tuple(LayerTrace.of(layer, recorder.mask) for layer in recorder.layers)
        return Trace(embedded=recorder.embedded, layers=layers, logits=logits)

    def visit(
        self, tokens: Tokens, visit: Visit, *, documents: Tensor | None = None
    ) -> Float[Tensor, "batch time vocabulary"]:
        """Show each layer to `visit` as the pass goes on, keep none, and return the logits."""
        logits: Tensor = self(tokens, documents=documents, recorder=TraceRecorder(visit))
        return logits

    @contextmanager
    def intervene(
        self, *interventions: Intervention, strict: bool = True
    ) -> Iterator[Interventions]:
        """Change what happens inside every pass of this decoder while the block runs.

        At its end, an intervention that met no tensor or that changed none is an error; `strict`
        set to False allows it, for searches over many interventions.

        >>> from heedful.model import ablate, preset
        >>> decoder, tokens = Decoder(preset("tiny"), seed=0).eval(), torch.tensor([[72, 105]])
        >>> with decoder.intervene(ablate("head_outputs", layer=0, head=1)):
        ...     changed = decoder(tokens)
        >>> bool((changed != decoder(tokens)).any())
        True
        """
        outer = self._interventions
        self._interventions = active = Interventions(self, interventions, outer)
        try:
            yield active
        finally:
            self._interventions = outer
        if strict:
            active.check()

    @property
    def intervened(self) -> bool:
        """Whether an `intervene` block is running: then only the decoder's own passes are right."""
        return self._interventions is not None

    def new_cache(
        self, batch: int = 1, *, capacity: int | None = None, padding: object = None
    ) -> Cache:
        """Return an empty cache of this model's dtype and device."""
        weight = self.embedding.weight
        return Cache(
            self.config,
            batch,
            capacity=capacity,
            padding=padding,
            dtype=weight.dtype,
            device=weight.device,
        )

    def _embed(self, tokens: Tokens, positions: Int[Tensor, "rows time"]) -> Stream:
        scale, table = self.config.embedding_scale, self.position_table
        try:
            return embed_tokens(tokens, positions, self.embedding.weight, scale, table)
        except IndexError:
            raise _unknown_token(tokens, self.config.vocabulary) from None

    def add_positions(self, stream: Stream, positions: Int[Tensor, "rows time"]) -> Stream:
        """Return embeddings of tokens as the first block reads them: scaled, with positions."""
        return add_positions(stream, positions, self.config.embedding_scale, self.position_table)

    def _check(self, tokens: Tensor, documents: Tensor | None, cache: Cache | None) -> None:
        batch, time = tokens.shape
        if 0 in (batch, time):
            raise InputError(
                "tokens",
                f"is empty (shape {batch} × {time})",
                expected="at least one token was expected",
            )
        if documents is not None:
            check_documents(tokens, documents, cache)
        already = 0 if cache is None else cache.check(batch, time, training=self._learns())
        if already + time > self.config.context:
            read = f" after {already} already read" if already else ""
            raise InputError(
                "tokens",
                f"has {time} tokens{read}",
                expected=f"the context of this model is {self.config.context}",
                hint="shorten the text, or train a model with a longer context",
            )

    def _learns(self) -> bool:
        return torch.is_grad_enabled() and self.embedding.weight.requires_grad


def check_growth(grown: DecoderConfig, before: DecoderConfig) -> None:
    """Refuse a decoder that cannot take over the weights of another one."""
    own, other = map(_but_depth, (grown, before))
    changed = [name for name in own if own[name] != other[name]]
    if changed or before.layers > grown.layers or grown.norm.placement != "pre":
        raise InputError(
            "model",
            f"cannot grow from the weights before it ({', '.join(changed) or 'layers'} differ)",
            expected="the same decoder with as many layers or more, normed before each part",
            hint="copy [model] from the config of the run that made them",
        )


def _but_depth(config: DecoderConfig) -> dict[str, Any]:
    """Return all of a config but what a decoder may grow in, and what is only there to train it."""
    return config.explicit().model_dump(exclude={"layers", "context", "dropout", "initial_std"})


def _unknown_token(tokens: Tensor, vocabulary: int) -> InputError:
    strange = tokens[(tokens < 0) | (tokens >= vocabulary)]
    return InputError(
        "tokens",
        f"holds the id {int(strange[0])}",
        expected=f"ids 0 to {vocabulary - 1} were expected",
        hint="use the tokenizer that belongs to this model",
    )
