"""What leaves for other programs: JUnit, CSV, the terminal and the page."""

from __future__ import annotations

import csv
import io
import re
import tomllib
from collections.abc import Iterable
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.claims.checker import CheckReport, Explanation, SheetProblem
from heedful.claims.sheet import load_sheet, toml_lines
from heedful.claims.verdict import Counterexample, Evidence, Repair, Verdict, Word
from heedful.views.blocks import Block
from heedful.views.claims import (
    COLUMNS,
    check_blocks,
    claims_page,
    csv_text,
    decisive,
    explanation_blocks,
    junit_text,
    verdict_figure,
)
from heedful.views.terminal import print_blocks, written

NASTY = "<script>alert(1)</script> & [red]x[/red] \"'{{ 7 * 7 }} \\ =1+1"


def verdict(name: str, word: Word = "proved", says: str = "It is so.", **more: object) -> Verdict:
    evidence = Evidence(method="algebra", statement=f"{says} Indeed.", numbers={"beta_0": 5.98})
    fields = {"sheet": "sheet", "id": name, "says": says, "expects": "x = 1", "verdict": word}
    return Verdict(**{**fields, "evidence": evidence, **more})  # type: ignore[arg-type]


REFUTED = verdict(
    "no",
    "refuted",
    counterexample=Counterexample(
        symbols={"n": 3, "q": np.array([1.0, 0.0])},
        left=np.array([0.4, 0.4, 0.2]),
        right=np.array([0.5, 0.5, 0.0]),
        gap=0.2,
        statement="Three keys are enough.",
        command="heed attend --n 3 --query 1 1 0",
    ),
    repair=Repair(
        kind="scale",
        statement="Multiply the query by 6.",
        changes={"query": '6 "q"', "where": {"n": [2, 3]}},
        verdict="proved",
    ),
    seconds=0.25,
)


def report_of(*verdicts: Verdict, problems: tuple[SheetProblem, ...] = ()) -> CheckReport:
    sheet = load_sheet(
        'title = "A title"\n[[claim]]\nid = "yes"\nexpect = "1 = 1"\n'
        'disagrees_with = "no"\n[[claim]]\nid = "no"\nexpect = "1 = 2"\n'
    )
    return CheckReport.of([sheet], verdicts, problems, 1.5)


PROBLEM = SheetProblem(sheet="sheet", line=7, column=3, message="sheet:7:3: a < b is & wrong")


def text_of(view: Iterable[Block]) -> str:
    return written(view, width=200)


def test_junit_counts_what_is_refuted_undecided_and_unreadable() -> None:
    report = report_of(verdict("yes"), REFUTED, verdict("maybe", "undecided"), problems=(PROBLEM,))
    root = ElementTree.fromstring(junit_text(report))
    (suite,) = root.findall("testsuite")
    for element in (root, suite):
        found = {name: element.get(name) for name in ("tests", "failures", "errors", "skipped")}
        assert found == {"tests": "4", "failures": "1", "errors": "1", "skipped": "1"}
    failure = suite.find("testcase[@name='no']/failure")
    assert failure is not None
    assert "heed attend --n 3 --query 1 1 0" in (failure.text or "")
    assert "Multiply the query by 6." in (failure.text or "")
    assert suite.find("testcase/error").get("message") == PROBLEM.message  # type: ignore[union-attr]


@given(says=st.text(max_size=30))
def test_any_sentence_survives_the_way_through_junit_and_csv(says: str) -> None:
    report = report_of(verdict("yes", says=says), verdict("no", "refuted", says=says))
    root = ElementTree.fromstring(junit_text(report).encode("utf-8", "surrogatepass"))
    assert len(root.findall(".//testcase")) == 2
    rows = list(csv.reader(io.StringIO(csv_text(report), newline="")))
    assert rows[0] == list(COLUMNS)
    assert len(rows) == 3
    for row in rows[1:]:
        assert len(row) == len(COLUMNS)
        assert (row[2].removeprefix("'") == says.removeprefix("'")) or not says
        # No cell begins like the formula of a spreadsheet.
        assert not any(cell.lstrip(" ").startswith(tuple("=+-@\t\r\n")) for cell in row)


def test_csv_has_a_row_for_what_cannot_be_read() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(report_of(REFUTED, problems=(PROBLEM,))))))
    assert [row["verdict"] for row in rows] == ["refuted", "unreadable"]
    assert rows[0]["number"] == "fails by 0.2"
    assert rows[0]["repair"] == "Multiply the query by 6."
    assert rows[0]["seconds"] == "0.250"


@pytest.mark.parametrize(
    ("numbers", "draws", "shown"),
    [
        ({"beta_0": 5.98141}, None, "β₀ = 5.981"),
        ({"beta_0": {"n=2": 1.5, "n=10": 6.25}}, None, "β₀ = 6.25 (n=10)"),
        ({"formula": "ln n", "error": np.float64(0.5)}, 3, "error = 0.5"),
        ({}, 20_000, "20,000 cases"),
        ({"left": None}, None, ""),
    ],
)
def test_the_decisive_number(numbers: dict[str, object], draws: int | None, shown: str) -> None:
    evidence = Evidence(method="search", statement="", numbers=numbers, draws=draws)
    assert decisive(verdict("yes", evidence=evidence)) == shown


def test_the_terminal_shows_markup_as_it_was_written() -> None:
    report = report_of(verdict("yes", says=NASTY), REFUTED)
    shown = text_of(check_blocks(report))
    assert "[red]x[/red]" in shown
    assert "Multiply the query by 6." in shown
    assert "Where sheets disagree" in shown
    assert "2 claims in 1.5 s: 1 proved, 1 refuted" in shown


def test_an_explanation_ends_with_lines_to_paste() -> None:
    (claim,) = load_sheet('[[claim]]\nid = "no"\nexpect = "1 = 2"\nkeys = "orthonormal"\n').claims
    shown = text_of(explanation_blocks(Explanation(claim=claim, verdict=REFUTED)))
    assert 'keys = "orthonormal"' in shown
    assert "\n    heed attend --n 3 --query 1 1 0\n" in shown
    pasted = "\n".join(line.strip() for line in shown.splitlines()[-2:])
    assert REFUTED.repair is not None
    assert tomllib.loads(pasted) == REFUTED.repair.changes
    assert toml_lines(REFUTED.repair.changes) == pasted


def test_what_is_to_be_pasted_is_not_wrapped_in_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    (claim,) = load_sheet('[[claim]]\nid = "no"\nexpect = "1 = 2"\n').claims
    print_blocks(explanation_blocks(Explanation(claim=claim, verdict=REFUTED)))
    assert "\n    heed attend --n 3 --query 1 1 0\n" in capsys.readouterr().out


def test_a_repair_names_the_field_that_it_leaves_out() -> None:
    changes = {"query": None, "heads": ("k_a", "k_b"), "expect": ("1 = 1",)}
    assert toml_lines(changes).splitlines() == [
        "# without query",
        'heads = ["k_a", "k_b"]',
        'expect = "1 = 1"',
    ]


def test_a_figure_is_drawn_where_there_is_something_to_see() -> None:
    assert verdict_figure(REFUTED) is not None
    assert verdict_figure(verdict("yes")) is None
    numbers = {"low": 0.2, "high": 0.4, "mean": 0.3, "bound": 0.5}
    drawn = Evidence(method="draws", statement="", numbers=numbers, draws=10)
    assert verdict_figure(verdict("yes", evidence=drawn)) is not None


class Elements(HTMLParser):
    """Collects what a browser would find."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = dict(attrs)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.links += [found[name] or "" for name in ("href", "src") if name in found]

    def handle_data(self, data: str) -> None:
        self.words += data


def test_the_page_stands_alone_and_escapes_everything() -> None:
    unicode_ids = [verdict(name, says=NASTY) for name in ("ä/b", "ä b", "ä-b")]
    report = report_of(verdict("yes", says=NASTY), REFUTED, *unicode_ids, problems=(PROBLEM,))
    page = claims_page(report)
    found = Elements()
    found.feed(page)
    assert "script" not in found.tags
    assert NASTY in found.words
    assert PROBLEM.message in found.words
    assert "49" not in re.sub(r"\d{3,}", "", found.words)  # {{ 7 * 7 }} stays what it is
    assert len(set(found.ids)) == len(found.ids)
    assert all(link.startswith("#") and link[1:] in found.ids for link in found.links)
    assert not re.search(r"https?://|@import|url\(", page)
    assert "Where sheets disagree" in found.words
    assert 'query = "6 \\"q\\""' in found.words
    assert "heed attend --n 3 --query 1 1 0" in found.words


def test_a_page_without_claims_is_a_page() -> None:
    assert "<h1>" in claims_page(report_of())
