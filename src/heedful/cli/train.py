"""From a corpus to a run.

heed data                           what is in a corpus; fetch a published one
heed train, heed resume, heed runs  begin a training, go on with it, compare runs
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heedful.cli.options import FigurePath, JsonFlag, check_figure_path, draw, show, verb_group
from heedful.errors import InputError
from heedful.progress import Meter, meter

if TYPE_CHECKING:
    from heedful.data.text_files import ReadOptions
    from heedful.studies.text_training import TextTraining
    from heedful.training import TrainingResult
    from heedful.training.hooks import Report
else:
    ReadOptions = Any
    Report = TextTraining = TrainingResult = Any

data_app = verb_group("data", "Inspect a corpus, or fetch a published one.")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LimitFlags:
    """Limits on what is read; see the page on limits."""

    max_bytes: Annotated[int, Parameter(help="Refuse larger files, unpacked.")] = 256 * 2**20
    max_line: Annotated[int, Parameter(help="Refuse longer lines, in bytes.")] = 1_000_000
    max_texts: Annotated[int, Parameter(help="Refuse more texts than this.")] = 5_000_000
    max_ratio: Annotated[
        float, Parameter(help="Refuse files that unpack to more than this times their size.")
    ] = 100.0


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ReadingFlags:
    """How to read files whose format is not clear from the files themselves."""

    format: Annotated[
        Literal["tsv", "parallel", "text", "jsonl", "po", "tmx"] | None,
        Parameter(help="Format of the files. [default: detected from names and first lines]"),
    ] = None
    languages: Annotated[
        tuple[str, str] | None,
        Parameter(help="The two languages, in the order of the file: en fr. [default: detected]"),
    ] = None
    source: Annotated[
        str | None, Parameter(help="The language to translate from. [default: the first]")
    ] = None
    columns: Annotated[
        tuple[int, int], Parameter(help="Which two columns of a TSV file hold the pair.")
    ] = (1, 2)
    fields: Annotated[
        list[str] | None,
        Parameter(
            consume_multiple=True,
            help="JSON lines: fields that hold the texts. [default: detected]",
        ),
    ] = None
    unit: Annotated[
        Literal["line", "paragraph", "file"],
        Parameter(help="Plain text: what counts as one document."),
    ] = "line"

    def options(self, limits: LimitFlags) -> ReadOptions:
        """Return the flags as `ReadOptions`."""
        from heedful.data.text_files import ReadLimits, ReadOptions

        return ReadOptions(
            format=self.format,
            languages=self.languages,
            source=self.source,
            columns=self.columns,
            fields=None if self.fields is None else tuple(self.fields),
            unit=self.unit,
            limits=ReadLimits(
                total_bytes=limits.max_bytes,
                line_bytes=limits.max_line,
                texts=limits.max_texts,
                ratio=limits.max_ratio,
            ),
        )


DEFAULT_READING = ReadingFlags()
DEFAULT_LIMITS = LimitFlags()


@data_app.command
def inspect(
    *paths: Annotated[Path, Parameter(help="Files of one or more corpora.")],
    reading: ReadingFlags = DEFAULT_READING,
    limits: LimitFlags = DEFAULT_LIMITS,
    examples: Annotated[int, Parameter(help="How many texts to show.")] = 5,
    figure: FigurePath = None,
    json: JsonFlag = False,
) -> int:
    """Show counts, lengths, odd characters, duplicates, groups, leaks and examples.

    PATHS are TSV, JSON lines, PO, TMX or plain text, compressed with gzip or not. Two files that
    differ only in the language they end in (train.fr.gz train.en.gz) are one parallel corpus.
    With several corpora, what they share is shown too.

    Examples:

        heed data inspect fra.txt --source fr
        heed data inspect train.fr.gz train.en.gz val.fr.gz val.en.gz
        heed data inspect wiki.txt --figure lengths.svg
    """
    check_figure_path(figure)
    from heedful.data.inspection import inspect_corpora
    from heedful.data.readers import read_corpora
    from heedful.views.data import inspection_blocks, inspection_figure

    record = inspect_corpora(read_corpora(paths, reading.options(limits)), examples)
    show(record, inspection_blocks, json=json)
    draw(record, figure, inspection_figure)
    return 0


@data_app.command
def get(
    name: Annotated[str, Parameter(help="tatoeba or multi30k.")],
    *,
    to: Annotated[
        Path | None, Parameter(help="Folder for the files. [default: your cache folder]")
    ] = None,
    json: JsonFlag = False,
) -> int:
    """Fetch a published corpus, check it, and say where it is and under which licence.

    Known: tatoeba (French-English sentence pairs, CC BY 2.0) and multi30k (captions, research
    and education only). A download that was cut goes on where it stopped. Your cache folder is
    $XDG_CACHE_HOME or ~/.cache, under heedful/data.

    Examples:

        heed data get tatoeba
        heed data get multi30k --to corpora
    """
    from heedful.data.published import fetch_corpus
    from heedful.progress import meter
    from heedful.views.data import fetched_data_blocks

    with meter(f"fetching {name}") as step:
        record = fetch_corpus(name, to, step)
    show(record, fetched_data_blocks, json=json)
    return 0


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
        hooks = Hooks(
            evaluate=held_out_loss(made.held_out),
            report=told_to(show_progress),
            adapt=made.adapt,
        )
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
        hooks = Hooks(
            evaluate=held_out_loss(made.held_out),
            report=told_to(show_progress),
            adapt=made.adapt,
        )
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
