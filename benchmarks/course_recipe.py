"""Train the course's recipe for a stretch, and see how far it is by then.

    python benchmarks/course_recipe.py --data FOLDER --run FOLDER --minutes 12

All of it takes the better part of a day of one core. Here it goes, with the learning rates of the
whole, as far as so many processor minutes reach; a copy of what it knows then is fine-tuned as the
course does and asked. Stopped, it goes on when the same command is given again.

Writes course.json into the folder of the run. `bench_knowledge.py --course` takes it from there.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from heedful.model import Decoder, parameter_count
from heedful.stats import wilson
from heedful.studies.knowledge.answers import Answerer, correct
from heedful.studies.knowledge.corpus import Asked, from_files
from heedful.studies.knowledge.plans import COURSE
from heedful.studies.knowledge.training import Material, Trained, fine_tune, prepare
from heedful.training import Hooks, TrainingConfig, resume, train, trained_decoder
from heedful.training.config import Compute
from heedful.training.distributed import SingleProcess
from heedful.training.engine import Choice
from heedful.training.folder import RunFolder, read_metrics
from heedful.training.hooks import Evaluation, Progress
from heedful.training.session import Session

RESULT = "course.json"
PRECISIONS = ("bfloat16", "float32")
EVERY = 10
"""Steps between two points of the loss."""
UNPADDED = COURSE.changed(layout="bucketed", finetuning=COURSE.finetuning.changed(rows=90))
"""For fine-tuning: as many questions in a batch as the course has, 256, but no padding, which
teaches nothing and would take two minutes in three."""


def configured(material: Material) -> TrainingConfig:
    """Return the course's pretraining, in the quickest way for one core here."""
    model = COURSE.shape.config(material.tokenizer.size, COURSE.context, "learned")
    config = COURSE.training(COURSE.pretraining, model, len(material.documents), 0)
    return config.changed(
        evaluate_every=EVERY,
        log_every=EVERY,
        save_every=5 * EVERY,
        compute=Compute(precision="bfloat16", lanes=1, compile=False),
    )


class Watch:
    """Notes loss and processor minutes along the way, and says when the time is over."""

    def __init__(self, run: Path, minutes: float) -> None:
        self.begun = time.process_time() - _worked(run)
        self.minutes = minutes
        self.losses: list[float] = []

    def report(self, progress: Progress) -> None:
        """Keep the loss of a step."""
        self.losses.append(progress.loss)

    def evaluate(self, _decoder: Decoder, step: int) -> dict[str, float]:
        """Return the point of the curve."""
        loss, self.losses = statistics.mean(self.losses or [float("nan")]), []
        minutes = (time.process_time() - self.begun) / 60
        print(f"step {step}: loss {loss:.3f} after {minutes:.2f} processor minutes", flush=True)
        return {"loss": loss, "processor_minutes": minutes}

    def over(self, evaluations: Sequence[Evaluation]) -> bool:
        """Return whether the time is over."""
        return evaluations[-1].values["processor_minutes"] >= self.minutes


def stretch(material: Material, run: Path, minutes: float) -> tuple[Evaluation, ...]:
    """Train, or go on, until the time is over; return the points on the way."""
    watch = Watch(run, minutes)
    hooks = Hooks(evaluate=watch.evaluate, stop=watch.over, report=watch.report)
    data = material.corpus.hashes
    if RunFolder(run).exists:
        result = resume(run, material.documents, data=data, hooks=hooks)
    else:
        result = train(configured(material), material.documents, run, data=data, hooks=hooks)
    if result.stopped_by not in ("evaluation", "steps"):
        raise SystemExit(f"stopped by {result.stopped_by}; the same command goes on")
    return result.evaluations


def asked(decoder: Decoder, material: Material, questions: Sequence[Asked]) -> dict[str, float]:
    """Return the share of right answers, with its interval."""
    answerer = Answerer.of(decoder, material)
    right = int(correct(questions, answerer.replies_to(questions)).sum())
    low, high = wilson(right, len(questions))
    return {"accuracy": right / len(questions), "low": low, "high": high}


def seconds_a_step(material: Material, precision: str, steps: int) -> float:
    """Return the median processor seconds of a step of pretraining."""
    choice = Choice(precision=precision, lanes=1, compiled=False)
    session = Session(configured(material), material.documents, SingleProcess(), choice)
    session.take_step()
    taken = []
    for _ in range(steps):
        begun = time.process_time()
        session.take_step()
        taken.append(time.process_time() - begun)
    session.close()
    return statistics.median(taken)


def measured(data: Path, folder: Path, minutes: float, steps: int) -> dict[str, Any]:
    """Train for a stretch, fine-tune, ask, and time both precisions."""
    corpus = from_files(data / "wiki.txt", data / "birth_places_train.tsv", data / "birth_dev.tsv")
    material = prepare(corpus, COURSE)
    config = configured(material)
    run = folder / "pretraining"
    points = stretch(material, run, minutes)
    found = trained_so_far(config, points)
    _write(folder, found)  # what follows takes as long again
    decoder = trained_decoder(run)
    before = Trained(decoder=decoder, run=run, seconds=0.0, pretraining_seconds=0.0, evaluations=())
    begun = time.process_time()
    tuned = fine_tune(
        prepare(corpus, UNPADDED), folder, label="fine-tuning", positions="learned", after=before
    )
    found["processor minutes of fine-tuning"] = (time.process_time() - begun) / 60
    for name, part in (
        ("accuracy then", corpus.test),
        ("held-out accuracy then", corpus.held_out),
        ("training accuracy then", corpus.train[:500]),
    ):
        found[name] = asked(tuned.decoder, material, part)
    _write(folder, found)
    found |= timed({name: seconds_a_step(material, name, steps) for name in PRECISIONS}, config)
    _write(folder, found)
    return found


def trained_so_far(config: TrainingConfig, points: Sequence[Evaluation]) -> dict[str, Any]:
    """Return what a stretch tells by itself."""
    minutes = points[-1].values["processor_minutes"]
    return {
        "parameters": parameter_count(config.model),
        "steps": config.steps,
        "positions": config.steps * COURSE.pretraining.rows * COURSE.context,
        "steps trained": points[-1].step,
        "processor minutes trained": minutes,
        "curve": [{"step": one.step, **one.values} for one in points],
        "load": os.getloadavg()[0],
    } | timed({"bfloat16": 60 * minutes / points[-1].step}, config)


def timed(seconds: dict[str, float], config: TrainingConfig) -> dict[str, Any]:
    """Return the seconds of a step, and what they mean for all of them."""
    whole = {name: taken * config.steps / 60 for name, taken in seconds.items()}
    return {"processor seconds a step": seconds, "processor minutes for all": whole}


def _write(folder: Path, found: dict[str, Any]) -> None:
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    (folder / RESULT).write_text(text, encoding="utf-8")


def _worked(run: Path) -> float:
    """Return the processor seconds of a run so far, over all interruptions."""
    total, last = 0.0, 0.0
    for line in read_metrics(run):
        seconds = line.get("processor_seconds")
        if not isinstance(seconds, float | int):
            continue
        total, last = (total + last if seconds < last else total), float(seconds)
    return total + last


def main() -> None:
    """Do all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the course's files")
    parser.add_argument("--run", type=Path, required=True, help="folder for the training")
    parser.add_argument("--minutes", type=float, default=12.0, help="processor minutes")
    parser.add_argument("--steps", type=int, default=5, help="steps that are timed")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.run.mkdir(parents=True, exist_ok=True)
    found = measured(given.data, given.run, given.minutes, given.steps)
    print(json.dumps(found, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
