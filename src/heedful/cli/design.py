"""`heed design` and `heed copyable`: queries, heads, or K, Q and V that do what you want."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heedful.cli.inputs import (
    KeysFlags,
    NoiseFlags,
    ValuesFlag,
    read_numbers,
    read_values,
    scale_of,
)
from heedful.cli.output import FigurePath, JsonFlag, check_figure_path, draw, show, verb_group
from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.attention.design import Design
    from heedful.attention.sequence import SequenceDesign

app = verb_group("design", "Design a query, heads, or K, Q and V, with a certificate.")

DEFAULT_KEYS = KeysFlags()
DEFAULT_NOISE = NoiseFlags()

Tolerance = Annotated[
    float,
    Parameter(help="Largest error allowed: the share of the reading that goes astray."),
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
    """Find the shortest query that copies one value, or prove that no query can.

    Examples:

        heed design copy --n 10 --of 3
        heed design copy --keys '[[0,0],[1,0],[0,1],[-1,-1]]' --of 0
    """
    from heedful.attention import design_copy

    check_figure_path(figure)
    rows = keys.array()
    made = design_copy(rows, of, tolerance=tolerance, scale=keys.scale_value())
    return _answer(made, rows, json=json, figure=figure)


@app.command
def average(
    keys: KeysFlags = DEFAULT_KEYS,
    *,
    of: Annotated[list[int], Parameter(consume_multiple=True, help="The keys to average over.")],
    tolerance: Tolerance = 0.01,
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Find the shortest query that averages some values, or prove that no query can.

    Examples:

        heed design average --n 10 --d 16 --of 0 1 --tolerance 0.01
        heed design average --keys sphere --n 50 --d 8 --of 4 7 9 --json
    """
    from heedful.attention import design_average

    check_figure_path(figure)
    rows = keys.array()
    made = design_average(rows, of, tolerance=tolerance, scale=keys.scale_value())
    return _answer(made, rows, json=json, figure=figure)


@app.command
def weights(
    keys: KeysFlags = DEFAULT_KEYS,
    *,
    to: Annotated[
        list[str],
        Parameter(
            consume_multiple=True,
            json_list=False,
            help="The wanted weights, one for each key, or a file, or inline JSON.",
        ),
    ],
    tolerance: Tolerance = 0.01,
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Find the shortest query that gives the wanted weights, or prove that no query can.

    Examples:

        heed design weights --n 4 --to 0.5 0.25 0.25 0
        heed design weights --keys keys.npy --to wanted.json
    """
    from heedful.attention import design_weights

    check_figure_path(figure)
    rows = keys.array()
    made = design_weights(
        rows, read_numbers(to, "--to"), tolerance=tolerance, scale=keys.scale_value()
    )
    return _answer(made, rows, json=json, figure=figure)


@app.command
def heads(
    keys: KeysFlags = DEFAULT_KEYS,
    noise: NoiseFlags = DEFAULT_NOISE,
    *,
    of: Annotated[
        list[int], Parameter(consume_multiple=True, help="The keys whose values to average.")
    ] = [0, 1],  # noqa: B006
    heads: Annotated[int, Parameter(help="Number of heads.")] = 2,
    norm: Annotated[float, Parameter(help="Largest norm of a query.")] = 50.0,
    values: ValuesFlag = None,
    curves: Annotated[
        bool, Parameter(help="Also compute the error for several norms and numbers of heads.")
    ] = False,
    seed: Annotated[int, Parameter(help="Seed of the search and of the draws.")] = 0,
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Find the queries of several heads that are disturbed least by noisy keys.

    The keys are the means; the error is √E‖c − target‖² with the target the average of --of.

    Examples:

        heed design heads --n 10 --d 16 --of 0 1 --noisy 0 --variance 0.5
        heed design heads --n 10 --of 0 1 --heads 3 --norm 20 --json
        heed design heads --n 10 --of 0 1 --curves --figure heads.svg
    """
    from heedful.attention import design_heads, error_curves
    from heedful.progress import meter
    from heedful.views.attention import robust_heads_blocks, robust_heads_figure

    check_figure_path(figure)
    rows = keys.array()
    gaussian = noise.around(rows)
    value_rows = read_values(values, len(rows))
    scale = keys.scale_value()
    with meter("searching for robust heads") as step:
        made = design_heads(
            gaussian,
            of=of,
            heads=heads,
            norm=norm,
            values=value_rows,
            scale=scale,
            seed=seed,
            progress=step,
        )
        if curves or figure is not None:
            made = error_curves(made, gaussian, values=value_rows, seed=seed, progress=step)
    show(made, lambda record: robust_heads_blocks(record, rows), json=json)
    draw(made, figure, robust_heads_figure)
    return 0


@app.command
def kqv(
    *,
    problem: Annotated[
        str | None,
        Parameter(
            help="A JSON file, or inline JSON, with x (one row for each position) and wanted "
            "(position: vector). [default: the four-vector problem]"
        ),
    ] = None,
    form: Annotated[
        Literal["kqv", "values", "identity"],
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

    The four-vector problem: u_a, u_b, u_c and u_d are perpendicular and equally long, the
    inputs are x_0 = u_d + u_b, x_1 = u_a and x_2 = u_c + u_b, and the outputs c_0 = u_b − u_c
    and c_1 = u_b are wanted.

    Examples:

        heed design kqv
        heed design kqv --form identity
        heed design kqv --problem '{"x": [[1,0],[0,1]], "wanted": {"0": [0,1]}}'
        heed design kqv --problem problem.json --tolerance 0.001 --json
    """
    from heedful.attention import design_kqv
    from heedful.views.sequence import sequence_blocks, sequence_figure

    check_figure_path(figure)
    scale_value = scale_of(scale)
    if problem is None:
        made = _four_vectors(form, norm, tolerance, scale_value)
    else:
        x, wanted = _read_problem(problem)
        made = design_kqv(x, wanted, form=form, tolerance=tolerance, scale=scale_value)
    show(made, sequence_blocks, json=json)
    if not made.feasible:
        return _impossible("kqv", made.certificate.statement)
    draw(made, figure, sequence_figure)
    return 0


def _four_vectors(form: str, norm: float, tolerance: float, scale: Any) -> SequenceDesign:
    """Solve the four-vector problem, with and without matrices."""
    from heedful.attention import design_kqv, four_vector_problem, try_additions
    from heedful.views.sequence import FourVectorsDesign

    four = four_vector_problem(norm=norm)

    def designed(of_form: str) -> SequenceDesign:
        return design_kqv(
            four.x, four.wanted, form=of_form, tolerance=tolerance, scale=scale, basis=four.basis
        )

    added = {name: four.basis[name] for name in ("u_d", "u_c")}
    return FourVectorsDesign.of(
        designed(form),
        without=designed("identity") if form == "kqv" else None,
        additions=try_additions(four.x, 1, four.wanted[1], added, scale=scale, basis=four.basis),
    )


def _answer(made: Design, keys: Any, *, json: bool, figure: Path | None) -> int:
    from heedful.views.attention import design_blocks, design_figure

    show(made, lambda record: design_blocks(record, keys), json=json)
    if not made.feasible:
        return _impossible(made.kind, made.certificate.statement)
    draw(made, figure, design_figure)
    return 0


def _impossible(kind: str, reason: str) -> int:
    """Say in one line on stderr that there is no solution; the record holds the details."""
    print(f"heed design {kind}: {' '.join(reason.split())}", file=sys.stderr)
    return 2


def _read_problem(source: str) -> tuple[Any, dict[int, Any]]:
    content = _problem_json(source)
    example = 'something like {"x": [[1, 0], [0, 1]], "wanted": {"1": [1, 0]}}'
    if not isinstance(content, dict) or "x" not in content:
        raise InputError("--problem", "has no array `x`", expected=example)
    wanted = content.get("wanted")
    if not isinstance(wanted, dict) or not wanted:
        raise InputError("--problem", "has no object `wanted`", expected=example)
    try:
        return content["x"], {int(position): vector for position, vector in wanted.items()}
    except ValueError:
        raise InputError(
            "--problem",
            f"`wanted` names a position that is no whole number ({', '.join(wanted)})",
            expected="positions 0 to n − 1 were expected",
        ) from None


def _problem_json(source: str) -> Any:
    import json as json_library

    path = Path(source)
    in_place = source.lstrip().startswith("{")
    try:
        text = source if in_place else path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(
            "--problem",
            f"{source!r} cannot be read ({error.strerror})",
            expected="a JSON file was expected",
        ) from None
    except UnicodeDecodeError as error:
        raise InputError("--problem", f"{path.name} is not UTF-8 (byte {error.start})") from None
    try:
        return json_library.loads(text)
    except json_library.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError("--problem", f"is not valid JSON ({place}: {error.msg})") from None
    except RecursionError:
        raise InputError("--problem", "is nested too deeply") from None


def copyable_command(
    keys: KeysFlags = DEFAULT_KEYS,
    *,
    exact_margins: Annotated[
        bool, Parameter(help="Solve for every margin exactly (slower) instead of bounds.")
    ] = False,
    workers: Annotated[int, Parameter(help="Number of processes for the exact tests.")] = 1,
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Tell which keys can be copied: those that are vertices of the keys' convex hull.

    The same question asks which tokens an output layer can ever predict: give its matrix,
    one row for each token. The margin of a key is its distance from the hull of the others.

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
