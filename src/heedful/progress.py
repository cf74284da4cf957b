"""Progress of long work on stderr: what goes on, how much is done, and how long it may take.

    with meter("training") as show:      a bar on a terminal; in a log, a line now and then
        for done in range(1, total + 1):
            show(done, total)            or show.tell("step 3, loss 2.1", 0.3)

Work that consists of several parts adds them up in `Parts`. Nothing goes to stdout, so that what
is printed there can be piped.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

Step = Callable[[int, int], None]
"""Called with (done, of how many)."""
Tell = Callable[[str, float], None]
"""Called with what goes on now, and the share of the whole work that is done."""
LINE_SECONDS = 15.0
"""How often work of minutes says where it is when nobody can see a bar."""
FRAME_SECONDS = 0.25
"""A bar is drawn at most this often: drawing takes time from the work."""
KNOWN_SECONDS = 2.0
"""Time after which the speed so far says something about the time left."""


def duration(seconds: float) -> str:
    """Write a duration as people read it.

    >>> duration(42.4), duration(200), duration(9000)
    ('42 s', '3 min 20 s', '2 h 30 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class Meter:
    """Where some work tells how far it is; this one keeps it to itself."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.began = self.shown = time.monotonic()
        self.last = ""
        self.first: float | None = None
        """The share that was done when the work was resumed."""

    def __call__(self, done: int, total: int) -> None:
        """Show that so many of all are done; a total of 0 says that nobody knows yet."""
        if total:
            self.tell(self.what, done / total)

    def tell(self, what: str, share: float) -> None:
        """Show what goes on, and the share of the work that is done."""

    def line(self, text: str) -> None:
        """Print a line that stays."""
        print(text, file=sys.stderr, flush=True)

    def left(self, share: float) -> str:
        """Say how long the rest will take at the speed so far, once that can be known."""
        gone = time.monotonic() - self.began
        first = self.first = share if self.first is None else self.first
        if gone < KNOWN_SECONDS or not first < share < 1.0:
            return ""
        return f"about {duration(gone / (share - first) * (1.0 - share))} left"

    def _due(self, what: str, seconds: float, *, at_once: bool = False) -> bool:
        """Say whether to show again: after some time, or when something else is at work."""
        now, stage = time.monotonic(), what.partition(": step ")[0]
        if now - self.shown < seconds and not (at_once and stage != self.last):
            return False
        self.shown, self.last = now, stage
        return True


class _Log(Meter):
    """Prints a line now and then."""

    def tell(self, what: str, share: float) -> None:
        if self._due(what, LINE_SECONDS):
            times = [duration(self.shown - self.began), self.left(share)]
            self.line(f"{what}: {share:.0%}, ".replace("%", " %") + ", ".join(filter(None, times)))


class _Bar(Meter):
    """Draws a bar in the last line of a terminal."""

    def __init__(self, what: str, bar: Any) -> None:
        super().__init__(what)
        self.bar = bar
        self.task = bar.add_task(what, total=None, left="")

    def tell(self, what: str, share: float) -> None:
        if share >= 1.0 or self._due(what, FRAME_SECONDS, at_once=True):
            self.bar.update(
                self.task, completed=share, total=1.0, description=what, left=self.left(share)
            )
            self.bar.refresh()

    def line(self, text: str) -> None:
        self.bar.console.print(text, markup=False, highlight=False)


@contextmanager
def meter(what: str) -> Iterator[Meter]:
    """Show on stderr how far the block is; of several ranks that train together, the first does."""
    if os.environ.get("RANK", "0") != "0":
        yield Meter(what)
    elif not sys.stderr.isatty():
        yield _Log(what)
    else:
        with _bar() as bar:
            yield _Bar(what, bar)
        sys.stderr.flush()


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    class Screen(Console):
        """Never hides the cursor: a process that is killed could not bring it back."""

        def show_cursor(self, show: bool = True) -> bool:
            return False

    return Progress(
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        # What is at work may be a path: its brackets are no markup.
        TextColumn("{task.description}", markup=False),
        TextColumn("{task.fields[left]}"),
        console=Screen(stderr=True),
        transient=True,
        auto_refresh=False,  # no thread of its own: it would take time from the work
    )


class Parts:
    """Adds several pieces of work up to one share.

    >>> parts = Parts({"read": 1, "train": 3}, lambda what, share: print(what, share))
    >>> parts.begin("train: starting", "train")
    train: starting 0.25
    >>> parts.tell("train: half way", "train", 0.5)
    train: half way 0.625
    """

    def __init__(self, sizes: Mapping[str, float], tell: Tell | None) -> None:
        """Take the sizes of all parts, in any unit, and who is told; None tells nobody."""
        self.sizes, self.shares = dict(sizes), dict.fromkeys(sizes, 0.0)
        self._tell = tell

    def begin(self, what: str, part: str) -> None:
        """Begin a part: those before it are done."""
        for before in self.sizes:
            if before == part:
                break
            self.shares[before] = 1.0
        self.say(what)

    def tell(self, what: str, part: str, share: float) -> None:
        """Say that so much of a part is done."""
        self.shares[part] = share
        self.say(what)

    def say(self, what: str) -> None:
        """Say what goes on."""
        if self._tell is not None:
            done = sum(size * self.shares[name] for name, size in self.sizes.items())
            self._tell(what, done / max(sum(self.sizes.values()), 1e-9))

    def finish(self, what: str) -> None:
        """Say that everything is done."""
        self.shares = dict.fromkeys(self.sizes, 1.0)
        self.say(what)
