"""Keys and values of the tokens already read, so that each new token costs one step.

The room is allocated once. Keys are stored after their rotation, whose angle depends only on
their own position. Rows of different lengths are padded on the left, so that every step writes
one column for all rows; `padding` says how many columns of each row to skip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.errors import InputError
from heedful.model.config import DecoderConfig

BLOCK = 16
"""Memory is kept for a whole number of these many columns, as wide as a register is."""


class Cache:
    """The keys and values of a batch of sequences, for every layer.

    >>> from heedful.model.config import preset
    >>> cache = Cache(preset("tiny"), batch=2, padding=[0, 3])
    >>> tuple(cache.keys.shape), cache.room
    ((2, 2, 2, 128, 16), 128)
    """

    def __init__(
        self,
        config: DecoderConfig,
        batch: int,
        *,
        capacity: int | None = None,
        padding: Any = None,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        capacity = config.context if capacity is None else capacity
        for name, value in (("batch", batch), ("capacity", capacity)):
            if value < 1:
                raise InputError(f"cache.{name}", f"is {value}", expected="at least 1 was expected")
        heads, width = config.kv_heads, config.head_width
        shape = (config.layers, batch, heads, capacity, width)
        self.keys, self.values = _room(shape, dtype, device)
        """(layers, batch, kv heads, capacity, head width) each; keys are already rotated."""
        self.length = 0
        """Columns filled so far."""
        self.padding = _checked_padding(padding, batch, capacity, torch.device(device))
        """Columns to skip in each row; None when no row is padded."""

    @property
    def batch(self) -> int:
        """Number of rows."""
        return self.keys.shape[1]

    @property
    def capacity(self) -> int:
        """Columns there are."""
        return self.keys.shape[3]

    @property
    def room(self) -> int:
        """Columns still free."""
        return self.capacity - self.length

    @property
    def bytes(self) -> int:
        """Memory it holds."""
        return self.keys.nbytes + self.values.nbytes

    def check(self, batch: int, columns: int, *, training: bool) -> int:
        """Refuse tokens that do not fit; return the longest sequence read so far."""
        if training:
            raise InputError(
                "cache",
                "was used while gradients are recorded",
                expected="a cache holds numbers, and would cut the gradient in silence",
                hint="wrap the call in torch.inference_mode(), or leave the cache out",
            )
        if batch != self.batch:
            raise InputError(
                "tokens", f"has {batch} rows", expected=f"the cache has {self.batch} rows"
            )
        if columns > self.room:
            raise InputError(
                "cache",
                f"has room for {self.room} more tokens, not for {columns}",
                expected=f"its capacity is {self.capacity}, of which {self.length} are filled",
                hint="make the cache larger, or shorten the text",
            )
        skipped = 0 if self.padding is None else int(self.padding.min())
        return self.length - skipped

    def extend(
        self,
        layer: int,
        keys: Float[Tensor, "batch heads time width"],
        values: Float[Tensor, "batch heads time width"],
    ) -> tuple[Float[Tensor, "batch heads all width"], Float[Tensor, "batch heads all width"]]:
        """Store new keys and values of one layer; return all of them, old and new.

        The new columns count only after `advance`: a call that fails half-way leaves no trace.
        """
        end = self.length + keys.shape[2]
        self.keys[layer, :, :, self.length : end] = keys
        self.values[layer, :, :, self.length : end] = values
        if self.length == 0:
            return keys, values
        return self.keys[layer, :, :, :end], self.values[layer, :, :, :end]

    def advance(self, columns: int) -> None:
        """Keep what the last call stored."""
        self.length += columns

    def rewind(self, length: int = 0) -> None:
        """Forget every column from `length` on."""
        if not 0 <= length <= self.length:
            raise InputError(
                "cache.rewind",
                f"to {length} is not possible",
                expected=f"0 to {self.length} columns can be kept",
            )
        self.length = length

    def select(self, rows: Tensor, *, since: int = 0) -> None:
        """Keep these rows in this order; a row may be taken twice, as beams are.

        With `since`, the rows are as many as before, and each already holds the columns before
        it as the row that it becomes: beams of one prompt share what they read of it.
        """
        read = slice(since, self.length)
        if since:
            for stored in (self.keys, self.values):
                stored[:, :, :, read] = stored[:, :, :, read].index_select(1, rows)
            return
        # Columns that are not filled yet hold nothing worth copying.
        layers, _, heads, capacity, width = self.keys.shape
        shape = (layers, len(rows), heads, capacity, width)
        keys, values = _room(shape, self.keys.dtype, self.keys.device)
        keys[:, :, :, read] = self.keys[:, :, :, read].index_select(1, rows)
        values[:, :, :, read] = self.values[:, :, :, read].index_select(1, rows)
        self.keys, self.values = keys, values
        if self.padding is not None:
            self.padding = self.padding.index_select(0, rows)

    def keep(self, rows: Sequence[int]) -> list[int]:
        """Keep only these rows, moving as few as possible; return them in their new order.

        The last of them take the places of those that go, so that dropping one row costs the
        copy of one row, however large the batch is.

        >>> from heedful.model.config import preset
        >>> Cache(preset("tiny"), batch=5).keep([0, 2, 4])
        [0, 4, 2]
        """
        count, kept = len(rows), set(rows)
        free = [place for place in range(count) if place not in kept]
        moved = sorted(place for place in kept if place >= count)
        order = list(range(count))
        for place, row in zip(free, moved, strict=True):
            order[place] = row
        if free:
            for stored in (self.keys, self.values):
                filled = stored[:, :, :, : self.length]
                filled[:, free] = filled[:, moved]
        self.keys, self.values = self.keys[:, :count], self.values[:, :count]
        if self.padding is not None:
            self.padding = self.padding[torch.tensor(order, device=self.padding.device)]
        return order


def left_padded(
    sequences: Sequence[Sequence[int]], fill: int = 0
) -> tuple[Int[Tensor, "batch time"], Int[Tensor, " batch"]]:
    """Return sequences of any lengths as one tensor, and how many columns each row skips.

    >>> tokens, padding = left_padded([[5, 6, 7], [8]])
    >>> tokens.tolist(), padding.tolist()
    ([[5, 6, 7], [0, 0, 8]], [0, 2])
    """
    lengths = [len(sequence) for sequence in sequences]
    if not lengths or min(lengths) == 0:
        raise InputError(
            "sequences",
            "none was given" if not lengths else f"number {lengths.index(0)} is empty",
            expected="at least one token in each was expected",
        )
    longest = max(lengths)
    rows = [[fill] * (longest - len(row)) + list(row) for row in sequences]
    return torch.tensor(rows), longest - torch.tensor(lengths)


def _room(
    shape: tuple[int, int, int, int, int], dtype: torch.dtype, device: torch.device | str
) -> tuple[Tensor, Tensor]:
    """Return zeros for keys and values."""
    *outer, capacity, width = shape
    columns = -(-capacity // BLOCK) * BLOCK
    room = torch.zeros((2, *outer, columns, width), dtype=dtype, device=device)
    keys, values = room[..., :capacity, :]
    return keys, values


def _checked_padding(
    padding: Any, batch: int, capacity: int, device: torch.device
) -> Tensor | None:
    if padding is None:
        return None
    counts = torch.as_tensor(padding, device=device)
    if counts.shape != (batch,) or counts.is_floating_point():
        raise InputError(
            "cache.padding",
            f"has shape {tuple(counts.shape)} and dtype {counts.dtype}",
            expected=f"one whole number for each of the {batch} rows was expected",
        )
    if int(counts.min()) < 0 or int(counts.max()) >= capacity:
        raise InputError(
            "cache.padding",
            f"runs from {int(counts.min())} to {int(counts.max())}",
            expected=f"0 to {capacity - 1} columns can be skipped",
        )
    return counts.long() if bool(counts.any()) else None
