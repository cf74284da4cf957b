"""The trainings of the arms side by side, in child processes; each then translates the tests.

    scratch, language model, scratch, same work    at once
    here                                           after the language model

Whoever walks over the arms afterwards finds them trained, and trains what is missing. So a child
that fails costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from heedful import workers
from heedful.studies.parallel import Children, saved_when_stopped
from heedful.studies.translation.arms import (
    LANGUAGE_MODEL,
    TRANSLATIONS,
    PairTraining,
    Trainer,
    training_name,
)
from heedful.studies.translation.results import HERE, LONGER, SCRATCH
from heedful.training import FinishedRun, is_finished
from heedful.workers import TaskOutcome

CHILD = "heedful.studies.translation.trainings:child_trainer"
"""What a child process of the pool runs."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ArmTask:
    """One training of an arm that is trained here, or of the language model before it."""

    arm: str
    pairs: int = 0
    draw: int = 0
    before: FinishedRun | None = None
    """The language model, where it begins with its weights."""
    steps: int | None = None
    """Where the settings do not say it."""

    @property
    def name(self) -> str:
        """What it is called while it runs."""
        if self.arm == LANGUAGE_MODEL:
            return LANGUAGE_MODEL
        return training_name(self.arm, self.pairs, self.draw)

    def on_pairs(self, trainer: Trainer) -> PairTraining:
        """Return what decides it."""
        return trainer.training(
            self.arm, self.pairs, self.draw, before=self.before, steps=self.steps
        )


def train_side_by_side(trainer: Trainer, processes: int) -> None:
    """Train the arms that are trained here, and translate the tests, in so many processes."""
    if processes < 2:
        return
    progress = trainer.progress
    progress.say("preparing the trainings")
    tasks = [task for task in _first(trainer) if not _is_done(trainer, task)]
    alone = len(tasks) == 1 and tasks[0].arm != LANGUAGE_MODEL
    if not tasks or alone:  # nothing that could run side by side
        return
    waiting = progress.sizes[training_name(HERE, trainer.settings.sizes[-1])]

    def urgency(task: ArmTask) -> int:
        """Put what takes longest first, with what has to wait for it."""
        behind = waiting if task.arm == LANGUAGE_MODEL else 0.0
        return -round(progress.sizes[task.name] + behind)

    def then(task: ArmTask, outcome: TaskOutcome) -> list[ArmTask]:
        progress.ended(task.name)
        if task.arm != LANGUAGE_MODEL or outcome.kind != "value":
            return []
        return [one for one in _tuned(trainer, outcome.value) if not _is_done(trainer, one)]

    children = Children(
        factory=CHILD,
        arguments=(trainer.for_child(),),
        processes=processes,
        runs=trainer.folder / "runs",
    )
    children.train(tasks, progress.hear, urgency=urgency, then=then)


def child_trainer(trainer: Trainer) -> Callable[[ArmTask], FinishedRun]:
    """Return what a child process does with a training."""

    def train(task: ArmTask) -> FinishedRun:
        if task.arm == LANGUAGE_MODEL:
            return trainer.language_model()
        run = trainer.train(task.on_pairs(trainer))
        workers.report((task.name, "translating the tests", 1.0))
        trainer.translated(run)
        return run

    return saved_when_stopped(train)


def _first(trainer: Trainer) -> Iterator[ArmTask]:
    """Yield the trainings that need no other one."""
    settings = trainer.settings
    for pairs in settings.sizes:
        for draw in settings.draws(pairs):
            yield ArmTask(arm=SCRATCH, pairs=pairs, draw=draw)
    if not trainer.corpus.has_text:
        return
    before = trainer.finished_language_model()
    if before is None:
        yield ArmTask(arm=LANGUAGE_MODEL)
    else:
        yield from _tuned(trainer, before)
    for pairs in settings.worked:
        yield ArmTask(arm=LONGER, pairs=pairs, steps=trainer.same_work_steps(pairs))


def _tuned(trainer: Trainer, before: FinishedRun) -> Iterator[ArmTask]:
    """Yield the trainings that begin with the weights of the language model."""
    for pairs in trainer.settings.sizes:
        for draw in trainer.settings.draws(pairs):
            yield ArmTask(arm=HERE, pairs=pairs, draw=draw, before=before)


def _is_done(trainer: Trainer, task: ArmTask) -> bool:
    """Say whether a training, and what a child does after it, need not be done again."""
    if task.arm == LANGUAGE_MODEL:
        return False
    folder = trainer.folder_of(task.on_pairs(trainer))
    return is_finished(folder) and (folder / TRANSLATIONS).is_file()
