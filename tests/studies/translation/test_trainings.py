"""Arms trained side by side: what they leave, and what happens when they fail or are stopped."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from small_arms import LEARNING, TINY, without_times, write_visitor

from heedful.studies.parallel import Children
from heedful.studies.translation import trainings
from heedful.studies.translation.recipe import StudySettings, study_settings
from heedful.studies.translation.results import HERE, LONGER, SCRATCH, TranslationStudy
from heedful.studies.translation.translation_study import run_study
from heedful.training import RunStoppedError

TRAINED = {**LEARNING, "steps": 40}
IN_THE_PARENT = "tokens/s"
"""Stands in what is told of a training only if the study's own process trains."""


def settings(processes: int) -> StudySettings:
    """Two draws of the pairs, and weights that need not be the last ones."""
    changes = {
        "sizes": (40,),
        "seeds": (2,),
        "same_work": (40,),
        "early_stopping": True,
        "processes": processes,
    }
    learned = dict.fromkeys(("scratch", "pretraining", "fine_tuning"), TRAINED)
    return study_settings(TINY, changes, learned)


def weights(folder: Path) -> dict[str, str]:
    """Return the hash of the weights of each run, all of which are finished."""
    results = {
        path.parent.name: json.loads(path.read_text("utf-8"))
        for path in folder.glob("runs/*/result.json")
    }
    assert all(result["finished"] for result in results.values())
    return {name: result["weights_sha256"] for name, result in results.items()}


def stopping(moment: str, number: signal.Signals) -> Callable[[str, float], None]:
    """Return who is told, and sends this process a signal once such a training has begun."""
    begun: list[str] = []

    def tell(what: str, _share: float) -> None:
        if moment in what and ": step " in what and not begun:
            begun.append(what)
            os.kill(os.getpid(), number)

    return tell


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("one_process")


@pytest.fixture(scope="module")
def alone(folder: Path) -> TranslationStudy:
    return run_study(settings(1), folder)


def test_two_processes_leave_the_very_record_that_one_does(
    alone: TranslationStudy, folder: Path, tmp_path: Path
) -> None:
    told: list[tuple[str, float]] = []
    made = run_study(settings(2), tmp_path, tell=lambda *what: told.append(what))
    assert without_times(made.to_dict()) == without_times(alone.to_dict())
    assert weights(tmp_path) == weights(folder)
    assert len(weights(tmp_path)) == 1 + 2 + 2 + 1
    # All of it was trained by children, two at a time.
    assert not any(IN_THE_PARENT in what for what, _ in told)
    assert any(" and " in what and ": step " in what for what, _ in told)
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_public_checkpoint_of_one_thread_is_tuned_by_children_too(tmp_path: Path) -> None:
    model = str(write_visitor(tmp_path))
    elsewhere = {"model": model, "columns": 512, "sentences": 5, "rank": 2, "lanes": 1}
    tuned = {"elsewhere": {**elsewhere, "same_work": True, "full_sizes": (40,)}}
    told: list[str] = []
    one, two = (
        run_study(
            study_settings(TINY, {"sizes": (40,), "same_work": (), "processes": count}, tuned),
            tmp_path / str(count),
            tell=lambda what, _share, count=count: told.append(f"{count} {what}"),
        )
        for count in (1, 2)
    )
    assert weights(tmp_path / "1") == weights(tmp_path / "2")
    assert len(weights(tmp_path / "2")) == 1 + 1 + 1 + 2
    assert without_times(one.to_dict()) == without_times(two.to_dict())
    assert not any(what.startswith("2") and IN_THE_PARENT in what for what in told)


def test_the_steps_of_the_same_work_are_those_that_finished_trainings_give(
    alone: TranslationStudy,
) -> None:
    here, scratch = alone.result(HERE, 40), alone.result(SCRATCH, 40)
    steps = round(here.work / scratch.work * scratch.steps)
    assert alone.result(LONGER, 40).steps == steps > 2 * scratch.steps


EARLY, LATE = ("language model", signal.SIGTERM), ("here", signal.SIGINT)


@pytest.mark.parametrize(
    "moments",
    [
        pytest.param((LATE,), id="once"),
        pytest.param((EARLY, LATE), id="twice", marks=[pytest.mark.long]),
    ],
)
def test_signals_stop_all_trainings_and_the_study_goes_on(
    moments: tuple[tuple[str, signal.Signals], ...], alone: TranslationStudy, tmp_path: Path
) -> None:
    for moment, number in moments:
        with pytest.raises(RunStoppedError) as caught:
            run_study(settings(2), tmp_path, tell=stopping(moment, number))
        assert caught.value.exit_code == 128 + number
        assert str(tmp_path / "runs") in str(caught.value)
        assert list(tmp_path.glob("runs/*/checkpoints/*/model.safetensors"))
        results = [json.loads(path.read_text("utf-8")) for path in tmp_path.glob("runs/*/result.*")]
        assert not all(result["finished"] for result in results)
    again = run_study(settings(2), tmp_path)
    assert without_times(again.to_dict()) == without_times(alone.to_dict())


def test_what_children_fail_to_train_is_trained_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainings, "CHILD", "heedful.no_such_module:train")
    told: list[str] = []
    changes = {"sizes": (40,), "same_work": (), "processes": 2}
    made = run_study(
        study_settings(TINY, changes), tmp_path, tell=lambda what, _share: told.append(what)
    )
    assert any(IN_THE_PARENT in what for what in told)
    assert [arm.arm for arm in made.arms] == [SCRATCH, HERE]
    assert len(weights(tmp_path)) == 3


def test_a_finished_study_starts_no_process(
    alone: TranslationStudy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(Children, "train", never)
    again = run_study(settings(2), folder)
    assert without_times(again.to_dict()) == without_times(alone.to_dict())
