"""Templates of being: what people and things are like, where things are, hours, prices, weather.

`actions.py` says what a template is.
"""

from __future__ import annotations

from heedful.data.synthetic import Draws
from heedful.data.synthetic.phrasebook.choices import (
    NAMES,
    OWNERS,
    as_subject,
    inside,
    location,
    other_subject,
    some_adjective,
    some_thing,
    subject,
    third_person,
)
from heedful.data.synthetic.phrasebook.clauses import (
    Draft,
    Phrase,
    Subject,
    be,
    being,
    clause,
    english_clause,
    joined,
    noun_phrase,
    of,
    timed,
)
from heedful.data.synthetic.phrasebook.english import (
    article,
    comparative,
    english_verb,
    hour_in_english,
    number_in_english,
)
from heedful.data.synthetic.phrasebook.french import hour_in_french, number_in_french, present
from heedful.data.synthetic.phrasebook.vocabulary import (
    BY_LEMMA,
    CHARACTER,
    DAYS,
    MONTHS,
    MOVING,
    NO_WORDS,
    NOUNS,
    REFLEXIVE,
    STATE,
    Adjective,
    Noun,
    Words,
    adjectives_of,
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
