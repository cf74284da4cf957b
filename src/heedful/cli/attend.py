"""`heed attend`: let a query read values through its keys."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from heedful.cli.inputs import KeysFlags, combined, read_values
from heedful.cli.output import FigurePath, JsonFlag, check_figure_path, draw, show
from heedful.errors import InputError

DEFAULT_KEYS = KeysFlags()


def attend_command(
    keys: KeysFlags = DEFAULT_KEYS,
    *,
    query: Annotated[
        list[str] | None,
        Parameter(
            consume_multiple=True,
            json_list=False,
            help="The query: d numbers, a file, or JSON in place (one query or many).",
        ),
    ] = None,
    toward: Annotated[
        str | None, Parameter(help='The query as a combination of keys, such as "0+1".')
    ] = None,
    beta: Annotated[float, Parameter(help="Scale of --toward.")] = 1.0,
    values: Annotated[
        str | None, Parameter(help="A file or JSON in place. [default: unit vectors, so c = α]")
    ] = None,
    causal: Annotated[
        bool, Parameter(negative="", help="Query t sees keys 0…t only (as many queries as keys).")
    ] = False,
    mass_on: Annotated[
        list[int] | None, Parameter(consume_multiple=True, help="Report the mass on these keys.")
    ] = None,
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Let a query read values through its keys: c = Σ α_i v_i with α = softmax(k·q).

    Examples:

        heed attend --n 4 --query 6 6 0 0
        heed attend --n 10 --toward 0+1 --beta 6 --mass-on 0 1
        heed attend --keys '[[1,0],[0,1],[1,1]]' --query 3 -1 --values values.csv
        heed attend --keys run.npz:keys --query run.npz:queries --scale sqrt_d --json
    """
    from heedful.attention import attend
    from heedful.attention import causal as causal_mask
    from heedful.attention.operation import Reading
    from heedful.views.attention import reading_blocks, reading_figure

    check_figure_path(figure)
    key_rows = keys.array()
    queries = _queries(key_rows, query, toward, beta)
    mask = None
    if causal:
        if queries.ndim != 2 or len(queries) != len(key_rows):
            raise InputError(
                "--causal",
                f"there are {1 if queries.ndim == 1 else len(queries)} queries and "
                f"{len(key_rows)} keys",
                expected="as many queries as keys were expected",
            )
        mask = causal_mask(len(key_rows))
    reading = attend(
        queries,
        key_rows,
        read_values(values, len(key_rows)),
        scale=keys.scale_value(),
        mask=mask,
    )
    record = Reading.of(reading, mass_on)
    show(record, reading_blocks, json=json)
    draw(record, figure, reading_figure)
    return 0


def _queries(keys: Any, query: list[str] | None, toward: str | None, beta: float) -> Any:
    from heedful.arrays import float64, number_of
    from heedful.data.arrays import looks_like_array, read_array

    if (query is None) == (toward is None):
        raise InputError(
            "--query",
            "no query was given" if query is None else "was given together with --toward",
            expected="either --query or --toward was expected",
            way_out="for instance --toward 0+1 --beta 6",
        )
    if toward is not None:
        return combined(keys, toward, number_of("--beta", beta), "--toward")
    assert query is not None
    if len(query) == 1 and looks_like_array(query[0]):
        return float64("--query", read_array(query[0], "--query"))
    return float64("--query", [number_of("--query", number) for number in query])
