"""Batches with hardly any padding, whose whole state is one number.

Two ways to lay out sequences: `packed` puts several in each row of one width, `bucketed` puts
sequences of like length together, one a row. What stands in which row is decided once, by the
seed; the order in which rows come is a function of (seed, epoch). Batch number i of a run is
therefore a function of i alone:

    epoch, place = divmod(i, batches in an epoch)

and a run that stopped after batch i goes on with batch i + 1, without replaying anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

import numpy as np
from jaxtyping import Int

from heedful.data.packing import Rows, one_in_each_row, pack, shuffled
from heedful.data.sequences import Sequences, ranges
from heedful.errors import ConfigError, InputError

IGNORE = -100
"""The target of a token whose successor is not learned, as torch's losses have it."""
NO_DOCUMENT = -1
"""The document number of padding."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Batch:
    """Rows of tokens and what each of them should predict; padding is at the end of a row."""

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
    rows: Rows
    """Which sequences stand in which row."""
    unit_starts: Int[np.ndarray, " units_and_one"]
    """Rows that always stay together are a unit: this is where each one starts."""
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

    >>> made = packed(Sequences.of([[1, 2, 3], [4, 5, 6], [7, 8]]), width=5, rows=1)
    >>> len(made), made.tokens, made.padding
    (1, 5, 0.0)
    """
    _check(rows=rows)
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
    _check(columns=columns)
    if int(steps.max()) > columns:
        raise InputError(
            "columns",
            f"are {columns}, but a sequence has {int(steps.max()):,} tokens",
            expected="every sequence fits in a batch",
            way_out="raise it, or first call `cut` or `without_longer` on the sequences",
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


def _check(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ConfigError(name, f"is {size}", expected="at least 1 was expected")
