"""The loss of a sample, token by token, and how it changes when something in the heads changes.

Heads are changed by wrapping the kernel of each layer, softmax(qkᵀ/√d) v, for the time of a
block: what comes in may be disturbed, what comes out may be silenced. Weights stay untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from heedful.model import Decoder
from heedful.model.blocks import Block, SelfAttention
from heedful.stats import Estimate
from heedful.studies.heads.sample import Sample

IGNORE = -100
BLOCK = 32
"""Neighbouring tokens that make one observation, where there are few rows."""

Kernel: TypeAlias = Callable[..., Tensor]
Wrap: TypeAlias = Callable[[int, Kernel], Kernel]
"""Gets the number of a layer and its kernel; returns the kernel to use."""


@dataclass(frozen=True, eq=False)
class LossBatch:
    """All rows of a sample side by side, with what each token should be followed by."""

    tokens: Int[Tensor, "rows time"]
    targets: Int[Tensor, "rows time"]
    """`IGNORE` after the end of a row, and in the given part of a translation."""

    @classmethod
    def of(cls, sample: Sample, *, most: int | None = None) -> LossBatch:
        """Lay out the rows; padding stands at the end, where nothing before it sees it."""
        rows = sample.rows if most is None else sample.rows[:most]
        longest = max(len(row.tokens) for row in rows) - 1
        tokens = torch.zeros(len(rows), longest, dtype=torch.int64)
        targets = torch.full((len(rows), longest), IGNORE, dtype=torch.int64)
        for place, row in enumerate(rows):
            ids = torch.tensor(row.tokens)
            tokens[place, : len(ids) - 1] = ids[:-1]
            start = 0 if row.source is None else row.source[1]
            targets[place, start : len(ids) - 1] = ids[start + 1 :]
        return cls(tokens, targets)

    def losses(self, decoder: Decoder) -> Float[Tensor, " learned"]:
        """Return −ln p of every token that counts, row by row."""
        learned = self.targets != IGNORE
        hidden = decoder.hidden(self.tokens)[learned]
        return functional.cross_entropy(
            decoder.logits(hidden).float(), self.targets[learned], reduction="none"
        )

    def estimate(self, losses: Float[Tensor, " learned"]) -> Estimate:
        """Return the mean over tokens that count, with an interval over rows (or blocks)."""
        counts = (self.targets != IGNORE).sum(dim=1)
        values = losses.detach().double()
        if len(counts) >= BLOCK // 4:
            # Every token counts the same: a row counts by its length, as in the mean over all.
            row = torch.arange(len(counts)).repeat_interleave(counts)
            sums = torch.zeros(len(counts), dtype=torch.float64).index_add_(0, row, values)
            return Estimate.of((sums / counts.double().mean()).numpy())
        return Estimate.over_blocks(values.numpy(), BLOCK)


@contextmanager
def wrapped(decoder: Decoder, wrap: Wrap) -> Iterator[None]:
    """Use other kernels inside this block."""
    layers = attentions(decoder)
    before = [layer.kernel for layer in layers]
    try:
        for number, layer in enumerate(layers):
            layer.kernel = wrap(number, layer.kernel)
        yield
    finally:
        for layer, kernel in zip(layers, before, strict=True):
            layer.kernel = kernel


def attentions(decoder: Decoder) -> list[SelfAttention]:
    """Return the attention of each layer."""
    found = []
    for block in decoder.blocks:
        assert isinstance(block, Block)
        found.append(block.attention)
    return found
