"""Whole texts: cut into sentences and put together again, with nothing lost in between."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_translators import all_bytes, translator

from heedful.files import SHIPPED
from heedful.model import load
from heedful.studies.translation import TranslationFormat
from heedful.studies.translation.documents import (
    break_lines,
    most_tokens,
    paragraphs,
    pieces_of,
    sentences,
    translate_paragraphs,
    translate_texts,
)
from heedful.studies.translation.quality import echoes, numbers, repeats

READER = translator(all_bytes())


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("Bonjour. Ça va ? Oui !", 3),
        ("M. Petit et Mme. Grand sont là.", 1),
        ("Il est né en 50 av. J.-C. à Rome.", 1),
        ("Il a dit « Viens ! » et il est parti.", 1),
        ("J. Dupont habite ici… Enfin, je crois.", 2),
        ("Des pommes, des poires, etc. Tout est bon.", 2),
        ("1. Ouvrez la porte.", 1),
        ("Cela coûte 3.50 euros.", 1),
        ("Quoi ?! Non.", 2),
        ("« Où vas-tu ? demanda-t-il. — À Paris. »", 2),
        ("Il a dit : « Je pars. » Puis il est parti.", 2),
        ("Il habite au 5, av. Foch. C'est loin.", 2),
        ("Voir p. 12. Et aussi fig. 3.", 2),
    ],
)
def test_sentences_end_where_they_end(line: str, count: int) -> None:
    found = list(sentences(line))
    assert "".join(text + space for text, space in found) == line
    assert len(found) == count


@settings(max_examples=60, deadline=None)
@given(
    st.text(alphabet="aé .?!\n\t-*«»12ж", max_size=200)
    | st.lists(
        st.sampled_from(
            ["**", "*", "__", "<i>", "</i>", "[", "](u)", "`c`", " ", "ab", "é. O", ","]
        )
    ).map("".join)
)
def test_the_pieces_of_a_line_are_the_line(line: str) -> None:
    pieces = pieces_of(READER, line)
    joined = "".join(piece.source for piece in pieces)
    assert joined.strip() == line.strip()
    for piece in pieces:
        if piece.translated:
            assert len(READER.tokenizer.encode(piece.text)) <= most_tokens(READER)


@pytest.mark.parametrize("line", ["a" * 10_000, "mot " * 2_500, "un, deux ; " * 900])
def test_a_line_of_ten_thousand_characters_is_translated_in_parts(line: str) -> None:
    pieces = pieces_of(READER, line)
    assert "".join(piece.text for piece in pieces).strip() == line.strip()
    assert sum(piece.translated for piece in pieces) > 100


def test_layout_and_what_is_no_language_stay() -> None:
    line = "  - 12 % ; https://example.org/a?b"
    (made,) = translate_texts(READER, ["\t* 42. ..."])
    assert made.text == "\t* 42. ..."
    (made,) = translate_texts(READER, ["https://example.org/page"])
    assert made.text == "https://example.org/page"
    assert pieces_of(READER, line)[0].text == "  - "


@pytest.mark.parametrize("opening", ["I. ", "B) ", "XIV. ", "## 12) ", "b", "M. ", "A. "])
def test_numbers_before_a_line_stay(opening: str) -> None:
    kept = "" if opening in ("b", "M. ", "A. ") else opening
    pieces = pieces_of(READER, f"{opening}abc de.")
    assert "".join(piece.text for piece in pieces if not piece.translated) == kept


def test_another_script_is_left_and_said() -> None:
    (made,) = translate_texts(READER, ["Привет, как дела?"])
    assert made.text == "Привет, как дела?"
    assert "not in Latin letters" in made.notes[0]


def test_one_sentence_is_what_the_translator_says() -> None:
    lines = ["abc de.", "", "   ", "é o.", "a\x00b"]
    whole = list(translate_texts(READER, lines))
    plain = list(READER.translate(lines))
    assert [one.text for one in whole] == [one.text for one in plain]
    assert [one.problem for one in whole] == [one.problem for one in plain]
    assert [len(one.hypotheses) for one in whole] == [len(one.hypotheses) for one in plain]


def test_a_text_without_a_full_stop_is_read_with_one_and_gets_none() -> None:
    for line in ("abc de", "o"):
        (without,), (whole,) = translate_texts(READER, [line]), READER.translate([f"{line}."])
        assert without.text == (whole.text[:-1] if whole.text[-1:] in ".!?" else whole.text)


def test_a_text_of_capitals_is_translated_as_if_it_were_written_small() -> None:
    tokenizer = load(SHIPPED["fr-en"]).tokenizer
    reader = translator(tokenizer, written=TranslationFormat(same_tokens=True))
    small, large = translate_texts(reader, ["Où est la gare ?", "OÙ EST LA GARE ?"])
    assert large.source == "OÙ EST LA GARE ?"
    assert large.text == small.text.upper() != small.text
    assert next(translate_texts(reader, ["# SNCF"])).text == "# SNCF"  # it can only be spelt


def test_what_has_no_end_in_a_longer_line_is_left_and_said_once() -> None:
    (made,) = translate_texts(READER, ["a" * 500])
    assert sum("left as it is" in note for note in made.notes) <= 1
    assert len(made.notes) < 4


def test_line_i_belongs_to_line_i() -> None:
    lines = ["a. B. C.", "", "d", "e ! F ?"]
    together = [one.text for one in translate_texts(READER, lines)]
    assert together == [next(translate_texts(READER, [line])).text for line in lines]


def test_numbers_that_differ_are_said() -> None:
    (made,) = translate_texts(READER, ["a 1789"])
    assert any("leaves out 1789" in note for note in made.notes)


def test_of_several_beams_the_likeliest_without_a_fault_is_taken() -> None:
    lines = ["a 12.", "bc.", "o 7 é.", "abc de."]
    for made, several in zip(
        translate_texts(READER, lines, beam=4),
        READER.translate(lines, beam=4, nbest=4),
        strict=True,
    ):
        wanted = numbers(several.source)
        found = [
            (len(wanted ^ numbers(h.text)), repeats(h.text), echoes(h.text))
            for h in several.hypotheses
        ]
        assert made.text == several.hypotheses[found.index(min(found))].text


def test_another_language_is_said() -> None:
    (made,) = translate_texts(READER, ["This is what he said to the others."])
    assert any("reads as English, not French" in note for note in made.notes)


SUBTITLES = """12
00:00:01,000 --> 00:00:02,500
<i>ab cd</i>
{\\an8}- e o ?"""
MARKDOWN = """# abc

* **ab** cd `x = 1` [de](https://example.org/a_b)
| a | b |
|---|---|
```
code = abc
```
> ob. Ec."""


@pytest.mark.parametrize("text", [SUBTITLES, MARKDOWN])
def test_marks_of_subtitles_and_markdown_stay(text: str) -> None:
    lines = text.split("\n")
    made = [one.text for one in translate_texts(READER, lines)]
    assert len(made) == len(lines)
    for line, new in zip(lines, made, strict=True):
        pieces = pieces_of(READER, line)
        kept = [piece.text.strip() for piece in pieces if not piece.translated]
        place = 0
        for mark in kept:  # in their order
            place = new.index(mark, place) + len(mark)
    words = {piece.text for line in lines for piece in pieces_of(READER, line) if piece.translated}
    assert words <= {
        "ab cd",
        "e o ?",
        "abc",
        "de",
        "a",
        "b",
        "code = abc",
        "ob.",
        "Ec.",
    }
    unchanged = range(2) if text == SUBTITLES else (1, 4, 5, 6, 7)
    assert all(made[place] == lines[place] for place in unchanged)


WRAPPED = """12
00:00:01,000 --> 00:00:02,500
ab cd,
e o.

# abc
  - a b
    c d
- e.
> ob
ec.
| a | b |
```
ab
cd
```
a\\
b"""


def test_lines_of_a_paragraph_are_translated_together_and_as_many_come_out() -> None:
    lines = WRAPPED.split("\n")
    together = list(paragraphs(lines))
    assert [line for several in together for line in several] == lines
    assert [several for several in together if len(several) > 1] == [
        ["ab cd,", "e o."],
        ["  - a b", "    c d"],
        ["> ob", "ec."],
    ]
    made = list(translate_paragraphs(READER, lines))
    assert [one.source for one in made] == lines
    (joined,) = translate_texts(READER, ["ab cd, e o."])
    assert " ".join(one.text for one in made[2:4]).split() == joined.text.split()
    alone = [place for place, line in enumerate(lines) if line[:1] in "0#|`"]
    for place in alone:
        (one,) = translate_texts(READER, [lines[place]])
        assert made[place].text == one.text
    assert made[7].text.startswith("    ")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("ab -#>|`.\t\x00", max_size=12), max_size=12))
def test_no_line_is_lost_or_added(lines: list[str]) -> None:
    assert [line for several in paragraphs(lines) for line in several] == lines
    made = list(translate_paragraphs(READER, lines))
    assert [one.source for one in made] == lines


@settings(max_examples=100, deadline=None)
@given(
    st.text("ab ", min_size=1, max_size=40),
    st.lists(st.text("abcd", min_size=1, max_size=9), min_size=1, max_size=5),
)
def test_a_broken_text_has_all_its_words(text: str, lines: list[str]) -> None:
    broken = break_lines(text, lines)
    assert len(broken) == len(lines)
    assert " ".join(broken).split() == text.split()


def test_no_line_is_broken_inside_a_tag() -> None:
    text = '  a <font color="red">bc</font> d'
    for count in range(1, 6):
        broken = break_lines(text, ["x"] * count)
        assert broken[0].startswith("  ")
        assert any('<font color="red">bc</font>' in line for line in broken)


def test_what_stands_before_the_words_of_a_part_stays() -> None:
    pieces = pieces_of(READER, "ab `x`, cd")
    assert [piece.text for piece in pieces if piece.translated] == ["ab", "cd"]
    assert "".join(piece.source for piece in pieces) == "ab `x`, cd"


def test_four_words_that_come_again_are_an_echo() -> None:
    twice = "a b c d e a b c d"
    assert echoes(twice)
    assert not echoes("a b c a b c")  # three words may come again
