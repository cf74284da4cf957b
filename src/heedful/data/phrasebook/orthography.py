"""How French is written here: elision, capitals, and the space before tall punctuation.

The policy is the French of a keyboard: a straight apostrophe (') and a plain space before
? ! : and ;. Printed French has U+00A0 or U+202F there and ’; `keyboard` folds what people paste
to the policy, and `typeset` turns a sentence of the corpus into print.
"""

from __future__ import annotations

import re

from heedful.data.phrasebook.nouns import BY_LEMMA

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
    return _ELIDED.sub(lambda found: (found[1] or found[2]) + "'", text)


def sentence(text: str, mark: str = ".") -> str:
    """Finish a French sentence: elision, a capital, and its mark after the right space."""
    text = elide(text)
    return text[0].upper() + text[1:] + (mark if mark == "." else " " + mark)


def english_sentence(text: str, mark: str = ".") -> str:
    """Finish an English sentence."""
    return text[0].upper() + text[1:] + mark


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
