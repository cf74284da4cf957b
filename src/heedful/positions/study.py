"""All that one encoding promises, in one record: what `heed positions` prints and draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from heedful.errors import InputError
from heedful.positions.distance import SmallestDistance, gap_distances, smallest_distance
from heedful.positions.encodings import (
    BASE,
    KINDS,
    LAYOUTS,
    alibi_slopes,
    learned,
    none,
    sinusoidal,
)
from heedful.positions.inputs import MOST_POSITIONS, even, one_of, positive, real, whole
from heedful.positions.precision import Collisions, embedding_collisions, position_collisions
from heedful.positions.promises import (
    RelativeScores,
    Shift,
    Wavelengths,
    relative_scores,
    shift,
    wavelengths,
)
from heedful.positions.proofs import Uniqueness, uniqueness
from heedful.records import Record

LOW_PRECISION = ("fp16", "bf16")
SHOWN_ENTRIES = 1 << 20
"""A larger table is not kept in the record; its promises still are."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PositionsStudy(Record):
    """What an encoding gives each position, and what it promises; parts that do not apply are
    empty."""

    kind: str
    """sinusoidal, learned, rotary, alibi or none."""
    length: int
    """Positions 0 … length − 1 are meant."""
    width: int
    """Dimensions of an embedding."""
    base: float
    """The base of the frequencies."""
    distinguishes: bool
    """Whether order can be seen at all with this encoding."""
    table: Float[np.ndarray, "t d"] | None = None
    """The embedding of each position, where it is a table (and not too large to show)."""
    wavelengths: Wavelengths | None = None
    """Positions until each pair repeats."""
    uniqueness: Uniqueness | None = None
    """Whether two positions can share an embedding, proved."""
    smallest_distance: SmallestDistance | None = None
    """How close two positions come, proved."""
    gap_distances: Float[np.ndarray, " t"] | None = None
    """|φ(t + k) − φ(t)| for each gap k."""
    shift: Shift | None = None
    """Moving by one position as a matrix."""
    relative_scores: tuple[RelativeScores, ...] = ()
    """Whether rotary scores see only differences, for both layouts."""
    slopes: Float[np.ndarray, " heads"] | None = None
    """ALiBi's slope for each head."""
    collisions: tuple[Collisions, ...] = ()
    """Positions that coincide in fp16 and bf16."""
    statements: tuple[str, ...] = ()
    """The findings, one sentence each."""


def positions_study(
    kind: str = "sinusoidal",
    length: int = 512,
    width: int = 64,
    base: float = BASE,
    *,
    heads: int = 8,
    table: Any = None,
    seed: int = 0,
) -> PositionsStudy:
    """Work out what an encoding promises for `length` positions of `width` dimensions.

    `heads` is for ALiBi; `table` is a learned table of your own (otherwise a random one, as
    before any training, stands in).

    >>> study = positions_study("sinusoidal", length=100, width=4)
    >>> study.uniqueness.unique, study.smallest_distance.gap
    (True, 19)
    """
    one_of("kind", kind, KINDS)
    length = whole("length", length, 2, MOST_POSITIONS)
    width = whole("width", width, 1) if kind in ("learned", "none") else even("width", width)
    base = positive("base", base)
    if table is not None and kind != "learned":
        raise InputError("table", f"was given for {kind} positions", expected="kind learned")
    if kind == "sinusoidal":
        return _sinusoidal(length, width, base)
    if kind == "rotary":
        return _rotary(length, width, base, seed)
    if kind == "alibi":
        return _alibi(length, width, base, heads)
    if kind == "learned":
        return _learned(length, width, base, table, seed)
    return PositionsStudy(
        kind=kind,
        length=length,
        width=width,
        base=base,
        distinguishes=False,
        table=none(length, width) if length * width <= SHOWN_ENTRIES else None,
        statements=(
            "without positions every token gets the same zero: plain self-attention with a "
            "feed-forward layer then only permutes its outputs when its inputs are permuted",
        ),
    )


def _sinusoidal(length: int, width: int, base: float) -> PositionsStudy:
    waves = wavelengths(width, base, length)
    proof = uniqueness(width, base)
    closest = smallest_distance(length, width, base)
    moved = shift(1, width, base, min(length, 4096))
    coincide = tuple(
        found
        for format_ in LOW_PRECISION
        for found in (
            embedding_collisions(length, width, base, format_=format_),
            position_collisions(length, width, format_=format_),
        )
    )
    return PositionsStudy(
        kind="sinusoidal",
        length=length,
        width=width,
        base=base,
        distinguishes=proof.unique,
        table=sinusoidal(length, width, base) if length * width <= SHOWN_ENTRIES else None,
        wavelengths=waves,
        uniqueness=proof,
        smallest_distance=closest,
        gap_distances=gap_distances(length, width, base),
        shift=moved,
        collisions=coincide,
        statements=(
            waves.statement,
            proof.statement,
            closest.statement,
            moved.statement,
            *(one.statement for one in coincide),
        ),
    )


def _rotary(length: int, width: int, base: float, seed: int) -> PositionsStudy:
    waves = wavelengths(width, base, length)
    scores = tuple(relative_scores(width, base, layout=layout, seed=seed) for layout in LAYOUTS)
    coincide = tuple(position_collisions(length, width, format_=one) for one in LOW_PRECISION)
    return PositionsStudy(
        kind="rotary",
        length=length,
        width=width,
        base=base,
        distinguishes=True,
        wavelengths=waves,
        relative_scores=scores,
        collisions=coincide,
        statements=(
            waves.statement,
            *(one.statement for one in scores),
            *(one.statement for one in coincide),
        ),
    )


def _alibi(length: int, width: int, base: float, heads: int) -> PositionsStudy:
    slopes = alibi_slopes(heads)
    return PositionsStudy(
        kind="alibi",
        length=length,
        width=width,
        base=base,
        distinguishes=True,
        slopes=slopes,
        statements=(
            f"{len(slopes)} heads lower a score by {slopes.max():.4g} to {slopes.min():.4g} for "
            "each position between query and key; only the distance counts",
            f"over {length} positions the steepest head lowers a score by "
            f"{slopes.max() * (length - 1):.4g}, the flattest by {slopes.min() * (length - 1):.4g}",
            "distance alone does not tell left from right: a causal mask must",
        ),
    )


def _learned(length: int, width: int, base: float, table: Any, seed: int) -> PositionsStudy:
    if table is None:
        rows = 0.02 * np.random.default_rng(seed).standard_normal((length, width))
        origin = "a random table, as before training"
    else:
        given = real("table", table, rank=2)
        rows = learned(given, min(length, given.shape[0]))
        rows = np.asarray(rows.detach().cpu() if hasattr(rows, "detach") else rows, dtype=float)
        origin = "the given table"
    distinct = len(np.unique(rows, axis=0))
    return PositionsStudy(
        kind="learned",
        length=len(rows),
        width=rows.shape[1],
        base=base,
        distinguishes=distinct > 1,
        table=rows if rows.size <= SHOWN_ENTRIES else None,
        statements=(
            f"{origin} has {distinct} different rows for {len(rows)} positions",
            f"position {len(rows)} and beyond have no embedding: a table ends where training did",
        ),
    )
