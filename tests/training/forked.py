"""Programs in processes of their own, forked from one that has imported what a training needs.

    child = start(["-m", "heedful", "train", "long.toml"], folder)
    os.kill(child.pid, signal.SIGTERM)
    output, errors = child.communicate()

Torch and the studies take five seconds to import, and trainings that are stopped after their first
step far less to run. Each child is a real process, which gets real signals and really ends.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, NoReturn

IMPORTED = (
    "heedful.cli.main",
    "heedful.cli.train",
    "heedful.studies.translation.translation_study",
    "heedful.studies.knowledge.knowledge_study",
    "heedful.studies.heads.small_models",
    "torch.distributed.launcher.api",
    "torch._dynamo",  # torch imports it when it makes its first optimiser
)


class Child:
    """A program that runs, with the names that `subprocess.Popen` has for the same things."""

    def __init__(self, arguments: list[str], folder: Path) -> None:
        self.place = tempfile.TemporaryDirectory(prefix="heedful-forked-")
        order = {"arguments": arguments, "folder": str(folder), "place": self.place.name}
        self.pid = ask({"start": order})
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        if self.returncode is None:
            self.returncode = ask({"poll": self.pid})
        return self.returncode

    def communicate(self) -> tuple[str, str]:
        """Wait for the end; return what was printed, and what was printed about errors."""
        if self.returncode is None:
            self.returncode = ask({"wait": self.pid})
        output, errors = (Path(self.place.name, name).read_text("utf-8") for name in ("1", "2"))
        self.place.cleanup()
        return output, errors


def start(arguments: list[str], folder: Path) -> Child:
    """Run `python` with arguments, `-c CODE …`, `-m MODULE …` or `FILE …`, in a folder."""
    return Child(arguments, folder)


def ask(order: dict[str, Any]) -> Any:
    """Return the answer of the process that forks."""
    process = forking()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


@functools.cache
def forking() -> subprocess.Popen[str]:
    """Return the process that has everything imported; it ends when its input does."""
    process = subprocess.Popen(
        [sys.executable, "-P", __file__],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    atexit.register(process.communicate)
    return process


def serve() -> None:
    """Fork, look and wait, as the orders say; answer each with one line."""
    for name in IMPORTED:
        importlib.import_module(name)
    gc.freeze()  # or the first collection in a child would copy everything
    for line in sys.stdin:
        ((what, about),) = json.loads(line).items()
        if what == "start":
            answer: int | None = os.fork()
            if answer == 0:
                become(about)
        else:
            ended, status = os.waitpid(about, os.WNOHANG if what == "poll" else 0)
            answer = os.waitstatus_to_exitcode(status) if ended else None
        print(json.dumps(answer), flush=True)


def become(order: dict[str, Any]) -> NoReturn:
    """Run a program as the interpreter would, and leave."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for target in (1, 2):
        path = Path(order["place"], str(target))
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), target)
    os.chdir(order["folder"])
    kind, *rest = order["arguments"]
    code: Any = 0
    try:
        if kind == "-c":
            sys.argv = [kind, *rest[1:]]
            exec(rest[0], {"__name__": "__main__"})
        elif kind == "-m":
            sys.argv = rest
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv = [kind, *rest]
            sys.path.insert(0, str(Path(kind).parent))
            runpy.run_path(kind, run_name="__main__")
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    serve()
