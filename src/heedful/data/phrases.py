"""Phrases of a pair that translate one another: "Elle mange une pomme verte." has "a green apple".

IBM's model 1, in both directions (`heedful.data.alignment`), tells how likely one word writes
another. Two words of a pair are linked if each is the likeliest for the other, out of all words
of the pair. A phrase is up to four words of each side with links to one another only, so that it
may change its order but leaves no word over.

A link can still be wrong where several words are one ("pomme de terre", "potato"). So phrases are
taken only from pairs all of whose words have a link, but for those of the grammar.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TypeAlias

from heedful.data.alignment import Lexicon, aligned_lexicon

TwoTexts: TypeAlias = tuple[str, str]

WORD = re.compile(r"[^\W_]+")
MOST_WORDS = 4
"""Words of a phrase on either side: what stands in a list or in the cell of a table."""
LINKED = 0.1
"""The share of a word's occurrences that its translation must write, in both directions."""
GRAMMAR = 0.01
"""Words in more of the pairs than this belong to the grammar."""
_BETWEEN = re.compile(r"[\s'’]*")
"""What may stand between two words of a phrase: no comma, and no hyphen."""


@dataclass(frozen=True, eq=False, kw_only=True)
class WordTranslations:
    """Which words of the sources write which words of the targets, and the other way round."""

    sources: dict[str, int]
    """The numbers of the words, in small letters, in the order in which they were met."""
    targets: dict[str, int]
    there: Lexicon
    back: Lexicon

    @classmethod
    def of(cls, texts: Sequence[TwoTexts]) -> WordTranslations:
        """Learn from pairs of texts which words translate one another."""
        numbers: tuple[dict[str, int], dict[str, int]] = ({}, {})
        sides: tuple[list[list[int]], list[list[int]]] = ([], [])
        for two in texts:
            for text, known, side in zip(two, numbers, sides, strict=True):
                side.append([known.setdefault(w, len(known)) for w in WORD.findall(text.lower())])
        size = max(map(len, numbers))
        return cls(
            sources=numbers[0],
            targets=numbers[1],
            there=aligned_lexicon(*sides, size),
            back=aligned_lexicon(*sides[::-1], size),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Phrases:
    """Finds the phrases of a pair."""

    known: WordTranslations
    common: tuple[frozenset[str], frozenset[str]]
    """The words of either side that belong to the grammar."""

    @classmethod
    def of(cls, texts: Sequence[TwoTexts], known: WordTranslations) -> Phrases:
        """Learn from pairs of texts."""
        common = [
            Counter(chain.from_iterable(set(WORD.findall(text.lower())) for text in side))
            for side in zip(*texts, strict=True)
        ]
        most = GRAMMAR * len(texts)
        grammar = [frozenset(w for w, count in words.items() if count > most) for words in common]
        return cls(known=known, common=(grammar[0], grammar[1]))

    def of_pair(self, two: TwoTexts) -> list[TwoTexts]:
        """Return the phrases of a pair that end in a word which is not of the grammar."""
        places = (list(WORD.finditer(two[0])), list(WORD.finditer(two[1])))
        words = [[place[0].lower() for place in side] for side in places]
        links = self._links(words[0], words[1])
        if not self._covered(words[0], set(links), 0):
            return []
        if not self._covered(words[1], set(links.values()), 1):
            return []
        spans = [
            (places[0][source], places[1][target])
            for source, target in self._spans(words[0], links)
            if words[1][target.stop - 1] not in self.common[1]
        ]
        return [
            (_text(two[0], source), _text(two[1], target))
            for source, target in spans
            if _stands_alone(two[0], source, before="'’")
            and _stands_alone(two[1], target)
            # "L'école" begins a sentence, "école" in it does not, and "School" does.
            and source[0][0][0].isupper() == target[0][0][0].isupper()
        ]

    def _links(self, source: list[str], target: list[str]) -> dict[int, int]:
        """Return for each word of the source that has one the word which it is linked with."""
        rows = [self.known.sources[word] for word in source]
        columns = [self.known.targets[word] for word in target]
        if not rows or not columns:
            return {}
        there = self.known.there.between(rows, columns)
        back = self.known.back.between(columns, rows).T
        links = {}
        for row, column in enumerate(back.argmax(axis=1).tolist()):
            sure = min(there[row, column], back[row, column]) >= LINKED
            # A word that stands there twice could be linked with either.
            once = source.count(source[row]) == 1 == target.count(target[column])
            if sure and once and int(there[:, column].argmax()) == row:
                links[row] = column
        return links

    def _covered(self, words: list[str], linked: set[int], side: int) -> bool:
        return all(place in linked or word in self.common[side] for place, word in enumerate(words))

    def _spans(self, source: list[str], links: dict[int, int]) -> Iterator[tuple[slice, slice]]:
        """Yield the words of both sides that are linked with one another only."""
        for first in range(len(source)):
            for last in range(first, min(first + MOST_WORDS, len(source))):
                if last not in links:
                    break
                if source[last] in self.common[0]:
                    continue
                targets = {links[place] for place in range(first, last + 1)}
                if len(targets) == max(targets) - min(targets) + 1:
                    yield slice(first, last + 1), slice(min(targets), max(targets) + 1)


def _text(text: str, words: Sequence[re.Match[str]]) -> str:
    return text[words[0].start() : words[-1].end()]


def _stands_alone(text: str, words: Sequence[re.Match[str]], before: str = "") -> bool:
    """Tell whether words have only spaces between them, and are no part of a longer one."""
    whole = all(
        _BETWEEN.fullmatch(text, one.end(), other.start()) is not None
        for one, other in pairwise(words)
    )
    around = (text[: words[0].start()][-1:].strip(before), text[words[-1].end() :][:1])
    return whole and not any(mark and mark in "'’-" for mark in around)


def as_text(phrase: TwoTexts, *, capital: bool) -> TwoTexts:
    """Write a phrase as a text of its own: with a full stop, as headings with a capital."""
    source, target = (one[:1].upper() + one[1:] if capital else one for one in phrase)
    return f"{source}.", f"{target}."
