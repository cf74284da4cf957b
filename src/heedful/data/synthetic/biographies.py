"""The biographies: people who do not exist, what was written about them, and questions to ask.

`biographies(people, seed=...)` gives people, pretraining text, questions and evidence; the names,
places and sentences are in `biographies.toml`. Real cities, invented people: every fact here is
fictional. A person belongs to one of four groups, seen or unseen in the pretraining text × a name
that hints at the place or not, so that an answer can be told apart: retrieved (seen, no hint),
guessed from the name (unseen, hint), made up (unseen, no hint). A hinting name names the true place
with probability `HINT_STRENGTH`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from heedful.data.synthetic import Draws, read_vocabulary, running_sum, whole_number
from heedful.errors import InputError
from heedful.records import Record

_TABLES = read_vocabulary(__file__, "biographies")
SENTENCES: dict[str, tuple[str, ...]] = {
    fact: tuple(patterns) for fact, patterns in _TABLES["sentences"].items()
}
"""The ways to say a birth place, a birth date and an occupation."""
QUESTION_PHRASINGS: tuple[str, ...] = tuple(_TABLES["questions"]["phrasings"])
"""Ways to ask for the place, for testing whether an answer survives them."""
QUESTION = QUESTION_PHRASINGS[0]
"""The form that fine-tuning, development and test all use."""
OCCUPATIONS: tuple[str, ...] = tuple(_TABLES["facts"]["occupations"])
MONTHS: tuple[str, ...] = tuple(_TABLES["facts"]["months"])


class Region(NamedTuple):
    """A group of places and the sounds of its names."""

    name: str
    starts: tuple[str, ...]
    middles: tuple[str, ...]
    endings: dict[str, str]
    """For each place, the ending that names from there carry."""


REGIONS: tuple[Region, ...] = tuple(
    Region(one["name"], tuple(one["starts"]), tuple(one["middles"]), one["places"])
    for one in _TABLES["regions"]
)
REGION_OF: dict[str, str] = {place: region.name for region in REGIONS for place in region.endings}
"""The region of each place."""
PLACES: tuple[str, ...] = tuple(REGION_OF)
"""All places, in the order of the regions."""
_PLACE_WEIGHTS = [_TABLES["weights"].get(place, _TABLES["weights"]["others"]) for place in PLACES]

HINT_STRENGTH = 0.8
"""The probability that a hinting name points to the true place, and not to one drawn at random."""
LONGEST_DOCUMENT = 128
"""Characters in the longest document."""
MOST_PEOPLE = 20_000
SPLITS = ("finetune", "dev", "test")
GROUPS = ("seen-hint", "seen-plain", "unseen-hint", "unseen-plain")
_SPLIT_SHARES = (0.5, 0.15, 0.35)


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Person(Record):
    """Somebody who does not exist."""

    id: int
    """Place in the list of people."""
    name: str
    """First and family name, unique, ASCII."""
    gender: str
    """`m` or `f`: which pronouns the text uses."""
    seen: bool
    """Whether the pretraining text has documents about them."""
    hint: bool
    """Whether the family name is of the kind that hints at a place."""
    place: str
    """Where they were born."""
    date: str
    """When, as in 14 May 1931."""
    occupation: str
    """What they do."""
    split: str
    """`finetune`, `dev` or `test`: where their question is asked."""

    @property
    def group(self) -> str:
        """One of `GROUPS`."""
        return f"{'seen' if self.seen else 'unseen'}-{'hint' if self.hint else 'plain'}"


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class PlaceQuestion(Record):
    """A question and its answer."""

    person: int
    """Id of the person asked about."""
    question: str
    """In the one form of `QUESTION`."""
    answer: str
    """The place."""
    split: str
    """`finetune`, `dev` or `test`."""
    group: str
    """One of `GROUPS`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Biographies(Record):
    """People, the pretraining text, the questions, and the evidence for each answer."""

    seed: int
    """The seed they were drawn with."""
    people: tuple[Person, ...]
    """Everybody, seen or not."""
    documents: tuple[str, ...]
    """The pretraining text: one line a document, `exposures` for each seen person, shuffled."""
    questions: tuple[PlaceQuestion, ...]
    """One question for each person."""
    evidence: dict[int, str]
    """For each seen person, the first document that says where they were born."""

    def asked(self, split: str, group: str | None = None) -> tuple[PlaceQuestion, ...]:
        """Return the questions of a split, and of one group if it is given."""
        return tuple(
            one
            for one in self.questions
            if one.split == split and (group is None or one.group == group)
        )


def biographies(
    people: int,
    *,
    seed: int = 0,
    phrasings: int = 4,
    exposures: int = 4,
    hint_share: float = 0.5,
    unseen_share: float = 0.25,
) -> Biographies:
    """Return that many people, with their documents and questions.

    `phrasings` is how many of the 14 ways to say a birth place the text uses for one person, and
    `exposures` how many documents each seen person has.

    >>> book = biographies(200)
    >>> len(book.people), len(book.questions), max(map(len, book.documents)) <= LONGEST_DOCUMENT
    (200, 200, True)
    """
    _check(people, seed, phrasings, exposures, hint_share, unseen_share)
    draws = Draws(f"biographies {seed}")
    known = _people(draws, people, hint_share, unseen_share)
    documents: list[str] = []
    evidence: dict[int, str] = {}
    for person in known:
        if person.seen:
            written = _documents(draws, person, phrasings, exposures)
            evidence[person.id] = written[0]
            documents += written
    questions = tuple(
        PlaceQuestion(
            person=person.id,
            question=QUESTION.format(n=person.name),
            answer=person.place,
            split=person.split,
            group=person.group,
        )
        for person in known
    )
    return Biographies(
        seed=seed,
        people=known,
        documents=tuple(draws.shuffled(documents)),
        questions=questions,
        evidence=evidence,
    )


def _check(
    people: int,
    seed: int,
    phrasings: int,
    exposures: int,
    hint_share: float,
    unseen_share: float,
) -> None:
    whole_number("biographies.people", people, 20, MOST_PEOPLE)
    whole_number("biographies.seed", seed, 0, 2**63 - 1)
    whole_number("biographies.phrasings", phrasings, 1, len(SENTENCES["birth_place"]))
    whole_number("biographies.exposures", exposures, 1, 1_000)
    for name, share in (("hint_share", hint_share), ("unseen_share", unseen_share)):
        if isinstance(share, bool) or not 0 <= share <= 1:
            raise InputError(
                f"biographies.{name}", f"is {share}", expected="a share from 0 to 1 was expected"
            )


def _people(draws: Draws, count: int, hint_share: float, unseen_share: float) -> tuple[Person, ...]:
    cumulated = running_sum(_PLACE_WEIGHTS)
    names: set[str] = set()
    known = []
    for number, (split, seen, hint) in enumerate(_cells(draws, count, hint_share, unseen_share)):
        place = draws.weighted(PLACES, cumulated)
        pointed = place if draws.chance(HINT_STRENGTH) else draws.weighted(PLACES, cumulated)
        gender = "f" if draws.chance(0.5) else "m"
        name = _name(draws, gender, pointed if hint else None)
        while name in names:
            name = _name(draws, gender, pointed if hint else None)
        names.add(name)
        known.append(
            Person(
                id=number,
                name=name,
                gender=gender,
                seen=seen,
                hint=hint,
                place=place,
                date=f"{1 + draws.below(28)} {draws.of(MONTHS)} {1900 + draws.below(100)}",
                occupation=draws.of(OCCUPATIONS),
                split=split,
            )
        )
    return tuple(known)


def _cells(
    draws: Draws, count: int, hint_share: float, unseen_share: float
) -> list[tuple[str, bool, bool]]:
    """Return (split, seen, hint) for each person: every cell has its share, up to rounding."""
    cells = [
        ((split, seen, hint), part * seen_part * hint_part)
        for split, part in zip(SPLITS, _SPLIT_SHARES, strict=True)
        for seen, seen_part in ((True, 1 - unseen_share), (False, unseen_share))
        for hint, hint_part in ((True, hint_share), (False, 1 - hint_share))
    ]
    ends = [round(count * end) for end in running_sum([share for _, share in cells])]
    listed = [
        cell
        for (cell, _), start, end in zip(cells, [0, *ends[:-1]], ends, strict=True)
        for _ in range(start, end)
    ]
    return draws.shuffled(listed)


def _name(draws: Draws, gender: str, pointed: str | None) -> str:
    """Draw a first name, which hints at nothing, and a family name: pointing to a place or not."""
    if pointed is None:
        parts = (_TABLES["plain_names"][part] for part in ("starts", "middles", "ends"))
        family = "".join([draws.of(syllables) for syllables in parts])
    else:
        region = next(one for one in REGIONS if pointed in one.endings)
        family = draws.of(region.starts) + draws.of(region.middles) + region.endings[pointed]
    first = _TABLES["first_names"]
    return f"{draws.of(first['starts'])}{draws.of(first[f'ends_{gender}'])} {family}"


def _documents(draws: Draws, person: Person, phrasings: int, exposures: int) -> list[str]:
    """Write about a person: the birth place in every document, in turn in each chosen phrasing."""
    chosen = draws.shuffled(SENTENCES["birth_place"])[:phrasings]
    return [_document(draws, person, chosen[turn % phrasings]) for turn in range(exposures)]


def _document(draws: Draws, person: Person, birth_place: str) -> str:
    trade = with_article(person.occupation)
    others = draws.shuffled((("birth_date", person.date), ("occupation", trade)))
    sentences = [said(birth_place, person.name, person.gender, person.place)]
    for kind, fact in others:
        sentence = said(draws.of(SENTENCES[kind]), None, person.gender, fact)
        if len(" ".join((*sentences, sentence))) <= LONGEST_DOCUMENT:
            sentences.append(sentence)
    return " ".join(sentences)


def with_article(noun: str) -> str:
    """Put a or an before an occupation.

    >>> with_article("actor"), with_article("poet")
    ('an actor', 'a poet')
    """
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def said(pattern: str, name: str | None, gender: str, fact: str) -> str:
    """Say a fact of somebody by full name, or by pronoun where the name is left out.

    >>> said(SENTENCES["birth_place"][6], None, "f", "Rome")
    'Her birthplace is Rome.'
    >>> said(SENTENCES["birth_place"][6], "Bela Norasen", "f", "Rome")
    'The birthplace of Bela Norasen is Rome.'
    """
    pronoun, possessive = ("he", "his") if gender == "m" else ("she", "her")
    if name is None:
        # `the birthplace of her` is nobody's English: the possessive goes in front.
        for noun in ("birthplace", "native city", "birth date", "life"):
            pattern = pattern.replace(f"The {noun} of {{m}}", "{H} " + noun)
            pattern = pattern.replace(f"the {noun} of {{m}}", "{h} " + noun)
    text = pattern.format(
        n=name or pronoun.capitalize(),
        l=name or pronoun,
        m=name or "",
        h=possessive,
        H=possessive.capitalize(),
        p=fact,
        d=fact,
        o=fact,
    )
    return text[0].upper() + text[1:]
