"""Reading operands: numbers, names, calls, brackets and bars."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import NoReturn

from heedful.claims.language.functions import ALSO_NAMES, Function
from heedful.claims.language.names import subscripts
from heedful.claims.language.precedence import Precedence
from heedful.claims.language.reader import Reader
from heedful.claims.language.tokens import Token
from heedful.claims.language.tree import Call, Expression, Name, Number, Unary
from heedful.errors import FormulaError


class Operands(Reader, ABC):
    """Reads what operators stand between; what stands inside is left to the readers above."""

    nesting = 0
    """How many expressions are being read inside one another."""
    grouped: Expression | None = None
    """What the last pair of round brackets held."""

    @abstractmethod
    def statement(self, *, given: bool = True) -> Expression:
        """Read a statement or a value with its clauses; leave `given` unless it may be taken."""

    @abstractmethod
    def negation(self) -> Expression:
        """Read `not …`."""

    @abstractmethod
    def over_index(self, function: Function, body: Expression) -> tuple[Expression, ...]:
        """Read what follows the first argument of sum, max, …"""

    @abstractmethod
    def expression(self, least: Precedence, *, exponent: bool = False) -> Expression:
        """Read an expression whose operators bind at least as tightly as `least`."""

    @abstractmethod
    def entry(self, left: Expression) -> Expression:
        """Read `[i]` or `[i, j]` after what it picks from."""

    def operand(self, *, exponent: bool) -> Expression:
        """Read what an operator can stand between."""
        token = self.token
        if token.kind == "number":
            self.advance()
            return self.build(Number(Fraction(token.text), position=self.at(token)))
        if token.kind == "name":
            return self.named()
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
        function = self.vocabulary.functions.get(name)
        called = self.token.says("(")
        if function is not None and name not in self.vocabulary.names:
            if called:
                return self.call(function, token)
            if name not in ALSO_NAMES:
                self.fail(
                    f"{name} is a function",
                    token.column,
                    expected=f"brackets were expected after it: {function.forms[0]}",
                )
        head = name.partition("_")[0]
        if head in ("sum", "prod", "max", "min") and subscripts(name):
            self.fail(
                f"{name} has its index below",
                token.column,
                way_out=f"write {head}(…, {', '.join(subscripts(name))})",
            )
        if called and self.token.start == token.end and len(name) > 3:
            near = self.nearest(name)
            if near and name not in self.vocabulary.names:
                self.fail(
                    f"{name} is not a function",
                    token.column,
                    way_out=f"{near} (for a product write {name} * …)",
                )
        return self.build(Name(name, position=self.at(token)))

    def root(self) -> Expression:
        """Read √ and what it covers: one name, number, call or bracket."""
        token = self.advance()
        inside = self.expression(Precedence.ATOM) if self.token.says("√") else self.covered()
        self.need_value(inside, token.column, "what follows √")
        if self.token.says("^", "'") or self.token.kind == "superscript":
            self.fail(
                "√ followed by an exponent can be read in two ways",
                self.token.column,
                way_out="write sqrt(x)^2 or sqrt(x^2)",
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
        inside = self.statement()
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
                arguments += self.over_index(function, arguments[0])
            while self.accept(","):
                arguments += (self.argument(f"an argument of {function.name}"),)
            if self.token.says("given"):
                given = self.condition(function)
        self.leave()
        if not function.least <= len(arguments) <= function.most:
            self.fail(
                f"{function.name} has {len(arguments) or 'no'} "
                f"argument{'s' if len(arguments) != 1 else ''}",
                token.column,
                expected=f"it takes {function.arity}: {', '.join(function.forms)}",
            )
        return self.build(Call(function.name, arguments, given, position=self.at(token)))

    def first_argument(self, function: Function) -> Expression:
        """Read the first argument: an event for P, a value for all others."""
        token = self.token
        first = self.statement(given=False)
        if function.name == "P":
            if not self.is_statement(first):
                self.fail(
                    "P( ) is a probability, and this is a value",
                    token.column,
                    expected="an event was expected: P(x <= 1)",
                    way_out="for a product with a matrix P write P * (…)",
                )
        elif function.kind == "statistic" and self.is_statement(first):
            self.fail(
                f"{function.name} of a statement",
                token.column,
                expected="a value was expected",
                way_out="write P(…) for the probability of a statement",
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
                expected="`given` belongs to E, P, var, std, cov, quantile, or after a statement",
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
                way_out="name a part under `let`",
            )

    def fail_comma(self, opened: Token) -> NoReturn:
        """Say why a comma cannot stand here."""
        name = self.tokens[self.tokens.index(opened) - 1]
        if name.kind == "name" and name.end == opened.start:
            self.fail(
                f"{name.text} is not a function",
                name.column,
                expected="a comma separates the arguments of a function",
                way_out=self.nearest(name.text),
            )
        self.fail(
            "a comma between plain brackets",
            self.token.column,
            expected="it separates the arguments of a function, or indices",
            way_out="write a decimal point in numbers: 0.5",
        )

    def no_operand(self, token: Token) -> FormulaError:
        """Return what to say where an operand should stand."""
        found = self.describe(token)
        expected, way_out = "a value was expected here", ""
        if token.says("+"):
            way_out = "leave the sign + out"
        elif token.says("["):
            expected = "[ ] picks an entry of what stands before it: x[1]"
            way_out = "write a vector as concat(1, 2, 3)"
        elif token.says("'"):
            expected = "a quote is a transpose and follows a value"
            way_out = "a formula has no text in quotes"
        elif token.kind == "subscript":
            found, way_out = f"`_{token.text}`", "a name cannot start with _"
        elif token.says(")", "]", "}") and not self.open:
            found += ", which closes nothing,"
        elif token.says("=", "<", ">", "<=", ">=", "!=", "~"):
            expected = f"a value was expected before {token.text}"
            way_out = "a relation stands between two values: x = y"
            if self.open and self.open[-1].text in ("|", "‖"):
                way_out = "write norm(x) or abs(x) where bars stand inside bars"
        previous = f" after `{self.before.text}`" if self.place else ""
        return self.error(
            f"found {found}{previous}", token.column, expected=expected, way_out=way_out
        )
