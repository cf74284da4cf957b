"""Operations on boxes hold all points (bounds of whole models: `test_first_layer`)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from enumerated import small_model
from numpy.typing import NDArray

from heedful.errors import InputError
from heedful.model import Decoder, preset
from heedful.model_claims.bounds import TextBounds
from heedful.model_claims.first_layer import NAMED, FirstLayer, extremes
from heedful.model_claims.intervals import (
    Box,
    activated,
    centred,
    linear,
    unit_mean_square,
    weighted_mean,
)


@pytest.mark.parametrize("seed", range(7))
def test_in_the_first_layer_bounds_of_weights_are_the_extremes(seed: int) -> None:
    decoder = small_model(seed, vocabulary=5, length=4)
    bounds = TextBounds(decoder, 4, layers=0)
    for found in extremes(FirstLayer(decoder, 0), NAMED, [4]):
        low, high = bounds.total_weight(0, 0, NAMED[found.places])
        bound = low if found.kind == "least" else high
        assert bound == pytest.approx(found.weight, rel=1e-9)


def drawn_box(rng: np.random.Generator, *shape: int) -> Box:
    middle, radius = rng.normal(size=shape), rng.exponential(size=shape) * rng.random()
    return Box(middle - radius, middle + radius)


def points(box: Box, rng: np.random.Generator, count: int = 200) -> NDArray[np.float64]:
    """Return points of a box, half of them corners."""
    share = rng.random((count, *box.low.shape))
    share[::2] = share[::2].round()
    return box.low + share * (box.high - box.low)


@pytest.mark.parametrize("seed", range(20))
def test_operations_on_boxes_hold_all_points(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = drawn_box(rng, 6)
    inside = points(x, rng)
    weight, eps = rng.normal(size=(5, 6)), 1e-5

    def holds(box: Box, values: NDArray[np.float64]) -> bool:
        return bool(((values >= box.low - 1e-13) & (values <= box.high + 1e-13)).all())

    assert holds(linear(x, weight), inside @ weight.T)
    mean_square = np.sqrt((inside**2).mean(-1, keepdims=True) + eps)
    assert holds(unit_mean_square(x, eps), inside / mean_square)
    assert holds(centred(x), inside - inside.mean(-1, keepdims=True))
    if seed % 2:  # narrow intervals around the least values of the activations
        x = Box(*(np.linspace(-1.4, -0.6, 6) + end for end in (-1e-7 * seed, 1e-8 * seed)))
        inside = points(x, rng)
    tensor = torch.from_numpy(inside)
    gelu, silu = torch.nn.functional.gelu, torch.nn.functional.silu
    assert holds(activated(x, "gelu"), gelu(tensor).numpy())
    assert holds(activated(x, "gelu_tanh"), gelu(tensor, approximate="tanh").numpy())
    assert holds(activated(x, "silu"), silu(tensor).numpy())


@pytest.mark.parametrize("seed", range(20))
def test_a_weighted_mean_over_boxes_is_exact(seed: int) -> None:
    """Its ends are those of all corners: each score and each value at one of its ends."""
    rng = np.random.default_rng(seed)
    scores, values = drawn_box(rng, 4), drawn_box(rng, 4, 1)
    corners = np.array(np.meshgrid(*[[0, 1]] * 4)).reshape(4, -1).T
    weights = np.exp(np.where(corners, scores.high, scores.low))
    weights /= weights.sum(1, keepdims=True)
    found = weighted_mean(scores, values)
    high, low = (weights @ values.high).max(), (weights @ values.low).min()
    assert high <= found.high[0] + 1e-15 <= high + 1e-10
    assert low >= found.low[0] - 1e-15 >= low - 1e-10


def test_bounds_that_would_take_hours_are_refused() -> None:
    with pytest.raises(InputError, match="products"):
        TextBounds(Decoder(preset("small"), seed=0), 64)
