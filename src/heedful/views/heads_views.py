"""How robust heads are shown: beside hand-made choices, and along both budgets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import RenderableType

from heedful.attention.noise.robust import HeadsChoice, HeadsDesign
from heedful.views.design_views import in_keys
from heedful.views.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, house_style, new_figure
from heedful.views.terminal import number, paragraph, sentence, table, vector

Curve = Sequence[Mapping[str, float | int]]
"""Errors along a budget: its value under "beta" or "heads", the choices under their names."""

MOST_HEADS = 8
"""Queries written out in the terminal."""
FLOOR = 1e-9
"""Errors below this are rounding; the figure ends here."""


def heads_tables(record: HeadsDesign, keys: Any = None) -> Iterator[RenderableType]:
    """Yield the queries found, how they compare, and the curves where they were followed."""
    count = len(record.queries)
    wanted = np.flatnonzero(record.target_weights)
    shown = ", ".join(map(str, wanted[:8])) + (", …" if len(wanted) > 8 else "")
    heads = f"{count} head{'s' if count > 1 else ''}"
    made = table(
        f"{heads} for keys {{{shown}}}, ‖q‖ ≤ {number(record.norm)}", "head", "‖q‖", "query",
        left=(0, 2),
    )  # fmt: skip
    for head, query in enumerate(record.queries[:MOST_HEADS]):
        written = None if keys is None else in_keys(query, keys)
        made.add_row(str(head), number(np.linalg.norm(query)), written or vector(query))
    if count > MOST_HEADS:
        made.add_row(f"{count - MOST_HEADS} more")
    yield made
    yield _comparison(record)
    for budget, name, curve in (
        ("beta", "Error against the norm allowed", record.by_beta),
        ("heads", "Error against the number of heads", record.by_heads),
    ):
        if curve is not None:
            yield _curve_table(name, budget, curve)
    yield paragraph("The error is √E‖c − target‖²; squared, it is bias² + variance.")
    yield paragraph(f"Certificate: {sentence(record.certificate.statement)}")


def heads_figure(record: HeadsDesign) -> Figure:
    """Draw the error against the norm and against the number of heads (see `error_curves`)."""
    assert record.by_beta is not None
    assert record.by_heads is not None
    with house_style():
        figure = new_figure(9.0, 4.4)
        left, right = figure.subplots(1, 2, sharey=True)
        _draw_curve(left, "beta", record.by_beta)
        left.set_xscale("log")
        norms = [float(point["beta"]) for point in record.by_beta]
        left.set_xticks(norms, [number(norm) for norm in norms])
        left.minorticks_off()
        left.set(xlabel=r"norm allowed, $\beta$", ylabel=r"error $\sqrt{E\|c - t\|^2}$")
        left.set_title(f"{len(record.queries)} heads, longer queries")
        _draw_curve(right, "heads", record.by_heads)
        right.set_xticks([int(point["heads"]) for point in record.by_heads])
        right.set(xlabel="number of heads")
        right.set_title(rf"More heads, $\beta \leq$ {number(record.norm)}")
        left.set_yscale("log")
        lowest = min(float(point["optimal"]) for point in (*record.by_beta, *record.by_heads))
        left.set_ylim(bottom=max(lowest / 3, FLOOR))
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=9)
        return figure


def _comparison(record: HeadsDesign) -> RenderableType:
    made = table("Compared at this budget", "choice", "error", "± s.e.", "bias", "std", "mass on S")
    rows: list[tuple[str, HeadsDesign | HeadsChoice]] = [("found here", record)]
    rows += [(choice.name, choice) for choice in record.comparison]
    for name, choice in rows:
        # The standard error is that of the square: d√x = dx / (2√x).
        se = choice.standard_error / (2 * choice.error) if choice.error else 0.0
        made.add_row(
            name,
            number(choice.error),
            number(se, 2) if se else "exact",
            number(choice.squared_bias**0.5),
            number(choice.variance**0.5),
            f"{choice.mass:.4f}",
        )
    return made


def _curve_table(name: str, budget: str, curve: Curve) -> RenderableType:
    symbol = {"beta": "β", "heads": "heads"}[budget]
    made = table(name, "choice", *(f"{symbol} = {number(point[budget])}" for point in curve))
    for choice in _choices(curve, budget):
        cells = [number(point[choice], 3) if choice in point else "–" for point in curve]
        made.add_row("found here" if choice == "optimal" else choice, *cells)
    return made


def _choices(curve: Curve, budget: str) -> list[str]:
    """Return the names of the choices, the optimum first, in the order they appear."""
    return list(dict.fromkeys(name for point in curve for name in point if name != budget))


def _draw_curve(axes: Axes, budget: str, curve: Curve) -> None:
    colours = (ORANGE, GREEN, PURPLE, RED, GREY)
    marks = ("s", "^", "v", "D", "P")
    others = sorted(name for name in _choices(curve, budget) if name != "optimal")
    for place, name in enumerate(others):
        points = [point for point in curve if name in point]
        axes.plot(
            [point[budget] for point in points],
            [point[name] for point in points],
            marker=marks[place % len(marks)],
            color=colours[place % len(colours)],
            markersize=4.5,
            linewidth=1.3,
            label=name,
        )
    axes.plot(
        [point[budget] for point in curve],
        [point["optimal"] for point in curve],
        "o-",
        color=BLUE,
        markersize=5.5,
        linewidth=2.4,
        label="found by the search",
    )
