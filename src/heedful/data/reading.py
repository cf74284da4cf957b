"""One door for every kind of file: what it is, is told from its name and its first lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from heedful.data.corpus import Documents, Pairs
from heedful.data.files import DEFAULT_LIMITS, Limits, TextFile, shown
from heedful.data.json_lines import read_json_lines
from heedful.data.pairs import language_ending, plain_name, read_parallel, read_tsv
from heedful.data.po import read_po
from heedful.data.text import Unit, read_text
from heedful.data.tmx import read_tmx
from heedful.errors import InputError

Format = Literal["tsv", "parallel", "text", "jsonl", "po", "tmx"]
BY_ENDING: dict[str, Format] = {
    ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".po": "po", ".pot": "po", ".tmx": "tmx",
}  # fmt: skip
LOOKED_AT = 100
"""Lines that decide whether a file of unknown ending holds columns."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How files are to be read; what is left open is told from the files."""

    format: Format | None = None
    """What the files are."""
    languages: tuple[str, str] | None = None
    """What the two sides of pairs are called, in the order of the file."""
    source: str | None = None
    """Which side is the source; the first one if left open."""
    columns: tuple[int, int] = (1, 2)
    """The two columns of a TSV file."""
    fields: tuple[str, ...] | None = None
    """The one or two fields of JSON lines."""
    unit: Unit = "line"
    """What one document of a plain text is."""
    limits: Limits = DEFAULT_LIMITS
    """What is read at most."""


AS_FOUND = Reading()


def read_corpora(
    paths: Sequence[Path], reading: Reading = AS_FOUND
) -> tuple[Documents | Pairs, ...]:
    """Read every file; two that differ only in the language they end in are one corpus."""
    if not paths:
        raise InputError("PATH", "names no file", expected="at least one file was expected")
    repeated = [path for place, path in enumerate(paths) if path in paths[:place]]
    if repeated:
        raise InputError("PATH", f"{shown(str(repeated[0]))} was given twice")
    corpora: list[Documents | Pairs] = []
    for first, second in _couples(list(paths), reading):
        if second is None:
            corpora.append(read_corpus(first, reading))
        else:
            corpora.append(
                read_parallel(
                    first,
                    second,
                    languages=reading.languages,
                    source=reading.source,
                    limits=reading.limits,
                )
            )
    return tuple(corpora)


def read_corpus(path: Path, reading: Reading = AS_FOUND) -> Documents | Pairs:
    """Read one file as what it is."""
    kind, reason = (reading.format, "") if reading.format else _told(path, reading.limits)
    limits, source, languages = reading.limits, reading.source, reading.languages
    corpus: Documents | Pairs
    if kind == "parallel":
        raise InputError(
            shown(str(path)),
            "is one file",
            expected="a parallel corpus has two, such as train.fr and train.en",
        )
    if kind == "tsv":
        corpus = read_tsv(
            path, languages=languages, source=source, columns=reading.columns, limits=limits
        )
    elif kind == "jsonl":
        corpus = read_json_lines(path, fields=reading.fields, limits=limits)
        if isinstance(corpus, Pairs):
            corpus = replace(corpus, languages=languages or corpus.languages)
            corpus = corpus if source is None else corpus.from_language(source)
    elif kind == "po":
        corpus = read_po(path, languages=languages, source=source, limits=limits)
    elif kind == "tmx":
        corpus = read_tmx(path, languages=languages, source=source, limits=limits)
    else:
        corpus = read_text(path, unit=reading.unit, limits=limits)
    if isinstance(corpus, Documents) and (source or languages):
        raise InputError(
            "source" if source else "languages",
            f"is for pairs, but {shown(corpus.name)} holds documents",
            way_out="leave it out, or say what the file is with --format",
        )
    return replace(corpus, notes=(reason, *corpus.notes)) if reason else corpus


def _told(path: Path, limits: Limits) -> tuple[Format, str]:
    """Return the format of a file, and the reason where its name does not give it."""
    ending = plain_name(path).suffix
    if ending in BY_ENDING:
        return BY_ENDING[ending], ""
    lines = TextFile(path, limits).first_lines(LOOKED_AT)
    tabs = {line.count("\t") for line in lines}
    if len(tabs) == 1 and (columns := tabs.pop() + 1) > 1:
        return "tsv", f"read as columns: each of the first {len(lines)} lines has {columns}"
    return "text", ""


def _couples(paths: list[Path], reading: Reading) -> list[tuple[Path, Path | None]]:
    if reading.format == "parallel":
        if len(paths) % 2:
            raise InputError(
                "PATH",
                f"{len(paths)} files were given",
                expected="parallel files come in twos",
            )
        return [(paths[place], paths[place + 1]) for place in range(0, len(paths), 2)]
    couples: list[tuple[Path, Path | None]] = []
    waiting: dict[Path, int] = {}
    for path in paths:
        stem = path.parent / plain_name(path).stem if language_ending(path) else None
        if reading.format is not None or stem is None:
            couples.append((path, None))
        elif stem in waiting:
            place = waiting.pop(stem)
            couples[place] = (couples[place][0], path)
        else:
            waiting[stem] = len(couples)
            couples.append((path, None))
    return couples
