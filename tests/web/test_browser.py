"""The page in a real browser: what a visitor does, and what must never happen meanwhile."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

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
def test_a_view_opens_at_both_widths_without_trouble(
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


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_no_serious_problem(
    browser: Browser, server: Running, view: str, colours: str
) -> None:
    with visiting(browser, f"{server.address}#/{view}", colours=colours) as visit:
        visit.page.wait_for_load_state("networkidle")
        assert accessibility_problems(visit.page) == []


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


def test_a_link_restores_the_view(browser: Browser, server: Running) -> None:
    state = "#/attention?rows=1,0;0,1;-1,-0.5;0.1,0.1&beta=7&q=0.2,0.9&of=3&noisy=1&variance=0.3"
    with visiting(browser, server.address + state) as visit:
        page = visit.page
        settled(page)
        expect(page.locator("[aria-label^='key ']")).to_have_count(4)
        expect(page.locator("[aria-label^='key 3']")).to_have_attribute("aria-pressed", "true")
        page.wait_for_timeout(400)
        with visiting(browser, server.address + page.evaluate("location.hash")) as again:
            settled(again.page)
            for selector in (".output path", "[data-query='0'] .handle"):
                one, other = (
                    each.locator(selector).evaluate("(node) => node.outerHTML")
                    for each in (page, again.page)
                )
                assert one == other


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


@pytest.mark.parametrize("kind", ["SVG", "PNG", "JSON", "CSV"])
def test_a_figure_is_saved(browser: Browser, server: Running, tmp_path: Path, kind: str) -> None:
    with visiting(browser, f"{server.address}#/attention") as visit:
        page = visit.page
        settled(page)
        file = save_figure(page, "Keys, values and the query", kind, tmp_path)
        assert file.name == f"attention-plane.{kind.lower()}"
        content: Any = file.read_bytes()
        if kind == "SVG":
            assert content.startswith(b"<svg")
            assert b'class="' not in content
            assert b"var(" not in content
        elif kind == "PNG":
            assert content.startswith(b"\x89PNG")
        elif kind == "JSON":
            assert len(json.loads(content)["weights"]) == 8
        else:
            assert content.decode().count("\r\n") == 9
        assert visit.troubles == []


def test_a_page_without_the_token_is_refused(browser: Browser, server: Running) -> None:
    with visiting(browser, f"http://{server.access.hosts[0]}/") as visit:
        assert "needs its key" in visit.page.content()
