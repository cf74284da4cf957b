"""What a formula comes to in ball arithmetic: the evaluator behind every proof by intervals.

It mirrors `float`, entry by entry, on lists of balls. A statement comes out True, False or
None: None means that the balls are too wide to tell.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from flint import arb

from heedful.claims import balls
from heedful.claims.balls import (
    Ball,
    Enclosure,
    NotEnclosed,
    NoValue,
    add,
    each,
    flatten,
    multiply,
    negated,
    number,
    scalar,
    transpose,
)
from heedful.claims.evaluate import Setting, TreeEvaluator, only_numbers, too_many
from heedful.claims.functions import FUNCTIONS, Function
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
    rational,
)
from heedful.errors import FormulaError

EXACTLY: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
"""Comparisons of fractions."""
MOST_BOXES = 4000
"""Boxes of positions that are looked at before a statement about them stays undecided."""
LARGEST_POWER = 64
"""Whole exponents up to here are multiplied out, so that the base may be negative."""


@dataclass(frozen=True)
class BallWorld(Setting[Enclosure]):
    """One case, or a whole box of cases, with every symbol enclosed."""

    scale: Ball = field(default_factory=lambda: Ball.exact(1))
    """What multiplies k·q."""


class BallEvaluator(TreeEvaluator[Enclosure]):
    """Evaluates formulas in one ball world."""

    world: BallWorld

    def __init__(self, world: BallWorld, cells: Any = None) -> None:
        self.world = world
        self._cells = cells

    @property
    def cells(self) -> Any:
        """The cells into which the noise is cut; inside them and without noise there are none."""
        if self._cells is None:
            raise NotEnclosed("a statistic outside of cells")
        return self._cells

    def truth(self, node: Expression) -> bool | None:
        """Return whether a statement holds everywhere (True), nowhere (False), or None."""
        match node:
            case Compare():
                return self._compare(node)
            case Logic(operator, left, right):
                return self._logic(operator, left, right)
            case Unary("not", operand):
                inner = self.truth(operand)
                return None if inner is None else not inner
            case ForAll():
                return self._for_all(node)
        raise NotEnclosed("a statement of another kind")

    def value(self, node: Expression) -> Enclosure:
        """Return the enclosure of an expression."""
        match node:
            case Number(value):
                return scalar(value)
            case Name(text):
                try:
                    return self.name(text)
                except FormulaError:
                    raise NotEnclosed(f"the name {text}") from None
            case Entry():
                return self.entry(node, "an entry")
            case Unary() | Binary() if (folded := rational(node)) is not None:
                return scalar(folded)  # 0.1 + 0.2 - 0.3 is 0, and no ball around it
            case Unary("-", operand):
                return negated(self.value(operand))
            case Unary("T", operand):
                return transpose(self.value(operand))
            case Binary(operator, left, right):
                return self._binary(operator, self.value(left), self.value(right))
            case Call() if node.function in FUNCTIONS:
                return self._call(FUNCTIONS[node.function], node)
        raise NotEnclosed("a statement where a value was expected")

    def apply(self, name: str, *arguments: Any) -> Any:
        """Apply a function of the language to arguments that have been enclosed."""
        function = FUNCTIONS[name]
        setting = (self,) if function.in_world else ()
        return function.in_balls(*setting, *arguments)

    def constant(self, text: str) -> Enclosure | None:
        """Return pi or e."""
        if text == "pi":
            return Enclosure(Ball(arb.pi()), "scalar")
        return Enclosure(Ball(arb.const_e()), "scalar") if text == "e" else None

    def whole_number(self, number: int) -> Enclosure:
        """Return a whole number as an enclosure."""
        return scalar(number)

    def as_whole(self, value: Enclosure, what: str) -> int:
        """Return an enclosure as the whole number it surely is."""
        return balls.whole(value)

    def size(self, value: Enclosure) -> int | None:
        """Return how many members an enclosure has."""
        return None if value.kind == "scalar" else len(value.entries)

    def limit(self, node: Expression) -> float | None:
        """Return what the bound of an index comes to."""
        try:
            return float(balls.whole(self.value(node)))
        except NotEnclosed:
            return None

    def meets(self, condition: Expression) -> bool | None:
        """Tell whether bound indices meet a condition everywhere, nowhere, or None."""
        return self.truth(condition)

    def undecided(
        self, call: Call, part: Enclosure, inner: BallEvaluator, condition: Expression
    ) -> Enclosure:
        """Return the hull of a part and 0: a sum may or may not have this term."""
        if call.function != "sum":
            raise NotEnclosed(f"a condition of {call.function} that the balls do not decide")
        return each(part, lambda x: Ball(x.flat().union(arb(0))))

    def member(self, family: Enclosure, position: int, text: str) -> Enclosure:
        """Return one entry of a vector or row of a matrix."""
        return balls.member(family, position)

    def _binary(self, operator: str, left: Enclosure, right: Enclosure) -> Enclosure:
        if operator == "+":
            return add(left, right)
        if operator == "-":
            return add(left, negated(right))
        if operator == "*":
            return multiply(left, right)
        if operator == "/":
            return each(left, lambda x: x / right.entries)
        if left.kind != "scalar" or right.kind != "scalar":
            raise NotEnclosed("a power of something that is no scalar")
        if type(left.entries) is not Ball and right.entries.flat().is_integer():
            power = int(right.entries.flat().unique_fmpz())
            return Enclosure(left.entries.power(power), "scalar")
        base, exponent = left.entries.flat(), right.entries.flat()
        if base.is_zero() and exponent < 0:
            raise NoValue("a negative power of 0")
        if base < 0 and exponent.is_exact() and not exponent.is_integer():
            raise NoValue("a fractional power of a negative number")
        if exponent.is_integer() and abs(exponent) < LARGEST_POWER:
            power = int(exponent.unique_fmpz())
            return Enclosure(Ball(_raised(base, power)), "scalar")
        if not base > 0:
            raise NotEnclosed("a fractional power of what may be negative")
        return Enclosure(Ball(base**exponent), "scalar")

    def _call(self, function: Function, node: Call) -> Enclosure:
        enclosure: Enclosure
        if function.kind == "statistic":
            enclosure = function.in_balls(self, node)
        elif function.kind == "binder":
            enclosure = self._fold(function, node)
        else:
            enclosure = self.apply(node.function, *self.arguments(function, node))
        return enclosure

    def _fold(self, function: Function, node: Call) -> Enclosure:
        try:
            parts = self.parts(node)
        except FormulaError as error:
            raise NotEnclosed(error.problem) from None
        if not parts and function.empty is not None:
            return scalar(function.empty)
        if not parts:
            raise NotEnclosed("a fold over nothing")
        if len(node.arguments) == 1:
            return Enclosure(function.in_balls(list(flatten(parts[0]))), "scalar")
        folded = _entry_by_entry(function, [part.entries for part in parts])
        return Enclosure(folded, parts[0].kind, parts[0].formal)

    def _for_all(self, node: ForAll) -> bool | None:
        verdict: bool | None = True
        no_value: NoValue | None = None
        try:
            ranges = self.ranges(node.indices, node.condition, node.body)
            if too_many(ranges) and only_numbers(ranges):
                return self._for_all_in_boxes(node, [(0, len(each) - 1) for each in ranges])
            for inner, sure in self.cases(node.indices, node.condition, node.body):
                try:
                    part = inner.truth(node.body)
                except NoValue as error:
                    part, no_value = None, error if sure else no_value
                if part is False and sure:
                    return False
                verdict = verdict if part is True else None
        except FormulaError as error:
            raise NotEnclosed(error.problem) from None
        if no_value is not None:
            raise no_value
        return verdict

    def _for_all_in_boxes(self, node: ForAll, whole: list[tuple[int, int]]) -> bool | None:
        """Decide a statement about thousands of positions by halving boxes of them."""
        boxes = [tuple(whole)]
        verdict: bool | None = True
        for _ in range(MOST_BOXES):
            if not boxes:
                return verdict
            box = boxes.pop()
            answer = self._on_positions(node, box)
            if answer is True:
                continue
            if answer is False:
                return False
            widest = max(range(len(box)), key=lambda place: box[place][1] - box[place][0])
            low, high = box[widest]
            if low == high:
                verdict = None
                continue
            middle = (low + high) // 2
            halves = ((middle + 1, high), (low, middle))
            boxes += [(*box[:widest], half, *box[widest + 1 :]) for half in halves]
        raise NotEnclosed("too many positions")

    def _on_positions(self, node: ForAll, box: tuple[tuple[int, int], ...]) -> bool | None:
        """Return whether a statement holds at all positions of a box, fails at one, or None."""
        numbers = {
            name: scalar(low) if low == high else Enclosure(Ball.between(low, high), "scalar")
            for name, (low, high) in zip(node.indices, box, strict=True)
        }
        world = replace(self.world, symbols={**self.world.symbols, **numbers})
        met: bool | None = True
        if node.condition is not None:
            with suppress(NotEnclosed):
                met = None
                met = self.counting(world, node.condition).truth(node.condition)
            if met is False:
                return True
        try:
            answer = BallEvaluator(world).truth(node.body)
        except NotEnclosed:
            return None
        return None if answer is False and met is None else answer

    def _logic(self, operator: str, left: Expression, right: Expression) -> bool | None:
        """Join two statements; where one has no value, the other may still decide the matter."""
        absorbing = operator != "and"
        truths: list[bool | None] = []
        no_value: NoValue | None = None
        for part in (left, right):
            try:
                truth = self.truth(part)
            except NoValue as error:
                no_value = error
                continue
            if truth is not None and operator == "implies" and part is left:
                truth = not truth
            if truth is absorbing:
                return absorbing
            truths.append(truth)
        if None in truths:
            return None
        if no_value is not None:
            raise no_value
        return not absorbing

    def _compare(self, node: Compare) -> bool | None:
        numbers = rational(node.left), rational(node.right)
        if None not in numbers and node.operator != "~":
            return EXACTLY[node.operator](*numbers)
        left = self.value(node.left)
        right = left if node.left == node.right else self.value(node.right)
        if left.entries is right.entries and node.operator != "~":
            return node.operator in ("=", "<=", ">=")  # one number, however wide its ball is
        if node.operator in ("<", "<="):
            return balls.compare(number(left), number(right), node.operator)
        if node.operator in (">", ">="):
            operator = "<" if node.operator == ">" else "<="
            return balls.compare(number(right), number(left), operator)
        difference = add(left, negated(right))
        if node.operator == "~":
            within = (
                Ball.exact(Fraction(str(self.world.tolerance)))
                if node.within is None
                else number(self.value(node.within))
            )
            return balls.compare(balls.distance(difference, right), within, "<=")
        flat = list(flatten(difference))
        if all(entry.is_zero() for entry in flat):
            return node.operator == "="
        if any(_never_zero(entry) for entry in flat):
            return node.operator == "!="
        return None


def _raised(base: Any, power: int) -> Any:
    """Return a whole power: of a wide ball by its ends, as an even one is never negative."""
    if power < 1 or base.is_exact():
        return base**power
    ends = base.lower() ** power, base.upper() ** power
    if power % 2 or not base.contains(arb(0)):
        return ends[0].union(ends[1])
    return arb(0).union(ends[0].max(ends[1]))


def _entry_by_entry(function: Function, parts: list[Any]) -> Any:
    """Fold scalars, or vectors and matrices of one shape, entry by entry."""
    if isinstance(parts[0], Ball):
        return function.in_balls(parts)
    if len({len(part) for part in parts}) != 1:
        raise NotEnclosed("shapes that do not fit")
    return [_entry_by_entry(function, list(group)) for group in zip(*parts, strict=True)]


def _never_zero(entry: Ball) -> bool:
    try:
        return not entry.flat().contains(arb(0))
    except NotEnclosed:
        return False
