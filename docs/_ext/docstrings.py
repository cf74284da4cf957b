"""Docstrings are plain text with `code` in backticks; autodoc expects reStructuredText.

This turns the one into the other: backticks become literals, indented lines (equations, trees)
become literal blocks, doctests stay, and every other character means itself. So a docstring
may say (*batch, q, d) or α_i without knowing any markup.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

CODE = re.compile(r"`([^`]+)`")
MARKUP = re.compile(r"([\\*_|])")


def restructured(lines: Iterable[str]) -> list[str]:
    """Return the lines of a plain docstring as reStructuredText."""
    result: list[str] = []
    for block in _blocks(lines):
        if block[0].lstrip().startswith(">>>"):
            result += textwrap.dedent("\n".join(block)).split("\n")
        elif block[0].startswith("    "):
            result += ["::", "", *block]
        else:
            result += _prose("\n".join(block)).split("\n")
        result.append("")
    return result


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield paragraphs; an indented one may contain blank lines only as several blocks."""
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        if not blank:
            yield list(group)


def _prose(text: str) -> str:
    pieces = CODE.split(text)
    for place, piece in enumerate(pieces):
        if place % 2:
            # `\ ` ends a literal even where a letter follows, as in `key`s.
            pieces[place] = f"\\ ``{' '.join(piece.split())}``\\ "
        else:
            pieces[place] = MARKUP.sub(r"\\\1", piece)
    return "".join(pieces)


def process(
    _app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]
) -> None:
    """Rewrite one docstring in place, as autodoc asks."""
    lines[:] = restructured(lines)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
