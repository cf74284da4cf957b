"""Takes the pictures of the page that the README and docs/page.md show.

    python docs/screenshots.py --runs lab

Serves the page over a folder of runs (what `heed lab` leaves is one), opens each view in Chromium
in light, in dark and as wide as a phone, waits until everything is there, and writes small PNGs
to docs/_static.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

# In the place of this folder, whose numbers.py would hide the module of Python.
sys.path[0] = str(Path(__file__).parents[1] / "tests")
import tools  # noqa: E402

STATIC = Path(__file__).with_name("_static")
WIDE, PHONE = (1280, 900), (390, 844)
COLOURS = 256
"""Of a stored picture: text and flat areas need no more, and it takes a third of the bytes."""
WAIT = 300_000
READY = """() => {
    const busy = '.stale, .waiting, [aria-busy=true]'
    const says = [...document.querySelectorAll('[role=status]')].map((one) => one.textContent)
    const drawn = document.querySelector('svg[data-figure], article.refuted')
    return drawn && !document.querySelector(busy) && !says.some((text) => text.includes('…'))
}"""
"""A function, not an expression: the policy of the page forbids eval."""
SENTENCE = "Vous ne voulez pas peindre cette montagne."
SECOND_SENTENCE = "Il mange une pomme."
QUESTIONS = (
    "Who discovered the element quorium?",  # there is none
    "Which river flows through Cairo?",
    "In which city is the Eiffel Tower?",
    "What is the capital of France?",
)
"""Put to a fetched model, the last one at the top."""
MARGIN = 16
"""Pixels above what a picture begins with."""


@contextmanager
def served(runs: Path) -> Iterator[str]:
    """Serve the page over some runs; yield its address."""
    words = ["serve", "--port", "0", "--no-browser", "--runs", str(runs)]
    server = subprocess.Popen(
        [sys.executable, "-m", "heedful", *words], stdout=subprocess.PIPE, encoding="utf-8"
    )
    try:
        assert server.stdout is not None
        yield re.findall(r"http://\S+", server.stdout.readline())[0]
    finally:
        server.terminate()
        server.wait()


def asked(page: Page, path: str) -> Any:
    """Return what the server says to a question of the page."""
    return page.evaluate(
        "async (path) => (await fetch(`/api/${path}`, {method: 'POST', body: '{}',"
        " headers: {'content-type': 'application/json'}})).json()",
        path,
    )


def known_question(runs: Path) -> str:
    """Return the question that a knowledge study below this folder answers most confidently."""
    for record in sorted(runs.glob("**/knowledge.json")):
        answers = json.loads(record.read_text("utf-8"))["answers"]
        right = [one for one in answers if one["right"]]
        if right:
            return str(max(right, key=lambda one: one["confidence"])["question"])
    return "Where was Ada Lee born?"


@dataclass(frozen=True)
class Scene:
    """A view with something worth seeing in it."""

    view: str
    state: dict[str, Any] = field(default_factory=dict)
    start: str | None = None
    """What the picture begins with; None: the top of the page."""
    questions: tuple[str, ...] = ()
    """Put to the chosen model before the picture is taken."""

    @property
    def address(self) -> str:
        """Where it is, behind that of the server."""
        return f"#/{self.view}?{urlencode(self.state)}"


def scenes(page: Page, question: str) -> dict[str, Scene]:
    """Return what is shown, by the names of the pictures."""
    runs = {one["id"]: one for one in asked(page, "models/runs")["runs"]}
    found, models = asked(page, "models/list"), {}
    translators = [one for one in found["models"] if one["translates"] and one["run"] in runs]
    if translators:
        best = max(translators, key=lambda one: runs[one["run"]]["evaluation"].get("bleu", 0.0))
        models = {"model": best["id"], "run": best["run"], "text": SENTENCE, "on": "sentence"}
    askers = {one["kind"]: one["id"] for one in reversed(found["askers"])}  # the first of each
    if "study" in askers:
        models |= {"asker": askers["study"], "question": question}
    noise = {"keys": "circle", "n": 6, "beta": 30, "of": "1,2", "noisy": 1, "variance": 0.1}
    inside = {"layer": 1, "head": 1, "without": "0.1", "second": SECOND_SENTENCE}
    asking = {}
    if "model" in askers:
        state = {"asker": askers["model"]}
        asking["questions"] = Scene("models", state, "[data-questions]", QUESTIONS)
    return {
        **asking,
        "attention": Scene("attention", noise),
        "claims": Scene("claims"),
        "positions": Scene("positions", {"length": 128, "width": 64}),
        "models": Scene("models", models),
        "heads": Scene("models", models | inside, ".reading:has([role=application])"),
    }


def picture(
    browser: Browser, address: str, scene: Scene, colours: Any, size: tuple[int, int]
) -> Image.Image:
    """Return one view, from its top or from what the scene begins with to its end."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=colours
    )
    page = context.new_page()
    page.goto(address + scene.address, timeout=WAIT)
    if not scene.questions:  # there may be no run to draw
        page.wait_for_function(READY, timeout=WAIT)
    for question in scene.questions:
        page.get_by_label("Question", exact=True).fill(question, timeout=WAIT)
        page.locator("[data-put]").click(timeout=WAIT)
        page.locator("[data-reply]", has_text=question).wait_for(timeout=WAIT)
    top = 0.0
    if scene.start is not None:
        begin = page.locator(scene.start).first
        begin.wait_for(timeout=WAIT)
        if not scene.questions:
            page.wait_for_function(READY, timeout=WAIT)
        top = begin.evaluate("(one) => one.getBoundingClientRect().top + scrollY") - MARGIN
    page.wait_for_timeout(600)
    taken = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
    context.close()
    return taken.crop((0, int(top), taken.width, taken.height))


def store(image: Image.Image, path: Path, height: int | None) -> None:
    """Write a picture in few bytes, cut to a height."""
    if height is not None:
        image = image.crop((0, 0, image.width, min(height, image.height)))
    few = image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    print(f"{path}  {path.stat().st_size / 1000:.0f} kB")


def main() -> int:
    """Take every picture."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=Path, default=Path("lab"))
    options.add_argument("--output", type=Path, default=STATIC)
    options.add_argument("--views", nargs="*", help="only these")
    options.add_argument("--whole", action="store_true", help="from the top to the very end")
    chosen = options.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    place = tools.browser()
    if place is None:
        sys.exit("no browser: `python tests/tools.py` finds or brings one")
    environment = dict(os.environ) | tools.libraries()
    with served(chosen.runs) as address, sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=place, args=["--no-sandbox"], env=environment
        )
        first = browser.new_page()
        first.set_default_timeout(WAIT)
        first.goto(address)
        for shown, scene in scenes(first, known_question(chosen.runs)).items():
            if chosen.views and shown not in chosen.views:
                continue
            for name, colours, size, height in (
                ("light", "light", WIDE, 1600),
                ("dark", "dark", WIDE, 1600),
                ("phone", "light", PHONE, 1700),
                ("phone-dark", "dark", PHONE, 1700),
            ):
                taken = picture(browser, address, scene, colours, size)
                file = chosen.output / f"page-{shown}-{name}.png"
                store(taken, file, None if chosen.whole else height)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
