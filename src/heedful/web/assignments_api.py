"""View 2, an assignment: its questions, an answer judged as it is written, a submission read.

Nothing is kept here: the page sends the assignment with every question, and whoever works on it
saves the answers as a file, which `heed assignment grade` takes.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field

from heedful.assignments import Assignment, AssignmentQuestion, Grade
from heedful.assignments.assignment import KINDS, LIVE, assignment_of, handout_text
from heedful.assignments.grading import grade_answer
from heedful.assignments.submission import read_file
from heedful.claims.checker import Checker
from heedful.errors import InputError
from heedful.views.assignments import TONES, grade_blocks
from heedful.views.blocks import Code, Text
from heedful.web.answers import Desk, Question
from heedful.web.claims_api import MOST_TEXT

MOST_ANSWER = 20_000
"""Characters of one answer."""
MOST_SUBMISSION = 400_000
"""Characters of a submission that is opened again."""
GRADERS = 2
"""Answers that are graded at the same time; a slow one must not delay the other views."""


class AssignmentText(Question):
    """An assignment, as its file holds it."""

    assignment: str = Field(max_length=MOST_TEXT)


class AnswerText(AssignmentText):
    """An answer to one of its questions."""

    question: str = Field(max_length=200)
    text: str = Field(max_length=MOST_ANSWER)


class SubmissionText(AssignmentText):
    """A file of answers."""

    name: str = Field(max_length=200)
    text: str = Field(max_length=MOST_SUBMISSION)


def assignments_routes(desk: Desk, checker: Checker) -> APIRouter:
    """Return the routes of assignments."""
    routes = APIRouter(prefix="/api/assignments")
    graders = Desk(GRADERS)

    @routes.post("/ready")
    async def ready() -> Response:
        return await desk.answer(lambda: {"text": ready_text()})

    @routes.post("/read")
    async def read(question: AssignmentText) -> Response:
        return await desk.answer(lambda: described(_assignment(question.assignment)))

    @routes.post("/answer")
    async def graded(question: AnswerText) -> Response:
        return await graders.answer(_graded, question, checker)

    @routes.post("/submission")
    async def opened(question: SubmissionText) -> Response:
        return await desk.answer(_opened, question)

    return routes


@lru_cache(maxsize=1)
def ready_text() -> str:
    """Return the assignment that comes with the laboratory, to be worked on."""
    text = (resources.files("heedful.assignments") / "attention.toml").read_text("utf-8")
    return handout_text(text)


def ready_assignment() -> Assignment:
    """Return that assignment as it is read."""
    return _assignment(ready_text())


@lru_cache(maxsize=4)
def _assignment(text: str) -> Assignment:
    return assignment_of(text)


def described(assignment: Assignment) -> dict[str, Any]:
    """Return an assignment as the page shows it: no solution, and no locked formula."""
    return {
        "title": assignment.title,
        "text": assignment.text.strip(),
        "points": assignment.points,
        "live": assignment.live,
        "shows": LIVE[assignment.live],
        "questions": [_question(question) for question in assignment.questions],
    }


def _question(question: AssignmentQuestion) -> dict[str, Any]:
    return {
        "id": question.id,
        "text": question.text.strip(),
        "points": question.points,
        "open": question.open,
        "asks": KINDS[question.open],
        "options": list(question.options),
        "names": list(question.names),
        "count": question.count,
    }


def _graded(question: AnswerText, checker: Checker) -> dict[str, Any]:
    assignment = _assignment(question.assignment)
    asked = assignment.question(question.question)
    if asked is None:
        raise InputError("question", f"{question.question[:40]} is not in the assignment")
    return _shown(assignment, asked, grade_answer(assignment, asked, question.text, checker))


def _shown(assignment: Assignment, question: AssignmentQuestion, grade: Grade) -> dict[str, Any]:
    """Return what the assignment lets somebody see who is still working on it."""
    read = {
        "reading": grade.reading,
        "latex": grade.latex,
        "problems": [
            {"written": one.written[:200], "problem": one.problem}
            for one in grade.formulas
            if one.problem
        ],
        "notes": list(grade.notes),
    }
    told = grade.word in ("unread", "noted", "to be read") or not grade.verdict
    if told or assignment.live == "reading":
        word = grade.word if told else "read"
        return {**read, "word": word, "tone": TONES.get(word, ""), "lines": [grade.reason] * told}
    lines = [
        _text(block).removeprefix(f"{grade.word}: ")
        for block in grade_blocks(question, grade, assignment.live)
        if isinstance(block, Text | Code) and not _said(_text(block), question, grade)
    ]
    return {
        **read, "word": grade.word, "tone": TONES.get(grade.word, ""), "lines": lines,
        "points": grade.points, "of": grade.of,
    }  # fmt: skip


def _text(block: Text | Code) -> str:
    return block.text if isinstance(block, Code) else "".join(span.text for span in block.spans)


def _said(text: str, question: AssignmentQuestion, grade: Grade) -> bool:
    """Tell whether the page shows a part of the feedback in a way of its own."""
    shown = (question.text.strip(), grade.word, *grade.notes)
    return text in shown or text.startswith(("Your answer was read as ", "Not read: "))


def _opened(question: SubmissionText) -> dict[str, Any]:
    found = read_file(
        question.name, question.text.encode("utf-8"), _assignment(question.assignment)
    )
    return {
        "answers": {label: one.text for label, one in found.answers.items()},
        "missing": list(found.missing),
        "notes": [*found.notes, *(f"{name}: {why}" for name, why in found.ignored)],
    }
