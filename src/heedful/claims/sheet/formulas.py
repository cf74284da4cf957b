"""The formulas of a claim, each read once: it keeps its text, its tree and its place.

`read_formulas` reads every formula of a claim in the light of the others: names that `where` and
`let` declare, functions that `let` defines. From then on a formula is a `ParsedFormula`, which is
its text wherever text is shown and has its tree wherever its meaning counts, also in child
processes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from heedful.claims.functions import FUNCTIONS, Arity
from heedful.claims.language import canonical_name, parse, parse_value, show
from heedful.claims.language.latex import is_latex
from heedful.claims.language.tree import (
    Call,
    Compare,
    Expression,
    Field,
    Name,
    names_in,
    walk,
)
from heedful.claims.sheet.claim import Claim, field_error, shown
from heedful.claims.sheet.texts import split_texts
from heedful.errors import FormulaError

STATEMENTS = ("expect", "given")
LISTS = ("expect", "heads", "sequence")
SINGLE = ("given", "query")
TABLES = ("covariance", "matrices", "let")
NAMED = ("where", "covariance", "matrices")
"""Tables whose keys are names of the language: β and beta are the same there."""
VECTORS = ("keys", "means", "values")
MODEL_LETTERS = {
    "alpha": 2, "logit": 1, "prob": 1, "residual_norm": 1, "key_norm": 2, "query_norm": 2,
}  # fmt: skip
"""What can be said of a model, with the number of arguments: alpha(layer, head)[t, s], …"""
CHANGED_LOSS = "changed_loss"
"""The loss of a model with what the field `intervene` changes."""
MOST_PARTS = 2_000
"""How large a definition may become when the definitions it uses are written out."""

_FUNCTION_HEAD = re.compile(r"([^()]*)\(([^()]*)\)")
_SUBSCRIPT = re.compile(r"_\s*\{?\s*([A-Za-z]\w*)")


class ParsedFormula(str):
    """A formula as it was written, with the tree it was read into."""

    tree: Expression

    def __new__(cls, text: str, tree: Expression) -> ParsedFormula:
        """Join a text and its tree."""
        formula = super().__new__(cls, text)
        formula.tree = tree
        return formula

    @property
    def reading(self) -> str:
        """The formula in the language's own letters where it was written in LaTeX."""
        return show(self.tree, "unicode") if is_latex(self) else str(self)

    def __reduce__(self) -> tuple[object, ...]:
        # Formulas travel between processes; the default would pickle the text alone.
        return (ParsedFormula, (str(self), self.tree))


@dataclass(frozen=True)
class DefinitionHead:
    """The left side of a definition in `let`: a name, or a function with its parameters."""

    name: str
    parameters: tuple[str, ...] | None
    """None for a plain name."""

    @classmethod
    def of(cls, text: str, spell: Callable[[str], str] = str.strip) -> DefinitionHead:
        """Read the left side of a definition."""
        function = _FUNCTION_HEAD.fullmatch(text.strip())
        if function is None:
            return cls(spell(text), None)
        return cls(spell(function[1]), tuple(spell(part) for part in function[2].split(",")))

    def __str__(self) -> str:
        return (
            self.name if self.parameters is None else f"{self.name}({', '.join(self.parameters)})"
        )


def reading(formula: str) -> str:
    """Return how a formula was read: LaTeX in letters of the language, anything else as written."""
    return formula.reading if isinstance(formula, ParsedFormula) else formula


def map_formulas(claim: Claim, change: Callable[[Field, str], str]) -> Claim:
    """Return a claim with every formula replaced by what `change(field, text)` returns."""
    changes: dict[str, Any] = {}
    for name in LISTS:
        texts = getattr(claim, name)
        changes[name] = tuple(change((name, place), text) for place, text in enumerate(texts))
    for name in SINGLE:
        text = getattr(claim, name)
        changes[name] = None if text is None else change((name,), text)
    for name in TABLES:
        table: Mapping[str, str] = getattr(claim, name)
        changes[name] = {key: change((name, key), text) for key, text in table.items()}
    for name in VECTORS:
        rows = getattr(claim, name)
        if isinstance(rows, list | tuple):
            changes[name] = tuple(
                change((name, place), row) if isinstance(row, str) else row
                for place, row in enumerate(rows)
            )
    return claim.changed(**changes)


def read_claim(claim: Claim) -> Claim:
    """Return a claim with all its formulas read, or raise what is wrong with the first."""
    unread = False

    def note(_field: Field, text: str) -> str:
        nonlocal unread
        unread = unread or not isinstance(text, ParsedFormula)
        return text

    map_formulas(claim, note)
    if not unread:
        return claim
    claim, errors = read_formulas(claim)
    if errors:
        raise errors[0]
    return claim


def read_formulas(claim: Claim) -> tuple[Claim, list[FormulaError]]:
    """Return a claim with its names spelled and its formulas read, and what is wrong with it.

    What has been read before is not read again.
    """
    errors: list[FormulaError] = []
    tables = {
        table: {key: _spelled(key, (table, key), errors) for key in getattr(claim, table)}
        for table in NAMED
    }
    heads = {key: _definition_head(key, errors) for key in claim.let}
    claim, found = _with_open_number(claim, errors)
    tables["let"] = {key: str(head) for key, head in heads.items()}
    functions = {
        head.name: len(head.parameters) for head in heads.values() if head.parameters is not None
    }
    if claim.model is not None:
        functions = {**MODEL_LETTERS, **functions}
    names = {
        *tables["where"].values(),
        *(head.name for head in heads.values() if head.parameters is None),
        *_fixed_members(claim),
        *(name for name in tables["covariance"].values() if name != "others"),
        *(() if found is None else (found,)),
        *(() if claim.model is None else (CHANGED_LOSS,)),
    }

    def read(field: Field, text: str) -> str:
        if isinstance(text, ParsedFormula):
            return text
        of_function = field[0] == "let" and heads[str(field[1])].parameters is not None
        reader = parse if field[0] in STATEMENTS else parse_named_value
        try:
            declared = () if of_function else names
            body = str(text) if claim.model is None else split_texts(str(text))[0]
            return ParsedFormula(
                str(text), reader(body, functions=functions, names=declared, field=field)
            )
        except FormulaError as error:
            error.field = field
            errors.append(error)
            return text

    claim = map_formulas(claim, read)
    _check_definitions(claim.let, heads, errors)
    spelled = {
        table: {names_of[key]: item for key, item in getattr(claim, table).items()}
        for table, names_of in tables.items()
    }
    return claim.changed(**spelled), errors


def parse_named_value(
    text: str, *, functions: Mapping[str, Arity], names: Collection[str], field: Field
) -> Expression:
    """Read a value, which may stand behind its name: `q = beta k_a` is the query beta k_a."""
    try:
        return parse_value(text, functions=functions, names=names, field=field)
    except FormulaError as error:
        try:
            tree = parse(text, functions=functions, names=names, field=field)
        except FormulaError:
            raise error from None
        match tree:
            case Compare("=", Name(name), value, None) if name in _own_names(field):
                return value
        raise


def _own_names(field: Field) -> tuple[str, ...]:
    """Return the names under which a formula may define what its field holds."""
    what, *inside = field
    if what == "query":
        return ("q",)
    place = inside[0] if inside else ""
    if isinstance(place, int):
        letter = {"heads": "q", "sequence": "x", "keys": "k", "values": "v", "means": "mu"}
        return (f"{letter.get(str(what), '')}_{place + 1}",)
    return (str(place),) if what in ("matrices", "let") else (f"Sigma_{place}",)


def _spelled(text: str, field: Field, errors: list[FormulaError]) -> str:
    """Return a name as the language spells it; note an error if it is none."""
    try:
        return canonical_name(text)
    except FormulaError:
        errors.append(
            field_error(
                field,
                f"{shown(text)} is not a name",
                expected="expected a letter, then letters, digits and _",
                hint="write for instance n, beta, k_a or W_Q",
            )
        )
        return text


def _with_open_number(claim: Claim, errors: list[FormulaError]) -> tuple[Claim, str | None]:
    """Return the claim with the name under `find` spelled, and that name."""
    if claim.find is None:
        return claim, None
    word, _, name = claim.find.partition(" ")
    spelled = _spelled(name, ("find",), errors)
    return claim.changed(find=f"{word} {spelled}"), spelled


def _definition_head(key: str, errors: list[FormulaError]) -> DefinitionHead:
    head = DefinitionHead.of(key, lambda text: _spelled(text, ("let", key), errors))
    if head.name in FUNCTIONS:
        errors.append(
            field_error(
                ("let", key),
                f"{head.name} is a function of the language already",
                expected="expected another name",
                hint=f"try {head.name}_1",
            )
        )
    return head


def _fixed_members(claim: Claim) -> set[str]:
    """Return the members that the construction names, such as j of "beta k_j".

    A `for all i != j` binds i and not j, so they must be known before any formula is read.
    """
    texts: list[str] = []

    def note(field: Field, text: str) -> str:
        if field[0] in ("query", "heads", "sequence", *TABLES):
            texts.append(str(text))
        return text

    map_formulas(claim, note)
    return {member for text in texts for member in _SUBSCRIPT.findall(text)}


def _check_definitions(
    let: Mapping[str, str], heads: Mapping[str, DefinitionHead], errors: list[FormulaError]
) -> None:
    """Refuse definitions that refer to themselves, and those that double and double.

    Neither f(X) = f(X) nor a = b, b = a has an order in which each definition needs only those
    before it. Twenty short definitions can write out to a million parts.
    """

    def names_used(tree: Expression) -> set[str]:
        return names_in(tree) | {node.function for node in walk(tree) if isinstance(node, Call)}

    trees = {key: text.tree for key, text in let.items() if isinstance(text, ParsedFormula)}
    keys = {head.name: key for key, head in heads.items()}
    own = {key: head.parameters or () for key, head in heads.items()}
    needs = {
        key: {keys[name] for name in names_used(tree) - set(own[key]) if name in keys}
        for key, tree in trees.items()
    }
    sizes: dict[str, int] = {}
    while ready := [key for key in needs if key not in sizes and needs[key] <= sizes.keys()]:
        for key in ready:
            sizes[key] = 0
            for node in walk(trees[key]):
                name = node.function if isinstance(node, Call) else getattr(node, "text", "")
                sizes[key] += 1 if name in own[key] else sizes.get(keys.get(name, ""), 1)
            if sizes[key] > MOST_PARTS:
                errors.append(
                    field_error(
                        ("let", key),
                        f"{heads[key].name} writes out to {sizes[key]:,} parts",
                        expected=f"expected at most {MOST_PARTS:,}",
                        hint="define less through definitions",
                    )
                )
                return
    for key in needs:
        # One that could not be read is missing from `needs`, and has been reported already.
        if key not in sizes and needs[key] <= needs.keys():
            errors.append(
                field_error(
                    ("let", key),
                    f"{heads[key].name} is defined through itself",
                    expected="expected definitions without a circle",
                )
            )
            return  # the others of the circle would only repeat it
