"""K, Q and V for a sequence: as outer products, as matrices, and as heat maps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from matplotlib.figure import Figure

from heedful.attention.sequence import Addition, SequenceDesign
from heedful.views.blocks import Block, Bullets, Span, Text, table
from heedful.views.drawing import draw_matrix, house_style, new_figure
from heedful.views.formatting import at_least, matrix, number, sentence, some, vector

LARGEST = 8
"""Matrices with more rows or columns are not written out."""
FORMS = {
    "kqv": "K, Q and V for",
    "values": "K and Q (V = I) for",
    "identity": "Without matrices (K = Q = V = I), for",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class FourVectorsDesign(SequenceDesign):
    """An answer to the four-vector problem, beside what happens without matrices."""

    without: SequenceDesign | None
    """The same problem with K = Q = V = I, beside an answer with all three matrices."""
    additions: tuple[Addition, ...]
    """What adding u_d or u_c to x_1 would change without matrices."""

    @classmethod
    def of(
        cls,
        design: SequenceDesign,
        *,
        without: SequenceDesign | None,
        additions: tuple[Addition, ...],
    ) -> FourVectorsDesign:
        """Put the answers together; the record reads as `design`."""
        own = {field.name: getattr(design, field.name) for field in fields(SequenceDesign)}
        return cls(**own, without=without, additions=additions)


def sequence_blocks(record: SequenceDesign) -> Iterator[Block]:
    """Yield the matrices, what each position reads and gets, and the certificate."""
    yield _summary(record)
    if record.form != "identity":
        yield from _matrices(record)
    if record.weights is not None:
        yield _reading(record)
    proof = record.certificate
    yield Text(f"Certificate ({proof.kind}): {sentence(proof.statement)}")
    if isinstance(record, FourVectorsDesign):
        yield from _without_matrices(record)


def sequence_figure(record: SequenceDesign) -> Figure:
    """Draw K, Q, V and the weights as heat maps."""
    with house_style():
        figure = new_figure(10.0, 3.1)
        panels = figure.subplots(1, 4)
        for axes, name in zip(panels, "KQV", strict=False):
            W = getattr(record, name)
            draw_matrix(axes, W, float(np.abs(W).max()) or 1.0)
            axes.set_title(f"${name}$")
        assert record.weights is not None
        axes = panels[3]
        draw_matrix(axes, record.weights, 1.0, "Blues")
        axes.set_yticks(range(len(record.positions)), [str(p) for p in record.positions])
        axes.set(xlabel="reads position", ylabel="position")
        axes.set_title(r"$\alpha$")
        for axes in panels:
            axes.set_aspect("equal")
        title = f"K, Q and V with an error of {number(record.error)}"
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        return figure


def _summary(record: SequenceDesign) -> Block:
    word = (
        ""
        if record.feasible
        else ": impossible"
        if record.certificate.proof
        else ": none was found"
    )
    outputs = some([f"c_{p} = {record.expressions[f'y_{p}']}" for p in record.positions], 4)
    grid = table(f"{FORMS[record.form]} {outputs}{word}", "", "", left=(0, 1))
    if record.form != "identity":
        for name in "KQV":
            if name in record.expressions:
                grid.row(name, record.expressions[name])
    if record.beta is not None:
        grid.row("scale β", f"{number(record.beta)} (smallest that reaches the tolerance)")
    if record.error is not None:
        absolute = "" if record.error_scale == 1 else f", {number(record.error_absolute)} absolute"
        grid.row("error", f"{number(record.error)}{absolute} (allowed: {number(record.tolerance)})")
    return grid


def _matrices(record: SequenceDesign) -> Iterator[Block]:
    shown = [(name, getattr(record, name)) for name in "KQV"]
    if any(W is None or max(W.shape) > LARGEST for _, W in shown):
        return
    grid = table("As matrices", *(name for name, _ in shown), left=(0, 1, 2))
    grid.row(*(Span(matrix(W), wrap=False) for _, W in shown))
    yield grid


def _reading(record: SequenceDesign) -> Block:
    grid = table("What each position reads", "position", "α", "c", "wanted", left=(0, 1, 2, 3))
    assert record.weights is not None
    for row, position in enumerate(record.positions[:20]):
        grid.row(
            str(position),
            vector(record.weights[row], digits=3, most=6),
            record.expressions.get(f"c_{position}", ""),
            record.expressions[f"y_{position}"],
        )
    return grid


def _without_matrices(record: FourVectorsDesign) -> Iterator[Block]:
    if record.without is not None and not record.without.feasible:
        proof = record.without.certificate
        wanted = record.expressions[f"y_{proof.position}"]
        yield Text("")
        yield Text(
            f"Without K, Q and V it is impossible: every output is an average of the inputs, and "
            f"c_{proof.position} = {wanted} is {at_least(proof.distance)} or more away from each."
        )
    yield Text("")
    yield Text("Adding a vector to x_1, without matrices:")
    yield Bullets(tuple(sentence(addition.statement) for addition in record.additions))
