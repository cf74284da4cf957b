"""`heed assignment`: questions to hand out, answers to grade."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from heedful.cli.options import JsonFlag, show, verb_group
from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.assignments import CourseGrades

app = verb_group("assignment", "Questions with locked settings: hand them out, grade the answers.")

Feedback = Literal["verdict", "hint", "full"]
AssignmentPath = Annotated[Path, Parameter(help="The assignment, a TOML file.")]


@app.command
def new(
    path: Annotated[Path, Parameter(help="The file to write.")] = Path("assignment.toml"),
) -> int:
    """Write a ready assignment about attention, to be changed as you like.

    Examples:

        heed assignment new
        heed assignment new week4.toml
    """
    from importlib import resources

    from heedful.files import write_atomic

    if path.exists():
        raise InputError(str(path), "is there already", expected="a new file")
    text = (resources.files("heedful.assignments") / "attention.toml").read_text("utf-8")
    write_atomic(path, text)
    print(f"wrote {path}")
    return 0


@app.command
def check(
    path: AssignmentPath,
    *,
    workers: Annotated[int | None, Parameter(help="Number of processes.")] = None,
    json: JsonFlag = False,
) -> int:
    """Check an assignment: every question can be read, and its solution earns every point.

    Exit code 1 if a solution does not.

    Examples:

        heed assignment check assignment.toml
    """
    from heedful.assignments import load_assignment
    from heedful.assignments.grading import check_solutions
    from heedful.progress import meter
    from heedful.views.assignments import solution_blocks

    assignment = load_assignment(path)
    with meter("judging solutions") as step:
        grades = check_solutions(assignment, workers=workers, progress=step)
    show(grades, solution_blocks, json=json)
    (student,) = grades.students
    answered = {question.id for question in assignment.questions if question.solution}
    poor = [
        grade for grade in student.grades if grade.question in answered and grade.points < grade.of
    ]
    return 1 if poor else 0


@app.command
def template(
    path: AssignmentPath,
    *,
    to: Annotated[Path, Parameter(help="The file to write: .md, .tex, .ipynb or .toml.")],
) -> int:
    """Write a template for students: the questions with room for their answers.

    Examples:

        heed assignment template assignment.toml --to answers.md
        heed assignment template assignment.toml --to answers.ipynb
    """
    from heedful.assignments import load_assignment
    from heedful.assignments.assignment import template_text
    from heedful.files import write_atomic

    if to.exists():
        raise InputError(str(to), "is there already", expected="a new file")
    write_atomic(to, template_text(load_assignment(path), to.suffix))
    print(f"wrote {to}")
    return 0


@app.command
def handout(
    path: AssignmentPath,
    *,
    to: Annotated[Path, Parameter(help="The file to write, a TOML file.")],
) -> int:
    """Write the assignment without its solutions, to be worked on in the page of `heed serve`.

    Examples:

        heed assignment handout assignment.toml --to week4.toml
    """
    from heedful.assignments.assignment import handout_text, load_assignment
    from heedful.files import write_atomic

    if to.exists():
        raise InputError(str(to), "is there already", expected="a new file")
    load_assignment(path)
    write_atomic(to, handout_text(path.read_text("utf-8-sig")))
    print(f"wrote {to}")
    return 0


@app.command
def grade(
    path: AssignmentPath,
    submissions: Annotated[Path, Parameter(help="A folder: one folder, zip or file a student.")],
    *,
    to: Annotated[Path | None, Parameter(help="Write pages and tables into this folder.")] = None,
    feedback: Annotated[
        Feedback, Parameter(help="What students see: the verdict, a hint, or everything.")
    ] = "hint",
    steps: Annotated[bool, Parameter(help="Check every step of a derivation.")] = True,
    seconds: Annotated[float, Parameter(help="Time limit for one claim.")] = 8.0,
    workers: Annotated[int | None, Parameter(help="Number of processes.")] = None,
    gradescope: Annotated[
        Path | None, Parameter(help="Also write Gradescope's results.json, for one submission.")
    ] = None,
    roster: Annotated[
        Path | None, Parameter(help="Canvas's gradebook as CSV: its ids go into canvas.csv.")
    ] = None,
    json: JsonFlag = False,
) -> int:
    """Grade submissions in Markdown, LaTeX, notebooks and TOML.

    Only what a question leaves open is taken from an answer; everything else is locked.

    Examples:

        heed assignment grade assignment.toml submissions/ --to graded
        heed assignment grade assignment.toml submissions/ --feedback full --no-steps
    """
    from heedful.assignments import find_submissions, grade, load_assignment
    from heedful.progress import meter
    from heedful.views.assignments import course_blocks
    from heedful.workers import TaskLimits

    assignment = load_assignment(path)
    alone = gradescope is not None
    found = [submissions] if alone or submissions.is_file() else find_submissions(submissions)
    people = _roster(roster)
    if to is not None and to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise InputError("--to", f"{to} is not empty", expected="a new folder")
    with meter("judging answers") as step:
        grades = grade(
            assignment,
            found,
            workers=workers,
            steps=steps,
            progress=step,
            limits=TaskLimits(seconds=seconds),
        )
    show(grades, course_blocks, json=json)
    if gradescope is not None:
        from heedful.files import write_atomic
        from heedful.views.assignments import gradescope_text

        write_atomic(gradescope, gradescope_text(grades, feedback))
    if to is not None:
        _write(grades, to, feedback, people)
    return 0


def _roster(path: Path | None) -> list[dict[str, str]]:
    if path is None:
        return []
    from heedful.views.assignments import read_roster

    try:
        return read_roster(path.read_text("utf-8-sig"))
    except (OSError, UnicodeError) as error:
        raise InputError("--roster", f"{path} cannot be read ({type(error).__name__})") from None


def _write(
    grades: CourseGrades, to: Path, feedback: Feedback, roster: list[dict[str, str]]
) -> None:
    from heedful.files import write_atomic
    from heedful.views.assignments import canvas_table, course_page, student_page, tables

    to.mkdir(parents=True, exist_ok=True)
    names: dict[str, str] = {}
    for number, student in enumerate(grades.students, 1):
        name = f"{number:03d}.html"
        names[student.student] = name
        write_atomic(to / name, student_page(grades, student, feedback))
    write_atomic(to / "index.html", course_page(grades, names))
    for name, text in tables(grades, roster).items():
        write_atomic(to / name, text)
    strangers = canvas_table(grades, roster)[1]
    if strangers:
        print(f"not in the roster: {', '.join(strangers)}", file=sys.stderr)
    print(f"wrote {len(names)} pages, index.html and tables into {to}", file=sys.stderr)


@app.command
def autograder(
    path: AssignmentPath,
    *,
    to: Annotated[Path, Parameter(help="The zip to write.")] = Path("autograder.zip"),
    wheels: Annotated[
        Path | None,
        Parameter(help="Wheels to install without the network; a new folder is filled with them."),
    ] = None,
    feedback: Annotated[Feedback, Parameter(help="What students see.")] = "hint",
) -> int:
    """Write a zip for Gradescope: the assignment, setup.sh and run_autograder.

    Examples:

        heed assignment autograder assignment.toml
        heed assignment autograder assignment.toml --wheels wheels/ --to week4.zip
    """
    from heedful.assignments import load_assignment
    from heedful.assignments.assignment import autograder_zip
    from heedful.files import write_atomic

    load_assignment(path)
    if wheels is not None and not wheels.exists():
        _fill_with_wheels(wheels)
    write_atomic(to, autograder_zip(path, wheels, feedback))
    print(f"wrote {to}")
    return 0


def _fill_with_wheels(folder: Path) -> None:
    """Put the wheels of Heedful and of what its core needs into a folder."""
    import json
    import subprocess
    from importlib.metadata import distribution
    from urllib.parse import unquote, urlparse

    from heedful.errors import RunError

    installed = distribution("heedful")
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    place = urlparse(origin.get("url", ""))
    source = unquote(place.path) if place.scheme == "file" else f"heedful=={installed.version}"
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", str(folder), source]
    print(f"filling {folder} with wheels (some minutes, about 200 MB)", file=sys.stderr)
    if subprocess.run(words, check=False).returncode:
        raise RunError("--wheels", "pip could not bring every wheel", hint=" ".join(words[1:]))
