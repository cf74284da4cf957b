"""One owner of runs: found again by their settings, and finished or not at all."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import forked
import pytest
from small_training import Numbers, small_config

from heedful.errors import InputError
from heedful.training import (
    Hooks,
    RunStoppedError,
    finished_run,
    is_finished,
    list_runs,
    run_path,
    train,
    train_to_end,
)
from heedful.training.hooks import Progress

TRANSLATION = """
from heedful.studies.translation.translation_study import run_study
from heedful.studies.translation.recipe import study_settings
learning = {"steps": STEPS, "growth": 0.0, "columns": 256}
run_study(study_settings({"sizes": (40,), "sentences": 4, "development": 4, "evaluations": 4,
    "vocabulary": 300, "texts": 40, "scratch": learning, "pretraining": {**learning, "steps": 2},
    "fine_tuning": {**learning, "steps": 2}, "same_work": (),
    "shape": {"width": 16, "layers": 1, "heads": 2, "hidden": 32, "context": 200}}), FOLDER)
"""
KNOWLEDGE = """
from heedful.studies.knowledge.plans import plan_for
from heedful.studies.knowledge.knowledge_study import study_knowledge
from dataclasses import replace
corpus, plan = plan_for(quick=True, changes={"steps": STEPS})
study_knowledge(corpus, replace(plan, processes=1, storage=None), FOLDER)
"""
HEADS = """
from heedful.studies.heads.small_models import QUICK, base_run
from dataclasses import replace
base_run(replace(QUICK, steps=STEPS, pairs=200, width=16), FOLDER)
"""
CHILD = """
import sys
from pathlib import Path
import torch
from heedful.errors import HeedfulError
torch.set_num_threads(1)
FOLDER, STEPS = Path(sys.argv[1]), int(sys.argv[2])
try:
    exec(sys.argv[3])
except HeedfulError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""


def _child(work: str, folder: Path, steps: int) -> forked.Child:
    return forked.start(["-c", CHILD, str(folder), str(steps), work], folder.parent)


@pytest.mark.parametrize(
    "work", [TRANSLATION, KNOWLEDGE, HEADS], ids=["translation", "knowledge", "heads"]
)
def test_a_stopped_training_is_never_taken_for_a_finished_one(work: str, tmp_path: Path) -> None:
    process = _child(work, tmp_path / "study", 100_000)
    while not (begun := list(tmp_path.rglob("run.lock"))) or not begun[0].stat().st_size:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGTERM)
    _, err = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM, err
    assert "was stopped by SIGTERM; run the same command again to go on" in err
    (stopped,) = {path.parent for path in tmp_path.rglob("result.json")}
    assert not is_finished(stopped)
    assert finished_run(stopped) is None
    # The same command must go on with it: when it is stopped again, more steps are taken.
    again = _child(work, tmp_path / "study", 100_000)
    before = (stopped / "result.json").read_bytes()
    while '"step"' not in (stopped / "metrics.jsonl").read_text("utf-8"):
        time.sleep(0.02)
    while "running" not in list_runs(stopped).runs[0].state:
        assert again.poll() is None, again.communicate()[1]
        time.sleep(0.02)
    os.kill(again.pid, signal.SIGTERM)
    _, err = again.communicate()
    assert again.returncode == 128 + signal.SIGTERM, err
    assert (stopped / "result.json").read_bytes() != before


def test_the_same_settings_and_data_find_the_same_run(tmp_path: Path) -> None:
    config, data = small_config(), {"pairs": "a1"}
    path = run_path(tmp_path, "scratch", config, data)
    assert path == run_path(tmp_path, "scratch", small_config(), dict(data))
    others = [
        run_path(tmp_path, "scratch", config.changed(seed=1), data),
        run_path(tmp_path, "scratch", config, {"pairs": "a2"}),
        run_path(tmp_path, "here", config, data),
    ]
    assert len({path, *others}) == 4


def test_a_run_is_trained_once_and_resumed_where_it_was_stopped(tmp_path: Path) -> None:
    steps: list[int] = []

    def report(progress: Progress) -> None:
        steps.append(progress.step)
        if len(steps) == 6:
            os.kill(os.getpid(), signal.SIGTERM)

    hooks = Hooks(report=report)
    with pytest.raises(RunStoppedError, match="stopped by SIGTERM") as stopped:
        train_to_end(tmp_path / "run", small_config(), Numbers(), hooks=hooks)
    assert stopped.value.exit_code == 128 + signal.SIGTERM
    assert finished_run(tmp_path / "run") is None
    first = train_to_end(tmp_path / "run", small_config(), Numbers(), hooks=hooks)
    again = train_to_end(tmp_path / "run", small_config(), Numbers(), hooks=hooks)
    assert steps == list(range(1, 15))
    assert first.result.to_dict() == again.result.to_dict()
    assert first.result.resumed_from == 7  # the step in which the signal was heard
    whole = train(small_config(), Numbers(), tmp_path / "whole")
    assert first.result.weights_sha256 == whole.weights_sha256
    assert 0 < first.seconds_at(3) < first.seconds
    assert first.work == again.work > 0
    assert first.processor_seconds > first.result.processor_seconds > 0  # both stretches count


def test_a_result_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text('{"finished": true}')
    assert is_finished(tmp_path)
    with pytest.raises(InputError, match="another version"):
        finished_run(tmp_path)
