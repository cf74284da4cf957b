"""F1: SIGKILL at every call that changes a file, before it and half-way through it.

    python tests/faults/f1_kills.py             every point
    python tests/faults/f1_kills.py --count 40  a random choice of them

Every point must resume to the weights of the undisturbed run, bit for bit. `f1_strace.py` does
the same at every write-class system call, whoever makes it.
"""

from __future__ import annotations

import random
import shutil
import signal
from typing import Any

from killable import (
    Intruder,
    command,
    count_calls,
    finished_as,
    kill_before,
    kill_half_way,
    run,
    workshop,
)

WAYS = {"before": kill_before, "half-way": kill_half_way}


def kill_everywhere(count: int, seed: int) -> dict[str, Any]:
    """Kill at each point, resume, and compare."""
    with workshop() as (folder, expected):
        calls = count_calls(folder / "counted")
        points = [(way, at) for way in WAYS for at in range(1, calls + 1)]
        if count:
            points = random.Random(seed).sample(points, min(count, len(points)))
        failures = []
        for way, at in points:
            place = folder / "killed"
            killed = run(place, Intruder(at=at, do=WAYS[way]))
            if killed != -signal.SIGKILL or not finished_as(place, expected):
                failures.append(f"{way} call {at}")
            shutil.rmtree(place, ignore_errors=True)
    passed = len(points) - len(failures)
    return {"tried": len(points), "passed": passed, "calls": calls, "failures": failures[:5]}


if __name__ == "__main__":
    command("F1: killed at every call that changes a file", 0, kill_everywhere)
