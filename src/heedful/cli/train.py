"""`heed train`: begin a training that a TOML file describes."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heedful.cli.output import JsonFlag, show

if TYPE_CHECKING:
    from heedful.studies.text_training import TextTraining
    from heedful.training import TrainingResult
else:  # these classes live beside torch, which is loaded only when a training begins
    TextTraining = TrainingResult = Any

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
            help="Settings in place of the file's: steps=100 data.rows=8.",
        ),
    ] = None,
    files: Annotated[
        list[Path] | None,
        Parameter(consume_multiple=True, help="Files of the corpus, in place of data.files."),
    ] = None,
    held_out_files: Annotated[
        list[Path] | None,
        Parameter(consume_multiple=True, help="Likewise, in place of data.held_out_files."),
    ] = None,
    strategy: StrategyFlag = "single",
    json: JsonFlag = False,
) -> int:
    """Train a decoder as a TOML file says; a run is a folder that can be resumed.

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
    from heedful.training import Hooks, resume
    from heedful.training import train as begin
    from heedful.training.config import read_values, with_changes
    from heedful.training.evaluation import held_out_loss
    from heedful.training.folder import RunFolder

    folder = run or Path("runs") / config.stem
    # torchrun starts everybody again when one process died: then the run is there already.
    again = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    values = with_changes(read_values(config), changes or ())
    if "RANK" not in os.environ:  # of several processes, one may have made the folder already
        RunFolder(folder).check_new()  # before a large corpus is read for nothing
    made = prepare(_with_files(values, files, held_out_files))
    with progress_line() as report:
        hooks = Hooks(evaluate=held_out_loss(made.held_out), report=report)
        if again and (folder / "config.json").is_file():
            result = resume(folder, made.batches, data=made.hashes, hooks=hooks, strategy=strategy)
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
    from heedful.views.training_views import result_tables

    if result.weights_sha256:  # of several processes, the first one
        if result.finished:
            _write_model(Path(result.run), Path(result.checkpoint), made)
        show(result, result_tables, json=json)
    if result.finished:
        return 0
    return 128 + int(signal.Signals[result.stopped_by])


def _write_model(run: Path, checkpoint: Path, made: TextTraining) -> None:
    """Put the trained decoder beside its tokenizer, where `heed model info RUN/model` finds it."""
    from heedful.model import write_folder
    from heedful.studies.translation.model_card import write_card
    from heedful.studies.translation.opening import format_of
    from heedful.training.trained import trained_decoder

    model = run / "model"
    if not model.exists():
        write_folder(trained_decoder(checkpoint), model, tokenizer=made.tokenizer)
    pairs = format_of(made)
    if pairs is not None:
        pairs.write(model)
    write_card(run)


@contextmanager
def progress_line() -> Iterator[Any]:
    """Show one line on stderr while the block trains; nothing when it is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    class Screen(Console):
        """Never hides the cursor: a training that is killed could not bring it back."""

        def show_cursor(self, show: bool = True) -> bool:
            return False

    screen = Screen(stderr=True)
    if not screen.is_terminal or os.environ.get("RANK", "0") != "0":
        yield None
        return
    with Progress(
        BarColumn(bar_width=20),
        TextColumn("{task.description}"),
        console=screen,
        transient=True,
        auto_refresh=False,  # no thread of its own: it would take time from the lanes
    ) as bar:
        task = bar.add_task("starting")
        shown = 0.0

        def report(state: Any) -> None:
            nonlocal shown
            now = time.monotonic()
            if now - shown < 0.25 and state.step < state.steps:
                return
            shown = now
            text = (
                f"step {state.step:,}/{state.steps:,}  loss {state.loss:.3f}  "
                f"{state.tokens_per_second:,.0f} tokens/s  {state.utilisation:.0%} used  "
                f"{_duration(state.seconds_left)} left"
            )
            bar.update(task, completed=state.step, total=state.steps, description=text)
            bar.refresh()

        yield report
    sys.stderr.flush()


def _duration(seconds: float) -> str:
    """Write a duration as people read it.

    >>> _duration(42.4), _duration(200), _duration(9000)
    ('42 s', '3 min 20 s', '2 h 30 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
