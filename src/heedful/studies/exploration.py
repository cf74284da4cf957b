"""The exploration of attention: the questions of the course sheets, asked as experiments.

One run ends in one record: copying, averaging, what noisy keys do to one head and to several,
K, Q and V from one sequence, order. Every number of the report's first part comes from it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from heedful.attention import (
    Addition,
    Copyable,
    Design,
    Equivariance,
    GaussianKeys,
    HeadsDesign,
    NoiseStudy,
    SequenceDesign,
    attend,
    copyable,
    design_average,
    design_copy,
    design_heads,
    design_kqv,
    error_curves,
    feature_equivariance,
    four_vector_problem,
    gaussian,
    orthonormal,
    permutation_equivariance,
    standard_layers,
    study_noise,
    try_additions,
)
from heedful.progress import Step
from heedful.records import Record
from heedful.studies.conclusions import Conclusion, Study, calculated
from heedful.workers import Pool, StartError

EXPERIMENTS = 10
"""Steps that progress is told in."""
SIZES = (3, 10, 64, 1000)
"""Numbers of keys for which averaging two is followed over β."""
N, D = 10, 16
"""The setting of the seeds' questions: ten keys, of which two matter."""
TOLERANCE = 0.01
VARIANCE = 0.5
BETA = 50.0
LARGE_NORM = 10.0
"""Of u_a to u_d where a vector is added: large, so that one input is read almost alone, as in the
sheet. Distances grow with it, so it stands beside them."""
HIDDEN_KEY = ((0.0, 0.0), (1.0, 0.2), (-0.2, 1.0), (-1.0, -0.4), (0.3, -1.0), (0.4, 0.3))
"""Six keys in the plane; the first and the last lie inside the hull of the others."""


NOISY_KEY, EVERYWHERE = 0, (2, 1)
"""Where the best heads are searched for: one key noisy, or every key and so many heads. What takes
longest comes first."""
CHILD = "heedful.studies.exploration:child_search"
"""What a child process of the pool runs."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Averaging(Record):
    """How well β(k_a + k_b) averages two values, over β and the number of keys."""

    betas: Float[np.ndarray, " b"]
    """Scales of the query."""
    errors: dict[int, Float[np.ndarray, " b"]]
    """For each number of keys, the share of the reading that goes astray."""
    unscaled: dict[int, float]
    """For each number of keys, the weight of each wanted key under k_a + k_b itself."""
    needed: dict[int, float]
    """For each number of keys, the scale that reaches the tolerance."""
    tolerance: float
    """The tolerance."""


@dataclass(frozen=True, eq=False, kw_only=True)
class NoiseContrast(Record):
    """One head, two heads, and one head that looks away, under the same noise."""

    names: tuple[str, ...]
    """What each choice of queries is."""
    commands: tuple[str, ...]
    """The command that shows each."""
    studies: tuple[NoiseStudy, ...]
    """What the noise does to each."""
    draws: tuple[Float[np.ndarray, " draws"], ...]
    """α_a of each choice in the same draws of the noisy key."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Exploration(Study):
    """Everything the first part of the report tells."""

    averaging: Averaging
    average: Design
    """The least query that averages two of ten orthonormal keys."""
    hidden: Design
    """A key inside the hull: the proof that no query copies it."""
    plane: Float[np.ndarray, "n 2"]
    """The keys of that example."""
    crowd: Copyable
    """How many of 500 Gaussian keys in four dimensions can be copied."""
    noise: NoiseContrast
    heads: HeadsDesign
    """The best heads found under the noise, and their curves."""
    everywhere: dict[int, float]
    """Error of the best heads found when every key is noisy, by the number of heads."""
    sequence: SequenceDesign
    """K, Q and V of the four-vector problem."""
    without_matrices: SequenceDesign
    """The same problem with no matrices: the proof that it is impossible."""
    additions: tuple[Addition, ...]
    """What adding u_c or u_d to x_2 really does, with vectors of `addition_norm`."""
    addition_norm: float
    """Norm of u_a to u_d there."""
    order: dict[str, Equivariance]
    """Which layers respect a change of order."""
    features: Equivariance
    """Permuting features instead of tokens."""

    @property
    def conclusions(self) -> tuple[Conclusion, ...]:
        """What was calculated, weightiest first; nothing here was drawn or trained."""
        one, two, away = (study.exact for study in self.noise.studies)
        limit, crowd = self.noise.studies[1].limit, self.crowd
        textbook = self.average.certificate.textbook_norm
        return (
            calculated(
                "The query k_a + k_b does not average two of ten values: each gets a weight of "
                "{weight:.2f}. It takes a scale of {scale:.2f} for an error of 1 %, and "
                "{many:.2f} among a thousand keys.",
                weight=self.averaging.unscaled[10],
                scale=self.averaging.needed[10],
                many=self.averaging.needed[1000],
            ),
            calculated(
                "One head withstands one noisy key: a query that looks away from the noisy "
                "direction gives it a weight with a standard deviation of {std:.3f}. Where every "
                "key is noisy, the best two heads found err by {two:.2g}, the best single one "
                "found by {one:.2g}.",
                std=None if away is None else float(away.std[0]),
                two=self.everywhere[2],
                one=self.everywhere[1],
            ),
            calculated(
                "The textbook query β(k_a + k_b) is not the shortest: pushing the others away does "
                "the same with a norm {shorter:.0%} smaller, and no query with a norm below "
                "{bound:.3f} does it.",
                shorter=None
                if self.average.norm is None or textbook is None
                else 1 - self.average.norm / textbook,
                bound=self.average.certificate.norm_lower_bound,
            ),
            calculated(
                "With one noisy key, two heads are steadier than one (standard deviation {two:.3f} "
                "instead of {one:.3f} at β = {beta:g}), but they fail in {failing:.1%} of the "
                "draws there, and in {limit:.1%} however large the scale.",
                two=None if two is None else float(two.std[0]),
                one=None if one is None else float(one.std[0]),
                beta=BETA,
                failing=None if two is None else two.failure_probability,
                limit=None if limit is None else limit.failure_probability,
            ),
            calculated(
                "Of {keys} random keys in four dimensions {count} can be copied; for {proved} "
                "others there is a proof that no query can, and {open} are open.",
                keys=len(crowd.copyable),
                count=crowd.count,
                proved=len(crowd.copyable) - crowd.count - len(crowd.undecided),
                open=len(crowd.undecided),
            ),
            calculated(
                "The four-vector problem has a solution with K, Q and V (error {error:.2g}) and "
                "none without: there an output would have to leave the convex hull of its inputs "
                "by at least {distance:.2g}.",
                error=self.sequence.error,
                distance=self.without_matrices.certificate.distance,
            ),
        )


def explore(progress: Step | None = None) -> Exploration:
    """Run every experiment of the exploration."""
    done = itertools.count(1)

    def step() -> None:
        if progress is not None:
            progress(next(done), EXPERIMENTS)

    averaging = _averaging()
    step()
    average = design_average(orthonormal(N, D), [0, 1], tolerance=TOLERANCE)
    plane = np.asarray(HIDDEN_KEY)
    hidden = design_copy(plane, 0, tolerance=TOLERANCE)
    step()
    crowd = copyable(gaussian(500, 4))
    step()
    noise = _noise()
    step()
    searched = _searches(step)
    four = four_vector_problem()
    sequence = design_kqv(four.x, four.wanted, tolerance=TOLERANCE, basis=four.basis)
    without = design_kqv(four.x, four.wanted, form="identity", basis=four.basis)
    large = four_vector_problem(norm=LARGE_NORM)
    additions = try_additions(
        large.x,
        1,
        large.wanted[1],
        {name: large.basis[name] for name in ("u_c", "u_d")},
        basis=large.basis,
    )
    step()
    layers = standard_layers()
    pooled = "mean of rows"  # one row comes out, so there is no order left to respect
    order = {
        name: permutation_equivariance(layer) for name, layer in layers.items() if name != pooled
    }
    step()
    features = feature_equivariance(layers["self-attention"])
    step()
    return Exploration(
        averaging=averaging,
        average=average,
        hidden=hidden,
        plane=plane,
        crowd=crowd,
        noise=noise,
        heads=searched[NOISY_KEY],
        everywhere={count: searched[count].error for count in sorted(EVERYWHERE)},
        sequence=sequence,
        without_matrices=without,
        additions=tuple(additions),
        addition_norm=LARGE_NORM,
        order=order,
        features=features,
    )


def _searches(step: Callable[[], None]) -> dict[int, HeadsDesign]:
    """Return the best heads found in each setting, searched for in child processes.

    These have one thread. The optimiser gives BLAS vectors of a hundred numbers, and threads that
    share such a vector wait for one another longer than they work.
    """
    settings, outcomes = (NOISY_KEY, *EVERYWHERE), []
    with suppress(StartError), Pool(CHILD) as pool:
        outcomes = pool.map(settings, progress=lambda _done, _total: step())
    found = {
        setting: outcome.value
        for setting, outcome in zip(settings, outcomes, strict=False)
        if outcome.kind == "value"
    }
    # What no child has found is searched for here, where an error reaches the user.
    return {setting: found.get(setting) or best_heads(setting) for setting in settings}


def child_search() -> Callable[[int], HeadsDesign]:
    """Return what a child process does with a setting."""
    return best_heads


def best_heads(setting: int) -> HeadsDesign:
    """Return the best heads found: two for one noisy key, with curves, or so many for ten."""
    means = orthonormal(N, D)
    if setting != NOISY_KEY:
        keys = GaussianKeys.of(means, noisy=dict.fromkeys(range(N), VARIANCE))
        return design_heads(keys, of=[0, 1], heads=setting, norm=BETA, starts=2)
    keys = GaussianKeys.of(means, noisy={0: VARIANCE})
    heads = design_heads(keys, of=[0, 1], heads=2, norm=BETA, starts=4)
    return error_curves(heads, keys, norms=(2.0, 5.0, 10.0, 20.0, 50.0), head_counts=(1, 2, 4, 8))


def _averaging() -> Averaging:
    betas = np.linspace(0.0, 14.0, 141)
    errors = {}
    for n in SIZES:
        # Orthonormal keys: logits are β for two keys and 0 for the others.
        keys = np.zeros((n, 1))
        keys[:2] = 1.0
        reading = attend(betas[:, None], keys)
        errors[n] = 1.0 - np.asarray(reading.mass([0, 1]))
    return Averaging(
        betas=betas,
        errors=errors,
        unscaled={n: float(math.e / (2 * math.e + n - 2)) for n in SIZES},
        needed={n: max(0.0, math.log((n - 2) * (1 - TOLERANCE) / (2 * TOLERANCE))) for n in SIZES},
        tolerance=TOLERANCE,
    )


def _noise() -> NoiseContrast:
    means = orthonormal(N, D)
    keys = GaussianKeys.of(means, noisy={0: VARIANCE})
    others = "".join(f"-{key}" for key in range(2, N))
    away = -BETA / math.sqrt(N - 2) * means[2:].sum(axis=0)
    choices = {
        "one head at both keys": BETA * (means[:1] + means[1:2]),
        "two heads, one at each": BETA * means[:2],
        "one head, looking away": away[None, :],
    }
    flags = f"--n {N} --d {D} --noisy 0 --variance {VARIANCE} --target 0 1"
    commands = (
        f"heed noise {flags} --heads 0+1 --beta {BETA:g}",
        f"heed noise {flags} --heads 0 1 --beta {BETA:g}",
        f"heed noise {flags} --heads={others} --beta {BETA / math.sqrt(N - 2):.4f}",
    )
    target = np.zeros(N)
    target[:2] = 0.5
    studies = tuple(study_noise(keys, queries, target=target) for queries in choices.values())
    size = np.random.default_rng(0).standard_normal(4000) * math.sqrt(VARIANCE)
    draws = tuple(_draws(queries, means, size) for queries in choices.values())
    return NoiseContrast(names=tuple(choices), commands=commands, studies=studies, draws=draws)


def _draws(
    queries: Float[np.ndarray, "H d"], means: Float[np.ndarray, "n d"], size: np.ndarray
) -> Float[np.ndarray, " draws"]:
    """Return the layer's α of the noisy key in each draw of its length."""
    keys = np.broadcast_to(means, (len(size), *means.shape)).copy()
    keys[:, 0] *= (1.0 + size)[:, None]
    weights = attend(np.broadcast_to(queries, (len(size), *queries.shape)), keys).weights
    alpha: np.ndarray = np.asarray(weights).mean(axis=1)[:, 0]
    return alpha
