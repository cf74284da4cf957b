"""Heads that were built for a role are named by it."""

from __future__ import annotations

import pytest
import torch

from heedful.studies.heads.behaviour import LAYERS, ROLES, construct, score_names


@pytest.mark.parametrize("shape", ["gpt2", "llama"])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_every_name_is_the_role_that_was_built(shape, noise: float) -> None:
    scores = score_names([construct(shape, seed, noise=noise) for seed in (100, 101)])
    assert [one.name for one in scores] == list(ROLES)
    for one in scores:
        assert one.given == one.built == one.does == one.right
        assert one.precision[0] == one.recall[0] == 1.0


@torch.no_grad()
def test_the_induction_head_reads_what_the_layer_below_wrote() -> None:
    model = construct("gpt2", 7)
    head = model.roles[1].index("induction")
    row = torch.tensor([[0, 5, 9, 3, 5]])  # 5 was followed by 9, at position 2
    assert float(model.decoder.trace(row).layers[1].weights[0, head, 4, 2]) > 0.99
    assert sorted(model.roles[0]) == sorted(LAYERS[0])
