"""Laws of order: which layers keep them, and the case that breaks them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from heedful.attention.equivariance import Equivariance
from heedful.records import Record
from heedful.views.blocks import Block, Span, Text, table
from heedful.views.drawing import GREEN, GREY, RED, draw_matrix, house_style, new_figure
from heedful.views.formatting import matrix, number, sentence

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
