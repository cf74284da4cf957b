"""`heed lab`: run every part of the laboratory and write the report."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from heedful.cli.lab_parts import Bench, Scale, chosen
from heedful.cli.output import JsonFlag, show
from heedful.errors import InputError, MissingPartError
from heedful.progress import meter

if TYPE_CHECKING:
    from heedful.views.report import PartRecord


def lab(
    *,
    output: Annotated[Path, Parameter(help="Folder for the report.")] = Path("lab"),
    only: Annotated[
        list[str] | None,
        Parameter(consume_multiple=True, help="Run these parts only: attention, claims, …"),
    ] = None,
    scale: Annotated[
        Scale,
        Parameter(
            help="How much is trained: quick only tries the machinery, standard takes minutes, "
            "course an evening."
        ),
    ] = "standard",
    corpus: Annotated[
        list[Path] | None,
        Parameter(
            consume_multiple=True,
            help="Pairs for the translation part: one file, or two such as train.fr train.en. "
            "[default: the phrasebook]",
        ),
    ] = None,
    fresh: Annotated[
        bool,
        Parameter(
            negative="",
            help="Make every part again, even where a result is at hand. Finished trainings are "
            "still used; remove the folder to train again.",
        ),
    ] = False,
    json: JsonFlag = False,
) -> int:
    """Run every part of the laboratory and write one self-contained HTML report.

    Parts that were finished by an earlier, interrupted run of the same version, scale and corpus
    are kept, and trainings go on where they stopped.

    Examples:

        heed lab
        heed lab --output my-lab --only attention claims
        heed lab --scale quick
        heed lab --corpus train.fr train.en --only translation heads
        heed lab --fresh --json
    """
    from heedful.views.report import (
        LabRecord,
        finished_part,
        keep_part,
        lab_blocks,
        summary_of,
        write_report,
    )

    parts = chosen(only)
    bench = Bench(output=output, scale=scale, corpus=tuple(corpus or ()))
    decided = {part.name: bench.decisive(part.decided_by) for part in parts}
    _prepare(output)
    done: list[PartRecord] = []
    for part in parts:
        found = None if fresh else finished_part(output, part.name, decided[part.name])
        if found is not None:
            _say(f"{part.name}: kept from an earlier run ({found.seconds:.1f} s)")
        else:
            started = time.perf_counter()
            try:
                with meter(part.says) as step:
                    found = part.run(bench, step)
            except MissingPartError as error:
                if only is not None:
                    raise
                _say(f"{part.name}: left out ({error})")
                continue
            found = found.made_by(bench.command(part.name), decided[part.name])
            keep_part(output, found)
            _say(f"{part.name}: {time.perf_counter() - started:.1f} s")
        done.append(found)
    notice = QUICK_NOTICE if scale == "quick" else ""
    report = write_report(output, done, command=bench.command(), notice=notice)
    record = LabRecord(
        report=str(report),
        scale=scale,
        parts=tuple(done),
        seconds=round(sum(part.seconds for part in done), 2),
        summary=summary_of(done),
        findings=tuple(finding for part in done for finding in part.findings),
    )
    show(record, lab_blocks, json=json)
    return 0


QUICK_NOTICE = (
    "Written with --scale quick: the trainings only try the machinery. What is said here about "
    "trained models is true of these models, and says little about others."
)


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
