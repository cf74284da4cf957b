"""How close two positions can come: the smallest distance, with a proof by ball arithmetic.

    |φ(s) − φ(t)|² = Σ_i 2 − 2 cos((s − t) ω_i) = Σ_i 4 sin²((s − t) ω_i / 2)

depends on s − t alone, so the smallest distance below a length T is a minimum over T − 1
gaps. float64 proposes the gap; python-flint's balls (`arb`) prove it: every other gap is shown
to be farther, with as few pairs as it takes, since no term of the sum is negative.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from typing import Any

import numpy as np
from flint import arb, ctx

from heedful.positions.encodings import BASE, frequencies
from heedful.positions.inputs import MOST_POSITIONS, even, positive, whole
from heedful.records import Record

PRECISION = 128
"""Bits of the balls; sums of 10⁶ gaps and 10³ pairs stay many digits inside."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SmallestDistance(Record):
    """The two positions below a length that are hardest to tell apart."""

    width: int
    """Dimensions of an embedding."""
    base: float
    """The base of the frequencies."""
    length: int
    """Positions 0 … length − 1 are meant."""
    gap: int
    """The difference s − t of the closest positions."""
    distance: float
    """|φ(s) − φ(t)| at that gap."""
    proved: float
    """A lower bound for every pair of different positions, proved with ball arithmetic."""
    relative: float
    """`distance` as a share of |φ| = √(d/2)."""
    unique_gap: bool
    """Proved: every other gap is strictly farther."""
    statement: str
    """The finding in one sentence."""


def gap_distances(length: int, width: int, base: float = BASE) -> Any:
    """Return |φ(t + k) − φ(t)| for k = 0 … length − 1, in float64."""
    length = whole("length", length, 1, MOST_POSITIONS)
    gaps = np.arange(length)
    total = np.zeros(length)
    for omega in frequencies(width, base):  # one pair at a time: memory stays at `length`
        total += 4.0 * np.sin(gaps * (omega / 2.0)) ** 2
    return np.sqrt(total)


def smallest_distance(length: int, width: int, base: float = BASE) -> SmallestDistance:
    """Return the smallest distance between two positions below `length`, proved.

    >>> found = smallest_distance(512, 2)
    >>> found.gap, 0.0088 < found.proved <= found.distance < 0.0089
    (333, True)
    """
    length = whole("length", length, 2, MOST_POSITIONS)
    width, base = even("width", width), positive("base", base)
    gap = int(np.argmin(gap_distances(length, width, base)[1:])) + 1
    before = ctx.prec
    ctx.prec = PRECISION
    try:
        lower, unique, distance = _prove(gap, length, width, base)
    finally:
        ctx.prec = before
    return SmallestDistance(
        width=width,
        base=base,
        length=length,
        gap=gap,
        distance=distance,
        proved=lower,
        relative=distance / float(np.sqrt(width / 2)),
        unique_gap=unique,
        statement=(
            f"any two of {length} positions are at least {_shown(lower)} apart in {width} "
            f"dimensions (proved); positions {gap} apart come that close"
        ),
    )


def smallest_distances(
    length: int, widths: Iterable[int], base: float = BASE
) -> tuple[SmallestDistance, ...]:
    """Return the smallest distance for each width."""
    return tuple(smallest_distance(length, width, base) for width in widths)


def _prove(gap: int, length: int, width: int, base: float) -> tuple[float, bool, float]:
    """Return a proved lower bound, whether `gap` alone attains it, and its distance."""
    half = [arb(base) ** (arb(-2 * i) / width) / 2 for i in range(width // 2)]
    closest = _squared(gap, half)
    lowest, unique = closest.lower(), True
    for k in range(1, length):
        if k == gap:
            continue
        partial = arb(0)
        for omega in half:
            partial += 4 * (omega * k).sin() ** 2
            if partial > closest:  # true only if every point of one ball exceeds the other
                break
        else:
            unique = False
            lowest = min(lowest, partial.lower())
    root = lowest.sqrt().lower() if lowest > 0 else arb(0)
    return _below(root), unique, float(closest.sqrt().mid())


def _squared(k: int, half: list[Any]) -> Any:
    total = arb(0)
    for omega in half:
        total += 4 * (omega * k).sin() ** 2
    return total


def _below(value: Any) -> float:
    """Return a float that is certainly not above the ball."""
    number = float(value)
    while not arb(number) <= value:
        number = float(np.nextafter(number, -np.inf))
    return max(number, 0.0)


def _shown(bound: float) -> str:
    """Write six digits of a lower bound, rounded down so that the sentence stays true."""
    return f"{float(Context(prec=6, rounding=ROUND_DOWN).create_decimal(bound)):.6g}"
