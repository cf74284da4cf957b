"""Changing formulas: expressions put in the place of names, numbers in the place of indices.

No change may alter what a name means. Where an expression that speaks of i is put under
`for all i`, the bound index is renamed first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import count

from heedful.claims.language.tokens import subscripts
from heedful.claims.language.tree import (
    Call,
    Entry,
    Exists,
    Expression,
    ForAll,
    Name,
    Number,
    Unary,
    bound_names,
    children,
    mentions,
    with_children,
)
from heedful.errors import FormulaError

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
