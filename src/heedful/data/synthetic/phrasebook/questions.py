"""Templates of asking and ordering: questions, commands, requests, and directions.

`actions.py` says what a template is.
"""

from __future__ import annotations

import re

from heedful.data.synthetic import Draws
from heedful.data.synthetic.phrasebook.choices import (
    DESTINATIONS,
    OWNERS,
    PRONOUNS,
    destination,
    some_verb,
    spot_for,
    subject,
    thing_done_to,
    third_person,
    time_for,
)
from heedful.data.synthetic.phrasebook.clauses import (
    REFLEXIVES,
    Agreement,
    Draft,
    Subject,
    at,
    clause,
    combined,
    english_clause,
    english_tense,
    french_clause,
    french_inversion,
    joined,
    noun_phrase,
    of,
    with_object,
)
from heedful.data.synthetic.phrasebook.english import number_in_english
from heedful.data.synthetic.phrasebook.french import (
    imperative,
    number_in_french,
    participle,
    present,
)
from heedful.data.synthetic.phrasebook.vocabulary import (
    ACTIVITIES,
    INTRANSITIVE,
    MOVING,
    NO_WORDS,
    NOUNS,
    REFLEXIVE,
    TRANSITIVE,
    VERBS,
    Noun,
    Verb,
    Words,
    verbs_for,
    word_table,
)

_INVERTED: tuple[Subject, ...] = tuple(one for one in PRONOUNS if one.french != "je")
_TENSES = ("present", "past", "near", "pouvoir", "vouloir", "devoir")
_WORDS = (
    Words("quand", "when"),
    Words("pourquoi", "why"),
    Words("où", "where"),
    Words("comment", "how"),
)
_PLACED, _MANAGED = frozenset(verbs_for("where")), frozenset(verbs_for("how"))
_COUNTING, _CHOOSING = verbs_for("how_many"), verbs_for("which")
_WHO = Subject("qui", "who", 2, "m", False, "third", OWNERS[0], False)


def _asked(draws: Draws, who: Subject) -> tuple[Verb, str]:
    verb = some_verb(draws, who)
    if "n" in verb.marks or "g" in verb.marks:
        return verb, "present"
    if who.french == "je":
        return (verb, "pouvoir") if draws.chance(0.6) else (verb, "devoir")
    tenses = ("past", "near") if "p" in verb.marks else _TENSES
    return verb, draws.of(tenses)


def _question(
    who: Subject,
    verb: Verb,
    tense: str,
    rest: tuple[str, str],
    combinations: tuple[str, ...],
    *,
    word: Words = NO_WORDS,
    inverted: bool,
) -> Draft:
    """Ask in both languages, with the pronoun after the French verb or with est-ce que."""
    in_english = english_tense(verb, tense)
    if inverted:
        french = french_inversion(who, verb, tense, rest[0])
    else:
        french = "est-ce que " + french_clause(who, verb, tense, rest[0])
    tenses = [in_english, "simple"] if in_english == "progressive" else [in_english]
    english, *others = (
        joined(word.english, english_clause(who, verb.english, one, rest[1], question=True))
        for one in tenses
    )
    if "some " in english:
        others.append(english.replace("some ", "any "))
    return Draft(joined(word.french, french), english, combinations, tuple(others), "?")


def with_est_ce_que(draws: Draws, who: Subject | None = None) -> Draft:
    """Does somebody do something? With est-ce que."""
    who = subject(draws)
    verb, tense = _asked(draws, who)
    thing, noun = thing_done_to(draws, verb, who)
    time = time_for(draws, english_tense(verb, tense), 0.2)
    rest = (joined(thing.french, time.french), joined(thing.english, time.english))
    return _question(who, verb, tense, rest, combined(who, verb, noun, thing), inverted=False)


def with_inversion(draws: Draws, who: Subject | None = None) -> Draft:
    """Does somebody do something? With the pronoun after the verb."""
    who = draws.of(_INVERTED)
    verb, tense = _asked(draws, who)
    thing, noun = thing_done_to(draws, verb, who)
    combinations = combined(who, verb, noun, thing)
    return _question(who, verb, tense, thing[:2], combinations, inverted=True)


def with_question_word(draws: Draws, who: Subject | None = None) -> Draft:
    """When, why, where or how does somebody do something?"""
    word = draws.of(_WORDS)
    inverted = draws.chance(0.4)
    who = draws.of(_INVERTED) if inverted else subject(draws)
    verb, tense = _asked(draws, who)
    fitting = {"où": _PLACED, "comment": _MANAGED}.get(word.french)
    while "s" in verb.marks or (fitting and verb.infinitive not in fitting):
        verb, tense = _asked(draws, who)
    if word.french == "quand" and tense == "present":
        tense = "near"
    thing, noun = thing_done_to(draws, verb, who, adjective=0.15)
    combinations = combined(who, verb, noun, thing)
    return _question(who, verb, tense, thing[:2], combinations, word=word, inverted=inverted)


def where_to(draws: Draws, who: Subject | None = None) -> Draft:
    """Where, when or why does somebody go, sleep or play?"""
    who = draws.of(_INVERTED) if draws.chance(0.6) else subject(draws)
    tense = draws.of(("present", "past", "near"))
    kind = draws.share()
    if kind < 0.35:
        verb, word = draws.of(INTRANSITIVE), draws.of(_WORDS[:3])
        place = NO_WORDS if word.french == "où" else spot_for(draws, verb.infinitive)
        if verb.infinitive == "voyager":
            place = NO_WORDS
    elif kind < 0.6:
        verb, word, tense = MOVING[0], draws.of(_WORDS[:2]), draws.of(("present", "past"))
        place = destination(draws)
    elif kind < 0.8:
        verb, word, place = draws.of(ACTIVITIES), draws.of(_WORDS[:3]), NO_WORDS
    else:
        verb, word, place = draws.of(REFLEXIVE), draws.of(_WORDS[:2]), NO_WORDS
        tense = draws.of(("past", "near"))
    if word.french == "quand" and tense == "present":
        tense = "past"
    inverted = who.pronoun and who.french != "je"
    return _question(who, verb, tense, place, who.combinations, word=word, inverted=inverted)


def how_many(draws: Draws, who: Subject | None = None) -> Draft:
    """How many apples have you eaten?"""
    who = draws.of(_INVERTED)
    verb = VERBS[draws.of(_COUNTING)]
    noun = draws.of(_countable(verb))
    tense = "past" if "p" in verb.marks else draws.of(("past", "near", "vouloir"))
    amount = noun_phrase(noun, "beaucoup de", plural=True).french.removeprefix("beaucoup ")
    french = f"combien {amount} {_inverted_after(who, verb, tense, Agreement(noun.gender, True))}"
    english = english_clause(who, verb.english, tense, question=True)
    combinations = (f"{verb.infinitive}+{noun.lemma}",)
    return Draft(french, f"how many {noun.english_plural} {english}", combinations, mark="?")


def _countable(verb: Verb) -> list[Noun]:
    return [noun for noun in verb.objects if not noun.is_mass]


def _inverted_after(who: Subject, verb: Verb, tense: str, before: Agreement) -> str:
    """Write an inverted question after its object, with which the participle agrees."""
    question = french_inversion(who, verb, tense)
    if tense != "past":
        return question
    return f"{question.rsplit(' ', 1)[0]} {participle(verb.infinitive, *before)}"


def which(draws: Draws, who: Subject | None = None) -> Draft:
    """Which dress do you prefer? Which film did she watch?"""
    who = draws.of(_INVERTED)
    verb = VERBS[draws.of(_CHOOSING)]
    noun = draws.of(_countable(verb))
    plural = "pair" in noun.classes or draws.chance(0.2)
    tense = draws.of(("past", "near", "vouloir"))
    quel = "quel" + ("le" if noun.gender == "f" else "") + ("s" if plural else "")
    head = noun.plural if plural else noun.singular
    french = f"{quel} {head} {_inverted_after(who, verb, tense, Agreement(noun.gender, plural))}"
    name = noun.english_plural if plural else noun.english
    asked = english_clause(who, verb.english, tense, question=True)
    combinations = (f"{verb.infinitive}+{noun.lemma}",)
    return Draft(french, f"which {name} {asked}", combinations, (f"what {name} {asked}",), "?")


def is_there(draws: Draws, who: Subject | None = None) -> Draft:
    """Is there a bank near the station? Where is the station?"""
    noun = draws.of(NOUNS["shop"] + NOUNS["building"] + NOUNS["outdoors"])
    if draws.chance(0.4):
        phrase = noun_phrase(noun, "definite")
        return Draft(f"où se trouve {phrase.french}", f"where is {phrase.english}", mark="?")
    other = draws.other(NOUNS["building"], than=noun)
    phrase, near = noun_phrase(noun, "indefinite"), noun_phrase(other, "definite")
    opening = draws.of(("y a-t-il", "est-ce qu'il y a"))
    french = f"{opening} {phrase.french} près {of(near.french)}"
    return Draft(french, f"is there {phrase.english} near {near.english}", mark="?")


def who_does(draws: Draws, who: Subject | None = None) -> Draft:
    """Who is eating the cake? (qui)"""
    third_person(draws)  # not used; without this draw the corpora would be others
    verb, tense = _asked(draws, _WHO)
    thing, noun = thing_done_to(draws, verb, _INVERTED[0])
    said = clause(_WHO, verb, tense, thing[:2])
    return Draft(*said, combined(_WHO, verb, noun, thing), mark="?")


# Commands, requests and directions

_MEASURES: dict[str, list[list[str]]] = word_table("measures")
_ORDINALS: list[list[str]] = word_table("calendar")["ordinals"]
_NOT_ASKED, _FORBIDDEN = verbs_for("not_asked_for"), verbs_for("forbidden")
_DEFINITE = re.compile(
    r"l'|(?:le|la|les|ce|cet|cette|ces|mon|ma|mes|ton|ta|tes|votre|vos|notre|nos) "
)
_ADDRESSED = Subject("tu", "you", 1, "m", False, "other", OWNERS[1], True)


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
        _, feminine, english = draws.of(_ORDINALS)
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
    near = noun_phrase(draws.other(DESTINATIONS, than=place), "definite")
    minutes = 2 + draws.below(28)
    return Draft(
        f"{phrase.french} est à {number_in_french(minutes, 'f')} minutes {of(near.french)}",
        f"{phrase.english} is {number_in_english(minutes)} minutes from {near.english}",
    )


def polite_order(draws: Draws, who: Subject | None = None) -> Draft:
    """I would like a kilo of apples, please."""
    name = draws.of(tuple(_MEASURES))
    noun = draws.of(NOUNS[name])
    plural = name in ("fruit", "vegetable")
    measure, english = draws.of(_MEASURES[name])
    if noun.lemma in ("soupe", "riz", "confiture", "miel"):
        measure, english = _MEASURES["edible_mass"][0]
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
    while negated and not _DEFINITE.match(thing.french):
        thing, noun = thing_done_to(draws, verb, listener, adjective=0.1)
    form = imperative(verb.infinitive, person)
    rest = with_object(verb.english, thing.english)
    french = f"ne {form} pas {thing.french}" if negated else f"{form} {thing.french}"
    english = joined("don't" if negated else "", verb.english.base, rest)
    combinations = (f"{verb.infinitive}+{noun.lemma}", *thing.combinations)
    if draws.chance(0.4):
        return Draft(f"{french}, {polite}", f"{english}, please", combinations)
    return Draft(french, english, combinations, mark="!")


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
    plural = "pair" in noun.classes or draws.chance(0.25)
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
    group = joined(who.french, f"ne {helper} pas" if negated else helper, REFLEXIVES[who.person])
    done = english_clause(who, verb.english, tense, negation="pas" if negated else "")
    return Draft(f"{group} {verb.infinitive}", done, who.combinations)
