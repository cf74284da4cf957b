"""Phrases, clauses and sentences in both languages, all in agreement.

A noun phrase is determiner, adjectives and noun. French changes with what stands next to the noun
(l', cet, mon amie, un bel hôtel, de belles pommes) and with the negation (pas de pain); English
changes with counting (some, any, a, an).

A clause is subject, verb group, negation, clitics and word order. Tenses are named after French:
present, past (passé composé), imperfect (imparfait), near (futur proche), and the modal verbs
pouvoir, vouloir, devoir. The English of a tense depends on the verb and on what goes with it;
`english_tense` holds that rule in one place.
"""

from __future__ import annotations

from typing import NamedTuple

from heedful.data.synthetic.phrasebook.english import EnglishVerb, article, number_in_english
from heedful.data.synthetic.phrasebook.french import (
    begins_with_vowel,
    imperfect,
    number_in_french,
    participle,
    present,
    sentence,
)
from heedful.data.synthetic.phrasebook.links import note
from heedful.data.synthetic.phrasebook.vocabulary import (
    NO_WORDS,
    Adjective,
    Noun,
    Verb,
    Words,
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
