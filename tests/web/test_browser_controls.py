"""Sliders, colours, saving and links of the views that need no model; frames of a drag."""

from __future__ import annotations

import csv
import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from browsing import PHONE, frames_of_a_drag, save_figure, still, visiting
from page_server import Running
from playwright.sync_api import Browser, Page, expect

from heedful.positions import sinusoidal

KEYS = "[aria-label^='key ']"


def weights(page: Page) -> list[str]:
    return [str(one.get_attribute("aria-label")) for one in page.locator(KEYS).all()]


def slide(page: Page, label: str, value: float) -> None:
    """Move a slider to a place on its own scale."""
    page.get_by_label(label, exact=True).fill(str(value))


def typed(page: Page, label: str, text: str) -> None:
    """Type a number beside a slider."""
    page.get_by_label(f"{label}, typed", exact=True).fill(text)


def overlaps(page: Page, selector: str) -> list[list[str]]:
    """Return the texts among these that cover one another."""
    found: list[list[str]] = page.evaluate(
        """(selector) => {
            const all = [...document.querySelectorAll(selector)].map((one) => {
                const { left, right, top, bottom } = one.getBoundingClientRect()
                return { text: one.textContent, left, right, top, bottom }
            })
            return all.flatMap((a, i) => all.slice(i + 1).filter((b) => a.left < b.right
                && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom)
                .map((b) => [a.text, b.text]))
        }""",
        selector,
    )
    return found


def settled(page: Page) -> None:
    expect(page.locator("[data-failure]").first).to_be_visible()
    expect(page.locator(".failure.stale")).to_have_count(0)


def test_every_slider_of_the_attention_view_moves_what_it_names(
    browser: Browser, server: Running
) -> None:
    with visiting(browser, f"{server.address}#/attention?keys=circle&n=8&beta=2") as visit:
        page = visit.page
        settled(page)
        before = weights(page)
        slide(page, "β, the length of the query", 390)
        expect(page.locator(KEYS).first).not_to_have_attribute("aria-label", before[0])
        slide(page, "number of keys", 12)
        expect(page.locator(KEYS)).to_have_count(12)
        settled(page)
        quiet = page.locator("[data-failure='0']").inner_text()
        slide(page, "noise along one key, v", 0.02)
        expect(page.locator("[data-failure='0']")).not_to_have_text(quiet)
        slide(page, "noise in every direction, σ²", 0.1)
        expect(page.get_by_text("4,000 draws").first).to_be_visible()
        slide(page, "radius ε of a success", 1)
        expect(page.get_by_text("farther than ε = 1 from").first).to_be_visible()
        slide(page, "heads", 3)
        expect(page.locator("[data-query]")).to_have_count(3)
        expect(page.get_by_role("heading", name="3 heads")).to_be_visible()
        slide(page, "dimensions d", 5)
        expect(page.get_by_text("5 dimensions, seen in a plane")).to_be_visible()
        slide(page, "β, the length of the query", 150)
        unscaled = weights(page)
        page.get_by_label("scale s").select_option("sqrt_d")
        expect(page.locator(KEYS).first).not_to_have_attribute("aria-label", unscaled[0])
        expect(page).to_have_url(re.compile("n=12.*d=5.*scale=sqrt_d.*isotropic=0.1"))
        assert visit.troubles == []


def test_numbers_are_typed_beside_sliders_and_errors_stand_beside_them(
    browser: Browser, server: Running
) -> None:
    with visiting(browser, f"{server.address}#/attention?beta=30", size=PHONE) as visit:
        page = visit.page
        settled(page)
        sliders = page.locator("input[type=range]")
        for one in sliders.all():  # every slider has its field
            label = page.locator(f"label[for='{one.get_attribute('id')}']").inner_text()
            expect(page.get_by_label(f"{label}, typed", exact=True)).to_be_visible()
        slide(page, "β, the length of the query", 211)
        expect(page.get_by_label("β, the length of the query, typed")).to_have_value("8")
        typed(page, "β, the length of the query", "0.75")
        expect(page).to_have_url(re.compile("beta=0.75"))
        typed(page, "number of keys", "64")
        expect(page.locator(KEYS)).to_have_count(64)
        settled(page)
        assert overlaps(page, ".keyname") == []
        assert overlaps(page, "svg[aria-label^='Attention weights'] text") == []
        problem = page.get_by_role("alert")
        for text, said in (
            ("65", "65 is too large; type a whole number from 2 to 64."),
            ("3.5", "3.5 is not whole; type a whole number from 2 to 64."),
            ("1,000", "can be read in two ways"),
            ("many", "“many” is no number"),
        ):
            typed(page, "number of keys", text)
            expect(problem).to_contain_text(said)
            expect(problem).to_be_in_viewport()
        expect(page.locator(KEYS)).to_have_count(64)
        slide(page, "number of keys", 9)  # what is moved replaces what was typed
        expect(problem).to_have_count(0)
        expect(page.get_by_label("number of keys, typed")).to_have_value("9")
        within = page.get_by_label("within", exact=True)
        within.fill("")
        expect(problem).to_contain_text("Nothing is typed here; type a number from 0.000001 to 0.5")
        expect(problem).to_be_in_viewport()
        within.fill("0.2")
        expect(page).to_have_url(re.compile("tolerance=0.2"))
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        page.goto(f"{server.address}#/positions")
        slide(page, "base b", 260)
        expect(page.get_by_label("base b, typed")).to_have_value("10000")
        expect(page.get_by_role("heading", name="What it promises")).to_be_visible()
        typed(page, "width d", "7")  # what only the server knows is said there as well
        expect(problem).to_contain_text("is 7, which is odd")
        expect(problem).to_be_in_viewport()
        page.get_by_label("First sentence").click()
        page.get_by_label("First sentence").fill("")
        expect(problem.last).to_contain_text("has 0 words")
        expect(problem.last).to_be_in_viewport()
        assert [one for one in visit.troubles if "422" not in one] == []


def test_a_query_is_designed_to_average_and_to_be_robust(browser: Browser, server: Running) -> None:
    with visiting(browser, f"{server.address}#/attention?keys=circle&n=8&of=0,1&noisy=0") as visit:
        page = visit.page
        settled(page)
        page.get_by_role("button", name="Average these").click()
        expect(page.get_by_text("Possible.", exact=True)).to_be_visible()
        mass = page.locator("dt", has_text="mass on chosen").locator("xpath=../dd")
        expect(mass).to_have_text(re.compile(r"0\.99"))
        page.get_by_role("button", name="Make robust").click()
        expect(page.locator("[data-query]")).to_have_count(2)
        expect(page.locator(".result")).to_contain_text("head")
        assert visit.troubles == []


def test_colours_can_be_chosen_and_stay(browser: Browser, server: Running) -> None:
    with visiting(browser, f"{server.address}#/positions") as visit:
        page = visit.page
        map_of = page.get_by_label("Heat map of the embedding of each position").locator("image")
        light = map_of.first.get_attribute("href")
        page.get_by_title("dark colours").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        expect(page.locator("html")).to_have_css("background-color", "rgb(21, 24, 30)")
        expect(map_of.first).not_to_have_attribute("href", str(light))
        page.reload()
        expect(page.locator("html")).to_have_css("background-color", "rgb(21, 24, 30)")
        page.get_by_title("light colours").click()
        expect(map_of.first).to_have_attribute("href", str(light))
        assert visit.troubles == []


def test_the_heat_map_of_positions_tells_the_numbers_of_python(
    browser: Browser, server: Running
) -> None:
    with visiting(browser, f"{server.address}#/positions?length=16&width=8&base=100") as visit:
        page = visit.page
        picture = page.get_by_label("Heat map of the embedding of each position")
        expect(picture).to_be_visible()
        box = picture.locator("rect.frame").bounding_box()
        assert box is not None
        table = np.asarray(sinusoidal(16, 8, base=100.0))
        for row, column in ((0, 1), (3, 2), (15, 7)):
            page.mouse.move(
                box["x"] + box["width"] * (column + 0.5) / 8,
                box["y"] + box["height"] * (row + 0.5) / 16,
            )
            said = page.locator(".readout", has_text=f"position {row}, dimension {column}:")
            expect(said).to_be_visible()
            found = float(said.locator("strong").inner_text().replace("−", "-"))
            assert found == pytest.approx(table[row, column], abs=6e-5)
        slide(page, "length", 64)
        expect(page).to_have_url(re.compile("length=64"))


LEGENDS = {
    "Keys, values and the query": ("key", "output c", "chosen key", "c"),
    "Weights α": ("weight α of each key",),
    "Distance against gap": ("‖Φₛ − Φₜ‖",),
}
"""What stands below a saved picture; c is in the drawing, before everything else."""


def number(text: str) -> float:
    """Read a number as the page or a file has it; a word counts as none."""
    plain = text.replace("−", "-").replace(",", "")
    mantissa, times, power = plain.partition("·10")
    raised = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    try:
        return float(f"{mantissa}e{power.translate(raised)}" if times else mantissa)
    except ValueError:
        return 0.0


@pytest.mark.parametrize("view", ["attention", "positions"])
def test_every_figure_is_saved_as_a_picture_and_as_data(
    browser: Browser, server: Running, tmp_path: Path, view: str
) -> None:
    with visiting(browser, f"{server.address}#/{view}") as visit:
        page = visit.page
        page.wait_for_load_state("networkidle")
        still(page)  # a figure that is drawn again closes its menu
        menus = page.locator("figure summary")
        titles = [
            str(one.get_attribute("aria-label")).removeprefix("Save “").removesuffix("”")
            for one in menus.all()
        ]
        assert len(titles) >= 4
        for title in titles:
            svg = save_figure(page, title, "SVG", tmp_path).read_text("utf-8")
            assert svg.startswith("<svg")
            assert "var(" not in svg
            texts = re.findall(r"<text[^>]*>([^<]*)<", svg)
            assert title in texts  # a picture that leaves the page says what it is,
            assert " · " in "".join(texts) or view == "positions"  # with its settings
            for mark in LEGENDS.get(title, ()):
                assert mark in texts
            data = save_figure(page, title, "CSV", tmp_path).read_text("utf-8")
            names, *rows = csv.reader(io.StringIO(data, newline=""))
            assert len(rows) > 1
            page.get_by_label(f"Numbers of “{title}”", exact=True).click()
            table = page.get_by_label(f"Numbers of “{title}”, as a table")
            shown = table.locator("tbody tr").last.locator("th, td").all_inner_texts()
            last = rows[min(len(rows), 200) - 1]
            assert len(shown) == min(len(names), 24)
            assert [number(one) for one in shown] == pytest.approx(
                [number(one) for one in last[: len(shown)]], rel=1e-4
            )
        png = save_figure(page, titles[-1], "PNG", tmp_path).read_bytes()
        assert png.startswith(b"\x89PNG")
        assert visit.troubles == []


@pytest.mark.parametrize(
    ("state", "seen"),
    [
        ("claims?tab=catalog&search=softmax&only=refuted", "input[type=search]"),
        ("claims?tab=seeds", "[aria-selected=true]:has-text('Side by side')"),
        ("positions?kind=alibi&length=40&width=16&base=10000", "[aria-label='Slope of each head']"),
        (
            "positions?kind=none&first=a+b&second=b+a&positions=no&mask=yes",
            "[aria-label='First sentence']",
        ),
    ],
)
def test_a_link_restores_the_other_views(
    browser: Browser, server: Running, state: str, seen: str
) -> None:
    with visiting(browser, f"{server.address}#/{state}") as visit:
        page = visit.page
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(300)  # the address is written a moment later
        wanted = set(state.split("?")[1].split("&"))
        assert wanted <= set(page.evaluate("location.hash").split("?")[1].split("&"))
        expect(page.locator(seen).first).to_be_visible()
        assert visit.troubles == []


def test_a_drag_with_64_keys_is_drawn_frame_by_frame(browser: Browser, server: Running) -> None:
    state = "#/attention?keys=circle&n=64&beta=30&noisy=0&variance=0.5"
    with visiting(browser, server.address + state) as visit:
        settled(visit.page)
        frames = frames_of_a_drag(visit.page, 1.0)
        print(f"p95 {np.percentile(frames, 95):.1f} ms of {len(frames)} frames")
        assert len(frames) > 5  # how fast they come is measured by benchmarks/bench_page.py
        assert visit.troubles == []


@contextmanager
def stranger(folder: Path) -> Iterator[str]:
    """Serve another page on this machine: browsers send it the same cookies, port or no port."""
    (folder / "index.html").write_text("<title>elsewhere</title>", "utf-8")
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{other.server_port}/index.html"
        other.shutdown()


def test_another_page_in_the_same_browser_is_refused(
    browser: Browser, server: Running, tmp_path: Path
) -> None:
    host = server.access.hosts[0]
    with visiting(browser, server.address) as visit, stranger(tmp_path) as elsewhere:
        page = visit.page.context.new_page()
        page.goto(elsewhere)
        read = page.evaluate(
            "(host) => fetch(`http://${host}/api/about`, {method: 'POST', credentials: 'include',"
            " body: '{}'}).then(() => 'read', () => 'refused')",
            host,
        )
        assert read == "refused"
        ended = page.evaluate(
            "(host) => new Promise((tell) => {"
            " const live = new WebSocket(`ws://${host}/api/claims/live`);"
            " live.onopen = () => tell('open'); live.onclose = () => tell('refused') })",
            host,
        )
        assert ended == "refused"
        with page.expect_navigation() as waiting:  # a form may be sent anywhere
            page.evaluate(
                "(host) => { const form = document.createElement('form'); form.method = 'POST';"
                " form.action = `http://${host}/api/about`; document.body.append(form);"
                " form.submit() }",
                host,
            )
        assert waiting.value is not None
        assert waiting.value.status == 403
