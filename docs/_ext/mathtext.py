"""Formulas in the page as SVG outlines, drawn by matplotlib's mathtext while the site builds.

The usual renderers load a script from another host or need LaTeX. Here a formula becomes one
path: it needs no font and no script, takes the colour of the text around it (so dark mode
works), grows with the text, and sits on its baseline because mathtext tells the depth.
The source of the formula is its label for screen readers.
"""

from __future__ import annotations

import functools
import html
import re
from typing import Any

import matplotlib
import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextToPath

EM = 1000
"""Units of the drawing for one em of the surrounding text."""
SIZE = 1100
"""A formula is drawn slightly larger, so that its x-height matches the sans serif text."""
LINE = r"\\"
"""Separates the lines of a displayed formula; mathtext itself draws one line."""


# mathtext sets what follows a sum too close to it, and gives a transpose the room of a relation.
LARGE_OPERATOR = re.compile(r"(\\(?:sum|int|prod)(?:[_^](?:\{[^{}]*\}|\\\w+|\w))*)")
TRANSPOSE = re.compile(r"\^\{?\\top\b\}?")


def spaced(source: str) -> str:
    """Return the formula with the spaces that TeX would set by itself."""
    return TRANSPOSE.sub(r"^{\\!\\!\\top\\!}", LARGE_OPERATOR.sub(r"\1\\,", source))


@functools.cache
def outline(source: str) -> tuple[str, float, float, float, float]:
    """Return the SVG path of a formula and its box: left, width, height above, depth below."""
    with matplotlib.rc_context({"mathtext.fontset": "cm"}):
        drawing = TextToPath()
        vertices, codes = drawing.get_text_path(
            FontProperties(), f"${spaced(source)}$", ismath=True
        )
    path = Path(np.asarray(vertices) * (SIZE / drawing.FONT_SCALE), codes)
    (left, low), (right, high) = extents(path)
    return _svg_path(path), left, right - left, high, max(-low, 0.0)


def extents(path: Path) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the lower left and the upper right corner of a path, to the last hump of a curve.

    What `path.get_extents()` gives, for all curves at once: taken one after another they were half
    of the time of a formula. B'(t) = 0 at t = (p₀ - p₁)/(p₀ - 2p₁ + p₂), in each coordinate.
    """
    codes, points = path.codes, path.vertices
    if codes is None or (codes == Path.CURVE4).any():  # our fonts have quadratic curves only
        box = path.get_extents()
        return (box.x0, box.y0), (box.x1, box.y1)
    curved = codes == Path.CURVE3
    control = curved & (np.cumsum(curved) % 2 == 1)  # then comes the end of the curve
    place = np.flatnonzero(control)
    p0, p1, p2 = points[place - 1], points[place], points[place + 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (p0 - p1) / (p0 - 2 * p1 + p2)
    t = np.where((t > 0) & (t < 1), t, 0.0)
    humps = (1 - t) ** 2 * p0 + 2 * t * (1 - t) * p1 + t**2 * p2
    seen = np.concatenate([points[~control & (codes != Path.CLOSEPOLY)], humps])
    return tuple(seen.min(axis=0)), tuple(seen.max(axis=0))


def svg(source: str, css_class: str = "formula") -> str:
    """Return one line of mathematics as an inline SVG element."""
    path, left, width, above, below = outline(source)
    pad = 20
    view = (left - pad, -above - pad, width + 2 * pad, above + below + 2 * pad)
    style = (
        f"width:{view[2] / EM:.3f}em;height:{view[3] / EM:.3f}em;"
        f"vertical-align:{-(below + pad) / EM:.3f}em"
    )
    label = html.escape(" ".join(source.split()), quote=True)
    return (
        f'<svg class="{css_class}" role="img" aria-label="{label}" style="{style}" '
        f'viewBox="{" ".join(f"{value:.0f}" for value in view)}" fill="currentColor">'
        f'<path d="{path}"/></svg>'
    )


def _svg_path(path: Path) -> str:
    letters = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C"}
    parts = []
    for points, code in path.iter_segments(curves=True, simplify=False):
        if code == Path.CLOSEPOLY:
            parts.append("Z")
        elif code != Path.STOP:
            # SVG counts downwards.
            numbers = (
                f"{(-value if place % 2 else value):.0f}" for place, value in enumerate(points)
            )
            parts.append(letters[code] + " ".join(numbers))
    return "".join(parts)


def _failure(node: Any, problem: Exception) -> None:
    from sphinx.util import logging

    logging.getLogger(__name__).warning(
        "formula cannot be drawn: %s (%s)", node.astext(), problem, location=node
    )


def visit_inline(self: Any, node: Any) -> None:
    """Write an inline formula."""
    from docutils import nodes

    try:
        self.body.append(svg(node.astext()))
    except ValueError as problem:
        _failure(node, problem)
    raise nodes.SkipNode


def visit_block(self: Any, node: Any) -> None:
    """Write a displayed formula, one line of the page for each line of the source."""
    from docutils import nodes

    self.body.append(self.starttag(node, "div", CLASS="math formula-block"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({node["number"]})</span>')
        self.add_permalink_ref(node, "Link to this formula")
    for line in node.astext().split(LINE):
        try:
            self.body.append(f"<div>{svg(line.strip())}</div>")
        except ValueError as problem:
            _failure(node, problem)
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer; conf.py selects it with `html_math_renderer`."""
    app.add_html_math_renderer("mathtext", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
