"""How good translations are: sacreBLEU with its signature, intervals and paired tests.

Every source may have several references; sacreBLEU takes as many as each has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest, Result

from heedful.errors import InputError
from heedful.studies.translation.records import Scores, Slice

RESAMPLES = 1000
"""Of every bootstrap."""

References = Sequence[Sequence[str]]
"""For each sentence its references."""


def scores(translations: Sequence[str], references: References) -> Scores:
    """Score translations of as many sources.

    >>> found = scores(["a cat sat here"] * 5, [["a cat sat here", "here sat a cat"]] * 5)
    >>> round(found.bleu), found.exact
    (100, 1.0)
    """
    streams = _streams(translations, references)
    bleu, chrf = BLEU(force=True), CHRF()
    of_bleu = bleu.corpus_score(translations, streams, n_bootstrap=RESAMPLES)
    of_chrf = chrf.corpus_score(translations, streams, n_bootstrap=RESAMPLES)
    return Scores(
        sentences=len(translations),
        bleu=float(of_bleu.score),
        bleu_low=max(float(of_bleu._mean - of_bleu._ci), 0.0),
        bleu_high=min(float(of_bleu._mean + of_bleu._ci), 100.0),
        chrf=float(of_chrf.score),
        chrf_low=max(float(of_chrf._mean - of_chrf._ci), 0.0),
        chrf_high=min(float(of_chrf._mean + of_chrf._ci), 100.0),
        exact=exact_matches(translations, references),
        signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )


def bleu_of(translations: Sequence[str], references: References) -> float:
    """Return BLEU alone, for a look during training."""
    return float(
        BLEU(force=True).corpus_score(translations, _streams(translations, references)).score
    )


def sentence_chrf(translation: str, references: Sequence[str]) -> float:
    """Return the chrF of one sentence: fair to short ones, where BLEU is not."""
    return float(CHRF().sentence_score(translation, list(references)).score)


def exact_matches(translations: Sequence[str], references: References) -> float:
    """Return the share of translations that are one of their references."""
    hits = sum(text in known for text, known in zip(translations, references, strict=True))
    return hits / len(translations)


def slice_of(name: str, translations: Sequence[str], references: References) -> Slice:
    """Score a part of the sentences."""
    streams = _streams(translations, references)
    found = BLEU(force=True).corpus_score(translations, streams, n_bootstrap=RESAMPLES)
    return Slice(
        name=name,
        sentences=len(translations),
        bleu=float(found.score),
        bleu_low=max(float(found._mean - found._ci), 0.0),
        bleu_high=min(float(found._mean + found._ci), 100.0),
        exact=exact_matches(translations, references),
    )


def paired_gain(
    translations: Sequence[str], baseline: Sequence[str], references: References
) -> tuple[float, float]:
    """Return by how much BLEU is above a baseline's, and p of a paired bootstrap test.

    Both are resampled on the same sentences; p is two-sided: how often a difference as large
    would be seen if the two were equally good.
    """
    streams = _streams(translations, references)
    _check(baseline, references)
    if list(translations) == list(baseline):  # sacreBLEU's count of chance begins above 0
        return 0.0, 1.0
    _, results = PairedTest(
        [("Baseline", list(baseline)), ("arm", list(translations))],
        {"BLEU": BLEU(force=True)},
        streams,
        test_type="bs",
        n_samples=RESAMPLES,
    )()
    before, after = results["BLEU"]
    assert isinstance(before, Result)
    assert isinstance(after, Result)
    assert after.p_value is not None
    return float(after.score - before.score), float(after.p_value)


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
