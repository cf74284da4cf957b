"""A process that trains: `python -m heedful.studies.knowledge.ahead_worker FD` (see `ahead`)."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from functools import cached_property
from multiprocessing.connection import Connection

import torch

from heedful.errors import HeedfulError
from heedful.studies.knowledge.ahead import ArmJob, Job, Setting
from heedful.studies.knowledge.arms import train_stages
from heedful.studies.knowledge.curves import storage_point
from heedful.studies.knowledge.training import Material, prepare
from heedful.training.hooks import Progress, Report

SECONDS_BETWEEN = 0.2
"""Reports of one training are no denser than this."""


class Trainer:
    """Trains jobs of one setting, and tells the parent how far it is."""

    def __init__(self, setting: Setting, connection: Connection) -> None:
        self.setting, self.connection = setting, connection

    @cached_property
    def material(self) -> Material:
        """The corpus, made ready for the arms."""
        return prepare(self.setting.corpus, self.setting.recipe, seed=self.setting.seed)

    def train(self, job: Job) -> None:
        """Train one job, or find it done."""
        setting = self.setting
        if isinstance(job, ArmJob):
            train_stages(job.arm, self.material, setting.runs, job.seed, self._report)
            return
        assert setting.storage is not None
        storage_point(job.case, setting.storage_recipe or setting.recipe, setting.storage,
                      setting.runs, seed=setting.seed, report=self._report(job.label))  # fmt: skip

    def _report(self, label: str) -> Report:
        last = 0.0

        def report(progress: Progress) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= SECONDS_BETWEEN or progress.step == progress.steps:
                last = now
                self.connection.send((label, progress.step / progress.steps))

        return report


def serve(connection: Connection) -> None:
    """Train what comes, until the parent has no more."""
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    trainer = Trainer(connection.recv(), connection)
    while True:
        try:
            trainer.train(connection.recv())
            connection.send(("", 1.0))
        except (HeedfulError, EOFError, OSError):
            return  # the study meets the same trouble, and can tell somebody


def _leave_with_parent() -> None:
    """Save and go once the parent is gone: its end of our input closes."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
