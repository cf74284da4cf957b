"""The settings of a group, read from the class that checks them.

    ```{settings} heedful.training.config.Schedule
    ```

writes one table: the name, the default, and what it means.
"""

from __future__ import annotations

import importlib
from typing import Any

from docutils import nodes
from pydantic_core import PydanticUndefined
from records import markdown
from sphinx.util.docutils import SphinxDirective

from heedful.settings import Settings


def rows(group: type[Settings]) -> list[tuple[str, str, str]]:
    """Return the name, the default and the meaning of every setting; groups have no default."""
    found = []
    for name, field in group.model_fields.items():
        default = field.default
        if isinstance(default, Settings) or field.default_factory is not None:
            shown = "a table"
        elif default is PydanticUndefined:
            shown = "must be set"
        else:
            shown = f"`{written(default)}`"
        meaning = field.description
        if not meaning and isinstance(default, Settings):
            meaning = (default.__doc__ or "").strip().split("\n")[0]
        found.append((name, shown, " ".join((meaning or "").split())))
    return found


def written(value: Any) -> str:
    """Return a value as TOML has it; what is absent there is written as none."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return f"[{', '.join(written(item) for item in value)}]"
    return f"{value:_}" if isinstance(value, int) else f"{value:g}"


class SettingsTable(SphinxDirective):
    """One table of settings."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        module, _, name = self.arguments[0].rpartition(".")
        group = getattr(importlib.import_module(module), name)
        text = "| Setting | Default | Meaning |\n|---|---|---|\n"
        for setting, default, meaning in rows(group):
            text += f"| `{setting}` | {default} | {markdown(meaning)} |\n"
        return self.parse_text_to_nodes(text)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("settings", SettingsTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
