"""Which French words became which English ones: the grammar says so while it writes.

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
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

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
