"""Where each value of a TOML text stands, so that an error can name its line and column.

`tomllib` gives the values and forgets where they were. `places` walks the same text once
more and remembers, for every value, the line and column of its key and of its first
character:

    ("claim", 0, "where", "n")   →   Place(line=9, column=11, …)

The text must be TOML that `tomllib` has accepted: the walk checks nothing.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BETWEEN = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SCALAR = re.compile(r"[^,\]}\n#]*")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
_HEX_ESCAPE = {"u": 4, "U": 8}
_FOLDED = re.compile(r"\\[ \t]*\n[ \t\n]*")


@dataclass(frozen=True)
class Place:
    """Where one value stands in its text; lines and columns count from 1."""

    line: int
    """Line of its key (of the value itself inside a list)."""
    column: int
    """Column of its key."""
    start: int
    """Offset of the value's first character."""


class Places:
    """The places of all values of one text."""

    def __init__(self, text: str, first_line: int = 1) -> None:
        self._text = text
        self._first_line = first_line
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._found: dict[Path, Place] = {}

    def add(self, path: Path, key_offset: int, value_offset: int) -> None:
        """Remember a value; the first one keeps its place."""
        line, column = self.position(key_offset)
        self._found.setdefault(path, Place(line, column, value_offset))

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset of the text."""
        row = bisect.bisect_right(self._line_starts, offset) - 1
        return row + self._first_line, offset - self._line_starts[row] + 1

    def of(self, path: Path) -> tuple[int, int]:
        """Return line and column of a value's key, or of the nearest thing around it."""
        while path and path not in self._found:
            path = path[:-1]
        place = self._found.get(path)
        return (self._first_line, 1) if place is None else (place.line, place.column)

    def knows(self, path: Path) -> bool:
        """Tell whether a value stands in this text."""
        return path in self._found

    def inside(self, path: Path, column: int) -> tuple[int, int]:
        """Return where the given character (from 1) of a string value stands in the text."""
        place = self._found.get(path)
        if place is None and path and path[-1] == 0:  # one formula may stand without its list
            place = self._found.get(path[:-1])
        if place is None or self._text[place.start] not in "\"'":
            return self.of(path)
        return self.position(_offset_in_string(self._text, place.start, column - 1))


def places(text: str, first_line: int = 1) -> Places:
    r"""Return the place of every value of a TOML text.

    >>> found = places('[[claim]]\nid = "b"\nwhere = { n = [2,\n  30] }')
    >>> found.of(("claim", 0, "where", "n")), found.of(("claim", 0, "where", "n", 1))
    ((3, 11), (4, 3))
    """
    walk = _Walk(text, Places(text, first_line))
    walk.document()
    return walk.places


class _Walk:
    def __init__(self, text: str, found: Places) -> None:
        self.text = text
        self.at = 0
        self.places = found
        self.lengths: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        self._skip()
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip()

    def _header(self) -> Path:
        start = self.at
        doubled = self.text.startswith("[[", start)
        self.at += 2 if doubled else 1
        keys = self._key()
        self.at += 2 if doubled else 1
        path: Path = ()
        for position, key in enumerate(keys):
            path = (*path, key)
            if doubled and position == len(keys) - 1:
                self.lengths[path] = self.lengths.get(path, 0) + 1
            if path in self.lengths:
                path = (*path, self.lengths[path] - 1)
        self.places.add(path, start, start)
        return path

    def _pair(self, table: Path) -> None:
        start = self.at
        path = (*table, *self._key())
        self.at += 1  # the sign =
        self._skip()
        self._value(path, start)

    def _key(self) -> Path:
        parts: list[str] = []
        while True:
            self._skip()
            if self.text[self.at] in "\"'":
                begin = self.at
                self._string()
                parts.append(_decoded(self.text, begin, self.at))
            else:
                match = _BARE_KEY.match(self.text, self.at)
                if match is None:
                    raise ValueError(f"no key at offset {self.at}")
                parts.append(match.group())
                self.at = match.end()
            self._skip()
            if self.text[self.at] != ".":
                return tuple(parts)
            self.at += 1

    def _value(self, path: Path, key_offset: int) -> None:
        self.places.add(path, key_offset, self.at)
        match self.text[self.at]:
            case '"' | "'":
                self._string()
            case "[":
                self._list(path)
            case "{":
                self._inline_table(path)
            case _:
                scalar = _SCALAR.match(self.text, self.at)
                assert scalar is not None
                self.at = scalar.end()

    def _list(self, path: Path) -> None:
        self.at += 1
        item = 0
        self._skip()
        while self.text[self.at] != "]":
            if self.text[self.at] == ",":
                self.at += 1
            else:
                self._value((*path, item), self.at)
                item += 1
            self._skip()
        self.at += 1

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        self._skip()
        while self.text[self.at] != "}":
            if self.text[self.at] == ",":
                self.at += 1
            else:
                self._pair(path)
            self._skip()
        self.at += 1

    def _string(self) -> None:
        self.at = _string_end(self.text, self.at)

    def _skip(self) -> None:
        match = _BETWEEN.match(self.text, self.at)
        assert match is not None
        self.at = match.end()


def _quotes(text: str, start: int) -> str:
    return text[start] * (3 if text.startswith(text[start] * 3, start) else 1)


def _string_end(text: str, start: int) -> int:
    """Return the offset after a string's closing quotes."""
    quotes = _quotes(text, start)
    at = start + len(quotes)
    while not text.startswith(quotes, at):
        at += 2 if text[at] == "\\" and quotes[0] == '"' else 1
    at += len(quotes)
    # Up to two further quotes before the closing three belong to the string.
    while len(quotes) == 3 and text.startswith(quotes[0], at):
        at += 1
    return at


def _characters(text: str, start: int, end: int) -> list[tuple[int, str]]:
    """Return each character of a string with the offset at which it is written."""
    quotes = _quotes(text, start)
    at, end = start + len(quotes), end - len(quotes)
    if len(quotes) == 3 and text.startswith("\n", at):
        at += 1
    found: list[tuple[int, str]] = []
    while at < end:
        if quotes[0] == "'" or text[at] != "\\":
            found.append((at, text[at]))
            at += 1
        elif (folded := _FOLDED.match(text, at)) is not None:
            at = folded.end()
        elif (digits := _HEX_ESCAPE.get(text[at + 1])) is not None:
            found.append((at, chr(int(text[at + 2 : at + 2 + digits], 16))))
            at += 2 + digits
        else:
            found.append((at, _ESCAPES[text[at + 1]]))
            at += 2
    return found


def _decoded(text: str, start: int, end: int) -> str:
    return "".join(character for _, character in _characters(text, start, end))


def _offset_in_string(text: str, start: int, index: int) -> int:
    end = _string_end(text, start)
    found = _characters(text, start, end)
    if index < len(found):
        return found[max(index, 0)][0]
    return end - len(_quotes(text, start))
