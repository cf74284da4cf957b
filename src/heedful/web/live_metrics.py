"""A training watched from outside: the lines of its metrics file as they are written.

The file is only ever read, so that a training does not notice its audience. A run that is resumed
may replace the file by a shorter one; the reader then begins again and says so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MOST_BYTES = 4_000_000
"""Read at a time."""


@dataclass
class MetricsReader:
    """Reads what was added to a metrics file since the last time."""

    path: Path
    _offset: int = 0
    _file: tuple[int, int] = (0, 0)
    _rest: bytes = field(default=b"", repr=False)

    def read(self) -> tuple[list[dict[str, Any]], bool]:
        """Return the new whole lines, and whether the file began anew."""
        try:
            status = self.path.stat()
            anew = (status.st_dev, status.st_ino) != self._file or status.st_size < self._offset
            if anew:
                self._offset, self._rest = 0, b""
                self._file = (status.st_dev, status.st_ino)
            with self.path.open("rb") as file:
                file.seek(self._offset)
                content = file.read(MOST_BYTES)
        except FileNotFoundError:
            return [], False
        self._offset += len(content)
        *lines, self._rest = (self._rest + content).split(b"\n")
        return [line for line in map(_read_line, lines) if line is not None], anew


def _read_line(line: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(line)
    except ValueError:
        return None
    return content if isinstance(content, dict) and isinstance(content.get("step"), int) else None
