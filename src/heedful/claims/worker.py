"""The child process that judges: `python -m heedful.claims.worker FD` (see `limits`)."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from heedful.claims.limits import Limits, Task, answered, undecided
from heedful.claims.verdict import Verdict
from heedful.errors import HeedfulError, InputError

GRACE_SECONDS = 5.0
"""How much later than the parent's clock the child's own alarm rings."""
SHARE_OF_TIME = 0.8
"""Of its time a claim may use this much by itself, to leave with the evidence it has."""


def serve(connection: Connection) -> None:
    """Judge claims as they come, until the parent has no more."""
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    name, limits = connection.recv()
    try:
        module, _, function = name.partition(":")
        judge = getattr(importlib.import_module(module), function)
    except Exception as error:
        connection.send(("broken", f"{name}: {type(error).__name__}: {error}"))
        return
    connection.send(("ready", None))
    while (task := answered(connection)) is not None:
        signal.setitimer(signal.ITIMER_REAL, limits.seconds + GRACE_SECONDS)
        answer = _answer(judge, task, limits)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        connection.send(answer)
        if answer[0] == "memory":
            return


def _answer(judge: Callable[..., Verdict], task: Task, limits: Limits) -> tuple[str, Any]:
    start = time.perf_counter()
    _limit_memory(limits.megabytes)
    try:
        verdict = judge(task.claim, sheet=task.sheet, seconds=SHARE_OF_TIME * limits.seconds)
        outcome: Verdict | HeedfulError = replace(verdict, seconds=time.perf_counter() - start)
    except MemoryError:
        _limit_memory(None)
        return ("memory", None)
    except InputError as error:
        outcome = error
    except HeedfulError as error:
        outcome = undecided(task, "failure", str(error), time.perf_counter() - start)
    except Exception as error:  # a fault of ours must not look like a verdict, nor stop the rest
        cause = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        statement = f"failure: the engine failed on this claim ({cause}); please report it"
        outcome = undecided(task, "failure", statement, time.perf_counter() - start)
    _limit_memory(None)
    return ("outcome", outcome)


def _limit_memory(megabytes: int | None) -> None:
    """Let the address space grow by so much from now on; None lifts the limit."""
    size = Path("/proc/self/statm")
    if not size.exists():  # macOS neither tells the size nor honours the limit
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft = resource.RLIM_INFINITY if hard == resource.RLIM_INFINITY else hard
    if megabytes is not None:
        pages = int(size.read_text("ascii").split()[0])
        wanted = pages * resource.getpagesize() + megabytes * 2**20
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _leave_with_parent() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
