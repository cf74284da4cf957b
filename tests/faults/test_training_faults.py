"""The fault experiments on training, each with a few repetitions; the full ones are commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
MEMORY = Path("/dev/shm")

QUICK = {"f1_kills": 40, "f3_mutants": 4}
"""How often each is tried in the suite."""
LONG = {
    "f2_random_kills": 4,  # f1_kills: at every kind of call, where this draws a moment
    "f4_disk_errors": 16,  # test_atomic_files: a failing disk leaves the old file
    "f5_damage": 40,  # training/test_checkpoint: any flipped bit, missing files, falling back
    "f6_signals": 8,  # training/test_loop and test_train_verbs: SIGTERM and SIGINT
    "f7_lock_race": 4,  # training/test_checkpoint: one run at a time, also in two processes
    "f8_ranks": 1,  # training/test_ranks: a rank is killed, and all start again
    "f13_not_finite": 6,  # training/test_checkpoint: a loss that is not finite
}
"""The same for `make long`; the comment names the smaller test that the suite has instead."""
TIMES = QUICK | LONG


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.long) for name in LONG)]
)
def test_nothing_is_lost(name: str) -> None:
    # A SIGKILL loses nothing that was written, pushed to a disk or not: memory serves as disk.
    place = {"TMPDIR": str(MEMORY)} if MEMORY.is_dir() else {}
    finished = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py"), "--count", str(TIMES[name])],
        env=os.environ | {"OMP_NUM_THREADS": "1"} | place,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    found = json.loads(finished.stdout.splitlines()[-1])
    assert found["passed"] == found["tried"] == TIMES[name]
