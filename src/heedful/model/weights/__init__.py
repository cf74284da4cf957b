"""Weights in and out: models from a folder, a GGUF file, a llama2.c file, or by a known name.

`checkpoint` is a model in files, checked but not loaded; `families` has the names and settings of
other programs; `huggingface`, `gguf` and `llama2c` are the formats; `published` fetches by name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

import torch

from heedful.errors import InputError
from heedful.files import SHIPPED
from heedful.model.decoder import Decoder
from heedful.model.weights.checkpoint import Checkpoint
from heedful.model.weights.gguf import open_gguf
from heedful.model.weights.huggingface import open_folder
from heedful.model.weights.llama2c import looks_like_llama2c, open_llama2c
from heedful.model.weights.published import PUBLISHED, cached_path
from heedful.tokenization import Tokenizer

Kind = Literal["folder", "gguf", "llama2c"]
PICKLED = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")


class Pretrained(NamedTuple):
    """A decoder with its weights, and the tokenizer that belongs to it."""

    decoder: Decoder
    tokenizer: Tokenizer | None
    ends: tuple[int, ...]
    """Ids that end a text."""


def open_checkpoint(
    path: Path | str, *, kind: Kind | None = None, tokenizer: Path | None = None
) -> Checkpoint:
    """Open a model and check its headers; no weight is loaded yet."""
    path = located(Path(path))
    if not path.exists():
        raise InputError(
            str(path),
            "there is no such file or folder",
            expected="a model folder, a .gguf file, or a llama2.c file",
        )
    try:
        kind = _kind_of(path) if kind is None else kind
    except OSError as error:
        raise _unreadable(path, error) from None
    if tokenizer is not None and kind != "llama2c":
        raise InputError(
            "--tokenizer",
            f"was given for a model of the kind {kind}",
            expected="folders and GGUF files bring their own tokenizer",
        )
    try:
        if kind == "folder":
            return open_folder(path)
        return open_gguf(path) if kind == "gguf" else open_llama2c(path, tokenizer)
    except OSError as error:
        raise _unreadable(path, error) from None


def load(
    path: Path | str,
    *,
    kind: Kind | None = None,
    tokenizer: Path | None = None,
    dtype: torch.dtype = torch.float32,
) -> Pretrained:
    """Load a model: its decoder in evaluation mode, and its tokenizer."""
    checkpoint = open_checkpoint(path, kind=kind, tokenizer=tokenizer)
    return Pretrained(checkpoint.decoder(dtype), checkpoint.tokenizer, checkpoint.ends)


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(str(path), f"cannot be read ({error.strerror})")


def located(path: Path) -> Path:
    """Return where a model lies: the path, the `model` of a run, the package, or the cache."""
    if (path / "model" / "config.json").is_file():
        return path / "model"
    if not path.exists() and str(path) in SHIPPED:
        return SHIPPED[str(path)]
    if path.exists() or str(path) not in PUBLISHED:
        return path
    cached = cached_path(str(path))
    if not cached.is_file():
        raise InputError(
            str(path), "is not in the cache yet", hint=f"fetch it with: heed model get {path}"
        )
    return cached


def _kind_of(path: Path) -> Kind:
    if path.is_dir():
        return "folder"
    with path.open("rb") as file:
        start = file.read(4)
    if start == b"GGUF" or path.suffix == ".gguf":
        return "gguf"
    if path.suffix == ".safetensors":
        raise InputError(
            str(path),
            "holds weights without their config",
            hint=f"give the folder that holds it and config.json: {path.parent}",
        )
    if path.suffix == ".bin" and looks_like_llama2c(path):
        return "llama2c"
    if path.suffix in PICKLED or start.startswith((b"PK\x03\x04", b"\x80")):
        raise InputError(
            str(path),
            "looks pickled, and pickled files can run code when they are opened",
            expected="a folder with safetensors, a .gguf file, or a llama2.c file",
            hint="ask for the safetensors version; for llama2.c add --format llama2c",
        )
    raise InputError(
        str(path), "is no kind of model that is read here",
        expected="a model folder, a .gguf file, or a llama2.c file",
    )  # fmt: skip
