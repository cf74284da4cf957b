"""Names and numbers come back as they were, or the translation stays what it was."""

from __future__ import annotations

import re

import pytest

from heedful.files import SHIPPED
from heedful.studies.translation import Translator
from heedful.studies.translation.documents import translate_texts
from heedful.studies.translation.quality import numbers
from heedful.studies.translation.stand_ins import (
    Lent,
    best_restored,
    lent_sentences,
    missing_words,
)
from heedful.studies.translation.translator import Hypothesis, Translation

SENTENCES = (
    "Madame Lefebvre habite à Vesoul.",
    "Je voudrais deux billets pour Lyon, s'il vous plaît.",
    "Il est né en 1938.",
    "J'ai vu Camille hier à Toulouse.",
    "Nous allons en Bretagne cet été.",
)


@pytest.fixture(scope="module")
def translator() -> Translator:
    made = Translator.open(SHIPPED["fr-en"])
    assert made.format.stand_ins
    return made


def of(source: str, text: str) -> Translation:
    return Translation(source=source, text=text)


@pytest.mark.parametrize(
    ("source", "text", "missing"),
    [
        ("Madame Lefebvre habite à Vesoul.", "Mrs. Lever lives there.", ["Lefebvre", "Vesoul"]),
        ("Madame Lefebvre habite à Vesoul.", "Mrs. Lefebvre lives in Vesoul.", []),
        ("Je vois Nadia Benali.", "I see Nada.", ["Nadia Benali"]),
        ("Il vient d'Orléans.", "He just came.", ["Orléans"]),
        ("Les Wallons parlent aux Wallons.", "They talk.", []),  # peoples have English names
        ("Lefebvre habite ici depuis hier.", "He has lived here.", ["Lefebvre"]),
        ("Demain il fera beau ici.", "It will be fine here.", []),  # any first word has a capital
        ("Lefebvre !", "He!", []),
        ("Il a dit : « Viens » et il est parti.", "He left.", []),  # nor the first of a quotation
        ("Vraisemblablement, il est parti hier.", "He left yesterday.", []),
        ("Tom est à Boston.", "He is there.", []),  # tokens of their own: the model knows them
        ("Il est né en 1938.", "He was born in 1977.", ["1938"]),
        ("Il y a 12 000 arbres.", "There are 12,000 trees.", []),
    ],
)
def test_what_is_missing_is_found(
    translator: Translator, source: str, text: str, missing: list[str]
) -> None:
    assert missing_words(translator, of(source, text)) == missing


def test_persons_and_places_are_tried_with_the_sound_that_french_wants(
    translator: Translator,
) -> None:
    lent = lent_sentences(translator, of("Il vient d'Orléans avec Karim.", "He comes."))
    assert len(lent) == 2
    for one in lent:
        assert re.search(r"d'[AEIOU]", one.text)
        assert re.search(r"avec [B-DF-HJ-NP-TV-Z]", one.text)
        assert [word for _, word in one.words] == ["Orléans", "Karim"]
    (number,) = lent_sentences(translator, of("Il est né en 1938.", "He was born."))
    assert len(numbers(number.text).pop()) == 4


def test_nothing_is_lent_where_nothing_or_too_much_is_missing(translator: Translator) -> None:
    assert lent_sentences(translator, of("Tom est ici.", "Tom is here.")) == []
    many = "Je vois Bavarel, Corvisart, Dumouriez et Fouquier."
    assert lent_sentences(translator, of(many, "I see.")) == []


@pytest.mark.parametrize(
    ("text", "restored"),
    [
        ("Tom's dog is 30.", "Karim's dog is 14."),
        ("Tom and Tom are 30.", None),
        ("Tom is here.", None),
        ("Tom came at 2:30.", None),  # half of a time is not the number
        ("Tomas is 30.", None),
    ],
)
def test_words_come_back_only_where_each_came_out_once(text: str, restored: str | None) -> None:
    lent = Lent(text="", words=(("Tom", "Karim"), ("30", "14")))
    assert lent.restored(text) == restored


def test_a_word_may_hold_signs_of_regular_expressions() -> None:
    assert Lent(text="", words=(("Tom", r"O\1"),)).restored("Tom.") == r"O\1."


def test_a_name_does_not_come_back_at_the_price_of_a_number() -> None:
    def found(source: str, **scores: float) -> Translation:
        several = tuple(
            Hypothesis(
                text=text.replace("_", " "),
                log_probability=score,
                per_token=score,
                score=score,
                tokens=(0,),
                log_probabilities=(score,),
                finished=True,
            )
            for text, score in scores.items()
        )
        return Translation(source=source, text=several[0].text, hypotheses=several)

    plain = found("Il vit à Brest depuis 2019.", In_Bresse_for_2019=-3.0)
    lent = Lent(text="Il vit à Boston depuis 2019.", words=(("Boston", "Brest"),))
    again = found(lent.text, In_Boston_for_twenty19=-1.0, In_Boston_for_2019=-2.0)
    best = best_restored(plain, [lent], [again])
    assert best is not None
    assert best[0] == "In Brest for 2019"


def test_names_and_numbers_come_back_or_nothing_changes(translator: Translator) -> None:
    found = list(translate_texts(translator, SENTENCES, beam=16))
    written = translator.format
    try:
        translator.format = written.model_copy(update={"stand_ins": ()})
        plain = list(translate_texts(translator, SENTENCES, beam=16))
    finally:
        translator.format = written
    for one, before in zip(found, plain, strict=True):
        assert one.source == before.source
        if one.text == before.text:
            continue
        assert missing_words(translator, before)
        assert not missing_words(translator, one)
        assert one.hypotheses == ()  # their tokens would be those of the stand-ins
    assert sum(not missing_words(translator, one) for one in found) >= 4
