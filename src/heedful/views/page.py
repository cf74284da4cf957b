"""One self-contained HTML page from sections: no script, no outside request, light and dark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A drawing with its caption and the command that reproduces it."""

    svg: str
    caption: str
    command: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A small table; cells are plain text."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    marks: tuple[str, ...] = ()
    """A word for each row that colours it: good, bad, or nothing."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A paragraph or several under a heading, with formulas, figures and tables."""

    heading: str
    paragraphs: tuple[str, ...] = ()
    formula: str = ""
    """An SVG of the equation, if there is one."""
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    command: str = ""


@dataclass(frozen=True, kw_only=True)
class Section:
    """One part of the laboratory, told."""

    name: str
    title: str
    lead: str
    blocks: tuple[Block, ...]
    findings: tuple[str, ...] = field(default_factory=tuple)
    """What was found, a sentence or two each, weightiest first: the summary takes the first two."""
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class PageFacts:
    """What stands at the foot of the page."""

    version: str
    machine: str
    date: str
    command: str
    """What makes the page again; empty where its parts say so themselves."""
    seconds: float = 0.0
    """How long everything took."""
    notice: str = ""
    """What a reader must know before the numbers."""


@dataclass(frozen=True, kw_only=True)
class PagePart:
    """One part, as the page needs it."""

    name: str
    title: str
    summary: tuple[str, ...]
    fragment: str
    """Its section, as HTML."""
    seconds: float
    command: str = ""
    """What makes it again."""


def environment() -> Environment:
    """Return the template environment: everything is escaped unless it is our own drawing."""
    made = Environment(
        loader=PackageLoader("heedful.views"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["drawing"] = Markup
    made.filters["maths"] = maths
    made.filters["duration"] = duration
    made.filters["breakable"] = breakable
    return made


_GREEK = {
    "alpha": "α",
    "beta": "β",
    "mu": "μ",
    "phi": "φ",
    "sigma": "σ",
    "xi": "ξ",
    "epsilon": "ε",
    "Sigma": "Σ",
    "Pi": "Π",
}
_GREEK_WORD = re.compile(rf"(?<![A-Za-z])({'|'.join(_GREEK)})(?![A-Za-z])")
_SUBSCRIPT = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z\u0370-\u03ff])_([a-zA-Z0-9])(?![A-Za-z0-9_])")
_POWER = re.compile(r"\^(-?\d+)")
LONGEST_CELL, LONGEST_WORD = 400, 30
"""Characters of a cell that are shown, and of a word before a line may break inside it."""
_LONG_WORD = re.compile(rf"(\S{{{LONGEST_WORD}}})(?=\S)")


def maths(text: str) -> Markup:
    """Set names such as k_a with their subscript; everything else is escaped text.

    >>> maths("k_a^T mu_b < beta^2")
    Markup('<i>k</i><sub>a</sub>ᵀ <i>μ</i><sub>b</sub> &lt; β<sup>2</sup>')
    """
    plain = _GREEK_WORD.sub(lambda found: _GREEK[found[1]], text.replace("^T", "ᵀ"))
    marked = _SUBSCRIPT.sub(r"<i>\1</i><sub>\2</sub>", str(escape(plain)))
    return Markup(_POWER.sub(r"<sup>\1</sup>", marked))


def duration(seconds: float) -> str:
    """Write a time as people say it.

    >>> duration(4.21), duration(75.0), duration(600)
    ('4.2 s', '1 min 15 s', '10 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def breakable(text: str) -> str:
    """Cut a long text, and let long words break: a model may stammer, and the table must stand.

    >>> breakable("plain")
    'plain'
    >>> len(breakable("The" * 200))
    415
    """
    shown = text if len(text) <= LONGEST_CELL else text[:LONGEST_CELL] + " …"
    return _LONG_WORD.sub("\\1\u200b", shown)


def section_html(section: Section) -> str:
    """Return one section as an HTML fragment."""
    return environment().get_template("section.html.j2").render(section=section)


def page_html(parts: Sequence[PagePart], facts: PageFacts) -> str:
    """Return the whole page of some parts, in order."""
    return environment().get_template("report.html.j2").render(parts=parts, facts=facts)
