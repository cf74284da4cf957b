"""Phrases that translate one another: parts of their pair, with no word left over."""

from __future__ import annotations

import numpy as np
import pytest

from heedful.data import phrases
from heedful.data.phrases import MOST_WORDS, WORD, Phrases, WordTranslations, as_text

THINGS = [
    ("pomme", "apple"),
    ("robe", "dress"),
    ("porte", "door"),
    ("lampe", "lamp"),
    ("table", "table"),
    ("chaise", "chair"),
]
COLOURS = [("verte", "green"), ("rouge", "red"), ("noire", "black"), ("blanche", "white")]
TEXTS = [
    (f"Elle {verb} une {thing} {colour}.", f"She {does} the {blue} {what}.")
    for verb, does in (("voit", "sees"), ("veut", "wants"), ("peint", "paints"))
    for thing, what in THINGS
    for colour, blue in COLOURS
]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Phrases:
    """Of so few pairs every word is in a large share."""
    monkeypatch.setattr(phrases, "GRAMMAR", 0.5)
    return Phrases.of(TEXTS, WordTranslations.of(TEXTS))


def test_a_phrase_may_change_its_order_and_leaves_no_word_over(found: Phrases) -> None:
    of_first = found.of_pair(TEXTS[0])
    assert ("pomme", "apple") in of_first
    assert ("verte", "green") in of_first
    assert ("pomme verte", "green apple") in of_first
    assert ("une pomme", "the green apple") not in of_first  # "green" belongs to another word
    for source, target in of_first:
        assert source in TEXTS[0][0]
        assert target in TEXTS[0][1]
        assert len(WORD.findall(source)) == len(WORD.findall(target)) <= MOST_WORDS


def test_a_word_without_a_link_keeps_its_pair_whole(found: Phrases) -> None:
    texts = [*TEXTS, ("Elle veut une pomme de terre.", "She wants the potato.")] * 3
    known = Phrases.of(texts, WordTranslations.of(texts))
    assert known.of_pair(texts[0])
    assert known.of_pair(texts[-1]) == []  # "terre" is linked with nothing


@pytest.mark.parametrize(
    "two",
    [
        ("Elle voit une pomme, verte.", "She sees the green, apple."),
        ("Elle voit une pomme-verte.", "She sees the green-apple."),
    ],
)
def test_what_marks_divide_is_no_phrase(found: Phrases, two: tuple[str, str]) -> None:
    assert not [one for one in found.of_pair(two) if "pomme" in one[0] and "verte" in one[0]]


def test_texts_of_phrases_end_like_sentences() -> None:
    assert as_text(("une pomme", "an apple"), capital=False) == ("une pomme.", "an apple.")
    assert as_text(("une pomme", "an apple"), capital=True) == ("Une pomme.", "An apple.")


def test_shares_of_a_few_words_are_those_of_the_table() -> None:
    lexicon = WordTranslations.of(TEXTS).there
    table = lexicon.table(40).toarray()
    draws = np.random.default_rng(0)
    for _ in range(50):
        rows, columns = draws.integers(0, 14, 5).tolist(), draws.integers(0, 14, 4).tolist()
        np.testing.assert_array_equal(lexicon.between(rows, columns), table[rows][:, columns])
