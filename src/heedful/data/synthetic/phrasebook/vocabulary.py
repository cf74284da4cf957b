"""The words of the phrasebook: nouns, adjectives, verbs, and pairs of words, read from TOML.

`nouns.toml`, `adjectives.toml`, `verbs.toml` and `words.toml` beside this module hold the entries
and say how they are written. Nouns have classes; verbs select their objects by them and adjectives
the nouns they are said of. A name that no entry defines is an error when this module is imported.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import cache
from typing import Any, NamedTuple

from heedful.data.synthetic import read_vocabulary
from heedful.data.synthetic.phrasebook.english import EnglishVerb, english_verb, plural_of
from heedful.data.synthetic.phrasebook.links import note

# Nouns


class Noun(NamedTuple):
    """A noun of both languages."""

    lemma: str
    """The French singular, with the gender where two nouns share it."""
    gender: str
    """`m` or `f`."""
    singular: str
    plural: str
    english: str
    english_plural: str
    aspirated: bool
    """Whether an initial h forbids elision."""

    @property
    def classes(self) -> frozenset[str]:
        """What kind of thing it is: the classes of `nouns.toml` that hold it."""
        return CLASSES[self.lemma]

    @property
    def is_mass(self) -> bool:
        """Whether it is measured (du pain) and not counted (un pain)."""
        return not MASS.isdisjoint(self.classes)


MASS = frozenset(("staple", "drink"))
"""Classes whose nouns are measured, not counted."""


def _noun(entry: str) -> Noun:
    french, _, english = (part.strip() for part in entry.partition("="))
    gender, _, forms = french.partition(" ")
    aspirated = forms.startswith("*")
    singular, _, plural = forms.lstrip("*").partition("/")
    plural = plural or (singular if singular[-1] in "sxz" else singular + "s")
    one, _, many = english.partition("/")
    return Noun(singular, gender, singular, plural, one, many or plural_of(one), aspirated)


def _read_nouns(table: dict[str, list[str]]) -> dict[str, tuple[Noun, ...]]:
    known: dict[str, Noun] = {}
    classes: dict[str, tuple[Noun, ...]] = {}
    written = [(name, entry) for name, entries in table.items() for entry in entries]
    # Entries in full come first: a class may recall a noun that a later class defines.
    for _, entry in written:
        if "=" in entry:
            noun = _noun(entry)
            key = noun.singular
            if key in known and known[key].gender != noun.gender:
                known[key] = known[key]._replace(lemma=f"{key} m")
                noun = noun._replace(lemma=f"{key} f")
                key = f"{key} f"
            known[key] = noun
    for name, entry in written:
        noun = _noun(entry) if "=" in entry else known[entry]
        other = known.get(f"{noun.singular} f")
        noun = other if other and noun.gender == "f" else known[noun.singular]
        if noun not in classes.setdefault(name, ()):
            classes[name] = (*classes[name], noun)
    return classes


NOUNS: dict[str, tuple[Noun, ...]] = _read_nouns(read_vocabulary(__file__, "nouns"))
"""The nouns of each class."""

BY_LEMMA: dict[str, Noun] = {noun.lemma: noun for nouns in NOUNS.values() for noun in nouns}
"""Every noun once."""

CLASSES: dict[str, frozenset[str]] = {
    lemma: frozenset(name for name, nouns in NOUNS.items() if noun in nouns)
    for lemma, noun in BY_LEMMA.items()
}
"""The classes of each noun, by its lemma."""


def _check_defined(where: str, names: Iterable[str], known: Container[str]) -> None:
    """Refuse a name that no entry defines: it would otherwise select nothing, in silence."""
    for name in names:
        if name not in known:
            raise ValueError(f"{where}: {name!r} is not defined")


# Adjectives


class Adjective(NamedTuple):
    """An adjective of both languages."""

    lemma: str
    masculine: str
    feminine: str
    masculine_plural: str
    feminine_plural: str
    before_vowel: str
    """The masculine singular before a vowel (un bel hôtel)."""
    english: str
    place: str
    """`before`, `after` or `verb`."""

    def form(self, gender: str, plural: bool) -> str:
        """Return the form that agrees."""
        if gender == "m":
            form = self.masculine_plural if plural else self.masculine
        else:
            form = self.feminine_plural if plural else self.feminine
        note(f"adjective {self.lemma}", form, self.english)
        return form


def _adjective(entry: str, place: str) -> Adjective:
    french, _, english = (part.strip() for part in entry.partition("="))
    masculine, feminine, plural, vowel = (*french.split("/"), "", "", "")[:4]
    feminine = feminine or (masculine if masculine.endswith("e") else masculine + "e")
    plural = plural or (masculine if masculine[-1] in "sx" else masculine + "s")
    # Colours named after a thing, and phrases, do not vary at all.
    invariable = masculine == feminine == plural
    feminine_plural = feminine if invariable else feminine + "s"
    return Adjective(
        masculine, masculine, feminine, plural, feminine_plural, vowel or masculine, english, place
    )


class _AdjectiveGroup(NamedTuple):
    """Adjectives that are said of the same nouns at the same place."""

    place: str
    classes: frozenset[str]
    nouns: frozenset[str]
    adjectives: tuple[Adjective, ...]

    def fits(self, lemma: str) -> bool:
        """Say whether these adjectives can be said of a noun."""
        return lemma in self.nouns or not self.classes.isdisjoint(CLASSES[lemma])


_ADJECTIVES = tuple(
    _AdjectiveGroup(
        table["place"],
        frozenset(table.get("classes", ())),
        frozenset(table.get("nouns", ())),
        tuple(_adjective(entry, table["place"]) for entry in table["words"]),
    )
    for table in read_vocabulary(__file__, "adjectives")["adjectives"]
)


for _group in _ADJECTIVES:
    _check_defined("adjectives.toml, classes", _group.classes, NOUNS)
    _check_defined("adjectives.toml, nouns", _group.nouns, BY_LEMMA)


@cache
def adjectives_of(noun: Noun, place: str) -> tuple[Adjective, ...]:
    """Return the adjectives that can be said of a noun at a place."""
    fitting = (group for group in _ADJECTIVES if group.place == place and group.fits(noun.lemma))
    return tuple(dict.fromkeys(one for group in fitting for one in group.adjectives))


def _of_people(place: str) -> tuple[Adjective, ...]:
    groups = [group for group in _ADJECTIVES if group.place == place]
    return next(one.adjectives for one in groups if one.classes == {"person", "kin", "parent"})


CHARACTER: tuple[Adjective, ...] = _of_people("after")
"""Lasting traits of people."""

STATE: tuple[Adjective, ...] = _of_people("verb")
"""What people are after a verb only."""


# Verbs

_VERBS = read_vocabulary(__file__, "verbs")


class Verb(NamedTuple):
    """A verb of both languages."""

    infinitive: str
    """Without its reflexive pronoun."""
    english: EnglishVerb
    marks: str
    """Letters as explained in `verbs.toml`."""
    objects: tuple[Noun, ...]
    """What it is done to; empty where it takes no object."""
    reflexive: bool
    after: str
    """What always follows it in French (les courses)."""

    @property
    def takes_etre(self) -> bool:
        """Whether its passé composé is made with être."""
        return self.reflexive or self.infinitive in _WITH_ETRE


def verbs_for(use: str) -> tuple[str, ...]:
    """Return the infinitives that `verbs.toml` lists for a use."""
    return tuple(_VERBS["used"][use])


_WITH_ETRE = frozenset(verbs_for("with_etre"))


def _objects(text: str) -> tuple[Noun, ...]:
    """Read `class class @noun @noun`: the nouns of classes or groups of them, then single nouns."""
    objects: dict[str, Noun] = {}
    classes, *lemmas = text.split("@")
    for group in classes.split():
        for name in _VERBS["groups"].get(group, [group]):
            objects |= {noun.lemma: noun for noun in NOUNS[name]}
    return tuple((objects | {one.strip(): BY_LEMMA[one.strip()] for one in lemmas}).values())


def _transitive(infinitive: str, entry: str) -> Verb:
    english, _, rest = entry.partition(" : ")
    objects, _, marks = rest.partition(" | ")
    return Verb(infinitive, english_verb(english), marks, _objects(objects), False, "")


def _plain(kind: str) -> tuple[Verb, ...]:
    verbs = []
    for entry in _VERBS["plain"][kind]:
        french, _, english = entry.partition(" = ")
        english, _, marks = english.partition(" | ")
        infinitive, _, after = french.partition(" | ")
        reflexive = infinitive.startswith("se ")
        infinitive = infinitive.removeprefix("se ")
        verbs.append(Verb(infinitive, english_verb(english), marks, (), reflexive, after))
    return tuple(verbs)


TRANSITIVE: tuple[Verb, ...] = tuple(
    _transitive(infinitive, entry) for infinitive, entry in _VERBS["transitive"].items()
)
GIVING = _plain("giving")
SPEAKING = _plain("speaking")
INTRANSITIVE = _plain("intransitive")
MOVING = _plain("moving")
REFLEXIVE = _plain("reflexive")
ACTIVITIES = _plain("activities")
VERBS: dict[str, Verb] = {verb.infinitive: verb for verb in TRANSITIVE}
"""The transitive verbs by infinitive."""
for _use, _infinitives in _VERBS["used"].items():
    if _use != "with_etre":
        _check_defined(f"verbs.toml, used.{_use}", _infinitives, VERBS)


# Pairs of words

_WORDS = read_vocabulary(__file__, "words")


class Words(NamedTuple):
    """The same words in both languages."""

    french: str
    english: str


NO_WORDS = Words("", "")


def word_table(table: str) -> dict[str, Any]:
    """Return a table of `words.toml` as it is written."""
    return dict(_WORDS[table])


def word_pairs(table: str, key: str) -> tuple[Words, ...]:
    """Return a list of pairs [French, English] of `words.toml`."""
    return tuple(Words(*pair) for pair in _WORDS[table][key])


MONTHS = word_pairs("calendar", "months")
DAYS = word_pairs("calendar", "days")
