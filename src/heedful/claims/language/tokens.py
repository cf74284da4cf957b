"""From characters to tokens, each with its place in the original text.

Columns count characters of the text as it was written, from 1, so that an error points at
what its author sees: in `α ≤ x` the `x` is in column 5, although `alpha <= x` is what is read.

A Greek letter is a name of its own (`βk_a` is β times k_a) and is kept spelled: `alpha_1`
whether it was typed `α₁`, `α_1` or `alpha_1`. Two names are the same when their spelling is.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NoReturn

from heedful.errors import FormulaError

GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta",
    "η": "eta", "θ": "theta", "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu",
    "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau",
    "υ": "upsilon", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega",
    "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Ξ": "Xi", "Π": "Pi",
    "Σ": "Sigma", "Υ": "Upsilon", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega",
}  # fmt: skip
"""Greek letters and their spelling, one to one."""

_VARIANTS = {"ϵ": "ε", "ϑ": "θ", "ϰ": "κ", "ϱ": "ρ", "ϕ": "φ", "µ": "μ", "∆": "Δ", "Ω": "Ω"}
_LETTER_OF = {spelled: letter for letter, spelled in GREEK.items()}
SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", "0123456789aehijklmnoprstuvx", strict=True))
SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", strict=True))
_SUBSCRIPT_DIGITS = dict(zip("0123456789", "₀₁₂₃₄₅₆₇₈₉", strict=True))
_SUPERSCRIPT_OF = {plain: raised for raised, plain in SUPERSCRIPTS.items()}

DIGITS = 60
"""The most digits of a number."""
LARGEST_EXPONENT = 400
"""Numbers lie between 1e-400 and 1e401."""

WORDS = frozenset(
    {"and", "or", "not", "implies", "given", "that", "within", "in", "where"}
    | {"for", "all", "every", "each", "forall"}
    | {"as", "exists", "with"}
)
_PHRASES = (
    (
        re.compile(r"there\s+(?:is|are|exists?)(?:\s+(?:an?|some|two)(?=\s))?(?![A-Za-z0-9_])"),
        "exists",
    ),
    (re.compile(r"tends?\s+to(?![A-Za-z0-9_])"), "->"),
    (re.compile(r"such\s+that(?![A-Za-z0-9_])"), "with"),
)
"""Several words that are one token."""

_SYMBOLS = {
    "+": "+ ＋", "-": "- − – —", "*": "* · ⋅ ∙ • ×", "/": "/ ÷ ∕", "^": "^ **",
    "<=": "<= ≤ ⩽ ≦", ">=": ">= ≥ ⩾ ≧", "<": "<", ">": ">", "=": "= ==", "!=": "!= ≠",
    "~": "~ ~= ≈ ≃ ≅", "(": "(", ")": ")", "[": "[", "]": "]", "{": "{", "}": "}",
    ",": ",", ":": ":", "'": "' ′ ’ ᵀ ⊤", "|": "|", "‖": "‖ ∥", "√": "√",
    "⊥": "⊥ ⟂", "in": "∈", "forall": "∀", "exists": "∃", "implies": "=> ⟹ ⇒",
    "->": "-> →", ">>": ">> ≫", "<<": "<< ≪", "and": "∧", "or": "∨", "not": "¬",
}  # fmt: skip
_SAME = {written: symbol for symbol, several in _SYMBOLS.items() for written in several.split()}

_RATIO = "write how many times larger, as in alpha_j >= 100 * alpha_i"
_WAYS_OUT = {
    "=<": "write <=", "<>": "write !=", "=!": "write !=", "!==": "write !=", "=/=": "write !=",
    "===": "write =", ":=": "write =", "≡": "write =", "=~": "write ~ or ≈",
    "<=>": "write two statements joined by `and`", "⟺": "write two statements joined by `and`",
    "∝": _RATIO,
    "&&": "write and", "&": "write and", "!": "write `not`, or prod for a factorial",
    "//": "write floor(a / b)", "%": "write a fraction: 0.1 for ten in a hundred",
    "@": "write a space or * for a product", "⊗": "write outer(x, y)", "⊙": "write hadamard(x, y)",
    "∘": "write hadamard(x, y)", "…": "write every term",
    "...": "write every term, or sum(x_i, i)", "..": "write a range as i in [1, 9]",
    "±": "write a range as x in [a, b], or ≈ … within …",
}  # fmt: skip
FRACTIONS = {
    character: tuple(unicodedata.normalize("NFKC", character).split("⁄"))
    for character in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞⅐⅑⅒"
}
"""Fractions of one character, with numerator and denominator."""
BIG = ("sum", "prod", "max", "min")
"""Operators that may stand before their body, with their index below: Σ_i α_i."""
_BIG_SIGNS = {"∑": "sum", "∏": "prod"}
_LONGEST = max(len(written) for written in (*_SAME, *_WAYS_OUT))

_NOTHING_RUNS = "a formula is mathematics; nothing in it is ever executed"
_FOREIGN = {
    **dict.fromkeys(("import", "exec", "eval", "def", "class", "return"), _NOTHING_RUNS),
    **dict.fromkeys(("if", "iff", "then", "else"), "write `A implies B`, or `B given that A`"),
    **dict.fromkeys(("True", "False", "true", "false", "None"), "write a relation, such as x = 1"),
    **dict.fromkeys(("is", "equals"), "write = or ≈"),
    "some": "write `there is an i with …`",
    "such": "write `for all i where …`, or `there is an i such that …`",
    "mod": "write x - n * floor(x / n)",
}
_BIG_WORD = re.compile(rf"({'|'.join(BIG)})(?=_|[{''.join(SUBSCRIPTS)}])")
_CAPITAL_SIGMA = re.compile(rf"Σ(_\w+|_\{{[^}}]*\}}|[{''.join(SUBSCRIPTS)}]+)")
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

TokenKind = Literal["number", "name", "word", "symbol", "superscript", "subscript", "big", "end"]


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `text` is its canonical spelling."""

    kind: TokenKind
    text: str
    start: int
    """Where it begins in the original text, from 0."""
    end: int

    @property
    def column(self) -> int:
        """Where it begins, from 1."""
        return self.start + 1

    def says(self, *texts: str) -> bool:
        """Tell whether this is one of these symbols or words."""
        return self.kind in ("symbol", "word") and self.text in texts


class _Scanner:
    def __init__(self, text: str, field: tuple[str | int, ...], offset: int = 0) -> None:
        # `plain` keeps the number of characters, so places in both texts are the same.
        self.text = "".join(
            one if len(one := plain(character)) == 1 else character for character in text
        )
        self.field = field
        self.offset = offset  # where the text begins in a longer one
        self.at = 0

    def error(self, problem: str, at: int, expected: str = "", hint: str = "") -> FormulaError:
        return FormulaError(
            "formula",
            problem,
            expected=expected,
            hint=hint,
            column=self.offset + at + 1,
            field=self.field,
        )

    def fail(self, problem: str, at: int, expected: str = "", hint: str = "") -> NoReturn:
        raise self.error(problem, at, expected, hint)

    def peek(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.text[place] if place < len(self.text) else ""

    def tokens(self) -> list[Token]:
        found: list[Token] = []
        while self.at < len(self.text):
            start = self.at
            if self.peek().isspace() or self.at_full_stop():
                self.at += 1
            elif self.peek() in FRACTIONS:
                self.at += 1
                found += self.fraction(start)
            elif self.peek() == "∉":
                self.at += 1
                found += [Token("word", word, start, self.at) for word in ("not", "in")]
            elif (operator := self.big_operator()) is not None:
                found.append(Token("big", operator, start, self.at))
                found += self.below()
            else:
                kind, text = self.next_token()
                found.append(Token(kind, text, start, self.at))
        found.append(Token("end", "", len(self.text), len(self.text)))
        return found

    def at_full_stop(self) -> bool:
        """Tell whether the full stop that ends a sentence comes next."""
        return self.peek() == "." and not self.text[self.at + 1 :].strip()

    def fraction(self, start: int) -> list[Token]:
        """Return (1/2) for ½: in brackets, because the sign holds it together."""
        above, below = FRACTIONS[self.text[start]]
        parts: list[tuple[TokenKind, str]] = [("symbol", "("), ("number", above)]
        parts += [("symbol", "/"), ("number", below), ("symbol", ")")]
        return [Token(kind, text, start, self.at) for kind, text in parts]

    def big_operator(self) -> str | None:
        """Take ∑, ∏, and sum, prod, max, min and Σ where an index stands below them."""
        sign = self.peek()
        if sign in _BIG_SIGNS:
            self.at += 1
            return _BIG_SIGNS[sign]
        if self.at and (self.text[self.at - 1].isalnum() or self.text[self.at - 1] == "_"):
            return None
        found = _BIG_WORD.match(self.text, self.at)
        if found is not None:
            self.at += len(found[1])
            return found[1]
        # Σ_i is a covariance too; before something that has the index i it is a sum.
        found = _CAPITAL_SIGMA.match(self.text, self.at)
        if found is None:
            return None
        clause = _spelled_subscripts(found[1]).strip("_{} ")
        body = re.match(r"\s*[(\w‖|√½¼][^=<>≤≥≠≈~]*", self.text[found.end() :])
        speaks = body and re.search(rf"_\{{?{clause}\b", _spelled_subscripts(body[0]))
        if clause.isalnum() and not speaks:
            return None
        self.at += 1
        return "sum"

    def below(self) -> list[Token]:
        """Return the index below an operator: a name, or `_{` before a clause in braces."""
        start = self.at
        if self.text.startswith("_{", start):
            self.at += 2
            return [Token("symbol", "_{", start, self.at)]
        if self.peek() != "_" and (not self.peek() or self.peek() not in SUBSCRIPTS):
            return []
        text = self.subscript()
        return [
            Token("symbol", "_{", start, start + 1),
            Token("name", text, start, self.at),
            Token("symbol", "}", self.at - 1, self.at),
        ]

    def next_token(self) -> tuple[TokenKind, str]:
        character = self.peek()
        if is_plain_digit(character) or (character == "." and is_plain_digit(self.peek(1))):
            return "number", self.number()
        if is_letter(character):
            return self.word()
        if character == "∞":
            self.at += 1
            return "name", "infinity"
        if character in SUPERSCRIPTS:
            return "superscript", self.superscript()
        if character == "_" or character in SUBSCRIPTS:
            return "subscript", self.subscript()
        return "symbol", self.symbol()

    def number(self) -> str:
        found = _NUMBER.match(self.text, self.at)
        assert found is not None  # the caller has seen a digit
        text, start = found[0], self.at
        self.at = found.end()
        mantissa, _, exponent = text.lower().partition("e")
        if len(mantissa.replace(".", "")) > DIGITS:
            self.fail(f"a number of more than {DIGITS} digits", start, hint="round it")
        # The exponent is looked at first: 1e999999999 must never be written out.
        if abs(int(exponent or 0)) > LARGEST_EXPONENT + DIGITS or not in_range(Fraction(text)):
            self.fail(
                f"the number {text} is too large or too small",
                start,
                expected=f"between 1e-{LARGEST_EXPONENT} and 1e{LARGEST_EXPONENT} was expected",
            )
        following = self.peek()
        if following == "_":
            self.fail("digits cannot be grouped with _", self.at, hint="leave the _ out")
        if following == "." and is_plain_digit(self.peek(1)):
            self.fail(f"{text} is followed by a second decimal point", self.at)
        if text.startswith("0") and text.isdigit() and following and is_letter(following):
            self.fail(f"{text} runs into a name", self.at, hint="write 0 * … for a product")
        return text

    def word(self) -> tuple[TokenKind, str]:
        start = self.at
        for phrase, token in _PHRASES:
            if found := phrase.match(self.text, self.at):
                self.at = found.end()
                return ("symbol" if token == "->" else "word"), token
        name = self.segment()
        while self.peek() == "_" or (self.peek() and self.peek() in SUBSCRIPTS):
            name += "_" + self.subscript()
        if name in WORDS:
            return "word", name
        written = f"the word `{name}`"
        if name.lower() in WORDS:
            self.fail(written, start, hint=f"write it small: {name.lower()}")
        if name in _FOREIGN:
            self.fail(
                f"{written} has no meaning in a formula",
                start,
                hint=_FOREIGN[name],
            )
        return "name", name

    def segment(self) -> str:
        """Read one Greek letter or a run of Latin letters and digits, with digits after it."""
        first = self.peek()
        start = self.at
        self.at += 1
        if first in GREEK:
            while is_plain_digit(self.peek() or " "):
                self.at += 1
            return GREEK[first] + self.text[start + 1 : self.at]
        while (after := self.peek()) and after.isascii() and after.isalnum():
            self.at += 1
        return self.text[start : self.at]

    def subscript(self) -> str:
        start = self.at
        if self.peek() in SUBSCRIPTS:
            while self.peek() and self.peek() in SUBSCRIPTS:
                self.at += 1
            return "".join(SUBSCRIPTS[one] for one in self.text[start : self.at])
        self.at += 1
        braces = self.peek() == "{"
        self.at += braces
        first = self.peek()
        if first == "∞":
            self.at += 1
            text = "infinity"
        elif first and (is_letter(first) or is_plain_digit(first)):
            text = self.segment()
        else:
            begins = start == 0 or not self.text[start - 1].isalnum()
            self.fail(
                "a name cannot start with _" if begins else "a subscript is missing after _",
                start,
                expected="names such as k_a, alpha_1 or W_Q were expected",
            )
        if braces:
            if self.peek() != "}":
                self.fail(
                    "the subscript's { is not closed after one name or number",
                    start + 1,
                    hint="write k_a or k_{a}; for entries of a matrix write A[i, j]",
                )
            self.at += 1
        return text

    def superscript(self) -> str:
        start = self.at
        while self.peek() and self.peek() in SUPERSCRIPTS:
            self.at += 1
        text = "".join(SUPERSCRIPTS[one] for one in self.text[start : self.at])
        if not re.fullmatch(r"-?[0-9]+", text) or len(text) > DIGITS:
            self.fail(
                f"the exponent `{self.text[start : self.at]}` cannot be read",
                start,
                expected="a whole number such as ² or ⁻¹ was expected",
                hint="write other exponents as ^(…)",
            )
        return text

    def symbol(self) -> str:
        start = self.at
        if re.match(r"\.T(?![A-Za-z0-9_])", self.text[start : start + 3]):
            self.at += 2
            return "'"
        for length in range(_LONGEST, 0, -1):
            written = self.text[start : start + length]
            if written in _WAYS_OUT:
                self.fail(
                    f"`{written}` is not part of the language",
                    start,
                    hint=_WAYS_OUT[written],
                )
            if written in _SAME:
                self.at += length
                return _SAME[written]
        raise self.stranger(self.text[start], start)

    def stranger(self, character: str, at: int) -> FormulaError:
        """Return what to say about a character that has no place in the language."""
        if character == ".":
            return self.error(
                "a point that belongs to no number",
                at,
                expected="only .T can follow a value: there are no attributes",
                hint="write 1.0 for a number, x.T for a transpose",
            )
        if character in '"“”„`':
            return self.error("a formula has no text in quotes", at, hint="leave the quotes out")
        found = f"{describe(character)} is not part of the language"
        return self.error(found, at, hint=_look_alike(character))


def _spelled_subscripts(text: str) -> str:
    """Return a text with lowered letters written after _: αᵢ becomes α_i."""
    lowered = "".join(SUBSCRIPTS)
    return re.sub(
        rf"[{lowered}]+", lambda run: "_" + "".join(SUBSCRIPTS[one] for one in run[0]), text
    )


def _look_alike(character: str) -> str:
    name = unicodedata.name(character, "")
    if unicodedata.category(character) in ("Cf", "Cc"):
        return "delete this invisible character"
    if "LETTER" in name:
        return "use Latin letters a to z and Greek letters, which may be spelled: alpha, Sigma"
    return "see the list of signs in the reference"


def in_range(value: Fraction) -> bool:
    """Tell whether a number can be written in a formula."""
    low, high = Fraction(10) ** -LARGEST_EXPONENT, Fraction(10) ** (LARGEST_EXPONENT + 1)
    return value == 0 or low <= abs(value) < high


def tokenize(text: str, field: tuple[str | int, ...] = ()) -> list[Token]:
    """Return the tokens of a formula, the last one an end mark.

    >>> [token.text for token in tokenize("α₁ ≤ 2‖x‖²")]
    ['alpha_1', '<=', '2', '‖', 'x', '‖', '2', '']
    """
    return _Scanner(text, field).tokens()


def read_symbol(text: str, start: int, end: int, field: tuple[str | int, ...] = ()) -> Token:
    """Return the token of a sign that stands in a longer text from `start` to `end`."""
    kind, canonical = _Scanner(text, field, offset=start).next_token()
    return Token("word" if canonical in WORDS else kind, canonical, start, end)


def read_number(text: str, start: int, field: tuple[str | int, ...] = ()) -> str:
    """Return a number as the language keeps it, or refuse one of too many digits."""
    return _Scanner(text, field, offset=start).number()


def plain(character: str) -> str:
    """Return the ordinary form of a character: `𝛼` and `ａ` are `α` and `a`.

    Only shapes of the same letter are unified. A raised or lowered letter means something
    else (a power, a subscript) and is left alone.
    """
    if character in _VARIANTS:
        return _VARIANTS[character]
    kind, _, _ = unicodedata.decomposition(character).partition(" ")
    if kind in ("<font>", "<wide>", "<narrow>"):
        simple = unicodedata.normalize("NFKC", character)
        return _VARIANTS.get(simple, simple)
    return character


def is_letter(character: str) -> bool:
    """Tell whether a name can begin with this character."""
    return character in GREEK or (character.isascii() and character.isalpha())


def is_plain_digit(character: str) -> bool:
    """Tell whether a character is one of 0 to 9 (other scripts have digits of their own)."""
    return character.isascii() and character.isdigit()


def subscripts(name: str) -> tuple[str, ...]:
    """Return the subscripts of a name.

    >>> subscripts("alpha_i"), subscripts("W_Q_1"), subscripts("beta")
    (('i',), ('Q', '1'), ())
    """
    return tuple(name.split("_")[1:])


def with_letters(name: str) -> str:
    """Return a name as one would write it by hand: Greek letters, lowered digits.

    >>> with_letters("alpha_1"), with_letters("mu_a"), with_letters("W_Q")
    ('α₁', 'μ_a', 'W_Q')
    """
    if name == "infinity":
        return "∞"
    head, *rest = name.split("_")
    written = _letter(head)
    for part in rest:
        if part.isdigit():
            written += "".join(_SUBSCRIPT_DIGITS[digit] for digit in part)
        else:
            written += "_" + _letter(part)
    return written


def raised(number: str) -> str:
    """Return a whole number as an exponent: "-1" becomes ⁻¹."""
    return "".join(_SUPERSCRIPT_OF[character] for character in number)


def describe(character: str) -> str:
    """Return a character with what it is, for those that cannot be told apart or seen."""
    name = unicodedata.name(character, "")
    code = f"U+{ord(character):04X}"
    if not character.isprintable() or unicodedata.combining(character):
        return f"the character {code}" + (f" ({name})" if name else "")
    if character.isascii():
        return f"`{character}`"
    return f"`{character}` ({code}{', ' + name if name else ''})"


def _letter(word: str) -> str:
    """Return a spelled Greek letter, with the digits after it, as the letter itself."""
    stem = word.rstrip("0123456789")
    return _LETTER_OF.get(stem, stem) + word[len(stem) :]
