"""Claims written as the lines of a sheet; repairs and forms written into the sheet they are for.

>>> print(toml_lines({"query": "50 (k_a + k_b)", "where": {"n": [2, 3]}}))
query = "50 (k_a + k_b)"
where = { n = [2, 3] }
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from typing import Any

from heedful.claims.sheet.claim import Claim
from heedful.claims.sheet.reader import Origin, Sheet, load_sheet
from heedful.claims.sheet.toml import Keys, Places, read_text, sheet_blocks
from heedful.errors import FormulaError, InputError

SETTING = (
    "keys", "means", "covariance", "values", "scale", "query", "heads", "sequence", "matrices",
    "positions", "model", "corpus", "intervene", "texts", "where", "let", "given",
)  # fmt: skip
"""The fields that say what a claim is about, rather than what it says or how it is judged."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_lines(values: Mapping[str, Any]) -> str:
    """Return fields as lines of TOML, one per field; a field that is None is to be left out."""
    return "\n".join(
        f"# without {_key(name)}" if value is None else f"{_key(name)} = {_written(name, value)}"
        for name, value in values.items()
    )


def claim_text(claim: Claim) -> str:
    """Return a claim as a [[claim]] table that reads back as the same claim."""
    return "[[claim]]\n" + toml_lines(_own_fields(claim)) + "\n"


def setting_text(claim: Claim) -> str:
    """Return what a claim presumes (keys, query, ranges, …), as its sheet writes it."""
    return toml_lines({k: v for k, v in _own_fields(claim).items() if k in SETTING})


def _own_fields(claim: Claim) -> dict[str, Any]:
    """Return the fields that differ from their defaults."""
    own: dict[str, Any] = {}
    for item in fields(claim):
        value = getattr(claim, item.name)
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        if value is not None and (value != default or default is MISSING):
            own[item.name] = value
    return own


def _written(name: str, value: Any) -> str:
    alone = name == "expect" and isinstance(value, list | tuple) and len(value) == 1
    return toml_value(value[0] if alone else value)


def toml_value(value: Any) -> str:
    """Return one value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        if "\\" in value and "'" not in value and value.isprintable():
            return f"'{value}'"  # LaTeX as one writes it
        # A string of JSON is one of TOML, except that TOML also escapes the character DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float | Fraction):
        number = float(value)
        if not math.isfinite(number):
            return {True: "inf", False: "-inf"}[number > 0] if not math.isnan(number) else "nan"
        return repr(number)
    if isinstance(value, Mapping):
        if not value:
            return "{}"
        pairs = (f"{_key(str(name))} = {toml_value(item)}" for name, item in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if hasattr(value, "tolist"):  # an array or a number of NumPy
        return toml_value(value.tolist())
    return toml_value(str(value))


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) and name.isascii() else toml_value(name)


def with_changes(text: str, identifier: str, changes: Mapping[str, Any]) -> str:
    """Return the text of a sheet with some fields of one claim replaced; None: left out.

    >>> sheet = '[[claim]]\\nid = "b"\\nkeys = "any"\\nquery = "k_a"\\nexpect = "c = v_a"\\n'
    >>> print(with_changes(sheet, "b", {"query": "9 k_a"}).splitlines()[3])
    query = "9 k_a"
    """
    sheet = load_sheet(text)
    claim = _claim(sheet, identifier)
    wanted = claim_text(_read_back(claim.changed(**changes)))
    lines = text.splitlines()
    origin = sheet.origins[identifier]
    starts = _starts(origin)
    block = _block(lines, origin.places.of(origin.path)[0])
    for edited in (_by_line(lines, starts, block[1], changes), _anew(lines, block, wanted)):
        read = next((c for c in load_sheet(edited).claims if c.id == identifier), None)
        if read is not None and claim_text(read) == wanted:
            return edited
    raise InputError(
        f"claim {identifier}",
        "its repair cannot be written into this sheet",
        expected="fields of its own were expected",
        hint="change what stands in [defaults] by hand",
    )


@dataclass(frozen=True)
class ClaimTable:
    """A claim of a sheet as TOML holds it, whether or not its formulas can be read."""

    table: dict[str, Any]
    defaults: dict[str, Any]
    """What the sheet sets for every claim."""
    places: Places
    path: Keys

    @property
    def line(self) -> int:
        """Where its id stands, or the claim begins."""
        return self.places.of((*self.path, "id"))[0]


def claim_tables(text: str) -> list[ClaimTable]:
    """Return the claims of a sheet as far as they are TOML; a sheet that is none has none."""
    try:
        blocks = list(sheet_blocks("sheet", read_text("sheet", None, text.encode("utf-8"))))
    except (FormulaError, UnicodeError):
        return []
    defaults: dict[str, Any] = {}
    for block in blocks:
        found = block.data.get("defaults", {})
        defaults |= found if isinstance(found, dict) else {}
    tables = []
    for block in blocks:
        claims = block.data.get("claim", [])
        for place, table in enumerate(claims if isinstance(claims, list) else []):
            if isinstance(table, dict):
                tables.append(ClaimTable(table, defaults, block.places, ("claim", place)))
    return tables


def with_fields(text: str, place: int, changes: Mapping[str, Any] | None) -> str:
    """Return a sheet with fields of its claim number `place` replaced; no changes: without it.

    Unlike `with_changes` this is for somebody who is still writing: what is put in need not be a
    formula yet. Lines that are not concerned stay as they are.

    >>> print(with_fields('[[claim]]\\nid = "b"\\nexpect = "c = "\\n', 0, {"expect": "c = v_"}))
    [[claim]]
    id = "b"
    expect = "c = v_"
    <BLANKLINE>
    """
    tables = claim_tables(text)
    if not 0 <= place < len(tables):
        raise InputError(
            f"claim {place + 1}", "is not in this sheet", expected="a claim that is TOML"
        )
    found = tables[place]
    lines = text.splitlines()
    block = _block(lines, found.places.of(found.path)[0])
    others = [one.table for one in tables]
    if changes is None:
        edits = ["\n".join([*lines[: block[0]], *lines[block[1] :]]).strip("\n") + "\n"]
        wanted = others[:place] + others[place + 1 :]
    else:
        table = {k: v for k, v in {**found.table, **changes}.items() if v is not None}
        starts = {
            name: found.places.of((*found.path, name))[0]
            for name in found.table
            if found.places.knows((*found.path, name))
        }
        anew = "[[claim]]\n" + toml_lines(table)
        edits = [_by_line(lines, starts, block[1], changes), _anew(lines, block, anew)]
        wanted = [*others[:place], _one_expected(table), *others[place + 1 :]]
    for edited in edits:
        if [one.table for one in claim_tables(edited)] == wanted:
            return edited
    raise InputError(
        f"claim {place + 1}",
        "the change cannot be written into this sheet",
        expected="a claim in lines of its own",
        hint="change it in the text",
    )


def _one_expected(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table as it reads back: a single expected formula stands without its list."""
    expect = table.get("expect")
    alone = isinstance(expect, list) and len(expect) == 1
    return {**table, "expect": expect[0]} if alone and expect else table


def _claim(sheet: Sheet, identifier: str) -> Claim:
    for claim in sheet.claims:
        if claim.id == identifier:
            return claim
    raise InputError(
        f"claim {identifier}", "is not in this sheet", expected="the id of a claim that can be read"
    )


def _read_back(claim: Claim) -> Claim:
    """Return the claim as a sheet would hold it, or say why it cannot."""
    sheet = load_sheet(claim_text(claim))
    if not sheet.claims:
        problem = sheet.problems[0]
        raise InputError(f"claim {claim.id}", f"the change cannot be read ({problem.problem})")
    return sheet.claims[0]


def _starts(origin: Origin) -> dict[str, int]:
    """Return the line on which each field of the claim begins, from 1."""
    return {
        name: origin.places.of((*origin.path, name))[0]
        for name in origin.own
        if origin.places.knows((*origin.path, name))
    }


def _block(lines: list[str], first: int) -> tuple[int, int]:
    """Return the lines of a claim, from its header up to the next header, as a half-open range."""
    header = first - 1
    while header > 0 and not lines[header].lstrip().startswith("[["):
        header -= 1
    end = header + 1
    while end < len(lines) and not lines[end].lstrip().startswith(("[[", "[defaults")):
        end += 1
    return header, _without_trailing(lines, header + 1, end)


def _by_line(lines: list[str], starts: dict[str, int], end: int, changes: Mapping[str, Any]) -> str:
    """Replace the lines of the changed fields; new ones stand where the first of them stood."""
    begins = sorted({*(line - 1 for line in starts.values()), end})
    spans = {}
    for name, line in starts.items():
        after = next((begin for begin in begins if begin > line - 1), end)
        spans[name] = (line - 1, _without_trailing(lines, line, after))
    changed = [spans[name] for name in changes if name in spans]
    removed = {number for span in changed for number in range(*span)}
    place = min((begin for begin, _ in changed), default=spans.get("expect", (end, end))[0])
    put: dict[int, list[str]] = {}
    for name, value in changes.items():
        if value is not None:
            at = spans[name][0] if name in spans else place
            put.setdefault(at, []).append(toml_lines({name: value}))
    result: list[str] = []
    for number, text in enumerate(lines):
        result += put.get(number, [])
        if number not in removed:
            result.append(text)
    result += put.get(len(lines), [])
    return "\n".join(result) + "\n"


def _anew(lines: list[str], block: tuple[int, int], wanted: str) -> str:
    header, end = block
    return "\n".join([*lines[:header], wanted.rstrip("\n"), *lines[end:]]) + "\n"


def _without_trailing(lines: list[str], begin: int, end: int) -> int:
    """Return the end of a range without the empty lines and comments that close it."""
    while end > begin and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return end
