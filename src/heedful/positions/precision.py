"""What low precision does to positions: which ones coincide in fp16 and bf16.

Two things are rounded in practice, and both are tried: the position itself, before any sine
is taken, and the finished embedding. Rounding is to nearest, ties to even, straight from
float64, with subnormals; no library with these formats is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.errors import InputError
from heedful.positions.encodings import BASE, sinusoidal
from heedful.positions.inputs import MOST_POSITIONS, even, one_of, positive, whole
from heedful.records import Record

FORMATS: dict[str, tuple[int, int, float]] = {
    "fp16": (11, -14, 65504.0),
    "bf16": (8, -126, float((2 - 2.0**-7) * 2.0**127)),
    "fp32": (24, -126, float(np.finfo(np.float32).max)),
}
"""Significant bits, exponent of the smallest normal number, and largest number."""
MOST_ENTRIES = 1 << 26
"""Entries of a table that is compared row by row."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Collisions(Record):
    """Which positions coincide after rounding."""

    format: str
    """fp16, bf16 or fp32."""
    rounded: str
    """What was rounded: `embedding` or `position`."""
    length: int
    """Positions 0 … length − 1 are meant."""
    width: int
    """Dimensions of an embedding."""
    distinct: int
    """Different rows that are left of the `length` positions."""
    coinciding: int
    """Positions that equal an earlier one."""
    first: tuple[int, int] | None
    """The earliest position that equals an earlier one, and that one: (s, t) with s < t."""
    overflow: int
    """Positions too large for the format, counted as coinciding."""
    statement: str
    """The finding in one sentence."""


def round_to(values: Any, format_: str) -> Any:
    """Return float64 values rounded to a shorter format (still held in float64).

    >>> round_to(np.array([257.0, 0.1]), "bf16").tolist()
    [256.0, 0.10009765625]
    """
    bits, lowest, largest = FORMATS[one_of("format", format_, tuple(FORMATS))]
    values = np.asarray(values, dtype=np.float64)
    _, exponent = np.frexp(values)
    step = np.ldexp(1.0, np.maximum(exponent - 1, lowest) - (bits - 1))
    rounded = np.rint(values / step) * step + 0.0  # −0 becomes 0: they are one number
    return np.where(np.abs(rounded) > largest, np.copysign(np.inf, values), rounded)


def embedding_collisions(
    length: int, width: int, base: float = BASE, *, format_: str = "bf16"
) -> Collisions:
    """Return which positions have one embedding after φ(t) is rounded."""
    length = whole("length", length, 1, MOST_POSITIONS)
    width, base = even("width", width), positive("base", base)
    one_of("format", format_, tuple(FORMATS))
    if length * width > MOST_ENTRIES:
        raise InputError(
            "length",
            f"{length} positions of width {width} are {length * width} entries",
            expected=f"at most {MOST_ENTRIES} were expected",
            way_out="use a shorter length or a smaller width",
        )
    # Every number of these formats is a float32, so rows are compared as float32 bytes.
    table = np.empty((length, width), dtype=np.float32)
    step = max(1, (1 << 20) // width)
    for begin in range(0, length, step):
        places = np.arange(begin, min(begin + step, length))
        table[places] = round_to(sinusoidal(places, width, base), format_)
    rows = table.view(np.dtype((np.void, table.itemsize * width))).ravel()
    return _collisions(rows, "embedding", format_, length, width, overflow=0)


def position_collisions(length: int, width: int = 2, *, format_: str = "bf16") -> Collisions:
    """Return which positions coincide because t itself is rounded before φ is taken."""
    length = whole("length", length, 1, MOST_POSITIONS)
    rounded = round_to(np.arange(length), format_)
    overflow = int(np.isinf(rounded).sum())
    return _collisions(rounded, "position", format_, length, width, overflow=overflow)


def _collisions(
    rows: Any, what: str, format_: str, length: int, width: int, *, overflow: int
) -> Collisions:
    _, earliest, which = np.unique(rows, return_index=True, return_inverse=True)
    owner = earliest[which.ravel()]
    later = np.flatnonzero(owner != np.arange(length))
    first = (int(owner[later[0]]), int(later[0])) if later.size else None
    subject = "φ(t)" if what == "embedding" else "t itself"
    finding = (
        f"{later.size} coincide with an earlier one, first {first[1]} with {first[0]}"
        if first is not None
        else "all stay different"
    )
    return Collisions(
        format=format_,
        rounded=what,
        length=length,
        width=width,
        distinct=length - int(later.size),
        coinciding=int(later.size),
        first=first,
        overflow=overflow,
        statement=f"with {subject} rounded to {format_}, of {length} positions {finding}",
    )
