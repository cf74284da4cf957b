"""The stored figures of the benchmarks as tables.

A result is a JSON object in `benchmarks/results/`. `question` (or the file's name) becomes the
heading; a list of objects becomes a table with a row for each; everything else, the machine
included, becomes a table of names and figures. What was measured elsewhere, on processors of
other kinds, stands in the tables already.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from records import markdown
from sphinx.util.docutils import SphinxDirective

from heedful.machine import BUSY

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"

CORES = 2
"""Of the machine of the stored figures, where a result does not say."""


def table(rows: list[dict[str, Any]]) -> str:
    """Return objects as a Markdown table; the columns are all their names, in order."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [columns, ["---"] * len(columns)]
    lines += [[figure(row.get(name, "")) for name in columns] for row in rows]
    head = [markdown(name.replace("_", " ")) for name in columns]
    return "".join(f"| {' | '.join(line)} |\n" for line in [head, *lines[1:]]) + "\n"


def figure(value: Any) -> str:
    """Return a figure as a reader wants it: four digits, thousands separated."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{markdown(str(name))} {figure(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(figure(item) for item in value)
    return markdown(str(value))


def sections(result: dict[str, Any]) -> Iterator[str]:
    """Yield the tables of one result."""
    single = {}
    for name, value in result.items():
        rows = isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
        if rows and name != "elsewhere":
            yield table(value)
        elif name not in ("question", "elsewhere"):
            single[name] = value
    if single:
        yield table(
            [{"what": name.replace("_", " "), "figure": item} for name, item in single.items()]
        )


def load_of(result: dict[str, Any]) -> tuple[float, int] | None:
    """Return the highest load that a result was taken at, and the cores; None where unknown."""
    places = [result, *(part for part in result.values() if isinstance(part, dict))]
    loads = [
        float(part[name])
        for part in places
        for name in ("load", "load_before")
        if isinstance(part.get(name), int | float)
    ]
    machine = result.get("machine")
    cores = machine.get("cores", CORES) if isinstance(machine, dict) else CORES
    return (max(loads), int(cores)) if loads else None


def under_load(result: dict[str, Any]) -> str:
    """Say that other programs ran beside a measurement, or that nobody knows; empty if quiet."""
    known = load_of(result)
    if known is None:
        return "The load of the machine was not recorded: take the times with care."
    load, cores = known
    if load <= BUSY:
        return ""
    return (
        f"Taken under load ({load:.1f} on {cores} cores): other programs ran beside it. The times "
        "are too long, and ratios of times are less sure than they look."
    )


class Measurements(SphinxDirective):
    """One section of tables for each stored result."""

    def run(self) -> list[nodes.Node]:
        """Return the tables."""
        found: list[nodes.Node] = []
        for path in sorted(RESULTS.glob("*.json")):
            self.env.note_dependency(str(path))
            result = json.loads(path.read_text(encoding="utf-8"))
            result = result if isinstance(result, dict) else {"results": result}
            title = str(result.get("question", path.stem.replace("_", " ")))
            found.append(nodes.rubric(title, title))
            mark = under_load(result)
            found += self.parse_text_to_nodes(f"**{mark}**") if mark else []
            found += self.parse_text_to_nodes("\n".join(sections(result)))
        return found or self.parse_text_to_nodes("No figures are stored yet: run `make bench`.")


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("measurements", Measurements)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
