"""Checking many claims: find the sheets, judge every claim within limits, report in order.

    check(["answers/"], workers=2)  →  CheckReport

Results come in the order of the claims, whoever finishes first. A claim that exceeds its
time or memory is `undecided`, and its process is replaced; nothing can hang.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from types import TracebackType

from heedful.claims.check_report import CheckReport, Problem
from heedful.claims.claim import Claim
from heedful.claims.collection import catalog, find_sheets
from heedful.claims.limits import JUDGE, Judging, Limits, Outcome, Task
from heedful.claims.sheet import Sheet
from heedful.claims.verdict import Verdict
from heedful.errors import InputError

Progress = Callable[[int, int], None]


def check(
    paths: Sequence[str | Path],
    *,
    workers: int | None = None,
    claim_seconds: float = 20.0,
    claim_megabytes: int = 1024,
    progress: Progress | None = None,
    cluster: str | None = None,
) -> CheckReport:
    """Judge every claim of some sheets or folders of sheets; of the catalog if none is named."""
    limits = Limits(seconds=claim_seconds, megabytes=claim_megabytes)
    sheets = find_sheets(paths) if paths else catalog()
    with Checker(workers=workers, limits=limits, cluster=cluster) as checker:
        return checker.check(sheets, progress)


class Checker:
    """A few judging processes that stay warm between checks."""

    def __init__(
        self,
        *,
        workers: int | None = None,
        limits: Limits | None = None,
        cluster: str | None = None,
        judge: str = JUDGE,
    ) -> None:
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
        self.workers = available if workers is None else workers
        if not 1 <= self.workers <= 256:
            raise InputError("workers", f"is {workers}", expected="between 1 and 256 was expected")
        self.limits = limits or Limits()
        self.cluster = cluster
        self.judge = judge
        self._children: list[Judging] = []
        self._known: dict[tuple[str, str], Outcome] = {}

    def __enter__(self) -> Checker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every judging process."""
        while self._children:
            self._children.pop().end()

    def check(self, sheets: Sequence[Sheet], progress: Progress | None = None) -> CheckReport:
        """Judge the claims of some sheets; what was judged before is not judged again."""
        start = time.perf_counter()
        tasks = [Task(sheet.name, claim) for sheet in sheets for claim in sheet.claims]
        new = [task for task in tasks if _content(task) not in self._known]
        for task, outcome in zip(new, self.outcomes(new, progress), strict=True):
            self._known[_content(task)] = outcome
        verdicts: list[Verdict] = []
        problems: list[Problem] = []
        for sheet in sheets:
            errors = list(sheet.problems)
            for claim in sheet.claims:
                outcome = self._known[_content(Task(sheet.name, claim))]
                if isinstance(outcome, Verdict):
                    verdicts.append(outcome)
                else:
                    errors.append(sheet.located(claim.id, outcome))
            errors.sort(key=lambda error: error.line or 0)
            problems += [Problem.of(sheet.name, error) for error in errors]
        return CheckReport.of(sheets, verdicts, problems, time.perf_counter() - start)

    def judge_one(self, sheet: Sheet, claim: Claim, progress: Progress | None = None) -> Verdict:
        """Judge one claim of a sheet, or raise what makes it unreadable, at its line."""
        (outcome,) = self.outcomes([Task(sheet.name, claim)], progress)
        if isinstance(outcome, Verdict):
            return outcome
        raise sheet.located(claim.id, outcome)

    def outcomes(self, tasks: Sequence[Task], progress: Progress | None = None) -> list[Outcome]:
        """Return the outcome of each task, in their order."""
        if self.cluster is not None:
            from heedful.claims.cluster import outcomes_on_cluster

            return outcomes_on_cluster(self.cluster, tasks, self.limits, self.judge, progress)
        try:
            return self._outcomes_here(tasks, progress)
        except BaseException:
            self.close()  # an interrupt leaves no process behind
            raise

    def _outcomes_here(self, tasks: Sequence[Task], progress: Progress | None) -> list[Outcome]:
        waiting = deque(range(len(tasks)))
        results: dict[int, Outcome] = {}
        given: dict[int, int] = {}  # which task each child is at
        while len(self._children) < min(self.workers, len(tasks)):
            self._children.append(Judging(self.limits, self.judge))
        while len(results) < len(tasks):
            for place, child in enumerate(self._children):
                if child.ready and child.task is None and waiting:
                    given[place] = waiting.popleft()
                    child.give(tasks[given[place]])
            busy = [child for child in self._children if child.task or not child.ready]
            wait(
                [child.connection for child in busy],
                timeout=min(min(child.seconds_left for child in busy), 3600.0),
            )
            for place, child in enumerate(self._children):
                outcome = child.take() if child in busy else None
                if outcome is not None:
                    results[given.pop(place)] = outcome
                    if progress is not None:
                        progress(len(results), len(tasks))
        return [results[position] for position in range(len(tasks))]


def _content(task: Task) -> tuple[str, str]:
    return (task.sheet, repr(task.claim))
