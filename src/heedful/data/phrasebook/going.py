"""Templates of giving, speaking and going: to somebody, somewhere, and oneself."""

from __future__ import annotations

from heedful.data.draws import Draws
from heedful.data.phrasebook.acting import MOMENTS, TENSES, other_tenses, some_negation
from heedful.data.phrasebook.choices import NAMES, someone, subject, third_person
from heedful.data.phrasebook.clauses import (
    Subject,
    english_clause,
    english_tense,
    french_clause,
    with_object,
)
from heedful.data.phrasebook.drafts import Draft, joined, timed
from heedful.data.phrasebook.noun_phrases import at, noun_phrase
from heedful.data.phrasebook.nouns import BY_LEMMA, CLASSES, NOUNS
from heedful.data.phrasebook.occasions import (
    HABITS,
    LATER,
    LONG_AGO,
    Words,
    destination,
    location,
    place_to,
    spot_for,
    time_for,
)
from heedful.data.phrasebook.verbs import (
    ACTIVITIES,
    GIVING,
    INTRANSITIVE,
    MOVING,
    REFLEXIVE,
    SPEAKING,
    VERBS,
)


def dative(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody gives, shows or lends something to somebody."""
    who = who or subject(draws)
    verb = draws.of(GIVING)
    tense = draws.of(("present", "past", "near"))
    to = someone(draws) if draws.chance(0.6) else draws.of(NAMES)
    while to.french == who.french:
        to = someone(draws)
    noun = draws.of(NOUNS["small"] if draws.chance(0.7) else NOUNS["text"])
    kind = "definite" if verb.infinitive == "rendre" else draws.of(("indefinite", "definite"))
    thing = noun_phrase(noun, kind, plural=kind == "definite" and draws.chance(0.2))
    in_english = english_tense(verb, tense, "", False)
    given = with_object(verb.english, thing.english)
    french = french_clause(who, verb, tense, f"{thing.french} {at(to.french)}")
    english = english_clause(who, verb.english, in_english, f"{given} to {to.english}")
    others: tuple[str, ...] = ()
    if not verb.english.particle:
        turned = f"{to.english} {thing.english}"
        others = (english_clause(who, verb.english, in_english, turned),)
    combinations = (*who.combinations, *to.combinations, f"{verb.infinitive}+{noun.lemma}")
    return Draft(french, english, combinations, others)


_INDIRECT = (
    ("me", "me"),
    ("te", "you"),
    ("lui", "him"),
    ("nous", "us"),
    ("vous", "you"),
    ("leur", "them"),
)


def dative_clitic(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody gives me, you, him or them something."""
    who = who or subject(draws)
    place = draws.below(6)
    # Nobody acts on the same first or second person here: that would be reflexive.
    while place not in (2, 5) and {place, who.person} <= ({0, 3}, {1, 4})[place % 3]:
        place = draws.below(6)
    pronoun, english_pronoun = _INDIRECT[place]
    verb = draws.of(GIVING[:6])
    tense = draws.of(("present", "past", "near"))
    negation = "pas" if draws.chance(0.2) else ""
    noun = draws.of(NOUNS["small"] if draws.chance(0.7) else NOUNS["text"])
    kind = draws.of(("definite", "demonstrative") if negation else ("indefinite", "definite"))
    thing = noun_phrase(noun, kind)
    in_english = english_tense(verb, tense, "", False)
    french = french_clause(who, verb, tense, thing.french, negation=negation, clitic=pronoun)
    english = english_clause(
        who, verb.english, in_english, f"{english_pronoun} {thing.english}", negation=negation
    )
    others: tuple[str, ...] = ()
    if pronoun == "lui":
        turned = f"her {thing.english}"
        others = (english_clause(who, verb.english, in_english, turned, negation=negation),)
    return Draft(french, english, (*who.combinations, f"{verb.infinitive}+{noun.lemma}"), others)


def speaking(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody talks to, answers or phones somebody."""
    who = who or subject(draws)
    verb = draws.of(SPEAKING)
    to = third_person(draws)
    while to.french == who.french:
        to = third_person(draws)
    tense = "present" if "s" in verb.marks else draws.of(TENSES)
    negation = some_negation(draws, tense)
    in_english = english_tense(verb, tense, negation, False)
    time = Words("", "") if negation in ("jamais", "plus") else time_for(draws, in_english, 0.3)
    if "s" in verb.marks:
        time = Words("", "")
    rest = with_object(verb.english, to.english)
    french = french_clause(who, verb, tense, at(to.french), negation=negation)
    english = english_clause(who, verb.english, in_english, rest, negation=negation)
    french, english = timed(french, english, time, draws.chance(0.4))
    return Draft(french, english, who.combinations + to.combinations)


def intransitive(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody works, sleeps or swims somewhere."""
    who = who or subject(draws)
    verb = draws.of(INTRANSITIVE)
    tense = draws.of(TENSES)
    negation = some_negation(draws, tense)
    in_english = english_tense(verb, tense, negation, False)
    place = location(draws) if verb.infinitive == "voyager" else spot_for(draws, verb.infinitive)
    time = Words("", "") if negation in ("jamais", "plus") else time_for(draws, in_english, 0.3)
    french = french_clause(who, verb, tense, place.french, negation=negation)
    english = english_clause(who, verb.english, in_english, place.english, negation=negation)
    others = () if time.french else other_tenses(who, verb, in_english, negation, place.english)
    french, english = timed(french, english, time, draws.chance(0.4))
    return Draft(french, english, who.combinations, others)


def activity(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody plays cards, does the shopping or has breakfast."""
    who = who or subject(draws)
    verb = draws.of(ACTIVITIES)
    tense = draws.of(("present", "past", "near", "pouvoir", "vouloir", "devoir"))
    # The partitive of `du vélo` would have to change after a negation.
    negation = (
        "" if verb.after.startswith(("du ", "de ", "un")) else some_negation(draws, tense, 0.2)
    )
    habitual = tense == "present" and not negation and draws.chance(0.5)
    in_english = english_tense(verb, tense, negation, habitual)
    time = draws.of(HABITS) if habitual else time_for(draws, in_english, 0.5)
    if negation in ("jamais", "plus"):
        time = Words("", "")
    french = french_clause(who, verb, tense, negation=negation)
    english = english_clause(
        who, verb.english, in_english, verb.english.particle, negation=negation
    )
    french, english = timed(french, english, time, draws.chance(0.4))
    return Draft(french, english, who.combinations)


def moving(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody goes, arrives, stays or comes back somewhere."""
    who = who or subject(draws)
    verb = draws.of(MOVING)
    tense = draws.of(("present", "past", "past", "near"))
    if verb.infinitive == "aller" and tense == "near":
        tense = "past"
    negation = "pas" if draws.chance(0.2) else ""
    goes = verb.infinitive in ("aller", "retourner")
    place = destination(draws) if goes else location(draws)
    if verb.infinitive == "revenir":
        place = Words("", "")
    in_english = english_tense(verb, tense, negation, False)
    time = time_for(draws, in_english, 1.0 if verb.infinitive == "revenir" else 0.3)
    if not time.french and draws.chance(0.2):
        time = draws.of({"past": LONG_AGO, "near": LATER}.get(tense, (time,)))
    if in_english == "progressive":
        time = Words("demain", "tomorrow")
    french = french_clause(who, verb, tense, place.french, negation=negation)
    rest = joined(verb.english.particle, place.english)
    english = english_clause(who, verb.english, in_english, rest, negation=negation)
    french, english = timed(french, english, time, draws.chance(0.4))
    return Draft(french, english, who.combinations)


def purpose(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody goes somewhere to do something."""
    who = who or subject(draws)
    where, infinitive, classes = draws.of(_ERRANDS)
    verb, go = VERBS[infinitive], MOVING[0]
    nouns = [noun for name in classes.split() for noun in NOUNS[name]]
    noun = draws.of(nouns)
    plural = draws.chance(0.4) and not {"staple", "drink"} & CLASSES[noun.lemma]
    thing = noun_phrase(noun, "indefinite", plural=plural)
    tense = draws.of(("present", "past"))
    place = place_to(BY_LEMMA[where])
    in_english = english_tense(go, tense, "", False)
    aim = joined("to", verb.english.base, with_object(verb.english, thing.english))
    french = french_clause(who, go, tense, f"{place.french} pour {infinitive} {thing.french}")
    english = english_clause(who, go.english, in_english, f"{place.english} {aim}")
    return Draft(french, english, (*who.combinations, f"{infinitive}+{noun.lemma}"))


_ERRANDS = (
    ("boulangerie", "acheter", "sweet"),
    ("marché", "acheter", "fruit vegetable staple"),
    ("supermarché", "acheter", "fruit vegetable staple drink"),
    ("librairie", "acheter", "text"),
    ("bibliothèque", "lire", "text"),
    ("restaurant", "manger", "savoury"),
    ("parc", "photographier", "plant"),
    ("zoo", "voir", "wild"),
    ("ferme", "acheter", "fruit vegetable"),
    ("théâtre", "voir", "stage"),
    ("cinéma", "voir", "screen"),
    ("magasin", "acheter", "clothing pair dishes furniture"),
)


def reflexive(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody gets up, rests or gets lost."""
    who = who or subject(draws)
    verb = draws.of(REFLEXIVE)
    tense = draws.of(MOMENTS) if "p" in verb.marks else draws.of(TENSES)
    negation = some_negation(draws, tense, 0.2)
    habitual = tense == "present" and not negation and draws.chance(0.6)
    in_english = english_tense(verb, tense, negation, habitual)
    time = draws.of(HABITS) if habitual else time_for(draws, in_english, 0.6)
    if negation in ("jamais", "plus"):
        time = Words("", "")
    early = draws.of(_EARLY) if verb in REFLEXIVE[:3] else Words("", "")
    rest = joined(verb.english.particle, early.english)
    french = french_clause(who, verb, tense, early.french, negation=negation)
    english = english_clause(who, verb.english, in_english, rest, negation=negation)
    french, english = timed(french, english, time, draws.chance(0.4))
    return Draft(french, english, who.combinations)


_EARLY = (Words("tôt", "early"), Words("tard", "late"))
