"""Every piece of Python in the documentation runs, and every session answers as shown."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import console
import pytest

FENCE = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pieces() -> list[Any]:
    """Return every fenced piece of Python, with the place it stands at as its id."""
    found = []
    for page in console.pages():
        text = page.read_text("utf-8")
        for match in FENCE.finditer(text):
            place = f"{page.relative_to(console.ROOT)}:{text.count(chr(10), 0, match.start()) + 1}"
            found.append(pytest.param(*match.groups(), id=place))
    return found


@pytest.mark.parametrize(("language", "code"), pieces())
def test_python_on_a_page_does_what_it_shows(language: str, code: str, tmp_path: Path) -> None:
    report = session(code) if language == "pycon" else program(code, tmp_path)
    assert not report, report


def session(code: str) -> str:
    """Run a `>>>` session in this process; return where it answers differently."""
    test = doctest.DocTestParser().get_doctest(code, {}, "session", None, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=report.append)
    return "".join(report)


def program(code: str, folder: Path) -> str:
    """Run a program in a process and a folder of its own; return its error."""
    file = folder / "program.py"
    file.write_text(code, encoding="utf-8")
    output, failed = console.PREPARED.run(str(file), [], folder, errors=("Warning",))
    return output if failed else ""
