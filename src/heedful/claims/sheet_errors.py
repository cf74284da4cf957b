"""What is wrong with a sheet: collected one by one, each with its line and column."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from heedful.claims.sheet_places import Path, Places
from heedful.errors import FormulaError, HeedfulError

LONGEST_SHOWN = 40
VISIBLE_CONTROLS = "\n\t\u200c\u200d"
"""Line breaks and tabs; and the two joiners, which Persian and Hindi are written with."""
_AT = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")

_CLEARER = {
    "integer string conversion": "a number has more than 4,300 digits",
    "Illegal character '\\n'": "the line ends inside a string",
    "Cannot overwrite a value": "a field is written twice",
}
"""What `tomllib` says, and what is meant."""


class Problems:
    """The problems of one sheet, in the order in which they were met."""

    def __init__(self, file: str, places: Places) -> None:
        self.file = file
        self.places = places
        self.found: list[FormulaError] = []

    def add(
        self,
        path: Path,
        problem: str,
        *,
        expected: str = "",
        way_out: str = "",
        column: int | None = None,
    ) -> None:
        """Note a problem of a value; `column` counts inside a string value."""
        line, place = self.places.of(path) if column is None else self.places.inside(path, column)
        self.found.append(
            FormulaError(
                self.file, problem, expected=expected, way_out=way_out, line=line, column=place
            )
        )

    def relay(self, path: Path, label: str, error: HeedfulError) -> None:
        """Note an error about a formula at the place where the formula stands."""
        self.add(
            path,
            f"{label}: {error.problem}",
            expected=error.expected,
            way_out=error.way_out,
            column=getattr(error, "column", None),
        )


def syntax_problem(file: str, error: ValueError, text: str, first_line: int = 1) -> FormulaError:
    """Turn what `tomllib` says into our error, at its line and column."""
    message = str(error)
    at = _AT.search(message)
    lines = text.rstrip("\n").split("\n")
    line, column = len(lines), len(lines[-1]) + 1
    if at is not None:
        message = message[: at.start()]
        if at[1] is not None:
            line, column = int(at[1]), int(at[2])
    for theirs, ours in _CLEARER.items():
        if theirs in message:
            message = ours
    return FormulaError(
        file,
        f"this is not TOML: {_lower_first(message)}",
        expected='lines such as expect = "alpha_j >= 0.99" were expected',
        way_out="look for a missing quote, bracket or comma",
        line=line + first_line - 1,
        column=column,
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """Return what to try instead of an unknown name: the nearest known one, or nothing.

    >>> nearest("exepct", ["expect", "query"])
    'did you mean expect?'
    """
    close = difflib.get_close_matches(name[:100], list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else ""


def shown(value: Any) -> str:
    """Write a value found in a sheet so that it fits a line and hides nothing.

    >>> shown("a\\u202eb"), shown(10**5000), shown([1, 2])
    ("'a\\\\u202eb'", 'a number of 5001 digits', 'a list')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) >= 10**20:
        digits = int(value.bit_length() * 0.30103) + 1
        return f"a number of {digits} digits"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if not isinstance(value, str):
        return str(value)
    text = value if len(value) <= LONGEST_SHOWN else value[: LONGEST_SHOWN - 1] + "…"
    return repr(text)


def deceptive(text: str) -> int | None:
    """Return the index of the first character that changes how a text is shown, if any.

    Controls that turn the reading direction around, or that cannot be seen, let a sheet say
    one thing to a reader and another to the machine.
    """
    for position, character in enumerate(text):
        if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") and (
            character not in VISIBLE_CONTROLS
        ):
            return position
    return None


def _lower_first(message: str) -> str:
    return message[:1].lower() + message[1:]
