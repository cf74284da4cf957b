"""Which way to compute is fastest here: tried on one real batch before the training begins.

Candidates are one lane with all threads, one lane a core, bfloat16 and a compiled decoder.
Nothing is assumed of a machine. A trial takes no step and draws no number that the training
would miss; its answer is written into the manifest, and a resumed run keeps to it.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.records import Record
from heedful.training.config import Compute
from heedful.training.feed import Rows

WORTH_MEASURING = 300
"""Trainings of fewer steps take one lane in float32: a trial would cost more than it gains."""
WORTH_COMPILING = 600.0
"""Seconds of training below which not even trying the compiler, half a minute, pays."""
TIMED = 3
PEAK_SIZE, PEAK_TIMED = 512, 12
"""Of the products that tell what the machine can reach, and how many are timed. A few
milliseconds each: on a busy machine, a longer one is always interrupted."""
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
    compute: Compute, steps: int, cores: int, measure: Measure, *, lanes_possible: bool = True
) -> Trial:
    """Choose by measuring what the config leaves open."""
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
    if compute.precision == "auto":
        consider(Choice(precision="bfloat16", lanes=best().lanes, compiled=first.compiled))
    worth = seconds[best()] * steps >= WORTH_COMPILING
    if compute.compile == "auto" and worth:
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


@functools.cache
def peak_flops(precision: str, threads: int, device: str = "cpu") -> float:
    """Return the operations a second of large matrix products: what can be reached.

    In the precision and with the threads of the training, on its device: a share of what another
    precision reaches would say nothing. The best of several is taken, since other work can hold
    up some of them. Once for each process.
    """
    kind = torch.float32 if precision == "float32" else torch.bfloat16
    a, b = (torch.ones(PEAK_SIZE, PEAK_SIZE, dtype=kind, device=device) for _ in range(2))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        taken = [_seconds_of(a, b) for _ in range(PEAK_TIMED + 1)]
    finally:
        torch.set_num_threads(before)
    return 2.0 * PEAK_SIZE**3 / min(taken[1:])


def _seconds_of(a: Tensor, b: Tensor) -> float:
    begun = time.perf_counter()
    product = a @ b
    float(product[0, 0])  # waits for a GPU
    return time.perf_counter() - begun
