"""The terminal: one console for everything that is printed, and small words for numbers."""

from __future__ import annotations

import math
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table


def console() -> Console:
    """Return the console of standard output; plain text when it is not a terminal."""
    return Console(highlight=False, soft_wrap=False)


def table(title: str, *columns: str, left: tuple[int, ...] = (0,)) -> Table:
    """Return an empty table in the house style; columns in `left` align left, others right."""
    made = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for position, column in enumerate(columns):
        made.add_column(column, justify="left" if position in left else "right", overflow="fold")
    return made


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


def vector(values: Any, digits: int = 4, most: int = 8) -> str:
    """Write a vector in brackets, its middle left out when it is long.

    >>> vector([1.0, 0.25, 0.0])
    '[1, 0.25, 0]'
    """
    values = list(values)
    shown = [number(value, digits) for value in values[:most]]
    rest = len(values) - most
    return "[" + ", ".join(shown) + (f", … {rest} more" if rest > 0 else "") + "]"
