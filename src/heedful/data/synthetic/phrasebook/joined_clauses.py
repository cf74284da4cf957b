"""Templates that join clauses: relative clauses, reasons, conditions, and what people think."""

from __future__ import annotations

from heedful.data.synthetic import Draws
from heedful.data.synthetic.phrasebook.actions import (
    activity,
    intransitive,
    moving,
    reflexive,
    transitive,
)
from heedful.data.synthetic.phrasebook.choices import (
    OWNERS,
    as_subject,
    other_subject,
    pronoun_for,
    some_verb,
    spot_for,
    subject,
    thing_done_to,
)
from heedful.data.synthetic.phrasebook.clauses import (
    Agreement,
    Draft,
    Subject,
    be,
    english_clause,
    english_tense,
    french_clause,
    joined,
    noun_phrase,
    with_object,
)
from heedful.data.synthetic.phrasebook.descriptions import property_of_thing, quality
from heedful.data.synthetic.phrasebook.french import present
from heedful.data.synthetic.phrasebook.vocabulary import (
    ACTIVITIES,
    BY_LEMMA,
    CHARACTER,
    CLASSES,
    INTRANSITIVE,
    MOVING,
    NO_WORDS,
    NOUNS,
    STATE,
    VERBS,
    adjectives_of,
    verbs_for,
    word_pairs,
    word_table,
)

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
        place = spot_for(draws, verb.infinitive)
        french = french_clause(person, verb, "present", place.french)
        rest, tense = place.english, "progressive"
    else:
        verb = some_verb(draws, person)
        while "p" in verb.marks or "g" in verb.marks:
            verb = some_verb(draws, person)
        thing, object_ = thing_done_to(draws, verb, person, adjective=0.15)
        french = french_clause(person, verb, "present", thing.french)
        rest = with_object(verb.english, thing.english)
        tense = english_tense(verb, "present", "", False)
        combinations = (f"{verb.infinitive}+{object_.lemma}", *thing.combinations)
    french = french.replace(person.french, f"{person.french} qui", 1)
    english = english_clause(person, verb.english, tense, rest)
    english = english.replace(person.english, f"{person.english} who", 1)
    if draws.chance(0.5):
        kin = [one for one in NOUNS["kin"] if one.gender == noun.gender]
        owner = draws.of(OWNERS)
        end = noun_phrase(draws.of(kin), "possessive", plural=plural, owner=owner)
        return Draft(
            f"{french} {present('être', person.person)} {end.french}",
            f"{english} {be(person)} {end.english}",
            combinations,
        )
    trait = draws.of(CHARACTER if draws.chance(0.5) else STATE)
    return Draft(
        f"{french} {present('être', person.person)} {trait.form(noun.gender, plural)}",
        f"{english} {be(person)} {trait.english}",
        (*combinations, f"{noun.lemma}+{trait.lemma}"),
    )


def relative_object(draws: Draws, who: Subject | None = None) -> Draft:
    """The dress that Marie bought is red (que; the participle agrees with the dress)."""
    who = who or subject(draws)
    verb = VERBS[draws.of(_DONE_BEFORE)]
    fitting = [noun for noun in verb.objects if adjectives_of(noun, "after")]
    fitting = [noun for noun in fitting if {"person", "kin"}.isdisjoint(CLASSES[noun.lemma])]
    noun = draws.of(fitting)
    plural = "pair" in CLASSES[noun.lemma] or draws.chance(0.2)
    thing = as_subject(noun_phrase(noun, "definite", plural=plural))
    tense = draws.of(("past", "present", "near")) if "p" not in verb.marks else "past"
    agree = Agreement(noun.gender, plural)
    inner = french_clause(who, verb, tense, agree=agree)
    in_english = english_tense(verb, tense, "", False)
    spoken = english_clause(who, verb.english, in_english, verb.english.particle)
    trait = draws.of(adjectives_of(noun, "after"))
    is_ = present("être", thing.person)
    french = f"{thing.french} que {inner} {is_} {trait.form(noun.gender, plural)}"
    english = f"{thing.english} that {spoken} {be(thing)} {trait.english}"
    others = (f"{thing.english} {spoken} {be(thing)} {trait.english}",)
    combinations = (f"{verb.infinitive}+{noun.lemma}", f"{noun.lemma}+{trait.lemma}")
    return Draft(french, english, who.combinations + combinations, others)


def relative_place(draws: Draws, who: Subject | None = None) -> Draft:
    """The town where I live is quiet (où)."""
    who = who or subject(draws)
    noun, french, english = draws.of(_LIVED)
    places = _SLEPT_IN if noun == "room" else NOUNS[noun]
    place = draws.of([one for one in places if adjectives_of(one, "after")])
    thing = as_subject(noun_phrase(place, "definite"))
    trait = draws.of(adjectives_of(place, "after"))
    third = who.agreement == "third"
    spoken = f"{who.english} {english + 's' if third else english}"
    form = present(french, who.person)
    return Draft(
        f"{thing.french} où {who.french} {form} est {trait.form(place.gender, False)}",
        f"{thing.english} where {spoken} is {trait.english}",
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
    third = who.agreement == "third"
    says = english + ("s" if third else "")
    french = f"{who.french} {present(infinitive, who.person)} que {inner.french}"
    spoken = f"{who.english} {says} that {inner.english}"
    others = (f"{who.english} {says} {inner.english}",)
    return Draft(french, spoken, who.combinations + inner.combinations, others)


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
    french = f"{again.french} {present('être', who.person)} {reason.form(who.gender, who.plural)}"
    english = f"{again.english} {be(who)} {reason.english}"
    combinations = (*first.combinations, *((f"{who.lemma}+{reason.lemma}",) if who.lemma else ()))
    return Draft(
        f"{first.french} parce que {french}", f"{first.english} because {english}", combinations
    )


def _staying(draws: Draws, who: Subject) -> Draft:
    french = french_clause(who, MOVING[2], "present", "à la maison")
    return Draft(
        french, english_clause(who, MOVING[2].english, "progressive", "at home"), who.combinations
    )


def _resting(draws: Draws, who: Subject) -> Draft:
    verb = draws.of(ACTIVITIES[:14])
    if verb.after.startswith(("du ", "de ")):
        verb = ACTIVITIES[0]
    french = french_clause(who, verb, "vouloir", negation="pas")
    return Draft(
        french,
        english_clause(who, verb.english, "vouloir", verb.english.particle, negation="pas"),
        who.combinations,
    )


def condition(draws: Draws, who: Subject | None = None) -> Draft:
    """If it rains, we stay at home; when it is hot, they swim in the lake."""
    who = who or subject(draws)
    word, english = draws.of((("si", "if"), ("quand", "when")))
    weather, english_weather = draws.of(_WEATHER)
    if draws.chance(0.5):
        verb = draws.of(INTRANSITIVE[:-1])
        place = spot_for(draws, verb.infinitive)
        if verb.infinitive == "voyager":
            place = NO_WORDS
        result = french_clause(who, verb, "present", place.french)
        spoken = english_clause(who, verb.english, "simple", place.english)
        combinations: tuple[str, ...] = ()
    else:
        verb = some_verb(draws, who)
        while "s" in verb.marks or "p" in verb.marks:
            verb = some_verb(draws, who)
        thing, noun = thing_done_to(draws, verb, who, adjective=0.1, habitual=True)
        result = french_clause(who, verb, "present", thing.french)
        spoken = english_clause(
            who, verb.english, "simple", with_object(verb.english, thing.english)
        )
        combinations = (f"{verb.infinitive}+{noun.lemma}", *thing.combinations)
    combinations = who.combinations + combinations
    if draws.chance(0.6):
        return Draft(
            f"{word} {weather}, {result}", f"{english} {english_weather}, {spoken}", combinations
        )
    return Draft(
        f"{result} {word} {weather}", f"{spoken} {english} {english_weather}", combinations
    )


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
        joined(first.french) + word + second.french,
        first.english + english + second.english,
        first.combinations + second.combinations,
    )
