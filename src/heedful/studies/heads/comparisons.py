"""Statements of the course sheets, judged by small models that differ in one thing.

The norm. A footnote says: with pre-layernorm, norms of keys cannot be too different. A key is
k = W x̂, where x̂ = g ⊙ LN(x) + b comes from a normalised stream (pre-norm). LN(x) lies on a
sphere, which bounds ‖k‖ from above. From below nothing does: W takes the width of the model to the
width of a head, so it has a kernel, and the sphere meets it. Two streams of one norm may so have
keys of norm 0 and of the largest norm there is; both are constructed here for a trained head. With
post-norm the stream between layers is normalised as well: only the first layer sees raw
embeddings. What bounds the ratio is QK-norm: √d · min|g| ≤ ‖k‖ ≤ √d · max|g|. What is left is a
question of fact: after training, are norms more alike with pre-norm, and do their differences move
the weights less? The same model is trained all three ways.

The number of heads. Does having more heads at the same width reduce the variance, as the sheet's
summary says? The same model is trained with 1, 2, 4 and 8 heads at one width. Then the lengths of
its keys are made uncertain, as in the sheet (ξ ~ N(0, ½)), and what each layer adds to the stream
is compared with what it adds otherwise:

    variance = E‖Δ‖² / E‖layer‖²

The answer is the slope of ln variance over log₂ heads: one line a seed, the mean of the slopes
with its interval. Heads see the same lengths (as in the sheet), or draw their own.

The positions. What does a model trained with each scheme know about order?
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.model import Decoder
from heedful.model.decoder import TransformerBlock
from heedful.records import Record, Word
from heedful.stats import Estimate
from heedful.studies.heads.order import OrderTest
from heedful.studies.heads.small_models import FAMILIES, Family, SmallModel


@dataclass(frozen=True, eq=False, kw_only=True)
class Finding(Record):
    """A statement of a course sheet, and what the study says of it."""

    name: str
    """Short, for tables."""
    says: str
    """The statement, in our words."""
    verdict: Word
    """In the words of the claims."""
    statement: str
    """Why, with its numbers."""
    estimate: Estimate | None = None
    """The number that decides, where one does."""


def sign_verdict(estimate: Estimate) -> Word:
    """Judge "this is below zero" by an interval: all of it, none of it, or neither.

    >>> sign_verdict(Estimate(value=-2.0, low=-3.0, high=-1.0, count=5))
    'supported'
    """
    if estimate.high < 0:
        return "supported"
    return "refuted" if estimate.low >= 0 else "undecided"


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
    groups = _family(models, "norm")
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
    assert isinstance(block, TransformerBlock)
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
    basis: Tensor = torch.linalg.qr(torch.cat([ones, everything[:, 1:]], dim=1)).Q[:, 1:]
    return basis


def _family(models: Sequence[SmallModel], family: Family) -> dict[str, list[SmallModel]]:
    """Return the models of each variant of a family, in the order of their seeds."""
    return {
        name: sorted(
            (model for model in models if model.name == variant), key=lambda model: model.seed
        )
        for name, variant in FAMILIES[family].items()
    }


def _variant(name: str, models: Sequence[SmallModel]) -> NormVariant:
    measured = ("loss", "spread", "first_spread", "largest_ratio", "effect", "centred_effect")
    return NormVariant(
        name=name,
        widest_ratio=max(model.widest_ratio for model in models),
        **{field: _over_seeds(models, field) for field in measured},
    )


def _over_seeds(models: Sequence[SmallModel], field: str) -> Estimate:
    return Estimate.of([getattr(model, field) for model in models])


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
            f"{witness.layer}, and {witness.kernel} directions have keys as short as the last"
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


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadCount(Record):
    """One number of heads, over seeds."""

    heads: int
    loss: Estimate
    shared: Estimate
    """Variance of the layer, all heads seeing the same lengths."""
    independent: Estimate
    """Variance of the layer, lengths drawn for each head."""
    single: Estimate
    """Variance of single heads."""
    loss_change: Estimate
    """What the disturbance adds to the loss."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadCounts(Record):
    """More heads at the same width."""

    counts: tuple[HeadCount, ...]
    width: int
    shared_slope: Estimate
    """Change of ln variance for twice as many heads."""
    independent_slope: Estimate
    loss_slope: Estimate
    """Change of what the disturbance adds to the loss, for twice as many heads."""
    findings: tuple[Finding, ...]


def compare_heads(models: Sequence[SmallModel], width: int) -> HeadCounts:
    """Compare the numbers of heads, and judge the summary."""
    groups = _family(models, "heads")
    levels = [math.log2(int(count)) for count in groups]
    seeds = min(len(group) for group in groups.values())
    shared, independent, change = (
        Estimate.of_slope(
            levels, [[value(model) for model in group[:seeds]] for group in groups.values()]
        )
        for value in (
            lambda model: math.log(model.shared_variance),
            lambda model: math.log(model.independent_variance),
            lambda model: model.loss_change,
        )
    )
    return HeadCounts(
        counts=tuple(_count(int(heads), group) for heads, group in groups.items()),
        width=width,
        shared_slope=shared,
        independent_slope=independent,
        loss_slope=change,
        findings=(
            _finding(
                "variance of the layer",
                "More heads at the same width reduce the variance that uncertain lengths of keys "
                "cause.",
                shared,
                _factor(shared),
            ),
            _finding(
                "heads with noise of their own",
                "The same, when each head has lengths of its own.",
                independent,
                _factor(independent),
            ),
            _finding(
                "change of the loss",
                "More heads at the same width make the loss more robust to uncertain lengths.",
                change,
                f"each doubling of the heads changes what the disturbance adds to the loss by "
                f"{change.value:+.3f} ({change.low:+.3f} to {change.high:+.3f}, "
                f"{change.count} seeds)",
            ),
        ),
    )


def _count(heads: int, group: Sequence[SmallModel]) -> HeadCount:
    return HeadCount(
        heads=heads,
        loss=_over_seeds(group, "loss"),
        shared=_over_seeds(group, "shared_variance"),
        independent=_over_seeds(group, "independent_variance"),
        single=_over_seeds(group, "head_variance"),
        loss_change=_over_seeds(group, "loss_change"),
    )


def _factor(logs: Estimate) -> str:
    value, low, high = (math.exp(min(x, 700.0)) for x in (logs.value, logs.low, logs.high))
    return (
        f"each doubling of the heads multiplies the variance by {value:.2f} "
        f"(95 % interval {low:.2f} to {high:.2f}, {logs.count} seeds)"
    )


def _finding(name: str, says: str, estimate: Estimate, statement: str) -> Finding:
    return Finding(
        name=name,
        says=says,
        verdict=sign_verdict(estimate),
        statement=statement,
        estimate=estimate,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Scheme(Record):
    """One scheme, over seeds."""

    name: str
    loss: Estimate
    r2: tuple[Estimate, ...]
    """Of the probe: before the first layer, then after each; over seeds."""
    mean_error: tuple[Estimate, ...]
    """In tokens, at the same depths."""
    tests: tuple[OrderTest, ...]
    """With the causal mask and without it."""

    @property
    def last(self) -> Estimate:
        """R² after the last layer."""
        return self.r2[-1]


@dataclass(frozen=True, eq=False, kw_only=True)
class Schemes(Record):
    """All schemes."""

    schemes: tuple[Scheme, ...]
    length: int
    """Positions that the probe tells apart."""
    findings: tuple[Finding, ...]


def compare_schemes(models: Sequence[SmallModel]) -> Schemes:
    """Compare the schemes of positions."""
    schemes = tuple(_scheme(*group) for group in _family(models, "positions").items())
    return Schemes(
        schemes=schemes,
        length=models[0].probe.length,
        findings=_findings(next(one for one in schemes if one.name == "none")),
    )


def _scheme(name: str, models: Sequence[SmallModel]) -> Scheme:
    depths = range(len(models[0].probe.r2))
    return Scheme(
        name=name,
        loss=_over_seeds(models, "loss"),
        r2=tuple(
            Estimate.of([model.probe.r2[depth].value for model in models]) for depth in depths
        ),
        mean_error=tuple(
            Estimate.of([model.probe.mean_error[depth] for model in models]) for depth in depths
        ),
        tests=next(model.order for model in models if model.order),
    )


def _findings(none: Scheme) -> tuple[Finding, ...]:
    masked = next(test for test in none.tests if test.masked)
    free = next(test for test in none.tests if not test.masked)
    return (
        Finding(
            name="equivariant, no mask",
            says="Without positions and without a mask, a trained model is "
            "permutation-equivariant.",
            verdict="supported" if free.holds else "refuted",
            statement=free.statement,
        ),
        Finding(
            name="equivariant, causal",
            says="Without positions, a trained decoder is permutation-equivariant.",
            verdict="supported" if masked.holds else "refuted",
            statement=f"the causal mask tells tokens apart: {masked.statement}",
        ),
        Finding(
            name="order without positions",
            says="Without positions, a decoder does not know where a token stands.",
            verdict=(
                "refuted"
                if none.last.low > 0
                else "supported"
                if none.last.high < 0.05
                else "undecided"
            ),
            statement=(
                f"a linear probe explains {none.last.value:.0%} of the variance of the position "
                f"after the last layer (95 % interval {none.last.low:.0%} to {none.last.high:.0%}, "
                f"{none.last.count} seeds; off by {none.mean_error[-1].value:.1f} tokens)"
            ),
            estimate=none.last,
        ),
    )
