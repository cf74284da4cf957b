"""The study: every arm against the number of pairs and against work, and what is unequal.

    scratch              on the pairs alone
    here                 the same decoder, first a language model of both languages
    scratch, same work   on the pairs alone, with as many operations as `here` takes in all
    elsewhere            a public checkpoint, fine-tuned
    elsewhere, all       the same, all of its weights tuned where LoRA is the rule
    elsewhere, prompted  the same, not trained: examples stand before each source

All see the same pairs and are judged on the same sentences. Every training is a run in the
output folder: a study that was interrupted goes on, and finished arms are not trained again. The
arms that are trained here are trained side by side before all else, if there are cores for it.
Where the settings ask for several seeds, each of them draws other pairs; arms are compared draw by
draw, on the same sentences.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from heedful.data.splits import one_word_away
from heedful.errors import ConfigError
from heedful.files import SHIPPED
from heedful.machine import examine
from heedful.model import parameter_count
from heedful.progress import Tell
from heedful.studies.conclusions import work_words
from heedful.studies.parallel import usable_processes
from heedful.studies.translation.arms import (
    PublicModel,
    StudyProgress,
    Trainer,
    Translated,
    chosen_step,
    curve_of,
    public_arms,
    samples_of,
    training_name,
)
from heedful.studies.translation.attribution import Alignment, align
from heedful.studies.translation.corpus import StudyCorpus, TestSet, read_study_corpus
from heedful.studies.translation.model_card import write_card
from heedful.studies.translation.recipe import StudySettings
from heedful.studies.translation.results import (
    ELSEWHERE,
    FULL,
    HERE,
    LABELS,
    LONGER,
    PROMPTED,
    SCRATCH,
    ArmResult,
    BaselineResult,
    Comparison,
    Example,
    PromptedResult,
    SeedScore,
    TranslationStudy,
)
from heedful.studies.translation.scoring import (
    BASELINES,
    bleu_of,
    by_length,
    by_unseen,
    chrf_of,
    extremes,
    gain_over_seeds,
    paired_gain,
    scores,
    sentence_chrf,
    slice_of,
    translate_baseline,
)
from heedful.studies.translation.trainings import train_side_by_side
from heedful.studies.translation.translator import Translator
from heedful.training import FinishedRun

GET_A_MODEL = (
    "There is no arm pretrained elsewhere in this study. For one, fetch a public checkpoint with: "
    "heed model get smollm2; then give: heed study translation --model smollm2. Any folder with "
    "safetensors of the GPT-2, Llama or Qwen family will do too."
)
SUPPLIED = "fr-en"
"""The translator that comes with the package."""
EVERYDAY = (
    ("Où est la gare ?", "Where is the station?"),
    ("Je ne comprends pas ce que vous dites.", "I don't understand what you're saying."),
    ("Il fait trop chaud pour travailler.", "It's too hot to work."),
    ("Ma sœur habite à côté de l'école.", "My sister lives next to the school."),
    ("As-tu déjà mangé ?", "Have you eaten yet?"),
    ("Nous avons raté le dernier train.", "We missed the last train."),
    ("Elle voudrait apprendre le piano.", "She would like to learn the piano."),
    ("Ce livre est plus intéressant que l'autre.", "This book is more interesting than the other."),
)
"""Sentences that a visitor might type, with a translation of ours."""
BEAM = 5
CANDIDATES = 24
"""Sentences among which the one whose alignment is shown is chosen."""


@dataclass(frozen=True, eq=False)
class _Entry:
    """A trained arm and its translations."""

    arm: str
    pairs: int
    draw: int
    """Which draw of the pairs: what is added to the seed."""
    run: FinishedRun
    before: FinishedRun | None
    """The pretraining that came first."""
    translated: Translated
    """The tests, as it translates them."""
    parameters: int
    trained: int
    """Parameters that were changed on the pairs."""

    settings: dict[str, Any]
    """All that decided it, beside the corpus."""
    work_share: float = 1.0
    """Of the operations of a whole training step: fewer with LoRA."""

    @property
    def work(self) -> float:
        return self.work_on_pairs + self.work_before

    @property
    def work_on_pairs(self) -> float:
        return self.work_share * self.run.work

    @property
    def work_before(self) -> float:
        return 0.0 if self.before is None else self.before.work

    @property
    def minutes(self) -> float:
        return self.run.seconds / 60 + self.minutes_before

    @property
    def minutes_before(self) -> float:
        return 0.0 if self.before is None else self.before.seconds / 60

    @property
    def on_test(self) -> tuple[str, ...]:
        return self.translated.texts["test"]


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
    trainer = Trainer(settings, corpus, output, progress)
    public = PublicModel(trainer) if settings.elsewhere.model else None
    if public is not None:
        public.format.marks(public.tokenizer)  # what cannot be used is refused before training
        if settings.elsewhere.same_work and not corpus.has_text:
            raise ConfigError(
                "elsewhere.same_work",
                "needs the arm that is pretrained here, whose work it takes",
                hint="give --monolingual, or set it to false",
            )
    train_side_by_side(trainer, public, settings.processes or usable_processes(settings.lanes))
    entries: dict[tuple[str, int, int], _Entry] = {}
    results: list[ArmResult] = []
    comparisons: list[Comparison] = []
    for group in _groups(trainer, public):
        entries |= {(one.arm, one.pairs, one.draw): one for one in group}
        comparisons += _compared(group, entries, corpus.test)
        result = _result(group, corpus, comparisons)
        results.append(result)
        _write_card(group[0], result, corpus)
        if done is not None:
            done(result)
    prompted = None
    if public is not None and settings.elsewhere.examples:
        prompted, compared = _prompted(public, entries)
        comparisons.append(compared)
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
        near={
            pairs: one_word_away(corpus.first(pairs).sources, corpus.test.sources)
            for pairs in settings.sizes
        },
        arms=tuple(results),
        prompted=prompted,
        comparisons=tuple(comparisons),
        baselines=_baselines(settings, corpus),
        best=best,
        worst=worst,
        judged=judged,
        alignment=_alignment(largest[judged], corpus.test),
        unequal=unequal(settings, corpus, results, trainer.tokenizer.size, public),
        settings=settings.model_dump(mode="json", exclude={"processes"}),
        command=command,
        minutes=(time.perf_counter() - started) / 60,
        machine=f"{machine.cpu}, {machine.cores} cores",
        elsewhere="" if public is not None else GET_A_MODEL,
    )


def with_everyday(study: TranslationStudy) -> TranslationStudy:
    """Return a French to English study with everyday sentences, translated by its best arm too."""
    if study.languages != ("fr", "en"):
        return study
    best = max((one for one in study.arms if one.arm == study.judged), key=lambda one: one.pairs)
    translators = {SUPPLIED: SHIPPED[SUPPLIED], study.judged: Path(best.run)}
    sources = [source for source, _ in EVERYDAY]
    translated = {
        name: Translator.open(path).texts(sources, beam=BEAM) for name, path in translators.items()
    }
    examples = tuple(
        Example(
            source=source,
            references=(reference,),
            translations={name: texts[place] for name, texts in translated.items()},
            chrf=sentence_chrf(translated[SUPPLIED][place], (reference,)),
        )
        for place, (source, reference) in enumerate(EVERYDAY)
    )
    return replace(study, everyday=examples)


def scores_key(entry: _Entry, results: Sequence[ArmResult]) -> tuple[int, float]:
    """Order arms: those that translated the whole test first, then by BLEU."""
    (result,) = [r for r in results if (r.arm, r.pairs) == (entry.arm, entry.pairs)]
    return result.sentences, result.bleu


def _groups(trainer: Trainer, public: PublicModel | None) -> Iterator[list[_Entry]]:
    """Train every arm at every size from each of its seeds, and translate the tests."""
    settings, corpus = trainer.settings, trainer.corpus
    own = parameter_count(settings.shape.config(trainer.tokenizer.size))

    def entry(
        arm: str, pairs: int, draw: int, run: FinishedRun, before: FinishedRun | None = None
    ) -> _Entry:
        trainer.progress.say(f"{training_name(arm, pairs, draw)}: translating the test")
        if public is not None and arm in (ELSEWHERE, FULL):
            translated = public.translated(arm, draw, run)
        else:
            translated = trainer.translated(run)
        decided = _settings_of(trainer, pairs, run, before, len(translated.texts["test"]))
        return _Entry(arm, pairs, draw, run, before, translated, own, own, decided)

    for pairs in settings.sizes:
        runs = [trainer.on_pairs(SCRATCH, pairs, draw) for draw in settings.draws(pairs)]
        yield [entry(SCRATCH, pairs, draw, run) for draw, run in enumerate(runs)]
    if corpus.has_text:
        before = trainer.language_model()
        for pairs in settings.sizes:
            tuned = [
                trainer.on_pairs(HERE, pairs, draw, before=before) for draw in settings.draws(pairs)
            ]
            yield [entry(HERE, pairs, draw, run, before) for draw, run in enumerate(tuned)]
            if pairs in settings.worked:
                steps = trainer.same_work_steps(pairs)
                yield [entry(LONGER, pairs, 0, trainer.on_pairs(LONGER, pairs, steps=steps))]
    if public is not None:
        for arm, pairs, draws in public_arms(settings):
            group = [entry(arm, pairs, draw, public.on_pairs(arm, pairs, draw)) for draw in draws]
            yield [_as_public(one, public) for one in group]


def _as_public(entry: _Entry, public: PublicModel) -> _Entry:
    """Return an entry with what a public checkpoint has differently."""
    tuning = public.tuning(entry.arm)
    return replace(
        entry,
        parameters=public.parameters,
        trained=public.trained(entry.arm),
        work_share=public.work_share(entry.arm),
        settings=entry.settings
        | {
            "pretraining": "elsewhere",
            "decoder": public.name,
            "tokenizer": f"{public.tokenizer.size:,} ids of its own",
            "tuning": "all parameters"
            if tuning.tuning == "full"
            else f"LoRA of rank {tuning.rank}",
            "columns": tuning.columns,
            "learning_rate": tuning.learning_rate,
            "matrix_learning_rate": None,
            "weight_decay": 0.0,
            "label_smoothing": 0.0,
        },
    )


def _settings_of(
    trainer: Trainer, pairs: int, run: FinishedRun, before: FinishedRun | None, sentences: int
) -> dict[str, Any]:
    """Return what decided an arm that was trained here, as two arms are compared by it."""
    settings = trainer.settings
    learning = (settings.scratch if before is None else settings.fine_tuning).model_dump()
    shape = settings.shape
    return {
        "pretraining": "none" if before is None else f"here, {before.result.step:,} steps",
        "pairs": pairs,
        "steps": run.result.step,
        "decoder": f"{shape.layers} layers of width {shape.width}",
        "tokenizer": f"{trainer.tokenizer.size:,} ids learned here",
        "tuning": "all parameters",
        "computed as": run.result.computed_as,
        "weights": "of the lowest held-out loss" if settings.early_stopping else "last",
        "seed": settings.seed,
        "test sentences": sentences,
        **{name: value for name, value in learning.items() if name not in ("steps", "growth")},
    }


AGAINST = {
    HERE: (SCRATCH,),
    LONGER: (SCRATCH, HERE),
    ELSEWHERE: (SCRATCH, LONGER, HERE),
    FULL: (SCRATCH, ELSEWHERE),
}
"""Which arms each arm is tested against, with as many pairs."""


def _compared(
    group: Sequence[_Entry], entries: dict[tuple[str, int, int], _Entry], test: TestSet
) -> list[Comparison]:
    """Test an arm against others, draw by draw; `here` comes before scratch with as much work."""
    comparisons = []
    arm, pairs = group[0].arm, group[0].pairs
    for other in AGAINST.get(arm, ()):
        several = [
            (one, entries[other, pairs, one.draw])
            for one in group
            if (other, pairs, one.draw) in entries
        ]
        if not several:
            continue
        if (arm, other) == (LONGER, HERE):
            several = [(two, one) for one, two in several]
        (first, second), *_ = several
        texts = [(one.on_test, two.on_test) for one, two in several]
        comparisons.append(
            _comparison(texts, test, (first.arm, second.arm), pairs, work=(first.work, second.work))
        )
    return comparisons


def _comparison(
    texts: Sequence[tuple[Sequence[str], Sequence[str]]],
    test: TestSet,
    arms: tuple[str, str],
    pairs: int,
    work: tuple[float, float],
) -> Comparison:
    """Compare the translations of two arms, those of each draw with those of the same draw."""
    count = min(len(side) for both in texts for side in both)
    known = test.references[:count]
    gains = [paired_gain(one[:count], two[:count], known) for one, two in texts]
    gain = gain_over_seeds(gains)
    first, second = (
        sum(bleu_of(both[side][:count], known) for both in texts) / len(texts) for side in (0, 1)
    )
    return Comparison(
        pairs=pairs,
        arm=arms[0],
        against=arms[1],
        gain=gain.value,
        gain_low=gain.low,
        gain_high=gain.high,
        p_value=gain.p_value,
        gains=tuple(one.value for one in gains),
        bleu=first,
        bleu_against=second,
        sentences=count,
        work=work[0],
        work_against=work[1],
    )


def _prompted(
    public: PublicModel, entries: dict[tuple[str, int, int], _Entry]
) -> tuple[PromptedResult, Comparison]:
    """Translate without training, and test the smallest fine-tuning against that."""
    settings, corpus = public.trainer.settings, public.trainer.corpus
    large = settings.elsewhere
    pairs = (large.sizes or settings.sizes)[0]
    test = corpus.test.first(large.sentences)
    several = [public.prompted(draw, test) for draw in settings.draws(pairs)]
    found = scores(several[0], test.references)
    tuned = [(entries[ELSEWHERE, pairs, draw].on_test, texts) for draw, texts in enumerate(several)]
    work = entries[ELSEWHERE, pairs, 0].work
    result = PromptedResult(
        **vars(found),
        model=public.name,
        label=LABELS[PROMPTED],
        examples=large.examples,
        seeds=tuple(
            SeedScore(
                seed=settings.seed + draw,
                bleu=bleu_of(texts, test.references),
                chrf=chrf_of(texts, test.references),
                loss=None,
                steps=0,
                chosen=0,
                bleu_last=None,
                work=0.0,
                run="",
            )
            for draw, texts in enumerate(several)
        ),
    )
    return result, _comparison(tuned, test, (ELSEWHERE, PROMPTED), pairs, work=(work, 0.0))


def _seed_score(entry: _Entry, test: TestSet) -> SeedScore:
    known = test.references[: len(entry.on_test)]
    return SeedScore(
        seed=entry.settings["seed"] + entry.draw,
        bleu=bleu_of(entry.on_test, known),
        chrf=chrf_of(entry.on_test, known),
        loss=min((one.values["loss"] for one in entry.run.result.evaluations), default=None),
        steps=entry.run.result.step,
        chosen=chosen_step(entry.run),
        bleu_last=bleu_of(entry.translated.last, known),
        work=entry.work,
        run=str(entry.run.folder),
    )


def _result(
    group: Sequence[_Entry], corpus: StudyCorpus, comparisons: Sequence[Comparison]
) -> ArmResult:
    entry = group[0]
    count = len(entry.on_test)
    with_scratch = [
        c for c in comparisons if (c.pairs, c.arm, c.against) == (entry.pairs, entry.arm, SCRATCH)
    ]
    result = entry.run.result
    return ArmResult(
        **vars(scores(entry.on_test, corpus.test.references[:count])),
        arm=entry.arm,
        label=LABELS[entry.arm],
        pairs=entry.pairs,
        settings=entry.settings,
        work=entry.work,
        work_before=entry.work_before,
        minutes=entry.minutes,
        minutes_before=entry.minutes_before,
        gain=with_scratch[0].gain if with_scratch else None,
        p_value=with_scratch[0].p_value if with_scratch else None,
        steps=result.step,
        chosen=chosen_step(entry.run),
        epochs=result.epoch,
        tokens=result.tokens,
        parameters=entry.parameters,
        trained=entry.trained,
        computed_as=result.computed_as,
        by_length=by_length(corpus.test, entry.on_test),
        by_unseen=by_unseen(corpus.test, entry.on_test, corpus.first(entry.pairs)),
        splits=tuple(
            slice_of(test.name, texts, test.references[: len(texts)])
            for test in corpus.others
            if (texts := entry.translated.texts.get(test.name))
        ),
        curve=curve_of(entry.run, entry.work_on_pairs, entry.work_before, entry.minutes_before),
        samples=samples_of(entry.run.folder, corpus.development),
        sentences_per_second=entry.translated.speed,
        run=str(entry.run.folder),
        seeds=tuple(_seed_score(one, corpus.test) for one in group),
    )


def _baselines(settings: StudySettings, corpus: StudyCorpus) -> tuple[BaselineResult, ...]:
    test = corpus.test
    return tuple(
        BaselineResult(
            **vars(
                scores(
                    translate_baseline(baseline, corpus.first(pairs), test.sources), test.references
                )
            ),
            baseline=baseline,
            pairs=pairs,
        )
        for pairs in settings.sizes
        for baseline in BASELINES
    )


def _largest(entries: dict[tuple[str, int, int], _Entry]) -> dict[str, _Entry]:
    """Return each arm at the largest number of pairs that it has, its first training."""
    found: dict[str, _Entry] = {}
    for (arm, pairs, draw), entry in entries.items():
        if not draw and (arm not in found or found[arm].pairs < pairs):
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
    alignments = [align(translator, one) for one in translator.translate(chosen)]
    return max(alignments, key=lambda one: _crossings(one.links))


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


def unequal(
    settings: StudySettings,
    corpus: StudyCorpus,
    results: Sequence[ArmResult],
    vocabulary: int,
    model: PublicModel | None,
) -> tuple[str, ...]:
    """Say what is not equal between the arms."""
    sentences = list(_here(settings, corpus, results))
    sentences.append(
        f"The tokenizer of the arms trained here ({vocabulary:,} ids) was learned from all "
        f"{len(corpus.train):,} training pairs"
        + (" and the monolingual text" if corpus.has_text else "")
        + ": scratch at a small size reads with byte pairs that its own pairs could not give it."
    )
    if model is not None:
        sentences += _elsewhere(settings, results, model)
    if any(len(result.seeds) > 1 for result in results):
        sentences.append(
            "Every seed draws other pairs, for all arms alike. From scratch it also begins with "
            "other weights, and LoRA with other additions; what was pretrained, here or elsewhere, "
            "was pretrained once."
        )
    return tuple(sentences)


def _here(
    settings: StudySettings, corpus: StudyCorpus, results: Sequence[ArmResult]
) -> Iterator[str]:
    tuned = [result for result in results if result.arm == HERE]
    if not tuned:
        yield "There is no arm pretrained here: no monolingual text was given (--monolingual)."
        return
    assert corpus.source_text is not None
    assert corpus.target_text is not None
    count = len(corpus.source_text) + len(corpus.target_text)
    yield (
        f"The arm {LABELS[HERE]} has read {count:,} texts in one language or the other before it "
        f"saw a pair ({work_words(tuned[0].work_before)}); the one {LABELS[SCRATCH]} has not. Work "
        "and minutes of the first count both."
    )
    if settings.restoring:
        yield (
            f"Half of that text, in {corpus.train.languages[1]}, was not only continued: the "
            "arm restored sentences whose words were left out or moved, so that it knew how to "
            "write after a source before it had seen one."
        )
    if any(result.arm == LONGER for result in results):
        yield (f"Once more {LABELS[LONGER]}: it spends as much work on more passes over the pairs.")
    if settings.scratch != settings.fine_tuning:
        one, two = settings.scratch.model_dump(), settings.fine_tuning.model_dump()
        changed = [
            f"{name.replace('_', ' ')} {one[name]:g} and {two[name]:g}"
            for name in one
            if one[name] != two[name]
        ]
        yield (
            f"On the pairs, {LABELS[SCRATCH]} and {LABELS[HERE]} have settings of their own, each "
            f"chosen for it: {'; '.join(changed)}."
        )


def _elsewhere(
    settings: StudySettings, results: Sequence[ArmResult], model: PublicModel
) -> Iterator[str]:
    own = next(result for result in results if result.arm == SCRATCH)
    public = next(result for result in results if result.arm == ELSEWHERE)
    yield (
        f"What was {LABELS[ELSEWHERE]} is {model.name}: {public.parameters:,} parameters against "
        f"{own.parameters:,}, and what it has read before, and for how long, was never counted "
        "here."
    )
    kinds = sorted({entry.dtype for entry in model.checkpoint.source.entries.values()})
    coarse = [kind for kind in kinds if kind.startswith(("Q", "I"))]
    if coarse:
        yield f"Its weights were rounded to few bits ({', '.join(coarse)}) before it came here."
    if "instruct" in model.name.lower() or "instruct" in str(model.checkpoint.path).lower():
        yield "It is tuned to follow instructions, and is asked for something else here."
    if "smollm2" in f"{model.name} {settings.elsewhere.model}".lower():
        yield "It was pretrained on English almost alone: French it has seen by accident."
    yield (
        f"It has a tokenizer of its own ({model.tokenizer.size:,} ids), {public.steps:,} steps "
        f"instead of {own.steps:,}, and "
        + (
            f"trains {public.trained:,} of its parameters (LoRA of rank {settings.elsewhere.rank})"
            if settings.elsewhere.tuning == "lora"
            else "trains all of its parameters"
        )
        + f"; it was judged on the first {public.sentences:,} test sentences, and compared with "
        "scratch on these alone."
    )
