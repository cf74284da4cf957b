"""F4: a disk that is full, broken or closed to us, at every write, push and rename.

    python tests/faults/f4_disk_errors.py             every point and every error
    python tests/faults/f4_disk_errors.py --count 30  a random choice of them

The run must end with a clear error and exit code 3, or, where only the removal of an old
checkpoint failed, end well; and must resume to the weights of the undisturbed run.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable
from typing import Any

from killable import Intruder, command, count_calls, finished_as, outcome, run, workshop

CALLS = ("write", "fsync", "rename")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)


def failing(number: int) -> Callable[..., Any]:
    """Return a call that fails with this error; a full disk takes half of a write first."""

    def fail(
        name: str, original: Callable[..., Any], arguments: tuple[Any, ...], _settings: Any
    ) -> None:
        if name == "write" and number == errno.ENOSPC:
            handle, content = arguments
            original(handle, bytes(content)[: len(content) // 2])
        raise OSError(number, os.strerror(number))

    return fail


def fail_everywhere(count: int, seed: int) -> dict[str, Any]:
    """Let each call fail once, look at the exit code, resume, and compare."""
    with workshop() as (folder, expected):
        calls = count_calls(folder / "counted", CALLS)
        points = [(number, at) for number in ERRORS for at in range(1, calls + 1)]
        if count:
            points = random.Random(seed).sample(points, min(count, len(points)))
        failures, stopped = [], 0
        for number, at in points:
            place = folder / "failing"
            code = run(place, Intruder(at=at, do=failing(number), only=CALLS))
            clear = code == 3 and (folder / "failing.error").read_text().count("\n") == 0
            unharmed = code == 0 and outcome(place) == expected
            stopped += code == 3
            if not (clear or unharmed) or not finished_as(place, expected):
                failures.append(f"{errno.errorcode[number]} at call {at}: exit {code}")
            shutil.rmtree(place, ignore_errors=True)
            for left in ("failing.error", "failing.hash"):
                (folder / left).unlink(missing_ok=True)
    passed = len(points) - len(failures)
    return {
        "tried": len(points),
        "passed": passed,
        "stopped with exit 3": stopped,
        "failures": failures[:5],
    }


if __name__ == "__main__":
    command("F4: errors of the disk", 0, fail_everywhere)
