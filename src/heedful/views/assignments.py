"""Grades: a page for each student, the matrix of a course, the solutions of an assignment.

How much a student sees is the instructor's choice: the verdict; a hint, which says what kind of
change would help; or everything, with the counterexample and the repair.

Grades are also written for other programs: spreadsheets, Canvas, Moodle, and Gradescope. CSV begins
with a byte order mark, without which a spreadsheet takes it for another encoding. Names and answers
come from strangers, so no cell may be taken for a formula.
"""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from heedful.assignments import AssignmentQuestion, CourseGrades, Grade, GradedSubmission
from heedful.errors import HeedfulError, InputError
from heedful.views.blocks import Block, Bullets, Code, Formula, Group, Span, Table, Text
from heedful.views.claims import safe_cell, verdict_figure
from heedful.views.drawing import figure_block, formula_svg
from heedful.views.html import blocks_page

Feedback = Literal["verdict", "hint", "full"]
TONES = {
    "proved": "good", "supported": "fine", "chosen": "good", "refuted": "bad", "wrong": "bad",
    "undecided": "unsure", "unread": "unsure", "missing": "soft", "to be read": "soft",
}  # fmt: skip
_HINTS = {
    "scale": "Think about how long the query has to be.",
    "condition": "Something has to be presumed.",
    "tolerance": "It is close, but not as close as the question asks.",
    "range": "It holds for some of the values, not for all.",
    "constant": "A constant is off.",
    "relation": "The relation is not quite the right one.",
    "heads": "One head is not enough.",
}


def course_blocks(record: CourseGrades) -> Iterator[Block]:
    """Yield the grades of a course: the matrix, statistics, and frequent wrong answers."""
    yield _matrix(record, {})
    yield from _statistics(record)


def solution_blocks(record: CourseGrades) -> Iterator[Block]:
    """Yield what the solutions of an assignment earn."""
    (student,) = record.students
    shown = Table(title=record.assignment.title, columns=("question", "points", "verdict", "why"),
                  left=(0, 2, 3))  # fmt: skip
    for question, grade in zip(record.assignment.questions, student.grades, strict=True):
        without = not question.solution
        why = "no solution is given" if without else grade.reason or _evidence(grade)
        word = Span("", "") if without else Span(grade.word, TONES.get(grade.word, ""))
        shown.row(question.id, _points(grade, blank=without), word, why)
    yield shown


def _evidence(grade: Grade) -> str:
    return grade.verdict.evidence.statement if grade.verdict is not None else ""


def _points(grade: Grade, *, blank: bool = False) -> str:
    return f"– of {grade.of:g}" if blank else f"{grade.points:g} of {grade.of:g}"


def _matrix(record: CourseGrades, pages: Mapping[str, str]) -> Table:
    questions = record.assignment.questions
    shown = Table(
        title=record.assignment.title,
        columns=("student", *(question.id for question in questions), "points"),
        left=(0,),
    )
    for student in record.students:
        cells = [Span(f"{one.points:g}", TONES.get(one.word, "")) for one in student.grades]
        page = pages.get(student.student, "")
        name = f"{student.student} ({page})" if page else student.student
        shown.row(name, *cells, Span(f"{student.points:g}", "strong"))
    return shown


def _statistics(record: CourseGrades) -> Iterator[Block]:
    shown = Table(
        title="Questions",
        columns=("question", "mean", "median", "full", "none", "unread", "missing"),
        left=(0,),
    )
    for place, question in enumerate(record.assignment.questions):
        grades = [student.grades[place] for student in record.students]
        points = [grade.points for grade in grades]
        shown.row(
            question.id,
            f"{statistics.fmean(points):.2f} of {question.points:g}",
            f"{statistics.median(points):g}",
            str(sum(grade.points >= grade.of for grade in grades)),
            str(sum(grade.points == 0 for grade in grades)),
            *(str(sum(grade.word == word for grade in grades)) for word in ("unread", "missing")),
        )
    yield shown
    frequent = Table(title="Frequent wrong answers", columns=("question", "answer", "how many"),
                     left=(0, 1))  # fmt: skip
    for label, groups in record.groups.items():
        for text, count in groups[:3]:
            if count > 1:
                frequent.row(label, text, str(count))
    if frequent.rows:
        yield frequent
    looks = [
        f"{student.student}, {grade.question}: {grade.reason or grade.word}"
        for student in record.students
        for grade in student.grades
        if grade.word in ("undecided", "unread", "to be read")
    ]
    if looks:
        yield Text("For a person to look at:", tone="strong")
        yield Bullets(tuple(looks[:200]))


def course_page(record: CourseGrades, pages: Mapping[str, str]) -> str:
    """Return the page of a course, with the name of each student's page."""
    blocks = [_matrix(record, pages), *_statistics(record)]
    return blocks_page(f"{record.assignment.title}: grades", blocks, wide=True)


def student_page(record: CourseGrades, student: GradedSubmission, feedback: Feedback) -> str:
    """Return the feedback page of one student."""
    total = f"{student.points:g} of {record.assignment.points:g} points"
    blocks: list[Block] = [Text((Span(student.student, "strong"), f": {total}"))]
    for question, grade in zip(record.assignment.questions, student.grades, strict=True):
        heading = f"{question.id}: {_points(grade)} points"
        blocks.append(Group(heading, tuple(grade_blocks(question, grade, feedback))))
    blocks.append(Group("Files", tuple(_files(student))))
    return blocks_page(record.assignment.title, blocks)


def grade_blocks(question: AssignmentQuestion, grade: Grade, feedback: Feedback) -> Iterator[Block]:
    """Yield the feedback on one answer."""
    yield Text(question.text.strip(), tone="soft")
    if grade.reading:
        yield Text(("Your answer was read as ", Span(grade.reading, "strong")))
        if grade.latex and _drawable(grade.latex):
            yield Formula(grade.latex)
    reason = f": {grade.reason}" if grade.reason else ""
    yield Text((Span(grade.word, TONES.get(grade.word, "")), reason))
    for formula in grade.formulas:
        if formula.problem:
            yield Text(f"Not read: {formula.written[:200]} ({formula.problem})", tone="unsure")
        elif formula.skipped:
            yield Text(f"Left out: {formula.written[:200]} ({formula.skipped})", tone="soft")
    for note in grade.notes:
        yield Text(note, tone="soft")
    if grade.first_wrong:
        yield Text(("The first step that does not follow: ", Span(grade.first_wrong, "bad")))
    if feedback == "verdict" or grade.verdict is None or grade.points >= grade.of:
        return
    repair = grade.verdict.repair
    if feedback == "hint":
        if repair is not None:
            yield Text(f"Hint: {_HINTS.get(repair.kind, 'A small change would mend it.')}")
        return
    case = grade.verdict.counterexample
    if case is None or case.statement not in grade.verdict.evidence.statement:
        yield Text(grade.verdict.evidence.statement)
    if case is not None:
        yield Text(("Where it fails: ", Span(case.statement, "strong")))
        drawn = verdict_figure(grade.verdict)
        if drawn is not None:
            yield figure_block(drawn, f"{question.id}: both sides", case.statement)
        if case.command:
            yield Code(case.command)
    if repair is not None:
        yield Text(f"What would mend it: {repair.statement}")


def _drawable(latex: str) -> bool:
    """Tell whether a formula can be drawn; its reading in letters stands above it anyway."""
    try:
        formula_svg(latex)
    except (HeedfulError, ValueError):
        return False
    return True


def _files(student: GradedSubmission) -> Iterator[Block]:
    submission = student.submission
    yield Text(f"Read: {', '.join(submission.read) or 'nothing'}.")
    for name, why in submission.ignored:
        yield Text(f"Ignored: {name}: {why}.", tone="soft")
    if submission.missing:
        yield Text(f"No answer was found for {', '.join(submission.missing)}.", tone="unsure")
    for note in submission.notes:
        yield Text(note, tone="soft")


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
