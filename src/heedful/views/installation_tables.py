"""The terminal view of an installation."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from heedful.machine import Installation
from heedful.views.terminal import table


def installation_tables(record: Installation) -> Iterator[RenderableType]:
    """Yield what `heed doctor` prints."""
    machine = table("This machine", "", "", left=(0, 1))
    machine.add_row("heedful", record.heedful)
    machine.add_row("Python", record.python)
    machine.add_row("system", record.system)
    machine.add_row("CPU", f"{record.cpu}, {record.cores} cores")
    machine.add_row("CPU features", ", ".join(record.cpu_features) or "none known")
    if record.memory_gb is not None:
        machine.add_row("memory", f"{record.memory_gb} GB")
    limits = [f"{name}={value}" for name, value in record.threads.items() if value]
    machine.add_row("threads", ", ".join(limits) or "not limited by the environment")
    yield machine

    core = table("Core", "package", "version", left=(0, 1))
    for name, version in record.core.items():
        core.add_row(name, version or "[red]missing[/red]")
    yield core

    parts = table("Optional parts", "part", "present", "packages", "to install", left=(0, 1, 2, 3))
    for part in record.parts:
        found = ", ".join(
            f"{name} {version}" if version else f"{name} missing"
            for name, version in part.versions.items()
        )
        parts.add_row(
            part.name, "yes" if part.present else "no", found, "" if part.present else part.install
        )
    yield parts
