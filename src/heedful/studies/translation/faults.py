"""What is wrong with a translation that BLEU hardly notices: dropped words, loops, numbers.

Rules, not judgements. A *content word* is one that is not in a list of some 150 words of grammar.

* A translation *drops* a content word if it has fewer of them than every reference has.
* It *loops* if one to four words with a content word among them, or any three times, are
  repeated at once, and no reference does so.
* It *invents* a number if it has digits that neither the source nor a reference has.

A paraphrase in fewer words counts as a drop, and one wrong word in the place of another does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from heedful.records import Record

LONGEST_LOOP = 4
"""Words that are repeated together; longer loops hold shorter ones in all that was seen."""

_GRAMMAR = """
    a about after all also am an and any are aren't as at be because been before being but by can
    can't cannot could couldn't did didn't do does doesn't doing don't down for from get go going
    got had hadn't has hasn't have haven't having he he'd he'll he's her here hers him his how i
    i'd i'll i'm i've if in into is isn't it it'll it's its itself just let let's like may me might
    more most much must my no nor not of off on one or our out over own really should shouldn't so
    some such than that that's the their them then there there's these they they'd they'll they're
    they've this those to too up us very was wasn't we we'd we'll we're we've were weren't what
    what's when where which while who whom whose why will with won't would wouldn't you you'd
    you'll you're you've your yours
"""
GRAMMAR = frozenset(_GRAMMAR.split())
"""English words that carry grammar more than content, and words for which there are others."""

_NUMBER = re.compile(r"\d+(?:[.,\u00a0\u202f ]\d+)*")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


@dataclass(frozen=True, kw_only=True)
class Faults(Record):
    """What share of some translations has which fault."""

    sentences: int
    dropped: float
    """Has fewer content words than every reference."""
    loops: float
    """Repeats words at once, as no reference does."""
    invented_numbers: float
    """Has digits that neither source nor references have."""


def count_faults(
    sources: Sequence[str], texts: Sequence[str], references: Sequence[Sequence[str]]
) -> Faults:
    """Count the translations with each fault."""
    count = len(texts)
    several = list(zip(sources, texts, references, strict=True))
    return Faults(
        sentences=count,
        dropped=sum(drops(text, wanted) for _, text, wanted in several) / count,
        loops=sum(loops(text, wanted) for _, text, wanted in several) / count,
        invented_numbers=sum(invents(*one) for one in several) / count,
    )


def drops(text: str, references: Sequence[str]) -> bool:
    """Tell whether a text has fewer content words than every reference.

    >>> drops("This book is too difficult.", ["This book is too hard for a child of six."])
    True
    >>> drops("My sister is tired.", ["My sister is exhausted.", "My little sister is tired."])
    False
    """
    return content(text) < min(map(content, references))


def content(text: str) -> int:
    """Return how many content words a text has."""
    return sum(word not in GRAMMAR for word in _words(text))


def loops(text: str, references: Sequence[str] = ()) -> bool:
    """Tell whether words are repeated at once, as in no reference.

    >>> loops("The cat's neighbor's neighbor's neighbor's."), loops("I said that that was it.")
    (True, False)
    """
    return repeats(text) and not any(map(repeats, references))


def invents(source: str, text: str, references: Sequence[str] = ()) -> bool:
    """Tell whether a text has a number that neither its source nor a reference has.

    >>> invents("Il a trente ans.", "He is 40.", ["He is 30.", "He is thirty years old."])
    True
    """
    return bool(numbers(text) - numbers(source).union(*map(numbers, references)))


def numbers(text: str) -> set[str]:
    """Return the numbers of a text that are written in digits, without what groups the digits.

    >>> sorted(numbers("En 1789, 12 000 hommes"))
    ['12000', '1789']
    """
    return {re.sub(r"\D", "", number) for number in _NUMBER.findall(text)}


def _words(text: str) -> list[str]:
    return [word.replace("’", "'") for word in _WORD.findall(text.casefold())]


def repeats(text: str) -> bool:
    """Tell whether words are repeated at once: one to four with content, or any three times."""
    words = _words(text)
    for size in range(1, LONGEST_LOOP + 1):
        for start in range(len(words) - 2 * size + 1):
            run = words[start : start + size]
            if run != words[start + size : start + 2 * size]:
                continue
            thrice = run == words[start + 2 * size : start + 3 * size]
            if thrice or any(word not in GRAMMAR for word in run):
                return True
    return False
