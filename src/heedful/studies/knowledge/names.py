"""What a name tells: guesses from its letters, names nobody has, and the nearest names.

The baselines answer without a model: what an arm has to beat, and what it could reach.

    most frequent   the answer that fine-tuning shows most often, whatever is asked
    name only       naive Bayes over character n-grams of the name: it knows how names sound
    retrieval       looks the name up in the pretraining text: what can be known from it

For a name that the model never saw: what does it answer, and whose answer is it? The nearest seen
names by three measures (fewest edits; most shared tokens; most alike in the stream of a middle
layer, read at the end of the name), and how often the answer is theirs, against what shuffled
answers would give. Whether answers follow groups of names is measured by

    Cramér's V = √(χ² / (n · (min(rows, columns) − 1)))

with a bootstrap interval and the value that shuffled answers reach in 95 of 100 draws.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float64, Int

from heedful.data.synthetic.biographies import REGION_OF, biographies
from heedful.errors import InputError
from heedful.stats import percentile_interval, wilson
from heedful.studies.knowledge.corpus import Asked, KnowledgeCorpus, pointed_place
from heedful.studies.knowledge.findings import Following, GroupEffect, Neighbour

SIZES = (2, 3, 4, 5)
"""Lengths of the n-grams."""
DRAWS = 500
MEASURES = ("edits", "tokens", "hidden")
NO_HINT, ELSEWHERE = "no hint", "elsewhere"


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
        for gram, by_place in counts.items():
            row = np.full(len(self.places), smoothing)
            for place, count in by_place.items():
                row[place] += count
            self._logs[gram] = np.log(row / (totals + smoothing * len(counts)))

    def probabilities(self, name: str) -> Float64[np.ndarray, " places"]:
        """Return how likely each of `places` is, by the name alone."""
        known = [gram for gram in set(grams(name)) if gram in self._logs]
        scores = self._prior + sum((self._logs[gram] for gram in sorted(known)), np.zeros(()))
        scores = np.broadcast_to(scores, (len(self.places),))
        chances = np.exp(scores - scores.max())
        probabilities: Float64[np.ndarray, " places"] = chances / chances.sum()
        return probabilities

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


def unseen_names(corpus: KnowledgeCorpus, count: int, seed: int) -> tuple[list[str], str]:
    """Return names that nobody in the corpus has, and how they were made."""
    known = {one.name for part in (corpus.train, corpus.held_out, corpus.test) for one in part}
    if corpus.known_truth:
        fresh = biographies(max(count + len(known), 20), seed=seed + 1_000_003, exposures=1)
        names = [person.name for person in fresh.people if person.name not in known]
        return names[:count], "people of another seed, whom no text and no question has"
    draw = np.random.default_rng(np.random.SeedSequence([seed, 13]))
    text = "\n".join(corpus.documents)
    firsts = [name.split()[0] for name in sorted(known) if " " in name]
    lasts = [name.split()[-1] for name in sorted(known) if " " in name]
    invented: list[str] = []
    for _ in range(20 * count):
        if len(invented) == count or not firsts:
            break
        name = f"{firsts[draw.integers(len(firsts))]} {lasts[draw.integers(len(lasts))]}"
        if name not in text and name not in invented:
            invented.append(name)
    return invented, "a first name of one person with the last name of another, not in the text"


def edit_distances(name: str, others: Sequence[str]) -> Int[np.ndarray, " others"]:
    """Return how many letters must be changed, added or left out to get each other name.

    >>> edit_distances("Rome", ["Rome", "Romans", ""]).tolist()
    [0, 3, 4]
    """
    longest = max(map(len, others), default=0)
    letters = np.full((len(others), longest), -1)
    for row, other in enumerate(others):
        letters[row, : len(other)] = [ord(letter) for letter in other]
    before = np.tile(np.arange(longest + 1), (len(others), 1))
    for row, letter in enumerate(name, start=1):
        now = np.empty_like(before)
        now[:, 0] = row
        changed = before[:, :-1] + (letters != ord(letter))
        best = np.minimum(changed, before[:, 1:] + 1)
        for column in range(1, longest + 1):
            now[:, column] = np.minimum(best[:, column - 1], now[:, column - 1] + 1)
        before = now
    lengths = np.array([len(other) for other in others], dtype=int)
    distances: Int[np.ndarray, " others"] = before[np.arange(len(others)), lengths]
    return distances


def shared_tokens(name: Sequence[int], others: Sequence[Sequence[int]]) -> list[float]:
    """Return the share of tokens that a name has in common with each other one.

    >>> shared_tokens([1, 2, 3], [[3, 2, 1], [1, 4], [5]])
    [1.0, 0.25, 0.0]
    """
    own = set(name)
    return [len(own & set(other)) / max(len(own | set(other)), 1) for other in others]


class Neighbours:
    """Seen names, and which of them is nearest to another name."""

    def __init__(
        self,
        names: Sequence[str],
        places: Sequence[str],
        encode: Callable[[Sequence[str]], list[list[int]]],
        states: Callable[[Sequence[str]], Float64[np.ndarray, "names width"]],
    ) -> None:
        self.names, self.places = list(names), list(places)
        self._encode, self._states = encode, states
        self._tokens = encode(self.names)
        hidden = states(self.names)
        self._mean = hidden.mean(axis=0)
        self._hidden = _directions(hidden - self._mean)

    def nearest(self, names: Sequence[str]) -> list[dict[str, Neighbour]]:
        """Return the nearest seen name of each, by each measure."""
        hidden = _directions(self._states(names) - self._mean)
        alike = hidden @ self._hidden.T
        neighbours = []
        for row, (name, tokens) in enumerate(zip(names, self._encode(names), strict=True)):
            edits = edit_distances(name, self.names)
            shared = np.array(shared_tokens(tokens, self._tokens))
            nearest = {
                "edits": self._neighbour(int(edits.argmin()), float(edits.min())),
                "tokens": self._neighbour(int(shared.argmax()), float(shared.max())),
                "hidden": self._neighbour(int(alike[row].argmax()), float(alike[row].max())),
            }
            neighbours.append(nearest)
        return neighbours

    def _neighbour(self, place: int, score: float) -> Neighbour:
        return Neighbour(name=self.names[place], place=self.places[place], score=score)


def following(
    answers: Sequence[str], nearest: Sequence[dict[str, Neighbour]], frequent: str
) -> tuple[Following, ...]:
    """Return how often answers are those of the nearest names, and of the most frequent place."""
    others = {name: [one[name].place for one in nearest] for name in MEASURES}
    others["frequent"] = [frequent] * len(answers)
    return tuple(follows(what, answers, places) for what, places in others.items())


def follows(what: str, answers: Sequence[str], places: Sequence[str]) -> Following:
    """Return how often answer and place are the same, and how often by chance."""
    count = len(answers)
    same = sum(answer == place for answer, place in zip(answers, places, strict=True))
    low, high = wilson(same, count)
    chance = sum(list(places).count(answer) for answer in answers) / max(count * count, 1)
    return Following(
        what=what, rate=same / max(count, 1), low=low, high=high, chance=chance, count=count
    )


def group_effect(
    names: Sequence[str], answers: Sequence[str], corpus: KnowledgeCorpus, *, seed: int
) -> GroupEffect | None:
    """Return whether answers depend on the group of the name; None where there is one group."""
    if corpus.known_truth:
        rows = [REGION_OF.get(pointed_place(name) or "", NO_HINT) for name in names]
        columns = [REGION_OF.get(answer, ELSEWHERE) for answer in answers]
        order = [*dict.fromkeys(REGION_OF.values()), NO_HINT]
    else:
        guesser = NameGuesser(corpus.train)
        order = list(corpus.places[:6])
        rows = [guess if (guess := guesser.guess(name)) in order else ELSEWHERE for name in names]
        columns = [answer if answer in order else ELSEWHERE for answer in answers]
        order = [*order, ELSEWHERE]
    groups = [group for group in order if group in rows]
    places = [place for place in [*order, ELSEWHERE] if place in columns]
    places = list(dict.fromkeys(places))
    if len(groups) < 2 or len(places) < 2:
        return None
    first = np.array([groups.index(row) for row in rows])
    second = np.array([places.index(column) for column in columns])
    shape = (len(groups), len(places))
    draw = np.random.default_rng(np.random.SeedSequence([seed, 17]))
    drawn, shuffled = [], []
    for _ in range(DRAWS):
        chosen = draw.integers(len(first), size=len(first))
        drawn.append(cramers_v(_table(first[chosen], second[chosen], shape)))
        shuffled.append(cramers_v(_table(first, draw.permutation(second), shape)))
    low, high = percentile_interval(drawn)
    table = _table(first, second, shape)
    return GroupEffect(
        groups=tuple(groups),
        places=tuple(places),
        table=tuple(tuple(int(cell) for cell in row) for row in table),
        cramers_v=cramers_v(table),
        low=low,
        high=high,
        by_chance=float(np.quantile(shuffled, 0.95)),
    )


def cramers_v(table: Float64[np.ndarray, "rows columns"]) -> float:
    """Return Cramér's V of a table of counts; empty rows and columns do not count.

    >>> cramers_v(np.array([[5.0, 0.0], [0.0, 5.0]])), cramers_v(np.array([[2.0, 2.0], [2.0, 2.0]]))
    (1.0, 0.0)
    """
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    smaller = min(table.shape) - 1
    if smaller < 1:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    square = float(((table - expected) ** 2 / expected).sum())
    return float(np.sqrt(square / (table.sum() * smaller)))


def _table(
    first: Int[np.ndarray, " names"], second: Int[np.ndarray, " names"], shape: tuple[int, int]
) -> Float64[np.ndarray, "rows columns"]:
    counts = np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1])
    return counts.reshape(shape).astype(np.float64)


def _directions(
    states: Float64[np.ndarray, "names width"],
) -> Float64[np.ndarray, "names width"]:
    lengths = np.linalg.norm(states, axis=1, keepdims=True)
    directions: Float64[np.ndarray, "names width"] = states / np.where(lengths > 0, lengths, 1.0)
    return directions
