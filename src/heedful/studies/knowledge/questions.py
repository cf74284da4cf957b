"""Six hundred questions for a model that somebody else has trained, and what counts as right.

`questions.tsv` has 450 questions about things that exist, with the accepted answers and how well
known each is, and 150 about things that do not: countries, people, books whose names we made up.
About these every answer is wrong, and silence is right.

    level 1   well known: what most people who went to school would answer
    level 2   known: what a good quiz asks
    level 3   little known
    level 0   does not exist

Half of them are for calibration and half for the test, by one rule that nobody can bend: the parity
of the SHA-256 of the question. A reply counts as right where it holds an accepted answer as whole
words, accents and capitals aside; replies are one short line, with little room for several guesses.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from heedful.errors import InputError

TOPICS = {
    "capital": "What is the capital of {}?",
    "river": "Which river flows through {}?",
    "landmark": "In which city is {}?",
    "birthplace": "In which city or town was {} born?",
    "book": "Who wrote {}?",
    "painting": "Who painted {}?",
    "music": "Who composed {}?",
    "inventor": "Who invented {}?",
    "discoverer": "Who discovered {}?",
    "element": "Which chemical element has the symbol {}?",
}
"""How each topic is asked."""
LEVELS = {1: "well known", 2: "known", 3: "little known", 0: "does not exist"}
"""In words."""
COLUMNS = ("topic", "level", "subject", "answers")
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "ß": "ss", "æ": "ae", "œ": "oe", "đ": "d", "’": "'"})
"""Letters that Unicode does not take apart."""

MOST_CHARACTERS = 500
"""Of a question that somebody asks: one sentence."""

Part = Literal["calibration", "test"]


def one_question(number: int, text: str, example: str) -> tuple[str, str]:
    """Return what to call a question in an error, and the question in one line; empty is refused.

    >>> one_question(1, " Who wrote\\nHamlet? ", "Who wrote Ulysses?")
    ('question 2', 'Who wrote Hamlet?')
    """
    where = "question" if number == 0 else f"question {number + 1}"
    question = " ".join(text.split())
    if not question:
        raise InputError(where, "is empty", expected=f'for instance "{example}"')
    if len(question) > MOST_CHARACTERS:
        raise InputError(
            where,
            f"has {len(question):,} characters",
            expected=f"at most {MOST_CHARACTERS} are read",
            hint="ask in one sentence",
        )
    return where, question


@dataclass(frozen=True, kw_only=True)
class QuizQuestion:
    """One question, and the answers that count as right."""

    topic: str
    level: int
    subject: str
    answers: tuple[str, ...]
    """None where the subject does not exist."""

    @property
    def text(self) -> str:
        """As it is asked."""
        return TOPICS[self.topic].format(self.subject)

    @property
    def exists(self) -> bool:
        """Whether there is anything to know."""
        return self.level > 0

    @property
    def part(self) -> Part:
        """Which half it belongs to."""
        last = hashlib.sha256(self.text.encode()).digest()[-1]
        return "calibration" if last % 2 == 0 else "test"

    def accepts(self, reply: str) -> bool:
        """Say whether a reply holds one of the answers as whole words.

        >>> one = QuizQuestion(topic="capital", level=1, subject="France", answers=("Paris",))
        >>> [one.accepts(reply) for reply in ("It is PARIS.", "Parisian", "")]
        [True, False, False]
        """
        said = f" {normalised(reply)} "
        return any(f" {normalised(answer)} " in said for answer in self.answers)


def normalised(text: str) -> str:
    """Return the words of a text without accents, capitals, signs and a leading article.

    >>> normalised("The Hague, N'Djamena & Gällivare.")
    'hague n djamena gallivare'
    """
    folded = unicodedata.normalize("NFKD", text.casefold().translate(_LETTERS))
    plain = "".join(sign for sign in folded if not unicodedata.combining(sign))
    words = re.findall(r"\w+", plain)
    return " ".join(words[1:] if words[:1] in (["the"], ["a"], ["an"]) and words[1:] else words)


@cache
def all_questions() -> tuple[QuizQuestion, ...]:
    """Return the 600 questions in the order of the file."""
    text = files(__package__).joinpath("questions.tsv").read_text(encoding="utf-8")
    return read_questions(text)


def questions_of(part: Part) -> tuple[QuizQuestion, ...]:
    """Return the questions for calibration, or those for the test, in an order without meaning."""
    chosen = (one for one in all_questions() if one.part == part)
    return tuple(sorted(chosen, key=lambda one: hashlib.sha256(one.text.encode()).digest()))


def read_questions(text: str) -> tuple[QuizQuestion, ...]:
    """Read a table of questions with the columns topic, level, subject and answers."""
    header, *lines = text.rstrip("\n").split("\n")
    if tuple(header.split("\t")) != COLUMNS:
        raise InputError("questions", f"begin with {header!r:.60}", expected="\t".join(COLUMNS))
    return tuple(_question(number, line) for number, line in enumerate(lines, start=2))


def _question(number: int, line: str) -> QuizQuestion:
    where, cells = f"questions, line {number}", line.split("\t")
    if len(cells) != len(COLUMNS):
        raise InputError(where, f"has {len(cells)} columns", expected=f"{len(COLUMNS)}")
    topic, level, subject, answers = cells
    if topic not in TOPICS:
        raise InputError(where, f"is about {topic!r}", expected=f"one of {', '.join(TOPICS)}")
    if level not in map(str, LEVELS):
        raise InputError(where, f"has the level {level!r}", expected="1, 2, 3, or 0")
    accepted = tuple(filter(None, answers.split("|")))
    if bool(accepted) != (level != "0") or not subject.strip():
        raise InputError(
            where,
            f"has {len(accepted)} answers at level {level}",
            expected="a subject; answers where it exists, none at level 0",
        )
    return QuizQuestion(topic=topic, level=int(level), subject=subject, answers=accepted)


def shares(questions: Sequence[QuizQuestion]) -> dict[str, float]:
    """Return which share of the questions has which level, in words."""
    count = max(len(questions), 1)
    return {
        words: sum(one.level == level for one in questions) / count
        for level, words in LEVELS.items()
    }
