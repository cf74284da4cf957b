"""Which texts a statement about a model speaks of.

    alpha(1, 3)[t, t-1] >= 0.01 for every text up to 16 tokens
    E(alpha(1, 3)[t, t-1]) >= 0.2 on the corpus, with 95 %
    alpha(1, 3)[2, 1] >= 0.2 for the text "Once upon a time"

The phrase stands at the end of a formula, or once for all formulas in the field `texts`.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from heedful.errors import FormulaError

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
