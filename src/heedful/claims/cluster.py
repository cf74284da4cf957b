"""The same check on a Dask cluster, through joblib.

Each claim is a task of joblib's `dask` backend. Inside a Dask worker it is judged in a child
process of that worker, so that the limits hold there too: a claim that runs away costs the
cluster nothing but its own time. The workers need Heedful installed; they are trusted with
whatever runs there, as any Dask cluster is.
"""

from __future__ import annotations

import atexit
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

from heedful.claims.limits import Judging, Limits, Outcome, Task
from heedful.errors import InputError, MissingPartError, RunError

ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss)://)?[^\s/]+:\d{1,5}")
"""How a scheduler is named."""
CONNECT_SECONDS = 10
WORKER_SECONDS = 30

_children = threading.local()


def outcomes_on_cluster(
    address: str,
    tasks: Sequence[Task],
    limits: Limits,
    judge: str,
    progress: Callable[[int, int], None] | None = None,
) -> list[Outcome]:
    """Return the outcome of each task, judged on the cluster at an address (tcp://host:port)."""
    import joblib

    client = _connected(address)
    try:
        _workers_there(client, address)
        work = (joblib.delayed(judge_here)(task, limits, judge) for task in tasks)
        outcomes: list[Outcome] = []
        with joblib.parallel_config(backend="dask", client=client):
            for outcome in joblib.Parallel(n_jobs=-1, batch_size=1, return_as="generator")(work):
                outcomes.append(outcome)
                if progress is not None:
                    progress(len(outcomes), len(tasks))
        return outcomes
    except (OSError, TimeoutError) as error:
        raise RunError("--cluster", f"the cluster at {address} was lost ({error})") from None
    finally:
        client.close()


def judge_here(task: Task, limits: Limits, judge: str) -> Outcome:
    """Judge one claim in a child of this process, which is kept for the next one."""
    known: dict[Any, Judging] = _children.__dict__.setdefault("known", {})
    child = known.get((limits, judge))
    if child is None or child.process.poll() is not None:
        child = known[limits, judge] = Judging(limits, judge)
        atexit.register(child.end)
    while not child.ready:
        child.connection.poll(child.seconds_left)
        child.take()
    child.give(task)
    while True:
        child.connection.poll(child.seconds_left)
        outcome = child.take()
        if outcome is not None:
            return outcome


def _connected(address: str) -> Any:
    try:
        import distributed
    except ImportError:
        raise MissingPartError.of("--cluster", "distributed", "cluster") from None
    # A client that cannot read its address waits long, and leaves a traceback when it is gone.
    if not ADDRESS.fullmatch(address):
        raise _no_scheduler(address, "this names no host and port")
    client: Any = distributed.Client  # it has no types
    try:
        return client(address, timeout=f"{CONNECT_SECONDS}s", set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise _no_scheduler(address, " ".join(str(error).split())[:200]) from None


def _no_scheduler(address: str, reason: str) -> InputError:
    return InputError(
        "--cluster",
        f"no scheduler answers at {address!r} ({reason})",
        expected="an address such as tcp://127.0.0.1:8786",
        way_out="start one with: dask scheduler",
    )


def _workers_there(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError:
        raise InputError(
            "--cluster",
            f"the scheduler at {address} has no worker after {WORKER_SECONDS} s",
            way_out=f"start one with: dask worker {address}",
        ) from None
