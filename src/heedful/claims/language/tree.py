"""The tree a formula becomes: nine kinds of node, and nothing that can run.

Nodes are immutable and compare by content, so a repair can replace a part of a formula and
two formulas can be told apart. Each knows the column of the text it came from; columns do
not count when nodes are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Number:
    """A constant, kept exactly: 0.1 is 1/10."""

    value: Fraction
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written, Greek letters spelled: `beta`, `k_a`, `alpha_i`, `W_Q`, `pi`."""

    text: str
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of an expression: `weights(q)[a]`, `phi(t)[1]`, `A[i, j]`; counted from 1."""

    base: Expression
    indices: tuple[Expression, ...]
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Unary:
    """A sign, a transpose, or a negation."""

    operator: Literal["-", "T", "not"]
    operand: Expression
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic between two expressions; `*` is the product of linear algebra."""

    operator: Literal["+", "-", "*", "/", "^"]
    left: Expression
    right: Expression
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the language, or one that the sheet defines, applied to arguments."""

    function: str
    arguments: tuple[Expression, ...]
    given: Expression | None = None
    """The condition of `E(x given y)`, `P(x given y)`, `std(x given y)`."""
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Compare:
    """A relation; `within` is the tolerance of ≈, when one was written."""

    operator: Literal["<", "<=", ">", ">=", "=", "!=", "~"]
    left: Expression
    right: Expression
    within: Expression | None = None
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Logic:
    """Two statements joined."""

    operator: Literal["and", "or", "implies"]
    left: Expression
    right: Expression
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ForAll:
    """A statement for every value of some indices: `… for all s != t < T`."""

    indices: tuple[str, ...]
    condition: Expression | None
    body: Expression
    column: int = field(default=0, compare=False)


Expression: TypeAlias = Number | Name | Entry | Unary | Binary | Call | Compare | Logic | ForAll


def children(node: Expression) -> tuple[Expression, ...]:
    """Return the expressions directly inside a node."""
    match node:
        case Number() | Name():
            return ()
        case Entry(base, indices):
            return (base, *indices)
        case Unary(_, operand):
            return (operand,)
        case Binary(_, left, right) | Logic(_, left, right):
            return (left, right)
        case Call(_, arguments, given):
            return arguments if given is None else (*arguments, given)
        case Compare(_, left, right, within):
            return (left, right) if within is None else (left, right, within)
        case ForAll(_, condition, body):
            return (body,) if condition is None else (condition, body)


def walk(node: Expression) -> Iterator[Expression]:
    """Yield a node and everything below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def names_in(node: Expression) -> set[str]:
    """Return every name that occurs in an expression."""
    return {part.text for part in walk(node) if isinstance(part, Name)}
