"""How does the cost of each job grow with its size, in time and in memory?

    python benchmarks/bench_growth.py [--quick] [--only copyable decoding] [--figure FILE.png]

Every main job at four sizes and more, each size in a process of its own: processor seconds (other
programs hardly disturb them) and the memory that the work adds at its peak. The exponent is the
slope of a straight line through the logarithms; the slope between the two largest sizes beside it
tells whether the growth bends. `bound` is what must be paid, or what the naive way pays, and why.

Prints a table, then one line of JSON; stores benchmarks/results/growth.json and draws
docs/_static/growth.svg. `--quick` takes the three smallest sizes and stores nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # processor seconds of one thread

import numpy as np
import torch
from surroundings import surroundings

from heedful.attention.design import design_copy
from heedful.attention.distribution import study_noise
from heedful.attention.hull import copyable
from heedful.attention.keys import sphere
from heedful.attention.noise import GaussianKeys
from heedful.claims.judge import judge_claim
from heedful.claims.sheet import Claim
from heedful.generation import FastStep, Stops, generate
from heedful.model import Decoder, preset
from heedful.training import Compute, Schedule, TrainingConfig
from heedful.training.distributed import SingleProcess
from heedful.training.engine import Choice
from heedful.training.session import Session

RESULTS = Path(__file__).parent / "results" / "growth.json"
FIGURE = Path(__file__).parents[1] / "docs" / "_static" / "growth.svg"
LEAST_SECONDS = 0.2
"""Work is repeated until it has taken so long: the clock of a processor is coarse."""
BEND = 0.3
"""From so much between the two slopes on, the growth is said to bend."""

Work = Callable[[], object]


@dataclass(frozen=True)
class Job:
    """One job as its size grows."""

    name: str
    of: str
    """What the size counts."""
    sizes: tuple[int, ...]
    prepare: Callable[[int], Work]
    """Returns the work at a size; to prepare it is not measured."""
    bound: str
    """What the growth is to be compared with."""


def mixed(n: int, d: int) -> np.ndarray:
    """Return keys of which three quarters lie inside the hull of the others."""
    corners = sphere(max(2, n // 4), d, 0)
    shares = np.random.default_rng(0).dirichlet(np.ones(len(corners)), n - len(corners))
    return np.vstack([corners, shares @ corners])


def design(n: int, d: int) -> Work:
    """Return the design of a query that copies one of n keys."""
    keys = sphere(n, d, 0)
    return lambda: design_copy(keys, 0)


def noise(n: int, directions: int) -> Work:
    """Return a study of n keys, some of them noisy along one direction each."""
    means = np.eye(n, max(n, 8))
    keys = GaussianKeys.of(means, noisy=dict.fromkeys(range(directions), 0.5))
    return lambda: study_noise(keys, 8.0 * means[:2], draws=2_000)


def claims(count: int) -> Work:
    """Return the judging of claims with different scales, one in four of them false."""
    made = [
        Claim(
            id=str(place),
            keys="orthonormal",
            where={"n": 2 + place % 9},
            query=f"{round(0.5 + 0.01 * place, 2)} k_a",
            expect=(("alpha_i < alpha_a for all i != a", "alpha_a >= 0.9")[place % 4 == 0],),
        )
        for place in range(count)
    ]
    return lambda: [judge_claim(claim) for claim in made]


def claim_of_size(n: int) -> Work:
    """Return the judging of one claim about n keys, for a scale that grows."""
    claim = Claim(
        id="size",
        keys="orthonormal",
        where={"n": n, "beta": "large"},
        query="beta (k_a + k_b)",
        expect=("c ≈ (v_a + v_b)/2 within 0.02",),
    )
    return lambda: judge_claim(claim)


class RandomTokens:
    """The same random batch, always."""

    def __init__(self, vocabulary: int, rows: int, width: int) -> None:
        self.tokens = np.random.default_rng(0).integers(0, vocabulary, (rows, width + 1))
        self.targets = self.tokens[:, 1:].copy()
        self.tokens = self.tokens[:, :-1].copy()
        self.documents = np.zeros((rows, width), dtype=np.int64)

    def __len__(self) -> int:
        return 1_000

    def batch(self, _index: int) -> Any:
        """Return the batch."""
        return self


def training(width: int, context: int) -> Work:
    """Return a step of training with 2,048 tokens."""
    model = preset("small", vocabulary=256, context=context, width=width, layers=4)
    config = TrainingConfig(
        model=model,
        steps=100_000,
        schedule=Schedule(kind="constant", warmup=0),
        compute=Compute(precision="float32", compile=False, lanes=1),
    )
    choice = Choice(precision="float32", lanes=1, compiled=False)
    feed = RandomTokens(256, max(1, 2_048 // context), context)
    return Session(config, feed, SingleProcess(), choice).take_step


def decoding(rows: int, prompt: int) -> Work:
    """Return greedy decoding of 32 tokens after a prompt."""
    model = preset("small", vocabulary=256, context=prompt + 64, width=256, layers=4)
    decoder = Decoder(model, seed=0)
    step = FastStep(decoder)
    tokens = np.random.default_rng(0).integers(2, 256, (rows, prompt)).tolist()
    return lambda: generate(decoder, tokens, stops=Stops(tokens=32), step=step)


def answer(n: int) -> Work:
    """Return what the server of the page computes while a query is dragged over n noisy keys."""
    from heedful.web.attention_api import NoiseQuestion, _noise

    angles = 2 * np.pi * np.arange(n) / n
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1).tolist()
    question = NoiseQuestion(
        keys=circle, values=circle, noisy=0, variance=0.5, of=[0, 1], layers=[[[8.0, 8.0]]]
    )
    return lambda: _noise(question)


JOBS = (
    Job(
        "design",
        "keys n (d = 32)",
        (1_000, 4_000, 16_000, 64_000),
        lambda n: design(n, 32),
        "1: every key is looked at once",
    ),
    Job(
        "design",
        "dimensions d (n = 2,000)",
        (8, 32, 128, 512),
        lambda d: design(2_000, d),
        "1 to read the keys; 3 for a system of d equations",
    ),
    Job(
        "copyable",
        "keys n (d = 64)",
        (500, 1_000, 2_000, 4_000, 8_000),
        lambda n: (lambda keys: lambda: copyable(keys))(mixed(n, 64)),
        "2: each key against each, in matrix products. Bends up with the keys near the "
        "border, which need a programme of their own. One linear programme a key grows "
        "by more than 2",
    ),
    Job(
        "copyable",
        "dimensions d (n = 2,000)",
        (16, 32, 64, 128, 256),
        lambda d: (lambda keys: lambda: copyable(keys))(mixed(2_000, d)),
        "1 for products of all pairs, 3 and more for a programme a key. From 24 "
        "dimensions on directions are sought for all keys first, hence the step "
        "after the first size",
    ),
    Job(
        "noise",
        "keys n (1 noisy)",
        (64, 256, 1_024, 2_048),
        lambda n: noise(n, 1),
        "2: the covariance of the output has n² entries; 3 where the dimension grows "
        "too (d = n), for the axes of the noisiest key",
    ),
    Job(
        "noise",
        "noisy keys (n = 64)",
        (1, 2, 4, 8, 16),
        lambda m: noise(64, m),
        "1 by draws. Bends down after the first: one noisy direction is a quadrature, "
        "more of them would be exponential, and draws take over",
    ),
    Job(
        "claims", "number of claims", (25, 50, 100, 200, 400), claims, "1: each is judged by itself"
    ),
    Job(
        "claims",
        "keys n of one claim",
        (8, 16, 32, 64, 128),
        claim_of_size,
        "1 to 2 for weights and outputs of n keys; below that reading the claim costs most",
    ),
    Job(
        "training",
        "width (4 layers, 2,048 tokens)",
        (64, 128, 256, 512),
        lambda width: training(width, 128),
        "2: parameters grow as width². Below that while small products do not fill the processor",
    ),
    Job(
        "training",
        "context (2,048 tokens)",
        (64, 128, 256, 512, 1_024),
        lambda context: training(128, context),
        "0, and 1 for the attention of each token",
    ),
    Job(
        "decoding",
        "tokens of the prompt (1 row)",
        (64, 128, 256, 512, 1_024),
        lambda prompt: decoding(1, prompt),
        "0 for the weights, 1 for the prompt and the cache",
    ),
    Job(
        "decoding",
        "rows (prompt 16)",
        (1, 4, 16, 64),
        lambda rows: decoding(rows, 16),
        "below 1 while reading the weights costs most, then 1",
    ),
    Job(
        "page",
        "keys n of an answer",
        (4, 8, 16, 32, 64),
        answer,
        "1: weights and their distribution for n keys; below that the quadrature itself",
    ),
)


def peak_bytes() -> int:
    """Return the largest resident memory of this process since it was last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    return 0


def measure(place: int, size: int, pipe: Any) -> None:
    """Send processor seconds and added bytes of one job at one size."""
    torch.set_num_threads(1)
    work = JOBS[place].prepare(size)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = peak_bytes()
    began = time.process_time()
    work()  # the first time also warms up
    first, added = time.process_time() - began, peak_bytes() - before
    repeats = 0 if first > 10 * LEAST_SECONDS else math.ceil(LEAST_SECONDS / max(first, 1e-4))
    began = time.process_time()
    for _ in range(repeats):
        work()
    seconds = (time.process_time() - began) / repeats if repeats else first
    pipe.send((seconds, added))


def measured(place: int, size: int) -> tuple[float, int]:
    """Measure in a process of its own, so that no size profits from another."""
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=measure, args=(place, size, theirs))
    child.start()
    theirs.close()
    try:
        found: tuple[float, int] = ours.recv()
    finally:
        child.join()
    return found


def slope(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return the exponent: the slope of a line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(costs, 1e-9)), 1)[0])


def growth(place: int, quick: bool) -> dict[str, Any]:
    """Measure one job at all its sizes, and fit."""
    job = JOBS[place]
    sizes = job.sizes[:3] if quick else job.sizes
    found = [measured(place, size) for size in sizes]
    seconds, megabytes = [s for s, _ in found], [b / 2**20 for _, b in found]
    whole, last = slope(sizes, seconds), slope(sizes[-2:], seconds[-2:])
    grows = [(n, m) for n, m in zip(sizes, megabytes, strict=True) if m >= 1]
    return {
        "job": job.name,
        "in": job.of,
        "sizes": list(sizes),
        "processor_seconds": [float(f"{s:.3g}") for s in seconds],
        "MiB_added": [round(m, 1) for m in megabytes],
        "time_exponent": round(whole, 2),
        "at_the_end": round(last, 2),
        "bends": ("up" if last > whole else "down") if abs(last - whole) > BEND else "no",
        "memory_exponent": round(slope(*zip(*grows, strict=True)), 2) if len(grows) > 1 else None,
        "bound": job.bound,
    }


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table."""
    print(f"{'job':<10}{'grows in':<32}{'seconds':<30}{'exponent':>9}{'end':>7}{'memory':>8}")
    for row in rows:
        seconds = " ".join(f"{s:.3g}" for s in row["processor_seconds"])
        memory = "" if row["memory_exponent"] is None else f"{row['memory_exponent']:.2f}"
        print(
            f"{row['job']:<10}{row['in']:<32}{seconds:<30}{row['time_exponent']:>9.2f}"
            f"{row['at_the_end']:>7.2f}{memory:>8}"
        )


def draw(rows: list[dict[str, Any]], file: Path) -> None:
    """Draw seconds against size, one panel for each job, with slopes 1 and 2 in grey."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    names = list(dict.fromkeys(row["job"] for row in rows))
    figure = Figure(figsize=(10, 5.6), layout="constrained")
    panels = figure.subplots(2, 4, squeeze=False).ravel()
    for panel, name in zip(panels, names, strict=False):
        for row in (row for row in rows if row["job"] == name):
            label = f"{row['in']}: {row['time_exponent']:.1f}"
            panel.loglog(row["sizes"], row["processor_seconds"], "o-", ms=3.5, lw=1.2, label=label)
        low, high = panel.get_xlim()
        bottom, top = panel.get_ylim()
        for power, style in ((1, ":"), (2, "--")):
            line = [bottom, bottom * (high / low) ** power]
            panel.plot([low, high], line, style, color="0.7", lw=0.8, zorder=0)
        panel.set(xlim=(low, high), ylim=(bottom / 1.2, top * 4))
        panel.set_title(name, fontsize=10)
        panel.legend(fontsize=6, frameon=False, loc="upper left", handlelength=1.2)
        panel.tick_params(labelsize=7)
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_minor_formatter(NullFormatter())
    for panel in panels[len(names) :]:
        panel.remove()
    figure.supxlabel("size", fontsize=9)
    figure.supylabel("processor seconds (dotted: size, dashed: size²)", fontsize=9)
    file.parent.mkdir(exist_ok=True)
    figure.savefig(file, dpi=150)


def main() -> None:
    """Measure every job, print, store, draw."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="three sizes; nothing stored")
    parser.add_argument("--only", nargs="+", help="jobs to measure; nothing stored")
    parser.add_argument("--figure", type=Path, help="where to draw (a picture to look at)")
    chosen = parser.parse_args()
    machine = surroundings("scipy", "torch")
    rows = []
    for place, job in enumerate(JOBS):
        if chosen.only is None or job.name in chosen.only:
            rows.append(growth(place, chosen.quick))
            show(rows[-1:])
    print()
    show(rows)
    result = {
        "benchmark": "growth",
        "question": "How does the cost of each job grow with its size?",
        "machine": machine,
        "growth": rows,
    }
    print(json.dumps(result, ensure_ascii=False))
    if chosen.figure is not None:
        draw(rows, chosen.figure)
    if not chosen.quick and chosen.only is None:
        draw(rows, FIGURE)
        RESULTS.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
