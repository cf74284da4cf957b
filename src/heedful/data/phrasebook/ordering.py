"""Templates of telling people what to do: commands, requests, orders in a shop, and the way."""

from __future__ import annotations

from heedful.data.draws import Draws
from heedful.data.phrasebook.choices import OWNERS, subject, thing_done_to
from heedful.data.phrasebook.clauses import (
    REFLEXIVES,
    Subject,
    english_clause,
    with_object,
)
from heedful.data.phrasebook.conjugation import imperative, present
from heedful.data.phrasebook.drafts import Draft, joined
from heedful.data.phrasebook.english import number_in_english
from heedful.data.phrasebook.noun_phrases import at, noun_phrase, of
from heedful.data.phrasebook.nouns import CLASSES, NOUNS
from heedful.data.phrasebook.numbers import (
    ORDINALS,
    number_in_french,
)
from heedful.data.phrasebook.occasions import DESTINATIONS
from heedful.data.phrasebook.verbs import REFLEXIVE, TRANSITIVE


def directions(draws: Draws, who: Subject | None = None) -> Draft:
    """Turn left after the bank; take the second street on the right; go straight on."""
    person = draws.of((1, 4))
    place = draws.of(DESTINATIONS)
    phrase = noun_phrase(place, "definite")
    side, english_side = draws.of((("à gauche", "left"), ("à droite", "right")))
    kind = draws.share()
    if kind < 0.35:
        before, english = draws.of(
            (("après", "after"), ("avant", "before"), ("devant", "in front of"))
        )
        return Draft(
            f"{imperative('tourner', person)} {side} {before} {phrase.french}",
            f"turn {english_side} {english} {phrase.english}",
        )
    if kind < 0.6:
        _, feminine, english = draws.of(ORDINALS)
        take = imperative("prendre", person)
        return Draft(
            f"{take} la {feminine} rue {side} après {phrase.french}",
            f"take the {english} street on the {english_side} after {phrase.english}",
        )
    if kind < 0.8:
        go = imperative("aller", person)
        return Draft(
            f"{go} tout droit jusque {at(phrase.french)}",
            f"go straight on as far as {phrase.english}",
        )
    other = draws.of(DESTINATIONS)
    while other == place:
        other = draws.of(DESTINATIONS)
    near = noun_phrase(other, "definite")
    minutes = 2 + draws.below(28)
    return Draft(
        f"{phrase.french} est à {number_in_french(minutes, 'f')} minutes {of(near.french)}",
        f"{phrase.english} is {number_in_english(minutes)} minutes from {near.english}",
    )


_MEASURES = {
    "fruit": (("un kilo", "a kilo"), ("deux kilos", "two kilos"), ("un panier", "a basket")),
    "vegetable": (("un kilo", "a kilo"), ("trois kilos", "three kilos"), ("un panier", "a basket")),
    "edible mass": (("un peu", "a little"), ("un morceau", "a piece")),
    "drink": (("un verre", "a glass"), ("une tasse", "a cup"), ("une bouteille", "a bottle")),
}


def polite_order(draws: Draws, who: Subject | None = None) -> Draft:
    """I would like a kilo of apples, please."""
    name = draws.of(tuple(_MEASURES))
    noun = draws.of(NOUNS[name])
    plural = name in ("fruit", "vegetable")
    measure, english = draws.of(_MEASURES[name])
    if noun.lemma in ("soupe", "riz", "confiture", "miel"):
        measure, english = _MEASURES["edible mass"][0]
    if name == "drink":
        fitting = 1 if noun.lemma in ("café", "thé") else draws.of((0, 2))
        measure, english = _MEASURES["drink"][fitting]
    amount = noun_phrase(noun, "beaucoup de", plural=plural).french.removeprefix("beaucoup ")
    wish, english_wish = draws.of(
        (("je voudrais", "I would like"), ("nous voudrions", "we would like"))
    )
    of_ = "" if english == "a little" else "of"
    goods = noun.english_plural if plural else noun.english
    return Draft(
        f"{wish} {measure} {amount}, s'il vous plaît",
        joined(english_wish, english, of_, f"{goods}, please"),
    )


def command(draws: Draws, who: Subject | None = None) -> Draft:
    """Close the door! Don't forget your keys!"""
    person, polite = draws.of(((1, "s'il te plaît"), (4, "s'il vous plaît")))
    verb = draws.of(TRANSITIVE)
    while (set("sgpn") & set(verb.marks) or verb.infinitive in _NOT_ASKED) and (
        verb.infinitive not in _FORBIDDEN
    ):
        verb = draws.of(TRANSITIVE)
    negated = verb.infinitive in _FORBIDDEN or draws.chance(0.35)
    addressed = OWNERS[1] if person == 1 else OWNERS[3]
    listener = _ADDRESSED._replace(person=person, owner=addressed)
    thing, noun = thing_done_to(draws, verb, listener, adjective=0.1)
    while negated and not thing.french.startswith(_DEFINITE):
        thing, noun = thing_done_to(draws, verb, listener, adjective=0.1)
    form = imperative(verb.infinitive, person)
    rest = with_object(verb.english, thing.english)
    french = f"ne {form} pas {thing.french}" if negated else f"{form} {thing.french}"
    english = joined("don't" if negated else "", verb.english.base, rest)
    combinations = (f"{verb.infinitive}+{noun.lemma}", *thing.combinations)
    if draws.chance(0.4):
        return Draft(f"{french}, {polite}", f"{english}, please", combinations)
    return Draft(french, english, combinations, mark="!")


_NOT_ASKED = frozenset(["inventer", "refuser", "emprunter", "construire", "admirer", "utiliser"])
_FORBIDDEN = ("oublier", "casser", "perdre")
_DEFINITE = (
    "le ",
    "la ",
    "l'",
    "les ",
    "ce ",
    "cet ",
    "cette ",
    "ces ",
    "mon ",
    "ma ",
    "mes ",
    "ton ",
    "ta ",
    "tes ",
    "votre ",
    "vos ",
    "notre ",
    "nos ",
)
_ADDRESSED = Subject("tu", "you", 1, "m", False, "other", OWNERS[1], True)


def give_me(draws: Draws, who: Subject | None = None) -> Draft:
    """Give me the book, please; show us that photo."""
    person, polite = draws.of(((1, "s'il te plaît"), (4, "s'il vous plaît")))
    french, english = draws.of(
        (
            ("donner", "give"),
            ("montrer", "show"),
            ("apporter", "bring"),
            ("prêter", "lend"),
            ("envoyer", "send"),
        )
    )
    to, english_to = draws.of((("moi", "me"), ("nous", "us"), ("lui", "him"), ("leur", "them")))
    noun = draws.of(NOUNS["small"] + NOUNS["text"])
    plural = "pair" in CLASSES[noun.lemma] or draws.chance(0.25)
    kind = draws.of(("definite", "demonstrative", "possessive", "indefinite"))
    owner = OWNERS[1] if person == 1 else OWNERS[3]
    phrase = noun_phrase(noun, kind, plural=plural, owner=owner)
    others = (f"{english} her {phrase.english}, please",) if to == "lui" else ()
    return Draft(
        f"{imperative(french, person)}-{to} {phrase.french}, {polite}",
        f"{english} {english_to} {phrase.english}, please",
        (f"{french}+{noun.lemma}",),
        others,
    )


def oneself(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody cannot get up, or must hurry (a modal verb with a reflexive one)."""
    who = who or subject(draws)
    verb = draws.of(REFLEXIVE)
    while "p" in verb.marks or verb.infinitive in ("ennuyer", "inquiéter"):
        verb = draws.of(REFLEXIVE)
    tense = draws.of(("pouvoir", "vouloir", "devoir"))
    negated = draws.chance(0.3)
    helper = present(tense, who.person)
    own = REFLEXIVES[who.person]
    group = f"ne {helper} pas" if negated else helper
    done = english_clause(
        who, verb.english, tense, verb.english.particle, negation="pas" if negated else ""
    )
    return Draft(f"{who.french} {group} {own} {verb.infinitive}", done, who.combinations)
