"""Tokenizers from weight files, against their own rules done by hand."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import InputError
from heedful.tokenization import from_gguf, from_llama2c

WORDS = [" t", "he", " a", " the", "in", " th", "ing", " s", " thing", "at", " sat"]
LETTERS = [*"etainhsgr", " ", "é"]


def pieces() -> list[tuple[str, float]]:
    marks = [("<unk>", 0.0), ("\n<s>\n", 0.0), ("\n</s>\n", 0.0)]
    marks += [(f"<0x{byte:02X}>", 0.0) for byte in range(256)]
    return marks + [(word, -float(rank)) for rank, word in enumerate([*WORDS, *LETTERS])]


def llama2c_file(tokens: list[tuple[str, float]]) -> bytes:
    content = struct.pack("<i", 8)
    for token, score in tokens:
        content += struct.pack("<fi", score, len(token.encode())) + token.encode()
    return content


def merged_by_hand(text: str) -> list[int]:
    """Merge the neighbours whose joint piece scores best, until none has one."""
    scores = dict(pieces())
    numbers = {token: number for number, (token, _) in enumerate(pieces())}
    parts: list[str] = []
    for letter in " " + text:
        known = letter in numbers
        parts += [letter] if known else [f"<0x{byte:02X}>" for byte in letter.encode()]
    while True:
        candidates = [
            (-scores[a + b], place)
            for place, (a, b) in enumerate(pairwise(parts))
            if a + b in scores and not a.startswith("<0x")
        ]
        if not candidates:
            return [numbers[part] for part in parts]
        _, place = min(candidates)
        parts[place : place + 2] = [parts[place] + parts[place + 1]]


@settings(max_examples=200)
@given(text=st.text(alphabet=[*"etainhsgr é日\n"], min_size=1, max_size=14))
def test_scores_decide_as_in_llama2c(text: str) -> None:
    tokenizer = from_llama2c(llama2c_file(pieces()), len(pieces()))
    assert tokenizer.encode(text) == merged_by_hand(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_marks_of_llama2c() -> None:
    tokenizer = from_llama2c(llama2c_file(pieces()), len(pieces()))
    assert (tokenizer.begin, tokenizer.end) == (1, 2)
    assert tokenizer.decode([1, *tokenizer.encode("the thing"), 2]) == "the thing"


def test_a_sentencepiece_tokenizer_in_gguf_is_the_same() -> None:
    marks = [token.strip() for token, _ in pieces()[:3]]
    tokens = [*marks, *(token.replace(" ", "▁") for token, _ in pieces()[3:])]
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [score for _, score in pieces()],
        "tokenizer.ggml.token_type": [2, 3, 3, *[6] * 256, *[1] * (len(tokens) - 259)],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }
    tokenizer = from_gguf(metadata)
    ours = from_llama2c(llama2c_file(pieces()), len(pieces()))
    for text in ("the thing sat", "in a hat é日", "<s>the</s>"):
        if not text.startswith("<s>"):
            assert tokenizer.encode(text) == ours.encode(text)
    assert tokenizer.encode("</s>") == [2]
    assert (tokenizer.begin, tokenizer.end) == (1, 2)


def byte_level(**changes: Any) -> dict[str, Any]:
    from heedful.tokenization import bytes_of_utf8

    vocabulary = bytes_of_utf8().core.get_vocab()
    tokens = [*sorted(vocabulary, key=vocabulary.__getitem__), "th", "the", "Ġthe"]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": ["t h", "th e", "Ġ the"],
        **{f"tokenizer.ggml.{name}": value for name, value in changes.items()},
    }


@pytest.mark.parametrize("rule", ["gpt-2", "smollm", "qwen2", "llama-bpe", "default"])
def test_byte_level_merges(rule: str) -> None:
    tokenizer = from_gguf(byte_level(pre=rule))
    assert tokenizer.encode("the the") == [257, 258]
    text = "It's 1234 o'clock,\n\n  isn't it? \tÉté 日本"
    assert tokenizer.decode(tokenizer.encode(text)) == text


def split(rule: str, text: str) -> list[str]:
    pieces = from_gguf(byte_level(pre=rule)).core.pre_tokenizer.pre_tokenize_str(text)
    return [text[start:end] for _, (start, end) in pieces]


def test_rules_split_digits_each_in_its_way() -> None:
    assert split("gpt-2", "a 1234") == ["a", " 1234"]
    assert split("smollm", "a 1234") == ["a", " ", "1", "2", "3", "4"]
    assert split("qwen2", "a 1234") == ["a", " ", "1", "2", "3", "4"]
    assert split("llama-bpe", "a 1234") == ["a", " ", "123", "4"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model": "wordpiece"}, "is of the kind 'wordpiece'; gpt2 or llama is read"),
        ({"model": None}, "is of the kind None"),
        ({"pre": "secret"}, "splits text by the rule 'secret'"),
        ({"tokens": 5}, "has no list of tokens"),
        ({"tokens": ["a", "a"], "merges": []}, "2 tokens (1 different)"),
        ({"token_type": [1]}, "1 kinds; one kind for each token"),
        ({"merges": ["t q̃"]}, "merges pieces that are not in the vocabulary"),
        ({"merges": ["th"]}, "merges pieces that are not in the vocabulary"),
        ({"merges": ["a b"]}, "is inconsistent"),
        ({"merges": None}, "has no list of merges"),
        ({"model": "llama", "scores": [1.0]}, "259 tokens, 1 scores"),
    ],
)
def test_what_makes_no_tokenizer_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as error:
        from_gguf(byte_level(**changes), "file.gguf")
    assert problem in str(error.value)


@given(data=st.binary(max_size=60), size=st.integers(1, 5))
def test_bytes_that_are_no_tokenizer_are_refused(data: bytes, size: int) -> None:
    with pytest.raises(InputError):
        from_llama2c(data, size + 100)
