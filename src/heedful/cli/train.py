"""`heed train`, `heed resume` and `heed runs`: begin a training, go on with it, compare runs."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heedful.cli.options import JsonFlag, show, verb_group
from heedful.errors import InputError
from heedful.progress import Meter, meter

if TYPE_CHECKING:
    from heedful.studies.text_training import TextTraining
    from heedful.training import TrainingResult
    from heedful.training.hooks import Report
else:  # these classes live beside torch, which is loaded only when a training begins
    Report = TextTraining = TrainingResult = Any

StrategyFlag = Annotated[
    Literal["single", "ddp", "fsdp"],
    Parameter(
        help="Under torchrun: ddp copies the weights to every process, fsdp spreads them over all."
    ),
]


def train(
    config: Annotated[Path, Parameter(help="A TOML file: what to train, on what, for how long.")],
    *,
    run: Annotated[
        Path | None,
        Parameter(
            name=("--run", "--folder"),
            help="Folder of the run. torchrun knows only --folder. [default: runs/NAME of CONFIG]",
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        Parameter(
            name="--set",
            consume_multiple=True,
            help="Override settings of the file: steps=100 data.rows=8.",
        ),
    ] = None,
    files: Annotated[
        list[Path] | None,
        Parameter(consume_multiple=True, help="Files of the corpus, instead of data.files."),
    ] = None,
    held_out_files: Annotated[
        list[Path] | None,
        Parameter(consume_multiple=True, help="Held-out files, instead of data.held_out_files."),
    ] = None,
    strategy: StrategyFlag = "single",
    json: JsonFlag = False,
) -> int:
    """Train a decoder described by a TOML file; a run is a folder that can be resumed.

    The smallest file has steps = 300, a table [model] with preset = "tiny", and a table [data]
    with source = "phrasebook", "biographies" or "files"; everything else has a default. The
    finished model is in RUN/model. Ctrl-C finishes the step and saves; a second one ends at once.

    Examples:

        heed train phrasebook.toml
        heed train phrasebook.toml --run runs/first
        heed train phrasebook.toml --set steps=100 optimiser.kind=adamw
        heed train pairs.toml --files train.fr train.en --held-out-files val.fr val.en
        torchrun --nproc-per-node 2 -m heedful train pairs.toml --folder runs/two --strategy ddp
    """
    from heedful.studies.text_training import prepare
    from heedful.training import Hooks
    from heedful.training import resume as go_on
    from heedful.training import train as begin
    from heedful.training.config import read_values, with_changes
    from heedful.training.folder import RunFolder
    from heedful.training.loss import held_out_loss

    folder = run or Path("runs") / config.stem
    # torchrun starts everybody again when one process died: then the run is there already.
    again = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    values = with_changes(read_values(config), changes or ())
    if "RANK" not in os.environ:  # of several processes, one may have made the folder already
        RunFolder(folder).check_new()  # before a large corpus is read for nothing
    made = prepare(_with_files(values, files, held_out_files))
    with meter("starting") as show_progress:
        hooks = Hooks(evaluate=held_out_loss(made.held_out), report=told_to(show_progress))
        if again and (folder / "config.json").is_file():
            result = go_on(folder, made.batches, data=made.hashes, hooks=hooks, strategy=strategy)
        else:
            result = begin(
                made.config,
                made.batches,
                folder,
                data=made.hashes,
                hooks=hooks,
                strategy=strategy,
            )
    return finish(result, made, json=json)


def _with_files(
    values: dict[str, Any], files: list[Path] | None, held_out: list[Path] | None
) -> dict[str, Any]:
    """Return the settings with the files of the command line; a run is resumed from anywhere."""
    given = {"files": files, "held_out_files": held_out}
    named = {
        name: [str(path.absolute()) for path in paths] for name, paths in given.items() if paths
    }
    data = values.get("data")
    return {**values, "data": {**data, **named}} if named and isinstance(data, dict) else values


def finish(result: TrainingResult, made: TextTraining, *, json: bool) -> int:
    """Write the model of a finished run, show how it ended, and return the exit code."""
    from heedful.views.models import training_blocks

    if result.weights_sha256:  # of several processes, the first one
        if result.finished:
            _write_model(Path(result.run), Path(result.checkpoint), made)
        show(result, training_blocks, json=json)
    if result.finished:
        return 0
    return 128 + int(signal.Signals[result.stopped_by])


def _write_model(run: Path, checkpoint: Path, made: TextTraining) -> None:
    """Put the trained decoder beside its tokenizer, where `heed model info RUN/model` finds it."""
    from heedful.studies.translation.model_card import write_card
    from heedful.studies.translation.translator import format_of, keep_model
    from heedful.training import trained_decoder

    keep_model(run, lambda: trained_decoder(checkpoint), made.tokenizer, format_of(made))
    write_card(run)


def told_to(show_progress: Meter) -> Report:
    """Return a hook that shows every step."""
    return lambda state: show_progress.tell(state.line, state.step / state.steps)


def resume(
    run: Annotated[Path, Parameter(help="Folder of the run, as heed runs lists it.")],
    *,
    strategy: StrategyFlag = "single",
    json: JsonFlag = False,
) -> int:
    """Resume a run from its newest intact checkpoint.

    On the same machine, with the same threads, the weights at the end are bit for bit those of a
    run that was never interrupted. Damaged checkpoints are skipped and reported. A finished
    run is left as it is.

    Examples:

        heed resume runs/phrasebook
    """
    from heedful.studies.text_training import prepare
    from heedful.training import Hooks
    from heedful.training import resume as go_on
    from heedful.training.folder import RunFolder
    from heedful.training.loss import held_out_loss

    settings = RunFolder(run).settings()
    if "source" not in (settings.get("data") or {}):
        raise InputError(
            str(run),
            "does not say where its data comes from: a study or a program began it",
            hint="start that again",
        )
    made = prepare(settings)
    with meter("starting") as show_progress:
        hooks = Hooks(evaluate=held_out_loss(made.held_out), report=told_to(show_progress))
        result = go_on(run, made.batches, data=made.hashes, hooks=hooks, strategy=strategy)
    return finish(result, made, json=json)


RunPath = Annotated[Path, Parameter(help="Folder of a run.")]

runs_app = verb_group("runs", "List runs, or compare two.")


@runs_app.default
def runs(
    folder: Annotated[Path, Parameter(help="Where the runs are.")] = Path("runs"),
    *,
    json: JsonFlag = False,
) -> int:
    """List the runs in a folder: progress, last loss and evaluation, speed.

    Examples:

        heed runs
        heed runs my-runs --json
    """
    from heedful.training import list_runs
    from heedful.views.models import runs_blocks

    show(list_runs(folder), runs_blocks, json=json)
    return 0


@runs_app.command
def compare(first: RunPath, second: RunPath, *, json: JsonFlag = False) -> int:
    """Show what differs between two runs: settings, data and machine, results.

    Ends by saying whether both have the same weights.

    Examples:

        heed runs compare runs/adamw runs/muon
    """
    from heedful.training import compare_runs
    from heedful.views.models import comparison_blocks

    show(compare_runs(first, second), comparison_blocks, json=json)
    return 0
