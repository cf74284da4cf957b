"""`heed positions`: position embeddings and what they promise."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import FigurePath, JsonFlag, check_figure_path, draw, show
from heedful.positions import SchemeKind


def positions(
    *,
    kind: Annotated[
        SchemeKind,
        Parameter(help="How positions are told apart."),
    ] = "sinusoidal",
    length: Annotated[int, Parameter(help="Positions 0 … length − 1.")] = 512,
    width: Annotated[int, Parameter(help="Dimensions of an embedding.")] = 64,
    base: Annotated[float, Parameter(help="Base of the frequencies.")] = 10_000.0,
    heads: Annotated[int, Parameter(help="Heads, for ALiBi's slopes.")] = 8,
    table: Annotated[
        str | None, Parameter(help="A learned table: a file or JSON in place. [default: random]")
    ] = None,
    seed: Annotated[int, Parameter(help="Seed of what is random.")] = 0,
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Show what an encoding of positions promises: uniqueness, distances, shifts, precision.

    Proofs are proofs: uniqueness by an argument about π, the smallest distance by ball
    arithmetic. Coincidences in fp16 and bf16 are counted.

    Examples:

        heed positions --length 512 --width 64
        heed positions --kind rotary --length 4096 --width 128 --base 500000
        heed positions --kind learned --table model.safetensors:wpe.weight --json
    """
    from heedful.positions import positions_study
    from heedful.views.positions import positions_blocks, positions_figure

    check_figure_path(figure)
    rows = None
    if table is not None:
        from heedful.data.arrays import read_array

        rows = read_array(table, "--table")
    record = positions_study(kind, length, width, base, heads=heads, table=rows, seed=seed)
    show(record, positions_blocks, json=json)
    draw(record, figure, positions_figure)
    return 0
