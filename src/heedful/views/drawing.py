"""How figures and formulas look, and how they are saved.

Figures are drawn by matplotlib with one style. Text and axes are drawn in a marker colour:
a saved file gets ink in its place, the HTML page gets `currentColor`, so that one drawing
is readable on light and on dark pages.

matplotlib takes as long to import as everything else that judges a claim, so it is imported where
something is drawn, here and in the other views.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from cycler import cycler

from heedful.files import write_atomic
from heedful.views import blocks
from heedful.views.formatting import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1f2430"
MARKER = "#010203"
"""Placeholder for the text colour until the figure is saved or put into a page."""

BLUE, ORANGE, GREEN, RED, PURPLE, GREY = (
    "#3b6fd4",
    "#e0803a",
    "#3a9d7a",
    "#cf4a5b",
    "#8a63c9",
    "#8b93a3",
)
PALETTE = (BLUE, ORANGE, GREEN, RED, PURPLE, GREY)

STYLE: dict[Any, Any] = {
    "figure.dpi": 120,
    "savefig.dpi": 160,
    "font.size": 10,
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavuserif",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MARKER,
    "axes.labelcolor": MARKER,
    "axes.titlecolor": MARKER,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GREY,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "text.color": MARKER,
    "xtick.color": MARKER,
    "ytick.color": MARKER,
    "axes.prop_cycle": cycler(color=PALETTE),
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "svg.hashsalt": "heedful",  # the same figure gives the same bytes
    "svg.fonttype": "path",
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the house style inside this block."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        yield


@cache
def _kind_of_figure() -> type[Figure]:
    """Return matplotlib's figure with what a notebook shows: text in its own colours."""
    from matplotlib.figure import Figure

    class Drawing(Figure):
        def _repr_html_(self) -> str:
            titles = [axes.get_title(loc="left") or axes.get_title() for axes in self.axes]
            label = next(filter(None, titles), "figure")
            style = f"max-width:{self.get_figwidth() * 96:.0f}px"
            return f'<div style="{style}">{inline_svg(self, label)}</div>'

    return Drawing


def new_figure(width: float = 7.2, height: float = 3.6) -> Figure:
    """Return an empty figure (inches); no window is ever opened."""
    return _kind_of_figure()(figsize=(width, height), layout="constrained")


def figure_block(figure: Figure, label: str, caption: str, command: str = "") -> blocks.Figure:
    """Return a drawing as a block; `label` is what a screen reader says."""
    return blocks.Figure(inline_svg(figure, label), caption, command)


def draw_matrix(axes: Axes, W: Any, largest: float, cmap: str = "RdBu", most: int = 8) -> None:
    """Draw a matrix as a heat map from −largest to largest, with its entries if it is small."""
    # The colours end short of the darkest shades, so that entries can be read on them.
    low = 0.0 if cmap == "Blues" else -1.3 * largest
    axes.imshow(W, vmin=low, vmax=1.3 * largest, cmap=cmap, aspect="auto")
    axes.grid(visible=False)
    small = max(W.shape) <= most
    axes.set_xticks(range(W.shape[1]) if small else [])
    axes.set_yticks(range(W.shape[0]) if small else [])
    for (row, column), entry in np.ndenumerate(W):
        if small and abs(entry) > 1e-9 * largest:
            colour = "white" if abs(entry) > 0.7 * largest else INK
            text = number(entry, 2)
            axes.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)


def legend_below(figure: Figure, axes: Axes, columns: int) -> None:
    """Put the legend of some axes below the figure."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=9)


def inline_svg(figure: Figure, label: str) -> str:
    """Return a figure as SVG to be put inside HTML, text in the page's own colour."""
    svg = _svg(figure).replace(MARKER, "currentColor")
    svg = svg[svg.index("<svg") :]
    # Several figures share one page, in a notebook also several of one label: ids must not meet.
    digest = hashlib.sha256(svg.encode()).hexdigest()[:8]
    prefix = re.sub(r"\W+", "-", label.lower())[:40] + f"-{digest}"
    svg = re.sub(r'id="([^"]+)"', rf'id="{prefix}-\1"', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    spoken = label.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return svg.replace("<svg", f'<svg role="img" aria-label="{spoken}"', 1)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as .svg, .png or .pdf, atomically."""
    kind = path.suffix.lower().lstrip(".")
    if kind == "svg":
        content = _svg(figure).replace(MARKER, INK).encode()
    else:
        _recolour(figure)
        buffer = io.BytesIO()
        with house_style():
            metadata = {"CreationDate": None} if kind == "pdf" else {"Software": None}
            figure.savefig(buffer, format=kind, metadata=metadata, facecolor="white")
        content = buffer.getvalue()
    write_atomic(path, content)


def _svg(figure: Figure) -> str:
    buffer = io.StringIO()
    with house_style():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _recolour(figure: Figure) -> None:
    """Give every artist drawn in the marker colour its ink."""
    from matplotlib.colors import to_hex

    for artist in figure.findobj():
        for getter, setter in (("get_color", "set_color"), ("get_edgecolor", "set_edgecolor")):
            if not (hasattr(artist, getter) and hasattr(artist, setter)):
                continue
            try:
                same = to_hex(getattr(artist, getter)()) == MARKER
            except (ValueError, TypeError):
                continue  # several colours at once: none of them is the marker
            if same:
                getattr(artist, setter)(INK)


@cache
def formula_svg(latex: str, size: float = 13.0) -> str:
    """Return a displayed formula as inline SVG, scaled in em so that it follows the text."""
    with house_style():
        figure = _kind_of_figure()(figsize=(0.01, 0.01))
        text = figure.text(0, 0, f"${latex}$", fontsize=size)
        # Measure first, then give the figure exactly the room the formula needs.
        box = text.get_window_extent()
        width, height = box.width / figure.dpi + 0.08, box.height / figure.dpi + 0.08
        figure.set_size_inches(width, height)
        text.set_position((0.04 / width, (0.04 - box.y0 / figure.dpi) / height))
        svg = inline_svg(figure, re.sub(r"[\\{}]", " ", latex).strip())
    em = height * 72 / size
    return svg.replace("<svg", f'<svg class="formula" style="height:{em:.2f}em"', 1)
