"""What a run of the laboratory leaves behind: its parts, and the one report of them all.

Every finished part is kept as JSON in the output folder, so that an interrupted run goes on
where it stopped. A part is kept for the version that made it only.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from heedful import __version__
from heedful.files import write_atomic
from heedful.machine import examine
from heedful.records import Record
from heedful.views.blocks import Block, Section, Table, Text
from heedful.views.formatting import duration
from heedful.views.html import blocks_html, environment

REPORT = "report.html"
SUMMARY = 2
"""Findings of each part that stand in the summary."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PartRecord(Record):
    """One finished part."""

    name: str
    """Its name, as --only takes it."""
    title: str
    """Its title in the report."""
    findings: tuple[str, ...]
    """What it found, one line each."""
    seconds: float
    """How long it took."""
    html: str
    """Its section of the report."""
    record: dict[str, Any]
    """The record it ends in."""
    version: str
    """The version of Heedful that made it."""
    command: str = ""
    """What makes it again."""
    decided_by: dict[str, str] = field(default_factory=dict)
    """What decided it besides the version: the scale, and the content of the corpus."""

    @classmethod
    def of(cls, section: Section, record: Record) -> PartRecord:
        """Put a section and the record it tells together."""
        return cls(
            name=section.name,
            title=section.title,
            findings=section.findings,
            seconds=section.seconds,
            html=blocks_html([section]),
            record=record.to_dict(),
            version=__version__,
        )

    @property
    def summary(self) -> tuple[str, ...]:
        """Its weightiest findings."""
        return self.findings[:SUMMARY]

    def made_by(self, command: str, decided_by: dict[str, str]) -> PartRecord:
        """Return the part with what made it."""
        return replace(self, command=command, decided_by=decided_by)


@dataclass(frozen=True, eq=False, kw_only=True)
class LabRecord(Record):
    """A whole run of the laboratory."""

    report: str
    """Where the report is."""
    scale: str
    """How much was trained: quick, standard or course."""
    seconds: float
    """How long its parts took."""
    summary: tuple[str, ...]
    """The weightiest findings, at most two of each part."""
    findings: tuple[str, ...]
    """What was found, in the order of the report."""
    parts: tuple[PartRecord, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the record without the markup of its parts."""
        plain = super().to_dict()
        for part in plain["parts"]:
            del part["html"]
        return plain


def finished_part(output: Path, name: str, decided_by: dict[str, str]) -> PartRecord | None:
    """Return a part that this version finished with the same scale and corpus, if it reads well."""
    path = _path(output, name)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        part = PartRecord(**{**content, "findings": tuple(content["findings"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    same = (part.version, part.name, part.decided_by) == (__version__, name, decided_by)
    return part if same else None


def keep_part(output: Path, part: PartRecord) -> None:
    """Keep a finished part, whole or not at all."""
    path = _path(output, part.name)
    path.parent.mkdir(exist_ok=True)
    write_atomic(path, part.to_json(indent=None))


def write_report(
    output: Path, parts: Sequence[PartRecord], *, command: str = "", notice: str = ""
) -> Path:
    """Write the one self-contained page of all parts and return its path."""
    machine = examine()
    facts = {
        "version": __version__,
        "machine": f"Python {machine.python}, {machine.cpu}, {machine.cores} cores",
        "date": datetime.date.today().isoformat(),
        "command": command,
        "seconds": sum(part.seconds for part in parts),
        "notice": notice,
    }
    page = environment().get_template("report.html.j2").render(parts=parts, facts=facts)
    path = output / REPORT
    write_atomic(path, page)
    return path


def summary_of(parts: Sequence[PartRecord]) -> tuple[str, ...]:
    """Return the weightiest findings of all parts."""
    return tuple(finding for part in parts for finding in part.summary)


def lab_blocks(record: LabRecord) -> Iterator[Block]:
    """Yield what `heed lab` prints when it is done."""
    rows = [(f"{place}. {finding}",) for place, finding in enumerate(record.summary, start=1)]
    yield Table("What was found", ("",), list(rows))
    yield Text(f"The report is at {record.report} ({duration(record.seconds)})")


def _path(output: Path, name: str) -> Path:
    return output / "parts" / f"{name}.json"
