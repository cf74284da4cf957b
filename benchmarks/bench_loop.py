"""What does the training loop gain over the course's, and what does it cost beside its gradients?

    python benchmarks/bench_loop.py [--tatoeba fra.txt.gz --wiki wiki.txt] [--parts rows loop ...]

Five parts; where time counts, the contenders take turns, so that whatever
else the machine does hits all of them alike:

- **rows**: real tokens (no padding) a second. The course's starter gives each text a row of 128
  characters, filled up with padding; text that it pretrains on is first cut at a random length
  of 4 to 112. The model and the data are the same: 4 layers of 8 heads, 256 wide.
- **loop**: what data, clipping, metrics, TensorBoard and a progress hook add to bare gradients
  and steps, inside a real run.
- **target**: steps and processor seconds until a held-out loss. AdamW gets the course's settings
  at the best of three rates; what it reaches is the target. Muon gets a half of its steps, a
  third, a quarter.
- **precision**: what bfloat16 costs in loss. The same training, seed for seed, in both.
- **checkpoint**: of thirty million parameters.

`target` and `precision` count processor seconds: other work on the machine does not disturb them.

Without files, the embedded corpora are used.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from surroundings import surroundings
from torch.nn import functional

from heedful.data.batches import Batches, Sequences, packed, shuffled
from heedful.model import Decoder, DecoderConfig, parameter_count, preset
from heedful.model.config import Dropout
from heedful.positions.encodings import Rotary
from heedful.studies.text_training import prepare
from heedful.training import Compute, Hooks, Optimiser, Schedule, TrainingConfig, train
from heedful.training.checkpoint import save
from heedful.training.distributed import SingleProcess
from heedful.training.engine import Choice
from heedful.training.feed import IGNORE, Feed, rows_of
from heedful.training.folder import read_metrics
from heedful.training.loss import held_out_loss
from heedful.training.session import Session
from heedful.views.blocks import table
from heedful.views.terminal import print_blocks

RESULTS = Path(__file__).parent / "results" / "loop.json"
CORES = len(os.sched_getaffinity(0))
WIDTH, ROWS = 128, 32
LONGEST = 8_192
"""Tokens of a text that is read whole, before anybody cuts it."""
SHORTEST_CUT, LONGEST_CUT = 4, WIDTH * 7 // 8
RATES = (6e-4, 2e-3, 6e-3)
"""Of AdamW: the course fine-tunes at the first and pretrains at the last."""
SHARES = (2, 3, 4)
"""Muon gets one of so many parts of AdamW's steps."""
PRECISIONS: tuple[Literal["float32", "bfloat16"], ...] = ("float32", "bfloat16")


@dataclass(frozen=True)
class Scale:
    """How large the trainings of `target` and `precision` are."""

    steps: int
    """Of AdamW, and of both precisions."""
    seeds: int
    width: int
    """Of the model."""
    jobs: int
    """Trainings at a time."""


@dataclass(frozen=True)
class Trial:
    """One training of `target` or `precision`."""

    model: DecoderConfig
    seed: int
    steps: int
    optimiser: Optimiser
    precision: Literal["float32", "bfloat16"] = "bfloat16"


@dataclass(frozen=True)
class End:
    """What came of it."""

    trial: Trial
    loss: float
    """On the texts that were held out."""
    processor_seconds: float
    curve: list[float]
    """The loss of each step."""


@dataclass(frozen=True)
class Arrays:
    """One batch."""

    tokens: Any
    targets: Any
    documents: Any


class PaddedRows:
    """One text a row, cut at the width and filled up with padding, as the course's starter does."""

    def __init__(self, sequences: Sequences, *, cut: bool) -> None:
        """`cut`: at a random length of 4 to 112 first, anew for every row."""
        self.sequences, self.cut = sequences, cut

    def __len__(self) -> int:
        return len(self.sequences) // ROWS

    def batch(self, index: int) -> Arrays:
        """Return batch `index`."""
        epoch, place = divmod(index, len(self))
        chosen = shuffled(len(self.sequences), 0, epoch)[place * ROWS : (place + 1) * ROWS]
        draw = np.random.default_rng([epoch, place])
        tokens = np.zeros((ROWS, WIDTH), dtype=np.int64)
        targets = np.full((ROWS, WIDTH), IGNORE, dtype=np.int64)
        documents = np.full((ROWS, WIDTH), -1, dtype=np.int64)
        for row, member in enumerate(chosen):
            start, end = self.sequences.starts[member : member + 2]
            text = self.sequences.tokens[start:end]
            if self.cut:
                text = text[: draw.integers(SHORTEST_CUT, LONGEST_CUT + 1)]
            steps = min(len(text) - 1, WIDTH)
            tokens[row, :steps] = text[:steps]
            targets[row, :steps] = text[1 : steps + 1]
            targets[row, : max(self.sequences.prompts[member] - 1, 0)] = IGNORE
            documents[row, :steps] = 0
        return Arrays(tokens, targets, documents)


def read(source: str, file: Path | None) -> tuple[str, Sequences, int]:
    """Return the name of a corpus, its texts as whole sequences of characters, and the ids."""
    data: dict[str, Any] = {"source": source, "size": 4_000, "width": LONGEST, "rows": 1}
    if file is not None:
        data = {"source": "files", "files": [str(file)], "width": LONGEST, "rows": 1}
    made = prepare({"steps": 1_000, "data": data, "model": {"preset": "a5"}})
    return file.name if file else source, made.batches.sequences, made.tokenizer.size


def shape(vocabulary: int, dropout: float) -> DecoderConfig:
    """Return the course's model."""
    rates = Dropout(embedding=dropout, attention=dropout, residual=dropout)
    return preset("a5", vocabulary=vocabulary, context=WIDTH, dropout=rates)


class Ours:
    """Our loop's step on packed rows, which counts the real tokens that it reads."""

    def __init__(self, model: DecoderConfig, feed: Feed, choice: Choice) -> None:
        config = TrainingConfig(
            model=model, steps=100_000, schedule=Schedule(kind="constant", warmup=0)
        )
        self.session = Session(config, feed, SingleProcess(), choice)
        self.real: list[int] = []

    def __call__(self) -> None:
        """Take a step."""
        self.real.append(self.session.take_step().real)


class Starter:
    """A plain loop: whole rows through the decoder, torch's own dropout, AdamW, clipping."""

    def __init__(self, model: DecoderConfig, feed: Feed) -> None:
        self.decoder, self.feed = Decoder(model, seed=0).train(), feed
        self.optimiser = torch.optim.AdamW(
            self.decoder.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1
        )
        self.real: list[int] = []

    def __call__(self) -> None:
        """Take a step."""
        batch = self.feed.batch(len(self.real))
        tokens, targets = torch.from_numpy(batch.tokens), torch.from_numpy(batch.targets)
        logits = self.decoder(tokens)
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.decoder.parameters(), 1.0)
        self.optimiser.step()
        float(loss.detach())
        self.real.append(int((batch.documents >= 0).sum()))


def rows_part(corpora: dict[str, Any], rounds: int) -> list[dict[str, Any]]:
    """Race packed rows against padded ones, on pairs and on text, with and without dropout."""
    found = []
    for kind, (name, sequences, vocabulary) in corpora.items():
        text = kind == "text"
        fitting = sequences.cut(WIDTH) if text else sequences.without_longer(WIDTH)
        rows = packed(fitting, width=WIDTH, rows=ROWS)
        paddings = {"whole texts": False, "random cut": True} if text else {"whole texts": False}
        for dropout in (0.0, 0.1):
            model = shape(vocabulary, dropout)
            contenders: dict[str, Any] = {
                f"padded, {way}": Starter(model, PaddedRows(sequences, cut=cut))
                for way, cut in paddings.items()
            }
            ways = [("float32", 1), ("float32", CORES), ("bfloat16", CORES)]
            contenders |= {
                f"packed, {precision}, {lanes} lanes": Ours(
                    model, rows, Choice(precision=precision, lanes=lanes, compiled=False)
                )
                for precision, lanes in ways
            }
            seconds = race(contenders, rounds)
            speeds = {
                way: statistics.mean(contenders[way].real) / taken for way, taken in seconds.items()
            }
            found.append(
                {
                    "corpus": f"{name} ({kind})",
                    "dropout": dropout,
                    "padding_share_of_packed_rows": rows.padding,
                    "real_tokens_per_second": speeds,
                    **_ratios(speeds),
                }
            )
    return found


def _ratios(speeds: dict[str, float]) -> dict[str, float]:
    """Return how many times as fast our best and our float32 loop are as the course's."""
    starter = [way for way in speeds if way.startswith("padded")][-1]
    exact = [value for way, value in speeds.items() if "float32" in way]
    best = [value for way, value in speeds.items() if way.startswith("packed")]
    return {
        "ratio_float32": max(exact) / speeds[starter],
        "ratio_best": max(best) / speeds[starter],
    }


def race(contenders: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Return the median seconds of a step of each contender, taken in turns."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, step in contenders.items():
            begun = time.perf_counter()
            step()
            if number:  # the first round warms up
                taken[name].append(time.perf_counter() - begun)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def loop_part(sequences: Sequences, vocabulary: int, rounds: int) -> dict[str, float]:
    """Return what a real run adds to its gradients and steps; the two take turns."""
    rows = packed(sequences.cut(WIDTH), width=WIDTH, rows=ROWS)
    steps = 4 * rounds
    config = TrainingConfig(
        model=shape(vocabulary, 0.0),
        steps=steps,
        save_every=steps,
        schedule=Schedule(kind="constant", warmup=0),
        compute=Compute(precision="float32", lanes=CORES, compile=False),
    )
    choice = Choice(precision="float32", lanes=CORES, compiled=False)
    bare = Session(config, rows, SingleProcess(), choice)
    batch = rows_of(rows.batch(0))
    whole, alone, data = [], [], []
    left = 0.0

    def report(_progress: object) -> None:
        nonlocal left
        begun = time.perf_counter()
        whole.append(begun - left)
        bare.engine.gradients([batch], batch.learned)
        bare.optimisers.step(1.0)
        alone.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        rows_of(rows.batch(len(data)))
        data.append(time.perf_counter() - begun)
        left = time.perf_counter()

    with tempfile.TemporaryDirectory() as place:
        train(config, rows, Path(place) / "run", hooks=Hooks(report=report))
    bare.close()
    # Each step against the bare one beside it: what the machine does meanwhile cancels.
    added = [one / other - 1.0 for one, other in zip(whole[2:], alone[2:], strict=True)]
    return {
        "seconds_a_step": statistics.median(whole[2:]),
        "added_to_bare_steps": statistics.median(added),
        "loader_share": statistics.median(data) / statistics.median(whole[2:]),
        "steps": len(added),
    }


def checkpoint_part(sequences: Sequences, rounds: int) -> dict[str, float]:
    """Return the seconds that a checkpoint of thirty million parameters takes, proof included."""
    model = preset("small", vocabulary=21_000, context=WIDTH)
    rows = packed(sequences.cut(WIDTH), width=WIDTH, rows=1)
    config = TrainingConfig(model=model, steps=1_000)
    choice = Choice(precision="float32", lanes=1, compiled=False)
    session = Session(config, rows, SingleProcess(), choice)
    taken = []
    with tempfile.TemporaryDirectory() as place:
        for _ in range(rounds):
            session.take_step()
            begun = time.perf_counter()
            save(Path(place), session.contents(), model)
            taken.append(time.perf_counter() - begun)
    return {
        "parameters": parameter_count(model),
        "median_seconds": statistics.median(taken),
        "slowest_seconds": max(taken),
    }


def target_part(corpora: dict[str, Any], scale: Scale) -> list[dict[str, Any]]:
    """Return how much sooner Muon reaches what AdamW ends at, for each seed."""
    found = []
    for kind, (name, sequences, vocabulary) in corpora.items():
        course = shape(vocabulary, 0.0).changed(width=scale.width)
        ours = course.changed(positions=Rotary())
        muon = Optimiser(kind="muon", learning_rate=3e-3, matrix_learning_rate=1e-2)
        trials = [
            Trial(course, seed, scale.steps, Optimiser(learning_rate=rate))
            for seed in range(scale.seeds)
            for rate in RATES
        ]
        trials += [
            Trial(ours, seed, scale.steps // share, muon)
            for seed in range(scale.seeds)
            for share in SHARES
        ]
        ended = in_parallel(trials, *_divided(kind, sequences), scale.jobs)
        for seed in range(scale.seeds):
            mine = [end for end in ended if end.trial.seed == seed]
            found.append({"corpus": f"{name} ({kind})", "seed": seed, **_soonest(mine)})
    return found


def _soonest(ended: list[End]) -> dict[str, Any]:
    """Compare AdamW's best end with the fewest steps in which Muon gets there."""
    muon = [end for end in ended if end.trial.optimiser.kind == "muon"]
    best = min((end for end in ended if end not in muon), key=lambda end: end.loss)
    reaching = [end for end in muon if end.loss <= best.loss]
    soonest = min(reaching, key=lambda end: end.trial.steps, default=None)
    return {
        "target_loss": best.loss,
        "adamw_rate": best.trial.optimiser.learning_rate,
        "adamw_steps": best.trial.steps,
        "adamw_processor_seconds": best.processor_seconds,
        "muon_loss_after_steps": {end.trial.steps: end.loss for end in muon},
        "muon_steps": soonest and soonest.trial.steps,
        "muon_processor_seconds": soonest and soonest.processor_seconds,
        "ratio_of_steps": soonest and best.trial.steps / soonest.trial.steps,
        "ratio_of_processor_seconds": soonest
        and best.processor_seconds / soonest.processor_seconds,
    }


def precision_part(corpora: dict[str, Any], scale: Scale) -> list[dict[str, Any]]:
    """Return the losses of the same training in float32 and in bfloat16, for each seed."""
    found = []
    for kind, (name, sequences, vocabulary) in corpora.items():
        model = shape(vocabulary, 0.0).changed(width=scale.width, positions=Rotary())
        optimiser = Optimiser(learning_rate=2e-3)
        trials = [
            Trial(model, seed, scale.steps, optimiser, precision)
            for seed in range(scale.seeds)
            for precision in PRECISIONS
        ]
        ended = in_parallel(trials, *_divided(kind, sequences), scale.jobs)
        for wide, narrow in zip(ended[::2], ended[1::2], strict=True):
            apart = [abs(a - b) for a, b in zip(wide.curve, narrow.curve, strict=True)]
            found.append(
                {
                    "corpus": f"{name} ({kind})",
                    "seed": wide.trial.seed,
                    "steps": wide.trial.steps,
                    "held_out_loss_float32": wide.loss,
                    "held_out_loss_bfloat16": narrow.loss,
                    "bfloat16_is_higher_by": narrow.loss - wide.loss,
                    "training_losses_apart_mean": statistics.mean(apart),
                    "training_losses_apart_most": max(apart),
                    "processor_seconds_float32": wide.processor_seconds,
                    "processor_seconds_bfloat16": narrow.processor_seconds,
                }
            )
    return found


def _divided(kind: str, sequences: Sequences) -> tuple[Batches, Batches]:
    """Return the batches to learn, and 300 texts that are held out."""
    fitting = sequences.cut(WIDTH) if kind == "text" else sequences.without_longer(WIDTH)
    order = shuffled(len(fitting), 99, 0)
    rows = packed(fitting.take(order[300:]), width=WIDTH, rows=ROWS // 2)
    return rows, packed(fitting.take(order[:300]), width=WIDTH, rows=ROWS)


def in_parallel(trials: list[Trial], rows: Batches, kept: Batches, jobs: int) -> list[End]:
    """Train each, `jobs` at a time, in forked processes of one thread; return their ends."""
    torch.set_num_threads(1)
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), _inherit, (rows, kept))
    with pool:
        return list(pool.map(trained, trials))


_inherited: list[Batches] = []
"""In a forked process: the batches to learn, and those that are held out."""


def _inherit(*batches: Batches) -> None:
    _inherited[:] = batches


def trained(trial: Trial) -> End:
    """Train, and return the held-out loss at the end."""
    rows, kept = _inherited
    config = TrainingConfig(
        model=trial.model,
        steps=trial.steps,
        seed=trial.seed,
        optimiser=trial.optimiser,
        schedule=Schedule(warmup=max(trial.steps // 20, 2)),
        save_every=trial.steps,
        evaluate_every=trial.steps,
        log_every=1,
        tensorboard=False,
        compute=Compute(precision=trial.precision, lanes=1, compile=False),
    )
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run"
        result = train(config, rows, run, hooks=Hooks(evaluate=held_out_loss(kept)))
        curve = [line["loss"] for line in read_metrics(run) if "loss" in line]
    loss = result.evaluations[-1].values["loss"]
    print(
        f"  {trial.optimiser.kind} {trial.optimiser.learning_rate:g}, {trial.precision}, "
        f"seed {trial.seed}: {trial.steps} steps, loss {loss:.4f}, "
        f"{result.processor_seconds:.0f} s of a processor",
        flush=True,
    )
    return End(trial, loss, result.processor_seconds, curve)


def shown(title: str, rows: list[dict[str, Any]]) -> None:
    """Print rows as a table."""

    made = table(title, *[name.replace("_", " ") for name in rows[0]], left=(0,))
    for row in rows:
        made.row(*[_figure(value) for value in row.values()])
    print_blocks([made], width=140)


def _figure(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{name}: {_figure(item)}" for name, item in value.items())
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def main() -> None:
    """Measure the parts, print them and store them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tatoeba", type=Path, help="pairs; default: the phrasebook")
    parser.add_argument("--wiki", type=Path, help="a text a line; default: the biographies")
    parts = ("rows", "loop", "target", "precision", "checkpoint")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=300, help="of `target` and `precision`")
    parser.add_argument("--seeds", type=int, default=2, help="of `target` and `precision`")
    parser.add_argument("--width", type=int, default=128, help="of their model")
    parser.add_argument("--jobs", type=int, default=CORES, help="how many of them at a time")
    parser.add_argument(
        "--corpora", nargs="+", choices=("pairs", "text"), default=["pairs", "text"]
    )
    given = parser.parse_args()
    torch.set_num_threads(CORES)
    scale = Scale(given.steps, given.seeds, given.width, given.jobs)
    files = {"pairs": ("phrasebook", given.tatoeba), "text": ("biographies", given.wiki)}
    needed = {"pairs", "text"} if {"rows"} & set(given.parts) else set(given.corpora)
    needed |= {"text"} if {"loop", "checkpoint"} & set(given.parts) else set()
    corpora = {kind: read(*files[kind]) for kind in files if kind in needed}
    chosen = {kind: corpora[kind] for kind in given.corpora}
    makers: dict[str, Callable[[], Any]] = {
        "rows": lambda: rows_part(corpora, given.rounds),
        "loop": lambda: loop_part(*corpora["text"][1:], given.rounds),
        "target": lambda: target_part(chosen, scale),
        "precision": lambda: precision_part(chosen, scale),
        "checkpoint": lambda: checkpoint_part(corpora["text"][1], given.rounds),
    }
    made = {}
    for part in given.parts:
        made[part] = makers[part]()
        shown(part, made[part] if isinstance(made[part], list) else [made[part]])
        store(part, made[part])
    print(json.dumps(made))


def store(part: str, found: Any) -> None:
    """Write one part beside the others, which stay as they are; so do rows of other corpora."""
    record = json.loads(RESULTS.read_text("utf-8")) if RESULTS.is_file() else {}
    if part in ("target", "precision"):
        here = {row["corpus"] for row in found}
        found = [row for row in record.get(part, []) if row["corpus"] not in here] + found
    record |= {
        "question": "What does the training loop gain over the course's, and what does it cost?",
        "machine": surroundings("torch"),
        part: found,
    }
    RESULTS.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
