"""The installation that `heed doctor` shows."""

from __future__ import annotations

from collections.abc import Iterator

from heedful.machine import Installation
from heedful.views.blocks import Block, Span, facts, table


def installation_blocks(record: Installation) -> Iterator[Block]:
    """Yield what `heed doctor` prints."""
    limits = [f"{name}={value}" for name, value in record.threads.items() if value]
    yield facts(
        "This machine",
        ("heedful", record.heedful),
        ("Python", record.python),
        ("system", record.system),
        ("CPU", f"{record.cpu}, {record.cores} cores"),
        ("CPU features", ", ".join(record.cpu_features) or "none known"),
        None if record.memory_gb is None else ("memory", f"{record.memory_gb} GB"),
        ("threads", ", ".join(limits) or "not limited by the environment"),
    )
    core = table("Core", "package", "version", left=(0, 1))
    for name, version in record.core.items():
        core.row(name, version or Span("missing", "bad"))
    yield core
    parts = table("Optional parts", "part", "present", "packages", "to install", left=(0, 1, 2, 3))
    for part in record.parts:
        versions = ", ".join(
            f"{name} {version or 'missing'}" for name, version in part.versions.items()
        )
        present = "yes" if part.present else "no"
        parts.row(part.name, present, versions, "" if part.present else part.install)
    yield parts
