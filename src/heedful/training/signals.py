"""Stopping on request: the first signal asks, the second one insists.

After SIGINT or SIGTERM the step is finished and saved. A second signal ends the process at once;
the last checkpoint is then the one before, whole as ever.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

HEARD = (signal.SIGINT, signal.SIGTERM)


class StopRequests:
    """Listens for signals while a `with` block runs, if this is the main thread."""

    def __init__(self) -> None:
        self.number = 0
        """The signal that was heard; 0 for none."""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopRequests:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._hear) for number in HEARD}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if self.number:
            os._exit(128 + number)
        self.number = number
