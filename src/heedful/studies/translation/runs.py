"""What a study keeps with each of its runs: the model, samples along the way, translations."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from heedful.training import Compute, Feed, FinishedRun, TrainingConfig, held_out_loss
from heedful.training.engine import choose
from heedful.training.hooks import Evaluate, Progress
from heedful.training.session import measured

SAMPLES, TRANSLATIONS = "samples.json", "translations.json"
SHOWN = 6
"""Development sentences whose translations are kept along the way."""

Report = Callable[[Progress], None]


def curve_of(run: FinishedRun) -> tuple[CurvePoint, ...]:
    """Return the evaluations of a training on its clock."""
    return tuple(
        CurvePoint(
            step=one.step,
            minutes=run.seconds_at(one.step) / 60,
            loss=one.values["loss"],
            bleu=one.values.get("bleu"),
        )
        for one in run.result.evaluations
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


def _keep_samples(path: Path, step: int, texts: Sequence[str]) -> None:
    kept = {number: found for number, found in _read(path).items() if int(number) < step}
    write_json(path, {**kept, str(step): list(texts)})


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
