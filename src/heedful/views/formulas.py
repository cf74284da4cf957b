"""Formulas as drawings: LaTeX mathematics set by matplotlib, in the colour of the page."""

from __future__ import annotations

import re
from functools import cache

from matplotlib.figure import Figure

from heedful.views.drawing import house_style, inline_svg


@cache
def formula_svg(latex: str, size: float = 13.0) -> str:
    """Return a displayed formula as inline SVG, scaled in em so that it follows the text."""
    with house_style():
        figure = Figure(figsize=(0.01, 0.01))
        text = figure.text(0, 0, f"${latex}$", fontsize=size)
        # Measure first, then give the figure exactly the room the formula needs.
        box = text.get_window_extent()
        width, height = box.width / figure.dpi + 0.08, box.height / figure.dpi + 0.08
        figure.set_size_inches(width, height)
        text.set_position((0.04 / width, (0.04 - box.y0 / figure.dpi) / height))
        svg = inline_svg(figure, _spoken(latex))
    em = height * 72 / size
    return svg.replace("<svg", f'<svg class="formula" style="height:{em:.2f}em"', 1)


def _spoken(latex: str) -> str:
    return re.sub(r"[\\{}]", " ", latex).strip()
