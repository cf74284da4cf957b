"""Does having more heads at the same width reduce the variance, as the sheet's summary says?

The same model is trained with 1, 2, 4 and 8 heads at one width. Then the lengths of its keys are
made uncertain, as in the sheet (ξ ~ N(0, ½)), and what each layer adds to the stream is compared
with what it adds otherwise:

    variance = E‖Δ‖² / E‖layer‖²

The answer is the slope of ln variance over log₂ heads: one line a seed, the mean of the slopes
with its interval. Heads see the same lengths (as in the sheet), or draw their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from heedful.records import Record
from heedful.stats import Estimate
from heedful.studies.heads.findings import Finding, sign_verdict
from heedful.studies.heads.small_models import FAMILIES, SmallModel


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadCount(Record):
    """One number of heads, over seeds."""

    heads: int
    loss: Estimate
    shared: Estimate
    """Variance of the layer, all heads seeing the same lengths."""
    independent: Estimate
    """Variance of the layer, lengths drawn for each head."""
    single: Estimate
    """Variance of single heads."""
    loss_change: Estimate
    """What the disturbance adds to the loss."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadCounts(Record):
    """More heads at the same width."""

    counts: tuple[HeadCount, ...]
    width: int
    shared_slope: Estimate
    """Change of ln variance for twice as many heads."""
    independent_slope: Estimate
    loss_slope: Estimate
    """Change of what the disturbance adds to the loss, for twice as many heads."""
    findings: tuple[Finding, ...]


def compare_heads(models: Sequence[SmallModel], width: int) -> HeadCounts:
    """Compare the numbers of heads, and judge the summary."""
    groups = {
        int(count): sorted(
            (model for model in models if model.name == name), key=lambda model: model.seed
        )
        for count, name in FAMILIES["heads"].items()
    }
    levels = [math.log2(count) for count in groups]
    seeds = min(len(group) for group in groups.values())
    shared, independent, change = (
        Estimate.of_slope(
            levels, [[value(model) for model in group[:seeds]] for group in groups.values()]
        )
        for value in (
            lambda model: math.log(model.shared_variance),
            lambda model: math.log(model.independent_variance),
            lambda model: model.loss_change,
        )
    )
    return HeadCounts(
        counts=tuple(_count(heads, group) for heads, group in groups.items()),
        width=width,
        shared_slope=shared,
        independent_slope=independent,
        loss_slope=change,
        findings=(
            _finding(
                "variance of the layer",
                "More heads at the same width reduce the variance that uncertain lengths of keys "
                "cause.",
                shared,
                _factor(shared),
            ),
            _finding(
                "heads with noise of their own",
                "The same, when each head has lengths of its own.",
                independent,
                _factor(independent),
            ),
            _finding(
                "change of the loss",
                "More heads at the same width make the loss more robust to uncertain lengths.",
                change,
                f"each doubling of the heads changes what the disturbance adds to the loss by "
                f"{change.value:+.3f} ({change.low:+.3f} to {change.high:+.3f}, "
                f"{change.count} seeds)",
            ),
        ),
    )


def _count(heads: int, group: Sequence[SmallModel]) -> HeadCount:
    return HeadCount(
        heads=heads,
        loss=Estimate.of([model.loss for model in group]),
        shared=Estimate.of([model.shared_variance for model in group]),
        independent=Estimate.of([model.independent_variance for model in group]),
        single=Estimate.of([model.head_variance for model in group]),
        loss_change=Estimate.of([model.loss_change for model in group]),
    )


def _factor(logs: Estimate) -> str:
    value, low, high = (math.exp(min(x, 700.0)) for x in (logs.value, logs.low, logs.high))
    return (
        f"each doubling of the heads multiplies the variance by {value:.2f} "
        f"(95 % interval {low:.2f} to {high:.2f}, {logs.count} seeds)"
    )


def _finding(name: str, says: str, estimate: Estimate, statement: str) -> Finding:
    return Finding(
        name=name,
        says=says,
        verdict=sign_verdict(estimate),
        statement=statement,
        estimate=estimate,
    )
