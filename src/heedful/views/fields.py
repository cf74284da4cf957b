"""Any record as blocks and as a figure, from its fields alone.

What a command ends in has a view of its own (`VIEWS` in `blocks.py`). The parts that such a record
consists of, which people meet one by one in a notebook, are shown here: plain fields as names
and values, lists of records as a table with a row each, arrays as numbers where they are few.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.records import Record
from heedful.views.blocks import Block, Group, Table, Text, facts, shown
from heedful.views.drawing import BLUE, house_style, new_figure
from heedful.views.formatting import many, number, some

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LONGEST_FIELD = 400
"""Characters of a value that are shown: `to_dict` has the rest."""
MOST_ROWS, MOST_COLUMNS = 20, 12
"""Rows and columns of a table of numbers or of records: about what a screen shows."""
MOST_PANELS = 6
"""Arrays that one figure draws."""
MOST_LINES = 60
"""Lines of a table that is drawn as text: about a page."""


def field_blocks(record: Record) -> Iterator[Block]:
    """Yield the fields that have a value: first what fits on a line, then tables and parts."""
    name = _words(type(record).__name__)
    found = {one.name: getattr(record, one.name) for one in fields(record)}
    values = {key: value for key, value in found.items() if value is not None}
    lines = [(_label(key), _text(value)) for key, value in values.items() if not _is_part(value)]
    if lines:
        yield facts(name, *lines)
    else:
        yield Text(name, tone="strong")
    for key, value in values.items():
        if _is_part(value):
            yield from _part_blocks(_label(key), value)


def _part_blocks(label: str, value: Any) -> Iterator[Block]:
    if isinstance(value, Record):
        yield Group(label, shown(value).blocks)
    elif _array(value) is not None:
        yield _numbers(label, np.asarray(_array(value)))
    elif isinstance(value, Mapping):
        yield _records(label, list(value.values()), [str(key) for key in value])
    else:
        yield _records(label, list(value))


def _is_part(value: Any) -> bool:
    """Whether a value is more than a line."""
    if isinstance(value, Record):
        return True
    array = _array(value)
    if array is not None:
        return bool(array.ndim == 2 and array.size and max(array.shape) <= MOST_COLUMNS)
    items = value.values() if isinstance(value, Mapping) else value
    return bool(_is_list(items) and len(items) and all(map(is_dataclass, items)))


def _is_list(value: Any) -> bool:
    """Whether it can be counted and gone through, and is neither a text nor an array."""
    return isinstance(value, Collection) and not isinstance(value, str | bytes)


def _numbers(label: str, array: Any) -> Table:
    grid = Table(label, ("", *map(str, range(array.shape[1]))))
    for place, row in enumerate(array):
        grid.row(str(place), *(_text(entry) for entry in row.tolist()))
    return grid


def _records(label: str, items: Sequence[Any], names: Sequence[str] = ()) -> Table:
    """Return one row for each record; columns are the fields that fit into a cell."""
    columns = [one.name for one in fields(items[0])][: MOST_COLUMNS - bool(names)]
    heads = ("", *map(_label, columns)) if names else tuple(map(_label, columns))
    if len(items) > MOST_ROWS:
        label += f": the first {MOST_ROWS} of {len(items):,}"
    grid = Table(label, heads, left=tuple(range(len(heads))))
    for place, item in enumerate(items[:MOST_ROWS]):
        cells = [_text(getattr(item, name, None)) for name in columns]
        grid.row(*(names[place : place + 1]), *cells)
    return grid


def _text(value: Any) -> str:
    """Return a value as one cell shows it."""
    array = _array(value)
    if array is not None:
        return _array_text(array)
    if value is None:
        text = "–"
    elif isinstance(value, bool):
        text = "yes" if value else "no"
    elif isinstance(value, float):
        text = number(value, 6)
    elif isinstance(value, Record) or is_dataclass(value):
        text = _words(type(value).__name__)
    elif isinstance(value, Mapping):
        text = some([f"{key}: {_text(item)}" for key, item in _first(value.items())], MOST_COLUMNS)
    elif _is_list(value):
        text = some([_text(item) for item in _first(value)], MOST_COLUMNS)
    else:
        text = str(value)
    text = text or "–"
    return text if len(text) <= LONGEST_FIELD else text[: LONGEST_FIELD - 1] + "…"


def _first(items: Iterable[Any]) -> Iterator[Any]:
    """Return one more than is shown: a list of a million is not written out to be cut."""
    return islice(items, MOST_COLUMNS + 1)


def _array_text(array: Any) -> str:
    if array.ndim == 0:
        return _text(array.item())
    if array.ndim == 1 and array.size <= MOST_COLUMNS:
        return ", ".join(_text(entry) for entry in array.tolist())
    shape = " × ".join(map(str, array.shape))
    if not array.size or not np.issubdtype(array.dtype, np.number):
        return f"{shape} ({array.dtype})"
    return f"{shape} numbers from {number(array.min())} to {number(array.max())}"


def _array(value: Any) -> Any:
    """Return what is an array, or a tensor, as a NumPy array; None for anything else."""
    if hasattr(value, "detach"):
        value = value.detach().float().cpu().numpy()
    return value if isinstance(value, np.ndarray) else None


def _label(name: str) -> str:
    return name.replace("_", " ")


def _words(name: str) -> str:
    """Return the name of a class as words.

    >>> _words("HeadsEvaluation")
    'Heads evaluation'
    """
    spaced = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
    return spaced.strip().capitalize()


def field_figure(record: Record) -> Figure:
    """Return the arrays of a record, drawn; where it has none, its view set as a figure."""
    arrays = list(_drawable(record))[:MOST_PANELS]
    if not arrays:
        return _written_figure(str(shown(record)))
    rows = -(-len(arrays) // 2)
    with house_style():
        figure = new_figure(7.2, 0.4 + (3.2 if len(arrays) == 1 else 2.6 * rows))
        for place, (label, array) in enumerate(arrays, start=1):
            axes = figure.add_subplot(rows, min(len(arrays), 2), place)
            axes.set_title(label, fontsize=9)
            _draw(figure, axes, array)
        return figure


def _drawable(record: Record) -> Iterator[tuple[str, Any]]:
    """Yield arrays of numbers with more than one entry, cut to two axes: the first of each."""
    for one in fields(record):
        array = _array(getattr(record, one.name))
        if array is None or array.size < 2 or not np.issubdtype(array.dtype, np.number):
            continue
        label, first = _label(one.name), [0] * (array.ndim - 2)
        if first:
            label += f" [{', '.join(map(str, first))}] of {' × '.join(map(str, array.shape))}"
        yield label, array[tuple(first)]


def _draw(figure: Figure, axes: Axes, array: Any) -> None:
    if array.ndim == 1 and array.size <= MOST_ROWS:
        axes.bar(range(array.size), array, color=BLUE)
        axes.set_xticks(range(0, array.size, max(1, array.size // 8)))
    elif array.ndim == 1:
        axes.plot(array)
    else:
        most, signed = float(np.nanmax(np.abs(array))), bool(np.nanmin(array) < 0)
        colours: dict[str, Any] = {"cmap": "Blues", "vmin": 0.0, "vmax": most}
        if signed:
            colours = {"cmap": "RdBu", "vmin": -most, "vmax": most}
        image = axes.imshow(array, aspect="auto", interpolation="nearest", **colours)
        axes.grid(visible=False)
        figure.colorbar(image, ax=axes, shrink=0.85)


def _written_figure(text: str) -> Figure:
    lines = text.rstrip("\n").split("\n")
    if len(lines) > MOST_LINES:
        lines = [
            *lines[: MOST_LINES - 1],
            f"… and {many(len(lines) - MOST_LINES + 1, 'line')} more",
        ]
    known = _characters()
    lines = ["".join(sign if ord(sign) in known else "□" for sign in line) for line in lines]
    size = 8.0  # points; a character of this face is 0.602 times as wide as it is high
    width = max(len(line) for line in lines) * size * 0.602 / 72 + 0.3
    height = len(lines) * size * 1.25 / 72 + 0.3
    with house_style():
        figure = new_figure(max(width, 2.0), height)
        figure.text(
            0.15 / max(width, 2.0), 1 - 0.15 / height, "\n".join(lines), va="top", ha="left",
            family="DejaVu Sans Mono", fontsize=size, linespacing=1.2, parse_math=False,
        )  # fmt: skip
        return figure


@cache
def _characters() -> frozenset[int]:
    """Return what the face of a drawn table has: a missing sign is a box, not a warning."""
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont("DejaVu Sans Mono")).get_charmap())
