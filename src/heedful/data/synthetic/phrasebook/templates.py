"""Sentence templates: of being, of doing, of joined clauses, of asking and ordering.

A template draws a sentence in both languages. `who` is the subject it must take; None draws one.
`templates.toml` says how often each template is drawn, and `corpus.py` draws them by their names.

Templates of being say what people and things are like, where things are, hours, prices, weather. In
templates of doing somebody does something, gives, speaks, goes; clauses are then joined. The last
ones are questions, commands, requests, and directions.
"""

from __future__ import annotations

import re

from heedful.data.synthetic import Draws
from heedful.data.synthetic.phrasebook.grammar import (
    DESTINATIONS,
    FREQUENCIES,
    HABITS,
    LATER,
    LONG_AGO,
    MOMENTS,
    NAMES,
    OWNERS,
    PRONOUNS,
    REFLEXIVES,
    TENSES,
    Agreement,
    Draft,
    Phrase,
    Subject,
    as_subject,
    at,
    be,
    being,
    clause,
    combined,
    destination,
    english_clause,
    english_tense,
    french_clause,
    french_inversion,
    inside,
    joined,
    location,
    noun_phrase,
    of,
    other_subject,
    place_to,
    pronoun_for,
    some_adjective,
    some_negation,
    some_tense,
    some_thing,
    some_verb,
    someone,
    spot_for,
    subject,
    thing_done_to,
    third_person,
    time_for,
    timed,
    with_object,
)
from heedful.data.synthetic.phrasebook.words import (
    ACTIVITIES,
    BY_LEMMA,
    CHARACTER,
    DAYS,
    GIVING,
    INTRANSITIVE,
    MONTHS,
    MOVING,
    NO_WORDS,
    NOUNS,
    REFLEXIVE,
    SPEAKING,
    STATE,
    TRANSITIVE,
    VERBS,
    Adjective,
    Noun,
    Verb,
    Words,
    adjectives_of,
    article,
    comparative,
    english_verb,
    hour_in_english,
    hour_in_french,
    imperative,
    number_in_english,
    number_in_french,
    participle,
    present,
    verbs_for,
    word_pairs,
    word_table,
)

_PEOPLE, _QUALITIES = word_table("people"), word_table("qualities")
_DESCRIBED: tuple[Noun, ...] = tuple(
    noun
    for noun in BY_LEMMA.values()
    if adjectives_of(noun, "after")
    and {"parent", "kin", "person", "staple", "drink"}.isdisjoint(noun.classes)
)
_NOT_GRADED = frozenset(_QUALITIES["not_graded"])
_COMPARED = {
    adjective.english: adjective
    for adjective in (*CHARACTER, *STATE)
    if adjective.english not in _NOT_GRADED.union(_QUALITIES["not_compared"])
}
_GRADED_THINGS = frozenset(_QUALITIES["graded_things"])
_CLASH: dict[str, list[str]] = word_table("clash")
_TRADES: tuple[Noun, ...] = tuple(
    noun
    for noun in NOUNS["person"]
    if noun.lemma not in _PEOPLE["not_a_trade"] and not noun.lemma.startswith("collègue")
)


# What people and things are like


def quality(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody is tired, kind or not jealous any more."""
    who = who or subject(draws)
    trait = draws.of(STATE) if draws.chance(0.6) else draws.of(CHARACTER)
    past = draws.chance(0.25)
    negation = draws.of(("pas", "pas", "jamais", "plus")) if draws.chance(0.25) else ""
    graded = trait.english not in _NOT_GRADED and negation in ("", "pas")
    very = ("très ", "very ") if graded and draws.chance(0.25) else ("", "")
    rest = (very[0] + trait.form(who.gender, who.plural), very[1] + trait.english)
    said = being(who, rest, past=past, negation=negation)
    return Draft(*said, who.combinations + _said(who, trait))


def _said(who: Subject, trait: Adjective) -> tuple[str, ...]:
    return (f"{who.lemma}+{trait.lemma}",) if who.lemma else ()


def property_of_thing(draws: Draws, who: Subject | None = None) -> Draft:
    """A thing is red, heavy or not expensive."""
    noun = draws.of(_DESCRIBED)
    trait = draws.of(adjectives_of(noun, "after"))
    classes = noun.classes
    plural = "pair" in classes or ("room" not in classes and draws.chance(0.3))
    phrase = some_thing(draws, noun, plural)
    thing = as_subject(phrase)
    past = draws.chance(0.25)
    negation = draws.of(("pas", "pas", "plus")) if draws.chance(0.25) else ""
    rest = (trait.form(noun.gender, plural), trait.english)
    said = being(thing, rest, past=past, negation=negation)
    return Draft(*said, (f"{noun.lemma}+{trait.lemma}", *phrase.combinations))


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
    fitting: list[Adjective] = []
    while not fitting:
        noun = draws.of(_DESCRIBED)
        fitting = [one for one in adjectives_of(noun, "after") if one.lemma in _GRADED_THINGS]
    trait = draws.of(fitting)
    alike = [one for one in _DESCRIBED if trait in adjectives_of(one, "after") and one != noun]
    second = draws.of(alike)
    plural = "pair" in noun.classes
    one = as_subject(noun_phrase(noun, "demonstrative", plural=plural))
    owner = draws.of(OWNERS)
    kind = "possessive" if {"thing", "clothing", "home"} & second.classes else "definite"
    other = as_subject(noun_phrase(second, kind, plural="pair" in second.classes, owner=owner))
    combinations = (f"{noun.lemma}+{trait.lemma}", f"{second.lemma}+{trait.lemma}")
    return _ranked(draws, one, other, trait, combinations)


def _ranked(
    draws: Draws, who: Subject, other: Subject, trait: Adjective, combinations: tuple[str, ...]
) -> Draft:
    degree = draws.of(("plus", "plus", "moins", "aussi"))
    quality_ = trait.form(who.gender, who.plural)
    compared = {
        "plus": f"{comparative(trait.english)} than",
        "moins": f"less {trait.english} than",
        "aussi": f"as {trait.english} as",
    }[degree]
    said = being(who, (f"{degree} {quality_} que {other.french}", f"{compared} {other.english}"))
    others: tuple[str, ...] = ()
    if degree == "moins":
        others = (f"{who.english} {be(who)} not as {trait.english} as {other.english}",)
    return Draft(*said, combinations, others)


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
    rest = (noun.singular, f"{article(noun.english)} {noun.english}")
    said = being(who, rest, past=past, negation="pas" if negated else "")
    return Draft(*said, who.combinations)


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


def this_is(draws: Draws, who: Subject | None = None) -> Draft:
    """It is a beautiful house."""
    noun = draws.of(_DESCRIBED)
    fitting = adjectives_of(noun, "before") + adjectives_of(noun, "after")
    described: tuple[Adjective, ...] = (draws.of(fitting),)
    before, after = adjectives_of(noun, "before"), adjectives_of(noun, "after")
    if before and after and draws.chance(0.3):
        first = draws.of(before)
        second = [one for one in after if one.lemma not in _CLASH.get(first.lemma, ())]
        described = (first, draws.of(second)) if second else (first,)
    plural = "pair" in noun.classes or draws.chance(0.25)
    phrase = noun_phrase(noun, "indefinite", plural=plural, adjectives=described)
    english = phrase.bare or phrase.english
    french = f"ce sont {phrase.french}" if plural else f"c'est {phrase.french}"
    return Draft(french, f"{'they are' if plural else 'it is'} {english}", phrase.combinations)


# What there is somewhere, and where a thing is

_IN_THINGS: tuple[Noun, ...] = NOUNS["container"]
_PUT: tuple[Noun, ...] = NOUNS["small"] + NOUNS["dishes"] + NOUNS["fruit"]
_SEEN_IN_ROOMS = tuple(BY_LEMMA[lemma] for lemma in word_table("places")["seen_in_rooms"])
_BESIDE, _NEAR = word_pairs("places", "beside"), word_pairs("places", "near")
_BUILDINGS: tuple[Noun, ...] = tuple(
    noun for noun in NOUNS["shop"] + NOUNS["building"] if noun.lemma != "hangar"
)


def there_is(draws: Draws, who: Subject | None = None) -> Draft:
    """There are three glasses on the table, or there is no cake in the fridge."""
    place, thing = _place_and_thing(draws)
    kind = draws.share()
    if kind < 0.2:
        phrase = noun_phrase(thing, "indefinite", plural=True, negation="pas")
        there = ("il n'y a pas", "there aren't")
    elif kind < 0.5:
        described = some_adjective(draws, thing, 0.4)
        phrase = noun_phrase(thing, "indefinite", adjectives=described)
        there = ("il y a", "there is")
    else:
        if kind < 0.75:
            number = 2 + draws.below(19)
            phrase = noun_phrase(thing, "number", plural=True, number=number)
        else:
            quantity = draws.of(("beaucoup de", "quelques", "plusieurs", "trop de"))
            phrase = noun_phrase(thing, quantity, plural=True)
        past = draws.chance(0.25)
        there = ("il y avait", "there were") if past else ("il y a", "there are")
    return Draft(
        f"{there[0]} {phrase.french} {place.french}",
        f"{there[1]} {phrase.english} {place.english}",
        phrase.combinations,
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
        noun = draws.of(_BUILDINGS)
        other = draws.other(_BUILDINGS, than=noun)
        phrase = noun_phrase(noun, "definite")
        place = _placed(*draws.of(_NEAR), noun_phrase(other, "definite"))
    thing = as_subject(phrase)
    negation = draws.chance(0.15)
    french = being(thing, place, negation="pas" if negation else "").french
    english = joined(thing.english, be(thing) + ("n't" if negation else ""), place.english)
    return Draft(french, english, phrase.combinations)


# Hours, dates, prices, ages, feelings, the weather

_MINUTES = (0, 0, 0, 5, 10, 15, 20, 25, 30, 40, 45, 50, 55)
_PRICED: list[tuple[str, int, int]] = word_table("shopping")["prices"]
_FEELINGS, _PAINS = word_pairs("people", "feelings"), word_pairs("people", "pains")
_FEARED = ("wild", "pet", "farm")
_WEATHER = {kind: word_pairs("weather", kind) for kind in ("now", "often", "soon", "was")}
_SEASONS = word_pairs("calendar", "seasons")


def _time(draws: Draws, latest: int = 12) -> Words:
    hour, minutes = 1 + draws.below(latest), draws.of(_MINUTES)
    return Words(hour_in_french(hour, minutes), hour_in_english(hour, minutes))


def at_an_hour(draws: Draws, who: Subject | None = None) -> Draft:
    """The train leaves at ten past nine; she gets up at seven."""
    time = _time(draws)
    kind = draws.share()
    if kind < 0.35 and who is None:
        noun = draws.of(NOUNS["transport"])
        return _does_at(noun, draws.of((("part", "leaves"), ("arrive", "arrives"))), time)
    who = who or subject(draws)
    if kind < 0.55:
        noun = draws.of(NOUNS["shop"])
        return _does_at(noun, draws.of((("ouvre", "opens"), ("ferme", "closes"))), time)
    # `midi` is noon, and nobody goes to bed then.
    time = _time(draws, 10)
    verb = draws.of(REFLEXIVE[:3])
    tense = draws.of(("present", "past"))
    rest = (f"à {time.french}", f"at {time.english}")
    said = clause(who, verb, tense, rest, english="simple" if tense == "present" else "past")
    return Draft(*said, who.combinations)


def _does_at(noun: Noun, does: tuple[str, str], time: Words) -> Draft:
    phrase = noun_phrase(noun, "definite")
    return Draft(
        f"{phrase.french} {does[0]} à {time.french}",
        f"{phrase.english} {does[1]} at {time.english}",
    )


def on_a_date(draws: Draws, who: Subject | None = None) -> Draft:
    """We arrive in Paris on 3 May; her birthday is on 14 July."""
    day = 1 + draws.below(30)
    french_month, english_month = draws.of(MONTHS)
    if french_month == "février":
        day = min(day, 28)
    written = "1er" if day == 1 else str(day)
    french_day, english_day = draws.of(DAYS) if draws.chance(0.3) else ("", "")
    date = joined("le", french_day, written, french_month)
    english_date = joined("on", english_day, str(day), english_month)
    kind = draws.share()
    if kind < 0.3:
        owner = draws.of(OWNERS)
        phrase = noun_phrase(draws.of(NOUNS["kin"]), "possessive", owner=owner)
        whose = as_subject(phrase)
        if draws.chance(0.5) and not (person := third_person(draws)).plural:
            whose = person
        return Draft(
            f"l'anniversaire {of(whose.french)} est {date}",
            f"{whose.english}'s birthday is {english_date}",
            whose.combinations,
        )
    who = who or subject(draws)
    place = location(draws)
    if kind < 0.7:
        verb, tense = MOVING[1], draws.of(("near", "past"))
        rest = (f"{place.french} {date}", f"{place.english} {english_date}")
    else:
        verb, tense, days = MOVING[2], "past", 2 + draws.below(14)
        rest = (
            f"{number_in_french(days)} jours {place.french}",
            f"{place.english} for {number_in_english(days)} days",
        )
    return Draft(*clause(who, verb, tense, rest), who.combinations)


def price(draws: Draws, who: Subject | None = None) -> Draft:
    """This book costs twelve euros; how much do these shoes cost?"""
    name, least, most = draws.of(_PRICED)
    noun = draws.of(NOUNS[name])
    plural = name == "pair" or draws.chance(0.3)
    phrase = noun_phrase(noun, draws.of(("demonstrative", "definite")), plural=plural)
    if draws.chance(0.35):
        french = f"combien {'coûtent' if plural else 'coûte'} {phrase.french}"
        do = "do" if plural else "does"
        others = (f"how much {'are' if plural else 'is'} {phrase.english}",)
        return Draft(french, f"how much {do} {phrase.english} cost", mark="?", others=others)
    amount = least + draws.below(most - least + 1)
    french = f"{phrase.french} {'coûtent' if plural else 'coûte'} {number_in_french(amount)} euros"
    english = f"{phrase.english} {'cost' if plural else 'costs'} {number_in_english(amount)} euros"
    return Draft(french, english)


def age(draws: Draws, who: Subject | None = None) -> Draft:
    """Marie is twenty years old (French: she has twenty years)."""
    who = who or subject(draws)
    years = 4 + draws.below(90)
    french = f"{who.french} {present('avoir', who.person)} {number_in_french(years)} ans"
    english = f"{who.english} {be(who)} {number_in_english(years)}"
    return Draft(french, f"{english} years old", who.combinations, (english,))


def having(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody is hungry, afraid of spiders, or needs a ladder (French: avoir)."""
    who = who or subject(draws)
    has = present("avoir", who.person)
    negated = draws.chance(0.2)
    group = joined(who.french, f"ne {has} pas" if negated else has)
    negation = "pas" if negated else ""
    kind = draws.share()
    if kind < 0.45:
        french, english = draws.of(_FEELINGS)
        if negated and french == "de la chance":
            french = "de chance"
        said = being(who, ("", english), negation=negation)
        return Draft(f"{group} {french}", said.english, who.combinations)
    if kind < 0.7:
        noun = draws.of(NOUNS[draws.of(_FEARED)])
        phrase = noun_phrase(noun, "definite", plural=True)
        said = being(who, ("", f"afraid of {noun.english_plural}"), negation=negation)
        return Draft(f"{group} peur {of(phrase.french)}", said.english, who.combinations)
    noun = draws.of(NOUNS["thing"] + NOUNS["clothing"] + NOUNS["dishes"])
    phrase = noun_phrase(noun, "indefinite")
    verb = english_verb("need")
    need = english_clause(who, verb, "simple", phrase.english, negation=negation)
    return Draft(f"{group} besoin {of(phrase.french)}", need, who.combinations)


def hurting(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody has a headache, or a sore foot."""
    who = who or subject(draws)
    french, english = draws.of(_PAINS)
    when = draws.of((Words("depuis hier", "since yesterday"), NO_WORDS, NO_WORDS))
    has = "has" if who.agreement == "third" else "have"
    had = f"{has} had" if when.french else has
    return Draft(
        joined(who.french, present("avoir", who.person), "mal", french, when.french),
        joined(who.english, had, english, when.english),
        who.combinations,
    )


def weather(draws: Draws, who: Subject | None = None) -> Draft:
    """It often rains in Ireland; it is going to snow tomorrow in Lyon."""
    place = location(draws)
    kind = draws.share()
    table, times = (
        (_WEATHER["now"], (("aujourd'hui", "today"), ("ce matin", "this morning"), ("", "")))
        if kind < 0.3
        else (_WEATHER["often"], _SEASONS)
        if kind < 0.55
        else (
            _WEATHER["soon"],
            (("demain", "tomorrow"), ("ce soir", "this evening"), ("lundi", "on Monday")),
        )
        if kind < 0.8
        else (_WEATHER["was"], (("hier", "yesterday"), ("la semaine dernière", "last week")))
    )
    french, english = draws.of(table)
    when = draws.of(times)
    said = Words(f"{french} {place.french}", f"{english} {place.english}")
    return Draft(*timed(said, Words(*when), bool(when[0]) and draws.chance(0.4)))


def since(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody has lived in Paris for three years (French: lives there since)."""
    who = who or subject(draws)
    count = 2 + draws.below(18)
    unit, english_unit = draws.of((("ans", "years"), ("mois", "months"), ("semaines", "weeks")))
    long = Words(
        f"depuis {number_in_french(count, 'f' if unit == 'semaines' else 'm')} {unit}",
        f"for {number_in_english(count)} {english_unit}",
    )
    french, english = draws.of((("habiter", "live"), ("travailler", "work"), ("être", "be")))
    place = location(draws)
    form = present(french, who.person)
    done = english_clause(who, english_verb(english), "perfect", f"{place.english} {long.english}")
    return Draft(f"{who.french} {form} {place.french} {long.french}", done, who.combinations)


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
_CONDITIONS = word_pairs("weather", "condition")


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
    weather = draws.of(_CONDITIONS)
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


# Questions

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
