"""The arm that others pretrained: a public checkpoint, fine-tuned on the same pairs.

Its tokenizer is its own. A pair is written as two lines, source and target, closed by the mark
with which the model ends a text: nothing that it has not seen before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from heedful.data.batches import Sequences, bucketed, pair_sequences
from heedful.data.corpus import Pairs
from heedful.errors import InputError
from heedful.files import sha256_of
from heedful.model import Checkpoint, Decoder, open_checkpoint, parameter_count
from heedful.model.lora import add_lora, merge_lora, trained_count
from heedful.model.weights.published import PUBLISHED, cached_path
from heedful.studies.translation.arms import Workshop, development_feed
from heedful.studies.translation.format import TranslationFormat
from heedful.studies.translation.meter import training_name
from heedful.studies.translation.records import ELSEWHERE
from heedful.studies.translation.runs import (
    keep_model,
    table_of,
    watch,
)
from heedful.studies.translation.settings import Elsewhere
from heedful.tokenization import Tokenizer
from heedful.training import (
    FinishedRun,
    Hooks,
    Optimiser,
    Schedule,
    TrainingConfig,
    checkpoint,
    run_path,
    train_to_end,
)

LINE_BREAKS = ("Ċ", "<0x0A>", "\n")
"""How vocabularies write the end of a line: byte pairs, SentencePiece, characters."""
WATCHED = 16
"""Development sentences that a large model translates along the way."""
LONGEST = 512
"""Tokens of a pair, at most."""


@dataclass(frozen=True, eq=False)
class Visitor:
    """A checkpoint from elsewhere, ready to be fine-tuned."""

    settings: Elsewhere
    workshop: Workshop

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint, opened; no weight is read yet."""
        assert self.settings.model is not None
        found = open_checkpoint(self.settings.model)
        if found.tokenizer is None:
            raise InputError(
                "--model",
                f"{self.settings.model} has no tokenizer",
                way_out="put its tokenizer.json beside the weights",
            )
        return found

    @cached_property
    def name(self) -> str:
        """What the model is called."""
        return self.checkpoint.title or Path(str(self.settings.model)).name

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Its own tokenizer, with an end."""
        made = self.checkpoint.tokenizer
        assert made is not None
        if made.end is None and self.checkpoint.ends:
            made.end = self.checkpoint.ends[0]
        return made

    @cached_property
    def written(self) -> TranslationFormat:
        """How a pair is written for it."""
        tokenizer, corpus = self.tokenizer, self.workshop.corpus
        between = next((mark for mark in LINE_BREAKS if tokenizer.id_of(mark) is not None), None)
        if between is None or tokenizer.end is None:
            what = "no token for the end of a line" if between is None else "no mark that ends it"
            raise InputError("--model", f"{self.settings.model} has {what}", expected="both")
        begin = None if tokenizer.begin is None else tokenizer.token(tokenizer.begin)
        return TranslationFormat(
            begin=begin,
            between=between,
            end=str(tokenizer.token(tokenizer.end)),
            languages=corpus.train.languages,
            normalise="keyboard" if corpus.normalise == "keyboard" else "nfc",
        )

    @cached_property
    def parameters(self) -> int:
        """How many it has."""
        return parameter_count(self.checkpoint.config)

    def check(self) -> None:
        """Refuse a model that cannot be used, before anything is trained."""
        self.written.marks(self.tokenizer)

    def trained(self) -> int:
        """How many are trained."""
        if self.settings.tuning == "full":
            return self.parameters
        decoder = self._decoder()
        self._adapt(decoder)
        return trained_count(decoder)

    def on_pairs(self, pairs: int) -> FinishedRun:
        """Fine-tune on the first pairs."""
        setting, workshop = self.settings, self.workshop
        used = workshop.corpus.first(pairs)
        feed = bucketed(self._sequences(used), columns=setting.columns, seed=workshop.settings.seed)
        config = self._config(pairs, setting.steps)
        data = {"pairs": used.fingerprint, **self._hashes}
        folder = run_path(workshop.folder / "runs", f"{ELSEWHERE}-{pairs}", config, data)
        development = workshop.corpus.development.first(WATCHED)
        hooks = Hooks(
            evaluate=watch(
                folder,
                development,
                development_feed(development, self._sequences, workshop.settings.seed),
                self.tokenizer,
                self.written,
            ),
            report=workshop.progress.report(training_name(ELSEWHERE, pairs)),
            initial=self._decoder().state_dict(),
            adapt=self._adapt if setting.tuning == "lora" else None,
        )
        run = train_to_end(folder, config, feed, data=data, hooks=hooks)
        keep_model(folder, lambda: self._tuned(run), self.tokenizer, self.written)
        return run

    @cached_property
    def _hashes(self) -> dict[str, str]:
        files = self.checkpoint.source.files
        return {f"weights before: {file.name}": sha256_of(file) for file in files}

    def _decoder(self) -> Decoder:
        return self.checkpoint.decoder()

    def _adapt(self, decoder: Decoder) -> None:
        add_lora(decoder, self.settings.rank, seed=self.workshop.settings.seed)

    def _tuned(self, run: FinishedRun) -> Decoder:
        """Return the fine-tuned weights as one decoder: what LoRA added is merged."""
        if self.settings.tuning == "full":
            return run.decoder()
        found = checkpoint.newest(run.folder / "checkpoints").contents
        assert found is not None
        decoder = self._decoder()
        self._adapt(decoder)
        decoder.load_state_dict({**decoder.state_dict(), **found.model})
        merge_lora(decoder)
        return decoder.eval()

    def _sequences(self, pairs: Pairs) -> Sequences:
        marks = self.written.marks(self.tokenizer)
        made = pair_sequences(
            pairs,
            self.tokenizer.encode_batch,
            begin=marks.begin,
            between=marks.between,
            end=marks.end,
        )
        return made.without_longer(min(LONGEST, self.checkpoint.config.context))

    def _config(self, pairs: int, steps: int) -> TrainingConfig:
        setting = self.settings
        return TrainingConfig(
            model=self.checkpoint.config,
            data={"arm": ELSEWHERE, "pairs": pairs, **table_of(setting)},
            steps=steps,
            optimiser=Optimiser(learning_rate=setting.learning_rate, weight_decay=0.0),
            schedule=Schedule(kind="wsd", warmup=min(steps // 10, 20), decay=0.6, floor=0.0),
            seed=self.workshop.settings.seed,
            evaluate_every=max(steps // 2, 1),
            save_every=max(steps // 2, 1),
            log_every=1,
            tensorboard=False,
            compute=self.workshop.compute,
        )


def at_hand(name: str = "smollm2") -> bool:
    """Say whether a published model is in the user's cache."""
    return name in PUBLISHED and cached_path(name).is_file()
