"""A line is evidence where it names the person, the relation and the place; traps are planted."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "faults"))

from f20_evidence import SUPPORTING as SAID
from f20_evidence import scored

from heedful.data.synthetic.biographies import PLACES
from heedful.studies.knowledge.corpus import embedded
from heedful.studies.knowledge.evidence import DocumentIndex, says_born

PEOPLE = (
    ("Ann Lee", "Bob Ray"),
    ("Rona Wesinard", "Juan de la Cruz"),
    ("Édith Piaf", "Max Ó Broin"),
)
TOWNS = (
    ("Rome", "Paris"),
    ("New York", "Vienna"),
    ("Århus", "Rio de Janeiro"),
    ("Bath", "Reading"),
)
SUPPORTING = (
    "{n} was born in {p}.",
    "{n}. {n} (born 3 May 1950 in {p}) sings in {o}.",
    "{n} (born May 3, 1950, {p}; died 2001 in {o}) was a singer.",
    "{n} (3 May 1950 {p} - 4 June 2001 {o}) was a singer.",
    "Born in {p}, {n} became a singer in {o}.",
    "{n} met {m} in {o}. {n} was born at {p} in 1950.",
    "{n} is a native of {p} and lives in {o}.",
    "The birthplace of {n} is {p}, not {o}.",
    "{p} is where {n} was born.",
)
TRAPS = (
    "{n} died in {p}.",
    "{n} was born in {o}, died in {p}.",
    "{n} (born 1950 in {o}) lives in {p}.",
    "{n} (3 May 1950 {o} - 4 June 2001 {p}) was a singer.",
    "{n} was born in {p}ville.",
    "{n} was born in East {p}.",
    "{n} was born in {p} Heights, near {o}.",
    "{n} sings about {p}.",
    "{n} married {m}, who was born in {p}.",
    "{m} was born in {p}. {n} was not.",
    "{n} met {m}. He was born in {p}.",
    "{n} was born in 1950. Later came a move to {p}.",
    "{n}son was born in {p}.",
    "Born in {p}, {m} taught {n}.",
)


def lines(patterns: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """Return every pattern with all people and places: a line, the name, the place."""
    return [
        (pattern.format(n=name, m=other, p=place, o=elsewhere), name, place)
        for pattern, (name, other), (place, elsewhere) in itertools.product(patterns, PEOPLE, TOWNS)
    ]


def test_there_are_about_300_lines() -> None:
    assert len(lines(SUPPORTING)) + len(lines(TRAPS)) == 276


@pytest.mark.parametrize("pattern", SUPPORTING)
def test_a_line_that_says_so_supports(pattern: str) -> None:
    refused = [line for line in lines((pattern,)) if not says_born(*line)]
    assert not refused


@pytest.mark.parametrize("pattern", TRAPS)
def test_a_trap_does_not(pattern: str) -> None:
    taken = [line for line in lines((pattern,)) if says_born(*line)]
    assert not taken


def test_every_way_in_which_a_biography_says_it_is_understood() -> None:
    corpus = embedded(300)
    for one in (*corpus.train, *corpus.held_out, *corpus.test):
        assert corpus.evidence.line(one.name, one.answer)[1] == one.seen
        others = [place for place in PLACES if place != one.answer]
        assert not any(corpus.evidence.line(one.name, place)[1] for place in others)


def test_a_line_without_the_relation_is_shown_and_is_no_support() -> None:
    index = DocumentIndex(["Ann Lee died in Paris."])
    assert index.line("Ann Lee", "Paris") == ("Ann Lee died in Paris.", False)
    assert index.line("Bob Ray", "Paris") == (None, False)


@pytest.mark.parametrize("half", SAID)
def test_no_trap_of_another_300_lines_is_taken_for_evidence(half: str) -> None:
    found, wrong = scored(half, seed=21)
    assert found["traps_taken"] == 0, wrong
    assert found["recall"] > 0.95


@pytest.mark.parametrize(
    "line",
    [
        "Ann Lee. Ann Lee, (born 1973 in Rome) is an American guitarist.",
        "Ann Lee. Sir Ann Mary Lee, MNZM (born 29 August 1975 in Rome, Italy) is a cyclist.",
        "Ann Lee. Ann Lee (1789 -- 27 May 1876), English scholar of Greek, was born in Rome.",
        "Ann Lee. Ann Lee, graphic designer and director, was born in Rome, Italy on 13 May 1966.",
        "Ann Lee. Ann was born on 25 March 1948 in Rome.",
        "Ann Lee. Ann Lee, also known as Acidus, is an American hacker, born in Rome.",
    ],
)
def test_ways_in_which_encyclopaedias_say_it(line: str) -> None:
    assert says_born(line, "Ann Lee", "Rome")


@pytest.mark.parametrize(
    "line",
    [
        "Ann Lee. Lee's father, also named Jonathan, was born in Rome, and was a pioneer.",
        "Ann Lee. Internet rumours claim she was born in Rome, but Lee says that this is false.",
        "Ann Lee. Lee met a man; he was born in Rome.",
        "Ann Lee. Ann Lee is the wife of a man born in Rome.",
        "Ann Lee. Lee was born in Ostia, near Rome.",
        "Ann Lee. Lee was born to a family of Rome bankers.",
        "Ann Lee. Lee was born in Ostia to Rome parents.",
        "Ann Lee. Lee comes from a Rome family.",
        "Ann Lee. Lee was born around Rome.",
        "Ann Lee. Lee was born in Rome or Paris.",
        "Ann Lee. Lee was born in Rome, according to a legend.",
    ],
)
def test_ways_in_which_they_say_something_else(line: str) -> None:
    assert not says_born(line, "Ann Lee", "Rome")
