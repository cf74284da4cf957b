"""The house rules of the source, one test each. CONTRIBUTING.md gives the reasons."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest
from source_tree import module_name, rooms, sources

NAMELESS = {"utils", "util", "helpers", "helper", "common", "misc"}
# These run text as code, or read files that can.
FORBIDDEN_CALLS = {"eval", "exec", "sympify", "parse_expr", "lambdify", "__import__"}
FORBIDDEN_MODULES = {"pickle", "dill", "cloudpickle", "shelve", "marshal", "yaml"}

each_source = pytest.mark.parametrize("path", sources(), ids=module_name)
each_room = pytest.mark.parametrize("room", rooms())


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), filename=str(path))


@each_source
def test_a_module_says_what_it_gives(path: Path) -> None:
    assert ast.get_docstring(tree(path)), f"{module_name(path)} has no docstring"


@each_source
def test_a_module_has_a_name(path: Path) -> None:
    assert path.stem not in NAMELESS, f"{path.stem} is a room without a name: say what it holds"


@each_source
def test_public_functions_and_classes_are_documented(path: Path) -> None:
    silent = [
        node.name
        for node in tree(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert not silent, f"without a docstring in {module_name(path)}: {', '.join(silent)}"


@each_source
def test_no_text_is_ever_run_as_code(path: Path) -> None:
    found = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            # torch's Module.eval() takes no argument and runs no text.
            names = [name] if node.args or node.keywords or name != "eval" else []
        else:
            continue
        forbidden = {
            name
            for name in names
            if name in FORBIDDEN_CALLS or name.partition(".")[0] in FORBIDDEN_MODULES
        }
        found += [f"line {node.lineno}: {name}" for name in sorted(forbidden)]
    assert not found, f"{module_name(path)}: {'; '.join(found)}"


@each_source
def test_arrays_from_files_are_read_without_pickle(path: Path) -> None:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            assert isinstance(node.value, ast.Constant), f"{module_name(path)}:{node.value.lineno}"
            assert node.value.value is False, f"{module_name(path)}:{node.value.lineno}"


@each_room
def test_a_room_lists_its_public_names(room: str) -> None:
    module = importlib.import_module(room)
    names = getattr(module, "__all__", [])
    assert len(set(names)) == len(names)
    public = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name != "annotations"
    }
    assert public == set(names), f"{room}.__all__ differs by {sorted(public ^ set(names))}"
    for name in names:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"{room}.{name} has no docstring"


@each_room
def test_public_names_are_in_the_reference(room: str) -> None:
    if getattr(importlib.import_module(room), "__all__", []):
        pages = Path(__file__).parents[2].joinpath("docs", "reference").glob("*.md")
        text = "\n".join(page.read_text("utf-8") for page in pages)
        assert f"automodule:: {room}\n" in text, f"docs/reference has no page for {room}"
