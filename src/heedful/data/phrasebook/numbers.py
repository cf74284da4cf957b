"""French numbers, hours and months."""

from __future__ import annotations

from heedful.data.phrasebook.english import number_in_english

_NUMBERS = [
    "zéro",
    "un",
    "deux",
    "trois",
    "quatre",
    "cinq",
    "six",
    "sept",
    "huit",
    "neuf",
    "dix",
    "onze",
    "douze",
    "treize",
    "quatorze",
    "quinze",
    "seize",
]
_TENS = {2: "vingt", 3: "trente", 4: "quarante", 5: "cinquante", 6: "soixante"}

MONTHS: tuple[tuple[str, str], ...] = (
    ("janvier", "January"),
    ("février", "February"),
    ("mars", "March"),
    ("avril", "April"),
    ("mai", "May"),
    ("juin", "June"),
    ("juillet", "July"),
    ("août", "August"),
    ("septembre", "September"),
    ("octobre", "October"),
    ("novembre", "November"),
    ("décembre", "December"),
)
DAYS: tuple[tuple[str, str], ...] = (
    ("lundi", "Monday"),
    ("mardi", "Tuesday"),
    ("mercredi", "Wednesday"),
    ("jeudi", "Thursday"),
    ("vendredi", "Friday"),
    ("samedi", "Saturday"),
    ("dimanche", "Sunday"),
)
ORDINALS: tuple[tuple[str, str, str], ...] = (
    ("premier", "première", "first"),
    ("deuxième", "deuxième", "second"),
    ("troisième", "troisième", "third"),
    ("quatrième", "quatrième", "fourth"),
)


def number_in_french(number: int, gender: str = "m") -> str:
    """Write a number below one hundred, in agreement where it ends in one.

    >>> [number_in_french(n) for n in (17, 21, 71, 80, 99)]
    ['dix-sept', 'vingt et un', 'soixante et onze', 'quatre-vingts', 'quatre-vingt-dix-neuf']
    >>> number_in_french(21, "f")
    'vingt et une'
    """
    text = _written(number)
    return text + "e" if gender == "f" and text.endswith("un") else text


def _written(number: int) -> str:
    if number <= 16:
        return _NUMBERS[number]
    if number < 20:
        return "dix-" + _NUMBERS[number - 10]
    if number >= 80:
        return "quatre-vingts" if number == 80 else "quatre-vingt-" + _written(number - 80)
    tens = min(number // 10, 6)
    rest = number - 10 * tens
    if rest == 0:
        return _TENS[tens]
    joined = " et " if rest in (1, 11) else "-"
    return _TENS[tens] + joined + _written(rest)


def hour_in_french(hour: int, minutes: int) -> str:
    """Write a time of day on the dial of twelve hours.

    >>> hour_in_french(1, 0), hour_in_french(7, 15), hour_in_french(12, 30), hour_in_french(8, 50)
    ('une heure', 'sept heures et quart', 'midi et demi', 'neuf heures moins dix')
    """
    if minutes > 30:
        hour = hour % 12 + 1
    name = "midi" if hour == 12 else f"{number_in_french(hour, 'f')} heure{'s' * (hour > 1)}"
    half = " et demi" if hour == 12 else " et demie"
    past = {0: "", 15: " et quart", 30: half, 45: " moins le quart"}
    if minutes in past:
        return name + past[minutes]
    if minutes < 30:
        return f"{name} {number_in_french(minutes)}"
    return f"{name} moins {number_in_french(60 - minutes)}"


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
