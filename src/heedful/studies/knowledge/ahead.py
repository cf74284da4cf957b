"""Train the runs of a study side by side, each in a process of its own with one thread.

A training this small keeps one core busy and gains next to nothing from a second. Two of them at
once use both. The processes train what the study would train, in the same folders; the study then
finds it done. What a process that fails leaves undone, the study trains itself, and says why it
cannot.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path

from heedful.studies.knowledge.arms import ArmPlan
from heedful.studies.knowledge.corpus import KnowledgeCorpus
from heedful.studies.knowledge.curves import StorageCase, StoragePlan
from heedful.studies.knowledge.recipe import Recipe
from heedful.studies.knowledge.training import StudyStoppedError
from heedful.training.signals import StopRequests

WORKER = "heedful.studies.knowledge.ahead_worker"
SAVING_SECONDS = 60.0
"""How long a stopped training may take to save itself."""
Tell = Callable[[str, float], None]
"""Called with the label of a training and the share of it that is done."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Setting:
    """What all trainings of a study share."""

    corpus: KnowledgeCorpus
    recipe: Recipe
    seed: int
    runs: Path
    storage: StoragePlan | None
    storage_recipe: Recipe | None


@dataclass(frozen=True, kw_only=True)
class ArmJob:
    """An arm with one seed: both of its stages."""

    arm: ArmPlan
    seed: int


@dataclass(frozen=True, eq=False, kw_only=True)
class StorageJob:
    """One small training."""

    case: StorageCase
    label: str


Job = ArmJob | StorageJob


class _Worker:
    """A process that trains one job after the other."""

    def __init__(self, setting: Setting) -> None:
        self.busy = False
        self.connection, theirs = Pipe()
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", WORKER, str(theirs.fileno())],
                stdin=subprocess.PIPE,  # never written to: its end tells the child we are gone
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=os.environ | threads,
                process_group=0,  # Ctrl-C is for the parent, which then stops its children
            )
        self.connection.send(setting)

    def give(self, job: Job) -> None:
        self.connection.send(job)
        self.busy = True

    def end(self) -> None:
        """Stop it, and wait until what it trained is saved."""
        self.process.terminate()
        try:
            self.process.wait(SAVING_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.connection.close()


def train_side_by_side(setting: Setting, jobs: Sequence[Job], processes: int, tell: Tell) -> None:
    """Train jobs in the order given, so many at a time; a signal stops and keeps all of them."""
    waiting = deque(jobs)
    workers = [_Worker(setting) for _ in range(min(processes, len(jobs)))]
    with StopRequests() as requests:
        try:
            while workers and not requests.number:
                workers = [worker for worker in workers if _served(worker, waiting)]
                busy = {worker.connection: worker for worker in workers if worker.busy}
                for connection in wait(list(busy), timeout=0.2) if busy else ():
                    assert isinstance(connection, Connection)
                    _heard(busy[connection], tell)
                if not busy:
                    break
        finally:
            for worker in workers:
                worker.end()
    if requests.number:
        raise StudyStoppedError(setting.runs, signal.Signals(requests.number).name)


def _served(worker: _Worker, waiting: deque[Job]) -> bool:
    """Give a free worker its next job; return whether it still lives."""
    if worker.process.poll() is not None:
        worker.end()
        return False
    if not worker.busy and waiting:
        with contextlib.suppress(OSError):
            worker.give(waiting[0])
            waiting.popleft()
    return True


def _heard(worker: _Worker, tell: Tell) -> None:
    try:
        label, share = worker.connection.recv()
    except (EOFError, OSError):
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.process.wait(SAVING_SECONDS)
        return
    if label:
        tell(label, share)
    else:
        worker.busy = False
