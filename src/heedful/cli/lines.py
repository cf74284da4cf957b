"""Lines as they come: from a file or standard input, as soon as they are there.

A line ends at `\\n`; one `\\r` before it and a byte order mark at the start are removed. Bytes that
are no UTF-8 stay in their line, where whoever reads it can say so: no line is ever lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

MOST_BYTES = 1_000_000
"""Bytes of one line that are kept."""
BLOCK = 1 << 16
BOM = b"\xef\xbb\xbf"


def arriving(stream: BinaryIO) -> Iterator[bytes]:
    """Yield what a stream holds, without waiting for more than there is."""
    read = getattr(stream, "read1", stream.read)
    while block := read(BLOCK):
        yield block


def blocks_of_lines(chunks: Iterable[bytes]) -> Iterator[list[str]]:
    """Yield the lines that each chunk completes, and at last the one without an end.

    >>> list(blocks_of_lines([b"a\\nb", b"c\\r\\n\\n", b"d"]))
    [['a'], ['bc', ''], ['d']]
    """
    tail, start = b"", True
    for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        if whole:
            whole[0] = (tail + whole[0])[:MOST_BYTES]
            tail = rest[:MOST_BYTES]
            yield [_text(line, start and place == 0) for place, line in enumerate(whole)]
            start = False
        else:
            tail = (tail + rest)[:MOST_BYTES]
    if tail and not (start and tail == BOM):
        yield [_text(tail, start)]


def _text(line: bytes, first: bool) -> str:
    line = line.removeprefix(BOM) if first else line
    return line.removesuffix(b"\r").decode("utf-8", errors="surrogateescape")
