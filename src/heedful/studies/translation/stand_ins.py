"""Names and numbers that a model cannot copy: others stand in for them while it translates.

A small translator spells a name that it never met from pieces of words, and gets it wrong; a few
names it met a thousand times, and never gets wrong. So a sentence whose name or number is missing
from its translation is translated once more with such a name in its place, which then goes again:

    Madame Lefebvre habite à Vesoul.    Madame Mary habite à Boston.
                                        Mrs. Mary lives in Boston.    Mrs. Lefebvre lives in Vesoul.

That is done only where each of them comes out exactly once, where no other number goes astray, and
where the model finds what it then writes likelier than its first translation; else that one stays.
Whether a name is of a person or of a place nobody tells: both are tried, and the likelier is taken.
`TranslationFormat` says which names and numbers a model knows that well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from heedful.studies.translation.quality import NUMBER, numbers
from heedful.studies.translation.translator import Hypothesis, Translation, Translator

MOST = 3
"""Words of a sentence for which others stand in: with more, something else is wrong."""
FEWEST_TOKENS = 2
"""A name that is a token by itself is one that the model has met often."""
FIRST_TOKENS, FIRST_WORDS = 3, 3
"""The first word of a sentence has a capital whatever it is. It is taken for a name if it has so
many tokens when written small, as few words of the language have, and so many words follow."""
_WORD = r"(?!(?:Monsieur|Madame|Mademoiselle|Docteur)\b)[A-ZÀ-ÖØ-Þ][^\W\d_]+"
_NAME = re.compile(rf"^{_WORD}(?= )|(?<=[\s'’«(]){_WORD}(?:[ -]{_WORD})*")
"""A word with a capital, or several; the first word of a text by itself, unless a mark follows:
"Vraisemblablement, il dort" begins with no name."""
_ALONE = r"(?<![\w-])(?<!\d[.,:]){}(?![\w-]|[.,:]\d)"
"""A word, or a number that is no part of a larger one."""
_SEVERAL = frozenset(("les", "des", "aux", "ces", "mes", "ses", "nos", "vos", "leurs", "un", "une"))
"""Words before a capital that is no name: les Français are the French."""
_OPENING = '«“":—'
"""Marks after which another sentence begins: "Il a dit : « Viens »" has no name."""
_VOWELS = "AEIOUYHÀÂÄÉÈÊËÎÏÔÖÙÛÜ"


@dataclass(frozen=True, kw_only=True)
class Lent:
    """A sentence in which others stand in for some of its words."""

    text: str
    words: tuple[tuple[str, str], ...]
    """Each stand-in, and the word that is to be in its place again."""

    def restored(self, text: str) -> str | None:
        """Return a translation with the words in their places; None unless each came out once."""
        for stand_in, word in self.words:
            places = list(re.finditer(_ALONE.format(re.escape(stand_in)), text))
            if len(places) != 1:
                return None
            text = text[: places[0].start()] + word + text[places[0].end() :]
        return text


def missing_words(translator: Translator, one: Translation) -> list[str]:
    """Return the unfamiliar names and the numbers of a source that its translation has not."""
    source, tokens = one.source, translator.tokenizer.encode

    def unfamiliar(name: str, before: Sequence[str], after: Sequence[str]) -> bool:
        if before and before[-1][-1] not in _OPENING:
            return (
                before[-1].casefold() not in _SEVERAL and len(tokens(f" {name}")) >= FEWEST_TOKENS
            )
        small = len(tokens(f" {name.lower()}"))
        return small >= FIRST_TOKENS and len(after) >= FIRST_WORDS

    names = [
        name[0]
        for name in _NAME.finditer(source)
        if unfamiliar(name[0], source[: name.start()].split(), source[name.end() :].split())
        and not re.search(_ALONE.format(re.escape(name[0])), one.text)
    ]
    written = numbers(one.text)
    figures = [spelt for spelt in NUMBER.findall(source) if not numbers(spelt) <= written]
    return list(dict.fromkeys(chain(names, figures)))


def lent_sentences(translator: Translator, one: Translation) -> list[Lent]:
    """Return the ways to say a sentence with stand-ins; none where nothing is missing from it."""
    known = translator.format.stand_ins
    missing = missing_words(translator, one) if known else []
    if not missing or len(missing) > MOST:
        return []
    figures = [word for group in known for word in group if word.isdigit()]
    groups = [group for group in known if not group[0].isdigit()]
    # Without a name among the missing words it is the same whichever names are known.
    named = any(not word[0].isdigit() for word in missing)
    made = [_lent(one.source, missing, group, figures) for group in (groups if named else [()])]
    return [lent for lent in made if lent is not None]


def _lent(
    source: str, missing: Sequence[str], names: Sequence[str], figures: Sequence[str]
) -> Lent | None:
    text, words = source, []
    for word in missing:
        place = re.search(_ALONE.format(re.escape(word)), text)
        if place is None:
            return None
        free = [one for one in (*names, *figures) if one not in source and one not in text]
        elided = text[max(place.start() - 1, 0)] in "'’"
        stand_in = _chosen_for(word, free, elided=elided)
        if stand_in is None:
            return None
        text = text[: place.start()] + stand_in + text[place.end() :]
        words.append((stand_in, _in_english(word) if word[0].isdigit() else word))
    return Lent(text=text, words=tuple(words))


def _chosen_for(word: str, free: Sequence[str], *, elided: bool) -> str | None:
    """Return a stand-in of the same kind: as many digits, or the same sound after "d'" and "l'"."""
    if word[0].isdigit():
        digits = len(re.sub(r"\D", "", word))
        figures = [one for one in free if one.isdigit()]
        return min(figures, key=lambda one: (abs(len(one) - digits), one), default=None)
    fitting = (one for one in free if not one.isdigit() and (one[0] in _VOWELS) == elided)
    return next(fitting, None)


def _in_english(figure: str) -> str:
    """Write a number as English does: 12 000 is 12,000 there, and 3,5 is 3.5."""
    if "," in figure and "." not in figure:
        figure = figure.replace(",", ".")
    return re.sub(r"(?<=\d)[\u00a0\u202f ](?=\d{3})", ",", figure)


def best_restored(
    plain: Translation, lent: Sequence[Lent], found: Sequence[Translation]
) -> tuple[str, Hypothesis, Lent] | None:
    """Return the likeliest translation of which every stand-in could be taken back, if any.

    It must be likelier than what the model made of the sentence as it is, and no further from the
    numbers of that sentence.
    """
    wanted = numbers(plain.source)
    differing = len(wanted ^ numbers(plain.text))
    whole = [
        (text, hypothesis, one)
        for one, translation in zip(lent, found, strict=True)
        for hypothesis in translation.hypotheses
        if hypothesis.score > plain.hypotheses[0].score
        and (text := one.restored(hypothesis.text)) is not None
        and len(wanted ^ numbers(text)) <= differing
    ]
    return max(whole, key=lambda each: each[1].score, default=None)
