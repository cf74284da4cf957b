"""The Models view in a real browser: a curve that grows while a training runs, heat maps, and every
control."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from browsing import PHONE, accessibility_problems, drag, save_figure, still, visiting
from page_server import Running, running
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
            # Held, it is still a run that goes on; and it no longer draws a figure anew, which
            # closes its menu, nor takes a core from the browser.
            training.send_signal(signal.SIGSTOP)
            svg = save_figure(page, "Training of endless", "SVG", tmp_path).read_text("utf-8")
            assert "<path" in svg
            assert visit.troubles == []
    finally:
        training.kill()  # what a signal makes it keep is thrown away here
        training.wait(timeout=150)
        shutil.rmtree(folder, ignore_errors=True)  # other tests count the runs


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
        box, pieces = page.get_by_label("Sentence", exact=True), page.get_by_label("Tokens")
        for text in ("a cat", "the cat sat on the mat", "cats", "a mat"):  # one after another
            box.fill(text)
            expect(pieces.locator("span")).to_have_count(len(text))
            page.wait_for_timeout(200)
        assert visit.troubles == []
        box.fill("the mat " * 40)  # more than the model reads: said beside the sentence
        said = page.get_by_role("alert").filter(has_text="320")
        expect(said.first).to_be_in_viewport()


def test_axe_finds_no_serious_problem_where_a_model_reads(
    browser: Browser, models_server: Running, reader: Path
) -> None:
    state = f"#/models?model={id_of(reader)}&text=the+cat+sat&layer=1&head=1"
    with visiting(browser, models_server.address + state) as visit:
        expect(visit.page.get_by_label("Attention weights of one head")).to_be_visible()
        assert accessibility_problems(visit.page) == []


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


CONTROLS = {
    "a run": ".runs button.name",
    "an order of the runs": ".runs .sort",
    "words of a run": "input[aria-label='Find a run']",
    "the state of a run": "select[aria-label='State of the runs']",
    "a second run": "select[aria-label='Compare with']",
    "what differs": ".differences",
    "the numbers of a figure": "figure .counted",
    "these numbers": ".numbers[role=region]",
    "a curve of the chart": ".u-legend .u-series",
    "the chart": ".u-over",
    "the menu of a figure": "figure summary",
    "a way to save": "figure .menu button",
    "the model": "select[aria-label='Model']",
    "the sentence": "input[aria-label='Sentence']",
    "beams": "select[aria-label='Beams']",
    "a translation": "[aria-label='Translations, best first'] button",
    "a token of the translation": "[aria-label='Tokens of the translation'] button",
    "the method of attribution": "select[aria-label='Method of attribution']",
    "what heads are watched on": "[aria-label='Watch the heads on'] button",
    "heads of one name": "[aria-label='Show only heads that read'] button",
    "a head of the table": "[aria-label='Heads, sorted by what they do'] button",
    "taking away by click": ".row.between > button[aria-pressed]",
    "all heads": "[role='application']",
    "heads taken away": "[aria-label='What is taken away'] button",
    "the layer": "label select:not([aria-label])",
    "a head of the layer": ".heads button",
    "a next token": ".candidate button",
    "chosen tokens": ".row.small > button.small",
    "matrix or arcs": "[aria-label='Shown as'] button",
    "the second sentence": "input[aria-label='Second sentence']",
    "who is asked": "select[aria-label='Who is asked']",
    "the question": "input[aria-label='Question']",
}
"""Everything on the view that can be used, and how it is found."""
NOTE_USE = """(controls) => {
    window.used = new Set()
    for (const kind of ['click', 'change', 'input', 'keydown'])
        document.addEventListener(kind, (event) => {
            for (const [name, found] of Object.entries(controls))
                if (event.target.closest(found)) window.used.add(name)
        }, true)
}"""
UNKNOWN = """(controls) => [...document.querySelector('main').querySelectorAll(
    'button, select, input, textarea, summary, a[href], [tabindex], .u-series, .u-over'
)].filter((one) => !controls.some((found) => one.matches(found))).map((one) => one.outerHTML)"""


def test_every_control_of_the_view_is_used(
    browser: Browser, runs: Path, reader: Path, tmp_path: Path
) -> None:
    copied = tmp_path / "runs"
    shutil.copytree(runs, copied)
    (people,) = (file.parent for file in copied.glob("*/ask.json"))
    shutil.copytree(people, copied / "more-people")  # with two that can be asked there is a choice
    settings = json.loads((people / "ask.json").read_text("utf-8")) | {"threshold": 0.0}
    (copied / "more-people" / "ask.json").write_text(json.dumps(settings), "utf-8")
    shutil.copytree(copied / "pairs", copied / "half")
    (copied / "half" / "result.json").unlink()
    translator, asked = id_of(copied / "pairs" / "model"), id_of(copied / "more-people")
    with running(runs=copied, models=(reader,)) as server:
        state = f"#/models?model={translator}&text=Je+suis+ici.&layer=1&head=1"
        with visiting(browser, server.address + state) as visit:
            page = visit.page
            expect(page.get_by_role("application")).to_be_visible()
            page.evaluate(NOTE_USE, CONTROLS)
            _choose_a_run(page, people.name.rpartition("-")[0])
            _compare_runs(page)
            _translate(page)
            _watch_heads(page)
            _take_heads_away(page)
            _look_at_one_head(page)
            assert page.evaluate(UNKNOWN, list(CONTROLS.values())) == []
            _save_every_figure(page, tmp_path)
            _go_on_with_tokens(page, id_of(reader))
            assert page.evaluate(UNKNOWN, list(CONTROLS.values())) == []
            page.get_by_label("Who is asked").select_option(asked)
            page.get_by_label("Question").fill("Where was Nobody Atall born?")
            expect(page.locator("[data-answer]")).to_have_text(re.compile(r"\S"))
            expect(page).to_have_url(re.compile(f"asker={asked}&question=Where"))
            # It answers always; about somebody invented, that is no success.
            expect(page.locator("[data-warning]")).to_contain_text("Nobody called Nobody Atall")
            expect(page.locator(".bar.alone")).to_have_count(1)
            expect(page.locator(".bar.enough")).to_have_count(0)
            assert set(CONTROLS) == set(page.evaluate("() => [...window.used]"))
            page.reload()  # the address knows everything that was chosen
            for label, value in (
                ("Question", "Where was Nobody Atall born?"),
                ("Who is asked", asked),
                ("Model", id_of(reader)),
                ("Sentence", "Tu es ici."),
                ("Second sentence", "Je suis ici."),
            ):
                expect(page.get_by_label(label, exact=True)).to_have_value(value)
            assert visit.troubles == []
            assert visit.hosts == {server.access.hosts[0]}


def _choose_a_run(page: Page, name: str) -> None:
    page.locator(".runs").get_by_role("button", name=name, exact=True).click()
    expect(page.get_by_role("heading", name=f"Training of {name}")).to_be_visible()
    series = page.locator(".u-legend .u-series", has_text="loss").first
    series.locator("th").click()
    expect(series).to_have_class(re.compile("u-off"))
    series.locator("th").click()
    expect(series).not_to_have_class(re.compile("u-off"))
    whole = page.locator(".chart canvas").evaluate("(canvas) => canvas.toDataURL()")
    box = page.locator(".u-over").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    drag(page, (box["x"] + 40, middle), [(box["x"] + box["width"] / 2, middle)])
    same = "(p) => (document.querySelector('.chart canvas').toDataURL() === p.whole) === p.same"
    page.wait_for_function(same, arg={"whole": whole, "same": False})  # some of the steps
    page.locator(".u-over").dblclick()
    page.wait_for_function(same, arg={"whole": whole, "same": True})


def _compare_runs(page: Page) -> None:
    names = page.locator(CONTROLS["a run"])
    expect(names).to_have_text(["half", "more-people", "pairs", "people"])
    page.get_by_label("Sort by loss").click()
    heading = page.locator("th", has=page.get_by_label("Sort by loss"))
    expect(heading).to_have_attribute("aria-sort", "ascending")
    losses = [float(one) for one in page.locator(".runs tbody td:nth-child(4)").all_inner_texts()]
    assert losses == sorted(losses)
    page.get_by_label("Sort by run").click()
    page.get_by_label("Sort by run").click()
    expect(names).to_have_text(["people", "pairs", "more-people", "half"])
    page.get_by_label("Find a run").fill("people")
    expect(names).to_have_text(["people", "more-people"])
    page.get_by_label("Find a run").fill("")
    page.get_by_label("State of the runs").select_option("stopped")
    expect(names).to_have_text(["half"])
    page.get_by_label("State of the runs").select_option("")
    page.get_by_label("Compare with").select_option(label="pairs")
    differences = page.get_by_label("Differences between two runs")
    expect(differences.locator("tr", has_text="steps")).not_to_have_count(0)
    expect(differences).to_contain_text("Results")
    differences.click()
    expect(page.locator(".u-legend")).to_contain_text("loss of pairs")
    expect(page.get_by_label("Training curve").locator("path.red")).to_have_attribute(
        "d", re.compile("L")
    )
    expect(page).to_have_url(re.compile("other="))
    assert accessibility_problems(page) == []
    page.get_by_label("Compare with").select_option("")
    expect(differences).to_have_count(0)


def _translate(page: Page) -> None:
    best = page.locator(CONTROLS["a translation"])
    page.get_by_label("Beams").select_option("3")
    expect(best).to_have_count(3)
    best.nth(1).click()
    expect(page).to_have_url(re.compile("beam=3&rank=1"))
    page.get_by_label("Sentence", exact=True).fill("Tu es ici.")
    expect(page.get_by_label("Tokens", exact=True)).to_contain_text("T")
    tokens = page.get_by_label("Tokens of the translation").locator("button")
    tokens.nth(1).click()
    expect(tokens.nth(1)).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_label("Alternatives at this place").locator("li")).not_to_have_count(0)
    page.get_by_label("Method of attribution").select_option("attention")
    expect(page.get_by_text("by attention: what the heads")).to_be_visible()
    expect(page).to_have_url(re.compile("method=attention"))


def _watch_heads(page: Page) -> None:
    rows = page.get_by_label("Heads, sorted by what they do").locator("tbody tr")
    heads = preset("tiny").layers * preset("tiny").attention.heads
    page.get_by_role("button", name="on this sentence").click()
    expect(page.get_by_text("show themselves on a sample only")).to_be_visible()
    page.get_by_role("button", name="on a sample").click()
    expect(page.get_by_text("random tokens written twice").last).to_be_visible()
    expect(rows).to_have_count(heads)
    page.get_by_label("Layer 0, head 1", exact=True).click()
    expect(page.get_by_role("heading", name="Layer 0, head 1", exact=True)).to_be_visible()
    label = page.get_by_label("Show only heads that read").locator("button").first
    many = int(label.locator(".number").inner_text())
    label.click()
    expect(rows).to_have_count(many)
    expect(page).to_have_url(re.compile("on=sample&does="))
    label.click()
    expect(rows).to_have_count(heads)
    page.get_by_role("button", name="on a sample").click()  # again: no longer
    expect(rows).to_have_count(0)


def _take_heads_away(page: Page) -> None:
    heads, said = page.get_by_role("application"), page.locator("p.readout[role=status]")
    heads.scroll_into_view_if_needed()
    box = heads.locator("canvas").bounding_box()
    assert box is not None

    def place(layer: int, head: int) -> tuple[float, float]:
        shape = preset("tiny").layers, preset("tiny").attention.heads
        across, down = (head + 0.5) / shape[1], (layer + 0.5) / shape[0]
        return box["x"] + box["width"] * across, box["y"] + box["height"] * down

    page.mouse.move(*place(1, 0))
    expect(said).to_have_text(re.compile("^layer 1, head 0"))
    page.mouse.click(*place(1, 0))
    expect(page.get_by_role("heading", name="Layer 1, head 0", exact=True)).to_be_visible()
    heads.press("ArrowUp")
    heads.press("ArrowRight")
    expect(page.get_by_role("heading", name="Layer 0, head 1", exact=True)).to_be_visible()
    heads.press("x")
    expect(page.locator("[data-effect]")).to_contain_text("→")
    expect(page).to_have_url(re.compile("without=0.1"))
    page.get_by_role("button", name="take heads away by click").click()
    page.mouse.click(*place(0, 0))
    expect(said).to_have_text(re.compile("^layer 0, head 0.*, taken away$"))
    without = page.get_by_label("Next token with and without these heads")
    expect(without.locator("tbody tr")).not_to_have_count(0)
    page.get_by_label("Bring back 0.0").click()
    expect(page).to_have_url(re.compile(r"without=0\.1(&|$)"))
    heads.press("Delete")  # a second time brings it back
    expect(page.locator("[data-effect]")).to_have_count(0)
    heads.press("ArrowLeft")
    heads.press("ArrowDown")
    heads.press("Delete")
    expect(page.get_by_label("Bring back 1.0")).to_be_visible()
    page.get_by_role("button", name="bring all back").click()
    expect(page.get_by_label("What is taken away")).to_contain_text("None.")
    page.get_by_role("button", name="take heads away by click").click()


def _look_at_one_head(page: Page) -> None:
    page.locator(CONTROLS["the layer"]).select_option("0")
    expect(page.get_by_role("heading", name="Heads of layer 0")).to_be_visible()
    page.locator(".heads button").nth(1).click()
    expect(page.get_by_role("heading", name="Layer 0, head 1", exact=True)).to_be_visible()
    page.get_by_label("Second sentence").fill("Je suis ici.")
    second = page.get_by_label("on the second sentence")
    expect(second).to_be_visible()
    page.get_by_role("button", name="arcs").click()
    arcs = page.get_by_label("as arcs")
    expect(arcs).to_have_count(2)  # both sentences
    arcs.first.hover()
    expect(page.locator(".readout", has_text=" reads ").first).to_contain_text("%")
    page.get_by_role("button", name="matrix").click()
    expect(second).to_be_visible()
    expect(page).to_have_url(re.compile("second=Je"))


def _save_every_figure(page: Page, folder: Path) -> None:
    still(page)  # a figure that is drawn again closes its menu
    labels = [one.get_attribute("aria-label") for one in page.locator("figure summary").all()]
    titles = [str(label).removeprefix("Save “").removesuffix("”") for label in labels]
    assert len(titles) == 4
    for title in titles:
        assert save_figure(page, title, "SVG", folder).read_text("utf-8").startswith("<svg")
        assert json.loads(save_figure(page, title, "JSON", folder).read_text("utf-8"))
        assert len(save_figure(page, title, "CSV", folder).read_text("utf-8").splitlines()) > 2
    assert save_figure(page, titles[-1], "PNG", folder).read_bytes().startswith(b"\x89PNG")
    page.get_by_label(f"Numbers of “{titles[0]}”", exact=True).click()
    page.locator(CONTROLS["these numbers"]).click()
    # What the pointer is told is what is saved. (Of a short sentence: its cells are large.)
    saved = (folder / "second-layer-0-head-1.csv").read_text("utf-8")
    _, *rows = csv.reader(io.StringIO(saved, newline=""))
    box = page.get_by_label("on the second sentence").locator("rect.frame")
    box.scroll_into_view_if_needed()
    frame = box.bounding_box()
    assert frame is not None
    for row in (3, 6, 9):
        column = max(range(row + 1), key=lambda key: float(rows[row][1 + key]))
        x, y = (column + 0.5) / len(rows), (row + 0.5) / len(rows)
        page.mouse.move(frame["x"] + frame["width"] * x, frame["y"] + frame["height"] * y)
        said = page.locator(".readout", has_text=f"query {rows[row][0].replace(' ', '␣')}, key")
        shown = float(said.first.locator("strong").inner_text().replace("−", "-"))
        assert shown == pytest.approx(float(rows[row][1 + column]), rel=1e-3, abs=1e-6)


def _go_on_with_tokens(page: Page, model: str) -> None:
    page.get_by_label("Model", exact=True).select_option(model)
    tokens = page.locator("[aria-label=Tokens] span")
    candidates = page.locator(".candidate button")
    expect(candidates).not_to_have_count(0)
    still(page)
    before = tokens.count()
    candidates.first.click()
    expect(page.get_by_text("1 token chosen")).to_be_visible()
    expect(tokens).to_have_count(before + 1)
    candidates.first.click()
    expect(page.get_by_text("2 tokens chosen")).to_be_visible()
    expect(tokens).to_have_count(before + 2)
    page.get_by_role("button", name="take back the last").click()
    expect(tokens).to_have_count(before + 1)
    page.get_by_role("button", name="start over").click()
    expect(tokens).to_have_count(before)
