"""View 4, further: translations with their alignment, questions, and what each head does.

Every answer is the record of its study. These questions are dear (a search with beams, a pass over
a sample), so they are worked on one after another, apart from the quick ones of the other views,
and each has a limit that is told to whoever exceeds it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field, NonNegativeInt

from heedful.errors import InputError
from heedful.web.answers import Desk, Question
from heedful.web.sentences import sentence
from heedful.web.shelves import Shelves

if TYPE_CHECKING:
    from heedful.studies.heads import Behaviour
    from heedful.studies.knowledge.asker import Asker
    from heedful.studies.translation import Translator

MOST_BEAMS = 16
MOST_TOKENS = 256
"""Tokens of a sentence whose heads are sorted, and of a translation."""
MOST_PARAMETERS = 60_000_000
"""Of a model that reads a whole sample; a sentence may be read by any."""
SHORTEST = 6
"""Tokens of a sentence from which something can be said about heads."""
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


class AskQuestion(Question):
    """A question to a model of the knowledge study."""

    asker: str = Field(max_length=64)
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

    def translator(self, model: str) -> Translator:
        """Return a model as a translator, or say that it is none."""

        def made() -> Translator:
            path = self.shelves.path(model)
            from heedful.studies.translation import TranslationFormat, Translator

            if not self.shelves.translates(path):
                raise InputError(
                    "model",
                    "was not trained on pairs",
                    expected="a model that translates",
                    way_out='train one with source = "phrasebook", or on files of pairs',
                )
            loaded = self.shelves.load(model)
            if loaded.tokenizer is None:
                raise InputError("model", "has no tokenizer", expected="a model that reads text")
            return Translator(loaded.decoder, loaded.tokenizer, TranslationFormat.read(path))

        return _kept(self._translators, model, made)

    def asker(self, identifier: str) -> Asker:
        """Return a model of the knowledge study."""

        def made() -> Asker:
            path = self.shelves.asker(identifier)
            from heedful.studies.knowledge.asker import Asker

            return Asker(path)

        return _kept(self._askers, identifier, made)

    def watched(self, model: str) -> tuple[str, int, Behaviour]:
        """Return what a model read, its tokens, and what the heads did meanwhile."""
        return _kept(self._watched, model, lambda: _on_sample(self.shelves, model))


def studies_routes(shelves: Shelves) -> APIRouter:
    """Return the routes of these questions."""
    routes, desk, opened = APIRouter(prefix="/api/models"), Desk(workers=1), Opened(shelves)

    @routes.post("/translate")
    async def translate(question: TranslateQuestion) -> Response:
        return await desk.answer(_translate, opened, question)

    @routes.post("/ask")
    async def ask(question: AskQuestion) -> Response:
        return await desk.answer(_ask, opened, question)

    @routes.post("/behaviour")
    async def behaviour(question: BehaviourQuestion) -> Response:
        return await desk.answer(_behaviour, opened, question)

    return routes


def _translate(opened: Opened, question: TranslateQuestion) -> dict[str, Any]:
    """Return the translations of a sentence, best first, and the alignment of one of them."""
    translator = opened.translator(question.model)
    from heedful.studies.translation import align

    found = next(
        translator.translate(
            [question.text], beam=question.beam, nbest=question.beam, max_tokens=MOST_TOKENS
        )
    )
    if found.problem:
        raise InputError("text", found.problem)
    rank = min(question.rank, len(found.hypotheses) - 1)
    return {
        "languages": translator.format.languages,
        "rank": max(rank, 0),
        "translation": found,
        "alignment": align(translator, found, rank) if rank >= 0 else None,
    }


def _ask(opened: Opened, question: AskQuestion) -> dict[str, Any]:
    """Return the reply to one question."""
    asker = opened.asker(question.asker)
    return {"reply": asker.ask([question.text])[0]}


def _behaviour(opened: Opened, question: BehaviourQuestion) -> dict[str, Any]:
    """Return what every head does."""
    if question.on == "sample":
        name, tokens, seen = opened.watched(question.model)
    else:
        name, (tokens, seen) = "this sentence", _on_sentence(opened.shelves, question)
    return {"on": question.on, "sample": name, "tokens": tokens, "behaviour": seen}


def _on_sentence(shelves: Shelves, question: BehaviourQuestion) -> tuple[int, Behaviour]:
    """Watch the heads on one sentence, and on a translation that follows it."""
    read = sentence(shelves, question.model, question.text, question.target, MOST_TOKENS)
    if len(read.ids) < SHORTEST:
        raise InputError(
            "text",
            f"has {len(read.ids)} tokens",
            expected=f"{SHORTEST} to {MOST_TOKENS} tokens show what heads do",
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
            way_out="watch it on a sentence, or run: heed study heads",
        )
    import torch

    from heedful.studies.heads import Amount, open_subject
    from heedful.studies.heads.behaviour import Watch, watch_repeats

    amount = Amount(rows=2, tokens=MOST_TOKENS // 2, pairs=16)
    subject = open_subject(shelves.path(model), amount=amount)
    watch = Watch(subject.decoder)
    with torch.no_grad():
        for row in subject.sample.rows:
            subject.decoder.visit(row.tensor(), partial(watch.see, row=row))
    watch_repeats(subject.decoder, subject.sample, watch)
    return subject.sample.name, subject.sample.tokens, watch.behaviour()


def _kept(shelf: OrderedDict[str, Kept], name: str, make: Callable[[], Kept]) -> Kept:
    """Return what is on a shelf, made if it is not; the longest unused goes."""
    if name not in shelf:
        shelf[name] = make()
    shelf.move_to_end(name)
    while len(shelf) > KEPT:
        shelf.popitem(last=False)
    return shelf[name]


__all__ = ["studies_routes"]
