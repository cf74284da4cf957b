"""A corpus: documents, or pairs of texts, with a fingerprint and the files it came from.

Readers change nothing: what is odd is reported (`heedful.data.inspection`), and leaving texts
out is a step of its own that says what it did.

`varied` makes more from the same pairs: joined to longer texts, and with other names and numbers. A
translator that has read six words at a time loses words in sentences of fifteen, and one that
has met Boston a thousand times and Lyon never leaves Lyon out. Both can be taught with the pairs
that are there:

* joined pairs stand one after the other, or become one sentence with "and" or "but" between them;
* a name or a number that is written alike on both sides is replaced, on both, by another one.

Everything is a function of the pairs, the settings and the seed.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import ClassVar, SupportsIndex, TypeAlias

from pydantic import Field, PositiveInt

from heedful.data.synthetic import Draws
from heedful.data.text_files import ReadOptions, SourceFile, TextFile
from heedful.errors import InputError
from heedful.settings import Settings

LANGUAGES = {"fr": "French", "en": "English", "de": "German", "es": "Spanish", "it": "Italian"}
"""Names of languages by their codes, for prompts and pages."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Corpus(ABC):
    """What documents and pairs have in common."""

    name: str
    """What it is called in tables: usually its file."""
    origins: tuple[SourceFile, ...] = ()
    """The files it was read from, with the SHA-256 of each; none for a corpus made by code."""
    notes: tuple[str, ...] = ()
    """How it was read: what was decided, and why."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Entries of the files that are not in the corpus, counted by reason."""

    def __len__(self) -> int:
        return len(self.sides[0])

    @property
    @abstractmethod
    def sides(self) -> tuple[tuple[str, ...], ...]:
        """The texts: one tuple for documents, two for pairs."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of every text in its order: the same texts give the same fingerprint.

        It does not depend on how the files were packed or called; it does on the order of the
        texts and on which side is the source.
        """
        digest = hashlib.sha256(f"heedful corpus, {len(self.sides)} sides".encode())
        for side in self.sides:
            for text in side:
                content = text.encode("utf-8")
                # Lengths first: ["ab", "c"] and ["a", "bc"] are different corpora.
                digest.update(len(content).to_bytes(8, "little"))
                digest.update(content)
        return digest.hexdigest()


@dataclass(frozen=True, eq=False, kw_only=True)
class Documents(Corpus):
    """Texts that stand alone."""

    texts: tuple[str, ...]

    @property
    def sides(self) -> tuple[tuple[str, ...], ...]:
        """The texts, as the only side."""
        return (self.texts,)

    def take(self, chosen: Iterable[SupportsIndex], note: str = "") -> Documents:
        """Return the documents at these positions, in this order."""
        texts = tuple(self.texts[position] for position in chosen)
        return replace(self, texts=texts, notes=_with(self.notes, note))

    def without_empty(self) -> Documents:
        """Return the documents that hold more than white space."""
        kept = [place for place, text in enumerate(self.texts) if text.strip()]
        return self.take(kept, _removed(len(self) - len(kept), "empty document"))


@dataclass(frozen=True, eq=False, kw_only=True)
class Pairs(Corpus):
    """Texts in twos: a source and its target."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    languages: tuple[str, str] = ("source", "target")
    """What the two sides are: language codes where they are known."""

    @classmethod
    def read(
        cls,
        files: Sequence[TextFile],
        sides: Sequence[Sequence[str]],
        languages: tuple[str, str],
        options: ReadOptions,
        *,
        name: str = "",
        notes: Iterable[str] = (),
        left_out: Mapping[str, int] | None = None,
    ) -> Pairs:
        """Make the pairs that a reader found; the side that `options` name becomes the source."""
        files[0].check_count(len(sides[0]))
        pairs = cls(
            name=name or files[0].path.name,
            sources=tuple(sides[0]),
            targets=tuple(sides[1]),
            languages=languages,
            origins=tuple(file.origin for file in files),
            notes=tuple(notes),
            left_out=dict(left_out or {}),
        )
        return pairs if options.source is None else pairs.from_language(options.source)

    def __post_init__(self) -> None:
        if len(self.sources) != len(self.targets):
            raise InputError(
                self.name,
                f"has {len(self.sources):,} sources and {len(self.targets):,} targets",
                expected="as many of the one as of the other",
            )

    @property
    def sides(self) -> tuple[tuple[str, ...], ...]:
        """The sources and the targets."""
        return (self.sources, self.targets)

    def take(self, chosen: Iterable[SupportsIndex], note: str = "") -> Pairs:
        """Return the pairs at these positions, in this order."""
        positions = list(chosen)
        return replace(
            self,
            sources=tuple(self.sources[position] for position in positions),
            targets=tuple(self.targets[position] for position in positions),
            notes=_with(self.notes, note),
        )

    def turned(self) -> Pairs:
        """Return the same pairs with source and target exchanged."""
        return replace(
            self,
            sources=self.targets,
            targets=self.sources,
            languages=(self.languages[1], self.languages[0]),
        )

    def from_language(self, language: str) -> Pairs:
        """Return the pairs with `language` as their source, turned if need be."""
        if language == self.languages[0]:
            return self
        if language == self.languages[1]:
            return self.turned()
        raise InputError(
            self.name,
            f"has no side called {language!r}",
            expected=f"its sides are {self.languages[0]!r} and {self.languages[1]!r}",
            hint="name the sides in the order of the file, for instance --languages en fr",
        )

    def without_empty(self) -> Pairs:
        """Return the pairs whose two sides hold more than white space."""
        both = enumerate(zip(self.sources, self.targets, strict=True))
        kept = [place for place, pair in both if pair[0].strip() and pair[1].strip()]
        return self.take(kept, _removed(len(self) - len(kept), "empty pair"))

    def without_duplicates(self) -> Pairs:
        """Return the pairs without those that came before, exactly as they are."""
        first: dict[tuple[str, str], int] = {}
        for place, pair in enumerate(zip(self.sources, self.targets, strict=True)):
            first.setdefault(pair, place)
        return self.take(first.values(), _removed(len(self) - len(first), "repeated pair"))


def _with(notes: Sequence[str], note: str) -> tuple[str, ...]:
    return (*notes, note) if note else tuple(notes)


def _removed(count: int, what: str) -> str:
    if count == 0:
        return ""
    return f"{count:,} {what}{'' if count == 1 else 's'} left out on request"


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
_WORD = re.compile(r"[^\W_]+")
_END = re.compile(r"[\s\u00a0\u202f]*[.!]+$")

TwoTexts: TypeAlias = tuple[str, str]


class Variation(Settings):
    """The table `[data.variation]`: how the training pairs are varied."""

    table: ClassVar[str | None] = "data.variation"

    rounds: PositiveInt = 1
    """How often the pairs are gone through, each time varied anew: one epoch is all rounds."""
    joined: float = Field(default=0.0, ge=0.0, le=1.0)
    """The share of the pairs that stand in longer texts of two to four instead of alone."""
    renamed: float = Field(default=0.0, ge=0.0, le=1.0)
    """The share of names and numbers, alike on both sides, that are replaced by others."""


def varied(pairs: Pairs, variation: Variation, seed: int) -> Pairs:
    """Return the pairs of all rounds."""
    spelling = _Spelling.of(pairs)
    made: list[TwoTexts] = []
    for round_ in range(variation.rounds):
        draws = Draws(f"variation {seed} {round_}")
        texts = list(zip(pairs.sources, pairs.targets, strict=True))
        if variation.renamed:
            texts = [_renamed(two, spelling, variation.renamed, draws) for two in texts]
        made += _joined(texts, variation.joined, spelling, pairs.languages, draws)
    note = (
        f"{variation.rounds} rounds, {variation.joined:.0%} joined to longer texts, "
        f"{variation.renamed:.0%} of names and numbers replaced"
    )
    return replace(
        pairs,
        sources=tuple(source for source, _ in made),
        targets=tuple(target for _, target in made),
        notes=(*pairs.notes, note),
    )


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
            chain.from_iterable(map(_WORD.findall, chain(pairs.sources, pairs.targets)))
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
        first = _WORD.search(text)
        if first is None or first.start() > 0 or first[0].lower() not in self.small:
            return text
        return text if first[0] == "I" else text[:1].lower() + text[1:]


def _shared(source: str, target: str) -> set[str]:
    return set(_WORD.findall(source)).intersection(_WORD.findall(target))


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
    return _WORD.sub(lambda word: changes.get(word[0], word[0]), text)


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
