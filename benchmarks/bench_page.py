"""Does the page keep 60 frames a second while a query is dragged, and does its server hold?

    python benchmarks/bench_page.py [--seconds 300]

Frames: a query is dragged round for some seconds in Chromium, over 8 and over 64 keys with noise;
the time from each frame to the next is taken by the page itself. Frames of the Models view: a model
with 6 layers of 8 heads has read 512 tokens; the pointer moves over the picture of all heads, over
one head as a matrix and as arcs, and another head is chosen twice a second. Beside the times
between frames stand the processor milliseconds of the page's own thread for each, which other
programs do not change. Answers: what the page asks most, one at a time. Load: F12 of the faults,
for so many seconds (0 leaves it out). Prints a table, then one JSON line, and stores
benchmarks/results/page.json.
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
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "web"), str(TESTS / "faults")]

import browsing  # noqa: E402
import f12_load  # noqa: E402
from playwright.sync_api import expect  # noqa: E402
from surroundings import surroundings  # noqa: E402

from heedful.model import Decoder, preset, write_folder  # noqa: E402
from heedful.model.config import Attention  # noqa: E402
from heedful.tokenization import bytes_of_utf8  # noqa: E402
from heedful.web.shelves import id_of  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "page.json"
FRAME_LIMIT = 17.0
"""Milliseconds, for 95 of 100 frames."""
LONG_FRAME_LIMIT = 33.4
"""The same for the Models view with 512 tokens: every other frame at least."""
TOKENS = 512
SENTENCE = "the cat sat on the mat and then it went home. "
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
            found[f"{keys} keys"] = summary(taken)
    return found


def summary(taken: list[float]) -> dict[str, float]:
    """Return how many frames there were, and how far apart."""
    return {
        "frames": len(taken),
        "median_ms": round(statistics.median(taken), 2),
        "p95_ms": round(float(np.percentile(taken, 95)), 2),
        "p99_ms": round(float(np.percentile(taken, 99)), 2),
        "longest_ms": round(max(taken), 2),
    }


def write_long_reader(folder: Path) -> None:
    """Write a model with random weights that reads 512 bytes of text."""
    config = preset("tiny", context=640).changed(layers=6, initial_std=0.5)
    config = config.changed(attention=Attention(heads=8))
    write_folder(Decoder(config, seed=1), folder, tokenizer=bytes_of_utf8())


def long_frames(address: str, model: str) -> dict[str, Any]:
    """Return the times between frames of the Models view, with 512 tokens."""
    found: dict[str, Any] = {}
    text = (SENTENCE * TOKENS)[:TOKENS]
    state = f"#/models?model={model}&text={quote(text)}&layer=1&head=1"
    with browsing.chromium() as browser, browsing.visiting(browser, address + state) as visit:
        page = visit.page
        heads, matrix = page.get_by_role("application"), page.get_by_label("weights of one head")
        expect(heads).to_be_visible()
        expect(matrix).to_be_visible()
        assert page.locator("[aria-label=Tokens] span").count() == TOKENS
        browsing.still(page)
        thread = page.context.new_cdp_session(page)
        thread.send("Performance.enable", {"timeDomain": "threadTicks"})

        def worked() -> float:
            metrics = thread.send("Performance.getMetrics")["metrics"]
            return next(one["value"] for one in metrics if one["name"] == "TaskDuration")

        def noted(name: str, frames: Callable[[], list[float]]) -> None:
            before = worked()
            taken = frames()
            each = 1000 * (worked() - before) / max(1, len(taken))
            found[name] = summary(taken) | {"processor_ms": round(each, 2)}

        for name, place in (("all heads", heads), ("matrix", matrix), ("arcs", None)):
            if place is None:
                page.get_by_role("button", name="arcs", exact=True).click()
                place = page.get_by_label("as arcs")
            place.scroll_into_view_if_needed()
            box = place.bounding_box()
            assert box is not None
            radius = 0.45 * min(box["width"], box["height"])
            noted(
                name,
                partial(browsing.frames_of_a_move, page, box, DRAG_SECONDS, radius=radius),
            )
        page.get_by_role("button", name="matrix", exact=True).click()
        heads.scroll_into_view_if_needed()

        def choose(turn: int) -> None:
            heads.press("ArrowLeft" if turn % 2 else "ArrowRight")
            page.wait_for_timeout(500)

        noted("another head", partial(browsing.frames_while, page, choose, DRAG_SECONDS))
        assert visit.troubles == []
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
        reader = Path(folder) / "reader"
        write_long_reader(reader)
        server, address = f12_load.begin_server(Path(folder), "--model", reader)
        try:
            host, cookie = address
            opened = f"http://{host}/?token={cookie.split('=', 1)[1]}"
            stored["frames"] = frames(opened)
            stored["long_frames"] = long_frames(opened, id_of(reader))
            stored["answers_ms"] = answers(host, cookie)
        finally:
            server.terminate()
            server.wait()
    stored["frames_within_limit"] = stored["frames"]["64 keys"]["p95_ms"] < FRAME_LIMIT
    stored["long_frames_within_limit"] = all(
        one["p95_ms"] < LONG_FRAME_LIMIT for one in stored["long_frames"].values()
    )
    for keys, one in (stored["frames"] | stored["long_frames"]).items():
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
