"""What a formula comes to in one world, in float64, over all its draws at once.

A world is one concrete case: every symbol has a value. Names resolve to bound indices, to
symbols, or to members of a family: `k_a` is row a of the keys, `alpha_i` entry i of α,
`x_2` the second vector of the sequence (members count from 1, as in the equations).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from heedful.attention.design.vertices import certify
from heedful.attention.operation import softmax as softmax_of
from heedful.claims import indices, numeric_functions, numeric_statistics, relations
from heedful.claims.language import bound_names, show
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
    names_in,
)
from heedful.claims.values import (
    OPERATORS,
    NoValueError,
    Truth,
    Value,
    multiply,
    not_linear,
    scalar,
    transpose,
)
from heedful.errors import FormulaError

CONSTANTS = {"pi": math.pi, "e": math.e, "infinity": math.inf}
_DECLARE = "declare it under `where` or `let`"
_SETTINGS = {
    **dict.fromkeys(("alpha", "c", "q"), "give the claim a `query`, or `heads`, or a `sequence`"),
    **dict.fromkeys(("k", "v"), 'give the claim keys, such as keys = "orthonormal"'),
    "mu": 'give the claim keys that have means: keys = "gaussian"',
    "x": "give the claim a `sequence`",
}
"""The field that gives a name its meaning, for a claim that lacks it."""


@dataclass(frozen=True)
class World:
    """One concrete case: every symbol, family and index with its value."""

    symbols: dict[str, Value] = field(default_factory=dict)
    families: dict[str, Value] = field(default_factory=dict)
    indices: dict[str, int] = field(default_factory=dict)
    """Named members (a, b, j, …) with their position, from 0."""
    scale: float = 1.0
    width: int = 0
    base: float = 10000.0
    tolerance: float = 0.05
    weights: Any = None
    """Weights of the draws, when they are nodes of a quadrature; None: all alike."""

    def with_index(self, name: str, position: int, number: float) -> World:
        """Return the world in which a bound index has a value."""
        return replace(
            self,
            indices={**self.indices, name: position},
            symbols={**self.symbols, name: scalar(number)},
        )


class Evaluator:
    """Evaluates formulas in one world."""

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
        if not finite and not (isinstance(node, Name) and node.text == "infinity"):
            raise NoValueError(
                "formula",
                f"{show(node)} is not a finite number",
                expected="finite numbers",
                column=node.column or None,
                field=node.position.field,
            )
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
            case Call("copyable" | "hull", arguments):
                return self._copyable(arguments)
        raise node.error(
            f"{show(node)} is not a statement", expected="a relation such as alpha_a >= 0.9"
        )

    def _value(self, node: Expression) -> Value:
        match node:
            case Number(value):
                return scalar(float(value))
            case Name(text):
                return self._name(text)
            case Entry():
                return self._entry(node)
            case Unary("-", operand):
                return multiply(scalar(-1.0), self.value(operand))
            case Unary("T", operand):
                return transpose(self.value(operand))
            case Binary(_, left, right):
                return self._operation(node, self.value(left), self.value(right))
            case Call():
                return self._call(node)
        raise node.error(f"{show(node)} is a statement where a value was expected")

    def _operation(self, node: Binary, left: Value, right: Value) -> Value:
        try:
            return OPERATORS[node.operator](left, right)
        except FormulaError as error:
            raise type(error)(
                "formula",
                f"{error.problem} in {show(node)}",
                expected=error.expected,
                way_out=error.way_out,
            ) from None

    def _name(self, text: str) -> Value:
        world = self.world
        if text in world.symbols:
            return world.symbols[text]
        if text in world.families:
            return world.families[text]
        if text in CONSTANTS:
            return scalar(CONSTANTS[text])
        base, underscore, member = text.rpartition("_")
        if underscore and base in world.families:
            return self._member(world.families[base], self.position(member, text), text)
        if underscore and base in world.symbols:
            return self._member(world.symbols[base], self.position(member, text), text)
        known = [
            *world.symbols,
            *world.families,
            *(f"{name}_{i}" for name in world.families for i in world.indices),
        ]
        near = difflib.get_close_matches(text, known, n=1)
        raise FormulaError(
            "formula",
            f"the name {text!r} is not known here",
            expected=f"one of {', '.join(sorted({*world.symbols, *world.families})[:12])}",
            way_out=f"did you mean {near[0]!r}?" if near else _SETTINGS.get(base or text, _DECLARE),
        )

    def position(self, member: str, text: str) -> int:
        """Return the position (from 0) of a member written as a name or counted from 1."""
        if member.isdigit():
            return int(member) - 1
        if member in self.world.indices:
            return self.world.indices[member]
        raise FormulaError(
            "formula",
            f"{text!r} names a member {member!r} that is not known",
            expected=f"one of {', '.join(self.world.indices) or 'none'}, or a number from 1",
        )

    def _member(self, family: Value, position: int, text: str) -> Value:
        if family.kind == "scalar":
            raise FormulaError(
                "formula",
                f"{text!r} is a member of a scalar",
                expected="a vector, a matrix or a family",
            )
        if not 0 <= position < family.shape[0]:
            raise FormulaError(
                "formula", f"{text!r} does not exist", expected=f"members 1 to {family.shape[0]}"
            )
        kind: Any = "scalar" if family.kind in ("vector", "row") else "vector"
        if family.formal and kind == "scalar":
            raise not_linear("an entry")
        return Value(family.array[:, position], kind, family.formal)

    def _entry(self, node: Entry) -> Value:
        base = self.value(node.base)
        for index in node.indices:
            if isinstance(index, Name) and index.text in self.world.indices:
                position = self.world.indices[index.text]
            else:
                position = numeric_functions.whole(self.value(index), "an index") - 1
            base = self._member(base, position, show(node))
        return base

    def _call(self, node: Call) -> Value:
        name, arguments = node.function, node.arguments
        if name in numeric_statistics.NAMES:
            return numeric_statistics.statistic(self, node)
        if name in ("sum", "max", "min", "prod"):
            return self._binder(node)
        if name == "mass":
            alpha = self._name("alpha")
            members = [
                self._member(alpha, self._member_of(argument), "alpha").array
                for argument in arguments
            ]
            return Value(np.sum(members, axis=0), "scalar")
        if name in ("weights", "attention"):
            return self._attention(name, [self.value(argument) for argument in arguments])
        if name == "phi":
            width = self.world.width or 2
            if len(arguments) == 2:
                width = numeric_functions.whole(self.value(arguments[1]), "a width")
            return numeric_functions.phi(self.value(arguments[0]), width, self.world.base)
        if name in numeric_functions.FUNCTIONS:
            return self._plain_call(numeric_functions.FUNCTIONS[name], name, arguments)
        if name == "distance":
            return self._distance(arguments)
        if name == "selfattention":
            values = [self.value(argument) for argument in arguments]
            return numeric_functions.self_attention(values, self.world.scale)
        if name == "rotate":
            x, t = (self.value(argument) for argument in arguments[:2])
            return numeric_functions.rotate(x, t, self.world.base)
        raise FormulaError("formula", f"{name} is not available here")

    def _plain_call(
        self, function: Callable[..., Value], name: str, arguments: tuple[Expression, ...]
    ) -> Value:
        values = [self.value(argument) for argument in arguments]
        if name not in ("norm", "transpose") and any(value.formal for value in values):
            raise not_linear(name)
        try:
            return function(*values)
        except TypeError:
            raise FormulaError("formula", f"{name} got {len(arguments)} arguments") from None

    def _member_of(self, node: Expression) -> int:
        if isinstance(node, Name):
            return self.position(node.text, f"alpha_{node.text}")
        return numeric_functions.whole(self.value(node), "a member") - 1

    def _attention(self, name: str, arguments: list[Value]) -> Value:
        query = arguments[0]
        keys = arguments[1] if len(arguments) > 1 else self._name("k")
        if query.kind not in ("vector", "row") or keys.kind != "matrix":
            raise FormulaError(
                "formula",
                f"{name} of a {query.describe()} over {keys.describe()}",
                expected="a query vector and keys as rows of a matrix",
            )
        if query.shape[0] != keys.shape[1]:
            raise FormulaError(
                "formula",
                f"{name}: the query has dimension {query.shape[0]}",
                expected=f"the keys have dimension {keys.shape[1]}",
            )
        logits = np.matmul(keys.array, query.array[:, :, None])[:, :, 0] * self.world.scale
        alpha = Value(softmax_of(logits), "vector")
        if name == "weights":
            return alpha
        values = arguments[2] if len(arguments) > 2 else self._name("v")
        return multiply(transpose(values), alpha)

    def _binder(self, node: Call) -> Value:
        folds: dict[str, Any] = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}
        fold = folds[node.function]
        bound = bound_names(node)
        if not bound and len(node.arguments) == 1:
            x = self.value(node.arguments[0])
            if x.formal:
                raise not_linear(node.function)
            flat = x.array.reshape(len(x.array), -1)
            return x if x.kind == "scalar" else Value(fold(flat, axis=1), "scalar")
        if bound:
            body, over = node.arguments
            condition = None if isinstance(over, Name) else over
            parts = [Evaluator(world).value(body) for world in self._cases(bound, condition, body)]
        else:
            parts = [self.value(argument) for argument in node.arguments]
        if not parts and node.function in indices.EMPTY_FOLDS:
            return scalar(indices.EMPTY_FOLDS[node.function])
        if not parts:
            raise FormulaError(
                "formula", f"{show(node)} runs over nothing", expected="at least one member"
            )
        if node.function != "sum" and any(part.formal for part in parts):
            raise not_linear(node.function)
        draws = max(len(part.array) for part in parts)
        wide = [np.broadcast_to(part.array, (draws, *part.shape)) for part in parts]
        return Value(fold(np.stack(wide), axis=0), parts[0].kind, parts[0].formal)

    def _compare(self, node: Compare) -> Truth:
        within = self.world.tolerance
        if node.within is not None:
            within = float(self.value(node.within).array.flat[0])
        left, right = self.value(node.left), self.value(node.right)
        try:
            return relations.related(node, left, right, within)
        except FormulaError as error:
            raise node.locate(error) from None

    def _logic(self, operator: str, left: Expression, right: Expression) -> Truth:
        first = self.truth(left)
        if operator == "implies":
            met = bool(np.any(first.holds))
            return relations.implied(first, self.truth(right) if met else None)
        join = relations.both if operator == "and" else relations.either
        return join(first, self.truth(right))

    def _for_all(self, node: ForAll) -> Truth:
        worst: Truth | None = None
        holds, gap = np.asarray([True]), np.asarray([-np.inf])
        for world in self._cases(node.indices, node.condition, node.body):
            truth = Evaluator(world).truth(node.body)
            holds = holds & truth.holds
            gap = np.maximum(gap, truth.gap)
            if worst is None or float(np.max(truth.gap)) > float(np.max(worst.gap)):
                worst = truth
        if worst is None:
            return Truth(holds, np.asarray([-1.0]))
        return Truth(holds, gap, worst.left, worst.right)

    def _cases(
        self, bound: tuple[str, ...], condition: Expression | None, body: Expression
    ) -> Iterator[World]:
        """Yield a world for every value of the bound indices that meets the condition."""
        lookup = indices.Lookup(
            self._family_size, lambda base: self.value(base).shape[0], self._known
        )
        chosen, _ = indices.cases(bound, condition, body, lookup)
        for case in chosen:
            world = self.world
            for name, place in zip(bound, case, strict=True):
                world = world.with_index(name, place.position, place.number)
            if condition is None or bool(np.all(_meets(world, condition))):
                yield world

    def _family_size(self, name: str) -> int | None:
        family = self.world.families.get(name) or self.world.symbols.get(name)
        return None if family is None or family.kind == "scalar" else family.shape[0]

    def _known(self, node: Expression) -> float | None:
        try:
            return float(self.value(node).array.flat[0])
        except FormulaError:
            return None

    def _copyable(self, arguments: tuple[Expression, ...]) -> Truth:
        position = self._member_of(arguments[0])
        found = [certify(rows, position) for rows in self._name("k").array]
        holds = np.asarray([each.verdict == "outside" for each in found], dtype=bool)
        return Truth(holds, np.asarray([-each.margin if each.margin else 1.0 for each in found]))

    def _distance(self, arguments: tuple[Expression, ...]) -> Value:
        position = self._member_of(arguments[0])
        margins = [certify(rows, position).margin for rows in self._name("k").array]
        return Value(np.asarray(margins), "scalar")


def _meets(world: World, condition: Expression) -> Any:
    """Tell whether bound indices meet a condition; named members compare as positions."""
    named = {
        name: scalar(world.indices[name] + 1.0)
        for name in names_in(condition)
        if name in world.indices and name not in world.symbols
    }
    inner = replace(world, symbols={**world.symbols, **named})
    return Evaluator(inner).truth(condition).holds
