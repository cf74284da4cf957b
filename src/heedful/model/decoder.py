"""One decoder: embeddings, blocks, and a distribution over the next token.

    x = embedding[tokens] (+ positions)        for each block: x ← block(x)
    logits = norm(x) · headᵀ

The config says which parts; this module only joins them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from heedful.errors import InputError
from heedful.model import config as settings
from heedful.model.cache import Cache
from heedful.model.config import DecoderConfig, Learned, Norm, Sinusoidal
from heedful.model.masks import Sight, check_documents, look
from heedful.model.rotary import sinusoidal_table
from heedful.model.trace import LayerTrace, Notes, Trace, Visit


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
            return _scaled(x, self.eps)[0] * self.weight
        normalised: Tensor = _RootMeanSquare.apply(  # type: ignore[no-untyped-call]
            x, self.weight, self.eps
        )
        return normalised


class _RootMeanSquare(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        scaled, factor = _scaled(x, eps)
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


def _scaled(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    # Squares of half-precision numbers overflow at 256: their mean is taken in float32.
    kind = torch.float32 if x.dtype.itemsize < 4 else x.dtype
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=kind)
    factor = length.square_().div_(x.shape[-1]).add_(eps).rsqrt_().to(x.dtype)
    return x * factor, factor


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
    """One layer: attention, then feed-forward, each added to the residual stream.

    pre-norm   x ← x + attention(norm x)        x ← x + feed_forward(norm x)
    post-norm  x ← norm(x + attention x)        x ← norm(x + feed_forward x)
    """

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


Tokens = Int[Tensor, "batch time"]


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
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.positions = None
        if isinstance(config.positions, Learned):
            self.positions = nn.Embedding(config.context, config.width)
        self.dropout = nn.Dropout(config.dropout.embedding)
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.layers))
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
            assert isinstance(block, Block)
            for ending in (block.attention.output, block.feed_forward.down):
                ending.weight.div_(math.sqrt(2 * self.config.layers))

    def forward(
        self,
        tokens: Tokens,
        *,
        documents: Tensor | None = None,
        cache: Cache | None = None,
        notes: Notes | None = None,
    ) -> Float[Tensor, "batch time vocabulary"]:
        """Return the logits of the token after each position.

        `documents` numbers the document of each token, for several packed in one row: they do
        not see each other, and each begins at position 0. `cache` holds what came before and
        receives these tokens.
        """
        return self.logits(self.hidden(tokens, documents=documents, cache=cache, notes=notes))

    def hidden(
        self,
        tokens: Tokens,
        *,
        documents: Tensor | None = None,
        cache: Cache | None = None,
        notes: Notes | None = None,
    ) -> Stream:
        """Return the stream from which the logits are read."""
        self._check(tokens, documents, cache)
        sight = look(self.config, tokens, documents, cache, self.embedding.weight.dtype)
        stream = self.dropout(self._embedded(tokens, sight.places))
        if notes is not None:
            notes.embedded, notes.sight = stream, sight
        for block in self.blocks:
            stream = block(stream, sight, cache, notes)
        if cache is not None:
            cache.advance(tokens.shape[1])
        last: Tensor = stream if self.norm is None else self.norm(stream)
        return last

    def logits(self, hidden: Float[Tensor, "*axes width"]) -> Float[Tensor, "*axes vocabulary"]:
        """Return the logits of streams that `hidden` gave; generation needs only the last."""
        head = self.embedding if self.head is None else self.head
        return functional.linear(hidden, head.weight)

    def trace(self, tokens: Tokens, *, documents: Tensor | None = None) -> Trace:
        """Return the same pass with every layer's queries, keys, weights and residuals."""
        notes = Notes()
        logits = self(tokens, documents=documents, notes=notes)
        assert notes.embedded is not None
        assert notes.sight is not None
        layers = tuple(LayerTrace.of(page, notes.sight) for page in notes.pages)
        return Trace(embedded=notes.embedded, layers=layers, logits=logits)

    def visit(
        self, tokens: Tokens, visit: Visit, *, documents: Tensor | None = None
    ) -> Float[Tensor, "batch time vocabulary"]:
        """Show each layer to `visit` as the pass goes on, keep none, and return the logits."""
        logits: Tensor = self(tokens, documents=documents, notes=Notes(visit))
        return logits

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

    def _embedded(self, tokens: Tokens, places: Int[Tensor, "rows time"]) -> Stream:
        try:
            stream: Tensor = self.embedding(tokens)
        except IndexError:
            raise _unknown_token(tokens, self.config.vocabulary) from None
        return self.placed(stream, places)

    def placed(self, stream: Stream, places: Int[Tensor, "rows time"]) -> Stream:
        """Return the embeddings of tokens as the first block reads them: scaled, with positions."""
        config = self.config
        if config.embedding_scale != 1.0:
            stream = stream * config.embedding_scale
        if self.positions is not None:
            stream = stream + self.positions(places)
        elif isinstance(config.positions, Sinusoidal):
            table = sinusoidal_table(
                config.positions, config.context, config.width, stream.dtype, stream.device
            )
            stream = stream + table[places]
        return stream

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
                way_out="shorten the text, or train a model with a longer context",
            )

    def _learns(self) -> bool:
        return torch.is_grad_enabled() and self.embedding.weight.requires_grad


def _unknown_token(tokens: Tensor, vocabulary: int) -> InputError:
    strange = tokens[(tokens < 0) | (tokens >= vocabulary)]
    return InputError(
        "tokens",
        f"holds the id {int(strange[0])}",
        expected=f"ids 0 to {vocabulary - 1} were expected",
        way_out="use the tokenizer that belongs to this model",
    )
