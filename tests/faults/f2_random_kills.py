"""F2: runs killed three times each at random moments.

    python tests/faults/f2_random_kills.py --count 200

Each must end with the weights of the undisturbed run, bit for bit.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from typing import Any

from killable import command, finished_as, run, start, wait, workshop

KILLS = 3


def kill_at_random(count: int, seed: int) -> dict[str, Any]:
    """Kill three times at random moments, resume each time, and compare."""
    draw = random.Random(seed)
    passed = hit = 0
    with workshop() as (folder, expected):
        begun = time.monotonic()
        assert run(folder / "timed") == 0
        longest = time.monotonic() - begun
        for _ in range(count):
            place = folder / "killed"
            for _ in range(KILLS):
                process = start(place)
                time.sleep(draw.uniform(0.0, longest))
                os.kill(process, signal.SIGKILL)
                hit += wait(process) == -signal.SIGKILL
            passed += finished_as(place, expected)
            shutil.rmtree(place, ignore_errors=True)
    return {"tried": count, "passed": passed, "killed while running": hit}


if __name__ == "__main__":
    command("F2: killed three times at random moments", 200, kill_at_random)
