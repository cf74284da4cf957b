"""Grades: a page for each student, the matrix of a course, the solutions of an assignment.

How much a student sees is the instructor's choice: the verdict; a hint, which says what kind of
change would help; or everything, with the counterexample and the repair.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from typing import Literal

from heedful.assignments import AssignmentQuestion, CourseGrades, Grade, GradedSubmission
from heedful.errors import HeedfulError
from heedful.views.blocks import Block, Bullets, Code, Formula, Group, Span, Table, Text
from heedful.views.claims import verdict_figure
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
