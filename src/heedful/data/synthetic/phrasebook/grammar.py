"""Phrases, clauses and sentences in both languages, all in agreement.

A noun phrase is determiner, adjectives and noun. French changes with what stands next to the noun
(l', cet, mon amie, un bel hôtel, de belles pommes) and with the negation (pas de pain); English
changes with counting (some, any, a, an).

A clause is subject, verb group, negation, clitics and word order. Tenses are named after French:
present, past (passé composé), imperfect (imparfait), near (futur proche), and the modal verbs
pouvoir, vouloir, devoir. The English of a tense depends on the verb and on what goes with it;
`english_tense` holds that rule in one place.

Below them stand the draws of the pieces of a sentence: who, what, how, when and where, as makes
sense together.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from heedful.data.synthetic import Draws
from heedful.data.synthetic.phrasebook.words import (
    BY_LEMMA,
    DAYS,
    NO_WORDS,
    NOUNS,
    TRANSITIVE,
    Adjective,
    EnglishVerb,
    Noun,
    Verb,
    Words,
    adjectives_of,
    article,
    begins_with_vowel,
    imperfect,
    note,
    number_in_english,
    number_in_french,
    participle,
    present,
    sentence,
    verbs_for,
    word_pairs,
    word_table,
)

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

    `kind` is definite, indefinite, demonstrative, possessive, number, generic, or a
    quantity such as `beaucoup de`. A French negation turns an indefinite into `de`.
    """
    before = [one for one in adjectives if one.place == "before"]
    after = [one for one in adjectives if one.place != "before"]
    head = noun.plural if plural else noun.singular
    note(f"noun {noun.lemma}", head, noun.english_plural if plural else noun.english)
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
    some = kind == "indefinite" and (plural or noun.is_mass)
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
        note(f"adjective {adjective.lemma}", adjective.before_vowel, adjective.english)
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
        if noun.is_mass:
            return "de l'" + core if vowel else ("de la " if feminine else "du ") + core
        return ("une " if feminine else "un ") + core
    if kind == "demonstrative":
        form = "ces" if plural else "cette" if feminine else "cet" if vowel else "ce"
        note("demonstrative", form, "these" if plural else "this")
        return f"{form} {core}"
    if kind == "possessive" and owner is not None:
        masculine_form = not feminine or vowel
        forms = _POSSESSIVES[owner.person]
        form = forms[2] if plural else forms[0] if masculine_form else forms[1]
        note(f"owner {owner.english}", form, owner.english)
        return f"{form} {core}"
    if kind == "number":
        note("number", number_in_french(number, noun.gender), number_in_english(number))
        return f"{number_in_french(number, noun.gender)} {core}"
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
    if kind == "generic":
        return core
    if kind == "indefinite":
        if plural or noun.is_mass:
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
    return f"{measured if noun.is_mass else counted} {core}"


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


# Clauses

REFLEXIVES = ("me", "te", "se", "nous", "vous", "se")
_MODALS = {"pouvoir": "can", "devoir": "must"}
_NOT = {"am": "am not", "can": "can't", "must": "mustn't"}


class Subject(NamedTuple):
    """Who does it."""

    french: str
    english: str
    person: int
    """0 to 5: je, tu, il, nous, vous, ils."""
    gender: str
    plural: bool
    """Whether participles and adjectives agree in the plural."""
    agreement: str
    """How English verbs agree: `I`, `third` or `other`."""
    owner: Owner
    pronoun: bool
    combinations: tuple[str, ...] = ()
    """The pairs noun+adjective it holds."""
    lemma: str = ""
    """Of its noun, if it has one."""


class Agreement(NamedTuple):
    """Gender and number of what a participle agrees with."""

    gender: str
    plural: bool


def french_clause(
    subject: Subject,
    verb: Verb,
    tense: str,
    rest: str = "",
    *,
    negation: str = "",
    clitic: str = "",
    agree: Agreement | None = None,
    adverb: str = "",
) -> str:
    """Write a French statement, before elision.

    `agree` is the direct object that stands before the verb, if any; verbs with être agree with
    their subject.
    """
    finite, other = _french_forms(subject, verb, tense, agree)
    _note_subject(subject, french=True)
    before, between = _clitics(REFLEXIVES[subject.person] if verb.reflexive else clitic, tense)
    # `personne` follows the participle and the infinitive; every other negation comes before.
    late = negation if negation == "personne" else ""
    early, ne = "" if late else negation, "ne" if negation else ""
    group = joined(ne, before, finite, early, adverb, between, other, late)
    return joined(subject.french, group, verb.after, rest)


def french_inversion(subject: Subject, verb: Verb, tense: str, rest: str = "") -> str:
    """Write a question by inversion of a pronoun: mange-t-elle, avez-vous fini."""
    finite, other = _french_forms(subject, verb, tense)
    _note_subject(subject, french=True)
    before, between = _clitics(REFLEXIVES[subject.person] if verb.reflexive else "", tense)
    return joined(before, hyphenated(finite, subject.french), between, other, verb.after, rest)


def _french_forms(
    subject: Subject, verb: Verb, tense: str, agree: Agreement | None = None
) -> tuple[str, str]:
    """Return the finite form, and the participle or infinitive after it (nothing if none)."""
    if tense == "imperfect":
        forms = imperfect(verb.infinitive, subject.person), ""
    elif tense == "present":
        forms = present(verb.infinitive, subject.person), ""
    elif tense == "past":
        if verb.takes_etre:
            agree = Agreement(subject.gender, subject.plural)
        auxiliary = present("être" if verb.takes_etre else "avoir", subject.person)
        forms = auxiliary, participle(verb.infinitive, *(agree or ()))
    else:
        forms = present("aller" if tense == "near" else tense, subject.person), verb.infinitive
    note(f"verb {verb.english.base}", french=forms[1] or forms[0])
    return forms


def _note_subject(subject: Subject, *, french: bool) -> None:
    """Note a pronoun or a name; the noun of a phrase is noted where the phrase is made."""
    if not subject.lemma:
        key = f"subject {subject.english}"
        note(key, **({"french": subject.french} if french else {"english": subject.english}))


def _clitics(clitic: str, tense: str) -> tuple[str, str]:
    """Put a clitic before the finite form, or before the infinitive if there is one."""
    return (clitic, "") if tense in ("present", "imperfect", "past") else ("", clitic)


def hyphenated(form: str, pronoun: str) -> str:
    """Join a verb and the pronoun after it, with -t- between two vowels."""
    link = "-t-" if form[-1] in "ae" and pronoun in ("il", "elle", "on") else "-"
    return f"{form}{link}{pronoun}"


def english_tense(verb: Verb, tense: str, negation: str = "") -> str:
    """Return the English tense for a French one; for the imperfect, templates choose it."""
    if tense != "present":
        return tense
    simple = "s" in verb.marks or negation in ("jamais", "plus")
    return "simple" if simple else "progressive"


def english_clause(
    subject: Subject,
    verb: EnglishVerb,
    tense: str,
    rest: str = "",
    *,
    negation: str = "",
    adverb: str = "",
    question: bool = False,
) -> str:
    """Write an English clause; `tense` is one of `english_tense`, or `was` or `perfect`.

    The particle of the verb comes before the rest: look for it, go back to Paris.
    """
    auxiliary, main = _auxiliary_and_main(subject, verb, tense)
    negated = negation in ("pas", "rien", "personne")
    if (question and tense == "devoir") or (not auxiliary and (negated or question)):
        auxiliary, main = _do_support(subject, verb, tense)
    _note_subject(subject, french=False)
    note(f"verb {verb.base}", english=joined(main.rpartition(" ")[2], verb.particle))
    early = {"jamais": "never", "plus": "no longer"}.get(negation, "")
    if negated:
        auxiliary = _NOT.get(auxiliary, auxiliary + "n't")
    order = (auxiliary, subject.english) if question else (subject.english, auxiliary)
    if question and auxiliary == "am not":
        order = ("am", "I not")
    return joined(*order, early, adverb, main, verb.particle, rest)


def clause(
    subject: Subject,
    verb: Verb,
    tense: str,
    rest: tuple[str, str] = NO_WORDS,
    *,
    english: str = "",
    negation: str = "",
    adverb: tuple[str, str] = NO_WORDS,
) -> Words:
    """Write a statement in both languages; `english` is its tense if `english_tense` is not."""
    tense_in_english = english or english_tense(verb, tense, negation)
    note(f"adverb {adverb[1]}", *adverb)
    return Words(
        french_clause(subject, verb, tense, rest[0], negation=negation, adverb=adverb[0]),
        english_clause(
            subject, verb.english, tense_in_english, rest[1], negation=negation, adverb=adverb[1]
        ),
    )


def with_object(verb: EnglishVerb, thing: str, *, pronoun: bool = False) -> str:
    """Put an object to a verb that may have a particle: for it, take it off, take off the hat."""
    if verb.separable and pronoun:
        return f"{thing} {verb.particle}"
    return joined(verb.particle, thing)


def be(subject: Subject, past: bool = False) -> str:
    """Return the form of `be` that agrees."""
    if past:
        return "were" if subject.agreement == "other" else "was"
    return {"I": "am", "third": "is", "other": "are"}[subject.agreement]


def combined(subject: Subject, verb: Verb, noun: Noun, thing: Phrase) -> tuple[str, ...]:
    """Return the combinations of a clause: verb+object, and what its phrases hold."""
    return (*subject.combinations, f"{verb.infinitive}+{noun.lemma}", *thing.combinations)


def being(
    subject: Subject, rest: tuple[str, str], *, past: bool = False, negation: str = ""
) -> Words:
    """Say in both languages what somebody or something is, or is not."""
    form = imperfect("être", subject.person) if past else present("être", subject.person)
    not_ = {"pas": "not", "jamais": "never", "plus": "no longer"}.get(negation, "")
    for french in (True, False):
        _note_subject(subject, french=french)
    note("be", form, be(subject, past))
    return Words(
        joined(subject.french, "ne" if negation else "", form, negation, rest[0]),
        joined(subject.english, be(subject, past), not_, rest[1]),
    )


def _auxiliary_and_main(subject: Subject, verb: EnglishVerb, tense: str) -> tuple[str, str]:
    third = subject.agreement == "third"
    if tense == "progressive":
        return be(subject), verb.ing
    if tense == "was":
        return be(subject, past=True), verb.ing
    if tense == "near":
        return be(subject), "going to " + verb.base
    if tense == "perfect":
        return "has" if third else "have", verb.participle
    if tense in ("pouvoir", "devoir"):
        return _MODALS[tense], verb.base
    if tense == "vouloir":
        return "", ("wants to " if third else "want to ") + verb.base
    if tense == "used":
        return "", "used to " + verb.base
    if tense == "past":
        return "", verb.past
    return "", verb.third if third else verb.base


def _do_support(subject: Subject, verb: EnglishVerb, tense: str) -> tuple[str, str]:
    if tense in ("past", "used"):
        return "did", ("use to " if tense == "used" else "") + verb.base
    do = "does" if subject.agreement == "third" else "do"
    return do, {"vouloir": "want to ", "devoir": "have to "}.get(tense, "") + verb.base


def joined(*parts: str) -> str:
    """Join what is not empty."""
    return " ".join(part for part in parts if part)


# Sentences


class Draft(NamedTuple):
    """A clause or sentence in both languages."""

    french: str
    """Before elision, without capital and mark (unless `mark` is empty: then it is finished)."""
    english: str
    combinations: tuple[str, ...] = ()
    """The pairs noun+adjective and verb+object it holds."""
    others: tuple[str, ...] = ()
    """Other good translations."""
    mark: str = "."


def finished(draft: Draft) -> tuple[str, str, tuple[str, ...]]:
    """Return the French sentence, the English one, and the other translations."""
    if not draft.mark:
        return draft.french, draft.english, draft.others
    english = _english_sentence(draft.english, draft.mark)
    others = dict.fromkeys(_english_sentence(other, draft.mark) for other in draft.others)
    if " some " in english:
        others[english.replace(" some ", " ")] = None
    full = uncontracted(english)
    if full != english:
        others[full] = None
    others.pop(english, None)
    return sentence(draft.french, draft.mark), english, tuple(others)


def _english_sentence(text: str, mark: str) -> str:
    return text[0].upper() + text[1:] + mark


def uncontracted(english: str) -> str:
    """Write out the negation: don't, do not; can't, cannot.

    Where the subject stands after the verb the order would change, so questions stay as they are.
    """
    if english.endswith("?") or "n't" not in english:
        return english
    return english.replace("can't", "cannot").replace("n't", " not")


def timed(said: Words, time: Words, first: bool) -> Words:
    """Put a time at the beginning or at the end, in both languages alike."""
    if not time.french:
        return said
    note(f"time {time.english}", *time)
    if first:
        return Words(f"{time.french}, {said.french}", f"{time.english}, {said.english}")
    return Words(f"{said.french} {time.french}", f"{said.english} {time.english}")


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
NAMES: tuple[Subject, ...] = (
    *(
        Subject(name, name, 2, "m", False, "third", _HIS, False)
        for name in word_table("names")["men"]
    ),
    *(
        Subject(name, name, 2, "f", False, "third", _HER, False)
        for name in word_table("names")["women"]
    ),
)
"""People called by their first name."""
_POSSESSED = frozenset(
    ("thing", "clothing", "pair", "pet", "room", "home", "owned_vehicle", "luggage", "dishes")
)
_NOT_YET_OWNED = frozenset(verbs_for("not_yet_owned"))
_ONE_AT_A_TIME = frozenset(verbs_for("one_at_a_time"))
_OF_SEVERAL = frozenset(verbs_for("of_several"))
_ONE_OF_A_KIND = frozenset(("room", "opening", "shop", "building"))


# Who and what


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
    french = {(2, "m"): "il", (2, "f"): "elle", (5, "m"): "ils", (5, "f"): "elles"}[
        (who.person, who.gender)
    ]
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
    classes = noun.classes
    if "g" in verb.marks:
        return noun_phrase(noun, "generic", plural=not noun.is_mass)
    if "kin" in classes:
        owner = some_owner(draws, who, 0.5)
        return noun_phrase(noun, "possessive", plural=draws.chance(0.25), owner=owner)
    described = some_adjective(draws, noun, adjective)
    if "person" in classes:
        kind = "definite" if draws.chance(0.7) else "demonstrative"
        return noun_phrase(noun, kind, plural=draws.chance(0.3), adjectives=described)
    if noun.is_mass:
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
    pair = "pair" in noun.classes
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


def some_thing(draws: Draws, noun: Noun, plural: bool) -> Phrase:
    """Draw a determiner for a thing that is spoken of: my, this, or the."""
    owned = {"thing", "clothing", "pair", "pet", "room", "home", "owned_vehicle"}
    if draws.chance(0.35) and owned & noun.classes:
        return noun_phrase(noun, "possessive", plural=plural, owner=draws.of(OWNERS))
    kind = "demonstrative" if draws.chance(0.4) else "definite"
    return noun_phrase(noun, kind, plural=plural)


# How: the verb, its tense and its negation

TENSES = ("present", "present", "past", "past", "near")
MOMENTS = ("past", "near")
_NEGATIONS = ("pas", "pas", "pas", "jamais", "plus")


def some_negation(draws: Draws, tense: str, probability: float = 0.25) -> str:
    """Draw a negation that goes with a tense, or none."""
    if not draws.chance(probability):
        return ""
    return draws.of(_NEGATIONS) if tense == "present" else "pas"


def some_tense(draws: Draws, verb: Verb) -> str:
    """Draw a tense that a verb is used in."""
    if "n" in verb.marks or "g" in verb.marks:
        return "present"
    return draws.of(MOMENTS) if "p" in verb.marks else draws.of(TENSES)


def some_verb(draws: Draws, who: Subject, *, without: str = "", but: Container[str] = ()) -> Verb:
    """Draw a transitive verb: none that has a mark of `without`, and none of `but`."""
    verb = draws.of(TRANSITIVE)
    # `je suis` is first of all `I am`.
    ambiguous = verb.infinitive == "suivre" and who.french == "je"
    if ambiguous or not set(without).isdisjoint(verb.marks) or verb.infinitive in but:
        return some_verb(draws, who, without=without, but=but)
    return verb


# When and where

_PLACES = word_table("places")
CITIES = word_pairs("places", "cities")
COUNTRIES: list[list[str]] = _PLACES["countries"]
"""Preposition of place, French and English."""
DESTINATIONS: tuple[Noun, ...] = tuple(
    noun
    for name in ("shop", "building", "outdoors")
    for noun in NOUNS[name]
    if noun.lemma not in _PLACES["not_visited"]
)
_SPOTS, _AT, _TO = word_table("spots"), word_table("at"), word_table("to")

HABITS = (
    *word_pairs("times", "habits"),
    *(Words(f"le {french}", f"on {english}s") for french, english in DAYS),
)
PAST_TIMES = (
    *word_pairs("times", "past"),
    *(Words(f"{french} dernier", f"last {english}") for french, english in DAYS),
)
FUTURE_TIMES = (
    *word_pairs("times", "future"),
    *(Words(f"{french} prochain", f"next {english}") for french, english in DAYS),
)
LONG_AGO, LATER = word_pairs("times", "long_ago"), word_pairs("times", "later")
PRESENT_TIMES = word_pairs("times", "present")
FREQUENCIES = word_pairs("times", "frequencies")


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
        return NO_WORDS
    return draws.of(times)


def spot_for(draws: Draws, infinitive: str) -> Words:
    """Draw where something is done."""
    before, lemma = draws.of(_SPOTS.get(infinitive, _SPOTS["anywhere"])).split()
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
    return Words(f"{before} {french}", "to " + english)


def location(draws: Draws) -> Words:
    """Draw a city or country to be in."""
    if draws.chance(0.5):
        french, english = draws.of(CITIES)
        return Words("à " + french, "in " + english)
    before, french, english = draws.of(COUNTRIES)
    return Words(f"{before} {french}", "in " + english)
