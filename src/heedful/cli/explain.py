"""`heed explain`: why a claim is what it is, with its counterexample and its repair."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import FigurePath, JsonFlag, check_figure_path, draw, show
from heedful.errors import InputError


def explain(
    claim: Annotated[str, Parameter(help='The claim: "id", or "sheet/id".')],
    *,
    sheet: Annotated[
        list[Path] | None,
        Parameter(
            consume_multiple=True, help="Sheets or folders to look in. [default: the catalog]"
        ),
    ] = None,
    seconds: Annotated[float, Parameter(help="Time for the claim.")] = 60.0,
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Explain the verdict on one claim: the reasoning, the case where it fails, the repair.

    Examples:

        heed explain foundations/softmax-shift
        heed explain b --sheet answers.toml --figure b.svg
    """
    from heedful.claims.checker import Checker, Explanation
    from heedful.claims.sheet import catalog, claim_named, find_sheets
    from heedful.progress import meter
    from heedful.views.claims import explanation_blocks, verdict_figure
    from heedful.workers import TaskLimits

    check_figure_path(figure)
    sheets = find_sheets(sheet) if sheet else catalog()
    home, wanted = claim_named(sheets, claim)
    with (
        Checker(workers=1, limits=TaskLimits(seconds=seconds)) as checker,
        meter(f"judging {home.name}/{wanted.id}") as step,
    ):
        verdict = checker.judge_one(home, wanted, step)
    record = Explanation(claim=wanted, verdict=verdict)
    show(record, explanation_blocks, json=json)
    if figure is not None:
        drawn = verdict_figure(verdict)
        if drawn is None:
            raise InputError(
                "--figure",
                f"the verdict on {claim} has nothing to draw",
                expected="a counterexample with numbers, or an interval of draws",
            )
        draw(record, figure, lambda _: drawn)
    return 0
