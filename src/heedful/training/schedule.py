"""The learning rate of each step, as a share of the highest.

With w steps of warm-up of S in all, s counted from 0, and a floor f:

    warm-up    (s + 1) / w                                  for s < w
    cosine     f + (1 − f) (1 + cos π u) / 2                u = (s − w) / (S − w)
    wsd        1, then 1 − (1 − f) (s − d) / (S − d)        from d = S − decay · S on
    constant   1

It is a function of the step alone: a checkpoint needs no more than the step.
"""

from __future__ import annotations

import math

from heedful.training.config import Schedule


def rate_share(schedule: Schedule, step: int, steps: int) -> float:
    """Return the share of the highest learning rate that step number `step` takes.

    >>> shares = [rate_share(Schedule(warmup=2), step, 10) for step in (0, 1, 2)]
    >>> [round(share, 3) for share in shares]
    [0.5, 1.0, 1.0]
    """
    if step < schedule.warmup:
        return (step + 1) / schedule.warmup
    if schedule.kind == "constant":
        return 1.0
    floor = schedule.floor
    if schedule.kind == "cosine":
        done = (step - schedule.warmup) / max(steps - schedule.warmup, 1)
        return floor + (1.0 - floor) * (1.0 + math.cos(math.pi * min(done, 1.0))) / 2.0
    start = max(steps - round(schedule.decay * steps), schedule.warmup)
    if step < start:
        return 1.0
    return 1.0 - (1.0 - floor) * min((step - start) / max(steps - start, 1), 1.0)
