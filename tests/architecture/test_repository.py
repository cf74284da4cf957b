"""The repository as a whole: one version, dependencies with a reason, no trace of a machine."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from source_tree import PACKAGE, ROOT, repository_files

import heedful

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
REQUIREMENTS = sorted(
    {
        re.split(r"[\[<>=!~ ;]", requirement)[0]
        for requirements in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
        for requirement in requirements
    }
)
# Paths of somebody's machine, and addresses from which somebody's machine installs.
TRACES = re.compile(
    r"(?<![\w.~$}>-])/(?:work|root|home|Users)/\w"
    r"|index-url|/simple/|pythonhosted\.org|registry\.npmjs|/site-packages/"
)


def test_the_version_is_written_in_one_place() -> None:
    number = heedful.__version__
    assert importlib.metadata.version("heedful") == number
    assert "version" not in PROJECT
    assert PROJECT["dynamic"] == ["version"]
    written = [
        path.name for path in PACKAGE.rglob("*.py") if f'"{number}"' in path.read_text("utf-8")
    ]
    assert written == ["__init__.py"]


@pytest.mark.parametrize("package", REQUIREMENTS)
def test_every_dependency_has_a_reason(package: str) -> None:
    page = (ROOT / "docs" / "decisions" / "dependencies.md").read_text("utf-8")
    assert f"`{package}`" in page, f"say in docs/decisions/dependencies.md what {package} is for"


def test_no_file_knows_a_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in repository_files()
        if path != Path(__file__)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if TRACES.search(line)
    ]
    assert not found, "\n".join(found)


def test_the_two_torch_bounds_are_one() -> None:
    (wanted,) = (line for line in PROJECT["optional-dependencies"]["models"] if "torch>" in line)
    constraints = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert [line for line in constraints if not line.startswith("#")] == [wanted]


def test_decisions_are_numbered_without_gaps() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))


def test_make_targets_are_described() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.+)$", text, re.MULTILINE)
    described = set(re.findall(r"^([a-z-]+):.*## \S", text, re.MULTILINE))
    assert set(phony.split()) == described


def test_the_map_shows_what_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    drawn = text.split("```")[1]
    folders: list[str] = []
    for line in filter(str.strip, drawn.splitlines()):
        name = line.split()[0]
        folders = folders[: (len(line) - len(line.lstrip())) // 2]
        assert (ROOT / "".join(folders) / name).exists(), f"ARCHITECTURE.md shows {name}"
        if name.endswith("/"):
            folders.append(name)
    for room in PACKAGE.glob("*/__init__.py"):
        assert f"  {room.parent.name}/ " in drawn, f"ARCHITECTURE.md lacks {room.parent.name}"
