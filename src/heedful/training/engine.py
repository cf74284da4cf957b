"""The gradient of one step, computed in the way that is fastest on this machine.

    loss = Σ over learned tokens of −log p(target) / number of learned tokens

The sum runs over the whole step: over accumulated batches, lanes and machines. Dividing once,
by the number of the whole step, makes the gradient that of one large batch, whatever the parts
are; parts are added in a fixed order, so that it is the same in every run.

Which way is fastest is measured on one real batch before the training begins: one lane with all
threads, one lane a core, bfloat16, or a compiled decoder. A trial takes no step and draws no
number that the training would miss; its answer is written into the manifest, and a resumed run
keeps to it.
"""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from heedful.errors import InputError
from heedful.machine import CLEARLY_FASTER, bfloat16_gain
from heedful.records import Record
from heedful.training.config import Compute
from heedful.training.feed import Rows
from heedful.training.loss import Objective
from heedful.training.randomness import Stream, draw_from


class Lane:
    """One worker: an objective, and the gradients that it leaves on its parameters."""

    def __init__(self, objective: Any) -> None:
        self.objective = objective

    def run(self, pieces: Sequence[Rows], scale: float) -> float:
        """Add the gradients of some rows to this lane's; return their summed loss."""
        total = 0.0
        for piece in pieces:
            try:
                loss = self.objective(piece.tokens, piece.targets, piece.documents)
            except IndexError:
                raise InputError(
                    "data",
                    f"holds the target {int(piece.targets.max())}",
                    expected="ids of the vocabulary of the model",
                ) from None
            (loss * scale).backward()
            total += float(loss.detach())
        return total

    def forget(self) -> None:
        """Let go of the gradients of the step before."""
        for parameter in self.objective.parameters():
            parameter.grad = None

    def gradients(self) -> Iterator[Tensor | None]:
        """Yield the gradient of each parameter."""
        for parameter in self.objective.parameters():
            yield parameter.grad


class RoundedLane(Lane):
    """A worker whose matrices are bfloat16, rounded once a step for all pieces and lanes.

    Gradients of several pieces are added in float32: in bfloat16 the later ones would vanish.
    """

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective)
        rounded = [p for p in objective.parameters() if p.dtype == torch.bfloat16]
        self.rounded = rounded
        self.sums: list[Tensor | None] = [None] * len(rounded)

    def run(self, pieces: Sequence[Rows], scale: float) -> float:
        """Add the gradients of some rows to this lane's; return their summed loss."""
        self.sums = [None] * len(self.rounded)
        total = 0.0
        for piece in pieces:
            total += super().run([piece], scale)
            if len(pieces) > 1:
                self._take_over()
        return total

    def gradients(self) -> Iterator[Tensor | None]:
        """Yield the gradient of each parameter."""
        sums = dict(zip(self.rounded, self.sums, strict=True))
        for parameter in self.objective.parameters():
            wide = sums.get(parameter)
            yield parameter.grad if wide is None else wide

    def _take_over(self) -> None:
        for place, parameter in enumerate(self.rounded):
            gradient, kept = parameter.grad, self.sums[place]
            if gradient is not None:
                self.sums[place] = gradient.float() if kept is None else kept.add_(gradient)
            parameter.grad = None


class Lanes:
    """Several threads of one process, each with one core and a fixed part of every batch.

    Weights are shared; each lane has gradients of its own, which are added in the order of the
    lanes. torch lets go of Python's lock inside its operators, so the threads do run at once.
    In bfloat16 every lane is a twin whose matrices are rounded; the float32 ones are stepped.
    """

    def __init__(
        self, objective: Objective, streams: Sequence[Stream], *, micro_rows: int | None
    ) -> None:
        self.micro_rows = micro_rows
        self.objective = objective
        self.parameters = list(objective.parameters())
        self.matrices, self.rounded = _rounded(objective)
        draw_from(objective.decoder, streams[0])
        self.lanes: list[Lane] = [] if self.rounded else [Lane(objective)]
        for stream in streams[len(self.lanes) :]:
            twin = _twin(objective, self.rounded)
            draw_from(twin.decoder, stream)
            self.lanes.append(RoundedLane(twin) if self.rounded else Lane(twin))
        self._pool = None
        if len(self.lanes) > 1:
            # The number of threads belongs to the thread that sets it: lanes get one each.
            self._pool = ThreadPoolExecutor(
                len(self.lanes),
                "lane",
                initializer=torch.set_num_threads,
                initargs=(1,),
            )

    def gradients(self, batches: Sequence[Rows], count: int) -> float:
        """Leave the gradient of a step on the parameters; return its summed loss."""
        for parameter in self.parameters:
            parameter.grad = None
        for lane in self.lanes:
            lane.forget()
        if self.rounded:
            torch._foreach_copy_(list(self.rounded.values()), self.matrices)
        parts: list[list[Rows]] = [[] for _ in self.lanes]
        for batch in batches:
            for part, pieces in zip(
                parts, batch.split(len(self.lanes), self.micro_rows), strict=True
            ):
                part.extend(pieces)
        scale = 1.0 / max(count, 1)
        if self._pool is None:
            total = self.lanes[0].run(parts[0], scale)
        else:
            futures = [
                self._pool.submit(lane.run, part, scale)
                for lane, part in zip(self.lanes, parts, strict=True)
            ]
            total = sum(future.result() for future in futures)
        self._add_up()
        return total

    def train(self, mode: bool = True) -> None:
        """Switch dropout on or off."""
        self.objective.train(mode)
        for lane in self.lanes:
            lane.objective.train(mode)

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _add_up(self) -> None:
        for lane in self.lanes:
            if lane.objective is self.objective:
                continue
            for parameter, gradient in zip(self.parameters, lane.gradients(), strict=True):
                if gradient is None:
                    continue
                if parameter.grad is None:
                    parameter.grad = gradient.to(parameter.dtype)
                else:
                    parameter.grad.add_(gradient)


def _rounded(objective: Objective) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Return the matrices that products take in bfloat16, and room for them, by name."""
    if objective.precision == "float32":
        return [], {}
    matrices = {
        f"{name}.weight": module.weight.detach()
        for name, module in objective.named_modules()
        if isinstance(module, nn.Linear)
    }
    room = {name: torch.empty_like(value, dtype=torch.bfloat16) for name, value in matrices.items()}
    return list(matrices.values()), room


def _twin(objective: Objective, rounded: Mapping[str, Tensor]) -> Objective:
    """Return a copy that shares its weights, some of them rounded, and has its own gradients."""
    twin = copy.deepcopy(objective)
    for (name, own), shared in zip(twin.named_parameters(), objective.parameters(), strict=True):
        own.data = rounded.get(name, shared.data)
    return twin


class Single:
    """One objective, compiled or not: on a GPU, or on one of many machines."""

    def __init__(
        self,
        objective: Any,
        *,
        micro_rows: int | None = None,
        ranks: int = 1,
        exchange: Callable[[bool], None] | None = None,
    ) -> None:
        self.lane = Lane(objective)
        self.micro_rows = micro_rows
        self.ranks = ranks
        self.exchange = exchange

    def gradients(self, batches: Sequence[Rows], count: int) -> float:
        """Leave the gradient of a step on the parameters; return its summed loss here."""
        for parameter in self.lane.objective.parameters():
            parameter.grad = None
        pieces = [piece for batch in batches for piece in batch.split(1, self.micro_rows)[0]]
        # Machines average their gradients where we want their sum.
        scale = self.ranks / max(count, 1)
        if self.exchange is None:
            return self.lane.run(pieces, scale)
        self.exchange(False)
        total = self.lane.run(pieces[:-1], scale)
        self.exchange(True)
        return total + self.lane.run(pieces[-1:], scale)

    def train(self, mode: bool = True) -> None:
        """Switch dropout on or off."""
        self.lane.objective.train(mode)

    def close(self) -> None:
        """There is nothing to end."""


WORTH_MEASURING = 300
"""Trainings of fewer steps take one lane in float32: a trial would cost more than it gains."""
WORTH_COMPILING = 600.0
"""Seconds of training below which not even trying the compiler, half a minute, pays."""
TIMED = 3
CLEARLY = 0.97
"""Another way is taken only where it needs less than this share of the time."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One way to lay the work on the machine."""

    precision: str
    lanes: int
    compiled: bool

    @property
    def name(self) -> str:
        """The way in words."""
        lanes = f"{self.lanes} lane" + ("s" if self.lanes > 1 else "")
        return f"{self.precision}, {lanes}" + (", compiled" if self.compiled else "")


@dataclass(frozen=True, eq=False, kw_only=True)
class Trial(Record):
    """What was tried and what was chosen."""

    chosen: Choice
    seconds: dict[str, float]
    """Median time of one step's gradient, by the name of the way; empty where nothing was tried."""
    reason: str
    """Why this one."""


Measure = Callable[[Choice], float]
"""Returns the median seconds of a gradient computed this way."""


def choose(
    compute: Compute,
    steps: int,
    cores: int,
    measure: Measure,
    *,
    lanes_possible: bool = True,
    gain: Callable[[], float] = bfloat16_gain,
) -> Trial:
    """Choose by measuring what the config leaves open.

    `gain` tells how much faster products in bfloat16 are. On a processor without them a single
    step in bfloat16 takes as long as many in float32, so that it is not even tried.
    """
    first = Choice(
        precision="float32" if compute.precision == "auto" else compute.precision,
        lanes=1 if compute.lanes == "auto" else compute.lanes,
        compiled=False if compute.compile == "auto" else compute.compile,
    )
    if not lanes_possible or first.compiled:
        first = Choice(precision=first.precision, lanes=1, compiled=first.compiled)
    open_settings = "auto" in (compute.precision, compute.lanes, compute.compile)
    if not open_settings or steps < WORTH_MEASURING:
        reason = "as the config says" if not open_settings else f"only {steps} steps: not measured"
        return Trial(chosen=first, seconds={}, reason=reason)
    seconds = {first: measure(first)}

    def consider(candidate: Choice) -> None:
        if candidate not in seconds:
            seconds[candidate] = measure(candidate)

    def best() -> Choice:
        quickest = min(seconds, key=lambda choice: seconds[choice])
        return quickest if seconds[quickest] < CLEARLY * seconds[first] else first

    if compute.lanes == "auto" and lanes_possible and not first.compiled and cores > 1:
        consider(Choice(precision=first.precision, lanes=cores, compiled=False))
    if compute.precision == "auto" and gain() >= CLEARLY_FASTER:
        consider(Choice(precision="bfloat16", lanes=best().lanes, compiled=first.compiled))
    worth = seconds[best()] * steps >= WORTH_COMPILING
    if compute.compile == "auto" and worth:
        # A compiler may fail where torch lies (a path with a space) or for lack of a tool: the
        # training that asked for nothing goes on without it.
        with suppress(RuntimeError, OSError):
            consider(Choice(precision=best().precision, lanes=1, compiled=True))
    return Trial(
        chosen=best(),
        seconds={choice.name: taken for choice, taken in seconds.items()},
        reason="the fastest measured" if best() != first else "nothing measured was clearly faster",
    )


def median_seconds(gradients: Callable[[Sequence[Rows], int], float], batch: Rows) -> float:
    """Return how long one gradient of this batch takes, after a first one that warms up."""
    count = batch.learned
    gradients([batch], count)
    taken = []
    for _ in range(TIMED):
        start = time.perf_counter()
        gradients([batch], count)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)
