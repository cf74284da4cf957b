"""How long does it take to find every copyable key, and against one linear programme a key?

    python benchmarks/bench_copyable.py

Prints a table, then one JSON line, and stores benchmarks/results/copyable.json. The naive way
(one linear programme a key, HiGHS) is measured on a sample of the same keys in the same run
and multiplied up to all keys; the sampled verdicts must agree.
"""

from __future__ import annotations

import datetime
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linprog
from surroundings import surroundings

from heedful.attention.hull import Copyable, copyable
from heedful.attention.keys import gaussian, sphere

RESULTS = Path(__file__).parent / "results" / "copyable.json"
LIMIT = 60.0  # seconds on two cores, for the first two cases


def varied(n: int, d: int) -> np.ndarray:
    """Random directions with norms spread over two orders of magnitude."""
    norms = np.exp(np.random.default_rng(1).normal(0.0, 1.0, (n, 1)))
    return sphere(n, d) * norms


# name, keys, how many of them the naive way is tried on
CASES = (
    ("sphere", sphere, 50_000, 64, 3),
    ("gaussian", gaussian, 5_000, 8, 60),
    ("gaussian", gaussian, 1_250, 8, 60),
    ("gaussian", gaussian, 2_500, 8, 60),
    ("gaussian", gaussian, 50_000, 8, 10),
    ("sphere", sphere, 12_500, 64, 3),
    ("sphere", sphere, 25_000, 64, 3),
    ("varied norms", varied, 4_000, 64, 10),
)


def naive(keys: np.ndarray, j: int) -> bool:
    """One linear programme: the largest t with (k_j − k_i)·q ≥ t for all i, |q| ≤ 1."""
    apart = np.delete(keys, j, axis=0) - keys[j]
    d = keys.shape[1]
    best = linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.hstack([apart, np.ones((len(apart), 1))]),
        b_ub=np.zeros(len(apart)),
        bounds=[(-1.0, 1.0)] * d + [(0.0, None)],
    )
    return bool(-best.fun > 1e-9)


def measure(name: str, make: Any, n: int, d: int, sample: int) -> dict[str, Any]:
    """Time both ways on the same keys."""
    keys = make(n, d)
    began = time.perf_counter()
    found: Copyable = copyable(keys)
    seconds = time.perf_counter() - began
    chosen = np.random.default_rng(0).choice(n, sample, replace=False)
    began = time.perf_counter()
    verdicts = [naive(keys, int(j)) for j in chosen]
    each = (time.perf_counter() - began) / sample
    return {
        "keys": name,
        "n": n,
        "d": d,
        "seconds": round(seconds, 3),
        "copyable": found.count,
        "undecided": len(found.undecided),
        "stages": found.stages,
        "naive_sample": sample,
        "naive_seconds_per_key": round(each, 4),
        "naive_seconds_extrapolated": round(each * n, 1),
        "ratio_extrapolated": round(each * n / seconds, 1),
        "sample_agrees": verdicts == found.copyable[chosen].tolist(),
    }


def main() -> None:
    """Run every case, print, store."""
    copyable(gaussian(200, 4))  # the first call loads the libraries
    header = (
        f"{'keys':<13}{'n':>7}{'d':>5}{'copyable':>10}{'seconds':>9}{'naive, s':>12}{'ratio':>9}"
    )
    print(header + "   (naive: one LP a key, extrapolated from a sample)")
    rows = []
    for case in CASES:
        row = measure(*case)
        rows.append(row)
        print(
            f"{row['keys']:<13}{row['n']:>7}{row['d']:>5}{row['copyable']:>10}"
            f"{row['seconds']:>9.2f}{row['naive_seconds_extrapolated']:>12.0f}"
            f"{row['ratio_extrapolated']:>9.0f}" + ("" if row["sample_agrees"] else "  DISAGREES")
        )
    record = {
        "benchmark": "copyable",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": surroundings("scipy"),
        "limit_seconds": LIMIT,
        "within_limit": all(row["seconds"] < LIMIT for row in rows[:2]),
        "all_samples_agree": all(row["sample_agrees"] for row in rows),
        "cases": rows,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    print(json.dumps(record, ensure_ascii=False))


if __name__ == "__main__":
    main()
