"""When and where: times that fit a tense, places that fit what is done there."""

from __future__ import annotations

from typing import NamedTuple

from heedful.data.draws import Draws
from heedful.data.phrasebook.noun_phrases import at, noun_phrase
from heedful.data.phrasebook.nouns import BY_LEMMA, NOUNS, Noun
from heedful.data.phrasebook.numbers import DAYS

CITIES: tuple[tuple[str, str], ...] = tuple(
    (french, english or french)
    for french, _, english in (
        part.partition("=")
        for part in [
            "Paris",
            "Lyon",
            "Londres=London",
            "Rome",
            "Berlin",
            "Madrid",
            "Bruxelles=Brussels",
            "Genève=Geneva",
            "Nice",
            "Marseille",
            "Bordeaux",
            "Lille",
            "Vienne=Vienna",
            "Lisbonne=Lisbon",
            "Athènes=Athens",
            "Dublin",
            "Barcelone=Barcelona",
            "Venise=Venice",
            "Toulouse",
            "Strasbourg",
        ]
    )
)
COUNTRIES: tuple[tuple[str, str, str], ...] = tuple(
    (before, *french.split("=", 1))  # type: ignore[misc]
    for before, names in (
        (
            "en",
            "France=France Italie=Italy Espagne=Spain Belgique=Belgium Suisse=Switzerland "
            "Allemagne=Germany Angleterre=England Écosse=Scotland Irlande=Ireland Grèce=Greece "
            "Égypte=Egypt Norvège=Norway Suède=Sweden Chine=China Inde=India",
        ),
        (
            "au",
            "Portugal=Portugal Japon=Japan Canada=Canada Mexique=Mexico Brésil=Brazil "
            "Danemark=Denmark Maroc=Morocco",
        ),
        ("aux", "États-Unis=the_United_States Pays-Bas=the_Netherlands"),
    )
    for french in names.split()
)
"""Preposition of place, French and English."""
_AT = {
    "école": "at school",
    "université": "at university",
    "église": "at church",
    "village": "in the village",
    "hôpital": "in hospital",
}
_TO = {
    "école": "to school",
    "université": "to university",
    "église": "to church",
    "hôpital": "to hospital",
}
_NOT_VISITED = frozenset(("prison", "hangar", "pont", "place"))
DESTINATIONS: tuple[Noun, ...] = tuple(
    noun
    for name in ("shop", "building", "outdoors")
    for noun in NOUNS[name]
    if noun.lemma not in _NOT_VISITED
)
_SPOTS = {
    "nager": "à piscine; à plage; dans lac; dans rivière",
    "dormir": "dans chambre; dans salon; dans jardin; à hôtel; dans hamac; à camping; dans train",
    "travailler": "dans bureau; à usine; à ferme; à banque; à hôpital; à bibliothèque; "
    "à boulangerie; à poste; à mairie; dans jardin; à université; à restaurant",
    "cuisiner": "dans cuisine; dans jardin; à restaurant",
    "courir": "dans parc; dans forêt; à stade; dans champ",
    "marcher": "dans parc; dans forêt; dans village; dans couloir",
    "jouer": "dans jardin; à parc; à plage; dans chambre; dans salon; à école; dans grenier",
    "peindre": "dans jardin; dans grenier; dans garage",
    "lire": "dans jardin; dans chambre; dans salon; à bibliothèque; dans hamac; dans train",
    "étudier": "à bibliothèque; dans chambre; à université; dans bureau; à école",
    "attendre": "à gare; à aéroport; dans couloir; dans voiture; à restaurant; dans entrée",
    "danser": "dans salon; à théâtre; dans cuisine; à stade",
}
_ANYWHERE = (
    "dans jardin; dans salon; dans cuisine; à restaurant; à plage; à école; dans voiture; "
    "dans train; dans parc"
)


class Words(NamedTuple):
    """The same words in both languages."""

    french: str
    english: str


HABITS = (
    *(
        Words(*pair)
        for pair in (
            ("tous les jours", "every day"),
            ("tous les matins", "every morning"),
            ("tous les soirs", "every evening"),
            ("chaque semaine", "every week"),
            ("le week-end", "at the weekend"),
            ("chaque été", "every summer"),
        )
    ),
    *(Words(f"le {french}", f"on {english}s") for french, english in DAYS),
)
PAST_TIMES = (
    *(
        Words(*pair)
        for pair in (
            ("hier", "yesterday"),
            ("hier soir", "last night"),
            ("ce matin", "this morning"),
            ("la semaine dernière", "last week"),
            ("il y a deux jours", "two days ago"),
            ("avant-hier", "the day before yesterday"),
        )
    ),
    *(Words(f"{french} dernier", f"last {english}") for french, english in DAYS),
)
FUTURE_TIMES = (
    *(
        Words(*pair)
        for pair in (
            ("demain", "tomorrow"),
            ("demain matin", "tomorrow morning"),
            ("ce soir", "this evening"),
            ("la semaine prochaine", "next week"),
            ("après-demain", "the day after tomorrow"),
            ("dans deux jours", "in two days"),
            ("dans une heure", "in an hour"),
        )
    ),
    *(Words(f"{french} prochain", f"next {english}") for french, english in DAYS),
)
LONG_AGO = (
    Words("le mois dernier", "last month"),
    Words("l'année dernière", "last year"),
    Words("il y a trois mois", "three months ago"),
)
LATER = (
    Words("le mois prochain", "next month"),
    Words("l'année prochaine", "next year"),
    Words("dans six mois", "in six months"),
)
PRESENT_TIMES = (Words("en ce moment", "at the moment"), Words("maintenant", "now"))
FREQUENCIES = (
    Words("toujours", "always"),
    Words("souvent", "often"),
    Words("parfois", "sometimes"),
    Words("rarement", "rarely"),
)


def time_for(draws: Draws, english_tense: str, probability: float = 0.3) -> Words:
    """Draw when, in agreement with a tense of English; often empty."""
    times = {
        "past": PAST_TIMES,
        "near": FUTURE_TIMES,
        "progressive": PRESENT_TIMES,
        "pouvoir": FUTURE_TIMES,
        "devoir": FUTURE_TIMES,
        "vouloir": FUTURE_TIMES,
    }.get(english_tense)
    if times is None or not draws.chance(probability):
        return Words("", "")
    return draws.of(times)


def spot_for(draws: Draws, infinitive: str) -> Words:
    """Draw where something is done."""
    spots = [part.split() for part in _SPOTS.get(infinitive, _ANYWHERE).split(";")]
    before, lemma = draws.of(spots)
    return inside(BY_LEMMA[lemma]) if before == "dans" else place_at(BY_LEMMA[lemma])


def inside(noun: Noun) -> Words:
    """Say `in the …`, or `on the train` where English does."""
    phrase = noun_phrase(noun, "definite")
    before = "on" if noun.lemma in ("train", "bus", "balcon", "terrasse") else "in"
    french = "sur" if noun.lemma in ("balcon", "terrasse") else "dans"
    return Words(f"{french} {phrase.french}", f"{before} {phrase.english}")


def place_at(noun: Noun) -> Words:
    """Say `at the …`."""
    phrase = noun_phrase(noun, "definite")
    return Words(at(phrase.french), _AT.get(noun.lemma) or f"at {phrase.english}")


def place_to(noun: Noun) -> Words:
    """Say `to the …`."""
    phrase = noun_phrase(noun, "definite")
    return Words(at(phrase.french), _TO.get(noun.lemma) or f"to {phrase.english}")


def destination(draws: Draws) -> Words:
    """Draw where to: a place, a city or a country."""
    kind = draws.share()
    if kind < 0.65:
        return place_to(draws.of(DESTINATIONS))
    if kind < 0.83:
        french, english = draws.of(CITIES)
        return Words("à " + french, "to " + english)
    before, french, english = draws.of(COUNTRIES)
    return Words(f"{before} {french}", "to " + english.replace("_", " "))


def location(draws: Draws) -> Words:
    """Draw a city or country to be in."""
    if draws.chance(0.5):
        french, english = draws.of(CITIES)
        return Words("à " + french, "in " + english)
    before, french, english = draws.of(COUNTRIES)
    return Words(f"{before} {french}", "in " + english.replace("_", " "))
