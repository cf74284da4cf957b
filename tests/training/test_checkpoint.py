"""A checkpoint is whole or it is not used; a folder has one run at a time."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import forked
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_training import Numbers, small_config

from heedful.errors import InputError, RunError
from heedful.model import open_checkpoint
from heedful.training import Hooks, checkpoint, randomness, resume, train
from heedful.training.checkpoint import Contents
from heedful.training.folder import RunLock, holder_of
from heedful.training.randomness import Stream

CONFIG = small_config().model


def contents(step: int) -> Contents:
    return Contents(
        model={"a": torch.full((3,), float(step))},
        training={"optimiser:a/exp_avg": torch.zeros(3), "random:0/torch": torch.zeros(4)},
        state={"step": step},
    )


def test_two_are_kept_and_the_newest_is_found(tmp_path: Path) -> None:
    for step in (5, 10, 15, 20):
        checkpoint.save(tmp_path, contents(step), CONFIG)
    assert [checkpoint.step_of(path) for path in checkpoint.checkpoints(tmp_path)] == [15, 20]
    found = checkpoint.newest(tmp_path)
    assert found.contents is not None
    assert found.contents.state == {"step": 20}
    assert found.contents.part("optimiser").keys() == {"a/exp_avg"}
    assert torch.equal(found.contents.model["a"], torch.full((3,), 20.0))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two checkpoints, the second of which every example damages and mends."""
    folder = tmp_path_factory.mktemp("flip")
    for step in (1, 2):
        checkpoint.save(folder, contents(step), CONFIG)
    return folder


@given(seed=st.integers(0, 10_000))
def test_any_flipped_bit_is_noticed(saved: Path, seed: int) -> None:
    newest = checkpoint.checkpoints(saved)[-1]
    draw = random.Random(seed)
    file = draw.choice(sorted(newest.iterdir()))
    content = bytearray(file.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    whole = file.read_bytes()
    file.write_bytes(content)
    try:
        assert checkpoint.damage(newest) is not None
        found = checkpoint.newest(saved)
        assert found.contents is not None
        assert found.contents.state == {"step": 1}
        assert set(found.skipped) == {newest.name}
    finally:
        file.write_bytes(whole)
    assert checkpoint.damage(newest) is None


@pytest.mark.parametrize("name", ["manifest.json", "model.safetensors", "state.json"])
def test_missing_and_added_files_are_noticed(tmp_path: Path, name: str) -> None:
    path = checkpoint.save(tmp_path, contents(1), CONFIG)
    assert checkpoint.damage(path) is None
    (path / "extra").touch()
    assert "files" in str(checkpoint.damage(path))
    (path / "extra").unlink()
    (path / name).unlink()
    assert checkpoint.damage(path) is not None
    assert checkpoint.damage(tmp_path / "nothing") == "a file is missing"


def test_a_damaged_newer_one_is_replaced(tmp_path: Path) -> None:
    for step in (5, 10):
        checkpoint.save(tmp_path, contents(step), CONFIG)
    (tmp_path / "step-00000010" / "manifest.json").write_text("{}", encoding="utf-8")
    checkpoint.save(tmp_path, contents(7), CONFIG)
    assert [checkpoint.step_of(path) for path in checkpoint.checkpoints(tmp_path)] == [5, 7]
    (tmp_path / "step-00000007" / "manifest.json").unlink()
    again = checkpoint.save(tmp_path, contents(7), CONFIG)
    assert checkpoint.damage(again) is None
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_checkpoint_is_a_model_folder(tmp_path: Path) -> None:
    train(small_config(steps=4), Numbers(), tmp_path / "run")
    opened = open_checkpoint(tmp_path / "run" / "checkpoints" / "step-00000004")
    assert opened.config == CONFIG


def test_a_run_falls_back_and_says_so(tmp_path: Path) -> None:
    whole = train(small_config(), Numbers(), tmp_path / "run")
    last = tmp_path / "run" / "checkpoints" / "step-00000014"
    (last / "training.safetensors").write_bytes(b"")
    again = resume(tmp_path / "run", Numbers())
    assert again.resumed_from == 12
    assert list(again.skipped) == [last.name]
    assert again.weights_sha256 == whole.weights_sha256
    assert checkpoint.damage(last) is None


def test_every_source_of_random_numbers_comes_back() -> None:
    streams = [Stream(1, lane) for lane in range(2)]
    randomness.seed_all(3)
    random.gauss(0, 1)
    np.random.standard_normal()  # noqa: NPY002 - leaves half a pair behind
    streams[1].words(5)

    def draws() -> list[Any]:
        return [
            torch.rand(3).tolist(),
            np.random.standard_normal(3).tolist(),  # noqa: NPY002
            random.gauss(0, 1),
            *(stream.words(7).tolist() for stream in streams),
        ]

    saved = randomness.states(streams)
    assert all(state.dtype == torch.uint8 for state in saved.values())
    first = draws()
    randomness.restore(saved, streams)
    assert draws() == first
    with randomness.untouched(streams):
        draws()
    randomness.restore(saved, streams)
    with randomness.untouched(streams):
        torch.rand(100)
        streams[0].words(9)
    assert draws() == first
    with pytest.raises(InputError, match=r"lane\.2"):
        randomness.restore(saved, [*streams, Stream(0)])


def test_streams_of_different_seeds_differ() -> None:
    words = [tuple(Stream(*seeds).words(8).tolist()) for seeds in ((0, 0), (0, 1), (1, 0))]
    assert len(set(words)) == 3


def test_one_run_at_a_time(tmp_path: Path) -> None:
    assert holder_of(tmp_path) is None
    with RunLock(tmp_path):
        assert holder_of(tmp_path) == os.getpid()
        with pytest.raises(InputError, match=str(os.getpid())), RunLock(tmp_path):
            pass
        code = (
            "import sys, pathlib\n"
            "from heedful.training.folder import RunLock, holder_of\n"
            "print(holder_of(pathlib.Path(sys.argv[1])))\n"
            "with RunLock(pathlib.Path(sys.argv[1])): pass\n"
        )
        output, errors = forked.start(["-c", code, str(tmp_path)], tmp_path).communicate()
        assert output.strip() == str(os.getpid())
        assert f"in use by process {os.getpid()}" in errors
    assert holder_of(tmp_path) is None
    with RunLock(tmp_path):
        pass


def test_a_run_in_use_is_refused(tmp_path: Path) -> None:
    class Nosy(Numbers):
        def batch(self, index: int) -> Any:
            if index == 3:
                with pytest.raises(InputError, match="in use"):
                    resume(tmp_path / "run", Numbers())
            return super().batch(index)

    assert train(small_config(), Nosy(), tmp_path / "run").finished


def test_a_loss_that_is_not_finite_stops_before_the_step(tmp_path: Path) -> None:
    config = small_config(clip=None)

    def evaluate(decoder: Any, step: int) -> dict[str, float]:
        if step == 5:  # what a cosmic ray or a bad kernel might do
            decoder.blocks[0].feed_forward.up.weight[0, 0] = float("nan")
        return {}

    with pytest.raises(RunError, match="step 6: the loss is not finite"):
        train(config, Numbers(), tmp_path / "run", hooks=Hooks(evaluate=evaluate))
    found = checkpoint.newest(tmp_path / "run" / "checkpoints")
    assert found.contents is not None
    assert found.contents.state["step"] == 4
    assert all(bool(value.isfinite().all()) for value in found.contents.model.values())
