"""The JSON fields of every record, read from the dataclasses themselves.

    ```{records} heedful.attention
    ```

finds every record defined in a room and writes one table for each: the field, and its docstring.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from docutils import nodes
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

from heedful.records import Record

MARKUP = re.compile(r"([\\*_|$\[\]<>])")


def records_of(room: str) -> Iterator[type[Record]]:
    """Yield the records that a room (or one module) defines, in the order of the files."""
    package = importlib.import_module(room)
    modules = [package] + [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(getattr(package, "__path__", []), f"{room}.")
    ]
    for module in modules:
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and issubclass(value, Record)
                and value is not Record
                and value.__module__ == module.__name__
            ):
                yield value


def meanings(record: type[Record]) -> dict[str, str]:
    """Return each field of a record with its docstring."""
    found: dict[str, str] = {}
    for kind in reversed(record.__mro__):
        if kind is not object:
            documented = ModuleAnalyzer.for_module(kind.__module__).find_attr_docs()
            found |= {
                attribute: " ".join(lines).strip()
                for (owner, attribute), lines in documented.items()
                if owner == kind.__name__
            }
    return {field.name: found.get(field.name, "") for field in fields(record)}


def markdown(text: str) -> str:
    """Return plain text with `code` spans as Markdown for a table cell."""
    pieces = text.split("`")
    return "`".join(
        piece.replace("|", "\\|") if place % 2 else MARKUP.sub(r"\\\1", piece)
        for place, piece in enumerate(pieces)
    )


class Records(SphinxDirective):
    """One table for each record of a room."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the tables."""
        text = ""
        for record in records_of(self.arguments[0]):
            summary = (record.__doc__ or "").strip().split("\n")[0]
            text += (
                f"**{record.__name__}.** {markdown(summary)}\n\n| Field | Meaning |\n|---|---|\n"
            )
            for field, meaning in meanings(record).items():
                text += f"| `{field}` | {markdown(meaning)} |\n"
            text += "\n"
        return self.parse_text_to_nodes(text)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("records", Records)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
