"""View 2, Claims: verdicts while a sheet is written, its repairs, the catalog; and assignments.

Verdicts come over one WebSocket, each as soon as it is found. The page sends

    {"ticket": 3, "text": "[[claim]] …"}      judge this sheet (with "model", about that model)
    {"ticket": 4, "catalog": true}            judge the catalog, behind whatever is typed
    {"ticket": 3, "stop": true}               nobody waits for that any more

and is sent `sheet` (what could be read), then a `verdict` or `problem` for each claim, then `done`.
A new text drops the one before it.

Of an assignment the view shows the questions, judges an answer as it is written, and reads a
submission. Nothing is kept here: the page sends the assignment with every question, and whoever
works on it saves the answers as a file, which `heed assignment grade` takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import re
import shlex
import time
from collections.abc import Sequence
from functools import lru_cache, partial
from importlib import resources
from typing import Any

import numpy as np
from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from fastapi.responses import Response
from pydantic import Field, ValidationError

from heedful.assignments import Assignment, AssignmentQuestion, Grade
from heedful.assignments.assignment import KINDS, LIVE, assignment_of, handout_text
from heedful.assignments.grading import grade_answer
from heedful.assignments.submission import read_file
from heedful.claims import Claim, Sheet, Verdict, load_sheet
from heedful.claims.checker import Answer, Checker, SheetProblem, Task, disagreements
from heedful.claims.language import show, tex
from heedful.claims.sheet import (
    catalog,
    claim_tables,
    claim_text,
    setting_text,
    toml_lines,
    with_changes,
    with_fields,
)
from heedful.claims.sheet.claim import ParsedFormula
from heedful.errors import HeedfulError, InputError
from heedful.records import plain
from heedful.views.assignments import TONES, grade_blocks
from heedful.views.blocks import Code, Text
from heedful.web.answers import Desk, Question, answer, as_json
from heedful.web.shelves import Shelves
from heedful.workers import Job, TaskLimits

MOST_TEXT = 70_000
"""Characters of a sheet; the reader itself refuses more than 64 KB and says so."""
TYPED, BROWSED = 0, 1
"""Urgencies: what somebody types comes before what somebody browses."""
LIVE_LIMITS = TaskLimits(seconds=10.0, megabytes=768)
"""For one claim on the page. A model of many tokens needs more: `heed check --seconds`."""


class LiveQuestion(Question):
    """What the page sends over the WebSocket."""

    ticket: int = Field(ge=0, le=2**31)
    text: str | None = Field(default=None, max_length=MOST_TEXT)
    model: str | None = Field(default=None, max_length=64)
    """The id of the model that claims are about which name none."""
    catalog: bool = False
    stop: bool = False


class EditQuestion(Question):
    """What a form changes in a sheet."""

    text: str = Field(max_length=MOST_TEXT)
    place: int = Field(ge=0, le=5000)
    """Which claim, from 0."""
    changes: dict[str, Any] | None = None
    """None: the claim is taken out."""


class RepairQuestion(Question):
    """A repair to write into a sheet."""

    text: str = Field(max_length=MOST_TEXT)
    id: str = Field(max_length=200)
    changes: dict[str, Any]


def claims_routes(desk: Desk, checker: Checker, shelves: Shelves) -> APIRouter:
    """Return the routes of this view."""
    routes = APIRouter(prefix="/api/claims")

    @routes.post("/catalog")
    async def browse() -> Response:
        return Response(await desk.work(catalog_json), media_type="application/json")

    @routes.post("/repair")
    async def repair(question: RepairQuestion) -> Response:
        text = await desk.work(with_changes, question.text, question.id, question.changes)
        return answer({"text": text})

    @routes.post("/edit")
    async def edit(question: EditQuestion) -> Response:
        text = await desk.work(with_fields, question.text, question.place, question.changes)
        return answer({"text": text})

    @routes.websocket("/live")
    async def live(socket: WebSocket) -> None:
        await socket.accept()
        with contextlib.suppress(WebSocketDisconnect):
            await _Conversation(socket, desk, checker, shelves).hold()

    return routes


class _Conversation:
    """One page that asks for verdicts."""

    def __init__(self, socket: WebSocket, desk: Desk, checker: Checker, shelves: Shelves) -> None:
        self.socket = socket
        self.desk = desk
        self.checker = checker
        self.shelves = shelves
        self.running: dict[bool, tuple[int, list[Job], asyncio.Task[None]]] = {}

    async def hold(self) -> None:
        """Answer until the page is gone; then drop what it asked for."""
        try:
            while True:
                message = await self.socket.receive_text()
                try:
                    question = LiveQuestion.model_validate_json(message)
                except ValidationError as error:
                    problem = error.errors()[0]["msg"]
                    await self._send(0, "error", message=f"live: {problem}")
                    continue
                await self._take(question)
        finally:
            for browsing in list(self.running):
                self._drop(browsing)

    async def _take(self, question: LiveQuestion) -> None:
        if question.stop:
            for browsing, (number, _, _) in list(self.running.items()):
                if number == question.ticket:
                    self._drop(browsing)
            return
        if question.catalog == (question.text is not None):
            await self._send(question.ticket, "error", message="live: text or catalog, one of them")
            return
        self._drop(question.catalog)
        jobs: list[Job] = []
        answering = asyncio.create_task(self._judge(question, jobs))
        self.running[question.catalog] = (question.ticket, jobs, answering)

    def _drop(self, browsing: bool) -> None:
        if browsing in self.running:
            _, jobs, answering = self.running.pop(browsing)
            answering.cancel()
            for job in jobs:
                job.cancel()

    async def _judge(self, question: LiveQuestion, jobs: list[Job]) -> None:
        began, number = time.perf_counter(), question.ticket
        if question.text is None:
            sheets: Sequence[Sheet] = await self.desk.work(_sheets)
        else:
            chosen: str | None = None
            if question.model is not None:
                try:
                    chosen = str(await self.desk.work(self.shelves.path, question.model))
                except HeedfulError as error:
                    await self._send(number, "error", message=str(error))
                    return
            read = partial(load_sheet, question.text + "\n", model=chosen)
            sheets = [await self.desk.work(read)]
            form = await self.desk.work(form_of, question.text)
            await self._send(number, "sheet", **_described(sheets[0]), form=form)
        tasks = [(sheet, claim) for sheet in sheets for claim in sheet.claims]
        answers: asyncio.Queue[tuple[int, Answer]] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        for place, (sheet, claim) in enumerate(tasks):

            def reply(answer: Answer, place: int = place) -> None:
                with contextlib.suppress(RuntimeError):  # the loop ended before the claim did
                    loop.call_soon_threadsafe(answers.put_nowait, (place, answer))

            urgency = BROWSED if question.catalog else TYPED
            job = self.checker.submit(Task(sheet.name, claim), reply, urgency=urgency)
            if job is not None:
                jobs.append(job)
        for _ in tasks:
            place, answered = await answers.get()
            sheet, claim = tasks[place]
            if isinstance(answered, Verdict):
                await self._send(number, "verdict", verdict=verdict_dict(answered))
            else:
                problem = SheetProblem.of(sheet.name, sheet.located(claim.id, answered))
                await self._send(number, "problem", id=claim.id, problem=problem)
        await self._send(number, "done", seconds=time.perf_counter() - began)

    async def _send(self, ticket: int, kind: str, **content: Any) -> None:
        message = plain({"ticket": ticket, "kind": kind, **content})
        await self.socket.send_text(json.dumps(message, ensure_ascii=False, allow_nan=False))


def verdict_dict(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as the page shows it: with the lines of its repair, and its picture."""
    case, repair = verdict.counterexample, verdict.repair
    return {
        **verdict.to_dict(),
        "kind": verdict.kind,
        "repair_lines": None if repair is None else toml_lines(repair.changes),
        "picture": None if case is None or case.command is None else picture_of(case.command),
    }


def picture_of(command: str) -> dict[str, Any] | None:
    """Return what view 1 draws for the command that shows a counterexample.

    >>> picture_of("heed attend --n 2 --query 1 1")["queries"]
    [[1.0, 1.0]]
    """
    words = shlex.split(command)
    flags: dict[str, list[str]] = {}
    for word in words[2:]:
        if word.startswith("--"):
            flags[word[2:]] = []
        elif flags:
            flags[next(reversed(flags))].append(word)
    if "keys" in flags:
        keys = np.asarray(json.loads(flags["keys"][0]), dtype=float)
    else:
        n = int(flags["n"][0])
        keys = np.eye(n, int(flags["d"][0]) if "d" in flags else n)
    picture: dict[str, Any] = {"keys": keys.tolist(), "queries": []}
    if "scale" in flags:
        scale = flags["scale"][0]
        picture["scale"] = scale if scale == "sqrt_d" else float(scale)
    if words[1] == "noise":
        beta = float(flags["beta"][0])
        picture["queries"] = [(beta * _combined(head, keys)).tolist() for head in flags["heads"]]
        picture["noisy"] = int(flags["noisy"][0])
        picture["variance"] = float(flags["variance"][0])
        named = {int(place) for head in flags["heads"] for place in re.findall(r"\d+", head)}
        picture["of"] = sorted(named)
    elif "query" in flags:
        written = flags["query"]
        rows = json.loads(written[0]) if written[0].startswith("[") else [written]
        picture["queries"] = [[float(number) for number in row] for row in rows]
    return picture


def _combined(head: str, keys: Any) -> Any:
    """Return a sum or difference of keys such as "0+1"."""
    terms = re.findall(r"([+-]?)(?:([\d.]+)\*)?(\d+)", head)
    shares = [(-1.0 if sign == "-" else 1.0) * float(size or 1) for sign, size, _ in terms]
    return sum(share * keys[int(place)] for share, (*_, place) in zip(shares, terms, strict=True))


def _described(sheet: Sheet) -> dict[str, Any]:
    return {
        "title": sheet.title,
        "source": sheet.source,
        "claims": [_claim_dict(sheet, claim) for claim in sheet.claims],
        "problems": [SheetProblem.of(sheet.name, error) for error in sheet.problems],
    }


def form_of(text: str) -> list[dict[str, Any]]:
    """Return the claims of a sheet as a form shows them, whether or not they can be read."""
    return [
        {"line": one.line, "fields": _shown(one.table), "defaults": _shown(one.defaults)}
        for one in claim_tables(text)
    ]


def _shown(value: Any) -> Any:
    """Return a value of TOML as JSON has it; dates and the like as text."""
    if isinstance(value, dict):
        return {str(key): _shown(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shown(item) for item in value]
    finite = isinstance(value, int | str) or (isinstance(value, float) and math.isfinite(value))
    return value if finite else str(value)


def formulas_of(claim: Claim) -> list[dict[str, str]]:
    """Return what a claim expects, each as text with letters and as TeX; as written if unread."""
    return [
        {"text": show(formula.tree, style="unicode"), "tex": tex(formula.tree)}
        if isinstance(formula, ParsedFormula)
        else {"text": formula, "tex": ""}
        for formula in claim.expect
    ]


def _claim_dict(sheet: Sheet, claim: Claim) -> dict[str, Any]:
    origin = sheet.origins[claim.id]
    return {
        "id": claim.id,
        "says": claim.says,
        "source": claim.source or sheet.source,
        "reading": claim.reading,
        "number": claim.number,
        "formulas": formulas_of(claim),
        "given": claim.given,
        "setting": setting_text(claim),
        "line": origin.places.of((*origin.path, "id"))[0],
    }


@lru_cache(maxsize=1)
def _sheets() -> tuple[Sheet, ...]:
    return tuple(catalog())


@lru_cache(maxsize=1)
def catalog_json() -> str:
    """Return the catalog as the page is told of it; it never changes, so it is written once."""
    return as_json(catalog_dict(_sheets()))


def catalog_dict(sheets: Sequence[Sheet]) -> dict[str, Any]:
    """Return sheets of the catalog as the page is told of them."""
    return {
        "sheets": [
            {
                "name": sheet.name,
                "title": sheet.title,
                "source": sheet.source,
                "skipped": sheet.skipped,
                "claims": [
                    {**_claim_dict(sheet, claim), "text": claim_text(claim)}
                    for claim in sheet.claims
                ],
            }
            for sheet in sheets
        ],
        "disagreements": disagreements(sheets),
    }


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
    return _visible(assignment, asked, grade_answer(assignment, asked, question.text, checker))


def _visible(assignment: Assignment, question: AssignmentQuestion, grade: Grade) -> dict[str, Any]:
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
