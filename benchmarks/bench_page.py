"""Does the page keep 60 frames a second while a query is dragged, and does its server hold?

    python benchmarks/bench_page.py [--seconds 300]

Frames: a query is dragged round for some seconds in Chromium, over 8 and over 64 keys with noise;
the time from each frame to the next is taken by the page itself. Answers: what the page asks most,
one at a time. Load: F12 of the faults, for so many seconds (0 leaves it out). Prints a table, then
one JSON line, and stores benchmarks/results/page.json.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS / "web"), str(TESTS / "faults")]

import browsing  # noqa: E402
import f12_load  # noqa: E402
from playwright.sync_api import expect  # noqa: E402
from surroundings import surroundings  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "page.json"
FRAME_LIMIT = 17.0
"""Milliseconds, for 95 of 100 frames."""
DRAG_SECONDS = 5.0
REPEATS = 20


def frames(address: str) -> dict[str, Any]:
    """Return the times between frames while a query is dragged."""
    found: dict[str, Any] = {}
    with browsing.chromium() as browser:
        for keys in (8, 64):
            state = f"#/attention?keys=circle&n={keys}&beta=30&noisy=0&variance=0.5"
            with browsing.visiting(browser, address + state) as visit:
                expect(visit.page.locator("[data-failure]").first).to_be_visible()
                taken = browsing.frames_of_a_drag(visit.page, DRAG_SECONDS)
            found[f"{keys} keys"] = {
                "frames": len(taken),
                "median_ms": round(statistics.median(taken), 2),
                "p95_ms": round(float(np.percentile(taken, 95)), 2),
                "p99_ms": round(float(np.percentile(taken, 99)), 2),
            }
    return found


def answers(host: str, cookie: str) -> dict[str, float]:
    """Return the median milliseconds of each question, asked one at a time."""
    client, found = f12_load.Client(0, (host, cookie), 0.0), {}
    for path, question in f12_load.good_questions():
        body, taken = json.dumps(question).encode(), []
        for _ in range(REPEATS):
            began = time.perf_counter()
            assert client.ask(path, body) == 200
            taken.append(time.perf_counter() - began)
        found[path.removeprefix("/api/")] = round(1000 * statistics.median(taken), 1)
    return found


def main() -> int:
    """Measure, print, store."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=300.0, help="of load; 0: none")
    chosen = options.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    stored: dict[str, Any] = {
        "benchmark": "page",
        "question": "Does the page move at 60 frames a second, and does its server hold?",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": surroundings("fastapi", "playwright"),
    }
    with tempfile.TemporaryDirectory(prefix="heedful-page-") as folder:
        server, address = f12_load.begin_server(Path(folder))
        try:
            host, cookie = address
            opened = f"http://{host}/?token={cookie.split('=', 1)[1]}"
            stored["frames"] = frames(opened)
            stored["answers_ms"] = answers(host, cookie)
        finally:
            server.terminate()
            server.wait()
    stored["frames_within_limit"] = stored["frames"]["64 keys"]["p95_ms"] < FRAME_LIMIT
    for keys, one in stored["frames"].items():
        print(f"{keys:<28}p95 {one['p95_ms']:>8.2f} ms of {one['frames']} frames")
    for path, milliseconds in stored["answers_ms"].items():
        print(f"{path:<28}{milliseconds:>12.1f} ms")
    if chosen.seconds:
        load = f12_load.load(chosen.seconds, f12_load.STEPS)
        stored["load"], stored["load_reached"] = load, f12_load.reached(load)
        for name, value in load.items():
            print(f"{name:<28}{value!s:>12}")
    elif RESULTS.is_file():  # the load of another time is still the last one measured
        before = json.loads(RESULTS.read_text("utf-8"))
        stored |= {name: before[name] for name in ("load", "load_reached") if name in before}
    RESULTS.write_text(json.dumps(stored, indent=2, ensure_ascii=False) + "\n", "utf-8")
    print(json.dumps(stored, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
