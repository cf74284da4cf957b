"""Can two positions have the same embedding? Proofs, not scans.

φ(s) = φ(t) means that every pair has turned by the same angle, up to whole turns:
(s − t) ω_i = 2π m_i. Whether that can happen for whole s ≠ t is a question about π, and π is
irrational, even transcendental. Only frequencies that are rational shares of a turn repeat.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from heedful.errors import InputError
from heedful.positions.encodings import BASE
from heedful.positions.inputs import even, one_of, positive, whole
from heedful.records import Record

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
    width, base = even("width", width), positive("base", base)
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
