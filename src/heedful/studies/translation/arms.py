"""The arms of a study: what is trained, on what, and what is kept of each training.

    scratch              on the pairs alone
    here                 the same decoder, first a language model of both languages
    scratch, same work   on the pairs alone, with as many operations as `here` takes in all
    elsewhere            a public checkpoint, fine-tuned
    elsewhere, all       the same, all of its weights tuned where LoRA is the rule
    elsewhere, prompted  the same, not trained: examples stand before each source

The arms trained here have one tokenizer and one shape, and are trained on the pairs in the same
way. The public checkpoint has a tokenizer of its own; a pair is written for it as two lines,
source and target, closed by the mark with which the model ends a text: nothing that it has not
seen before. Every training is a run in the folder of the study.

Early stopping is a choice among looks: the weights with the lowest loss on the development
sentences are kept on the way (`best.safetensors`), and are the model in the end.
"""

from __future__ import annotations

import copy
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.torch
from torch import Tensor

from heedful import workers
from heedful.data.batches import Batches, Sequences, bucketed, pair_sequences
from heedful.data.corpus import LANGUAGES, Documents, Pairs
from heedful.errors import InputError
from heedful.files import sha256, sha256_of, write_atomic, write_json
from heedful.generation import FastStep
from heedful.generation.decoding import Prompts, continuations, evaluating
from heedful.generation.methods import GREEDY
from heedful.machine import torch_threads
from heedful.model import (
    Checkpoint,
    Decoder,
    DecoderConfig,
    flops_per_token,
    open_checkpoint,
    parameter_count,
)
from heedful.model.lora import add_lora, merge_lora, trained_count
from heedful.progress import Parts, Tell
from heedful.studies.parallel import now_and_then
from heedful.studies.text_training import BEGIN, END, MARKS
from heedful.studies.translation.corpus import (
    StudyCorpus,
    TestSet,
    joined,
    parted,
    restoring_sequences,
    text_sequences,
)
from heedful.studies.translation.recipe import Elsewhere, Learning, StudySettings
from heedful.studies.translation.results import (
    ELSEWHERE,
    FULL,
    HERE,
    LONGER,
    PROMPTED,
    SCRATCH,
    SampleTranslation,
    TrainingPoint,
)
from heedful.studies.translation.scoring import bleu_of
from heedful.studies.translation.translator import (
    TranslationFormat,
    Translator,
    in_one_line,
    keep_model,
)
from heedful.tokenization import Tokenizer, learn_tokenizer
from heedful.training import (
    Compute,
    Feed,
    FinishedRun,
    Hooks,
    Optimiser,
    Schedule,
    TrainingConfig,
    checkpoint,
    finished_run,
    held_out_loss,
    run_path,
    train_to_end,
)
from heedful.training.hooks import Adapt, Evaluate, Report

SAMPLES, TRANSLATIONS, LAST = "samples.json", "translations.json", "translations_last.json"
BEST, BEST_WEIGHTS = "best.json", "best.safetensors"
SHOWN = 6
"""Development sentences whose translations are kept along the way."""
WATCHED = 16
"""Development sentences that a large model translates along the way."""
LONGEST = 512
"""Tokens of a pair for a public checkpoint, at most."""
LINE_BREAKS = ("Ċ", "<0x0A>", "\n")
"""How vocabularies write the end of a line: byte pairs, SentencePiece, characters."""
PROMPT_ROWS = 16
"""Prompts with examples that are continued side by side."""
THROUGH_FROZEN = 2 / 3
"""Of the operations of a training step: a frozen matrix needs no gradient of its own."""
LANGUAGE_MODEL = "language model"
AS_SLOW = 100.0
"""A token of a large model, in tokens of the small one: no more than a guess for the meter."""


def training_name(arm: str, pairs: int, draw: int = 0) -> str:
    """Return what the training of an arm is called while it runs."""
    return f"{arm}, {pairs:,} pairs" + (f", draw {draw + 1}" if draw else "")


def public_arms(settings: StudySettings) -> Iterator[tuple[str, int, range]]:
    """Yield the trainings of a public checkpoint: arm, pairs, draws."""
    for pairs in settings.elsewhere.sizes or settings.sizes:
        yield ELSEWHERE, pairs, settings.draws(pairs)
    for pairs in settings.elsewhere.full_sizes:
        yield FULL, pairs, range(1)


class StudyProgress(Parts):
    """The trainings of a study, added up by the tokens that they will read, at most."""

    def __init__(self, settings: StudySettings, tell: Tell | None) -> None:
        super().__init__(_sizes(settings), tell)
        self.under_way: dict[str, str] = {}
        """Where each of the trainings is that run side by side."""

    def report(self, name: str) -> Report:
        """Return the hook of the training that begins now."""
        self.begin(name, name)
        return lambda state: self.tell(f"{name}: {state.line}", name, state.step / state.steps)

    def hear(self, name: str, where: str, share: float) -> None:
        """Say where one of several trainings is that run side by side."""
        self.under_way[name] = where
        names, places = " and ".join(self.under_way), " and ".join(self.under_way.values())
        self.tell(f"{names}: {places}", name, share)

    def ended(self, name: str) -> None:
        """Forget one of the trainings that run side by side."""
        self.under_way.pop(name, None)


class ReportedProgress(StudyProgress):
    """The progress of a training in a child process: its parent hears and shows it."""

    def __init__(self, settings: StudySettings) -> None:
        super().__init__(settings, None)

    def report(self, name: str) -> Report:
        """Return the hook of a training."""
        return now_and_then(
            lambda state: workers.report(
                (name, f"step {state.step:,}/{state.steps:,}", state.step / state.steps)
            )
        )


def _sizes(settings: StudySettings) -> dict[str, float]:
    """Return the trainings in the order in which they come, with their tokens."""
    sizes: dict[str, float] = {}

    def add(arm: str, pairs: int, tokens: float, draws: range) -> None:
        sizes.update({training_name(arm, pairs, draw): tokens for draw in draws})

    scratch, tuning, text = settings.scratch, settings.fine_tuning, settings.pretraining
    shares = {pairs: pairs / settings.sizes[-1] for pairs in settings.sizes}
    for pairs, share in shares.items():
        tokens = float(scratch.steps_for(share) * scratch.columns)
        add(SCRATCH, pairs, tokens, settings.draws(pairs))
    sizes[LANGUAGE_MODEL] = float(text.steps * text.columns)
    for pairs, share in shares.items():
        tokens = float(tuning.steps_for(share) * tuning.columns)
        add(HERE, pairs, tokens, settings.draws(pairs))
        if pairs in settings.worked:
            add(LONGER, pairs, sizes[LANGUAGE_MODEL] + tokens, range(1))
    large = settings.elsewhere
    if large.model:
        tokens, several = AS_SLOW * large.steps * large.columns, large.sizes or settings.sizes
        for arm, pairs, draws in public_arms(settings):
            add(arm, pairs, tokens, draws)
        if large.examples:
            add(PROMPTED, large.examples, tokens, settings.draws(several[0]))
    return sizes


@dataclass(frozen=True, eq=False)
class Trainer:
    """Trains the arms that share a corpus, a tokenizer and a shape."""

    settings: StudySettings
    corpus: StudyCorpus
    folder: Path
    progress: StudyProgress

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Byte pairs of everything that some arm may read; nothing of a test."""
        corpus = self.corpus
        texts = [*corpus.train.sources, *corpus.train.targets]
        for text in (corpus.source_text, corpus.target_text):
            texts += [] if text is None else text.texts
        tokenizer = learn_tokenizer("bpe", texts, size=self.settings.vocabulary, marks=MARKS)
        tokenizer.begin, tokenizer.end = tokenizer.id_of(BEGIN), tokenizer.id_of(END)
        return tokenizer

    @cached_property
    def format(self) -> TranslationFormat:
        """How pairs are written."""
        return TranslationFormat.of(
            {"languages": self.corpus.train.languages, "normalise": self.corpus.normalise}
        )

    @property
    def compute(self) -> Compute:
        """How every arm computes: as the settings say, so that no clock decides a number.

        With one thread of torch, whatever the cores: their number decides the order of sums.
        """
        settings = self.settings
        return Compute(precision=settings.precision, lanes=settings.lanes, threads=1, compile=False)

    def for_child(self) -> Trainer:
        """Return this trainer for a child process, with all that it has read and written so far."""
        child = copy.copy(self)
        object.__setattr__(child, "progress", ReportedProgress(self.settings))
        return child

    def sequences(self, pairs: Pairs) -> Sequences:
        """Write pairs as token sequences that fit the context."""
        return written_pairs(pairs, self.tokenizer, self.format, self.settings.shape.context)

    def language_model(self) -> FinishedRun:
        """Pretrain on text of each language alone."""
        found = self.finished_language_model()
        if found is not None:
            self.progress.tell(LANGUAGE_MODEL, LANGUAGE_MODEL, 1.0)
            return found
        setting, (texts, kept) = self.settings.pretraining, self.texts
        folder, config, data = self._language_model
        hooks = Hooks(
            evaluate=held_out_loss(self._batches(kept, setting)),
            report=self.progress.report(LANGUAGE_MODEL),
        )
        return train_to_end(folder, config, self._batches(texts, setting), data=data, hooks=hooks)

    def finished_language_model(self) -> FinishedRun | None:
        """Return the language model if it is trained."""
        return finished_run(self._language_model[0])

    @property
    def _language_model(self) -> tuple[Path, TrainingConfig, dict[str, str]]:
        """Where the language model belongs, its config, and the hashes of its texts."""
        setting = self.settings.pretraining
        table = {
            "arm": "language-model",
            "texts": len(self.texts[0]),
            "restoring": self.settings.restoring,
            **setting.model_dump(mode="json"),
        }
        config = self._config(setting, setting.steps, self.compute, table)
        sources = (self.corpus.source_text, self.corpus.target_text)
        data = {"text": " ".join(text.fingerprint for text in sources if text is not None)}
        return run_path(self.folder / "runs", "language-model", config, data), config, data

    def on_pairs(
        self,
        arm: str,
        pairs: int,
        draw: int = 0,
        *,
        before: FinishedRun | None = None,
        steps: int | None = None,
    ) -> FinishedRun:
        """Train on the first pairs of a draw, from new weights or from those of a run before."""
        return self.train(self.training(arm, pairs, draw, before=before, steps=steps))

    def training(
        self,
        arm: str,
        pairs: int,
        draw: int = 0,
        *,
        before: FinishedRun | None = None,
        steps: int | None = None,
    ) -> PairTraining:
        """Return what decides such a training."""
        setting = self.settings.scratch if before is None else self.settings.fine_tuning
        used, seed = self.corpus.first(pairs, draw), self.settings.seed + draw
        if steps is None:
            steps = self._steps(setting, pairs)
        table = {"arm": arm, "pairs": pairs, "corpus": self.corpus.name}
        data = {"pairs": used.fingerprint}
        if before is not None:
            data["weights before"] = before.result.weights_sha256
        return PairTraining(
            arm=arm,
            pairs=pairs,
            draw=draw,
            config=self._config(
                setting, steps, self.compute, table | setting.model_dump(mode="json"), seed
            ),
            feed=lambda: self._feed(setting, pairs, draw),
            data=data,
            development=self.corpus.development,
            development_feed=lambda: _watched(
                self.sequences, self.corpus.development, self.settings
            ),
            tokenizer=self.tokenizer,
            format=self.format,
            initial=None if before is None else before.decoder,
        )

    def train(self, training: PairTraining) -> FinishedRun:
        """Train an arm on pairs, watched on the development sentences, and keep its model."""
        folder, name = self.folder_of(training), training.name
        run = finished_run(folder)
        if run is not None:
            self.progress.tell(name, name, 1.0)
        else:
            hooks = Hooks(
                evaluate=training.watch(folder, choosing=self.settings.early_stopping),
                report=self.progress.report(name),
                initial=None if training.initial is None else training.initial().state_dict(),
                adapt=training.adapt,
            )
            run = train_to_end(
                folder, training.config, training.feed(), data=self._data(training), hooks=hooks
            )
        if training.adapt is None:
            keep_model(folder, lambda: chosen_decoder(run), training.tokenizer, training.format)
        return run

    def folder_of(self, training: PairTraining) -> Path:
        """Return where the run of a training belongs."""
        label = "-".join(re.findall(r"\w+", f"{training.arm} {training.pairs}"))
        return run_path(self.folder / "runs", label, training.config, self._data(training))

    def same_work_steps(self, pairs: int) -> int:
        """Return the steps from scratch that take as much work as the arm here takes in all."""
        alone = self.settings.scratch
        steps = self._steps(alone, pairs)
        scratch = self._work(self._feed(alone, pairs), steps)
        return max(round(self.work_here(pairs) / scratch * steps), 1)

    def work_here(self, pairs: int) -> float:
        """Return the operations of the arm pretrained here, those of the language model included.

        Which tokens a step will read is known before it is taken, so nothing need be trained.
        """
        text, tuned = self.settings.pretraining, self.settings.fine_tuning
        before = self._work(self._batches(self.texts[0], text), text.steps)
        return before + self._work(self._feed(tuned, pairs), self._steps(tuned, pairs))

    def translated(self, run: FinishedRun) -> Translated:
        """Translate the tests by an arm that was trained here, or find that it was done.

        With one thread, as in a child process: texts and speeds are then those of a child.
        """
        corpus = self.corpus
        with torch_threads(1):
            return translated_by(
                run,
                (corpus.test, *corpus.others),
                lambda: Translator(run.decoder(), self.tokenizer, self.format),
            )

    def _work(self, feed: Batches, steps: int) -> float:
        """Return the work of a training that is yet to come, as `FinishedRun` counts it."""
        whole, rest = divmod(steps, len(feed))
        begun = range(whole * len(feed), whole * len(feed) + rest)
        tokens = whole * feed.tokens + sum(feed.batch(place).real for place in begun)
        model = self.settings.shape.config(self.tokenizer.size)
        return float(tokens * flops_per_token(model, training=True))

    def _steps(self, setting: Learning, pairs: int) -> int:
        return setting.steps_for(pairs / self.settings.sizes[-1])

    def _feed(self, setting: Learning, pairs: int, draw: int = 0) -> Batches:
        """Return the batches of a training on pairs."""
        sequences = self.sequences(self.corpus.first(pairs, draw))
        if setting.whole:
            sequences = replace(sequences, prompts=np.zeros_like(sequences.prompts))
        return self._batches(sequences, setting, self.settings.seed + draw)

    def _data(self, training: PairTraining) -> dict[str, str]:
        """Return the hashes of what a run learns from; what is kept of it makes another run."""
        if not self.settings.early_stopping:
            return training.data
        return training.data | {"weights": "of the look with the lowest loss"}

    def _config(
        self,
        setting: Learning,
        steps: int,
        compute: Compute,
        table: dict[str, Any],
        seed: int | None = None,
    ) -> TrainingConfig:
        every = math.ceil(steps / self.settings.evaluations)
        return _config(
            self.settings.shape.config(self.tokenizer.size),
            table,
            steps,
            optimiser=Optimiser(
                kind="muon",
                learning_rate=setting.learning_rate,
                matrix_learning_rate=setting.matrix_learning_rate,
                weight_decay=setting.weight_decay,
            ),
            warmup=50,
            every=every,
            log_every=max(every // 5, 1),
            label_smoothing=setting.label_smoothing,
            seed=self.settings.seed if seed is None else seed,
            compute=compute,
        )

    def _batches(self, sequences: Sequences, setting: Learning, seed: int | None = None) -> Batches:
        few = int(sequences.steps.sum()) // setting.batches
        columns = max(min(setting.columns, few), int(sequences.steps.max()))
        seed = self.settings.seed if seed is None else seed
        return bucketed(sequences, columns=columns, seed=seed)

    @cached_property
    def texts(self) -> tuple[Sequences, Sequences]:
        """The texts of both languages, each after its mark; and a few kept to watch."""
        marks, settings = self.format.marks(self.tokenizer), self.settings
        source, target = self.corpus.source_text, self.corpus.target_text
        assert source is not None
        assert target is not None
        assert marks.begin is not None
        longest = settings.shape.context

        def plain(text: Documents, opening: int) -> Sequences:
            return text_sequences(
                text, self.tokenizer, opening=opening, end=marks.end, longest=longest
            )

        if settings.restoring:
            second = restoring_sequences(
                target, self.tokenizer, marks, longest=longest, seed=settings.seed
            )
        else:
            second = plain(target, marks.between)
        parts = [parted(plain(source, marks.begin), source.name), parted(second, target.name)]
        return joined([learned for learned, _ in parts]), joined([kept for _, kept in parts])


@dataclass(frozen=True, eq=False, kw_only=True)
class PairTraining:
    """All that decides a training on pairs; what takes time to make is made when it is trained."""

    arm: str
    pairs: int
    draw: int
    config: TrainingConfig
    feed: Callable[[], Feed]
    data: dict[str, str]
    """Hashes of what it learns from."""
    development: TestSet
    development_feed: Callable[[], Feed]
    tokenizer: Tokenizer
    format: TranslationFormat
    initial: Callable[[], Decoder] | None
    """Where it starts; None: from new weights."""
    adapt: Adapt | None = None

    @property
    def name(self) -> str:
        """What it is called while it runs."""
        return training_name(self.arm, self.pairs, self.draw)

    def watch(self, folder: Path, *, choosing: bool) -> Evaluate:
        """Return an evaluation: loss and BLEU of development sentences, some of them kept."""
        loss = held_out_loss(self.development_feed())

        def evaluate(decoder: Decoder, step: int) -> dict[str, float]:
            started = time.perf_counter()
            values = {"loss": loss(decoder, step)["loss"]}
            if choosing:
                keep_best(folder, decoder, step, values["loss"])
            texts = Translator(decoder, self.tokenizer, self.format).texts(self.development.sources)
            values["bleu"] = bleu_of(texts, self.development.references)
            kept = {at: known for at, known in _read(folder / SAMPLES).items() if int(at) < step}
            write_json(folder / SAMPLES, {**kept, str(step): texts[:SHOWN]})
            return values | {"seconds": time.perf_counter() - started}

        return evaluate


@dataclass(frozen=True, eq=False)
class PublicModel:
    """A checkpoint that others pretrained, ready to be fine-tuned."""

    trainer: Trainer

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint, opened; no weight is read yet."""
        model = self.trainer.settings.elsewhere.model
        assert model is not None
        opened = open_checkpoint(model)
        if opened.tokenizer is None:
            raise InputError(
                "--model",
                f"{model} has no tokenizer",
                hint="put its tokenizer.json beside the weights",
            )
        return opened

    @cached_property
    def name(self) -> str:
        """What the model is called."""
        return self.checkpoint.title or Path(str(self.trainer.settings.elsewhere.model)).name

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Its own tokenizer, with an end."""
        tokenizer = self.checkpoint.tokenizer
        assert tokenizer is not None
        if tokenizer.end is None and self.checkpoint.ends:
            tokenizer.end = self.checkpoint.ends[0]
        return tokenizer

    @cached_property
    def format(self) -> TranslationFormat:
        """How a pair is written for it; a model for which there is no way is refused."""
        tokenizer, corpus = self.tokenizer, self.trainer.corpus
        between = next((mark for mark in LINE_BREAKS if tokenizer.id_of(mark) is not None), None)
        if between is None or tokenizer.end is None:
            what = "no token for the end of a line" if between is None else "no mark that ends it"
            model = self.trainer.settings.elsewhere.model
            raise InputError("--model", f"{model} has {what}", expected="both")
        return TranslationFormat(
            begin=None if tokenizer.begin is None else tokenizer.token(tokenizer.begin),
            between=between,
            end=str(tokenizer.token(tokenizer.end)),
            languages=corpus.train.languages,
            normalise="keyboard" if corpus.normalise == "keyboard" else "nfc",
        )

    @cached_property
    def parameters(self) -> int:
        """How many it has."""
        return parameter_count(self.checkpoint.config)

    def tuning(self, arm: str) -> Elsewhere:
        """Return the settings of an arm: its own, or those with which all weights are tuned."""
        setting = self.trainer.settings.elsewhere
        if arm != FULL:
            return setting
        changed = {"tuning": "full", "learning_rate": setting.full_learning_rate}
        return setting.model_copy(update=changed)

    @cached_property
    def _added(self) -> int:
        """Numbers that LoRA adds."""
        decoder = self.checkpoint.decoder()
        add_lora(decoder, self.trainer.settings.elsewhere.rank)
        return trained_count(decoder)

    def trained(self, arm: str) -> int:
        """Return how many numbers an arm trains."""
        return self.parameters if self.tuning(arm).tuning == "full" else self._added

    def work_share(self, arm: str) -> float:
        """Return the share of the operations of a whole training step that an arm takes."""
        if self.tuning(arm).tuning == "full":
            return 1.0
        return THROUGH_FROZEN + self._added / self.parameters

    @cached_property
    def _config(self) -> DecoderConfig:
        """The config of the checkpoint, with no longer a context than pairs need."""
        config = self.checkpoint.config
        return config.model_copy(update={"context": min(LONGEST, config.context)})

    def on_pairs(self, arm: str, pairs: int, draw: int = 0) -> FinishedRun:
        """Fine-tune on the first pairs of a draw, and keep the model."""
        training = self.training(arm, pairs, draw)
        run = self.trainer.train(training)
        if training.adapt is not None:
            adapt = training.adapt
            keep_model(
                run.folder,
                lambda: self._merged(adapt, chosen_weights(run)),
                self.tokenizer,
                self.format,
            )
        return run

    def training(self, arm: str, pairs: int, draw: int = 0) -> PairTraining:
        """Return what decides a fine-tuning; its work is that of the arm here, if so asked."""
        trainer, setting = self.trainer, self.tuning(arm)
        seed, corpus = trainer.settings.seed + draw, trainer.corpus
        used = corpus.first(pairs, draw)

        def feed() -> Batches:
            return bucketed(self._sequences(used), columns=setting.columns, seed=seed)

        steps = setting.steps
        if setting.same_work:
            steps = self._steps_for(arm, feed(), trainer.work_here(pairs))
        looks = trainer.settings.evaluations if trainer.settings.early_stopping else 2
        decided = ("model", "tuning", "rank", "columns", "learning_rate")
        config = _config(
            self._config,
            {"arm": arm, "pairs": pairs, **setting.model_dump(mode="json", include={*decided})},
            steps,
            optimiser=Optimiser(learning_rate=setting.learning_rate, weight_decay=0.0),
            warmup=20,
            every=math.ceil(steps / looks),
            log_every=1,
            seed=seed,
            compute=Compute(
                precision=trainer.settings.precision,
                lanes=setting.lanes,
                threads=1 if setting.lanes == 1 else None,
                compile=False,
            ),
        )
        return PairTraining(
            arm=arm,
            pairs=pairs,
            draw=draw,
            config=config,
            feed=feed,
            data={"pairs": used.fingerprint, **self._hashes},
            development=corpus.development.first(WATCHED),
            development_feed=lambda: _watched(
                self._sequences, corpus.development, trainer.settings
            ),
            tokenizer=self.tokenizer,
            format=self.format,
            initial=self.checkpoint.decoder,
            adapt=self._adapt(setting, seed),
        )

    def translated(self, arm: str, draw: int, run: FinishedRun) -> Translated:
        """Translate as much of the tests as its settings say, or find that it was done."""
        corpus, count = self.trainer.corpus, self.trainer.settings.elsewhere.sentences
        tests = tuple(test.first(count) for test in (corpus.test, *corpus.others))

        def last() -> Translator:
            adapt = self._adapt(self.tuning(arm), self.trainer.settings.seed + draw)
            decoder = run.decoder() if adapt is None else self._merged(adapt, last_weights(run))
            return Translator(decoder, self.tokenizer, self.format)

        one = self.trainer.settings.elsewhere.lanes == 1
        with torch_threads(1) if one else nullcontext():
            return translated_by(run, tests, last)

    def prompted(self, draw: int, test: TestSet) -> tuple[str, ...]:
        """Translate without training: examples from a draw of the pairs stand before each source.

        The model continues lines of the two languages, greedily, and ends with the line.
        """
        corpus, tokenizer = self.trainer.corpus, self.tokenizer
        first, second = (LANGUAGES.get(code, code) for code in corpus.train.languages)
        shown = corpus.first(self.trainer.settings.elsewhere.examples, draw)
        head = "".join(
            f"{first}: {source}\n{second}: {target}\n"
            for source, target in zip(shown.sources, shown.targets, strict=True)
        )
        asked = [f"{head}{first}: {self.format.written(s)}\n{second}:" for s in test.sources]
        place = (
            self.trainer.folder / f"prompted-{sha256(json.dumps([asked, self._hashes]))[:8]}.json"
        )
        kept = _read(place).get("translations")
        if kept is None:
            name = training_name(PROMPTED, len(shown), draw)
            kept = self._continued(tokenizer.encode_batch(asked), len(tokenizer.encode(head)), name)
            write_json(place, {"prompt": asked[0], "translations": kept})
        return tuple(kept)

    def _continued(self, prompts: list[list[int]], head: int, name: str) -> list[str]:
        """Continue prompts to the end of the line; the longest come first, and share batches."""
        config, report = self.checkpoint.config, self.trainer.progress
        decoder = self.checkpoint.decoder()
        step = FastStep(decoder, "float32")
        breaks = {self.tokenizer.id_of(mark * count) for mark in LINE_BREAKS for count in (1, 2)}
        ends = {one for one in {*breaks, self.tokenizer.end} if one is not None}
        order = sorted(range(len(prompts)), key=lambda place: -len(prompts[place]))
        made: dict[int, str] = {}
        report.begin(name, name)
        with evaluating(decoder):
            for start in range(0, len(order), PROMPT_ROWS):
                chosen = order[start : start + PROMPT_ROWS]
                rows = [prompts[place] for place in chosen]
                room = [config.context - len(row) + 1 for row in rows]
                if min(room) < 1:
                    raise InputError(
                        "elsewhere.examples",
                        f"make a prompt of {max(map(len, rows)):,} tokens",
                        expected=f"at most {config.context:,}, the context of {self.name}",
                        hint="show fewer",
                    )
                limits = [
                    min(left, 2 * (len(row) - head) + 24)
                    for row, left in zip(rows, room, strict=True)
                ]
                limited = Prompts.limited(config, rows, limits, ends)
                found = continuations(decoder, limited, GREEDY, step)
                for place, (one, *_) in zip(chosen, found, strict=True):
                    tokens = one.tokens[:-1] if one.finished else one.tokens
                    made[place] = in_one_line(self.tokenizer.decode(tokens)).strip()
                report.tell(f"{name}: translating", name, (start + len(chosen)) / len(order))
        return [made[place] for place in range(len(prompts))]

    def _steps_for(self, arm: str, feed: Feed, work: float) -> int:
        """Return how many batches take so many operations."""
        one = self.work_share(arm) * flops_per_token(self._config, training=True)
        steps, left = 0, work / one
        while left > 0:
            tokens = int(np.count_nonzero(np.asarray(feed.batch(steps).documents) >= 0))
            if steps and left < tokens / 2:
                break
            steps, left = steps + 1, left - tokens
        return steps

    @cached_property
    def _hashes(self) -> dict[str, str]:
        files = self.checkpoint.source.files
        return {f"weights before: {file.name}": sha256_of(file) for file in files}

    def _adapt(self, setting: Elsewhere, seed: int) -> Adapt | None:
        """Return what adds LoRA to a decoder; None where all of it is trained."""
        if setting.tuning == "full":
            return None
        return lambda decoder: add_lora(decoder, setting.rank, seed=seed)

    def _merged(self, adapt: Adapt, weights: dict[str, Tensor]) -> Decoder:
        """Return fine-tuned weights as one decoder: what LoRA added is merged."""
        decoder = self.checkpoint.decoder()
        adapt(decoder)
        decoder.load_state_dict({**decoder.state_dict(), **weights})
        merge_lora(decoder)
        return decoder.eval()

    def _sequences(self, pairs: Pairs) -> Sequences:
        longest = min(LONGEST, self.checkpoint.config.context)
        return written_pairs(pairs, self.tokenizer, self.format, longest)


def written_pairs(
    pairs: Pairs, tokenizer: Tokenizer, written: TranslationFormat, longest: int
) -> Sequences:
    """Write pairs as token sequences; longer ones are left out."""
    marks = written.marks(tokenizer)
    return pair_sequences(
        pairs, tokenizer.encode_batch, begin=marks.begin, between=marks.between, end=marks.end
    ).without_longer(longest)


def keep_best(folder: Path, decoder: Decoder, step: int, loss: float) -> None:
    """Keep the trained weights of a look if none before it had as low a loss.

    A run that was killed looks again at the same weights: the same step is written anew.
    """
    known = _read(folder / BEST)
    if known and known["step"] != step and loss >= known["loss"]:
        return
    trained = {name: one.detach() for name, one in decoder.named_parameters() if one.requires_grad}
    write_atomic(folder / BEST_WEIGHTS, safetensors.torch.save(trained, {"format": "pt"}))
    write_json(folder / BEST, {"step": step, "loss": loss})


def chosen_step(run: FinishedRun) -> int:
    """Return the step whose weights are those of the arm."""
    return int(_read(run.folder / BEST).get("step", run.result.step))


def chosen_weights(run: FinishedRun) -> dict[str, Tensor]:
    """Return the trained weights of a run: of the look with the lowest loss, or the last ones."""
    if (run.folder / BEST).is_file():
        return safetensors.torch.load_file(run.folder / BEST_WEIGHTS)
    return last_weights(run)


def last_weights(run: FinishedRun) -> dict[str, Tensor]:
    """Return the trained weights of a run after its last step."""
    newest = checkpoint.newest(run.folder / "checkpoints").contents
    assert newest is not None
    return newest.model


def chosen_decoder(run: FinishedRun) -> Decoder:
    """Return the decoder of a run with these weights."""
    decoder = run.decoder()
    if (run.folder / BEST).is_file():
        decoder.load_state_dict(chosen_weights(run))
    return decoder


def curve_of(
    run: FinishedRun, work: float, work_before: float, minutes_before: float
) -> tuple[TrainingPoint, ...]:
    """Return the evaluations of a training of so much work, after what was spent before it."""
    return tuple(
        TrainingPoint(
            step=one.step,
            work=work_before + work * one.step / run.result.step,
            minutes=run.seconds_at(one.step) / 60 + minutes_before,
            loss=one.values["loss"],
            bleu=one.values.get("bleu"),
        )
        for one in run.result.evaluations
    )


def samples_of(folder: Path, development: TestSet) -> tuple[SampleTranslation, ...]:
    """Return the development sentences that were kept during a training."""
    kept = {int(step): texts for step, texts in _read(folder / SAMPLES).items()}
    several = zip(development.sources[:SHOWN], development.references, strict=False)
    return tuple(
        SampleTranslation(
            source=source,
            reference=known[0],
            translations={step: kept[step][place] for step in sorted(kept)},
        )
        for place, (source, known) in enumerate(several)
        if kept
    )


class Translated(NamedTuple):
    """The tests as an arm translates them."""

    texts: dict[str, tuple[str, ...]]
    """By the name of the test set."""
    last: tuple[str, ...]
    """The test by the weights after the last step, where others were taken."""
    speed: float
    """Sentences a second."""


def translated_by(
    run: FinishedRun, tests: Sequence[TestSet], last: Callable[[], Translator]
) -> Translated:
    """Translate test sets, the first one also by the last weights where others were taken."""
    texts, speed = translations_of(run.folder, tests)
    if chosen_step(run) == run.result.step:
        return Translated(texts, texts[tests[0].name], speed)
    return Translated(texts, last_translations(run, tests[0], last), speed)


def translations_of(
    folder: Path, tests: Sequence[TestSet]
) -> tuple[dict[str, tuple[str, ...]], float]:
    """Translate test sets, or find that it was done; and sentences a second."""
    sources = sha256(json.dumps([test.sources for test in tests]))
    kept = _read(folder / TRANSLATIONS)
    if kept.get("sources") != sources:
        translator = Translator.open(folder)
        started = time.perf_counter()
        translations = {test.name: translator.texts(test.sources) for test in tests}
        seconds = time.perf_counter() - started
        kept = {"sources": sources, "translations": translations, "seconds": seconds}
        write_json(folder / TRANSLATIONS, kept)
    texts = {name: tuple(several) for name, several in kept["translations"].items()}
    return texts, sum(map(len, texts.values())) / max(kept["seconds"], 1e-9)


def last_translations(
    run: FinishedRun, test: TestSet, translator: Callable[[], Translator]
) -> tuple[str, ...]:
    """Translate a test as the weights after the last step do, or find that it was done."""
    kept = _read(run.folder / LAST)
    sources = sha256(json.dumps(test.sources))
    if kept.get("sources") != sources:
        kept = {"sources": sources, "translations": translator().texts(test.sources)}
        write_json(run.folder / LAST, kept)
    return tuple(kept["translations"])


def _config(
    model: DecoderConfig,
    table: dict[str, Any],
    steps: int,
    *,
    warmup: int,
    every: int,
    **settings: Any,
) -> TrainingConfig:
    """Return a training: a short warm-up, a long decay, and looks at the development set."""
    return TrainingConfig(
        model=model,
        data=table,
        steps=steps,
        schedule=Schedule(kind="wsd", warmup=min(steps // 10, warmup), decay=0.6, floor=0.0),
        evaluate_every=every,
        save_every=every,
        tensorboard=False,
        **settings,
    )


def _watched(sequences_of: Any, development: TestSet, settings: StudySettings) -> Batches:
    """Return the development sentences, each with its first reference, as one epoch of batches."""
    pairs = Pairs(
        name="development",
        sources=development.sources,
        targets=tuple(known[0] for known in development.references),
    )
    return bucketed(sequences_of(pairs), columns=4_096, seed=settings.seed, shuffle=False)


def _read(path: Path) -> dict[str, Any]:
    """Return what a file of JSON holds; nothing where it cannot be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
