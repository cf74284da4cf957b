"""What is trained, and how often it is right: the arms, their learning curves, and storage.

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
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool

from heedful.model import Decoder, parameter_count
from heedful.stats import DRAWS, percentile_interval, wilson
from heedful.studies.knowledge.answers import Answerer, correct
from heedful.studies.knowledge.corpus import KnowledgeCorpus, embedded
from heedful.studies.knowledge.findings import Arm, CurvePoint, StoragePoint
from heedful.studies.knowledge.names import baseline_answers
from heedful.studies.knowledge.plans import ArmPlan, Recipe, StorageCase, StoragePlan
from heedful.studies.knowledge.training import Material, fine_tune, prepare, pretrain
from heedful.training import FinishedRun
from heedful.training.hooks import Evaluation, Report

CLOCKS = ("minutes", "processor_minutes")
WORKED = "processor_minutes"
ReportOf = Callable[[str], Report | None]
"""Gives the report hook of a training, by its label."""


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
