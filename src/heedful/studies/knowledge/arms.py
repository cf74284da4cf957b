"""The arms of the study: how often each way to answer is right.

    no pretraining         fine-tuning alone: what questions teach about other questions
    pretraining            documents first, with learned positions
    pretraining, rotary    the same with rotary positions

Several seeds are averaged; the interval is then a bootstrap over questions, since all seeds are
asked the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from heedful.model import parameter_count
from heedful.stats import bootstrap_mean, wilson
from heedful.studies.knowledge.answers import Answerer, Reply, answer_room
from heedful.studies.knowledge.corpus import Asked, KnowledgeCorpus
from heedful.studies.knowledge.curves import CurveWatch, curve_of
from heedful.studies.knowledge.findings import Arm
from heedful.studies.knowledge.names import baseline_answers
from heedful.studies.knowledge.recipe import PositionKind
from heedful.studies.knowledge.training import Material, Trained, fine_tune, pretrain
from heedful.training.hooks import Report

Meter = Callable[[str], Report | None]
"""Gives the report hook of a training, by its label."""


@dataclass(frozen=True)
class ArmPlan:
    """One trained arm."""

    name: str
    folder: str
    positions: PositionKind
    pretrained: bool


NO_PRETRAINING = ArmPlan("no pretraining", "none", "learned", False)
LEARNED = ArmPlan("pretraining", "learned", "learned", True)
ROTARY = ArmPlan("pretraining, rotary", "rotary", "rotary", True)
ARMS = (NO_PRETRAINING, LEARNED, ROTARY)


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainedArm:
    """An arm and the decoder of its first seed."""

    record: Arm
    trained: Trained
    answerer: Answerer
    replies: list[Reply]
    """Of the first seed, to the test questions."""


def labels_of(plan: ArmPlan, seed: int) -> list[str]:
    """Return what the runs of an arm are called."""
    stages = ["pretrain", "finetune"] if plan.pretrained else ["finetune"]
    return [f"{plan.folder}-{stage}-{seed}" for stage in stages]


def train_arm(
    plan: ArmPlan, material: Material, folder: Path, seeds: Sequence[int], meter: Meter
) -> TrainedArm:
    """Train an arm with every seed, and ask it the test questions."""
    corpus = material.corpus
    room = answer_room(material.tokenizer, corpus.train)
    questions = [one.question for one in corpus.test]
    made: list[tuple[Trained, Answerer, list[Reply]]] = []
    for seed in seeds:
        trained = train_stages(plan, material, folder, seed, meter)
        answerer = Answerer(trained.decoder, material.tokenizer, room)
        made.append((trained, answerer, answerer.replies(questions)))
    right = np.array([_right(corpus.test, replies) for _, _, replies in made])
    trained, answerer, replies = made[0]
    held_out = _right(corpus.held_out, answerer.replies([one.question for one in corpus.held_out]))
    record = _arm(
        plan.name,
        corpus,
        right,
        list(seeds),
        minutes=sum(one.seconds for one, _, _ in made) / len(made) / 60,
        pretraining_minutes=sum(one.pretraining_seconds for one, _, _ in made) / len(made) / 60,
        parameters=parameter_count(trained.decoder.config),
        held_out_accuracy=float(held_out.mean()),
    )
    record = replace(record, curve=curve_of(trained.before))
    return TrainedArm(record=record, trained=trained, answerer=answerer, replies=replies)


def train_stages(
    plan: ArmPlan, material: Material, folder: Path, seed: int, meter: Meter
) -> Trained:
    """Pretrain if the arm does, and fine-tune; or find it done."""
    *before, last = labels_of(plan, seed)
    first = None
    if before:
        points = material.recipe.curve
        watch = CurveWatch(material) if points else None
        first = pretrain(
            material, folder, label=before[0], positions=plan.positions, seed=seed,
            report=meter(before[0]), evaluate=watch, evaluations=max(points, 1),
        )  # fmt: skip
    return fine_tune(
        material, folder, label=last, positions=plan.positions, after=first, seed=seed,
        report=meter(last),
    )  # fmt: skip


def baselines(corpus: KnowledgeCorpus) -> tuple[Arm, ...]:
    """Return the arms without a model."""
    made = []
    for name, answers in baseline_answers(corpus).items():
        right = np.array(
            [[said == one.answer for said, one in zip(answers, corpus.test, strict=True)]]
        )
        made.append(_arm(name, corpus, right, []))
    return tuple(made)


def mean_interval(right: Bool[np.ndarray, "seeds questions"], seed: int = 0) -> tuple[float, float]:
    """Return the interval of the share of right answers, averaged over seeds."""
    if right.shape[1] == 0:
        return 0.0, 1.0
    if len(right) == 1:
        return wilson(int(right.sum()), right.shape[1])
    shares = right.mean(axis=0)
    if shares.std() == 0:  # nothing varies from resample to resample
        return wilson(round(float(shares.mean()) * len(shares)), len(shares))
    return bootstrap_mean(shares, np.random.default_rng(np.random.SeedSequence([seed, 5])))


def _arm(
    name: str,
    corpus: KnowledgeCorpus,
    right: Bool[np.ndarray, "seeds questions"],
    seeds: list[int],
    *,
    minutes: float = 0.0,
    pretraining_minutes: float = 0.0,
    parameters: int = 0,
    held_out_accuracy: float | None = None,
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
        minutes=minutes,
        pretraining_minutes=pretraining_minutes,
        parameters=parameters,
        seeds={seed: float(row[seen].mean()) for seed, row in zip(seeds, right, strict=False)},
        groups=dict(sorted(groups.items())),
        questions=int(seen.sum()),
        unseen_accuracy=float(right[:, ~seen].mean()) if not seen.all() else None,
        held_out_accuracy=held_out_accuracy,
    )


def _right(asked: Sequence[Asked], replies: Sequence[Reply]) -> Bool[np.ndarray, " questions"]:
    return np.array(
        [reply.text == one.answer for one, reply in zip(asked, replies, strict=True)], dtype=bool
    )
