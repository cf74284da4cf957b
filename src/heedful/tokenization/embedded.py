"""Tokenizers that travel inside weight files: GGUF metadata and llama2.c's binary.

Two kinds are known. Byte-level BPE carries its merges in order. SentencePiece BPE carries a
score for each piece instead: the best piece is merged first, so the order of merges is that of
the scores, and characters without a piece fall back to their bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

from heedful.errors import InputError
from heedful.tokenization.tokenizer import Tokenizer

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
