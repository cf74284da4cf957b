"""One tokenizer for every model: Hugging Face `tokenizers` underneath, ids and text outside."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import tokenizers
from tokenizers import processors

from heedful.errors import InputError

MAX_BYTES = 64 * 2**20
"""Tokenizer files above this size are refused; the largest in use has about 17 MB."""


class Tokenizer:
    """Text to ids and back.

    >>> from heedful.tokenization import characters
    >>> letters = characters("heedful")
    >>> letters.encode("feed")
    [2, 1, 1, 0]
    >>> letters.decode([2, 1, 1, 0])
    'feed'
    """

    def __init__(
        self, core: tokenizers.Tokenizer, *, begin: int | None = None, end: int | None = None
    ) -> None:
        self.core = core
        """The tokenizer of the library."""
        self.begin = begin
        """The id that opens a text, for models that were trained with one."""
        self.end = end
        """The id that closes a text."""

    @cached_property
    def size(self) -> int:
        """How many ids an embedding must have room for: the largest id and one."""
        return max(self.core.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, exactly; nothing is added at its ends."""
        try:
            return list(self.core.encode(text, add_special_tokens=False).ids)
        except Exception as error:
            raise self._not_encodable([text], error) from None

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of many texts, worked out in parallel."""
        try:
            found = self.core.encode_batch(list(texts), add_special_tokens=False)
        except Exception as error:
            raise self._not_encodable(texts, error) from None
        return [list(encoding.ids) for encoding in found]

    def decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        """Return the text of ids; `special` shows marks such as the end of a text too."""
        size = self.size
        strange = [number for number in ids if not 0 <= number < size]
        if strange:
            raise InputError(
                "tokens",
                f"holds the id {strange[0]}",
                expected=f"ids 0 to {self.size - 1} were expected",
            )
        return str(self.core.decode(list(ids), skip_special_tokens=not special))

    def decode_batch(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Return the texts of many rows of ids, worked out in parallel, without marks.

        An embedding may have more rows than the tokenizer has ids; what a model says with one
        of these is nothing.
        """
        return list(self.core.decode_batch([list(row) for row in rows], skip_special_tokens=True))

    def token(self, number: int) -> str | None:
        """Return how the vocabulary writes an id."""
        found: str | None = self.core.id_to_token(number)
        return found

    def id_of(self, token: str) -> int | None:
        """Return the id of a token as the vocabulary writes it."""
        found: int | None = self.core.token_to_id(token)
        return found

    def save(self, path: Path) -> None:
        """Write it as `tokenizer.json`, which `transformers` opens too.

        An opening mark is written as the rule that puts it before every text.
        """
        written = tokenizers.Tokenizer.from_str(self.core.to_str())
        if self.begin is not None and _opening(written) != self.begin:
            mark = str(self.token(self.begin))
            written.post_processor = processors.TemplateProcessing(
                single=[mark, "$A"], special_tokens=[(mark, self.begin)]
            )
        path.write_text(written.to_str(pretty=True), encoding="utf-8")

    def _not_encodable(self, texts: Sequence[str], error: Exception) -> InputError:
        known = self.core.get_vocab()
        strange = sorted({letter for text in texts for letter in text} - set(known))
        if not strange:
            return InputError("text", f"cannot be encoded ({error})")
        return InputError(
            "text",
            f"holds {strange[0]!r}, which this tokenizer does not know",
            expected=f"it knows {len(known)} characters",
            way_out="remove it, or use a tokenizer of bytes",
        )

    @classmethod
    def read(cls, path: Path, *, end: int | None = None) -> Tokenizer:
        """Read a `tokenizer.json`; whether texts open with a mark is written in it."""
        where = str(path)
        if not path.is_file():
            raise InputError(where, "there is no such file", expected="a tokenizer.json")
        if path.stat().st_size > MAX_BYTES:
            raise InputError(
                where,
                f"has {path.stat().st_size:,} bytes",
                expected=f"at most {MAX_BYTES:,} are read",
            )
        try:
            core = tokenizers.Tokenizer.from_file(where)
            return cls(core, begin=_opening(core), end=end)
        # The library is written in Rust and raises plain Exception, whatever went wrong.
        except Exception as error:
            reason = " ".join(str(error).split())[:120]
            raise InputError(
                where, f"is no tokenizer ({reason})", expected="a whole tokenizer.json"
            ) from None


def _opening(core: tokenizers.Tokenizer) -> int | None:
    """Return the id that a tokenizer puts before a text by itself, if it does."""
    letter = min((token for token in core.get_vocab() if len(token) == 1), default="")
    plain, marked = (core.encode(letter, add_special_tokens=marks).ids for marks in (False, True))
    return marked[0] if plain and marked[1 : 1 + len(plain)] == plain else None
