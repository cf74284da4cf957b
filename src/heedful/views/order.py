"""Order: which layers keep its laws and the case that breaks them, and encodings of positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from heedful.attention.equivariance import Equivariance
from heedful.attention.layer_check import LayerCheck
from heedful.positions import SCHEMES, PositionsStudy
from heedful.records import Record
from heedful.studies.conclusions import Conclusion, calculated
from heedful.views.blocks import Block, Bullets, Formula, Section, Span, Text, facts, group, table
from heedful.views.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    draw_matrix,
    figure_block,
    house_style,
    new_figure,
)
from heedful.views.formatting import matrix, number, sentence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EQUATIONS = {
    "equivariance": "f(PX) = P f(X)",
    "invariance": "f(PX) = f(X)",
    "feature": "f(XΠ) = f(X) Π",
    "conjugation": "f(PAPᵀ) = P f(A) Pᵀ",
}
SIDES = {
    "equivariance": ("X", "f(PX)", "P f(X)"),
    "invariance": ("X", "f(PX)", "f(X)"),
    "feature": ("X", "f(XΠ)", "f(X) Π"),
    "conjugation": ("A", "f(PAPᵀ)", "P f(A) Pᵀ"),
}
LARGEST = 8
"""Arrays with more rows or columns are not written out."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OrderFinding(Record):
    """One layer and one law."""

    layer: str
    """The layer's name."""
    law: str
    """equivariance, invariance, feature or conjugation."""
    finding: Equivariance | None
    """What the trials gave; None where the law does not apply to this layer."""
    reason: str | None
    """Why the law does not apply."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OrderStudy(Record):
    """Which layers keep which laws of order."""

    findings: tuple[OrderFinding, ...]
    """One for each layer and law."""


def order_blocks(record: OrderStudy) -> Iterator[Block]:
    """Yield which layers keep which laws; for a single layer, the case that breaks one."""
    layers, laws = _axes(record)
    grid = table(
        "What layers do to order", "layer", *(EQUATIONS[law] for law in laws),
        left=tuple(range(len(laws) + 1)),
    )  # fmt: skip
    for layer in layers:
        grid.row(layer, *(_verdict(_of(record, layer, law).finding) for law in laws))
    yield grid
    if len(layers) == 1:
        for found in record.findings:
            yield from _case(found)
        return
    for found in record.findings:
        broken = found.finding is not None and not found.finding.holds
        if broken and found.law == laws[0]:
            assert found.finding is not None
            yield Text(f"{found.layer}: {sentence(found.finding.statement)}")
    yield Text("“holds” was tried on random inputs, not proved; “fails” is certain.")


def layer_blocks(record: LayerCheck) -> Iterator[Block]:
    """Yield what `heed properties --layer file.py:function` prints."""
    grid = table(
        f"{record.function} as {record.kind}", "property", "", "what was seen", left=(0, 1, 2)
    )
    for one in record.properties:
        grid.row(one.name, Span("holds", "good") if one.holds else Span("fails", "bad"), one.reason)
    yield grid
    if record.diagnosis:
        yield Text(sentence(record.diagnosis))
    elif record.right:
        yield Text("Nothing wrong was found. Agreement was tried on random inputs, not proved.")


def order_figure(record: OrderStudy) -> Figure:
    """Draw the broken case of one layer, or the verdicts on several."""
    layers, _ = _axes(record)
    broken = [one for one in record.findings if one.finding is not None and not one.finding.holds]
    with house_style():
        if len(layers) == 1 and broken:
            return _case_figure(broken[0])
        return _verdicts_figure(record)


def _axes(record: OrderStudy) -> tuple[list[str], list[str]]:
    layers = list(dict.fromkeys(found.layer for found in record.findings))
    return layers, list(dict.fromkeys(found.law for found in record.findings))


def _of(record: OrderStudy, layer: str, law: str) -> OrderFinding:
    return next(one for one in record.findings if (one.layer, one.law) == (layer, law))


def _verdict(equivariance: Equivariance | None) -> Span:
    if equivariance is None:
        return Span("does not apply", "soft")
    if equivariance.holds:
        return Span("holds", "good")
    return Span(f"fails by {number(equivariance.relative, 2)}", "bad")


def _case(found: OrderFinding) -> Iterator[Block]:
    if found.finding is None:
        yield Text(f"{EQUATIONS[found.law]} does not apply: the layer {found.reason}.")
        return
    case = found.finding
    yield Text(sentence(case.statement))
    if case.holds or max(np.shape(case.input)) > LARGEST:
        return
    names = SIDES[found.law]
    grid = table(f"π = {case.permutation}", *names, left=(0, 1, 2))
    sides = (case.input, case.left, case.right)
    grid.row(*(Span(matrix(np.atleast_2d(side), 3), wrap=False) for side in sides))
    yield grid


def _case_figure(found: OrderFinding) -> Figure:
    case = found.finding
    assert case is not None
    figure = new_figure(9.6, 2.9)
    panels = figure.subplots(1, 4)
    left, right = np.atleast_2d(case.left), np.atleast_2d(case.right)
    arrays = (np.atleast_2d(case.input), left, right, left - right)
    names = (*SIDES[found.law], "difference")
    largest = max(float(np.abs(array).max()) for array in arrays[1:]) or 1.0
    for place, (axes, array, name) in enumerate(zip(panels, arrays, names, strict=True)):
        # The input has its own scale; both sides and their difference share one.
        draw_matrix(axes, array, float(np.abs(array).max()) or 1.0 if place == 0 else largest)
        axes.set_xticks([])
        axes.set_title(name)
    title = f"{found.layer}: {EQUATIONS[found.law]} fails for π = {case.permutation}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return figure


def _verdicts_figure(record: OrderStudy) -> Figure:
    layers, laws = _axes(record)
    from matplotlib.colors import ListedColormap

    figure = new_figure(2.6 + 1.75 * len(laws), 0.9 + 0.36 * len(layers))
    axes = figure.add_subplot()
    codes = {None: 0, True: 1, False: 2}
    grid = np.zeros((len(layers), len(laws)))
    for row, layer in enumerate(layers):
        for column, law in enumerate(laws):
            found = _of(record, layer, law).finding
            grid[row, column] = codes[None if found is None else found.holds]
            said = "–" if found is None else "holds" if found.holds else "fails"
            axes.text(column, row, said, ha="center", va="center", fontsize=9, color="white")
    axes.imshow(grid, cmap=ListedColormap([GREY, GREEN, RED]), vmin=0, vmax=2, aspect="auto")
    axes.set_xticks(range(len(laws)), [EQUATIONS[law] for law in laws])
    axes.set_yticks(range(len(layers)), layers)
    axes.set_xticks(np.arange(0.5, len(laws) - 1), minor=True)
    axes.set_yticks(np.arange(0.5, len(layers) - 1), minor=True)
    axes.grid(visible=False)
    axes.grid(visible=True, which="minor", color="white", alpha=1.0, linewidth=2)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    axes.set_title("What layers do to order")
    return figure


MOST_PAIRS = 6
"""Wavelengths listed in the terminal, evenly chosen."""
MOST_POINTS = 2000
"""Points of a drawn curve."""
MOST_LABELS = 16
"""Heads named in a legend."""

Panel: TypeAlias = "Callable[[Axes, PositionsStudy], None]"


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
    from matplotlib import colormaps

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


def _findings(record: PositionsStudy) -> tuple[Conclusion, ...]:
    if record.uniqueness is None or record.smallest_distance is None:
        return ()
    return (
        calculated(
            "Two positions never share a sinusoidal embedding, at any length: π is irrational. The "
            "closest two of {length} positions are still {distance:.3g} apart in {width} "
            "dimensions.",
            length=record.length,
            distance=record.smallest_distance.distance,
            width=record.width,
        ),
    )
