"""How many bits a decoder stores in a parameter, and after how many readings of each fact.

People are drawn, so that it is known how much there is to know. A name is two pieces, and each of
four attributes has a value of two pieces, every piece one of 256, independent of all others:

    begin  piece piece   label piece piece   label piece piece   label piece piece   label …
           name          first attribute     second              third               fourth

After arXiv:2404.05405, a decoder that needs a loss of ℓ_name bits for a name and of ℓ_value bits
for the values of a person, in the text it was trained on, has stored of N people

    N (log₂ 256² − ℓ_name) + N (log₂ 256⁸ − ℓ_value)    bits

at least: so many were needed to write these people down, less what is still missing. (The best
ℓ_name is log₂ N: which N of all names there are can be stored, their order cannot.) Divided by the
number of parameters, embeddings included, this is the capacity that was used.

Stored is not yet at hand. The bits *asked for* are those of values that follow right after the
name: begin, name, label, value. With the same text in every reading an attribute always follows
others, and a decoder may store it under these; in varied text every reading of a person has the
attributes in another order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float64, Int
from torch import Tensor

from heedful.data.batches import Batches, Sequences, one_in_each_row
from heedful.files import write_atomic
from heedful.model import Decoder
from heedful.model.config import Attention, DecoderConfig, FeedForward, Norm
from heedful.model.cost import flops_per_token, parameter_count
from heedful.positions.encodings import Rotary
from heedful.progress import Step
from heedful.stats import Estimate, bootstrap_mean
from heedful.studies.knowledge.findings import CAPACITY_RECORD, CapacityPoint, CapacityStudy
from heedful.training import FinishedRun, Hooks, run_path, train_to_end
from heedful.training.config import Compute, Optimiser, Schedule, TrainingConfig
from heedful.training.hooks import Progress

PIECES = 256
"""What a piece of a name or of a value may be: 8 bits."""
ATTRIBUTES, PARTS = 4, 2
"""Attributes of a person, and pieces of a value."""
BEGIN = PIECES + ATTRIBUTES
"""After the pieces come the labels of the attributes, then the mark of a beginning."""
NAME_BITS = 2 * math.log2(PIECES)
VALUE_BITS = ATTRIBUTES * PARTS * math.log2(PIECES)
FIELD = 1 + PARTS
LENGTH = 3 + ATTRIBUTES * FIELD
"""Tokens of a person's text."""
AVAILABLE = 2.5
"""Bits of values to be learned for each parameter: more than the two that were seen stored."""
ORDERS = 10
"""Texts of a person where they are varied; every number of exposures is a multiple of it."""
FEW_STEPS = 1_500
"""Steps of a training at least, where the smallest batches are that small."""
LEAST_ROWS, MOST_ROWS = 32, 256
ROWS_AT_ONCE = 2_048
Losses = Float64[np.ndarray, " people"]


@dataclass(frozen=True, kw_only=True)
class CapacityPlan:
    """Which decoders are trained, and for how long."""

    widths: tuple[int, ...] = (40, 64, 96, 144, 192)
    """About 0.05, 0.1, 0.25, 0.5 and 0.9 million parameters."""
    exposures: tuple[int, ...] = (10, 30, 100, 300, 1_000)
    """How often each person is read."""
    budget: float = 8.1e13
    """Operations of all trainings at most, about 50 minutes of one processor without bfloat16: what
    would take more is left out, the dearest first."""
    seeds: int = 3
    """Trainings of a cell, where they are cheap."""
    cheap: float = 3e11
    """Operations up to which a cell is trained with every seed."""
    seed: int = 0
    quick: bool = False

    def cells(self) -> list[Cell]:
        """Return what is trained, the cheapest first.

        Every size is, at its fewest exposures, and the smallest at all of them.
        """
        every = [
            Cell(width=width, exposures=exposures, varied=varied)
            for width in self.widths
            for exposures in self.exposures
            for varied in (False, True)
        ]
        fewest, smallest = min(self.exposures), min(self.widths)
        spent, chosen = 0.0, list[Cell]()

        def needed(cell: Cell) -> bool:
            return cell.width == smallest or (cell.exposures == fewest and not cell.varied)

        for cell in sorted(every, key=lambda one: (not needed(one), one.work)):
            work = cell.work * len(self.seeds_of(cell))
            if needed(cell) or spent + work <= self.budget:
                chosen.append(cell)
                spent += work
        return sorted(chosen, key=lambda one: one.work)

    def seeds_of(self, cell: Cell) -> range:
        """Return the seeds with which a cell is trained."""
        return range(self.seed, self.seed + (self.seeds if cell.work <= self.cheap else 1))


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One size, one number of exposures, one kind of text."""

    width: int
    exposures: int
    varied: bool

    @property
    def config(self) -> DecoderConfig:
        """The decoder: two layers, as GPT-2 but for rotary positions, RMSNorm, normed queries."""
        return DecoderConfig(
            vocabulary=BEGIN + 1,
            context=LENGTH - 1,
            width=self.width,
            layers=2,
            attention=Attention(heads=2, qk_norm=True),
            feed_forward=FeedForward(activation="gelu"),
            norm=Norm(kind="rms"),
            positions=Rotary(),
        )

    @property
    def parameters(self) -> int:
        """Trained numbers, embeddings included."""
        return parameter_count(self.config)

    @property
    def people(self) -> int:
        """So many that there are `AVAILABLE` bits of values for each parameter."""
        return round(AVAILABLE * self.parameters / VALUE_BITS)

    @property
    def rows(self) -> int:
        """People in a batch: a power of two that leaves about `FEW_STEPS` steps or more."""
        wanted = self.people * self.exposures / FEW_STEPS
        return int(np.clip(2 ** round(math.log2(wanted)), LEAST_ROWS, MOST_ROWS))

    @property
    def work(self) -> float:
        """Operations of its training."""
        read = self.people * self.exposures * (LENGTH - 1)
        return float(read * flops_per_token(self.config, training=True))

    def label(self, seed: int) -> str:
        """Return what its run is called."""
        text = "varied" if self.varied else "same"
        return f"capacity-{self.width}-{self.exposures}-{text}-{seed}"


@dataclass(frozen=True, eq=False, kw_only=True)
class People:
    """People who do not exist, as pieces."""

    names: Int[np.ndarray, "people 2"]
    values: Int[np.ndarray, "people attributes parts"]

    @classmethod
    def drawn(cls, count: int, seed: int) -> People:
        """Draw people with names of their own and values independent of everything."""
        draw = np.random.default_rng(np.random.SeedSequence([seed, 19]))
        names = draw.permutation(PIECES**2)[:count]
        return cls(
            names=np.stack([names // PIECES, names % PIECES], axis=1),
            values=draw.integers(PIECES, size=(count, ATTRIBUTES, PARTS)),
        )

    def texts(self, orders: Int[np.ndarray, "people attributes"]) -> Int[np.ndarray, "people _"]:
        """Return the text of everybody, with the attributes in these orders.

        >>> People.drawn(5, seed=0).texts(np.tile(np.arange(4), (5, 1))).shape
        (5, 15)
        """
        count = len(self.names)
        texts = np.empty((count, LENGTH), dtype=np.int64)
        texts[:, 0] = BEGIN
        texts[:, 1:3] = self.names
        for place in range(ATTRIBUTES):
            chosen, start = orders[:, place], 3 + FIELD * place
            texts[:, start] = PIECES + chosen
            texts[:, start + 1 : start + FIELD] = self.values[np.arange(count), chosen]
        return texts

    def read(self, cell: Cell, seed: int) -> Int[np.ndarray, "texts _"]:
        """Return the texts that a training reads, each as often as the others."""
        count = len(self.names)
        usual = np.tile(np.arange(ATTRIBUTES), (count, 1))
        if not cell.varied:
            return self.texts(usual)
        draw = np.random.default_rng(np.random.SeedSequence([seed, 23]))
        return np.concatenate([self.texts(draw.permuted(usual, axis=1)) for _ in range(ORDERS)])


def study_capacity(plan: CapacityPlan, folder: Path, progress: Step | None = None) -> CapacityStudy:
    """Train every cell of the plan, measure what it stored, and write the record.

    A study that is stopped leaves a record of the cells that it has finished; the others are
    named there as left out.
    """
    cells = plan.cells()
    everything = sum(cell.work * len(plan.seeds_of(cell)) for cell in cells)
    done = 0.0
    points: list[CapacityPoint] = []
    try:
        for cell in cells:
            measured: list[Measured] = []
            for seed in plan.seeds_of(cell):

                def tell(share: float, before: float = done, cell: Cell = cell) -> None:
                    if progress is not None:
                        progress(round(1_000 * (before + share * cell.work) / everything), 1_000)

                measured.append(train_and_measure(cell, folder / "runs", seed, tell))
                done += cell.work
            points.append(_point(cell, measured))
    finally:
        study = _record(plan, cells[: len(points)], points)
        if points:
            write_atomic(folder / CAPACITY_RECORD, study.to_json())
    return study


def _record(
    plan: CapacityPlan, trained: Sequence[Cell], points: Sequence[CapacityPoint]
) -> CapacityStudy:
    """Return what is known once these cells are trained."""
    return CapacityStudy(
        points=tuple(sorted(points, key=lambda one: (one.varied, one.parameters, one.exposures))),
        left_out=_left_out(plan, trained),
        processor_minutes=sum(one.processor_minutes for one in points),
        work=sum(one.work for one in points),
        name_bits=NAME_BITS,
        value_bits=VALUE_BITS,
        quick=plan.quick,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Measured:
    """What one decoder stored of each person, in bits."""

    stored: Losses
    asked: Losses
    """Of the values alone, each asked for right after the name."""
    work: float
    processor_minutes: float


def train_and_measure(
    cell: Cell, folder: Path, seed: int, tell: Callable[[float], None] = lambda _share: None
) -> Measured:
    """Train one decoder, or find it trained, and return what it stored."""
    people = People.drawn(cell.people, seed)
    texts = people.read(cell, seed)
    run = _trained(cell, texts, folder, seed, tell)
    decoder = run.decoder().eval()
    stored = NAME_BITS + VALUE_BITS - stored_losses(decoder, texts[-cell.people :])
    return Measured(
        stored=stored,
        asked=VALUE_BITS - asked_losses(decoder, people),
        work=cell.work,
        processor_minutes=run.processor_seconds / 60,
    )


def _trained(
    cell: Cell,
    texts: Int[np.ndarray, "texts _"],
    folder: Path,
    seed: int,
    tell: Callable[[float], None],
) -> FinishedRun:
    count = len(texts)
    sequences = Sequences(
        tokens=texts.astype(np.int32).reshape(-1),
        starts=np.arange(count + 1) * LENGTH,
        prompts=np.zeros(count, dtype=np.int64),
    )
    batches = Batches(
        sequences=sequences,
        rows=one_in_each_row(np.arange(count)),
        unit_starts=np.arange(count + 1),
        units_a_batch=cell.rows,
        width=LENGTH - 1,
        seed=seed,
        pad=0,
        shuffle=True,
    )
    steps = max(round(len(batches) * cell.exposures * cell.people / count), 2)
    config = TrainingConfig(
        model=cell.config,
        steps=steps,
        optimiser=Optimiser(kind="muon", learning_rate=1e-2),
        schedule=Schedule(kind="wsd", warmup=max(steps // 50, 1), floor=0.02, decay=0.5),
        seed=seed,
        evaluate_every=steps,
        save_every=min(steps, 1_000),
        log_every=max(steps // 20, 1),
        tensorboard=False,
        # Fixed, so that the same plan gives the same numbers anywhere; in float32, because
        # bfloat16 is many times slower on processors that have no instructions for it.
        compute=Compute(precision="float32", lanes=1, threads=1, compile=False),
    )
    data = {"people": f"{cell.people} drawn with seed {seed}", "varied": str(cell.varied)}

    def report(progress: Progress) -> None:
        tell(progress.step / progress.steps)

    return train_to_end(
        run_path(folder, cell.label(seed), config, data),
        config,
        batches,
        data=data,
        hooks=Hooks(report=report),
    )


def stored_losses(decoder: Decoder, texts: Int[np.ndarray, "people _"]) -> Losses:
    """Return the bits that each person's name and values cost, in their text."""
    losses = token_losses(decoder, texts)
    values = losses[:, 2:].reshape(len(texts), ATTRIBUTES, FIELD)[:, :, 1:]
    everybody: Losses = losses[:, :2].sum(axis=1) + values.sum(axis=(1, 2))
    return everybody


def asked_losses(decoder: Decoder, people: People) -> Losses:
    """Return the bits that each person's values cost when they are asked for by name.

    An attribute that costs more than not knowing anything, on average, counts as not known.
    """
    count = len(people.names)
    total = np.zeros(count)
    for attribute in range(ATTRIBUTES):
        asked = np.full((count, 4 + PARTS), BEGIN, dtype=np.int64)
        asked[:, 1:3] = people.names
        asked[:, 3] = PIECES + attribute
        asked[:, 4:] = people.values[:, attribute]
        losses = token_losses(decoder, asked)[:, 3:].sum(axis=1)
        unknown = VALUE_BITS / ATTRIBUTES
        total += losses if losses.mean() < unknown else unknown
    return total


@torch.no_grad()
def token_losses(
    decoder: Decoder, texts: Int[np.ndarray, "texts length"]
) -> Float64[np.ndarray, "texts predicted"]:
    """Return the loss of every token after the first, in bits."""
    parts: list[Tensor] = []
    for first in range(0, len(texts), ROWS_AT_ONCE):
        part = torch.from_numpy(texts[first : first + ROWS_AT_ONCE])
        logs = decoder.logits(decoder.hidden(part[:, :-1])).double().log_softmax(-1)
        parts.append(-logs.gather(2, part[:, 1:, None])[..., 0])
    bits: Float64[np.ndarray, "texts predicted"] = torch.cat(parts).numpy() / math.log(2)
    return bits


def _point(cell: Cell, measured: Sequence[Measured]) -> CapacityPoint:
    """Join the seeds of one cell; the interval covers seeds, or people where there is one seed."""
    per_parameter = cell.people / cell.parameters
    stored = [float(one.stored.mean()) * per_parameter for one in measured]
    asked = [float(one.asked.mean()) * per_parameter for one in measured]
    if len(measured) > 1:
        estimates = [Estimate.of(stored), Estimate.of(asked)]
        intervals = [(one.low, one.high) for one in estimates]
    else:
        draw = np.random.default_rng(np.random.SeedSequence([29]))
        people = (measured[0].stored, measured[0].asked)
        intervals = [bootstrap_mean(one * per_parameter, draw, draws=500) for one in people]
    return CapacityPoint(
        parameters=cell.parameters,
        width=cell.width,
        people=cell.people,
        exposures=cell.exposures,
        varied=cell.varied,
        stored=float(np.mean(stored)),
        low=intervals[0][0],
        high=intervals[0][1],
        asked=float(np.mean(asked)),
        asked_low=intervals[1][0],
        asked_high=intervals[1][1],
        seeds=tuple(stored),
        work=sum(one.work for one in measured),
        processor_minutes=sum(one.processor_minutes for one in measured),
    )


def _left_out(plan: CapacityPlan, cells: Sequence[Cell]) -> tuple[str, ...]:
    """Return which cells would take more work than the plan allows, in words."""
    lines = []
    for width in plan.widths:
        for varied in (False, True):
            trained = [one for one in cells if (one.width, one.varied) == (width, varied)]
            most = max((one.exposures for one in trained), default=0)
            missing = [one for one in plan.exposures if one > most]
            if missing:
                size = Cell(width=width, exposures=1, varied=varied).parameters
                kind = "varied text" if varied else "one text"
                lines.append(f"{size:,} parameters, {kind}: {', '.join(map(str, missing))}")
    return tuple(lines)


QUICK = CapacityPlan(widths=(16,), exposures=(10, 30), seeds=1, quick=True)
"""Seconds: one decoder smaller than all of the study's, with and without varied text."""
