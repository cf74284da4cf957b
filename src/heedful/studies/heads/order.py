"""What a trained model knows about order: equivariance, and a probe for the position.

Equivariance: the model is a function of the rows of X, the embeddings of its tokens. With f the
stream after the last layer, f(PX) = P f(X) for every permutation P? Without positions and without
a mask, yes: attention is a sum over a set. The causal mask alone breaks it. It is tried in
float64 by room `attention`, with the mask and, for comparison, with every token seeing every other.

Probe: a ridge regression that reads the position from the stream after each layer. The texts are
tokens drawn independently, so content says nothing about the position and the first layers of a
model without positions can only have it from the mask. R² is that of rows the probe never saw.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor

from heedful.attention import Equivariance, permutation_equivariance
from heedful.model import Decoder, parameter_count
from heedful.model.masks import attention_mask, position_ids
from heedful.model.trace import TraceRecorder
from heedful.records import Record
from heedful.stats import Estimate

RIDGES = (1e-6, 1e-4, 1e-2, 1.0)
"""Penalties, relative to the mean eigenvalue of the features; chosen on rows of their own."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OrderTest(Record):
    """Whether one model, with or without its mask, respects permutations."""

    masked: bool
    """Whether tokens see only what came before them."""
    holds: bool
    """f(PX) = P f(X) in every trial."""
    relative: float
    """Largest relative error."""
    statement: str
    """The finding in one sentence."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Probe(Record):
    """How well the position can be read from the stream at each depth."""

    length: int
    """Positions 0 … length − 1."""
    r2: tuple[Estimate, ...]
    """Share of the variance of the position that is explained, over unseen rows: before the
    first layer, then after each."""
    mean_error: tuple[float, ...]
    """Mean absolute error, in tokens."""
    rows: int
    """Rows that the probe learned from."""

    @property
    def best(self) -> Estimate:
        """The depth at which the position is clearest."""
        return max(self.r2, key=lambda one: one.value)


LARGE = 20_000_000
"""Parameters from which a model is tried as it is, without a copy in float64."""


def order_tests(
    decoder: Decoder, *, length: int = 6, trials: int = 6, seed: int = 0
) -> tuple[OrderTest, ...]:
    """Try permutations on the model with its causal mask and without it."""
    large = parameter_count(decoder.config) > LARGE
    exact = decoder if large else copy.deepcopy(decoder).double().eval()
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randperm(decoder.config.vocabulary, generator=generator)[:length]
    example = exact.embedding.weight.detach()[ids].clone()
    tests = []
    for masked in (True, False):
        equivariance: Equivariance = permutation_equivariance(
            stream_function(exact, masked=masked), example=example, trials=trials, seed=seed
        )
        tests.append(
            OrderTest(
                masked=masked,
                holds=equivariance.holds,
                relative=equivariance.relative,
                statement=equivariance.statement,
            )
        )
    return tuple(tests)


def stream_function(decoder: Decoder, *, masked: bool) -> Callable[[Tensor], Tensor]:
    """Return the decoder as a function of embeddings, one row a token."""

    @torch.no_grad()
    def function(X: Float[Tensor, "time width"]) -> Float[Tensor, "time width"]:
        time = X.shape[0]
        tokens = torch.zeros(1, time, dtype=torch.int64)
        mask = attention_mask(decoder.config, tokens, None, None, X.dtype)
        if not masked:
            everything = torch.ones(1, 1, time, time, dtype=torch.bool)
            mask = replace(mask, allowed=everything, causal=False)
        positions = position_ids(tokens, None, None)
        stream = decoder.add_positions(X.unsqueeze(0), positions)
        for block in decoder.blocks:
            stream = block(stream, mask, decoder.rotation(positions))
        return (stream if decoder.norm is None else decoder.norm(stream))[0]

    return function


def probe_positions(
    decoder: Decoder, *, length: int = 48, rows: tuple[int, int, int] = (48, 16, 24), seed: int = 0
) -> Probe:
    """Learn to read the position from the stream; `rows` are for learning, choosing, judging."""
    length = min(length, decoder.config.context)
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, decoder.config.vocabulary, (sum(rows), length), generator=generator)
    depths: list[list[Float32[np.ndarray, "rows time width"]]] = []
    step = max(1, 2048 // length)  # so that memory stays bounded for wide models
    for start in range(0, len(tokens), step):
        part = tokens[start : start + step]
        recorder = TraceRecorder(keep=("after",))
        with torch.no_grad():
            decoder.hidden(part, recorder=recorder)
        assert recorder.embedded is not None
        streams = [recorder.embedded, *(layer["after"] for layer in recorder.layers)]
        depths.append([stream.float().numpy() for stream in streams])
    probes = [
        _probe(np.concatenate([part[depth] for part in depths]).astype(np.float64), rows)
        for depth in range(decoder.config.layers + 1)
    ]
    return Probe(
        length=length,
        r2=tuple(r2 for r2, _ in probes),
        mean_error=tuple(error for _, error in probes),
        rows=rows[0],
    )


def _probe(
    features: Float[np.ndarray, "rows time width"], rows: tuple[int, int, int]
) -> tuple[Estimate, float]:
    _, time, width = features.shape
    learn, choose, _ = np.split(features, np.cumsum(rows)[:2])
    positions = np.arange(time) - (time - 1) / 2
    flat = learn.reshape(-1, width)
    mean = flat.mean(axis=0)
    scale = flat.std(axis=0) + 1e-12
    standard = (flat - mean) / scale
    gram = standard.T @ standard
    aim = standard.T @ np.tile(positions, rows[0])
    size = float(np.trace(gram)) / width + 1e-12

    def errors(part: Float[np.ndarray, "some time width"], ridge: float) -> np.ndarray:
        weights = np.linalg.solve(gram + ridge * size * np.eye(width), aim)
        return np.asarray(((part - mean) / scale) @ weights - positions)

    best = min(RIDGES, key=lambda ridge: float((errors(choose, ridge) ** 2).mean()))
    left = errors(features[rows[0] + rows[1] :], best)
    explained = 1.0 - (left**2).mean(axis=1) / (positions**2).mean()
    return Estimate.of(explained), float(np.abs(left).mean())
