"""What is handed out: the questions as Markdown, LaTeX, a notebook or TOML, and Gradescope's zip.

Every template is read back by `submission` with every question found under its label.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

from heedful.assignments.assignment import KINDS, Assignment, AssignmentQuestion
from heedful.errors import InputError

_HOW = {
    "query": "q = ",
    "heads": "q_1 = ",
    "number": "answer = ",
    "matrix": "answer = ",
}
_TEX_SPECIAL = str.maketrans({"&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "^": r"\^{}"})
MOST_WHEELS = 400
"""Bytes of an autograder are the instructor's own; their number is bounded all the same."""


def template_text(assignment: Assignment, suffix: str) -> str:
    """Return a template with the ending of its file: .md, .tex, .ipynb or .toml."""
    match suffix:
        case ".md":
            return _markdown(assignment)
        case ".tex":
            return _latex(assignment)
        case ".ipynb":
            return _notebook(assignment)
        case ".toml":
            return _toml(assignment)
    raise InputError(
        "--to",
        f"{suffix or 'a name without ending'} is no template",
        expected=".md, .tex, .ipynb, .toml",
    )


def _blank(question: AssignmentQuestion) -> str:
    return f"({KINDS[question.open]})"


def _markdown(assignment: Assignment) -> str:
    parts = [f"# {assignment.title}", assignment.text.strip(), "Name:"]
    for question in assignment.questions:
        parts.append(f"## {question.id}")
        parts.append(f"*{question.text.strip()}* ({question.points:g} points)")
        if question.options:
            parts.append("Options: " + " / ".join(f"*{option}*" for option in question.options))
        parts.append("**Answer:**")
    return "\n\n".join(part for part in parts if part) + "\n"


def _latex(assignment: Assignment) -> str:
    lines = [
        r"\documentclass{article}",
        r"\usepackage{amsmath, amssymb}",
        r"\begin{document}",
        rf"\title{{{assignment.title.translate(_TEX_SPECIAL)}}} \maketitle",
    ]
    for question in assignment.questions:
        text = question.text.strip().translate(_TEX_SPECIAL)
        lines += [
            rf"\section*{{{question.id}}}",
            rf"\emph{{{text}}} ({question.points:g} points)",
            "",
            r"\textbf{Answer:}",
            "",
        ]
    return "\n".join([*lines, r"\end{document}", ""])


def _notebook(assignment: Assignment) -> str:
    def cell(text: str, tag: str = "") -> dict[str, object]:
        metadata = {"tags": [tag]} if tag else {}
        return {"cell_type": "markdown", "metadata": metadata, "source": text.splitlines(True)}

    cells = [cell(f"# {assignment.title}\n\n{assignment.text.strip()}")]
    for question in assignment.questions:
        cells.append(cell(f"## {question.id}\n\n*{question.text.strip()}*"))
        cells.append(cell("**Answer:**", question.id))
    document = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _toml(assignment: Assignment) -> str:
    lines = [f"# {assignment.title}", "", "[answers]"]
    for question in assignment.questions:
        lines += [f"# {row}" for row in question.text.strip().splitlines()]
        lines += [f"# {KINDS[question.open]}", f"\"{question.id}\" = ''''''"]
    return "\n".join(lines) + "\n"


SETUP = """#!/usr/bin/env bash
# Installs Heedful for the autograder: from the wheels beside this file, without the network.
set -euo pipefail
cd /autograder/source
if [ -d wheels ]; then
  python3 -m pip install --no-index --find-links wheels heedful
else
  python3 -m pip install heedful
fi
"""
RUN = """#!/usr/bin/env bash
# Grades one submission: /autograder/submission in, /autograder/results/results.json out.
set -uo pipefail
root="${{AUTOGRADER_ROOT:-/autograder}}"
mkdir -p "$root/results"
if ! heed assignment grade "$root/source/assignment.toml" "$root/submission" \\
    --gradescope "$root/results/results.json" --feedback {feedback} > "$root/results/stdout" 2>&1
then
  printf '%s' '{{"score": 0, "output": "It could not be graded; a person will look."}}' \\
    > "$root/results/results.json"
fi
"""


def autograder_zip(assignment: Path, wheels: Path | None, feedback: str) -> bytes:
    """Return the zip that Gradescope takes: setup.sh, run_autograder, assignment, wheels."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (("setup.sh", SETUP), ("run_autograder", RUN.format(feedback=feedback))):
            member = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            member.external_attr = 0o100755 << 16
            archive.writestr(member, text)
        archive.writestr("assignment.toml", assignment.read_bytes())
        if wheels is not None:
            files = sorted(wheels.glob("*.whl"))
            if not files or len(files) > MOST_WHEELS:
                raise InputError("--wheels", f"{wheels} holds {len(files)} wheels", expected="some")
            for file in files:
                archive.write(file, f"wheels/{file.name}")
    return buffer.getvalue()
