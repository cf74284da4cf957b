"""Readers of corpora: columns, parallel files, plain text, JSON lines, PO and TMX.

`read_corpora` is the one door: what a file is, is told from its name and its first lines.

- Columns are separated by one tab each; there is no quoting, so `"` is a character like any other.
  Every line must have as many columns as the first.
- Parallel files must have as many lines as each other; nothing is ever cut to fit.
- Blank lines of plain text are empty documents when every line is one: they are kept and counted,
  because a reader that drops lines in silence makes line numbers lie.
- JSON lines hold one object a line. Which fields are read is told by the first object, or chosen:
  `text` (also `content`, `document`, `story`) makes documents; `source` and `target`, `question`
  and `answer`, `prompt` and `completion`, two language codes, or `translation` with two language
  codes inside makes pairs. Every object must have them, as strings. Blank lines are left out and
  counted.

What becomes a pair of a PO file (the translations of a program), and what does not:

- an entry with a translation: one pair;
- an entry with a plural and two forms: two pairs, singular with form 0, plural with form 1;
- left out and counted: the header, entries without a translation, entries marked `fuzzy`
  (nobody has approved them), obsolete entries (`#~`), plurals with another number of forms
  (which form belongs to which original is not written in the file).

TMX, the exchange of translation memories, is parsed as a stream. A DOCTYPE is refused before
anything of it is read, so there are no entities to expand and nothing outside the file is ever
opened. A unit (`tu`) with a segment in both languages becomes a pair. Text inside `hi` belongs to
the segment; codes of other programs (`bpt`, `ept`, `it`, `ph`, `ut`) and what is inside them do
not. Left out and counted: units without one of the languages, and second segments of a unit in one
language.

docs/decisions/dependencies.md says why neither polib nor defusedxml reads them.

To add a format: a function `(path, options) -> corpus`, its name in `Format`, and an entry in
`_READERS` (and in `_BY_ENDING`, where the name of a file tells it).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any
from xml.parsers import expat

from heedful.data.corpus import Documents, Pairs
from heedful.data.languages import is_language, language_ending, name_sides, plain_name
from heedful.data.text_files import AS_FOUND, Format, ReadOptions, TextFile, Unit, shown
from heedful.errors import InputError

_BY_ENDING: dict[str, Format] = {
    ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".po": "po", ".pot": "po", ".tmx": "tmx",
}  # fmt: skip
LOOKED_AT = 100
"""Lines that decide whether a file of unknown ending holds columns."""
MOST_COLUMNS = 100
ONE_FIELD = ("text", "content", "document", "story")
TWO_FIELDS = (("source", "target"), ("question", "answer"), ("prompt", "completion"))


def read_corpora(
    paths: Sequence[Path], options: ReadOptions = AS_FOUND
) -> tuple[Documents | Pairs, ...]:
    """Read every file; two that differ only in the language they end in are one corpus."""
    if not paths:
        raise InputError("PATH", "names no file", expected="at least one file was expected")
    repeated = [path for place, path in enumerate(paths) if path in paths[:place]]
    if repeated:
        raise InputError("PATH", f"{shown(str(repeated[0]))} was given twice")
    return tuple(
        read_corpus(first, options) if second is None else read_parallel(first, second, options)
        for first, second in _couples(list(paths), options)
    )


def read_corpus(path: Path, options: ReadOptions = AS_FOUND) -> Documents | Pairs:
    """Read one file as what it is."""
    kind, reason = (options.format, "") if options.format else _told(path, options)
    if kind == "parallel":
        raise InputError(
            shown(str(path)),
            "is one file",
            expected="a parallel corpus has two, such as train.fr and train.en",
        )
    corpus = _READERS[kind](path, options)
    if isinstance(corpus, Documents) and (options.source or options.languages):
        raise InputError(
            "source" if options.source else "languages",
            f"is for pairs, but {shown(corpus.name)} holds documents",
            hint="leave it out, or say what the file is with --format",
        )
    return replace(corpus, notes=(reason, *corpus.notes)) if reason else corpus


def _told(path: Path, options: ReadOptions) -> tuple[Format, str]:
    """Return the format of a file, and the reason where its name does not give it."""
    ending = plain_name(path).suffix
    if ending in _BY_ENDING:
        return _BY_ENDING[ending], ""
    lines = TextFile(path, options.limits).first_lines(LOOKED_AT)
    tabs = {line.count("\t") for line in lines}
    if len(tabs) == 1 and (columns := tabs.pop() + 1) > 1:
        return "tsv", f"read as columns: each of the first {len(lines)} lines has {columns}"
    return "text", ""


def _couples(paths: list[Path], options: ReadOptions) -> list[tuple[Path, Path | None]]:
    if options.format == "parallel":
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
        if options.format is not None or stem is None:
            couples.append((path, None))
        elif stem in waiting:
            place = waiting.pop(stem)
            couples[place] = (couples[place][0], path)
        else:
            waiting[stem] = len(couples)
            couples.append((path, None))
    return couples


# Columns and parallel files


def read_tsv(path: Path, options: ReadOptions = AS_FOUND) -> Pairs:
    """Read one pair a line from two of its columns.

    Without `languages` the columns are told from the commonest words, and the notes of the corpus
    give the reason.
    """
    file, columns = TextFile(path, options.limits), options.columns
    if min(columns) < 1 or max(columns) > MOST_COLUMNS or columns[0] == columns[1]:
        raise InputError(
            "columns",
            f"are {columns[0]} and {columns[1]}",
            expected=f"two different numbers from 1 to {MOST_COLUMNS} were expected",
        )
    width = 0
    rows: list[tuple[str, str]] = []
    for number, line in enumerate(_up_to_limit(file), start=1):
        cells = line.split("\t")
        width = width or len(cells)
        if len(cells) != width or width < max(columns):
            raise _wrong_columns(file, number, len(cells), width, columns)
        rows.append((cells[columns[0] - 1], cells[columns[1] - 1]))
    file.check_count(len(rows))
    sides = [tuple(side) for side in zip(*rows, strict=True)]
    names = (f"column {columns[0]}", f"column {columns[1]}")
    known, notes = name_sides(sides, options.languages, names)
    if width > 2:
        unused = [str(number) for number in range(1, width + 1) if number not in columns]
        notes.append(f"of {width} columns, {', '.join(unused)} not read")
    return Pairs.read([file], sides, known, options, notes=notes)


def read_parallel(first: Path, second: Path, options: ReadOptions = AS_FOUND) -> Pairs:
    """Read two files of one text a line; line i of the one belongs to line i of the other.

    The sides are called by the ends of the names (`train.fr.gz`, `train.en.gz`), else told
    from the commonest words.
    """
    files = (TextFile(first, options.limits), TextFile(second, options.limits))
    sides = [list(_up_to_limit(file)) for file in files]
    counts = [len(side) for side in sides]
    if counts[0] != counts[1] and max(counts) <= options.limits.texts:
        raise InputError(
            files[0].name,
            f"has {counts[0]:,} lines, but {files[1].name} has {counts[1]:,}",
            expected="as many lines in the one as in the other",
            hint="find the missing line; Heedful never cuts one side to fit",
        )
    for file, count in zip(files, counts, strict=True):
        file.check_count(count)
    ends = (language_ending(first), language_ending(second))
    languages = options.languages
    if languages is None and ends[0] and ends[1] and ends[0] != ends[1]:
        languages = ends
    known, notes = name_sides(sides, languages, (first.name, second.name))
    stems = (plain_name(first).stem, plain_name(second).stem)
    alike = all(ends) and stems[0] == stems[1]
    name = f"{stems[0]}.{ends[0]}+{ends[1]}" if alike else f"{first.name}+{second.name}"
    return Pairs.read(files, sides, known, options, name=name, notes=notes)


def _up_to_limit(file: TextFile) -> Iterator[str]:
    """Yield lines until there is one more than the limit allows."""
    return islice(file.lines(), file.limits.texts + 1)


def _wrong_columns(
    file: TextFile, number: int, found: int, width: int, columns: tuple[int, int]
) -> InputError:
    has = f"has {found} column{'' if found == 1 else 's'}"
    if found != width:
        return InputError(
            file.at(number),
            has,
            expected=f"{width} were expected, as in the first line",
            hint="columns are separated by one tab each; there is no quoting",
        )
    return InputError(
        file.at(number),
        has,
        expected=f"columns {columns[0]} and {columns[1]}, separated by tabs, were expected",
        hint="choose others with --columns, or read it with --format text",
    )


# Plain text


def read_text(path: Path, options: ReadOptions = AS_FOUND) -> Documents:
    """Read documents from a plain text file: one a line, one a paragraph, or the whole file."""
    file = TextFile(path, options.limits)
    texts = tuple(islice(_UNITS[options.unit](file.lines()), options.limits.texts + 1))
    file.check_count(len(texts))
    notes = () if options.unit == "line" else (f"one document a {options.unit}",)
    return Documents(name=path.name, texts=texts, origins=(file.origin,), notes=notes)


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    waiting: list[str] = []
    for line in lines:
        if line.strip():
            waiting.append(line)
        elif waiting:
            yield "\n".join(waiting)
            waiting = []
    if waiting:
        yield "\n".join(waiting)


def _whole(lines: Iterable[str]) -> Iterator[str]:
    text = list(lines)
    if text:
        yield "\n".join(text)


_UNITS: dict[Unit, Callable[[Iterable[str]], Iterator[str]]] = {
    "line": iter,
    "paragraph": _paragraphs,
    "file": _whole,
}


# JSON lines


def read_json_lines(path: Path, options: ReadOptions = AS_FOUND) -> Documents | Pairs:
    """Read one field of each object as a document, or two as a pair."""
    file, fields = TextFile(path, options.limits), options.fields
    if fields is not None and len(set(fields)) not in (1, 2):
        raise InputError(
            "fields", f"names {len(fields)} fields", expected="one or two were expected"
        )
    chosen = fields
    rows: list[tuple[str, ...]] = []
    blank = 0
    for number, line in enumerate(file.lines(), start=1):
        if not line.strip():
            blank += 1
            continue
        entry = _object(line, file, number)
        chosen = _fields_of(entry, file, number) if chosen is None else chosen
        rows.append(tuple(_text(entry, field, file, number) for field in chosen))
        if len(rows) > options.limits.texts:
            break
    file.check_count(len(rows))
    assert chosen is not None
    notes = [] if fields else [f"read from the field{'s' * (len(chosen) - 1)} {_listed(chosen)}"]
    left_out = {"blank lines": blank} if blank else {}
    sides = [tuple(side) for side in zip(*rows, strict=True)]
    if len(chosen) == 1:
        return Documents(
            name=path.name,
            texts=sides[0],
            origins=(file.origin,),
            notes=tuple(notes),
            left_out=left_out,
        )
    names = (chosen[0].rpartition(".")[2], chosen[1].rpartition(".")[2])
    are_languages = all(map(is_language, names))
    known, reasons = name_sides(sides, names if are_languages or fields else None, names)
    known = options.languages or known
    return Pairs.read([file], sides, known, options, notes=notes + reasons, left_out=left_out)


def _object(line: str, file: TextFile, number: int) -> dict[str, Any]:
    try:
        entry = json.loads(line, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        raise _not_an_object(file, number, f"is not JSON at column {error.colno}") from None
    except RecursionError:
        raise _not_an_object(file, number, "is nested too deeply") from None
    except ValueError as error:  # a name twice, or a number with thousands of digits
        raise _not_an_object(file, number, f"is not usable JSON ({shown(str(error))})") from None
    if not isinstance(entry, dict):
        raise _not_an_object(file, number, f"is a JSON {type(entry).__name__}")
    return entry


def _without_repeats(items: list[tuple[str, Any]]) -> dict[str, Any]:
    entry = dict(items)
    if len(entry) != len(items):
        raise ValueError("a name stands twice in one object")
    return entry


def _fields_of(entry: dict[str, Any], file: TextFile, number: int) -> tuple[str, ...]:
    for name in ONE_FIELD:
        if name in entry:
            return (name,)
    for names in TWO_FIELDS:
        if all(name in entry for name in names):
            return names
    inside = entry.get("translation")
    prefix, place = ("translation.", inside) if isinstance(inside, dict) else ("", entry)
    codes = [name for name in place if is_language(name)]
    if len(codes) == 2:
        return (prefix + codes[0], prefix + codes[1])
    raise InputError(
        file.at(number),
        f"has the fields {_listed(tuple(entry)[:8]) or 'none'}",
        expected="text, source and target, or two language codes were expected",
        hint="say which ones to read, for instance --fields fr en",
    )


def _text(entry: dict[str, Any], field: str, file: TextFile, number: int) -> str:
    outer, dot, inner = field.partition(".")
    place: Any = entry
    if dot and field not in entry:
        place, field = entry.get(outer), inner
    text = place.get(field) if isinstance(place, dict) else None
    if not isinstance(text, str):
        found = "is missing" if text is None else f"is a JSON {type(text).__name__}"
        raise InputError(
            file.at(number), f"its field {shown(field)!r} {found}", expected="a string was expected"
        )
    # JSON can write what UTF-8 cannot hold.
    strange = next((letter for letter in text if letter == "\0" or "\ud800" <= letter <= "\udfff"),
                   None)  # fmt: skip
    if strange is not None:
        raise InputError(
            file.at(number),
            f"its field {shown(field)!r} holds U+{ord(strange):04X}",
            expected="whole characters, and no NUL, were expected",
        )
    return text


def _not_an_object(file: TextFile, number: int, problem: str) -> InputError:
    return InputError(
        file.at(number), problem, expected='one object a line was expected, as {"text": "…"}'
    )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(shown(name[:40]) for name in names)


# PO

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b",
           "f": "\f", "v": "\v"}  # fmt: skip

_KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr(?:\[\d{1,2}\])?)[ \t]*(?=\")")
_BEGINS = re.compile(r'#|msgctxt|msgid[ \t"]')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")
_CHARSET = re.compile(r"charset=([\w-]+)", re.IGNORECASE)
_CHARSETS = frozenset(("utf-8", "utf8", "us-ascii", "ascii", "charset"))
_LANGUAGE = re.compile(r"^Language:[ \t]*([A-Za-z]{2,3})", re.MULTILINE)


@dataclass
class _PoEntry:
    fuzzy: bool = False
    parts: dict[str, list[str]] = field(default_factory=dict)
    last: str = ""
    line: int = 0

    def text(self, part: str) -> str:
        return "".join(self.parts.get(part, []))

    @property
    def translated(self) -> bool:
        return any(part.startswith("msgstr") for part in self.parts)

    @property
    def forms(self) -> list[str]:
        return [self.text(part) for part in self.parts if part.startswith("msgstr[")]


def read_po(path: Path, options: ReadOptions = AS_FOUND) -> Pairs:
    """Read the translations of a PO file; the original (`msgid`) is the source."""
    file = TextFile(path, options.limits)
    left_out: Counter[str] = Counter()
    pairs: list[tuple[str, str]] = []
    language = None
    for entry in _entries(file, left_out):
        if not entry.text("msgid") and "msgctxt" not in entry.parts:
            language = _read_header(entry, file)
            left_out["header"] += 1
            continue
        pairs += _pairs_of(entry, left_out)
        if len(pairs) > options.limits.texts:
            break
    if not pairs and left_out:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items() if count)
        raise InputError(
            file.name,
            f"has no finished translation ({counts})",
            expected="at least one entry that is translated and not fuzzy",
        )
    file.check_count(len(pairs))
    sides = [tuple(side) for side in zip(*pairs, strict=True)]
    known, notes = name_sides(sides, options.languages, ("msgid", "msgstr"))
    if options.languages is None and language and known[0] != language:
        known = (known[0], language)
        notes.append(f"the header says that the language is {language}")
    return Pairs.read([file], sides, known, options, notes=notes, left_out=left_out)


def _entries(file: TextFile, left_out: Counter[str]) -> Iterator[_PoEntry]:
    entry = _PoEntry()
    for number, raw in enumerate(file.lines(), start=1):
        if not raw and not entry.parts:
            continue  # most files have many blank lines, and some have nothing else
        line = raw.strip(" \t")
        if line.startswith("#~"):
            left_out["obsolete"] += line[2:].lstrip(" \t").startswith(("msgid ", 'msgid"'))
            continue
        if entry.parts and (not line or (_BEGINS.match(line) and entry.translated)):
            yield _finished(entry, file)
            entry = _PoEntry()
        if line.startswith("#,"):
            flags = [flag.strip() for flag in line[2:].split(",")]
            entry.fuzzy = entry.fuzzy or "fuzzy" in flags
        elif line and not line.startswith("#"):
            _add(entry, line, file, number)
    if entry.parts:
        yield _finished(entry, file)


def _add(entry: _PoEntry, line: str, file: TextFile, number: int) -> None:
    keyword = _KEYWORD.match(line)
    if keyword is not None:
        part = keyword.group(1)
        if part in entry.parts:
            raise _unreadable(file, number, f"gives {part} twice in one entry")
        entry.last, entry.line = part, number
        entry.parts[part] = []
        line = line[keyword.end() :]
    elif not entry.last:
        raise _unreadable(file, number, f"starts with {shown(line[:20])!r}")
    quoted = _QUOTED.fullmatch(line)
    if quoted is None:
        raise _unreadable(file, number, "does not hold one text between quotation marks")

    def meant(escape: re.Match[str]) -> str:
        letter = ESCAPES.get(escape.group(1))
        if letter is None:
            raise _unreadable(file, number, f"holds the escape {shown(escape.group())!r}")
        return letter

    entry.parts[entry.last].append(_ESCAPE.sub(meant, quoted.group(1)))


def _finished(entry: _PoEntry, file: TextFile) -> _PoEntry:
    if "msgid" not in entry.parts or not entry.translated:
        missing = "msgid" if "msgid" not in entry.parts else "msgstr"
        raise _unreadable(file, entry.line, f"ends an entry without {missing}")
    if ("msgid_plural" in entry.parts) == ("msgstr" in entry.parts):
        raise _unreadable(file, entry.line, "ends an entry that mixes one form and several")
    if sum(len(text) for texts in entry.parts.values() for text in texts) > file.limits.line_bytes:
        raise _unreadable(
            file, entry.line, f"ends an entry of more than {file.limits.line_bytes:,} characters"
        )
    return entry


def _pairs_of(entry: _PoEntry, left_out: Counter[str]) -> list[tuple[str, str]]:
    plural = "msgid_plural" in entry.parts
    forms = entry.forms if plural else [entry.text("msgstr")]
    if entry.fuzzy:
        left_out["fuzzy"] += 1
    elif not all(forms):
        left_out["untranslated"] += 1
    elif plural and list(entry.parts)[-2:] != ["msgstr[0]", "msgstr[1]"]:
        left_out["plural with other than two forms"] += 1
    else:
        originals = [entry.text("msgid"), entry.text("msgid_plural")]
        return list(zip(originals, forms, strict=False))
    return []


def _read_header(entry: _PoEntry, file: TextFile) -> str | None:
    header = entry.text("msgstr")
    charset = _CHARSET.search(header)
    if charset and charset.group(1).lower() not in _CHARSETS:
        raise InputError(
            file.name,
            f"its header says that it is written in {charset.group(1)}",
            expected="UTF-8 was expected",
            hint="convert it with msgconv -t UTF-8",
        )
    language = _LANGUAGE.search(header)
    return language.group(1).lower() if language else None


def _unreadable(file: TextFile, number: int, problem: str) -> InputError:
    return InputError(
        file.at(number), problem, expected='lines such as msgid "…" and msgstr "…" were expected'
    )


# TMX

CODES = frozenset(("bpt", "ept", "it", "ph", "ut"))
ENCODINGS = frozenset(("utf-8", "utf8", "utf-16", "us-ascii", "ascii"))
DEEPEST = 64
"""Elements inside one another."""
MOST_LANGUAGES = 200


def read_tmx(path: Path, options: ReadOptions = AS_FOUND) -> Pairs:
    """Read the pairs of two languages; without `languages` the file must hold just two."""
    file = TextFile(path, options.limits)
    memory = _Memory(file)
    memory.read()
    chosen = options.languages or _the_two(memory, file)
    both = [unit for unit in memory.units if chosen[0] in unit and chosen[1] in unit]
    left_out = memory.left_out
    if len(both) < len(memory.units):
        left_out["without one of the languages"] = len(memory.units) - len(both)
    if not both:
        raise InputError(
            file.name,
            f"has no unit in both {chosen[0]!r} and {chosen[1]!r}",
            expected=f"its languages are {', '.join(sorted(memory.languages)[:8]) or 'none'}",
            hint="choose two with --languages",
        )
    sides = [[unit[language] for unit in both] for language in chosen]
    notes = ["codes inside segments are not part of the text"] if memory.coded else []
    return Pairs.read([file], sides, chosen, options, notes=notes, left_out=left_out)


class _Memory:
    """The units of a file, gathered while the parser runs over it."""

    def __init__(self, file: TextFile) -> None:
        self.file = file
        self.units: list[dict[str, str]] = []
        self.languages: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.coded = False
        self.source: str | None = None
        self._open: list[str] = []
        self._unit: dict[str, str] | None = None
        self._language = ""
        self._segment: list[str] | None = None
        self._length = 0
        self._codes = 0
        self._moved = False
        self._parser = self._new_parser()

    def read(self) -> None:
        """Parse the whole file."""
        waiting = 0
        try:
            for chunk in self.file.chunks():
                self._moved = False
                self._parser.Parse(chunk, False)
                # A token that never ends is scanned again with every chunk.
                waiting = 0 if self._moved else waiting + len(chunk)
                if waiting > self.file.limits.line_bytes:
                    raise self._refused(
                        f"holds a tag or comment of more than {self.file.limits.line_bytes:,} bytes"
                    )
            self._parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise self._refused(
                f"is not XML ({expat.ErrorString(error.code)} at byte "
                f"{max(self._parser.ErrorByteIndex, 0):,})"
            ) from None
        except (UnicodeError, ValueError, LookupError) as error:
            raise self._refused(f"holds text that is not Unicode ({shown(str(error))})") from None

    def _new_parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.XmlDeclHandler = self._declaration
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.DefaultHandler = self._rest
        return parser

    def _declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        self._moved = True
        if encoding is not None and encoding.lower() not in ENCODINGS:
            raise self._refused(
                f"is written in {shown(encoding[:40])!r}", expected="UTF-8 or UTF-16 was expected"
            )

    def _doctype(self, *_: object) -> None:
        raise self._refused(
            "holds a DOCTYPE, which can define entities",
            expected="a TMX file without one was expected",
            hint="remove the <!DOCTYPE …> line",
        )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._moved = True
        if not self._open and name != "tmx":
            raise self._refused(f"starts with <{shown(name[:40])}>", expected="<tmx> was expected")
        self._open.append(name)
        if len(self._open) > DEEPEST:
            raise self._refused(f"has more than {DEEPEST} elements inside one another")
        if name == "header":
            self.source = _code(attributes.get("srclang", "")) or None
        elif name == "tu":
            self._unit = {}
        elif name == "tuv":
            self._language = _code(attributes.get("xml:lang", attributes.get("lang", "")))
        elif name == "seg" and self._unit is not None and self._segment is None:
            self._segment, self._length = [], 0
        elif name in CODES and self._segment is not None:
            self._codes += 1
            self.coded = True

    def _end(self, name: str) -> None:
        self._moved = True
        self._open.pop()
        if name in CODES and self._segment is not None:
            self._codes -= 1
        elif name == "seg" and self._segment is not None and self._unit is not None:
            self._keep(self._unit, "".join(self._segment))
            self._segment, self._codes = None, 0
        elif name == "tu" and self._unit is not None:
            self.units.append(self._unit)
            self._unit = None
            if len(self.units) > self.file.limits.texts:
                self.file.check_count(len(self.units))

    def _keep(self, unit: dict[str, str], text: str) -> None:
        if not self._language:
            raise self._refused("has a segment that names no language", expected="xml:lang")
        self.languages[self._language] += 1
        if len(self.languages) > MOST_LANGUAGES:
            raise self._refused(f"has more than {MOST_LANGUAGES} languages")
        if self._language in unit:
            self.left_out["second segment in one language"] += 1
        else:
            unit[self._language] = text

    def _text(self, text: str) -> None:
        self._moved = True
        if self._segment is None or self._codes:
            return
        self._length += len(text)
        if self._length > self.file.limits.line_bytes:
            raise self._refused(
                f"holds a segment of more than {self.file.limits.line_bytes:,} characters"
            )
        self._segment.append(text)

    def _rest(self, _: str) -> None:
        self._moved = True

    def _refused(
        self, problem: str, expected: str = "a TMX file was expected", hint: str = ""
    ) -> InputError:
        line = max(self._parser.CurrentLineNumber, 1)
        return InputError(self.file.at(line), problem, expected=expected, hint=hint)


def _code(language: str) -> str:
    """Return the language without its region: en-US and EN are both en."""
    return shown(language[:40]).replace("_", "-").partition("-")[0].lower()


def _the_two(memory: _Memory, file: TextFile) -> tuple[str, str]:
    languages = list(memory.languages)
    if len(languages) != 2:
        raise InputError(
            file.name,
            f"holds {len(languages)} languages ({', '.join(sorted(languages)[:8]) or 'none'})",
            expected="two were expected",
            hint="choose them, for instance --languages en fr",
        )
    first, second = languages
    return (second, first) if memory.source == second else (first, second)


_READERS: dict[Format, Callable[[Path, ReadOptions], Documents | Pairs]] = {
    "tsv": read_tsv,
    "text": read_text,
    "jsonl": read_json_lines,
    "po": read_po,
    "tmx": read_tmx,
}
