"""Text to token ids and back: one tokenizer for every model.

Hugging Face `tokenizers` is underneath, ids and text outside. New tokenizers have one id a
character, one id a byte, or byte pairs learned from text.

Two kinds that travel inside weight files (GGUF metadata, llama2.c's binary) are read. Byte-level
BPE carries its merges in order. SentencePiece BPE carries a score for each piece instead: the best
piece is merged first, so the order of merges is that of the scores, and characters without a piece
fall back to their bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import tokenizers
from tokenizers import (
    Regex,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from heedful.errors import ConfigError, InputError

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

    def encode_opened(self, text: str) -> list[int]:
        """Return the ids of a text as a model reads it: behind the opening mark, if any."""
        return [*([] if self.begin is None else [self.begin]), *self.encode(text)]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of many texts, worked out in parallel."""
        try:
            encoded = self.core.encode_batch(list(texts), add_special_tokens=False)
        except Exception as error:
            raise self._not_encodable(texts, error) from None
        return [list(encoding.ids) for encoding in encoded]

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
        token: str | None = self.core.id_to_token(number)
        return token

    def id_of(self, token: str) -> int | None:
        """Return the id of a token as the vocabulary writes it."""
        number: int | None = self.core.token_to_id(token)
        return number

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
        path.write_text(written.to_str(pretty=False), encoding="utf-8")

    def _not_encodable(self, texts: Sequence[str], error: Exception) -> InputError:
        known = self.core.get_vocab()
        strange = sorted({letter for text in texts for letter in text} - set(known))
        if not strange:
            return InputError("text", f"cannot be encoded ({error})")
        return InputError(
            "text",
            f"holds {strange[0]!r}, which this tokenizer does not know",
            expected=f"it knows {len(known)} characters",
            hint="remove it, or use a tokenizer of bytes",
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


# New tokenizers ------------------------------------------------------------------------------

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
    _check_marks(texts, marks)
    if kind == "characters":
        return characters("".join(sorted(set().union(*texts))), marks=marks)
    if kind == "bytes":
        return bytes_of_utf8(marks=marks)
    assert size is not None
    return train_bpe(texts, size, marks=marks, plain=plain)


def _check_marks(texts: Sequence[str], marks: Sequence[str]) -> None:
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
                    hint="choose other marks",
                )


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
            [normalizers.Replace(odd, usual) for odd, usual in PLAIN.items()]
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


# Tokenizers inside weight files --------------------------------------------------------------

SPACE = "▁"
CONTROL, UNKNOWN, USER_DEFINED = 3, 2, 4
"""Kinds of a token in `tokenizer.ggml.token_type`."""

_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3 = _QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")


def from_gguf(metadata: Mapping[str, Any], where: str = "GGUF") -> Tokenizer:
    """Return the tokenizer described by a GGUF file's `tokenizer.ggml.*` entries."""
    kind = metadata.get("tokenizer.ggml.model")
    tokens = _strings(metadata, "tokens", where)
    types = metadata.get("tokenizer.ggml.token_type", [1] * len(tokens))
    if len(types) != len(tokens) or len(set(tokens)) != len(tokens):
        raise InputError(
            where,
            f"its tokenizer has {len(tokens)} tokens ({len(set(tokens))} different), "
            f"{len(types)} kinds",
            expected="one kind for each token, and no token twice",
        )
    if kind == "gpt2":
        core = _byte_level_bpe(metadata, tokens, where)
    elif kind == "llama":
        scores = metadata.get("tokenizer.ggml.scores", [])
        if len(scores) != len(tokens):
            raise InputError(where, f"its tokenizer has {len(tokens)} tokens, {len(scores)} scores")
        core = _sentencepiece(tokens, scores, metadata.get("tokenizer.ggml.add_space_prefix", True))
    else:
        raise InputError(
            where, f"its tokenizer is of the kind {kind!r}", expected="gpt2 or llama is read"
        )
    for special in (True, False):
        chosen = (CONTROL, UNKNOWN) if special else (USER_DEFINED,)
        marks = [token for token, kind in zip(tokens, types, strict=True) if kind in chosen]
        core.add_tokens([tokenizers.AddedToken(mark, special=special) for mark in marks])
    begin = metadata.get("tokenizer.ggml.bos_token_id")
    # Models that want no opening mark say so; older files leave it to the kind.
    adds_begin = metadata.get("tokenizer.ggml.add_bos_token", kind == "llama")
    return Tokenizer(
        core,
        begin=begin if adds_begin else None,
        end=metadata.get("tokenizer.ggml.eos_token_id"),
    )


def from_llama2c(content: bytes, size: int, where: str = "llama2.c tokenizer") -> Tokenizer:
    """Return the tokenizer of llama2.c: a longest length, then (score, length, bytes) a token."""
    tokens: list[str] = []
    scores: list[float] = []
    offset = 4
    for number in range(size):
        if offset + 8 > len(content):
            raise _cut(where, number, size)
        score, length = struct.unpack_from("<fi", content, offset)
        offset += 8
        if not 0 < length <= len(content) - offset:
            raise _cut(where, number, size)
        try:
            tokens.append(content[offset : offset + length].decode("utf-8").replace(" ", SPACE))
        except UnicodeDecodeError:
            raise InputError(where, f"token {number} is not UTF-8") from None
        scores.append(score)
        offset += length
    if offset != len(content):
        raise InputError(
            where,
            f"{len(content) - offset} bytes follow the last of {size} tokens",
            expected="a tokenizer of the same vocabulary as the model",
        )
    tokens[:3] = ["<unk>", "<s>", "</s>"]
    core = _sentencepiece(tokens, scores, prefix=True)
    core.add_special_tokens([tokenizers.AddedToken(mark, special=True) for mark in tokens[:3]])
    return Tokenizer(core, begin=1, end=2)


def _byte_level_bpe(
    metadata: Mapping[str, Any], tokens: Sequence[str], where: str
) -> tokenizers.Tokenizer:
    merges = [merge.partition(" ")[::2] for merge in _strings(metadata, "merges", where)]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    if not all(piece in vocabulary for merge in merges for piece in merge):
        raise InputError(where, "its tokenizer merges pieces that are not in the vocabulary")
    rule = str(metadata.get("tokenizer.ggml.pre", "default"))
    if rule not in _SPLITS:
        raise InputError(
            where,
            f"its tokenizer splits text by the rule {rule!r}",
            expected=f"one of {', '.join(_SPLITS)} is known",
        )
    try:
        core = tokenizers.Tokenizer(models.BPE(vocabulary, merges))
    except Exception as error:  # a Rust library: plain Exception for a merge with no result
        raise InputError(where, f"its tokenizer is inconsistent ({error})") from None
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [*_SPLITS[rule], pre_tokenizers.ByteLevel(False, use_regex=rule in _WITH_GPT2_RULE)]
    )
    core.decoder = decoders.ByteLevel()
    return core


def _sentencepiece(
    tokens: Sequence[str], scores: Sequence[float], prefix: bool
) -> tokenizers.Tokenizer:
    vocabulary = {token: number for number, token in enumerate(tokens)}
    order = sorted(vocabulary, key=lambda token: -scores[vocabulary[token]])
    merges = [
        (token[:cut], token[cut:])
        for token in order
        for cut in range(1, len(token))
        if token[:cut] in vocabulary and token[cut:] in vocabulary
    ]
    unknown = "<unk>" if "<unk>" in vocabulary else None
    core = tokenizers.Tokenizer(
        models.BPE(vocabulary, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True)
    )
    spaces = normalizers.Replace(" ", SPACE)
    core.normalizer = (
        normalizers.Sequence([normalizers.Prepend(SPACE), spaces]) if prefix else spaces
    )
    parts = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    core.decoder = decoders.Sequence([*parts, decoders.Strip(" ", 1, 0)] if prefix else parts)
    return core


def _strings(metadata: Mapping[str, Any], name: str, where: str) -> list[str]:
    strings = metadata.get(f"tokenizer.ggml.{name}")
    if not isinstance(strings, list) or not all(isinstance(item, str) for item in strings):
        raise InputError(where, f"its tokenizer has no list of {name}")
    return strings


def _cut(where: str, number: int, size: int) -> InputError:
    return InputError(
        where,
        f"ends or breaks off in token {number}",
        expected=f"{size} tokens were expected, as many as the model has",
    )


_WITH_GPT2_RULE = ("default", "gpt-2", "smollm")
_SPLITS: dict[str, list[Any]] = {
    "default": [],
    "gpt-2": [],
    "smollm": [pre_tokenizers.Digits(individual_digits=True)],
    "qwen2": [pre_tokenizers.Split(Regex(_QWEN2), "isolated")],
    "llama-bpe": [pre_tokenizers.Split(Regex(_LLAMA3), "isolated")],
}
