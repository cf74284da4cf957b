"""Languages: their codes, the ends of file names, and what language texts are in.

A language is told by its commonest words, with the reason: good enough to tell the columns of a
file apart, and honest when it is not. A guess needs several hits and twice as many as the next
language, else there is none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import InputError

CODES = (
    "ar bg ca cs cy da de el en eo es et eu fa fi fr ga gl he hi hr hu hy id is it ja ka ko la lt "
    "lv mk ms mt nb nl nn no pl pt ro ru sk sl sq sr sv ta th tr uk ur vi zh "
    "deu ell eng epo fin fra hun ita jpn lat nld pol por ron rus spa swe tur ukr zho"
)
"""Codes of languages (ISO 639), as file names end in them and fields are called by them."""

_CODE = re.compile(r"([a-z]{2,3})([-_][A-Za-z]{2,4})?")
COMMON = {
    "en": "the of and to in is that for it with as was on be at by this are you he she not have "
    "what his her they we my your do don t s i me from had who how all there can where when born",
    "fr": "le la les de des du et un une est que dans pour pas je il elle vous nous ne au ce sur "
    "qui l d c j n qu avec se sa son ses mon ma être plus était tu y où à ça",
    "de": "der die das und ist nicht ich sie zu den ein eine mit es von auf du wir er dem im für "
    "was war hat sich auch wie aber bei",
    "es": "el la los las de y que en un una es no se por con para su lo como más pero al del yo "
    "está muy qué mi te le",
    "it": "il la i gli le di e che è un una non per con sono si mi ha del della in da io lo come "
    "più questo ti ma al",
    "nl": "de het een en van ik is dat niet je op te in zijn met voor hij ze was er aan maar wat "
    "om die ook naar",
    "pt": "o a os as de e que em um uma é não se por com para do da no na eu ele mais como mas "
    "está muito você seu",
}
NAMES = {
    "en": "English", "fr": "French", "de": "German", "es": "Spanish", "it": "Italian",
    "nl": "Dutch", "pt": "Portuguese",
}  # fmt: skip

_GRAMMAR = {
    "en": "a about after all also am an and any are aren't as at be because been before being but "
    "by can can't cannot could couldn't did didn't do does doesn't doing don't down for from "
    "get go going got had hadn't has hasn't have haven't having he he'd he'll he's her here "
    "hers him his how i i'd i'll i'm i've if in into is isn't it it'll it's its itself just "
    "let let's like may me might more most much must my no nor not of off on one or our out "
    "over own really should shouldn't so some such than that that's the their them then there "
    "there's these they they'd they'll they're they've this those to too up us very was "
    "wasn't we we'd we'll we're we've were weren't what what's when where which while who "
    "whom whose why will with won't would wouldn't you you'd you'll you're you've your yours",
}
GRAMMAR = {language: frozenset(words.split()) for language, words in _GRAMMAR.items()}
"""Words that carry grammar more than content, and words for which there are others."""

SAMPLE = 2000
"""Texts looked at, spread over the whole corpus."""
LONGEST = 400
"""Characters looked at in each of them."""
FEWEST_HITS = 3

_WORDS = {language: frozenset(words.split()) for language, words in COMMON.items()}
_WORD = re.compile(r"[^\W\d_]+")
_WHOLE_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


@dataclass(frozen=True, kw_only=True)
class Guess:
    """What a sample of texts reads as."""

    language: str | None
    """The code of the language, or None where it cannot be told."""
    reason: str
    """Why, as the end of a sentence that starts with what the texts are."""


def guess_language(texts: Sequence[str]) -> Guess:
    """Tell the language of texts from their commonest words.

    >>> guess_language(["Il est là.", "Je ne le vois pas."]).language
    'fr'
    >>> guess_language(["Paris", "London"])
    Guess(language=None, reason='is in no language that 2 words would tell')
    """
    step = max(1, len(texts) // SAMPLE)
    words = [word for text in texts[::step] for word in _WORD.findall(text[:LONGEST].lower())]
    hits = {language: sum(word in common for word in words) for language, common in _WORDS.items()}
    (best, most), (second, fewer) = sorted(hits.items(), key=lambda item: -item[1])[:2]
    if most < FEWEST_HITS or most < 2 * fewer:
        return Guess(
            language=None, reason=f"is in no language that {len(words):,} words would tell"
        )
    return Guess(
        language=best,
        reason=f"reads as {NAMES[best]}: {most / len(words):.0%} of {len(words):,} words are "
        f"common in {NAMES[best]}, {fewer / len(words):.0%} in {NAMES[second]}",
    )


def language_ending(path: Path) -> str:
    """Return the language a file name ends in, before .gz; or nothing.

    >>> language_ending(Path("train.fr.gz")), language_ending(Path("notes.txt"))
    ('fr', '')
    """
    ending = plain_name(path).suffix.removeprefix(".")
    return ending if is_language(ending) else ""


def is_language(name: str) -> bool:
    """Tell whether a name is the code of a language, with or without its region.

    >>> is_language("fr"), is_language("pt-BR"), is_language("md")
    (True, True, False)
    """
    code = _CODE.fullmatch(name)
    return code is not None and code.group(1) in CODES.split()


def plain_name(path: Path) -> Path:
    """Return the name of a file without the .gz of its packing."""
    return Path(path.stem if path.suffix == ".gz" else path.name)


def name_sides(
    sides: Sequence[Sequence[str]], given: tuple[str, str] | None, standing_in: tuple[str, str]
) -> tuple[tuple[str, str], list[str]]:
    """Return what the two sides are called, and the notes that say why."""
    if given is not None:
        if given[0] == given[1]:
            raise InputError(
                "languages",
                f"are both {given[0]!r}",
                expected="two different names were expected",
            )
        return given, []
    guesses = [guess_language(side) for side in sides]
    notes = [f"{name} {guess.reason}" for name, guess in zip(standing_in, guesses, strict=True)]
    languages = [guess.language for guess in guesses]
    if languages[0] is None or languages[1] is None or languages[0] == languages[1]:
        return standing_in, notes
    return (languages[0], languages[1]), notes


def words_in(text: str) -> list[str]:
    """Return the words of a text in small letters; "don't" is one.

    >>> words_in("Don’t eat 12 apples!")
    ["don't", 'eat', '12', 'apples']
    """
    return [word.replace("’", "'") for word in _WHOLE_WORD.findall(text.casefold())]


def content_words(text: str, language: str = "en") -> list[str]:
    """Return the words that carry content: those that are not in `GRAMMAR`.

    >>> content_words("He has been sleeping on our sofa since this morning.")
    ['sleeping', 'sofa', 'since', 'morning']
    """
    grammar = GRAMMAR[language]
    return [word for word in words_in(text) if word not in grammar]
