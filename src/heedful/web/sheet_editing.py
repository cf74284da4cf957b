"""A repair written into the sheet it is for: only the lines of the changed fields are touched.

The result is read again and must be the very claim that the repair describes; a claim whose text
is laid out too cleverly for that is written anew as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heedful.claims.claim import Claim
from heedful.claims.sheet import Origin, Sheet, load_sheet
from heedful.claims.sheet_writing import claim_text, toml_lines
from heedful.errors import InputError


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
        found = next((c for c in load_sheet(edited).claims if c.id == identifier), None)
        if found is not None and claim_text(found) == wanted:
            return edited
    raise InputError(
        f"claim {identifier}",
        "its repair cannot be written into this sheet",
        expected="fields of its own were expected",
        way_out="change what stands in [defaults] by hand",
    )


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
