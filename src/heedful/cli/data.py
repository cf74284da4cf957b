"""`heed data`: what is in a corpus, and fetch one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heedful.cli.options import FigurePath, JsonFlag, check_figure_path, draw, show, verb_group

if TYPE_CHECKING:
    from heedful.data.text_files import ReadOptions
else:
    ReadOptions = Any

app = verb_group("data", "Inspect a corpus, or fetch a published one.")


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


@app.command
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


@app.command
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
