"""The claims part of the report: what the course sheets say, and what is true of it."""

from __future__ import annotations

from heedful.claims.check_report import CheckReport
from heedful.claims.exports import decisive
from heedful.claims.verdict import Verdict
from heedful.report.page import Block, Section, Table

MARKS = {"proved": "good", "supported": "good", "refuted": "bad", "undecided": "unsure"}


def claims_section(record: CheckReport, seconds: float) -> Section:
    """Tell a check of the catalog."""
    blocks: list[Block | None] = [_overview(record)]
    blocks += [_sheet(record, sheet.name, sheet.title or sheet.name) for sheet in record.sheets]
    return Section(
        name="claims",
        title="Claims, judged",
        lead="Statements from five course sheets and their answer sets, and facts that belong "
        "beside them; each was judged by the machine alone.",
        blocks=tuple(block for block in blocks if block is not None),
        findings=_findings(record),
        seconds=seconds,
    )


def _overview(record: CheckReport) -> Block:
    rows = []
    for sheet in record.sheets:
        own = [verdict for verdict in record.claims if verdict.sheet == sheet.name]
        counts = [str(sum(verdict.verdict == word for verdict in own)) for word in MARKS]
        rows.append((sheet.title or sheet.name, str(len(own)), *counts))
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


def _sheet(record: CheckReport, name: str, title: str) -> Block | None:
    own = [verdict for verdict in record.claims if verdict.sheet == name]
    if not own:
        return None
    return Block(
        heading=title,
        tables=(
            Table(
                columns=("verdict", "claim", "what decides it", "repair"),
                rows=tuple(_row(verdict) for verdict in own),
                marks=tuple(MARKS[verdict.verdict] for verdict in own),
            ),
        ),
        command=f"heed explain {name}/{own[0].id}",
    )


def _row(verdict: Verdict) -> tuple[str, str, str, str]:
    repair = "" if verdict.repair is None else verdict.repair.statement
    says = verdict.says or verdict.expects
    return (verdict.verdict, f"{verdict.id}: {says}", str(decisive(verdict)), repair)


def _findings(record: CheckReport) -> tuple[str, ...]:
    refuted = [verdict for verdict in record.claims if verdict.verdict == "refuted"]
    mended = [verdict for verdict in refuted if verdict.repair is not None]
    seeds = [verdict for verdict in refuted if verdict.sheet.startswith("seed")]
    return (
        f"Of {len(record.claims)} claims, {record.counts.get('proved', 0)} are proved, "
        f"{record.counts.get('supported', 0)} supported and {len(refuted)} refuted; "
        f"{len(seeds)} of the refuted stand in the course sheets, and {len(mended)} have a "
        "repair that the machine found.",
    )
