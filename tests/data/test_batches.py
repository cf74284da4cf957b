"""Batches: every prediction exactly once an epoch, inside its document, from any index."""

from __future__ import annotations

import time
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.batches import (
    IGNORE,
    NO_DOCUMENT,
    Batch,
    Batches,
    Sequences,
    bucketed,
    document_sequences,
    pack,
    packed,
    pair_sequences,
    shuffled,
)
from heedful.data.corpus import Documents, Pairs
from heedful.errors import ConfigError, InputError

WIDTH = 12
sequence = st.lists(st.integers(1, 99), min_size=2, max_size=WIDTH + 1)


@st.composite
def sequences_with_prompts(draw: st.DrawFn) -> tuple[list[list[int]], list[int]]:
    made = draw(st.lists(sequence, min_size=1, max_size=25))
    return made, [draw(st.integers(0, len(each))) for each in made]


def predictions(tokens: list[int], prompt: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return what a document reads and what it learns, worked out one token at a time."""
    learned = [tokens[i + 1] if i + 1 >= prompt else IGNORE for i in range(len(tokens) - 1)]
    return tuple(tokens[:-1]), tuple(learned)


def documents_of(batch: Batch) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Take a batch apart again, and check positions and padding on the way."""
    found = []
    for row in range(len(batch.tokens)):
        numbers = batch.documents[row]
        padding = numbers == NO_DOCUMENT
        assert (batch.targets[row][padding] == IGNORE).all()
        assert not padding[: len(padding) - padding.sum()].any(), "padding is at the end"
        for number in range(numbers.max() + 1):
            (columns,) = np.nonzero(numbers == number)
            assert (np.diff(columns) == 1).all(), "a document is in one piece"
            assert batch.positions[row][columns].tolist() == list(range(len(columns)))
            found.append(
                (
                    tuple(batch.tokens[row][columns].tolist()),
                    tuple(batch.targets[row][columns].tolist()),
                )
            )
    return found


def both(sequences: Sequences, seed: int = 0) -> list[Batches]:
    return [
        packed(sequences, width=WIDTH, rows=3, seed=seed),
        bucketed(sequences, columns=3 * WIDTH, seed=seed),
    ]


@settings(deadline=None, max_examples=60)
@given(given_=sequences_with_prompts(), seed=st.integers(0, 2**40), epoch=st.integers(0, 3))
def test_an_epoch_holds_every_prediction_exactly_once(
    given_: tuple[list[list[int]], list[int]], seed: int, epoch: int
) -> None:
    sequences = Sequences.of(*given_)
    expected = sorted(map(predictions, *given_))
    for batches in both(sequences, seed):
        indices = range(epoch * len(batches), (epoch + 1) * len(batches))
        made = [batches.batch(index) for index in indices]
        assert sorted(found for batch in made for found in documents_of(batch)) == expected
        assert sum(batch.real for batch in made) == batches.tokens
        columns = sum(batch.tokens.size for batch in made)
        assert batches.padding == pytest.approx(1 - batches.tokens / columns)
        assert sum(batch.learned for batch in made) == sum(
            target != IGNORE for _, learned in expected for target in learned
        )


def some_sequences(count: int = 300, seed: int = 0) -> Sequences:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, WIDTH + 1, count)
    return Sequences.of([rng.integers(1, 99, length).tolist() for length in lengths])


def equal(first: Batch, second: Batch) -> bool:
    return all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("tokens", "targets", "documents", "positions")
    )


def test_one_number_is_the_whole_state() -> None:
    for batches, again in zip(both(some_sequences()), both(some_sequences()), strict=True):
        whole = list(batches.iterate(0, 3 * len(batches)))
        for start in (0, 1, len(batches) - 1, len(batches), 2 * len(batches) + 1):
            resumed = again.iterate(start, 3 * len(batches))
            assert all(equal(*two) for two in zip(whole[start:], resumed, strict=True))
        assert len(list(islice(batches.iterate(5), 4))) == 4


def test_order_is_a_function_of_seed_and_epoch() -> None:
    for number in range(2):
        one, other = both(some_sequences(), 1)[number], both(some_sequences(), 2)[number]
        assert not equal(one.batch(0), one.batch(len(one)))
        assert not equal(one.batch(0), other.batch(0))
    fixed = packed(some_sequences(), width=WIDTH, rows=3, shuffle=False)
    assert equal(fixed.batch(0), fixed.batch(len(fixed)))


def test_ranks_share_a_batch() -> None:
    batch = both(some_sequences())[0].batch(0)
    parts = [batch.share(rank, 2) for rank in range(2)]
    assert sum(len(part.tokens) for part in parts) == len(batch.tokens)
    assert sorted(documents_of(parts[0]) + documents_of(parts[1])) == sorted(documents_of(batch))
    with pytest.raises(ConfigError, match="is 2 of 2"):
        batch.share(2, 2)


@settings(deadline=None)
@given(lengths=st.lists(st.integers(1, 20), min_size=1, max_size=60), seed=st.integers(0, 99))
def test_rows_hold_everything_once_and_are_never_too_full(lengths: list[int], seed: int) -> None:
    rows = pack(np.array(lengths), 20, seed)
    assert sorted(rows.members.tolist()) == list(range(len(lengths)))
    totals = []
    for first, last in zip(rows.starts[:-1], rows.starts[1:], strict=True):
        members = rows.members[first:last]
        before = 0
        for member, column in zip(members.tolist(), rows.columns[first:last].tolist(), strict=True):
            assert column == before
            before += lengths[member]
        totals.append(before)
    assert max(totals) <= 20
    # Best fit opens a row only when no open one has room: at most one row is half empty.
    assert sum(total <= 10 for total in totals) <= 1


def test_padding_stays_below_one_in_twenty() -> None:
    # Lengths like those of short sentence pairs: 4 to 60, mostly around 19.
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.gamma(6.0, 3.3, 20_000).astype(int), 3, 60) + 1
    sequences = Sequences.of([[1] * length for length in lengths.tolist()])
    assert packed(sequences, width=256).padding < 0.05
    assert bucketed(sequences).padding < 0.05


def test_packing_is_fast() -> None:
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.gamma(6.0, 3.3, 160_000).astype(int), 3, 60)
    start = time.process_time()
    pack(lengths, 256, 0)
    assert time.process_time() - start < 2.0


@settings(deadline=None)
@given(given_=sequences_with_prompts(), steps=st.integers(1, 6))
def test_pieces_predict_what_the_whole_does(
    given_: tuple[list[list[int]], list[int]], steps: int
) -> None:
    sequences = Sequences.of(*given_)
    pieces = sequences.cut(steps)
    assert pieces.steps.max() <= steps
    found: list[tuple[int, int]] = []
    for number in range(len(pieces)):
        tokens = pieces.tokens[pieces.starts[number] : pieces.starts[number + 1]].tolist()
        found += zip(*predictions(tokens, int(pieces.prompts[number])), strict=True)
    whole = [both_ for each in map(predictions, *given_) for both_ in zip(*each, strict=True)]
    assert found == whole
    kept = sequences.without_longer(steps)
    assert len(kept) == sum(len(tokens) - 1 <= steps for tokens in given_[0])


def letters(texts: list[str] | tuple[str, ...]) -> list[list[int]]:
    return [[ord(letter) for letter in text] for text in texts]


def test_pairs_learn_their_targets_and_documents_everything() -> None:
    pairs = Pairs(name="x", sources=("ab", ""), targets=("c", "de"))
    made = pair_sequences(pairs, letters, begin=3, between=1, end=2)
    assert made.tokens.tolist() == [3, 97, 98, 1, 99, 2, 3, 1, 100, 101, 2]
    batch = packed(made, width=9, rows=1).batch(0)
    learned = [target for target in batch.targets[0].tolist() if target != IGNORE]
    assert sorted(learned) == sorted([99, 2, 100, 101, 2])
    documents = Documents(name="x", texts=("ab", ""))
    assert document_sequences(documents, letters, begin=1, end=2).tokens.tolist() == [
        1, 97, 98, 2, 1, 2,
    ]  # fmt: skip
    with pytest.raises(InputError, match="number 2 has 1 tokens"):
        document_sequences(documents, letters, begin=1)


def test_a_text_cannot_write_a_mark() -> None:
    pairs = Pairs(name="x", sources=("ab", "a\x02"), targets=("c", "d"))
    with pytest.raises(InputError, match="x: text 2 holds the mark with the id 2"):
        pair_sequences(pairs, letters, between=1, end=2)


def test_bad_sizes_are_refused() -> None:
    sequences = some_sequences()
    with pytest.raises(InputError, match=r"width: is 5, but \d+ of 300 sequences are longer"):
        packed(sequences, width=5)
    with pytest.raises(InputError, match="columns: are 5"):
        bucketed(sequences, columns=5)
    with pytest.raises(ConfigError, match="rows: is 0"):
        packed(sequences, width=WIDTH, rows=0)
    with pytest.raises(InputError, match="index: is -1"):
        packed(sequences, width=WIDTH).batch(-1)
    with pytest.raises(InputError, match="steps: are 0"):
        sequences.cut(0)
    with pytest.raises(InputError, match="sequences: are none"):
        Sequences.of([])
    with pytest.raises(InputError, match="ids below 0"):
        Sequences.of([[1, -1]])
    with pytest.raises(InputError, match="do not fit"):
        Sequences.of([[1, 2]], prompts=[3])
    with pytest.raises(InputError, match="seed: is -1"):
        shuffled(3, -1, 0)
    with pytest.raises(InputError, match="width: is 0"):
        pack(np.array([1]), 0, 0)
    with pytest.raises(InputError, match="positive lengths"):
        pack(np.array([0]), 5, 0)
