"""What every test shares: quiet libraries, and random tests that repeat exactly."""

from __future__ import annotations

import os

os.environ["COLUMNS"] = "100"  # tables must not depend on who looks at the tests
# Two workers share the cores: more threads in each would only wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "agg")

import signal

from hypothesis import settings

# A suite started with `&`, nohup or from a job without a terminal ignores Ctrl-C, and its children
# would inherit that: tests of Ctrl-C are about a command that somebody typed.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Derandomised: the same examples on every machine, so a red run can be repeated. No deadline:
# a first call that imports or compiles is slow and right. No database: tests write nothing here.
settings.register_profile("heedful", deadline=None, derandomize=True, database=None)
settings.load_profile("heedful")
