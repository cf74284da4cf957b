"""Token sequences of a whole corpus in three flat arrays, with what is asked and what is learned.

A sequence of n tokens is n − 1 things to predict: token i + 1 from tokens 0 … i. Its first
`prompt` tokens are given, not learned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np
from jaxtyping import Int, Int32

from heedful.data.corpus import Documents, Pairs
from heedful.errors import InputError

Encode: TypeAlias = Callable[[Sequence[str]], list[list[int]]]
"""Texts to token ids, such as `Tokenizer.encode_batch`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Sequences:
    """Token sequences, one after the other."""

    tokens: Int32[np.ndarray, " tokens"]
    """All tokens of all sequences."""
    starts: Int[np.ndarray, " sequences_and_one"]
    """Where each sequence starts, and where the last one ends."""
    prompts: Int[np.ndarray, " sequences"]
    """How many tokens at the start of each are given, not learned."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Int[np.ndarray, " sequences"]:
        """Tokens of each sequence."""
        return np.diff(self.starts)

    @property
    def steps(self) -> Int[np.ndarray, " sequences"]:
        """Predictions of each sequence: one less than its tokens."""
        return self.lengths - 1

    @classmethod
    def of(
        cls, sequences: Sequence[Sequence[int]], prompts: Sequence[int] | None = None
    ) -> Sequences:
        """Lay out lists of token ids.

        >>> Sequences.of([[1, 2, 3], [4, 5]], prompts=[2, 1]).steps.tolist()
        [2, 1]
        """
        lengths = np.fromiter(map(len, sequences), np.int64, count=len(sequences))
        tokens = np.fromiter(chain.from_iterable(sequences), np.int64, count=int(lengths.sum()))
        given = np.asarray([0] * len(lengths) if prompts is None else prompts, dtype=np.int64)
        _check(lengths, tokens, given)
        return cls(
            tokens=tokens.astype(np.int32),
            starts=np.concatenate([[0], np.cumsum(lengths)]),
            prompts=given,
        )

    def cut(self, steps: int) -> Sequences:
        """Cut long sequences into pieces of at most `steps` predictions.

        The first token of a piece is the last of the piece before, so that every token is
        predicted exactly once. What lies in another piece is not seen.

        >>> Sequences.of([[1, 2, 3, 4]]).cut(2).tokens.tolist()
        [1, 2, 3, 3, 4]
        """
        _check_steps(steps)
        pieces = -(-self.steps // steps)
        owner = np.repeat(np.arange(len(self)), pieces)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        starts = self.starts[owner] + place * steps
        lengths = np.minimum(steps + 1, self.starts[owner + 1] - starts)
        return Sequences(
            tokens=self.tokens[ranges(starts, lengths)],
            starts=np.concatenate([[0], np.cumsum(lengths)]),
            prompts=np.clip(self.prompts[owner] - place * steps, 0, lengths),
        )

    def take(self, chosen: Int[np.ndarray, " chosen"]) -> Sequences:
        """Return the sequences at these positions, in this order."""
        lengths = self.lengths[chosen]
        return Sequences(
            tokens=self.tokens[ranges(self.starts[chosen], lengths)],
            starts=np.concatenate([[0], np.cumsum(lengths)]),
            prompts=self.prompts[chosen],
        )

    def without_longer(self, steps: int) -> Sequences:
        """Leave out what has more than `steps` predictions; compare `len` to see how many."""
        _check_steps(steps)
        return self.take(np.flatnonzero(self.steps <= steps))


def pair_sequences(
    pairs: Pairs, encode: Encode, *, between: int, end: int, begin: int | None = None
) -> Sequences:
    """Write each pair as `begin source between target end`; only what follows is learned.

    >>> letters = lambda texts: [[ord(letter) for letter in text] for text in texts]
    >>> made = pair_sequences(
    ...     Pairs(name="x", sources=("ab",), targets=("c",)), letters, between=1, end=2
    ... )
    >>> made.tokens.tolist(), made.prompts.tolist()
    ([97, 98, 1, 99, 2], [3])
    """
    marks = {between, end} | ({begin} if begin is not None else set())
    opening = [] if begin is None else [begin]
    sources = _encoded(pairs.sources, encode, marks, pairs.name)
    targets = _encoded(pairs.targets, encode, marks, pairs.name)
    return Sequences.of(
        [
            [*opening, *source, between, *target, end]
            for source, target in zip(sources, targets, strict=True)
        ],
        prompts=[len(opening) + len(source) + 1 for source in sources],
    )


def document_sequences(
    documents: Documents, encode: Encode, *, begin: int, end: int | None = None
) -> Sequences:
    """Write each document as `begin text end`; everything after `begin` is learned."""
    marks = {begin} | ({end} if end is not None else set())
    closing = [] if end is None else [end]
    texts = _encoded(documents.texts, encode, marks, documents.name)
    return Sequences.of([[begin, *text, *closing] for text in texts])


def ranges(
    starts: Int[np.ndarray, " runs"], lengths: Int[np.ndarray, " runs"]
) -> Int[np.ndarray, " total"]:
    """Return the runs start, start + 1, … of each length, one after the other.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(lengths) - lengths
    total = int(lengths.sum())
    return np.repeat(starts - before, lengths) + np.arange(total, dtype=np.int64)


def _encoded(texts: Sequence[str], encode: Encode, marks: set[int], name: str) -> list[list[int]]:
    """Encode texts, and refuse one that would write a mark itself: it could end its own text."""
    found = encode(texts)
    for number, tokens in enumerate(found, start=1):
        if not marks.isdisjoint(tokens):
            (mark, *_) = marks.intersection(tokens)
            raise InputError(
                name,
                f"text {number:,} holds the mark with the id {mark}",
                expected="texts without the marks of the tokenizer were expected",
                way_out="leave that text out, or choose marks that no text holds",
            )
    return found


def _check(
    lengths: Int[np.ndarray, " sequences"],
    tokens: Int[np.ndarray, " tokens"],
    prompts: Int[np.ndarray, " given"],
) -> None:
    if not len(lengths):
        raise InputError("sequences", "are none", expected="at least one was expected")
    if lengths.min() < 2:
        raise InputError(
            "sequences",
            f"number {int(lengths.argmin()) + 1} has {int(lengths.min())} tokens",
            expected="at least two: one to read and one to predict",
            way_out="put a mark at the start or the end of every text",
        )
    if tokens.min() < 0 or tokens.max() > np.iinfo(np.int32).max:
        raise InputError("sequences", "hold ids below 0 or above 2³¹", expected="token ids")
    if len(prompts) != len(lengths) or (prompts < 0).any() or (prompts > lengths).any():
        raise InputError(
            "prompts",
            "do not fit the sequences",
            expected="one number for each sequence, from 0 to its length",
        )


def _check_steps(steps: int) -> None:
    if steps < 1:
        raise InputError("steps", f"are {steps}", expected="at least 1 was expected")
