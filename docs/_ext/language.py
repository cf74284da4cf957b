"""The language of claims in tables, read from the code that implements it.

    ```{functions} value
    ```

lists the functions of one kind; `{fields} heedful.claims.sheet.claim.Claim` those of a dataclass
with their docstrings.
"""

from __future__ import annotations

import importlib
from typing import Any

from docutils import nodes
from records import markdown, meanings
from sphinx.util.docutils import SphinxDirective

from heedful.claims.functions import FUNCTIONS, Function, Missing


def function_table(kind: str) -> str:
    """Return the functions of one kind, and how claims with them are proved, as Markdown."""
    functions = [function for function in FUNCTIONS.values() if function.kind == kind]
    if not functions:
        raise ValueError(f"no function is of the kind {kind!r}")
    lines = [
        f"| `{', '.join(function.forms)}` | {markdown(function.says)} | {proofs(function)} |"
        for function in functions
    ]
    return "\n".join(["| Written | Gives | In proofs |", "|---|---|---|", *lines]) + "\n"


def proofs(function: Function) -> str:
    """Return in which arithmetics a function can be part of a proof, or why in none."""
    meanings = {"balls": function.balls, "letters": function.letters}
    known = [name for name, meaning in meanings.items() if not isinstance(meaning, Missing)]
    if known:
        return " and ".join(known)
    return f"none: {function.balls.why}" if isinstance(function.balls, Missing) else ""


def field_table(name: str) -> str:
    """Return the fields of a dataclass, named by its full path, as a Markdown table."""
    module, _, kind = name.rpartition(".")
    found = meanings(getattr(importlib.import_module(module), kind))
    lines = [f"| `{field}` | {markdown(meaning)} |" for field, meaning in found.items()]
    return "\n".join(["| Field | Meaning |", "|---|---|", *lines]) + "\n"


class Functions(SphinxDirective):
    """The functions of one kind."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        return self.parse_text_to_nodes(function_table(self.arguments[0]))


class Fields(SphinxDirective):
    """The fields of one dataclass."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        return self.parse_text_to_nodes(field_table(self.arguments[0]))


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("functions", Functions)
    app.add_directive("fields", Fields)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
