"""How questions of the page are answered: records as JSON, arrays packed, errors as one line.

Every question is a POST with a JSON body that a frozen model describes; a field that is not
known is refused. Work runs in a few threads, so that a slow question does not delay a drag.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import numpy as np
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from heedful.errors import HeedfulError
from heedful.records import Record, plain

WORKERS = 4
"""Questions that are worked on at the same time; the others wait."""

Result = TypeVar("Result")


class Question(BaseModel):
    """Base of every request body."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Desk:
    """The threads that work on questions."""

    def __init__(self, workers: int = WORKERS) -> None:
        self._limiter = anyio.CapacityLimiter(workers)

    async def work(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Run a function of the rooms in a thread of its own, when one is free."""
        return await anyio.to_thread.run_sync(function, *arguments, limiter=self._limiter)

    async def answer(
        self, function: Callable[..., Record | dict[str, Any]], *arguments: Any
    ) -> Response:
        """Answer with what a function returns; it is written as JSON in its thread too."""
        return await self.work(lambda: answer(function(*arguments)))


def answer(content: Record | dict[str, Any]) -> Response:
    """Return a record, or a dictionary of plain values and records, as JSON."""
    return Response(as_json(content), media_type="application/json")


def as_json(content: Record | dict[str, Any]) -> str:
    """Return the text of an answer."""
    values = content.to_dict() if isinstance(content, Record) else plain(content)
    return json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def packed(array: Any) -> dict[str, Any]:
    """Return a large array in few bytes: its shape, and float32 in base64.

    >>> packed(np.array([[1.0, 2.0]]))
    {'shape': [1, 2], 'float32': 'AACAPwAAAEA='}
    """
    small = np.ascontiguousarray(array, dtype="<f4")
    return {
        "shape": list(small.shape),
        "float32": base64.b64encode(small.tobytes()).decode("ascii"),
    }


def packed_bytes(array: Any) -> dict[str, Any]:
    """Return numbers from 0 to 1 as one byte each, for pictures."""
    small = np.clip(np.rint(np.asarray(array) * 255.0), 0, 255).astype(np.uint8)
    return {
        "shape": list(small.shape),
        "uint8": base64.b64encode(np.ascontiguousarray(small).tobytes()).decode("ascii"),
    }


def explain_errors(app: FastAPI) -> None:
    """Let every error leave as JSON with the parts of our one line."""

    @app.exception_handler(HeedfulError)
    async def known(_request: Request, error: HeedfulError) -> Response:
        return error_answer(409 if error.exit_code == 3 else 422, **error_parts(error))

    @app.exception_handler(RequestValidationError)
    async def malformed(_request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first.get("loc", ()) if part != "body") or "body"
        return error_answer(422, where=where, problem=str(first.get("msg", "cannot be read")))

    @app.exception_handler(HTTPException)
    async def refused(_request: Request, error: HTTPException) -> Response:
        return error_answer(error.status_code, where="request", problem=str(error.detail))

    @app.exception_handler(Exception)
    async def unexpected(_request: Request, error: Exception) -> Response:
        found = f"{type(error).__name__}: {error}"
        print(f"heed serve: this should not happen ({found})", file=sys.stderr)
        return error_answer(500, where="heed serve", problem=f"this should not happen ({found})")


def error_parts(error: HeedfulError) -> dict[str, str]:
    """Return the parts of an error's line."""
    return {
        "where": error.where,
        "problem": error.problem,
        "expected": error.expected,
        "hint": error.hint,
    }


def error_answer(
    status: int, *, where: str, problem: str, expected: str = "", hint: str = ""
) -> Response:
    """Return an error as JSON."""
    parts = {"where": where, "problem": problem, "expected": expected, "hint": hint}
    line = f"{where}: " + "; ".join(part for part in (problem, expected, hint) if part)
    return Response(
        json.dumps({"error": line, **parts}, ensure_ascii=False),
        status_code=status,
        media_type="application/json",
    )
