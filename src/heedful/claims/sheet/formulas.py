"""The formulas of a claim, read when its sheet is: every slip at its own line and column."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from heedful.claims.language import FUNCTIONS, canonical_name, parse, parse_value
from heedful.claims.language.tree import Call, Expression, names_in, walk
from heedful.claims.sheet.claim import Claim, shown
from heedful.claims.sheet.toml import Keys, Places
from heedful.errors import FormulaError, HeedfulError

STATEMENTS = ("expect", "given")
TABLES = ("covariance", "matrices", "let")
NAMED = ("where", "covariance", "matrices")
"""Tables whose keys are names of the language: β and beta are the same there."""
MOST_PARTS = 2_000
VECTORS = ("keys", "means", "values")

_FUNCTION_HEAD = re.compile(r"([^()]*)\(([^()]*)\)")


class Problems:
    """The problems of one sheet, in the order in which they were met."""

    def __init__(self, file: str, places: Places) -> None:
        self.file = file
        self.places = places
        self.found: list[FormulaError] = []

    def add(
        self,
        path: Keys,
        problem: str,
        *,
        expected: str = "",
        way_out: str = "",
        column: int | None = None,
    ) -> None:
        """Note a problem of a value; `column` counts inside a string value."""
        line, place = self.places.of(path) if column is None else self.places.inside(path, column)
        self.found.append(
            FormulaError(
                self.file, problem, expected=expected, way_out=way_out, line=line, column=place
            )
        )

    def relay(self, path: Keys, label: str, error: HeedfulError) -> None:
        """Note an error about a formula at the place where the formula stands."""
        self.add(
            path,
            f"{label}: {error.problem}",
            expected=error.expected,
            way_out=error.way_out,
            column=getattr(error, "column", None),
        )


def check_formulas(claim: Claim, origin: Callable[[str], Keys], problems: Problems) -> Claim:
    """Note what is wrong with the formulas of a claim; return it with its names spelled.

    `origin` gives the path of a field: in the claim's own table, or in the defaults.
    """
    label = f"claim {shown(claim.id)}"
    changes: dict[str, Any] = {}
    for field in NAMED:
        table: dict[str, Any] = getattr(claim, field)
        spelled = {}
        for key, value in table.items():
            name = _name(key, (*origin(field), key), f"{label}, {field}", problems)
            spelled[name] = value
        changes[field] = spelled
    heads = _Heads.of(claim, origin("let"), label, problems)
    changes["let"] = heads.spelled
    trees: dict[str, Expression] = {}
    for path, field, text in _formulas(claim, origin):
        read = parse if field in STATEMENTS else parse_value
        try:
            tree = read(text, functions=heads.arities)
        except FormulaError as error:
            problems.relay(path, f"{label}, {field}", error)
            continue
        if field == "let":
            trees[str(path[-1])] = tree
    order = _order(trees, heads, origin("let"), label, problems)
    _refuse_explosions(order, trees, heads, origin("let"), label, problems)
    return claim.changed(**changes)


class _Heads:
    """The left sides of `let`: names, and functions with their parameters."""

    def __init__(self) -> None:
        self.arities: dict[str, int] = {}
        self.parameters: dict[str, tuple[str, ...]] = {}
        self.names: dict[str, str] = {}
        self.spelled: dict[str, str] = {}

    @classmethod
    def of(cls, claim: Claim, path: Keys, label: str, problems: Problems) -> _Heads:
        """Read the left sides."""
        heads = cls()
        for key, text in claim.let.items():
            place = (*path, key)
            function = _FUNCTION_HEAD.fullmatch(key.strip())
            name = _name(function[1] if function else key, place, f"{label}, let", problems)
            parameters: tuple[str, ...] = ()
            if function:
                parts = function[2].split(",")
                parameters = tuple(_name(part, place, f"{label}, let", problems) for part in parts)
                heads.arities[name] = len(parameters)
            if name in FUNCTIONS:
                problems.add(
                    place,
                    f"{label}, let: {name} is a function of the language already",
                    expected="expected another name",
                    way_out=f"try {name}_1",
                )
            heads.names[key], heads.parameters[key] = name, parameters
            heads.spelled[f"{name}({', '.join(parameters)})" if function else name] = text
        return heads


def _name(text: str, path: Keys, label: str, problems: Problems) -> str:
    """Return a name as the language spells it; note a problem if it is none."""
    try:
        return canonical_name(text)
    except FormulaError:
        problems.add(
            path,
            f"{label}: {shown(text)} is not a name",
            expected="expected a letter, then letters, digits and _",
            way_out="write for instance n, beta, k_a or W_Q",
        )
        return text


def _formulas(claim: Claim, origin: Callable[[str], Keys]) -> Iterator[tuple[Keys, str, str]]:
    """Yield every formula with its path and field."""
    for place, text in enumerate(claim.expect):
        yield (*origin("expect"), place), "expect", text
    for field in ("given", "query"):
        text = getattr(claim, field)
        if text is not None:
            yield origin(field), field, text
    for field in ("heads", "sequence"):
        for place, text in enumerate(getattr(claim, field)):
            yield (*origin(field), place), field, text
    for field in TABLES:
        table: Mapping[str, str] = getattr(claim, field)
        for key, text in table.items():
            yield (*origin(field), key), field, text
    for field in VECTORS:
        rows = getattr(claim, field)
        for place, row in enumerate(rows if isinstance(rows, tuple) else ()):
            if isinstance(row, str):
                yield (*origin(field), place), field, row


def _order(
    trees: Mapping[str, Expression], heads: _Heads, path: Keys, label: str, problems: Problems
) -> list[str]:
    """Return the definitions in an order in which each needs only those before it.

    Neither f(X) = f(X) nor a = b, b = a has one: that is refused.
    """
    keys = {name: key for key, name in heads.names.items()}
    needs = {
        key: {keys[name] for name in _used(tree) - set(heads.parameters[key]) if name in keys}
        for key, tree in trees.items()
    }
    order: list[str] = []
    while free := [key for key in needs if key not in order and not needs[key] - set(order)]:
        order += free
    for key in needs:
        # One that could not be read is missing from `needs`, and has been reported already.
        if key not in order and needs[key] <= set(needs):
            problems.add(
                (*path, key),
                f"{label}, let: {heads.names[key]} is defined through itself",
                expected="expected definitions without a circle",
            )
            break  # the others of the circle would only repeat it
    return order


def _refuse_explosions(
    order: Sequence[str],
    trees: Mapping[str, Expression],
    heads: _Heads,
    path: Keys,
    label: str,
    problems: Problems,
) -> None:
    """Refuse definitions that double and double: twenty short ones write out to a million."""
    keys = {name: key for key, name in heads.names.items()}
    sizes: dict[str, int] = {}
    for key in order:
        size = 0
        for node in walk(trees[key]):
            name = node.function if isinstance(node, Call) else getattr(node, "text", "")
            own = name in heads.parameters[key]
            size += 1 if own else sizes.get(keys.get(name, ""), 1)
        sizes[key] = size
        if size > MOST_PARTS:
            problems.add(
                (*path, key),
                f"{label}, let: {heads.names[key]} writes out to {size:,} parts",
                expected=f"expected at most {MOST_PARTS:,}",
                way_out="define less through definitions",
            )
            return


def _used(tree: Expression) -> set[str]:
    calls = {node.function for node in walk(tree) if isinstance(node, Call)}
    return names_in(tree) | calls
