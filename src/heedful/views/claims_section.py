"""The claims part of the report: what the course sheets say, and what is true of it."""

from __future__ import annotations

from heedful.claims.checker import CheckReport, SheetSummary
from heedful.claims.exports import decisive
from heedful.claims.verdict import Verdict
from heedful.views.page import Block, Section, Table

MARKS = {"proved": "good", "supported": "good", "refuted": "bad", "undecided": "unsure"}


def claims_section(record: CheckReport, seconds: float) -> Section:
    """Tell a check of the catalog."""
    sheets = sorted(record.sheets, key=lambda sheet: (not _is_course(sheet.name), sheet.name))
    blocks = [_overview(record, sheets), _contradictions(record), _wrong(record)]
    blocks += [_sheet(record, sheet) for sheet in sheets]
    return Section(
        name="claims",
        title="Claims, judged",
        lead="Statements from five course sheets and their answer sets, and facts that belong "
        "beside them; each was judged by the machine alone.",
        blocks=tuple(block for block in blocks if block is not None),
        findings=_findings(record),
        seconds=seconds,
    )


def _overview(record: CheckReport, sheets: list[SheetSummary]) -> Block | None:
    rows = []
    for sheet in sheets:
        own = [verdict for verdict in record.claims if verdict.sheet == sheet.name]
        counts = [str(sum(verdict.verdict == word for verdict in own)) for word in MARKS]
        rows.append((f"{sheet.name}: {sheet.title}", str(len(own)), *counts))
    return Block(
        heading="All sheets",
        paragraphs=(
            "Proved: by algebra or by rigorous enclosure over the whole declared range. "
            "Supported: every case or draw looked at agreed, and how many is stated. Refuted: "
            "there is a counterexample, the smallest found, and often a repair that holds.",
        ),
        tables=(Table(columns=("sheet", "claims", *MARKS), rows=tuple(rows)),),
        command="heed check",
    )


def _contradictions(record: CheckReport) -> Block | None:
    """Put what one sheet says beside what another says."""
    known = {f"{verdict.sheet}/{verdict.id}": verdict for verdict in record.claims}
    rows, marks = [], []
    for one, other in record.disagreements:
        first, second = known.get(one), known.get(other)
        if first is None or second is None or first.verdict == second.verdict:
            continue
        rows.append(
            (first.verdict, f"{one}: {_says(first)}", second.verdict, f"{other}: {_says(second)}")
        )
        marks.append(MARKS[first.verdict])
    if not rows:
        return None
    return Block(
        heading="Where the sheets contradict one another",
        paragraphs=("Both cannot be right, and the machine says which one is.",),
        tables=(
            Table(
                columns=("verdict", "one says", "verdict", "another says"),
                rows=tuple(rows),
                marks=tuple(marks),
            ),
        ),
    )


def _wrong(record: CheckReport) -> Block | None:
    """List what the course sheets got wrong, with the case that shows it."""
    wrong = [
        verdict
        for verdict in record.claims
        if verdict.verdict == "refuted" and _is_course(verdict.sheet)
    ]
    if not wrong:
        return None
    rows = tuple(
        (
            f"{verdict.sheet}/{verdict.id}",
            _says(verdict),
            verdict.counterexample.statement if verdict.counterexample else "",
            verdict.repair.statement if verdict.repair else "",
        )
        for verdict in wrong
    )
    return Block(
        heading="What the course sheets get wrong",
        paragraphs=(
            f"{len(wrong)} statements do not hold as they are written. Some are slips, some need "
            "a scale or a condition that was left out, and some are simply false.",
        ),
        tables=(
            Table(
                columns=("claim", "it says", "where it fails", "repair"),
                rows=rows,
                marks=("bad",) * len(rows),
            ),
        ),
    )


def _sheet(record: CheckReport, sheet: SheetSummary) -> Block | None:
    own = [verdict for verdict in record.claims if verdict.sheet == sheet.name]
    if not own:
        return None
    return Block(
        heading=f"{sheet.name}: {sheet.title or 'all claims'}",
        tables=(
            Table(
                columns=("verdict", "claim", "what decides it"),
                rows=tuple(
                    (verdict.verdict, f"{verdict.id}: {_says(verdict)}", decisive(verdict))
                    for verdict in own
                ),
                marks=tuple(MARKS[verdict.verdict] for verdict in own),
            ),
        ),
        command=f"heed explain {sheet.name}/{own[0].id}",
    )


def _says(verdict: Verdict) -> str:
    return verdict.says or verdict.expects


def _is_course(sheet: str) -> bool:
    return sheet.startswith("seed")


def _findings(record: CheckReport) -> tuple[str, ...]:
    course = [verdict for verdict in record.claims if _is_course(verdict.sheet)]
    wrong = [verdict for verdict in course if verdict.verdict == "refuted"]
    mended = [verdict for verdict in wrong if verdict.repair is not None]
    return (
        f"Of {len(course)} statements in the five course sheets, {len(wrong)} do not hold as they "
        f"are written; for {len(mended)} of these the machine found a repair that does.",
    )
