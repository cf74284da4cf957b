"""The attack finds texts that break statements, in any layer, and shrinks them."""

from __future__ import annotations

import pytest
import torch
from enumerated import every_text, small_model, traced
from torch import Tensor

from heedful.model.trace import Trace
from heedful.model_claims.attack import Attacker, Margin

LENGTH = 4


def previous_at_least(bound: float, layer: int, head: int) -> Margin:
    """Return the margin of "the last token gives the one before it at least this weight"."""

    def margin(trace: Trace, _tokens: Tensor) -> Tensor:
        weights = trace.layers[layer].weights
        if weights.shape[2] < 2:
            return torch.full((len(weights),), torch.inf, dtype=torch.float64)
        return weights[:, head, -1, -2] - bound

    return margin


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("seed", range(7))
def test_what_some_text_breaks_is_broken_by_the_text_found(seed: int, layer: int) -> None:
    decoder = small_model(seed, vocabulary=5, length=LENGTH)
    weights = traced(decoder, every_text(5, LENGTH)).layers[layer].weights[:, 0, -1, -2]
    # A bound that one text in fifty breaks.
    bound = float(weights.quantile(0.02))
    margin = previous_at_least(bound, layer, 0)
    found = Attacker(decoder, margin, seed=seed).search([LENGTH], starts=6)
    assert found.margin < 0
    rows = torch.tensor([found.tokens])
    assert float(margin(traced(decoder, rows), rows)[0]) == pytest.approx(found.margin)


def test_a_breaking_text_is_shrunk_until_every_token_is_needed() -> None:
    decoder = small_model(0, vocabulary=5, length=LENGTH)
    margin = previous_at_least(0.9, 1, 0)
    found = Attacker(decoder, margin).search([LENGTH])
    assert len(found.tokens) == 2
    assert found.margin < 0


def test_what_holds_is_not_broken_and_the_seed_decides_everything() -> None:
    decoder = small_model(3, vocabulary=5, length=LENGTH)
    margin = previous_at_least(0.0, 1, 0)
    one, two = (Attacker(decoder, margin, seed=4).search([LENGTH]) for _ in range(2))
    assert one.margin >= 0
    assert one == two


def test_texts_are_made_of_allowed_tokens_behind_the_opening_one() -> None:
    decoder = small_model(1, vocabulary=6, length=LENGTH)
    attacker = Attacker(decoder, previous_at_least(1.0, 0, 0), allowed=[1, 2], begin=5)
    found = attacker.search([LENGTH], below=-2.0)
    assert found.tokens[0] == 5
    assert set(found.tokens[1:]) <= {1, 2}
