"""What do weights in bfloat16 and int8 cost in quality?

    python benchmarks/bench_rounding.py [--stories stories260K.bin] [--steps 300] [--quick]

The loss per token of texts that a model has not been trained on, read token by token with the same
step that decodes (`FastStep`), in float32, bfloat16 and int8; beside it how often the likeliest
next token is the same, and the processor seconds of a token. Two models: a small decoder that is
trained here on the phrasebook, with its held-out sentences; and stories260K, with stories that it
tells itself in float32, so that what the loss rises by is the divergence of its probabilities.

Prints a table, then one line of JSON, and stores benchmarks/results/rounding.json.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from surroundings import surroundings

from heedful.data.synthetic.phrasebook import phrasebook
from heedful.generation import FastStep, Sampling, Stops, generate
from heedful.model import Decoder, load, preset
from heedful.training import Compute, Schedule, TrainingConfig
from heedful.training.distributed import SingleProcess
from heedful.training.engine import Choice
from heedful.training.session import Session

RESULTS = Path(__file__).parent / "results" / "rounding.json"
PRECISIONS = ("float32", "bfloat16", "int8")
ROWS, LENGTH = 16, 128
"""Texts that are read side by side, and their tokens."""


class Crops:
    """Random pieces of one long text, as bytes."""

    def __init__(self, text: bytes) -> None:
        self.bytes = np.frombuffer(text, dtype=np.uint8).astype(np.int64)

    def __len__(self) -> int:
        return 100_000

    def batch(self, index: int) -> Any:
        """Return rows that the number of the batch decides."""
        starts = np.random.default_rng(index).integers(0, len(self.bytes) - LENGTH - 1, ROWS)
        rows = np.stack([self.bytes[start : start + LENGTH + 1] for start in starts])
        return Rows(rows[:, :-1].copy(), rows[:, 1:].copy())


class Rows:
    """A batch."""

    def __init__(self, tokens: Any, targets: Any) -> None:
        self.tokens, self.targets, self.documents = tokens, targets, np.zeros_like(tokens)


def trained(steps: int) -> tuple[Decoder, torch.Tensor]:
    """Train a small decoder on the phrasebook; return it with rows of held-out sentences."""
    book = phrasebook(4_000, seed=0, held_out=200)
    texts = {
        name: "\n".join(f"{pair.french}\t{pair.english}" for pair in book.splits[name]).encode()
        for name in ("train", "test")
    }
    model = preset("small", vocabulary=256, context=LENGTH, width=128, layers=4)
    config = TrainingConfig(
        model=model,
        steps=steps,
        schedule=Schedule(kind="cosine", warmup=steps // 10),
        compute=Compute(precision="float32", compile=False, lanes=1),
    )
    choice = Choice(precision="float32", lanes=1, compiled=False)
    session = Session(config, Crops(texts["train"]), SingleProcess(), choice)
    for _ in range(steps):
        session.take_step()
    held_out = torch.from_numpy(Crops(texts["test"]).bytes)
    rows = held_out[: len(held_out) // LENGTH * LENGTH].view(-1, LENGTH)[:ROWS]
    return session.decoder.eval(), rows


def stories(path: str) -> tuple[Decoder, torch.Tensor]:
    """Return stories260K, with stories that it tells."""
    decoder = load(path).decoder
    beginning = 1  # the token that every story begins with
    told = generate(
        decoder, [[beginning]] * ROWS, method=Sampling(seed=0), stops=Stops(tokens=LENGTH - 1)
    )
    rows = [[beginning, *one.tokens] for (one,) in told.continuations]
    shortest = min(map(len, rows))
    return decoder, torch.tensor([row[:shortest] for row in rows])


@torch.inference_mode()
def losses(decoder: Decoder, rows: torch.Tensor) -> list[dict[str, Any]]:
    """Return loss, agreement and time of each precision on the same rows."""
    found, likeliest = [], {}
    for precision in PRECISIONS:
        step, cache = FastStep(decoder, precision), decoder.new_cache(batch=len(rows))
        total, choices = 0.0, []
        began = time.process_time()
        for place in range(rows.shape[1] - 1):
            logits = step(rows[:, place].contiguous(), cache)
            total += float(
                torch.nn.functional.cross_entropy(logits, rows[:, place + 1], reduction="sum")
            )
            choices.append(logits.argmax(dim=1))
        spent = time.process_time() - began
        count = rows[:, 1:].numel()
        likeliest[precision] = torch.stack(choices)
        same = likeliest[precision] == likeliest["float32"]
        found.append(
            {
                "precision": precision,
                "loss": round(total / count, 5),
                "perplexity": round(math.exp(total / count), 4),
                "loss_above_float32": round(total / count - found[0]["loss"], 5) if found else 0.0,
                "same_likeliest_token": round(float(same.double().mean()), 4),
                "tokens": count,
                "processor_ms_a_token": round(1e3 * spent / count, 4),
            }
        )
    return found


def main() -> None:
    """Measure both models, print, store."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--stories", help="stories260K.bin, with tok512.bin beside it")
    parser.add_argument("--steps", type=int, default=300, help="of training the small decoder")
    parser.add_argument("--quick", action="store_true", help="20 steps; nothing stored")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    machine = surroundings("torch")
    steps = 20 if chosen.quick else chosen.steps
    models = {f"4 × 128, trained for {steps} steps": trained(steps)}
    if chosen.stories:
        models["stories260K"] = stories(chosen.stories)
    records = [{"model": name, **row} for name, model in models.items() for row in losses(*model)]
    print(f"{'model':<32}{'precision':<11}{'loss':>9}{'above':>10}{'same':>8}{'ms':>9}")
    for row in records:
        print(
            f"{row['model']:<32}{row['precision']:<11}{row['loss']:>9.4f}"
            f"{row['loss_above_float32']:>10.5f}{row['same_likeliest_token']:>8.1%}"
            f"{row['processor_ms_a_token']:>9.4f}"
        )
    if not chosen.stories:
        print("stories260K: missing (give --stories stories260K.bin)")
    result = {
        "benchmark": "rounding",
        "question": "What do weights in bfloat16 and int8 cost in quality?",
        "machine": machine,
        "losses": records,
    }
    print(json.dumps(result, ensure_ascii=False))
    if not chosen.quick:
        RESULTS.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
