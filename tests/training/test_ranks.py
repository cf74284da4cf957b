"""Two processes train what one would, and read what one has written."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import forked
import pytest
import torch
from ranks_training import go_on

from heedful.errors import ConfigError
from heedful.training import trained_decoder
from heedful.training.distributed import SingleProcess, join
from heedful.training.folder import read_metrics

TARGET = Path(__file__).with_name("ranks_training.py")
FORKED = Path(__file__).with_name("forked_ranks.py")


def two_ranks(folder: Path, strategy: str, restarts: int = 0) -> forked.Child:
    """Start a training with the launcher of torchrun."""
    return forked.start([str(FORKED), str(folder), strategy, str(restarts)], folder.parent)


def torchrun(folder: Path, strategy: str) -> subprocess.Popen[str]:
    """Start a training, or go on with it, with the command itself."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
            *("--standalone", str(TARGET), str(folder), strategy, "without dropout"),
        ],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def told_by(job: subprocess.Popen[str] | forked.Child) -> dict[str, Any]:
    """Return what a job says at its end."""
    out, err = job.communicate()
    assert job.returncode == 0, err
    told: dict[str, Any] = json.loads(out.splitlines()[-1])
    return told


def losses(folder: Path) -> list[float]:
    """Return the loss of every step."""
    return [line["loss"] for line in read_metrics(folder) if "loss" in line]


def assert_same_weights(one: Path, two: Path) -> None:
    """Compare within floating-point error: sums were taken in another order."""
    for first, second in zip(
        trained_decoder(one).parameters(), trained_decoder(two).parameters(), strict=True
    ):
        torch.testing.assert_close(first, second, rtol=2e-3, atol=2e-5)


def without_the_end(run: Path, copy: Path) -> Path:
    """Return a copy of a run that lost its last checkpoint."""
    shutil.copytree(run, copy)
    shutil.rmtree(copy / "checkpoints" / "step-00000012")
    return copy


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of one process."""
    folder = tmp_path_factory.mktemp("ranks") / "alone"
    assert go_on(folder, "single", dropout=False).finished
    return folder


def test_weights_spread_over_two_ranks_learn_the_same(alone: Path, tmp_path: Path) -> None:
    told_by(two_ranks(tmp_path / "fsdp", "fsdp"))
    assert losses(tmp_path / "fsdp") == pytest.approx(losses(alone), rel=1e-5)
    assert_same_weights(alone, tmp_path / "fsdp")
    # Written by two, read by one.
    half = without_the_end(tmp_path / "fsdp", tmp_path / "half")
    result = go_on(half, "single")
    assert result.resumed_from == 9
    assert any(note.startswith("ranks: 2 then, 1 now") for note in result.notes)
    assert_same_weights(alone, half)


def test_two_ranks_go_on_with_the_run_of_one(alone: Path, tmp_path: Path) -> None:
    half = without_the_end(alone, tmp_path / "half")
    told = told_by(torchrun(half, "ddp"))
    assert any(note.startswith("ranks: 1 then, 2 now") for note in told["notes"])
    assert losses(half) == pytest.approx(losses(alone), rel=1e-5)
    assert_same_weights(alone, half)


def test_torchrun_starts_everybody_again_when_one_was_killed(alone: Path, tmp_path: Path) -> None:
    run = tmp_path / "restarted"
    job = two_ranks(run, "ddp", restarts=1)
    while not (run / "checkpoints" / "step-00000003").exists():
        assert job.poll() is None
        time.sleep(0.002)
    os.kill(int((run / "run.lock").read_text("ascii")), signal.SIGKILL)
    assert told_by(job)["resumed_from"] in (3, 6, 9)
    assert losses(run) == pytest.approx(losses(alone), rel=1e-5)
    assert_same_weights(alone, run)


def test_a_strategy_needs_its_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    assert isinstance(join("single"), SingleProcess)
    with pytest.raises(ConfigError, match="torchrun"):
        join("ddp")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="2 processes"):
        join("single")
