"""What position encodings promise, proved where it can be: the record of `heed positions`.

    λ_i = 2π base^(2i/d)                          wavelengths: positions until pair i repeats
    φ(t + k) = M_k φ(t),  M_k block-diagonal      a shift is linear: each block turns a pair by kω_i
    R_s q · R_t k = R_{s−t} q · k                 rotary scores see only the difference
    φ(s) ≠ φ(t) for whole s ≠ t                   uniqueness, by the irrationality of π
    |φ(s) − φ(t)| ≥ δ                             the smallest distance, by ball arithmetic
    round(φ(s)) = round(φ(t))                     and what coincides in fp16 and bf16

`positions_study` gathers all that holds for one encoding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx
from jaxtyping import Float, Int

from heedful.arrays import number_of, numpy64, one_of, whole
from heedful.errors import InputError
from heedful.positions.encodings import (
    BASE,
    LAYOUTS,
    MOST_POSITIONS,
    SCHEMES,
    alibi_slopes,
    angles,
    even,
    frequencies,
    learned,
    none,
    rotary,
    sinusoidal,
)
from heedful.records import Record


@dataclass(frozen=True, eq=False, kw_only=True)
class Wavelengths(Record):
    """How many positions each pair of dimensions needs for a full turn."""

    width: int
    """Dimensions of an embedding."""
    base: float
    """The base of the frequencies."""
    lengths: Float[np.ndarray, " pairs"]
    """λ_i = 2π base^(2i/d) for pair i, that is dimensions 2i and 2i + 1."""
    frequencies: Float[np.ndarray, " pairs"]
    """ω_i = 2π / λ_i."""
    shortest: tuple[int, int]
    """The two dimensions with the shortest wavelength."""
    longest: tuple[int, int]
    """The two dimensions with the longest wavelength."""
    beyond: Int[np.ndarray, " many"]
    """Pairs whose wavelength exceeds the length: they never repeat within it."""
    statement: str
    """The finding in one sentence."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Shift(Record):
    """The matrix that moves every position by k at once."""

    k: int
    """How far positions are moved."""
    matrix: Float[np.ndarray, "d d"]
    """M_k, with one 2 × 2 turn for each pair."""
    error: float
    """Largest entry of |φ(t + k) − M_k φ(t)| over the positions tried."""
    orthogonality: float
    """Largest entry of |M_kᵀ M_k − I|."""
    positions: int
    """Positions that were tried."""
    statement: str
    """The finding in one sentence."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RelativeScores(Record):
    """Whether scores of rotary queries and keys see only the difference of positions."""

    layout: str
    """Which entries form a pair."""
    error: float
    """Largest |score(s + k, t + k) − score(s, t)|, relative to |q| |k|."""
    norm_error: float
    """Largest relative change of a norm by turning."""
    spread: float
    """How much scores do vary with the difference, relative to |q| |k|: not nothing."""
    trials: int
    """Random queries and keys that were tried."""
    holds: bool
    """The error is rounding."""
    statement: str
    """The finding in one sentence."""


def wavelengths(width: int, base: float = BASE, length: int = 512) -> Wavelengths:
    """Return the wavelength of each pair, and which dimensions have the long ones.

    >>> waves = wavelengths(4)
    >>> waves.lengths.round(2).tolist(), waves.longest
    ([6.28, 628.32], (2, 3))
    """
    width, base = even("width", width), number_of("base", base, above=0)
    length = whole("length", length, 1)
    omega = frequencies(width, base)
    lengths = 2 * np.pi / omega
    first, last = (0, 1), (width - 2, width - 1)
    rising = base > 1 and width > 2
    shortest, longest = (first, last) if base >= 1 else (last, first)
    order = (
        f"wavelengths grow with the dimension, from {lengths[0]:.4g} positions at dimensions 0 "
        f"and 1 to {lengths[-1]:.4g} at {width - 2} and {width - 1}: low dimensions are the "
        "high frequencies"
        if rising
        else f"wavelengths run from {lengths[0]:.4g} to {lengths[-1]:.4g} positions"
    )
    return Wavelengths(
        width=width,
        base=base,
        lengths=lengths,
        frequencies=omega,
        shortest=shortest,
        longest=longest,
        beyond=np.flatnonzero(lengths > length),
        statement=f"{order}; {int((lengths > length).sum())} of {width // 2} pairs do not "
        f"complete a turn within {length} positions",
    )


def shift_matrix(k: int, width: int, base: float = BASE) -> Float[np.ndarray, "d d"]:
    """Return M_k with φ(t + k) = M_k φ(t) for every t: one turn by kω_i for each pair.

    >>> bool(np.allclose(shift_matrix(3, 4) @ sinusoidal([5], 4)[0], sinusoidal([8], 4)[0]))
    True
    """
    (angle,) = angles([whole("k", k, -MOST_POSITIONS, MOST_POSITIONS)], width, base)
    # sin(a+b) = sin a cos b + cos a sin b and cos(a+b) = cos a cos b − sin a sin b: a 2 × 2 block
    # on (sin, cos) of each pair.
    matrix = np.zeros((width, width))
    sines = np.arange(0, width, 2)
    cosines = sines + 1
    matrix[sines, sines] = matrix[cosines, cosines] = np.cos(angle)
    matrix[sines, cosines] = np.sin(angle)
    matrix[cosines, sines] = -np.sin(angle)
    return matrix


def shift(k: int, width: int, base: float = BASE, length: int = 512) -> Shift:
    """Return M_k and how exactly it moves the positions below `length`."""
    matrix = shift_matrix(k, width, base)
    length = whole("length", length, 1, MOST_POSITIONS)
    places = np.arange(length)
    moved = sinusoidal(places, width, base) @ matrix.T
    error = float(np.max(np.abs(sinusoidal(places + k, width, base) - moved)))
    skew = float(np.max(np.abs(matrix.T @ matrix - np.eye(width))))
    return Shift(
        k=k,
        matrix=matrix,
        error=error,
        orthogonality=skew,
        positions=length,
        statement=(
            f"φ(t + {k}) = M φ(t) with one M for all t: it turns pair i by {k}·ω_i "
            f"(sin(a+b) and cos(a+b) are linear in sin a, cos a); computed, {length} positions "
            f"agree within {error:.1e}"
        ),
    )


def relative_scores(
    width: int, base: float = BASE, *, layout: str = "interleaved", trials: int = 64, seed: int = 0
) -> RelativeScores:
    """Try whether rotary scores depend on positions only through their difference."""
    width, base = even("width", width), number_of("base", base, above=0)
    one_of("layout", layout, LAYOUTS)
    trials = whole("trials", trials, 1)
    rng = np.random.default_rng(seed)
    worst, spread, norm_error = 0.0, 0.0, 0.0
    for _ in range(trials):
        q, k = rng.standard_normal((2, width))
        size = float(np.linalg.norm(q) * np.linalg.norm(k))
        s, t, together = (int(one) for one in rng.integers(0, 2048, size=3))

        def score(at: int, other: int, q: np.ndarray = q, k: np.ndarray = k) -> float:
            turned = rotary(np.stack([q, k]), [at, other], base, layout=layout)
            return float(turned[0] @ turned[1])

        plain = score(s, t)
        worst = max(worst, abs(score(s + together, t + together) - plain) / size)
        spread = max(spread, abs(score(s + 1 + together, t) - plain) / size)
        turned = rotary(q[None], [s], base, layout=layout)
        norm_error = max(norm_error, abs(float(np.linalg.norm(turned) / np.linalg.norm(q)) - 1))
    return RelativeScores(
        layout=layout,
        error=worst,
        norm_error=norm_error,
        spread=spread,
        trials=trials,
        holds=worst < 1e-9,
        statement=(
            f"rotary scores ({layout} pairs) moved together by up to 2047 positions change by at "
            f"most {worst:.1e} of |q||k| in {trials} trials, while a changed difference moves "
            f"them by up to {spread:.2g}"
        ),
    )


# Can two positions have the same embedding? Proofs, not scans.
#
# φ(s) = φ(t) means that every pair has turned by the same angle, up to whole turns:
# (s − t) ω_i = 2π m_i. Whether that can happen for whole s ≠ t is a question about π, and π is
# irrational, even transcendental. Only frequencies that are rational shares of a turn repeat.

PARTS = ("both", "sine", "cosine")
"""Which half of each pair is kept."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Uniqueness(Record):
    """Whether every position has its own embedding, and the argument."""

    unique: bool
    """No two different positions share an embedding, over the positions named by `over`."""
    over: str
    """The positions this is about."""
    proof: tuple[str, ...]
    """The steps of the argument."""
    conditions: tuple[str, ...]
    """What the argument needs."""
    period: int | None = None
    """Positions after which the embedding repeats, if it does."""
    collision: tuple[int, int] | None = None
    """Two positions with one embedding, if there are any."""
    statement: str
    """The finding in one sentence."""


def uniqueness(
    width: int,
    base: float = BASE,
    *,
    parts: str = "both",
    pairs: Sequence[int] | None = None,
) -> Uniqueness:
    """Prove whether φ tells all whole positions apart, with all pairs or only those named.

    >>> uniqueness(2).unique
    True
    >>> uniqueness(2, parts="cosine").collision
    (-1, 1)
    """
    width, base = even("width", width), number_of("base", base, above=0)
    one_of("parts", parts, PARTS)
    kept = range(width // 2) if pairs is None else tuple(pairs)
    if not kept:
        raise InputError("pairs", "names no pair", expected="at least one pair was expected")
    for pair in kept:
        whole("pairs", pair, 0, width // 2 - 1)
    pair = min(kept)
    start, fact, condition = _frequency(pair, width, base)
    return {"both": _both, "sine": _sine, "cosine": _cosine}[parts](start, fact, condition)


def uniqueness_of_turns(turns: Sequence[Any]) -> Uniqueness:
    """Say when φ repeats if each pair turns by a rational share of a full turn a position.

    A share p/q stands for the frequency 2πp/q, a rational multiple of π.

    >>> uniqueness_of_turns(["1/4", "1/6"]).period
    12
    """
    if isinstance(turns, str) or not turns:
        raise InputError("turns", f"{turns!r}", expected="a list of fractions such as 1/4")
    shares = [_fraction(turn) for turn in turns]
    period = math.lcm(*(share.denominator for share in shares))
    said = ", ".join(str(share) for share in shares)
    return Uniqueness(
        unique=False,
        over="all integers",
        period=period,
        collision=(0, period),
        proof=(
            f"φ(s) = φ(t) exactly when (s − t)·r is a whole number for every share r of {said}.",
            "For r = p/q in lowest terms that means that q divides s − t.",
            f"All q divide s − t exactly when their least common multiple, {period}, does.",
        ),
        conditions=("every frequency is a rational multiple of π",),
        statement=(
            f"with frequencies of {said} turns a position, φ repeats every {period} positions "
            f"and not sooner: φ(0) = φ({period})"
        ),
    )


def _frequency(pair: int, width: int, base: float) -> tuple[str, str, str]:
    """Return what is known of one pair's frequency, the fact about π, and its condition."""
    if pair == 0 or base == 1:
        return (
            f"Pair {pair} has frequency 1 (base^0), whatever the base and the width.",
            "π is irrational (Lambert, 1761)",
            "pair 0 is kept: its frequency is 1",
        )
    return (
        f"Pair {pair} has the frequency ω = {base:g}^(−{2 * pair}/{width}), an algebraic number.",
        "π is transcendental (Lindemann, 1882), so no ratio of π to an algebraic number other "
        "than 0 is rational",
        "the base is a rational number, as every floating-point number is",
    )


def _both(start: str, fact: str, condition: str) -> Uniqueness:
    return Uniqueness(
        unique=True,
        over="all integers",
        proof=(
            start,
            "If φ(s) = φ(t), sine and cosine of this pair agree, so (s − t)ω = 2πm with whole m.",
            f"If m were not 0, π = (s − t)ω/(2m); but {fact}.",
            "So m = 0 and s = t.",
        ),
        conditions=(
            condition,
            "positions are whole numbers: over the reals one pair repeats every 2π/ω",
            "φ is exact: rounding to fp16 or bf16 may make positions coincide",
        ),
        statement="no two whole positions share an embedding: proved for every length",
    )


def _sine(start: str, fact: str, condition: str) -> Uniqueness:
    return Uniqueness(
        unique=True,
        over="all integers",
        proof=(
            start,
            "If sin sω = sin tω, then (s − t)ω = 2πm or (s + t)ω = π(2m + 1) with whole m.",
            f"The second, and the first with m ≠ 0, would express π by whole numbers and ω; "
            f"but {fact}.",
            "So m = 0 in the first, and s = t.",
        ),
        conditions=(condition, "positions are whole numbers"),
        statement="the sines alone already tell all whole positions apart: proved",
    )


def _cosine(start: str, fact: str, condition: str) -> Uniqueness:
    return Uniqueness(
        unique=True,
        over="integers from 0 on",
        collision=(-1, 1),
        proof=(
            start,
            "If cos sω = cos tω, then (s − t)ω = 2πm or (s + t)ω = 2πm with whole m.",
            f"m ≠ 0 would express π by whole numbers and ω; but {fact}.",
            "So s = t or s = −t; below 0 there is no position, so s = t.",
            "With negative positions, such as differences, cos(−tω) = cos tω: t and −t coincide.",
        ),
        conditions=(condition, "positions are whole numbers from 0 on"),
        statement=(
            "the cosines alone tell positions from 0 on apart, but not t from −t: φ(−1) = φ(1)"
        ),
    )


def _fraction(turn: Any) -> Fraction:
    try:
        return Fraction(turn)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise InputError(
            "turns", f"{turn!r} is not a fraction", expected="a share of a turn such as 1/4"
        ) from None


# How close two positions can come: the smallest distance, with a proof by ball arithmetic.
#
#     |φ(s) − φ(t)|² = Σ_i 2 − 2 cos((s − t) ω_i) = Σ_i 4 sin²((s − t) ω_i / 2)
#
# depends on s − t alone, so the smallest distance below a length T is a minimum over T − 1
# gaps. float64 proposes the gap; python-flint's balls (`arb`) prove it: every other gap is shown
# to be farther, with as few pairs as it takes, since no term of the sum is negative.

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

    >>> closest = smallest_distance(512, 2)
    >>> closest.gap, 0.0088 < closest.proved <= closest.distance < 0.0089
    (333, True)
    """
    length = whole("length", length, 2, MOST_POSITIONS)
    width, base = even("width", width), number_of("base", base, above=0)
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
    """Return a proved lower bound, whether `gap` alone attains it, and its distance.

    A comparison of balls is true only if it holds for every point of both, so `partial > closest`
    is a proof. Where it never becomes true, the gap may be as close: its own lower end counts.
    """
    half = [arb(base) ** (arb(-2 * i) / width) / 2 for i in range(width // 2)]
    closest = sum((4 * (omega * gap).sin() ** 2 for omega in half), arb(0))
    lowest, unique = closest.lower(), True
    for k in range(1, length):
        if k == gap:
            continue
        partial = arb(0)
        for omega in half:
            partial += 4 * (omega * k).sin() ** 2
            if partial > closest:
                break
        else:
            unique = False
            lowest = min(lowest, partial.lower())
    root = lowest.sqrt().lower() if lowest > 0 else arb(0)
    return _below(root), unique, float(closest.sqrt().mid())


def _below(value: Any) -> float:
    """Return a float that is certainly not above the ball."""
    number = float(value)
    while not arb(number) <= value:
        number = float(np.nextafter(number, -np.inf))
    return max(number, 0.0)


def _shown(bound: float) -> str:
    """Write six digits of a lower bound, rounded down so that the sentence stays true."""
    return f"{float(Context(prec=6, rounding=ROUND_DOWN).create_decimal(bound)):.6g}"


# What low precision does to positions: which ones coincide in fp16 and bf16.
#
# Two things are rounded in practice, and both are tried: the position itself, before any sine
# is taken, and the finished embedding. Rounding is to nearest, ties to even, straight from
# float64, with subnormals; no library with these formats is needed.

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
    bits, lowest, largest = FORMATS[one_of("format", format_, FORMATS)]
    values = np.asarray(values, dtype=np.float64)
    # The spacing of representable numbers around x = m·2^e, ½ ≤ |m| < 1, is 2^(e − bits); below
    # the smallest normal number it stays what it is there (subnormals).
    _, exponent = np.frexp(values)
    step = np.ldexp(1.0, np.maximum(exponent - 1, lowest) - (bits - 1))
    rounded = np.rint(values / step) * step + 0.0  # −0 becomes 0: they are one number
    return np.where(np.abs(rounded) > largest, np.copysign(np.inf, values), rounded)


def embedding_collisions(
    length: int, width: int, base: float = BASE, *, format_: str = "bf16"
) -> Collisions:
    """Return which positions have one embedding after φ(t) is rounded."""
    length = whole("length", length, 1, MOST_POSITIONS)
    width, base = even("width", width), number_of("base", base, above=0)
    one_of("format", format_, FORMATS)
    if length * width > MOST_ENTRIES:
        raise InputError(
            "length",
            f"{length} positions of width {width} are {length * width} entries",
            expected=f"at most {MOST_ENTRIES} were expected",
            hint="use a shorter length or a smaller width",
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


# All that one encoding promises, in one record: what `heed positions` prints and draws.

LOW_PRECISION = ("fp16", "bf16")
SHOWN_ENTRIES = 1 << 20
"""A larger table is not kept in the record; its promises still are."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PositionsStudy(Record):
    """What an encoding gives each position, and what it promises; parts that do not apply are
    empty."""

    kind: str
    """The name of a position scheme: sinusoidal, learned, rotary, …"""
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
    one_of("kind", kind, tuple(SCHEMES))
    scheme = SCHEMES[kind](kind=kind)
    length = whole("length", length, 2, MOST_POSITIONS)
    width = whole("width", width, 1) if kind in ("learned", "none") else even("width", width)
    base = number_of("base", base, above=0)
    if table is not None and kind != "learned":
        raise InputError("table", f"was given for {kind} positions", expected="kind learned")
    if kind == "sinusoidal":
        return _sinusoidal(length, width, base)
    if rotated := scheme.rotated_width(width):
        return _rotary(kind, length, width, rotated, base, seed)
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
    collisions = tuple(
        rounded
        for format_ in LOW_PRECISION
        for rounded in (
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
        collisions=collisions,
        statements=(
            waves.statement,
            proof.statement,
            closest.statement,
            moved.statement,
            *(one.statement for one in collisions),
        ),
    )


def _rotary(
    kind: str, length: int, width: int, rotated: int, base: float, seed: int
) -> PositionsStudy:
    """Study the dimensions that are rotated; the others are the same at every position."""
    waves = wavelengths(rotated, base, length)
    scores = tuple(relative_scores(rotated, base, layout=layout, seed=seed) for layout in LAYOUTS)
    collisions = tuple(position_collisions(length, rotated, format_=one) for one in LOW_PRECISION)
    return PositionsStudy(
        kind=kind,
        length=length,
        width=width,
        base=base,
        distinguishes=True,
        wavelengths=waves,
        relative_scores=scores,
        collisions=collisions,
        statements=(
            waves.statement,
            *(one.statement for one in scores),
            *(one.statement for one in collisions),
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
        given = numpy64("table", table, rank=2)
        rows = learned(given, min(length, len(given)))
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
