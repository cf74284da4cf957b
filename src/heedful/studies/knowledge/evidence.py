"""What the pretraining text says about somebody: the documents that hold the name.

A retrieval over plain text, without a model: it is the oracle that the model is compared with, and
the line that `heed ask` shows beside an answer.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from heedful.data.biographies import QUESTION_PHRASINGS

_SEPARATOR = "\n"
_ASKING = tuple(
    re.compile(re.escape(phrasing).replace(re.escape("{n}"), r"(.+?)"), re.IGNORECASE)
    for phrasing in QUESTION_PHRASINGS
)


def name_in(question: str) -> str | None:
    """Return the name that a question asks about, if it is asked in a known way.

    >>> name_in("Where was Ada Lovelace born?"), name_in("Why?")
    ('Ada Lovelace', None)
    """
    asked = " ".join(question.split())
    for pattern in _ASKING:
        found = pattern.fullmatch(asked)
        if found is not None:
            return found[1]
    return None


class Evidence:
    """The documents of a corpus, found by the names in them."""

    def __init__(self, documents: Sequence[str]) -> None:
        self.documents = tuple(documents)
        self._text = _SEPARATOR.join(self.documents)
        self._starts = [0]
        for document in self.documents:
            self._starts.append(self._starts[-1] + len(document) + len(_SEPARATOR))

    def mentions(self, name: str) -> tuple[str, ...]:
        """Return the documents that hold the name as whole words, in their order.

        >>> Evidence(["Ann Lee sings.", "Ann Leeds works.", "So says Ann Lee."]).mentions("Ann Lee")
        ('Ann Lee sings.', 'So says Ann Lee.')
        """
        if not name.strip():
            return ()
        found: list[int] = []
        place = self._text.find(name)
        while place >= 0:
            if self._whole_words(place, place + len(name)):
                number = bisect_right(self._starts, place) - 1
                if not found or found[-1] != number:
                    found.append(number)
            place = self._text.find(name, place + 1)
        return tuple(self.documents[number] for number in found)

    def line(self, name: str, answer: str) -> tuple[str | None, bool]:
        """Return the line that bears on an answer, and whether it holds the answer.

        A document with name and answer is preferred; else the first with the name; else None.
        """
        found = self.mentions(name)
        for document in found:
            if answer and answer in document:
                return document, True
        return (found[0], False) if found else (None, False)

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


def _first_place(text: str, places: Sequence[str]) -> str | None:
    born = re.search(r"\bborn\b", text)
    start = born.end() if born is not None else 0
    for part in (text[start:], text):
        found = [(part.find(place), -len(place), place) for place in places if place in part]
        if found:
            return min(found)[2]
    return None
