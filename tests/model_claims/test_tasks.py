"""The proved accuracy of whole models is that of all inputs, or less."""

from __future__ import annotations

from functools import lru_cache

import pytest
import torch

from heedful.errors import InputError
from heedful.model import Decoder
from heedful.model_claims.tasks import (
    SmallTask,
    enclosed_accuracy,
    enumerated_accuracy,
    proved_accuracy,
    train_task,
)

SMALL = SmallTask("largest", 5, 4)
BATCH = 64


@lru_cache
def trained(steps: int, task: SmallTask = SMALL) -> Decoder:
    return train_task(task, steps=max(steps, 1), seed=steps, batch=BATCH)


@pytest.mark.parametrize("steps", [0, 30, 100, 400])
def test_what_is_proved_of_the_largest_number_is_never_too_much(steps: int) -> None:
    """Untrained, half trained and trained: a lower bound, and exact once the rest is tried."""
    decoder = trained(steps)
    enumerated = enumerated_accuracy(decoder, SMALL)
    proved = proved_accuracy(decoder, SMALL)
    finished = proved_accuracy(decoder, SMALL, finish=True)
    assert proved.right <= enumerated.right == finished.right
    assert finished.tried < enumerated.tried or proved.right == 0


def test_a_trained_model_is_proved_right_for_nearly_all_inputs() -> None:
    decoder = trained(400)
    assert proved_accuracy(decoder, SMALL).accuracy > 0.9


def test_pairs_are_certain_exactly_where_all_their_inputs_are_right() -> None:
    """The proof decides: no pair of query and largest number is lost to a loose bound."""
    decoder = trained(100)
    inputs = SMALL.all_inputs(0, SMALL.inputs)
    with torch.no_grad():
        right = decoder(SMALL.rows(inputs))[:, -1].argmax(-1) == inputs.amax(1)
    whole = 0
    for q in range(5):
        for m in range(q, 5):
            chosen = (inputs[:, -1] == q) & (inputs.amax(1) == m)
            whole += int(chosen.sum()) if bool(right[chosen].all()) else 0
    assert proved_accuracy(decoder, SMALL).right == whole


def test_sums_are_enclosed_one_by_one() -> None:
    task = SmallTask("sum", 5, 2)
    decoder = trained(200, task)
    enumerated, enclosed = enumerated_accuracy(decoder, task), enclosed_accuracy(decoder, task)
    assert enclosed.right <= enumerated.right
    assert enclosed.right == enumerated.right, "margins are far wider than rounding errors"


def test_another_kind_of_model_is_refused() -> None:
    task = SmallTask("sum", 5, 2)
    with pytest.raises(InputError, match="not of the kind"):
        proved_accuracy(Decoder(task.config(), seed=0), task)
