"""Where each token stands and which tokens it sees: worked out once, used by every layer.

A token sees itself and what came before it. Three things narrow this down:

- **documents** packed in one row do not see each other, and each starts at position 0;
- **padding** on the left of a cached row is seen by nothing but itself;
- a **cache** brings keys from earlier calls, which all come before the new tokens.

Padding reads itself because softmax over nothing is NaN, and NaN · 0 is still NaN: one such
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
from heedful.model.config import Alibi, DecoderConfig, Rotary
from heedful.model.rotary import Turn, alibi_slopes


@dataclass(frozen=True, eq=False)
class Sight:
    """What every layer needs to know about the tokens of one call."""

    places: Int[Tensor, "rows time"]
    """The position of each token in its own sequence; one row stands for all when they agree."""
    mask: Bool[Tensor, "rows 1 time keys"] | None
    """True means "may attend"; None where the kernel's own rule is enough."""
    bias: Float[Tensor, "1 heads time keys"] | None
    """What ALiBi adds to the logits."""
    causal: bool
    """Whether the kernel applies the plain causal rule itself."""
    turn: Turn | None
    """The rotation of queries and keys, with rotary positions."""

    @cached_property
    def kernel_mask(self) -> Tensor | None:
        """What the kernel adds to the logits, or its boolean mask; the same for every layer."""
        if self.bias is None or self.mask is None:
            return self.mask
        return self.bias.masked_fill(~self.mask, -torch.inf)

    def full_mask(self, time: int) -> Bool[Tensor, "rows 1 time keys"] | None:
        """Return the mask with the kernel's own rule written out; None: everything is seen."""
        return causal_mask(0, time, self.places.device) if self.causal else self.mask


def look(
    config: DecoderConfig,
    tokens: Int[Tensor, "batch time"],
    documents: Int[Tensor, "batch time"] | None,
    cache: Cache | None,
    dtype: torch.dtype,
) -> Sight:
    """Work out positions and masks for one call of the decoder."""
    time, device = tokens.shape[1], tokens.device
    first = 0 if cache is None else cache.length
    places = torch.arange(first, first + time, device=device).unsqueeze(0)
    mask = None
    if documents is not None:
        starts = _starts(documents)
        places = places - starts
        mask = (starts.unsqueeze(2) == starts.unsqueeze(1)).unsqueeze(1)
        mask = mask & causal_mask(0, time, device)
    elif cache is not None and cache.padding is not None:
        mask = _past_padding(cache.padding, first, time)
        places = (places - cache.padding.unsqueeze(1)).clamp(min=0)
    bias = None
    if isinstance(config.positions, Alibi):
        bias = _distances(config.attention.heads, first, time, device, dtype)
    if mask is None and time > 1 and (first > 0 or bias is not None):
        mask = causal_mask(first, time, device)
    elif mask is None and bias is not None:
        mask = torch.ones(1, 1, 1, first + 1, dtype=torch.bool, device=device)
    turn = None
    if isinstance(config.positions, Rotary):
        turn = Turn.at(places, first + time, config.positions, config.head_width, dtype)
    causal = mask is None and time > 1
    return Sight(places=places, mask=mask, bias=bias, causal=causal, turn=turn)


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
            way_out="give each document a row of its own",
        )


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


def _distances(
    heads: int, first: int, time: int, device: torch.device, dtype: torch.dtype
) -> Tensor:
    keys = torch.arange(first + time, device=device, dtype=dtype)
    distances = keys - keys[first:].view(-1, 1)
    return (alibi_slopes(heads, dtype, device).view(-1, 1, 1) * distances).unsqueeze(0)
