"""Documents taken apart, and a reader that finds answers in them.

    document   Ann Lee. Ann Lee (born 3 May 1950 in Rome) sings in Paris .
    name       Ann Lee
    phrases    Rome        Paris
    cues       ( born # in        # in _ ) sings in

A cue is what stands before a phrase, with names and places written `_` and dates `#`. It says
which of the facts is meant and gives none away: to continue `Ann Lee ⁇ born # in ⁇`, a model has
to know the fact under the name.

The reader is learned from the training questions alone. Of the phrases of a document, which one is
the answer? The phrases of a document d compete,

    p(phrase | d) = exp(w · f(phrase)) / Σ over the phrases of d of exp(w · f)

where f are features such as the words before and after, the place in the order, and how often the
phrase is an answer to other training questions. w maximises the likelihood of the answers to the
training questions whose documents hold them, less ½ ‖w‖².

`self_questions` reads every document that nobody asks about in training and writes the question
that the training questions suggest, with what it found as the answer. No answer to a question of
the test is used, or known; what the reader gets wrong, the model learns wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import scipy  # its parts are imported when they are first used
from jaxtyping import Float64, Int

from heedful.errors import InputError
from heedful.studies.knowledge.corpus import Asked

Kind = Literal["name", "date", "word", "mark"]
Phrase = tuple[int, int]
"""The first word of a phrase, and the word after its last."""

_MONTHS = (
    "January February March April May June July August September October November December "
    "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec"
)
MONTHS = frozenset(_MONTHS.split())
_LINKS = "of de upon on la del di the am an der den le les do da dos al el sur"
LINKS = frozenset(_LINKS.split())
"""Words in small letters inside of names: Isle of Man, Newcastle upon Tyne."""
COMMON = 5
"""A first word is taken for a plain one if it stands so often elsewhere, in small letters."""
_OPENINGS = "a an as at born by for he her his in it on she the their they"
OPENINGS = frozenset(_OPENINGS.split())
"""First words that are plain ones in any text."""
NAMES, DATES, OPENING = "_", "#", "^"
BIRTH = frozenset({"born", "b", "birth", "native", "birthplace"})
SURE = 0.25
"""A phrase that is less likely than this is not taken for an answer."""
ROUNDS = 200
_WORD = re.compile(
    r"(?:St|Ft|Mt|Sta|Ste)\.(?=\s[A-Z])|[A-Z]\.(?:[A-Z]\.)+|\w(?:[\w'’\-/]*\w)?|[^\w\s]+"
)
_TITLE = re.compile(r"(?P<name>.{1,80}?(?<!\b[A-Z])(?<!\b[JSD]r)(?<!\bSt)(?<!\bMt))\. (?=\S)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word or a run of signs, and where it stands."""

    text: str
    start: int
    end: int
    kind: Kind


@dataclass(frozen=True, eq=False, kw_only=True)
class Mentions:
    """One document, taken apart."""

    name: str
    """Whom it is about; empty where nothing says so."""
    body: str
    """The text after its title."""
    words: tuple[Word, ...]
    runs: tuple[Phrase, ...]
    """Capitalised words side by side, but for those of the name."""
    linked: tuple[Phrase, ...]
    """Two such runs with a small word between."""

    @property
    def phrases(self) -> tuple[Phrase, ...]:
        """What can be asked for."""
        return self.runs + self.linked

    def text(self, phrase: Phrase) -> str:
        """Return a phrase as it is written."""
        first, after = phrase
        return self.body[self.words[first].start : self.words[after - 1].end]

    def cue(self, phrase: Phrase, length: int) -> list[str]:
        """Return the last words before a phrase, at most so many, names and dates hidden.

        >>> (lee,) = mentions(["Ann Lee. She was born on 3 May 1950 in Rome ."])
        >>> lee.cue(lee.phrases[0], 4)
        ['born', 'on', '#', 'in']
        """
        cue: list[str] = []
        place = phrase[0] - 1
        while place >= 0 and len(cue) < length:
            written = _hidden(self.words[place])
            if written not in (NAMES, DATES) or cue[-1:] != [written]:
                cue.append(written)
            place -= 1
        if place < 0 and len(cue) < length:
            cue.append(OPENING)
        return cue[::-1]


def mentions(documents: Sequence[str]) -> list[Mentions]:
    """Take documents apart; which words are plain ones is learned from all of them."""
    parts = [_titled(document) for document in documents]
    cut = [list(_WORD.finditer(body)) for _, body in parts]
    small = Counter(
        word[0] for words in cut for place, word in enumerate(words) if place and word[0].islower()
    )
    return [
        _taken_apart(name, body, words, small)
        for (name, body), words in zip(parts, cut, strict=True)
    ]


def _titled(document: str) -> tuple[str, str]:
    title = _TITLE.match(document)
    if title is None:
        return "", document
    return title["name"], document[title.end() :]


def _taken_apart(
    name: str, body: str, matches: Sequence[re.Match[str]], small: Counter[str]
) -> Mentions:
    words: list[Word] = []
    for match in matches:
        opens = not words or words[-1].text in (".", ";")
        lowered = match[0][:1].lower() + match[0][1:]
        plain = opens and (lowered in OPENINGS or small[lowered] >= COMMON)
        words.append(
            Word(text=match[0], start=match.start(), end=match.end(), kind=_kind(match[0], plain))
        )
    runs = _runs(words, body)
    own = set(re.findall(r"\w+", name))
    return Mentions(
        name=name,
        body=body,
        words=tuple(words),
        runs=tuple(run for run in runs if not _overlaps(words, run, own)),
        linked=tuple(run for run in _linked(words, runs) if not _overlaps(words, run, own)),
    )


def _kind(text: str, plain: bool) -> Kind:
    if any(letter.isdigit() for letter in text) or text in MONTHS:
        return "date"
    if not text[0].isalnum():
        return "mark"
    inside = len(text) > 2 and any(letter.isupper() for letter in text)
    return "name" if (text[0].isupper() or inside) and not plain else "word"


def _runs(words: Sequence[Word], body: str) -> list[Phrase]:
    runs: list[Phrase] = []
    for place, word in enumerate(words):
        if word.kind != "name":
            continue
        if runs and runs[-1][1] == place and not body[words[place - 1].end : word.start].strip():
            runs[-1] = (runs[-1][0], place + 1)
        else:
            runs.append((place, place + 1))
    return runs


def _linked(words: Sequence[Word], runs: Sequence[Phrase]) -> list[Phrase]:
    linked: list[Phrase] = []
    for (first, after), (start, end) in pairwise(runs):
        between = [word.text for word in words[after:start]]
        if 1 <= len(between) <= 2 and all(text in LINKS for text in between):
            linked.append((first, end))
    return linked


def _overlaps(words: Sequence[Word], run: Phrase, own: set[str]) -> bool:
    return any(not own.isdisjoint(re.findall(r"\w+", word.text)) for word in words[run[0] : run[1]])


def _hidden(word: Word) -> str:
    if word.kind == "name":
        return NAMES
    if word.kind == "date":
        return DATES
    return word.text[:1].lower() + word.text[1:]


@dataclass(frozen=True, eq=False, kw_only=True)
class Reader:
    """The weights of the signs, and the answers that are known."""

    weights: Mapping[str, float]
    answers: Mapping[str, int]
    """How often each place is the answer to a training question."""

    def read(self, document: Mentions) -> tuple[str, float]:
        """Return the likeliest answer and its probability; nothing, with 0, if it has no phrase."""
        phrases = document.phrases
        if not phrases:
            return "", 0.0
        scores = np.array(
            [
                sum(self.weights.get(sign, 0.0) for sign in signs(document, number, self.answers))
                for number in range(len(phrases))
            ]
        )
        chances = np.exp(scores - scores.max())
        chances /= chances.sum()
        total: dict[str, float] = {}
        for phrase, chance in zip(phrases, chances.tolist(), strict=True):
            text = document.text(phrase)
            total[text] = total.get(text, 0.0) + chance
        best = max(total, key=lambda text: total[text])
        return best, total[best]


def learn_reader(documents: Sequence[Mentions], answers: Sequence[str]) -> Reader:
    """Learn from documents and the answers to a question about each."""
    known = Counter(answers)
    numbers: dict[str, int] = {}
    flat: list[int] = []
    owners: list[int] = []
    starts: list[int] = []
    right: list[bool] = []
    for document, answer in zip(documents, answers, strict=True):
        texts = [document.text(phrase) for phrase in document.phrases]
        if answer not in texts:
            continue
        starts.append(len(right))
        others = known - Counter({answer: 1})  # its own answer must not give it away
        for number, text in enumerate(texts):
            features = [numbers.setdefault(sign, len(numbers))
                     for sign in signs(document, number, others)]  # fmt: skip
            flat += features
            owners += [len(right)] * len(features)
            right.append(text == answer)
    if not starts:
        raise InputError(
            "training questions",
            "have no answer that stands in a document",
            expected="documents that hold some of the answers",
        )
    weights = _fitted(np.array(flat), np.array(owners), np.array(starts), np.array(right, float))
    return Reader(weights=dict(zip(numbers, weights.tolist(), strict=True)), answers=known)


def self_questions(documents: Sequence[str], train: Sequence[Asked]) -> list[Asked]:
    """Return questions and answers that a reader writes about everybody else in the documents.

    The wording is that of the training questions, with another name.
    """
    wanted = {one.name: one for one in train}
    about: dict[str, Mentions] = {}
    for document in mentions(documents):
        about.setdefault(document.name, document)
    pairs = [(about[name], one.answer) for name, one in wanted.items() if name in about]
    if not pairs:
        raise InputError(
            "training questions",
            "ask about nobody whose name is the title of a document",
            expected='documents such as "Ann Lee. Ann Lee was born in Rome ."',
        )
    reader = learn_reader([document for document, _ in pairs], [answer for _, answer in pairs])
    example = next(one for one in train if one.name in about)
    questions: list[Asked] = []
    for name, document in about.items():
        if not name or name in wanted:
            continue
        answer, chance = reader.read(document)
        if chance >= SURE:
            question = example.question.replace(example.name, name)
            questions.append(Asked(question=question, name=name, answer=answer, seen=True))
    return questions


def signs(document: Mentions, number: int, answers: Mapping[str, int]) -> list[str]:
    """Return what can be seen of a phrase in its document."""
    phrase = document.phrases[number]
    text = document.text(phrase)
    words = document.words
    cue = document.cue(phrase, 4)
    last = (["^"] * 4 + cue)[-3:]
    after = _after(document, phrase)
    before = words[max(phrase[0] - 2, 0) : phrase[0]]
    return [
        f"before {last[2]}",
        f"two before {last[1]}",
        f"three before {last[0]}",
        f"pair {last[1]} {last[2]}",
        f"three {' '.join(last)}",
        f"four {' '.join(cue)}",
        f"after {after}",
        f"around {last[2]} {after}",
        f"order {min(number, 5)}",
        f"answers {min(answers.get(text, 0), 4)}",
        f"words {min(phrase[1] - phrase[0], 3)}",
        f"names before {sum(word.kind == 'name' for word in before)}",
        f"linked {phrase in document.linked}",
        f"ending {text[-3:]}",
        *_birth_signs(document, phrase, number, last[2]),
    ]


def _after(document: Mentions, phrase: Phrase) -> str:
    if phrase[1] == len(document.words):
        return "$"
    word = document.words[phrase[1]]
    return word.text if word.kind in ("word", "mark") else word.kind


def _birth_signs(document: Mentions, phrase: Phrase, number: int, last: str) -> list[str]:
    words = document.words
    told = [place for place, word in enumerate(words) if word.text.lower() in BIRTH]
    earlier = [place for place in told if place < phrase[0]]
    if not told:
        return ["no birth", f"no birth, before {last}", f"no birth, order {min(number, 4)}"]
    if not earlier:
        return ["birth follows"]
    names = sum(word.kind == "name" for word in words[earlier[-1] + 1 : phrase[0]])
    distance = (phrase[0] - earlier[-1]) // 2
    return ["birth before", f"names since {min(names, 4)}", f"words since {min(distance, 6)}"]


def _fitted(
    flat: Int[np.ndarray, " signs"],
    owners: Int[np.ndarray, " signs"],
    starts: Int[np.ndarray, " documents"],
    right: Float64[np.ndarray, " phrases"],
) -> Float64[np.ndarray, " weights"]:
    count, size = len(right), int(flat.max()) + 1
    document = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, count)))

    def loss(w: Float64[np.ndarray, " weights"]) -> tuple[float, Float64[np.ndarray, " weights"]]:
        scores = np.bincount(owners, w[flat], minlength=count)
        chances = np.exp(scores - np.maximum.reduceat(scores, starts)[document])
        whole = np.add.reduceat(chances, starts)
        good = np.add.reduceat(chances * right, starts)
        value = float(np.log(whole).sum() - np.log(good).sum() + w @ w / 2.0)
        slope = chances / whole[document] - chances * right / good[document]
        return value, np.bincount(flat, slope[owners], minlength=size) + w

    optimum = scipy.optimize.minimize(
        loss, np.zeros(size), jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS}
    )
    weights: Float64[np.ndarray, " weights"] = optimum.x
    return weights
