"""The HTML page of a check: one file, no script, no outside request, light and dark.

Everything that a sheet says is escaped by jinja2; nothing of it becomes markup.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from heedful import __version__
from heedful.claims.checker import WORDS, CheckReport, SheetSummary
from heedful.claims.exports import decisive, looked_at
from heedful.claims.sheet import toml_lines
from heedful.claims.verdict import Verdict
from heedful.views.claims_views import figure_name, sides
from heedful.views.terminal import number, sentence


@dataclass(frozen=True)
class Bar:
    """One entry of both sides of a counterexample, with lengths in percent."""

    entry: int
    """Counted from 0, as keys are."""
    left: str
    right: str
    left_length: float
    right_length: float


@dataclass(frozen=True)
class Section:
    """The claims of one sheet."""

    sheet: SheetSummary
    verdicts: tuple[Verdict, ...]
    problems: tuple[str, ...]


def claims_page(report: CheckReport, title: str = "Claims, checked") -> str:
    """Return the page of a check."""
    environment = Environment(
        loader=PackageLoader("heedful.views"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"toml": toml_lines, "decisive": decisive, "bars": _bars}
    environment.filters |= {"short": _short, "anchor": _anchor, "looked_at": looked_at}
    environment.filters |= {"sentence": sentence, "figure_name": figure_name}
    known = {f"{verdict.sheet}/{verdict.id}": verdict for verdict in report.claims}
    return environment.get_template("claims.html.j2").render(
        title=title,
        report=report,
        words=WORDS,
        sections=_sections(report),
        disagreements=[
            (known[one], known[other])
            for one, other in report.disagreements
            if one in known and other in known
        ],
        version=__version__,
    )


def _sections(report: CheckReport) -> list[Section]:
    found = [
        Section(
            sheet,
            tuple(verdict for verdict in report.claims if verdict.sheet == sheet.name),
            tuple(problem.message for problem in report.problems if problem.sheet == sheet.name),
        )
        for sheet in report.sheets
    ]
    return [section for section in found if section.verdicts or section.problems]


def _bars(verdict: Verdict) -> list[Bar]:
    pairs = None if verdict.counterexample is None else sides(verdict.counterexample)
    if pairs is None:
        return []
    longest = max(abs(x) for pair in pairs for x in pair) or 1.0
    return [
        Bar(
            place,
            number(left),
            number(right),
            round(100 * abs(left) / longest, 2),
            round(100 * abs(right) / longest, 2),
        )
        for place, (left, right) in enumerate(pairs)
    ]


def _short(value: Any) -> str:
    """Write a value of a record on a line: numbers in few digits, long lists cut."""
    if isinstance(value, bool | str) or value is None:
        return str(value)
    if isinstance(value, int | float) or (hasattr(value, "dtype") and value.ndim == 0):
        return number(value, 6)
    if isinstance(value, Mapping):
        return "; ".join(f"{_short(item)} for {name}" for name, item in value.items())
    if isinstance(value, list | tuple) or hasattr(value, "tolist"):
        items = [_short(item) for item in list(value)[:16]]
        return "[" + ", ".join(items) + (", …]" if len(value) > 16 else "]")
    return str(value)


def _anchor(verdict: Verdict) -> str:
    """Return an id that no two claims share and that needs no escaping in a link."""
    name = f"{verdict.sheet}/{verdict.id}"
    return "c-" + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in name)
