"""Pairs made longer, or with other names, numbers and words: nothing is lost or torn apart."""

from __future__ import annotations

import re

import pytest

from heedful.data import phrases, variation
from heedful.data.corpus import Pairs
from heedful.data.phrases import WordTranslations
from heedful.data.variation import Dictionary, Variation, varied
from heedful.errors import ConfigError

PAIRS = Pairs(
    name="x",
    sources=(
        "Tom est là.",
        "Je vais à Boston.",
        "Il a 30 ans.",
        "Où est-il ?",
        "Marie dort !",
        "C'est l'avis d'Alice.",
        "Il y a 1 chat.",
    )
    * 30,
    targets=(
        "Tom is here.",
        "I go to Boston.",
        "He is 30.",
        "Where is he?",
        "Mary sleeps!",
        "It's what Alice thinks.",
        "There is 1 cat.",
    )
    * 30,
    languages=("fr", "en"),
)


def words(texts: tuple[str, ...]) -> list[str]:
    """Return the words of all texts in one order, without case and what joins sentences."""
    found = re.findall(r"[^\W_]+", " ".join(texts).lower())
    return sorted(word for word in found if word not in {"et", "mais", "ou", "and", "but", "or"})


def test_every_pair_stands_in_each_round_once() -> None:
    made = varied(PAIRS, Variation(rounds=3, joined=0.5), seed=1)
    for side, before in zip(made.sides, PAIRS.sides, strict=True):
        assert words(side) == words(before * 3)
    pairs = list(zip(*made.sides, strict=True))
    assert sum(pair in set(zip(*PAIRS.sides, strict=True)) for pair in pairs) == 315
    assert any(" et " in source and " and " in target for source, target in pairs)


def test_names_and_numbers_change_alike_on_both_sides() -> None:
    made = varied(PAIRS, Variation(renamed=1.0), seed=2)
    assert len(made) == len(PAIRS)
    for place, (source, target) in enumerate(zip(*made.sides, strict=True)):
        wanted = re.escape(PAIRS.targets[place])
        for known in ("Tom", "Boston", "30", "Alice"):
            wanted = wanted.replace(known, r"([^\W_]+)")
        found = re.fullmatch(wanted, target)
        assert found is not None
        assert all(name in source for name in found.groups())
    # A vowel for a vowel: "d'Alice" may not become "d'Boston".
    assert not re.search(r"d'[BT]", " ".join(made.sources))
    assert "1 chat" in " ".join(made.sources)
    assert "Marie" in " ".join(made.sources)
    assert len(set(made.sources)) > len(set(PAIRS.sources))


def test_the_seed_decides_everything() -> None:
    settings = Variation(rounds=2, joined=0.3, renamed=0.5)
    first, again, other = (varied(PAIRS, settings, seed).sides for seed in (0, 0, 1))
    assert first == again != other


def test_without_known_words_between_them_sentences_stay_whole() -> None:
    pairs = Pairs(name="x", sources=("Ja.", "Nej.") * 20, targets=("Yes.", "No.") * 20)
    for source, target in zip(*varied(pairs, Variation(joined=1.0), seed=0).sides, strict=True):
        assert source.count(".") == target.count(".") > 1


@pytest.mark.parametrize("settings", [{"joined": 1.5}, {"rounds": 0}, {"renamed": -0.1}])
def test_shares_are_checked(settings: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r"data\.variation"):
        Variation.of(settings)


NOUNS = {
    "une": [("pomme", "an", "apple"), ("orange", "an", "orange"), ("échelle", "a", "ladder")],
    "un": [("chien", "a", "dog"), ("tablier", "an", "apron"), ("casque", "a", "helmet")],
}
VERBS = [("voit", "sees"), ("veut", "wants"), ("prend", "takes"), ("perd", "loses")]
SUBJECTS = [("Il", "He"), ("Elle", "She"), ("Tom", "Tom"), ("Marie", "Mary")]


def described() -> Pairs:
    """Every subject, verb and noun once: frequent ones several times."""
    texts = [
        (f"{one} {verb} {article} {noun}.", f"{two} {does} {a} {thing}.")
        for one, two in SUBJECTS
        for verb, does in VERBS
        for article, nouns in NOUNS.items()
        for noun, a, thing in nouns
    ]
    sources, targets = zip(*texts, strict=True)
    return Pairs(name="x", sources=sources, targets=targets, languages=("fr", "en"))


def dictionary(pairs: Pairs) -> Dictionary:
    """Return the dictionary of these pairs."""
    texts = list(zip(*pairs.sides, strict=True))
    return Dictionary.of(texts, WordTranslations.of(texts))


@pytest.fixture
def small_corpus(monkeypatch: pytest.MonkeyPatch) -> Pairs:
    """Of so few pairs every word is in a large share."""
    monkeypatch.setattr(variation, "GRAMMAR", 0.3)
    monkeypatch.setattr(variation, "RARE", 0.3)
    return described()


def test_words_translate_one_another_in_both_directions(small_corpus: Pairs) -> None:
    known = dictionary(small_corpus).translations
    assert {noun: known.get(noun) for several in NOUNS.values() for noun, _, _ in several} == {
        noun: thing for several in NOUNS.values() for noun, _, thing in several
    }
    assert "un" not in known  # too short, and of the grammar


def test_an_exchanged_word_has_its_translation_and_fits_behind_the_words_before(
    small_corpus: Pairs,
) -> None:
    made = varied(small_corpus, Variation(rounds=2, exchanged=1.0), seed=0)
    fitting = set(zip(*small_corpus.sides, strict=True))
    changed = 0
    for place, two in enumerate(zip(*made.sides, strict=True)):
        # Every sentence of this grammar is in the corpus, so that a wrong one would not be.
        assert two in fitting
        before = small_corpus.sources[place % len(small_corpus)].split()
        differing = sum(a != b for a, b in zip(two[0].split(), before, strict=True))
        assert differing <= 1
        changed += differing
    assert changed > len(small_corpus)


def test_frequent_words_are_not_put_anywhere(
    small_corpus: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(variation, "RARE", 0.17)  # a noun is in 16 of 96 pairs, a verb in 24
    found = dictionary(small_corpus)
    assert found.rare == {noun for several in NOUNS.values() for noun, _, _ in several}
    assert {one for several in found.behind.values() for one, _ in several} == found.rare


def test_pairs_are_cut_down_to_phrases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phrases, "GRAMMAR", 0.3)
    pairs = described()
    made = varied(pairs, Variation(rounds=2, phrases=1.0), seed=0)
    assert len(made) == 2 * len(pairs)
    texts = set(zip(*made.sides, strict=True))
    assert {
        ("une orange.", "an orange."),
        ("Une pomme.", "An apple."),
        ("échelle.", "ladder."),
    } < texts
    for place, two in enumerate(zip(*made.sides, strict=True)):
        for short, whole in zip(
            two, (side[place % len(pairs)] for side in pairs.sides), strict=True
        ):
            assert short.rstrip(".").lower() in whole.lower()
    assert varied(pairs, Variation(phrases=0.0), seed=0).sides == pairs.sides
