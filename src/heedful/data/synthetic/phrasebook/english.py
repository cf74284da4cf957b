"""English word forms: plurals, articles, the parts of a verb, comparatives, numbers and hours.

Spelling is British (neighbour, jewellery, travelling).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from heedful.data.synthetic import read_vocabulary

_TABLES = read_vocabulary(__file__, "english")
_IRREGULAR = {base: forms.split() for base, forms in _TABLES["irregular"].items()}
_DOUBLED = frozenset(_TABLES["spelling"]["doubled"])
_ONES, _TENS = _TABLES["numbers"]["ones"], _TABLES["numbers"]["tens"]
_VOWELS = "aeiou"


class EnglishVerb(NamedTuple):
    """The forms of one English verb; `particle` is the rest of it (look *for*)."""

    base: str
    third: str
    past: str
    participle: str
    ing: str
    particle: str
    separable: bool
    """Whether a pronoun goes before the particle (take it off)."""


def plural_of(noun: str) -> str:
    """Return the regular plural of an English noun.

    >>> plural_of("cherry"), plural_of("box"), plural_of("toy")
    ('cherries', 'boxes', 'toys')
    """
    if noun.endswith(("s", "x", "z", "ch", "sh")) or noun in ("tomato", "potato", "hero"):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in _VOWELS:
        return noun[:-1] + "ies"
    return noun + "s"


def article(following: str) -> str:
    """Return `a` or `an`, by the sound of what follows.

    >>> article("honest man"), article("university"), article("old uniform")
    ('an', 'a', 'an')
    """
    if following.startswith(("uni", "us", "eu", "one")):
        return "a"
    return "an" if following[0] in "aeiouAEIO" or following.startswith(("hour", "hon")) else "a"


@cache
def english_verb(text: str) -> EnglishVerb:
    """Return the forms of a verb written as `look for`, or `take ~off` when it separates.

    >>> english_verb("carry").past, english_verb("travel").ing, english_verb("take ~off").particle
    ('carried', 'travelling', 'off')
    """
    base, _, rest = text.partition(" ")
    separable = rest.startswith("~")
    past, participle = _IRREGULAR.get(base, ("", ""))
    third = {"be": "is", "have": "has", "do": "does", "go": "goes"}.get(base) or plural_of(base)
    past = past or _regular_past(base)
    ending = _ing(base)
    return EnglishVerb(base, third, past, participle or past, ending, rest.lstrip("~"), separable)


def _regular_past(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "ied"
    return base + (base[-1] + "ed" if base in _DOUBLED else "ed")


def _ing(base: str) -> str:
    if base.endswith("e") and base not in ("be", "see", "ski"):
        return base[:-1] + "ing"
    return base + (base[-1] + "ing" if base in _DOUBLED else "ing")


def number_in_english(number: int) -> str:
    """Write a number below one hundred.

    >>> number_in_english(71)
    'seventy-one'
    """
    if number < 20:
        return str(_ONES[number])
    tens, units = divmod(number, 10)
    return f"{_TENS[tens]}-{_ONES[units]}" if units else str(_TENS[tens])


def comparative(adjective: str) -> str:
    """Return the comparative of an adjective.

    >>> comparative("heavy"), comparative("expensive")
    ('heavier', 'more expensive')
    """
    return _TABLES["comparatives"].get(adjective) or f"more {adjective}"


def hour_in_english(hour: int, minutes: int) -> str:
    """Write the same time in English.

    >>> hour_in_english(1, 0), hour_in_english(7, 15), hour_in_english(12, 30)
    ("one o'clock", 'quarter past seven', 'half past twelve')
    """
    if minutes > 30:
        hour = hour % 12 + 1
    name = number_in_english(hour)
    if minutes == 0:
        return "noon" if hour == 12 else f"{name} o'clock"
    spoken = {15: "quarter past", 30: "half past", 45: "quarter to"}
    if minutes in spoken:
        return f"{spoken[minutes]} {name}"
    side, count = ("past", minutes) if minutes < 30 else ("to", 60 - minutes)
    return f"{number_in_english(count)} {side} {name}"
