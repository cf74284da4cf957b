"""F8: one of two processes that torchrun started is killed.

    python tests/faults/f8_ranks.py --count 20

The job must end within a minute and leave no process behind; resumed, it must end with the
weights of the undisturbed job, bit for bit.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from killable import command

TARGET = Path(__file__).resolve().parents[1] / "training" / "ranks_training.py"
LONGEST = 60.0


def torchrun(folder: Path, strategy: str = "ddp") -> subprocess.Popen[str]:
    """Start two ranks."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
            *("--standalone", str(TARGET), str(folder), strategy),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def ranks_in(folder: Path) -> list[int]:
    """Return the processes that train in a folder, without torchrun itself."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            started = str(folder).encode() in words and str(TARGET).encode() in words
            if started and b"torch.distributed.run" not in words:
                found.append(int(entry.name))
    return sorted(found)


def hash_of(job: subprocess.Popen[str]) -> str:
    """Wait for a job; return the hash that it printed."""
    out, _ = job.communicate(timeout=300)
    lines = [line for line in out.splitlines() if line.startswith("{")]
    return str(json.loads(lines[-1])["hash"]) if lines and job.returncode == 0 else ""


def wait_for(path: Path, job: subprocess.Popen[str]) -> None:
    """Wait until a job has made a file, or has ended."""
    while not path.exists() and job.poll() is None:
        time.sleep(0.002)


def kill_ranks(count: int, seed: int) -> dict[str, Any]:
    """Kill one rank after the first checkpoint, wait, look for orphans, resume, compare."""
    draw = random.Random(seed)
    passed, slowest, failures = 0, 0.0, []
    with tempfile.TemporaryDirectory(prefix="heedful-faults-") as place:
        expected = hash_of(torchrun(Path(place) / "undisturbed"))
        assert expected
        for number in range(count):
            folder = Path(place) / f"killed-{number}"
            job = torchrun(folder)
            wait_for(folder / "checkpoints" / "step-00000003", job)
            time.sleep(draw.uniform(0.0, 0.05))
            os.kill(draw.choice(ranks_in(folder)), signal.SIGKILL)
            begun = time.monotonic()
            job.communicate(timeout=4 * LONGEST)
            taken = time.monotonic() - begun
            slowest = max(slowest, taken)
            time.sleep(0.1)
            orphans = ranks_in(folder)
            again = hash_of(torchrun(folder))
            if taken > LONGEST or orphans or again != expected:
                failures.append(f"{taken:.0f} s, orphans {len(orphans)}, {again == expected}")
            else:
                passed += 1
    found = {"tried": count, "passed": passed, "slowest end in seconds": round(slowest, 1)}
    return {**found, "failures": failures[:5]}


if __name__ == "__main__":
    command("F8: one rank of two is killed", 20, kill_ranks)
