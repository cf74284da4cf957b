"""Templates of asking: est-ce que, inversion, question words, and which one."""

from __future__ import annotations

from heedful.data.draws import Draws
from heedful.data.phrasebook.acting import some_verb
from heedful.data.phrasebook.choices import PRONOUNS, subject, thing_done_to, third_person
from heedful.data.phrasebook.clauses import (
    Subject,
    english_clause,
    english_tense,
    french_clause,
    french_inversion,
    with_object,
)
from heedful.data.phrasebook.conjugation import participle
from heedful.data.phrasebook.drafts import Draft, joined
from heedful.data.phrasebook.noun_phrases import noun_phrase, of
from heedful.data.phrasebook.nouns import CLASSES, NOUNS
from heedful.data.phrasebook.occasions import Words, destination, spot_for, time_for
from heedful.data.phrasebook.verbs import ACTIVITIES, INTRANSITIVE, MOVING, REFLEXIVE, VERBS, Verb

_INVERTED: tuple[Subject, ...] = tuple(one for one in PRONOUNS if one.french != "je")


def _asked(draws: Draws, who: Subject) -> tuple[Verb, str]:
    verb = some_verb(draws, who)
    if "n" in verb.marks or "g" in verb.marks:
        return verb, "present"
    if who.french == "je":
        return (verb, "pouvoir") if draws.chance(0.6) else (verb, "devoir")
    tenses = ("past", "near") if "p" in verb.marks else _TENSES
    return verb, draws.of(tenses)


_TENSES = ("present", "past", "near", "pouvoir", "vouloir", "devoir")


def _others(who: Subject, verb: Verb, tense: str, rest: str, before: str = "") -> tuple[str, ...]:
    found = []
    if tense == "progressive":
        found.append(english_clause(who, verb.english, "simple", rest, question=True))
    if "some " in rest:
        turned = rest.replace("some ", "any ")
        found.append(english_clause(who, verb.english, tense, turned, question=True))
    return tuple(joined(before, one) for one in found)


def with_est_ce_que(draws: Draws, who: Subject | None = None) -> Draft:
    """Does somebody do something? With est-ce que."""
    who = subject(draws)
    verb, tense = _asked(draws, who)
    thing, noun = thing_done_to(draws, verb, who)
    in_english = english_tense(verb, tense, "", False)
    time = time_for(draws, in_english, 0.2)
    rest = joined(with_object(verb.english, thing.english), time.english)
    french = joined("est-ce que", french_clause(who, verb, tense, thing.french), time.french)
    english = english_clause(who, verb.english, in_english, rest, question=True)
    combinations = (*who.combinations, f"{verb.infinitive}+{noun.lemma}", *thing.combinations)
    return Draft(french, english, combinations, _others(who, verb, in_english, rest), "?")


def with_inversion(draws: Draws, who: Subject | None = None) -> Draft:
    """Does somebody do something? With the pronoun after the verb."""
    who = draws.of(_INVERTED)
    verb, tense = _asked(draws, who)
    thing, noun = thing_done_to(draws, verb, who)
    in_english = english_tense(verb, tense, "", False)
    rest = with_object(verb.english, thing.english)
    french = french_inversion(who, verb, tense, thing.french)
    english = english_clause(who, verb.english, in_english, rest, question=True)
    combinations = (f"{verb.infinitive}+{noun.lemma}", *thing.combinations)
    return Draft(french, english, combinations, _others(who, verb, in_english, rest), "?")


_WORDS = (
    Words("quand", "when"),
    Words("pourquoi", "why"),
    Words("où", "where"),
    Words("comment", "how"),
)
_PLACED = frozenset(
    [
        "acheter",
        "trouver",
        "perdre",
        "rencontrer",
        "garer",
        "vendre",
        "voir",
        "lire",
        "apprendre",
        "planter",
        "cacher",
        "louer",
        "cueillir",
    ]
)
_MANAGED = frozenset(
    [
        "préparer",
        "réparer",
        "nettoyer",
        "ouvrir",
        "construire",
        "traduire",
        "couper",
        "laver",
        "allumer",
        "expliquer",
        "apprendre",
    ]
)


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
    in_english = english_tense(verb, tense, "", False)
    rest = with_object(verb.english, thing.english)
    if inverted:
        french = f"{word.french} {french_inversion(who, verb, tense, thing.french)}"
    else:
        french = f"{word.french} est-ce que {french_clause(who, verb, tense, thing.french)}"
    english = joined(
        word.english, english_clause(who, verb.english, in_english, rest, question=True)
    )
    others = _others(who, verb, in_english, rest, word.english)
    combinations = (*who.combinations, f"{verb.infinitive}+{noun.lemma}", *thing.combinations)
    return Draft(french, english, combinations, others, "?")


def where_to(draws: Draws, who: Subject | None = None) -> Draft:
    """Where, when or why does somebody go, sleep or play?"""
    who = draws.of(_INVERTED) if draws.chance(0.6) else subject(draws)
    tense = draws.of(("present", "past", "near"))
    kind = draws.share()
    if kind < 0.35:
        verb, word = draws.of(INTRANSITIVE), draws.of(_WORDS[:3])
        place = Words("", "") if word.french == "où" else spot_for(draws, verb.infinitive)
        if verb.infinitive == "voyager":
            place = Words("", "")
    elif kind < 0.6:
        verb, word, tense = MOVING[0], draws.of(_WORDS[:2]), draws.of(("present", "past"))
        place = destination(draws)
    elif kind < 0.8:
        verb, word, place = draws.of(ACTIVITIES), draws.of(_WORDS[:3]), Words("", "")
    else:
        verb, word, place = draws.of(REFLEXIVE), draws.of(_WORDS[:2]), Words("", "")
        tense = draws.of(("past", "near"))
    if word.french == "quand" and tense == "present":
        tense = "past"
    in_english = english_tense(verb, tense, "", False)
    rest = joined(verb.english.particle, place.english)
    if who.pronoun and who.french != "je":
        french = f"{word.french} {french_inversion(who, verb, tense, place.french)}"
    else:
        french = f"{word.french} est-ce que {french_clause(who, verb, tense, place.french)}"
    english = joined(
        word.english, english_clause(who, verb.english, in_english, rest, question=True)
    )
    others = _others(who, verb, in_english, rest, word.english)
    return Draft(french, english, who.combinations, others, "?")


def how_many(draws: Draws, who: Subject | None = None) -> Draft:
    """How many apples have you eaten?"""
    who = draws.of(_INVERTED)
    verb = VERBS[draws.of(_COUNTING)]
    noun = draws.of([one for one in verb.objects if not {"staple", "drink"} & CLASSES[one.lemma]])
    tense = "past" if "p" in verb.marks else draws.of(("past", "near", "vouloir"))
    amount = noun_phrase(noun, "beaucoup de", plural=True).french.removeprefix("beaucoup ")
    if tense == "past":
        # The participle agrees with what stands before it.
        stem = french_inversion(who, verb, tense).rsplit(" ", 1)[0]
        french = f"combien {amount} {stem} {participle(verb.infinitive, noun.gender, True)}"
    else:
        french = f"combien {amount} {french_inversion(who, verb, tense)}"
    english = english_clause(who, verb.english, tense, "", question=True)
    return Draft(
        french,
        f"how many {noun.english_plural} {english}",
        (f"{verb.infinitive}+{noun.lemma}",),
        mark="?",
    )


_COUNTING = (
    "manger",
    "acheter",
    "vendre",
    "lire",
    "écrire",
    "laver",
    "voir",
    "dessiner",
    "photographier",
    "casser",
    "choisir",
    "corriger",
    "réparer",
)


def which(draws: Draws, who: Subject | None = None) -> Draft:
    """Which dress do you prefer? Which film did she watch?"""
    who = draws.of(_INVERTED)
    verb = VERBS[draws.of(_CHOOSING)]
    noun = draws.of([one for one in verb.objects if not {"staple", "drink"} & CLASSES[one.lemma]])
    plural = "pair" in CLASSES[noun.lemma] or draws.chance(0.2)
    tense = draws.of(("past", "near", "vouloir"))
    quel = "quel" + ("le" if noun.gender == "f" else "") + ("s" if plural else "")
    head = noun.plural if plural else noun.singular
    if tense == "past":
        stem = french_inversion(who, verb, tense).rsplit(" ", 1)[0]
        french = f"{quel} {head} {stem} {participle(verb.infinitive, noun.gender, plural)}"
    else:
        french = f"{quel} {head} {french_inversion(who, verb, tense)}"
    name = noun.english_plural if plural else noun.english
    asked = english_clause(who, verb.english, tense, verb.english.particle, question=True)
    others = (f"what {name} {asked}",)
    return Draft(french, f"which {name} {asked}", (f"{verb.infinitive}+{noun.lemma}",), others, "?")


_CHOOSING = (
    "acheter",
    "lire",
    "regarder",
    "choisir",
    "porter",
    "visiter",
    "prendre",
    "écouter",
    "commander",
    "apprendre",
    "finir",
    "essayer",
    "photographier",
    "vendre",
)


def is_there(draws: Draws, who: Subject | None = None) -> Draft:
    """Is there a bank near the station? Where is the station?"""
    noun = draws.of(NOUNS["shop"] + NOUNS["building"] + NOUNS["outdoors"])
    if draws.chance(0.4):
        phrase = noun_phrase(noun, "definite")
        return Draft(f"où se trouve {phrase.french}", f"where is {phrase.english}", mark="?")
    other = draws.of(NOUNS["building"])
    while other == noun:
        other = draws.of(NOUNS["building"])
    phrase, near = noun_phrase(noun, "indefinite"), noun_phrase(other, "definite")
    opening = draws.of(("y a-t-il", "est-ce qu'il y a"))
    french = f"{opening} {phrase.french} près {of(near.french)}"
    return Draft(french, f"is there {phrase.english} near {near.english}", mark="?")


def who_does(draws: Draws, who: Subject | None = None) -> Draft:
    """Who is eating the cake? (qui)"""
    somebody = third_person(draws)._replace(
        french="qui",
        english="who",
        person=2,
        gender="m",
        plural=False,
        agreement="third",
        combinations=(),
    )
    verb, tense = _asked(draws, somebody)
    thing, noun = thing_done_to(draws, verb, _INVERTED[0])
    in_english = english_tense(verb, tense, "", False)
    rest = with_object(verb.english, thing.english)
    french = french_clause(somebody, verb, tense, thing.french)
    english = english_clause(somebody, verb.english, in_english, rest)
    return Draft(
        french, english, (f"{verb.infinitive}+{noun.lemma}", *thing.combinations), mark="?"
    )
