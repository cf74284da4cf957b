"""Where and beside what a benchmark ran: stored with every figure.

The limits of the machine (products, memory) tell what could be reached at all, the load whether
other programs ran: figures taken under a load above 0.5 are marked in the documentation.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from heedful.machine import BUSY, examine, load, measured_speed

WATCHED = 1.0
"""Seconds in which we do nothing and watch what others do."""


def others() -> float:
    """Return how many cores other programs want now.

    The load of the last minute would count a benchmark that has just ended. So the use of the
    cores is watched for a second; only if somebody uses them does the last minute count.
    """
    now = load() or 0.0
    try:
        used = _times()
        time.sleep(WATCHED)
        spent = [after - before for before, after in zip(used, _times(), strict=True)]
    except (OSError, ValueError):
        return now
    busy = (os.cpu_count() or 1) * (1 - (spent[3] + spent[4]) / max(1, sum(spent)))
    return round(max(busy, now) if busy > BUSY else busy, 2)


def _times() -> list[int]:
    """Return what Linux has counted so far: user, nice, system, idle, waiting for disks, ..."""
    return [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]


LOAD = others()
"""As the benchmark begins: later its own work would count."""


def surroundings(*packages: str) -> dict[str, Any]:
    """Return the machine, its load and its limits, with the versions of some packages."""
    found = examine()
    return {
        "cpu": found.cpu,
        "cores": found.cores,
        "cpu features": list(found.cpu_features),
        "threads": os.environ.get("OMP_NUM_THREADS", "default"),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "load": LOAD,
        "busy": LOAD > BUSY,
        "limits": measured_speed().to_dict() if found.has("models") else None,
        "python": found.python,
        **{package: _version(package) for package in ("numpy", *packages)},
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
