"""Noun phrases in both languages: determiner, adjectives and noun, all in agreement.

French changes with what stands next to the noun (l', cet, mon amie, un bel hôtel, de belles
pommes) and with the negation (pas de pain); English changes with counting (some, any, a, an).
"""

from __future__ import annotations

from typing import NamedTuple

from heedful.data.phrasebook.adjectives import Adjective
from heedful.data.phrasebook.english import article, number_in_english
from heedful.data.phrasebook.nouns import Noun, is_mass
from heedful.data.phrasebook.numbers import number_in_french
from heedful.data.phrasebook.orthography import begins_with_vowel

_POSSESSIVES = (
    ("mon", "ma", "mes"),
    ("ton", "ta", "tes"),
    ("son", "sa", "ses"),
    ("notre", "notre", "nos"),
    ("votre", "votre", "vos"),
    ("leur", "leur", "leurs"),
)
_QUANTITIES = {
    "beaucoup de": ("a lot of", "a lot of"),
    "assez de": ("enough", "enough"),
    "trop de": ("too many", "too much"),
    "quelques": ("a few", ""),
    "plusieurs": ("several", ""),
}


class Owner(NamedTuple):
    """Whose it is: the French person 0 to 5, and the English word."""

    person: int
    english: str


class Phrase(NamedTuple):
    """A noun phrase of both languages, with what agreement needs to know."""

    french: str
    english: str
    gender: str
    plural: bool
    combinations: tuple[str, ...]
    """The pairs noun+adjective it holds."""
    lemma: str = ""
    """Of the noun."""
    bare: str = ""
    """The English without `some` or `any`, where it has one."""


def noun_phrase(
    noun: Noun,
    kind: str,
    *,
    plural: bool = False,
    adjectives: tuple[Adjective, ...] = (),
    owner: Owner | None = None,
    number: int = 0,
    negation: str = "",
) -> Phrase:
    """Build a noun phrase.

    `kind` is definite, indefinite, demonstrative, possessive, number, generic, bare, or a
    quantity such as `beaucoup de`. A French negation turns an indefinite into `de`.
    """
    before = [one for one in adjectives if one.place == "before"]
    after = [one for one in adjectives if one.place != "before"]
    head = noun.plural if plural else noun.singular
    words = [_agreed(one, noun, plural, head) for one in before]
    words += [head, *(one.form(noun.gender, plural) for one in after)]
    core = " ".join(words)
    english_core = " ".join(
        [
            *(one.english for one in before),
            *(one.english for one in after),
            noun.english_plural if plural else noun.english,
        ]
    )
    some = kind == "indefinite" and (plural or is_mass(noun))
    return Phrase(
        _french(kind, noun, plural, core, owner, number, negation, bool(before)),
        _english(kind, noun, plural, english_core, owner, number, negation),
        noun.gender,
        plural,
        tuple(f"{noun.lemma}+{one.lemma}" for one in adjectives),
        noun.lemma,
        english_core if some else "",
    )


def _agreed(adjective: Adjective, noun: Noun, plural: bool, head: str) -> str:
    if noun.gender == "m" and not plural and begins_with_vowel(head):
        return adjective.before_vowel
    return adjective.form(noun.gender, plural)


def _french(
    kind: str,
    noun: Noun,
    plural: bool,
    core: str,
    owner: Owner | None,
    number: int,
    negation: str,
    adjective_first: bool,
) -> str:
    vowel = begins_with_vowel(core)
    feminine = noun.gender == "f"
    if kind in ("definite", "generic"):
        if plural:
            return "les " + core
        return "l'" + core if vowel else ("la " if feminine else "le ") + core
    if kind == "indefinite":
        if negation or (plural and adjective_first):
            return _of(core, vowel)
        if plural:
            return "des " + core
        if is_mass(noun):
            return "de l'" + core if vowel else ("de la " if feminine else "du ") + core
        return ("une " if feminine else "un ") + core
    if kind == "demonstrative":
        form = "ces" if plural else "cette" if feminine else "cet" if vowel else "ce"
        return f"{form} {core}"
    if kind == "possessive" and owner is not None:
        masculine_form = not feminine or vowel
        forms = _POSSESSIVES[owner.person]
        return f"{forms[2] if plural else forms[0] if masculine_form else forms[1]} {core}"
    if kind == "number":
        return f"{number_in_french(number, noun.gender)} {core}"
    if kind == "bare":
        return core
    return _of(core, vowel, kind) if kind.endswith(" de") else f"{kind} {core}"


def _of(core: str, vowel: bool, quantity: str = "de") -> str:
    return f"{quantity[:-1]}'{core}" if vowel else f"{quantity} {core}"


def _english(
    kind: str,
    noun: Noun,
    plural: bool,
    core: str,
    owner: Owner | None,
    number: int,
    negation: str,
) -> str:
    if kind == "definite":
        return "the " + core
    if kind in ("generic", "bare"):
        return core
    if kind == "indefinite":
        if plural or is_mass(noun):
            quantity = {"": "some ", "pas": "any ", "rien": "any "}.get(negation, "")
            return quantity + core
        return f"{article(core)} {core}"
    if kind == "demonstrative":
        return ("these " if plural else "this ") + core
    if kind == "possessive" and owner is not None:
        return f"{owner.english} {core}"
    if kind == "number":
        return f"{number_in_english(number)} {core}"
    counted, measured = _QUANTITIES[kind]
    return f"{measured if is_mass(noun) else counted} {core}"


def at(phrase: str) -> str:
    """Put `à` before a French phrase: au, à la, à l', aux.

    >>> at("le zoo"), at("les amis"), at("l'école"), at("Paris")
    ('au zoo', 'aux amis', "à l'école", 'à Paris')
    """
    if phrase.startswith("le "):
        return "au " + phrase[3:]
    return "aux " + phrase[4:] if phrase.startswith("les ") else "à " + phrase


def of(phrase: str) -> str:
    """Put `de` before a French phrase: du, de la, de l', des, d'.

    >>> of("le zoo"), of("les amis"), of("Alice"), of("la mer"), of("un ami")
    ('du zoo', 'des amis', "d'Alice", 'de la mer', "d'un ami")
    """
    if phrase.startswith("le "):
        return "du " + phrase[3:]
    if phrase.startswith("les "):
        return "des " + phrase[4:]
    return _of(phrase, begins_with_vowel(phrase))
