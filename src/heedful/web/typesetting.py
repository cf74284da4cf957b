"""Formulas of claims as TeX, for the page to typeset.

>>> from heedful.claims.language import parse
>>> tex(parse("norm(c - (v_a + v_b)/2) <= 0.1"))
'\\\\left\\\\|c - \\\\frac{v_{a} + v_{b}}{2}\\\\right\\\\| \\\\le 0.1'
"""

from __future__ import annotations

import re
from fractions import Fraction

from heedful.claims.language import parse, show
from heedful.claims.language.tokens import GREEK
from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Entry,
    Expression,
    ForAll,
    Logic,
    Name,
    Number,
    Unary,
)
from heedful.claims.sheet import Claim
from heedful.errors import FormulaError

_SIGNS = {"<=": r"\le", ">=": r"\ge", "!=": r"\ne", "~": r"\approx", "<": "<", ">": ">", "=": "="}
_JOINED = {"and": r"\;\text{and}\;", "or": r"\;\text{or}\;", "implies": r"\implies "}
_LETTERS = set(GREEK.values())
_OPERATORS = {"exp", "ln", "log", "sin", "cos", "tanh", "max", "min", "det"}
_SUMS = {"sum": r"\sum", "prod": r"\prod"}
_STATISTICS = {"E": r"\mathbb{E}", "P": r"\mathbb{P}"}
_DEFINED = re.compile(r"([^()]*)\(([^()]*)\)")

# How tightly a text binds, so that brackets stand only where they are needed.
_CLAUSE, _LOGIC, _RELATION, _SUM, _PRODUCT, _POWER, _ATOM = range(7)


def formulas_of(claim: Claim) -> list[dict[str, str]]:
    """Return what a claim expects, each as text with letters and as TeX."""
    heads = (_DEFINED.fullmatch(key.strip()) for key in claim.let)
    own = {head[1].strip(): head[2].count(",") + 1 for head in heads if head}
    found = []
    for text in claim.expect:
        try:
            tree = parse(text, functions=own)
        except FormulaError:  # names that only the engine knows: the text speaks for itself
            found.append({"text": text, "tex": ""})
        else:
            found.append({"text": show(tree, style="unicode"), "tex": tex(tree)})
    return found


def tex(tree: Expression) -> str:
    """Return a formula as TeX."""
    return _written(tree)[0]


def _at(node: Expression, least: int) -> str:
    text, level = _written(node)
    return text if level >= least else rf"\left({text}\right)"


def _written(node: Expression) -> tuple[str, int]:
    match node:
        case Number(value):
            return _number(value)
        case Name(text):
            return _name(text), _ATOM
        case Entry(base, indices):
            inside = ", ".join(tex(index) for index in indices)
            return rf"{_at(base, _ATOM)}_{{[{inside}]}}", _POWER
        case Unary("T", operand):
            return rf"{_at(operand, _ATOM)}^{{\mathsf{{T}}}}", _POWER
        case Unary("not", operand):
            return rf"\text{{not }} {_at(operand, _RELATION)}", _LOGIC
        case Unary(_, operand):
            return f"-{_at(operand, _PRODUCT)}", _SUM
        case Binary():
            return _arithmetic(node)
        case Logic(operator, left, right):
            return f"{_at(left, _RELATION)} {_JOINED[operator]} {_at(right, _LOGIC)}", _LOGIC
        case Call():
            return _call(node), _ATOM
        case Compare(operator, left, right, within):
            text = f"{_at(left, _SUM)} {_SIGNS[operator]} {_at(right, _SUM)}"
            if within is not None:
                text += rf"\;\text{{ within }}{tex(within)}"
            return text, _RELATION
        case ForAll(indices, condition, body):
            names = ", ".join(_name(index) for index in indices)
            where = "" if condition is None else rf",\ {tex(condition)}"
            return rf"{tex(body)} \quad\text{{for all }} {names}{where}", _CLAUSE


def _arithmetic(node: Binary) -> tuple[str, int]:
    left, right = node.left, node.right
    if node.operator == "/":
        return rf"\frac{{{tex(left)}}}{{{tex(right)}}}", _PRODUCT
    if node.operator == "^":
        return f"{_at(left, _ATOM)}^{{{tex(right)}}}", _POWER
    if node.operator == "*":
        # Two numbers side by side would be read as one.
        sign = r"\cdot " if isinstance(right, Number) else r"\,"
        return f"{_at(left, _PRODUCT)} {sign}{_at(right, _POWER)}", _PRODUCT
    return f"{_at(left, _SUM)} {node.operator} {_at(right, _PRODUCT)}", _SUM


def _call(node: Call) -> str:
    name, arguments = node.function, node.arguments
    if name == "norm" and len(arguments) == 1:
        return rf"\left\|{tex(arguments[0])}\right\|"
    if name == "abs":
        return rf"\left|{tex(arguments[0])}\right|"
    if name == "sqrt":
        return rf"\sqrt{{{tex(arguments[0])}}}"
    if name in _SUMS and len(arguments) == 2:
        return rf"{_SUMS[name]}_{{{tex(arguments[1])}}} {_at(arguments[0], _PRODUCT)}"
    inside = ", ".join(tex(argument) for argument in arguments)
    if node.given is not None:
        inside += rf" \,\middle|\, {tex(node.given)}"
    return rf"{_function(name)}\left({inside}\right)"


def _function(name: str) -> str:
    if name in _STATISTICS:
        return _STATISTICS[name]
    if name in _OPERATORS:
        return f"\\{name}"
    if name in _LETTERS or len(name) == 1:
        return _name(name)
    return rf"\operatorname{{{name.replace('_', ' ')}}}"


def _name(name: str) -> str:
    head, *lowered = name.split("_")
    letter = f"\\{head}" if head in _LETTERS else head if len(head) == 1 else rf"\mathrm{{{head}}}"
    # TeX has no command for the Greek letters that look like Latin ones.
    letter = {"\\omicron": "o"}.get(letter, letter)
    inside = "".join(f"\\{part} " if part in _LETTERS else part for part in lowered)
    return f"{letter}_{{{inside}}}" if lowered else letter


def _number(value: Fraction) -> tuple[str, int]:
    if value.denominator == 1:
        return str(value.numerator), _ATOM if value >= 0 else _SUM
    decimal = f"{float(value):.12g}"
    if Fraction(decimal) == value and "e" not in decimal:
        return decimal, _ATOM if value >= 0 else _SUM
    if Fraction(decimal) == value:
        mantissa, exponent = decimal.split("e")
        return rf"{mantissa}\cdot 10^{{{int(exponent)}}}", _PRODUCT
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}", _PRODUCT
