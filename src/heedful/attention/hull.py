"""Convex hulls: is a point outside the hull of others, and which points are vertices?

Seen from the point in question, the others are b_1 … b_r, and exactly one of these exists:

    a unit direction u with −b_l·u ≥ δ > 0 for every l                 (the point is outside)
    weights λ ≥ 0, Σλ = 1, with Σ λ_l b_l = 0                          (it is inside)

The largest δ is the distance from 0 to the hull, ‖Σ λ_l b_l‖ at its least: one quadratic
programme, solved exactly as non-negative least squares (Lawson and Hanson's least-distance
problem): minimise ‖[Bᵀ; 1ᵀ] λ − (0, …, 0, 1)‖ over λ ≥ 0.

Any u bounds δ from below and any λ bounds it from above, so every verdict is checked in
float64 after the solver is done, and what lies between the two bounds is called borderline.

`copyable` asks it of every key, out of up to 50,000 in up to 1,024 dimensions.
Value j can be copied (α_j → 1 for some sequence of queries) exactly when k_j leads in some
direction, k_j·q > k_i·q for every i ≠ j: when it is a vertex of the keys' convex hull and no
other key equals it. The same question asks which tokens an output layer can never predict.

The margin of a key is the largest lead of a unit direction, which is the distance from the
key to the hull of the others. Four stages, from cheap to exact:

1. directions by guess and correction, for all keys at once (`screen`);
2. combinations of the vertices found so far, for all keys at once (`combined`): a key that has
   one is inside;
3. what is left against the hull of a pool of outer keys only, by quadratic programme: a key
   inside it is inside the hull of all (a combination proves it);
4. a key outside the pool's hull leads the pool in some direction: either it leads all keys
   too, or the key that beats it there joins the pool, and the key is tested again.

Every verdict is checked in float64; what rounding leaves open is listed, never guessed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy  # its parts are imported when they are first used
from jaxtyping import Bool, Float, Float32, Int

from heedful.arrays import EPSILON, index, matrix, whole
from heedful.errors import InputError
from heedful.progress import Step
from heedful.records import Record

# One point and a hull ------------------------------------------------------------------------

Verdict = Literal["outside", "inside", "borderline"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Separation(Record):
    """Where a point lies with respect to the hull of others, and the proof."""

    verdict: Verdict
    """`outside`: proved by `direction`; `inside`: by `weights`, up to rounding."""
    margin: float
    """Certified lower bound of the distance to the hull; 0 unless outside."""
    margin_upper: float
    """Upper bound of that distance: the norm of the combination found."""
    direction: Float[np.ndarray, " d"]
    """The unit direction found: it leads every other point by at least `margin` if outside;
    0 if inside."""
    members: Int[np.ndarray, " found"]
    """Points that carry the nearest combination found, ascending."""
    weights: Float[np.ndarray, " found"]
    """Their positive weights λ, which sum to 1."""


def normalised(keys: Float[np.ndarray, "n d"]) -> tuple[Float[np.ndarray, "n d"], int]:
    """Return the keys around their mean, divided by the power of two 2^e next to their extent.

    Attention does not see a shift of all keys; a power of two divides without rounding.
    """
    first = _exponent(keys)
    small = np.ldexp(keys, -first)
    small = small - small.mean(axis=0)
    second = _exponent(small)
    return np.ldexp(small, -second), first + second


def _exponent(array: Float[np.ndarray, "n d"]) -> int:
    largest = float(np.abs(array).max())
    return math.frexp(largest)[1] if largest > 0 else 0


def rounding_of(points: Float[np.ndarray, "n d"]) -> float:
    """Return how far a difference of two products p·u with a unit u may be off in float64."""
    largest = float(np.sqrt(np.max(np.einsum("ij,ij->i", points, points), initial=0.0)))
    return float(2 * (points.shape[1] + 4) * EPSILON * largest)


def separate(
    points: Float[np.ndarray, "n d"],
    origin: Float[np.ndarray, " d"] | None = None,
    *,
    without: int | None = None,
    rounding: float | None = None,
    exact: bool = True,
    start: Int[np.ndarray, " started"] | None = None,
) -> Separation:
    """Decide whether `origin` (0 if left out) is outside the hull of the points.

    `without` names a point that does not count: the origin itself, usually. `rounding` is the
    error that differences of products may carry (by default that of float64 on these points).
    With `exact` the margin is the true distance; without it the search stops at the first
    direction or combination that decides. `start` names points to begin with.

    Points enter the quadratic programme only when they are violated, so that 50,000 points
    cost little more than the few that matter.

    >>> round(separate(np.array([[-1.0, 1.0], [-1.0, -1.0]])).margin, 9)
    1.0
    >>> separate(np.array([[-1.0, 0.0], [3.0, 0.0]])).weights
    array([0.75, 0.25])
    """
    origin = np.zeros(points.shape[1]) if origin is None else origin
    search = _Search(
        points=points,
        origin=origin,
        without=without,
        rounding=rounding_of(points) if rounding is None else rounding,
    )
    first = search.run(search.first_guess() if start is None else np.unique(start), exact)
    return first if first.verdict != "borderline" else search.second_opinion(first)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Search:
    points: Float[np.ndarray, "n d"]
    origin: Float[np.ndarray, " d"]
    without: int | None
    rounding: float

    def run(self, working: Int[np.ndarray, " w"], exact: bool) -> Separation:
        """Solve on a working set; add the most violated points until none is left."""
        n, d = self.points.shape
        adding = min(max(8, d // 8), n)  # few solves, but small ones
        best: Separation | None = None
        while True:
            weights = _nearest_point(self.points[working] - self.origin, self.rounding)
            if weights is None:
                return best or self._checked(working[:1], np.ones(1))
            members, weights = working[weights > 0], weights[weights > 0]
            current = self._checked(members, weights)
            if best is None or current.margin_upper < best.margin_upper:
                best = current
            distance = current.margin_upper
            if current.verdict == "inside":
                return current
            gaps = self.gaps(current.direction)
            tight = float(gaps.min()) >= distance * (1 - 1e-12) - self.rounding
            current = self._checked(members, weights, gaps=gaps)
            if current.verdict == "outside" and (tight or not exact):
                return current
            worst = np.argpartition(gaps, adding - 1)[:adding]
            violated = worst[gaps[worst] < distance - self.rounding]
            grown = np.union1d(working, violated)
            if len(grown) == len(working):
                return current
            # Points without weight may go once the set is large: the distance shrinks at each
            # step, so no set of carrying points can come back.
            small = len(working) <= 4 * d + 64
            working = grown if small else np.union1d(members, violated)

    def first_guess(self) -> Int[np.ndarray, " w"]:
        """Return the points that lie farthest on the outer side of the origin."""
        outward = self.origin - self.points.mean(axis=0)
        count = min(2 * self.points.shape[1] + 2, len(self.points))
        chosen = np.argpartition(self.gaps(outward), count - 1)[:count]
        return np.sort(chosen[chosen != (-1 if self.without is None else self.without)])

    def gaps(self, direction: Float[np.ndarray, " d"]) -> Float[np.ndarray, " n"]:
        """Return the lead of the origin over each point; infinite over what does not count."""
        gaps: Float[np.ndarray, " n"] = self.origin @ direction - self.points @ direction
        if self.without is not None:
            gaps[self.without] = np.inf
        return gaps

    def _checked(
        self,
        members: Int[np.ndarray, " found"],
        weights: Float[np.ndarray, " found"],
        *,
        direction: Float[np.ndarray, " d"] | None = None,
        gaps: Float[np.ndarray, " n"] | None = None,
    ) -> Separation:
        """Judge what a solver found by what it truly gives in float64."""
        point = weights @ (self.points[members] - self.origin)
        distance = float(np.linalg.norm(point))
        if direction is None:
            direction = self._outward(members, point, distance)
        margin = 0.0 if gaps is None else max(0.0, float(gaps.min()) - self.rounding)
        verdict: Verdict = "borderline"
        if margin > 0:
            verdict = "outside"
        elif distance <= 4 * self.rounding:
            verdict = "inside"
        return Separation(
            verdict=verdict,
            margin=margin,
            margin_upper=distance,
            direction=direction,
            members=members,
            weights=weights,
        )

    def _outward(
        self, members: Int[np.ndarray, " found"], point: Float[np.ndarray, " d"], distance: float
    ) -> Float[np.ndarray, " d"]:
        """Return the unit direction away from the nearest point of the hull."""
        if distance <= 4 * self.rounding:
            return np.zeros_like(point)  # the hull reaches the origin: there is none
        rows = self.points[members] - self.origin
        if distance > 1e-5 * float(np.abs(rows).max()):
            return -point / distance
        # The point is a small difference of large terms; the plane through the carrying
        # points, b·u = −1, gives the same direction without the cancellation.
        u = np.linalg.lstsq(rows, -np.ones(len(rows)), rcond=None)[0]
        length = float(np.linalg.norm(u))
        return np.asarray(u / length if length > 0 else u)

    def second_opinion(self, first: Separation) -> Separation:
        """Ask a linear programme for a direction, another for a combination; check both."""
        skipped = [] if self.without is None else [self.without]
        counted = np.delete(np.arange(len(self.points)), skipped)
        rows = self.points[counted] - self.origin
        rows = rows / max(float(np.abs(rows).max()), 1e-300)
        count, d = rows.shape
        # max t: −b_l·u ≥ t, |u_i| ≤ 1
        widest = scipy.optimize.linprog(
            np.append(np.zeros(d), -1.0),
            A_ub=np.hstack([rows, np.ones((count, 1))]),
            b_ub=np.zeros(count),
            bounds=[(-1.0, 1.0)] * d + [(0.0, None)],
        )
        if widest.x is not None and (length := float(np.linalg.norm(widest.x[:d]))) > 0:
            u = widest.x[:d] / length
            checked = self._checked(first.members, first.weights, direction=u, gaps=self.gaps(u))
            if checked.verdict == "outside":
                return checked
        hit = scipy.optimize.linprog(
            np.zeros(count),
            A_eq=np.vstack([rows.T, np.ones(count)]),
            b_eq=np.append(np.zeros(d), 1.0),
        )
        if hit.x is not None and hit.x.sum() > 0:
            carrying = np.flatnonzero(hit.x > 0)
            checked = self._checked(counted[carrying], hit.x[carrying] / hit.x.sum())
            if checked.verdict == "inside":
                return checked
        return first


def _nearest_point(
    rows: Float[np.ndarray, "w d"], rounding: float
) -> Float[np.ndarray, " w"] | None:
    """Return λ of the hull's point nearest to 0, or None when the solver gives up."""
    size = float(np.abs(rows).max())
    if size <= rounding:
        return np.full(len(rows), 1 / len(rows))
    system = np.vstack([rows.T / size, np.ones(len(rows))])
    aim = np.zeros(len(system))
    aim[-1] = 1.0
    try:
        solved, _ = scipy.optimize.nnls(system, aim, maxiter=10 * sum(system.shape))
    except RuntimeError:
        return None
    total = float(solved.sum())
    return solved / total if total > 0 else None


# All vertices of a hull ----------------------------------------------------------------------

Keys = Float[np.ndarray, "n d"]
Directions = Float32[np.ndarray, "m d"]
Chosen = Int[np.ndarray, " m"]
"""Positions of the keys in question, one for each direction."""
Pool = Int[np.ndarray, " p"]
"""Positions of the outer keys that stand for all, ascending."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Copyable(Record):
    """Which keys can be copied, and by what margin."""

    count: int
    """How many keys can be copied."""
    copyable: Bool[np.ndarray, " n"]
    """For each key: proved to lead all others in some direction."""
    undecided: tuple[int, ...]
    """Keys that rounding, or the searches allowed, leave open."""
    margin: Float[np.ndarray, " n"]
    """Certified lower bound of each key's margin, in the keys' units; 0 if not copyable."""
    margin_upper: Float[np.ndarray, " n"]
    """Upper bound: the distance to another key or to a combination of other keys."""
    exact_margins: bool
    """Whether both bounds were brought together."""
    stages: dict[str, int]
    """How many keys each stage decided."""
    seconds: float
    """Time taken."""


def copyable(
    keys: Any,
    *,
    exact_margins: bool = False,
    workers: int = 1,
    searches: int | None = None,
    progress: Step | None = None,
) -> Copyable:
    """Return which keys can be copied: the vertices of their convex hull.

    `exact_margins` finds the true margin of each copyable key (one quadratic programme each).
    `workers` processes share the exact tests; the answer does not depend on their number.
    After so many `searches`, for one key each, no further one begins, and keys still waiting are
    undecided: counted, not timed, so that the same call gives the same answer.

    >>> corners = copyable([[0, 0], [2, 0], [0, 2], [0.5, 0.5]])
    >>> corners.copyable.tolist(), corners.count
    ([True, True, True, False], 3)
    """
    began = time.perf_counter()
    keys = matrix("keys", keys)
    workers = whole("workers", workers, 1)
    if searches is not None:
        searches = whole("searches", searches, 0)
    n = len(keys)
    decided = 0

    def report(more: int) -> None:
        nonlocal decided
        decided += more
        if progress is not None:
            progress(decided, n)

    distinct, inverse, counts = np.unique(
        keys + 0.0, axis=0, return_inverse=True, return_counts=True
    )
    inverse = inverse.reshape(-1)
    small, exponent = normalised(distinct)
    # Where keys are equal, progress on distinct ones is no progress on all: it is told at the end.
    tell = report if len(small) == n else lambda more: None
    hull = _Vertices(small, workers, searches, tell)
    hull.decide()
    if exact_margins and len(small) > 1:
        hull.measure(np.flatnonzero((hull.margin > 0) & (counts == 1)))
    alone = counts[inverse] == 1
    verdict = (hull.margin > 0)[inverse] & alone
    unit = np.ldexp(1.0, exponent)
    report(n - decided)
    return Copyable(
        count=int(verdict.sum()),
        copyable=verdict,
        undecided=tuple(np.flatnonzero(hull.open[inverse] & alone).tolist()),
        margin=np.where(verdict, hull.margin[inverse], 0.0) * unit,
        margin_upper=np.where(alone, hull.upper[inverse], 0.0) * unit,
        exact_margins=exact_margins,
        stages={**hull.stages, "equal to another key": int((~alone).sum())},
        seconds=time.perf_counter() - began,
    )


def certify(keys: Any, of: int) -> Separation:
    """Return the proof for one key: the direction in which it leads, or the combination.

    The margin is exact and in the units of the keys; `members` are positions of keys.

    >>> certify([[0.0], [1.0], [3.0]], 1).members.tolist()
    [0, 2]
    """
    keys = matrix("keys", keys)
    chosen = index("of", of, len(keys))
    small, exponent = normalised(keys)
    if len(keys) == 1:
        raise InputError("keys", "has one key", expected="another key to compare with was expected")
    separation = separate(small, small[chosen], without=chosen)
    return replace(
        separation,
        margin=float(np.ldexp(separation.margin, exponent)),
        margin_upper=float(np.ldexp(separation.margin_upper, exponent)),
    )


class _Vertices:
    """The verdicts on distinct keys as they are separation."""

    def __init__(
        self,
        keys: Keys,
        workers: int,
        searches: int | None,
        report: Callable[[int], None],
    ) -> None:
        self.keys = keys
        self.points = Points.of(keys)
        self.rounding = rounding_of(keys)
        self.workers = workers
        self.searches = searches
        self.report = report
        self.margin = np.zeros(len(keys))
        self.upper = np.full(len(keys), np.inf)
        self.open = np.zeros(len(keys), dtype=bool)
        self.members: dict[int, Int[np.ndarray, " found"]] = {}
        self.stages: dict[str, int] = {}

    def decide(self) -> None:
        if len(self.keys) == 1:
            self.margin[:] = np.inf
            return
        screened = screen(self.points, self.report, self.searches)
        self.margin, self.stages = screened.margin, screened.stages
        apart = np.linalg.norm(self.keys - self.keys[screened.rival], axis=1)
        self.upper = np.minimum(self.upper, apart)
        self._test(screened)

    def measure(self, chosen: Chosen) -> None:
        """Bring the bounds of the margins together."""
        everything = np.arange(len(self.keys))
        for j, separation in zip(
            chosen, self._separate(chosen, everything, exact=True), strict=True
        ):
            if separation.verdict == "outside":
                self.margin[j] = max(self.margin[j], separation.margin)
            self.upper[j] = min(self.upper[j], separation.margin_upper)

    def _test(self, screened: Screened) -> None:
        pool = np.zeros(len(self.keys), dtype=bool)
        pool[self.margin > 0] = True
        pool[screened.rival[screened.left]] = True
        pending, inside = self._combine(screened.left)
        allowed, outside = self.searches, 0
        while len(pending):
            if allowed is not None:
                self.open[pending[allowed:]] = True
                pending = pending[:allowed]
                allowed -= len(pending)
                if not len(pending):
                    break
            results = self._separate(pending, np.flatnonzero(pool), exact=False)
            again: list[int] = []
            directions: list[Float[np.ndarray, " d"]] = []
            for j, separation in zip(pending.tolist(), results, strict=True):
                self.upper[j] = min(self.upper[j], separation.margin_upper)
                if separation.verdict == "outside":
                    again.append(j)
                    directions.append(separation.direction)
                    self.members[j] = separation.members
                elif separation.verdict == "inside":
                    inside += 1
                else:
                    self.open[j] = True
            self.report(len(pending) - len(again))
            pending, won = self._challenge(np.array(again, dtype=np.int64), directions, pool)
            outside += won
        self.stages["inside, by a combination"] = inside
        self.stages["outside, by an exact direction"] = outside
        self.stages["undecided"] = int(self.open.sum())

    def _combine(self, pending: Chosen) -> tuple[Int[np.ndarray, " left"], int]:
        """Prove keys inside the hull of the vertices known so far; return the others."""
        vertices = np.flatnonzero(self.margin > 0)
        tried = pending[: self.searches]
        d = self.keys.shape[1]
        sooner = d >= SMOOTHED_FROM or len(vertices) <= COMBINED_UP_TO * d
        if len(vertices) < 2 or not len(tried) or not sooner:
            return pending, 0
        apart = combined(self.keys[vertices], self.keys[tried])
        inside = apart <= 4 * self.rounding  # as hull.separate judges a combination
        found = tried[inside]
        self.upper[found] = np.minimum(self.upper[found], apart[inside])
        self.report(len(found))
        return np.setdiff1d(pending, found), len(found)

    def _challenge(
        self,
        chosen: Chosen,
        directions: list[Float[np.ndarray, " d"]],
        pool: Bool[np.ndarray, " n"],
    ) -> tuple[Int[np.ndarray, " left"], int]:
        """Try directions that lead the pool on all keys; who beats them joins the pool."""
        if not len(chosen):
            return chosen, 0
        leads = leads_of(self.points, chosen, np.array(directions, dtype=np.float32))
        won = leads.margin > 0
        self.margin[chosen[won]] = leads.margin[won]
        # A key leads its pool by a float64 direction that float32 or rounding cannot confirm.
        stuck = ~won & pool[leads.rival]
        for j in chosen[stuck].tolist():
            separation = separate(self.keys, self.keys[j], without=j, rounding=self.rounding)
            self.margin[j] = separation.margin
            self.upper[j] = min(self.upper[j], separation.margin_upper)
            self.open[j] = separation.verdict == "borderline"
        pool[leads.rival[~won]] = True
        pool[chosen[self.margin[chosen] > 0]] = True
        left = chosen[~won & ~stuck]
        self.report(len(chosen) - len(left))
        return left, int((self.margin[chosen] > 0).sum())

    def _separate(self, chosen: Chosen, pool: Pool, *, exact: bool) -> list[Separation]:
        from joblib import Parallel, delayed  # most sets of keys never need it

        shares = np.array_split(chosen, max(1, min(len(chosen) // 64, 8 * self.workers)))
        jobs = (
            delayed(_against)(self.keys, pool, share, self._starts(share), self.rounding, exact)
            for share in shares
        )
        # Few keys are sooner tested than a second process is started.
        workers = self.workers if len(chosen) > 512 else 1
        parts = Parallel(n_jobs=workers)(jobs)
        return [separation for part in parts for separation in part]

    def _starts(self, chosen: Chosen) -> list[Int[np.ndarray, " _"] | None]:
        return [self.members.get(j) for j in chosen.tolist()]


def _against(
    keys: Keys,
    pool: Pool,
    chosen: Chosen,
    starts: list[Int[np.ndarray, " _"] | None],
    rounding: float,
    exact: bool,
) -> list[Separation]:
    """Test each chosen key against the hull of the pool; members become positions of keys."""
    points = keys if len(pool) == len(keys) else keys[pool]
    results = []
    for j, start in zip(chosen.tolist(), starts, strict=True):
        place = int(np.searchsorted(pool, j))
        own = place if place < len(pool) and pool[place] == j else None
        begin = None if start is None else np.searchsorted(pool, start)
        separation = separate(
            points, keys[j], without=own, rounding=rounding, exact=exact, start=begin
        )
        results.append(replace(separation, members=pool[separation.members]))
    return results


# Combinations of vertices that give a key, many keys at a time.
#
# The wanted λ is in two convex sets: λ ≥ 0, and the affine set of all λ with Σ λ_i k_i = k_j and
# Σ λ_i = 1. To project onto either is easy: for a whole block of keys the second costs two matrix
# products. Douglas and Rachford's iteration goes back and forth between reflections,
#
#     x = max(z, 0),    y = the nearest of the affine set to 2x − z,    z ← z + y − x,
#
# and where the sets share inner points it reaches them in a few steps: a key well inside has many
# combinations, and is decided 100 times sooner than by a quadratic programme of its own. What
# comes out is judged by what it truly gives in float64. Keys on the border of the hull, or just
# inside, have next to no combination; those are left to the exact test.

COMBINING_STEPS = 256
"""At most so many steps for a block of keys."""
COMBINING_PATIENCE = 32
"""Steps without a new combination after which the rest of a block is left to the exact test."""
COMBINED_UP_TO = 32
"""In few dimensions combinations are sought among at most so many vertices a dimension: of more,
a quadratic programme a key is sooner solved."""
COMBINED_AT_A_TIME = 2**22
"""Weights held at a time: 32 MB, whatever the number of keys."""


def combined(vertices: Float[np.ndarray, "p d"], keys: Keys) -> Float[np.ndarray, " n"]:
    """Return how far a combination of vertices comes to each key; infinite where none was found."""
    system = np.hstack([vertices, np.ones((len(vertices), 1))])
    frame, sizes, axes = np.linalg.svd(system, full_matrices=False)
    rank = sizes > len(system) * 2.0**-52 * sizes[0]
    frame, axes = frame[:, rank], axes[rank].T / sizes[rank]
    apart = np.full(len(keys), np.inf)
    step = max(1, COMBINED_AT_A_TIME // len(vertices))
    for begin in range(0, len(keys), step):
        part = keys[begin : begin + step]
        aims = np.hstack([part, np.ones((len(part), 1))]) @ axes
        for places, weights in _combinations(frame, aims):
            weights /= weights.sum(axis=1, keepdims=True)
            missed = weights @ vertices - part[places]
            apart[begin + places] = np.linalg.norm(missed, axis=1)
    return apart


def _combinations(
    frame: Float[np.ndarray, "p r"], aims: Float[np.ndarray, "n r"]
) -> Iterator[tuple[Int[np.ndarray, " found"], Float[np.ndarray, "found p"]]]:
    """Yield positions of aims with weights λ ≥ 0 that meet them: λ @ frame = aim."""
    left, last = np.arange(len(aims)), 0
    z = aims @ frame.T
    for step in range(COMBINING_STEPS):
        x = np.maximum(z, 0.0)
        y = 2 * x - z
        y += (aims[left] - y @ frame) @ frame.T
        found = y.min(axis=1) >= 0
        if found.any():
            last = step
            yield left[found], y[found]
            left, x, y, z = left[~found], x[~found], y[~found], z[~found]
        if not len(left) or step - last >= COMBINING_PATIENCE:
            return
        z += y - x


# Search for directions in which a key leads all others, many keys at a time.
#
# A key that leads in some direction q is a vertex of the hull: k_j·q > k_i·q for all i ≠ j.
# Scores of many directions over all keys are one matrix product, done in float32 in blocks. The
# rounding of float32 is bounded, |error| ≤ (d + 8) 2⁻²⁴ ‖q‖ ‖k‖; where a lead is smaller than
# its bound, the products are done again in float64. So a lead that is reported is certain.

BLOCK = 2**24
"""Scores held at a time: 64 MB in float32, whatever the number of keys."""
SMOOTHED_FROM = 24
"""In fewer dimensions a quadratic programme a key is sooner solved than directions are sought."""

Report = Callable[[int], None]
"""Told how many keys have been decided since the last call."""


class Leads(NamedTuple):
    """What directions do for the keys they belong to."""

    margin: Float[np.ndarray, " m"]
    """Certified lead over all other keys of the unit direction; not positive: no certain lead."""
    rival: Chosen
    """The other key with the highest score."""


class Points(NamedTuple):
    """Keys in float64 and in float32, and the largest norm among them."""

    exact: Keys
    rough: Float32[np.ndarray, "n d"]
    largest: float

    @classmethod
    def of(cls, keys: Keys) -> Points:
        """Prepare keys that are centred and of order one."""
        largest = float(np.sqrt(np.einsum("ij,ij->i", keys, keys).max()))
        return cls(keys, keys.astype(np.float32), largest)


class Screened(NamedTuple):
    """What a search over directions found."""

    margin: Float[np.ndarray, " n"]
    """Certified margin of each key; 0 where none was found."""
    rival: Int[np.ndarray, " n"]
    """For each key, the rival met last."""
    left: Int[np.ndarray, " left"]
    """Keys without a certified margin."""
    stages: dict[str, int]
    """How many keys each stage decided."""


def leads_of(points: Points, owners: Chosen, directions: Directions) -> Leads:
    """Return by how much each direction puts its owner above all other keys."""
    margin, rival = np.empty(len(owners)), np.empty(len(owners), dtype=np.int64)
    step = max(1, BLOCK // len(points.exact))
    for begin in range(0, len(owners), step):
        part = slice(begin, begin + step)
        margin[part], rival[part] = _block(points, owners[part], directions[part])
    return Leads(margin, rival)


def screen(points: Points, report: Report, searches: int | None = None) -> Screened:
    """Try simple directions for every key, then better ones for those that are left.

    First the key itself (certain when all keys have one norm), then the key whitened, then,
    in many dimensions, what a smoothed perceptron finds against the outer keys known so far, for
    the first `searches` of them.
    """
    keys = points.exact
    n = len(keys)
    margin, rival = np.zeros(n), np.zeros(n, dtype=np.int64)
    stages: dict[str, int] = {}

    def attempt(stage: str, chosen: Chosen, directions: Directions) -> None:
        leads = leads_of(points, chosen, directions)
        rival[chosen] = leads.rival
        won: Bool[np.ndarray, " m"] = leads.margin > 0
        margin[chosen[won]] = leads.margin[won]
        stages[stage] = stages.get(stage, 0) + int(won.sum())
        report(int(won.sum()))

    attempt("the key itself", np.arange(n), points.rough)
    left = np.flatnonzero(margin <= 0)
    if len(left):
        attempt("the key, whitened", left, _whitened(keys, left))
        left = np.flatnonzero(margin <= 0)
    if len(left) and keys.shape[1] >= SMOOTHED_FROM:
        pool = np.union1d(np.flatnonzero(margin > 0), rival[left])
        for part, directions in smoothed_directions(keys, pool, left[:searches], BLOCK):
            attempt("a smoothed perceptron", part, directions)
    return Screened(margin, rival, np.flatnonzero(margin <= 0), stages)


def _block(
    points: Points, owners: Chosen, directions: Directions
) -> tuple[Float[np.ndarray, " m"], Chosen]:
    rows = np.arange(len(owners))
    scores = directions @ points.rough.T
    own = scores[rows, owners].astype(np.float64)
    scores[rows, owners] = -np.inf
    rival = scores.argmax(axis=1)
    norms = np.linalg.norm(directions.astype(np.float64), axis=1)
    norms[norms == 0] = np.inf
    d = directions.shape[1]
    lead = (own - scores[rows, rival]) / norms
    margin = lead - 2 * (d + 8) * 2.0**-24 * points.largest
    unsure = np.flatnonzero((margin <= 0) & (lead > -2 * (lead - margin)))
    if len(unsure):
        exact = directions[unsure].astype(np.float64) @ points.exact.T
        places = np.arange(len(unsure))
        own = exact[places, owners[unsure]].copy()
        exact[places, owners[unsure]] = -np.inf
        rival[unsure] = exact.argmax(axis=1)
        lead = (own - exact[places, rival[unsure]]) / norms[unsure]
        margin[unsure] = lead - 2 * (d + 8) * 2.0**-53 * points.largest
    return margin, rival


def _whitened(keys: Keys, chosen: Chosen) -> Directions:
    """Return Σ⁻¹k_j: the direction in which k_j leads a cloud of covariance Σ the most."""
    covariance = keys.T @ keys / len(keys)
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 1e-8 * max(float(values[-1]), 1e-300))
    whitened = (keys[chosen] @ vectors / values) @ vectors.T
    whitened /= np.abs(whitened).max(axis=1, keepdims=True) + 1e-300
    return np.asarray(whitened, dtype=np.float32)


# Directions that lead, for many keys at once, by the smoothed perceptron.
#
# For a key k_j the wanted q has a_i·q > 0 for the unit vectors a_i along k_j − k_i. A perceptron
# needs about 1/δ² corrections to find it, where δ is the best possible min a_i·q of a unit q.
# Smoothing its choice of the worst i into a softmax, and accelerating, needs about 1/δ:
#
#     y_μ(q) = softmax(−Aq/μ)                                       θ = 2/(step + 3)
#     q ← (1−θ)(q + θ Aᵀy) + θ² Aᵀy_μ(q),    μ ← (1−θ) μ,    y ← (1−θ) y + θ y_μ(q)
#
# (Soheili and Peña, "A smooth perceptron algorithm", SIAM J. Optim. 22, 2012). Only Aᵀy is kept,
# so a step is two matrix products for a whole block of keys. The coordinates are whitened first,
# which makes δ larger. What comes out is a guess: leads are certified elsewhere.

STEPS = 96
"""At most so many steps for a block of keys."""
PATIENCE = 24
"""Steps without a new lead after which the rest of a block is left to the exact test."""


def smoothed_directions(
    keys: Keys,
    pool: Pool,
    chosen: Chosen,
    block: int,
) -> Iterator[tuple[Int[np.ndarray, " part"], Float32[np.ndarray, "part d"]]]:
    """Yield chosen keys, some at a time, with directions in which they lead the pool, or nearly.

    `pool` is ascending; at most `block` products of a key with a pool key are held at a time.
    """
    centre = keys[pool].mean(axis=0)
    whitening = _whitening(keys[pool] - centre)
    against = ((keys[pool] - centre) @ whitening).astype(np.float32)
    step = max(1, block // len(pool))
    for begin in range(0, len(chosen), step):
        part = chosen[begin : begin + step]
        own = np.searchsorted(pool, part)
        own[(own == len(pool)) | (pool[np.minimum(own, len(pool) - 1)] != part)] = -1
        aims = ((keys[part] - centre) @ whitening).astype(np.float32)
        guesses = _Block(aims, against, own).run()
        back = guesses.astype(np.float64) @ whitening.T
        back /= np.abs(back).max(axis=1, keepdims=True) + 1e-300
        yield part, back.astype(np.float32)


class _Block:
    """The smoothed perceptron for a block of keys; A is never formed."""

    def __init__(
        self,
        aims: Directions,
        against: Float32[np.ndarray, "p d"],
        own: Chosen,
    ) -> None:
        self.aims, self.against = aims, against
        rows = np.flatnonzero(own >= 0)
        self.own = rows, own[rows]
        squared = (aims**2).sum(axis=1)[:, None] + (against**2).sum(axis=1) - 2 * aims @ against.T
        self.shorten = 1 / np.sqrt(np.maximum(squared, np.float32(1e-6)))
        self.shorten[self.own] = 0  # a key is no rival of itself

    def run(self) -> Directions:
        even = np.full(self.shorten.shape, 1 / self.shorten.shape[1], dtype=np.float32)
        q, mu = self._pull(even), 1.0
        worst, pull = self._worst(q, mu)
        average, best, lead = pull, q, _per_unit(worst, q)
        last = 0
        for step in range(STEPS):
            theta = 2 / (step + 3)
            q = (1 - theta) * (q + theta * average) + theta**2 * pull
            mu *= 1 - theta
            worst, pull = self._worst(q, mu)
            average = (1 - theta) * average + theta * pull
            now = _per_unit(worst, q)
            last = step if ((now > 0) & (lead <= 0)).any() else last
            best = np.where((now > lead)[:, None], q, best)
            lead = np.maximum(now, lead)
            if step - last >= PATIENCE:
                break
        return best

    def _worst(self, q: Directions, mu: float) -> tuple[Float32[np.ndarray, " m"], Directions]:
        """Return min a_i·q, and Aᵀ softmax(−Aq/μ)."""
        leads = (q * self.aims).sum(axis=1, keepdims=True) - q @ self.against.T
        leads *= self.shorten
        leads[self.own] = np.inf
        worst = leads.min(axis=1)
        y = np.exp((worst[:, None] - leads) / np.float32(mu))
        y /= y.sum(axis=1, keepdims=True)
        return worst, self._pull(y)

    def _pull(self, y: Float32[np.ndarray, "m p"]) -> Directions:
        y = y * self.shorten
        return np.asarray(self.aims * y.sum(axis=1, keepdims=True) - y @ self.against)


def _per_unit(lead: Float32[np.ndarray, " m"], q: Directions) -> Float32[np.ndarray, " m"]:
    return np.asarray(lead / (np.linalg.norm(q, axis=1) + np.float32(1e-30)))


def _whitening(cloud: Float[np.ndarray, "p d"]) -> Float[np.ndarray, "d d"]:
    values, vectors = np.linalg.eigh(cloud.T @ cloud / len(cloud))
    values = np.maximum(values, 1e-6 * max(float(values[-1]), 1e-300))
    return np.asarray(vectors / np.sqrt(values))
