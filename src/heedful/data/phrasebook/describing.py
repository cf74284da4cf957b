"""Templates of being: what things and people are like, where they are, what there is."""

from __future__ import annotations

from collections import defaultdict

from heedful.data.draws import Draws
from heedful.data.phrasebook.adjectives import CHARACTER, STATE, Adjective, adjectives_of
from heedful.data.phrasebook.choices import (
    NAMES,
    OWNERS,
    as_subject,
    other_subject,
    subject,
    third_person,
)
from heedful.data.phrasebook.clauses import Subject, be
from heedful.data.phrasebook.conjugation import imperfect, present
from heedful.data.phrasebook.drafts import Draft, joined
from heedful.data.phrasebook.english import article
from heedful.data.phrasebook.noun_phrases import Phrase, noun_phrase, of
from heedful.data.phrasebook.nouns import BY_LEMMA, CLASSES, NOUNS, Noun
from heedful.data.phrasebook.occasions import Words

_DESCRIBED: tuple[Noun, ...] = tuple(
    noun
    for noun in BY_LEMMA.values()
    if adjectives_of(noun, "after")
    and {"parent", "kin", "person", "staple", "drink"}.isdisjoint(CLASSES[noun.lemma])
)


def quality(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody is tired, kind or not jealous any more."""
    who = who or subject(draws)
    trait = draws.of(STATE) if draws.chance(0.6) else draws.of(CHARACTER)
    past = draws.chance(0.25)
    negation = draws.of(("pas", "pas", "jamais", "plus")) if draws.chance(0.25) else ""
    is_ = imperfect("être", who.person) if past else present("être", who.person)
    very = Words("très", "very") if _can_be_very(trait, negation, draws) else Words("", "")
    quality_ = trait.form(who.gender, who.plural)
    french = joined(who.french, "ne" if negation else "", is_, negation, very.french, quality_)
    before = {"pas": "not", "jamais": "never", "plus": "no longer"}.get(negation, "")
    english = joined(who.english, be(who, past), before, very.english, trait.english)
    return Draft(french, english, who.combinations + _said(who, trait))


_NOT_GRADED = frozenset(("ready", "alone", "absent", "late", "sure"))


def _can_be_very(trait: Adjective, negation: str, draws: Draws) -> bool:
    return trait.english not in _NOT_GRADED and negation in ("", "pas") and draws.chance(0.25)


def _said(who: Subject, trait: Adjective) -> tuple[str, ...]:
    return (f"{who.lemma}+{trait.lemma}",) if who.lemma else ()


def property_of_thing(draws: Draws, who: Subject | None = None) -> Draft:
    """A thing is red, heavy or not expensive."""
    noun = draws.of(_DESCRIBED)
    trait = draws.of(adjectives_of(noun, "after"))
    classes = CLASSES[noun.lemma]
    plural = "pair" in classes or ("room" not in classes and draws.chance(0.3))
    phrase = some_thing(draws, noun, plural)
    thing = as_subject(phrase)
    past = draws.chance(0.25)
    negation = draws.of(("pas", "pas", "plus")) if draws.chance(0.25) else ""
    is_ = imperfect("être", thing.person) if past else present("être", thing.person)
    quality_ = trait.form(noun.gender, plural)
    french = joined(thing.french, "ne" if negation else "", is_, negation, quality_)
    before = {"pas": "not", "plus": "no longer"}.get(negation, "")
    english = joined(thing.english, be(thing, past), before, trait.english)
    return Draft(french, english, (f"{noun.lemma}+{trait.lemma}", *phrase.combinations))


def some_thing(draws: Draws, noun: Noun, plural: bool) -> Phrase:
    """Draw a determiner for a thing that is spoken of: my, this, or the."""
    owned = {"thing", "clothing", "pair", "pet", "room", "home", "owned vehicle"}
    if draws.chance(0.35) and owned & CLASSES[noun.lemma]:
        return noun_phrase(noun, "possessive", plural=plural, owner=draws.of(OWNERS))
    kind = "demonstrative" if draws.chance(0.4) else "definite"
    return noun_phrase(noun, kind, plural=plural)


_COMPARED = {
    adjective.english: adjective
    for adjective in (*CHARACTER, *STATE)
    if adjective.english not in _NOT_GRADED | {"surprised", "ill", "angry", "proud", "disappointed"}
}
_SHORT = {
    "tall": "taller",
    "short": "shorter",
    "kind": "kinder",
    "shy": "shyer",
    "rich": "richer",
    "brave": "braver",
    "lazy": "lazier",
    "happy": "happier",
    "busy": "busier",
    "young": "younger",
    "old": "older",
    "sad": "sadder",
    "funny": "funnier",
    "polite": "politer",
    "red": "redder",
    "heavy": "heavier",
    "light": "lighter",
    "clean": "cleaner",
    "dirty": "dirtier",
    "fast": "faster",
    "slow": "slower",
    "quiet": "quieter",
    "noisy": "noisier",
    "dark": "darker",
    "narrow": "narrower",
    "wide": "wider",
    "deep": "deeper",
    "easy": "easier",
    "hot": "hotter",
    "cold": "colder",
    "big": "bigger",
    "small": "smaller",
    "pretty": "prettier",
    "long": "longer",
}
_GRADED_THINGS = frozenset(
    [
        "lourd",
        "léger",
        "cher",
        "moderne",
        "confortable",
        "rapide",
        "lent",
        "dangereux",
        "calme",
        "bruyant",
        "sombre",
        "étroit",
        "large",
        "profond",
        "célèbre",
        "intéressant",
        "ennuyeux",
        "drôle",
        "difficile",
        "facile",
        "important",
        "utile",
        "fragile",
        "élégant",
        "propre",
        "sale",
    ]
)


def _more(english: str) -> str:
    return _SHORT.get(english) or f"more {english}"


def comparison(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody is taller than somebody else, or a thing heavier than another."""
    if who is None and draws.chance(0.4):
        return _compared_things(draws)
    who = who or third_person(draws)
    other = other_subject(draws, who)
    while other.pronoun:
        other = other_subject(draws, who)
    trait = draws.of(tuple(_COMPARED.values()))
    combinations = who.combinations + other.combinations + _said(who, trait)
    return _ranked(draws, who, other, trait, combinations)


def _compared_things(draws: Draws) -> Draft:
    noun = draws.of(_DESCRIBED)
    fitting = [one for one in adjectives_of(noun, "after") if one.lemma in _GRADED_THINGS]
    while not fitting:
        noun = draws.of(_DESCRIBED)
        fitting = [one for one in adjectives_of(noun, "after") if one.lemma in _GRADED_THINGS]
    trait = draws.of(fitting)
    alike = [one for one in _DESCRIBED if trait in adjectives_of(one, "after") and one != noun]
    second = draws.of(alike)
    plural = "pair" in CLASSES[noun.lemma]
    one = as_subject(noun_phrase(noun, "demonstrative", plural=plural))
    owner = draws.of(OWNERS)
    kind = "possessive" if {"thing", "clothing", "home"} & CLASSES[second.lemma] else "definite"
    other = as_subject(
        noun_phrase(second, kind, plural="pair" in CLASSES[second.lemma], owner=owner)
    )
    combinations = (f"{noun.lemma}+{trait.lemma}", f"{second.lemma}+{trait.lemma}")
    return _ranked(draws, one, other, trait, combinations)


def _ranked(
    draws: Draws, who: Subject, other: Subject, trait: Adjective, combinations: tuple[str, ...]
) -> Draft:
    degree = draws.of(("plus", "plus", "moins", "aussi"))
    quality_ = trait.form(who.gender, who.plural)
    french = f"{who.french} {present('être', who.person)} {degree} {quality_} que {other.french}"
    compared = {
        "plus": f"{_more(trait.english)} than",
        "moins": f"less {trait.english} than",
        "aussi": f"as {trait.english} as",
    }[degree]
    english = f"{who.english} {be(who)} {compared} {other.english}"
    others: tuple[str, ...] = ()
    if degree == "moins":
        others = (f"{who.english} {be(who)} not as {trait.english} as {other.english}",)
    return Draft(french, english, combinations, others)


def profession(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody is a doctor; French leaves the article out."""
    who = who or subject(draws)
    while who.plural:
        who = subject(draws)
    trades = [noun for noun in _TRADES if noun.gender == who.gender]
    noun = draws.of(trades)
    while noun.english in who.english:
        noun = draws.of(trades)
    past, negated = draws.chance(0.2), draws.chance(0.2)
    is_ = imperfect("être", who.person) if past else present("être", who.person)
    french = joined(who.french, f"ne {is_} pas" if negated else is_, noun.singular)
    trade = f"{article(noun.english)} {noun.english}"
    english = joined(who.english, be(who, past), "not" if negated else "", trade)
    return Draft(french, english, who.combinations)


_NOT_A_TRADE = frozenset(
    [
        "voisin",
        "voisine",
        "touriste",
        "homme",
        "femme",
        "garçon",
        "enfant",
        "client",
        "cliente",
        "patron",
        "patronne",
        "invité",
        "invitée",
        "voyageur",
        "voyageuse",
        "héros",
    ]
)
_TRADES: tuple[Noun, ...] = tuple(
    noun
    for noun in NOUNS["person"]
    if noun.lemma not in _NOT_A_TRADE and not noun.lemma.startswith("collègue")
)


def belongs_to(draws: Draws, who: Subject | None = None) -> Draft:
    """It is my brother's book."""
    noun = draws.of(NOUNS["thing"] + NOUNS["clothing"] + NOUNS["home"])
    plural = draws.chance(0.3)
    owner = draws.of(NAMES) if draws.chance(0.4) else third_person(draws)
    phrase = noun_phrase(noun, "definite", plural=plural)
    thing = phrase.english.removeprefix("the ")
    possessor = owner.english + ("'" if owner.english.endswith("s") and owner.plural else "'s")
    this_is, english_is = ("ce sont", "these are") if plural else ("c'est", "this is")
    others = (f"{'they are' if plural else 'it is'} {possessor} {thing}",)
    return Draft(
        f"{this_is} {phrase.french} {of(owner.french)}",
        f"{english_is} {possessor} {thing}",
        owner.combinations,
        others,
    )


_CLASH: defaultdict[str, tuple[str, ...]] = defaultdict(
    tuple,
    {
        "bon": ("délicieux", "intéressant"),
        "nouveau": ("neuf",),
        "vieux": ("neuf", "moderne"),
        "grand": ("étroit",),
        "mauvais": ("intéressant", "drôle", "célèbre"),
        "petit": ("large",),
    },
)


def this_is(draws: Draws, who: Subject | None = None) -> Draft:
    """It is a beautiful house."""
    noun = draws.of(_DESCRIBED)
    fitting = adjectives_of(noun, "before") + adjectives_of(noun, "after")
    described: tuple[Adjective, ...] = (draws.of(fitting),)
    before, after = adjectives_of(noun, "before"), adjectives_of(noun, "after")
    if before and after and draws.chance(0.3):
        first = draws.of(before)
        second = [one for one in after if one.lemma not in _CLASH[first.lemma]]
        described = (first, draws.of(second)) if second else (first,)
    plural = "pair" in CLASSES[noun.lemma] or draws.chance(0.25)
    phrase = noun_phrase(noun, "indefinite", plural=plural, adjectives=described)
    english = phrase.bare or phrase.english
    french = f"ce sont {phrase.french}" if plural else f"c'est {phrase.french}"
    return Draft(french, f"{'they are' if plural else 'it is'} {english}", phrase.combinations)
