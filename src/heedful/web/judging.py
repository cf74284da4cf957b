"""Claims judged while somebody types: a few warm processes, and work that can be dropped.

Each thread owns one judging child of `heedful.claims.limits`, with its limits of time and
memory. What is asked for carries a ticket. Once the ticket is dropped (the text has changed, the
page has gone), claims that wait are forgotten, and a claim that is being judged is ended.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import wait

from heedful.claims.claim import Claim
from heedful.claims.limits import JUDGE, Judging, Limits, Outcome, Task
from heedful.errors import HeedfulError

REMEMBERED = 4_000
"""Outcomes that are kept: the same claim is not judged twice."""
POLL_SECONDS = 0.1
"""How soon a dropped claim is ended."""


class Ticket:
    """What was asked for together, and can be dropped together."""

    def __init__(self) -> None:
        self._dropped = threading.Event()

    @property
    def dropped(self) -> bool:
        """Whether nobody waits any more."""
        return self._dropped.is_set()

    def drop(self) -> None:
        """Say that nobody waits any more."""
        self._dropped.set()


@dataclass(order=True)
class _Order:
    urgency: int
    number: int
    task: Task = field(compare=False)
    ticket: Ticket = field(compare=False)
    reply: Callable[[Outcome], None] = field(compare=False)


_CLOSED = _Order(-1, -1, Task("", Claim(id="", expect=())), Ticket(), lambda outcome: None)


class Judges:
    """Threads with a judging child each; started when the first claim comes."""

    def __init__(self, workers: int = 2, limits: Limits | None = None, judge: str = JUDGE) -> None:
        self.limits = limits or Limits(seconds=10.0, megabytes=768)
        self._judge = judge
        self._workers = workers
        self._orders: queue.PriorityQueue[_Order] = queue.PriorityQueue()
        self._known: OrderedDict[tuple[str, str], Outcome] = OrderedDict()
        self._guard = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._numbers = itertools.count()

    def ask(
        self, task: Task, ticket: Ticket, reply: Callable[[Outcome], None], *, urgency: int = 0
    ) -> None:
        """Have a claim judged; `reply` is called from a thread, unless the ticket is dropped."""
        with self._guard:
            if self._closed:
                return
            while len(self._threads) < self._workers:
                thread = threading.Thread(target=self._work, daemon=True, name="judge")
                self._threads.append(thread)
                thread.start()
        self._orders.put(_Order(urgency, next(self._numbers), task, ticket, reply))

    def known(self, task: Task) -> Outcome | None:
        """Return what was found before about the same claim."""
        with self._guard:
            return self._known.get(_content(task))

    def close(self) -> None:
        """End every child, and wait until they are gone."""
        with self._guard:
            self._closed = True
            threads = list(self._threads)
        for _ in threads:
            self._orders.put(_CLOSED)
        for thread in threads:
            thread.join(timeout=10.0)

    def _work(self) -> None:
        child: Judging | None = None
        try:
            while not self._closed:
                order = self._orders.get()
                if order is _CLOSED:
                    return
                if order.ticket.dropped:
                    continue
                outcome = self.known(order.task)
                if outcome is None:
                    child, outcome = self._judged(child, order)
                if outcome is not None and not order.ticket.dropped:
                    order.reply(outcome)
        finally:
            if child is not None:
                child.end()

    def _judged(
        self, child: Judging | None, order: _Order
    ) -> tuple[Judging | None, Outcome | None]:
        """Judge one claim; return the child that goes on, and the outcome unless it was dropped."""
        try:
            child = child or Judging(self.limits, self._judge)
            while True:
                if child.ready and child.task is None:
                    child.give(order.task)
                wait([child.connection], timeout=min(POLL_SECONDS, child.seconds_left))
                outcome = child.take()
                if outcome is not None:
                    self._remember(order.task, outcome)
                    return child, outcome
                if self._closed or (order.ticket.dropped and child.task is not None):
                    child.end()
                    return None, None
        except (HeedfulError, OSError) as error:
            known = error if isinstance(error, HeedfulError) else HeedfulError("claims", str(error))
            return None, known

    def _remember(self, task: Task, outcome: Outcome) -> None:
        with self._guard:
            self._known[_content(task)] = outcome
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)


def _content(task: Task) -> tuple[str, str]:
    return (task.sheet, repr(task.claim))
