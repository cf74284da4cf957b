"""Error against the budget: how much longer queries, or more heads, can buy.

Copies of a head buy nothing: heads share their keys, and so their noise. More heads help where
they read the same value through different noise. An odd number may do worse than the even
number before it: every head has the same say in c, and the odd one has no side to take.

Each point also starts from the largest point before it that its budget contains (shorter queries,
or fewer heads, each repeated), so that the best error does not rise where it cannot, but for the
standard error of an evaluation by draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from heedful.attention.arrays import Array
from heedful.attention.gaussian import GaussianKeys
from heedful.attention.robust import HeadsDesign, design_heads
from heedful.attention.robust_search import Progress

FRACTIONS = (0.04, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Norms along the curve, as parts of the norm of the design."""
HEAD_COUNTS = (1, 2, 3, 4, 8)
"""Numbers of heads along the curve."""
EARLIER = "an earlier point of the curve"


def error_curves(
    design: HeadsDesign,
    keys: GaussianKeys,
    *,
    norms: Sequence[Any] | None = None,
    head_counts: Sequence[Any] = HEAD_COUNTS,
    values: Any = None,
    starts: Any = 2,
    seed: Any = 0,
    progress: Progress | None = None,
) -> HeadsDesign:
    """Return the design with √E‖c − target‖² of best and hand-made heads along both budgets.

    `keys` and `values` are those the design was made for.
    """
    lengths = [part * design.norm for part in FRACTIONS] if norms is None else list(norms)
    total = len(lengths) + len(head_counts)
    done = 0

    found: dict[tuple[int, float], Array] = {}

    def errors(heads: Any, norm: Any) -> dict[str, float | int]:
        nonlocal done
        made = design_heads(
            keys,
            target_weights=design.target_weights,
            heads=heads,
            norm=norm,
            values=values,
            scale=design.scale,
            compare=_contained(found, heads, norm),
            starts=starts,
            seed=seed,
        )
        found[heads, made.norm] = made.queries
        done += 1
        if progress:
            progress(done, total)
        known = {choice.name: choice.error for choice in made.comparison}
        shown = {name: known[name] for name in sorted(known) if name != EARLIER}
        return {"optimal": made.error, **shown}

    heads = len(design.queries)
    return replace(
        design,
        by_beta=tuple({"beta": float(norm), **errors(heads, norm)} for norm in lengths),
        by_heads=tuple({"heads": count, **errors(count, design.norm)} for count in head_counts),
    )


def _contained(found: dict[tuple[int, float], Array], heads: Any, norm: Any) -> dict[str, Array]:
    """Return the largest earlier design that a budget contains, repeated to its heads."""
    fitting = [
        (count, length)
        for count, length in found
        if length <= norm and isinstance(heads, int) and heads % count == 0
    ]
    if not fitting:
        return {}
    count, length = max(fitting)
    return {EARLIER: np.repeat(found[count, length], heads // count, axis=0)}
