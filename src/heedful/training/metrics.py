"""Metrics: one JSON object a line, and event files for TensorBoard.

A run that goes on from a checkpoint first drops the lines of later steps, so that each step is
there once. Lines are not pushed to the disk one by one: after a power cut the last ones may be
missing, and the steps are taken again anyway.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.files import write_all, write_atomic
from heedful.records import plain
from heedful.training.events import EventFile

NAME = "metrics.jsonl"
EVENTS = "events"


class Metrics:
    """Where the numbers of a run go."""

    def __init__(self, folder: Path, step: int, *, tensorboard: bool) -> None:
        """Go on after `step`: lines of later steps are dropped."""
        self.path = folder / NAME
        kept = [line for line in read_metrics(folder) if line.get("step", 0) <= step]
        content = "".join(_line(line) for line in kept)
        if not self.path.exists() or self.path.read_text("utf-8") != content:
            write_atomic(self.path, content)
        self._handle = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        self._events = EventFile(folder / EVENTS, step) if tensorboard else None

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Write what is known about one step."""
        write_all(self._handle, _line({"step": step, **values}).encode("utf-8"))
        if self._events is not None:
            self._events.add(step, _flat(values))

    def close(self) -> None:
        """Finish the files."""
        os.close(self._handle)
        if self._events is not None:
            self._events.close()


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of a run that are whole; a kill may have cut the last one."""
    path = folder / NAME
    if not path.is_file():
        return []
    found = []
    for line in path.read_bytes().decode("utf-8", "replace").split("\n"):
        try:
            content = json.loads(line)
        except ValueError:
            continue
        if isinstance(content, dict) and isinstance(content.get("step"), int):
            found.append(content)
    return found


def _line(content: Mapping[str, Any]) -> str:
    return json.dumps(plain(dict(content)), ensure_ascii=False, allow_nan=False) + "\n"


def _flat(values: Mapping[str, Any], before: str = "") -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{before}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append((before + name, float(value)))
    return found
