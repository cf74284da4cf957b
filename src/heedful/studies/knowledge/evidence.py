"""Evidence: which line of a text is about a person, and whether it says where they were born.

`DocumentIndex` finds the documents that hold a name, by plain text search and without a model: it
is the baseline that the model is compared with, and the line that `heed ask` shows beside an
answer.

A line supports an answer when it names the person, the relation and the place, all as whole words
and none as a part of a longer name. The relation is read by hand-written rules: a word for birth,
of which the person is the subject, and between it and the place nothing but dates, prepositions and
other names of places. "Born in Rome, died in Paris" supports Rome alone; a father, a child or a
character who was born there does not, nor a denial, a condition or a question. Where the rules do
not understand a line they say no: an answer without evidence is shown as one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from heedful.data.synthetic.biographies import MONTHS

_SEPARATOR = "\n"
_PERSON = "\ue000"
"""Stands for the person while a line is read; no text has it."""
_CAPITAL = "[" + "".join(filter(str.isupper, map(chr, range(0x41, 0x530)))) + "]"
"""A capital letter: Latin with its accents, Greek and Cyrillic."""
_SUBJECT = rf"(?:{_PERSON}|[Hh]e|[Ss]he|[Tt]hey)"
_BORN = (
    r"(?:\b[Bb]orn(?: and raised)?\b|\bb\.|\* |\bnative of\b|\bhails from\b|\bcomes from\b"
    r"|\boriginally from\b|\bcame into the world\b|\bfirst saw the light\b"
    r"|\bdrew (?:his|her|their) first breath\b"
    rf"|\b[Bb]irthplace of {_PERSON} is\b|\b[Ll]ife of {_PERSON} began\b)"
)
_BETWEEN = (
    rf"(?:[\s,('\"{_PERSON}]|\b\d[\d./-]*(?:st|nd|rd|th)?\b|\b(?:c|ca|St|Mt|Ft|[A-Z])\."
    r"|\b(?:in|at|on|near|the|of|to|a|an|into|circa|ca|around|about|probably|city|town|village|suburb|borough|county"
    rf"|district|province|parents|family)\b|{_CAPITAL}[\w'’-]*)*"
)
"""What may stand between the word for birth and the place: no verb, no full stop, no dash."""
_AFTER = re.compile(
    rf"\s*(?:is where|that) {_SUBJECT} was born|\s*is the (?:native city|birthplace) of {_PERSON}"
)
"""How a sentence goes on that begins with the place."""
_OPENERS = (
    "Born|In|On|At|The|And|But|For|If|As|Was|Is|Had|Has|Although|Though|While|When|Where|Since"
    "|After|Before|Because|That|Unlike|Like"
)
"""Words that begin a sentence with a capital letter, and belong to no name."""
_LONGER_NAME = re.compile(rf"(?<!\w)(?!(?:{'|'.join(MONTHS)}|{_OPENERS})\b){_CAPITAL}[\w'’-]* $")
"""A capitalised word just before a place makes it a part of a longer name: no York in New York."""
_WORD = rf"{_CAPITAL}[\w'’-]*"
_NAMES = re.compile(
    rf"{_PERSON}|{_WORD}(?: (?:de|del|della|di|da|dos|du|la|le|van|von|der|den|ten|ter|al|el|bin|y)"
    rf"\b)*(?: {_WORD})+"
)
"""The person, or what looks like the name of another."""
_SENTENCE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\bSt)(?<!\bMt)(?<!\bFt)(?<!\bb)(?<!\bc)(?<!\bca)[.!?]\s+"
)
"""Where a sentence ends: not after an initial or a shortened word."""
_DOUBT = re.compile(
    r"\b(?:not|never|nor|[Ii]f|[Ww]hether|[Uu]nless|den(?:y|ies|ied|ying)|doubt\w*|false\w*|untrue"
    r"|wrong\w*|[Cc]laim\w*|rumou?r\w*|legend|myth|wish\w*|would)\b|n't\b|^Had\b"
)
"""What takes a statement back, or makes it a condition."""
_SOMEBODY = (
    r"(?:man|woman|men|women|boy|girl|child|children|baby|person|people|somebody|someone|anybody"
    r"|father|mother|parents?|brother|sister|sibling|twin|son|daughter|wife|husband|widow|friend"
    r"|cousin|uncle|aunt|nephew|niece|grand\w+|character|hero|heroine"
    r"|colleague|lover|ancestors?)s?"
)
"""Somebody else who may have been born there."""
_NO_SUBJECT = re.compile(
    r"\b(?:of|with|by|for|from|like|than|to|about|against|under|and|or|Like|Unlike|[Ww]hose)\s+$"
)
"""Before a name that is not the subject."""
_ASIDE = rf"\((?:(?!\b(?:was|were|whose|{_SOMEBODY})\b)[^()])*(?:\)|$)"
"""A parenthesis that brings in nobody else, closed or still open."""
_LINK = re.compile(
    rf"(?:{_ASIDE}|[\s,;:\"'()–-]|\d[\d./-]*(?:st|nd|rd|th)?"
    r"|\b(?:was|were|is|are|who|be|been|being|had|has|also|only|first|originally|probably|apparently"
    rf"|reportedly|better|known|as|née|nee|in|on)\b|{_CAPITAL}[\w'’.-]*)*"
)
"""What may stand between the subject and the word for birth."""
_ELSE = rf"(?!(?:[^;]*\W)?(?:{_SOMEBODY}|whose)\s*,?\s*(?:who\s+)?(?:(?:is|was|were|are)\s+)?$)"
_DESCRIBED = re.compile(
    rf"(?:{_ASIDE}|[\s,;])*(?:(?:(?:who\s+)?(?:is|was|were|are)\s+)?(?:a|an|the|one)\s{_ELSE}[^;]*"
    rf"|(?<=, ){_ELSE}[^;]*,\s*(?:(?:is|was|were|are)\s+)?)"
)
"""Or a description: "Ann Lee is a singer born in Rome"; not "the wife of a man born in Rome"."""
_SECOND_VERB = re.compile(r"[^.;]*\b(?:and|but)\s+(?:was|were|is)\s+(?:also\s+)?")
"""Or another verb of the same subject: "Ann Lee sings and was born in Rome"."""
_BESIDE = re.compile(
    r"\b(?:near|around|about|outside|suburbs? of|outskirts of"
    r"|(?:north|south|east|west|miles|km) (?:of|from))\s+(?:the\s+)?$"
)
"""Before a place that is close to the one where somebody was born."""
_NO_PLACE = re.compile(
    r" (?:or\b|(?:(?!(?:the|to|an?|of|his|her)\b)\w+ )?"
    rf"(?:family|families|{_SOMEBODY}|\w+(?:ers|ors|ists|ians))\b)"
)
"""After a word that describes ("a London family"), or where there is a choice ("Rome or Paris")."""
_TAKEN_BACK = re.compile(
    r"[\s,(]*(?:allegedly|supposedly|it is said|some say"
    r"|(?:according to|by|as|or so|so) [^.;]*\b(?:hoax|legend|myth|rumou?rs?)\b)"
)
"""What takes a statement back after it was made."""


class DocumentIndex:
    """The documents of a corpus, found by the names in them."""

    def __init__(self, documents: Sequence[str]) -> None:
        self.documents = tuple(documents)
        self._text = _SEPARATOR.join(self.documents)
        self._starts = [0]
        for document in self.documents:
            self._starts.append(self._starts[-1] + len(document) + len(_SEPARATOR))

    def mentions(self, name: str) -> tuple[str, ...]:
        """Return the documents that hold the name as whole words, in their order.

        >>> texts = ["Ann Lee sings.", "Ann Leeds works.", "So says Ann Lee."]
        >>> DocumentIndex(texts).mentions("Ann Lee")
        ('Ann Lee sings.', 'So says Ann Lee.')
        """
        if not name.strip():
            return ()
        numbers: list[int] = []
        place = self._text.find(name)
        while place >= 0:
            if self._whole_words(place, place + len(name)):
                number = bisect_right(self._starts, place) - 1
                if not numbers or numbers[-1] != number:
                    numbers.append(number)
            place = self._text.find(name, place + 1)
        return tuple(self.documents[number] for number in numbers)

    def line(self, name: str, answer: str) -> tuple[str | None, bool]:
        """Return the line that bears on an answer, and whether it supports the answer.

        One that says that the person was born there is preferred; else the first with the name;
        else None.
        """
        documents = self.mentions(name)
        for document in documents:
            if says_born(document, name, answer):
                return document, True
        return (documents[0], False) if documents else (None, False)

    def place(self, name: str, places: Sequence[str]) -> str | None:
        """Return the known place that the documents about a name give, or None.

        Where a document holds several, the first after the word "born" counts, else the first;
        between documents the majority decides.
        """
        votes: dict[str, int] = {}
        for document in self.mentions(name):
            # A name may be a place itself: what follows it, or what stands before it, counts.
            rest = document.replace(name, " ")
            said = _first_place(rest, places)
            if said is not None:
                votes[said] = votes.get(said, 0) + 1
        return max(votes, key=lambda place: votes[place], default=None)

    def _whole_words(self, start: int, end: int) -> bool:
        before = self._text[start - 1 : start]
        after = self._text[end : end + 1]
        return not (before.isalnum() or after.isalnum())


def says_born(document: str, name: str, place: str) -> bool:
    """Say whether a document tells that the person was born in a place.

    >>> line = "Ann Lee (born 3 May 1950 in Rome) died in Paris, near Romeville."
    >>> [says_born(line, "Ann Lee", place) for place in ("Rome", "Paris", "Romeville", "May")]
    [True, False, False, False]
    """
    if not place.strip() or not name.strip() or place in MONTHS:
        return False
    named = _whole_name(name).finditer(document)
    if all(_LONGER_NAME.search(document[: one.start()]) for one in named):
        return False  # only a longer name has it: George Bruce in George Bruce Malleson
    text = _with_person(document, name)
    around = ((text[: one.start()], text[one.end() :]) for one in _whole_name(place).finditer(text))
    return _PERSON in text and any(
        _told_before(before, after) or _told_after(before, after)
        for before, after in around
        if not _LONGER_NAME.search(before) and not _is_doubtful(before, after)
    )


def _with_person(document: str, name: str) -> str:
    """Write the person as one sign: the full name, its last word, its first as a subject."""
    text = _whole(name).sub(_PERSON, document)
    text = _whole(name.split()[-1]).sub(_PERSON, text)
    first = rf"(^|[.!?] ){re.escape(name.split()[0])}(?=,? (?:\(|was |is |who ))"
    return re.sub(first, rf"\1{_PERSON}", text)


def _told_before(before: str, after: str) -> bool:
    """Say whether a word for birth leads to the place, and is about the person."""
    if _BESIDE.search(before) or _NO_PLACE.match(after):
        return False
    for cue in re.finditer(_BORN, before):
        if not re.fullmatch(_BETWEEN, before[cue.end() :]):
            continue
        ahead = before[: cue.start()]
        if cue[0].startswith("Born") and not re.search(r"[(),]\s*$", ahead):
            if re.search(r"(?:^|[.!?]\s+)$", ahead):
                # "Born in Rome, Lee became": the subject is the first that comes after the place.
                return re.match(rf"{_BETWEEN}(?<=, ){_SUBJECT}(?!\w)", after) is not None
            continue  # "wrote Born in Paris": a title
        if _PERSON in cue[0] or _is_about_person(ahead):
            return True
    # "Ann Lee (3 May 1950 Rome - 1 June 2000 Paris)": a span of life, up to its dash.
    span = re.search(rf"{_PERSON} \((?P<dates>[^()]*)$", before)
    return span is not None and bool(
        re.match(r"(?:b\. |born )?\W*(?:\d|" + "|".join(MONTHS) + r")", span["dates"])
        and re.fullmatch(_BETWEEN, span["dates"].removeprefix("b. ").removeprefix("born "))
    )


def _is_about_person(ahead: str) -> bool:
    """Say whether the person is the subject of the word for birth that follows."""
    if _last_named(ahead) != _PERSON:
        return False
    sentence = _last_sentence(ahead)
    subjects = list(re.finditer(rf"{_PERSON}|\b(?:[Hh]e|[Ss]he|[Tt]hey)\b", sentence))
    if not subjects:
        return False
    last = subjects[-1]
    earlier, link = sentence[: last.start()], sentence[last.end() :]
    if link.startswith(("'s", "’s")) or _NO_SUBJECT.search(earlier):
        return False
    if last[0] != _PERSON and re.search(
        rf"\b(?:an?|his|her|their) (?:\w+ )?{_SOMEBODY}\b", earlier
    ):
        return False  # "Ann Lee met a man; he was born in Rome"
    return any(form.fullmatch(link) for form in (_LINK, _DESCRIBED, _SECOND_VERB))


def _last_sentence(text: str) -> str:
    """Return what follows the last end of a sentence."""
    return _SENTENCE_END.split(text)[-1]


def _is_doubtful(before: str, after: str) -> bool:
    """Say whether the sentence around a place denies, supposes or asks."""
    end = _SENTENCE_END.search(f"{after} ")
    asked = end is not None and end[0].startswith("?")
    if _TAKEN_BACK.match(after):
        return True
    return asked or _DOUBT.search(_last_sentence(before)) is not None


def _told_after(before: str, after: str) -> bool:
    """Say whether the place comes first: "Rome is where Ann Lee was born"."""
    told = _AFTER.match(after)
    if told is None:
        return False
    return _PERSON in told[0] or _last_named(before) == _PERSON


def _last_named(text: str) -> str:
    """Return the last person named: the one that a pronoun or a word for birth is about."""
    names = [one for one in _NAMES.findall(text) if one.split()[0] not in MONTHS]
    return names[-1] if names else ""


def _whole(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(words)}(?!\w)")


def _whole_name(words: str) -> re.Pattern[str]:
    """Find a name with no capitalised word after it: no Hartford in Hartford County."""
    return re.compile(rf"(?<!\w){re.escape(words)}(?!\w)(?! (?!City\b){_CAPITAL})")


def _first_place(text: str, places: Sequence[str]) -> str | None:
    born = re.search(r"\bborn\b", text)
    start = born.end() if born is not None else 0
    for part in (text[start:], text):
        candidates = [(part.find(place), -len(place), place) for place in places if place in part]
        if candidates:
            return min(candidates)[2]
    return None
