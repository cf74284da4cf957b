"""Reading clauses: `for all i != a, b`, `given that …`, and the index of a sum.

Which names a clause binds: those it begins with, and those further right that look like an
index (i, j, s, t, …), are used in the statement, and do not stand for something already. So
`k_i^T k_j = 0 for all i != j` binds both, `alpha_i ≈ 0 for all i != a, b` binds i only. After
`where`, any statement may follow, and only the names before it are bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from heedful.claims.language.binding import looks_like_an_index, mentions
from heedful.claims.language.functions import Function
from heedful.claims.language.precedence import Precedence
from heedful.claims.language.relations import Relations
from heedful.claims.language.tokens import Token
from heedful.claims.language.tree import Expression, ForAll, Logic, Name, walk

_ORDERINGS = ("<", "<=", ">", ">=", "=")
_AFTER_A_LIST = (",", ")", ":", "for", "forall", "given", "where", "and")


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


class Clauses(Relations):
    """Reads whole statements."""

    def statement(self, *, given: bool = True) -> Expression:
        """Read a statement or a value with its clauses; leave `given` unless it may be taken."""
        if self.token.says("for", "forall"):
            return self.for_all_first(given=given)
        left = self.expression(Precedence.IMPLIES)
        while True:
            if self.token.says("for", "forall"):
                token = self.quantifier()
                left = self.for_all(token, self.clause(), left)
            elif given and self.token.says("given"):
                left = self.given_that(left)
            else:
                return left

    def quantifier(self) -> Token:
        """Take `for all`, `for every`, `for each` or ∀."""
        token = self.advance()
        if token.text == "for" and not self.accept("all", "every", "each"):
            self.fail(
                f"found {self.describe(self.token)} after `for`",
                self.token.column,
                expected="`for all` was expected",
            )
        return token

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
            if text in self.vocabulary.names:
                continue
            if name in clause.listed:
                self.fail(
                    f"{text} may be another index, or one more that {indices[0]} differs from",
                    name.column,
                    way_out=f"write `for all {indices[0]}, {text} where …`",
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
                    way_out="write `(… for all i) and …`, or `for all i where …`",
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
                way_out="write a colon before the statement: for all i, j: x_i = x_j",
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
                    way_out="write it first (s != t < T), or after `where`",
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

    def over_index(self, function: Function, body: Expression) -> tuple[Expression, ...]:
        """Read the index of sum, prod, max, min, or the second of two values."""
        start = self.token
        clause = self.clause(values=True)
        name = function.name
        if not clause.conditions:
            if name in ("sum", "prod") and not isinstance(clause.heads[0], Name):
                self.fail(
                    f"the second argument of {name} is not an index",
                    start.column,
                    expected=f"a name or a condition on it was expected: {name}(x_i, i != a)",
                )
            if len(clause.heads) > 1:
                self.fail(
                    f"{name} over more than one index",
                    start.column,
                    way_out=f"nest them: {name}({name}(…, i), j)",
                )
            return tuple(clause.heads)
        condition = self.conjunction(clause.conditions)
        first = next(part.text for part in walk(condition) if isinstance(part, Name))
        if [first] != clause.indices:
            self.fail(
                f"the condition of {name} does not begin with its one index",
                start.column,
                way_out=f"write the index first, as in {name}(x_i, i != a), and nest two sums",
            )
        return (condition,)
