"""Pairs from TMX, the exchange format of translation memories.

The file is parsed as a stream. A DOCTYPE is refused before anything of it is read, so there
are no entities to expand and nothing outside the file is ever opened.

What becomes a pair: a unit (`tu`) with a segment in both languages. Text inside `hi` belongs to
the segment; codes of other programs (`bpt`, `ept`, `it`, `ph`, `ut`) and what is inside them do
not. Left out and counted: units without one of the languages, and second segments of a unit in
one language.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from xml.parsers import expat

from heedful.data.corpus import Pairs, check_count
from heedful.data.files import DEFAULT_LIMITS, Limits, TextFile, shown
from heedful.errors import InputError

CODES = frozenset(("bpt", "ept", "it", "ph", "ut"))
ENCODINGS = frozenset(("utf-8", "utf8", "utf-16", "us-ascii", "ascii"))
DEEPEST = 64
"""Elements inside one another."""
MOST_LANGUAGES = 200


def read_tmx(
    path: Path,
    *,
    languages: tuple[str, str] | None = None,
    source: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Pairs:
    """Read the pairs of two languages; without `languages` the file must hold just two."""
    file = TextFile(path, limits)
    memory = _Memory(file)
    memory.read()
    chosen = languages or _the_two(memory, file)
    pairs: list[tuple[str, str]] = []
    left_out: Counter[str] = Counter(memory.left_out)
    for unit in memory.units:
        if chosen[0] in unit and chosen[1] in unit:
            pairs.append((unit[chosen[0]], unit[chosen[1]]))
        else:
            left_out["without one of the languages"] += 1
    if not pairs:
        raise InputError(
            file.name,
            f"has no unit in both {chosen[0]!r} and {chosen[1]!r}",
            expected=f"its languages are {', '.join(sorted(memory.languages)[:8]) or 'none'}",
            way_out="choose two with --languages",
        )
    notes = ["codes inside segments are not part of the text"] if memory.coded else []
    made = Pairs(
        name=path.name,
        sources=tuple(pair[0] for pair in pairs),
        targets=tuple(pair[1] for pair in pairs),
        languages=chosen,
        origins=(file.origin,),
        notes=tuple(notes),
        left_out=dict(left_out),
    )
    return made if source is None else made.from_language(source)


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
            way_out="remove the <!DOCTYPE …> line",
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
                check_count(len(self.units), self.file.name, self.file.limits)

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
        self, problem: str, expected: str = "a TMX file was expected", way_out: str = ""
    ) -> InputError:
        line = max(self._parser.CurrentLineNumber, 1)
        return InputError(self.file.at(line), problem, expected=expected, way_out=way_out)


def _code(language: str) -> str:
    """Return the language without its region: en-US and EN are both en."""
    return shown(language[:40]).replace("_", "-").partition("-")[0].lower()


def _the_two(memory: _Memory, file: TextFile) -> tuple[str, str]:
    found = list(memory.languages)
    if len(found) != 2:
        raise InputError(
            file.name,
            f"holds {len(found)} languages ({', '.join(sorted(found)[:8]) or 'none'})",
            expected="two were expected",
            way_out="choose them, for instance --languages en fr",
        )
    first, second = found
    return (second, first) if memory.source == second else (first, second)
