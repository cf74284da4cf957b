"""`heed noise`: what noisy keys do to one head, and to several."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from heedful.cli.inputs import KeysFlags, NoiseFlags, combination, combined, read_values
from heedful.cli.output import FigurePath, JsonFlag, check_figure_path, draw, show

DEFAULT_KEYS = KeysFlags()
DEFAULT_NOISE = NoiseFlags()


def noise(
    keys: KeysFlags = DEFAULT_KEYS,
    around: NoiseFlags = DEFAULT_NOISE,
    *,
    heads: Annotated[
        list[str],
        Parameter(
            consume_multiple=True,
            json_list=False,
            help='One query a head, as a combination of keys: "0+1", or "0" "1".',
        ),
    ] = ["0", "1"],  # noqa: B006
    versus: Annotated[
        list[str] | None,
        Parameter(
            consume_multiple=True,
            json_list=False,
            help="Other heads, shown side by side with the first ones.",
        ),
    ] = None,
    beta: Annotated[float, Parameter(help="Scale of every query.")] = 50.0,
    target: Annotated[
        list[int] | None,
        Parameter(
            consume_multiple=True,
            help="Keys whose average is wanted. [default: those the heads name]",
        ),
    ] = None,
    radius: Annotated[
        float, Parameter(help="A draw fails when c is farther than this from the target.")
    ] = 0.1,
    values: Annotated[
        str | None, Parameter(help="A file or JSON in place. [default: unit vectors, so c = α]")
    ] = None,
    draws: Annotated[int, Parameter(help="Draws of the sampler.")] = 10_000,
    seed: Annotated[int, Parameter(help="Seed of the draws.")] = 0,
    json: JsonFlag = False,
    figure: FigurePath = None,
) -> int:
    """Show the distribution of α and c over draws of noisy keys k_i ~ N(μ_i, Σ_i).

    The keys given are the means μ_i. Heads share the keys, and the layer's output is the
    average of theirs. The exact answer comes from quadrature with a certified error where
    few directions are noisy; the sampled one comes with standard errors, always.

    Examples:

        heed noise --n 10 --d 16 --noisy 0 --variance 0.5 --heads 0 1 --beta 50
        heed noise --n 10 --d 16 --heads 0 1 --versus 0+1 --figure noise.svg
        heed noise --keys means.npy --covariances sigma.npz --heads 0 1 --json
    """
    from heedful.arrays import indices, number_of
    from heedful.attention import study_noise
    from heedful.views.noise import NoiseComparison, noise_blocks, noise_figure

    check_figure_path(figure)
    means = keys.array()
    scaled = number_of("--beta", beta)
    settings = [("--heads", heads)] + ([("--versus", versus)] if versus is not None else [])
    queries = [[combined(means, head, scaled, flag) for head in each] for flag, each in settings]
    wanted = indices(
        "--target", _named(heads, len(means)) if target is None else target, len(means)
    )
    gaussian = around.around(means)
    value_rows = read_values(values, len(means))

    def study(number: int) -> Any:
        return study_noise(
            gaussian,
            queries[number],
            values=value_rows,
            of=wanted,
            radius=radius,
            draws=draws,
            seed=seed,
            scale=keys.scale_value(),
            names=settings[number][1],
        )

    record = study(0) if versus is None else NoiseComparison.of(study(0), study(1))
    show(record, noise_blocks, json=json)
    draw(record, figure, noise_figure)
    return 0


def _named(heads: list[str], count: int) -> list[int]:
    """Return the keys that the heads look for: those with a positive share in some query."""
    shares = [combination(head, count, "--heads") for head in heads]
    return sorted({key for each in shares for key, share in each.items() if share > 0})
