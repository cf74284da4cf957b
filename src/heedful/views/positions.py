"""An encoding of positions: what it promises, its table, and its part of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.positions import SCHEMES, PositionsStudy
from heedful.views.blocks import Block, Bullets, Formula, Section, Text, facts, group, table
from heedful.views.drawing import BLUE, GREY, ORANGE, figure_block, house_style, new_figure
from heedful.views.formatting import number, sentence

MOST_PAIRS = 6
"""Wavelengths listed in the terminal, evenly chosen."""
MOST_POINTS = 2000
"""Points of a drawn curve."""
MOST_LABELS = 16
"""Heads named in a legend."""

Panel = Callable[[Axes, PositionsStudy], None]


def positions_blocks(record: PositionsStudy) -> Iterator[Block]:
    """Yield the sizes, some wavelengths or slopes, the findings and the proof."""
    yield facts(
        SCHEMES[record.kind].title,
        ("positions", f"{record.length:,}"),
        None if record.kind == "alibi" else ("dimensions", f"{record.width:,}"),
        None if record.wavelengths is None else ("base", number(record.base)),
        ("order can be seen", "yes" if record.distinguishes else "no"),
    )
    if record.wavelengths is not None:
        yield _wavelengths(record)
    if record.slopes is not None:
        slopes = table("Slopes", "head", "lowers a score, for each position, by")
        for head, slope in enumerate(record.slopes):
            slopes.row(str(head), number(slope))
        yield slopes
    yield Bullets(tuple(map(sentence, record.statements)))
    if record.uniqueness is not None:
        proof = record.uniqueness.proof
        share = "no two positions share" if record.uniqueness.unique else "two positions share"
        yield Text(f"Why {share} an embedding:")
        yield Bullets(tuple(map(sentence, proof)), numbered=True)


def positions_figure(record: PositionsStudy) -> Figure:
    """Draw what there is: the table, the distances between positions, wavelengths, or slopes."""
    panels: list[Panel] = []
    if record.table is not None:
        panels.append(_draw_table)
    if record.gap_distances is not None:
        panels.append(_draw_distances)
    if record.wavelengths is not None:
        panels.append(_draw_wavelengths)
    if record.slopes is not None:
        panels.append(_draw_slopes)
    with house_style():
        figure = new_figure(7.2 if len(panels) == 1 else 4.3 * len(panels), 3.6)
        for axes, panel in zip(
            figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
        ):
            panel(axes, record)
        return figure


def _wavelengths(record: PositionsStudy) -> Block:
    assert record.wavelengths is not None
    lengths = record.wavelengths.lengths
    grid = table("Wavelengths", "dimensions", "positions for a full turn", "turns in this length")
    chosen = np.unique(np.linspace(0, len(lengths) - 1, MOST_PAIRS).round().astype(int))
    for pair in chosen.tolist():
        dimensions = f"{2 * pair}, {2 * pair + 1}"
        turns = record.length / lengths[pair]
        grid.row(dimensions, number(lengths[pair]), number(turns))
    return grid


def _draw_table(axes: Axes, record: PositionsStudy) -> None:
    assert record.table is not None
    largest = float(np.abs(record.table).max()) or 1.0
    image = axes.imshow(
        record.table, vmin=-largest, vmax=largest, cmap="RdBu", aspect="auto", rasterized=True
    )
    axes.grid(visible=False)
    axes.set(xlabel="dimension", ylabel="position $t$")
    axes.set_title(r"$\varphi(t)$" if record.table.any() else "Every position is 0")
    axes.figure.colorbar(image, ax=axes, shrink=0.9)


def _draw_distances(axes: Axes, record: PositionsStudy) -> None:
    assert record.gap_distances is not None
    gaps = np.arange(1, len(record.gap_distances))
    if len(gaps) > MOST_POINTS:
        gaps = np.unique(np.linspace(1, len(gaps), MOST_POINTS).astype(int))
    axes.plot(gaps, record.gap_distances[gaps], color=BLUE, linewidth=1.0)
    closest = record.smallest_distance
    if closest is not None:
        axes.plot([closest.gap], [closest.distance], "o", color=ORANGE, markersize=6, zorder=3)
        axes.annotate(
            f"closest: {number(closest.distance)}\nat gap {closest.gap}",
            (0.97, 0.06), xycoords="axes fraction", ha="right", fontsize=9, color=ORANGE,
        )  # fmt: skip
    axes.set(xlabel="gap $k$", ylabel=r"$\|\varphi(t + k) - \varphi(t)\|$")
    axes.set_ylim(bottom=0)
    axes.set_title("Distance between positions")


def _draw_wavelengths(axes: Axes, record: PositionsStudy) -> None:
    assert record.wavelengths is not None
    lengths = record.wavelengths.lengths
    axes.plot(np.arange(len(lengths)), lengths, "o", color=BLUE, markersize=3.5)
    axes.axhline(record.length, color=GREY, linestyle="--", linewidth=1.2)
    axes.annotate(
        f"length {record.length:,}", (0.02, record.length), xycoords=("axes fraction", "data"),
        textcoords="offset points", xytext=(0, 4), fontsize=9, color=GREY,
    )  # fmt: skip
    axes.set_yscale("log")
    axes.set(xlabel="pair $i$", ylabel=r"$\lambda_i$, positions for a turn")
    axes.set_title("Wavelengths")


def _draw_slopes(axes: Axes, record: PositionsStudy) -> None:
    assert record.slopes is not None
    gaps = np.linspace(0, record.length - 1, 200)
    shades = colormaps["viridis"](np.linspace(0.05, 0.85, len(record.slopes)))
    for head, (slope, shade) in enumerate(zip(record.slopes, shades, strict=True)):
        axes.plot(gaps, -slope * gaps, color=shade, label=f"head {head}: {number(slope)}")
    axes.set(xlabel="distance $|i - j|$", ylabel="added to the score", ylim=(-40, 1))
    if len(record.slopes) <= MOST_LABELS:
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.set_title("What ALiBi adds to each score")


def positions_section(record: PositionsStudy, seconds: float) -> Section:
    """Return the part of the report about sinusoidal positions."""
    proof = () if record.uniqueness is None else record.uniqueness.proof
    unique = "" if record.uniqueness is None else record.uniqueness.statement
    return Section(
        name="positions",
        title="Positions",
        lead="Where a token stands, as a vector: sines and cosines of the position.",
        blocks=(
            group(
                "Sines and cosines",
                Formula(
                    r"\phi_{2i}(t) = \sin\frac{t}{10000^{2i/d}}, \quad "
                    r"\phi_{2i+1}(t) = \cos\frac{t}{10000^{2i/d}}"
                ),
                map(sentence, record.statements),
                figure_block(
                    positions_figure(record),
                    "positions",
                    f"φ for {record.length} positions and {record.width} dimensions: "
                    "the first dimensions turn fast, the last ones hardly at all.",
                    f"heed positions --length {record.length} --width {record.width}",
                ),
            ),
            group("No two positions are alike", map(sentence, (unique, *proof))),
        ),
        findings=_findings(record),
        seconds=seconds,
    )


def _findings(record: PositionsStudy) -> tuple[str, ...]:
    if record.uniqueness is None or record.smallest_distance is None:
        return ()
    return (
        "Two positions never share a sinusoidal embedding, at any length: π is irrational. The "
        f"closest two of {record.length} positions are still "
        f"{record.smallest_distance.distance:.3g} apart in {record.width} dimensions.",
    )
