"""What is said about a corpus is true of it, and nothing in it changes."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.corpus import Documents, Pairs
from heedful.data.inspection import (
    counted,
    inspect_corpora,
    inspect_corpus,
    lengths,
    odd_characters,
)
from heedful.data.languages import guess_language

texts = st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=1, max_size=20)


@settings(deadline=None)
@given(texts=texts)
def test_characters_are_counted(texts: list[str]) -> None:
    assert counted(texts) == Counter("".join(texts))


@settings(deadline=None)
@given(texts=texts)
def test_counts_are_those_of_a_slow_look(texts: list[str]) -> None:
    facts = inspect_corpus(Documents(name="x", texts=tuple(texts)))
    (side,) = facts.sides
    assert facts.count == len(texts)
    assert facts.duplicates == len(texts) - len(set(texts))
    assert side.empty == facts.empty == sum(not text.strip() for text in texts)
    assert side.not_nfc == sum(text != unicodedata.normalize("NFC", text) for text in texts)
    assert side.characters.longest == max(map(len, texts))
    assert side.words.mean == pytest.approx(np.mean([len(text.split()) for text in texts]))
    assert side.untrimmed == sum(text != text.strip() for text in texts)
    json.loads(facts.to_json())


@settings(deadline=None)
@given(values=st.lists(st.integers(0, 10_000), min_size=1, max_size=200))
def test_a_histogram_holds_every_text(values: list[int]) -> None:
    found = lengths(np.array(values))
    assert sum(found.counts) == len(values)
    assert len(found.edges) == len(found.counts) + 1 <= 62
    assert found.median <= found.p90 <= found.p99 <= found.longest == max(values)


def test_pairs_are_looked_at_from_both_sides() -> None:
    pairs = Pairs(
        name="x",
        sources=("un", "un", "un", "", "ok", "deux"),
        targets=("one", "a", "one", "x", "ok", "a"),
        languages=("fr", "en"),
    )
    facts = inspect_corpus(pairs, examples=3)
    assert (facts.duplicates, facts.empty, facts.untranslated) == (1, 1, 1)
    assert (facts.groups, facts.largest_group) == (3, 4)
    assert (facts.several_targets, facts.several_sources) == (1, 1)
    assert [example.number for example in facts.examples] == [2, 4, 6]
    assert facts.examples[0].texts == ("un", "a")
    assert [side.language for side in facts.sides] == ["fr", "en"]


def test_odd_characters_are_named() -> None:
    found = odd_characters(
        counted(["abc é\u202f!\u202f", "я", "\u202e", "e\u0301", "\ufffd", "\t"])
    )
    assert [(odd.code, odd.kind, odd.count) for odd in found] == [
        ("U+202F", "space", 2),
        ("U+0009", "control", 1),
        ("U+0301", "combining mark", 1),
        ("U+044F", "CYRILLIC letter", 1),
        ("U+202E", "direction mark", 1),
        ("U+FFFD", "replacement", 1),
    ]


def test_what_several_corpora_share_is_reported() -> None:
    corpora = [Documents(name=str(number), texts=("same", str(number))) for number in range(3)]
    record = inspect_corpora(corpora)
    assert [(found.first, found.second) for found in record.overlaps] == [
        ("0", "1"),
        ("0", "2"),
        ("1", "2"),
    ]
    assert all(found.sources == 1 for found in record.overlaps)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The dog was not in the house when they came.", "en"),
        ("Le chien n'était pas dans la maison quand il est venu.", "fr"),
        ("Der Hund war nicht im Haus und sie auch nicht.", "de"),
        ("El perro no estaba en la casa y los niños se fueron con el gato.", "es"),
        ("Tom Paris 42", None),
        ("", None),
    ],
)
def test_languages_are_told_by_their_commonest_words(text: str, language: str | None) -> None:
    assert guess_language([text]).language == language
