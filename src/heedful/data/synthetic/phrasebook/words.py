"""The words of the phrasebook: entries, forms in French and in English, links between the two.

`nouns.toml`, `adjectives.toml`, `verbs.toml` and `words.toml` beside this module hold the entries
and say how they are written. Nouns have classes; verbs select their objects by them and adjectives
the nouns they are said of. A name that no entry defines is an error when this module is imported.

English is spelt as in Britain (neighbour, jewellery, travelling). In French, persons are numbered 0
to 5: je, tu, il, nous, vous, ils. The imparfait is made from the first person plural of the present
(nous mange-ons, je mange-ais); être is the one exception. The spelling is that of a keyboard: a
straight apostrophe (') and a plain space before ? ! : and ;. Printed French has U+00A0 or U+202F
there and ’; `keyboard` folds what people paste to the keyboard spelling, and `typeset` turns a
sentence of the corpus into print.

Which French words became which English ones, the grammar says while it writes:

    with noting() as noted:
        pair = drawn_pair(draws)
    links = located(noted, pair.french, pair.english)

Wherever the grammar chooses a word it writes it in both languages, and notes the two forms under
one key. A finished sentence has gone through agreement, elision and changes of order, so the forms
are then looked up in it. A form that is not found as it was noted gives no link: what the links say
is right, but they do not say everything. Articles, prepositions and auxiliaries, which belong to a
construction and not to a word, have none.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, NamedTuple

from heedful.data.synthetic import read_vocabulary

# Links between the words of a sentence and its translation

Span = tuple[int, int]
"""First character, and the one after the last."""


class WordLink(NamedTuple):
    """Words of one sentence that say the same."""

    french: Span
    english: Span
    sure: bool
    """One word for one word, each of which stands once; otherwise some word of the one span goes
    with some word of the other."""


class Forms(NamedTuple):
    """What was written for one key in each language, in order."""

    french: list[str]
    english: list[str]


_NOTED: ContextVar[dict[str, Forms] | None] = ContextVar("noted", default=None)


@contextmanager
def noting() -> Iterator[dict[str, Forms]]:
    """Collect what the grammar writes inside this block."""
    noted: dict[str, Forms] = defaultdict(lambda: Forms([], []))
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)


def note(key: str, french: str = "", english: str = "") -> None:
    """Say that these forms were written for one thing; the other language may be noted later."""
    noted = _NOTED.get()
    if noted is None:  # nobody asked
        return
    if french:
        noted[key].french.append(french)
    if english:
        noted[key].english.append(english)


def located(noted: dict[str, Forms], french: str, english: str) -> tuple[WordLink, ...]:
    """Find what was noted in the finished sentences.

    >>> with noting() as noted:
    ...     note("noun chat", "chat", "cat")
    >>> located(noted, "Le chat dort.", "The cat is sleeping.")
    (WordLink(french=(3, 7), english=(4, 7), sure=True),)
    """
    links: dict[tuple[Span, Span], bool] = {}
    for forms in noted.values():
        left = _places(forms.french, french)
        right = _places(forms.english, english)
        single = len(left) == len(right) == 1
        for one in left:
            for other in right:
                words = french[slice(*one)] + english[slice(*other)]
                links[one, other] = single and " " not in words
    return tuple(WordLink(*spans, sure) for spans, sure in sorted(links.items()))


def _places(forms: list[str], sentence: str) -> list[Span]:
    found: dict[Span, None] = {}
    for form in dict.fromkeys(forms):
        # Before a vowel je is written j'; nothing that is noted with a final e ends otherwise.
        spellings = [re.escape(form), re.escape(form[:-1]) + "'"] if form[-1] == "e" else []
        for spelling in spellings or [re.escape(form)]:
            pattern = rf"(?<!\w){spelling}(?!\w)" if spelling[-1] != "'" else rf"(?<!\w){spelling}"
            for match in re.finditer(pattern, sentence, re.IGNORECASE):
                found[match.span()] = None
    return list(found)


# English word forms

_ENGLISH = read_vocabulary(__file__, "english")
_IRREGULAR_VERBS = {base: forms.split() for base, forms in _ENGLISH["irregular"].items()}
_DOUBLED = frozenset(_ENGLISH["spelling"]["doubled"])
_ENGLISH_ONES, _ENGLISH_TENS = _ENGLISH["numbers"]["ones"], _ENGLISH["numbers"]["tens"]
_VOWELS = "aeiou"


class EnglishVerb(NamedTuple):
    """The forms of one English verb; `particle` is the rest of it (look *for*)."""

    base: str
    third: str
    past: str
    participle: str
    ing: str
    particle: str
    separable: bool
    """Whether a pronoun goes before the particle (take it off)."""


def plural_of(noun: str) -> str:
    """Return the regular plural of an English noun.

    >>> plural_of("cherry"), plural_of("box"), plural_of("toy")
    ('cherries', 'boxes', 'toys')
    """
    if noun.endswith(("s", "x", "z", "ch", "sh")) or noun in ("tomato", "potato", "hero"):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in _VOWELS:
        return noun[:-1] + "ies"
    return noun + "s"


def article(following: str) -> str:
    """Return `a` or `an`, by the sound of what follows.

    >>> article("honest man"), article("university"), article("old uniform")
    ('an', 'a', 'an')
    """
    if following.startswith(("uni", "us", "eu", "one")):
        return "a"
    return "an" if following[0] in "aeiouAEIO" or following.startswith(("hour", "hon")) else "a"


@cache
def english_verb(text: str) -> EnglishVerb:
    """Return the forms of a verb written as `look for`, or `take ~off` when it separates.

    >>> english_verb("carry").past, english_verb("travel").ing, english_verb("take ~off").particle
    ('carried', 'travelling', 'off')
    """
    base, _, rest = text.partition(" ")
    separable = rest.startswith("~")
    past, participle = _IRREGULAR_VERBS.get(base, ("", ""))
    third = {"be": "is", "have": "has", "do": "does", "go": "goes"}.get(base) or plural_of(base)
    past = past or _regular_past(base)
    ending = _ing(base)
    return EnglishVerb(base, third, past, participle or past, ending, rest.lstrip("~"), separable)


def _regular_past(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "ied"
    return base + (base[-1] + "ed" if base in _DOUBLED else "ed")


def _ing(base: str) -> str:
    if base.endswith("e") and base not in ("be", "see", "ski"):
        return base[:-1] + "ing"
    return base + (base[-1] + "ing" if base in _DOUBLED else "ing")


def number_in_english(number: int) -> str:
    """Write a number below one hundred.

    >>> number_in_english(71)
    'seventy-one'
    """
    if number < 20:
        return str(_ENGLISH_ONES[number])
    tens, units = divmod(number, 10)
    return f"{_ENGLISH_TENS[tens]}-{_ENGLISH_ONES[units]}" if units else str(_ENGLISH_TENS[tens])


def comparative(adjective: str) -> str:
    """Return the comparative of an adjective.

    >>> comparative("heavy"), comparative("expensive")
    ('heavier', 'more expensive')
    """
    return _ENGLISH["comparatives"].get(adjective) or f"more {adjective}"


def hour_in_english(hour: int, minutes: int) -> str:
    """Write the same time in English.

    >>> hour_in_english(1, 0), hour_in_english(7, 15), hour_in_english(12, 30)
    ("one o'clock", 'quarter past seven', 'half past twelve')
    """
    if minutes > 30:
        hour = hour % 12 + 1
    name = number_in_english(hour)
    if minutes == 0:
        return "noon" if hour == 12 else f"{name} o'clock"
    spoken = {15: "quarter past", 30: "half past", 45: "quarter to"}
    if minutes in spoken:
        return f"{spoken[minutes]} {name}"
    side, count = ("past", minutes) if minutes < 30 else ("to", 60 - minutes)
    return f"{number_in_english(count)} {side} {name}"


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


# French word forms

_FRENCH = read_vocabulary(__file__, "french")
_FORMS = {infinitive: tuple(line.split()) for infinitive, line in _FRENCH["irregular"].items()}
_PREFIXED: dict[str, list[str]] = _FRENCH["prefixed"]
_FRENCH_ONES, _FRENCH_TENS = _FRENCH["numbers"]["ones"], _FRENCH["numbers"]["tens"]
_DOUBLING = frozenset(("appeler", "jeter", "rappeler"))
_ENDINGS = ("ais", "ais", "ait", "ions", "iez", "aient")
_FIRST_GROUP = ("e", "es", "e", "ons", "ez", "ent")
_SECOND_GROUP = ("is", "is", "it", "issons", "issez", "issent")
_THIRD_GROUP = ("s", "s", "", "ons", "ez", "ent")


@cache
def forms(infinitive: str) -> tuple[str, ...]:
    """Return the six forms of the present and the past participle.

    >>> forms("acheter")[:4]
    ('achète', 'achètes', 'achète', 'achetons')
    >>> forms("comprendre")[5:]
    ('comprennent', 'compris')
    """
    if infinitive in _FORMS:
        return _FORMS[infinitive]
    if infinitive in _PREFIXED:
        prefix, root = _PREFIXED[infinitive]
        return tuple(prefix + form for form in forms(root))
    stem, ending = infinitive[:-2], infinitive[-2:]
    if ending == "er":
        return _first_group(infinitive, stem)
    if ending == "ir":
        return (*(stem + one for one in _SECOND_GROUP), stem + "i")
    return (*(stem + one for one in _THIRD_GROUP), stem + "u")


def _first_group(infinitive: str, stem: str) -> tuple[str, ...]:
    weak = _silent_stem(infinitive, stem)
    soft = {"g": stem + "e", "c": stem[:-1] + "ç"}.get(stem[-1], stem)
    singular = [weak + ending for ending in _FIRST_GROUP[:3]]
    return (*singular, soft + "ons", stem + "ez", weak + "ent", stem + "é")


def _silent_stem(infinitive: str, stem: str) -> str:
    """Return the stem before a silent ending: achèt-, appell-, préfèr-, nettoi-."""
    if infinitive in _DOUBLING:
        return stem + stem[-1]
    if stem.endswith(("oy", "uy", "ay")):
        return stem[:-1] + "i"
    if len(stem) > 2 and stem[-2] in "eé" and stem[-1] not in "aeiouyé":
        return stem[:-2] + "è" + stem[-1]
    return stem


@cache
def present(infinitive: str, person: int) -> str:
    """Return one form of the present."""
    return forms(infinitive)[person]


@cache
def imperfect(infinitive: str, person: int) -> str:
    """Return one form of the imparfait.

    >>> imperfect("manger", 2), imperfect("manger", 3), imperfect("finir", 0)
    ('mangeait', 'mangions', 'finissais')
    """
    if infinitive == "être":
        return "ét" + _ENDINGS[person]
    stem = forms(infinitive)[3].removesuffix("ons")
    # The e of mangeons and the ç of commençons stand only before a, so not before ions and iez.
    if person in (3, 4) and infinitive.endswith(("ger", "cer")):
        stem = infinitive[:-2]
    return stem + _ENDINGS[person]


def participle(infinitive: str, gender: str = "m", plural: bool = False) -> str:
    """Return the past participle in agreement.

    >>> participle("prendre", "f", True), participle("devoir", "f")
    ('prises', 'due')
    """
    form = forms(infinitive)[6]
    if gender == "f":
        form = ("du" if form == "dû" else form) + "e"
    return form + "s" if plural and not form.endswith("s") else form


def imperative(infinitive: str, person: int) -> str:
    """Return the imperative for tu (1), nous (3) or vous (4).

    >>> imperative("manger", 1), imperative("aller", 1), imperative("prendre", 1)
    ('mange', 'va', 'prends')
    """
    form = present(infinitive, person)
    drops_s = person == 1 and (form.endswith("es") or infinitive == "aller")
    return form[:-1] if drops_s else form


# Spelling

ASPIRATED = tuple(
    sorted(
        {noun.singular for noun in BY_LEMMA.values() if noun.aspirated} | {"haut", "huit", "onz"}
    )
)
"""Beginnings of words before which nothing is elided."""

_VOWEL = "aàâeéèêëiîïoôuùûœhAÀÂEÉÈÊËIÎÏOÔUÙÛŒH"
_SOUND = rf"(?=y\b|(?!(?:{'|'.join(ASPIRATED)}))[{_VOWEL}])"
_ELIDED = re.compile(rf"(?<![\w'-])(j|n|m|t|s|d|qu|jusqu)e {_SOUND}|(?<![\w'-])(l)[ea] {_SOUND}")
_IF_HE = re.compile(r"\bsi (?=ils?\b)")
_WORD = re.compile(r"\w+")
_BEFORE_TALL = re.compile(r"[ \u00a0\u202f]+(?=[?!:;])")


def begins_with_vowel(word: str) -> bool:
    """Say whether a word makes the one before it elide or change (l', cet, bel, mon).

    >>> [begins_with_vowel(word) for word in ("hôtel", "haricot", "œuf", "onze", "maison")]
    [True, False, True, False, False]
    """
    return word[0] in _VOWEL and not word.startswith(ASPIRATED)


def elide(text: str) -> str:
    """Join the small words to the vowel after them.

    >>> elide("je ne ai pas parce que il a le haricot")
    "je n'ai pas parce qu'il a le haricot"
    """
    text = _IF_HE.sub("s'", text)
    return _ELIDED.sub(lambda match: (match[1] or match[2]) + "'", text)


def sentence(text: str, mark: str = ".") -> str:
    """Finish a French sentence: elision, a capital, and its mark after the right space."""
    text = elide(text)
    return text[0].upper() + text[1:] + (mark if mark == "." else " " + mark)


def word_count(text: str) -> int:
    """Count words: runs of letters or digits, so l'homme is two and a mark is none."""
    return len(_WORD.findall(text))


def words(text: str) -> list[str]:
    """Return the words of a sentence in lower case."""
    return _WORD.findall(text.lower())


def keyboard(text: str) -> str:
    """Fold typographic French to the policy of the corpus.

    >>> keyboard("Où est l’hôtel\\u202f?")
    "Où est l'hôtel ?"
    """
    folded = text.replace("’", "'").replace("\u00a0", " ").replace("\u202f", " ")
    return _BEFORE_TALL.sub(" ", folded)


def typeset(text: str) -> str:
    """Return a sentence of the corpus as print has it: ’ and U+00A0 before tall marks."""
    return _BEFORE_TALL.sub("\u00a0", text.replace("'", "’"))


# Numbers and hours


def number_in_french(number: int, gender: str = "m") -> str:
    """Write a number below one hundred, in agreement where it ends in one.

    >>> [number_in_french(n) for n in (17, 21, 71, 80, 99)]
    ['dix-sept', 'vingt et un', 'soixante et onze', 'quatre-vingts', 'quatre-vingt-dix-neuf']
    >>> number_in_french(21, "f")
    'vingt et une'
    """
    text = _written(number)
    return text + "e" if gender == "f" and text.endswith("un") else text


def _written(number: int) -> str:
    if number <= 16:
        return str(_FRENCH_ONES[number])
    if number < 20:
        return "dix-" + str(_FRENCH_ONES[number - 10])
    if number >= 80:
        return "quatre-vingts" if number == 80 else "quatre-vingt-" + _written(number - 80)
    tens = min(number // 10, 6)
    rest = number - 10 * tens
    if rest == 0:
        return str(_FRENCH_TENS[tens])
    joined = " et " if rest in (1, 11) else "-"
    return f"{_FRENCH_TENS[tens]}{joined}{_written(rest)}"


def hour_in_french(hour: int, minutes: int) -> str:
    """Write a time of day on the dial of twelve hours.

    >>> hour_in_french(1, 0), hour_in_french(7, 15), hour_in_french(12, 30), hour_in_french(8, 50)
    ('une heure', 'sept heures et quart', 'midi et demi', 'neuf heures moins dix')
    """
    if minutes > 30:
        hour = hour % 12 + 1
    name = "midi" if hour == 12 else f"{number_in_french(hour, 'f')} heure{'s' * (hour > 1)}"
    half = " et demi" if hour == 12 else " et demie"
    past = {0: "", 15: " et quart", 30: half, 45: " moins le quart"}
    if minutes in past:
        return name + past[minutes]
    if minutes < 30:
        return f"{name} {number_in_french(minutes)}"
    return f"{name} moins {number_in_french(60 - minutes)}"
