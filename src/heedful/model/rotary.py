"""Positions as tensors: tables made once in float64 by room `positions`, then rounded.

Tables are kept per dtype outside the modules, so that a decoder moved to float64 gets exact
angles rather than widened ones, and a checkpoint holds nothing that can be computed. A table
first needed while generating must serve training later: none is made as an inference tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from heedful.model.config import Rotary, Sinusoidal
from heedful.positions import encodings as positions


@dataclass(frozen=True, eq=False)
class Turn:
    """The rotation of each token's queries and keys.

    With θ the angle of a pair (a, b) of dimensions: (a cos θ − b sin θ, a sin θ + b cos θ). As
    complex numbers, (a + ib) e^{iθ}: one product instead of six, forward and backward, where
    the pairs are neighbours and the dtype has a complex twin.
    """

    cosines: Float[Tensor, "rows time 1 pairs"]
    sines: Float[Tensor, "rows time 1 pairs"]
    spins: Complex[Tensor, "rows time 1 pairs"] | None
    """e^{iθ}, where that form is used."""
    neighbours: bool
    """Whether a pair is (2i, 2i+1), else (i, i + d/2)."""

    @classmethod
    def at(
        cls,
        places: Int[Tensor, "rows time"],
        longest: int,
        rotary: Rotary,
        head_width: int,
        dtype: torch.dtype,
    ) -> Turn:
        """Return the rotations of these positions, all below `longest`."""
        # Tables grow by doubling: a long context costs memory only when it is used.
        length = 1 << max(longest - 1, 63).bit_length()
        table = _rotations(length, head_width, rotary.base, dtype, places.device)
        cosines, sines = table[places].unsqueeze(2).unbind(-1)
        neighbours = rotary.layout == "interleaved"
        twin = neighbours and dtype in (torch.float32, torch.float64)
        spins = torch.complex(cosines, sines) if twin else None
        return cls(cosines=cosines, sines=sines, spins=spins, neighbours=neighbours)

    def __call__(
        self, vectors: Float[Tensor, "batch time heads width"]
    ) -> Float[Tensor, "batch time heads width"]:
        """Return the vectors, turned."""
        if not self.neighbours:
            return torch.cat(self._pair(*vectors.chunk(2, dim=-1)), dim=-1)
        pairs = vectors.view(*vectors.shape[:-1], -1, 2)
        if self.spins is not None:
            # bfloat16, which autocast may bring, has no complex twin: the table's dtype has one.
            turned = torch.view_as_complex(pairs.to(self.cosines.dtype)) * self.spins
            return torch.view_as_real(turned).flatten(-2)
        return torch.stack(self._pair(*pairs.unbind(-1)), dim=-1).flatten(-2)

    def _pair(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return a * self.cosines - b * self.sines, a * self.sines + b * self.cosines


def sinusoidal_table(
    sinusoidal: Sinusoidal, context: int, width: int, dtype: torch.dtype, device: torch.device
) -> Float[Tensor, "context width"]:
    """Return the waves of every position."""
    return _waves(context, width, sinusoidal.base, dtype, device)


@lru_cache(maxsize=8)
@torch.inference_mode(False)
def alibi_slopes(heads: int, dtype: torch.dtype, device: torch.device) -> Float[Tensor, " heads"]:
    """Return how steeply each head's logits fall with distance."""
    return torch.from_numpy(positions.alibi_slopes(heads)).to(device, dtype)


@lru_cache(maxsize=8)
@torch.inference_mode(False)
def _rotations(
    length: int, head_width: int, base: float, dtype: torch.dtype, device: torch.device
) -> Tensor:
    angles = torch.from_numpy(positions.angles(length, head_width, base))
    return torch.stack([angles.cos(), angles.sin()], dim=-1).to(device, dtype)


@lru_cache(maxsize=8)
@torch.inference_mode(False)
def _waves(
    context: int, width: int, base: float, dtype: torch.dtype, device: torch.device
) -> Tensor:
    return torch.from_numpy(positions.sinusoidal(context, width, base)).to(device, dtype)
