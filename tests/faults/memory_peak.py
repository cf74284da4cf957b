"""How much memory this process has used at most."""

from __future__ import annotations

from pathlib import Path


def peak_megabytes() -> float:
    """Return the peak of resident memory since this program was started.

    `getrusage` would also count what the parent held when it forked: VmHWM starts anew.
    """
    for line in Path("/proc/self/status").read_text(encoding="ascii").split("\n"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise OSError("the kernel does not say")
