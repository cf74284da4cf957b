"""Event files, as TensorBoard reads them.

TensorBoard's own writer works in a thread: on a full disk that thread dies with a traceback, and
whoever trains hears of it late or never. Here the thread that trains writes, one record a step,
and a disk that fails is an `OSError` like any other.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heedful.errors import MissingPartError
from heedful.files import write_all

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
