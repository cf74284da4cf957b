"""Draws of the pieces of a sentence: who, what, how, when and where, as makes sense together."""

from __future__ import annotations

from collections.abc import Container

from heedful.data.synthetic import Draws
from heedful.data.synthetic.phrasebook.clauses import Owner, Phrase, Subject, at, noun_phrase
from heedful.data.synthetic.phrasebook.vocabulary import (
    BY_LEMMA,
    DAYS,
    NO_WORDS,
    NOUNS,
    TRANSITIVE,
    Adjective,
    Noun,
    Verb,
    Words,
    adjectives_of,
    verbs_for,
    word_pairs,
    word_table,
)

OWNERS = (Owner(0, "my"), Owner(1, "your"), Owner(3, "our"), Owner(4, "your"))
_HIS, _HER, _THEIR = Owner(2, "his"), Owner(2, "her"), Owner(5, "their")
_TABLE = (
    ("je", "I", 0, "I"),
    ("tu", "you", 1, "other"),
    ("nous", "we", 3, "other"),
    ("vous", "you", 4, "other"),
)
PRONOUNS: tuple[Subject, ...] = (
    *(
        Subject(french, english, person, gender, person > 2, agreement, owner, True)
        for (french, english, person, agreement), owner in zip(_TABLE, OWNERS, strict=True)
        for gender in "mf"
    ),
    Subject("il", "he", 2, "m", False, "third", _HIS, True),
    Subject("elle", "she", 2, "f", False, "third", _HER, True),
    Subject("ils", "they", 5, "m", True, "other", _THEIR, True),
    Subject("elles", "they", 5, "f", True, "other", _THEIR, True),
)
"""Subject pronouns; those that do not show their gender come with both."""
NAMES: tuple[Subject, ...] = (
    *(
        Subject(name, name, 2, "m", False, "third", _HIS, False)
        for name in word_table("names")["men"]
    ),
    *(
        Subject(name, name, 2, "f", False, "third", _HER, False)
        for name in word_table("names")["women"]
    ),
)
"""People called by their first name."""
_POSSESSED = frozenset(
    ("thing", "clothing", "pair", "pet", "room", "home", "owned_vehicle", "luggage", "dishes")
)
_NOT_YET_OWNED = frozenset(verbs_for("not_yet_owned"))
_ONE_AT_A_TIME = frozenset(verbs_for("one_at_a_time"))
_OF_SEVERAL = frozenset(verbs_for("of_several"))
_ONE_OF_A_KIND = frozenset(("room", "opening", "shop", "building"))


# Who and what


def subject(draws: Draws) -> Subject:
    """Draw who does it: a pronoun, a name, or a person by trade or kinship."""
    kind = draws.share()
    if kind < 0.45:
        return draws.of(PRONOUNS)
    return draws.of(NAMES) if kind < 0.68 else someone(draws)


def other_subject(draws: Draws, first: Subject) -> Subject:
    """Draw somebody else."""
    second = subject(draws)
    while second.french == first.french or second.english == first.english:
        second = subject(draws)
    return second


def third_person(draws: Draws) -> Subject:
    """Draw a subject that is named, not a pronoun."""
    return draws.of(NAMES) if draws.chance(0.45) else someone(draws)


def someone(draws: Draws) -> Subject:
    """Draw a person or relative, one or several."""
    group = draws.share()
    if group < 0.15:
        noun, owner = draws.of(NOUNS["parent"]), draws.of(OWNERS)
        if noun.lemma == "mari" and owner.english == "our":
            owner = OWNERS[0]
        phrase = noun_phrase(noun, "possessive", owner=owner)
    elif group < 0.45:
        noun, plural = draws.of(NOUNS["kin"]), draws.chance(0.3)
        phrase = noun_phrase(noun, "possessive", plural=plural, owner=draws.of(OWNERS))
    else:
        noun, plural = draws.of(NOUNS["person"]), draws.chance(0.35)
        kind = "demonstrative" if draws.chance(0.15) else "definite"
        phrase = noun_phrase(
            noun, kind, plural=plural, adjectives=some_adjective(draws, noun, 0.12)
        )
    return as_subject(phrase)


def as_subject(phrase: Phrase) -> Subject:
    """Let a noun phrase of the third person do something."""
    owner = _THEIR if phrase.plural else _HIS if phrase.gender == "m" else _HER
    return Subject(
        phrase.french,
        phrase.english,
        5 if phrase.plural else 2,
        phrase.gender,
        phrase.plural,
        "other" if phrase.plural else "third",
        owner,
        False,
        phrase.combinations,
        phrase.lemma,
    )


def pronoun_for(who: Subject) -> Subject:
    """Return the pronoun that takes up a subject of the third person."""
    french = {(2, "m"): "il", (2, "f"): "elle", (5, "m"): "ils", (5, "f"): "elles"}[
        (who.person, who.gender)
    ]
    return next(one for one in PRONOUNS if one.french == french)


def some_adjective(draws: Draws, noun: Noun, probability: float) -> tuple[Adjective, ...]:
    """Draw an adjective that can be said of a noun, before or after it, or none."""
    if not draws.chance(probability):
        return ()
    before, after = adjectives_of(noun, "before"), adjectives_of(noun, "after")
    # After `le`, `bon` and `mauvais` mean the right one and the wrong one: kept for `c'est un`.
    fitting = [one for one in before + after if one.lemma not in ("bon", "mauvais")]
    return (draws.of(fitting),) if fitting else ()


def thing_done_to(
    draws: Draws,
    verb: Verb,
    who: Subject,
    negation: str = "",
    adjective: float = 0.25,
    habitual: bool = False,
) -> tuple[Phrase, Noun]:
    """Draw what a verb is done to, with a determiner that makes sense."""
    noun = draws.of(verb.objects)
    return object_phrase(draws, noun, verb, who, negation, adjective, habitual), noun


def object_phrase(
    draws: Draws,
    noun: Noun,
    verb: Verb,
    who: Subject,
    negation: str,
    adjective: float,
    habitual: bool,
) -> Phrase:
    """Put a determiner, and perhaps an adjective, to what a verb is done to."""
    classes = noun.classes
    if "g" in verb.marks:
        return noun_phrase(noun, "generic", plural=not noun.is_mass)
    if "kin" in classes:
        owner = some_owner(draws, who, 0.5)
        return noun_phrase(noun, "possessive", plural=draws.chance(0.25), owner=owner)
    described = some_adjective(draws, noun, adjective)
    if "person" in classes:
        kind = "definite" if draws.chance(0.7) else "demonstrative"
        return noun_phrase(noun, kind, plural=draws.chance(0.3), adjectives=described)
    if noun.is_mass:
        return _measured(draws, noun, negation, described)
    owner = some_owner(draws, who, 0.7)
    may_own = not _POSSESSED.isdisjoint(classes) and verb.infinitive not in _NOT_YET_OWNED
    if may_own and draws.chance(0.3):
        plural = "pair" in classes or draws.chance(0.15)
        return noun_phrase(noun, "possessive", plural=plural, adjectives=described, owner=owner)
    if negation in ("jamais", "plus"):
        if _ONE_OF_A_KIND.isdisjoint(classes):
            return noun_phrase(
                noun, "indefinite", plural=True, adjectives=described, negation=negation
            )
        return noun_phrase(noun, "definite", adjectives=described)
    if verb.infinitive in _ONE_AT_A_TIME and "pair" not in classes:
        kind = draws.of(("indefinite", "indefinite", "definite", "demonstrative"))
        return noun_phrase(noun, kind, adjectives=described, negation=negation)
    several = verb.infinitive in _OF_SEVERAL
    if negation and not several:
        kind = draws.of(("definite", "definite", "demonstrative"))
        return noun_phrase(noun, kind, plural=draws.chance(0.2), adjectives=described)
    return _counted(
        draws,
        noun,
        negation,
        described,
        numbers=several and not (negation or habitual),
        together=bool(negation) or habitual,
    )


def some_owner(draws: Draws, who: Subject, own: float) -> Owner:
    """Draw whose: the subject's own, or another's (tu and vous never meet in one sentence)."""
    if draws.chance(own):
        return who.owner
    return draws.of(OWNERS[::2] if who.person in (1, 4) else OWNERS)


def _measured(draws: Draws, noun: Noun, negation: str, described: tuple[Adjective, ...]) -> Phrase:
    kind = draws.share()
    if kind < 0.2 and negation != "plus":
        return noun_phrase(noun, "definite", adjectives=described)
    if kind < 0.35 and not negation:
        return noun_phrase(noun, draws.of(("beaucoup de", "trop de", "assez de")))
    return noun_phrase(noun, "indefinite", adjectives=described, negation=negation)


def _counted(
    draws: Draws,
    noun: Noun,
    negation: str,
    described: tuple[Adjective, ...],
    *,
    numbers: bool,
    together: bool,
) -> Phrase:
    kind = draws.share()
    pair = "pair" in noun.classes
    if kind < 0.3:
        plural = pair or together or draws.chance(0.25)
        return noun_phrase(
            noun, "indefinite", plural=plural, adjectives=described, negation=negation
        )
    if kind < 0.65:
        plural = pair or draws.chance(0.25)
        return noun_phrase(noun, "definite", plural=plural, adjectives=described)
    if kind < 0.8 or pair or not numbers:
        plural = pair or draws.chance(0.25)
        return noun_phrase(noun, "demonstrative", plural=plural, adjectives=described)
    if kind < 0.93:
        number = 2 + draws.below(9)
        return noun_phrase(noun, "number", plural=True, adjectives=described, number=number)
    quantity = draws.of(("beaucoup de", "trop de", "quelques", "plusieurs", "assez de"))
    return noun_phrase(noun, quantity, plural=True)


def some_thing(draws: Draws, noun: Noun, plural: bool) -> Phrase:
    """Draw a determiner for a thing that is spoken of: my, this, or the."""
    owned = {"thing", "clothing", "pair", "pet", "room", "home", "owned_vehicle"}
    if draws.chance(0.35) and owned & noun.classes:
        return noun_phrase(noun, "possessive", plural=plural, owner=draws.of(OWNERS))
    kind = "demonstrative" if draws.chance(0.4) else "definite"
    return noun_phrase(noun, kind, plural=plural)


# How: the verb, its tense and its negation

TENSES = ("present", "present", "past", "past", "near")
MOMENTS = ("past", "near")
_NEGATIONS = ("pas", "pas", "pas", "jamais", "plus")


def some_negation(draws: Draws, tense: str, probability: float = 0.25) -> str:
    """Draw a negation that goes with a tense, or none."""
    if not draws.chance(probability):
        return ""
    return draws.of(_NEGATIONS) if tense == "present" else "pas"


def some_tense(draws: Draws, verb: Verb) -> str:
    """Draw a tense that a verb is used in."""
    if "n" in verb.marks or "g" in verb.marks:
        return "present"
    return draws.of(MOMENTS) if "p" in verb.marks else draws.of(TENSES)


def some_verb(draws: Draws, who: Subject, *, without: str = "", but: Container[str] = ()) -> Verb:
    """Draw a transitive verb: none that has a mark of `without`, and none of `but`."""
    verb = draws.of(TRANSITIVE)
    # `je suis` is first of all `I am`.
    ambiguous = verb.infinitive == "suivre" and who.french == "je"
    if ambiguous or not set(without).isdisjoint(verb.marks) or verb.infinitive in but:
        return some_verb(draws, who, without=without, but=but)
    return verb


# When and where

_PLACES = word_table("places")
CITIES = word_pairs("places", "cities")
COUNTRIES: list[list[str]] = _PLACES["countries"]
"""Preposition of place, French and English."""
DESTINATIONS: tuple[Noun, ...] = tuple(
    noun
    for name in ("shop", "building", "outdoors")
    for noun in NOUNS[name]
    if noun.lemma not in _PLACES["not_visited"]
)
_SPOTS, _AT, _TO = word_table("spots"), word_table("at"), word_table("to")

HABITS = (
    *word_pairs("times", "habits"),
    *(Words(f"le {french}", f"on {english}s") for french, english in DAYS),
)
PAST_TIMES = (
    *word_pairs("times", "past"),
    *(Words(f"{french} dernier", f"last {english}") for french, english in DAYS),
)
FUTURE_TIMES = (
    *word_pairs("times", "future"),
    *(Words(f"{french} prochain", f"next {english}") for french, english in DAYS),
)
LONG_AGO, LATER = word_pairs("times", "long_ago"), word_pairs("times", "later")
PRESENT_TIMES = word_pairs("times", "present")
FREQUENCIES = word_pairs("times", "frequencies")


def time_for(draws: Draws, english_tense: str, probability: float = 0.3) -> Words:
    """Draw when, in agreement with a tense of English; often empty."""
    times = {
        "past": PAST_TIMES,
        "near": FUTURE_TIMES,
        "progressive": PRESENT_TIMES,
        "pouvoir": FUTURE_TIMES,
        "devoir": FUTURE_TIMES,
        "vouloir": FUTURE_TIMES,
    }.get(english_tense)
    if times is None or not draws.chance(probability):
        return NO_WORDS
    return draws.of(times)


def spot_for(draws: Draws, infinitive: str) -> Words:
    """Draw where something is done."""
    before, lemma = draws.of(_SPOTS.get(infinitive, _SPOTS["anywhere"])).split()
    return inside(BY_LEMMA[lemma]) if before == "dans" else place_at(BY_LEMMA[lemma])


def inside(noun: Noun) -> Words:
    """Say `in the …`, or `on the train` where English does."""
    phrase = noun_phrase(noun, "definite")
    before = "on" if noun.lemma in ("train", "bus", "balcon", "terrasse") else "in"
    french = "sur" if noun.lemma in ("balcon", "terrasse") else "dans"
    return Words(f"{french} {phrase.french}", f"{before} {phrase.english}")


def place_at(noun: Noun) -> Words:
    """Say `at the …`."""
    phrase = noun_phrase(noun, "definite")
    return Words(at(phrase.french), _AT.get(noun.lemma) or f"at {phrase.english}")


def place_to(noun: Noun) -> Words:
    """Say `to the …`."""
    phrase = noun_phrase(noun, "definite")
    return Words(at(phrase.french), _TO.get(noun.lemma) or f"to {phrase.english}")


def destination(draws: Draws) -> Words:
    """Draw where to: a place, a city or a country."""
    kind = draws.share()
    if kind < 0.65:
        return place_to(draws.of(DESTINATIONS))
    if kind < 0.83:
        french, english = draws.of(CITIES)
        return Words("à " + french, "to " + english)
    before, french, english = draws.of(COUNTRIES)
    return Words(f"{before} {french}", "to " + english)


def location(draws: Draws) -> Words:
    """Draw a city or country to be in."""
    if draws.chance(0.5):
        french, english = draws.of(CITIES)
        return Words("à " + french, "in " + english)
    before, french, english = draws.of(COUNTRIES)
    return Words(f"{before} {french}", "in " + english)
