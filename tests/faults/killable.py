"""A small training in a process that can be killed, and the faults that are put into it.

Children are forked from a process that has loaded everything and trained once, in one thread:
each is a real process that really dies, and it costs a fifth of a second instead of four.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

from small_training import Numbers, small_config

from heedful.errors import HeedfulError
from heedful.training import TrainingConfig, resume, train

CONFIG: TrainingConfig = small_config(steps=8, save_every=2, log_every=2)
"""Dropout everywhere, more than two epochs, four checkpoints."""
FEED = Numbers(batches=3)
CALLS = ("open", "write", "fsync", "rename", "mkdir", "unlink", "rmdir", "ftruncate")
"""The functions through which the package changes files; each is one system call."""

Prepare = Callable[[], None]


def nothing() -> None:
    """Put no fault into a child."""


def go_on(folder: Path) -> str:
    """Train or resume, whichever the folder asks for; return the hash of the weights."""
    if (folder / "config.json").is_file():
        result = resume(folder, FEED)
    else:
        result = train(CONFIG, FEED, folder)
    if not result.finished:
        os._exit(128 + int(signal.Signals[result.stopped_by]))
    return result.weights_sha256


def start(folder: Path, prepare: Prepare = nothing) -> int:
    """Begin a child that trains in a folder; return its process number."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        prepare()
        (folder.parent / f"{folder.name}.hash").write_text(go_on(folder))
        code = 0
    except HeedfulError as error:
        code = error.exit_code
        (folder.parent / f"{folder.name}.error").write_text(str(error))
    except KeyboardInterrupt:
        code = 130
    except SystemExit as error:
        code = int(error.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def wait(process: int) -> int:
    """Return the exit code of a child; minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def run(folder: Path, prepare: Prepare = nothing) -> int:
    """Train in a child until it ends; return its exit code."""
    return wait(start(folder, prepare))


def outcome(folder: Path) -> str:
    """Return the hash that the last child of a folder left, or nothing."""
    path = folder.parent / f"{folder.name}.hash"
    return path.read_text() if path.is_file() else ""


def finished_as(folder: Path, expected: str) -> bool:
    """Go on without faults, and tell whether the end is the undisturbed one."""
    return run(folder) == 0 and outcome(folder) == expected


@dataclass
class Intruder:
    """Does something at the k-th call that changes files."""

    at: int
    do: Callable[[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
    count: int = 0
    only: tuple[str, ...] = CALLS

    def __call__(self) -> None:
        """Take the place of the functions, in this process."""
        for name in self.only:
            setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **settings: Any) -> Any:
            changes = name != "open" or (len(arguments) > 1 and arguments[1] & os.O_CREAT)
            if changes:
                self.count += 1
                if self.count == self.at:
                    return self.do(name, original, arguments, settings)
            return original(*arguments, **settings)

        return call


def kill_before(*_: Any) -> None:
    """Die before the call."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill_half_way(
    name: str, original: Callable[..., Any], arguments: tuple[Any, ...], settings: dict[str, Any]
) -> None:
    """Die after half of a write, or right after any other call."""
    try:
        if name == "write":
            handle, content = arguments
            original(handle, bytes(content)[: len(content) // 2])
        else:
            original(*arguments, **settings)
    finally:  # also where the call fails, as the removal of a file that is not there
        os.kill(os.getpid(), signal.SIGKILL)


def count_calls(folder: Path, only: tuple[str, ...] = CALLS) -> int:
    """Return how many calls that change files an undisturbed run makes."""
    counter = Intruder(at=-1, do=kill_before, only=only)
    read, write = os.pipe()
    original = os.write

    def prepare() -> None:
        counter()
        exit_ = os._exit

        def report(code: int) -> None:
            original(write, str(counter.count).encode())
            exit_(code)

        os._exit = report  # type: ignore[assignment]

    assert run(folder, prepare) == 0
    os.close(write)
    with os.fdopen(read) as file:
        return int(file.read())


@contextmanager
def workshop() -> Iterator[tuple[Path, str]]:
    """Yield a folder to work in, and the hash of the undisturbed run."""
    with tempfile.TemporaryDirectory(prefix="heedful-faults-") as place:
        folder = Path(place)
        expected = go_on(folder / "undisturbed")
        assert finished_as(folder / "in a child", expected)
        yield folder, expected


def command(what: str, count: int, experiment: Callable[[int, int], dict[str, Any]]) -> None:
    """Run one fault experiment from the command line: a JSON line, and exit 1 if it failed."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--count", type=int, default=count, help="how many; 0 for all there are")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    begun = time.monotonic()
    found = experiment(given.count, given.seed)
    found |= {"fault": what.split(":")[0], "seconds": round(time.monotonic() - begun, 1)}
    print(json.dumps(found))
    sys.exit(0 if found["passed"] == found["tried"] else 1)
