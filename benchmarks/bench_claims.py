"""How long does it take to judge claims? The whole catalog, a thousand small ones, a single one.

    python benchmarks/bench_claims.py [--quick]

What is timed, on the clock, processes started anew for each check:
- catalog: every claim of the catalog, repairs included, with one worker and with two;
- small: 1,000 claims over orthonormal keys, each with numbers of its own, in ten sheets, with one
  worker and with two;
- one: a single claim over orthonormal keys, judged again and again in one warm process (median).

The verdicts of one and of two workers are compared. Prints a table, then one line of JSON, and
stores the line with machine and date in benchmarks/results/claims.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surroundings import surroundings

from heedful.claims.checker import Checker, CheckReport
from heedful.claims.judge import judge_claim
from heedful.claims.sheet import Claim, Sheet, catalog, load_sheet

SHEETS = 10
RESULTS = Path(__file__).parent / "results" / "claims.json"
WANTED = {"catalog": 60.0, "small": 60.0, "one": 50.0}
"""Seconds on two workers for the first two; milliseconds for the last."""


def small_sheets(count: int) -> list[Sheet]:
    """Return claims of four kinds, every one with a scale of its own; about a third are wrong."""
    sheets = []
    for sheet in range(SHEETS):
        lines = ['[defaults]\nkeys = "orthonormal"\n']
        for place in range(sheet, count, SHEETS):
            n, beta = 2 + place % 9, round(0.5 + 0.01 * place, 2)
            query, expect = (
                (f"{beta} (k_a + k_b)", "c ≈ (v_a + v_b)/2 within 0.02"),
                (f"{beta} k_a", "alpha_a >= 0.9"),
                (f"{beta} k_a", "alpha_i < alpha_a for all i != a"),
                (f"{beta} k_a", f"alpha_a / alpha_b = exp({beta})"),
            )[place % 4]
            lines.append(
                f'[[claim]]\nid = "{place}"\nwhere = {{ n = {n} }}\nquery = "{query}"\n'
                f'expect = "{expect}"\n'
            )
        sheets.append(load_sheet("".join(lines), name=f"small{sheet}"))
    return sheets


def checked(sheets: Sequence[Sheet], workers: int) -> CheckReport:
    """Judge some sheets with processes of their own."""
    with Checker(workers=workers) as checker:
        return checker.check(sheets)


def one_and_two_workers(sheets: Sequence[Sheet]) -> dict[str, Any]:
    """Return the seconds with one and two workers, and whether they agree."""
    reports = {workers: checked(sheets, workers) for workers in (1, 2)}
    words = [[verdict.verdict for verdict in report.claims] for report in reports.values()]
    slowest = max(reports[1].claims, key=lambda verdict: verdict.seconds)
    return {
        "claims": len(words[0]),
        "one_worker_seconds": reports[1].seconds,
        "two_workers_seconds": reports[2].seconds,
        "speed_up": reports[1].seconds / reports[2].seconds,
        "slowest": f"{slowest.sheet}/{slowest.id}",
        "slowest_seconds": slowest.seconds,
        "counts": {word: words[0].count(word) for word in sorted(set(words[0]))},
        "agree": words[0] == words[1],
    }


def one_warm_claim(repeats: int) -> dict[str, float]:
    """Return the milliseconds of two proofs and of a refutation with its repair."""
    fields: dict[str, Any] = {
        "keys": "orthonormal",
        "expect": ("c ≈ (v_a + v_b)/2 within 0.02",),
    }
    true = Claim(id="true", query="6 (k_a + k_b)", where={"n": [2, 3, 10]}, **fields)
    large = {"n": [2, 3, 10], "beta": "large"}
    scaled = Claim(id="scaled", query="beta (k_a + k_b)", where=large, **fields)
    false = Claim(id="false", query="k_a + k_b", where={"n": [2, 3, 10]}, **fields)
    found = {}
    for claim in (true, scaled, false):
        judge_claim(claim)
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            judge_claim(claim)
            times.append(time.perf_counter() - start)
        found[f"{claim.id}_ms"] = 1e3 * statistics.median(times)
    return found


def show(result: dict[str, Any]) -> None:
    """Print the table."""
    print(f"{'what':<28}{'claims':>8}{'1 worker':>12}{'2 workers':>12}{'times':>8}{'wanted':>10}")
    for name in ("catalog", "small"):
        row = result[name]
        print(
            f"{name:<28}{row['claims']:>8,}{row['one_worker_seconds']:>10.1f} s"
            f"{row['two_workers_seconds']:>10.1f} s{row['speed_up']:>8.2f}"
            f"{'≤ ' + format(WANTED[name], 'g') + ' s':>10}"
        )
    for name, label in (
        ("true_ms", "proved for three n"),
        ("scaled_ms", "proved for every large β"),
        ("false_ms", "refuted and repaired"),
    ):
        wanted = f"≤ {WANTED['one']:g} ms"
        print(f"{label:<28}{1:>8}{result['one'][name]:>9.1f} ms{'':>20}{wanted:>10}")
    slowest = result["catalog"]
    print(f"slowest of the catalog: {slowest['slowest']}, {slowest['slowest_seconds']:.1f} s")


def main() -> None:
    """Run everything; `--quick` takes a tenth of the small claims and stores nothing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer claims; results not stored")
    quick = parser.parse_args().quick
    result: dict[str, Any] = {"benchmark": "claims", "machine": surroundings()}
    result["one"] = one_warm_claim(5 if quick else 50)
    result["small"] = one_and_two_workers(small_sheets(100 if quick else 1000))
    result["catalog"] = one_and_two_workers(catalog())
    result["reached"] = {
        "catalog_60_s": result["catalog"]["two_workers_seconds"] <= WANTED["catalog"],
        "small_60_s": result["small"]["two_workers_seconds"] <= WANTED["small"],
        "one_50_ms": max(result["one"]["true_ms"], result["one"]["scaled_ms"]) <= WANTED["one"],
        "agree": result["catalog"]["agree"] and result["small"]["agree"],
    }
    show(result)
    print(json.dumps(result))
    if not quick:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
