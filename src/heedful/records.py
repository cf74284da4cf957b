"""Results are records: frozen dataclasses that know how to become JSON.

The same record gives the terminal table, the JSON, the figure and the page. A record holds
plain numbers, strings, arrays and other records; it computes nothing when it is rendered.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np

Word = Literal["proved", "supported", "refuted", "undecided"]
"""What the laboratory says about a statement: claims are judged and studies end in these words.

`supported` comes with draws or seeds and an interval, `refuted` with the case that fails.
"""


@dataclass(frozen=True, eq=False)
class Record:
    """Base of every result."""

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain Python values, ready for `json.dumps`."""
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}

    def to_json(self, indent: int | None = 2) -> str:
        """Return the record as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def figure(self) -> Any:
        """Return the record as a Matplotlib figure, where there is one for its kind."""
        return _views().figure_of(self)

    def widget(self) -> Any:
        """Return the record as a widget for a notebook, where there is one for its kind."""
        return import_module("heedful.widgets").widget_of(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the tables of the report and the page."""
        return str(_views().shown(self)._repr_html_())


def _views() -> Any:
    # Records are below everything; how they look is decided at the top, and loaded when asked for.
    return import_module("heedful.views.blocks")


def plain(value: Any) -> Any:
    """Turn a value of a record into what JSON can hold.

    Arrays become nested lists. JSON has no infinity and no NaN: both become null.

    >>> plain({"beta": np.float64(2.0), "query": np.array([1.0, math.inf])})
    {'beta': 2.0, 'query': [1.0, None]}
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Record):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if hasattr(value, "detach"):  # a torch tensor, without importing torch
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    return str(value)
