"""Every setting of one training of the study, and the recipes that have a name.

embedded   the biographies that come with Heedful: minutes on two cores
quick      the same, much smaller: it shows that everything runs, and proves nothing
course     what the course hands out: characters, padded rows, 650 epochs
cues       the course's files in minutes: facts asked for by name and cue, questions mixed in
ours       the same, with questions that a reader writes from the text
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from heedful.model.config import (
    Attention,
    DecoderConfig,
    Dropout,
    FeedForward,
    Learned,
    Norm,
    Rotary,
)
from heedful.settings import Settings
from heedful.studies.knowledge.corruption import Spans
from heedful.training.config import Compute, Optimiser, Schedule, TrainingConfig

PositionKind = Literal["learned", "rotary"]


class Stage(Settings):
    """One of the two trainings."""

    epochs: PositiveFloat
    """Passes over the texts of this stage, where neither steps nor minutes are given."""
    steps: PositiveInt | None = None
    """Steps of the optimiser, instead."""
    minutes: PositiveFloat | None = None
    """About how long it may take, instead."""
    rows: PositiveInt = 32
    """Rows in a batch."""
    learning_rate: PositiveFloat = 1e-3
    """The highest rate."""
    optimiser: Literal["adamw", "muon"] = "muon"
    """`muon` for the matrices of the blocks, or `adamw` for everything."""
    schedule: Literal["cosine", "wsd", "constant"] = "wsd"
    """How the rate falls."""
    warmup: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.05
    """Share of the steps until the rate is at its highest."""
    decay: Annotated[float, Field(gt=0.0, le=1.0)] = 0.5
    """Share of the steps in which `wsd` decays."""
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.1
    """Of matrices and embeddings."""


class Shape(Settings):
    """The decoder, but for its vocabulary and its positions."""

    width: PositiveInt = 128
    layers: PositiveInt = 2
    heads: PositiveInt = 4
    qk_norm: bool = True
    """Whether queries and keys are scaled to unit root mean square."""
    modern: bool = True
    """RMSNorm and SwiGLU without biases; else LayerNorm and GELU with biases, as GPT-2."""
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    """Of embeddings, attention and what each part adds."""

    def config(self, vocabulary: int, context: int, positions: PositionKind) -> DecoderConfig:
        """Return the decoder with these sizes."""
        drop = Dropout(embedding=self.dropout, attention=self.dropout, residual=self.dropout)
        where = Rotary() if positions == "rotary" else Learned()
        sizes: dict[str, Any] = {
            "vocabulary": vocabulary,
            "context": context,
            "width": self.width,
            "layers": self.layers,
            "positions": where,
            "dropout": drop,
        }
        if self.modern:
            hidden = round(self.width * 8 / 3 / 32) * 32 or 32
            return DecoderConfig(
                **sizes,
                attention=Attention(heads=self.heads, qk_norm=self.qk_norm),
                feed_forward=FeedForward(activation="swiglu", width=hidden),
                norm=Norm(kind="rms"),
            )
        return DecoderConfig(
            **sizes,
            attention=Attention(
                heads=self.heads, qkv_bias=True, output_bias=True, qk_norm=self.qk_norm
            ),
            feed_forward=FeedForward(activation="gelu", bias=True),
        )


class Recipe(Settings):
    """How a decoder learns from documents, and then to answer."""

    tokenizer: Literal["characters", "bytes", "bpe"] = "bpe"
    """What one token is."""
    vocabulary: PositiveInt = 600
    """Ids of a `bpe` tokenizer."""
    context: PositiveInt = 80
    """Longest text in tokens; a question with its answer must fit."""
    objective: Literal["spans", "next"] = "spans"
    """Span corruption, or plain next-token prediction."""
    spans: Spans = "facts"
    """What is taken out: anything (`random`); names, places and dates (`facts`); or everything
    but the name and the plain words before a phrase (`cues`)."""
    variants: PositiveInt = 4
    """Corruptions of each document in one epoch."""
    learn_all: bool = True
    """Whether every token is learned; else the span alone."""
    questions_mixed: NonNegativeInt = 0
    """How often the fine-tuning questions stand in an epoch of pretraining."""
    self_questions: bool = False
    """Whether questions that a reader writes from the documents stand there as often."""
    layout: Literal["bucketed", "packed", "padded"] = "bucketed"
    """Texts of like length together; several in a row; or one a row of full width, as in the
    course."""
    curve: NonNegativeInt = 0
    """How often the test is asked along pretraining, for a curve; nothing is chosen by it."""
    shape: Shape = Shape()
    pretraining: Stage
    finetuning: Stage
    alone: Stage | None = None
    """Fine-tuning where nothing came before it, which takes longer; None: the same."""

    def training(
        self, stage: Stage, model: DecoderConfig, batches: int, seed: int, **changes: Any
    ) -> TrainingConfig:
        """Return one stage as the training room knows it, for an epoch of so many batches."""
        steps = stage.steps or max(round(stage.epochs * batches), 2)
        settings: dict[str, Any] = {
            "model": model,
            "steps": steps,
            "optimiser": Optimiser(
                kind=stage.optimiser,
                learning_rate=stage.learning_rate,
                weight_decay=stage.weight_decay,
            ),
            "schedule": Schedule(
                kind=stage.schedule,
                warmup=min(round(stage.warmup * steps), steps - 1),
                floor=0.05,
                decay=stage.decay,
            ),
            "seed": seed,
            "evaluate_every": steps,
            "save_every": max(steps, 1) if steps < 2_000 else 1_000,
            "log_every": max(steps // 50, 1),
            "tensorboard": False,
            "compute": Compute(compile=False),
        }
        return TrainingConfig(**{**settings, **changes})


EMBEDDED = Recipe(
    context=64,
    variants=1,
    pretraining=Stage(epochs=36, rows=16, learning_rate=1e-2),
    finetuning=Stage(epochs=8, rows=8, learning_rate=2e-3),
)
"""For short documents with one fact each."""

STORAGE = EMBEDDED.changed(
    questions_mixed=1,
    pretraining=EMBEDDED.pretraining.changed(epochs=24),
)
"""Questions are mixed in, so that one can ask at any time."""

QUICK = EMBEDDED.changed(
    shape=Shape(width=32, layers=1, heads=2),
    pretraining=EMBEDDED.pretraining.changed(epochs=4),
    finetuning=EMBEDDED.finetuning.changed(epochs=4),
)
"""Seconds; it learns next to nothing."""

COURSE = Recipe(
    tokenizer="characters",
    context=128,
    spans="random",
    variants=13,
    layout="padded",
    shape=Shape(width=256, layers=4, heads=8, qk_norm=False, modern=False, dropout=0.1),
    pretraining=Stage(
        epochs=50, rows=128, learning_rate=6e-3, optimiser="adamw", schedule="cosine", warmup=0.01
    ),
    finetuning=Stage(
        epochs=10, rows=256, learning_rate=6e-4, optimiser="adamw", schedule="cosine", warmup=0.01
    ),
)
"""13 corruptions of each document, 50 times: the 650 epochs of the course."""

CUES = Recipe(
    tokenizer="bpe",
    vocabulary=2_000,
    context=128,
    spans="cues",
    variants=16,
    learn_all=False,
    questions_mixed=8,
    layout="packed",
    curve=10,
    shape=Shape(width=256, layers=2, heads=8),
    pretraining=Stage(epochs=2, steps=3_000, rows=8, learning_rate=3e-3, warmup=0.04, decay=1 / 3),
    finetuning=Stage(epochs=2, rows=8, learning_rate=2e-4),
    alone=Stage(epochs=20, rows=8, learning_rate=3e-3),
)
"""For files such as the course's: only names and what leads to a fact are left standing, several
texts in each row, the training questions mixed in. Nothing but the text and these is used."""

OURS = CUES.changed(
    variants=8,
    self_questions=True,
    pretraining=CUES.pretraining.changed(epochs=4, steps=1_200, warmup=0.02, decay=0.3),
)
"""The same with questions that a reader, learned from the training questions, writes about the
other documents."""

RECIPES = {"embedded": EMBEDDED, "quick": QUICK, "course": COURSE, "cues": CUES, "ours": OURS}
"""By name."""
