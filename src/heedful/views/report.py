"""The report of the laboratory: one self-contained page of all its parts."""

from __future__ import annotations

import datetime
import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from heedful import __version__
from heedful.files import write_atomic
from heedful.machine import examine
from heedful.records import Record
from heedful.studies.conclusions import sentences
from heedful.studies.lab import OPTIONS, Laboratory, LabRecord, PartRecord
from heedful.views.blocks import Block, Section, Table, Text
from heedful.views.formatting import duration
from heedful.views.html import blocks_html, environment

REPORT = "report.html"


SECTIONS = {
    "attention": ("exploration", "exploration_section"),
    "claims": ("claims", "claims_section"),
    "positions": ("order", "positions_section"),
    "translation": ("translation", "translation_section"),
    "knowledge": ("knowledge", "knowledge_section"),
    "pretrained": ("pretrained", "pretrained_section"),
    "heads": ("heads", "heads_section"),
}
"""The module and the function that draw the section of each part of the laboratory."""


def draw_part(name: str, record: Record, seconds: float, lab: Laboratory) -> PartRecord:
    """Draw the section of a part of the laboratory."""
    module, function = SECTIONS[name]
    section_of = getattr(importlib.import_module(f"heedful.views.{module}"), function)
    again = {"options": OPTIONS[name][lab.scale]} if name in OPTIONS else {}
    if name == "knowledge":
        again["folder"] = str(lab.work / name)
    return part_of(section_of(record, seconds, **again), record)


def part_of(section: Section, record: Record) -> PartRecord:
    """Combine a section with the record it describes."""
    return PartRecord(
        name=section.name,
        title=section.title,
        findings=sentences(section.findings),
        contents=section.contents,
        seconds=section.seconds,
        html=blocks_html([section]),
        record=record.to_dict(),
    )


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


def lab_blocks(record: LabRecord) -> Iterator[Block]:
    """Yield what `heed lab` prints when it is done."""
    rows = [(f"{place}. {finding}",) for place, finding in enumerate(record.summary, start=1)]
    yield Table("What was found", ("",), list(rows))
    yield Text(f"The report is at {record.report} ({duration(record.seconds)})")
