"""Which keys can be copied at all, out of up to 50,000 in up to 1,024 dimensions.

Value j can be copied (α_j → 1 for some sequence of queries) exactly when k_j leads in some
direction, k_j·q > k_i·q for every i ≠ j: when it is a vertex of the keys' convex hull and no
other key equals it. The same question asks which tokens an output layer can never predict.

The margin of a key is the largest lead of a unit direction, which is the distance from the
key to the hull of the others. Three stages, from cheap to exact:

1. directions by guess and correction, for all keys at once (module `screening`);
2. what is left against the hull of a pool of outer keys only, by quadratic programme: a key
   inside it is inside the hull of all (a combination proves it);
3. a key outside the pool's hull leads the pool in some direction: either it leads all keys
   too, or the key that beats it there joins the pool, and the key is tested again.

Every verdict is checked in float64; what rounding leaves open is listed, never guessed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from joblib import Parallel, delayed

from heedful.attention.arrays import index, matrix, number_of
from heedful.attention.hull import Separation, rounding_of, separate
from heedful.attention.ratios import normalised
from heedful.attention.screening import Points, Screened, leads_of, screen
from heedful.errors import InputError
from heedful.records import Record

Progress = Callable[[int, int], None]
"""Called with how many keys are decided, and how many there are."""
A_LOOK = 64
"""Exact tests of a process between two looks at the clock."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Copyable(Record):
    """Which keys can be copied, and by what margin."""

    count: int
    """How many keys can be copied."""
    copyable: Bool[np.ndarray, " n"]
    """For each key: proved to lead all others in some direction."""
    undecided: tuple[int, ...]
    """Keys that rounding, or the time allowed, leaves open."""
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
    seconds: float | None = None,
    progress: Progress | None = None,
) -> Copyable:
    """Return which keys can be copied: the vertices of their convex hull.

    `exact_margins` finds the true margin of each copyable key (one quadratic programme each).
    `workers` processes share the exact tests; the answer does not depend on their number.
    After `seconds` no further search or test begins, and keys still waiting for one are undecided.

    >>> found = copyable([[0, 0], [2, 0], [0, 2], [0.5, 0.5]])
    >>> found.copyable.tolist(), found.count
    ([True, True, True, False], 3)
    """
    began = time.perf_counter()
    keys = matrix("keys", keys)
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InputError(
            "workers", f"is {workers!r}", expected="a whole number from 1 was expected"
        )
    if seconds is not None and number_of("seconds", seconds) < 0:
        raise InputError("seconds", f"is {seconds:g}", expected="0 or more was expected")
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
    deadline = None if seconds is None else began + seconds
    found = _Hull(small, workers, deadline, lambda more: None if len(small) < n else report(more))
    found.decide()
    if exact_margins and len(small) > 1:
        found.measure(np.flatnonzero((found.margin > 0) & (counts == 1)))
    alone = counts[inverse] == 1
    verdict = (found.margin > 0)[inverse] & alone
    unit = np.ldexp(1.0, exponent)
    report(n - decided)
    return Copyable(
        count=int(verdict.sum()),
        copyable=verdict,
        undecided=tuple(np.flatnonzero(found.open[inverse] & alone).tolist()),
        margin=np.where(verdict, found.margin[inverse], 0.0) * unit,
        margin_upper=np.where(alone, found.upper[inverse], 0.0) * unit,
        exact_margins=exact_margins,
        stages={**found.stages, "equal to another key": int((~alone).sum())},
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
    found = separate(small, small[chosen], without=chosen)
    return Separation(
        verdict=found.verdict,
        margin=float(np.ldexp(found.margin, exponent)),
        margin_upper=float(np.ldexp(found.margin_upper, exponent)),
        direction=found.direction,
        members=found.members,
        weights=found.weights,
    )


class _Hull:
    """The verdicts on distinct keys as they are found."""

    def __init__(
        self,
        keys: Float[np.ndarray, "n d"],
        workers: int,
        deadline: float | None,
        report: Callable[[int], None],
    ) -> None:
        self.keys = keys
        self.points = Points.of(keys)
        self.rounding = rounding_of(keys)
        self.workers = workers
        self.deadline = deadline
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
        screened = screen(self.points, self.report, self.deadline)
        self.margin, self.stages = screened.margin, screened.stages
        apart = np.linalg.norm(self.keys - self.keys[screened.rival], axis=1)
        self.upper = np.minimum(self.upper, apart)
        self._test(screened)

    def measure(self, chosen: Int[np.ndarray, " m"]) -> None:
        """Bring the bounds of the margins together."""
        everything = np.arange(len(self.keys))
        for j, found in zip(chosen, self._separate(chosen, everything, exact=True), strict=True):
            if found.verdict == "outside":
                self.margin[j] = max(self.margin[j], found.margin)
            self.upper[j] = min(self.upper[j], found.margin_upper)

    def _test(self, screened: Screened) -> None:
        pool = np.zeros(len(self.keys), dtype=bool)
        pool[self.margin > 0] = True
        pool[screened.rival[screened.left]] = True
        pending = screened.left
        inside = outside = 0
        while len(pending):
            if self.deadline is not None and time.perf_counter() > self.deadline:
                self.open[pending] = True
                break
            # All at once, unless the clock has to be looked at in between.
            now = len(pending) if self.deadline is None else A_LOOK * self.workers
            pending, waiting = pending[:now], pending[now:]
            results = self._separate(pending, np.flatnonzero(pool), exact=False)
            again: list[int] = []
            directions: list[Float[np.ndarray, " d"]] = []
            for j, found in zip(pending.tolist(), results, strict=True):
                self.upper[j] = min(self.upper[j], found.margin_upper)
                if found.verdict == "outside":
                    again.append(j)
                    directions.append(found.direction)
                    self.members[j] = found.members
                elif found.verdict == "inside":
                    inside += 1
                else:
                    self.open[j] = True
            self.report(len(pending) - len(again))
            left, won = self._challenge(np.array(again, dtype=np.int64), directions, pool)
            pending = np.concatenate([waiting, left])
            outside += won
        self.stages["inside, by a combination"] = inside
        self.stages["outside, by an exact direction"] = outside
        self.stages["undecided"] = int(self.open.sum())

    def _challenge(
        self,
        chosen: Int[np.ndarray, " m"],
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
            found = separate(self.keys, self.keys[j], without=j, rounding=self.rounding)
            self.margin[j] = found.margin
            self.upper[j] = min(self.upper[j], found.margin_upper)
            self.open[j] = found.verdict == "borderline"
        pool[leads.rival[~won]] = True
        pool[chosen[self.margin[chosen] > 0]] = True
        left = chosen[~won & ~stuck]
        self.report(len(chosen) - len(left))
        return left, int((self.margin[chosen] > 0).sum())

    def _separate(
        self, chosen: Int[np.ndarray, " m"], pool: Int[np.ndarray, " p"], *, exact: bool
    ) -> list[Separation]:
        shares = np.array_split(chosen, max(1, min(len(chosen) // 64, 8 * self.workers)))
        jobs = (
            delayed(_against)(self.keys, pool, share, self._starts(share), self.rounding, exact)
            for share in shares
        )
        # Few keys are sooner tested than a second process is started.
        workers = self.workers if len(chosen) > 512 else 1
        parts = Parallel(n_jobs=workers)(jobs)
        return [found for part in parts for found in part]

    def _starts(self, chosen: Int[np.ndarray, " m"]) -> list[Int[np.ndarray, " _"] | None]:
        return [self.members.get(j) for j in chosen.tolist()]


def _against(
    keys: Float[np.ndarray, "n d"],
    pool: Int[np.ndarray, " p"],
    chosen: Int[np.ndarray, " m"],
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
        found = separate(points, keys[j], without=own, rounding=rounding, exact=exact, start=begin)
        results.append(
            Separation(
                verdict=found.verdict,
                margin=found.margin,
                margin_upper=found.margin_upper,
                direction=found.direction,
                members=pool[found.members],
                weights=found.weights,
            )
        )
    return results
