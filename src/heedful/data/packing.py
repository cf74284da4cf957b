"""Sequences side by side in rows of one width: best fit, in an order that the seed decides.

Each sequence goes to the open row with the least room that still holds it, or opens a new one.
A bit for each amount of room that some row has left makes the search one operation on whole
numbers, so that 160,000 pairs are packed in well under a second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from heedful.errors import InputError


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """Which sequences stand in which row, and where."""

    members: Int[np.ndarray, " sequences"]
    """The sequences, row by row."""
    columns: Int[np.ndarray, " sequences"]
    """The column at which each of them starts."""
    starts: Int[np.ndarray, " rows_and_one"]
    """Where each row starts in `members`, and where the last one ends."""

    def __len__(self) -> int:
        return len(self.starts) - 1


def pack(lengths: Int[np.ndarray, " sequences"], width: int, seed: int) -> Rows:
    """Pack lengths into rows of `width`.

    >>> rows = pack(np.array([5, 3, 2]), width=5, seed=0)
    >>> len(rows)
    2
    """
    _check(lengths, width)
    members: list[list[int]] = []
    open_rows: list[list[int]] = [[] for _ in range(width + 1)]
    rooms = 0
    order = shuffled(len(lengths), seed, 0)
    for member, length in zip(order.tolist(), lengths[order].tolist(), strict=True):
        fitting = rooms >> length
        if fitting:
            room = (fitting & -fitting).bit_length() - 1 + length
            row = open_rows[room].pop()
            if not open_rows[room]:
                rooms ^= 1 << room
            members[row].append(member)
        else:
            room, row = width, len(members)
            members.append([member])
        room -= length
        if room:
            open_rows[room].append(row)
            rooms |= 1 << room
    return _rows(members, lengths)


def one_in_each_row(order: Int[np.ndarray, " sequences"]) -> Rows:
    """Give each sequence a row of its own, in this order."""
    count = len(order)
    return Rows(
        members=order,
        columns=np.zeros(count, dtype=np.int64),
        starts=np.arange(count + 1, dtype=np.int64),
    )


def shuffled(count: int, seed: int, epoch: int) -> Int[np.ndarray, " count"]:
    """Return the numbers below `count` in an order that only (seed, epoch) decides.

    The raw stream of PCG64 never changes between versions of NumPy, unlike its `permutation`.

    >>> shuffled(5, seed=1, epoch=0).tolist() == shuffled(5, seed=1, epoch=0).tolist()
    True
    """
    if seed < 0 or epoch < 0:
        raise InputError("seed", f"is {seed} in epoch {epoch}", expected="0 or more was expected")
    stream = np.random.PCG64(np.random.SeedSequence([seed, epoch]))
    return np.argsort(stream.random_raw(count), kind="stable")


def _rows(members: list[list[int]], lengths: Int[np.ndarray, " sequences"]) -> Rows:
    counts = np.fromiter(map(len, members), np.int64, count=len(members))
    starts = np.concatenate([[0], np.cumsum(counts)])
    flat = np.concatenate([np.asarray(row, dtype=np.int64) for row in members])
    ends = np.cumsum(lengths[flat])
    before = ends - lengths[flat]
    return Rows(
        members=flat, columns=before - np.repeat(before[starts[:-1]], counts), starts=starts
    )


def _check(lengths: Int[np.ndarray, " sequences"], width: int) -> None:
    if width < 1:
        raise InputError("width", f"is {width}", expected="at least 1 was expected")
    if not len(lengths) or lengths.min() < 1:
        raise InputError("lengths", "are none, or hold a 0", expected="positive lengths")
    too_long = int((lengths > width).sum())
    if too_long:
        raise InputError(
            "width",
            f"is {width}, but {too_long:,} of {len(lengths):,} sequences are longer "
            f"(up to {int(lengths.max()):,})",
            expected="every sequence fits in one row",
            way_out="widen the rows, or first call `cut` or `without_longer` on the sequences",
        )
