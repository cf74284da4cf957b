"""The study from end to end: train everything, ask, judge every answer, and write the record.

Every training is a run in the study's folder, so an interrupted study is resumed where it stopped.
There is one plan of trainings. It is trained first, in parallel where that pays: a training this
small keeps one core busy and gains next to nothing from a second, so each gets a process of its own
with one thread. Then the runs are opened and asked.

What is trained, and how often it is right:

    no pretraining         fine-tuning alone: what questions teach about other questions
    pretraining            documents first, with learned positions
    pretraining, rotary    the same with rotary positions

Several seeds are averaged; the interval is then a bootstrap that draws seeds and questions anew,
since all seeds are asked the same questions.

Where training questions are mixed into the text, a decoder can be asked at any time. It is asked
now and then during pretraining; nothing is chosen by what it says. The learning curve of an arm
asks the test and the held-out questions. Two clocks run: minutes as they pass, and minutes in which
a processor worked for this process; the time that asking takes is not counted. On a machine that
does other things as well only the second can be compared. Both begin again when a stopped training
is resumed: the stretch in which that happened is counted at the speed before it.

Storage is accuracy against exposures, people, size, and ways of saying it, in small trainings that
differ in one thing each. An exposure is one reading of one document about a person.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool

from heedful.files import write_atomic
from heedful.model import Decoder, parameter_count
from heedful.progress import Parts, Step
from heedful.stats import DRAWS, percentile_interval, wilson
from heedful.studies.knowledge.answers import Answerer, correct
from heedful.studies.knowledge.asker import AskSettings, keep_for_asking
from heedful.studies.knowledge.corpus import KnowledgeCorpus, embedded
from heedful.studies.knowledge.findings import (
    RECORD,
    Arm,
    CurvePoint,
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
from heedful.studies.knowledge.names import baseline_answers
from heedful.studies.knowledge.plans import (
    ArmPlan,
    ArmTraining,
    Recipe,
    StorageCase,
    StoragePlan,
    StudyPlan,
    Training,
)
from heedful.studies.knowledge.training import Material, fine_tune, prepare, pretrain
from heedful.studies.parallel import Children, now_and_then, saved_when_stopped
from heedful.training import FinishedRun
from heedful.training.hooks import Evaluation, Report
from heedful.workers import report

RUNS = "runs"
CHILD = "heedful.studies.knowledge.knowledge_study:child_trainer"
"""What a child process of the pool runs."""

Tell = Callable[[str, float], None]
"""Called with the label of a run and the share of it that is done."""
CLOCKS = ("minutes", "processor_minutes")
WORKED = "processor_minutes"
ReportOf = Callable[[str], Report | None]
"""Gives the report hook of a training, by its label."""


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
    children = Children(
        factory=CHILD,
        arguments=(trainer.corpus, trainer.plan, trainer.runs),
        processes=processes,
        runs=trainer.runs,
    )
    outcomes = children.train(trainings, tell)
    # What a child failed to train is trained here, where an error reaches the user.
    return [
        outcomes[training] if training in outcomes else trainer.train(training, tell)
        for training in trainings
    ]


def child_trainer(
    corpus: KnowledgeCorpus, plan: StudyPlan, runs: Path
) -> Callable[[Training], Any]:
    """Return what a child process does with a training."""
    trainer = KnowledgeTrainer(corpus, plan, runs)
    return saved_when_stopped(
        lambda training: trainer.train(training, lambda label, share: report((label, share)))
    )


def _hook(label: str, tell: Tell) -> Report:
    """Return the report hook of a training: it tells the share that is done."""
    return now_and_then(lambda progress: tell(label, progress.step / progress.steps))


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


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainedArm:
    """An arm, and the decoder of its first seed."""

    record: Arm
    run: FinishedRun
    answerer: Answerer


def train_arm(
    arm: ArmPlan, material: Material, folder: Path, seed: int, report_of: ReportOf
) -> tuple[FinishedRun, ...]:
    """Return the runs of an arm with one seed: pretraining, if it has one, and fine-tuning."""
    *before, last = arm.labels(seed)
    pretrained = None
    if before:
        points = material.recipe.curve
        pretrained = pretrain(
            material, folder, label=before[0], positions=arm.positions, seed=seed,
            report=report_of(before[0]), evaluate=CurveWatch(material) if points else None,
            evaluations=max(points, 1),
        )  # fmt: skip
    tuned = fine_tune(
        material, folder, label=last, positions=arm.positions, after=pretrained, seed=seed,
        report=report_of(last),
    )  # fmt: skip
    return (tuned,) if pretrained is None else (pretrained, tuned)


def measure_arm(
    arm: ArmPlan, material: Material, runs: Mapping[int, tuple[FinishedRun, ...]]
) -> TrainedArm:
    """Ask the test questions of the decoder of every seed."""
    corpus = material.corpus
    answerers = [Answerer.of(stages[-1].decoder(), material) for stages in runs.values()]
    right = np.array([correct(corpus.test, one.replies_to(corpus.test)) for one in answerers])
    answerer, (*before, tuned) = answerers[0], next(iter(runs.values()))
    record = _arm(
        arm.name,
        corpus,
        right,
        list(runs),
        settings=_settings(arm, material.recipe),
        work=sum(run.work for stages in runs.values() for run in stages) / len(runs),
        minutes=_mean_minutes(list(runs.values())),
        pretraining_minutes=_mean_minutes([stages[:-1] for stages in runs.values()]),
        parameters=parameter_count(answerer.decoder.config),
        held_out_accuracy=answerer.accuracy(corpus.held_out),
        curve=curve_of(before[0].result.evaluations) if before else (),
    )
    return TrainedArm(record=record, run=tuned, answerer=answerer)


def _settings(arm: ArmPlan, recipe: Recipe) -> dict[str, Any]:
    """Return in what arms may differ; shape, tokenizer and texts are those of the study."""
    tuning = recipe.finetuning if arm.pretrained else recipe.alone or recipe.finetuning
    return {
        "pretraining": arm.pretrained,
        "positions": arm.positions,
        **{f"fine-tuning {name}": value for name, value in tuning.model_dump().items()},
    }


def baselines(corpus: KnowledgeCorpus) -> tuple[Arm, ...]:
    """Return the arms without a model."""
    arms = []
    for name, answers in baseline_answers(corpus).items():
        right = [said == one.answer for said, one in zip(answers, corpus.test, strict=True)]
        arms.append(_arm(name, corpus, np.array([right]), []))
    return tuple(arms)


def mean_interval(right: Bool[np.ndarray, "seeds questions"], seed: int = 0) -> tuple[float, float]:
    """Return the interval of the share of right answers, over other seeds and other questions."""
    seeds, questions = right.shape
    if questions == 0:
        return 0.0, 1.0
    if right.all() or not right.any():  # nothing varies from resample to resample
        return wilson(questions * int(right.any()), questions)
    if seeds == 1:
        return wilson(int(right.sum()), questions)
    draw = np.random.default_rng(np.random.SeedSequence([seed, 5]))
    resampled = [
        right[draw.integers(seeds, size=seeds)]
        .mean(axis=0)[draw.integers(questions, size=questions)]
        .mean()
        for _ in range(DRAWS)
    ]
    return percentile_interval(resampled)


class CurveWatch:
    """An `evaluate` callable that asks; the clocks run from when it is made."""

    def __init__(self, material: Material) -> None:
        self.material = material
        self.begun = _clocks()

    def __call__(self, decoder: Decoder, _step: int) -> dict[str, float]:
        """Return accuracies and times."""
        now = _clocks()
        wall, worked = now[0] - self.begun[0], now[1] - self.begun[1]
        answerer, corpus = Answerer.of(decoder, self.material), self.material.corpus
        values = {
            "minutes": wall / 60,
            "processor_minutes": worked / 60,
            "accuracy": answerer.accuracy(corpus.test),
            "held_out_accuracy": answerer.accuracy(corpus.held_out),
        }
        after = _clocks()
        self.begun = (self.begun[0] + after[0] - now[0], self.begun[1] + after[1] - now[1])
        return values


def curve_of(evaluations: Sequence[Evaluation]) -> tuple[CurvePoint, ...]:
    """Return the curve that a watched pretraining left in its run, across all resumes."""
    points: list[CurvePoint] = []
    offsets = dict.fromkeys(CLOCKS, 0.0)
    shown = dict.fromkeys(CLOCKS, 0.0)
    for one in evaluations:
        if not set(CLOCKS) <= set(one.values):
            continue
        if points and one.values[WORKED] < shown[WORKED]:
            for clock in CLOCKS:
                before = getattr(points[-1], clock)
                expected = before + (one.step - points[-1].step) * before / points[-1].step
                offsets[clock] = expected - one.values[clock]
        shown = {clock: one.values[clock] for clock in CLOCKS}
        times = {clock: offsets[clock] + shown[clock] for clock in CLOCKS}
        points.append(CurvePoint(step=one.step, **{**one.values, **times}))
    return tuple(points)


def storage_point(
    case: StorageCase,
    recipe: Recipe,
    plan: StoragePlan,
    folder: Path,
    *,
    seed: int,
    report: Report | None = None,
) -> StoragePoint:
    """Train one case and return its curve."""
    corpus = embedded(case.people, seed=seed, phrasings=case.phrasings, exposures=plan.exposures)
    heads = recipe.shape.heads
    shape = recipe.shape.changed(width=case.width, heads=min(heads, max(case.width // 16, 1)))
    material = prepare(corpus, recipe.changed(shape=shape), seed=seed)
    asked = tuple(one for one in corpus.test if one.seen)
    run = pretrain(
        material,
        folder,
        label=case.labels[0],
        positions="rotary",
        seed=seed,
        report=report,
        evaluate=lambda decoder, _: {"accuracy": Answerer.of(decoder, material).accuracy(asked)},
        evaluations=plan.evaluations,
    )
    # One epoch reads each document once in every corruption.
    per_epoch = plan.exposures * (recipe.variants if recipe.objective == "spans" else 1)
    evaluations = run.result.evaluations
    accuracy = tuple(one.values["accuracy"] for one in evaluations)
    intervals = [wilson(round(share * len(asked)), len(asked)) for share in accuracy]
    return StoragePoint(
        series=case.series,
        label=case.label,
        people=sum(one.seen for one in (*corpus.train, *corpus.held_out, *corpus.test)),
        parameters=parameter_count(run.decoder().config),
        exposures=tuple(one.step / len(material.documents) * per_epoch for one in evaluations),
        accuracy=accuracy,
        low=tuple(low for low, _ in intervals),
        high=tuple(high for _, high in intervals),
        minutes=run.seconds / 60,
    )


def _arm(
    name: str,
    corpus: KnowledgeCorpus,
    right: Bool[np.ndarray, "seeds questions"],
    seeds: list[int],
    *,
    settings: dict[str, Any] | None = None,
    work: float = 0.0,
    minutes: float = 0.0,
    pretraining_minutes: float = 0.0,
    parameters: int = 0,
    held_out_accuracy: float | None = None,
    curve: tuple[CurvePoint, ...] = (),
) -> Arm:
    seen = np.array([one.seen for one in corpus.test])
    groups: dict[str, tuple[int, int]] = {}
    for place, one in enumerate(corpus.test):
        before = groups.get(one.group, (0, 0))
        groups[one.group] = (before[0] + int(right[:, place].sum()), before[1] + len(right))
    low, high = mean_interval(right[:, seen])
    return Arm(
        arm=name,
        kind="trained" if seeds else "baseline",
        accuracy=float(right[:, seen].mean()) if seen.any() else 0.0,
        low=low,
        high=high,
        settings=settings or {},
        work=work,
        minutes=minutes,
        pretraining_minutes=pretraining_minutes,
        parameters=parameters,
        seeds={seed: float(row[seen].mean()) for seed, row in zip(seeds, right, strict=False)},
        groups=dict(sorted(groups.items())),
        questions=int(seen.sum()),
        unseen_accuracy=float(right[:, ~seen].mean()) if not seen.all() else None,
        held_out_accuracy=held_out_accuracy,
        curve=curve,
    )


def _mean_minutes(runs: Sequence[tuple[FinishedRun, ...]]) -> float:
    return sum(run.seconds for stages in runs for run in stages) / len(runs) / 60


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()
