"""What is in a corpus: counts, lengths, odd characters, duplicates, groups, leaks, examples.

Odd are controls and invisible characters, marks that change the direction of writing, spaces other
than the plain one, loose combining marks, the replacement character, private and unassigned code
points, and letters of another script than most of the text.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np
from jaxtyping import Int

from heedful.data.corpus import Documents, Pairs
from heedful.data.languages import guess_language
from heedful.data.splits import Overlap, linked_groups, overlap, references
from heedful.data.text_files import SourceFile
from heedful.records import Record

# Odd characters

BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks that change the direction in which text is shown: they can make it read differently."""
AT_ONCE = 100_000
"""Texts counted in one step, to bound memory."""

_KINDS = {
    "Cc": "control", "Cf": "invisible", "Co": "private", "Cn": "unassigned", "Cs": "surrogate",
    "Zs": "space", "Zl": "line separator", "Zp": "line separator", "Mn": "combining mark",
    "Mc": "combining mark", "Me": "combining mark",
}  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class OddCharacter(Record):
    """A character that deserves a look."""

    code: str
    """As U+202F."""
    name: str
    """Its name in Unicode."""
    kind: str
    """Why it is odd."""
    count: int
    """How often it occurs."""


def counted(texts: Sequence[str]) -> dict[str, int]:
    """Return how often each character occurs.

    >>> counted(["aba", "b"])
    {'a': 2, 'b': 2}
    """
    totals: Counter[int] = Counter()
    for joined in _joined(texts):
        codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        distinct, counts = np.unique(codes, return_counts=True)
        totals.update(dict(zip(distinct.tolist(), counts.tolist(), strict=True)))
    return {chr(code): totals[code] for code in sorted(totals)}


def odd_characters(counts: dict[str, int]) -> tuple[OddCharacter, ...]:
    """Return the odd ones among counted characters, most frequent first."""
    scripts: Counter[str] = Counter()
    for character, count in counts.items():
        if script := _script(character):
            scripts[script] += count
    usual = scripts.most_common(1)[0][0] if scripts else ""
    odd = [
        OddCharacter(
            code=f"U+{ord(character):04X}",
            name=unicodedata.name(character, "no name"),
            kind=kind,
            count=count,
        )
        for character, count in counts.items()
        if (kind := kind_of(character, usual))
    ]
    return tuple(sorted(odd, key=lambda one: (-one.count, one.code)))


def kind_of(character: str, usual_script: str) -> str:
    """Return why a character is odd in text of a script, or nothing.

    >>> kind_of("\\u202f", "LATIN"), kind_of("я", "LATIN"), kind_of("é", "LATIN")
    ('space', 'CYRILLIC letter', '')
    """
    if character == " ":
        return ""
    if character in BIDI:
        return "direction mark"
    if character == "\ufffd":
        return "replacement"
    kind = _KINDS.get(unicodedata.category(character), "")
    if kind:
        return kind
    script = _script(character)
    return f"{script} letter" if script and script != usual_script else ""


def _script(character: str) -> str:
    # Unicode names of letters start with their script; the standard library has no other table.
    if not unicodedata.category(character).startswith(("Lu", "Ll", "Lt", "Lo")):
        return ""
    name = unicodedata.name(character, "").partition(" ")[0]
    return "" if name in ("FEMININE", "MASCULINE", "MICRO") else name


def _joined(texts: Iterable[str]) -> Iterator[str]:
    rest = iter(texts)
    while part := list(islice(rest, AT_ONCE)):
        yield "".join(part)


# Corpora

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
class TextExample(Record):
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
    origins: tuple[SourceFile, ...]
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
    examples: tuple[TextExample, ...]


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
            TextExample(number=place + 1, texts=rows[place])
            for place in _spread(len(rows), examples)
        ),
    )


def lengths(values: Int[np.ndarray, " texts"]) -> Lengths:
    """Summarise lengths.

    >>> summary = lengths(np.array([1, 2, 2, 3, 50]))
    >>> summary.median, summary.longest, sum(summary.counts)
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
