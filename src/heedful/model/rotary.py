"""Rotary positions as tensors: tables made once in float64 by the position scheme, then rounded.

Tables are kept per dtype outside the modules, so that a decoder moved to float64 gets exact
angles rather than widened ones, and a checkpoint holds nothing that can be computed. A table
first needed while generating must serve training later: none is made as an inference tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from heedful.positions import PositionScheme


@dataclass(frozen=True, eq=False)
class RotationTable:
    """The angles of positions 0 … length − 1, as cosines and sines."""

    cosines: Float[Tensor, "length pairs"]
    sines: Float[Tensor, "length pairs"]
    phases: Complex[Tensor, "length pairs"] | None
    """e^{iθ}, where the pairs are neighbours and the dtype has a complex twin."""
    interleaved: bool
    """Whether a pair is (2i, 2i+1), else (i, i + number of pairs)."""


@dataclass(frozen=True, eq=False)
class Rotation:
    """The rotation of each token's queries and keys.

    With θ the angle of a pair (a, b) of entries: (a cos θ − b sin θ, a sin θ + b cos θ). As
    complex numbers, (a + ib) e^{iθ}: one product instead of six, forward and backward. Entries
    beyond the pairs stay as they are.
    """

    positions: Int[Tensor, "rows time"]
    table: RotationTable

    @classmethod
    def at(
        cls,
        positions: Int[Tensor, "rows time"],
        longest: int,
        scheme: PositionScheme,
        head_width: int,
        dtype: torch.dtype,
    ) -> Rotation | None:
        """Return the rotations of these positions, all below `longest`; None: there are none."""
        if not scheme.rotated_width(head_width):
            return None
        # Tables grow by doubling: a long context costs memory only when it is used.
        length = 1 << max(longest - 1, 63).bit_length()
        return cls(positions, _table(scheme, length, head_width, dtype, positions.device))

    @cached_property
    def cosines(self) -> Float[Tensor, "rows time 1 pairs"]:
        """cos θ, for each token and pair."""
        return self.table.cosines[self.positions].unsqueeze(2)

    @cached_property
    def sines(self) -> Float[Tensor, "rows time 1 pairs"]:
        """sin θ, for each token and pair."""
        return self.table.sines[self.positions].unsqueeze(2)

    @cached_property
    def phases(self) -> Complex[Tensor, "rows time 1 pairs"] | None:
        """e^{iθ}, where that form is used."""
        phases = self.table.phases
        return None if phases is None else phases[self.positions].unsqueeze(2)

    def __call__(
        self, vectors: Float[Tensor, "batch time heads width"]
    ) -> Float[Tensor, "batch time heads width"]:
        """Return the vectors, rotated."""
        rotated = 2 * self.table.cosines.shape[-1]
        if rotated == vectors.shape[-1]:
            return self._rotate(vectors)
        first, rest = vectors[..., :rotated], vectors[..., rotated:]
        # Under autocast the rotated part may come back in the table's dtype.
        return torch.cat([self._rotate(first), rest.to(self.table.cosines.dtype)], dim=-1)

    def _rotate(self, vectors: Tensor) -> Tensor:
        if not self.table.interleaved:
            return torch.cat(self._rotate_pair(*vectors.chunk(2, dim=-1)), dim=-1)
        pairs = vectors.reshape(*vectors.shape[:-1], -1, 2)
        if self.phases is not None:
            # bfloat16, which autocast may bring, has no complex twin: the table's dtype has one.
            pairs = pairs.to(self.table.cosines.dtype).contiguous()
            rotated = torch.view_as_complex(pairs) * self.phases
            return torch.view_as_real(rotated).flatten(-2)
        return torch.stack(self._rotate_pair(*pairs.unbind(-1)), dim=-1).flatten(-2)

    def _rotate_pair(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return a * self.cosines - b * self.sines, a * self.sines + b * self.cosines


@lru_cache(maxsize=8)
@torch.inference_mode(False)
def _table(
    scheme: PositionScheme, length: int, head_width: int, dtype: torch.dtype, device: torch.device
) -> RotationTable:
    rotation = scheme.rotation(length, head_width)
    assert rotation is not None
    angles = torch.from_numpy(rotation.angles)
    cosines, sines = angles.cos().to(device, dtype), angles.sin().to(device, dtype)
    interleaved = rotation.layout == "interleaved"
    twin = interleaved and dtype in (torch.float32, torch.float64)
    phases = torch.complex(cosines, sines) if twin else None
    return RotationTable(cosines, sines, phases, interleaved)


@lru_cache(maxsize=8)
@torch.inference_mode(False)
def embedding_table(
    scheme: PositionScheme, length: int, width: int, dtype: torch.dtype, device: torch.device
) -> Float[Tensor, "length width"] | None:
    """Return what a scheme adds to the embeddings by formula; None: nothing."""
    table = scheme.embedding_table(length, width)
    return None if table is None else torch.from_numpy(table).to(device, dtype)
