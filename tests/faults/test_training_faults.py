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

QUICK = {
    "f1_kills": 40,
    "f2_random_kills": 4,
    "f3_mutants": 4,
    "f4_disk_errors": 16,
    "f5_damage": 40,
    "f6_signals": 8,
    "f7_lock_race": 4,
    "f8_ranks": 1,
    "f13_not_finite": 6,
}


@pytest.mark.parametrize("name", QUICK)
def test_nothing_is_lost(name: str) -> None:
    # A SIGKILL loses nothing that was written, pushed to a disk or not: memory serves as disk.
    place = {"TMPDIR": str(MEMORY)} if MEMORY.is_dir() else {}
    finished = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py"), "--count", str(QUICK[name])],
        env=os.environ | {"OMP_NUM_THREADS": "1"} | place,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    found = json.loads(finished.stdout.splitlines()[-1])
    assert found["passed"] == found["tried"] == QUICK[name]
