r"""A course of submissions in mixed formats, with mistakes and attempts to cheat, by a script.

    python tests/assignments/course.py FOLDER 100

writes the assignment and 100 submissions; each student's name says what is wrong with the answers.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable
from importlib import resources
from pathlib import Path

RIGHT = {
    "1a": r"It suffices that $r \geq 8$.",
    "1b": r"Let $q = \beta(k_a + k_b)$ with $\beta \gg 0$. Then $$\begin{aligned} k_a^\top q &="
    r" \beta k_a^\top k_a + \beta k_a^\top k_b = \beta \\ k_b^\top q &= \beta + 0 = \beta"
    r" \end{aligned}$$",
    "1c": r"\[ \alpha_a = \frac{\exp(\beta)}{n - 2 + 2\exp(\beta)} \]",
    "1d": r"$q = \beta (\mu_a + \mu_b)$",
    "1e": "This is false.",
    "1f": r"$q_1 = \beta \mu_a$ and $q_2 = \beta\mu_b$",
    "2a": r"$P \, \operatorname{softmax}(A) \, P^\top$",
    "2b": "no",
    "1g": "It comes close to $v_j$.",
    "1h": "They add up to $1$.",
    "1i": "It jumps between v_a and v_b.",
    "1j": "This is true.",
    "1k": "One head stays calm when the other does not.",
    "2c": r"$P \operatorname{softmax}(X W X^\top) X$",
    "2d": "Dog bites man, man bites dog.",
    "2e": "They do: every place has its own.",
    "3a": "From the texts.",
    "3b": "Users cannot tell which answers to trust.",
    "3c": "It guesses by the sound of the name.",
    "4a": r"$\beta u_a$",
    "4b": "true",
    "4c": r"$K = \beta^2 (u_d u_d^\top + u_c u_c^\top)$,"
    r" $Q = \beta^2 (u_d u_a^\top + u_c u_d^\top)$ and $V = u_b u_b^\top - u_c u_c^\top$.",
}
"""Every answer right; those in words a person reads."""
POINTS = 24.0


def markdown(answers: dict[str, str]) -> str:
    return "# My answers\n\n" + "\n\n".join(f"## {key}\n\n{text}" for key, text in answers.items())


def latex(answers: dict[str, str]) -> str:
    body = "\n".join(f"\\section*{{Question {key}}}\n{text}\n" for key, text in answers.items())
    return f"\\documentclass{{article}}\n\\begin{{document}}\n{body}\\end{{document}}\n"


def notebook(answers: dict[str, str]) -> str:
    cells = [
        {"cell_type": "markdown", "metadata": {"tags": [key]}, "source": [text]}
        for key, text in answers.items()
    ]
    cells.append({"cell_type": "code", "metadata": {}, "source": "raise SystemExit", "outputs": []})
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def toml(answers: dict[str, str]) -> str:
    rows = "\n".join(f"'{key}' = '''{text}'''" for key, text in answers.items())
    return f"[answers]\n{rows}\n"


FORMATS: dict[str, Callable[[dict[str, str]], str]] = {
    "answers.md": markdown, "answers.tex": latex, "answers.ipynb": notebook, "answers.toml": toml,
}  # fmt: skip

CHANGES: dict[str, dict[str, str | None]] = {
    "right": {},
    "other-letters": {"1b": r"$q = \gamma (k_a + k_b)$", "1d": r"$q = 12(\mu_b + \mu_a)$"},
    "plain-letters": {"1b": "q = β(k_a + k_b)", "1c": "exp(β)/(n - 2 + 2exp(β))", "1a": "r ≥ 8."},
    "no-scale": {"1b": "$q = k_a + k_b$", "1d": r"$q = \mu_a + \mu_b$"},
    "wrong-sign": {"1b": r"$q = \beta(k_a - k_b)$"},
    "one-key": {"1b": r"$q = \beta k_a$", "1f": r"$q_1 = \beta\mu_a$, $q_2 = \beta\mu_a$"},
    "wrong-weight": {"1c": r"$\frac{\exp(\beta)}{n + 2\exp(\beta)}$"},
    "weak-condition": {"1a": r"$r \geq 2$"},
    "missing": {"1b": None, "1c": None},
    "broken": {"1b": r"$q = \beta(k_a + k_b$"},
    "two-readings": {"1b": r"$q = \beta k_a' + \beta k_b'$"},
    "both-options": {"2b": "yes and no"},
    "wrong-verdict": {"1e": "true", "2b": "yes"},
    "no-transpose": {"2a": r"$P\,\operatorname{softmax}(A)$"},
    "false-step": {
        "1b": r"$q = \beta(k_a + k_b)$, since $k_a^\top q = 2\beta = \beta + \beta$",
    },
    "cheat-tolerance": {"1b": r"$q = k_a + k_b \text{ within } 0.9$"},
    "cheat-impossible": {"1a": "$1 = 0$"},
    "cheat-conclusion": {"1a": r"$\alpha_j \geq 0.99$"},
    "cheat-circle": {"1c": r"$\alpha_a$"},
    "cheat-true": {"1b": "$1 = 1$", "1c": "$1 = 1$", "2a": "$1 = 1$"},
    "cheat-repeat": {
        "2a": r"$1 \cdot \operatorname{softmax}(P (A P^\top))$",
        "2c": r"$\operatorname{softmax}((P X) W (P X)^\top) P X$",
    },
    "cheat-definition": {
        "1a": r"$\frac{\exp(k_j^\top q)}{\sum_i \exp(k_i^\top q)} \geq 0.99$",
        "1c": r"$\frac{\exp(k_a^\top q)}{\sum_j \exp(k_j^\top q)}$",
    },
    "cheat-values": {"1b": r"$q = 20 (v_a + v_b)$", "1d": r"$q = \beta (k_a + k_b)$"},
    "cheat-same-heads": {"1f": r"$q_1 = \beta(\mu_a + \mu_b)$, $q_2 = \beta \mu_a + \beta \mu_b$"},
    "cheat-narrow": {"1a": "$r = 20$", "2b": "I would not say no."},
    "cheat-zero-width": {"1c": "$\\al\u200bpha_a$", "1h": "`al\u200bpha_a / alpha_a`"},
    "cheat-huge": {"1b": r"$q = 10^{300} k_a$", "1c": r"$10^{10^{10}} / 10^{10^{10}} / 2$"},
    "cheat-vacuous": {"1a": r"$r \geq 8 \text{ and } r \leq 7$", "4a": r"$\frac{u_a}{0}$"},
}
"""What each kind of student changes; None: not answered."""
SHEETS = {
    "cheat-sheet": '[[claim]]\nid = "1b"\nquery = "k_a + k_b"\nkeys = "orthonormal"\n'
    'where = { n = [2] }\ntolerance = 0.9\nexpect = "1 = 1"\n',
    "cheat-setting": '[[claim]]\nid = "1b"\nquery = "k_a"\nwhere = { n = 2 }\nexpect = "1 = 1"\n'
    '[[question]]\nid = "1b"\nopen = "text"\npoints = 99\n',
}
"""Sheets that try to bring their own setting."""


def hostile(folder: Path) -> None:
    """Write submissions that no reader should trip over."""
    (folder / "latin-1").mkdir()
    (folder / "latin-1" / "answers.md").write_bytes("## 1b\nRésumé".encode("latin-1"))
    (folder / "empty").mkdir()
    (folder / "broken.zip").write_bytes(b"PK\x03\x04 not an archive")
    (folder / "deep.ipynb").write_text("[" * 5000, "utf-8")
    (folder / "tex-commands").mkdir()
    (folder / "tex-commands" / "a.tex").write_text(
        "\\input{/etc/passwd}\n\\write18{ls}\n\\section*{1b} $q = \\input{x}$\n", "utf-8"
    )
    with zipfile.ZipFile(folder / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("answers.md", b" " * 3_000_000)
        archive.writestr("../../outside.md", "## 1b\n$q = k_a$")
        archive.writestr("small.md", "## 2b\nno\n")


def write_course(folder: Path, count: int) -> Path:
    """Write the assignment and its submissions; return the folder of the submissions."""
    folder.mkdir(parents=True, exist_ok=True)
    text = (resources.files("heedful.assignments") / "attention.toml").read_text("utf-8")
    (folder / "assignment.toml").write_text(text, "utf-8")
    students = folder / "students"
    students.mkdir()
    kinds = [*CHANGES, *SHEETS]
    for number in range(count):
        kind = kinds[number % len(kinds)]
        name = f"{number:03d}-{kind}"
        if kind in SHEETS:
            (students / f"{name}.toml").write_text(SHEETS[kind], "utf-8")
            continue
        changed = {**RIGHT, **CHANGES[kind]}
        answers = {key: text for key, text in changed.items() if text is not None}
        file = list(FORMATS)[number // len(kinds) % len(FORMATS)]
        content = FORMATS[file](answers)
        if number % 5 == 4:
            with zipfile.ZipFile(students / f"{name}.zip", "w") as archive:
                archive.writestr(f"work/{file}", content)
        else:
            (students / name).mkdir()
            (students / name / file).write_text(content, "utf-8")
    hostile(students)
    return students


if __name__ == "__main__":
    write_course(Path(sys.argv[1]), int(sys.argv[2]))
