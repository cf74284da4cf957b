"""The same small decoder, trained again and again with one thing changed, to judge statements.

One decoder that learns to translate the phrasebook is the base: two layers, four heads, LayerNorm
before each part, learned positions. Others differ from it in the norm, in the number of heads at
the same width, or in the positions. Every variant is trained from several seeds with the same
data, steps and settings; what is asked of each trained model is measured at once, and only these
numbers are kept.

Statements of the course sheets are judged by these models.

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
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.data.corpus import Pairs
from heedful.model import Decoder
from heedful.model.decoder import TransformerBlock
from heedful.progress import Step
from heedful.records import Record, Word
from heedful.stats import Estimate
from heedful.studies.heads.keys import KeyWatch
from heedful.studies.heads.order import OrderTest, Probe, order_tests, probe_positions
from heedful.studies.heads.robustness import LossBatch, NoiseWatch, noisy_change
from heedful.studies.heads.sample import Sample, pair_rows
from heedful.studies.text_training import TextData, TextTraining, prepare, read_parts
from heedful.studies.translation.translator import format_of
from heedful.training import FinishedRun, run_path, train_to_end
from heedful.training.config import config_of
from heedful.workers import Pool

Family = Literal["norm", "heads", "positions"]
BASE = "base"
CHANGES: dict[str, dict[str, Any]] = {
    BASE: {},
    "post-norm": {"norm": {"placement": "post"}},
    "QK-norm": {"attention": {"qk_norm": True}},
    "1 head": {"attention": {"heads": 1}},
    "2 heads": {"attention": {"heads": 2}},
    "8 heads": {"attention": {"heads": 8}},
    "none": {"positions": {"kind": "none"}},
    "sinusoidal": {"positions": {"kind": "sinusoidal"}},
    "rotary": {"positions": {"kind": "rotary"}},
    "alibi": {"positions": {"kind": "alibi"}},
}
"""What each variant changes in the base."""
FAMILIES: dict[Family, dict[str, str]] = {
    "norm": {"pre-norm": BASE, "post-norm": "post-norm", "QK-norm": "QK-norm"},
    "heads": {"1": "1 head", "2": "2 heads", "4": BASE, "8": "8 heads"},
    "positions": {
        "none": "none",
        "sinusoidal": "sinusoidal",
        "learned": BASE,
        "rotary": "rotary",
        "alibi": "alibi",
    },
}
"""What each variant is called in the comparison to which it belongs."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much is trained."""

    seeds: int = 5
    """Trainings of each variant of norm and heads."""
    order_seeds: int = 3
    """Trainings of each variant of positions."""
    steps: int = 500
    """Steps of each training."""
    pairs: int = 4_000
    """Pairs of the phrasebook to learn from."""
    width: int = 64
    """Of the decoder."""
    workers: int = 1
    """Processes that train at the same time."""

    def wanted(self) -> tuple[tuple[str, int], ...]:
        """Return every training: variant and seed, each once."""
        order = set(FAMILIES["positions"].values())
        return tuple(
            (name, seed)
            for name in CHANGES
            for seed in range(self.order_seeds if name in order - {BASE} else self.seeds)
        )


QUICK = Plan(seeds=3, order_seeds=3, steps=200, pairs=2_000)
"""For a first look, and for the laboratory."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SmallModel(Record):
    """One trained variant, and what was measured."""

    name: str
    """What it changes in the base."""
    seed: int
    vocabulary: int
    """Tokens that it chooses from."""
    loss: float
    """Mean −ln p of a target token on held-out pairs."""
    spread: float
    """Of key norms, mean over heads."""
    first_spread: float
    """The same in the first layer only."""
    centred_spread: float
    largest_ratio: float
    """Largest over smallest norm of a key, median over heads."""
    widest_ratio: float
    """The same in the head where it is largest."""
    effect: float
    """Share of the reading that the differences of norm move, mean over heads."""
    centred_effect: float
    shared_variance: float
    """E‖Δ‖² / E‖·‖² of what a layer adds, keys of uncertain length, the same in all heads."""
    independent_variance: float
    """The same with lengths drawn for each head."""
    head_variance: float
    """E‖c' − c‖² / E‖c‖² of single heads."""
    loss_change: float
    """What the disturbance of all layers adds to the loss."""
    probe: Probe
    order: tuple[OrderTest, ...]
    """For the first seed of a variant."""


def training_of(plan: Plan, name: str, seed: int) -> dict[str, Any]:
    """Return the settings of one training, as a config file would hold them."""
    model: dict[str, Any] = {
        "width": plan.width,
        "layers": 2,
        "attention": {"heads": 4},
        "norm": {"kind": "layer"},
        "positions": {"kind": "learned"},
    }
    for part, change in CHANGES[name].items():
        known = model.get(part, {})
        model[part] = change if part == "positions" else {**known, **change}
    return {
        "model": model,
        "data": {
            "source": "phrasebook",
            "size": plan.pairs,
            "held_out": 60,
            "tokenizer": "bpe",
            "vocabulary": 400,
            "learn": "all",
            "width": 64,
            "rows": 16,
        },
        "steps": plan.steps,
        "seed": seed,
        "optimiser": {"learning_rate": 5e-3},
        "schedule": {"warmup": max(1, plan.steps // 10)},
        "evaluate_every": plan.steps,
        "save_every": plan.steps,
        "log_every": plan.steps,
        "tensorboard": False,
        # Fixed, so that the same plan gives the same numbers on one machine.
        "compute": {"precision": "float32", "lanes": 1, "compile": False, "threads": 1},
    }


def train_all(plan: Plan, progress: Step | None = None) -> list[SmallModel]:
    """Train every variant of the plan from its seeds, and measure each."""
    wanted = plan.wanted()
    if plan.workers == 1:
        models = []
        for done, (name, seed) in enumerate(wanted, start=1):
            models.append(train_one(plan, name, seed))
            if progress is not None:
                progress(done, len(wanted))
        return models
    with Pool(f"{__name__}:child_trainer", (plan,), workers=plan.workers) as pool:
        outcomes = pool.map(wanted, progress=progress)
    # What a child failed to train is trained here, where an error reaches the user.
    return [
        outcome.value if outcome.kind == "value" else train_one(plan, name, seed)
        for (name, seed), outcome in zip(wanted, outcomes, strict=True)
    ]


def child_trainer(plan: Plan) -> Callable[[tuple[str, int]], SmallModel]:
    """Return what a child process does with a variant and a seed."""
    return lambda variant: train_one(plan, *variant)


def train_one(plan: Plan, name: str, seed: int) -> SmallModel:
    """Train one variant from one seed and measure it."""
    _, sample = _material(plan)
    with tempfile.TemporaryDirectory(prefix="heedful-heads-") as folder:
        return measure(_trained(plan, name, seed, Path(folder)).decoder(), sample, name, seed)


def base_run(plan: Plan, folder: Path) -> Path:
    """Return a finished run of the base, for a study of its heads: trained, resumed, or found."""
    return _trained(plan, BASE, 0, folder).folder


def _trained(plan: Plan, name: str, seed: int, folder: Path) -> FinishedRun:
    material, _ = _material(plan)
    config = config_of(_values(plan, name, seed, material))
    return train_to_end(run_path(folder, name, config, {}), config, material.batches)


def _values(plan: Plan, name: str, seed: int, material: TextTraining) -> dict[str, Any]:
    values = training_of(plan, name, seed)
    values["model"] |= {
        "vocabulary": material.config.model.vocabulary,
        "context": material.config.model.context,
    }
    return values


@lru_cache(maxsize=1)
def _material(plan: Plan) -> tuple[TextTraining, Sample]:
    """Return what all trainings of a plan have in common, and pairs that none of them sees."""
    values = training_of(plan, BASE, 0)
    training = prepare(values)
    pairs, written = read_parts(TextData.of(values["data"])).held_out, format_of(training)
    assert isinstance(pairs, Pairs)
    assert written is not None
    rows = pair_rows(pairs, training.tokenizer, written, 24, training.config.model.context)
    return training, Sample(name=pairs.name, rows=rows)


def measure(decoder: Decoder, sample: Sample, name: str, seed: int) -> SmallModel:
    """Ask one trained model everything that the comparisons need."""
    keys, noise = KeyWatch(decoder, margins=0), NoiseWatch(decoder, seed=seed)
    for row in sample.rows:

        def see(layer: int, trace: Any, row: Any = row) -> None:
            keys.see(layer, trace, row)
            noise.see(layer, trace, row)

        with torch.no_grad():
            decoder.visit(row.tensor(), see)
    batch = LossBatch.of(sample)
    loss, change = noisy_change(decoder, batch, seed)
    norms = keys.keys().norms
    return SmallModel(
        name=name,
        seed=seed,
        vocabulary=decoder.config.vocabulary,
        loss=loss,
        spread=_mean(one.spread for one in norms),
        first_spread=_mean(one.spread for one in norms if one.layer == 0),
        centred_spread=_mean(one.centred_spread for one in norms),
        largest_ratio=float(np.median([one.largest_ratio for one in norms])),
        widest_ratio=max(one.largest_ratio for one in norms),
        effect=_mean(one.effect.value for one in norms),
        centred_effect=_mean(one.centred_effect.value for one in norms),
        shared_variance=_mean(value**2 for layer in noise.shared for value in layer),
        independent_variance=_mean(value**2 for layer in noise.independent for value in layer),
        head_variance=_mean(
            float(value.square().mean()) for layer in noise.heads for value in layer
        ),
        loss_change=change,
        probe=probe_positions(decoder),
        order=order_tests(decoder) if seed == 0 else (),
    )


def _mean(values: Iterator[float] | Any) -> float:
    return float(np.mean(list(values)))


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
