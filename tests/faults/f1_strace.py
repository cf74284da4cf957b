"""F1, the hard way: SIGKILL at every write-class system call of a training, by strace.

    python tests/faults/f1_strace.py             every point (needs strace; minutes)
    python tests/faults/f1_strace.py --count 40  a random choice of them

Whatever makes the call, Python or a library below it, the process dies in it. strace counts
calls per thread and per kind: checkpoints are written from the main thread, which is the one
that is watched.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from killable import command, finished_as, go_on, workshop

KINDS = (
    "write", "pwrite64", "writev", "fsync", "fdatasync", "rename", "renameat", "renameat2",
    "mkdir", "mkdirat", "unlink", "unlinkat", "rmdir", "ftruncate", "truncate", "link",
)  # fmt: skip


def traced(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Train in a process of its own under strace."""
    return subprocess.run(
        [
            *("strace", "--quiet=all", "--signal=none", *flags),
            *(sys.executable, "-B", str(Path(__file__)), "--train", str(folder)),
        ],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def points(folder: Path) -> list[tuple[str, int]]:
    """Return every write-class call of an undisturbed run, as its kind and its number."""
    log = folder / "calls"
    done = traced(folder / "counted", f"--trace={','.join(KINDS)}", f"--output={log}")
    assert done.returncode == 0, done.stderr
    calls = re.findall(r"^(\w+)\(", log.read_text("utf-8", "replace"), re.MULTILINE)
    return [
        (kind, number) for kind, count in Counter(calls).items() for number in range(1, count + 1)
    ]


def kill_everywhere(count: int, seed: int) -> dict[str, Any]:
    """Kill at each point, resume, and compare."""
    with workshop() as (folder, expected):
        every = points(folder)
        chosen = random.Random(seed).sample(every, min(count, len(every))) if count else every
        failures = []
        for kind, number in chosen:
            place = folder / "killed"
            fault = f"--inject={kind}:signal=SIGKILL:when={number}"
            done = traced(place, f"--trace={kind}", fault, "--output=/dev/null")
            if done.returncode == 0 or not finished_as(place, expected):
                failures.append(f"{kind} {number}")
            shutil.rmtree(place, ignore_errors=True)
    found = {"tried": len(chosen), "passed": len(chosen) - len(failures), "calls": len(every)}
    return {**found, "failures": failures[:5]}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--train"]:
        print(go_on(Path(sys.argv[2])))
    else:
        command("F1 by strace: killed at every write-class system call", 0, kill_everywhere)
