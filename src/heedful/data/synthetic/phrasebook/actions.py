"""Templates of doing: somebody does something, gives, speaks, goes, or does it to oneself.

A template draws a sentence in both languages. `who` is the subject it must take; None draws one.
"""

from __future__ import annotations

from heedful.data.synthetic import Draws
from heedful.data.synthetic.phrasebook.choices import (
    FREQUENCIES,
    HABITS,
    LATER,
    LONG_AGO,
    MOMENTS,
    NAMES,
    OWNERS,
    TENSES,
    destination,
    location,
    other_subject,
    place_to,
    some_negation,
    some_tense,
    some_verb,
    someone,
    spot_for,
    subject,
    thing_done_to,
    third_person,
    time_for,
)
from heedful.data.synthetic.phrasebook.clauses import (
    Agreement,
    Draft,
    Phrase,
    Subject,
    at,
    english_clause,
    english_tense,
    french_clause,
    joined,
    noun_phrase,
    timed,
    with_object,
)
from heedful.data.synthetic.phrasebook.french import present
from heedful.data.synthetic.phrasebook.vocabulary import (
    ACTIVITIES,
    BY_LEMMA,
    CLASSES,
    GIVING,
    INTRANSITIVE,
    MOVING,
    NO_WORDS,
    NOUNS,
    REFLEXIVE,
    SPEAKING,
    VERBS,
    Verb,
    Words,
    is_mass,
    verbs_for,
    word_pairs,
    word_table,
)

_NO_HABIT = verbs_for("no_habit")
_TO_NOTHING, _TO_NOBODY = verbs_for("to_nothing"), verbs_for("to_nobody")
_WITH_PRONOUN = verbs_for("with_pronoun")
_POSSESSED_THING = frozenset(("thing", "clothing", "pair", "owned_vehicle", "dishes"))
_FORMERLY = verbs_for("formerly")
_BEFORE = (Words("avant", "in the past"), Words("à l'époque", "at that time"))
_EVENTS = word_pairs("people", "events")
_ERRANDS: list[list[str]] = word_table("places")["errands"]
_EARLY = (Words("tôt", "early"), Words("tard", "late"))
_INDIRECT = (
    ("me", "me"),
    ("te", "you"),
    ("lui", "him"),
    ("nous", "us"),
    ("vous", "you"),
    ("leur", "them"),
)


def other_tenses(
    subject_: Subject, verb: Verb, tense: str, negation: str, rest: str
) -> tuple[str, ...]:
    """Return the same statement in the English tenses that fit the French one as well."""
    if tense == "progressive":
        return (english_clause(subject_, verb.english, "simple", rest, negation=negation),)
    if tense == "past" and "s" not in verb.marks:
        return (english_clause(subject_, verb.english, "perfect", rest, negation=negation),)
    return ()


def transitive(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody does something to something."""
    who = who or subject(draws)
    verb = some_verb(draws, who)
    tense = some_tense(draws, verb)
    return act(draws, who, verb, tense, some_negation(draws, tense))


def act(draws: Draws, who: Subject, verb: Verb, tense: str, negation: str) -> Draft:
    """Write a statement with a verb and its object."""
    thing, noun = thing_done_to(draws, verb, who, negation)
    in_english = english_tense(verb, tense, negation, False)
    time = NO_WORDS if negation in ("jamais", "plus") else time_for(draws, in_english, 0.2)
    rest = with_object(verb.english, thing.english)
    english = english_clause(who, verb.english, in_english, rest, negation=negation)
    french = french_clause(who, verb, tense, thing.french, negation=negation)
    others = () if time.french else other_tenses(who, verb, in_english, negation, rest)
    french, english = timed(french, english, time, draws.chance(0.4))
    return Draft(french, english, combined(who, verb, noun.lemma, thing), others)


def combined(who: Subject, verb: Verb, lemma: str, thing: Phrase) -> tuple[str, ...]:
    """Return the combinations of a clause: verb+object, and what its phrases hold."""
    return (*who.combinations, f"{verb.infinitive}+{lemma}", *thing.combinations)


def habit(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody often does something, or does it every day."""
    who = who or subject(draws)
    verb = some_verb(draws, who)
    while "s" in verb.marks or verb.infinitive in _NO_HABIT:
        verb = some_verb(draws, who)
    thing, noun = thing_done_to(draws, verb, who, habitual=True)
    rest = with_object(verb.english, thing.english)
    if "p" not in verb.marks and draws.chance(0.5):
        time = draws.of(HABITS)
        french = french_clause(who, verb, "present", thing.french)
        english = english_clause(who, verb.english, "simple", rest)
        french, english = timed(french, english, time, draws.chance(0.4))
    else:
        often = draws.of(FREQUENCIES)
        french = french_clause(who, verb, "present", thing.french, adverb=often.french)
        english = english_clause(who, verb.english, "simple", rest, adverb=often.english)
    return Draft(french, english, combined(who, verb, noun.lemma, thing))


def nothing(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody does it to nothing and to nobody."""
    who = who or subject(draws)
    if draws.chance(0.6):
        verb = VERBS[draws.of(_TO_NOTHING)]
        negation, thing = "rien", "anything"
    else:
        verb = VERBS[draws.of(_TO_NOBODY)]
        negation, thing = "personne", "anyone"
    tense = some_tense(draws, verb)
    in_english = english_tense(verb, tense, negation, False)
    rest = with_object(verb.english, thing)
    time = time_for(draws, in_english, 0.5)
    french = french_clause(who, verb, tense, negation=negation)
    english = english_clause(who, verb.english, in_english, rest, negation=negation)
    french, english = timed(french, english, time, draws.chance(0.4))
    return Draft(french, english, who.combinations)


def modal(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody can, wants to or must do something."""
    who = who or subject(draws)
    verb = some_verb(draws, who)
    while verb.marks:
        verb = some_verb(draws, who)
    tense = draws.of(("pouvoir", "vouloir", "devoir"))
    negation = "pas" if draws.chance(0.25) else ""
    thing, noun = thing_done_to(draws, verb, who, negation)
    rest = with_object(verb.english, thing.english)
    french = french_clause(who, verb, tense, thing.french, negation=negation)
    english = english_clause(who, verb.english, tense, rest, negation=negation)
    others: tuple[str, ...] = ()
    if tense == "devoir" and not negation:
        has = "has to" if who.agreement == "third" else "have to"
        others = (joined(who.english, has, verb.english.base, rest),)
    return Draft(french, english, combined(who, verb, noun.lemma, thing), others)


def clitic(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody asks for a thing; somebody else has it, as a pronoun before the verb."""
    who = who or subject(draws)
    verb = VERBS[draws.of(_WITH_PRONOUN)]
    noun = draws.of(verb.objects)
    while not _POSSESSED_THING & CLASSES[noun.lemma]:
        noun = draws.of(verb.objects)
    plural = "pair" in CLASSES[noun.lemma] or draws.chance(0.2)
    owner = draws.of(OWNERS[:2])
    kind = "possessive" if draws.chance(0.5) else "definite"
    phrase = noun_phrase(noun, kind, plural=plural, owner=owner)
    tense = draws.of(("past", "near"))
    pronoun = "les" if plural else "la" if noun.gender == "f" else "le"
    negation = "pas" if draws.chance(0.2) else ""
    agree = Agreement(noun.gender, plural)
    french = french_clause(who, verb, tense, negation=negation, clitic=pronoun, agree=agree)
    rest = with_object(verb.english, "them" if plural else "it", pronoun=True)
    english = english_clause(who, verb.english, tense, rest, negation=negation)
    be_french, be_english = ("sont", "are") if plural else ("est", "is")
    question = f"où {be_french} {phrase.french} ? "
    return Draft(
        question + french[0].upper() + french[1:],
        f"where {be_english} {phrase.english}? {english[0].upper()}{english[1:]}",
        (*who.combinations, f"{verb.infinitive}+{noun.lemma}"),
    )


def just(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody has just done something (venir de)."""
    who = who or subject(draws)
    verb = some_verb(draws, who)
    while "s" in verb.marks:
        verb = some_verb(draws, who)
    thing, noun = thing_done_to(draws, verb, who)
    rest = with_object(verb.english, thing.english)
    helper = present("venir", who.person)
    french = f"{who.french} {helper} de {verb.infinitive} {thing.french}"
    english = english_clause(who, verb.english, "perfect", rest, adverb="just")
    return Draft(french, english, combined(who, verb, noun.lemma, thing))


def before_and_now(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody used to do something (imparfait)."""
    who = who or subject(draws)
    time = draws.of(_BEFORE)
    if draws.chance(0.35):
        verb = draws.of(ACTIVITIES)
        while verb.after.startswith("un"):
            verb = draws.of(ACTIVITIES)
        rest, thing, combinations = verb.english.particle, "", who.combinations
    else:
        verb = VERBS[draws.of(_FORMERLY)]
        noun = draws.of(verb.objects)
        kind = "generic" if "g" in verb.marks else "indefinite"
        phrase = noun_phrase(noun, kind, plural=not is_mass(noun))
        rest, thing = phrase.bare or phrase.english, phrase.french
        combinations = combined(who, verb, noun.lemma, phrase)
    french = french_clause(who, verb, "imperfect", thing)
    english = english_clause(who, verb.english, "used", rest)
    french, english = timed(french, english, time, True)
    return Draft(french, english, combinations)


def interrupted(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody was doing something when something happened (imparfait and passé composé)."""
    who = who or subject(draws)
    verb = draws.of(INTRANSITIVE) if draws.chance(0.3) else some_verb(draws, who)
    while "s" in verb.marks or "p" in verb.marks:
        verb = some_verb(draws, who)
    if verb.objects:
        thing, noun = thing_done_to(draws, verb, who, adjective=0.15)
        rest, object_ = with_object(verb.english, thing.english), thing.french
        combinations = combined(who, verb, noun.lemma, thing)
    else:
        rest, object_, combinations = "", "", who.combinations
    if draws.chance(0.6):
        other = other_subject(draws, who)
        event = french_clause(other, MOVING[1], "past")
        happened = english_clause(other, MOVING[1].english, "past")
        combinations += other.combinations
    else:
        event, happened = draws.of(_EVENTS)
    french = f"{french_clause(who, verb, 'imperfect', object_)} quand {event}"
    english = f"{english_clause(who, verb.english, 'was', rest)} when {happened}"
    return Draft(french, english, combinations)


# To somebody, somewhere, and oneself


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
    time = NO_WORDS if negation in ("jamais", "plus") else time_for(draws, in_english, 0.3)
    if "s" in verb.marks:
        time = NO_WORDS
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
    time = NO_WORDS if negation in ("jamais", "plus") else time_for(draws, in_english, 0.3)
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
        time = NO_WORDS
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
        place = NO_WORDS
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
        time = NO_WORDS
    early = draws.of(_EARLY) if verb in REFLEXIVE[:3] else NO_WORDS
    rest = joined(verb.english.particle, early.english)
    french = french_clause(who, verb, tense, early.french, negation=negation)
    english = english_clause(who, verb.english, in_english, rest, negation=negation)
    french, english = timed(french, english, time, draws.chance(0.4))
    return Draft(french, english, who.combinations)
