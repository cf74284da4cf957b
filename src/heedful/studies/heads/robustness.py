"""How robust the heads are: keys of uncertain length, heads against their layer, heads left out.

The disturbance is that of the course sheets, Σ = ½ μμᵀ: a key keeps its direction and its length
is multiplied by 1 + ξ with ξ ~ N(0, ½). The factor belongs to the token, so all heads see the
same one (`shared`); or each head draws its own (`independent`).

    change of c        √(E‖c' − c‖² / E‖c‖²), for each head, and for what the layer adds to the
                       stream, W_O (c_1, …, c_H)
    change of loss     mean −ln p of the next token with disturbed keys, minus the same without
    leaving out        the loss with c_h = 0, minus the loss; for every head to first order,
                       −∂L/∂m_h at m = 1 with c_h ← m_h c_h; exactly for as many as the work
                       allows, those first for which the gradient promises most

Heads are changed by wrapping the kernel of each layer, softmax(qkᵀ/√d) v, for the duration of a
`with` block: its inputs may be disturbed, its output silenced. Weights are never changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from heedful.model import Decoder, LayerTrace, flops_per_token
from heedful.model.config import head_name
from heedful.model.decoder import SelfAttention, TransformerBlock
from heedful.progress import Step
from heedful.records import Record
from heedful.stats import Estimate
from heedful.studies.heads.sample import Row, Sample

IGNORE = -100
BLOCK = 32
"""Neighbouring tokens that make one observation, where there are few rows."""

Kernel: TypeAlias = Callable[..., Tensor]
Wrap: TypeAlias = Callable[[int, Kernel], Kernel]
"""Gets the number of a layer and its kernel; returns the kernel to use."""


@dataclass(frozen=True, eq=False)
class LossBatch:
    """All rows of a sample side by side, with what each token should be followed by."""

    tokens: Int[Tensor, "rows time"]
    targets: Int[Tensor, "rows time"]
    """`IGNORE` after the end of a row, and in the given part of a translation."""

    @classmethod
    def of(cls, sample: Sample, *, most: int | None = None) -> LossBatch:
        """Lay out the rows; padding stands at the end, where nothing before it sees it."""
        rows = sample.rows if most is None else sample.rows[:most]
        longest = max(len(row.tokens) for row in rows) - 1
        tokens = torch.zeros(len(rows), longest, dtype=torch.int64)
        targets = torch.full((len(rows), longest), IGNORE, dtype=torch.int64)
        for place, row in enumerate(rows):
            ids = torch.tensor(row.tokens)
            tokens[place, : len(ids) - 1] = ids[:-1]
            start = 0 if row.source is None else row.source[1]
            targets[place, start : len(ids) - 1] = ids[start + 1 :]
        return cls(tokens, targets)

    def losses(self, decoder: Decoder) -> Float[Tensor, " learned"]:
        """Return −ln p of every token that counts, row by row."""
        learned = self.targets != IGNORE
        hidden = decoder.hidden(self.tokens)[learned]
        return functional.cross_entropy(
            decoder.logits(hidden).float(), self.targets[learned], reduction="none"
        )

    def estimate(self, losses: Float[Tensor, " learned"]) -> Estimate:
        """Return the mean over tokens that count, with an interval over rows (or blocks)."""
        counts = (self.targets != IGNORE).sum(dim=1)
        values = losses.detach().double()
        if len(counts) >= BLOCK // 4:
            # Every token counts the same: a row counts by its length, as in the mean over all.
            row = torch.arange(len(counts)).repeat_interleave(counts)
            sums = torch.zeros(len(counts), dtype=torch.float64).index_add_(0, row, values)
            return Estimate.of((sums / counts.double().mean()).numpy())
        return Estimate.over_blocks(values.numpy(), BLOCK)


@contextmanager
def wrapped(decoder: Decoder, wrap: Wrap) -> Iterator[None]:
    """Use other kernels inside this block."""
    layers = attentions(decoder)
    before = [layer.kernel for layer in layers]
    try:
        for number, layer in enumerate(layers):
            layer.kernel = wrap(number, layer.kernel)
        yield
    finally:
        for layer, kernel in zip(layers, before, strict=True):
            layer.kernel = kernel


def attentions(decoder: Decoder) -> list[SelfAttention]:
    """Return the attention of each layer."""
    layers = []
    for block in decoder.blocks:
        assert isinstance(block, TransformerBlock)
        layers.append(block.attention)
    return layers


VARIANCE = 0.5
"""Of the length of a key, as in the sheets."""
WORK = 1e12
"""Operations of leaving out heads and disturbing layers: half a minute on two cores, or so."""
FOR_HEADS = 0.6
"""The share of them for leaving out heads."""
FEWEST_HEADS = 8
"""Heads that are left out whatever it takes: the largest of one is not the largest."""
DRAWS = 3
"""Of the disturbance, for each layer and row."""
NOISY_ROWS = 2
"""Rows on which the change of c is measured."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerRobustness(Record):
    """What disturbed keys do to one layer."""

    layer: int
    heads: tuple[float, ...]
    """Relative change of c for each head."""
    head: Estimate
    """Its mean over heads and draws."""
    shared: Estimate
    """Relative change of what the layer adds, all heads seeing the same lengths."""
    independent: Estimate
    """The same with lengths drawn for each head."""
    loss: Estimate | None
    """Change of the loss when this layer alone is disturbed; None where the work did not allow."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadAblation(Record):
    """What leaving out one head does to the loss."""

    layer: int
    head: int
    name: str
    """As it is called everywhere."""
    first_order: float
    """Estimated from the gradient."""
    exact: Estimate | None
    """Measured; None where the work did not allow."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Robustness(Record):
    """The whole model."""

    variance: float
    """Of the length of each key."""
    loss: Estimate
    """Without any change."""
    layers: tuple[LayerRobustness, ...]
    means: dict[str, Estimate]
    """Relative changes of c, means over layers: `head`, `shared`, `independent`."""
    everywhere: Estimate
    """Change of the loss when every layer is disturbed."""
    ablations: tuple[HeadAblation, ...]
    """Every head, layer by layer."""
    measured: int
    """Ablations that were measured rather than estimated."""
    agreement: float | None
    """Correlation of first order and measurement, over the measured heads."""


class NoiseWatch:
    """Measures, while the model reads, what disturbed keys do to heads and layers."""

    def __init__(self, decoder: Decoder, *, seed: int = 0, draws: int = DRAWS) -> None:
        self.outputs = [layer.output for layer in attentions(decoder)]
        self.generator = torch.Generator().manual_seed(seed)
        self.draws = draws
        layers = range(decoder.config.layers)
        self.heads: list[list[Float[Tensor, " heads"]]] = [[] for _ in layers]
        self.shared: list[list[float]] = [[] for _ in layers]
        self.independent: list[list[float]] = [[] for _ in layers]

    def see(self, layer: int, trace: LayerTrace, _row: Row) -> None:
        """Disturb the keys of one layer a few times."""
        if len(self.shared[layer]) >= NOISY_ROWS * self.draws:
            return
        before = _read(trace, trace.weights.float())
        size = self._joined(layer, before)
        for _ in range(self.draws):
            for shared in (True, False):
                keys = disturbed(trace.keys, self.generator, shared=shared)
                change = _read(trace, trace.weights_of(keys, torch.float32)) - before
                joint = self._joined(layer, change) / size
                (self.shared if shared else self.independent)[layer].append(joint)
                if shared:
                    self.heads[layer].append(
                        (change.square().sum((0, 2, 3)) / before.square().sum((0, 2, 3))).sqrt()
                    )

    def _joined(self, layer: int, read: Float[Tensor, "batch heads time width"]) -> float:
        weight = self.outputs[layer].weight.detach().float()
        return float((read.transpose(1, 2).flatten(2) @ weight.T).norm())


def measure_robustness(
    decoder: Decoder,
    batch: LossBatch,
    watch: NoiseWatch,
    *,
    work: float = WORK,
    seed: int = 0,
    progress: Step | None = None,
) -> Robustness:
    """Return how robust a model is; what can be left out is, when the operations are used up."""
    forward = flops_per_token(decoder.config, batch.tokens.shape[1]) * batch.tokens.numel()
    passes = int(work / forward)
    with torch.no_grad():
        plain = batch.losses(decoder)
        everywhere = _noisy_losses(decoder, batch, seed, None) - plain
    first_order = _first_order(decoder, batch)
    heads = max(int(FOR_HEADS * passes), FEWEST_HEADS)
    ablations = _ablate(decoder, batch, plain, first_order, heads, progress)
    layer_losses = _layers(decoder, batch, plain, seed, max((passes - heads) // 2, 1))
    layers = tuple(
        LayerRobustness(
            layer=layer,
            heads=tuple(float(x) for x in torch.stack(watch.heads[layer]).mean(dim=0)),
            head=Estimate.of(torch.stack(watch.heads[layer]).mean(dim=1).numpy()),
            shared=Estimate.of(watch.shared[layer]),
            independent=Estimate.of(watch.independent[layer]),
            loss=layer_losses.get(layer),
        )
        for layer in range(decoder.config.layers)
    )
    exact = [(one.first_order, one.exact.value) for one in ablations if one.exact is not None]
    return Robustness(
        variance=VARIANCE,
        loss=batch.estimate(plain),
        layers=layers,
        means={
            "head": Estimate.of([one.head.value for one in layers]),
            "shared": Estimate.of([one.shared.value for one in layers]),
            "independent": Estimate.of([one.independent.value for one in layers]),
        },
        everywhere=batch.estimate(everywhere),
        ablations=ablations,
        measured=len(exact),
        agreement=_correlation(exact),
    )


def noisy_change(decoder: Decoder, batch: LossBatch, seed: int) -> tuple[float, float]:
    """Return the loss, and what disturbing the keys of every layer adds to it."""
    with torch.no_grad():
        plain = batch.losses(decoder)
        noisy = _noisy_losses(decoder, batch, seed, None)
    return float(plain.mean()), float((noisy - plain).mean())


def disturbed(
    keys: Float[Tensor, "batch heads time width"],
    generator: torch.Generator,
    *,
    shared: bool,
    variance: float = VARIANCE,
) -> Float[Tensor, "batch heads time width"]:
    """Return the keys with random lengths; `shared`: one factor for a token in all heads."""
    heads = 1 if shared else keys.shape[1]
    shape = (keys.shape[0], heads, keys.shape[2], 1)
    drawn = torch.randn(shape, generator=generator, dtype=torch.float64).to(keys.dtype)
    return keys * (1 + math.sqrt(variance) * drawn)


def _read(
    trace: LayerTrace, weights: Float[Tensor, "batch heads time keys"]
) -> Float[Tensor, "batch heads time width"]:
    group = trace.queries.shape[1] // trace.keys.shape[1]
    return weights @ trace.values.detach().float().repeat_interleave(group, dim=1)


def _noisy_losses(
    decoder: Decoder, batch: LossBatch, seed: int, only: int | None
) -> Float[Tensor, " learned"]:
    """Return the losses with disturbed keys, in one layer or in all; two draws are averaged."""
    generator = torch.Generator().manual_seed(seed + 1)

    def wrap(layer: int, kernel: Kernel) -> Kernel:
        if only is not None and layer != only:
            return kernel

        def noisy(queries: Tensor, keys: Tensor, values: Tensor, **settings: object) -> Tensor:
            return kernel(queries, disturbed(keys, generator, shared=True), values, **settings)

        return noisy

    with wrapped(decoder, wrap):
        return torch.stack([batch.losses(decoder) for _ in range(2)]).mean(dim=0)


def _layers(
    decoder: Decoder, batch: LossBatch, plain: Tensor, seed: int, most: int
) -> dict[int, Estimate]:
    changes: dict[int, Estimate] = {}
    # From both ends towards the middle: with little work, the layers that differ most.
    order = sorted(range(decoder.config.layers), key=lambda n: min(n, decoder.config.layers - n))
    for layer in order[:most]:
        with torch.no_grad():
            change = _noisy_losses(decoder, batch, seed, layer) - plain
        changes[layer] = batch.estimate(change)
    return changes


def _first_order(decoder: Decoder, batch: LossBatch) -> Float[Tensor, "layers heads"]:
    config = decoder.config
    gates = torch.ones(config.layers, config.attention.heads, requires_grad=True)

    def wrap(layer: int, kernel: Kernel) -> Kernel:
        return lambda *parts, **settings: (
            kernel(*parts, **settings) * gates[layer].view(1, -1, 1, 1)
        )

    with torch.enable_grad(), wrapped(decoder, wrap):
        loss = batch.losses(decoder).mean()
        (gradient,) = torch.autograd.grad(loss, gates)
    return -gradient.double()


def _ablate(
    decoder: Decoder,
    batch: LossBatch,
    plain: Float[Tensor, " learned"],
    first_order: Float[Tensor, "layers heads"],
    most: int,
    progress: Step | None,
) -> tuple[HeadAblation, ...]:
    layers, heads = first_order.shape
    exact: dict[int, Estimate] = {}
    order = first_order.abs().flatten().argsort(descending=True).tolist()
    for done, place in enumerate(order[:most]):
        with torch.no_grad():
            change = losses_without(decoder, batch, place // heads, place % heads) - plain
        exact[place] = batch.estimate(change)
        if progress is not None:
            progress(done + 1, min(most, len(order)))
    return tuple(
        HeadAblation(
            layer=place // heads,
            head=place % heads,
            name=head_name(place // heads, place % heads),
            first_order=float(first_order.flatten()[place]),
            exact=exact.get(place),
        )
        for place in range(layers * heads)
    )


def losses_without(
    decoder: Decoder, batch: LossBatch, layer: int, head: int
) -> Float[Tensor, " learned"]:
    """Return the losses when one head reads nothing."""

    def wrap(number: int, kernel: Kernel) -> Kernel:
        if number != layer:
            return kernel

        def silenced(*parts: Tensor, **settings: object) -> Tensor:
            read = kernel(*parts, **settings).clone()
            read[:, head] = 0
            return read

        return silenced

    with wrapped(decoder, wrap):
        return batch.losses(decoder)


def _correlation(pairs: list[tuple[float, float]]) -> float | None:
    if len(pairs) < 3:
        return None
    x, y = np.array(pairs).T
    if min(float(x.std()), float(y.std())) == 0.0:
        return None
    return float(np.corrcoef(x, y)[0, 1])
