"""The same check on a Dask cluster: a scheduler and two workers, each a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from heedful.claims import checker
from heedful.claims.checker import Checker, CheckReport, Task, outcomes_on_cluster
from heedful.claims.sheet import Sheet, load_sheet
from heedful.errors import InputError
from heedful.workers import TaskLimits

HERE = Path(__file__).parent
JUDGE = "obedient_judge:judge"

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed")


@pytest.fixture(scope="module")
def diary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the judges of the cluster note what they are asked."""
    return tmp_path_factory.mktemp("diary") / "diary"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, diary: Path) -> Iterator[str]:
    """Start a scheduler and two workers over loopback; end them afterwards."""
    folder = tmp_path_factory.mktemp("cluster")
    contact = folder / "scheduler.json"
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
        "DIARY": str(diary),
        "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "30s",
        "OMP_NUM_THREADS": "1",
    }
    dask = [sys.executable, "-m", "dask"]
    local = ["--scheduler-file", str(contact), "--no-dashboard"]
    commands = [
        [*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", *local],
        *[
            [*dask, "worker", *local, "--host", "127.0.0.1", "--nthreads", "1", "--name", name,
             "--death-timeout", "60", "--local-directory", str(folder)]
            for name in ("one", "two")
        ],
    ]  # fmt: skip
    with ExitStack() as stack:
        for command in commands:
            log = stack.enter_context((folder / "log").open("ab"))
            process = stack.enter_context(
                subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
            )
            stack.callback(_end, process)
            _wait_for(contact, folder / "log")
        yield json.loads(contact.read_text("utf-8"))["address"]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=150)
    except subprocess.TimeoutExpired:
        process.kill()


def _wait_for(contact: Path, log: Path) -> None:
    end = time.monotonic() + 150
    while not contact.exists():
        assert time.monotonic() < end, log.read_text("utf-8")
        time.sleep(0.05)


def sheet_of(*orders: str) -> Sheet:
    return load_sheet(
        "".join(
            f'[[claim]]\nid = "{place}"\nsays = "{order}"\nexpect = "1 = 1"\n'
            for place, order in enumerate(orders)
        )
    )


def words(report: CheckReport) -> list[tuple[str, str, str]]:
    return [(v.id, v.verdict, v.evidence.statement) for v in report.claims]


def test_a_cluster_gives_the_report_of_this_machine(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)
    sheet = sheet_of("true", "false", "spin", "abort", "refuse query", "grow 200", *["true"] * 20)
    limits = TaskLimits(seconds=3.0, megabytes=256)
    seen: list[tuple[int, int]] = []
    with Checker(limits=limits, cluster=address, judge=JUDGE) as there:
        remote = there.check([sheet], lambda *step: seen.append(step))
    with Checker(workers=2, limits=limits, judge=JUDGE) as here:
        local = here.check([sheet])
    assert words(remote) == words(local)
    assert [p.message for p in remote.problems] == [p.message for p in local.problems]
    assert remote.counts == local.counts
    assert local.counts["undecided"] == 3
    assert seen[-1] == (26, 26)


def test_both_workers_take_part_and_their_children_do_the_work(address: str, diary: Path) -> None:
    from distributed import Client

    with Client(address, timeout="30s", set_as_default=False) as client:
        client.wait_for_workers(2, timeout=150)
        workers = set(client.run(os.getpid).values())
    diary.unlink(missing_ok=True)
    tasks = [Task("sheet", claim) for claim in sheet_of(*["sleep 0.2"] * 8).claims]
    outcomes_on_cluster(address, tasks, TaskLimits(seconds=30.0), JUDGE)
    judges = {int(line.split()[0]) for line in diary.read_text("utf-8").splitlines()}
    assert len(workers) == len(judges) == 2
    assert not judges & workers


def test_an_address_without_a_scheduler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "CONNECT_SECONDS", 1)
    for wrong in ("tcp://127.0.0.1:1", "nonsense://x", "127.0.0.1:notaport"):
        with pytest.raises(InputError, match="no scheduler answers"):
            outcomes_on_cluster(wrong, [], TaskLimits(), JUDGE)
