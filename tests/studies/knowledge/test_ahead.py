"""Trainings side by side: what they leave, and what happens when one fails or all are stopped."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pytest
from small_study import RECIPE, small_corpus

from heedful.studies.knowledge import ahead
from heedful.studies.knowledge.ahead import ArmJob, Setting, train_side_by_side
from heedful.studies.knowledge.arms import ARMS, LEARNED, ROTARY, train_arm
from heedful.studies.knowledge.recipe import Recipe
from heedful.studies.knowledge.training import StudyStoppedError, prepare


def setting(folder: Path, recipe: Recipe = RECIPE) -> Setting:
    return Setting(
        corpus=small_corpus(), recipe=recipe, seed=0, runs=folder, storage=None, storage_recipe=None
    )


def weights(folder: Path) -> dict[str, str]:
    found = {}
    for result in folder.glob("*/result.json"):
        content = json.loads(result.read_text())
        assert content["finished"]
        found[result.parent.name] = content["weights_sha256"]
    return found


def test_two_processes_leave_the_very_weights_that_one_does(tmp_path: Path) -> None:
    told: dict[str, list[float]] = {}
    jobs = [ArmJob(arm=arm, seed=0) for arm in ARMS]
    train_side_by_side(
        setting(tmp_path / "two"),
        jobs,
        2,
        lambda label, done: told.setdefault(label, []).append(done),
    )
    material = prepare(small_corpus(), RECIPE)
    for arm in ARMS:
        train_arm(arm, material, tmp_path / "one", [0], lambda _label: None)
    assert weights(tmp_path / "two") == weights(tmp_path / "one")
    assert len(told) == 5
    assert all(done == sorted(done) and done[-1] == 1.0 for done in told.values())


def test_processes_that_fail_leave_everything_to_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "WORKER", "heedful.no_such_module")
    train_side_by_side(setting(tmp_path), [ArmJob(arm=LEARNED, seed=0)], 2, lambda *_: None)
    assert not list(tmp_path.iterdir())


def test_a_signal_stops_and_keeps_all_of_them(tmp_path: Path) -> None:
    long = RECIPE.changed(pretraining=RECIPE.pretraining.changed(steps=100_000))
    begun = threading.Event()

    def stop_once_both_train() -> None:
        begun.wait(60)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop_once_both_train, daemon=True).start()
    seen: set[str] = set()

    def tell(label: str, _done: float) -> None:
        seen.add(label)
        if len(seen) == 2:
            begun.set()

    jobs = [ArmJob(arm=LEARNED, seed=0), ArmJob(arm=ROTARY, seed=0)]
    with pytest.raises(StudyStoppedError) as caught:
        train_side_by_side(setting(tmp_path, long), jobs, 2, tell)
    assert caught.value.exit_code == 128 + signal.SIGTERM
    assert len(list(tmp_path.glob("*/checkpoints/*/model.safetensors"))) == 2
