"""The notebooks run from the first cell to the last, at a size where little is learned."""

from __future__ import annotations

import re
from pathlib import Path

import console
import ipynb
import numpy as np
import pytest

import heedful as h

NOTEBOOKS = ipynb.sources()


def test_there_are_four() -> None:
    assert len(NOTEBOOKS) == 4


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_ipynb_is_what_the_python_file_gives(notebook: Path) -> None:
    stored = notebook.with_suffix(".ipynb").read_text("utf-8")
    assert stored == ipynb.rendered(notebook), "run `python docs/ipynb.py --write`"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path) -> None:
    small = {"HEEDFUL_STEPS": "4", "HEEDFUL_QUICK": "1", "TMPDIR": str(tmp_path)}
    place = str(notebook.with_suffix(".ipynb"))
    output, code = console.PREPARED.run(
        place, [], tmp_path, environment=small, errors=("DeprecationWarning",), seconds=600
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


def test_the_last_hint_of_every_exercise_is_right() -> None:
    text = (ipynb.FOLDER / "exercises_decoder.py").read_text("utf-8")
    plain = re.sub(r"^# ?", "", text, flags=re.MULTILINE)
    solutions = re.findall(r"```python\n(.*?)```", plain, re.DOTALL)
    asked = re.findall(r"^check\((\w+)\)$", text, re.MULTILINE)
    assert len(solutions) == len(asked) == 9
    written: dict[str, object] = {"np": np}
    for solution in solutions:
        exec(solution, written)
    for name in asked:
        found = h.check_layer(written[name])
        assert found.right, (name, found.diagnosis)
