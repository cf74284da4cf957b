"""How sure a translator is of each word, and which words a reader should doubt.

    p(word) = Π p(token) over the tokens that spell it

What such a product is worth is measured on text that no training saw: of the words with about
this p, so many stand in a reference. `TranslationFormat.right_words` keeps that curve beside the
weights, made to rise by isotonic regression. A translator without one names no word: a probability
that was never compared with outcomes is not shown as a confidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from heedful.errors import InputError
from heedful.records import Record
from heedful.studies.translation.alignment import words_of
from heedful.studies.translation.translator import Hypothesis, Translator

DOUBT = 0.5
"""A word is named where fewer than this share of such words were right."""
BINS = 24
"""Groups of equal size in which the curve is measured, before it is made to rise."""
FEWEST = 200
"""Words from which a curve can be measured."""


@dataclass(frozen=True, eq=False, kw_only=True)
class WordConfidence(Record):
    """A word of a translation, and how sure of it the translator is."""

    text: str
    probability: float
    """Of its tokens, under the model itself."""
    right: float | None
    """The share of words as probable that stood in a reference; None where nothing was measured."""

    @property
    def doubtful(self) -> bool:
        """Whether such words are rather wrong than right."""
        return self.right is not None and self.right < DOUBT


def word_confidences(translator: Translator, hypothesis: Hypothesis) -> tuple[WordConfidence, ...]:
    """Return the words of a translation in their order; marks such as a full stop are left out."""
    ended = int(hypothesis.finished)
    tokens = hypothesis.tokens[: len(hypothesis.tokens) - ended]
    _, words, _ = words_of(translator, "", tokens)
    if not words.words:
        return ()
    each = np.array(hypothesis.log_probabilities[: len(tokens)])[:, None]
    totals = words.joined(each)[:, 0]
    return tuple(
        WordConfidence(text=text, probability=float(np.exp(total)), right=_share(translator, total))
        for text, total in zip(words.words, totals, strict=True)
        if any(map(str.isalnum, text))
    )


def doubtful_words(translator: Translator, hypothesis: Hypothesis) -> Iterator[WordConfidence]:
    """Yield the words that are rather wrong than right, by what was measured."""
    if translator.format.right_words:
        yield from (word for word in word_confidences(translator, hypothesis) if word.doubtful)


def _share(translator: Translator, log_probability: float) -> float | None:
    curve = translator.format.right_words
    if not curve:
        return None
    at, right = np.array(curve).T
    return float(np.interp(log_probability, at, right))


def right_words(words: Sequence[str], references: Sequence[str]) -> list[bool]:
    """Tell of each word whether some reference has it too, as often as the text up to there.

    >>> right_words(["The", "cat", "cat"], ["the cat sleeps"])
    [True, True, False]
    """
    known = [Counter(_plain(reference)) for reference in references]
    met: Counter[str] = Counter()
    found = []
    for word in words:
        written = " ".join(_plain(word))
        met[written] += 1
        found.append(any(counts[written] >= met[written] for counts in known))
    return found


def _plain(text: str) -> list[str]:
    letters = "".join(
        letter if letter.isalnum() or letter == "'" else " "
        for letter in text.casefold().replace("’", "'")
    )
    return letters.split()


def measure_curve(
    log_probabilities: Sequence[float], right: Sequence[bool]
) -> tuple[tuple[float, float], ...]:
    """Return points of the share of right words against log p, rising."""
    if len(right) < FEWEST or len(right) != len(log_probabilities):
        raise InputError(
            "right", f"has {len(right)} words", expected=f"{FEWEST} or more, each with its log p"
        )
    order = np.argsort(log_probabilities, kind="stable")
    at, outcome = np.array(log_probabilities)[order], np.array(right, dtype=float)[order]
    groups = np.array_split(np.arange(len(order)), BINS)
    shares = isotonic_regression(
        [outcome[group].mean() for group in groups], weights=[len(group) for group in groups]
    ).x
    return tuple(
        (round(float(at[group].mean()), 4), round(float(share), 4))
        for group, share in zip(groups, shares, strict=True)
    )
