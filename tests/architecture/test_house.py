"""The shape of the house: what a reader may rely on, measured on the source itself."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from pathlib import Path
from statistics import quantiles

import pytest
from source_tree import PACKAGE, ROOT, module_name, rooms, sources

LONGEST_FUNCTION = 80
"""Lines; beyond that a function tells more than one story."""
NINETIETH_PERCENTILE = 27
"""Lines that nine functions of ten do not exceed."""


def function_lengths() -> dict[str, int]:
    """Return the number of lines of every function and method, by module and name."""
    return {
        f"{module_name(path)}:{node.lineno} {node.name}": node.end_lineno - node.lineno + 1
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno
    }


def test_functions_are_short() -> None:
    lengths = function_lengths()
    long = [f"{name} ({lines})" for name, lines in lengths.items() if lines > LONGEST_FUNCTION]
    assert not long, f"longer than {LONGEST_FUNCTION} lines: {', '.join(long)}"
    assert quantiles(lengths.values(), n=10)[-1] <= NINETIETH_PERCENTILE


def test_the_map_names_every_module() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    drawn = set(re.findall(r"^\| `([\w/]+\.py)` \|", text, re.MULTILINE))
    there = {str(path.relative_to(PACKAGE)) for path in sources() if path.stem[0] != "_"}
    assert not there - drawn, f"ARCHITECTURE.md lacks {sorted(there - drawn)}"
    assert not drawn - there, f"ARCHITECTURE.md names what is gone: {sorted(drawn - there)}"


@pytest.mark.parametrize("room", rooms())
def test_a_room_says_what_it_is_for_and_what_it_may_touch(room: str) -> None:
    text = importlib.import_module(room).__doc__ or ""
    assert len(text.strip().splitlines()) >= 3, f"{room} needs three lines at its door"


def packages() -> list[Path]:
    """Return every package of the source, rooms and the folders inside them."""
    return [path.parent for path in sources() if path.name == "__init__.py"]


@pytest.mark.parametrize("package", packages(), ids=lambda path: path.name)
def test_no_public_name_hides_a_module(package: Path) -> None:
    module = importlib.import_module(module_name(package / "__init__.py"))
    inside = {path.stem for path in package.glob("*.py")} | {
        path.parent.name for path in package.glob("*/__init__.py")
    }
    hidden = inside & set(getattr(module, "__all__", []))
    assert not hidden, f"{module.__name__}: a name and a module are both called {sorted(hidden)}"


def test_a_public_class_has_a_name_of_its_own() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module_name(path))
    shared = {name: modules for name, modules in homes.items() if len(modules) > 1}
    assert not shared, f"one name, several classes: {shared}"
