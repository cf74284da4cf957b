"""Claims about noisy keys: estimated by draws or quadrature, proved by enclosing every cell.

With one noisy direction ξ ~ N(0, 1) the line is cut into cells. On each cell the keys, the
weights and the output are enclosed by balls, so that E, P, var and std are enclosed too:

    E x ∈ Σ_cells mass(cell) · x(cell),   P(event) ∈ [mass(surely), mass(not surely not)].

That is a proof, not an estimate. With more directions there are draws, and intervals of
confidence from independent groups of them.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import arb, ctx
from scipy.special import stdtrit

from heedful.claims.balls import Ball, Enclosure, LetterRange, NotEnclosed, flatten
from heedful.claims.compile import CompiledClaim
from heedful.claims.evaluate.ball import BallEvaluator, BallWorld
from heedful.claims.evaluate.float import Evaluator, World
from heedful.claims.language.tree import Call, Compare, Expression, walk
from heedful.claims.proofs import PRECISIONS, ball_world, decimal
from heedful.claims.values import ROUNDING, Truth, Value
from heedful.claims.worlds import (
    QUADRATURE_NODES,
    REACH,
    Noise,
    _factors,
    build_world,
    drawn_noise,
    noise_directions,
    quadrature_noise,
)
from heedful.errors import FormulaError

if TYPE_CHECKING:
    from heedful.claims.search import Case

GROUPS = 20
CELLS = (160, 640)
CONFIDENCE = 0.99
MOST_COORDINATES = 20_000_000
"""Normal coordinates drawn at once; with more directions there are fewer draws."""
NORMAL_PEAK = 0.3989422804014327
HEAVY = 0.3
"""The share of one group in the spread of all from which on a mean counts as not yet seen."""
FAR_DRAWS, FAR_SCALES = 2000, (3.0, 10.0, 30.0, 1e3)
"""Draws that are looked at far out, and how many deviations out they lie."""
FAR = 1e6
"""Where the outermost cells end, in standard deviations."""


@dataclass(frozen=True)
class NoiseEstimate:
    """What sampling or quadrature says about a claim in one case."""

    holds: bool
    gap: float
    """How far the claim is from holding (above 0: it fails)."""
    error: float
    """Half the width of the 99 % interval of the gap; 0 for quadrature."""
    left: float
    right: float
    draws: int
    directions: int
    world: World
    truth: Truth

    @property
    def by_rounding(self) -> bool:
        """Whether it holds only because float64 lets a little pass, such as 1e-10."""
        return self.holds and self.gap > 0

    @property
    def clear(self) -> bool:
        """Whether the interval of confidence lies on one side."""
        return abs(self.gap) > self.error


def estimate(problem: CompiledClaim, case: Case) -> NoiseEstimate:
    """Estimate a claim about a distribution in one case."""
    directions = noise_directions(problem, case.scalars)
    noise = _noise(problem, directions)
    world, truth = _truth(problem, case, noise)
    gap = float(np.max(truth.gap))
    error = 0.0
    if directions == 1:
        error = _quadrature_error(problem, case, gap)
    elif directions > 1:
        error = _sampling_error(problem, case, noise)
    return NoiseEstimate(
        holds=bool(np.all(truth.holds)),
        gap=gap,
        error=error,
        left=_first(truth.left),
        right=_first(truth.right),
        draws=len(noise.coordinates),
        directions=directions,
        world=world,
        truth=truth,
    )


def _noise(problem: CompiledClaim, directions: int) -> Noise:
    if directions == 0:
        return Noise(np.zeros((1, 0)))
    if directions == 1:
        return quadrature_noise()
    rng = np.random.default_rng(np.random.SeedSequence(problem.claim.seed).spawn(1)[0])
    affordable = max(50 * GROUPS, MOST_COORDINATES // directions)
    draws = max(50 * GROUPS, min(problem.claim.draws, affordable))
    return drawn_noise(directions, draws, rng)


def _quadrature_error(problem: CompiledClaim, case: Case, gap: float) -> float:
    """Bound the error of the midpoint rule: by a coarser one, a longer one, and jumps at nodes."""
    if not problem.statistical:
        return 0.0
    coarse = _truth(problem, case, quadrature_noise(QUADRATURE_NODES // 2))[1]
    # What grows like exp(βξ) has its weight far out: there the rule must not have ended.
    longer = _truth(problem, case, quadrature_noise(2 * QUADRATURE_NODES, 2 * REACH))[1]
    jumps = 4 * REACH * NORMAL_PEAK / QUADRATURE_NODES if _has_jumps(problem) else 0.0
    apart = max(abs(float(np.max(other.gap)) - gap) for other in (coarse, longer))
    return 2 * apart + jumps


def _sampling_error(problem: CompiledClaim, case: Case, noise: Noise) -> float:
    """Return half the width of the 99 % interval of the gap, from independent groups."""
    parts = np.array_split(noise.coordinates, GROUPS)
    gaps = [float(np.max(_truth(problem, case, Noise(part))[1].gap)) for part in parts]
    spread = float(np.std(gaps, ddof=1)) / math.sqrt(GROUPS)
    error = spread * float(stdtrit(GROUPS - 1, (1 + CONFIDENCE) / 2))
    if problem.statistical and _mentions_equality(problem):
        error *= 2  # the distance of two estimates is folded at 0, where groups spread less
    if _has_jumps(problem):
        # An event that none of N draws met may still have the probability ln(200)/N.
        error = max(error, math.log(2 / (1 - CONFIDENCE)) / len(noise.coordinates))
    apart = (np.array(gaps) - np.mean(gaps)) ** 2
    if _may_be_heavy(problem) and np.max(apart) > HEAVY * np.sum(apart):
        # One group outweighs the others: the draws have not seen where the mean lies.
        error = max(error, 2 * float(np.max(np.abs(gaps))))
    return error


def _may_be_heavy(problem: CompiledClaim) -> bool:
    """Tell whether exp of noise may have a mean that hardly any draw comes near."""
    return any(
        isinstance(node, Call) and node.function == "exp"
        for tree in problem.expectations
        for node in walk(tree)
    )


def _has_jumps(problem: CompiledClaim) -> bool:
    return any(
        isinstance(node, Call) and (node.function in ("P", "quantile") or (node.given is not None))
        for tree in problem.expectations
        for node in walk(tree)
    )


def _mentions_equality(problem: CompiledClaim) -> bool:
    return any(
        isinstance(node, Compare) and node.operator in ("=", "!=", "~")
        for tree in problem.expectations
        for node in walk(tree)
    )


def rare_draws(problem: CompiledClaim, case: Case, seed: int) -> NoiseEstimate | None:
    """For a claim that must hold in every draw: a failure among draws far from the middle.

    Every open set of coordinates has a positive probability, however far out it lies.
    """
    directions = noise_directions(problem, case.scalars)
    if not directions or _mentions_equality(problem):
        return None
    rng = np.random.default_rng(seed)
    scales = np.repeat(FAR_SCALES, FAR_DRAWS // len(FAR_SCALES))
    draws = rng.standard_normal((FAR_DRAWS, directions)) * scales[:, None]
    try:
        world, truth = _truth(problem, case, Noise(draws))
    except FormulaError:
        return None
    worst = int(np.argmax(truth.gap))
    left, right = (_in_draw(side, worst) for side in (truth.left, truth.right))
    gap, size = float(truth.gap[worst]), abs(left) + abs(right)
    if np.all(truth.holds) or not gap > ROUNDING * (1.0 + (size if math.isfinite(size) else 0.0)):
        return None
    return NoiseEstimate(False, gap, 0.0, left, right, FAR_DRAWS, directions, world, truth)


def _in_draw(side: Value | None, draw: int) -> float:
    """Return the first entry of a value in one draw."""
    if side is None:
        return float("nan")
    return float(np.asarray(side.array[min(draw, len(side.array) - 1)]).flat[0])


def share_failing(problem: CompiledClaim, case: Case) -> tuple[NoiseEstimate, float]:
    """For a claim that must hold in every draw: the share of draws in which it fails."""
    found = estimate(problem, case)
    holds = np.broadcast_to(found.truth.holds, (found.draws,))
    weights = found.world.weights
    return found, float(np.mean(~holds) if weights is None else np.sum(weights * ~holds))


def enclosed(problem: CompiledClaim, case: Case) -> bool | None:
    """Prove (True) or disprove (False) a claim with one noisy direction; None: cannot tell."""
    if noise_directions(problem, case.scalars) != 1:
        return None
    for count in CELLS:
        with ctx.workprec(PRECISIONS[0]):
            try:
                answer = over_cells(problem, case, count).truth(problem.statement)
            except (NotEnclosed, ZeroDivisionError, ValueError, OverflowError):
                return None
        if answer is not None:
            return answer
    return None


def over_cells(problem: CompiledClaim, case: Case, count: int = CELLS[-1]) -> BallEvaluator:
    """Return the evaluator that encloses statistics of one noisy direction, cell by cell."""
    if noise_directions(problem, case.scalars) != 1:
        raise NotEnclosed("noise in more than one direction")
    # Outside a statistic only what is not random has a value: no cell stands for all.
    fixed = {n: Enclosure(decimal(x), "scalar") for n, x in case.scalars.items()}
    world = BallWorld(symbols=fixed, tolerance=float(problem.claim.tolerance))
    return BallEvaluator(world, _Cells(problem, case, count))


class _Cells:
    """Encloses statistics over cells of the one noisy direction."""

    def __init__(self, problem: CompiledClaim, case: Case, count: int) -> None:
        self.cells = list(_cells(problem, case, count))
        self._weights_of: dict[Expression | None, list[Any]] = {}

    def expectation(self, call: Call) -> Enclosure:
        """Enclose E(x)."""
        enclosures = self._in_cells(call.arguments[0])
        means, _ = self._moments(enclosures, call.given)
        return _shaped([Ball(entry) for entry in means], enclosures[0])

    def variance(self, call: Call) -> Enclosure:
        """Enclose var(x)."""
        _, variance = self._moments(self._in_cells(call.arguments[0]), call.given)
        return Enclosure(Ball(variance), "scalar")

    def probability(self, call: Call) -> Enclosure:
        """Enclose P(event)."""
        total = arb(0)
        for weight, (_, world) in zip(self._weights(call.given), self.cells, strict=True):
            answer = BallEvaluator(world).truth(call.arguments[0])
            if answer is None:
                total += arb(0).union(weight)
            elif answer:
                total += weight
        return Enclosure(Ball(total.nonnegative_part().min(arb(1))), "scalar")

    def _in_cells(self, node: Expression) -> list[Enclosure]:
        return [BallEvaluator(world).value(node) for _, world in self.cells]

    def _moments(
        self, enclosures: list[Enclosure], given: Expression | None
    ) -> tuple[list[Any], Any]:
        """Enclose the mean of every entry, and the sum of their variances.

        Both are taken about a centre near the mean: E x = m + E(x − m), and
        var x = E(x − m)² − (E(x − m))², so that wide cells cost little.
        """
        rows = [[entry.flat() for entry in flatten(x)] for x in enclosures]
        weights = self._weights(given)
        centre = [
            sum(
                (w.mid() * row[i].mid() for w, row in zip(weights, rows, strict=True)), arb(0)
            ).mid()
            for i in range(len(rows[0]))
        ]
        apart = [[x - m for x, m in zip(row, centre, strict=True)] for row in rows]
        shifts = [
            sum((w * row[i] for w, row in zip(weights, apart, strict=True)), arb(0))
            for i in range(len(centre))
        ]
        squares = sum(
            (w * _square(x) for w, row in zip(weights, apart, strict=True) for x in row), arb(0)
        )
        variance = (squares - sum((_square(x) for x in shifts), arb(0))).nonnegative_part()
        return [m + x for m, x in zip(centre, shifts, strict=True)], variance

    def _weights(self, given: Expression | None) -> list[Any]:
        """Enclose each cell's probability under the condition."""
        if given not in self._weights_of:
            self._weights_of[given] = self._masses(given)
        return self._weights_of[given]

    def _masses(self, given: Expression | None) -> list[Any]:
        if given is None:
            return [mass for mass, _ in self.cells]
        held = [(mass, BallEvaluator(world).truth(given)) for mass, world in self.cells]
        parts = [
            mass if answer is True else arb(0) if answer is False else arb(0).union(mass)
            for mass, answer in held
        ]
        whole = sum(parts, arb(0))
        if not whole > 0:
            raise NotEnclosed("a condition that may never hold")
        return [part / whole for part in parts]


def _square(x: Any) -> Any:
    return arb(0).union(abs(x).upper() ** 2) if x.contains(arb(0)) else x * x


def _shaped(entries: list[Ball], like: Enclosure) -> Enclosure:
    """Return a flat list of entries in the shape of another value."""
    if like.kind == "scalar":
        return Enclosure(entries[0], "scalar")
    if like.kind != "matrix":
        return Enclosure(entries, like.kind, like.formal)
    width = len(like.entries[0])
    rows = [entries[start : start + width] for start in range(0, len(entries), width)]
    return Enclosure(rows, "matrix", like.formal)


def _cells(problem: CompiledClaim, case: Case, count: int) -> Any:
    """Yield (mass, world) for cells that cover the whole line."""
    world = (
        build_world(problem, case.scalars, case.arrays, noise=Noise(np.zeros((1, 1))))
        if problem.claim.keys == "gaussian"
        else None
    )
    inner = np.linspace(-5.5, 5.5, count + 1)
    edges = np.concatenate(([-FAR, -12.0, -7.0], inner, [7.0, 12.0, FAR]))
    scalars = {name: decimal(value) for name, value in case.scalars.items()}
    balls = [Ball.letter(LetterRange.of(low, high)) for low, high in itertools.pairwise(edges)]
    masses = [_cdf(high) - _cdf(low) for low, high in itertools.pairwise(edges)]
    # What lies beyond (a mass below exp(−10¹¹)) joins the outermost cells as an uncertain mass.
    masses[0] = masses[0] + arb(0).union(_cdf(-FAR))
    masses[-1] = masses[-1] + arb(0).union(_cdf(-FAR))
    factors = [] if world is None else _factors(problem, world)
    for mass, xi in zip(masses, balls, strict=True):
        keys = None if world is None else _noisy_keys(world, factors, xi)
        known = scalars if world is not None else {**scalars, **_random(problem, xi)}
        yield mass, ball_world(problem, known, case.arrays, case.scalars, keys=keys)


def _random(problem: CompiledClaim, xi: Ball) -> dict[str, Ball]:
    from heedful.claims.symbols import Array

    return {
        name: xi
        for name, domain in problem.domains.items()
        if isinstance(domain, Array) and domain.random
    }


def _noisy_keys(world: World, factors: list[Any], xi: Ball) -> Enclosure:
    rows = []
    for mean, factor in zip(world.families["mu"].array[0], factors, strict=True):
        if factor.shape[1] == 0:
            rows.append([_near(x) for x in mean])
        else:
            size = float(np.max(np.abs(factor)))
            rows.append(
                [
                    _near(x) + _rounded(slope, size) * xi
                    for x, slope in zip(mean, factor[:, 0], strict=True)
                ]
            )
    return Enclosure(rows, "matrix")


def _near(x: float) -> Ball:
    """Return an entry of a mean: exact if it is a whole number, else with its rounding."""
    return Ball(arb(float(x), 0.0 if x == round(x) else abs(float(x)) * 1e-15))


def _rounded(x: float, size: float) -> Ball:
    """Return an entry of a covariance's factor with the rounding of the eigenvalue solver."""
    return Ball(arb(0)) if x == 0 else Ball(arb(float(x), size * 1e-13))


def _cdf(x: float) -> Any:
    return (arb(x) / arb(2).sqrt()).erf() / 2 + arb(1) / 2


def _truth(problem: CompiledClaim, case: Case, noise: Noise) -> tuple[World, Truth]:
    world = build_world(problem, case.scalars, case.arrays, noise=noise)
    return world, Evaluator(world).truth(problem.statement)


def _first(value: Any) -> float:
    return float("nan") if value is None else float(np.asarray(value.array).flat[0])
