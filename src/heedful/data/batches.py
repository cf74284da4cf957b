"""From texts to batches: token sequences, rows packed with hardly any padding, and their order.

A sequence of n tokens is n − 1 things to predict: token i + 1 from tokens 0 … i. Its first
`prompt` tokens are given, not learned.

There are two ways to lay out sequences: `packed` puts several in each row of one width, `bucketed`
puts sequences of like length together, one a row. What stands in which row is decided once, by the
seed; the order in which rows come is a function of (seed, epoch). Batch number i of a run is
therefore a function of i alone:

    epoch, place = divmod(i, batches in an epoch)

and a run that stopped after batch i resumes with batch i + 1, without replaying anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from typing import TypeAlias

import numpy as np
from jaxtyping import Int, Int32

from heedful.data.corpus import Documents, Pairs
from heedful.errors import ConfigError, InputError

# Sequences: the tokens of a whole corpus in three flat arrays

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
        _check_sequences(lengths, tokens, given)
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
    >>> sequences = pair_sequences(
    ...     Pairs(name="x", sources=("ab",), targets=("c",)), letters, between=1, end=2
    ... )
    >>> sequences.tokens.tolist(), sequences.prompts.tolist()
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
    encoded = encode(texts)
    for number, tokens in enumerate(encoded, start=1):
        if not marks.isdisjoint(tokens):
            (mark, *_) = marks.intersection(tokens)
            raise InputError(
                name,
                f"text {number:,} holds the mark with the id {mark}",
                expected="texts without the marks of the tokenizer were expected",
                hint="leave that text out, or choose marks that no text holds",
            )
    return encoded


def _check_sequences(
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
            hint="put a mark at the start or the end of every text",
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


# Rows: sequences side by side, packed by best fit in an order that the seed decides
#
# Each sequence goes to the open row with the least room that still holds it, or opens a new one.
# A bit for each amount of room that some row has left makes the search one operation on whole
# numbers, so that 160,000 pairs are packed in well under a second.


@dataclass(frozen=True, eq=False, kw_only=True)
class PackedRows:
    """Which sequences stand in which row, and where."""

    members: Int[np.ndarray, " sequences"]
    """The sequences, row by row."""
    columns: Int[np.ndarray, " sequences"]
    """The column at which each of them starts."""
    starts: Int[np.ndarray, " rows_and_one"]
    """Where each row starts in `members`, and where the last one ends."""

    def __len__(self) -> int:
        return len(self.starts) - 1


def pack(lengths: Int[np.ndarray, " sequences"], width: int, seed: int) -> PackedRows:
    """Pack lengths into rows of `width`.

    >>> rows = pack(np.array([5, 3, 2]), width=5, seed=0)
    >>> len(rows)
    2
    """
    _check_fits(lengths, width)
    members: list[list[int]] = []
    open_rows: list[list[int]] = [[] for _ in range(width + 1)]
    rooms = 0
    order = shuffled(len(lengths), seed, 0)
    for member, length in zip(order.tolist(), lengths[order].tolist(), strict=True):
        fitting = rooms >> length
        if fitting:
            room = (fitting & -fitting).bit_length() - 1 + length
            row = open_rows[room].pop()
            if not open_rows[room]:
                rooms ^= 1 << room
            members[row].append(member)
        else:
            room, row = width, len(members)
            members.append([member])
        room -= length
        if room:
            open_rows[room].append(row)
            rooms |= 1 << room
    return _rows(members, lengths)


def one_in_each_row(order: Int[np.ndarray, " sequences"]) -> PackedRows:
    """Give each sequence a row of its own, in this order."""
    count = len(order)
    return PackedRows(
        members=order,
        columns=np.zeros(count, dtype=np.int64),
        starts=np.arange(count + 1, dtype=np.int64),
    )


def shuffled(count: int, seed: int, epoch: int) -> Int[np.ndarray, " count"]:
    """Return the numbers below `count` in an order that only (seed, epoch) decides.

    The raw stream of PCG64 never changes between versions of NumPy, unlike its `permutation`.

    >>> shuffled(5, seed=1, epoch=0).tolist() == shuffled(5, seed=1, epoch=0).tolist()
    True
    """
    if seed < 0 or epoch < 0:
        raise InputError("seed", f"is {seed} in epoch {epoch}", expected="0 or more was expected")
    stream = np.random.PCG64(np.random.SeedSequence([seed, epoch]))
    return np.argsort(stream.random_raw(count), kind="stable")


def _rows(members: list[list[int]], lengths: Int[np.ndarray, " sequences"]) -> PackedRows:
    counts = np.fromiter(map(len, members), np.int64, count=len(members))
    starts = np.concatenate([[0], np.cumsum(counts)])
    flat = np.concatenate([np.asarray(row, dtype=np.int64) for row in members])
    ends = np.cumsum(lengths[flat])
    before = ends - lengths[flat]
    return PackedRows(
        members=flat, columns=before - np.repeat(before[starts[:-1]], counts), starts=starts
    )


def _check_fits(lengths: Int[np.ndarray, " sequences"], width: int) -> None:
    if width < 1:
        raise InputError("width", f"is {width}", expected="at least 1 was expected")
    if not len(lengths) or lengths.min() < 1:
        raise InputError("lengths", "are none, or hold a 0", expected="positive lengths")
    too_long = int((lengths > width).sum())
    if too_long:
        raise InputError(
            "width",
            f"is {width}, but {too_long:,} of {len(lengths):,} sequences are longer "
            f"(up to {int(lengths.max()):,})",
            expected="every sequence fits in one row",
            hint="widen the rows, or first call `cut` or `without_longer` on the sequences",
        )


# Batches

IGNORE = -100
"""The target of a token whose successor is not learned, as torch's losses have it."""
NO_DOCUMENT = -1
"""The document number of padding."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Batch:
    """PackedRows of tokens and what each of them should predict; padding is at the end of a row."""

    tokens: Int[np.ndarray, "rows time"]
    """What the model reads."""
    targets: Int[np.ndarray, "rows time"]
    """The next token of the same document; `IGNORE` for prompts and padding."""
    documents: Int[np.ndarray, "rows time"]
    """The number of the document within its row, from 0; `NO_DOCUMENT` for padding.

    A token may attend to tokens of its own document only: a block-diagonal mask.
    """
    positions: Int[np.ndarray, "rows time"]
    """The position of each token within its own document; 0 for padding."""

    @property
    def real(self) -> int:
        """Tokens that are not padding."""
        return int(np.count_nonzero(self.documents != NO_DOCUMENT))

    @property
    def learned(self) -> int:
        """Tokens whose successor is learned."""
        return int(np.count_nonzero(self.targets != IGNORE))

    def share(self, rank: int, ranks: int) -> Batch:
        """Return the rows that one of several processes works on: every `ranks`-th."""
        if not 0 <= rank < ranks:
            raise ConfigError("rank", f"is {rank} of {ranks}", expected=f"0 to {ranks - 1}")
        return Batch(**{part.name: getattr(self, part.name)[rank::ranks] for part in fields(self)})


@dataclass(frozen=True, eq=False, kw_only=True)
class Batches:
    """All batches of all epochs; made by `packed` or `bucketed`."""

    sequences: Sequences
    rows: PackedRows
    """Which sequences stand in which row."""
    unit_starts: Int[np.ndarray, " units_and_one"]
    """PackedRows that always stay together are a unit: this is where each one starts."""
    units_a_batch: int
    width: int | None
    """Columns of every batch; None where each is as wide as its longest row."""
    seed: int
    pad: int
    """What stands in the columns of padding."""
    shuffle: bool
    """Whether the order changes from epoch to epoch; else it is the same in each."""
    _orders: dict[int, Int[np.ndarray, " units"]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        """How many batches an epoch has; the last may be smaller."""
        return -(-(len(self.unit_starts) - 1) // self.units_a_batch)

    @property
    def tokens(self) -> int:
        """Real tokens in an epoch."""
        return int(self.sequences.steps.sum())

    @property
    def padding(self) -> float:
        """The share of an epoch's columns that holds nothing."""
        if self.width is not None:
            columns = len(self.rows) * self.width
        else:
            widths = self._row_widths()
            longest = np.maximum.reduceat(widths, self.unit_starts[:-1])
            columns = int((longest * np.diff(self.unit_starts)).sum())
        return 1.0 - self.tokens / columns

    def batch(self, index: int) -> Batch:
        """Return batch `index` of the run, counted over all epochs."""
        if index < 0:
            raise InputError("index", f"is {index}", expected="0 or more was expected")
        epoch, place = divmod(index, len(self))
        first = place * self.units_a_batch
        units = self._order(epoch)[first : first + self.units_a_batch]
        counts = np.diff(self.unit_starts)[units]
        return self._laid_out(ranges(self.unit_starts[units], counts))

    def iterate(self, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Yield batches from `start` on, over the end of epochs, without end unless told."""
        index = start
        while stop is None or index < stop:
            yield self.batch(index)
            index += 1

    def _order(self, epoch: int) -> Int[np.ndarray, " units"]:
        count = len(self.unit_starts) - 1
        if not self.shuffle:
            return np.arange(count)
        if epoch not in self._orders:
            self._orders.clear()
            # Epoch 0 of this seed has decided what stands in which row.
            self._orders[epoch] = shuffled(count, self.seed, epoch + 1)
        return self._orders[epoch]

    def _row_widths(self) -> Int[np.ndarray, " rows"]:
        return np.add.reduceat(self.sequences.steps[self.rows.members], self.rows.starts[:-1])

    def _laid_out(self, rows: Int[np.ndarray, " rows"]) -> Batch:
        counts = self.rows.starts[rows + 1] - self.rows.starts[rows]
        slots = ranges(self.rows.starts[rows], counts)
        members = self.rows.members[slots]
        steps = self.sequences.steps[members]
        ends = self.rows.columns[slots] + steps
        width = self.width if self.width is not None else int(ends.max())

        within = ranges(np.zeros_like(steps), steps)
        read = np.repeat(self.sequences.starts[members], steps) + within
        row_starts = np.repeat(np.arange(len(rows)) * width, counts)
        written = np.repeat(row_starts + self.rows.columns[slots], steps) + within
        learned = within + 1 >= np.repeat(self.sequences.prompts[members], steps)

        shape = (len(rows), width)
        tokens = np.full(shape, self.pad, dtype=np.int64)
        targets = np.full(shape, IGNORE, dtype=np.int64)
        documents = np.full(shape, NO_DOCUMENT, dtype=np.int64)
        positions = np.zeros(shape, dtype=np.int64)
        tokens.reshape(-1)[written] = self.sequences.tokens[read]
        targets.reshape(-1)[written] = np.where(learned, self.sequences.tokens[read + 1], IGNORE)
        documents.reshape(-1)[written] = np.repeat(ranges(np.zeros_like(counts), counts), steps)
        positions.reshape(-1)[written] = within
        return Batch(tokens=tokens, targets=targets, documents=documents, positions=positions)


def packed(
    sequences: Sequences,
    *,
    width: int = 256,
    rows: int = 32,
    seed: int = 0,
    pad: int = 0,
    shuffle: bool = True,
) -> Batches:
    """Lay out several sequences in each row of `width` tokens, `rows` rows a batch.

    >>> batches = packed(Sequences.of([[1, 2, 3], [4, 5, 6], [7, 8]]), width=5, rows=1)
    >>> len(batches), batches.tokens, batches.padding
    (1, 5, 0.0)
    """
    _check_positive(rows=rows)
    layout = pack(sequences.steps, width, seed)
    return Batches(
        sequences=sequences,
        rows=layout,
        unit_starts=np.arange(len(layout) + 1, dtype=np.int64),
        units_a_batch=rows,
        width=width,
        seed=seed,
        pad=pad,
        shuffle=shuffle,
    )


def bucketed(
    sequences: Sequences,
    *,
    columns: int = 8192,
    seed: int = 0,
    pad: int = 0,
    shuffle: bool = True,
) -> Batches:
    """Put sequences of like length together, one a row, at most `columns` tokens a batch."""
    steps = sequences.steps
    _check_positive(columns=columns)
    if int(steps.max()) > columns:
        raise InputError(
            "columns",
            f"are {columns}, but a sequence has {int(steps.max()):,} tokens",
            expected="every sequence fits in a batch",
            hint="raise it, or first call `cut` or `without_longer` on the sequences",
        )
    # Among equals the order is random, so that a batch is not a stretch of the corpus.
    mixed = shuffled(len(sequences), seed, 0)
    order = mixed[np.argsort(-steps[mixed], kind="stable")]
    longest = steps[order]
    starts = [0]
    while starts[-1] < len(order):
        starts.append(min(starts[-1] + columns // int(longest[starts[-1]]), len(order)))
    return Batches(
        sequences=sequences,
        rows=one_in_each_row(order),
        unit_starts=np.array(starts, dtype=np.int64),
        units_a_batch=1,
        width=None,
        seed=seed,
        pad=pad,
        shuffle=shuffle,
    )


def _check_positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ConfigError(name, f"is {size}", expected="at least 1 was expected")
