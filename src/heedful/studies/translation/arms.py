"""The arms that are trained here: from scratch, and after pretraining as a language model.

Both have one tokenizer and one shape. Pretraining reads each language under the mark that opens
it in a pair: source texts after `begin`, target texts after `between`. So the two sides of a
pair begin with marks whose languages are known, and what is left to learn is the translation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from heedful.data.batches import Batches, bucketed
from heedful.data.corpus import Documents, Pairs
from heedful.data.sequences import Sequences, document_sequences, pair_sequences
from heedful.errors import InputError
from heedful.model import write_folder
from heedful.studies.text_training import BEGIN, END, MARKS
from heedful.studies.translation.corpora import StudyCorpus, TestSet
from heedful.studies.translation.format import TranslationFormat
from heedful.studies.translation.runs import (
    Report,
    Trained,
    fastest,
    run_name,
    run_to_the_end,
    table_of,
    watch,
)
from heedful.studies.translation.settings import Learning, StudySettings
from heedful.tokenization import Tokenizer
from heedful.tokenization.training import learn_tokenizer
from heedful.training import Compute, Hooks, Optimiser, Schedule, TrainingConfig
from heedful.training.evaluation import held_out_loss
from heedful.training.trained import trained_decoder

TRIAL = "compute.json"
KEPT_TEXTS = 50
"""Texts of each language on which pretraining is watched."""

Told = Callable[[str], Report | None]
"""Gets what is trained now; returns what is told of every step."""


@dataclass(frozen=True, eq=False)
class Workshop:
    """What the arms trained here share: corpus, tokenizer, shape, and where their runs are."""

    settings: StudySettings
    corpus: StudyCorpus
    folder: Path
    told: Told

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Byte pairs of everything that some arm may read; nothing of a test."""
        corpus = self.corpus
        texts = [*corpus.train.sources, *corpus.train.targets]
        for text in (corpus.source_text, corpus.target_text):
            texts += [] if text is None else text.texts
        made = learn_tokenizer("bpe", texts, size=self.settings.vocabulary, marks=MARKS)
        made.begin, made.end = made.id_of(BEGIN), made.id_of(END)
        return made

    @cached_property
    def written(self) -> TranslationFormat:
        """How pairs are written."""
        return TranslationFormat.of(
            {"languages": self.corpus.train.languages, "normalise": self.corpus.normalise}
        )

    @cached_property
    def compute(self) -> Compute:
        """How this machine trains the shape fastest, for every arm alike."""
        feed = self._batches(
            self.pair_sequences(self.corpus.first(self.settings.sizes[-1])), self.settings.scratch
        )
        config = self._config(self.settings.scratch, 10_000, Compute(), {})
        return fastest(config, feed, self.folder / TRIAL)

    @cached_property
    def development(self) -> Batches:
        """The development sentences with their first reference."""
        return development_feed(self.corpus.development, self.pair_sequences, self.settings.seed)

    def pair_sequences(self, pairs: Pairs) -> Sequences:
        """Write pairs as token sequences that fit the context."""
        marks = self.written.marks(self.tokenizer)
        made = pair_sequences(
            pairs,
            self.tokenizer.encode_batch,
            begin=marks.begin,
            between=marks.between,
            end=marks.end,
        )
        return made.without_longer(self.settings.shape.context)

    def language_model(self) -> Trained:
        """Pretrain on text of each language alone."""
        setting, name = self.settings.pretraining, "language-model"
        sequences, kept = self._text_sequences()
        feed = self._batches(sequences, setting)
        steps = min(setting.steps, setting.epochs * len(feed))
        table = {"arm": name, "texts": len(sequences), **table_of(setting)}
        config = self._config(setting, steps, self.compute, table)
        hooks = Hooks(evaluate=held_out_loss(self._batches(kept, setting)), report=self.told(name))
        data = {"text": self._text_fingerprint()}
        return run_to_the_end(
            self.folder / "runs" / run_name(name, config, data), config, feed, hooks, data
        )

    def on_pairs(
        self, arm: str, pairs: int, *, before: Trained | None = None, steps: int | None = None
    ) -> Trained:
        """Train on the first pairs, from new weights or from those of a run before."""
        setting = self.settings.scratch if before is None else self.settings.fine_tuning
        used = self.corpus.first(pairs)
        sequences = self.pair_sequences(used)
        if setting.whole:
            sequences = replace(sequences, prompts=np.zeros_like(sequences.prompts))
        feed = self._batches(sequences, setting)
        if steps is None:
            steps = min(setting.steps, setting.epochs * len(feed))
        table = {"arm": arm, "pairs": pairs, "corpus": self.corpus.name, **table_of(setting)}
        config = self._config(setting, steps, self.compute, table)
        data = {"pairs": used.fingerprint}
        if before is not None:
            data["weights before"] = before.weights
        folder = (
            self.folder
            / "runs"
            / run_name(f"{arm}-{pairs}".replace(", ", "-").replace(" ", "-"), config, data)
        )
        hooks = Hooks(
            evaluate=watch(
                folder, self.corpus.development, self.development, self.tokenizer, self.written
            ),
            report=self.told(f"{arm}, {pairs:,} pairs"),
            initial=None if before is None else trained_decoder(before.folder).state_dict(),
        )
        made = run_to_the_end(folder, config, feed, hooks, data)
        model = folder / "model"
        if not model.is_dir():
            write_folder(trained_decoder(folder), model, tokenizer=self.tokenizer)
            self.written.write(model)
        return made

    def _config(
        self, setting: Learning, steps: int, compute: Compute, table: dict[str, object]
    ) -> TrainingConfig:
        every = max(steps // self.settings.evaluations, 1)
        return TrainingConfig(
            model=self.settings.shape.config(self.tokenizer.size),
            data=table,
            steps=steps,
            optimiser=Optimiser(
                kind="muon",
                learning_rate=setting.learning_rate,
                matrix_learning_rate=setting.matrix_learning_rate,
                weight_decay=setting.weight_decay,
            ),
            schedule=Schedule(kind="wsd", warmup=min(steps // 10, 50), decay=0.6, floor=0.0),
            label_smoothing=setting.label_smoothing,
            seed=self.settings.seed,
            evaluate_every=every,
            save_every=every,
            log_every=max(every // 5, 1),
            tensorboard=False,
            compute=compute,
        )

    def _batches(self, sequences: Sequences, setting: Learning) -> Batches:
        few = int(sequences.steps.sum()) // setting.batches
        columns = max(min(setting.columns, few), int(sequences.steps.max()))
        return bucketed(sequences, columns=columns, seed=self.settings.seed)

    def _text_sequences(self) -> tuple[Sequences, Sequences]:
        """Write the texts of both languages, each after its mark; and a few kept to watch."""
        marks = self.written.marks(self.tokenizer)
        found: list[tuple[Sequences, Sequences]] = []
        for text, opening in (
            (self.corpus.source_text, marks.begin),
            (self.corpus.target_text, marks.between),
        ):
            assert text is not None
            assert opening is not None
            whole = document_sequences(
                text, self.tokenizer.encode_batch, begin=opening, end=marks.end
            )
            count = min(KEPT_TEXTS, len(whole) // 10)
            if not count:
                raise InputError(text.name, f"holds {len(whole)} texts", expected="at least ten")
            cut = self.settings.shape.context
            found.append(
                (
                    whole.take(np.arange(count, len(whole))).cut(cut),
                    whole.take(np.arange(count)).cut(cut),
                )
            )
        return _joined([one for one, _ in found]), _joined([other for _, other in found])

    def _text_fingerprint(self) -> str:
        texts = (self.corpus.source_text, self.corpus.target_text)
        return " ".join(text.fingerprint for text in texts if text is not None)


def development_feed(
    development: TestSet, sequences_of: Callable[[Pairs], Sequences], seed: int
) -> Batches:
    """Return the development sentences, each with its first reference, as one epoch of batches."""
    pairs = Pairs(
        name="development",
        sources=development.sources,
        targets=tuple(known[0] for known in development.references),
    )
    return bucketed(sequences_of(pairs), columns=4_096, seed=seed, shuffle=False)


def has_text(corpus: StudyCorpus) -> bool:
    """Say whether there is text to pretrain on."""
    return isinstance(corpus.source_text, Documents) and isinstance(corpus.target_text, Documents)


def _joined(several: list[Sequences]) -> Sequences:
    lengths = np.concatenate([one.lengths for one in several])
    return Sequences(
        tokens=np.concatenate([one.tokens for one in several]),
        starts=np.concatenate([[0], np.cumsum(lengths)]),
        prompts=np.concatenate([one.prompts for one in several]),
    )
