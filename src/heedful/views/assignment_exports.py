"""Grades for other programs: spreadsheets, Canvas, Moodle, and Gradescope.

CSV begins with a byte order mark, without which a spreadsheet takes it for another encoding.
Names and answers come from strangers, so no cell may be taken for a formula.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from heedful.assignments import CourseGrades, Grade
from heedful.views.assignments import Feedback, grade_blocks
from heedful.views.blocks import Code, Formula, Text
from heedful.views.claims_exports import safe_cell

BYTE_ORDER_MARK = "\ufeff"


def tables(record: CourseGrades) -> dict[str, str]:
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
    title = record.assignment.title
    canvas = [(one.student, "", one.student, f"{one.points:g}") for one in record.students]
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
        "canvas.csv": _csv(("Student", "ID", "SIS Login ID", title), canvas),
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
