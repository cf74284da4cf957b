"""The pool of child processes: limits hold, outcomes come in order, and no process is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.errors import FormulaError, InputError, RunError
from heedful.workers import Pool, StartError, TaskLimits, TaskOutcome, report

HERE = Path(__file__).parent
WORK = "obedient_worker:obey"
LIMITS = TaskLimits(seconds=20.0, megabytes=128)


@pytest.fixture(autouse=True)
def work_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the children import the work of these tests."""
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)


def wait_until(true: Callable[[], bool], seconds: float = 150.0) -> bool:
    """Wait for something to become true; return whether it did."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.02)
    return False


def alive(process: int) -> bool:
    """Say whether a process runs; one that only waits to be collected does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def processes(diary: Path) -> list[int]:
    """Return the process of each task in a diary."""
    return [int(line.split()[0]) for line in diary.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_outcomes_come_in_the_order_of_the_tasks(workers: int) -> None:
    orders = ["sleep 0.3", "a", "b", "sleep 0.1", "c"]
    steps: list[tuple[int, int]] = []
    with Pool(WORK, workers=workers, limits=LIMITS) as pool:
        outcomes = pool.map(orders, progress=lambda *step: steps.append(step))
        assert pool.map([]) == []
    assert [(outcome.kind, outcome.value) for outcome in outcomes] == [
        ("value", order) for order in orders
    ]
    assert outcomes[0].seconds >= 0.3
    assert steps == [(done, 5) for done in range(1, 6)]


def test_a_task_that_breaks_a_limit_ends_alone() -> None:
    orders = ["loop", "sleep 600", "hoard 1000", "abort", "leave 3", "divide", "refuse", "fine"]
    start = time.monotonic()
    with Pool(WORK, workers=2, limits=TaskLimits(seconds=2.0, megabytes=128)) as pool:
        outcomes = pool.map(orders)
    assert time.monotonic() - start < 300  # it does not wait for a sleep of 600
    assert [outcome.kind for outcome in outcomes] == [
        "time", "time", "memory", "crash", "crash", "failure", "error", "value",
    ]  # fmt: skip
    assert all(outcome.seconds >= 2.0 for outcome in outcomes[:2])
    assert outcomes[3].value == f"signal {signal.SIGABRT:d}"
    assert outcomes[4].value == "exit 3"
    assert outcomes[5].value == "ZeroDivisionError: one by zero"
    error = outcomes[6].value
    assert isinstance(error, FormulaError)
    assert (error.line, error.column, error.exit_code) == (3, 5, 2)


def test_memory_within_the_limit_is_granted_to_every_task_anew() -> None:
    with Pool(WORK, workers=1, limits=LIMITS) as pool:
        outcomes = pool.map(["hoard 64"] * 6)
    assert [outcome.kind for outcome in outcomes] == ["value"] * 6


def test_thousands_of_tasks_can_be_handed_in_and_cancelled_at_once() -> None:
    with Pool(WORK, workers=1) as pool:
        jobs = [pool.submit(f"sleep {place}", lambda outcome: None) for place in range(30, 3_000)]
        for job in jobs:
            job.cancel()
        outcomes = pool.map([str(place) for place in range(2_000)])
    assert [outcome.value for outcome in outcomes] == [str(place) for place in range(2_000)]


def test_a_child_serves_many_tasks(tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    with Pool(WORK, (str(diary),), workers=1) as pool:
        pool.map(["a", "b"])
        pool.map(["c"])
        (child,) = set(processes(diary))
        assert alive(child)
    assert not alive(child)


def test_a_child_that_dies_between_tasks_is_replaced(tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    with Pool(WORK, (str(diary),), workers=1) as pool:
        pool.map(["a"])
        (child,) = processes(diary)
        os.kill(child, signal.SIGKILL)
        assert wait_until(lambda: not Path(f"/proc/{child}").exists())
        (outcome,) = pool.map(["b"])
    assert outcome.value == "b"
    assert len(set(processes(diary))) == 2


def test_reports_reach_the_caller_before_the_outcome() -> None:
    seen: list[tuple[str, int]] = []
    with Pool(WORK, workers=2) as pool:
        pool.map(["report 3", "report 2"], report=seen.append)
    assert sorted(seen) == [("report 2", 0), ("report 2", 1), *(("report 3", i) for i in range(3))]
    report("nobody listens outside a child")


def test_the_most_urgent_task_comes_first_and_then_the_oldest() -> None:
    order: list[str] = []
    done = threading.Event()

    def reply(outcome: TaskOutcome) -> None:
        order.append(outcome.value)
        if len(order) == 4:
            done.set()

    with Pool(WORK, workers=1) as pool:
        pool.submit("sleep 0.5", reply)
        time.sleep(0.05)
        for task, urgency in (("late", 1), ("first", 0), ("second", 0)):
            pool.submit(task, reply, urgency=urgency)
        assert done.wait(60)
    assert order == ["sleep 0.5", "first", "second", "late"]


def test_tasks_that_wait_for_another_come_after_it(tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    steps: list[tuple[int, int]] = []
    after = {"a": ["b", "d"], "b": ["c"]}
    with Pool(WORK, (str(diary),), workers=1) as pool:
        outcomes = pool.map(
            ["late", "a"],
            progress=lambda *step: steps.append(step),
            urgency=lambda task: int(task == "late"),
            then=lambda task, outcome: after.get(task, []) if outcome.kind == "value" else [],
        )
    # The first ones in their order, and behind them the others as they were handed in.
    assert [outcome.value for outcome in outcomes] == ["late", "a", "b", "d", "c"]
    done = [line.split()[1] for line in diary.read_text("utf-8").splitlines()]
    assert done[0] == "a"
    assert done.index("b") < done.index("c")
    assert (steps[0], steps[-1], len(steps)) == ((1, 4), (5, 5), 5)


def test_a_cancelled_task_is_ended_or_forgotten_and_others_go_on(tmp_path: Path) -> None:
    diary, done = tmp_path / "diary", threading.Event()
    heard: list[TaskOutcome] = []
    with Pool(WORK, (str(diary),), workers=1) as pool:
        running = pool.submit("loop", heard.append)
        waiting = pool.submit("sleep 600", heard.append)
        assert wait_until(diary.exists)
        waiting.cancel()
        running.cancel()
        pool.submit("other", lambda outcome: done.set())
        assert done.wait(150)  # nobody waited for the sleep
    assert heard == []
    assert [line.split()[1] for line in diary.read_text("utf-8").splitlines()] == ["loop", "other"]


def test_a_pool_that_is_stopped_lets_its_children_save(tmp_path: Path) -> None:
    begun: list[str] = []
    with Pool("obedient_worker:save_when_asked", (str(tmp_path),), saving_seconds=20.0) as pool:
        pool.workers = 2
        outcomes = pool.map(["a", "b", "c"], report=begun.append, stop=lambda: len(begun) == 2)
    assert [outcome.kind for outcome in outcomes] == ["stopped"] * 3
    assert {path.name for path in tmp_path.iterdir()} == set(begun)


@pytest.mark.parametrize("factory", ["obedient_worker:nothing", "no_such_module:work"])
def test_code_that_cannot_be_imported_is_said_so(factory: str) -> None:
    with pytest.raises(StartError, match="cannot be started"), Pool(factory, workers=2) as pool:
        pool.map(["a", "b", "c"])


def test_a_closed_pool_takes_no_tasks() -> None:
    pool = Pool(WORK, workers=1)
    pool.close()
    with pytest.raises(RunError, match="closed"):
        pool.map(["a"])


@pytest.mark.parametrize("limits", [{"seconds": 0.0}, {"seconds": float("nan")}, {"megabytes": 1}])
def test_senseless_limits_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(InputError):
        TaskLimits(**limits)  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [0, 1000])
def test_a_senseless_number_of_workers_is_refused(workers: int) -> None:
    with pytest.raises(InputError):
        Pool(WORK, workers=workers)


ENDLESS = """
import sys
from heedful.workers import Pool

with Pool("obedient_worker:obey", (sys.argv[1],), workers=2) as pool:
    pool.map(["sleep 600", "loop"])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_child_outlives_its_parent(number: signal.Signals, tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    command = [sys.executable, "-c", ENDLESS, str(diary)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as parent:
        assert wait_until(lambda: diary.exists() and len(processes(diary)) == 2)
        parent.send_signal(number)
        parent.wait(timeout=150)
    assert wait_until(lambda: not any(map(alive, processes(diary))))
    assert parent.returncode != 0
