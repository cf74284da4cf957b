"""Reading statements: relations and their chains, tolerances, membership, logical words."""

from __future__ import annotations

from functools import reduce
from typing import Literal, cast

from heedful.claims.language.arithmetic import Arithmetic
from heedful.claims.language.precedence import Precedence
from heedful.claims.language.tokens import Token
from heedful.claims.language.tree import Compare, Expression, Logic, Unary

RELATIONS = ("<", "<=", ">", ">=", "=", "!=", "~")
Relation = Literal["<", "<=", ">", ">=", "=", "!=", "~"]
_LOGIC = {"and": Precedence.AND, "or": Precedence.OR, "implies": Precedence.IMPLIES}


class Relations(Arithmetic):
    """Reads what is true or false."""

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
        return token.says(*RELATIONS, "in") or (token.says("not") and self.ahead(1).says("in"))

    def logic(self, left: Expression, level: Precedence) -> Expression:
        """Read the right side of and, or, implies."""
        token = self.advance()
        # `implies` groups to the right, the others to the left.
        right = self.expression(level if token.text == "implies" else Precedence(level + 1))
        arrow = token.kind == "symbol" and token.text == "implies"
        hint = "=> means implies; for greater or equal write >=" if arrow else ""
        for side, name in ((left, "left"), (right, "right")):
            self.need_statement(side, token.column, f"the {name} side of {token.text}", hint)
        operator = cast(Literal["and", "or", "implies"], token.text)
        return self.build(Logic(operator, left, right, position=self.at(token)))

    def relation(self, left: Expression) -> Expression:
        """Read a relation, or a chain of them that share their middle terms."""
        operands, links = [left], list[Token]()
        member: Expression | None = None
        while self.at_relation():
            if self.token.says("in", "not"):
                member = self.membership(operands[-1])
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
                way_out="write each pair: a != b and b != c and a != c",
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

    def one_of(self, value: Expression, opened: Token) -> Expression:
        """Read the members of a set: x = a or x = b."""
        self.enter(opened)
        members = [self.argument("a member")]
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
