"""Whom a document is about, the phrases that carry its facts, and the words that lead to them.

    document   Ann Lee. Ann Lee (born 3 May 1950 in Rome) sings in Paris .
    name       Ann Lee
    phrases    Rome        Paris
    cues       ( born # in        # in _ ) sings in

A cue is what stands before a phrase, with names and places written `_` and dates `#`. It says
which of the facts is meant and gives none away: who continues `Ann Lee ⁇ born # in ⁇` has to know
it under the name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

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
        found: list[str] = []
        place = phrase[0] - 1
        while place >= 0 and len(found) < length:
            written = _hidden(self.words[place])
            if written not in (NAMES, DATES) or found[-1:] != [written]:
                found.append(written)
            place -= 1
        if place < 0 and len(found) < length:
            found.append(OPENING)
        return found[::-1]


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
    name: str, body: str, found: Sequence[re.Match[str]], small: Counter[str]
) -> Mentions:
    words: list[Word] = []
    for match in found:
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
    found: list[Phrase] = []
    for place, word in enumerate(words):
        if word.kind != "name":
            continue
        if found and found[-1][1] == place and not body[words[place - 1].end : word.start].strip():
            found[-1] = (found[-1][0], place + 1)
        else:
            found.append((place, place + 1))
    return found


def _linked(words: Sequence[Word], runs: Sequence[Phrase]) -> list[Phrase]:
    found: list[Phrase] = []
    for (first, after), (start, end) in pairwise(runs):
        between = [word.text for word in words[after:start]]
        if 1 <= len(between) <= 2 and all(text in LINKS for text in between):
            found.append((first, end))
    return found


def _overlaps(words: Sequence[Word], run: Phrase, own: set[str]) -> bool:
    return any(not own.isdisjoint(re.findall(r"\w+", word.text)) for word in words[run[0] : run[1]])


def _hidden(word: Word) -> str:
    if word.kind == "name":
        return NAMES
    if word.kind == "date":
        return DATES
    return word.text[:1].lower() + word.text[1:]
