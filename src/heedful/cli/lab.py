"""`heed lab`: run every part of the laboratory and write the report."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from heedful.cli.output import JsonFlag, show
from heedful.cli.progress import Step, progress
from heedful.errors import InputError, MissingPartError

if TYPE_CHECKING:
    from heedful.report.lab_record import PartRecord


class Part(NamedTuple):
    """One part of the laboratory."""

    name: str
    says: str
    run: Callable[[Step, Path], PartRecord]
    """Gets how to tell its progress, and the folder of the laboratory, for runs it may keep."""


def lab(
    *,
    output: Annotated[Path, Parameter(help="Folder for the report.")] = Path("lab"),
    only: Annotated[
        list[str] | None,
        Parameter(consume_multiple=True, help="Run these parts only: attention, claims, …"),
    ] = None,
    fresh: Annotated[
        bool, Parameter(negative="", help="Run every part again, even where a result is at hand.")
    ] = False,
    json: JsonFlag = False,
) -> int:
    """Run every part of the laboratory and write one self-contained HTML report.

    Parts that were finished by an earlier, interrupted run of the same version are kept;
    --fresh runs them again.

    Examples:

        heed lab
        heed lab --output my-lab --only attention claims
        heed lab --fresh --json
    """
    from heedful.report.lab_record import (
        LabRecord,
        finished_part,
        keep_part,
        lab_tables,
        write_report,
    )

    chosen = _chosen(only)
    _prepare(output)
    done: list[PartRecord] = []
    for part in chosen:
        found = None if fresh else finished_part(output, part.name)
        if found is not None:
            _say(f"{part.name}: kept from an earlier run ({found.seconds:.1f} s)")
        else:
            started = time.perf_counter()
            try:
                with progress(part.says) as step:
                    found = part.run(step, output)
            except MissingPartError as error:
                if only is not None:
                    raise
                _say(f"{part.name}: left out ({error})")
                continue
            keep_part(output, found)
            _say(f"{part.name}: {time.perf_counter() - started:.1f} s")
        done.append(found)
    report = write_report(output, done)
    record = LabRecord(
        report=str(report),
        parts=tuple(done),
        seconds=round(sum(part.seconds for part in done), 2),
        findings=tuple(finding for part in done for finding in part.findings),
    )
    show(record, lab_tables, json=json)
    return 0


def _attention(step: Step, _output: Path) -> PartRecord:
    from heedful.report.exploration_section import exploration_section
    from heedful.report.lab_record import PartRecord
    from heedful.studies.exploration import explore

    started = time.perf_counter()
    record = explore(step)
    section = exploration_section(record, time.perf_counter() - started)
    return PartRecord.of(section, record)


def _claims(step: Step, _output: Path) -> PartRecord:
    from heedful.claims.runner import check
    from heedful.report.claims_section import claims_section
    from heedful.report.lab_record import PartRecord

    started = time.perf_counter()
    record = check([], progress=step)
    section = claims_section(record, time.perf_counter() - started)
    return PartRecord.of(section, record)


def _positions(step: Step, _output: Path) -> PartRecord:
    from heedful.positions import positions_study
    from heedful.report.lab_record import PartRecord
    from heedful.report.positions_section import positions_section

    started = time.perf_counter()
    record = positions_study("sinusoidal", length=512, width=64)
    step(1, 1)
    section = positions_section(record, time.perf_counter() - started)
    return PartRecord.of(section, record)


def _translation(step: Step, output: Path) -> PartRecord:
    from heedful.report.lab_record import PartRecord
    from heedful.report.translation_section import translation_section
    from heedful.studies.translation.elsewhere import at_hand
    from heedful.studies.translation.settings import study_settings
    from heedful.studies.translation.study import run_study

    # A checkpoint of others is used where it is at hand; nothing is fetched.
    settings = study_settings({"elsewhere": LAB_ELSEWHERE} if at_hand() else {})
    record = run_study(
        settings,
        output / "translation",
        tell=lambda _what, share: step(round(1000 * share), 1000),
    )
    section = translation_section(record, 60.0 * record.minutes)
    return PartRecord.of(section, record)


def _knowledge(step: Step, output: Path) -> PartRecord:
    from heedful.report.knowledge_section import knowledge_section
    from heedful.report.lab_record import PartRecord
    from heedful.studies.knowledge.plans import plan_for
    from heedful.studies.knowledge.study import knowledge_study

    folder = output / "knowledge"
    record = knowledge_study(*plan_for(), folder, step)
    section = knowledge_section(record, 60.0 * record.minutes, folder=str(folder))
    return PartRecord.of(section, record)


def _heads(step: Step, output: Path) -> PartRecord:
    from heedful.cli.study_heads import lab_study
    from heedful.report.heads_section import heads_section
    from heedful.report.lab_record import PartRecord

    started = time.perf_counter()
    record = lab_study(output, step)
    section = heads_section(record, time.perf_counter() - started)
    return PartRecord.of(section, record)


LAB_ELSEWHERE = {"model": "smollm2", "sizes": [500], "steps": 30, "sentences": 100}
"""The third arm inside the laboratory: seconds a step, so few of them."""

PARTS = (
    Part("attention", "exploring attention", _attention),
    Part("claims", "judging the claims of the catalog", _claims),
    Part("positions", "looking at position embeddings", _positions),
    Part("translation", "learning to translate", _translation),
    Part("knowledge", "teaching and asking", _knowledge),
    Part("heads", "watching the heads of a trained model", _heads),
)


def _chosen(only: list[str] | None) -> tuple[Part, ...]:
    names = [part.name for part in PARTS]
    for name in only or ():
        if name not in names:
            raise InputError(
                "--only", f"there is no part {name!r}", expected=f"one of {', '.join(names)}"
            )
    return tuple(part for part in PARTS if only is None or part.name in only)


def _prepare(output: Path) -> None:
    if output.exists() and not output.is_dir():
        raise InputError("--output", f"{output} is a file", expected="a folder")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            "--output",
            f"{output} cannot be made ({error.strerror})",
            way_out="choose another folder",
        ) from None


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
