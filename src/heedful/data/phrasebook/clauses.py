"""Clauses in both languages: subject, verb group, negation, clitics and word order.

Tenses are named after French: present, past (passé composé), imperfect (imparfait), near (futur
proche), and the modal verbs pouvoir, vouloir, devoir. The English of a tense depends on the verb
and on what goes with it; `english_tense` holds that rule in one place.
"""

from __future__ import annotations

from typing import NamedTuple

from heedful.data.phrasebook.conjugation import imperfect, participle, present
from heedful.data.phrasebook.english import EnglishVerb
from heedful.data.phrasebook.noun_phrases import Owner
from heedful.data.phrasebook.verbs import Verb

REFLEXIVES = ("me", "te", "se", "nous", "vous", "se")
MODALS = {"pouvoir": "can", "devoir": "must", "vouloir": "want"}
_NOT = {
    "am": "am not",
    "can": "can't",
    "must": "mustn't",
}


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
    if verb.reflexive:
        clitic = REFLEXIVES[subject.person]
    group = french_verb_group(subject, verb, tense, negation, clitic, agree, adverb)
    return _joined(subject.french, group, verb.after, rest)


def french_verb_group(
    subject: Subject,
    verb: Verb,
    tense: str,
    negation: str = "",
    clitic: str = "",
    agree: Agreement | None = None,
    adverb: str = "",
) -> str:
    """Write the verb with its negation, clitic and adverb, and without the subject."""
    ne = "ne" if negation else ""
    person = subject.person
    # `personne` follows the participle and the infinitive; every other negation comes before.
    late = negation if negation == "personne" else ""
    early = "" if late else negation
    if tense == "present":
        form = present(verb.infinitive, person)
        return _joined(ne, clitic, form, early, adverb, late)
    if tense == "imperfect":
        form = imperfect(verb.infinitive, person)
        return _joined(ne, clitic, form, early, adverb, late)
    if tense == "past":
        auxiliary = present("être" if verb.takes_etre else "avoir", person)
        if verb.takes_etre:
            agree = Agreement(subject.gender, subject.plural)
        done = participle(verb.infinitive, *agree) if agree else participle(verb.infinitive)
        return _joined(ne, clitic, auxiliary, early, adverb, done, late)
    helper = present("aller" if tense == "near" else tense, person)
    return _joined(ne, helper, early, adverb, clitic, verb.infinitive, late)


def french_inversion(
    subject: Subject, verb: Verb, tense: str, rest: str = "", *, negation: str = ""
) -> str:
    """Write a question by inversion of a pronoun: mange-t-elle, avez-vous fini."""
    clitic = REFLEXIVES[subject.person] if verb.reflexive else ""
    ne = "ne" if negation else ""
    if tense == "past":
        first = present("être" if verb.takes_etre else "avoir", subject.person)
        agree = (subject.gender, subject.plural) if verb.takes_etre else ("m", False)
        second = participle(verb.infinitive, *agree)
        return _joined(
            ne, clitic, hyphenated(first, subject.french), negation, second, verb.after, rest
        )
    if tense == "present":
        first = present(verb.infinitive, subject.person)
        return _joined(ne, clitic, hyphenated(first, subject.french), negation, verb.after, rest)
    first = present("aller" if tense == "near" else tense, subject.person)
    inverted = hyphenated(first, subject.french)
    return _joined(ne, inverted, negation, clitic, verb.infinitive, verb.after, rest)


def hyphenated(form: str, pronoun: str) -> str:
    """Join a verb and the pronoun after it, with -t- between two vowels."""
    link = "-t-" if form[-1] in "ae" and pronoun in ("il", "elle", "on") else "-"
    return f"{form}{link}{pronoun}"


def english_tense(verb: Verb, tense: str, negation: str, habitual: bool) -> str:
    """Return the English tense for a French one."""
    if tense == "present":
        simple = "s" in verb.marks or habitual or negation in ("jamais", "plus")
        return "simple" if simple else "progressive"
    if tense == "imperfect":
        return "past" if "s" in verb.marks and not habitual else "used"
    return tense


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
    """Write an English clause; `tense` is one of `english_tense`, or `was` or `perfect`."""
    auxiliary, main = _auxiliary_and_main(subject, verb, tense)
    negated = negation in ("pas", "rien", "personne")
    if (question and tense == "devoir") or (not auxiliary and (negated or question)):
        auxiliary, main = _do_support(subject, verb, tense)
    early = {"jamais": "never", "plus": "no longer"}.get(negation, "")
    if negated:
        auxiliary = _NOT.get(auxiliary, auxiliary + "n't")
    order = (auxiliary, subject.english) if question else (subject.english, auxiliary)
    if question and auxiliary == "am not":
        order = ("am", "I not")
    return _joined(*order, early, adverb, main, rest)


def with_object(verb: EnglishVerb, thing: str, *, pronoun: bool = False) -> str:
    """Put an object to a verb that may have a particle: for it, take it off, take off the hat."""
    if verb.separable and pronoun:
        return f"{thing} {verb.particle}"
    return _joined(verb.particle, thing)


def be(subject: Subject, past: bool = False) -> str:
    """Return the form of `be` that agrees."""
    if past:
        return "were" if subject.agreement == "other" else "was"
    return {"I": "am", "third": "is", "other": "are"}[subject.agreement]


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
        return MODALS[tense], verb.base
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


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)
