"""`heed design`: queries, heads, or K, Q and V that do what you want, with a certificate."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from heedful.cli.inputs import KeysFlags
from heedful.cli.output import FigurePath, JsonFlag, check_figure_path, draw, show
from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.attention.design import Design

app = App(
    name="design",
    help="Design a query, heads, or K, Q and V, with a certificate.",
    help_format="plaintext",
    result_action="return_value",
)

DEFAULT_KEYS = KeysFlags()

Tolerance = Annotated[
    float,
    Parameter(help="Largest share of the reading that may go astray: error ≤ tolerance."),
]


@app.command
def copy(
    keys: KeysFlags = DEFAULT_KEYS,
    *,
    of: Annotated[int, Parameter(help="The key whose value is to be copied.")],
    tolerance: Tolerance = 0.01,
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Find the least query that copies one value, or prove that none can.

    Examples:

        heed design copy --n 10 --of 3
        heed design copy --keys '[[0,0],[1,0],[0,1],[-1,-1]]' --of 0
    """
    from heedful.attention import design_copy

    check_figure_path(figure)
    made = design_copy(keys.array(), of, tolerance=tolerance, scale=keys.scale_value())
    return _answer(made, json=json, figure=figure)


@app.command
def average(
    keys: KeysFlags = DEFAULT_KEYS,
    *,
    of: Annotated[list[int], Parameter(consume_multiple=True, help="The keys to average over.")],
    tolerance: Tolerance = 0.01,
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Find the least query that averages a set of values, or prove that none can.

    Examples:

        heed design average --n 10 --d 16 --of 0 1 --tolerance 0.01
        heed design average --keys sphere --n 50 --d 8 --of 4 7 9 --json
    """
    from heedful.attention import design_average

    check_figure_path(figure)
    made = design_average(keys.array(), of, tolerance=tolerance, scale=keys.scale_value())
    return _answer(made, json=json, figure=figure)


@app.command
def weights(
    keys: KeysFlags = DEFAULT_KEYS,
    *,
    to: Annotated[
        list[str],
        Parameter(
            consume_multiple=True,
            json_list=False,
            help="The wanted weights, one a key, or a file or JSON in place.",
        ),
    ],
    tolerance: Tolerance = 0.01,
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Find the least query that gives the wanted weights, or prove that none can.

    Examples:

        heed design weights --n 4 --to 0.5 0.25 0.25 0
        heed design weights --keys keys.npy --to wanted.json
    """
    from heedful.attention import design_weights

    check_figure_path(figure)
    made = design_weights(
        keys.array(), _numbers("--to", to), tolerance=tolerance, scale=keys.scale_value()
    )
    return _answer(made, json=json, figure=figure)


@app.command
def heads(
    keys: KeysFlags = DEFAULT_KEYS,
    *,
    of: Annotated[
        list[int], Parameter(consume_multiple=True, help="The keys whose values to average.")
    ] = [0, 1],  # noqa: B006
    heads: Annotated[int, Parameter(help="Number of heads.")] = 2,
    norm: Annotated[float, Parameter(help="Largest norm of a query.")] = 50.0,
    noisy: Annotated[
        list[int], Parameter(consume_multiple=True, help="Keys that are noisy along themselves.")
    ] = [0],  # noqa: B006
    variance: Annotated[float, Parameter(help="Variance of that noise.")] = 0.5,
    isotropic: Annotated[float, Parameter(help="Variance of every key in every direction.")] = 0.0,
    curves: Annotated[
        bool, Parameter(negative="", help="Also follow the error over β and number of heads.")
    ] = False,
    seed: Annotated[int, Parameter(help="Seed of the search and of the draws.")] = 0,
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Find the queries of several heads that noisy keys disturb least.

    The keys are the means; the error is √E‖c − target‖² with the target the average of --of.

    Examples:

        heed design heads --n 10 --d 16 --of 0 1 --noisy 0 --variance 0.5 --heads 2 --norm 50
        heed design heads --n 10 --of 0 1 --curves --figure heads.svg
    """
    from heedful.attention import GaussianKeys, design_heads, error_curves
    from heedful.cli.progress import progress
    from heedful.report.heads_views import heads_figure, heads_tables

    check_figure_path(figure)
    gaussian = GaussianKeys.of(
        keys.array(), isotropic=isotropic, noisy=dict.fromkeys(noisy, variance)
    )
    with progress("searching for robust heads") as step:
        made = design_heads(
            gaussian,
            of=of,
            heads=heads,
            norm=norm,
            seed=seed,
            scale=keys.scale_value(),
            progress=step,
        )
        if curves or figure is not None:
            made = error_curves(made, gaussian, progress=step)
    show(made, heads_tables, json=json)
    draw(made, figure, heads_figure)
    return 0


@app.command
def kqv(
    *,
    problem: Annotated[
        str | None,
        Parameter(
            help="A JSON file with x (one row a position) and wanted (position: vector). "
            "[default: the four-vector problem of the course]"
        ),
    ] = None,
    form: Annotated[
        str,
        Parameter(
            help="kqv: choose K, Q and V; values: K and Q only (V = I); "
            "identity: no matrices at all."
        ),
    ] = "kqv",
    norm: Annotated[float, Parameter(help="Norm of the four vectors.")] = 1.0,
    tolerance: Tolerance = 0.01,
    scale: Annotated[str, Parameter(help='A number, or "sqrt_d" for 1/√d.')] = "1",
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Find K, Q and V for one sequence and wanted outputs, or prove that none exist.

    Examples:

        heed design kqv
        heed design kqv --form identity
        heed design kqv --problem problem.json --tolerance 0.001 --json
    """
    from heedful.attention import design_kqv, four_vector_problem
    from heedful.attention.arrays import number_of
    from heedful.report.sequence_views import sequence_figure, sequence_tables

    check_figure_path(figure)
    scale_value: Any = scale if scale == "sqrt_d" else number_of("--scale", scale)
    if problem is None:
        four = four_vector_problem(norm=norm)
        made = design_kqv(
            four.x, four.wanted, form=form, tolerance=tolerance, scale=scale_value, basis=four.basis
        )
    else:
        x, wanted = _read_problem(Path(problem))
        made = design_kqv(x, wanted, form=form, tolerance=tolerance, scale=scale_value)
    show(made, sequence_tables, json=json)
    if not made.feasible:
        print(f"heed design kqv: {made.certificate.statement}", file=sys.stderr)
        return 2
    draw(made, figure, sequence_figure)
    return 0


def _answer(made: Design, *, json: bool, figure: Path | None) -> int:
    from heedful.report.design_views import design_figure, design_tables

    show(made, design_tables, json=json)
    if not made.feasible:
        print(f"heed design {made.kind}: {made.certificate.statement}", file=sys.stderr)
        return 2
    draw(made, figure, design_figure)
    return 0


def _numbers(flag: str, texts: list[str]) -> Any:
    from heedful.attention.arrays import number_of
    from heedful.data.arrays import looks_like_array, read_array

    if len(texts) == 1 and looks_like_array(texts[0]):
        return read_array(texts[0], flag)
    return [number_of(flag, text) for text in texts]


def _read_problem(path: Path) -> tuple[Any, dict[int, Any]]:
    import json as json_library

    from heedful.data.arrays import read_array

    x = read_array(f"{path}:x", "--problem")
    content = json_library.loads(path.read_text(encoding="utf-8-sig"))
    wanted = content.get("wanted")
    if not isinstance(wanted, dict) or not wanted:
        raise InputError(
            "--problem",
            f"{path.name} has no object `wanted`",
            expected='something like {"x": [[1, 0], [0, 1]], "wanted": {"1": [1, 0]}}',
        )
    try:
        return x, {int(position): vector for position, vector in wanted.items()}
    except ValueError:
        raise InputError(
            "--problem",
            f"`wanted` names a position that is no whole number ({', '.join(wanted)})",
            expected="positions 0 to n − 1 were expected",
        ) from None
