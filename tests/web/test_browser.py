"""The page in a real browser: what a visitor does, and what must never happen meanwhile."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from browsing import (
    PHONE,
    accessibility_problems,
    drag,
    middle,
    save_figure,
    still,
    visiting,
)
from golden_numbers import FILE
from page_server import Running
from playwright.sync_api import Browser, Page, expect

from heedful.web import BuiltPage

VIEWS = ("attention", "claims", "positions", "models")
TOUR = ("[role=dialog]", ".toured", "header")
"""What the tour adds to a view, or changes there."""


def settled(page: Page) -> None:
    """Wait until the exact figures of view 1 are there."""
    expect(page.locator("[data-failure]").first).to_be_visible()
    expect(page.locator(".failure.stale")).to_have_count(0)


def test_the_mathematics_of_the_page_is_that_of_python(browser: Browser, server: Running) -> None:
    golden = json.loads(FILE.read_text("utf-8"))
    script = next(name for name in BuiltPage.find().assets if name.startswith("mathematics-"))
    with visiting(browser, server.address) as visit:
        found = visit.page.evaluate(
            """async ([script, golden]) => {
                const m = await import(`/assets/${script}`)
                const cases = golden.cases.map((one) => {
                    const keys = m.matrix(one.keys)
                    const reading = m.read(keys, one.values, one.queries, one.scale)
                    const noisy = m.noisyOutputs(
                        keys, one.values, one.queries, one.scale, one.noise,
                        Float64Array.from(one.normals))
                    return {
                        heads: reading.heads.map((row) => [...row]), weights: [...reading.weights],
                        output: reading.output, entropy: reading.entropy,
                        noisy_outputs: [...noisy], projected: m.project(keys, one.plane),
                        moved: m.movedTo(one.keys[0], [0.3, -0.2], one.plane),
                        ellipse: m.ellipse(one.covariance),
                    }
                })
                return {cases, hulls: golden.hulls.map((one) => m.hull(one.points))}
            }""",
            [script, golden],
        )
    for number, (case, mine) in enumerate(zip(golden["cases"], found["cases"], strict=True)):
        for name, expected in case["expected"].items():
            one, other = (
                [list(value.values()) if isinstance(value, dict) else value]
                for value in (expected, mine[name])
            )
            np.testing.assert_allclose(
                one, other, rtol=1e-9, atol=1e-12, err_msg=f"case {number}: {name}"
            )
    for one, corners in zip(golden["hulls"], found["hulls"], strict=True):
        assert sorted(corners) == one["corners"]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_a_view_opens_without_trouble_and_axe_finds_nothing_serious(
    browser: Browser, server: Running, view: str, colours: str
) -> None:
    size = PHONE if colours == "dark" else (1280, 900)
    with visiting(browser, f"{server.address}#/{view}", size=size, colours=colours) as visit:
        page = visit.page
        expect(page.get_by_role("heading", level=1)).to_have_text(view.capitalize())
        page.wait_for_load_state("networkidle")
        assert "token" not in page.url
        assert visit.troubles == []
        assert visit.hosts == {server.access.hosts[0]}
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        ink, paper = page.evaluate(
            "(() => {const s = getComputedStyle(document.documentElement);"
            "return [s.color, s.backgroundColor].map((c) => c.match(/[0-9.]+/g).map(Number)"
            ".slice(0, 3).reduce((a, b) => a + b))})()"
        )
        assert (ink > paper) == (colours == "dark")
        open_everything(page)
        assert accessibility_problems(page) == []
        page.get_by_role("button", name="Tour", exact=True).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        # Everything else was looked at already; all of it together, once in each colour.
        assert accessibility_problems(page, of=() if view == "models" else TOUR) == []
        assert visit.troubles == []


@pytest.mark.long
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing_serious_in_any_row_of_the_numbers(
    browser: Browser, server: Running, view: str, colours: str
) -> None:
    size = PHONE if colours == "dark" else (1280, 900)
    with visiting(browser, f"{server.address}#/{view}", size=size, colours=colours) as visit:
        visit.page.wait_for_load_state("networkidle")
        open_everything(visit.page)
        assert accessibility_problems(visit.page, every_row=True) == []


def open_everything(page: Page) -> None:
    """Unfold what is folded: menus, fields, numbers."""
    page.evaluate(
        """() => {
            document.querySelectorAll('main details').forEach((one) => (one.open = true))
            document.querySelectorAll('main .counted').forEach((one) => one.click())
        }"""
    )


def test_the_tour_is_taken_with_the_keyboard_left_and_resumed(
    browser: Browser, server: Running
) -> None:
    with visiting(browser, server.address) as visit:
        page = visit.page
        button, box = page.get_by_role("button", name="Tour"), page.get_by_role("dialog")
        button.focus()
        page.keyboard.press("Enter")
        seen = []
        for step in range(1, 9):
            expect(box).to_contain_text(f"Step {step} of 8")
            title = box.get_by_role("heading")
            expect(title).to_be_focused()
            seen.append(title.inner_text())
            expect(page.locator(".toured")).to_have_count(1)  # what the step is about is marked
            expect(page.locator(".toured")).to_be_in_viewport()
            if step == 3:
                page.keyboard.press("Escape")
                expect(box).to_have_count(0)
                page.reload()
                again = page.get_by_role("button", name="Tour: on with step 3")
                again.focus()
                page.keyboard.press("Enter")
                expect(box).to_contain_text("Step 3 of 8")
            if step < 8:
                box.get_by_role("button", name="Next").focus()
                page.keyboard.press("Enter")
        assert len(set(seen)) == 8
        expect(page.get_by_role("heading", level=1)).to_have_text("Claims")
        box.get_by_role("button", name="Back").press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Positions")
        box.get_by_label("Step of the tour").select_option("7")
        box.get_by_role("button", name="End the tour").press("Enter")
        expect(button).to_have_text("Tour")
        expect(button).to_be_focused()
        assert visit.troubles == []


def test_dragging_the_query_moves_weights_and_output(browser: Browser, server: Running) -> None:
    with visiting(browser, f"{server.address}#/attention?keys=circle&n=8&beta=20") as visit:
        page = visit.page
        settled(page)
        before = page.locator(".output path").get_attribute("d")
        start = middle(page, "[data-query='0'] .handle")
        x, y = middle(page, "[aria-label^='key 4']")
        drag(page, start, [(x + (start[0] - x) * k / 10, y + (start[1] - y) * k / 10 - 40 * (k > 2))
                           for k in range(10, -1, -1)])  # fmt: skip
        expect(page.locator("[aria-label^='key 4']")).to_have_attribute(
            "aria-label", re.compile(r"weight (9\d|100)")
        )
        assert page.locator(".output path").get_attribute("d") != before
        expect(page).to_have_url(re.compile("[?&]q=-"))
        assert visit.troubles == []


def test_what_is_typed_is_shown_and_a_link_restores_it(browser: Browser, server: Running) -> None:
    state = "#/attention?rows=1,0;0,1;-1,-0.5;0.1,0.1&beta=7&q=0.2,0.9&of=3&noisy=1&variance=0.3"
    with visiting(browser, server.address + state) as visit:
        page = visit.page
        settled(page)
        keys = page.locator("[aria-label^='key ']")
        expect(keys).to_have_count(4)
        expect(page.locator("[aria-label^='key 3']")).to_have_attribute("aria-pressed", "true")
        page.get_by_text("Type keys, values and the query").click()
        field, query = page.get_by_label("Keys, a row each"), page.get_by_label("Queries, a row")
        expect(field).to_have_value("1 0\n0 1\n-1 -0.5\n0.1 0.1")
        field.fill("1 0\n0 1\n(-1, -0.5)\n[0.1, 0.1]\n2 x")
        said = page.get_by_role("alert").filter(has_text="Line 5: “x” is no number.")
        expect(said).to_be_visible()
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(keys).to_have_count(4)  # as long as it is not whole, nothing changes
        field.fill("1 0\n0 1\n(-1, -0.5)\n[0.1, 0.1]\n2 2")
        expect(said).to_have_count(0)
        expect(keys).to_have_count(5)
        query.fill("0 6")
        expect(page.get_by_label("β, the length of the query, typed")).to_have_value("6")
        values = page.get_by_label("Values, a point of the plane each")
        values.fill("0 0\n3 3\n0 0\n0 0")
        expect(page.get_by_role("alert")).to_have_text(re.compile("4 lines; 5 are needed"))
        values.fill("0 0\n3 3\n0 0\n0 0\n0 0")
        query.focus()
        # α of keys (0, 1) and (2, 2) at q = (0, 6), worked out by hand: c = α₁ (3, 3).
        share = np.exp(6) / (1 + np.exp(6) + np.exp(-3) + np.exp(0.6) + np.exp(12))
        output = page.locator("dt", has_text="output c").locator("xpath=../dd")
        expect(output).to_have_text(f"{3 * share:.3g}, {3 * share:.3g}")
        settled(page)
        page.wait_for_timeout(400)
        with visiting(browser, server.address + page.evaluate("location.hash")) as again:
            settled(again.page)
            for selector in (".output path", "[data-query='0'] .handle"):
                one, other = (
                    each.locator(selector).evaluate("(node) => node.outerHTML")
                    for each in (page, again.page)
                )
                assert one == other
        query.fill("1 2 3")
        expect(page.get_by_role("alert")).to_have_text(
            "Line 1 has 3 numbers; each query here has 2."
        )
        query.fill("0 401")
        expect(page.get_by_role("alert")).to_have_text(re.compile("at most 400"))
        assert visit.troubles == []


def test_arrow_keys_move_what_has_the_focus(browser: Browser, server: Running) -> None:
    with visiting(browser, f"{server.address}#/attention") as visit:
        page = visit.page
        settled(page)
        handle = page.locator("[data-query='0']")
        before = handle.get_attribute("aria-valuetext")
        handle.focus()
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Shift+ArrowLeft")
        assert handle.get_attribute("aria-valuetext") != before
        key = page.locator("[aria-label^='key 5']")
        key.focus()
        page.keyboard.press("Enter")
        expect(key).to_have_attribute("aria-pressed", "true")


def test_an_impossible_copy_shows_its_certificate(browser: Browser, server: Running) -> None:
    rows = "#/attention?rows=2,0;0,2;-2,-1;0.1,0.2&of=3&noisy=-1"
    with visiting(browser, server.address + rows) as visit:
        page = visit.page
        still(page)  # the page takes its lists from the server, and is drawn again when they come
        page.get_by_role("button", name="Copy this").click()
        expect(page.get_by_text("Impossible.")).to_be_visible()
        expect(page.locator(".share")).to_have_count(3)
        expect(page.locator(".hull.shown")).to_be_visible()
        page.locator("[aria-label^='key 3']").press("Enter")
        page.locator("[aria-label^='key 0']").press("Enter")
        page.get_by_role("button", name="Copy this").click()
        expect(page.get_by_text("Possible.", exact=True)).to_be_visible()


def test_a_refuted_claim_is_drawn_and_repaired(browser: Browser, server: Running) -> None:
    with visiting(browser, f"{server.address}#/claims") as visit:
        page = visit.page
        expect(page.locator("article.refuted")).to_have_count(1)
        page.get_by_role("button", name="Draw the counterexample").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Attention")
        expect(page.locator("[aria-label^='key ']")).to_have_count(10)
        page.go_back()
        page.get_by_role("button", name="Apply the repair").click()
        expect(page.locator("article.refuted")).to_have_count(0)
        expect(page.locator("article.proved")).to_have_count(2)
        assert "5.98" in page.get_by_label("Claim sheet, in TOML").input_value()
        page.get_by_label("Claim sheet, in TOML").fill('[[claim]]\nid = "x"\nexpect = "1 = = 1"\n')
        expect(page.locator(".trouble")).to_contain_text("line 3")
        assert visit.troubles == []


def test_a_figure_is_saved(browser: Browser, server: Running, tmp_path: Path) -> None:
    with visiting(browser, f"{server.address}#/attention") as visit:
        page = visit.page
        settled(page)
        saved = {}
        for kind in ("SVG", "PNG", "JSON", "CSV"):
            file = save_figure(page, "Keys, values and the query", kind, tmp_path)
            assert file.name == f"attention-plane.{kind.lower()}"
            saved[kind] = file.read_bytes()
        assert saved["SVG"].startswith(b"<svg")
        assert b'class="' not in saved["SVG"]
        assert b"var(" not in saved["SVG"]
        assert saved["PNG"].startswith(b"\x89PNG")
        assert len(json.loads(saved["JSON"])["weights"]) == 8
        assert saved["CSV"].decode().count("\r\n") == 9
        assert visit.troubles == []


def test_a_page_without_the_token_is_refused(browser: Browser, server: Running) -> None:
    with visiting(browser, f"http://{server.access.hosts[0]}/") as visit:
        assert "needs its key" in visit.page.content()
