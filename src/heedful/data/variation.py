"""More training pairs from the same ones: longer, shorter, with other names, numbers and words.

A translator that has read six words at a time loses words in sentences of fifteen; one that has met
Boston a thousand times and Lyon never leaves Lyon out; and a word that it met three times it
takes for another one. And one that has only met sentences makes a sentence of everything: "deux
pommes" in a list is none. All of it can be taught with the pairs that are there:

* joined pairs stand one after the other, or become one sentence with "and" or "but" between them;
* a name or a number that is written alike on both sides is replaced, on both, by another one;
* a word and its translation are replaced by another word and its translation, frequent ones by
  rare ones, where these two have stood behind the same words before ("une pomme", "an apple":
  "une échelle" became "a ladder" elsewhere, and does not fit behind "an");
* a pair is cut down to a phrase of one to four words (`heedful.data.phrases`).

Which word translates which IBM's model 1 finds, in both directions (`heedful.data.alignment`).
Everything is a function of the pairs, the settings and the seed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar

import numpy as np
from pydantic import Field, PositiveInt

from heedful.data.alignment import Lexicon
from heedful.data.corpus import Pairs
from heedful.data.phrases import GRAMMAR, WORD, Phrases, TwoTexts, WordTranslations, as_text
from heedful.data.synthetic import Draws
from heedful.settings import Settings

MOST_JOINED = 4
"""Pairs in one joined text: four of Tatoeba's are some 25 words, a long sentence."""
AS_ONE_SENTENCE = 0.5
"""The share of joined pairs that become one sentence, where the words to join them are known."""
MADE_UP = 0.5
"""The share of new names that are the beginning of one name and the end of another."""
CONNECTIVES: dict[str, tuple[str, ...]] = {
    "fr": (" et ", ", mais ", ", ", " ; ", ", et ", " ou "),
    "en": (" and ", ", but ", ", ", "; ", ", and ", " or "),
}
"""What stands between two clauses, in the same order for every language."""
CAPITAL = 0.3
"""The share of phrases that begin with a capital, as headings do."""
CONFIDENT = 0.25
"""The share of a word's occurrences that its translation must write, in both directions, to be
exchanged: words with several meanings are below it, and most of what was aligned by accident."""
RARE = 0.002
"""Words that are put in the place of others stand in no more than this share of the pairs."""
SHORTEST = 3
"""Letters of a word that may be exchanged: shorter ones mostly belong to the grammar."""
_END = re.compile(r"[\s\u00a0\u202f]*[.!]+$")


class Variation(Settings):
    """The table `[data.variation]`: how the training pairs are varied."""

    table: ClassVar[str | None] = "data.variation"

    rounds: PositiveInt = 1
    """How often the pairs are gone through, each time varied anew: one epoch is all rounds."""
    joined: float = Field(default=0.0, ge=0.0, le=1.0)
    """The share of the pairs that stand in longer texts of two to four instead of alone."""
    renamed: float = Field(default=0.0, ge=0.0, le=1.0)
    """The share of names and numbers, alike on both sides, that are replaced by others."""
    exchanged: float = Field(default=0.0, ge=0.0, le=1.0)
    """The share of pairs in which one word and its translation are replaced by others."""
    phrases: float = Field(default=0.0, ge=0.0, le=1.0)
    """The share of pairs that are cut down to one of their phrases; one that has none stays as it
    is, and is varied in no other way."""


def varied(pairs: Pairs, variation: Variation, seed: int) -> Pairs:
    """Return the pairs of all rounds."""
    spelling = _Spelling.of(pairs)
    texts = list(zip(pairs.sources, pairs.targets, strict=True))
    dictionary, phrases = None, None
    if variation.exchanged or variation.phrases:
        known = WordTranslations.of(texts)
        dictionary = Dictionary.of(texts, known) if variation.exchanged else None
        phrases = Phrases.of(texts, known) if variation.phrases else None
    made: list[TwoTexts] = []
    for round_ in range(variation.rounds):
        draws = Draws(f"variation {seed} {round_}")
        mixed = texts
        if dictionary is not None:
            mixed = [
                dictionary.exchanged(two, draws) if draws.chance(variation.exchanged) else two
                for two in mixed
            ]
        if variation.renamed:
            mixed = [_renamed(two, spelling, variation.renamed, draws) for two in mixed]
        if phrases is not None:
            cut = [draws.chance(variation.phrases) for _ in texts]
            # Of the pair as it was, whose words are known to translate one another.
            short = [_cut_down(two, phrases, draws) for two, c in zip(texts, cut, strict=True) if c]
            made += short
            mixed = [two for two, c in zip(mixed, cut, strict=True) if not c]
        made += _joined(mixed, variation.joined, spelling, pairs.languages, draws)
    note = (
        f"{variation.rounds} rounds, {variation.joined:.0%} joined to longer texts, "
        f"{variation.renamed:.0%} of names and numbers replaced, "
        f"a word exchanged in {variation.exchanged:.0%}, {variation.phrases:.0%} cut to phrases"
    )
    return replace(
        pairs,
        sources=tuple(source for source, _ in made),
        targets=tuple(target for _, target in made),
        notes=(*pairs.notes, note),
    )


def _cut_down(two: TwoTexts, phrases: Phrases, draws: Draws) -> TwoTexts:
    """Return a phrase of a pair, or the pair where it has none."""
    found = phrases.of_pair(two)
    return as_text(draws.of(found), capital=draws.chance(CAPITAL)) if found else two


@dataclass(frozen=True, eq=False, kw_only=True)
class _Spelling:
    """What the pairs tell about their words."""

    small: frozenset[str]
    """Words that are seen in small letters: such a word is no name, whatever it looks like."""
    names: tuple[tuple[str, ...], tuple[str, ...]]
    """Names alike on both sides: those that begin with a consonant, and those that do not.

    French writes "de Paris" but "d'Oslo", so that one cannot stand in the place of the other."""

    @classmethod
    def of(cls, pairs: Pairs) -> _Spelling:
        """Count the words of both sides."""
        counts: Counter[str] = Counter(
            chain.from_iterable(map(WORD.findall, chain(pairs.sources, pairs.targets)))
        )
        small = frozenset(word for word in counts if word[0].islower())
        found = {
            word
            for source, target in zip(pairs.sources, pairs.targets, strict=True)
            for word in _shared(source, target)
            if _is_name(word, small)
        }
        sounds = [sorted(name for name in found if _vocal(name) == sound) for sound in (0, 1)]
        return cls(small=small, names=(tuple(sounds[0]), tuple(sounds[1])))

    def name_like(self, word: str, draws: Draws) -> str:
        """Draw another name, or make one up of two, as no list has all that are met later."""
        names = self.names[_vocal(word)]
        name = draws.of(names)
        if draws.chance(MADE_UP):
            tail = draws.of(names)
            return name[: (len(name) + 1) // 2] + tail[(len(tail) + 1) // 2 :]
        return name

    def begun_small(self, text: str) -> str:
        """Write the first letter small, unless its word is a name or the English "I"."""
        first = WORD.search(text)
        if first is None or first.start() > 0 or first[0].lower() not in self.small:
            return text
        return text if first[0] == "I" else text[:1].lower() + text[1:]


def _shared(source: str, target: str) -> set[str]:
    return set(WORD.findall(source)).intersection(WORD.findall(target))


def _is_name(word: str, small: frozenset[str]) -> bool:
    return len(word) > 2 and word.isalpha() and word.istitle() and word.lower() not in small


def _vocal(name: str) -> bool:
    return name[0] in "AEIOUYHÀÂÄÉÈÊËÎÏÔÖÙÛÜŒ"


def _renamed(two: TwoTexts, spelling: _Spelling, share: float, draws: Draws) -> TwoTexts:
    """Replace names and numbers that are written alike on both sides."""
    source, target = two
    changes: dict[str, str] = {}
    for word in sorted(_shared(source, target)):
        if word.isascii() and word.isdigit() and word not in {"0", "1"}:
            other = _number_like(word, draws)
        elif _is_name(word, spelling.small):
            other = spelling.name_like(word, draws)
        else:
            continue
        if draws.chance(share):
            changes[word] = other
    if not changes:
        return two
    return _exchanged(source, changes), _exchanged(target, changes)


def _number_like(number: str, draws: Draws) -> str:
    """Draw a number of as many digits: 2 or more, so that what is counted stays plural."""
    if len(number) == 1:
        return str(2 + draws.below(8))
    return str(1 + draws.below(9)) + "".join(str(draws.below(10)) for _ in number[1:])


def _exchanged(text: str, changes: dict[str, str]) -> str:
    return WORD.sub(lambda word: changes.get(word[0], word[0]), text)


def _joined(
    texts: Sequence[TwoTexts],
    share: float,
    spelling: _Spelling,
    languages: tuple[str, str],
    draws: Draws,
) -> Iterator[TwoTexts]:
    """Yield every pair once, a share of them in texts of several."""
    mixed = draws.shuffled(texts) if share else list(texts)
    alone = len(mixed) - round(share * len(mixed))
    yield from mixed[:alone]
    place = alone
    while place < len(mixed):
        some = mixed[place : place + 2 + draws.below(MOST_JOINED - 1)]
        place += len(some)
        if all(language in CONNECTIVES for language in languages) and draws.chance(AS_ONE_SENTENCE):
            yield _one_sentence(some, spelling, languages, draws)
        else:
            yield _side_by_side(some)


def _side_by_side(some: Iterable[TwoTexts]) -> TwoTexts:
    sources, targets = zip(*some, strict=True)
    return " ".join(sources), " ".join(targets)


def _one_sentence(
    some: Sequence[TwoTexts], spelling: _Spelling, languages: tuple[str, str], draws: Draws
) -> TwoTexts:
    """Join statements by words; where one asks, or holds several sentences, they stay apart."""
    if any("?" in text or "." in _END.sub("", text) for two in some for text in two):
        return _side_by_side(some)
    chosen = [draws.below(len(CONNECTIVES[languages[0]])) for _ in some[1:]]
    sides = []
    for language, clauses in zip(languages, zip(*some, strict=True), strict=True):
        text = _END.sub("", clauses[0])
        for which, clause in zip(chosen, clauses[1:], strict=True):
            text += CONNECTIVES[language][which] + _END.sub("", spelling.begun_small(clause))
        sides.append(text + ".")
    return sides[0], sides[1]


@dataclass(frozen=True, kw_only=True)
class _Place:
    """A word and its translation in a pair, and the words before them."""

    word: re.Match[str]
    translation: re.Match[str]
    behind: TwoTexts

    @property
    def words(self) -> TwoTexts:
        return self.word[0], self.translation[0]


@dataclass(frozen=True, eq=False, kw_only=True)
class Dictionary:
    """Words that translate one another, and behind which words they have stood."""

    translations: dict[str, str]
    """Of source words; each is the likeliest for the other."""
    rare: frozenset[str]
    """Those source words that are worth meeting more often."""
    behind: dict[TwoTexts, tuple[TwoTexts, ...]]
    """By the words before a word and before its translation: what rare words have stood there."""

    @classmethod
    def of(cls, texts: Sequence[TwoTexts], words: WordTranslations) -> Dictionary:
        """Find the words of these pairs that translate one another."""
        counts = Counter(chain.from_iterable(set(WORD.findall(s.lower())) for s, _ in texts))
        most, rare = GRAMMAR * len(texts), max(RARE * len(texts), 1)
        known = {f: e for f, e in _translations(words).items() if counts[f] <= most}
        found = cls(
            translations=known, rare=frozenset(f for f in known if counts[f] <= rare), behind={}
        )
        stood: dict[TwoTexts, set[TwoTexts]] = defaultdict(set)
        for two in texts:
            for place in found._places(two):
                if place.word[0] in found.rare:
                    stood[place.behind].add(place.words)
        # Sorted: the order of a set differs from one process to the next.
        return replace(found, behind={key: tuple(sorted(some)) for key, some in stood.items()})

    def exchanged(self, two: TwoTexts, draws: Draws) -> TwoTexts:
        """Return a pair with one word and its translation replaced, if there are others."""
        places = [place for place in self._places(two) if self._others(place)]
        if not places:
            return two
        place = draws.of(places)
        other = draws.of(self._others(place))
        source, target = (
            text[: match.start()] + word + text[match.end() :]
            for text, match, word in zip(two, (place.word, place.translation), other, strict=True)
        )
        return source, target

    def _others(self, place: _Place) -> list[TwoTexts]:
        """Return what might stand in a place instead."""
        return [two for two in self.behind.get(place.behind, ()) if two != place.words]

    def _places(self, two: TwoTexts) -> Iterator[_Place]:
        """Yield the words of a pair that might be exchanged, none of which begins a text."""
        source, target = (list(WORD.finditer(text)) for text in two)
        once = Counter(match[0].lower() for match in source)
        written: dict[str, list[int]] = defaultdict(list)
        for number, match in enumerate(target):
            written[match[0].lower()].append(number)
        for number, match in enumerate(source[1:], 1):
            wanted = self.translations.get(match[0])
            there = written.get(wanted, []) if wanted else []
            if once[match[0]] == 1 == len(there) and there[0] > 0:
                translation = target[there[0]]
                if translation[0] == wanted:  # not at the beginning of a quotation
                    behind = (source[number - 1][0].lower(), target[there[0] - 1][0].lower())
                    yield _Place(word=match, translation=translation, behind=behind)


def _translations(words: WordTranslations) -> dict[str, str]:
    """Return the words of which each is the other's likeliest translation, and a likely one."""
    there, back = _likeliest(words.there), _likeliest(words.back)
    sources, targets = list(words.sources), list(words.targets)
    return {
        sources[f]: targets[e]
        for f, e in there.items()
        if back.get(e) == f and _is_common(sources[f]) and _is_common(targets[e])
    }


def _likeliest(lexicon: Lexicon) -> dict[int, int]:
    """Return the likeliest translation of each source word that has a likely one."""
    order = np.argsort(lexicon.shares, kind="stable")
    likely = order[lexicon.shares[order] >= CONFIDENT]  # of several, the last one stays
    return dict(
        zip(lexicon.sources[likely].tolist(), lexicon.targets[likely].tolist(), strict=True)
    )


def _is_common(word: str) -> bool:
    return len(word) >= SHORTEST and word.isalpha()
