"""Everything that decides a study of translation: one frozen, validated table.

The defaults are for the phrasebook: some minutes on two cores. `--recipe FILE.toml` replaces
any of them, for larger corpora and longer evenings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from heedful.errors import ConfigError
from heedful.model.config import (
    Attention,
    DecoderConfig,
    Dropout,
    FeedForward,
    Norm,
    Rotary,
)
from heedful.model.settings import Settings

Share = Annotated[float, Field(ge=0.0, lt=1.0)]


class Shape(Settings):
    """The decoder that is trained here, twice: from scratch, and after pretraining."""

    width: PositiveInt = 128
    layers: PositiveInt = 4
    heads: PositiveInt = 4
    hidden: PositiveInt = 352
    """Of the SwiGLU part."""
    dropout: Share = 0.1
    """Of embeddings and of what each part adds; attention weights are left alone."""
    context: PositiveInt = 160
    """Tokens of the longest pair; longer ones are left out."""

    def config(self, vocabulary: int) -> DecoderConfig:
        """Return the whole config for a vocabulary."""
        return DecoderConfig(
            vocabulary=vocabulary,
            context=self.context,
            width=self.width,
            layers=self.layers,
            attention=Attention(heads=self.heads),
            feed_forward=FeedForward(activation="swiglu", width=self.hidden),
            norm=Norm(kind="rms"),
            positions=Rotary(),
            dropout=Dropout(embedding=self.dropout, residual=self.dropout),
        )


class Learning(Settings):
    """One training."""

    steps: PositiveInt
    """At most."""
    epochs: PositiveInt = 1_000
    """Passes over the data, at most: few pairs need fewer steps."""
    columns: PositiveInt = 2_048
    """Tokens of a batch, at most."""
    batches: PositiveInt = 12
    """Of an epoch, at least: few pairs come in small batches, so that there are steps enough."""
    learning_rate: PositiveFloat = 5e-3
    matrix_learning_rate: PositiveFloat = 1e-2
    """Of Muon."""
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.05
    label_smoothing: Share = 0.0
    whole: bool = False
    """Whether the source is learned too, not only its translation."""


class Elsewhere(Settings):
    """The arm that was pretrained by others."""

    model: str | None = None
    """A published name, a folder, or a file of weights. None: no such arm."""
    tuning: Literal["lora", "full"] = "lora"
    rank: PositiveInt = 16
    """Of LoRA."""
    steps: PositiveInt = 60
    epochs: PositiveInt = 10
    columns: PositiveInt = 768
    """Tokens of a batch."""
    learning_rate: PositiveFloat = 1e-3
    sizes: tuple[PositiveInt, ...] = ()
    """Numbers of pairs; none: the sizes of the study."""
    sentences: PositiveInt = 150
    """Test sentences: large models are slow."""


class StudySettings(Settings):
    """The whole study.

    >>> StudySettings().sizes
    (500, 2000, 8000)
    """

    corpus: tuple[str, ...] = ()
    """Files of pairs; none: the phrasebook."""
    test: tuple[str, ...] = ()
    """Files of pairs to be judged by; none: a part of the corpus."""
    monolingual: tuple[str, ...] = ()
    """Text in the source and in the target language, for pretraining here."""
    source: str | None = None
    """The language to translate from, where the files name theirs; the first side otherwise."""
    sizes: tuple[PositiveInt, ...] = (500, 2_000, 8_000)
    """Numbers of pairs, ascending."""
    sentences: PositiveInt = 500
    """Test sentences, at most."""
    development: PositiveInt = 100
    """Sentences that are translated during training."""
    evaluations: PositiveInt = 5
    """Looks at the development sentences in each training."""
    same_clock: tuple[PositiveInt, ...] = (8_000,)
    """Sizes at which scratch is also trained for as long as pretraining and fine-tuning take."""
    vocabulary: PositiveInt = 2_000
    """Ids of the byte pairs that both arms share."""
    shape: Shape = Shape()
    scratch: Learning = Learning(steps=500, epochs=60)
    pretraining: Learning = Learning(steps=500, columns=4_096)
    fine_tuning: Learning = Learning(steps=500, epochs=60)
    texts: PositiveInt = 20_000
    """Sentences of pretraining text in each language, of the phrasebook's."""
    elsewhere: Elsewhere = Elsewhere()
    seed: NonNegativeInt = 0

    def model_post_init(self, _context: object) -> None:
        """Check the settings against one another."""
        if not self.sizes or list(self.sizes) != sorted(set(self.sizes)):
            raise ConfigError(
                "sizes",
                f"are {', '.join(map(str, self.sizes)) or 'none'}",
                expected="different numbers of pairs, ascending",
            )
        if self.monolingual and len(self.monolingual) != 2:
            raise ConfigError(
                "monolingual",
                f"are {len(self.monolingual)} files",
                expected="two: the source language and the target language",
            )
        if self.test and not self.corpus:
            raise ConfigError(
                "test",
                "is given without a corpus",
                expected="the phrasebook has its own test",
                way_out="give --corpus too",
            )


QUICK: dict[str, Any] = {
    "sizes": (200, 400),
    "same_clock": (400,),
    "sentences": 60,
    "development": 20,
    "evaluations": 2,
    "vocabulary": 600,
    "texts": 400,
    "shape": {"width": 48, "layers": 2, "heads": 4, "hidden": 128},
    "scratch": {"steps": 40, "columns": 1_024},
    "pretraining": {"steps": 40, "columns": 1_024},
    "fine_tuning": {"steps": 40, "columns": 1_024},
    "elsewhere": {"steps": 4, "columns": 256, "sentences": 10},
}
"""A smoke test: everything happens, nothing is learned well."""


def study_settings(base: dict[str, Any], *changes: dict[str, Any]) -> StudySettings:
    """Return settings from tables, later ones first; tables inside are merged."""
    merged = StudySettings().model_dump()
    for table in (base, *changes):
        merged = _merged(merged, table)
    return StudySettings.of(merged)


def recipe_of(path: Path | None) -> dict[str, Any]:
    """Read a recipe; none is no changes."""
    if path is None:
        return {}
    from heedful.training.config import read_values

    return read_values(path)


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    made = dict(base)
    for name, value in changes.items():
        known = made.get(name)
        both = isinstance(known, dict) and isinstance(value, dict)
        made[name] = _merged(known, value) if both else value
    return made
