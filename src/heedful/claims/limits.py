"""A claim that runs away takes nobody with it: time and memory limits around one judgement.

Every claim is judged in a child process that serves many claims, one after another. The
parent watches the clock and kills a child that is late; the child's own memory limit turns
a runaway allocation into an answer. Should the parent die, the child notices the closed pipe
and leaves; should the child be too busy to notice, its alarm ends it.

Parent and child speak over a private pipe with Python's own connections. Nothing that a
sheet says can reach that pipe except as the fields of a `Claim`.
"""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from heedful.claims.claim import Claim
from heedful.claims.verdict import Evidence, Verdict
from heedful.errors import HeedfulError, InputError, RunError

START_SECONDS = 120.0
"""How long a child may take to import the engine before it is given up."""
JUDGE = "heedful.claims.judge:judge"
"""What judges: module and function."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one claim may use."""

    seconds: float = 20.0
    """Wall clock; later, the claim is undecided."""
    megabytes: int = 1024
    """Address space on top of what the engine itself takes."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.seconds) and 0.01 <= self.seconds <= 86_400):
            raise InputError(
                "seconds", f"is {self.seconds}", expected="between 0.01 and 86,400 was expected"
            )
        if not 16 <= self.megabytes <= 2**20:
            raise InputError(
                "megabytes", f"is {self.megabytes}", expected="between 16 and 1,048,576"
            )


@dataclass(frozen=True)
class Task:
    """One claim to be judged, with the name of its sheet."""

    sheet: str
    claim: Claim


Outcome = Verdict | HeedfulError
"""A verdict; or, for a claim that cannot be read, the error."""


class Judging:
    """A child process that judges claims, one at a time, within limits."""

    def __init__(self, limits: Limits, judge: str = JUDGE) -> None:
        self.limits = limits
        self.judge = judge
        self.task: Task | None = None
        self._deadline = math.inf
        self._given = 0.0
        self._begin()

    def _begin(self) -> None:
        self.ready = False
        self.connection, theirs = Pipe()
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        with theirs:
            # -P: a file random.py beside the sheets must not become Python's `random`.
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "heedful.claims.worker", str(theirs.fileno())],
                stdin=subprocess.PIPE,  # never written to: its end tells the child we are gone
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=os.environ | threads,
                start_new_session=True,  # Ctrl-C is for the parent, which then ends its children
            )
        self.connection.send((self.judge, self.limits))
        self._deadline = time.monotonic() + START_SECONDS

    @property
    def seconds_left(self) -> float:
        """How long this child may still go on."""
        return max(0.0, self._deadline - time.monotonic())

    def give(self, task: Task) -> None:
        """Hand over a claim; the child must be ready and free."""
        assert self.ready
        assert self.task is None
        self.task = task
        self._given = time.monotonic()
        self._deadline = self._given + self.limits.seconds
        self.connection.send(task)

    def take(self) -> Outcome | None:
        """Return the outcome of the claim, if it is there; replace the child if it failed."""
        if not self.connection.poll():
            return self._replaced("time") if self.seconds_left == 0.0 else None
        try:
            kind, content = self.connection.recv()
        except (EOFError, OSError):
            return self._replaced("crash")
        if kind == "ready":
            self.ready, self._deadline = True, math.inf
            return None
        if kind == "broken":
            self.end()
            raise RunError("claims", f"the engine cannot be started ({content})")
        if kind == "memory":
            return self._replaced("memory")
        outcome: Outcome = content
        self.task, self._deadline = None, math.inf
        return outcome

    def end(self) -> None:
        """End the child at once, and wait until it is gone."""
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.connection.close()

    def _replaced(self, reason: str) -> Outcome | None:
        task, code = self.task, None
        if reason == "crash":
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self.process.wait(timeout=2.0)  # the pipe closes a moment before the end
        self.end()
        if task is None:
            raise RunError(
                "claims",
                f"a judging process ended before its first claim (exit {code})",
                expected=f"it should be ready within {START_SECONDS:.0f} s",
                way_out="run heed doctor to see what is installed",
            )
        self.task = None
        self._begin()
        statement = _limit_statement(reason, self.limits, code)
        return undecided(task, "limit", statement, time.monotonic() - self._given)


def undecided(task: Task, method: str, statement: str, seconds: float = 0.0) -> Verdict:
    """Return the verdict of a claim that could not be decided."""
    return Verdict(
        sheet=task.sheet,
        id=task.claim.id,
        says=task.claim.says,
        expects="; ".join(task.claim.expect),
        verdict="undecided",
        evidence=Evidence(method=method, statement=statement),
        seconds=seconds,
    )


def answered(connection: Connection) -> Any:
    """Wait for what the other side says; None when it is gone."""
    try:
        return connection.recv()
    except (EOFError, OSError):
        return None


def _limit_statement(reason: str, limits: Limits, code: int | None) -> str:
    if reason == "time":
        return f"time: not decided within {limits.seconds:g} s"
    if reason == "memory":
        return f"memory: deciding it needs more than {limits.megabytes:,} MB"
    signal = f"signal {-code}" if code is not None and code < 0 else f"exit {code}"
    return f"crash: the process that judged it ended ({signal})"
