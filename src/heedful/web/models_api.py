"""View 4, Models: runs and their live curves, and what a trained model does with a sentence.

Every number comes from `heedful.training` and `heedful.model`. torch is imported only when the
first question needs it. Dearer questions about a model (translations with beams and alignment,
questions with confidence, heads sorted by what they do) are in `model_studies`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from fastapi.responses import Response
from pydantic import Field, NonNegativeInt

from heedful.errors import HeedfulError, InputError
from heedful.records import plain
from heedful.web.answers import Desk, Question, answer, error_parts, packed, packed_bytes
from heedful.web.live_metrics import MetricsReader
from heedful.web.sentences import Sentence, sentence
from heedful.web.shelves import Shelves, id_of

MOST_TOKENS = 1024
"""Tokens of a sentence whose attention is shown."""
CANDIDATES = 12
"""Next tokens that are shown with their probability."""
WATCH_SECONDS = 0.5
"""How often a running training is looked at."""


class ModelQuestion(Question):
    """Which model, by its id."""

    model: str = Field(max_length=64)


class ReadQuestion(ModelQuestion):
    """A sentence to read."""

    text: str = Field(min_length=1, max_length=20_000)
    target: tuple[NonNegativeInt, ...] = Field(default=(), max_length=1_024)
    """Tokens of a translation that a translator reads after it."""
    layer: int = Field(default=0, ge=0, le=1_000)


class HeadQuestion(ReadQuestion):
    """One head, in full."""

    head: int = Field(default=0, ge=0, le=10_000)


def models_routes(desk: Desk, shelves: Shelves) -> APIRouter:
    """Return the routes of this view."""
    routes = APIRouter(prefix="/api/models")

    @routes.post("/runs")
    async def runs() -> Response:
        return await desk.answer(_runs, shelves)

    @routes.post("/list")
    async def models() -> Response:
        entries = await desk.work(shelves.entries)
        return answer({"models": entries, "askers": await desk.work(shelves.askers)})

    @routes.post("/read")
    async def read(question: ReadQuestion) -> Response:
        return await desk.answer(_read, shelves, question)

    @routes.post("/head")
    async def head(question: HeadQuestion) -> Response:
        return await desk.answer(_head, shelves, question)

    @routes.websocket("/live/{run}")
    async def live(socket: WebSocket, run: str) -> None:
        await socket.accept()
        with contextlib.suppress(WebSocketDisconnect):
            await _watch(socket, desk, shelves, run)

    return routes


def _runs(shelves: Shelves) -> dict[str, Any]:
    found = shelves.runs()
    if not found:  # without a run there is nothing that torch must be loaded for
        return {"folder": shelves.runs_folder.name, "runs": []}
    from heedful.training.runs import summary_of

    return {
        "folder": shelves.runs_folder.name,
        "runs": [
            {"id": identifier, "name": path.name, **_without_path(summary_of(path).to_dict())}
            for identifier, path in found.items()
        ],
    }


def _without_path(summary: dict[str, Any]) -> dict[str, Any]:
    del summary["run"]  # the page knows runs by id and name
    return summary


async def _watch(socket: WebSocket, desk: Desk, shelves: Shelves, run: str) -> None:
    """Send the metrics of a run, and then what is added, until the page goes away."""
    try:
        folder = await desk.work(shelves.run, run)
    except HeedfulError as error:
        await socket.send_text(json.dumps({"error": error_parts(error)}, ensure_ascii=False))
        await socket.close(1008)
        return
    reader = MetricsReader(folder / "metrics.jsonl")
    gone = asyncio.create_task(_until_gone(socket))
    try:
        while not gone.done():
            lines, anew = await desk.work(reader.read)
            if lines or anew:
                message = plain({"lines": lines, "anew": anew})
                await socket.send_text(json.dumps(message, ensure_ascii=False, allow_nan=False))
            await asyncio.wait([gone], timeout=WATCH_SECONDS)
    finally:
        gone.cancel()


async def _until_gone(socket: WebSocket) -> None:
    with contextlib.suppress(WebSocketDisconnect):
        while True:
            await socket.receive_text()  # the page has nothing to say here


def _read(shelves: Shelves, question: ReadQuestion) -> dict[str, Any]:
    """Return tokens, the attention of one layer as pictures, and the next-token probabilities."""
    read, tokens, trace = _traced(shelves, question)
    # After a whole translation nothing follows: of a translator, show how its first word is chosen.
    asking = -1 if read.source is None else read.source[1]
    layers = len(trace.layers)
    if question.layer >= layers:
        raise InputError("layer", f"is {question.layer}", expected=f"0 to {layers - 1}")
    weights = trace.layers[question.layer].weights[0]
    return {
        "tokens": tokens,
        "layers": layers,
        "heads": weights.shape[0],
        "layer": question.layer,
        "weights": packed_bytes(weights.cpu().numpy()),
        "next": _candidates(trace.logits[0, asking], read.tokenizer),
    }


def _head(shelves: Shelves, question: HeadQuestion) -> dict[str, Any]:
    """Return the weights of one head in full precision."""
    _, tokens, trace = _traced(shelves, question)
    if question.layer >= len(trace.layers):
        raise InputError("layer", f"is {question.layer}", expected=f"0 to {len(trace.layers) - 1}")
    weights = trace.layers[question.layer].weights[0]
    if question.head >= len(weights):
        raise InputError("head", f"is {question.head}", expected=f"0 to {len(weights) - 1}")
    return {"tokens": tokens, "weights": packed(weights[question.head].cpu().numpy())}


def _traced(shelves: Shelves, question: ReadQuestion) -> tuple[Sentence, list[str], Any]:
    read = sentence(shelves, question.model, question.text, question.target, MOST_TOKENS)
    import torch

    with torch.inference_mode():
        trace = read.decoder.trace(torch.tensor([read.ids]))
    return read, [_shown(read.tokenizer, number) for number in read.ids], trace


def _candidates(logits: Any, tokenizer: Any) -> list[dict[str, Any]]:
    probabilities = logits.double().softmax(dim=-1)
    best = probabilities.topk(min(CANDIDATES, tokenizer.size, len(probabilities)))
    return [
        {"id": int(number), "token": _shown(tokenizer, int(number)), "probability": float(share)}
        for share, number in zip(best.values, best.indices, strict=True)
    ]


def _shown(tokenizer: Any, number: int) -> str:
    """Return a token as people read it; what alone is no text is shown as the vocabulary has it."""
    if number >= tokenizer.size:
        return f"‹{number}›"
    text = str(tokenizer.decode([number], special=True))
    return text if text and "\ufffd" not in text else str(tokenizer.token(number))


__all__ = ["id_of", "models_routes"]
