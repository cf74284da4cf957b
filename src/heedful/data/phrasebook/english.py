"""English word forms: plurals, articles, and the parts of a verb.

Spelling is British (neighbour, jewellery, travelling).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

_VOWELS = "aeiou"
_IRREGULAR = {
    base: (past, participle)
    for base, past, participle in (
        line.split()
        for line in [
            "be was been",
            "have had had",
            "do did done",
            "eat ate eaten",
            "drink drank drunk\n        ",
            "buy bought bought",
            "sell sold sold",
            "bring brought brought",
            "read read read\n        ",
            "write wrote written",
            "sing sang sung",
            "understand understood understood\n        ",
            "forget forgot forgotten",
            "lose lost lost",
            "find found found",
            "keep kept kept\n        ",
            "hide hid hidden",
            "show showed shown",
            "give gave given",
            "send sent sent",
            "break broke broken\n        ",
            "put put put",
            "take took taken",
            "wear wore worn",
            "drive drove driven",
            "see saw seen\n        ",
            "know knew known",
            "meet met met",
            "draw drew drawn",
            "build built built",
            "choose chose chosen\n        ",
            "hold held held",
            "throw threw thrown",
            "feed fed fed",
            "sleep slept slept",
            "run ran run\n        ",
            "swim swam swum",
            "go went gone",
            "come came come",
            "leave left left",
            "fall fell fallen\n        ",
            "get got got",
            "lend lent lent",
            "make made made",
            "wake woke woken",
            "sit sat sat\n        ",
            "speak spoke spoken",
            "tell told told",
            "say said said",
            "think thought thought",
            "cut cut cut\n        ",
            "ring rang rung",
            "lay laid laid",
        ]
    )
}
_DOUBLED = frozenset(
    ["cut", "run", "swim", "put", "get", "sit", "stop", "forget", "chat", "travel", "plan", "jog"],
)


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


_NUMBERS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def number_in_english(number: int) -> str:
    """Write a number below one hundred.

    >>> number_in_english(71)
    'seventy-one'
    """
    if number < 20:
        return _NUMBERS[number]
    tens, units = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_NUMBERS[units]}" if units else "")
