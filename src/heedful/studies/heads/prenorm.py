"""A footnote put to the test: with pre-layernorm, norms of keys cannot be too different.

A key is k = W x̂, where x̂ = g ⊙ LN(x) + b comes from a normalised stream (pre-norm). LN(x) lies
on a sphere, which bounds ‖k‖ from above. From below nothing does: W takes the width of the model
to the width of a head, so it has a kernel, and the sphere meets it. Two streams of one norm may
so have keys of norm 0 and of the largest norm there is; both are constructed here for a trained
head. With post-norm the stream between layers is normalised as well: only the first layer sees
raw embeddings. What bounds the ratio is QK-norm: √d · min|g| ≤ ‖k‖ ≤ √d · max|g|.

What is left is a question of fact: after training, are norms more alike with pre-norm, and do
their differences move the weights less? The same model is trained all three ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.model import Decoder
from heedful.model.blocks import Block
from heedful.records import Record
from heedful.stats import Estimate
from heedful.studies.heads.findings import Finding, sign_verdict
from heedful.studies.heads.small_models import FAMILIES, SmallModel

QUESTION_SPREAD = math.sqrt(0.5)
"""Spread of the key's length in the question to which the footnote belongs: Σ = ½ μμᵀ."""
TOO_DIFFERENT = (1 + QUESTION_SPREAD) / (1 - QUESTION_SPREAD)
"""Ratio of two lengths one standard deviation to either side, in that question: 5.8."""


@dataclass(frozen=True, eq=False, kw_only=True)
class NormVariant(Record):
    """One placement of the norm, over seeds."""

    name: str
    loss: Estimate
    spread: Estimate
    """Of key norms: standard deviation over mean."""
    first_spread: Estimate
    """In the first layer."""
    largest_ratio: Estimate
    """Largest over smallest norm in a head (median over heads)."""
    widest_ratio: float
    """In the head and seed where it is largest."""
    effect: Estimate
    """Share of the reading moved by giving all keys one norm."""
    centred_effect: Estimate
    """The same after the mean key is taken away, which softmax does not see."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Witness(Record):
    """Two streams of one norm whose keys have norms as different as can be."""

    layer: int
    head: int
    """Of keys."""
    stream_norms: tuple[float, float]
    """Norms of LN(x) for the two streams: equal."""
    key_norms: tuple[float, float]
    """Norms of their keys."""
    kernel: int
    """Dimensions of streams whose key is the bias alone."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PreNorm(Record):
    """The footnote, tested."""

    variants: tuple[NormVariant, ...]
    witness: Witness | None
    """In the model at hand; None where it has no pre-norm."""
    findings: tuple[Finding, ...]


def compare_norms(models: Sequence[SmallModel], witness: Witness | None) -> PreNorm:
    """Compare the placements, seed by seed, and judge the footnote."""
    groups = {
        name: [model for model in models if model.name == variant]
        for name, variant in FAMILIES["norm"].items()
    }
    variants = tuple(_variant(name, group) for name, group in groups.items())
    pre, post = groups["pre-norm"], groups["post-norm"]
    spread = _paired(pre, post, lambda model: math.log(model.spread))
    effect = _paired(pre, post, lambda model: math.log(model.centred_effect))
    return PreNorm(
        variants=variants,
        witness=witness,
        findings=(
            _cannot(variants[0], witness),
            _comparison(
                "more alike",
                "After training, norms of keys differ less with pre-norm than with post-norm.",
                "spread of key norms",
                spread,
            ),
            _comparison(
                "less effect",
                "After training, differences of norm move the weights less with pre-norm.",
                "share of the reading moved (centred keys)",
                effect,
            ),
        ),
    )


def find_witness(decoder: Decoder) -> Witness | None:
    """Construct two streams that the norm makes equally long and the keys do not."""
    config = decoder.config
    if config.norm.placement != "pre" or config.attention.qk_norm:
        return None
    layer = config.layers - 1
    block = decoder.blocks[layer]
    assert isinstance(block, Block)
    norm, qkv = block.attention_norm, block.attention.qkv
    assert isinstance(norm.weight, Tensor)
    rows = slice(config.query_width, config.query_width + config.head_width)
    matrix = qkv.weight.detach()[rows].double()
    basis = reachable_directions(config.width, config.norm.kind)
    seen = (matrix * norm.weight.detach().double()) @ basis
    right = torch.linalg.svd(seen, full_matrices=True).Vh
    shift = torch.zeros(config.head_width, dtype=torch.float64)
    bias = getattr(norm, "bias", None)
    if bias is not None:
        shift = shift + matrix @ bias.detach().double()
    if qkv.bias is not None:
        shift = shift + qkv.bias.detach()[rows].double()
    streams = [right[place] * math.sqrt(config.width) for place in (0, -1)]
    keys = [float((seen @ stream + shift).norm()) for stream in streams]
    lengths = [float((basis @ stream).norm()) for stream in streams]
    return Witness(
        layer=layer,
        head=0,
        stream_norms=(lengths[0], lengths[1]),
        key_norms=(keys[0], keys[1]),
        kernel=basis.shape[1] - int(torch.linalg.matrix_rank(seen)),
    )


def reachable_directions(width: int, kind: str) -> Float[Tensor, "width directions"]:
    """Return an orthonormal basis of what a norm can put out: for LayerNorm, mean 0."""
    everything = torch.eye(width, dtype=torch.float64)
    if kind != "layer":
        return everything
    ones = torch.full((width, 1), 1 / math.sqrt(width), dtype=torch.float64)
    made: Tensor = torch.linalg.qr(torch.cat([ones, everything[:, 1:]], dim=1)).Q[:, 1:]
    return made


def _variant(name: str, models: Sequence[SmallModel]) -> NormVariant:
    return NormVariant(
        name=name,
        loss=Estimate.of([model.loss for model in models]),
        spread=Estimate.of([model.spread for model in models]),
        first_spread=Estimate.of([model.first_spread for model in models]),
        largest_ratio=Estimate.of([model.largest_ratio for model in models]),
        widest_ratio=float(np.max([model.widest_ratio for model in models])),
        effect=Estimate.of([model.effect for model in models]),
        centred_effect=Estimate.of([model.centred_effect for model in models]),
    )


def _paired(
    one: Sequence[SmallModel],
    other: Sequence[SmallModel],
    value: Callable[[SmallModel], float],
) -> Estimate:
    """Return the mean difference over seeds that both were trained from."""
    others = {model.seed: model for model in other}
    return Estimate.of(
        [value(model) - value(others[model.seed]) for model in one if model.seed in others]
    )


def _cannot(pre: NormVariant, witness: Witness | None) -> Finding:
    measured = (
        f"in trained pre-norm models the largest key of a head is {pre.largest_ratio.value:.1f} "
        f"times as long as the smallest (median head; up to {pre.widest_ratio:.0f} times)"
    )
    argument = (
        "keys are read through a matrix with a kernel, so equal streams may have keys of norm 0"
    )
    if witness is not None:
        argument = (
            f"two streams of norm {witness.stream_norms[0]:.1f} have keys of norm "
            f"{witness.key_norms[0]:.3g} and {witness.key_norms[1]:.2g} in layer "
            f"{witness.layer + 1}, and {witness.kernel} directions have keys as short as the last"
        )
    ratios = [pre.widest_ratio]
    if witness is not None:
        ratios.append(witness.key_norms[0] / max(witness.key_norms[1], 1e-300))
    return Finding(
        name="cannot",
        says="With pre-layernorm, norms of keys cannot be too different.",
        verdict="refuted" if max(ratios) > TOO_DIFFERENT else "undecided",
        statement=f"{argument}; {measured}",
        estimate=pre.largest_ratio,
    )


def _comparison(name: str, says: str, what: str, logs: Estimate) -> Finding:
    ratio = Estimate(
        value=math.exp(logs.value),
        low=math.exp(max(logs.low, -700.0)),
        high=math.exp(min(logs.high, 700.0)),
        count=logs.count,
    )
    verdict = sign_verdict(logs)
    return Finding(
        name=name,
        says=says,
        verdict=verdict,
        statement=(
            f"{what}, pre-norm over post-norm: {ratio.value:.2f} "
            f"(95 % interval {ratio.low:.2f} to {ratio.high:.2f}, {ratio.count} seeds)"
        ),
        estimate=ratio,
    )
