"""Templates of doing: somebody does something, has done it, will, can, must, or never does."""

from __future__ import annotations

from heedful.data.draws import Draws
from heedful.data.phrasebook.choices import OWNERS, other_subject, subject, thing_done_to
from heedful.data.phrasebook.clauses import (
    Agreement,
    Subject,
    english_clause,
    english_tense,
    french_clause,
    with_object,
)
from heedful.data.phrasebook.conjugation import present
from heedful.data.phrasebook.drafts import Draft, joined, timed
from heedful.data.phrasebook.noun_phrases import Phrase, noun_phrase
from heedful.data.phrasebook.nouns import CLASSES, is_mass
from heedful.data.phrasebook.occasions import FREQUENCIES, HABITS, Words, time_for
from heedful.data.phrasebook.verbs import (
    ACTIVITIES,
    INTRANSITIVE,
    MOVING,
    TRANSITIVE,
    VERBS,
    Verb,
)

TENSES = ("present", "present", "past", "past", "near")
_NEGATIONS = ("pas", "pas", "pas", "jamais", "plus")
MOMENTS = ("past", "near")


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


def some_verb(draws: Draws, who: Subject) -> Verb:
    """Draw a transitive verb."""
    verb = draws.of(TRANSITIVE)
    # `je suis` is first of all `I am`.
    while verb.infinitive == "suivre" and who.french == "je":
        verb = draws.of(TRANSITIVE)
    return verb


def other_tenses(
    subject_: Subject, verb: Verb, tense: str, negation: str, rest: str
) -> tuple[str, ...]:
    """Return the same statement in the English tenses that fit the French one as well."""
    if tense == "progressive":
        return (english_clause(subject_, verb.english, "simple", rest, negation=negation),)
    if tense == "past" and "s" not in verb.marks:
        return (english_clause(subject_, verb.english, "perfect", rest, negation=negation),)
    return ()


def transitive(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody does something to something."""
    who = who or subject(draws)
    verb = some_verb(draws, who)
    tense = some_tense(draws, verb)
    return act(draws, who, verb, tense, some_negation(draws, tense))


def act(draws: Draws, who: Subject, verb: Verb, tense: str, negation: str) -> Draft:
    """Write a statement with a verb and its object."""
    thing, noun = thing_done_to(draws, verb, who, negation)
    in_english = english_tense(verb, tense, negation, False)
    time = Words("", "") if negation in ("jamais", "plus") else time_for(draws, in_english, 0.2)
    rest = with_object(verb.english, thing.english)
    english = english_clause(who, verb.english, in_english, rest, negation=negation)
    french = french_clause(who, verb, tense, thing.french, negation=negation)
    others = () if time.french else other_tenses(who, verb, in_english, negation, rest)
    french, english = timed(french, english, time, draws.chance(0.4))
    return Draft(french, english, combined(who, verb, noun.lemma, thing), others)


def combined(who: Subject, verb: Verb, lemma: str, thing: Phrase) -> tuple[str, ...]:
    """Return the combinations of a clause: verb+object, and what its phrases hold."""
    return (*who.combinations, f"{verb.infinitive}+{lemma}", *thing.combinations)


def habit(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody often does something, or does it every day."""
    who = who or subject(draws)
    verb = some_verb(draws, who)
    while "s" in verb.marks or verb.infinitive in (
        "construire",
        "inventer",
        "louer",
        "signer",
        "planter",
        "accepter",
        "refuser",
        "vendre",
    ):
        verb = some_verb(draws, who)
    thing, noun = thing_done_to(draws, verb, who, habitual=True)
    rest = with_object(verb.english, thing.english)
    if "p" not in verb.marks and draws.chance(0.5):
        time = draws.of(HABITS)
        french = french_clause(who, verb, "present", thing.french)
        english = english_clause(who, verb.english, "simple", rest)
        french, english = timed(french, english, time, draws.chance(0.4))
    else:
        often = draws.of(FREQUENCIES)
        french = french_clause(who, verb, "present", thing.french, adverb=often.french)
        english = english_clause(who, verb.english, "simple", rest, adverb=often.english)
    return Draft(french, english, combined(who, verb, noun.lemma, thing))


def nothing(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody does it to nothing and to nobody."""
    who = who or subject(draws)
    if draws.chance(0.6):
        verb = VERBS[
            draws.of(
                (
                    "manger",
                    "boire",
                    "acheter",
                    "lire",
                    "écrire",
                    "comprendre",
                    "vendre",
                    "commander",
                    "oublier",
                    "trouver",
                    "apporter",
                )
            )
        ]
        negation, thing = "rien", "anything"
    else:
        verb = VERBS[
            draws.of(
                (
                    "voir",
                    "aider",
                    "inviter",
                    "appeler",
                    "attendre",
                    "rencontrer",
                    "remercier",
                    "saluer",
                    "accompagner",
                )
            )
        ]
        negation, thing = "personne", "anyone"
    tense = some_tense(draws, verb)
    in_english = english_tense(verb, tense, negation, False)
    rest = with_object(verb.english, thing)
    time = time_for(draws, in_english, 0.5)
    french = french_clause(who, verb, tense, negation=negation)
    english = english_clause(who, verb.english, in_english, rest, negation=negation)
    french, english = timed(french, english, time, draws.chance(0.4))
    return Draft(french, english, who.combinations)


def modal(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody can, wants to or must do something."""
    who = who or subject(draws)
    verb = some_verb(draws, who)
    while verb.marks:
        verb = some_verb(draws, who)
    tense = draws.of(("pouvoir", "vouloir", "devoir"))
    negation = "pas" if draws.chance(0.25) else ""
    thing, noun = thing_done_to(draws, verb, who, negation)
    rest = with_object(verb.english, thing.english)
    french = french_clause(who, verb, tense, thing.french, negation=negation)
    english = english_clause(who, verb.english, tense, rest, negation=negation)
    others: tuple[str, ...] = ()
    if tense == "devoir" and not negation:
        has = "has to" if who.agreement == "third" else "have to"
        others = (joined(who.english, has, verb.english.base, rest),)
    return Draft(french, english, combined(who, verb, noun.lemma, thing), others)


def clitic(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody asks for a thing; somebody else has it, as a pronoun before the verb."""
    who = who or subject(draws)
    verb = VERBS[draws.of(_WITH_PRONOUN)]
    noun = draws.of(verb.objects)
    while not _POSSESSED_THING & CLASSES[noun.lemma]:
        noun = draws.of(verb.objects)
    plural = "pair" in CLASSES[noun.lemma] or draws.chance(0.2)
    owner = draws.of(OWNERS[:2])
    kind = "possessive" if draws.chance(0.5) else "definite"
    phrase = noun_phrase(noun, kind, plural=plural, owner=owner)
    tense = draws.of(("past", "near"))
    pronoun = "les" if plural else "la" if noun.gender == "f" else "le"
    negation = "pas" if draws.chance(0.2) else ""
    agree = Agreement(noun.gender, plural)
    french = french_clause(who, verb, tense, negation=negation, clitic=pronoun, agree=agree)
    rest = with_object(verb.english, "them" if plural else "it", pronoun=True)
    english = english_clause(who, verb.english, tense, rest, negation=negation)
    be_french, be_english = ("sont", "are") if plural else ("est", "is")
    question = f"où {be_french} {phrase.french} ? "
    return Draft(
        question + french[0].upper() + french[1:],
        f"where {be_english} {phrase.english}? {english[0].upper()}{english[1:]}",
        (*who.combinations, f"{verb.infinitive}+{noun.lemma}"),
    )


_POSSESSED_THING = frozenset(("thing", "clothing", "pair", "owned vehicle", "dishes"))
_WITH_PRONOUN = (
    "vendre",
    "perdre",
    "trouver",
    "cacher",
    "casser",
    "réparer",
    "laver",
    "oublier",
    "emprunter",
    "chercher",
    "jeter",
    "acheter",
)


def just(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody has just done something (venir de)."""
    who = who or subject(draws)
    verb = some_verb(draws, who)
    while "s" in verb.marks:
        verb = some_verb(draws, who)
    thing, noun = thing_done_to(draws, verb, who)
    rest = with_object(verb.english, thing.english)
    helper = present("venir", who.person)
    french = f"{who.french} {helper} de {verb.infinitive} {thing.french}"
    english = english_clause(who, verb.english, "perfect", rest, adverb="just")
    return Draft(french, english, combined(who, verb, noun.lemma, thing))


def before_and_now(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody used to do something (imparfait)."""
    who = who or subject(draws)
    time = draws.of((Words("avant", "in the past"), Words("à l'époque", "at that time")))
    if draws.chance(0.35):
        verb = draws.of(ACTIVITIES)
        while verb.after.startswith("un"):
            verb = draws.of(ACTIVITIES)
        rest, thing, combinations = verb.english.particle, "", who.combinations
    else:
        verb = VERBS[draws.of(_FORMERLY)]
        noun = draws.of(verb.objects)
        kind = "generic" if "g" in verb.marks else "indefinite"
        phrase = noun_phrase(noun, kind, plural=not is_mass(noun))
        rest, thing = phrase.bare or phrase.english, phrase.french
        combinations = combined(who, verb, noun.lemma, phrase)
    french = french_clause(who, verb, "imperfect", thing)
    english = english_clause(who, verb.english, "used", rest)
    french, english = timed(french, english, time, True)
    return Draft(french, english, combinations)


_FORMERLY = (
    "manger",
    "boire",
    "vendre",
    "lire",
    "écrire",
    "dessiner",
    "peindre",
    "préparer",
    "réparer",
    "conduire",
    "photographier",
    "aimer",
    "adorer",
    "détester",
    "traduire",
    "construire",
    "louer",
    "inventer",
    "nourrir",
)


def interrupted(draws: Draws, who: Subject | None = None) -> Draft:
    """Somebody was doing something when something happened (imparfait and passé composé)."""
    who = who or subject(draws)
    verb = draws.of(INTRANSITIVE) if draws.chance(0.3) else some_verb(draws, who)
    while "s" in verb.marks or "p" in verb.marks:
        verb = some_verb(draws, who)
    if verb.objects:
        thing, noun = thing_done_to(draws, verb, who, adjective=0.15)
        rest, object_ = with_object(verb.english, thing.english), thing.french
        combinations = combined(who, verb, noun.lemma, thing)
    else:
        rest, object_, combinations = "", "", who.combinations
    if draws.chance(0.6):
        other = other_subject(draws, who)
        event = french_clause(other, MOVING[1], "past")
        happened = english_clause(other, MOVING[1].english, "past")
        combinations += other.combinations
    else:
        event, happened = draws.of(
            (
                ("le téléphone a sonné", "the phone rang"),
                ("il a commencé à pleuvoir", "it started to rain"),
                ("l'accident est arrivé", "the accident happened"),
            )
        )
    french = f"{french_clause(who, verb, 'imperfect', object_)} quand {event}"
    english = f"{english_clause(who, verb.english, 'was', rest)} when {happened}"
    return Draft(french, english, combinations)
