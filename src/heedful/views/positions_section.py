"""The positions part of the report."""

from __future__ import annotations

from heedful.positions import PositionsStudy
from heedful.views.drawing import inline_svg
from heedful.views.formulas import formula_svg
from heedful.views.page import Block, Figure, Section
from heedful.views.positions_views import positions_figure
from heedful.views.terminal import sentence


def positions_section(record: PositionsStudy, seconds: float) -> Section:
    """Tell a study of sinusoidal positions."""
    proof = () if record.uniqueness is None else record.uniqueness.proof
    unique = "" if record.uniqueness is None else record.uniqueness.statement
    return Section(
        name="positions",
        title="Positions",
        lead="Where a token stands, as a vector: sines and cosines of the position.",
        blocks=(
            Block(
                heading="Sines and cosines",
                formula=formula_svg(
                    r"\phi_{2i}(t) = \sin\frac{t}{10000^{2i/d}}, \quad "
                    r"\phi_{2i+1}(t) = \cos\frac{t}{10000^{2i/d}}"
                ),
                paragraphs=tuple(sentence(text) for text in record.statements),
                figures=(
                    Figure(
                        svg=inline_svg(positions_figure(record), "positions"),
                        caption=f"φ for {record.length} positions and {record.width} dimensions: "
                        "the first dimensions turn fast, the last ones hardly at all.",
                        command=f"heed positions --length {record.length} --width {record.width}",
                    ),
                ),
            ),
            Block(
                heading="No two positions are alike",
                paragraphs=tuple(sentence(text) for text in (unique, *proof)),
            ),
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
