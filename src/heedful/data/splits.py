"""Groups of linked sentences, splits that share no sentence, and the leaks between corpora.

Two pairs are linked when they share a sentence, exactly, on any side; a group is everything that
can be reached by such links. (One French sentence with three English translations links three
pairs; one of these translations may belong to a second French sentence; and so on.) A split that
keeps groups whole shares no sentence between its parts, and it stays put when data is added: each
group goes to one part, chosen by a hash.

    r = the sentence of the group with the smallest h(seed, "name", sentence)
    u = h(seed, "place", r) / 2⁶⁴,   the part whose interval of [0, 1) holds u

Two hashes, because the smallest of many hashes is small: with one, large groups would crowd into
the first part. A new sentence moves its group only if its hash happens to be the smallest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
from jaxtyping import Float, Int, UInt64

from heedful.data.corpus import Documents, Pairs
from heedful.errors import ConfigError
from heedful.records import Record

Links = Literal["both", "source"]
"""What links pairs: a sentence on any side, or the source alone.

Questions are linked by their source: an answer such as "London" is shared by many of them.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class Groups:
    """Which group each text or pair of a corpus belongs to."""

    labels: Int[np.ndarray, " texts"]
    """The group of each pair, numbered from 0 in order of first appearance."""
    count: int
    """How many groups there are."""

    @property
    def sizes(self) -> Int[np.ndarray, " groups"]:
        """How many pairs each group holds."""
        return np.bincount(self.labels, minlength=self.count)


@dataclass(frozen=True, eq=False, kw_only=True)
class References(Record):
    """Each distinct source once, with everything it is translated as."""

    sources: tuple[str, ...]
    """In order of first appearance."""
    targets: tuple[tuple[str, ...], ...]
    """The distinct targets of each, in order of appearance."""

    @property
    def with_several(self) -> int:
        """How many sources have more than one target."""
        return sum(len(targets) > 1 for targets in self.targets)


def linked_groups(corpus: Pairs | Documents, links: Links = "both") -> Groups:
    """Return the groups of pairs that share a sentence; equal documents are one group.

    >>> pairs = Pairs(name="x", sources=("a", "a", "b", "c"), targets=("A", "B", "B", "C"))
    >>> linked_groups(pairs).labels.tolist()
    [0, 0, 0, 1]
    >>> linked_groups(pairs, "source").labels.tolist()
    [0, 0, 1, 2]
    """
    numbers: dict[str, int] = {}
    first = _numbered(corpus.sides[0], numbers)
    if links == "source" or len(corpus.sides) == 1:
        return _in_order(first)
    second = _numbered(corpus.sides[1], numbers)
    # scipy takes a moment to load; only linking needs it.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    shape = (len(numbers), len(numbers))
    graph = coo_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=shape)
    _, components = connected_components(graph, directed=False)
    return _in_order(components[first])


def references(pairs: Pairs) -> References:
    """Gather the targets of each distinct source."""
    targets: dict[str, dict[str, None]] = {}
    for source, target in zip(pairs.sources, pairs.targets, strict=True):
        targets.setdefault(source, {})[target] = None
    return References(sources=tuple(targets), targets=tuple(map(tuple, targets.values())))


def _numbered(texts: Sequence[str], numbers: dict[str, int]) -> Int[np.ndarray, " texts"]:
    return np.fromiter((numbers.setdefault(text, len(numbers)) for text in texts), np.int64)


def _in_order(labels: Int[np.ndarray, " texts"]) -> Groups:
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return Groups(labels=rank[inverse], count=len(first))


# Splits

SHARES = {"train": 0.96, "validation": 0.02, "test": 0.02}


@dataclass(frozen=True, eq=False, kw_only=True)
class SplitPart(Record):
    """One part of a split."""

    name: str
    share: float
    """What was asked for, as a share of the groups."""
    indices: Int[np.ndarray, " texts"]
    """Which texts of the corpus it holds, ascending."""
    groups: int
    """How many linked groups it holds."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Split(Record):
    """A corpus in parts that share no sentence."""

    fingerprint: str
    """Of the corpus that was split."""
    seed: int
    links: str
    """What links texts to a group."""
    parts: tuple[SplitPart, ...]

    def indices(self, name: str) -> Int[np.ndarray, " texts"]:
        """Return which texts a part holds."""
        for part in self.parts:
            if part.name == name:
                return part.indices
        raise ConfigError(
            "part",
            f"{name!r} is not one of the split",
            expected=f"its parts are {', '.join(part.name for part in self.parts)}",
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Overlap(Record):
    """What two corpora share: leaks, if one trains and the other tests."""

    first: str
    second: str
    pairs: int
    """Texts of the second that are in the first as they are (for pairs: both sides)."""
    sources: int
    """Texts of the second whose source is a sentence of the first, on any side."""
    targets: int
    """The same for the targets; 0 for documents."""
    alike: int
    """Texts of the second that are not among those, but whose source would be without case,
    punctuation and spacing."""
    examples: tuple[str, ...]
    """A few of the shared sentences."""

    @property
    def any(self) -> bool:
        """Whether a sentence is shared exactly."""
        return bool(self.pairs or self.sources or self.targets)


def split(
    corpus: Pairs | Documents,
    shares: Mapping[str, float] | None = None,
    *,
    seed: int = 0,
    links: Links = "both",
) -> Split:
    """Split a corpus by linked groups; `shares` of the groups, met on average.

    >>> pairs = Pairs(name="x", sources=("a", "a", "b"), targets=("A", "B", "C"))
    >>> parts = split(pairs, {"train": 0.5, "test": 0.5}, seed=6).parts
    >>> [part.indices.tolist() for part in parts]
    [[0, 1], [2]]
    """
    wanted = dict(SHARES if shares is None else shares)
    _check_shares(wanted, seed)
    groups = linked_groups(corpus, links)
    places = _places(corpus, groups, seed, links)
    edges = np.cumsum(list(wanted.values()))
    part_of_group = np.minimum(np.searchsorted(edges, places, side="right"), len(wanted) - 1)
    part_of_text = part_of_group[groups.labels]
    return Split(
        fingerprint=corpus.fingerprint,
        seed=seed,
        links=links,
        parts=tuple(
            SplitPart(
                name=name,
                share=share,
                indices=np.flatnonzero(part_of_text == number),
                groups=int(np.sum(part_of_group == number)),
            )
            for number, (name, share) in enumerate(wanted.items())
        ),
    )


def overlap(first: Pairs | Documents, second: Pairs | Documents, examples: int = 5) -> Overlap:
    """Tell which sentences of `second` are in `first`; whole pairs, single sides, and nearly."""
    known = set(chain.from_iterable(first.sides))
    whole = set(zip(*first.sides, strict=True))
    of_source = [text in known for text in second.sides[0]]
    of_target = [text in known for text in second.sides[-1]] if len(second.sides) > 1 else []
    loose = {alike(text) for text in known} - {""}
    shared = dict.fromkeys(text for side in second.sides for text in side if text in known)
    return Overlap(
        first=first.name,
        second=second.name,
        pairs=sum(texts in whole for texts in zip(*second.sides, strict=True)),
        sources=sum(of_source),
        targets=sum(of_target),
        alike=sum(
            not exact and alike(text) in loose
            for text, exact in zip(second.sides[0], of_source, strict=True)
        ),
        examples=tuple(shared)[:examples],
    )


def one_word_away(known: Iterable[str], asked: Sequence[str]) -> int:
    """Return how many texts are a known one in which one word was replaced by another.

    >>> one_word_away(["Tom is here.", "Yes."], ["Tom was here!", "He was here.", "No."])
    1
    """
    return sum(near_known(known, asked))


def near_known(known: Iterable[str], asked: Sequence[str]) -> list[bool]:
    """Tell of each text whether it is a known one in which one word was replaced by another.

    Words are letters and digits between anything else, case aside. A text with the very words of a
    known one counts too; one of fewer than three words never does, since too many are near it.
    """
    blanked = set(chain.from_iterable(_blanked(text) for text in set(known)))
    return [not blanked.isdisjoint(_blanked(text)) for text in asked]


def _blanked(text: str) -> Iterator[tuple[str | None, ...]]:
    """Yield the words of a text with one of them left out, for each of them."""
    words = "".join(c if c.isalnum() else " " for c in text.casefold()).split()
    for place in range(len(words) if len(words) > 2 else 0):
        yield (*words[:place], None, *words[place + 1 :])


def alike(text: str) -> str:
    """Return a text without case, punctuation and spacing, to find near copies.

    >>> alike("Ça va ?") == alike("ça, va!")
    True
    """
    return "".join(filter(str.isalnum, text.casefold()))


def _places(
    corpus: Pairs | Documents, groups: Groups, seed: int, links: Links
) -> Float[np.ndarray, " groups"]:
    """Return u for each group."""
    sides = corpus.sides if links == "both" else corpus.sides[:1]
    lowest = np.full(groups.count, np.iinfo(np.uint64).max, dtype=np.uint64)
    for side in sides:
        np.minimum.at(lowest, groups.labels, _hashes(side, seed, b"name"))
    # The representative enters by its own 64-bit name: two that meet in it share a place,
    # which does no harm.
    places = [_hash(int(name).to_bytes(8, "little"), seed, b"place") for name in lowest]
    return np.array(places, dtype=np.float64) / 2.0**64


def _hashes(texts: Sequence[str], seed: int, purpose: bytes) -> UInt64[np.ndarray, " texts"]:
    hashes = (_hash(text.encode("utf-8"), seed, purpose) for text in texts)
    return np.fromiter(hashes, np.uint64, count=len(texts))


def _hash(content: bytes, seed: int, purpose: bytes) -> int:
    key = seed.to_bytes(8, "little")
    digest = hashlib.blake2b(content, digest_size=8, key=key, person=purpose)
    return int.from_bytes(digest.digest(), "little")


def _check_shares(shares: Mapping[str, float], seed: int) -> None:
    if not 0 <= seed < 2**64:
        raise ConfigError("seed", f"is {seed}", expected="a number from 0 to 2⁶⁴ − 1")
    total = sum(shares.values())
    if not shares or min(shares.values()) <= 0 or abs(total - 1) > 1e-9:
        raise ConfigError(
            "shares",
            f"are {', '.join(f'{name} {share:g}' for name, share in shares.items()) or 'none'} "
            f"(together {total:g})",
            expected="positive shares that are 1 together",
        )
