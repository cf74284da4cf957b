"""F17: is the promise of `heed ask` broken in no more than 5 % of simulated calibrations?

    python tests/faults/f17_promise.py --count 2000

A population of questions has a known error at every confidence, so the true error above any
threshold is known. Each calibration draws held-out questions from it, chooses a threshold and
makes a promise, exactly as the study does; the promise is broken where the true error above the
threshold is higher. Several populations, from honest confidences to boasts, and three wanted error
rates. The promise about models that others have trained, whose thresholds are tested in a fixed
order, is tried on the same populations: it is broken where it is made and the true error is higher
than wanted. Prints a table, then one line of JSON; exit code 1 where a promise is broken too often.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable

import numpy as np

from heedful.stats import clopper_pearson_upper, wilson
from heedful.studies.knowledge.confidence import choose_threshold, promise, risk_coverage

Errors = Callable[[np.ndarray], np.ndarray]
POPULATIONS: dict[str, Errors] = {
    "honest": lambda confidence: 1 - confidence,
    "boasting": lambda confidence: 1 - confidence**3,
    "blind": lambda confidence: np.full_like(confidence, 0.3),
    "backwards at the top": lambda confidence: np.where(
        confidence > 0.9, 0.35, 0.6 - confidence / 2
    ),
    "steps": lambda confidence: np.where(
        confidence > 0.7, 0.05, np.where(confidence > 0.4, 0.2, 0.6)
    ),
}
WANTED = (0.05, 0.1, 0.2)
HELD_OUT = 150
"""Questions of a calibration: as many as the embedded study may hold out, about."""
CALIBRATING = 306
"""Questions that calibrate a model of others: half of the 600."""
GRID = np.linspace(0, 1, 20_001)
"""Confidences are uniform: the true error above a threshold is a mean over this grid."""


def true_error(errors: Errors, threshold: float) -> float:
    """Return the share of wrong answers above a threshold in the whole population."""
    above = GRID[threshold <= GRID]
    return float(errors(above).mean()) if len(above) else 0.0


def broken(errors: Errors, wanted: float, count: int, *, halves: bool, seed: int = 0) -> int:
    """Return how many of so many calibrations promise less than the true error."""
    draw = np.random.default_rng(seed)
    found = 0
    for _ in range(count):
        confidence = draw.random(HELD_OUT)
        right = draw.random(HELD_OUT) >= errors(confidence)
        if halves:
            made = risk_coverage((confidence, right), (confidence, right), wanted)
            threshold, promised = made.threshold, made.promised_error
        else:  # as it was once: the answers that chose the threshold promise too
            threshold = choose_threshold(confidence, right, wanted)
            kept = confidence >= threshold
            promised = clopper_pearson_upper(int((~right[kept]).sum()), int(kept.sum()))
        found += true_error(errors, threshold) > promised
    return found


def broken_in_order(errors: Errors, wanted: float, count: int, *, seed: int = 1) -> tuple[int, int]:
    """Return how many of so many calibrations break their promise, and how many make none."""
    draw = np.random.default_rng(seed)
    choosing = np.arange(CALIBRATING) % 3 == 0
    found = refused = 0
    for _ in range(count):
        confidence = draw.random(CALIBRATING)
        right = draw.random(CALIBRATING) >= errors(confidence)
        halves = ((confidence[part], right[part]) for part in (choosing, ~choosing))
        threshold = promise(*halves, wanted).threshold
        refused += threshold is None
        found += threshold is not None and true_error(errors, threshold) > wanted
    return found, refused


def main() -> int:
    """Simulate all populations at all error rates."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=2_000, help="calibrations of each")
    count = parser.parse_args().count
    rows, bad = [], 0
    for name, errors in POPULATIONS.items():
        for wanted in WANTED:
            now, before = (broken(errors, wanted, count, halves=halves) for halves in (True, False))
            low, high = wilson(now, count)
            ordered, refused = broken_in_order(errors, wanted, count)
            ends = wilson(ordered, count)
            bad += (low > 0.05) + (ends[0] > 0.05)  # more than 5 %, beyond chance
            rows.append(
                {"population": name, "wanted": wanted, "broken": now / count, "low": low,
                 "high": high, "before": before / count, "in_order": ordered / count,
                 "in_order_low": ends[0], "in_order_high": ends[1], "refused": refused / count}
            )  # fmt: skip
            print(
                f"{name:22} wanted {wanted:4.0%}  broken {now / count:6.2%} ({low:.2%} to "
                f"{high:.2%})  on the answers that chose {before / count:6.2%}  in a fixed order "
                f"{ordered / count:6.2%} ({ends[0]:.2%} to {ends[1]:.2%}), "
                f"refused {refused / count:.0%}"
            )
    print(json.dumps({"calibrations": count, "rows": rows}))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
