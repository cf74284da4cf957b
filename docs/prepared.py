"""Programs run in fresh processes that need not import everything once more.

    prepared = Prepared()
    output, code = prepared.run("heedful", ["attend", "--n", "3"], folder)

NumPy, SciPy, SymPy and torch take one to three seconds to import, the sessions of the pages a few
hundredths to run. So one process imports them, runs nothing, and forks for each program: what the
program sees is a fresh interpreter in a folder of its own, with these libraries already there.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any, NoReturn

IMPORTED = (
    "heedful.cli.main",
    "heedful.claims.checker",
    "heedful.attention.distribution",
    "heedful.views",
    "scipy.stats",
    "sympy",
    "matplotlib.figure",
    "torch",
    "IPython.core.interactiveshell",
)
"""What most programs would import; what is not installed is left out."""


class Prepared:
    """One process with everything imported, started with the first program."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        atexit.register(self.close)

    def run(
        self,
        program: str,
        arguments: list[str],
        folder: Path,
        *,
        environment: dict[str, str] | None = None,
        errors: tuple[str, ...] = (),
        seconds: float = 300,
    ) -> tuple[str, int]:
        """Run a module, or a .py or .ipynb file; return its output with errors, and its code.

        `environment` is added to this process's own; warnings of the kinds in `errors` are errors.
        """
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        with tempfile.NamedTemporaryFile() as output:
            order = {
                "program": program,
                "arguments": arguments,
                "folder": str(folder),
                "environment": os.environ | (environment or {}),
                "errors": errors,
                "output": output.name,
            }
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], seconds)
            if not ready:
                self.close()
                raise subprocess.TimeoutExpired([program, *arguments], seconds)
            answer = process.stdout.readline()
            if not answer:
                raise RuntimeError("the prepared process has died")
            return Path(output.name).read_text(encoding="utf-8"), int(answer)

    def close(self) -> None:
        """End the process, with the program that it runs."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()
            self.process = None

    def _started(self) -> subprocess.Popen[str]:
        if self.process is None or self.process.poll() is not None:
            # It ends when its input ends: with the process that started it.
            self.process = subprocess.Popen(
                [sys.executable, "-P", str(Path(__file__))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
                start_new_session=True,
            )
        return self.process


def serve() -> None:
    """Fork for every order that comes in; answer with the exit code."""
    for name in IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()  # or the first collection in a child would copy everything
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(order)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(order: dict[str, Any]) -> NoReturn:
    """Run a program as the interpreter would, and leave."""
    for place, target in ((order["output"], 1), (os.devnull, 0)):
        opened = os.open(place, os.O_RDWR)
        os.dup2(opened, target)
    os.dup2(1, 2)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    for name in order["errors"]:
        warnings.simplefilter("error", getattr(builtins, name))
    program, code = order["program"], 0
    sys.argv = [program, *order["arguments"]]
    try:
        if program.endswith(".py"):
            sys.path.insert(0, str(Path(program).parent))
            runpy.run_path(program, run_name="__main__")
        elif program.endswith(".ipynb"):
            _run_notebook(Path(program))
        else:
            sys.path.insert(0, "")
            runpy.run_module(program, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    # As at every end of an interpreter, but for taking all modules apart, which costs a second.
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _run_notebook(place: Path) -> None:
    """Run the cells one after the other as the kernel of a notebook does, until one fails."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    for cell in json.loads(place.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            done = shell.run_cell("".join(cell["source"]), store_history=False)
            done.raise_error()


if __name__ == "__main__":
    serve()
