"""Reading values: sums, products with and without a sign, powers, transposes, entries.

An operator-precedence reader: `expression(least)` reads one operand, then goes on as long as
what follows binds at least as tightly as `least`.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from fractions import Fraction
from typing import Literal, NoReturn, cast

from heedful.claims.language.operands import Operands
from heedful.claims.language.precedence import Precedence
from heedful.claims.language.tokens import Token
from heedful.claims.language.tree import Binary, Entry, Expression, Number, Unary

_SUMS_AND_PRODUCTS = {
    "+": Precedence.SUM,
    "-": Precedence.SUM,
    "*": Precedence.PRODUCT,
    "/": Precedence.PRODUCT,
}


class Arithmetic(Operands):
    """Reads values; relations are left to the reader above it."""

    @abstractmethod
    def joined(self, left: Expression, least: Precedence) -> Expression | None:
        """Go on with a relation or a logical word, or return None."""

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
        operator = cast(Literal["+", "-", "*", "/"], token.text)
        return self.build(Binary(operator, left, right, position=self.at(token)))

    def starts_factor(self) -> bool:
        """Tell whether the next token begins a factor of a product without a sign."""
        token = self.token
        if token.kind in ("name", "number"):
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
                way_out="write * for a product, or the number first: 2 x",
            )
        if isinstance(left, Binary) and left is not self.grouped:
            glued = before.end == token.start
            # 1/2 (x + y) is clear; a/b c, 1/2x and e^2x are read both ways by different people.
            if left.operator == "/" and (glued or not isinstance(left.right, Number)):
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
                way_out=f"write ^T {token.text[1:]} for a transpose, ^({token.text}) for a power",
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
            self.fail("a number has no entries", opened.column, way_out="write (x^2)[1]")
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
            way_out=f"write (a {operator} b) * c or a {operator} (b * c)",
        )


def _is_letter_t(token: Token) -> bool:
    return token.kind == "name" and token.text == "T"
