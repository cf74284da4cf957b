"""The same tokens for a word, wherever in a text it stands.

Byte pairs keep the space before a word, and capitals: " chat" inside of a sentence is one token,
"Chat" at its beginning is two others, "chat" alone in a list or behind "l'" is others again. A
model that met the first a hundred times knows nothing of the rest. So a text is read as it would
stand behind another word, and what is written is made a text again:

    "Le chat."  →  " le chat."        "Tom dort."  →  " Tom dort."        "l'eau"  →  " l' eau"

Whether a first word keeps its capital, as names do, the vocabulary knows: byte pairs are merged in
the order of how often they occur, so the form that has fewer tokens, or as many and earlier ones,
is the usual one inside of a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from heedful.errors import InputError

Encode = Callable[[str], list[int]]

_WORD = re.compile(r"[^\W\d_]+")
_ELISION = re.compile(r"(?<=\w)(['’])(?=\w)")
ELIDING = ("fr", "fra", "it", "ita")
"""Languages in which an apostrophe ends a word: "l'eau" is two."""
LONGEST_SHORT = 5
"""Letters of a word up to which its capitals may be those of an abbreviation or a number."""


class SameTokens:
    """Writes texts so that a word has the same tokens wherever it stands.

    >>> sizes = {" le": [1], " Le": [2, 3], " tom": [5, 6], " Tom": [4]}
    >>> same = SameTokens(lambda text: sizes[text])
    >>> same.source("Le chat boit de l'eau.", "fr"), same.target("Tom sleeps.")
    (" le chat boit de l' eau.", ' Tom sleeps.')
    """

    def __init__(self, encode: Encode) -> None:
        self.encode = encode
        self._kept = lru_cache(maxsize=2**16)(self._keeps_capital)

    def source(self, text: str, language: str) -> str:
        """Return a text to be read: as it would stand inside of another, elided words apart."""
        return self.target(_ELISION.sub(r"\1 ", text) if language in ELIDING else text)

    def target(self, text: str) -> str:
        """Return a text as it would be written inside of another."""
        word = _WORD.match(text)
        if word is None or not word[0][0].isupper() or self._kept(word[0]):
            return f" {text}" if text else text
        return f" {small(text)}"

    def without_shouting(self, text: str) -> str:
        """Return a text of capitals as it is usually written: "LA GARE DE LYON", "La gare de Lyon".

        Any other text stays as it is, and so does a short word that the vocabulary can only spell,
        with more tokens than half its letters: ONU and XIV are written with capitals.
        """
        if not text.isupper():
            return text
        quiet = _WORD.sub(lambda word: self._usual(word[0]), text)
        first = _WORD.search(quiet)
        place = first.start() if first else 0
        quiet = quiet[:place] + quiet[place : place + 1].upper() + quiet[place + 1 :]
        return quiet if len(quiet) == len(text) else text

    def _usual(self, word: str) -> str:
        name = word[:1] + word[1:].lower()
        usual = name if len(word) > 1 and self._kept(name) else word.lower()
        try:
            known = len(word) > LONGEST_SHORT or self._rank(usual)[0] <= max(len(word) // 2, 1)
        except InputError:
            known = False
        return usual if known else word

    def _keeps_capital(self, word: str) -> bool:
        if word[1:2].isupper():  # initials, or a word written in capitals
            return True
        try:
            return self._rank(word) < self._rank(small(word))
        except InputError:  # letters that a vocabulary of letters does not have
            return True

    def _rank(self, word: str) -> tuple[int, list[int]]:
        tokens = self.encode(f" {word}")
        return len(tokens), tokens


def small(text: str) -> str:
    """Return a text with a small first letter, where its capital can be found again.

    >>> small("Été"), small("İzmir")
    ('été', 'İzmir')
    """
    first = text[:1].lower()
    return first + text[1:] if first.upper() == text[:1] else text


def places_in(text: str, written: str) -> list[int]:
    """Return where each place of a text from `SameTokens`, and its end, is in the original.

    >>> places_in(" l' eau", "L'eau")
    [0, 0, 1, 2, 2, 3, 4, 5]
    """
    places, at = [], 0
    for letter in text:
        places.append(at)
        # What was not there before is a space, and a space of the original is one here too.
        at += letter != " " or written[at : at + 1] == " "
    return [*places, at]


def with_capital_of(text: str, source: str) -> str:
    """Return a text that begins with a capital, unless its source begins with a small letter.

    >>> with_capital_of(" the cat sleeps.", "Le chat dort."), with_capital_of("cat", "chat")
    (' The cat sleeps.', 'cat')
    """
    if source.lstrip()[:1].islower():
        return text
    place = len(text) - len(text.lstrip())
    first = text[place : place + 1].upper()
    return text[:place] + first + text[place + 1 :] if len(first) == 1 else text
