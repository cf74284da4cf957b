"""Numbers, sizes and sentences as people read them."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

from heedful.stats import percent as percent


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


def matrix(W: Any, digits: int = 4) -> str:
    """Write a matrix row by row, its columns aligned.

    >>> print(matrix([[1.0, -0.25], [10.0, 0.0]]))
    [ 1  -0.25]
    [10      0]
    """
    cells = [[number(entry, digits) for entry in row] for row in W]
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "[" + "  ".join(cell.rjust(width) for cell, width in zip(row, wide, strict=True)) + "]"
        for row in cells
    )


def some(items: Any, most: int = 8) -> str:
    """Write the first few of a list, and dots for the rest.

    >>> some([0, 1, 2], 2)
    '0, 1, …'
    """
    items = list(items)
    return ", ".join(map(str, items[:most])) + (", …" if len(items) > most else "")


def many(count: int, what: str) -> str:
    """Write a count with its noun.

    >>> many(1, "head"), many(1200, "pair")
    ('1 head', '1,200 pairs')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """Write a time as people say it.

    >>> duration(4.21), duration(75.0), duration(600)
    ('4.2 s', '1 min 15 s', '10 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def size(count: int) -> str:
    """Write a number of bytes as people read it.

    >>> size(98_362_432), size(512)
    ('98.4 MB', '512 B')
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"
