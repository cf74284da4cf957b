"""The laws of order that `properties` tries, and the layer under test as a checked function.

A law says how the input is moved by a permutation and how the output must follow. The runner
calls a layer on copies in its own library and precision, and refuses what cannot be judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from heedful.attention.arrays import Array, float64
from heedful.attention.layers import Layer
from heedful.errors import HeedfulError, InputError

Permutation = tuple[int, ...]
"""π with (P X)[r] = X[π[r]]."""


@dataclass(frozen=True)
class Law:
    """f(moved input) = expected output, for every permutation."""

    equation: str
    """The law as it is written."""
    acts_on: str
    """What is exchanged, for the sentence: positions or features."""
    axis: int
    """The axis of the input whose size is the number of things permuted."""
    square: bool
    """Whether the input is a square matrix."""
    moved: Callable[[Any, list[int]], Any]
    """The input with its positions or features in another order."""
    expected: Callable[[Any, list[int]], Any]
    """What the output must then be."""
    fits: Callable[[tuple[int, ...], tuple[int, ...]], bool]
    """Whether the law makes sense for shapes (input, output)."""
    shape_wanted: str
    """What to say if it does not."""


ROWS = Law(
    equation="f(PX) = P f(X)",
    acts_on="positions",
    axis=0,
    square=False,
    moved=lambda X, order: X[order, ...],
    expected=lambda Y, order: Y[order, ...],
    fits=lambda given, got: len(got) >= 1 and got[0] == given[0],
    shape_wanted="one row of output for each row of input was expected",
)
INVARIANCE = Law(
    equation="f(PX) = f(X)",
    acts_on="positions",
    axis=0,
    square=False,
    moved=lambda X, order: X[order, ...],
    expected=lambda Y, order: Y,
    fits=lambda given, got: True,
    shape_wanted="",
)
CONJUGATION = Law(
    equation="f(PAPᵀ) = P f(A) Pᵀ",
    acts_on="positions",
    axis=0,
    square=True,
    moved=lambda A, order: A[order, ...][:, order],
    expected=lambda B, order: B[order, ...][:, order],
    fits=lambda given, got: got == given,
    shape_wanted="a square matrix of the size of the input was expected",
)
FEATURES = Law(
    equation="f(XΠ) = f(X) Π",
    acts_on="features",
    axis=1,
    square=False,
    moved=lambda X, order: X[:, order],
    expected=lambda Y, order: Y[:, order],
    fits=lambda given, got: len(got) == 2 and got[1] == given[1],
    shape_wanted="one column of output for each column of input was expected",
)


class Runner:
    """A layer with its law: calls it on copies, in the right library, and checks what returns."""

    def __init__(self, layer: Layer, law: Law, pattern: Array) -> None:
        self.layer = layer
        self.law = law
        self.pattern = pattern

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
                way_out="set length and width, or give an example of its input",
            ) from error
        output = output if is_array_api_obj(output) else np.asarray(output)
        if not self.law.fits(X.shape, tuple(output.shape)):
            raise InputError(
                "layer",
                f"turned shape {X.shape} into {tuple(output.shape)}",
                expected=f"{self.law.shape_wanted} for {self.law.equation}",
            )
        output = float64("the layer's output", output)
        return output.detach().cpu().numpy() if hasattr(output, "detach") else np.asarray(output)

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
