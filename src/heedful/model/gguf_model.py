"""Models in GGUF files: the config and the tokenizer from the metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from heedful.errors import ConfigError, InputError
from heedful.model.checkpoint import Checkpoint, check_size
from heedful.model.config import (
    Attention,
    DecoderConfig,
    FeedForward,
    Learned,
    Norm,
    Positions,
    Rotary,
)
from heedful.model.gguf_file import GgufFile
from heedful.model.slots import GGUF_GPT2, GGUF_LLAMA, slots_of
from heedful.tokenization import from_gguf

_LAYOUTS = {"llama": "interleaved", "qwen2": "half", "qwen3": "half"}
"""Llama's queries and keys are reordered when GGUF files are made; those of Qwen are not."""


def open_gguf(path: Path) -> Checkpoint:
    """Open a GGUF file of the GPT-2, Llama or Qwen family, with the tokenizer inside."""
    file = GgufFile(path)
    family = file.metadata.get("general.architecture")
    if family not in (*_LAYOUTS, "gpt2"):
        raise InputError(
            file.where,
            f"the family {family!r} is unknown",
            expected=f"one of gpt2, {', '.join(_LAYOUTS)} is read",
        )
    config = _config(file, family)
    check_size(config, file)
    tokenizer = from_gguf(file.metadata, file.where)
    named = (file.metadata.get(f"tokenizer.ggml.{mark}_token_id") for mark in ("eos", "eot"))
    ends = {number for number in named if isinstance(number, int)}
    return Checkpoint(
        path=path,
        format="gguf",
        family=family,
        config=config,
        slots=slots_of(config, GGUF_GPT2 if family == "gpt2" else GGUF_LLAMA),
        source=file,
        tokenizer=tokenizer,
        ends=tuple(sorted(ends)),
        title=str(file.metadata.get("general.name", "")),
    )


def _config(file: GgufFile, family: str) -> DecoderConfig:
    def entry(name: str, default: Any = None) -> Any:
        value = file.metadata.get(f"{family}.{name}", default)
        if value is None:
            raise InputError(file.where, f"its metadata has no {family}.{name}")
        # A float32 such as 9.99999975e-06 was written as 1e-05.
        return float(str(np.float32(value))) if isinstance(value, float) else value

    if "token_embd.weight" not in file.entries:
        raise InputError(file.where, "holds no token embedding")
    width, heads = entry("embedding_length"), entry("attention.head_count")
    plain = family == "gpt2"
    kind = "layer_norm_epsilon" if plain else "layer_norm_rms_epsilon"
    try:
        return DecoderConfig(
            vocabulary=file.entries["token_embd.weight"].shape[0],
            context=entry("context_length"),
            width=width,
            layers=entry("block_count"),
            attention=Attention(
                heads=heads,
                kv_heads=entry("attention.head_count_kv", heads),
                head_width=file.metadata.get(f"{family}.attention.key_length"),
                qkv_bias=any(
                    name.startswith("blk.0.attn_q") and name.endswith(".bias")
                    for name in file.entries
                ),
                output_bias="blk.0.attn_output.bias" in file.entries,
                qk_norm="blk.0.attn_q_norm.weight" in file.entries,
            ),
            feed_forward=FeedForward(
                activation="gelu_tanh" if plain else "swiglu",
                width=entry("feed_forward_length"),
                bias="blk.0.ffn_down.bias" in file.entries,
            ),
            norm=Norm(kind="layer" if plain else "rms", eps=entry(f"attention.{kind}")),
            positions=Learned() if plain else _rotary(file, family),
            tied="output.weight" not in file.entries,
        )
    except ConfigError as error:
        raise ConfigError(
            f"{file.where}: {error.where}",
            error.problem,
            expected=error.expected,
            way_out=error.way_out,
        ) from None


def _rotary(file: GgufFile, family: str) -> Positions:
    scaling = file.metadata.get(f"{family}.rope.scaling.type", "none")
    if scaling != "none" or "rope_freqs.weight" in file.entries:
        raise InputError(
            file.where,
            f"its rotary positions are scaled ({scaling})",
            expected="plain rotary positions are read",
        )
    base = file.metadata.get(f"{family}.rope.freq_base", 10_000.0)
    return Rotary.of({"base": base, "layout": _LAYOUTS[family]})
