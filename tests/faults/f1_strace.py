"""F1, the hard way: SIGKILL at every write-class system call of a training, by strace.

    python tests/faults/f1_strace.py             every point (needs strace; minutes)
    python tests/faults/f1_strace.py --count 40  a random choice of them

Each point is told on stderr as it is done.

Whatever makes the call, Python or a library below it, the process dies in it. strace counts
calls per thread and per kind: checkpoints are written from the main thread, which is the one
that is watched. It is attached to a child that has loaded everything: loading torch again for
every point, each of its system calls slowed down, would take most of the time.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from killable import command, finished_as, start, wait, workshop

KINDS = (
    "write", "pwrite64", "writev", "fsync", "fdatasync", "rename", "renameat", "renameat2",
    "mkdir", "mkdirat", "unlink", "unlinkat", "rmdir", "ftruncate", "truncate", "link",
)  # fmt: skip


def stop_first() -> None:
    """Wait, in the child, until strace watches it."""
    os.kill(os.getpid(), signal.SIGSTOP)


def traced(folder: Path, *flags: str) -> int:
    """Train in a child that strace watches from its first call on; return its exit code."""
    process = start(folder, stop_first)
    os.waitpid(process, os.WUNTRACED)
    watcher = subprocess.Popen(
        ["strace", "--quiet=all", "--signal=none", *flags, f"--attach={process}"],
        stderr=subprocess.DEVNULL,
    )
    while f"TracerPid:\t{watcher.pid}\n" not in Path(f"/proc/{process}/status").read_text():
        assert watcher.poll() is None, "strace could not watch the training"
        time.sleep(0.002)
    os.kill(process, signal.SIGCONT)
    code = wait(process)
    watcher.wait()
    return code


def points(folder: Path) -> list[tuple[str, int]]:
    """Return every write-class call of an undisturbed run, as its kind and its number."""
    log = folder / "calls"
    code = traced(folder / "counted", f"--trace={','.join(KINDS)}", f"--output={log}")
    assert code == 0, code
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
            code = traced(place, f"--trace={kind}", fault, "--output=/dev/null")
            whole = code == -signal.SIGKILL and finished_as(place, expected)
            if not whole:
                failures.append(f"{kind} {number}")
            print(f"{kind} {number}: {'identical' if whole else 'LOST'}", file=sys.stderr)
            shutil.rmtree(place, ignore_errors=True)
    found = {"tried": len(chosen), "passed": len(chosen) - len(failures), "calls": len(every)}
    return {**found, "failures": failures[:5]}


if __name__ == "__main__":
    command("F1 by strace: killed at every write-class system call", 0, kill_everywhere)
