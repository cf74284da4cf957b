"""How fast is a training step, against models of the same shape by others?

One step is forward, backward, clipping and AdamW. Contenders take turns, step by step, so that
whatever else the machine does hits all of them alike; the figures are medians, and ratios of
medians. Sizes: S is the character model of the course (4 layers of 8 heads, 256 wide, 256 ids,
64 × 128 tokens), M is 6 layers of 8 heads, 512 wide, 8,000 ids, 16 × 128 tokens.

    python benchmarks/bench_training.py [--rounds 7] [--sizes S M] [--peers FOLDER]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import training_peers
import transformers
from surroundings import store, surroundings

from heedful.machine import bfloat16_gain, peak_flops
from heedful.model import DecoderConfig, flops_per_token, preset
from heedful.model.config import Dropout
from heedful.records import plain
from heedful.training import Compute, Schedule, TrainingConfig
from heedful.training.distributed import SingleProcess
from heedful.training.engine import Choice
from heedful.training.session import Session
from heedful.views.blocks import table
from heedful.views.terminal import print_blocks

RESULTS = Path(__file__).parent / "results" / "training.json"
CORES = len(os.sched_getaffinity(0))
SHAPES = {"S": (64, 128), "M": (16, 128)}
LANES, BFLOAT16 = f"{CORES} lanes", "bfloat16"
PEERS = {
    "gpt2": [training_peers.hugging_face_gpt2],
    "llama": [
        training_peers.hugging_face_llama,
        training_peers.litgpt,
        training_peers.x_transformers,
    ],
}
HOPELESS = 0.3
"""A precision whose products are so many times as fast is left out."""
Precision = Literal["float32", "bfloat16"]
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


def ours(
    config: DecoderConfig, rows: int, width: int, lanes: int, precision: Precision = "float32"
) -> Step:
    """Return our step, through everything that the loop does in one."""
    training = TrainingConfig(
        model=config,
        steps=100_000,
        schedule=Schedule(kind="constant", warmup=0),
        compute=Compute(precision=precision, compile=False, lanes=lanes),
    )
    choice = Choice(precision=precision, lanes=lanes, compiled=False)
    feed = RandomTokens(config.vocabulary, rows, width)
    return Session(training, feed, SingleProcess(), choice).take_step


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


def compare(size: str, family: str, dropout: float, given: argparse.Namespace) -> dict[str, Any]:
    """Race our step, in one lane and in several, against everybody's of the same shape."""
    torch.set_num_threads(CORES)
    rows, width = SHAPES[size]
    config = shape_of(size, family, dropout)
    arrays = RandomTokens(config.vocabulary, rows, width).batch(0)
    tokens, targets = torch.from_numpy(arrays.tokens), torch.from_numpy(arrays.targets)
    peers = [
        peer
        for peer in PEERS[family]
        if (given.peers or peer.__name__.startswith("hugging_face"))
        and not (dropout and peer is training_peers.litgpt)
    ]
    contenders, missing = {}, {}
    for peer in peers:
        try:
            contenders[peer.__name__] = peer(config, tokens, targets)
        except Exception as error:  # whatever another library does, the others are measured
            missing[peer.__name__] = f"{type(error).__name__}: {error}"[:200]
    found = list(contenders)
    contenders["one lane"] = ours(config, rows, width, 1)
    contenders[LANES] = ours(config, rows, width, CORES)
    if (gain := bfloat16_gain()) > HOPELESS:
        contenders[BFLOAT16] = ours(config, rows, width, CORES, "bfloat16")
    else:  # a step would take minutes
        missing[BFLOAT16] = f"its products are {gain:.2g} times as fast as float32's here"
    seconds = race(contenders, given.rounds)
    counted = rows * width
    operations = flops_per_token(config, width, training=True) * counted
    peak = peak_flops("float32", torch.get_num_threads())
    best = min(seconds["one lane"], seconds[LANES])
    best_peer = min(found, key=lambda name: seconds[name], default=None)
    fastest_peer = math.nan if best_peer is None else seconds[best_peer]
    return {
        "size": size,
        "family": family,
        "dropout": dropout,
        "tokens_per_second": {name: counted / taken for name, taken in seconds.items()},
        "ratios": {name: seconds[name] / best for name in found},
        "missing": missing,
        "best_peer": best_peer,
        "ratio_to_best": plain(fastest_peer / best),
        "ratio_bfloat16": plain(fastest_peer / seconds.get(BFLOAT16, math.nan)),
        "utilisation": operations / best / peak,
        "peak_gflops": peak / 1e9,
    }


def main() -> None:
    """Print the tables and store them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sizes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--peers", help="folder with litgpt and x-transformers, see training_peers")
    given = parser.parse_args()
    if given.peers:
        sys.path.insert(0, given.peers)
    transformers.logging.set_verbosity_error()
    rows = [
        compare(size, family, dropout, given)
        for size in given.sizes
        for family in ("gpt2", "llama")
        for dropout in (0.0, 0.1)
    ]
    shown = table(
        "A training step, times as fast as the best of the others",
        *("size", "family", "dropout", "best other", "float32", "bfloat16", "tokens/s", "of peak"),
        left=(0, 1, 3),
    )
    for row in rows:
        shown.row(
            row["size"],
            row["family"],
            f"{row['dropout']:g}",
            row["best_peer"] or "none",
            *(
                "–" if row[name] is None else f"{row[name]:.2f}"
                for name in ("ratio_to_best", "ratio_bfloat16")
            ),
            f"{max(row['tokens_per_second'][name] for name in ('one lane', LANES)):,.0f}",
            f"{row['utilisation']:.0%}",
        )
    print_blocks([shown], width=100)
    for name, reason in {k: v for row in rows for k, v in row["missing"].items()}.items():
        print(f"{name}: missing ({reason})")
    record = {
        "machine": surroundings("torch", "transformers"),
        "rounds": given.rounds,
        "steps": rows,
    }
    store(RESULTS, record, compared)
    print(json.dumps(record))


def compared(record: dict[str, Any]) -> dict[str, float | None]:
    """Return how many times as fast as the best peer ours is, by shape and precision."""
    return {
        f"{row['size']}, {row['family']}, dropout {row['dropout']:g}: {precision}": row[name]
        for row in record["steps"]
        for precision, name in (("float32", "ratio_to_best"), ("bfloat16", "ratio_bfloat16"))
    }


if __name__ == "__main__":
    main()
