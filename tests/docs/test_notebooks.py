"""The notebooks run from the first cell to the last, at a size where little is learned."""

from __future__ import annotations

from pathlib import Path

import console
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))


def test_there_are_three() -> None:
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path) -> None:
    small = {"HEEDFUL_STEPS": "4", "HEEDFUL_QUICK": "1", "TMPDIR": str(tmp_path)}
    output, code = console.PREPARED.run(
        str(notebook), [], tmp_path, environment=small, errors=("DeprecationWarning",), seconds=600
    )
    assert code == 0, output
    assert output.strip()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_made_of_cells_that_jupytext_reads(notebook: Path) -> None:
    lines = notebook.read_text("utf-8").splitlines()
    assert lines[0] == "# ---"
    assert "#       format_name: percent" in lines
    cells = [line for line in lines if line.startswith("# %%")]
    assert cells[0] == "# %% [markdown]"
    assert cells.count("# %%") >= 4
