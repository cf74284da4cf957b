"""Does a confidence mean what it says, and when is it better not to answer?

    ECE     Σ over bins of (answers in the bin / all) · |accuracy − mean confidence|
    Brier   mean of (confidence − outcome)²
    p_T     Π softmax(z/T)[token]: temperature scaling of the whole answer

T is the one that makes outcomes of held-out answers likeliest. The abstention threshold is the
smallest confidence at which the answers above it are wrong no more often than wanted, on held-out
questions too; what it does on the test is then measured, never chosen. Where everybody held out is
in the text, it must also keep silent about names that nobody has: they are asked about as well,
and no more than the wanted share of them may get an answer.

k wrong of n held-out answers promise no error below p where P(at most k wrong of n | p) = 5 %:
Clopper and Pearson's bound. The fewer were held out, the less can be promised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from scipy.optimize import minimize_scalar

from heedful.errors import InputError
from heedful.stats import clopper_pearson_upper, wilson
from heedful.studies.knowledge.answers import Reply, sequence_probability
from heedful.studies.knowledge.records import Bin, Calibration, RiskCoverage

BINS = 10
COOLEST, HOTTEST = 0.2, 20.0
"""Temperatures that are searched."""
NEVER = 1.0 + 1e-9
"""A threshold that no confidence reaches."""

Confidences = Float64[np.ndarray, " answers"]
Outcomes = Bool[np.ndarray, " answers"]
Judged = tuple[Float64[np.ndarray, " _"], Bool[np.ndarray, " _"]]
"""Confidences and outcomes of one part of the questions."""


def best_temperature(
    logits: Sequence[Float[np.ndarray, "tokens vocabulary"]],
    replies: Sequence[Reply],
    right: Outcomes,
) -> float:
    """Return the temperature at which the outcomes of these answers are likeliest."""
    if len(right) != len(replies):
        raise InputError("right", f"has {len(right)} outcomes", expected=f"{len(replies)}")

    def surprise(log_temperature: float) -> float:
        p = sequence_probability(logits, replies, float(np.exp(log_temperature)))
        p = np.clip(p, 1e-6, 1 - 1e-6)
        return float(-np.where(right, np.log(p), np.log1p(-p)).mean())

    # The surprise may have two valleys: a grid finds the deeper one, the search its bottom.
    grid = np.linspace(np.log(COOLEST), np.log(HOTTEST), 25)
    values = [surprise(float(point)) for point in grid]
    place = int(np.argmin(values))
    around = (float(grid[max(place - 1, 0)]), float(grid[min(place + 1, len(grid) - 1)]))
    found = minimize_scalar(surprise, bounds=around, method="bounded", options={"xatol": 1e-3})
    return float(np.exp(found.x))


def calibration(confidence: Confidences, right: Outcomes, temperature: float) -> Calibration:
    """Return how far confidences and outcomes agree."""
    return Calibration(
        temperature=temperature,
        ece=expected_error(confidence, right),
        brier=float(((confidence - right) ** 2).mean()),
        bins=reliability(confidence, right),
    )


def expected_error(confidence: Confidences, right: Outcomes) -> float:
    """Return the expected calibration error, as torchmetrics defines it."""
    from torchmetrics.functional.classification import binary_calibration_error

    value = binary_calibration_error(
        torch.from_numpy(np.clip(confidence, 0.0, 1.0)), torch.from_numpy(right.astype(int)),
        n_bins=BINS, norm="l1",
    )  # fmt: skip
    return float(value)


def reliability(confidence: Confidences, right: Outcomes) -> tuple[Bin, ...]:
    """Return the bars of the reliability diagram; empty ones are left out."""
    places = np.minimum((confidence * BINS).astype(int), BINS - 1)
    made = []
    for place in range(BINS):
        inside = places == place
        count = int(inside.sum())
        if count:
            low, high = wilson(int(right[inside].sum()), count)
            made.append(
                Bin(
                    confidence=float(confidence[inside].mean()),
                    accuracy=float(right[inside].mean()),
                    low=low,
                    high=high,
                    count=count,
                )
            )
    return tuple(made)


def risk_curve(
    confidence: Confidences, right: Outcomes
) -> tuple[Float64[np.ndarray, " points"], Float64[np.ndarray, " points"]]:
    """Return coverage and risk, answering the surest first; equal confidences come together.

    >>> coverage, risk = risk_curve(np.array([0.9, 0.5, 0.5]), np.array([True, True, False]))
    >>> coverage.round(2).tolist(), risk.round(2).tolist()
    ([0.33, 1.0], [0.0, 0.33])
    """
    order = np.argsort(-confidence, kind="stable")
    sorted_confidence, wrong = confidence[order], np.cumsum(~right[order])
    last = np.flatnonzero(np.append(np.diff(sorted_confidence) != 0, True))
    answered = last + 1
    return answered / len(right), wrong[last] / answered


def choose_threshold(confidence: Confidences, right: Outcomes, wanted_error: float) -> float:
    """Return the smallest confidence above which answers are wrong no more often than wanted.

    >>> choose_threshold(np.array([0.9, 0.5, 0.2]), np.array([True, True, False]), 0.1)
    0.5
    """
    if not 0.0 <= wanted_error < 1.0:
        raise InputError("wanted_error", f"is {wanted_error}", expected="a share from 0 to below 1")
    coverage, risk = risk_curve(confidence, right)
    allowed = np.flatnonzero(risk <= wanted_error)
    if not len(allowed):
        return NEVER
    answered = round(float(coverage[allowed[-1]]) * len(right))
    return float(np.sort(confidence)[::-1][answered - 1])


def silent_from(confidence: Confidences, wanted_share: float) -> float:
    """Return the smallest threshold that no more than a share of these confidences reach.

    >>> 0.5 < silent_from(np.array([0.9, 0.5, 0.4, 0.3]), 0.25) < 0.5 + 1e-9
    True
    """
    allowed = int(wanted_share * len(confidence) + 1e-9)
    if allowed >= len(confidence):
        return 0.0
    return float(np.nextafter(np.sort(confidence)[::-1][allowed], np.inf))


def risk_coverage(
    held_out: Judged,
    test: Judged,
    wanted_error: float,
    invented: Float64[np.ndarray, " names"] | None = None,
) -> RiskCoverage:
    """Choose a threshold on held-out answers and measure it on those of the test.

    `invented` are confidences about names that nobody has; none are needed where people whom no
    text has are held out.
    """
    threshold = choose_threshold(*held_out, wanted_error)
    if invented is not None and len(invented):
        threshold = max(threshold, silent_from(invented, wanted_error))
    kept = held_out[0] >= threshold
    confidence, right = test
    coverage, risk = risk_curve(confidence, right)
    # An oracle is wrong only from the point on at which the right answers are used up.
    perfect = np.maximum(0.0, 1 - right.mean() / np.linspace(1 / len(right), 1, len(right)))
    answered = confidence >= threshold
    error = _error_above(threshold)
    low, high = wilson(int((~right[answered]).sum()), int(answered.sum()))
    some = bool(answered.any())
    return RiskCoverage(
        coverage=tuple(coverage.tolist()),
        risk=tuple(risk.tolist()),
        area=float(_mean_over(coverage, risk)),
        best_area=float(perfect.mean()),
        wanted_error=wanted_error,
        threshold=threshold,
        held_out_coverage=float((held_out[0] >= threshold).mean()),
        held_out_error=error(*held_out),
        promised_error=clopper_pearson_upper(int((~held_out[1][kept]).sum()), int(kept.sum())),
        invented=0 if invented is None else len(invented),
        test_coverage=float(answered.mean()),
        test_error=error(*test),
        test_error_low=low if some else None,
        test_error_high=high if some else None,
        error_without=float((~right).mean()),
    )


def _error_above(threshold: float) -> Callable[[Confidences, Outcomes], float | None]:
    def error(confidence: Confidences, right: Outcomes) -> float | None:
        answered = confidence >= threshold
        return float((~right[answered]).mean()) if answered.any() else None

    return error


def _mean_over(
    coverage: Float64[np.ndarray, " points"], risk: Float64[np.ndarray, " points"]
) -> float:
    return float((np.diff(coverage, prepend=0.0) * risk).sum())
