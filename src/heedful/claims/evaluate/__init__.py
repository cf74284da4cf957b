"""Evaluators: each walks the tree of a formula in one arithmetic.

`float` finds values and gaps in float64 over all draws at once; `ball` encloses them, for
proofs; `symbolic` writes them in SymPy's letters. What the functions of the language mean is in
`heedful.claims.functions`; here is what the walks have in common: how names and members are
looked up, and over which cases a bound index runs.

An index that stands below a family runs over its members: i of `alpha_i` over the keys,
counted from 1. Any other is a position and needs a bound: s of `phi(s) … s < T` runs over
0 … T − 1.
"""

from __future__ import annotations

import difflib
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np

from heedful.claims.functions import Function
from heedful.claims.language.tree import (
    Call,
    Compare,
    Entry,
    Expression,
    Name,
    bound_names,
    names_in,
    walk,
)
from heedful.claims.values import refusal
from heedful.errors import FormulaError

MOST_CASES = 4096
"""Cases that are looked at one by one; beyond, a fixed selection, or none where all count."""

_DECLARE = "declare it under `where` or `let`"
_SETTINGS = {
    **dict.fromkeys(("alpha", "c", "q"), "give the claim a `query`, or `heads`, or a `sequence`"),
    **dict.fromkeys(("k", "v"), 'give the claim keys, such as keys = "orthonormal"'),
    "mu": 'give the claim keys that have means: keys = "gaussian"',
    "x": "give the claim a `sequence`",
}
"""The field that gives a name its meaning, for a claim that lacks it."""

V = TypeVar("V")


@dataclass(frozen=True)
class Setting(Generic[V]):
    """One case: every symbol, family and index with its value."""

    symbols: dict[str, V] = field(default_factory=dict)
    families: dict[str, V] = field(default_factory=dict)
    """Values that have members: `k_a` is row a of the family k, `alpha_i` entry i of α."""
    indices: dict[str, int] = field(default_factory=dict)
    """Named members (a, b, j, …) and bound indices with their position, from 0."""
    width: int = 0
    """Width of the position embedding φ."""
    base: float = 10000.0
    """Base of the frequencies of φ."""
    tolerance: float = 0.05
    """What ≈ means when no `within` is written."""
    missing: dict[str, Exception] = field(default_factory=dict)
    """Definitions that have no value in this case, and why."""

    def extended(self, positions: dict[str, int], numbers: dict[str, V]) -> Self:
        """Return the case with more indices: a `replace` that is quick, for loops over them."""
        made = object.__new__(type(self))
        made.__dict__.update(
            self.__dict__,
            indices={**self.indices, **positions},
            symbols={**self.symbols, **numbers},
        )
        return made


class Place(NamedTuple):
    """One value of a bound index."""

    position: int
    """The member it stands for, from 0."""
    number: int
    """The number it stands for in arithmetic."""


class TreeEvaluator(ABC, Generic[V]):
    """What the evaluators have in common: names, members, arguments, bound indices."""

    world: Setting[V]
    exhaustive: ClassVar[bool] = True
    """Whether every case of an index counts; otherwise a selection will do."""

    @abstractmethod
    def value(self, node: Expression) -> V:
        """Return what an expression comes to."""

    @abstractmethod
    def constant(self, text: str) -> V | None:
        """Return pi, e or infinity, None if there is no such constant."""

    @abstractmethod
    def whole_number(self, number: int) -> V:
        """Return a whole number as a value."""

    @abstractmethod
    def as_whole(self, value: V, what: str) -> int:
        """Return a value as a whole number, or refuse what it is not."""

    @abstractmethod
    def size(self, value: V) -> int | None:
        """Return how many members a value has, None for a scalar."""

    @abstractmethod
    def member(self, family: V, position: int, text: str) -> V:
        """Return one entry of a vector or row of a matrix; `text` is how it was written."""

    @abstractmethod
    def meets(self, condition: Expression) -> bool | None:
        """Tell whether the bound indices of this world meet a condition; None: not decided."""

    def undecided(self, call: Call, part: V, inner: Self, condition: Expression) -> V:
        """Return what a fold takes for a part that may or may not belong to it."""
        raise FormulaError("formula", f"the condition of {call.function} is not decided")

    def within(self, world: Setting[V]) -> Self:
        """Return an evaluator of the same kind in another world."""
        return type(self)(world)  # type: ignore[call-arg]

    def name(self, text: str) -> V:
        """Return what a name stands for."""
        world = self.world
        for name in (text, text.rpartition("_")[0]) if world.missing else ():
            if name in world.missing:
                raise world.missing[name]
        if text in world.symbols:
            return world.symbols[text]
        if text in world.families:
            return world.families[text]
        if (constant := self.constant(text)) is not None:
            return constant
        base, underscore, member = text.rpartition("_")
        family = self._family(base)
        if not underscore or family is None:
            raise self._unknown(text)
        position = int(member) - 1 if member.isdigit() else world.indices.get(member)
        if position is None:
            raise refusal(
                f"{text!r} names a member {member!r} that is not known",
                f"one of {', '.join(world.indices) or 'none'}, or a number from 1",
            )
        return self.member(family, position, text)

    def _family(self, name: str) -> V | None:
        found = self.world.families.get(name)
        return self.world.symbols.get(name) if found is None else found

    def _unknown(self, text: str) -> FormulaError:
        world = self.world
        base = text.rpartition("_")[0]
        members = [f"{name}_{i}" for name in world.families for i in world.indices]
        near = difflib.get_close_matches(text, [*world.symbols, *world.families, *members], n=1)
        return refusal(
            f"the name {text!r} is not known here",
            f"one of {', '.join(sorted({*world.symbols, *world.families})[:12])}",
            f"did you mean {near[0]!r}?" if near else _SETTINGS.get(base or text, _DECLARE),
        )

    def position(self, node: Expression, what: str = "an index") -> int:
        """Return the position (from 0) of a member written as a name or counted from 1."""
        if isinstance(node, Name) and node.text in self.world.indices:
            return self.world.indices[node.text]
        return self.as_whole(self.value(node), what) - 1

    def entry(self, node: Entry, text: str) -> V:
        """Return the entry of a vector or matrix that `[i]` or `[i, j]` picks."""
        picked = self.value(node.base)
        for index in node.indices:
            picked = self.member(picked, self.position(index), text)
        return picked

    def arguments(self, function: Function, call: Call) -> list[Any]:
        """Return the arguments of a call in the form its function takes them."""
        if function.takes == "sizes":
            return [self.as_whole(self.value(part), "a size") for part in call.arguments]
        if function.takes == "members":
            return [self.position(part, "a member") for part in call.arguments]
        return [self.value(part) for part in call.arguments]

    def parts(self, call: Call) -> list[V]:
        """Return what a binder folds: its body for every case of its index, or its arguments."""
        bound = bound_names(call)
        if not bound:
            return [self.value(argument) for argument in call.arguments]
        body, over = call.arguments
        condition = None if isinstance(over, Name) else over
        parts = []
        for inner, sure in self.cases(bound, condition, body):
            part = inner.value(body)
            if not sure and condition is not None:
                part = self.undecided(call, part, inner, condition)
            parts.append(part)
        return parts

    def cases(
        self, bound: tuple[str, ...], condition: Expression | None, body: Expression
    ) -> Iterator[tuple[Self, bool]]:
        """Yield an evaluator for every value of the bound indices that meets the condition.

        Beside it stands whether the condition is surely met: a ball may be too wide to tell, and
        leaving such a case out would prove what is false there.
        """
        ranges = self.ranges(bound, condition, body)
        chosen: Iterator[tuple[Place, ...]] = itertools.product(*ranges)
        if too_many(ranges):
            if self.exhaustive:
                raise refusal("has too many cases to look at one by one")
            chosen = _selection(ranges)
        for places in chosen:
            positions = {name: place.position for name, place in zip(bound, places, strict=True)}
            numbers = {
                name: self.whole_number(place.number)
                for name, place in zip(bound, places, strict=True)
            }
            world = self.world.extended(positions, numbers)
            met: bool | None = True
            if condition is not None:
                met = self.counting(world, condition).meets(condition)
            if met is not False:
                yield self.within(world), met is True

    def ranges(
        self, bound: tuple[str, ...], condition: Expression | None, body: Expression
    ) -> list[list[Place]]:
        """Return the values of every bound index, whatever the condition."""
        return [self._range(index, condition, body) for index in bound]

    def counting(self, world: Setting[V], condition: Expression) -> Self:
        """Return an evaluator for a condition on indices, in which named members are numbers."""
        return self.within(_counted(self, world, condition))

    def _range(self, index: str, condition: Expression | None, body: Expression) -> list[Place]:
        names = names_in(body) | (names_in(condition) if condition is not None else set())
        for name in sorted(names):
            base, underscore, member = name.rpartition("_")
            family = self._family(base) if underscore and member == index else None
            if family is not None and (count := self.size(family)) is not None:
                return [Place(place, place + 1) for place in range(count)]
        for part in walk(body):
            for axis, own in enumerate(part.indices if isinstance(part, Entry) else ()):
                if isinstance(part, Entry) and isinstance(own, Name) and own.text == index:
                    along = self.value(part.base)
                    for _ in range(axis):  # A[i, j]: j runs along a row, which may be longer
                        along = self.member(along, 0, "an entry")
                    return [Place(place, place + 1) for place in range(self.size(along) or 0)]
        return [Place(t, t) for t in range(self._bound(index, condition))]

    def _bound(self, index: str, condition: Expression | None) -> int:
        """Return the first number that a position no longer takes."""
        upper = [
            part
            for part in (walk(condition) if condition is not None else ())
            if isinstance(part, Compare) and part.operator in ("<", "<=")
        ]
        own = [part for part in upper if isinstance(part.left, Name) and part.left.text == index]
        for part in (*own, *upper):
            limit = self.limit(part.right)
            if limit is not None and math.isfinite(limit):
                last = math.floor(limit) + 1 if part.operator == "<=" else math.ceil(limit)
                return max(0, last)
        raise refusal(
            f"the index {index!r} has no range",
            f"members of a family, or a bound such as `{index} < T`",
        )

    @abstractmethod
    def limit(self, node: Expression) -> float | None:
        """Return what the bound of an index comes to, None if it is not known."""


def too_many(ranges: list[list[Place]]) -> bool:
    """Tell whether there are more combinations than are looked at one by one."""
    return math.prod(len(each) for each in ranges) > MOST_CASES


def only_numbers(ranges: list[list[Place]]) -> bool:
    """Tell whether indices are positions, which formulas use as numbers and not as members."""
    return all(place.position == place.number for each in ranges for place in (each[:1] or []))


def _counted(evaluator: TreeEvaluator[V], world: Setting[V], condition: Expression) -> Setting[V]:
    """Return the world in which named members compare as positions, for conditions on indices."""
    named = {
        name: evaluator.whole_number(world.indices[name] + 1)
        for name in names_in(condition)
        if name in world.indices and name not in world.symbols
    }
    return replace(world, symbols={**world.symbols, **named}) if named else world


def _selection(ranges: list[list[Place]]) -> Iterator[tuple[Place, ...]]:
    """A fixed choice when there are too many: the small ones, neighbours, and random ones."""
    rng = np.random.default_rng(0)
    small = [each[: max(2, int(MOST_CASES ** (1 / len(ranges)) / 2))] for each in ranges]
    yield from itertools.product(*small)
    for _ in range(MOST_CASES // 2):
        yield tuple(each[int(rng.integers(len(each)))] for each in ranges)
