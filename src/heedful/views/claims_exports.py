"""A check for other programs: JUnit XML for test runners, CSV for grade books.

What a sheet says ends up in both, so nothing of it may be taken for markup or for the
formula of a spreadsheet.
"""

from __future__ import annotations

import csv
import io
import math
import re
from typing import Any
from xml.etree import ElementTree

from heedful.claims.checker import CheckReport
from heedful.claims.language import with_letters
from heedful.claims.verdict import Verdict
from heedful.views.formatting import number

DIGITS = 12
"""Significant figures of the ends of an answer: all that they have."""
COLUMNS = ("sheet", "id", "says", "verdict", "number", "repair", "seconds")

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def junit_text(report: CheckReport) -> str:
    """Return a check as JUnit XML: a suite a sheet, a case a claim.

    Refuted is a failure, undecided is skipped, what cannot be read is an error.
    """
    root = ElementTree.Element(
        "testsuites",
        name="heed check",
        tests=str(len(report.claims) + len(report.problems)),
        failures=str(report.counts["refuted"]),
        errors=str(len(report.problems)),
        skipped=str(report.counts["undecided"]),
        time=f"{report.seconds:.3f}",
    )
    for sheet in report.sheets:
        claims = [verdict for verdict in report.claims if verdict.sheet == sheet.name]
        problems = [problem for problem in report.problems if problem.sheet == sheet.name]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_xml(sheet.name),
            tests=str(len(claims) + len(problems)),
            failures=str(sum(verdict.verdict == "refuted" for verdict in claims)),
            errors=str(len(problems)),
            skipped=str(sum(verdict.verdict == "undecided" for verdict in claims)),
            time=f"{sum(verdict.seconds for verdict in claims):.3f}",
        )
        for verdict in claims:
            _case(suite, verdict)
        for problem in problems:
            case = ElementTree.SubElement(
                suite, "testcase", classname=_xml(sheet.name), name=f"line {problem.line or '?'}"
            )
            ElementTree.SubElement(case, "error", message=_xml(problem.message))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def csv_text(report: CheckReport) -> str:
    """Return a check as CSV (RFC 4180): one row a claim, and one a problem."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    row: tuple[str, ...]
    for verdict in report.claims:
        row = (
            verdict.sheet,
            verdict.id,
            verdict.says or verdict.expects,
            verdict.verdict,
            decisive(verdict),
            verdict.repair.statement if verdict.repair else "",
        )
        writer.writerow([*map(safe_cell, row), f"{verdict.seconds:.3f}"])
    for problem in report.problems:
        row = (problem.sheet, "", problem.message, "unreadable", "", "")
        writer.writerow([*map(safe_cell, row), ""])
    return buffer.getvalue()


def decisive(verdict: Verdict) -> str:
    """Return the figure that decides a claim: by how much it fails, or the first it rests on.

    Of a figure that depends on the case, such as β₀ for several n, the largest is shown.
    """
    if verdict.answer is not None:
        return answer_text(verdict)
    case = verdict.counterexample
    if case is not None and case.left is None:
        return ""  # a statement without two sides fails, but not by an amount
    if case is not None and case.exactly is not None:
        return f"apart by {case.exactly}"
    if case is not None and math.isfinite(case.gap):
        return f"fails by {_short(case.gap)}"
    numbers = verdict.evidence.numbers
    if _is_number(numbers.get("left")) and _is_number(numbers.get("right")):
        return f"{_short(numbers['left'])} against {_short(numbers['right'])}"
    for name, value in numbers.items():
        if _is_number(value):
            return f"{with_letters(name)} = {_short(value)}"
        if isinstance(value, dict) and value and all(map(_is_number, value.values())):
            case = max(value, key=lambda key: float(value[key]))
            return f"{with_letters(name)} = {_short(value[case])} ({case})"
    return looked_at(verdict)


def answer_text(verdict: Verdict) -> str:
    """Return the number that a claim asked for, between its ends."""
    answer = verdict.answer
    assert answer is not None
    name = with_letters(answer.asks.partition(" ")[2])
    low, high = answer.low, answer.high
    if low is None and high is None:
        return {"proved": "every number", "refuted": "no number"}.get(verdict.verdict, "")
    # Both ends were rounded outwards when they were certified; another rounding could pass them.
    if low is None:
        return f"{name} ≤ {number(high, DIGITS)}"
    if high is None:
        return f"{name} ≥ {number(low, DIGITS)}"
    return f"{number(low, DIGITS)} ≤ {name} ≤ {number(high, DIGITS)}"


def looked_at(verdict: Verdict) -> str:
    """Return how many draws or cases the evidence rests on, in words."""
    count, method = verdict.evidence.draws, verdict.evidence.method
    if count is None:
        return ""
    word = "draw" if "draw" in method else "node" if "quadrature" in method else "case"
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _case(suite: ElementTree.Element, verdict: Verdict) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=_xml(verdict.sheet),
        name=_xml(verdict.id),
        time=f"{verdict.seconds:.3f}",
    )
    reason = _xml(verdict.evidence.statement)
    if verdict.verdict == "refuted":
        lines = [verdict.says, verdict.expects, verdict.evidence.statement]
        if verdict.counterexample is not None:
            if verdict.counterexample.statement not in verdict.evidence.statement:
                lines.append(verdict.counterexample.statement)
            lines.append(verdict.counterexample.command or "")
            reason = _xml(verdict.counterexample.statement)
        if verdict.repair is not None:
            lines.append(f"repair: {verdict.repair.statement}")
        failure = ElementTree.SubElement(case, "failure", message=reason, type="refuted")
        failure.text = _xml("\n".join(line for line in lines if line))
    elif verdict.verdict == "undecided":
        ElementTree.SubElement(case, "skipped", message=reason)
    else:
        ElementTree.SubElement(case, "system-out").text = f"{verdict.verdict}: {reason}"


def safe_cell(text: str) -> str:
    """Return a cell that no spreadsheet takes for a formula."""
    # Spreadsheets run cells that begin like this; a quote before them makes them text.
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA_STARTS) else text


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool | str) or value is None:
        return False
    try:
        return math.isfinite(value)
    except (TypeError, ValueError, OverflowError):
        return False


def _short(value: float) -> str:
    return f"{float(value):.4g}"
