"""Documents or pairs from JSON lines: one object a line.

Which fields are read is told by the first object, or chosen: `text` (also `content`,
`document`, `story`) makes documents; `source` and `target`, `question` and `answer`, `prompt`
and `completion`, two language codes, or `translation` with two language codes inside makes
pairs. Every object must have them, as strings. Blank lines are left out and counted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from heedful.data.corpus import Documents, Pairs, check_count
from heedful.data.files import DEFAULT_LIMITS, Limits, TextFile, shown
from heedful.data.pairs import is_language, name_sides
from heedful.errors import InputError

ONE_FIELD = ("text", "content", "document", "story")
TWO_FIELDS = (("source", "target"), ("question", "answer"), ("prompt", "completion"))


def read_json_lines(
    path: Path,
    *,
    fields: tuple[str, ...] | None = None,
    source: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Documents | Pairs:
    """Read one field of each object as a document, or two as a pair."""
    file = TextFile(path, limits)
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
        if len(rows) > limits.texts:
            break
    check_count(len(rows), file.name, limits)
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
    pairs = Pairs(
        name=path.name,
        sources=sides[0],
        targets=sides[1],
        languages=known,
        origins=(file.origin,),
        notes=(*notes, *reasons),
        left_out=left_out,
    )
    return pairs if source is None else pairs.from_language(source)


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
    found = dict(items)
    if len(found) != len(items):
        raise ValueError("a name stands twice in one object")
    return found


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
        way_out="say which ones to read, for instance --fields fr en",
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
