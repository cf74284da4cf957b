"""F6: SIGINT, SIGTERM, and two signals in a row, at random moments.

    python tests/faults/f6_signals.py --count 100

A run that hears a signal ends with 130 or 143 after its step; a second one ends it at once with
the same code. Each must resume to the weights of the undisturbed run.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from killable import command, finished_as, outcome, start, wait, workshop

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
LINES = 4
"""Of the five lines of metrics (steps 1, 2, 4, 6, 8), those that leave time for a signal."""


def like_the_command_line() -> None:
    """Before training listens, the command line does."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def reach(folder: Path, lines: int, process: int) -> None:
    """Wait until a run has written so many lines of metrics, or has ended."""
    metrics = folder / "metrics.jsonl"
    while os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        with contextlib.suppress(FileNotFoundError):
            if metrics.read_bytes().count(b"\n") >= lines:
                return
        time.sleep(0.0005)


def send_signals(count: int, seed: int) -> dict[str, Any]:
    """Send one or two signals, look at the exit code, resume, and compare."""
    draw = random.Random(seed)
    passed = early = 0
    with workshop() as (folder, expected):
        place = folder / "signalled"
        for number in range(count):
            sent = (signal.SIGINT, signal.SIGTERM)[number % 2]
            process = start(place, like_the_command_line)
            time.sleep(0.02)  # until the child has its handlers
            # By its progress and not by the clock: a busy machine would let it end before.
            reach(place, draw.randrange(LINES), process)
            time.sleep(draw.uniform(0.0, 0.02))
            os.kill(process, sent)
            if number % 4 >= 2:
                time.sleep(draw.uniform(0.0, 0.02))
                os.kill(process, sent)
            code = wait(process)
            ended_before = code == 0 and outcome(place) == expected
            early += ended_before
            passed += (code == CODES[sent] or ended_before) and finished_as(place, expected)
            shutil.rmtree(place, ignore_errors=True)
            (folder / "signalled.hash").unlink(missing_ok=True)
    return {"tried": count, "passed": passed, "ended before the signal": early}


if __name__ == "__main__":
    command("F6: signals", 100, send_signals)
