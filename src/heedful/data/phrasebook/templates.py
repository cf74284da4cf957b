"""All templates with the share each one has of the corpus, and pairs drawn from them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from heedful.data.draws import Draws, running_sum
from heedful.data.phrasebook import (
    acting,
    asking,
    describing,
    going,
    joining,
    measuring,
    ordering,
    placing,
)
from heedful.data.phrasebook.clauses import Subject
from heedful.data.phrasebook.drafts import Draft, finished
from heedful.data.phrasebook.orthography import word_count
from heedful.records import Record

Template = Callable[[Draws, Subject | None], Draft]

SHARES: dict[Template, float] = {
    acting.transitive: 12,
    acting.habit: 5,
    acting.nothing: 2,
    acting.modal: 6,
    acting.clitic: 3,
    acting.just: 3,
    acting.before_and_now: 3,
    acting.interrupted: 3,
    going.dative: 4,
    going.dative_clitic: 4,
    going.speaking: 3,
    going.intransitive: 4,
    going.activity: 3,
    going.moving: 4,
    going.purpose: 3,
    going.reflexive: 3,
    describing.quality: 4,
    describing.property_of_thing: 5,
    describing.comparison: 3,
    placing.there_is: 4,
    placing.where_it_is: 3,
    describing.profession: 1.5,
    describing.belongs_to: 2,
    describing.this_is: 3,
    asking.with_est_ce_que: 4,
    asking.with_inversion: 4,
    asking.with_question_word: 4,
    asking.where_to: 2,
    asking.how_many: 1.5,
    asking.which: 1.5,
    asking.is_there: 1,
    asking.who_does: 2,
    measuring.at_an_hour: 2,
    measuring.on_a_date: 2,
    measuring.price: 2,
    measuring.age: 1,
    measuring.having: 2,
    measuring.hurting: 0.3,
    measuring.weather: 1.5,
    ordering.directions: 1.5,
    ordering.polite_order: 0.3,
    measuring.since: 2,
    ordering.command: 3,
    ordering.give_me: 2,
    ordering.oneself: 1,
    joining.relative_subject: 4,
    joining.relative_object: 4,
    joining.relative_place: 1.5,
    joining.think_that: 3,
    joining.two_clauses: 4,
    joining.because: 1.5,
    joining.condition: 3,
    joining.three_clauses: 4,
}
"""How often each template is drawn, relative to the others."""

_TEMPLATES = tuple(SHARES)
_WEIGHTS = running_sum(tuple(SHARES.values()))

# Nobody is called tu and vous in one sentence.
_FAMILIAR = re.compile(r"\b(?:tu|te|ton|ta|tes)\b|\bt'", re.IGNORECASE)
_POLITE = re.compile(r"\b(?:vous|votre|vos)\b", re.IGNORECASE)

LENGTH_CLASSES = ((5, "short"), (8, "medium"), (11, "long"))
LONGEST_IN_TRAINING = 11
"""French words in the longest training sentence; `test_length` begins above it."""


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Pair(Record):
    """A French sentence and its English translation."""

    french: str
    """The sentence to translate."""
    english: str
    """The reference translation: one for each French sentence."""
    others: tuple[str, ...]
    """Other good translations, for scoring with several references."""
    template: str
    """Which template wrote it."""
    length: int
    """Words in the French sentence; l'homme counts as two."""
    length_class: str
    """`short`, `medium`, `long`, or `beyond` what training shows."""
    combinations: tuple[str, ...]
    """The pairs noun+adjective and verb+object in it, by lemma."""

    @property
    def references(self) -> tuple[str, ...]:
        """All good translations, the reference first."""
        return (self.english, *self.others)


def length_class(words: int) -> str:
    """Return the class of a sentence by its number of French words."""
    return next((name for limit, name in LENGTH_CLASSES if words <= limit), "beyond")


def drawn_pair(draws: Draws) -> Pair:
    """Draw a template, and a pair from it."""
    template = draws.weighted(_TEMPLATES, _WEIGHTS)
    while True:
        pair = pair_of(template(draws, None), template.__name__)
        if not mixes_address(pair.french):
            return pair


def mixes_address(french: str) -> bool:
    """Say whether a sentence calls somebody both tu and vous.

    >>> mixes_address("Vous parlez à ton frère.")
    True
    """
    return bool(_FAMILIAR.search(french) and _POLITE.search(french))


def pair_of(draft: Draft, template: str) -> Pair:
    """Finish a draft."""
    french, english, others = finished(draft)
    words = word_count(french)
    return Pair(
        french=french,
        english=english,
        others=others,
        template=template,
        length=words,
        length_class=length_class(words),
        combinations=tuple(dict.fromkeys(draft.combinations)),
    )
