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
from flint import arb
from scipy.special import stdtrit

from heedful.claims.balls import Ball, NotEnclosed, Span
from heedful.claims.language.tree import Call, Compare, Expression, ForAll, Logic, Unary
from heedful.claims.numeric import Evaluator, World
from heedful.claims.problem import Problem
from heedful.claims.proofs import PRECISIONS, _precision, ball_world
from heedful.claims.rigorous import BallEvaluator, Enclosure, add, multiply
from heedful.claims.values import Truth
from heedful.claims.worlds import (
    Noise,
    _factors,
    build_world,
    drawn_noise,
    noise_directions,
    quadrature_noise,
)

if TYPE_CHECKING:
    from heedful.claims.search import Case

GROUPS = 20
CELLS = (160, 640)
CONFIDENCE = 0.99
STATISTICS = ("E", "P", "var", "std")


@dataclass(frozen=True)
class Estimate:
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
    def clear(self) -> bool:
        """Whether the interval of confidence lies on one side."""
        return abs(self.gap) > self.error


def estimate(problem: Problem, case: Case) -> Estimate:
    """Estimate a claim about a distribution in one case."""
    directions = noise_directions(problem, case.scalars)
    rng = np.random.default_rng(np.random.SeedSequence(problem.claim.seed).spawn(1)[0])
    draws = max(problem.claim.draws, 50 * GROUPS)
    noise = quadrature_noise() if directions == 1 else drawn_noise(directions, draws, rng)
    world, truth = _truth(problem, case, noise)
    gap = float(np.max(truth.gap))
    error = 0.0
    if directions != 1:
        parts = np.array_split(noise.coordinates, GROUPS)
        gaps = [float(np.max(_truth(problem, case, Noise(part))[1].gap)) for part in parts]
        spread = float(np.std(gaps, ddof=1)) / math.sqrt(GROUPS)
        error = spread * float(stdtrit(GROUPS - 1, (1 + CONFIDENCE) / 2))
    return Estimate(
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


def share_failing(problem: Problem, case: Case) -> tuple[Estimate, float]:
    """For a claim that must hold in every draw: the share of draws in which it fails."""
    found = estimate(problem, case)
    holds = np.broadcast_to(found.truth.holds, (found.draws,))
    weights = found.world.weights
    return found, float(np.mean(~holds) if weights is None else np.sum(weights * ~holds))


def enclosed(problem: Problem, case: Case) -> bool | None:
    """Prove (True) or disprove (False) a claim with one noisy direction; None: cannot tell."""
    if noise_directions(problem, case.scalars) != 1:
        return None
    for count in CELLS:
        with _precision(PRECISIONS[0]):
            try:
                answer = _CellEvaluator(problem, case, count).truth(problem.statement)
            except (NotEnclosed, ZeroDivisionError, ValueError, OverflowError):
                return None
        if answer is not None:
            return answer
    return None


class _CellEvaluator(BallEvaluator):
    """Encloses statistics over cells of the one noisy direction."""

    def __init__(self, problem: Problem, case: Case, count: int) -> None:
        self.cells = list(_cells(problem, case, count))
        super().__init__(self.cells[0][1])

    def value(self, node: Expression) -> Enclosure:
        if isinstance(node, Call) and node.function in STATISTICS:
            return self._statistic(node)
        return super().value(node)

    def truth(self, node: Expression) -> bool | None:
        match node:
            case Compare() | Logic() | ForAll() | Unary("not", _):
                return super().truth(node)
        raise NotEnclosed("a statement of another kind")

    def _statistic(self, node: Call) -> Enclosure:
        if node.function == "P":
            return Enclosure(Ball(self._probability(node.arguments[0], node.given)), "scalar")
        mean = self._mean(node.arguments[0], node.given)
        if node.function == "E":
            return mean
        second = self._second_moment(node.arguments[0], node.given)
        square = mean.entries * mean.entries if mean.kind == "scalar" else _sum_of_squares(mean)
        variance = (second - square).flat().nonnegative_part()
        return Enclosure(Ball(variance if node.function == "var" else variance.sqrt()), "scalar")

    def _weights(self, given: Expression | None) -> list[Any]:
        """Enclose each cell's probability under the condition."""
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

    def _probability(self, event: Expression, given: Expression | None) -> Any:
        total = arb(0)
        for weight, (_, world) in zip(self._weights(given), self.cells, strict=True):
            answer = BallEvaluator(world).truth(event)
            if answer is None:
                total += arb(0).union(weight)
            elif answer:
                total += weight
        return total.nonnegative_part().min(arb(1))

    def _mean(self, node: Expression, given: Expression | None) -> Enclosure:
        total: Enclosure | None = None
        for weight, (_, world) in zip(self._weights(given), self.cells, strict=True):
            part = multiply(Enclosure(Ball(weight), "scalar"), BallEvaluator(world).value(node))
            total = part if total is None else add(total, part)
        assert total is not None
        return total

    def _second_moment(self, node: Expression, given: Expression | None) -> Ball:
        total = Ball(arb(0))
        for weight, (_, world) in zip(self._weights(given), self.cells, strict=True):
            made = BallEvaluator(world).value(node)
            total = total + Ball(weight) * _sum_of_squares(made)
        return total


def _sum_of_squares(x: Enclosure) -> Ball:
    entries = [x.entries] if x.kind == "scalar" else x.entries
    total = Ball(arb(0))
    for entry in entries:
        ball = entry.flat()
        total = total + Ball(ball * ball if not ball.contains(arb(0)) else (ball**2))
    return total


def _cells(problem: Problem, case: Case, count: int) -> Any:
    """Yield (mass, world) for cells that cover the whole line."""
    world = (
        build_world(problem, case.scalars, case.arrays, noise=Noise(np.zeros((1, 1))))
        if problem.claim.keys == "gaussian"
        else None
    )
    edges = np.concatenate(([-12.0, -7.0], np.linspace(-5.5, 5.5, count + 1), [7.0, 12.0]))
    scalars = {name: Ball.exact(value) for name, value in case.scalars.items()}
    balls = [Ball.letter(Span.of(low, high)) for low, high in itertools.pairwise(edges)]
    masses = [_cdf(high) - _cdf(low) for low, high in itertools.pairwise(edges)]
    # What lies beyond ±12 (mass 4e-33) joins the outermost cells as an uncertain mass.
    masses[0] = masses[0] + arb(0).union(_cdf(-12.0))
    masses[-1] = masses[-1] + arb(0).union(_cdf(-12.0))
    for mass, xi in zip(masses, balls, strict=True):
        keys = None if world is None else _noisy_keys(problem, world, xi)
        inner = scalars if world is not None else {**scalars, **_random(problem, xi)}
        yield mass, ball_world(problem, inner, case.arrays, case.scalars, keys=keys)


def _random(problem: Problem, xi: Ball) -> dict[str, Ball]:
    from heedful.claims.symbols import Array

    return {
        name: xi
        for name, domain in problem.domains.items()
        if isinstance(domain, Array) and domain.random
    }


def _noisy_keys(problem: Problem, world: World, xi: Ball) -> Enclosure:
    rows = []
    for mean, factor in zip(world.families["mu"].array[0], _factors(problem, world), strict=True):
        if factor.shape[1] == 0:
            rows.append([Ball.exact(float(x)) for x in mean])
        else:
            rows.append(
                [
                    Ball.exact(float(x)) + _rounded(slope) * xi
                    for x, slope in zip(mean, factor[:, 0], strict=True)
                ]
            )
    return Enclosure(rows, "matrix")


def _rounded(x: float) -> Ball:
    """Return a factor of a covariance with the rounding of the eigenvalue solver."""
    return Ball(arb(0)) if x == 0 else Ball(arb(float(x), abs(float(x)) * 1e-13))


def _cdf(x: float) -> Any:
    return (arb(x) / arb(2).sqrt()).erf() / 2 + arb(1) / 2


def _truth(problem: Problem, case: Case, noise: Noise) -> tuple[World, Truth]:
    world = build_world(problem, case.scalars, case.arrays, noise=noise)
    return world, Evaluator(world).truth(problem.statement)


def _first(value: Any) -> float:
    return float("nan") if value is None else float(np.asarray(value.array).flat[0])
