"""`heed runs`: which runs there are, and what two of them do differently."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from heedful.cli.output import JsonFlag, show

RunPath = Annotated[Path, Parameter(help="Folder of a run.")]

app = App(
    name="runs",
    help="List runs, or compare two.",
    help_format="plaintext",
    result_action="return_value",
)


@app.default
def runs(
    folder: Annotated[Path, Parameter(help="Where the runs are.")] = Path("runs"),
    *,
    json: JsonFlag = False,
) -> int:
    """List the runs in a folder: how far they are, their last loss and evaluation, their speed.

    Examples:

        heed runs
        heed runs my-runs --json
    """
    from heedful.training import list_runs
    from heedful.views.models import runs_blocks

    show(list_runs(folder), runs_blocks, json=json)
    return 0


@app.command
def compare(first: RunPath, second: RunPath, *, json: JsonFlag = False) -> int:
    """Show what differs between two runs: settings, data and machine, results.

    Says at the end whether both came to the same weights.

    Examples:

        heed runs compare runs/adamw runs/muon
    """
    from heedful.training import compare_runs
    from heedful.views.models import comparison_blocks

    show(compare_runs(first, second), comparison_blocks, json=json)
    return 0
