"""Claims and assignments in a browser: paste, reading, verdict, repair, undo, save, hand in."""

from __future__ import annotations

import re
from pathlib import Path

from browsing import PHONE, visiting
from page_server import Running
from playwright.sync_api import Browser, Page, Route, expect

from heedful.assignments import grade, load_assignment
from heedful.claims import load_sheet

SHEET = """# kept
[defaults]
keys = "orthonormal"
where = { n = 10 }

[[claim]]
id = "b"
query = ""
expect = "c ≈ (v_a + v_b)/2 within 0.01"
"""
ASSIGNMENT = """title = "Week 1"
live = "hint"

[[question]]
id = "1b"
text = "Give a query that averages v_a and v_b."
points = 2
open = "query"
keys = "orthonormal"
where = { n = [3, 10], beta = "large" }
expect = "c ≈ (v_a + v_b)/2 within 0.05"
credit = { repairs = { scale = 0.5 } }

[[question]]
id = "1c"
text = "How large is α_a for the query 0?"
points = 1
open = "number"
keys = "orthonormal"
query = "0 k_a"
where = { n = [2, 5] }
expect = "alpha_a = answer"

[[question]]
id = "2"
text = "Can a weight be negative?"
points = 1
open = "choice"
options = ["yes", "no"]
solution = "no"
"""


def editor(page: Page) -> str:
    return page.get_by_label("Claim sheet, in TOML").input_value()


def saved(page: Page, button: str, folder: Path) -> Path:
    with page.expect_download() as waiting:
        page.get_by_role("button", name=button).click()
    file = folder / waiting.value.suggested_filename
    waiting.value.save_as(file)
    return file


def paste(page: Page, text: str) -> None:
    """Paste as a person does: from the clipboard, with the keys."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("(text) => navigator.clipboard.writeText(text)", text)
    page.keyboard.press("ControlOrMeta+v")


def test_pasted_latex_is_read_judged_repaired_undone_and_saved(
    browser: Browser, server: Running, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(SHEET, "utf-8")
    with visiting(browser, f"{server.address}#/claims") as visit:
        page = visit.page
        page.get_by_label("Open a sheet or an assignment").set_input_files(tmp_path / "mine.toml")
        area = page.get_by_label("Claim sheet, in TOML")
        expect(area).to_have_value(SHEET)
        area.evaluate(
            """(node) => {
                const at = node.value.indexOf('query = "') + 9
                node.focus()
                node.setSelectionRange(at, at)
            }"""
        )
        paste(page, r"\mathbf{k}_a + \mathbf{k}_b")
        pasted = r"query = '\mathbf{k}_a + \mathbf{k}_b'"
        assert pasted in editor(page)
        expect(page.locator("article.refuted")).to_have_count(1)
        expect(page.get_by_label("Query", exact=True)).to_have_value(r"\mathbf{k}_a + \mathbf{k}_b")
        page.get_by_role("button", name="Apply the repair").click()
        expect(page.locator("article.proved")).to_have_count(1)
        repaired = editor(page)
        assert pasted not in repaired
        page.keyboard.press("ControlOrMeta+z")
        assert pasted in editor(page)
        expect(page.locator("article.refuted")).to_have_count(1)
        page.keyboard.press("ControlOrMeta+Shift+z")
        assert editor(page) == repaired
        expect(page.locator("article.proved")).to_have_count(1)
        file = saved(page, "Save sheet", tmp_path)
        assert file.name == "mine.toml"
        assert file.read_text("utf-8") == repaired
        for _ in range(2):
            page.get_by_role("button", name="Undo").click()
        assert editor(page) == SHEET
        assert visit.troubles == []


def test_the_form_and_the_text_keep_step(browser: Browser, server: Running) -> None:
    with visiting(browser, f"{server.address}#/claims") as visit:
        page = visit.page
        expect(page.get_by_label("Claim in the form")).to_have_value("0")
        page.get_by_label("Expect").fill(r"\alpha_a \approx \frac12" + "\n\\alpha_a > 0")
        expect(page.get_by_label("Claim sheet, in TOML")).to_have_value(
            re.compile(re.escape(r"expect = ['\alpha_a \approx \frac12', '\alpha_a > 0']"))
        )
        expect(page.locator("article .katex")).to_have_count(3)
        page.get_by_label("Where").fill("n = 3, 5\nbeta = large")
        page.get_by_label("Query", exact=True).fill("beta (k_a + k_b")  # not finished
        page.get_by_label("Find").focus()
        expect(page.locator(".form .problem")).to_have_count(1)
        assert 'query = "beta (k_a + k_b"' in editor(page)
        page.get_by_label("Query", exact=True).fill("beta (k_a + k_b)")
        expect(page.locator(".form .problem")).to_have_count(0)
        page.get_by_label("Keys", exact=True).select_option("typed in")
        page.get_by_label("Keys, a row a line").fill("1 0 0\n0 1 0\n0 0 1")
        page.get_by_label("Find").focus()
        expect(page.get_by_label("Claim sheet, in TOML")).to_have_value(
            re.compile(re.escape("keys = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]"))
        )
        text = editor(page)
        claim = load_sheet(text).claims[0]
        assert dict(claim.where) == {"n": [3, 5], "beta": "large"}
        page.get_by_label("Claim sheet, in TOML").fill(text.replace('id = "b"', 'id = "bee"'))
        expect(page.get_by_label("Name")).to_have_value("bee")
        page.get_by_role("button", name="New claim").click()
        expect(page.get_by_label("Name")).to_have_value("claim 3")
        expect(page.locator("article.claim")).to_have_count(3)
        page.get_by_role("button", name="Remove").click()
        expect(page.locator("article.claim")).to_have_count(2)
        assert visit.troubles == []


def test_what_is_typed_while_the_server_is_slow_is_kept(browser: Browser, server: Running) -> None:
    held: list[Route] = []

    with visiting(browser, f"{server.address}#/claims") as visit:
        page = visit.page
        sheet = page.get_by_label("Claim sheet, in TOML")
        edits = "**/api/claims/edit"

        def let_go() -> None:
            while held:
                held.pop(0).continue_()
                page.wait_for_timeout(200)

        expect(page.get_by_label("Claim in the form")).to_have_value("0")
        page.route(edits, lambda route: held.append(route))
        with page.expect_request(edits):
            page.get_by_label("Keys", exact=True).select_option("typed in")
        page.get_by_label("Keys, a row a line").fill("1 0 0\n0 1 0\n0 0 1")
        page.get_by_label("Find").focus()
        page.wait_for_timeout(600)  # longer than a pause in typing
        assert len(held) == 1, "one change after another, or an older one may come last"
        let_go()
        expect(sheet).to_have_value(
            re.compile(re.escape("keys = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]"))
        )
        with page.expect_request(edits):
            page.get_by_label("In words").fill("Two values.")
            page.get_by_role("button", name="Remove").click()
        page.wait_for_timeout(600)
        assert len(held) == 1, "the claim goes when what was typed into it is written"
        let_go()
        expect(page.get_by_label("Name")).to_have_value("copy")
        assert "Two values." not in editor(page)
        assert [claim.id for claim in load_sheet(editor(page)).claims] == ["copy"]
        assert visit.troubles == []


def test_an_assignment_is_worked_on_and_handed_in(
    browser: Browser, server: Running, tmp_path: Path
) -> None:
    assignment = tmp_path / "week1.toml"
    assignment.write_text(ASSIGNMENT, "utf-8")
    with visiting(browser, f"{server.address}#/claims?tab=assignment", size=PHONE) as visit:
        page = visit.page
        opener = page.get_by_label("Open an assignment or answers")
        opener.set_input_files(assignment)
        first = page.get_by_label("Question 1b")
        field = page.get_by_label("q to 1b")
        field.fill("k_a + k_b")
        expect(first).to_contain_text("1 of 2 points")
        expect(first).to_contain_text("Hint: Think about how long the query has to be.")
        first.get_by_text("Working").click()
        page.get_by_label("Working for 1b").fill(r"Not $q = k_a$, which copies.")
        field.fill(r"\gamma (k_a + k_b)")
        expect(first).to_contain_text("2 of 2 points")
        expect(first).to_contain_text("γ is read as beta".replace("γ", "gamma"))
        page.get_by_label("Answer to 1c").fill("1/n")
        expect(page.get_by_label("Question 1c")).to_contain_text("1 of 1 points")
        page.get_by_label("Question 2").get_by_label("no", exact=True).check()
        expect(page.get_by_label("Question 2")).to_contain_text("noted")
        expect(page.get_by_role("status")).to_contain_text("3 of 3 questions answered")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        file = saved(page, "Save as a submission", tmp_path)
        page.get_by_role("button", name="Put away").click()
        opener.set_input_files(assignment)
        expect(field).to_have_value("")
        opener.set_input_files(file)
        expect(field).to_have_value(r"\gamma (k_a + k_b)")
        expect(page.get_by_label("Answer to 1c")).to_have_value("1/n")
        expect(first).to_contain_text("2 of 2 points")
        page.reload()
        expect(field).to_have_value(r"\gamma (k_a + k_b)")
        assert visit.troubles == []
    (student,) = grade(load_assignment(assignment), [file], workers=1).students
    assert [one.points for one in student.grades] == [2, 1, 1]
