"""Heads that withstand noise: queries that minimise E‖c − target‖².

Given Gaussian keys, a target and a budget (how many heads, how long a query may be), the search
of `robust_search` finds queries, and every choice, found or hand-made, is then judged by the
same evaluation: exactly where a quadrature can, by independent draws otherwise. It splits as

    E‖c − t‖² = ‖E c − t‖² + tr Cov c        (squared bias plus variance).

What is guaranteed: the figures of the evaluation, and that no compared choice is better under
it. That no other queries are better is not: the objective has many local optima.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from heedful.attention.arrays import Array, number_of, vector
from heedful.attention.gaussian import GaussianKeys
from heedful.attention.logits import checked_queries, logit_model
from heedful.attention.operation import Scale, scale_of
from heedful.attention.readout import Readout, average_of
from heedful.attention.robust_choices import HeadsChoice, hand_made, judge
from heedful.attention.robust_search import (
    POLISHED,
    POLISHED_LOGITS,
    SCREENED,
    Found,
    Progress,
    objective,
    search,
    span,
)
from heedful.errors import InputError
from heedful.records import Record


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadsCertificate(Record):
    """What is known about designed heads."""

    statement: str
    """The guarantee in words."""
    starts: int
    """Starts of the search, hand-made and random."""
    best_start: str
    """Where the chosen queries were found from."""
    nodes: int
    """Nodes of the noise that the search averaged over."""
    sampled_objective: float
    """E‖c − target‖² on these nodes."""
    gradient: float
    """Largest entry of its projected gradient: 0 at a local optimum."""
    method: str
    """How the error was evaluated: "exact" (quadrature) or "sampled" (independent draws)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadsDesign(Record):
    """Queries for several heads that share noisy keys."""

    feasible: bool
    """True: any target can be approached; `error` says how closely."""
    queries: Float[np.ndarray, "H d"]
    """One query a head."""
    beta: float
    """Length of the longest query."""
    norm: float
    """How long it was allowed to be."""
    scale: float
    """What multiplies every k·q."""
    error: float
    """√E‖c − target‖²."""
    expected_squared_error: float
    """E‖c − target‖²."""
    standard_error: float
    """Standard error of `expected_squared_error`; 0 when it comes from a quadrature."""
    squared_bias: float
    """‖E c − target‖²."""
    variance: float
    """tr Cov c."""
    mass: float
    """Expected mass on the target set."""
    target_weights: Float[np.ndarray, " n"]
    """The weights whose output is the target."""
    certificate: HeadsCertificate
    """What is guaranteed, and what is not."""
    comparison: tuple[HeadsChoice, ...]
    """Hand-made choices at the full norm, best first."""
    by_beta: tuple[dict[str, float | int], ...] | None = None
    """Errors at each allowed norm (under "beta"): "optimal", and each hand-made choice."""
    by_heads: tuple[dict[str, float | int], ...] | None = None
    """Errors for each number of heads (under "heads"), likewise; see `error_curves`."""


def design_heads(
    keys: GaussianKeys,
    *,
    of: Iterable[int] | None = None,
    target_weights: Any = None,
    heads: Any = 2,
    norm: Any = 50.0,
    values: Any = None,
    scale: Scale = 1.0,
    compare: Mapping[str, Any] | None = None,
    starts: Any = 8,
    seed: Any = 0,
    progress: Progress | None = None,
) -> HeadsDesign:
    """Return queries that minimise E‖c − target‖² with every ‖q_h‖ ≤ norm.

    The target is the average of the values of the keys in `of`, or the output of
    `target_weights`. `compare` names queries of your own to judge beside the hand-made ones;
    those within the budget also start the search, as do `starts` random ones.

    >>> keys = GaussianKeys.of(np.eye(10, 16), noisy={0: 0.5})
    >>> design = design_heads(keys, of=(0, 1), heads=2, norm=50, starts=2)
    >>> design.error < 1e-3 < 0.15 < design.comparison[-1].error
    True
    """
    weights = _target_weights(keys.n, of, target_weights)
    heads, starts, seed, norm = _budget(heads, starts, seed, norm)
    readout = Readout(logit_model(keys, np.zeros(keys.d)), values)
    target = readout.output(weights)
    own = {name: checked_queries(Q, keys.d) for name, Q in (compare or {}).items()}
    hand = hand_made(keys, weights, heads, norm)
    s = scale_of(scale, keys.d)

    def judged(name: str, Q: Array) -> HeadsChoice:
        on = weights > 0
        return judge(name, keys, Q, values=values, target=target, on=on, scale=s, seed=seed)

    comparison = [judged(name, Q) for name, Q in {**hand, **own}.items()]
    errors = (np.eye(keys.n) if readout.values is None else readout.values) - target
    # The search knows no scale: it looks for s q, whose length may be up to s · norm.
    rivals = hand | {name: Q for name, Q in own.items() if _within(Q, heads, norm)}
    shorter = {f"{name}, shorter": 0.2 * Q for name, Q in hand.items()}
    first = _starts(keys, rivals | shorter, (heads, norm), starts, seed)
    found = _search(keys, errors, [(name, s * Q) for name, Q in first], s * norm, seed, progress)
    optima = [(judged(each.start, each.queries / s), each) for each in found]
    best, source = min(optima, key=lambda pair: pair[0].expected_squared_error)
    # Nodes are not the noise itself: a hand-made choice may still win the fair evaluation.
    fair = [best, *(choice for choice in comparison if choice.name in rivals)]
    chosen = min(fair, key=lambda choice: choice.expected_squared_error)
    return HeadsDesign(
        feasible=True,
        queries=chosen.queries,
        beta=float(np.linalg.norm(chosen.queries, axis=1).max()),
        norm=norm,
        scale=s,
        error=chosen.error,
        expected_squared_error=chosen.expected_squared_error,
        standard_error=chosen.standard_error,
        squared_bias=chosen.squared_bias,
        variance=chosen.variance,
        mass=chosen.mass,
        target_weights=weights,
        certificate=_certificate(chosen, best, source, len(first)),
        comparison=tuple(sorted(comparison, key=lambda choice: choice.expected_squared_error)),
    )


def _within(Q: Array, heads: int, norm: float) -> bool:
    return len(Q) == heads and bool(np.linalg.norm(Q, axis=1).max() <= norm * (1.0 + 1e-12))


def _starts(
    keys: GaussianKeys,
    given: Mapping[str, Array],
    budget: tuple[int, float],
    random: int,
    seed: int,
) -> list[tuple[str, Array]]:
    """Return named starts in the coordinates of the span: the given ones, and random ones."""
    heads, norm = budget
    U = span(keys)
    named = [(name, Q @ U) for name, Q in given.items()]
    stream = np.random.default_rng(seed)
    for number in range(random):
        Q = stream.standard_normal((heads, U.shape[1]))
        lengths = norm * stream.uniform(0.1, 1.0, (heads, 1))
        named.append((f"random {number}", lengths * Q / np.linalg.norm(Q, axis=1, keepdims=True)))
    return named


def _search(
    keys: GaussianKeys,
    errors: Array,
    starts: list[tuple[str, Array]],
    norm: float,
    seed: int,
    progress: Progress | None,
) -> list[Found]:
    """Return the optima found, with queries of full dimension and a note of the nodes."""
    screen = objective(keys, errors, SCREENED, seed)
    nodes = POLISHED
    while nodes > SCREENED and nodes * len(starts[0][1]) * keys.n > POLISHED_LOGITS:
        nodes //= 2
    final = objective(keys, errors, nodes, seed)
    U = span(keys)
    return [
        Found(
            queries=found.queries @ U.T,
            value=found.value,
            gradient=found.gradient,
            start=found.start,
            nodes=len(final.noise),
        )
        for found in search(screen, final, starts, norm, progress)
    ]


def _certificate(
    chosen: HeadsChoice, best: HeadsChoice, source: Found, starts: int
) -> HeadsCertificate:
    figure = "by quadrature" if chosen.method == "exact" else "by independent draws"
    found = (
        f"a local optimum on {source.nodes} nodes of the noise, the best of {starts} starts"
        if chosen is best
        else f"the given choice {chosen.name!r}, which no optimum found improves on"
    )
    return HeadsCertificate(
        statement=(
            f"{found}; the error was evaluated {figure}, and every choice compared within the "
            "budget errs at least as much; better queries may exist"
        ),
        starts=starts,
        best_start=chosen.name,
        nodes=source.nodes,
        sampled_objective=source.value,
        gradient=source.gradient,
        method=chosen.method,
    )


def _target_weights(n: int, of: Iterable[int] | None, target_weights: Any) -> Array:
    if (of is None) == (target_weights is None):
        raise InputError(
            "of",
            "neither or both of `of` and `target_weights` were given",
            expected="one of them says what the heads are for",
        )
    if of is not None:
        return average_of(of, n)
    weights = vector("target_weights", target_weights, length=n)
    if weights.min() < 0 or abs(weights.sum() - 1.0) > 1e-9:
        raise InputError(
            "target_weights",
            f"sum to {weights.sum():.6g} with smallest entry {weights.min():g}",
            expected="weights of 0 or more that sum to 1 were expected",
        )
    return weights


def _budget(heads: Any, starts: Any, seed: Any, norm: Any) -> tuple[int, int, int, float]:
    for name, value, least in (("heads", heads, 1), ("starts", starts, 0), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise InputError(
                name, f"is {value!r}", expected=f"a whole number of at least {least} was expected"
            )
    longest = number_of("norm", norm)
    if longest <= 0:
        raise InputError("norm", f"is {longest:g}", expected="a length above 0 was expected")
    return int(heads), int(starts), int(seed), longest
