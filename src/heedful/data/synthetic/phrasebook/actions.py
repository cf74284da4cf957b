"""Templates of doing: somebody does something, gives, speaks, goes; and clauses joined together.

A template draws a sentence in both languages. `who` is the subject it must take; None draws one.
`templates.toml` says how often each template is drawn, and `corpus.py` draws them by their names.
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
    as_subject,
    destination,
    location,
    other_subject,
    place_to,
    pronoun_for,
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
    Subject,
    at,
    be,
    clause,
    combined,
    english_clause,
    english_tense,
    french_clause,
    joined,
    noun_phrase,
    timed,
    with_object,
)
from heedful.data.synthetic.phrasebook.descriptions import property_of_thing, quality
from heedful.data.synthetic.phrasebook.french import present
from heedful.data.synthetic.phrasebook.vocabulary import (
    ACTIVITIES,
    BY_LEMMA,
    CHARACTER,
    GIVING,
    INTRANSITIVE,
    MOVING,
    NO_WORDS,
    NOUNS,
    REFLEXIVE,
    SPEAKING,
    STATE,
    VERBS,
    Verb,
    Words,
    adjectives_of,
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
    ("me", "me"), ("te", "you"), ("lui", "him"), ("nous", "us"), ("vous", "you"), ("leur", "them"),
)  # fmt: skip
_MODALS = ("pouvoir", "vouloir", "devoir")


# Somebody does something to something


def transitive(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody does something to something."""
    who = who or subject(draws)
    verb = some_verb(draws, who)
    tense = some_tense(draws, verb)
    negation = some_negation(draws, tense)
    thing, noun = thing_done_to(draws, verb, who, negation)
    time = _some_time(draws, verb, tense, negation, 0.2)
    others = () if time.french else _other_tenses(who, verb, tense, negation, thing.english)
    said = clause(who, verb, tense, thing[:2], negation=negation)
    combinations = combined(who, verb, noun, thing)
    return Draft(*timed(said, time, draws.chance(0.4)), combinations, others)


def _some_time(
    draws: Draws, verb: Verb, tense: str, negation: str, probability: float, habit: float = 0.0
) -> Words:
    """Draw when: a habit of the present with probability `habit`, else a time that fits."""
    if habit and tense == "present" and not negation and draws.chance(habit):
        return draws.of(HABITS)
    return time_for(draws, english_tense(verb, tense, negation), probability)


def _other_tenses(
    who: Subject, verb: Verb, tense: str, negation: str, rest: str
) -> tuple[str, ...]:
    """Return the same statement in the English tenses that fit the French one as well."""
    in_english = english_tense(verb, tense, negation)
    other = {"progressive": "simple", "past": "" if "s" in verb.marks else "perfect"}
    if not other.get(in_english):
        return ()
    return (english_clause(who, verb.english, other[in_english], rest, negation=negation),)


def habit(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody often does something, or does it every day."""
    who = who or subject(draws)
    verb = some_verb(draws, who, without="s", but=_NO_HABIT)
    thing, noun = thing_done_to(draws, verb, who, habitual=True)
    if "p" not in verb.marks and draws.chance(0.5):
        time = draws.of(HABITS)
        said = clause(who, verb, "present", thing[:2], english="simple")
        said = timed(said, time, draws.chance(0.4))
    else:
        often = draws.of(FREQUENCIES)
        said = clause(who, verb, "present", thing[:2], english="simple", adverb=often)
    return Draft(*said, combined(who, verb, noun, thing))


def nothing(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody does it to nothing and to nobody."""
    who = who or subject(draws)
    if draws.chance(0.6):
        verb, negation, thing = VERBS[draws.of(_TO_NOTHING)], "rien", "anything"
    else:
        verb, negation, thing = VERBS[draws.of(_TO_NOBODY)], "personne", "anyone"
    tense = some_tense(draws, verb)
    time = time_for(draws, english_tense(verb, tense, negation), 0.5)
    said = clause(who, verb, tense, ("", thing), negation=negation)
    return Draft(*timed(said, time, draws.chance(0.4)), who.combinations)


def modal(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody can, wants to or must do something."""
    who = who or subject(draws)
    verb = some_verb(draws, who, without="sgpn")
    tense = draws.of(_MODALS)
    negation = "pas" if draws.chance(0.25) else ""
    thing, noun = thing_done_to(draws, verb, who, negation)
    others: tuple[str, ...] = ()
    if tense == "devoir" and not negation:
        has = "has to" if who.agreement == "third" else "have to"
        rest = with_object(verb.english, thing.english)
        others = (joined(who.english, has, verb.english.base, rest),)
    said = clause(who, verb, tense, thing[:2], negation=negation)
    return Draft(*said, combined(who, verb, noun, thing), others)


def clitic(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody asks for a thing; somebody else has it, as a pronoun before the verb."""
    who = who or subject(draws)
    verb = VERBS[draws.of(_WITH_PRONOUN)]
    noun = draws.of(verb.objects)
    while not _POSSESSED_THING & noun.classes:
        noun = draws.of(verb.objects)
    plural = "pair" in noun.classes or draws.chance(0.2)
    owner = draws.of(OWNERS[:2])
    kind = "possessive" if draws.chance(0.5) else "definite"
    phrase = noun_phrase(noun, kind, plural=plural, owner=owner)
    tense = draws.of(("past", "near"))
    pronoun = "les" if plural else "la" if noun.gender == "f" else "le"
    negation = "pas" if draws.chance(0.2) else ""
    agree = Agreement(noun.gender, plural)
    french = french_clause(who, verb, tense, negation=negation, clitic=pronoun, agree=agree)
    rest = with_object(verb.english, "them" if plural else "it", pronoun=True)
    # The particle is in the rest already: take it off.
    bare = verb.english._replace(particle="")
    english = english_clause(who, bare, tense, rest, negation=negation)
    be_french, be_english = ("sont", "are") if plural else ("est", "is")
    return Draft(
        f"où {be_french} {phrase.french} ? {french[0].upper()}{french[1:]}",
        f"where {be_english} {phrase.english}? {english[0].upper()}{english[1:]}",
        (*who.combinations, f"{verb.infinitive}+{noun.lemma}"),
    )


def just(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody has just done something (venir de)."""
    who = who or subject(draws)
    verb = some_verb(draws, who, without="s")
    thing, noun = thing_done_to(draws, verb, who)
    helper = present("venir", who.person)
    french = f"{who.french} {helper} de {verb.infinitive} {thing.french}"
    english = english_clause(who, verb.english, "perfect", thing.english, adverb="just")
    return Draft(french, english, combined(who, verb, noun, thing))


def before_and_now(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody used to do something (imparfait)."""
    who = who or subject(draws)
    time = draws.of(_BEFORE)
    if draws.chance(0.35):
        verb = draws.of(ACTIVITIES)
        while verb.after.startswith("un"):
            verb = draws.of(ACTIVITIES)
        rest, combinations = NO_WORDS, who.combinations
    else:
        verb = VERBS[draws.of(_FORMERLY)]
        noun = draws.of(verb.objects)
        kind = "generic" if "g" in verb.marks else "indefinite"
        phrase = noun_phrase(noun, kind, plural=not noun.is_mass)
        rest = Words(phrase.french, phrase.bare or phrase.english)
        combinations = combined(who, verb, noun, phrase)
    said = clause(who, verb, "imperfect", rest, english="used")
    return Draft(*timed(said, time, True), combinations)


def interrupted(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody was doing something when something happened (imparfait and passé composé)."""
    who = who or subject(draws)
    verb = draws.of(INTRANSITIVE) if draws.chance(0.3) else some_verb(draws, who, without="sp")
    rest, combinations = NO_WORDS, who.combinations
    if verb.objects:
        thing, noun = thing_done_to(draws, verb, who, adjective=0.15)
        rest, combinations = Words(*thing[:2]), combined(who, verb, noun, thing)
    if draws.chance(0.6):
        other = other_subject(draws, who)
        event = clause(other, MOVING[1], "past")
        combinations += other.combinations
    else:
        event = draws.of(_EVENTS)
    said = clause(who, verb, "imperfect", rest, english="was")
    return Draft(
        f"{said.french} quand {event.french}", f"{said.english} when {event.english}", combinations
    )


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
    rest = (f"{thing.french} {at(to.french)}", f"{thing.english} to {to.english}")
    others: tuple[str, ...] = ()
    if not verb.english.particle:
        turned = f"{to.english} {thing.english}"
        others = (english_clause(who, verb.english, english_tense(verb, tense), turned),)
    combinations = (*who.combinations, *to.combinations, f"{verb.infinitive}+{noun.lemma}")
    return Draft(*clause(who, verb, tense, rest), combinations, others)


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
    french = french_clause(who, verb, tense, thing.french, negation=negation, clitic=pronoun)
    # `lui` is him and her.
    english, *others = (
        english_clause(
            who,
            verb.english,
            english_tense(verb, tense),
            f"{to} {thing.english}",
            negation=negation,
        )
        for to in ((english_pronoun, "her") if pronoun == "lui" else (english_pronoun,))
    )
    combinations = (*who.combinations, f"{verb.infinitive}+{noun.lemma}")
    return Draft(french, english, combinations, tuple(others))


def speaking(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody talks to, answers or phones somebody."""
    who = who or subject(draws)
    verb = draws.of(SPEAKING)
    to = third_person(draws)
    while to.french == who.french:
        to = third_person(draws)
    tense = "present" if "s" in verb.marks else draws.of(TENSES)
    negation = some_negation(draws, tense)
    time = _some_time(draws, verb, tense, negation, 0.3)
    said = clause(who, verb, tense, (at(to.french), to.english), negation=negation)
    return Draft(*timed(said, time, draws.chance(0.4)), who.combinations + to.combinations)


def intransitive(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody works, sleeps or swims somewhere."""
    who = who or subject(draws)
    verb = draws.of(INTRANSITIVE)
    tense = draws.of(TENSES)
    negation = some_negation(draws, tense)
    place = location(draws) if verb.infinitive == "voyager" else spot_for(draws, verb.infinitive)
    time = _some_time(draws, verb, tense, negation, 0.3)
    others = () if time.french else _other_tenses(who, verb, tense, negation, place.english)
    said = clause(who, verb, tense, place, negation=negation)
    return Draft(*timed(said, time, draws.chance(0.4)), who.combinations, others)


def activity(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody plays cards, does the shopping or has breakfast."""
    who = who or subject(draws)
    verb = draws.of(ACTIVITIES)
    tense = draws.of(("present", "past", "near", *_MODALS))
    # The partitive of `du vélo` would have to change after a negation.
    fixed = verb.after.startswith(("du ", "de ", "un"))
    negation = "" if fixed else some_negation(draws, tense, 0.2)
    time = _some_time(draws, verb, tense, negation, 0.5, habit=0.5)
    english = "simple" if time in HABITS else ""
    said = clause(who, verb, tense, negation=negation, english=english)
    return Draft(*timed(said, time, draws.chance(0.4)), who.combinations)


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
    in_english = english_tense(verb, tense, negation)
    time = time_for(draws, in_english, 1.0 if verb.infinitive == "revenir" else 0.3)
    if not time.french and draws.chance(0.2):
        time = draws.of({"past": LONG_AGO, "near": LATER}.get(tense, (time,)))
    if in_english == "progressive":
        time = Words("demain", "tomorrow")
    said = clause(who, verb, tense, place, negation=negation)
    return Draft(*timed(said, time, draws.chance(0.4)), who.combinations)


def purpose(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody goes somewhere to do something."""
    who = who or subject(draws)
    where, infinitive, classes = draws.of(_ERRANDS)
    verb = VERBS[infinitive]
    noun = draws.of([noun for name in classes.split() for noun in NOUNS[name]])
    plural = draws.chance(0.4) and not noun.is_mass
    thing = noun_phrase(noun, "indefinite", plural=plural)
    tense = draws.of(("present", "past"))
    place = place_to(BY_LEMMA[where])
    aim = joined("to", verb.english.base, with_object(verb.english, thing.english))
    rest = (f"{place.french} pour {infinitive} {thing.french}", f"{place.english} {aim}")
    combinations = (*who.combinations, f"{infinitive}+{noun.lemma}")
    return Draft(*clause(who, MOVING[0], tense, rest), combinations)


def reflexive(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody gets up, rests or gets lost."""
    who = who or subject(draws)
    verb = draws.of(REFLEXIVE)
    tense = draws.of(MOMENTS) if "p" in verb.marks else draws.of(TENSES)
    negation = some_negation(draws, tense, 0.2)
    time = _some_time(draws, verb, tense, negation, 0.6, habit=0.6)
    english = "simple" if time in HABITS else ""
    early = draws.of(_EARLY) if verb in REFLEXIVE[:3] else NO_WORDS
    said = clause(who, verb, tense, early, negation=negation, english=english)
    return Draft(*timed(said, time, draws.chance(0.4)), who.combinations)


# Joined clauses: relative clauses, reasons, conditions, and what people think

_DONE_BEFORE = verbs_for("done_before")
_LIVED: list[list[str]] = word_table("places")["lived_in"]
_SLEPT_IN = tuple(BY_LEMMA[lemma] for lemma in ("chambre", "salon", "grenier", "jardin"))
_CLAUSES = (transitive, intransitive, activity, reflexive, quality, moving)
_REASONS = frozenset(word_table("people")["reasons"])
_WEATHER = word_pairs("weather", "condition")


def relative_subject(draws: Draws, who: Subject | None = None) -> Draft:
    """The woman who is singing in the garden is my aunt (qui)."""
    noun, plural = draws.of(NOUNS["person"]), draws.chance(0.25)
    person = as_subject(noun_phrase(noun, "definite", plural=plural))
    combinations: tuple[str, ...] = ()
    if draws.chance(0.4):
        verb = draws.of(INTRANSITIVE)
        if verb.infinitive == "voyager":
            verb = INTRANSITIVE[0]
        rest = spot_for(draws, verb.infinitive)
    else:
        verb = some_verb(draws, person, without="pg")
        thing, object_ = thing_done_to(draws, verb, person, adjective=0.15)
        rest = Words(*thing[:2])
        combinations = (f"{verb.infinitive}+{object_.lemma}", *thing.combinations)
    said = clause(person, verb, "present", rest)
    is_ = present("être", person.person)
    french = said.french.replace(person.french, f"{person.french} qui", 1)
    english = said.english.replace(person.english, f"{person.english} who", 1)
    if draws.chance(0.5):
        kin = [one for one in NOUNS["kin"] if one.gender == noun.gender]
        owner = draws.of(OWNERS)
        end = Words(*noun_phrase(draws.of(kin), "possessive", plural=plural, owner=owner)[:2])
    else:
        trait = draws.of(CHARACTER if draws.chance(0.5) else STATE)
        end = Words(trait.form(noun.gender, plural), trait.english)
        combinations = (*combinations, f"{noun.lemma}+{trait.lemma}")
    return Draft(
        f"{french} {is_} {end.french}", f"{english} {be(person)} {end.english}", combinations
    )


def relative_object(draws: Draws, who: Subject | None = None) -> Draft:
    """The dress that Marie bought is red (que; the participle agrees with the dress)."""
    who = who or subject(draws)
    verb = VERBS[draws.of(_DONE_BEFORE)]
    fitting = [noun for noun in verb.objects if adjectives_of(noun, "after")]
    fitting = [noun for noun in fitting if {"person", "kin"}.isdisjoint(noun.classes)]
    noun = draws.of(fitting)
    plural = "pair" in noun.classes or draws.chance(0.2)
    thing = as_subject(noun_phrase(noun, "definite", plural=plural))
    tense = draws.of(("past", "present", "near")) if "p" not in verb.marks else "past"
    inner = french_clause(who, verb, tense, agree=Agreement(noun.gender, plural))
    spoken = english_clause(who, verb.english, english_tense(verb, tense))
    trait = draws.of(adjectives_of(noun, "after"))
    is_ = present("être", thing.person)
    french = f"{thing.french} que {inner} {is_} {trait.form(noun.gender, plural)}"
    english, other = (
        f"{thing.english} {that}{spoken} {be(thing)} {trait.english}" for that in ("that ", "")
    )
    combinations = (f"{verb.infinitive}+{noun.lemma}", f"{noun.lemma}+{trait.lemma}")
    return Draft(french, english, who.combinations + combinations, (other,))


def relative_place(draws: Draws, who: Subject | None = None) -> Draft:
    """The town where I live is quiet (où)."""
    who = who or subject(draws)
    noun, french, english = draws.of(_LIVED)
    places = _SLEPT_IN if noun == "room" else NOUNS[noun]
    place = draws.of([one for one in places if adjectives_of(one, "after")])
    thing = as_subject(noun_phrase(place, "definite"))
    trait = draws.of(adjectives_of(place, "after"))
    does = english + "s" * (who.agreement == "third")
    form = present(french, who.person)
    return Draft(
        f"{thing.french} où {who.french} {form} est {trait.form(place.gender, False)}",
        f"{thing.english} where {who.english} {does} is {trait.english}",
        (*who.combinations, f"{place.lemma}+{trait.lemma}"),
    )


def think_that(draws: Draws, who: Subject | None = None) -> Draft:
    """I think that Paul is tired; she knows that the museum is closed."""
    who = who or subject(draws)
    infinitive, english = draws.of(
        (("penser", "think"), ("savoir", "know"), ("croire", "believe"), ("dire", "say"))
    )
    inner = draws.of((quality, property_of_thing, moving, intransitive))(
        draws, None if draws.chance(0.5) else other_subject(draws, who)
    )
    while "," in inner.french:
        inner = property_of_thing(draws)
    says = english + "s" * (who.agreement == "third")
    return Draft(
        f"{who.french} {present(infinitive, who.person)} que {inner.french}",
        f"{who.english} {says} that {inner.english}",
        who.combinations + inner.combinations,
        (f"{who.english} {says} {inner.english}",),
    )


def two_clauses(draws: Draws, who: Subject | None = None) -> Draft:
    """Marie is reading a book and Paul is sleeping; I am tired but …"""
    first_subject = who or subject(draws)
    second_subject = other_subject(draws, first_subject)
    first = draws.of(_CLAUSES)(draws, first_subject)
    second = draws.of(_CLAUSES)(draws, second_subject)
    word, english = draws.of((("et", "and"), ("mais", "but"), ("mais", "but"), ("et", "and")))
    return _linked(first, second, f" {word} ", f" {english} ", draws)


def because(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody stays at home because they are ill."""
    who = who or subject(draws)
    first = draws.of((_staying, _resting))(draws, who)
    again = who if who.pronoun else pronoun_for(who)
    reason = draws.of(STATE[2:])
    while reason.english not in _REASONS:
        reason = draws.of(STATE)
    is_, form = present("être", who.person), reason.form(who.gender, who.plural)
    return Draft(
        f"{first.french} parce que {again.french} {is_} {form}",
        f"{first.english} because {again.english} {be(who)} {reason.english}",
        (*who.combinations, *((f"{who.lemma}+{reason.lemma}",) if who.lemma else ())),
    )


def _staying(draws: Draws, who: Subject) -> Words:
    return clause(who, MOVING[2], "present", ("à la maison", "at home"))


def _resting(draws: Draws, who: Subject) -> Words:
    verb = draws.of(ACTIVITIES[:14])
    if verb.after.startswith(("du ", "de ")):
        verb = ACTIVITIES[0]
    return clause(who, verb, "vouloir", negation="pas")


def condition(draws: Draws, who: Subject | None = None) -> Draft:
    """If it rains, we stay at home; when it is hot, they swim in the lake."""
    who = who or subject(draws)
    word, english = draws.of((("si", "if"), ("quand", "when")))
    weather = draws.of(_WEATHER)
    combinations = who.combinations
    if draws.chance(0.5):
        verb = draws.of(INTRANSITIVE[:-1])
        place = spot_for(draws, verb.infinitive)
        rest = NO_WORDS if verb.infinitive == "voyager" else place
    else:
        verb = some_verb(draws, who, without="sp")
        thing, noun = thing_done_to(draws, verb, who, adjective=0.1, habitual=True)
        rest, combinations = Words(*thing[:2]), combined(who, verb, noun, thing)
    said = clause(who, verb, "present", rest, english="simple")
    when = Words(f"{word} {weather.french}", f"{english} {weather.english}")
    return Draft(*timed(said, when, draws.chance(0.6)), combinations)


def three_clauses(draws: Draws, who: Subject | None = None) -> Draft:
    """A long sentence: a condition or a thought, and what somebody else does."""
    first = draws.of((condition, because, relative_object, relative_subject, think_that))(draws)
    second = draws.of((*_CLAUSES, relative_object, relative_place))(draws, None)
    word, english = draws.of(((", mais ", ", but "), (", et ", ", and ")))
    return _linked(first, second, word, english, draws)


def _linked(first: Draft, second: Draft, word: str, english: str, draws: Draws) -> Draft:
    while "," in second.french:
        second = draws.of((quality, intransitive, activity))(draws, None)
    return Draft(
        first.french + word + second.french,
        first.english + english + second.english,
        first.combinations + second.combinations,
    )
