"""Runs: begin one, resume it, find it again, tell a finished one from a stopped one, compare two.

    run_path         the folder of a training: a label, and a hash of all that decides it
    begin_or_resume  one session at work on a run, however it ends
    train_to_end     the run, finished: trained now, resumed, or found; `RunStoppedError` otherwise

Everybody who trains does it here. A training that a signal stopped has saved its last step and
written a `result.json` that says `finished: false`: only `train_to_end` hands out a run, so a
half-trained model is never taken for a trained one.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful.errors import HeedfulError, InputError, RunError
from heedful.files import sha256
from heedful.model import Decoder, DecoderConfig, flops_per_token
from heedful.model.weights.huggingface import read_json
from heedful.records import Record
from heedful.training import checkpoint
from heedful.training.config import TrainingConfig
from heedful.training.distributed import Strategy
from heedful.training.feed import Feed
from heedful.training.folder import (
    CONFIG,
    MANIFEST,
    RESULT,
    RunFolder,
    flat,
    holder_of,
    read_metrics,
)
from heedful.training.hooks import Evaluation, Hooks, TrainingResult
from heedful.training.loop import NO_HOOKS, resume, train


class RunStoppedError(RunError):
    """A signal stopped a training after a whole step, which is saved: it can be resumed."""

    def __init__(self, run: Path, name: str) -> None:
        """Say which run was stopped, and by which signal: `SIGINT` or `SIGTERM`."""
        super().__init__(
            str(run), f"was stopped by {name}", hint="run the same command again to go on"
        )
        self.exit_code = 128 + int(signal.Signals[name])


@dataclass(frozen=True, eq=False)
class FinishedRun(Record):
    """A run whose training has come to its end."""

    folder: Path
    result: TrainingResult
    """How it ended."""

    def decoder(self) -> Decoder:
        """Return the trained decoder."""
        return trained_decoder(self.folder)

    @property
    def seconds(self) -> float:
        """How long it trained, across all resumes, without evaluations that tell their time."""
        return float(self._clock[1][-1])

    @property
    def processor_seconds(self) -> float:
        """How long processors worked for it, all cores added up, across all resumes."""
        readings = [
            line["processor_seconds"]
            for line in read_metrics(self.folder)
            if "processor_seconds" in line
        ]
        return _one_clock(readings)[-1]

    @property
    def work(self) -> float:
        """Operations that it took: tokens read times those of a token at the full context.

        The same for the same settings and data, on any machine and beside any other program.
        """
        model = RunFolder(self.folder).config().model
        return float(self.result.tokens * flops_per_token(model, training=True))

    def seconds_at(self, step: int) -> float:
        """Return how long it had trained when a step was taken."""
        steps, seconds = self._clock
        return float(np.interp(step, steps, seconds))

    @cached_property
    def _clock(self) -> tuple[list[int], np.ndarray]:
        """Logged steps, and the seconds of training at each."""
        lines = [line for line in read_metrics(self.folder) if "seconds" in line]
        steps = [0, *(line["step"] for line in lines)]
        seconds = _one_clock([line["seconds"] for line in lines])
        looks = [(one.step, one.values.get("seconds", 0.0)) for one in self.result.evaluations]
        # An evaluation is on the clock of every step after it.
        spent = [sum(taken for at, taken in looks if at < step) for step in steps]
        return steps, np.array(seconds) - spent


def run_path(folder: Path, label: str, config: TrainingConfig, data: Mapping[str, str]) -> Path:
    """Return where a training belongs: the same settings and data find the same run again."""
    content = json.dumps([config.to_dict(), dict(data)], sort_keys=True)
    return folder / f"{label}-{sha256(content)[:8]}"


def train_to_end(
    folder: Path,
    config: TrainingConfig,
    feed: Feed,
    *,
    data: Mapping[str, str] | None = None,
    hooks: Hooks = NO_HOOKS,
) -> FinishedRun:
    """Return a finished run: found in its folder, resumed there, or trained from the start.

    Raises `RunStoppedError` where a signal stops it; the next call then goes on.
    """
    run = finished_run(folder)
    if run is None:
        threads = torch.get_num_threads()
        try:
            result = begin_or_resume(folder, config, feed, data=data, hooks=hooks)
        finally:
            torch.set_num_threads(threads)  # a training may have set those of its config
        if not result.finished:
            raise RunStoppedError(folder, result.stopped_by)
        run = finished_run(folder)
        assert run is not None
    return run


def begin_or_resume(
    folder: Path,
    config: TrainingConfig,
    feed: Feed,
    *,
    data: Mapping[str, str] | None = None,
    hooks: Hooks = NO_HOOKS,
    strategy: Strategy = "single",
) -> TrainingResult:
    """Resume the run in a folder, or begin one where there is none; return how it ended."""
    if RunFolder(folder).exists:
        return resume(folder, feed, data=data, hooks=hooks, strategy=strategy)
    return train(config, feed, folder, data=data, hooks=hooks, strategy=strategy)


def is_finished(folder: Path) -> bool:
    """Say whether the training in a folder has come to its end; a stopped one has not."""
    path = folder / RESULT
    return path.is_file() and bool(RunFolder(folder).read(RESULT).get("finished"))


def finished_run(folder: Path) -> FinishedRun | None:
    """Return the run in a folder if its training has come to its end."""
    if not is_finished(folder):
        return None
    content = RunFolder(folder).read(RESULT)
    known = {one.name for one in fields(TrainingResult)}
    missing = sorted(known - content.keys())
    if missing:
        raise InputError(
            str(folder / RESULT),
            f"does not say {missing[0]}: another version wrote it",
            hint="remove the run to train it again",
        )
    values = {name: value for name, value in content.items() if name in known}
    values["evaluations"] = tuple(Evaluation(**one) for one in content["evaluations"])
    values["notes"] = tuple(content["notes"])
    return FinishedRun(folder, TrainingResult(**values))


def trained_decoder(path: Path) -> Decoder:
    """Return the decoder of a run (its newest whole checkpoint) or of one checkpoint.

    Where the run keeps an average of its weights, the decoder has the averaged ones.
    """
    run = RunFolder(path)
    if run.exists and run.checkpoints.is_dir():
        found = checkpoint.newest(run.checkpoints)
        if found.path is None or found.contents is None:
            raise RunError(str(path), "has no whole checkpoint", hint="train it first")
        place, contents = found.path, found.contents
    else:
        problem = checkpoint.damage(path)
        if problem is not None:
            raise InputError(str(path), f"is no whole checkpoint ({problem})")
        place, contents = path, checkpoint.read(path)
    config = DecoderConfig.of(read_json(place / "config.json").get("heedful"))
    decoder = Decoder(config)
    weights = contents.part("average") or contents.model
    if weights.keys() != decoder.state_dict().keys():
        raise InputError(
            str(place),
            "holds what a fine-tuning added to other weights, not the weights",
            hint=f"use {path / 'model'}, which has both",
        )
    decoder.load_state_dict(weights)
    return decoder.eval()


@dataclass(frozen=True, eq=False, kw_only=True)
class RunSummary(Record):
    """One run at a glance."""

    run: str
    """Its folder."""
    state: str
    """`finished`, `running` (with its process), `stopped`, or `unreadable`."""
    step: int = 0
    """The last step with metrics or a checkpoint."""
    steps: int = 0
    """The steps it was asked to take."""
    loss: float | None = None
    """The last one measured."""
    evaluation: dict[str, float] = field(default_factory=dict)
    """The last one made."""
    parameters: int = 0
    """Trained numbers."""
    tokens_per_second: float | None = None
    """The last one measured."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RunList(Record):
    """Every run below a folder."""

    folder: str
    runs: tuple[RunSummary, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Difference(Record):
    """Something that two runs have differently; None where one does not have it."""

    name: str
    first: Any
    second: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class RunComparison(Record):
    """What differs between two runs, in what was asked, in where it ran, in what came out."""

    first: str
    second: str
    config: tuple[Difference, ...]
    """Settings."""
    machine: tuple[Difference, ...]
    """Data hashes, versions, threads, choices."""
    results: tuple[Difference, ...]
    """Steps, losses, evaluations, speed, and the hash of the weights."""
    same_weights: bool | None
    """Whether both ended with the same bits; None while one has no result."""


def list_runs(folder: Path) -> RunList:
    """Return every run in a folder, or the folder itself if it is one."""
    if not folder.is_dir():
        raise InputError(
            str(folder), "there is no such folder", expected="a folder with runs was expected"
        )
    folders = [folder] if RunFolder(folder).exists else []
    folders += sorted(path.parent for path in folder.glob(f"*/{CONFIG}") if _is_run(path.parent))
    return RunList(folder=str(folder), runs=tuple(summary_of(path) for path in folders))


def summary_of(folder: Path) -> RunSummary:
    """Return one run at a glance; a damaged one is shown as such."""
    run = RunFolder(folder)
    lines = read_metrics(folder)
    losses = [line for line in lines if "loss" in line]
    evaluations = [line["evaluation"] for line in lines if "evaluation" in line]
    saved = checkpoint.checkpoints(run.checkpoints)
    steps = [checkpoint.step_of(path) for path in saved] + [line["step"] for line in lines]
    try:
        config, manifest = run.config(), run.read(MANIFEST)
        state = _state(run)
    except HeedfulError as error:
        return RunSummary(run=str(folder), state=f"unreadable: {error.problem}")
    return RunSummary(
        run=str(folder),
        state=state,
        step=max(steps, default=0),
        steps=config.steps,
        loss=losses[-1].get("loss") if losses else None,
        evaluation=evaluations[-1] if evaluations else {},
        parameters=int(manifest.get("parameters", 0)),
        tokens_per_second=losses[-1].get("tokens_per_second") if losses else None,
    )


def compare_runs(first: Path, second: Path) -> RunComparison:
    """Return what two runs do differently, and what came of it."""
    one, two = RunFolder(first), RunFolder(second)
    results = [_outcome(run) for run in (one, two)]
    hashes = [result.get("weights_sha256") for result in results]
    return RunComparison(
        first=str(first),
        second=str(second),
        config=_differences(one.read(CONFIG), two.read(CONFIG)),
        machine=_differences(one.read(MANIFEST), two.read(MANIFEST)),
        results=_differences(*results),
        same_weights=hashes[0] == hashes[1] if all(hashes) else None,
    )


def _is_run(folder: Path) -> bool:
    return (folder / MANIFEST).is_file() and RunFolder(folder).checkpoints.is_dir()


def _state(run: RunFolder) -> str:
    holder = holder_of(run.path)
    if holder is not None:
        return f"running ({holder})"
    return "finished" if is_finished(run.path) else "stopped"


def _outcome(run: RunFolder) -> dict[str, Any]:
    summary = summary_of(run.path)
    kept = {"step": summary.step, "loss": summary.loss, "evaluation": summary.evaluation}
    kept["tokens_per_second"] = summary.tokens_per_second
    if (run.path / RESULT).is_file():
        result = run.read(RESULT)
        names = ("stopped_by", "tokens", "seconds", "weights_sha256")
        kept |= {name: result.get(name) for name in names}
    return kept


def _differences(one: Mapping[str, Any], two: Mapping[str, Any]) -> tuple[Difference, ...]:
    flat_one, flat_two = dict(flat(one)), dict(flat(two))
    return tuple(
        Difference(name=name, first=flat_one.get(name), second=flat_two.get(name))
        for name in dict.fromkeys([*flat_one, *flat_two])
        if flat_one.get(name) != flat_two.get(name)
    )


def _one_clock(readings: Sequence[float]) -> list[float]:
    """Return the readings of a clock that started again at every resume as those of one clock.

    >>> _one_clock([1.0, 2.0, 0.5, 1.0])
    [0.0, 1.0, 2.0, 2.5, 3.0]
    """
    total, before, last = [0.0], 0.0, 0.0
    for reading in readings:
        before += last if reading < last else 0.0
        last = reading
        total.append(before + reading)
    return total
