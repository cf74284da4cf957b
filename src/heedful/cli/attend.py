"""`heed attend` and `heed noise`: attention itself, and what noisy keys do to it."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from heedful.cli.inputs import (
    KeysFlags,
    NoiseFlags,
    ValuesFlag,
    read_numbers,
    read_values,
)
from heedful.cli.output import FigurePath, JsonFlag, check_figure_path, draw, show
from heedful.errors import InputError

DEFAULT_KEYS = KeysFlags()
DEFAULT_NOISE = NoiseFlags()


def attend_command(
    keys: KeysFlags = DEFAULT_KEYS,
    *,
    query: Annotated[
        list[str] | None,
        Parameter(
            consume_multiple=True,
            json_list=False,
            help="The query: d numbers, a file, or inline JSON (one query or many).",
        ),
    ] = None,
    toward: Annotated[
        str | None, Parameter(help='The query as a combination of keys, such as "0+1".')
    ] = None,
    beta: Annotated[float, Parameter(help="Scale of --toward.")] = 1.0,
    values: ValuesFlag = None,
    causal: Annotated[
        bool, Parameter(negative="", help="Query t sees keys 0…t only (as many queries as keys).")
    ] = False,
    mass_on: Annotated[
        list[int] | None, Parameter(consume_multiple=True, help="Report the mass on these keys.")
    ] = None,
    mean: Annotated[
        bool, Parameter(negative="", help="Also the mean of all outputs: the queries are heads.")
    ] = False,
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Compute attention for one query or many: c = Σ α_i v_i with α = softmax(k·q).

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
    record = Reading.of(reading, mass_on, mean)
    show(record, reading_blocks, json=json)
    draw(record, figure, reading_figure)
    return 0


def _queries(keys: Any, query: list[str] | None, toward: str | None, beta: float) -> Any:
    from heedful.arrays import float64, number_of

    if (query is None) == (toward is None):
        raise InputError(
            "--query",
            "no query was given" if query is None else "was given together with --toward",
            expected="either --query or --toward was expected",
            hint="for instance --toward 0+1 --beta 6",
        )
    if toward is not None:
        from heedful.attention.keys import combined

        return combined(keys, toward, number_of("--beta", beta), "--toward")
    assert query is not None
    return float64("--query", read_numbers(query, "--query"))


def noise(
    keys: KeysFlags = DEFAULT_KEYS,
    around: NoiseFlags = DEFAULT_NOISE,
    *,
    heads: Annotated[
        list[str],
        Parameter(
            consume_multiple=True,
            json_list=False,
            help='One query per head, as a combination of keys: "0+1", or "0" "1".',
        ),
    ] = ["0", "1"],  # noqa: B006
    versus: Annotated[
        list[str] | None,
        Parameter(
            consume_multiple=True,
            json_list=False,
            help="Other heads, to compare with the first ones.",
        ),
    ] = None,
    beta: Annotated[float, Parameter(help="Scale of every query.")] = 50.0,
    target: Annotated[
        list[int] | None,
        Parameter(
            consume_multiple=True,
            help="Keys whose average is wanted. [default: those named by the heads]",
        ),
    ] = None,
    radius: Annotated[
        float, Parameter(help="A draw fails if c is farther than this from the target.")
    ] = 0.1,
    values: ValuesFlag = None,
    draws: Annotated[int, Parameter(help="Number of samples.")] = 10_000,
    seed: Annotated[int, Parameter(help="Seed of the draws.")] = 0,
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Show the distribution of α and c over draws of noisy keys k_i ~ N(μ_i, Σ_i).

    The keys given are the means μ_i. Heads share the keys, and the layer's output is the
    average of theirs. The exact answer comes from quadrature with a certified error where
    few directions are noisy; the sampled one always comes with standard errors.

    Examples:

        heed noise --n 10 --d 16 --noisy 0 --variance 0.5 --heads 0 1 --beta 50
        heed noise --n 10 --d 16 --heads 0 1 --versus 0+1 --figure noise.svg
        heed noise --keys means.npy --covariances sigma.npz --heads 0 1 --json
    """
    from heedful.arrays import indices, number_of
    from heedful.attention import study_noise
    from heedful.attention.keys import combined, named_keys
    from heedful.views.noise import NoiseComparison, noise_blocks, noise_figure

    check_figure_path(figure)
    means = keys.array()
    settings = [("--heads", heads)] + ([("--versus", versus)] if versus is not None else [])
    scaled = number_of("--beta", beta)
    queries = [[combined(means, head, scaled, flag) for head in each] for flag, each in settings]
    named = named_keys(heads, len(means), "--heads") if target is None else target
    options = {
        "values": read_values(values, len(means)),
        "of": indices("--target", named, len(means)),
        "radius": radius,
        "draws": draws,
        "seed": seed,
        "scale": keys.scale_value(),
    }
    gaussian = around.around(means)
    studies = [
        study_noise(gaussian, rows, names=names, **options)
        for rows, (_, names) in zip(queries, settings, strict=True)
    ]
    record = studies[0] if versus is None else NoiseComparison.of(*studies)
    show(record, noise_blocks, json=json)
    draw(record, figure, noise_figure)
    return 0
