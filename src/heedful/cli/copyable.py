"""`heed copyable`: which keys can be copied at all."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from heedful.cli.inputs import KeysFlags
from heedful.cli.output import FigurePath, JsonFlag, check_figure_path, draw, show

DEFAULT_KEYS = KeysFlags()


def copyable_command(
    keys: KeysFlags = DEFAULT_KEYS,
    *,
    exact_margins: Annotated[
        bool, Parameter(help="Solve for every margin exactly (slower) instead of bounds.")
    ] = False,
    workers: Annotated[int, Parameter(help="Processes that share the exact tests.")] = 1,
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Tell which keys can be copied: those that are vertices of the keys' convex hull.

    The same question asks which tokens an output layer can ever predict: give its matrix,
    one row a token. The margin of a key is how far it sticks out of the hull of the others.

    Examples:

        heed copyable --keys grid --n 27 --d 3
        heed copyable --keys gaussian --n 40 --d 2 --figure hull.svg
        heed copyable --keys model.safetensors:lm_head.weight --workers 2 --json
    """
    from heedful.attention import copyable
    from heedful.progress import meter
    from heedful.views.attention import copyable_blocks, copyable_figure

    check_figure_path(figure)
    rows = keys.array()
    with meter(f"testing {len(rows):,} keys") as step:
        record = copyable(rows, exact_margins=exact_margins, workers=workers, progress=step)
    show(record, copyable_blocks, json=json)
    draw(record, figure, lambda found: copyable_figure(found, rows))
    return 0
