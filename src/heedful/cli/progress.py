"""Progress of long work, on stderr, so that what is printed can be piped."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Step = Callable[[int, int], None]
"""Called with (done, of how many)."""
LINE_SECONDS = 15.0
"""How often work of minutes says where it is when nobody can see a bar."""


@contextmanager
def progress(what: str) -> Iterator[Step]:
    """Show a bar while the block runs; nothing when stderr is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    screen = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=screen,
        transient=True,
        disable=not screen.is_terminal,
    ) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def long_progress(what: str) -> Iterator[Step]:
    """Show a bar; where stderr is not a terminal, print a line now and then instead."""
    if sys.stderr.isatty():
        with progress(what) as step:
            yield step
        return
    began = said = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said >= LINE_SECONDS and total:
            said = now
            share = 100 * done / total
            print(f"{what}: {share:.0f} %, {now - began:.0f} s", file=sys.stderr, flush=True)

    yield tell
