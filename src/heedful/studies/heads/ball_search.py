"""The best lead of one point over others, from a view inside a ball.

    lead(y) = min_l (a_j − a_l)·y + c_j − c_l        over ‖y‖ ≤ R

is concave. Its minimum is smoothed into −μ ln Σ exp(−·/μ) and climbed with accelerated steps,
while μ falls. Every y bounds the best lead from below. The weights λ of the smoothed minimum
bound it from above, since a minimum is at most any mean:

    lead(y) ≤ max over the ball of Σ λ_l (…) = R ‖Σ λ_l (a_j − a_l)‖ + Σ λ_l (c_j − c_l)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

ROUNDS, STEPS = 10, 60
"""How often μ falls, and steps for each."""


class BallSearch(NamedTuple):
    """Both bounds of the best lead."""

    y: Float[np.ndarray, " d"]
    lead: float
    """What y gives."""
    bound: float
    """No y in the ball gives more."""


def best_in_ball(
    a: Float[np.ndarray, "n d"],
    c: Float[np.ndarray, " n"],
    own: int,
    radius: float,
    steps: int = STEPS,
) -> BallSearch:
    """Return the best y found for one point, and a bound for all y.

    It stops as soon as the sign of the best lead is known.

    >>> found = best_in_ball(np.array([[1.0], [-1.0]]), np.array([0.0, 1.5]), 0, 1.0)
    >>> round(found.lead, 3), found.bound >= found.lead
    (0.5, True)
    """
    rows = np.delete(a[own] - a, own, axis=0)
    constants = np.delete(c[own] - c, own)
    size = max(float(np.linalg.norm(rows, axis=1).max()), 1e-300) * radius
    y = rows.mean(axis=0)
    y = y / max(float(np.linalg.norm(y)), 1e-300) * radius
    best, lead, bound = y, -np.inf, np.inf
    for number in range(ROUNDS):
        mu = size * 0.1 / 3**number
        step = mu / (size / radius) ** 2
        ahead, momentum = y, 1.0
        for _ in range(steps):
            leads = rows @ ahead + constants
            lowest = float(leads.min())
            if lowest > lead:
                best, lead = ahead, lowest
            weights = np.exp((lowest - leads) / mu)
            weights /= weights.sum()
            pull = weights @ rows
            bound = min(bound, radius * float(np.linalg.norm(pull)) + float(weights @ constants))
            if lead > 0 or bound < 0:
                return BallSearch(best, lead, bound)
            after = _within(ahead + step * pull, radius)
            faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead = _within(after + (momentum - 1) / faster * (after - y), radius)
            y, momentum = after, faster
    return BallSearch(best, lead, bound)


def _within(y: Float[np.ndarray, " d"], radius: float) -> Float[np.ndarray, " d"]:
    length = float(np.linalg.norm(y))
    return y if length <= radius else y / length * radius
