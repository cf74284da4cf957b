"""LoRA: a product of two thin matrices beside each frozen one.

    y = W x + (α / r) · B A x,    A: r × inputs,  B: outputs × r

W stays as it was. B starts at 0, so that the adapted decoder begins as the very same function;
only A and B are trained. Merging writes W + (α / r) B A in the place of W: the same function
again, in a decoder that looks as it did before (equal up to the rounding of one sum).
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from heedful.errors import ConfigError, InputError
from heedful.model.decoder import Decoder, TransformerBlock


class LowRank(nn.Module):
    """A frozen linear map and its trained low-rank addition."""

    def __init__(
        self, base: nn.Linear, rank: int, scale: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale = scale
        inputs, outputs = base.in_features, base.out_features
        start = torch.randn(rank, inputs, generator=generator) / math.sqrt(inputs)
        self.A = nn.Parameter(start.to(base.weight))
        self.B = nn.Parameter(torch.zeros(outputs, rank).to(base.weight))

    def forward(self, x: Float[Tensor, "*axes inputs"]) -> Float[Tensor, "*axes outputs"]:
        """Return W x + (α / r) B A x, without ever forming B A."""
        thin = functional.linear(functional.linear(x, self.A), self.B)
        whole: Tensor = self.base(x) + self.scale * thin
        return whole

    @property
    def weight(self) -> Float[Tensor, "outputs inputs"]:
        """The merged matrix, for whoever reads weights instead of calling modules."""
        return self.base.weight + self.scale * (self.B @ self.A)

    @property
    def bias(self) -> Tensor | None:
        """The bias of the frozen map."""
        return self.base.bias

    def merged(self) -> nn.Linear:
        """Return one linear map that does the same."""
        with torch.no_grad():
            self.base.weight.copy_(self.weight)
        return self.base.requires_grad_(True)


def add_lora(decoder: Decoder, rank: int, *, alpha: float | None = None, seed: int = 0) -> None:
    """Freeze a decoder, and put a trained addition beside each matrix of its blocks.

    `alpha` of None is twice the rank. The same seed gives the same A.

    >>> from heedful.model.config import preset
    >>> decoder = Decoder(preset("tiny"), seed=0)
    >>> add_lora(decoder, rank=4)
    >>> trained_count(decoder) < sum(p.numel() for p in decoder.parameters()) / 4
    True
    """
    _check(decoder, rank)
    scale = (2.0 * rank if alpha is None else alpha) / rank
    generator = torch.Generator().manual_seed(seed)
    decoder.requires_grad_(False)
    for part, name in _places(decoder):
        setattr(part, name, LowRank(getattr(part, name), rank, scale, generator))


def merge_lora(decoder: Decoder) -> None:
    """Write every addition into its matrix: a plain decoder again, all of it trainable."""
    for part, name in _places(decoder):
        added = getattr(part, name)
        if isinstance(added, LowRank):
            setattr(part, name, added.merged())
    decoder.requires_grad_(True)


def trained_count(decoder: Decoder) -> int:
    """Return how many numbers of a decoder are trained."""
    return sum(value.numel() for value in decoder.parameters() if value.requires_grad)


def _places(decoder: Decoder) -> list[tuple[nn.Module, str]]:
    """Return where the matrices of the blocks are."""
    places: list[tuple[nn.Module, str]] = []
    for block in decoder.blocks:
        assert isinstance(block, TransformerBlock)
        places += [(block.attention, "qkv"), (block.attention, "output")]
        places += [(block.feed_forward, "up"), (block.feed_forward, "down")]
    return places


def _check(decoder: Decoder, rank: int) -> None:
    most = decoder.config.width
    if not 1 <= rank <= most:
        raise ConfigError(
            "rank",
            f"is {rank}",
            expected=f"1 to {most}, the width of the model",
            hint="small ranks such as 8 or 16 are usual",
        )
    if any(isinstance(getattr(part, name), LowRank) for part, name in _places(decoder)):
        raise InputError("decoder", "has LoRA already", hint="merge it first")
