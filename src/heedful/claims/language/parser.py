"""From text to tree: `parse` for statements, `parse_value` for values.

From loose to tight: `for all`, `given that` < implies < or < and < not < relations < + - <
products < sign < powers and transposes < entries and calls. Relations may be chained:
a < b < c means a < b and b < c. A product needs no sign: `2 beta`, `P X`, `k_a^T q`. A name
before a bracket is called only if it is a known function; otherwise it is a factor.

An operator-precedence (Pratt) parser: `expression(least)` reads one operand, then goes on as
long as what follows binds at least as tightly as `least`.

Which names a clause binds: those it begins with, and those further right that look like an
index (i, j, s, t, …), are used in the statement, and do not stand for something already. So
`k_i^T k_j = 0 for all i != j` binds both, `alpha_i ≈ 0 for all i != a, b` binds i only. After
`where`, any statement may follow, and only the names before it are bound.

A sum may also stand before its body, as on paper: `Σ_i α_i v_i` is `sum(alpha_i v_i, i)`. Its
body is the product that follows. Formulas in LaTeX come as the same tokens (`latex`); only there a
comma or a new row may join two statements.

The tree is measured as it grows, and brackets are counted as they open, so a formula that
is too large is refused before it has cost anything.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from types import MappingProxyType
from typing import Literal, NoReturn, TypeVar, cast

from heedful.claims.functions import FUNCTIONS, STATISTICS, Arity, Function, declared
from heedful.claims.language.latex import is_latex, tokenize_latex
from heedful.claims.language.tokens import Token, subscripts, tokenize
from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Entry,
    Exists,
    Expression,
    Field,
    ForAll,
    Limit,
    Logic,
    Name,
    Number,
    Position,
    Precedence,
    Unary,
    children,
    looks_like_an_index,
    mentions,
    walk,
)
from heedful.errors import FormulaError

# Tokens, and limits on size and depth --------------------------------------------------------

Node = TypeVar("Node", bound=Expression)

CLOSING = {"(": ")", "[": "]", "{": "}", "_{": "}", "|": "|", "‖": "‖"}


@dataclass(frozen=True, kw_only=True, slots=True)
class FormulaLimits:
    """How large a formula may be."""

    characters: int = 500
    nodes: int = 200
    depth: int = 30
    """Of the tree, and of brackets inside brackets."""


LATEX_LENGTH = 4
"""How many times longer a formula may be in LaTeX, whose commands take letters."""

LIMITS = FormulaLimits()
"""What a formula may be unless told otherwise: 500 characters, 200 nodes, 30 levels."""


class TokenReader:
    """Reads tokens one by one, builds measured nodes, and says where something is wrong."""

    def __init__(
        self,
        text: str,
        functions: Mapping[str, Arity],
        names: Collection[str],
        limits: FormulaLimits,
        field: Field,
    ) -> None:
        own = {name: declared(name, arity) for name, arity in functions.items()}
        self.functions: Mapping[str, Function] = {**FUNCTIONS, **own}
        # Names that stand for something already are never bound by `for all i != j`.
        self.names = frozenset(names) - own.keys()
        self.field = field
        self.limits = limits
        self.latex = is_latex(text)
        most = limits.characters * (LATEX_LENGTH if self.latex else 1)
        if len(text) > most:
            self.fail(
                f"the formula has {len(text)} characters",
                most + 1,
                expected=f"at most {most} were expected",
                hint="name its parts under `let`",
            )
        self.tokens = (
            tokenize_latex(text, field, own, self.names) if self.latex else tokenize(text, field)
        )
        self.place = 0
        self.open: list[Token] = []
        # Nodes are kept with their measures, so that an id stays the id of that node.
        self._measures: dict[int, tuple[Expression, int, int]] = {}

    @property
    def token(self) -> Token:
        """The token that comes next."""
        return self.tokens[self.place]

    @property
    def before(self) -> Token:
        """The token read last."""
        return self.tokens[self.place - 1]

    def ahead(self, count: int) -> Token:
        """Return a token further on; the end mark where there is none."""
        return self.tokens[min(self.place + count, len(self.tokens) - 1)]

    def advance(self) -> Token:
        """Take the next token."""
        token = self.token
        if token.kind != "end":
            self.place += 1
        return token

    def accept(self, *texts: str) -> bool:
        """Take the next token if it is one of these symbols or words."""
        if self.token.says(*texts):
            self.place += 1
            return True
        return False

    def at(self, place: Token | Expression) -> Position:
        """Return the position of a token or of another node, for a new node."""
        return Position(place.column, self.field)

    def at_end(self) -> bool:
        """Tell whether everything has been read."""
        return self.token.kind == "end"

    def enter(self, token: Token) -> None:
        """Note an opening bracket."""
        self.open.append(token)
        if len(self.open) > self.limits.depth:
            self.fail(
                f"brackets inside brackets, more than {self.limits.depth} deep",
                token.column,
                hint="name a part under `let`",
            )

    def leave(self) -> None:
        """Take the bracket that closes the innermost open one."""
        opened = self.open[-1]
        closing = CLOSING[opened.text]
        if not self.at_closing():
            self.fail_unclosed(opened, closing)
        self.place += 2 if self.token.text == "|" and closing == "‖" else 1
        self.open.pop()

    def at_closing(self) -> bool:
        """Tell whether the next token closes the innermost open bracket."""
        if not self.open:
            return False
        closing = CLOSING[self.open[-1].text]
        return self.token.says(closing) or (closing == "‖" and self.at_double_bar())

    def at_double_bar(self) -> bool:
        """Tell whether two bars without a space between them come next."""
        second = self.ahead(1)
        return self.token.says("|") and second.says("|") and second.start == self.token.end

    def fail_unclosed(self, opened: Token, closing: str) -> NoReturn:
        """Say which bracket is open and what stands where it should close."""
        what = f"the {opened.text} opened in column {opened.column}"
        if self.token.kind == "end":
            self.fail(f"{what} is never closed", opened.column, hint=f"add {closing}")
        if opened.text == "‖" and self.token.says("|"):
            self.fail(
                f"{what} is closed by a single bar",
                self.token.column,
                hint="write norm(x) or abs(x) where bars stand inside bars",
            )
        if opened.text == "|" and self.token.says(")"):
            self.fail(
                f"{what} is never closed",
                opened.column,
                hint="close it, or write `given` for a condition: P(x <= 1 given y > 0)",
            )
        self.fail(
            f"{self.describe(self.token)} where {what} should close",
            self.token.column,
            expected=f"{closing} or an operator was expected",
        )

    def build(self, node: Node) -> Node:
        """Measure a new node and refuse it if the tree has become too large."""
        size, depth = 1, 1
        for child in children(node):
            _, child_size, child_depth = self._measures[id(child)]
            size, depth = size + child_size, max(depth, child_depth + 1)
        if size > self.limits.nodes:
            self.fail(
                f"the formula has more than {self.limits.nodes} parts",
                node.column,
                hint="name its parts under `let`",
            )
        if depth > self.limits.depth:
            self.fail(
                f"the formula is more than {self.limits.depth} levels deep",
                node.column,
                hint="name a part under `let`, or write sum(x_i, i)",
            )
        self._measures[id(node)] = (node, size, depth)
        return node

    def error(
        self, problem: str, column: int, *, expected: str = "", hint: str = ""
    ) -> FormulaError:
        """Return what is wrong at a column."""
        return FormulaError(
            "formula",
            problem,
            expected=expected,
            hint=hint,
            column=column,
            field=self.field,
        )

    def fail(self, problem: str, column: int, *, expected: str = "", hint: str = "") -> NoReturn:
        """Refuse the formula at a column."""
        raise self.error(problem, column, expected=expected, hint=hint)

    def describe(self, token: Token) -> str:
        """Return a token as it should appear in a message."""
        return "the end of the formula" if token.kind == "end" else f"`{token.text}`"

    def nearest(self, name: str) -> str:
        """Return the way out for a function name that is not known, or nothing."""
        near = difflib.get_close_matches(name, list(self.functions), n=1, cutoff=0.7)
        return f"did you mean {near[0]}?" if near else ""

    def is_statement(self, node: Expression) -> bool:
        """Tell whether a node is something that is true or false."""
        if isinstance(node, Call):
            function = self.functions.get(node.function)
            return function is not None and function.kind == "predicate"
        if isinstance(node, Unary):
            return node.operator == "not"
        return isinstance(node, Compare | Logic | ForAll | Limit | Exists)

    def need_value(self, node: Expression, column: int, place: str) -> None:
        """Refuse a statement where a value belongs."""
        if not isinstance(node, Call) and self.is_statement(node):
            self.fail(
                f"{place} is a statement", column, expected="a value was expected, not a relation"
            )

    def need_statement(self, node: Expression, column: int, place: str, hint: str = "") -> None:
        """Refuse a value where a statement belongs."""
        if not self.is_statement(node):
            self.fail(
                f"{place} is a value, not a statement",
                column,
                expected="a relation was expected, such as x = 1 or alpha_a >= 0.9",
                hint=hint,
            )


# The parser ----------------------------------------------------------------------------------

_SUMS_AND_PRODUCTS = {
    "+": Precedence.SUM,
    "-": Precedence.SUM,
    "*": Precedence.PRODUCT,
    "/": Precedence.PRODUCT,
}
RELATIONS = ("<", "<=", ">", ">=", "=", "!=", "~", ">>", "<<")
Relation = Literal["<", "<=", ">", ">=", "=", "!=", "~", ">>"]
WITNESSES = {
    **{word: word for word in ("matrix", "rotation", "vector", "number", "position")},
    **{"positions": "position", "index": "position", "key": "position", "keys": "position"},
    **{"matrices": "matrix", "vectors": "vector", "numbers": "number", "query": "vector"},
    "queries": "vector",
}
"""What may be said to exist, and the kind that each word means."""
_LOGIC = {"and": Precedence.AND, "or": Precedence.OR, "implies": Precedence.IMPLIES}
_ORDERINGS = ("<", "<=", ">", ">=", "=")
_AFTER_A_LIST = (",", ";", ")", "}", ":", "for", "forall", "given", "where", "and")
_OF_AN_EVENT = (*RELATIONS, "in", "not", "⊥", "for", "forall", "and", "or", "implies")
_OF_EVERY_KEY = ("alpha", "k", "v", "mu")
"""Families with one member for every key: an index from 1 to n runs over all of them."""


def parse(
    text: str,
    *,
    functions: Mapping[str, Arity] = MappingProxyType({}),
    names: Collection[str] = (),
    limits: FormulaLimits = LIMITS,
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
    parser = Parser(text, functions, names, limits, field)
    tree = parser.formula()
    if not parser.is_statement(tree):
        parser.fail(
            "the formula is a value, and says nothing that could be true or false",
            tree.column,
            expected="a relation was expected",
            hint="compare it with something: x = 1, alpha_a >= 0.9, c ≈ v_a within 0.02",
        )
    return tree


def parse_value(
    text: str,
    *,
    functions: Mapping[str, Arity] = MappingProxyType({}),
    names: Collection[str] = (),
    limits: FormulaLimits = LIMITS,
    field: Field = (),
) -> Expression:
    """Read a value: a query, a matrix, a bound; no relation.

    >>> parse_value("β k_a")
    Binary(operator='*', left=Name(text='beta'), right=Name(text='k_a'))
    """
    parser = Parser(text, functions, names, limits, field)
    tree = parser.formula()
    parser.need_value(tree, tree.column, "the formula")
    return tree


def canonical_name(text: str) -> str:
    """Return the spelling under which formulas know a name.

    >>> canonical_name("α₁"), canonical_name("k_{a}")
    ('alpha_1', 'k_a')
    """
    tokens = tokenize(text[: LIMITS.characters])
    name = tokens[0]
    if name.kind != "name" or len(tokens) != 2 or len(text) > LIMITS.characters:
        raise FormulaError(
            "name",
            f"{text[:40]!r} is not a name",
            expected="letters, digits and subscripts were expected, such as beta, k_a or α₁",
        )
    return name.text


@dataclass(slots=True)
class Clause:
    """What was read after `for all`, or after the comma of a sum."""

    heads: list[Expression] = field(default_factory=list)
    indices: list[str] = field(default_factory=list)
    further: list[Name] = field(default_factory=list)
    """Names further right, which may be bound too."""
    listed: list[Name] = field(default_factory=list)
    """Those of them that stand after a comma: b in `i != a, b`."""
    conditions: list[Expression] = field(default_factory=list)


class Parser(TokenReader):
    """Builds the tree: operands, arithmetic, relations, then whole statements with clauses."""

    nesting = 0
    """How many expressions are being read inside one another."""
    grouped: Expression | None = None
    """What the last pair of round brackets held."""

    def formula(self) -> Expression:
        """Read the whole text."""
        if self.at_end():
            self.fail("the formula is empty", 1, expected="a formula was expected, such as x = 1")
        tree = self.statement()
        while self.latex and self.token.says(",", ";"):
            token = self.advance()
            further = self.statement()
            self.need_statement(tree, token.column, "what stands before the comma")
            self.need_statement(further, token.column, "what follows the comma")
            tree = self.build(Logic("and", tree, further, position=self.at(token)))
        if not self.at_end():
            self.refuse_rest()
        return tree

    def refuse_rest(self) -> NoReturn:
        """Say why a formula cannot go on as it does."""
        token = self.token
        found = self.describe(token)
        expected, hint = "an operator or the end of the formula was expected", ""
        if token.says(")", "]", "}"):
            self.fail(f"{found} closes nothing", token.column, hint="take it out, or open it")
        elif token.says(","):
            hint = "write a decimal point in numbers (0.5), and `and` between statements"
        elif token.says("{"):
            hint = "write ( ) for brackets; { } holds the members of a set: i in {a, b}"
        elif token.kind == "subscript":
            hint = "only a name or a norm can have a subscript"
        elif token.says("where"):
            hint = "`where` belongs to `for all i where …`; write `given that` for a condition"
        elif token.says("that", "all", "every", "each"):
            hint = "write `given that …` or `for all i`"
        self.fail(f"found {found}", token.column, expected=expected, hint=hint)

    # Statements and their clauses: `for all i != a, b`, `given that …`, the index of a sum.

    def statement(self, *, given: bool = True) -> Expression:
        """Read a statement or a value with its clauses; leave `given` unless it may be taken."""
        if self.token.says("for", "forall"):
            return self.for_all_first(given=given)
        if self.token.says("exists"):
            return self.existence(given=given)
        left = self.expression(Precedence.IMPLIES)
        while True:
            if given and self.at_condition_after_for():
                left = self.given_that(left)
            elif self.token.says("for", "forall"):
                token = self.quantifier()
                left = self.for_all(token, self.clause(), left)
            elif given and (self.token.says("given") or (self.latex and self.token.says("where"))):
                left = self.given_that(left)
            else:
                return left

    def at_condition_after_for(self) -> bool:
        """Tell whether `for β ≫ 0` comes next: a condition on a letter that is no index."""
        name = self.ahead(1)
        if not self.token.says("for") or name.kind != "name":
            return False
        index = looks_like_an_index(name.text) and name.text not in self.names
        return not index and self.ahead(2).says(*RELATIONS)

    def quantifier(self) -> Token:
        """Take `for all`, `for every`, `for each`, `for i != a` or ∀."""
        token = self.advance()
        following = self.ahead(1)
        direct = self.token.kind == "name" and following.says(*_ORDERINGS, "!=", "in", "not")
        if token.text == "for" and not self.accept("all", "every", "each") and not direct:
            self.fail(
                f"found {self.describe(self.token)} after `for`",
                self.token.column,
                expected="`for all` was expected",
            )
        return token

    def existence(self, *, given: bool) -> Expression:
        """Read `there is a matrix R with statement`, `there are positions s != t < T with …`."""
        token = self.advance()
        kind = "position"
        named = self.token.kind == "name" and self.ahead(1).kind == "name"
        if named and self.token.text in WITNESSES:
            kind = WITNESSES[self.advance().text]
        clause = self.clause()
        if not self.accept("with", ":"):
            self.fail(
                f"found {self.describe(self.token)} after what there is",
                self.token.column,
                expected="`with` was expected: there is a matrix R with …",
            )
        self.descend()
        body = self.statement(given=given)
        self.nesting -= 1
        self.need_statement(body, token.column, "what is said of it")
        used = mentions(body)
        names = [
            *clause.indices,
            *(
                name.text
                for name in clause.further
                if name.text not in clause.indices
                and looks_like_an_index(name.text)
                and name.text in used
                and name.text not in self.names
            ),
        ]
        condition = self.conjunction(clause.conditions) if clause.conditions else None
        return self.build(
            Exists(kind, tuple(dict.fromkeys(names)), condition, body, position=self.at(token))
        )

    def for_all_first(self, *, given: bool) -> Expression:
        """Read `for all i: statement`."""
        token = self.quantifier()
        clause = self.clause()
        if not self.accept(":"):
            self.fail(
                f"found {self.describe(self.token)} after the indices",
                self.token.column,
                expected="a colon was expected: for all i: alpha_i >= 0",
            )
        self.descend()
        body = self.statement(given=given)
        self.nesting -= 1
        return self.for_all(token, clause, body)

    def for_all(self, token: Token, clause: Clause, body: Expression) -> Expression:
        """Bind the indices of a clause in a statement."""
        self.need_statement(body, token.column, "what is said `for all`")
        used = mentions(body)
        indices = list(clause.indices)
        for name in clause.further:
            text = name.text
            if text in indices or not looks_like_an_index(text) or text not in used:
                continue
            if text in self.names:
                continue
            if name in clause.listed:
                self.fail(
                    f"{text} may be another index, or one more that {indices[0]} differs from",
                    name.column,
                    hint=f"write `for all {indices[0]}, {text} where …`",
                )
            indices.append(text)
        condition = self.conjunction(clause.conditions) if clause.conditions else None
        return self.build(ForAll(tuple(indices), condition, body, position=self.at(token)))

    def given_that(self, left: Expression) -> Expression:
        """Read `given that …`: where the condition holds, so does the statement."""
        token = self.advance()
        self.accept("that")
        condition = self.expression(Precedence.IMPLIES)
        self.need_statement(left, token.column, "what stands before `given`")
        self.need_statement(condition, token.column, "what follows `given`")
        if isinstance(left, ForAll) and mentions(condition) & set(left.indices):
            # The condition speaks of the index, so it belongs inside.
            body = self.build(Logic("implies", condition, left.body, position=self.at(token)))
            return self.build(ForAll(left.indices, left.condition, body, position=left.position))
        return self.build(Logic("implies", condition, left, position=self.at(token)))

    def clause(self, *, values: bool = False) -> Clause:
        """Read indices and what is asked of them."""
        clause = Clause()
        self.item(clause, values=values)
        while self.token.says(",", "and", "or"):
            joint = self.token
            following = self.ahead(1)
            known = following.kind == "name" and following.text in clause.indices
            if joint.text != "," and not (joint.text == "and" and known):
                self.fail(
                    f"`{joint.text}` after `for all` can be read in two ways",
                    joint.column,
                    hint="write `(… for all i) and …`, or `for all i where …`",
                )
            self.advance()
            self.item(clause, values=values)
        if self.token.says("where"):
            token = self.advance()
            condition = self.expression(Precedence.IMPLIES)
            self.need_statement(condition, token.column, "what follows `where`")
            clause.conditions.append(condition)
        return clause

    def item(self, clause: Clause, *, values: bool) -> None:
        """Read `i`, `i, j`, `i != a, b`, `s != t < T`, `0 <= t < T` or `i in {a, b}`."""
        start = self.token
        group = [self.term()]
        while self.accept(","):
            group.append(self.term())
        if not self.at_relation():
            clause.heads += group
        named = self.bind(clause, group)
        first = True
        while self.at_relation():
            if self.token.says("in", "not"):
                place = self.place
                for member in group:
                    self.place = place
                    clause.conditions.append(self.membership(member))
                break
            link = self.advance()
            right = self.right_side(clause, link, first=first)
            clause.conditions += [
                self.compare(one, link, other, None) for one in group for other in right
            ]
            if named:
                clause.further += [other for other in right if isinstance(other, Name)]
            else:
                named = self.bind(clause, right)
            # In `s != t < T` both s and t are below T.
            group = [*group, *right] if link.text == "!=" else right
            first = False
        bare = values or all(isinstance(one, Name) for one in group)
        if not (bare if first else named):
            self.fail(
                f"found {self.describe(start)} where an index should stand",
                start.column,
                expected="a name was expected, such as `for all i` or `for all i != a`",
                hint="write a colon before the statement: for all i, j: x_i = x_j",
            )

    def bind(self, clause: Clause, terms: list[Expression]) -> bool:
        """Bind the names among some terms; tell whether there was one."""
        names = [term for term in terms if isinstance(term, Name)]
        for name in names:
            if name.text not in clause.indices:
                clause.indices.append(name.text)
        return bool(names)

    def right_side(self, clause: Clause, link: Token, *, first: bool) -> list[Expression]:
        """Read what an index is compared with; after ≠ it may be a list."""
        if link.text == "!=":
            if not first:
                self.fail(
                    "!= after another relation",
                    link.column,
                    hint="write it first (s != t < T), or after `where`",
                )
            return self.differs_from(clause)
        if link.text not in _ORDERINGS:
            self.fail(
                f"`{link.text}` between indices",
                link.column,
                expected="one of < <= > >= = != was expected",
            )
        return [self.term()]

    def differs_from(self, clause: Clause) -> list[Expression]:
        """Read the list after ≠; a comma before another relation begins a new item."""
        terms = [self.term()]
        while (
            self.token.says(",")
            and self.ahead(1).kind in ("name", "number")
            and (self.ahead(2).says(*_AFTER_A_LIST) or self.ahead(2).kind == "end")
        ):
            self.advance()
            term = self.term()
            terms.append(term)
            if isinstance(term, Name):
                clause.listed.append(term)
        return terms

    def term(self) -> Expression:
        """Read a value between relations and commas."""
        column = self.token.column
        value = self.expression(Precedence.SUM)
        self.need_value(value, column, "an index")
        return value

    def over_index(self, function: Function) -> tuple[Expression, ...]:
        """Read the index of sum, prod, max, min, or the second of two values."""
        start = self.token
        clause = self.clause(values=True)
        name = function.name
        if not clause.conditions:
            if not function.of_two and not isinstance(clause.heads[0], Name):
                self.fail(
                    f"the second argument of {name} is not an index",
                    start.column,
                    expected=f"a name or a condition on it was expected: {name}(x_i, i != a)",
                )
            if len(clause.heads) > 1:
                self.fail(
                    f"{name} over more than one index",
                    start.column,
                    hint=f"nest them: {name}({name}(…, i), j)",
                )
            return tuple(clause.heads)
        condition = self.conjunction(clause.conditions)
        first = next(part.text for part in walk(condition) if isinstance(part, Name))
        if [first] != clause.indices:
            self.fail(
                f"the condition of {name} does not begin with its one index",
                start.column,
                hint=f"write the index first, as in {name}(x_i, i != a), and nest two sums",
            )
        return (condition,)

    # Relations and their chains, tolerances, membership, logical words.

    def negation(self) -> Expression:
        """Read `not …`."""
        token = self.advance()
        inner = self.expression(Precedence.NOT)
        self.need_statement(inner, token.column, "what follows `not`")
        return self.build(Unary("not", inner, position=self.at(token)))

    def joined(self, left: Expression, least: Precedence) -> Expression | None:
        """Go on with a relation or a logical word, or return None."""
        token = self.token
        level = _LOGIC.get(token.text) if token.kind in ("word", "symbol") else None
        if token.says("->"):  # between statements it is `implies`, between values a limit
            if not self.is_statement(left):
                return self.limit(left) if least <= Precedence.RELATION else None
            level = Precedence.IMPLIES
        if level is not None:
            return self.logic(left, level) if level >= least else None
        if least > Precedence.RELATION:
            return None
        if self.at_relation():
            return self.relation(left)
        if token.says("within"):
            self.fail("`within` without ≈", token.column, expected="x ≈ y within 0.02 was expected")
        return None

    def at_relation(self) -> bool:
        """Tell whether a relation comes next."""
        token = self.token
        if token.says("not"):
            return self.ahead(1).says("in")
        return token.says(*RELATIONS, "in", "⊥")

    def logic(self, left: Expression, level: Precedence) -> Expression:
        """Read the right side of and, or, implies."""
        token = self.advance()
        word = "implies" if token.text == "->" else token.text
        # `implies` groups to the right, the others to the left.
        right = self.expression(level if word == "implies" else Precedence(level + 1))
        arrow = token.kind == "symbol" and word == "implies"
        hint = "=> means implies; for greater or equal write >=" if arrow else ""
        for side, name in ((left, "left"), (right, "right")):
            self.need_statement(side, token.column, f"the {name} side of {word}", hint)
        operator = cast(Literal["and", "or", "implies"], word)
        return self.build(Logic(operator, left, right, position=self.at(token)))

    def limit(self, left: Expression) -> Expression:
        """Read `-> value`, and `as symbol -> infinity` if it is said what moves."""
        token = self.advance()
        right = self.expression(Precedence.SUM)
        self.need_value(left, token.column, "the left side of ->")
        self.need_value(right, token.column, "the limit")
        symbol, target = "", "infinity"
        if self.accept("as"):
            moving = self.advance()
            if moving.kind != "name" or not self.accept("->"):
                self.fail(
                    "what moves is not said",
                    moving.column,
                    expected="a symbol and where it goes were expected: as beta -> infinity",
                )
            end = self.expression(Precedence.SUM)
            symbol = moving.text
            if end == Number(Fraction(0)):
                target = "0"
            elif end not in (Name("infinity"), Name("inf")):
                self.fail(
                    f"{symbol} goes neither to infinity nor to 0",
                    end.column,
                    expected=f"`as {symbol} -> infinity` or `as {symbol} -> 0` was expected",
                    hint="write the symbol as a distance from where it goes",
                )
        where = cast(Literal["infinity", "0"], target)
        return self.build(Limit(left, right, symbol, where, position=self.at(token)))

    def relation(self, left: Expression) -> Expression:
        """Read a relation, or a chain of them that share their middle terms."""
        operands, links = [left], list[Token]()
        member: Expression | None = None
        while self.at_relation():
            if self.token.says("in", "not"):
                member = self.membership(operands[-1])
                break
            if self.token.says("⊥"):
                member = self.perpendicular(operands[-1])
                break
            links.append(self.advance())
            operands.append(self.expression(Precedence.SUM))
        self.check_links(operands, links)
        within = self.tolerance(links, member)
        statements = [
            self.compare(operands[place], link, operands[place + 1], within)
            for place, link in enumerate(links)
        ]
        return self.conjunction([*statements, member] if member is not None else statements)

    def check_links(self, operands: list[Expression], links: list[Token]) -> None:
        """Refuse relations between statements, and chains of ≠."""
        for place, link in enumerate(links):
            self.need_value(operands[place], link.column, f"the left side of {link.text}")
            self.need_value(operands[place + 1], link.column, f"the right side of {link.text}")
        if sum(link.text == "!=" for link in links) > 1:
            self.fail(
                "a != b != c does not say whether a and c differ",
                links[-1].column,
                hint="write each pair: a != b and b != c and a != c",
            )

    def tolerance(self, links: list[Token], member: Expression | None) -> Expression | None:
        """Read `within e` after ≈ or =."""
        token = self.token
        if not token.says("within"):
            return None
        if not links or member is not None or links[-1].text not in ("~", "="):
            self.fail(
                f"`within` after `{links[-1].text if links and member is None else 'in'}`",
                token.column,
                expected="a tolerance belongs to ≈: x ≈ y within 0.02",
            )
        self.advance()
        within = self.expression(Precedence.SUM)
        self.need_value(within, token.column, "the tolerance")
        return within

    def compare(
        self, left: Expression, link: Token, right: Expression, within: Expression | None
    ) -> Expression:
        """Build one link of a chain; a tolerance turns = into ≈, and is for ≈ alone."""
        if link.text == "<<":
            return self.build(Compare(">>", right, left, position=self.at(link)))
        operator = cast(Relation, link.text)
        if within is not None and operator in ("=", "~"):
            return self.build(Compare("~", left, right, within, position=self.at(link)))
        return self.build(Compare(operator, left, right, position=self.at(link)))

    def conjunction(self, statements: list[Expression]) -> Expression:
        """Join statements by `and`, from the left."""
        return reduce(
            lambda left, right: self.build(Logic("and", left, right, position=self.at(right))),
            statements,
        )

    def membership(self, value: Expression) -> Expression:
        """Read `in {a, b}` or `in [low, high]` and write it out as relations."""
        negated = self.accept("not")
        token = self.advance()
        self.need_value(value, token.column, "the left side of in")
        opened = self.token
        if not opened.says("{", "[", "("):
            self.fail(
                f"found {self.describe(opened)} after `in`",
                opened.column,
                expected="a set {a, b} or an interval [0, 1] was expected",
            )
        self.advance()
        found = self.one_of(value, opened) if opened.text == "{" else self.between(value, opened)
        return self.build(Unary("not", found, position=self.at(token))) if negated else found

    def perpendicular(self, left: Expression) -> Expression:
        """Read `⊥ y` and write it out: x^T y = 0."""
        token = self.advance()
        right = self.expression(Precedence.SUM)
        place = self.at(token)
        self.need_value(left, token.column, "the left side of ⊥")
        self.need_value(right, token.column, "the right side of ⊥")
        turned = self.build(Unary("T", left, position=place))
        product = self.build(Binary("*", turned, right, position=place))
        nothing = self.build(Number(Fraction(0), position=place))
        return self.build(Compare("=", product, nothing, position=place))

    def one_of(self, value: Expression, opened: Token) -> Expression:
        """Read the members of a set: x = a or x = b."""
        self.enter(opened)
        members = [self.argument("a member")]
        if self.token.says(".."):
            return self.from_to(value, members[0], opened)
        while self.accept(","):
            members.append(self.argument("a member"))
        self.leave()
        place = self.at(opened)
        equal: list[Expression] = [
            self.build(Compare("=", value, member, position=place)) for member in members
        ]
        return reduce(
            lambda left, right: self.build(Logic("or", left, right, position=place)),
            equal,
        )

    def from_to(self, value: Expression, first: Expression, opened: Token) -> Expression:
        """Read the last member of a run {1, …, n}: 1 <= x and x <= n."""
        self.advance()
        last = self.argument("the last member")
        self.leave()
        place = self.at(opened)
        return self.conjunction(
            [
                self.build(Compare(">=", value, first, position=place)),
                self.build(Compare("<=", value, last, position=place)),
            ]
        )

    def between(self, value: Expression, opened: Token) -> Expression:
        """Read the ends of an interval, each open or closed: low <= x and x < high."""
        column = opened.column
        low = self.expression(Precedence.SUM)
        comma = self.accept(",")
        high = self.expression(Precedence.SUM) if comma else low
        closing = self.token
        if not comma or not closing.says(")", "]"):
            self.fail(
                f"found {self.describe(closing)} in an interval",
                closing.column,
                expected="two ends were expected: [0, 1], or (0, 1) without its ends",
            )
        self.advance()
        self.need_value(low, column, "the low end")
        self.need_value(high, column, "the high end")
        first: Relation = "<=" if opened.text == "[" else "<"
        second: Relation = "<=" if closing.text == "]" else "<"
        return self.conjunction(
            [
                self.build(Compare(first, low, value, position=self.at(opened))),
                self.build(Compare(second, value, high, position=self.at(opened))),
            ]
        )

    # Values: sums, products with and without a sign, powers, transposes, entries.

    def expression(self, least: Precedence, *, exponent: bool = False) -> Expression:
        """Read an expression whose operators bind at least as tightly as `least`."""
        self.descend()
        left = self.operand(exponent=exponent)
        going: Expression | None = left
        while going is not None:
            left = going
            token = self.token
            level = _SUMS_AND_PRODUCTS.get(token.text) if token.kind == "symbol" else None
            if level is not None:
                going = self.arithmetic(left, level) if level >= least else None
            elif token.says("^", "'") or token.kind == "superscript":
                going = self.power(left, exponent=exponent)
            elif token.says("["):
                going = self.entry(left)
            elif self.starts_factor():
                going = self.implicit_product(left) if least <= Precedence.PRODUCT else None
            else:
                going = self.joined(left, least)
        self.nesting -= 1
        return left

    def arithmetic(self, left: Expression, level: Precedence) -> Expression:
        """Read the right side of + - * /."""
        token = self.advance()
        right = self.expression(Precedence(level + 1))
        self.need_value(left, token.column, f"the left side of {token.text}")
        self.need_value(right, token.column, f"the right side of {token.text}")
        if token.text in "+-":
            self.check_scope(token, left, right)
        operator = cast(Literal["+", "-", "*", "/"], token.text)
        return self.build(Binary(operator, left, right, position=self.at(token)))

    def starts_factor(self) -> bool:
        """Tell whether the next token begins a factor of a product without a sign."""
        token = self.token
        if token.kind in ("name", "number", "big"):
            return True
        if token.says("|", "‖"):
            return not self.at_closing() and not self.at_half_of_norm()
        return token.says("(", "√")

    def implicit_product(self, left: Expression) -> Expression:
        """Read the next factor of `2 beta`, `P X`, `k_a^T q`."""
        token, before = self.token, self.before
        if token.kind == "number":
            self.fail(
                f"the number {token.text} follows another value",
                token.column,
                expected="an operator was expected",
                hint="write * for a product, or the number first: 2 x",
            )
        if isinstance(left, Binary) and left is not self.grouped:
            glued = before.end == token.start
            # 1/2 (x + y) is clear; a/b c, 1/2x and e^2x are read both ways by different people.
            # 1/2(x + y) is the same as 1/2 (x + y) to everybody.
            glued_bracket = token.says("(") and isinstance(left.left, Number)
            joined = glued and not glued_bracket
            if left.operator == "/" and (joined or not isinstance(left.right, Number)):
                self.fail_two_ways(token, "/")
            if left.operator == "^" and glued and token.kind == "name" and before.kind == "number":
                self.fail_two_ways(token, "^")
        right = self.expression(Precedence.SIGN)
        self.need_value(left, token.column, "the first factor of a product")
        self.need_value(right, token.column, "the second factor of a product")
        return self.build(Binary("*", left, right, position=self.at(token)))

    def power(self, left: Expression, *, exponent: bool) -> Expression | None:
        """Read an exponent or a transpose; a transpose never belongs to an exponent."""
        token = self.token
        transpose = self.transpose_length()
        if transpose and exponent:
            return None
        self.need_value(left, token.column, "what stands before " + token.text)
        if transpose:
            self.place += transpose
            return self.build(Unary("T", left, position=self.at(token)))
        self.advance()
        right = self.raised(token) if token.kind == "superscript" else self.exponent()
        self.need_value(right, token.column, "the exponent")
        return self.build(Binary("^", left, right, position=self.at(token)))

    def transpose_length(self) -> int:
        """Return how many tokens a transpose takes here: ' and ᵀ, ^T and ^⊤, ^{T}; 0 if none."""
        if self.token.says("'"):
            return 1
        if not self.token.says("^"):
            return 0
        following = [self.ahead(count) for count in (1, 2, 3)]
        if following[0].says("'") or _is_letter_t(following[0]):
            return 2
        braced = following[0].says("{") and following[2].says("}")
        return 4 if braced and (_is_letter_t(following[1]) or following[1].says("'")) else 0

    def exponent(self) -> Expression:
        """Read what follows ^."""
        token = self.token
        if token.kind == "name" and re.match("T[A-Za-z]", token.text):
            self.fail(
                f"^{token.text} can be read in two ways",
                token.column,
                hint=f"write ^T {token.text[1:]} for a transpose, ^({token.text}) for a power",
            )
        if token.says("{"):
            return self.bracketed(self.advance())
        return self.expression(Precedence.POWER, exponent=True)

    def raised(self, token: Token) -> Expression:
        """Return the whole number of a raised exponent such as ⁻¹."""
        digits = token.text.removeprefix("-")
        number = self.build(Number(Fraction(int(digits)), position=self.at(token)))
        if digits == token.text:
            return number
        return self.build(Unary("-", number, position=self.at(token)))

    def entry(self, left: Expression) -> Expression:
        """Read `[i]` or `[i, j]` after what it picks from."""
        opened = self.advance()
        if isinstance(left, Number):
            self.fail("a number has no entries", opened.column, hint="write (x^2)[1]")
        self.need_value(left, opened.column, "what stands before [")
        self.enter(opened)
        indices = [self.statement(given=False)]
        while self.accept(","):
            indices.append(self.statement(given=False))
        self.leave()
        for index in indices:
            self.need_value(index, opened.column, "an index")
        if len(indices) > 2:
            self.fail(f"{len(indices)} indices", opened.column, expected="one or two were expected")
        return self.build(Entry(left, tuple(indices), position=self.at(opened)))

    def at_half_of_norm(self) -> bool:
        """Tell whether a single bar comes next where a norm is to be closed by two."""
        return bool(self.open) and self.open[-1].text == "‖" and self.token.says("|")

    def fail_two_ways(self, token: Token, operator: str) -> NoReturn:
        """Refuse a product without a sign that can be read in two ways."""
        self.fail(
            f"a {operator} b c can be read in two ways",
            token.column,
            hint=f"write (a {operator} b) * c or a {operator} (b * c)",
        )

    # Operands: numbers, names, calls, brackets and bars.

    def operand(self, *, exponent: bool) -> Expression:
        """Read what an operator can stand between."""
        token = self.token
        if token.kind == "number":
            self.advance()
            return self.build(Number(Fraction(token.text), position=self.at(token)))
        if token.kind == "name":
            return self.named()
        if token.kind == "big":
            return self.big_operator()
        if token.says("("):
            self.grouped = self.bracketed(self.advance())
            return self.grouped
        if token.says("|", "‖"):
            return self.between_bars()
        if token.says("-"):
            self.advance()
            inner = self.expression(Precedence.SIGN, exponent=exponent)
            self.need_value(inner, token.column, "what follows -")
            return self.build(Unary("-", inner, position=self.at(token)))
        if token.says("√"):
            return self.root()
        if token.says("not"):
            return self.negation()
        raise self.no_operand(token)

    def named(self) -> Expression:
        """Read a name, or a call of a function."""
        token = self.advance()
        name = token.text
        function = self.functions.get(name)
        called = self.token.says("(") and not (self.latex and self.is_matrix_p(function))
        if function is not None and name not in self.names:
            if called:
                return self.call(function, token)
            if not function.also_name:
                self.fail(
                    f"{name} is a function",
                    token.column,
                    expected=f"brackets were expected after it: {function.forms[0]}",
                )
        head = name.partition("_")[0]
        folded = FUNCTIONS.get(head)
        if folded is not None and folded.kind == "binder" and subscripts(name):
            self.fail(
                f"{name} has its index below",
                token.column,
                hint=f"write {head}(…, {', '.join(subscripts(name))})",
            )
        if called and self.token.start == token.end and len(name) > 3:
            near = self.nearest(name)
            if near and name not in self.names:
                self.fail(
                    f"{name} is not a function",
                    token.column,
                    hint=f"{near} (for a product write {name} * …)",
                )
        return self.build(Name(name, position=self.at(token)))

    def is_matrix_p(self, function: Function | None) -> bool:
        """Tell whether P before a bracket is a matrix: on paper P(X W) is no probability."""
        if function is None or function.takes != "event":
            return False
        hidden: list[bool] = []  # whether each open bracket holds arguments or an index
        for place in range(self.place, len(self.tokens)):
            token = self.tokens[place]
            known = self.functions.get(token.text) if token.kind == "name" else None
            predicate = known is not None and known.kind == "predicate"
            if token.says("(", "[", "{", "_{"):
                before = self.tokens[place - 1]
                hidden.append(bool(hidden) and (before.kind == "name" or token.text != "("))
            elif token.says(")", "]", "}"):
                hidden.pop()
            elif not any(hidden) and (predicate or token.says(*_OF_AN_EVENT)):
                return False
            if not hidden:
                break
        return True

    # Sums that stand before their body: Σ_i α_i v_i.

    loose: tuple[tuple[Expression, str, Token], ...] = ()
    """The sums read so far that no bracket closes, with their index and sign."""

    def big_operator(self) -> Expression:
        """Read Σ_{i ≠ a} x_i: the sign, its index and what is asked of it, the product behind."""
        token = self.advance()
        if not self.token.says("_{"):
            self.fail(
                f"the index of {token.text} is missing",
                token.column,
                expected="Σ_i x_i or sum(x_i, i) was expected",
            )
        opened = self.advance()
        self.enter(opened)
        first = self.token
        function = self.functions[token.text]
        lowest = self.lowest()
        over: Expression | None = None if lowest is not None else self.over_index(function)[0]
        extra: list[Expression] = []
        if lowest is not None and self.accept(","):
            extra = self.clause(values=True).conditions
        self.leave()
        highest = self.highest() if self.token.says("^") else None
        body = self.expression(Precedence.PRODUCT)
        self.need_value(body, token.column, f"what follows {token.text}")
        if over is None or highest is not None:
            over = self.bounds(token, first, lowest, highest, body, extra)
        index = first.text if first.kind == "name" else ""
        self.check_body(token, body, index)
        node = self.build(Call(token.text, (body, over), position=self.at(token)))
        self.loose = (*self.loose, (node, index, token))
        return node

    def lowest(self) -> Expression | None:
        """Read `i = 1`, the lower end of an index, if it stands here."""
        if self.token.kind != "name" or not self.ahead(1).says("="):
            return None
        self.advance()
        self.advance()
        return self.term()

    def highest(self) -> Expression:
        """Read the upper end of an index after ^."""
        self.advance()
        if self.token.says("{"):
            return self.bracketed(self.advance())
        return self.operand(exponent=True)

    def bounds(
        self,
        token: Token,
        first: Token,
        lowest: Expression | None,
        highest: Expression | None,
        body: Expression,
        extra: list[Expression],
    ) -> Expression:
        """Return what is asked of an index between two ends; nothing if it takes every value."""
        if lowest is None or highest is None:
            self.fail(
                f"one end of the index of {token.text} is missing",
                first.column,
                expected="Σ_{i=1}^n was expected, or Σ_i for every i",
            )
        index = self.build(Name(first.text, position=self.at(first)))
        below = {
            name.rpartition("_")[0] for name in mentions(body) if name.endswith(f"_{index.text}")
        }
        if lowest == Number(Fraction(0)) and below:
            self.fail(
                f"the index {index.text} begins at 0",
                first.column,
                expected="members are counted from 1",
                hint=f"write {token.text} with {index.text} from 1",
            )
        conditions: list[Expression] = []
        if lowest != Number(Fraction(1)):
            conditions.append(self.build(Compare(">=", index, lowest, position=self.at(first))))
        every = highest == Name("n") and bool(below & set(_OF_EVERY_KEY))
        if not every:
            conditions.append(self.build(Compare("<=", index, highest, position=self.at(first))))
        conditions += extra
        return self.conjunction(conditions) if conditions else index

    def check_body(self, token: Token, body: Expression, index: str) -> None:
        """Ask about max_i x_i y and Π_i x_i y, where it matters whether y belongs to it."""
        if token.text == "sum" or not isinstance(body, Binary) or body is self.grouped:
            return
        if body.operator in "*/" and index not in mentions(body.right):
            self.fail(
                f"what follows {token.text} can be read in two ways",
                token.column,
                hint=f"write {token.text}(x_{index}, {index}) * y, "
                f"or {token.text}(x_{index} * y, {index})",
            )

    def check_scope(self, token: Token, left: Expression, right: Expression) -> None:
        """Ask about Σ_i x_i + y_i, where the second term speaks of the index too."""
        last = left
        while isinstance(last, Binary) and last.operator in "+-*":
            last = last.right
        for node, index, sign in self.loose:
            if node is last and index in mentions(right) and index not in self.names:
                self.fail(
                    f"what follows {sign.text} can be read in two ways: "
                    f"{index} stands after {token.text} too",
                    token.column,
                    hint=f"write {sign.text}(x_{index} {token.text} y_{index}, {index}), "
                    f"or {sign.text}(x_{index}, {index}) {token.text} y with another index",
                )

    def root(self) -> Expression:
        """Read √ and what it covers: one name, number, call or bracket."""
        token = self.advance()
        inside = self.expression(Precedence.ATOM) if self.token.says("√") else self.covered()
        self.need_value(inside, token.column, "what follows √")
        if self.token.says("^", "'") or self.token.kind == "superscript":
            self.fail(
                "√ followed by an exponent can be read in two ways",
                self.token.column,
                hint="write sqrt(x)^2 or sqrt(x^2)",
            )
        return self.build(Call("sqrt", (inside,), position=self.at(token)))

    def covered(self) -> Expression:
        """Read the operand of √ with its entries."""
        inside = self.operand(exponent=False)
        while self.token.says("["):
            inside = self.entry(inside)
        return inside

    def bracketed(self, opened: Token) -> Expression:
        """Read the inside of ( ) or { } and its closing bracket."""
        self.enter(opened)
        if self.at_closing():
            self.fail("nothing stands between the brackets", opened.column)
        loose = self.loose
        inside = self.statement()
        self.loose = loose
        if self.token.says(",") and opened.text == "(":
            self.fail_comma(opened)
        self.leave()
        return inside

    def between_bars(self) -> Expression:
        """Read |x|, ‖x‖ or ||x||, with the p of ‖x‖_p."""
        double = self.at_double_bar()
        opened = self.advance()
        if double:
            self.advance()
            opened = Token("symbol", "‖", opened.start, opened.end + 1)
        self.enter(opened)
        column = self.token.column
        inside = self.statement(given=False)
        self.leave()
        self.need_value(inside, column, "what stands between bars")
        if opened.text == "|":
            return self.build(Call("abs", (inside,), position=self.at(opened)))
        arguments: tuple[Expression, ...] = (inside,)
        if self.token.kind == "subscript":
            order = self.advance()
            p = (
                Number(Fraction(order.text), position=self.at(order))
                if order.text.isdigit()
                else None
            )
            arguments = (inside, self.build(p or Name(order.text, position=self.at(order))))
        return self.build(Call("norm", arguments, position=self.at(opened)))

    def argument(self, place: str) -> Expression:
        """Read a value between brackets, bars or commas."""
        column = self.token.column
        value = self.statement(given=False)
        self.need_value(value, column, place)
        return value

    def call(self, function: Function, token: Token) -> Expression:
        """Read the arguments of a function."""
        opened = self.advance()
        self.enter(opened)
        arguments: tuple[Expression, ...] = ()
        given: Expression | None = None
        if not self.at_closing():
            arguments = (self.first_argument(function),)
            if function.kind == "binder" and self.accept(","):
                arguments += self.over_index(function)
            while self.accept(","):
                arguments += (self.argument(f"an argument of {function.name}"),)
            if self.token.says("given"):
                given = self.condition(function)
        self.leave()
        if self.latex and function.name == "Phi" and len(arguments) == 2:
            return self.embedding(arguments, token)
        if not function.least <= len(arguments) <= function.most:
            self.fail(
                f"{function.name} has {len(arguments) or 'no'} "
                f"argument{'s' if len(arguments) != 1 else ''}",
                token.column,
                expected=f"it takes {function.arity}: {', '.join(function.forms)}",
            )
        return self.build(Call(function.name, arguments, given, position=self.at(token)))

    def embedding(self, arguments: tuple[Expression, ...], token: Token) -> Expression:
        """Return Φ(t, m) of the course, whose m counts from 0, as entry m + 1 of phi(t)."""
        position, dimension = arguments
        place = self.at(token)
        row = self.build(Call("phi", (position,), position=place))
        one = self.build(Number(Fraction(1), position=place))
        number = self.build(Binary("+", dimension, one, position=place))
        return self.build(Entry(row, (number,), position=place))

    def first_argument(self, function: Function) -> Expression:
        """Read the first argument: an event for P, a value for all others."""
        token = self.token
        first = self.statement(given=False)
        if function.takes == "event":
            if not self.is_statement(first):
                self.fail(
                    f"{function.name}( ) is a probability, and this is a value",
                    token.column,
                    expected=f"an event was expected: {function.name}(x <= 1)",
                    hint="for a product with a matrix P write P * (…)",
                )
        elif function.kind == "statistic" and self.is_statement(first):
            self.fail(
                f"{function.name} of a statement",
                token.column,
                expected="a value was expected",
                hint="write P(…) for the probability of a statement",
            )
        else:
            self.need_value(first, token.column, f"the argument of {function.name}")
        return first

    def condition(self, function: Function) -> Expression:
        """Read `given y` or `given that y` at the end of a statistic."""
        token = self.advance()
        if function.kind != "statistic":
            self.fail(
                f"{function.name} takes no condition",
                token.column,
                expected=f"`given` belongs to {', '.join(STATISTICS)}, or after a statement",
            )
        self.accept("that")
        condition = self.statement(given=False)
        self.need_statement(condition, token.column, "what follows `given`")
        return condition

    def descend(self) -> None:
        """Count one expression inside another, before any of them has become a node."""
        self.nesting += 1
        # A legal tree takes at most two readings a level, and redundant brackets one more.
        if self.nesting > 3 * self.limits.depth + 3:
            self.fail(
                f"the formula is more than {self.limits.depth} levels deep",
                self.token.column,
                hint="name a part under `let`",
            )

    def fail_comma(self, opened: Token) -> NoReturn:
        """Say why a comma cannot stand here."""
        name = self.tokens[self.tokens.index(opened) - 1]
        if name.kind == "name" and name.end == opened.start:
            self.fail(
                f"{name.text} is not a function",
                name.column,
                expected="a comma separates the arguments of a function",
                hint=self.nearest(name.text),
            )
        self.fail(
            "a comma between plain brackets",
            self.token.column,
            expected="it separates the arguments of a function, or indices",
            hint="write a decimal point in numbers: 0.5",
        )

    def no_operand(self, token: Token) -> FormulaError:
        """Return what to say where an operand should stand."""
        found = self.describe(token)
        expected, hint = "a value was expected here", ""
        if token.says("+"):
            hint = "leave the sign + out"
        elif token.says("["):
            expected = "[ ] picks an entry of what stands before it: x[1]"
            hint = "write a vector as concat(1, 2, 3)"
        elif token.says("'"):
            expected = "a quote is a transpose and follows a value"
            hint = "a formula has no text in quotes"
        elif token.kind == "subscript":
            found, hint = f"`_{token.text}`", "a name cannot start with _"
        elif token.says(")", "]", "}") and not self.open:
            found += ", which closes nothing,"
        elif token.says("=", "<", ">", "<=", ">=", "!=", "~"):
            expected = f"a value was expected before {token.text}"
            hint = "a relation stands between two values: x = y"
            if self.open and self.open[-1].text in ("|", "‖"):
                hint = "write norm(x) or abs(x) where bars stand inside bars"
        previous = f" after `{self.before.text}`" if self.place else ""
        return self.error(f"found {found}{previous}", token.column, expected=expected, hint=hint)


def _is_letter_t(token: Token) -> bool:
    return token.kind == "name" and token.text == "T"
