"""Fields of a claim written as the lines of a sheet: what a repair says to paste.

>>> print(toml_lines({"query": "50 (k_a + k_b)", "where": {"n": [2, 3]}}))
query = "50 (k_a + k_b)"
where = { n = [2, 3] }
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from fractions import Fraction
from typing import Any

from heedful.claims.claim import Claim

SETTING = (
    "keys", "means", "covariance", "values", "scale", "query", "heads", "sequence", "matrices",
    "positions", "where", "let", "given",
)  # fmt: skip
"""The fields that say what a claim is about, rather than what it says or how it is judged."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def toml_lines(values: Mapping[str, Any]) -> str:
    """Return fields as lines of TOML, one a field; a field that is None is to be left out."""
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
    found = {}
    for item in fields(claim):
        value = getattr(claim, item.name)
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        if value is not None and (value != default or default is MISSING):
            found[item.name] = value
    return found


def _written(name: str, value: Any) -> str:
    alone = name == "expect" and isinstance(value, list | tuple) and len(value) == 1
    return toml_value(value[0] if alone else value)


def toml_value(value: Any) -> str:
    """Return one value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(_character(character) for character in value) + '"'
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


def _character(character: str) -> str:
    if character in _ESCAPED:
        return _ESCAPED[character]
    if ord(character) < 0x20 or ord(character) == 0x7F:
        return f"\\u{ord(character):04X}"
    return character
