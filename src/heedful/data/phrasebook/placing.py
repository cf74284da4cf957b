"""Templates of places: what there is somewhere, and where a thing is."""

from __future__ import annotations

from heedful.data.draws import Draws
from heedful.data.phrasebook.choices import (
    as_subject,
    some_adjective,
)
from heedful.data.phrasebook.clauses import Subject, be
from heedful.data.phrasebook.conjugation import present
from heedful.data.phrasebook.describing import some_thing
from heedful.data.phrasebook.drafts import Draft, joined
from heedful.data.phrasebook.noun_phrases import Phrase, noun_phrase, of
from heedful.data.phrasebook.nouns import BY_LEMMA, NOUNS, Noun
from heedful.data.phrasebook.occasions import Words, inside

_IN_THINGS: tuple[Noun, ...] = NOUNS["container"]
_PUT: tuple[Noun, ...] = NOUNS["small"] + NOUNS["dishes"] + NOUNS["fruit"]


def there_is(draws: Draws, who: Subject | None = None) -> Draft:
    """There are three glasses on the table, or there is no cake in the fridge."""
    place, thing = _place_and_thing(draws)
    kind = draws.share()
    if kind < 0.2:
        phrase = noun_phrase(thing, "indefinite", plural=True, negation="pas")
        return Draft(
            f"il n'y a pas {phrase.french} {place.french}",
            f"there aren't {phrase.english} {place.english}",
        )
    if kind < 0.5:
        described = some_adjective(draws, thing, 0.4)
        phrase = noun_phrase(thing, "indefinite", adjectives=described)
        return Draft(
            f"il y a {phrase.french} {place.french}",
            f"there is {phrase.english} {place.english}",
            phrase.combinations,
        )
    if kind < 0.75:
        number = 2 + draws.below(19)
        phrase = noun_phrase(thing, "number", plural=True, number=number)
    else:
        quantity = draws.of(("beaucoup de", "quelques", "plusieurs", "trop de"))
        phrase = noun_phrase(thing, quantity, plural=True)
    past = draws.chance(0.25)
    return Draft(
        f"il y {'avait' if past else 'a'} {phrase.french} {place.french}",
        f"there {'were' if past else 'are'} {phrase.english} {place.english}",
    )


def _place_and_thing(draws: Draws) -> tuple[Words, Noun]:
    kind = draws.share()
    if kind < 0.4:
        return beside(draws, draws.of(NOUNS["surface"])), draws.of(_PUT)
    if kind < 0.7:
        return inside(draws.of(_IN_THINGS)), draws.of(_PUT)
    if kind < 0.85:
        return inside(draws.of(NOUNS["room"])), draws.of(NOUNS["seat"] + _SEEN_IN_ROOMS)
    return inside(BY_LEMMA["jardin"]), draws.of(NOUNS["plant"] + NOUNS["pet"] + NOUNS["wild"][:10])


_SEEN_IN_ROOMS = tuple(
    BY_LEMMA[lemma] for lemma in ("table", "lampe", "miroir", "tapis", "étagère", "plante")
)
_BESIDE = (
    ("sur", "on"),
    ("sous", "under"),
    ("devant", "in front of"),
    ("derrière", "behind"),
    ("à côté de", "next to"),
    ("près de", "near"),
)


def beside(draws: Draws, noun: Noun) -> Words:
    """Draw a place on, under or next to something."""
    return _placed(*draws.of(_BESIDE), noun_phrase(noun, "definite"))


def _placed(before: str, english: str, phrase: Phrase) -> Words:
    if before.endswith(" de"):
        return Words(f"{before[:-3]} {of(phrase.french)}", f"{english} {phrase.english}")
    return Words(f"{before} {phrase.french}", f"{english} {phrase.english}")


def where_it_is(draws: Draws, who: Subject | None = None) -> Draft:
    """A thing is under the chair, or a building opposite the station."""
    if draws.chance(0.6):
        noun, plural = draws.of(_PUT), draws.chance(0.25)
        phrase = some_thing(draws, noun, plural)
        surface = draws.chance(0.6)
        place = (
            beside(draws, draws.of(NOUNS["surface"])) if surface else inside(draws.of(_IN_THINGS))
        )
    else:
        noun, other = draws.of(_BUILDINGS), draws.of(_BUILDINGS)
        while other == noun:
            other = draws.of(_BUILDINGS)
        phrase = noun_phrase(noun, "definite")
        place = _placed(*draws.of(_NEAR), noun_phrase(other, "definite"))
    thing = as_subject(phrase)
    negation = draws.chance(0.15)
    is_ = present("être", thing.person)
    french = joined(thing.french, f"ne {is_} pas" if negation else is_, place.french)
    english = joined(thing.english, be(thing) + ("n't" if negation else ""), place.english)
    return Draft(french, english, phrase.combinations)


_BUILDINGS: tuple[Noun, ...] = tuple(
    noun for noun in NOUNS["shop"] + NOUNS["building"] if noun.lemma != "hangar"
)
_NEAR = (
    ("en face de", "opposite"),
    ("à côté de", "next to"),
    ("près de", "near"),
    ("derrière", "behind"),
    ("devant", "in front of"),
    ("loin de", "far from"),
)
