"""The encodings are the formulas, entry by entry, on NumPy and torch alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import InputError
from heedful.positions import (
    alibi_bias,
    alibi_slopes,
    frequencies,
    learned,
    none,
    rotary,
    sinusoidal,
)

quick = settings(deadline=None, max_examples=30)
pairs = st.integers(1, 12)
bases = st.sampled_from([1.5, 100.0, 10_000.0, 500_000.0])


@given(t=st.integers(0, 100_000), half=pairs, base=bases)
@quick
def test_sinusoidal_is_the_formula(t: int, half: int, base: float) -> None:
    width = 2 * half
    (row,) = sinusoidal([t], width, base)
    for i in range(half):
        angle = t / base ** (2 * i / width)
        assert row[2 * i] == pytest.approx(math.sin(angle), abs=1e-9)
        assert row[2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-9)
    assert np.linalg.norm(row) == pytest.approx(math.sqrt(half))


@given(length=st.integers(1, 40), half=pairs)
@quick
def test_a_length_stands_for_the_first_positions(length: int, half: int) -> None:
    np.testing.assert_array_equal(
        sinusoidal(length, 2 * half), sinusoidal(list(range(length)), 2 * half)
    )


def complex_rotary(x: Any, positions: Any, base: float) -> Any:
    """The oracle: a pair is a complex number, and turning it is a multiplication."""
    z = x[..., 0::2] + 1j * x[..., 1::2]
    z = z * np.exp(1j * np.asarray(positions)[:, None] * frequencies(x.shape[-1], base))
    out = np.empty(x.shape)
    out[..., 0::2], out[..., 1::2] = z.real, z.imag
    return out


@given(seed=st.integers(0, 999), half=pairs, base=bases)
@quick
def test_rotary_multiplies_complex_pairs_in_both_layouts(seed: int, half: int, base: float) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, 5, 2 * half))
    positions = rng.integers(0, 5000, size=5)
    turned = rotary(x, positions, base)
    np.testing.assert_allclose(turned, complex_rotary(x, positions, base), atol=1e-9)
    np.testing.assert_allclose(
        np.linalg.norm(turned, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-12
    )
    # the half layout is the interleaved one with the entries in another order
    order = np.concatenate([np.arange(0, 2 * half, 2), np.arange(1, 2 * half, 2)])
    np.testing.assert_allclose(
        rotary(x[..., order], positions, base, layout="half"), turned[..., order], atol=1e-12
    )


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_rotary_keeps_the_library_the_precision_and_the_gradient(layout: str) -> None:
    x = np.random.default_rng(0).standard_normal((3, 4))
    there = rotary(torch.from_numpy(x), layout=layout)
    np.testing.assert_allclose(there.numpy(), rotary(x, layout=layout), atol=1e-14)
    single = torch.zeros(3, 4, dtype=torch.float32, requires_grad=True)
    turned = rotary(single, layout=layout)
    assert turned.dtype == torch.float32
    turned.sum().backward()
    assert single.grad is not None


def test_rotary_agrees_with_the_checkpoints_that_use_halves() -> None:
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    x = torch.randn(1, 1, 6, 8, dtype=torch.float64)
    angle = torch.arange(6)[:, None] * torch.from_numpy(frequencies(8))
    angle = torch.cat([angle, angle], dim=-1)[None]
    theirs, _ = apply_rotary_pos_emb(x, x, angle.cos(), angle.sin())
    torch.testing.assert_close(rotary(x, layout="half"), theirs)


@given(st.integers(0, 7))
@quick
def test_alibi_slopes_of_a_power_of_two_are_a_geometric_series(power: int) -> None:
    heads = 2**power
    slopes = alibi_slopes(heads)
    np.testing.assert_allclose(slopes, [2 ** (-8 * h / heads) for h in range(1, heads + 1)])


@given(st.integers(1, 40))
@quick
def test_alibi_slopes_of_other_numbers_interleave_the_next_power(heads: int) -> None:
    lower = 2 ** math.floor(math.log2(heads))
    expected = [*alibi_slopes(lower), *alibi_slopes(2 * lower)[0::2][: heads - lower]]
    np.testing.assert_allclose(alibi_slopes(heads), expected)
    assert len(set(alibi_slopes(heads))) == heads


@given(heads=st.integers(1, 6), queries=st.integers(1, 6), extra=st.integers(0, 4))
@quick
def test_alibi_bias_falls_with_the_distance(heads: int, queries: int, extra: int) -> None:
    bias = alibi_bias(heads, queries, queries + extra)
    for h, slope in enumerate(alibi_slopes(heads)):
        for i in range(queries):
            for j in range(queries + extra):
                assert bias[h, i, j] == -slope * abs(i + extra - j)


def test_learned_and_none() -> None:
    table = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(learned(table, [2, 0]), [[4.0, 5.0], [0.0, 1.0]])
    there = learned(torch.from_numpy(table), 2)
    assert isinstance(there, torch.Tensor)
    assert there.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert not none(3, 5).any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sinusoidal(4, 3), "use 4"),
        (lambda: sinusoidal(4, 0), "width: is 0"),
        (lambda: sinusoidal(0, 2), "positions: is 0"),
        (lambda: sinusoidal([0.5], 2), "whole positions"),
        (lambda: sinusoidal([[1]], 2), "one row"),
        (lambda: sinusoidal([[1], [1, 2]], 2), "ragged"),
        (lambda: sinusoidal(4, 2, base=0.0), "base: is 0"),
        (lambda: sinusoidal(4, 2, base=float("nan")), "base: is nan"),
        (lambda: learned([[1.0]], [1]), "position 1 was never learned"),
        (lambda: learned([[1.0]], [-1]), "position -1 was never learned"),
        (lambda: learned([[1.0], [1.0, 2.0]], [0]), "ragged"),
        (lambda: learned([["a"]], [0]), "not a real number type"),
        (lambda: learned(np.array([[1j]]), [0]), "dtype complex"),
        (lambda: rotary([[1.0, 2.0, 3.0]]), "odd"),
        (lambda: rotary([1.0, 2.0]), "has shape"),
        (lambda: rotary([[1.0, np.inf]]), "entry .0, 1. is inf"),
        (lambda: rotary([[1.0, 2.0]], [1, 2]), "names 2"),
        (lambda: rotary([[1.0, 2.0]], layout="other"), "layout: 'other' is unknown"),
        (lambda: alibi_slopes(0), "heads: is 0"),
        (lambda: alibi_bias(1, 4, 2), "keys: is 2"),
        (lambda: none(3, 0), "width: is 0"),
    ],
)
def test_bad_input_is_refused(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
