"""Ask a model of the study: an answer with its confidence and evidence, or "I don't know".

The study leaves beside the weights of its main arm what asking needs: the tokenizer, the documents,
the fine-tuning questions, the temperature, and the threshold below which it does not answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from heedful.errors import ConfigError, InputError
from heedful.files import write_atomic, write_json
from heedful.model.weights.published import PUBLISHED
from heedful.settings import Settings
from heedful.studies.knowledge.answers import Answerer, sequence_probability
from heedful.studies.knowledge.corpus import Asked, KnowledgeCorpus, name_in
from heedful.studies.knowledge.evidence import DocumentIndex
from heedful.studies.knowledge.findings import ASK, RECORD, AskReply
from heedful.studies.knowledge.names import Neighbours
from heedful.studies.knowledge.questions import one_question
from heedful.studies.knowledge.training import END, MASK
from heedful.tokenization import Tokenizer
from heedful.training import trained_decoder

TOKENIZER, DOCUMENTS = "tokenizer.json", "documents.txt"
QUESTIONS, PEOPLE = "questions.tsv", "people.txt"


class AskSettings(Settings):
    """When to answer: what `ask.json` holds."""

    kind: Literal["heedful knowledge study"] = "heedful knowledge study"
    temperature: float
    """Divides the logits before a confidence is worked out."""
    threshold: float
    """Below this confidence the model does not answer."""
    wanted_error: float
    """The error rate for which the threshold was chosen."""
    promised_error: float | None = None
    """What the held-out questions promise, at 95 %; None where nobody worked it out."""
    longest_answer: int
    """Tokens of an answer at most, its end included."""


def keep_for_asking(
    run: Path, tokenizer: Tokenizer, settings: AskSettings, corpus: KnowledgeCorpus
) -> None:
    """Put what asking needs beside the weights of a run; `ask.json` comes last."""
    tokenizer.save(run / TOKENIZER)
    write_atomic(run / DOCUMENTS, "".join(f"{text}\n" for text in corpus.documents))
    asked = (f"{one.question}\t{one.answer}\n" for one in corpus.train)
    write_atomic(run / QUESTIONS, "".join(asked))
    # Names alone: where somebody was born, only a question of fine-tuning or the text may say.
    write_atomic(run / PEOPLE, "".join(f"{name}\n" for name in corpus.known_people))
    write_json(run / ASK, settings.model_dump())


class Asker:
    """A trained model that answers questions, or says that it does not know."""

    def __init__(self, path: Path) -> None:
        """Open the folder of a study, or of the run that it left for asking."""
        run = _run_of(path)
        self.settings = _settings(run)
        tokenizer = Tokenizer.read(run / TOKENIZER)
        self.answerer = Answerer(trained_decoder(run), tokenizer, self.settings.longest_answer)
        self.evidence = DocumentIndex(_lines(run / DOCUMENTS))
        self.learned = _pairs(run / QUESTIONS)
        self.people = _lines(run / PEOPLE)

    def ask(self, questions: Sequence[str]) -> list[AskReply]:
        """Answer questions; what cannot be asked is refused before any is answered."""
        asked = [self._checked(number, text) for number, text in enumerate(questions)]
        if not asked:
            raise InputError("question", "is missing", expected="at least one question")
        replies = self.answerer.replies_to(asked)
        logits = self.answerer.read_again([one.question for one in asked], replies)
        confidence = sequence_probability(logits, replies, self.settings.temperature)
        return [
            self._reply(one, reply.text, float(sure))
            for one, reply, sure in zip(asked, replies, confidence, strict=True)
        ]

    def _reply(self, one: Asked, said: str, confidence: float) -> AskReply:
        line, supports = self.evidence.line(one.name, said) if one.name else (None, False)
        learned = self.learned.get(one.question)
        known = line is not None or learned is not None
        nearest = {} if known or not one.name else self._neighbours.nearest([one.name])[0]
        return AskReply(
            question=one.question,
            name=one.name or None,
            answer=said if confidence >= self.settings.threshold else None,
            would_say=said,
            confidence=confidence,
            threshold=self.settings.threshold,
            wanted_error=self.settings.wanted_error,
            promised_error=self.settings.promised_error,
            evidence=line,
            supported=supports,
            fine_tuned_answer=learned,
            nearest=nearest,
        )

    @cached_property
    def _neighbours(self) -> Neighbours:
        told = {name_in(question): place for question, place in self.learned.items()}
        places = list(dict.fromkeys(self.learned.values()))
        return Neighbours(
            self.people,
            [
                told.get(name) or self.evidence.place(name, places) or "place not known"
                for name in self.people
            ],
            self.answerer.tokenizer.encode_batch,
            lambda names: self.answerer.name_states([Asked.about(name) for name in names]),
        )

    def _checked(self, number: int, text: str) -> Asked:
        where, question = one_question(number, text, "Where was Ada Lee born?")
        for mark in (MASK, END):
            if mark in question:
                raise InputError(where, f"holds {mark!r}, a mark of the model", hint="leave it out")
        tokens = len(self.answerer.prompts([question])[0])
        if tokens > self.answerer.longest_question:
            raise InputError(
                where,
                f"has {tokens} tokens",
                expected=f"at most {self.answerer.longest_question} leave room for an answer",
                hint='ask as it was trained: "Where was NAME born?"',
            )
        return Asked(question=question, name=name_in(question) or "", answer="", seen=False)


def can_be_opened_as_model(path: Path) -> bool:
    """Say whether this is a model that others have trained, and not a folder of our study."""
    if (path / ASK).is_file() or (path / RECORD).is_file():
        return False
    named = not path.exists() and str(path) in PUBLISHED
    return named or path.is_file() or (path / "config.json").is_file()


def _run_of(path: Path) -> Path:
    if not path.is_dir():
        raise InputError(
            str(path), "there is no such folder", hint="make one with: heed study knowledge"
        )
    study = path / RECORD
    if (path / ASK).is_file() or not study.is_file():
        return path
    run = _json(study).get("run")
    if not isinstance(run, str) or Path(run).is_absolute() or ".." in Path(run).parts:
        raise InputError(str(study), "names no run to ask", hint="run the study again")
    return path / run


def _settings(run: Path) -> AskSettings:
    if not (run / ASK).is_file():
        raise InputError(
            str(run),
            f"cannot be asked: it has no {ASK}",
            expected="the folder of a finished knowledge study",
            hint="make one with: heed study knowledge",
        )
    try:
        return AskSettings.of(_json(run / ASK))
    except ConfigError:
        raise InputError(
            str(run / ASK), "was not written by a knowledge study", hint="run the study again"
        ) from None


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(str(path), f"cannot be read ({str(error)[:80]})") from None
    if not isinstance(content, dict):
        raise InputError(str(path), "holds no object", hint="run the study again")
    return content


def _pairs(path: Path) -> dict[str, str]:
    pairs = {}
    for number, line in enumerate(_lines(path), start=1):
        first, tab, second = line.partition("\t")
        if not tab:
            raise InputError(f"{path}:{number}", "has no tab", hint="run the study again")
        pairs[first] = second
    return pairs


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), f"cannot be read ({str(error)[:80]})") from None
    return [line for line in text.split("\n") if line]
