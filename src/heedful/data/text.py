"""Documents from plain text: one a line, one a paragraph, or the whole file.

Blank lines are empty documents when every line is one: they are kept and counted, because a
reader that drops lines in silence makes line numbers lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

from heedful.data.corpus import Documents, check_count
from heedful.data.files import DEFAULT_LIMITS, Limits, TextFile

Unit = Literal["line", "paragraph", "file"]
"""What one document is; paragraphs are separated by blank lines."""


def read_text(path: Path, *, unit: Unit = "line", limits: Limits = DEFAULT_LIMITS) -> Documents:
    """Read documents from a plain text file."""
    file = TextFile(path, limits)
    texts: list[str] = []
    for text in _UNITS[unit](file.lines()):
        texts.append(text)
        if len(texts) > limits.texts:
            break
    check_count(len(texts), file.name, limits)
    return Documents(
        name=path.name,
        texts=tuple(texts),
        origins=(file.origin,),
        notes=() if unit == "line" else (f"one document a {unit}",),
    )


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    waiting: list[str] = []
    for line in lines:
        if line.strip():
            waiting.append(line)
        elif waiting:
            yield "\n".join(waiting)
            waiting = []
    if waiting:
        yield "\n".join(waiting)


def _whole(lines: Iterable[str]) -> Iterator[str]:
    found = list(lines)
    if found:
        yield "\n".join(found)


_UNITS: dict[Unit, Callable[[Iterable[str]], Iterator[str]]] = {
    "line": iter,
    "paragraph": _paragraphs,
    "file": _whole,
}
