"""The verbs of attention itself, without a trained model.

heed attend, heed noise            attention, and what noisy keys do to it
heed design, heed copyable         queries, heads, or K, Q and V that do what you want
heed properties, heed positions    what layers and encodings do to order
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heedful.cli.options import (
    FigurePath,
    JsonFlag,
    KeysFlags,
    NoiseFlags,
    ValuesFlag,
    check_figure_path,
    draw,
    read_numbers,
    read_values,
    scale_of,
    show,
    verb_group,
)
from heedful.errors import InputError
from heedful.positions import SchemeKind

if TYPE_CHECKING:
    from heedful.attention.design import Design
    from heedful.attention.equivariance import Equivariance
    from heedful.attention.sequence import SequenceDesign
    from heedful.views.order import OrderFinding

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
    from heedful.views.attention import NoiseComparison, noise_blocks, noise_figure

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


design_app = verb_group("design", "Design a query, heads, or K, Q and V, with a certificate.")


Tolerance = Annotated[
    float,
    Parameter(help="Largest error allowed: the share of the reading that goes astray."),
]


@design_app.command
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


@design_app.command
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


@design_app.command
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


@design_app.command
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


@design_app.command
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
    from heedful.views.attention import sequence_blocks, sequence_figure

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
    from heedful.views.attention import FourVectorsDesign

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


Kind = Literal[
    "softmax", "mask", "positions", "layer_norm", "attention", "causal_attention", "multi_head",
    "decoder_block", "next_token_loss", "block",
]  # fmt: skip
"""As in `heedful.attention.layer_check`, which help must not import."""
LawName = Literal["equivariance", "invariance", "feature", "conjugation"]

TRIED_BY_DEFAULT: tuple[LawName, ...] = ("equivariance", "invariance", "feature")


def properties(
    *,
    layer: Annotated[
        str | None,
        Parameter(
            help='One layer by its name, such as "self-attention", or your own: file.py:name.'
        ),
    ] = None,
    kind: Annotated[
        Kind | None,
        Parameter(help="What a function of your own should be. [default: as its name says]"),
    ] = None,
    scale: Annotated[
        float | None,
        Parameter(help="Scores of your own attention are multiplied by this. [default: 1/√d]"),
    ] = None,
    all: Annotated[bool, Parameter(help="Every known layer (the default).")] = False,  # noqa: A002
    law: Annotated[LawName | None, Parameter(help="Only this law. [default: the first three]")] = (
        None
    ),
    length: Annotated[int, Parameter(help="Tokens of an input.")] = 6,
    width: Annotated[
        int | None, Parameter(help="Features of a token. [default: 4, or several of our choice]")
    ] = None,
    trials: Annotated[int, Parameter(help="Number of random inputs.")] = 20,
    seed: Annotated[int, Parameter(help="Seed of the draws and of the weights.")] = 0,
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Test whether layers respect the order of their inputs, and show a case that breaks it.

    The laws: equivariance, f(PX) = P f(X); invariance, f(PX) = f(X); feature, f(XΠ) = f(X) Π;
    conjugation, f(PAPᵀ) = P f(A) Pᵀ on square matrices. A law that holds was tried, not
    proved; a law that fails comes with the simplest case found.

    A function of your own (file.py:name or module:name) is compared with the definition and with
    the usual mistakes instead. This runs the code of that file. Exit code 1 when it is wrong.

    Examples:

        heed properties
        heed properties --layer mine.py:causal_attention
        heed properties --layer mine.py:forward --kind multi_head
        heed properties --layer "causal self-attention" --figure causal.svg
        heed properties --law invariance --json
    """
    from heedful.attention import standard_layers
    from heedful.views.order import OrderStudy, order_blocks, order_figure

    check_figure_path(figure)
    if layer is not None and ":" in layer:
        return _own_layer(layer, kind, scale, width, seed, json=json)
    if scale is not None:
        raise InputError("--scale", "is for a layer of your own", expected="--layer file.py:name")
    width = 4 if width is None else width
    if layer is not None and all:
        raise InputError("--layer", "was given together with --all", expected="one of them")
    layers = standard_layers(width, seed)
    if layer is not None and layer not in layers:
        raise InputError("--layer", f"{layer!r} is unknown", expected=f"one of {', '.join(layers)}")
    chosen = layers if layer is None else {layer: layers[layer]}
    laws = TRIED_BY_DEFAULT if law is None else (law,)
    settings = {"length": length, "width": width, "trials": trials, "seed": seed}
    record = OrderStudy(
        findings=tuple(
            _finding(name, call, each, settings, strict=layer is not None and law is not None)
            for name, call in chosen.items()
            for each in laws
        )
    )
    show(record, order_blocks, json=json)
    draw(record, figure, order_figure)
    return 0


def _own_layer(
    spelled: str, kind: Kind | None, scale: float | None, width: int | None, seed: int, *,
    json: bool,
) -> int:  # fmt: skip
    from heedful.attention import check_layer
    from heedful.views.order import layer_blocks

    print(f"heed: running the code of {spelled.rpartition(':')[0]}", file=sys.stderr)
    record = check_layer(
        _loaded(spelled), kind, scale="sqrt_d" if scale is None else scale, width=width, seed=seed
    )
    show(record, layer_blocks, json=json)
    return 0 if record.right else 1


def _loaded(spelled: str) -> Callable[..., Any]:
    """Return a function of a module or file, which is executed."""
    import importlib
    import importlib.util

    place, _, name = spelled.rpartition(":")
    try:
        if place.endswith(".py"):
            spec = importlib.util.spec_from_file_location("layer_of_yours", place)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, ".")
            module = importlib.import_module(place)
    except Exception as error:
        raise InputError("--layer", f"{place} ends in {type(error).__name__}: {error}") from None
    function = getattr(module, name, None)
    if not callable(function):
        known = ", ".join(k for k, v in vars(module).items() if callable(v) and k[0] != "_")
        raise InputError("--layer", f"{place} has no function {name!r}", expected=f"one of {known}")
    return function  # type: ignore[no-any-return]


def _finding(
    name: str, layer: Any, law: LawName, settings: dict[str, int], *, strict: bool
) -> OrderFinding:
    """Test one law; where it does not apply to the shapes of the layer, say so (or refuse)."""
    from heedful.views.order import OrderFinding

    try:
        found = _try(layer, law, settings)
    except InputError as error:
        if strict or error.where != "layer":
            raise
        return OrderFinding(layer=name, law=law, finding=None, reason=error.problem)
    return OrderFinding(layer=name, law=law, finding=found, reason=None)


def _try(layer: Any, law: LawName, settings: dict[str, int]) -> Equivariance:
    from heedful.attention import (
        conjugation_equivariance,
        feature_equivariance,
        permutation_equivariance,
        permutation_invariance,
    )

    if law == "conjugation":  # a square input whose side the weights are made for
        return conjugation_equivariance(
            layer,
            length=settings["width"],
            trials=settings["trials"],
            seed=settings["seed"],
        )
    tests = {
        "equivariance": permutation_equivariance,
        "invariance": permutation_invariance,
        "feature": feature_equivariance,
    }
    return tests[law](layer, **settings)


def positions(
    *,
    kind: Annotated[
        SchemeKind,
        Parameter(help="The position scheme."),
    ] = "sinusoidal",
    length: Annotated[int, Parameter(help="Positions 0 … length − 1.")] = 512,
    width: Annotated[int, Parameter(help="Dimensions of an embedding.")] = 64,
    base: Annotated[float, Parameter(help="Base of the frequencies.")] = 10_000.0,
    heads: Annotated[int, Parameter(help="Heads, for ALiBi's slopes.")] = 8,
    table: Annotated[
        str | None, Parameter(help="A learned table: a file or inline JSON. [default: random]")
    ] = None,
    seed: Annotated[int, Parameter(help="Seed of the random table.")] = 0,
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Show what a position scheme guarantees: uniqueness, distances, shifts, precision.

    Proofs are proofs: uniqueness by an argument about π, the smallest distance by ball
    arithmetic. Coincidences in fp16 and bf16 are counted.

    Examples:

        heed positions --length 512 --width 64
        heed positions --kind rotary --length 4096 --width 128 --base 500000
        heed positions --kind learned --table model.safetensors:wpe.weight --json
    """
    from heedful.positions import positions_study
    from heedful.views.order import positions_blocks, positions_figure

    check_figure_path(figure)
    rows = None
    if table is not None:
        from heedful.data.arrays import read_array

        rows = read_array(table, "--table")
    record = positions_study(kind, length, width, base, heads=heads, table=rows, seed=seed)
    show(record, positions_blocks, json=json)
    draw(record, figure, positions_figure)
    return 0
