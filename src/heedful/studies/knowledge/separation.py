"""How far a signal separates two kinds of answers: the area under the ROC curve.

    AUROC = P(s⁺ > s⁻) + P(s⁺ = s⁻)/2

for a random answer of each kind. Intervals are bootstrap percentiles over answers, each kind drawn
by itself. Several signals are joined by a logistic regression that is fitted on other questions.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float64
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import rankdata

from heedful.errors import InputError
from heedful.stats import percentile_interval
from heedful.studies.knowledge.records import Separation

DRAWS = 1_000
RIDGE = 1e-2
"""Keeps the weights of a regression finite where a signal separates perfectly."""

Scores = Float64[np.ndarray, " answers"]
Kind = Bool[np.ndarray, " answers"]


def auroc(positives: Scores, negatives: Float64[np.ndarray, " others"]) -> float:
    """Return the probability that a positive scores higher than a negative, ties counted half.

    >>> auroc(np.array([0.9, 0.8]), np.array([0.1, 0.8]))
    0.875
    """
    if not len(positives) or not len(negatives):
        raise InputError("scores", "of one kind are none", expected="at least one of each kind")
    ranks = rankdata(np.concatenate([positives, negatives]))
    count = len(positives)
    above = ranks[:count].sum() - count * (count + 1) / 2
    return float(above / (count * len(negatives)))


def separations(
    values: Mapping[str, Scores], positive: Kind, negative: Kind, *, seed: int = 0
) -> tuple[Separation, ...]:
    """Return the AUROC of each signal with its interval; none where a kind is missing."""
    if not positive.any() or not negative.any():
        return ()
    made = []
    for name, scores in values.items():
        low, high = _interval(scores[positive], scores[negative], seed)
        made.append(
            Separation(
                signal=name,
                auroc=auroc(scores[positive], scores[negative]),
                low=low,
                high=high,
                positives=int(positive.sum()),
                negatives=int(negative.sum()),
            )
        )
    return tuple(made)


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

        found = minimize(loss, np.zeros(len(self.names) + 1), jac=True, method="L-BFGS-B")
        self.weights: Float64[np.ndarray, " weights"] = found.x

    def scores(self, values: Mapping[str, Scores]) -> Scores:
        """Return the joined signal of other answers."""
        table = np.stack([values[name] for name in self.names], axis=1)
        made: Scores = ((table - self.mean) / self.scale) @ self.weights[1:] + self.weights[0]
        return made


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
