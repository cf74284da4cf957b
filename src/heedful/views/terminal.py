"""The terminal: one console for everything that is printed, and small words for numbers."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

from rich.box import Box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

WIDEST = 100
"""Columns that a view takes at most, however wide the terminal is."""

ONE_RULE = Box("    \n    \n ── \n    \n    \n    \n    \n    \n")
"""A table with one line under its header, and no other."""


def console() -> Console:
    """Return the console of standard output; plain text when it is not a terminal."""
    screen = Console(highlight=False, soft_wrap=False)
    known = screen.is_terminal or "COLUMNS" in os.environ
    screen.width = min(screen.width, WIDEST) if known else WIDEST
    return screen


def print_all(views: Iterable[RenderableType]) -> None:
    """Print the parts of a view, with a blank line on both sides of a table."""
    screen = console()
    with screen.capture() as captured:
        before: RenderableType | None = None
        for view in views:
            if before is not None and (_is_table(view) or isinstance(before, Table)):
                screen.print()
            screen.print(view, crop=False)  # what is to be copied may be longer than a line
            before = view
    # A table pads its cells; nobody wants these blanks in a file or in a pasted example.
    lines = captured.get().split("\n")
    sys.stdout.write("\n".join(lines if screen.is_terminal else [x.rstrip() for x in lines]))


def _is_table(view: RenderableType) -> bool:
    """Tell a table from a list of sentences, which follows its heading without a gap."""
    return isinstance(view, Table) and view.box is not None


def table(title: str, *columns: str, left: tuple[int, ...] = (0,)) -> Table:
    """Return an empty table in the house style; columns in `left` align left, others right."""
    made = Table(
        # A title may be longer than its table is wide; it stays on one line all the same.
        title=Text(title, style="bold", no_wrap=True, overflow="ignore") if title else None,
        title_justify="left",
        title_style="bold",
        box=ONE_RULE,
        show_edge=False,
        show_header=any(columns),
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for position, column in enumerate(columns):
        made.add_column(column, justify="left" if position in left else "right", overflow="fold")
    return made


def paragraph(text: str, indent: int = 0) -> RenderableType:
    """Return a text that wraps at the width of the terminal, its lines indented alike."""
    return Padding(Text(text), (0, 0, 0, indent)) if indent else Text(text)


def verbatim(text: str, indent: int = 0, style: str = "") -> RenderableType:
    """Return lines to be copied: never wrapped, so that pasting them gives them back."""
    lines = "\n".join(" " * indent + line for line in text.split("\n"))
    # A console joins texts that it prints, and forgets that this one does not wrap; not in a group.
    return Group(Text(lines, style=style, no_wrap=True, overflow="ignore"))


def bullets(texts: Iterable[str], marks: Iterable[str] | None = None) -> Table:
    """Return a list of sentences, each with its mark and its lines aligned."""
    made = Table.grid(padding=(0, 1, 0, 0))
    texts = list(texts)
    for mark, text in zip(marks or ["•"] * len(texts), texts, strict=False):
        made.add_row(mark, Text(text))
    return made


def sentence(text: str) -> str:
    """Return a finding as a sentence: a capital for a word (not for a formula), and a period.

    >>> sentence("the key is inside"), sentence("f(PX) = P f(X) fails.")
    ('The key is inside.', 'f(PX) = P f(X) fails.')
    """
    capital = text[:1].upper() if text[1:2].isalpha() or text[1:2] == " " else text[:1]
    return capital + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def number(value: Any, digits: int = 4) -> str:
    """Write a number as people read it: few digits, no noise.

    >>> [number(x) for x in (0.5, 5.981414, 1e-9, 123456.0, None, math.inf, -0.00001)]
    ['0.5', '5.981', '1e-09', '123456', '–', '∞', '-1e-05']
    """
    if value is None:
        return "–"
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == round(value) and abs(value) < 1e9:
        return str(int(value))
    return f"{value:.{digits}g}"


def at_least(bound: float | None, digits: int = 4) -> str:
    """Write a lower bound, rounded down so that what is written stays true.

    >>> at_least(1.29099), at_most(0.41125)
    ('1.29', '0.4113')
    """
    return _rounded(bound, digits, ROUND_FLOOR)


def at_most(bound: float | None, digits: int = 4) -> str:
    """Write an upper bound, rounded up."""
    return _rounded(bound, digits, ROUND_CEILING)


def _rounded(bound: float | None, digits: int, direction: str) -> str:
    if bound is None or not math.isfinite(bound):
        return number(bound)
    return number(float(Context(prec=digits, rounding=direction).create_decimal(bound)), digits)


def vector(values: Any, digits: int = 4, most: int = 8) -> str:
    """Write a vector in brackets, its middle left out when it is long.

    >>> vector([1.0, 0.25, 0.0])
    '[1, 0.25, 0]'
    """
    values = list(values)
    shown = [number(value, digits) for value in values[:most]]
    rest = len(values) - most
    return "[" + ", ".join(shown) + (f", … {rest} more" if rest > 0 else "") + "]"
