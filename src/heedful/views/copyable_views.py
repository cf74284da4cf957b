"""How copyable keys are shown: counts and margins, and in the plane the hull itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.console import RenderableType
from scipy.spatial import ConvexHull, QhullError

from heedful.attention.design.vertices import Copyable
from heedful.views.drawing import BLUE, GREEN, GREY, MARKER, ORANGE, house_style, new_figure
from heedful.views.terminal import at_least, at_most, paragraph, table

MOST_KEYS = 20
"""Keys listed one by one; of more, those with the largest margins."""
MOST_NAMES = 16
"""In the plane, up to this many keys carry their number."""
FEW = 60
"""Up to this many margins are drawn one by one."""


def copyable_tables(record: Copyable) -> Iterator[RenderableType]:
    """Yield how many keys can be copied, how that was decided, and the margins."""
    n = len(record.copyable)
    made = table(f"{record.count:,} of {n:,} keys can be copied", "decided by", "keys")
    for stage, count in record.stages.items():
        if count and stage != "undecided":
            made.add_row(stage, f"{count:,}")
    if record.undecided:
        made.add_row("left open by rounding", f"{len(record.undecided):,}")
    if made.row_count:
        yield made
    else:
        yield f"{record.count:,} of {n:,} keys can be copied"
    yield _margins(record)
    kind = "exact" if record.exact_margins else "certified lower and upper bounds"
    took = f" ({record.seconds:.0f} s)" if record.seconds >= 1 else ""
    yield paragraph(
        f"The margin is the distance of a key from the hull of the others ({kind}); where it is "
        f"0, no query copies the key.{took}"
    )
    if record.undecided:
        shown = ", ".join(map(str, record.undecided[:MOST_KEYS]))
        more = ", …" if len(record.undecided) > MOST_KEYS else ""
        yield paragraph(f"Left open by rounding: keys {shown}{more}")


def copyable_figure(record: Copyable, keys: Any = None) -> Figure:
    """Draw the margins in order; keys of the plane are drawn with their hull as well."""
    plane = None if keys is None or np.shape(keys)[1] != 2 else np.asarray(keys)
    with house_style():
        if plane is None:
            figure = new_figure(7.2, 3.6)
            _draw_margins(figure.add_subplot(), record)
            return figure
        figure = new_figure(9.0, 4.2)
        left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": (1.15, 1)})
        _draw_hull(left, record, plane)
        _draw_margins(right, record)
        return figure


def _margins(record: Copyable) -> RenderableType:
    n = len(record.copyable)
    order = np.argsort(-record.margin, kind="stable")
    few = n <= MOST_KEYS
    chosen = np.arange(n) if few else order[: MOST_KEYS // 2]
    made = table(
        "Margins" if few else "The largest margins",
        "key",
        "copyable",
        *(("margin",) if record.exact_margins else ("margin ≥", "≤")),
        left=(0, 1),
    )
    for key in chosen.tolist():
        word = "yes" if record.copyable[key] else "open" if key in record.undecided else "no"
        cells = [at_least(record.margin[key])]
        if not record.exact_margins:
            cells.append(at_most(record.margin_upper[key]) if word != "no" else "0")
        made.add_row(str(key), word, *cells)
    return made


def _draw_margins(axes: Axes, record: Copyable) -> None:
    n = len(record.copyable)
    chosen = np.flatnonzero(record.copyable & np.isfinite(record.margin))
    chosen = chosen[np.argsort(-record.margin[chosen], kind="stable")]
    lower, upper = record.margin[chosen], record.margin_upper[chosen]
    places = np.arange(1, len(chosen) + 1)
    few = len(chosen) <= FEW
    if not record.exact_margins and few:
        axes.vlines(places, lower, upper, color=BLUE, alpha=0.35, linewidth=4, label="bounds")
    elif not record.exact_margins:
        axes.plot(places, upper, ".", color=GREY, markersize=2.5, label="at most")
    label = "exact" if record.exact_margins else "at least"
    axes.plot(places, lower, "o" if few else "-", color=BLUE, markersize=4.5, label=label)
    if record.count < n:
        label = "cannot be copied"
        axes.axvspan(record.count + 0.5, n + 0.5, color=ORANGE, alpha=0.2, lw=0, label=label)
    if len(chosen):
        axes.set_yscale("log")
        # At least a decade, or a logarithmic axis has no labels.
        axes.set_ylim(lower.min() / 3, max(upper.max(), lower.max()) * 3.5)
    axes.set(xlabel="keys, sorted by margin", ylabel="margin", xlim=(0.5, n + 0.5))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(fontsize=9, loc="best")
    axes.set_title(f"{record.count:,} of {n:,} can be copied")


def _draw_hull(axes: Axes, record: Copyable, keys: Any) -> None:
    # Equal keys cannot be copied and are corners all the same: the outline is that of all keys.
    try:
        corners = ConvexHull(keys).vertices
        outline = keys[np.append(corners, corners[0])]
        axes.plot(*outline.T, color=GREY, linewidth=1.2, zorder=1)
        axes.fill(*outline.T, color=GREY, alpha=0.1, linewidth=0, zorder=0)
    except QhullError:
        pass  # fewer than three corners: there is no area to draw
    open_keys = np.isin(np.arange(len(keys)), record.undecided)
    groups = (
        ("can be copied", record.copyable, BLUE, "o"),
        ("cannot", ~record.copyable & ~open_keys, ORANGE, "X"),
        ("left open", open_keys, GREEN, "s"),
    )
    for label, chosen, colour, mark in groups:
        if chosen.any():
            x, y = keys[chosen].T
            axes.scatter(x, y, color=colour, marker=mark, s=34, label=label, zorder=2, linewidth=0)
    if len(keys) <= MOST_NAMES:
        for key, place in enumerate(keys):
            axes.annotate(
                str(key), tuple(place), textcoords="offset points", xytext=(5, 4), fontsize=8,
                color=MARKER,
            )  # fmt: skip
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.1)
    axes.set(xlabel="first dimension", ylabel="second dimension")
    axes.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)
    axes.set_title("The keys and their hull")
