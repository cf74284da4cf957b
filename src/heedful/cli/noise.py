"""`heed noise`: what noisy keys do to one head, and to several."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from heedful.cli.inputs import KeysFlags, combination, combined, read_values
from heedful.cli.output import FigurePath, JsonFlag, check_figure_path, draw, show

DEFAULT_KEYS = KeysFlags()


def noise(
    keys: KeysFlags = DEFAULT_KEYS,
    *,
    heads: Annotated[
        list[str],
        Parameter(
            consume_multiple=True,
            json_list=False,
            help='One query a head, as a combination of keys: "0+1", or "0" "1".',
        ),
    ] = ["0", "1"],  # noqa: B006
    beta: Annotated[float, Parameter(help="Scale of every query.")] = 50.0,
    noisy: Annotated[
        list[int], Parameter(consume_multiple=True, help="Keys that are noisy along themselves.")
    ] = [0],  # noqa: B006
    variance: Annotated[float, Parameter(help="Variance of that noise: Σ = σ²I + v μμᵀ.")] = 0.5,
    isotropic: Annotated[
        float, Parameter(help="Variance σ² of every key in every direction (0: vanishing).")
    ] = 0.0,
    covariances: Annotated[
        str | None,
        Parameter(help="Full covariances instead: a file with (d, d) for all keys, or (n, d, d)."),
    ] = None,
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
        heed noise --n 10 --d 16 --noisy 0 --variance 0.5 --heads 0+1 --beta 50 --figure one.svg
        heed noise --keys means.npy --covariances sigma.npz --heads 0 1 --draws 100000 --json
    """
    from heedful.attention import GaussianKeys, study_noise
    from heedful.attention.arrays import indices, number_of
    from heedful.report.noise_views import noise_figure, noise_tables

    check_figure_path(figure)
    means = keys.array()
    scaled = number_of("--beta", beta)
    queries = [combined(means, head, scaled, "--heads") for head in heads]
    named = {key for head in heads for key in combination(head, len(means), "--heads")}
    wanted = indices("--target", sorted(named) if target is None else target, len(means))
    if covariances is None:
        gaussian = GaussianKeys.of(means, isotropic=isotropic, noisy=dict.fromkeys(noisy, variance))
    else:
        gaussian = GaussianKeys.of(means, covariances=_covariances(covariances))
    record = study_noise(
        gaussian,
        queries,
        values=read_values(values, len(means)),
        target=wanted,
        radius=radius,
        draws=draws,
        seed=seed,
        scale=keys.scale_value(),
        names=heads,
    )
    show(record, noise_tables, json=json)
    draw(record, figure, noise_figure)
    return 0


def _covariances(source: str) -> Any:
    from heedful.data.arrays import read_array

    return read_array(source, "--covariances")
