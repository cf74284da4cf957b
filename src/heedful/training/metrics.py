"""Metrics: one JSON object a line, and event files for TensorBoard.

A resumed run first drops the lines of later steps, so that each step is there once. Lines are not
flushed to the disk one by one: after a power failure the last ones may be missing, and the steps
are taken again anyway.

TensorBoard's own writer works in a thread: on a full disk that thread dies with a traceback, and
whoever trains hears of it late or never. Here the thread that trains writes, one record a step,
and a disk that fails is an `OSError` like any other.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.errors import MissingPartError
from heedful.files import write_all, write_atomic
from heedful.records import plain

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
            numbers = [
                (name, float(value))
                for name, value in flat(values, "/")
                if isinstance(value, int | float) and not isinstance(value, bool)
            ]
            self._events.add(step, numbers)

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
    lines = []
    for line in path.read_bytes().decode("utf-8", "replace").split("\n"):
        try:
            content = json.loads(line)
        except ValueError:
            continue
        if isinstance(content, dict) and isinstance(content.get("step"), int):
            lines.append(content)
    return lines


def _line(content: Mapping[str, Any]) -> str:
    return json.dumps(plain(dict(content)), ensure_ascii=False, allow_nan=False) + "\n"


def flat(
    values: Mapping[str, Any], joint: str = ".", before: str = ""
) -> Iterator[tuple[str, Any]]:
    """Yield the values of nested tables, each under the names that lead to it.

    >>> list(flat({"optimiser": {"kind": "muon"}, "steps": 5}))
    [('optimiser.kind', 'muon'), ('steps', 5)]
    """
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, joint, f"{before}{name}{joint}")
        else:
            yield before + name, value


VERSION = "brain.Event:2"
"""What every event file begins with."""


class EventFile:
    """A new file in a run's folder of events; it is made when the first numbers come."""

    def __init__(self, folder: Path, step: int) -> None:
        """Go on after `step`: whatever older files say of later steps is void."""
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.record_writer import RecordWriter
        except ModuleNotFoundError:
            raise MissingPartError.of("tensorboard", "tensorboard", "models") from None
        self._event, self._log = event_pb2.Event, event_pb2.SessionLog
        self._summary: Any = summary_pb2.Summary
        self._records = RecordWriter(self)
        self._folder, self._next = folder, step + 1
        self._handle = -1

    def add(self, step: int, values: Sequence[tuple[str, float]]) -> None:
        """Write the numbers of one step."""
        if self._handle < 0:
            self._begin()
        named = [self._summary.Value(tag=name, simple_value=value) for name, value in values]
        self._record(step, summary=self._summary(value=named))

    def write(self, record: bytes) -> None:
        """Take one whole record from TensorBoard, which frames it."""
        write_all(self._handle, record)

    def close(self) -> None:
        """Finish the file, if there is one."""
        if self._handle >= 0:
            os.close(self._handle)

    def _begin(self) -> None:
        self._folder.mkdir(exist_ok=True)
        # TensorBoard reads files in the order of their names.
        name = f"events.out.tfevents.{time.time_ns():020d}.{socket.gethostname()}.{os.getpid()}"
        self._handle = os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        self._record(self._next, file_version=VERSION)
        self._record(self._next, session_log=self._log(status=self._log.START))

    def _record(self, step: int, **content: Any) -> None:
        event = self._event(wall_time=time.time(), step=step, **content)
        self._records.write(event.SerializeToString())
