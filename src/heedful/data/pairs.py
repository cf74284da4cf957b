"""Pairs from files: tab-separated columns, and two files of which line i translates line i.

A tab always separates: there is no quoting, so `"` is a character like any other. Every line
must have as many columns as the first, and two parallel files as many lines as each other;
nothing is ever cut to fit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from heedful.data.corpus import Pairs, check_count
from heedful.data.files import DEFAULT_LIMITS, Limits, TextFile
from heedful.data.language import guess_language
from heedful.errors import InputError

MOST_COLUMNS = 100

CODES = (
    "ar bg ca cs cy da de el en eo es et eu fa fi fr ga gl he hi hr hu hy id is it ja ka ko la lt "
    "lv mk ms mt nb nl nn no pl pt ro ru sk sl sq sr sv ta th tr uk ur vi zh "
    "deu ell eng epo fin fra hun ita jpn lat nld pol por ron rus spa swe tur ukr zho"
)
"""Codes of languages (ISO 639), as file names end in them and fields are called by them."""

_CODE = re.compile(r"([a-z]{2,3})([-_][A-Za-z]{2,4})?")


def read_tsv(
    path: Path,
    *,
    languages: tuple[str, str] | None = None,
    source: str | None = None,
    columns: tuple[int, int] = (1, 2),
    limits: Limits = DEFAULT_LIMITS,
) -> Pairs:
    """Read one pair a line from two of its columns, counted from 1.

    `languages` names the two columns in the order of the file; without it they are told from
    the commonest words, and the notes of the corpus give the reason. `source` chooses which
    of them is the source; without it the first one is.
    """
    file = TextFile(path, limits)
    if min(columns) < 1 or max(columns) > MOST_COLUMNS or columns[0] == columns[1]:
        raise InputError(
            "columns",
            f"are {columns[0]} and {columns[1]}",
            expected=f"two different numbers from 1 to {MOST_COLUMNS} were expected",
        )
    width = 0
    first: list[str] = []
    second: list[str] = []
    for number, line in enumerate(file.lines(), start=1):
        cells = line.split("\t")
        width = width or len(cells)
        if len(cells) != width:
            raise _ragged(file, number, len(cells), width)
        if width < max(columns):
            raise _too_few(file, number, width, columns)
        first.append(cells[columns[0] - 1])
        second.append(cells[columns[1] - 1])
        if number > limits.texts:
            break
    check_count(len(first), file.name, limits)
    names = tuple(f"column {number}" for number in columns)
    known, notes = name_sides((first, second), languages, (names[0], names[1]))
    if width > 2:
        unused = [str(number) for number in range(1, width + 1) if number not in columns]
        notes.append(f"of {width} columns, {', '.join(unused)} not read")
    pairs = Pairs(
        name=path.name,
        sources=tuple(first),
        targets=tuple(second),
        languages=known,
        origins=(file.origin,),
        notes=tuple(notes),
    )
    return pairs if source is None else pairs.from_language(source)


def read_parallel(
    first: Path,
    second: Path,
    *,
    languages: tuple[str, str] | None = None,
    source: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Pairs:
    """Read two files of one text a line; line i of the one belongs to line i of the other.

    The sides are called by the ends of the names (`train.fr.gz`, `train.en.gz`), else told
    from the commonest words.
    """
    files = (TextFile(first, limits), TextFile(second, limits))
    sides = [_all_lines(file, limits) for file in files]
    counts = [len(side) for side in sides]
    if counts[0] != counts[1]:
        raise InputError(
            files[0].name,
            f"has {counts[0]:,} lines, but {files[1].name} has {counts[1]:,}",
            expected="as many lines in the one as in the other",
            way_out="find the missing line; Heedful never cuts one side to fit",
        )
    check_count(counts[0], files[0].name, limits)
    ends = (language_ending(first), language_ending(second))
    if languages is None and ends[0] and ends[1] and ends[0] != ends[1]:
        languages = (ends[0], ends[1])
    known, notes = name_sides(sides, languages, (first.name, second.name))
    pairs = Pairs(
        name=_common_name(first, second),
        sources=tuple(sides[0]),
        targets=tuple(sides[1]),
        languages=known,
        origins=(files[0].origin, files[1].origin),
        notes=tuple(notes),
    )
    return pairs if source is None else pairs.from_language(source)


def language_ending(path: Path) -> str:
    """Return the language a file name ends in, before .gz; or nothing.

    >>> language_ending(Path("train.fr.gz")), language_ending(Path("notes.txt"))
    ('fr', '')
    """
    ending = plain_name(path).suffix.removeprefix(".")
    return ending if is_language(ending) else ""


def is_language(name: str) -> bool:
    """Tell whether a name is the code of a language, with or without its region.

    >>> is_language("fr"), is_language("pt-BR"), is_language("md")
    (True, True, False)
    """
    code = _CODE.fullmatch(name)
    return code is not None and code.group(1) in CODES.split()


def plain_name(path: Path) -> Path:
    """Return the name of a file without the .gz of its packing."""
    return Path(path.stem if path.suffix == ".gz" else path.name)


def name_sides(
    sides: Sequence[Sequence[str]], given: tuple[str, str] | None, standing_in: tuple[str, str]
) -> tuple[tuple[str, str], list[str]]:
    """Return what the two sides are called, and the notes that say why."""
    if given is not None:
        if given[0] == given[1]:
            raise InputError(
                "languages",
                f"are both {given[0]!r}",
                expected="two different names were expected",
            )
        return given, []
    guesses = [guess_language(side) for side in sides]
    notes = [f"{name} {guess.reason}" for name, guess in zip(standing_in, guesses, strict=True)]
    languages = [guess.language for guess in guesses]
    if languages[0] is None or languages[1] is None or languages[0] == languages[1]:
        return standing_in, notes
    return (languages[0], languages[1]), notes


def _all_lines(file: TextFile, limits: Limits) -> list[str]:
    found: list[str] = []
    for line in file.lines():
        found.append(line)
        if len(found) > limits.texts:
            check_count(len(found), file.name, limits)
    return found


def _common_name(first: Path, second: Path) -> str:
    ends = (language_ending(first), language_ending(second))
    stems = (plain_name(first).stem, plain_name(second).stem)
    if all(ends) and stems[0] == stems[1]:
        return f"{stems[0]}.{ends[0]}+{ends[1]}"
    return f"{first.name}+{second.name}"


def _ragged(file: TextFile, number: int, found: int, expected: int) -> InputError:
    return InputError(
        file.at(number),
        f"has {found} column{'' if found == 1 else 's'}",
        expected=f"{expected} were expected, as in the first line",
        way_out="columns are separated by one tab each; there is no quoting",
    )


def _too_few(file: TextFile, number: int, found: int, columns: tuple[int, int]) -> InputError:
    return InputError(
        file.at(number),
        f"has {found} column{'' if found == 1 else 's'}",
        expected=f"columns {columns[0]} and {columns[1]}, separated by tabs, were expected",
        way_out="choose others with --columns, or read it with --format text",
    )
