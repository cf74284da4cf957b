"""Trainings in parallel: what they leave, and what happens when one fails or all are stopped."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pytest
from small_study import RECIPE, small_corpus

from heedful.studies.knowledge import knowledge_study
from heedful.studies.knowledge.knowledge_study import KnowledgeTrainer, train_all
from heedful.studies.knowledge.plans import ARMS, LEARNED, ROTARY, ArmTraining, Recipe, StudyPlan
from heedful.training import RunStoppedError


def trainer(folder: Path, recipe: Recipe = RECIPE) -> KnowledgeTrainer:
    return KnowledgeTrainer(small_corpus(), StudyPlan(recipe=recipe), folder)


def weights(folder: Path) -> dict[str, str]:
    digests = {}
    for result in folder.glob("*/result.json"):
        content = json.loads(result.read_text())
        assert content["finished"]
        digests[result.parent.name] = content["weights_sha256"]
    return digests


def test_two_processes_leave_the_very_weights_that_one_does(tmp_path: Path) -> None:
    told: dict[str, list[float]] = {}
    trainings = [ArmTraining(arm=arm, seed=0) for arm in ARMS]
    parallel = train_all(
        trainer(tmp_path / "two"),
        trainings,
        2,
        lambda label, share: told.setdefault(label, []).append(share),
    )
    alone = train_all(trainer(tmp_path / "one"), trainings, 1, lambda *_: None)
    assert weights(tmp_path / "two") == weights(tmp_path / "one")
    assert [[run.folder.name for run in runs] for runs in parallel] == [
        [run.folder.name for run in runs] for runs in alone
    ]
    assert len(told) == 5
    assert all(shares == sorted(shares) and shares[-1] == 1.0 for shares in told.values())


def test_what_child_processes_fail_to_train_is_trained_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knowledge_study, "CHILD", "heedful.no_such_module:train")
    [[pretrained, tuned]] = train_all(
        trainer(tmp_path), [ArmTraining(arm=LEARNED, seed=0)], 2, lambda *_: None
    )
    assert set(weights(tmp_path)) == {pretrained.folder.name, tuned.folder.name}


def test_a_signal_stops_and_keeps_all_of_them(tmp_path: Path) -> None:
    long = RECIPE.changed(pretraining=RECIPE.pretraining.changed(steps=100_000))
    begun = threading.Event()

    def stop_once_both_train() -> None:
        begun.wait(60)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop_once_both_train, daemon=True).start()
    seen: set[str] = set()

    def tell(label: str, _share: float) -> None:
        seen.add(label)
        if len(seen) == 2:
            begun.set()

    trainings = [ArmTraining(arm=LEARNED, seed=0), ArmTraining(arm=ROTARY, seed=0)]
    with pytest.raises(RunStoppedError) as caught:
        train_all(trainer(tmp_path, long), trainings, 2, tell)
    assert caught.value.exit_code == 128 + signal.SIGTERM
    assert len(list(tmp_path.glob("*/checkpoints/*/model.safetensors"))) == 2
