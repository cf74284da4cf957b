"""Definitions of a sheet: `let` names and functions, and how they are expanded."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from heedful.claims.functions import STATISTICS
from heedful.claims.language import FUNCTIONS, parse_value
from heedful.claims.language.rewrite import substitute
from heedful.claims.language.tree import Call, Expression, map_children, walk
from heedful.claims.sheet.claim import Claim
from heedful.errors import FormulaError

MOST_NODES = 20_000


def fixed_members(claim: Claim) -> set[str]:
    """Return the members that the construction names, such as j of "beta k_j"."""
    texts = [
        claim.query,
        *claim.heads,
        *claim.sequence,
        *claim.matrices.values(),
        *claim.covariance.values(),
        *claim.let.values(),
    ]
    found = {
        member
        for text in texts
        if isinstance(text, str)
        for member in re.findall(r"_\{?([A-Za-z]\w*)", text)
    }
    return found | {name for name in claim.covariance if name != "others"}


_FUNCTION = re.compile(r"\s*([A-Za-z]\w*)\s*\(([^()]*)\)\s*")


def definitions_of(
    claim: Claim,
) -> tuple[dict[str, tuple[tuple[str, ...], Expression]], dict[str, str]]:
    """Split `let` into functions (parsed) and names (still text)."""
    headers: dict[str, tuple[tuple[str, ...], str]] = {}
    names: dict[str, str] = {}
    for key, text in claim.let.items():
        if found := _FUNCTION.fullmatch(key):
            parameters = tuple(part.strip() for part in found[2].split(",") if part.strip())
            if found[1] in FUNCTIONS:
                raise FormulaError(
                    f"{claim.id}.let",
                    f"{found[1]!r} is already a function",
                    expected="another name",
                )
            headers[found[1]] = (parameters, text)
        else:
            names[key.strip()] = text
    arities = {name: len(parameters) for name, (parameters, _) in headers.items()}
    functions = {
        name: (parameters, parse_value(str(text), functions=arities))
        for name, (parameters, text) in headers.items()
    }
    return functions, names


def expand(
    tree: Expression,
    functions: Mapping[str, tuple[tuple[str, ...], Expression]],
    field: str,
    depth: int = 0,
) -> Expression:
    """Replace every call of a sheet's own function by its body."""
    if depth > 20:
        raise FormulaError(field, "a definition refers to itself", expected="no circles")
    calls = [node for node in walk(tree) if isinstance(node, Call) and node.function in functions]
    if not calls:
        if sum(1 for _ in walk(tree)) > MOST_NODES:
            raise FormulaError(
                field, f"expands to more than {MOST_NODES} parts", expected="smaller definitions"
            )
        return tree

    def rebuilt(node: Expression) -> Expression:
        made = map_children(node, rebuilt)
        if isinstance(made, Call) and made.function in functions:
            parameters, body = functions[made.function]
            if len(parameters) != len(made.arguments):
                raise FormulaError(
                    field,
                    f"{made.function} got {len(made.arguments)} arguments",
                    expected=f"{len(parameters)}",
                    column=made.column or None,
                )
            return substitute(body, dict(zip(parameters, made.arguments, strict=True)))
        return made

    return expand(rebuilt(tree), functions, field, depth + 1)


def with_given(tree: Expression, given: Expression) -> Expression:
    """Put a claim's condition inside every statistic that has none of its own."""
    made = map_children(tree, lambda part: with_given(part, given))
    if isinstance(made, Call) and made.given is None and made.function in STATISTICS:
        return dataclasses.replace(made, given=given)
    return made
