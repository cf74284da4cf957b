"""View 4, Models: runs and their live curves, and what a trained model does with a sentence.

Every number comes from `heedful.training`, `heedful.model` and the studies. torch is imported only
when the first question needs it. Expensive questions (translations with beams and alignment,
questions with confidence, heads sorted by what they do) are worked on one after another, apart
from the quick ones, and each has a limit that is told to whoever exceeds it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from fastapi.responses import Response
from pydantic import Field, NonNegativeInt, ValidationError

from heedful.errors import HeedfulError, InputError
from heedful.records import plain
from heedful.web.answers import (
    Desk,
    Question,
    answer,
    as_json,
    error_parts,
    packed,
    packed_bytes,
)
from heedful.web.shelves import Shelves

if TYPE_CHECKING:
    from heedful.model import Decoder
    from heedful.studies.heads.behaviour import Behaviour
    from heedful.studies.knowledge.asker import Asker
    from heedful.studies.knowledge.pretrained import PretrainedAsker
    from heedful.studies.translation import Translator
    from heedful.tokenization import Tokenizer

MOST_TOKENS = 1024
"""Tokens of a sentence whose attention is shown."""
PICTURE = 32
"""Pixels on a side of the small picture of a head."""
CANDIDATES = 12
"""Next tokens that are shown with their probability."""
WATCH_SECONDS = 0.5
"""How often a running training is looked at."""


class ModelQuestion(Question):
    """Which model, by its id."""

    model: str = Field(max_length=64)


class SentenceQuestion(ModelQuestion):
    """A sentence, and what stands after it."""

    text: str = Field(min_length=1, max_length=20_000)
    target: tuple[NonNegativeInt, ...] = Field(default=(), max_length=1_024)
    """Tokens of a translation that a translator reads after it."""
    continuation: tuple[NonNegativeInt, ...] = Field(default=(), max_length=1_024)
    """Tokens that were chosen to go on with, where it is no translation."""


class ReadQuestion(SentenceQuestion):
    """A sentence to read, and the layer to show."""

    layer: int = Field(default=0, ge=0, le=1_000)


class HeadQuestion(ReadQuestion):
    """One head, in full."""

    head: int = Field(default=0, ge=0, le=10_000)


class HeadPlace(Question):
    """One head, by number."""

    layer: NonNegativeInt
    head: NonNegativeInt


class InterveneQuestion(SentenceQuestion):
    """Heads that are taken away while the sentence is read."""

    heads: tuple[HeadPlace, ...] = Field(min_length=1, max_length=64)


class CompareQuestion(Question):
    """Two runs, by their ids."""

    first: str = Field(max_length=64)
    second: str = Field(max_length=64)


def models_routes(desk: Desk, shelves: Shelves) -> APIRouter:
    """Return the routes of this view."""
    routes = APIRouter(prefix="/api/models")

    @routes.post("/runs")
    async def runs() -> Response:
        return await desk.answer(_runs, shelves)

    @routes.post("/compare")
    async def compare(question: CompareQuestion) -> Response:
        return await desk.answer(_compared, shelves, question)

    @routes.post("/list")
    async def models() -> Response:
        entries = await desk.work(shelves.entries)
        return answer({"models": entries, "askers": await desk.work(shelves.askers)})

    @routes.post("/read")
    async def read(question: ReadQuestion) -> Response:
        return await desk.answer(_read, shelves, question)

    @routes.post("/overview")
    async def overview(question: SentenceQuestion) -> Response:
        return await desk.answer(_overview, shelves, question)

    @routes.post("/intervene")
    async def intervene(question: InterveneQuestion) -> Response:
        return await desk.answer(_intervene, shelves, question)

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
    runs = shelves.runs()
    if not runs:  # without a run there is nothing that torch must be loaded for
        return {"folder": shelves.runs_folder.name, "runs": []}
    from heedful.training.runs import summary_of

    called = shelves.names()
    return {
        "folder": shelves.runs_folder.name,
        "runs": [
            {
                "id": identifier,
                "name": called[identifier][0],
                "study": called[identifier][1],
                "folder": path.name,
                **_without_path(summary_of(path).to_dict()),
            }
            for identifier, path in runs.items()
        ],
    }


def _without_path(summary: dict[str, Any]) -> dict[str, Any]:
    del summary["run"]  # the page knows runs by id and name
    return summary


def _compared(shelves: Shelves, question: CompareQuestion) -> dict[str, Any]:
    """Return what two runs have differently: settings, data and machine, results."""
    folders = shelves.run(question.first), shelves.run(question.second)
    from heedful.training.runs import compare_runs

    found = compare_runs(*folders).to_dict()
    return {name: found[name] for name in ("config", "machine", "results", "same_weights")}


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


def _overview(shelves: Shelves, question: SentenceQuestion) -> dict[str, Any]:
    """Return a small picture of every head of every layer; of many tokens, the most of each square.

    Layers are made small while the pass goes on, so that the memory is that of one.
    """
    read = _asked(shelves, question)
    import torch
    from torch.nn import functional

    pictures: list[torch.Tensor] = []
    side = min(PICTURE, len(read.ids))

    def see(_layer: int, trace: Any) -> None:
        pictures.append(functional.adaptive_max_pool2d(trace.weights[0].float(), side))

    with torch.inference_mode():
        read.decoder.visit(torch.tensor([read.ids]), see)
    return {
        "tokens": len(read.ids),
        "layers": len(pictures),
        "heads": pictures[0].shape[0],
        "pictures": packed_bytes(torch.stack(pictures).numpy()),
    }


def _intervene(shelves: Shelves, question: InterveneQuestion) -> dict[str, Any]:
    """Return what taking heads away does to the loss of the sentence and to the next token."""
    read = _asked(shelves, question)
    import torch
    from torch.nn import functional

    from heedful.model import ablate

    changes = [
        ablate("head_outputs", layer=one.layer, head=one.head)
        for one in dict.fromkeys(question.heads)
    ]
    row = torch.tensor([read.ids])
    with torch.inference_mode():
        plain = read.decoder(row)[0].double()
        with read.decoder.intervene(*changes):
            changed = read.decoder(row)[0].double()

    asking = -1 if read.source is None else read.source[1]
    first = 0 if read.source is None else asking  # of a pair, only the translation was learned

    def loss(logits: torch.Tensor) -> float | None:
        if len(read.ids) < first + 2:
            return None
        return float(functional.cross_entropy(logits[first:-1], row[0, first + 1 :]))

    before, after = plain[asking].softmax(-1), changed[asking].softmax(-1)
    shown = before.topk(min(CANDIDATES, len(before))).indices.tolist()
    shown += [one for one in after.topk(3).indices.tolist() if one not in shown]
    return {
        "loss": loss(plain),
        "changed_loss": loss(changed),
        "next": [
            {
                "id": one,
                "token": _shown(read.tokenizer, one),
                "before": float(before[one]),
                "after": float(after[one]),
            }
            for one in shown
        ],
    }


def _asked(shelves: Shelves, question: SentenceQuestion) -> Sentence:
    return sentence(
        shelves,
        question.model,
        question.text,
        question.target,
        MOST_TOKENS,
        continuation=question.continuation,
    )


def _traced(shelves: Shelves, question: ReadQuestion) -> tuple[Sentence, list[str], Any]:
    read = _asked(shelves, question)
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


class Sentence(NamedTuple):
    """What is read, and by whom."""

    decoder: Decoder
    tokenizer: Tokenizer
    ids: tuple[int, ...]
    source: tuple[int, int] | None
    """With a translation: first position of the source, and the position after its last."""


def sentence(
    shelves: Shelves,
    model: str,
    text: str,
    target: Sequence[int],
    most: int,
    *,
    continuation: Sequence[int] = (),
) -> Sentence:
    """Return a sentence of at most so many tokens; `target` has the tokens of a translation."""
    loaded = shelves.load(model)
    tokenizer = loaded.tokenizer
    if tokenizer is None:
        raise InputError("model", "has no tokenizer", expected="a model that can read text")
    source = None
    if target:
        path = shelves.path(model)
        if not shelves.translates(path):
            raise InputError("target", "was given", expected="only a translator reads one")
        from heedful.studies.translation import TranslationFormat

        written = TranslationFormat.read(path)
        marks = written.marks(tokenizer)
        prompt = marks.around(tokenizer.encode(written.source(text, tokenizer)))
        source = (0 if marks.begin is None else 1, len(prompt) - 1)
        if max(target) >= loaded.decoder.config.vocabulary:
            raise InputError("target", "holds an unknown token", expected="tokens of this model")
        # The last token of a translation is written, never read: a full context has one more.
        ids = [*prompt, *target][: max(loaded.decoder.config.context, len(prompt))]
    else:
        if max(continuation, default=0) >= loaded.decoder.config.vocabulary:
            raise InputError(
                "continuation", "holds an unknown token", expected="tokens of this model"
            )
        ids = [*tokenizer.encode_opened(text), *continuation]
    most = min(most, loaded.decoder.config.context)
    if not 1 <= len(ids) <= most:
        raise InputError(
            "text", f"has {len(ids)} tokens", expected=f"1 to {most} tokens were expected"
        )
    return Sentence(loaded.decoder, tokenizer, tuple(ids), source)


METRICS_BYTES = 4_000_000
"""Read at a time."""


@dataclass
class MetricsReader:
    """Reads what was added to a metrics file since the last time."""

    path: Path
    _offset: int = 0
    _file: tuple[int, int] = (0, 0)
    _rest: bytes = field(default=b"", repr=False)

    def read(self) -> tuple[list[dict[str, Any]], bool]:
        """Return the new whole lines, and whether the file began anew."""
        try:
            status = self.path.stat()
            anew = (status.st_dev, status.st_ino) != self._file or status.st_size < self._offset
            if anew:
                self._offset, self._rest = 0, b""
                self._file = (status.st_dev, status.st_ino)
            with self.path.open("rb") as file:
                file.seek(self._offset)
                content = file.read(METRICS_BYTES)
        except FileNotFoundError:
            return [], False
        self._offset += len(content)
        *lines, self._rest = (self._rest + content).split(b"\n")
        return [line for line in map(_read_line, lines) if line is not None], anew


def _read_line(line: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(line)
    except ValueError:
        return None
    return content if isinstance(content, dict) and isinstance(content.get("step"), int) else None


MOST_BEAMS = 16
MOST_WATCHED = 256
"""Tokens of a sentence whose heads are sorted, and of a translation."""
MOST_PARAMETERS = 60_000_000
"""Of a model that reads a whole sample; a sentence may be read by any."""
SHORTEST = 6
"""Tokens of a sentence from which something can be said about heads."""
ALTERNATIVES = 6
"""Other tokens at a place of a translation, each with the translation that it leads to."""
KEPT = 2
"""Translators and askers that stay in memory, of each."""

Kept = TypeVar("Kept")


class TranslateQuestion(Question):
    """A sentence to translate."""

    model: str = Field(max_length=64)
    text: str = Field(min_length=1, max_length=2_000)
    beam: int = Field(default=5, ge=1, le=MOST_BEAMS)
    rank: int = Field(default=0, ge=0, lt=MOST_BEAMS)
    """Which of the translations is aligned."""
    method: Literal["", "attention", "value norm", "gradient", "integrated", "erasure"] = ""
    """How; the best known method unless another is asked for."""


class AlternativesQuestion(Question):
    """A place in a translation, and what stands before it."""

    model: str = Field(max_length=64)
    text: str = Field(min_length=1, max_length=2_000)
    prefix: tuple[NonNegativeInt, ...] = Field(default=(), max_length=MOST_WATCHED)
    """Tokens of the translation up to that place."""


class AskQuestion(Question):
    """A question to a model of the knowledge study."""

    asker: str = Field(max_length=64)
    text: str = Field(min_length=1, max_length=2_000)


class PutQuestion(Question):
    """A question to a model that others have trained."""

    model: str = Field(max_length=64)
    text: str = Field(min_length=1, max_length=2_000)


class BehaviourQuestion(Question):
    """Which heads, and on what they are watched."""

    model: str = Field(max_length=64)
    on: Literal["sentence", "sample"] = "sentence"
    text: str = Field(default="", max_length=20_000)
    target: tuple[NonNegativeInt, ...] = Field(default=(), max_length=1_024)


@dataclass
class Opened:
    """Translators and askers, opened when first needed; the last few stay."""

    shelves: Shelves
    _translators: OrderedDict[str, Translator] = field(default_factory=OrderedDict)
    _askers: OrderedDict[str, Asker] = field(default_factory=OrderedDict)
    _watched: OrderedDict[str, tuple[str, int, Behaviour]] = field(default_factory=OrderedDict)
    _pretrained: OrderedDict[str, PretrainedAsker] = field(default_factory=OrderedDict)

    def translator(self, model: str) -> Translator:
        """Return a model as a translator, or say that it is none."""

        def made() -> Translator:
            path = self.shelves.path(model)
            from heedful.studies.translation import TranslationFormat, Translator
            from heedful.studies.translation.translator import reverse_of

            if not self.shelves.translates(path):
                raise InputError(
                    "model",
                    "was not trained on pairs",
                    expected="a model that translates",
                    hint='train one with source = "phrasebook", or on files of pairs',
                )
            loaded = self.shelves.load(model)
            if loaded.tokenizer is None:
                raise InputError("model", "has no tokenizer", expected="a model that reads text")
            written = TranslationFormat.read(path)
            back = reverse_of(written)
            return Translator(loaded.decoder, loaded.tokenizer, written, reverse=back)

        return _kept(self._translators, model, made)

    def asker(self, identifier: str) -> Asker:
        """Return a model of the knowledge study."""

        def made() -> Asker:
            path = self.shelves.asker(identifier)
            from heedful.studies.knowledge.asker import Asker

            return Asker(path)

        return _kept(self._askers, identifier, made)

    def pretrained(self, model: str, path: Path) -> PretrainedAsker:
        """Return a model that others have trained; the last one stays, it may be large."""
        from heedful.studies.knowledge.pretrained import PretrainedAsker

        return _kept(self._pretrained, model, lambda: PretrainedAsker(path), most=1)

    def watched(self, model: str) -> tuple[str, int, Behaviour]:
        """Return what a model read, its tokens, and what the heads did meanwhile."""
        return _kept(self._watched, model, lambda: _on_sample(self.shelves, model))


def studies_routes(shelves: Shelves) -> APIRouter:
    """Return the routes of these questions."""
    routes, desk, opened = APIRouter(prefix="/api/models"), Desk(workers=1), Opened(shelves)

    @routes.post("/translate")
    async def translate(question: TranslateQuestion) -> Response:
        return await desk.answer(_translate, opened, question)

    @routes.post("/alternatives")
    async def alternatives(question: AlternativesQuestion) -> Response:
        return await desk.answer(_alternatives, opened, question)

    @routes.post("/ask")
    async def ask(question: AskQuestion) -> Response:
        return await desk.answer(_ask, opened, question)

    @routes.websocket("/questions")
    async def questions(socket: WebSocket) -> None:
        await socket.accept()
        with contextlib.suppress(WebSocketDisconnect):
            await _interview(socket, desk, opened)

    @routes.post("/behaviour")
    async def behaviour(question: BehaviourQuestion) -> Response:
        return await desk.answer(_behaviour, opened, question)

    return routes


def _translate(opened: Opened, question: TranslateQuestion) -> dict[str, Any]:
    """Return a text in translation, what the search found for it as one sentence, and an alignment.

    The text is translated as `heed translate` does it, sentence by sentence and with its names; the
    search and the alignment of one of its translations are of the text as one sentence.
    """
    translator = opened.translator(question.model)
    from heedful.studies.translation import align
    from heedful.studies.translation.attribution import BEST_METHOD, METHODS
    from heedful.studies.translation.documents import translate_texts

    whole = next(translate_texts(translator, [question.text], beam=question.beam))
    found = next(
        translator.translate(
            [question.text], beam=question.beam, nbest=question.beam, max_tokens=MOST_WATCHED
        )
    )
    if whole.problem:
        raise InputError("text", whole.problem)
    rank = min(question.rank, len(found.hypotheses) - 1)
    return {
        "languages": translator.format.languages,
        "rank": max(rank, 0),
        "whole": {"text": whole.text, "notes": whole.notes},
        "translation": found,
        "alignment": align(translator, found, rank, question.method or BEST_METHOD)
        if rank >= 0
        else None,
        "pieces": [_pieces(translator, one.tokens) for one in found.hypotheses],
        "methods": METHODS,
        "best_method": BEST_METHOD,
    }


def _pieces(translator: Translator, tokens: Sequence[int]) -> list[str]:
    """Return the tokens of a translation as people read them."""
    return [_shown(translator.tokenizer, one) for one in tokens]


def _alternatives(opened: Opened, question: AlternativesQuestion) -> dict[str, Any]:
    """Return the likeliest tokens at a place of a translation, and how it would go on with each."""
    translator = opened.translator(question.model)
    import torch

    prompt, problem = translator.prompt(question.text)
    if problem:
        raise InputError("text", problem)
    if max(question.prefix, default=0) >= translator.decoder.config.vocabulary:
        raise InputError("prefix", "holds an unknown token", expected="tokens of this model")
    row = [*prompt, *question.prefix]
    if len(row) >= translator.decoder.config.context:
        raise InputError("prefix", "fills the context", expected="a shorter translation")
    with torch.inference_mode():
        logits = translator.decoder(torch.tensor([row]))[0, -1]
    found = _candidates(logits, translator.tokenizer)[:ALTERNATIVES]
    whole = _gone_on(translator, row, [one["id"] for one in found])
    return {
        "alternatives": [
            {
                **one,
                "tokens": tokens[len(prompt) :],
                "text": _written(translator, tokens[len(prompt) :], question.text),
            }
            for one, tokens in zip(found, whole, strict=True)
        ]
    }


def _written(translator: Translator, target: list[int], source: str) -> str:
    tokens = [one for one in target if one != translator.marks.end]
    return translator.format.shown(translator.tokenizer.decode(tokens), source)


def _gone_on(translator: Translator, row: list[int], tokens: list[int]) -> list[list[int]]:
    """Return whole translations that have each of these tokens next: greedy from there on."""
    from heedful.generation import Stops, generate

    end, context = translator.marks.end, translator.decoder.config.context
    starts = [[*row, token] for token in tokens]
    open_ones = [one for one in starts if one[-1] != end and len(one) < context]
    if open_ones:
        made = generate(
            translator.decoder,
            open_ones,
            stops=Stops(tokens=min(MOST_WATCHED, context - len(row) - 1), ends=(end,)),
            step=translator.step,
        )
        for one, (best,) in zip(open_ones, made.continuations, strict=True):
            one += best.tokens
    return starts


def _ask(opened: Opened, question: AskQuestion) -> dict[str, Any]:
    """Return the reply to one question."""
    asker = opened.asker(question.asker)
    return {"reply": asker.ask([question.text])[0]}


async def _interview(socket: WebSocket, desk: Desk, opened: Opened) -> None:
    """Take one question to a model of others, tell how far it is, and answer; or stop.

    Asking takes seconds. Who closes the socket has gone: what was asked is then given up at the
    next wording, so that nobody else waits for it.
    """
    try:
        question = PutQuestion.model_validate_json(await socket.receive_text())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "question"
        await _tell(socket, error={"where": where, "problem": str(first["msg"])})
        await socket.close()
        return
    loop, left = asyncio.get_running_loop(), threading.Event()

    def progress(done: int, of: int) -> None:
        if left.is_set():
            raise _LeftError
        asyncio.run_coroutine_threadsafe(_tell(socket, done=done, of=of), loop)

    gone = asyncio.create_task(_until_gone(socket))
    working = asyncio.create_task(desk.work(_put, opened, question, progress))
    try:
        await asyncio.wait([gone, working], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await _tell(socket, **working.result())
            await socket.close()
    finally:
        left.set()
        gone.cancel()
        working.cancel()


class _LeftError(Exception):
    """Whoever asked is no longer there."""


async def _tell(socket: WebSocket, **content: Any) -> None:
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # gone in the meantime
        await socket.send_text(as_json(content))


def _put(
    opened: Opened, question: PutQuestion, progress: Callable[[int, int], None]
) -> dict[str, Any]:
    """Return the reply of a model of others and what is promised of it, or what went wrong."""
    try:
        entry, path = opened.shelves.answering(question.model)
        from heedful.studies.knowledge.pretrained import WORDINGS
        from heedful.views.knowledge import population_sentence, promise_sentence

        asker = opened.pretrained(question.model, path)
        progress(0, len(WORDINGS))
        found = asker.ask([question.text], asker.calibration(), progress=progress)
    except HeedfulError as error:
        return {"error": error_parts(error)}
    except _LeftError:
        return {}
    except Exception as error:  # else the page would wait for an answer that never comes
        said = f"this should not happen ({type(error).__name__}: {error})"
        print(f"heed serve: {said}", file=sys.stderr)
        return {"error": {"where": "heed serve", "problem": said}}
    promises = None
    if found.known is not None and found.unsure is not None:
        promises = {
            "known": promise_sentence("known", found.known),
            "known_from": found.known.threshold,
            "unsure": promise_sentence("known or unsure", found.unsure),
            "unsure_from": found.unsure.threshold,
            "population": population_sentence(found.population),
        }
    return {
        "reply": found.replies[0],
        "model": entry.name,
        "promises": promises,
        "calibrate": f"heed ask {entry.called} --calibrate",
    }


def _behaviour(opened: Opened, question: BehaviourQuestion) -> dict[str, Any]:
    """Return what every head does."""
    if question.on == "sample":
        name, tokens, seen = opened.watched(question.model)
    else:
        name, (tokens, seen) = "this sentence", _on_sentence(opened.shelves, question)
    return {"on": question.on, "sample": name, "tokens": tokens, "behaviour": seen}


def _on_sentence(shelves: Shelves, question: BehaviourQuestion) -> tuple[int, Behaviour]:
    """Watch the heads on one sentence, and on a translation that follows it."""
    read = sentence(shelves, question.model, question.text, question.target, MOST_WATCHED)
    if len(read.ids) < SHORTEST:
        raise InputError(
            "text",
            f"has {len(read.ids)} tokens",
            expected=f"{SHORTEST} to {MOST_WATCHED} tokens show what heads do",
        )
    import torch

    from heedful.studies.heads import Row
    from heedful.studies.heads.behaviour import Watch

    row, watch = Row(tokens=read.ids, source=read.source), Watch(read.decoder)
    with torch.no_grad():
        read.decoder.visit(row.tensor(), lambda layer, trace: watch.see(layer, trace, row))
    return len(row.tokens), watch.behaviour()


def _on_sample(shelves: Shelves, model: str) -> tuple[str, int, Behaviour]:
    """Watch the heads of a small model on sentences of the phrasebook, and on random repeats."""
    decoder = shelves.load(model).decoder
    size = sum(weights.numel() for weights in decoder.parameters())
    if size > MOST_PARAMETERS:
        raise InputError(
            "model",
            f"has {size:,} parameters",
            expected=f"the page reads samples with at most {MOST_PARAMETERS:,}",
            hint="watch it on a sentence, or run: heed study heads",
        )
    from heedful.studies.heads import open_subject
    from heedful.studies.heads.behaviour import observe

    subject = open_subject(shelves.path(model))
    return subject.sample.name, subject.sample.tokens, observe(subject.decoder, subject.sample)


def _kept(
    shelf: OrderedDict[str, Kept], name: str, make: Callable[[], Kept], most: int = KEPT
) -> Kept:
    """Return what is on a shelf, made if it is not; the longest unused goes."""
    while name not in shelf and len(shelf) >= most:
        shelf.popitem(last=False)  # before another is made: both may not fit
    if name not in shelf:
        shelf[name] = make()
    shelf.move_to_end(name)
    return shelf[name]
