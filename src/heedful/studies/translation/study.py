"""The study: every arm against the number of pairs and against the clock, and what is unequal.

    scratch              on the pairs alone
    here                 the same decoder, first a language model of both languages
    scratch, same clock  on the pairs alone, for as long as `here` takes in all
    elsewhere            a public checkpoint, fine-tuned

All see the same pairs and are judged on the same sentences. Every training is a run in the
output folder: a study that was interrupted goes on, and finished arms are not trained again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from heedful.machine import examine
from heedful.model import parameter_count
from heedful.progress import Tell
from heedful.studies.translation.alignment import Alignment, align
from heedful.studies.translation.arms import Workshop, has_text
from heedful.studies.translation.baselines import BASELINES, translate_baseline
from heedful.studies.translation.breakdown import by_length, by_unseen, extremes
from heedful.studies.translation.conclusions import unequal, verdicts
from heedful.studies.translation.corpora import StudyCorpus, TestSet, read_study_corpus
from heedful.studies.translation.elsewhere import Visitor
from heedful.studies.translation.meter import StudyProgress, training_name
from heedful.studies.translation.model_card import write_card
from heedful.studies.translation.records import (
    ELSEWHERE,
    HERE,
    LABELS,
    LONGER,
    SCRATCH,
    ArmResult,
    BaselineResult,
    Comparison,
    TranslationStudy,
)
from heedful.studies.translation.runs import curve_of, samples_of, shifted, translations_of
from heedful.studies.translation.scoring import paired_gain, scores, slice_of
from heedful.studies.translation.settings import StudySettings
from heedful.studies.translation.translator import Translator
from heedful.training import FinishedRun

GET_A_MODEL = (
    "There is no arm pretrained elsewhere in this study. For one, fetch a public checkpoint with: "
    "heed model get smollm2; then give: heed study translation --model smollm2. Any folder with "
    "safetensors of the GPT-2, Llama or Qwen family will do too."
)
CANDIDATES = 24
"""Sentences among which the one whose alignment is shown is chosen."""


@dataclass(frozen=True, eq=False)
class _Entry:
    """A trained arm and its translations."""

    arm: str
    pairs: int
    run: FinishedRun
    before: FinishedRun | None
    """The pretraining that came first."""
    parameters: int
    changed: int
    translations: dict[str, tuple[str, ...]]
    speed: float

    @property
    def minutes(self) -> float:
        return self.run.seconds / 60 + self.minutes_before

    @property
    def minutes_before(self) -> float:
        return 0.0 if self.before is None else self.before.seconds / 60

    @property
    def on_test(self) -> tuple[str, ...]:
        return self.translations["test"]


def run_study(
    settings: StudySettings,
    output: Path,
    *,
    tell: Tell | None = None,
    done: Callable[[ArmResult], None] | None = None,
    command: str = "heed study translation",
) -> TranslationStudy:
    """Run the study in a folder, or go on with it.

    `tell` gets what is going on and the share of the work that is behind; `done` gets each arm.
    """
    started = time.perf_counter()
    progress = StudyProgress(settings, tell)
    progress.say("reading the corpus")
    corpus = read_study_corpus(settings)
    workshop = Workshop(settings, corpus, output, progress)
    visitor = Visitor(settings.elsewhere, workshop) if settings.elsewhere.model else None
    if visitor is not None:
        visitor.check()
    entries: dict[tuple[str, int], _Entry] = {}
    results: list[ArmResult] = []
    comparisons: list[Comparison] = []
    for entry in _entries(workshop, visitor):
        entries[entry.arm, entry.pairs] = entry
        comparisons += _compared(entry, entries, corpus.test)
        result = _result(entry, corpus, comparisons)
        results.append(result)
        _write_card(entry, result, corpus)
        if done is not None:
            done(result)
    progress.finish("judging baselines and examples")
    largest = _largest(entries)
    judged = max(largest, key=lambda arm: scores_key(largest[arm], results))
    best, worst = extremes(
        corpus.test, {arm: entry.on_test for arm, entry in largest.items()}, judged
    )
    machine = examine()
    return TranslationStudy(
        corpus=corpus.name,
        languages=corpus.train.languages,
        fingerprint=corpus.first(settings.sizes[-1]).fingerprint,
        arms=tuple(results),
        comparisons=tuple(comparisons),
        baselines=_baselines(settings, corpus),
        best=best,
        worst=worst,
        judged=judged,
        alignment=_alignment(largest[judged], corpus.test),
        unequal=unequal(settings, corpus, results, workshop.tokenizer.size, visitor),
        verdicts=verdicts(settings, results, comparisons),
        settings=settings.model_dump(mode="json"),
        command=command,
        minutes=(time.perf_counter() - started) / 60,
        machine=f"{machine.cpu}, {machine.cores} cores",
        elsewhere="" if visitor is not None else GET_A_MODEL,
    )


def scores_key(entry: _Entry, results: Sequence[ArmResult]) -> tuple[int, float]:
    """Order arms: those that translated the whole test first, then by BLEU."""
    (result,) = [r for r in results if (r.arm, r.pairs) == (entry.arm, entry.pairs)]
    return result.sentences, result.bleu


def _entries(workshop: Workshop, visitor: Visitor | None) -> Iterator[_Entry]:
    """Train every arm at every size, cheapest first."""
    settings, corpus = workshop.settings, workshop.corpus
    tests = (corpus.test, *corpus.others)
    size = parameter_count(settings.shape.config(workshop.tokenizer.size))

    def entry(arm: str, pairs: int, run: FinishedRun, before: FinishedRun | None) -> _Entry:
        workshop.progress.say(f"{training_name(arm, pairs)}: translating the test")
        made, speed = translations_of(run.folder, tests)
        return _Entry(arm, pairs, run, before, size, size, made, speed)

    scratch: dict[int, FinishedRun] = {}
    for pairs in settings.sizes:
        scratch[pairs] = workshop.on_pairs(SCRATCH, pairs)
        yield entry(SCRATCH, pairs, scratch[pairs], None)
    if has_text(corpus):
        before = workshop.language_model()
        for pairs in settings.sizes:
            tuned = workshop.on_pairs(HERE, pairs, before=before)
            yield entry(HERE, pairs, tuned, before)
            if pairs in settings.clocked:
                alone = scratch[pairs]
                spent = before.processor_seconds + tuned.processor_seconds
                steps = max(round(spent / alone.processor_seconds * alone.result.step), 1)
                yield entry(LONGER, pairs, workshop.on_pairs(LONGER, pairs, steps=steps), None)
    if visitor is not None:
        changed = visitor.trained()
        few = tuple(test.first(settings.elsewhere.sentences) for test in tests)
        for pairs in settings.elsewhere.sizes or settings.sizes:
            tuned = visitor.on_pairs(pairs)
            workshop.progress.say(f"{training_name(ELSEWHERE, pairs)}: translating the test")
            made, speed = translations_of(tuned.folder, few)
            yield _Entry(ELSEWHERE, pairs, tuned, None, visitor.parameters, changed, made, speed)


def _compared(
    entry: _Entry, entries: dict[tuple[str, int], _Entry], test: TestSet
) -> list[Comparison]:
    """Test an arm against scratch, and `here` against scratch with as much time."""
    against = {HERE: (SCRATCH,), LONGER: (SCRATCH, HERE), ELSEWHERE: (SCRATCH,)}
    found = []
    for other in against.get(entry.arm, ()):
        rival = entries.get((other, entry.pairs))
        if rival is None:
            continue
        one, two = (rival, entry) if other == HERE else (entry, rival)
        count = min(len(one.on_test), len(two.on_test))
        gain, p_value = paired_gain(
            one.on_test[:count], two.on_test[:count], test.references[:count]
        )
        found.append(
            Comparison(
                pairs=entry.pairs,
                arm=one.arm,
                against=two.arm,
                gain=gain,
                p_value=p_value,
                sentences=count,
                minutes=one.minutes,
                minutes_against=two.minutes,
            )
        )
    return found


def _result(entry: _Entry, corpus: StudyCorpus, comparisons: Sequence[Comparison]) -> ArmResult:
    count = len(entry.on_test)
    found = scores(entry.on_test, corpus.test.references[:count])
    with_scratch = [
        c for c in comparisons if (c.pairs, c.arm, c.against) == (entry.pairs, entry.arm, SCRATCH)
    ]
    result = entry.run.result
    others = [test for test in corpus.others if test.name in entry.translations]
    return ArmResult(
        arm=entry.arm,
        label=LABELS[entry.arm],
        pairs=entry.pairs,
        bleu=found.bleu,
        bleu_low=found.bleu_low,
        bleu_high=found.bleu_high,
        chrf=found.chrf,
        chrf_low=found.chrf_low,
        chrf_high=found.chrf_high,
        exact=found.exact,
        sentences=count,
        minutes=entry.minutes,
        minutes_before=entry.minutes_before,
        signature=found.signature,
        chrf_signature=found.chrf_signature,
        gain=with_scratch[0].gain if with_scratch else None,
        p_value=with_scratch[0].p_value if with_scratch else None,
        steps=result.step,
        epochs=result.epoch,
        tokens=result.tokens,
        parameters=entry.parameters,
        trained=entry.changed,
        computed_as=result.computed_as,
        by_length=by_length(corpus.test, entry.on_test),
        by_unseen=by_unseen(corpus.test, entry.on_test, corpus.first(entry.pairs)),
        splits=tuple(
            slice_of(
                test.name,
                entry.translations[test.name],
                test.references[: len(entry.translations[test.name])],
            )
            for test in others
        ),
        curve=shifted(curve_of(entry.run), entry.minutes_before),
        samples=samples_of(entry.run.folder, corpus.development),
        sentences_per_second=entry.speed,
        run=str(entry.run.folder),
    )


def _baselines(settings: StudySettings, corpus: StudyCorpus) -> tuple[BaselineResult, ...]:
    made = []
    for pairs in settings.sizes:
        used = corpus.first(pairs)
        for baseline in BASELINES:
            found = scores(
                translate_baseline(baseline, used, corpus.test.sources), corpus.test.references
            )
            made.append(
                BaselineResult(
                    baseline=baseline,
                    pairs=pairs,
                    bleu=found.bleu,
                    bleu_low=found.bleu_low,
                    bleu_high=found.bleu_high,
                    chrf=found.chrf,
                    exact=found.exact,
                    signature=found.signature,
                )
            )
    return tuple(made)


def _largest(entries: dict[tuple[str, int], _Entry]) -> dict[str, _Entry]:
    """Return each arm at the largest number of pairs that it has."""
    found: dict[str, _Entry] = {}
    for (arm, pairs), entry in entries.items():
        if arm not in found or found[arm].pairs < pairs:
            found[arm] = entry
    return found


def _alignment(entry: _Entry, test: TestSet) -> Alignment | None:
    """Align one exact translation: the one of which the order of words changes most."""
    chosen = [
        source
        for source, known, text in zip(test.sources, test.references, entry.on_test, strict=False)
        if text in known and 5 <= len(source.split()) <= 10
    ][:CANDIDATES]
    if not chosen:
        return None
    translator = Translator.open(entry.run.folder)
    found = [align(translator, one) for one in translator.translate(chosen)]
    return max(found, key=lambda one: _crossings(one.links))


def _crossings(links: Sequence[int]) -> int:
    """Return how many neighbouring words are read in the other order."""
    return sum(after < before for before, after in pairwise(links))


def _write_card(entry: _Entry, result: ArmResult, corpus: StudyCorpus) -> None:
    low, high = result.bleu_low, result.bleu_high
    write_card(
        entry.run.folder,
        figures={
            f"BLEU on {result.sentences} sentences of {corpus.name}": f"{result.bleu:.1f} "
            f"(95 % interval {low:.1f} to {high:.1f})",
            "signature": result.signature,
            "chrF": f"{result.chrf:.1f}",
            "exact matches": f"{result.exact:.0%}",
            "minutes of training in all": f"{result.minutes:.2f}",
        },
        notes=corpus.notes,
        title=f"{corpus.name}: {entry.arm}, {entry.pairs:,} pairs",
    )
