"""Alignments: whole words, rows that sum to 1, and heads that tell words apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_translators import all_bytes, translator

from heedful.errors import InputError
from heedful.studies.translation import Translation
from heedful.studies.translation.attribution import METHODS, Method, TextWords, align, head_scores

PLAIN, BYTES = translator(), translator(all_bytes())
LETTER_BY_LETTER = translator(seed=38)


@settings(max_examples=15)
@given(
    text=st.text("abcdeéo' .?", min_size=1, max_size=16).filter(str.strip),
    method=st.sampled_from(METHODS),
)
def test_shares_of_the_source_sum_to_one(text: str, method: Method) -> None:
    (one,) = PLAIN.translate([text])
    found = align(PLAIN, one, method=method)
    shape = (len(found.target_words), len(found.source_words))
    assert found.weights.shape == shape
    if not found.links:
        assert 0 in shape
        return
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0)
    assert (found.mass >= 0).all()
    assert found.links == tuple(found.weights.argmax(axis=1))
    if method in ("attention", "value norm"):
        assert (found.mass <= 1 + 1e-12).all()
        assert 1 <= len(found.heads) <= 4
    else:
        assert not found.heads
    assert "".join(found.target_words) == "".join(found.text.split())
    assert "".join(found.source_words) == "".join(found.source.split())


@torch.inference_mode()
def test_weights_are_the_traced_ones_summed_over_words() -> None:
    (one,) = LETTER_BY_LETTER.translate(["abc de."])
    found = align(LETTER_BY_LETTER, one, method="attention")
    prompt, _ = LETTER_BY_LETTER.prompt(one.source)
    (best,) = one.hypotheses
    tokens = best.tokens[:-1] if best.finished else best.tokens
    assert not LETTER_BY_LETTER.marks.all.intersection(tokens)
    assert len(found.target_words) > 1
    layers = LETTER_BY_LETTER.decoder.trace(torch.tensor([[*prompt, *tokens[:-1]]])).layers
    words = [1, 1, 1, 2, 2, 2, 3]  # the blank belongs to the word after it
    mean = sum(layers[head.layer].weights[0, head.head] for head in found.heads) / len(found.heads)
    mass = np.zeros((len(tokens), 3))
    for place in range(len(tokens)):
        for key, word in enumerate(words, start=1):
            mass[place, word - 1] += float(mean[len(prompt) - 1 + place, key])
    owners = _owners(LETTER_BY_LETTER.tokenizer.decode(tokens))
    for word in range(len(found.target_words)):
        rows = [place for place, owner in enumerate(owners) if owner == word]
        expected = mass[rows].mean(axis=0)
        assert found.mass[word] == pytest.approx(expected.sum())
        np.testing.assert_allclose(found.weights[word], expected / expected.sum())


def _owners(text: str) -> list[int]:
    """Return the word of each letter, told letter by letter."""
    words = TextWords.of(text, "en", [(place, place + 1) for place in range(len(text))])
    return list(words.owners)


def test_words_are_those_of_the_language() -> None:
    def cut(text: str, language: str) -> tuple[str, ...]:
        return TextWords.of(text, language, []).words

    assert cut("Où est l'hôtel ?", "fr") == ("Où", "est", "l'", "hôtel", "?")
    assert cut("Est-ce qu’il vient ?", "fr") == ("Est-ce", "qu’", "il", "vient", "?")
    assert cut("I don't know.", "en") == ("I", "don't", "know", ".")


def test_a_head_that_reads_word_by_word_has_the_information_of_a_permutation() -> None:
    words = 8
    order = np.random.default_rng(0).permutation(words)
    one_by_one = np.eye(words)[order]
    even = np.full((words, words), 1 / words)
    always_one = np.zeros((words, words))
    always_one[:, 3] = 1.0
    (first, second, third, half) = head_scores(
        np.stack([one_by_one, even, always_one, one_by_one / 2])
    )
    assert first == pytest.approx((1.0, math.log2(words)))
    assert second == pytest.approx((1.0, 0.0))
    assert third == pytest.approx((1.0, 0.0))
    assert half == pytest.approx((0.5, math.log2(words)))


def test_bytes_of_one_letter_are_one_word() -> None:
    (one,) = BYTES.translate(["é où"])
    found = align(BYTES, one)
    assert found.source_words == ("é", "où")


def test_links_are_written_as_other_tools_read_them() -> None:
    (one,) = PLAIN.translate(["ab cd"])
    found = align(PLAIN, one)
    pairs = [tuple(map(int, pair.split("-"))) for pair in found.pairs.split()]
    assert [target for _, target in pairs] == list(range(len(found.target_words)))
    assert tuple(source for source, _ in pairs) == found.links


def test_nothing_to_align_is_said() -> None:
    with pytest.raises(InputError, match="rank"):
        align(PLAIN, Translation(source="", text=""))
    (one,) = PLAIN.translate(["ab"])
    with pytest.raises(InputError, match="the line has 1 translations"):
        align(PLAIN, one, rank=1)
    with pytest.raises((InputError, TypeError), match="guess"):  # the tests check types first
        align(PLAIN, one, method="guess")  # type: ignore[arg-type]
