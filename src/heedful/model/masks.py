"""Which tokens each token attends to: worked out once for a call, used by every layer.

A token attends to itself and to what came before it. Three things narrow this down:

- **documents** packed in one row do not attend to each other, and each starts at position 0;
- **padding** on the left of a cached row is attended to by nothing but itself;
- a **cache** brings keys from earlier calls, which all come before the new tokens.

Padding attends to itself because softmax over nothing is NaN, and NaN · 0 is still NaN: one such
row would spoil every gradient, even where the loss ignores it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.errors import InputError
from heedful.model.cache import Cache
from heedful.model.config import DecoderConfig
from heedful.positions import PositionScheme


@dataclass(frozen=True, eq=False)
class AttentionMask:
    """What the tokens of one call may attend to, and what is added to their logits."""

    allowed: Bool[Tensor, "rows 1 time keys"] | None = None
    """True means "may attend"; None where the kernel's own rule is enough."""
    bias: Float[Tensor, "1 heads time keys"] | None = None
    """What the position scheme adds to the logits."""
    causal: bool = False
    """Whether the kernel applies the plain causal rule itself."""

    @cached_property
    def attn_mask(self) -> Tensor | None:
        """What torch's attention takes under this name: booleans, or numbers to be added."""
        if self.bias is None or self.allowed is None:
            return self.allowed if self.bias is None else self.bias
        return self.bias.masked_fill(~self.allowed, -torch.inf)

    @property
    def last_query(self) -> AttentionMask:
        """The mask of the last token of each row."""
        allowed, bias = (
            None if part is None else part[..., -1:, :] for part in (self.allowed, self.bias)
        )
        return AttentionMask(allowed, bias)

    def written_out(
        self, time: int, device: torch.device
    ) -> Bool[Tensor, "rows 1 time keys"] | None:
        """Return the mask with the kernel's own rule written out; None: everything is allowed."""
        return causal_mask(0, time, device) if self.causal else self.allowed


def attention_mask(
    config: DecoderConfig,
    tokens: Int[Tensor, "batch time"],
    documents: Int[Tensor, "batch time"] | None,
    cache: Cache | None,
    dtype: torch.dtype,
) -> AttentionMask:
    """Return what the tokens of one call of the decoder may attend to."""
    time, device = tokens.shape[1], tokens.device
    first = 0 if cache is None else cache.length
    bias = attention_bias(config, first, time, dtype, device)
    allowed = None
    if documents is not None:
        starts = _starts(documents)
        allowed = (starts.unsqueeze(2) == starts.unsqueeze(1)).unsqueeze(1)
        allowed = allowed & causal_mask(0, time, device)
    elif cache is not None and cache.padding is not None:
        allowed = _past_padding(cache.padding, first, time)
    elif time > 1 and (first > 0 or bias is not None):
        allowed = causal_mask(first, time, device)
    return AttentionMask(allowed, bias, causal=allowed is None and time > 1)


def position_ids(
    tokens: Int[Tensor, "batch time"],
    documents: Int[Tensor, "batch time"] | None,
    cache: Cache | None,
) -> Int[Tensor, "rows time"]:
    """Return the position of each token in its own sequence; one row where all rows agree."""
    first = 0 if cache is None else cache.length
    positions = torch.arange(first, first + tokens.shape[1], device=tokens.device).unsqueeze(0)
    if documents is not None:
        return positions - _starts(documents)
    if cache is not None and cache.padding is not None:
        return (positions - cache.padding.unsqueeze(1)).clamp(min=0)
    return positions


def attention_bias(
    config: DecoderConfig, first: int, time: int, dtype: torch.dtype, device: torch.device
) -> Float[Tensor, "1 heads time keys"] | None:
    """Return what the position scheme adds to the logits of `time` queries after `first` keys.

    Only the distance of query and key counts, which padding on the left does not change.
    """
    heads, keys = config.attention.heads, first + time
    if _bias_row(config.positions, heads, 1, dtype, device) is None:
        return None
    if time == 1:  # a step of generation: the last of a row that serves all steps
        row = _bias_row(config.positions, heads, 1 << (keys - 1).bit_length(), dtype, device)
        assert row is not None
        return row[:, -keys:].view(1, heads, 1, keys)
    columns = torch.arange(keys, device=device, dtype=dtype)
    bias = config.positions.bias(heads, columns[first:].view(-1, 1) - columns)
    return None if bias is None else bias.unsqueeze(0)


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def causal_mask(first: int, time: int, device: torch.device) -> Bool[Tensor, "1 1 time keys"]:
    """Return the mask of `time` queries that follow `first` keys."""
    mask = torch.ones(time, first + time, dtype=torch.bool, device=device)
    return mask.tril(first).view(1, 1, time, first + time)


def check_documents(tokens: Tensor, documents: Tensor, cache: Cache | None) -> None:
    """Refuse documents that do not fit the tokens, or that come with a cache."""
    if documents.shape != tokens.shape:
        raise InputError(
            "documents",
            f"has shape {tuple(documents.shape)}",
            expected=f"one number for each token was expected: {tuple(tokens.shape)}",
        )
    if cache is not None:
        raise InputError(
            "documents",
            "were given together with a cache",
            expected="a cached row holds one sequence",
            hint="give each document a row of its own",
        )


@lru_cache(maxsize=8)
@torch.inference_mode(False)
def _bias_row(
    scheme: PositionScheme, heads: int, length: int, dtype: torch.dtype, device: torch.device
) -> Float[Tensor, "heads length"] | None:
    """Return the biases of the last query, from the farthest key to the query's own."""
    distances = torch.arange(length - 1, -1, -1, device=device).to(dtype)
    row: Tensor | None = scheme.bias(heads, distances)
    return row


def _starts(documents: Tensor) -> Tensor:
    """Return, for each token, the column at which its document begins."""
    columns = torch.arange(documents.shape[1], device=documents.device).expand_as(documents)
    begins = torch.ones_like(documents, dtype=torch.bool)
    begins[:, 1:] = documents[:, 1:] != documents[:, :-1]
    return columns.where(begins, 0).cummax(dim=1).values


def _past_padding(padding: Tensor, first: int, time: int) -> Tensor:
    keys = torch.arange(first + time, device=padding.device)
    queries = keys[first:].view(-1, 1)
    real = keys >= padding.view(-1, 1, 1)
    return ((real | (keys == queries)) & (keys <= queries)).unsqueeze(1)
