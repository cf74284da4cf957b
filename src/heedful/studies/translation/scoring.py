"""How good translations are: sacreBLEU with its signature, intervals and paired tests.

Every source may have several references; sacreBLEU takes as many as each has. Scores are broken
down by the length of sentences and by words that training did not hold. What no network is
needed for is scored too:

- `copy`: the source itself. Names, numbers and cognates are worth something.
- `dictionary`: IBM model 1. The probability t(e | f) that word f is written as word e is fitted
  to the pairs by expectation and maximisation; a source is then translated word for word.
- `nearest`: the target of the training source that shares the most, the rarest words most.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest, Result
from scipy.sparse import csr_array

from heedful.data.corpus import Pairs
from heedful.errors import InputError
from heedful.stats import Estimate, percentile_interval
from heedful.studies.translation.corpus import TestSet
from heedful.studies.translation.results import Example, Scores, Slice

RESAMPLES = 1000
"""Of every bootstrap."""

KEPT_REFERENCES, KEPT_SENTENCES = 2**12, 2**15
"""Sentences whose n-grams stay counted: some kilobytes each, and a tenth of one."""

References = Sequence[Sequence[str]]
"""For each sentence its references."""


class CountedBLEU(BLEU):
    """BLEU that counts the n-grams of a translation once, however many tables it stands in.

    A test is scored as a whole, by length, by unseen words, and against every other arm. The
    counts are sacreBLEU's own, and whole numbers: no score changes.
    """

    def __init__(self) -> None:
        super().__init__(force=True)

    def _extract_corpus_statistics(self, hypotheses: Sequence[str], references: Any) -> Any:
        known = [
            tuple(one for one in several if one is not None)
            for several in zip(*references, strict=True)
        ]
        numbers = {len(several) for several in known}
        self.num_refs = numbers.pop() if len(numbers) == 1 else -1  # for the signature
        return [list(_counts(*both)) for both in zip(hypotheses, known, strict=True)]


_BLEU = BLEU(force=True)


@lru_cache(maxsize=KEPT_SENTENCES)
def _counts(translation: str, references: tuple[str, ...]) -> tuple[int, ...]:
    """Return lengths, and n-grams in common with the references."""
    written = _BLEU._preprocess_segment(translation)
    return tuple(_BLEU._compute_segment_statistics(written, _reference_counts(references)))


@lru_cache(maxsize=KEPT_REFERENCES)
def _reference_counts(references: tuple[str, ...]) -> dict[str, Any]:
    (counts,) = _BLEU._cache_references([[one] for one in references])
    return dict(counts)


class PlainCHRF(CHRF):
    """chrF whose scores are Python's floats.

    sacrebleu mixes them with NumPy's where some resample has a score of exactly 0, and then its
    own bootstrap cannot take their mean.
    """

    def _compute_score_from_stats(self, stats: Any) -> Any:
        score = super()._compute_score_from_stats(stats)
        score.score = float(score.score)
        return score


def scores(translations: Sequence[str], references: References) -> Scores:
    """Score translations of as many sources.

    >>> found = scores(["a cat sat here"] * 5, [["a cat sat here", "here sat a cat"]] * 5)
    >>> round(found.bleu), found.exact
    (100, 1.0)
    """
    bleu, chrf = CountedBLEU(), PlainCHRF()
    of_chrf = chrf.corpus_score(
        translations, _streams(translations, references), n_bootstrap=RESAMPLES
    )
    low, high = _interval(of_chrf)
    return Scores(
        **_bleu(bleu, translations, references),
        chrf=float(of_chrf.score),
        chrf_low=low,
        chrf_high=high,
        signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )


def bleu_of(translations: Sequence[str], references: References) -> float:
    """Return BLEU alone, for a look during training."""
    return float(CountedBLEU().corpus_score(translations, _streams(translations, references)).score)


def chrf_of(translations: Sequence[str], references: References) -> float:
    """Return chrF alone."""
    return float(CHRF().corpus_score(translations, _streams(translations, references)).score)


def sentence_chrf(translation: str, references: Sequence[str]) -> float:
    """Return the chrF of one sentence: fair to short ones, where BLEU is not."""
    return float(CHRF().sentence_score(translation, list(references)).score)


def exact_matches(translations: Sequence[str], references: References) -> float:
    """Return the share of translations that are one of their references."""
    hits = sum(text in known for text, known in zip(translations, references, strict=True))
    return hits / len(translations)


def slice_of(name: str, translations: Sequence[str], references: References) -> Slice:
    """Score a part of the sentences."""
    return Slice(name=name, **_bleu(CountedBLEU(), translations, references))


class Gain(NamedTuple):
    """By how much BLEU is above a baseline's."""

    value: float
    low: float
    """Lower end of the 95 % interval."""
    high: float
    p_value: float
    """How often a difference as large would be seen if both were equally good; two-sided."""


def paired_gain(
    translations: Sequence[str], baseline: Sequence[str], references: References
) -> Gain:
    """Return by how much BLEU is above a baseline's, with a paired bootstrap.

    Both are resampled on the same sentences. What varies is the sentences: a bootstrap of one
    training says nothing about another seed.
    """
    streams = _streams(translations, references)
    _check(baseline, references)
    if list(translations) == list(baseline):  # sacreBLEU's count of chance begins above 0
        return Gain(0.0, 0.0, 0.0, 1.0)
    _, results = PairedTest(
        [("Baseline", list(baseline)), ("arm", list(translations))],
        {"BLEU": CountedBLEU()},
        streams,
        test_type="bs",
        n_samples=RESAMPLES,
    )()
    before, after = results["BLEU"]
    assert isinstance(before, Result)
    assert isinstance(after, Result)
    assert after.p_value is not None
    drawn = np.random.default_rng(0).integers(
        len(translations), size=(RESAMPLES, len(translations))
    )
    gains = _resampled(translations, streams, drawn) - _resampled(baseline, streams, drawn)
    return Gain(
        float(after.score - before.score), *percentile_interval(gains), float(after.p_value)
    )


def gain_over_seeds(gains: Sequence[Gain]) -> Gain:
    """Return the mean gain of several trainings, with an interval for sentences and for seeds.

    The ends are those of the mean bootstrap, moved apart by Student's interval over the seeds: the
    root of the sum of squares, as for independent errors. p is the largest, which is cautious.

    >>> one = Gain(2.0, 1.0, 3.0, 0.002)
    >>> gain_over_seeds([one])
    Gain(value=2.0, low=1.0, high=3.0, p_value=0.002)
    >>> [round(end, 2) for end in gain_over_seeds([one, Gain(3.0, 2.0, 4.0, 0.01)])[:3]]
    [2.5, -3.93, 8.93]
    """
    value, low, high, _ = np.mean(gains, axis=0).tolist()
    p_value = max(one.p_value for one in gains)
    if len(gains) == 1:
        return Gain(value, low, high, p_value)
    over = Estimate.of([one.value for one in gains]).error
    return Gain(
        value,
        value - float(np.hypot(value - low, over)),
        value + float(np.hypot(high - value, over)),
        p_value,
    )


def _resampled(
    translations: Sequence[str], streams: Any, drawn: Int[np.ndarray, "draws n"]
) -> Float[np.ndarray, " draws"]:
    """Return BLEU in each resample: its statistics are sums over sentences."""
    bleu = CountedBLEU()
    statistics = np.array(bleu._extract_corpus_statistics(list(translations), streams))
    return np.array(
        [
            bleu._compute_score_from_stats(statistics[one].sum(axis=0).tolist()).score
            for one in drawn
        ]
    )


def _bleu(bleu: BLEU, translations: Sequence[str], references: References) -> dict[str, Any]:
    """Return the fields of `Scored`."""
    streams = _streams(translations, references)
    score = bleu.corpus_score(translations, streams, n_bootstrap=RESAMPLES)
    low, high = _interval(score)
    return {
        "sentences": len(translations),
        "bleu": float(score.score),
        "bleu_low": low,
        "bleu_high": high,
        "exact": exact_matches(translations, references),
    }


def _interval(score: Any) -> tuple[float, float]:
    """Return the 95 % interval of sacreBLEU's bootstrap, within the scale."""
    return max(float(score._mean - score._ci), 0.0), min(float(score._mean + score._ci), 100.0)


def _streams(translations: Sequence[str], references: References) -> Any:
    """Turn the references of each sentence into sacreBLEU's streams; missing ones are None.

    sacreBLEU's own annotations do not know of None, which it documents.
    """
    _check(translations, references)
    most = max(map(len, references))
    return [
        [known[place] if place < len(known) else None for known in references]
        for place in range(most)
    ]


def _check(translations: Sequence[str], references: References) -> None:
    if not translations or len(translations) != len(references):
        raise InputError(
            "translations",
            f"are {len(translations)} for {len(references)} sources",
            expected="one for each, and at least one",
        )
    if not all(references):
        raise InputError("references", "are none for a source", expected="at least one for each")


LENGTHS = ((5, "up to 5 words"), (8, "6 to 8 words"), (11, "9 to 11 words"))
LONGER_YET = "12 words and more"
SHOWN = 20
"""Examples of the best and of the worst."""


def by_length(test: TestSet, translations: Sequence[str]) -> tuple[Slice, ...]:
    """Score sentences by the number of words in the source; marks are no words."""

    def kind(source: str) -> str:
        count = sum(word[0].isalnum() for word in words_of(source))
        return next((name for most, name in LENGTHS if count <= most), LONGER_YET)

    return _slices(test, translations, [name for _, name in LENGTHS] + [LONGER_YET], kind)


def by_unseen(test: TestSet, translations: Sequence[str], pairs: Pairs) -> tuple[Slice, ...]:
    """Score sentences by the number of their words that no training source holds."""
    known = {word for source in pairs.sources for word in words_of(source)}
    names = ("every word seen", "one word unseen", "more words unseen")

    def kind(source: str) -> str:
        return names[min(sum(word not in known for word in set(words_of(source))), 2)]

    return _slices(test, translations, names, kind)


def extremes(
    test: TestSet, translations: dict[str, Sequence[str]], judged: str, count: int = SHOWN
) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """Return the best and the worst translations of one arm, with those of the others.

    Among perfect ones the longer is the better; an arm that translated fewer sentences is left
    out where it has none.
    """
    examples = [
        Example(
            source=source,
            references=known,
            translations={
                arm: texts[place] for arm, texts in translations.items() if place < len(texts)
            },
            chrf=sentence_chrf(translations[judged][place], known),
        )
        for place, (source, known) in enumerate(zip(test.sources, test.references, strict=True))
        if place < len(translations[judged])
    ]
    order = sorted(examples, key=lambda example: (-example.chrf, -len(example.source)))
    return tuple(order[:count]), tuple(reversed(order[-count:]))


def _slices(
    test: TestSet, translations: Sequence[str], names: Sequence[str], kind: Callable[[str], str]
) -> tuple[Slice, ...]:
    places: dict[str, list[int]] = {name: [] for name in names}
    for place, source in enumerate(test.sources[: len(translations)]):
        places[kind(source)].append(place)
    return tuple(
        slice_of(
            name,
            [translations[place] for place in chosen],
            [test.references[place] for place in chosen],
        )
        for name, chosen in places.items()
        if chosen
    )


Baseline = Literal["copy", "dictionary", "nearest"]
BASELINES: tuple[Baseline, ...] = ("copy", "dictionary", "nearest")
ROUNDS = 6
"""Of expectation and maximisation; more changes little."""
NOTHING = 0
"""The id of the empty word, which explains target words that no source word brings."""

_WORD = re.compile(r"\w+['’]?|[^\w\s]")
_SPACE_BEFORE = re.compile(r"\s+([.,;:!?…])")


def words_of(text: str) -> list[str]:
    """Return the words and marks of a text in small letters; l' is a word of its own.

    >>> words_of("L'hôtel est là !")
    ["l'", 'hôtel', 'est', 'là', '!']
    """
    return _WORD.findall(text.lower())


def translate_baseline(baseline: Baseline, pairs: Pairs, sources: Sequence[str]) -> tuple[str, ...]:
    """Translate sources in one of the three ways."""
    if baseline == "copy":
        return tuple(sources)
    if baseline == "nearest":
        return nearest(pairs, sources)
    if baseline == "dictionary":
        return word_for_word(dictionary(pairs), sources)
    raise InputError("baseline", f"is {baseline!r}", expected=f"one of {', '.join(BASELINES)}")


def dictionary(pairs: Pairs, rounds: int = ROUNDS) -> dict[str, str]:
    """Learn for each source word its likeliest target word; "" where it is likeliest to vanish.

    >>> pairs = Pairs(name="x", sources=("le chat", "le chien"), targets=("the cat", "the dog"))
    >>> dictionary(pairs)["chien"]
    'dog'
    """
    source_ids: dict[str, int] = {"": NOTHING}
    target_ids: dict[str, int] = {}
    f, e, place = _links(pairs, source_ids, target_ids)
    cells, of_link = np.unique(f * len(target_ids) + e, return_inverse=True)
    cell_source, cell_target = np.divmod(cells, len(target_ids))
    t: Float[np.ndarray, " cells"] = np.full(len(cells), 1.0)
    for _ in range(rounds):
        # How much of each target word each source word of its sentence explains.
        share = t[of_link]
        share /= np.bincount(place, share)[place]
        counts = np.bincount(of_link, share, minlength=len(cells))
        t = counts / np.bincount(cell_source, counts)[cell_source]
    best: dict[int, tuple[float, int]] = {}
    for source, target, value in zip(
        cell_source.tolist(), cell_target.tolist(), t.tolist(), strict=True
    ):
        if source not in best or value > best[source][0]:
            best[source] = (value, target)
    known = list(target_ids)
    return {word: known[best[number][1]] for word, number in source_ids.items() if number in best}


def word_for_word(lexicon: dict[str, str], sources: Sequence[str]) -> tuple[str, ...]:
    """Write each word of each source as the lexicon has it; unknown words stay as they are."""
    made = []
    for source in sources:
        text = " ".join(lexicon.get(word, word) for word in words_of(source))
        text = _SPACE_BEFORE.sub(r"\1", text)
        made.append(text[:1].upper() + text[1:])
    return tuple(made)


def nearest(pairs: Pairs, sources: Sequence[str]) -> tuple[str, ...]:
    """Return the target of the training source that is most like each source (tf-idf, cosine)."""
    ids: dict[str, int] = {}
    train = [[ids.setdefault(word, len(ids)) for word in words_of(text)] for text in pairs.sources]
    asked = [[ids[word] for word in words_of(text) if word in ids] for text in sources]
    rarity = np.log(len(train) / _documents(train, len(ids)))
    similarity = (_unit_rows(asked, rarity) @ _unit_rows(train, rarity).T).toarray()
    return tuple(pairs.targets[place] for place in similarity.argmax(axis=1).tolist())


def _links(
    pairs: Pairs, source_ids: dict[str, int], target_ids: dict[str, int]
) -> tuple[Int[np.ndarray, " links"], Int[np.ndarray, " links"], Int[np.ndarray, " links"]]:
    """Return every (source word, target word) of every pair, and which target word it explains."""
    f, e, place = [], [], []
    number = 0
    for source, target in zip(pairs.sources, pairs.targets, strict=True):
        sources = [NOTHING, *(source_ids.setdefault(w, len(source_ids)) for w in words_of(source))]
        targets = [target_ids.setdefault(w, len(target_ids)) for w in words_of(target)]
        f.append(np.tile(sources, len(targets)))
        e.append(np.repeat(targets, len(sources)))
        place.append(np.repeat(np.arange(number, number + len(targets)), len(sources)))
        number += len(targets)
    found = (np.concatenate(each).astype(np.int64) for each in (f, e, place))
    return next(found), next(found), next(found)


def _documents(rows: Sequence[Sequence[int]], count: int) -> Int[np.ndarray, " words"]:
    return np.bincount([word for row in rows for word in set(row)], minlength=count)


def _unit_rows(rows: Sequence[Sequence[int]], rarity: Float[np.ndarray, " words"]) -> csr_array:
    flat = np.fromiter((word for row in rows for word in row), np.int64)
    ends = np.cumsum([0, *map(len, rows)])
    matrix = csr_array((rarity[flat], flat, ends), shape=(len(rows), len(rarity)))
    matrix.sum_duplicates()
    lengths = np.sqrt((matrix * matrix).sum(axis=1))
    lengths[lengths == 0] = 1.0
    return csr_array(matrix / lengths[:, None])
