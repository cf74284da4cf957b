"""Pairs from PO files, the translations of programs.

What becomes a pair, and what does not:

- an entry with a translation: one pair;
- an entry with a plural and two forms: two pairs, singular with form 0, plural with form 1;
- left out and counted: the header, entries without a translation, entries marked `fuzzy`
  (nobody has approved them), obsolete entries (`#~`), plurals with another number of forms
  (which form belongs to which original is not written in the file).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from heedful.data.corpus import Pairs, check_count
from heedful.data.files import DEFAULT_LIMITS, Limits, TextFile, shown
from heedful.data.pairs import name_sides
from heedful.errors import InputError

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b",
           "f": "\f", "v": "\v"}  # fmt: skip

_KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr(?:\[\d{1,2}\])?)[ \t]*(?=\")")
_BEGINS = re.compile(r'#|msgctxt|msgid[ \t"]')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")
_CHARSET = re.compile(r"charset=([\w-]+)", re.IGNORECASE)
_LANGUAGE = re.compile(r"^Language:[ \t]*([A-Za-z]{2,3})", re.MULTILINE)


@dataclass
class _Entry:
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


def read_po(
    path: Path,
    *,
    languages: tuple[str, str] | None = None,
    source: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Pairs:
    """Read the translations of a PO file; the original (`msgid`) is the source."""
    file = TextFile(path, limits)
    left_out: Counter[str] = Counter()
    pairs: list[tuple[str, str]] = []
    language = None
    for entry in _entries(file, left_out):
        if not entry.text("msgid") and "msgctxt" not in entry.parts:
            language = _read_header(entry, file)
            left_out["header"] += 1
            continue
        pairs += _pairs_of(entry, left_out)
        if len(pairs) > limits.texts:
            break
    if not pairs and left_out:
        raise InputError(
            file.name,
            f"has no finished translation ({_counts(left_out)})",
            expected="at least one entry that is translated and not fuzzy",
        )
    check_count(len(pairs), file.name, limits)
    sides = [tuple(side) for side in zip(*pairs, strict=True)]
    known, notes = name_sides(sides, languages, ("msgid", "msgstr"))
    if languages is None and language and known[0] != language:
        known = (known[0], language)
        notes.append(f"the header says that the language is {language}")
    made = Pairs(
        name=path.name,
        sources=sides[0],
        targets=sides[1],
        languages=known,
        origins=(file.origin,),
        notes=tuple(notes),
        left_out=dict(left_out),
    )
    return made if source is None else made.from_language(source)


def _entries(file: TextFile, left_out: Counter[str]) -> Iterator[_Entry]:
    entry = _Entry()
    for number, raw in enumerate(file.lines(), start=1):
        if not raw and not entry.parts:
            continue  # most files have many blank lines, and some have nothing else
        line = raw.strip(" \t")
        if line.startswith("#~"):
            left_out["obsolete"] += line[2:].lstrip(" \t").startswith(("msgid ", 'msgid"'))
            continue
        if entry.parts and (not line or (_BEGINS.match(line) and entry.translated)):
            yield _finished(entry, file)
            entry = _Entry()
        if line.startswith("#,"):
            flags = [flag.strip() for flag in line[2:].split(",")]
            entry.fuzzy = entry.fuzzy or "fuzzy" in flags
        elif line and not line.startswith("#"):
            _add(entry, line, file, number)
    if entry.parts:
        yield _finished(entry, file)


def _add(entry: _Entry, line: str, file: TextFile, number: int) -> None:
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


def _finished(entry: _Entry, file: TextFile) -> _Entry:
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


def _pairs_of(entry: _Entry, left_out: Counter[str]) -> list[tuple[str, str]]:
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


def _read_header(entry: _Entry, file: TextFile) -> str | None:
    header = entry.text("msgstr")
    charset = _CHARSET.search(header)
    if charset and charset.group(1).lower() not in (
        "utf-8",
        "utf8",
        "us-ascii",
        "ascii",
        "charset",
    ):
        raise InputError(
            file.name,
            f"its header says that it is written in {charset.group(1)}",
            expected="UTF-8 was expected",
            way_out="convert it with msgconv -t UTF-8",
        )
    language = _LANGUAGE.search(header)
    return language.group(1).lower() if language else None


def _unreadable(file: TextFile, number: int, problem: str) -> InputError:
    return InputError(
        file.at(number), problem, expected='lines such as msgid "…" and msgstr "…" were expected'
    )


def _counts(left_out: Counter[str]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in left_out.items() if count)
