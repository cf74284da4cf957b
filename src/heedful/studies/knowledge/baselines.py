"""Answers without a model: what an arm has to beat, and what it could reach.

most frequent   the answer that fine-tuning shows most often, whatever is asked
name only       naive Bayes over character n-grams of the name: it knows how names sound
retrieval       looks the name up in the pretraining text: what can be known from it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from heedful.errors import InputError
from heedful.studies.knowledge.corpus import Asked, KnowledgeCorpus

SIZES = (2, 3, 4, 5)
"""Lengths of the n-grams."""


def grams(name: str) -> list[str]:
    """Return the n-grams of a name, with marks where its words begin and end.

    >>> grams("Al")[:4]
    ['^A', 'Al', 'l$', '^Al']
    """
    words = [f"^{word}$" for word in name.split()]
    return [
        word[start : start + size]
        for size in SIZES
        for word in words
        for start in range(len(word) - size + 1)
    ]


class NameGuesser:
    """Guesses a place from nothing but the letters of a name."""

    def __init__(self, asked: Sequence[Asked], smoothing: float = 0.1) -> None:
        if not asked:
            raise InputError("questions", "are none", expected="at least one was expected")
        self.places = sorted({one.answer for one in asked})
        number = {place: index for index, place in enumerate(self.places)}
        counts: dict[str, Counter[int]] = {}
        totals = np.zeros(len(self.places))
        prior = np.zeros(len(self.places))
        for one in asked:
            place = number[one.answer]
            prior[place] += 1
            for gram in set(grams(one.name)):
                counts.setdefault(gram, Counter())[place] += 1
                totals[place] += 1
        self._prior = np.log(prior / prior.sum())
        base = np.log(smoothing / (totals + smoothing * len(counts)))
        self._unseen = base
        self._logs: dict[str, Float64[np.ndarray, " places"]] = {}
        for gram, found in counts.items():
            row = np.full(len(self.places), smoothing)
            for place, count in found.items():
                row[place] += count
            self._logs[gram] = np.log(row / (totals + smoothing * len(counts)))

    def probabilities(self, name: str) -> Float64[np.ndarray, " places"]:
        """Return how likely each of `places` is, by the name alone."""
        known = [gram for gram in set(grams(name)) if gram in self._logs]
        scores = self._prior + sum((self._logs[gram] for gram in sorted(known)), np.zeros(()))
        scores = np.broadcast_to(scores, (len(self.places),))
        chances = np.exp(scores - scores.max())
        made: Float64[np.ndarray, " places"] = chances / chances.sum()
        return made

    def guess(self, name: str) -> str:
        """Return the likeliest place."""
        return self.places[int(self.probabilities(name).argmax())]


def baseline_answers(corpus: KnowledgeCorpus) -> dict[str, list[str]]:
    """Return the answers of every baseline to the test questions, by its name."""
    frequent = corpus.places[0]
    guesser = NameGuesser(corpus.train)
    evidence, places = corpus.evidence, corpus.places
    return {
        f"most frequent ({frequent})": [frequent] * len(corpus.test),
        "name only": [guesser.guess(one.name) for one in corpus.test],
        "retrieval": [evidence.place(one.name, places) or frequent for one in corpus.test],
    }
