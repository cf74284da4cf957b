"""Which names of a formula are bound: indices of `for all`, and of sum, prod, max and min.

A name `alpha_i` depends on the index i by its subscript. Where i is bound, so is `alpha_i`.
"""

from __future__ import annotations

import re

from heedful.claims.language.functions import FUNCTIONS
from heedful.claims.language.names import subscripts
from heedful.claims.language.tree import (
    Call,
    Compare,
    Expression,
    ForAll,
    Logic,
    Name,
    Unary,
    children,
    walk,
)

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
    if not isinstance(node, Call) or len(node.arguments) != 2:
        return ()
    function = FUNCTIONS.get(node.function)
    if function is None or function.kind != "binder":
        return ()
    body, over = node.arguments
    if isinstance(over, Name):
        plain = node.function in ("max", "min") and over.text not in mentions(body)
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
