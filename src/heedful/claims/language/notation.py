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
    Exists,
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
    looks_like_an_index,
    mentions,
    names_in,
)

Style = Literal["plain", "unicode"]

_SIGNS = {">>": "≫", "<=": "≤", ">=": "≥", "!=": "≠", "~": "≈"}
_TEX_SIGNS = {
    **{"<=": r"\le", ">=": r"\ge", "!=": r"\ne", "~": r"\approx"},
    **{">>": r"\gg", "<": "<", ">": ">", "=": "="},
}
_TEX_WORDS = {"and": r"\;\text{and}\;", "or": r"\;\text{or}\;", "implies": r"\implies"}
_PREFIXES = ("sum", "prod", "max", "min")
_BARS = {"norm": r"\|", "abs": "|"}
_GREEK_NAMES = frozenset(GREEK.values())
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
            case Limit():
                return self.limit(node), Precedence.RELATION
            case Exists():
                return self.existence(node), Precedence.CLAUSE

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
        return self.condition(index, condition) if listed is None else listed

    def condition(self, index: str, condition: Expression) -> str:
        where = self.word("where")
        return f"{self.name(index)}{where}{self.at(condition, Precedence.IMPLIES)}"

    def word(self, word: str) -> str:
        """Return a word of the language as it stands between two parts."""
        return f" {word} "

    def opening(self, words: str) -> str:
        """Return words with which a statement begins."""
        return f"{words} "

    def compare(self, node: Compare) -> str:
        left, right = self.at(node.left, Precedence.SUM), self.at(node.right, Precedence.SUM)
        text = f"{left} {self.sign(node.operator)} {right}"
        if node.within is not None:
            text += f"{self.word('within')}{self.at(node.within, Precedence.SUM)}"
        return text

    def limit(self, node: Limit) -> str:
        arrow = "→" if self.letters else "->"
        left, right = self.at(node.left, Precedence.SUM), self.at(node.right, Precedence.SUM)
        moving = f" as {self.name(node.symbol)} {arrow} {self.name(node.target)}"
        return f"{left} {arrow} {right}{moving if node.symbol else ''}"

    def existence(self, node: Exists) -> str:
        names = ", ".join(self.name(name) for name in node.names)
        where = ""
        if node.condition is not None:
            where = f"{self.word('where')}{self.at(node.condition, Precedence.IMPLIES)}"
        body = self.at(node.body, Precedence.CLAUSE)
        there_is = self.opening(f"there is a {node.kind}")
        return f"{there_is}{names}{where}{self.word('with')}{body}"

    def for_all(self, node: ForAll) -> str:
        # What there is goes on to the end of its statement, `for all` included.
        level = Precedence.IMPLIES if isinstance(node.body, Exists) else Precedence.CLAUSE
        return self.over_indices(f"{self.at(node.body, level)} for all ", node)

    def over_indices(self, said: str, node: ForAll) -> str:
        """Return what is said with the indices for which it is, and their condition."""
        names = ", ".join(self.name(index) for index in node.indices)
        if node.condition is None:
            return said + names
        if len(node.indices) == 1:
            free = {name for name in mentions(node.body) if looks_like_an_index(name)}
            listed = self.differences(node.indices[0], node.condition, free)
            if listed is not None:
                return said + listed
        return f"{said}{names}{self.word('where')}{self.at(node.condition, Precedence.IMPLIES)}"

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
    r"""Return a formula as TeX that is read as the same tree again.

    >>> from heedful.claims.language.parser import parse
    >>> print(tex(parse("norm(c - (v_a + v_b)/2) <= 0.1")))
    \left\|c - \frac{v_{a} + v_{b}}{2}\right\| \le 0.1
    """
    return _TexPrinter(letters=True).at(tree, Precedence.CLAUSE)


class _TexPrinter(_Printer):
    """The same brackets as in text, other signs; a sum stands before its body."""

    def __init__(self, *, letters: bool) -> None:
        super().__init__(letters=letters)
        self.bound: list[str] = []
        """The indices of the sums and clauses around what is being written."""

    def at(self, node: Expression, least: Precedence) -> str:
        text, level = self.text(node)
        return text if level >= least else rf"\left({text}\right)"

    def text(self, node: Expression) -> tuple[str, Precedence]:
        match node:
            case Number(value):
                return _tex_number(value)
            case Entry(base, indices):
                inside = ", ".join(self.at(index, Precedence.SUM) for index in indices)
                below = self.at(base, Precedence.ATOM)
                # TeX refuses a second subscript beside the first.
                below = f"{{{below}}}" if below.endswith("}") else below
                return rf"{below}_{{[{inside}]}}", Precedence.ATOM
            case Binary("/", left, right):
                above, below = self.at(left, Precedence.SUM), self.at(right, Precedence.SUM)
                return rf"\frac{{{above}}}{{{below}}}", Precedence.SIGN
        return super().text(node)

    def name(self, name: str) -> str:
        return _tex_name(name)

    def sign(self, operator: str) -> str:
        return _TEX_SIGNS[operator]

    def between(self, operator: str, left: Expression, right: Expression) -> str:
        level = _LEVELS[operator]
        tighter = Precedence(level + 1)
        sides = (tighter, level) if operator == "implies" else (level, tighter)
        first, second = self.at(left, sides[0]), self.at(right, sides[1])
        if operator in "+-":
            if _last_index(left) in mentions(right):
                first = rf"\left({self.at(left, Precedence.SUM)}\right)"
            if _prefix(right):
                second = self.at(right, Precedence.SUM)
        return f"{first} {_TEX_WORDS.get(operator, operator)} {second}"

    def unary(self, node: Unary) -> tuple[str, Precedence]:
        if node.operator == "not":
            return rf"\text{{not }} {self.at(node.operand, Precedence.NOT)}", Precedence.NOT
        if node.operator == "-":
            return f"-{self.at(node.operand, Precedence.SIGN)}", Precedence.SIGN
        below = self.at(node.operand, Precedence.ATOM)
        return rf"{below}^{{\mathsf{{T}}}}", Precedence.POWER

    def power(self, base: Expression, exponent: Expression) -> str:
        above = self.at(exponent, Precedence.SUM)
        if exponent in (Name("T"), Unary("-", Name("T"))):  # ^T is a transpose
            above = rf"\left({above}\right)"
        return f"{self.at(base, Precedence.ATOM)}^{{{above}}}"

    def product(self, left: Expression, right: Expression) -> str:
        first, second = self.at(left, Precedence.PRODUCT), self.at(right, Precedence.SIGN)
        match right:
            case Binary("^", Number(value), _) if value == 10:
                second = rf"\left({second}\right)"  # 2 · 10³ would be one number
        last = left.right if isinstance(left, Binary) and left.operator == "*" else left
        # A word before a bracket would be a function.
        called = isinstance(last, Name) and (last.text in FUNCTIONS or r"\mathrm" in first)
        bracket = second.startswith((r"\left(", r"\frac")) and (called or isinstance(last, Number))
        plain = isinstance(right, Number | Unary) and not isinstance(right, Name)
        turned = isinstance(right, Unary) and right.operator == "T"
        sign = r"\cdot " if bracket or (plain and not turned) or second[:1].isdigit() else r"\,"
        return f"{first} {sign}{second}"

    def call(self, node: Call) -> tuple[str, Precedence]:
        bound = bound_names(node)
        if bound and node.function in _PREFIXES:
            return self.prefix(node, bound[0]), Precedence.SUM
        inside = [self.at(argument, Precedence.IMPLIES) for argument in node.arguments]
        if node.given is None and node.function in _BARS:
            bar = _BARS[node.function]
            order = _norm_order(node)
            if len(inside) == 1 or order:
                return rf"\left{bar}{inside[0]}\right{bar}{order}", Precedence.ATOM
        if node.function == "sqrt" and len(inside) == 1:
            return rf"\sqrt{{{inside[0]}}}", Precedence.ATOM
        if bound and is_condition(node.arguments[1]):
            inside[1] = self.index(bound[0], node.arguments[1])
        if bound and node.function == "logsumexp":
            return rf"\ln \sum_{{{inside[1]}}} \exp\left({inside[0]}\right)", Precedence.SUM
        text = ", ".join(inside)
        if node.given is not None:
            text += rf" \,\middle|\, {self.at(node.given, Precedence.IMPLIES)}"
        return rf"{_tex_function(node.function)}\left({text}\right)", Precedence.ATOM

    def prefix(self, node: Call, index: str) -> str:
        """Return a sum before its body, whose end must be plain to see."""
        body, over = node.arguments
        below = self.name(index)
        if is_condition(over):
            # In Σ_{i ≠ j} x_i x_j the letter j may be summed over too, unless it has a meaning.
            others = {name for name in mentions(body) & names_in(over) if looks_like_an_index(name)}
            plain = others <= {index, *self.bound}
            below = self.index(index, over) if plain else self.condition(index, over)
        least = Precedence.PRODUCT if node.function == "sum" else Precedence.SIGN
        self.bound.append(index)
        text = self.at(body, Precedence.SUM if _prefix(body) else least)
        self.bound.pop()
        return rf"\{node.function}_{{{below}}} {text}"

    def word(self, word: str) -> str:
        return rf" \;\text{{{word}}}\; "

    def opening(self, words: str) -> str:
        return rf"\text{{{words} }} "

    def for_all(self, node: ForAll) -> str:
        self.bound += node.indices
        said = rf"{self.at(node.body, Precedence.CLAUSE)} \quad\text{{for all }} "
        del self.bound[len(self.bound) - len(node.indices) :]
        return self.over_indices(said, node)

    def limit(self, node: Limit) -> str:
        left, right = self.at(node.left, Precedence.SUM), self.at(node.right, Precedence.SUM)
        target = {"infinity": r"\infty", "0": "0"}[node.target]
        moving = rf"{self.word('as')}{self.name(node.symbol)} \to {target}"
        return rf"{left} \to {right}{moving if node.symbol else ''}"


def _prefix(node: Expression) -> bool:
    """Tell whether a node is a sum that stands before its body."""
    return isinstance(node, Call) and node.function in _PREFIXES and bool(bound_names(node))


def _last_index(node: Expression) -> str | None:
    """Return the index of a sum that a formula ends with."""
    while isinstance(node, Binary) and node.operator in "+-":
        node = node.right
    return bound_names(node)[0] if _prefix(node) else None


def _norm_order(node: Call) -> str:
    """Return the p of ‖x‖_p where it is one letter or digit."""
    if node.function != "norm" or len(node.arguments) != 2:
        return ""
    match node.arguments[1]:
        case Number(value) if value in range(10):
            return f"_{{{value}}}"
        case Name(text) if len(text) == 1:
            return f"_{{{text}}}"
    return ""


def _tex_function(name: str) -> str:
    function = FUNCTIONS.get(name)
    if function is not None and function.tex and "#" not in function.tex:
        return function.tex
    if name in _GREEK_NAMES or len(name) == 1:
        return _tex_name(name)
    return rf"\operatorname{{{name.replace('_', ' ')}}}"


def _tex_name(name: str) -> str:
    if name == "infinity":
        return r"\infty"
    head, *lowered = name.split("_")
    letter = _tex_letter(head)
    inside = ",".join(r"\infty" if part == "infinity" else _tex_letter(part) for part in lowered)
    return f"{letter}_{{{inside}}}" if lowered else letter


def _tex_letter(part: str) -> str:
    """Return one letter, Greek or not, or a word held together."""
    if len(part) == 1:
        return part
    # TeX has no command for the Greek letters that look like Latin ones.
    greek = part in _GREEK_NAMES and part != "omicron"
    return f"\\{part}" if greek else rf"\mathrm{{{part}}}"


def _tex_number(value: Fraction) -> tuple[str, Precedence]:
    text, level = _number(value)
    if "/" in text:
        above, below = text.lstrip("-").split("/")
        sign = "-" if text.startswith("-") else ""
        return rf"{sign}\frac{{{above}}}{{{below}}}", Precedence.SIGN
    if "e" in text:
        mantissa, exponent = text.split("e")
        return rf"{mantissa} \cdot 10^{{{int(exponent)}}}", Precedence.PRODUCT
    return text, level
