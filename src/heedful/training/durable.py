"""Files that are there completely or not at all, also after the power went.

Bytes are written by plain writes from the thread that calls (never through mapped memory, where
a full disk kills the process), pushed to the disk, and made visible by one rename.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

CHUNK = 16 * 2**20


def write_bytes(path: Path, content: bytes | memoryview) -> None:
    """Write a new file and push it to the disk."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        write_all(handle, content)
        os.fsync(handle)
    finally:
        os.close(handle)


def write_all(handle: int, content: bytes | memoryview) -> None:
    """Write every byte: the system may take fewer than it is given, as on a disk that fills up."""
    rest = memoryview(content)
    while len(rest):
        rest = rest[os.write(handle, rest[:CHUNK]) :]


def push_folder(folder: Path) -> None:
    """Push the names in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace_bytes(path: Path, content: bytes) -> None:
    """Put a file in the place of another, or of none: readers see the old one or the new."""
    unfinished = path.with_name(f".{path.name}.writing")
    unfinished.unlink(missing_ok=True)
    try:
        write_bytes(unfinished, content)
        unfinished.rename(path)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise
    push_folder(path.parent)


def json_bytes(content: Any) -> bytes:
    """Return a value as readable JSON."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode("utf-8")
