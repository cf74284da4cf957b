"""One door to a new tokenizer: characters, bytes or byte pairs, learned from the same texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from heedful.errors import ConfigError, InputError
from heedful.tokenization.build import bytes_of_utf8, characters, train_bpe
from heedful.tokenization.tokenizer import Tokenizer

Kind = Literal["characters", "bytes", "bpe"]


def learn_tokenizer(
    kind: Kind,
    texts: Sequence[str],
    *,
    size: int | None = None,
    marks: Sequence[str] = (),
    plain: bool = False,
) -> Tokenizer:
    """Return a tokenizer of the kind, with an id for each of `marks` beside those of the texts.

    `size` is how many ids byte pairs may use, marks included; the other kinds have the size
    that they need. `plain` lets byte pairs read no-break spaces as spaces and curved apostrophes
    as straight ones. The same texts in the same order give the same tokenizer.

    >>> tokenizer = learn_tokenizer("characters", ["heed", "full"], marks=["<end>"])
    >>> tokenizer.size, tokenizer.encode("fed")
    (7, [3, 2, 1])
    """
    if (size is None) == (kind == "bpe"):
        raise ConfigError(
            "size",
            f"is {size} for a tokenizer of {kind}",
            expected="byte pairs need a size, and only they",
        )
    if plain and kind != "bpe":
        raise ConfigError("plain", f"is true for a tokenizer of {kind}", expected="byte pairs")
    _check(texts, marks)
    if kind == "characters":
        return characters("".join(sorted(set().union(*texts))), marks=marks)
    if kind == "bytes":
        return bytes_of_utf8(marks=marks)
    assert size is not None
    return train_bpe(texts, size, marks=marks, plain=plain)


def _check(texts: Sequence[str], marks: Sequence[str]) -> None:
    if not any(texts):
        raise InputError("texts", "are empty", expected="at least one character was expected")
    if "" in marks or len(set(marks)) != len(marks):
        raise ConfigError("marks", "name one twice, or nothing", expected="different marks")
    for number, text in enumerate(texts, start=1):
        for mark in marks:
            if mark in text:
                raise InputError(
                    "texts",
                    f"number {number:,} holds the mark {mark!r}",
                    expected="marks that no text holds: they would be read as marks",
                    way_out="choose other marks",
                )
