"""What a layer does to order: is this callable permutation-equivariant?

    f(P X) = P f(X)              equivariance: shuffled tokens give equally shuffled outputs
    f(P X) = f(X)                invariance: order does not matter at all
    f(P A Pᵀ) = P f(A) Pᵀ        conjugation, for maps of square matrices such as softmax
    f(X Π) = f(X) Π              the other side: Π permutes features, not tokens

A permutation is written as the tuple π with (P X)[r] = X[π[r]]. The layer is a black box, so
"holds" is evidence, not proof; "fails" is certain, and comes with the simplest case found:
two positions exchanged, the fewest tokens, small whole numbers in X where they suffice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from heedful.attention.arrays import Array, float64, number_of, numpy64
from heedful.attention.laws import (
    CONJUGATION,
    FEATURES,
    INVARIANCE,
    ROWS,
    Law,
    Permutation,
    Runner,
)
from heedful.attention.layers import Layer
from heedful.errors import InputError
from heedful.records import Record


@dataclass(frozen=True, eq=False, kw_only=True)
class Equivariance(Record):
    """Whether a layer respects permutations, and the simplest case in which it does not."""

    law: str
    """The equation that was tried, such as f(PX) = P f(X)."""
    holds: bool
    """No trial broke the law by more than the tolerance."""
    error: float
    """Largest entry of |left − right|; of the case shown when the law fails."""
    relative: float
    """`error` as a share of the largest entry of f(X); this is held against the tolerance."""
    tolerance: float
    """Largest relative error that counts as rounding."""
    permutation: Permutation | None
    """π with (PX)[r] = X[π[r]], the simplest that breaks the law; None if it holds."""
    input: Array
    """The X that breaks the law; None if it holds."""
    left: Array
    """The left side of the law for that case; None if it holds."""
    right: Array
    """The right side of the law for that case; None if it holds."""
    trials: int
    """Inputs drawn; each met every exchange of neighbours and one random permutation."""
    statement: str
    """The finding in one sentence."""


def permutation_equivariance(
    layer: Layer,
    *,
    length: int = 6,
    width: int = 4,
    trials: int = 20,
    seed: int = 0,
    tolerance: float | None = None,
    example: Any = None,
) -> Equivariance:
    """Try f(PX) = P f(X): do shuffled tokens give equally shuffled outputs?

    The layer takes X with one row a token, (length, width), and gives one row a token.
    `example` is an input of your own: its library, dtype and shape are used for every draw
    (a torch layer wants a torch example). The tolerance is 1e-9 in float64 and √eps in
    lower precision.

    >>> from heedful.attention.layers import standard_layers
    >>> layers = standard_layers()
    >>> permutation_equivariance(layers["self-attention"]).holds
    True
    >>> permutation_equivariance(layers["causal self-attention"]).permutation
    (1, 0)
    """
    return _try(layer, ROWS, length, width, trials, seed, tolerance, example)


def permutation_invariance(
    layer: Layer,
    *,
    length: int = 6,
    width: int = 4,
    trials: int = 20,
    seed: int = 0,
    tolerance: float | None = None,
    example: Any = None,
) -> Equivariance:
    """Try f(PX) = f(X): does the layer ignore the order of its rows?"""
    return _try(layer, INVARIANCE, length, width, trials, seed, tolerance, example)


def conjugation_equivariance(
    layer: Layer,
    *,
    length: int = 6,
    trials: int = 20,
    seed: int = 0,
    tolerance: float | None = None,
    example: Any = None,
) -> Equivariance:
    """Try f(PAPᵀ) = P f(A) Pᵀ on square matrices A: what softmax of scores must satisfy."""
    return _try(layer, CONJUGATION, length, length, trials, seed, tolerance, example)


def feature_equivariance(
    layer: Layer,
    *,
    length: int = 6,
    width: int = 4,
    trials: int = 20,
    seed: int = 0,
    tolerance: float | None = None,
    example: Any = None,
) -> Equivariance:
    """Try f(XΠ) = f(X) Π, where Π stands on the right and so permutes features, not tokens."""
    return _try(layer, FEATURES, length, width, trials, seed, tolerance, example)


def _try(
    layer: Layer,
    law: Law,
    length: int,
    width: int,
    trials: int,
    seed: int,
    tolerance: float | None,
    example: Any,
) -> Equivariance:
    if not callable(layer):
        raise InputError("layer", f"{layer!r} cannot be called", expected="a function of X")
    pattern = _pattern(example, length, width, law)
    if isinstance(trials, bool) or trials < 1:
        raise InputError("trials", f"is {trials}", expected="at least 1 was expected")
    allowed = _allowed(tolerance, pattern)
    run = Runner(layer, law, pattern)
    rng = np.random.default_rng(seed)
    shape = tuple(pattern.shape)
    _same_twice(run, rng.standard_normal(shape))

    worst, worst_relative = 0.0, 0.0
    for trial in range(trials):
        # Three sizes of input: saturated, ordinary and nearly linear behaviour.
        X = rng.standard_normal(shape) * (1.0, 10.0, 0.1)[trial % 3]
        if trial == 0 and example is not None:
            X = numpy64("example", example)
        output = run(X)
        for order in _orders(shape[law.axis], rng):
            error, relative, _, _ = run.compare(X, order, output)
            if relative > allowed:
                return _broken(run, X, order, allowed, trial + 1, fixed=example is not None)
            worst, worst_relative = max(worst, error), max(worst_relative, relative)
    return Equivariance(
        law=law.equation,
        holds=True,
        error=worst,
        relative=worst_relative,
        tolerance=allowed,
        permutation=None,
        input=None,
        left=None,
        right=None,
        trials=trials,
        statement=(
            f"{law.equation} held in {trials} trials of shape {shape} with a largest relative "
            f"error of {worst_relative:.1e}: strong evidence, not a proof"
        ),
    )


def _broken(
    run: Runner, X: Any, order: Permutation, allowed: float, trial: int, *, fixed: bool
) -> Equivariance:
    case, order = _simplest(run, X, order, allowed, fixed=fixed)
    error, relative, left, right = run.compare(case, order, run(case))
    moved = [place for place, source in enumerate(order) if place != source]
    what = (
        f"exchanging {run.law.acts_on} {moved[0]} and {moved[1]}"
        if len(moved) == 2
        else f"the permutation {order} of {run.law.acts_on}"
    )
    return Equivariance(
        law=run.law.equation,
        holds=False,
        error=error,
        relative=relative,
        tolerance=allowed,
        permutation=order,
        input=case,
        left=left,
        right=right,
        trials=trial,
        statement=(
            f"{run.law.equation} fails: {what} of an input of shape {case.shape} leaves a "
            f"difference of {error:.3g}, {100 * relative:.3g} % of the largest output"
        ),
    )


def _simplest(
    run: Runner, X: Any, order: Permutation, allowed: float, *, fixed: bool
) -> tuple[Any, Permutation]:
    """Return the first case that breaks the law, from few rows and small numbers upwards."""
    rows, columns = X.shape
    for tokens in range(2, rows + 1):
        # Features cannot be dropped, the weights are made for them; rows can.
        if (fixed or run.law.axis == 1) and tokens < rows:
            continue
        shape = (tokens, tokens if run.law.square else columns)
        for case in _simple_inputs(shape, X[: shape[0], : shape[1]]):
            try:
                output = run(case)
                for exchange in _transpositions(shape[run.law.axis]):
                    if run.compare(case, exchange, output)[1] > allowed:
                        return case, exchange
            except InputError:
                break  # made for one length only, or undefined on so simple an input
    return X, order


def _simple_inputs(shape: tuple[int, int], drawn: Any) -> Iterator[Any]:
    ones = np.zeros(shape)
    ones[0, 0] = 1.0
    yield ones
    yield np.eye(*shape)
    yield np.arange(shape[0] * shape[1], dtype=float).reshape(shape) % 5 - 2
    yield np.round(drawn)
    yield drawn


def _transpositions(count: int) -> Iterator[Permutation]:
    for first, second in itertools.combinations(range(count), 2):
        order = list(range(count))
        order[first], order[second] = second, first
        yield tuple(order)


def _orders(count: int, rng: np.random.Generator) -> Iterator[Permutation]:
    """Yield the exchanges of neighbours, which generate every permutation, and a random one."""
    for first in range(count - 1):
        yield (*range(first), first + 1, first, *range(first + 2, count))
    yield tuple(int(place) for place in rng.permutation(count))


def _same_twice(run: Runner, X: Any) -> None:
    if not np.array_equal(run(X), run(X)):
        raise InputError(
            "layer",
            "gave two different outputs for one input",
            expected="a function of its input alone was expected",
            way_out="switch off dropout and other randomness, for instance with .eval()",
        )


def _pattern(example: Any, length: int, width: int, law: Law) -> Array:
    if example is None:
        for name, value in (("length", length), ("width", width)):
            if isinstance(value, bool) or value < 1:
                raise InputError(name, f"is {value}", expected="at least 1 was expected")
        pattern = np.zeros((length, width))
    else:
        float64("example", example, rank=2)
        pattern = example if is_array_api_obj(example) else np.asarray(example, dtype=float)
        xp = array_namespace(pattern)
        if not xp.isdtype(pattern.dtype, "real floating"):
            pattern = xp.astype(pattern, xp.float64)
    if law.square and pattern.shape[0] != pattern.shape[1]:
        raise InputError(
            "example",
            f"has shape {tuple(pattern.shape)}",
            expected=f"a square matrix was expected for {law.equation}",
        )
    if pattern.shape[law.axis] < 2:
        raise InputError(
            "length" if law.axis == 0 else "width",
            f"is {pattern.shape[law.axis]}",
            expected=f"at least 2 {law.acts_on} were expected: one alone cannot be permuted",
        )
    return pattern


def _allowed(tolerance: float | None, pattern: Array) -> float:
    if tolerance is None:
        eps = float(array_namespace(pattern).finfo(pattern.dtype).eps)
        return 1e-9 if eps < 1e-12 else float(np.sqrt(eps))
    number = number_of("tolerance", tolerance)
    if number < 0:
        raise InputError("tolerance", f"is {number:g}", expected="0 or more was expected")
    return number


__all__ = [
    "Equivariance",
    "conjugation_equivariance",
    "feature_equivariance",
    "permutation_equivariance",
    "permutation_invariance",
]
