"""The figures of the heads: the map, key norms, more heads, and what is known about order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from heedful.views.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    house_style,
    new_figure,
)

if TYPE_CHECKING:
    from heedful.stats import Estimate
    from heedful.studies.heads.comparisons import HeadCounts, PreNorm, Schemes
    from heedful.studies.heads.heads_study import HeadsStudy
    from heedful.studies.heads.keys import Keys
    from heedful.studies.heads.robustness import HeadAblation, Robustness

COLOURS = {
    "previous": BLUE,
    "self": "#5bb3c9",
    "first": GREY,
    "duplicate": PURPLE,
    "induction": RED,
    "source": GREEN,
    "copies": ORANGE,
    "averages": "#e3b565",
    "diffuse": "#c9cdd6",
}
"""A colour for each label: what a head looks for first, then how it reads."""
WORDS = {
    "previous": "previous token",
    "self": "itself",
    "first": "first token",
    "duplicate": "same token before",
    "induction": "induction",
    "source": "follows the source",
    "copies": "copies, elsewhere",
    "averages": "averages few",
    "diffuse": "diffuse",
}


def heads_map(record: HeadsStudy) -> Figure:
    """Draw every head as a square: its label as colour, its effective number of keys inside."""
    layers, heads = record.layers, record.heads
    turned = layers > heads
    columns, rows = (layers, heads) if turned else (heads, layers)
    with house_style():
        width = min(9.6, max(4.2, 0.62 * columns + 1.6))
        cell = (width - 1.2) / columns
        figure = new_figure(width, min(9.0, cell * rows * 0.92 + 1.5))
        axes = figure.add_subplot()
        for head in record.behaviour.heads:
            x, y = (head.layer, head.head) if turned else (head.head, head.layer)
            colour = COLOURS[head.label]
            axes.add_patch(Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, color=colour, linewidth=0))
            axes.text(
                x,
                y,
                _short(head.effective_keys.value),
                ha="center",
                va="center",
                fontsize=max(5.0, min(9.0, 12 * cell)),
                color="#101418" if sum(to_rgb(colour)) > 1.55 else "white",
            )
        axes.set(
            xlim=(-0.6, columns - 0.4),
            ylim=(rows - 0.4, -0.6),
            xlabel="layer" if turned else "head",
            ylabel="head" if turned else "layer",
        )
        axes.set_xticks(range(columns), _every(columns))
        axes.set_yticks(range(rows), _every(rows))
        axes.tick_params(length=0)
        axes.set_aspect("equal")
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set_visible(False)
        shown = [label for label in COLOURS if label in record.behaviour.counts]
        figure.legend(
            [Patch(color=COLOURS[label]) for label in shown],
            [f"{WORDS[label]} ({record.behaviour.counts[label]})" for label in shown],
            loc="outside lower center",
            ncols=min(4, len(shown)) if width > 6 else 2,
            fontsize=8.5,
        )
        return figure


def keys_figure(keys: Keys) -> Figure:
    """Draw, for each head of keys, its spread against its effect, and leads against their best."""
    with house_style():
        figure = new_figure(8.4, 3.5)
        left, right = figure.subplots(1, 2)
        layers = np.array([one.layer for one in keys.norms])
        shades = 0.25 + 0.75 * layers / max(int(layers.max()), 1)
        for field, colour, label in (
            ("effect", BLUE, "keys as they are"),
            ("centred_effect", ORANGE, "mean key taken away"),
        ):
            spreads = [
                one.spread if field == "effect" else one.centred_spread for one in keys.norms
            ]
            effects = [getattr(one, field).value for one in keys.norms]
            left.scatter(spreads, effects, s=22, color=colour, alpha=shades, linewidths=0)
            left.scatter([], [], s=22, color=colour, label=label)
        left.set(
            xlabel="spread of key norms (std / mean)",
            ylabel="share of the reading moved",
            ylim=(0, None),
            xlim=(0, None),
        )
        left.set_title("Giving all keys of a head one norm")
        left.legend(fontsize=8.5)
        _leads(right, keys)
        return figure


def _leads(axes: Axes, keys: Keys) -> None:
    shown = [key for key in keys.attended if key.lead > 0 and key.best_lead > 0]
    best = [key.best_lead for key in shown]
    points = axes.scatter(
        best,
        [key.lead for key in shown],
        c=[key.mass for key in shown],
        cmap="viridis",
        vmin=0,
        vmax=1,
        s=18,
        linewidths=0,
    )
    if best:
        ends = [min(best) * 0.8, max(best) * 1.25]
        axes.plot(ends, ends, color=GREY, linewidth=0.9, linestyle="--")
        axes.figure.colorbar(points, ax=axes, label="α of the key")
        axes.set(xscale="log", yscale="log")
    axes.set(xlabel="largest lead a query of this norm can give", ylabel=r"lead $\beta$ it gives")
    axes.set_title("How well queries are aimed")


def robustness_figure(record: Robustness) -> Figure:
    """Draw what uncertain lengths do to heads and layers, and what leaving out heads does."""
    with house_style():
        figure = new_figure(8.4, 3.4)
        left, right = figure.subplots(1, 2)
        for layer in record.layers:
            left.plot(
                [layer.layer] * len(layer.heads), layer.heads, "o", color=GREY, ms=3.5, alpha=0.7
            )
        places = [layer.layer for layer in record.layers]
        _band(left, places, [one.shared for one in record.layers], BLUE, "layer, same lengths")
        _band(left, places, [one.independent for one in record.layers], GREEN, "layer, own lengths")
        left.plot([], [], "o", color=GREY, ms=3.5, label="single heads")
        left.set(xlabel="layer", ylabel=r"change, relative to $\|c\|$", ylim=(0, None))
        left.xaxis.set_major_locator(MaxNLocator(integer=True))
        left.set_title("Keys of uncertain length")
        left.legend(fontsize=8)
        _ablations(right, record)
        return figure


def _ablations(axes: Axes, record: Robustness) -> None:
    """Draw the heads that promise most: estimated hollow, measured filled."""

    def size(one: HeadAblation) -> float:
        return one.first_order if one.exact is None else one.exact.value

    shown = sorted(record.ablations, key=size, reverse=True)[:20]
    for place, one in enumerate(shown):
        axes.plot([place], [one.first_order], "o", color=GREY, ms=4, mfc="none")
        if one.exact is not None:
            axes.errorbar(
                place,
                one.exact.value,
                yerr=one.exact.error if np.isfinite(one.exact.error) else 0.0,
                fmt="o",
                color=BLUE,
                ms=4,
                linewidth=1.0,
            )
    axes.plot([], [], "o", color=BLUE, ms=4, label="measured")
    axes.plot([], [], "o", color=GREY, ms=4, mfc="none", label="by the gradient")
    axes.axhline(0, color=GREY, linewidth=0.8)
    names = [f"{one.layer}.{one.head}" for one in shown]
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7.5)
    axes.set(xlabel="layer.head", ylabel="change of the loss (nats)")
    axes.set_title("Leaving out one head")
    axes.legend(fontsize=8)


def norms_figure(record: PreNorm) -> Figure:
    """Draw spread and effect of key norms for each placement of the norm."""
    with house_style():
        figure = new_figure(8.4, 2.9)
        panels = figure.subplots(1, 3)
        names = [variant.name for variant in record.variants]
        for axes, field, title in zip(
            panels,
            ("spread", "largest_ratio", "centred_effect"),
            ("spread of key norms", "largest / smallest key", "share of reading moved"),
            strict=True,
        ):
            for place, (variant, colour) in enumerate(
                zip(record.variants, (BLUE, ORANGE, GREEN), strict=True)
            ):
                estimate: Estimate = getattr(variant, field)
                axes.bar(place, estimate.value, color=colour, width=0.62, alpha=0.85)
                _whisker(axes, place, estimate)
            axes.set_xticks(range(len(names)), names, fontsize=8.5)
            axes.set_ylim(bottom=0)
            axes.set_title(title, fontsize=10)
        return figure


def counts_figure(record: HeadCounts) -> Figure:
    """Draw the variance and the change of the loss over the number of heads."""
    with house_style():
        figure = new_figure(8.4, 3.2)
        left, right = figure.subplots(1, 2)
        heads = [one.heads for one in record.counts]
        for field, colour, label in (
            ("single", GREY, "single heads"),
            ("shared", BLUE, "layer, same lengths in all heads"),
            ("independent", GREEN, "layer, own lengths in each head"),
        ):
            _band(left, heads, [getattr(one, field) for one in record.counts], colour, label)
        _band(right, heads, [one.loss_change for one in record.counts], RED, "")
        for axes in (left, right):
            axes.set_xscale("log", base=2)
            axes.set_xticks(heads, [str(count) for count in heads])
            axes.minorticks_off()
            axes.set(xlabel=f"heads at width {record.width}", ylim=(0, None))
        left.set(ylabel=r"variance, relative to $\|c\|^2$")
        left.set_title("Variance by uncertain lengths")
        right.set(ylabel="added loss (nats)")
        right.set_title("What it does to the loss")
        left.legend(fontsize=8)
        return figure


def order_figure(record: Schemes) -> Figure:
    """Draw how much of the position can be read at each depth, one line a scheme."""
    colours = {
        "none": RED,
        "sinusoidal": BLUE,
        "learned": GREEN,
        "rotary": ORANGE,
        "alibi": PURPLE,
    }
    with house_style():
        figure = new_figure(7.2, 3.3)
        axes = figure.add_subplot()
        for scheme in record.schemes:
            depths = np.arange(len(scheme.r2)) + 0.04 * (list(colours).index(scheme.name) - 2)
            _band(axes, depths.tolist(), list(scheme.r2), colours[scheme.name], scheme.name)
        count = len(record.schemes[0].r2)
        axes.set_xticks(
            range(count), ["embedding", *(f"after layer {depth}" for depth in range(1, count))]
        )
        axes.set(ylabel=r"$R^2$ of the position", ylim=(-0.08, 1.05))
        axes.set_title("What a linear probe reads of the position, from random tokens")
        figure.legend(
            *axes.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8.5
        )
        return figure


def _band(
    axes: Axes, x: list[float] | list[int], estimates: list[Estimate], colour: str, label: str
) -> None:
    values = [one.value for one in estimates]
    errors = [one.error if np.isfinite(one.error) else 0.0 for one in estimates]
    axes.errorbar(
        x,
        values,
        yerr=errors,
        color=colour,
        marker="o",
        ms=4,
        linewidth=1.6,
        capsize=2.5,
        elinewidth=1.0,
        label=label,
    )


def _whisker(axes: Axes, place: int, estimate: Estimate) -> None:
    if np.isfinite(estimate.error):
        axes.errorbar(
            place, estimate.value, yerr=estimate.error, color=GREY, capsize=4, linewidth=1.4
        )


def _short(value: float) -> str:
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def _every(count: int) -> list[str]:
    return [str(place) for place in range(count)]
