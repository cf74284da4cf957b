"""The notebooks run from the first cell to the last, at a size where little is learned."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))


def test_there_are_three() -> None:
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path) -> None:
    small = {"HEEDFUL_STEPS": "4", "HEEDFUL_QUICK": "1", "TMPDIR": str(tmp_path)}
    finished = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", str(notebook)],
        cwd=tmp_path,
        env={**os.environ, **small, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.strip()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_made_of_cells_that_jupytext_reads(notebook: Path) -> None:
    lines = notebook.read_text("utf-8").splitlines()
    assert lines[0] == "# ---"
    assert "#       format_name: percent" in lines
    cells = [line for line in lines if line.startswith("# %%")]
    assert cells[0] == "# %% [markdown]"
    assert cells.count("# %%") >= 4
