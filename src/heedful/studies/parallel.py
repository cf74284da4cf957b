"""Trainings of a study side by side, each in a child process with one thread.

A training as small as those of the studies keeps one core busy and gains little from a second: two
of them at once gain all of it. Neither the number of processes nor the order in which they take
the trainings changes a number.

A signal stops all trainings, and each saves its last step; the same study then goes on. What a
child cannot do is left to the parent, where an error reaches the user.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from heedful.training import RunStoppedError
from heedful.training.hooks import Progress, Report
from heedful.training.loop import StopRequests
from heedful.workers import Pool, StartError, TaskOutcome

SAVING_SECONDS = 60.0
"""How long a stopped training may take to save itself."""
SECONDS_BETWEEN = 0.2
"""Reports of one training are no denser than this."""
MOST_PROCESSES = 4
"""Trainings at once at most: each takes about half a gigabyte."""

Task = TypeVar("Task")
Value = TypeVar("Value")


def usable_processes(threads: int = 1) -> int:
    """Return how many trainings of so many threads this machine has room for."""
    if torch.cuda.is_available():
        return 1
    return max(min(torch.get_num_threads() // threads, MOST_PROCESSES), 1)


@dataclass(frozen=True, kw_only=True)
class Children:
    """Child processes that train."""

    factory: str
    """`module:function` that each child calls with the arguments, for what it does with a task."""
    arguments: tuple[Any, ...]
    processes: int
    """How many there are at once; with 1 there is none, and everything is left to the parent."""
    runs: Path
    """Where the runs are, for who is told that they were stopped."""

    def train(
        self,
        tasks: Sequence[Task],
        hear: Callable[..., None],
        *,
        urgency: Callable[[Task], int] = lambda _task: 0,
        then: Callable[[Task, TaskOutcome], Iterable[Task]] = lambda _task, _outcome: (),
    ) -> dict[Task, Any]:
        """Return what came of each task that a child could do.

        `hear` gets what the children report, `then` every task with its outcome; it returns the
        tasks that had to wait for it. Raises `RunStoppedError` where a signal stops the trainings.
        """
        done: dict[Task, Any] = {}
        if self.processes < 2:
            return done

        def keep(task: Task, outcome: TaskOutcome) -> Iterable[Task]:
            if outcome.kind == "value":
                done[task] = outcome.value
            return then(task, outcome)

        pool = Pool(
            self.factory,
            self.arguments,
            workers=self.processes,
            saving_seconds=SAVING_SECONDS,
        )
        with StopRequests() as requests, contextlib.suppress(StartError), pool:
            pool.map(
                tasks,
                report=lambda content: hear(*content),
                stop=lambda: bool(requests.number),
                urgency=urgency,
                then=keep,
            )
        if requests.number:
            raise RunStoppedError(self.runs, signal.Signals(requests.number).name)
        return done


def saved_when_stopped(train: Callable[[Task], Value]) -> Callable[[Task], Value]:
    """Return what a child does with a task, if a stopped training is the end of the child."""

    def work(task: Task) -> Value:
        try:
            return train(task)
        except RunStoppedError:
            raise SystemExit(0) from None  # the parent asked for it, and waits for the end

    return work


def now_and_then(report: Report) -> Report:
    """Return a report hook that passes on a step every now and then, and the last one."""
    last = 0.0

    def sparing(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN or progress.step == progress.steps:
            last = now
            report(progress)

    return sparing
