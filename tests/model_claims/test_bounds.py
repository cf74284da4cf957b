"""What is said of deeper layers holds for every text that can be tried."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from enumerated import every_text, small_model, traced
from numpy.typing import NDArray

from heedful.errors import InputError
from heedful.model import Decoder, preset
from heedful.model_claims.bounds import TextBounds
from heedful.model_claims.first_layer import NAMED, FirstLayer, KeyPlaces, extremes
from heedful.model_claims.intervals import (
    Box,
    activated,
    centred,
    linear,
    unit_mean_square,
    weighted_mean,
)

QUESTIONS = {**NAMED, "previous and first": KeyPlaces(back=(1,), absolute=(0,), since=2)}


def violations(decoder: Decoder, length: int, begin: int | None = None) -> int:
    """Return how many numbers of how many texts lie outside their bounds."""
    texts = every_text(decoder.config.vocabulary, length, begin)
    trace, bounds = traced(decoder, texts), TextBounds(decoder, length, begin=begin)
    count = 0
    for t in range(length):
        row = {int(number): place for place, number in enumerate(bounds.ids[t])}
        rows = [row[int(number)] for number in texts[:, t]]
        for layer, seen in enumerate(trace.layers):
            count += _outside(bounds.streams[layer + 1][t][rows], seen.after[:, t])
            for head in range(decoder.config.attention.heads):
                for places in QUESTIONS.values():
                    chosen = places.of(t)
                    if chosen is not None:
                        total = seen.weights[:, head, t, list(chosen)].sum(-1)
                        count += _outside(bounds.weights(layer, head, t, chosen)[rows], total)
        count += _outside(bounds.logits(t)[rows], trace.logits[:, t])
    return count


def _outside(box: Box, seen: torch.Tensor) -> int:
    numbers, room = seen.numpy(), 1e-12
    room = room * (1 + np.abs(numbers))  # the decoder's own rounding
    return int(((numbers < box.low - room) | (numbers > box.high + room)).sum())


@pytest.mark.parametrize("seed", range(14))
def test_bounds_of_every_layer_hold_for_all_texts(seed: int) -> None:
    assert violations(small_model(seed, vocabulary=5, length=4), 4) == 0


@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_for_texts_that_begin_with_a_mark(seed: int) -> None:
    assert violations(small_model(seed, vocabulary=5, length=4), 4, begin=3) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_bounds_of_every_layer_hold_for_all_texts_of_five_tokens(seed: int) -> None:
    assert violations(small_model(100 + seed, vocabulary=6), 5) == 0


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
