"""What a layer does to order: is this callable permutation-equivariant?

    f(P X) = P f(X)              equivariance: shuffled tokens give equally shuffled outputs
    f(P X) = f(X)                invariance: order does not matter at all
    f(P A Pᵀ) = P f(A) Pᵀ        conjugation, for maps of square matrices such as softmax
    f(X Π) = f(X) Π              the other side: Π permutes features, not tokens

A permutation is written as the tuple π with (P X)[r] = X[π[r]]. The layer is a black box, so
"holds" is evidence, not proof; "fails" is certain, and comes with the simplest case found:
two positions exchanged, the fewest tokens, small whole numbers in X where they suffice.

The first half of the module are layers to try the laws on, as pure functions of X, (T, d), with
one row a token. A layer gives back the library it was given: NumPy and torch share it.

    H = softmax(s X W_Q (X W_K)ᵀ) X W_V                  self-attention, s = 1/√d
    Z = ReLU(H W_1 + 1 b_1) W_2 + 1 b_2                  feed-forward, row by row
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from heedful.arrays import Array, float64, number_of, numpy64, real, whole
from heedful.attention.operation import Scale, attend, causal, softmax
from heedful.errors import HeedfulError, InputError
from heedful.records import Record

Layer = Callable[[Array], Array]
"""A function from an array to an array."""
Permutation = tuple[int, ...]
"""π with (P X)[r] = X[π[r]]."""

LONGEST = 64
"""Rows of the position table that `standard_layers` draws."""


def self_attention(
    X: Any, W_Q: Any, W_K: Any, W_V: Any, *, scale: Scale = "sqrt_d", mask: Any = None
) -> Array:
    """Return softmax(s X W_Q (X W_K)ᵀ) X W_V: one head without an output projection.

    >>> self_attention([[1.0, 0.0], [1.0, 0.0]], np.eye(2), np.eye(2), np.eye(2))
    array([[1., 0.],
           [1., 0.]])
    """
    X = float64("X", X, rank=2)
    Q, K, V = (X @ _weight(name, W, X) for name, W in (("W_Q", W_Q), ("W_K", W_K), ("W_V", W_V)))
    return attend(Q, K, V, scale=scale, mask=mask).output


def feed_forward(X: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Array:
    """Return ReLU(X W_1 + b_1) W_2 + b_2: the same map for every row."""
    X = float64("X", X, rank=2)
    hidden = _weight("W_1", W_1, X)
    xp = array_namespace(X)
    H = relu(X @ hidden + _bias("b_1", b_1, hidden.shape[1], xp))
    out = _weight("W_2", W_2, H)
    return H @ out + _bias("b_2", b_2, out.shape[1], xp)


def relu(X: Any) -> Array:
    """Return max(x, 0), entry by entry."""
    X = float64("X", X)
    return array_namespace(X).clip(X, 0.0, None)


def softmax_rows(A: Any) -> Array:
    """Return exp(A) with each row scaled to sum to 1."""
    return softmax(float64("A", A))


def add_positions(X: Any, table: Any) -> Array:
    """Return X + Φ: row t gets row t of the table, whatever token stands there."""
    X = float64("X", X, rank=2)
    table = _like("table", table, array_namespace(X))
    if table.shape[1] != X.shape[1] or table.shape[0] < X.shape[0]:
        raise InputError(
            "table",
            f"has shape {tuple(table.shape)}",
            expected=f"{X.shape[1]} columns and at least {X.shape[0]} rows were expected",
            hint="give a longer or wider table of positions",
        )
    return X + table[: X.shape[0], :]


def mean_rows(X: Any) -> Array:
    """Return the average of the rows: the simplest layer that ignores order altogether."""
    X = float64("X", X, rank=2)
    return array_namespace(X).mean(X, axis=0)


def standard_layers(width: int = 4, seed: int = 0) -> dict[str, Layer]:
    """Return named layers with random weights, each a function of X alone, (T, width).

    >>> [name for name in standard_layers(2) if "causal" in name]
    ['causal self-attention']
    """
    width = whole("width", width, 1)
    rng = np.random.default_rng(seed)
    W_Q, W_K, W_V, W_1, W_2 = rng.standard_normal((5, width, width))
    b_1, b_2 = rng.standard_normal((2, width))
    table = rng.standard_normal((LONGEST, width))

    def heads(X: Array) -> Array:
        return self_attention(X, W_Q, W_K, W_V)

    def dense(X: Array) -> Array:
        return feed_forward(X, W_1, b_1, W_2, b_2)

    def masked(X: Array) -> Array:
        return self_attention(X, W_Q, W_K, W_V, mask=causal(X.shape[0]))

    return {
        "self-attention": heads,
        "feed-forward": dense,
        "self-attention + feed-forward": lambda X: dense(heads(X)),
        "causal self-attention": masked,
        "positions + self-attention": lambda X: heads(add_positions(X, table)),
        "relu": relu,
        "softmax of rows": softmax_rows,
        "mean of rows": mean_rows,
    }


def _weight(name: str, value: Any, X: Array) -> Array:
    weight = _like(name, value, array_namespace(X))
    if weight.shape[0] != X.shape[1]:
        raise InputError(
            name,
            f"has {weight.shape[0]} rows",
            expected=f"{X.shape[1]} were expected, one for each column of what it multiplies",
        )
    return weight


def _bias(name: str, value: Any, width: int, xp: Any) -> Array:
    bias = float64(name, xp.asarray(value), rank=1)
    if bias.shape[0] != width:
        raise InputError(name, f"has {bias.shape[0]} entries", expected=f"{width} were expected")
    return bias


def _like(name: str, value: Any, xp: Any) -> Array:
    # A matrix of weights follows the library of X, so that one layer serves both.
    array = float64(name, value, rank=2)
    return array if array_namespace(array) is xp else xp.asarray(array)


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
    permutation: Permutation | None = None
    """π with (PX)[r] = X[π[r]], the simplest that breaks the law; None if it holds."""
    input: Array = None
    """The X that breaks the law; None if it holds."""
    left: Array = None
    """The left side of the law for that case; None if it holds."""
    right: Array = None
    """The right side of the law for that case; None if it holds."""
    trials: int
    """Inputs drawn; each met every exchange of neighbours and one random permutation."""
    statement: str
    """The finding in one sentence."""


@dataclass(frozen=True, kw_only=True)
class Law:
    """f(moved input) = expected output, for every permutation: call it on a layer to try it."""

    equation: str
    """The law as it is written."""
    acts_on: str = "positions"
    """What is exchanged, for the sentence: positions or features."""
    axis: int = 0
    """The axis of the input whose size is the number of things permuted."""
    square: bool = False
    """Whether the input is a square matrix."""
    moved: Callable[[Any, list[int]], Any]
    """The input with its positions or features in another order."""
    expected: Callable[[Any, list[int]], Any]
    """What the output must then be."""
    fits: Callable[[tuple[int, ...], tuple[int, ...]], bool]
    """Whether the law makes sense for shapes (input, output)."""
    shape_wanted: str = ""
    """What to say if it does not."""

    def __call__(
        self,
        layer: Layer,
        *,
        length: int = 6,
        width: int = 4,
        trials: int = 20,
        seed: int = 0,
        tolerance: float | None = None,
        example: Any = None,
    ) -> Equivariance:
        """Try the law on a layer that takes X with one row a token, (length, width).

        Where the law is about square matrices, `length` is both sides. `example` is an input of
        your own: its library, dtype and shape are used for every draw (a torch layer wants a
        torch example). The tolerance is 1e-9 in float64 and √eps in lower precision.

        >>> layers = standard_layers()
        >>> permutation_equivariance(layers["self-attention"]).holds
        True
        >>> permutation_equivariance(layers["causal self-attention"]).permutation
        (1, 0)
        """
        if not callable(layer):
            raise InputError("layer", f"{layer!r} cannot be called", expected="a function of X")
        pattern = self._pattern(example, length, length if self.square else width)
        trials = whole("trials", trials, 1)
        allowed = _allowed(tolerance, pattern)
        run = _Runner(layer, self, pattern)
        rng = np.random.default_rng(seed)
        shape = tuple(pattern.shape)
        run.refuse_randomness(rng.standard_normal(shape))

        worst, worst_relative = 0.0, 0.0
        for trial in range(trials):
            # Three sizes of input: saturated, ordinary and nearly linear behaviour.
            X = rng.standard_normal(shape) * (1.0, 10.0, 0.1)[trial % 3]
            if trial == 0 and example is not None:
                X = numpy64("example", example)
            output = run(X)
            for order in _orders(shape[self.axis], rng):
                error, relative, _, _ = run.compare(X, order, output)
                if relative > allowed:
                    return _broken(run, X, order, allowed, trial + 1, fixed=example is not None)
                worst, worst_relative = max(worst, error), max(worst_relative, relative)
        return Equivariance(
            law=self.equation,
            holds=True,
            error=worst,
            relative=worst_relative,
            tolerance=allowed,
            trials=trials,
            statement=(
                f"{self.equation} held in {trials} trials of shape {shape} with a largest "
                f"relative error of {worst_relative:.1e}: strong evidence, not a proof"
            ),
        )

    def _pattern(self, example: Any, length: int, width: int) -> Array:
        """Return an array whose library, dtype and shape every input has."""
        if example is None:
            pattern = np.zeros((whole("length", length, 1), whole("width", width, 1)))
        else:
            pattern = real("example", example, rank=2)
        if self.square and pattern.shape[0] != pattern.shape[1]:
            raise InputError(
                "example",
                f"has shape {tuple(pattern.shape)}",
                expected=f"a square matrix was expected for {self.equation}",
            )
        if pattern.shape[self.axis] < 2:
            raise InputError(
                "length" if self.axis == 0 else "width",
                f"is {pattern.shape[self.axis]}",
                expected=f"at least 2 {self.acts_on} were expected: one alone cannot be permuted",
            )
        return pattern


permutation_equivariance = Law(
    equation="f(PX) = P f(X)",
    moved=lambda X, order: X[order, ...],
    expected=lambda Y, order: Y[order, ...],
    fits=lambda given, got: len(got) >= 1 and got[0] == given[0],
    shape_wanted="one row of output for each row of input was expected",
)
"""Try f(PX) = P f(X): do shuffled tokens give equally shuffled outputs?"""
permutation_invariance = Law(
    equation="f(PX) = f(X)",
    moved=lambda X, order: X[order, ...],
    expected=lambda Y, order: Y,
    fits=lambda given, got: True,
)
"""Try f(PX) = f(X): does the layer ignore the order of its rows?"""
conjugation_equivariance = Law(
    equation="f(PAPᵀ) = P f(A) Pᵀ",
    square=True,
    moved=lambda A, order: A[order, ...][:, order],
    expected=lambda B, order: B[order, ...][:, order],
    fits=lambda given, got: got == given,
    shape_wanted="a square matrix of the size of the input was expected",
)
"""Try f(PAPᵀ) = P f(A) Pᵀ on square matrices A: what softmax of scores must satisfy."""
feature_equivariance = Law(
    equation="f(XΠ) = f(X) Π",
    acts_on="features",
    axis=1,
    moved=lambda X, order: X[:, order],
    expected=lambda Y, order: Y[:, order],
    fits=lambda given, got: len(got) == 2 and got[1] == given[1],
    shape_wanted="one column of output for each column of input was expected",
)
"""Try f(XΠ) = f(X) Π, where Π stands on the right and so permutes features, not tokens."""


@dataclass(frozen=True)
class _Runner:
    """A layer with its law: calls it on copies, in the right library, and checks what returns."""

    layer: Layer
    law: Law
    pattern: Array

    def __call__(self, X: Any) -> Any:
        xp = array_namespace(self.pattern)
        given = xp.asarray(X.copy(), dtype=self.pattern.dtype)  # a layer may write into its input
        try:
            output = self.layer(given)
        except HeedfulError:
            raise
        except Exception as error:
            raise InputError(
                "layer",
                f"failed on an input of shape {X.shape} ({type(error).__name__}: {error})",
                expected="a layer that takes this shape was expected",
                hint="set length and width, or give an example of its input",
            ) from error
        output = output if is_array_api_obj(output) else np.asarray(output)
        if not self.law.fits(X.shape, tuple(output.shape)):
            raise InputError(
                "layer",
                f"turned shape {X.shape} into {tuple(output.shape)}",
                expected=f"{self.law.shape_wanted} for {self.law.equation}",
            )
        return numpy64("the layer's output", output)

    def refuse_randomness(self, X: Any) -> None:
        if not np.array_equal(self(X), self(X)):
            raise InputError(
                "layer",
                "gave two different outputs for one input",
                expected="a function of its input alone was expected",
                hint="switch off dropout and other randomness, for instance with .eval()",
            )

    def compare(self, X: Any, order: Permutation, output: Any) -> tuple[float, float, Any, Any]:
        """Return the error, the relative error, and both sides of the law."""
        left = self(self.law.moved(X, list(order)))
        right = self.law.expected(output, list(order))
        if left.shape != right.shape:
            raise InputError(
                "layer",
                f"gave shapes {left.shape} and {right.shape} for two orders of one input",
                expected="one shape was expected",
            )
        error = float(np.max(np.abs(left - right)))
        largest = float(np.max(np.abs(right)))
        return error, error / largest if largest > 0 else error, left, right


def _broken(
    run: _Runner, X: Any, order: Permutation, allowed: float, trial: int, *, fixed: bool
) -> Equivariance:
    """Return the record of a law that fails, with the simplest case that shows it."""
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
    run: _Runner, X: Any, order: Permutation, allowed: float, *, fixed: bool
) -> tuple[Any, Permutation]:
    """Return the first case that breaks the law, from few rows and small numbers upwards."""
    rows, columns = X.shape
    # Features cannot be dropped, the weights are made for them; rows can.
    fewest = rows if fixed or run.law.axis == 1 else 2
    for tokens in range(fewest, rows + 1):
        shape = (tokens, tokens if run.law.square else columns)
        for case in _simple_inputs(shape, X[: shape[0], : shape[1]]):
            try:
                output = run(case)
                for first, second in itertools.combinations(range(shape[run.law.axis]), 2):
                    exchange = list(range(shape[run.law.axis]))
                    exchange[first], exchange[second] = second, first
                    if run.compare(case, tuple(exchange), output)[1] > allowed:
                        return case, tuple(exchange)
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


def _orders(count: int, rng: np.random.Generator) -> Iterator[Permutation]:
    """Yield the exchanges of neighbours, which generate every permutation, and a random one."""
    for first in range(count - 1):
        yield (*range(first), first + 1, first, *range(first + 2, count))
    yield tuple(int(place) for place in rng.permutation(count))


def _allowed(tolerance: float | None, pattern: Array) -> float:
    if tolerance is None:
        eps = float(array_namespace(pattern).finfo(pattern.dtype).eps)
        return 1e-9 if eps < 1e-12 else float(np.sqrt(eps))
    return number_of("tolerance", tolerance, least=0)
