"""Text in one language, in short paragraphs, from the same words as the pairs.

A paragraph is about one person: named first, then taken up by a pronoun. The two languages are
drawn apart, so nobody can find a translation in them. The text keeps to what training may show:
no sentence of a held-out set, no combination kept for `test_unseen`, nothing longer than training.
"""

from __future__ import annotations

from heedful.data.draws import Draws, whole_number
from heedful.data.phrasebook import acting, describing, going, joining, measuring
from heedful.data.phrasebook.choices import pronoun_for, third_person
from heedful.data.phrasebook.clauses import Subject
from heedful.data.phrasebook.corpus import HELD_OUT, held_out_sentences, is_unseen
from heedful.data.phrasebook.templates import (
    LONGEST_IN_TRAINING,
    Pair,
    Template,
    drawn_pair,
    mixes_address,
    pair_of,
)
from heedful.errors import InputError

MOST_SENTENCES = 2_000_000
"""The longest text on offer."""

_ABOUT_SOMEBODY: tuple[Template, ...] = (
    acting.transitive,
    acting.habit,
    acting.nothing,
    acting.modal,
    acting.just,
    acting.before_and_now,
    acting.interrupted,
    going.dative,
    going.dative_clitic,
    going.speaking,
    going.intransitive,
    going.activity,
    going.moving,
    going.purpose,
    going.reflexive,
    describing.quality,
    measuring.age,
    measuring.having,
    measuring.since,
    joining.think_that,
    joining.because,
    joining.condition,
)


def monolingual(
    language: str, sentences: int, seed: int = 0, *, held_out: int = HELD_OUT
) -> tuple[str, ...]:
    """Return paragraphs of French (`fr`) or English (`en`), with that many sentences in all.

    `seed` and `held_out` are those of the phrasebook whose held-out sets the text avoids.

    >>> text = monolingual("fr", 12, held_out=20)
    >>> 2 <= len(text) <= 6
    True
    """
    if language not in ("fr", "en"):
        raise InputError(
            "monolingual.language", f"is {language!r}", expected="fr or en was expected"
        )
    whole_number("monolingual.sentences", sentences, 1, MOST_SENTENCES)
    forbidden = held_out_sentences(seed, held_out)
    draws = Draws(f"phrasebook {language} {seed}")
    paragraphs: list[str] = []
    left = sentences
    while left:
        length = min(3 + draws.below(3), left)
        paragraphs.append(" ".join(_paragraph(draws, language, length, seed, forbidden)))
        left -= length
    return tuple(paragraphs)


def _paragraph(
    draws: Draws, language: str, length: int, seed: int, forbidden: frozenset[str]
) -> list[str]:
    who: Subject = third_person(draws)
    found: list[str] = []
    while len(found) < length:
        pair = _next(draws, who if not found else pronoun_for(who))
        text = pair.french if language == "fr" else pair.english
        allowed = (
            pair.length <= LONGEST_IN_TRAINING
            and not is_unseen(pair, seed)
            and not mixes_address(pair.french)
        )
        if allowed and text not in forbidden and text not in found:
            found.append(text)
    return found


def _next(draws: Draws, who: Subject) -> Pair:
    if draws.chance(0.2):
        return drawn_pair(draws)
    template = draws.of(_ABOUT_SOMEBODY)
    return pair_of(template(draws, who), template.__name__)
