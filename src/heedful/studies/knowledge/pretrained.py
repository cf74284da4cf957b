"""Ask a model that somebody else has trained, and tell what it knows from what it makes up.

A question is put in five wordings, each after two answered examples, and continued greedily to the
end of the line. The answer is the one to the first wording; one that only repeats words of the
question is none. What is heard beside it:

    probability   Π p(token) of that answer
    weakest       the smallest p(token) on the way
    agreement     the share of the other wordings that get the same answer
    support       the mean over the other wordings of Π p(token), 0 where the answer is another
    familiarity   the geometric mean of p(token) over the question itself: a name that the model
                  never met is made of tokens that it does not expect

A logistic regression joins the logarithms of these to one confidence. A third of our calibration
questions fits it and fixes the order of thresholds; the rest test them (`confidence.promise`). An
answer about something that does not exist counts as wrong, so the promise covers invention too.
Calibration takes minutes and is kept for each model, by the digest of its files.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float64
from scipy.special import expit

from heedful.errors import ConfigError, InputError
from heedful.files import sha256, sha256_of, user_cache, write_json
from heedful.generation import FastStep, Greedy, Stops, generate
from heedful.model import open_checkpoint
from heedful.settings import Settings
from heedful.stats import wilson
from heedful.studies.knowledge.confidence import Combination, promise, separations
from heedful.studies.knowledge.findings import (
    KNOWN,
    UNCALIBRATED,
    UNKNOWN,
    UNSURE,
    Drift,
    LevelResult,
    ModelCalibration,
    ModelReplies,
    ModelReply,
    Promise,
    TestAnswer,
)
from heedful.studies.knowledge.questions import (
    LEVELS,
    QuizQuestion,
    normalised,
    one_question,
    questions_of,
    shares,
)

EXAMPLES = (
    ("What is the largest ocean on Earth?", "the Pacific Ocean"),
    ("Who was the first person to walk on the Moon?", "Neil Armstrong"),
    ("Which planet is the closest to the Sun?", "Mercury"),
    ("In which country are the pyramids of Giza?", "Egypt"),
    ("Who was the first president of the United States?", "George Washington"),
    ("What is the tallest animal in the world?", "the giraffe"),
)
"""Shown before a question; none of them is one of the 600."""
WORDINGS = (
    ("Question: {q}\nAnswer:", (0, 1)),
    ("Q: {q}\nA:", (2, 3)),
    ("User: Please tell me: {q}\nAssistant:", (4, 5)),
    ("Quiz question: {q}\nShort answer:", (1, 3)),
    ("I would like to know: {q}\nThe answer is:", (5, 2)),
)
"""Ways to ask anything at all, with the examples shown before; the first one gives the answer."""
SIGNALS = ("probability", "weakest", "agreement", "support", "familiarity")
EXAMPLE = "What is the capital of Peru?"
LONGEST_ANSWER = 12
"""Tokens; the longest accepted answer has fewer."""
ROWS_AT_ONCE = 64
KNOWN_ERROR, UNSURE_ERROR = 0.2, 0.5
"""The share of wrong answers that a promise allows, unless another is wanted: chosen before any
model was asked. "Unsure" means at least as likely right as wrong."""
LEAST = 1e-6
"""Signals below it are all the same: nothing at all."""
MIXTURES = (0.0, 0.25, 0.5, 0.75)
"""Shares of questions about things that do not exist, for which drift is measured."""
SHIPPED_CALIBRATIONS = "calibrations.json"
"""Beside this module: what was found for published models, by digest."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Heard:
    """What a model says to one question, in all wordings."""

    question: str
    answers: tuple[str, ...]
    signals: dict[str, float]

    @property
    def answer(self) -> str:
        """The answer to the first wording."""
        return self.answers[0]

    @property
    def says_something(self) -> bool:
        """Whether the answer has a word that the question does not have."""
        return not set(normalised(self.answer).split()) <= set(normalised(self.question).split())


class Calibrated(Settings):
    """What a calibration leaves for asking."""

    wordings: str
    """Digest of the wordings it was made with."""
    weights: tuple[float, ...]
    """Of the regression, the constant first."""
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    choosing: tuple[tuple[float, bool], ...]
    """Confidence and outcome of the questions that fixed the order."""
    testing: tuple[tuple[float, bool], ...]
    """The same of those that test it."""
    population: dict[str, float]
    """Share of each level among both."""

    def confidence(self, heard: Sequence[Heard]) -> Float64[np.ndarray, " questions"]:
        """Return the joined signals of some answers, from 0 to 1."""
        table = np.stack(list(_columns(heard).values()), axis=1)
        joined = (table - np.array(self.mean)) / np.array(self.scale) @ np.array(self.weights[1:])
        # Nothing said, or only what was asked: the capital of Zimbabwe is not Zimbabwe.
        said = [one.says_something for one in heard]
        return np.where(said, expit(joined + self.weights[0]), 0.0)

    def promise(self, error: float) -> Promise:
        """Return the threshold for an error, or the refusal."""
        return promise(_judged(self.choosing), _judged(self.testing), error)


class PretrainedAsker:
    """A model of any kind that can be opened here, ready to be asked."""

    def __init__(self, model: Path | str) -> None:
        self.name = str(model)
        self.checkpoint = open_checkpoint(model)
        if self.checkpoint.tokenizer is None:
            raise InputError(
                self.name,
                "has no tokenizer beside its weights",
                expected="questions are turned into ids by the model's own tokenizer",
                hint="put its tokenizer.json into the folder",
            )
        self.tokenizer = self.checkpoint.tokenizer

    @cached_property
    def digest(self) -> str:
        """Of the files that the answers come from."""
        path = self.checkpoint.path
        if path.is_file():
            return sha256_of(path)
        read = sorted(one for one in path.iterdir() if one.suffix in (".json", ".safetensors"))
        return sha256("".join(f"{one.name} {sha256_of(one)}\n" for one in read))

    @cached_property
    def _step(self) -> FastStep:
        return FastStep(self.checkpoint.decoder())

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        """Tokens that end a line, or a text."""
        known = min(self.tokenizer.size, self.checkpoint.config.vocabulary)
        texts = (str(self.tokenizer.core.decode([one])) for one in range(known))
        lines = [number for number, text in enumerate(texts) if "\n" in text]
        return tuple(sorted({*lines, *self.checkpoint.ends}))

    def hear(
        self, questions: Sequence[str], progress: Callable[[int, int], None] | None = None
    ) -> list[Heard]:
        """Ask every question in every wording."""
        asked = [one_question(number, text, EXAMPLE)[1] for number, text in enumerate(questions)]
        if not asked:
            raise InputError("question", "is missing", expected="at least one question")
        prompts = [_prompt(number, text) for text in asked for number in range(len(WORDINGS))]
        rows = [self.tokenizer.encode_opened(prompt) for prompt in prompts]
        longest, context = max(map(len, rows)), self.checkpoint.config.context
        if longest + LONGEST_ANSWER > context:
            raise InputError(
                "question",
                f"has {longest} tokens together with its examples",
                expected=f"this model reads {context}, {LONGEST_ANSWER} of them for the answer",
                hint="ask a shorter question, or a model with a longer context",
            )
        said = self._continued(rows, progress)
        step = len(WORDINGS)
        parts = (said[first : first + step] for first in range(0, len(said), step))
        return [
            _heard(text, part, familiarity)
            for text, part, familiarity in zip(asked, parts, self._familiarity(asked), strict=True)
        ]

    def answers(
        self, questions: Sequence[str], progress: Callable[[int, int], None] | None = None
    ) -> list[str]:
        """Ask every question once, in the first wording; return what is said."""
        rows = [self.tokenizer.encode_opened(_prompt(0, text)) for text in questions]
        return [text.rstrip(" .") for text, _ in self._continued(rows, progress)]

    @torch.no_grad()
    def _familiarity(self, questions: Sequence[str]) -> list[float]:
        """Return how far the model expects each question, token by token, in the first wording."""
        before, decoder = _before(0), self._step.decoder
        start = len(self.tokenizer.encode_opened(before.rstrip()))
        rows = [self.tokenizer.encode_opened(before + text) for text in questions]
        found = []
        for first in range(0, len(rows), ROWS_AT_ONCE):
            part = rows[first : first + ROWS_AT_ONCE]
            longest = max(map(len, part))
            streams = decoder.hidden(torch.tensor([[*r, *[0] * (longest - len(r))] for r in part]))
            for row, stream in zip(part, streams, strict=True):
                # The stream before a token predicts it.
                logs = decoder.logits(stream[start - 1 : len(row) - 1]).log_softmax(-1)
                chosen = logs.gather(1, torch.tensor(row[start:])[:, None])
                found.append(math.exp(float(chosen.mean())))
        return found

    def _continued(
        self, rows: list[list[int]], progress: Callable[[int, int], None] | None
    ) -> list[tuple[str, tuple[float, ...]]]:
        """Return the line that follows each row, and the log-probabilities of its tokens."""
        stops = Stops(tokens=LONGEST_ANSWER, ends=self._ends)
        # Rows of one wording and one length begin alike and need no padding: what they have in
        # common is read once, which is most of it.
        alike: dict[tuple[int, int], list[int]] = {}
        for place, row in enumerate(rows):
            alike.setdefault((place % len(WORDINGS), len(row)), []).append(place)
        batches = [
            places[first : first + ROWS_AT_ONCE]
            for places in alike.values()
            for first in range(0, len(places), ROWS_AT_ONCE)
        ]
        said: dict[int, tuple[str, tuple[float, ...]]] = {}
        for part in batches:
            result = generate(
                self._step.decoder,
                [rows[place] for place in part],
                method=Greedy(),
                stops=stops,
                step=self._step,
            )
            for place, (one,) in zip(part, result.continuations, strict=True):
                tokens = one.tokens[:-1] if one.finished else one.tokens
                text = str(self.tokenizer.core.decode(list(tokens), skip_special_tokens=True))
                said[place] = (_line(text), one.log_probabilities)
            if progress is not None:
                progress(len(said), len(rows))
        return [said[place] for place in range(len(rows))]

    def ask(
        self,
        questions: Sequence[str],
        calibrated: Calibrated | None,
        error: float = KNOWN_ERROR,
        progress: Callable[[int, int], None] | None = None,
    ) -> ModelReplies:
        """Answer questions, each with its label; without a calibration there is none."""
        known = calibrated.promise(error) if calibrated else None
        unsure = calibrated.promise(max(UNSURE_ERROR, error)) if calibrated else None
        heard = self.hear(questions, progress)
        sure = calibrated.confidence(heard).tolist() if calibrated else [None] * len(heard)
        return ModelReplies(
            model=self.name,
            replies=tuple(
                _reply(question, one, confidence, known, unsure)
                for question, one, confidence in zip(questions, heard, sure, strict=True)
            ),
            known=known,
            unsure=unsure,
            population=calibrated.population if calibrated else {},
        )

    def calibrate(
        self,
        error: float = KNOWN_ERROR,
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[Calibrated, ModelCalibration]:
        """Ask our questions: one half calibrates, the other half is the test."""
        started = time.monotonic()
        held_out, test = questions_of("calibration"), questions_of("test")
        heard = self.hear([one.text for one in (*held_out, *test)], progress)
        first = len(held_out)
        calibrated = _calibrated(held_out, heard[:first])
        found = _tested(calibrated, test, heard[first:], error)
        return calibrated, ModelCalibration(
            model=self.name,
            sha256=self.digest,
            population=calibrated.population,
            known=calibrated.promise(error),
            unsure=calibrated.promise(max(UNSURE_ERROR, error)),
            seconds=time.monotonic() - started,
            **found,
        )

    def keep(self, calibrated: Calibrated) -> Path:
        """Keep a calibration for the next time; return where it lies."""
        path = _kept(self.digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, calibrated.model_dump(mode="json"))
        return path

    def calibration(self) -> Calibrated | None:
        """Return the calibration of this very model: one made here, or one that we ship."""
        kept = _kept(self.digest)
        found = _read(kept.read_text(encoding="utf-8")) if kept.is_file() else None
        if found is None:
            shipped = files(__package__).joinpath(SHIPPED_CALIBRATIONS).read_text(encoding="utf-8")
            found = json.loads(shipped).get(self.digest)
        try:
            calibrated = None if found is None else Calibrated.of(found)
        except ConfigError:
            return None  # of another version: as good as none
        return calibrated if calibrated and calibrated.wordings == wordings_digest() else None


def wordings_digest() -> str:
    """Return a digest of everything that shapes what a model is asked."""
    return sha256(repr((EXAMPLES, WORDINGS, LONGEST_ANSWER, SIGNALS)))[:16]


def _prompt(number: int, question: str) -> str:
    """Return what is read before the answer to a question in one wording."""
    wording = WORDINGS[number][0]
    return _before(number) + question + wording.partition("{q}")[2]


def _before(number: int) -> str:
    """Return what stands before the question: examples, and the words that lead to it."""
    wording, shown = WORDINGS[number]
    examples = (EXAMPLES[place] for place in shown)
    answered = (f"{wording.format(q=asked)} {answer}\n" for asked, answer in examples)
    return "".join(answered) + wording.partition("{q}")[0]


def _line(text: str) -> str:
    r"""Return a text as one line that can be shown: a model may say anything, escapes included.

    >>> _line(" the\x1b[31m Nile\n")
    'the [31m Nile'
    """
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _heard(
    question: str, said: Sequence[tuple[str, tuple[float, ...]]], familiarity: float
) -> Heard:
    """Return the answers to one question with their signals."""
    (answer, logs), *others = said
    same = [normalised(other) == normalised(answer) for other, _ in others]
    support = [math.exp(sum(one)) if agrees else 0.0
               for agrees, (_, one) in zip(same, others, strict=True)]  # fmt: skip
    return Heard(
        question=question,
        answers=tuple(text.rstrip(" .") for text, _ in said),
        signals={
            "probability": math.exp(sum(logs)),
            "weakest": math.exp(min(logs)),
            "agreement": sum(same) / len(same),
            "support": sum(support) / len(support),
            "familiarity": familiarity,
        },
    )


def _columns(heard: Sequence[Heard]) -> dict[str, Float64[np.ndarray, " questions"]]:
    """Return the signals as the regression sees them: chances as logarithms, and finite."""
    values = {name: np.array([one.signals[name] for one in heard]) for name in SIGNALS}
    return {
        name: column if name == "agreement" else np.log(np.maximum(column, LEAST))
        for name, column in values.items()
    }


def _right(
    questions: Sequence[QuizQuestion], heard: Sequence[Heard]
) -> Bool[np.ndarray, " questions"]:
    return np.array(
        [one.accepts(said.answer) for one, said in zip(questions, heard, strict=True)], dtype=bool
    )


def _calibrated(questions: Sequence[QuizQuestion], heard: Sequence[Heard]) -> Calibrated:
    right = _right(questions, heard)
    chooses = np.arange(len(right)) % 3 == 0
    joined = Combination(_columns(heard), right & chooses, ~right & chooses)
    calibrated = Calibrated(
        wordings=wordings_digest(),
        weights=tuple(joined.weights.tolist()),
        mean=tuple(joined.mean.tolist()),
        scale=tuple(joined.scale.tolist()),
        choosing=(),
        testing=(),
        population=shares(questions),
    )
    pairs = list(zip(calibrated.confidence(heard).tolist(), right.tolist(), strict=True))
    return calibrated.changed(
        choosing=tuple(pair for pair, chosen in zip(pairs, chooses, strict=True) if chosen),
        testing=tuple(pair for pair, chosen in zip(pairs, chooses, strict=True) if not chosen),
    )


def _tested(
    calibrated: Calibrated, questions: Sequence[QuizQuestion], heard: Sequence[Heard], error: float
) -> dict[str, Any]:
    """Return what the record says of the test half."""
    known, unsure = calibrated.promise(error), calibrated.promise(max(UNSURE_ERROR, error))
    confidence, right = calibrated.confidence(heard), _right(questions, heard)
    exists = np.array([one.exists for one in questions])
    labels = [_label(sure, known, unsure) for sure in confidence.tolist()]
    answers = tuple(
        TestAnswer(
            question=one.text,
            level=LEVELS[one.level],
            answer=said.answer,
            right=bool(good),
            label=label,
            confidence=float(sure),
            signals=said.signals,
        )
        for one, said, good, label, sure in zip(
            questions, heard, right, labels, confidence, strict=True
        )
    )
    levels = tuple(_level(words, answers) for words in LEVELS.values())
    low, high = wilson(sum(one.known_wrong for one in levels), sum(one.known for one in levels))
    columns = {**_columns(heard), "all, combined": confidence}
    return {
        "levels": levels,
        "known_low": low,
        "known_high": high,
        "right_or_wrong": separations(columns, right, ~right),
        "real_or_invented": separations(columns, right, ~exists),
        "drift": tuple(_drift(share, levels) for share in MIXTURES),
        "answers": answers,
    }


def _level(words: str, answers: Sequence[TestAnswer]) -> LevelResult:
    of_level = [one for one in answers if one.level == words]

    def counted(label: str, *, wrong: bool) -> int:
        return sum(one.label == label and not (wrong and one.right) for one in of_level)

    return LevelResult(
        level=words,
        questions=len(of_level),
        right=sum(one.right for one in of_level),
        known=counted(KNOWN, wrong=False),
        known_wrong=counted(KNOWN, wrong=True),
        unsure=counted(UNSURE, wrong=False),
        unsure_wrong=counted(UNSURE, wrong=True),
    )


def _drift(invented: float, levels: Sequence[LevelResult]) -> Drift:
    """Weigh the test answers so that things that do not exist get this share."""
    unreal = [one for one in levels if one.level == LEVELS[0]]
    real = [one for one in levels if one.level != LEVELS[0]]
    answered = wrong = 0.0
    for group, share in ((unreal, invented), (real, 1 - invented)):
        count = max(sum(one.questions for one in group), 1)
        answered += share * sum(one.known + one.unsure for one in group) / count
        wrong += share * sum(one.known_wrong + one.unsure_wrong for one in group) / count
    return Drift(invented=invented, error=wrong / answered if answered else None, answered=answered)


def _reply(
    question: str,
    heard: Heard,
    confidence: float | None,
    known: Promise | None,
    unsure: Promise | None,
) -> ModelReply:
    label = UNCALIBRATED if confidence is None else _label(confidence, known, unsure)
    if not heard.says_something:
        label = UNKNOWN
    return ModelReply(
        question=question,
        answer=None if label == UNKNOWN else heard.answer,
        would_say=heard.answer,
        label=label,
        confidence=confidence,
        probability=heard.signals["probability"],
        agreement=heard.signals["agreement"],
        wordings=heard.answers,
        others=_others(heard),
    )


def _others(heard: Heard) -> tuple[str, ...]:
    """Return what the other wordings get, each answer once, however it is written."""
    said: dict[str, str] = {}
    for text in heard.answers:
        said.setdefault(normalised(text), text)
    return tuple(filter(None, list(said.values())[1:]))


def _label(confidence: float, known: Promise | None, unsure: Promise | None) -> str:
    for label, made in ((KNOWN, known), (UNSURE, unsure)):
        if made is not None and made.threshold is not None and confidence >= made.threshold:
            return label
    return UNKNOWN


def _judged(
    pairs: Sequence[tuple[float, bool]],
) -> tuple[Float64[np.ndarray, " questions"], Bool[np.ndarray, " questions"]]:
    return (
        np.array([score for score, _ in pairs], dtype=np.float64),
        np.array([outcome for _, outcome in pairs], dtype=bool),
    )


def _kept(digest: str) -> Path:
    return user_cache() / "calibrations" / f"{digest[:32]}.json"


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
