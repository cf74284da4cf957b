"""Evidence: which line of a text is about a person, and whether it says where they were born.

`DocumentIndex` finds the documents that hold a name, by plain text search and without a model: it
is the baseline that the model is compared with, and the line that `heed ask` shows beside an
answer.

A line supports an answer when it names the person, the relation and the place, all as whole words
and none as a part of a longer name. The relation is read by hand-written rules: a word for birth,
of which the person is the subject, and between it and the place nothing but dates, prepositions and
other names of places. "Born in Rome, died in Paris" supports Rome alone. Where the rules do not
understand a line they say no: an answer without evidence is shown as one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from heedful.data.synthetic.biographies import MONTHS

_SEPARATOR = "\n"
_PERSON = "\ue000"
"""Stands for the person while a line is read; no text has it."""
_CAPITAL = "[" + "".join(filter(str.isupper, map(chr, range(0x41, 0x530)))) + "]"
"""A capital letter: Latin with its accents, Greek and Cyrillic."""
_SUBJECT = rf"(?:{_PERSON}|[Hh]e|[Ss]he|[Tt]hey)"
_BORN = (
    r"(?:\b[Bb]orn(?: and raised)?\b|\bb\.|\* |\bnative of\b|\bhails from\b|\bcomes from\b"
    r"|\boriginally from\b|\bcame into the world\b|\bfirst saw the light\b"
    r"|\bdrew (?:his|her|their) first breath\b"
    rf"|\b[Bb]irthplace of {_PERSON} is\b|\b[Ll]ife of {_PERSON} began\b)"
)
_BETWEEN = (
    rf"(?:[\s,('\"{_PERSON}]|\b\d[\d./-]*(?:st|nd|rd|th)?\b|\b(?:c|ca|St|Mt|Ft|[A-Z])\."
    r"|\b(?:in|at|on|near|the|of|to|a|an|into|circa|ca|around|about|probably|city|town|village|suburb|borough|county"
    rf"|district|province|parents|family)\b|{_CAPITAL}[\w'’-]*)*"
)
"""What may stand between the word for birth and the place: no verb, no full stop, no dash."""
_AFTER = re.compile(
    rf"\s*(?:is where|that) {_SUBJECT} was born|\s*is the (?:native city|birthplace) of {_PERSON}"
)
"""How a sentence goes on that begins with the place."""
_LONGER_NAME = re.compile(rf"(?<!\w)(?!(?:{'|'.join(MONTHS)}|Born|In)\b){_CAPITAL}[\w'’-]* $")
"""A capitalised word just before a place makes it a part of a longer name: no York in New York."""
_WORD = rf"{_CAPITAL}[\w'’-]*"
_NAMES = re.compile(
    rf"{_PERSON}|{_WORD}(?: (?:de|del|della|di|da|dos|du|la|le|van|von|der|den|ten|ter|al|el|bin|y)"
    rf"\b)*(?: {_WORD})+"
)
"""The person, or what looks like the name of another."""


class DocumentIndex:
    """The documents of a corpus, found by the names in them."""

    def __init__(self, documents: Sequence[str]) -> None:
        self.documents = tuple(documents)
        self._text = _SEPARATOR.join(self.documents)
        self._starts = [0]
        for document in self.documents:
            self._starts.append(self._starts[-1] + len(document) + len(_SEPARATOR))

    def mentions(self, name: str) -> tuple[str, ...]:
        """Return the documents that hold the name as whole words, in their order.

        >>> texts = ["Ann Lee sings.", "Ann Leeds works.", "So says Ann Lee."]
        >>> DocumentIndex(texts).mentions("Ann Lee")
        ('Ann Lee sings.', 'So says Ann Lee.')
        """
        if not name.strip():
            return ()
        numbers: list[int] = []
        place = self._text.find(name)
        while place >= 0:
            if self._whole_words(place, place + len(name)):
                number = bisect_right(self._starts, place) - 1
                if not numbers or numbers[-1] != number:
                    numbers.append(number)
            place = self._text.find(name, place + 1)
        return tuple(self.documents[number] for number in numbers)

    def line(self, name: str, answer: str) -> tuple[str | None, bool]:
        """Return the line that bears on an answer, and whether it supports the answer.

        One that says that the person was born there is preferred; else the first with the name;
        else None.
        """
        documents = self.mentions(name)
        for document in documents:
            if says_born(document, name, answer):
                return document, True
        return (documents[0], False) if documents else (None, False)

    def place(self, name: str, places: Sequence[str]) -> str | None:
        """Return the known place that the documents about a name give, or None.

        Where a document holds several, the first after the word "born" counts, else the first;
        between documents the majority decides.
        """
        votes: dict[str, int] = {}
        for document in self.mentions(name):
            # A name may be a place itself: what follows it, or what stands before it, counts.
            rest = document.replace(name, " ")
            said = _first_place(rest, places)
            if said is not None:
                votes[said] = votes.get(said, 0) + 1
        return max(votes, key=lambda place: votes[place], default=None)

    def _whole_words(self, start: int, end: int) -> bool:
        before = self._text[start - 1 : start]
        after = self._text[end : end + 1]
        return not (before.isalnum() or after.isalnum())


def says_born(document: str, name: str, place: str) -> bool:
    """Say whether a document tells that the person was born in a place.

    >>> line = "Ann Lee (born 3 May 1950 in Rome) died in Paris, near Romeville."
    >>> [says_born(line, "Ann Lee", place) for place in ("Rome", "Paris", "Romeville", "May")]
    [True, False, False, False]
    """
    if not place.strip() or not name.strip() or place in MONTHS:
        return False
    named = _whole_name(name).finditer(document)
    if all(_LONGER_NAME.search(document[: one.start()]) for one in named):
        return False  # only a longer name has it: George Bruce in George Bruce Malleson
    text = _with_person(document, name)
    found = _whole_name(place).finditer(text)
    return _PERSON in text and any(
        _told_before(text[: one.start()], text[one.end() :])
        or _told_after(text[: one.start()], text[one.end() :])
        for one in found
        if not _LONGER_NAME.search(text[: one.start()])
    )


def _with_person(document: str, name: str) -> str:
    """Write the person, by the full name or the last word of it, as one sign."""
    text = _whole(name).sub(_PERSON, document)
    return _whole(name.split()[-1]).sub(_PERSON, text)


def _told_before(before: str, after: str) -> bool:
    """Say whether a word for birth leads to the place, and is about the person."""
    for cue in re.finditer(_BORN, before):
        if not re.fullmatch(_BETWEEN, before[cue.end() :]):
            continue
        ahead = before[: cue.start()]
        if cue[0].startswith("B") and re.search(r"(?:^|[.!?]\s+)$", ahead):
            # "Born in Rome, Lee became": the subject is the first that comes after the place.
            return re.match(rf"{_BETWEEN}(?<=, ){_SUBJECT}(?!\w)", after) is not None
        if _PERSON in cue[0] or _last_named(ahead) == _PERSON:
            return True
    # "Ann Lee (3 May 1950 Rome - 1 June 2000 Paris)": a span of life, up to its dash.
    span = re.search(rf"{_PERSON} \((?P<dates>[^()]*)$", before)
    return span is not None and bool(
        re.match(r"(?:b\. |born )?\W*(?:\d|" + "|".join(MONTHS) + r")", span["dates"])
        and re.fullmatch(_BETWEEN, span["dates"].removeprefix("b. ").removeprefix("born "))
    )


def _told_after(before: str, after: str) -> bool:
    """Say whether the place comes first: "Rome is where Ann Lee was born"."""
    told = _AFTER.match(after)
    if told is None:
        return False
    return _PERSON in told[0] or _last_named(before) == _PERSON


def _last_named(text: str) -> str:
    """Return the last person named: the one that a pronoun or a word for birth is about."""
    names = [one for one in _NAMES.findall(text) if one.split()[0] not in MONTHS]
    return names[-1] if names else ""


def _whole(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(words)}(?!\w)")


def _whole_name(words: str) -> re.Pattern[str]:
    """Find a name with no capitalised word after it: no Hartford in Hartford County."""
    return re.compile(rf"(?<!\w){re.escape(words)}(?!\w)(?! (?!City\b){_CAPITAL})")


def _first_place(text: str, places: Sequence[str]) -> str | None:
    born = re.search(r"\bborn\b", text)
    start = born.end() if born is not None else 0
    for part in (text[start:], text):
        candidates = [(part.find(place), -len(place), place) for place in places if place in part]
        if candidates:
            return min(candidates)[2]
    return None
