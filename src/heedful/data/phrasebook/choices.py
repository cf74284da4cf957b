"""Draws of the pieces of a sentence: who, what, when, where, with what makes sense together."""

from __future__ import annotations

from heedful.data.draws import Draws
from heedful.data.phrasebook.adjectives import Adjective, adjectives_of
from heedful.data.phrasebook.clauses import Subject
from heedful.data.phrasebook.noun_phrases import Owner, Phrase, noun_phrase
from heedful.data.phrasebook.nouns import CLASSES, NOUNS, Noun, is_mass
from heedful.data.phrasebook.verbs import Verb

OWNERS = (Owner(0, "my"), Owner(1, "your"), Owner(3, "our"), Owner(4, "your"))
_HIS, _HER, _THEIR = Owner(2, "his"), Owner(2, "her"), Owner(5, "their")
_TABLE = (
    ("je", "I", 0, "I"),
    ("tu", "you", 1, "other"),
    ("nous", "we", 3, "other"),
    ("vous", "you", 4, "other"),
)
PRONOUNS: tuple[Subject, ...] = (
    *(
        Subject(french, english, person, gender, person > 2, agreement, owner, True)
        for (french, english, person, agreement), owner in zip(_TABLE, OWNERS, strict=True)
        for gender in "mf"
    ),
    Subject("il", "he", 2, "m", False, "third", _HIS, True),
    Subject("elle", "she", 2, "f", False, "third", _HER, True),
    Subject("ils", "they", 5, "m", True, "other", _THEIR, True),
    Subject("elles", "they", 5, "f", True, "other", _THEIR, True),
)
"""Subject pronouns; those that do not show their gender come with both."""
_MEN = [
    "Paul",
    "Pierre",
    "Louis",
    "Marc",
    "Hugo",
    "Antoine",
    "Nicolas",
    "Thomas",
    "Émile",
    "Henri",
    "Julien",
    "Victor",
]
_WOMEN = [
    "Marie",
    "Sophie",
    "Claire",
    "Julie",
    "Emma",
    "Alice",
    "Léa",
    "Anne",
    "Hélène",
    "Manon",
    "Inès",
    "Juliette",
]
NAMES: tuple[Subject, ...] = (
    *(Subject(name, name, 2, "m", False, "third", _HIS, False) for name in _MEN),
    *(Subject(name, name, 2, "f", False, "third", _HER, False) for name in _WOMEN),
)
"""People called by their first name."""
_POSSESSED = frozenset(
    ("thing", "clothing", "pair", "pet", "room", "home", "owned vehicle", "luggage", "dishes")
)
_NOT_YET_OWNED = frozenset(
    [
        "acheter",
        "louer",
        "recevoir",
        "commander",
        "choisir",
        "essayer",
        "emprunter",
        "inventer",
        "construire",
    ]
)
_ONE_AT_A_TIME = frozenset(
    [
        "porter",
        "mettre",
        "enlever",
        "essayer",
        "conduire",
        "garer",
        "prendre",
        "rater",
        "attendre",
        "louer",
        "signer",
    ]
)
_OF_SEVERAL = frozenset(
    [
        "acheter",
        "vendre",
        "manger",
        "lire",
        "écrire",
        "casser",
        "dessiner",
        "photographier",
        "planter",
        "corriger",
        "laver",
        "réparer",
        "commander",
        "perdre",
        "trouver",
        "choisir",
        "voir",
        "cueillir",
        "apporter",
        "préparer",
        "servir",
        "traduire",
        "repasser",
        "poster",
        "recevoir",
        "cacher",
        "plier",
    ]
)
_ONE_OF_A_KIND = frozenset(("room", "opening", "shop", "building"))


def subject(draws: Draws) -> Subject:
    """Draw who does it: a pronoun, a name, or a person by trade or kinship."""
    kind = draws.share()
    if kind < 0.45:
        return draws.of(PRONOUNS)
    return draws.of(NAMES) if kind < 0.68 else someone(draws)


def other_subject(draws: Draws, first: Subject) -> Subject:
    """Draw somebody else."""
    second = subject(draws)
    while second.french == first.french or second.english == first.english:
        second = subject(draws)
    return second


def third_person(draws: Draws) -> Subject:
    """Draw a subject that is named, not a pronoun."""
    return draws.of(NAMES) if draws.chance(0.45) else someone(draws)


def someone(draws: Draws) -> Subject:
    """Draw a person or relative, one or several."""
    group = draws.share()
    if group < 0.15:
        noun, owner = draws.of(NOUNS["parent"]), draws.of(OWNERS)
        if noun.lemma == "mari" and owner.english == "our":
            owner = OWNERS[0]
        phrase = noun_phrase(noun, "possessive", owner=owner)
    elif group < 0.45:
        noun, plural = draws.of(NOUNS["kin"]), draws.chance(0.3)
        phrase = noun_phrase(noun, "possessive", plural=plural, owner=draws.of(OWNERS))
    else:
        noun, plural = draws.of(NOUNS["person"]), draws.chance(0.35)
        kind = "demonstrative" if draws.chance(0.15) else "definite"
        phrase = noun_phrase(
            noun, kind, plural=plural, adjectives=some_adjective(draws, noun, 0.12)
        )
    return as_subject(phrase)


def as_subject(phrase: Phrase) -> Subject:
    """Let a noun phrase of the third person do something."""
    owner = _THEIR if phrase.plural else _HIS if phrase.gender == "m" else _HER
    return Subject(
        phrase.french,
        phrase.english,
        5 if phrase.plural else 2,
        phrase.gender,
        phrase.plural,
        "other" if phrase.plural else "third",
        owner,
        False,
        phrase.combinations,
        phrase.lemma,
    )


def pronoun_for(who: Subject) -> Subject:
    """Return the pronoun that takes up a subject of the third person."""
    wanted = {(2, "m"): "il", (2, "f"): "elle", (5, "m"): "ils", (5, "f"): "elles"}
    french = wanted[(who.person, who.gender)]
    return next(one for one in PRONOUNS if one.french == french)


def some_adjective(draws: Draws, noun: Noun, probability: float) -> tuple[Adjective, ...]:
    """Draw an adjective that can be said of a noun, before or after it, or none."""
    if not draws.chance(probability):
        return ()
    before, after = adjectives_of(noun, "before"), adjectives_of(noun, "after")
    # After `le`, `bon` and `mauvais` mean the right one and the wrong one: kept for `c'est un`.
    fitting = [one for one in before + after if one.lemma not in ("bon", "mauvais")]
    return (draws.of(fitting),) if fitting else ()


def thing_done_to(
    draws: Draws,
    verb: Verb,
    who: Subject,
    negation: str = "",
    adjective: float = 0.25,
    habitual: bool = False,
) -> tuple[Phrase, Noun]:
    """Draw what a verb is done to, with a determiner that makes sense."""
    noun = draws.of(verb.objects)
    return object_phrase(draws, noun, verb, who, negation, adjective, habitual), noun


def object_phrase(
    draws: Draws,
    noun: Noun,
    verb: Verb,
    who: Subject,
    negation: str,
    adjective: float,
    habitual: bool,
) -> Phrase:
    """Put a determiner, and perhaps an adjective, to what a verb is done to."""
    classes = CLASSES[noun.lemma]
    if "g" in verb.marks:
        return noun_phrase(noun, "generic", plural=not is_mass(noun))
    if "kin" in classes:
        owner = some_owner(draws, who, 0.5)
        return noun_phrase(noun, "possessive", plural=draws.chance(0.25), owner=owner)
    described = some_adjective(draws, noun, adjective)
    if "person" in classes:
        kind = "definite" if draws.chance(0.7) else "demonstrative"
        return noun_phrase(noun, kind, plural=draws.chance(0.3), adjectives=described)
    if is_mass(noun):
        return _measured(draws, noun, negation, described)
    owner = some_owner(draws, who, 0.7)
    may_own = not _POSSESSED.isdisjoint(classes) and verb.infinitive not in _NOT_YET_OWNED
    if may_own and draws.chance(0.3):
        plural = "pair" in classes or draws.chance(0.15)
        return noun_phrase(noun, "possessive", plural=plural, adjectives=described, owner=owner)
    if negation in ("jamais", "plus"):
        if _ONE_OF_A_KIND.isdisjoint(classes):
            return noun_phrase(
                noun, "indefinite", plural=True, adjectives=described, negation=negation
            )
        return noun_phrase(noun, "definite", adjectives=described)
    if verb.infinitive in _ONE_AT_A_TIME and "pair" not in classes:
        kind = draws.of(("indefinite", "indefinite", "definite", "demonstrative"))
        return noun_phrase(noun, kind, adjectives=described, negation=negation)
    several = verb.infinitive in _OF_SEVERAL
    if negation and not several:
        kind = draws.of(("definite", "definite", "demonstrative"))
        return noun_phrase(noun, kind, plural=draws.chance(0.2), adjectives=described)
    return _counted(
        draws,
        noun,
        negation,
        described,
        numbers=several and not (negation or habitual),
        together=bool(negation) or habitual,
    )


def some_owner(draws: Draws, who: Subject, own: float) -> Owner:
    """Draw whose: the subject's own, or another's (tu and vous never meet in one sentence)."""
    if draws.chance(own):
        return who.owner
    return draws.of(OWNERS[::2] if who.person in (1, 4) else OWNERS)


def _measured(draws: Draws, noun: Noun, negation: str, described: tuple[Adjective, ...]) -> Phrase:
    kind = draws.share()
    if kind < 0.2 and negation != "plus":
        return noun_phrase(noun, "definite", adjectives=described)
    if kind < 0.35 and not negation:
        return noun_phrase(noun, draws.of(("beaucoup de", "trop de", "assez de")))
    return noun_phrase(noun, "indefinite", adjectives=described, negation=negation)


def _counted(
    draws: Draws,
    noun: Noun,
    negation: str,
    described: tuple[Adjective, ...],
    *,
    numbers: bool,
    together: bool,
) -> Phrase:
    kind = draws.share()
    pair = "pair" in CLASSES[noun.lemma]
    if kind < 0.3:
        plural = pair or together or draws.chance(0.25)
        return noun_phrase(
            noun, "indefinite", plural=plural, adjectives=described, negation=negation
        )
    if kind < 0.65:
        plural = pair or draws.chance(0.25)
        return noun_phrase(noun, "definite", plural=plural, adjectives=described)
    if kind < 0.8 or pair or not numbers:
        plural = pair or draws.chance(0.25)
        return noun_phrase(noun, "demonstrative", plural=plural, adjectives=described)
    if kind < 0.93:
        number = 2 + draws.below(9)
        return noun_phrase(noun, "number", plural=True, adjectives=described, number=number)
    quantity = draws.of(("beaucoup de", "trop de", "quelques", "plusieurs", "assez de"))
    return noun_phrase(noun, quantity, plural=True)
