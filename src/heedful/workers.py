"""A pool of child processes with limits on time and memory.

    with Pool("heedful.claims.checker:claim_judge", (judge, 16.0), workers=2) as pool:
        outcomes = pool.map(tasks)  # in the order of the tasks

Each child imports the factory, calls `factory(*arguments)` once, and applies the function it
returns to one task after another. The parent watches the clock and replaces a child that is late;
the child's own memory limit turns a runaway allocation into an outcome. If the parent dies, the
child sees its input end and leaves; if the child is too busy to notice, its alarm ends it.

Parent and child talk over a private pipe with Python's own connections, so tasks and values must
be picklable. Only these two processes hold the pipe: no file or socket is ever unpickled.

`concurrent.futures` and `joblib` limit neither the time nor the memory of a task; `pebble` limits
the time only, and its children outlive a parent that is killed.
"""

from __future__ import annotations

import contextlib
import heapq
import importlib
import itertools
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Literal

from heedful.errors import HeedfulError, InputError, RunError

START_SECONDS = 120.0
"""How long a child may take to import its code before it is given up."""
BUSY = 5.0
"""How many times longer a task may take by the clock than its processor time: beside other programs
the same work is done, and only what hangs without working is ended by the clock."""
GRACE_SECONDS = 5.0
"""How much later than the parent's clock the child's own alarm rings."""
POLL_SECONDS = 0.2
"""How often `map` asks whether it should stop."""
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""One thread a child: the pool itself uses the cores."""


@dataclass(frozen=True, kw_only=True)
class TaskLimits:
    """What one task may use."""

    seconds: float = 20.0
    """Processor time, and BUSY times as much by the clock; infinity for no limit."""
    megabytes: int | None = 1024
    """Address space on top of what the child's code itself takes; None for no limit."""

    def __post_init__(self) -> None:
        if not (0.01 <= self.seconds <= 86_400 or self.seconds == math.inf):
            raise InputError(
                "seconds", f"is {self.seconds}", expected="between 0.01 and 86,400 was expected"
            )
        if self.megabytes is not None and not 16 <= self.megabytes <= 2**20:
            raise InputError(
                "megabytes", f"is {self.megabytes}", expected="between 16 and 1,048,576"
            )


UNLIMITED = TaskLimits(seconds=math.inf, megabytes=None)


class StartError(RunError):
    """A child process could not be started."""


OutcomeKind = Literal["value", "error", "failure", "time", "memory", "crash", "stopped"]


@dataclass(frozen=True)
class TaskOutcome:
    """What became of a task: its value, or why there is none."""

    kind: OutcomeKind
    """`error`: a HeedfulError was raised; `failure`: another exception; `time`, `memory`,
    `crash`: the child was ended; `stopped`: `map` was asked to stop before it was done."""
    value: Any = None
    """The value, the error, or a phrase that describes the failure or the crash."""
    seconds: float = 0.0
    """How long the child worked on it."""


@dataclass(order=True)
class Job:
    """A task that was handed in; `cancel` it when nobody waits for its outcome any more."""

    urgency: int
    number: int
    task: Any = field(compare=False)
    reply: Callable[[TaskOutcome], None] = field(compare=False)
    report: Callable[[Any], None] | None = field(compare=False)
    wake: Callable[[], None] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        """Forget the task if it waits, end it if it runs; no reply is given."""
        self.cancelled = True
        self.wake()


class Pool:
    """Child processes that work on tasks, the most urgent first; they start with the first task.

    With `saving_seconds`, a child that is ended gets SIGTERM and that much time to save its work.
    """

    def __init__(
        self,
        factory: str,
        arguments: tuple[Any, ...] = (),
        *,
        workers: int | None = None,
        limits: TaskLimits = UNLIMITED,
        saving_seconds: float = 0.0,
    ) -> None:
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
        self.workers = available if workers is None else workers
        if not 1 <= self.workers <= 256:
            raise InputError("workers", f"is {workers}", expected="between 1 and 256 was expected")
        self.limits = limits
        self._setup = _Setup(factory, arguments, limits, saving_seconds)
        self._waiting: list[Job] = []  # a heap: the most urgent job first, then the oldest
        self._children: list[_Child] = []
        self._numbers = itertools.count()
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._wake_up, self._woken = Pipe()
        self._awake = False

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(
        self,
        task: Any,
        reply: Callable[[TaskOutcome], None],
        *,
        urgency: int = 0,
        report: Callable[[Any], None] | None = None,
    ) -> Job:
        """Hand in a task; `reply` gets its outcome, `report` what the child reports meanwhile.

        Both are called from the pool's thread and must return quickly. Lower urgencies come first.
        """
        job = Job(urgency, next(self._numbers), task, reply, report, self._wake)
        with self._guard:
            if self._closed:
                raise RunError("workers", "the pool is closed")
            heapq.heappush(self._waiting, job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True, name="workers")
                self._thread.start()
        self._wake()
        return job

    def map(
        self,
        tasks: Sequence[Any],
        *,
        progress: Callable[[int, int], None] | None = None,
        report: Callable[[Any], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
        urgency: Callable[[Any], int] = lambda _task: 0,
        then: Callable[[Any, TaskOutcome], Iterable[Any]] = lambda _task, _outcome: (),
    ) -> list[TaskOutcome]:
        """Return the outcome of each task, in their order; the callbacks run in this thread.

        `then` gets every task with its outcome as it comes, and returns the tasks that had to wait
        for it: they are worked on too, and their outcomes stand behind the others. When `stop()` is
        true, or an exception such as an interrupt is raised, every child is ended before `map`
        returns or raises.
        """
        messages: queue.Queue[tuple[int | None, Any]] = queue.Queue()
        known: list[Any] = []
        outcomes: list[TaskOutcome] = []
        done = 0

        def hand_in(task: Any) -> None:
            place = len(known)
            known.append(task)
            outcomes.append(TaskOutcome("stopped"))
            self.submit(
                task,
                lambda outcome: messages.put((place, outcome)),
                urgency=urgency(task),
                report=lambda content: messages.put((None, content)),
            )

        try:
            for task in tasks:
                hand_in(task)
            while done < len(known):
                if stop():
                    self.close()
                    break
                try:
                    reply_to, content = messages.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    continue
                if reply_to is None:
                    if report is not None:
                        report(content)
                    continue
                if isinstance(content.value, StartError):
                    raise content.value
                outcomes[reply_to] = content
                done += 1
                for task in then(known[reply_to], content):
                    hand_in(task)
                if progress is not None:
                    progress(done, len(known))
        except BaseException:
            self.close()
            raise
        return outcomes

    def close(self) -> None:
        """End every child, and wait until they are gone."""
        with self._guard:
            self._closed = True
        self._wake()
        if self._thread is not None:
            self._thread.join()

    def _wake(self) -> None:
        with self._guard:
            # One message is enough; thousands would fill the pipe, and the sender would wait for
            # a thread that waits for this guard.
            if not self._awake:
                self._awake = True
                self._wake_up.send_bytes(b".")

    def _run(self) -> None:
        """Give tasks to children and take their outcomes, until the pool is closed."""
        try:
            while not self._closed:
                self._drop_cancelled()
                try:
                    self._give_out()
                    self._wait_for_news()
                    for child in self._children:
                        child.take()
                except (StartError, OSError) as error:
                    self._refuse_waiting(error)
        finally:
            for child in self._children:
                child.ask_to_end()
            for child in self._children:
                child.end()

    def _drop_cancelled(self) -> None:
        with self._guard:
            self._waiting = [job for job in self._waiting if not job.cancelled]
            heapq.heapify(self._waiting)
        for child in self._children:
            if child.job is not None and child.job.cancelled:
                child.replace()

    def _give_out(self) -> None:
        with self._guard:
            wanted = len(self._waiting) + sum(child.job is not None for child in self._children)
        while len(self._children) < min(self.workers, wanted):
            self._children.append(_Child(self._setup))
        for child in self._children:
            with self._guard:
                if child.free and self._waiting:
                    child.give(heapq.heappop(self._waiting))

    def _wait_for_news(self) -> None:
        soonest = min((child.seconds_left for child in self._children), default=math.inf)
        connections = [child.connection for child in self._children]
        wait([self._woken, *connections], timeout=min(soonest, 3600.0))
        with self._guard:
            if self._awake:
                self._woken.recv_bytes()
                self._awake = False

    def _refuse_waiting(self, error: Exception) -> None:
        """Answer every waiting task with the reason why no child can be started."""
        for child in self._children:
            if not child.started:
                child.end()
        self._children = [child for child in self._children if child.started]
        reason = error if isinstance(error, StartError) else StartError("workers", str(error))
        with self._guard:
            refused, self._waiting = self._waiting, []
        for job in refused:
            job.reply(TaskOutcome("error", reason))


@dataclass(frozen=True)
class _Setup:
    """What a child is told before its first task."""

    factory: str
    arguments: tuple[Any, ...]
    limits: TaskLimits
    saving_seconds: float


class _Child:
    """One child process, as its parent sees it."""

    def __init__(self, setup: _Setup) -> None:
        self.setup = setup
        self._start()

    def _start(self) -> None:
        self.job: Job | None = None
        self.started = False
        self._asked_to_end = False
        self.connection, theirs = Pipe()
        with theirs:
            # -P: a file random.py in the working folder must not become Python's `random`.
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-c",
                    f"from heedful.workers import serve; serve({theirs.fileno()})",
                ],
                stdin=subprocess.PIPE,  # never written to: its end tells the child we are gone
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=os.environ | THREADS,
                start_new_session=True,  # Ctrl-C is for the parent, which then ends its children
            )
        self._began = time.monotonic()
        self._deadline = self._began + START_SECONDS
        with contextlib.suppress(OSError):  # a child that died already is met in `take`
            self.connection.send(self.setup)

    @property
    def free(self) -> bool:
        """Whether it can be given a job."""
        return self.started and self.job is None

    @property
    def seconds_left(self) -> float:
        """How long it may go on before it is replaced."""
        return max(0.0, self._deadline - time.monotonic())

    def give(self, job: Job) -> None:
        """Hand over a job."""
        self.job = job
        self._began = time.monotonic()
        self._deadline = self._began + BUSY * self.setup.limits.seconds
        with contextlib.suppress(OSError):
            self.connection.send(job.task)

    def take(self) -> None:
        """Pass on what the child has sent; replace it if it failed."""
        try:
            while self.connection.poll():
                self._hear(*self.connection.recv())
        except (EOFError, OSError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=2.0)  # the pipe closes a moment before the end
            code = self.process.poll()
            if code == -signal.SIGPROF:
                self._failed("time")
                return
            ending = f"signal {-code}" if code is not None and code < 0 else f"exit {code}"
            self._failed("crash", ending)
        if self.seconds_left == 0.0:
            self._failed("time")

    def _hear(self, kind: str, content: Any) -> None:
        if kind == "started":
            self.started, self._deadline = True, math.inf
        elif kind == "broken":
            raise StartError("workers", f"{self.setup.factory} cannot be started ({content})")
        elif kind == "report":
            if self.job is not None and self.job.report is not None:
                self.job.report(content)
        elif content.kind == "memory":
            self._failed("memory")
        else:
            self._reply(content)

    def _failed(self, kind: OutcomeKind, detail: str = "") -> None:
        if not self.started:
            reason = detail if kind == "crash" else f"not ready within {START_SECONDS:.0f} s"
            raise StartError(
                "workers",
                f"a child process ended before its first task ({reason})",
                hint="run heed doctor to see what is installed",
            )
        seconds = time.monotonic() - self._began
        if self.job is not None:
            self._reply(TaskOutcome(kind, detail, seconds))
        self.replace()

    def _reply(self, outcome: TaskOutcome) -> None:
        job, self.job, self._deadline = self.job, None, math.inf
        if job is not None and not job.cancelled:
            job.reply(outcome)

    def replace(self) -> None:
        """End the child, and start another in its place."""
        self.end()
        self._start()

    def ask_to_end(self) -> None:
        """Ask the child to save its work and leave, if this pool lets it."""
        if self.setup.saving_seconds and not self._asked_to_end:
            self._asked_to_end = True  # a second signal would mean: leave without saving
            self.process.terminate()

    def end(self) -> None:
        """End the child, and wait until it is gone."""
        self.ask_to_end()
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self.setup.saving_seconds:
                self.process.wait(self.setup.saving_seconds)
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.connection.close()


# ---- inside the child ----

_parent: Connection | None = None


def report(content: Any) -> None:
    """Send something to the parent from inside a task, such as the share that is done.

    Outside a child process nobody listens, and nothing happens.
    """
    if _parent is not None:
        _parent.send(("report", content))


def serve(file_descriptor: int) -> None:
    """Work on tasks as they come, until the parent has no more: what a child process runs."""
    global _parent
    connection = _parent = Connection(file_descriptor)
    setup: _Setup = connection.recv()
    threading.Thread(target=_leave_with_parent, args=(setup.saving_seconds,), daemon=True).start()
    try:
        module, _, name = setup.factory.partition(":")
        work = getattr(importlib.import_module(module), name)(*setup.arguments)
    except Exception as error:
        connection.send(("broken", f"{type(error).__name__}: {error}"))
        return
    connection.send(("started", None))
    while True:
        try:
            task = connection.recv()
        except (EOFError, OSError):
            return
        if math.isfinite(setup.limits.seconds):
            signal.setitimer(signal.ITIMER_PROF, setup.limits.seconds)
            signal.setitimer(signal.ITIMER_REAL, BUSY * setup.limits.seconds + GRACE_SECONDS)
        outcome = _outcome_of(work, task, setup.limits)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        connection.send(("outcome", outcome))


def _outcome_of(work: Callable[[Any], Any], task: Any, limits: TaskLimits) -> TaskOutcome:
    start = time.perf_counter()
    _limit_memory(limits.megabytes)
    kind: OutcomeKind = "value"
    try:
        value = work(task)
    except MemoryError:
        kind, value = "memory", None
    except HeedfulError as error:
        kind, value = "error", error
    except Exception as error:
        kind, value = "failure", " ".join(f"{type(error).__name__}: {error}".split())[:300]
    _limit_memory(None)
    return TaskOutcome(kind, value, time.perf_counter() - start)


def _limit_memory(megabytes: int | None) -> None:
    """Let the address space grow by this much from now on; None lifts the limit."""
    size = Path("/proc/self/statm")
    if not size.exists():  # macOS neither tells the size nor honours the limit
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft = hard
    if megabytes is not None:
        pages = int(size.read_text("ascii").split()[0])
        wanted = pages * resource.getpagesize() + megabytes * 2**20
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _leave_with_parent(saving_seconds: float) -> None:
    """Save and go once the parent is gone: its end of our input closes."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    if saving_seconds:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(saving_seconds)
    os._exit(1)
