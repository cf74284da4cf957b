"""A model in files: opened and checked from its headers, loaded only when asked.

Names, shapes and dtypes are compared with the config before any weight is allocated; each
tensor must be finite when it is read; a decoder comes out whole or not at all.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.errors import InputError, RunError
from heedful.files import sha256_of
from heedful.model.config import DecoderConfig
from heedful.model.cost import cache_bytes, flops_per_token, parameter_count, weight_bytes
from heedful.model.decoder import Decoder
from heedful.model.weights.families import TensorSlice
from heedful.model.weights.published import PUBLISHED
from heedful.records import Record
from heedful.tokenization import Tokenizer

LONGEST_NAME = 200
"""Characters in the name of a tensor."""


@dataclass(frozen=True)
class TensorHeader:
    """A tensor as its file's header announces it."""

    shape: tuple[int, ...]
    dtype: str
    """As the format writes it: F32, BF16, Q4_1, …"""


class TensorSource(ABC):
    """A place that holds named tensors."""

    where: str
    """How errors name it."""
    entries: Mapping[str, TensorHeader]
    """What the header announces."""
    files: tuple[Path, ...]
    """The files that hold the weights."""

    @abstractmethod
    def read(self, name: str) -> Tensor:
        """Return one tensor as floating-point numbers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Checkpoint:
    """A model that can be loaded: everything has been checked except the numbers."""

    path: Path
    format: str
    """huggingface, heedful, gguf or llama2c."""
    family: str
    """gpt2, llama, qwen2, qwen3 or heedful."""
    config: DecoderConfig
    tensors: Mapping[str, TensorSlice]
    source: TensorSource
    tokenizer: Tokenizer | None = None
    """None when none lies beside the weights."""
    ends: tuple[int, ...] = ()
    """Ids that end a text."""
    title: str = ""
    """How the file calls itself."""
    ignored: tuple[str, ...] = field(default=())
    """Tensors of the file that hold nothing of their own, such as a copy of a tied head."""

    def __post_init__(self) -> None:
        check_entries(self.config, self.tensors, self.source, self.ignored)
        size = 0 if self.tokenizer is None else self.tokenizer.size
        if size > self.config.vocabulary:
            raise InputError(
                self.source.where,
                f"its tokenizer has {size} ids",
                expected=f"the embedding has {self.config.vocabulary}",
                hint="use the tokenizer that belongs to these weights",
            )

    def decoder(
        self,
        dtype: torch.dtype = torch.float32,
        progress: Callable[[int, int], None] | None = None,
    ) -> Decoder:
        """Return the decoder with its weights, ready to use (in evaluation mode)."""
        with torch.device("meta"):
            decoder = Decoder(self.config)
        try:
            state = {
                name: torch.empty(parameter.shape, dtype=dtype)
                for name, parameter in decoder.state_dict().items()
            }
        except RuntimeError:  # torch's own kind of MemoryError
            raise RunError(
                self.source.where,
                f"there is no memory for {parameter_count(self.config):,} numbers of {dtype}",
                hint="use a shorter dtype, or a smaller model",
            ) from None
        for count, (name, part) in enumerate(self.tensors.items(), start=1):
            part.of(state[part.name]).copy_(self.finite(name))
            if progress is not None:
                progress(count, len(self.tensors))
        decoder.load_state_dict(state, strict=True, assign=True)
        return decoder.eval()

    def finite(self, name: str) -> Tensor:
        """Return one tensor of the file, or say that it holds NaN or infinity."""
        tensor = self.source.read(name)
        if not bool(torch.isfinite(tensor).all()):
            bad = int((~torch.isfinite(tensor)).sum())
            raise InputError(
                self.source.where,
                f"{name} holds {bad:,} entries that are NaN or infinite",
                expected="finite weights were expected",
                hint="the training diverged or the file is damaged: use another copy",
            )
        return tensor


def check_entries(
    config: DecoderConfig,
    tensors: Mapping[str, TensorSlice],
    source: TensorSource,
    ignored: tuple[str, ...] = (),
) -> None:
    """Compare the names and shapes of a header with those that the config needs."""
    missing = sorted(tensors.keys() - source.entries.keys())
    if missing:
        raise InputError(
            source.where,
            f"{_some(missing)} missing",
            expected=f"{len(tensors)} tensors follow from its config",
            hint="the file is incomplete, or its config belongs to another model",
        )
    strange = sorted(source.entries.keys() - tensors.keys() - set(ignored))
    if strange:
        raise InputError(
            source.where,
            f"{_some(strange)} not part of this model",
            expected=f"{len(tensors)} tensors follow from its config",
        )
    with torch.device("meta"):
        parameters = Decoder(config).state_dict()
    for name, part in tensors.items():
        expected = tuple(part.of(parameters[part.name]).shape)
        if source.entries[name].shape != expected:
            raise InputError(
                source.where,
                f"{name} has shape {source.entries[name].shape}",
                expected=f"{expected} follows from its config",
            )


def check_name(name: str, where: str) -> None:
    """Refuse the name of a tensor that could not be shown in one line."""
    if not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
        raise InputError(
            where,
            f"a tensor is called {name[:24]!r}, {len(name)} characters long",
            expected=f"a printable name of at most {LONGEST_NAME} characters",
        )


def check_size(config: DecoderConfig, source: TensorSource) -> None:
    """Refuse a config far larger than its file, before anything grows with it."""
    needed = parameter_count(config)
    held = sum(math.prod(entry.shape) for entry in source.entries.values())
    if config.layers > len(source.entries) or needed > 8 * held:
        raise InputError(
            source.where,
            f"its config has {config.layers:,} layers and {needed:,} numbers",
            expected=f"the file holds {len(source.entries):,} tensors and {held:,} numbers",
        )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more + (" is" if len(names) == 1 else " are")


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelInfo(Record):
    """A model, as its headers describe it; no weight has been read."""

    path: str
    format: str
    """huggingface, heedful, gguf or llama2c."""
    family: str
    """gpt2, llama, qwen2, qwen3 or heedful."""
    title: str
    """How the file calls itself."""
    config: dict[str, Any]
    """The settings of the decoder."""
    parameters: int
    """Trained numbers, by formula; a tied head counts once."""
    stored_as: dict[str, int]
    """How many tensors are stored in each number format."""
    file_bytes: int
    """Bytes of the weight files."""
    weight_bytes: int
    """Memory of the weights in float32."""
    cache_bytes: int
    """Memory of the keys and values of one full context in float32."""
    cache_bytes_per_token: int
    """The same for one token."""
    flops_per_token: int
    """Operations of a forward pass for one token of a full context."""
    tokenizer_size: int | None
    """Ids of the tokenizer; None when there is no tokenizer."""
    ends: tuple[int, ...]
    """Ids that end a text."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TensorCheck(Record):
    """What one tensor holds."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    not_finite: int
    """Entries that are NaN or infinite."""
    largest: float
    """Largest absolute value among the finite ones."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Verification(Record):
    """Whether a model's files match its config and hold finite numbers."""

    path: str
    format: str
    family: str
    parameters: int
    """Numbers that the config calls for; the files hold exactly these."""
    tensors: int
    """Tensors read."""
    sound: bool
    """Whether every number is finite."""
    damaged: tuple[TensorCheck, ...]
    """Tensors with NaN or infinity."""
    largest: TensorCheck
    """The tensor with the largest absolute value."""
    sha256: dict[str, str]
    """Of each weight file."""
    published_as: str | None
    """The published model that this file is, if it is one that Heedful knows."""


def inspect_model(checkpoint: Checkpoint) -> ModelInfo:
    """Describe a model from its headers."""
    config, source = checkpoint.config, checkpoint.source
    return ModelInfo(
        path=str(checkpoint.path),
        format=checkpoint.format,
        family=checkpoint.family,
        title=checkpoint.title,
        config=config.explicit().model_dump(mode="json"),
        parameters=parameter_count(config),
        stored_as=dict(Counter(source.entries[name].dtype for name in checkpoint.tensors)),
        file_bytes=sum(path.stat().st_size for path in source.files),
        weight_bytes=weight_bytes(config),
        cache_bytes=cache_bytes(config),
        cache_bytes_per_token=cache_bytes(config, 1),
        flops_per_token=flops_per_token(config),
        tokenizer_size=None if checkpoint.tokenizer is None else checkpoint.tokenizer.size,
        ends=checkpoint.ends,
    )


def verify_model(
    checkpoint: Checkpoint, progress: Callable[[int, int], None] | None = None
) -> Verification:
    """Read every tensor once: is it finite? Names and shapes were checked on opening."""
    checks = []
    for count, name in enumerate(checkpoint.tensors, start=1):
        tensor = checkpoint.source.read(name)
        finite = torch.isfinite(tensor)
        kept = tensor[finite]
        checks.append(
            TensorCheck(
                name=name,
                shape=tuple(tensor.shape),
                dtype=checkpoint.source.entries[name].dtype,
                not_finite=int((~finite).sum()),
                largest=float(kept.abs().max()) if kept.numel() else 0.0,
            )
        )
        if progress is not None:
            progress(count, len(checkpoint.tensors))
    hashes = {path.name: sha256_of(path) for path in checkpoint.source.files}
    known = {published.sha256: name for name, published in PUBLISHED.items()}
    damaged = tuple(check for check in checks if check.not_finite)
    return Verification(
        path=str(checkpoint.path),
        format=checkpoint.format,
        family=checkpoint.family,
        parameters=parameter_count(checkpoint.config),
        tensors=len(checks),
        sound=not damaged,
        damaged=damaged,
        largest=max(checks, key=lambda check: check.largest),
        sha256=hashes,
        published_as=next((known[digest] for digest in hashes.values() if digest in known), None),
    )
