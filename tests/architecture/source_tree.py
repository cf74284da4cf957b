"""The source tree as the policies see it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "heedful"


def sources() -> list[Path]:
    """Return every Python file of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    """Return the dotted name under which a source file is imported."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def rooms() -> list[str]:
    """Return the dotted names of the packages directly inside heedful."""
    return sorted(f"heedful.{path.parent.name}" for path in PACKAGE.glob("*/__init__.py"))


def repository_files() -> list[Path]:
    """Return the text files that belong to the repository, found without asking git."""
    folders = ["src", "tests", "docs", "benchmarks", ".ci"]
    # In a git worktree, .git is a file that names its repository.
    found = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    for folder in folders:
        found += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    return sorted(
        path
        for path in found
        # `built` is git-ignored: the page, made of packages that others wrote.
        if not {"__pycache__", "_build", "node_modules", "built"} & set(path.parts)
        and path.suffix not in {".png", ".gz", ".npz", ".npy", ".woff2", ".safetensors"}
        and not path.name.startswith(".coverage")
    )


def python(code: str, *arguments: str) -> str:
    """Run Python code in a process of its own; return its output, or fail with its error."""
    finished = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout
