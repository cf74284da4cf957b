"""Whole models: the accuracy of a small model over all its inputs, enumerated and proved.

Two tasks, each a text whose last token must be followed by the answer:

    largest   x_1 … x_k               →  max x          (arXiv 2406.11779 has k = 4 of 64 numbers)
    sum       x_1 x_2, then a mark    →  x_1 + x_2 mod p

For the largest number the model has one layer, one head and no feed-forward part. Its answer is
the largest logit, which the last norm only scales, so with w_m,v(b, p) what the value of token b
at place p adds to logit m − logit v, and c what the query's own stream adds,

    logit m > logit v   ⇔   Σ_p e^{s(q, b_p)} (w_m,v(b_p, p) + c_m,v(q)) > 0

and each place stands in one term only. For a query q and a largest number m, the least sum over
all inputs is found place by place, with m at one place at least: v²·v² terms decide v⁴ inputs,
exactly. Pairs (q, m) for which it is positive for every v are right for all their inputs; only
inputs of the other pairs have to be tried one by one, if the accuracy is to be known exactly.
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from heedful.errors import InputError
from heedful.model import Decoder, DecoderConfig
from heedful.model.config import Attention, FeedForward, Norm
from heedful.model_claims.bounds import TextBounds
from heedful.model_claims.first_layer import FirstLayer, embedded, normed, position_table, project
from heedful.model_claims.intervals import FUNCTION_ERROR, Box, Floats, linear
from heedful.positions.encodings import Learned
from heedful.records import Record

BATCH = 512
"""Inputs of a training step."""
STEPS = {"largest": 3_000, "sum": 600}
"""Steps after which the models of the two tasks named below answer all inputs rightly."""
CHUNK = 65_536
"""Inputs that are computed at once when all are tried."""


@dataclass(frozen=True)
class SmallTask:
    """A task with finitely many inputs."""

    kind: Literal["largest", "sum"]
    numbers: int
    """How many different numbers there are."""
    count: int = 4
    """How many numbers an input has; a sum has two."""

    @property
    def inputs(self) -> int:
        """How many inputs there are."""
        return int(self.numbers**self.count)

    def config(self) -> DecoderConfig:
        """Return the model that learns it."""
        largest = self.kind == "largest"
        return DecoderConfig(
            vocabulary=self.numbers + (0 if largest else 1),
            context=self.count + (0 if largest else 1),
            width=32 if largest else 64,
            layers=1,
            attention=Attention(heads=1 if largest else 4),
            feed_forward=FeedForward(activation="relu", width=1 if largest else 256),
            norm=Norm(kind="rms"),
            positions=Learned(),
            tied=False,
            initial_std=0.1,
        )

    def rows(self, inputs: Tensor) -> Tensor:
        """Return inputs as texts: a sum ends in a mark."""
        if self.kind == "largest":
            return inputs
        return torch.cat([inputs, torch.full((len(inputs), 1), self.numbers)], dim=1)

    def answers(self, inputs: Tensor) -> Tensor:
        """Return the right answers."""
        return inputs.amax(1) if self.kind == "largest" else inputs.sum(1) % self.numbers

    def all_inputs(self, first: int, last: int) -> Tensor:
        """Return the inputs of these numbers, in the order of their digits."""
        digits = torch.arange(first, min(last, self.inputs)).unsqueeze(1)
        powers = self.numbers ** torch.arange(self.count - 1, -1, -1)
        return (digits // powers) % self.numbers


LARGEST_OF_FOUR = SmallTask("largest", 64, 4)
MODULAR_SUM = SmallTask("sum", 23, 2)


@dataclass(frozen=True, eq=False, kw_only=True)
class AccuracyReport(Record):
    """How many of all inputs a model answers rightly, found in one way."""

    method: str
    """`enumeration`, `proof from the weights`, or `interval arithmetic`."""
    inputs: int
    """All inputs there are."""
    right: int
    """Inputs that are surely answered rightly (for an enumeration: all that are, in float64)."""
    tried: int
    """Inputs that were computed one by one."""
    seconds: float

    @property
    def accuracy(self) -> float:
        """The share of inputs answered rightly, at least."""
        return self.right / self.inputs


def train_task(
    task: SmallTask,
    *,
    steps: int | None = None,
    seed: int = 0,
    rate: float = 0.01,
    batch: int = BATCH,
) -> Decoder:
    """Train a model for a task on inputs drawn at random, for as many steps as the task needs."""
    steps = STEPS[task.kind] if steps is None else steps
    decoder = Decoder(task.config(), seed=seed)
    if task.kind == "largest":
        part: Any = decoder.blocks[0]
        for layer in (part.feed_forward.up, part.feed_forward.down):
            layer.weight.data.zero_()
            layer.weight.requires_grad_(False)
    noise = torch.Generator().manual_seed(seed)
    decay = 0.0 if task.kind == "largest" else 0.1
    chosen = [parameter for parameter in decoder.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(chosen, lr=rate, weight_decay=decay, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        inputs = torch.randint(task.numbers, (batch, task.count), generator=noise)
        if task.kind == "largest":  # near ties are what is hard
            near = inputs[:, :1] - torch.randint(3, inputs.shape, generator=noise)
            half = torch.rand(inputs.shape, generator=noise) < 0.3
            inputs = torch.where(half, near.clamp(min=0), inputs)
        logits = decoder(task.rows(inputs))[:, -1]
        loss = functional.cross_entropy(logits, task.answers(inputs))
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        schedule.step()
    return decoder.double().eval()


@torch.no_grad()
def enumerated_accuracy(decoder: Decoder, task: SmallTask) -> AccuracyReport:
    """Try every input."""
    start, right = time.perf_counter(), 0
    for first in range(0, task.inputs, CHUNK):
        right += int(_is_right(decoder, task, task.all_inputs(first, first + CHUNK)).sum())
    return AccuracyReport(
        method="enumeration",
        inputs=task.inputs,
        right=right,
        tried=task.inputs,
        seconds=time.perf_counter() - start,
    )


def _is_right(decoder: Decoder, task: SmallTask, inputs: Tensor) -> Tensor:
    hidden = decoder.hidden(task.rows(inputs))[:, -1]
    found: Tensor = decoder.logits(hidden)[:, : task.numbers].argmax(-1) == task.answers(inputs)
    return found


def enclosed_accuracy(decoder: Decoder, task: SmallTask) -> AccuracyReport:
    """Enclose the logits of every input with all rounding errors: slow, certain, for any model."""
    start, right = time.perf_counter(), 0
    inputs = task.all_inputs(0, task.inputs)
    for row, answer in zip(task.rows(inputs), task.answers(inputs), strict=True):
        bounds = TextBounds(decoder, len(row), tokens=row.tolist())
        logits = bounds.logits(len(row) - 1)[0, : task.numbers]
        others = np.delete(logits.high, int(answer))
        right += bool(logits.low[int(answer)] > others.max())
    return AccuracyReport(
        method="interval arithmetic",
        inputs=task.inputs,
        right=right,
        tried=task.inputs,
        seconds=time.perf_counter() - start,
    )


def proved_accuracy(decoder: Decoder, task: SmallTask, *, finish: bool = False) -> AccuracyReport:
    """Prove from the weights for how many inputs the largest number is found.

    With `finish`, inputs of the pairs (q, m) that are not right throughout are tried one by one.
    """
    start = time.perf_counter()
    _check_provable(decoder, task)
    certain = _pairs_that_are_right(decoder, task)
    right = sum(
        _inputs_of_pair(q, m, task.count) for q, m in zip(*np.nonzero(certain), strict=True)
    )
    tried = 0
    if finish:
        for q, m in itertools.product(range(task.numbers), repeat=2):
            if q <= m and not certain[q, m]:
                inputs = _pair(q, m, task)
                tried += len(inputs)
                with torch.no_grad():
                    right += int(_is_right(decoder, task, inputs).sum())
    return AccuracyReport(
        method="proof from the weights" + (", and trial of the rest" if finish else ""),
        inputs=task.inputs,
        right=right,
        tried=tried,
        seconds=time.perf_counter() - start,
    )


def _check_provable(decoder: Decoder, task: SmallTask) -> None:
    config = decoder.config
    part: Any = decoder.blocks[0]
    plain = (
        task.kind == "largest"
        and config.layers == 1
        and config.attention.heads == 1
        and config.norm.placement == "pre"
        and config.norm.kind == "rms"
        and not part.feed_forward.down.weight.any()
        and part.feed_forward.down.bias is None
    )
    if not plain:
        raise InputError(
            "model",
            "is not of the kind that this proof is for",
            expected="one layer, one head, RMSNorm before each part, no feed-forward part",
            hint="use enclosed_accuracy or enumerated_accuracy",
        )


def _inputs_of_pair(q: int, m: int, count: int) -> int:
    """Return how many inputs end in q and have the largest number m."""
    free = count - 1
    return int((m + 1) ** free if q == m else (m + 1) ** free - m**free)


def _pair(q: int, m: int, task: SmallTask) -> Tensor:
    """Return these inputs."""
    free = torch.cartesian_prod(*[torch.arange(m + 1)] * (task.count - 1)).view(-1, task.count - 1)
    if q != m:
        free = free[(free == m).any(1)]
    return torch.cat([free, torch.full((len(free), 1), q)], dim=1)


def _pairs_that_are_right(decoder: Decoder, task: SmallTask) -> np.ndarray:
    """Return for each query q and largest number m whether all their inputs come out right."""
    numbers, last = task.numbers, task.count - 1
    layer = FirstLayer(decoder, 0)
    masses, own_mass = _masses(layer, numbers, last)
    effects, own_effects = _effects(decoder, numbers, last)
    certain = np.zeros((numbers, numbers), dtype=bool)
    for m in range(numbers):
        # What each token adds to logit m − logit v, for every other v: (places, tokens, v).
        gaps = [_gap(effect, m) for effect in effects]
        for q in range(m + 1):
            own = _gap(own_effects[q : q + 1], m)
            terms = []
            for p in range(last):
                lead = (gaps[p] + own).low  # w + c, by token and v
                low, high = masses[p].low[q][:, None], masses[p].high[q][:, None]
                terms.append(np.where(lead >= 0, low * lead, high * lead))
            # Its own term: the value of q at the last place, and c again.
            at_last = _gap(effects[last][q : q + 1], m) + own
            mine = np.where(
                at_last.low >= 0, own_mass.low[q] * at_last.low, own_mass.high[q] * at_last.low
            )[0]
            least = [term[: m + 1].min(0) for term in terms]
            total = sum(least) + mine
            if q < m:  # one of the other places has the largest number
                total = np.min([total - least[p] + terms[p][m] for p in range(last)], axis=0)
            size = sum(np.abs(term[: m + 1]).max(0) for term in terms) + np.abs(mine)
            slack = 1e-13 * size  # sums of a few float64 numbers
            certain[q, m] = bool((np.delete(total - slack, m) > 0).all())
    return certain


def _masses(layer: FirstLayer, numbers: int, last: int) -> tuple[list[Box], Box]:
    """Return e^score of each query with each token at each place, up to one factor a query."""
    rows = np.arange(numbers)
    scores = [layer.scores(rows, last, p) for p in range(last)]
    own = layer.own_scores(rows, last)
    top = np.maximum(np.max([s.max(1) for s in scores], axis=0), own)
    error = layer.error(rows, last + 1) + FUNCTION_ERROR * (1 + np.abs(top))

    def mass(score: Floats, room: Floats) -> Box:
        return Box(
            np.exp(score - room) * (1 - FUNCTION_ERROR), np.exp(score + room) * (1 + FUNCTION_ERROR)
        )

    masses = [mass(s - top[:, None], error[:, None]) for s in scores]
    return masses, mass(own - top, error)


def _effects(decoder: Decoder, numbers: int, last: int) -> tuple[list[Box], Box]:
    """Return what each token's value at each place adds to all logits, and each query's stream."""
    block: Any = decoder.blocks[0]
    config, table = decoder.config, position_table(decoder)
    ids = np.arange(numbers)
    gains = np.ones(config.width)
    if decoder.norm is not None:
        norm: Any = decoder.norm
        gains = norm.weight.detach().double().numpy()
    head = decoder.head_weight.detach().double().numpy()[:numbers]
    output = block.attention.output.weight.detach().double().numpy()
    bias = block.attention.output.bias
    effects = []
    for p in range(last + 1):
        stream = embedded(decoder, ids, None if table is None else table[p])
        inner = normed(stream, block.attention_norm, config.norm.kind)
        value = linear(project(inner, block.attention, 2), output)
        effects.append(linear(value.times(gains), head))
    if bias is not None:
        stream = stream + Box.exactly(bias.detach().double().numpy())
    return effects, linear(stream.times(gains), head)


def _gap(effects: Box, m: int) -> Box:
    """Return logit m − logit v for every v: (tokens, v)."""
    return Box(
        np.nextafter(effects.low[:, m : m + 1] - effects.high, -math.inf),
        np.nextafter(effects.high[:, m : m + 1] - effects.low, math.inf),
    )
