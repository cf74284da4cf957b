"""What a formula comes to in ball arithmetic: the evaluator behind every proof by intervals.

It mirrors `numeric`, entry by entry, on lists of balls. A statement comes out True, False or
None: None means that the balls are too wide to tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

from flint import arb

from heedful.claims import balls, indices
from heedful.claims.balls import Ball, NotEnclosed
from heedful.claims.enclosures import (
    ENTRYWISE,
    PLAIN,
    Enclosure,
    add,
    constant_array,
    distance,
    each,
    flatten,
    fold,
    member,
    multiply,
    number,
    scalar,
    transpose,
)
from heedful.claims.language import bound_names
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


@dataclass(frozen=True)
class BallWorld:
    """One case, or a whole box of cases, with every symbol enclosed."""

    symbols: dict[str, Enclosure] = field(default_factory=dict)
    families: dict[str, Enclosure] = field(default_factory=dict)
    indices: dict[str, int] = field(default_factory=dict)
    scale: Ball = field(default_factory=lambda: Ball.exact(1))
    tolerance: float = 0.05
    width: int = 0
    base: float = 10000.0

    def with_index(self, name: str, position: int, number: int) -> BallWorld:
        """Return the world in which a bound index has a value."""
        return replace(
            self,
            indices={**self.indices, name: position},
            symbols={**self.symbols, name: scalar(number)},
        )


class BallEvaluator:
    """Evaluates formulas in one ball world."""

    def __init__(self, world: BallWorld) -> None:
        self.world = world

    def truth(self, node: Expression) -> bool | None:
        """Return whether a statement holds everywhere (True), nowhere (False), or None."""
        match node:
            case Compare():
                return self._compare(node)
            case Logic(operator, left, right):
                return _join(operator, self.truth(left), lambda: self.truth(right))
            case Unary("not", operand):
                inner = self.truth(operand)
                return None if inner is None else not inner
            case ForAll(indices, condition, body):
                verdict: bool | None = True
                for world in self._cases(indices, condition, body):
                    part = BallEvaluator(world).truth(body)
                    if part is False:
                        return False
                    verdict = None if part is None else verdict
                return verdict
        raise NotEnclosed("a statement of another kind")

    def value(self, node: Expression) -> Enclosure:
        """Return the enclosure of an expression."""
        match node:
            case Number(value):
                return scalar(value)
            case Name(text):
                return self._name(text)
            case Entry(base, indices):
                return self._entry(base, indices)
            case Unary("-", operand):
                return multiply(scalar(-1), self.value(operand))
            case Unary("T", operand):
                return transpose(self.value(operand))
            case Binary(operator, left, right):
                return self._binary(operator, self.value(left), right)
            case Call(function, arguments, given):
                if given is not None:
                    raise NotEnclosed("a conditional statistic")
                if function in ("sum", "max", "min", "prod"):
                    return self._binder(node)
                return self._call(function, arguments)
        raise NotEnclosed("a statement where a value was expected")

    def _binary(self, operator: str, left: Enclosure, right_node: Expression) -> Enclosure:
        right = self.value(right_node)
        if operator == "+":
            return add(left, right)
        if operator == "-":
            return add(left, multiply(scalar(-1), right))
        if operator == "*":
            return multiply(left, right)
        if operator == "/":
            return each(left, lambda x: x / right.entries)
        base = left.entries.flat() if left.kind == "scalar" else None
        if base is None or right.kind != "scalar":
            raise NotEnclosed("a power of something that is no scalar")
        exponent = right.entries.flat()
        if exponent.is_integer() and abs(exponent) < 64:
            return Enclosure(Ball(base ** int(exponent.unique_fmpz())), "scalar")
        if not base > 0:
            raise NotEnclosed("a fractional power of what may be negative")
        return Enclosure(Ball(base**exponent), "scalar")

    def _name(self, text: str) -> Enclosure:
        world = self.world
        if text in world.symbols:
            return world.symbols[text]
        if text in world.families:
            return world.families[text]
        if text == "pi":
            return Enclosure(Ball(arb.pi()), "scalar")
        if text == "e":
            return Enclosure(Ball(arb.const_e()), "scalar")
        base, underscore, who = text.rpartition("_")
        family = world.families.get(base) or world.symbols.get(base)
        if underscore and family is not None:
            position = int(who) - 1 if who.isdigit() else world.indices.get(who)
            if position is not None:
                return member(family, position)
        raise NotEnclosed(f"the name {text}")

    def _entry(self, base: Expression, indices: tuple[Expression, ...]) -> Enclosure:
        made = self.value(base)
        for index in indices:
            if isinstance(index, Name) and index.text in self.world.indices:
                position = self.world.indices[index.text]
            else:
                position = self._whole(index) - 1
            made = member(made, position)
        return made

    def _whole(self, node: Expression) -> int:
        number = self.value(node).entries.flat()
        if not number.is_integer():
            raise NotEnclosed("a size that is no whole number")
        return int(number.unique_fmpz())

    def _call(self, name: str, arguments: tuple[Expression, ...]) -> Enclosure:
        if name == "mass":
            alpha = self._name("alpha")
            parts = [member(alpha, self._position(argument)).entries for argument in arguments]
            return Enclosure(balls.total(parts), "scalar")
        if name in ("weights", "attention"):
            return self.attention(name, [self.value(argument) for argument in arguments])
        if name in ("ones", "zeros", "eye", "onehot"):
            return constant_array(name, [self._whole(argument) for argument in arguments])
        if name == "phi":
            return self._phi(arguments)
        values = [self.value(argument) for argument in arguments]
        if name in ENTRYWISE:
            return each(values[0], ENTRYWISE[name])
        if name == "exp":
            return each(values[0], balls.exponential)
        if name in ("softmax", "softmax_rows"):
            return self._softmax(values[0])
        if name in PLAIN:
            return PLAIN[name](*values)
        raise NotEnclosed(f"the function {name}")

    def _position(self, node: Expression) -> int:
        if isinstance(node, Name) and node.text in self.world.indices:
            return self.world.indices[node.text]
        return self._whole(node) - 1

    def _softmax(self, x: Enclosure) -> Enclosure:
        rows = x.entries if x.kind == "matrix" else [x.entries]
        made = [balls.softmax(row) for row in rows]
        return Enclosure(made if x.kind == "matrix" else made[0], x.kind)

    def attention(self, name: str, arguments: list[Enclosure]) -> Enclosure:
        """Return the weights or the output of one query."""
        keys = arguments[1] if len(arguments) > 1 else self._name("k")
        query = arguments[0].entries
        logits = [
            balls.total(
                [key * part for key, part in zip(row, query, strict=True) if not key.is_zero()]
            )
            * self.world.scale
            for row in keys.entries
        ]
        alpha = Enclosure(balls.softmax(logits), "vector")
        if name == "weights":
            return alpha
        return self.read(alpha, arguments[2] if len(arguments) > 2 else None)

    def read(self, alpha: Enclosure, values: Enclosure | None = None) -> Enclosure:
        """Return Σ α_i v_i; the coefficients of arbitrary values are the weights themselves."""
        own = self._name("v") if values is None else values
        if values is None and own.formal:
            return replace(alpha, formal=True)
        return multiply(transpose(own), alpha)

    def _phi(self, arguments: tuple[Expression, ...]) -> Enclosure:
        width = self._whole(arguments[1]) if len(arguments) == 2 else self.world.width
        t = self.value(arguments[0]).entries.flat()
        entries = []
        for pair in range((width + 1) // 2):
            angle = t / arb(self.world.base) ** (arb(2 * pair) / width)
            entries += [Ball(angle.sin()), Ball(angle.cos())]
        return Enclosure(entries[:width], "vector")

    def _binder(self, node: Call) -> Enclosure:
        bound = bound_names(node)
        if not bound and len(node.arguments) == 1:
            x = self.value(node.arguments[0])
            return Enclosure(fold(node.function, list(flatten(x))), "scalar")
        if bound:
            body, over = node.arguments
            condition = None if isinstance(over, Name) else over
            parts = [
                BallEvaluator(world).value(body) for world in self._cases(bound, condition, body)
            ]
        else:
            parts = [self.value(argument) for argument in node.arguments]
        if not parts and node.function in indices.EMPTY_FOLDS:
            return scalar(indices.EMPTY_FOLDS[node.function])
        if not parts:
            raise NotEnclosed("a fold over nothing")
        if parts[0].kind == "scalar":
            return Enclosure(fold(node.function, [part.entries for part in parts]), "scalar")
        if node.function != "sum":
            raise NotEnclosed("a fold of vectors")
        whole = parts[0]
        for part in parts[1:]:
            whole = add(whole, part)
        return whole

    def _compare(self, node: Compare) -> bool | None:
        left, right = self.value(node.left), self.value(node.right)
        if node.operator in ("<", "<="):
            return balls.compare(number(left), number(right), node.operator)
        if node.operator in (">", ">="):
            operator = "<" if node.operator == ">" else "<="
            return balls.compare(number(right), number(left), operator)
        difference = add(left, multiply(scalar(-1), right))
        if node.operator == "~":
            within = (
                Ball.exact(Fraction(str(self.world.tolerance)))
                if node.within is None
                else number(self.value(node.within))
            )
            return balls.compare(distance(difference, right), within, "<=")
        flat = list(flatten(difference))
        if all(entry.is_zero() for entry in flat):
            return node.operator == "="
        if any(_never_zero(entry) for entry in flat):
            return node.operator == "!="
        return None

    def _cases(
        self, bound: tuple[str, ...], condition: Expression | None, body: Expression
    ) -> Iterator[BallWorld]:
        lookup = indices.Lookup(
            self._family_size, lambda base: len(self.value(base).entries), self._known
        )
        chosen, all_of_them = indices.cases(bound, condition, body, lookup)
        if not all_of_them:
            raise NotEnclosed("too many cases to enclose one by one")
        for case in chosen:
            world = self.world
            for name, place in zip(bound, case, strict=True):
                world = world.with_index(name, place.position, place.number)
            if condition is None or _holds_for(world, condition):
                yield world

    def _family_size(self, name: str) -> int | None:
        family = self.world.families.get(name) or self.world.symbols.get(name)
        return None if family is None or family.kind == "scalar" else len(family.entries)

    def _known(self, node: Expression) -> float | None:
        try:
            return float(self._whole(node))
        except NotEnclosed:
            return None


def _never_zero(entry: Ball) -> bool:
    try:
        return not entry.flat().contains(arb(0))
    except NotEnclosed:
        return False


def _holds_for(world: BallWorld, condition: Expression) -> bool:
    named = {
        name: scalar(world.indices[name] + 1)
        for name in names_in(condition)
        if name in world.indices and name not in world.symbols
    }
    inner = replace(world, symbols={**world.symbols, **named})
    return BallEvaluator(inner).truth(condition) is True


def _join(operator: str, left: bool | None, right: Callable[[], bool | None]) -> bool | None:
    if operator == "implies":
        left = None if left is None else not left
        operator = "or"
    absorbing = operator == "or"
    if left is absorbing:
        return absorbing
    second = right()
    if second is absorbing:
        return absorbing
    return None if left is None or second is None else second
