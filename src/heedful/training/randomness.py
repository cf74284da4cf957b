"""Every source of random numbers, as bytes.

A training draws from torch, NumPy and Python at large, and from one stream of its own for each
lane. A run that goes on must draw the very numbers it would have drawn; so the state of each
source goes into the checkpoint, as bytes: nothing is pickled.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from heedful.errors import InputError


class Stream:
    """Random words for dropout, many times faster than torch's, with a state of four numbers."""

    def __init__(self, *seeds: int) -> None:
        self._bits = np.random.SFC64(np.random.SeedSequence(list(seeds)))
        self._draw = np.random.Generator(self._bits)

    def words(self, count: int) -> Tensor:
        """Return `count` uniform 16-bit numbers, from -32768 to 32767."""
        quads = self._draw.integers(0, 2**64, size=-(-count // 4), dtype=np.uint64)
        return torch.from_numpy(quads.view(np.int16)[:count])

    def state(self) -> Tensor:
        """Return the state as bytes."""
        state = self._bits.state
        words = [*state["state"]["state"].tolist(), state["has_uint32"], state["uinteger"]]
        return _bytes(json.dumps([int(word) for word in words]).encode())

    def restore(self, state: Tensor) -> None:
        """Go on from a state."""
        *words, has_half, half = json.loads(bytes(state.tolist()))
        self._bits.state = {
            "bit_generator": "SFC64",
            "state": {"state": np.array(words, dtype=np.uint64)},
            "has_uint32": has_half,
            "uinteger": half,
        }


def states(streams: Sequence[Stream]) -> dict[str, Tensor]:
    """Return the state of every source, by its name, as tensors of bytes."""
    found = {
        "torch": torch.get_rng_state(),
        "numpy": _bytes(json.dumps(_numpy_state()).encode()),
        "python": _bytes(json.dumps(random.getstate()).encode()),
    }
    if torch.cuda.is_available():
        for device, state in enumerate(torch.cuda.get_rng_state_all()):
            found[f"cuda.{device}"] = state
    for lane, stream in enumerate(streams):
        found[f"lane.{lane}"] = stream.state()
    return found


def restore(saved: Mapping[str, Tensor], streams: Sequence[Stream]) -> None:
    """Set every source to its saved state."""
    for lane, stream in enumerate(streams):
        name = f"lane.{lane}"
        if name not in saved:
            raise InputError("checkpoint", f"holds no random state {name!r}")
        stream.restore(saved[name])
    torch.set_rng_state(saved["torch"])
    _set_numpy(json.loads(bytes(saved["numpy"].tolist())))
    version, words, following = json.loads(bytes(saved["python"].tolist()))
    random.setstate((version, tuple(words), following))
    if torch.cuda.is_available():
        for device in range(torch.cuda.device_count()):
            if f"cuda.{device}" in saved:
                torch.cuda.set_rng_state(saved[f"cuda.{device}"], device)


def seed_all(seed: int) -> None:
    """Start every source at large from one number."""
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - evaluations of others may use it
    random.seed(seed)


@contextmanager
def untouched(streams: Sequence[Stream]) -> Iterator[None]:
    """Leave every source as it was, whatever the block draws."""
    before = states(streams)
    try:
        yield
    finally:
        restore(before, streams)


def _bytes(content: bytes) -> Tensor:
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def _numpy_state() -> list[object]:
    kind, keys, position, has_gauss, cached = np.random.get_state(legacy=True)  # noqa: NPY002
    return [str(kind), np.asarray(keys).tolist(), int(position), int(has_gauss), float(cached)]


def _set_numpy(state: list[object]) -> None:
    kind, keys, position, has_gauss, cached = state
    full = (kind, np.array(keys, dtype=np.uint32), position, has_gauss, cached)
    np.random.set_state(full)  # type: ignore[arg-type]  # noqa: NPY002
