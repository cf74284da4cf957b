"""How long does it take to study the heads of a 135-million model, and what does a trace cost?

    python benchmarks/bench_heads.py [--model smollm2]

A plain pass, a trace that is kept and one that is looked at layer by layer: medians of interleaved
repeats, so that a busy moment meets all of them alike. Then `heed study heads MODEL --no-train` as
a user gives it, with all parts and without each of them: seconds by the clock to the first result
and to the last, and processor seconds. Prints tables, then one JSON line, and stores
benchmarks/results/heads.json.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from surroundings import surroundings

from heedful.studies.heads.heads_study import PARTS
from heedful.studies.heads.sample import Amount, open_subject

RESULTS = Path(__file__).parent / "results" / "heads.json"
TOKENS = 256
LIMIT = 30.0
"""Seconds to the first result."""
TRACE_LIMIT = 2.0
REPEATS = 5
LEFT_OUT = "small-models"
"""They have nothing to do with the model that is studied."""


def interleaved(ways: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the median seconds of each way, taken in turns."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(REPEATS + 1):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            if turn:  # the first turn warms up
                taken[name].append(time.perf_counter() - began)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def passes(model: str) -> dict[str, float]:
    """Return the seconds of a pass with and without a trace."""
    subject = open_subject(model, amount=Amount(rows=1, tokens=TOKENS))
    tokens = subject.sample.rows[0].tensor()
    with torch.no_grad():
        return interleaved(
            {
                "plain forward": lambda: subject.decoder(tokens),
                "trace, kept": lambda: subject.decoder.trace(tokens),
                "trace, layer by layer": lambda: subject.decoder.visit(tokens, lambda *_: None),
            }
        )


def studied(model: str, parts: str | None) -> dict[str, Any]:
    """Give the command; return its seconds to the first result and to the last."""
    with tempfile.TemporaryDirectory(prefix="heedful-heads-") as folder:
        words = ["study", "heads", model, "--no-train", "--output", folder]
        words += [] if parts is None else ["--parts", parts]
        before, began = os.times(), time.monotonic()
        with subprocess.Popen(
            [sys.executable, "-m", "heedful", *words], stdout=subprocess.PIPE, encoding="utf-8"
        ) as child:
            assert child.stdout is not None
            first, said = 0.0, []
            for line in child.stdout:
                if not first and not line.strip():  # the model is named, and a part is finished
                    first = time.monotonic() - began
                said.append(line)
        last, after = time.monotonic() - began, os.times()
    assert child.returncode == 0, said
    told = " ".join("".join(said).split()).rpartition("Took:")[2]
    took = re.findall(r"([a-z-]+) ([\d.]+) s", told)
    return {
        "first_seconds": round(first, 1),
        "last_seconds": round(last, 1),
        "processor_seconds": round(
            after.children_user + after.children_system
            - before.children_user - before.children_system, 1
        ),
        "parts": {name: float(seconds) for name, seconds in took},
    }  # fmt: skip


def main() -> None:
    """Time passes and studies; print and store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", default="smollm2", help="a model that is at hand")
    model = parser.parse_args().model
    machine, taken = surroundings("torch"), passes(model)
    plain = taken["plain forward"]
    for name, seconds in taken.items():
        print(f"{name:<24}{seconds:>8.2f} s{seconds / plain:>8.2f} x", flush=True)
    studies: dict[str, Any] = {}
    print(f"{'parts':<24}{'first':>8}{'last':>8}{'processor':>11}  seconds")
    for part in (None, *(one for one in PARTS if one != LEFT_OUT)):
        name = "all" if part is None else f"no-{part}"
        studies[name] = one = studied(model, None if part is None else name)
        print(
            f"{name:<24}{one['first_seconds']:>8.1f}{one['last_seconds']:>8.1f}"
            f"{one['processor_seconds']:>11.1f}",
            flush=True,
        )
    stored = {
        "benchmark": "heads",
        "machine": machine,
        "model": model,
        "tokens": TOKENS,
        "passes_seconds": {name: round(seconds, 3) for name, seconds in taken.items()},
        "trace_over_plain": round(taken["trace, layer by layer"] / plain, 2),
        "studies": studies,
        "within_limits": studies["all"]["first_seconds"] < LIMIT
        and taken["trace, layer by layer"] < TRACE_LIMIT * plain,
    }
    RESULTS.write_text(json.dumps(stored, indent=2, ensure_ascii=False) + "\n", "utf-8")
    print(json.dumps(stored, ensure_ascii=False))


if __name__ == "__main__":
    main()
