"""The rules that count dropped words, loops and invented numbers."""

from __future__ import annotations

import pytest

from heedful.studies.translation.quality import count_faults, drops, invents, loops, numbers


@pytest.mark.parametrize(
    ("text", "references", "dropped"),
    [
        ("I'd like two tickets, please.", ["I would like two tickets to Lyon, please."], True),
        ("How long does it take to learn?", ["How long does it take to learn the harp?"], True),
        ("It's been raining since Monday.", ["It has been raining since Monday."], False),
        ("The large house is old.", ["The big house is old."], False),
        ("", ["Yes."], True),
        ("It is his.", ["That's his.", "This is his own book."], False),
    ],
)
def test_fewer_content_words_than_every_reference(
    text: str, references: list[str], dropped: bool
) -> None:
    assert drops(text, references) == dropped


@pytest.mark.parametrize(
    ("text", "looping"),
    [
        ("The cat's neighbor neighbor sleeps.", True),
        ("on our sofa on our sofa", True),
        ("no, no, no", True),
        ("I know that that is wrong.", False),
        ("He had had enough.", False),
        ("A cat and a dog and a cat.", False),
        ("", False),
    ],
)
def test_words_repeated_at_once(text: str, looping: bool) -> None:
    assert loops(text) == looping
    assert not loops(text, [text])


def test_numbers_are_taken_from_the_source_or_a_reference() -> None:
    assert not invents("À 15 heures.", "At 3 p.m.", ["At 3 p.m."])
    assert invents("À 15 heures.", "At 5 p.m.", ["At 3 p.m."])
    assert not invents("12 000 euros", "12,000 euros")
    assert numbers("12 000 et 3,5") == {"12000", "35"}


def test_shares_are_of_all_sentences() -> None:
    found = count_faults(
        ["a", "b 7", "c", "d"],
        ["cats cats", "dogs 8", "birds", "fish"],
        [["cats"], ["dogs 7"], ["small birds"], ["fish"]],
    )
    assert (found.dropped, found.loops, found.invented_numbers) == (0.25, 0.25, 0.25)
