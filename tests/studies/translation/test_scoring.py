"""Scores and baselines: what sacreBLEU is asked, and what needs no network."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu import corpus_bleu

from heedful.data.corpus import Pairs
from heedful.errors import InputError
from heedful.studies.translation.corpus import TestSet
from heedful.studies.translation.scoring import (
    by_length,
    by_unseen,
    dictionary,
    extremes,
    nearest,
    paired_gain,
    scores,
    slice_of,
    translate_baseline,
    word_for_word,
    words_of,
)

SENTENCES = tuple(f"the {animal} sees a {thing} here ." for animal in ("cat", "dog", "hen")
                  for thing in ("house", "tree", "road", "lake"))  # fmt: skip


def test_one_reference_each_is_what_sacrebleu_says() -> None:
    made = [text.replace("house", "home") for text in SENTENCES]
    found = scores(made, [[text] for text in SENTENCES])
    assert found.bleu == pytest.approx(corpus_bleu(made, [list(SENTENCES)]).score)
    assert found.bleu_low <= found.bleu <= found.bleu_high
    assert "nrefs:1|bs:1000" in found.signature
    assert "tok:13a" in found.signature
    assert found.exact == pytest.approx(9 / 12)


def test_resamples_without_a_single_right_letter_have_a_score_too() -> None:
    found = scores(["the cat sat on a mat", *["zz"] * 11], [["the cat sat on a mat"]] * 12)
    assert 0 <= found.chrf_low <= found.chrf <= found.chrf_high


def test_any_of_several_references_counts() -> None:
    known = [[text, "something else entirely"] for text in SENTENCES]
    known[0] = [SENTENCES[0]]
    found = scores(SENTENCES, known)
    assert found.bleu == pytest.approx(100.0)
    assert found.exact == 1.0
    assert "nrefs:var" in found.signature


def test_a_system_is_not_better_than_itself_and_a_perfect_one_is() -> None:
    known = [[text] for text in SENTENCES]
    bad = [text.replace("the", "a") for text in SENTENCES]
    better = paired_gain(SENTENCES, bad, known)
    assert 0 < better.low <= better.value <= better.high
    assert better.p_value < 0.05
    worse = paired_gain(bad, SENTENCES, known)
    assert (worse.value, worse.low, worse.high) == pytest.approx(
        (-better.value, -better.high, -better.low)
    )
    same = paired_gain(bad, bad, known)
    assert same.value == same.low == same.high == 0
    assert same.p_value > 0.05


def test_missing_translations_and_references_are_refused() -> None:
    with pytest.raises(InputError, match="are 0"):
        scores([], [])
    with pytest.raises(InputError, match="are 1 for 2"):
        slice_of("x", ["a"], [["a"], ["b"]])
    with pytest.raises(InputError, match="references"):
        scores(["a"], [[]])


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_a_language_that_renames_and_reorders_words_has_its_dictionary_found(seed: int) -> None:
    draw = np.random.default_rng(seed)
    renamed = {f"w{place}": f"v{other}" for place, other in enumerate(draw.permutation(12))}
    sources, targets = [], []
    for _ in range(150):
        chosen = draw.choice(12, size=4, replace=False)
        words = [f"w{place}" for place in chosen]
        sources.append(" ".join(words))
        targets.append(" ".join(renamed[words[place]] for place in draw.permutation(4)))
    learned = dictionary(Pairs(name="x", sources=tuple(sources), targets=tuple(targets)))
    assert {word: learned[word] for word in renamed} == renamed


def test_word_for_word_keeps_what_it_does_not_know() -> None:
    assert word_for_word({"le": "the", "chat": "cat"}, ["Le chat dort."]) == ("The cat dort.",)


def test_the_nearest_sentence_is_the_sentence_itself_where_it_is_there() -> None:
    pairs = Pairs(
        name="x",
        sources=("un chat noir", "un chien noir", "une maison"),
        targets=("A", "B", "C"),
    )
    assert nearest(pairs, pairs.sources) == pairs.targets
    assert nearest(pairs, ["le chien"]) == ("B",)
    # A source without a known word is like none of them; it still gets a line.
    assert len(nearest(pairs, ["xyz"])) == 1
    assert translate_baseline("copy", pairs, ["Non"]) == ("Non",)


def test_words_are_cut_where_french_elides() -> None:
    assert words_of("J'aime l’eau, n'est-ce pas ?") == [
        "j'", "aime", "l’", "eau", ",", "n'", "est", "-", "ce", "pas", "?",
    ]  # fmt: skip


def test_the_parts_of_a_breakdown_are_all_of_the_test() -> None:
    sources = ("Un chat.", "Un chat dort ici maintenant et là.", "Le chien voit un oiseau.")
    test = TestSet(name="test", sources=sources, references=(("a",), ("b",), ("c",)))
    pairs = Pairs(name="x", sources=("Un chat dort.",), targets=("y",))
    for parts in (by_length(test, ("a", "x", "c")), by_unseen(test, ("a", "x", "c"), pairs)):
        assert sum(part.sentences for part in parts) == 3
        exact = sum(part.exact * part.sentences for part in parts)
        assert exact == pytest.approx(2)
    assert by_unseen(test, ("a", "x", "c"), pairs)[0].name == "every word seen"


def test_the_best_comes_first_and_the_worst_too() -> None:
    test = TestSet(
        name="test",
        sources=("un", "deux", "trois"),
        references=(("one",), ("two",), ("three",)),
    )
    made = {"a": ("one", "xxx", "thre"), "b": ("1",)}
    best, worst = extremes(test, made, "a", count=2)
    assert [example.source for example in best] == ["un", "trois"]
    assert [example.source for example in worst] == ["deux", "trois"]
    assert best[0].translations == {"a": "one", "b": "1"}
    assert worst[0].translations == {"a": "xxx"}
