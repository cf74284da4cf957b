"""Random numbers that a checkpoint can hold, and dropout that draws them.

A training draws from torch, NumPy and Python's own generator, and from one stream of its own for
each lane. A resumed run must draw the very numbers it would have drawn, so the state of each
source goes into the checkpoint, as bytes: nothing is pickled.

torch draws dropout from one generator for the whole process, so two threads that train at once
would take numbers in an order that nobody decides. Here each lane has its own stream, several
times faster than torch's. A mask takes 16 random bits an entry; a rate is therefore rounded to a
multiple of 1/65536.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.errors import InputError
from heedful.model import Decoder
from heedful.model.decoder import TransformerBlock
from heedful.model.masks import causal_mask


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
    saved = {
        "torch": torch.get_rng_state(),
        "numpy": _bytes(json.dumps(_numpy_state()).encode()),
        "python": _bytes(json.dumps(random.getstate()).encode()),
    }
    if torch.cuda.is_available():
        for device, state in enumerate(torch.cuda.get_rng_state_all()):
            saved[f"cuda.{device}"] = state
    for lane, stream in enumerate(streams):
        saved[f"lane.{lane}"] = stream.state()
    return saved


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


LEVELS = 2**16
SHORT = 256
"""Rows up to this long are read in bfloat16 by two products; longer ones by torch, in float32."""


class StreamDropout(nn.Module):
    """Set a share of the entries to 0 and scale the others up; nothing outside of training."""

    def __init__(self, rate: float, stream: Stream) -> None:
        super().__init__()
        self.rate = rate
        self.stream = stream

    def forward(self, x: Tensor) -> Tensor:
        """Return the entries that stay, divided by their share."""
        if not self.training or self.rate == 0.0:
            return x
        return x * keeping(x, self.rate, self.stream)


class StreamAttention:
    """Attention whose weights are dropped by a stream; torch's kernel where it is faster."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def __call__(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        enable_gqa: bool = False,
    ) -> Tensor:
        """Return softmax(qkᵀ/√d) with some weights dropped, times the values."""
        rounded = _half_on_cpu(queries)
        if dropout_p == 0.0 and not (rounded and queries.shape[2] <= SHORT):
            if rounded:
                queries, keys, values = queries.float(), keys.float(), values.float()
            with torch.autocast("cpu", enabled=False) if rounded else nullcontext():
                return functional.scaled_dot_product_attention(
                    queries,
                    keys,
                    values,
                    attn_mask=attn_mask,
                    is_causal=is_causal,
                    enable_gqa=enable_gqa,
                )
        if enable_gqa:
            group = queries.shape[1] // keys.shape[1]
            keys, values = (part.repeat_interleave(group, dim=1) for part in (keys, values))
        scores = (queries / math.sqrt(queries.shape[-1])) @ keys.mT
        mask = causal_mask(0, queries.shape[2], queries.device) if is_causal else attn_mask
        if mask is not None and mask.dtype == torch.bool:
            mask = torch.zeros_like(mask, dtype=scores.dtype).masked_fill(~mask, -math.inf)
        weights = (scores if mask is None else scores + mask).softmax(dim=-1)
        if dropout_p > 0.0:
            weights = weights * keeping(weights, dropout_p, self.stream)
        return weights @ values


def _half_on_cpu(x: Tensor) -> bool:
    """Whether torch's kernel would round; its backward pass then takes five times as long."""
    return x.device.type == "cpu" and (x.dtype.itemsize < 4 or torch.is_autocast_enabled("cpu"))


def keeping(x: Tensor, rate: float, stream: Stream) -> Tensor:
    """Return 1 / (1 − rate) for entries that stay and 0 for the others, shaped like x.

    >>> kept = keeping(torch.empty(100_000), 0.25, Stream(0))
    >>> sorted(set(kept.tolist())), round(float(kept.mean()), 2)
    ([0.0, 1.3333333730697632], 1.0)
    """
    dropped = min(round(rate * LEVELS), LEVELS - 1)
    mask = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    words = stream.words(x.numel()).view(x.shape)
    torch.ge(words, dropped - LEVELS // 2, out=mask)
    return mask.mul_(LEVELS / (LEVELS - dropped))


def draw_from(decoder: Decoder, stream: Stream) -> None:
    """Let every dropout of a decoder draw from this stream."""
    decoder.dropout = StreamDropout(decoder.config.dropout.embedding, stream)  # type: ignore[assignment]
    for block in decoder.blocks:
        assert isinstance(block, TransformerBlock)
        block.dropout = StreamDropout(decoder.config.dropout.residual, stream)
        block.attention.kernel = StreamAttention(stream)
