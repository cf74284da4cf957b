"""The study from end to end: train the arms, ask, and judge every answer.

Every training is a run in the study's folder; an interrupted study goes on where it stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.files import write_atomic
from heedful.studies.knowledge.ahead import (
    ArmJob,
    Job,
    Setting,
    StorageJob,
    train_side_by_side,
)
from heedful.studies.knowledge.arms import ARMS, ROTARY, TrainedArm, baselines, labels_of, train_arm
from heedful.studies.knowledge.asker import STUDY, Threshold, keep_for_asking
from heedful.studies.knowledge.corpus import KnowledgeCorpus
from heedful.studies.knowledge.curves import StorageCase, StoragePlan, storage_point
from heedful.studies.knowledge.findings import Arm, KnowledgeStudy, NameStudy, StoragePoint
from heedful.studies.knowledge.judgement import (
    Judgement,
    confusion,
    judge,
    label_counts,
    study_names,
)
from heedful.studies.knowledge.recipe import Recipe
from heedful.studies.knowledge.training import prepare
from heedful.training.hooks import Report

Step = Callable[[int, int], None]
"""Called with (done, of how many)."""
RUNS = "runs"
PARTS = 1_000
"""Parts of one training that a progress bar can show."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StudyPlan:
    """What a study does, beside its corpus."""

    recipe: Recipe
    """Of every arm."""
    seeds: int = 1
    """How many decoders are trained for each arm."""
    seed: int = 0
    """The first of their seeds."""
    wanted_error: float = 0.1
    """The error rate for which the abstention threshold is chosen."""
    unseen: int = 240
    """Names asked about that nobody has."""
    storage: StoragePlan | None = None
    """The small trainings; None: none."""
    storage_recipe: Recipe | None = None
    """How these are trained."""
    quick: bool = False
    """Whether this only tries the machinery."""
    processes: int = 1
    """Trainings at once, each in a process of its own; 1: one after the other, in this one."""


def knowledge_study(
    corpus: KnowledgeCorpus, plan: StudyPlan, folder: Path, progress: Step | None = None
) -> KnowledgeStudy:
    """Run the whole study in a folder, and write its record there as `knowledge.json`."""
    started = time.perf_counter()
    runs = folder / RUNS
    runs.mkdir(parents=True, exist_ok=True)
    material = prepare(corpus, plan.recipe, seed=plan.seed)
    seeds = range(plan.seed, plan.seed + plan.seeds)
    cases = [] if plan.storage is None else list(plan.storage.cases())
    meter = _Meter(
        [label for arm in ARMS for seed in seeds for label in labels_of(arm, seed)]
        + [f"storage {case.label}" for case in cases],
        progress,
    )
    if plan.processes > 1:
        setting = Setting(corpus=corpus, recipe=plan.recipe, seed=plan.seed, runs=runs,
                          storage=plan.storage, storage_recipe=plan.storage_recipe)  # fmt: skip
        train_side_by_side(setting, _jobs(seeds, cases), plan.processes, meter.tell)
    arms = {arm: train_arm(arm, material, runs, seeds, meter.of) for arm in ARMS}
    main = arms[ROTARY]
    judged = judge(main.answerer, corpus, wanted_error=plan.wanted_error, seed=plan.seed,
                   studied=plan.unseen)  # fmt: skip
    names = study_names(main.answerer, corpus, judged, count=plan.unseen, seed=plan.seed)
    storage = []
    for case in cases:
        assert plan.storage is not None
        recipe, report = plan.storage_recipe or plan.recipe, meter.of(f"storage {case.label}")
        storage.append(
            storage_point(case, recipe, plan.storage, runs, seed=plan.seed, report=report)
        )
    _keep(main, corpus, judged)
    trained = [arm.record for arm in arms.values()]
    record = _record(corpus, plan, judged, (*trained, *baselines(corpus)), names, tuple(storage),
                     main, (time.perf_counter() - started) / 60)  # fmt: skip
    write_atomic(folder / STUDY, record.to_json())
    meter.finish()
    return record


def _jobs(seeds: Sequence[int], cases: Sequence[StorageCase]) -> list[Job]:
    """Return every training, the long ones first, so that no process waits for the last."""
    arms: list[Job] = [
        ArmJob(arm=arm, seed=seed)
        for arm in sorted(ARMS, key=lambda arm: not arm.pretrained)
        for seed in seeds
    ]
    small: list[Job] = [
        StorageJob(case=case, label=f"storage {case.label}")
        for case in sorted(cases, key=lambda case: -case.people)
    ]
    long = sum(plan.pretrained for plan in ARMS) * len(seeds)
    return [*arms[:long], *small, *arms[long:]]


def _keep(main: TrainedArm, corpus: KnowledgeCorpus, judged: Judgement) -> None:
    threshold = Threshold(
        temperature=judged.after.temperature,
        confidence=judged.risk_coverage.threshold,
        wanted_error=judged.risk_coverage.wanted_error,
        promised_error=judged.risk_coverage.promised_error,
    )
    keep_for_asking(main.trained.run, main.answerer, threshold, corpus)


def _record(
    corpus: KnowledgeCorpus,
    plan: StudyPlan,
    judged: Judgement,
    arms: tuple[Arm, ...],
    names: NameStudy | None,
    storage: tuple[StoragePoint, ...],
    main: TrainedArm,
    minutes: float,
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
        ece=judged.after.ece,
        calibration=(judged.before, judged.after),
        risk_coverage=judged.risk_coverage,
        names=names,
        storage=storage,
        answers=judged.answers,
        main_arm=ROTARY.name,
        run=f"{RUNS}/{main.trained.run.name}",
        minutes=minutes,
        quick=plan.quick,
    )


class _Meter:
    """Adds the progress of many trainings up to one bar."""

    def __init__(self, labels: list[str], progress: Step | None) -> None:
        self.shares = dict.fromkeys(labels, 0.0)
        self.progress = progress
        self.total = PARTS * (len(labels) + 1)

    def of(self, label: str) -> Report | None:
        """Return the hook of one training; those before it are done."""
        if self.progress is None:
            return None
        for before in self.shares:
            if before == label:
                break
            self.shares[before] = 1.0
        self.tell(label, self.shares[label])
        return lambda progress: self.tell(label, progress.step / progress.steps)

    def tell(self, label: str, share: float) -> None:
        """Show that so much of a training is done."""
        self.shares[label] = share
        if self.progress is not None:
            self.progress(int(PARTS * sum(self.shares.values())), self.total)

    def finish(self) -> None:
        """Show that everything is done."""
        if self.progress is not None:
            self.progress(self.total, self.total)
