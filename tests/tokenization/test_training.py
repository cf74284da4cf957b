"""Learning a tokenizer: the same texts give the same one, and its file brings it back."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import ConfigError, InputError
from heedful.tokenization import Tokenizer, learn_tokenizer

TEXTS = ["Le chat est là.", "The cat is here.", "Où est le chien\u202f?", "el niño", "42"] * 3
MARKS = ["<pad>", "<to>", "<end>"]
KINDS = ("characters", "bytes", "bpe")
Kind = Literal["characters", "bytes", "bpe"]


def learned(kind: Kind) -> Tokenizer:
    return learn_tokenizer(kind, TEXTS, size=300 if kind == "bpe" else None, marks=MARKS)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_seen_comes_back(kind: Kind) -> None:
    tokenizer = learned(kind)
    encoded = tokenizer.encode_batch(TEXTS)
    assert [tokenizer.decode(ids) for ids in encoded] == TEXTS
    marks = {tokenizer.id_of(mark) for mark in MARKS}
    assert None not in marks
    assert len(marks) == 3
    assert not marks & {number for ids in encoded for number in ids}
    assert all(number < tokenizer.size for ids in encoded for number in ids)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_texts_give_the_same_file_and_the_file_the_same_ids(
    kind: Kind, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        learned(kind).save(tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    back = Tokenizer.read(tmp_path / "first")
    assert back.encode_batch(TEXTS) == learned(kind).encode_batch(TEXTS)
    assert [back.id_of(mark) for mark in MARKS] == [learned(kind).id_of(mark) for mark in MARKS]


@pytest.mark.parametrize("kind", KINDS)
def test_transformers_opens_the_file(kind: Kind, tmp_path: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    learned(kind).save(tmp_path / "tokenizer.json")
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    for text in TEXTS[:5]:
        assert theirs.encode(text, add_special_tokens=False) == learned(kind).encode(text)


BYTE_PAIRS = learned("bpe")


@settings(deadline=None, max_examples=50)
@given(text=st.text(st.characters(codec="utf-8"), max_size=40))
def test_byte_pairs_take_text_they_have_never_seen(text: str) -> None:
    if not any(mark in text for mark in MARKS):
        assert BYTE_PAIRS.decode(BYTE_PAIRS.encode(text)) == text


def test_what_cannot_be_learned_is_refused() -> None:
    for texts in ([], ["", ""]):
        with pytest.raises(InputError, match="are empty"):
            learn_tokenizer("characters", texts)
    with pytest.raises(ConfigError, match="byte pairs need a size, and only they"):
        learn_tokenizer("bpe", TEXTS)
    with pytest.raises(ConfigError, match="byte pairs need a size, and only they"):
        learn_tokenizer("bytes", TEXTS, size=300)
    with pytest.raises(ConfigError, match="name one twice"):
        learn_tokenizer("bytes", TEXTS, marks=["<a>", "<a>"])
    with pytest.raises(InputError, match="number 2 holds the mark '<end>'"):
        learn_tokenizer("bytes", ["a", "b<end>"], marks=["<end>"])
