"""Everything that decides a study of translation: one frozen, validated table.

The defaults are for the phrasebook: some minutes on two cores. `--recipe FILE.toml` replaces
any of them, for larger corpora and longer evenings.
"""

from __future__ import annotations

import math
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from heedful.errors import ConfigError
from heedful.model.config import Attention, DecoderConfig, Dropout, FeedForward, Norm
from heedful.positions.encodings import Rotary
from heedful.settings import Settings
from heedful.training.config import merged, read_values

Share = Annotated[float, Field(ge=0.0, lt=1.0)]


class TranslatorShape(Settings):
    """The decoder that is trained here, twice: from scratch, and after pretraining."""

    width: PositiveInt = 128
    """Of the residual stream."""
    layers: PositiveInt = 3
    """Blocks."""
    heads: PositiveInt = 4
    """Of each block."""
    hidden: PositiveInt = 256
    """Width of the SwiGLU part."""
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
            attention=Attention(heads=self.heads, qk_norm=True),
            feed_forward=FeedForward(activation="swiglu", width=self.hidden),
            norm=Norm(kind="rms"),
            positions=Rotary(),
            dropout=Dropout(embedding=self.dropout, residual=self.dropout),
        )


class Learning(Settings):
    """One training."""

    steps: PositiveInt
    """With all the data."""
    growth: Annotated[float, Field(ge=0.0, le=1.0)] = 0.5
    """With n of N pairs, steps × (n/N)^growth are taken: fewer, and yet more passes."""
    columns: PositiveInt = 1_024
    """Tokens of a batch, at most."""
    batches: PositiveInt = 12
    """Of an epoch, at least: few pairs come in small batches, so that there are steps enough."""
    learning_rate: PositiveFloat = 5e-3
    """Of AdamW: embeddings and gains."""
    matrix_learning_rate: PositiveFloat = 1e-2
    """Of Muon: the matrices of the blocks."""
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.05
    """Of both."""
    label_smoothing: Share = 0.0
    """Share of each target that is spread over the vocabulary."""
    whole: bool = False
    """Whether the source is learned too, not only its translation."""

    def steps_for(self, share: float) -> int:
        """Return the steps for a share of the data.

        >>> Learning(steps=600).steps_for(0.25)
        300
        """
        return max(round(self.steps * math.pow(share, self.growth)), 1)


class Elsewhere(Settings):
    """The arm that was pretrained by others."""

    model: str | None = None
    """A published name, a folder, or a file of weights. None: no such arm."""
    tuning: Literal["lora", "full"] = "lora"
    """Small additions beside frozen weights, or everything."""
    lanes: PositiveInt = 2
    """Threads that share each batch of its trainings, whatever the number of cores. With one, these
    run side by side, as those of the other arms do: each may take two gigabytes."""
    rank: PositiveInt = 16
    """Of LoRA."""
    steps: PositiveInt = 60
    """At every size."""
    same_work: bool = False
    """Whether it takes as many operations as the arm that is pretrained here takes in all, instead
    of `steps`."""
    columns: PositiveInt = 768
    """Tokens of a batch."""
    learning_rate: PositiveFloat = 1e-3
    """Of AdamW."""
    full_sizes: tuple[PositiveInt, ...] = ()
    """Numbers of pairs at which all of its weights are tuned too, from the first seed."""
    full_learning_rate: PositiveFloat = 1e-4
    """Of AdamW, where all weights are tuned beside LoRA."""
    examples: NonNegativeInt = 0
    """Pairs that are put before each source where it is only prompted; 0: it is not."""
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
    others: PositiveInt = 200
    """Sentences of each further test set, at most."""
    development: PositiveInt = 60
    """Sentences that are translated during training."""
    evaluations: PositiveInt = 4
    """Looks at the development sentences in each training."""
    early_stopping: bool = False
    """Whether each training on pairs ends in the weights of the look with the lowest loss on the
    development sentences. All steps are taken all the same, so that work stays equal."""
    seeds: tuple[PositiveInt, ...] = ()
    """Trainings of each arm at each of the sizes, every one with another draw of the pairs; none:
    one at every size. The arms that cost most, all weights and the same work, get one."""
    same_work: tuple[PositiveInt, ...] | None = None
    """Sizes at which scratch is also trained with as many operations as the other arm takes in
    all. None: the middle one of the sizes."""
    vocabulary: PositiveInt = 2_000
    """Ids of the byte pairs that both arms share."""
    shape: TranslatorShape = TranslatorShape()
    scratch: Learning = Learning(steps=400)
    pretraining: Learning = Learning(steps=200, columns=2_048)
    fine_tuning: Learning = Learning(steps=400)
    restoring: bool = True
    """Whether pretraining restores jumbled sentences of the target language; else it only
    continues them."""
    texts: PositiveInt = 20_000
    """Sentences of pretraining text in each language, of the phrasebook's."""
    elsewhere: Elsewhere = Elsewhere()
    precision: Literal["float32", "bfloat16"] = "float32"
    """Of the products of every training. It is never chosen by timing: the same settings give the
    same numbers on a busy machine."""
    lanes: PositiveInt = 1
    """Threads that share each batch of an arm that is trained here, whatever the number of cores:
    the order of sums is theirs. So small a decoder gains little from a second thread; its trainings
    run side by side instead."""
    processes: PositiveInt | None = None
    """Trainings of these arms at once, each in a process of its own; 1: one after the other, in
    this one. None: as many as there are cores, up to 4. It decides nothing but how long the study
    takes, and is not in the record."""
    seed: NonNegativeInt = 0
    """Of the phrasebook, the order of the pairs and the first weights."""

    def model_post_init(self, _context: object) -> None:
        """Check the settings against one another."""
        if not self.sizes or list(self.sizes) != sorted(set(self.sizes)):
            raise ConfigError(
                "sizes",
                f"are {', '.join(map(str, self.sizes)) or 'none'}",
                expected="different numbers of pairs, ascending",
            )
        for name, several in (
            ("elsewhere.sizes", self.elsewhere.sizes),
            ("elsewhere.full_sizes", self.elsewhere.full_sizes),
            ("same_work", self.worked),
        ):
            strange = sorted(set(several) - set(self.sizes))
            if strange:
                raise ConfigError(
                    name,
                    f"has {strange[0]:,} pairs",
                    expected=f"some of the sizes of the study: {', '.join(map(str, self.sizes))}",
                )
        if self.seeds and len(self.seeds) != len(self.sizes):
            raise ConfigError(
                "seeds",
                f"are {len(self.seeds)} numbers",
                expected=f"one for each of the {len(self.sizes)} sizes",
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
                hint="give --corpus too",
            )

    def draws(self, pairs: int) -> range:
        """Return the numbers of the trainings at a size: what is added to the seed."""
        return range(self.seeds[self.sizes.index(pairs)] if self.seeds else 1)

    @property
    def worked(self) -> tuple[int, ...]:
        """The sizes of `scratch, same work`."""
        if self.same_work is None:
            return (self.sizes[len(self.sizes) // 2],)
        return self.same_work


QUICK: dict[str, Any] = {
    "sizes": (200, 400),
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
    "processes": 1,
}
"""A smoke test: everything happens, nothing is learned well. To start processes takes as long as
its trainings."""


def study_settings(base: dict[str, Any], *changes: dict[str, Any]) -> StudySettings:
    """Return settings from tables, later ones first; tables inside are merged."""
    return StudySettings.of(reduce(merged, (base, *changes), StudySettings().model_dump()))


def recipe_of(path: Path | None) -> dict[str, Any]:
    """Read a recipe; none is no changes."""
    return {} if path is None else read_values(path)
