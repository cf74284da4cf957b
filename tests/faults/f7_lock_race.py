"""F7: eight processes race for one run's folder.

    python tests/faults/f7_lock_race.py --count 50

Each time exactly one may win, the others must be told by whom; after `kill -9` of the winner
the folder must be free at once.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from killable import command, wait

from heedful.errors import InputError
from heedful.training.folder import RunLock, holder_of

RACERS = 8


def racer(folder: Path, starting_gun: Path) -> int:
    """Fork a process that waits for the gun, runs for the lock, and keeps it until killed."""
    process = os.fork()
    if process:
        return process
    try:
        while not starting_gun.exists():
            time.sleep(0.001)
        with RunLock(folder):
            time.sleep(60)
    except InputError as error:
        os._exit(2 if "in use by process" in str(error) else 9)
    finally:
        os._exit(0)


def race(count: int, _seed: int) -> dict[str, Any]:
    """Race, count winners, kill the winner, and take the lock."""
    passed = 0
    with tempfile.TemporaryDirectory(prefix="heedful-faults-") as place:
        for number in range(count):
            folder, gun = Path(place) / f"run-{number}", Path(place) / f"gun-{number}"
            folder.mkdir()
            racers = [racer(folder, gun) for _ in range(RACERS)]
            gun.touch()
            codes = {}
            deadline = time.monotonic() + 20
            while len(codes) < RACERS - 1 and time.monotonic() < deadline:
                process, status = os.waitpid(-1, os.WNOHANG)
                if process:
                    codes[process] = os.waitstatus_to_exitcode(status)
                else:
                    time.sleep(0.005)
            left = [process for process in racers if process not in codes]
            good = set(codes.values()) == {2} and left == [holder_of(folder)]
            for process in left:
                os.kill(process, signal.SIGKILL)
                wait(process)
            good = good and holder_of(folder) is None
            with RunLock(folder):
                passed += good
    return {"tried": count, "passed": passed}


if __name__ == "__main__":
    command("F7: a race for the lock", 50, race)
