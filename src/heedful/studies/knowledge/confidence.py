"""What a confidence is worth: separation, calibration, and when it is better not to answer.

    AUROC   P(s⁺ > s⁻) + P(s⁺ = s⁻)/2 for a random answer of each kind
    ECE     Σ over bins of (answers in the bin / all) · |accuracy − mean confidence|
    Brier   mean of (confidence − outcome)²
    p_T     Π softmax(z/T)[token]: temperature scaling of the whole answer

The AUROC says how far a signal separates two kinds of answers; its interval is a bootstrap over
answers, each kind resampled by itself. Several signals are joined by a logistic regression that is
fitted on other questions.

The held-out questions are used in two halves. On the first, T is the one that makes outcomes
likeliest, and the abstention threshold is the smallest confidence at which the answers above it are
wrong no more often than wanted; what it does on the test is then measured, never chosen. Where
everybody held out is in the text, it must also keep silent about names that nobody has: they are
asked about as well, and no more than the wanted share of them may get an answer.

The second half had no part in any of this, so it can promise: k wrong of its n answers above the
threshold rule out every error p with P(at most k wrong of n | p) < 5 %, the bound of Clopper and
Pearson. The promise then fails in at most 5 % of all calibrations, whatever the model is like; made
from the answers that chose the threshold it failed in up to 9 %. It is about questions like those
held out.

`promise` turns this round, for a model that others have trained: the error is given, and the lowest
threshold is wanted that keeps to it. Thresholds are tested in a fixed order, downwards (learn then
test): each by the exact binomial test of "the error above it exceeds α" at level δ, and the first
one that is not rejected ends the search. Where the order was fixed before, the first threshold in
it that exceeds α is accepted with probability δ at most, and whatever lies behind it is reached
only through it: so the promise is broken in at most δ of all calibrations, with no correction for
the number of thresholds. The order comes from questions of their own: it begins where these give
the strongest evidence, since the few surest answers of all could never pass alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import scipy  # its parts are imported when they are first used
import torch
from jaxtyping import Bool, Float, Float64
from scipy.special import expit

from heedful.errors import InputError
from heedful.stats import clopper_pearson_upper, percentile_interval, wilson
from heedful.studies.knowledge.answers import Reply, sequence_probability
from heedful.studies.knowledge.findings import (
    Bin,
    Calibration,
    Promise,
    RiskCoverage,
    SignalSeparation,
)

BINS = 10
COOLEST, HOTTEST = 0.2, 20.0
"""Temperatures that are searched."""
NEVER = 1.0 + 1e-9
"""A threshold that no confidence reaches."""
MOST_QUESTIONS = 1_000_000
"""Nobody will write more: a promise that needs them cannot be had."""
DRAWS = 1_000
RIDGE = 1e-2
"""Keeps the weights of a regression finite where a signal separates perfectly."""

Scores = Float64[np.ndarray, " answers"]
Kind = Bool[np.ndarray, " answers"]

Outcomes = Bool[np.ndarray, " answers"]
Judged = tuple[Float64[np.ndarray, " _"], Bool[np.ndarray, " _"]]
"""Scores and outcomes of one part of the questions."""


def auroc(positives: Scores, negatives: Float64[np.ndarray, " others"]) -> float:
    """Return the probability that a positive scores higher than a negative, ties counted half.

    >>> auroc(np.array([0.9, 0.8]), np.array([0.1, 0.8]))
    0.875
    """
    if not len(positives) or not len(negatives):
        raise InputError("scores", "of one kind are none", expected="at least one of each kind")
    ranks = scipy.stats.rankdata(np.concatenate([positives, negatives]))
    count = len(positives)
    above = ranks[:count].sum() - count * (count + 1) / 2
    return float(above / (count * len(negatives)))


def separations(
    values: Mapping[str, Scores], positive: Kind, negative: Kind, *, seed: int = 0
) -> tuple[SignalSeparation, ...]:
    """Return the AUROC of each signal with its interval; none where a kind is missing."""
    if not positive.any() or not negative.any():
        return ()
    measured = []
    for name, scores in values.items():
        low, high = _interval(scores[positive], scores[negative], seed)
        measured.append(
            SignalSeparation(
                signal=name,
                auroc=auroc(scores[positive], scores[negative]),
                low=low,
                high=high,
                positives=int(positive.sum()),
                negatives=int(negative.sum()),
            )
        )
    return tuple(measured)


class Combination:
    """Signals joined into one number by logistic regression."""

    def __init__(self, values: Mapping[str, Scores], positive: Kind, negative: Kind) -> None:
        """Fit on answers of both kinds; others are left aside."""
        self.names = tuple(values)
        used = positive | negative
        table = np.stack([values[name][used] for name in self.names], axis=1)
        self.mean = table.mean(axis=0)
        self.scale = np.where(table.std(axis=0) > 1e-9, table.std(axis=0), 1.0)
        features, target = (table - self.mean) / self.scale, positive[used].astype(float)

        def loss(weights: Float64[np.ndarray, " weights"]) -> tuple[float, np.ndarray]:
            scores = features @ weights[1:] + weights[0]
            chance = expit(scores)
            value = np.logaddexp(0, scores).mean() - (target * scores).mean()
            slope = np.concatenate([[(chance - target).mean()],
                                    features.T @ (chance - target) / len(target)])  # fmt: skip
            ridge = RIDGE * weights
            ridge[0] = 0.0
            return float(value + 0.5 * (ridge * weights).sum()), slope + ridge

        optimum = scipy.optimize.minimize(
            loss, np.zeros(len(self.names) + 1), jac=True, method="L-BFGS-B"
        )
        self.weights: Float64[np.ndarray, " weights"] = optimum.x

    def scores(self, values: Mapping[str, Scores]) -> Scores:
        """Return the joined signal of other answers."""
        table = np.stack([values[name] for name in self.names], axis=1)
        joined: Scores = ((table - self.mean) / self.scale) @ self.weights[1:] + self.weights[0]
        return joined


def _interval(
    positives: Scores, negatives: Float64[np.ndarray, " others"], seed: int
) -> tuple[float, float]:
    draw = np.random.default_rng(np.random.SeedSequence([seed, 11]))
    # Who beats whom does not change from draw to draw: only how often each of them is drawn.
    beats = (positives[:, None] > negatives) + 0.5 * (positives[:, None] == negatives)
    first = draw.multinomial(len(positives), np.full(len(positives), 1 / len(positives)), DRAWS)
    second = draw.multinomial(len(negatives), np.full(len(negatives), 1 / len(negatives)), DRAWS)
    drawn = np.einsum("dp,pn,dn->d", first, beats, second, optimize=True)
    return percentile_interval(drawn / beats.size)


CHOOSING, PROMISING = slice(0, None, 2), slice(1, None, 2)
"""The held-out questions on which temperature and threshold are chosen, and those that promise."""


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
    optimum = scipy.optimize.minimize_scalar(
        surprise, bounds=around, method="bounded", options={"xatol": 1e-3}
    )
    return float(np.exp(optimum.x))


def calibration(confidence: Scores, right: Outcomes, temperature: float) -> Calibration:
    """Return how far confidences and outcomes agree."""
    return Calibration(
        temperature=temperature,
        ece=expected_error(confidence, right),
        brier=float(((confidence - right) ** 2).mean()),
        bins=reliability(confidence, right),
    )


def expected_error(confidence: Scores, right: Outcomes) -> float:
    """Return the expected calibration error, as torchmetrics defines it."""
    from torchmetrics.functional.classification import binary_calibration_error

    value = binary_calibration_error(
        torch.from_numpy(np.clip(confidence, 0.0, 1.0)), torch.from_numpy(right.astype(int)),
        n_bins=BINS, norm="l1",
    )  # fmt: skip
    return float(value)


def reliability(confidence: Scores, right: Outcomes) -> tuple[Bin, ...]:
    """Return the bars of the reliability diagram; empty ones are left out."""
    places = np.minimum((confidence * BINS).astype(int), BINS - 1)
    bins = []
    for place in range(BINS):
        inside = places == place
        count = int(inside.sum())
        if count:
            low, high = wilson(int(right[inside].sum()), count)
            bins.append(
                Bin(
                    confidence=float(confidence[inside].mean()),
                    accuracy=float(right[inside].mean()),
                    low=low,
                    high=high,
                    count=count,
                )
            )
    return tuple(bins)


def risk_curve(
    confidence: Scores, right: Outcomes
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


def choose_threshold(confidence: Scores, right: Outcomes, wanted_error: float) -> float:
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


def silent_from(confidence: Scores, wanted_share: float) -> float:
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
    """Choose a threshold on one half of the held-out answers, promise by the other, and measure.

    `invented` are confidences about names that nobody has; none are needed where people whom no
    text has are held out.
    """
    choosing, promising = ((held_out[0][half], held_out[1][half]) for half in (CHOOSING, PROMISING))
    threshold = choose_threshold(*choosing, wanted_error)
    if invented is not None and len(invented):
        threshold = max(threshold, silent_from(invented, wanted_error))
    kept = promising[0] >= threshold
    wrong = int((~promising[1][kept]).sum())
    confidence, right = test
    coverage, risk = risk_curve(confidence, right)
    # An oracle is wrong only from the point on at which the right answers are used up.
    perfect = np.maximum(0.0, 1 - right.mean() / np.linspace(1 / len(right), 1, len(right)))
    answered = confidence >= threshold
    low, high = wilson(int((~right[answered]).sum()), int(answered.sum()))
    some = bool(answered.any())
    return RiskCoverage(
        coverage=tuple(coverage.tolist()),
        risk=tuple(risk.tolist()),
        area=float((np.diff(coverage, prepend=0.0) * risk).sum()),
        best_area=float(perfect.mean()),
        wanted_error=wanted_error,
        threshold=threshold,
        held_out_coverage=float((choosing[0] >= threshold).mean()),
        held_out_error=_error(*choosing, threshold),
        promised_error=clopper_pearson_upper(wrong, int(kept.sum())),
        promising=len(kept),
        promising_answered=int(kept.sum()),
        promising_wrong=wrong,
        invented=0 if invented is None else len(invented),
        test_coverage=float(answered.mean()),
        test_error=_error(*test, threshold),
        test_error_low=low if some else None,
        test_error_high=high if some else None,
        error_without=float((~right).mean()),
    )


def _error(confidence: Scores, right: Outcomes, threshold: float) -> float | None:
    answered = confidence >= threshold
    return float((~right[answered]).mean()) if answered.any() else None


def promise(
    choosing: Judged, testing: Judged, error: float, *, confidence: float = 0.95
) -> Promise:
    """Return the lowest threshold above which at most so many answers are wrong, or a refusal.

    `choosing` and `testing` are scores, from 0 to 1, and outcomes of different questions.

    >>> sure = (np.linspace(1, 0, 100), np.arange(100) < 60)
    >>> made = promise(sure, sure, 0.1)
    >>> made.wrong, made.answered, made.threshold is not None
    (2, 62, True)
    >>> promise(sure, (sure[0][:5], sure[1][:5]), 0.1).threshold is None
    True
    """
    for name, share in (("error", error), ("confidence", confidence)):
        if not 0.0 < share < 1.0:
            raise InputError(name, f"is {share}", expected="a share between 0 and 1")
    level = 1 - confidence
    thresholds = _order(choosing, len(testing[1]), error)
    answered, wrong = _counted(testing, thresholds)
    failed = np.flatnonzero(scipy.stats.binom.cdf(wrong, answered, error) > level)
    passed = int(failed[0]) if len(failed) else len(thresholds)
    shown = max(passed - 1, 0)
    return Promise(
        error=error,
        confidence=confidence,
        threshold=float(thresholds[shown]) if passed else None,
        choosing=len(choosing[1]),
        testing=len(testing[1]),
        tested=min(passed + 1, len(thresholds)),
        answered=int(answered[shown]),
        wrong=int(wrong[shown]),
        needed=None if passed else _needed(choosing, testing, thresholds[0], error, level),
    )


def _order(choosing: Judged, testing: int, error: float) -> Scores:
    """Return thresholds downwards, from the one that is likeliest to pass the test."""
    thresholds = np.unique(np.append(choosing[0], 0.0))[::-1]
    scale = testing / max(len(choosing[0]), 1)
    answered, wrong = _counted(choosing, thresholds)
    # One more wrong answer than was seen: the luckiest of many thresholds looks better than it is.
    evidence = np.asarray(
        scipy.stats.binom.cdf(np.round((wrong + 1) * scale), np.round(answered * scale), error)
    )
    return thresholds[int(np.flatnonzero(evidence == evidence.min())[-1]) :]


def _counted(judged: Judged, thresholds: Scores) -> tuple[np.ndarray, np.ndarray]:
    """Return how many answers reach each threshold, and how many of these are wrong."""
    reached = judged[0] >= thresholds[:, None]
    return reached.sum(axis=1), (reached & ~judged[1]).sum(axis=1)


def _needed(
    choosing: Judged, testing: Judged, threshold: float, error: float, level: float
) -> int | None:
    """Return how many questions would do, if coverage and error stayed what they are."""
    everything = len(choosing[1]) + len(testing[1])
    tested = len(testing[1]) / everything if len(testing[1]) else 0.5
    counts = [_counted(some, np.array([threshold])) for some in (choosing, testing)]
    (chosen, mistaken), (answered, wrong) = ((int(a[0]), int(w[0])) for a, w in counts)
    needed = _enough((chosen + answered, mistaken + wrong), everything, error, level)
    if needed is not None and needed / tested <= everything:
        # The half that chose looks better than the half that tests, which has just refused.
        needed = _enough((answered, wrong), len(testing[1]), error, level)
    return None if needed is None else max(math.ceil(needed / tested), everything + 1)


def _enough(counts: tuple[int, int], asked: int, error: float, level: float) -> float | None:
    """Return how many testing questions pass the test with these shares; None if none do."""
    answered, wrong = counts
    observed = wrong / answered if answered else 0.0
    if observed >= error:
        return None
    count = math.ceil(math.log(level) / math.log1p(-error))  # with no wrong answer at all
    while scipy.stats.binom.cdf(math.ceil(observed * count), count, error) > level:
        count += max(1, count // 50)
        if count > MOST_QUESTIONS:
            return None
    return count * asked / answered if answered else float(count)
