"""The phrasebook as a corpus: any number of training pairs, and four sets that are held out.

Everything is a function of (size, seed), the same on every machine. The held-out sets depend on
the seed alone, so results at several sizes are measured on the same sentences, and a smaller
training set is the beginning of a larger one.

- `dev`, `test`: drawn like training;
- `test_length`: more French words than any training sentence has;
- `test_unseen`: at least one pair noun+adjective or verb+object that training never shows
  together, while it shows every single word, French and English.

No sentence of a held-out set, and none of its other translations, occurs in training.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from heedful.data.draws import Draws, stable_number, whole_number
from heedful.data.phrasebook.orthography import words
from heedful.data.phrasebook.templates import LONGEST_IN_TRAINING, Pair, drawn_pair
from heedful.errors import InputError
from heedful.records import Record

MOST_PAIRS = 500_000
"""The largest training set on offer."""
HELD_OUT = 500
"""Pairs in each held-out set, unless another number is asked for."""
_ONE_COMBINATION_IN = 16


@dataclass(frozen=True, eq=False, kw_only=True)
class Phrasebook(Record):
    """A French–English corpus, split."""

    seed: int
    """The seed it was drawn with."""
    train: tuple[Pair, ...]
    """Training pairs, no French sentence twice; every prefix is a smaller corpus."""
    dev: tuple[Pair, ...]
    """For choosing: drawn like training."""
    test: tuple[Pair, ...]
    """For reporting: drawn like training."""
    test_length: tuple[Pair, ...]
    """Sentences longer than any in training."""
    test_unseen: tuple[Pair, ...]
    """Known words in combinations that training does not show."""

    @property
    def splits(self) -> dict[str, tuple[Pair, ...]]:
        """The five sets by name."""
        names = ("train", "dev", "test", "test_length", "test_unseen")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False, kw_only=True)
class _HeldOut:
    """The sets that depend on the seed alone, and every sentence in them."""

    dev: tuple[Pair, ...]
    test: tuple[Pair, ...]
    test_length: tuple[Pair, ...]
    unseen: tuple[Pair, ...]
    sentences: frozenset[str]


def phrasebook(size: int, *, seed: int = 0, held_out: int = HELD_OUT) -> Phrasebook:
    """Return `size` training pairs and the held-out sets.

    >>> book = phrasebook(300, held_out=20)
    >>> len(book.train), len(book.test), book.test[0].length_class != "beyond"
    (300, 20, True)
    """
    whole_number("phrasebook.size", size, 1, MOST_PAIRS)
    whole_number("phrasebook.seed", seed, 0, 2**63 - 1)
    whole_number("phrasebook.held_out", held_out, 1, 5_000)
    kept = _held_out(seed, held_out)
    train = tuple(_training(size, seed, kept.sentences))
    shown = _vocabulary(train)
    unseen = [pair for pair in kept.unseen if shown.issuperset(_words_of(pair))]
    return Phrasebook(
        seed=seed,
        train=train,
        dev=kept.dev,
        test=kept.test,
        test_length=kept.test_length,
        test_unseen=tuple(unseen[:held_out]),
    )


def held_out_sentences(seed: int = 0, held_out: int = HELD_OUT) -> frozenset[str]:
    """Return every sentence, French and English, that training must not show."""
    return _held_out(seed, held_out).sentences


@lru_cache(maxsize=65_536)
def is_held_out(combination: str, seed: int) -> bool:
    """Say whether training may not show the two words of a combination together."""
    return stable_number(f"{seed} {combination}") % _ONE_COMBINATION_IN == 0


def is_unseen(pair: Pair, seed: int) -> bool:
    """Say whether a pair holds a combination kept from training."""
    return any(is_held_out(combination, seed) for combination in pair.combinations)


def _training(size: int, seed: int, forbidden: frozenset[str]) -> Iterator[Pair]:
    draws = Draws(f"phrasebook train {seed}")
    french: set[str] = set()
    fruitless = 0
    while len(french) < size:
        pair = drawn_pair(draws)
        if (
            pair.length > LONGEST_IN_TRAINING
            or pair.french in french
            or is_unseen(pair, seed)
            or pair.french in forbidden
            or not forbidden.isdisjoint(pair.references)
        ):
            fruitless += 1
            if fruitless > 50 * size + 10_000:
                raise InputError(
                    "phrasebook.size",
                    f"{size:,} distinct pairs were not found",
                    way_out="ask for less",
                )
            continue
        french.add(pair.french)
        yield pair


@lru_cache(maxsize=8)
def _held_out(seed: int, count: int) -> _HeldOut:
    """Draw pairs into the first set that has room for their kind, until all are full."""
    draws = Draws(f"phrasebook held out {seed}")
    # More candidates than wanted: a small training set does not show every word of them.
    room = {"test": count, "dev": count, "test_length": count, "unseen": 3 * count}
    sets: dict[str, dict[str, Pair]] = {name: {} for name in room}
    taken: dict[str, str] = {}
    while any(len(sets[name]) < room[name] for name in room):
        pair = drawn_pair(draws)
        name = next((one for one in _kinds(pair, seed) if len(sets[one]) < room[one]), None)
        sentences = (pair.french, *pair.references)
        # Two sets share no sentence, in either language.
        if name is None or any(taken.get(sentence, name) != name for sentence in sentences):
            continue
        sets[name][pair.french] = pair
        taken.update(dict.fromkeys(sentences, name))
    return _HeldOut(
        dev=tuple(sets["dev"].values()),
        test=tuple(sets["test"].values()),
        test_length=tuple(sets["test_length"].values()),
        unseen=tuple(sets["unseen"].values()),
        sentences=frozenset(taken),
    )


def _kinds(pair: Pair, seed: int) -> tuple[str, ...]:
    """Return the held-out sets that a pair may go to."""
    if is_unseen(pair, seed):
        return () if pair.length > LONGEST_IN_TRAINING else ("unseen",)
    return ("test_length",) if pair.length > LONGEST_IN_TRAINING else ("test", "dev")


def _words_of(pair: Pair) -> set[str]:
    return {f"fr {word}" for word in words(pair.french)} | {
        f"en {word}" for word in words(pair.english)
    }


def _vocabulary(pairs: tuple[Pair, ...]) -> set[str]:
    shown: set[str] = set()
    for pair in pairs:
        shown |= _words_of(pair)
    return shown
