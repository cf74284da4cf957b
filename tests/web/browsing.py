"""A real browser for tests: Chromium, driven by Playwright, told to stay at home."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tools
from playwright.sync_api import Browser, Page, expect, sync_playwright
from playwright.sync_api import TimeoutError as Late

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
)  # fmt: skip
expect.set_options(timeout=30_000)  # a busy machine is slow, and not wrong
WIDE, PHONE = (1280, 900), (390, 844)


@dataclass
class Visit:
    """A page that was opened, and everything that went wrong on it."""

    page: Page
    troubles: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser of this machine, or the one that `make test` brought."""
    place = tools.browser()
    if place is None:
        pytest.skip(tools.NO_BROWSER)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=place, args=list(FLAGS), env=dict(os.environ) | tools.libraries()
        )
        yield browser
        browser.close()


@contextmanager
def visiting(
    browser: Browser, address: str, *, size: tuple[int, int] = WIDE, colours: Any = "light"
) -> Iterator[Visit]:
    """Open an address; console errors, failed and foreign requests are noted."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=colours, accept_downloads=True
    )
    visit = Visit(context.new_page())
    page = visit.page
    page.set_default_timeout(30_000)
    page.on("console", lambda said: _note(visit, said.type, said.text))
    page.on("pageerror", lambda error: visit.troubles.append(str(error)))
    page.on("request", lambda request: visit.hosts.add(request.url.split("/")[2]))
    page.on("websocket", lambda socket: visit.hosts.add(socket.url.split("/")[2]))
    page.goto(address)
    yield visit
    context.close()


def _note(visit: Visit, kind: str, text: str) -> None:
    if kind in ("error", "warning"):
        visit.troubles.append(text)


WEIGHTY = ("serious", "critical")
"""What axe-core calls problems that keep somebody from using a page."""


LATER_ROWS = "main .numbers tbody tr:nth-child(n + 12)"
"""Rows of a table of numbers that look like those above them: there may be a thousand."""
LOOK = """async ({later, of}) => {
    // Rows that are only left out still cost axe most of its time, so they leave the document. The
    // last stays, as tall as all of them: a table that scrolls must still scroll.
    const away = []
    for (const body of document.querySelectorAll('main .numbers tbody')) {
        const rows = later ? [...body.querySelectorAll(later)] : []
        const last = rows.pop()
        if (!rows.length) continue
        const height = last.getBoundingClientRect().bottom - rows[0].getBoundingClientRect().top
        away.push({last, rows, style: last.getAttribute('style')})
        rows.forEach((row) => row.remove())
        last.style.height = `${height}px`
    }
    try {
        const context = of.length ? {include: of} : later ? {exclude: [[later]]} : document
        // Only violations are told in full: to name each of thousands of cells takes seconds.
        return (await axe.run(context, {resultTypes: ['violations']})).violations
    } finally {
        for (const {last, rows, style} of away) {
            last.before(...rows)
            style === null ? last.removeAttribute('style') : last.setAttribute('style', style)
        }
    }
}"""


def accessibility_problems(
    page: Page, *, every_row: bool = False, of: Sequence[str] = ()
) -> list[str]:
    """Return what axe-core finds weighty in the page as it is: rule, reason and elements.

    Of a long table of numbers it sees the first rows, unless it shall see every one. With `of` it
    looks at what these selectors find, and at nothing else.
    """
    if not tools.AXE.is_file():
        pytest.skip(tools.NO_AXE)
    if not page.evaluate("'axe' in window"):
        page.evaluate(tools.AXE.read_text("utf-8"))
    found = page.evaluate(
        LOOK, {"later": "" if every_row else LATER_ROWS, "of": [[one] for one in of]}
    )
    return [
        f"{one['id']}: {one['help']} ({'; '.join(str(node['target']) for node in one['nodes'])})"
        for one in found
        if one["impact"] in WEIGHTY
    ]


def drag(page: Page, start: tuple[float, float], points: list[tuple[float, float]]) -> None:
    """Move the pressed pointer along some points."""
    page.mouse.move(*start)
    page.mouse.down()
    for point in points:
        page.mouse.move(*point)
    page.mouse.up()


def frames_of_a_drag(page: Page, seconds: float) -> list[float]:
    """Drag the query round in a circle; return the milliseconds from each frame to the next."""
    x, y = middle(page, "[data-query='0'] .handle")
    box = page.locator("svg[data-figure]").first.bounding_box()
    assert box is not None
    page.mouse.move(x, y)
    page.mouse.down()
    taken = frames_of_a_move(page, box, seconds, radius=box["width"] / 4)
    page.mouse.up()
    return taken


def frames_of_a_move(page: Page, box: Any, seconds: float, *, radius: float) -> list[float]:
    """Move the pointer round the middle of a box; return the milliseconds between frames.

    The circle grows smaller and larger again, so that the pointer comes to many places.
    """
    centre = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    def move(turn: int) -> None:
        angle, away = turn / 40, radius * (1 - 0.5 * abs(math.sin(turn / 97)))
        page.mouse.move(centre[0] + away * math.cos(angle), centre[1] + away * math.sin(angle))

    return frames_while(page, move, seconds)


def frames_while(page: Page, act: Callable[[int], None], seconds: float) -> list[float]:
    """Do something again and again; return the milliseconds from each frame to the next."""
    page.evaluate(
        """() => {
            const seen = window.seen = []
            const look = (now) => {
                if (window.seen !== seen) return
                seen.push(now)
                requestAnimationFrame(look)
            }
            requestAnimationFrame(look)
        }"""
    )
    ends, turn = time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        act(turn)
        turn += 1
    found: list[float] = page.evaluate(
        "() => { const all = window.seen; window.seen = null; return all }"
    )
    return [later - earlier for earlier, later in pairwise(found)]


def _asked_for(page: Page, title: str, kind: str, milliseconds: float) -> Any:
    menu = page.get_by_label(f"Save “{title}”", exact=True)
    button = menu.locator("xpath=..").get_by_role("button", name=kind)
    if not button.is_visible():
        menu.click()
    with page.expect_download(timeout=milliseconds) as waiting:
        button.click()
    return waiting


def save_figure(page: Page, title: str, kind: str, folder: Path) -> Path:
    """Save a figure by the menu that it has; return the file.

    Chromium has lost a download of a long visit now and then (of whatever kind, never twice in a
    row; 60 in a row came from a new page): then the same is asked for once more.
    """
    try:
        waiting = _asked_for(page, title, kind, 10_000)
    except Late:
        waiting = _asked_for(page, title, kind, 30_000)
    file = folder / waiting.value.suggested_filename
    waiting.value.save_as(file)
    return file


def middle(page: Page, selector: str) -> tuple[float, float]:
    """Return the middle of what a selector finds."""
    box = page.locator(selector).first.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def still(page: Page) -> None:
    """Wait until the view has stopped changing: it looks the same half a second later."""
    page.wait_for_function(
        """() => {
            const now = document.querySelector("main")?.innerHTML ?? ""
            const same = now !== "" && window.lastSeen === now
            window.lastSeen = now
            return same
        }""",
        polling=500,
    )
