"""The same small decoder, trained again and again with one thing changed.

One decoder that learns to translate the phrasebook is the base: two layers, four heads, LayerNorm
before each part, learned positions. Others differ from it in the norm, in the number of heads at
the same width, or in the positions. Every variant is trained from several seeds with the same
data, steps and settings; what is asked of each trained model is measured at once, and only these
numbers are kept.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from heedful.data.corpus import Pairs
from heedful.model import Decoder
from heedful.progress import Step
from heedful.records import Record
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
