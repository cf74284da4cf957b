"""The study from end to end: train everything, ask, judge every answer, and write the record.

Every training is a run in the study's folder, so an interrupted study is resumed where it stopped.
There is one plan of trainings. It is trained first, in parallel where that pays: a training this
small keeps one core busy and gains next to nothing from a second, so each gets a process of its own
with one thread. Then the runs are opened and asked.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from heedful.files import write_atomic
from heedful.progress import Parts, Step
from heedful.studies.knowledge.arms import (
    baselines,
    measure_arm,
    storage_point,
    train_arm,
)
from heedful.studies.knowledge.asker import AskSettings, keep_for_asking
from heedful.studies.knowledge.corpus import KnowledgeCorpus
from heedful.studies.knowledge.findings import (
    RECORD,
    Arm,
    KnowledgeStudy,
    NameStudy,
    StoragePoint,
)
from heedful.studies.knowledge.judgement import (
    Judgement,
    confusion,
    judge,
    label_counts,
    study_names,
)
from heedful.studies.knowledge.plans import ArmTraining, StudyPlan, Training
from heedful.studies.knowledge.training import Material, prepare
from heedful.training import FinishedRun, RunStoppedError
from heedful.training.hooks import Progress, Report
from heedful.training.loop import StopRequests
from heedful.workers import Pool, StartError, TaskOutcome, report

RUNS = "runs"
CHILD = "heedful.studies.knowledge.knowledge_study:child_trainer"
"""What a child process of the pool runs."""
SAVING_SECONDS = 60.0
"""How long a stopped training may take to save itself."""
SECONDS_BETWEEN = 0.2
"""Reports of one training are no denser than this."""

Tell = Callable[[str, float], None]
"""Called with the label of a run and the share of it that is done."""


def study_knowledge(
    corpus: KnowledgeCorpus, plan: StudyPlan, folder: Path, progress: Step | None = None
) -> KnowledgeStudy:
    """Run the whole study in a folder, and write its record there as `knowledge.json`."""
    started = time.perf_counter()
    trainer = KnowledgeTrainer(corpus, plan, folder / RUNS)
    trainings = plan.trainings()
    labels = [label for training in trainings for label in training.labels]
    parts = Parts(dict.fromkeys([*labels, "asking"], 1.0), _shares(progress))
    outcomes = train_all(
        trainer, trainings, plan.processes, lambda label, share: parts.tell(label, label, share)
    )
    trained = dict(zip(trainings, outcomes, strict=True))
    arms = {
        arm: measure_arm(
            arm,
            trainer.material,
            {seed: trained[ArmTraining(arm=arm, seed=seed)] for seed in plan.all_seeds},
        )
        for arm in plan.arms
    }
    main = arms[plan.arms[-1]]
    judged = judge(main.answerer, corpus, wanted_error=plan.wanted_error, seed=plan.seed,
                   studied=plan.unseen)  # fmt: skip
    names = study_names(main.answerer, corpus, judged, count=plan.unseen, seed=plan.seed)
    risk = judged.risk_coverage
    settings = AskSettings(
        temperature=judged.after.temperature,
        threshold=risk.threshold,
        wanted_error=risk.wanted_error,
        promised_error=risk.promised_error,
        longest_answer=main.answerer.longest_answer,
    )
    keep_for_asking(main.run.folder, main.answerer.tokenizer, settings, corpus)
    record = _record(
        corpus,
        plan,
        judged,
        arms=(*(arm.record for arm in arms.values()), *baselines(corpus)),
        names=names,
        storage=tuple(trained[case] for case in plan.cases),
        run=f"{RUNS}/{main.run.folder.name}",
        minutes=(time.perf_counter() - started) / 60,
        test_questions=trainer.material.test_questions,
    )
    write_atomic(folder / RECORD, record.to_json())
    parts.finish("done")
    return record


class KnowledgeTrainer:
    """Trains what a study needs, one training after the other."""

    def __init__(self, corpus: KnowledgeCorpus, plan: StudyPlan, runs: Path) -> None:
        self.corpus, self.plan, self.runs = corpus, plan, runs

    @cached_property
    def material(self) -> Material:
        """The corpus, made ready for the arms."""
        return prepare(self.corpus, self.plan.recipe, seed=self.plan.seed)

    def train(self, training: Training, tell: Tell) -> tuple[FinishedRun, ...] | StoragePoint:
        """Return the runs of an arm, or the curve of a small training; finished ones are found."""
        plan = self.plan
        outcome: tuple[FinishedRun, ...] | StoragePoint
        if isinstance(training, ArmTraining):
            outcome = train_arm(
                training.arm, self.material, self.runs, training.seed,
                lambda label: _hook(label, tell),
            )  # fmt: skip
        else:
            assert plan.storage is not None
            outcome = storage_point(
                training, plan.storage_recipe or plan.recipe, plan.storage, self.runs,
                seed=plan.seed, report=_hook(training.labels[0], tell),
            )  # fmt: skip
        for label in training.labels:
            tell(label, 1.0)
        return outcome


def train_all(
    trainer: KnowledgeTrainer, trainings: Sequence[Training], processes: int, tell: Tell
) -> list[Any]:
    """Return what came of each training; a signal stops all of them, and all are saved."""
    outcomes = _in_children(trainer, trainings, processes, tell) if processes > 1 else {}
    # What a child failed to train is trained here, where an error reaches the user.
    return [
        outcomes[training] if training in outcomes else trainer.train(training, tell)
        for training in trainings
    ]


def _in_children(
    trainer: KnowledgeTrainer, trainings: Sequence[Training], processes: int, tell: Tell
) -> dict[Training, Any]:
    """Train in child processes; return what came of the trainings that succeeded."""
    pool = Pool(
        CHILD,
        (trainer.corpus, trainer.plan, trainer.runs),
        workers=min(processes, len(trainings)),
        saving_seconds=SAVING_SECONDS,
    )
    outcomes: list[TaskOutcome] = []
    with StopRequests() as requests, contextlib.suppress(StartError), pool:
        outcomes = pool.map(
            trainings,
            report=lambda progress: tell(*progress),
            stop=lambda: bool(requests.number),
        )
    if requests.number:
        raise RunStoppedError(trainer.runs, signal.Signals(requests.number).name)
    return {
        training: outcome.value
        for training, outcome in zip(trainings, outcomes, strict=False)
        if outcome.kind == "value"
    }


def child_trainer(
    corpus: KnowledgeCorpus, plan: StudyPlan, runs: Path
) -> Callable[[Training], Any]:
    """Return what a child process does with a training."""
    trainer = KnowledgeTrainer(corpus, plan, runs)

    def train(training: Training) -> Any:
        try:
            return trainer.train(training, lambda label, share: report((label, share)))
        except RunStoppedError:
            raise SystemExit(0) from None  # the parent asked for it, and waits for the end

    return train


def _hook(label: str, tell: Tell) -> Report:
    """Return the report hook of a training; it tells the share that is done now and then."""
    last = 0.0

    def report_share(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN or progress.step == progress.steps:
            last = now
            tell(label, progress.step / progress.steps)

    return report_share


def _shares(progress: Step | None) -> Tell | None:
    return None if progress is None else lambda _, share: progress(round(1_000 * share), 1_000)


def _record(
    corpus: KnowledgeCorpus,
    plan: StudyPlan,
    judged: Judgement,
    *,
    arms: tuple[Arm, ...],
    names: NameStudy | None,
    storage: tuple[StoragePoint, ...],
    run: str,
    minutes: float,
    test_questions: int,
) -> KnowledgeStudy:
    threshold = judged.risk_coverage.threshold
    return KnowledgeStudy(
        corpus=corpus.name,
        documents=len(corpus.documents),
        questions={
            "training": len(corpus.train),
            "held out": len(corpus.held_out),
            "test": len(corpus.test),
        },
        recipe=plan.recipe.model_dump(mode="json"),
        seed=plan.seed,
        notes=corpus.notes,
        arms=arms,
        labels=label_counts(judged.answers, threshold),
        confusion=confusion(judged.answers, threshold),
        auroc=judged.auroc,
        auroc_by_names=judged.auroc_by_names,
        ece=judged.after.ece,
        calibration=(judged.before, judged.after),
        risk_coverage=judged.risk_coverage,
        promises=judged.promises,
        names=names,
        storage=storage,
        answers=judged.answers,
        main_arm=plan.arms[-1].name,
        run=run,
        minutes=minutes,
        quick=plan.quick,
        test_questions=test_questions,
    )
