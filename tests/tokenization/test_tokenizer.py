"""Tokenizers: what is encoded decodes to itself; what is unknown is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import InputError
from heedful.tokenization import Tokenizer, bytes_of_utf8, characters, train_bpe

TEXT = "the cat sat on the mat; the dog ate the cat's hat\n"
texts = st.text(st.characters(codec="utf-8"), max_size=40)


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    return train_bpe([TEXT] * 5, 300, marks=["<end>", "<pad>"])


@given(text=texts)
def test_bytes_are_the_bytes_of_utf8(text: str) -> None:
    tokenizer = bytes_of_utf8()
    assert tokenizer.encode(text) == list(text.encode())
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.size == 256


@settings(max_examples=50)
@given(text=texts)
def test_byte_pairs_lose_nothing(bpe: Tokenizer, text: str) -> None:
    if "<end>" not in text and "<pad>" not in text:
        assert bpe.decode(bpe.encode(text)) == text


def test_byte_pairs_shorten_what_they_have_seen(bpe: Tokenizer) -> None:
    assert bpe.size <= 300
    assert len(bpe.encode(TEXT)) < len(TEXT) / 2
    assert bpe.encode("<end>") == [0]
    assert bpe.id_of("<pad>") == 1
    assert bpe.token(1) == "<pad>"
    assert bpe.decode([0]) == ""
    assert bpe.decode([0], special=True) == "<end>"


@given(text=st.text(alphabet=sorted(set(TEXT))))
def test_characters_are_one_id_each(text: str) -> None:
    tokenizer = characters(TEXT)
    assert len(tokenizer.encode(text)) == len(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_marks_come_before_the_characters() -> None:
    tokenizer = characters("cab", marks=["□", "⁇"])
    assert tokenizer.encode("□a⁇c") == [0, 2, 1, 4]
    assert tokenizer.size == 5


def test_an_unknown_character_is_refused_unless_there_is_a_mark_for_it() -> None:
    with pytest.raises(InputError, match="holds 'z', which this tokenizer does not know"):
        characters("abc").encode("az")
    with pytest.raises(InputError, match="holds 'z'"):
        characters("abc").encode_batch(["a", "z"])
    assert characters("abc", marks=["[UNK]"]).encode("az") == [1, 0]


def test_many_texts_are_as_one_after_another(bpe: Tokenizer) -> None:
    lines = TEXT.split(" ")
    assert bpe.encode_batch(lines) == [bpe.encode(line) for line in lines]


def test_a_tokenizer_survives_its_file(bpe: Tokenizer, tmp_path: Path) -> None:
    bpe.save(tmp_path / "tokenizer.json")
    back = Tokenizer.read(tmp_path / "tokenizer.json", end=0)
    assert back.encode(TEXT) == bpe.encode(TEXT)
    assert (back.begin, back.end) == (None, 0)


def test_an_opening_mark_survives_its_file(bpe: Tokenizer, tmp_path: Path) -> None:
    opened = Tokenizer(bpe.core, begin=1)
    opened.save(tmp_path / "tokenizer.json")
    back = Tokenizer.read(tmp_path / "tokenizer.json")
    assert back.begin == 1
    assert back.encode("the") == bpe.encode("the")
    assert back.core.encode("the").ids == [1, *bpe.encode("the")]
    assert bpe.core.encode("the").ids == bpe.encode("the")


def test_bad_input_is_refused(bpe: Tokenizer, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds the id 999; ids 0 to"):
        bpe.decode([999])
    with pytest.raises(InputError, match="there is no such file"):
        Tokenizer.read(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text('{"model": 3}')
    with pytest.raises(InputError, match="is no tokenizer"):
        Tokenizer.read(tmp_path / "bad.json")
    with pytest.raises(InputError, match="at least 256"):
        train_bpe(["x"], 10)
    with pytest.raises(InputError, match="is empty"):
        characters("")
    with pytest.raises(InputError, match="names a character of the text"):
        characters("abc", marks=["a"])
