"""Grades for other programs: spreadsheets, Canvas, Moodle, and Gradescope.

CSV begins with a byte order mark, without which a spreadsheet takes it for another encoding.
Names and answers come from strangers, so no cell may be taken for a formula.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence

from heedful.assignments import CourseGrades, Grade
from heedful.errors import InputError
from heedful.views.assignments import Feedback, grade_blocks
from heedful.views.blocks import Code, Formula, Text
from heedful.views.claims_exports import safe_cell

BYTE_ORDER_MARK = "\ufeff"


CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
"""The columns by which Canvas knows a student; its export of a gradebook has them."""
MOST_ROWS = 20_000
"""Of a roster."""


def read_roster(text: str) -> list[dict[str, str]]:
    """Read the students of a course from a CSV such as Canvas exports."""
    reader = csv.DictReader(io.StringIO(text.removeprefix(BYTE_ORDER_MARK)))
    columns = reader.fieldnames or []
    if not {"Student", "ID"} <= set(columns):
        raise InputError(
            "--roster",
            f"has the columns {', '.join(map(str, columns))[:80] or 'none'}",
            expected="a CSV with the columns Student and ID, as Canvas exports it",
        )
    rows = [{name: (row.get(name) or "").strip() for name in CANVAS} for row in reader]
    kept = [row for row in rows if row["Student"] and row["Student"] != "Points Possible"]
    if not 1 <= len(kept) <= MOST_ROWS:
        raise InputError("--roster", f"has {len(kept)} students", expected=f"1 to {MOST_ROWS:,}")
    return kept


def canvas_table(
    record: CourseGrades, roster: Sequence[Mapping[str, str]] = ()
) -> tuple[str, tuple[str, ...]]:
    """Return the table for Canvas, and the submissions that belong to nobody in the roster.

    A submission is a student's if it is called by the name, login or id of the student, or if
    the id stands in its name between underscores, as in the files that Canvas hands out.
    """
    title = record.assignment.title
    points = {one.student: f"{one.points:g}" for one in record.students}
    if not roster:
        rows = [(name, "", "", name, "", earned) for name, earned in points.items()]
        return _csv((*CANVAS, title), rows), ()
    left = dict(points)
    known: list[tuple[str, ...]] = []
    for person in roster:
        found = [name for name in left if _is_of(name, person)]
        earned = left.pop(found[0]) if len(found) == 1 else ""
        known.append((*(person.get(column, "") for column in CANVAS), earned))
    return _csv((*CANVAS, title), known), tuple(left)


def _is_of(submission: str, person: Mapping[str, str]) -> bool:
    names = {person.get(column, "").casefold() for column in CANVAS[:4]} - {""}
    parts = {submission.casefold()}
    return bool(names & parts) or person.get("ID", "-") in submission.split("_")


def tables(record: CourseGrades, roster: Sequence[Mapping[str, str]] = ()) -> dict[str, str]:
    """Return the tables of a course by the names of their files."""
    questions = record.assignment.questions
    header = ("student", *(question.id for question in questions), "points", "of")
    rows = [
        (student.student, *(f"{one.points:g}" for one in student.grades),
         f"{student.points:g}", f"{record.assignment.points:g}")
        for student in record.students
    ]  # fmt: skip
    answers = [
        (student.student, one.question, one.word, f"{one.points:g}", one.reading, one.reason,
         one.first_wrong)
        for student in record.students
        for one in student.grades
    ]  # fmt: skip
    moodle = [
        (one.student, f"{one.points:g}", "; ".join(map(_comment, one.grades)))
        for one in record.students
    ]
    return {
        "grades.csv": _csv(header, rows),
        "answers.csv": _csv(
            ("student", "question", "verdict", "points", "answer", "reason", "first wrong step"),
            answers,
        ),
        "canvas.csv": canvas_table(record, roster)[0],
        "moodle.csv": _csv(("Identifier", "Grade", "Feedback comments"), moodle),
    }


def _comment(grade: Grade) -> str:
    return f"{grade.question}: {grade.points:g}/{grade.of:g} {grade.word}"


def _csv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow([safe_cell(cell) for cell in header])
    for row in rows:
        writer.writerow([safe_cell(cell) for cell in row])
    return BYTE_ORDER_MARK + buffer.getvalue()


def gradescope_text(record: CourseGrades, feedback: Feedback) -> str:
    """Return Gradescope's results.json for one submission."""
    (student,) = record.students
    tests = []
    for question, grade in zip(record.assignment.questions, student.grades, strict=True):
        lines = []
        for block in grade_blocks(question, grade, feedback):
            if isinstance(block, Text):
                lines.append("".join(span.text for span in block.spans))
            elif isinstance(block, Code):
                lines.append(block.text)
            elif isinstance(block, Formula):
                continue
        tests.append(
            {
                "name": question.id,
                "number": question.id,
                "score": grade.points,
                "max_score": grade.of,
                "output": "\n".join(lines),
                "visibility": "visible",
            }
        )
    submission = student.submission
    said = [f"Read: {', '.join(submission.read) or 'nothing'}."]
    said += [f"Ignored: {name}: {why}." for name, why in submission.ignored]
    said += list(submission.notes)
    document = {"score": student.points, "output": "\n".join(said), "tests": tests}
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
