"""Translation files: PO, the translations of programs, and TMX, the exchange of memories.

What becomes a pair of a PO file, and what does not:

- an entry with a translation: one pair;
- an entry with a plural and two forms: two pairs, singular with form 0, plural with form 1;
- left out and counted: the header, entries without a translation, entries marked `fuzzy`
  (nobody has approved them), obsolete entries (`#~`), plurals with another number of forms
  (which form belongs to which original is not written in the file).

TMX is parsed as a stream. A DOCTYPE is refused before anything of it is read, so there are no
entities to expand and nothing outside the file is ever opened. A unit (`tu`) with a segment in both
languages becomes a pair. Text inside `hi` belongs to the segment; codes of other programs (`bpt`,
`ept`, `it`, `ph`, `ut`) and what is inside them do not. Left out and counted: units without one of
the languages, and second segments of a unit in one language.

docs/decisions/dependencies.md says why neither polib nor defusedxml reads them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from heedful.data.corpus import Pairs
from heedful.data.languages import name_sides
from heedful.data.text_files import AS_FOUND, ReadOptions, TextFile, shown
from heedful.errors import InputError

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
