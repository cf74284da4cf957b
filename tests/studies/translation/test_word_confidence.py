"""Words and their confidence: the product of their tokens, and what that was worth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from heedful.cli.main import main
from heedful.errors import InputError
from heedful.files import SHIPPED
from heedful.studies.translation import Translator
from heedful.studies.translation.documents import translate_texts
from heedful.studies.translation.quality import (
    DOUBT,
    measure_curve,
    right_words,
    word_confidences,
)
from heedful.studies.translation.translator import TranslationFormat

LINE = "Le médecin m'a dit de rester au lit pendant trois jours."


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.open(SHIPPED["fr-en"])


def test_the_words_share_the_probability_of_the_whole(translator: Translator) -> None:
    (one,) = translator.translate([LINE], beam=5)
    hypothesis = one.hypotheses[0]
    words = word_confidences(translator, hypothesis)
    assert " ".join(word.text for word in words) == hypothesis.text.rstrip(".")
    # Left out are the full stop and the end of the text: the words are no less likely alone.
    total = sum(math.log(word.probability) for word in words)
    assert hypothesis.log_probability <= total + 1e-4
    assert total - hypothesis.log_probability < 1.0


def test_a_word_is_right_where_a_reference_has_it() -> None:
    assert right_words(["I'm", "so", "so", "Happy"], ["I'm so happy!", "So so."]) == [True] * 4
    assert right_words(["year"], ["Who ate the last yoghurt?"]) == [False]


def test_the_curve_rises_and_is_that_of_the_outcomes() -> None:
    draw = np.random.default_rng(0)
    logs = -draw.exponential(1.0, 20_000)
    curve = measure_curve(logs.tolist(), (draw.random(20_000) < np.exp(logs)).tolist())
    at, right = np.array(curve).T
    assert (np.diff(right) >= 0).all()
    # Where a probability is what it says, the curve is exp; the tail is one wide group.
    assert np.abs(right - np.exp(at))[2:].max() < 0.05
    with pytest.raises(InputError, match="or more"):
        measure_curve([0.0] * 10, [True] * 10)


def test_words_that_were_mostly_wrong_are_named(translator: Translator) -> None:
    certain = Translator(
        translator.decoder,
        translator.tokenizer,
        TranslationFormat(right_words=((-20.0, 0.0), (-1e-9, 0.0), (0.0, 1.0))),
    )
    (line,) = translate_texts(certain, [LINE])
    assert any(note.startswith("may be wrong: ") and note.endswith(" more") for note in line.notes)
    without = Translator(translator.decoder, translator.tokenizer, TranslationFormat())
    (line,) = translate_texts(without, [LINE])
    assert not line.notes


def test_confidence_is_shown_for_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", LINE, "--confidence", "--json"]) == 0
    shown = capsys.readouterr().out
    assert '"probability"' in shown
    assert '"right"' in shown
    assert main(["translate", "--confidence", "--file", "x.txt"]) == 2
    assert 0 < DOUBT < 1
