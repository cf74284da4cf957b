"""The phrasebook as a corpus: any number of training pairs, four held-out sets, and plain text.

Everything is a function of (size, seed), the same on every machine. The held-out sets depend on
the seed alone, so results at several sizes are measured on the same sentences, and a smaller
training set is the beginning of a larger one.

- `dev`, `test`: drawn like training;
- `test_length`: more French words than any training sentence has;
- `test_unseen`: at least one pair noun+adjective or verb+object that training never shows
  together, while it shows every single word, French and English.

No sentence of a held-out set, and none of its other translations, occurs in training.

Text in one language comes in short paragraphs from the same words. A paragraph is about one
person: named first, then taken up by a pronoun. The two languages are drawn apart, so nobody can
find a translation in them, and the text keeps to what training may show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from heedful.data.synthetic import (
    Draws,
    read_vocabulary,
    running_sum,
    stable_number,
    whole_number,
)
from heedful.data.synthetic.phrasebook import templates
from heedful.data.synthetic.phrasebook.grammar import (
    Draft,
    Subject,
    finished,
    pronoun_for,
    third_person,
)
from heedful.data.synthetic.phrasebook.words import WordLink, located, noting, word_count, words
from heedful.errors import InputError
from heedful.records import Record

# Templates, and pairs drawn from them

Template = Callable[[Draws, Subject | None], Draft]

_TABLES = read_vocabulary(__file__, "templates")


SHARES: dict[Template, float] = {
    getattr(templates, name): share for name, share in _TABLES["shares"].items()
}
"""How often each template is drawn, relative to the others."""

_TEMPLATES = tuple(SHARES)
_WEIGHTS = running_sum(tuple(SHARES.values()))

# Nobody is called tu and vous in one sentence.
_FAMILIAR = re.compile(r"\b(?:tu|te|ton|ta|tes)\b|\bt'", re.IGNORECASE)
_POLITE = re.compile(r"\b(?:vous|votre|vos)\b", re.IGNORECASE)

LENGTH_CLASSES = ((5, "short"), (8, "medium"), (11, "long"))
LONGEST_IN_TRAINING = 11
"""French words in the longest training sentence; `test_length` begins above it."""


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Pair(Record):
    """A French sentence and its English translation."""

    french: str
    """The sentence to translate."""
    english: str
    """The reference translation: one for each French sentence."""
    others: tuple[str, ...]
    """Other good translations, for scoring with several references."""
    template: str
    """Which template wrote it."""
    length: int
    """Words in the French sentence; l'homme counts as two."""
    length_class: str
    """`short`, `medium`, `long`, or `beyond` what training shows."""
    combinations: tuple[str, ...]
    """The pairs noun+adjective and verb+object in it, by lemma."""

    @property
    def references(self) -> tuple[str, ...]:
        """All good translations, the reference first."""
        return (self.english, *self.others)


def length_class(words: int) -> str:
    """Return the class of a sentence by its number of French words."""
    return next((name for limit, name in LENGTH_CLASSES if words <= limit), "beyond")


def drawn_pair(draws: Draws) -> Pair:
    """Draw a template, and a pair from it."""
    template = draws.weighted(_TEMPLATES, _WEIGHTS)
    while True:
        pair = pair_of(template(draws, None), template.__name__)
        if not mixes_address(pair.french):
            return pair


def mixes_address(french: str) -> bool:
    """Say whether a sentence calls somebody both tu and vous.

    >>> mixes_address("Vous parlez à ton frère.")
    True
    """
    return bool(_FAMILIAR.search(french) and _POLITE.search(french))


def pair_of(draft: Draft, template: str) -> Pair:
    """Finish a draft."""
    french, english, others = finished(draft)
    words = word_count(french)
    return Pair(
        french=french,
        english=english,
        others=others,
        template=template,
        length=words,
        length_class=length_class(words),
        combinations=tuple(dict.fromkeys(draft.combinations)),
    )


# The corpus and its held-out sets

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
                    hint="ask for less",
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


class LinkedPair(NamedTuple):
    """A held-out pair, and which of its words say the same."""

    pair: Pair
    links: tuple[WordLink, ...]


def linked_pairs(count: int, seed: int = 0) -> tuple[LinkedPair, ...]:
    """Return test pairs of the phrasebook with the links that the grammar knows.

    >>> pair, links = linked_pairs(1)[0]
    >>> any(link.sure for link in links)
    True
    """
    whole_number("phrasebook.count", count, 1, HELD_OUT)
    wanted = {pair.french for pair in _held_out(seed, HELD_OUT).test}
    draws = Draws(f"phrasebook held out {seed}")  # the draws that made these sets, once more
    found: dict[str, LinkedPair] = {}
    while len(found) < count:
        with noting() as noted:
            pair = drawn_pair(draws)
        if pair.french in wanted:
            found[pair.french] = LinkedPair(pair, located(noted, pair.french, pair.english))
    return tuple(found.values())


# Text in one language

MOST_SENTENCES = 2_000_000
"""The longest text on offer."""

_ABOUT_SOMEBODY: tuple[Template, ...] = tuple(
    getattr(templates, name) for name in _TABLES["paragraphs"]["about_somebody"]
)


def monolingual(
    language: str, sentences: int, seed: int = 0, *, held_out: int = HELD_OUT
) -> tuple[str, ...]:
    """Return paragraphs of French (`fr`) or English (`en`), with that many sentences in all.

    `seed` and `held_out` are those of the phrasebook whose held-out sets the text avoids.

    >>> text = monolingual("fr", 12, held_out=20)
    >>> 2 <= len(text) <= 6
    True
    """
    if language not in ("fr", "en"):
        raise InputError(
            "monolingual.language", f"is {language!r}", expected="fr or en was expected"
        )
    whole_number("monolingual.sentences", sentences, 1, MOST_SENTENCES)
    forbidden = held_out_sentences(seed, held_out)
    draws = Draws(f"phrasebook {language} {seed}")
    paragraphs: list[str] = []
    left = sentences
    while left:
        length = min(3 + draws.below(3), left)
        paragraphs.append(" ".join(_paragraph(draws, language, length, seed, forbidden)))
        left -= length
    return tuple(paragraphs)


def _paragraph(
    draws: Draws, language: str, length: int, seed: int, forbidden: frozenset[str]
) -> list[str]:
    who: Subject = third_person(draws)
    sentences: list[str] = []
    while len(sentences) < length:
        pair = _next(draws, pronoun_for(who) if sentences else who)
        text = pair.french if language == "fr" else pair.english
        allowed = (
            pair.length <= LONGEST_IN_TRAINING
            and not is_unseen(pair, seed)
            and not mixes_address(pair.french)
        )
        if allowed and text not in forbidden and text not in sentences:
            sentences.append(text)
    return sentences


def _next(draws: Draws, who: Subject) -> Pair:
    if draws.chance(0.2):
        return drawn_pair(draws)
    template = draws.of(_ABOUT_SOMEBODY)
    return pair_of(template(draws, who), template.__name__)
