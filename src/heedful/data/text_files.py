"""Files as they come from strangers: hashed, unpacked under caps, cut into lines, strictly UTF-8.

The rules, for every kind of text file:

- The bytes on disk are hashed (SHA-256) while they are read.
- gzip is known by its first bytes and unpacked as a stream; total size and ratio are capped.
- UTF-8 only; a bad byte is named by its offset. A byte order mark at the start is removed.
- Lines end at `\\n` and nowhere else; one `\\r` before it is removed. (`str.splitlines` also
  breaks at U+2028 and friends, which would shift one side of a parallel corpus.)
- NUL is refused, and so is a line above the limit.

`ReadOptions` says how files are to be read; every reader takes one.
"""

from __future__ import annotations

import hashlib
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal

from heedful.errors import ConfigError, InputError
from heedful.records import Record

CHUNK = 1 << 16
FREE_OF_RATIO = 10 * 2**20
"""Unpacked bytes below which the ratio does not matter: they can do no harm."""
MOST_MEMBERS = 10_000
"""Parts of one gzip file; block compressors write one for every 64 kB."""

BOM = b"\xef\xbb\xbf"
OTHER_ARCHIVES = {b"PK\x03\x04": "a zip archive", b"BZh": "bzip2", b"\xfd7zXZ": "xz",
                  b"\x28\xb5\x2f\xfd": "zstandard"}  # fmt: skip
UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, kw_only=True)
class ReadLimits:
    """What a reader takes at most; beyond it a file is refused, never cut."""

    line_bytes: int = 1_000_000
    """Bytes of one line, or of one text in a file that is not made of lines."""
    total_bytes: int = 256 * 2**20
    """Bytes of one file, after unpacking."""
    ratio: float = 100.0
    """Unpacked bytes for each packed one."""
    texts: int = 5_000_000
    """Documents or pairs of one corpus."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise ConfigError(f"limits.{name}", f"is {value}", expected="a positive number")


DEFAULT_LIMITS = ReadLimits()

Format = Literal["tsv", "parallel", "text", "jsonl", "po", "tmx"]
Unit = Literal["line", "paragraph", "file"]
"""What one document of a plain text is; paragraphs are separated by blank lines."""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How files are to be read; what is left open is told from the files."""

    format: Format | None = None
    """What the files are."""
    languages: tuple[str, str] | None = None
    """What the two sides of pairs are called, in the order of the file."""
    source: str | None = None
    """Which side is the source; the first one if left open."""
    columns: tuple[int, int] = (1, 2)
    """The two columns of a TSV file, counted from 1."""
    fields: tuple[str, ...] | None = None
    """The one or two fields of JSON lines."""
    unit: Unit = "line"
    """What one document of a plain text is."""
    limits: ReadLimits = DEFAULT_LIMITS
    """What is read at most."""


AS_FOUND = ReadOptions()


@dataclass(frozen=True, eq=False, kw_only=True)
class SourceFile(Record):
    """A file that a corpus was read from."""

    path: str
    """Where it lay."""
    bytes: int
    """Its size on disk."""
    sha256: str
    """SHA-256 of its bytes on disk."""
    text_bytes: int
    """Its size after unpacking; the same where nothing was packed."""


class TextFile:
    """One file, read once from start to end; afterwards `origin` says what it was."""

    def __init__(self, path: Path, limits: ReadLimits = DEFAULT_LIMITS) -> None:
        self.path = path
        self.limits = limits
        self.name = shown(str(path))
        self.packed = False
        self._digest = hashlib.sha256()
        self._raw_bytes = 0
        self._text_bytes = 0
        try:
            status = path.stat()
        except (OSError, ValueError):
            raise InputError(self.name, "there is no such file", hint="check the path") from None
        if not stat.S_ISREG(status.st_mode):
            raise InputError(self.name, "is not a file", expected="a regular file was expected")
        if status.st_size > limits.total_bytes:
            raise self._too_big(status.st_size)

    @property
    def origin(self) -> SourceFile:
        """What was read so far; call it after the last chunk."""
        return SourceFile(
            path=str(self.path),
            bytes=self._raw_bytes,
            sha256=self._digest.hexdigest(),
            text_bytes=self._text_bytes,
        )

    def chunks(self) -> Iterator[bytes]:
        """Yield the content in pieces, unpacked where it is gzip."""
        try:
            with self.path.open("rb") as file:
                start = file.read(6)
                file.seek(0)
                self.packed = start[:2] == b"\x1f\x8b"
                self._refuse_other_archives(start)
                for chunk in self._unpacked(file) if self.packed else self._raw(file):
                    self._text_bytes += len(chunk)
                    self._check_size()
                    yield chunk
        except OSError as error:
            raise InputError(self.name, f"cannot be read ({error.strerror or error})") from None

    def lines(self) -> Iterator[str]:
        """Yield its lines, decoded and checked, without their ends."""
        number, offset = 0, 0
        for block in self._blocks():
            lines = self._quickly(block, offset) or self._one_by_one(block, number, offset)
            for line in lines:
                number += 1
                yield line
            offset += len(block) + 1

    def first_lines(self, count: int) -> list[str]:
        """Return the first lines only; for guessing what a file is."""
        return list(islice(self.lines(), count))

    def check_count(self, count: int) -> None:
        """Refuse a corpus with nothing in it, or with more texts than the limit."""
        if count == 0:
            raise InputError(
                self.name, "holds nothing to read", expected="at least one text was expected"
            )
        if count > self.limits.texts:
            raise InputError(
                self.name,
                f"has more than {self.limits.texts:,} texts",
                expected=f"at most {self.limits.texts:,} are read",
                hint="read a part of it, or raise --max-texts",
            )

    def at(self, line: int) -> str:
        """Name a line of this file in an error."""
        return f"{self.name}, line {line}"

    def _raw(self, file: BinaryIO) -> Iterator[bytes]:
        while chunk := file.read(CHUNK):
            self._digest.update(chunk)
            self._raw_bytes += len(chunk)
            yield chunk

    def _unpacked(self, file: BinaryIO) -> Iterator[bytes]:
        unpacker, members = zlib.decompressobj(wbits=31), 1
        waiting = b""
        for chunk in self._raw(file):
            waiting += chunk
            while waiting:
                if unpacker.eof:
                    # gzip allows zeros as padding after the last part.
                    waiting = waiting.lstrip(b"\0")
                    if not waiting:
                        break
                    unpacker, members = zlib.decompressobj(wbits=31), members + 1
                    if members > MOST_MEMBERS:
                        raise self._bad_gzip(f"it has more than {MOST_MEMBERS:,} parts")
                try:
                    # max_length keeps a bomb from filling the memory in one call.
                    piece = unpacker.decompress(waiting, CHUNK)
                except zlib.error as error:
                    raise self._bad_gzip(str(error)) from None
                waiting = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
                if piece:
                    yield piece
                elif not unpacker.eof and not waiting:
                    break
        while not unpacker.eof and (piece := unpacker.decompress(b"", CHUNK)):
            yield piece
        if not unpacker.eof:
            raise self._bad_gzip("it ends too early")

    def _check_size(self) -> None:
        if self._text_bytes > self.limits.total_bytes:
            raise self._too_big(self._text_bytes)
        allowed = max(FREE_OF_RATIO, self.limits.ratio * self._raw_bytes)
        if self.packed and self._text_bytes > allowed:
            raise InputError(
                self.name,
                f"unpacks to more than {self.limits.ratio:g} times its size "
                f"({self._text_bytes:,} bytes from {self._raw_bytes:,})",
                expected="text was expected, which packs less well",
                hint="unpack it yourself, or raise --max-ratio",
            )

    def _blocks(self) -> Iterator[bytes]:
        """Yield whole lines, many at a time, without the `\\n` of the last one."""
        tail = b""
        seen = 0
        for chunk in self.chunks():
            before, end, after = chunk.rpartition(b"\n")
            if end:
                yield tail + before
                seen += before.count(b"\n") + 1
            tail = after if end else tail + chunk
            if len(tail) > self.limits.line_bytes:
                raise self._too_long(seen + 1, len(tail))
        if tail and not (seen == 0 and tail == BOM):
            yield tail

    def _quickly(self, block: bytes, offset: int) -> list[str] | None:
        """Return the lines of a block that is beyond doubt; most are, and it is much faster."""
        if b"\0" in block or len(block) > self.limits.line_bytes or offset == 0:
            return None
        try:
            lines = block.decode("utf-8").split("\n")
        except UnicodeDecodeError:
            return None
        return [line.removesuffix("\r") for line in lines] if b"\r" in block else lines

    def _one_by_one(self, block: bytes, number: int, offset: int) -> Iterator[str]:
        for place, line in enumerate(block.split(b"\n"), start=number + 1):
            if len(line) > self.limits.line_bytes:
                raise self._too_long(place, len(line))
            yield self._decoded(line, place, offset)
            offset += len(line) + 1

    def _decoded(self, line: bytes, number: int, offset: int) -> str:
        skipped = 0
        if number == 1 and line.startswith(BOM):
            line, skipped = line[len(BOM) :], len(BOM)
        try:
            decoded = line.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            place = offset + skipped + error.start
            raise InputError(
                self.at(number),
                f"byte {place:,} (0x{line[error.start]:02x}) is not UTF-8",
                expected="UTF-8 was expected",
                hint=_way_out_of(line, place),
            ) from None
        if "\0" in decoded:
            place = offset + skipped + line.index(b"\0")
            raise InputError(
                self.at(number),
                f"holds a NUL at byte {place:,}",
                expected="plain text was expected",
                hint="is it text at all? UTF-16 must be converted to UTF-8 first",
            )
        return decoded

    def _refuse_other_archives(self, start: bytes) -> None:
        for magic, kind in OTHER_ARCHIVES.items():
            if start.startswith(magic):
                raise InputError(
                    self.name,
                    f"is {kind}",
                    expected="text or gzip was expected",
                    hint="unpack it first",
                )
        if self.path.suffix == ".gz" and not self.packed:
            raise self._bad_gzip("it starts with other bytes")

    def _too_big(self, size: int) -> InputError:
        return InputError(
            self.name,
            f"has more than {self.limits.total_bytes:,} bytes ({size:,} so far)",
            expected=f"at most {self.limits.total_bytes:,} are read",
            hint="read a part of it, or raise --max-bytes",
        )

    def _too_long(self, number: int, size: int) -> InputError:
        return InputError(
            self.at(number),
            f"has {size:,} bytes or more",
            expected=f"at most {self.limits.line_bytes:,} a line are read",
            hint="is it text in lines? otherwise raise --max-line",
        )

    def _bad_gzip(self, reason: str) -> InputError:
        return InputError(
            self.name,
            f"is no whole gzip file ({reason})",
            expected="a complete .gz file was expected",
            hint="fetch it again",
        )


def shown(text: str) -> str:
    r"""Return a text that fits in one line of a message, strange characters escaped.

    >>> shown("a b\n\u202e")
    'a b\\n\\u202e'
    """
    return text if text.isprintable() else "".join(map(_printable, text))


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    return (
        character.encode("ascii", "backslashreplace").decode()
        if ord(character) > 127
        else (repr(character)[1:-1])
    )


def _way_out_of(line: bytes, place: int) -> str:
    if place == 0 and line.startswith(UTF16):
        return "it looks like UTF-16: convert it with iconv -f UTF-16 -t UTF-8"
    return "convert it, for instance with iconv -f LATIN1 -t UTF-8"
