"""The Models view in a real browser: a curve that grows while a training runs, and heat maps."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from browsing import PHONE, save_figure, visiting
from page_server import Running
from playwright.sync_api import Browser, Page, expect
from trained_runs import written

from heedful.model import preset
from heedful.web.shelves import id_of

LONG = "the cat sat on the mat and " * 8
"""More than 200 tokens, as the model of these tests counts them."""


def lines_shown(page: Page) -> int:
    said = page.locator("figcaption", has_text="of metrics").inner_text()
    found = re.search(r"([\d,]+) lines? of metrics", said)
    assert found is not None
    return int(found[1].replace(",", ""))


def test_the_curve_grows_while_a_training_runs(
    browser: Browser, models_server: Running, runs: Path, tmp_path: Path
) -> None:
    # Some lines a second: a line each step would keep the page busy with thousands. One thread:
    # two would wait for each other where another program has a core.
    config = written(tmp_path, "endless", steps=1_000_000, log_every=10)
    folder = runs / "endless"
    command = [sys.executable, "-m", "heedful", "train", str(config), "--run", str(folder)]
    training = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    try:
        while not (folder / "metrics.jsonl").is_file():
            assert training.poll() is None, "the training ended before it had begun"
            time.sleep(0.1)
        state = f"#/models?run={id_of(folder)}"
        with visiting(browser, models_server.address + state) as visit:
            page = visit.page
            row = page.locator("tr", has_text="endless")
            expect(row).to_contain_text("running")
            curve = page.get_by_label("Training curve").locator("path.blue")
            expect(curve).to_have_attribute("d", re.compile("L"))
            first, drawn = lines_shown(page), str(curve.get_attribute("d"))
            expect(curve).not_to_have_attribute("d", drawn)
            page.wait_for_function(
                "(first) => Number(/([0-9,]+) lines? of metrics/.exec(document.body.innerText)[1]"
                ".replaceAll(',', '')) > first + 3",
                arg=first,
            )
            expect(page.locator("figcaption", has_text="live")).to_be_visible()
            colours = page.locator(".chart canvas").evaluate(
                "(canvas) => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width,"
                " canvas.height).data).size"
            )
            assert colours > 10  # something is drawn on it
            svg = save_figure(page, "Training of endless", "SVG", tmp_path).read_text("utf-8")
            assert "<path" in svg
            assert visit.troubles == []
    finally:
        training.terminate()
        training.wait(timeout=60)


@pytest.mark.parametrize("size", [(1280, 900), PHONE])
def test_the_heat_map_of_a_long_sentence(
    browser: Browser, models_server: Running, reader: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    model = id_of(reader)
    state = f"#/models?model={model}&text={LONG.replace(' ', '+')}&layer=1&head=1"
    with visiting(browser, models_server.address + state, size=size) as visit:
        page = visit.page
        picture = page.get_by_label("Attention weights of one head")
        expect(picture).to_be_visible()
        tokens = page.locator("[aria-label=Tokens] span").count()
        assert tokens >= 200
        expect(page.locator(".heads button")).to_have_count(preset("tiny").attention.heads)
        expect(page.get_by_role("heading", name="Layer 1, head 1")).to_be_visible()
        asked = {"model": model, "text": LONG, "layer": 1, "head": 1}
        found: Any = page.evaluate(
            "async (question) => (await fetch('/api/models/head', {method: 'POST', headers:"
            " {'content-type': 'application/json'}, body: JSON.stringify(question)})).status",
            asked,
        )
        assert found == 200
        picture.scroll_into_view_if_needed()
        box = picture.locator("rect.frame").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 2, box["y"] + box["height"] - 2)
        readout = page.locator(".readout", has_text="key").last
        expect(readout.locator("strong")).to_have_text(re.compile(r"\d"))
        page.locator(".heads button").first.click()
        expect(page.get_by_role("heading", name="Layer 1, head 0")).to_be_visible()
        expect(page).to_have_url(re.compile("layer=1"))
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        csv = save_figure(page, "Layer 1, head 0", "CSV", tmp_path).read_text("utf-8")
        assert len(csv.splitlines()) >= tokens
        png = save_figure(page, "Layer 1, head 0", "PNG", tmp_path).read_bytes()
        assert png.startswith(b"\x89PNG")
        assert visit.troubles == []


def test_a_sheet_can_be_about_a_model_that_is_chosen(
    browser: Browser, models_server: Running
) -> None:
    with visiting(browser, f"{models_server.address}#/claims") as visit:
        page = visit.page
        page.get_by_label("Model", exact=True).select_option(label="the model reader")
        sheet = page.get_by_label("Claim sheet, in TOML")
        expect(sheet).to_have_value(re.compile("About this model"))
        expect(page.locator("article.proved", has_text="add up to 1")).to_have_count(
            1, timeout=120_000
        )
        assert "about=" in page.url
        page.get_by_label("Model", exact=True).select_option(label="attention itself")
        expect(sheet).to_have_value(re.compile("My answers"))
        assert visit.troubles == []
