"""Help pages: each verb shows its own description and its own examples.

The docstring of a command is its page: what stands before `Examples:` is the description,
what follows is shown below the parameters, line by line.
"""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

from cyclopts import App


def describe(app: App) -> str:
    """Give `app` and every command below it the help its docstring holds; return the examples."""
    examples: list[str] = []
    for name in app:
        if not name.startswith("-"):
            of_command = describe(app[name])
            examples += of_command.splitlines()[:1]
    if app.default_command is not None:
        page = inspect.getdoc(app.default_command) or ""
        text, _, shown = page.partition("\n\nExamples:\n")
        app.help = _unwrapped(text)
        examples = textwrap.dedent(shown.strip("\n")).splitlines()
    if examples:
        app.help_epilogue = "Examples:\n" + "\n".join(f"  {line}" for line in examples)
    return "\n".join(examples)


def shown_default(value: Any) -> str | None:
    """Write a default as it would be typed; a switch that is off needs no words.

    >>> shown_default(["0", "1"]), shown_default(50.0), shown_default(False)
    ('0 1', '50', None)
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "on" if value else None
    if isinstance(value, list | tuple):
        return " ".join(map(str, value)) or None
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def _unwrapped(text: str) -> str:
    """Join the lines of each paragraph: the terminal decides where they break."""
    return "\n\n".join(" ".join(part.split("\n")) for part in text.split("\n\n"))
