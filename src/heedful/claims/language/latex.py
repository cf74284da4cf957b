r"""LaTeX as a spelling of the formula language: it becomes the tokens that the one parser reads.

Every token keeps the place of the LaTeX it was read from, so an error points into what its author
wrote. What a formula looks like on paper decides what it means:

- every letter is a name of its own (`PX` is P times X), unless `\mathrm`, `\text` or
  `\operatorname` holds a word together, or the word is a known name or function;
- braces group only what TeX groups by them: `{x + y} z` is shown, and read, as x + y z;
- the weight of a letter is no difference (`\mathbf{x}` is x), a hat is one (`\hat{x}` is `x_hat`);
- `\left( … \right)`, spaces, `\tag` and `\label` change nothing.

What can be read in two ways is refused with both spellings. Nothing is expanded and nothing is
run: a command that is not in the tables below is an error.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NoReturn

from heedful.claims.functions import FUNCTIONS
from heedful.claims.language.tokens import (
    BIG,
    FRACTIONS,
    GREEK,
    SUBSCRIPTS,
    SUPERSCRIPTS,
    WORDS,
    Token,
    TokenKind,
    plain,
    read_number,
    read_symbol,
)
from heedful.claims.language.tree import looks_like_an_index
from heedful.errors import FormulaError

_GREEK_NAMES = frozenset(GREEK.values())
_GREEK_VARIANTS = {
    **{f"var{name}": name for name in ("epsilon", "theta", "kappa", "rho", "phi", "sigma", "pi")},
    **{f"var{name}": name for name in ("Gamma", "Delta", "Theta", "Lambda", "Sigma", "Phi")},
}
_SIGNS = {
    "le": "≤", "leq": "≤", "leqslant": "≤", "ge": "≥", "geq": "≥", "geqslant": "≥", "ne": "≠",
    "neq": "≠", "lt": "<", "gt": ">", "approx": "≈", "simeq": "≈", "cong": "≈", "approxeq": "≈",
    "gg": "≫", "ll": "≪", "propto": "∝", "in": "∈", "perp": "⊥", "bot": "⊥", "cdot": "·",
    "times": "×", "ast": "*", "div": "÷", "pm": "±", "to": "→", "rightarrow": "→",
    "longrightarrow": "→", "implies": "⟹", "Rightarrow": "⟹", "Longrightarrow": "⟹", "iff": "⟺",
    "Leftrightarrow": "⟺", "land": "∧", "wedge": "∧", "lor": "∨", "vee": "∨", "neg": "¬",
    "lnot": "¬", "forall": "∀", "exists": "∃", "otimes": "⊗", "odot": "⊙", "circ": "∘",
    "coloneqq": "=", "triangleq": "=", "equiv": "≡", "colon": ":", "mod": "%", "%": "%",
    "&": "&", "dots": "…", "ldots": "…", "cdots": "…", "dotsc": "…", "dotsb": "…",
}  # fmt: skip
"""Commands that are a sign of the language; what the sign means is said there."""
_NOTHING = frozenset({
    ",", ";", ":", "!", ">", "quad", "qquad", "enspace", "thinspace", "displaystyle",
    "textstyle", "scriptstyle", "limits", "nolimits", "nonumber", "notag", "left", "right",
    "big", "Big", "bigg", "Bigg", "bigl", "bigr", "Bigl", "Bigr", "biggl", "biggr", "Biggl",
    "Biggr", "bigm", "Bigm", "normalfont", "allowbreak", "nobreak", "medspace", "thickspace",
    "negthinspace", "mathstrut", "strut", "hfill", "relax", "break", "nolinebreak",
}) | {" ", "\n"}  # fmt: skip
"""Spaces and sizes."""
_WIDE = frozenset({"quad", "qquad"})
_DROPPED = frozenset({"tag", "label", "hspace", "vspace", "mspace", "eqref", "ref", "tag*"})
"""Commands that are left out with their argument."""
_PLAIN_FACES = frozenset({
    "mathbf", "boldsymbol", "bm", "mathit", "vec", "mathsf", "pmb", "mathnormal", "symbf",
    "symbfit", "bold",
})  # fmt: skip
"""Faces that do not make another letter."""
_MARKS = {
    "hat": "hat", "widehat": "hat", "tilde": "tilde", "widetilde": "tilde", "bar": "bar",
    "overline": "bar", "dot": "dot", "check": "check", "breve": "breve", "underline": "underline",
}  # fmt: skip
"""Accents that make another name."""
_WORD_FACES = frozenset({
    "mathrm", "text", "operatorname", "textrm", "textnormal", "mbox", "mathop", "textup",
})  # fmt: skip
_ROWS = frozenset({
    "equation", "align", "gather", "multline", "split", "aligned", "alignat", "gathered",
    "eqnarray", "flalign", "math", "displaymath",
})  # fmt: skip
"""Environments that hold formulas in rows."""
_MATRICES = frozenset({"pmatrix", "bmatrix", "matrix", "smallmatrix", "psmallmatrix"})
_FORBIDDEN = frozenset({
    "input", "include", "write", "write18", "immediate", "openin", "openout", "read", "def",
    "edef", "gdef", "xdef", "let", "newcommand", "renewcommand", "providecommand", "csname",
    "catcode", "special", "usepackage", "documentclass", "DeclareMathOperator", "expandafter",
    "loop", "repeat", "newif", "makeatletter", "directlua", "verbatiminput", "lstinputlisting",
})  # fmt: skip
_OPENING = {
    **{"(": ")", "[": "]", "lbrace": "rbrace", "{": "}", "lbrack": "rbrack", "langle": "rangle"},
    **{"lvert": "rvert", "lVert": "rVert", "|": "|", "‖": "‖", "lfloor": "rfloor"},
    **{"⟨": "⟩"},
}
_SAME_DELIMITER = {
    **{"vert": "|", "Vert": "‖", "lbrace": "{", "rbrace": "}", "lbrack": "[", "rbrack": "]"},
    **{"\\|": "‖", "⟨": "langle", "⟩": "rangle", "∥": "‖"},
}
_ONE_SIDED = {"lvert": "rvert", "lVert": "rVert"}
"""Bars that say on which side they stand."""
_CONDITION_WORDS = frozenset({"if", "when", "whenever", "provided", "assuming"})
_WHERE_WORDS = frozenset({"where", "with", "such", "s.t."})
_TRANSPOSES = frozenset({"T", "\\top", "\\intercal", "⊤", "ᵀ", "\\transpose", "\\mathsf{T}"})
_JOINING = frozenset({"for", "forall", "given", "where", "and", "within", "or", "implies"})
_RELATION_SIGNS = frozenset(["=", "<", ">", "<=", ">=", "!=", "~", "in"])
_INDEX_LETTERS = frozenset("ijklmnrstu")


DEEPEST = 60
"""Of commands and brackets inside one another; the parser allows a tree of half that depth."""


def is_latex(text: str) -> bool:
    r"""Tell whether a formula is written in LaTeX: it has a backslash, or stands between `$`.

    >>> is_latex(r"\alpha_i \geq 0"), is_latex("$PX = X$"), is_latex("alpha_i >= 0")
    (True, True, False)
    """
    return "\\" in text or "$" in text


def tokenize_latex(
    text: str,
    field: tuple[str | int, ...] = (),
    functions: Collection[str] = (),
    names: Collection[str] = (),
) -> list[Token]:
    r"""Return the tokens of a formula in LaTeX, the last one an end mark.

    `functions` and `names` are those that are known: a run of letters that is one of them is one
    word, any other is a product of letters.

    >>> [token.text for token in tokenize_latex(r"\frac12 (v_a + v_b)")]
    ['(', '(', '1', ')', '/', '(', '2', ')', ')', '(', 'v_a', '+', 'v_b', ')', '']
    """
    return _Reader(text, field, {*FUNCTIONS, *functions}, set(names)).tokens()


_SET = (
    r"\\(?:mathbb|mathbf|Bbb)\s*\{?\s*[RNZC]\b\s*\}?|[ℝℕℤℂ]|\\mathcal\s*\{?\s*[NU]\b\s*\}?"
    r"|[NU]\s*(?:\\left)?\(|\\(?:text|mathrm|operatorname)\s*\{(?:Normal|Uniform|Unif)\}"
)
_DECLARATION = re.compile(
    rf"[^=<>≈]*?(?:\\in\b|∈|\\subset(?:eq)?\b|⊂|\\sim\b|∼|~)\s*(?:\\{{0,2}})(?:{_SET})[^=<>≈]*"
)
_LISTED = re.compile(r"(?:\\\{)?[^=<>≈+]*(?:\\[lc]?dots[cb]?|…|\.\.\.)[^=<>≈+]*")
_STATES = re.compile(r"\\(?:approx|leq?|geq?|neq?|to|rightarrow|propto|gg|ll|implies|equiv)\b")


def declaration(text: str) -> str:
    r"""Return what a text is that says what a letter is and states nothing; or nothing.

    >>> declaration(r"k_a \sim \mathcal{N}(\mu_a, \Sigma_a)"), declaration("x = 1")
    ('it says what a letter is, and states nothing', '')
    """
    bare = text.strip().strip("$").strip()
    if _STATES.search(bare):
        return ""
    if _DECLARATION.fullmatch(bare):
        return "it says what a letter is, and states nothing"
    if _LISTED.fullmatch(bare) and "," in bare:
        return "it lists things, and states nothing"
    return ""


@dataclass(frozen=True, slots=True)
class _Tex:
    """A token of TeX: a command without its backslash, a character, a brace, a script sign."""

    kind: str
    """command, letter, digit, char, {, }, ^, _, &, row, prime or end."""
    text: str
    start: int
    end: int


_ENDING = re.compile(
    r"(?:\s|[.,;$&]|\\[)\],;:! ]|\\\\|\\q?quad|\\end\{\w+\*?\}|\\(?:tag|label)\{[^{}]*\}"
    r"|\\(?:nonumber|notag))*"
)
_COMMAND = re.compile(r"\\(?:([A-Za-z]+\*?)|(.)|$)", re.DOTALL)
_ROW_OPTIONS = re.compile(r"\*?\s*(?:\[[^\]\n]*\])?")


def _scan(text: str) -> list[_Tex]:
    """Return the tokens of TeX; spaces and comments are dropped, places are kept."""
    found: list[_Tex] = []
    at = 0
    while at < len(text):
        start, character = at, text[at]
        at += 1
        if character.isspace() or character == "~":
            continue
        if character == "%":
            at = text.find("\n", at) + 1 or len(text)
        elif character == "\\":
            command = _COMMAND.match(text, start)
            assert command is not None
            name = command[1] or command[2] or ""
            if name.endswith("*") and name[:-1] not in ("tag", "operatorname", "hspace"):
                name = name[:-1]
            at = start + 1 + len(name)
            if name == "\\":
                options = _ROW_OPTIONS.match(text, at)
                at = options.end() if options is not None and options[0].strip() else at
                found.append(_Tex("row", name, start, at))
            else:
                found.append(_Tex("command", name.rstrip("*"), start, at))
        else:
            shape = plain(character)
            character = shape if len(shape) == 1 else character
            kind = (
                character
                if character in "{}^_&"
                else "prime"
                if character in "'′’"
                else "digit"
                if character.isascii() and character.isdigit()
                else "letter"
                if character.isascii() and character.isalpha()
                else "char"
            )
            found.append(_Tex(kind, character, start, at))
    found.append(_Tex("end", "", len(text), len(text)))
    return found


class _Reader:
    def __init__(
        self, text: str, field: tuple[str | int, ...], functions: set[str], names: set[str]
    ) -> None:
        self.text = text
        self.field = field
        self.functions = functions
        self.names = names
        self.heads = names | {name.partition("_")[0] for name in names}
        self.items = _scan(text)
        self.at = 0
        self.out: list[Token] = []
        self.statement = 0
        """Where in `out` the statement that is being read begins."""
        self.pending: list[list[Token]] = []
        """Clauses that stood in a subscript: α_{i ≠ j} speaks of all i other than j."""
        self.faces: dict[str, tuple[str, _Tex]] = {}
        """How each name was written: x and 𝐱 in one formula may be two things."""
        self.depth = 0
        self.nesting = 0

    # The stream -------------------------------------------------------------------------------

    @property
    def item(self) -> _Tex:
        return self.items[self.at]

    def ahead(self, count: int = 1) -> _Tex:
        return self.items[min(self.at + count, len(self.items) - 1)]

    def take(self) -> _Tex:
        item = self.item
        if item.kind != "end":
            self.at += 1
        return item

    def is_command(self, *names: str) -> bool:
        return self.item.kind == "command" and self.item.text in names

    def emit(self, kind: TokenKind, text: str, place: _Tex) -> None:
        self.out.append(Token(kind, text, place.start, place.end))

    def symbol(self, text: str, place: _Tex) -> None:
        self.emit("symbol", text, place)

    def fail(self, problem: str, place: _Tex, expected: str = "", hint: str = "") -> NoReturn:
        raise FormulaError(
            "formula",
            problem,
            expected=expected,
            hint=hint,
            column=place.start + 1,
            field=self.field,
        )

    def ask(self, written: str, place: _Tex, first: str, second: str) -> NoReturn:
        """Refuse what has two readings, with both of them."""
        self.fail(f"{written} can be read in two ways", place, hint=f"write {first}, or {second}")

    def captured(self, read: Callable[[], None]) -> list[Token]:
        """Return the tokens that something emits, without emitting them."""
        kept, self.out = self.out, []
        begin, self.statement = self.statement, 0
        read()
        found, self.out = self.out, kept
        self.statement = begin
        return found

    # The whole --------------------------------------------------------------------------------

    def tokens(self) -> list[Token]:
        self.open_math()
        self.sequence(lambda item: item.kind == "end")
        self.finish_statement()
        while self.out and self.out[-1].says(",", ";", "."):
            self.out.pop()
        end = len(self.text)
        found = [*self.joined(), Token("end", "", end, end)]
        for place, token in enumerate(found):
            if token.kind == "big":
                self.check_indices(found, place)
        return found

    def open_math(self) -> None:
        """Take away the signs of mathematics around the formula: $ … $, \\( … \\), \\[ … \\]."""
        while self.item.text in ("$", "(", "[") and self.item.kind in ("char", "command"):
            first = self.item
            if first.kind == "char" and first.text != "$":
                return
            closing = {"$": "$", "(": ")", "[": "]"}[first.text]
            last = self.last()
            if last is first or (last.text, last.kind) != (closing, first.kind):
                self.fail(
                    f"the {self.text[first.start : first.end]} at the beginning is not closed "
                    "at the end",
                    first,
                    hint="a formula is one piece of mathematics; text around it is left out",
                )
            self.items.remove(last)
            self.at += 1

    def last(self) -> _Tex:
        """Return the last token that is not a full stop."""
        place = len(self.items) - 2
        while place > self.at and self.items[place].text in (".", ",", ";"):
            place -= 1
        return self.items[max(place, 0)]

    def joined(self) -> list[Token]:
        """Return the tokens without commas that only stand before a clause: `= 0, for i ≠ a`."""
        kept: list[Token] = []
        for place, token in enumerate(self.out):
            after = self.out[place + 1] if place + 1 < len(self.out) else None
            if token.says(",", ";") and after is not None and after.says(*_JOINING):
                continue
            kept.append(token)
        return kept

    def sequence(self, stop: Callable[[_Tex], bool]) -> None:
        """Read until a token stops it, or the end."""
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(f"brackets inside brackets, more than {DEEPEST} deep", self.item)
        while not stop(self.item):
            if self.item.kind == "end":
                self.fail("the formula ends too early", self.item, hint="a bracket is not closed")
            self.element()
        self.depth -= 1

    def finish_statement(self) -> None:
        """Put the clauses of subscripts behind the statement they stand in."""
        clauses, self.pending = self.pending, []
        for place, clause in enumerate(clauses):
            if clause in clauses[:place]:
                continue
            first = clause[0]
            said = [token.text for token in self.out[self.statement :]]
            if "for" in said or "forall" in said or place:
                raise FormulaError(
                    "formula",
                    "a condition in a subscript beside another clause",
                    hint=r"write \text{for all } with the whole condition at the end",
                    column=first.column,
                    field=self.field,
                )
            self.out.append(Token("word", "for", first.start, first.end))
            self.out.append(Token("word", "all", first.start, first.end))
            self.out += clause
        self.statement = len(self.out)

    def face(self, name: str, face: str, place: _Tex) -> None:
        before = self.faces.setdefault(name, (face, place))
        if before[0] != face:
            one, two = before[0] or "a plain letter", face or "a plain letter"
            self.fail(
                f"{name} is written both as {one} and as {two}, which may be two things",
                place,
                hint="write it in one way, or give one of them another name",
            )

    # Elements ---------------------------------------------------------------------------------

    def element(self) -> None:
        self.nesting += 1
        if self.nesting > DEEPEST:
            self.fail(f"commands inside commands, more than {DEEPEST} deep", self.item)
        self.read_element()
        self.nesting -= 1

    def read_element(self) -> None:
        item = self.item
        match item.kind:
            case "command":
                self.command()
            case "letter":
                self.letters()
            case "digit":
                self.number()
            case "{":
                self.braces()
            case "^" | "prime":
                self.superscript()
            case "_":
                self.lowered()
            case "&":
                self.take()
            case "row":
                self.row()
            case "}":
                self.fail("this } closes nothing", item, hint="take it out, or open it")
            case _:
                self.character()

    def character(self) -> None:
        item = self.item
        text = item.text
        if text == "." and self.ahead().kind == "digit" and self.ahead().start == item.end:
            self.number()
        elif text in GREEK:
            self.take()
            self.name(GREEK[text], item)
        elif text == "∞":
            self.take()
            self.name("infinity", item)
        elif text in FRACTIONS:
            self.take()
            self.fraction_sign(item)
        elif text in SUPERSCRIPTS:
            self.raised_digits()
        elif text in "∑∏":
            self.big({"∑": "sum", "∏": "prod"}[text])
        elif text in "([|‖∥⟨":
            self.delimited()
        elif text in ",;":
            self.comma()
        elif text == "." and self.ends_here():
            self.take()
        elif text == "√":
            self.take()
            self.root(item)
        elif text == "$":
            self.fail(
                "a second piece of mathematics begins here",
                item,
                hint="give each formula on its own",
            )
        elif text == "∉":
            self.take()
            self.emit("word", "not", item)
            self.emit("word", "in", item)
        elif text in ")]⟩":
            self.fail(f"{text} closes nothing", item, hint="take it out, or open it")
        elif text == "~":
            self.take()
        else:
            self.sign(item)

    def sign(self, item: _Tex) -> None:
        """Read a sign that the language has, in one or more characters."""
        pairs = {":=": "=", "<=": "<=", ">=": ">=", "!=": "!=", "==": "=", "=>": "=>", "->": "→"}
        pair = item.text + self.ahead().text
        self.take()
        if pair in pairs and self.item.kind == "char" and self.item.start == item.end:
            second = self.take()
            item = _Tex("char", pairs[pair], item.start, second.end)
        self.out.append(read_symbol(item.text, item.start, item.end, self.field))

    def ends_here(self) -> bool:
        """Tell whether nothing but punctuation and the ends of environments follows."""
        return _ENDING.fullmatch(self.text, self.item.end) is not None

    def comma(self) -> None:
        item = self.take()
        wide = False
        while self.is_command(*_NOTHING) and not self.is_command("left", "right"):
            wide = wide or self.item.text in _WIDE
            self.take()
        if (wide or item.text == ";") and self.depth <= 1:
            self.symbol(";", item)
            if not self.clause_follows():
                self.out.pop()
                self.finish_statement()
                self.symbol(";", item)
                self.statement = len(self.out)
        else:
            self.symbol(",", item)

    def clause_follows(self) -> bool:
        """Tell whether words or ∀ come next, which go on with the statement."""
        return self.is_command("text", "textrm", "mbox", "forall", "mathrm") or (
            self.item.text == "∀"
        )

    def row(self) -> None:
        """Read `\\\\`: a new statement, unless the row goes on with a sign."""
        item = self.take()
        while self.item.kind in ("&", "row") or (
            self.is_command(*_NOTHING) and not self.is_command("left", "right")
        ):
            self.take()
        if self.item.kind == "end" or self.is_command("end") or self.continues():
            return
        if self.clause_follows():
            return
        if self.out and self.out[-1].says(",", ";"):
            self.out.pop()
        self.finish_statement()
        if self.out:
            self.symbol(";", item)
        self.statement = len(self.out)

    def continues(self) -> bool:
        """Tell whether a sign comes next that needs something before it."""
        item = self.item
        if item.kind == "command":
            sign = _SIGNS.get(item.text, "")
            return sign in tuple("≤≥≠<>≈≫≪∈·×÷⟹→⟺∧∨∝") or item.text in ("notin", "coloneqq")
        return item.kind == "char" and item.text in "=<>≤≥≠≈≫≪+-−·×/∈"

    # Commands ---------------------------------------------------------------------------------

    def command(self) -> None:
        item = self.item
        name = item.text
        if name in ("left", "bigl", "Bigl", "biggl", "Biggl", "big", "Big", "bigg", "Bigg"):
            self.take()
            self.delimited(sized=name == "left")
        elif (name in _OPENING and name not in ("(", "[")) or name in ("|", "vert", "Vert"):
            self.delimited()
        elif name in _NOTHING:
            self.take()
        elif name in ("infty",):
            self.take()
            self.name("infinity", item)
        elif name in _GREEK_NAMES or name in _GREEK_VARIANTS or name == "ell":
            self.take()
            spelled = "l" if name == "ell" else _GREEK_VARIANTS.get(name, name)
            self.name(spelled, item, f"\\{name}")
        elif name in _SIGNS:
            self.take()
            self.out.append(read_symbol(_SIGNS[name], item.start, item.end, self.field))
        else:
            self.structure(item, name)

    def structure(self, item: _Tex, name: str) -> None:
        """Read a command that takes something with it."""
        readers: dict[str, Callable[[], None]] = {
            "frac": self.fraction, "dfrac": self.fraction, "tfrac": self.fraction,
            "cfrac": self.fraction, "sqrt": lambda: self.root(item),
            "sum": lambda: self.big_from(item, "sum"), "prod": lambda: self.big_from(item, "prod"),
            "begin": lambda: self.environment(item), "not": lambda: self.negated(item),
            "notin": lambda: self.not_in(item), "mid": lambda: self.emit("word", "given", item),
            "middle": lambda: self.middle(item), "mathbb": lambda: self.blackboard(item),
            "sim": lambda: self.distributed(item), "boxed": self.braces,
            "underbrace": lambda: self.braced_note(item), "overset": self.stacked,
            "overbrace": lambda: self.braced_note(item), "stackrel": self.stacked,
        }  # fmt: skip
        self.take()
        if name in readers:
            readers[name]()
        elif name in _DROPPED:
            self.argument_text()
        elif name in ("max", "min") and self.has_limits():
            self.big_from(item, name)
        elif name in _WORD_FACES:
            self.word(item, name)
        elif name in _PLAIN_FACES or name in _MARKS:
            self.decorated(item, name)
        elif name in ("Pr",) or self.function_named(name) is not None:
            self.function("P" if name == "Pr" else self.function_named(name) or name, item)
        else:
            self.unknown(item, name)

    def unknown(self, item: _Tex, name: str) -> NoReturn:
        if name in _FORBIDDEN:
            self.fail(
                f"\\{name} is a command to TeX, not mathematics",
                item,
                hint="a formula is read and never run: write it out",
            )
        known = [*_SIGNS, *_GREEK_NAMES, *_PLAIN_FACES, *_MARKS, "frac", "sqrt", "sum", "exp"]
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
        self.fail(
            f"\\{name} is not known here",
            item,
            expected="commands of mathematics were expected",
            hint=f"did you mean \\{near[0]}?" if near else "write it without that command",
        )

    def function_named(self, name: str) -> str | None:
        """Return the function that a word names, whatever its capitals: ReLU, Softmax, Var."""
        if name in self.functions:
            return name
        folded = {"std": "std", "cov": "cov", "lse": "logsumexp"}.get(name.lower(), name.lower())
        return folded if folded in self.functions and len(folded) > 1 else None

    # Arguments --------------------------------------------------------------------------------

    def argument(self, what: str) -> None:
        """Read the argument of a command: one token, or what stands in braces."""
        item = self.item
        if item.kind == "{":
            self.take()
            if self.item.kind == "}":
                self.fail(f"{what} is empty", item)
            self.sequence(self.at_brace)
            self.take()
        elif item.kind == "digit":
            self.take()
            self.emit("number", item.text, item)
        elif item.kind == "letter":
            self.take()
            self.emit("name", item.text, item)
        elif item.kind == "command" and item.text in (*_GREEK_NAMES, *_GREEK_VARIANTS):
            self.take()
            self.emit("name", _GREEK_VARIANTS.get(item.text, item.text), item)
        elif item.kind == "char" and item.text in GREEK:
            self.take()
            self.emit("name", GREEK[item.text], item)
        elif item.kind == "command" and item.text in (*_PLAIN_FACES, *_MARKS, "frac", "tfrac"):
            self.element()
        else:
            self.fail(
                f"{what} is missing", item, expected="one letter or digit, or braces, were expected"
            )

    def at_brace(self, item: _Tex) -> bool:
        """Tell whether a brace closes here; & has no place before it."""
        if item.kind == "&":
            self.fail("& inside braces", item, expected="it parts the cells of a table")
        return item.kind == "}"

    def argument_text(self) -> str:
        """Return the text of a braced argument as it stands, and skip it."""
        opened = self.item
        if opened.kind != "{":
            return self.take().text
        self.take()
        depth = 1
        while depth:
            item = self.take()
            if item.kind == "end":
                self.fail("this { is never closed", opened, hint="add }")
            depth += {"{": 1, "}": -1}.get(item.kind, 0)
        return self.text[opened.end : self.items[self.at - 1].start]

    def braces(self) -> None:
        """Read a group in the middle of a formula: it holds nothing together that one could see."""
        opened = self.take()
        if opened.kind != "{":
            self.fail("braces were expected here", opened)
        begin = len(self.out)
        self.sequence(lambda one: one.kind == "}")
        self.take()
        single = len(self.out) - begin == 1
        if single and self.out[-1].kind == "name" and self.item.kind in ("^", "_", "prime"):
            token = self.out.pop()
            place = _Tex("letter", token.text, token.start, token.end)
            self.name(token.text, place, noted=True)
            return
        if self.item.kind in ("^", "_", "prime") and not single:
            if not self.out:
                self.fail("nothing stands before this script", self.item, hint="take it out")
            if self.out[-1].says(")") or self.item.kind == "_":
                return
            self.fail(
                "an exponent after braces, which are not shown",
                self.item,
                hint="write round brackets: (x + y)^2",
            )

    def in_brackets(self, read: Callable[[], None], place: _Tex) -> None:
        self.symbol("(", place)
        read()
        self.symbol(")", place)

    # Numbers ----------------------------------------------------------------------------------

    def number(self) -> None:
        start = self.item
        digits = ""
        last = start
        while self.item.kind == "digit" or (
            self.item.text == "." and "." not in digits and self.ahead().kind == "digit"
        ):
            if digits and self.item.start != last.end and not self.thousands(last):
                break
            last = self.take()
            digits += last.text
            self.skip_thin_space()
        item = self.item
        exponent = re.match(r"[eE][+-]?[0-9]", self.text[last.end : last.end + 3])
        if item.kind == "letter" and item.start == last.end and exponent is not None:
            self.ask(
                f"{digits}{exponent[0]}",
                item,
                rf"{digits} \cdot 10^{{…}} for a power of ten",
                f"{digits} {item.text} with spaces for the number e",
            )
        if self.item.kind == "{" and self.ahead().text == "," and self.ahead(2).kind == "}":
            self.ask(
                f"{digits}{{,}}",
                self.item,
                "a decimal point: 0.5",
                "large numbers without commas: 10000",
            )
        place = _Tex("digit", digits, start.start, last.end)
        scientific = self.power_of_ten()
        text = digits if scientific is None else f"{digits}e{scientific}"
        self.emit("number", read_number(text, place.start, self.field), place)
        self.check_mixed(place)

    def thousands(self, last: _Tex) -> bool:
        """Tell whether a thin space parts the digits of one number: 10\\,000."""
        between = self.text[last.end : self.item.start]
        return (
            between == "\\,"
            and re.match(r"[0-9]{3}(?![0-9])", self.text[self.item.start :]) is not None
        )

    def skip_thin_space(self) -> None:
        if self.is_command(",") and self.ahead().kind == "digit":
            following = self.text[self.ahead().start :]
            if re.match(r"[0-9]{3}(?![0-9])", following):
                self.take()

    def power_of_ten(self) -> int | None:
        r"""Take `\cdot 10^{-3}` after a number, which is one number with it."""
        place = self.at
        if self.is_command("cdot", "times"):
            self.take()
            ten = "".join(item.text for item in (self.item, self.ahead()))
            if ten == "10" and self.ahead(2).kind == "^":
                self.at += 3
                if self.item.kind == "digit":
                    return int(self.take().text)
                if self.item.kind == "{":
                    inside = self.argument_text().replace(" ", "")
                    if re.fullmatch(r"[-−+]?[0-9]{1,4}", inside):
                        return int(inside.replace("−", "-"))
        self.at = place
        return None

    def check_mixed(self, place: _Tex) -> None:
        """Ask about 1\\frac12, which some read as one and a half."""
        if self.is_command("frac", "tfrac", "dfrac") and re.fullmatch("[1-9][0-9]*", place.text):
            number = r"\s*(?:\{\s*[0-9.]+\s*\}|[0-9])"
            following = re.match(number * 2, self.text[self.item.end :])
            if following and self.text[place.end : self.item.start].strip() == "":
                self.ask(
                    "a number before a fraction of numbers",
                    place,
                    rf"{place.text} \cdot \frac… for a product",
                    f"{place.text} + \\frac… for a sum",
                )

    def fraction_sign(self, item: _Tex) -> None:
        above, below = FRACTIONS[item.text]
        for kind, text in (("symbol", "("), ("number", above), ("symbol", "/"), ("number", below)):
            self.emit("symbol" if kind == "symbol" else "number", text, item)
        self.symbol(")", item)

    def fraction(self) -> None:
        place = self.items[self.at - 1]
        self.symbol("(", place)
        self.in_brackets(lambda: self.argument("the numerator"), place)
        self.symbol("/", place)
        self.in_brackets(lambda: self.argument("the denominator"), place)
        self.symbol(")", place)

    def root(self, place: _Tex) -> None:
        degree = None
        if self.item.text == "[":
            self.take()
            degree = self.captured(lambda: self.sequence(lambda one: one.text == "]"))
            self.take()
        if degree is None:
            self.emit("name", "sqrt", place)
            self.in_brackets(lambda: self.argument("what the root covers"), place)
            return
        self.symbol("(", place)
        self.in_brackets(lambda: self.argument("what the root covers"), place)
        for text in ("^", "("):
            self.symbol(text, place)
        self.emit("number", "1", place)
        self.symbol("/", place)
        self.symbol("(", place)
        self.out += degree
        for text in (")", ")", ")"):
            self.symbol(text, place)

    # Names ------------------------------------------------------------------------------------

    def letters(self) -> None:
        """Read a run of letters: a known word, or a product of single letters."""
        start = self.item
        run = re.match(r"[A-Za-z]+", self.text[start.start :])
        assert run is not None
        text = run[0]
        count = len(text)
        if count == 1:
            self.take()
            self.name(text, start)
            return
        following = self.items[min(self.at + count, len(self.items) - 1)]
        called = following.text in ("(", "left", "[") or following.kind == "{"
        function = self.function_named(text)
        indexed = f"{text}_" in {f"{name.partition('_')[0]}_" for name in self.names}
        if text in self.names or indexed or (function is not None and called):
            self.at += count
            place = _Tex("letter", text, start.start, start.start + count)
            if text not in self.names and function is not None:
                self.function(function, place)
            else:
                self.name(text, place)
        elif text in WORDS and text not in ("in", "or"):
            self.at += count
            self.emit("word", text, _Tex("letter", text, start.start, start.start + count))
        elif text in _GREEK_NAMES and count > 3:
            self.at += count
            self.name(text, _Tex("letter", text, start.start, start.start + count))
        elif count > 3 or text in _GREEK_NAMES or text in ("in", "or") or text in BIG:
            first = rf"\{text}" if text in (*_GREEK_NAMES, "in", *BIG) else rf"\mathrm{{{text}}}"
            meant = "for the word" if text in ("or", "in") else "for one name"
            self.ask(
                f"`{text}`", start, f"{first} {meant}", f"{' '.join(text)} for a product of letters"
            )
        else:
            for _ in range(count - 1):
                letter = self.take()
                self.face(letter.text, "", letter)
                self.emit("name", letter.text, letter)
            self.name(self.item.text, self.take())

    def name(self, head: str, place: _Tex, face: str | None = None, *, noted: bool = False) -> None:
        """Emit a name with the scripts that follow it, in either order."""
        below, above, parts = self.scripts()
        if not noted:
            self.face(head, face if face and face.lstrip("\\") != head else "", place)
        if head == "Phi" and below is not None and self.embedding(below, place):
            pass
        elif below is not None and below[0].text == "[":
            self.emit("name", "_".join([head, *parts]), place)
            self.out += below
        else:
            self.emit("name", "_".join([head, *parts]), place)
        for tokens in above:
            self.out += tokens
        self.maybe_entry()

    def scripts(self) -> tuple[list[Token] | None, list[list[Token]], list[str]]:
        """Read subscript and superscripts; return what the subscript is, if not names only."""
        parts: list[str] = []
        below: list[Token] | None = None
        above: list[list[Token]] = []
        lowered = False
        while True:
            if self.item.kind == "_" or (self.item.text in SUBSCRIPTS and self.item.kind == "char"):
                if lowered:
                    self.fail(
                        "a second subscript",
                        self.item,
                        hint="write both in one: x_{i,j}",
                    )
                lowered = True
                below, found = self.subscript()
                parts += found
            elif self.item.kind in ("^", "prime"):
                star = self.star()
                if star:
                    parts.insert(0, star)
                else:
                    above.append(self.captured(self.superscript))
            else:
                return below, above, parts

    def star(self) -> str:
        """Take ^* or ^\\star, which makes another name."""
        inside = self.script_text()
        if inside in ("*", "\\star", "\\ast"):
            self.take()
            self.argument_text()
            return "star"
        return ""

    def script_text(self) -> str:
        """Return what stands after ^ or _ without taking it."""
        if self.item.kind == "prime":
            return ""
        place = self.at
        self.take()
        item = self.item
        text = self.argument_text() if item.kind == "{" else self.text[item.start : item.end]
        self.at = place
        return re.sub(r"\s+", "", text)

    def subscript(self) -> tuple[list[Token] | None, list[str]]:
        """Read a subscript: parts of a name, or the tokens of an entry, or a condition."""
        if self.item.kind == "char":
            digits = ""
            while self.item.kind == "char" and self.item.text in SUBSCRIPTS:
                digits += SUBSCRIPTS[self.take().text]
            return None, [digits]
        sign = self.take()
        if self.item.kind != "{":
            return None, [self.subscript_part()]
        opened = self.item
        inside = self.script_here()
        if re.fullmatch(r"\[.*\]|\(.*\)", inside, re.DOTALL):
            self.take()
            tokens = self.captured(lambda: self.sequence(lambda one: one.kind == "}"))
            self.take()
            bracket = "[" if inside.startswith("[") else "("
            tokens[0] = Token("symbol", bracket, tokens[0].start, tokens[0].end)
            closing = "]" if bracket == "[" else ")"
            tokens[-1] = Token("symbol", closing, tokens[-1].start, tokens[-1].end)
            return tokens, []
        self.take()
        parts: list[str] = []
        while self.item.kind != "}":
            if self.item.kind == "end":
                self.fail("the subscript is never closed", opened, hint="add }")
            if parts and self.at_condition():
                self.subscript_condition(parts, sign)
                break
            if self.item.text == "," or (self.is_command(*_NOTHING)):
                self.take()
                continue
            parts.append(self.subscript_part(inside))
        self.take()
        if not parts:
            self.fail("the subscript is empty", opened)
        return None, self.subscript_parts(parts, opened)

    def script_here(self) -> str:
        place = self.at
        text = self.argument_text()
        self.at = place
        return text.strip()

    def at_condition(self) -> bool:
        return self.is_command("neq", "ne", "in", "notin", "not") or self.item.text in (
            "≠",
            "∉",
            "∈",
        )

    def subscript_condition(self, parts: list[str], place: _Tex) -> None:
        r"""Read the rest of `\alpha_{i \neq j}`: it speaks of every i other than j."""
        numbered = len(parts) == 2 and parts[0].isdigit()  # only a letter can be another one
        if len(parts) != 1 and not numbered:
            self.fail("a condition on two subscripts", place, hint=r"write \text{for all } …")
        tokens = self.captured(lambda: self.sequence(lambda one: one.kind == "}"))
        head = Token("name", parts[-1], place.start, place.end)
        self.pending.append([head, *tokens])

    def subscript_part(self, inside: str = "") -> str:
        """Read one part of a subscript: a letter, a Greek letter, a number or a word."""
        item = self.take()
        if item.kind == "letter":
            if not inside:
                return item.text
            text = item.text
            while self.item.kind == "letter" and self.item.start == item.end:
                item = self.take()
                text += item.text
            while self.item.kind == "digit" and self.item.start == item.end and len(text) > 1:
                item = self.take()
                text += item.text
            return text
        if item.kind == "digit":
            text = item.text
            while inside and self.item.kind == "digit":
                text += self.take().text
            return text
        if item.kind == "{":
            part = self.subscript_part(inside or "{")
            if self.item.kind == "}":
                self.take()
                return part
        if item.kind == "char" and item.text in GREEK:
            return GREEK[item.text]
        if item.kind == "command":
            if item.text in _GREEK_NAMES or item.text in _GREEK_VARIANTS:
                return _GREEK_VARIANTS.get(item.text, item.text)
            if item.text == "ell":
                return "l"
            if item.text == "infty":
                return "infinity"
            if item.text in (*_WORD_FACES, *_PLAIN_FACES, "mathcal"):
                return "\\" + self.word_text(item)
        return self.fail(
            "the subscript cannot be read",
            item,
            expected="letters, numbers or a word were expected, such as k_a, x_{i,j}, "
            r"X_{\text{pos}}",
            hint="for an entry of a matrix write A_{[i, j]}",
        )

    def subscript_parts(self, parts: list[str], place: _Tex) -> list[str]:
        """Return the parts of a subscript, each one name; ask where letters may be two of them."""
        found: list[str] = []
        for part in parts:
            if part.startswith("\\"):
                found.append(part[1:])
            elif len(part) == 1 or part in _GREEK_NAMES or part in self.known_subscripts():
                found.append(part)
            elif part.isdigit():
                self.ask(
                    f"the subscript {part}",
                    place,
                    f"_{{{', '.join(part)}}} for several",
                    rf"_{{\text{{{part}}}}} for the number {part}",
                )
            elif (len(part) == 2 and set(part) <= _INDEX_LETTERS) or (
                len(part) == 2 and part[0] in _INDEX_LETTERS and part[1].isdigit()
            ):
                found += list(part)
            elif len(part) >= 3 and part.isalpha() and not set(part) <= _INDEX_LETTERS:
                found.append(part)
            else:
                self.ask(
                    f"the subscript {part}",
                    place,
                    f"_{{{', '.join(part)}}} for several",
                    rf"_{{\text{{{part}}}}} for one word",
                )
        return found

    def known_subscripts(self) -> set[str]:
        return {part for name in self.names for part in name.split("_")[1:]}

    def embedding(self, below: list[Token], place: _Tex) -> bool:
        r"""Read `\Phi_{(t, 2i)}`, an entry of the position embedding."""
        if below[0].text != "(":
            return False
        self.emit("name", "Phi", place)
        self.out += below
        return True

    def word_text(self, command: _Tex) -> str:
        """Return the word that a command such as \\mathrm holds, as a name."""
        text = self.argument_text().replace("\\_", "_").strip()
        word = re.sub(r"[\s_,]+", "_", text)
        if not re.fullmatch(r"[A-Za-z0-9]\w*", word) or not word.isascii():
            self.fail(
                f"`{text[:40]}` is not a name",
                command,
                expected="letters and digits were expected",
            )
        return word

    def word(self, item: _Tex, command: str) -> None:
        """Read \\text{…} and the like: a function, a name, or words of the language."""
        opened = self.item
        if opened.kind not in ("{", "letter"):
            self.fail(f"\\{command} has no argument", item, expected="braces were expected")
        text = self.argument_text() if opened.kind == "{" else self.take().text
        bare = text.replace("\\_", "_").strip()
        name = re.sub(r"\s+", "_", bare)
        function = self.function_named(name)
        spaced = text != text.strip()
        if name == "" or bare in (",", ".", ";"):
            return
        if command == "mathrm" and name in ("T",) and self.out and self.out[-1].says("^"):
            self.symbol("'", item)
        elif name in self.names:
            self.name(name, item)
        elif (function is not None and not spaced) or (
            function is not None and self.item.text in ("(", "[", "left")
        ):
            if function in BIG and self.has_limits():
                self.big_from(item, function)
            else:
                self.function(function, item)
        elif command in ("text", "textrm", "textnormal", "mbox", "mathrm") and self.words(
            text, item
        ):
            pass
        elif self.is_name(name, command) and not spaced:
            operator = command in ("operatorname", "mathop")
            if operator or (len(name) > 1 and self.opening() in ("(", "[")):
                near = difflib.get_close_matches(name.lower(), self.functions, n=1, cutoff=0.7)
                self.fail(
                    f"{name} is not a function",
                    item,
                    hint=f"did you mean {near[0]}?" if near else r"write \cdot for a product",
                )
            self.name(name, item)
        else:
            self.fail(
                f"the words `{bare[:40]}` are not part of a formula",
                item,
                expected="for all, for, and, or, implies, given, where, within were expected",
                hint="leave other words outside the formula",
            )

    def is_name(self, name: str, command: str) -> bool:
        """Tell whether a word may be a name; as text behind a value it is a word gone wrong."""
        if not re.fullmatch(r"[A-Za-z]\w*", name) or not name.isascii():
            return False
        prose = command in ("text", "textrm", "textnormal", "mbox")
        if not prose or not self.after_value():
            return True
        return "_" not in name and not difflib.get_close_matches(name.lower(), WORDS, cutoff=0.6)

    def words(self, text: str, item: _Tex) -> bool:
        """Emit words of the language; tell whether all were. A comma between them counts too."""
        pieces = re.findall(r"[A-Za-z]+\.?(?:t\.)?|\S", text)
        if not pieces:
            return False
        found: list[str] = []
        for piece in pieces:
            word = piece.lower()
            if word in (",", ".", ";", "(", ")") or (word == "that" and found[-1:] == ["given"]):
                if word in "()":
                    return False
                continue
            if word == "that" and found[-1:] == ["where"]:
                continue
            if word in _CONDITION_WORDS:
                found.append("given")
            elif word in _WHERE_WORDS:
                found.append("where")
            elif word in ("any",) and found[-1:] == ["for"]:
                found.append("all")
            elif word in WORDS:
                found.append(word)
            else:
                return False
        if any(piece in (",", ";") for piece in pieces[:1]):
            self.symbol(",", item)
        for word in found:
            self.emit("word", word, item)
        return True

    def decorated(self, item: _Tex, command: str) -> None:
        """Read \\mathbf{x}, \\vec{x}, \\hat{x}: a letter in another face, or with an accent."""
        faces, self.faces = self.faces, {}
        tokens = self.captured(lambda: self.argument(f"the argument of \\{command}"))
        self.faces = faces  # the letter inside has the face of the command, not its own
        mark = _MARKS.get(command, "")
        if len(tokens) == 1 and tokens[0].kind == "number" and tokens[0].text in ("1", "0"):
            if command not in ("mathbf", "boldsymbol", "bm", "vec"):
                self.fail(f"\\{command} of a number", item)
            self.name({"1": "one", "0": "zero"}[tokens[0].text], item)
            return
        if command == "mathsf" and len(tokens) == 1 and tokens[0].text == "T" and self.raising():
            self.symbol("'", item)
            return
        if any(token.kind == "number" for token in tokens) and len(tokens) == 1:
            self.fail(
                f"\\{command} of a number",
                item,
                expected=r"\mathbf{1} or \mathbf{0} was expected, a vector of ones or zeros",
            )
        if any(token.kind != "name" for token in tokens) or not tokens:
            if mark:
                self.fail(
                    f"\\{command} over more than one letter",
                    item,
                    hint="give the whole a name of its own",
                )
            self.out += tokens
            return
        first = tokens[-1].text
        self.out += tokens[:-1]
        if len(tokens) > 1 and mark:
            self.fail(f"\\{command} over more than one letter", item)
        head, *parts = first.split("_")
        below, above, further = self.scripts()
        if below is not None:
            self.fail("the subscript cannot be read", item)
        face = "" if mark or command in ("mathit", "mathnormal") else "a bold letter or a vector"
        whole = "_".join([head, *([mark] if mark else []), *parts, *further])
        if head.isalpha():
            self.face(head if not mark else f"{head}_{mark}", face, item)
        self.emit("name", whole, item)
        for more in above:
            self.out += more
        self.maybe_entry()

    def raising(self) -> bool:
        return bool(self.out) and self.out[-1].says("^")

    def blackboard(self, item: _Tex) -> None:
        letter = self.argument_text().strip()
        if letter in ("E", "P"):
            self.function(letter, item)
        elif letter == "1":
            self.fail(
                "\\mathbb{1} may be an indicator or a vector of ones",
                item,
                hint=r"write \mathbf{1} for the vector; conditions stand after \sum_{i \in …}",
            )
        else:
            self.fail(
                f"\\mathbb{{{letter[:10]}}} is a set of all numbers or vectors",
                item,
                expected="a formula states something about values",
                hint='say what a symbol is under where: x = "vector d"',
            )

    def distributed(self, item: _Tex) -> None:
        self.ask(
            r"\sim", item, r"\approx for nearly equal", "covariance = { … } for the noise of keys"
        )

    # Functions and brackets -------------------------------------------------------------------

    def function(self, name: str, item: _Tex) -> None:
        """Read a function with its argument: in brackets of any kind, or one letter or number."""
        power: list[Token] = []
        below: list[str] = []
        while self.item.kind in ("^", "_", "prime"):
            if self.item.kind == "_":
                found, below = self.subscript()
                if found is not None:
                    self.fail("the subscript cannot be read", item)
            else:
                power = self.captured(self.superscript)
        if power and any(token.says("-", "'") for token in power):
            self.ask(f"a power of {name}", item, f"\\{name}(x)^{{-1}}", "1 / … or the inverse")
        if below:
            self.indexed_function(name, below, item)
        if power:
            self.symbol("(", item)
        self.emit("name", name, item)
        self.function_argument(name, item)
        if power:
            self.symbol(")", item)
            self.out += power

    def indexed_function(self, name: str, below: list[str], item: _Tex) -> NoReturn:
        self.fail(
            f"{name} with the subscript {', '.join(below)}",
            item,
            expected=f"{name}(…) was expected",
            hint=f"write {name}(x)_{{[{below[0]}]}} for an entry",
        )

    def function_argument(self, name: str, item: _Tex) -> None:
        while self.is_command(*_NOTHING) and not self.is_command(
            "left", "big", "Big", "bigl", "Bigl", "bigg", "Bigg", "biggl", "Biggl"
        ):
            self.take()
        opened = self.opening()
        entry = FUNCTIONS.get(name)
        if opened in ("(", "[", "{") or (opened == "{" and self.is_command("{", "lbrace")):
            self.call_brackets()
        elif self.item.kind == "{":
            self.braced_argument(item)
        elif entry is not None and entry.also_name:
            self.maybe_entry()
        else:
            self.bare_argument(name, item)

    def opening(self) -> str:
        """Return the bracket that comes next, whatever its size; nothing if none does."""
        place = self.at
        while self.is_command("left", "big", "Big", "bigl", "Bigl", "bigg", "Bigg", "biggl"):
            self.take()
        item = self.item
        found = ""
        if item.kind == "char" and item.text in "([":
            found = item.text
        elif item.kind == "command" and item.text in ("{", "lbrace", "lbrack"):
            found = _SAME_DELIMITER.get(item.text, "{")
        self.at = place
        return found

    def call_brackets(self) -> None:
        begin = len(self.out)
        self.delimited(call=True)
        bars = [place for place in range(begin, len(self.out)) if self.out[place].says("|")]
        level = 0
        levels = {}
        for place in range(begin, len(self.out)):
            level += {"(": 1, ")": -1}.get(self.out[place].text, 0)
            levels[place] = level
        outer = [place for place in bars if levels[place] == 1]
        if len(outer) == 1:
            bar = self.out[outer[0]]
            self.out[outer[0]] = Token("word", "given", bar.start, bar.end)

    def braced_argument(self, item: _Tex) -> None:
        """Read \\exp{…}: the braces are not shown, so they must hold one thing."""
        tokens = self.captured(self.braces)
        bracketed = tokens and tokens[0].says("(") and tokens[-1].says(")")
        if len(tokens) > 1 and not bracketed:
            self.ask(
                "a function before braces, which are not shown,",
                item,
                "round brackets: \\exp(x + y)",
                "a space after a single letter: \\exp x",
            )
        self.out += tokens if bracketed else [self.bracket_token("(", item), *tokens]
        if not bracketed:
            self.symbol(")", item)
            self.refuse_product(item.text, item)

    def bracket_token(self, text: str, place: _Tex) -> Token:
        return Token("symbol", text, place.start, place.end)

    def bare_argument(self, name: str, item: _Tex) -> None:
        """Read \\ln n: one letter, number or fraction, with nothing beside it."""
        if name in ("ln", "log") and self.is_command("sum") and self.log_of_sum(item):
            return
        if self.item.kind not in ("letter", "digit", "command", "char") or self.item.kind == "end":
            self.fail(f"{name} has no argument", item, expected=f"{name}(…) was expected")
        begin = len(self.out)
        self.symbol("(", item)
        self.element()
        if len(self.out) == begin + 1:
            self.fail(f"{name} has no argument", item, expected=f"{name}(…) was expected")
        self.symbol(")", item)
        self.refuse_product(name, item)

    def refuse_product(self, name: str, item: _Tex) -> None:
        """Ask where a function without brackets stands before a product."""
        following = self.item
        goes_on = following.kind in ("letter", "digit", "{", "^", "_", "prime") or (
            following.text in ("(", "/", "|")
        )
        if following.kind == "command" and not (
            following.text in _NOTHING | {"right", "end", "text", "mid"}
            or _SIGNS.get(following.text, "·") not in "·×÷"
        ):
            goes_on = True
        if goes_on:
            self.ask(
                f"\\{name} without brackets before a product",
                item,
                f"\\{name}(x) y",
                f"\\{name}(x y)",
            )

    def log_of_sum(self, item: _Tex) -> bool:
        r"""Read `\ln \sum_i \exp(x_i)`, a function of its own; tell whether it was one."""
        place, before = self.at, list(self.out)
        self.take()
        if self.item.kind == "_":
            self.take()
            index = self.captured(lambda: self.limit("sum"))
            upper = self.item.kind == "^" or (len(index) > 1 and index[1].says("="))
            if not upper and self.is_command("exp"):
                self.take()
                if self.opening() == "(":
                    inside = self.captured(self.call_brackets)
                    self.out[-1] = Token("name", "logsumexp", item.start, item.end)
                    comma = Token("symbol", ",", item.start, item.end)
                    self.out += [*inside[:-1], comma, *index, inside[-1]]
                    self.refuse_product("ln", item)
                    return True
        self.at, self.out = place, before
        return False

    def delimited(self, *, sized: bool = False, call: bool = False) -> None:
        """Read what stands between two delimiters of any kind and size."""
        while self.is_command(
            "left", "big", "Big", "bigl", "Bigl", "bigg", "Bigg", "biggl", "Biggl"
        ):
            sized = sized or self.item.text == "left"
            self.take()
        opened = self.take()
        kind = self.delimiter(opened)
        if kind in ("|", "‖") and opened.text in ("|", "‖", "vert", "Vert", "∥") and not sized:
            self.symbol(kind, opened)  # the parser finds out whether it opens or closes
            if kind == "‖" or self.item.kind == "_":
                self.norm_subscript()
            return
        if opened.text in _ONE_SIDED and not sized:
            kind = opened.text
        elif kind not in ("(", "[", "{", "|", "‖", "langle", "lfloor"):
            self.fail(
                f"`{self.text[opened.start : opened.end]}` is no bracket that opens",
                opened,
                expected="( [ | or \\{ was expected",
            )
        if sized and kind == "|" and self.half_open():
            self.fail("this bar has no partner", opened)
        self.between(kind, opened, sized=sized, call=call)

    def half_open(self) -> bool:
        return self.item.text == "."

    def delimiter(self, item: _Tex) -> str:
        text = item.text
        if item.kind == "command":
            named = {"{": "{", "}": "}", "|": "‖", "lvert": "|", "rvert": "|"}
            named |= {"lVert": "‖", "rVert": "‖"}
            return named.get(text, _SAME_DELIMITER.get(text, text))
        return _SAME_DELIMITER.get(text, text)

    def at_closing(self, kind: str, *, sized: bool) -> bool:
        """Tell whether the delimiter that closes `kind` comes next, whatever its size."""
        closing = {"(": ")", "[": "]", "{": "}", "langle": "rangle", "lfloor": "rfloor"}
        wanted = closing.get(kind, kind)
        item = self.item
        if sized:
            return self.is_command("right")
        if kind in _ONE_SIDED:
            return item.kind == "end" or self.is_command(_ONE_SIDED[kind])
        if item.kind == "command" and re.fullmatch("[bB]igg?r?", item.text):
            item = self.ahead()
        if item.kind in ("}", "end") and wanted != item.text:
            return item.kind == "end"
        found = self.delimiter(item) if item.kind in ("char", "command") else ""
        if wanted in ")]" and kind in "([" and found in (")", "]"):
            return found == wanted or self.interval_before
        return found == wanted

    interval_before = False

    def between(self, kind: str, opened: _Tex, *, sized: bool, call: bool) -> None:
        """Read the inside of a pair of delimiters and emit what it means."""
        after_in = bool(self.out) and self.out[-1].says("in")
        if after_in and kind in ("(", "[", "{"):
            self.set_or_interval(kind, opened, sized=sized)
            return
        inside = self.captured(lambda: self.sequence(lambda _: self.at_closing(kind, sized=sized)))
        closed = self.close(kind, opened, sized=sized)
        match kind:
            case "|" | "lvert":
                self.called("abs", inside, opened, closed)
            case "‖" | "lVert":
                self.called("norm", [*inside, *self.norm_order(closed)], opened, closed)
            case "lfloor":
                self.called("floor", inside, opened, closed)
            case "langle":
                self.inner_product(inside, opened, closed)
            case "[" if not call and self.after_value():
                self.square(inside, opened, closed)
            case _:
                if not inside:
                    self.fail("nothing stands between the brackets", opened)
                self.symbol("(", opened)
                self.out += inside
                self.symbol(")", closed)
        self.after_bracket()

    def after_bracket(self) -> None:
        if self.item.kind == "_":
            self.lowered()
        self.maybe_entry()

    def close(self, kind: str, opened: _Tex, *, sized: bool) -> _Tex:
        if self.item.kind == "end":
            self.fail(
                f"the {self.text[opened.start : opened.end]} is never closed",
                opened,
                hint="add its partner",
            )
        if sized:
            self.take()
            closed = self.take()
            closing = {"(": ")", "[": "]", "{": "}", "langle": "rangle", "lfloor": "rfloor"}
            found = self.delimiter(closed)
            if found != closing.get(kind, kind):
                self.fail(
                    f"\\left{self.text[opened.start : opened.end]} is closed by "
                    f"\\right{self.text[closed.start : closed.end]}",
                    closed,
                    expected="brackets of one kind were expected",
                )
            return closed
        if self.item.kind == "command" and re.fullmatch("[bB]igg?r?", self.item.text):
            self.take()
        return self.take()

    def called(self, name: str, inside: list[Token], opened: _Tex, closed: _Tex) -> None:
        if not inside:
            self.fail("nothing stands between the bars", opened)
        self.emit("name", name, opened)
        self.symbol("(", opened)
        self.out += inside
        self.symbol(")", closed)

    def norm_order(self, place: _Tex) -> list[Token]:
        """Read the p of ‖x‖_p as a second argument."""
        if self.item.kind != "_" or (self.ahead().kind == "{" and self.ahead(2).text == "["):
            return []
        _, parts = self.subscript()
        if len(parts) != 1:
            self.fail("the order of the norm cannot be read", place)
        kind: TokenKind = "number" if parts[0].isdigit() else "name"
        return [
            Token("symbol", ",", place.start, place.end),
            Token(kind, parts[0], place.start, place.end),
        ]

    def norm_subscript(self) -> None:
        """Read the p after a closing ‖ of unknown side."""
        if self.item.kind == "_":
            item = self.item
            _, parts = self.subscript()
            self.emit("subscript", "_".join(parts), item)

    def inner_product(self, inside: list[Token], opened: _Tex, closed: _Tex) -> None:
        commas = _outer_commas(inside)
        if len(commas) != 1 or commas[0] in (0, len(inside) - 1):
            self.fail(
                r"\langle … \rangle without two vectors",
                opened,
                expected=r"an inner product was expected: \langle x, y \rangle",
            )
        left, right = inside[: commas[0]], inside[commas[0] + 1 :]
        for text in ("(", "("):
            self.symbol(text, opened)
        self.out += left
        for text in (")", "'", "*", "("):
            self.symbol(text, opened)
        self.out += right
        for text in (")", ")"):
            self.symbol(text, closed)

    def square(self, inside: list[Token], opened: _Tex, closed: _Tex) -> None:
        """Read [ ] after a value: entries where it has a comma, otherwise brackets."""
        entry = bool(_outer_commas(inside))
        simple = len(inside) == 1 and (
            inside[0].text.isdigit() or (len(inside[0].text) == 1 and inside[0].kind == "name")
        )
        if simple:
            text = inside[0].text
            self.ask(f"[{text}]", opened, f"_{{[{text}]}} for an entry", f"({text}) for a product")
        self.symbol("[" if entry else "(", opened)
        self.out += inside
        self.symbol("]" if entry else ")", closed)

    def after_value(self) -> bool:
        if not self.out:
            return False
        before = self.out[-1]
        return before.kind in ("name", "number", "superscript") or before.says(")", "]", "'", "‖")

    def set_or_interval(self, kind: str, opened: _Tex, *, sized: bool) -> None:
        """Read {a, b}, {1, …, n} or [0, 1) after ∈."""
        if kind == "{":
            inside = (
                self.captured(lambda: self.sequence(lambda _: self.at_closing(kind, sized=sized)))
                if not self.has_dots()
                else self.run_with_dots(sized=sized)
            )
            closed = self.close(kind, opened, sized=sized)
            self.symbol("{", opened)
            self.out += inside
            self.symbol("}", closed)
            return
        self.interval_before = True
        inside = self.captured(lambda: self.sequence(lambda _: self.at_closing(kind, sized=sized)))
        self.interval_before = False
        if sized:
            self.take()
        closed = self.take()
        self.symbol(kind, opened)
        self.out += inside
        self.symbol("]" if closed.text == "]" else ")", closed)

    def has_dots(self) -> bool:
        """Tell whether the set that begins here is written with dots."""
        for item in self.items[self.at :]:
            if item.text in ("}", "rbrace", "right") and item.kind == "command":
                return False
            if item.text in ("dots", "ldots", "cdots", "dotsc", "…") or (
                item.text == "." and self.text.startswith("...", item.start)
            ):
                return True
        return False

    def run_with_dots(self, *, sized: bool) -> list[Token]:
        """Read 1, …, n (or 1, 2, …, n): its first and its last member around `..`."""
        place = self.item
        parts: list[list[Token]] = []
        dots = 0
        while True:
            if self.is_command("dots", "ldots", "cdots", "dotsc") or self.item.text in ("…", "."):
                dots = dots or len(parts)
                self.take()
                while self.item.text == ".":
                    self.take()
            elif self.item.text == ",":
                self.take()
            elif self.at_closing("{", sized=sized):
                break
            else:
                parts.append(
                    self.captured(
                        lambda: self.sequence(
                            lambda one: one.text == "," or self.at_closing("{", sized=sized)
                        )
                    )
                )
        numbers = [
            int(one[0].text) for one in parts[:-1] if len(one) == 1 and one[0].text.isdigit()
        ]
        steps = numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else False
        if len(parts) < 2 or dots != len(parts) - 1 or not steps or len(numbers) != len(parts) - 1:
            self.fail(
                "the dots do not say which members are meant",
                place,
                expected=r"a run such as \{1, \dots, n\} or \{0, 1, \dots, T - 1\} was expected",
            )
        return [*parts[0], Token("symbol", "..", place.start, place.end), *parts[-1]]

    def lowered(self) -> None:
        """Read a subscript after a bracket: an entry, written _{[i]}."""
        item = self.item
        below, parts = self.subscript()
        if below is not None and below[0].text == "[":
            self.out += below
            return
        if self.out and self.out[-1].kind == "name" and not below:
            before = self.out.pop()
            self.out.append(
                Token("name", "_".join([before.text, *parts]), before.start, before.end)
            )
            return
        text = parts[0] if parts else "…"
        self.fail(
            "a subscript after something that is no name",
            item,
            hint=f"write _{{[{text}]}} for an entry",
        )

    def maybe_entry(self) -> None:
        """Read _{[i]} after a name that has its subscript already, in braces."""
        while self.item.kind == "_" and self.ahead().kind == "{" and self.ahead(2).text == "[":
            self.lowered()

    # Scripts above ----------------------------------------------------------------------------

    def superscript(self) -> None:
        """Read ^… or a prime: a transpose or a power."""
        sign = self.item
        if sign.kind == "prime":
            self.prime(sign)
        inside = self.script_text()
        bare = inside.strip("{}")
        self.take()
        if bare in _TRANSPOSES or re.fullmatch(
            r"\\(?:mathsf|mathrm|mathbf|text|rm|sf|mathit|operatorname)\{?T\}?", inside
        ):
            if self.is_command("mathsf", "mathrm", "mathbf", "text", "mathit", "operatorname"):
                self.take()
            self.argument_text()
            self.symbol("'", sign)
            return
        if bare in ("\\prime", "\\prime\\prime"):
            self.prime(sign)
        labelled = re.fullmatch(r"\(([0-9]+|[a-zA-Z])\)", inside)
        if labelled and labelled[1] != "T":
            label = labelled[1]
            self.ask(
                f"^{{({label})}}", sign, f"_{{{label}}} for a label", f"^{{{label}}} for a power"
            )
        if inside in ("-\\top", "-T"):
            self.argument_text()
            for kind, text in (("symbol", "^"), ("symbol", "("), ("symbol", "-"), ("number", "1")):
                self.emit("symbol" if kind == "symbol" else "number", text, sign)
            self.symbol(")", sign)
            self.symbol("'", sign)
            return
        self.symbol("^", sign)
        self.in_brackets(lambda: self.argument("the exponent"), sign)

    def prime(self, sign: _Tex) -> NoReturn:
        self.ask(
            "a prime",
            sign,
            r"x^\top for the transpose",
            r"x_{\text{new}} or another letter for another thing",
        )

    def raised_digits(self) -> None:
        start = self.item
        digits = ""
        while self.item.kind == "char" and self.item.text in SUPERSCRIPTS:
            digits += SUPERSCRIPTS[self.take().text]
        if not re.fullmatch(r"-?[0-9]{1,9}", digits):
            self.fail("the exponent cannot be read", start, hint="write ^{…}")
        self.emit("superscript", digits, start)

    # Sums -------------------------------------------------------------------------------------

    def has_limits(self) -> bool:
        place = self.at
        while self.is_command("limits", "nolimits"):
            self.at += 1
        found = self.item.kind == "_"
        self.at = place
        return found

    def big(self, name: str) -> None:
        item = self.take()
        self.big_from(item, name)

    def big_from(self, item: _Tex, name: str) -> None:
        r"""Read \sum_{…}^{…}: the operator, its clause and its upper end; the body follows."""
        while self.is_command("limits", "nolimits"):
            self.take()
        below: list[Token] = []
        above: list[Token] = []
        while self.item.kind in ("_", "^"):
            sign = self.take()
            part = below if sign.kind == "_" else above
            if part:
                self.fail("a second limit", sign)
            part += self.captured(lambda: self.limit(name))
        if above and not below:
            self.fail(f"the index of {name} is missing", item, expected=f"\\{name}_{{i=1}}^n")
        if not below:
            self.ask(
                f"\\{name} without an index",
                item,
                f"\\{name}_i x_i with the index",
                rf"\operatorname{{{name}}}(x) for the {name} of all entries",
            )
        for clause in self.several_indices(below):
            self.emit("big", name, item)
            self.symbol("_{", item)
            self.out += clause
            self.symbol("}", item)
            if above:
                self.symbol("^", item)
                self.symbol("{", item)
                self.out += above
                self.symbol("}", item)

    def limit(self, name: str) -> None:
        if self.is_command("substack"):
            self.take()
        if self.item.kind == "{" and self.ahead().text == "substack":
            self.take()
            self.take()
            self.limit(name)
            if self.item.kind != "}":
                self.fail("the limit cannot be read", self.item)
            self.take()
            return
        if self.item.kind != "{":
            self.argument(f"the index of {name}")
            return
        self.take()
        while self.item.kind != "}":
            if self.item.kind == "row":
                self.symbol(",", self.take())
            elif self.item.kind == "end":
                self.fail("the limit is never closed", self.item, hint="add }")
            else:
                self.element()
        self.take()

    def several_indices(self, below: list[Token]) -> list[list[Token]]:
        r"""Return the clause of each index of \sum_{i, j} or \sum_{i, j = 1}; one clause if one."""
        names = [token for token in below[::2] if token.kind == "name"]
        listed = all(token.says(",") for token in below[1 : 2 * len(names) - 1 : 2])
        rest = below[2 * len(names) - 1 :]
        ranged = bool(rest) and rest[0].says("=") and len(rest) == 2
        if len(names) < 2 or not listed or not (ranged or not rest):
            return [below]
        if not all(looks_like_an_index(token.text) for token in names):
            return [below]
        return [[name, *rest] for name in names]

    def check_indices(self, tokens: list[Token], place: int) -> None:
        r"""Ask about \sum_{i \neq j} x_i x_j where nothing else says what j is."""
        clause, after = _limits(tokens, place)
        names = [token.text for token in clause if token.kind == "name"]
        others = {name for name in names[1:] if looks_like_an_index(name) and name != names[0]}
        if not others or any(token.says("where") for token in clause):
            return
        end = _body_end(tokens, after)
        outside = _parts([*tokens[:place], *tokens[end:]]) | self.heads
        ordered = sum(token.says("<", "<=", ">", ">=") for token in clause)
        chained = ordered > 1 and not any(token.says(",", "and") for token in clause)
        for other in sorted(others):
            if chained or (other in _parts(tokens[after:end]) and other not in outside):
                first, name = names[0] if names[0] != other else names[1], tokens[place].text
                self.ask(
                    f"\\{name} over {first} with {other} beside it",
                    _Tex("command", name, tokens[place].start, tokens[place].end),
                    rf"\{name}_{{{first} \text{{ where }} …}} for a {name} over {first} alone",
                    rf"\{name}_{other} \{name}_{{{first} \text{{ where }} …}} over both",
                )

    # Relations, notes, environments -----------------------------------------------------------

    def not_in(self, item: _Tex) -> None:
        self.emit("word", "not", item)
        self.emit("word", "in", item)

    def negated(self, item: _Tex) -> None:
        following = self.take()
        if following.text in ("=", "in"):
            if following.text == "in":
                self.not_in(item)
            else:
                self.symbol("!=", item)
            return
        self.fail(r"\not before this sign", item, expected=r"\neq or \notin was expected")

    def middle(self, item: _Tex) -> None:
        if self.delimiter(self.take()) != "|":
            self.fail(r"\middle without a bar", item)
        self.emit("word", "given", item)

    def braced_note(self, item: _Tex) -> None:
        """Read \\underbrace{…}_{…}: what it covers; the note below says nothing new."""
        begin = len(self.out)
        self.in_brackets(lambda: self.argument("what the brace covers"), item)
        if len(self.out) - begin == 2:
            self.fail("the brace covers nothing", item)
        while self.item.kind in ("_", "^"):
            self.take()
            self.argument_text()

    def stacked(self) -> None:
        """Read \\overset{note}{=}: the sign below the note."""
        self.argument_text()
        self.argument_sign()

    def argument_sign(self) -> None:
        if self.item.kind == "{":
            self.braces()
        else:
            self.element()

    def environment(self, item: _Tex) -> None:
        name = self.argument_text().strip().rstrip("*")
        if name in _ROWS:
            if name == "alignat":
                self.argument_text()
            self.depth -= 1
            self.sequence(lambda _: self.is_command("end"))
            self.depth += 1
            self.end_environment(name)
        elif name in _MATRICES:
            self.matrix(name, item)
        elif name == "cases":
            self.cases(item)
        else:
            self.fail(
                f"the environment {name[:30]} is not known here",
                item,
                expected="equation, align, aligned, gather, cases or pmatrix was expected",
            )

    def end_environment(self, name: str) -> None:
        ended = self.take()
        found = self.argument_text().strip().rstrip("*")
        if found != name:
            self.fail(f"\\end{{{found}}} after \\begin{{{name}}}", ended)

    def cells(self, name: str) -> list[list[list[Token]]]:
        """Read the rows of a table, each a list of cells."""
        rows: list[list[list[Token]]] = [[]]

        def stop(item: _Tex) -> bool:
            return item.kind in ("&", "row") or (item.kind == "command" and item.text == "end")

        while True:
            rows[-1].append(self.captured(lambda: self.sequence(stop)))
            if self.item.kind == "&":
                self.take()
            elif self.item.kind == "row":
                self.take()
                rows.append([])
            else:
                break
        self.end_environment(name)
        if rows[-1] == [[]]:
            rows.pop()
        return rows

    def matrix(self, name: str, item: _Tex) -> None:
        rows = self.cells(name)
        if not rows or any(len(row) != len(rows[0]) for row in rows):
            self.fail("the rows of the matrix have different lengths", item)
        if any(not cell for row in rows for cell in row):
            self.fail("an entry of the matrix is empty", item, hint="write 0")
        if len(rows[0]) == 1:
            self.joined_cells([row[0] for row in rows], item)
            self.out.append(self.bracket_token(")", item))
            return
        self.emit("name", "rows", item)
        self.symbol("(", item)
        for place, row in enumerate(rows):
            if place:
                self.symbol(",", item)
            self.joined_cells(row, item)
            self.symbol(")", item)
        self.symbol(")", item)

    def joined_cells(self, cells: list[list[Token]], item: _Tex) -> None:
        self.emit("name", "concat", item)
        self.symbol("(", item)
        for place, cell in enumerate(cells):
            if place:
                self.symbol(",", item)
            self.out += cell

    def cases(self, item: _Tex) -> None:
        """Read cases: the statement before them, once for every case under its condition."""
        rows = self.cells("cases")
        head = self.out[self.statement :]
        if not head or head[-1].text not in _RELATION_SIGNS or any(len(row) != 2 for row in rows):
            self.fail(
                "cases that are no right side of a relation, or without conditions",
                item,
                expected=r"x = \begin{cases} 1 & \text{if } … \\ 0 & \text{otherwise} \end{cases}",
            )
        del self.out[self.statement :]
        seen: list[list[Token]] = []
        for place, (value, condition) in enumerate(rows):
            while value and value[-1].says(",", ";"):
                value.pop()
            while condition and condition[0].says("given", "for", ",", "where"):
                condition.pop(0)
            if place:
                self.emit("word", "and", item)
            self.symbol("(", item)
            otherwise = not condition or condition[-1].text == "otherwise"
            if otherwise and not seen:
                self.fail("`otherwise` before any condition", item)
            for number, one in enumerate(seen if otherwise else [condition]):
                if number:
                    self.emit("word", "and", item)
                if otherwise:
                    self.emit("word", "not", item)
                self.symbol("(", item)
                self.out += one
                self.symbol(")", item)
            self.emit("word", "implies", item)
            self.out += [*head, *value]
            self.symbol(")", item)
            seen.append(condition)


def _limits(tokens: list[Token], place: int) -> tuple[list[Token], int]:
    """Return the clause of the sum at a place, and where its body begins."""
    end = place + 1
    level = 0
    while end < len(tokens):
        level += 1 if tokens[end].says("_{", "{") else -1 if tokens[end].says("}") else 0
        end += 1
        if level == 0:
            break
    clause = tokens[place + 2 : end - 1]
    if tokens[min(end, len(tokens) - 1)].says("^"):
        while end < len(tokens) and not tokens[end].says("}"):
            end += 1
        end += 1
    return clause, end


def _body_end(tokens: list[Token], begin: int) -> int:
    """Return where the product that begins at a place ends."""
    level = 0
    for place in range(begin, len(tokens)):
        token = tokens[place]
        if token.says("(", "[", "{", "_{"):
            level += 1
        elif token.says(")", "]", "}"):
            level -= 1
        ends = token.text in (*_RELATION_SIGNS, "+", ",", ";") or token.kind in ("word", "end")
        if level < 0 or (level == 0 and (ends or (token.says("-") and place > begin))):
            return place
    return len(tokens)


def _parts(tokens: list[Token]) -> set[str]:
    """Return the names in some tokens and their subscripts."""
    return {part for token in tokens if token.kind == "name" for part in token.text.split("_")}


def _outer_commas(tokens: list[Token]) -> list[int]:
    """Return the places of the commas that no bracket holds."""
    level, places = 0, []
    for place, token in enumerate(tokens):
        opens = token.says("(", "[", "{", "_{")
        level += 1 if opens else -1 if token.says(")", "]", "}") else 0
        if token.says(",") and level == 0:
            places.append(place)
    return places
