"""What is wrong with a translation, by rule, and which of its words a reader should doubt.

The rules count what BLEU hardly notices; they are no judgements. A *content word* is one that is
not in a list of some 150 words of grammar. A translation

    drops     a content word if it has fewer of them than every reference has;
    loops     if one to four words with a content word among them, or any three times, are
              repeated at once, and no reference does so;
    invents   a number if it has digits that neither the source nor a reference has.

A paraphrase in fewer words counts as a drop, and one wrong word in the place of another does not.

How sure a translator is of a word is

    p(word) = Π p(token) over the tokens that spell it

What such a product is worth is measured on text that no training saw: of the words with about this
p, so many stand in a reference. `TranslationFormat.right_words` keeps that curve beside the
weights, made to rise by isotonic regression. A translator without one names no word: a probability
that was never compared with outcomes is not shown as a confidence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported when they are first used

from heedful.data.languages import GRAMMAR, content_words, words_in
from heedful.errors import InputError
from heedful.records import Record
from heedful.studies.translation.attribution import target_words
from heedful.studies.translation.translator import Hypothesis, Translator

LONGEST_LOOP = 4
"""Words that are repeated together; longer loops hold shorter ones in all that was seen."""
ECHO = 4
"""Words in a row that hardly a sentence says twice."""

NUMBER = re.compile(r"\d+(?:[.,\u00a0\u202f ]\d+)*")
"""A number in digits, with what groups them."""


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
    return len(content_words(text))


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
    return {re.sub(r"\D", "", number) for number in NUMBER.findall(text)}


def repeats(text: str) -> bool:
    """Tell whether words are repeated at once: one to four with content, or any three times."""
    words = words_in(text)
    for size in range(1, LONGEST_LOOP + 1):
        for start in range(len(words) - 2 * size + 1):
            run = words[start : start + size]
            if run != words[start + size : start + 2 * size]:
                continue
            thrice = run == words[start + 2 * size : start + 3 * size]
            if thrice or any(word not in GRAMMAR["en"] for word in run):
                return True
    return False


def echoes(text: str) -> bool:
    """Tell whether four words in a row stand twice in a text, anywhere.

    >>> echoes("We left on Monday to visit my aunt, in the morning to visit my aunt.")
    True
    """
    words = words_in(text)
    runs = [tuple(words[start : start + ECHO]) for start in range(len(words) - ECHO + 1)]
    return len(set(runs)) < len(runs)


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
    words, _ = target_words(translator, tokens, beside=hypothesis.text)
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
    shares = scipy.optimize.isotonic_regression(
        [outcome[group].mean() for group in groups], weights=[len(group) for group in groups]
    ).x
    return tuple(
        (round(float(at[group].mean()), 4), round(float(share), 4))
        for group, share in zip(groups, shares, strict=True)
    )
