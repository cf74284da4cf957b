"""Models in GGUF files: config and tokenizer from the metadata, every length checked.

The reader of the `gguf` package trusts the counts in the file: a damaged one makes it loop
over billions of entries. This one never believes more than the bytes that are there. The
numbers themselves are unpacked by the package's dequantiser.
"""

from __future__ import annotations

import math
import mmap
import struct
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize
from torch import Tensor

from heedful.errors import ConfigError, InputError
from heedful.model.config import Attention, DecoderConfig, FeedForward, Norm
from heedful.model.weights.checkpoint import (
    Checkpoint,
    TensorHeader,
    TensorSource,
    check_name,
    check_size,
)
from heedful.model.weights.families import GGUF_GPT2, GGUF_LLAMA, tensor_map
from heedful.positions.encodings import Learned, Rotary
from heedful.tokenization import from_gguf

MOST_ENTRIES = 65_536
"""Entries and tensors of one file; the largest models have a few thousand."""
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q",
            11: "<q", 12: "<d"}  # fmt: skip
_STRING, _ARRAY = 8, 9
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
        tensors=tensor_map(config, GGUF_GPT2 if family == "gpt2" else GGUF_LLAMA),
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
        raise error.at(f"{file.where}: {error.where}") from None


def _rotary(file: GgufFile, family: str) -> Rotary:
    scaling = file.metadata.get(f"{family}.rope.scaling.type", "none")
    if scaling != "none" or "rope_freqs.weight" in file.entries:
        raise InputError(
            file.where,
            f"its rotary positions are scaled ({scaling})",
            expected="plain rotary positions are read",
        )
    base = file.metadata.get(f"{family}.rope.freq_base", 10_000.0)
    return Rotary.of({"base": base, "layout": _LAYOUTS[family]})


class GgufFile(TensorSource):
    """An opened GGUF file: metadata, and tensors that are unpacked one at a time."""

    def __init__(self, path: Path) -> None:
        self.where, self.files = str(path), (path,)
        with path.open("rb") as file:
            if path.stat().st_size < 24:
                raise InputError(self.where, "is cut short", expected="a whole GGUF file")
            self._data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        self._offset = 0
        try:
            self._read_header()
        except struct.error:
            raise InputError(
                self.where,
                f"ends at byte {len(self._data):,}, in the middle of its header",
                expected="a whole GGUF file",
                hint="copy or download it again",
            ) from None

    def read(self, name: str) -> Tensor:
        """Return one tensor, unpacked to float32."""
        kind, offset, size = self._places[name]
        raw = np.frombuffer(self._data[offset : offset + size], dtype=np.uint8)
        shape = self.entries[name].shape
        with np.errstate(all="ignore"):  # a damaged scale gives NaN, which the caller refuses
            unpacked = dequantize(raw.reshape(math.prod(shape[:-1]), -1), kind)
        return torch.from_numpy(np.array(unpacked, dtype=np.float32).reshape(shape))

    def _read_header(self) -> None:
        magic, version = bytes(self._take(4)), self._number("<I")
        if magic != b"GGUF" or version not in (2, 3):
            raise InputError(
                self.where,
                f"begins with {magic!r}, version {version}",
                expected="a GGUF file of version 2 or 3, little-endian",
            )
        tensors, entries = self._count("tensors"), self._count("entries")
        self.metadata = {self._string(): self._value(self._number("<I")) for _ in range(entries)}
        table = [self._tensor() for _ in range(tensors)]
        alignment = self.metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 0 < alignment <= 65_536:
            raise InputError(self.where, f"its alignment is {alignment!r}")
        start = math.ceil(self._offset / alignment) * alignment
        self.entries: dict[str, TensorHeader] = {}
        self._places: dict[str, tuple[GGMLQuantizationType, int, int]] = {}
        for name, shape, kind, offset in table:
            if name in self.entries:
                raise InputError(self.where, f"holds {name} twice")
            block, bytes_of_block = GGML_QUANT_SIZES[kind]
            size = math.prod(shape) // block * bytes_of_block
            if start + offset + size > len(self._data):
                raise InputError(
                    self.where,
                    f"ends at byte {len(self._data):,}, before the end of {name}",
                    expected="a whole GGUF file",
                    hint="copy or download it again",
                )
            self.entries[name] = TensorHeader(shape, kind.name)
            self._places[name] = kind, start + offset, size

    def _tensor(self) -> tuple[str, tuple[int, ...], GGMLQuantizationType, int]:
        name, axes = self._string(), self._number("<I")
        check_name(name, self.where)
        if not 0 < axes <= 4:
            raise InputError(self.where, f"{name} has {axes} axes", expected="1 to 4")
        sizes = [self._number("<Q") for _ in range(axes)]
        number, offset = self._number("<I"), self._number("<Q")
        try:
            kind = GGMLQuantizationType(number)
            block = GGML_QUANT_SIZES[kind][0]
        except (ValueError, KeyError):
            raise InputError(self.where, f"{name} is packed by the unknown kind {number}") from None
        if not _can_unpack(kind):
            raise InputError(
                self.where,
                f"{name} is packed as {kind.name}",
                expected="F32, F16, BF16, Q4_0 to Q8_0 and the K-quants are read",
            )
        if 0 in sizes or sizes[0] % block:
            raise InputError(self.where, f"{name} has sizes {sizes}", expected=f"blocks of {block}")
        return name, tuple(reversed(sizes)), kind, offset

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            return self._number(self._scalar(kind))
        inner, length = self._number("<I"), self._number("<Q")
        if inner == _STRING:
            self._fits(length, 8)
            return [self._string() for _ in range(length)]
        form = self._scalar(inner)
        self._fits(length, struct.calcsize(form))
        raw = self._take(length * struct.calcsize(form))
        return np.frombuffer(raw, dtype=np.dtype(form)).tolist() if raw else []

    def _scalar(self, kind: int) -> str:
        if kind not in _SCALARS:
            raise InputError(self.where, f"an entry is of the unknown kind {kind}")
        return _SCALARS[kind]

    def _fits(self, length: int, size: int) -> None:
        if length * size > len(self._data) - self._offset:
            raise InputError(
                self.where,
                f"announces a list of {length:,} items",
                expected=f"{len(self._data) - self._offset:,} bytes follow",
                hint="the file is damaged: copy or download it again",
            )

    def _count(self, what: str) -> int:
        number: int = self._number("<Q")
        if number > MOST_ENTRIES:
            raise InputError(
                self.where, f"announces {number:,} {what}", expected=f"at most {MOST_ENTRIES:,}"
            )
        return number

    def _number(self, form: str) -> Any:
        (number,) = struct.unpack(form, self._take(struct.calcsize(form)))
        return number

    def _string(self) -> str:
        length = self._number("<Q")
        self._fits(length, 1)
        return bytes(self._take(length)).decode("utf-8", errors="replace")

    def _take(self, length: int) -> memoryview:
        part = self._data[self._offset : self._offset + length]
        self._offset += length
        return part


def _can_unpack(kind: GGMLQuantizationType) -> bool:
    name = kind.name
    return name in ("F32", "F16", "BF16") or name.startswith(("Q4_", "Q5_", "Q8_0", "Q2_K", "Q3_K",
                                                              "Q6_K"))  # fmt: skip
