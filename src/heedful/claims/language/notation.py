"""From tree to text that parses to the same tree, and to TeX.

Text has two styles. The plain one is for files and for typing: `alpha_a >= 0.9`, `norm(x)`,
`k_a^T * q`. The one with letters is for reading: `α_a ≥ 0.9`, `‖x‖`, `k_aᵀ q`. Both can be
parsed again.
A tree made by hand may hold what no formula can write, such as the number 1/3: it is shown
as the nearest formula of the same value, (1/3).
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Literal

from heedful.claims.functions import FUNCTIONS
from heedful.claims.language.tokens import DIGITS, GREEK, in_range, raised, with_letters
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
    Precedence,
    Unary,
    bound_names,
    is_condition,
    looks_like_an_index,
    mentions,
)

Style = Literal["plain", "unicode"]

_SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠", "~": "≈"}
_TEX_SIGNS = {
    **{"<=": r"\le", ">=": r"\ge", "!=": r"\ne", "~": r"\approx"},
    **{"<": "<", ">": ">", "=": "="},
}
_TEX_WORDS = {"and": r"\;\text{and}\;", "or": r"\;\text{or}\;", "implies": r"\implies "}
_GREEK_NAMES = frozenset(GREEK.values())
# How tightly TeX binds, so that brackets stand only where they are needed.
_CLAUSE, _LOGIC, _RELATION, _SUM, _PRODUCT, _POWER, _ATOM = range(7)
_LEVELS = {
    "+": Precedence.SUM,
    "-": Precedence.SUM,
    "*": Precedence.PRODUCT,
    "/": Precedence.PRODUCT,
    "^": Precedence.POWER,
    "and": Precedence.AND,
    "or": Precedence.OR,
    "implies": Precedence.IMPLIES,
}


def show(tree: Expression, style: Style = "plain") -> str:
    """Return a formula as text.

    >>> from heedful.claims.language.parser import parse
    >>> tree = parse("‖c - (v_a+v_b)/2‖ <= 0.1 for all i != a, b")
    >>> show(tree)
    'norm(c - (v_a + v_b) / 2) <= 0.1 for all i != a, b'
    >>> show(tree, style="unicode")
    '‖c - (v_a + v_b) / 2‖ ≤ 0.1 for all i ≠ a, b'
    """
    return _Printer(letters=style == "unicode").at(tree, Precedence.CLAUSE)


class _Printer:
    def __init__(self, *, letters: bool) -> None:
        self.letters = letters

    def at(self, node: Expression, least: Precedence) -> str:
        """Return a node as text that can stand where `least` is asked for."""
        text, level = self.text(node)
        return text if level >= least else f"({text})"

    def text(self, node: Expression) -> tuple[str, Precedence]:
        match node:
            case Number(value):
                return _number(value)
            case Name(name):
                return self.name(name), Precedence.ATOM
            case Entry(base, indices):
                inside = ", ".join(self.at(index, Precedence.SUM) for index in indices)
                return f"{self.at(base, Precedence.ATOM)}[{inside}]", Precedence.ATOM
            case Unary():
                return self.unary(node)
            case Binary("^", base, exponent):
                return self.power(base, exponent), Precedence.POWER
            case Binary("*", left, right):
                return self.product(left, right), Precedence.PRODUCT
            case Binary(operator, left, right) | Logic(operator, left, right):
                return self.between(operator, left, right), _LEVELS[operator]
            case Call():
                return self.call(node)
            case Compare():
                return self.compare(node), Precedence.RELATION
            case ForAll():
                return self.for_all(node), Precedence.CLAUSE

    def name(self, name: str) -> str:
        return with_letters(name) if self.letters else name

    def sign(self, operator: str) -> str:
        return _SIGNS.get(operator, operator) if self.letters else operator

    def between(self, operator: str, left: Expression, right: Expression) -> str:
        level = _LEVELS[operator]
        tighter = Precedence(level + 1)
        # `implies` groups to the right, the others to the left.
        sides = (tighter, level) if operator == "implies" else (level, tighter)
        return f"{self.at(left, sides[0])} {operator} {self.at(right, sides[1])}"

    def unary(self, node: Unary) -> tuple[str, Precedence]:
        if node.operator == "not":
            return f"not {self.at(node.operand, Precedence.NOT)}", Precedence.NOT
        if node.operator == "-":
            return f"-{self.at(node.operand, Precedence.SIGN)}", Precedence.SIGN
        mark = "ᵀ" if self.letters else "^T"
        return f"{self.at(node.operand, Precedence.ATOM)}{mark}", Precedence.POWER

    def power(self, base: Expression, exponent: Expression) -> str:
        below = self.at(base, Precedence.ATOM)
        sign, number = "", exponent
        if isinstance(exponent, Unary) and exponent.operator == "-":
            sign, number = "-", exponent.operand
        if isinstance(number, Number) and number.value >= 0 and number.value.denominator == 1:
            above = sign + self.at(number, Precedence.ATOM)
            if self.letters and re.fullmatch("-?[0-9]{1,9}", above):
                return below + raised(above)
            return f"{below}^{above}"
        above = self.at(exponent, Precedence.POWER)
        # A transpose never belongs to an exponent, and ^T is a transpose.
        transposed = isinstance(exponent, Unary) and exponent.operator == "T"
        if transposed or above.startswith("T"):
            above = f"({above})"
        return f"{below}^{above}"

    def product(self, left: Expression, right: Expression) -> str:
        first = self.at(left, Precedence.PRODUCT)
        second = self.at(right, Precedence.SIGN)
        if not self.letters:
            return f"{first} * {second}"
        return f"{first} {second}" if _side_by_side(left, right) else f"{first} · {second}"

    def call(self, node: Call) -> tuple[str, Precedence]:
        inside = [self.at(argument, Precedence.IMPLIES) for argument in node.arguments]
        if self.letters and len(inside) == 1 and node.given is None:
            bars = {"norm": "‖", "abs": "|"}.get(node.function)
            if bars and "|" not in inside[0] and "‖" not in inside[0]:
                return f"{bars}{inside[0]}{bars}", Precedence.ATOM
            if node.function == "sqrt":
                # Less than a power: √ before an exponent can be read in two ways.
                return f"√{self.at(node.arguments[0], Precedence.ATOM)}", Precedence.SIGN
        if bound_names(node) and is_condition(node.arguments[1]):
            inside[1] = self.index(bound_names(node)[0], node.arguments[1])
        if node.given is not None:
            inside[-1] += f" given {self.at(node.given, Precedence.IMPLIES)}"
        function = self.name(node.function) if node.function in FUNCTIONS else node.function
        return f"{function}({', '.join(inside)})", Precedence.ATOM

    def index(self, index: str, condition: Expression) -> str:
        """Return the index of a sum with its condition."""
        listed = self.differences(index, condition)
        if listed is not None:
            return listed
        return f"{self.name(index)} where {self.at(condition, Precedence.IMPLIES)}"

    def compare(self, node: Compare) -> str:
        left, right = self.at(node.left, Precedence.SUM), self.at(node.right, Precedence.SUM)
        text = f"{left} {self.sign(node.operator)} {right}"
        if node.within is not None:
            text += f" within {self.at(node.within, Precedence.SUM)}"
        return text

    def for_all(self, node: ForAll) -> str:
        said = f"{self.at(node.body, Precedence.CLAUSE)} for all "
        names = ", ".join(self.name(index) for index in node.indices)
        if node.condition is None:
            return said + names
        if len(node.indices) == 1:
            free = {name for name in mentions(node.body) if looks_like_an_index(name)}
            listed = self.differences(node.indices[0], node.condition, free)
            if listed is not None:
                return said + listed
        return f"{said}{names} where {self.at(node.condition, Precedence.IMPLIES)}"

    def differences(
        self, index: str, condition: Expression, bindable: set[str] | None = None
    ) -> str | None:
        """Return `i != a, b` for a condition of that form, unless it would bind a name."""
        others: list[str] = []
        while isinstance(condition, Logic) and condition.operator == "and":
            last = _differs(index, condition.right)
            if last is None:
                return None
            others.insert(0, last)
            condition = condition.left
        first = _differs(index, condition)
        if first is None or {first, *others} & {index, *(bindable or ())}:
            return None
        written = ", ".join(self.name(name) for name in (first, *others))
        return f"{self.name(index)} {self.sign('!=')} {written}"


def _differs(index: str, condition: Expression) -> str | None:
    """Return a if the condition is index != a, for a name a."""
    match condition:
        case Compare("!=", Name(left), Name(right), None) if left == index:
            return right
    return None


def _side_by_side(left: Expression, right: Expression) -> bool:
    """Tell whether a product needs no sign to be read well, and read in one way."""
    if isinstance(left, Binary) and left.operator == "*":
        left = left.right
    simple = isinstance(left, Name | Number | Entry) or (
        isinstance(left, Unary) and left.operator == "T"
    )
    match right:
        case Name(text):
            return simple and text not in FUNCTIONS
        case Unary("T", Name()) | Entry(Name(), _):
            return simple
        case Call(function, _):
            return simple and function not in ("sqrt", "abs", "norm")
    return False


def _number(value: Fraction) -> tuple[str, Precedence]:
    """Return a number and how tightly its text binds."""
    if value < 0:
        return f"-{_number(-value)[0]}", Precedence.SIGN
    places, rest = 0, value.denominator
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        places = max(places, power)
    digits = str(value.numerator * 10**places // value.denominator) if places < 2000 else ""
    shortened = digits.rstrip("0") or "0"
    if rest != 1 or len(shortened) > DIGITS or not in_range(value):
        return f"{value.numerator}/{value.denominator}", Precedence.PRODUCT
    exponent = len(digits) - len(shortened) - places
    return _decimal(shortened, exponent), Precedence.ATOM


def _decimal(digits: str, exponent: int) -> str:
    """Return digits × 10^exponent, written out where that is short."""
    if digits == "0":
        return "0"
    if exponent >= 0 and len(digits) + exponent <= 15:
        return digits + "0" * exponent
    point = len(digits) + exponent
    if exponent < 0 < point:
        return f"{digits[:point]}.{digits[point:]}"
    if -4 <= point <= 0 and exponent < 0:
        return (
            f"0.{'0' * -point}{digits}"
            if len(digits) - point < DIGITS
            else _scientific(digits, point)
        )
    return _scientific(digits, point)


def _scientific(digits: str, point: int) -> str:
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1}"


def tex(tree: Expression) -> str:
    r"""Return a formula as TeX.

    >>> from heedful.claims.language.parser import parse
    >>> print(tex(parse("norm(c - (v_a + v_b)/2) <= 0.1")))
    \left\|c - \frac{v_{a} + v_{b}}{2}\right\| \le 0.1
    """
    return _tex(tree)[0]


def _tex_at(node: Expression, least: int) -> str:
    text, level = _tex(node)
    return text if level >= least else rf"\left({text}\right)"


def _tex(node: Expression) -> tuple[str, int]:
    match node:
        case Number(value):
            return _tex_number(value)
        case Name(text):
            return _tex_name(text), _ATOM
        case Entry(base, indices):
            inside = ", ".join(tex(index) for index in indices)
            return rf"{_tex_at(base, _ATOM)}_{{[{inside}]}}", _POWER
        case Unary("T", operand):
            return rf"{_tex_at(operand, _ATOM)}^{{\mathsf{{T}}}}", _POWER
        case Unary("not", operand):
            return rf"\text{{not }} {_tex_at(operand, _RELATION)}", _LOGIC
        case Unary(_, operand):
            return f"-{_tex_at(operand, _PRODUCT)}", _SUM
        case Binary():
            return _tex_arithmetic(node)
        case Logic(operator, left, right):
            return (
                f"{_tex_at(left, _RELATION)} {_TEX_WORDS[operator]} {_tex_at(right, _LOGIC)}",
                _LOGIC,
            )
        case Call():
            return _tex_call(node), _ATOM
        case Compare(operator, left, right, within):
            text = f"{_tex_at(left, _SUM)} {_TEX_SIGNS[operator]} {_tex_at(right, _SUM)}"
            if within is not None:
                text += rf"\;\text{{ within }}{tex(within)}"
            return text, _RELATION
        case ForAll(indices, condition, body):
            names = ", ".join(_tex_name(index) for index in indices)
            where = "" if condition is None else rf",\ {tex(condition)}"
            return rf"{tex(body)} \quad\text{{for all }} {names}{where}", _CLAUSE


def _tex_arithmetic(node: Binary) -> tuple[str, int]:
    left, right = node.left, node.right
    if node.operator == "/":
        return rf"\frac{{{tex(left)}}}{{{tex(right)}}}", _PRODUCT
    if node.operator == "^":
        return f"{_tex_at(left, _ATOM)}^{{{tex(right)}}}", _POWER
    if node.operator == "*":
        # Two numbers side by side would be read as one.
        sign = r"\cdot " if isinstance(right, Number) else r"\,"
        return f"{_tex_at(left, _PRODUCT)} {sign}{_tex_at(right, _POWER)}", _PRODUCT
    return f"{_tex_at(left, _SUM)} {node.operator} {_tex_at(right, _PRODUCT)}", _SUM


def _tex_call(node: Call) -> str:
    function = FUNCTIONS.get(node.function)
    template = "" if function is None else function.tex
    places = {int(number) for number in re.findall(r"#\(?(\d)", template)}
    if places == set(range(1, len(node.arguments) + 1)):
        texts = {f"#{i}": tex(part) for i, part in enumerate(node.arguments, 1)}
        texts |= {f"#({i})": _tex_at(part, _PRODUCT) for i, part in enumerate(node.arguments, 1)}
        return re.sub(r"#\d|#\(\d\)", lambda found: texts[found[0]], template)
    inside = ", ".join(tex(argument) for argument in node.arguments)
    if node.given is not None:
        inside += rf" \,\middle|\, {tex(node.given)}"
    name = template if template and not places else _tex_function(node.function)
    return rf"{name}\left({inside}\right)"


def _tex_function(name: str) -> str:
    if name in _GREEK_NAMES or len(name) == 1:
        return _tex_name(name)
    return rf"\operatorname{{{name.replace('_', ' ')}}}"


def _tex_name(name: str) -> str:
    head, *lowered = name.split("_")
    letter = (
        f"\\{head}" if head in _GREEK_NAMES else head if len(head) == 1 else rf"\mathrm{{{head}}}"
    )
    # TeX has no command for the Greek letters that look like Latin ones.
    letter = {"\\omicron": "o"}.get(letter, letter)
    inside = "".join(f"\\{part} " if part in _GREEK_NAMES else part for part in lowered)
    return f"{letter}_{{{inside}}}" if lowered else letter


def _tex_number(value: Fraction) -> tuple[str, int]:
    if value.denominator == 1:
        return str(value.numerator), _ATOM if value >= 0 else _SUM
    decimal = f"{float(value):.12g}"
    if Fraction(decimal) == value and "e" not in decimal:
        return decimal, _ATOM if value >= 0 else _SUM
    if Fraction(decimal) == value:
        mantissa, exponent = decimal.split("e")
        return rf"{mantissa}\cdot 10^{{{int(exponent)}}}", _PRODUCT
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}", _PRODUCT
