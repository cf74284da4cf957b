"""The arms of a study: what is trained, on what, and what is kept of each training.

    scratch              on the pairs alone
    here                 the same decoder, first a language model of both languages
    scratch, same work   on the pairs alone, with as many operations as `here` takes in all
    elsewhere            a public checkpoint, fine-tuned

The arms trained here have one tokenizer and one shape, and are trained on the pairs in the same
way. The public checkpoint has a tokenizer of its own; a pair is written for it as two lines,
source and target, closed by the mark with which the model ends a text: nothing that it has not
seen before. Every training is a run in the folder of the study.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from heedful.data.batches import Batches, Sequences, bucketed, pair_sequences
from heedful.data.corpus import Documents, Pairs
from heedful.errors import InputError
from heedful.files import sha256, sha256_of, write_json
from heedful.model import Checkpoint, Decoder, DecoderConfig, open_checkpoint, parameter_count
from heedful.model.lora import add_lora, merge_lora, trained_count
from heedful.progress import Parts, Tell
from heedful.studies.text_training import BEGIN, END, MARKS
from heedful.studies.translation.corpus import (
    StudyCorpus,
    TestSet,
    joined,
    parted,
    restoring_sequences,
    text_sequences,
)
from heedful.studies.translation.recipe import Learning, StudySettings
from heedful.studies.translation.results import (
    ELSEWHERE,
    HERE,
    LONGER,
    SCRATCH,
    SampleTranslation,
    TrainingPoint,
)
from heedful.studies.translation.scoring import bleu_of
from heedful.studies.translation.translator import TranslationFormat, Translator, keep_model
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
    held_out_loss,
    run_path,
    train_to_end,
)
from heedful.training.hooks import Adapt, Evaluate, Report

SAMPLES, TRANSLATIONS = "samples.json", "translations.json"
SHOWN = 6
"""Development sentences whose translations are kept along the way."""
WATCHED = 16
"""Development sentences that a large model translates along the way."""
LONGEST = 512
"""Tokens of a pair for a public checkpoint, at most."""
LINE_BREAKS = ("Ċ", "<0x0A>", "\n")
"""How vocabularies write the end of a line: byte pairs, SentencePiece, characters."""
LANGUAGE_MODEL = "language model"
AS_SLOW = 100.0
"""A token of a large model, in tokens of the small one: no more than a guess for the meter."""


def training_name(arm: str, pairs: int) -> str:
    """Return what the training of an arm is called while it runs."""
    return f"{arm}, {pairs:,} pairs"


class StudyProgress(Parts):
    """The trainings of a study, added up by the tokens that they will read, at most."""

    def __init__(self, settings: StudySettings, tell: Tell | None) -> None:
        super().__init__(_sizes(settings), tell)

    def report(self, name: str) -> Report:
        """Return the hook of the training that begins now."""
        self.begin(name, name)
        return lambda state: self.tell(f"{name}: {state.line}", name, state.step / state.steps)


def _sizes(settings: StudySettings) -> dict[str, float]:
    """Return the trainings in the order in which they come, with their tokens."""
    scratch, tuning, text = settings.scratch, settings.fine_tuning, settings.pretraining
    shares = {pairs: pairs / settings.sizes[-1] for pairs in settings.sizes}
    sizes: dict[str, float] = {
        training_name(SCRATCH, pairs): float(scratch.steps_for(share) * scratch.columns)
        for pairs, share in shares.items()
    }
    sizes[LANGUAGE_MODEL] = float(text.steps * text.columns)
    for pairs, share in shares.items():
        tuned = float(tuning.steps_for(share) * tuning.columns)
        sizes[training_name(HERE, pairs)] = tuned
        if pairs in settings.worked:
            sizes[training_name(LONGER, pairs)] = sizes[LANGUAGE_MODEL] + tuned
    large = settings.elsewhere
    for pairs in (large.sizes or settings.sizes) if large.model else ():
        sizes[training_name(ELSEWHERE, pairs)] = AS_SLOW * large.steps * large.columns
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
        """How every arm computes: as the settings say, so that no clock decides a number."""
        settings = self.settings
        return Compute(precision=settings.precision, lanes=settings.lanes, compile=False)

    def sequences(self, pairs: Pairs) -> Sequences:
        """Write pairs as token sequences that fit the context."""
        return written_pairs(pairs, self.tokenizer, self.format, self.settings.shape.context)

    def language_model(self) -> FinishedRun:
        """Pretrain on text of each language alone."""
        setting = self.settings.pretraining
        texts, kept = self._text_sequences()
        table = {
            "arm": "language-model",
            "texts": len(texts),
            "restoring": self.settings.restoring,
            **setting.model_dump(mode="json"),
        }
        config = self._config(setting, setting.steps, self.compute, table)
        hooks = Hooks(
            evaluate=held_out_loss(self._batches(kept, setting)),
            report=self.progress.report(LANGUAGE_MODEL),
        )
        sources = (self.corpus.source_text, self.corpus.target_text)
        data = {"text": " ".join(text.fingerprint for text in sources if text is not None)}
        folder = run_path(self.folder / "runs", "language-model", config, data)
        return train_to_end(folder, config, self._batches(texts, setting), data=data, hooks=hooks)

    def on_pairs(
        self, arm: str, pairs: int, *, before: FinishedRun | None = None, steps: int | None = None
    ) -> FinishedRun:
        """Train on the first pairs, from new weights or from those of a run before."""
        setting = self.settings.scratch if before is None else self.settings.fine_tuning
        used = self.corpus.first(pairs)
        sequences = self.sequences(used)
        if setting.whole:
            sequences = replace(sequences, prompts=np.zeros_like(sequences.prompts))
        if steps is None:
            steps = setting.steps_for(pairs / self.settings.sizes[-1])
        table = {"arm": arm, "pairs": pairs, "corpus": self.corpus.name}
        data = {"pairs": used.fingerprint}
        if before is not None:
            data["weights before"] = before.result.weights_sha256
        return self.train(
            _Training(
                arm=arm,
                pairs=pairs,
                config=self._config(
                    setting, steps, self.compute, table | setting.model_dump(mode="json")
                ),
                feed=self._batches(sequences, setting),
                data=data,
                development=self.corpus.development,
                development_feed=_watched(self.sequences, self.corpus.development, self.settings),
                tokenizer=self.tokenizer,
                format=self.format,
                initial=None if before is None else before.decoder(),
            )
        )

    def train(self, training: _Training) -> FinishedRun:
        """Train an arm on pairs, watched on the development sentences, and keep its model."""
        label = "-".join(re.findall(r"\w+", f"{training.arm} {training.pairs}"))
        folder = run_path(self.folder / "runs", label, training.config, training.data)
        initial = training.initial
        hooks = Hooks(
            evaluate=training.watch(folder),
            report=self.progress.report(training_name(training.arm, training.pairs)),
            initial=None if initial is None else initial.state_dict(),
            adapt=training.adapt,
        )
        run = train_to_end(folder, training.config, training.feed, data=training.data, hooks=hooks)
        if training.adapt is None:
            keep_model(folder, run.decoder, training.tokenizer, training.format)
        return run

    def _config(
        self, setting: Learning, steps: int, compute: Compute, table: dict[str, Any]
    ) -> TrainingConfig:
        every = max(steps // self.settings.evaluations, 1)
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
            seed=self.settings.seed,
            compute=compute,
        )

    def _batches(self, sequences: Sequences, setting: Learning) -> Batches:
        few = int(sequences.steps.sum()) // setting.batches
        columns = max(min(setting.columns, few), int(sequences.steps.max()))
        return bucketed(sequences, columns=columns, seed=self.settings.seed)

    def _text_sequences(self) -> tuple[Sequences, Sequences]:
        """Write the texts of both languages, each after its mark; and a few kept to watch."""
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
class _Training:
    """All that decides a training on pairs."""

    arm: str
    pairs: int
    config: TrainingConfig
    feed: Feed
    data: dict[str, str]
    """Hashes of what it learns from."""
    development: TestSet
    development_feed: Feed
    tokenizer: Tokenizer
    format: TranslationFormat
    initial: Decoder | None
    """Where it starts; None: from new weights."""
    adapt: Adapt | None = None

    def watch(self, folder: Path) -> Evaluate:
        """Return an evaluation: loss and BLEU of development sentences, some of them kept."""
        loss = held_out_loss(self.development_feed)

        def evaluate(decoder: Decoder, step: int) -> dict[str, float]:
            started = time.perf_counter()
            values = {"loss": loss(decoder, step)["loss"]}
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

    @cached_property
    def trained(self) -> int:
        """How many of them are trained."""
        if self._adapt is None:
            return self.parameters
        return trained_count(self._adapted())

    def on_pairs(self, pairs: int) -> FinishedRun:
        """Fine-tune on the first pairs."""
        trainer, setting = self.trainer, self.trainer.settings.elsewhere
        seed, steps = trainer.settings.seed, setting.steps
        used = trainer.corpus.first(pairs)
        development = trainer.corpus.development.first(WATCHED)
        config = _config(
            self.checkpoint.config,
            {"arm": ELSEWHERE, "pairs": pairs, **setting.model_dump(mode="json")},
            steps,
            optimiser=Optimiser(learning_rate=setting.learning_rate, weight_decay=0.0),
            warmup=20,
            every=max(steps // 2, 1),
            log_every=1,
            seed=seed,
            compute=trainer.compute,
        )
        run = trainer.train(
            _Training(
                arm=ELSEWHERE,
                pairs=pairs,
                config=config,
                feed=bucketed(self._sequences(used), columns=setting.columns, seed=seed),
                data={"pairs": used.fingerprint, **self._hashes},
                development=development,
                development_feed=_watched(self._sequences, development, trainer.settings),
                tokenizer=self.tokenizer,
                format=self.format,
                initial=self.checkpoint.decoder(),
                adapt=self._adapt,
            )
        )
        if self._adapt is not None:
            keep_model(run.folder, lambda: self._merged(run), self.tokenizer, self.format)
        return run

    @cached_property
    def _hashes(self) -> dict[str, str]:
        files = self.checkpoint.source.files
        return {f"weights before: {file.name}": sha256_of(file) for file in files}

    @cached_property
    def _adapt(self) -> Adapt | None:
        """What LoRA adds to the decoder; None where all of it is trained."""
        setting, seed = self.trainer.settings.elsewhere, self.trainer.settings.seed
        if setting.tuning == "full":
            return None
        return lambda decoder: add_lora(decoder, setting.rank, seed=seed)

    def _adapted(self) -> Decoder:
        decoder = self.checkpoint.decoder()
        assert self._adapt is not None
        self._adapt(decoder)
        return decoder

    def _merged(self, run: FinishedRun) -> Decoder:
        """Return the fine-tuned weights as one decoder: what LoRA added is merged."""
        newest = checkpoint.newest(run.folder / "checkpoints").contents
        assert newest is not None
        decoder = self._adapted()
        decoder.load_state_dict({**decoder.state_dict(), **newest.model})
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


def curve_of(
    run: FinishedRun, work_before: float, minutes_before: float
) -> tuple[TrainingPoint, ...]:
    """Return the evaluations of a training, after what was spent before it."""
    return tuple(
        TrainingPoint(
            step=one.step,
            work=work_before + run.work * one.step / run.result.step,
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
