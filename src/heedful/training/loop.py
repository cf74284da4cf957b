"""Training from the first step to the last, through whatever happens in between.

    train   begins a run in a new folder
    resume  continues from the newest whole checkpoint, as if it had never stopped

On one machine, with the same threads and precision, a run that was stopped, killed and resumed
any number of times ends with the very bits of one that was not.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch

from heedful.errors import HeedfulError, InputError, RunError
from heedful.files import remove_unfinished
from heedful.machine import peak_flops
from heedful.model import parameter_count
from heedful.training import checkpoint
from heedful.training.config import TrainingConfig
from heedful.training.distributed import SingleProcess, Strategy, join
from heedful.training.engine import Choice, Trial, choose
from heedful.training.feed import Feed, check_feed
from heedful.training.folder import (
    CONFIG,
    MANIFEST,
    RESULT,
    Metrics,
    RunFolder,
    RunLock,
    differences,
    manifest_of,
)
from heedful.training.hooks import Hooks, Progress, TrainingResult
from heedful.training.session import Session, TrainingStep, device_of, measured

STOPPING = (signal.SIGINT, signal.SIGTERM)


class StopRequests:
    """Listens for signals while a `with` block runs, if this is the main thread."""

    def __init__(self) -> None:
        self.number = 0
        """The signal that was heard; 0 for none."""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopRequests:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._hear) for number in STOPPING}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if self.number:
            os._exit(128 + number)
        self.number = number


NO_HOOKS = Hooks()
SPENT = ("loss", "seconds", "processor_seconds", "tokens_per_second", "utilisation")
"""What a result tells about the steps that were taken; there are none of a finished run."""


def train(
    config: TrainingConfig,
    feed: Feed,
    folder: Path,
    *,
    data: Mapping[str, str] | None = None,
    hooks: Hooks = NO_HOOKS,
    strategy: Strategy = "single",
) -> TrainingResult:
    """Begin a run in a folder that has none, and train until the end or a signal.

    `data` are the hashes of what the batches were made from; they are kept, and compared when
    the run is resumed.
    """
    run = RunFolder(folder)
    run.check_new()
    return _run(run, config, feed, dict(data or {}), hooks, strategy)


def resume(
    folder: Path,
    feed: Feed,
    *,
    data: Mapping[str, str] | None = None,
    hooks: Hooks = NO_HOOKS,
    strategy: Strategy = "single",
) -> TrainingResult:
    """Go on with a run from its newest whole checkpoint, or from the start if it has none."""
    run = RunFolder(folder)
    # Before the batches are looked at: that others do not fit the model is not what is wrong.
    run.check_data(data or {}, all_of_it=False)
    return _run(run, run.config(), feed, dict(data or {}), hooks, strategy)


def _run(
    run: RunFolder,
    config: TrainingConfig,
    feed: Feed,
    data: dict[str, str],
    hooks: Hooks,
    strategy: Strategy,
) -> TrainingResult:
    device_of(config)
    known = {**data, "first batch": check_feed(feed, config.model), "batches": str(len(feed))}
    process = join(strategy)
    try:
        with ExitStack() as stack:
            requests = stack.enter_context(StopRequests())
            stack.push(lambda kind, _error, _trace: process.close(well=kind is None))
            if process.first:
                run.prepare()
                stack.enter_context(RunLock(run.path))
                remove_unfinished(run.path)
            ready = process.from_first(True)  # the others wait until the folder is theirs
            assert ready
            training = _Training(run, config, feed, process, hooks, known)
            stack.callback(training.close)
            return training.until_the_end(requests)
    except OSError as error:
        raise RunError(
            str(error.filename or run.path),
            f"could not be used ({error.strerror or error})",
            expected="the checkpoints before it are whole",
            hint="repair that, then resume the run",
        ) from None
    except RuntimeError as error:
        if process.ranks == 1 or isinstance(error, HeedfulError):
            raise
        reason = " ".join(str(error).split())[:160]
        raise RunError(
            f"rank {process.rank}",
            f"lost the other processes ({reason})",
            hint="resume the run",
        ) from None


class _Training:
    """One run at work: a session, its folder, and when to log, evaluate and save."""

    def __init__(
        self,
        run: RunFolder,
        config: TrainingConfig,
        feed: Feed,
        process: SingleProcess,
        hooks: Hooks,
        data: dict[str, str],
    ) -> None:
        self.run, self.config, self.feed = run, config, feed
        self.process, self.hooks = process, hooks
        if process.first:
            run.check_room(config)
        before = self._manifest_before(data)
        threads = config.compute.threads or before.get("threads")
        if threads:
            torch.set_num_threads(int(threads))
        trial = self._chosen(before)
        self.choice = trial.chosen
        self.notes: list[str] = []
        self._describe(before, data, trial)
        found = checkpoint.newest(run.checkpoints)
        if found.contents is None and before.get("initial") and hooks.initial is None:
            raise InputError(
                str(run.path),
                "has no whole checkpoint, and began from weights that were given to it",
                hint="give these weights again",
            )
        self.session = Session(config, feed, process, self.choice, hooks.initial, hooks.adapt)
        self.skipped = found.skipped
        self.saved = found.path
        self.resumed_from: int | None = None
        if found.contents is not None:
            self.notes += self.session.restore(found.contents)
            self.resumed_from = self.session.step
        self.metrics = None
        if process.first:
            checkpoint.sweep(run.checkpoints)
            self.metrics = Metrics(run.path, self.session.step, tensorboard=config.tensorboard)
        self.peak = peak_flops(
            self.choice.precision,
            max(self.choice.lanes, torch.get_num_threads()),
            self.session.device.type,
        )
        self.started, self.read, self.flops = time.perf_counter(), 0, 0
        self.worked = time.process_time()
        self.last: TrainingStep | None = None

    def until_the_end(self, requests: StopRequests) -> TrainingResult:
        """Train until the steps are taken, an evaluation says enough, or a signal is heard."""
        session, config = self.session, self.config
        ended = self._over()
        self.started, self.worked = time.perf_counter(), time.process_time()
        while not ended:
            step = session.take_step(lambda: requests.number)
            self.last = step
            self.read += step.real
            self.flops += step.flops
            self._tell(step)
            last = session.step == config.steps
            if self.hooks.evaluate and (last or session.step % config.evaluate_every == 0):
                self._evaluate()
            ended = self._over()
            if not ended and step.heard:
                ended = signal.Signals(min(step.heard, 15)).name
            if ended or session.step % config.save_every == 0:
                self._save()
        if self.saved is None or checkpoint.step_of(self.saved) != session.step:
            self._save()
        return self._result(ended)

    def close(self) -> None:
        """End threads and files."""
        self.session.close()
        if self.metrics is not None:
            self.metrics.close()

    def _over(self) -> str:
        evaluations = self.session.evaluations
        fresh = evaluations and evaluations[-1].step == self.session.step
        if fresh and self.hooks.stop is not None and self.hooks.stop(evaluations):
            return "evaluation"
        return "steps" if self.session.step >= self.config.steps else ""

    def _tell(self, step: TrainingStep) -> None:
        session, config = self.session, self.config
        seconds = max(time.perf_counter() - self.started, 1e-9)
        taken = session.step - (self.resumed_from or 0)
        if self.hooks.report is not None:
            self.hooks.report(
                Progress(
                    step=session.step,
                    steps=config.steps,
                    epoch=session.batch // len(self.feed),
                    loss=step.loss,
                    gradient_norm=step.gradient_norm,
                    rate_share=step.rate_share,
                    tokens_per_second=self.read / seconds,
                    utilisation=self._utilisation(seconds),
                    seconds_left=seconds / taken * (config.steps - session.step),
                )
            )
        # The first step after a resume is logged too: its clocks tell that they began anew.
        due = session.step % config.log_every == 0 or taken == 1 or session.step == config.steps
        if self.metrics is not None and due:
            self.metrics.write(
                session.step,
                {
                    "epoch": session.batch / len(self.feed),
                    "loss": step.loss,
                    "gradient_norm": step.gradient_norm,
                    "learning_rate": config.optimiser.learning_rate * step.rate_share,
                    "tokens": session.tokens,
                    "seconds": seconds,
                    "processor_seconds": time.process_time() - self.worked,
                    "tokens_per_second": self.read / seconds,
                },
            )

    def _utilisation(self, seconds: float) -> float:
        """Return the share of the peak; what was reached can be reached, so never above 1."""
        reached = self.flops / seconds / self.process.ranks
        self.peak = max(self.peak, reached)  # it was measured while other work held the machine
        return reached / self.peak

    def _evaluate(self) -> None:
        assert self.hooks.evaluate is not None
        evaluation = self.session.evaluate(self.hooks.evaluate)
        if self.metrics is not None:
            self.metrics.write(evaluation.step, {"evaluation": evaluation.values})

    def _save(self) -> None:
        contents = self.session.contents()  # every rank gives its part
        if self.process.first:
            self.saved = checkpoint.save(self.run.checkpoints, contents, self.config.model)
        else:
            self.saved = self.run.checkpoints / f"{checkpoint.PREFIX}{self.session.step:08d}"

    def _manifest_before(self, data: dict[str, str]) -> dict[str, Any]:
        """Return the manifest of a run that is resumed, after its data is found to be the same."""
        return self.run.check_data(data) if self.run.exists else {}

    def _chosen(self, before: dict[str, Any]) -> Trial:
        if before:
            chosen = Choice(**before["choices"])
            return Trial(chosen=chosen, seconds=before.get("trial", {}), reason="as before")
        machine_threads = torch.get_num_threads()
        trial = choose(
            self.config.compute,
            self.config.steps,
            machine_threads,
            lambda choice: measured(self.config, self.feed, choice),
            lanes_possible=self.process.ranks == 1 and not torch.cuda.is_available(),
        )
        return Trial(
            chosen=Choice(**self.process.from_first(dataclasses.asdict(trial.chosen))),
            seconds=trial.seconds,
            reason=trial.reason,
        )

    def _describe(self, before: dict[str, Any], data: dict[str, str], trial: Trial) -> None:
        """Write what the run is and runs on; or note what differs from when it began."""
        now = manifest_of(self.config, data, dataclasses.asdict(self.choice), self.process.ranks)
        now |= {"trial": trial.seconds, "reason": trial.reason}
        now["initial"] = self.hooks.initial is not None
        if before:
            self.notes += differences(before, now)
        elif self.process.first:
            self.run.write(MANIFEST, now)
            # The config comes last: a folder with one is a run that can be resumed.
            self.run.write(CONFIG, self.config.to_dict())

    def _result(self, ended: str) -> TrainingResult:
        session, seconds = self.session, time.perf_counter() - self.started
        assert self.saved is not None
        result = TrainingResult(
            run=str(self.run.path),
            finished=ended in ("steps", "evaluation"),
            stopped_by=ended,
            step=session.step,
            epoch=session.batch / len(self.feed),
            loss=None if self.last is None else self.last.loss,
            evaluations=tuple(session.evaluations),
            tokens=session.tokens,
            seconds=seconds,
            processor_seconds=time.process_time() - self.worked,
            tokens_per_second=self.read / max(seconds, 1e-9),
            utilisation=self._utilisation(max(seconds, 1e-9)),
            parameters=parameter_count(self.config.model),
            computed_as=self.choice.name,
            checkpoint=str(self.saved),
            weights_sha256=self._weights_hash(),
            resumed_from=self.resumed_from,
            skipped=self.skipped,
            notes=tuple(self.notes),
        )
        if self.last is None and (self.run.path / RESULT).is_file():
            before = self.run.read(RESULT)
            if before.get("weights_sha256") == result.weights_sha256 and before.get("finished"):
                # Nothing was done: what the run cost when it was done stays written down.
                spent = {name: before[name] for name in SPENT if name in before}
                return dataclasses.replace(result, **spent)
        if self.process.first:
            self.run.write(RESULT, result.to_dict())
        return result

    def _weights_hash(self) -> str:
        assert self.saved is not None
        if not self.process.first:
            return ""
        manifest = json.loads((self.saved / "manifest.json").read_text("utf-8"))
        return str(manifest["files"]["model.safetensors"]["sha256"])
