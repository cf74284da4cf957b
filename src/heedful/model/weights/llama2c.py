"""The weights of llama2.c: seven numbers, then float32 arrays in a fixed order.

    dim, hidden, layers, heads, kv heads, ±vocabulary, context         little-endian int32

A positive vocabulary means that the output layer is the embedding. The name ends in `.bin`, as
pickled files do; nothing here unpickles: the file is taken only if its length is exactly what
the seven numbers say.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from heedful.errors import ConfigError, InputError
from heedful.model.config import Attention, DecoderConfig, FeedForward, Norm
from heedful.model.weights.checkpoint import Checkpoint, TensorHeader, TensorSource
from heedful.model.weights.families import LLAMA, tensor_map
from heedful.positions.encodings import Rotary
from heedful.tokenization import Tokenizer, from_llama2c

HEADER = struct.Struct("<7i")


class Llama2cFile(TensorSource):
    """The arrays of a llama2.c file, under the names that Llama models use."""

    def __init__(self, path: Path, config: DecoderConfig) -> None:
        self.where, self.files = str(path), (path,)
        self.entries, self._offsets = {}, {}
        offset = HEADER.size
        for name, shape in _arrays(config):
            self.entries[name] = TensorHeader(shape, "F32")
            self._offsets[name] = offset
            offset += 4 * math.prod(shape)
            if name == "model.norm.weight":
                offset += 4 * config.context * config.head_width  # two rotary tables, unused
        self.length = offset

    def read(self, name: str) -> Tensor:
        """Return one array."""
        shape = self.entries[name].shape
        values = np.fromfile(
            self.files[0], dtype="<f4", count=math.prod(shape), offset=self._offsets[name]
        )
        return torch.from_numpy(values.reshape(shape))


def looks_like_llama2c(path: Path) -> bool:
    """Tell whether the length of a file is exactly what its first seven numbers say."""
    try:
        _opened(path)
    except InputError:
        return False
    return True


def open_llama2c(path: Path, tokenizer: Path | None = None) -> Checkpoint:
    """Open a llama2.c file, with the tokenizer given or the one that lies beside it."""
    config, file = _opened(path)
    words = _tokenizer(path, tokenizer, config.vocabulary)
    return Checkpoint(
        path=path,
        format="llama2c",
        family="llama",
        config=config,
        tensors=tensor_map(config, LLAMA),
        source=file,
        tokenizer=words,
        ends=(1, 2),  # these models open the next story instead of closing one
    )


def _opened(path: Path) -> tuple[DecoderConfig, Llama2cFile]:
    config, size = _config(path), path.stat().st_size
    if config.layers * 9 * 4 > size:
        raise _not_llama2c(path, f"announces {config.layers:,} layers")
    file = Llama2cFile(path, config)
    if file.length != size:
        raise _not_llama2c(path, f"has {size:,} bytes where its header announces {file.length:,}")
    return config, file


def _config(path: Path) -> DecoderConfig:
    with path.open("rb") as file:
        start = file.read(HEADER.size)
    if len(start) < HEADER.size:
        raise _not_llama2c(path, f"has {len(start)} bytes")
    dim, hidden, layers, heads, kv_heads, vocabulary, context = HEADER.unpack(start)
    try:
        return DecoderConfig(
            vocabulary=abs(vocabulary),
            context=context,
            width=dim,
            layers=layers,
            attention=Attention(heads=heads, kv_heads=kv_heads),
            feed_forward=FeedForward(activation="swiglu", width=hidden),
            norm=Norm(kind="rms", eps=1e-5),
            positions=Rotary(layout="interleaved"),
            tied=vocabulary > 0,
        )
    except ConfigError as error:
        raise _not_llama2c(path, f"its header makes no model ({error})") from None


def _arrays(config: DecoderConfig) -> list[tuple[str, tuple[int, ...]]]:
    width, hidden, query, kv = (
        config.width, config.hidden_width, config.query_width, config.kv_width,
    )  # fmt: skip
    stacked: list[tuple[str, tuple[int, ...]]] = [
        ("input_layernorm", (width,)),
        ("self_attn.q_proj", (query, width)),
        ("self_attn.k_proj", (kv, width)),
        ("self_attn.v_proj", (kv, width)),
        ("self_attn.o_proj", (width, query)),
        ("post_attention_layernorm", (width,)),
        ("mlp.gate_proj", (hidden, width)),
        ("mlp.down_proj", (width, hidden)),
        ("mlp.up_proj", (hidden, width)),
    ]
    arrays: list[tuple[str, tuple[int, ...]]] = [
        ("model.embed_tokens.weight", (config.vocabulary, width))
    ]
    arrays += [
        (f"model.layers.{layer}.{name}.weight", shape)
        for name, shape in stacked
        for layer in range(config.layers)
    ]
    arrays.append(("model.norm.weight", (width,)))
    if not config.tied:
        arrays.append(("lm_head.weight", (config.vocabulary, width)))
    return arrays


def _tokenizer(path: Path, given: Path | None, vocabulary: int) -> Tokenizer | None:
    beside = [path.with_name(f"tok{vocabulary}.bin"), path.with_name("tokenizer.bin")]
    for candidate in [given] if given is not None else beside:
        if candidate.is_file():
            return from_llama2c(candidate.read_bytes(), vocabulary, str(candidate))
    if given is not None:
        raise InputError(str(given), "there is no such file", expected="llama2.c's tokenizer")
    return None


def _not_llama2c(path: Path, problem: str) -> InputError:
    return InputError(
        str(path),
        problem,
        expected="a whole llama2.c model (seven numbers, then float32 arrays)",
        hint="pickled .bin files are never opened: use safetensors or GGUF",
    )
