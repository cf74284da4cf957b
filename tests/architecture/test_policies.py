"""The house rules of the source, one test each. CONTRIBUTING.md gives the reasons."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from source_tree import module_name, rooms, sources

NAMELESS = {"utils", "util", "helpers", "helper", "common", "misc"}
# These run text as code, or read files that can.
FORBIDDEN_CALLS = {"eval", "exec", "sympify", "parse_expr", "lambdify", "__import__"}
FORBIDDEN_MODULES = {"pickle", "dill", "cloudpickle", "shelve", "marshal", "yaml"}

each_room = pytest.mark.parametrize("room", rooms())


@functools.cache
def trees() -> dict[str, ast.Module]:
    """Return every module of the package, parsed once for all rules."""
    return {
        module_name(path): ast.parse(path.read_text("utf-8"), filename=str(path))
        for path in sources()
    }


def test_a_module_says_what_it_gives() -> None:
    silent = [name for name, tree in trees().items() if not ast.get_docstring(tree)]
    assert not silent, f"without a docstring: {', '.join(silent)}"


def test_a_module_has_a_name() -> None:
    nameless = [module_name(path) for path in sources() if path.stem in NAMELESS]
    assert not nameless, f"rooms without a name, say what they hold: {', '.join(nameless)}"


def test_public_functions_and_classes_are_documented() -> None:
    silent = [
        f"{name}.{node.name}"
        for name, tree in trees().items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert not silent, f"without a docstring: {', '.join(silent)}"


def runs_text(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the lines of a module that run text as code or read files that can."""
    for node in ast.walk(tree):
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
        for name in names:
            if name in FORBIDDEN_CALLS or name.partition(".")[0] in FORBIDDEN_MODULES:
                yield node.lineno, name


def test_no_text_is_ever_run_as_code() -> None:
    found = [
        f"{name}:{line}: {used}" for name, tree in trees().items() for line, used in runs_text(tree)
    ]
    assert not found, "; ".join(found)


def test_what_runs_text_is_found() -> None:
    text = "import pickle\nmodel.eval()\neval(text)\nfrom yaml import load\nx.sympify('1')\n"
    assert sorted(line for line, _ in runs_text(ast.parse(text))) == [1, 3, 4, 5]


def test_arrays_from_files_are_read_without_pickle() -> None:
    allowed = [
        f"{name}:{node.value.lineno}"
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword)
        and node.arg == "allow_pickle"
        and not (isinstance(node.value, ast.Constant) and node.value.value is False)
    ]
    assert not allowed, ", ".join(allowed)


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
