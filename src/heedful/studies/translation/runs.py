"""One training of a study as a run folder: begun, gone on with, or found finished.

The name of a run ends in a hash of everything that decides it. The same settings and data find
the same folder, so that a study which was interrupted goes on where it stopped, and one that
asks for more sizes trains only those that are new.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful.files import sha256, write_json
from heedful.model import Decoder, write_folder
from heedful.settings import Settings
from heedful.studies.translation.corpora import TestSet
from heedful.studies.translation.format import FILE, TranslationFormat
from heedful.studies.translation.records import CurvePoint, Sample
from heedful.studies.translation.scoring import bleu_of
from heedful.studies.translation.translator import Translator
from heedful.tokenization import Tokenizer
from heedful.training import Compute, Feed, Hooks, TrainingConfig, held_out_loss, resume, train
from heedful.training.folder import MANIFEST, RESULT, RunFolder
from heedful.training.hooks import Evaluate, Progress
from heedful.training.metrics import read_metrics
from heedful.training.session import measured
from heedful.training.trial import choose

SAMPLES, TRANSLATIONS = "samples.json", "translations.json"
SHOWN = 6
"""Development sentences whose translations are kept along the way."""

Report = Callable[[Progress], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class Trained:
    """A finished run of a study."""

    folder: Path
    result: dict[str, Any]
    """What the training wrote at its end."""
    minutes: float
    """Of training, over all the times it was gone on with; evaluations are not counted."""
    processor: float
    """Seconds of processors in that time: less at the mercy of what else the machine does."""
    curve: tuple[CurvePoint, ...]
    computed_as: str

    @property
    def weights(self) -> str:
        """The hash of its weights."""
        return str(self.result["weights_sha256"])


def run_name(what: str, config: TrainingConfig, data: Mapping[str, str]) -> str:
    """Return the name of a run: what it is, and a hash of what decides it."""
    content = json.dumps([config.to_dict(), dict(data)], sort_keys=True)
    return f"{what}-{sha256(content)[:8]}"


def run_to_the_end(
    folder: Path, config: TrainingConfig, feed: Feed, hooks: Hooks, data: Mapping[str, str]
) -> Trained:
    """Train, go on training, or find what is finished; a signal ends the whole study."""
    run = RunFolder(folder)
    if not _is_finished(run):
        folder.parent.mkdir(parents=True, exist_ok=True)
        if run.exists:
            result = resume(folder, feed, data=data, hooks=hooks)
        else:
            result = train(config, feed, folder, data=data, hooks=hooks)
        if not result.finished:
            # The step was finished and saved; the same command goes on from there.
            if result.stopped_by == "SIGINT":
                raise KeyboardInterrupt
            sys.exit(128 + int(signal.Signals[result.stopped_by]))
    written = run.read(RESULT)
    minutes, processor, curve = _clock(folder, written)
    choices = run.read(MANIFEST)["choices"]
    lanes = "" if choices["lanes"] == 1 else f", {choices['lanes']} lanes"
    return Trained(
        folder=folder,
        result=written,
        minutes=minutes,
        processor=processor,
        curve=curve,
        computed_as=f"{choices['precision']}{lanes}",
    )


def keep_model(
    folder: Path,
    trained: Callable[[], Decoder],
    tokenizer: Tokenizer,
    written: TranslationFormat,
) -> None:
    """Put the decoder of a finished run beside its tokenizer and its format, unless it is there."""
    model = folder / "model"
    if not model.is_dir():
        write_folder(trained(), model, tokenizer=tokenizer)
    if not (model / FILE).is_file():
        written.write(model)


def fastest(config: TrainingConfig, feed: Feed, keep: Path) -> Compute:
    """Measure how this machine trains such a decoder fastest; the answer is kept in a file.

    Every arm then computes in the same way, however short its training is.
    """
    cores = torch.get_num_threads()
    name = f"{cores} threads, {config.model.width} × {config.model.layers}"
    known = _read(keep)
    if name not in known:
        trial = choose(
            Compute(compile=False), 10_000, cores, lambda way: measured(config, feed, way)
        )
        found = {"precision": trial.chosen.precision, "lanes": trial.chosen.lanes}
        known |= {name: found | {"seconds": trial.seconds}}
        keep.parent.mkdir(parents=True, exist_ok=True)
        write_json(keep, known)
    chosen = known[name]
    return Compute(precision=chosen["precision"], lanes=chosen["lanes"], compile=False)


def watch(
    folder: Path,
    development: TestSet,
    feed: Feed,
    tokenizer: Tokenizer,
    written: TranslationFormat,
) -> Evaluate:
    """Return an evaluation: loss and BLEU of development sentences, some of them written down."""
    loss = held_out_loss(feed)

    def evaluate(decoder: Decoder, step: int) -> dict[str, float]:
        started = time.perf_counter()
        found = {"loss": loss(decoder, step)["loss"]}
        made = Translator(decoder, tokenizer, written).texts(development.sources)
        found["bleu"] = bleu_of(made, development.references)
        _keep_samples(folder / SAMPLES, step, made[:SHOWN])
        return found | {"seconds": time.perf_counter() - started}

    return evaluate


def samples_of(folder: Path, development: TestSet) -> tuple[Sample, ...]:
    """Return the development sentences that were written down during a training."""
    kept = {int(step): texts for step, texts in _read(folder / SAMPLES).items()}
    several = zip(development.sources[:SHOWN], development.references, strict=False)
    return tuple(
        Sample(
            source=source,
            reference=known[0],
            translations={step: kept[step][place] for step in sorted(kept)},
        )
        for place, (source, known) in enumerate(several)
        if kept
    )


def translations_of(
    folder: Path, tests: Sequence[TestSet]
) -> tuple[dict[str, tuple[str, ...]], float]:
    """Translate test sets, or find that it was done; and sentences a second."""
    sources = sha256(json.dumps([test.sources for test in tests]))
    kept = _read(folder / TRANSLATIONS)
    if kept.get("sources") != sources:
        translator = Translator.open(folder)
        started = time.perf_counter()
        made = {test.name: translator.texts(test.sources) for test in tests}
        seconds = time.perf_counter() - started
        kept = {"sources": sources, "translations": made, "seconds": seconds}
        write_json(folder / TRANSLATIONS, kept)
    texts = {name: tuple(found) for name, found in kept["translations"].items()}
    return texts, sum(map(len, texts.values())) / max(kept["seconds"], 1e-9)


def shifted(curve: Sequence[CurvePoint], minutes: float) -> tuple[CurvePoint, ...]:
    """Return a curve that begins after so many minutes."""
    return tuple(replace(point, minutes=point.minutes + minutes) for point in curve)


def table_of(settings: Settings) -> dict[str, Any]:
    """Return settings as a run's `[data]` holds them."""
    return settings.model_dump(mode="json")


def _is_finished(run: RunFolder) -> bool:
    if not (run.path / RESULT).is_file():
        return False
    return bool(run.read(RESULT).get("finished"))


def _clock(folder: Path, result: dict[str, Any]) -> tuple[float, float, tuple[CurvePoint, ...]]:
    """Return the minutes of a training, its processor seconds, and its evaluations on the clock.

    A run that was gone on with counts from 0 again: the parts are added up.
    """
    lines = [line for line in read_metrics(folder) if "seconds" in line]
    steps = [0, *(line["step"] for line in lines)]
    seconds = _added_up([line["seconds"] for line in lines])
    processor = _added_up([line["processor_seconds"] for line in lines])
    looked = [(entry["step"], entry["values"]) for entry in result["evaluations"]]
    # An evaluation stands on the clock of every step after it.
    spent = [sum(v.get("seconds", 0.0) for at, v in looked if at < step) for step in steps]
    net = np.array(seconds) - np.array(spent)
    curve = tuple(
        CurvePoint(
            step=step,
            minutes=float(np.interp(step, steps, net)) / 60,
            loss=values["loss"],
            bleu=values.get("bleu"),
        )
        for step, values in looked
    )
    share = processor[-1] / max(seconds[-1], 1e-9)
    return float(net[-1]) / 60, float(net[-1]) * share, curve


def _added_up(readings: Sequence[float]) -> list[float]:
    """Return the readings of a clock that began again after interruptions, as one clock.

    >>> _added_up([1.0, 2.0, 0.5, 1.0])
    [0.0, 1.0, 2.0, 2.5, 3.0]
    """
    made, before, last = [0.0], 0.0, 0.0
    for reading in readings:
        before += last if reading < last else 0.0
        last = reading
        made.append(before + reading)
    return made


def _keep_samples(path: Path, step: int, texts: Sequence[str]) -> None:
    kept = {number: found for number, found in _read(path).items() if int(number) < step}
    write_json(path, {**kept, str(step): list(texts)})


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
