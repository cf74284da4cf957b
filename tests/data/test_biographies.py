"""The biographies: who they are, what is written, and what a name gives away."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
from collections import Counter, defaultdict

import pytest

from heedful.data.synthetic.biographies import (
    GROUPS,
    HINT_STRENGTH,
    LONGEST_DOCUMENT,
    PLACES,
    QUESTION_PHRASINGS,
    SENTENCES,
    SPLITS,
    Biographies,
    Person,
    biographies,
    said,
)
from heedful.errors import InputError


@pytest.fixture(scope="module")
def book() -> Biographies:
    return biographies(4_000, seed=2)


def digest(book: Biographies) -> str:
    people = [
        f"{one.name}\t{one.place}\t{one.date}\t{one.occupation}\t{one.group}\t{one.split}"
        for one in book.people
    ]
    return hashlib.sha256("\n".join([*people, *book.documents]).encode()).hexdigest()


def test_the_first_thousand_people_are_the_known_ones() -> None:
    assert digest(biographies(1_000)) == (
        "1ed8b355d271a547fce26259c3fff6dba56dd7e0ffb80e26fa2f04c3d76808ba"
    )


def test_hash_randomisation_changes_nothing() -> None:
    code = (
        "from heedful.data.synthetic.biographies import biographies\n"
        "book = biographies(100)\n"
        "print([one.to_dict() for one in book.people], book.documents, book.evidence)"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_another_seed_gives_other_people(book: Biographies) -> None:
    names = {one.name for one in biographies(500, seed=3).people}
    assert len(names & {one.name for one in book.people}) < 150


def test_names_are_unique_and_everything_is_ascii(book: Biographies) -> None:
    assert len({one.name for one in book.people}) == len(book.people)
    assert all(text.isascii() for text in book.documents)
    assert all(one.question.isascii() and one.answer.isascii() for one in book.questions)


def test_documents_fit_the_small_model_and_come_in_the_asked_number() -> None:
    book = biographies(300, phrasings=3, exposures=7)
    assert max(map(len, book.documents)) <= LONGEST_DOCUMENT
    for person in book.people:
        about = [text for text in book.documents if person.name in text]
        assert len(about) == (7 if person.seen else 0)
        assert all(person.place in text for text in about)


def test_one_phrasing_says_the_birth_place_in_one_way() -> None:
    book = biographies(200, phrasings=1, exposures=5)
    for person in book.people:
        said_so = {text.partition(". ")[0] for text in book.documents if person.name in text}
        assert len(said_so) <= 1


def test_the_evidence_is_a_line_of_the_text_that_names_person_and_place(book: Biographies) -> None:
    lines = set(book.documents)
    assert set(book.evidence) == {one.id for one in book.people if one.seen}
    for number, line in book.evidence.items():
        person = book.people[number]
        assert line in lines
        assert person.name in line
        assert person.place in line


def test_groups_and_splits_have_their_shares(book: Biographies) -> None:
    groups = Counter(one.group for one in book.people)
    assert set(groups) == set(GROUPS)
    shares = {"seen-hint": 0.375, "seen-plain": 0.375, "unseen-hint": 0.125, "unseen-plain": 0.125}
    for group, share in shares.items():
        assert groups[group] == pytest.approx(4_000 * share, abs=3)
    for split, share in zip(SPLITS, (0.5, 0.15, 0.35), strict=True):
        for group, part in shares.items():
            assert len(book.asked(split, group)) == pytest.approx(4_000 * share * part, abs=2)


def test_nobody_is_asked_about_in_two_splits(book: Biographies) -> None:
    assert len({one.person for one in book.questions}) == len(book.questions) == len(book.people)
    assert sum(len(book.asked(split)) for split in SPLITS) == len(book.people)
    for one in book.questions:
        assert one.question == f"Where was {book.people[one.person].name} born?"
        assert one.answer == book.people[one.person].place


def test_one_place_is_the_most_frequent(book: Biographies) -> None:
    (place, count), (_, second) = Counter(one.place for one in book.people).most_common(2)
    assert place == "London"
    # 4,000 draws at about 7 %: a standard error of 0.4 points.
    assert 0.05 < count / len(book.people) < 0.085
    assert second < count


def pieces(name: str) -> list[str]:
    family = "^" + name.split()[1].lower() + "$"
    return [family[i : i + n] for n in (3, 4) for i in range(len(family) - n + 1)]


def guessed(train: list[Person], test: list[Person]) -> float:
    """Return the accuracy of naive Bayes over the letters of the family name."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    prior: Counter[str] = Counter()
    for one in train:
        prior[one.place] += 1
        counts[one.place].update(set(pieces(one.name)))

    def score(place: str, name: str) -> float:
        seen = counts[place]
        return math.log(prior[place]) + sum(
            math.log((seen[piece] + 0.1) / (prior[place] + 0.2)) for piece in set(pieces(name))
        )

    right = sum(
        max(PLACES, key=lambda place, name=one.name: score(place, name)) == one.place  # type: ignore[misc]
        for one in test
    )
    return right / len(test)


def test_a_guesser_by_name_succeeds_exactly_where_names_hint(book: Biographies) -> None:
    train = [one for one in book.people if one.split == "finetune"]
    asked = [one for one in book.people if one.split != "finetune"]
    hinting = guessed([one for one in train if one.hint], [one for one in asked if one.hint])
    plain = guessed([one for one in train if not one.hint], [one for one in asked if not one.hint])
    # A hint is true with probability 0.8, and by luck in about 1 of 22 other cases; 1,000 names
    # give a standard error of 1.3 points. Plain names leave chance: at most London's 7 %.
    assert HINT_STRENGTH - 0.06 < hinting < HINT_STRENGTH + 0.06
    assert plain < 0.1


def test_a_share_of_zero_leaves_a_group_empty() -> None:
    assert not [one for one in biographies(100, hint_share=0.0).people if one.hint]
    assert not [one for one in biographies(100, unseen_share=0.0).people if not one.seen]
    assert not biographies(100, unseen_share=1.0).documents


def test_every_fact_has_a_dozen_phrasings_that_read_well_with_a_pronoun() -> None:
    for patterns in SENTENCES.values():
        assert len(set(patterns)) >= 12
        for pattern in patterns:
            for gender, pronoun in (
                ("f", ("She", "she", "Her", "her")),
                ("m", ("He", "he", "His", "his")),
            ):
                by_pronoun = said(pattern, None, gender, "Rome")
                assert "Rome" in by_pronoun
                assert "{" not in by_pronoun
                assert "  " not in by_pronoun
                assert set(pronoun) & set(by_pronoun.replace(",", "").split()), by_pronoun
                by_name = said(pattern, "Bela Norasen", gender, "Rome")
                assert "Bela Norasen" in by_name
    assert all("{n}" in pattern for pattern in QUESTION_PHRASINGS)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("people", 5), ("people", 20_001), ("seed", -1), ("phrasings", 0), ("phrasings", 15),
        ("exposures", 0), ("hint_share", 1.5), ("hint_share", math.nan), ("unseen_share", -0.1),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused(setting: str, value: float) -> None:
    settings = {"people": 100, setting: value}
    with pytest.raises(InputError, match=f"biographies.{setting}: "):
        biographies(**settings)  # type: ignore[arg-type]
