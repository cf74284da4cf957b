"""Noisy keys: exact beside sampled beside the limit, as a table and as boxes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.attention.distribution import KeyCloud, NoiseStudy
from heedful.views.blocks import Block, Text, table
from heedful.views.drawing import (
    BLUE,
    GREEN,
    MARKER,
    ORANGE,
    RED,
    house_style,
    legend_below,
    new_figure,
)
from heedful.views.formatting import many, number, some

MOST_KEYS = 6
"""Keys shown one by one: the noisy ones, those wanted, and those read most."""


@dataclass(frozen=True, eq=False, kw_only=True)
class NoiseComparison(NoiseStudy):
    """A study, and a second one of other heads over the same noisy keys."""

    versus: NoiseStudy
    """The study of the other heads."""

    @classmethod
    def of(cls, first: NoiseStudy, second: NoiseStudy) -> NoiseComparison:
        """Put two studies side by side; the record reads as the first one."""
        own = {field.name: getattr(first, field.name) for field in fields(NoiseStudy)}
        return cls(**own, versus=second)


def noise_blocks(record: NoiseStudy) -> Iterator[Block]:
    """Yield the weights of the keys of interest, then how often it fails."""
    studies = _studies(record)
    keys = shown_keys(record)
    title = "What noise does to " + " and ".join(heads_of(study) for study in studies)
    grid = table(title, "", *_headings(studies), left=(0,))
    for key in keys:
        grid.row(f"α_{key} mean", *_weight_cells(studies, "mean", key))
        grid.row(f"α_{key} std", *_weight_cells(studies, "std", key), gap=True)
    for name, cells in _outcome_rows(studies):
        grid.row(name, *cells)
    yield grid
    others = record.keys - len(keys)
    if others:
        rest = np.setdiff1d(np.arange(record.keys), keys)
        mean = max(float(_best(study).mean[rest].max()) for study in studies)
        keys_said = "key has" if others == 1 else f"{others} keys have each"
        yield Text(f"The other {keys_said} a mean α of at most {number(mean)}.")
    yield Text(
        f"t = average value of the wanted keys; a draw fails when ‖c − t‖ > {number(record.radius)}"
        f". Sampled: {record.sampled.draws:,} draws, ± one standard error."
    )
    for study in studies:
        yield Text(_grounds(study, named=len(studies) > 1))


def noise_figure(record: NoiseStudy) -> Figure:
    """Draw the noisy key itself, then α of the keys of interest, a panel for each choice of heads.

    The first panel is figure 1 of the course sheets: μ_a, and where k_a may lie.
    """
    studies = _studies(record)
    cloud = record.cloud
    with house_style():
        count = len(studies) + (cloud is not None)
        figure = new_figure(4.4 * count + (2.0 if count == 1 else 0.6), 3.7)
        panels = list(figure.subplots(1, count, squeeze=False)[0])
        if cloud is not None:
            draw_cloud(panels.pop(0), cloud)
        keys = shown_keys(record)
        for axes, study in zip(panels, studies, strict=True):
            _draw_boxes(axes, study, keys)
            failing = 100 * _best(study).failure_probability
            axes.set_title(f"{heads_of(study)}: fails {failing:.3g} % of draws")
            axes.sharey(panels[0]) if axes is not panels[0] else None
        panels[0].set_ylabel(r"$\bar\alpha_i$ over the draws")
        legend_below(figure, panels[0], 4)
        return figure


def cloud_figure(cloud: KeyCloud) -> Figure:
    """Draw figure 1 of the course sheets alone: μ_a, and where k_a may lie."""
    with house_style():
        figure = new_figure(5.0, 3.4)
        draw_cloud(figure.add_subplot(), cloud)
        return figure


def draw_cloud(axes: Axes, cloud: KeyCloud) -> None:
    """Draw a mean as an arrow, and draws of its key around it in red."""
    points = np.asarray(cloud.draws)
    axes.plot(points[:, 0], points[:, 1], "o", color=RED, markersize=3, alpha=0.35, zorder=2)
    axes.annotate(
        "", tuple(cloud.mean), (0, 0), arrowprops={"arrowstyle": "-|>", "color": BLUE, "lw": 2.2}
    )
    axes.annotate(rf"$\mu_{{{cloud.key}}}$", tuple(cloud.mean), (4, 9), textcoords="offset points")
    axes.plot([0], [0], "+", color=BLUE, markersize=9)
    reach = float(np.abs(points).max()) * 1.08
    axes.set(xlim=(-reach, reach), ylim=(-reach / 2, reach / 2), aspect="equal")
    axes.set(xlabel=rf"along $\mu_{{{cloud.key}}}$", ylabel="across it")
    axes.set_title(rf"Where $k_{{{cloud.key}}}$ may lie ({len(points)} draws)")


def heads_of(study: NoiseStudy) -> str:
    """Name the heads of a study: `2 heads on 0, 1`, or `1 head on 0+1`.

    (The text of each head is the combination of keys that its query points to.)
    """
    names = [name.replace(" ", "") for name in study.names]
    return f"{many(study.heads, 'head')} on {some(names, 6)}"


def shown_keys(record: NoiseStudy) -> list[int]:
    """Return the keys of interest, ascending: noisy ones first, then those read most."""
    read = np.max(
        [np.maximum(_best(study).mean, study.noiseless) for study in _studies(record)], axis=0
    )
    most = [key for key in np.argsort(-read, kind="stable").tolist() if read[key] > 0.01]
    return sorted(dict.fromkeys([*record.noisy[:MOST_KEYS], *most]))[:MOST_KEYS]


def _studies(record: NoiseStudy) -> list[NoiseStudy]:
    return [record, record.versus] if isinstance(record, NoiseComparison) else [record]


def _best(study: NoiseStudy) -> Any:
    return study.sampled if study.exact is None else study.exact


def _headings(studies: list[NoiseStudy]) -> Iterator[str]:
    for study in studies:
        name = heads_of(study)  # stands above the widest of its three columns
        yield from (
            ("exact", "sampled", "β → ∞")
            if len(studies) == 1
            else ("\nexact", f"{name}\nsampled", "\nβ → ∞")
        )


def _weight_cells(studies: list[NoiseStudy], what: str, key: int) -> Iterator[str]:
    for study in studies:
        exact = "–" if study.exact is None else f"{getattr(study.exact, what)[key]:.4f}"
        limit = "–" if study.limit is None else f"{getattr(study.limit, what)[key]:.4f}"
        drawn = getattr(study.sampled, what)[key]
        yield from (exact, f"{drawn:.4f} ± {getattr(study.sampled, what + '_se')[key]:.4f}", limit)


def _outcome_rows(studies: list[NoiseStudy]) -> Iterator[tuple[str, list[str]]]:
    fails, between, errors = [], [], []
    for study in studies:
        exact, sampled, limit = study.exact, study.sampled, study.limit
        fails += [
            "–" if exact is None else f"{exact.failure_probability:.4f}",
            f"{sampled.failure_probability:.4f}",
            "–" if limit is None else _four(limit.failure_probability),
        ]
        between += ["", f"{sampled.failure_low:.4f}…{sampled.failure_high:.4f}", ""]
        squared = None if exact is None else exact.mean_squared_error
        errors += [_four(squared, root=True), _four(sampled.mean_squared_error, root=True), ""]
    yield "P(fails)", fails
    yield "  95 % interval", between
    yield "√E‖c − t‖²", errors


def _four(value: float | None, *, root: bool = False) -> str:
    return "–" if value is None else f"{value**0.5 if root else value:.4f}"


def _grounds(study: NoiseStudy, *, named: bool) -> str:
    start = f"{heads_of(study)}: " if named else ""
    if study.exact is None:
        said = f"{start}No exact answer, because {study.exact_reason}."
    else:
        said = (
            f"{start}Exact to {study.exact.certified_error:.1g} ({study.exact.nodes:,} nodes); the "
            f"draws agree with it within {number(study.agreement, 2)} standard errors."
        )
    if study.limit is None:
        said += f" No limit, because {study.limit_reason}."
    return said


def _draw_boxes(axes: Axes, study: NoiseStudy, keys: list[int]) -> None:
    best = _best(study)
    drawn = best if best.quantiles is not None else study.sampled
    for place, key in enumerate(keys):
        first = place == 0
        if drawn.quantiles is not None:
            low, lower, middle, upper, high = drawn.quantiles[:, key]
            axes.vlines(place - 0.12, low, high, color=BLUE, linewidth=1.4)
            axes.bar(
                place - 0.12,
                upper - lower,
                bottom=lower,
                width=0.3,
                color=BLUE,
                alpha=0.45,
                label="half of the draws (line: 90 %)" if first else None,
            )
            axes.hlines(middle, place - 0.27, place + 0.03, color=BLUE, linewidth=2.2)
        axes.errorbar(
            place + 0.18,
            best.mean[key],
            yerr=best.std[key],
            fmt="o",
            color=ORANGE,
            markersize=5,
            capsize=3,
            label="mean ± std" if first else None,
        )
        if study.limit is not None:
            axes.plot(
                place + 0.36,
                study.limit.mean[key],
                "D",
                markerfacecolor="none",
                color=GREEN,
                markersize=5,
                label=r"mean as $\beta \to \infty$" if first else None,
            )
    wanted = study.noiseless[keys]
    axes.hlines(
        wanted,
        np.arange(len(keys)) - 0.42,
        np.arange(len(keys)) + 0.46,
        color=MARKER,
        linestyle=":",
        linewidth=1.2,
        label="without noise",
    )
    axes.set_xticks(np.arange(len(keys)), [f"{key}" for key in keys])
    axes.set(xlabel="key $i$", xlim=(-0.6, len(keys) - 0.35), ylim=(-0.08, 1.08))
    axes.grid(visible=False, axis="x")
