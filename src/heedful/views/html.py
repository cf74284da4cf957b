"""Blocks as HTML, and the templates of the pages.

Pages are one file each, hold no script and ask for nothing outside, in light and in dark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from heedful.views.blocks import Block, Cell, Span
from heedful.views.drawing import formula_svg
from heedful.views.formatting import duration


def blocks_html(blocks: Iterable[Block]) -> str:
    """Return blocks as an HTML fragment."""
    return environment().get_template("blocks.html.j2").render(blocks=list(blocks))


def blocks_page(title: str, blocks: Iterable[Block], *, wide: bool = False) -> str:
    """Return blocks as a page of its own."""
    template = environment().get_template("page.html.j2")
    return template.render(title=title, body=Markup(blocks_html(blocks)), wide=wide)


def notebook_html(blocks: Iterable[Block]) -> str:
    """Return blocks as a cell of a notebook shows them, with the few styles that they need."""
    template = environment().get_template("notebook.html.j2")
    return template.render(body=Markup(blocks_html(blocks)))


@cache
def environment() -> Environment:
    """Return the template environment: everything is escaped unless it is our own drawing.

    One for all, so that a notebook's cells do not compile the templates again and again; who has
    filters of their own puts them into an `overlay()`.
    """
    templates = Environment(
        loader=PackageLoader("heedful.views"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"drawing": Markup, "maths": maths, "duration": duration}
    templates.filters |= {"cell": _cell, "formula": lambda latex: Markup(formula_svg(latex))}
    return templates


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


def breakable(text: str) -> str:
    """Cut a long text and let long words break, so that a stammering model cannot widen a table.

    >>> breakable("plain")
    'plain'
    >>> len(breakable("The" * 200))
    415
    """
    shown = text if len(text) <= LONGEST_CELL else text[:LONGEST_CELL] + " …"
    return _LONG_WORD.sub("\\1\u200b", shown)


def _cell(cell: Cell) -> Markup:
    """Return one cell of a table; the space inside a cell that must not wrap is kept."""
    span = Span(cell) if isinstance(cell, str) else cell
    if not span.wrap:
        return Markup("<td><pre>{}</pre></td>").format(span.text)
    text = maths(breakable(span.text))
    if span.tone and not span.tone.startswith("#"):
        text = Markup('<span class="{}">{}</span>').format(span.tone, text)
    return Markup("<td>{}</td>").format(text)
