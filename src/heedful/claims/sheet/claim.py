"""A claim as it is written: its fields, how a sheet may write each of them, and its formulas.

`Claim` holds what was written, checked for its form only; `judge` finds out whether it is true.
The same fields serve the TOML sheet and the Python API. Each reader takes a TOML value and returns
what `Claim` holds, or raises `FieldError` with the path inside the value, so that the error can
point at the very entry.

`read_formulas` reads every formula of a claim once, in the light of the others: names that `where`
and `let` declare, functions that `let` defines. From then on a formula is a `ParsedFormula`, which
is its text wherever text is shown and has its tree wherever its meaning counts, also in child
processes.

A statement about a model also says which texts it speaks of:

    alpha(1, 3)[t, t-1] >= 0.01 for every text up to 16 tokens
    E(alpha(1, 3)[t, t-1]) >= 0.2 on the corpus, with 95 %
    alpha(1, 3)[2, 1] >= 0.2 for the text "Once upon a time"

The phrase stands at the end of a formula, or once for all formulas in the field `texts`.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple

from heedful.claims.functions import FUNCTIONS, Arity
from heedful.claims.language import canonical_name, parse, parse_value, show
from heedful.claims.language.latex import is_latex
from heedful.claims.language.tree import (
    Call,
    Compare,
    Expression,
    Field,
    Name,
    names_in,
    walk,
)
from heedful.claims.sheet.toml import deceptive
from heedful.errors import FormulaError

MOST_FORMULAS = 50
LONGEST_WORDS = 1000
LONGEST_NAME = 60
MOST_DRAWS = 10_000_000
LARGEST_NUMBER = 10**15
LONGEST_SHOWN = 40
ASKED = {
    **dict.fromkeys(("least", "smallest", "lowest"), "least"),
    **dict.fromkeys(("greatest", "largest", "highest"), "greatest"),
}
"""The words of `find`, and the one of two that each means."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One statement about attention."""

    id: str
    """Short name inside its sheet, such as "1.2b"."""
    says: str = ""
    """The statement in words."""
    expect: tuple[str, ...]
    """One or more formulas that must all hold."""
    given: str | None = None
    """A condition under which they must hold."""
    find: str | None = None
    """A number that the formulas leave open, to be found: "least x" or "greatest x"."""
    source: str = ""
    """Where the statement comes from: the place, and the words that stand there."""
    reading: str = ""
    """How the words of the source became this formula."""
    number: str = ""
    """Which number of the formula is not the source's but ours, and why that one."""

    keys: Any = None
    """"orthonormal", "unit", "any", "gaussian", rows of numbers, or formulas; None: no keys."""
    means: Any = "orthonormal"
    """Means of Gaussian keys."""
    covariance: dict[str, str] = field(default_factory=dict)
    """Covariance formulas of Gaussian keys by index, with `others` for the rest."""
    values: Any = "arbitrary"
    """"arbitrary", "keys", rows of numbers, or formulas."""
    scale: Any = 1
    """What multiplies k·q: a number, or "sqrt_d"."""
    query: str | None = None
    """The query of a single head."""
    heads: tuple[str, ...] = ()
    """The queries of several heads, whose outputs are averaged."""
    sequence: tuple[str, ...] = ()
    """The vectors x_1 … x_n of self-attention."""
    matrices: dict[str, str] = field(default_factory=dict)
    """K, Q and V of self-attention; the identity where left out."""
    positions: dict[str, Any] = field(default_factory=dict)
    """Parameters of φ: kind, width, base."""

    model: str | None = None
    """A trained model that the claim is about: a run, a folder, a file, or a published name."""
    corpus: str | None = None
    """The file whose texts a claim about a model is measured on."""
    intervene: dict[str, Any] = field(default_factory=dict)
    """What is changed inside the model: the table of an intervention, as in `heed intervene`."""
    texts: str | None = None
    """Which texts it is about, such as "every text up to 16 tokens" (see `read_texts`)."""

    where: dict[str, Any] = field(default_factory=dict)
    """The free symbols and their ranges: n = [2, 3, 10], beta = "large", X = "matrix T x d"."""
    let: dict[str, str] = field(default_factory=dict)
    """Names for expressions, and functions: "f(X)" = "relu(X W)"."""
    tolerance: float = 0.05
    """What ≈ means when no `within` is written."""
    draws: int = 20_000
    """Draws for what can only be sampled."""
    seed: int = 0
    """Seed of every draw."""
    disagrees_with: tuple[str, ...] = ()
    """Claims of other sheets that say otherwise, as "sheet/id": shown side by side."""

    def changed(self, **changes: Any) -> Claim:
        """Return the claim with some fields replaced (how a repair is applied)."""
        current = {item.name: getattr(self, item.name) for item in fields(self)}
        return Claim(**{**current, **changes})


class FieldError(Exception):
    """A value of the wrong kind; becomes a `FormulaError` once its line is known."""

    def __init__(
        self,
        problem: str,
        expected: str,
        inside: tuple[str | int, ...] = (),
        column: int | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.expected = expected
        self.inside = inside
        self.column = column


def words(value: Any) -> str:
    """Read a sentence."""
    text = _text(value, "a sentence in quotes")
    if len(text) > LONGEST_WORDS:
        raise FieldError(f"has {len(text):,} characters", f"at most {LONGEST_WORDS:,}")
    return text


def identifier(value: Any) -> str:
    """Read the id of a claim."""
    text = _text(value, 'a short name in quotes such as "1.2b"')
    if not text.strip() or text != text.strip():
        raise FieldError(f"is {shown(text)}", 'a short name such as "1.2b"')
    if len(text) > LONGEST_NAME or "/" in text or "\n" in text:
        raise FieldError(
            f"is {shown(text)}", f"one line of at most {LONGEST_NAME} characters without /"
        )
    return text


def formula(value: Any) -> str:
    """Read one formula; a bare number is one too."""
    if _is_number(value):
        return str(number(value))
    text = _text(value, "a formula in quotes")
    if not text.strip():
        raise FieldError("is empty", "a formula")
    if re.search(r"\t[a-z]", text) and "\n" not in text:
        raise FieldError(
            "holds a tab before a letter",
            r"single quotes around LaTeX, since \t in double quotes is a tab",
            column=text.index("\t") + 1,
        )
    return text


def formulas(value: Any) -> tuple[str, ...]:
    """Read a list of formulas."""
    items = _list(value, "a list of formulas in quotes")
    return tuple(_each(formula, items))


def one_or_more_formulas(value: Any) -> tuple[str, ...]:
    """Read one formula, or a list of at least one."""
    if not isinstance(value, list):
        return (formula(value),)
    if not value:
        raise FieldError("is an empty list", "at least one formula")
    return formulas(value)


def asked(value: Any) -> str:
    """Read which number is to be found."""
    expected = 'what to find, such as "least x" or "greatest x"'
    text = _text(value, expected)
    found = re.fullmatch(r"\s*(?:the\s+)?(\w+)\s+(\S{1,60})\s*", text)
    word = None if found is None else ASKED.get(found[1].lower())
    if found is None or word is None:
        raise FieldError(f"is {shown(text)}", expected)
    return f"{word} {found[2]}"


def names(value: Any) -> tuple[str, ...]:
    """Read one name, or a list of names."""
    if not isinstance(value, list):
        return (words(value),)
    return tuple(_each(words, _list(value, "a list of names")))


def vectors(value: Any) -> Any:
    """Read keys, means or values: a word, rows of numbers, or a list of formulas."""
    expected = 'a word such as "orthonormal", rows of numbers, or a list of formulas'
    if isinstance(value, str):
        return words(value)
    rows = _list(value, expected, most=4096)
    if not rows:
        raise FieldError("is an empty list", expected)
    if all(isinstance(row, str) for row in rows):
        return tuple(_each(formula, rows))
    read = [_inside(position, _row, row) for position, row in enumerate(rows)]
    for position, row in enumerate(read):
        if len(row) != len(read[0]):
            raise FieldError(
                f"row {position + 1} has {len(row)} numbers and row 1 has {len(read[0])}",
                "rows of one length",
                (position,),
            )
    return tuple(read)


def formula_table(value: Any) -> dict[str, str]:
    """Read a table of formulas by name."""
    return _table(value, formula)


def plain_table(value: Any) -> dict[str, Any]:
    """Read a table of numbers, words, and lists of them."""
    return _table(value, _plain)


def scale(value: Any) -> Any:
    """Read what multiplies k·q."""
    return number(value) if _is_number(value) else _text(value, 'a number or "sqrt_d"')


def tolerance(value: Any) -> float:
    """Read a positive number."""
    read = number(value)
    if not read > 0:
        raise FieldError(f"is {shown(value)}", "a number above 0")
    return float(read)


def draws(value: Any) -> int:
    """Read how many draws to take."""
    return _whole(value, 1, MOST_DRAWS)


def seed(value: Any) -> int:
    """Read a seed."""
    return _whole(value, 0, 2**32 - 1)


def number(value: Any) -> int | float:
    """Read a finite number of a sensible size."""
    if not _is_number(value):
        raise FieldError(f"is {shown(value)}", "a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise FieldError(f"is {value}", "a finite number")
    if abs(value) > LARGEST_NUMBER:
        raise FieldError(f"is {shown(value)}", f"at most {LARGEST_NUMBER:.0e} in size")
    read: int | float = value
    return read


FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "id": identifier,
    "says": words,
    "expect": one_or_more_formulas,
    "given": formula,
    "find": asked,
    "source": words,
    "reading": words,
    "number": words,
    "keys": vectors,
    "means": vectors,
    "covariance": formula_table,
    "values": vectors,
    "scale": scale,
    "query": formula,
    "heads": formulas,
    "sequence": formulas,
    "matrices": formula_table,
    "positions": plain_table,
    "model": words,
    "corpus": words,
    "intervene": plain_table,
    "texts": words,
    "where": plain_table,
    "let": formula_table,
    "tolerance": tolerance,
    "draws": draws,
    "seed": seed,
    "disagrees_with": names,
}
"""Every field of a claim, with its reader."""
_ESCAPED = {"\b": r"\b", "\f": r"\f", "\r": r"\r", "\x1b": r"\e"}
"""What TOML makes of the first letters of \\beta, \\frac and \\rho in double quotes."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any, expected: str) -> str:
    if not isinstance(value, str):
        raise FieldError(f"is {shown(value)}", expected)
    hidden = deceptive(value)
    if hidden is not None:
        meant = _ESCAPED.get(value[hidden], "")
        raise FieldError(
            f"holds the invisible character U+{ord(value[hidden]):04X}",
            f"single quotes around LaTeX, since {meant} in double quotes is such a character"
            if meant
            else "text that shows what it says",
            column=hidden + 1,
        )
    return value


def _list(value: Any, expected: str, most: int = MOST_FORMULAS) -> list[Any]:
    if not isinstance(value, list):
        raise FieldError(f"is {shown(value)}", expected)
    if len(value) > most:
        raise FieldError(f"lists {len(value):,} entries", f"at most {most:,}")
    return value


def _whole(value: Any, low: int, high: int) -> int:
    expected = f"a whole number from {low} to {high:,}"
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise FieldError(f"is {shown(value)}", expected)
    return value


def _row(value: Any) -> tuple[int | float, ...]:
    numbers = _list(value, "a row of numbers", most=4096)
    if not numbers:
        raise FieldError("is an empty row", "a row of numbers")
    return tuple(_each(number, numbers))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return words(value)
    if isinstance(value, list):
        return _each(_number_or_word, _list(value, "a list of numbers", most=64))
    return _number_or_word(value)


def _number_or_word(value: Any) -> Any:
    if isinstance(value, str):
        return words(value)
    if not _is_number(value):
        raise FieldError(f"is {shown(value)}", "a number, a word in quotes, or a list of them")
    return number(value)


def _table(value: Any, read: Callable[[Any], Any]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FieldError(f"is {shown(value)}", 'a table such as { n = 10, beta = "large" }')
    for name in value:
        if not name.strip() or len(name) > LONGEST_NAME or deceptive(name) is not None:
            raise FieldError(
                f"has the name {shown(name)}", f"names of 1 to {LONGEST_NAME} characters"
            )
    return {name: _inside(name, read, item) for name, item in value.items()}


def _each(read: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    return [_inside(position, read, item) for position, item in enumerate(items)]


def _inside(key: str | int, read: Callable[[Any], Any], value: Any) -> Any:
    try:
        return read(value)
    except FieldError as error:
        error.inside = (key, *error.inside)
        raise


def field_text(field: tuple[str | int, ...]) -> str:
    """Write the path of a field as one would say it.

    >>> field_text(("heads", 1)), field_text(("where", "n"))
    ('heads[1]', 'where.n')
    """
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in field[1:])
    return f"{field[0]}{''.join(steps)}"


def field_error(
    field: tuple[str | int, ...], problem: str, *, expected: str = "", hint: str = ""
) -> FormulaError:
    """Return an error about one field of a claim; its sheet knows the line."""
    return FormulaError(field_text(field), problem, expected=expected, hint=hint, field=field)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return what to try instead of an unknown name: the nearest known one, or nothing.

    >>> nearest("exepct", ["expect", "query"])
    'did you mean expect?'
    """
    close = difflib.get_close_matches(name[:100], list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else ""


def shown(value: Any) -> str:
    """Write a value found in a sheet so that it fits a line and hides nothing.

    >>> shown("a\\u202eb"), shown(10**5000), shown([1, 2])
    ("'a\\\\u202eb'", 'a number of 5001 digits', 'a list')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) >= 10**20:
        digits = int(value.bit_length() * 0.30103) + 1
        return f"a number of {digits} digits"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if not isinstance(value, str):
        return str(value)
    text = value if len(value) <= LONGEST_SHOWN else value[: LONGEST_SHOWN - 1] + "…"
    return repr(text)


# Which texts a statement about a model speaks of ---------------------------------------------

LONGEST_TEXT = 100_000
"""The longest length that can be written; the context of a model is shorter."""

_EVERY = re.compile(
    r"(?:for )?(?:every|all|each|any) texts?(?: of)? up to ([0-9,_]{1,9})(?: tokens?)?", re.I
)
_CORPUS = re.compile(
    r"(?:on |in |over |for )?the corpus(?:,? with (?:a )?([0-9]{1,2}(?:\.[0-9]{1,3})?) ?%"
    r"(?: confidence)?)?",
    re.I,
)
_TEXT = re.compile(r"(?:for |on |in )?the text [\"“'](.*)[\"”']", re.I | re.S)
_AT_END = re.compile(
    r"^(?P<body>.*?)[\s,](?P<phrase>for (?:every|all|each|any) texts?\b.*"
    r"|(?:on|in|over) the corpus.*|(?:for|on) the text\b.*)$",
    re.I | re.S,
)


class Texts(NamedTuple):
    """The texts that a statement is about."""

    kind: Literal["every", "corpus", "one"]
    length: int = 0
    """For every text: the most tokens it may have."""
    confidence: float = 0.95
    """On a corpus: of the intervals."""
    text: str = ""
    """The one text."""

    def __str__(self) -> str:
        if self.kind == "every":
            return f"every text of up to {self.length} tokens"
        if self.kind == "corpus":
            return f"the corpus, with {100 * self.confidence:g} %"
        return f"the text {self.text!r}"


def read_texts(phrase: str) -> Texts:
    """Read a phrase such as "every text up to 16 tokens".

    >>> read_texts("for every text up to 16").length, read_texts("the corpus, with 99 %").confidence
    (16, 0.99)
    """
    phrase = phrase.strip().rstrip(".")
    if match := _EVERY.fullmatch(phrase):
        length = int(match[1].replace(",", "").replace("_", "") or 0)
        if 1 <= length <= LONGEST_TEXT:
            return Texts("every", length=length)
    if match := _CORPUS.fullmatch(phrase):
        level = float(match[1] or 95) / 100
        if level >= 0.5:
            return Texts("corpus", confidence=level)
    if match := _TEXT.fullmatch(phrase):
        return Texts("one", text=match[1])
    raise FormulaError(
        "texts",
        f"{phrase[:60]!r} names no texts",
        expected='"every text up to 16 tokens", "the corpus, with 95 %", or \'the text "…"\'',
    )


def split_texts(formula: str) -> tuple[str, Texts | None]:
    """Return a formula without the phrase at its end, and the texts that the phrase names.

    >>> split_texts("loss <= 3 on the corpus")
    ('loss <= 3', Texts(kind='corpus', length=0, confidence=0.95, text=''))
    """
    match = _AT_END.match(formula)
    if match is None:
        return formula, None
    return match["body"].rstrip(" ,"), read_texts(match["phrase"])


# The formulas of a claim ---------------------------------------------------------------------

STATEMENTS = ("expect", "given")
LISTS = ("expect", "heads", "sequence")
SINGLE = ("given", "query")
TABLES = ("covariance", "matrices", "let")
NAMED = ("where", "covariance", "matrices")
"""Tables whose keys are names of the language: β and beta are the same there."""
VECTORS = ("keys", "means", "values")
MODEL_LETTERS = {
    "alpha": 2, "logit": 1, "prob": 1, "residual_norm": 1, "key_norm": 2, "query_norm": 2,
}  # fmt: skip
"""What can be said of a model, with the number of arguments: alpha(layer, head)[t, s], …"""
CHANGED_LOSS = "changed_loss"
"""The loss of a model with what the field `intervene` changes."""
MOST_PARTS = 2_000
"""How large a definition may become when the definitions it uses are written out."""

_FUNCTION_HEAD = re.compile(r"([^()]*)\(([^()]*)\)")
_SUBSCRIPT = re.compile(r"_\s*\{?\s*([A-Za-z]\w*)")


class ParsedFormula(str):
    """A formula as it was written, with the tree it was read into."""

    tree: Expression

    def __new__(cls, text: str, tree: Expression) -> ParsedFormula:
        """Join a text and its tree."""
        formula = super().__new__(cls, text)
        formula.tree = tree
        return formula

    @property
    def reading(self) -> str:
        """The formula in the language's own letters where it was written in LaTeX."""
        return show(self.tree, "unicode") if is_latex(self) else str(self)

    def __reduce__(self) -> tuple[object, ...]:
        # Formulas travel between processes; the default would pickle the text alone.
        return (ParsedFormula, (str(self), self.tree))


@dataclass(frozen=True)
class DefinitionHead:
    """The left side of a definition in `let`: a name, or a function with its parameters."""

    name: str
    parameters: tuple[str, ...] | None
    """None for a plain name."""

    @classmethod
    def of(cls, text: str, spell: Callable[[str], str] = str.strip) -> DefinitionHead:
        """Read the left side of a definition."""
        function = _FUNCTION_HEAD.fullmatch(text.strip())
        if function is None:
            return cls(spell(text), None)
        return cls(spell(function[1]), tuple(spell(part) for part in function[2].split(",")))

    def __str__(self) -> str:
        return (
            self.name if self.parameters is None else f"{self.name}({', '.join(self.parameters)})"
        )


def reading(formula: str) -> str:
    """Return how a formula was read: LaTeX in letters of the language, anything else as written."""
    return formula.reading if isinstance(formula, ParsedFormula) else formula


def map_formulas(claim: Claim, change: Callable[[Field, str], str]) -> Claim:
    """Return a claim with every formula replaced by what `change(field, text)` returns."""
    changes: dict[str, Any] = {}
    for name in LISTS:
        texts = getattr(claim, name)
        changes[name] = tuple(change((name, place), text) for place, text in enumerate(texts))
    for name in SINGLE:
        text = getattr(claim, name)
        changes[name] = None if text is None else change((name,), text)
    for name in TABLES:
        table: Mapping[str, str] = getattr(claim, name)
        changes[name] = {key: change((name, key), text) for key, text in table.items()}
    for name in VECTORS:
        rows = getattr(claim, name)
        if isinstance(rows, list | tuple):
            changes[name] = tuple(
                change((name, place), row) if isinstance(row, str) else row
                for place, row in enumerate(rows)
            )
    return claim.changed(**changes)


def read_claim(claim: Claim) -> Claim:
    """Return a claim with all its formulas read, or raise what is wrong with the first."""
    unread = False

    def note(_field: Field, text: str) -> str:
        nonlocal unread
        unread = unread or not isinstance(text, ParsedFormula)
        return text

    map_formulas(claim, note)
    if not unread:
        return claim
    claim, errors = read_formulas(claim)
    if errors:
        raise errors[0]
    return claim


def read_formulas(claim: Claim) -> tuple[Claim, list[FormulaError]]:
    """Return a claim with its names spelled and its formulas read, and what is wrong with it.

    What has been read before is not read again.
    """
    errors: list[FormulaError] = []
    tables = {
        table: {key: _spelled(key, (table, key), errors) for key in getattr(claim, table)}
        for table in NAMED
    }
    heads = {key: _definition_head(key, errors) for key in claim.let}
    claim, found = _with_open_number(claim, errors)
    tables["let"] = {key: str(head) for key, head in heads.items()}
    functions = {
        head.name: len(head.parameters) for head in heads.values() if head.parameters is not None
    }
    if claim.model is not None:
        functions = {**MODEL_LETTERS, **functions}
    names = {
        *tables["where"].values(),
        *(head.name for head in heads.values() if head.parameters is None),
        *_fixed_members(claim),
        *(name for name in tables["covariance"].values() if name != "others"),
        *(() if found is None else (found,)),
        *(() if claim.model is None else (CHANGED_LOSS,)),
    }

    def read(field: Field, text: str) -> str:
        if isinstance(text, ParsedFormula):
            return text
        of_function = field[0] == "let" and heads[str(field[1])].parameters is not None
        reader = parse if field[0] in STATEMENTS else parse_named_value
        try:
            declared = () if of_function else names
            body = str(text) if claim.model is None else split_texts(str(text))[0]
            return ParsedFormula(
                str(text), reader(body, functions=functions, names=declared, field=field)
            )
        except FormulaError as error:
            error.field = field
            errors.append(error)
            return text

    claim = map_formulas(claim, read)
    _check_definitions(claim.let, heads, errors)
    spelled = {
        table: {names_of[key]: item for key, item in getattr(claim, table).items()}
        for table, names_of in tables.items()
    }
    return claim.changed(**spelled), errors


def parse_named_value(
    text: str, *, functions: Mapping[str, Arity], names: Collection[str], field: Field
) -> Expression:
    """Read a value, which may stand behind its name: `q = beta k_a` is the query beta k_a."""
    try:
        return parse_value(text, functions=functions, names=names, field=field)
    except FormulaError as error:
        try:
            tree = parse(text, functions=functions, names=names, field=field)
        except FormulaError:
            raise error from None
        match tree:
            case Compare("=", Name(name), value, None) if name in _own_names(field):
                return value
        raise


def _own_names(field: Field) -> tuple[str, ...]:
    """Return the names under which a formula may define what its field holds."""
    what, *inside = field
    if what == "query":
        return ("q",)
    place = inside[0] if inside else ""
    if isinstance(place, int):
        letter = {"heads": "q", "sequence": "x", "keys": "k", "values": "v", "means": "mu"}
        return (f"{letter.get(str(what), '')}_{place + 1}",)
    return (str(place),) if what in ("matrices", "let") else (f"Sigma_{place}",)


def _spelled(text: str, field: Field, errors: list[FormulaError]) -> str:
    """Return a name as the language spells it; note an error if it is none."""
    try:
        return canonical_name(text)
    except FormulaError:
        errors.append(
            field_error(
                field,
                f"{shown(text)} is not a name",
                expected="expected a letter, then letters, digits and _",
                hint="write for instance n, beta, k_a or W_Q",
            )
        )
        return text


def _with_open_number(claim: Claim, errors: list[FormulaError]) -> tuple[Claim, str | None]:
    """Return the claim with the name under `find` spelled, and that name."""
    if claim.find is None:
        return claim, None
    word, _, name = claim.find.partition(" ")
    spelled = _spelled(name, ("find",), errors)
    return claim.changed(find=f"{word} {spelled}"), spelled


def _definition_head(key: str, errors: list[FormulaError]) -> DefinitionHead:
    head = DefinitionHead.of(key, lambda text: _spelled(text, ("let", key), errors))
    if head.name in FUNCTIONS:
        errors.append(
            field_error(
                ("let", key),
                f"{head.name} is a function of the language already",
                expected="expected another name",
                hint=f"try {head.name}_1",
            )
        )
    return head


def _fixed_members(claim: Claim) -> set[str]:
    """Return the members that the construction names, such as j of "beta k_j".

    A `for all i != j` binds i and not j, so they must be known before any formula is read.
    """
    texts: list[str] = []

    def note(field: Field, text: str) -> str:
        if field[0] in ("query", "heads", "sequence", *TABLES):
            texts.append(str(text))
        return text

    map_formulas(claim, note)
    return {member for text in texts for member in _SUBSCRIPT.findall(text)}


def _check_definitions(
    let: Mapping[str, str], heads: Mapping[str, DefinitionHead], errors: list[FormulaError]
) -> None:
    """Refuse definitions that refer to themselves, and those that double and double.

    Neither f(X) = f(X) nor a = b, b = a has an order in which each definition needs only those
    before it. Twenty short definitions can write out to a million parts.
    """

    def names_used(tree: Expression) -> set[str]:
        return names_in(tree) | {node.function for node in walk(tree) if isinstance(node, Call)}

    trees = {key: text.tree for key, text in let.items() if isinstance(text, ParsedFormula)}
    keys = {head.name: key for key, head in heads.items()}
    own = {key: head.parameters or () for key, head in heads.items()}
    needs = {
        key: {keys[name] for name in names_used(tree) - set(own[key]) if name in keys}
        for key, tree in trees.items()
    }
    sizes: dict[str, int] = {}
    while ready := [key for key in needs if key not in sizes and needs[key] <= sizes.keys()]:
        for key in ready:
            sizes[key] = 0
            for node in walk(trees[key]):
                name = node.function if isinstance(node, Call) else getattr(node, "text", "")
                sizes[key] += 1 if name in own[key] else sizes.get(keys.get(name, ""), 1)
            if sizes[key] > MOST_PARTS:
                errors.append(
                    field_error(
                        ("let", key),
                        f"{heads[key].name} writes out to {sizes[key]:,} parts",
                        expected=f"expected at most {MOST_PARTS:,}",
                        hint="define less through definitions",
                    )
                )
                return
    for key in needs:
        # One that could not be read is missing from `needs`, and has been reported already.
        if key not in sizes and needs[key] <= needs.keys():
            errors.append(
                field_error(
                    ("let", key),
                    f"{heads[key].name} is defined through itself",
                    expected="expected definitions without a circle",
                )
            )
            return  # the others of the circle would only repeat it
