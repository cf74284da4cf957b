"""Claims about noisy keys: estimated by draws or quadrature, proved by enclosing every cell.

With one noisy direction ξ ~ N(0, 1) the line is cut into cells. On each cell the keys, the
weights and the output are enclosed, as series in ξ where they have one and by balls where not:

    E x ∈ Σ_cells ∫ x φ + what lies beyond,   P(event) ∈ [mass(surely), mass(not surely not)].

Cells that make the sum wide are halved, and beyond the last one the growth of x is bounded, so
that heavy tails count. That is a proof, not an estimate. With more directions there are draws,
and intervals of confidence from independent groups of them.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import arb, ctx
from scipy.special import stdtrit

from heedful.claims.balls import (
    ORDER,
    Ball,
    Enclosure,
    Jet,
    LetterRange,
    NotEnclosed,
    Tail,
    flatten,
    lift,
    total,
)
from heedful.claims.compile import Array, CompiledClaim
from heedful.claims.evaluate.ball import BallEvaluator, BallWorld
from heedful.claims.evaluate.float import Evaluator, World
from heedful.claims.functions import FUNCTIONS
from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Expression,
    Logic,
    Number,
    rational,
    walk,
)
from heedful.claims.proofs import ball_world, decimal
from heedful.claims.values import ROUNDING, Truth, Value, scalar
from heedful.claims.worlds import (
    QUADRATURE_NODES,
    REACH,
    Noise,
    build_world,
    drawn_noise,
    noise_directions,
    quadrature_noise,
)
from heedful.errors import FormulaError

if TYPE_CHECKING:
    from heedful.claims.search import Case

GROUPS = 20
PRECISION = 256
"""Bits: a mass of 1e-32 counts where the value on it is 1e60."""
SHOWN = 1e-7
"""Relative width up to which numbers are refined before they are shown: seven figures."""
TOLERANCES = (1e-3, 1e-6, 1e-9, 1e-13)
"""How wide, relative to its size, an enclosed statistic may be; finer if that does not decide."""
FIRST_CELLS, OUTER_CELLS, MOST_CELLS = 16, 8, 1500
"""Cells of the noisy direction to begin with, farther out, and at most."""
FINE = 1e-7
"""How wide a statistic may be from which a number is found."""
FARTHEST_QUANTILE = 10**9
NEAR, WIDEST_JET = 6.0, 2.0
"""Where cells are halved by their ratio, and how wide one may be for derivatives to help."""
SMALLEST = 1e-12
"""Statistics below this are enclosed no more finely than one of this size."""
CONFIDENCE = 0.99
MOST_COORDINATES = 20_000_000
"""Normal coordinates drawn at once; with more directions there are fewer draws."""
NORMAL_PEAK = 0.3989422804014327
HEAVY = 0.3
"""The share of one group in the spread of all from which on a mean counts as not yet seen."""
FAR_DRAWS, FAR_SCALES = 2000, (3.0, 10.0, 30.0, 1e3)
"""Draws that are looked at far out, and how many deviations out they lie."""
FAR = 1e3
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
    left, right = _first(truth.left), _first(truth.right)
    error = 0.0
    if directions == 1:
        error = _quadrature_error(problem, case, gap)
    elif directions > 1:
        error = _sampling_error(problem, case, noise)
    # 1.5e-11 is no rounding of 1e-14: only what is small beside both sides may pass.
    apart = problem.statistical and gap > max(error, ROUNDING * (abs(left) + abs(right)))
    return NoiseEstimate(
        holds=bool(np.all(truth.holds)) and not apart,
        gap=gap,
        error=error,
        left=left,
        right=right,
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
    if any(
        far > 1.0 + 1.5 * near for near, far in zip(_sizes(coarse), _sizes(longer), strict=True)
    ):
        return math.inf  # however small it is beside the bound: most of it lies farther out
    return 2 * apart + jumps


def _sizes(truth: Truth) -> list[float]:
    """Return the size of each side of a relation."""
    sides = (truth.left, truth.right)
    return [0.0 if side is None else float(np.max(np.abs(side.array))) for side in sides]


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


def enclosed(problem: CompiledClaim, case: Case, seconds: float = 3.0) -> bool | None:
    """Prove (True) or disprove (False) a claim with one noisy direction; None: cannot tell."""
    return enclosure_of(problem, case, seconds)[0]


def certified(problem: CompiledClaim, case: Case, seconds: float) -> NoiseEstimate | None:
    """Return what enclosing every cell says about a claim, None where it does not decide it."""
    answer, sides = enclosure_of(problem, case, seconds)
    if answer is None:
        return None
    world = build_world(problem, case.scalars, case.arrays, noise=quadrature_noise())
    left, right, radius = sides or (None, None, 0.0)
    apart = 0.0 if left is None or right is None else abs(left - right)
    gap = -apart if answer else apart
    values = [None if side is None else scalar(side) for side in (left, right)]
    truth = Truth(np.asarray([answer]), np.asarray([gap]), *values)
    nothing = float("nan")
    ends = [nothing if side is None else side for side in (left, right)]
    return NoiseEstimate(answer, gap, radius, ends[0], ends[1], 0, 1, world, truth)


def enclosure_of(
    problem: CompiledClaim, case: Case, seconds: float
) -> tuple[bool | None, tuple[float, float, float] | None]:
    """Return whether a claim holds; both sides and their radius where it compares two numbers."""
    if noise_directions(problem, case.scalars) != 1:
        return None, None
    deadline = time.thread_time() + seconds
    with ctx.workprec(PRECISION):
        try:
            evaluator = over_cells(problem, case, seconds)
            for tolerance in TOLERANCES:
                evaluator.cells.tolerance = tolerance
                answer = evaluator.truth(problem.statement)
                if answer is not None or time.thread_time() > deadline:
                    return answer, _sides(problem.statement, evaluator, deadline)
        except (NotEnclosed, ZeroDivisionError, ValueError, OverflowError):
            return None, None
    return None, None


def _sides(
    statement: Expression, evaluator: BallEvaluator, deadline: float
) -> tuple[float, float, float] | None:
    """Return the middles of both sides and their radii together, fine enough to be shown.

    A claim is often decided while its sides are still wide; what is shown should be right to
    the last figure that people see.
    """
    if not isinstance(statement, Compare):
        return None
    for tolerance in (None, *(one for one in TOLERANCES if one < evaluator.cells.tolerance)):
        if tolerance is not None:
            evaluator.cells.tolerance = tolerance
        left, right = (evaluator.value(side) for side in (statement.left, statement.right))
        if left.kind != "scalar" or right.kind != "scalar":
            return None
        middles = [float(side.entries.flat().mid()) for side in (left, right)]
        radius = sum(float(side.entries.flat().rad()) for side in (left, right))
        fine = radius <= SHOWN * max(abs(middle) for middle in middles)
        if fine or time.thread_time() > deadline:
            break
    return middles[0], middles[1], radius


def in_every_draw(problem: CompiledClaim, case: Case, seconds: float) -> bool | None:
    """Prove (True) or disprove (False) that a claim without statistics holds in all draws.

    With one noisy direction the cells and both ends of the line are all there is.
    """
    if noise_directions(problem, case.scalars) != 1 or _mentions_equality(problem):
        return None  # cells have a width, and two sides that agree on it cannot be told equal
    with ctx.workprec(PRECISION):
        try:
            line = _Line(problem, case, time.thread_time() + seconds)
            share = line._measure(problem.statement)
            if share.upper() < 1 - SMALLEST:
                return False
            end = Ball.letter(LetterRange(arb(FAR), None))
            ends = [BallEvaluator(line.world(x)).truth(problem.statement) for x in (end, -end)]
            cells = line._cells["truth", problem.statement]
            sure = [cell.truth(problem.statement) for cell in cells]
            return True if all(answer is True for answer in (*ends, *sure)) else None
        except (NotEnclosed, ZeroDivisionError, ValueError, OverflowError):
            return None


class _Cell:
    """One piece of the noisy direction, with what formulas come to on it."""

    def __init__(self, line: _Line, low: float, high: float) -> None:
        self.line, self.low, self.high = line, low, high
        self.mass = _mass(low, high)
        self._plain: BallWorld | None = None
        self._smooth: BallWorld | None = None
        self._powers: list[Any] | None = None
        self._halves: tuple[_Cell, _Cell] | None = None
        self._known: dict[Any, Any] = {}

    def halves(self) -> tuple[_Cell, _Cell]:
        """Return both halves, always the same; far out one ends at the geometric mean."""
        if self._halves is not None:
            return self._halves
        middle = (self.low + self.high) / 2
        if min(abs(self.low), abs(self.high)) > NEAR and self.low * self.high > 0:
            middle = math.copysign(math.sqrt(self.low * self.high), self.low)
        self._halves = (
            _Cell(self.line, self.low, middle),
            _Cell(self.line, middle, self.high),
        )
        return self._halves

    def truth(self, event: Expression) -> bool | None:
        """Return whether an event happens on the whole cell, nowhere on it, or None."""
        key = ("truth", event)
        if key not in self._known:
            self._known[key] = BallEvaluator(self.plain).truth(event)
        answer: bool | None = self._known[key]
        return answer

    def moment(self, node: Expression, centre: tuple[Any, ...] | None) -> list[Any]:
        """Enclose ∫ x of every entry over the cell, or (last) ∫ Σ (x − m)² beside it."""
        key = ("moment", node, None if centre is None else tuple(map(str, centre)))
        if key not in self._known:
            try:
                self._known[key] = self._by_jets(node, centre)
            except (NotEnclosed, ZeroDivisionError, ValueError, OverflowError):
                self._known[key] = self._by_balls(node, centre)
        made: list[Any] = self._known[key]
        return made

    def _by_jets(self, node: Expression, centre: tuple[Any, ...] | None) -> list[Any]:
        if self.high - self.low > WIDEST_JET:
            raise NotEnclosed("a cell too wide for a series")
        if self._powers is None:
            self._powers = _moments(self.low, self.high)
        moments = self._powers
        if ("jets", node) not in self._known:
            self._known["jets", node] = list(flatten(BallEvaluator(self.smooth).value(node)))
        entries = self._known["jets", node]
        if centre is not None:
            entries = [entry - Ball(m) for entry, m in zip(entries, centre, strict=True)]
        integrals = [
            entry.integral(moments) if isinstance(entry, Jet) else entry.flat() * self.mass
            for entry in entries
        ]
        if centre is not None:
            squares = total([entry * entry for entry in entries])
            if isinstance(squares, Jet):
                integrals.append(squares.integral(moments))
            else:
                integrals.append(squares.flat() * self.mass)
        return integrals

    def _by_balls(self, node: Expression, centre: tuple[Any, ...] | None) -> list[Any]:
        if ("balls", node) not in self._known:
            value = BallEvaluator(self.plain).value(node)
            self._known["balls", node] = [entry.flat() for entry in flatten(value)]
        entries = self._known["balls", node]
        if centre is not None:
            entries = [entry - m for entry, m in zip(entries, centre, strict=True)]
        integrals = [entry * self.mass for entry in entries]
        if centre is not None:
            integrals.append(sum((_square(entry) for entry in entries), arb(0)) * self.mass)
        return integrals

    @property
    def plain(self) -> BallWorld:
        """The world on the cell, without derivatives."""
        if self._plain is None:
            self._plain = self.line.world(Ball.letter(LetterRange(arb(self.low), arb(self.high))))
        return self._plain

    @property
    def smooth(self) -> BallWorld:
        """The world on the cell, with derivatives."""
        if self._smooth is None:
            self._smooth = self.line.world(Jet.variable(arb(self.low), arb(self.high)))
        return self._smooth


def over_cells(problem: CompiledClaim, case: Case, seconds: float = 3.0) -> BallEvaluator:
    """Return the evaluator that encloses statistics of one noisy direction, cell by cell."""
    if noise_directions(problem, case.scalars) != 1:
        raise NotEnclosed("noise in more than one direction")
    line = _Line(problem, case, time.thread_time() + seconds)
    line.tolerance = FINE
    # Outside a statistic only what is not random has a value: no cell stands for all.
    fixed = {n: Enclosure(decimal(x), "scalar") for n, x in case.scalars.items()}
    world = BallWorld(symbols=fixed, tolerance=float(problem.claim.tolerance))
    return BallEvaluator(world, line)


class _Line:
    """Encloses statistics over the one noisy direction, cell by cell, as finely as is needed."""

    def __init__(self, problem: CompiledClaim, case: Case, deadline: float) -> None:
        self.problem, self.case, self.deadline = problem, case, deadline
        self.tolerance = TOLERANCES[0]
        self.scalars = {name: decimal(value) for name, value in case.scalars.items()}
        self.keys: _NoisyKeys | None = None
        if problem.claim.keys == "gaussian":
            self.keys = _NoisyKeys(problem, case, self.scalars)
        ends = [*np.linspace(-6.0, 6.0, FIRST_CELLS + 1)]
        outer = [*np.geomspace(6.0, FAR, OUTER_CELLS + 1)][1:]
        edges = [-x for x in reversed(outer)] + ends + outer
        self.first = [_Cell(self, float(a), float(b)) for a, b in itertools.pairwise(edges)]
        self._cells: dict[Any, list[_Cell]] = {}

    def world(self, xi: Ball) -> BallWorld:
        """Return the world in which the noise is ξ."""
        problem, case = self.problem, self.case
        keys = None if self.keys is None else self.keys.at(xi)
        known = self.scalars if keys is not None else {**self.scalars, **_random(problem, xi)}
        return ball_world(problem, known, case.arrays, case.scalars, keys=keys)

    def expectation(self, call: Call) -> Enclosure:
        """Enclose E(x)."""
        like = BallEvaluator(self.first[len(self.first) // 2].plain).value(call.arguments[0])
        means, _ = self._moments(call, None)
        return _shaped([Ball(entry) for entry in means], like)

    def variance(self, call: Call) -> Enclosure:
        """Enclose var(x), about a centre near the mean so that wide cells cost little."""
        means, _ = self._moments(call, None)
        centre = tuple(mean.mid() for mean in means)
        shifts, squares = self._moments(call, centre)
        variance = squares - sum((_square(x) for x in shifts), arb(0))
        return Enclosure(Ball(variance.nonnegative_part()), "scalar")

    def covariance(self, call: Call) -> Enclosure:
        """Enclose cov(x, y) = (var(x + y) − var(x − y))/4."""
        x, y = call.arguments
        plus, minus = (
            self.variance(replace(call, arguments=(Binary(sign, x, y),))).entries.flat()
            for sign in ("+", "-")
        )
        return Enclosure(Ball((plus - minus) / 4), "scalar")

    def quantile(self, call: Call) -> Enclosure:
        """Enclose the smallest t with P(x ≤ t) ≥ p, by halving between two that are decided."""
        x, level = call.arguments
        share = rational(level)
        if share is None or not 0 < share < 1:
            raise NotEnclosed("a quantile at a level that is not a number between 0 and 1")
        low, high = Fraction(-1), Fraction(1)
        while not self._reaches(x, high, share, call):
            low, high = high, 4 * high
        while self._reaches(x, low, share, call):
            low, high = 4 * low if low < 0 else Fraction(-1), low
        while high - low > Fraction(self.tolerance) * max(Fraction(1), abs(high)):
            middle = (low + high) / 2
            try:
                reached = self._reaches(x, middle, share, call)
            except NotEnclosed:
                break  # as near as cells of this fineness come
            low, high = (low, middle) if reached else (middle, high)
        return Enclosure(Ball(Ball.exact(low).c.union(Ball.exact(high).c)), "scalar")

    def _reaches(self, x: Expression, t: Fraction, share: Fraction, call: Call) -> bool:
        """Tell whether P(x ≤ t) is surely at least p, or surely below it."""
        if abs(t) > FARTHEST_QUANTILE or time.thread_time() > self.deadline:
            raise NotEnclosed("a quantile too far out")
        event = Compare("<=", x, Number(t))
        wanted = Ball.exact(share).c
        reached = self.probability(replace(call, function="P", arguments=(event,))).entries.flat()
        if reached >= wanted or reached < wanted:
            return bool(reached >= wanted)
        raise NotEnclosed("a quantile that the cells do not decide")

    def probability(self, call: Call) -> Enclosure:
        """Enclose P(event)."""
        event = call.arguments[0]
        given = call.given
        both = event if given is None else Logic("and", given, event)
        share = self._measure(both)
        if given is not None:
            share = share / self._possible(given)
        return Enclosure(Ball(share.nonnegative_part().min(arb(1))), "scalar")

    def _possible(self, given: Expression) -> Any:
        whole = self._measure(given)
        if not whole > 0:
            raise NotEnclosed("a condition that may never hold")
        return whole

    def _measure(self, event: Expression) -> Any:
        """Enclose the probability of an event, by halving cells on which it is not decided."""

        def part(cell: _Cell) -> list[Any]:
            answer = cell.truth(event)
            return [cell.mass if answer else arb(0) if answer is False else cell.mass.union(arb(0))]

        outside = arb(0).union(2 * _mass(FAR, math.inf))
        return self._summed(("truth", event), part, 1)[0] + outside

    def _moments(self, call: Call, centre: tuple[Any, ...] | None) -> tuple[list[Any], Any]:
        """Enclose the mean of every entry (about a centre), and of the sum of their squares."""
        node, given = call.arguments[0], call.given

        def part(cell: _Cell) -> list[Any]:
            answer = True if given is None else cell.truth(given)
            if answer is False:
                return [arb(0)] * count
            made = cell.moment(node, centre)
            return made if answer else [x.union(arb(0)) for x in cell._by_balls(node, centre)]

        middle = self.first[len(self.first) // 2]
        count = len(middle.moment(node, centre))
        key = ("moment", node, given, None if centre is None else tuple(map(str, centre)))
        sums = [
            x + y
            for x, y in zip(
                self._summed(key, part, count), self._beyond(node, centre, count), strict=True
            )
        ]
        if given is not None:
            whole = self._possible(given)
            sums = [x / whole for x in sums]
        if centre is None:
            return sums, arb(0)
        return sums[:-1], sums[-1]

    def _beyond(self, node: Expression, centre: tuple[Any, ...] | None, count: int) -> list[Any]:
        """Bound what lies beyond the last cells: by its values if bounded, else by its growth."""
        tails = [
            Tail.of(x) for x in flatten(BallEvaluator(self.world(Tail.variable())).value(node))
        ]
        bounds = tails
        if centre is not None:
            apart = [tail - Ball(m) for tail, m in zip(tails, centre, strict=True)]
            bounds = [Tail.of(x) for x in (*apart, total([x * x for x in apart]))]
        assert len(bounds) == count
        return [bound.beyond(FAR) for bound in bounds]

    def _summed(self, key: Any, part: Callable[[_Cell], list[Any]], count: int) -> list[Any]:
        """Sum over all cells, halving those that contribute most to the width of the sum."""
        cells = self._cells.setdefault(key, list(self.first))
        queue = [
            (-_width(made := part(cell)), place, cell, made) for place, cell in enumerate(cells)
        ]
        heapq.heapify(queue)
        places = itertools.count(len(cells))
        while True:
            width = -sum(entry[0] for entry in queue)
            sizes = [max(abs(float(x.mid())) for x in entry[3]) for entry in queue]
            size = sum(x for x in sizes if math.isfinite(x))
            done = width <= self.tolerance * max(size, SMALLEST) or len(queue) > MOST_CELLS
            if done or time.thread_time() > self.deadline:
                break
            for _ in range(max(1, len(queue) // 16)):
                worst = heapq.heappop(queue)
                for half in worst[2].halves():
                    made = part(half)
                    heapq.heappush(queue, (-_width(made), next(places), half, made))
        self._cells[key] = [entry[2] for entry in queue]
        return [sum((entry[3][place] for entry in queue), arb(0)) for place in range(count)]


def _width(parts: list[Any]) -> float:
    widths = [float(x.rad()) for x in parts]
    return max(widths) if all(map(math.isfinite, widths)) else math.inf


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


def _random(problem: CompiledClaim, xi: Ball) -> dict[str, Ball]:
    return {
        name: xi
        for name, domain in problem.domains.items()
        if isinstance(domain, Array) and domain.random
    }


class _NoisyKeys:
    """The keys as exact functions of ξ; what does not move is written once for all cells."""

    def __init__(self, problem: CompiledClaim, case: Case, scalars: dict[str, Ball]) -> None:
        sizes = problem.sizes(case.scalars)
        nothing = lift(np.zeros((sizes["n"], sizes["d"])))
        world = ball_world(problem, scalars, case.arrays, case.scalars, keys=nothing)
        self.still = world.families["mu"].entries
        self.moving: list[tuple[int, list[Ball]]] = []
        for key in range(len(self.still)):
            names = [name for name, place in problem.indices.items() if place == key]
            member = next((name for name in names if name in problem.covariance), "others")
            tree = problem.covariance.get(member)
            direction = None if tree is None else _direction(BallEvaluator(world).value(tree))
            if direction is not None:
                self.moving.append((key, direction))
        if len(self.moving) != 1:
            raise NotEnclosed("noise in another number of directions than one")

    def at(self, xi: Ball) -> Enclosure:
        """Return the keys where the noise is ξ."""
        rows = list(self.still)
        for key, slopes in self.moving:
            rows[key] = [
                x if slope.is_zero() else x + slope * xi
                for x, slope in zip(self.still[key], slopes, strict=True)
            ]
        return Enclosure(rows, "matrix")


def _direction(covariance: Enclosure) -> list[Ball] | None:
    """Return v with Σ = v vᵀ: a column of Σ over the root of its pivot; None where Σ = 0.

    The rank is found without rounding: a variance of 1e-15 beside one of 1 is a second direction.
    """
    if covariance.kind == "scalar":
        if covariance.entries.is_zero():
            return None
        raise NotEnclosed("noise in every direction")
    rank = FUNCTIONS["rank"].in_balls(covariance).entries.flat()
    if rank > 1:
        raise NotEnclosed("noise in more than one direction")
    if rank.is_zero():
        return None
    rows = [[entry.flat() for entry in row] for row in covariance.entries]
    pivot = max(range(len(rows)), key=lambda place: float(rows[place][place].mid()))
    root = rows[pivot][pivot].sqrt()
    return [Ball(row[pivot] / root) for row in rows]


def _mass(low: float, high: float) -> Any:
    """Return the probability of a cell, from the side on which it is small."""
    if low < 0 < high:
        return 1 - _mass(-math.inf, low) - _mass(high, math.inf)
    near, far = sorted((abs(low), abs(high)))
    outside = arb(0) if math.isinf(far) else (arb(far) / arb(2).sqrt()).erfc()
    return ((arb(near) / arb(2).sqrt()).erfc() - outside) / 2


def _moments(low: float, high: float) -> list[Any]:
    """Return ∫ (ξ − m)^j φ(ξ) dξ over a cell with the middle m, by parts: φ′ = −ξ φ."""
    a, b = arb(low), arb(high)
    m = ((a + b) / 2).mid()
    densities = [(-(x * x) / 2).exp() / (2 * arb.pi()).sqrt() for x in (a, b)]
    moments = [_mass(low, high)]
    for order in range(ORDER):
        edge = (a - m) ** order * densities[0] - (b - m) ** order * densities[1]
        before = order * moments[order - 1] if order else arb(0)
        moments.append(edge + before - m * moments[order])
    moments[ORDER] = moments[ORDER].nonnegative_part()
    return moments


def _truth(problem: CompiledClaim, case: Case, noise: Noise) -> tuple[World, Truth]:
    world = build_world(problem, case.scalars, case.arrays, noise=noise)
    return world, Evaluator(world).truth(problem.statement)


def _first(value: Any) -> float:
    return float("nan") if value is None else float(np.asarray(value.array).flat[0])
