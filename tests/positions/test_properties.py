"""What encodings promise: proofs that hold up against scans, and bounds that are bounds."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import InputError
from heedful.positions import (
    SCHEMES,
    embedding_collisions,
    position_collisions,
    positions_study,
    relative_scores,
    shift,
    shift_matrix,
    sinusoidal,
    smallest_distance,
    smallest_distances,
    uniqueness,
    uniqueness_of_turns,
    wavelengths,
)
from heedful.positions.properties import FORMATS, gap_distances, round_to

quick = settings(deadline=None, max_examples=30)
halves = st.integers(1, 10)
bases = st.sampled_from([0.5, 1.0, 2.0, 100.0, 10_000.0])


@given(half=halves, base=bases)
@quick
def test_after_a_wavelength_a_pair_is_back(half: int, base: float) -> None:
    found = wavelengths(2 * half, base)
    np.testing.assert_allclose(np.cos(found.lengths * found.frequencies), 1.0, atol=1e-12)
    longest = int(found.longest[0]) // 2
    assert found.lengths[longest] == found.lengths.max()
    assert found.lengths[int(found.shortest[0]) // 2] == found.lengths.min()


def test_low_dimensions_are_the_high_frequencies() -> None:
    found = wavelengths(512)
    assert np.all(np.diff(found.lengths) > 0)
    assert found.shortest == (0, 1)
    assert found.longest == (510, 511)
    assert "low dimensions are the high frequencies" in found.statement


@given(half=halves, base=bases, k=st.integers(-50, 50))
@quick
def test_a_shift_is_one_matrix_for_every_position(half: int, base: float, k: int) -> None:
    found = shift(k, 2 * half, base, length=64)
    assert found.error < 1e-9
    assert found.orthogonality < 1e-12
    np.testing.assert_allclose(
        shift_matrix(2 * k, 2 * half, base), found.matrix @ found.matrix, atol=1e-9
    )


@given(half=halves, base=bases, seed=st.integers(0, 99))
@settings(deadline=None, max_examples=10)
def test_rotary_scores_see_only_the_difference(half: int, base: float, seed: int) -> None:
    for layout in ("interleaved", "half"):
        found = relative_scores(2 * half, base, layout=layout, trials=8, seed=seed)
        assert found.holds
        assert found.norm_error < 1e-12
        assert found.spread > 1e-6


@given(half=st.integers(1, 4), base=bases, length=st.integers(2, 120))
@quick
def test_the_proved_distance_is_the_smallest_of_all_pairs(
    half: int, base: float, length: int
) -> None:
    width = 2 * half
    found = smallest_distance(length, width, base)
    table = sinusoidal(length, width, base)
    brute = min(
        float(np.linalg.norm(table[s] - table[t])) for s, t in combinations(range(length), 2)
    )
    assert found.distance == pytest.approx(brute, abs=1e-9)
    assert 0 < found.proved <= found.distance
    assert float(found.statement.split("at least ")[1].split()[0]) <= found.proved
    assert found.distance - found.proved <= 1e-12 * found.distance
    assert np.linalg.norm(table[found.gap] - table[0]) == pytest.approx(brute, abs=1e-9)


@given(half=st.integers(1, 6), length=st.integers(2, 400))
@quick
def test_the_bound_holds_in_fifty_digits(half: int, length: int) -> None:
    found = smallest_distance(length, 2 * half)
    with mpmath.workdps(50):
        total = mpmath.mpf(0)
        for i in range(half):
            omega = mpmath.mpf(10000) ** (-mpmath.mpf(2 * i) / (2 * half))
            total += 2 - 2 * mpmath.cos(found.gap * omega)
        assert mpmath.mpf(found.proved) <= mpmath.sqrt(total)
        assert abs(mpmath.mpf(found.distance) - mpmath.sqrt(total)) < 1e-12


def test_the_closest_positions_in_two_dimensions_are_convergents_of_two_pi() -> None:
    assert smallest_distance(100, 2).gap == 44
    assert smallest_distance(700, 2).gap == 333
    assert smallest_distance(1000, 2).gap == 710
    assert all(one.unique_gap for one in smallest_distances(200, [2, 4, 8]))


def test_the_working_precision_of_others_is_left_alone() -> None:
    before = ctx.prec
    smallest_distance(20, 4)
    assert ctx.prec == before


def test_gap_distances_are_those_of_the_table() -> None:
    table = sinusoidal(50, 6)
    np.testing.assert_allclose(
        gap_distances(50, 6), np.linalg.norm(table - table[0], axis=1), atol=1e-12
    )


@given(half=halves, base=bases, pair=st.integers(0, 9))
@quick
def test_uniqueness_is_proved_with_any_pair_alone(half: int, base: float, pair: int) -> None:
    found = uniqueness(2 * half, base, pairs=[min(pair, half - 1)])
    assert found.unique
    assert found.collision is None
    assert found.proof[-1].endswith("s = t.")
    assert ("Lambert" in str(found.proof)) != ("Lindemann" in str(found.proof))


def test_sines_alone_suffice_and_cosines_alone_only_from_zero_on() -> None:
    assert uniqueness(2, parts="sine").unique
    cosine = uniqueness(2, parts="cosine")
    assert cosine.collision is not None
    s, t = cosine.collision
    both = sinusoidal([s, t], 2)
    assert both[0, 1] == both[1, 1]
    assert both[0, 0] != both[1, 0]
    assert cosine.over == "integers from 0 on"


@given(st.lists(st.fractions(0, 3, max_denominator=12), min_size=1, max_size=4))
@quick
def test_rational_turns_repeat_exactly_at_the_period(turns: list[Fraction]) -> None:
    found = uniqueness_of_turns(turns)
    assert not found.unique
    assert found.period is not None
    back = [
        k for k in range(1, found.period + 1) if all((k * turn).denominator == 1 for turn in turns)
    ]
    assert back == [found.period]


floats = st.floats(-70000, 70000, allow_subnormal=True)


@given(st.lists(floats, min_size=1, max_size=20))
@quick
def test_rounding_is_that_of_the_formats(values: list[float]) -> None:
    # torch rounds float64 to bf16 by way of float32, so it is asked about float32 numbers
    single = np.array(values, dtype=np.float32).astype(np.float64)
    theirs = torch.from_numpy(single).to(torch.float32).to(torch.bfloat16).to(torch.float64)
    np.testing.assert_array_equal(round_to(single, "bf16"), theirs.numpy())
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(
            round_to(values, "fp16"), np.array(values).astype(np.float16).astype(np.float64)
        )
    np.testing.assert_array_equal(
        round_to(values, "fp32"), np.array(values).astype(np.float32).astype(np.float64)
    )


def first_repeat(rows: list[bytes]) -> tuple[tuple[int, int] | None, int]:
    seen: dict[bytes, int] = {}
    first, count = None, 0
    for t, row in enumerate(rows):
        if row in seen:
            first = first or (seen[row], t)
            count += 1
        seen.setdefault(row, t)
    return first, count


@given(length=st.integers(1, 3000), half=st.integers(1, 3), format_=st.sampled_from(list(FORMATS)))
@settings(deadline=None, max_examples=20)
def test_collisions_are_those_of_a_plain_loop(length: int, half: int, format_: str) -> None:
    found = embedding_collisions(length, 2 * half, base=3.0, format_=format_)
    rows = [(row + 0.0).tobytes() for row in round_to(sinusoidal(length, 2 * half, 3.0), format_)]
    assert (found.first, found.coinciding) == first_repeat(rows)
    assert found.distinct == len(set(rows))


def test_two_dimensions_run_out_of_bf16_numbers() -> None:
    found = embedding_collisions(20_000, 2, format_="bf16")
    assert found.first is not None
    s, t = found.first
    same = round_to(sinusoidal([s, t], 2), "bf16")
    np.testing.assert_array_equal(same[0], same[1])


@pytest.mark.parametrize(("format_", "first"), [("bf16", 257), ("fp16", 2049)])
def test_rounded_positions_coincide_after_the_last_exact_one(format_: str, first: int) -> None:
    assert position_collisions(first, format_=format_).first is None
    assert position_collisions(first + 1, format_=format_).first == (first - 1, first)


def test_positions_beyond_fp16_overflow() -> None:
    assert position_collisions(70_000, format_="fp16").overflow == 70_000 - 65_520
    assert position_collisions(70_000, format_="bf16").overflow == 0


@pytest.mark.parametrize("kind", SCHEMES)
def test_a_study_says_something_and_becomes_json(kind: str) -> None:
    study = positions_study(kind, length=40, width=8)
    assert study.statements
    assert study.distinguishes == (kind != "none")
    assert kind in study.to_json()


def test_a_study_of_a_given_table() -> None:
    study = positions_study("learned", length=10, table=torch.ones(4, 3))
    assert study.length == 4
    assert not study.distinguishes
    assert "1 different rows" in study.statements[0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: positions_study("absolute"), "kind: 'absolute' is unknown"),
        (lambda: positions_study(length=1), "length: is 1"),
        (lambda: positions_study(width=7), "odd"),
        (lambda: positions_study("rotary", table=[[1.0]]), "was given for rotary"),
        (lambda: smallest_distance(1, 2), "length: is 1"),
        (lambda: smallest_distance(10**7, 2), "1000000"),
        (lambda: uniqueness(4, pairs=[]), "names no pair"),
        (lambda: uniqueness(4, pairs=[2]), "pairs: is 2"),
        (lambda: uniqueness(4, parts="tangent"), "parts"),
        (lambda: uniqueness_of_turns([]), "turns"),
        (lambda: uniqueness_of_turns(["pi"]), "'pi' is not a fraction"),
        (lambda: uniqueness_of_turns([math.inf]), "not a fraction"),
        (lambda: embedding_collisions(10**6, 512), "entries"),
        (lambda: position_collisions(4, format_="fp8"), "format: 'fp8' is unknown"),
        (lambda: relative_scores(4, layout="x"), "layout"),
        (lambda: shift(1, 4, length=0), "length: is 0"),
        (lambda: wavelengths(4, base=-1.0), "base: is -1"),
    ],
)
def test_bad_input_is_refused(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
