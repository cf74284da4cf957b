"""Checkpoints: safetensors and JSON, whole or not there, and proved whole before they are used.

    step-00000500/
      config.json, model.safetensors     the decoder: a model folder that every verb opens
      training.safetensors               optimiser, random states, average: `kind:name`
      state.json                         step, place in the data, evaluations
      manifest.json                      SHA-256 and size of every other file; written last

A checkpoint is written in a hidden folder and pushed to the disk; then one rename makes it
visible. An older one is removed only after the new one was read back and is whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from heedful.errors import InputError, RunError
from heedful.files import fsync_path, json_bytes, sha256, sha256_of, write_new
from heedful.model import DecoderConfig

PREFIX = "step-"
KEPT = 2
"""How many checkpoints a run keeps: the newest, and one to fall back on."""
MANIFEST = "manifest.json"
MAX_JSON_BYTES = 64 * 2**20


@dataclass(frozen=True, eq=False, kw_only=True)
class Contents:
    """What a checkpoint holds."""

    model: dict[str, Tensor]
    """The weights, by name."""
    training: dict[str, Tensor]
    """Everything else that is a tensor: `optimiser:…`, `random:…`, `average:…`."""
    state: dict[str, Any]
    """Everything else: step, place in the data, evaluations."""

    def part(self, kind: str) -> dict[str, Tensor]:
        """Return the training tensors of one kind, by name."""
        tensors = {}
        for key, tensor in self.training.items():
            before, _, name = key.partition(":")
            if before == kind:
                tensors[name] = tensor
        return tensors


@dataclass(frozen=True, eq=False, kw_only=True)
class Found:
    """The newest checkpoint that is whole, and those that were not."""

    path: Path | None
    contents: Contents | None
    skipped: dict[str, str] = field(default_factory=dict)
    """Newer ones that could not be used, and why."""


def save(folder: Path, contents: Contents, config: DecoderConfig) -> Path:
    """Write a checkpoint into a run's `checkpoints` folder; return where it is."""
    step = int(contents.state["step"])
    final = folder / f"{PREFIX}{step:08d}"
    unfinished = folder / f".writing-{final.name}"
    sweep(folder)
    files = {
        "config.json": json_bytes(
            {"model_type": "heedful", "heedful": config.model_dump(mode="json")}
        ),
        "model.safetensors": safetensors.torch.save(contents.model, {"format": "pt"}),
        "training.safetensors": safetensors.torch.save(contents.training, {"format": "pt"}),
        "state.json": json_bytes(contents.state),
    }
    try:
        unfinished.mkdir()
        with ThreadPoolExecutor(1) as pool:  # hashes while the main thread writes
            digests = {name: pool.submit(sha256, content) for name, content in files.items()}
            for name, content in files.items():
                write_new(unfinished / name, content)
            listed = {
                name: {"sha256": digests[name].result(), "bytes": len(content)}
                for name, content in files.items()
            }
        manifest = {"files": listed, "sha256": sha256(json_bytes(listed))}
        write_new(unfinished / MANIFEST, json_bytes(manifest))
        fsync_path(unfinished)
        if final.exists():  # a damaged one of the same step, over which a run went on
            final.rename(folder / f".removed-{final.name}")
        unfinished.rename(final)
        fsync_path(folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            shutil.rmtree(unfinished)
        raise RunError(
            str(final),
            f"could not be written ({error.strerror or error})",
            expected="the checkpoints before it are whole",
            hint="make room or repair the disk, then resume the run",
        ) from None
    problem = damage(final)
    if problem is not None:
        raise RunError(
            str(final),
            f"does not read back as it was written ({problem})",
            expected="the checkpoints before it are kept",
            hint="check the disk, then resume the run",
        )
    _remove_others(folder, step)
    return final


def damage(path: Path) -> str | None:
    """Return what is wrong with a checkpoint, or None if every byte is as it was written."""
    try:
        manifest = _json_of(path / MANIFEST)
        files = manifest["files"]
        own = manifest["sha256"] == sha256(json_bytes(files))
        if not own or (path / MANIFEST).read_bytes() != json_bytes(manifest):
            return f"{MANIFEST} does not match its own checksum"
        present = {entry.name for entry in os.scandir(path)} - {MANIFEST}
        if present != set(files):
            return f"it holds {len(present)} files where {len(files)} were written"
        with ThreadPoolExecutor(2) as pool:
            wrong = pool.map(lambda name: _damaged(path / name, files[name]), files)
            return next((problem for problem in wrong if problem), None)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        return "a file is missing" if missing else f"it cannot be read ({error.strerror})"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return f"{MANIFEST} cannot be read"


def newest(folder: Path) -> Found:
    """Return the newest whole checkpoint of a run; nothing in it is used before it is proved."""
    skipped: dict[str, str] = {}
    for path in reversed(checkpoints(folder)):
        problem = damage(path)
        if problem is None:
            return Found(path=path, contents=read(path), skipped=skipped)
        skipped[path.name] = problem
    return Found(path=None, contents=None, skipped=skipped)


def checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a run, the oldest first, whole or not."""
    if not folder.is_dir():
        return []
    named = (path for path in folder.iterdir() if path.name.startswith(PREFIX) and path.is_dir())
    return sorted(path for path in named if path.name.removeprefix(PREFIX).isdigit())


def step_of(path: Path) -> int:
    """Return the step after which a checkpoint was written."""
    return int(path.name.removeprefix(PREFIX))


def sweep(folder: Path) -> None:
    """Remove what an interrupted write or removal left behind."""
    for path in folder.iterdir():
        if path.name.startswith((".writing-", ".removed-")):
            shutil.rmtree(path, ignore_errors=True)


def read(path: Path) -> Contents:
    """Return what a checkpoint holds; ask `damage` first whether it is whole."""
    try:
        return Contents(
            model=safetensors.torch.load((path / "model.safetensors").read_bytes()),
            training=safetensors.torch.load((path / "training.safetensors").read_bytes()),
            state=_json_of(path / "state.json"),
        )
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        reason = " ".join(str(error).split())[:100]
        raise InputError(str(path), f"cannot be read ({reason})") from None


def _remove_others(folder: Path, step: int) -> None:
    """Keep this step and the one before; newer ones are damaged, or the run had used them."""
    upto = [path for path in checkpoints(folder) if step_of(path) <= step]
    newer = [path for path in checkpoints(folder) if step_of(path) > step]
    for path in [*upto[:-KEPT], *newer]:
        with contextlib.suppress(OSError):
            path.rename(folder / f".removed-{path.name}")
    sweep(folder)


def _damaged(path: Path, expected: Mapping[str, Any]) -> str | None:
    if path.stat().st_size != expected["bytes"]:
        return f"{path.name} has {path.stat().st_size:,} bytes, not {expected['bytes']:,}"
    return None if sha256_of(path) == expected["sha256"] else f"{path.name} has another SHA-256"


def _json_of(path: Path) -> dict[str, Any]:
    if path.stat().st_size > MAX_JSON_BYTES:
        raise ValueError(f"{path.name} is too large")
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"{path.name} holds no object")
    return content
