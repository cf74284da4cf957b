"""How trainings are shown: their end, a list of them, and what two do differently."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from heedful.records import Record
from heedful.views.terminal import bullets, number, paragraph, table

if TYPE_CHECKING:
    from heedful.training import RunComparison, TrainingResult
    from heedful.training.runs import Difference, RunList
else:  # these records live beside torch, without which the report must work
    Difference = RunComparison = RunList = TrainingResult = Record

HASH = re.compile(r"[0-9a-f]{64}")


def result_tables(record: TrainingResult) -> Iterator[RenderableType]:
    """Yield what `heed train` and `heed resume` print."""
    made = table("Training", "", "", left=(0, 1))
    made.add_row("run", record.run)
    ending = (
        f"ended by {record.stopped_by}" if record.finished else f"stopped by {record.stopped_by}"
    )
    made.add_row("state", f"{ending} at step {record.step:,}, epoch {record.epoch:.2f}")
    if record.resumed_from is not None:
        made.add_row("resumed from", f"step {record.resumed_from:,}")
    made.add_row("loss", number(record.loss))
    if record.evaluations:
        last = record.evaluations[-1]
        shown = ", ".join(f"{name} {number(value)}" for name, value in last.values.items())
        made.add_row(f"evaluation at step {last.step:,}", shown)
    made.add_row("read", f"{record.tokens:,} tokens by {record.parameters:,} parameters")
    made.add_row(
        "speed",
        f"{record.tokens_per_second:,.0f} tokens/s ({record.computed_as}), "
        f"{record.utilisation:.0%} of the machine's matrix products",
    )
    made.add_row(
        "took",
        f"{record.seconds / 60:.1f} minutes, {record.processor_seconds / 60:.1f} of a processor",
    )
    made.add_row("checkpoint", record.checkpoint)
    made.add_row("SHA-256 of the weights", record.weights_sha256)
    yield made
    warnings = [f"{name} was skipped: {why}" for name, why in record.skipped.items()]
    warnings += [f"not as when the run began: {note}" for note in record.notes]
    if warnings:
        yield bullets(warnings)
    if record.finished and record.resumed_from == record.step:
        yield paragraph("The run was finished: nothing was done.")
    if not record.finished:
        yield paragraph(f"Go on with: heed resume {record.run}")


def list_tables(record: RunList) -> Iterator[RenderableType]:
    """Yield what `heed runs` prints."""
    if not record.runs:
        yield paragraph(f"There are no runs in {record.folder}.")
        return
    made = table(
        f"Runs in {record.folder}",
        *("run", "state", "step", "of", "loss", "evaluation", "parameters", "tokens/s"),
        left=(0, 1, 5),
    )
    for run in record.runs:
        evaluation = ", ".join(f"{name} {number(v)}" for name, v in run.evaluation.items())
        made.add_row(
            run.run,
            run.state,
            f"{run.step:,}",
            f"{run.steps:,}",
            number(run.loss),
            evaluation or "–",
            f"{run.parameters:,}",
            "–" if run.tokens_per_second is None else f"{run.tokens_per_second:,.0f}",
        )
    yield made


def comparison_tables(record: RunComparison) -> Iterator[RenderableType]:
    """Yield what `heed runs compare` prints."""
    for title, found in (
        ("Settings", record.config),
        ("Data and machine", record.machine),
        ("Results", record.results),
    ):
        yield _differences(title, found, record)
    if record.same_weights is not None:
        same = "the same" if record.same_weights else "different"
        yield paragraph(f"The two runs ended with {same} weights.")


def _differences(title: str, found: Sequence[Difference], record: RunComparison) -> RenderableType:
    if not found:
        return paragraph(f"{title}: no difference.")
    made = table(title, "", record.first, record.second, left=(0, 1, 2))
    for difference in found:
        made.add_row(difference.name, _shown(difference.first), _shown(difference.second))
    return made


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, str) and HASH.fullmatch(value):
        return f"{value[:12]}…"
    return "–" if value is None else str(value)
