"""Where and beside what a benchmark ran: stored with every figure.

The limits of the machine (products, memory) tell what could be reached at all, the load whether
other programs ran: figures taken under a load above 0.5 are marked in the documentation.
Where speed depends on the kind of processor, results of several kinds stand side by side.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
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


def store(
    path: Path,
    result: dict[str, Any],
    compared: Callable[[dict[str, Any]], dict[str, float | None]],
) -> None:
    """Write a result; what a processor of another kind gave stays, and stands beside it.

    `compared` returns the ratios of a result by name. The newest result of each kind is kept.
    """
    before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    earlier = [] if before is None else [before, *before.pop("elsewhere", [])]
    others = [one for one in earlier if kind(one) != kind(result)]
    for one in others:
        one.pop("by processor", None)
    columns = {_column(one): compared(one) for one in (result, *others)}
    names = dict.fromkeys(name for column in columns.values() for name in column)
    rows = [
        {"what": name} | {of: column.get(name) for of, column in columns.items()} for name in names
    ]
    kept = {"by processor": rows} | result | {"elsewhere": others}
    path.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def kind(result: dict[str, Any]) -> str:
    """Return what kind of processor a result comes from, in words."""
    machine = result["machine"]
    features = set(machine["cpu features"])
    words = [
        next((w for f, w in WIDEST.items() if f in features), "no AVX"),
        *(word for feature, word in SHORT.items() if feature in features),
    ]
    return f"{', '.join(words)}, {machine['cores']} cores"


def _column(result: Result) -> str:
    """Return the kind of processor with the day: code may have changed since."""
    machine = result["machine"]
    return f"{kind(result)}, {machine['date'][:10]}" + (", under load" if machine["busy"] else "")


WIDEST = {"avx512f": "AVX-512", "avx2": "AVX2", "avx": "AVX"}
SHORT = {"avx512_vnni": "8-bit products", "avx512_bf16": "bfloat16", "amx_bf16": "AMX"}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
