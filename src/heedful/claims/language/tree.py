"""The tree a formula becomes: eleven kinds of node, and nothing that can run.

Nodes are immutable and compare by content, so a repair can replace a part of a formula and
two formulas can be told apart. Each knows where it was written: the field of the claim and
the column of its text. Positions do not count when nodes are compared. Trees can be pickled,
positions included, so an error found in another process still knows its place.

Indices of `for all`, and of sum, prod, max and min, are bound. A name `alpha_i` depends on the
index i by its subscript: where i is bound, so is `alpha_i`.

Formulas can be changed: expressions put in the place of names, numbers in the place of indices. No
change may alter what a name means. Where an expression that speaks of i is put under
`for all i`, the bound index is renamed first.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from fractions import Fraction
from itertools import count
from typing import Literal, NamedTuple, TypeAlias

from heedful.claims.functions import FUNCTIONS
from heedful.claims.language.tokens import subscripts
from heedful.errors import FormulaError

Field: TypeAlias = tuple[str | int, ...]
"""The path of a formula inside its claim: ("expect", 0), ("query",), ("let", "f(X)")."""


class Position(NamedTuple):
    """Where something was written."""

    column: int
    """Counted from 1 in the text of the formula; 0 for what was never written."""
    field: Field = ()
    """The formula it is part of; empty for a formula that belongs to no claim."""


NOWHERE = Position(0)
LARGEST_POWER = 64
"""Of numbers that are raised exactly."""


@dataclass(frozen=True, slots=True)
class Node:
    """What all kinds of node share."""

    position: Position = field(default=NOWHERE, compare=False, repr=False, kw_only=True)

    @property
    def column(self) -> int:
        """Where it was written, from 1."""
        return self.position.column

    def error(self, problem: str, *, expected: str = "", hint: str = "") -> FormulaError:
        """Return an error about this part of a formula, at its field and column."""
        return FormulaError(
            "formula",
            problem,
            expected=expected,
            hint=hint,
            column=self.position.column or None,
            field=self.position.field,
        )

    def locate(self, error: FormulaError) -> FormulaError:
        """Return an error from inside this part, at this part unless it has a place already."""
        if error.column is not None or not self.position.column:
            return error
        return type(error)(
            error.where,
            error.problem,
            expected=error.expected,
            hint=error.hint,
            column=self.position.column,
            field=self.position.field,
        )


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A constant, kept exactly: 0.1 is 1/10."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A name as written, Greek letters spelled: `beta`, `k_a`, `alpha_i`, `W_Q`, `pi`."""

    text: str


@dataclass(frozen=True, slots=True)
class Entry(Node):
    """One entry of an expression: `weights(q)[a]`, `phi(t)[1]`, `A[i, j]`; counted from 1."""

    base: Expression
    indices: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """A sign, a transpose, or a negation."""

    operator: Literal["-", "T", "not"]
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """Arithmetic between two expressions; `*` is the product of linear algebra."""

    operator: Literal["+", "-", "*", "/", "^"]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function of the language, or one that the sheet defines, applied to arguments."""

    function: str
    arguments: tuple[Expression, ...]
    given: Expression | None = None
    """The condition of `E(x given y)`, `P(x given y)`, `std(x given y)`."""


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """A relation; `within` is the tolerance of ≈, when one was written."""

    operator: Literal["<", "<=", ">", ">=", "=", "!=", "~", ">>"]
    left: Expression
    right: Expression
    within: Expression | None = None


@dataclass(frozen=True, slots=True)
class Logic(Node):
    """Two statements joined."""

    operator: Literal["and", "or", "implies"]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class ForAll(Node):
    """A statement for every value of some indices: `… for all s != t < T`."""

    indices: tuple[str, ...]
    condition: Expression | None
    body: Expression


@dataclass(frozen=True, slots=True)
class Limit(Node):
    """A value that comes as close as one likes to another: `alpha_a -> 1 as beta -> infinity`."""

    left: Expression
    right: Expression
    symbol: str = ""
    """What moves; nothing: the one large or small symbol of the claim."""
    target: Literal["infinity", "0"] = "infinity"
    """Where it moves; to 0 from above."""


@dataclass(frozen=True, slots=True)
class Exists(Node):
    """A statement for at least one value of some names: `there is a matrix R with …`."""

    kind: str
    """matrix, rotation, vector or number; "position" for indices."""
    names: tuple[str, ...]
    condition: Expression | None
    body: Expression


Expression: TypeAlias = (
    Number | Name | Entry | Unary | Binary | Call | Compare | Logic | ForAll | Limit | Exists
)


class Precedence(IntEnum):
    """The levels of the language; an operand must bind at least as tightly as its place asks."""

    CLAUSE = 0
    """`… for all i`, `… given that …`"""
    IMPLIES = 1
    OR = 2
    AND = 3
    NOT = 4
    RELATION = 5
    SUM = 6
    PRODUCT = 7
    SIGN = 8
    POWER = 9
    """`x^2`, `x^T`"""
    ATOM = 10
    """Names, numbers, brackets, calls, entries."""


def children(node: Expression) -> tuple[Expression, ...]:
    """Return the expressions directly inside a node."""
    match node:
        case Number() | Name():
            return ()
        case Entry(base, indices):
            return (base, *indices)
        case Unary(_, operand):
            return (operand,)
        case Binary(_, left, right) | Logic(_, left, right) | Limit(left, right):
            return (left, right)
        case Call(_, arguments, given):
            return arguments if given is None else (*arguments, given)
        case Compare(_, left, right, within):
            return (left, right) if within is None else (left, right, within)
        case ForAll(_, condition, body) | Exists(_, _, condition, body):
            return (body,) if condition is None else (condition, body)


def with_children(node: Expression, parts: Iterable[Expression]) -> Expression:
    """Return a node of the same kind around other parts, in the order of `children`."""
    new = tuple(parts)
    match node:
        case Number() | Name():
            return node
        case Entry():
            return dataclasses.replace(node, base=new[0], indices=new[1:])
        case Unary():
            return dataclasses.replace(node, operand=new[0])
        case Binary() | Logic() | Limit():
            return dataclasses.replace(node, left=new[0], right=new[1])
        case Compare():
            within = new[2] if len(new) > 2 else None
            return dataclasses.replace(node, left=new[0], right=new[1], within=within)
        case Call():
            given = None if node.given is None else new[-1]
            return dataclasses.replace(node, arguments=new[: len(node.arguments)], given=given)
        case ForAll() | Exists():
            condition = None if node.condition is None else new[0]
            return dataclasses.replace(node, condition=condition, body=new[-1])


def map_children(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return a node with every expression directly inside it changed."""
    return with_children(node, map(change, children(node)))


def walk(node: Expression) -> Iterator[Expression]:
    """Yield a node and everything below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def rational(node: Expression) -> Fraction | None:
    """Return the number that an expression of numbers alone comes to, None for any other.

    >>> rational(Binary("-", Number(Fraction(1, 10)), Unary("-", Number(Fraction(1, 5)))))
    Fraction(3, 10)
    """
    match node:
        case Number(value):
            return value
        case Unary("-", operand):
            inside = rational(operand)
            return None if inside is None else -inside
        case Binary(operator, left, right):
            x, y = rational(left), rational(right)
            if x is None or y is None:
                return None
            match operator:
                case "+":
                    return x + y
                case "-":
                    return x - y
                case "*":
                    return x * y
                case "/":
                    return x / y if y else None
            small = y.denominator == 1 and abs(y) <= LARGEST_POWER
            return Fraction(x ** int(y)) if small and (x or y >= 0) else None
    return None


def names_in(node: Expression) -> set[str]:
    """Return every name that occurs in an expression."""
    return {part.text for part in walk(node) if isinstance(part, Name)}


_INDEX = re.compile(r"[ijklmrstu][0-9]*")


def looks_like_an_index(name: str) -> bool:
    """Tell whether a name is one that mathematicians use for an index."""
    return _INDEX.fullmatch(name) is not None


def bound_names(node: Expression) -> tuple[str, ...]:
    """Return the indices that a node itself binds.

    `sum(x, i)` and `sum(x, i != a)` bind i, the first name of the second argument. `max` and
    `min` also take two plain values: `max(x, y)` binds y only where x depends on y.
    """
    if isinstance(node, ForAll):
        return node.indices
    if isinstance(node, Exists):
        return node.names
    if not isinstance(node, Call) or len(node.arguments) != 2:
        return ()
    function = FUNCTIONS.get(node.function)
    if function is None or function.kind != "binder":
        return ()
    body, over = node.arguments
    if isinstance(over, Name):
        plain = function.of_two and over.text not in mentions(body)
        return () if plain else (over.text,)
    if not is_condition(over):
        return ()
    return next(((part.text,) for part in walk(over) if isinstance(part, Name)), ())


def is_condition(node: Expression) -> bool:
    """Tell whether a node is a relation or relations joined by words."""
    return isinstance(node, Compare | Logic) or (isinstance(node, Unary) and node.operator == "not")


def mentions(node: Expression) -> frozenset[str]:
    """Return the free names of an expression and all their subscripts.

    >>> from heedful.claims.language.tree import Binary, Name
    >>> sorted(mentions(Binary("*", Name("alpha_i"), Name("v"))))
    ['alpha_i', 'i', 'v']
    """
    return frozenset(part for name in free_names(node) for part in (name, *subscripts(name)))


def free_names(node: Expression) -> frozenset[str]:
    """Return the names of an expression that no index inside it binds."""
    if isinstance(node, Name):
        return frozenset({node.text})
    inside = frozenset(name for child in children(node) for name in free_names(child))
    bound = set(bound_names(node))
    if not bound:
        return inside
    return frozenset(
        name for name in inside if name not in bound and not bound & set(subscripts(name))
    )


# Changes -------------------------------------------------------------------------------------

MOST_NODES = 2000
"""How large a formula may become when definitions are put into it."""
MOST_LEVELS = 90


def substitute(tree: Expression, mapping: Mapping[str, Expression]) -> Expression:
    """Return the formula with expressions in the place of free names, all at once.

    Whole names only: {"k_a": …} leaves k_b alone, and a bound `alpha_i` is not the free one.
    A member follows its family: with {"x": …}, `x_i` becomes member i of what stands for x.

    >>> from heedful.claims.language import parse, parse_value, show
    >>> show(substitute(parse("x + v_i = 0 for all i"), {"x": parse_value("k_i / 2")}))
    'k_i / 2 + v_i1 = 0 for all i1'
    >>> show(substitute(parse_value("sum(x_i, i)"), {"x": parse_value("2 y")}))
    'sum((2 * y)[i], i)'
    """
    return _checked(_substitute(tree, dict(mapping)))


def instantiate(tree: Expression, index: str, label: str | int) -> Expression:
    """Return the formula with a free index set: i = 2 makes `alpha_i` into `alpha_2`.

    >>> from heedful.claims.language import parse, show
    >>> show(instantiate(parse("alpha_i <= i"), "i", 2))
    'alpha_2 <= 2'
    """
    whole = Number(Fraction(label)) if isinstance(label, int) else Name(label)
    return _relabel(tree, index, str(label), whole)


def constant(value: int | float | Fraction) -> Expression:
    """Return a number as the formula one would type: the shortest decimal, signs outside.

    >>> from heedful.claims.language import show
    >>> show(constant(-0.1))
    '-0.1'
    """
    exact = _shortest(value) if isinstance(value, float) else Fraction(value)
    return Unary("-", Number(-exact)) if exact < 0 else Number(exact)


def _substitute(node: Expression, mapping: dict[str, Expression]) -> Expression:
    if isinstance(node, Name):
        return mapping[node.text] if node.text in mapping else _member(node, mapping)
    bound = set(bound_names(node))
    if bound:
        inside = {part for child in children(node) for part in mentions(child)}
        inside |= {name.rpartition("_")[0] for name in inside}
        mapping = {
            name: new
            for name, new in mapping.items()
            if name in inside and name not in bound and not bound & set(subscripts(name))
        }
        node = _without_clash(node, {part for new in mapping.values() for part in mentions(new)})
    if not mapping:
        return node
    return _rebuilt(node, (_substitute(child, mapping) for child in children(node)))


def _member(node: Name, mapping: Mapping[str, Expression]) -> Expression:
    """Return `x_i` as member i of what is put in the place of x; other names stay."""
    base, _, member = node.text.rpartition("_")
    if base not in mapping:
        return node
    family = mapping[base]
    if isinstance(family, Name) and "_" not in family.text:
        return Name(f"{family.text}_{member}", position=node.position)
    index = Number(Fraction(int(member))) if member.isdigit() else Name(member)
    return Entry(family, (dataclasses.replace(index, position=node.position),))


def _replace(node: Expression, old: Expression, new: Expression) -> Expression:
    if node == old:
        return new
    bound = set(bound_names(node))
    if bound and not bound & mentions(old):
        node = _without_clash(node, set(mentions(new)))
    return _rebuilt(node, (_replace(child, old, new) for child in children(node)))


def _without_clash(node: Expression, taken: set[str]) -> Expression:
    """Return a binder whose indices are renamed where they are among the names taken."""
    for index in bound_names(node):
        if index in taken:
            inside = {part for child in children(node) for part in mentions(child)}
            fresh = _fresh(index, taken | inside | set(bound_names(node)))
            node = _rename_bound(node, index, fresh)
    return node


def _rename_bound(node: Expression, index: str, fresh: str) -> Expression:
    parts = (_relabel(child, index, fresh, Name(fresh)) for child in children(node))
    renamed = with_children(node, parts)
    if isinstance(renamed, ForAll):
        indices = tuple(fresh if one == index else one for one in renamed.indices)
        return dataclasses.replace(renamed, indices=indices)
    if isinstance(renamed, Exists):
        names = tuple(fresh if one == index else one for one in renamed.names)
        return dataclasses.replace(renamed, names=names)
    return renamed


def _fresh(index: str, taken: set[str]) -> str:
    stem = index.rstrip("0123456789") or index
    return next(name for number in count(1) if (name := f"{stem}{number}") not in taken)


def _relabel(node: Expression, index: str, label: str, whole: Expression) -> Expression:
    """Return a node with a free index relabelled, alone and as a subscript."""
    if isinstance(node, Name):
        if node.text == index:
            return dataclasses.replace(whole, position=node.position)
        head, *below = node.text.split("_")
        if index not in below:
            return node
        text = "_".join([head, *(label if part == index else part for part in below)])
        return Name(text, position=node.position)
    bound = bound_names(node)
    if index in bound:
        return node
    if label in bound and any(index in mentions(child) for child in children(node)):
        node = _without_clash(node, {label})
    return _rebuilt(node, (_relabel(part, index, label, whole) for part in children(node)))


def _rebuilt(node: Expression, parts: Iterable[Expression]) -> Expression:
    """Return a node around new parts that binds what it bound before."""
    made = with_children(node, parts)
    if isinstance(made, Call) and bound_names(made) and not bound_names(node):
        # max(x, y) with x = 2 y would become a maximum over an index y; --y is the value y.
        first, second = made.arguments
        value = Unary("-", Unary("-", second))
        return dataclasses.replace(made, arguments=(first, value))
    return made


def _shortest(value: float) -> Fraction:
    try:
        return Fraction(repr(float(value)))
    except ValueError:
        raise FormulaError(
            "formula", f"{value} cannot be written", expected="a finite number was expected"
        ) from None


def _checked(tree: Expression) -> Expression:
    """Refuse a formula that has become too large; shared parts count every time."""
    measured: dict[int, tuple[int, int]] = {}

    def visit(node: Expression) -> tuple[int, int]:
        if id(node) not in measured:
            parts = [visit(child) for child in children(node)]
            size = 1 + sum(size for size, _ in parts)
            measured[id(node)] = size, 1 + max((levels for _, levels in parts), default=0)
        return measured[id(node)]

    size, levels = visit(tree)
    if size > MOST_NODES or levels > MOST_LEVELS:
        raise FormulaError(
            "formula",
            f"with its definitions written out the formula has {size} parts on {levels} levels",
            expected=f"at most {MOST_NODES} on {MOST_LEVELS} were expected",
            hint="use fewer definitions inside definitions",
        )
    return tree
