"""First embeddings of a translator, in which a token lies beside the tokens that translate it.

A decoder that attends to a source token copies its value. Where embeddings are drawn at random,
that copy says nothing about the target language: which word means which is learned last, and of
rare words never. But sentences and their translations tell it before any training. IBM's model 1
(Brown et al. 1993) supposes that every target token e is written because of one source token f of
its sentence, or of none, and finds t(e | f) by expectation and maximisation:

    share of f in the writing of e   t(e | f) / Σ_f' t(e | f'), over the tokens f' of the sentence
    t(e | f)                         these shares added up over all sentences, in parts of f's sum

Then target tokens get random directions r, which are nearly orthogonal, and a source token gets
the direction Σ_e t(e | f) r_e of its translations. A token that both languages write (a name, a
digit, a full stop) has both, each as often as that language writes it. With embeddings that are
tied to the output layer, a head that copies now translates, before anything else is learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are first used
from jaxtyping import Float, Int
from numpy import ndarray

Ids = Sequence[Sequence[int]]
"""Token ids of some texts."""

ROUNDS = 8
"""Of expectation and maximisation: likelihoods no longer change in the third digit."""
MOST_LINKS = 20_000_000
"""Pairs of tokens that are looked at: further sentences are left out. About a gigabyte."""
SPREAD = 0.1
"""Standard deviation of the embeddings. Five times that of other weights: in trainings of minutes
the optimiser moves a number by several hundredths, which must not wipe out what is written here."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Lexicon:
    """Which target tokens each source token becomes."""

    sources: Int[ndarray, " entries"]
    """In ascending order, and for each of them its targets in ascending order."""
    targets: Int[ndarray, " entries"]
    shares: Float[ndarray, " entries"]
    """t(e | f); of a source token they sum to 1."""

    def table(self, vocabulary: int) -> Any:
        """Return the shares as a sparse matrix, a row for each source token."""
        places = (self.sources, self.targets)
        return scipy.sparse.csr_array((self.shares, places), shape=(vocabulary, vocabulary))

    def between(self, sources: Sequence[int], targets: Sequence[int]) -> Float[ndarray, "f e"]:
        """Return the shares of some tokens; 0 for those that never stood in one sentence.

        As `table` has them, for a few tokens in a hundredth of the time.
        """
        keys, width = self._keys
        wanted = np.add.outer(np.asarray(sources) * width, np.asarray(targets))
        places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[places] == wanted, self.shares[places], 0.0)

    @cached_property
    def _keys(self) -> tuple[Int[ndarray, " entries"], int]:
        """Return one ascending number for each entry, and by what its source is multiplied."""
        width = int(self.targets.max()) + 1
        return self.sources * width + self.targets, width


def aligned_lexicon(sources: Ids, targets: Ids, vocabulary: int) -> Lexicon:
    """Return t(e | f) of IBM's model 1, from sentences and their translations.

    >>> found = aligned_lexicon([[0, 1], [0, 2], [1, 2]], [[5, 6], [5, 7], [6, 7]], 8)
    >>> [int(found.targets[found.sources == f][found.shares[found.sources == f].argmax()])
    ...  for f in (0, 1, 2)]
    [5, 6, 7]
    """
    nothing = vocabulary  # the source token of what is written because of no other
    entries, link_entries, link_words = _links(sources, targets, nothing)
    causes = entries // vocabulary
    shares = np.ones(len(entries))
    for _ in range(ROUNDS):
        links = shares[link_entries]
        links /= np.bincount(link_words, links)[link_words]
        counts = np.bincount(link_entries, links, minlength=len(entries))
        shares = counts / np.bincount(causes, counts)[causes]
    named = causes != nothing
    return Lexicon(sources=causes[named], targets=entries[named] % vocabulary, shares=shares[named])


def _links(
    sources: Ids, targets: Ids, nothing: int
) -> tuple[Int[ndarray, " entries"], Int[ndarray, " links"], Int[ndarray, " links"]]:
    """Return all pairs (f, e) as f · vocabulary + e, and of every link its pair and its word.

    A link joins one target word, numbered through all texts, with one token of its source.
    """
    lengths = np.array([len(source) + 1 for source in sources], dtype=np.int64)
    written = np.array([len(target) for target in targets], dtype=np.int64)
    most = max(int(np.searchsorted(np.cumsum(lengths * written), MOST_LINKS)), 1)
    lengths, written = lengths[:most], written[:most]
    causes = np.concatenate([[nothing, *source] for source in sources[:most]])
    words = np.concatenate([np.asarray(target, dtype=np.int64) for target in targets[:most]])
    # Word by word, every token of the source: its first one, and how far after it.
    per_word = np.repeat(lengths, written)
    first = np.repeat(np.cumsum(lengths) - lengths, written)
    link_words = np.repeat(np.arange(len(words)), per_word)
    within = np.arange(len(link_words)) - np.repeat(np.cumsum(per_word) - per_word, per_word)
    keys = causes[first[link_words] + within] * nothing + words[link_words]
    entries, link_entries = np.unique(keys, return_inverse=True)
    return entries, link_entries, link_words


def aligned_embeddings(
    sources: Ids, targets: Ids, vocabulary: int, width: int, seed: int = 0
) -> Float[ndarray, "vocabulary width"]:
    """Return embeddings in which source tokens have the directions of their translations."""
    directions = np.random.default_rng(seed).standard_normal((vocabulary, width))
    lexicon = aligned_lexicon(sources, targets, vocabulary)
    translated = _normed(lexicon.table(vocabulary) @ directions)
    in_source, in_target = (
        np.bincount(np.concatenate([np.asarray(text, int) for text in texts]), minlength=vocabulary)
        for texts in (sources, targets)
    )
    # A token whose sentences were not looked at keeps a direction of its own.
    known = np.any(translated != 0.0, axis=1)
    share = (known * in_source / np.maximum(in_source + in_target, 1))[:, None]
    return SPREAD * _normed(share * translated + (1.0 - share) * _normed(directions))


def _normed(rows: Float[ndarray, "rows width"]) -> Float[ndarray, "rows width"]:
    """Return rows whose numbers have a mean square of 1; rows of zeros stay."""
    size = np.sqrt(np.mean(np.square(rows), axis=1, keepdims=True))
    return rows / np.where(size > 0.0, size, 1.0)
