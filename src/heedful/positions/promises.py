"""What position embeddings promise: wavelengths, shifts as linear maps, relative scores.

λ_i = 2π base^(2i/d)                          positions until pair i repeats
φ(t + k) = M_k φ(t),  M_k block-diagonal      each block turns a pair by kω_i
R_s q · R_t k = R_{s−t} q · k                 rotary: only the difference counts
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from heedful.positions.encodings import BASE, LAYOUTS, angles, frequencies, rotary, sinusoidal
from heedful.positions.inputs import MOST_POSITIONS, even, one_of, positive, whole
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

    >>> found = wavelengths(4)
    >>> found.lengths.round(2).tolist(), found.longest
    ([6.28, 628.32], (2, 3))
    """
    width, base = even("width", width), positive("base", base)
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
    (turned,) = angles([whole("k", k, -MOST_POSITIONS, MOST_POSITIONS)], width, base)
    matrix = np.zeros((width, width))
    even_places = np.arange(0, width, 2)
    odd_places = even_places + 1
    matrix[even_places, even_places] = matrix[odd_places, odd_places] = np.cos(turned)
    matrix[even_places, odd_places] = np.sin(turned)
    matrix[odd_places, even_places] = -np.sin(turned)
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
    width, base = even("width", width), positive("base", base)
    one_of("layout", layout, LAYOUTS)
    trials = whole("trials", trials, 1)
    rng = np.random.default_rng(seed)
    worst, longest, norm_error = 0.0, 0.0, 0.0
    for _ in range(trials):
        q, k = rng.standard_normal((2, width))
        size = float(np.linalg.norm(q) * np.linalg.norm(k))
        s, t, together = (int(one) for one in rng.integers(0, 2048, size=3))

        def score(at: int, other: int, q: np.ndarray = q, k: np.ndarray = k) -> float:
            turned = rotary(np.stack([q, k]), [at, other], base, layout=layout)
            return float(turned[0] @ turned[1])

        plain = score(s, t)
        worst = max(worst, abs(score(s + together, t + together) - plain) / size)
        longest = max(longest, abs(score(s + 1 + together, t) - plain) / size)
        turned = rotary(q[None], [s], base, layout=layout)
        norm_error = max(norm_error, abs(float(np.linalg.norm(turned) / np.linalg.norm(q)) - 1))
    holds = worst < 1e-9
    return RelativeScores(
        layout=layout,
        error=worst,
        norm_error=norm_error,
        spread=longest,
        trials=trials,
        holds=holds,
        statement=(
            f"rotary scores ({layout} pairs) moved together by up to 2047 positions change by at "
            f"most {worst:.1e} of |q||k| in {trials} trials, while a changed difference moves "
            f"them by up to {longest:.2g}"
        ),
    )
