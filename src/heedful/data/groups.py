"""Sentences that belong together: linked groups, and several references for one source.

Two pairs are linked when they share a sentence, exactly, on any side; a group is everything
that can be reached by such links. A split that keeps groups whole shares no sentence between
its parts. (One French sentence with three English translations links three pairs; one of these
translations may belong to a second French sentence; and so on.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Int

from heedful.data.corpus import Documents, Pairs
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
        return sum(len(found) > 1 for found in self.targets)


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
    found: dict[str, dict[str, None]] = {}
    for source, target in zip(pairs.sources, pairs.targets, strict=True):
        found.setdefault(source, {})[target] = None
    return References(sources=tuple(found), targets=tuple(tuple(each) for each in found.values()))


def _numbered(texts: Sequence[str], numbers: dict[str, int]) -> Int[np.ndarray, " texts"]:
    return np.fromiter((numbers.setdefault(text, len(numbers)) for text in texts), np.int64)


def _in_order(labels: Int[np.ndarray, " texts"]) -> Groups:
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return Groups(labels=rank[inverse], count=len(first))
