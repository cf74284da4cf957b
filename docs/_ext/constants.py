"""Limits in the prose, read from the code: {constant}`heedful.data.arrays.MAX_BYTES`."""

from __future__ import annotations

import importlib
from typing import Any

from docutils import nodes
from measurements import figure
from sphinx.util.docutils import SphinxRole


class Constant(SphinxRole):
    """The value of a module's constant, as a reader wants it."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the value as text, or stop the build where there is none."""
        module, _, name = self.text.rpartition(".")
        try:
            value = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError):
            message = self.inliner.reporter.error(f"no constant {self.text}", line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        return [nodes.Text(figure(value))], []


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_role("constant", Constant())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
