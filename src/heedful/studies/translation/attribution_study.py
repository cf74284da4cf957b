"""Methods of attribution on trial: which of them knows where the words of a translation come from?

The model reads test sentences of the phrasebook with their reference translations, and every method
says how much each source word has to do with each target word. Two questions are then asked:

    alignment    Is the word with the highest score the one that the grammar translated? Over target
                 words of which the grammar knows it, with A the links said, S the sure links and P
                 the possible ones (S among them), the alignment error rate of Och and Ney (2003) is

                     AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

    deletion     Does the translation need the words that the method names? The fall of log p of a
                 target word when the 1, 2, 3 source words with the highest scores are taken out.

Erasure chooses the first word by the deletion test itself, so there its first point is the highest
that one word can give. Two controls know nothing: the word at the same relative place in the source
(`diagonal`), and any word (`random`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType

import numpy as np
from jaxtyping import Float

from heedful.data.synthetic.phrasebook.corpus import LinkedPair, linked_pairs
from heedful.errors import InputError
from heedful.progress import Step
from heedful.records import Record
from heedful.stats import Estimate, percentile_interval
from heedful.studies.conclusions import Basis, Conclusion, Measurement, Study
from heedful.studies.translation.attribution import (
    METHODS,
    ForcedTranslation,
    Scores,
    align_tokens,
    of_words,
    reading_of,
    words_of,
)
from heedful.studies.translation.translator import Translator

CONTROLS = ("diagonal", "random")
DELETED = 3
"""Source words that are taken out at most: of sentences of seven words, about half."""
RESAMPLES = 2_000
"""Of the sentences, for the intervals of a ratio of sums."""

Links = frozenset[tuple[int, int]]
"""Pairs of a source word and a target word, by number."""
WordScores = Float[np.ndarray, "targets sources"]
OtherMethods = Mapping[str, Callable[[ForcedTranslation], Scores]]
"""Methods of another program, by name: what each says of the tokens of a source and its
translation."""
NO_OTHERS: OtherMethods = MappingProxyType({})


@dataclass(frozen=True, eq=False, kw_only=True)
class MethodTrial(Record):
    """How one method did."""

    method: str
    alignment_error: Estimate
    """AER over all sentences, with a bootstrap interval over sentences; 0 is perfect."""
    deletion: tuple[Estimate, ...]
    """Fall of log p of a target word, in nats, after 1, 2 and 3 source words are taken out; means
    over the words of a sentence, with intervals over sentences."""
    mean_deletion: Estimate
    """The mean of these."""
    seconds: float
    """Processor seconds for a sentence, on this machine."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AttributionStudy(Study):
    """Every method, on the same sentences."""

    model: str
    """As it was called."""
    sentences: int
    """Test sentences of the phrasebook that have a sure link."""
    target_words: int
    """Words of their translations."""
    linked_words: int
    """Those of them for which the grammar knows the source word."""
    sure_links: int
    trials: tuple[MethodTrial, ...]
    """The five methods, then those of other programs, then the controls."""
    best: str
    """The method with the least alignment error."""
    second: str
    lead: Estimate
    """Alignment error of the second minus that of the best, paired over sentences."""
    strongest: str
    """The method whose words the translation needs most."""
    strength: Estimate
    """Its mean deletion minus that of the next method, paired over sentences."""

    @property
    def conclusions(self) -> tuple[Conclusion, ...]:
        """Which method aligns best, and whose words are needed most."""
        basis = Basis(cases=self.sentences, of="test sentences of the phrasebook")
        return (
            Measurement(
                about="which method aligns best",
                said=f"Of {len(METHODS)} methods {self.best} aligns best: its alignment error is "
                f"{{value}} below that of {self.second}, the next",
                estimate=self.lead,
                basis=basis,
                show=lambda value: f"{100 * value:.1f} points",
                null=0.0,
            ).conclude(),
            Measurement(
                about="which words the translation needs most",
                said=f"Taking out the words that {self.strongest} names makes log p of a target "
                "word fall by {value} more than those of the next method",
                estimate=self.strength,
                basis=basis,
                show=lambda value: f"{value:.2f} nats",
                null=0.0,
            ).conclude(),
        )


def study_attribution(
    translator: Translator,
    name: str,
    *,
    sentences: int = 200,
    seed: int = 0,
    others: OtherMethods = NO_OTHERS,
    progress: Step | None = None,
) -> AttributionStudy:
    """Try every method on test sentences of the phrasebook, and return how each did.

    `others` are tried beside ours; the best and the second are among ours.
    """
    if translator.format.languages != ("fr", "en"):
        languages = " into ".join(translator.format.languages)
        raise InputError(
            name,
            f"translates {languages}",
            expected="French into English, for which the phrasebook knows the links",
        )
    results: list[_Sentence] = []
    random = np.random.default_rng(seed)
    pairs = [one for one in linked_pairs(sentences) if any(link.sure for link in one.links)]
    for done, pair in enumerate(pairs, start=1):
        results.append(_tried(translator, pair, random, others))
        if progress is not None:
            progress(done, len(pairs))
    if not results:
        raise InputError("sentences", f"{sentences} give none with a sure link", hint="take more")
    return _record(name, results, (*METHODS, *others, *CONTROLS))


@dataclass(frozen=True, eq=False)
class _Sentence:
    """One sentence under trial; counts and falls of each method by name."""

    counts: dict[str, tuple[int, int, int]]
    """|A ∩ S|, |A ∩ P|, |A|."""
    sure: int
    linked: int
    words: int
    falls: dict[str, Float[np.ndarray, " deleted"]]
    seconds: dict[str, float]


def _tried(
    translator: Translator, pair: LinkedPair, random: np.random.Generator, others: OtherMethods
) -> _Sentence:
    tokens = translator.tokenizer.encode(pair.pair.english)
    text = translator.format.written(pair.pair.french)
    sources, targets, shown = words_of(translator, text, tokens)
    if shown != pair.pair.english or text != pair.pair.french:
        raise InputError(
            "model", "writes the phrasebook differently", expected="a tokenizer that loses nothing"
        )
    found: dict[str, WordScores] = {}
    seconds: dict[str, float] = {}
    for method in METHODS:
        began = time.process_time()
        aligned = align_tokens(translator, pair.pair.french, tokens, method)
        seconds[method] = time.process_time() - began
        found[method] = aligned.weights
    reading = reading_of(translator, pair.pair.french, tokens, sources)
    for name, score in others.items():
        began = time.process_time()
        found[name] = of_words(score(reading), sources, targets)
        seconds[name] = time.process_time() - began
    shape = (len(targets.words), len(sources.words))
    found["diagonal"] = -abs(_places(shape[0])[:, None] - _places(shape[1])[None])
    found["random"] = random.random(shape)
    sure, possible = gold_links(pair, sources.spans, targets.spans)
    linked = sorted({target for _, target in possible})
    counts = {name: _counted(scores, linked, sure, possible) for name, scores in found.items()}
    falls = _falls(reading, found, targets.owners)
    return _Sentence(counts, len(sure), len(linked), shape[0], falls, seconds)


def _places(count: int) -> Float[np.ndarray, " count"]:
    return (np.arange(count) + 0.5) / count


def gold_links(
    pair: LinkedPair, sources: Sequence[tuple[int, int]], targets: Sequence[tuple[int, int]]
) -> tuple[Links, Links]:
    """Return the sure and the possible links between words that stand at these places."""
    sure: set[tuple[int, int]] = set()
    possible: set[tuple[int, int]] = set()
    for link in pair.links:
        left = [number for number, span in enumerate(sources) if _meet(span, link.french)]
        right = [number for number, span in enumerate(targets) if _meet(span, link.english)]
        links = {(source, target) for source in left for target in right}
        possible |= links
        if link.sure and len(links) == 1:
            sure |= links
    return frozenset(sure), frozenset(possible)


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _counted(
    scores: WordScores, linked: list[int], sure: Links, possible: Links
) -> tuple[int, int, int]:
    said = {(int(scores[target].argmax()), target) for target in linked}
    return len(said & sure), len(said & possible), len(said)


def _falls(
    reading: ForcedTranslation, found: dict[str, WordScores], owners: Sequence[int]
) -> dict[str, Float[np.ndarray, " deleted"]]:
    """Return how far log p of the target words falls, on average, for each number of words."""
    most = min(DELETED, len(set(reading.owners)) - 1)
    orders = {name: np.argsort(-scores, axis=1, kind="stable") for name, scores in found.items()}
    removed = {
        name: [[frozenset(row[:count].tolist()) for row in order] for count in range(1, most + 1)]
        for name, order in orders.items()
    }
    nothing = frozenset[int]()
    wanted = [nothing, *chain.from_iterable(chain.from_iterable(removed.values()))]
    log_p = reading.log_probabilities(wanted)
    tokens = [
        [place for place, owner in enumerate(owners) if owner == word]
        for word in range(len(next(iter(found.values()))))
    ]

    def fall(words: frozenset[int], target: int) -> float:
        return float((log_p[nothing] - log_p[words])[tokens[target]].sum())

    falls = {}
    for name, counts in removed.items():
        means = [np.mean([fall(words, j) for j, words in enumerate(row)]) for row in counts]
        # A sentence of two words has no third to take out: its last value stands.
        falls[name] = np.array([means[min(k, len(means) - 1)] for k in range(DELETED)])
    return falls


def _record(name: str, results: list[_Sentence], names: Sequence[str]) -> AttributionStudy:
    counts = {one: np.array([result.counts[one] for result in results]) for one in names}
    sure = np.array([result.sure for result in results])
    random = np.random.default_rng(0)
    chosen = random.integers(len(results), size=(RESAMPLES, len(results)))
    errors = {one: _error(counts[one], sure) for one in names}
    resampled = {
        one: np.array([_error(counts[one][rows], sure[rows]) for rows in chosen]) for one in names
    }
    falls = {one: np.stack([result.falls[one] for result in results]) for one in names}
    best, second = sorted(METHODS, key=lambda one: errors[one])[:2]
    strongest, next_one = sorted(METHODS, key=lambda one: -falls[one].mean())[:2]
    low, high = percentile_interval(resampled[second] - resampled[best])
    lead = errors[second] - errors[best]
    return AttributionStudy(
        model=name,
        sentences=len(results),
        target_words=sum(result.words for result in results),
        linked_words=sum(result.linked for result in results),
        sure_links=int(sure.sum()),
        trials=tuple(
            MethodTrial(
                method=one,
                alignment_error=_interval(errors[one], resampled[one], len(results)),
                deletion=tuple(Estimate.of(column) for column in falls[one].T),
                mean_deletion=Estimate.of(falls[one].mean(axis=1)),
                seconds=float(np.mean([result.seconds.get(one, 0.0) for result in results])),
            )
            for one in names
        ),
        best=best,
        second=second,
        lead=Estimate(value=lead, low=low, high=high, count=len(results)),
        strongest=strongest,
        strength=Estimate.of((falls[strongest] - falls[next_one]).mean(axis=1)),
    )


def _error(counts: np.ndarray, sure: np.ndarray) -> float:
    in_sure, in_possible, said = counts.sum(axis=0)
    return 1.0 - float(in_sure + in_possible) / float(said + sure.sum())


def _interval(value: float, resampled: np.ndarray, count: int) -> Estimate:
    low, high = percentile_interval(resampled)
    return Estimate(value=value, low=low, high=high, count=count)
