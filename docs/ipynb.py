"""The notebooks as `.ipynb`, made from the plain Python files beside them.

    python docs/ipynb.py --check      exit 1 where a notebook is not what its Python file gives
    python docs/ipynb.py --write      make them again

The Python file is the source: people read its changes. No outputs are stored: they would be figures
without a date and machine, differ between machines, and hide from a reader whether a cell was run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":  # the folder of the script: `numbers.py` there hides Python's own
    sys.path.remove(str(HERE))

import jupytext  # noqa: E402

FOLDER = HERE / "notebooks"


def sources() -> list[Path]:
    """Return the notebooks as Python files."""
    return sorted(FOLDER.glob("*.py"))


def rendered(source: Path) -> str:
    """Return the text of the `.ipynb` of a Python file: the same for the same file."""
    notebook = jupytext.read(source)
    notebook.metadata.pop("jupytext", None)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"  # random by default
    return str(jupytext.writes(notebook, "ipynb")).rstrip() + "\n"


def main() -> int:
    """Check or write every notebook."""
    parser = argparse.ArgumentParser(description="Make the .ipynb of every notebook.")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", action="store_true", help="compare, change nothing")
    mode.add_argument("--write", action="store_true", help="write what differs")
    options = parser.parse_args()
    wrong = 0
    for source in sources():
        target = source.with_suffix(".ipynb")
        if target.is_file() and target.read_text("utf-8") == rendered(source):
            continue
        print(f"{target.name}: {'written' if options.write else 'is not what the .py gives'}")
        wrong += not options.write
        if options.write:
            target.write_text(rendered(source), encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
