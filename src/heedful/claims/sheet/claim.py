"""A claim as it is written: its fields, and how a sheet may write each of them.

`Claim` holds what was written, checked for its form only; `judge` finds out whether it is true.
The same fields serve the TOML sheet and the Python API. Each reader takes a TOML value and returns
what `Claim` holds, or raises `FieldError` with the path inside the value, so that the error can
point at the very entry.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from heedful.claims.sheet.toml import deceptive
from heedful.errors import FormulaError

MOST_FORMULAS = 50
LONGEST_WORDS = 1000
LONGEST_NAME = 60
MOST_DRAWS = 10_000_000
LARGEST_NUMBER = 10**15
LONGEST_SHOWN = 40
ASKED = {
    **dict.fromkeys(("least", "smallest", "lowest"), "least"),
    **dict.fromkeys(("greatest", "largest", "highest"), "greatest"),
}
"""The words of `find`, and the one of two that each means."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One statement about attention."""

    id: str
    """Short name inside its sheet, such as "1.2b"."""
    says: str = ""
    """The statement in words."""
    expect: tuple[str, ...]
    """One or more formulas that must all hold."""
    given: str | None = None
    """A condition under which they must hold."""
    find: str | None = None
    """A number that the formulas leave open, to be found: "least x" or "greatest x"."""
    source: str = ""
    """Where the statement comes from: the place, and the words that stand there."""
    reading: str = ""
    """How the words of the source became this formula."""
    number: str = ""
    """Which number of the formula is not the source's but ours, and why that one."""

    keys: Any = None
    """"orthonormal", "unit", "any", "gaussian", rows of numbers, or formulas; None: no keys."""
    means: Any = "orthonormal"
    """Means of Gaussian keys."""
    covariance: dict[str, str] = field(default_factory=dict)
    """Covariance formulas of Gaussian keys by index, with `others` for the rest."""
    values: Any = "arbitrary"
    """"arbitrary", "keys", rows of numbers, or formulas."""
    scale: Any = 1
    """What multiplies k·q: a number, or "sqrt_d"."""
    query: str | None = None
    """The query of a single head."""
    heads: tuple[str, ...] = ()
    """The queries of several heads, whose outputs are averaged."""
    sequence: tuple[str, ...] = ()
    """The vectors x_1 … x_n of self-attention."""
    matrices: dict[str, str] = field(default_factory=dict)
    """K, Q and V of self-attention; the identity where left out."""
    positions: dict[str, Any] = field(default_factory=dict)
    """Parameters of φ: kind, width, base."""

    model: str | None = None
    """A trained model that the claim is about: a run, a folder, a file, or a published name."""
    corpus: str | None = None
    """The file whose texts a claim about a model is measured on."""
    intervene: dict[str, Any] = field(default_factory=dict)
    """What is changed inside the model: the table of an intervention, as in `heed intervene`."""
    texts: str | None = None
    """Which texts it is about, such as "every text up to 16 tokens" (see `sheet.texts`)."""

    where: dict[str, Any] = field(default_factory=dict)
    """The free symbols and their ranges: n = [2, 3, 10], beta = "large", X = "matrix T x d"."""
    let: dict[str, str] = field(default_factory=dict)
    """Names for expressions, and functions: "f(X)" = "relu(X W)"."""
    tolerance: float = 0.05
    """What ≈ means when no `within` is written."""
    draws: int = 20_000
    """Draws for what can only be sampled."""
    seed: int = 0
    """Seed of every draw."""
    disagrees_with: tuple[str, ...] = ()
    """Claims of other sheets that say otherwise, as "sheet/id": shown side by side."""

    def changed(self, **changes: Any) -> Claim:
        """Return the claim with some fields replaced (how a repair is applied)."""
        current = {item.name: getattr(self, item.name) for item in fields(self)}
        return Claim(**{**current, **changes})


class FieldError(Exception):
    """A value of the wrong kind; becomes a `FormulaError` once its line is known."""

    def __init__(
        self,
        problem: str,
        expected: str,
        inside: tuple[str | int, ...] = (),
        column: int | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.expected = expected
        self.inside = inside
        self.column = column


def words(value: Any) -> str:
    """Read a sentence."""
    text = _text(value, "a sentence in quotes")
    if len(text) > LONGEST_WORDS:
        raise FieldError(f"has {len(text):,} characters", f"at most {LONGEST_WORDS:,}")
    return text


def identifier(value: Any) -> str:
    """Read the id of a claim."""
    text = _text(value, 'a short name in quotes such as "1.2b"')
    if not text.strip() or text != text.strip():
        raise FieldError(f"is {shown(text)}", 'a short name such as "1.2b"')
    if len(text) > LONGEST_NAME or "/" in text or "\n" in text:
        raise FieldError(
            f"is {shown(text)}", f"one line of at most {LONGEST_NAME} characters without /"
        )
    return text


def formula(value: Any) -> str:
    """Read one formula; a bare number is one too."""
    if _is_number(value):
        return str(number(value))
    text = _text(value, "a formula in quotes")
    if not text.strip():
        raise FieldError("is empty", "a formula")
    if re.search(r"\t[a-z]", text) and "\n" not in text:
        raise FieldError(
            "holds a tab before a letter",
            r"single quotes around LaTeX, since \t in double quotes is a tab",
            column=text.index("\t") + 1,
        )
    return text


def formulas(value: Any) -> tuple[str, ...]:
    """Read a list of formulas."""
    items = _list(value, "a list of formulas in quotes")
    return tuple(_each(formula, items))


def one_or_more_formulas(value: Any) -> tuple[str, ...]:
    """Read one formula, or a list of at least one."""
    if not isinstance(value, list):
        return (formula(value),)
    if not value:
        raise FieldError("is an empty list", "at least one formula")
    return formulas(value)


def asked(value: Any) -> str:
    """Read which number is to be found."""
    expected = 'what to find, such as "least x" or "greatest x"'
    text = _text(value, expected)
    found = re.fullmatch(r"\s*(?:the\s+)?(\w+)\s+(\S{1,60})\s*", text)
    word = None if found is None else ASKED.get(found[1].lower())
    if found is None or word is None:
        raise FieldError(f"is {shown(text)}", expected)
    return f"{word} {found[2]}"


def names(value: Any) -> tuple[str, ...]:
    """Read one name, or a list of names."""
    if not isinstance(value, list):
        return (words(value),)
    return tuple(_each(words, _list(value, "a list of names")))


def vectors(value: Any) -> Any:
    """Read keys, means or values: a word, rows of numbers, or a list of formulas."""
    expected = 'a word such as "orthonormal", rows of numbers, or a list of formulas'
    if isinstance(value, str):
        return words(value)
    rows = _list(value, expected, most=4096)
    if not rows:
        raise FieldError("is an empty list", expected)
    if all(isinstance(row, str) for row in rows):
        return tuple(_each(formula, rows))
    read = [_inside(position, _row, row) for position, row in enumerate(rows)]
    for position, row in enumerate(read):
        if len(row) != len(read[0]):
            raise FieldError(
                f"row {position + 1} has {len(row)} numbers and row 1 has {len(read[0])}",
                "rows of one length",
                (position,),
            )
    return tuple(read)


def formula_table(value: Any) -> dict[str, str]:
    """Read a table of formulas by name."""
    return _table(value, formula)


def plain_table(value: Any) -> dict[str, Any]:
    """Read a table of numbers, words, and lists of them."""
    return _table(value, _plain)


def scale(value: Any) -> Any:
    """Read what multiplies k·q."""
    return number(value) if _is_number(value) else _text(value, 'a number or "sqrt_d"')


def tolerance(value: Any) -> float:
    """Read a positive number."""
    read = number(value)
    if not read > 0:
        raise FieldError(f"is {shown(value)}", "a number above 0")
    return float(read)


def draws(value: Any) -> int:
    """Read how many draws to take."""
    return _whole(value, 1, MOST_DRAWS)


def seed(value: Any) -> int:
    """Read a seed."""
    return _whole(value, 0, 2**32 - 1)


def number(value: Any) -> int | float:
    """Read a finite number of a sensible size."""
    if not _is_number(value):
        raise FieldError(f"is {shown(value)}", "a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise FieldError(f"is {value}", "a finite number")
    if abs(value) > LARGEST_NUMBER:
        raise FieldError(f"is {shown(value)}", f"at most {LARGEST_NUMBER:.0e} in size")
    read: int | float = value
    return read


FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "id": identifier,
    "says": words,
    "expect": one_or_more_formulas,
    "given": formula,
    "find": asked,
    "source": words,
    "reading": words,
    "number": words,
    "keys": vectors,
    "means": vectors,
    "covariance": formula_table,
    "values": vectors,
    "scale": scale,
    "query": formula,
    "heads": formulas,
    "sequence": formulas,
    "matrices": formula_table,
    "positions": plain_table,
    "model": words,
    "corpus": words,
    "intervene": plain_table,
    "texts": words,
    "where": plain_table,
    "let": formula_table,
    "tolerance": tolerance,
    "draws": draws,
    "seed": seed,
    "disagrees_with": names,
}
"""Every field of a claim, with its reader."""
_ESCAPED = {"\b": r"\b", "\f": r"\f", "\r": r"\r", "\x1b": r"\e"}
"""What TOML makes of the first letters of \\beta, \\frac and \\rho in double quotes."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any, expected: str) -> str:
    if not isinstance(value, str):
        raise FieldError(f"is {shown(value)}", expected)
    hidden = deceptive(value)
    if hidden is not None:
        meant = _ESCAPED.get(value[hidden], "")
        raise FieldError(
            f"holds the invisible character U+{ord(value[hidden]):04X}",
            f"single quotes around LaTeX, since {meant} in double quotes is such a character"
            if meant
            else "text that shows what it says",
            column=hidden + 1,
        )
    return value


def _list(value: Any, expected: str, most: int = MOST_FORMULAS) -> list[Any]:
    if not isinstance(value, list):
        raise FieldError(f"is {shown(value)}", expected)
    if len(value) > most:
        raise FieldError(f"lists {len(value):,} entries", f"at most {most:,}")
    return value


def _whole(value: Any, low: int, high: int) -> int:
    expected = f"a whole number from {low} to {high:,}"
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise FieldError(f"is {shown(value)}", expected)
    return value


def _row(value: Any) -> tuple[int | float, ...]:
    numbers = _list(value, "a row of numbers", most=4096)
    if not numbers:
        raise FieldError("is an empty row", "a row of numbers")
    return tuple(_each(number, numbers))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return words(value)
    if isinstance(value, list):
        return _each(_number_or_word, _list(value, "a list of numbers", most=64))
    return _number_or_word(value)


def _number_or_word(value: Any) -> Any:
    if isinstance(value, str):
        return words(value)
    if not _is_number(value):
        raise FieldError(f"is {shown(value)}", "a number, a word in quotes, or a list of them")
    return number(value)


def _table(value: Any, read: Callable[[Any], Any]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FieldError(f"is {shown(value)}", 'a table such as { n = 10, beta = "large" }')
    for name in value:
        if not name.strip() or len(name) > LONGEST_NAME or deceptive(name) is not None:
            raise FieldError(
                f"has the name {shown(name)}", f"names of 1 to {LONGEST_NAME} characters"
            )
    return {name: _inside(name, read, item) for name, item in value.items()}


def _each(read: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    return [_inside(position, read, item) for position, item in enumerate(items)]


def _inside(key: str | int, read: Callable[[Any], Any], value: Any) -> Any:
    try:
        return read(value)
    except FieldError as error:
        error.inside = (key, *error.inside)
        raise


def field_text(field: tuple[str | int, ...]) -> str:
    """Write the path of a field as one would say it.

    >>> field_text(("heads", 1)), field_text(("where", "n"))
    ('heads[1]', 'where.n')
    """
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in field[1:])
    return f"{field[0]}{''.join(steps)}"


def field_error(
    field: tuple[str | int, ...], problem: str, *, expected: str = "", hint: str = ""
) -> FormulaError:
    """Return an error about one field of a claim; its sheet knows the line."""
    return FormulaError(field_text(field), problem, expected=expected, hint=hint, field=field)


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
