"""Bits stored in a parameter: people of known entropy, and what a decoder is told about them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.model import Decoder
from heedful.studies.knowledge import capacity
from heedful.studies.knowledge.capacity import (
    ATTRIBUTES,
    NAME_BITS,
    PIECES,
    QUICK,
    VALUE_BITS,
    Cell,
    People,
    asked_losses,
    stored_losses,
    study_capacity,
    token_losses,
)
from heedful.studies.knowledge.findings import CAPACITY_RECORD
from heedful.training.runs import RunStoppedError

CELL = Cell(width=16, exposures=10, varied=True)


def test_people_have_names_of_their_own_and_every_order_tells_the_same() -> None:
    people = People.drawn(300, seed=1)

    texts = people.read(CELL, seed=1).reshape(capacity.ORDERS, 300, -1)

    assert len({tuple(name) for name in people.names.tolist()}) == 300
    fields = texts[:, :, 3:].reshape(capacity.ORDERS, 300, ATTRIBUTES, -1)
    for one in fields:
        assert (np.sort(one[:, :, 0], axis=1) == PIECES + np.arange(ATTRIBUTES)).all()
        told = np.take_along_axis(one, np.argsort(one[:, :, :1], axis=1), axis=1)
        assert (told[:, :, 1:] == people.values).all()
    assert len({one.tobytes() for one in fields}) > 1


def test_a_decoder_that_knows_nothing_has_stored_nothing() -> None:
    decoder = Decoder(CELL.config).eval()
    with torch.no_grad():
        for weights in decoder.parameters():
            weights.zero_()  # every token is then as likely as any other
    people = People.drawn(50, seed=0)

    # It also has to tell pieces from labels and the mark, so it needs a little more.
    every = math.log2(CELL.config.vocabulary)
    expected = (NAME_BITS + VALUE_BITS) / math.log2(PIECES) * every
    assert stored_losses(decoder, people.read(CELL, 0)) == pytest.approx(expected)
    assert asked_losses(decoder, people) == pytest.approx(VALUE_BITS)  # never less than nothing


def test_losses_are_those_of_each_token() -> None:
    torch.manual_seed(0)
    decoder = Decoder(CELL.config).eval()
    texts = People.drawn(3, seed=0).read(CELL, 0)[:3]

    found = token_losses(decoder, texts)

    with torch.no_grad():
        for text, losses in zip(texts, found, strict=True):
            for place in range(1, len(text)):
                logits = decoder(torch.tensor([text[:place].tolist()]))[0, -1].double()
                expected = -logits.log_softmax(-1)[text[place]] / math.log(2)
                assert losses[place - 1] == pytest.approx(float(expected), abs=1e-4)


def test_what_takes_too_much_work_is_left_out_and_said() -> None:
    wide = replace(CELL, width=24, varied=False)
    plan = replace(QUICK, widths=(16, 24), budget=0.0)

    # The smallest decoder is trained at all exposures, every other one at the fewest.
    smallest = replace(plan, widths=(16,)).cells()
    assert len(smallest) == 4
    assert sorted(map(str, plan.cells())) == sorted(map(str, [*smallest, wide]))
    lines = capacity._left_out(plan, plan.cells())
    assert [line.rpartition(": ")[2] for line in lines] == ["30", "10, 30"]
    assert len(replace(plan, budget=1e20).cells()) == 8


def test_a_study_is_found_again_and_counts_bits(tmp_path: Path) -> None:
    plan = replace(QUICK, exposures=(10,))

    study = study_capacity(plan, tmp_path)
    again = study_capacity(plan, tmp_path)

    assert study.to_dict() == again.to_dict()
    assert [one.varied for one in study.points] == [False, True]
    for point in study.points:
        assert point.low <= point.stored <= point.high
        assert point.stored < capacity.AVAILABLE + 1
    assert study.conclusions[0].stands


def test_a_study_that_is_stopped_leaves_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_asked: Any) -> Any:
        raise RunStoppedError(tmp_path, "SIGINT")

    plan = replace(QUICK, exposures=(10,))
    trained = capacity.train_and_measure(plan.cells()[0], tmp_path / "runs", 0)
    answers = iter([lambda *_asked: trained, stopped])
    monkeypatch.setattr(capacity, "train_and_measure", lambda *asked: next(answers)(*asked))

    with pytest.raises(RunStoppedError):
        study_capacity(plan, tmp_path)

    record = json.loads((tmp_path / CAPACITY_RECORD).read_text("utf-8"))
    assert [point["varied"] for point in record["points"]] == [False]
    assert record["left_out"] == [f"{plan.cells()[1].parameters:,} parameters, varied text: 10"]
