"""Positions as tensors: tables made once in float64 by room `positions`, then rounded.

Tables are kept per dtype outside the modules, so that a decoder moved to float64 gets exact
angles rather than widened ones, and a checkpoint holds nothing that can be computed. A table
first needed while generating must serve training later: none is made as an inference tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.model.config import Rotary, Sinusoidal
from heedful.positions import encodings as positions


@dataclass(frozen=True, eq=False)
class Turn:
    """The rotation of each token's queries and keys.

    With θ the angle of a pair (a, b) of dimensions: (a cos θ − b sin θ, a sin θ + b cos θ).
    """

    cosines: Float[Tensor, "rows time 1 pairs"]
    sines: Float[Tensor, "rows time 1 pairs"]
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
        cosines, sines = _rotations(length, head_width, rotary.base, dtype, places.device)
        return cls(
            cosines=cosines[places].unsqueeze(2),
            sines=sines[places].unsqueeze(2),
            neighbours=rotary.layout == "interleaved",
        )

    def __call__(
        self, vectors: Float[Tensor, "batch time heads width"]
    ) -> Float[Tensor, "batch time heads width"]:
        """Return the vectors, turned."""
        if self.neighbours and vectors.dtype in (torch.float32, torch.float64):
            # One complex product instead of six real ones, forward and backward.
            pairs = torch.view_as_complex(vectors.view(*vectors.shape[:-1], -1, 2))
            turned = pairs * torch.complex(self.cosines, self.sines)
            return torch.view_as_real(turned).flatten(-2)
        if self.neighbours:
            a, b = vectors.view(*vectors.shape[:-1], -1, 2).unbind(-1)
            return torch.stack(self._pair(a, b), dim=-1).flatten(-2)
        return torch.cat(self._pair(*vectors.chunk(2, dim=-1)), dim=-1)

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
) -> tuple[Tensor, Tensor]:
    angles = torch.from_numpy(positions.angles(length, head_width, base))
    return angles.cos().to(device, dtype), angles.sin().to(device, dtype)


@lru_cache(maxsize=8)
@torch.inference_mode(False)
def _waves(
    context: int, width: int, base: float, dtype: torch.dtype, device: torch.device
) -> Tensor:
    return torch.from_numpy(positions.sinusoidal(context, width, base)).to(device, dtype)
