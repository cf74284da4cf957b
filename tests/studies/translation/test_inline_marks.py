"""Marks inside a sentence: none is lost, and each goes around the words that its words became."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.studies.translation.attribution import Alignment
from heedful.studies.translation.inline_marks import put_back, taken_out

MARKS = ("**", "*", "__", "<i>", "</i>", "<br>", "[", "](https://example.org/a_b)")
WORDS = ("ab", "cd", "Lyon", "2019", "é", ".", ", ")


@settings(max_examples=150, deadline=None)
@given(
    parts=st.lists(st.sampled_from((*MARKS, *WORDS, " "))),
    text=st.lists(st.sampled_from((*WORDS, " "))).map("".join),
)
def test_marks_that_are_taken_out_come_back(parts: list[str], text: str) -> None:
    source = "".join(parts)
    plain, marks = taken_out(source)
    whole, end = "", 0
    for mark in marks:
        whole += plain[end : mark.place] + mark.text
        end = mark.place
    assert whole + plain[end:] == source
    made = put_back(plain, marks, text)
    assert len(made) == len(text) + sum(len(mark.text) for mark in marks)
    rest = made
    for mark in sorted(marks, key=lambda one: -len(one.text)):
        assert mark.text in rest
        rest = rest.replace(mark.text, "", 1)
    assert sorted(rest) == sorted(text)


def aligned(source: str, text: str, links: list[int]) -> Alignment:
    """Return an alignment in which each word of a text comes from one of the source."""
    sources, targets = source.split(), text.split()
    weights = np.full((len(targets), len(sources)), 0.01)
    weights[np.arange(len(targets)), links] = 1.0
    weights /= weights.sum(axis=1, keepdims=True)
    return Alignment(
        source=source,
        text=text,
        source_words=tuple(sources),
        target_words=tuple(targets),
        weights=weights,
        mass=np.ones(len(targets)),
        links=tuple(links),
        heads=(),
    )


@pytest.mark.parametrize(
    ("source", "text", "links", "wanted"),
    [
        ("le **chat** noir", "the black cat", [0, 2, 1], "the black **cat**"),
        ("le chat **noir**", "the black cat", [0, 2, 1], "the **black** cat"),
        ("le <i>chat noir</i> dort", "the black cat sleeps", [0, 2, 1, 3],
         "the <i>black cat</i> sleeps"),
        ("**un <i>beau</i> jour**", "one fine day", [0, 1, 2], "**one <i>fine</i> day**"),
        ("il *ne* dort", "he sleeps", [0, 2], "*he* sleeps"),
        ("voir [la page](u) ici", "see here the page", [0, 3, 1, 2], "see here [the page](u)"),
    ],
)  # fmt: skip
def test_a_pair_goes_around_the_words_that_come_from_its_words(
    source: str, text: str, links: list[int], wanted: str
) -> None:
    plain, marks = taken_out(source)
    assert put_back(plain, marks, text, aligned(plain, text, links)) == wanted


def test_what_is_said_to_the_letter_needs_no_alignment() -> None:
    plain, marks = taken_out("En **2019**, <b>Marie Curie</b> est née.")
    made = put_back(plain, marks, "Marie Curie was born in 2019.")
    assert made == "<b>Marie Curie</b> was born in **2019**."


def test_without_an_alignment_marks_keep_their_share() -> None:
    plain, marks = taken_out("un deux **trois** quatre")
    assert put_back(plain, marks, "one two three four") == "one two **three** four"


def test_other_asterisks_and_lines_are_no_marks() -> None:
    for text in ("2 * 3", "a_b", "* ab", "snake_case_name", "a ** b"):
        assert taken_out(text)[0] == text or text == "a ** b"
