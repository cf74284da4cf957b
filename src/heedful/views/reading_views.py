"""How a reading is shown: a table of weights, and bars."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.console import RenderableType

from heedful.attention.operation import Reading
from heedful.views.drawing import BLUE, GREY, house_style, new_figure
from heedful.views.terminal import number, table, vector

MOST_ROWS = 20
"""Keys listed in the terminal; the rest is summed up."""


def reading_tables(record: Reading) -> Iterator[RenderableType]:
    """Yield the terminal view of one query or many."""
    weights = np.asarray(record.weights)
    if weights.ndim == 1:
        yield from _one_query(record, weights)
    else:
        yield from _many_queries(record)


def reading_figure(record: Reading) -> Figure:
    """Draw the weights: bars for one query, a heat map for many."""
    weights = np.asarray(record.weights)
    with house_style():
        if weights.ndim == 1:
            figure = new_figure(7.2, 3.2)
            axes = figure.add_subplot()
            inside = set(record.mass_on or range(len(weights)))
            colours = [BLUE if key in inside else GREY for key in range(len(weights))]
            axes.bar(np.arange(len(weights)), weights, color=colours, width=0.8)
            axes.set(xlabel="key $i$", ylabel=r"$\alpha_i$", ylim=(0, 1))
            axes.set_title("Where the query reads")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            return figure
        grid = weights.reshape(-1, weights.shape[-1])
        figure = new_figure(7.2, min(7.2, 2.2 + 0.22 * len(grid)))
        axes = figure.add_subplot()
        image = axes.imshow(grid, vmin=0, vmax=1, cmap="Blues", aspect="auto")
        axes.grid(visible=False)
        axes.set(xlabel="key", ylabel="query")
        axes.set_title("Where each query reads")
        figure.colorbar(image, ax=axes, label=r"$\alpha$")
        return figure


def _one_query(record: Reading, weights: np.ndarray) -> Iterator[RenderableType]:
    made = table("Where the query reads", "key", "k·q", "α", "", left=(0, 3))
    order = np.argsort(-weights, kind="stable")
    logits = np.asarray(record.logits)
    for key in order[:MOST_ROWS]:
        bar = "█" * round(24 * float(weights[key]))
        made.add_row(str(int(key)), number(logits[key]), f"{weights[key]:.6f}", bar)
    if len(order) > MOST_ROWS:
        rest = order[MOST_ROWS:]
        made.add_row(f"{len(rest)} others", "", f"{weights[rest].sum():.6f}", "")
    yield made
    spread = (
        f"spread over {number(float(np.asarray(record.effective_keys)))} keys "
        f"(entropy {number(float(np.asarray(record.entropy)))} nats)"
    )
    yield f"c = {vector(np.asarray(record.output))}"
    if record.mass_on is not None:
        names = ", ".join(map(str, record.mass_on))
        yield f"mass on {{{names}}} = {float(np.asarray(record.mass)):.6f}"
    yield spread


def _many_queries(record: Reading) -> Iterator[RenderableType]:
    weights = np.asarray(record.weights)
    rows = weights.reshape(-1, weights.shape[-1])
    outputs = np.asarray(record.output).reshape(len(rows), -1)
    effective = np.asarray(record.effective_keys).reshape(-1)
    columns = ["query", "most read key", "its α", "keys read", "c"]
    masses = None
    if record.mass_on is not None:
        columns.insert(4, "mass on {" + ", ".join(map(str, record.mass_on)) + "}")
        masses = np.asarray(record.mass).reshape(-1)
    made = table("Where each query reads", *columns, left=(0, len(columns) - 1))
    for row in range(min(len(rows), MOST_ROWS)):
        best = int(np.argmax(rows[row]))
        cells = [str(row), str(best), f"{rows[row, best]:.4f}", number(effective[row])]
        if masses is not None:
            cells.append(f"{masses[row]:.4f}")
        made.add_row(*cells, vector(outputs[row], most=6))
    if len(rows) > MOST_ROWS:
        made.add_row(f"{len(rows) - MOST_ROWS} more", *[""] * (len(columns) - 1))
    yield made
