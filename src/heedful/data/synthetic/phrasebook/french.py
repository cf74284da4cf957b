"""French word forms and spelling: conjugation, elision, numbers, hours, punctuation.

Persons are numbered 0 to 5: je, tu, il, nous, vous, ils. The imparfait is made from the first
person plural of the present (nous mange-ons, je mange-ais); être is the one exception.

The spelling is that of a keyboard: a straight apostrophe (') and a plain space before ? ! : and ;.
Printed French has U+00A0 or U+202F there and ’; `keyboard` folds what people paste to the keyboard
spelling, and `typeset` turns a sentence of the corpus into print.
"""

from __future__ import annotations

import re
from functools import cache

from heedful.data.synthetic import read_vocabulary
from heedful.data.synthetic.phrasebook.vocabulary import BY_LEMMA

_TABLES = read_vocabulary(__file__, "french")
_FORMS = {infinitive: tuple(line.split()) for infinitive, line in _TABLES["irregular"].items()}
_PREFIXED: dict[str, list[str]] = _TABLES["prefixed"]
_ONES, _TENS = _TABLES["numbers"]["ones"], _TABLES["numbers"]["tens"]
_DOUBLING = frozenset(("appeler", "jeter", "rappeler"))
_ENDINGS = ("ais", "ais", "ait", "ions", "iez", "aient")
_FIRST_GROUP = ("e", "es", "e", "ons", "ez", "ent")
_SECOND_GROUP = ("is", "is", "it", "issons", "issez", "issent")
_THIRD_GROUP = ("s", "s", "", "ons", "ez", "ent")


@cache
def forms(infinitive: str) -> tuple[str, ...]:
    """Return the six forms of the present and the past participle.

    >>> forms("acheter")[:4]
    ('achète', 'achètes', 'achète', 'achetons')
    >>> forms("comprendre")[5:]
    ('comprennent', 'compris')
    """
    if infinitive in _FORMS:
        return _FORMS[infinitive]
    if infinitive in _PREFIXED:
        prefix, root = _PREFIXED[infinitive]
        return tuple(prefix + form for form in forms(root))
    stem, ending = infinitive[:-2], infinitive[-2:]
    if ending == "er":
        return _first_group(infinitive, stem)
    if ending == "ir":
        return (*(stem + one for one in _SECOND_GROUP), stem + "i")
    return (*(stem + one for one in _THIRD_GROUP), stem + "u")


def _first_group(infinitive: str, stem: str) -> tuple[str, ...]:
    weak = _silent_stem(infinitive, stem)
    soft = {"g": stem + "e", "c": stem[:-1] + "ç"}.get(stem[-1], stem)
    singular = [weak + ending for ending in _FIRST_GROUP[:3]]
    return (*singular, soft + "ons", stem + "ez", weak + "ent", stem + "é")


def _silent_stem(infinitive: str, stem: str) -> str:
    """Return the stem before a silent ending: achèt-, appell-, préfèr-, nettoi-."""
    if infinitive in _DOUBLING:
        return stem + stem[-1]
    if stem.endswith(("oy", "uy", "ay")):
        return stem[:-1] + "i"
    if len(stem) > 2 and stem[-2] in "eé" and stem[-1] not in "aeiouyé":
        return stem[:-2] + "è" + stem[-1]
    return stem


@cache
def present(infinitive: str, person: int) -> str:
    """Return one form of the present."""
    return forms(infinitive)[person]


@cache
def imperfect(infinitive: str, person: int) -> str:
    """Return one form of the imparfait.

    >>> imperfect("manger", 2), imperfect("manger", 3), imperfect("finir", 0)
    ('mangeait', 'mangions', 'finissais')
    """
    if infinitive == "être":
        return "ét" + _ENDINGS[person]
    stem = forms(infinitive)[3].removesuffix("ons")
    # The e of mangeons and the ç of commençons stand only before a, so not before ions and iez.
    if person in (3, 4) and infinitive.endswith(("ger", "cer")):
        stem = infinitive[:-2]
    return stem + _ENDINGS[person]


def participle(infinitive: str, gender: str = "m", plural: bool = False) -> str:
    """Return the past participle in agreement.

    >>> participle("prendre", "f", True), participle("devoir", "f")
    ('prises', 'due')
    """
    form = forms(infinitive)[6]
    if gender == "f":
        form = ("du" if form == "dû" else form) + "e"
    return form + "s" if plural and not form.endswith("s") else form


def imperative(infinitive: str, person: int) -> str:
    """Return the imperative for tu (1), nous (3) or vous (4).

    >>> imperative("manger", 1), imperative("aller", 1), imperative("prendre", 1)
    ('mange', 'va', 'prends')
    """
    form = present(infinitive, person)
    drops_s = person == 1 and (form.endswith("es") or infinitive == "aller")
    return form[:-1] if drops_s else form


# Spelling

ASPIRATED = tuple(
    sorted(
        {noun.singular for noun in BY_LEMMA.values() if noun.aspirated} | {"haut", "huit", "onz"}
    )
)
"""Beginnings of words before which nothing is elided."""

_VOWEL = "aàâeéèêëiîïoôuùûœhAÀÂEÉÈÊËIÎÏOÔUÙÛŒH"
_SOUND = rf"(?=y\b|(?!(?:{'|'.join(ASPIRATED)}))[{_VOWEL}])"
_ELIDED = re.compile(rf"(?<![\w'-])(j|n|m|t|s|d|qu|jusqu)e {_SOUND}|(?<![\w'-])(l)[ea] {_SOUND}")
_IF_HE = re.compile(r"\bsi (?=ils?\b)")
_WORD = re.compile(r"\w+")
_BEFORE_TALL = re.compile(r"[ \u00a0\u202f]+(?=[?!:;])")


def begins_with_vowel(word: str) -> bool:
    """Say whether a word makes the one before it elide or change (l', cet, bel, mon).

    >>> [begins_with_vowel(word) for word in ("hôtel", "haricot", "œuf", "onze", "maison")]
    [True, False, True, False, False]
    """
    return word[0] in _VOWEL and not word.startswith(ASPIRATED)


def elide(text: str) -> str:
    """Join the small words to the vowel after them.

    >>> elide("je ne ai pas parce que il a le haricot")
    "je n'ai pas parce qu'il a le haricot"
    """
    text = _IF_HE.sub("s'", text)
    return _ELIDED.sub(lambda match: (match[1] or match[2]) + "'", text)


def sentence(text: str, mark: str = ".") -> str:
    """Finish a French sentence: elision, a capital, and its mark after the right space."""
    text = elide(text)
    return text[0].upper() + text[1:] + (mark if mark == "." else " " + mark)


def word_count(text: str) -> int:
    """Count words: runs of letters or digits, so l'homme is two and a mark is none."""
    return len(_WORD.findall(text))


def words(text: str) -> list[str]:
    """Return the words of a sentence in lower case."""
    return _WORD.findall(text.lower())


def keyboard(text: str) -> str:
    """Fold typographic French to the policy of the corpus.

    >>> keyboard("Où est l’hôtel\\u202f?")
    "Où est l'hôtel ?"
    """
    folded = text.replace("’", "'").replace("\u00a0", " ").replace("\u202f", " ")
    return _BEFORE_TALL.sub(" ", folded)


def typeset(text: str) -> str:
    """Return a sentence of the corpus as print has it: ’ and U+00A0 before tall marks."""
    return _BEFORE_TALL.sub("\u00a0", text.replace("'", "’"))


# Numbers and hours


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
        return str(_ONES[number])
    if number < 20:
        return "dix-" + str(_ONES[number - 10])
    if number >= 80:
        return "quatre-vingts" if number == 80 else "quatre-vingt-" + _written(number - 80)
    tens = min(number // 10, 6)
    rest = number - 10 * tens
    if rest == 0:
        return str(_TENS[tens])
    joined = " et " if rest in (1, 11) else "-"
    return f"{_TENS[tens]}{joined}{_written(rest)}"


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
