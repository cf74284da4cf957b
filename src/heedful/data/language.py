"""Which language a text is in, told by its commonest words; with the reason.

Good enough to tell the columns of a file apart, and honest when it is not: a guess needs
several hits and twice as many as the next language, else there is none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

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

SAMPLE = 2000
"""Texts looked at, spread over the whole corpus."""
LONGEST = 400
"""Characters looked at in each of them."""
FEWEST_HITS = 3

_WORDS = {language: frozenset(words.split()) for language, words in COMMON.items()}
_WORD = re.compile(r"[^\W\d_]+")


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
