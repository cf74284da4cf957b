"""What is in a corpus: counts, lengths, odd characters, duplicates, groups, leaks, examples."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Int

from heedful.data.characters import BIDI, OddCharacter, counted, odd_characters
from heedful.data.corpus import Documents, Pairs
from heedful.data.files import Origin
from heedful.data.groups import linked_groups, references
from heedful.data.language import guess_language
from heedful.data.splits import Overlap, overlap
from heedful.records import Record

MOST_BARS = 60


@dataclass(frozen=True, eq=False, kw_only=True)
class Lengths(Record):
    """How long texts are, in characters or in words."""

    mean: float
    median: float
    p90: float
    """Nine of ten texts are at most this long."""
    p99: float
    """99 of 100 texts are at most this long."""
    longest: int
    edges: tuple[int, ...]
    """Where the bars of a histogram begin; the last number ends the last bar."""
    counts: tuple[int, ...]
    """How many texts each bar holds; the last one holds everything above the 99.5 % point too."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SideFacts(Record):
    """What one side of a corpus looks like."""

    language: str
    """Its language, or what else the side is called."""
    texts: int
    distinct: int
    empty: int
    """Texts with nothing but white space."""
    characters: Lengths
    words: Lengths
    """Words are what white space separates."""
    alphabet: int
    """Distinct characters."""
    odd: tuple[OddCharacter, ...]
    """Odd characters, most frequent first."""
    not_nfc: int
    """Texts that are not in the composed form of Unicode (NFC): é as e and an accent."""
    with_direction_marks: int
    """Texts with characters that change the direction of writing."""
    untrimmed: int
    """Texts that begin or end with white space."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Example(Record):
    """One text or pair, as it is."""

    number: int
    """Its place in the corpus, from 1."""
    texts: tuple[str, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class CorpusFacts(Record):
    """What one corpus holds."""

    name: str
    kind: str
    """`pairs` or `documents`."""
    count: int
    fingerprint: str
    """SHA-256 of the texts in their order."""
    origins: tuple[Origin, ...]
    notes: tuple[str, ...]
    """How it was read."""
    left_out: dict[str, int]
    """Entries of the files that are not in the corpus, by reason."""
    sides: tuple[SideFacts, ...]
    duplicates: int
    """Texts or whole pairs that came before."""
    empty: int
    """Documents, or pairs with a side, that hold nothing but white space."""
    untranslated: int
    """Pairs whose two sides are equal."""
    groups: int
    """Groups of texts that are linked by a shared sentence."""
    largest_group: int
    """Texts in the largest of them."""
    several_targets: int
    """Distinct sources with more than one target."""
    several_sources: int
    """Distinct targets with more than one source."""
    examples: tuple[Example, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Inspection(Record):
    """What `heed data inspect` found."""

    corpora: tuple[CorpusFacts, ...]
    overlaps: tuple[Overlap, ...]
    """What each corpus shares with each one before it."""


def inspect_corpora(corpora: Sequence[Pairs | Documents], examples: int = 5) -> Inspection:
    """Look at every corpus, and at what they share."""
    return Inspection(
        corpora=tuple(inspect_corpus(corpus, examples) for corpus in corpora),
        overlaps=tuple(overlap(first, second) for first, second in combinations(corpora, 2)),
    )


def inspect_corpus(corpus: Pairs | Documents, examples: int = 5) -> CorpusFacts:
    """Count, measure and sample one corpus; nothing in it is changed."""
    rows = list(zip(*corpus.sides, strict=True))
    pairs = corpus if isinstance(corpus, Pairs) else None
    groups = linked_groups(corpus)
    return CorpusFacts(
        name=corpus.name,
        kind="documents" if pairs is None else "pairs",
        count=len(corpus),
        fingerprint=corpus.fingerprint,
        origins=corpus.origins,
        notes=corpus.notes,
        left_out=corpus.left_out,
        sides=tuple(
            _side(texts, language)
            for texts, language in zip(corpus.sides, _languages(corpus), strict=True)
        ),
        duplicates=len(rows) - len(set(rows)),
        empty=sum(not all(text.strip() for text in row) for row in rows),
        untranslated=0 if pairs is None else sum(row[0] == row[1] for row in rows),
        groups=groups.count,
        largest_group=int(groups.sizes.max()),
        several_targets=0 if pairs is None else references(pairs).with_several,
        several_sources=0 if pairs is None else references(pairs.turned()).with_several,
        examples=tuple(
            Example(number=place + 1, texts=rows[place]) for place in _spread(len(rows), examples)
        ),
    )


def lengths(values: Int[np.ndarray, " texts"]) -> Lengths:
    """Summarise lengths.

    >>> found = lengths(np.array([1, 2, 2, 3, 50]))
    >>> found.median, found.longest, sum(found.counts)
    (2.0, 50, 5)
    """
    p90, p99, top = np.quantile(values, (0.9, 0.99, 0.995), method="higher")
    step = max(1, -(-(int(top) + 1) // MOST_BARS))
    edges = np.arange(0, int(top) + step + 1, step)
    counts, _ = np.histogram(np.minimum(values, edges[-1] - 1), edges)
    return Lengths(
        mean=float(values.mean()),
        median=float(np.median(values)),
        p90=float(p90),
        p99=float(p99),
        longest=int(values.max()),
        edges=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
    )


def _languages(corpus: Pairs | Documents) -> tuple[str, ...]:
    if isinstance(corpus, Pairs):
        return corpus.languages
    return (guess_language(corpus.texts).language or "text",)


def _side(texts: Sequence[str], language: str) -> SideFacts:
    counts = counted(texts)
    marked = BIDI & set(counts)
    return SideFacts(
        language=language,
        texts=len(texts),
        distinct=len(set(texts)),
        empty=sum(not text.strip() for text in texts),
        characters=lengths(_array(len(text) for text in texts)),
        words=lengths(_array(len(text.split()) for text in texts)),
        alphabet=len(counts),
        odd=odd_characters(counts),
        not_nfc=sum(not unicodedata.is_normalized("NFC", text) for text in texts),
        with_direction_marks=sum(not marked.isdisjoint(text) for text in texts) if marked else 0,
        untrimmed=sum(text != text.strip() for text in texts),
    )


def _array(values: Any) -> Int[np.ndarray, " texts"]:
    return np.fromiter(values, np.int64)


def _spread(count: int, wanted: int) -> list[int]:
    """Return positions spread evenly over a corpus: the same ones every time."""
    wanted = max(0, min(wanted, count))
    return [(2 * place + 1) * count // (2 * wanted) for place in range(wanted)]
