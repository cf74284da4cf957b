"""The same tokens for a word, wherever in a text it stands; and the text comes back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import InputError
from heedful.files import SHIPPED
from heedful.model import load
from heedful.tokenization import Tokenizer
from heedful.tokenization.same_tokens import SameTokens, places_in, with_capital_of


@pytest.fixture(scope="module")
def shipped() -> Tokenizer:
    tokenizer = load(SHIPPED["fr-en"]).tokenizer
    assert tokenizer is not None
    return tokenizer


def inside(tokens: list[int], text: list[int]) -> bool:
    return any(text[at : at + len(tokens)] == tokens for at in range(len(text)))


@pytest.mark.parametrize(
    ("word", "texts"),
    [
        ("eau", ("L'eau est froide.", "De l\u2019eau", "eau", "Eau minérale", "une eau")),
        ("fromage", ("Fromage", "fromage de chèvre.", "Du fromage !")),
        ("Paris", ("Paris est loin.", "Je vais à Paris.", "L'ami de Paris")),
        ("Tom", ("Tom dort.", "C'est Tom.")),
    ],
)
def test_a_word_has_the_same_tokens_wherever_it_stands(
    shipped: Tokenizer, word: str, texts: tuple[str, ...]
) -> None:
    same = SameTokens(shipped.encode)
    tokens = shipped.encode(f" {word}")
    for text in texts:
        assert inside(tokens, shipped.encode(same.source(text, "fr"))), text


@settings(max_examples=300)
@given(st.text(st.sampled_from("aàbÉeEßİǅ'’ 1.\u00a0-«\u4e2d"), max_size=12).map(str.strip))
def test_every_text_comes_back(text: str) -> None:
    same = SameTokens(lambda one: [len(one), sum(map(ord, one)) % 7])
    for read in (same.source(text, "fr"), same.target(text)):
        places = places_in(read, text)
        assert len(places) == len(read) + 1
        assert places[-1] == len(text)
        kept = [at for at in range(len(read)) if places[at] < places[at + 1]]
        assert "".join(read[at] for at in kept).casefold() == text.casefold()
        assert all(read[at] == " " for at in set(range(len(read))) - set(kept))
    assert with_capital_of(same.target(text).strip(), text) in (text, with_capital_of(text, text))


def test_only_languages_that_elide_have_words_apart() -> None:
    same = SameTokens(lambda _: [0])
    assert same.source("don't", "en") == " don't" == same.target("don't")
    assert same.source("l'eau d'Alice", "fr") == " l' eau d' Alice"
    assert same.source("", "fr") == "" == same.target("")


def test_a_word_that_cannot_be_spelt_stays_as_it_is() -> None:
    def encode(text: str) -> list[int]:
        raise InputError("text", f"holds {text!r}")

    assert SameTokens(encode).target("Été chaud") == " Été chaud"


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ("OÙ EST LA GARE ?", "Où est la gare ?"),
        ("TOM ET MARY SONT À PARIS.", "Tom et Mary sont à Paris."),
        ("« L'EAU FROIDE »", "« L'eau froide »"),
        ("ONU", "ONU"),
        ("L'ONU A VOTÉ", "L'ONU a voté"),
        ("LOUIS XIV", "Louis XIV"),
        ("PARIS", "Paris"),
        ("OUI", "Oui"),
        ("La SNCF", "La SNCF"),
        ("12 345", "12 345"),
        ("ΑΒΓΔΕΖİ", "ΑΒΓΔΕΖİ"),  # its small letters are another number of them
    ],
)
def test_a_text_of_capitals_is_read_as_it_is_usually_written(
    shipped: Tokenizer, text: str, usual: str
) -> None:
    assert SameTokens(shipped.encode).without_shouting(text) == usual
