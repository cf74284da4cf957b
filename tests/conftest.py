"""What every test shares: quiet libraries, and random tests that repeat exactly."""

from __future__ import annotations

import gc
import math
import os
import sys
import time

os.environ["COLUMNS"] = "100"  # tables must not depend on who looks at the tests
# Two workers share the cores: more threads in each would only wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "agg")
# Compiled modules are kept, also where the environment says otherwise: the tests start hundreds of
# processes, and each of them would compile everything again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import signal

import axes
import pytest
import tools
from hypothesis import settings

from heedful.progress import duration

sys.dont_write_bytecode = False
axes.install()  # before any module with axes is imported

# A suite started with `&`, nohup or from a job without a terminal ignores Ctrl-C, and its children
# would inherit that: tests of Ctrl-C are about a command that somebody typed.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Derandomised: the same examples on every machine, so a red run can be repeated. No deadline:
# a first call that imports or compiles is slow and right. No database: tests write nothing here.
settings.register_profile("heedful", deadline=None, derandomize=True, database=None)
settings.load_profile("heedful")

LINE_SECONDS = 20.0
"""How often the suite says how long the rest may take."""


class Estimate:
    """Says from time to time how many tests are left, on a terminal and in a log."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.done = config, 0
        self.session: pytest.Session | None = None
        self.began = self.shown = math.inf

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self.session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.done += report.when == "teardown"
        now = time.monotonic()
        if self.began > now:  # the first test: until now tests were collected
            self.began = self.shown = now
        if report.when != "teardown" or now - self.shown < LINE_SECONDS:
            return
        self.shown = now
        writer = self.config.pluginmanager.get_plugin("terminalreporter")
        # With several workers only the session knows how many tests they have found.
        total = 0 if self.session is None else self.session.testscollected
        if writer is not None and total > self.done:
            gone = now - self.began
            left = gone / self.done * (total - self.done)
            writer.ensure_newline()
            writer.write_line(
                f"{self.done:,} of {total:,} tests in {duration(gone)}, about {duration(left)} left"
            )


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # of several processes, the one that prints
        config.pluginmanager.register(Estimate(config), "estimate")


def pytest_collection_finish() -> None:
    """Leave what the imports have made, half a million objects, out of every later collection."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once what could not be tried here, and which command helps."""
    skipped = "".join(str(report.longrepr) for report in terminalreporter.stats.get("skipped", []))
    for line in (tools.NO_BROWSER, tools.NO_AXE, tools.NO_COMPILER):
        if line in skipped:
            terminalreporter.write_line(line)
