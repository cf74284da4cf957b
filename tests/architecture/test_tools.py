"""What the tools promise about the source is part of the test suite."""

from __future__ import annotations

import subprocess
import sys

import pytest
from source_tree import ROOT


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", "--no-cache", "."),
        ("ruff", "format", "--no-cache", "--check", "."),
        # As this interpreter sees it: stubs of other packages may need its syntax.
        ("mypy", "--python-version", ".".join(map(str, sys.version_info[:2]))),
    ],
    ids=["lint", "format", "types"],
)
def test_the_source_is_clean(command: tuple[str, ...]) -> None:
    finished = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
