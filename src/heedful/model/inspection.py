"""What is inside a model file, and whether it is whole: the records of `heed model`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from heedful.files import sha256_of
from heedful.model.checkpoint import Checkpoint
from heedful.model.cost import cache_bytes, flops_per_token, parameter_count, weight_bytes
from heedful.model.published import PUBLISHED
from heedful.records import Record


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
        stored_as=dict(Counter(source.entries[name].dtype for name in checkpoint.slots)),
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
    for count, name in enumerate(checkpoint.slots, start=1):
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
            progress(count, len(checkpoint.slots))
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
        published_as=next((known[found] for found in hashes.values() if found in known), None),
    )
