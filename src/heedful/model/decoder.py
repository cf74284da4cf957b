"""One decoder: embeddings, blocks, and a distribution over the next token.

    x = embedding[tokens] (+ positions)        for each block: x ← block(x)
    logits = norm(x) · headᵀ

The config says which parts; this module only joins them.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from heedful.errors import InputError
from heedful.model.blocks import Block, Stream
from heedful.model.cache import Cache
from heedful.model.config import DecoderConfig, Learned, Sinusoidal
from heedful.model.norms import make_norm
from heedful.model.sight import check_documents, look
from heedful.model.trace import LayerTrace, Notes, Trace, Visit
from heedful.model.turning import sinusoidal_table

Tokens = Int[Tensor, "batch time"]


class Decoder(nn.Module):
    """A decoder-only Transformer.

    >>> from heedful.model.presets import preset
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
