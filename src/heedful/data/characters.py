"""Odd characters: what a reader does not expect in running text, with name and count.

Odd are controls and invisible characters, marks that change the direction of writing, spaces
other than the plain one, loose combining marks, the replacement character, private and
unassigned code points, and letters of another script than most of the text.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from heedful.records import Record

BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks that change the direction in which text is shown: they can make it read differently."""
AT_ONCE = 100_000
"""Texts counted in one step, to bound memory."""

_KINDS = {
    "Cc": "control", "Cf": "invisible", "Co": "private", "Cn": "unassigned", "Cs": "surrogate",
    "Zs": "space", "Zl": "line separator", "Zp": "line separator", "Mn": "combining mark",
    "Mc": "combining mark", "Me": "combining mark",
}  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class OddCharacter(Record):
    """A character that deserves a look."""

    code: str
    """As U+202F."""
    name: str
    """Its name in Unicode."""
    kind: str
    """Why it is odd."""
    count: int
    """How often it occurs."""


def counted(texts: Sequence[str]) -> dict[str, int]:
    """Return how often each character occurs.

    >>> counted(["aba", "b"])
    {'a': 2, 'b': 2}
    """
    totals: Counter[int] = Counter()
    for joined in _joined(texts):
        codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        found, counts = np.unique(codes, return_counts=True)
        totals.update(dict(zip(found.tolist(), counts.tolist(), strict=True)))
    return {chr(code): totals[code] for code in sorted(totals)}


def odd_characters(counts: dict[str, int]) -> tuple[OddCharacter, ...]:
    """Return the odd ones among counted characters, most frequent first."""
    scripts: Counter[str] = Counter()
    for character, count in counts.items():
        if script := _script(character):
            scripts[script] += count
    usual = scripts.most_common(1)[0][0] if scripts else ""
    odd = [
        OddCharacter(
            code=f"U+{ord(character):04X}",
            name=unicodedata.name(character, "no name"),
            kind=kind,
            count=count,
        )
        for character, count in counts.items()
        if (kind := kind_of(character, usual))
    ]
    return tuple(sorted(odd, key=lambda found: (-found.count, found.code)))


def kind_of(character: str, usual_script: str) -> str:
    """Return why a character is odd in text of a script, or nothing.

    >>> kind_of("\\u202f", "LATIN"), kind_of("я", "LATIN"), kind_of("é", "LATIN")
    ('space', 'CYRILLIC letter', '')
    """
    if character == " ":
        return ""
    if character in BIDI:
        return "direction mark"
    if character == "\ufffd":
        return "replacement"
    kind = _KINDS.get(unicodedata.category(character), "")
    if kind:
        return kind
    script = _script(character)
    return f"{script} letter" if script and script != usual_script else ""


def _script(character: str) -> str:
    # Unicode names of letters start with their script; the standard library has no other table.
    if not unicodedata.category(character).startswith(("Lu", "Ll", "Lt", "Lo")):
        return ""
    name = unicodedata.name(character, "").partition(" ")[0]
    return "" if name in ("FEMININE", "MASCULINE", "MICRO") else name


def _joined(texts: Iterable[str]) -> Iterator[str]:
    rest = iter(texts)
    while part := list(islice(rest, AT_ONCE)):
        yield "".join(part)
