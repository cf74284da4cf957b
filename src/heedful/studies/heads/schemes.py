"""Each scheme of positions: what a model trained with it knows about order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.records import Record
from heedful.stats import Estimate
from heedful.studies.heads.findings import Finding
from heedful.studies.heads.order import OrderTest
from heedful.studies.heads.small_models import FAMILIES, SmallModel


@dataclass(frozen=True, eq=False, kw_only=True)
class Scheme(Record):
    """One scheme, over seeds."""

    name: str
    loss: Estimate
    r2: tuple[Estimate, ...]
    """Of the probe: before the first layer, then after each; over seeds."""
    mean_error: tuple[Estimate, ...]
    """In tokens, at the same depths."""
    tests: tuple[OrderTest, ...]
    """With the causal mask and without it."""

    @property
    def last(self) -> Estimate:
        """R² after the last layer."""
        return self.r2[-1]


@dataclass(frozen=True, eq=False, kw_only=True)
class Schemes(Record):
    """All schemes."""

    schemes: tuple[Scheme, ...]
    length: int
    """Positions that the probe tells apart."""
    findings: tuple[Finding, ...]


def compare_schemes(models: Sequence[SmallModel]) -> Schemes:
    """Compare the schemes of positions."""
    schemes = tuple(
        _scheme(name, [model for model in models if model.name == variant])
        for name, variant in FAMILIES["positions"].items()
    )
    return Schemes(
        schemes=schemes,
        length=models[0].probe.length,
        findings=_findings(next(one for one in schemes if one.name == "none")),
    )


def _scheme(name: str, models: Sequence[SmallModel]) -> Scheme:
    depths = range(len(models[0].probe.r2))
    return Scheme(
        name=name,
        loss=Estimate.of([model.loss for model in models]),
        r2=tuple(
            Estimate.of([model.probe.r2[depth].value for model in models]) for depth in depths
        ),
        mean_error=tuple(
            Estimate.of([model.probe.mean_error[depth] for model in models]) for depth in depths
        ),
        tests=next(model.order for model in models if model.order),
    )


def _findings(none: Scheme) -> tuple[Finding, ...]:
    masked = next(test for test in none.tests if test.masked)
    free = next(test for test in none.tests if not test.masked)
    return (
        Finding(
            name="equivariant, no mask",
            says="Without positions and without a mask, a trained model is "
            "permutation-equivariant.",
            verdict="supported" if free.holds else "refuted",
            statement=free.statement,
        ),
        Finding(
            name="equivariant, causal",
            says="Without positions, a trained decoder is permutation-equivariant.",
            verdict="supported" if masked.holds else "refuted",
            statement=f"the causal mask tells tokens apart: {masked.statement}",
        ),
        Finding(
            name="order without positions",
            says="Without positions, a decoder does not know where a token stands.",
            verdict=(
                "refuted"
                if none.last.low > 0
                else "supported"
                if none.last.high < 0.05
                else "undecided"
            ),
            statement=(
                f"a linear probe explains {none.last.value:.0%} of the variance of the position "
                f"after the last layer (95 % interval {none.last.low:.0%} to {none.last.high:.0%}, "
                f"{none.last.count} seeds; off by {none.mean_error[-1].value:.1f} tokens)"
            ),
            estimate=none.last,
        ),
    )
