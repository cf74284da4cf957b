"""Heads that withstand noise: queries that minimise E‖c − target‖².

Given Gaussian keys, a target and a budget (how many heads, how long a query may be), a search
finds queries, and every choice, found or hand-made, is then judged by the
same evaluation: exactly where a quadrature can, by independent draws otherwise. It splits as

    E‖c − t‖² = ‖E c − t‖² + tr Cov c        (squared bias plus variance).

What is guaranteed: the figures of the evaluation, and that no compared choice is better under
it. That no other queries are better is not: the objective has many local optima.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from heedful.arrays import Array, number_of, whole
from heedful.attention.distribution import certified_rule, feature_moments, sample, standard_grid
from heedful.attention.noise import (
    GaussianKeys,
    Readout,
    checked_queries,
    logit_model,
)
from heedful.attention.operation import Scale, average_weights, scale_of, wanted_weights
from heedful.errors import InputError
from heedful.progress import Step
from heedful.records import Record


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadsEvaluation(Record):
    """Queries of several heads, and how well they withstand the noise."""

    queries: Float[np.ndarray, "H d"]
    """One query a head."""
    error: float
    """√E‖c − target‖², the root mean square distance."""
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


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadsChoice(HeadsEvaluation):
    """One choice of queries, found or hand-made."""

    name: str
    """What the choice is."""
    method: str
    """How it was evaluated: "exact" (quadrature) or "sampled" (independent draws)."""


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
class HeadsDesign(HeadsEvaluation):
    """Queries for several heads that share noisy keys."""

    feasible: bool
    """True: any target can be approached; `error` says how closely."""
    beta: float
    """Length of the longest query."""
    norm: float
    """How long it was allowed to be."""
    scale: float
    """What multiplies every k·q."""
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
    progress: Step | None = None,
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
    heads, starts = whole("heads", heads, 1), whole("starts", starts, 0)
    seed = whole("seed", seed, 0)
    norm = number_of("norm", norm, above=0)
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
    screen = objective(keys, errors, SCREENED, seed)
    first = _starts(screen.basis, rivals | shorter, (heads, norm), starts, seed)
    nodes = POLISHED
    while nodes > SCREENED and nodes * heads * keys.n > POLISHED_LOGITS:
        nodes //= 2
    final = objective(keys, errors, nodes, seed)
    optima = search(screen, final, [(name, s * Q) for name, Q in first], s * norm, progress)
    judged_optima = [(judged(one.start, one.queries @ screen.basis.T / s), one) for one in optima]
    best, source = min(judged_optima, key=lambda pair: pair[0].expected_squared_error)
    # Nodes are not the noise itself: a hand-made choice may still win the fair evaluation.
    fair = [best, *(choice for choice in comparison if choice.name in rivals)]
    chosen = min(fair, key=lambda choice: choice.expected_squared_error)
    return HeadsDesign(
        **{field.name: getattr(chosen, field.name) for field in fields(HeadsEvaluation)},
        feasible=True,
        beta=float(np.linalg.norm(chosen.queries, axis=1).max()),
        norm=norm,
        scale=s,
        target_weights=weights,
        certificate=_certificate(chosen, best, source, len(first)),
        comparison=tuple(sorted(comparison, key=lambda choice: choice.expected_squared_error)),
    )


def _within(Q: Array, heads: int, norm: float) -> bool:
    return len(Q) == heads and bool(np.linalg.norm(Q, axis=1).max() <= norm * (1.0 + 1e-12))


def _starts(
    U: Array, given: Mapping[str, Array], budget: tuple[int, float], random: int, seed: int
) -> list[tuple[str, Array]]:
    """Return named starts in the coordinates of the span: the given ones, and random ones."""
    heads, norm = budget
    named = [(name, Q @ U) for name, Q in given.items()]
    stream = np.random.default_rng(seed)
    for number in range(random):
        Q = stream.standard_normal((heads, U.shape[1]))
        lengths = norm * stream.uniform(0.1, 1.0, (heads, 1))
        named.append((f"random {number}", lengths * Q / np.linalg.norm(Q, axis=1, keepdims=True)))
    return named


def _certificate(
    chosen: HeadsChoice, best: HeadsChoice, source: Optimum, starts: int
) -> HeadsCertificate:
    figure = "by quadrature" if chosen.method == "exact" else "by independent draws"
    origin = (
        f"a local optimum on {source.nodes} nodes of the noise, the best of {starts} starts"
        if chosen is best
        else f"the given choice {chosen.name!r}, which no optimum found improves on"
    )
    return HeadsCertificate(
        statement=(
            f"{origin}; the error was evaluated {figure}, and every choice compared within the "
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
        return average_weights(of, n)
    return wanted_weights("target_weights", target_weights, n)


# Choices of heads, found or hand-made, judged by one evaluation.
#
# The hand-made ones are what one would try first: a head on each target key, all heads on the
# sum of the target keys, all heads on one of them, a head on each that also turns away from all
# other keys, and all heads only turned away from them, which does not look at the target at all.

EVALUATION_DRAWS = 20_000
"""Draws behind an error that no quadrature can give."""
ONE_EACH, ONE_EACH_AWAY, ON_THE_SUM, AWAY = (
    "one head a target key",
    "one head a target key, away from all others",
    "all heads on the sum",
    "all heads away from the other keys",
)


def judge(
    name: str,
    keys: GaussianKeys,
    queries: Float[np.ndarray, "H d"],
    *,
    values: Any,
    target: Float[np.ndarray, " v"],
    on: Bool[np.ndarray, " n"],
    scale: Scale,
    seed: int,
) -> HeadsChoice:
    """Evaluate queries: exactly where a quadrature can, by draws otherwise.

    All choices judged with one seed meet the same draws, so that they differ by their merit.
    """
    model = logit_model(keys, queries, scale)
    readout = Readout(model, values, target)
    rule, _ = certified_rule(model, 1e-6)
    if rule is not None:
        moments = feature_moments(model, rule)
        mean, se = moments.mean, 0.0
        squared_bias = _squared_distance(readout, mean)
        variance = float(readout.variances(moments.covariance).sum())
    else:
        # Stream seeds of a study are small numbers; this keeps the evaluation apart from them.
        drawn = sample(model, readout, EVALUATION_DRAWS, seed + 0x5EED, radius=math.inf)
        mean, se = drawn.mean, drawn.squared_distance[1]
        squared_bias = _squared_distance(readout, mean)
        variance = max(0.0, drawn.squared_distance[0] - squared_bias)
    squared = squared_bias + variance
    return HeadsChoice(
        name=name,
        queries=queries,
        error=math.sqrt(squared),
        expected_squared_error=squared,
        standard_error=se,
        squared_bias=squared_bias,
        variance=variance,
        mass=float(model.spread(mean)[on].sum()),
        method="exact" if rule is not None else "sampled",
    )


def hand_made(
    keys: GaussianKeys, weights: Float[np.ndarray, " n"], heads: int, norm: float
) -> dict[str, Float[np.ndarray, "H d"]]:
    """Return the hand-made choices at the full norm; those without a direction are left out."""
    targets = np.flatnonzero(weights)
    first = int(targets[weights[targets].argmax()])
    own = keys.means[_shared_out(weights, heads)]
    directions = {
        ONE_EACH: own,
        ONE_EACH_AWAY: _unit(own) - _unit(keys.means.sum(axis=0) - own),
        ON_THE_SUM: np.repeat((weights @ keys.means)[None], heads, axis=0),
        f"all heads on key {first}": np.repeat(keys.means[first][None], heads, axis=0),
        AWAY: np.repeat(-keys.means[weights == 0].sum(axis=0)[None], heads, axis=0),
    }
    lengths = {name: np.linalg.norm(Q, axis=1, keepdims=True) for name, Q in directions.items()}
    return {
        name: norm * Q / lengths[name]
        for name, Q in directions.items()
        if lengths[name].min() > 1e-9 * np.abs(keys.means).max()
    }


def _squared_distance(readout: Readout, features: Array) -> float:
    return float(((readout.output_of(features) - readout.target) ** 2).sum())


def _unit(rows: Array) -> Array:
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


def _shared_out(weights: Array, heads: int) -> Array:
    """Return a key for each head, in proportion to the weights (largest remainders)."""
    quota = weights * heads
    seats = np.floor(quota + 1e-12).astype(int)
    rest = np.argsort(-(quota - seats), kind="stable")[: heads - int(seats.sum())]
    seats[rest] += 1
    return np.repeat(np.arange(len(weights)), seats)


# The search behind robust heads: a smooth objective on fixed nodes, and many starts.
#
# The expectation J(Q) = E‖c − t‖² is replaced by an average over fixed nodes of the key noise:
# equally probable ones where a single normal is behind it all, scrambled Sobol points otherwise.
# With e = c − t = Σ ᾱ_i (v_i − t) and g_i = 2 (v_i − t)·e / H, its gradient is
#
#     ∂J/∂q_h = E Σ_i α_hi (g_i − Σ_j α_hj g_j) k_i.
#
# Each query is written q_h = norm · ρ_h · u_h/‖u_h‖ with 0 ≤ ρ_h ≤ 1, so that ‖q_h‖ ≤ norm is a
# box that L-BFGS-B keeps exactly. Queries live in the span of the means and of the directions of
# noise: any component outside it could only add isotropic noise to the logits.

NODE_NUMBERS = 4_000_000
"""Most numbers in the nodes of an objective."""
SOBOL_DIMENSIONS = 21_201
"""SciPy's Sobol points go no further."""
SCREENED, POLISHED = 512, 4096
"""Nodes while screening the starts, and at most while polishing the best of them …"""
POLISHED_LOGITS = 1 << 17
"""… where no more than about this many logits are computed at once."""
KEPT = 3
"""How many screened starts are polished."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadsObjective:
    """J(Q) = average of ‖c − t‖² over nodes of the key noise, in reduced coordinates."""

    means: Float[np.ndarray, "n m"]
    """μ_i in the basis of the span."""
    noisy: tuple[int, ...]
    """Keys that move."""
    noise: Float[np.ndarray, "nodes N m"]
    """k_i − μ_i at each node."""
    errors: Float[np.ndarray, "n k"]
    """v_i − t, in as few coordinates as they span."""
    basis: Float[np.ndarray, "d m"]
    """The orthonormal basis of the span."""

    def __call__(self, Q: Float[np.ndarray, "H m"]) -> tuple[float, Float[np.ndarray, "H m"]]:
        """Return J and its gradient."""
        S, N, m = self.noise.shape
        H = len(Q)
        moving = list(self.noisy)
        flat = self.noise.reshape(S * N, m)
        logits = np.repeat((Q @ self.means.T)[None], S, axis=0)
        logits[:, :, moving] += (flat @ Q.T).reshape(S, N, H).transpose(0, 2, 1)
        logits -= logits.max(axis=2, keepdims=True)
        alpha = np.exp(logits, out=logits)
        alpha /= alpha.sum(axis=2, keepdims=True)
        # J = Σ‖e‖²/S with e = Σ ᾱ_i (v_i − t); its gradient is the formula above this class,
        # with k_i = μ_i + noise: once for the means, once for what moves.
        residual = alpha.mean(axis=1) @ self.errors
        value = float((residual * residual).sum()) / S
        g = residual @ self.errors.T * (2.0 / (H * S))
        slope = alpha * (g[:, None] - (alpha * g[:, None]).sum(axis=2, keepdims=True))
        gradient = slope.sum(axis=0) @ self.means
        moved = slope[:, :, moving].transpose(1, 0, 2).reshape(H, S * N)
        return value, gradient + moved @ flat


def span(keys: GaussianKeys) -> Float[np.ndarray, "d m"]:
    """Return an orthonormal basis of the means and the directions of noise."""
    factors = [keys.factor(key).T for key in keys.covariances]
    rows = np.concatenate([keys.means, *(w[None] for w in keys.directions.values()), *factors])
    _, singular, right = np.linalg.svd(rows, full_matrices=False)
    rank = int((singular > 1e-12 * singular.max(initial=0.0)).sum())
    # A zero span would leave no query at all; any one direction serves.
    return right[: max(rank, 1)].T


def objective(
    keys: GaussianKeys, errors: Float[np.ndarray, "n v"], nodes: int, seed: int
) -> HeadsObjective:
    """Return the objective for errors v_i − t, on about `nodes` nodes."""
    U = span(keys)
    m = U.shape[1]
    columns: dict[int, Array] = {}
    for key in range(keys.n):
        parts = []
        if keys.isotropic[key] > 0:
            parts.append(np.sqrt(keys.isotropic[key]) * np.eye(m))
        if keys.variances.get(key, 0.0) > 0:
            parts.append(np.sqrt(keys.variances[key]) * (U.T @ keys.directions[key])[:, None])
        if key in keys.covariances:
            parts.append(U.T @ keys.factor(key))
        if parts:
            columns[key] = np.concatenate(parts, axis=1)
    total = sum(block.shape[1] for block in columns.values())
    allowed = NODE_NUMBERS // max(1, len(columns) * m)
    while nodes > allowed and nodes > 64:
        nodes //= 2
    xi = _nodes(total, nodes, seed)
    noise = np.zeros((len(xi), len(columns), m))
    start = 0
    for row, block in enumerate(columns.values()):
        width = block.shape[1]
        noise[:, row] = xi[:, start : start + width] @ block.T
        start += width
    if errors.shape[1] > len(errors):
        errors = np.asarray(np.linalg.qr(errors.T, mode="r")).T
    return HeadsObjective(
        means=keys.means @ U, noisy=tuple(columns), noise=noise, errors=errors, basis=U
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Optimum:
    """A local optimum."""

    queries: Float[np.ndarray, "H m"]
    value: float
    gradient: float
    """Largest entry of the projected gradient in the search variables."""
    start: str
    nodes: int
    """Nodes the value is an average over."""


def polish(
    J: HeadsObjective, Q: Float[np.ndarray, "H m"], norm: float, steps: int, name: str
) -> Optimum:
    """Descend from one start to a local optimum with ‖q_h‖ ≤ norm."""
    from scipy.optimize import minimize

    H, m = Q.shape
    length = np.linalg.norm(Q, axis=1, keepdims=True)
    unit = np.divide(Q, length, out=np.full_like(Q, 1.0 / np.sqrt(m)), where=length > 0)
    first = np.concatenate([(length[:, 0] / norm).clip(0.0, 1.0), unit.ravel()])

    def value(x: Array) -> tuple[float, Array]:
        J_value, gradient = J(unpack(x, H, norm))
        return J_value, pull_back(x, gradient, norm)

    bounds = [(0.0, 1.0)] * H + [(None, None)] * (H * m)
    result: Any = minimize(
        value,
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": steps, "ftol": 1e-13, "gtol": 1e-10},
    )
    best, gradient = np.asarray(result.x), np.asarray(result.jac)
    lengths = np.arange(len(best)) < H
    # Where a length is at its bound, a slope that points outward is no way to go.
    blocked = lengths & ((best >= 1.0) & (gradient < 0) | (best <= 0.0) & (gradient > 0))
    projected = np.where(blocked, 0.0, gradient)
    return Optimum(
        queries=unpack(best, H, norm),
        value=float(result.fun),
        gradient=float(np.abs(projected).max()),
        start=name,
        nodes=len(J.noise),
    )


def unpack(x: Float[np.ndarray, " variables"], H: int, norm: float) -> Float[np.ndarray, "H m"]:
    """Return q_h = norm ρ_h u_h/‖u_h‖ from the search variables (ρ, u)."""
    u = x[H:].reshape(H, -1)
    return np.asarray(norm * x[:H, None] * u / np.linalg.norm(u, axis=1, keepdims=True))


def pull_back(
    x: Float[np.ndarray, " variables"], gradient: Float[np.ndarray, "H m"], norm: float
) -> Float[np.ndarray, " variables"]:
    """Return the gradient in (ρ, u) from the gradient in the queries."""
    H = len(gradient)
    u = x[H:].reshape(H, -1)
    length = np.linalg.norm(u, axis=1, keepdims=True)
    unit = u / length
    along = (gradient * unit).sum(axis=1, keepdims=True)
    across = (gradient - along * unit) * (norm * x[:H, None] / length)
    return np.concatenate([norm * along[:, 0], across.ravel()])


def search(
    screen: HeadsObjective,
    final: HeadsObjective,
    starts: Sequence[tuple[str, Float[np.ndarray, "H m"]]],
    norm: float,
    progress: Step | None = None,
) -> list[Optimum]:
    """Return the optima of the best starts, best first."""
    kept = min(KEPT, len(starts))
    total = len(starts) + kept
    screened = []
    for name, Q in starts:
        screened.append(polish(screen, Q, norm, 60, name))
        if progress:
            progress(len(screened), total)
    screened.sort(key=lambda optimum: optimum.value)
    polished = []
    for optimum in screened[:kept]:
        polished.append(polish(final, optimum.queries, norm, 300, optimum.start))
        if progress:
            progress(len(starts) + len(polished), total)
    return sorted(polished, key=lambda optimum: optimum.value)


def _nodes(total: int, nodes: int, seed: int) -> Array:
    """Return (nodes, total) standard normals that cover their space evenly."""
    if total == 0:
        return np.zeros((1, 0))
    if total == 1:
        return standard_grid(nodes)[:, None]
    if total > SOBOL_DIMENSIONS:
        return np.random.default_rng(seed).standard_normal((nodes, total))
    from scipy.special import ndtri
    from scipy.stats import qmc

    points = qmc.Sobol(total, rng=np.random.default_rng(seed)).random_base2(nodes.bit_length() - 1)
    return np.asarray(ndtri(points.clip(1e-12, 1.0 - 1e-12)))


# Error against the budget: how much longer queries, or more heads, can buy.
#
# Copies of a head buy nothing: heads share their keys, and so their noise. More heads help where
# they read the same value through different noise. An odd number may do worse than the even
# number before it: every head has the same say in c, and the odd one has no side to take.
#
# Each point also starts from the largest point before it that its budget contains (shorter queries,
# or fewer heads, each repeated), so that the best error does not rise where it cannot, but for the
# standard error of an evaluation by draws.

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
    progress: Step | None = None,
) -> HeadsDesign:
    """Return the design with √E‖c − target‖² of best and hand-made heads along both budgets.

    `keys` and `values` are those the design was made for.
    """
    lengths = [part * design.norm for part in FRACTIONS] if norms is None else list(norms)
    total = len(lengths) + len(head_counts)
    done = 0

    earlier: dict[tuple[int, float], Array] = {}

    def errors(heads: Any, norm: Any) -> dict[str, float | int]:
        nonlocal done
        point = design_heads(
            keys,
            target_weights=design.target_weights,
            heads=heads,
            norm=norm,
            values=values,
            scale=design.scale,
            compare=_contained(earlier, heads, norm),
            starts=starts,
            seed=seed,
        )
        earlier[heads, point.norm] = point.queries
        done += 1
        if progress:
            progress(done, total)
        known = {choice.name: choice.error for choice in point.comparison}
        shown = {name: known[name] for name in sorted(known) if name != EARLIER}
        return {"optimal": point.error, **shown}

    heads = len(design.queries)
    return replace(
        design,
        by_beta=tuple({"beta": float(norm), **errors(heads, norm)} for norm in lengths),
        by_heads=tuple({"heads": count, **errors(count, design.norm)} for count in head_counts),
    )


def _contained(earlier: dict[tuple[int, float], Array], heads: Any, norm: Any) -> dict[str, Array]:
    """Return the largest earlier design that a budget contains, repeated to its heads."""
    fitting = [
        (count, length)
        for count, length in earlier
        if length <= norm and isinstance(heads, int) and heads % count == 0
    ]
    if not fitting:
        return {}
    count, length = max(fitting)
    return {EARLIER: np.repeat(earlier[count, length], heads // count, axis=0)}
