"""Error against the budget: how much longer queries, or more heads, can buy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from heedful.attention.gaussian import GaussianKeys
from heedful.attention.robust import HeadsDesign, design_heads
from heedful.attention.robust_search import Progress
from heedful.records import Record


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadsCurves(Record):
    """How the error falls with the budget: {"optimal": …, hand-made name: …} at each point."""

    by_beta: tuple[dict[str, float | int], ...]
    """Errors at each allowed norm (under "beta"), for the number of heads in `heads`."""
    by_heads: tuple[dict[str, float | int], ...]
    """Errors for each number of heads (under "heads"), at the norm in `norm`."""
    heads: int
    """Heads along `by_beta`."""
    norm: float
    """Norm along `by_heads`."""


def error_curves(
    keys: GaussianKeys,
    *,
    of: Iterable[int] | None = None,
    target_weights: Any = None,
    norms: Sequence[Any] = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0),
    head_counts: Sequence[Any] = (1, 2, 3, 4, 8),
    heads: Any = 2,
    norm: Any = 50.0,
    values: Any = None,
    starts: Any = 4,
    seed: Any = 0,
    progress: Progress | None = None,
) -> HeadsCurves:
    """Return √E‖c − target‖² of the best and of the hand-made heads along both budgets."""
    chosen = None if of is None else tuple(of)
    total = len(norms) + len(head_counts)
    done = 0

    def designed(heads: Any, norm: Any) -> dict[str, float]:
        nonlocal done
        design = design_heads(
            keys,
            of=chosen,
            target_weights=target_weights,
            heads=heads,
            norm=norm,
            values=values,
            starts=starts,
            seed=seed,
        )
        done += 1
        if progress:
            progress(done, total)
        return _errors(design)

    return HeadsCurves(
        by_beta=tuple({"beta": float(each), **designed(heads, each)} for each in norms),
        by_heads=tuple({"heads": each, **designed(each, norm)} for each in head_counts),
        heads=heads,
        norm=float(norm),
    )


def _errors(design: HeadsDesign) -> dict[str, float]:
    return {
        "optimal": design.error,
        **{choice.name: choice.error for choice in design.comparison},
    }
