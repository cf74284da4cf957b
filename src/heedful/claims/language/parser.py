"""From text to tree: `parse` for statements, `parse_value` for values.

From loose to tight: `for all`, `given that` < implies < or < and < not < relations < + - <
products < sign < powers and transposes < entries and calls. Relations may be chained:
a < b < c means a < b and b < c. A product needs no sign: `2 beta`, `P X`, `k_a^T q`. A name
before a bracket is called only if it is a known function; otherwise it is a factor.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from heedful.claims.language.clauses import Clauses
from heedful.claims.language.functions import FUNCTIONS, Arity, declared
from heedful.claims.language.reader import Limits, Vocabulary
from heedful.claims.language.tokens import tokenize
from heedful.claims.language.tree import Expression, Field
from heedful.errors import FormulaError

LIMITS = Limits()
"""What a formula may be unless told otherwise: 500 characters, 200 nodes, 30 levels."""


def parse(
    text: str,
    *,
    functions: Mapping[str, Arity] | None = None,
    names: Collection[str] = (),
    where: str = "formula",
    limits: Limits = LIMITS,
    field: Field = (),
) -> Expression:
    """Read a statement: a relation, or relations joined by words and clauses.

    `functions` are those that a sheet defines, with the number of their arguments. `names`
    are those it declares: they are never bound by a clause, nor called. `field` is the formula's
    place in its claim; every node and every error remembers it.

    >>> parse("α_a ≥ 0.9")
    Compare(operator='>=', left=Name(text='alpha_a'), right=Number(value=Fraction(9, 10)),
            within=None)
    """
    reader, tree = _read(text, functions, names, where, limits, field)
    if not reader.is_statement(tree):
        reader.fail(
            "the formula is a value, and says nothing that could be true or false",
            tree.column,
            expected="a relation was expected",
            way_out="compare it with something: x = 1, alpha_a >= 0.9, c ≈ v_a within 0.02",
        )
    return tree


def parse_value(
    text: str,
    *,
    functions: Mapping[str, Arity] | None = None,
    names: Collection[str] = (),
    where: str = "formula",
    limits: Limits = LIMITS,
    field: Field = (),
) -> Expression:
    """Read a value: a query, a matrix, a bound; no relation.

    >>> parse_value("β k_a")
    Binary(operator='*', left=Name(text='beta'), right=Name(text='k_a'))
    """
    reader, tree = _read(text, functions, names, where, limits, field)
    reader.need_value(tree, tree.column, "the formula")
    return tree


def canonical_name(text: str, where: str = "name") -> str:
    """Return the spelling under which formulas know a name.

    >>> canonical_name("α₁"), canonical_name("k_{a}")
    ('alpha_1', 'k_a')
    """
    tokens = tokenize(text[: LIMITS.characters], where)
    name = tokens[0]
    if name.kind != "name" or len(tokens) != 2 or len(text) > LIMITS.characters:
        raise FormulaError(
            where,
            f"{text[:40]!r} is not a name",
            expected="letters, digits and subscripts were expected, such as beta, k_a or α₁",
        )
    return name.text


def _read(
    text: str,
    functions: Mapping[str, Arity] | None,
    names: Collection[str],
    where: str,
    limits: Limits,
    field: Field,
) -> tuple[Clauses, Expression]:
    own = {name: declared(name, arity) for name, arity in (functions or {}).items()}
    vocabulary = Vocabulary(functions={**FUNCTIONS, **own}, names=frozenset(names) - own.keys())
    reader = Clauses(text, where, vocabulary, limits, field)
    if reader.at_end():
        reader.fail("the formula is empty", 1, expected="a formula was expected, such as x = 1")
    tree = reader.statement()
    if not reader.at_end():
        _refuse_rest(reader)
    return reader, tree


def _refuse_rest(reader: Clauses) -> None:
    """Say why a formula cannot go on as it does."""
    token = reader.token
    found = reader.describe(token)
    expected, way_out = "an operator or the end of the formula was expected", ""
    if token.says(")", "]", "}"):
        reader.fail(f"{found} closes nothing", token.column, way_out="take it out, or open it")
    elif token.says(","):
        way_out = "write a decimal point in numbers (0.5), and `and` between statements"
    elif token.says("{"):
        way_out = "write ( ) for brackets; { } holds the members of a set: i in {a, b}"
    elif token.kind == "subscript":
        way_out = "only a name or a norm can have a subscript"
    elif token.says("where"):
        way_out = "`where` belongs to `for all i where …`; write `given that` for a condition"
    elif token.says("that", "all", "every", "each"):
        way_out = "write `given that …` or `for all i`"
    reader.fail(f"found {found}", token.column, expected=expected, way_out=way_out)
