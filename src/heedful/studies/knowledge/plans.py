"""Every setting of a knowledge study: its trainings, its arms, how much is stored, which corpus.

The recipes that have a name:

    embedded   the biographies that come with Heedful: minutes on two cores
    quick      the same, much smaller: it shows that everything runs, and proves nothing
    course     what the course hands out: characters, padded rows, 650 epochs
    cues       the course's files in minutes: facts asked for by name and cue, questions mixed in
    drop       the same without a rule written by hand: any words asked for, most others dropped
    ours       the same, with questions that a reader writes from the text: nearly all of those of
               the test are among them, so that it tells what is stored, not what is learned
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from heedful.model.config import Attention, DecoderConfig, Dropout, FeedForward, Norm
from heedful.positions.encodings import Learned, Rotary
from heedful.settings import Settings
from heedful.studies.knowledge.corpus import KnowledgeCorpus, embedded, from_files
from heedful.studies.knowledge.corruption import Spans
from heedful.studies.knowledge.findings import WITH, WITHOUT
from heedful.studies.parallel import usable_processes
from heedful.training.config import Compute, Optimiser, Schedule, TrainingConfig

PositionKind = Literal["learned", "rotary"]


class Stage(Settings):
    """One of the two trainings."""

    epochs: PositiveFloat
    """Passes over the texts of this stage, where no steps are given."""
    steps: PositiveInt | None = None
    """Steps of the optimiser, instead."""
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
    """What is taken out: anything (`random`); names, places and dates (`facts`); everything but
    the name and the plain words before a phrase (`cues`); or anything, and words before it at
    random (`drop`)."""
    of_answers: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """With `drop`: share of the texts whose span is the answer to some training question."""
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
    precision: Literal["float32", "bfloat16"] = "float32"
    """Of the products of every training."""
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
            # Fixed, never timed: the same plan gives the same numbers on a busy machine. A training
            # this small gains next to nothing from a second core.
            "compute": Compute(precision=self.precision, lanes=1, threads=1, compile=False),
        }
        return TrainingConfig(**{**settings, **changes})


@dataclass(frozen=True)
class ArmPlan:
    """One trained arm."""

    name: str
    folder: str
    """What its runs are called."""
    positions: PositionKind
    pretrained: bool

    def labels(self, seed: int) -> list[str]:
        """Return the labels of its runs, one for each stage."""
        stages = ["pretrain", "finetune"] if self.pretrained else ["finetune"]
        return [f"{self.folder}-{stage}-{seed}" for stage in stages]


NO_PRETRAINING = ArmPlan(WITHOUT, "none", "learned", False)
LEARNED = ArmPlan(WITH, "learned", "learned", True)
ROTARY = ArmPlan("pretraining, rotary", "rotary", "rotary", True)
ARMS = (NO_PRETRAINING, LEARNED, ROTARY)


@dataclass(frozen=True, kw_only=True)
class ArmTraining:
    """An arm with one seed: both of its stages."""

    arm: ArmPlan
    seed: int

    @property
    def labels(self) -> tuple[str, ...]:
        """What its runs are called."""
        return tuple(self.arm.labels(self.seed))


@dataclass(frozen=True, kw_only=True)
class StorageCase:
    """One small training."""

    series: str
    """What is varied."""
    label: str
    """Its value in words."""
    people: int
    """People, seen or not."""
    phrasings: int
    """Ways in which each birth place is said."""
    width: int
    """Of the decoder."""

    @property
    def labels(self) -> tuple[str, ...]:
        """What its run is called."""
        return (f"storage-{self.series}-{self.label.replace(' ', '-')}",)


Training = ArmTraining | StorageCase
"""One task of a study's plan of trainings."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StoragePlan:
    """Which small trainings are made, around one of them."""

    people: tuple[int, ...]
    """Numbers of people; the second one is that of all other cases."""
    widths: tuple[int, ...]
    """Widths of the decoder; the last one is that of all other cases."""
    exposures: int
    """Documents about each seen person."""
    evaluations: int
    """Points of a curve."""

    def cases(self) -> Iterator[StorageCase]:
        """Yield the cases; the one in the middle of all series comes once."""
        usual = self.people[min(1, len(self.people) - 1)]
        widest = self.widths[-1]
        for people in self.people:
            yield StorageCase(series="people", label=f"{people} people", people=people,
                              phrasings=self.exposures, width=widest)  # fmt: skip
        for width in self.widths[:-1]:
            yield StorageCase(series="width", label=f"width {width}", people=usual,
                              phrasings=self.exposures, width=width)  # fmt: skip
        yield StorageCase(series="phrasings", label="one phrasing", people=usual, phrasings=1,
                          width=widest)  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class StudyPlan:
    """What a study does, beside its corpus."""

    recipe: Recipe
    """Of every arm."""
    arms: tuple[ArmPlan, ...] = ARMS
    """What is trained; the last one's answers are judged."""
    seeds: int = 1
    """How many decoders are trained for each arm."""
    seed: int = 0
    """The first of their seeds."""
    wanted_error: float = 0.1
    """The error rate for which the abstention threshold is chosen."""
    unseen: int = 240
    """Names asked about that nobody has."""
    storage: StoragePlan | None = None
    """The small trainings; None: none."""
    storage_recipe: Recipe | None = None
    """How these are trained."""
    quick: bool = False
    """Whether this only tries the machinery."""
    processes: int = 1
    """Trainings at once, each in a process of its own; 1: one after the other, in this one."""

    @property
    def all_seeds(self) -> range:
        """The seeds of every arm."""
        return range(self.seed, self.seed + self.seeds)

    @property
    def cases(self) -> tuple[StorageCase, ...]:
        """The small trainings, in the order in which they are shown."""
        return () if self.storage is None else tuple(self.storage.cases())

    def trainings(self) -> list[Training]:
        """Return every training, the long ones first, so that no process waits for the last."""
        arms = [ArmTraining(arm=arm, seed=seed) for arm in self.arms for seed in self.all_seeds]
        return [
            *(one for one in arms if one.arm.pretrained),
            *sorted(self.cases, key=lambda case: -case.people),
            *(one for one in arms if not one.arm.pretrained),
        ]


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

DROP = CUES.changed(
    spans="drop",
    of_answers=0.9,
    shape=Shape(width=192, layers=2, heads=6),
    pretraining=CUES.pretraining.changed(steps=1_600),
)
"""As `cues`, but nothing says what a name, a date or a place is: the first words of a document
stay, others are dropped at random, and nine spans in ten are answers of training questions. A
narrower decoder: it learned as much in a step, at little more than half the work."""

OURS = CUES.changed(
    variants=8,
    self_questions=True,
    pretraining=CUES.pretraining.changed(epochs=4, steps=1_200, warmup=0.02, decay=0.3),
)
"""The same with questions that a reader, learned from the training questions, writes about the
other documents."""

FileRecipe = Literal["cues", "drop", "ours", "course"]
"""How files can be learned."""
FILE_RECIPES: dict[FileRecipe, Recipe] = {
    "cues": CUES,
    "drop": DROP,
    "ours": OURS,
    "course": COURSE,
}


PEOPLE, UNSEEN = 500, 0.4
"""In the embedded study, and the share of them that no text has."""
EXPOSURES = 4
"""Documents about each of them, each in words of its own."""
SEEDS = 2
STORAGE_PLAN = StoragePlan(people=(75, 150, 300), widths=(32, 64), exposures=4, evaluations=4)
QUICK_STORAGE = StoragePlan(people=(40, 60), widths=(16, 32), exposures=2, evaluations=2)
QUICK_FILES = QUICK.changed(context=128, vocabulary=1_000)


def plan_for(
    files: tuple[Path, Path, Path] | None = None,
    *,
    recipe: FileRecipe = "cues",
    quick: bool = False,
    seed: int = 0,
    changes: dict[str, Any] | None = None,
) -> tuple[KnowledgeCorpus, StudyPlan]:
    """Return the corpus and the plan; `changes` that are None change nothing.

    Changes may name `objective` or `steps` of pretraining, the only `positions` to be trained,
    `seeds`, `wanted_error`.
    """
    if files is not None:
        corpus = from_files(*files)
        base = QUICK_FILES if quick else FILE_RECIPES[recipe]
        plan = StudyPlan(recipe=base, seed=seed, quick=quick)
    elif quick:
        corpus = embedded(60, seed=seed, exposures=2, phrasings=2, sentences=1)
        plan = StudyPlan(recipe=QUICK, seed=seed, quick=True, unseen=24, storage=QUICK_STORAGE,
                         storage_recipe=QUICK.changed(questions_mixed=1))  # fmt: skip
    else:
        corpus = embedded(PEOPLE, seed=seed, exposures=EXPOSURES, phrasings=EXPOSURES,
                          unseen_share=UNSEEN, sentences=1)  # fmt: skip
        plan = StudyPlan(recipe=EMBEDDED, seed=seed, seeds=SEEDS, storage=STORAGE_PLAN,
                         storage_recipe=STORAGE)  # fmt: skip
    return corpus, _changed(plan, changes or {})


def _changed(plan: StudyPlan, changes: dict[str, Any]) -> StudyPlan:
    given = {name: value for name, value in changes.items() if value is not None}
    recipe: Recipe = plan.recipe
    if "steps" in given:
        recipe = recipe.changed(pretraining=recipe.pretraining.changed(steps=given["steps"]))
    if "objective" in given:
        recipe = recipe.changed(objective=given["objective"])
    arms = plan.arms
    if "positions" in given:
        # The arm without pretraining has them too: the two differ in nothing else.
        arms = tuple(
            replace(arm, positions=given["positions"])
            for arm in arms
            if not arm.pretrained or arm.positions == given["positions"]
        )
    return replace(
        plan,
        recipe=recipe,
        arms=arms,
        seeds=given.get("seeds", plan.seeds),
        wanted_error=given.get("wanted_error", plan.wanted_error),
        processes=1 if plan.quick else usable_processes(),
    )
