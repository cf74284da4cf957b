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
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import arb, ctx
from scipy.special import stdtrit

from heedful.claims.balls import Ball, Enclosure, LetterRange, NotEnclosed, flatten, written
from heedful.claims.compile import CompiledClaim
from heedful.claims.evaluate.ball import BallEvaluator, BallWorld
from heedful.claims.evaluate.float import Evaluator, World
from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Entry,
    Expression,
    Name,
    Number,
    Unary,
    bound_names,
    rational,
    walk,
)
from heedful.claims.proofs import PRECISIONS, ball_world, decimal
from heedful.claims.symbols import Array
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
MOST_GROWTH = FAR / 16
"""The largest B for which what lies beyond FAR is surely negligible if |x| ≤ exp(B|ξ|) there."""
BOUNDED = ("sigmoid", "tanh", "sin", "cos", "sign", "Phi", "softmax", "softmax_rows", "weights")
"""Functions whose values lie in [−1, 1]."""
TAME = ("abs", "relu", "floor", "sqrt", "max", "min", "mean", "norm", "sum", "concat", "stack",
        "rows", "transpose", "trace", "dot", "outer", "hadamard", "diag", "logsumexp")  # fmt: skip
"""Functions whose values are at most products of two of their entries, times how many there are."""


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
        self.growth = _Growth(problem, case)
        self._weights_of: dict[Expression | None, list[Any]] = {}
        self._chances: dict[Expression | None, Any] = {}
        """The probability of each condition."""

    def expectation(self, call: Call) -> Enclosure:
        """Enclose E(x)."""
        self.growth.check(call.arguments[0])
        enclosures = self._in_cells(call.arguments[0])
        means, _ = self._moments(enclosures, call.given)
        return _shaped([Ball(entry) for entry in means], enclosures[0])

    def variance(self, call: Call) -> Enclosure:
        """Enclose var(x)."""
        self.growth.check(call.arguments[0])
        _, variance = self._moments(self._in_cells(call.arguments[0]), call.given)
        return Enclosure(Ball(variance), "scalar")

    def probability(self, call: Call) -> Enclosure:
        """Enclose P(event)."""
        total = self._beyond(call.given)  # where the event may happen or not
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
        outside = self._negligible(given)
        shifts = [
            sum((w * row[i] for w, row in zip(weights, apart, strict=True)), outside)
            for i in range(len(centre))
        ]
        squares = sum(
            (w * _square(x) for w, row in zip(weights, apart, strict=True) for x in row),
            arb(0).union(outside.upper()),
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
        whole = sum(parts, arb(0).union(_mass_beyond()))
        if not whole > 0:
            raise NotEnclosed("a condition that may never hold")
        self._chances[given] = whole
        return [part / whole for part in parts]

    def _beyond(self, given: Expression | None) -> Any:
        """Enclose the probability, under a condition, of what lies beyond the cells."""
        self._weights(given)
        return arb(0).union(_mass_beyond() / self._chances.get(given, arb(1)))

    def _negligible(self, given: Expression | None) -> Any:
        """Enclose what lies beyond the cells adds to a mean, or to a mean square.

        For t ≥ FAR, |x − m|² ≤ exp(4 MOST_GROWTH t) = exp(FAR t/4), and ∫ exp(FAR t/4) φ(t) dt from
        FAR on is below exp(−FAR²/4).
        """
        self._weights(given)
        most = (arb(-FAR) * FAR / 4).exp() / self._chances.get(given, arb(1))
        return (-most.upper()).union(most.upper())


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
    factors = [] if world is None else _factors(problem, world)
    for mass, xi in zip(masses, balls, strict=True):
        keys = None if world is None else _noisy_keys(world, factors, xi)
        known = scalars if world is not None else {**scalars, **_random(problem, xi)}
        yield mass, ball_world(problem, known, case.arrays, case.scalars, keys=keys)


def _random(problem: CompiledClaim, xi: Ball) -> dict[str, Ball]:
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
    return (written(x) / arb(2).sqrt()).erf() / 2 + arb(1) / 2


def _mass_beyond() -> Any:
    """Return the probability of |ξ| > FAR, which is below exp(−10¹¹) and not zero."""
    return (arb(FAR) / arb(2).sqrt()).erfc()


class _Growth:
    """How fast values may grow with the noise ξ: what must be known before a tail is neglected.

    `rate` returns a B with |x| ≤ exp(B|ξ|) for every |ξ| ≥ FAR, `slope` a b with |x| ≤ b|ξ| there.
    Both err upwards: each step allows for ENTRIES of them. Far out, |ξ| itself is at most
    exp(2e-5 |ξ|), and a constant c is at most exp((ln c/FAR)|ξ|).
    """

    ENTRIES = 1e4
    LINEAR = 2e-5

    def __init__(self, problem: CompiledClaim, case: Case) -> None:
        self.problem = problem
        self.case = case
        self.deep = 0

    def check(self, node: Expression) -> None:
        """Refuse a value of which it is not known that its tail is negligible."""
        if not self.rate(node) <= MOST_GROWTH:
            raise NotEnclosed("a mean whose tail may count")

    def rate(self, node: Expression) -> float:
        """Return a bound on the exponential growth, infinity where none is known."""
        step = math.log(self.ENTRIES) / FAR
        match node:
            case Number(value):
                return math.log(max(1.0, abs(float(value)))) / FAR
            case Name(text):
                return step + self._of_name(text, self.rate)
            case Entry(base, _):
                return self.rate(base)
            case Unary(_, operand):
                return self.rate(operand)
            case Binary("+" | "-", left, right):
                return step + max(self.rate(left), self.rate(right))
            case Binary("*", left, right):
                return step + self.rate(left) + self.rate(right)
            case Binary("/", left, right) if by := rational(right):
                return self.rate(left) + max(0.0, -math.log(abs(by))) / FAR
            case Binary("^", base, Number(power)) if power.denominator == 1 and power >= 0:
                return step + float(power) * self.rate(base)
            case Call("exp", (inside,)):
                return self.slope(inside)
            case Call(function) if function in BOUNDED:
                return step
            case Call("attention", (_,)):
                return step + self._of_values(rate=True)
            case Call(function, arguments) if function in TAME:
                parts = arguments if not bound_names(node) else arguments[:1]
                return 2 * step + 2 * max(self.rate(part) for part in parts)
        return math.inf

    def slope(self, node: Expression) -> float:
        """Return a bound on the linear growth, infinity where none is known."""
        match node:
            case Name(text):
                return self._of_name(text, self.slope)
            case Entry(base, _):
                return self.slope(base)
            case Unary(_, operand):
                return self.slope(operand)
            case Binary("+" | "-", left, right):
                return self.slope(left) + self.slope(right)
            case Binary("*", left, right):
                constants = self._constant(left), self._constant(right)
                if math.isinf(constants[0]):
                    return constants[1] * self.slope(left) * self.ENTRIES
                return constants[0] * self.slope(right) * self.ENTRIES
            case Call("abs" | "relu", (inside,)):
                return self.slope(inside)
            case Call(function) if function in BOUNDED:
                return 1.0 / FAR
        return self._constant(node) / FAR

    def _constant(self, node: Expression) -> float:
        """Return the size of what does not depend on the noise, infinity if it does."""
        value = rational(node)
        if value is not None:
            return abs(float(value))
        match node:
            case Name(text) if text in self.case.scalars:
                return abs(self.case.scalars[text])
            case Name(text) if text.startswith("mu_") or text == "mu":
                return max(1.0, self._largest_mean())
            case Unary(_, operand):
                return self._constant(operand)
            case Binary("+" | "-", left, right):
                return self._constant(left) + self._constant(right)
            case Binary("*", left, right):
                return self.ENTRIES * self._constant(left) * self._constant(right)
        return math.inf

    def _largest_mean(self) -> float:
        rows = self.problem.claim.means
        if not isinstance(rows, list | tuple) or any(isinstance(row, str) for row in rows):
            return 1.0 if not isinstance(rows, list | tuple) else math.inf
        return max(abs(float(entry)) for row in rows for entry in row)

    def _of_name(self, text: str, bound: Callable[[Expression], float]) -> float:
        """Return the growth of a name: of a definition, of keys, queries and weights."""
        base = text.partition("_")[0]
        rate = bound == self.rate
        if text in self.case.scalars:
            return self._grown(abs(self.case.scalars[text]), 0.0, rate)
        if base.rstrip("0123456789") in ("alpha",):
            return self._grown(1.0, 0.0, rate)
        if base == "c":  # the coefficients of arbitrary values are weights, and c is among values
            return self._of_values(rate)
        if base == "mu":
            return self._grown(self._largest_mean(), 0.0, rate)
        if base == "k" and self.problem.claim.keys == "gaussian":
            return self._grown(self._largest_mean(), self._largest_factor, rate)
        domain = self.problem.domains.get(text)
        if isinstance(domain, Array) and domain.random:
            return self._grown(0.0, 1.0, rate)
        trees = [self.problem.definitions[text]] if text in self.problem.definitions else []
        if base == "q":
            trees = list(self.problem.heads)
        if not trees or self.deep > 20:
            return math.inf
        self.deep += 1
        grown = max(bound(tree) for tree in trees)
        self.deep -= 1
        return grown

    def _of_values(self, rate: bool) -> float:
        values = self.problem.claim.values
        if values == "arbitrary":
            return self._grown(1.0, 0.0, rate)
        if values == "keys":
            return self._grown(self._largest_mean(), self._largest_factor, rate)
        if any(isinstance(row, str) for row in values):
            return math.inf
        return self._grown(max(abs(float(x)) for row in values for x in row), 0.0, rate)

    def _grown(self, constant: float, slope: float, rate: bool) -> float:
        """Return the growth of constant + slope·ξ."""
        most = constant / FAR + slope
        if not rate:
            return most
        return math.log(max(1.0, constant + slope)) / FAR + (self.LINEAR if slope else 0.0)

    @cached_property
    def _largest_factor(self) -> float:
        world = build_world(
            self.problem, self.case.scalars, self.case.arrays, noise=Noise(np.zeros((1, 1)))
        )
        sizes = [np.max(np.abs(f)) for f in _factors(self.problem, world) if f.size]
        return 2.0 * float(max(sizes, default=0.0))


def _truth(problem: CompiledClaim, case: Case, noise: Noise) -> tuple[World, Truth]:
    world = build_world(problem, case.scalars, case.arrays, noise=noise)
    return world, Evaluator(world).truth(problem.statement)


def _first(value: Any) -> float:
    return float("nan") if value is None else float(np.asarray(value.array).flat[0])
