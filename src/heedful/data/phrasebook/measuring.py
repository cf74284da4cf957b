"""Templates of counting: hours, dates, prices, ages, amounts, the weather, and the way."""

from __future__ import annotations

from heedful.data.draws import Draws
from heedful.data.phrasebook.choices import OWNERS, subject, third_person
from heedful.data.phrasebook.clauses import (
    Subject,
    be,
    english_clause,
    french_clause,
)
from heedful.data.phrasebook.conjugation import present
from heedful.data.phrasebook.drafts import Draft, joined
from heedful.data.phrasebook.english import english_verb, number_in_english
from heedful.data.phrasebook.noun_phrases import noun_phrase, of
from heedful.data.phrasebook.nouns import NOUNS
from heedful.data.phrasebook.numbers import (
    DAYS,
    MONTHS,
    hour_in_english,
    hour_in_french,
    number_in_french,
)
from heedful.data.phrasebook.occasions import Words, location
from heedful.data.phrasebook.verbs import MOVING, REFLEXIVE

_MINUTES = (0, 0, 0, 5, 10, 15, 20, 25, 30, 40, 45, 50, 55)
_PRICED = (
    ("fruit", 2, 9),
    ("sweet", 2, 20),
    ("savoury", 3, 25),
    ("printed", 3, 30),
    ("dishes", 4, 40),
    ("clothing", 15, 99),
    ("pair", 10, 99),
    ("instrument", 60, 99),
    ("furniture", 40, 99),
)


def _time(draws: Draws, latest: int = 12) -> Words:
    hour, minutes = 1 + draws.below(latest), draws.of(_MINUTES)
    return Words(hour_in_french(hour, minutes), hour_in_english(hour, minutes))


def at_an_hour(draws: Draws, who: Subject | None = None) -> Draft:
    """The train leaves at ten past nine; she gets up at seven."""
    time = _time(draws)
    kind = draws.share()
    if kind < 0.35 and who is None:
        noun = draws.of(NOUNS["transport"])
        phrase = noun_phrase(noun, "definite")
        french, english = draws.of((("part", "leaves"), ("arrive", "arrives")))
        return Draft(
            f"{phrase.french} {french} à {time.french}",
            f"{phrase.english} {english} at {time.english}",
        )
    who = who or subject(draws)
    if kind < 0.55:
        opens = draws.of(NOUNS["shop"])
        phrase = noun_phrase(opens, "definite")
        french, english = draws.of((("ouvre", "opens"), ("ferme", "closes")))
        return Draft(
            f"{phrase.french} {french} à {time.french}",
            f"{phrase.english} {english} at {time.english}",
        )
    # `midi` is noon, and nobody goes to bed then.
    time = _time(draws, 10)
    verb = draws.of(REFLEXIVE[:3])
    tense = draws.of(("present", "past"))
    in_english = "simple" if tense == "present" else "past"
    french = french_clause(who, verb, tense, f"à {time.french}")
    rest = f"{verb.english.particle} at {time.english}"
    return Draft(french, english_clause(who, verb.english, in_english, rest), who.combinations)


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
        person = third_person(draws) if draws.chance(0.5) else None
        of_whom = person.french if person and not person.plural else phrase.french
        whose = person.english if person and not person.plural else phrase.english
        combined = person.combinations if person and not person.plural else ()
        return Draft(
            f"l'anniversaire {of(of_whom)} est {date}",
            f"{whose}'s birthday is {english_date}",
            combined,
        )
    who = who or subject(draws)
    place = location(draws)
    verb = MOVING[1] if kind < 0.7 else MOVING[2]
    tense = draws.of(("near", "past")) if verb is MOVING[1] else "past"
    if verb is MOVING[2]:
        days = 2 + draws.below(14)
        french = french_clause(who, verb, "past", f"{number_in_french(days)} jours {place.french}")
        rest = f"{place.english} for {number_in_english(days)} days"
        return Draft(french, english_clause(who, verb.english, "past", rest), who.combinations)
    french = french_clause(who, verb, tense, f"{place.french} {date}")
    english = english_clause(who, verb.english, tense, f"{place.english} {english_date}")
    return Draft(french, english, who.combinations)


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


_FEELINGS = (
    ("faim", "hungry"),
    ("soif", "thirsty"),
    ("froid", "cold"),
    ("chaud", "hot"),
    ("sommeil", "sleepy"),
    ("raison", "right"),
    ("tort", "wrong"),
    ("de la chance", "lucky"),
    ("peur", "afraid"),
)
_FEARED = ("wild", "pet", "farm")


def having(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody is hungry, afraid of spiders, or needs a ladder (French: avoir)."""
    who = who or subject(draws)
    has = present("avoir", who.person)
    negated = draws.chance(0.2)
    kind = draws.share()
    if kind < 0.45:
        french, english = draws.of(_FEELINGS)
        if negated:
            french = "de chance" if french == "de la chance" else french
        group = f"ne {has} pas {french}" if negated else f"{has} {french}"
        state = joined(be(who), "not" if negated else "", english)
        return Draft(f"{who.french} {group}", f"{who.english} {state}", who.combinations)
    if kind < 0.7:
        noun = draws.of(NOUNS[draws.of(_FEARED)])
        phrase = noun_phrase(noun, "definite", plural=True)
        group = f"ne {has} pas peur" if negated else f"{has} peur"
        state = joined(be(who), "not" if negated else "", "afraid of", noun.english_plural)
        return Draft(
            f"{who.french} {group} {of(phrase.french)}", f"{who.english} {state}", who.combinations
        )
    noun = draws.of(NOUNS["thing"] + NOUNS["clothing"] + NOUNS["dishes"])
    phrase = noun_phrase(noun, "indefinite")
    group = f"ne {has} pas besoin" if negated else f"{has} besoin"
    need = english_clause(
        who, english_verb("need"), "simple", phrase.english, negation="pas" if negated else ""
    )
    return Draft(f"{who.french} {group} {of(phrase.french)}", need, who.combinations)


def hurting(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody has a headache, or a sore foot."""
    who = who or subject(draws)
    french, english = draws.of(
        (
            ("à la tête", "a headache"),
            ("au ventre", "a stomach ache"),
            ("aux dents", "toothache"),
            ("au dos", "backache"),
            ("à la gorge", "a sore throat"),
        )
    )
    when = draws.of((Words("depuis hier", "since yesterday"), Words("", ""), Words("", "")))
    has = "has" if who.agreement == "third" else "have"
    had = f"{has} had" if when.french else has
    return Draft(
        joined(who.french, present("avoir", who.person), "mal", french, when.french),
        joined(who.english, had, english, when.english),
        who.combinations,
    )


_WEATHER = (
    ("il fait froid", "it is cold"),
    ("il fait chaud", "it is hot"),
    ("il fait beau", "the weather is nice"),
    ("il pleut", "it is raining"),
    ("il neige", "it is snowing"),
    ("il fait mauvais", "the weather is bad"),
    ("il y a du vent", "it is windy"),
    ("il y a du soleil", "it is sunny"),
    ("il y a du brouillard", "it is foggy"),
)
_OFTEN = (
    ("il fait souvent froid", "it is often cold"),
    ("il pleut souvent", "it often rains"),
    ("il neige rarement", "it rarely snows"),
    ("il fait toujours chaud", "it is always hot"),
    ("il ne neige jamais", "it never snows"),
    ("il pleut parfois", "it sometimes rains"),
)
_SOON = (
    ("il va pleuvoir", "it is going to rain"),
    ("il va neiger", "it is going to snow"),
    ("il va faire froid", "it is going to be cold"),
    ("il va faire chaud", "it is going to be hot"),
)
_WAS = (
    ("il a plu", "it rained"),
    ("il a neigé", "it snowed"),
    ("il faisait froid", "it was cold"),
    ("il faisait beau", "the weather was nice"),
    ("il faisait chaud", "it was hot"),
)
_SEASONS = (
    ("en hiver", "in winter"),
    ("en été", "in summer"),
    ("au printemps", "in spring"),
    ("en automne", "in autumn"),
)


def weather(draws: Draws, who: Subject | None = None) -> Draft:
    """It often rains in Ireland; it is going to snow tomorrow in Lyon."""
    place = location(draws)
    kind = draws.share()
    table, times = (
        (_WEATHER, (("aujourd'hui", "today"), ("ce matin", "this morning"), ("", "")))
        if kind < 0.3
        else (_OFTEN, _SEASONS)
        if kind < 0.55
        else (_SOON, (("demain", "tomorrow"), ("ce soir", "this evening"), ("lundi", "on Monday")))
        if kind < 0.8
        else (_WAS, (("hier", "yesterday"), ("la semaine dernière", "last week")))
    )
    french, english = draws.of(table)
    when, english_when = draws.of(times)
    if when and draws.chance(0.4):
        return Draft(
            f"{when}, {french} {place.french}", f"{english_when}, {english} {place.english}"
        )
    return Draft(joined(french, place.french, when), joined(english, place.english, english_when))


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
