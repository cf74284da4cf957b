"""The text of a sheet, read with care: a regular file, small, strict UTF-8, nothing hidden."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from heedful.claims.sheet_errors import deceptive
from heedful.claims.sheet_places import Places
from heedful.errors import FormulaError

LARGEST_SHEET = 64 * 1024
BYTE_ORDER_MARK = "\ufeff"


def read_text(file: str, path: Path | None, content: bytes | None) -> str:
    """Return the text of a sheet, from its path or its bytes, or say what is wrong with it."""
    if content is None:
        assert path is not None
        content = _read_bytes(file, path)
    if len(content) > LARGEST_SHEET:
        raise FormulaError(
            file,
            "has more than 64 KB" if path else f"has {len(content):,} bytes",
            expected="at most 64 KB (65,536 bytes) was expected",
            way_out="split the sheet into several files",
        )
    return _decoded(file, content)


def _read_bytes(file: str, path: Path) -> bytes:
    # Opening a pipe would wait for its writer; without waiting, what it is can be asked first.
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name cannot be used"
        raise FormulaError(file, f"cannot be read ({reason})") from None
    with os.fdopen(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise FormulaError(file, "is not a file", expected="a claim sheet was expected")
        try:
            return opened.read(LARGEST_SHEET + 1)
        except OSError as error:
            raise FormulaError(file, f"cannot be read ({error.strerror})") from None


def _decoded(file: str, content: bytes) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FormulaError(
            file,
            f"byte {error.start} is 0x{content[error.start]:02X}, which is not UTF-8",
            expected="UTF-8 was expected",
            way_out="save the file as UTF-8",
            line=line,
            column=1,
        ) from None
    text = text.removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n")
    hidden = deceptive(text)
    if hidden is not None:
        line, column = Places(text).position(hidden)
        raise FormulaError(
            file,
            f"the invisible character U+{ord(text[hidden]):04X} stands here",
            expected="text that shows what it says was expected",
            way_out="remove it",
            line=line,
            column=column,
        )
    return text
