"""Assignments: what is open is taken, what is locked stays locked, and every file is survived."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from course import CHANGES, FORMATS, POINTS, RIGHT, SHEETS, write_course

from heedful.assignments import (
    Assignment,
    CourseGrades,
    StudentAnswer,
    Submission,
    find_submissions,
    grade,
    grade_text,
    load_assignment,
    read_submission,
)
from heedful.assignments.assignment import (
    assignment_of,
    autograder_zip,
    handout_text,
    template_text,
)
from heedful.assignments.grading import check_solutions, pick
from heedful.assignments.submission import formulas_in
from heedful.errors import FormulaError, InputError
from heedful.views.assignments import (
    canvas_table,
    course_page,
    gradescope_text,
    read_roster,
    student_page,
    tables,
)
from heedful.workers import TaskLimits

READY = Path(sys.modules["heedful"].__file__ or "").parent / "assignments" / "attention.toml"


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> CourseGrades:
    folder = tmp_path_factory.mktemp("course")
    students = write_course(folder, len(CHANGES) + len(SHEETS))
    assignment = load_assignment(folder / "assignment.toml")
    patient = TaskLimits(seconds=120)  # a busy machine is slow, and not wrong
    return grade(assignment, find_submissions(students), workers=2, limits=patient)


def of(course: CourseGrades, kind: str) -> dict[str, float]:
    (student,) = [one for one in course.students if one.student.endswith(kind)]
    return {one.question: one.points for one in student.grades}


def test_every_solution_of_the_ready_assignment_earns_its_points() -> None:
    assignment = load_assignment(READY)
    (solutions,) = check_solutions(assignment, workers=2).students
    for question, earned in zip(assignment.questions, solutions.grades, strict=True):
        assert earned.points == (question.points if question.solution else 0), earned.question


def test_a_handout_has_every_question_and_no_solution() -> None:
    text = handout_text(READY.read_text("utf-8"))
    handout, ready = assignment_of(text), load_assignment(READY)
    assert "solution" not in text
    assert all(not question.solution for question in handout.questions)
    for given, own in zip(handout.questions, ready.questions, strict=True):
        assert (given.id, given.text, given.points) == (own.id, own.text, own.points)
        assert repr(given.claim) == repr(own.claim)
    with pytest.raises(InputError, match="handout"):
        grade(handout, [])


@pytest.mark.parametrize("suffix", [".md", ".tex", ".ipynb", ".toml"])
def test_every_question_of_a_template_is_found_again(tmp_path: Path, suffix: str) -> None:
    assignment = load_assignment(READY)
    file = tmp_path / f"answers{suffix}"
    file.write_text(template_text(assignment, suffix), "utf-8")
    assert read_submission(file, assignment).missing == ()


@pytest.mark.parametrize("name", FORMATS)
def test_answers_are_found_in_every_format(tmp_path: Path, name: str) -> None:
    assignment = load_assignment(READY)
    (tmp_path / name).write_text(FORMATS[name](RIGHT), "utf-8")
    read = read_submission(tmp_path, assignment)
    assert read.missing == ()
    assert read.read == (name,)
    _every_formula_is_picked(assignment, read)


def test_answers_in_plain_letters_are_found_in_every_format(tmp_path: Path) -> None:
    assignment = load_assignment(READY)
    plain = {key: text or "" for key, text in CHANGES["plain-letters"].items()}
    for name, written in FORMATS.items():
        (tmp_path / name).write_text(written({**RIGHT, **plain}), "utf-8")
        _every_formula_is_picked(assignment, read_submission(tmp_path / name, assignment))


def _every_formula_is_picked(assignment: Assignment, read: Submission) -> None:
    for question in assignment.questions:
        if question.open not in ("text", "choice", "verdict"):
            picked, found, _ = pick(question, read.answers[question.id])
            assert picked.formulas, question.id
            assert not any(one.problem for one in found), question.id


LABELLED = [
    "# Problem 1\n**(b)** $q = k_a$\n",
    "1. Something\n\n(b) $q = k_a$\n",
    "## Question 1(b)\n$q = k_a$\n",
    "### 1.b)\n$q = k_a$\n",
    "**1b** $q = k_a$\n",
]


@pytest.mark.parametrize(
    "line", ["By setting $q = k_b$ we win.", "I. e. $q = k_b$", "A simple query is enough."]
)
def test_a_sentence_is_no_label(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.md").write_text(f"## 1d\n{line}\n", "utf-8")
    assert list(read_submission(tmp_path, load_assignment(READY)).answers) == ["1d"]


@pytest.mark.parametrize("text", LABELLED)
def test_labels_as_people_write_them(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.md").write_text(text, "utf-8")
    answer = read_submission(tmp_path, load_assignment(READY)).answers["1b"]
    assert [formula for formula, _ in formulas_in(answer.text)] == ["q = k_a"]


def test_a_right_answer_earns_everything(graded: CourseGrades) -> None:
    for kind in ("-right", "other-letters", "plain-letters"):
        assert sum(of(graded, kind).values()) == POINTS, kind


def test_a_wrong_answer_loses_the_points_of_its_question_only(graded: CourseGrades) -> None:
    full = of(graded, "-right")
    for kind, changed in CHANGES.items():
        if kind in ("right", "other-letters", "plain-letters", "false-step"):
            continue
        earned = of(graded, f"-{kind}")
        for question, points in earned.items():
            if question in changed:
                assert points < full[question], f"{kind}, {question}"
            else:
                assert points == full[question], f"{kind}, {question}"


def test_no_attempt_to_cheat_earns_more_than_the_answer_itself(graded: CourseGrades) -> None:
    plain = of(graded, "no-scale")["1b"]
    assert of(graded, "cheat-tolerance")["1b"] <= plain
    assert of(graded, "cheat-sheet")["1b"] <= plain
    assert of(graded, "cheat-setting")["1b"] == 0
    (student,) = [one for one in graded.students if one.student.endswith("cheat-sheet")]
    assert any("are ignored: the assignment sets them" in note for note in student.submission.notes)


HIDDEN = {
    "a.md": "## 1c\n<!-- $1/2$ -->\nI do not know.",
    "b.md": "## 1c\n[//]: # ($1/2$)\nHm.\n<p style='display: none'>$1/2$</p>",
    "a.tex": "\\section*{1c}\n% $1/2$\n\\iffalse $1/2$ \\fi\n\\begin{comment}$1/2$\\end{comment}Hm",
    "a.ipynb": json.dumps({"cells": [
        {"cell_type": "markdown", "metadata": {"tags": ["1c"]}, "source": "Hm. <!-- $1/2$ -->"},
        {"cell_type": "raw", "metadata": {"tags": ["1c"]}, "source": "$1/2$"},
    ]}),
}  # fmt: skip


@pytest.mark.parametrize("name", HIDDEN)
def test_what_a_reader_does_not_see_is_no_answer(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(HIDDEN[name], "utf-8")
    read = read_submission(tmp_path, load_assignment(READY))
    assert read.answers["1c"].formulas == ()
    assert any("ignored" in note for note in read.notes)


def test_hidden_text_is_found_in_time_that_grows_with_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("## 1c\n" + "<a " * 300_000, "utf-8")
    assert "1c" in read_submission(tmp_path, load_assignment(READY)).answers


@pytest.mark.parametrize(
    "text",
    [r"q \in \mathbb{R}^d", r"k_a \sim \mathcal{N}(\mu_a, \Sigma_a)", r"\{k_1, \dots, k_n\}"],
)
def test_a_declaration_is_named_and_left_out(text: str) -> None:
    question = load_assignment(READY).question("1b")
    assert question is not None
    said = f"Let ${text}$ and $q = \\beta (k_a + k_b)$."
    answer = StudentAnswer(question="1b", file="a.md", line=1, text=said)
    picked, read, _ = pick(question, answer)
    assert list(picked.formulas) == ["q"]
    assert "states nothing" in read[0].skipped


def test_a_forgotten_scale_earns_its_part(graded: CourseGrades) -> None:
    assert of(graded, "no-scale")["1b"] == 1.0


def test_the_first_step_that_does_not_follow_is_named(graded: CourseGrades) -> None:
    (student,) = [one for one in graded.students if one.student.endswith("false-step")]
    (answer,) = [one for one in student.grades if one.question == "1b"]
    assert answer.first_wrong == "k_aᵀ q = 2 β"
    assert answer.points == answer.of


def test_hostile_files_stop_nobody_and_are_named(graded: CourseGrades) -> None:
    read = {one.student: one.submission for one in graded.students}
    assert read["latin-1"].ignored == (("answers.md", "cannot be read (it is not UTF-8)"),)
    assert read["empty"].read == ()
    assert read["broken"].ignored
    assert read["deep"].ignored
    reasons = dict(read["bomb"].ignored)
    assert "zip bomb" in reasons["answers.md"]
    assert "outside" in reasons["../../outside.md"]
    assert list(read["bomb"].answers) == ["2b"]
    assert any("\\write18" in note for note in read["tex-commands"].notes)


def test_pages_and_tables_say_what_was_read(graded: CourseGrades) -> None:
    (student,) = [one for one in graded.students if one.student.endswith("no-scale")]
    page = student_page(graded, student, "full")
    assert "Your answer was read as" in page
    assert "<script" not in page
    assert "Where it fails" in page
    assert "Where it fails" not in student_page(graded, student, "hint")
    assert "Hint:" not in student_page(graded, student, "verdict")
    assert "000-right" in course_page(graded, {})
    grades = tables(graded)["grades.csv"]
    assert grades.startswith("\ufeff")
    rows = list(csv.DictReader(grades.removeprefix("\ufeff").splitlines()))
    assert len(rows) == len(graded.students)
    assert float(rows[0]["points"]) == POINTS


def test_canvas_gets_the_ids_of_its_roster(graded: CourseGrades) -> None:
    text = (
        "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section\r\n"
        "    Points Possible,,,,\r\n"
        '"Lee, Ann",77,u1,000-right,S1\r\n"Ray, Bob",78,u2,bob,S1\r\n'
    )
    canvas, strangers = canvas_table(graded, read_roster(text))
    rows = list(csv.DictReader(canvas.removeprefix("\ufeff").splitlines()))
    title = graded.assignment.title
    assert [(row["ID"], row["SIS User ID"], row[title]) for row in rows] == [
        ("77", "u1", f"{POINTS:g}"), ("78", "u2", ""),
    ]  # fmt: skip
    assert len(strangers) == len(graded.students) - 1
    with pytest.raises(InputError, match="Student"):
        read_roster("name,id\nAnn,3\n")


def test_a_cell_of_a_notebook_can_grade_one_answer() -> None:
    earned = grade_text(READY, "1c", r"$\frac{\exp(\beta)}{n - 2 + 2 \exp(\beta)}$")
    assert (earned.points, earned.word) == (1, "proved")
    with pytest.raises(InputError):
        grade_text(READY, "9z", "$1$")


def test_gradescope_gets_a_result_of_its_form(tmp_path: Path) -> None:
    for name in ("source", "submission", "results"):
        (tmp_path / name).mkdir()
    archive = tmp_path / "autograder.zip"
    archive.write_bytes(autograder_zip(READY, None, "hint"))
    with zipfile.ZipFile(archive) as opened:
        assert {"setup.sh", "run_autograder", "assignment.toml"} <= set(opened.namelist())
        opened.extractall(tmp_path / "source")
    (tmp_path / "submission" / "a.md").write_text("## 2b\nno\n\n## 1e\ntrue\n", "utf-8")
    import os

    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "AUTOGRADER_ROOT": str(tmp_path), "PATH": path}
    subprocess.run(
        ["bash", str(tmp_path / "source" / "run_autograder")], env=environment, check=True
    )
    result = json.loads((tmp_path / "results" / "results.json").read_text("utf-8"))
    assert result["score"] == sum(test["score"] for test in result["tests"]) == 1.0
    assert all(0 <= test["score"] <= test["max_score"] for test in result["tests"])


def test_gradescope_takes_one_student(graded: CourseGrades) -> None:
    with pytest.raises(ValueError, match="unpack"):
        gradescope_text(graded, "hint")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[question]]\nid = "1"\nopen = "song"\n', "one of query"),
        ('[[question]]\nid = "1"\nopen = "statement"\n', "1 = 1"),
        ('[[question]]\nid = "1"\nopen = "query"\n', "nothing is expected"),
        ('[[question]]\nid = "1"\nopen = "query"\nexpect = "x = = 1"\n', "question.expect"[:0]),
        ('[[question]]\nid = "1"\nopen = "choice"\noptions = ["a"]\n', "options"),
        ("title = 3\n", "question"),
        ('[[question]]\nid = "1"\nopen = "text"\npoints = -1\n', "from 0"),
    ],
)
def test_a_wrong_assignment_is_refused_at_its_line(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "assignment.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(FormulaError) as refused:
        load_assignment(file)
    assert says in str(refused.value)
    assert refused.value.line is not None
