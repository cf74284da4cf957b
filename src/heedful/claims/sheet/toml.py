"""The text of a sheet as TOML: its values, and the line and column of each.

The text is read with care: a regular file, small, strict UTF-8, nothing hidden. `tomllib` gives
the values and forgets where they were, so `places` walks the same text once more and remembers,
for every value, the line and column of its key and of its first character:

    ("claim", 0, "where", "n")   →   TomlPlace(line=9, column=11, …)

Where the syntax is broken, `sheet_blocks` reads the text claim by claim.
"""

from __future__ import annotations

import bisect
import os
import re
import stat
import tomllib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from heedful.errors import FormulaError

Keys: TypeAlias = tuple[str | int, ...]

LARGEST_SHEET = 64 * 1024
BYTE_ORDER_MARK = "\ufeff"
MOST_BLOCKS = 2_000
"""With more claims than this, a sheet with broken syntax is refused as a whole."""
VISIBLE_CONTROLS = "\n\t\u200c\u200d"
"""Line breaks and tabs; and the two joiners, which Persian and Hindi are written with."""

_BARE_KEY = re.compile(r"[\w-]+")
# Outside of strings and comments TOML has no letters but those of ASCII: β there is a key.
_STRANGE_KEY = re.compile(
    r"""("{3}(?:[^\\]|\\.)*?"{3,5}|'{3}.*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\#[^\n]*)"""
    r"""|([\w-]*[^\W\x00-\x7f][\w-]*)""",
    re.DOTALL,
)
_BETWEEN = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SCALAR = re.compile(r"[^,\]}\n#]*")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
_HEX_ESCAPE = {"u": 4, "U": 8}
_FOLDED = re.compile(r"\\[ \t]*\n[ \t\n]*")
_CLAIM_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*(?:claim|\"claim\"|'claim')[ \t]*\]\]", re.MULTILINE)
_DEFAULTS = re.compile(r"^[ \t\[]*[\"']?defaults\b", re.MULTILINE)
# tomllib takes quadratic time over a dotted key of thousands of parts; no field needs more
# than two. The look-behind keeps this search itself linear.
_ENDLESS_KEY = re.compile(
    r"""(?<![A-Za-z0-9_-])(?:(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){32}"""
)
_AT = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_CLEARER = {
    "integer string conversion": "a number has more than 4,300 digits",
    "Illegal character '\\n'": "the line ends inside a string",
    "Cannot overwrite a value": "a field is written twice",
}
"""What `tomllib` says, and what is meant."""


_LATEX_HINT = r"write LaTeX in single quotes: expect = '\beta > 0'"


@dataclass(frozen=True)
class TomlPlace:
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
        self._found: dict[Keys, TomlPlace] = {}

    def add(self, path: Keys, key_offset: int, value_offset: int) -> None:
        """Remember a value; the first one keeps its place."""
        line, column = self.position(key_offset)
        self._found.setdefault(path, TomlPlace(line, column, value_offset))

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset of the text."""
        row = bisect.bisect_right(self._line_starts, offset) - 1
        return row + self._first_line, offset - self._line_starts[row] + 1

    def of(self, path: Keys) -> tuple[int, int]:
        """Return line and column of a value's key, or of the nearest thing around it."""
        while path and path not in self._found:
            path = path[:-1]
        place = self._found.get(path)
        return (self._first_line, 1) if place is None else (place.line, place.column)

    def knows(self, path: Keys) -> bool:
        """Tell whether a value stands in this text."""
        return path in self._found

    def inside(self, path: Keys, column: int) -> tuple[int, int]:
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
    def __init__(self, text: str, places: Places) -> None:
        self.text = text
        self.at = 0
        self.places = places
        self.lengths: dict[Keys, int] = {}

    def document(self) -> None:
        table: Keys = ()
        self._skip()
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip()

    def _header(self) -> Keys:
        start = self.at
        doubled = self.text.startswith("[[", start)
        self.at += 2 if doubled else 1
        keys = self._key()
        self.at += 2 if doubled else 1
        path: Keys = ()
        for position, key in enumerate(keys):
            path = (*path, key)
            if doubled and position == len(keys) - 1:
                self.lengths[path] = self.lengths.get(path, 0) + 1
            if path in self.lengths:
                path = (*path, self.lengths[path] - 1)
        self.places.add(path, start, start)
        return path

    def _pair(self, table: Keys) -> None:
        start = self.at
        path = (*table, *self._key())
        self.at += 1  # the sign =
        self._skip()
        self._value(path, start)

    def _key(self) -> Keys:
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

    def _value(self, path: Keys, key_offset: int) -> None:
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

    def _list(self, path: Keys) -> None:
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

    def _inline_table(self, path: Keys) -> None:
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
    characters: list[tuple[int, str]] = []
    while at < end:
        if quotes[0] == "'" or text[at] != "\\":
            characters.append((at, text[at]))
            at += 1
        elif (folded := _FOLDED.match(text, at)) is not None:
            at = folded.end()
        elif (digits := _HEX_ESCAPE.get(text[at + 1])) is not None:
            characters.append((at, chr(int(text[at + 2 : at + 2 + digits], 16))))
            at += 2 + digits
        else:
            characters.append((at, _ESCAPES[text[at + 1]]))
            at += 2
    return characters


def _decoded(text: str, start: int, end: int) -> str:
    return "".join(character for _, character in _characters(text, start, end))


def _offset_in_string(text: str, start: int, index: int) -> int:
    end = _string_end(text, start)
    characters = _characters(text, start, end)
    if index < len(characters):
        return characters[max(index, 0)][0]
    return end - len(_quotes(text, start))


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
            hint="split the sheet into several files",
        )
    return _decoded_text(file, content)


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


def _decoded_text(file: str, content: bytes) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FormulaError(
            file,
            f"byte {error.start} is 0x{content[error.start]:02X}, which is not UTF-8",
            expected="UTF-8 was expected",
            hint="save the file as UTF-8",
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
            hint="remove it",
            line=line,
            column=column,
        )
    return text


def deceptive(text: str) -> int | None:
    """Return the index of the first character that changes how a text is shown, if any.

    Controls that turn the reading direction around, or that cannot be seen, let a sheet say
    one thing to a reader and another to the machine.
    """
    for position, character in enumerate(text):
        if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") and (
            character not in VISIBLE_CONTROLS
        ):
            return position
    return None


@dataclass(frozen=True)
class TomlBlock:
    """A part of a sheet that is TOML by itself; usually the whole of it."""

    data: dict[str, Any]
    """Its values; empty when it cannot be read."""
    places: Places
    """Where they stand."""
    problem: FormulaError | None = None
    """Why it cannot be read."""
    mentions_defaults: bool = False
    """Whether a part that cannot be read held the defaults."""


def sheet_blocks(file: str, text: str) -> Iterator[TomlBlock]:
    """Yield the text as one block; or, where its syntax is broken, claim by claim."""
    endless = _ENDLESS_KEY.search(text)
    if endless is not None:
        line, column = Places(text).position(endless.start())
        raise FormulaError(
            file, "a name has more than 32 dotted parts", expected="expected one dot at most",
            line=line, column=column,
        )  # fmt: skip
    whole = _parse(file, text, 1)
    if whole.problem is None:
        yield whole
        return
    # Somewhere the syntax is broken. Read it claim by claim, so that only that claim is lost.
    starts = [match.start() for match in _CLAIM_HEADER.finditer(text)]
    if not starts or len(starts) > MOST_BLOCKS:
        raise whole.problem
    for start, end in zip([0, *starts], [*starts, len(text)], strict=True):
        yield _parse(file, text[start:end], text.count("\n", 0, start) + 1)


def _parse(file: str, text: str, first_line: int) -> TomlBlock:
    try:
        data = tomllib.loads(with_quoted_keys(text))
        return TomlBlock(data, places(text, first_line))
    except RecursionError:
        problem = FormulaError(
            file, "lists or tables are nested too deeply", expected="expected a few levels at most",
            line=first_line, column=1,
        )  # fmt: skip
    except ValueError as error:
        problem = syntax_problem(file, error, text, first_line)
    return TomlBlock({}, Places(text, first_line), problem, _DEFAULTS.search(text) is not None)


def with_quoted_keys(text: str) -> str:
    """Return a TOML text in which Greek letters may be keys: β = 1 becomes "β" = 1.

    >>> with_quoted_keys('where = { β = "large" }  # β is a scale')
    'where = { "β" = "large" }  # β is a scale'
    """
    if text.isascii():
        return text
    return _STRANGE_KEY.sub(lambda found: found[1] or f'"{found[2]}"', text)


def syntax_problem(file: str, error: ValueError, text: str, first_line: int = 1) -> FormulaError:
    """Turn what `tomllib` says into our error, at its line and column."""
    message = str(error)
    at = _AT.search(message)
    lines = text.rstrip("\n").split("\n")
    line, column = len(lines), len(lines[-1]) + 1
    if at is not None:
        message = message[: at.start()]
        if at[1] is not None:
            line, column = int(at[1]), int(at[2])
    for theirs, ours in _CLEARER.items():
        if theirs in message:
            message = ours
    return FormulaError(
        file,
        f"this is not TOML: {message[:1].lower() + message[1:]}",
        expected='lines such as expect = "alpha_j >= 0.99" were expected',
        hint=_LATEX_HINT if "'\\'" in message else "look for a missing quote, bracket or comma",
        line=line + first_line - 1,
        column=column,
    )
