"""What is read before the first pair: jumbled sentences, and the marks that open each language."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.corpus import Documents
from heedful.errors import InputError
from heedful.studies.text_training import BEGIN, BETWEEN, END, MARKS
from heedful.studies.translation.corpus import (
    MOVED,
    joined,
    jumbled,
    parted,
    restoring_sequences,
    sentences_of,
    text_sequences,
)
from heedful.studies.translation.translator import TranslationFormat
from heedful.tokenization import learn_tokenizer

TEXT = Documents(name="x", texts=tuple(f"He has {n} hens. Does he? He does!" for n in range(20)))
TOKENIZER = learn_tokenizer("bpe", TEXT.texts, size=300, marks=MARKS)


@given(words=st.lists(st.text("abc", min_size=1), min_size=1, max_size=20), seed=st.integers(0, 99))
def test_a_jumbled_sentence_has_no_word_of_its_own(words: list[str], seed: int) -> None:
    made = jumbled(" ".join(words), np.random.default_rng(seed)).split(" ")
    assert made
    assert not Counter(made) - Counter(words)


@given(count=st.integers(2, 30), seed=st.integers(0, 99))
def test_words_do_not_move_far(count: int, seed: int) -> None:
    made = jumbled(" ".join(map(str, range(count))), np.random.default_rng(seed)).split(" ")
    for place, word in enumerate(made):
        # Those before it in the sentence and MOVED or more away stay before it.
        assert all(int(other) > int(word) - MOVED for other in made[place + 1 :])


def test_each_language_stands_under_its_mark_and_a_sentence_is_restored() -> None:
    marks = TranslationFormat().marks(TOKENIZER)
    begin, between, end = (TOKENIZER.id_of(mark) for mark in (BEGIN, BETWEEN, END))
    assert begin is not None
    assert end is not None
    plain = text_sequences(TEXT, TOKENIZER, opening=begin, end=end, longest=200)
    assert plain.tokens[0] == begin
    assert (plain.prompts == 0).all()

    made = restoring_sequences(TEXT, TOKENIZER, marks, longest=200, seed=0)
    assert len(made) == 60
    first = made.tokens[made.starts[0] : made.starts[1]].tolist()
    assert first[0] == begin
    assert first[-1] == end
    assert first[made.prompts[0] - 1] == between
    assert TOKENIZER.decode(first[made.prompts[0] : -1]) == sentences_of(TEXT.texts[0])[0]
    again = restoring_sequences(TEXT, TOKENIZER, marks, longest=200, seed=0)
    assert (again.tokens == made.tokens).all()

    learned, kept = parted(made, "x")
    assert len(learned) + len(kept) == len(made)
    both = joined([kept, learned])
    assert (both.tokens == made.tokens).all()
    assert (both.starts == made.starts).all()


def test_too_little_text_is_refused() -> None:
    with pytest.raises(InputError, match="at least ten"):
        parted(text_sequences(TEXT.take(range(5)), TOKENIZER, opening=0, end=2, longest=99), "x")
