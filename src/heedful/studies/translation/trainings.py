"""The trainings of the arms side by side, in child processes; each then translates the tests.

    scratch, language model, scratch, same work    at once
    elsewhere, elsewhere, all                      likewise, where each takes one thread
    here                                           after the language model

Whoever walks over the arms afterwards finds them trained, and trains what is missing. So a child
that fails costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from heedful import workers
from heedful.studies.parallel import Children, saved_when_stopped
from heedful.studies.translation.arms import (
    LANGUAGE_MODEL,
    TRANSLATIONS,
    PairTraining,
    PublicModel,
    Trainer,
    public_arms,
    training_name,
)
from heedful.studies.translation.results import ELSEWHERE, FULL, HERE, LONGER, SCRATCH
from heedful.training import FinishedRun, is_finished
from heedful.workers import TaskOutcome

CHILD = "heedful.studies.translation.trainings:child_trainer"
"""What a child process of the pool runs."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ArmTask:
    """One training of an arm, or of the language model before one."""

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

    def on_pairs(self, trainer: Trainer, public: PublicModel | None) -> PairTraining:
        """Return what decides it."""
        if public is not None and self.arm in (ELSEWHERE, FULL):
            return public.training(self.arm, self.pairs, self.draw)
        return trainer.training(
            self.arm, self.pairs, self.draw, before=self.before, steps=self.steps
        )


def train_side_by_side(trainer: Trainer, public: PublicModel | None, processes: int) -> None:
    """Train the arms, and translate the tests, in so many processes."""
    if processes < 2:
        return
    progress = trainer.progress
    progress.say("preparing the trainings")

    def left(tasks: Iterable[ArmTask]) -> list[ArmTask]:
        return [task for task in tasks if not _is_done(trainer, public, task)]

    tasks = left(_first(trainer, public))
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
        return left(_tuned(trainer, outcome.value))

    children = Children(
        factory=CHILD,
        arguments=(trainer.for_child(),),
        processes=processes,
        runs=trainer.folder / "runs",
    )
    children.train(tasks, progress.hear, urgency=urgency, then=then)


def child_trainer(trainer: Trainer) -> Callable[[ArmTask], FinishedRun]:
    """Return what a child process does with a training."""
    public = PublicModel(trainer) if trainer.settings.elsewhere.model else None

    def train(task: ArmTask) -> FinishedRun:
        if task.arm == LANGUAGE_MODEL:
            return trainer.language_model()
        if public is not None and task.arm in (ELSEWHERE, FULL):
            run = public.on_pairs(task.arm, task.pairs, task.draw)
            workers.report((task.name, "translating the tests", 1.0))
            public.translated(task.arm, task.draw, run)
            return run
        run = trainer.train(task.on_pairs(trainer, public))
        workers.report((task.name, "translating the tests", 1.0))
        trainer.translated(run)
        return run

    return saved_when_stopped(train)


def _first(trainer: Trainer, public: PublicModel | None) -> Iterator[ArmTask]:
    """Yield the trainings that need no other one."""
    settings = trainer.settings
    if public is not None and settings.elsewhere.lanes == 1:
        for arm, pairs, draws in public_arms(settings):
            yield from (ArmTask(arm=arm, pairs=pairs, draw=draw) for draw in draws)
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


def _is_done(trainer: Trainer, public: PublicModel | None, task: ArmTask) -> bool:
    """Say whether a training, and what a child does after it, need not be done again."""
    if task.arm == LANGUAGE_MODEL:
        return False
    folder = trainer.folder_of(task.on_pairs(trainer, public))
    return is_finished(folder) and (folder / TRANSLATIONS).is_file()
