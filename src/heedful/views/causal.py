"""Interventions, the logit lens and direct attribution as blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from heedful.records import Record
from heedful.stats import percent
from heedful.views.blocks import Block, Text, facts, table
from heedful.views.formatting import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from heedful.model import Trace
    from heedful.stats import Estimate
    from heedful.studies.causal import DirectAttribution, InterventionReport, LogitLens
else:  # these records live beside torch, without which the views must work
    Figure = object  # Matplotlib is loaded when something is drawn
    DirectAttribution = InterventionReport = LogitLens = Trace = Record

MOST_HEADS = 12
"""Layers, and heads of a layer, that a figure of a trace draws: smaller maps show nothing."""
SHOWN_PARTS = 10
"""Rows of the table of an attribution; the others are summed in its last row."""


def intervention_blocks(record: InterventionReport) -> Iterator[Block]:
    """Yield what `heed intervene` prints."""
    effect = record.effect
    yield facts(
        f"{record.model}: {' and '.join(effect.interventions)}",
        ("texts", f"{effect.texts} ({effect.tokens:,} predicted tokens) from {record.sample}"),
        ("loss before", _interval(effect.loss)),
        ("change of the loss", _interval(effect.change, sign="+")),
        ("another likeliest token", f"at {percent(effect.changed_tokens)} of the positions"),
        ("divergence of predictions", f"{number(effect.divergence)} nats a token"),
    )
    if record.verdict is not None:
        verdict = record.verdict
        yield Text(f"{verdict.statement}: {verdict.verdict}; {verdict.reason}.")
    if record.prediction is not None:
        grid = table(f"After {record.prediction.prompt!r}", "next token", "before", "after")
        for token, before, after in zip(
            record.prediction.tokens,
            record.prediction.before,
            record.prediction.after,
            strict=True,
        ):
            grid.row(repr(token), percent(before), percent(after))
        yield grid


def trace_figure(record: Trace) -> Figure:
    """Draw the attention weights of every head in the first row, one line a layer."""
    from heedful.model.config import head_name  # a package beside torch, as the record is
    from heedful.views.drawing import house_style, new_figure

    layers = record.layers[:MOST_HEADS]
    heads = min(layers[0].weights.shape[1], MOST_HEADS)
    with house_style():
        figure = new_figure(0.8 + 1.15 * heads, 0.5 + 1.15 * len(layers))
        grid = figure.subplots(len(layers), heads, squeeze=False)
        for line, (row, layer) in enumerate(zip(grid, layers, strict=True)):
            for head, axes in enumerate(row):
                weights = layer.weights[0, head].detach().cpu().numpy()
                axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
                axes.set(xticks=[], yticks=[])
                axes.grid(visible=False)
                axes.set_title(head_name(line, head), fontsize=7, fontweight="normal", pad=2)
        return figure


def lens_blocks(
    record: LogitLens, attribution: DirectAttribution, text_of: Callable[[int], str]
) -> Iterator[Block]:
    """Yield what `heed lens` prints: the last position layer by layer, and who wrote its logit."""
    final = record.likeliest[-1][-1]
    grid = table(
        f"What each layer would predict after {text_of(record.tokens[-1])!r}",
        "after",
        "likeliest",
        f"probability of {text_of(final)!r}",
        "loss on the whole text",
        left=(0, 1),
    )
    for depth, row in enumerate(record.likeliest):
        grid.row(
            "the embedding" if depth == 0 else f"layer {depth - 1}",
            repr(text_of(row[-1])),
            percent(float(record.probability[depth, -1])),
            f"{record.loss[depth]:.3f}",
        )
    yield grid
    yield from _attribution_blocks(attribution, text_of)


def _attribution_blocks(
    record: DirectAttribution, text_of: Callable[[int], str]
) -> Iterator[Block]:
    parts = {"the embedding": record.embedding, "biases": record.rest}
    parts |= {f"feed-forward {layer}": float(x) for layer, x in enumerate(record.feed_forward)}
    parts |= {
        f"head {layer}.{head}": float(x)
        for layer, row in enumerate(np.asarray(record.heads))
        for head, x in enumerate(row)
    }
    order = sorted(parts, key=lambda name: -abs(parts[name]))
    shown, others = order[:SHOWN_PARTS], order[SHOWN_PARTS:]
    against = "" if record.against is None else f" over {text_of(record.against)!r}"
    grid = table(f"Who writes the logit of {text_of(record.token)!r}{against}", "part", "writes")
    for name in shown:
        grid.row(name, f"{parts[name]:+.3f}")
    if others:
        grid.row(f"{len(others)} others", f"{sum(parts[name] for name in others):+.3f}")
    grid.row("all together", f"{record.total:+.3f}")
    yield grid


def _interval(estimate: Estimate, sign: str = "") -> str:
    return (
        f"{estimate.value:{sign}.4f} (95 % interval over texts "
        f"{estimate.low:{sign}.4f} to {estimate.high:{sign}.4f})"
    )
