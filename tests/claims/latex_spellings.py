r"""Formulas written in LaTeX as people write it: a spelling of a tree, chosen by a seed.

Three styles. "typeset" is what `tex` prints. "terse" is typed by hand: `\frac12`, `k_a^\top q`,
plain brackets, few spaces. "ornate" is out of an editor: `\left[ … \right]`, bold vectors,
`\dfrac`, subscripts after superscripts, rows of an `aligned`, a `\tag`.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Literal

from heedful.claims.functions import FUNCTIONS
from heedful.claims.language import tex
from heedful.claims.language.notation import show
from heedful.claims.language.tokens import GREEK
from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Entry,
    Expression,
    ForAll,
    Limit,
    Logic,
    Name,
    Number,
    Precedence,
    Unary,
    bound_names,
    is_condition,
    mentions,
)

Style = Literal["typeset", "terse", "ornate"]
STYLES: tuple[Style, ...] = ("typeset", "terse", "ornate")
BOLD = ("k", "v", "q", "c", "mu", "x")
_GREEK = frozenset(GREEK.values())
_LEVELS = {"+": Precedence.SUM, "-": Precedence.SUM, "*": Precedence.PRODUCT}
_LEVELS |= {"and": Precedence.AND, "or": Precedence.OR, "implies": Precedence.IMPLIES}


def spelled(tree: Expression, style: Style, seed: int = 0) -> str:
    """Return a formula in LaTeX, between dollars where nothing else shows what it is."""
    if style == "typeset":
        return f"${tex(tree)}$"
    speller = _Speller(Random(seed), tree, ornate=style == "ornate")
    text = speller.at(tree, Precedence.CLAUSE)
    if style == "terse":
        return f"${text}$" if speller.odds(2) else rf"\({text}\)."
    wrapped = speller.pick(
        rf"\[{text} \tag{{3}}\]",
        rf"\begin{{equation*}}\label{{eq}} {text} \end{{equation*}}",
        rf"$$\begin{{aligned}} {text} \end{{aligned}}$$",
        rf"\begin{{align}} & {text}, \nonumber \\ \end{{align}}",
    )
    return str(wrapped)


class _Speller:
    def __init__(self, random: Random, whole: Expression, *, ornate: bool) -> None:
        self.random = random
        self.whole = whole
        self.ornate = ornate
        self.bold = ornate and self.odds(2)

    def pick(self, *texts: str) -> str:
        return self.random.choice(texts)

    def odds(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def space(self) -> str:
        return self.pick(r"\,", r"\;", r"\ ", " ", "~", r"\:") if self.ornate else " "

    def brackets(self, text: str) -> str:
        if not self.ornate:
            return f"({text})"
        return self.pick(
            rf"\left({text}\right)", rf"\bigl({text}\bigr)", rf"\left[ {text} \right]",
            rf"\Big( {text} \Big)", f"( {text} )",
        )  # fmt: skip

    def at(self, node: Expression, least: Precedence) -> str:
        text, level = self.text(node)
        return text if level >= least else self.brackets(text)

    def text(self, node: Expression) -> tuple[str, Precedence]:
        match node:
            case Number(value):
                return self.number(value)
            case Name(text):
                return self.name(text), Precedence.ATOM
            case Entry(base, indices):
                inside = ", ".join(self.at(index, Precedence.SUM) for index in indices)
                return f"{{{self.at(base, Precedence.ATOM)}}}_{{[{inside}]}}", Precedence.ATOM
            case Unary("T", operand):
                return self.transposed(operand), Precedence.POWER
            case Unary("not", operand):
                return rf"\text{{not }}{self.at(operand, Precedence.NOT)}", Precedence.NOT
            case Unary(_, operand):
                return f"-{self.at(operand, Precedence.SIGN)}", Precedence.SIGN
            case Binary("/", left, right):
                return self.fraction(left, right), Precedence.SIGN
            case Binary("^", left, right):
                return self.power(left, right), Precedence.POWER
            case Binary("*", left, right):
                return self.product(left, right), Precedence.PRODUCT
            case Binary(operator, left, right) | Logic(operator, left, right):
                return self.joined(operator, left, right), _LEVELS[operator]
            case Call():
                return self.call(node)
            case Compare():
                return self.compare(node), Precedence.RELATION
            case ForAll(indices, condition, body):
                return self.for_all(indices, condition, body), Precedence.CLAUSE
            case Limit(left, right, symbol, target):
                arrow = self.pick(r"\to", r"\rightarrow") if self.ornate else r"\to"
                sides = f" {arrow} ".join(self.at(side, Precedence.SUM) for side in (left, right))
                grows = rf"{self.letter(symbol)} {arrow} {self.letter(target)}"
                return rf"{sides} \text{{ as }} {grows}", Precedence.CLAUSE
            case _:
                return tex(node), Precedence.CLAUSE

    def number(self, value: Fraction) -> tuple[str, Precedence]:
        text = show(Number(value))
        if "e" in text:
            mantissa, _, exponent = text.partition("e")
            dot = self.pick(r"\cdot", r"\times")
            return rf"{mantissa} {dot} 10^{{{int(exponent)}}}", Precedence.PRODUCT
        return text, Precedence.SIGN if "/" in text else Precedence.ATOM

    def name(self, name: str, above: str = "") -> str:
        head, *parts = name.split("_")
        letter = self.letter(head)
        if self.bold and head in BOLD:
            letter = rf"\boldsymbol{{{letter}}}" if head in _GREEK else rf"\mathbf{{{letter}}}"
        below = ",".join(self.letter(part) for part in parts)
        if not parts:
            return letter + above
        short = len(parts) == 1 and len(parts[0]) == 1 and not self.ornate
        script = f"_{below}" if short else f"_{{{below}}}"
        return letter + (above + script if above and self.odds(2) else script + above)

    def letter(self, part: str) -> str:
        if part == "infinity":
            return r"\infty"
        if part in _GREEK and part != "omicron":
            return f"\\{part} " if self.odds(2) else f"{{\\{part}}}"
        return part if len(part) == 1 else rf"\{self.pick('mathrm', 'text')}{{{part}}}"

    def transposed(self, operand: Expression) -> str:
        mark = self.pick(r"^\top", "^T", r"^{\top}", r"^{\mathsf{T}}", "^{T}", r"^{\mathrm T}")
        mark += " " if mark == r"^\top" else ""
        if isinstance(operand, Name):
            return self.name(operand.text, mark)
        return self.at(operand, Precedence.ATOM) + mark

    def fraction(self, left: Expression, right: Expression) -> str:
        command = self.pick("frac", "dfrac", "tfrac") if self.ornate else "frac"
        above, below = self.at(left, Precedence.SUM), self.at(right, Precedence.SUM)
        if len(above) == len(below) == 1 and above.isdigit() and below.isdigit():
            return rf"\{command}{above}{below}"
        return rf"\{command}{{{above}}}{{{below}}}"

    def power(self, base: Expression, exponent: Expression) -> str:
        above = self.at(exponent, Precedence.SUM)
        if exponent in (Name("T"), Unary("-", Name("T"))):
            above = rf"\left({above}\right)"
        if len(above) == 1 and not self.ornate and above.isdigit():
            return f"{self.at(base, Precedence.ATOM)}^{above}"
        return f"{self.at(base, Precedence.ATOM)}^{{{above}}}"

    def product(self, left: Expression, right: Expression) -> str:
        first, second = self.at(left, Precedence.PRODUCT), self.at(right, Precedence.SIGN)
        match right:
            case Binary("^", Number(value), _) if value == 10:
                second = self.brackets(second)
        last = left.right if isinstance(left, Binary) and left.operator == "*" else left
        while isinstance(last, Unary) and last.operator == "-":
            last = last.operand
        called = isinstance(last, Name) and (last.text in FUNCTIONS or len(last.text) > 1)
        plain = second.startswith(("-", "[")) or second[:1].isdigit()
        sign = self.pick(r"\cdot ", r"\times ", r"\cdot{}")
        close = not (plain or called or isinstance(last, Number)) or (
            isinstance(last, Number) and isinstance(right, Name)
        )
        return f"{first}{self.space() if close and not self.odds(4) else ' ' + sign}{second}"

    def joined(self, operator: str, left: Expression, right: Expression) -> str:
        level = _LEVELS[operator]
        tighter = Precedence(level + 1)
        sides = (tighter, level) if operator == "implies" else (level, tighter)
        words = {"and": r"\text{ and }", "or": r" \lor ", "implies": r" \Rightarrow "}
        if self.ornate:
            words = {"and": r" \land ", "or": r"\;\text{or}\;", "implies": r" \implies "}
        first, last = self.at(left, sides[0]), left
        while isinstance(last, Binary) and last.operator in "+-*":
            last = last.right
        if operator in "+-" and set(bound_names(last)) & mentions(right):
            first = self.brackets(self.at(left, Precedence.SUM))  # where the sum ends must be seen
        return f"{first} {words.get(operator, operator)} {self.at(right, sides[1])}"

    def call(self, node: Call) -> tuple[str, Precedence]:
        bound = bound_names(node)
        if bound and node.function in ("sum", "prod", "max", "min"):
            return self.prefix(node, bound[0]), Precedence.SUM
        inside = [self.at(argument, Precedence.IMPLIES) for argument in node.arguments]
        if len(inside) == 1 and node.function in ("norm", "abs", "sqrt") and node.given is None:
            return self.barred(node.function, inside[0]), Precedence.ATOM
        if bound and is_condition(node.arguments[1]):
            inside[1] = self.over(bound[0], node.arguments[1])
        text = ", ".join(inside)
        if node.given is not None:
            text += rf" \mid {self.at(node.given, Precedence.IMPLIES)}"
        name = self.function(node.function)
        if node.function in ("E", "P", "var") and self.odds(2):
            return rf"{name}\left[{text}\right]", Precedence.ATOM
        if self.ornate:
            return rf"{name}\left( {text} \right)", Precedence.ATOM
        return f"{name}({text})", Precedence.ATOM

    def function(self, name: str) -> str:
        if name in ("E", "P"):
            return rf"\mathbb{{{name}}}"
        if name in ("exp", "ln", "log", "sin", "cos", "max", "min", "det", "tanh"):
            return f"\\{name}"
        if len(name) == 1 or name in _GREEK:
            return self.letter(name)
        wanted = {"relu": "ReLU", "var": "Var", "softmax": "Softmax"}.get(name, name)
        shown = self.pick(name, wanted).replace("_", r"\_")
        return rf"\{self.pick('operatorname', 'mathrm', 'text')}{{{shown}}}"

    def barred(self, function: str, inside: str) -> str:
        if function == "sqrt":
            return rf"\sqrt{{{inside}}}"
        left, right = (r"\lVert", r"\rVert") if function == "norm" else (r"\lvert", r"\rvert")
        bar = r"\|" if function == "norm" else "|"
        sized = rf"\left{bar}{inside}\right{bar}"
        simple = not any(mark in inside for mark in ("|", "Vert", "vert"))
        if simple and not self.ornate:
            return f"{bar}{inside}{bar}"
        return self.pick(rf"{left} {inside} {right}", sized)

    def prefix(self, node: Call, index: str) -> str:
        body, over = node.arguments
        below = self.over(index, over) if is_condition(over) else self.name(index)
        text = self.at(body, Precedence.PRODUCT if node.function == "sum" else Precedence.SIGN)
        if bound_names(body):
            text = (
                self.brackets(text) if not text.startswith(("(", r"\left", r"\B", r"\b")) else text
            )
        return rf"\{node.function}_{{{below}}} {text}"

    def over(self, index: str, condition: Expression) -> str:
        said = self.at(condition, Precedence.IMPLIES)
        return rf"{self.name(index)} \text{{ where }} {said}"

    def compare(self, node: Compare) -> str:
        signs = {
            "<=": (r"\le", r"\leq", r"\leqslant"), ">=": (r"\ge", r"\geq", r"\geqslant"),
            "!=": (r"\ne", r"\neq", r"\not="), "~": (r"\approx", r"\simeq"),
        }  # fmt: skip
        sign = self.pick(*signs.get(node.operator, (node.operator,)))
        align = "&" if self.ornate and node is self.whole and self.odds(2) else ""
        text = f"{self.at(node.left, Precedence.SUM)} {align}{sign} "
        text += self.at(node.right, Precedence.SUM)
        if node.within is not None:
            text += rf" \text{{ within }} {self.at(node.within, Precedence.SUM)}"
        return text

    def for_all(
        self, indices: tuple[str, ...], condition: Expression | None, body: Expression
    ) -> str:
        said = self.at(body, Precedence.IMPLIES if self.ornate else Precedence.CLAUSE)
        words = self.pick(r"\quad \text{for all } ", r", \quad \forall ", r" \text{ for every }")
        names = ", ".join(self.name(index) for index in indices)
        where = "" if condition is None else (
            rf" \text{{ where }} {self.at(condition, Precedence.IMPLIES)}"
        )  # fmt: skip
        return said + words + names + where
