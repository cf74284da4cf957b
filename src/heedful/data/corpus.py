"""A corpus: documents, or pairs of texts, with a fingerprint and the files it came from.

Readers change nothing: what is odd is reported (`heedful.data.inspection`), and leaving texts
out is a step of its own that says what it did.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import SupportsIndex

from heedful.data.text_files import ReadOptions, SourceFile, TextFile
from heedful.errors import InputError

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
