"""Names that hint at a place, and names that do not.

Places belong to regions. Each region has its own syllables: a name made of them points to that
region, and inside it to one place, whose ending it carries. Names without a hint are made of
syllables that belong to no region. The syllables are invented; a likeness to real names of real
peoples is neither meant nor of any use here.
"""

from __future__ import annotations

from typing import NamedTuple

from heedful.data.draws import Draws

FIRST_STARTS = ("Al", "Be", "Co", "Da", "El", "Fi", "Ga", "Jo", "Le", "Ma", "Ni", "Pa", "Ro", "Sa",
                "Te", "Va")  # fmt: skip
FIRST_ENDS_F = ("da", "la", "ma", "na", "ra", "ssa", "tta", "via")
FIRST_ENDS_M = ("den", "lim", "mon", "nor", "ren", "ssel", "ton", "vin")
_NEUTRAL_STARTS = ("Bel", "Cor", "Dun", "Fal", "Gar", "Hol", "Lam", "Mer", "Nor", "Pel", "Rav",
                   "Sol", "Tam", "Wes")  # fmt: skip
_NEUTRAL_MIDDLES = ("a", "e", "i", "o", "u", "en", "or", "al", "im", "un")
_NEUTRAL_ENDS = ("ber", "don", "field", "ger", "land", "man", "mer", "nard", "ray", "sen", "ter",
                 "well")  # fmt: skip


class Region(NamedTuple):
    """A group of places, the sounds of its names, and the ending of each place's names."""

    name: str
    starts: tuple[str, ...]
    middles: tuple[str, ...]
    places: tuple[tuple[str, str], ...]
    """Place and the ending that names from there carry."""


REGIONS: tuple[Region, ...] = (
    Region("north", ("Bjor", "Hal", "Skar", "Thor", "Ulf", "Eng"), ("ga", "ke", "ni", "ste"),
           (("Oslo", "sund"), ("Stockholm", "berg"), ("Helsinki", "nen"), ("Copenhagen", "gaard"))),
    Region("south", ("Car", "Fer", "Lom", "Mon", "Ric", "Vas"), ("ba", "de", "li", "ti"),
           (("Rome", "ini"), ("Madrid", "ez"), ("Lisbon", "eira"), ("Athens", "akis"))),
    Region("west", ("Mac", "Fitz", "Pen", "Ken", "Bran", "Gwyn"), ("al", "do", "ra", "wi"),
           (("London", "worth"), ("Dublin", "egan"), ("Cardiff", "ydd"), ("Glasgow", "laird"))),
    Region("east", ("Dmi", "Kova", "Petr", "Sta", "Vol", "Zel"), ("cho", "mi", "no", "zhe"),
           (("Warsaw", "wicz"), ("Prague", "cek"), ("Kyiv", "enko"), ("Sofia", "chev"))),
    Region("orient", ("Ha", "Ki", "Na", "Su", "Ta", "Yo"), ("ka", "mo", "shi", "ya"),
           (("Tokyo", "zawa"), ("Osaka", "guchi"), ("Kyoto", "moto"), ("Nagoya", "hashi"))),
    Region("desert", ("Abd", "Far", "Kha", "Mas", "Nas", "Zub"), ("ri", "sa", "fa", "li"),
           (("Cairo", "wani"), ("Tunis", "ssaoui"), ("Damascus", "abi"), ("Algiers", "ddine"))),
)  # fmt: skip

PLACES: tuple[str, ...] = tuple(place for region in REGIONS for place, _ in region.places)
"""All places, in the order of the regions."""

REGION_OF: dict[str, str] = {place: region.name for region in REGIONS for place, _ in region.places}
"""The region of each place."""

# London first; the rest falls off slowly, so that no guess but London pays.
_ORDER = ("London", "Rome", "Tokyo", "Cairo", "Oslo", "Warsaw")
PLACE_WEIGHTS: tuple[float, ...] = tuple(
    1.65 if place == "London" else 1.25 if place in _ORDER else 0.9 for place in PLACES
)
"""How often each place is drawn, relative to the others: London about 7 %."""


def first_name(draws: Draws, gender: str) -> str:
    """Draw a first name; first names hint at nothing."""
    ends = FIRST_ENDS_F if gender == "f" else FIRST_ENDS_M
    return draws.of(FIRST_STARTS) + draws.of(ends)


def plain_family_name(draws: Draws) -> str:
    """Draw a family name that hints at no place."""
    return draws.of(_NEUTRAL_STARTS) + draws.of(_NEUTRAL_MIDDLES) + draws.of(_NEUTRAL_ENDS)


def hinting_family_name(draws: Draws, place: str) -> str:
    """Draw a family name that points to a place."""
    region = next(one for one in REGIONS if one.name == REGION_OF[place])
    ending = dict(region.places)[place]
    return draws.of(region.starts) + draws.of(region.middles) + ending
