"""`heed lab`: run every part of the laboratory and write the report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import JsonFlag, show
from heedful.progress import meter
from heedful.studies.lab import Laboratory, Scale, lab_record, run_lab


def lab(
    *,
    output: Annotated[Path, Parameter(help="Folder for the report.")] = Path("lab"),
    only: Annotated[
        list[str] | None,
        Parameter(
            consume_multiple=True,
            help="Run these parts only: attention, claims, positions, translation, knowledge, "
            "pretrained, heads.",
        ),
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
    model: Annotated[
        str | None,
        Parameter(
            help="A public checkpoint that the translation part fine-tunes too, such as smollm2: "
            "a name, a folder or a file. [default: none]"
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
    are kept, and trainings go on where they stopped. On two quiet cores attention, claims and
    positions take half a minute together, translation three minutes, knowledge two, heads one;
    pretrained shows a stored measurement of a public model and takes seconds.

    Examples:

        heed lab
        heed lab --output my-lab --only attention claims
        heed lab --scale quick
        heed lab --corpus train.fr train.en --only translation heads
        heed lab --model smollm2
        heed lab --fresh --json
    """
    from heedful.views.report import draw_part, lab_blocks, write_report

    laboratory = Laboratory(
        output=output, scale=scale, corpus=tuple(corpus or ()), model=model or ""
    )
    parts = run_lab(laboratory, draw_part, only=only, fresh=fresh, watch=meter, say=_say)
    notice = QUICK_NOTICE if scale == "quick" else ""
    report = write_report(output, parts, command=laboratory.command(), notice=notice)
    show(lab_record(laboratory, parts, report), lab_blocks, json=json)
    return 0


QUICK_NOTICE = (
    "Written with --scale quick: the trainings only try the machinery. What is said here about "
    "trained models is true of these models, and says little about others."
)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
