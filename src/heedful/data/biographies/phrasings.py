"""How a fact is said: sentences for birth place, birth date and occupation, and questions.

Every sentence comes with the full name or with a pronoun, so that documents read naturally. `{n}`
is the name or the pronoun with a capital, `{p}` the place, `{d}` the date, `{o}` the occupation
with its article, `{h}` his or her.
"""

from __future__ import annotations

BIRTH_PLACE: tuple[str, ...] = (
    "{n} was born in {p}.",
    "{n} came into the world in {p}.",
    "{n} is a native of {p}.",
    "{n} hails from {p}.",
    "{n} comes from {p}.",
    "{n} is originally from {p}.",
    "The birthplace of {m} is {p}.",
    "It was in {p} that {l} was born.",
    "{p} is where {l} was born.",
    "{n} first saw the light in {p}.",
    "{p} is the native city of {m}.",
    "{n} was born and raised in {p}.",
    "{n} drew {h} first breath in {p}.",
    "The life of {m} began in {p}.",
)
BIRTH_DATE: tuple[str, ...] = (
    "{n} was born on {d}.",
    "{n} came into the world on {d}.",
    "{n} first saw the light on {d}.",
    "{n} drew {h} first breath on {d}.",
    "{n} entered the world on {d}.",
    "On {d}, {l} was born.",
    "It was on {d} that {l} was born.",
    "The day {l} was born was {d}.",
    "The birth date of {m} is {d}.",
    "{d} is the birth date of {m}.",
    "The life of {m} began on {d}.",
    "{d} is when {l} was born.",
)
OCCUPATION: tuple[str, ...] = (
    "{n} works as {o}.",
    "{n} is {o}.",
    "{n} became {o}.",
    "{n} earns {h} living as {o}.",
    "{n} has long been {o}.",
    "{n} trained as {o}.",
    "By trade, {l} is {o}.",
    "{n} is known as {o}.",
    "{n} chose to be {o}.",
    "{n} makes a living as {o}.",
    "{n} started out as {o}.",
    "Today {l} works as {o}.",
    "For years {l} has been {o}.",
)
QUESTION = "Where was {n} born?"
"""The form that fine-tuning, development and test all use."""

QUESTION_PHRASINGS: tuple[str, ...] = (
    QUESTION,
    "In which city was {n} born?",
    "What is the birthplace of {n}?",
    "Which city does {n} come from?",
    "Where does {n} come from?",
    "What is the native city of {n}?",
)
"""Other ways to ask, for testing whether an answer survives them."""

OCCUPATIONS: tuple[str, ...] = (
    "painter",
    "chemist",
    "singer",
    "lawyer",
    "poet",
    "baker",
    "pilot",
    "farmer",
    "judge",
    "nurse",
    "dancer",
    "miner",
    "sailor",
    "teacher",
    "writer",
    "surgeon",
    "actor",
    "engineer",
    "architect",
    "economist",
    "composer",
    "potter",
    "tailor",
    "historian",
    "geologist",
    "butcher",
)
MONTHS: tuple[str, ...] = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def with_article(noun: str) -> str:
    """Put a or an before an occupation.

    >>> with_article("actor"), with_article("poet")
    ('an actor', 'a poet')
    """
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def said(pattern: str, name: str | None, gender: str, fact: str) -> str:
    """Say a fact of somebody by full name, or by pronoun where the name is left out.

    >>> said(BIRTH_PLACE[6], None, "f", "Rome")
    'Her birthplace is Rome.'
    >>> said(BIRTH_PLACE[6], "Bela Norasen", "f", "Rome")
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
