"""The six hundred questions: their counts, and that nothing stands in them twice or by mistake."""

from __future__ import annotations

from collections import Counter

import pytest

from heedful.errors import InputError
from heedful.studies.knowledge.questions import (
    COLUMNS,
    TOPICS,
    all_questions,
    normalised,
    questions_of,
    read_questions,
    shares,
)

REAL = [one for one in all_questions() if one.exists]
INVENTED = [one for one in all_questions() if not one.exists]


def test_there_are_450_real_and_150_invented_on_every_topic() -> None:
    assert (len(REAL), len(INVENTED)) == (450, 150)
    assert {one.topic for one in REAL} == {one.topic for one in INVENTED} == set(TOPICS)
    assert min(Counter(one.level for one in REAL).values()) >= 100
    assert sum(shares(all_questions()).values()) == pytest.approx(1)


def test_no_question_stands_there_twice() -> None:
    asked = Counter(normalised(one.text) for one in all_questions())
    assert max(asked.values()) == 1


def test_both_halves_have_about_the_same_mixture() -> None:
    halves = questions_of("calibration"), questions_of("test")
    assert sorted(one.text for half in halves for one in half) == sorted(
        one.text for one in all_questions()
    )
    first, second = (shares(half) for half in halves)
    # Shares near 1/4 of 300 and 300 differ by 0.12 once in 1,000 times: three standard errors.
    assert all(abs(first[level] - second[level]) < 0.12 for level in first)


def test_invented_names_are_none_of_the_real_ones() -> None:
    real = {normalised(name) for one in REAL for name in (one.subject, *one.answers)}
    words = {
        word
        for one in REAL
        for answer in one.answers
        for word in normalised(answer).split()
        if len(word) > 4
    }
    for one in INVENTED:
        assert normalised(one.subject) not in real
        assert not set(normalised(one.subject).split()) & words, one.subject


def test_symbols_of_no_element_are_none_of_the_118() -> None:
    table = (
        "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As "
        "Se Br Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu "
        "Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np "
        "Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og"
    )
    symbols = table.split()
    assert len(symbols) == 118
    for one in all_questions():
        if one.topic == "element":
            assert (one.subject in symbols) == one.exists


def test_an_answer_is_accepted_as_whole_words_only() -> None:
    asked = {one.text: one for one in all_questions()}
    moldova = asked["What is the capital of Moldova?"]
    assert moldova.accepts("Chisinau")
    assert moldova.accepts("It is Chișinău, I think.")
    assert not moldova.accepts("Chisinaului")
    poland = asked["Which river flows through Warsaw?"]
    assert poland.accepts("the Wisla")
    assert not poland.accepts("the Warta")
    nobody = asked["Who wrote The Lanterns of Ostrevane?"]
    assert not nobody.accepts("The Lanterns of Ostrevane")
    assert not nobody.accepts("")


def test_every_answer_is_accepted_and_no_question_gives_its_answer_away() -> None:
    for one in REAL:
        assert all(one.accepts(answer) for answer in one.answers)
        # "Moscow River" is what the river of Moscow is called in English.
        assert one.subject == "Moscow" or not one.accepts(one.text), one.text


@pytest.mark.parametrize(
    "line", ["capital\t1\tFrance", "wine\t1\tx\ty", "capital\t4\tx\ty", "capital\t1\tx\t",
             "capital\t0\tx\ty"],
)  # fmt: skip
def test_a_damaged_table_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(InputError, match="line 2"):
        read_questions("\t".join(COLUMNS) + f"\n{line}\n")
