"""New tokenizers: one id a character, one id a byte, or byte-pair encoding learned from text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from heedful.errors import InputError
from heedful.tokenization.tokenizer import Tokenizer


def characters(text: str, *, marks: Sequence[str] = ()) -> Tokenizer:
    """Return a tokenizer with one id for each character of `text`, after the ids of `marks`.

    A character that does not occur is refused when encoding, never replaced in silence, unless
    one of the marks is "[UNK]".
    """
    letters = sorted(set(text))
    if not letters:
        raise InputError("text", "is empty", expected="at least one character was expected")
    vocabulary = {token: number for number, token in enumerate([*marks, *letters])}
    if len(vocabulary) != len(marks) + len(letters):
        raise InputError("marks", "names a character of the text, or one mark twice")
    unknown = "[UNK]" if "[UNK]" in vocabulary else None
    core = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
    core.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    core.decoder = decoders.Fuse()
    core.add_special_tokens([tokenizers.AddedToken(mark, special=True) for mark in marks])
    return Tokenizer(core)


def bytes_of_utf8(*, marks: Sequence[str] = ()) -> Tokenizer:
    """Return a tokenizer with one id for each byte; every text has ids.

    >>> len(bytes_of_utf8().encode("é"))
    2
    """
    # The library writes byte b as the b-th of its letters: here the ids are the bytes themselves.
    alphabet = _letters_of_bytes()
    core = tokenizers.Tokenizer(
        models.BPE({letter: number for number, letter in enumerate(alphabet)}, [])
    )
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([tokenizers.AddedToken(mark, special=True) for mark in marks])
    return Tokenizer(core)


PLAIN = {"\u00a0": " ", "\u202f": " ", "\u2019": "'"}
"""Two no-break spaces and the curved apostrophe, and what every keyboard writes for them."""


def train_bpe(
    texts: Iterable[str], size: int, *, marks: Sequence[str] = (), plain: bool = False
) -> Tokenizer:
    """Learn byte-level byte-pair encoding of at most `size` ids; every text has ids.

    `plain` reads the characters of `PLAIN` as the ones that keyboards write: one French text
    puts a no-break space before its question mark, the next a space, or a narrow one.
    """
    if size < 256 + len(marks):
        raise InputError(
            "size",
            f"is {size}",
            expected=f"at least {256 + len(marks)}: 256 bytes and {len(marks)} marks",
        )
    core = tokenizers.Tokenizer(models.BPE())
    if plain:
        core.normalizer = normalizers.Sequence(
            [normalizers.Replace(found, written) for found, written in PLAIN.items()]
        )
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(marks),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(texts, trainer)
    core.decoder = decoders.ByteLevel()
    return Tokenizer(core)


def _letters_of_bytes() -> list[str]:
    """Return the letter for each byte: itself where it prints, else one after U+0100."""
    printed = {*range(33, 127), *range(161, 173), *range(174, 256)}
    spare = iter(range(256, 512))
    return [chr(byte if byte in printed else next(spare)) for byte in range(256)]
