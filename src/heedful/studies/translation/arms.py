"""The arms that are trained here: from scratch, and after pretraining on text of each language.

Both have one tokenizer and one shape, and are trained on the pairs in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from heedful.data.batches import Batches, Sequences, bucketed, pair_sequences
from heedful.data.corpus import Documents, Pairs
from heedful.studies.text_training import BEGIN, END, MARKS
from heedful.studies.translation.corpora import StudyCorpus, TestSet
from heedful.studies.translation.format import TranslationFormat
from heedful.studies.translation.meter import LANGUAGE_MODEL, StudyProgress, training_name
from heedful.studies.translation.pretraining import (
    joined,
    parted,
    restoring_sequences,
    text_sequences,
)
from heedful.studies.translation.runs import (
    fastest,
    keep_model,
    table_of,
    watch,
)
from heedful.studies.translation.settings import Learning, StudySettings
from heedful.tokenization import Tokenizer, learn_tokenizer
from heedful.training import (
    Compute,
    FinishedRun,
    Hooks,
    Optimiser,
    Schedule,
    TrainingConfig,
    held_out_loss,
    run_path,
    train_to_end,
)

TRIAL = "compute.json"


@dataclass(frozen=True, eq=False)
class Workshop:
    """What the arms trained here share: corpus, tokenizer, shape, and where their runs are."""

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

    def language_model(self) -> FinishedRun:
        """Pretrain on text of each language alone."""
        setting, name = self.settings.pretraining, "language-model"
        sequences, kept = self._text_sequences()
        feed = self._batches(sequences, setting)
        restoring = self.settings.restoring
        table = {"arm": name, "texts": len(sequences), "restoring": restoring, **table_of(setting)}
        config = self._config(setting, setting.steps, self.compute, table)
        hooks = Hooks(
            evaluate=held_out_loss(self._batches(kept, setting)),
            report=self.progress.report(LANGUAGE_MODEL),
        )
        data = {"text": self._text_fingerprint()}
        folder = run_path(self.folder / "runs", name, config, data)
        return train_to_end(folder, config, feed, data=data, hooks=hooks)

    def on_pairs(
        self, arm: str, pairs: int, *, before: FinishedRun | None = None, steps: int | None = None
    ) -> FinishedRun:
        """Train on the first pairs, from new weights or from those of a run before."""
        setting = self.settings.scratch if before is None else self.settings.fine_tuning
        used = self.corpus.first(pairs)
        sequences = self.pair_sequences(used)
        if setting.whole:
            sequences = replace(sequences, prompts=np.zeros_like(sequences.prompts))
        feed = self._batches(sequences, setting)
        if steps is None:
            steps = setting.steps_for(pairs / self.settings.sizes[-1])
        table = {"arm": arm, "pairs": pairs, "corpus": self.corpus.name, **table_of(setting)}
        config = self._config(setting, steps, self.compute, table)
        data = {"pairs": used.fingerprint}
        if before is not None:
            data["weights before"] = before.result.weights_sha256
        name = "-".join(re.findall(r"\w+", f"{arm} {pairs}"))
        folder = run_path(self.folder / "runs", name, config, data)
        hooks = Hooks(
            evaluate=watch(
                folder, self.corpus.development, self.development, self.tokenizer, self.written
            ),
            report=self.progress.report(training_name(arm, pairs)),
            initial=None if before is None else before.decoder().state_dict(),
        )
        run = train_to_end(folder, config, feed, data=data, hooks=hooks)
        keep_model(folder, run.decoder, self.tokenizer, self.written)
        return run

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
        marks, settings = self.written.marks(self.tokenizer), self.settings
        source, target = self.corpus.source_text, self.corpus.target_text
        assert source is not None
        assert target is not None
        assert marks.begin is not None
        longest = settings.shape.context

        def plain(text: Documents, opening: int) -> Sequences:
            return text_sequences(
                text, self.tokenizer, opening=opening, end=marks.end, longest=longest
            )

        found = [parted(plain(source, marks.begin), source.name)]
        if settings.restoring:
            made = restoring_sequences(
                target, self.tokenizer, marks, longest=longest, seed=settings.seed
            )
            found.append(parted(made, target.name))
        else:
            found.append(parted(plain(target, marks.between), target.name))
        return joined([one for one, _ in found]), joined([other for _, other in found])

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
