"""The text of a sheet as TOML: whole, or claim by claim where its syntax is broken."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from heedful.claims.sheet_errors import syntax_problem
from heedful.claims.sheet_places import Places, places
from heedful.errors import FormulaError

MOST_BLOCKS = 2_000
"""Beyond as many claims, a sheet with broken syntax is refused whole."""

_CLAIM_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*(?:claim|\"claim\"|'claim')[ \t]*\]\]", re.MULTILINE)
_DEFAULTS = re.compile(r"^[ \t\[]*[\"']?defaults\b", re.MULTILINE)
# tomllib takes quadratic time over a dotted key of thousands of parts; no field needs more
# than two. The look-behind keeps this search itself linear.
_ENDLESS_KEY = re.compile(
    r"""(?<![A-Za-z0-9_-])(?:(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){32}"""
)


@dataclass(frozen=True)
class Block:
    """A part of a sheet that is TOML by itself; usually the whole of it."""

    data: dict[str, Any]
    """Its values; empty when it cannot be read."""
    places: Places
    """Where they stand."""
    problem: FormulaError | None = None
    """Why it cannot be read."""
    mentions_defaults: bool = False
    """Whether a part that cannot be read held the defaults."""


def sheet_blocks(file: str, text: str) -> Iterator[Block]:
    """Yield the text as one block; or, where its syntax is broken, claim by claim."""
    endless = _ENDLESS_KEY.search(text)
    if endless is not None:
        line, column = Places(text).position(endless.start())
        raise FormulaError(
            file, "a name has more than 32 dotted parts", expected="expected one dot at most",
            line=line, column=column,
        )  # fmt: skip
    whole = _parse(file, text, 1)
    if whole.problem is None:
        yield whole
        return
    # Somewhere the syntax is broken. Read it claim by claim, so that only that claim is lost.
    starts = [match.start() for match in _CLAIM_HEADER.finditer(text)]
    if not starts or len(starts) > MOST_BLOCKS:
        raise whole.problem
    for start, end in zip([0, *starts], [*starts, len(text)], strict=True):
        yield _parse(file, text[start:end], text.count("\n", 0, start) + 1)


def _parse(file: str, text: str, first_line: int) -> Block:
    try:
        data = tomllib.loads(text)
        return Block(data, places(text, first_line))
    except RecursionError:
        problem = FormulaError(
            file, "lists or tables are nested too deeply", expected="expected a few levels at most",
            line=first_line, column=1,
        )  # fmt: skip
    except ValueError as error:
        problem = syntax_problem(file, error, text, first_line)
    return Block({}, Places(text, first_line), problem, _DEFAULTS.search(text) is not None)
