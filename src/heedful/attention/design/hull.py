"""Is a point outside the convex hull of others? A direction, or a combination, that proves it.

Seen from the point in question, the others are b_1 … b_r, and exactly one of these exists:

    a unit direction u with −b_l·u ≥ δ > 0 for every l                 (the point is outside)
    weights λ ≥ 0, Σλ = 1, with Σ λ_l b_l = 0                          (it is inside)

The largest δ is the distance from 0 to the hull, ‖Σ λ_l b_l‖ at its least: one quadratic
programme, solved exactly as non-negative least squares (Lawson and Hanson's least-distance
problem): minimise ‖[Bᵀ; 1ᵀ] λ − (0, …, 0, 1)‖ over λ ≥ 0.

Any u bounds δ from below and any λ bounds it from above, so every verdict is checked in
float64 after the solver is done, and what lies between the two bounds is called borderline.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linprog, nnls

from heedful.arrays import EPSILON
from heedful.records import Record

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
        widest = linprog(
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
        hit = linprog(
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
        solved, _ = nnls(system, aim, maxiter=10 * sum(system.shape))
    except RuntimeError:
        return None
    total = float(solved.sum())
    return solved / total if total > 0 else None
