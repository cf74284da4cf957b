"""What a formula comes to in one world, in float64, over all its draws at once.

A world is one concrete case: every symbol has a value. Names resolve to bound indices, to
symbols, or to members of a family: `k_a` is row a of the keys, `alpha_i` entry i of α,
`x_2` the second vector of the sequence (members count from 1, as in the equations).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from heedful.claims import values
from heedful.claims.evaluate import Place, Setting, TreeEvaluator, only_numbers, too_many
from heedful.claims.functions import FUNCTIONS, Function
from heedful.claims.language.notation import show
from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Entry,
    Expression,
    ForAll,
    Logic,
    Name,
    Number,
    Unary,
    walk,
)
from heedful.claims.values import (
    OPERATORS,
    Kind,
    NoMemberError,
    NoValueError,
    Truth,
    Value,
    multiply,
    not_linear,
    refusal,
    scalar,
    transpose,
)
from heedful.errors import FormulaError

MOST_AT_ONCE, CHUNK = 4_000_000, 100_000
"""Combinations of positions that are all looked at, and how many of them at a time."""
CONSTANTS = {"pi": scalar(math.pi), "e": scalar(math.e), "infinity": scalar(math.inf)}


@dataclass(frozen=True)
class World(Setting[Value]):
    """One concrete case: every symbol, family and index with its value."""

    scale: float = 1.0
    """What multiplies k·q."""
    weights: Any = None
    """Weights of the draws, when they are nodes of a quadrature; None: all alike."""


class Evaluator(TreeEvaluator[Value]):
    """Evaluates formulas in one world."""

    world: World
    exhaustive = False

    def __init__(self, world: World) -> None:
        self.world = world

    def value(self, node: Expression) -> Value:
        """Return what an expression comes to, or say which part of it cannot be."""
        try:
            result = self._value(node)
        except FormulaError as error:
            raise node.locate(error) from None
        single = result.array.size == 1  # most are, and math is ten times as quick
        finite = math.isfinite(result.array.item()) if single else np.isfinite(result.array).all()
        if not finite and not _may_be_infinite(node, result):
            problem = f"{show(node)} is not a finite number"
            raise node.locate(NoValueError("formula", problem, expected="finite numbers"))
        return result

    def truth(self, node: Expression) -> Truth:
        """Return whether a statement holds, draw by draw."""
        match node:
            case Compare():
                return self._compare(node)
            case Logic(operator, left, right):
                return self._logic(operator, left, right)
            case Unary("not", operand):
                inner = self.truth(operand)
                return Truth(~inner.holds, -inner.gap, inner.left, inner.right)
            case ForAll():
                return self._for_all(node)
            case Call(function) if function in FUNCTIONS:
                holds = self._call(node)
                if isinstance(holds, Truth):
                    return holds
        raise node.error(
            f"{show(node)} is not a statement", expected="a relation such as alpha_a >= 0.9"
        )

    def apply(self, name: str, *arguments: Any) -> Any:
        """Apply a function of the language to arguments that have been evaluated."""
        function = FUNCTIONS[name]
        # What a query reads is linear in the values, not in the query and the keys.
        reads = name in ("weights", "attention")
        plain = arguments[:2] if reads else arguments
        if (reads or not function.linear) and any(
            isinstance(argument, Value) and argument.formal for argument in plain
        ):
            raise not_linear(f"{name}( )")
        setting = (self,) if function.in_world else ()
        return function.in_floats(*setting, *arguments)

    def draw_weights(self, given: Expression | None) -> Any:
        """Return the weight of every draw, or its share among those that meet a condition."""
        world = self.world
        known = (*world.symbols.values(), *world.families.values())
        count = max((len(value.array) for value in known), default=1)
        weights = np.full(count, 1.0 / count) if world.weights is None else world.weights
        if given is None:
            return weights
        holds = np.broadcast_to(self.truth(given).holds, weights.shape)
        total = float(np.sum(weights * holds))
        if total <= 0:
            raise refusal(
                f"the condition {show(given)} never holds", "a condition with some probability"
            )
        return weights * holds / total

    def constant(self, text: str) -> Value | None:
        """Return pi, e or infinity."""
        return CONSTANTS.get(text)

    def whole_number(self, number: int) -> Value:
        """Return a whole number as a value."""
        return scalar(number)

    def as_whole(self, value: Value, what: str) -> int:
        """Return a value as a whole number."""
        return values.whole(value, what)

    def size(self, value: Value) -> int | None:
        """Return how many members a value has."""
        return None if value.kind == "scalar" else value.shape[0]

    def limit(self, node: Expression) -> float | None:
        """Return what the bound of an index comes to."""
        try:
            return float(self.value(node).array.flat[0])
        except FormulaError:
            return None

    def meets(self, condition: Expression) -> bool | None:
        """Tell whether bound indices meet a condition in all draws, in none, or in some (None)."""
        holds = self.truth(condition).holds
        return True if np.all(holds) else None if np.any(holds) else False

    def undecided(self, call: Call, part: Value, inner: Self, condition: Expression) -> Value:
        """Return a part as it counts in each draw: not at all where the condition is not met."""
        holds = self.counting(inner.world, condition).truth(condition).holds
        neutral = {"sum": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf, "logsumexp": -np.inf}
        met = holds.reshape(-1, *[1] * len(part.shape))
        return replace(part, array=np.where(met, part.array, neutral[call.function]))

    def member(self, family: Value, position: int, text: str) -> Value:
        """Return one entry of a vector or row of a matrix."""
        if family.kind == "scalar":
            raise refusal(f"{text!r} is a member of a scalar", "a vector, a matrix or a family")
        if not 0 <= position < family.shape[0]:
            raise NoMemberError(
                "formula", f"{text!r} does not exist", expected=f"members 1 to {family.shape[0]}"
            )
        kind: Kind = "scalar" if family.kind in ("vector", "row") else "vector"
        if family.formal and (kind == "scalar" or family.turned):
            raise not_linear("an entry")
        return Value(family.array[:, position], kind, family.formal)

    def _value(self, node: Expression) -> Value:
        match node:
            case Number(value):
                try:
                    return scalar(float(value))
                except OverflowError:
                    raise NoValueError(
                        "formula", f"{show(node)} is too large", expected="at most 1e308"
                    ) from None
            case Name(text):
                return self.name(text)
            case Entry():
                return self.entry(node, show(node))
            case Unary("-", operand):
                return multiply(scalar(-1.0), self.value(operand))
            case Unary("T", operand):
                return transpose(self.value(operand))
            case Binary(_, left, right):
                return self._operation(node, self.value(left), self.value(right))
            case Call():
                result = self._call(node)
                if isinstance(result, Value):
                    return result
        raise node.error(f"{show(node)} is a statement where a value was expected")

    def _operation(self, node: Binary, left: Value, right: Value) -> Value:
        try:
            return OPERATORS[node.operator](left, right)
        except FormulaError as error:
            raise type(error)(
                "formula",
                f"{error.problem} in {show(node)}",
                expected=error.expected,
                hint=error.hint,
            ) from None

    def _call(self, node: Call) -> Any:
        function = FUNCTIONS.get(node.function)
        if function is None:
            raise refusal(f"{node.function} is not available here")
        if function.kind == "binder":
            return self._fold(function, node)
        if function.kind == "statistic":
            return function.in_floats(self, node)
        return self.apply(node.function, *self.arguments(function, node))

    def _fold(self, function: Function, node: Call) -> Value:
        parts = self.parts(node)
        if not parts and function.empty is not None:
            return scalar(function.empty)
        if not parts:
            raise refusal(f"{show(node)} runs over nothing", "at least one member")
        if len(node.arguments) == 1:
            x = parts[0]
            if x.formal:
                raise not_linear(function.name)
            flat = x.array.reshape(len(x.array), -1)
            return Value(function.in_floats(flat, 1), "scalar")
        if not function.linear and any(part.formal for part in parts):
            raise not_linear(function.name)
        formal = [part for part in parts if part.formal]
        if formal and any(np.any(part.array != 0) for part in parts if not part.formal):
            raise not_linear("a sum with keys or numbers")
        like = formal[0] if formal else parts[0]
        draws = max(len(part.array) for part in parts)
        wide = [np.broadcast_to(part.array, (draws, *part.shape)) for part in parts]
        return replace(like, array=function.in_floats(np.stack(wide), 0))

    def _compare(self, node: Compare) -> Truth:
        within = self.world.tolerance
        if node.within is not None:
            within = float(self.value(node.within).array.flat[0])
        left, right = self.value(node.left), self.value(node.right)
        try:
            return values.related(node.operator, left, right, within)
        except FormulaError as error:
            raise node.locate(error) from None

    def _logic(self, operator: str, left: Expression, right: Expression) -> Truth:
        first = self.truth(left)
        if operator == "implies":
            met = bool(np.any(first.holds))
            return values.implied(first, self.truth(right) if met else None)
        join = values.both if operator == "and" else values.either
        return join(first, self.truth(right))

    def _for_all(self, node: ForAll) -> Truth:
        ranges = self.ranges(node.indices, node.condition, node.body)
        count = math.prod(len(each) for each in ranges)
        if too_many(ranges) and count <= MOST_AT_ONCE and self._one_draw() and only_numbers(ranges):
            return self._for_all_at_once(node, ranges, count)
        worst: Truth | None = None
        holds, gap = np.asarray([True]), np.asarray([-np.inf])
        for inner, sure in self.cases(node.indices, node.condition, node.body):
            truth = inner.truth(node.body)
            if not sure and node.condition is not None:
                met = self.counting(inner.world, node.condition).truth(node.condition)
                truth = values.implied(met, truth)
            holds = holds & truth.holds
            gap = np.maximum(gap, truth.gap)
            if worst is None or float(np.max(truth.gap)) > float(np.max(worst.gap)):
                worst = truth
        if worst is None:
            return Truth(holds, np.asarray([-1.0]))
        return Truth(holds, gap, worst.left, worst.right)

    def _one_draw(self) -> bool:
        known = (*self.world.symbols.values(), *self.world.families.values())
        return all(len(value.array) == 1 for value in known)

    def _for_all_at_once(self, node: ForAll, ranges: list[list[Place]], count: int) -> Truth:
        """Look at every combination of positions, many at a time, as if each were a draw."""
        worst: Truth | None = None
        sizes = [len(each) for each in ranges]
        for start in range(0, count, CHUNK):
            places = np.unravel_index(np.arange(start, min(count, start + CHUNK)), sizes)
            numbers = {
                name: Value(np.asarray([p.number for p in each], dtype=float)[place], "scalar")
                for name, each, place in zip(node.indices, ranges, places, strict=True)
            }
            world = replace(self.world, symbols={**self.world.symbols, **numbers})
            truth = self.within(world).truth(node.body)
            if node.condition is not None:
                met = self.counting(world, node.condition).truth(node.condition)
                truth = values.implied(met, truth)
            part = _at_worst(truth)
            if worst is None or float(part.gap[0]) > float(worst.gap[0]):
                worst = part if worst is None else replace(part, holds=part.holds & worst.holds)
            else:
                worst = replace(worst, holds=part.holds & worst.holds)
        assert worst is not None
        return worst


def _at_worst(truth: Truth) -> Truth:
    """Return whether a statement holds in all draws, with the sides of the worst one."""
    place = int(np.argmax(truth.gap))

    def side(value: Value | None) -> Value | None:
        if value is None:
            return None
        return replace(value, array=value.array[min(place, len(value.array) - 1)][None])

    gap = np.asarray([truth.gap[place]])
    return Truth(np.asarray([bool(np.all(truth.holds))]), gap, side(truth.left), side(truth.right))


def _may_be_infinite(node: Expression, value: Value) -> bool:
    """Tell whether a value may hold infinities: `infinity` itself, and scores behind a mask."""
    if isinstance(node, Name) and node.text == "infinity":
        return True
    masked = any(isinstance(part, Call) and part.function == "causal" for part in walk(node))
    return masked and bool(np.all(np.isfinite(value.array) | np.isneginf(value.array)))
