"""Equations (1) and (2): against a loop, on NumPy and torch, at the extremes, with masks."""

from __future__ import annotations

import math
import sys
from types import ModuleType

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.arrays import float64
from heedful.attention import Reading, attend, causal, softmax
from heedful.errors import InputError


def by_loops(queries, keys, values, scale=1.0, mask=None):
    """The slow, obvious oracle: one query, one key at a time."""
    outputs, weights = [], []
    for row, query in enumerate(queries):
        powers = []
        for column, key in enumerate(keys):
            seen = mask is None or mask[row][column]
            powers.append(
                math.exp(scale * sum(a * b for a, b in zip(key, query, strict=True)))
                if seen
                else 0.0
            )
        total = sum(powers)
        alpha = [power / total if total else 0.0 for power in powers]
        weights.append(alpha)
        outputs.append(
            [
                sum(a * v[i] for a, v in zip(alpha, values, strict=True))
                for i in range(len(values[0]))
            ]
        )
    return np.array(weights), np.array(outputs)


sizes = st.integers(1, 6)


@given(q=sizes, k=sizes, d=sizes, v=sizes, seed=st.integers(0, 99), masked=st.booleans())
def test_agrees_with_loops(q: int, k: int, d: int, v: int, seed: int, masked: bool) -> None:
    rng = np.random.default_rng(seed)
    queries, keys, values = (rng.standard_normal(s) for s in ((q, d), (k, d), (k, v)))
    mask = rng.random((q, k)) < 0.6 if masked else None

    reading = attend(queries, keys, values, scale=0.7, mask=mask)

    weights, outputs = by_loops(queries, keys, values, 0.7, mask)
    np.testing.assert_allclose(reading.weights, weights, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(reading.output, outputs, rtol=1e-12, atol=1e-14)


@given(seed=st.integers(0, 99), masked=st.booleans())
def test_torch_and_numpy_agree_forward_and_torch_agrees_with_its_own_softmax_backward(
    seed: int, masked: bool
) -> None:
    generator = torch.Generator().manual_seed(seed)
    queries, keys, values = (
        torch.randn(2, 4, 3, generator=generator, dtype=torch.float64, requires_grad=True)
        for _ in range(3)
    )
    mask = torch.tensor(causal(4)) if masked else None

    ours = attend(queries, keys, values, scale="sqrt_d", mask=mask).output
    logits = queries @ keys.mT / math.sqrt(3)
    if mask is not None:
        logits = logits.masked_fill(~mask, -math.inf)
    theirs = logits.softmax(-1) @ values

    torch.testing.assert_close(ours, theirs)
    probe = torch.randn(ours.shape, generator=generator, dtype=torch.float64)
    for mine, other in zip(
        torch.autograd.grad((ours * probe).sum(), (queries, keys, values)),
        torch.autograd.grad((theirs * probe).sum(), (queries, keys, values)),
        strict=True,
    ):
        torch.testing.assert_close(mine, other)
    arrays = [x.detach().numpy() for x in (queries, keys, values)]
    from_numpy = attend(*arrays, scale="sqrt_d", mask=causal(4) if masked else None)
    np.testing.assert_allclose(from_numpy.output, ours.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("size", [1e4, 3e38, 1e150])
def test_extreme_logits_give_hard_attention_and_no_nan(size: float) -> None:
    reading = attend([size, -size, 0.0], np.eye(3))

    np.testing.assert_array_equal(reading.weights, [1.0, 0.0, 0.0])
    assert reading.entropy == 0.0
    assert reading.effective_keys == 1.0


def test_logits_that_overflow_are_refused() -> None:
    with pytest.raises(InputError, match="overflows"):
        attend([1e200], [[1e200]])


def test_a_query_that_sees_nothing_reads_nothing_and_spoils_no_gradient() -> None:
    keys = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, False, True], [False, False, False]])

    reading = attend(torch.ones(2, 2, dtype=torch.float64), keys, keys, mask=mask)
    reading.output.sum().backward()

    assert torch.equal(reading.weights[1], torch.zeros(3, dtype=torch.float64))
    assert reading.effective_keys[1] == 0
    assert keys.grad is not None
    assert torch.isfinite(keys.grad).all()


@given(n=st.integers(1, 30), seed=st.integers(0, 99))
def test_entropy_is_that_of_the_weights_and_at_most_the_logarithm_of_their_number(
    n: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    reading = attend(rng.standard_normal(4), 3 * rng.standard_normal((n, 4)))
    alpha = np.asarray(reading.weights)

    assert math.isclose(float(reading.entropy), -np.sum(alpha * np.log(alpha)), abs_tol=1e-12)
    assert float(reading.entropy) <= math.log(n) + 1e-12
    assert 1 <= float(reading.effective_keys) <= n + 1e-9


def test_values_left_out_are_the_unit_vectors_also_in_a_batch() -> None:
    keys = np.random.default_rng(0).standard_normal((5, 4, 3))

    reading = attend(keys, keys)

    np.testing.assert_array_equal(reading.output, reading.weights)


def test_softmax_ignores_a_shift() -> None:
    logits = np.array([[1.0, 2.0, -3.0]])

    np.testing.assert_allclose(softmax(logits + 1e6), softmax(logits), atol=1e-9)


def test_a_reading_answers_for_a_set() -> None:
    reading = Reading.of(attend([2.0, 0.0], np.eye(2)), mass_on=[1])

    assert reading.mass == reading.weights[1]
    assert reading.to_dict()["mass_on"] == [1]


@pytest.mark.parametrize(
    ("queries", "keys", "says"),
    [
        ([1.0, 2.0], [[1.0, 0.0], [1.0]], "ragged"),
        ([], [[1.0]], "empty"),
        ([math.nan], [[1.0]], "entry [0] is nan"),
        ([1.0], [[math.inf]], "entry [0, 0] is inf"),
        (["a"], [["b"]], "not a real number"),
        ([1j], [[1.0]], "not a real number"),
        ([1.0, 2.0], [[1.0]], "dimension 2"),
        ([1.0], [1.0], "shape (1,)"),
    ],
)
def test_bad_input_is_one_line_with_the_value_found(queries, keys, says: str) -> None:
    with pytest.raises(InputError) as caught:
        attend(queries, keys)

    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan])
def test_a_scale_that_is_none_is_refused(scale: float) -> None:
    with pytest.raises(InputError, match="scale"):
        attend([1.0], [[1.0]], scale=scale)


def test_masks_must_be_boolean_and_fit() -> None:
    with pytest.raises(InputError, match="boolean"):
        attend([1.0], [[1.0]], mask=[[1]])
    with pytest.raises(InputError, match="last axis"):
        attend([1.0], [[1.0], [2.0]], mask=[[True, True, True]])


def test_libraries_do_not_mix() -> None:
    with pytest.raises(InputError, match="different libraries"):
        attend(torch.ones(2, dtype=torch.float64), np.eye(2))


class Rows(list[list[float]]):
    """A list that no array library has been asked about yet."""


def test_lists_are_read_while_another_thread_imports_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))  # as it is half-way through
    assert float64("keys", Rows([[1.0, 2.0]])).tolist() == [[1.0, 2.0]]
