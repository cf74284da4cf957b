"""Order: what self-attention, masks, positions and pointwise maps do to permutations."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.attention.equivariance import (
    LONGEST,
    Equivariance,
    add_positions,
    conjugation_equivariance,
    feature_equivariance,
    feed_forward,
    mean_rows,
    permutation_equivariance,
    permutation_invariance,
    relu,
    self_attention,
    softmax_rows,
    standard_layers,
)
from heedful.errors import InputError

EQUIVARIANT = ("self-attention", "feed-forward", "self-attention + feed-forward", "relu")
ORDERED = ("causal self-attention", "positions + self-attention")


def every_permutation_breaks_by(layer: Callable[[Any], Any], X: Any) -> float:
    """The obvious oracle: the law written with permutation matrices, all n! of them."""
    worst = 0.0
    for order in itertools.permutations(range(len(X))):
        P = np.eye(len(X))[list(order)]
        worst = max(worst, float(np.max(np.abs(layer(P @ X) - P @ layer(X)))))
    return worst


@pytest.mark.parametrize("name", EQUIVARIANT)
@given(width=st.integers(1, 5), length=st.integers(2, 7), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=10)
def test_plain_layers_carry_a_permutation_through(
    name: str, width: int, length: int, seed: int
) -> None:
    found = permutation_equivariance(
        standard_layers(width, seed)[name], length=length, width=width, trials=3, seed=seed
    )
    assert found.holds
    assert found.relative <= found.tolerance
    assert found.permutation is None
    assert "not a proof" in found.statement


@pytest.mark.parametrize("name", ORDERED)
@given(seed=st.integers(0, 99))
@settings(deadline=None, max_examples=10)
def test_a_mask_or_positions_break_it_and_two_tokens_are_enough(name: str, seed: int) -> None:
    layer = standard_layers(4, seed)[name]
    found = permutation_equivariance(layer, seed=seed)
    assert not found.holds
    assert found.permutation == (1, 0)
    assert found.input.shape == (2, 4)
    # the case shown reproduces by hand
    again = np.max(np.abs(layer(found.input[[1, 0]]) - layer(found.input)[[1, 0]]))
    assert found.error == pytest.approx(float(again), abs=1e-15)
    assert found.error > 0


@pytest.mark.parametrize("name", [*EQUIVARIANT, *ORDERED])
def test_the_verdict_agrees_with_all_permutation_matrices(name: str) -> None:
    layer = standard_layers(3, seed=5)[name]
    X = np.random.default_rng(1).standard_normal((4, 3))
    brute = every_permutation_breaks_by(layer, X)
    assert permutation_equivariance(layer, length=4, width=3).holds == (brute < 1e-9)


def test_a_permutation_on_the_right_moves_features_and_attention_does_not_follow() -> None:
    layers = standard_layers(4)
    found = feature_equivariance(layers["self-attention"])
    assert not found.holds
    assert found.law == "f(XΠ) = f(X) Π"
    assert found.permutation is not None
    assert len(found.permutation) == 4
    assert feature_equivariance(layers["relu"]).holds
    assert feature_equivariance(layers["feed-forward"]).holds is False
    # attention without weights treats every feature alike, so there the other side holds too
    identity = np.eye(4)
    assert feature_equivariance(lambda X: self_attention(X, identity, identity, identity)).holds


def test_softmax_and_relu_commute_with_permutations_as_matrices() -> None:
    assert conjugation_equivariance(softmax_rows).holds
    assert conjugation_equivariance(relu).holds
    assert permutation_equivariance(softmax_rows).holds
    assert not conjugation_equivariance(_running_sums).holds


def _running_sums(A: Any) -> Any:
    return np.cumsum(A, axis=1)


def test_invariance_is_told_from_equivariance() -> None:
    assert permutation_invariance(mean_rows).holds
    assert not permutation_invariance(relu).holds
    with pytest.raises(InputError, match=r"turned shape \(6, 4\) into \(4,\)"):
        permutation_equivariance(mean_rows)


@given(st.integers(0, 200))
@settings(deadline=None, max_examples=20)
def test_one_odd_position_among_many_is_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    length = int(rng.integers(3, 8))
    odd = int(rng.integers(0, length))

    def layer(X: Any) -> Any:
        out = X.copy()
        out[odd % len(X)] *= 2.0
        return out

    found = permutation_equivariance(layer, length=length, width=2, trials=1, seed=seed)
    assert not found.holds
    assert found.permutation is not None
    moved = [place for place, source in enumerate(found.permutation) if place != source]
    assert len(moved) == 2
    assert len(found.permutation) == 2


def test_a_layer_made_for_one_length_is_shown_at_that_length() -> None:
    mask = np.tril(np.ones((5, 5), dtype=bool))
    eye = np.eye(4)
    found = permutation_equivariance(
        lambda X: self_attention(X, eye, eye, eye, mask=mask), length=5, width=4
    )
    assert not found.holds
    assert found.input.shape == (5, 4)


def test_torch_layers_in_either_precision() -> None:
    torch.manual_seed(0)
    linear = torch.nn.Linear(3, 3)
    found = permutation_equivariance(linear, example=torch.randn(5, 3))
    assert found.holds
    assert 1e-9 < found.tolerance < 1e-3
    attention = torch.nn.MultiheadAttention(4, 2, batch_first=True).double().eval()

    def layer(X: Any) -> Any:
        return attention(X[None], X[None], X[None])[0][0]

    assert permutation_equivariance(layer, example=torch.randn(5, 4, dtype=torch.float64)).holds
    reversed_sum = permutation_equivariance(
        lambda X: torch.cumsum(X, dim=0), example=torch.ones(3, 2, dtype=torch.float64)
    )
    assert not reversed_sum.holds
    assert reversed_sum.to_dict()["permutation"] is not None


@pytest.mark.parametrize("name", [*EQUIVARIANT, *ORDERED])
def test_standard_layers_agree_on_numpy_and_torch(name: str) -> None:
    layer = standard_layers(4, 3)[name]
    X = np.random.default_rng(0).standard_normal((5, 4))
    there = layer(torch.from_numpy(X))
    assert isinstance(there, torch.Tensor)
    np.testing.assert_allclose(there.numpy(), layer(X), rtol=0, atol=1e-13)


def test_layers_match_the_equations() -> None:
    rng = np.random.default_rng(4)
    X, W_Q, W_K, W_V, W_1, W_2 = rng.standard_normal((6, 3, 3))
    b_1, b_2 = rng.standard_normal((2, 3))
    S = X @ W_Q @ (X @ W_K).T / np.sqrt(3)
    A = np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(self_attention(X, W_Q, W_K, W_V), A @ X @ W_V, atol=1e-13)
    np.testing.assert_allclose(
        feed_forward(X, W_1, b_1, W_2, b_2), np.maximum(X @ W_1 + b_1, 0) @ W_2 + b_2, atol=1e-13
    )
    np.testing.assert_array_equal(add_positions(X, W_1), X + W_1)


def wrong_nan(X: Any) -> Any:
    return X * np.nan


def wrong_shape(X: Any) -> Any:
    return X[:-1]


def wrong_raise(X: Any) -> Any:
    raise ValueError("no")


_noise = np.random.default_rng(0)


def wrong_random(X: Any) -> Any:
    return X + _noise.standard_normal(X.shape)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (wrong_nan, "is nan"),
        (wrong_shape, "one row of output"),
        (wrong_raise, "ValueError: no"),
        (wrong_random, "two different outputs"),
    ],
)
def test_a_layer_that_cannot_be_judged_is_refused(
    layer: Callable[[Any], Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        permutation_equivariance(layer)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 1}, "one alone cannot be permuted"),
        ({"width": 0}, "width: is 0"),
        ({"trials": 0}, "trials: is 0"),
        ({"tolerance": -1.0}, "tolerance: is -1"),
        ({"tolerance": float("nan")}, "finite"),
        ({"example": [1.0, 2.0]}, "2 axes were expected"),
        ({"example": [[1.0], [float("inf")]]}, "entry"),
    ],
)
def test_bad_settings_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        permutation_equivariance(relu, **options)


def test_bad_weights_and_tables_are_refused() -> None:
    with pytest.raises(InputError, match="W_K: has 2 rows"):
        self_attention(np.ones((2, 3)), np.eye(3), np.eye(2), np.eye(3))
    with pytest.raises(InputError, match="b_1: has 2 entries"):
        feed_forward(np.ones((2, 3)), np.eye(3), [0.0, 0.0], np.eye(3), np.zeros(3))
    with pytest.raises(InputError, match="longer or wider"):
        standard_layers(2)["positions + self-attention"](np.ones((LONGEST + 1, 2)))
    with pytest.raises(InputError, match="width: is 0"):
        standard_layers(0)
    with pytest.raises(InputError, match="square"):
        conjugation_equivariance(relu, example=np.ones((2, 3)))


def test_the_input_is_never_changed_by_the_layer_under_test() -> None:
    def greedy(X: Any) -> Any:
        X *= 0.0
        return X

    example = np.ones((3, 2))
    assert isinstance(permutation_equivariance(greedy, example=example), Equivariance)
    np.testing.assert_array_equal(example, np.ones((3, 2)))
