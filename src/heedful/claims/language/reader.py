"""A place in the tokens of a formula, with the limits that hold while it is read.

The tree is measured as it grows, and brackets are counted as they open, so a formula that
is too large is refused before it has cost anything.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from heedful.claims.functions import FUNCTIONS, Arity, Function, declared
from heedful.claims.language.latex import is_latex, tokenize_latex
from heedful.claims.language.tokens import Token, tokenize
from heedful.claims.language.tree import (
    Call,
    Compare,
    Exists,
    Expression,
    Field,
    ForAll,
    Limit,
    Logic,
    Position,
    Unary,
    children,
)
from heedful.errors import FormulaError

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
