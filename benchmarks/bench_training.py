"""How fast is a training step, against Hugging Face's models of the same shape?

One step is forward, backward, clipping and AdamW. Contenders take turns, step by step, so that
whatever else the machine does hits all of them alike; the figures are medians, and ratios of
medians. Sizes: S is the character model of the course (4 layers of 8 heads, 256 wide, 256 ids,
64 × 128 tokens), M is 6 layers of 8 heads, 512 wide, 8,000 ids, 16 × 128 tokens.

    python benchmarks/bench_training.py [--rounds 7] [--sizes S M]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from rich.console import Console
from torch.nn import functional

from heedful.machine import examine
from heedful.model import DecoderConfig, flops_per_token, parameter_count, preset
from heedful.model.config import Dropout
from heedful.report.terminal import table
from heedful.training import Compute, Schedule, TrainingConfig, train
from heedful.training.checkpoint import save
from heedful.training.distribution import Alone
from heedful.training.session import Session
from heedful.training.trial import Choice, peak_flops

RESULTS = Path(__file__).parent / "results" / "training.json"
CORES = len(os.sched_getaffinity(0))
SHAPES = {"S": (64, 128), "M": (16, 128)}
Step = Callable[[], object]


@dataclass(frozen=True)
class Arrays:
    """One batch of random tokens."""

    tokens: Any
    targets: Any
    documents: Any


class RandomTokens:
    """The same random batch, always: data costs nothing here."""

    def __init__(self, vocabulary: int, rows: int, width: int) -> None:
        tokens = np.random.default_rng(0).integers(0, vocabulary, (rows, width + 1))
        documents = np.zeros((rows, width), dtype=np.int64)
        self.arrays = Arrays(tokens[:, :-1].copy(), tokens[:, 1:].copy(), documents)

    def __len__(self) -> int:
        return 1_000

    def batch(self, _index: int) -> Arrays:
        """Return the batch."""
        return self.arrays


def shape_of(size: str, family: str, dropout: float) -> DecoderConfig:
    """Return the decoder of a size, in the shape of GPT-2 or of Llama."""
    rates = Dropout(embedding=dropout, attention=dropout, residual=dropout)
    small = size == "S"
    if family == "gpt2":
        other: dict[str, Any] = {} if small else {"vocabulary": 8_000, "width": 512, "layers": 6}
        return preset("a5", dropout=rates, **other)
    if not small:
        return preset("small", context=128, dropout=rates)
    return preset(
        "small",
        vocabulary=256,
        context=128,
        width=256,
        layers=4,
        feed_forward={"activation": "swiglu", "width": 704},
        dropout=rates,
    )


def ours(config: DecoderConfig, rows: int, width: int, lanes: int) -> Step:
    """Return our step, through everything that the loop does in one."""
    training = TrainingConfig(
        model=config,
        steps=100_000,
        schedule=Schedule(kind="constant", warmup=0),
        compute=Compute(precision="float32", compile=False, lanes=lanes),
    )
    choice = Choice(precision="float32", lanes=lanes, compiled=False)
    feed = RandomTokens(config.vocabulary, rows, width)
    return Session(training, feed, Alone(), choice).take_step


def theirs(config: DecoderConfig, family: str, rows: int, width: int) -> Step:
    """Return the same step with a model of `transformers`."""
    common: dict[str, Any] = {"vocab_size": config.vocabulary, "attn_implementation": "sdpa"}
    rate = config.dropout.residual
    if family == "gpt2":
        peer: Any = transformers.GPT2Config(
            n_positions=config.context,
            n_embd=config.width,
            n_layer=config.layers,
            n_head=config.attention.heads,
            resid_pdrop=rate,
            embd_pdrop=rate,
            attn_pdrop=rate,
            **common,
        )
    else:
        peer = transformers.LlamaConfig(
            hidden_size=config.width,
            intermediate_size=config.hidden_width,
            num_hidden_layers=config.layers,
            num_attention_heads=config.attention.heads,
            max_position_embeddings=config.context,
            tie_word_embeddings=True,
            attention_dropout=rate,
            **common,
        )
    model = transformers.AutoModelForCausalLM.from_config(peer).train()
    arrays = RandomTokens(config.vocabulary, rows, width).batch(0)
    tokens, targets = torch.from_numpy(arrays.tokens), torch.from_numpy(arrays.targets).flatten()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))

    def step() -> float:
        optimiser.zero_grad()
        logits = model(input_ids=tokens, use_cache=False).logits
        loss = functional.cross_entropy(logits.flatten(0, 1), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        return float(loss.detach())

    return step


def race(contenders: dict[str, Step], rounds: int) -> dict[str, float]:
    """Return the median seconds of a step of each contender, taken in turns."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, step in contenders.items():
            begun = time.perf_counter()
            step()
            if number:  # the first round warms up
                taken[name].append(time.perf_counter() - begun)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def compare(size: str, family: str, dropout: float, rounds: int) -> dict[str, Any]:
    """Race our step, eager and in lanes, against theirs."""
    torch.set_num_threads(CORES)
    rows, width = SHAPES[size]
    config = shape_of(size, family, dropout)
    contenders = {
        "theirs": theirs(config, family, rows, width),
        "one lane": ours(config, rows, width, 1),
        f"{CORES} lanes": ours(config, rows, width, CORES),
    }
    seconds = race(contenders, rounds)
    tokens = rows * width
    operations = flops_per_token(config, width, training=True) * tokens
    peak = max(peak_flops() for _ in range(5))
    best = min(seconds["one lane"], seconds[f"{CORES} lanes"])
    return {
        "size": size,
        "family": family,
        "dropout": dropout,
        "tokens_per_second": {name: tokens / taken for name, taken in seconds.items()},
        "ratio_one_lane": seconds["theirs"] / seconds["one lane"],
        "ratio_lanes": seconds["theirs"] / seconds[f"{CORES} lanes"],
        "utilisation": operations / best / peak,
        "peak_gflops": peak / 1e9,
    }


def loop_overhead(rounds: int) -> dict[str, float]:
    """Return what a run with metrics and progress adds to its bare gradients and steps."""
    rows, width = SHAPES["S"]
    config = shape_of("S", "gpt2", 0.0)
    feed = RandomTokens(config.vocabulary, rows, width)
    steps = 2 * rounds
    training = TrainingConfig(
        model=config,
        steps=steps,
        save_every=steps,
        log_every=1,
        schedule=Schedule(kind="constant", warmup=0),
        compute=Compute(precision="float32", compile=False, lanes=1),
    )
    session = Session(training, feed, Alone(), Choice(precision="float32", lanes=1, compiled=False))
    from heedful.training.feed import rows_of

    batch = rows_of(feed.batch(0))

    def bare() -> None:
        session.engine.gradients([batch], batch.learned)
        session._clip()
        session.optimisers.step(1.0)

    data = race({"rows_of": lambda: rows_of(feed.batch(0))}, 20)["rows_of"]
    both = race({"bare": bare, "step": session.take_step}, 3 * rounds)
    with tempfile.TemporaryDirectory() as place:
        begun = time.perf_counter()
        train(training, feed, Path(place) / "run")
        whole = time.perf_counter() - begun
    return {
        "bare_seconds": both["bare"],
        "step_over_bare": both["step"] / both["bare"],
        "run_seconds_a_step": whole / steps,
        "data_share": data / both["step"],
    }


def checkpoint_cost() -> dict[str, float]:
    """Return the seconds that a checkpoint of thirty million parameters takes."""
    config = preset("small", vocabulary=21_000)
    feed = RandomTokens(config.vocabulary, 1, 8)
    training = TrainingConfig(model=config, steps=1_000)
    session = Session(training, feed, Alone(), Choice(precision="float32", lanes=1, compiled=False))
    session.take_step()
    taken = []
    with tempfile.TemporaryDirectory() as place:
        for _ in range(3):
            session.step += 1
            begun = time.perf_counter()
            save(Path(place), session.contents(), config)
            taken.append(time.perf_counter() - begun)
    return {"parameters": parameter_count(config), "seconds": statistics.median(taken)}


def main() -> None:
    """Print the tables and store them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sizes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    given = parser.parse_args()
    transformers.logging.set_verbosity_error()
    rows = [
        compare(size, family, dropout, given.rounds)
        for size in given.sizes
        for family in ("gpt2", "llama")
        for dropout in (0.0, 0.1)
    ]
    shown = table(
        "A training step, times as fast as Hugging Face's",
        *("size", "family", "dropout", "one lane", f"{CORES} lanes", "tokens/s", "of the peak"),
        left=(0, 1),
    )
    for row in rows:
        shown.add_row(
            row["size"],
            row["family"],
            f"{row['dropout']:g}",
            f"{row['ratio_one_lane']:.2f}",
            f"{row['ratio_lanes']:.2f}",
            f"{max(row['tokens_per_second'].values()):,.0f}",
            f"{row['utilisation']:.0%}",
        )
    Console(width=100).print(shown)
    loop, checkpoint = loop_overhead(given.rounds), checkpoint_cost()
    machine = examine()
    record = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": {"cpu": machine.cpu, "cores": machine.cores, "features": machine.cpu_features},
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "rounds": given.rounds,
        "steps": rows,
        "loop": loop,
        "checkpoint": checkpoint,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(json.dumps({"loop": loop, "checkpoint": checkpoint}))


if __name__ == "__main__":
    main()
