"""What a template gives: a sentence in both languages, before it is finished."""

from __future__ import annotations

from typing import NamedTuple

from heedful.data.phrasebook.occasions import Words
from heedful.data.phrasebook.orthography import english_sentence, sentence


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
    english = english_sentence(draft.english, draft.mark)
    others = dict.fromkeys(english_sentence(other, draft.mark) for other in draft.others)
    if " some " in english:
        others[english.replace(" some ", " ")] = None
    full = uncontracted(english)
    if full != english:
        others[full] = None
    others.pop(english, None)
    return sentence(draft.french, draft.mark), english, tuple(others)


def uncontracted(english: str) -> str:
    """Write out the negation: don't, do not; can't, cannot.

    Where the subject stands after the verb the order would change, so questions stay as they are.
    """
    if english.endswith("?") or "n't" not in english:
        return english
    return english.replace("can't", "cannot").replace("n't", " not")


def joined(*parts: str) -> str:
    """Join what is not empty."""
    return " ".join(part for part in parts if part)


def timed(french: str, english: str, time: Words, first: bool) -> tuple[str, str]:
    """Put a time at the beginning or at the end, in both languages alike."""
    if not time.french:
        return french, english
    if first:
        return f"{time.french}, {french}", f"{time.english}, {english}"
    return f"{french} {time.french}", f"{english} {time.english}"
