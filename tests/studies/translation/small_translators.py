"""Translators small enough for thousands of lines: random weights, and so of many opinions."""

from __future__ import annotations

import torch

from heedful.model import Decoder, DecoderConfig
from heedful.model.config import Attention, FeedForward, Norm
from heedful.positions.encodings import Learned, Rotary
from heedful.studies.text_training import BEGIN, END, MARKS
from heedful.studies.translation import TranslationFormat, Translator
from heedful.tokenization import Tokenizer, bytes_of_utf8, characters

LETTERS = "abcdeéo' .?\n"
CONTEXT = 20


def letters() -> Tokenizer:
    """Return a tokenizer of a few letters and the marks."""
    return _opened(characters(LETTERS, marks=MARKS))


def all_bytes() -> Tokenizer:
    """Return a tokenizer that knows every text."""
    return _opened(bytes_of_utf8(marks=MARKS))


def llama_like(vocabulary: int, context: int = CONTEXT) -> DecoderConfig:
    """Return a config that Hugging Face knows as Llama."""
    return DecoderConfig(
        vocabulary=vocabulary,
        context=context,
        width=16,
        layers=2,
        attention=Attention(heads=4, kv_heads=2),
        feed_forward=FeedForward(activation="swiglu", width=20),
        norm=Norm(kind="rms"),
        positions=Rotary(),
        initial_std=0.4,
    )


def gpt2_like(vocabulary: int, context: int = CONTEXT) -> DecoderConfig:
    """Return a config that Hugging Face knows as GPT-2."""
    return llama_like(vocabulary, context).changed(
        attention=Attention(heads=4, qkv_bias=True, output_bias=True),
        feed_forward=FeedForward(activation="gelu_tanh", bias=True),
        norm=Norm(kind="layer"),
        positions=Learned(),
    )


def translator(
    tokenizer: Tokenizer | None = None,
    *,
    seed: int = 0,
    gpt2: bool = False,
    dtype: torch.dtype = torch.float64,
    written: TranslationFormat | None = None,
) -> Translator:
    """Return a translator of nonsense into nonsense; in float64 no two tokens tie."""
    tokenizer = letters() if tokenizer is None else tokenizer
    config = (gpt2_like if gpt2 else llama_like)(tokenizer.size)
    return Translator(Decoder(config, seed=seed).to(dtype), tokenizer, written)


def _opened(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.begin, tokenizer.end = tokenizer.id_of(BEGIN), tokenizer.id_of(END)
    return tokenizer
