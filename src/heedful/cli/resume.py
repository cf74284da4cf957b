"""`heed resume`: go on with a run as if nothing had happened."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import JsonFlag
from heedful.cli.train import StrategyFlag, finish, told_to
from heedful.errors import InputError
from heedful.progress import meter


def resume(
    run: Annotated[Path, Parameter(help="Folder of the run, as heed runs lists it.")],
    *,
    strategy: StrategyFlag = "single",
    json: JsonFlag = False,
) -> int:
    """Go on with a run from its newest whole checkpoint.

    On the same machine, with the same threads, the weights at the end are bit for bit those of a
    run that was never interrupted. Damaged checkpoints are skipped, and named. A run that is
    finished stays as it is.

    Examples:

        heed resume runs/phrasebook
    """
    from heedful.studies.text_training import prepare
    from heedful.training import Hooks
    from heedful.training import resume as go_on
    from heedful.training.evaluation import held_out_loss
    from heedful.training.folder import RunFolder

    settings = RunFolder(run).settings()
    if "source" not in (settings.get("data") or {}):
        raise InputError(
            str(run),
            "does not say where its data comes from: a study or a program began it",
            way_out="start that again",
        )
    made = prepare(settings)
    with meter("starting") as show_progress:
        hooks = Hooks(evaluate=held_out_loss(made.held_out), report=told_to(show_progress))
        result = go_on(run, made.batches, data=made.hashes, hooks=hooks, strategy=strategy)
    return finish(result, made, json=json)
