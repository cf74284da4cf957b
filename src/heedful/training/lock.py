"""One run at a time in a folder.

The lock is the operating system's: it ends with its process, however that ends, so a killed run
never has to be unlocked by hand. The file only says who holds it.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType

from heedful.errors import InputError

NAME = "run.lock"
_held: set[Path] = set()
"""Locks of this process: the system would let one process take a lock twice."""


class RunLock:
    """Holds a run's folder for the life of a `with` block."""

    def __init__(self, folder: Path) -> None:
        self.path = folder.resolve() / NAME
        self._handle = -1

    def __enter__(self) -> RunLock:
        if self.path in _held:
            raise self._taken(str(os.getpid()))
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        if not _locked(handle, attempts=4):
            holder = os.read(handle, 32).decode("ascii", "replace").strip()
            os.close(handle)
            raise self._taken(holder or "of another machine")
        try:
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
        except OSError:
            os.close(handle)
            raise
        self._handle = handle
        _held.add(self.path)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _held.discard(self.path)
        os.close(self._handle)

    def _taken(self, holder: str) -> InputError:
        return InputError(
            str(self.path.parent),
            f"is in use by process {holder}",
            expected="one run at a time in a folder",
            way_out="wait for it, stop it, or choose another folder with --run",
        )


def holder_of(folder: Path) -> int | None:
    """Return the process that trains in a folder now, or None."""
    path = folder / NAME
    if path.resolve() in _held:
        return os.getpid()
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        if _locked(handle, attempts=1):
            return None
        text = os.read(handle, 32).decode("ascii", "replace").strip()
        return int(text) if text.isdigit() else 0
    finally:
        os.close(handle)


def _locked(handle: int, attempts: int) -> bool:
    """Try to lock; more than once, because `holder_of` takes the lock for an instant."""
    for attempt in range(attempts):
        try:
            # Of the two kinds of lock, the one that a forked child does not inherit.
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if attempt + 1 < attempts:
                time.sleep(0.05)
        else:
            return True
    return False
