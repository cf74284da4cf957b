"""Questions to a model that others have trained, in a real browser: labels, promises, troubles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from browsing import PHONE, WIDE, accessibility_problems, visiting
from calibrations import keep_calibration
from page_server import Running, running
from playwright.sync_api import Browser, Page, expect

from heedful.studies.knowledge.findings import KNOWN, UNKNOWN, UNSURE
from heedful.web.shelves import id_of

QUESTION, OTHER = "Who wrote Hamlet?", "Which river flows through Bern?"
CONTROLS = (
    "select[aria-label='Who is asked']",
    "input[aria-label='Question']",
    "[data-put]",
    "[data-stop]",
    ".example",
    "[data-promise] summary",
)


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def questions_server(
    tmp_path_factory: pytest.TempPathFactory, opinionated: Path
) -> Iterator[Running]:
    """Return a server over one model that others have trained."""
    with running(runs=tmp_path_factory.mktemp("no-runs"), models=(opinionated,)) as started:
        yield started


def asked(page: Page, question: str) -> Any:
    """Ask by keyboard; return where the answer stands."""
    page.get_by_label("Question", exact=True).fill(question)
    page.keyboard.press("Enter")
    reply = page.locator("[data-reply]", has_text=question)
    expect(reply).to_be_visible()
    expect(page.locator("[data-put]")).to_be_visible()  # no longer busy
    return reply


@pytest.mark.parametrize(("size", "colours"), [(WIDE, "light"), (PHONE, "dark")])
def test_without_a_calibration_no_label_is_invented(
    browser: Browser, questions_server: Running, size: tuple[int, int], colours: str
) -> None:
    address = f"{questions_server.address}#/models"
    with visiting(browser, address, size=size, colours=colours) as visit:
        page = visit.page
        page.locator(".example").first.click()
        expect(page.locator("[data-reply]")).to_have_count(1)
        reply = asked(page, QUESTION)
        expect(reply.locator("[data-label]")).to_contain_text("not calibrated")
        expect(reply.locator(".gauge")).to_have_count(0)
        expect(page.locator("[data-reply]")).to_have_count(2)
        promise = page.locator("[data-promise]")
        expect(promise).to_contain_text("Nothing: this model was not calibrated")
        expect(promise.locator("code")).to_have_text("heed ask MODEL --calibrate")
        expect(page.locator("[data-reply].known, [data-reply].unsure")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        assert accessibility_problems(page) == []
        assert visit.troubles == []
        assert visit.hosts == {questions_server.access.hosts[0]}


@pytest.mark.parametrize(("size", "colours"), [(WIDE, "dark"), (PHONE, "light")])
def test_labels_are_words_and_colours_and_green_needs_the_promise(
    browser: Browser,
    questions_server: Running,
    opinionated: Path,
    size: tuple[int, int],
    colours: str,
) -> None:
    address = f"{questions_server.address}#/models"
    with visiting(browser, address, size=size, colours=colours) as visit:
        page = visit.page
        shown = {}
        for label in (KNOWN, UNSURE, UNKNOWN):
            keep_calibration(opinionated, label)
            reply = asked(page, QUESTION)
            if label == UNKNOWN:
                expect(reply.locator("[data-answer]")).to_have_text("I don’t know.")
                expect(reply).to_contain_text("It would say “")
            else:
                expect(reply.locator("[data-label]")).to_contain_text(label)
            expect(reply.locator(".gauge")).to_have_attribute(
                "aria-label", re.compile(r"confidence 90\s%")
            )
            shown[label] = reply.locator(".bar").evaluate(
                "(one) => getComputedStyle(one).backgroundColor"
            )
            known = page.locator("[data-promise] li").first
            made = label == KNOWN
            expect(known).to_contain_text("Promised of" if made else "No promise that at most 20 %")
            assert ("refused" in (known.get_attribute("class") or "")) != made
            assert accessibility_problems(page) == []
        assert len(set(shown.values())) == 3
        green = page.evaluate(
            "() => { const one = document.createElement('i'); one.style.color = 'var(--green)';"
            " document.body.append(one); const found = getComputedStyle(one).color; one.remove();"
            " return found }"
        )
        assert [label for label, colour in shown.items() if colour == green] == [KNOWN]
        page.get_by_text("What the labels mean").click()
        expect(page.locator("[data-promise] dl")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        unknown = page.evaluate(
            "(controls) => [...document.querySelector('[data-questions]').querySelectorAll("
            "'button, select, input, summary, a[href], [tabindex]')].filter((one) =>"
            " !controls.some((found) => one.matches(found))).map((one) => one.outerHTML)",
            CONTROLS,
        )
        assert unknown == []
        assert visit.troubles == []


def test_troubles_stand_beside_the_question_and_it_goes_on(
    browser: Browser, questions_server: Running
) -> None:
    with visiting(browser, f"{questions_server.address}#/models") as visit:
        page = visit.page
        box = page.get_by_label("Question", exact=True)
        expect(page.locator("[data-put]")).to_be_disabled()
        box.fill("x" * 501)
        page.locator("[data-put]").click()
        trouble = page.locator("[data-questions] [role=alert]")
        expect(trouble).to_contain_text("has 501 characters")
        expect(box).to_have_attribute("aria-describedby", str(trouble.get_attribute("id")))
        asked(page, OTHER)
        expect(trouble).to_have_count(0)
        # A server that takes its time: what was asked can be stopped, and another asked instead.
        page.route_web_socket(re.compile("/questions$"), lambda _socket: None)
        box.fill(QUESTION)
        page.keyboard.press("Enter")
        expect(page.get_by_text("opening the model …")).to_be_visible()
        assert accessibility_problems(page) == []
        page.locator("[data-stop]").click()
        expect(page.get_by_text("opening the model …")).to_have_count(0)
        expect(page.locator("[data-reply]", has_text=QUESTION)).to_have_count(0)
        assert visit.troubles == []


def test_the_address_keeps_who_was_asked_what(
    browser: Browser, questions_server: Running, opinionated: Path
) -> None:
    state = f"#/models?{urlencode({'asker': id_of(opinionated), 'question': QUESTION})}"
    with visiting(browser, questions_server.address + state) as visit:
        page = visit.page
        expect(page.locator("[data-reply]")).to_contain_text(QUESTION)
        asked(page, OTHER)
        expect(page).to_have_url(re.compile("question=Which"))
        page.get_by_label("Question", exact=True).fill("not asked yet")
        page.wait_for_timeout(800)  # as long as a study would wait before it answers
        expect(page.locator("[data-reply]")).to_have_count(2)
        assert visit.troubles == []


def test_who_has_no_model_is_told_how_to_get_one(browser: Browser, server: Running) -> None:
    with visiting(browser, f"{server.address}#/models") as visit:
        expect(visit.page.locator("[data-questions]")).to_contain_text("heed model get smollm2")
