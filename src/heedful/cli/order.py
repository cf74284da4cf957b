"""`heed properties` and `heed positions`: what layers and encodings do to order."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from heedful.cli.output import FigurePath, JsonFlag, check_figure_path, draw, show
from heedful.errors import InputError
from heedful.positions import SchemeKind

if TYPE_CHECKING:
    from heedful.attention.equivariance import Equivariance
    from heedful.views.order import OrderFinding

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
